/* New heads that every HDF5 reads. HDF5 itself makes the header, in a file in memory; it gets an index of the dataset's own (head_index.h), and is
 * written as bytes. */
#ifndef COW_NATIVE_HEAD_H
#define COW_NATIVE_HEAD_H

#include "history/history.h"
#include "history/pools.h"

typedef struct cow_native_head cow_native_head; /* one of each file */
cow_native_head *cow_native_head_new(void);     /* NULL: no memory */
void cow_native_head_close(cow_file *file);
void cow_native_head_free(cow_native_head *last);

/* The head of the dataset of which ROOT tells, whose chunks are in POOL; ROW gets its address. UNOPENED: HDF5 need not have it open; else *NATIVE is it, open. 1; 0: another
 * kind of head has to be made; -1: nothing more is to be committed. */
int cow_native_head_make(cow_file *file, const cow_creation *wanted, bool unopened, const cow_root *root,
                         const cow_pool_entry *pool, cow_layout_dataset_row *row, void **native);

#endif
