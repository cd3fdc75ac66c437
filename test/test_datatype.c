/* Datatypes as trees of parts, and walks through values: what is visited, in which order, how many at once. */
#include "base/error.h"
#include "native/datatype.h"

#include <hdf5.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

typedef struct element {
    int32_t number;
    const char *text;
    int16_t pair[2];
    hvl_t places; /* of H5R_ref_t */
    hobj_ref_t old;
} element;

static hid_t element_type(void)
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(element)), text = H5Tcopy(H5T_C_S1);
    hid_t pair = H5Tarray_create2(H5T_NATIVE_INT16, 1, (hsize_t[]){2}), places = H5Tvlen_create(H5T_STD_REF);

    assert_true(H5Tset_size(text, H5T_VARIABLE) >= 0);
    assert_true(H5Tinsert(type, "number", offsetof(element, number), H5T_NATIVE_INT32) >= 0);
    assert_true(H5Tinsert(type, "text", offsetof(element, text), text) >= 0);
    assert_true(H5Tinsert(type, "pair", offsetof(element, pair), pair) >= 0);
    assert_true(H5Tinsert(type, "places", offsetof(element, places), places) >= 0);
    assert_true(H5Tinsert(type, "old", offsetof(element, old), H5T_STD_REF_OBJ) >= 0);
    H5Tclose(text);
    H5Tclose(pair);
    H5Tclose(places);
    return type;
}

