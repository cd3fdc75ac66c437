/* Heads that every HDF5 reads: a chunked dataset whose index names the slots of the pool, a version 1 B-tree (h5/chunk_tree.h) that h5cow
 * alone changes. Its owner is the number of the dataset's row. */
#ifndef COW_HEAD_INDEX_H
#define COW_HEAD_INDEX_H

#include "history/history.h"
#include "h5/dataset_header.h"

/* A new index of the dataset ID, whose header says what HEAD tells but that it has an index, at *ROOT. 0 or -1. */
int cow_head_index_create(cow_file *file, cow_dataset_header *head, uint64_t id, uint64_t *root);

/* Whose index HEAD has, of which its header says that it is chunked with a B-tree. 1; 0: it is no head of ours; -1. */
int cow_head_index_owner(cow_file *file, const cow_source *source, const cow_dataset_header *head, uint64_t *id);

/* While a commit writes the nodes of a dataset's index, its head's is changed along with them. */
typedef struct cow_head_change cow_head_change;
cow_head_change *cow_head_index_begin(cow_dataset *dataset); /* NULL: -1 */
int cow_head_index_leaf(cow_head_change *change, const cow_node *leaf);
/* ALL: chunks may have gone of which no leaf tells. CHANGE is freed, whatever comes of it. STATUS: of all before. */
int cow_head_index_end(cow_head_change *change, bool all, int status);

/* The head at HEAD of the dataset ID, which has the chunks of the root record FORMER (COW_NO_NODE: none), has those of SOURCE from now on. */
int cow_head_index_follow(uint64_t head, uint64_t id, uint64_t former, cow_dataset *source);

#endif
