/* h5cow stat: what is stored for each dataset of a version, and what the whole history costs against keeping a plain
 * copy of every version. */
#include "base/error.h"
#include "base/ids.h"
#include "common.h"
#include "composed.h"
#include "graph.h"
#include "history/history.h"
#include "pools.h"
#include "tables.h"
#include "values.h"
#include "waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char cli_stat_help[] =
    "Usage: h5cow stat [--json] FILE[@REV]\n\n"
    "Shows the datasets of the newest state, or of version REV: type, shape, chunk shape, chunks that are stored and\n"
    "how many of them are distinct, bytes of the data and bytes as stored, their ratio, filters. Then the totals of the\n"
    "whole file, and what the same versions would take as plain HDF5 files with the same filters. Says when commits wait to\n"
    "be applied, and why.\n\n"
    "      --json    the answer as one JSON object\n"
    "  -h, --help\n";

/* What is known of one dataset object. */
typedef struct item {
    char *type;
    char *filters;
    const char *layout;
    bool versioned;
    unsigned rank, chunk_rank;
    uint64_t shape[COW_MAX_RANK], chunk[COW_MAX_RANK];
    uint64_t chunks, distinct;
    uint64_t logical; /* bytes of all elements */
    uint64_t stored;  /* bytes of the distinct chunks, of composed ones base and pieces */
    uint64_t plain;   /* bytes that the chunks would take in a plain copy */
} item;

typedef struct survey {
    cli_file *file;
    char *waiting; /* commits that wait to be applied, and why; NULL: none */
    uint64_t waiting_count;
    cli_dataset_row *datasets;
    size_t dataset_count;
    cli_pool *pools;
    uint64_t pool_count;
    cow_table *log;
    cli_graph graph;
    item *items; /* object.note - 1 */
    size_t item_count, item_room;
    char trouble[1200]; /* the first; "" when there was none */
} survey;

static void trouble(survey *s, const char *path, const char *why)
{
    if (s->trouble[0] == '\0')
        snprintf(s->trouble, sizeof s->trouble, "%s: %s", path, why);
}

static void unreadable(void *context, uint64_t address, const char *path, const char *why)
{
    (void)address;
    trouble(context, path, why);
}

/* ---- one dataset ---- */

typedef struct tally {
    const survey *survey;
    item *item;
    const cli_pool *pool;
    const cow_grid *grid;
    cow_map met;   /* entries of leaves */
    cow_map slots; /* whose bytes are counted */
} tally;

static uint64_t size_of(const cli_pool *pool, uint64_t slot)
{
    return slot < pool->room ? pool->size[slot] : 0;
}

/* What is stored is counted once. */
static void count_slot(tally *t, const cli_pool *pool, uint64_t slot)
{
    if (cli_map_put(&t->slots, cli_slot_key(t->survey->pool_count, pool->id, slot), 1))
        t->item->stored += size_of(pool, slot);
}

/* In a plain copy it would take about as much as its base, or, without one, a chunk. */
static int count_composed(tally *t, const uint64_t chunk[], uint64_t entry)
{
    const survey *s = t->survey;
    cow_composed composed;
    cow_piecing cut;

    if (cli_composed_read(s->log, t->grid, s->pools, s->pool_count, t->pool->id, entry, chunk, &composed, &cut) < 0)
        return -1;
    t->item->plain += composed.base == COW_HOLE ? t->pool->chunk_bytes : size_of(t->pool, composed.base);
    if (composed.base != COW_HOLE)
        count_slot(t, t->pool, composed.base);
    for (unsigned i = 0; i < cut.count; i++)
        if (composed.own >> i & 1)
            count_slot(t, &s->pools[composed.piece_pool], composed.slot[i]);
    return 0;
}

