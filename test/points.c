/* Every state that is committed on the disk is whole: the head is what its newest version says. Not half a transaction
 * with a history that comes later.
 *
 * A program writes through the connector; at each sync and each close of the file a copy of it is kept. The copies are
 * then read through the connector, as after a power cut at that moment: head and newest version must have the same
 * objects, attributes and elements. Run through the connector (HDF5_VOL_CONNECTOR=h5cow).
 */
#include "files.h"
#include "harness.h"

#include <hdf5.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POINTS_MAX 400

static char folder[64], path[sizeof folder + 16];
static unsigned points;

static void point(void)
{
    char name[sizeof path + 16];
    struct stat about;

    if (points == POINTS_MAX || stat(path, &about) < 0 || about.st_size == 0)
        return;
    snprintf(name, sizeof name, "%s.%u", path, points++);
    assert_true(copy_file(path, name));
}

/* Stands in front of the system's, for the connector as well. */
int fdatasync(int fd)
{
    point();
    return (int)syscall(SYS_fdatasync, fd);
}

/* ---- what is written ---- */

static void write_values(hid_t file, const char *name, hsize_t count, const hsize_t *chunk, int value)
{
    static int values[4000];
    const hsize_t unlimited = H5S_UNLIMITED;
    hid_t set, space;

    for (hsize_t i = 0; i < count; i++)
        values[i] = value + (int)i;
    if (H5Lexists(file, name, H5P_DEFAULT) > 0) {
        set = H5Dopen2(file, name, H5P_DEFAULT);
        if (chunk != NULL)
            assert_true(H5Dset_extent(set, &count) >= 0);
    } else {
        hid_t list = H5Pcreate(H5P_DATASET_CREATE);
        if (chunk != NULL)
            H5Pset_chunk(list, 1, chunk);
        space = H5Screate_simple(1, &count, chunk == NULL ? NULL : &unlimited);
        set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, list, H5P_DEFAULT);
        H5Sclose(space);
        H5Pclose(list);
    }
    assert_true(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
}

static void write_state(hid_t file, int v)
{
    const hsize_t chunk = 64;
    char name[32];
    hid_t group, attribute, space = H5Screate(H5S_SCALAR);

    write_values(file, "large", 1000 + 100 * (hsize_t)v, &chunk, v);
    write_values(file, "fixed", 3000, NULL, 7 * v);
    write_values(file, "tiny", 10, NULL, 3 * v);
    snprintf(name, sizeof name, "group%d", v);
    group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    attribute = H5Acreate2(group, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT, &v) >= 0);
    H5Aclose(attribute);
    H5Gclose(group);
    H5Sclose(space);
}

static void write_all(void)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(file >= 0);
    write_state(file, 1);
    assert_true(H5Fclose(file) >= 0);
    point();
    for (int v = 2; v <= 9; v++) {
        file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(file >= 0);
        write_state(file, v);
        if (v % 3 == 0) {
            assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
            point();
            write_values(file, "fixed", 3000, NULL, 100 * v);
        }
        assert_true(H5Fclose(file) >= 0);
        point();
    }
}

/* ---- what is read ---- */

static void add(uint64_t *sum, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *sum = (*sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static herr_t read_object(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    static int values[4000];
    uint64_t *sum = context;

    add(sum, name, strlen(name));
    add(sum, &info->num_attrs, sizeof info->num_attrs);
    if (info->type == H5O_TYPE_DATASET) {
        hid_t set = H5Dopen2(root, name, H5P_DEFAULT), space = H5Dget_space(set);
        hssize_t count = H5Sget_simple_extent_npoints(space);
        if (count < 0 || count > 4000 || H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
            return -1;
        add(sum, values, (size_t)count * sizeof *values);
        H5Sclose(space);
        H5Dclose(set);
    }
    return 0;
}

/* 0: there is no such file or version. */
static uint64_t read_all(const char *name)
{
    hid_t file;
    uint64_t sum = 1;

    H5E_BEGIN_TRY
    {
        file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
        if (file < 0 || H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, read_object, &sum, H5O_INFO_ALL) < 0)
            sum = 0;
        if (file >= 0)
            H5Fclose(file);
    }
    H5E_END_TRY
    return sum;
}

static void test_head_and_newest_version_are_one_at_every_point(void **state)
{
    unsigned states = 0, wrong = 0, newest = 0;
    (void)state;

    snprintf(folder, sizeof folder, "%s/h5cow-points-XXXXXX", memory_folder());
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.h5", folder);
    write_all();
    for (unsigned p = 0; p < points; p++) {
        char name[sizeof path + 16], version[sizeof name + 16];
        uint64_t head, last = 0;
        unsigned v;

        snprintf(name, sizeof name, "%s.%u", path, p);
        head = read_all(name);
        for (v = newest + 1; v > 0 && last == 0; v--) {
            snprintf(version, sizeof version, "%s@%u", name, v);
            last = read_all(version);
        }
        if (last != 0 && v + 1 > newest)
            newest = v + 1;
        states += head != 0;
        if (head != last || (head == 0 && newest > 0)) {
            fprintf(stderr, "points: wrong at point %u: the head %s its newest version, %u\n", p,
                    head == 0 ? "cannot be read, unlike" : "is not", v + 1);
            wrong++;
        }
        unlink(name);
    }
    unlink(path);
    rmdir(folder);
    printf("%u points, %u with a state, %u versions, %u wrong\n", points, states, newest, wrong);
    assert_int_equal(wrong, 0);
    assert_int_equal(newest, 9);
    assert_true(states >= 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_head_and_newest_version_are_one_at_every_point)};

    return test_main(tests, argc, argv, NULL, NULL);
}
