/* h5cow blame: which version wrote what is in a dataset.
 *
 * From the version that is looked at back to its parents: what differs between a version and the one before it was written by
 * the newer one, and is settled with that. For chunks the two indexes say it, and the digests of their slots, which tell what was written
 * again as it was; no data is read but of chunks that are a base and pieces, or that have other chunks in the two. For elements (--start, --count) the
 * values of chunks that differ are compared.
 */
#include "base/ids.h"
#include "composed.h"
#include "diff.h"
#include "pools.h"
#include "native/datatype.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((uint64_t)1 << 24) /* elements that are told apart */

const char cli_blame_help[] =
    "Usage: h5cow blame [OPTION]... FILE[@REV] PATH\n\n"
    "Shows which version wrote what the dataset PATH holds, in the newest state or in version REV: for each chunk that\n"
    "is stored the version that wrote it last, equal neighbours in one line. With --start or --count for each element of\n"
    "that box the version that gave it its value. Datasets that HDF5 keeps, such as small ones, are always looked at\n"
    "element by element.\n\n"
    "  -s, --start=PLACE   the first element of the box, as 3,4; without: 0,0\n"
    "  -c, --count=SHAPE   its elements in each dimension, as 1,10; without: up to the end\n"
    "  -u, --utc           show times in UTC, not in local time\n"
    "      --json          a list of objects; times in UTC\n"
    "  -h, --help\n\n"
    "Example: h5cow blame -s 3,4 -c 1,1 run.h5 /temperature\n";

/* A part of the dataset, and the row in the log of the version that wrote it; SIZE_MAX: not known yet. */
typedef struct part {
    uint64_t number; /* in row-major order, of the chunk or of the element in the box */
    size_t row;
} part;

/* What is told chunk by chunk. */
typedef struct chunked {
    cow_root root; /* of `now` */
    cow_map place; /* number -> in part */
    cli_slots *slots;
    uint64_t grown[COW_MAX_RANK]; /* the extent in the version before, where it is smaller; else UINT64_MAX */
    bool refers;                  /* they have references, whose bytes do not tell where these lead */
    bool unsure;                  /* some are to be compared */
} chunked;

typedef struct blame {
    const char *path;
    cli_version *rows;
    size_t row_count;
    cli_state now; /* the version that is looked at */
    size_t row;    /* its own; then that of each parent */
    /* Elements: the newest version that shows the dataset as that of `row` does. `now`, or one of its own. */
    cli_state later;
    hid_t dataset; /* through the connector, in that one */
    unsigned rank;
    hsize_t extent[H5S_MAX_RANK], start[H5S_MAX_RANK], count[H5S_MAX_RANK]; /* the box */
    bool elements;
    chunked chunks; /* not `elements` */
    part *part;
    size_t parts, room, settled;
} blame;

/* ---- parts ---- */

/* Number of POSITION in a box of COUNT. */
static uint64_t number_of(unsigned rank, const uint64_t position[], const uint64_t count[])
{
    uint64_t number = 0;

    for (unsigned d = 0; d < rank; d++)
        number = number * count[d] + position[d];
    return number;
}

static void chunk_grid(const blame *b, uint64_t grid[])
{
    for (unsigned d = 0; d < b->rank; d++)
        grid[d] = cow_grid_chunks_along(b->chunks.root.extent[d], b->chunks.root.chunk[d]);
}

static void settle(blame *b, size_t i)
{
    if (b->part[i].row == SIZE_MAX) {
        b->part[i].row = b->row;
        b->settled++;
    }
}

/* The part of CHUNK; SIZE_MAX: it is none of those that are told. */
static size_t part_of(const blame *b, const uint64_t chunk[])
{
    uint64_t grid[COW_MAX_RANK], place;

    chunk_grid(b, grid);
    for (unsigned d = 0; d < b->rank; d++)
        if (chunk[d] >= grid[d])
            return SIZE_MAX;
    return cow_map_get(&b->chunks.place, number_of(b->rank, chunk, grid), &place) ? (size_t)place : SIZE_MAX;
}

