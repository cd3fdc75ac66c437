/* What neither head nor versions need (reach.c) becomes free, by one commit: slots, views of nodes and roots. Records stay in the
 * index, which only grows; nothing names them any more.
 *
 * The chunk of a slot without filters keeps its place in the file, for the next chunk; that of one with filters is written anew
 * from zeros, so that HDF5 has back what that does not need. When the commit is applied, and nobody sees an older state, whole
 * pages of all that go back to the file system: the file has holes there.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/vector.h"
#include "h5cow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that the new table `free`, or `operations` with the texts of its first row, takes at most. */
#define ROOM_FOR_FREE       2048
#define ROOM_FOR_OPERATIONS 8192

typedef struct collecting {
    cow_file *file;
    const cow_reach *reach;
    h5cow_collect_t *answer;
    bool by_policy; /* what is freed by the option keep=, each time, is not recorded beside what it has forgotten */
    cow_space_kept kept;
    bool begun;
    uint64_t limit;              /* the file is that long, and shall not get longer */
    size_t shrunk;               /* bytes of the largest chunk of which HDF5 has most back */
    const cow_pool_entry *entry; /* the pool at hand */
    uint64_t slots;
    bool filtered;
    uint64_t *freed; /* of it, to be written anew */
    size_t freed_count, freed_room;
    cow_place *place; /* of slots that hold nothing */
    size_t places, place_room;
    uint64_t *view; /* that nobody needs */
    size_t views, view_room;
} collecting;

static void collecting_free(collecting *c)
{
    free(c->freed);
    free(c->place);
    free(c->view);
}

static int no_memory(const collecting *c)
{
    return cow_error(COW_MEMORY, "%s: no memory for a list of free places", c->file->name);
}

/* Something will be freed. To note that takes place, and the file shall not get longer: at the end of it is what the last commit needed. */
static int begin(collecting *c)
{
    uint64_t end, spare;

    if (c->begun || c->by_policy)
        return 0;
    if (cow_file_end(c->file, &end) < 0 || cow_journal_shorten(c->file->journal, &spare) < 0)
        return -1;
    c->begun = true;
    c->limit = end + spare;
    return 0;
}

/* Would a new table, with what it is to hold, not lengthen the file? -1 */
static int has_room(const collecting *c, uint64_t bytes)
{
    uint64_t end;

    if (c->by_policy || c->shrunk >= 2 * bytes)
        return 1;
    return cow_file_end(c->file, &end) < 0 ? -1 : end + bytes <= c->limit;
}

/* ---- slots ---- */

static bool is_needed(void *context, uint64_t slot)
{
    const collecting *c = context;

    return cow_reach_slot(c->reach, c->entry->id, slot);
}

static int note_place(collecting *c, uint64_t address, uint64_t size)
{
    if (COW_RESERVE(c->place, c->place_room, c->places, 1) < 0)
        return no_memory(c);
    c->place[c->places++] = (cow_place){address, size};
    return 0;
}

static int note_vacant(void *context, uint64_t slot, bool used)
{
    collecting *c = context;
    haddr_t address;
    hsize_t size;
    unsigned mask;

    if (cow_native_chunk_address(cow_pool_store(c->entry->pool), c->slots, slot, &address, &size, &mask) < 0)
        return -1;
    if (used) {
        if (begin(c) < 0)
            return -1;
        c->answer->chunks++;
        c->answer->bytes += address == HADDR_UNDEF ? 0 : size;
    }
    if (address == HADDR_UNDEF)
        return 0;
    if (!c->filtered)
        return note_place(c, address, size);
    if (!used)
        return 0;
    if (COW_RESERVE(c->freed, c->freed_room, c->freed_count, 1) < 0)
        return no_memory(c);
    c->freed[c->freed_count++] = slot;
    return 0;
}

/* A chunk of zeros as the filters store it. *SIZE 0: that is not worth it, or they do not take it. */
static int encode_zeros(const collecting *c, uint8_t **bytes, size_t *size, uint32_t *mask)
{
    cow_codec *codec = c->entry->codec;
    size_t chunk = c->entry->raw.chunk_bytes;
    uint8_t *zeros = calloc(2, chunk);
    int status;

    *size = 0;
    if (zeros == NULL || (*bytes = malloc(cow_codec_bound(codec))) == NULL) {
        free(zeros);
        return no_memory(c);
    }
    status = cow_codec_parallel(codec) ? cow_codec_encode_as(codec, NULL, zeros, *bytes, size, mask)
                                       : cow_codec_encode_back(codec, NULL, zeros, *bytes, size, mask, zeros + chunk);
    free(zeros);
    if (status < 0 && cow_error_is(COW_MEMORY))
        return -1;
    if (status < 0) {
        cow_error_clear();
        *size = 0;
    }
    if (*size > chunk / 2)
        *size = 0;
    return 0;
}

