/* The order of the checks; tables, versions, heads, snapshots, tags. See check.h. */
#include "check.h"

#include "object.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/history.h"
#include "layout/still.h"
#include "native/datatype.h"
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- objects ---- */

static void trouble(void *context, uint64_t address, const char *path, const char *why)
{
    cli_damaged(context, address == UINT64_MAX ? CLI_BAD_ELSE : CLI_BAD_OBJECT, 0, address,
                "the object '%s' cannot be read: %s", path, why);
}

/* The extent of a dataset object must be that of the root record it shows. */
static void check_extent(cli_check *check, hid_t dataset, uint64_t address, uint64_t offset, const char *path)
{
    hid_t space = H5Dget_space(dataset);
    hsize_t extent[COW_MAX_RANK];
    cow_root root;
    bool same = space >= 0 && cow_root_read(check->log, offset, &root) >= 0 &&
                H5Sget_simple_extent_ndims(space) == (int)root.rank &&
                H5Sget_simple_extent_dims(space, extent, NULL) == (int)root.rank;

    for (unsigned d = 0; same && d < root.rank; d++)
        same = extent[d] == root.extent[d];
    if (!same)
        cli_damaged(check, CLI_BAD_OBJECT, 0, address, "the dataset '%s' has another extent than its index", path);
    if (space >= 0)
        H5Sclose(space);
}

typedef struct sum {
    const cli_file *file;
    uint64_t value;
} sum;

static herr_t add_attribute(hid_t at, const char *name, const H5A_info_t *info, void *context)
{
    sum *s = context;
    hid_t attribute = H5Aopen(at, name, H5P_DEFAULT), type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    size_t n = 0;
    bool good = type >= 0 && space >= 0 && cow_layout_values(s->file->loc, type, space, &n) == 0;
    void *values = good ? cli_alloc(n + 1, H5Tget_size(type)) : NULL;
    herr_t status = values == NULL || H5Aread(attribute, type, values) < 0 ||
                            cow_sum_add(s->file->name, name, type, n, values, &s->value) < 0
                        ? -1
                        : 0;

    (void)info;
    if (status == 0)
        cow_reclaim(type, space, H5P_DEFAULT, values);
    free(values);
    H5Sclose(space);
    H5Tclose(type);
    H5Aclose(attribute);
    return status;
}

static herr_t add_elements(hid_t dataset, sum *s)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset), dcpl = H5Dget_create_plist(dataset);
    size_t n = 0;
    bool good = type >= 0 && space >= 0 && dcpl >= 0 &&
                cow_sum_fits(s->file->name, s->file->loc, H5VLobject(dataset), dcpl, type, space, &n) == 0 && n > 0;
    void *values = good ? cli_alloc(n, H5Tget_size(type)) : NULL;
    herr_t status = values == NULL || H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0 ||
                            cow_sum_values(s->file->name, type, n, values, &s->value) < 0
                        ? -1
                        : 0;

    if (status == 0)
        cow_reclaim(type, space, H5P_DEFAULT, values);
    free(values);
    cow_close(dcpl, space, type);
    return status;
}

/* What HDF5 keeps without checksums: elements of small datasets, texts in attributes, the name of an index record. */
static void check_sums(cli_check *check, hid_t id, const cli_object *object, const cli_use *use, const char *path)
{
    const uint64_t *row = cow_map_at(&check->summed, object->address);
    const cli_snapshot_row *sums = row == NULL ? NULL : &check->snapshots[*row];
    sum attributes = {.file = check->file}, elements = attributes;
    char text[512];

    if (sums == NULL)
        return;
    if (sums->attributes != 0 && cow_map_at(&check->lacking, object->address) == NULL) {
        if (H5Aiterate2(id, H5_INDEX_NAME, H5_ITER_INC, NULL, add_attribute, &attributes) < 0)
            trouble(check, object->address, path, cli_reason(text, sizeof text));
        else if (attributes.value != sums->attributes)
            cli_damaged(check, CLI_BAD_OBJECT, 0, object->address, "the attributes of '%s' are not what was written",
                        path);
    }
    if (sums->elements == 0 || object->type != H5O_TYPE_DATASET)
        return;
    if (use->kind != CLI_NATIVE)
        elements.value = use->root == UINT64_MAX ? sums->elements : cow_sum_root(use->root);
    else if (add_elements(id, &elements) < 0) {
        trouble(check, object->address, path, cli_reason(text, sizeof text));
        return;
    }
    if (elements.value != sums->elements)
        cli_damaged(check, CLI_BAD_OBJECT, 0, object->address, "the elements of '%s' are not what was written", path);
}

