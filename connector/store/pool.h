/* A pool: the chunks of all datasets that share one signature (datatype, chunk dims, filters, fill value), each
 * distinct chunk once, in numbered slots.
 *
 * A pool is two things in the file: the chunks themselves (`raw_data`: slot k is rows [k*c0, (k+1)*c0)), and the slot
 * table, one row a slot: SHA-256, XXH3, trimmed extent. This file owns the slot table, the map from hash to slot, and
 * the life of a slot inside a transaction; where the bytes of a slot go is behind cow_chunk_store.
 *
 * Life of a slot: given out by cow_pool_add with one use; a second chunk with the same bytes adds a use. A slot whose
 * last use is dropped is given out again only if it was first given out after the last cow_pool_seal: a sealed slot may
 * be named by a version or by a reader that opened at a flush, and is never written again. A slot with a row of zeros holds
 * nothing that anybody can name: where the pool may reuse such slots, they are given out before new ones.
 * Rows of new slots stay in memory until cow_pool_flush, or until they are written out because too much waits.
 */
#ifndef COW_POOL_H
#define COW_POOL_H

#include "base/digest.h"
#include "store/room.h"
#include "store/table.h"

#include <stdbool.h>
#include <sys/uio.h>

#define COW_NO_SLOT  UINT64_MAX
#define COW_NO_PLACE UINT64_MAX

/* Where the encoded bytes of slots are kept. */
typedef struct cow_chunk_store cow_chunk_store;
struct cow_chunk_store {
    /* Encoded size in bytes of a slot, and then the slot itself with its filter mask (HDF5 tells the mask only when it
     * reads). SIZE: as size() gave it. */
    int (*size)(cow_chunk_store *store, uint64_t slot, size_t *bytes);
    int (*read)(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *filter_mask);
    /* For reading by several threads; NULL: not offered. As read, but where the bytes can be had later it does not read them, and
     * *PLACE is not COW_NO_PLACE. */
    int (*find)(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *filter_mask,
                uint64_t *place);
    /* The bytes at such a PLACE, into N parts of memory one after the other; on any thread. Records no error. What comes may be old:
     * where it is not what was stored, or where this is false, read() has the last word. */
    bool (*bring)(const cow_chunk_store *store, uint64_t place, const struct iovec parts[], size_t n);
    /* Writes a slot, also over a former one; makes room first where slot is beyond the end. */
    int (*write)(cow_chunk_store *store, uint64_t slot, const void *bytes, size_t size, uint32_t filter_mask);
    /* A slot that another opening may have written is written next. NULL: nothing need be known of that. */
    int (*again)(cow_chunk_store *store, uint64_t slot);
    void (*close)(cow_chunk_store *store); /* frees the store itself */
};
/* Chunks in memory, for tests. */
cow_chunk_store *cow_chunk_store_memory(void);

typedef struct cow_slot {
    cow_digest digest;
    uint32_t trimmed[COW_MAX_RANK]; /* the extent that was hashed; only the first `rank` are used */
} cow_slot;

/* Bytes of a row of the slot table: hash, checksum (little-endian), trimmed extent (rank x uint32, little-endian). */
size_t cow_slot_row_size(unsigned rank);

typedef struct cow_pool cow_pool;

/* NAME is for messages. The pool owns TABLE and STORE from now on, also when it fails. */
cow_pool *cow_pool_open(const char *name, unsigned rank, cow_table *table, cow_chunk_store *store);
void cow_pool_close(cow_pool *pool); /* unflushed rows are lost: flush first */

/* What the pool holds for slots counts in ROOM, which outlives it. Before anything is added. */
void cow_pool_wait_in(cow_pool *pool, cow_room *room);

/* Is all of it in the file, and is nothing known of it that would have to be read again to find equal chunks? */
bool cow_pool_idle(const cow_pool *pool);
uint64_t cow_pool_slots(const cow_pool *pool); /* slots given out so far, new ones and free ones included */
const char *cow_pool_name(const cow_pool *pool);
cow_chunk_store *cow_pool_store(cow_pool *pool);

/* The slot that holds this hash: one more use of it, *SLOT set; COW_NO_SLOT if there is none. The first call reads the
 * whole slot table, where there are no runs (hashes only are kept: about 48 bytes a slot). */
int cow_pool_find(cow_pool *pool, const cow_digest *digest, uint64_t *slot);

/* A new slot for a chunk that find did not know, with one use. The caller writes the bytes (cow_pool_store()->write)
 * before or after; nobody can see the slot before the commit. */
int cow_pool_add(cow_pool *pool, const cow_slot *row, uint64_t *slot);

/* Another row for a slot that is used and was given out since the last seal: the caller learns only later what the slot
 * holds. -1 COW_USAGE: it is not such a slot. */
int cow_pool_set_row(cow_pool *pool, uint64_t slot, const cow_slot *row);

/* May a version or a reader name the slot already, so that it is never written again? */
bool cow_pool_sealed(const cow_pool *pool, uint64_t slot);
/* One use less. A sealed slot only loses a count nobody keeps: that is no error. */
void cow_pool_drop(cow_pool *pool, uint64_t slot);
/* One use more of a slot already known by number (a chunk that is copied within the file). */
void cow_pool_use(cow_pool *pool, uint64_t slot);

/* The row of a slot, from memory or in blocks from the table. -1 COW_CORRUPT: slot beyond the end. */
int cow_pool_row(cow_pool *pool, uint64_t slot, cow_slot *row);

/* Where the runs (lookup.h) are that a pool with many slots has, so that its table need not be read to find a hash. */
typedef struct cow_pool_lookup {
    void *context;
    int (*open)(void *context, cow_table **table); /* 1; 0: there are none; -1 */
    cow_table *(*make)(void *context); /* without rows, instead of any that are there; NULL: not asked again */
    bool (*half_done)(void *context);  /* the disk failed while they were changed: nothing is to be committed */
} cow_pool_lookup;
/* Before anything is searched in it. */
void cow_pool_keep_lookup(cow_pool *pool, const cow_pool_lookup *source);

/* From now on SLOTS slots with a row of zeros, at most, may be given out again before each seal. They lie in the middle of the
 * file, where a commit holds what it changes in memory and writes it twice. */
void cow_pool_allow_reuse(cow_pool *pool, uint64_t slots);
/* How many were, since the pool was opened. */
uint64_t cow_pool_reused(const cow_pool *pool);

typedef struct cow_pool_collector {
    void *context;
    bool (*needed)(void *context, uint64_t slot);
    int (*vacant)(void *context, uint64_t slot,
                  bool used); /* not needed; USED: it is freed now, else it was free before */
} cow_pool_collector;
/* The rows of all slots that are not needed become zeros. Nothing of the pool may be uncommitted. -1: some may have. */
int cow_pool_vacate(cow_pool *pool, const cow_pool_collector *collector);

/* Write the rows that are new since the last flush. */
int cow_pool_flush(cow_pool *pool);
/* The same because too much waits (room.h), of a pool of which anything does: no commit follows, and what becomes of the slots
 * until one does is as open as before. */
int cow_pool_write_out(cow_pool *pool);
/* From now on no slot given out so far is ever written again. Called at each commit and each flush, after flush. */
void cow_pool_seal(cow_pool *pool);

#endif
