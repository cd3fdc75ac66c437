/* Composed chunks, as those see them who go through indexes without the connector: see docs/format.md. */
#ifndef CLI_COMPOSED_H
#define CLI_COMPOSED_H

#include "pools.h"

#include "store/pieces.h"

/* What the composed ENTRY of a leaf says, of CHUNK (NULL: of any), with all that can be compared with its pool, number POOL of the
 * COUNT pools of the file, and that of its pieces: its base and its pieces are slots of these, and they are pieces of such a
 * chunk. *CUT: how it is cut. -1: cow_error. */
int cli_composed_read(cow_table *log, const cow_grid *grid, const cli_pool *pools, uint64_t count, uint64_t pool,
                      uint64_t entry, const uint64_t chunk[], cow_composed *composed, cow_piecing *cut);

#endif
