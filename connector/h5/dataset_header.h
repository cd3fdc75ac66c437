/* What the object header of a dataset says, from the bytes of the file (header.h), without opening it: H5Dopen and H5Dget_create_plist cost
 * some hundred thousand instructions, most of them for property lists. What is not known here is left to HDF5. */
#ifndef COW_DATASET_HEADER_H
#define COW_DATASET_HEADER_H

#include "h5/header.h"

#define COW_DESCRIBED_RANK 32

typedef enum cow_described_layout {
    COW_DESCRIBED_CHUNKED, /* with one unlimited dimension, the first one */
    COW_DESCRIBED_VIRTUAL,
    COW_DESCRIBED_OTHER,
} cow_described_layout;

typedef enum cow_described_filters {
    COW_DESCRIBED_PLAIN,      /* none */
    COW_DESCRIBED_FLETCHER32, /* nothing but that */
    COW_DESCRIBED_FILTERED,   /* others */
} cow_described_filters;

typedef enum cow_described_fill {
    COW_DESCRIBED_DEFAULT,
    COW_DESCRIBED_UNDEFINED,
    COW_DESCRIBED_USER,
} cow_described_fill;

#define COW_DESCRIBED_TYPE 1024

typedef struct cow_described cow_described;
struct cow_described {
    uint64_t address; /* of the header */
    unsigned rank;
    uint64_t extent[COW_DESCRIBED_RANK], maximum[COW_DESCRIBED_RANK]; /* UINT64_MAX: unlimited */
    uint8_t type[COW_DESCRIBED_TYPE]; /* its message, as H5Tdecode takes it behind two bytes */
    size_t type_size;                 /* 0: it is named, or longer */
    cow_described_layout layout;
    cow_described_filters filters;
    cow_described_fill fill;
    unsigned fill_time; /* as H5D_fill_time_t says it */
    uint64_t chunk[COW_DESCRIBED_RANK];
    bool usual, times;     /* attributes are kept as HDF5 does by default; times are kept */
    bool bare;             /* it has neither attributes nor a comment */
    bool whole_edges;      /* chunks that the extent cuts are not filtered */
    uint64_t element_size; /* in the file; of chunks */
    uint64_t index;        /* address of the extensible array of chunks; UINT64_MAX: there are none */
    uint64_t heap;         /* collection of the mappings */
    uint32_t number;       /* and which object of it they are */
};

/* 1; 0: it is no dataset, or one that is not known here, or there is no memory; -1: recorded. */
int cow_described_read(const cow_source *source, uint64_t address, cow_described *described);

/* The first mapping of a virtual dataset: source file and source dataset, each "" where it has SIZE bytes or more, or there is no mapping,
 * and how many there are. As above. */
int cow_described_source(const cow_source *source, const cow_described *described, size_t size, char file[],
                         char dataset[], uint64_t *mappings);

#endif
