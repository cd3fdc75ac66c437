/* One step in the life of a file that programs with different HDF5 libraries share: compiled once for each of them, and run
 * by test_between.py. Public HDF5 calls only.
 *
 *   between write N FILE   make version N of FILE through the connector, and do the same natively to FILE.N, a copy of
 *                          FILE.(N - 1), the twin that is right
 *   between check N FILE   the head and the versions 1 to N, with and without the connector, are as their twins
 *   between make FILE      a new file with what only HDF5 2 knows, complex numbers, beside what every one does
 *   between change N FILE  version N: the latter changes
 *   between read N FILE    complex numbers are in the head and all of N versions; HDF5 1.14 is refused them, and nothing else
 */
#include "samples.h"
#include "through.h"
#include "whole.h"

#include <stdlib.h>
#include <string.h>

#define ELEMENTS 8
#define CHUNK    3

/* ELEMENTS and one more for each version; in each, every second one is new. */
static void write_samples(hid_t types, const sample_type *sample, unsigned version)
{
    hsize_t extent = ELEMENTS + version, chunk = CHUNK, most = H5S_UNLIMITED, first = version % 2, step = 2,
            count = (extent - first + 1) / 2;
    hid_t type = sample->make(), space = H5Screate_simple(1, &extent, &most), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          memory = H5Screate_simple(1, &count, NULL), dataset;
    size_t size = H5Tget_size(type);
    unsigned char *values = calloc(count, size);

    for (hsize_t i = 0; i < count; i++)
        sample_value(type, values + i * size);
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    if (version == 1)
        dataset = H5Dcreate2(types, sample->name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    else
        dataset = H5Dopen2(types, sample->name, H5P_DEFAULT);
    assert_true(dataset >= 0 && H5Dset_extent(dataset, &extent) >= 0);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &step, &count, NULL) >= 0);
    assert_true(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, values) >= 0);
    assert_true(H5Treclaim(type, memory, H5P_DEFAULT, values) >= 0 && H5Dclose(dataset) >= 0);
    free(values);
    H5Sclose(memory);
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
}

