/* Open addressing with linear probing; removal shifts later entries back, so there are no tombstones. */
#include "base/map.h"

#include "base/error.h"

#include <stdlib.h>

static size_t home(const cow_map *map, uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return (size_t)(key >> 20) & (map->capacity - 1);
}

/* The entry of KEY, or the free one where it would go. */
static cow_map_entry *find(const cow_map *map, uint64_t key)
{
    size_t i = home(map, key);

    while (map->entry[i].used && map->entry[i].key != key)
        i = (i + 1) & (map->capacity - 1);
    return &map->entry[i];
}

int cow_map_put(cow_map *map, uint64_t key, uint64_t value)
{
    cow_map_entry *e;

    if (map->count * 2 >= map->capacity) {
        cow_map larger = {.capacity = map->capacity == 0 ? 16 : map->capacity * 2, .count = map->count};
        if ((larger.entry = calloc(larger.capacity, sizeof *larger.entry)) == NULL)
            return cow_error(COW_MEMORY, "no memory for a map of %zu entries", larger.capacity);
        for (size_t i = 0; i < map->capacity; i++)
            if (map->entry[i].used)
                *find(&larger, map->entry[i].key) = map->entry[i];
        free(map->entry);
        *map = larger;
    }
    e = find(map, key);
    if (!e->used)
        map->count++;
    *e = (cow_map_entry){.key = key, .value = value, .used = true};
    return 0;
}

bool cow_map_get(const cow_map *map, uint64_t key, uint64_t *value)
{
    const cow_map_entry *e;

    if (map->capacity == 0 || !(e = find(map, key))->used)
        return false;
    if (value != NULL)
        *value = e->value;
    return true;
}

uint64_t *cow_map_at(const cow_map *map, uint64_t key)
{
    cow_map_entry *e;

    return map->capacity == 0 || !(e = find(map, key))->used ? NULL : &e->value;
}

void cow_map_remove(cow_map *map, uint64_t key)
{
    size_t hole, i;

    if (map->capacity == 0 || !find(map, key)->used)
        return;
    hole = (size_t)(find(map, key) - map->entry);
    map->entry[hole].used = false;
    map->count--;
    for (i = (hole + 1) & (map->capacity - 1); map->entry[i].used; i = (i + 1) & (map->capacity - 1)) {
        size_t want = home(map, map->entry[i].key);
        /* An entry may move back into the hole when its home is not between the hole and where it is. */
        if (((i - want) & (map->capacity - 1)) >= ((i - hole) & (map->capacity - 1))) {
            map->entry[hole] = map->entry[i];
            map->entry[i].used = false;
            hole = i;
        }
    }
}

void cow_map_free(cow_map *map)
{
    free(map->entry);
    *map = (cow_map){0};
}
