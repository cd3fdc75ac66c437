/* Work for the connector's threads, for ThreadSanitizer: public HDF5 calls through the connector, enough chunks at once
 * that they are hashed, encoded and decoded by several threads. Errors of worker threads: test_workers.c. */
#include "harness.h"

#include <hdf5.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROWS  96
#define WIDTH 8192 /* elements of a row, which is a chunk of 32 KiB */

static int32_t data[ROWS][WIDTH], got[ROWS][WIDTH];

static int32_t value(int version, unsigned row, unsigned column)
{
    return (int32_t)(row * 7919 + column / 5 + (row % 3 == 0 ? (unsigned)version * 1000 : 0));
}

static void write_version(hid_t set, int version)
{
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned column = 0; column < WIDTH; column++)
            data[row][column] = value(version, row, column);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
}

static void check_version(const char *name, int version)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT), set = H5Dopen2(file, "d", H5P_DEFAULT);

    assert_true(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned column = 0; column < WIDTH; column++)
            assert_true(got[row][column] == value(version, row, column));
    assert_true(H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
}

static void test_versions_written_and_read_by_several_threads(void **state)
{
    const hsize_t extent[] = {ROWS, WIDTH}, chunk[] = {1, WIDTH};
    char name[64], version[80];
    hid_t file, space, dcpl, set;
    (void)state;

    snprintf(name, sizeof name, "threads-%ld.h5", (long)getpid());
    space = H5Screate_simple(2, extent, NULL);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    assert_true(H5Pset_chunk(dcpl, 2, chunk) >= 0);
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    set = H5Dcreate2(file, "d", H5T_NATIVE_INT32, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    write_version(set, 1);
    assert_true(H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
    for (int i = 2; i <= 3; i++) {
        file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT);
        set = H5Dopen2(file, "d", H5P_DEFAULT);
        write_version(set, i);
        assert_true(H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
    }
    check_version(name, 3);
    for (int i = 1; i <= 3; i++) {
        snprintf(version, sizeof version, "%s@%d", name, i);
        check_version(version, i);
    }
    H5Pclose(dcpl);
    H5Sclose(space);
    unlink(name);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_versions_written_and_read_by_several_threads)};

    return test_main(tests, argc, argv, NULL, NULL);
}
