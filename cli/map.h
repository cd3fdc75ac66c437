/* A map from uint64 to uint64: addresses, offsets in the index, slots. */
#ifndef CLI_MAP_H
#define CLI_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_map {
    uint64_t *key, *value;
    bool *used;
    size_t room, count;
} cli_map; /* {0}: empty */

/* The place of KEY's value, or NULL. Valid until the next put. */
uint64_t *cli_map_get(const cli_map *map, uint64_t key);
/* Set it. true: KEY was not there before. */
bool cli_map_put(cli_map *map, uint64_t key, uint64_t value);
void cli_map_free(cli_map *map);

#endif
