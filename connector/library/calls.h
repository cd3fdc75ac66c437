/* Included by the compiler before every source of connector and command (meson.build): all calls go by the table. */
#ifndef COW_LIBRARY_CALLS_H
#define COW_LIBRARY_CALLS_H

#include "library/library.h"

#include "hdf5_calls.h"

#endif
