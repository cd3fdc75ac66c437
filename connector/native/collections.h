/* Objects of HDF5's global heaps from the bytes of the file: what strings and sequences point to, without asking HDF5 for each.
 *
 * HDF5 may have a newer state of a heap in memory than the file has, and the file may be damaged: so what is found here is only a
 * proposal, for callers that compare its checksum and else ask HDF5. Nothing here records an error. */
#ifndef COW_COLLECTIONS_H
#define COW_COLLECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COW_HEAP_ID 12 /* bytes of an object's name: address of its collection, number in it */

typedef struct cow_collections cow_collections;
/* FILE: native. NULL: its bytes cannot be had, since it has another driver than ours, or its addresses or lengths have other sizes
 * than usual; or there is no memory. What is read is kept until it is closed, so that is done soon. */
cow_collections *cow_collections_open(void *file);
void cow_collections_close(cow_collections *collections);
/* How long the file is: no object has more bytes. */
uint64_t cow_collections_end(const cow_collections *collections);
/* Is nothing named? */
static inline bool cow_collections_null(const uint8_t id[COW_HEAP_ID])
{
    uint64_t address;

    memcpy(&address, id, sizeof address);
    return address == 0;
}
/* The object, if it has SIZE bytes: until the next call. NULL: there is none, or it cannot be found so. */
const uint8_t *cow_collections_object(cow_collections *collections, const uint8_t id[COW_HEAP_ID], size_t size);

#endif
