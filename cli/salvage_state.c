/* Finding a state of a damaged file that HDF5 can open.
 *
 * The ways, one after the other: the newest state that a slot tells; the other slot's; what the file's own bytes are,
 * without the journal. Then the same with a root group that leads to nothing but the history: HDF5 opens no file whose
 * root group is damaged. The history's group is then looked for in all bytes. At last its members are looked for, among
 * all objects of the file, and get a group; and where that fails as well, the newest state is read as far as HDF5 reads
 * it. Groups are put in the place of damaged
 * ones in memory only, as patches over what is read.
 */
#include "salvage.h"

#include "base/error.h"
#include "base/ids.h"
#include "h5/attribute.h"
#include "h5/checksum.h"
#include "h5/new_header.h"
#include "h5/superblock.h"
#include "history/history.h"
#include "journal/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCAN       ((size_t)1 << 20)
#define HEADER_MAX ((size_t)1 << 16)
#define OBJECTS    ((size_t)1 << 16) /* objects among which the history is looked for */
#define CANDIDATES 64                /* groups that are tried in the place of the history's */

const char salvage_whole_state[] = "the newest committed state";

static const cow_choice_state states[] = {COW_CHOICE_NEWEST, COW_CHOICE_OLDER, COW_CHOICE_APPLIED};
#define STATES (sizeof states / sizeof *states)

static const char *const said[] = {
    salvage_whole_state,
    "an older state: the newest record of the journal is damaged",
    "the state that was applied last: the journal is damaged",
};

/* ---- opening ---- */

static void close_state(salvage *s)
{
    if (s->file.id >= 0)
        cli_file_close(&s->file);
    s->file = (cli_file){.id = H5I_INVALID_HID};
    if (s->journal != NULL)
        cow_journal_close(s->journal);
    s->journal = NULL;
}

static int open_journal(salvage *s, cow_choice_state state)
{
    cow_journal_choice choice = {.state = state, .patches = s->patches, .end = s->patched_end, .locked = s->whole};
    cow_journal_options options = cow_journal_defaults;
    int number;

    options.choice = &choice;
    s->journal = cow_journal_open(s->name, (cow_journal_mode){0}, &options, &number);
    return s->journal == NULL ? -1 : 0;
}

static int open_native(salvage *s, char *why, size_t size)
{
    return cli_file_try(&s->file, s->name, why, size) == 0 ? 0 : -1;
}

static bool has_history(salvage *s)
{
    int found = cow_file_versioned(s->file.loc.object);

    cow_error_clear();
    return found > 0;
}

/* ---- groups in the place of damaged ones ---- */

typedef struct substitute {
    uint8_t *bytes;
    size_t size, room;
} substitute;

/* Room for N further bytes. */
static uint8_t *more(substitute *g, size_t n)
{
    CLI_RESERVE(g->bytes, g->room, g->size, n);
    return g->bytes + g->size;
}

static void add_link(substitute *g, const char *name, uint64_t address)
{
    const size_t length = strlen(name);
    uint8_t *at;

    if (length > 255)
        return;
    at = more(g, COW_NEW_LINK + length);
    g->size += (size_t)(cow_new_link(at, name, address) - at);
}

static substitute new_group(void)
{
    substitute g = {0};
    uint8_t *at = more(&g, 4 + COW_NEW_GROUP);

    g.size += (size_t)(cow_new_group(cow_new_chunk(at), 0) - at);
    return g;
}

/* Where the header at ADDRESS stands, there is from now on the group G: a header that goes on at the end of the file.
 */
static int put_group(salvage *s, substitute *g, uint64_t base, uint64_t address)
{
    uint8_t header[COW_NEW_CONTINUED];
    uint64_t rest = (s->patched_end + 7) / 8 * 8;
    int status;

    more(g, 4);
    g->size += 4;
    cow_metadata_sum_up(g->bytes, g->size);
    cow_new_continued(header, rest - base, g->size);
    status = cow_overlay_write(s->patches, base + address, header, sizeof header) < 0 ||
                     cow_overlay_write(s->patches, rest, g->bytes, g->size) < 0
                 ? -1
                 : 0;
    s->patched_end = rest + g->size;
    free(g->bytes);
    return status;
}

