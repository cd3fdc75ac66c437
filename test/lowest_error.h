/* The reason of an error: the lowest record of HDF5's error stack. */
#ifndef LOWEST_ERROR_H
#define LOWEST_ERROR_H

#include <hdf5.h>

#include <stdio.h>

#define LOWEST_ERROR 1024 /* bytes for it */

static inline herr_t note_lowest(unsigned n, const H5E_error2_t *error, void *text)
{
    if (n == 0)
        snprintf(text, LOWEST_ERROR, "%s", error->desc == NULL ? "" : error->desc);
    return 0;
}

/* TEXT stays what it is where there is no error. */
static inline void lowest_error(hid_t stack, char text[static LOWEST_ERROR])
{
    H5Ewalk2(stack, H5E_WALK_UPWARD, note_lowest, text);
}

#endif
