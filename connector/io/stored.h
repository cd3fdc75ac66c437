/* Whole decoded chunks on their way into a pool and out of it, in batches. Private to io/.
 *
 * Both are pipelines (workers.h). In: digest on any thread, find or add on the calling thread in the order given,
 * encode on any thread, write and enter into the index in that order. Out: read on the calling thread, decode and
 * verify on any.
 */
#ifndef COW_STORED_H
#define COW_STORED_H

#include "io/array.h"

typedef struct cow_save {
    const uint64_t *chunk; /* number in the grid */
    const void *bytes;     /* decoded, padding included, and ours: nobody changes them; may be set by `prepare` */
    struct iovec *runs; /* room for as many as cow_stored_runs, where `prepare` may say where the bytes are; or NULL */
    size_t n_runs; /* then: of how many runs they are brought to `bytes`, one after the other, while they are hashed */
    size_t index;  /* the caller's */
    const void *ready; /* already encoded: ready_size bytes, stored as they are; or NULL */
    size_t ready_size;
    uint32_t ready_mask;
    void *keep; /* `bytes` as the cache keeps them, or NULL: where a filter is lossy, what it made of them is
                              put there */
    /* private */
    cow_digest digest;
    uint64_t slot, former;
    const void *encoded;
    size_t size;
    uint32_t mask;
    bool settled; /* out: the chunk is stored and in the index */
    bool add;
    bool whole;   /* what is outside the extent is not what it always is, and is part of the digest */
    bool refused; /* out: its filters do not take it, which is why storing failed */
} cow_save;

/* The most runs of memory of which a chunk of BYTES is brought together; shorter ones than COW_RUN_BYTES are not worth it. */
#define COW_RUN_BYTES 1024
#define COW_RUNS      256
size_t cow_stored_runs(size_t bytes);

/* Store N chunks. PREPARE (may be NULL) runs on any thread before the bytes are looked at; ROOM has room for a chunk,
 * the caller's until it is stored. The order of SAVES is changed: tile by tile, as slots are given out. */
int cow_stored_save(cow_array *array, cow_save *saves, size_t n,
                    int (*prepare)(void *context, cow_save *save, void *room), void *context);

/* A call of that which never goes on, or has ended: what it took of slots that the index does not name is given back. */
void cow_stored_give_up(cow_array *array, cow_save *saves, size_t n);

typedef struct cow_load {
    const uint64_t *chunk;
    uint64_t slot; /* not a hole */
    void *bytes;   /* where the decoded chunk goes, or NULL: only `done` needs it */
    size_t index;  /* the caller's */
    /* private */
    cow_slot row;
    void *raw, *own;
    struct cow_parts *parts; /* of a composed chunk, whose base `slot` becomes */
    size_t size;
    uint64_t place; /* in the chunk store; COW_NO_PLACE: it was read already */
    uint32_t mask;
    bool excused;
    bool homeless; /* no place in memory was given */
    bool again;    /* what was found at the place is not what was stored */
} cow_load;

/* Read, decode and verify N chunks. DONE (may be NULL) runs on any thread for each chunk that is good. RUNS (may be NULL) says where in
 * memory the bytes of a chunk belong in the end, as at most COW_RUNS runs one after the other; 0: it is no matter of runs. Then they
 * may go there at once, and DONE does not run; where they turn out to be damaged, they have been there. */
typedef struct cow_load_calls {
    int (*done)(void *context, cow_load *load);
    size_t (*runs)(void *context, const cow_load *load, struct iovec runs[COW_RUNS]);
    void *context;
} cow_load_calls;
int cow_stored_load(cow_array *array, cow_load *loads, size_t n, const cow_load_calls *calls);

/* Set one chunk's slot in the index; the use of SLOT becomes the index's, the former slot loses its. */
int cow_stored_set(cow_array *array, const uint64_t chunk[], uint64_t slot);
/* Is the chunk stored without filters because the extent cuts it? Then HDF5 tells a filter mask of 0. */
bool cow_array_chunk_plain(const cow_array *array, const uint64_t chunk[]);
/* The part of a chunk that is inside the extent, in elements. */
void cow_array_chunk_trimmed(const cow_array *array, const uint64_t chunk[], uint64_t trimmed[]);
/* "(0, 512)": a chunk's first element, for messages. */
#define COW_PLACE_SIZE (COW_MAX_RANK * 22 + 3)
const char *cow_array_chunk_place(const cow_array *array, const uint64_t chunk[], char text[COW_PLACE_SIZE]);
/* What the elements of a new chunk are until they are written: fill value or NULL for zeros. */
const void *cow_array_new_fill(const cow_array *array);
/* That, in bytes [FROM, TO) of a chunk. */
void cow_array_set_fill(const cow_array *array, uint8_t *bytes, size_t from, size_t to);
/* 0, or COW_CORRUPT with place, pool and slot: what was read is not what was stored. */
int cow_array_chunk_verify(const cow_array *array, const uint64_t chunk[], uint64_t slot, uint64_t checksum,
                           uint64_t expected);

#endif