static void test_a_type_becomes_parts(void **state)
{
    const cow_part_kind kind[] = {COW_PART_BYTES, COW_PART_STRING, COW_PART_ARRAY, COW_PART_SEQUENCE, COW_PART_OBJECT};
    hid_t type = element_type();
    cow_part *part = cow_parts_open(NULL, type);

    (void)state;
    assert_non_null(part);
    assert_int_equal(part->kind, COW_PART_COMPOUND);
    assert_int_equal(part->size, sizeof(element));
    assert_int_equal(part->inners, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(part->inner[i].kind, kind[i]);
    assert_int_equal(part->inner[2].count, 2);
    assert_int_equal(part->inner[2].offset, offsetof(element, pair));
    assert_int_equal(part->inner[3].inner->kind, COW_PART_REFERENCE);
    assert_int_equal(part->inner[3].kinds, COW_PART_SEQUENCE | COW_PART_REFERENCE);
    assert_int_equal(part->kinds & COW_PART_REGION, 0);
    cow_parts_close(part);
    assert_int_equal(cow_type_has(type, COW_PART_REFERENCE), 1); /* in the sequence */
    assert_int_equal(cow_type_has(type, COW_PART_REGION), 0);
    assert_int_equal(cow_type_has(H5T_NATIVE_INT, COW_PART_LENGTHS | COW_PART_REFERENCES), 0);
    assert_int_equal(cow_type_has(H5I_INVALID_HID, COW_PART_BYTES), -1);
    cow_error_clear();
    H5Tclose(type);
}

typedef struct visits {
    struct {
        cow_part_kind kind;
        size_t count;
        const void *a, *b;
    } at[20];
    size_t n, last;
} visits;

static int note(void *context, const cow_part *part, size_t count, void *a, void *b)
{
    visits *v = context;

    v->at[v->n].kind = part->kind;
    v->at[v->n].count = count;
    v->at[v->n].a = a;
    v->at[v->n++].b = b;
    return v->n == v->last ? 7 : 0;
}

static void visited(const visits *v, size_t i, cow_part_kind kind, size_t count, const void *a, const void *b)
{
    assert_true(i < v->n);
    assert_int_equal(v->at[i].kind, kind);
    assert_int_equal(v->at[i].count, count);
    assert_ptr_equal(v->at[i].a, a);
    assert_ptr_equal(v->at[i].b, b);
}

static void test_values_are_visited_in_the_order_of_their_parts(void **state)
{
    static H5R_ref_t places[2][2];
    element a[2] = {{.places = {2, places[0]}}, {.places = {0, NULL}}}, b[2] = {{.places = {2, places[1]}}};
    hid_t type = element_type();
    cow_part *part = cow_parts_open(NULL, type);
    visits v = {.n = 0};

    (void)state;
    assert_int_equal(cow_values_each(part, ~0u, 2, a, b, note, &v), 0);
    assert_int_equal(v.n, 12);
    visited(&v, 0, COW_PART_BYTES, 1, &a[0].number, &b[0].number);
    visited(&v, 1, COW_PART_STRING, 1, &a[0].text, &b[0].text);
    visited(&v, 2, COW_PART_BYTES, 2, &a[0].pair, &b[0].pair);
    visited(&v, 3, COW_PART_SEQUENCE, 1, &a[0].places, &b[0].places);
    visited(&v, 4, COW_PART_REFERENCE, 1, &places[0][0], &places[1][0]);
    visited(&v, 5, COW_PART_REFERENCE, 1, &places[0][1], &places[1][1]);
    visited(&v, 6, COW_PART_OBJECT, 1, &a[0].old, &b[0].old);
    visited(&v, 7, COW_PART_BYTES, 1, &a[1].number, &b[1].number);
    visited(&v, 10, COW_PART_SEQUENCE, 1, &a[1].places, &b[1].places);
    visited(&v, 11, COW_PART_OBJECT, 1, &a[1].old, &b[1].old);

    v = (visits){.last = 3};
    assert_int_equal(cow_values_each(part, ~0u, 2, a, NULL, note, &v), 7);
    assert_int_equal(v.n, 3);
    visited(&v, 2, COW_PART_BYTES, 2, &a[0].pair, NULL);
    cow_parts_close(part);
    H5Tclose(type);
}

static void test_what_has_nothing_of_interest_is_visited_as_a_whole(void **state)
{
    element a[3] = {{.number = 1}};
    hid_t type = element_type();
    cow_part *part = cow_parts_open(NULL, type);
    visits v = {.n = 0};

    (void)state;
    assert_int_equal(cow_values_each(part, COW_PART_REGION, 3, a, NULL, note, &v), 0);
    assert_int_equal(v.n, 1);
    visited(&v, 0, COW_PART_COMPOUND, 3, a, NULL);
    v = (visits){.n = 0};
    assert_int_equal(cow_values_each(part, COW_PART_STRING, 1, a, NULL, note, &v), 0);
    assert_int_equal(v.n, 5);
    visited(&v, 2, COW_PART_ARRAY, 1, &a[0].pair, NULL);
    visited(&v, 3, COW_PART_SEQUENCE, 1, &a[0].places, NULL);
    cow_parts_close(part);
    H5Tclose(type);
}

static void test_bits_that_are_not_used_become_zero(void **state)
{
    hid_t narrow = H5Tcopy(H5T_STD_I32LE), wide = H5Tcopy(H5T_STD_B16BE), list;
    hid_t pair = H5Tcreate(H5T_COMPOUND, 24);
    unsigned char inner[8], value[48];
    hvl_t sequence = {2, inner};
    cow_part *part;

    (void)state;
    assert_true(H5Tset_precision(narrow, 12) >= 0 && H5Tset_offset(narrow, 4) >= 0 && H5Tset_precision(wide, 9) >= 0);
    list = H5Tvlen_create(narrow);
    assert_true(H5Tinsert(pair, "wide", 0, wide) >= 0 && H5Tinsert(pair, "all", 2, H5T_NATIVE_INT) >= 0);
    assert_true(H5Tinsert(pair, "list", 8, list) >= 0);
    assert_non_null(part = cow_parts_open(NULL, pair));
    assert_true(part->spare && part->inner[1].used == NULL);
    memset(inner, 0xff, sizeof inner);
    memset(value, 0xff, sizeof value);
    memcpy(value + 8, &sequence, sizeof sequence);
    memset(value + 24 + 8, 0, sizeof sequence);
    cow_values_clear(part, 2, value);
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(value + 24 * i, ((unsigned char[]){0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), 8);
        assert_memory_equal(inner + 4 * i, ((unsigned char[]){0xf0, 0xff, 0, 0}), 4);
    }
    cow_parts_close(part);
    assert_non_null(part = cow_parts_open(NULL, H5T_IEEE_F64BE));
    assert_false(part->spare);
    cow_parts_close(part);
    H5Tclose(pair);
    H5Tclose(list);
    H5Tclose(wide);
    H5Tclose(narrow);
}

/* Each of HDF5's answers holds a copy of all that is below it: with one kept for each level, this type takes gigabytes. */
static void test_a_deep_type_takes_little_memory(void **state)
{
    struct rusage before, after;
    hid_t type = H5Tcopy(H5T_NATIVE_CHAR);
    size_t depth = 0;
    cow_part *part;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        hid_t next = H5Tvlen_create(type);
        assert_true(next >= 0);
        H5Tclose(type);
        type = next;
    }
    getrusage(RUSAGE_SELF, &before);
    assert_non_null(part = cow_parts_open(NULL, type));
    getrusage(RUSAGE_SELF, &after);
    for (const cow_part *p = part; p->kind == COW_PART_SEQUENCE; p = p->inner)
        depth++;
    assert_int_equal(depth, 2000);
    assert_true(after.ru_maxrss - before.ru_maxrss < 600 * 1024);
    cow_parts_close(part);
    H5Tclose(type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_type_becomes_parts),
        cmocka_unit_test(test_values_are_visited_in_the_order_of_their_parts),
        cmocka_unit_test(test_what_has_nothing_of_interest_is_visited_as_a_whole),
        cmocka_unit_test(test_bits_that_are_not_used_become_zero),
        cmocka_unit_test(test_a_deep_type_takes_little_memory),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
