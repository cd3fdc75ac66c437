/* Datatypes of every class, and values of them. Contract: samples.h. */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

/* ---- types ---- */

static hid_t integer(void)
{
    return H5Tcopy(H5T_STD_I32LE);
}

static hid_t unsigned_integer(void)
{
    return H5Tcopy(H5T_STD_U64BE);
}

static hid_t single_float(void)
{
    return H5Tcopy(H5T_IEEE_F32LE);
}

static hid_t double_float(void)
{
    return H5Tcopy(H5T_IEEE_F64BE);
}

static hid_t unix_time(void)
{
    return H5Tcopy(H5T_UNIX_D64LE);
}

#if H5_VERSION_GE(2, 0, 0)
static hid_t complex_number(void)
{
    return H5Tcopy(H5T_COMPLEX_IEEE_F64LE);
}
#endif

static hid_t half_float(void)
{
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);

    assert_true(H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 && H5Tset_ebias(type, 15) >= 0);
    return type;
}

static hid_t big_half_float(void)
{
    hid_t type = half_float();

    assert_true(H5Tset_order(type, H5T_ORDER_BE) >= 0);
    return type;
}

static hid_t long_double(void)
{
    return H5Tcopy(H5T_NATIVE_LDOUBLE);
}

static hid_t odd_integer(void)
{
    hid_t type = H5Tcopy(H5T_STD_I64BE);

    assert_true(H5Tset_size(type, 5) >= 0 && H5Tset_precision(type, 33) >= 0 && H5Tset_offset(type, 3) >= 0);
    return type;
}

static hid_t bits(void)
{
    return H5Tcopy(H5T_STD_B32BE);
}

static hid_t tagged(void)
{
    hid_t type = H5Tcreate(H5T_OPAQUE, 7);

    assert_true(H5Tset_tag(type, "seven bytes, of \"something\"") >= 0);
    return type;
}

static hid_t enumeration(void)
{
    hid_t type = H5Tenum_create(H5T_STD_I16BE);
    static const char *const names[] = {"red", "green", "blue", "none at all"};
    const int16_t values[] = {5, -3, 300, 0};

    for (int i = 0; i < 4; i++) {
        unsigned char big[] = {(unsigned char)((uint16_t)values[i] >> 8), (unsigned char)values[i]};
        assert_true(H5Tenum_insert(type, names[i], big) >= 0);
    }
    return type;
}

static hid_t fixed_string(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    assert_true(H5Tset_size(type, 11) >= 0 && H5Tset_strpad(type, H5T_STR_SPACEPAD) >= 0);
    return type;
}

static hid_t text_utf8(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0);
    return type;
}

/* INNER is closed. */
static hid_t sequence_of(hid_t inner)
{
    hid_t type = H5Tvlen_create(inner);

    H5Tclose(inner);
    return type;
}

static hid_t array_of(hid_t inner, hsize_t a, hsize_t b)
{
    const hsize_t dims[] = {a, b};
    hid_t type = H5Tarray_create2(inner, b > 0 ? 2 : 1, dims);

    H5Tclose(inner);
    return type;
}

/* With holes between the members. */
static hid_t compound_of(hid_t first, hid_t second, hid_t third)
{
    const hid_t members[] = {first, second, third};
    static const char *const names[] = {"first", "the second", "third/ä"};
    size_t size = 3, offset[3];
    hid_t type;

    for (int i = 0; i < 3; i++) {
        offset[i] = (size + 7) / 8 * 8;
        size = offset[i] + H5Tget_size(members[i]);
    }
    type = H5Tcreate(H5T_COMPOUND, (size + 7) / 8 * 8 + 8);
    for (int i = 0; i < 3; i++) {
        assert_true(H5Tinsert(type, names[i], offset[i], members[i]) >= 0);
        H5Tclose(members[i]);
    }
    return type;
}

static hid_t sequence_of_numbers(void)
{
    return sequence_of(H5Tcopy(H5T_STD_I32BE));
}

static hid_t sequence_of_texts(void)
{
    return sequence_of(text_utf8());
}

static hid_t sequence_of_sequences(void)
{
    return sequence_of(sequence_of(half_float()));
}

static hid_t sequence_of_arrays(void)
{
    return sequence_of(array_of(enumeration(), 2, 2));
}

static hid_t plain_compound(void)
{
    return compound_of(long_double(), tagged(), array_of(big_half_float(), 3, 0));
}

static hid_t compound_with_sequences(void)
{
    return compound_of(sequence_of(H5Tcopy(H5T_IEEE_F64BE)), text_utf8(), enumeration());
}

static hid_t sequence_of_compounds(void)
{
    return sequence_of(compound_of(fixed_string(), sequence_of(tagged()), odd_integer()));
}

static hid_t nested_arrays(void)
{
    return array_of(array_of(array_of(H5Tcopy(H5T_STD_U16BE), 2, 0), 3, 2), 2, 0);
}

static hid_t arrays_of_texts(void)
{
    return array_of(array_of(text_utf8(), 2, 0), 2, 2);
}

static hid_t nested_compounds(void)
{
    return compound_of(compound_of(tagged(), array_of(plain_compound(), 2, 0), bits()), text_utf8(),
                       array_of(compound_of(sequence_of_numbers(), enumeration(), half_float()), 2, 0));
}

