/* Open addressing with linear probing, at most half full. See map.h. */
#include "map.h"

#include "common.h"

#include <stdlib.h>

static size_t place(const cli_map *map, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(hash ^ hash >> 32) & (map->room - 1);

    while (map->used[i] && map->key[i] != key)
        i = (i + 1) & (map->room - 1);
    return i;
}

uint64_t *cli_map_get(const cli_map *map, uint64_t key)
{
    if (map->room == 0)
        return NULL;
    size_t i = place(map, key);
    return map->used[i] ? &map->value[i] : NULL;
}

bool cli_map_put(cli_map *map, uint64_t key, uint64_t value)
{
    if (2 * (map->count + 1) > map->room) {
        cli_map old = *map;
        map->room = old.room == 0 ? 64 : 2 * old.room;
        map->key = cli_alloc(map->room, sizeof *map->key);
        map->value = cli_alloc(map->room, sizeof *map->value);
        map->used = cli_alloc(map->room, sizeof *map->used);
        map->count = 0;
        for (size_t i = 0; i < old.room; i++)
            if (old.used[i])
                cli_map_put(map, old.key[i], old.value[i]);
        cli_map_free(&old);
    }
    size_t i = place(map, key);
    bool new = !map->used[i];
    map->count += new;
    map->used[i] = true;
    map->key[i] = key;
    map->value[i] = value;
    return new;
}

void cli_map_free(cli_map *map)
{
    free(map->key);
    free(map->value);
    free(map->used);
    *map = (cli_map){0};
}
