/* The connector inside a test program: linked in, not loaded as a plugin, so that tests reach its rooms as well. */
#ifndef WITH_CONNECTOR_H
#define WITH_CONNECTOR_H

#include <hdf5.h>

/* A file access list that selects the connector with OPTIONS (as behind its name in HDF5_VOL_CONNECTOR). Negative: it
 * cannot be. Close it with H5Pclose. */
hid_t connector_fapl(const char *options);
/* One that selects native HDF5, whatever the environment says. */
hid_t native_fapl(void);

#endif
