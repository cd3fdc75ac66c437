/* Copying a tree of objects into a new file, by public HDF5 calls only, so that what is read is what an application
 * would read: original layouts, filters, fill values, creation orders.
 *
 * H5Ocopy is not used: between files it clears object references, and a shared object would have to be found again.
 * Here an object with several links stays one object, named types stay shared, and references point to the copies.
 */
#ifndef CLI_COPY_H
#define CLI_COPY_H

#include "common.h"
#include "map.h"

typedef struct cli_copied {
    char *path;         /* the same in both files; NULL: a named type that has no link yet */
    H5O_type_t type;
    hid_t pending;      /* then: the type in the new file, kept open; else H5I_INVALID_HID */
    bool data_later;    /* a dataset whose elements hold references: written when all objects exist */
} cli_copied;

typedef struct cli_copy {
    hid_t from, to;     /* files */
    cli_map places;     /* address in FROM -> place in objects */
    cli_copied *object;
    size_t objects, room;
    size_t dangling;    /* references that pointed to nothing, or to something outside: they are null in the copy */
    char why[1200];     /* what went wrong: object and cause */
} cli_copy;

/* Copy everything below the roots, attributes of the root included. 0, or -1 and copy->why. Give it back with
 * cli_copy_free in both cases. */
int cli_copy_tree(cli_copy *copy);
void cli_copy_free(cli_copy *copy);

/* -1, and PATH with the cause of the HDF5 call that just failed in copy->why. */
int cli_copy_failed(cli_copy *copy, const char *what, const char *path);

/* ---- values (values.c) ---- */

/* The type in the new file for a type of the old one: shared if it is named, else a copy. Close it. */
hid_t cli_copy_type(cli_copy *copy, hid_t type);
/* Do elements hold references, or pointers into HDF5's heap? */
bool cli_type_has(hid_t type, H5T_class_t class);
/* Make the references in COUNT elements point to the copies. */
void cli_copy_references(cli_copy *copy, hid_t type, size_t count, void *elements);
int cli_copy_attributes(cli_copy *copy, hid_t from, hid_t to, const char *path);
int cli_copy_elements(cli_copy *copy, hid_t from, hid_t to, const char *path);

#endif
