/* Which versioned datasets of a file are open, and the table `datasets`. Both are datasets.c's alone. */
#ifndef COW_HISTORY_DATASETS_H
#define COW_HISTORY_DATASETS_H

#include "base/map.h"
#include "history/history.h"

typedef struct cow_datasets cow_datasets;

/* NULL: no memory. */
cow_datasets *cow_datasets_new(void);
void cow_datasets_free(cow_datasets *datasets);
/* The table itself: made in a new file, or opened, which does nothing where it is open. */
int cow_datasets_create(cow_file *file);
int cow_datasets_open(cow_file *file);
/* The table; all datasets are forgotten, and belong to who holds them. */
void cow_datasets_close(cow_file *file);

/* ---- rows ---- */

/* How many there are: the number of the next one. */
uint64_t cow_datasets_rows(const cow_file *file);
int cow_datasets_add_row(cow_file *file, const cow_layout_dataset_row *row);
int cow_dataset_row_write(cow_file *file, uint64_t id, const cow_layout_dataset_row *row);
int cow_dataset_row_read(cow_file *file, uint64_t id, cow_layout_dataset_row *row);
/* Rows that were added or written stay in memory until here: before HDF5 is flushed for a commit. */
int cow_datasets_flush(cow_file *file);

/* ---- open ones, by the address of the head or snapshot object ---- */

/* NULL: it is not open, or no versioned dataset. */
cow_dataset *cow_datasets_find(const cow_file *file, uint64_t address);
int cow_datasets_put(cow_file *file, uint64_t address, cow_dataset *dataset);
void cow_datasets_remove(cow_file *file, uint64_t address);
/* Nobody has DATASET, which is not kept yet, open any more: it stays for who opens it again. Where the file is written it has a handle, so that its address is not
 * given to another object. The one that has to go for it, or NULL. */
cow_dataset *cow_datasets_keep(cow_file *file, cow_dataset *dataset);
size_t cow_datasets_count(const cow_file *file);
/* DATASET (NULL: one of them) is in use, and HDF5 has not opened all that the program has of it; where there is no handle of our own, that is noted. -1: there is
 * no memory to. */
int cow_datasets_note_unopened(cow_file *file, const cow_dataset *dataset);
bool cow_datasets_unopened(const cow_file *file);
/* There is a handle on that at ADDRESS now. */
void cow_datasets_held(cow_file *file, uint64_t address);
/* The addresses of those without: none is noted any more. The caller frees it. */
cow_map cow_datasets_take_unheld(cow_file *file);
/* One after the other, in no order; *AT is 0 before the first. NULL: there are no more. Who removes one takes 1 off *AT: another
 * may have come to its place. */
cow_dataset *cow_datasets_next(const cow_file *file, size_t *at);

/* Has the application one of the head's open? What is kept is forgotten, since the caller is about to change what it shows. */
bool cow_datasets_in_use(cow_file *file);

#endif