/* A chunk for which two versions name different slots. What slots and digests tell is settled; what they do not, is to be compared. */
static int look_at_chunk(void *context, const uint64_t chunk[], const uint64_t entry[2])
{
    blame *b = context;
    const size_t place = part_of(b, chunk);
    int same = 0;

    if (place == SIZE_MAX || b->part[place].row != SIZE_MAX)
        return 0;
    for (unsigned d = 0; d < b->rank; d++)
        if (cow_times(chunk[d] + 1, b->chunks.root.chunk[d]) > b->chunks.grown[d]) {
            settle(b, place); /* the one before does not have all of it */
            return 0;
        }
    if (entry[0] == COW_HOLE || entry[1] == COW_HOLE)
        settle(b, place);
    else if (cow_is_composed(entry[0]) || cow_is_composed(entry[1]))
        b->chunks.unsure = true;
    else if (b->chunks.refers)
        b->chunks.unsure = true;
    else if ((same = cli_slots_same(b->chunks.slots, b->chunks.root.pool, entry[0], entry[1])) == 0)
        settle(b, place);
    return same < 0 ? -1 : 0;
}

/* Is it one of those that are to be compared? */
static bool is_unsure(void *context, const uint64_t chunk[], const uint64_t entry[2])
{
    const blame *b = context;
    const size_t place = part_of(b, chunk);

    (void)entry;
    return place != SIZE_MAX && b->part[place].row == SIZE_MAX;
}

static void settle_chunk_of(void *context, const hsize_t position[])
{
    blame *b = context;
    uint64_t chunk[COW_MAX_RANK];
    size_t place;

    for (unsigned d = 0; d < b->rank; d++)
        chunk[d] = position[d] / b->chunks.root.chunk[d];
    if ((place = part_of(b, chunk)) != SIZE_MAX)
        settle(b, place);
}

static void settle_element(void *context, const hsize_t position[])
{
    blame *b = context;
    uint64_t inside[H5S_MAX_RANK], count[H5S_MAX_RANK];

    for (unsigned d = 0; d < b->rank; d++) {
        inside[d] = position[d] - b->start[d];
        count[d] = b->count[d];
    }
    settle(b, (size_t)number_of(b->rank, inside, count));
}

static void settle_rest(blame *b)
{
    for (size_t i = 0; i < b->parts; i++)
        settle(b, i);
}

static void add_part(blame *b, uint64_t number)
{
    CLI_RESERVE(b->part, b->room, b->parts, 1);
    b->part[b->parts++] = (part){number, SIZE_MAX};
}

static int add_chunk(void *context, const uint64_t chunk[], uint64_t slot)
{
    blame *b = context;
    uint64_t grid[COW_MAX_RANK], number;

    (void)slot;
    chunk_grid(b, grid);
    number = number_of(b->rank, chunk, grid);
    cli_map_put(&b->chunks.place, number, b->parts);
    add_part(b, number);
    return 0;
}

/* ---- what is looked at ---- */

static int cannot(const blame *b, const char *why)
{
    return cli_fail("'%s' of '%s' cannot be looked at: %s", b->path, b->now.file.name, why);
}

/* The box of elements, from the options: parts of their text, or all. */
static int find_box(blame *b, const char *start, const char *count)
{
    const char *const option[2] = {start, count};
    uint64_t all = 1;

    for (int i = 0; i < 2; i++) {
        const char *text = option[i];
        hsize_t *to = i == 0 ? b->start : b->count;
        for (unsigned d = 0; d < b->rank; d++) {
            char *end = NULL;
            errno = 0;
            to[d] = text != NULL ? strtoull(text, &end, 10) : i == 0 ? 0 : b->extent[d] - b->start[d];
            if (text != NULL && (*text < '0' || *text > '9' || errno != 0 || *end != (d + 1 < b->rank ? ',' : '\0')))
                return cli_usage("blame", "%s wants %u numbers with ',' between them, as many as '%s' has dimensions",
                                 i == 0 ? "--start" : "--count", b->rank, b->path);
            if (i == 0 && to[d] > 0 && to[d] >= b->extent[d])
                return cli_usage("blame", "the box begins behind the dataset, which has %llu elements in dimension %u",
                                 (unsigned long long)b->extent[d], d);
            if (i == 1 && text != NULL && to[d] == 0)
                return cli_usage("blame", "the box has no elements: --count is 0 in dimension %u", d);
            if (i == 1 && to[d] > b->extent[d] - b->start[d])
                return cli_usage("blame", "the box is larger than the dataset, which has %llu elements in dimension %u",
                                 (unsigned long long)b->extent[d], d);
            text = text == NULL ? NULL : end + 1;
        }
        if (text != NULL && b->rank == 0)
            return cli_usage("blame", "'%s' is one value: it has no box", b->path);
    }
    for (unsigned d = 0; d < b->rank; d++)
        all = cow_times(all, b->count[d]);
    if (all > MOST)
        return cli_usage(
            "blame", "%" PRIu64 " elements are too many to be told apart: name fewer with --start and --count", all);
    for (uint64_t i = 0; i < all; i++)
        add_part(b, i);
    return 0;
}