/* A superblock that covers what was put behind the end; ROOT UINT64_MAX: as it was. */
static int put_superblock(salvage *s, uint64_t base, uint64_t root)
{
    uint8_t head[COW_SUPERBLOCK_MAX] = {0};

    if (cow_journal_read(s->journal, base, head, sizeof head) < 0)
        return -1;
    if (!cow_superblock_whole(head) || cow_superblock_size(head) != sizeof head) {
        if (root == UINT64_MAX)
            return -1;
        cow_superblock_new(head, base); /* as good as one can be that nothing is known of */
    }
    if (root != UINT64_MAX)
        cow_superblock_set_root(head, root);
    cow_superblock_set_end(head, s->patched_end);
    cow_metadata_sum_up(head, sizeof head);
    return cow_overlay_write(s->patches, base, head, sizeof head);
}

static void no_patches(salvage *s)
{
    cow_overlay_free(s->patches);
    s->patches = NULL;
    s->patched_end = 0;
}

static int new_patches(salvage *s)
{
    uint64_t end = cow_journal_end(s->journal);

    no_patches(s);
    s->patched_end = end;
    return (s->patches = cow_overlay_new()) == NULL ? -1 : 0;
}

/* ---- a damaged root group ---- */

/* Addresses (from BASE on) of object headers that are whole; with FORMAT only those that may be the history's group:
 * with an attribute of that name, at most MOST. */
static size_t scan(salvage *s, uint64_t base, bool format, uint64_t found[], size_t most)
{
    uint8_t *block = cli_alloc(SCAN + HEADER_MAX, 1);
    uint64_t end = cow_journal_end(s->journal);
    size_t count = 0, size;

    for (uint64_t at = base; at < end && count < most; at += SCAN) {
        if (cow_journal_read(s->journal, at, block, SCAN + HEADER_MAX) < 0) {
            cow_error_clear();
            continue;
        }
        for (const uint8_t *p = block;
             count < most && p < block + SCAN &&
             (p = cow_header_search(p, (size_t)(block + SCAN - p), HEADER_MAX, &size)) != NULL;
             p++)
            if (!format || memmem(p, size, COW_FORMAT_NAME, sizeof COW_FORMAT_NAME) != NULL)
                found[count++] = at + (uint64_t)(p - block) - base;
    }
    free(block);
    return count;
}

/* The same state, with a root group that has one link only. 0: the history is there. */
static int with_new_root(salvage *s, cow_choice_state state, char *why, size_t size)
{
    uint64_t found[CANDIDATES], base;
    size_t count;
    int status = -1;

    if (open_journal(s, state) < 0) {
        /* neither superblock nor slot: only with patches can the file's own bytes be looked at */
        if (state != COW_CHOICE_APPLIED || (s->patches = cow_overlay_new()) == NULL || open_journal(s, state) < 0) {
            cli_reason(why, size);
            no_patches(s);
            return -1;
        }
    }
    base = cow_journal_base(s->journal);
    count = scan(s, base, true, found, CANDIDATES);
    for (size_t i = count; status < 0 && i-- > 0;) { /* the newest header is behind older ones, as a rule */
        substitute group = new_group();
        uint64_t own;
        if (s->journal == NULL && open_journal(s, state) < 0) {
            free(group.bytes);
            break;
        }
        if (new_patches(s) < 0) {
            free(group.bytes);
            break;
        }
        /* put where nothing is: what the superblock said of the root may be wrong as well */
        own = (s->patched_end + 7) / 8 * 8;
        s->patched_end = own + 64;
        add_link(&group, COW_GROUP, found[i]);
        if (put_group(s, &group, base, own - base) < 0 || put_superblock(s, base, own - base) < 0)
            cow_error_clear();
        else {
            close_state(s);
            if (open_journal(s, state) == 0 && open_native(s, why, size) == 0 && has_history(s))
                status = 0;
        }
        if (status < 0) {
            cow_error_clear();
            close_state(s);
            no_patches(s);
        }
    }
    if (status < 0)
        close_state(s);
    return status;
}

/* ---- a damaged group of the history ---- */

static herr_t pass_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    (void)group;
    (void)name;
    (void)info;
    (void)context;
    return 0;
}

