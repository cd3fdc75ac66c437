/* Large groups (h5/dense.h) from a file of which the bytes can be had, and into it. */
#ifndef COW_DENSE_FILE_H
#define COW_DENSE_FILE_H

#include "h5/dense.h"

/* FILE: native. As cow_dense_parse and cow_dense_put; the first answers 0 also where the bytes of this file cannot be had so, or not be given back, since HDF5
 * keeps its free space. */
int cow_dense_read(void *file, uint64_t address, cow_dense **dense);
int cow_dense_write(void *file, cow_dense *dense, uint64_t *address);

#endif
