/* Types and values: see values.h. */
#include "values.h"

#include "compare.h"
#include "properties.h"
#include "references.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- types ---- */

static hid_t number_type(void)
{
    const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_U8BE,   H5T_STD_I16LE, H5T_STD_U16BE, H5T_STD_I32LE,
                           H5T_STD_I32BE,  H5T_STD_U32LE,  H5T_STD_I64LE, H5T_STD_U64BE, H5T_IEEE_F32LE,
                           H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
    return H5Tcopy(types[below(sizeof types / sizeof types[0])]);
}

static hid_t string_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 1 + below(16));
    H5Tset_strpad(type, (H5T_str_t)below(3));
    if (chance(30))
        H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

/* References of HDF5 1.8: to objects, in PERCENT, and to regions. */
static hid_t old_reference_type(unsigned percent)
{
    if (has_narrow_addresses()) /* D52 */
        return number_type();
    return H5Tcopy(chance(percent) ? H5T_STD_REF_OBJ : H5T_STD_REF_DSETREG);
}

static hid_t part_type(int depth, bool pointers)
{
    hid_t type = H5I_INVALID_HID, base;
    switch (below(depth > 0 ? 20 : 13)) {
    case 0: { /* part of the bits */
        type = H5Tcopy(chance(50) ? H5T_STD_I32LE : H5T_STD_U16BE);
        H5Tset_precision(type,
                         4 * H5Tget_size(type) + below(4)); /* fewer than half of the bits: HDF5 will not read it */
        H5Tset_offset(type, below(2));
        return type;
    }
    case 1: {
        base = H5Tcopy(chance(50) ? H5T_STD_I16BE : H5T_STD_I8LE);
        type = H5Tenum_create(base);
        size_t n = 2 + below(4);
        for (size_t i = 0; i < n; i++) {
            char name[32];
            long value = (long)(i * 3);
            snprintf(name, sizeof name, "E%zu", i);
            H5Tconvert(H5T_NATIVE_LONG, base, 1, &value, NULL, H5P_DEFAULT);
            H5Tenum_insert(type, name, &value);
        }
        H5Tclose(base);
        return type;
    }
    case 2:
        type = H5Tcreate(H5T_OPAQUE, 1 + below(20));
        H5Tset_tag(type, chance(50) ? "blob" : "other tag");
        return type;
    case 3:
        return string_type();
    case 4: {
        const hid_t bits[] = {H5T_STD_B8LE, H5T_STD_B16BE, H5T_STD_B32LE, H5T_STD_B64BE};
        return H5Tcopy(bits[below(4)]);
    }
    case 5:
        return old_reference_type(55);
    case 6:
        if (!pointers)
            return number_type();
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, H5T_VARIABLE);
        if (chance(40))
            H5Tset_cset(type, H5T_CSET_UTF8);
        return type;
    case 7:
        if (!pointers)
            return number_type();
        base = chance(20)                ? old_reference_type(60)
               : depth > 0 && chance(30) ? part_type(depth - 1, false)
                                         : number_type(); /* D11 */
        type = H5Tvlen_create(base);
        H5Tclose(base);
        return type;
#if H5_VERSION_GE(2, 0, 0)
    case 8: {
        const hid_t complexes[] = {H5T_COMPLEX_IEEE_F32LE, H5T_COMPLEX_IEEE_F64BE, H5T_NATIVE_FLOAT_COMPLEX};
        return H5Tcopy(complexes[below(3)]);
    }
#endif
    case 13:
    case 14: {
        hsize_t dims[2] = {1 + below(4), 1 + below(3)};
        base = part_type(depth - 1, pointers && chance(20));
        type = H5Tarray_create2(base, (unsigned)(1 + below(2)), dims);
        H5Tclose(base);
        return type;
    }
    case 15:
    case 16:
    case 17:
    case 18:
    case 19: {
        size_t n = 1 + below(5), size = 0, offset[5];
        hid_t member[5];
        for (size_t i = 0; i < n; i++) {
            member[i] = part_type(depth - 1, pointers && chance(20));
            size += chance(30) ? below(6) : 0;
            offset[i] = size;
            size += H5Tget_size(member[i]);
        }
        type = H5Tcreate(H5T_COMPOUND, size + (chance(20) ? below(5) : 0));
        for (size_t i = 0; i < n; i++) {
            char name[32];
            snprintf(name, sizeof name, "m%zu", i);
            H5Tinsert(type, name, offset[i], member[i]);
            H5Tclose(member[i]);
        }
        return type;
    }
    default:
        return number_type();
    }
}

