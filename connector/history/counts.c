/* How many links and uses the application has of an object (H5O_info2_t.rc): what HDF5 would count in a file that held the
 * head, or the version, and nothing else.
 *
 * Of the head: HDF5's count without what only the history holds. That begins with the links in /_versioned_data/removed. An
 * object all of whose references are such is gone for the application, as soon as the application has closed it, and what it refers to itself, the members of a
 * group and the named datatypes of a dataset and of attributes, is held by the history alone to that extent.
 *
 * Of a version: its objects are shared with other versions, so its references are counted, from its root. References that
 * the application counted itself (H5Oincr_refcount) are not in versions.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* Of a version whose objects were counted. */
typedef struct version_counts {
    struct version_counts *next;
    uint64_t row;        /* in the log */
    uint64_t generation; /* cow_snapshots_generation then: a flush may amend the version */
    cow_map count;       /* address -> links and uses in this version */
} version_counts;

struct cow_counts {
    bool known;
    bool held;      /* by the history's own handle on a dataset: counted anew when that is closed */
    uint64_t edits; /* cow_changes_edits when they were counted */
    cow_map hidden; /* address -> references that the history alone holds */
    cow_map open;   /* what is gone as soon as the application has closed it: counted anew then */
    version_counts *versions;
};

cow_counts *cow_counts_new(void)
{
    return calloc(1, sizeof(cow_counts));
}

void cow_counts_free(cow_counts *counts)
{
    if (counts == NULL)
        return;
    cow_map_free(&counts->hidden);
    cow_map_free(&counts->open);
    while (counts->versions != NULL) {
        version_counts *of = counts->versions;

        counts->versions = of->next;
        cow_map_free(&of->count);
        free(of);
    }
    free(counts);
}

void cow_counts_closed(cow_file *file)
{
    if (file->counts->held)
        file->counts->known = false;
}

bool cow_head_is_open(const cow_file *file, uint64_t address)
{
    return cow_map_get(&file->counts->open, address, NULL);
}

bool cow_head_waits(const cow_file *file)
{
    return file->counts->open.count > 0;
}

void cow_head_closed(cow_file *file, const H5O_token_t *object)
{
    if (object == NULL || cow_map_get(&file->counts->open, cow_address(object), NULL))
        file->counts->known = false;
}

typedef struct counting {
    cow_file *file;
    cow_map *count;  /* address -> references */
    uint64_t *queue; /* objects that got one more */
    size_t done, queued, room;
    cow_map gone; /* objects whose references have been counted */
    cow_map open; /* groups and datasets that the application has open; only of the head */
    bool held;    /* the history alone holds one that is gone */
    cow_loc object;
} counting;

