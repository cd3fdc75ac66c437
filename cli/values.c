/* Datatypes and values as text. See values.h. */
#include "values.h"

#include "base/ids.h"
#include "native/datatype.h"
#include "native/native.h"

#include "import/references.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 65536 /* more than a name in an enumeration can have */

/* ---- types ---- */

static char *shaped(const char *what, unsigned rank, const hsize_t dims[])
{
    uint64_t shape[H5S_MAX_RANK];
    char text[700];

    for (unsigned d = 0; d < rank; d++)
        shape[d] = dims[d];
    return cli_format("%s%s", what, cli_shape(text, sizeof text, rank, shape));
}

char *cli_type_name(hid_t type)
{
    size_t bits = 8 * H5Tget_size(type);
    H5T_class_t class = H5Tget_class(type);

    if (class == H5T_INTEGER || class == H5T_FLOAT || class == H5T_BITFIELD) {
        bool big = H5Tget_order(type) == H5T_ORDER_BE && bits > 8;
        const char *name = class == H5T_FLOAT                  ? "float"
                           : class == H5T_BITFIELD             ? "bitfield"
                           : H5Tget_sign(type) == H5T_SGN_NONE ? "uint"
                                                               : "int";
        return cli_format("%s%zu%s", name, bits, big ? " big-endian" : "");
    }
    if (class == H5T_STRING)
        return H5Tis_variable_str(type) > 0 ? cli_strdup("string") : cli_format("string[%zu]", H5Tget_size(type));
    if (class == H5T_ARRAY || class == H5T_VLEN) {
        hid_t base = H5Tget_super(type);
        char *inner = cli_type_name(base), *name;
        hsize_t dims[H5S_MAX_RANK];
        int rank = class == H5T_ARRAY ? H5Tget_array_dims2(type, dims) : 0;
        name = class == H5T_ARRAY ? shaped(inner, rank > 0 ? (unsigned)rank : 0, dims)
                                  : cli_format("sequence of %s", inner);
        free(inner);
        H5Tclose(base);
        return name;
    }
    if (class == H5T_COMPOUND)
        return cli_format("compound of %d", H5Tget_nmembers(type));
    if (class == H5T_OPAQUE)
        return cli_format("opaque[%zu]", H5Tget_size(type));
    if (class == H5T_ENUM)
        return cli_format("enum of %d", H5Tget_nmembers(type));
    return cli_strdup(class == H5T_REFERENCE ? "reference" : class == H5T_TIME ? "time" : "?");
}

static char *dataset_name(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    char *kind = type < 0 ? cli_strdup("?") : cli_type_name(type), *what = cli_format("dataset of %s ", kind), *name;
    hsize_t dims[H5S_MAX_RANK];
    int rank = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dims, NULL);

    if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL)
        name = cli_format("%s%s", what, rank < 0 ? "(?)" : "(nothing)");
    else
        name = shaped(what, (unsigned)rank, dims);
    cow_close(space, type);
    free(what);
    free(kind);
    return name;
}

char *cli_object_name(hid_t object)
{
    char *type, *name;

    switch (H5Iget_type(object)) {
    case H5I_GROUP:
        return cli_strdup("group");
    case H5I_DATASET:
        return dataset_name(object);
    case H5I_DATATYPE:
        type = cli_type_name(object);
        name = cli_format("named type %s", type);
        free(type);
        return name;
    default:
        return cli_strdup("object of a kind that is not known");
    }
}

/* ---- values ---- */

typedef struct told {
    hid_t file;
    char *text;
    size_t length, room;
} told;