/* The members of the history, found among all objects by what they are. */
typedef enum { LOG, SNAPSHOTS, DATASETS, POOLS, INDEX, RAW, SLOTS, VIEWS, HEADS, VERSIONS, TAGS, MEMBERS } member;
#define NAME(path) ((path) + sizeof COW_ROOT)
static const char *const member_names[MEMBERS] = {
    NAME(COW_PATH_LOG),   NAME(COW_PATH_SNAPSHOTS), NAME(COW_PATH_DATASETS), NAME(COW_PATH_POOLS),
    NAME(COW_PATH_INDEX), NAME(COW_PATH_RAW),       NAME(COW_PATH_SLOTS),    NAME(COW_PATH_VIEWS),
    NAME(COW_PATH_HEADS), NAME(COW_PATH_VERSIONS),  NAME(COW_PATH_TAGS)};

/* A group that may be the one of views, or of heads. */
typedef struct view_group {
    uint64_t address, links;
    uint64_t highest; /* of its names, as hexadecimal numbers */
    bool decimal;     /* all of them are decimal numbers: they may be the heads */
    cow_map parts;    /* addresses of what it has by the name of a part */
} view_group;

typedef struct members {
    uint64_t address[MEMBERS], size[MEMBERS]; /* size 0: not found; of several the largest is taken */
    cow_map roots;                            /* addresses of snapshots: a version's tree is one of them */
    view_group *views;
    size_t count, room;
} members;

static void take(members *m, member which, uint64_t address, uint64_t size)
{
    if (size > m->size[which]) {
        m->size[which] = size;
        m->address[which] = address;
    }
}

static bool has_member(hid_t type, const char *name)
{
    bool found = H5Tget_class(type) == H5T_COMPOUND && H5Tget_member_index(type, name) >= 0;

    H5Eclear2(H5E_DEFAULT);
    return found;
}

static void look_at_dataset(members *m, hid_t dataset, uint64_t address)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    hssize_t rows = space < 0 ? 0 : H5Sget_simple_extent_npoints(space);
    uint8_t magic[8] = {0};
    hsize_t start = 0, count = sizeof magic;

    if (type < 0 || rows < 0 || H5Sget_simple_extent_ndims(space) != 1)
        goto done;
    if (has_member(type, "parent") && has_member(type, "message"))
        take(m, LOG, address, 1 + (uint64_t)rows);
    else if (has_member(type, "snapshot") && has_member(type, "version"))
        take(m, SNAPSHOTS, address, 1 + (uint64_t)rows);
    else if (has_member(type, "root") && has_member(type, "alloc_time"))
        take(m, DATASETS, address, 1 + (uint64_t)rows);
    else if (has_member(type, "signature") && H5Tget_nmembers(type) == 1)
        take(m, POOLS, address, 1 + (uint64_t)rows);
    else if (H5Tequal(type, H5T_STD_U8LE) > 0 && rows >= (hssize_t)sizeof magic) {
        hid_t memory = H5Screate_simple(1, &count, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
        if (H5Dread(dataset, H5T_NATIVE_UINT8, memory, space, H5P_DEFAULT, magic) >= 0 &&
            memcmp(magic, "h5cowidx", sizeof magic) == 0)
            take(m, INDEX, address, (uint64_t)rows);
        H5Sclose(memory);
    }
done:
    cow_close(space, type);
    H5Eclear2(H5E_DEFAULT);
}

typedef struct look {
    members *m;
    uint64_t links, decimal, hexadecimal, trees, soft, slots, raw, views;
    uint64_t highest; /* name, as a hexadecimal number */
    cow_map parts;    /* addresses of what has the name of a part */
} look;

/* A head object, as `removed` has them, shows heads/<id>; a view never does. */
static bool is_head(hid_t dcpl)
{
    char name[COW_PATH_MAX] = "";

    return H5Pget_layout(dcpl) == H5D_VIRTUAL && H5Pget_virtual_dsetname(dcpl, 0, name, sizeof name) >= 0 &&
           strncmp(name, COW_PATH_HEADS "/", strlen(COW_PATH_HEADS "/")) == 0;
}

