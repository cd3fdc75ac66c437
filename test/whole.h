/* Whole files and trees, through the connector and natively: made, measured, compared. */
#ifndef WHOLE_H
#define WHOLE_H

#include "differential/compare.h"

#include <hdf5.h>

hid_t create_file(const char *name, hid_t fapl);
/* An access list, the caller's to close. */
hid_t with_degree(H5F_close_degree_t degree, bool native);
/* N numbers that no filter makes smaller, in chunks: a new dataset, or the one that is there. */
void write_numbers(hid_t at, const char *name, hsize_t n, hsize_t chunk, unsigned seed);
long long size_of(const char *name);
/* Two groups, or files, opened in whatever way; HOW the second one. What differs is printed, and fails the test. */
void same_tree(const char *what, reached how, hid_t native, hid_t found);
/* The file NATIVE as HDF5 itself reads it, and FOUND with FAPL; a name with '@' is a version's. */
void same_files(const char *what, const char *native, const char *found, hid_t fapl);

#endif
