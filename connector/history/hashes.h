/* What helps to find the slot of an equal chunk (/_versioned_data/hashes/<pool>), or the row of a snapshot (snapshot_rows), opened
 * and made for the pool, or the table of snapshots, that asks. Nothing that is wrong with it is an error of the file: where the
 * disk does not give it back, the one that asks does without. */
#ifndef COW_HISTORY_HASHES_H
#define COW_HISTORY_HASHES_H

#include "history/history.h"
#include "store/pool.h"

typedef struct cow_hashes cow_hashes;

/* Of pool ID. NULL: no memory. */
cow_hashes *cow_hashes_new(cow_file *file, uint32_t id);
/* Of the table of snapshots. */
cow_hashes *cow_hashes_of_snapshots(cow_file *file);
/* After the pool, or the table, was closed. */
void cow_hashes_free(cow_hashes *hashes);
/* What it is to ask: valid until then. */
cow_pool_lookup cow_hashes_source(cow_hashes *hashes);

#endif
