/* Collections of HDF5's global heap (HDF5 File Format Specification, III.E): what strings, sequences and the mappings of virtual datasets are kept in. */
#ifndef COW_COLLECTION_H
#define COW_COLLECTION_H

#include "h5/header.h"

/* "GCOL", version, three bytes, size of all; number, references, four bytes, size of the object. */
#define COW_COLLECTION_SIGN   "GCOL"
#define COW_COLLECTION_HEADER 16
#define COW_COLLECTION_OBJECT 16

/* Bytes of the collection that begins with these; 0: none does. */
uint64_t cow_collection_size(const uint8_t header[COW_COLLECTION_HEADER]);

/* Where the objects of a collection are: AT[number] is the offset of the header, 0: there is none. As HDF5 does it: of two with one
 * number the second counts. AT has room for all numbers below *COUNT afterwards; it grows (COW_RESERVE). false: no collection. */
bool cow_collection_parse(const uint8_t *bytes, size_t size, uint32_t **at, size_t *room, size_t *count);

/* The object NUMBER of the collection at ADDRESS; free(*BYTES) in any case. 1; 0: it has none, or there is no memory; -1: recorded. */
int cow_collection_object(const cow_source *source, uint64_t address, uint32_t number, uint8_t **bytes, size_t *size);

#endif
