/* What is new since a version (verify --since), at a cost that follows that, whatever else the file has. See check.h.
 *
 *   rows        log, snapshots, incomplete and operations are in the order of versions, or of time: read from their ends
 *   objects     a new row of snapshots names a new snapshot, and a head that changed. Such a group has others of them below it, or
 *               none, since what is above an object that changed gets a snapshot as well: so the trees of the head and of new
 *               versions are walked as far as groups are new
 *   index       the tree of a new root record is compared with one that an older version has of the dataset, side by side
 *               (check_index.c)
 *   chunks      those that new leaves and new composed chunks name, where the older ones name others
 *
 * What cannot be found that way, an older tree of the dataset or a row, is looked at in full: too much is checked, never too little.
 */
#include "check.h"

#include "base/error.h"
#include "history/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cli_since {
    size_t version;       /* row in the log of the version that is taken as checked */
    bool settled;         /* it cannot be replaced any more */
    cow_map objects;      /* addresses of new snapshots, and of heads that changed */
    cow_map bases;        /* id of a dataset -> offset of an older root record, COW_NO_NODE: none is known */
    cow_map slots;        /* cli_slot_key */
    cow_map dataset_rows; /* ids whose rows were read */
    cow_table *datasets;
    cow_snapshot_finder *finder;
    bool sought; /* whether there is one */
} cli_since;

/* ---- the version ---- */

void cli_since_close(cli_check *check)
{
    cli_since *since = check->since;

    if (since == NULL)
        return;
    cow_map_free(&since->objects);
    cow_map_free(&since->bases);
    cow_map_free(&since->slots);
    cow_map_free(&since->dataset_rows);
    if (since->datasets != NULL)
        since->datasets->close(since->datasets);
    cow_snapshot_finder_close(since->finder);
    free(since);
    check->since = NULL;
}

int cli_since_open(cli_check *check, const char *revision, char *why, size_t size)
{
    cli_since *since;
    char path[1024];
    cow_error_box box;
    size_t row;

    if (cow_revision_resolve(check->file->loc.object, revision, path, sizeof path) < 0) {
        cow_error_take(&box);
        snprintf(why, size, "%s", box.message);
        return box.kind == COW_NOT_FOUND || box.kind == COW_USAGE ? CLI_FAILED : 0;
    }
    if (cli_versions_since(check->file, path + strlen(COW_PATH_VERSIONS "/"), &check->versions, &check->version_count,
                           &row, why, size) < 0)
        return 0;
    since = check->since = cli_alloc(1, sizeof *since);
    since->version = row;
    /* a version that is open may have been replaced after it was checked */
    since->settled = check->versions[row].open != COW_LOG_OPEN;
    check->first_version = since->settled ? row + 1 : row;
    return 0;
}

const char *cli_since_name(const cli_check *check)
{
    return check->versions[check->since->version].name;
}

