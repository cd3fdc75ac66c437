/* Arrays whose elements HDF5 must store itself: variable-length data and new-style references. Private to io/.
 *
 * A chunk that is written gets a slot of its own on the first touch after a commit, filled with what the chunk held if
 * it is only partly overwritten, and HDF5 writes the elements into it (rows [slot*c0, (slot+1)*c0) of raw_data) in the
 * application's own memory type. When it is stored it is read back, serialised and compared, unless it was written whole, as
 * its elements are in memory: the slot it had before and any known slot win over the new one. A sealed slot is never written.
 *
 * Serialised, an element is: its bytes where the type has no such part; a string's length in bytes (u64 little-endian)
 * and its bytes, as in versioned-hdf5; a sequence's number of elements (u64) and the elements; of a compound the
 * members in order, of an array its elements; a reference: kind, token, the name of another file, the attribute's name
 * or the selection.
 */
#ifndef COW_HEAP_H
#define COW_HEAP_H

#include "io/array.h"

/* Which elements of one chunk: a box in chunk coordinates, or places (row-major numbers in the chunk), in the order of
 * the packed buffer. */
typedef struct cow_heap_part {
    const uint64_t *chunk;
    const uint64_t *first, *count; /* the box, or NULL */
    const uint64_t *place;         /* else the places */
    uint64_t elements;
    bool whole; /* every element inside the extent */
} cow_heap_part;

/* Between a packed buffer of MEM_TYPE and one chunk, through HDF5. A read of a hole gives the fill value. */
int cow_heap_read(cow_array *array, const cow_heap_part *part, hid_t mem_type, hid_t dxpl, void *packed);
int cow_heap_write(cow_array *array, const cow_heap_part *part, hid_t mem_type, hid_t dxpl, const void *packed);
/* Overwrite with fill value what of CHUNK is outside the new extent, which array->extent already is. */
int cow_heap_cut(cow_array *array, const uint64_t chunk[]);
/* Store a chunk of fill value. */
int cow_heap_fill(cow_array *array, const uint64_t chunk[]);
/* What is known of the content of an entry is not so any more. */
struct cow_cached_chunk;
void cow_heap_forget(struct cow_cached_chunk *entry);
/* A call that moves elements of ARRAY never goes on: cow_chunk_cache_interrupted. */
void cow_heap_interrupted(const cow_array *array);
/* cow_array_store for heap arrays. */
int cow_heap_store(cow_array *array);

#endif
