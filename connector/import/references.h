/* What a reference in memory points to, whatever its kind: for translating it into another file, and for comparing. */
#ifndef COW_IMPORT_REFERENCES_H
#define COW_IMPORT_REFERENCES_H

#include <hdf5.h>

#include <stdbool.h>

typedef struct cow_import_reference {
    enum {
        COW_REFERENCE_NULL,    /* never written */
        COW_REFERENCE_DANGLES, /* the object is gone */
        COW_REFERENCE_FOREIGN, /* to another file: kept as it is */
        COW_REFERENCE_GOOD,
    } state;
    H5R_type_t kind;
    H5O_token_t token;
    hid_t region;    /* a selection, or H5I_INVALID_HID */
    char *attribute; /* or NULL */
} cow_import_reference;

/* Look at ELEMENT, of the reference type TYPE, read from FILE. Give it back with cow_import_reference_done. -1: no memory. */
int cow_import_reference_look(hid_t file, hid_t type, void *element, cow_import_reference *reference);
void cow_import_reference_done(cow_import_reference *reference);

#endif