static int count_chunk(void *context, const uint64_t chunk[], uint64_t slot)
{
    tally *t = context;

    t->item->chunks++;
    t->item->distinct += cli_map_put(&t->met, slot, 1);
    if (cow_is_composed(slot))
        return count_composed(t, chunk, slot);
    t->item->plain += size_of(t->pool, slot);
    count_slot(t, t->pool, slot);
    return 0;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

/* Fill in what the index says. -1: told to trouble. */
static int survey_versioned(survey *s, item *it, uint64_t offset, const char *path)
{
    uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];
    tally t = {.survey = s, .item = it};
    cow_index *index = NULL;
    cow_root root;
    cow_grid grid;
    char text[1024];
    int status = -1;

    if (cow_root_read(s->log, offset, &root) < 0) {
        trouble(s, path, cli_reason(text, sizeof text));
        return -1;
    }
    if (root.pool >= s->pool_count || root.rank != s->pools[root.pool].rank) {
        trouble(s, path, "its index names a pool that does not exist");
        return -1;
    }
    t.pool = &s->pools[root.pool];
    it->versioned = true;
    it->rank = it->chunk_rank = root.rank;
    it->logical = t.pool->element_size;
    for (unsigned d = 0; d < root.rank; d++) {
        it->shape[d] = root.extent[d];
        it->chunk[d] = root.chunk[d];
        it->logical = times(it->logical, root.extent[d]);
        count[d] = root.extent[d] / root.chunk[d] + (root.extent[d] % root.chunk[d] != 0);
    }
    cli_grid(&root, &grid);
    t.grid = &grid;
    bool added = root.dataset < s->dataset_count && (s->datasets[root.dataset].flags & 1) != 0;
    it->layout = root.dataset < s->dataset_count && s->datasets[root.dataset].layout == H5D_CONTIGUOUS ? "contiguous"
                                                                                                       : "chunked";
    cli_filters(t.pool->dcpl, text, sizeof text);
    it->filters = cli_format("%s%s", text, added ? " (added by h5cow)" : "");
    if ((index = cow_index_open(s->log, &grid, &root)) == NULL ||
        (it->logical > 0 && cow_index_visit(index, first, count, count_chunk, &t) < 0)) {
        trouble(s, path, cli_reason(text, sizeof text));
        goto done;
    }
    /* The application's own file would not be compressed, or not be cut into chunks. */
    if (added || strcmp(it->layout, "contiguous") == 0)
        it->plain = it->logical;
    status = 0;
done:
    cow_index_close(index);
    cow_map_free(&t.met);
    cow_map_free(&t.slots);
    return status;
}

static void survey_native(item *it, hid_t dataset, hid_t type)
{
    static const char *const layouts[] = {"compact", "contiguous", "chunked", "virtual"};
    hid_t space = H5Dget_space(dataset), dcpl = H5Dget_create_plist(dataset);
    hsize_t extent[COW_MAX_RANK], chunk[COW_MAX_RANK];
    H5D_layout_t layout = H5Pget_layout(dcpl);
    hsize_t elements = 1;
    char text[512];

    it->rank = space >= 0 && H5Sget_simple_extent_ndims(space) > 0 ? (unsigned)H5Sget_simple_extent_ndims(space) : 0;
    if (it->rank > 0)
        H5Sget_simple_extent_dims(space, extent, NULL);
    else if (space >= 0 && H5Sget_simple_extent_type(space) == H5S_NULL)
        elements = 0;
    for (unsigned d = 0; d < it->rank; d++) {
        it->shape[d] = extent[d];
        elements = times(elements, extent[d]);
    }
    if (layout == H5D_CHUNKED && H5Pget_chunk(dcpl, COW_MAX_RANK, chunk) == (int)it->rank) {
        it->chunk_rank = it->rank;
        for (unsigned d = 0; d < it->rank; d++)
            it->chunk[d] = chunk[d];
        if (H5Dget_num_chunks(dataset, H5S_ALL, &chunk[0]) >= 0)
            it->chunks = it->distinct = chunk[0];
    }
    it->layout = layout >= H5D_COMPACT && layout <= H5D_VIRTUAL ? layouts[layout] : "?";
    it->logical = times(H5Tget_size(type), elements);
    it->stored = it->plain = H5Dget_storage_size(dataset);
    it->filters = cli_strdup(cli_filters(dcpl, text, sizeof text));
    cow_close(dcpl, space);
    H5Eclear2(H5E_DEFAULT);
}

