/* Serialising elements in memory: see serial.h. No element costs a call into the HDF5 library, except for references, whose
 * content only the library can tell. */
#include "io/serial.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"
#include "native/datatype.h"
#include "native/native.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BLOCKS 65536 /* of a region, told one by one: 2 MiB a dimension */

struct cow_serial {
    cow_part *part;
    char *file_name;
};

cow_serial *cow_serial_open(hid_t type, const char *file_name)
{
    cow_serial *serial = calloc(1, sizeof *serial);

    if (serial == NULL || (serial->file_name = strdup(file_name)) == NULL) {
        cow_error(COW_MEMORY, "no memory for a datatype");
    } else if ((serial->part = cow_parts_open(NULL, type)) != NULL) {
        return serial;
    }
    cow_serial_close(serial);
    return NULL;
}

void cow_serial_close(cow_serial *serial)
{
    if (serial == NULL)
        return;
    cow_parts_close(serial->part);
    free(serial->file_name);
    free(serial);
}

/* ---- elements ---- */

typedef struct text {
    uint8_t *data;
    size_t size, room;
    bool untold; /* it lacks a selection that cannot be asked for */
} text;

static int reserve(text *bytes, size_t size)
{
    if (bytes->room - bytes->size < size && COW_RESERVE(bytes->data, bytes->room, bytes->size, size) < 0)
        return cow_error(COW_MEMORY, "no memory for the content of a chunk of %zu bytes", bytes->size + size);
    return 0;
}

static int append_bytes(text *bytes, const void *data, size_t size)
{
    if (reserve(bytes, size) < 0)
        return -1;
    if (size > 0)
        memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return 0;
}

static int put_number(text *bytes, uint64_t value)
{
    uint8_t number[8];

    cow_put64(number, value);
    return append_bytes(bytes, number, sizeof number);
}

static bool same_file(const char *a, const char *b)
{
    char *x, *y;
    bool same;

    if (strcmp(a, b) == 0)
        return true;
    x = realpath(a, NULL);
    y = realpath(b, NULL);
    same = x != NULL && y != NULL && strcmp(x, y) == 0;
    free(x);
    free(y);
    return same;
}

static int put_text(text *bytes, const char *name)
{
    size_t length = strlen(name);

    if (reserve(bytes, 8 + length) < 0)
        return -1;
    cow_put64(bytes->data + bytes->size, length);
    memcpy(bytes->data + bytes->size + 8, name, length);
    bytes->size += 8 + length;
    return 0;
}

/* The name of another file, which the reference itself holds; NULL: it leads into its own file, OWN. What H5Rget_file_name
 * tells of such a one depends on how the application called that file ("run.h5@3"). */
static const char *other_file(const H5R_ref_t *reference, const char *own)
{
    const char *name;

    memcpy(&name, reference->u.__data + H5O_MAX_TOKEN_SIZE, sizeof name);
    return name == NULL || same_file(name, own) ? NULL : name;
}

