/* What a datatype consists of, found once: a tree of parts. So a walk through elements does not ask HDF5 about each, and how
 * deep a type may be is decided in one place. */
#ifndef COW_DATATYPE_H
#define COW_DATATYPE_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bits of `kinds`. */
typedef enum {
    COW_PART_BYTES = 1,    /* what is all in its bytes */
    COW_PART_STRING = 2,   /* of variable length: char * */
    COW_PART_SEQUENCE = 4, /* hvl_t */
    COW_PART_COMPOUND = 8,
    COW_PART_ARRAY = 16,
    COW_PART_REFERENCE = 32, /* of HDF5 1.12: H5R_ref_t */
    COW_PART_OBJECT = 64,    /* of HDF5 1.8, to an object */
    COW_PART_REGION = 128,   /* and to a region */
} cow_part_kind;

#define COW_PART_REFERENCES ((unsigned)(COW_PART_REFERENCE | COW_PART_OBJECT | COW_PART_REGION))
#define COW_PART_LENGTHS    ((unsigned)(COW_PART_STRING | COW_PART_SEQUENCE))

typedef struct cow_part {
    cow_part_kind kind;
    unsigned kinds;           /* its own and those of all that is in it */
    size_t size, offset;      /* in memory: of one; in the compound that it is a member of */
    size_t stored, stored_at; /* the same in the file; where no file was given they mean nothing */
    size_t count;             /* an array: elements */
    size_t inners;            /* a compound: members; an array, a sequence: 1; else 0 */
    unsigned char *used;      /* bytes: `size`, with the bits that the type uses; NULL: all */
    bool spare;               /* it, or something in it, has bits that are not used */
    H5T_cset_t set;           /* a string, and the next */
    H5T_str_t pad;
    struct cow_part *inner;
} cow_part;

/* FILE: native, for sizes in it, or NULL. NULL: the error. */
cow_part *cow_parts_open(void *file, hid_t type);
void cow_parts_close(cow_part *part);
/* A and B are of types that H5Tequal calls equal, which HDF5 1.14.5 does whatever character set and padding their strings of
 * variable length have: are these the same too? */
bool cow_parts_strings_same(const cow_part *a, const cow_part *b);
/* Do two types, each of whatever file and named or not, describe the same elements: 1, 0, -1. H5Tequal asks as well where sequences and
 * references lie, and does not ask what strings of variable length are. */
int cow_types_same(hid_t a, hid_t b);
/* H5Treclaim of as many elements of TYPE as the extent of SPACE has, one after the other: HDF5 1.14.5 divides by zero where that has 32 dimensions. */
void cow_reclaim(hid_t type, hid_t space, hid_t dxpl, void *elements);

/* Is one of KINDS anywhere in TYPE? 1, 0, -1 */
int cow_type_has(hid_t type, unsigned kinds);

/* HDF5 lets a file whose upper library version bound is HIGH get something of TYPE: 0; -1: it refuses that, or the error. */
int cow_type_allowed(hid_t type, H5F_libver_t high);

/* COUNT values in memory: A, and B beside them (which may be NULL), of one type. Parts that have none of the kinds INSIDE in
 * them, and bytes, are visited as many at once as stand together; the others are looked into: members, elements of arrays, and
 * elements of sequences after their sequence, as many as A's has. Strings, sequences and references are visited one by one.
 * Anything but 0 ends the walk, and is returned. */
typedef int cow_values_visitor(void *context, const cow_part *part, size_t count, void *a, void *b);
int cow_values_each(const cow_part *part, unsigned inside, size_t count, void *a, void *b, cow_values_visitor *visit,
                    void *context);

/* COUNT values in memory: bits that PART's type does not use become 0, also in sequences. */
void cow_values_clear(const cow_part *part, size_t count, void *values);

/* Of a sequence in memory, which may stand where a pointer should not. */
static inline size_t cow_sequence_length(const void *value)
{
    hvl_t sequence;

    memcpy(&sequence, value, sizeof sequence);
    return sequence.p == NULL ? 0 : sequence.len; /* as HDF5 writes it */
}

#endif
