/* Types and values as they are hashed. See hash.h, docs/hash.md. */
#include "hash.h"

#include "base/error.h"
#include "base/ids.h"
#include "import/references.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536 /* elements that are hashed together */

/* ---- SHA-256 of fields ---- */

EVP_MD_CTX *cli_sha_open(void)
{
    EVP_MD_CTX *sha = EVP_MD_CTX_new();

    if (sha == NULL || EVP_DigestInit_ex(sha, EVP_sha256(), NULL) != 1) {
        cli_fail("SHA-256 cannot be computed: OpenSSL refuses it");
        exit(CLI_FAILED);
    }
    return sha;
}

void cli_sha_put(EVP_MD_CTX *sha, const void *bytes, size_t size)
{
    if (size > 0)
        EVP_DigestUpdate(sha, bytes, size);
}

void cli_sha_number(EVP_MD_CTX *sha, uint64_t number)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    cli_sha_put(sha, bytes, sizeof bytes);
}

void cli_sha_bytes(EVP_MD_CTX *sha, const void *bytes, size_t size)
{
    cli_sha_number(sha, size);
    cli_sha_put(sha, bytes, size);
}

void cli_sha_text(EVP_MD_CTX *sha, const char *text)
{
    cli_sha_bytes(sha, text, strlen(text));
}

void cli_sha_close(EVP_MD_CTX *sha, uint8_t hash[HASH])
{
    EVP_DigestFinal_ex(sha, hash, NULL);
    EVP_MD_CTX_free(sha);
}

/* ---- types ---- */

static hid_t canonical(hid_t type);

typedef struct enumerator {
    char *name; /* HDF5's */
    unsigned number;
} enumerator;

static int by_name(const void *a, const void *b)
{
    const enumerator *x = a, *y = b;

    return strcmp(x->name, y->name);
}

/* The integers of an enumeration, in the order of their names. */
static int put_members(EVP_MD_CTX *sha, hid_t type, hid_t base)
{
    int count = H5Tget_nmembers(type), status = count < 0 ? -1 : 0;
    size_t n = count > 0 ? (size_t)count : 0, size = H5Tget_size(base);
    hid_t plain = canonical(base);
    enumerator *list = cli_alloc(n + 1, sizeof *list);
    uint8_t *value = cli_alloc(size, 1);
    cow_part *part = plain < 0 ? NULL : cow_parts_open(NULL, plain);

    status = part == NULL ? -1 : status;
    cli_sha_number(sha, n);
    for (size_t m = 0; m < n; m++) {
        list[m] = (enumerator){H5Tget_member_name(type, (unsigned)m), (unsigned)m};
        status = list[m].name == NULL ? -1 : status;
    }
    if (status == 0)
        qsort(list, n, sizeof *list, by_name);
    for (size_t m = 0; status == 0 && m < n; m++) {
        if (H5Tget_member_value(type, list[m].number, value) < 0 ||
            H5Tconvert(base, plain, 1, value, NULL, H5P_DEFAULT) < 0)
            status = -1;
        else
            cow_values_clear(part, 1, value);
        cli_sha_text(sha, list[m].name);
        cli_sha_put(sha, value, size);
    }
    for (size_t m = 0; m < n; m++)
        H5free_memory(list[m].name);
    cow_parts_close(part);
    free(value);
    free(list);
    cow_close(plain);
    return status;
}

static int put_float(EVP_MD_CTX *sha, hid_t type)
{
    size_t sign, exponent, exponent_size, mantissa, mantissa_size;

    if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) < 0)
        return -1;
    cli_sha_text(sha, "float");
    cli_sha_number(sha, H5Tget_size(type));
    cli_sha_number(sha, sign);
    cli_sha_number(sha, exponent);
    cli_sha_number(sha, exponent_size);
    cli_sha_number(sha, H5Tget_ebias(type));
    cli_sha_number(sha, mantissa);
    cli_sha_number(sha, mantissa_size);
    cli_sha_number(sha, (uint64_t)H5Tget_norm(type));
    return 0;
}

