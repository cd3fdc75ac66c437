/* What differs between the elements of two datasets, or the values of two attributes. See diff.h.
 *
 * Numbers are compared as numbers: integers in 64 bits, floating-point numbers in the largest type there is, so that
 * nothing is rounded; NaN equals NaN, and -0 equals 0. All else is compared as bytes, without the padding of compounds, or
 * by what it leads to: texts, sequences, references.
 *
 * Of a chunk that both have composed on one base, or that one of them has as its base, the pieces alone are compared that are not the
 * same slot.
 */
#include "diff.h"

#include "composed.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/ids.h"
#include "import/references.h"
#include "object.h"
#include "progress.h"
#include "native/datatype.h"
#include "values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BOX ((size_t)8 << 20) /* bytes that are read at once, where there are no chunks */

typedef enum { SIGNED, UNSIGNED, FLOATING, OTHER } number_kind;

/* Two types whose values can be compared, as they are in memory. */
typedef struct pair {
    cli_diff *diff;
    number_kind kind;
    hid_t type[2];          /* in memory; of numbers HDF5's own */
    size_t size, stored[2]; /* of a value in memory; in the file */
    hid_t same;             /* of numbers of one type, that type, as both files have it; else H5I_INVALID_HID */
    cow_part *part;         /* OTHER: with something to be followed; else NULL */
    cow_part *spare;        /* OTHER: with bits that the type does not use; else NULL */
} pair;

#define PAIR_NONE ((pair){.type = {H5I_INVALID_HID, H5I_INVALID_HID}, .same = H5I_INVALID_HID, .kind = OTHER})

/* ---- types ---- */

static number_kind kind_of(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);

    if (class == H5T_INTEGER && size <= sizeof(long long))
        return H5Tget_sign(type) == H5T_SGN_NONE ? UNSIGNED : SIGNED;
    return class == H5T_FLOAT && size <= sizeof(long double) ? FLOATING : OTHER;
}

static void pair_close(pair *p)
{
    cow_parts_close(p->spare == p->part ? NULL : p->spare);
    cow_parts_close(p->part);
    if (p->kind == OTHER)
        cow_close(p->type[1], p->type[0]);
    cow_close(p->same);
    *p = PAIR_NONE;
}

/* 1; 0: values of these types cannot be compared; -1. */
static int pair_open(pair *p, cli_diff *diff, const hid_t type[2])
{
    number_kind kind[2] = {kind_of(type[0]), kind_of(type[1])};
    cow_part *part;

    *p = PAIR_NONE;
    p->diff = diff;
    for (int i = 0; i < 2; i++)
        p->stored[i] = H5Tget_size(type[i]);
    if (kind[0] != OTHER && kind[1] != OTHER) {
        p->kind = kind[0] == kind[1] ? kind[0] : FLOATING;
        for (int i = 0; i < 2; i++)
            p->type[i] = p->kind == SIGNED     ? H5T_NATIVE_LLONG
                         : p->kind == UNSIGNED ? H5T_NATIVE_ULLONG
                                               : H5T_NATIVE_LDOUBLE;
        p->size = H5Tget_size(p->type[0]);
        if (H5Tequal(type[0], type[1]) > 0 && (p->same = H5Tcopy(type[0])) < 0)
            goto failed;
        return 1;
    }
    if (!cow_tree_same_type(type[0], type[1]))
        return 0;
    for (int i = 0; i < 2; i++)
        if ((p->type[i] = H5Tcopy(type[i])) < 0 || (H5Tget_class(type[i]) == H5T_COMPOUND && H5Tpack(p->type[i]) < 0))
            goto failed;
    p->size = H5Tget_size(p->type[0]);
    if ((part = cow_parts_open(NULL, p->type[0])) == NULL)
        goto failed;
    p->part = (part->kinds & (COW_PART_LENGTHS | COW_PART_REFERENCES)) != 0 ? part : NULL;
    p->spare = part->spare ? part : NULL;
    if (p->part == NULL && p->spare == NULL)
        cow_parts_close(part);
    return 1;
failed:
    pair_close(p);
    return -1;
}

/* ---- values ---- */

/* COUNT values of each, as they were read: what stands in bits that the type does not use is no difference. */
static void clear_spare(const pair *p, size_t count, void *a, void *b)
{
    if (p->spare == NULL)
        return;
    cow_values_clear(p->spare, count, a);
    cow_values_clear(p->spare, count, b);
}

