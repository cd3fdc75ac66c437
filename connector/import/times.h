/* The times of objects, for which HDF5 has no call: they are written into a file that nobody has open. */
#ifndef COW_IMPORT_TIMES_H
#define COW_IMPORT_TIMES_H

#include <hdf5.h>

#include <sys/types.h>

/* The object header AT of FILE gets the times TIME: docs of HDF5's file format, "Data Object Header", version 2. Headers without times, and what does
 * not look like a header, are left alone: who compares notices. 0; -1: errno. */
int cow_set_times(int file, off_t at, const H5O_info2_t *time);

#endif