static int shrink_chunks(collecting *c)
{
    cow_chunk_store *store = cow_pool_store(c->entry->pool);
    uint8_t *bytes = NULL;
    uint32_t mask = 0;
    size_t size, old;
    int status;

    if (c->freed_count == 0 || c->kept == COW_SPACE_NEVER)
        return 0;
    status = encode_zeros(c, &bytes, &size, &mask);
    for (size_t i = 0; status == 0 && size > 0 && i < c->freed_count; i++) {
        if (store->size(store, c->freed[i], &old) < 0 || store->again(store, c->freed[i]) < 0)
            status = -1;
        else if (size < old) {
            status = store->write(store, c->freed[i], bytes, size, mask);
            c->shrunk = old - size > c->shrunk ? old - size : c->shrunk;
        }
    }
    free(bytes);
    return status;
}

static int collect_slots(collecting *c)
{
    const cow_pool_collector collector = {.context = c, .needed = is_needed, .vacant = note_vacant};

    for (uint32_t id = 0; id < cow_pools_rows(c->file); id++) {
        if ((c->entry = cow_pools_get(c->file, id)) == NULL)
            return -1;
        c->slots = cow_pool_slots(c->entry->pool);
        c->filtered = !cow_codec_identity(c->entry->codec);
        c->freed_count = 0;
        if (c->slots > 0 && (cow_pool_vacate(c->entry->pool, &collector) < 0 ||
                             (cow_type_is_heap(cow_kept_type_id(c->entry->type), true) == 0 && shrink_chunks(c) < 0)))
            return -1;
    }
    return 0;
}

/* ---- views ---- */

/* The members of a group of views, whose path is GROUP. Parts are noted, and the views of records that nothing needs. */
typedef struct listing {
    collecting *c;
    const char *group;
    cow_map parts;
} listing;

static int note_view(void *context, const char *name, const H5L_info2_t *info)
{
    listing *l = context;
    collecting *c = l->c;
    char path[COW_PATH_MAX], its[COW_PATH_MAX];
    uint64_t offset;

    (void)info;
    if (cow_layout_part_name(name, &offset))
        return cow_map_put(&l->parts, offset, 1);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", l->group, name) >= sizeof path ||
        cow_layout_source(path, &offset) != 2)
        return 0;
    if (cow_views_path(c->file, its, offset) < 0)
        return -1;
    if (strcmp(path, its) != 0 || cow_reach_record(c->reach, offset))
        return 0;
    if (COW_RESERVE(c->view, c->view_room, c->views, 1) < 0)
        return no_memory(c);
    c->view[c->views++] = offset;
    return 0;
}

static int list_views(listing *l, const char *group)
{
    cow_loc views;
    int status;

    l->group = group;
    if (cow_layout_hard(l->c->file->loc, group) < 0 || cow_native_open(l->c->file->loc, group, &views) < 0)
        return -1;
    status = views.type == H5I_GROUP ? cow_native_links(views, COW_LINKS_ANY, note_view, l)
                                     : cow_error(COW_CORRUPT, "'%s' is no group; try: h5cow verify", group);
    return cow_native_close(views) < 0 ? -1 : status;
}

static int find_views(collecting *c)
{
    listing l = {.c = c}, part = {.c = c};
    char path[COW_PATH_MAX];
    int status = list_views(&l, COW_PATH_VIEWS);

    for (size_t i = 0; status == 0 && i < l.parts.capacity; i++) {
        if (!l.parts.entry[i].used)
            continue;
        cow_layout_part_path(path, l.parts.entry[i].key);
        status = list_views(&part, path);
    }
    cow_map_free(&l.parts);
    cow_map_free(&part.parts);
    return status;
}

static int collect_views(collecting *c)
{
    char path[COW_PATH_MAX];
    int status = c->views > 0 ? begin(c) : 0;

    for (size_t i = 0; status == 0 && i < c->views; i++)
        if (cow_views_path(c->file, path, c->view[i]) < 0 || cow_native_link_delete(c->file->loc, path) < 0)
            status = -1;
    return status;
}

/* A dataset that was made and deleted in one transaction, where a copy had given it a root: nobody names its head. LINKS: that of
 * `heads` goes as well; its row ends anyway, since its chunks may be free. */
