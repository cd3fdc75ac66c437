/* What the object header of a dataset says, from the bytes of the file (header.h), without opening it: H5Dopen and H5Dget_create_plist cost
 * some hundred thousand instructions, most of them for property lists. What is not known here is left to HDF5. */
#ifndef COW_DATASET_HEADER_H
#define COW_DATASET_HEADER_H

#include "h5/header.h"

#define COW_DATASET_HEADER_RANK 32

typedef enum cow_dataset_header_layout {
    COW_DATASET_HEADER_CHUNKED, /* with one unlimited dimension, the first one */
    COW_DATASET_HEADER_VIRTUAL,
    COW_DATASET_HEADER_TREE, /* chunked, with a version 1 B-tree */
    COW_DATASET_HEADER_OTHER,
} cow_dataset_header_layout;

typedef enum cow_dataset_header_filters {
    COW_DATASET_HEADER_PLAIN,      /* none */
    COW_DATASET_HEADER_FLETCHER32, /* nothing but that */
    COW_DATASET_HEADER_FILTERED,   /* others */
} cow_dataset_header_filters;

typedef enum cow_dataset_header_fill {
    COW_DATASET_HEADER_DEFAULT,
    COW_DATASET_HEADER_UNDEFINED,
    COW_DATASET_HEADER_USER,
} cow_dataset_header_fill;

#define COW_DATASET_HEADER_TYPE 1024

typedef struct cow_dataset_header cow_dataset_header;
struct cow_dataset_header {
    uint64_t address; /* of the header */
    unsigned rank;
    uint64_t extent[COW_DATASET_HEADER_RANK], maximum[COW_DATASET_HEADER_RANK]; /* UINT64_MAX: unlimited */
    uint8_t type[COW_DATASET_HEADER_TYPE]; /* its message, as H5Tdecode takes it behind two bytes */
    size_t type_size;                      /* 0: it is named, or longer */
    cow_dataset_header_layout layout;
    cow_dataset_header_filters filters;
    cow_dataset_header_fill fill;
    unsigned fill_time;  /* as H5D_fill_time_t says it */
    unsigned chunk_rank; /* of one with a B-tree: as `rank` */
    uint64_t chunk[COW_DATASET_HEADER_RANK];
    bool usual, times;     /* attributes are kept as HDF5 does by default; times are kept */
    bool bare;             /* it has neither attributes nor a comment */
    bool whole_edges;      /* chunks that the extent cuts are not filtered */
    uint64_t element_size; /* in the file; of chunks */
    uint64_t index;        /* address of the extensible array, or B-tree, of chunks; UINT64_MAX: there are none */
    uint64_t heap;         /* collection of the mappings */
    uint32_t number;       /* and which object of it they are */
};

/* 1; 0: it is no dataset, or one that is not known here, or there is no memory; -1: recorded. */
int cow_dataset_header_read(const cow_source *source, uint64_t address, cow_dataset_header *described);

/* The same of the SIZE bytes of a header of one chunk. */
int cow_dataset_header_parse(const uint8_t *header, size_t size, cow_dataset_header *described);

/* The SIZE bytes of a header of one chunk, of a dataset of RANK dimensions that has a B-tree and no chunks, become those of one of that EXTENT and
 * MAXIMUM (UINT64_MAX: unlimited), whose B-tree is at INDEX, whose type is the named one at TYPE (UINT64_MAX: it is none), and whose times, where it
 * has any, are NOW (seconds since 1970). false: it is no such header. */
bool cow_dataset_header_fit(uint8_t *header, size_t size, unsigned rank, const uint64_t extent[],
                            const uint64_t maximum[], uint64_t index, uint64_t type, uint32_t now);

/* The fill value in such a header is of variable length, and its content object NUMBER 1 of the collection at FROM: it is at TO from now on.
 * false: it is not. */
bool cow_dataset_header_move_fill(uint8_t *header, size_t size, uint64_t from, uint64_t to);

/* The first mapping of a virtual dataset: source file and source dataset, each "" where it has SIZE bytes or more, or there is no mapping,
 * and how many there are. As above. */
int cow_dataset_header_source(const cow_source *source, const cow_dataset_header *described, size_t size, char file[],
                              char dataset[], uint64_t *mappings);

#endif
