/* The chunk cache: decoded chunks of all open arrays of one file, least recently used first out. Private to io/.
 *
 * An entry of an ordinary array holds the decoded chunk in the file's datatype, padding included. An entry of a heap
 * array holds no bytes: dirty, it names the slot that HDF5 has written the chunk into since the last commit; clean, the
 * slot whose content was verified.
 *
 * Dirty entries of an array are also in array->dirty, a ring, oldest first. When room is needed and the entry to go is
 * dirty, a batch of its array's oldest dirty chunks is stored together, so that the worker threads have something to
 * share and slots are given out in order. An entry stays valid until the next call that may load or insert one.
 */
#ifndef COW_CHUNK_CACHE_H
#define COW_CHUNK_CACHE_H

#include "io/array.h"

/* Decoded bytes that are read or stored together. */
#define COW_BATCH_BYTES  ((size_t)16 << 20)
#define COW_BATCH_CHUNKS 1024

typedef struct cow_cached_chunk cow_cached_chunk;
/* More than 20 fields: an entry is in four lists at once, and what is dirty has a way of its own to its slot. */
struct cow_cached_chunk {
    cow_array *array;
    uint8_t *bytes; /* array->chunk_bytes; NULL for a heap array */
    size_t set;    /* bytes that have been set; those behind are fill value, not put there yet (cow_chunk_cache_part) */
    uint64_t slot; /* heap arrays only, as is */
    cow_digest *known; /* dirty: of the whole chunk, as it was written; NULL: it has to be read back, but for */
    struct cow_strings *strings; /* dirty: what the chunk holds, of array->held alone (heap.c) */
    struct cow_content *content; /* clean: what the chunk holds, or NULL (heap.c) */
    size_t content_bytes;        /* of it, 0 without */
    bool large;                  /* clean: its content is too large to be kept */
    bool dirty;
    bool refused;  /* dirty, and the filters do not take it */
    bool promised; /* dirty, and the disk has room for it as it is: cow_journal_promise */
    bool homeless; /* dirty by the write that runs, and not promised: stored before that ends, or given up */
    uint64_t hash;
    cow_cached_chunk *same_hash;                 /* next in its bucket */
    cow_cached_chunk *newer, *older;             /* in order of use */
    cow_cached_chunk *next_dirty, *former_dirty; /* ring */
    cow_cached_chunk *next_own, *former_own;     /* of the same array, the last one inserted first */
    uint64_t chunk[];                            /* rank */
};

/* The entry of a chunk, or NULL; it becomes the most recently used, and all its bytes are set. */
cow_cached_chunk *cow_chunk_cache_find(cow_array *array, const uint64_t chunk[]);
/* A new clean entry for a chunk that has none. Makes room first, which may store other chunks; where a filter of the program
 * has brought the chunk in meanwhile, that entry. BYTES (malloc) are the entry's from now on, or given up; NULL for a heap
 * array. */
cow_cached_chunk *cow_chunk_cache_insert(cow_array *array, const uint64_t chunk[], uint8_t *bytes);
/* Room for one chunk, for cow_chunk_cache_insert, or to be given back. */
uint8_t *cow_chunk_cache_buffer(cow_array *array);
void cow_chunk_cache_buffer_free(cow_array *array, uint8_t *bytes);
/* Find, or load from the pool, or make (a hole: fill value, ready to be written). OVERWRITTEN: all elements inside the
 * extent will be written by the caller, so nothing is read. */
cow_cached_chunk *cow_chunk_cache_get(cow_array *array, const uint64_t chunk[], bool overwritten);
/* The same for a caller that writes bytes [from, to) now: in a chunk that is new, what is behind them stays unset. So
 * fill value is not written where rows that follow are about to be written, one by one. */
cow_cached_chunk *cow_chunk_cache_part(cow_array *array, const uint64_t chunk[], size_t from, size_t to,
                                       bool overwritten);
