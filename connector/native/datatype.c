/* Datatypes as trees of parts: see datatype.h. */
#include "native/datatype.h"

#include "base/error.h"
#include "base/ids.h"
#include "library/library.h"
#include "native/native.h"

#include <H5VLconnector.h>

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* More do not fit into the message of a file, which has at most 64 KiB; a sequence takes 8 bytes. HDF5 1.14.5 reads types of
 * 8,000 sequences, one in the other. */
#define MOST_NESTED 8192

/* The version is in the upper half of the first byte of the message, before which H5Tencode writes two bytes. */
#define VERSION_AT 2

static void use_bits(unsigned char *used, size_t first, size_t count)
{
    for (size_t bit = first; bit < first + count; bit++)
        used[bit / 8] |= (unsigned char)(1u << bit % 8);
}

/* The bits that a number of TYPE has are used: an integer's precision at its offset, a float's sign, exponent and
 * mantissa. Floats in VAX order have no others. Positions are those in little-endian order. */
static int find_used(hid_t type, H5T_class_t class, cow_part *p)
{
    size_t at[3] = {0}, bits[3] = {0}, all = 0;
    H5T_order_t order = H5Tget_order(type);
    int offset;

    if (class == H5T_FLOAT) {
        bits[0] = 1;
        if (H5Tget_fields(type, &at[0], &at[1], &bits[1], &at[2], &bits[2]) < 0)
            return cow_error_native("cannot look into a datatype");
    } else if ((bits[0] = H5Tget_precision(type)) == 0 || (offset = H5Tget_offset(type)) < 0)
        return cow_error_native("cannot look into a datatype");
    else
        at[0] = (size_t)offset;
    for (int i = 0; i < 3; i++) {
        if (at[i] > 8 * p->size || bits[i] > 8 * p->size - at[i])
            return 0; /* of a damaged file */
        all += bits[i];
    }
    if (all >= 8 * p->size || (order != H5T_ORDER_LE && order != H5T_ORDER_BE))
        return 0;
    if ((p->used = calloc(1, p->size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a datatype");
    for (int i = 0; i < 3; i++)
        use_bits(p->used, at[i], bits[i]);
    for (size_t i = 0; order == H5T_ORDER_BE && i < p->size / 2; i++) {
        unsigned char low = p->used[i];
        p->used[i] = p->used[p->size - 1 - i];
        p->used[p->size - 1 - i] = low;
    }
    p->spare = true;
    return 0;
}

static int kind_of(hid_t type, cow_part *p)
{
    H5T_class_t class = H5Tget_class(type);
    int members = class == H5T_COMPOUND ? H5Tget_nmembers(type) : class == H5T_ARRAY || class == H5T_VLEN;

    p->size = p->stored = H5Tget_size(type);
    p->kind = COW_PART_BYTES; /* and what only HDF5 2 has: complex numbers */
    if (class < 0 || members < 0 || p->size == 0)
        return cow_error_native("cannot look into a datatype");
    if (class == H5T_COMPOUND)
        p->kind = COW_PART_COMPOUND;
    else if (class == H5T_ARRAY)
        p->kind = COW_PART_ARRAY;
    else if (class == H5T_VLEN)
        p->kind = COW_PART_SEQUENCE;
    else if (class == H5T_STRING && H5Tis_variable_str(type) > 0) {
        p->kind = COW_PART_STRING;
        p->set = H5Tget_cset(type);
        p->pad = H5Tget_strpad(type);
    } else if (class == H5T_REFERENCE)
        p->kind = H5Tequal(type, H5T_STD_REF) > 0       ? COW_PART_REFERENCE
                  : H5Tequal(type, H5T_STD_REF_OBJ) > 0 ? COW_PART_OBJECT
                                                        : COW_PART_REGION;
    else if ((class == H5T_INTEGER || class == H5T_BITFIELD || class == H5T_ENUM || class == H5T_FLOAT) &&
             find_used(type, class, p) < 0)
        return -1;
    p->kinds = p->kind;
    return members;
}

/* After H5T__vlen_set_loc, H5T__ref_set_loc and H5T_set_loc; BLOB: size of a heap id. */
static void measure(cow_part *p, size_t blob)
{
    size_t grown = 0;

    switch (p->kind) {
    case COW_PART_BYTES:
    case COW_PART_OBJECT:
    case COW_PART_REGION:
        break;
    case COW_PART_STRING:
    case COW_PART_SEQUENCE:
        p->stored = 4 + blob;
        break;
    case COW_PART_REFERENCE:
        p->stored = 4 + 2 + blob;
        break;
    case COW_PART_ARRAY:
        p->count = p->size / p->inner->size;
        p->stored = p->count * p->inner->stored;
        break;
    case COW_PART_COMPOUND: /* its members are in the order of their offsets in every type that HDF5 gives out of a file */
        for (size_t i = 0; i < p->inners; i++) {
            p->inner[i].stored_at = p->inner[i].offset + grown; /* the padding stays */
            grown += p->inner[i].stored - p->inner[i].size;
        }
        p->stored += grown;
        break;
    }
}

/* Fill in P, which is zeroed: so it can always be freed. A TYPE inside of another one is closed, before any in it is looked
 * into: each holds a copy of all below it, and with one open for each level a deep type would take gigabytes. */
static int describe(hid_t type, size_t blob, unsigned depth, cow_part *p)
{
    int n = kind_of(type, p), status = n < 0 ? -1 : 0;
    hid_t *inner = NULL;

    if (n > 0 && depth == MOST_NESTED)
        status = cow_error(COW_CORRUPT, "a datatype is nested more than %d deep", MOST_NESTED);
    else if (n > 0 && ((p->inner = calloc((size_t)n, sizeof *p->inner)) == NULL ||
                       (inner = calloc((size_t)n, sizeof *inner)) == NULL))
        status = cow_error(COW_MEMORY, "no memory for a datatype");
    else if (n > 0)
        p->inners = (size_t)n;
    for (unsigned i = 0; i < p->inners; i++)
        if (p->kind == COW_PART_COMPOUND) {
            p->inner[i].offset = H5Tget_member_offset(type, i);
            inner[i] = H5Tget_member_type(type, i);
        } else
            inner[i] = H5Tget_super(type);
    if (depth > 0)
        H5Tclose(type);
    for (size_t i = 0; i < p->inners; i++) {
        if (status == 0 && inner[i] < 0)
            status = cow_error_native("cannot look into a datatype");
        else if (status == 0)
            status = describe(inner[i], blob, depth + 1, &p->inner[i]);
        else if (inner[i] >= 0)
            H5Tclose(inner[i]);
        p->kinds |= p->inner[i].kinds;
        p->spare |= p->inner[i].spare;
    }
    free(inner);
    if (status == 0)
        measure(p, blob);
    return status;
}

static void free_inner(cow_part *p)
{
    for (size_t i = 0; i < p->inners; i++)
        free_inner(&p->inner[i]);
    free(p->inner);
    free(p->used);
}

void cow_parts_close(cow_part *part)
{
    if (part == NULL)
        return;
    free_inner(part);
    free(part);
}

cow_part *cow_parts_open(void *file, hid_t type)
{
    H5VL_file_cont_info_t info = {.version = H5VL_CONTAINER_INFO_VERSION};
    H5VL_file_get_args_t args = {.op_type = H5VL_FILE_GET_CONT_INFO};
    cow_part *part;

    args.args.get_cont_info.info = &info;
    if (file != NULL && H5VLfile_get(file, cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("cannot get information about a file");
        return NULL;
    }
    if ((part = calloc(1, sizeof *part)) == NULL) {
        cow_error(COW_MEMORY, "no memory for a datatype");
        return NULL;
    }
    if (describe(type, info.blob_id_size, 0, part) == 0)
        return part;
    cow_parts_close(part);
    return NULL;
}

bool cow_parts_strings_same(const cow_part *a, const cow_part *b)
{
    bool same = a->inners == b->inners && a->set == b->set && a->pad == b->pad;

    for (size_t i = 0; same && i < a->inners; i++)
        same = cow_parts_strings_same(&a->inner[i], &b->inner[i]);
    return same;
}

int cow_types_same(hid_t a, hid_t b)
{
    hid_t one = H5Tcopy(a), other = H5Tcopy(b); /* in memory, both */
    htri_t equal = one < 0 || other < 0 ? -1 : H5Tequal(one, other);
    cow_part *x = NULL, *y = NULL;
    int same = equal < 0 ? cow_error_native("cannot compare two datatypes") : equal > 0;

    if (same > 0)
        same = (x = cow_parts_open(NULL, one)) == NULL || (y = cow_parts_open(NULL, other)) == NULL
                   ? -1
                   : cow_parts_strings_same(x, y);
    cow_parts_close(x);
    cow_parts_close(y);
    cow_close(one, other);
    return same;
}

/* Of these classes HDF5 uses the first encoding alone. */
static bool is_plain(H5T_class_t class)
{
    return class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_TIME || class == H5T_STRING ||
           class == H5T_BITFIELD || class == H5T_OPAQUE;
}

int cow_type_allowed(hid_t type, H5F_libver_t high)
{
    unsigned newest = cow_library_type_encoding(high), version;
    unsigned char *bytes;
    size_t size = 0;

    if (newest == UINT_MAX || is_plain(H5Tget_class(type)))
        return 0;
    if (H5Tencode(type, NULL, &size) < 0 || size <= VERSION_AT)
        return cow_error_native("cannot look at the encoding of a datatype");
    if ((bytes = malloc(size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a datatype");
    version = H5Tencode(type, bytes, &size) < 0 ? UINT_MAX : bytes[VERSION_AT] >> 4;
    free(bytes);
    if (version == UINT_MAX)
        return cow_error_native("cannot look at the encoding of a datatype");
    return version <= newest
               ? 0
               : cow_error(COW_USAGE,
                           "the datatype has encoding %u, and the upper library version bound of the file "
                           "(H5Pset_libver_bounds) allows %u at most: raise the bound, or build the type "
                           "again",
                           version, newest);
}

int cow_type_has(hid_t type, unsigned kinds)
{
    cow_part *part = cow_parts_open(NULL, type);
    int has = part == NULL ? -1 : (part->kinds & kinds) != 0;

    cow_parts_close(part);
    return has;
}

int cow_native_element_size(void *file, hid_t type, size_t *bytes)
{
    cow_part *part = cow_parts_open(file, type);

    if (part != NULL)
        *bytes = part->stored;
    cow_parts_close(part);
    return part == NULL ? -1 : 0;
}

/* ---- values ---- */

int cow_values_each(const cow_part *part, unsigned inside, size_t count, void *a, void *b, cow_values_visitor *visit,
                    void *context)
{
    int status = 0;

    if (count > 0 && ((part->kinds & inside) == 0 || part->kind == COW_PART_BYTES))
        return visit(context, part, count, a, b);
    if (part->kind == COW_PART_ARRAY)
        return cow_values_each(part->inner, inside, count * part->count, a, b, visit, context);
    for (size_t i = 0; status == 0 && i < count; i++) {
        char *x = (char *)a + i * part->size, *y = b == NULL ? NULL : (char *)b + i * part->size;

        if (part->kind != COW_PART_COMPOUND)
            status = visit(context, part, 1, x, y);
        for (size_t m = 0; part->kind == COW_PART_COMPOUND && status == 0 && m < part->inners; m++) {
            size_t offset = part->inner[m].offset;
            status =
                cow_values_each(&part->inner[m], inside, 1, x + offset, y == NULL ? NULL : y + offset, visit, context);
        }
        if (part->kind == COW_PART_SEQUENCE && status == 0) {
            hvl_t first, second = {0};
            memcpy(&first, x, sizeof first);
            if (y != NULL)
                memcpy(&second, y, sizeof second);
            status = cow_values_each(part->inner, inside, cow_sequence_length(x), first.p, second.p, visit, context);
        }
    }
    return status;
}

void cow_values_clear(const cow_part *part, size_t count, void *values)
{
    unsigned char *value = values;

    if (!part->spare)
        return;
    if (part->kind == COW_PART_ARRAY) {
        cow_values_clear(part->inner, count * part->count, values);
        return;
    }
    for (size_t i = 0; i < count; i++, value += part->size) {
        for (size_t k = 0; part->used != NULL && k < part->size; k++)
            value[k] &= part->used[k];
        for (size_t m = 0; part->kind == COW_PART_COMPOUND && m < part->inners; m++)
            cow_values_clear(&part->inner[m], 1, value + part->inner[m].offset);
        if (part->kind == COW_PART_SEQUENCE) {
            hvl_t sequence;
            memcpy(&sequence, value, sizeof sequence);
            cow_values_clear(part->inner, cow_sequence_length(value), sequence.p);
        }
    }
}

void cow_reclaim(hid_t type, hid_t space, hid_t dxpl, void *elements)
{
    const hssize_t told = H5Sget_simple_extent_npoints(space);
    const hsize_t n = told < 0 ? 0 : (hsize_t)told;
    hid_t list = n == 0 ? H5I_INVALID_HID : H5Screate_simple(1, &n, NULL);

    if (list < 0)
        return;
    H5Treclaim(type, list, dxpl, elements);
    H5Sclose(list);
}