/* What stays as it is stored. */
static int put_other(EVP_MD_CTX *sha, hid_t type)
{
    H5T_class_t class = H5Tget_class(type);

    cli_sha_text(sha, "other");
    cli_sha_number(sha, (uint64_t)class);
    cli_sha_number(sha, H5Tget_size(type));
    cli_sha_number(sha, (uint64_t)H5Tget_order(type));
    return class < 0 ? -1 : 0;
}

static int put_compound(EVP_MD_CTX *sha, hid_t type)
{
    int count = H5Tget_nmembers(type), status = count < 0 ? -1 : 0;

    cli_sha_text(sha, "compound");
    cli_sha_number(sha, count > 0 ? (uint64_t)count : 0);
    for (int m = 0; status == 0 && m < count; m++) {
        char *name = H5Tget_member_name(type, (unsigned)m);
        hid_t member = H5Tget_member_type(type, (unsigned)m);
        status = name == NULL || member < 0 ? -1 : 0;
        if (status == 0) {
            cli_sha_text(sha, name);
            status = cli_hash_type(sha, member);
        }
        H5free_memory(name);
        cow_close(member);
    }
    return status;
}

/* What is made of another type. */
static int put_derived(EVP_MD_CTX *sha, hid_t type, H5T_class_t class)
{
    hid_t base = H5Tget_super(type);
    hsize_t dims[H5S_MAX_RANK];
    int rank = class == H5T_ARRAY ? H5Tget_array_dims2(type, dims) : 0, status = base < 0 || rank < 0 ? -1 : 0;

    cli_sha_text(sha, class == H5T_ARRAY ? "array" : class == H5T_VLEN ? "sequence" : "enumeration");
    if (class == H5T_ARRAY) {
        cli_sha_number(sha, (uint64_t)rank);
        for (int d = 0; d < rank; d++)
            cli_sha_number(sha, dims[d]);
    }
    if (status == 0 && (status = cli_hash_type(sha, base)) == 0 && class == H5T_ENUM)
        status = put_members(sha, type, base);
    cow_close(base);
    return status;
}

int cli_hash_type(EVP_MD_CTX *sha, hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    char *tag;

    switch ((int)class) {
    case H5T_INTEGER:
    case H5T_BITFIELD:
        cli_sha_text(sha, class == H5T_INTEGER ? "integer" : "bitfield");
        cli_sha_number(sha, H5Tget_size(type));
        cli_sha_number(sha, H5Tget_precision(type));
        cli_sha_number(sha, (uint64_t)H5Tget_offset(type));
        cli_sha_number(sha, class == H5T_INTEGER && H5Tget_sign(type) != H5T_SGN_NONE);
        return 0;
    case H5T_FLOAT:
        return H5Tget_order(type) == H5T_ORDER_VAX ? put_other(sha, type) : put_float(sha, type);
    case H5T_STRING:
        cli_sha_text(sha, H5Tis_variable_str(type) > 0 ? "text" : "string");
        if (H5Tis_variable_str(type) <= 0) {
            cli_sha_number(sha, H5Tget_size(type));
            cli_sha_number(sha, (uint64_t)H5Tget_strpad(type));
        }
        cli_sha_number(sha, (uint64_t)H5Tget_cset(type));
        return 0;
    case H5T_OPAQUE:
        cli_sha_text(sha, "opaque");
        cli_sha_number(sha, H5Tget_size(type));
        tag = H5Tget_tag(type);
        cli_sha_text(sha, tag == NULL ? "" : tag);
        H5free_memory(tag);
        return 0;
    case H5T_COMPOUND:
        return put_compound(sha, type);
    case H5T_ARRAY:
    case H5T_VLEN:
    case H5T_ENUM:
        return put_derived(sha, type, class);
    case H5T_REFERENCE:
        cli_sha_text(sha, H5Tequal(type, H5T_STD_REF_OBJ) > 0       ? "reference to an object"
                          : H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? "reference to a region"
                                                                    : "reference");
        return 0;
    default: /* time; what a later HDF5 has */
        return put_other(sha, type);
    }
}