static int find_chunks(blame *b)
{
    uint64_t grid[COW_MAX_RANK], all = 1, first[COW_MAX_RANK] = {0};
    hid_t type = H5Dget_type(b->dataset);
    cow_index *index;
    cow_grid shape;
    char why[600];
    int status = 0;

    chunk_grid(b, grid);
    for (unsigned d = 0; d < b->rank; d++)
        all = cow_times(all, grid[d]);
    if (all == UINT64_MAX) {
        cow_close(type);
        return cannot(b, "it has more chunks than can be counted: name a box with --start and --count");
    }
    cli_grid(&b->chunks.root, &shape);
    b->chunks.slots = cli_slots_new(&b->now.file);
    b->chunks.refers = type < 0 || cow_type_has(type, COW_PART_REFERENCES) != 0;
    if ((index = cow_index_open(b->now.index, &shape, &b->chunks.root)) == NULL ||
        (all > 0 && cow_index_visit(index, first, grid, add_chunk, b) < 0))
        status = cannot(b, cli_reason(why, sizeof why));
    if (index != NULL)
        cow_index_close(index);
    cow_close(type);
    return status;
}

/* The dataset in `now`, and what of it is to be told. */
static int open_dataset(blame *b, const char *start, const char *count)
{
    char *full = cli_state_path(&b->now, b->path), why[600];
    hid_t native = H5Oopen(b->now.file.id, full, H5P_DEFAULT), space = H5I_INVALID_HID;
    int found = -1, rank, status = CLI_FAILED;

    free(full);
    if (native < 0 || (b->dataset = H5Oopen(b->now.through, b->path, H5P_DEFAULT)) < 0)
        cannot(b, cli_reason(why, sizeof why));
    else if (H5Iget_type(native) != H5I_DATASET)
        cannot(b, "it is no dataset");
    else if ((found = cli_state_root(&b->now, native, &b->chunks.root)) < 0 || (space = H5Dget_space(b->dataset)) < 0 ||
             (rank = H5Sget_simple_extent_dims(space, b->extent, NULL)) < 0)
        cannot(b, cli_reason(why, sizeof why));
    else if (H5Sget_simple_extent_type(space) == H5S_NULL)
        cannot(b, "it has no elements");
    else {
        b->rank = (unsigned)rank;
        b->elements = found == 0 || start != NULL || count != NULL;
        status = b->elements ? find_box(b, start, count) : find_chunks(b);
    }
    cow_close(space);
    if (native >= 0)
        H5Oclose(native);
    return status;
}

/* ---- back through the versions ---- */

/* The address of the dataset's snapshot in the version of ROW; UINT64_MAX: there is none. */
static uint64_t snapshot_in(const blame *b, size_t row)
{
    H5O_type_t type;
    uint64_t address = cli_version_object(&b->now.file, &b->rows[row], b->path, &type);

    return address != UINT64_MAX && type == H5O_TYPE_DATASET ? address : UINT64_MAX;
}

static int root_at(const blame *b, uint64_t address, cow_root *root)
{
    hid_t dataset = H5Oopen_by_token(b->now.file.id, cow_token(address));
    int found = dataset < 0 ? -1 : cli_state_root(&b->now, dataset, root);

    if (dataset >= 0)
        H5Dclose(dataset);
    return found;
}

/* Where part NUMBER begins, in elements. */
static void place_of(const blame *b, uint64_t number, uint64_t position[])
{
    uint64_t grid[COW_MAX_RANK];

    if (!b->elements)
        chunk_grid(b, grid);
    for (unsigned d = b->rank; d-- > 0;) {
        uint64_t n = b->elements ? b->count[d] : grid[d];
        position[d] = b->elements ? b->start[d] + number % n : number % n * b->chunks.root.chunk[d];
        number /= n;
    }
}

/* The last element along D of the part that begins at POSITION. */
static uint64_t last_of(const blame *b, unsigned d, uint64_t position)
{
    if (b->elements)
        return position;
    return b->chunks.root.extent[d] - position < b->chunks.root.chunk[d] ? b->chunks.root.extent[d] - 1
                                                                         : position + b->chunks.root.chunk[d] - 1;
}