/* A header of HDF5 1.6 has no checksum: is the named datatype in it what its newest snapshot is? That the snapshot can be opened, is looked
 * at where it is met. */
static void check_type(cli_check *check, hid_t id, uint64_t address, const char *path)
{
    const uint64_t *row = cow_map_at(&check->summed, address);
    const uint64_t snapshot = row == NULL ? UINT64_MAX : check->snapshots[*row].snapshot;
    unsigned version;
    hid_t then;

    if (snapshot == UINT64_MAX || snapshot == address ||
        cow_native_header_version(cow_native_named_type(id), &version) < 0 || version >= 2 ||
        (then = H5Oopen_by_token(check->file->id, cow_token(snapshot))) < 0)
        return;
    if (H5Iget_type(then) == H5I_DATATYPE && cow_types_same(id, then) == 0)
        cli_damaged(check, CLI_BAD_OBJECT, 0, address, "the datatype '%s' is not what was written", path);
    cow_error_clear();
    H5Oclose(then);
}

static uint64_t pair(uint64_t head, uint64_t version)
{
    const uint64_t both[2] = {head, version};

    return cow_checksum(both, sizeof both);
}

/* What versions lack is no damage. */
static void list_lacks(cli_check *check)
{
    cow_map pairs = {0};

    for (size_t i = 0; i < check->lack_count; i++) {
        cli_lack *lack = &check->lacks[i];
        lack->path = cli_visible(lack->path);
        lack->reason = cli_visible(lack->reason);
        if (lack->version > check->version_count)
            cli_damaged(check, CLI_BAD_ELSE, 0, 0,
                        "row %zu of what is incomplete belongs to a version that the log ends before",
                        check->first_lack + i);
        else if (lack->version == check->version_count)
            cli_map_put(&check->lacking, lack->head, 1);
        cli_map_put(&pairs, pair(lack->head, lack->version), 1);
    }
    for (size_t i = check->first_snapshot; pairs.count > 0 && i < check->snapshot_count; i++) {
        const cli_snapshot_row *row = &check->snapshots[i];
        if (row->snapshot != UINT64_MAX && cow_map_at(&pairs, pair(row->head, row->version)) != NULL)
            cli_map_put(&check->lacking, row->snapshot, 1);
    }
    cow_map_free(&pairs);
}

static void list_sums(cli_check *check)
{
    for (size_t i = check->first_snapshot; i < check->snapshot_count; i++) {
        const cli_snapshot_row *row = &check->snapshots[i];
        if (cow_map_at(&check->lacking, row->head) == NULL)
            cli_map_put(&check->summed, row->head, i);
        if (row->snapshot != UINT64_MAX)
            cli_map_put(&check->summed, row->snapshot, i);
    }
}

/* An object of head, versions or removed, met for the first time: it opens, its attributes open, and if it is a
 * versioned dataset, what it names is there. */
