/* Datasets that were changed in this transaction and that nobody has open any more, committed before its version is made. An open one
 * takes some 40 KiB of memory, in HDF5 and here, and a program may make any number of them: so when many wait, what a commit does
 * with them is done at once (chunks, index, views, where the head leads), and they are closed. Only the snapshot is left for the
 * version. Nothing of it is on the disk as a state before the transaction is.
 *
 * While a dataset is open, its address is not used again, whatever becomes of it. These are not: so before one can go it is opened
 * again. With a group any of them may go: then all are, and no others are stowed until the transaction is over. */
#ifndef COW_HISTORY_STOWED_H
#define COW_HISTORY_STOWED_H

#include "history/history.h"

typedef struct cow_stowed cow_stowed;

/* NULL: no memory. */
cow_stowed *cow_stowed_new(void);
void cow_stowed_free(cow_stowed *stowed);

typedef struct cow_stowed_head {
    uint64_t id, root; /* of the dataset, and its root record */
    uint64_t view;     /* where the header of that record's view is, to which heads/<id> leads; 0: not known */
    bool whole;        /* it can be the snapshot */
} cow_stowed_head;

/* Is the head object at ADDRESS one of them, or in use and committed by this transaction without a handle of our own (cow_dataset_attach_unopened)? HEAD may be
 * NULL. */
bool cow_stowed_find(const cow_file *file, uint64_t address, cow_stowed_head *head);
/* The same of DATASET, which is committed. */
cow_stowed_head cow_dataset_head(const cow_dataset *dataset);
/* DATASET, a head, is in use; perhaps again. */
void cow_stowed_take(cow_dataset *dataset);
/* The head at ADDRESS was one of them, and open for a moment: it goes back, where nobody has it open. */
void cow_stowed_back(cow_file *file, uint64_t address);
/* Its view is a snapshot now, or was tried as one. */
void cow_stowed_used(cow_file *file, uint64_t address);
/* The version that shows them is made; or, with MISSED, there is none, and they are still to be told of. */
void cow_stowed_end(cow_file *file, bool missed);

#endif