static int collect_heads(collecting *c, bool links)
{
    const uint64_t *id;
    size_t count = cow_reach_ended(c->reach, &id);

    for (size_t i = 0; i < count; i++)
        if (begin(c) < 0 || (links ? cow_head_end(c->file, id[i]) : cow_head_end_row(c->file, id[i])) < 0)
            return -1;
    return 0;
}

/* ---- holes ---- */

/* What cannot be told, or given back, does no harm. */
static void make_holes(collecting *c)
{
    cow_place *list = NULL;
    size_t count;
    int status = cow_space_list(c->file, 1, &list, &count);

    for (size_t i = 0; status == 0 && i < count; i++)
        status = note_place(c, list[i].address, list[i].size);
    free(list);
    cow_error_clear();
    c->places = cow_places_join(c->place, c->places, 1);
    c->answer->holes = cow_journal_holes(c->file->journal, c->place, c->places);
}

/* ---- writing it down ---- */

/* The list of free places is of use only where HDF5 takes them from there (space.c). */
static int note_space(const collecting *c)
{
    const int room = c->kept == COW_SPACE_FORGOTTEN ? has_room(c, ROOM_FOR_FREE) : 0;

    return room > 0 ? cow_space_create(c->file) : room;
}

static int record(const collecting *c)
{
    int there = c->by_policy ? 0 : cow_layout_operations_exist(c->file->loc);
    char what[200];

    if (!c->by_policy && (there == 0 || (there > 0 && c->kept == COW_SPACE_NEVER)))
        there = c->kept == COW_SPACE_PAGED ? 0 : has_room(c, ROOM_FOR_OPERATIONS);
    if (there <= 0)
        return there;
    snprintf(what, sizeof what, "%llu chunk%s of %llu bytes freed", (unsigned long long)c->answer->chunks,
             c->answer->chunks == 1 ? "" : "s", (unsigned long long)c->answer->bytes);
    return cow_operation_record(c->file, COW_OPERATION_COLLECT, UINT64_MAX, what);
}

/* Views and links of heads are deleted where somebody gets their space: elsewhere HDF5 forgets it, there is no list of free places, and
 * what is written for a deletion (a larger list of free space within a group's heap) may need new space. */
static bool is_used_again(const collecting *c)
{
    return c->kept == COW_SPACE_FORGOTTEN;
}

static bool is_nothing(const collecting *c)
{
    const uint64_t *ended;

    return c->answer->chunks == 0 && (!is_used_again(c) || (c->views == 0 && cow_reach_ended(c->reach, &ended) == 0));
}

static int collect(collecting *c)
{
    int status = collect_slots(c) < 0 || find_views(c) < 0 ? -1 : 0;

    if (status == 0 && is_nothing(c))
        return 0; /* nothing was written */
    if (status == 0 && is_used_again(c))
        status = collect_views(c);
    if (status == 0 && (collect_heads(c, is_used_again(c)) < 0 || record(c) < 0 || note_space(c) < 0))
        status = -1;
    return cow_operation_end_recorded(c->file, status);
}

static int collect_file(cow_file *file, h5cow_collect_t *answer, bool by_policy)
{
    collecting c = {.file = file, .answer = answer, .by_policy = by_policy};
    cow_reach *reach;
    int status;

    if (cow_operation_begin(file) < 0 || cow_native_file_space(file->native, &c.kept) < 0)
        return -1;
    if (cow_datasets_in_use(file))
        return cow_error(COW_USAGE, "%s: datasets are open; close them before anything is freed", file->name);
    /* HDF5 1.14.5 goes round in circles in the next session but one, with pages */
    if (c.kept == COW_SPACE_PERSISTS)
        return cow_error(
            COW_UNSUPPORTED,
            "%s: HDF5 keeps the free space of this file itself (H5Pset_file_space_strategy), so nothing is freed "
            "in place; try: h5cow gc --compact",
            file->name);
    if ((reach = cow_reach_find(file)) == NULL)
        return -1;
    c.reach = reach;
    if ((status = collect(&c)) == 0)
        make_holes(&c);
    cow_reach_free(reach);
    collecting_free(&c);
    return status;
}

int cow_file_collect(cow_file *file, h5cow_collect_t *answer)
{
    return collect_file(file, answer, false);
}

int cow_file_collect_by_policy(cow_file *file)
{
    h5cow_collect_t answer = {0};

    return collect_file(file, &answer, true);
}