static void found(void *context, cli_object *object, const char *path)
{
    cli_check *check = context;
    hid_t id = H5Oopen_by_token(check->file->id, cow_token(object->address));
    char text[512];
    H5O_info2_t info;
    bool marked;

    cli_check_beat(check);
    if (id < 0 || H5Oget_info3(id, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) < 0) {
        trouble(check, object->address, path, cli_reason(text, sizeof text));
        goto done;
    }
    for (hsize_t i = 0; i < info.num_attrs; i++) {
        hid_t attribute = H5Aopen_by_idx(id, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
        if (attribute < 0) {
            cli_damaged(check, CLI_BAD_OBJECT, 0, object->address, "an attribute of '%s' cannot be read: %s", path,
                        cli_reason(text, sizeof text));
            break;
        }
        H5Aclose(attribute);
    }
    if (check->since == NULL && check->in_version && cow_map_at(&check->summed, object->address) == NULL)
        cli_damaged(check, CLI_BAD_OBJECT, 0, object->address,
                    "'%s' is not an object that the table of snapshots knows", path);
    cli_use use = {.address = object->address, .root = UINT64_MAX, .kind = CLI_NATIVE};
    if (object->type != H5O_TYPE_DATASET) {
        if (object->type == H5O_TYPE_NAMED_DATATYPE)
            check_type(check, id, object->address, path);
        check_sums(check, id, object, &use, path);
        goto done;
    }
    if ((use.kind = cli_source(id, &use.number, &marked)) < 0) {
        trouble(check, object->address, path, cli_reason(text, sizeof text));
        goto done;
    }
    if (use.kind == CLI_NATIVE) {
        check_sums(check, id, object, &use, path);
        goto done;
    }
    const cli_dataset_row *row = use.kind == CLI_HEAD ? cli_check_dataset(check, use.number) : NULL;
    if (use.kind == CLI_VIEW && use.number != UINT64_MAX)
        use.root = use.number;
    else if (use.kind == CLI_VIEW)
        cli_damaged(check, CLI_BAD_OBJECT, 0, object->address, "the dataset '%s' names a record that cannot be", path);
    else if (row != NULL)
        use.root = row->root;
    else
        cli_damaged(check, CLI_BAD_OBJECT, 0, object->address,
                    "the dataset '%s' has number %llu, which the table of datasets ends before", path,
                    (unsigned long long)use.number);
    if (row != NULL && row->head != object->address)
        cli_damaged(check, CLI_BAD_OBJECT, 0, object->address,
                    "the dataset '%s' is not where the table of datasets says", path);
    check_sums(check, id, object, &use, path);
    if (use.root != UINT64_MAX && check->log != NULL &&
        cli_check_root(check, use.root, cli_since_base(check, use.root, path))) {
        check_extent(check, id, object->address, use.root, path);
        if (row != NULL && (row->flags & COW_FLAG_NATIVE) && check->since == NULL)
            cli_check_native_head(check, object->address, use.root, path);
    }
    if (marked && use.root != UINT64_MAX && check->log != NULL)
        cli_check_marked(check, id, object->address, use.root, path);
    CLI_RESERVE(check->uses, check->use_room, check->use_count, 1);
    check->uses[check->use_count++] = use;
    object->note = check->use_count;
done:
    if (id >= 0)
        H5Oclose(id);
    H5Eclear2(H5E_DEFAULT);
}

/* ---- heads ---- */

/* heads/<id> is the view of the newest root record. That the head object shows it is looked at where that is met (found); what no
 * version knew is gone with its last link, and its address may be another's. */
static void check_head(cli_check *check, size_t id)
{
    const cli_dataset_row *row = cli_check_dataset(check, id);
    char head[64], view[COW_PATH_MAX];

    if (row == NULL || row->root == UINT64_MAX) /* made and removed before any commit */
        return;
    snprintf(head, sizeof head, COW_PATH_HEADS "/%zu", id);
    cow_layout_view_path(view, check->parts, row->root);
    cli_check_root(check, row->root, cli_since_base(check, row->root, NULL));
    uint64_t there = cli_check_address(check, head);
    if (there == UINT64_MAX)
        cli_damaged(check, CLI_BAD_VIEW, 0, row->root, "%s is missing", head);
    else if (there != cli_check_address(check, view))
        cli_damaged(check, CLI_BAD_VIEW, 0, row->root, "%s is not the view %s of the newest state", head, view);
}

/* ---- versions ---- */

static void check_log(cli_check *check)
{
    char path[512];

    for (size_t i = check->first_version; i < check->version_count; i++) {
        const cli_version *v = &check->versions[i];
        if (v->name[0] == '\0' || strchr(v->name, '/') != NULL) {
            cli_damaged(check, CLI_BAD_ELSE, 0, 0, "row %zu of the log has the impossible name '%s'", i, v->name);
            continue;
        }
        if (v->open != COW_LOG_FORGOTTEN && cli_names_find(&check->names, v->name, NULL) != i)
            cli_damaged(check, CLI_BAD_ELSE, 0, 0, "the log has two versions named '%s'", v->name);
        if (v->parent < -1 || v->parent >= (int64_t)i)
            cli_damaged(check, CLI_BAD_ELSE, 0, 0, "version '%s' has a parent that is not older", v->name);
        if (v->open == COW_LOG_FORGOTTEN)
            continue;
        cli_check_step(check, "version %s", v->name);
        snprintf(path, sizeof path, COW_PATH_VERSIONS "/%s", v->name);
        check->in_version = true;
        check->version[i] = cli_graph_add(&check->graph, path);
        check->in_version = false;
    }
}

static void check_listed(cli_check *check, const char *name)
{
    bool forgotten;
    const bool there = cli_names_find(&check->names, name, &forgotten) < check->version_count;

    if (!there && !forgotten)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "version '%s' is not in the log", name);
    else if (!there)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "version '%s' is forgotten, as the log says, but it is there", name);
}

