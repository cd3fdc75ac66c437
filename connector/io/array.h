/* A chunked array in a pool: what reading and writing elements needs to know of a dataset.
 *
 * The write path: application buffer -> (type conversion) -> selection cut by chunks -> chunk cache (decoded bytes in
 * the file's datatype; a chunk that is wholly overwritten is never read) -> on eviction or cow_array_store: digest,
 * known slot or encode and append -> index. The read path is the same backwards, and every chunk that is read from the
 * pool is compared with its checksum. Slots are given out in chunk order within a batch, whatever the threads do.
 *
 * Data that HDF5 must store itself (variable-length, new references: `heap`) take the path of io/heap.c: a slot is
 * written by HDF5's own dataset write, and compared by content when it is stored.
 */
#ifndef COW_ARRAY_H
#define COW_ARRAY_H

#include "io/codec.h"
#include "journal/journal.h"
#include "native/kept_type.h"
#include "store/index.h"
#include "store/pieces.h"
#include "store/pool.h"

#include <hdf5.h>

#include <stdbool.h>

typedef struct cow_chunk_cache cow_chunk_cache;

/* A pool of pieces of an array's chunks. */
typedef struct cow_pieces {
    uint32_t id;
    cow_pool *pool;
    cow_codec *codec;
    cow_piecing cut;
} cow_pieces;
/* Where an array has them from. */
typedef struct cow_pieces_source {
    void *context;
    /* The pool for pieces of CUT, made where there is none, in a file that says from now on that it has such chunks. 1; 0: there
     * can be none; -1. NULL: the array is not written. */
    int (*choose)(void *context, const cow_piecing *cut, uint32_t *id);
    /* Pool ID, open until it is left. -1: it is damaged, or no pool of pieces of these chunks. NULL: there are none. */
    int (*open)(void *context, uint32_t id, cow_pieces *pieces);
    void (*leave)(void *context, uint32_t id);
} cow_pieces_source;

/* More than 20 fields: what H5Dcreate fixed for the dataset, once for all that io/ does with it. */
typedef struct cow_array {
    /* given by the owner, constant while the array is open */
    const char *label; /* "FILE: /path (version 3)" for messages; may be changed by the owner */
    cow_grid grid;
    uint64_t maximum[COW_MAX_RANK]; /* elements, COW_UNLIMITED */
    cow_kept_type *type;            /* the file's datatype; as an id: cow_array_type */
    size_t element_size;            /* H5Tget_size of it */
    size_t chunk_bytes;             /* decoded chunk */
    size_t file_element_size;       /* the same in the file, for `heap` */
    bool plain_edges;    /* chunks that the extent cuts are not filtered (H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) */
    bool filters_hidden; /* the program asked for no filters: it sees chunks as they are without */
    bool heap;           /* the type has variable-length or new reference parts */
    void *fill;          /* one element in `type`, or NULL: undefined (reading a hole leaves memory alone) */
    bool fill_new;       /* the rest of a new, partly written chunk: fill value (true) or zeros */
    void *cut;           /* zeros, but what a shrinking extent cuts off becomes this (H5D_FILL_TIME_NEVER); or NULL */
    bool late;           /* HDF5 would allocate every chunk when the next element is written; cleared then */
    bool
        nothing_to_read; /* reading is an error: nothing was written, and the fill value is undefined. A write clears it */
    bool reserved;       /* HDF5 would have room for it since it was created */
    bool early;          /* HDF5 would have allocated every chunk: holes inside the extent count as stored */
    cow_pool *pool;
    cow_codec *codec;
    cow_index *index;
    cow_chunk_cache *cache; /* shared by the arrays of one file */
    bool through; /* the program's chunk cache does not hold a chunk (H5Pset_chunk_cache): it is filtered when it is
                     written, so that the program hears there of a filter that fails */
    unsigned threads;
    size_t pieces_least; /* bytes of the smallest chunk that is cut into pieces; 0: none is */
    bool pieces_asked;   /* for that size, by the option: also where it takes more room for now */
    cow_pieces_source pieces_source;
    /* state */
    uint64_t extent[COW_MAX_RANK]; /* elements */
    bool extent_changed;           /* since the last commit; cleared by the owner */
    bool trimmed;                  /* the same: it was made smaller */
    bool written;                  /* something was written since the last commit; cleared by the owner. A write that
                                      leaves the same bytes sets it, but leaves index and extent unchanged */
    bool known;                    /* a commit has the array; set by the owner */
    bool refused;                  /* the last cow_array_store failed because filters do not take a chunk */
    bool waits; /* the owner wants nothing stored now: cow_array_store does nothing, and dirty chunks stay so */
    bool ended; /* a filter of it has ended the program */
    /* private to io/, but for the owner's cow_array_leave_pieces */
    cow_pieces *pieces; /* that are open */
    size_t pieces_count;
    uint32_t pieces_id;                /* of new pieces, once they are */
    bool pieces_chosen, pieces_none;   /* there can be none */
    uint32_t pieces_made;              /* composed chunks since the last commit; cleared by the owner */
    uint32_t pieces_skip, pieces_back; /* chunks that are stored whole without a look; the last number of these */
    hid_t same_type;                   /* 0, or a type of HDF5's own, so never changed, that is the same as `type` */
    struct cow_cached_chunk *cached;   /* chunks of this array in the cache */
    struct cow_cached_chunk *dirty;    /* of these the dirty ones, oldest first */
    struct cow_cached_chunk *held;     /* of these the one that has its strings in memory (heap.c), or NULL */
    cow_filtering *filtering;          /* of the call that runs, or NULL */
    bool writing;                      /* that is H5Dwrite */
    size_t homeless;                   /* chunks: chunk_cache.h */
} cow_array;

