/* The HDF5 library that this instance of h5cow serves.
 *
 * h5cow is not linked with libhdf5. A program may have loaded any, or several; one of them loads the plugin, and all
 * calls of this instance go to that one by a table of pointers, cow_library. calls.h, which the compiler includes before
 * every source of connector and command, makes H5Fopen mean cow_library.H5Fopen_. The table is written by table.py from
 * the sources; what is not in every release of HDF5 is in versions.h.
 *
 * A process with several libraries has an instance of the plugin for each (plugin.c), with a table of its own.
 */
#ifndef COW_LIBRARY_H
#define COW_LIBRARY_H

#include "library/headers.h"
#include "library/versions.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct cow_hdf5 {
    unsigned major, minor, release; /* zeros: not bound */
    cow_hdf5_versions differs;
    cow_hdf5_driver_symbols driver[COW_VFDS];
#include "hdf5_table.h"
} cow_hdf5;

extern cow_hdf5 cow_library;

/* Fills the table from LIBRARY, a handle of dlopen. Negative: it cannot be served, and WHY (SIZE bytes) says the reason.
 * Then the table is as it was. The library is not held: it outlives the plugin that it has loaded. */
int cow_library_bind(void *library, char *why, size_t size);

/* Without calling it, which would initialise it and clear its error stack. False: it is no HDF5 library, or its symbols
 * cannot be found. */
bool cow_library_version(void *library, unsigned version[3]);

/* Is LIBRARY what the table was filled from? */
bool cow_library_is(void *library);

/* Finds a libhdf5 for a program that is not linked with one, loads and binds it: what PATH names, else what is there
 * already, else the one of the system. For the command. Negative: WHY says what was tried. */
int cow_library_find(const char *path, char *why, size_t size);

/* True: 2.0 or newer. */
static inline bool cow_library_is_2(void)
{
    return cow_library.major >= 2;
}

/* H5Ovisit goes below a start whose type was not asked for. 1.14 finds no group there, and reports the start only. */
static inline bool cow_library_visits_untyped(void)
{
    return cow_library_is_2();
}

/* H5Ovisit reports each object once, whatever it was asked for. */
static inline bool cow_library_visits_once(void)
{
    return cow_library.major > 2 || (cow_library.major == 2 && cow_library.minor >= 2);
}

/* H5F_LIBVER_LATEST, which is another number in each library: it allows types that only HDF5 2 has. */
static inline H5F_libver_t cow_library_latest(void)
{
    return (H5F_libver_t)(cow_library_is_2() ? H5F_LIBVER_V114 + 1 : H5F_LIBVER_V114);
}

/* The newest encoding of datatypes that HDF5 makes where the upper version bound of a file is HIGH (H5O_dtype_ver_bounds). */
static inline unsigned cow_library_type_encoding(H5F_libver_t high)
{
    static const unsigned newest[] = {1, 3, 3, 4, 4}; /* EARLIEST, V18, V110, V112, V114 */

    return high < H5F_LIBVER_EARLIEST || (size_t)high >= sizeof newest / sizeof *newest ? UINT_MAX : newest[high];
}

/* The id of a file driver; H5I_INVALID_HID: the library has none of this name. */
hid_t cow_library_driver(cow_hdf5_driver driver);

/* What a connector needs before it calls HDF5 from outside of any callback. CONTEXT is kept for the second call. */
herr_t cow_library_enter(void **context);
herr_t cow_library_leave(void *context);

/* H5Tdecode; SIZE bytes. */
hid_t cow_library_decode_type(const void *bytes, size_t size);

/* Take ID, which is being closed, out of HDF5's list of ids. */
void cow_library_remove_id(hid_t id);

/* H5Dread_chunk; BYTES has room for SIZE, the chunk's stored size. */
herr_t cow_library_read_chunk(hid_t dataset, const hsize_t *offset, uint32_t *filters, void *bytes, size_t size);

#endif
