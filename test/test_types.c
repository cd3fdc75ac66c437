/* Datatypes of every class, in every kind of place: values and types of the head and of each version are what a plain
 * file, kept at that time, has. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "samples.h"
#include "through.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define COW    "test_types_cow.h5"
#define NATIVE "test_types_native.h5"

/* ---- places ---- */

typedef enum { TINY, COMPACT, ONE, CHUNKED, CONTIGUOUS, ATTRIBUTE, PLACES } place;
static const char *const place_names[] = {"tiny", "compact", "one", "chunked", "contiguous", "attribute"};

static hsize_t elements_in(place p, hid_t type)
{
    hsize_t beyond_tiny = 4096 / H5Tget_size(type) + 3;

    return p == ONE || p == ATTRIBUTE ? 1 : p == CONTIGUOUS ? beyond_tiny : 5;
}

static hid_t file_space(place p, hid_t type)
{
    hsize_t n = elements_in(p, type), most = H5S_UNLIMITED;

    return p == ONE || p == ATTRIBUTE ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, p == CHUNKED ? &most : NULL);
}

static void place_name(char name[200], const sample_type *k, place p, bool named)
{
    snprintf(name, 200, "%s %s%s", k->name, place_names[p], named ? " named" : "");
}

/* Makes what is not there yet, and writes the values of VERSION: of two elements in three only, once it is there. */
static void write_place(hid_t file, const sample_type *k, place p, hid_t type, bool named, int version)
{
    hid_t space = file_space(p, type), dcpl = H5Pcreate(H5P_DATASET_CREATE), made;
    hsize_t n = elements_in(p, type), chunk = 2, start = 0, stride = 3, block = 2, count = n / 3;
    unsigned char *values = calloc(n, H5Tget_size(type));
    char name[200];
    hid_t part = H5Scopy(space), memory = H5Scopy(space);

    sample_seed((uint32_t)(version * 1000 + (int)p * 10 + (int)(k - sample_types) * 100));
    place_name(name, k, p, named);
    if (p == COMPACT)
        H5Pset_layout(dcpl, H5D_COMPACT);
    if (p == CHUNKED)
        H5Pset_chunk(dcpl, 1, &chunk);
    for (hsize_t i = 0; i < n; i++)
        sample_value(type, values + i * H5Tget_size(type));
    if (p == ATTRIBUTE) {
        made = version == 1 ? H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT)
                            : H5Aopen(file, name, H5P_DEFAULT);
        assert_true(made >= 0 && H5Awrite(made, type, values) >= 0 && H5Aclose(made) >= 0);
    } else {
        made = version == 1 ? H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)
                            : H5Dopen2(file, name, H5P_DEFAULT);
        if (version > 1 && n > 1) {
            assert_true(H5Sselect_hyperslab(part, H5S_SELECT_SET, &start, &stride, &count, &block) >= 0);
            assert_true(H5Sselect_copy(memory, part) >= 0);
        }
        assert_true(made >= 0 && H5Dwrite(made, type, memory, part, H5P_DEFAULT, values) >= 0 && H5Dclose(made) >= 0);
    }
    assert_true(H5Treclaim(type, space, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(memory);
    H5Sclose(part);
    H5Pclose(dcpl);
    H5Sclose(space);
}

static void say_place(listing *out, hid_t file, const sample_type *k, place p, hid_t made_type, bool named)
{
    hid_t space = file_space(p, made_type), object, type;
    hsize_t n = elements_in(p, made_type);
    unsigned char *values = calloc(n, H5Tget_size(made_type));
    char name[200], of[200];
    herr_t status;

    place_name(name, k, p, named);
    object = p == ATTRIBUTE ? H5Aopen(file, name, H5P_DEFAULT) : H5Dopen2(file, name, H5P_DEFAULT);
    type = p == ATTRIBUTE ? H5Aget_type(object) : H5Dget_type(object);
    status = p == ATTRIBUTE ? H5Aread(object, made_type, values)
                            : H5Dread(object, made_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    assert_true(status >= 0 && type >= 0);
    say(out, "%s: ", name);
    for (hsize_t i = 0; status >= 0 && i < n; i++)
        say_value(out, made_type, values + i * H5Tget_size(made_type));
    assert_true(H5Tequal(type, made_type) > 0);
    assert_true((H5Tcommitted(type) > 0) == named);
    if (named) { /* one object, whoever uses it */
        H5O_info2_t info, shared;
        snprintf(of, sizeof of, "types/%s", k->name);
        assert_true(H5Oget_info3(type, &info, H5O_INFO_BASIC) >= 0 &&
                    H5Oget_info_by_name3(file, of, &shared, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
                    memcmp(&info.token, &shared.token, sizeof info.token) == 0 && info.fileno == shared.fileno &&
                    info.rc >= 1 + PLACES);
    }
    if (p != ATTRIBUTE && H5Tdetect_class(type, H5T_VLEN) == 0 && H5Tis_variable_str(type) == 0 &&
        H5Tget_class(type) == H5T_FLOAT) { /* and through a conversion */
        double *numbers = calloc(n, sizeof *numbers);
        assert_true(H5Dread(object, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        for (hsize_t i = 0; i < n; i++)
            say(out, " %a", numbers[i]);
        free(numbers);
    }
    say(out, "\n");
    assert_true(H5Treclaim(made_type, space, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Tclose(type);
    if (p == ATTRIBUTE)
        H5Aclose(object);
    else
        H5Dclose(object);
    H5Sclose(space);
}

static void for_all(hid_t file, int version, listing *out)
{
    for (size_t k = 0; k < sample_type_count; k++)
        for (int named = 0; named < 2; named++) {
            hid_t type = sample_types[k].make(), use = type;
            char name[200];

            assert_true(type >= 0);
            snprintf(name, sizeof name, "types/%s", sample_types[k].name);
            if (named && version == 1)
                assert_true(H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            else if (named && version > 1)
                assert_true((use = H5Topen2(file, name, H5P_DEFAULT)) >= 0);
            for (place p = 0; p < PLACES; p++)
                if (out == NULL)
                    write_place(file, &sample_types[k], p, use, named, version);
                else
                    say_place(out, file, &sample_types[k], p, type, named);
            if (use != type)
                H5Tclose(use);
            H5Tclose(type);
        }
}

/* ---- versions ---- */

static void describe(const char *name, hid_t fapl, listing *out)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, fapl);

    assert_true(file >= 0);
    clear(out);
    for_all(file, 0, out);
    assert_true(H5Fclose(file) >= 0);
}

#define VERSIONS 3

static void test_values_and_types_of_every_class_in_head_and_versions(void **state)
{
    listing kept[VERSIONS + 1] = {{0}}, found = {0};
    char name[100];
    (void)state;

    remove(COW);
    remove(NATIVE);
    for (int version = 1; version <= VERSIONS; version++) {
        for (int native = 0; native < 2; native++) {
            hid_t fapl = native ? native_fapl : H5P_DEFAULT, file, group;

            if (version == 1) {
                assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
                assert_true((group = H5Gcreate2(file, "types", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
                H5Gclose(group);
            } else
                assert_true((file = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDWR, fapl)) >= 0);
            for_all(file, version, NULL);
            assert_true(H5Fclose(file) >= 0);
        }
        describe(NATIVE, native_fapl, &kept[version]);
        describe(COW, H5P_DEFAULT, &found);
        snprintf(name, sizeof name, "head at version %d", version);
        assert_true(same_text(name, &kept[version], &found));
    }
    for (int version = 1; version <= VERSIONS; version++) {
        snprintf(name, sizeof name, COW "@%d", version);
        describe(name, H5P_DEFAULT, &found);
        assert_true(same_text(name, &kept[version], &found));
        assert_true(version == 1 || strcmp(kept[version].data, kept[1].data) != 0);
    }
    for (int version = 1; version <= VERSIONS; version++)
        free(kept[version].data);
    free(found.data);
}

/* Is the type of the attribute that the named type "t" has that type itself? */
static bool has_own_type(const char *name, hid_t fapl)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, fapl), type = H5Topen2(file, "t", H5P_DEFAULT),
          a = H5Aopen(type, "own", H5P_DEFAULT), own = H5Aget_type(a);
    H5O_info2_t info[2];
    bool same = H5Oget_info3(type, &info[0], H5O_INFO_BASIC) >= 0 && H5Oget_info3(own, &info[1], H5O_INFO_BASIC) >= 0 &&
                memcmp(&info[0].token, &info[1].token, sizeof info[0].token) == 0;

    H5Tclose(own);
    H5Aclose(a);
    H5Tclose(type);
    H5Fclose(file);
    return same;
}

static void test_named_type_can_be_the_type_of_its_own_attribute(void **state)
{
    (void)state;
    remove(COW);
    remove(NATIVE);
    for (int native = 0; native < 2; native++) {
        hid_t file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, native ? native_fapl : H5P_DEFAULT),
              type = H5Tcopy(H5T_STD_I16BE), space = H5Screate(H5S_SCALAR), a;
        assert_true(H5Tcommit2(file, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true((a = H5Acreate2(type, "own", type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        H5Aclose(a);
        H5Sclose(space);
        H5Tclose(type);
        assert_true(H5Fclose(file) >= 0);
    }
    assert_true(has_own_type(NATIVE, native_fapl));
    assert_true(has_own_type(COW, H5P_DEFAULT));
    assert_true(has_own_type(COW "@1", H5P_DEFAULT));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_and_types_of_every_class_in_head_and_versions),
        cmocka_unit_test(test_named_type_can_be_the_type_of_its_own_attribute),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(COW);
    remove(NATIVE);
    return status;
}
