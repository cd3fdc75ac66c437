/* Writes whose selection in the file names an element twice. HDF5 removes what such an element held from its heap once for each point.
 * Where that was alone there, the second removal fails, and HDF5 is left with a heap that no longer exists: the next value that it
 * stores in this file crashes the program (HDF5 1.14.5). The last point counts, so the others need not be written. */
#ifndef COW_POINTS_H
#define COW_POINTS_H

#include <hdf5.h>

/* {0} holds nothing. */
typedef struct cow_points_once {
    hid_t file, memory; /* the selections, and BUF, of a write that does the same */
    const void *buf;
    void *own;
} cow_points_once;

/* 1: ONCE is to be written instead, and cow_points_once_free ends it; 0: no element is named twice, or HDF5 will refuse the call; -1 */
int cow_points_once_open(hid_t mem_type, hid_t mem_space, hid_t file_space, const void *buf, cow_points_once *once);
void cow_points_once_free(cow_points_once *once);

#endif
