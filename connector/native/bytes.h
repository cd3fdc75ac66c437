/* The bytes of an open file, at the addresses that HDF5 gives them: behind its user block. */
#ifndef COW_NATIVE_BYTES_H
#define COW_NATIVE_BYTES_H

#include "h5/header.h"
#include "journal/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What it takes to find in the bytes of a file what HDF5 has put there. */
typedef struct cow_native_bytes {
    cow_journal *journal;
    unsigned long fileno;
    uint64_t base; /* of HDF5's addresses */
    uint64_t page; /* of what is in it nothing lies across the end of a page of so many bytes; 0: it has none */
    bool persists; /* HDF5 keeps free space from one opening to the next */
    bool shares;   /* messages of object headers between objects */
} cow_native_bytes;
/* false: its bytes cannot be had, since it has another driver than ours, or its addresses or lengths have other sizes than usual. */
bool cow_native_file_bytes(void *file, cow_native_bytes *bytes);
/* The same for nothing but cow_bytes_look, also where the file has no journal. */
bool cow_native_file_looks(void *file, cow_native_bytes *bytes);
/* Half of the most children of a node of the version 1 B-trees of chunks in a file of which the bytes can be had; else 0. */
unsigned cow_native_file_half(void *file);
/* Room for SIZE bytes: one that was given back (cow_journal_driver_offer), or else AT_END. UINT64_MAX: there is none; at the end, recorded. */
uint64_t cow_bytes_take(const cow_native_bytes *bytes, uint64_t size, bool at_end);
int cow_bytes_write(const cow_native_bytes *bytes, uint64_t address, const void *from, size_t size);
/* false: the file ends before, or cannot be read; nothing is recorded. */
bool cow_bytes_look(const cow_native_bytes *bytes, uint64_t address, void *to, size_t size);
/* To read structures from BYTES, which are not copied. */
cow_source cow_bytes_source(cow_native_bytes *bytes);

#endif