bool cli_since_tag(const cli_check *check, const char *name)
{
    H5O_info2_t info;
    bool there = false;
    char *path;

    if (check->since == NULL)
        return false;
    path = cli_format(COW_PATH_TAGS "/%s", name);
    H5E_BEGIN_TRY
    there = H5Oget_info_by_name3(check->file->id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0;
    H5E_END_TRY
    free(path);
    return there;
}

/* ---- rows ---- */

static void no_datasets(cli_check *check, const char *why)
{
    cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    check->dataset_count = 0;
}

static void read_dataset(cli_check *check, uint64_t id)
{
    char why[1024];

    if (id < check->dataset_count && cli_map_put(&check->since->dataset_rows, id, 1) &&
        cli_datasets_row(check->since->datasets, id, &check->datasets[id], why, sizeof why) < 0)
        no_datasets(check, why);
}

static void open_datasets(cli_check *check)
{
    char why[1024];

    if ((check->since->datasets = cli_datasets_open(check->file, why, sizeof why)) == NULL) {
        no_datasets(check, why);
        return;
    }
    check->dataset_count = check->since->datasets->rows;
    check->datasets = cli_alloc(check->dataset_count, sizeof *check->datasets);
    if (check->dataset_count > 0)
        read_dataset(check, check->dataset_count - 1);
}

const cli_dataset_row *cli_check_dataset(cli_check *check, uint64_t id)
{
    if (check->since != NULL)
        read_dataset(check, id);
    return id < check->dataset_count ? &check->datasets[id] : NULL;
}

size_t cli_since_datasets(const cli_check *check)
{
    return check->since->dataset_rows.count;
}

void cli_since_tables(cli_check *check)
{
    const cli_version *version = &check->versions[check->since->version];
    char why[1024];

    open_datasets(check);
    if (cli_snapshots_since(check->file, check->first_version, &check->snapshots, &check->snapshot_count,
                            &check->first_snapshot, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if (cli_lacks_since(check->file, check->first_version, &check->lacks, &check->lack_count, &check->first_lack, why,
                        sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if (cli_operations_check(check->file, version->time, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
}

/* ---- objects ---- */

void cli_since_objects(cli_check *check)
{
    cow_map *objects = &check->since->objects;

    for (size_t i = check->first_snapshot; i < check->snapshot_count; i++) {
        cli_map_put(objects, check->snapshots[i].head, 1);
        if (check->snapshots[i].snapshot != UINT64_MAX)
            cli_map_put(objects, check->snapshots[i].snapshot, 1);
    }
    for (size_t i = 0; i < check->lack_count; i++)
        if (check->lacks[i].head != UINT64_MAX)
            cli_map_put(objects, check->lacks[i].head, 1); /* it may have changed after the newest version */
}

bool cli_since_wanted(void *context, uint64_t address)
{
    const cli_check *check = context;

    return cow_map_at(&check->since->objects, address) != NULL;
}

/* What no tree has: ADDRESS below GROUP, if it has a link there. */
static void add_linked(cli_check *check, const char *group, uint64_t address)
{
    char path[COW_PATH_MAX];

    if (cow_map_at(&check->graph.places, address) != NULL)
        return;
    snprintf(path, sizeof path, "%s/%llx", group, (unsigned long long)address);
    if (H5Lexists(check->file->id, path, H5P_DEFAULT) > 0)
        cli_graph_add_as(&check->graph, path, path + strlen(group));
    H5Eclear2(H5E_DEFAULT);
}

void cli_since_unlinked(cli_check *check, bool heads)
{
    const char *group = heads ? COW_PATH_REMOVED : COW_PATH_HELD;

    if (H5Lexists(check->file->id, group, H5P_DEFAULT) <= 0)
        return;
    for (size_t i = check->first_snapshot; i < check->snapshot_count; i++) {
        const cli_snapshot_row *row = &check->snapshots[i];

        if (heads || row->snapshot != UINT64_MAX)
            add_linked(check, group, heads ? row->head : row->snapshot);
    }
    for (size_t i = 0; heads && i < check->lack_count; i++)
        if (check->lacks[i].head != UINT64_MAX)
            add_linked(check, group, check->lacks[i].head);
}

/* ---- the index ---- */

/* The root record that the snapshot at ADDRESS shows, if it is one of DATASET that an older version has. */
static uint64_t root_at(cli_check *check, uint64_t address, uint64_t dataset)
{
    hid_t object =
        cli_since_wanted(check, address) ? H5I_INVALID_HID : H5Oopen_by_token(check->file->id, cow_token(address));
    uint64_t offset;
    cow_root root;
    bool found = object >= 0 && H5Iget_type(object) == H5I_DATASET && cli_source(object, &offset, NULL) == CLI_VIEW &&
                 cow_root_read(check->log, offset, &root) == 0 && root.dataset == dataset;

    if (object >= 0)
        H5Oclose(object);
    cow_error_clear();
    H5Eclear2(H5E_DEFAULT);
    return found ? offset : COW_NO_NODE;
}

/* At the same path of the version; else, where it was moved or removed since, by the rows of its head. */
static uint64_t find_base(cli_check *check, uint64_t dataset, const char *path)
{
    cli_since *since = check->since;
    const cli_dataset_row *row = cli_check_dataset(check, dataset);
    uint64_t address = UINT64_MAX, base = COW_NO_NODE;
    H5O_type_t type;

    if (path != NULL && since->settled)
        address = cli_version_object(check->file, &check->versions[since->version], path, &type);
    if (address != UINT64_MAX)
        base = root_at(check, address, dataset);
    if (base != COW_NO_NODE || row == NULL)
        return base;
    if (!since->sought)
        since->finder = cow_snapshot_finder_open(check->file->loc, check->first_snapshot);
    since->sought = true;
    if (since->finder != NULL && cow_snapshot_finder_find(since->finder, row->head, &address) > 0)
        base = root_at(check, address, dataset);
    cow_error_clear(); /* then the dataset is looked at in full */
    return base;
}

uint64_t cli_since_base(cli_check *check, uint64_t offset, const char *path)
{
    cli_since *since = check->since;
    uint64_t base;
    cow_root root;

    if (since == NULL || check->log == NULL)
        return COW_NO_NODE;
    if (cow_root_read(check->log, offset, &root) < 0) {
        cow_error_clear(); /* which is told by who checks it */
        return COW_NO_NODE;
    }
    if (cow_map_get(&since->bases, root.dataset, &base))
        return base;
    base = find_base(check, root.dataset, path);
    cli_map_put(&since->bases, root.dataset, base);
    return base;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

void cli_since_heads(cli_check *check, void (*visit)(cli_check *check, size_t id))
{
    const cow_map *met = &check->since->bases;
    uint64_t *ids = cli_alloc(met->count, sizeof *ids);
    size_t count = 0;

    for (size_t i = 0; i < met->capacity; i++)
        if (met->entry[i].used)
            ids[count++] = met->entry[i].key;
    qsort(ids, count, sizeof *ids, by_number);
    for (size_t i = 0; i < count; i++) /* which may meet others */
        visit(check, ids[i]);
    free(ids);
}

/* ---- chunks ---- */

void cli_since_slot(cli_check *check, const cli_pool *pool, uint64_t slot)
{
    cli_map_put(&check->since->slots, cli_slot_key(check->pool_count, pool->id, slot), 1);
}

typedef struct named_slot {
    uint64_t pool, slot;
} named_slot;

static int by_pool(const void *a, const void *b)
{
    const named_slot *x = a, *y = b;

    return x->pool != y->pool ? (x->pool > y->pool) - (x->pool < y->pool) : by_number(&x->slot, &y->slot);
}

void cli_since_slots(cli_check *check)
{
    const cow_map *met = &check->since->slots;
    named_slot *all = cli_alloc(met->count, sizeof *all);
    uint64_t *slots = cli_alloc(met->count, sizeof *slots);
    size_t count = 0;

    for (size_t i = 0; i < met->capacity; i++)
        if (met->entry[i].used)
            all[count++] = (named_slot){met->entry[i].key % check->pool_count, met->entry[i].key / check->pool_count};
    qsort(all, count, sizeof *all, by_pool);
    for (size_t first = 0, n; first < count; first += n) {
        const cli_pool *pool = &check->pools[all[first].pool];

        for (n = 0; first + n < count && all[first + n].pool == all[first].pool; n++)
            slots[n] = all[first + n].slot;
        cli_check_step(check, "pool %llu", (unsigned long long)all[first].pool);
        cli_check_some_slots(check, pool, slots, n);
        cli_check_hashes(check, pool, slots, n);
    }
    free(all);
    free(slots);
}