static int enqueue(counting *c, uint64_t address)
{
    if (COW_RESERVE(c->queue, c->room, c->queued, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory to count links", c->file->name);
    c->queue[c->queued++] = address;
    return 0;
}

static int add(counting *c, uint64_t address)
{
    uint64_t count = 0;

    cow_map_get(c->count, address, &count);
    return cow_map_put(c->count, address, count + 1) < 0 ? -1 : enqueue(c, address);
}

static int add_link(void *context, const char *name, const H5L_info2_t *info)
{
    (void)name;
    return info->type == H5L_TYPE_HARD ? add(context, cow_address(&info->u.token)) : 0;
}

/* TYPE is closed. */
static int add_type(counting *c, hid_t type)
{
    H5O_token_t token;
    int named = cow_native_named_token(type, &token), status = named <= 0 ? named : add(c, cow_address(&token));

    cow_close(type);
    return status;
}

static int add_attribute_type(void *context, const char *name)
{
    counting *c = context;

    return add_type(c, cow_native_attribute_type(c->object, name));
}

/* As HDF5 counts, but for what it may have forgotten: unlinked.c. */
static unsigned links_of(const cow_file *file, const H5O_info2_t *info)
{
    const cow_dataset *dataset = cow_datasets_find(file, cow_address(&info->token));

    return cow_group_unlinked(file, info) || (dataset != NULL && dataset->unlinked) ? 0 : info->rc;
}

/* ALL: count what the object at ADDRESS refers to; else only when nothing but what was counted refers to it. */
static int look_at(counting *c, uint64_t address, bool all)
{
    H5O_info2_t info;
    uint64_t count = 0;
    bool borrowed;
    int status = 0;

    if (cow_map_get(&c->gone, address, NULL))
        return 0;
    if (cow_head_open(c->file, address, &c->object, &borrowed) < 0)
        return -1;
    if (cow_native_info(c->object, NULL, H5O_INFO_BASIC, &info) < 0)
        status = -1;
    else if (cow_map_get(c->count, address, &count), all || (info.rc = links_of(c->file, &info)) <= count) {
        if (cow_map_get(&c->open, address, NULL)) { /* it is gone when it is closed */
            status = cow_map_put(&c->file->counts->open, address, 0);
            goto done;
        }
        c->held |= info.rc == 0;
        status = cow_map_put(&c->gone, address, 0);
        if (status == 0 && c->object.type == H5I_GROUP)
            status = cow_native_links(c->object, COW_LINKS_BY_NAME, add_link, c);
        if (status == 0 && c->object.type == H5I_DATASET)
            status = add_type(c, cow_native_dataset_type(c->object.object));
        if (status == 0)
            status = cow_native_attributes(c->object, false, add_attribute_type, c);
    }
done:
    return !borrowed && cow_native_close(c->object) < 0 ? -1 : status;
}

static int look_at_all(counting *c, bool all)
{
    int status = 0;

    while (status == 0 && c->done < c->queued)
        status = look_at(c, c->queue[c->done++], all);
    cow_map_free(&c->gone);
    cow_map_free(&c->open);
    free(c->queue);
    if (status < 0)
        cow_map_free(c->count);
    return status;
}

/* ---- the head ---- */

static int note_open(void *context, cow_loc object, const H5O_info2_t *info)
{
    (void)object;
    return cow_map_put(context, cow_address(&info->token), 0);
}

/* Datasets that no version knows are deleted when the history has closed them too. */
static int add_held(counting *c)
{
    const cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(c->file, &at)) != NULL;)
        if (dataset->native != NULL && enqueue(c, dataset->address) < 0)
            return -1;
    return 0;
}

/* What the history alone holds. */
static int count_links_of_history(cow_file *file)
{
    cow_loc removed = {.type = H5I_GROUP};
    counting c = {.file = file, .count = &file->counts->hidden};
    int status;

    cow_map_free(&file->counts->hidden);
    cow_map_free(&file->counts->open);
    if ((removed.object = cow_native_group_open(file->loc, COW_PATH_REMOVED)) == NULL)
        return -1;
    status = cow_native_links(removed, COW_LINKS_BY_NAME, add_link, &c);
    if (cow_native_group_close(removed.object) < 0 || add_held(&c) < 0)
        status = -1;
    if (status == 0 && c.queued > 0 &&
        (cow_native_open_objects(file->fileno, H5I_DATASET, note_open, &c.open) < 0 ||
         cow_native_open_objects(file->fileno, H5I_GROUP, note_open, &c.open) < 0))
        status = -1;
    if (look_at_all(&c, false) < 0)
        status = -1;
    file->counts->held = c.held;
    return status;
}

static bool is_counted(const cow_file *file)
{
    return file->counts->known && file->counts->edits == cow_changes_edits(file);
}

int cow_head_links_of_history(cow_file *file, uint64_t address, unsigned *count)
{
    uint64_t hidden = 0;

    *count = 0;
    if (!file->laid_out)
        return 0;
    if (!is_counted(file)) {
        file->counts->known = false;
        if (count_links_of_history(file) < 0)
            return -1;
        file->counts->known = true;
        file->counts->edits = cow_changes_edits(file);
    }
    if (cow_map_get(&file->counts->hidden, address, &hidden))
        *count = (unsigned)hidden;
    return 0;
}

typedef struct looking {
    const cow_file *file;
    uint64_t wanted;
    cow_map met;
} looking;

static int look_below(looking *l, uint64_t address);

/* 1: found. */
static int look_at_link(void *context, const char *name, const H5L_info2_t *info)
{
    looking *l = context;

    (void)name;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    return cow_address(&info->u.token) == l->wanted ? 1 : look_below(l, cow_address(&info->u.token));
}