static herr_t look_at_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    look *l = context;
    hid_t object, type, dcpl;
    uint64_t first;

    l->links++;
    l->decimal += strspn(name, "0123456789") == strlen(name);
    if (strspn(name, "0123456789abcdef") == strlen(name)) {
        const uint64_t number = strtoull(name, NULL, 16);

        l->hexadecimal++;
        l->highest = number > l->highest ? number : l->highest;
    }
    if (info->type == H5L_TYPE_SOFT)
        l->soft++;
    if (info->type != H5L_TYPE_HARD)
        return 0;
    if (cow_layout_part_name(name, &first)) {
        cli_map_put(&l->parts, cow_address(&info->u.token), 1);
        return 0;
    }
    l->trees += cow_map_at(&l->m->roots, cow_address(&info->u.token)) != NULL;
    if (l->slots + l->raw + l->views > 3) /* the rest will be the same */
        return 0;
    if ((object = H5Oopen(group, name, H5P_DEFAULT)) >= 0 && H5Iget_type(object) == H5I_DATASET) {
        type = H5Dget_type(object);
        dcpl = H5Dget_create_plist(object);
        if (has_member(type, "hash") && has_member(type, "checksum"))
            l->slots++;
        else if (H5Pget_layout(dcpl) == H5D_CHUNKED)
            l->raw++;
        else if (!is_head(dcpl))
            l->views++;
        H5Tclose(type);
        H5Pclose(dcpl);
    }
    if (object >= 0)
        H5Oclose(object);
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

herr_t salvage_links(hid_t group, H5L_iterate2_t visit, void *context)
{
    return H5Literate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, visit, context);
}

static void look_at_group(members *m, hid_t group, uint64_t address)
{
    look l = {.m = m};

    salvage_links(group, look_at_link, &l);
    H5Eclear2(H5E_DEFAULT);
    if (l.links == 0)
        return;
    if (l.trees == l.links && l.views == 0) /* the view of a root may be a snapshot as well */
        take(m, VERSIONS, address, l.links);
    else if (l.soft == l.links)
        take(m, TAGS, address, l.links);
    else if (l.slots > 0 && l.decimal == l.links)
        take(m, SLOTS, address, l.links);
    else if (l.raw > 0 && l.views == 0 && l.decimal == l.links)
        take(m, RAW, address, l.links);
    else if (l.raw == 0 && (l.views > 0 || l.parts.count > 0) && l.hexadecimal + l.parts.count == l.links) {
        CLI_RESERVE(m->views, m->room, m->count, 1);
        m->views[m->count++] = (view_group){address, l.links, l.highest, l.decimal == l.links, l.parts};
        return;
    }
    cow_map_free(&l.parts);
}

static bool is_view_group(const members *m, uint64_t address)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->views[i].address == address)
            return true;
    return false;
}

/* How many of its parts are groups of views. */
static size_t parts_of(const members *m, const view_group *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->parts.capacity; i++)
        n += g->parts.entry[i].used && is_view_group(m, g->parts.entry[i].key);
    return n;
}

/* Which are the views, and which the heads? Each head has a view, and may have more; views have the names of offsets, heads those of rows, which are
 * smaller. Parts are nobody's heads. */
static void take_views(members *m)
{
    const view_group *views = NULL;
    size_t most = 0;

    for (size_t i = 0; i < m->count; i++) {
        const view_group *g = &m->views[i];
        const size_t parts = parts_of(m, g);

        if ((g->parts.count > 0 && parts == 0) || (views != NULL && parts < most))
            continue;
        if (views == NULL || parts > most || g->links > views->links ||
            (g->links == views->links && g->highest > views->highest)) {
            views = g;
            most = parts;
        }
    }
    if (views == NULL)
        return;
    take(m, VIEWS, views->address, views->links);
    for (size_t i = 0; i < m->count; i++)
        if (&m->views[i] != views && m->views[i].decimal && cow_map_at(&views->parts, m->views[i].address) == NULL)
            take(m, HEADS, m->views[i].address, m->views[i].links);
}

/* All objects, natively, below a root group that has nothing else. */
static int look_at_all(salvage *s, const uint64_t found[], size_t count, members *m)
{
    cli_snapshot_row *rows = NULL;
    char name[32], why[512];

    for (int groups = 0; groups < 2; groups++) {
        for (size_t i = 0; i < count; i++) {
            hid_t object;
            snprintf(name, sizeof name, "/%llx", (unsigned long long)found[i]);
            if ((object = H5Oopen(s->file.id, name, H5P_DEFAULT)) >= 0) {
                if (!groups && H5Iget_type(object) == H5I_DATASET)
                    look_at_dataset(m, object, found[i]);
                else if (groups && H5Iget_type(object) == H5I_GROUP)
                    look_at_group(m, object, found[i]);
                H5Oclose(object);
            }
            H5Eclear2(H5E_DEFAULT);
        }
        if (!groups && m->size[SNAPSHOTS] > 0) {
            size_t n = 0;
            snprintf(name, sizeof name, "/%llx", (unsigned long long)m->address[SNAPSHOTS]);
            if (cli_snapshots_read_at(&s->file, name, &rows, &n, why, sizeof why) == 0)
                for (size_t i = 0; i < n; i++)
                    cli_map_put(&m->roots, rows[i].snapshot, 1);
            free(rows);
        }
    }
    take_views(m);
    return m->size[INDEX] > 0 || m->size[VERSIONS] > 0 ? 0 : -1;
}

