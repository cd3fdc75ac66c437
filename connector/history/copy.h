/* What the files of H5Ocopy share: copy.c, copy_types.c, copy_references.c. Nobody else includes this. */
#ifndef COW_COPY_H
#define COW_COPY_H

#include "history/internal.h"
#include "native/datatype.h"

/* A file that is copied out of. Most copies have one; links that are expanded may lead to others. */
typedef struct cow_copied_file {
    struct cow_copied_file *next;
    unsigned long fileno;
    cow_file *file;      /* NULL: it has no history */
    const char *version; /* that is copied out of, its path, or NULL: the head */
    bool same;           /* the head that is copied into */
    bool joined;         /* `file` was opened for this copy */
    cow_map done;        /* address of an object -> address of its copy */
} cow_copied_file;

/* The named datatypes of the target, for H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG. */
typedef struct cow_merging {
    struct {
        hid_t type; /* without a place in a file, so that it compares with those of other files */
        uint64_t address;
    } *known;
    size_t count, room;
    bool begun, complete;
    cow_map met; /* groups that were looked into */
} cow_merging;

typedef struct cow_copying {
    cow_file *to;   /* NULL: a file without history */
    cow_loc target; /* everything is made with this handle: HDF5 takes named types of another one for those of a file */
    unsigned long fileno; /* of the target */
    hid_t ocpypl;
    unsigned flags;
    H5F_libver_t high; /* what is newer is refused, as by HDF5 */
    bool raised;       /* objects are made for no older version than V18; `low` is the target's own */
    H5F_libver_t low;
    cow_copied_file *files;
    cow_map unlinked; /* what has no link yet: unlinked.c */
    cow_merging merging;
    char (*along)[40]; /* names in the root of what was copied because references lead to it */
    size_t along_count, along_room;
} cow_copying;

/* The copy of OBJECT, of FILE, opened: made now, or earlier. DEPTH: links above it that were copied. The caller links it. */
int cow_copy_object(cow_copying *c, cow_copied_file *file, cow_loc object, unsigned depth, cow_loc *made);

/* copy_types.c: 1: the target has a named datatype like TYPE, at *ADDRESS; 0: it has none; -1. */
int cow_copy_find_type(cow_copying *c, hid_t type, uint64_t *address);
/* One that was copied: the next ones may be like it. */
int cow_copy_add_type(cow_copying *c, hid_t type, uint64_t address);
void cow_copy_forget_types(cow_copying *c);

/* copy_references.c: N values that HOLDER, of FILE, has: what their references lead to is copied, and they lead there. */
int cow_copy_references(cow_copying *c, cow_copied_file *file, cow_loc holder, hid_t type, size_t n, void *values);
/* The copy has failed: nothing of what was copied along stays. */
void cow_copy_drop_along(cow_copying *c);

#endif