static hid_t canonical_compound(hid_t type)
{
    int count = H5Tget_nmembers(type);
    hid_t *member = cli_alloc(count > 0 ? (size_t)count : 1, sizeof *member), made = H5I_INVALID_HID;
    size_t size = 0, at = 0;
    bool good = count > 0;

    for (int m = 0; m < count; m++) {
        hid_t own = H5Tget_member_type(type, (unsigned)m);
        member[m] = canonical(own);
        good = good && member[m] >= 0;
        size += good ? H5Tget_size(member[m]) : 0;
        cow_close(own);
    }
    if (good && (made = H5Tcreate(H5T_COMPOUND, size)) >= 0)
        for (int m = 0; good && m < count; m++) {
            char *name = H5Tget_member_name(type, (unsigned)m);
            good = name != NULL && H5Tinsert(made, name, at, member[m]) >= 0;
            at += good ? H5Tget_size(member[m]) : 0;
            H5free_memory(name);
        }
    for (int m = 0; m < count; m++)
        cow_close(member[m]);
    free(member);
    if (!good) {
        cow_close(made);
        return H5I_INVALID_HID;
    }
    return made;
}

/* TYPE as its values are hashed: little-endian, without the gaps of compounds and what stands behind the end of strings,
 * enumerations as their integers (HDF5 would lose those that have no name). Close it. */
static hid_t canonical(hid_t type)
{
    H5T_class_t class = H5Tget_class(type);
    hid_t base, inner, made;
    hsize_t dims[H5S_MAX_RANK];
    bool good = true;
    int rank;

    if (class == H5T_COMPOUND)
        return canonical_compound(type);
    if (class == H5T_ARRAY || class == H5T_VLEN || class == H5T_ENUM) {
        base = H5Tget_super(type);
        inner = base < 0 ? base : canonical(base);
        cow_close(base);
        if (class == H5T_ENUM || inner < 0)
            return inner;
        rank = class == H5T_ARRAY ? H5Tget_array_dims2(type, dims) : 0;
        made = class == H5T_VLEN ? H5Tvlen_create(inner)
               : rank < 0        ? H5I_INVALID_HID
                                 : H5Tarray_create2(inner, (unsigned)rank, dims);
        cow_close(inner);
        return made;
    }
    if ((made = H5Tcopy(type)) < 0)
        return made;
    if (class == H5T_STRING && H5Tis_variable_str(type) <= 0)
        good = H5Tset_strpad(made, H5T_STR_NULLPAD) >= 0;
    else if ((class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_BITFIELD) &&
             H5Tget_order(made) == H5T_ORDER_BE)
        good = H5Tset_order(made, H5T_ORDER_LE) >= 0;
    if (good)
        return made;
    H5Tclose(made);
    return H5I_INVALID_HID;
}

/* ---- values ---- */

int cli_hash_values_open(cli_hash_values *v, cli_hash_walk *w, EVP_MD_CTX *to, hid_t type)
{
    *v = (cli_hash_values){.w = w, .to = to, .type = canonical(type)};
    w->refers |= cow_type_has(type, COW_PART_REFERENCES) != 0;
    return v->type < 0 || (v->part = cow_parts_open(NULL, v->type)) == NULL ? -1 : 0;
}

static void put_run(cli_hash_values *v)
{
    if (v->repeats > 0) {
        cli_sha_put(v->to, v->last, HASH);
        cli_sha_number(v->to, v->repeats);
    }
    v->repeats = 0;
}

static void end_block(cli_hash_values *v, uint64_t times)
{
    uint8_t hash[HASH];

    cli_sha_close(v->block, hash);
    v->block = NULL;
    v->in_block = 0;
    if (v->repeats > 0 && memcmp(hash, v->last, HASH) != 0)
        put_run(v);
    memcpy(v->last, hash, HASH);
    v->repeats += times;
}

void cli_hash_values_close(cli_hash_values *v)
{
    if (v->block != NULL)
        end_block(v, 1);
    put_run(v);
    cow_parts_close(v->part);
    cow_close(v->type);
}

