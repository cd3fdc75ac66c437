/* Elements with variable-length or reference parts as bytes that can be compared: see heap.h for the rules. Private to
 * io/. The bytes depend on content alone, not on where HDF5 keeps it. */
#ifndef COW_SERIAL_H
#define COW_SERIAL_H

#include <hdf5.h>

#include <stddef.h>
#include <stdint.h>

typedef struct cow_bytes {
    uint8_t *data; /* free() */
    size_t size, room;
} cow_bytes;
int cow_bytes_append(cow_bytes *bytes, const void *data, size_t size);

/* How to walk through an element of a type in memory, found once. */
typedef struct cow_serial cow_serial;
/* FILE_NAME: as H5Fget_name has it; a reference to an object of that file does not name the file. */
cow_serial *cow_serial_open(hid_t type, const char *file_name);
void cow_serial_close(cow_serial *serial);
/* Append one element to BYTES. */
int cow_serial_append(const cow_serial *serial, const void *element, cow_bytes *bytes);

#endif
