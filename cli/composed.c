/* Reading the records of composed chunks. See composed.h. */
#include "composed.h"

#include "base/error.h"

#include <inttypes.h>

static int wrong(const cow_composed *composed, const char *what)
{
    return cow_error(COW_CORRUPT, "the composed chunk at offset %" PRIu64 " %s", composed->offset, what);
}

int cli_composed_read(cow_table *log, const cow_grid *grid, const cli_pool *pools, uint64_t count, uint64_t pool,
                      uint64_t entry, const uint64_t chunk[], cow_composed *composed, cow_piecing *cut)
{
    const cli_pool *of = &pools[pool], *pieces;

    if (cow_composed_read(log, grid->rank, entry, pool, chunk, composed) < 0)
        return -1;
    if (composed->piece_pool >= count || pools[composed->piece_pool].rank == 0)
        return wrong(composed, "names a pool of pieces that is damaged, or not there");
    pieces = &pools[composed->piece_pool];
    if (of->heap || H5Tequal(pieces->type, of->type) <= 0 ||
        !cow_piecing_from(cut, grid, of->element_size, pieces->rank, pieces->chunk))
        return wrong(composed, "names a pool whose chunks are no pieces of it");
    if (cut->count < COW_PIECES && composed->own >> cut->count != 0)
        return wrong(composed, "has pieces behind its end");
    if (composed->base >= of->slots)
        return wrong(composed, "has a base that its pool ends before");
    for (unsigned i = 0; i < cut->count; i++)
        if ((composed->own >> i & 1) && composed->slot[i] >= pieces->slots)
            return wrong(composed, "has a piece that the pool of pieces ends before");
    return 0;
}