/* Located in memory, as H5Dget_type gives it. Lent until the program's call ends. */
static inline hid_t cow_array_type(const cow_array *array)
{
    return cow_kept_type_id(array->type);
}

/* A chunk cache of at most BYTES (at least one chunk always fits). */
cow_chunk_cache *cow_chunk_cache_open(size_t bytes);
/* Room for what is dirty is taken in JOURNAL's file; NULL: no longer. */
void cow_chunk_cache_room(cow_chunk_cache *cache, cow_journal *journal);
/* All arrays must have been closed. */
void cow_chunk_cache_close(cow_chunk_cache *cache);
/* Does a function of the program run in the middle of storing or loading chunks, or of elements of variable length? Nothing can be
 * stored then: cow_array_store leaves it for later, and there can be no commit. */
bool cow_chunk_cache_busy(const cow_chunk_cache *cache); /* NULL: no */
/* The program ends in such a function, and what called that never goes on: it is given up, and all that is dirty can be stored again. */
void cow_chunk_cache_interrupted(cow_chunk_cache *cache);

/* H5Dread and H5Dwrite of one dataset. mem_space: id, H5S_ALL or H5S_BLOCK; file_space: id, H5S_ALL or H5S_PLIST. BUF
 * may be NULL when nothing is selected. Type conversion in both directions, compound subsets with background, the
 * dxpl's data transform and conversion callbacks behave as in native HDF5. */
int cow_array_read(cow_array *array, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf);
int cow_array_write(cow_array *array, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, const void *buf);

/* Would HDF5 refuse that before it touches anything? Then -1, with the error. For calls on several datasets. */
int cow_array_check(cow_array *array, bool write, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                    const void *buf);

/* H5Dset_extent, already checked against maximum. What is cut off is forgotten: an edge chunk that loses a part has it
 * overwritten with the fill value, so that growing again shows the fill value, as in native HDF5. */
int cow_array_resize(cow_array *array, const uint64_t extent[]);

/* Pool ID of pieces, which stays open until all are left; valid until another is asked for. NULL: the error. */
const cow_pieces *cow_array_pieces(cow_array *array, uint64_t id);
/* Pools of pieces are used no more. */
void cow_array_leave_pieces(cow_array *array);

/* A use less of what the index named, or was to name: a slot or a composed chunk. */
void cow_array_drop(cow_array *array, uint64_t slot);

/* Put every dirty chunk into the pool and the index. A chunk that the filters do not take (array->refused) stays in the
 * cache, for another try, with all others stored; -1 then as well. */
int cow_array_store(cow_array *array);
/* After that failed: chunks that a filter refuses are forgotten, as HDF5 forgets them, and all others are stored. Always
 * -1, with an error. */
int cow_array_drop_refused(cow_array *array);
/* Forget all cached chunks, dirty ones included: close, or roll back. */
void cow_array_forget(cow_array *array);
/* Forget those that are not dirty. */
void cow_array_forget_clean(cow_array *array);

/* Where no file has anything. HADDR_UNDEF would tell programs that the chunk is not stored (h5py then has no offset of it either), and
 * the address of a base that all of it is there. */
#define COW_NOWHERE UINT64_C(0x7ffffffffffff000)

/* Chunk-level access. OFFSET is the first element of the chunk, a multiple of the chunk dims. All of them store the
 * chunk first where it is dirty. With hidden filters a chunk is its decoded bytes, and lies in no place of the file unless
 * they were all skipped. */
typedef struct cow_chunk_info {
    uint64_t offset[COW_MAX_RANK]; /* elements */
    uint64_t slot;                 /* COW_HOLE: not stored */
    uint32_t filter_mask;
    uint64_t size;   /* bytes as stored */
    haddr_t address; /* in the file; COW_NOWHERE: of a composed chunk */
} cow_chunk_info;
int cow_array_chunk_count(cow_array *array, uint64_t *count);
/* All of CHUNK, whose ENTRY is a composed one, read and checked, and encoded as a chunk of the pool would be: *ENCODED (malloc), *SIZE, *MASK. */
int cow_array_chunk_encoded(cow_array *array, const uint64_t chunk[], uint64_t entry, void **encoded, size_t *size,
                            uint32_t *mask);
/* The INDEX-th stored chunk in row-major order of offsets (the order of H5Dget_chunk_info). */
int cow_array_chunk_by_index(cow_array *array, uint64_t index, cow_chunk_info *info);
/* info->slot is COW_HOLE (and address HADDR_UNDEF, size 0) for a chunk that is not stored. */
int cow_array_chunk_by_offset(cow_array *array, const uint64_t offset[], cow_chunk_info *info);
/* Encoded bytes, after checking them against the checksum. */
int cow_array_chunk_read(cow_array *array, const uint64_t offset[], uint32_t *filter_mask, void *bytes, size_t size);
/* Bytes already encoded by the application: decoded once to learn hash and checksum, stored as they are, unless filters are
 * hidden. */
int cow_array_chunk_write(cow_array *array, const uint64_t offset[], uint32_t filter_mask, const void *bytes,
                          size_t size);
/* Bytes of a chunk in the file before filters. */
size_t cow_array_file_chunk_bytes(const cow_array *array);
/* Bytes of all stored chunks, as H5Dget_storage_size counts them; as they are in the file, also where filters are hidden. */
int cow_array_storage_size(cow_array *array, uint64_t *bytes);
/* Bytes that HDF5 allocates for the variable-length parts of the selected elements when they are read as MEM_TYPE:
 * H5Dvlen_get_buf_size. */
int cow_array_memory_size(cow_array *array, hid_t mem_type, hid_t file_space, hsize_t *bytes);

#endif
