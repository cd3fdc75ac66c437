/* Objects of the head, by address, and those that the history keeps when the application deletes them. */
#ifndef COW_HISTORY_HEAD_H
#define COW_HISTORY_HEAD_H

#include "history/history.h"

/* A dataset or other object of the head. One that the application has open is opened only as the application did (HDF5
 * compares prefixes for external files), so then it is a handle of the application's: *BORROWED, not to be closed. By address, never
 * by name: a name may lead across a mount point into another file. */
int cow_head_open(const cow_file *file, uint64_t address, cow_loc *object, bool *borrowed);
void cow_head_close(cow_loc object, bool borrowed);
/* The head object at ADDRESS, which a version knows, is linked in /_versioned_data/removed. */
int cow_file_keep(cow_file *file, uint64_t address);
/* Is it? 1: INFO is what HDF5 says of it, which has not opened it, as that costs much more; 0: that link leads elsewhere; -1: no, or it
 * cannot be told. The file is laid out. */
int cow_file_removed_info(cow_file *file, uint64_t address, H5O_info2_t *info);
/* It is not any more: it has another link. */
int cow_file_unkeep(cow_file *file, uint64_t address);

#endif
