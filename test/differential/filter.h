/* A filter of the program's own that does not take every chunk: HDF5 then stores the chunk without it. */
#ifndef DIFFERENTIAL_FILTER_H
#define DIFFERENTIAL_FILTER_H

#include <hdf5.h>

#include <stdbool.h>

#define SOMETIMES 311 /* to be used with H5Z_FLAG_OPTIONAL */

void know_filter(void);
/* Is it among the filters? */
bool leaves_chunks_out(hid_t dcpl);

#endif
