/* Nodes of the index that a flush wrote, and that a later flush of the same transaction has written again. */
#include "history/superseded.h"

#include "base/error.h"
#include "history/internal.h"

#include <stdlib.h>
#include <string.h>

struct cow_superseded {
    cow_map node;    /* of this transaction: hash of (dataset, level, origin) -> offset */
    cow_map offsets; /* of those that have a successor */
    cow_map roots;   /* the root records among them, also those whose views have gone */
    bool keep;
};

cow_superseded *cow_superseded_new(void)
{
    return calloc(1, sizeof(cow_superseded));
}

static void forget(cow_superseded *s)
{
    cow_map_free(&s->node);
    cow_map_free(&s->offsets);
    cow_map_free(&s->roots);
    s->keep = false;
}

void cow_superseded_free(cow_superseded *superseded)
{
    if (superseded != NULL)
        forget(superseded);
    free(superseded);
}

int cow_superseded_note(cow_file *file, uint64_t dataset, unsigned level, const uint64_t origin[], unsigned rank,
                        uint64_t offset)
{
    cow_superseded *s = file->superseded;
    uint64_t place[COW_MAX_RANK + 2] = {dataset, level}, key, old;

    if (rank > 0)
        memcpy(place + 2, origin, rank * sizeof *origin);
    key = cow_checksum(place, sizeof place);
    if (cow_map_get(&s->node, key, &old) && old != offset &&
        ((level == COW_SUPERSEDED_ROOT && cow_map_put(&s->roots, old, 0) < 0) ||
         (!s->keep && cow_map_put(&s->offsets, old, 0) < 0)))
        return -1;
    return cow_map_put(&s->node, key, offset);
}

bool cow_superseded_has(const cow_file *file, uint64_t root)
{
    return cow_map_get(&file->superseded->roots, root, NULL);
}

void cow_superseded_keep(cow_file *file)
{
    file->superseded->keep = true;
}

void cow_superseded_remove(cow_file *file)
{
    cow_map *offsets = &file->superseded->offsets;
    char path[COW_PATH_MAX];

    for (size_t i = 0; i < offsets->capacity; i++) {
        if (!offsets->entry[i].used)
            continue;
        if (cow_views_path(file, path, offsets->entry[i].key) < 0 || cow_native_link_delete(file->loc, path) < 0)
            cow_error_clear();
    }
    cow_map_free(offsets);
}

void cow_superseded_forget(cow_file *file)
{
    forget(file->superseded);
}