static void tell(told *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(told *t, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    char *more = cli_format_list(format, list);
    va_end(list);
    size_t n = strlen(more);
    CLI_RESERVE(t->text, t->room, t->length, n + 1);
    memcpy(t->text + t->length, more, n + 1);
    t->length += n;
    free(more);
}

static void tell_value(told *t, hid_t type, const void *value);

char *cli_float_text(size_t size, long double value)
{
    char text[64] = "";
    bool found = false;

    for (int digits = size <= 2 ? 3 : 6; !found && digits <= LDBL_DECIMAL_DIG; digits++) {
        snprintf(text, sizeof text, "%.*Lg", digits, value);
        found = size <= sizeof(float)    ? strtof(text, NULL) == (float)value
                : size <= sizeof(double) ? strtod(text, NULL) == (double)value
                                         : strtold(text, NULL) == value;
    }
    return cli_strdup(isnan(value) ? "nan" : text);
}

static void tell_float(told *t, size_t size, long double value)
{
    char *text = cli_float_text(size, value);

    tell(t, "%s", text);
    free(text);
}

/* Numbers, by what HDF5 makes of them. */
static void tell_number(told *t, hid_t type, const void *value, H5T_class_t class)
{
    bool without_sign = class == H5T_INTEGER && H5Tget_sign(type) == H5T_SGN_NONE;
    hid_t memory = class == H5T_FLOAT ? H5T_NATIVE_LDOUBLE : without_sign ? H5T_NATIVE_ULLONG : H5T_NATIVE_LLONG;
    size_t size = H5Tget_size(type);
    unsigned char *bytes = cli_alloc(size < sizeof(long double) ? sizeof(long double) : size, 1);

    memcpy(bytes, value, size);
    if (H5Tconvert(type, memory, 1, bytes, NULL, H5P_DEFAULT) < 0) {
        H5Eclear2(H5E_DEFAULT);
        tell(t, "?");
    } else if (class == H5T_FLOAT) {
        long double number;
        memcpy(&number, bytes, sizeof number);
        tell_float(t, size, number);
    } else if (without_sign) {
        unsigned long long number;
        memcpy(&number, bytes, sizeof number);
        tell(t, "%llu", number);
    } else {
        long long number;
        memcpy(&number, bytes, sizeof number);
        tell(t, "%lld", number);
    }
    free(bytes);
}

static void tell_bytes(told *t, size_t size, const unsigned char *bytes)
{
    tell(t, "0x");
    for (size_t i = 0; i < size; i++)
        tell(t, "%02x", bytes[i]);
}

static void tell_text(told *t, const char *text, size_t most)
{
    char *copy = cli_alloc(most + 1, 1), *escaped;

    memcpy(copy, text, most);
    escaped = cli_escape(copy);
    tell(t, "\"%s\"", escaped);
    free(escaped);
    free(copy);
}

static void tell_string(told *t, hid_t type, const void *value)
{
    size_t size = H5Tget_size(type);
    const char *text = value;

    if (H5Tis_variable_str(type) > 0) {
        memcpy(&text, value, sizeof text);
        if (text == NULL)
            tell(t, "nothing");
        else
            tell_text(t, text, strlen(text));
        return;
    }
    size = strnlen(text, size);
    while (H5Tget_strpad(type) == H5T_STR_SPACEPAD && size > 0 && text[size - 1] == ' ')
        size--;
    tell_text(t, text, size);
}

static void tell_enum(told *t, hid_t type, const void *value)
{
    char *name = cli_alloc(NAME_BYTES, 1), *escaped;
    bool named = H5Tenum_nameof(type, value, name, NAME_BYTES) >= 0;
    hid_t base;

    if (named) {
        escaped = cli_escape(name);
        tell(t, "%s", escaped);
        free(escaped);
    }
    free(name);
    if (named)
        return;
    H5Eclear2(H5E_DEFAULT);
    base = H5Tget_super(type);
    tell_value(t, base, value);
    H5Tclose(base);
}

static void tell_several(told *t, hid_t type, size_t count, const unsigned char *values)
{
    size_t size = H5Tget_size(type);

    tell(t, "[");
    for (size_t i = 0; i < count; i++) {
        tell(t, "%s", i == 0 ? "" : ", ");
        tell_value(t, type, values + i * size);
    }
    tell(t, "]");
}

static void tell_inner(told *t, hid_t type, const void *value, H5T_class_t class)
{
    hid_t base = H5Tget_super(type);
    hsize_t dims[H5S_MAX_RANK];
    size_t count = 1;

    if (class == H5T_VLEN) {
        hvl_t sequence;
        memcpy(&sequence, value, sizeof sequence);
        tell_several(t, base, sequence.p == NULL ? 0 : sequence.len, sequence.p);
    } else {
        for (int d = 0, rank = H5Tget_array_dims2(type, dims); d < rank; d++)
            count *= dims[d];
        tell_several(t, base, count, value);
    }
    H5Tclose(base);
}

static void tell_compound(told *t, hid_t type, const unsigned char *value)
{
    int members = H5Tget_nmembers(type);

    tell(t, "{");
    for (int m = 0; m < members; m++) {
        char *name = H5Tget_member_name(type, (unsigned)m), *escaped = cli_escape(name == NULL ? "?" : name);
        hid_t member = H5Tget_member_type(type, (unsigned)m);
        tell(t, "%s%s: ", m == 0 ? "" : ", ", escaped);
        tell_value(t, member, value + H5Tget_member_offset(type, (unsigned)m));
        free(escaped);
        H5free_memory(name);
        H5Tclose(member);
    }
    tell(t, "}");
}

/* A path of the object of TOKEN, to be shown. free() it. */
static char *name_of(hid_t file, H5O_token_t token)
{
    hid_t object = H5Oopen_by_token(file, token);
    ssize_t length = object < 0 ? -1 : H5Iget_name(object, NULL, 0);
    char *name = cli_alloc(length > 0 ? (size_t)length + 1 : 2, 1), *escaped;

    if (length <= 0 || H5Iget_name(object, name, (size_t)length + 1) <= 0)
        strcpy(name, "?");
    if (object >= 0)
        H5Oclose(object);
    escaped = cli_escape(name);
    free(name);
    return escaped;
}

static void tell_reference(told *t, hid_t type, const void *value)
{
    unsigned char copy[sizeof(H5R_ref_t)] __attribute__((aligned(16))) = {0};
    cow_import_reference r;
    char *name;

    memcpy(copy, value, H5Tget_size(type) < sizeof copy ? H5Tget_size(type) : sizeof copy);
    if (cow_import_reference_look(t->file, type, copy, &r) < 0)
        r.state = COW_REFERENCE_DANGLES; /* no memory */
    if (r.state == COW_REFERENCE_GOOD) {
        name = name_of(t->file, r.token);
        tell(t, "reference to %s", name);
        free(name);
        if (r.attribute != NULL) {
            name = cli_escape(r.attribute);
            tell(t, " attribute '%s'", name);
            free(name);
        }
        if (r.region >= 0)
            tell(t, " (%lld elements)", (long long)H5Sget_select_npoints(r.region));
    } else
        tell(t, r.state == COW_REFERENCE_NULL      ? "reference to nothing"
                : r.state == COW_REFERENCE_FOREIGN ? "reference to another file"
                                                   : "reference to what is gone");
    cow_import_reference_done(&r);
    H5Eclear2(H5E_DEFAULT);
}

static void tell_value(told *t, hid_t type, const void *value)
{
    H5T_class_t class = H5Tget_class(type);

    if (class == H5T_INTEGER || class == H5T_FLOAT)
        tell_number(t, type, value, class);
    else if (class == H5T_STRING)
        tell_string(t, type, value);
    else if (class == H5T_ENUM)
        tell_enum(t, type, value);
    else if (class == H5T_ARRAY || class == H5T_VLEN)
        tell_inner(t, type, value, class);
    else if (class == H5T_COMPOUND)
        tell_compound(t, type, value);
    else if (class == H5T_REFERENCE)
        tell_reference(t, type, value);
    else
        tell_bytes(t, H5Tget_size(type), value);
}

char *cli_value_text(hid_t file, hid_t type, const void *value)
{
    return cli_values_text(file, type, 1, value);
}

char *cli_values_text(hid_t file, hid_t type, uint64_t count, const void *values)
{
    told t = {.file = file};

    tell(&t, "%s", "");
    if (count == 1)
        tell_value(&t, type, values);
    else
        tell_several(&t, type, count, values);
    return t.text;
}
