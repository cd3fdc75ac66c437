/* A small hash map from 64-bit keys to 64-bit values (addresses to rows, pointers, states). Zero-initialise to start,
 * cow_map_free to end. Keys may be anything. */
#ifndef COW_MAP_H
#define COW_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cow_map_entry {
    uint64_t key, value;
    bool used;
} cow_map_entry;

typedef struct cow_map {
    cow_map_entry *entry;
    size_t capacity, count; /* capacity: 0 or a power of two */
} cow_map;

/* -1 COW_MEMORY. An old value is replaced. */
int cow_map_put(cow_map *map, uint64_t key, uint64_t value);
bool cow_map_get(const cow_map *map, uint64_t key, uint64_t *value);
/* The place of KEY's value, or NULL. Valid until the next put or remove. */
uint64_t *cow_map_at(const cow_map *map, uint64_t key);
void cow_map_remove(cow_map *map, uint64_t key);
void cow_map_free(cow_map *map);

#endif