/* Is the group of the history there, and can its links be listed? */
static bool history_is_whole(salvage *s)
{
    hid_t group = H5Gopen2(s->file.id, COW_ROOT, H5P_DEFAULT);
    bool good = group >= 0 && salvage_links(group, pass_link, NULL) >= 0;

    if (group >= 0)
        H5Gclose(group);
    H5Eclear2(H5E_DEFAULT);
    return good;
}

/* The group of the history anew. ROOT: the root group can be read and leads to it; else it is made anew as well. */
static int with_new_history(salvage *s, cow_choice_state state, char *why, size_t size)
{
    uint64_t *found = cli_alloc(OBJECTS, sizeof *found), base, own, place = UINT64_MAX;
    members m = {0};
    substitute group;
    uint8_t *p;
    H5L_info2_t link;
    size_t count;
    int status = -1;

    if (open_journal(s, state) < 0) {
        cli_reason(why, size);
        goto done;
    }
    base = cow_journal_base(s->journal);
    if (open_native(s, why, size) == 0 && H5Lget_info2(s->file.id, COW_ROOT, &link, H5P_DEFAULT) >= 0 &&
        link.type == H5L_TYPE_HARD)
        place = cow_address(&link.u.token);
    H5Eclear2(H5E_DEFAULT);
    count = scan(s, base, false, found, OBJECTS);
    if (new_patches(s) < 0)
        goto done;
    group = new_group();
    for (size_t i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "%llx", (unsigned long long)found[i]);
        add_link(&group, name, found[i]);
    }
    own = (s->patched_end + 7) / 8 * 8;
    s->patched_end = own + 64;
    if (put_group(s, &group, base, own - base) < 0 || put_superblock(s, base, own - base) < 0)
        goto done;
    close_state(s);
    if (open_journal(s, state) < 0 || open_native(s, why, size) < 0 || look_at_all(s, found, count, &m) < 0)
        goto done;
    close_state(s);
    no_patches(s);
    if (open_journal(s, state) < 0 || new_patches(s) < 0)
        goto done;
    group = new_group();
    p = more(&group, COW_NEW_NUMBER + sizeof COW_FORMAT_NAME);
    group.size += (size_t)(cow_new_number(p, COW_FORMAT_NAME, 4, 1) - p);
    for (unsigned i = 0; i < MEMBERS; i++)
        if (m.size[i] > 0)
            add_link(&group, member_names[i], m.address[i]);
    if (place == UINT64_MAX) {
        substitute root = new_group();
        own = (s->patched_end + 7) / 8 * 8;
        s->patched_end = own + 128;
        place = own + 64 - base;
        add_link(&root, COW_GROUP, place);
        if (put_group(s, &root, base, own - base) < 0 || put_group(s, &group, base, place) < 0 ||
            put_superblock(s, base, own - base) < 0)
            goto done;
    } else if (put_group(s, &group, base, place) < 0 || put_superblock(s, base, UINT64_MAX) < 0)
        goto done;
    close_state(s);
    if (open_journal(s, state) == 0 && open_native(s, why, size) == 0 && has_history(s))
        status = 0;
done:
    cow_error_clear();
    cow_map_free(&m.roots);
    for (size_t i = 0; i < m.count; i++)
        cow_map_free(&m.views[i].parts);
    free(m.views);
    free(found);
    if (status < 0) {
        snprintf(why, size, "the history cannot be found");
        close_state(s);
        no_patches(s);
    }
    return status;
}

/* ---- a damaged group of versions ---- */

