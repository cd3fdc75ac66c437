/* The tables and pools below /_versioned_data of a file that stays as it is while it is open (native/still.h), from its bytes: opening a
 * table by HDF5 costs as much as opening a dataset. What is not as h5cow writes it is left to HDF5, which has the last word: so nothing here
 * records an error. */
#ifndef COW_LAYOUT_STILL_H
#define COW_LAYOUT_STILL_H

#include "h5/dataset_header.h"
#include "layout/layout.h"
#include "native/still.h"

typedef struct cow_layout_still cow_layout_still;

/* NULL: it may change, or is not known here. FILE and JOURNAL outlive it. */
cow_layout_still *cow_layout_still_open(cow_loc file, cow_journal *journal);
/* The same of a file that this process writes, which HDF5 gave the number FILENO, and has just opened: tables are written by bytes as well, as long as
 * HDF5 has not looked at them. Then, and where they need new chunks, it goes on. NULL: as above; where only the tables are not known here, their places are not. */
cow_layout_still *cow_layout_still_open_written(cow_loc file, cow_journal *journal, unsigned long fileno);
/* From now on HDF5 may have tables that are not in the bytes, in a file that is written. */
void cow_layout_still_settle(cow_layout_still *still); /* NULL does nothing */
void cow_layout_still_close(cow_layout_still *still);  /* NULL does nothing */
const cow_still *cow_layout_still_bytes(const cow_layout_still *still);
/* What the attribute `format` says. false: ask HDF5. */
bool cow_layout_still_format(const cow_layout_still *still, uint32_t *format);
/* What the attribute NAME of FILE, a number of SIZE bytes, was when it was opened; what STILL, which may be NULL, does not tell, HDF5 does. 1; 0: there is none; -1 */
int cow_layout_told_number(const cow_layout_still *still, cow_loc file, const char *name, unsigned size,
                           uint64_t *value);
/* The same of COW_PARTS: from which offset on views are in parts. */
int cow_layout_parts(const cow_layout_still *still, cow_loc file, uint64_t *parts);

/* Does FILE have a history? false: ask HDF5. JOURNAL may be NULL. */
bool cow_layout_still_has(cow_loc file, cow_journal *journal);

/* As cow_layout_table_open, of those tables that are not of texts, places, or pools, until STILL is closed. NULL, as where STILL is that: open it. */
cow_table *cow_layout_still_table(const cow_layout_still *still, cow_table_kind kind, uint32_t number, unsigned rank);

/* Was there no table of this kind, one of those that are made when they are first needed (of hashes: of no pool), when the file was opened, and was
 * none made since? false: ask HDF5, as where STILL is NULL. Who makes one says so: STILL may be NULL. */
bool cow_layout_still_lacks(const cow_layout_still *still, cow_table_kind kind);
void cow_layout_still_made(cow_layout_still *still, cow_table_kind kind);
/* Is there no tag NAME? false: ask HDF5. */
bool cow_layout_still_lacks_tag(const cow_layout_still *still, const char *name);

/* How many rows the log has. false: not known, as where STILL is NULL. */
bool cow_layout_still_log_rows(const cow_layout_still *still, uint64_t *rows);

/* A dataset of the history that can be open instead of one of the program's, and where it is; the caller closes it. In a file that is only read, of
 * which STILL is: `index`. STILL NULL: `pools`, since rows of `index` are bytes as long as HDF5 has not read its header; and as tables are opened, without
 * a chunk cache, which all handles on it share: a commit writes out none. NULL: the error, or there is none. */
void *cow_layout_stand_in(const cow_layout_still *still, cow_loc file, uint64_t *address);

/* What raw/<pool> is; false: open it. */
bool cow_layout_still_raw(const cow_layout_still *still, uint32_t pool, cow_dataset_header *raw);
/* Its shape, where its elements have ELEMENT_SIZE bytes in memory and in the file. -1: it is not that of a pool, without a recorded error. */
int cow_layout_still_shape(const cow_dataset_header *d, size_t element_size, cow_raw *raw);

#endif
