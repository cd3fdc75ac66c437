/* What is in a file, as plain arrays in memory: links, objects, elements as int. Made by hand, or read from a file. */
#ifndef PICTURE_H
#define PICTURE_H

#include <hdf5.h>

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define RANK_MAX  3
#define LINKS_MAX 256
#define RESERVED  "_versioned_data"
#define NOTHING   INT_MIN /* an element that cannot have been written: text that is not ours */

typedef enum kind { GROUP, INTEGERS, TEXTS, PAIRS } kind;

typedef struct object {
    kind kind;
    int rank;
    hsize_t extent[RANK_MAX];
    int *value; /* PAIRS: two for each element */
    bool noted; /* has the attribute "note" */
    int note;
    H5O_token_t token; /* pictures from files: who it is */
} object;

typedef struct named {
    char path[64];
    int object; /* -1: a soft link */
    char target[64];
} named;

typedef struct picture {
    object objects[LINKS_MAX];
    int object_count;
    named link[LINKS_MAX];
    int link_count;
} picture;

/* An element of PAIRS. As int: a, and twice b. */
typedef struct pair {
    int a;
    double b;
} pair;

picture *picture_new(void);
void picture_free(picture *p);
picture *picture_copy(const picture *from);
/* All links below ROOT, and their objects; PLACE: its path, "" for that of the file. NULL: they cannot be read. */
picture *picture_read(hid_t root, const char *place);
/* Have both the same links, objects and elements? WHY: the first path that differs. */
bool picture_same(const picture *a, const picture *b, const char **why);

/* Index of the link PATH; -1: there is none. */
int picture_find(const picture *p, const char *path);
/* NULL: there is none, or it is a soft link. */
object *picture_object(picture *p, const char *path);
/* NUMBER: of the object, -1: a soft link. */
named *picture_link(picture *p, const char *path, int number);
/* A new object and its first link. Elements are 0. */
object *picture_add(picture *p, const char *path, kind what, int rank, const hsize_t extent[]);
/* How many int it has. */
size_t picture_elements(const object *o);

/* The text that stands for VALUE. */
void picture_text(int value, char *text, size_t size);
/* Types in memory: to be closed. */
hid_t picture_text_type(void);
hid_t picture_pair_type(void);

#endif