static int look_below(looking *l, uint64_t address)
{
    cow_loc object;
    bool borrowed;
    int status = 0;

    if (cow_map_get(&l->met, address, NULL))
        return 0;
    if (cow_map_put(&l->met, address, 0) < 0 || cow_head_open(l->file, address, &object, &borrowed) < 0)
        return -1;
    if (object.type == H5I_GROUP)
        status = cow_native_links(object, COW_LINKS_BY_NAME, look_at_link, l);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

int cow_head_below_open(cow_file *file, uint64_t address)
{
    looking l = {.file = file, .wanted = address};
    int status = 0;

    for (size_t i = 0; status == 0 && i < file->counts->open.capacity; i++)
        if (file->counts->open.entry[i].used)
            status = look_below(&l, file->counts->open.entry[i].key);
    cow_map_free(&l.met);
    return status;
}

/* The one reference that there is to HEAD is the application's. Where no link was deleted since the file was opened, that is so of what the last commit
 * knew, and did not find to be gone; else of a dataset, or a group, that is not kept itself, and not in a group that is. To know this, what
 * the history holds need not be gone through, which is all that was ever deleted. */
static bool is_in_head(cow_file *file, const H5O_token_t *head, H5O_type_t type)
{
    const bool edited = cow_changes_edits(file) != 0,
               held = type != H5O_TYPE_DATASET && type != H5O_TYPE_GROUP; /* types are in use besides */

    if ((edited && (held || cow_changes_groups_kept(file) || cow_changes_groups_unlinked(file))) ||
        cow_file_removed(file, head) != 0 || cow_snapshots_load(file) < 0) {
        cow_error_clear();
        return false;
    }
    return cow_snapshots_known(file, cow_address(head)) ? !cow_snapshots_gone(file, cow_address(head)) : !held;
}

int cow_head_count(cow_file *file, const H5O_token_t *head, H5O_type_t type, unsigned *count)
{
    unsigned hidden;

    if (*count == 1 && file->laid_out && !is_counted(file) && is_in_head(file, head, type))
        return 0;
    if (cow_head_links_of_history(file, cow_address(head), &hidden) < 0)
        return -1;
    *count -= hidden < *count ? hidden : *count;
    return 0;
}

/* ---- versions ---- */

/* Those of the version at PATH, which is in row ROW of the log: from its root. */
static version_counts *count_version(cow_file *file, const char *path, uint64_t row)
{
    version_counts *of = calloc(1, sizeof *of);
    counting c = {.file = file};
    H5O_info2_t root;

    if (of == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to count links", file->name);
        return NULL;
    }
    of->row = row;
    of->generation = cow_snapshots_generation(file);
    c.count = &of->count;
    if (cow_native_info(file->loc, path, H5O_INFO_BASIC, &root) < 0 || add(&c, cow_address(&root.token)) < 0 ||
        look_at_all(&c, true) < 0) {
        cow_map_free(&of->count);
        free(of);
        return NULL;
    }
    of->next = file->counts->versions;
    return file->counts->versions = of;
}

int cow_version_count(cow_file *file, const char *version_path, const H5O_token_t *snapshot, unsigned *count)
{
    version_counts *of, **at = &file->counts->versions;
    uint64_t row, known;

    if (*count == 2) { /* one of them may be of a copied group alone, and then the other is the application's */
        const int copied = cow_copied_is(file, cow_address(snapshot));

        *count -= copied > 0;
        if (copied != 0)
            return copied < 0 ? -1 : 0;
    }
    if (cow_version_row(file, version_path, &row) < 0)
        return -1;
    while (*at != NULL && (*at)->row != row)
        at = &(*at)->next;
    if ((of = *at) != NULL && of->generation != cow_snapshots_generation(file)) {
        *at = of->next;
        cow_map_free(&of->count);
        free(of);
        of = NULL;
    }
    if (of == NULL && (of = count_version(file, version_path, row)) == NULL)
        return -1;
    if (cow_map_get(&of->count, cow_address(snapshot), &known))
        *count = (unsigned)known;
    return 0;
}
