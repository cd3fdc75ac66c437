/* The table of test_model.c: kinds of objects, each with what the operations do to one of them.
 *
 * A kind works in a group of its own on an object called "x". The same calls are made on a file with history and on a
 * native one, so values depend on the seed only. What is copied, moved and deleted is by default the object with all
 * that belongs to it, by H5Ocopy, H5Lmove and H5Ldelete.
 */
#ifndef MODEL_H
#define MODEL_H

#include "samples.h"

#define MODEL_GROUP "k" /* in the file's root */

typedef enum { CREATE, READ, MODIFY, DELETE, COPY, MOVE, LIST, OLD, STOCK, OPERATIONS } operation;

typedef enum {
    CHUNKED,
    GROWING, /* chunked, unlimited */
    DEFLATED,
    CHECKSUMMED,
    NBIT,
    EARLY,  /* chunked, allocated at once */
    SPARSE, /* chunked, with fill value, mostly not written */
    CONTIGUOUS,
    CONTIGUOUS_EARLY,
    TINY,
    COMPACT,
    SCALAR,
    NULL_SPACE,
    EMPTY,
    EMPTY_GROWING,
    VIRTUAL,       /* over datasets of the same file */
    VIRTUAL_OTHER, /* over another file, a plain one */
    VIRTUAL_COW,   /* over another file with history */
    EXTERNAL,
    ANONYMOUS, /* linked later */
} layout;

typedef struct kind kind;
struct kind {
    const char *family, *name;
    void (*make)(const kind *k, hid_t at, unsigned seed);
    void (*change)(const kind *k, hid_t at, unsigned seed);
    void (*copy)(hid_t at);
    void (*move)(hid_t at);
    void (*remove)(hid_t at);
    const char *none[OPERATIONS]; /* why there is no such operation */
    const char *note;             /* for the page */
    layout layout;
    hid_t (*type)(void);
    hid_t (*fcpl)(void); /* of the file */
    unsigned attributes, elements;
    bool creation_order, dense;
    bool new_format;         /* the native file has at least that of HDF5 1.10, as all files with history */
    bool native_cannot_copy; /* H5Ocopy of native HDF5 1.14.5 fails or overruns memory: differential.c, D13 */
    bool copy_in_file_only;  /* native HDF5 1.14.5 makes copies in other files that it cannot open */
    bool data_elsewhere;     /* a change of data is none of the file, and makes no version */
    bool counts;             /* the program counts references itself, and versions do not have that */
    bool stock_shows_head;   /* a version shows data of the head when read without the connector */
};

bool model_kind(size_t number, kind *k); /* false: there are no more */

extern int model_side;  /* 0: the file with history, 1: the native one; calls of kinds are for this side */
void model_begin(void); /* makes the files that kinds refer to */
void model_end(void);

#endif
