/* What the files of layout/ share. Nobody else includes this. */
#ifndef COW_LAYOUT_INTERNAL_H
#define COW_LAYOUT_INTERNAL_H

#include "layout/layout.h"

/* 0: DATASET is a list of *ROWS rows of SIZE bytes, which the file has room for. */
int cow_layout_list(cow_loc file, void *dataset, const char *path, size_t size, uint64_t *rows);

#endif
