/* Virtual datasets from their bytes. HDF5 takes 350,000 instructions to make one and to close it: it copies the mappings seven times. What is
 * written here is what HDF5 writes of it: an object header (HDF5 File Format Specification, IV.A), and the mappings in a global heap (III.E).
 * How they get links: staged.h. */
#ifndef COW_VIRTUAL_H
#define COW_VIRTUAL_H

#include "native/native.h"

#include <stddef.h>
#include <stdint.h>

/* The datasets of one type that a commit makes in a file. */
typedef struct cow_virtual cow_virtual;

/* FILE: native, whose BYTES are known, or NULL. LOW: HDF5 of that version and later must be able to read them; older ones read longer mappings. HEAP:
 * elements have parts in a heap. NULL: HDF5 is to make them, since the bytes of this file cannot be had, or types are not as easily told as numbers and
 * strings, or there is no memory. */
cow_virtual *cow_virtual_open(void *file, const cow_native_bytes *bytes, H5F_libver_t low, hid_t type, bool heap);
void cow_virtual_close(cow_virtual *virtual); /* NULL does nothing. */

/* Boxes of a dataset, with RANK numbers each: where they start, and how many elements they have. */
typedef struct cow_box_list {
    unsigned rank;
    size_t count, start_room, size_room;
    uint64_t *start, *size;
} cow_box_list;
int cow_box_list_add(cow_box_list *boxes, const uint64_t start[], const uint64_t size[]);
void cow_box_list_free(cow_box_list *boxes);

/* A dataset begins, of no mappings yet. */
void cow_virtual_begin(cow_virtual *virtual);
/* The next mapping: the boxes SHOWN of the dataset are FROM those (NULL: all) of the dataset SOURCE in the same file, in the order of elements. */
int cow_virtual_map(cow_virtual *virtual, const cow_box_list *shown, const char *source, const cow_box_list *from);
/* The dataset of EXTENT and MAXIMUM (NULL: it is EXTENT) with the mappings since it began, and the settings of DCPL, is written to *ADDRESS. 1; 0: HDF5 is to make
 * it; -1: recorded. Without a link its place is lost. */
int cow_virtual_put(cow_virtual *virtual, unsigned rank, const hsize_t extent[], const hsize_t maximum[], hid_t dcpl,
                    uint64_t *address);

#endif
