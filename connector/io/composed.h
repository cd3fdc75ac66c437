/* Chunks of which a commit changed little: a base and pieces (store/pieces.h), instead of a slot. Private to io/.
 *
 * What is stored is compared with the chunk's base, piece by piece. Pieces that differ go to the pool of pieces, each distinct
 * one once; when most of them differ the chunk gets a slot, which is the base of what follows. A piece of an earlier version
 * is named again by its number, so composed chunks are never chained: reading one takes its base and its pieces.
 */
#ifndef COW_IO_COMPOSED_H
#define COW_IO_COMPOSED_H

#include "io/stored.h"

/* Store SAVE, whose chunk has the entry OLD in the index and has no equal chunk in the pool, as a composed chunk. 1: save->slot is
 * its entry, or save->settled: it is what it was; 0: it has to be stored whole; -1. In the order of chunks, on the calling thread. */
int cow_composed_save(cow_array *array, cow_save *save, uint64_t old);

/* The pieces of a composed chunk, on their way into memory. */
typedef struct cow_parts cow_parts;
/* On the calling thread: read what the composed ENTRY of CHUNK names. *BASE: the slot of its base, which the caller reads, or
 * COW_HOLE: cow_array_set_fill. NULL: the error. Free with free(). */
cow_parts *cow_composed_fetch(cow_array *array, const uint64_t chunk[], uint64_t entry, uint64_t *base);
/* On any thread: put them into BYTES, which holds the base. UNCHECKED: their checksums are not compared. */
int cow_composed_lay(const cow_array *array, const uint64_t chunk[], cow_parts *parts, bool unchecked, void *bytes);

#endif
