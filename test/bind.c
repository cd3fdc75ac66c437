/* Linked into every C test that has the connector's objects in it: their table leads to the libhdf5 that the test is linked
 * with. */
#include "library/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* A test that calls nothing of HDF5 itself would not be linked with it. */
herr_t (*const test_needs_hdf5)(void);
herr_t (*const test_needs_hdf5)(void) = H5open;

/* Before the constructors of instead.h. */
__attribute__((constructor(101))) static void bind_library(void)
{
    char why[300];

    if (cow_library_bind(RTLD_DEFAULT, why, sizeof why) < 0) {
        fprintf(stderr, "the HDF5 library cannot be bound: %s\n", why);
        abort();
    }
}
