/* The five filters that h5cow runs itself: one stage of a pipeline, pure, on any thread. Used by io/codec.c. */
#ifndef COW_FILTERS_H
#define COW_FILTERS_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

#define COW_FILTER_LZF    32000
#define COW_FILTER_BLOSC  32001
#define COW_BLOSC_VALUES  7 /* revision, Blosc format, type size, chunk bytes, level, shuffle, codec */
#define COW_LZF_VALUES    3 /* revision, LZF version, chunk bytes */
#define COW_FILTER_VALUES 8
/* What h5py's lzf_filter.c puts in front of its parameters. */
#define COW_LZF_REVISION 4
#define COW_LZF_FORMAT   0x0105

/* A filter of a pipeline as the dcpl has it. */
typedef struct cow_filter {
    H5Z_filter_t id;
    bool optional;
    size_t count; /* parameters it has; only the first COW_FILTER_VALUES are kept */
    unsigned value[COW_FILTER_VALUES];
    char name[48];
} cow_filter;

bool cow_filter_ours(H5Z_filter_t id);
/* Largest result of encoding SIZE bytes. */
size_t cow_filter_bound(H5Z_filter_t id, size_t size);
/* Encode SIZE bytes into OUT, which has room for cow_filter_bound. Returns the bytes made; 0: the filter fails as
 * HDF5's own does (does not compress, bad parameters). */
size_t cow_filter_encode(const cow_filter *filter, const void *in, size_t size, void *out);
/* Decode SIZE bytes into OUT. Returns the bytes made; 0: damaged, more than CAPACITY, or a codec that is missing:
 * *WHY says which. UNCHECKED: a checksum is not compared. */
size_t cow_filter_decode(const cow_filter *filter, bool unchecked, const void *in, size_t size, void *out,
                         size_t capacity, const char **why);

#endif
