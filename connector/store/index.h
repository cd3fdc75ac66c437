/* The index: which slot holds each chunk of a dataset, in each version.
 *
 * A persistent, copy-on-write radix tree over the chunk grid. Nodes live in an append-only log (a cow_table with rows
 * of one byte, shared by all datasets of the file), are named by their offset in it, carry a checksum, and are never
 * changed; a version names the root record. A leaf covers a tile (a box of at most 64 chunks) and holds its slots
 * run-length encoded; an inner node covers at most 16 children. The tree is anchored at the origin: tile and split of
 * each level follow from chunk dims and maximum extent alone (cow_grid_init), so growing in any dimension touches one
 * path; outgrowing the tree adds a level whose first child is the old top. Chunks are never numbered by the current
 * extent.
 *
 * Invariants
 *  1. A node in the log is never changed, and the log never shrinks below a committed root.
 *  2. Everything read from the log is bounds-checked and checksummed before it is used; a bad node is COW_CORRUPT with
 *     its offset in the message, and where they are known its pool, level and first chunk; never a crash.
 *  3. Nodes without any slot are not stored: an absent child is a hole (fill value).
 */
#ifndef COW_INDEX_H
#define COW_INDEX_H

#include "base/digest.h"
#include "store/table.h"

#include <stdbool.h>

#define COW_HOLE        UINT64_MAX          /* no slot: the chunk reads as fill value */
#define COW_COMPOSED    ((uint64_t)1 << 63) /* with it a leaf's entry is the offset of a composed chunk, not a slot */
#define COW_NO_NODE     UINT64_MAX          /* no node: the whole box is holes */
#define COW_TILE_CHUNKS 64                  /* at most, power of two */
#define COW_PIECES      64                  /* of a chunk, at most */
#define COW_FANOUT      16                  /* at most, power of two */
#define COW_MAX_LEVEL   64                  /* 262 doublings: five unlimited dimensions reach 2^52 chunks in each */
#define COW_UNLIMITED   UINT64_MAX          /* as H5S_UNLIMITED */

/* Is an entry of a leaf, which is not COW_HOLE, that of a composed chunk? */
static inline bool cow_is_composed(uint64_t entry)
{
    return entry >= COW_COMPOSED && entry != COW_HOLE;
}
static inline uint64_t cow_composed_offset(uint64_t entry)
{
    return entry & ~COW_COMPOSED;
}

/* The shape of a dataset's chunk grid, fixed for the dataset's life. */
typedef struct cow_grid {
    unsigned rank;
    uint64_t chunk[COW_MAX_RANK];   /* elements of a chunk */
    uint64_t maximum[COW_MAX_RANK]; /* chunks the grid may ever have in each dimension, or COW_UNLIMITED */
    uint64_t tile[COW_MAX_RANK];    /* chunks of a tile, powers of two */
} cow_grid;

/* MAXIMUM is the maximum extent in elements (COW_UNLIMITED where unlimited). The tile starts as one chunk and is
 * doubled up to six times, each time in the dimension whose span is smallest among those that do not yet cover their
 * maximum (ties: the last such dimension). The split of level 1, 2, ... is found in the same way with four doublings,
 * going on from the span of the level below. */
void cow_grid_init(cow_grid *grid, unsigned rank, const uint64_t chunk[], const uint64_t maximum[]);
/* Children of a node of LEVEL (>= 1) along each dimension; all 1 when the level below already covers the maximum. */
void cow_grid_split(const cow_grid *grid, unsigned level, uint64_t split[]);
/* Chunks that a node of LEVEL covers along each dimension (level 0: the tile). Saturates at UINT64_MAX. */
void cow_grid_span(const cow_grid *grid, unsigned level, uint64_t span[]);
/* From the span of a level to that of the level above it. */
void cow_grid_raise(const cow_grid *grid, uint64_t span[]);
/* Elements along each dimension of the box that a node of LEVEL at ORIGIN[] (chunks) covers, cut only where coordinates
 * end. */
void cow_grid_box(const cow_grid *grid, unsigned level, const uint64_t origin[], uint64_t extent[]);
/* Saturates at UINT64_MAX. */
uint64_t cow_times(uint64_t a, uint64_t b);
/* How many chunks of CHUNK elements cover EXTENT elements. */
uint64_t cow_grid_chunks_along(uint64_t extent, uint64_t chunk);
/* Number of chunks of one tile. */
unsigned cow_grid_tile_chunks(const cow_grid *grid);
/* Offset in its tile of the chunk at POSITION of a leaf: dimension 0 runs fastest, so that chunks that are stacked along
 * dimension 0, as slots are in raw_data, become one run and one mapping. */
void cow_grid_tile_offset(const cow_grid *grid, unsigned position, uint64_t offset[]);
/* Of the child at POSITION in a node of LEVEL, in children: row-major, the last dimension fastest. */
void cow_grid_child_offset(const cow_grid *grid, unsigned level, unsigned position, uint64_t child[]);

/* What a version says of a dataset: the root record, which is in the log as well. */
typedef struct cow_root {
    uint64_t dataset; /* id */
    uint64_t pool;    /* id */
    unsigned rank;
    uint64_t extent[COW_MAX_RANK];  /* elements */
    uint64_t maximum[COW_MAX_RANK]; /* elements, COW_UNLIMITED */
    uint64_t chunk[COW_MAX_RANK];   /* elements */
    unsigned level;                 /* of the top node */
    uint64_t top;                   /* offset of the top node, or COW_NO_NODE */
    uint64_t chunks;                /* chunks that have a slot */
} cow_root;

