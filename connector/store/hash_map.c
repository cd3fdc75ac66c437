/* Open addressing with linear probing; SHA-256 needs no further mixing. Contract: hash_map.h. */
#include "store/hash_map.h"

#include "base/bytes.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t no_hash[COW_HASH_SIZE];

static size_t home(const cow_hash_map *map, const uint8_t hash[COW_HASH_SIZE])
{
    return (size_t)cow_get64(hash) & (map->size - 1);
}

/* The place of HASH, or the empty one where it belongs. */
static size_t probe(const cow_hash_map *map, const uint8_t hash[COW_HASH_SIZE])
{
    size_t i = home(map, hash);

    while (map->place[i] != 0 && memcmp(map->hash[map->place[i] - 1], hash, COW_HASH_SIZE) != 0)
        i = (i + 1) & (map->size - 1);
    return i;
}

int cow_hash_map_reserve(cow_hash_map *map, uint64_t slots)
{
    uint64_t *old = map->place, *place, count = slots > map->first ? slots - map->first : 0;
    size_t old_size = map->size, size = old_size > 0 ? old_size : 64;

    if (COW_RESERVE(map->hash, map->room, 0, count) < 0)
        return -1;
    if (count < old_size / 4 * 3)
        return 0;
    while (count >= size / 4 * 3)
        size *= 2;
    if ((place = calloc(size, sizeof *place)) == NULL)
        return -1;
    map->place = place;
    map->size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i] != 0)
            map->place[probe(map, map->hash[old[i] - 1])] = old[i];
    free(old);
    return 0;
}

void cow_hash_map_insert(cow_hash_map *map, uint64_t slot, const uint8_t hash[COW_HASH_SIZE])
{
    size_t i;

    memcpy(map->hash[slot - map->first], hash, COW_HASH_SIZE);
    if (memcmp(hash, no_hash, COW_HASH_SIZE) == 0)
        return;
    i = probe(map, hash);
    if (map->place[i] == 0)
        map->place[i] = slot - map->first + 1;
}

void cow_hash_map_remove(cow_hash_map *map, uint64_t slot)
{
    uint8_t *hash = map->hash[slot - map->first];
    size_t mask = map->size - 1, hole = probe(map, hash);

    if (map->place[hole] != slot - map->first + 1)
        return; /* another slot with the same hash stands for it */
    /* Close the gap: move up whoever could no longer be found across it. */
    for (size_t i = (hole + 1) & mask; map->place[i] != 0; i = (i + 1) & mask) {
        size_t wanted = home(map, map->hash[map->place[i] - 1]);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            map->place[hole] = map->place[i];
            hole = i;
        }
    }
    map->place[hole] = 0;
    memset(hash, 0, COW_HASH_SIZE);
}

bool cow_hash_map_find(const cow_hash_map *map, const uint8_t hash[COW_HASH_SIZE], uint64_t *slot)
{
    uint64_t place = map->size == 0 ? 0 : map->place[probe(map, hash)];

    *slot = map->first + place - 1;
    return place != 0;
}

void cow_hash_map_free(cow_hash_map *map)
{
    free(map->place);
    free(map->hash);
    *map = (cow_hash_map){.first = map->first};
}
