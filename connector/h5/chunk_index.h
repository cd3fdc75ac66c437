/* Where the chunks of a dataset with one unlimited dimension are, from the bytes of the file: HDF5's extensible arrays (HDF5 File Format
 * Specification, VII.D). HDF5 tells the address of one chunk only by walking over all of them. */
#ifndef COW_CHUNK_INDEX_H
#define COW_CHUNK_INDEX_H

#include "h5/header.h"

typedef struct cow_chunk_index cow_chunk_index;

/* The array at ADDRESS; FILTERED: its chunks have sizes of their own; SUMMED: who reads a chunk compares it with a checksum. Then the first place that is
 * looked for in a large block of them is read alone: to compare a thousand with their checksum would take longer than all else. SOURCE outlives it. 1; 0: not
 * known here, or no memory; -1: recorded. */
int cow_chunk_index_open(const cow_source *source, uint64_t address, bool filtered, bool summed,
                         cow_chunk_index **index);
void cow_chunk_index_close(cow_chunk_index *index); /* NULL does nothing */

typedef struct cow_chunk_place {
    uint64_t address; /* UINT64_MAX: it was never stored */
    uint64_t size;    /* in the file, where chunks are filtered; else 0 */
    uint32_t mask;    /* of the filters that were left out */
} cow_chunk_place;
/* Of the chunk with that NUMBER. As above; 0 also where bytes are damaged. */
int cow_chunk_index_find(cow_chunk_index *index, uint64_t number, cow_chunk_place *place);

/* In an array without filters, which HDF5 has not read: whether the chunk NUMBER has a place, or else can be given one, which it then is. 1 and *ADDRESS, UINT64_MAX:
 * it has none; 0: HDF5 has to make a block first; -1: recorded. */
int cow_chunk_index_may_put(cow_chunk_index *index, uint64_t number, uint64_t *address);
int cow_chunk_index_put(cow_chunk_index *index, uint64_t number, uint64_t address, cow_header_writer *write,
                        void *context);

#endif