hid_t random_type(int depth, bool pointers)
{
    return chance(3) && takes_newest_formats() /* D48 */ ? H5Tcopy(H5T_STD_REF) : part_type(depth, pointers); /* D27 */
}

hid_t memory_type(hid_t file, bool same)
{
    const hid_t numbers[] = {H5T_NATIVE_SCHAR,  H5T_NATIVE_USHORT, H5T_NATIVE_INT,   H5T_NATIVE_LLONG,
                             H5T_NATIVE_ULLONG, H5T_NATIVE_FLOAT,  H5T_NATIVE_DOUBLE};
    hid_t type, base;
    if (same)
        return H5Tcopy(file);
    switch (H5Tget_class(file)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
        return H5Tcopy(numbers[below(sizeof numbers / sizeof numbers[0])]);
    case H5T_STRING:
        type = H5Tcopy(file);
        if (H5Tis_variable_str(file) <= 0 && H5Tget_strpad(file) != H5T_STR_SPACEPAD) /* D19 */
            H5Tset_size(type, 1 + below(20));
        return type;
    case H5T_ARRAY: {
        hsize_t dims[H5S_MAX_RANK];
        int rank = H5Tget_array_dims2(file, dims);
        hid_t super = H5Tget_super(file);
        base = memory_type(super, false);
        type = H5Tarray_create2(base, (unsigned)rank, dims);
        H5Tclose(super);
        H5Tclose(base);
        return type;
    }
    case H5T_COMPOUND: { /* some of the fields, in another order, packed */
        int n = H5Tget_nmembers(file), first = (int)below((size_t)n), taken = 1 + (int)below((size_t)n);
        hid_t member[8];
        size_t size = 0;
        for (int i = 0; i < taken; i++) {
            hid_t own = H5Tget_member_type(file, (unsigned)((first + i) % n));
            member[i] = memory_type(own, chance(50));
            size += H5Tget_size(member[i]);
            H5Tclose(own);
        }
        type = H5Tcreate(H5T_COMPOUND, size);
        size = 0;
        for (int i = 0; i < taken; i++) {
            char *name = H5Tget_member_name(file, (unsigned)((first + i) % n));
            H5Tinsert(type, name, size, member[i]);
            size += H5Tget_size(member[i]);
            H5free_memory(name);
            H5Tclose(member[i]);
        }
        return type;
    }
    case H5T_TIME:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_REFERENCE:
    case H5T_ENUM:
    case H5T_VLEN:
    default: /* and complex numbers, which only HDF5 2 has */
        break;
    }
    return H5Tcopy(file);
}

/* ---- values ---- */

typedef enum { MANY, FEW, ONE } variety;

