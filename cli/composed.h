/* Composed chunks, as those see them who go through indexes without the connector: see docs/format.md. */
#ifndef CLI_COMPOSED_H
#define CLI_COMPOSED_H

#include "pools.h"

#include "h5/chunk_index.h"
#include "io/codec.h"
#include "store/pieces.h"
#include "store/pool.h"

/* What the composed ENTRY of a leaf says, of CHUNK (NULL: of any), with all that can be compared with its pool, number POOL of the
 * COUNT pools of the file, and that of its pieces: its base and its pieces are slots of these, and they are pieces of such a
 * chunk. *CUT: how it is cut. -1: cow_error. */
int cli_composed_read(cow_table *log, const cow_grid *grid, const cli_pool *pools, uint64_t count, uint64_t pool,
                      uint64_t entry, const uint64_t chunk[], cow_composed *composed, cow_piecing *cut);

/* ---- their bytes ---- */

/* Pools of plain bytes, each opened when it is first asked for. FILE stays open as long. */
typedef struct cli_slots cli_slots;
cli_slots *cli_slots_new(const cli_file *file);
void cli_slots_free(cli_slots *slots);
/* Bytes of a decoded chunk of POOL; 0: cow_error. */
size_t cli_slots_chunk_bytes(cli_slots *slots, uint64_t pool);
/* Its type, which stays theirs; H5I_INVALID_HID: cow_error. */
hid_t cli_slots_type(cli_slots *slots, uint64_t pool);
/* The chunk in SLOT of POOL, decoded and compared with its checksum. -1: cow_error. */
int cli_slots_read(cli_slots *slots, uint64_t pool, uint64_t slot, void *bytes);
/* Where it is stored. -1: cow_error. */
int cli_slots_place(cli_slots *slots, uint64_t pool, uint64_t slot, cow_chunk_place *place);
/* SIZE bytes that stand for a chunk of POOL, decoded. -1: cow_error. */
int cli_slots_decode(cli_slots *slots, uint64_t pool, const void *encoded, size_t size, uint32_t mask, void *bytes);
/* Do two slots of POOL hold the same, as the digests of what was written say? 1, 0; -1: cow_error. No chunk is read. */
int cli_slots_same(cli_slots *slots, uint64_t pool, uint64_t a, uint64_t b);

/* As cli_composed_read, where no pools are open. */
int cli_slots_composed(cli_slots *slots, cow_table *log, const cow_grid *grid, uint64_t pool, uint64_t entry,
                       const uint64_t chunk[], cow_composed *composed, cow_piecing *cut);
/* Its base: a chunk, or fill value. -1: cow_error. */
int cli_slots_base(cli_slots *slots, const cow_composed *composed, uint8_t *bytes);
/* All of such a chunk. -1: cow_error. */
int cli_slots_put_together(cli_slots *slots, const cow_composed *composed, const cow_piecing *cut, uint8_t *bytes);

#endif