/* Set all bytes of an entry that a visitor got. Any thread, one for an entry. */
void cow_chunk_cache_complete(cow_cached_chunk *entry);
/* Load those of N chunks that are neither cached nor holes, together. CHUNKS: N times rank. As far as there is room. */
int cow_chunk_cache_prefetch(cow_array *array, const uint64_t *chunks, size_t n);
void cow_chunk_cache_dirty(cow_cached_chunk *entry);
void cow_chunk_cache_clean(cow_cached_chunk *entry);
void cow_chunk_cache_remove(cow_cached_chunk *entry);
/* Of a clean entry of a heap array: CONTENT, or NULL, counts for BYTES from now on. What it had before is the caller's. */
void cow_chunk_cache_keep(cow_cached_chunk *entry, struct cow_content *content, size_t bytes);
/* The end of a write: what it has written, and no room on the disk is kept for, is stored, since it may take less then. -1: there is no
 * room for that as well; chunks of which this is so keep what they had before. */
int cow_chunk_cache_store_homeless(cow_array *array);
/* Calls VISITOR for every entry of ARRAY; it may remove the entry. */
void cow_chunk_cache_each(cow_array *array, void (*visitor)(cow_cached_chunk *entry, void *context), void *context);
size_t cow_chunk_cache_limit(const cow_chunk_cache *cache);

/* Buffers that grow and are kept, one for each use, so that small transfers allocate nothing. NULL: COW_MEMORY. */
typedef enum {
    COW_BUFFER_ENCODED, /* stored.c */
    COW_BUFFER_ROOMS,
    COW_BUFFER_RUNS,
    COW_BUFFER_BACK,
    COW_BUFFER_BASE, /* composed.c */
    COW_BUFFER_BASE_STORED,
    COW_BUFFER_SHORT_PIECES,
    COW_BUFFER_SAVES, /* chunk_cache.c */
    COW_BUFFER_LOADS,
    COW_BUFFER_PIECES, /* transfer.c */
    COW_BUFFER_ITEMS,
    COW_BUFFER_PACKED,
    COW_BUFFER_BACKGROUND,
    COW_BUFFER_STAGED,
    COW_BUFFER_SPANS,
    COW_BUFFER_CHUNKS,
    COW_BUFFER_COUNT
} cow_buffer_use;
void *cow_chunk_cache_scratch(cow_chunk_cache *cache, cow_buffer_use use, size_t bytes);

/* Functions of the program (conversions, their callbacks, memory managers, filters) may use other datasets of the file, and so
 * these buffers. Before one is called for ARRAY they are put aside, and back when it is over; with HOLDS, for a caller that has
 * entries in its hands, no entry leaves the cache meanwhile. */
typedef struct cow_buffers {
    void *bytes[COW_BUFFER_COUNT];
    size_t size[COW_BUFFER_COUNT];
    bool holds;
    cow_array *outer; /* whose functions run meanwhile */
} cow_buffers;
void cow_chunk_cache_aside(cow_array *array, bool holds, cow_buffers *aside);
void cow_chunk_cache_back(cow_chunk_cache *cache, const cow_buffers *aside);

/* Chunks on their way into a pool (stored.c), the innermost call first. Where a function of the program ends the program,
 * that call never goes on: cow_chunk_cache_interrupted. */
typedef struct cow_saving {
    struct cow_saving *outer;
    cow_array *array;
    struct cow_save *saves;
    size_t n;
} cow_saving;
void cow_chunk_cache_begin_saving(cow_saving *saving);
void cow_chunk_cache_end_saving(cow_saving *saving);

/* The stored chunks in row-major order, remembered between calls of cow_array_chunk_by_index, and forgotten when the index
 * of any array changes. */
typedef struct cow_listing {
    const cow_array *array;
    uint64_t *chunk; /* COUNT times rank */
    uint64_t count;
} cow_listing;
cow_listing *cow_chunk_cache_listing(cow_chunk_cache *cache);
void cow_chunk_cache_forget_listing(cow_chunk_cache *cache);

#endif
