/* The lengths of variable-length elements as they are in the file, before HDF5 believes them. See layout.h.
 *
 * A type becomes a tree of parts: where in the element a length stands, and how many bytes each of what it counts has.
 * Of sequences of sequences only the outer lengths can be read this way: the inner ones are in the heap.
 */
#include "layout/layout.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"

#include <stdlib.h>

typedef enum { PLAIN, SEQUENCE, REFERENCE, GROUP } part_kind;

typedef struct part {
    part_kind kind;
    size_t offset; /* in what it is part of */
    size_t size;   /* in the file */
    size_t unit;   /* SEQUENCE: bytes of one element in the file */
    struct part *inner;
    size_t inners, repeat; /* GROUP: the inner parts, REPEAT times; an array has one */
} part;

struct cow_lengths {
    void *file;
    part whole;
};

static void part_free(part *p)
{
    for (size_t i = 0; i < p->inners; i++)
        part_free(&p->inner[i]);
    free(p->inner);
}

static int parts(part *p, size_t n)
{
    p->kind = GROUP;
    p->repeat = 1;
    if ((p->inner = calloc(n > 0 ? n : 1, sizeof *p->inner)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a type");
    p->inners = n;
    return 0;
}

static int part_of(void *file, hid_t type, part *p);

static int member_of(void *file, hid_t type, unsigned m, size_t *grown, part *p)
{
    hid_t member = H5Tget_member_type(type, m);
    int status = member < 0 ? cow_error_native("cannot look at a type") : part_of(file, member, p);

    /* the members before it have other sizes there than in memory; the padding stays */
    p->offset = H5Tget_member_offset(type, m) + *grown;
    if (status == 0)
        *grown += p->size - H5Tget_size(member);
    cow_close(member);
    return status;
}

static int super_of(void *file, hid_t type, part *p, bool array)
{
    hid_t base = H5Tget_super(type);
    size_t unit;
    int status = -1;

    if (base < 0 || cow_native_element_size(file, base, &unit) < 0) {
        cow_error_native("cannot look at a type");
    } else if (!array) {
        p->unit = unit;
        status = 0;
    } else if (parts(p, 1) == 0) {
        p->repeat = H5Tget_size(type) / H5Tget_size(base);
        status = part_of(file, base, &p->inner[0]);
    }
    cow_close(base);
    return status;
}

static int part_of(void *file, hid_t type, part *p)
{
    H5T_class_t class = H5Tget_class(type);
    size_t grown = 0;
    int n, status = 0;

    if (cow_native_element_size(file, type, &p->size) < 0)
        return -1;
    p->kind = PLAIN;
    if (class == H5T_VLEN || (class == H5T_STRING && H5Tis_variable_str(type) > 0)) {
        p->kind = SEQUENCE;
        p->unit = 1;
        return class == H5T_VLEN ? super_of(file, type, p, false) : 0;
    }
    if (class == H5T_REFERENCE && H5Tequal(type, H5T_STD_REF) > 0)
        p->kind = REFERENCE;
    if (class == H5T_ARRAY)
        return super_of(file, type, p, true);
    if (class != H5T_COMPOUND)
        return 0;
    if ((n = H5Tget_nmembers(type)) < 0 || parts(p, (size_t)n) < 0)
        return -1;
    /* members are in the order of their offsets in every type that HDF5 gives out of a file */
    for (int m = 0; status == 0 && m < n; m++)
        status = member_of(file, type, (unsigned)m, &grown, &p->inner[m]);
    return status;
}

cow_lengths *cow_lengths_open(void *file, hid_t type)
{
    cow_lengths *lengths = calloc(1, sizeof *lengths);

    if (lengths == NULL) {
        cow_error(COW_MEMORY, "no memory for a type");
        return NULL;
    }
    lengths->file = file;
    if (part_of(file, type, &lengths->whole) == 0)
        return lengths;
    cow_lengths_close(lengths);
    return NULL;
}

void cow_lengths_close(cow_lengths *lengths)
{
    if (lengths == NULL)
        return;
    part_free(&lengths->whole);
    free(lengths);
}

/* False: more than MOST. */
static bool add(const part *p, const uint8_t *bytes, uint64_t most, uint64_t *sum)
{
    uint64_t more = 0;

    switch (p->kind) {
    case PLAIN:
        return true;
    case SEQUENCE:
        more = (uint64_t)cow_get32(bytes) * p->unit; /* a unit is at most 2^32 */
        break;
    case REFERENCE: /* kind, flags, and what is in the heap, unless all of it stands here: H5T__ref_disk_getsize */
        more = bytes[0] == H5R_OBJECT2 && (bytes[1] & 1) == 0 ? 0 : cow_get32(bytes + 2);
        break;
    case GROUP:
        for (size_t r = 0; r < p->repeat; r++)
            for (size_t i = 0; i < p->inners; i++)
                if (!add(&p->inner[i], bytes + r * p->inner[i].size + p->inner[i].offset, most, sum))
                    return false;
        return true;
    }
    if (more > most || *sum > most - more)
        return false;
    *sum += more;
    return true;
}

int cow_lengths_check(const cow_lengths *lengths, const void *bytes, uint64_t elements, uint64_t *sum)
{
    uint64_t most;

    if (cow_native_file_size(lengths->file, &most) < 0)
        return -1;
    for (uint64_t i = 0; i < elements; i++)
        if (!add(&lengths->whole, (const uint8_t *)bytes + i * lengths->whole.size, most, sum))
            return cow_error(COW_CORRUPT,
                             "texts or sequences claim more bytes than the file has; to see what is damaged: h5cow "
                             "verify");
    return 0;
}
