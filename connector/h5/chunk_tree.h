/* The chunk index that every reader of HDF5 knows: version 1 B-trees of node type 1 (HDF5 File Format Specification, III.A.1).
 *
 * The root keeps its address as long as the tree lives. It has room for one entry less than other nodes: there stands its owner, a number
 * that tells whose tree this is. HDF5 reads and keeps nothing there, and overwrites it when it uses the place for another node.
 *
 * Keys are offsets of chunks in elements, and 0 in the dimension of the element's bytes. The last key of a node, which only bounds
 * the others, is the same in all nodes of a tree: no chunk is beyond it. */
#ifndef COW_CHUNK_TREE_H
#define COW_CHUNK_TREE_H

#include "h5/chunk_index.h"
#include "h5/dataset_header.h"

#define COW_CHUNK_TREE_RANK 32

/* What all nodes of a tree have in common. */
typedef struct cow_chunk_form {
    unsigned rank;                       /* of the dataset, 1 to 32 */
    uint64_t chunk[COW_CHUNK_TREE_RANK]; /* elements, not 0 */
    uint32_t element;                    /* bytes of one, not 0 */
    unsigned half;                       /* of the most children of a node: the superblock's K, 1 to 32,767 */
    unsigned width;                      /* bytes of an address, 4 or 8 */
} cow_chunk_form;

/* That of the dataset of which HEADER tells, with addresses of 8 bytes. false: it has no tree, or HALF cannot be. */
bool cow_chunk_form_of(const cow_dataset_header *header, unsigned half, cow_chunk_form *form);
size_t cow_chunk_tree_node_size(const cow_chunk_form *form); /* bytes */

/* Where nodes are. WRITE, TAKE (a place of SIZE bytes) and GIVE (one that is not needed any more) are NULL where nothing is written; each
 * 0, or -1 recorded. What was written is what SOURCE reads. */
typedef struct cow_chunk_tree_space {
    const cow_source *source;
    cow_header_writer *write;
    int (*take)(void *context, size_t size, uint64_t *address);
    int (*give)(void *context, uint64_t address, size_t size);
    void *context;
} cow_chunk_tree_space;

typedef struct cow_chunk_tree cow_chunk_tree;

/* A new tree without chunks, at *ROOT. 0 or -1. */
int cow_chunk_tree_create(const cow_chunk_form *form, const cow_chunk_tree_space *space, uint64_t owner,
                          uint64_t *root);

/* Each 1; 0: it is damaged, or no tree of ours, or there is no memory; -1: recorded. SPACE and its source outlive the tree. After 0 or -1
 * nothing but close can be done with it. */
int cow_chunk_tree_open(const cow_chunk_form *form, const cow_chunk_tree_space *space, uint64_t root,
                        cow_chunk_tree **tree, uint64_t *owner);
void cow_chunk_tree_close(cow_chunk_tree *tree); /* what was not flushed is lost; NULL does nothing */

/* The chunk at AT ([rank], multiples of the chunk) is at PLACE from now on; its address UINT64_MAX: it has none. Sizes are below 4 GiB.
 * Nodes are written when there are many, or by flush. */
int cow_chunk_tree_put(cow_chunk_tree *tree, const uint64_t at[], const cow_chunk_place *place);
int cow_chunk_tree_flush(cow_chunk_tree *tree);

int cow_chunk_tree_find(cow_chunk_tree *tree, const uint64_t at[], cow_chunk_place *place);

/* All chunks, in the order of their offsets, of a tree that was flushed. VISIT: 1 goes on, all else ends the visit and is returned. NODE, if
 * not NULL: each node, the root first. */
typedef struct cow_chunk_tree_visitor {
    int (*chunk)(void *context, const uint64_t at[], const cow_chunk_place *place);
    int (*node)(void *context, uint64_t address);
    void *context;
} cow_chunk_tree_visitor;
int cow_chunk_tree_visit(cow_chunk_tree *tree, const cow_chunk_tree_visitor *visitor);

/* All its nodes but the root, which is an empty leaf then, are given back. */
int cow_chunk_tree_clear(cow_chunk_tree *tree);

/* The SIZE bytes of a node at ADDRESS: are they the root of a tree that h5cow made? 1; 0; -1: they are, and its owner is damaged, so that
 * nobody may take it for another's; no error is recorded. *OWNER may be NULL. */
int cow_chunk_tree_owned(const uint8_t *bytes, size_t size, uint64_t address, uint64_t *owner);
/* The same of the tree at ROOT, of whose bytes as little is read as it takes. -1: recorded. */
int cow_chunk_tree_owner(const cow_chunk_form *form, const cow_source *source, uint64_t root, uint64_t *owner);
/* As if such a root had no chunks. */
void cow_chunk_tree_hide(uint8_t *bytes, size_t size);

#endif