static void check_listing(cli_check *check)
{
    hid_t group = H5Gopen2(check->file->id, COW_PATH_VERSIONS, H5P_DEFAULT);
    cow_tree_names names = {0};
    char text[1024];

    if (group < 0 || cli_object_links(group, &names) < 0)
        trouble(check, UINT64_MAX, COW_PATH_VERSIONS, cli_reason(text, sizeof text));
    for (size_t i = 0; i < names.count; i++)
        check_listed(check, names.entry[i].name);
    cow_tree_names_free(&names);
    if (group >= 0)
        H5Gclose(group);
}

static void check_tags(cli_check *check)
{
    cli_tag *tags;
    size_t count;
    char text[1024];

    if (cli_tags_read(check->file, check->versions, check->version_count, &tags, &count, text, sizeof text) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", text);
    for (size_t i = 0; i < count; i++)
        if (tags[i].version == SIZE_MAX && !cli_since_tag(check, tags[i].name))
            cli_damaged(check, CLI_BAD_ELSE, 0, 0, "the tag '%s' names no version", tags[i].name);
    cli_tags_free(tags, count);
}

/* Every snapshot object that counts and every head object that a version knows keeps its address. */
static void check_snapshots(cli_check *check)
{
    cow_map opened = {0};

    for (size_t i = check->first_snapshot; i < check->snapshot_count; i++) {
        const cli_snapshot_row *row = &check->snapshots[i];
        const uint64_t addresses[2] = {row->snapshot, row->head};
        cli_check_beat(check);
        if (row->version >= check->version_count)
            cli_damaged(check, CLI_BAD_ELSE, 0, 0,
                        "row %zu of the snapshots belongs to a version that the log ends before", i);
        for (int a = 0; a < 2; a++) {
            if (a == 0 && row->snapshot == UINT64_MAX)
                continue; /* struck out: the object was deleted before the version was finished */
            if (cow_map_at(&check->graph.places, addresses[a]) != NULL || !cli_map_put(&opened, addresses[a], 1))
                continue;
            hid_t object = H5Oopen_by_token(check->file->id, cow_token(addresses[a]));
            if (object < 0)
                cli_damaged(check, CLI_BAD_ELSE, 0, 0,
                            "row %zu of the snapshots: there is no %s object at address %llu", i,
                            a == 0 ? "snapshot" : "head", (unsigned long long)addresses[a]);
            else
                H5Oclose(object);
            H5Eclear2(H5E_DEFAULT);
        }
    }
    cow_map_free(&opened);
}

/* Runs that do not hold any more are no damage: an h5cow that does not know of them has forgotten versions. */
static void check_snapshot_rows(cli_check *check)
{
    char why[1024];

    if (cow_snapshot_rows_check(check->file->loc, check->snapshots, check->first_snapshot, check->snapshot_count) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "what helps to find snapshots is damaged (nothing is lost by that): %s",
                    cli_reason(why, sizeof why));
}

/* ---- all ---- */

/* Can the table of free places be read? What stands in it counts for one commit alone, and only for who writes. */
static void read_free(cli_check *check)
{
    cow_table *table;
    cow_layout_free_row *row = NULL;
    char why[1024];
    int found = cow_layout_free_open(check->file->loc, &table);

    if (found > 0) {
        row = cli_alloc(table->rows, sizeof *row);
        found = cow_layout_rows(table, COW_TABLE_FREE, 0, table->rows, row);
        table->close(table);
        free(row);
    }
    if (found < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "free places cannot be read: %s", cli_reason(why, sizeof why));
}

static void read_all_tables(cli_check *check)
{
    cli_operation *operations;
    size_t operation_count;
    char why[1024];

    if (cli_versions_read(check->file, &check->versions, &check->version_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if (cli_datasets_read(check->file, &check->datasets, &check->dataset_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if (cli_snapshots_read(check->file, &check->snapshots, &check->snapshot_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if (cli_lacks_read(check->file, &check->lacks, &check->lack_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if (cli_operations_read(check->file, &operations, &operation_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    cli_operations_free(operations, operation_count);
}

static void name_versions(cli_check *check)
{
    check->names = cli_names_of(check->versions, check->version_count);
    check->version = cli_alloc(check->version_count, sizeof *check->version);
    for (size_t i = check->first_version; i < check->version_count; i++)
        check->version[i] = SIZE_MAX;
}

static void read_tables(cli_check *check)
{
    char why[1024];

    if (check->since != NULL)
        cli_since_tables(check);
    else
        read_all_tables(check);
    name_versions(check);
    read_free(check);
    if (cli_pool_count(check->file, &check->pool_count, why, sizeof why) < 0 ||
        cli_pools_read(check->file, check->pool_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    if ((check->log = cow_layout_table_open(check->file->loc, COW_TABLE_INDEX, 0, 0)) == NULL)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "the index cannot be opened: %s", cli_reason(why, sizeof why));
    if (cow_layout_parts(NULL, check->file->loc, &check->parts) < 0) {
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", cli_reason(why, sizeof why));
        check->parts = COW_NO_PARTS;
    }
}

/* An h5cow that does not know what is in a file must refuse it: by this number. */
static void check_format(cli_check *check)
{
    const struct {
        bool has;
        uint32_t needed;
        const char *what;
    } parts[] = {
        {check->parts != COW_NO_PARTS, COW_FORMAT_PARTS, "views in parts"},
        {H5Lexists(check->file->id, COW_PATH_COPIED, H5P_DEFAULT) > 0, COW_FORMAT_COPIED,
         "groups whose links are not counted"},
        {check->marked, COW_FORMAT_MARKED, "views with marks"},
        {check->lone_leaves, COW_FORMAT_LONE_LEAF, "leaves without views"},
        {check->composed.count > 0, COW_FORMAT_PIECES, "composed chunks"},
    };
    uint32_t format = 0;

    if (cow_layout_number(check->file->loc, COW_FORMAT_NAME, H5T_STD_U32LE, &format) > 0)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (parts[i].has && format < parts[i].needed) {
                cli_damaged(check, CLI_BAD_ELSE, 0, 0,
                            "the file says that it has format %u, but it has %s, which only format %u has", format,
                            parts[i].what, parts[i].needed);
                break;
            }
    cow_error_clear();
}

static void open_pools(cli_check *check)
{
    char why[1024];

    check->pools = cli_alloc(check->pool_count, sizeof *check->pools);
    check->used = cli_alloc(check->pool_count, sizeof *check->used);
    for (uint64_t i = 0; i < check->pool_count; i++) {
        cli_pool *pool = &check->pools[i];

        cli_check_step(check, "pool %llu", (unsigned long long)i);
        if ((check->since == NULL ? cli_pool_open : cli_pool_open_bare)(check->file, i, pool, why, sizeof why) < 0) {
            cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
            continue;
        }
        if (check->since != NULL) /* its slots are looked at when it is known which are new */
            continue;
        check->used[i] = cli_alloc(pool->room, sizeof **check->used);
        cli_check_slots(check, pool);
        cli_check_hashes(check, pool, NULL, 0);
    }
}

/* Head, removed, versions and held, in this order: an object is told by where it was met first. */
static void check_trees(cli_check *check)
{
    check->graph = (cli_graph){.file = check->file->id,
                               .found = found,
                               .trouble = trouble,
                               .wanted = check->since == NULL ? NULL : cli_since_wanted,
                               .context = check};
    cli_check_step(check, "the newest state");
    check->head = cli_graph_add(&check->graph, "/");
    if (check->since != NULL)
        cli_since_unlinked(check, true);
    else {
        if (H5Lexists(check->file->id, COW_PATH_REMOVED, H5P_DEFAULT) > 0)
            cli_graph_add(&check->graph, COW_PATH_REMOVED);
    }
    check->graph.glance = true; /* at what new versions share: HDF5 has counted their links in there */
    check_log(check);
    if (check->since != NULL)
        cli_since_unlinked(check, false);
    else if (H5Lexists(check->file->id, COW_PATH_HELD, H5P_DEFAULT) > 0)
        cli_graph_add(&check->graph, COW_PATH_HELD);
}

void cli_check_all(cli_check *check)
{
    cli_check_step(check, "the tables");
    read_tables(check);
    open_pools(check);
    list_lacks(check);
    list_sums(check);
    if (check->since != NULL)
        cli_since_objects(check);
    check_trees(check);
    cli_check_step(check, "the lists of versions, snapshots and datasets");
    if (check->since == NULL)
        check_listing(check);
    check_tags(check);
    check_snapshots(check);
    check_snapshot_rows(check);
    if (check->since != NULL)
        cli_since_heads(check, check_head);
    for (size_t i = 0; check->since == NULL && check->log != NULL && i < check->dataset_count; i++)
        check_head(check, i);
    check_format(check);
    if (check->since != NULL)
        cli_since_slots(check);
    for (uint64_t i = 0; check->since == NULL && i < check->pool_count; i++)
        if (check->pools[i].rank > 0)
            cli_check_used_slots(check, &check->pools[i]);
}

static void forget_trees(cli_check *check)
{
    free(check->uses);
    free(check->version);
    cli_names_free(&check->names);
    free(check->datasets);
    free(check->snapshots);
    cli_versions_free(check->versions, check->version_count);
    cow_map_free(&check->summed);
    cli_graph_free(&check->graph);
    cli_since_close(check);
}

void cli_check_complete(cli_check *check)
{
    char why[1024];

    check->quiet = true;
    forget_trees(check);
    check->uses = NULL;
    check->use_count = check->use_room = 0;
    check->snapshots = NULL; /* of which nothing is asked any more */
    check->snapshot_count = check->first_snapshot = check->first_version = 0;
    if (cli_versions_read(check->file, &check->versions, &check->version_count, why, sizeof why) < 0 ||
        cli_datasets_read(check->file, &check->datasets, &check->dataset_count, why, sizeof why) < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "%s", why);
    name_versions(check);
    check_trees(check);
}

void cli_check_free(cli_check *check)
{
    for (uint64_t i = 0; check->pools != NULL && i < check->pool_count; i++) {
        if (check->pools[i].rank > 0)
            cli_pool_close(&check->pools[i]);
        free(check->used[i]);
    }
    free(check->pools);
    free(check->used);
    for (size_t i = 0; i < check->node_count; i++)
        free(check->node[i].origin);
    free(check->node);
    for (size_t i = 0; i < check->damages; i++)
        free(check->damage[i].what);
    free(check->damage);
    forget_trees(check);
    if (check->log != NULL)
        check->log->close(check->log);
    cow_map_free(&check->lacking);
    cli_lacks_free(check->lacks, check->lack_count);
    cow_map_free(&check->roots);
    cow_map_free(&check->nodes);
    cow_map_free(&check->composed);
}
