/* Selections of the HDF5 library as plain data: see selection.h. Read through public calls alone. The one thing they do
 * not tell, the offset that H5Soffset_simple adds, is found by comparing a hyperslab's start with its bounds.
 */
#include "io/selection.h"

#include "base/error.h"
#include "store/index.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_AT_ONCE 1024

static void select_nothing(cow_selection *selection)
{
    selection->elements = 0;
    selection->regular = true;
    for (unsigned d = 0; d < selection->rank; d++)
        selection->slab[d] = (cow_slab){.start = 0, .stride = 1, .count = 0, .block = 1};
}

static void select_all(cow_selection *selection)
{
    selection->regular = true;
    selection->elements = 1;
    for (unsigned d = 0; d < selection->rank; d++) {
        selection->elements = cow_times(selection->elements, selection->extent[d]);
        selection->slab[d] = (cow_slab){.start = 0,
                                        .stride = selection->extent[d] ? selection->extent[d] : 1,
                                        .count = 1,
                                        .block = selection->extent[d]};
    }
    if (selection->elements == 0)
        select_nothing(selection);
}

/* LOW: the first selected coordinates, the offset included. */
static int select_hyperslab(cow_selection *selection, hid_t space, const hsize_t low[])
{
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];

    if (H5Sget_regular_hyperslab(space, start, stride, count, block) < 0)
        return cow_error_native("cannot read the hyperslab of a dataspace");
    selection->regular = true;
    for (unsigned d = 0; d < selection->rank; d++) {
        cow_slab *slab = &selection->slab[d];

        if (count[d] == H5S_UNLIMITED || block[d] == H5S_UNLIMITED)
            return cow_error(COW_USAGE, "a hyperslab without end in dimension %u cannot be read or written", d);
        *slab = (cow_slab){.start = low[d], .stride = stride[d], .count = count[d], .block = block[d]};
        if (slab->count > 1 && slab->stride == slab->block) { /* blocks that touch are one */
            slab->block *= slab->count;
            slab->count = 1;
        }
        if (slab->count == 1)
            slab->stride = slab->block;
    }
    return 0;
}

/* What is selected is the box from LOW to HIGH: true of most hyperslabs, and then nothing more need be asked. */
static bool select_box(cow_selection *selection, const hsize_t low[], const hsize_t high[])
{
    uint64_t elements = 1;

    for (unsigned d = 0; d < selection->rank; d++) {
        uint64_t n = high[d] - low[d] + 1;

        selection->slab[d] = (cow_slab){.start = low[d], .stride = n, .count = 1, .block = n};
        elements = cow_times(elements, n);
    }
    selection->regular = elements == selection->elements;
    return selection->regular;
}

/* Every call of the library costs, and small transfers are many: only what must be asked is. */
int cow_selection_from(cow_selection *selection, hid_t space, unsigned rank, const uint64_t extent[])
{
    hsize_t dims[H5S_MAX_RANK], low[H5S_MAX_RANK], high[H5S_MAX_RANK];
    H5S_sel_type kind;
    hssize_t elements;
    htri_t regular;
    int space_rank;

    selection->regular = false;
    selection->space = space;
    selection->rank = rank;
    memcpy(selection->extent, extent, rank * sizeof *extent);
    if (space == H5S_ALL) {
        select_all(selection);
        return 0;
    }
    if ((elements = H5Sget_select_npoints(space)) < 0)
        return cow_error_native("not a dataspace");
    /* where one element is, its bounds tell */
    kind = elements == 1 && rank > 0 ? H5S_SEL_HYPERSLABS : H5Sget_select_type(space);
    if (kind == H5S_SEL_ERROR)
        return cow_error_native("not a dataspace");
    if (kind == H5S_SEL_NONE || (kind == H5S_SEL_ALL && H5Sget_simple_extent_type(space) == H5S_NULL)) {
        select_nothing(selection);
        return 0;
    }
    if ((space_rank = H5Sget_simple_extent_dims(space, dims, NULL)) < 0)
        return cow_error_native("cannot read the extent of a dataspace");
    if ((unsigned)space_rank != rank)
        return cow_error(COW_USAGE, "the file dataspace has %d dimensions, the dataset has %u", space_rank, rank);
    for (unsigned d = 0; d < rank; d++)
        selection->extent[d] = dims[d];
    selection->elements = (uint64_t)elements;
    if (elements == 0) {
        select_nothing(selection);
        return 0;
    }
    if (rank > 0 && H5Sget_select_bounds(space, low, high) < 0)
        return cow_error_native("cannot read the bounds of a selection");
    for (unsigned d = 0; d < rank; d++)
        if (high[d] >= dims[d] || high[d] >= extent[d])
            return cow_error(
                COW_USAGE, "file selection+offset not within extent: element %llu of dimension %u, which has %llu",
                (unsigned long long)high[d], d, (unsigned long long)(dims[d] < extent[d] ? dims[d] : extent[d]));
    if (kind == H5S_SEL_ALL) {
        select_all(selection);
        return 0;
    }
    if (kind == H5S_SEL_HYPERSLABS && !select_box(selection, low, high)) {
        if ((regular = H5Sis_regular_hyperslab(space)) < 0)
            return cow_error_native("cannot look into a hyperslab");
        if (regular)
            return select_hyperslab(selection, space, low);
    }
    return 0;
}

bool cow_selection_numbered(const cow_selection *selection)
{
    uint64_t elements = 1;

    for (unsigned d = 0; d < selection->rank; d++)
        elements = cow_times(elements, selection->extent[d]);
    return elements < UINT64_MAX;
}

int cow_row_major(const void *a, const void *b, void *rank)
{
    const uint64_t *x = a, *y = b;
    unsigned last = *(const unsigned *)rank - 1, d = 0;

    while (d < last && x[d] == y[d])
        d++;
    return x[d] < y[d] ? -1 : x[d] > y[d];
}

struct cow_runs {
    hid_t iterator;
    hsize_t offset[RUNS_AT_ONCE];
    size_t length[RUNS_AT_ONCE];
};

cow_runs *cow_runs_open(hid_t space)
{
    cow_runs *runs = malloc(sizeof *runs);

    if (!runs) {
        cow_error(COW_MEMORY, "no memory to walk through a selection");
        return NULL;
    }
    /* Elements of one byte, so that the iterator counts in elements. */
    if ((runs->iterator = H5Ssel_iter_create(space, 1, 0)) < 0) {
        cow_error_native("cannot walk through a selection");
        free(runs);
        return NULL;
    }
    return runs;
}

void cow_runs_close(cow_runs *runs)
{
    if (!runs)
        return;
    H5Ssel_iter_close(runs->iterator);
    free(runs);
}

int cow_runs_next(cow_runs *runs, cow_run *run, size_t capacity, uint64_t elements, size_t *n)
{
    size_t got = 0, walked = 0;

    *n = 0;
    if (H5Ssel_iter_get_seq_list(runs->iterator, capacity < RUNS_AT_ONCE ? capacity : RUNS_AT_ONCE,
                                 elements < SIZE_MAX ? (size_t)elements : SIZE_MAX, &got, &walked, runs->offset,
                                 runs->length) < 0)
        return cow_error_native("cannot walk through a selection");
    for (size_t i = 0; i < got; i++)
        run[i] = (cow_run){.offset = runs->offset[i], .length = runs->length[i]};
    *n = got;
    return 0;
}