static bool same_reference(const pair *p, hid_t type, void *a, void *b)
{
    cow_import_reference from, to = {.region = H5I_INVALID_HID};
    bool same = false;

    if (cow_import_reference_look(p->diff->before->through, type, a, &from) == 0 &&
        cow_import_reference_look(p->diff->after->through, type, b, &to) == 0 && from.state == to.state) {
        if (from.state == COW_REFERENCE_FOREIGN) /* into which file, and of which object, nobody here knows better */
            same = from.kind == to.kind && memcmp(a, b, sizeof(H5O_token_t)) == 0;
        else if (from.state != COW_REFERENCE_GOOD)
            same = true;
        else
            same = from.kind == to.kind && (from.attribute == NULL) == (to.attribute == NULL) &&
                   (from.attribute == NULL || strcmp(from.attribute, to.attribute) == 0) &&
                   cow_tree_same_selection(from.region, to.region) &&
                   cli_diff_same_place(p->diff, &from.token, &to.token);
    }
    cow_import_reference_done(&from);
    cow_import_reference_done(&to);
    H5Eclear2(H5E_DEFAULT);
    return same;
}

static int part_differs(void *context, const cow_part *part, size_t count, void *a, void *b)
{
    const char *text[2];

    switch (part->kind) {
    case COW_PART_REFERENCE:
        return !same_reference(context, H5T_STD_REF, a, b);
    case COW_PART_OBJECT:
        return !same_reference(context, H5T_STD_REF_OBJ, a, b);
    case COW_PART_REGION:
        return !same_reference(context, H5T_STD_REF_DSETREG, a, b);
    case COW_PART_STRING:
        memcpy(&text[0], a, sizeof text[0]);
        memcpy(&text[1], b, sizeof text[1]);
        return text[0] == NULL || text[1] == NULL ? text[0] != text[1] : strcmp(text[0], text[1]) != 0;
    case COW_PART_SEQUENCE:
        return cow_sequence_length(a) != cow_sequence_length(b);
    case COW_PART_BYTES:
    case COW_PART_COMPOUND:
    case COW_PART_ARRAY:
        break;
    }
    return memcmp(a, b, count * part->size) != 0;
}

typedef struct difference {
    bool number;                    /* the two are numbers, and */
    long double absolute, relative; /* so far apart; relative to the former one */
} difference;

/* Does A differ from B? */
static bool differs(pair *p, const unsigned char *a, const unsigned char *b, difference *d)
{
    long double value[2];

    *d = (difference){0};
    if (p->kind == OTHER)
        return p->part == NULL ? memcmp(a, b, p->size) != 0
                               : cow_values_each(p->part, COW_PART_LENGTHS | COW_PART_REFERENCES, 1,
                                                 (void *)(uintptr_t)a, (void *)(uintptr_t)b, part_differs, p) != 0;
    if (p->kind == FLOATING) {
        memcpy(&value[0], a, sizeof value[0]);
        memcpy(&value[1], b, sizeof value[1]);
        if (value[0] == value[1] || (isnan(value[0]) && isnan(value[1])))
            return false;
    } else {
        if (memcmp(a, b, p->size) == 0)
            return false;
        for (int i = 0; i < 2; i++) {
            unsigned long long bits;
            memcpy(&bits, i == 0 ? a : b, sizeof bits);
            value[i] = p->kind == SIGNED ? (long double)(long long)bits : (long double)bits;
        }
    }
    d->absolute = fabsl(value[0] - value[1]);
    d->number = !isnan(d->absolute);
    d->relative = d->number && value[0] != 0 ? d->absolute / fabsl(value[0]) : INFINITY;
    return !d->number || (!(d->absolute <= p->diff->absolute) && !(d->relative <= p->diff->relative));
}

/* ---- attributes ---- */

