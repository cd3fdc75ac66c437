/* Views: virtual datasets that give HDF5 without the connector the same answer.
 *
 * Each index node has a view at /_versioned_data/views/<offset in hex>: an inner node's is virtual over the views of
 * its children, a leaf's over the pool's raw_data, runs of slots whose chunks are stacked in the same order merged into
 * one mapping; mappings never overlap. A node's view always has the extent of the node's full box; the root record's
 * view alone is clipped to the dataset's extent. Where the top node is a leaf, the root's view shows what the leaf's would, and the
 * leaf has none before it becomes the child of a node. A composed chunk has a view of its own, over its base and its pieces, which
 * its leaves show. Every view carries the dataset's fill value. The connector itself reads
 * by the index, and through a view only references of HDF5 1.8 that are asked for as new ones (vol/dataset.c).
 */
#ifndef COW_VIEW_H
#define COW_VIEW_H

#include "layout/layout.h"
#include "native/virtual.h"
#include "store/index.h"
#include "store/pieces.h"

/* One mapping, as the plan of a view: a box of the view over a box of the source with as many elements. */
typedef struct cow_mapping {
    uint64_t start[COW_MAX_RANK], source_start[COW_MAX_RANK];
    uint64_t count[COW_MAX_RANK], source_count[COW_MAX_RANK];
    uint64_t source; /* child node; of a leaf the composed chunk, 0: the box is in raw_data */
    bool cut;        /* the source has more */
} cow_mapping;
/* The mappings of NODE (pure). MAPPINGS has room for COW_TILE_CHUNKS. Returns their number. EXTENT: that of the dataset, at which what would have too many
 * elements for HDF5 is cut (cow_view_too_large); NULL: nothing is. */
unsigned cow_view_plan(const cow_grid *grid, const cow_node *node, const uint64_t extent[], cow_mapping mappings[]);
/* HDF5 counts the elements of a selection in 64 bits, and does not see when they are more: a box of several unlimited dimensions, all of which are as long as the
 * longest needs, soon has more. */
bool cow_view_too_large(const cow_mapping *m, unsigned rank);

/* The mappings of ROOT's view (pure): of LEAF's chunks, its top node, where that is a leaf and not NULL; else one onto the top node's
 * view. */
unsigned cow_view_plan_root(const cow_grid *grid, const cow_root *root, const cow_node *leaf, cow_mapping mappings[]);

/* The pieces of a composed chunk that one mapping shows: their order in the chunk is the order of their slots. Bit i of GROUP[k]:
 * piece i is in mapping k. Returns the number of mappings. */
unsigned cow_view_plan_pieces(const cow_composed *composed, uint64_t group[COW_PIECES]);

/* A dataset that mappings show, and its rows. */
typedef struct cow_view_source {
    const char *name;
    uint64_t rows;
} cow_view_source;
/* Add to DCPL the mappings of a composed chunk: onto BASE and PIECES, the raw_data of its pool and of that of its pieces. ALONE: each
 * piece has a mapping of its own. */
int cow_view_map_composed(hid_t dcpl, const cow_grid *grid, const cow_composed *composed, const cow_piecing *cut,
                          const cow_view_source *base, const cow_view_source *pieces, bool alone);

/* Where views are, in the file of a context. -1: recorded. */
typedef struct cow_view_folder {
    /* The path that the view of the record at OFFSET has, or is to have; with it PARTS may change. */
    int (*place)(void *file, uint64_t offset, char path[COW_PATH_MAX]);
    /* Is it there, and waits for no link? 1, 0. */
    int (*exists)(void *file, uint64_t offset);
    /* Its group, which stays open until others are asked for. */
    int (*open)(void *file, uint64_t offset, cow_loc *group);
    /* It has its header at ADDRESS, and waits for its link. */
    int (*wait)(void *file, uint64_t offset, uint64_t address);
} cow_view_folder;

/* What all views of a dataset share. */
typedef struct cow_view_context {
    const cow_view_folder *folder;
    void *file;
    const uint64_t *parts;   /* cow_layout_view_path */
    char path[COW_PATH_MAX]; /* of the view that is made */
    uint64_t made;           /* where the header of the last one is; 0: HDF5 has made it */
    const cow_grid *grid;
    const uint64_t *extent; /* of the dataset */
    hid_t type;
    hid_t fill_dcpl;           /* a dcpl with the dataset's fill value settings, contiguous; not changed */
    char source[COW_PATH_MAX]; /* path of the pool's raw_data */
    uint64_t source_rows;      /* its extent along dimension 0 (any extent that covers the slots) */
    cow_virtual *virtual;      /* NULL: HDF5 makes them */
} cow_view_context;

/* Ends it: closes fill_dcpl and VIRTUAL. */
void cow_view_end(cow_view_context *context);

/* Make the view of a node that was just written. */
int cow_view_node(cow_view_context *context, const cow_node *node);
/* Make that of the node at offset NODE of LOG where there is none. Returns 1 if it made one, else 0. */
int cow_view_node_once(cow_view_context *context, cow_table *log, uint64_t node);
/* Make that of a composed chunk, where there is none. PIECES: raw_data of its pool of pieces, which has PIECE_ROWS. */
int cow_view_composed(cow_view_context *context, const cow_composed *composed, const cow_piecing *cut,
                      const char *pieces, uint64_t piece_rows);
/* Make the view of a root record at log offset NODE. LEAF: its top node where that is a leaf, else NULL. DCPL: H5I_INVALID_HID, or that
 * of the dataset, so that the view can be its snapshot. Returns 1 if it can: where it shows nothing that is stored it cannot; else 0. */
int cow_view_root(cow_view_context *context, uint64_t node, const cow_root *root, const cow_node *leaf, hid_t dcpl);
/* Make, at GROUP/NAME, a virtual dataset with one mapping, all of it <- all of SOURCE: a head dataset or a snapshot.
 * DCPL: fill value and object creation settings of the dataset; not changed. Returns the native dataset. */
void *cow_view_whole(cow_loc group, const char *name, hid_t type, unsigned rank, const uint64_t extent[],
                     const uint64_t maximum[], hid_t dcpl, const char *source);

#endif
