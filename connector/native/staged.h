/* Objects that were written as bytes (new_header.h), and have no link yet. HDF5 has nothing of them in memory, and finds them when it follows a link. That
 * is one of a group that is bytes as well; or HDF5 moves it from such a group to where it belongs: H5Lmove does not look at what a link leads to. */
#ifndef COW_STAGED_H
#define COW_STAGED_H

#include "native/native.h"

#include <stddef.h>
#include <stdint.h>

#define COW_STAGED_NAME 24 /* with its end */
#define COW_STAGED_MOST 128

typedef struct cow_staged {
    char name[COW_STAGED_NAME]; /* of its link */
    uint64_t address;           /* of its header */
} cow_staged;

/* A new group with links to COUNT objects, at most COW_STAGED_MOST, of which it is the first one that counts. It has no link itself. -1: recorded. */
int cow_staged_group(const cow_native_bytes *bytes, const cow_staged list[], size_t count, uint64_t *address);
/* They get their links in GROUP, which must have a path. FILE: native, whose BYTES are known. */
int cow_staged_link(void *file, const cow_native_bytes *bytes, const cow_staged list[], size_t count, cow_loc group);
/* The object at ADDRESS gets the link TO from AT, as H5Dcreate makes it, in whose call this must be: HDF5 knows from there what LCPL says. 1; 0: there is no such
 * link, perhaps with a recorded error; -1: perhaps there is, and nothing more is to be committed. */
int cow_staged_link_to(void *file, const cow_native_bytes *bytes, uint64_t address, void *at,
                       const H5VL_loc_params_t *loc, const char *to, hid_t lcpl);

/* The dataset whose header is at ADDRESS, opened from AT with DAPL; it has no link, as one that H5Dcreate_anon makes. NULL: recorded. */
void *cow_staged_anonymous(cow_loc at, const cow_native_bytes *bytes, uint64_t address, hid_t dapl);

#endif
