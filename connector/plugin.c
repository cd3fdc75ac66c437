/* The two functions that HDF5 looks for in a plugin file. All else is in vol/class.c. */
#include "vol/vol.h"

#include <H5PLextern.h>

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_VOL;
}

const void *H5PLget_plugin_info(void)
{
    return &cow_class;
}
