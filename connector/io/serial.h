/* Elements with variable-length or reference parts as bytes that can be compared: see heap.h for the rules. For io/
 * and history/sums.c. The bytes depend on content alone, not on where HDF5 keeps it. */
#ifndef COW_SERIAL_H
#define COW_SERIAL_H

#include "base/digest.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How to walk through an element of a type in memory, found once. */
typedef struct cow_serial cow_serial;
/* FILE_NAME: as H5Fget_name has it; a reference to an object of that file does not name the file. */
cow_serial *cow_serial_open(hid_t type, const char *file_name);
void cow_serial_close(cow_serial *serial);
/* Checksum of all N = chunk[0] * ... elements, SIZE bytes each, and, with TRIMMED, hash of those inside it. The hash
 * tells a null pointer from an empty string, which read back as what they were; the checksum, which any reader must be
 * able to compare, does not. Nor does it depend on the selections of region references: they can be asked for only while
 * their dataset is there. REGIONS: it does all the same, as the checksums that h5cow once wrote. Where the hash has to do
 * without a selection, SLOT, the number of the chunk's own slot, is in it: what cannot be compared is equal to nothing else. */
int cow_serial_digest(const cow_serial *serial, const void *elements, size_t size, unsigned rank,
                      const uint64_t chunk[], const uint64_t trimmed[], uint64_t slot, bool regions,
                      cow_digest *digest);
/* Bytes that HDF5 allocated for the variable-length parts of COUNT elements, SIZE bytes each, as it read them. */
uint64_t cow_serial_memory(const cow_serial *serial, const void *elements, size_t size, size_t count);

#endif
