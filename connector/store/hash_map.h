/* Which slot has a hash: of all slots from some number on, in memory. */
#ifndef COW_HASH_MAP_H
#define COW_HASH_MAP_H

#include "base/digest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise to start, with `first`; cow_hash_map_free to end, which leaves `first`. The rest is hash_map.c's. */
typedef struct cow_hash_map {
    uint64_t first;                 /* slots before are not in it */
    uint64_t *place;                /* slot - first + 1; 0 is empty */
    size_t size;                    /* a power of two, or 0 */
    uint8_t (*hash)[COW_HASH_SIZE]; /* by slot - first */
    size_t room;
} cow_hash_map;

/* Room for slots below SLOTS, so that inserting them cannot fail. -1, without an error on the stack: no memory. */
int cow_hash_map_reserve(cow_hash_map *map, uint64_t slots);
/* SLOT must be below the reserved number, and not before `first`. A hash that is there already keeps its slot; zeros are none. */
void cow_hash_map_insert(cow_hash_map *map, uint64_t slot, const uint8_t hash[COW_HASH_SIZE]);
/* Of a slot that was inserted, or has room. */
void cow_hash_map_remove(cow_hash_map *map, uint64_t slot);
bool cow_hash_map_find(const cow_hash_map *map, const uint8_t hash[COW_HASH_SIZE], uint64_t *slot);
void cow_hash_map_free(cow_hash_map *map);

#endif
