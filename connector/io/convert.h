/* Type conversion and data transforms of a transfer, done by the HDF5 library on packed elements. Private to io/. */
#ifndef COW_CONVERT_H
#define COW_CONVERT_H

#include "io/plan.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    COW_BACKGROUND_NONE,
    COW_BACKGROUND_SPACE,   /* the conversion wants a second buffer, whatever is in it */
    COW_BACKGROUND_CONTENT, /* which must hold what the destination holds before (compound subsets) */
} cow_background;

typedef struct cow_conversion {
    hid_t from, to, dxpl;
    hid_t mem_type;
    size_t from_size, to_size, size; /* bytes of an element; size: the larger */
    bool write;
    bool needed;    /* false: the bytes in memory are the bytes in the file */
    bool transform; /* dxpl has a data transform */
    bool same;      /* only the transform is left to do */
    cow_background background;
} cow_conversion;

/* Does DXPL ask for a data transform? */
bool cow_conversion_transforms(hid_t dxpl);
/* KNOWN: FILE_TYPE and MEM_TYPE are known to be equal. FILE_TYPE is located in memory, its elements have FILE_SIZE bytes. The ids are borrowed. */
int cow_conversion_open(cow_conversion *conversion, hid_t file_type, size_t file_size, hid_t mem_type, bool known,
                        hid_t dxpl, bool write);
/* A conversion between compounds that only picks members, or puts them elsewhere, without changing them: PART is set to what is to be
 * copied, and how many these are is returned. 0: HDF5 has to convert. This asks HDF5 much, so it pays for many elements only. */
#define COW_CONVERSION_PARTS 16
size_t cow_conversion_parts(const cow_conversion *conversion, cow_element_part part[COW_CONVERSION_PARTS]);
/* The fill value of a dataset without any storage is read as it is. */
void cow_conversion_without_transform(cow_conversion *conversion);
/* Convert N packed elements in place; PACKED has room for n * size, BACKGROUND for n * to_size (or is NULL). */
int cow_conversion_run(const cow_conversion *conversion, size_t n, void *packed, void *background);

/* Read N elements of MEM_TYPE that are all FILL, as HDF5 gives them for a dataset that was never written: pointers in
 * them are the application's. */
int cow_conversion_fill(hid_t type, const void *fill, hid_t mem_type, hid_t dxpl, size_t n, void *packed);

#endif