static int put_attribute(text *bytes, const H5R_ref_t *reference)
{
    ssize_t length = 0;
    char *name;
    int status;

    H5E_BEGIN_TRY
    length = H5Rget_attr_name(reference, NULL, 0);
    H5E_END_TRY
    if (length <= 0)
        return put_number(bytes, 0);
    if ((name = calloc((size_t)length + 1, 1)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a reference");
    H5E_BEGIN_TRY
    length = H5Rget_attr_name(reference, name, (size_t)length + 1);
    H5E_END_TRY
    status = length <= 0 ? put_number(bytes, 0) : put_text(bytes, name);
    free(name);
    return status;
}

static int put_untold(text *bytes)
{
    bytes->untold = true;
    return put_number(bytes, 0);
}

/* The selection of a region reference, without the extent it is made in, which may change. HDF5 tells it only by opening the
 * dataset. One that may be gone is not opened (vol/token.c). */
static int put_region(text *bytes, const H5R_ref_t *reference)
{
    hid_t space = H5I_INVALID_HID;
    hsize_t *list = NULL;
    size_t n = 0, numbers;
    H5S_sel_type kind;
    int rank, listed = 1, status = -1;

    cow_native_plain_tokens(true); /* the same answer in the head and in every version */
    H5E_BEGIN_TRY
    space = cow_native_region_open((H5R_ref_t *)(uintptr_t)reference);
    H5E_END_TRY
    cow_native_plain_tokens(false);
    if (space < 0)
        return put_untold(bytes);
    kind = H5Sget_select_type(space);
    rank = H5Sget_simple_extent_ndims(space);
    if ((kind == H5S_SEL_HYPERSLABS || kind == H5S_SEL_POINTS) &&
        (listed = cow_native_region_list(space, MOST_BLOCKS, &list, &n)) <= 0) {
        status = listed == 0 ? put_untold(bytes) : -1;
        goto done;
    }
    numbers = n * (size_t)rank * (kind == H5S_SEL_HYPERSLABS ? 2 : 1);
    if (put_number(bytes, (uint64_t)kind + 1) < 0 || put_number(bytes, (uint64_t)rank) < 0 || put_number(bytes, n) < 0)
        goto done;
    for (size_t i = 0; i < numbers; i++)
        if (put_number(bytes, list[i]) < 0)
            goto done;
    status = 0;
done:
    free(list);
    H5Sclose(space);
    return status;
}

/* The library has no call that tells the token without opening the object, which may be gone: it is what an H5R_ref_t
 * begins with, in 1.12 to 2.x, whatever its kind; a pointer to the name of another file comes next. */
static int put_reference(const cow_serial *serial, text *bytes, const H5R_ref_t *reference, bool hash, bool regions)
{
    H5R_type_t kind = H5Rget_type(reference);
    const char *file;

    if (put_number(bytes, (uint64_t)kind) < 0 || append_bytes(bytes, reference, H5O_MAX_TOKEN_SIZE) < 0)
        return -1;
    if (!cow_native_reference_is_written(reference))
        return 0;
    file = other_file(reference, serial->file_name);
    if ((file == NULL ? put_number(bytes, 0) : put_text(bytes, file)) < 0)
        return -1;
    if (kind == H5R_ATTR)
        return put_attribute(bytes, reference);
    if (kind != H5R_DATASET_REGION2 || !regions)
        return 0;
    /* HDF5 would open the other file to write it */
    return hash && file != NULL ? put_untold(bytes) : put_region(bytes, reference);
}

/* HASH: for the hash, with null pointers told. REGIONS: with the selections of region references, which can be asked for
 * only while their dataset is there. */
typedef struct writing {
    const cow_serial *serial;
    text *bytes;
    bool hash, regions;
    bool nulls; /* out: there were null pointers, which the checksum does not tell */
} writing;

static int put_string(writing *w, const void *value)
{
    const char *string;

    memcpy(&string, value, sizeof string);
    if (string != NULL)
        return put_text(w->bytes, string);
    w->nulls = true;
    return put_number(w->bytes, w->hash ? UINT64_MAX : 0);
}

/* Of bytes. */
static int put_sequence(text *bytes, const cow_part *inner, const void *value)
{
    hvl_t sequence;
    size_t n, size;

    memcpy(&sequence, value, sizeof sequence);
    n = cow_sequence_length(&sequence);
    size = n * inner->size;
    if (reserve(bytes, 8 + size) < 0 || put_number(bytes, n) < 0)
        return -1;
    return append_bytes(bytes, sequence.p, size);
}

static int append_values(void *context, const cow_part *part, size_t count, void *values, void *other)
{
    writing *w = context;

    (void)other;
    switch (part->kind) {
    case COW_PART_STRING:
        return put_string(w, values);
    case COW_PART_SEQUENCE: /* its elements come next */
        return put_number(w->bytes, cow_sequence_length(values));
    case COW_PART_REFERENCE:
        return put_reference(w->serial, w->bytes, values, w->hash, w->regions);
    case COW_PART_BYTES:
    case COW_PART_OBJECT:
    case COW_PART_REGION:
    case COW_PART_COMPOUND:
    case COW_PART_ARRAY:
        break;
    }
    return append_bytes(w->bytes, values, count * part->size);
}

static int append(writing *w, const void *element)
{
    const cow_part *part = w->serial->part;

    if (part->kind == COW_PART_STRING)
        return put_string(w, element);
    if (part->kind == COW_PART_SEQUENCE && part->inner->kind == COW_PART_BYTES)
        return put_sequence(w->bytes, part->inner, element);
    return cow_values_each(part, ~0u, 1, (void *)(uintptr_t)element, NULL, append_values, w);
}

/* How many elements at the front of the chunk are those inside TRIMMED, and no others are; 0: they are not at the front. */
static uint64_t in_front(unsigned rank, const uint64_t chunk[], const uint64_t trimmed[])
{
    uint64_t n = 1;

    for (unsigned d = 0; d < rank; d++) {
        if (d > 0 && trimmed[d] != chunk[d])
            return 0;
        n *= trimmed[d];
    }
    return n;
}

/* For the hash, those inside TRIMMED alone. */
static int append_inside(writing *w, const uint8_t *elements, size_t size, unsigned rank, const uint64_t chunk[],
                         const uint64_t trimmed[], uint64_t n)
{
    uint64_t at[COW_MAX_RANK] = {0};

    for (uint64_t i = 0; i < n; i++) {
        bool in = true;

        for (unsigned d = 0; in && d < rank; d++)
            in = at[d] < trimmed[d];
        if (in && append(w, elements + i * size) < 0)
            return -1;
        for (unsigned d = rank; d-- > 0 && ++at[d] == chunk[d];)
            at[d] = 0;
    }
    return 0;
}

int cow_serial_digest(const cow_serial *serial, const void *elements, size_t size, unsigned rank,
                      const uint64_t chunk[], const uint64_t trimmed[], uint64_t slot, bool regions, cow_digest *digest)
{
    uint64_t n = 1, front = trimmed == NULL ? 0 : in_front(rank, chunk, trimmed);
    size_t front_size = 0;
    text all = {0}, inside = {0};
    writing checksum = {.serial = serial, .bytes = &all, .regions = regions},
            hash = {.serial = serial, .bytes = &inside, .hash = true, .regions = true};
    int status = -1;

    for (unsigned d = 0; d < rank; d++)
        n *= chunk[d];
    for (uint64_t i = 0; i < n; i++) {
        if (append(&checksum, (const uint8_t *)elements + i * size) < 0)
            goto done;
        if (i + 1 == front)
            front_size = all.size;
    }
    digest->checksum = cow_checksum(all.data, all.size);
    if (trimmed == NULL) {
        status = 0;
    } else if (front > 0 && !checksum.nulls && (serial->part->kinds & COW_PART_REFERENCE) == 0) {
        /* what is hashed is the same text */
        status = cow_digest_hash(all.data, front_size, rank, trimmed, digest->hash);
    } else if (append_inside(&hash, elements, size, rank, chunk, trimmed, n) == 0 &&
               (!inside.untold || put_number(&inside, slot) == 0)) {
        status = cow_digest_hash(inside.data, inside.size, rank, trimmed, digest->hash);
    }
done:
    free(inside.data);
    free(all.data);
    return status;
}

static int add_memory(void *context, const cow_part *part, size_t count, void *values, void *other)
{
    uint64_t *bytes = context;
    const char *string;

    (void)count;
    (void)other;
    if (part->kind == COW_PART_STRING) {
        memcpy(&string, values, sizeof string);
        *bytes += string == NULL ? 0 : strlen(string) + 1;
    } else if (part->kind == COW_PART_SEQUENCE)
        *bytes += cow_sequence_length(values) * part->inner->size;
    return 0; /* what references have is not in the application's memory */
}

uint64_t cow_serial_memory(const cow_serial *serial, const void *elements, size_t size, size_t count)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        cow_values_each(serial->part, COW_PART_LENGTHS, 1, (char *)(uintptr_t)elements + i * size, NULL, add_memory,
                        &bytes);
    return bytes;
}