/* The links to the versions once more, from the log and the table of snapshots. */
static void mend_versions(salvage *s, cow_choice_state state)
{
    cli_snapshot_row *snapshots = NULL;
    cli_version *rows = NULL;
    size_t row_count = 0, count = 0, linked = 0;
    char why[1200];
    H5L_info2_t link;
    H5O_info2_t root;
    uint64_t base, versions;
    substitute group;
    hid_t id;
    bool good;

    id = H5Gopen2(s->file.id, COW_PATH_VERSIONS, H5P_DEFAULT);
    good = id >= 0 && salvage_links(id, pass_link, NULL) >= 0;
    if (id >= 0)
        H5Gclose(id);
    H5Eclear2(H5E_DEFAULT);
    if (good)
        return;
    if (H5Lget_info2(s->file.id, COW_PATH_VERSIONS, &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD ||
        salvage_at(s, "log") || H5Oget_info3(s->file.id, &root, H5O_INFO_BASIC) < 0 ||
        cli_versions_read(&s->file, &rows, &row_count, why, sizeof why) < 0 ||
        cli_snapshots_read(&s->file, &snapshots, &count, why, sizeof why) < 0) {
        H5Eclear2(H5E_DEFAULT);
        goto done;
    }
    versions = cow_address(&link.u.token);
    base = cow_journal_base(s->journal);
    group = new_group();
    for (size_t v = 0; v < row_count; v++)
        for (size_t i = rows[v].open == COW_LOG_FORGOTTEN ? 0 : count;
             i-- > 0;) /* the snapshot of the head's root group in this version */
            if (snapshots[i].head == cow_address(&root.token) && snapshots[i].version <= v &&
                snapshots[i].snapshot != UINT64_MAX) {
                add_link(&group, rows[v].name, snapshots[i].snapshot);
                linked++;
                break;
            }
    if (linked == 0) {
        free(group.bytes);
        goto done;
    }
    if (s->patches == NULL && new_patches(s) < 0) {
        free(group.bytes);
        goto done;
    }
    if (put_group(s, &group, base, versions) < 0 || put_superblock(s, base, UINT64_MAX) < 0) {
        cow_error_clear();
        goto done;
    }
    close_state(s);
    if (open_journal(s, state) < 0 || open_native(s, why, sizeof why) < 0) {
        cow_error_clear();
        close_state(s);
        no_patches(s); /* no worse than before */
        if (open_journal(s, state) < 0 || open_native(s, why, sizeof why) < 0)
            cow_error_clear();
        goto done;
    }
    salvage_tell(s, "said",
                 cli_json_text("the list of versions is damaged; it was put together again from the log and the "
                               "table of snapshots"));
done:
    cli_versions_free(rows, row_count);
    free(snapshots);
}

/* ---- all ways ---- */

int salvage_open(salvage *s, unsigned first)
{
    char why[1200] = "";

    s->file = (cli_file){.id = H5I_INVALID_HID};
    for (unsigned way = first; way < 4 * STATES; way++) {
        cow_choice_state state = states[way % STATES];
        char where[64];
        int status;

        snprintf(where, sizeof where, "way %u of opening the file", way);
        salvage_tell(s, "at", cli_json_text(where));
        if (way < STATES || way >= 3 * STATES) {
            if (open_journal(s, state) < 0) {
                cli_reason(why, sizeof why);
                salvage_tell(s, "tried", cli_json_text(why));
                continue;
            }
            status = open_native(s, why, sizeof why);
            if (status == 0 && way < STATES && !has_history(s)) {
                snprintf(why, sizeof why, "there is no history that can be read");
                status = -1;
            }
        } else
            status = way < 2 * STATES ? with_new_root(s, state, why, sizeof why)
                                      : with_new_history(s, state, why, sizeof why);
        if (status == 0 && way < 2 * STATES && !history_is_whole(s)) {
            snprintf(why, sizeof why, "the group of the history is damaged");
            status = -1;
        }
        if (status == 0) {
            s->searched = way >= 2 * STATES;
            salvage_tell(s, "state", cli_json_text(said[way % STATES]));
            if (way >= STATES)
                salvage_tell(
                    s, "said",
                    cli_json_text(
                        way >= 3 * STATES  ? "the history is lost; only what HDF5 keeps outside of it can be read"
                        : way < 2 * STATES ? "the root group of the newest state is damaged; the history was found "
                                             "without it"
                                           : "the group of the history is damaged; its members were found among all "
                                             "objects of the file"));
            mend_versions(s, state);
            if (s->file.id >= 0)
                return 0;
        }
        salvage_tell(s, "tried", cli_json_text(why));
        cow_error_clear();
        close_state(s);
        no_patches(s);
    }
    return 1;
}

void salvage_close(salvage *s)
{
    close_state(s);
    no_patches(s);
}