int cli_diff_attributes(cli_diff *diff, const hid_t attribute[2])
{
    hid_t type[2] = {H5Aget_type(attribute[0]), H5Aget_type(attribute[1])};
    hid_t space[2] = {H5Aget_space(attribute[0]), H5Aget_space(attribute[1])};
    void *value[2] = {NULL, NULL};
    pair p = PAIR_NONE;
    int status = -1;
    hssize_t n;

    if (type[0] < 0 || type[1] < 0 || space[0] < 0 || space[1] < 0)
        goto done;
    if (!cow_tree_same_type(type[0], type[1]) || !cow_native_space_same_extent(space[0], space[1])) {
        status = 1;
        goto done;
    }
    if ((n = H5Sget_simple_extent_npoints(space[0])) < 0 || pair_open(&p, diff, type) < 0)
        goto done;
    status = 0;
    for (int i = 0; status == 0 && n > 0 && i < 2; i++) {
        value[i] = cli_alloc((size_t)n, p.size);
        if (H5Aread(attribute[i], p.type[i], value[i]) < 0)
            status = cow_error_native(i == 0 ? "the first state" : "the second state");
    }
    if (status == 0 && n > 0)
        clear_spare(&p, (size_t)n, value[0], value[1]);
    for (hssize_t i = 0; status == 0 && i < n; i++) {
        difference d;
        status = differs(&p, (unsigned char *)value[0] + (size_t)i * p.size,
                         (unsigned char *)value[1] + (size_t)i * p.size, &d);
    }
    for (int i = 0; p.part != NULL && i < 2; i++)
        if (value[i] != NULL)
            cow_reclaim(p.type[i], space[i], H5P_DEFAULT, value[i]);
done:
    free(value[0]);
    free(value[1]);
    pair_close(&p);
    cow_close(space[1], space[0], type[1], type[0]);
    return status;
}

/* ---- datasets ---- */