/* Elements that PARENT does not have were written by the version after it. */
static void settle_outside(blame *b, unsigned rank, const hsize_t extent[])
{
    uint64_t position[COW_MAX_RANK];

    for (size_t i = 0; i < b->parts; i++) {
        bool outside = false;
        place_of(b, b->part[i].number, position);
        for (unsigned d = 0; d < rank; d++)
            outside = outside || last_of(b, d, position[d]) >= extent[d];
        if (outside)
            settle(b, i);
    }
}

static void drop(cli_diff *diff, json_object *item)
{
    (void)diff;
    json_object_put(item);
}

static void close_later(blame *b)
{
    if (b->dataset >= 0)
        H5Oclose(b->dataset);
    b->dataset = H5I_INVALID_HID;
    if (b->later.root != NULL)
        cli_state_close(&b->later);
}

/* What the version of b->row gave its value to, after the one of PARENT. */
static int compare_elements(blame *b, size_t parent, const cow_root *root[2])
{
    cli_state before = {.through = H5I_INVALID_HID};
    cli_diff diff = {.absolute = -1,
                     .relative = -1,
                     .same_file = true,
                     .before = &before,
                     .after = b->later.root == NULL ? &b->now : &b->later,
                     .tell = drop,
                     .start = b->rank == 0 || !b->elements ? NULL : b->start,
                     .count = b->count,
                     .element = b->elements ? settle_element : settle_chunk_of,
                     .chunk = b->elements ? NULL : is_unsure,
                     .context = b};
    hid_t dataset[2] = {H5I_INVALID_HID, b->dataset}, space = H5I_INVALID_HID;
    json_object *item = json_object_new_object(), *trouble;
    hsize_t extent[H5S_MAX_RANK];
    char why[600];
    int rank, status = CLI_FAILED;

    if (cli_state_version(&before, &b->now, b->rows[parent].name) != 0)
        goto done;
    if ((dataset[0] = H5Oopen(before.through, b->path, H5P_DEFAULT)) < 0 || (space = H5Dget_space(dataset[0])) < 0 ||
        (rank = H5Sget_simple_extent_dims(space, extent, NULL)) < 0) {
        cannot(b, cli_reason(why, sizeof why));
        goto done;
    }
    status = 0;
    if ((unsigned)rank != b->rank)
        settle_rest(b);
    else {
        cli_diff_datasets(&diff, item, dataset, root);
        if (b->elements || !b->chunks.unsure) /* else the index has told it */
            settle_outside(b, b->rank, extent);
        if (json_object_object_get_ex(item, "type", &trouble))
            settle_rest(b);
        if (json_object_object_get_ex(item, "trouble", &trouble))
            status = cannot(b, json_object_get_string(json_object_array_get_idx(trouble, 0)));
    }
done:
    cli_diff_done(&diff);
    json_object_put(item);
    cow_close(space);
    close_later(b);
    b->later = before;
    b->dataset = dataset[0];
    return status;
}

/* The version of b->row, and the one before it. */
static int compare_versions(blame *b, size_t parent, uint64_t address[2])
{
    cow_root kept[2];
    const cow_root *root[2] = {NULL, NULL};
    char why[600];

    for (int i = 0; i < 2; i++) {
        int found = root_at(b, address[i], &kept[i]);
        if (found < 0)
            return cannot(b, cli_reason(why, sizeof why));
        root[i] = found > 0 ? &kept[i] : NULL;
    }
    b->chunks.unsure = false;
    if (!b->elements && root[0] != NULL && root[1] != NULL && cli_diff_same_grid(root[0], root[1])) {
        for (unsigned d = 0; d < b->rank; d++)
            b->chunks.grown[d] = root[0]->extent[d] < root[1]->extent[d] ? root[0]->extent[d] : UINT64_MAX;
        if (cli_diff_index(b->now.index, root[0], root[1], look_at_chunk, b) < 0)
            return cannot(b, cli_reason(why, sizeof why));
        if (!b->chunks.unsure)
            return 0;
    }
    return compare_elements(b, parent, root);
}

static int go_back(blame *b)
{
    uint64_t address[2] = {UINT64_MAX, snapshot_in(b, b->row)};
    size_t parent;
    int status = 0;

    for (; status == 0 && b->settled < b->parts; b->row = parent) {
        parent = cli_version_parent(b->rows, b->row);
        address[0] = parent == SIZE_MAX ? UINT64_MAX : snapshot_in(b, parent);
        if (address[0] == UINT64_MAX)
            settle_rest(b);
        else if (address[0] != address[1])
            status = compare_versions(b, parent, address);
        address[1] = address[0];
    }
    return status;
}

/* ---- what is told ---- */