static void write_number(hid_t at, const char *attribute, unsigned value)
{
    hid_t space = H5Screate(H5S_SCALAR), a;

    if (H5Aexists(at, attribute) > 0)
        a = H5Aopen(at, attribute, H5P_DEFAULT);
    else
        a = H5Acreate2(at, attribute, H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(a >= 0 && H5Awrite(a, H5T_NATIVE_UINT, &value) >= 0 && H5Aclose(a) >= 0);
    H5Sclose(space);
}

static void write_references(hid_t file, unsigned version)
{
    static const char *const names[] = {"numbers", "types/integer", "types"};
    hsize_t extent = 2000; /* more than HDF5 keeps itself */
    hid_t space = H5Screate_simple(1, &extent, NULL), dataset;
    H5R_ref_t *values = calloc(extent, sizeof *values);

    for (hsize_t i = 0; i < extent; i++)
        assert_true(H5Rcreate_object(file, names[(i + version) % COUNT(names)], H5P_DEFAULT, &values[i]) >= 0);
    dataset = version == 1 ? H5Dcreate2(file, "references", H5T_STD_REF, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                           : H5Dopen2(file, "references", H5P_DEFAULT);
    assert_true(dataset >= 0 && H5Dwrite(dataset, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0);
    for (hsize_t i = 0; i < extent; i++)
        assert_true(H5Rdestroy(&values[i]) >= 0);
    free(values);
    H5Sclose(space);
}

static void write_version(hid_t file, unsigned version)
{
    char name[40], before[40];
    hid_t types = version == 1 ? H5Gcreate2(file, "types", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                               : H5Gopen2(file, "types", H5P_DEFAULT),
          made;

    sample_seed(version);
    for (size_t i = 0; i < sample_type_count; i++)
        if (strcmp(sample_types[i].name, "complex_number") != 0)
            write_samples(types, &sample_types[i], version);
    assert_true(H5Gclose(types) >= 0);
    write_numbers(file, "numbers", 5000, 500, version);
    write_references(file, version);
    write_number(file, "version", version);
    snprintf(name, sizeof name, "made in %u", version);
    made = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(made >= 0);
    write_numbers(made, "more", 3000, 1000, version / 2); /* two versions each have the same */
    write_number(made, "version", version);
    assert_true(H5Lcreate_hard(file, "numbers", made, "numbers", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("more", made, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Gclose(made) >= 0);
    if (version > 1) { /* what the other library made is moved, then removed */
        snprintf(before, sizeof before, "made in %u", version - 1);
        snprintf(name, sizeof name, "moved in %u", version);
        assert_true(H5Lmove(file, before, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    if (version > 2) {
        snprintf(name, sizeof name, "moved in %u", version - 1);
        assert_true(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    }
}

static void name_twin(char *name, size_t size, const char *file, unsigned version)
{
    snprintf(name, size, "%s.%u", file, version);
}

static void write_both(unsigned version, const char *file)
{
    for (int side = 0; side < 2; side++) {
        char twin[300];
        hid_t opened, fapl = side == 0 ? H5P_DEFAULT : native_fapl;
        const char *name = side == 0 ? file : twin;

        name_twin(twin, sizeof twin, file, version);
        opened = version == 1 ? create_file(name, fapl) : H5Fopen(name, H5F_ACC_RDWR, fapl);
        assert_true(opened >= 0);
        write_version(opened, version);
        assert_true(H5Fclose(opened) >= 0);
    }
}

static void check_all(unsigned versions, const char *file)
{
    hid_t stock;
    char twin[300], name[300], what[100];

    name_twin(twin, sizeof twin, file, versions);
    same_files("head", twin, file, H5P_DEFAULT);
    for (unsigned v = 1; v <= versions; v++) {
        name_twin(twin, sizeof twin, file, v);
        snprintf(name, sizeof name, "%s@%u", file, v);
        snprintf(what, sizeof what, "version %u", v);
        same_files(what, twin, name, H5P_DEFAULT);
    }
    snprintf(name, sizeof name, "%s@%u", file, versions + 1);
    H5E_BEGIN_TRY
    stock = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    H5E_END_TRY
    assert_true(stock < 0);
    stock = H5Fopen(file, H5F_ACC_RDONLY, native_fapl);
    assert_true(stock >= 0);
    for (unsigned v = 1; v <= versions; v++) {
        hid_t group, native;

        name_twin(twin, sizeof twin, file, v);
        snprintf(name, sizeof name, "/_versioned_data/versions/%u", v);
        snprintf(what, sizeof what, "version %u without the connector", v);
        group = H5Gopen2(stock, name, H5P_DEFAULT);
        native = H5Fopen(twin, H5F_ACC_RDONLY, native_fapl);
        assert_true(group >= 0 && native >= 0);
        same_tree(what, REACHED_VERSION, native, group);
        assert_true(H5Gclose(group) >= 0 && H5Fclose(native) >= 0);
    }
    assert_true(H5Fclose(stock) >= 0);
}

/* ---- complex numbers ---- */

static void make_complex(const char *file)
{
#if H5_VERSION_GE(2, 0, 0)
    hsize_t extent = 4000, chunk = 1000;
    hid_t made = create_file(file, H5P_DEFAULT), space = H5Screate_simple(1, &extent, NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;
    double *values = calloc(extent, 2 * sizeof *values);

    for (hsize_t i = 0; i < 2 * extent; i++)
        values[i] = (double)i / 2;
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    dataset = H5Dcreate2(made, "complex", H5T_COMPLEX_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_COMPLEX_IEEE_F64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0);
    write_numbers(made, "numbers", 5000, 500, 1);
    assert_true(H5Fclose(made) >= 0);
    free(values);
    H5Pclose(dcpl);
    H5Sclose(space);
#else
    fail_msg("%s: HDF5 1.14 has no complex numbers", file);
#endif
}

static void change(unsigned version, const char *file)
{
    hid_t opened = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(opened >= 0);
    write_numbers(opened, "numbers", 5000, 500, version);
    write_number(opened, "version", version);
    assert_true(H5Fclose(opened) >= 0);
}

static void read_complex(unsigned versions, const char *file)
{
    for (unsigned v = 0; v <= versions; v++) {
        char name[300];
        unsigned numbers[5000], seed = v == 0 ? versions : v;
        hid_t opened, dataset;

        snprintf(name, sizeof name, v == 0 ? "%s" : "%s@%u", file, v);
        opened = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
        dataset = H5Dopen2(opened, "numbers", H5P_DEFAULT);
        assert_true(opened >= 0 && dataset >= 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_UINT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        for (size_t i = 0; i < COUNT(numbers); i++) {
            seed = seed * 1664525u + 1013904223u;
            if (numbers[i] != seed)
                fail_msg("%s: element %zu of numbers is %u, not %u", name, i, numbers[i], seed);
        }
        assert_true(H5Dclose(dataset) >= 0 && H5Lexists(opened, "complex", H5P_DEFAULT) > 0);
#if H5_VERSION_GE(2, 0, 0)
        static double values[8000];
        dataset = H5Dopen2(opened, "complex", H5P_DEFAULT);
        assert_true(H5Dread(dataset, H5T_COMPLEX_IEEE_F64LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        for (size_t i = 0; i < COUNT(values); i++)
            if (values[i] != (double)i / 2)
                fail_msg("%s: number %zu of complex is %g", name, i, values[i]);
        assert_true(H5Dclose(dataset) >= 0);
#else
        H5E_BEGIN_TRY
        dataset = H5Dopen2(opened, "complex", H5P_DEFAULT);
        H5E_END_TRY
        assert_true(dataset < 0);
#endif
        assert_true(H5Fclose(opened) >= 0);
    }
}

static char **words;

static void step(void **state)
{
    const char *file = words[words[3] == NULL ? 2 : 3];
    unsigned number = (unsigned)strtoul(words[2], NULL, 10);
    (void)state;

    if (strcmp(words[1], "write") == 0)
        write_both(number, file);
    else if (strcmp(words[1], "check") == 0)
        check_all(number, file);
    else if (strcmp(words[1], "make") == 0)
        make_complex(file);
    else if (strcmp(words[1], "change") == 0)
        change(number, file);
    else if (strcmp(words[1], "read") == 0)
        read_complex(number, file);
    else
        fail_msg("there is no step '%s'", words[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(step)};
    unsigned version[3];

    if (argc < 3 || H5get_libversion(&version[0], &version[1], &version[2]) < 0)
        return 2;
    printf("HDF5 %u.%u.%u\n", version[0], version[1], version[2]);
    words = argv;
    return test_main(tests, 1, argv, through_begin, through_end);
}
