/* Filters of the program's own: one that does not take every chunk (HDF5 then stores the chunk without it), one that has HDF5
 * compute its parameters, and does so otherwise each time that it is asked, and one that is for some types only. */
#ifndef DIFFERENTIAL_FILTER_H
#define DIFFERENTIAL_FILTER_H

#include <hdf5.h>

#include <stdbool.h>

#define SOMETIMES 311 /* to be used with H5Z_FLAG_OPTIONAL */

#define COMPUTES 312 /* set_local: the number of its calls for a list is a parameter */
#define CHOOSES  313 /* can_apply: elements of 1, 2, 4 or 8 bytes */

void know_filter(void);
/* Calls of set_local and can_apply so far, which are those of HDF5: as many for either side. */
unsigned long filter_calls(void);
/* Is it among the filters? */
bool leaves_chunks_out(hid_t dcpl);

#endif