static void found(void *context, cli_object *object, const char *path)
{
    survey *s = context;
    hid_t dataset, type = H5I_INVALID_HID;
    char text[512];
    uint64_t number = 0;
    int kind;

    if (object->type != H5O_TYPE_DATASET)
        return;
    if ((dataset = H5Oopen_by_token(s->file->id, cow_token(object->address))) < 0 ||
        (type = H5Dget_type(dataset)) < 0 || (kind = cli_source(dataset, &number, NULL)) < 0) {
        trouble(s, path, cli_reason(text, sizeof text));
        goto done;
    }
    CLI_RESERVE(s->items, s->item_room, s->item_count, 1);
    item *it = &s->items[s->item_count++];
    *it = (item){.type = cli_type_name(type)};
    object->note = s->item_count;
    if (kind == CLI_HEAD && number >= s->dataset_count)
        trouble(s, path, "it belongs to a dataset that the table does not know");
    else if (kind == CLI_HEAD && s->datasets[number].root != UINT64_MAX)
        survey_versioned(s, it, s->datasets[number].root, path);
    else if (kind == CLI_VIEW)
        survey_versioned(s, it, number, path);
    else
        survey_native(it, dataset, type);
done:
    cow_close(type, dataset);
}

/* ---- totals ---- */

typedef struct totals {
    uint64_t logical, plain;
} totals;

typedef struct summing {
    const survey *s;
    totals sum;
    /* when rows are listed */
    cli_table *table;
    json_object *list;
} summing;

static int add_object(void *context, const cli_object *object, const char *path)
{
    summing *m = context;

    (void)path;
    if (object->note > 0) {
        const item *it = &m->s->items[object->note - 1];
        m->sum.logical += it->logical;
        m->sum.plain += it->plain;
    }
    return 0;
}

static int list_object(void *context, const cli_object *object, const char *path)
{
    summing *m = context;
    char text[700], bytes[32];

    if (object->note == 0)
        return 0;
    const item *it = &m->s->items[object->note - 1];
    double ratio = it->stored > 0 ? (double)it->logical / (double)it->stored : 0;
    if (m->list != NULL) {
        json_object *row = json_object_new_object();
        json_object_object_add(row, "path", cli_json_text(path));
        json_object_object_add(row, "type", cli_json_text(it->type));
        json_object_object_add(row, "shape", cli_json_dims(it->rank, it->shape));
        json_object_object_add(row, "layout", cli_json_text(it->layout == NULL ? "?" : it->layout));
        json_object_object_add(row, "versioned", json_object_new_boolean(it->versioned));
        json_object_object_add(row, "chunk_shape",
                               it->chunk_rank > 0 ? cli_json_dims(it->chunk_rank, it->chunk) : NULL);
        json_object_object_add(row, "chunks", json_object_new_uint64(it->chunks));
        json_object_object_add(row, "distinct_chunks", json_object_new_uint64(it->distinct));
        json_object_object_add(row, "logical_bytes", json_object_new_uint64(it->logical));
        json_object_object_add(row, "stored_bytes", json_object_new_uint64(it->stored));
        json_object_object_add(row, "ratio", it->stored > 0 ? json_object_new_double(ratio) : NULL);
        json_object_object_add(row, "filters", cli_json_text(it->filters));
        json_object_array_add(m->list, row);
        return 0;
    }
    cli_table_cell(m->table, "%s", path);
    cli_table_cell(m->table, "%s", it->type);
    cli_table_cell(m->table, "%s", cli_shape(text, sizeof text, it->rank, it->shape));
    cli_table_cell(m->table, "%s",
                   it->chunk_rank > 0   ? cli_shape(text, sizeof text, it->chunk_rank, it->chunk)
                   : it->layout == NULL ? "?"
                                        : it->layout);
    cli_table_cell(m->table, "%llu", (unsigned long long)it->chunks);
    cli_table_cell(m->table, "%llu", (unsigned long long)it->distinct);
    cli_table_cell(m->table, "%s", cli_bytes(bytes, (double)it->logical));
    cli_table_cell(m->table, "%s", cli_bytes(bytes, (double)it->stored));
    snprintf(text, sizeof text, "%.2f", ratio);
    cli_table_cell(m->table, "%s", it->stored > 0 ? text : "-");
    cli_table_cell(m->table, "%s%s", it->filters == NULL ? "?" : it->filters,
                   it->versioned ? "" : " (not in chunks of h5cow)");
    return 0;
}

