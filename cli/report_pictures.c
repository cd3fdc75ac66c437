/* Some datasets before and after they last changed, as numbers from which the page makes pictures. See report.h.
 *
 * A picture is the last two dimensions of a dataset, or its only one, at most SIDE points along each: of longer ones every
 * n-th is taken. Of further dimensions the place is taken where the two states differ first, as their indexes tell.
 */
#include "report.h"

#include "base/ids.h"
#include "diff.h"

#include <openssl/evp.h>

#include <stdlib.h>
#include <string.h>

#define SIDE 192 /* points of a picture along a dimension, */
#define LINE 600 /* and of a line */

typedef struct slice {
    unsigned rank;
    hsize_t extent[COW_MAX_RANK], start[COW_MAX_RANK], stride[COW_MAX_RANK], count[COW_MAX_RANK];
} slice;

/* A dataset, and the rows of the log from where and to where it changed last. */
typedef struct subject {
    const char *path;
    size_t changed;
    bool before; /* it was there */
} subject;

/* ---- which datasets ---- */

static int by_last_change(const void *a, const void *b)
{
    const subject *x = a, *y = b;

    return x->changed != y->changed ? (x->changed < y->changed) - (x->changed > y->changed) : strcmp(x->path, y->path);
}

static const char *member(json_object *item, const char *key)
{
    return json_object_get_string(json_object_object_get(item, key));
}

/* The row of the version that the newest state is, or was made of; SIZE_MAX: there is none. */
static size_t newest_row(const cli_report *r)
{
    const cli_states *s = &r->states;
    size_t row =
        r->newest.name == NULL ? s->version_count : cli_version_row(s->versions, s->version_count, r->newest.name);

    return row < s->version_count ? row : cli_version_before(s->versions, s->version_count);
}

/* Of each version: is it the newest, or one that the newest comes from? Others were undone. free() it. */
static bool *line_of_newest(const cli_report *r)
{
    bool *line = cli_alloc(r->states.version_count, sizeof *line);

    for (size_t row = newest_row(r); row != SIZE_MAX; row = cli_version_parent(r->states.versions, row))
        line[row] = true;
    return line;
}

static bool is_there(const cli_report *r, const char *path)
{
    const size_t row = newest_row(r);
    const bool head = r->newest.name == NULL || row == SIZE_MAX;

    return cli_graph_find(&r->states.graph, head ? r->states.head : r->states.root[row], path) != SIZE_MAX;
}

/* The last change of ITEM on the way to the newest state: its place in the list of changes; 0: there is none. */
static size_t last_change(json_object *told, const bool line[])
{
    size_t n = json_object_array_length(told);

    while (n > 0 && !line[json_object_get_uint64(json_object_array_get_idx(told, n - 2))])
        n -= 2;
    return n;
}

/* Datasets that the newest state has. *LIST: free(). */
static size_t subjects(const cli_report *r, json_object *changes, subject **list)
{
    size_t rows = json_object_array_length(changes), count = 0;
    bool *line = line_of_newest(r);

    *list = cli_alloc(rows, sizeof **list);
    for (size_t i = 0; i < rows; i++) {
        json_object *item = json_object_array_get_idx(changes, i), *told = json_object_object_get(item, "changes");
        const size_t n = strcmp(member(item, "kind"), "dataset") == 0 ? last_change(told, line) : 0;
        const char *what = n == 0 ? "removed" : json_object_get_string(json_object_array_get_idx(told, n - 1));

        if (strcmp(what, "removed") != 0 && is_there(r, cli_report_path(item)))
            (*list)[count++] =
                (subject){cli_report_path(item), (size_t)json_object_get_uint64(json_object_array_get_idx(told, n - 2)),
                          strcmp(what, "changed") == 0};
    }
    free(line);
    if (count > 0)
        qsort(*list, count, sizeof **list, by_last_change);
    return count;
}

/* ---- numbers ---- */