static int put_region(cli_hash_values *v, hid_t region)
{
    H5S_sel_type type = H5Sget_select_type(region);
    hsize_t *list = NULL;
    size_t count = 0;
    int rank = H5Sget_simple_extent_ndims(region);

    cli_sha_number(v->block, (uint64_t)type);
    if (type != H5S_SEL_POINTS && type != H5S_SEL_HYPERSLABS)
        return 0;
    if (cow_native_region_list(region, UINT64_MAX, &list, &count) != 1)
        return cow_error_pending() ? -1
                                   : cow_error(COW_USAGE, "a reference to a region without end has no list of blocks");
    cli_sha_number(v->block, count);
    for (size_t i = 0; i < count * (size_t)rank * (type == H5S_SEL_POINTS ? 1 : 2); i++)
        cli_sha_number(v->block, list[i]);
    free(list);
    return 0;
}

static int put_reference(cli_hash_values *v, hid_t type, void *value)
{
    cow_import_reference r;
    uint64_t place;
    int status = 0;

    if (cow_import_reference_look(v->w->state->through, type, value, &r) < 0)
        return -1;
    H5Eclear2(H5E_DEFAULT);
    if (r.state != COW_REFERENCE_GOOD)
        cli_sha_text(v->block, r.state == COW_REFERENCE_FOREIGN ? "another file" : "nothing");
    else if (!cow_map_get(&v->w->place, cow_address(&r.token), &place))
        cli_sha_text(v->block, "elsewhere");
    else {
        cli_sha_text(v->block, r.region >= 0 ? "region" : r.attribute != NULL ? "attribute" : "object");
        cli_sha_text(v->block, v->w->object[place].path);
        if (r.region >= 0)
            status = put_region(v, r.region);
        else if (r.attribute != NULL)
            cli_sha_text(v->block, r.attribute);
    }
    cow_import_reference_done(&r);
    return status;
}

static int put_part(void *context, const cow_part *part, size_t count, void *value, void *beside)
{
    cli_hash_values *v = context;
    const char *text;

    (void)beside;
    switch (part->kind) {
    case COW_PART_REFERENCE:
        return put_reference(v, H5T_STD_REF, value);
    case COW_PART_OBJECT:
        return put_reference(v, H5T_STD_REF_OBJ, value);
    case COW_PART_REGION:
        return put_reference(v, H5T_STD_REF_DSETREG, value);
    case COW_PART_STRING:
        memcpy(&text, value, sizeof text);
        cli_sha_text(v->block, text == NULL ? "" : text);
        return 0;
    case COW_PART_SEQUENCE:
        cli_sha_number(v->block, cow_sequence_length(value));
        return 0;
    case COW_PART_BYTES:
    case COW_PART_COMPOUND:
    case COW_PART_ARRAY:
        break;
    }
    cli_sha_put(v->block, value, count * part->size);
    return 0;
}

int cli_hash_values_add(cli_hash_values *v, uint64_t n, void *value)
{
    uint8_t *at = value;

    for (uint64_t some; n > 0; n -= some) {
        some = BLOCK - v->in_block < n ? BLOCK - v->in_block : n;
        if (v->block == NULL)
            v->block = cli_sha_open();
        cow_values_clear(v->part, some, at);
        if (cow_values_each(v->part, COW_PART_LENGTHS | COW_PART_REFERENCES, some, at, NULL, put_part, v) != 0)
            return -1;
        at += some * v->part->size;
        if ((v->in_block += some) == BLOCK)
            end_block(v, 1);
    }
    return 0;
}

int cli_hash_values_repeat(cli_hash_values *v, uint64_t n, void *value)
{
    cow_values_clear(v->part, 1, value);
    for (int last = 0; last < 2; last++) {
        uint64_t some = last ? n % BLOCK : n < BLOCK ? 0 : BLOCK;
        for (uint64_t i = 0; i < some; i++) {
            if (v->block == NULL)
                v->block = cli_sha_open();
            if (cow_values_each(v->part, COW_PART_LENGTHS | COW_PART_REFERENCES, 1, value, NULL, put_part, v) != 0)
                return -1;
        }
        if (v->block != NULL)
            end_block(v, last ? 1 : n / BLOCK);
    }
    return 0;
}

bool cli_hash_values_hold(const cli_hash_values *v)
{
    return (v->part->kinds & (COW_PART_LENGTHS | COW_PART_REFERENCES)) != 0;
}