static int print(const survey *s, size_t root, size_t versions, totals all, uint64_t chunk_bytes, uint64_t file_bytes,
                 bool json)
{
    static const char *const titles[] = {"dataset",  "type",  "shape",  "chunk", "chunks",
                                         "distinct", "bytes", "stored", "ratio", "filters"};
    summing m = {.s = s};
    char text[3][32];
    double ratio = file_bytes > 0 ? (double)all.plain / (double)file_bytes : 0;

    if (json) {
        json_object *answer = json_object_new_object(), *sums = json_object_new_object();
        m.list = json_object_new_array();
        cli_graph_each(&s->graph, root, list_object, &m);
        json_object_object_add(answer, "file", cli_json_text(s->file->name));
        json_object_object_add(answer, "version", s->file->revision == NULL ? NULL : cli_json_text(s->file->revision));
        json_object_object_add(answer, "datasets", m.list);
        json_object_object_add(sums, "versions", json_object_new_uint64(versions));
        json_object_object_add(sums, "file_bytes", json_object_new_uint64(file_bytes));
        json_object_object_add(sums, "chunk_bytes", json_object_new_uint64(chunk_bytes));
        json_object_object_add(sums, "other_bytes", json_object_new_int64((int64_t)(file_bytes - chunk_bytes)));
        json_object_object_add(sums, "logical_bytes_of_all_versions", json_object_new_uint64(all.logical));
        json_object_object_add(sums, "plain_copies_bytes", json_object_new_uint64(all.plain));
        json_object_object_add(sums, "ratio", json_object_new_double(ratio));
        json_object_object_add(answer, "totals", sums);
        json_object_object_add(answer, "waiting", json_object_new_uint64(s->waiting_count));
        json_object_object_add(answer, "why_waiting", s->waiting == NULL ? NULL : cli_json_text(s->waiting));
        return cli_json(answer);
    }
    m.table = cli_table_open(10, titles);
    for (unsigned column = 4; column <= 8; column++)
        cli_table_right(m.table, column);
    cli_graph_each(&s->graph, root, list_object, &m);
    cli_table_print(m.table);
    cli_table_close(m.table);
    printf("\n%zu version%s in %s: chunks %s, all else %s\n", versions, versions == 1 ? "" : "s",
           cli_bytes(text[0], (double)file_bytes), cli_bytes(text[1], (double)chunk_bytes),
           cli_bytes(text[2], (double)file_bytes - (double)chunk_bytes));
    printf("as plain copies, one a version, with the same filters: %s, %.2f times as much (%s of data)\n",
           cli_bytes(text[0], (double)all.plain), ratio, cli_bytes(text[1], (double)all.logical));
    if (s->waiting != NULL)
        printf("%s\n", s->waiting);
    return cli_flush();
}