int cow_root_read(cow_table *log, uint64_t offset, cow_root *root);
int cow_root_append(cow_table *log, const cow_root *root, uint64_t *offset);

/* A node as read or as just written, for views, verify and tests. */
typedef struct cow_node {
    uint64_t offset; /* in the log */
    uint64_t pool;   /* whose slots it names: a copied dataset shares nodes, and the pool with them */
    unsigned level;
    uint64_t origin[COW_MAX_RANK];   /* first chunk of its box */
    unsigned entries;                /* chunks of a leaf, children of an inner node */
    uint64_t entry[COW_TILE_CHUNKS]; /* leaf: slots, composed chunks or COW_HOLE, by tile position; inner: offsets or
                                        COW_NO_NODE */
} cow_node;
int cow_node_read(cow_table *log, const cow_grid *grid, uint64_t offset, cow_node *node);

/* A composed chunk: a slot of the pool, or fill value, its base, but for the pieces (pieces.h) that have slots of their own in another pool.
 * It is a record of the log, named by leaves, and never changed. Its base is a slot: composed chunks are never chained. */
typedef struct cow_composed {
    uint64_t offset; /* in the log */
    uint64_t pool;
    uint64_t chunk[COW_MAX_RANK];
    uint64_t base;       /* slot of `pool`, COW_HOLE: fill value */
    uint64_t piece_pool; /* id */
    uint64_t own;        /* bit i: piece i has a slot of its own; at least one has */
    uint64_t slot[COW_PIECES];
} cow_composed;
/* ENTRY: a leaf's. A good record that belongs to another chunk than CHUNK (NULL: any) of POOL is COW_CORRUPT as well. */
int cow_composed_read(cow_table *log, unsigned rank, uint64_t entry, uint64_t pool, const uint64_t chunk[],
                      cow_composed *composed);
/* Sets composed->offset. */
int cow_composed_append(cow_table *log, unsigned rank, cow_composed *composed);
/* As the record that will stand at composed->offset, of COW_RECORD_MAX bytes at most. Returns its size. */
size_t cow_composed_encode(unsigned rank, const cow_composed *composed, uint8_t *record);

/* The index of one dataset, in memory: loaded on demand, changed in memory until the commit. */
typedef struct cow_index cow_index;
/* ROOT: as read, or with top = COW_NO_NODE for a new dataset. LOG stays the caller's. */
cow_index *cow_index_open(cow_table *log, const cow_grid *grid, const cow_root *root);
void cow_index_close(cow_index *index);

/* In all that follows a slot may also be a composed chunk (cow_is_composed). */
int cow_index_get(cow_index *index, const uint64_t chunk[], uint64_t *slot); /* COW_HOLE where there is none */
/* SLOT may be COW_HOLE. *OLD (may be NULL): what was there. */
int cow_index_set(cow_index *index, const uint64_t chunk[], uint64_t slot, uint64_t *old);
/* So many bytes of nodes are kept as they are: when there are more, unchanged ones are dropped, and leaves that are to be written
 * are packed. Else it is some 20 MB. */
void cow_index_keep(cow_index *index, size_t bytes);
uint64_t cow_index_chunks(const cow_index *index); /* chunks that have a slot */
bool cow_index_changed(const cow_index *index);    /* since open or the last commit */
unsigned cow_index_level(const cow_index *index);  /* of the top node */
/* Offset of the leaf that was the top node at open or the last commit; COW_NO_NODE: the top node was none. */
uint64_t cow_index_lone_leaf(const cow_index *index);
/* The record of a new composed chunk: base, piece_pool, own and slot are the caller's. It is in the log when this returns, though
 * no leaf names it: *ENTRY is for cow_index_set. */
int cow_index_compose(cow_index *index, const uint64_t chunk[], cow_composed *composed, uint64_t *entry);
/* What a composed ENTRY of CHUNK is. */
int cow_index_composed(cow_index *index, const uint64_t chunk[], uint64_t entry, cow_composed *composed);
/* Was a composed ENTRY made since open or the last commit? */
bool cow_index_composed_now(const cow_index *index, uint64_t entry);

/* Visit every chunk that has a slot and touches the box [first, first+count), tile by tile. A visitor's non-zero
 * answer ends the visit and is returned. The index may be asked meanwhile, but not changed. */
typedef int cow_index_visitor(void *context, const uint64_t chunk[], uint64_t slot);
int cow_index_visit(cow_index *index, const uint64_t first[], const uint64_t count[], cow_index_visitor *visitor,
                    void *context);

/* Forget every chunk outside [0, grid_extent) (chunks), calling DROPPED for each: a shrinking dataset. */
int cow_index_trim(cow_index *index, const uint64_t grid_extent[], cow_index_visitor *dropped, void *context);

/* Append the changed nodes, children before parents, calling WRITTEN (may be NULL) for each, and return the top node
 * and its level for the root record. Nothing changed: nothing is written. */
typedef int cow_node_visitor(void *context, const cow_node *node);
int cow_index_commit(cow_index *index, cow_node_visitor *written, void *context, uint64_t *top, unsigned *level);

#endif
