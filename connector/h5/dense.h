/* Large groups from the bytes of the file. HDF5 keeps the links of a group of more than a few in a fractal heap, and finds them by
 * B-trees of names and of creation orders; to make such a group anew through HDF5 costs some ten thousand instructions for each link.
 * Here all of it is copied at once, with other addresses. The layouts are those of the HDF5 File Format Specification, III.A.2, III.F,
 * III.G and IV.A.
 *
 * HDF5 must not have anything of the group that it has not written: so the group is one of a committed state. Nothing that is not as
 * HDF5 1.14 to 2.2 writes it is copied, and everything in it is checked before it is used.
 *
 * HDF5 counts none of the links of such a copy. */
#ifndef COW_DENSE_H
#define COW_DENSE_H

#include "h5/header.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cow_dense cow_dense;

/* The group whose object header is at ADDRESS. 1; 0: it is none that can be copied, since its links are in its header, it
 * has attributes in a heap or of a named type, absolute soft links, or something that is not known here; -1: recorded. */
int cow_dense_parse(const cow_source *source, uint64_t address, cow_dense **dense);
void cow_dense_free(cow_dense *dense);

/* A hard link of the group; NAME lives during the call. Non-zero ends it, and is returned. */
typedef int cow_dense_visitor(void *context, const char *name, uint64_t address);
int cow_dense_links(const cow_dense *dense, cow_dense_visitor *visit, void *context);

/* Where the hard link NAME leads. false: there is none. */
bool cow_dense_find(const cow_dense *dense, const char *name, uint64_t *address);
/* HDF5 puts the links of a group into its header when they get fewer than so many. */
size_t cow_dense_least(const cow_dense *dense);
/* In the copy it leads to ADDRESS. */
void cow_dense_redirect(cow_dense *dense, const char *name, uint64_t address);
/* Where a copy goes. ALLOCATE: an address for so many bytes; UINT64_MAX: none of the free places has so many, and AT_END, where the file
 * grows, they could not be had either, which is recorded. WRITE: 0, or -1 recorded. */
typedef struct cow_dense_target {
    void *context;
    bool has_places; /* some are free */
    uint64_t (*allocate)(void *context, uint64_t size, bool at_end);
    int (*write)(void *context, uint64_t address, const void *bytes, size_t size);
} cow_dense_target;

/* A group of its own, without a link, at *ADDRESS of TARGET. Afterwards DENSE is that one. -1: recorded. */
int cow_dense_put(cow_dense *dense, const cow_dense_target *target, uint64_t *address);

/* All places in the file that the group has, header and all. free(*LIST). */
int cow_dense_places(const cow_dense *dense, cow_place **list, size_t *count);

#endif
