/* Comparing two HDF5 files that should hold the same: the judge of the differential test.
 *
 * A is native HDF5, the one that is right. B is the file under test. The first difference found is described in the
 * report and ends the comparison. Public HDF5 calls only.
 */
#ifndef DIFFERENTIAL_COMPARE_H
#define DIFFERENTIAL_COMPARE_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct addresses addresses; /* run.h */

/* How B was reached decides what can be asked of it. */
typedef enum {
    REACHED_HEAD,    /* the head, through the connector: everything must agree */
    REACHED_AT,      /* FILE@N through the connector */
    REACHED_VERSION, /* /_versioned_data/versions/N without the connector */
    REACHED_STOCK,   /* the head without the connector */
} reached;

typedef struct comparison {
    reached how;
    char prefix[120];           /* REACHED_VERSION: what absolute soft links begin with in B, "" otherwise */
    hid_t scratch;              /* native file in memory, to decode chunks in */
    bool deleted;               /* something was deleted from the file: reference counts may be higher in B */
    bool uncounted;             /* reference counts are not compared: versions do not have them (D7) */
    bool renumbered;            /* something was copied out of a version (D29) */
    bool other;                 /* a file that was copied to: chunks are not compared (D30) */
    bool mixed;                 /* something was copied in from another file (D30) */
    bool merged;                /* H5Ocopy that merges named types was refused (D34) */
    bool evicted;               /* H5Ocopy had a small metadata cache (D57) */
    bool old_headers;           /* B has headers of HDF5 1.6 as well (D2) */
    bool chunk_bytes;           /* read every chunk raw as well (slower) */
    bool unfollowed;            /* what soft and external links lead to is not the same for A and B, and not compared */
    char why[2000];             /* the report */
    const addresses *addresses; /* of objects in A: which were used again; NULL: no reference is sure (D3) */
    bool leading;               /* for the comparison of trees alone */
    struct lead *lead;
    long followed, sure; /* references; of these, compared strictly */
    hid_t stack;         /* start with H5I_INVALID_HID; the error stack of the call that should not have failed */
} comparison;

/* Walks both trees. true: the same. */
/* And what references, links and named types lead to. */
bool compare_trees(comparison *c, hid_t a, hid_t b);
/* One object: header, attributes, a dataset's layout and elements, a group's links (not what they lead to). */
bool compare_objects(comparison *c, const char *path, hid_t a, hid_t b);
/* N values of memory type TYPE, padding and unused bytes left out. */
bool values_agree(hid_t type, const void *a, const void *b, size_t n);
/* Does the type contain a class CLS anywhere? Unlike H5Tdetect_class: H5T_VLEN includes variable-length strings. */
bool type_contains(hid_t type, H5T_class_t cls);
/* Does it contain references of HDF5 1.12? In something else (D27)? */
bool type_has_new_references(hid_t type);
bool type_nests_references(hid_t type);
/* D30: does HDF5 tell wrong places of the chunks of this dataset? */
bool misplaces_chunks(hid_t set);
/* References of a test pattern (never followed) have this in byte 7; real ones cannot. */
#define PATTERN_REFERENCE 0xEE

#endif
