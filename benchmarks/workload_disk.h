/* What a stretch of HDF5 calls wrote to one file: see workload_disk.c. Sizes are bytes. */
#ifndef WORKLOAD_DISK_H
#define WORKLOAD_DISK_H

#include <stdint.h>

typedef struct disk_count {
    uint64_t appended;    /* by how much the file grew */
    uint64_t overwritten; /* distinct bytes below the former end that were written to */
    uint64_t changed;     /* of those, how many have another value than before */
} disk_count;

/* Copy a file, also over an existing one. Exits with a message when it cannot, as everything here does. */
void disk_copy(const char *from, const char *to);

/* Begin: FILE is what the following calls may change; FORMER is a name where a copy of it may lie meanwhile. */
void disk_watch(const char *file, const char *former);

/* End: FILE is closed again. */
disk_count disk_result(void);

/* Largest memory that this program ever held, in KiB. */
uint64_t disk_peak_memory(void);

#endif
