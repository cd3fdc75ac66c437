/* How much memory an open file may take for what grows with it: shared by all of its pools and runs, which count here what they
 * hold.
 *
 *   half      rows and hashes of new slots that wait to be written (pool.h); when they are more, all pools write them out
 *   half      pages of runs that are kept (lookup.h)
 *   a quarter filters of runs (lookup.h)
 *
 * A quarter more is for nodes of each index (cow_index_keep). Runs are merged when nothing waits, in the half that is free then. */
#ifndef COW_ROOM_H
#define COW_ROOM_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cow_room {
    size_t bytes; /* in all */
    /* Write out what waits in all pools. NULL: nothing is written before the commit. */
    int (*write_out)(void *context);
    void *context;
    /* bytes that are taken */
    size_t waiting, pages, filters;
} cow_room;

static inline bool cow_room_is_full(const cow_room *room)
{
    return room->write_out != NULL && room->waiting >= room->bytes / 2;
}

/* How much of MOST may be added to what is taken. */
static inline size_t cow_room_left(size_t most, size_t taken)
{
    return taken < most ? most - taken : 0;
}

#endif
