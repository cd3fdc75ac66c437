/* One transfer of elements: which of the file, where in memory, as what type. And what to know of a dataset before. */
#ifndef DIFFERENTIAL_TRANSFER_H
#define DIFFERENTIAL_TRANSFER_H

#include "run.h"

typedef struct transfer {
    hid_t type, file_space, mem_space; /* spaces may be H5S_ALL or H5S_BLOCK */
    size_t elements;                   /* of the buffer */
    hid_t plist;
    char text[700];
} transfer;

/* Chooses elements of a space and says so. */
void random_selection(hid_t space, char *text, size_t size);
void plan_transfer(transfer *t, hid_t set, bool whole);
/* All members of a compound, where HDF5 loses the others (D24, D38). */
void name_all_members(transfer *t, hid_t set);
void end_transfer(transfer *t);
/* Random values. false: both sides refused. */
bool write_dataset(pair set, bool whole);
/* What HDF5 itself would spoil by writing it again. D12: a chunk was written raw, past filters that never fail by
 * themselves (deflate alone may give up). D27. */
bool read_only(hid_t set);
/* D5: nobody knows what unwritten elements of such a dataset are. */
bool without_fill(hid_t set);

#endif