/* 1: DATASET holds real numbers in one dimension or more, and *S has its extent; 0: another kind; -1. */
static int look(hid_t dataset, slice *s)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);
    int rank = space < 0 ? -1 : H5Sget_simple_extent_ndims(space), status = -1;

    if (type >= 0 && rank >= 0 && rank <= COW_MAX_RANK) {
        s->rank = (unsigned)rank;
        status = rank > 0 && (class == H5T_INTEGER || class == H5T_FLOAT);
        if (status > 0 && H5Sget_simple_extent_dims(space, s->extent, NULL) < 0)
            status = -1;
        for (unsigned d = 0; status > 0 && d < s->rank; d++)
            status = s->extent[d] > 0;
    }
    cow_close(space, type);
    return status;
}

static int first_chunk(void *context, const uint64_t chunk[], const uint64_t entry[2])
{
    (void)entry;
    memcpy(context, chunk, COW_MAX_RANK * sizeof *chunk);
    return 1;
}

static int root_of(const cli_state *state, const char *path, cow_root *root)
{
    char *native = cli_state_path(state, path);
    hid_t dataset = H5Dopen2(state->file.id, native, H5P_DEFAULT);
    int found = dataset < 0 ? -1 : cli_state_root(state, dataset, root);

    cow_close(dataset);
    free(native);
    return found;
}

/* Where the slice lies in the dimensions that it does not show. */
static void choose_place(const cli_state *before, const cli_state *after, const char *path, slice *s)
{
    uint64_t chunk[COW_MAX_RANK] = {0};
    cow_root root[2];

    if (s->rank < 3 || before == NULL || root_of(before, path, &root[0]) <= 0 || root_of(after, path, &root[1]) <= 0 ||
        root[0].pool != root[1].pool || root[0].rank != root[1].rank || root[1].rank != s->rank ||
        memcmp(root[0].chunk, root[1].chunk, s->rank * sizeof *root[0].chunk) != 0 ||
        memcmp(root[0].maximum, root[1].maximum, s->rank * sizeof *root[0].maximum) != 0 ||
        cli_diff_index(after->index, &root[0], &root[1], first_chunk, chunk) <= 0) {
        H5Eclear2(H5E_DEFAULT);
        return;
    }
    for (unsigned d = 0; d + 2 < s->rank; d++) {
        uint64_t at = cow_times(chunk[d], root[1].chunk[d]);
        s->start[d] = at < s->extent[d] ? at : 0;
    }
}

static void choose_points(slice *s)
{
    const hsize_t most = s->rank == 1 ? LINE : SIDE;

    for (unsigned d = 0; d < s->rank; d++) {
        bool shown = d + 2 >= s->rank;
        s->stride[d] = shown ? s->extent[d] / most + (s->extent[d] % most != 0) : 1;
        s->count[d] = shown ? (s->extent[d] - 1) / s->stride[d] + 1 : 1;
    }
}

static json_object *base64(const float *value, size_t count)
{
    size_t size = 4 * count;
    unsigned char *bytes = cli_alloc(size, 1), *text = cli_alloc(size / 3 * 4 + 8, 1);
    json_object *told;

    for (size_t i = 0; i < count; i++) { /* little-endian, whatever this machine is */
        uint32_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        for (unsigned k = 0; k < 4; k++)
            bytes[4 * i + k] = (unsigned char)(bits >> 8 * k);
    }
    EVP_EncodeBlock(text, bytes, (int)size);
    told = json_object_new_string((const char *)text);
    free(text);
    free(bytes);
    return told;
}

/* The points of the slice; NULL: HDF5's error. */
static json_object *points(hid_t dataset, const slice *s)
{
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple((int)s->rank, s->count, NULL);
    size_t count = s->rank == 1 ? s->count[0] : s->count[s->rank - 2] * s->count[s->rank - 1];
    float *value = cli_alloc(count, sizeof *value);
    json_object *told = NULL;

    if (space >= 0 && memory >= 0 &&
        H5Sselect_hyperslab(space, H5S_SELECT_SET, s->start, s->stride, s->count, NULL) >= 0 &&
        H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, value) >= 0)
        told = base64(value, count);
    free(value);
    cow_close(memory, space);
    return told;
}

/* ---- one picture ---- */