/* The value of either side: the same but for pointers and references. */
static void random_value(hid_t type, unsigned char *const value[2], variety v)
{
    size_t size = H5Tget_size(type);
    hid_t base;
    switch (H5Tget_class(type)) {
    case H5T_COMPOUND: {
        int n = H5Tget_nmembers(type);
        for (size_t i = 0; i < size; i++)
            value[1][i] = value[0][i] = (unsigned char)next();
        for (int i = 0; i < n; i++) {
            size_t at = H5Tget_member_offset(type, (unsigned)i);
            base = H5Tget_member_type(type, (unsigned)i);
            random_value(base, (unsigned char *const[]){value[0] + at, value[1] + at}, v);
            H5Tclose(base);
        }
        return;
    }
    case H5T_ARRAY:
        base = H5Tget_super(type);
        for (size_t at = 0, step = H5Tget_size(base); at < size; at += step)
            random_value(base, (unsigned char *const[]){value[0] + at, value[1] + at}, v);
        H5Tclose(base);
        return;
    case H5T_VLEN: {
        hvl_t sequence[2] = {{0, NULL}, {0, NULL}};
        sequence[0].len = sequence[1].len = below(v == FEW ? 3 : 6);
        base = H5Tget_super(type);
        size_t step = H5Tget_size(base);
        for (int s = 0; s < 2; s++)
            if (sequence[s].len)
                sequence[s].p = calloc(sequence[s].len, step);
        for (size_t i = 0; i < sequence[0].len; i++)
            random_value(base,
                         (unsigned char *const[]){(unsigned char *)sequence[0].p + i * step,
                                                  (unsigned char *)sequence[1].p + i * step},
                         v);
        for (int s = 0; s < 2; s++)
            memcpy(value[s], &sequence[s], sizeof sequence[s]);
        H5Tclose(base);
        return;
    }
    case H5T_STRING: {
        size_t length = H5Tis_variable_str(type) > 0 ? below(20) : below(size + 1);
        char *text = calloc(1, (length > size ? length : size) + 1), *other = NULL;
        for (size_t i = 0; i < length; i++)
            text[i] = (char)('a' + below(v == MANY ? 26 : 2));
        if (H5Tis_variable_str(type) <= 0) {
            memcpy(value[0], text, size);
            memcpy(value[1], text, size);
            free(text);
        } else {
            if (chance(5)) {
                free(text);
                text = NULL;
            } else
                other = strdup(text);
            memcpy(value[0], &text, sizeof text);
            memcpy(value[1], &other, sizeof other);
        }
        return;
    }
    case H5T_REFERENCE:
        random_reference(type, value);
        return;
    case H5T_FLOAT:
        if (chance(90) && (size == 4 || size == 8)) { /* ordinary numbers; else any bits */
            double number = v == ONE ? 1.5 : (double)(int64_t)below(v == FEW ? 4 : 20000) / 8 - 1000;
            float small = (float)number;
            if (size == 8) {
                memcpy(value[0], &number, sizeof number);
                H5Tconvert(H5T_NATIVE_DOUBLE, type, 1, value[0], NULL, H5P_DEFAULT);
            } else {
                memcpy(value[0], &small, sizeof small);
                H5Tconvert(H5T_NATIVE_FLOAT, type, 1, value[0], NULL, H5P_DEFAULT);
            }
            memcpy(value[1], value[0], size);
            return;
        }
        break;
    case H5T_INTEGER:
    case H5T_TIME:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_ENUM:
    default: /* and complex numbers, which only HDF5 2 has */
        break;
    }
    for (size_t i = 0; i < size; i++)
        value[0][i] = v == MANY ? (unsigned char)next() : v == FEW ? (unsigned char)(i ? 0 : below(4)) : 7;
    memcpy(value[1], value[0], size);
}

void random_values(hid_t type, size_t n, void *values[2])
{
    size_t size = H5Tget_size(type);
    variety v = chance(60) ? MANY : chance(60) ? FEW : ONE;
    for (int s = 0; s < 2; s++)
        if ((values[s] = calloc(n ? n : 1, size)) == NULL)
            die("out of memory");
    begin_references();
    for (size_t i = 0; i < n; i++)
        random_value(
            type,
            (unsigned char *const[]){(unsigned char *)values[0] + i * size, (unsigned char *)values[1] + i * size}, v);
    end_references();
}

void reclaim(hid_t type, size_t n, void *values)
{
    if (n && (type_contains(type, H5T_VLEN) || type_contains(type, H5T_REFERENCE))) {
        hsize_t count = n;
        hid_t space = H5Screate_simple(1, &count, NULL);
        H5Treclaim(type, space, H5P_DEFAULT, values);
        H5Sclose(space);
    }
    free(values);
}

void reclaim_both(hid_t type, size_t n, void *values[2])
{
    reclaim(type, n, values[0]);
    reclaim(type, n, values[1]);
}
