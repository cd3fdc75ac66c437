/* How much memory an open file may take for what grows with it: shared by all of its pools and runs, which count here what they
 * hold.
 *
 *   waiting   rows and hashes of new slots that wait to be written (pool.h): up to half of it. When they are more, or more than an
 *             eighth while there is no room, all pools write them out
 *   filters   of runs (lookup.h): up to a quarter
 *   pages     of runs that are kept: what the others leave
 *
 * A quarter more is for nodes of each index (cow_index_keep). Runs are merged when nothing waits. */
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
    size_t taken = room->waiting + room->pages + room->filters;

    return room->write_out != NULL &&
           (room->waiting >= room->bytes / 2 || (taken >= room->bytes && room->waiting >= room->bytes / 8));
}

static inline bool cow_room_has_filter(const cow_room *room, size_t bytes)
{
    return bytes <= room->bytes / 4 && room->filters <= room->bytes / 4 - bytes;
}

/* Beside what waits, or may. */
static inline bool cow_room_has_page(const cow_room *room, size_t bytes)
{
    size_t waiting = room->waiting > room->bytes / 8 ? room->waiting : room->bytes / 8;

    return waiting + room->filters + room->pages + bytes <= room->bytes;
}

#endif