static bool same_extent(const slice *a, const slice *b)
{
    return a->rank == b->rank && memcmp(a->extent, b->extent, a->rank * sizeof *a->extent) == 0;
}

static void tell_state(json_object *item, const char *key, hid_t dataset, const slice *s, const char *version)
{
    json_object *side = json_object_new_object(), *told = points(dataset, s);
    uint64_t shape[COW_MAX_RANK];

    for (unsigned d = 0; d < s->rank; d++)
        shape[d] = s->extent[d];
    json_object_object_add(side, "version", version == NULL ? NULL : cli_json_text(version));
    json_object_object_add(side, "shape", cli_json_dims(s->rank, shape));
    json_object_object_add(side, "height", json_object_new_uint64(s->rank == 1 ? 1 : s->count[s->rank - 2]));
    json_object_object_add(side, "width", json_object_new_uint64(s->count[s->rank - 1]));
    json_object_object_add(side, "values", told);
    if (told != NULL)
        json_object_object_add(item, key, side);
    else
        json_object_put(side);
}

static json_object *describe(const subject *of, const slice *s)
{
    json_object *item = json_object_new_object(), *place = json_object_new_array();

    json_object_object_add(item, "path", cli_json_text(of->path));
    json_object_object_add(item, "changed", json_object_new_uint64(of->changed));
    for (unsigned d = 0; d + 2 < s->rank; d++)
        json_object_array_add(place, json_object_new_uint64(s->start[d]));
    json_object_object_add(item, "added", json_object_new_boolean(!of->before));
    json_object_object_add(item, "slice", place);
    json_object_object_add(item, "line", json_object_new_boolean(s->rank == 1));
    return item;
}

/* NULL: there is nothing to be shown of it. */
static json_object *picture(cli_report *r, const subject *of)
{
    size_t parent = of->before ? cli_version_parent(r->states.versions, of->changed) : SIZE_MAX;
    hid_t dataset[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
    cli_state before = {.through = H5I_INVALID_HID, .file = {.id = H5I_INVALID_HID}};
    json_object *item = NULL;
    slice now = {0}, then = {0};
    bool was = false;
    int shown;

    if ((dataset[1] = H5Dopen2(r->newest.through, of->path, H5P_DEFAULT)) < 0 || (shown = look(dataset[1], &now)) < 0) {
        cli_report_trouble(r, of->path);
        goto done;
    }
    if (shown == 0)
        goto done;
    if (parent != SIZE_MAX && cli_state_version(&before, &r->newest, r->states.versions[parent].name) == 0) {
        dataset[0] = H5Dopen2(before.through, of->path, H5P_DEFAULT);
        was = dataset[0] >= 0 && look(dataset[0], &then) > 0 && then.rank == now.rank;
        H5Eclear2(H5E_DEFAULT);
    }
    choose_place(was ? &before : NULL, &r->newest, of->path, &now);
    choose_points(&now);
    item = describe(of, &now);
    tell_state(item, "after", dataset[1], &now, r->newest.name);
    if (was) {
        memcpy(then.start, now.start, sizeof then.start);
        for (unsigned d = 0; d + 2 < then.rank; d++)
            was = was && then.start[d] < then.extent[d];
        if (same_extent(&then, &now))
            then = now;
        else
            choose_points(&then);
    }
    if (was)
        tell_state(item, "before", dataset[0], &then, r->states.versions[parent].name);
    if (json_object_object_get(item, "after") == NULL) {
        cli_report_trouble(r, of->path);
        json_object_put(item);
        item = NULL;
    }
done:
    cow_close(dataset[1], dataset[0]);
    cli_state_close(&before);
    return item;
}

json_object *cli_report_pictures(cli_report *report, json_object *changes, uint64_t most)
{
    json_object *list = json_object_new_array(), *item;
    subject *of;
    size_t count = subjects(report, changes, &of);

    for (size_t i = 0; i < count && json_object_array_length(list) < most; i++)
        if ((item = picture(report, &of[i])) != NULL)
            json_object_array_add(list, item);
    free(of);
    return list;
}