/* More than 20 fields: elements that both datasets have, and what was found: each box that is read needs both. */
typedef struct comparison {
    cli_diff *diff;
    pair p;
    const hid_t *dataset;
    hid_t space[2];
    unsigned rank;
    hsize_t common[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    hsize_t stored_chunk[H5S_MAX_RANK]; /* without an index in common */
    cow_grid grid;                      /* of the index */
    uint64_t pool;
    cli_slots *slots; /* NULL: they have no index in common */
    uint64_t compared, changed, chunks, numbers;
    long double largest, relative, sum;
    hsize_t first[H5S_MAX_RANK], at[H5S_MAX_RANK];
    json_object *values;
    size_t listed;
} comparison;

static json_object *position_json(const comparison *c, const hsize_t position[])
{
    uint64_t dims[H5S_MAX_RANK];

    for (unsigned d = 0; d < c->rank; d++)
        dims[d] = position[d];
    return cli_json_dims(c->rank, dims);
}

/* Element number I of a box. */
static void position_of(unsigned rank, const hsize_t start[], const hsize_t count[], uint64_t i, hsize_t position[])
{
    for (unsigned d = rank; d-- > 0; i /= count[d])
        position[d] = start[d] + i % count[d];
}

static bool before(unsigned rank, const hsize_t a[], const hsize_t b[])
{
    for (unsigned d = 0; d < rank; d++)
        if (a[d] != b[d])
            return a[d] < b[d];
    return false;
}

static char *value_text(const comparison *c, int i, const void *value)
{
    const cli_state *state = i == 0 ? c->diff->before : c->diff->after;
    long double number;

    if (c->p.kind != FLOATING)
        return cli_value_text(state->through, c->p.type[i], value);
    memcpy(&number, value, sizeof number);
    return cli_float_text(c->p.stored[i], number);
}

static void note(comparison *c, const hsize_t position[], const difference *d, const void *a, const void *b)
{
    if (c->changed++ == 0 || before(c->rank, position, c->first))
        memcpy(c->first, position, c->rank * sizeof *position);
    if (d->number) {
        if (c->numbers++ == 0 || d->absolute > c->largest) {
            c->largest = d->absolute;
            memcpy(c->at, position, c->rank * sizeof *position);
        }
        if (d->relative > c->relative)
            c->relative = d->relative;
        c->sum += d->absolute;
    }
    if (c->listed < c->diff->listed) {
        json_object *item = json_object_new_object();
        json_object_object_add(item, "at", position_json(c, position));
        json_object_object_add(item, "before", cli_diff_text(value_text(c, 0, a)));
        json_object_object_add(item, "after", cli_diff_text(value_text(c, 1, b)));
        json_object_array_add(c->values, item);
        c->listed++;
    }
}

static void count_compared(comparison *c, uint64_t n)
{
    c->compared += n;
    cli_progress("elements compared", c->diff->compared + c->compared, c->diff->all);
}

/* Nobody wants to hear of more elements of this dataset. */
static bool has_enough(const comparison *c)
{
    return c->diff->enough != CLI_DIFF_ALL && c->changed > 0;
}

/* The elements of a box, as they are in memory. */
static void compare_values(comparison *c, const hsize_t start[], const hsize_t count[], uint64_t n,
                           const unsigned char *const value[2])
{
    hsize_t position[H5S_MAX_RANK];

    if (c->p.part != NULL || c->p.kind == FLOATING || memcmp(value[0], value[1], n * c->p.size) != 0)
        for (uint64_t i = 0; i < n && !has_enough(c); i++) {
            const unsigned char *a = value[0] + i * c->p.size, *b = value[1] + i * c->p.size;
            difference d;
            if (!differs(&c->p, a, b, &d))
                continue;
            position_of(c->rank, start, count, i, position);
            note(c, position, &d, a, b);
            if (c->diff->element != NULL)
                c->diff->element(c->diff->context, position);
        }
    count_compared(c, n);
}

/* Numbers that were read as both files have them become what compare_values wants. */
static int convert(comparison *c, cli_box *box, int i)
{
    size_t size = H5Tget_size(c->p.same);
    unsigned char *value = cli_alloc(box->count, size > c->p.size ? size : c->p.size);

    memcpy(value, box->value, box->count * size);
    free(box->value);
    box->value = value;
    return H5Tconvert(c->p.same, c->p.type[i], box->count, value, NULL, H5P_DEFAULT) < 0
               ? cow_error_native("values cannot be converted")
               : 0;
}

/* Most of what is compared is the same: numbers are looked at one by one where their bytes differ. */
static int compare_numbers(comparison *c, cli_box box[2], const hsize_t start[], const hsize_t count[])
{
    if (memcmp(box[0].value, box[1].value, box[0].count * H5Tget_size(c->p.same)) == 0) {
        count_compared(c, box[0].count);
        return 0;
    }
    if (convert(c, &box[0], 0) < 0 || convert(c, &box[1], 1) < 0)
        return -1;
    compare_values(c, start, count, box[0].count, (const unsigned char *const[2]){box[0].value, box[1].value});
    return 0;
}

/* 1: there is enough of it; 0, -1. */
static int compare_box(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    comparison *c = context;
    cli_box box[2] = {{.memory = H5I_INVALID_HID}, {.memory = H5I_INVALID_HID}};
    int status = 0;

    for (int i = 0; status == 0 && i < 2; i++)
        if (cli_box_read(&box[i], c->dataset[i], c->space[i], c->p.same >= 0 ? c->p.same : c->p.type[i], rank, start,
                         count) < 0)
            status = cow_error_native(i == 0 ? "the first state" : "the second state");
    if (status == 0 && c->p.same >= 0)
        status = compare_numbers(c, box, start, count);
    else if (status == 0) {
        clear_spare(&c->p, (size_t)box[0].count, box[0].value, box[1].value);
        compare_values(c, start, count, box[0].count, (const unsigned char *const[2]){box[0].value, box[1].value});
    }
    for (int i = 0; i < 2; i++)
        cli_box_close(&box[i], c->p.part != NULL);
    return status < 0 ? -1 : has_enough(c);
}

/* What of a box is wanted, and in both datasets. false: nothing. */
static bool wanted(const comparison *c, const hsize_t start[], const hsize_t count[], hsize_t first[], hsize_t most[])
{
    for (unsigned d = 0; d < c->rank; d++) {
        const hsize_t low = c->diff->start == NULL ? 0 : c->diff->start[d];
        hsize_t high = c->common[d]; /* elements from LOW up to HIGH are wanted */
        if (low >= high)
            return false;
        if (c->diff->start != NULL && high - low > c->diff->count[d])
            high = low + c->diff->count[d];
        if (start[d] >= high)
            return false;
        high = high - start[d] < count[d] ? high : start[d] + count[d];
        first[d] = start[d] > low ? start[d] : low;
        if (first[d] >= high)
            return false;
        most[d] = high - first[d];
    }
    return true;
}

static int compare_inside(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    comparison *c = context;
    hsize_t first[H5S_MAX_RANK], most[H5S_MAX_RANK];

    return wanted(c, start, count, first, most) ? compare_box(c, rank, first, most) : 0;
}

/* ---- pieces of chunks ---- */

/* A chunk of which both states have the same base. */
typedef struct chunk_pair {
    cow_composed composed[2]; /* own 0: the base itself */
    cow_piecing cut;
    uint64_t which;          /* pieces that may differ */
    unsigned char *base;     /* its bytes, once they are needed */
    unsigned char *value[2]; /* room for a piece in memory */
} chunk_pair;

/* 1; 0: they have no base in common; -1. */
static int pair_up(comparison *c, const uint64_t chunk[], const uint64_t entry[2], chunk_pair *two)
{
    for (int i = 0; i < 2; i++) {
        if (entry[i] == COW_HOLE)
            return 0;
        two->composed[i] = (cow_composed){.pool = c->pool, .base = entry[i]};
        memset(two->composed[i].slot, 0xff, sizeof two->composed[i].slot);
        if (cow_is_composed(entry[i]) && cli_slots_composed(c->slots, c->diff->after->index, &c->grid, c->pool,
                                                            entry[i], chunk, &two->composed[i], &two->cut) < 0)
            return -1;
    }
    if (two->composed[0].base != two->composed[1].base)
        return 0;
    if (two->composed[0].own != 0 && two->composed[1].own != 0 &&
        two->composed[0].piece_pool != two->composed[1].piece_pool) /* cut in two ways, for some h5cow to come */
        return 0;
    for (unsigned i = 0; i < two->cut.count; i++)
        if (two->composed[0].slot[i] != two->composed[1].slot[i])
            two->which |= (uint64_t)1 << i;
    return 1;
}

/* Piece NUMBER of state I, as the file has it. */
static int read_piece(comparison *c, chunk_pair *two, int i, unsigned number, unsigned char *bytes)
{
    const cow_composed *composed = &two->composed[i];
    size_t offset, size;

    if (composed->own >> number & 1)
        return cli_slots_read(c->slots, composed->piece_pool, composed->slot[number], bytes);
    if (two->base == NULL) {
        two->base = cli_alloc(cli_slots_chunk_bytes(c->slots, c->pool), 1);
        if (cli_slots_base(c->slots, composed, two->base) < 0)
            return -1;
    }
    cow_piecing_place(&two->cut, number, &offset, &size);
    memcpy(bytes, two->base + offset, size);
    memset(bytes + size, 0, two->cut.bytes - size);
    return 0;
}

/* Of all of a piece, whose box is SIZE, the part that begins at FIRST and has COUNT elements, in place. */
static void take_part(comparison *c, const hsize_t size[], const hsize_t first[], const hsize_t count[],
                      unsigned char *value)
{
    size_t line = (size_t)count[c->rank - 1] * c->p.size;
    hsize_t at[H5S_MAX_RANK] = {0};
    unsigned char *to = value;
    int d;

    do {
        hsize_t from = 0;
        for (unsigned e = 0; e < c->rank; e++)
            from = from * size[e] + first[e] + at[e];
        memmove(to, value + from * c->p.size, line);
        to += line;
        for (d = (int)c->rank - 2; d >= 0 && ++at[d] == count[d]; d--)
            at[d] = 0;
    } while (d >= 0);
}

static int compare_piece(comparison *c, chunk_pair *two, const hsize_t chunk_start[], unsigned number)
{
    uint64_t offset[COW_MAX_RANK], box[COW_MAX_RANK], n = 1, all = two->cut.bytes;
    hsize_t start[H5S_MAX_RANK], size[H5S_MAX_RANK], first[H5S_MAX_RANK], count[H5S_MAX_RANK], inside[H5S_MAX_RANK];
    hid_t type = cli_slots_type(c->slots, c->pool);

    if (type < 0)
        return -1;
    all /= H5Tget_size(type);
    cow_piecing_box(&two->cut, &c->grid, number, offset, box);
    for (unsigned d = 0; d < c->rank; d++) {
        start[d] = chunk_start[d] + offset[d];
        size[d] = box[d];
    }
    if (!wanted(c, start, size, first, count))
        return 0;
    for (unsigned d = 0; d < c->rank; d++) {
        n *= count[d];
        inside[d] = first[d] - start[d];
    }
    for (int i = 0; i < 2; i++) {
        if (two->value[i] == NULL)
            two->value[i] = cli_alloc(all, c->p.size > H5Tget_size(type) ? c->p.size : H5Tget_size(type));
        if (read_piece(c, two, i, number, two->value[i]) < 0)
            return -1;
        if (H5Tconvert(type, c->p.type[i], (size_t)all, two->value[i], NULL, H5P_DEFAULT) < 0)
            return cow_error_native("elements cannot be converted");
        take_part(c, size, inside, count, two->value[i]);
    }
    compare_values(c, first, count, n, (const unsigned char *const[2]){two->value[0], two->value[1]});
    return 0;
}

/* 1: compared; 0: it has to be compared as a whole; -1: it cannot be read. Only numbers are, which are converted here. */
static int compare_pieces(comparison *c, const uint64_t chunk[], const hsize_t start[], const uint64_t entry[2])
{
    chunk_pair two = {.which = 0};
    int status;

    if (c->p.kind == OTHER || (!cow_is_composed(entry[0]) && !cow_is_composed(entry[1])))
        return 0;
    status = pair_up(c, chunk, entry, &two);
    for (unsigned i = 0; status > 0 && i < two.cut.count && !has_enough(c); i++)
        if ((two.which >> i & 1) && compare_piece(c, &two, start, i) < 0)
            status = -1;
    free(two.base);
    free(two.value[0]);
    free(two.value[1]);
    return status;
}

/* Two slots with the same in them: what has elements of variable length is stored again wherever it is written again. */
static bool same_slots(comparison *c, const uint64_t entry[2])
{
    bool same = false;

    if (entry[0] != COW_HOLE && entry[1] != COW_HOLE && !cow_is_composed(entry[0]) && !cow_is_composed(entry[1]) &&
        (c->p.part == NULL || (c->p.part->kinds & COW_PART_REFERENCES) == 0)) /* which depend on where objects are */
        same = cli_slots_same(c->slots, c->pool, entry[0], entry[1]) > 0;
    cow_error_clear();
    return same;
}

static int compare_chunk(void *context, const uint64_t chunk[], const uint64_t entry[2])
{
    comparison *c = context;
    hsize_t start[H5S_MAX_RANK];
    uint64_t changed = c->changed;
    int status;

    for (unsigned d = 0; d < c->rank; d++) {
        if (chunk[d] > c->common[d] / c->chunk[d])
            return 0;
        start[d] = chunk[d] * c->chunk[d];
    }
    if (same_slots(c, entry) || (c->diff->chunk != NULL && !c->diff->chunk(c->diff->context, chunk, entry)))
        return 0;
    if ((status = compare_pieces(c, chunk, start, entry)) == 0)
        status = compare_inside(c, c->rank, start, c->chunk);
    c->chunks += c->changed > changed;
    return status < 0 ? -1 : has_enough(c);
}

/* ---- datasets without an index in common ---- */

/* Do elements that are not stored read the same? 1, 0, -1 */
static int same_fill(comparison *c, const hid_t dcpl[2])
{
    unsigned char *value[2] = {NULL, NULL};
    difference d;
    int same = 0;

    if (c->p.part != NULL) /* zero or empty, or told element by element */
        return 0;
    for (int i = 0; same >= 0 && i < 2; i++) {
        value[i] = cli_alloc(1, c->p.size);
        same = H5Pget_fill_value(dcpl[i], c->p.type[i], value[i]) < 0 ? -1 : 1;
    }
    if (same > 0) {
        clear_spare(&c->p, 1, value[0], value[1]);
        same = !differs(&c->p, value[0], value[1], &d);
    }
    H5Eclear2(H5E_DEFAULT);
    free(value[0]);
    free(value[1]);
    return same < 0 ? 0 : same;
}

static int compare_stored_chunk(void *context, const hsize_t offset[], bool same)
{
    comparison *c = context;
    hsize_t first[H5S_MAX_RANK], most[H5S_MAX_RANK];
    uint64_t n = 1;

    if (!wanted(c, offset, c->stored_chunk, first, most))
        return 0;
    if (!same)
        return compare_box(c, c->rank, first, most);
    for (unsigned d = 0; d < c->rank; d++)
        n *= most[d];
    count_compared(c, n);
    return 0;
}

/* Chunks that one of them stores; a dataset may be larger than any disk, and hold nothing. 1: compared; 0: they are not in such
 * chunks; -1. */
static int compare_stored(comparison *c, const hid_t dcpl[2])
{
    cow_tree_chunks stored[2] = {{0}};
    hsize_t chunk[2][H5S_MAX_RANK];
    int status = 1;

    for (int i = 0; i < 2; i++)
        if (H5Pget_layout(dcpl[i]) != H5D_CHUNKED || H5Pget_chunk(dcpl[i], H5S_MAX_RANK, chunk[i]) != (int)c->rank)
            return 0;
    if (memcmp(chunk[0], chunk[1], c->rank * sizeof **chunk) != 0)
        return 0;
    for (int i = 0; status > 0 && i < 2; i++)
        if (cow_tree_list_chunks(c->dataset[i], dcpl[i], &stored[i]) < 0)
            status = cow_error_native("its chunks cannot be listed");
    if (status > 0) {
        const bool encoded =
            (c->p.same >= 0 || (c->p.kind == OTHER && c->p.part == NULL)) && cow_tree_same_filters(dcpl);
        memcpy(c->stored_chunk, chunk[0], c->rank * sizeof **chunk);
        status = cli_diff_stored(c->dataset, stored, encoded, compare_stored_chunk, c) < 0 ? -1 : 1;
    }
    free(stored[0].chunk);
    free(stored[1].chunk);
    return status;
}

/* 1: nothing is stored of either. */
static int nothing_stored(const comparison *c)
{
    H5D_space_status_t status[2];

    return H5Dget_space_status(c->dataset[0], &status[0]) >= 0 && H5Dget_space_status(c->dataset[1], &status[1]) >= 0 &&
           status[0] == H5D_SPACE_STATUS_NOT_ALLOCATED && status[1] == H5D_SPACE_STATUS_NOT_ALLOCATED;
}

/* 1: compared by what is stored; 0: all elements have to be looked at; -1. */
static int compare_what_is_stored(comparison *c)
{
    hid_t dcpl[2] = {H5Dget_create_plist(c->dataset[0]), H5Dget_create_plist(c->dataset[1])};
    int status = dcpl[0] < 0 || dcpl[1] < 0 ? cow_error_native("its creation properties cannot be read") : 0;

    if (status == 0 && same_fill(c, dcpl))
        status = nothing_stored(c) ? 1 : compare_stored(c, dcpl);
    cow_close(dcpl[1], dcpl[0]);
    return status;
}

/* All that is wanted and both have, in boxes. */
static int compare_all(comparison *c)
{
    hid_t space;
    hsize_t box[H5S_MAX_RANK];
    int status;

    if (c->rank == 0)
        return compare_box(c, 0, NULL, NULL);
    if (c->diff->start != NULL) /* no more than somebody wants to see one by one */
        return compare_inside(c, c->rank, c->diff->start, c->diff->count);
    if ((status = compare_what_is_stored(c)) != 0)
        return status;
    status = -1;
    if ((space = H5Screate_simple((int)c->rank, c->common, NULL)) >= 0 &&
        cow_box_of(space, BOX / c->p.size + 1, box) >= 0)
        status = cow_boxes(space, box, compare_inside, c);
    cow_close(space);
    return status;
}

bool cli_diff_same_grid(const cow_root *a, const cow_root *b)
{
    bool same = a->pool == b->pool && a->rank == b->rank;

    for (unsigned d = 0; same && d < a->rank; d++)
        same = a->chunk[d] == b->chunk[d] && a->maximum[d] == b->maximum[d];
    return same;
}

/* NULL: infinite, or too large for 64 bits, for which JSON has no number. */
static json_object *number_json(long double value)
{
    return isfinite((double)value) ? json_object_new_double((double)value) : NULL;
}

static uint64_t elements_in_common(const comparison *c)
{
    uint64_t all = 1;

    for (unsigned d = 0; d < c->rank; d++)
        all = cow_times(all, c->common[d]);
    return all;
}

static void tell_elements(comparison *c, json_object *item, const cow_root *root)
{
    json_object *found = json_object_new_object();
    uint64_t chunks = 1;

    for (unsigned d = 0; root != NULL && d < c->rank; d++)
        chunks = cow_times(chunks, cow_grid_chunks_along(c->common[d], root->chunk[d]));
    json_object_object_add(found, "changed", json_object_new_uint64(c->changed));
    json_object_object_add(found, "compared", json_object_new_uint64(elements_in_common(c)));
    if (root != NULL) {
        json_object_object_add(found, "chunks_changed", json_object_new_uint64(c->chunks));
        json_object_object_add(found, "chunks", json_object_new_uint64(chunks));
    }
    json_object_object_add(found, "first", position_json(c, c->first));
    if (c->numbers > 0) {
        json_object_object_add(found, "largest", number_json(c->largest));
        json_object_object_add(found, "largest_at", position_json(c, c->at));
        json_object_object_add(found, "largest_relative", number_json(c->relative));
        json_object_object_add(found, "mean", number_json(c->sum / (long double)c->numbers));
    }
    if (json_object_array_length(c->values) > 0)
        json_object_object_add(found, "values", json_object_get(c->values));
    json_object_object_add(item, "elements", found);
}

static void compare_elements(cli_diff *diff, json_object *item, const hid_t dataset[2], const cow_root *root[2],
                             const hid_t type[2], const hid_t space[2])
{
    comparison c = {.diff = diff, .dataset = dataset, .space = {space[0], space[1]}, .values = json_object_new_array()};
    bool by_index = root[0] != NULL && root[1] != NULL && diff->same_file && cli_diff_same_grid(root[0], root[1]);
    hsize_t extent[H5S_MAX_RANK];
    int status = pair_open(&c.p, diff, type), rank = H5Sget_simple_extent_dims(space[0], c.common, NULL);
    bool nothing = false;

    c.rank = (unsigned)rank;
    if (status > 0 && H5Sget_simple_extent_dims(space[1], extent, NULL) != rank)
        status = -1;
    for (int d = 0; status > 0 && d < rank; d++) {
        c.common[d] = extent[d] < c.common[d] ? extent[d] : c.common[d];
        c.chunk[d] = by_index ? root[0]->chunk[d] : 0;
        nothing = nothing || c.common[d] == 0;
    }
    if (by_index) {
        cli_grid(root[0], &c.grid);
        c.pool = root[0]->pool;
        c.slots = cli_slots_new(&diff->after->file);
    }
    if (status > 0 && !nothing)
        status = by_index ? cli_diff_index(diff->after->index, root[0], root[1], compare_chunk, &c) : compare_all(&c);
    if (status < 0)
        cli_diff_trouble(diff, item, "elements cannot be compared");
    diff->compared += elements_in_common(&c);
    if (c.changed > 0)
        tell_elements(&c, item, by_index ? root[0] : NULL);
    if (c.slots != NULL)
        cli_slots_free(c.slots);
    json_object_put(c.values);
    pair_close(&c.p);
}

static json_object *shape_json(hid_t space)
{
    hsize_t dims[H5S_MAX_RANK];
    uint64_t shape[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);

    if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL)
        return NULL;
    for (int d = 0; d < rank; d++)
        shape[d] = dims[d];
    return cli_json_dims((unsigned)rank, shape);
}