static void look_for_waiting(survey *s)
{
    cow_journal_report r;

    if (cow_journal_inspect(s->file->name, &r) < 0) {
        cow_error_clear(); /* what can be read of the file says the rest */
        return;
    }
    s->waiting_count = cli_waiting_count(&r);
    s->waiting = cli_waiting_text(s->file->name, &r);
    cow_journal_report_free(&r);
}

static int stat_file(cli_file *file, bool json)
{
    survey s = {.file = file, .graph = {.file = file->id, .found = found, .trouble = unreadable}};
    cli_version *versions = NULL;
    size_t version_count = 0, root;
    char why[1024], path[1024];
    uint64_t chunk_bytes = 0;
    totals all = {0};
    struct stat size;
    int status = CLI_FAILED;

    s.graph.context = &s;
    look_for_waiting(&s);
    if (cli_versions_read(file, &versions, &version_count, why, sizeof why) < 0 ||
        cli_datasets_read(file, &s.datasets, &s.dataset_count, why, sizeof why) < 0 ||
        cli_pool_count(file, &s.pool_count, why, sizeof why) < 0)
        goto damaged;
    if ((s.log = cow_layout_table_open(file->loc, COW_TABLE_INDEX, 0, 0)) == NULL) {
        cli_reason(why, sizeof why);
        goto damaged;
    }
    s.pools = cli_alloc(s.pool_count, sizeof *s.pools);
    for (uint64_t i = 0; i < s.pool_count; i++) {
        if (cli_pool_open(file, i, &s.pools[i], why, sizeof why) < 0) {
            s.pool_count = i;
            goto damaged;
        }
        chunk_bytes += s.pools[i].bytes;
    }
    if (file->revision == NULL) {
        snprintf(path, sizeof path, "/");
    } else if (cow_revision_resolve(file->loc.object, file->revision, path, sizeof path) < 0) {
        cli_fail("%s", cli_reason(why, sizeof why));
        goto done;
    }
    root = cli_graph_add(&s.graph, path);
    for (size_t i = 0; i < version_count && s.trouble[0] == '\0'; i++) {
        if (versions[i].open == COW_LOG_FORGOTTEN)
            continue;
        char *version = cli_format(COW_PATH_VERSIONS "/%s", versions[i].name);
        size_t object = cli_graph_add(&s.graph, version);
        summing m = {.s = &s};
        free(version);
        if (object != SIZE_MAX)
            cli_graph_each(&s.graph, object, add_object, &m);
        all.logical += m.sum.logical;
        all.plain += m.sum.plain;
    }
    snprintf(why, sizeof why, "%.1000s", s.trouble);
    if (s.trouble[0] != '\0')
        goto damaged;
    if (stat(file->name, &size) < 0)
        size.st_size = 0;
    status =
        print(&s, root, cli_versions_there(versions, version_count), all, chunk_bytes, (uint64_t)size.st_size, json);
    goto done;
damaged:
    cli_fail("'%s' is damaged: %s; 'h5cow verify %s' says what is hit", file->name, why, file->name);
done:
    for (size_t i = 0; i < s.item_count; i++) {
        free(s.items[i].type);
        free(s.items[i].filters);
    }
    free(s.items);
    for (uint64_t i = 0; s.pools != NULL && i < s.pool_count; i++)
        cli_pool_close(&s.pools[i]);
    free(s.pools);
    if (s.log != NULL)
        s.log->close(s.log);
    cli_graph_free(&s.graph);
    free(s.datasets);
    free(s.waiting);
    cli_versions_free(versions, version_count);
    return status;
}

int cli_stat(int argc, char **argv)
{
    cli_file file;
    const char *name;
    bool json;
    int status;

    if ((status = cli_one_file("stat", cli_stat_help, argc, argv, &name, &json)) >= 0)
        return status;
    cli_hdf5_start();
    if (cli_file_open(&file, "stat", name, true) != 0)
        return CLI_FAILED;
    status = cli_file_history(&file);
    if (status == 0)
        status = stat_file(&file, json);
    cli_file_close(&file);
    return status;
}
