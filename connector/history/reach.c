/* What head and versions need. From the root of the file and from /_versioned_data/versions and removed, along hard links, each
 * object is looked at once; the source of a versioned dataset names a root record, and the table of datasets names those of
 * the heads. From the records the nodes are reached, and the slots that leaves name.
 *
 * Trees are walked, not the table `snapshots`: what is needed must not hang on a row that may be damaged. Whatever cannot be
 * read makes the whole fail: then nothing is freed.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/vector.h"
#include "journal/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct pool_slots {
    uint8_t *bits;
    uint64_t slots;
} pool_slots;

struct cow_reach {
    cow_file *file;
    unsigned long failures; /* of the disk, before */
    cow_map objects;        /* by address; /_versioned_data itself is one of them */
    cow_map records;        /* offsets in the index */
    cow_map heads;          /* ids of datasets that an object names */
    uint64_t *ended;        /* ids of datasets whose object is gone, and which still have a root */
    size_t ended_count, ended_room;
    cow_place *place; /* that is free, in order: once it was asked for */
    size_t places;
    uint64_t *groups;
    size_t group_count, group_room;
    pool_slots *pool;
    size_t pools;
};

void cow_reach_free(cow_reach *reach)
{
    if (reach == NULL)
        return;
    for (size_t i = 0; i < reach->pools; i++)
        free(reach->pool[i].bits);
    free(reach->pool);
    free(reach->groups);
    free(reach->ended);
    free(reach->place);
    cow_map_free(&reach->objects);
    cow_map_free(&reach->records);
    cow_map_free(&reach->heads);
    free(reach);
}

bool cow_reach_slot(const cow_reach *reach, uint32_t pool, uint64_t slot)
{
    const pool_slots *p = &reach->pool[pool];

    return pool < reach->pools && slot < p->slots && (p->bits[slot / 8] >> slot % 8 & 1);
}

bool cow_reach_record(const cow_reach *reach, uint64_t offset)
{
    return cow_map_get(&reach->records, offset, NULL);
}

size_t cow_reach_ended(const cow_reach *reach, const uint64_t **ids)
{
    *ids = reach->ended;
    return reach->ended_count;
}

/* ---- index ---- */

