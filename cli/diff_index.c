/* Which chunks of two versions of a dataset may differ: two index trees, gone down side by side where they name different
 * nodes. See diff.h. */
#include "diff.h"

#include "base/error.h"
#include "pools.h"

#include <stdlib.h>

typedef struct descent {
    cow_table *index;
    cow_grid grid;
    uint64_t pool;
    cli_chunk_visitor *visit;
    void *context;
} descent;

/* NODE of LEVEL at ORIGIN, which the one above it named; of COW_NO_NODE all entries are absent. */
static int read_node(const descent *d, uint64_t offset, unsigned level, const uint64_t origin[], cow_node *node)
{
    if (offset == COW_NO_NODE) {
        for (size_t i = 0; i < COW_TILE_CHUNKS; i++)
            node->entry[i] = COW_NO_NODE;
        return 0;
    }
    if (cow_node_read(d->index, &d->grid, offset, node) < 0)
        return -1;
    if (node->pool != d->pool || node->level != level)
        return cow_error(COW_CORRUPT, "the index node at offset %llu belongs to another place",
                         (unsigned long long)offset);
    for (unsigned k = 0; k < d->grid.rank; k++)
        if (node->origin[k] != origin[k])
            return cow_error(COW_CORRUPT, "the index node at offset %llu belongs to another place",
                             (unsigned long long)offset);
    return 0;
}

static int compare_leaves(const descent *d, const cow_node node[2], const uint64_t origin[])
{
    int status = 0;

    for (unsigned p = 0, n = cow_grid_tile_chunks(&d->grid); status == 0 && p < n; p++) {
        const uint64_t entry[2] = {node[0].entry[p], node[1].entry[p]};
        uint64_t chunk[COW_MAX_RANK];
        if (entry[0] == entry[1])
            continue;
        cow_grid_tile_offset(&d->grid, p, chunk);
        for (unsigned k = 0; k < d->grid.rank; k++)
            chunk[k] += origin[k];
        status = d->visit(d->context, chunk, entry);
    }
    return status;
}

/* Two nodes at ORIGIN, of which one may be of a lower level: a tree that grew has the former top as its first child. At most
 * COW_MAX_LEVEL deep. */
static int compare(const descent *d, const uint64_t offset[2], const unsigned level[2], const uint64_t origin[])
{
    unsigned upper = level[0] > level[1] ? level[0] : level[1], children = 1;
    uint64_t split[COW_MAX_RANK], span[COW_MAX_RANK];
    cow_node *node;
    int status = 0;

    if (offset[0] == offset[1] && (level[0] == level[1] || offset[0] == COW_NO_NODE))
        return 0;
    node = cli_alloc(2, sizeof *node);
    for (int i = 0; status == 0 && i < 2; i++)
        if (level[i] == upper)
            status = read_node(d, offset[i], upper, origin, &node[i]);
        else
            for (unsigned p = 0; p < COW_TILE_CHUNKS; p++)
                node[i].entry[p] = p == 0 ? offset[i] : COW_NO_NODE;
    if (status == 0 && upper == 0)
        status = compare_leaves(d, node, origin);
    else if (status == 0) {
        const unsigned below[2] = {level[0] == upper ? upper - 1 : level[0], level[1] == upper ? upper - 1 : level[1]};
        cow_grid_split(&d->grid, upper, split);
        cow_grid_span(&d->grid, upper - 1, span);
        for (unsigned k = 0; k < d->grid.rank; k++)
            children *= (unsigned)split[k];
        for (unsigned p = 0; status == 0 && p < children; p++) {
            const uint64_t entry[2] = {node[0].entry[p], node[1].entry[p]};
            const unsigned other[2] = {p == 0 ? below[0] : upper - 1, p == 0 ? below[1] : upper - 1};
            uint64_t child[COW_MAX_RANK];
            cow_grid_child_offset(&d->grid, upper, p, child);
            for (unsigned k = 0; k < d->grid.rank; k++)
                child[k] = origin[k] + child[k] * span[k];
            status = compare(d, entry, other, child);
        }
    }
    free(node);
    return status;
}

int cli_diff_index(cow_table *index, const cow_root *before, const cow_root *after, cli_chunk_visitor *visit,
                   void *context)
{
    descent d = {.index = index, .pool = after->pool, .visit = visit, .context = context};
    const uint64_t top[2] = {before->top, after->top}, origin[COW_MAX_RANK] = {0};
    const unsigned level[2] = {before->level, after->level};

    if (level[0] > COW_MAX_LEVEL || level[1] > COW_MAX_LEVEL)
        return cow_error(COW_CORRUPT, "a root record says that its index has %u levels", level[level[1] > level[0]]);
    cli_grid(after, &d.grid);
    return compare(&d, top, level, origin);
}
