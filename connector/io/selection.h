/* What an application selected. What is regular is pure data, printable and testable without a file.
 *
 * A selection of a dataset's extent is a product of interval lists (everything that H5S_ALL and regular hyperslabs can
 * say), or a list of runs in selection order (irregular hyperslabs, points). Elements are numbered in selection order:
 * the position of an element in the packed buffer.
 */
#ifndef COW_SELECTION_H
#define COW_SELECTION_H

#include "base/digest.h"

#include <hdf5.h>

#include <stdbool.h>

/* One dimension of a regular hyperslab: count blocks of block elements, stride apart. Blocks that touch are given as
 * one; count 1 has stride = block; the offset of H5Soffset_simple is in start. Nothing selected: count 0 everywhere. */
typedef struct cow_slab {
    uint64_t start, stride, count, block;
} cow_slab;

typedef struct cow_selection {
    unsigned rank;
    /* Of the dataspace of the selection, in which runs count their offsets: it may differ from the dataset's, inside
     * which the selection is. */
    uint64_t extent[COW_MAX_RANK];
    uint64_t elements; /* selected */
    bool regular;      /* slab[] is valid; else the runs come from `space` by cow_runs_open */
    cow_slab slab[COW_MAX_RANK];
    hid_t space; /* borrowed from the caller */
} cow_selection;

/* SPACE: a dataspace id with a selection, or H5S_ALL, which stands for the whole of EXTENT. Checks that the selection
 * is inside EXTENT (HDF5's own message otherwise) and that ranks agree. */
int cow_selection_from(cow_selection *selection, hid_t space, unsigned rank, const uint64_t extent[]);

/* Do 64 bits count the elements of the extent? Else no linear offset tells which element is meant. */
bool cow_selection_numbered(const cow_selection *selection);

/* selection_plist.c. A dataspace of EXTENT with the selection that is in DXPL (H5S_PLIST), as points in row-major order;
 * the caller closes it. LABEL: whose, for messages. */
hid_t cow_selection_from_plist(unsigned rank, const uint64_t extent[], const char *label, hid_t dxpl);

/* For qsort_r: places as uint64_t[rank], RANK an unsigned. */
int cow_row_major(const void *a, const void *b, void *rank);

/* A sequence of elements that are neighbours both in the extent (row-major) and in the packed buffer. */
typedef struct cow_run {
    uint64_t offset; /* linear, elements from the start of the extent */
    uint64_t length; /* elements */
} cow_run;

/* Walk through any selection in selection order. */
typedef struct cow_runs cow_runs;
cow_runs *cow_runs_open(hid_t space); /* a real id, not H5S_ALL */
void cow_runs_close(cow_runs *runs);
/* At most CAPACITY runs of together at most ELEMENTS elements; *N 0 at the end. */
int cow_runs_next(cow_runs *runs, cow_run *run, size_t capacity, uint64_t elements, size_t *n);

#endif
