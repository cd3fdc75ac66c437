/* Random types and values. */
#ifndef DIFFERENTIAL_VALUES_H
#define DIFFERENTIAL_VALUES_H

#include "run.h"

/* POINTERS: it may contain variable-length data. */
hid_t random_type(int depth, bool pointers);
/* A type in memory for values of file type FILE: the same, or one that HDF5 converts to and from. */
hid_t memory_type(hid_t file, bool same);
/* N random values for each side; few different ones at times, so that chunks are equal. Free with reclaim_both(). */
void random_values(hid_t type, size_t n, void *values[2]);
void reclaim(hid_t type, size_t n, void *values);
void reclaim_both(hid_t type, size_t n, void *values[2]);

#endif
