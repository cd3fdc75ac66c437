/* Heads that every HDF5 reads: a chunked dataset whose index names the slots of the pool, a version 1 B-tree (h5/chunk_tree.h) that h5cow
 * alone changes. Its label is the number of the dataset's row. */
#ifndef COW_HEAD_INDEX_H
#define COW_HEAD_INDEX_H

#include "history/history.h"
#include "h5/dataset_header.h"

/* A new index for chunks of CHUNK elements of ELEMENT bytes, of the dataset ID, at *ROOT. 0 or -1. */
int cow_head_index_create(cow_file *file, unsigned rank, const uint64_t chunk[], size_t element, uint64_t id,
                          uint64_t *root);

/* What HEAD, of which its header says that it is chunked with a B-tree, is labelled with. 1; 0: it is no head of ours; -1. */
int cow_head_index_label(cow_file *file, const cow_source *source, const cow_dataset_header *head, uint64_t *id);

/* The same of the head at ADDRESS. */
int cow_head_index_find(cow_file *file, uint64_t address, uint64_t *id);

/* While a commit writes the nodes of a dataset's index, its head's is changed along with them. */
typedef struct cow_head_change cow_head_change;
cow_head_change *cow_head_index_begin(cow_dataset *dataset); /* NULL: -1 */
int cow_head_index_leaf(cow_head_change *change, const cow_node *leaf);
/* ALL: chunks may have gone of which no leaf tells. CHANGE is freed, whatever comes of it. STATUS: of all before. */
int cow_head_index_end(cow_head_change *change, bool all, int status);

/* The head HEAD, whose row is ID, has the chunks of SOURCE from now on. */
int cow_head_index_follow(uint64_t head, uint64_t id, cow_dataset *source);

#endif