/* All pools are open meanwhile: so their sizes are known. */
static int count_slots(cow_reach *reach)
{
    cow_file *file = reach->file;
    uint64_t pools;

    if (cow_pools_open(file) < 0)
        return -1;
    pools = cow_pools_rows(file);
    if ((reach->pool = calloc(pools + 1, sizeof *reach->pool)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for the list of pools", file->name);
    for (; reach->pools < pools; reach->pools++) {
        const cow_pool_entry *entry = cow_pools_get(file, (uint32_t)reach->pools);
        pool_slots *p = &reach->pool[reach->pools];

        if (entry == NULL)
            return -1;
        p->slots = cow_pool_slots(entry->pool);
        if ((p->bits = calloc(p->slots / 8 + 1, 1)) == NULL)
            return cow_error(COW_MEMORY, "%s: no memory for the slots of a pool", file->name);
    }
    return 0;
}

static int need_slot(cow_reach *reach, uint64_t pool, uint64_t slot)
{
    if (pool >= reach->pools || slot >= reach->pool[pool].slots)
        return cow_error(COW_CORRUPT,
                         "%s: the index names slot %llu of pool %llu, which is not there; try: h5cow verify",
                         reach->file->name, (unsigned long long)slot, (unsigned long long)pool);
    reach->pool[pool].bits[slot / 8] |= (uint8_t)(1u << slot % 8);
    return 0;
}

/* Its base and its pieces. */
static int need_composed(cow_reach *reach, const cow_grid *grid, uint64_t pool, uint64_t entry)
{
    cow_composed composed;
    int status;

    if (cow_map_get(&reach->records, cow_composed_offset(entry), NULL))
        return 0;
    if (cow_map_put(&reach->records, cow_composed_offset(entry), 0) < 0 ||
        cow_composed_read(reach->file->index, grid->rank, entry, pool, NULL, &composed) < 0)
        return -1;
    status = composed.base == COW_HOLE ? 0 : need_slot(reach, pool, composed.base);
    for (unsigned i = 0; status == 0 && i < COW_PIECES; i++)
        if (composed.own >> i & 1)
            status = need_slot(reach, composed.piece_pool, composed.slot[i]);
    return status;
}

/* Levels decrease from a node to its children: at most COW_MAX_LEVEL calls stand on one another. */
static int need_node(cow_reach *reach, const cow_grid *grid, uint64_t offset, unsigned above)
{
    cow_node node;
    int status = 0;

    if (cow_map_get(&reach->records, offset, NULL))
        return 0;
    if (cow_map_put(&reach->records, offset, 0) < 0 || cow_node_read(reach->file->index, grid, offset, &node) < 0)
        return -1;
    if (node.level >= above)
        return cow_error(COW_CORRUPT, "%s: a node of the index, at %llu, stands where it cannot; try: h5cow verify",
                         reach->file->name, (unsigned long long)offset);
    for (unsigned i = 0; status == 0 && i < node.entries; i++)
        if (node.level > 0 && node.entry[i] != COW_NO_NODE)
            status = need_node(reach, grid, node.entry[i], node.level);
        else if (node.level == 0 && node.entry[i] != COW_HOLE)
            status = cow_is_composed(node.entry[i]) ? need_composed(reach, grid, node.pool, node.entry[i])
                                                    : need_slot(reach, node.pool, node.entry[i]);
    return status;
}

static int need_root(cow_reach *reach, uint64_t offset)
{
    cow_root root;
    cow_grid grid;

    if (cow_map_get(&reach->records, offset, NULL))
        return 0;
    if (cow_map_put(&reach->records, offset, 0) < 0 || cow_root_read(reach->file->index, offset, &root) < 0)
        return -1;
    if (root.top == COW_NO_NODE)
        return 0;
    cow_grid_init(&grid, root.rank, root.chunk, root.maximum);
    return need_node(reach, &grid, root.top, root.level + 1);
}

/* ---- objects ---- */

/* A virtual dataset of the program may show parts of the history itself. What that needs nobody can tell. */
static int refuse_others(cow_reach *reach, hid_t dcpl)
{
    char name[COW_PATH_MAX]; /* its beginning */
    size_t mappings = 0;

    if (H5Pget_layout(dcpl) != H5D_VIRTUAL)
        return 0;
    if (H5Pget_virtual_count(dcpl, &mappings) < 0)
        return cow_error_native("cannot get the mappings of a virtual dataset");
    for (size_t i = 0; i < mappings; i++) {
        if (H5Pget_virtual_dsetname(dcpl, i, name, sizeof name) < 0)
            return cow_error_native("cannot get the source of a virtual dataset");
        if (cow_layout_below(name))
            return cow_error(COW_UNSUPPORTED,
                             "%s: a virtual dataset of the file shows what is below " COW_ROOT
                             ": nobody can tell what it needs, so nothing is freed",
                             reach->file->name);
    }
    return 0;
}

static int look_at_dataset(cow_reach *reach, void *native)
{
    hid_t dcpl = cow_native_dataset_dcpl(native);
    uint64_t number;
    int kind = dcpl < 0 ? -1 : cow_dataset_kind(reach->file, native, dcpl, &number);

    if (kind == 0)
        kind = refuse_others(reach, dcpl);
    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (kind == 1)
        return cow_map_put(&reach->heads, number, 0);
    return kind == 2 ? need_root(reach, number) : kind;
}

static int look_at_link(void *context, const char *name, const H5L_info2_t *info)
{
    cow_reach *reach = context;
    uint64_t address;
    cow_loc object;
    int status = 0;

    if (info->type == H5L_TYPE_ERROR)
        return cow_error(COW_IO, "%s: the link '%s' of a group cannot be read", reach->file->name, name);
    if (info->type != H5L_TYPE_HARD || cow_map_get(&reach->objects, address = cow_address(&info->u.token), NULL))
        return 0;
    if (cow_map_put(&reach->objects, address, 0) < 0 ||
        cow_native_open_token(reach->file->loc, &info->u.token, &object) < 0)
        return -1;
    if (object.type == H5I_DATASET)
        status = look_at_dataset(reach, object.object);
    else if (object.type == H5I_GROUP) {
        if (COW_RESERVE(reach->groups, reach->group_room, reach->group_count, 1) < 0)
            status = cow_error(COW_MEMORY, "%s: no memory for the list of groups", reach->file->name);
        else
            reach->groups[reach->group_count++] = address;
    }
    return cow_native_close(object) < 0 ? -1 : status;
}

static int look_into(cow_reach *reach, uint64_t group)
{
    const H5O_token_t token = cow_token(group);
    cow_loc object;
    int status;

    if (cow_native_open_token(reach->file->loc, &token, &object) < 0)
        return -1;
    status = cow_native_links(object, COW_LINKS_BY_NAME, look_at_link, reach);
    return cow_native_close(object) < 0 ? -1 : status;
}

static int look_from(cow_reach *reach, const char *path)
{
    H5O_info2_t info;
    int status = cow_native_info(reach->file->loc, path, H5O_INFO_BASIC, &info);

    if (status == 0)
        status = look_into(reach, cow_address(&info.token));
    while (status == 0 && reach->group_count > 0)
        status = look_into(reach, reach->groups[--reach->group_count]);
    return status;
}

static int look_at_objects(cow_reach *reach)
{
    H5O_info2_t info;
    int held = cow_native_exists(reach->file->loc, COW_PATH_HELD);

    /* what is in there is looked at by name */
    return held < 0 || (held && (cow_layout_hard(reach->file->loc, COW_PATH_HELD) < 0)) ||
                   cow_layout_hard(reach->file->loc, COW_PATH_VERSIONS) < 0 ||
                   cow_layout_hard(reach->file->loc, COW_PATH_REMOVED) < 0 ||
                   cow_native_info(reach->file->loc, COW_ROOT, H5O_INFO_BASIC, &info) < 0 ||
                   cow_map_put(&reach->objects, cow_address(&info.token), 0) < 0 || look_from(reach, "/") < 0 ||
                   look_from(reach, COW_PATH_VERSIONS) < 0 || look_from(reach, COW_PATH_REMOVED) < 0 ||
                   (held && look_from(reach, COW_PATH_HELD) < 0)
               ? -1
               : 0;
}

/* ---- heads ---- */

/* Flushed, HDF5 tells all of its free space, and nothing in the file is older than what is in memory. */
static int list_free(cow_reach *reach)
{
    if (reach->place != NULL)
        return 0;
    return cow_file_flush_native(reach->file) < 0 ? -1 : cow_space_all(reach->file, 1, &reach->place, &reach->places);
}

/* Where nothing is, or something else. To open that leaves what HDF5 read there in its cache, in the way of what comes next. */
static int is_vacated(cow_reach *reach, uint64_t address)
{
    if (cow_map_get(&reach->objects, address, NULL))
        return 1;
    return list_free(reach) < 0 ? -1 : cow_places_hold(reach->place, reach->places, address);
}

/* An object without a link may be held by a count alone. 1: there is a dataset that shows this head. */
static int is_alive(cow_reach *reach, uint64_t id, const cow_layout_dataset_row *row)
{
    const H5O_token_t token = cow_token(row->head);
    uint64_t number;
    cow_loc object;
    hid_t dcpl;
    int alive = 0, vacated;

    if (cow_map_get(&reach->heads, id, NULL))
        return 1;
    if ((vacated = is_vacated(reach, row->head)) != 0)
        return vacated < 0 ? -1 : 0;
    if (cow_native_open_token(reach->file->loc, &token, &object) < 0) {
        if (cow_error_is(COW_MEMORY) || cow_journal_driver_file_failures(reach->file->fileno) != reach->failures)
            return -1;
        cow_error_clear(); /* it was deleted */
        return 0;
    }
    if (object.type == H5I_DATASET && (dcpl = cow_native_dataset_dcpl(object.object)) >= 0) {
        alive = cow_dataset_kind(reach->file, object.object, dcpl, &number) == 1 && number == id;
        H5Pclose(dcpl);
    }
    return cow_native_close(object) < 0 ? -1 : alive;
}

static int look_at_heads(cow_reach *reach)
{
    cow_file *file = reach->file;
    cow_layout_dataset_row row;

    for (uint64_t id = 0; id < cow_datasets_rows(file); id++) {
        int alive;

        if (cow_dataset_row_read(file, id, &row) < 0)
            return -1;
        if (row.root == COW_NO_NODE)
            continue;
        if ((alive = is_alive(reach, id, &row)) < 0 || (alive && need_root(reach, row.root) < 0))
            return -1;
        if (!alive && COW_RESERVE(reach->ended, reach->ended_room, reach->ended_count, 1) < 0)
            return cow_error(COW_MEMORY, "%s: no memory for the list of deleted datasets", file->name);
        if (!alive)
            reach->ended[reach->ended_count++] = id;
    }
    return 0;
}

cow_reach *cow_reach_find(cow_file *file)
{
    cow_reach *reach = calloc(1, sizeof *reach);

    if (reach == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to look for what is needed", file->name);
        return NULL;
    }
    reach->file = file;
    reach->failures = cow_journal_driver_file_failures(file->fileno);
    if (count_slots(reach) == 0 && look_at_objects(reach) == 0 && look_at_heads(reach) == 0)
        return reach;
    cow_reach_free(reach);
    cow_context("%s: nothing is freed", file->name);
    return NULL;
}