#define SAMPLE(name) {#name, name}

const sample_type sample_types[] = {
    SAMPLE(integer),
    SAMPLE(unsigned_integer),
    SAMPLE(odd_integer),
    SAMPLE(single_float),
    SAMPLE(double_float),
    SAMPLE(half_float),
    SAMPLE(big_half_float),
    SAMPLE(long_double),
    SAMPLE(bits),
    SAMPLE(unix_time),
    SAMPLE(tagged),
    SAMPLE(enumeration),
    SAMPLE(fixed_string),
    SAMPLE(text_utf8),
    SAMPLE(sequence_of_numbers),
    SAMPLE(sequence_of_texts),
    SAMPLE(sequence_of_sequences),
    SAMPLE(sequence_of_arrays),
    SAMPLE(plain_compound),
    SAMPLE(compound_with_sequences),
    SAMPLE(sequence_of_compounds),
    SAMPLE(nested_arrays),
    SAMPLE(arrays_of_texts),
    SAMPLE(nested_compounds),
#if H5_VERSION_GE(2, 0, 0)
    SAMPLE(complex_number),
#endif
};
const size_t sample_type_count = COUNT(sample_types);

/* ---- values ---- */

static uint32_t random_state;

void sample_seed(uint32_t seed)
{
    random_state = seed;
}

static uint32_t random_number(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

void sample_value(hid_t type, unsigned char *at)
{
    size_t size = H5Tget_size(type);
    hid_t inner;

    switch (H5Tget_class(type)) {
    case H5T_STRING:
        if (H5Tis_variable_str(type) > 0) {
            char *text = malloc(12);
            snprintf(text, 12, "t\xc3\xa4%u", random_number() % 100000 * (random_number() % 4 > 0));
            memcpy(at, &text, sizeof text);
        } else
            for (size_t i = 0; i < size; i++)
                at[i] = (unsigned char)('a' + random_number() % 26);
        break;
    case H5T_ENUM: {
        inner = H5Tget_super(type);
        assert_true(H5Tget_member_value(type, random_number() % (unsigned)H5Tget_nmembers(type), at) >= 0);
        H5Tclose(inner);
        break;
    }
    case H5T_VLEN: {
        hvl_t sequence = {.len = random_number() % 4};
        inner = H5Tget_super(type);
        sequence.p = sequence.len == 0 ? NULL : calloc(sequence.len, H5Tget_size(inner));
        for (size_t i = 0; i < sequence.len; i++)
            sample_value(inner, (unsigned char *)sequence.p + i * H5Tget_size(inner));
        memcpy(at, &sequence, sizeof sequence);
        H5Tclose(inner);
        break;
    }
    case H5T_ARRAY:
        inner = H5Tget_super(type);
        for (size_t i = 0; i < size; i += H5Tget_size(inner))
            sample_value(inner, at + i);
        H5Tclose(inner);
        break;
    case H5T_COMPOUND:
        for (unsigned m = 0; m < (unsigned)H5Tget_nmembers(type); m++) {
            inner = H5Tget_member_type(type, m);
            sample_value(inner, at + H5Tget_member_offset(type, m));
            H5Tclose(inner);
        }
        break;
    case H5T_FLOAT: /* no payload of a NaN, no bits that are none */
        memset(at, 0, size);
        if (size == sizeof(long double)) {
            long double value = (long double)random_number() / 3;
            memcpy(at, &value, 10);
        } else {
            at[0] = (unsigned char)(random_number() % 0x3c);
            at[size - 1] = (unsigned char)(random_number() % 0x3c);
        }
        break;
    default:
        for (size_t i = 0; i < size; i++)
            at[i] = (unsigned char)random_number();
    }
}

void say_value(listing *out, hid_t type, const unsigned char *at)
{
    size_t size = H5Tget_size(type);
    hid_t inner;

    switch (H5Tget_class(type)) {
    case H5T_VLEN: {
        hvl_t sequence;
        memcpy(&sequence, at, sizeof sequence);
        inner = H5Tget_super(type);
        say(out, "<");
        for (size_t i = 0; i < sequence.len; i++)
            say_value(out, inner, (unsigned char *)sequence.p + i * H5Tget_size(inner));
        say(out, ">");
        H5Tclose(inner);
        break;
    }
    case H5T_ARRAY:
        inner = H5Tget_super(type);
        say(out, "[");
        for (size_t i = 0; i < size; i += H5Tget_size(inner))
            say_value(out, inner, at + i);
        say(out, "]");
        H5Tclose(inner);
        break;
    case H5T_COMPOUND:
        say(out, "{");
        for (unsigned m = 0; m < (unsigned)H5Tget_nmembers(type); m++) {
            inner = H5Tget_member_type(type, m);
            say_value(out, inner, at + H5Tget_member_offset(type, m));
            H5Tclose(inner);
        }
        say(out, "}");
        break;
    default:
        if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) > 0) {
            const char *string;
            memcpy(&string, at, sizeof string);
            say(out, "\"%.100s\"", string == NULL ? "(null)" : string);
        } else
            for (size_t i = 0; i < size; i++)
                say(out, "%02x", at[i]);
        say(out, " ");
    }
}
