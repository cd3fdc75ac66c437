/* The shape of the index tree over a chunk grid: which box each node covers, and how its parts are numbered.
 *
 * Everything follows from chunk dims and maximum extent by one rule (index.h), and every span is a power of two, so a
 * chunk's path through the tree can be read off the bits of its coordinates. Pure arithmetic; cannot fail.
 */
#include "store/index.h"

#include <string.h>

static uint64_t doubled(uint64_t span)
{
    return span > UINT64_MAX / 2 ? UINT64_MAX : span * 2;
}

/* Double span[] (and part[]) up to TIMES times, in the smallest dimension that does not yet cover its maximum. */
static void grow(const cow_grid *grid, unsigned times, uint64_t span[], uint64_t part[])
{
    while (times-- > 0) {
        unsigned best = grid->rank;
        for (unsigned d = 0; d < grid->rank; d++) {
            if (span[d] < grid->maximum[d] && (best == grid->rank || span[d] <= span[best]))
                best = d;
        }
        if (best == grid->rank)
            return;
        span[best] = doubled(span[best]);
        part[best] *= 2;
    }
}

void cow_grid_init(cow_grid *grid, unsigned rank, const uint64_t chunk[], const uint64_t maximum[])
{
    uint64_t span[COW_MAX_RANK];

    memset(grid, 0, sizeof *grid);
    grid->rank = rank;
    for (unsigned d = 0; d < rank; d++) {
        grid->chunk[d] = chunk[d] > 0 ? chunk[d] : 1; /* HDF5 has no chunk dimension of 0 */
        if (maximum[d] == COW_UNLIMITED)
            grid->maximum[d] = COW_UNLIMITED;
        else
            grid->maximum[d] = cow_grid_chunks_along(maximum[d], grid->chunk[d]);
        span[d] = grid->tile[d] = 1;
    }
    grow(grid, 6, span, grid->tile);
}

/* Span and split of LEVEL; split may be NULL. */
static void level_shape(const cow_grid *grid, unsigned level, uint64_t span[], uint64_t split[])
{
    uint64_t part[COW_MAX_RANK];

    for (unsigned d = 0; d < grid->rank; d++) {
        span[d] = grid->tile[d];
        part[d] = 1;
    }
    for (unsigned l = 1; l <= level; l++) {
        for (unsigned d = 0; d < grid->rank; d++)
            part[d] = 1;
        grow(grid, 4, span, part);
    }
    if (split)
        memcpy(split, part, grid->rank * sizeof *split);
}

void cow_grid_split(const cow_grid *grid, unsigned level, uint64_t split[])
{
    uint64_t span[COW_MAX_RANK];

    level_shape(grid, level, span, split);
}

void cow_grid_raise(const cow_grid *grid, uint64_t span[])
{
    uint64_t part[COW_MAX_RANK] = {0};

    grow(grid, 4, span, part);
}

void cow_grid_span(const cow_grid *grid, unsigned level, uint64_t span[])
{
    level_shape(grid, level, span, NULL);
}

uint64_t cow_times(uint64_t a, uint64_t b)
{
    return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

uint64_t cow_grid_chunks_along(uint64_t extent, uint64_t chunk)
{
    return extent / chunk + (extent % chunk != 0);
}

void cow_grid_box(const cow_grid *grid, unsigned level, const uint64_t origin[], uint64_t extent[])
{
    uint64_t span[COW_MAX_RANK];

    cow_grid_span(grid, level, span);
    for (unsigned d = 0; d < grid->rank; d++) {
        uint64_t full = cow_times(span[d], grid->chunk[d]), rest = UINT64_MAX - cow_times(origin[d], grid->chunk[d]);
        extent[d] = full < rest ? full : rest;
    }
}

unsigned cow_grid_tile_chunks(const cow_grid *grid)
{
    uint64_t chunks = 1;

    for (unsigned d = 0; d < grid->rank; d++)
        chunks *= grid->tile[d];
    return (unsigned)chunks;
}

void cow_grid_tile_offset(const cow_grid *grid, unsigned position, uint64_t offset[])
{
    uint64_t rest = position;

    for (unsigned d = 0; d < grid->rank; d++) {
        offset[d] = rest % grid->tile[d];
        rest /= grid->tile[d];
    }
}

void cow_grid_child_offset(const cow_grid *grid, unsigned level, unsigned position, uint64_t child[])
{
    uint64_t split[COW_MAX_RANK];
    uint64_t rest = position;

    cow_grid_split(grid, level, split);
    for (unsigned d = grid->rank; d-- > 0;) {
        child[d] = rest % split[d];
        rest /= split[d];
    }
}
