/* What the files of layout/ share. Nobody else includes this. */
#ifndef COW_LAYOUT_INTERNAL_H
#define COW_LAYOUT_INTERNAL_H

#include "layout/layout.h"

/* 0: ROWS rows of SIZE bytes are not more than the file has bytes for. */
int cow_layout_room(cow_loc file, const char *path, uint64_t rows, size_t size);
/* 0: DATASET is stored as a table is: chunks, filters, no fill value. Asked, as the members of rows are, before the first
 * row is read, written or added: it costs as much as all else in opening a table. */
int cow_layout_stored(void *dataset, size_t row_size);
/* 0: the texts of these rows, and those that *SUM counts, are no longer than the file, together. */
int cow_layout_texts(cow_loc file, void *dataset, const char *path, uint64_t first, uint64_t count, uint64_t *sum);

#endif