void cli_diff_datasets(cli_diff *diff, json_object *item, const hid_t dataset[2], const cow_root *root[2])
{
    hid_t type[2] = {H5Dget_type(dataset[0]), H5Dget_type(dataset[1])};
    hid_t space[2] = {H5Dget_space(dataset[0]), H5Dget_space(dataset[1])};

    if (type[0] < 0 || type[1] < 0 || space[0] < 0 || space[1] < 0)
        cli_diff_trouble(diff, item, "type or shape cannot be read");
    else {
        bool same_type = cow_tree_same_type(type[0], type[1]);
        if (!same_type)
            cli_diff_both(item, "type", cli_diff_text(cli_type_name(type[0])), cli_diff_text(cli_type_name(type[1])));
        if (!cow_native_space_same_extent(space[0], space[1])) {
            json_object *shape[2] = {shape_json(space[0]), shape_json(space[1])};
            if (json_object_equal(shape[0], shape[1])) { /* the maximum alone */
                json_object_put(shape[0]);
                json_object_put(shape[1]);
                json_object_object_add(item, "maximum_changed", json_object_new_boolean(1));
            } else
                cli_diff_both(item, "shape", shape[0], shape[1]);
        }
        if (!cli_diff_enough_of(diff, item) && H5Sget_simple_extent_type(space[0]) != H5S_NULL &&
            H5Sget_simple_extent_type(space[1]) != H5S_NULL &&
            H5Sget_simple_extent_ndims(space[0]) == H5Sget_simple_extent_ndims(space[1]))
            compare_elements(diff, item, dataset, root, type, space);
    }
    cow_close(space[1], space[0], type[1], type[0]);
}
