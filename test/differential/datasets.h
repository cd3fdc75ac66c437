/* Datasets that the program holds open. */
#ifndef DIFFERENTIAL_DATASETS_H
#define DIFFERENTIAL_DATASETS_H

#include "run.h"

void drop_handle(size_t i);
/* A dataset to work on: one that is open, or opened now (and kept open, or not: *own). false: there is none. */
bool find_dataset(pair *set, char path[PATH_SIZE], bool *own);
/* Compares the dataset behind open handles: its link may be gone. */
void check_dataset(pair set, const char *path);
hid_t random_space(char *text, size_t size, int *rank, hsize_t dims[4], hsize_t max[4]);

#endif