static int by_place(const void *a, const void *b)
{
    const part *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static void tell_run(const blame *b, size_t first, size_t last, json_object *list, cli_table *table, cli_clock clock)
{
    const cli_version *version = &b->rows[b->part[first].row];
    uint64_t from[COW_MAX_RANK], to[COW_MAX_RANK];
    char text[700];

    place_of(b, b->part[first].number, from);
    place_of(b, b->part[last].number, to);
    if (list != NULL) {
        json_object *item = json_object_new_object();
        json_object_object_add(item, "first", cli_json_dims(b->rank, from));
        json_object_object_add(item, "last", cli_json_dims(b->rank, to));
        json_object_object_add(item, b->elements ? "elements" : "chunks", json_object_new_uint64(last - first + 1));
        json_object_object_add(item, "version", cli_version_json(b->rows, b->part[first].row));
        json_object_array_add(list, item);
        return;
    }
    cli_table_cell(table, "%s", cli_shape(text, sizeof text, b->rank, from));
    cli_table_cell(table, "%s", cli_shape(text, sizeof text, b->rank, to));
    cli_table_cell(table, "%zu", last - first + 1);
    cli_table_cell(table, "%s", version->name);
    cli_table_cell(table, "%s", cli_time(text, version->time, clock, false));
    cli_table_cell(table, "%s", version->user);
    char *program = cli_escape(version->program), *message = cli_escape(version->message);
    cli_table_cell(table, "%.60s", program);
    cli_table_cell(table, "%s", message);
    free(program);
    free(message);
}

static int tell(blame *b, bool json, cli_clock clock)
{
    const char *const titles[] = {b->elements ? "first" : "first chunk at",
                                  b->elements ? "last" : "last chunk at",
                                  b->elements ? "elements" : "chunks",
                                  "version",
                                  "time",
                                  "user",
                                  "program",
                                  "message"};
    json_object *list = json ? json_object_new_array() : NULL;
    cli_table *table = json ? NULL : cli_table_open(8, titles);

    if (b->parts > 0)
        qsort(b->part, b->parts, sizeof *b->part, by_place);
    if (table != NULL)
        cli_table_right(table, 2);
    for (size_t i = 0, end; i < b->parts; i = end) {
        for (end = i + 1;
             end < b->parts && b->part[end].row == b->part[i].row && b->part[end].number == b->part[end - 1].number + 1;
             end++)
            ;
        tell_run(b, i, end - 1, list, table, clock);
    }
    if (json)
        return cli_json(list);
    if (b->parts == 0)
        puts("Nothing is stored of it.");
    else
        cli_table_print(table);
    cli_table_close(table);
    return cli_flush();
}

/* ---- the verb ---- */

static int blame_dataset(blame *b, const char *start, const char *count, bool json, cli_clock clock)
{
    int status = cli_state_rows(&b->now, &b->rows, &b->row_count, &b->row);

    if (status != 0 || (status = open_dataset(b, start, count)) != 0 || (status = go_back(b)) != 0)
        return status;
    return tell(b, json, clock);
}

int cli_blame(int argc, char **argv)
{
    static const struct option options[] = {
        {"start", required_argument, NULL, 's'}, {"count", required_argument, NULL, 'c'},
        {"utc", no_argument, NULL, 'u'},         {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
    blame b = {.dataset = H5I_INVALID_HID};
    const char *start = NULL, *count = NULL;
    cli_clock clock = CLI_LOCAL;
    bool json = false;
    int status;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":s:c:uh", options, NULL)) != -1;)
        switch (c) {
        case 's':
            start = optarg;
            break;
        case 'c':
            count = optarg;
            break;
        case 'u':
            clock = CLI_UTC;
            break;
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(cli_blame_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("blame", argv) : cli_no_option("blame", argv);
        }
    if (optind + 2 != argc)
        return cli_usage("blame", "it wants a file and the path of a dataset");
    b.path = argv[optind + 1];
    if (b.path[0] != '/')
        return cli_usage("blame", "the path of a dataset begins with '/': '%s'", b.path);
    cli_hdf5_start();
    if (cli_state_open(&b.now, "blame", argv[optind], NULL) != 0)
        return CLI_FAILED;
    status = blame_dataset(&b, start, count, json, clock);
    close_later(&b);
    if (b.chunks.slots != NULL)
        cli_slots_free(b.chunks.slots);
    cli_state_close(&b.now);
    cli_versions_free(b.rows, b.row_count);
    cow_map_free(&b.chunks.place);
    free(b.part);
    return status;
}
