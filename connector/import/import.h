/* A plain HDF5 file becomes one with history: h5cow import, and the option adopt. */
#ifndef COW_IMPORT_IMPORT_H
#define COW_IMPORT_IMPORT_H

#include "base/newfile.h"
#include "import/tree.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { COW_IMPORT_COPYING, COW_IMPORT_CHECKING } cow_import_phase;

typedef struct cow_import {
    const char *from;
    const char *to;   /* a new file, which must not exist; NULL: FROM itself */
    hid_t connector;  /* h5cow, as HDF5 knows it */
    const void *info; /* its options for the new file, or NULL */
    bool
        drop_unlinked; /* in place: references to objects that no link leads to become null, and these objects are lost */
    cow_newfile *new; /* where the work is done, made for the target; NULL: the import makes it */
    /* Bytes that were copied or checked since the last call; may be NULL. */
    void (*progress)(void *context, cow_import_phase phase, uint64_t bytes);
    void *context;
    /* told */
    size_t objects;
    cow_tree_nulls dangling;  /* references to objects that are gone: null now */
    cow_tree_nulls unlinked;  /* references to objects that no link leads to: null now */
    size_t external, virtual; /* datasets whose elements are elsewhere */
    size_t other_names;       /* in place: hard links that go on leading to the plain file */
    bool lost_history;        /* FROM has a history without a journal; the new one begins with its newest state */
    bool kept_owner;          /* owner, permissions and attributes are those of FROM */
    char why[1600];
} cow_import;

/* The new file has the state of FROM as its first version, and was compared with it, before it gets its name; a crash
 * leaves FROM as it was, or the new file complete. What is missing or in the way: -1 and import->why, nothing changed.
 */
int cow_import_file(cow_import *import);

#endif
