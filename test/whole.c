#include "whole.h"

#include "differential/compare.h"
#include "through.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

hid_t create_file(const char *name, hid_t fapl)
{
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);

    assert_true(file >= 0);
    return file;
}

void write_numbers(hid_t at, const char *name, hsize_t n, hsize_t chunk, unsigned seed)
{
    hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;
    unsigned *values = malloc(n * sizeof *values);

    for (hsize_t i = 0; i < n; i++)
        values[i] = seed = seed * 1664525u + 1013904223u;
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    dataset = H5Lexists(at, name, H5P_DEFAULT) > 0
                  ? H5Dopen2(at, name, H5P_DEFAULT)
                  : H5Dcreate2(at, name, H5T_STD_U32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0 && H5Dwrite(dataset, H5T_NATIVE_UINT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0);
    free(values);
    H5Pclose(dcpl);
    H5Sclose(space);
}

long long size_of(const char *name)
{
    struct stat about;

    return stat(name, &about) == 0 ? (long long)about.st_size : -1;
}

/* Two groups, or files, opened in whatever way. */
void same_tree(const char *what, reached how, hid_t native, hid_t found)
{
    comparison c = {.how = how, .unfollowed = true, .stack = H5I_INVALID_HID};
    hid_t roots[2] = {H5Gopen2(native, ".", H5P_DEFAULT), H5Gopen2(found, ".", H5P_DEFAULT)};

    assert_true(roots[0] >= 0 && roots[1] >= 0);
    if (!compare_trees(&c, roots[0], roots[1]))
        fail_msg("%s: %.1500s", what, c.why);
    if (c.stack >= 0)
        H5Eclose_stack(c.stack);
    assert_true(H5Gclose(roots[0]) >= 0 && H5Gclose(roots[1]) >= 0);
}

void same_files(const char *what, const char *native, const char *found, hid_t fapl)
{
    bool version = strchr(found, '@') != NULL,
         sec2 = H5Pget_driver(fapl == H5P_DEFAULT ? H5P_FILE_ACCESS_DEFAULT : fapl) ==
                H5FD_SEC2; /* other drivers see virtual ones */
    hid_t files[2] = {H5Fopen(native, H5F_ACC_RDONLY, native_fapl), H5Fopen(found, H5F_ACC_RDONLY, fapl)};

    assert_true(files[0] >= 0 && files[1] >= 0);
    same_tree(what, version ? REACHED_AT : sec2 ? REACHED_HEAD : REACHED_VERSION, files[0], files[1]);
    assert_true(H5Fclose(files[0]) >= 0 && H5Fclose(files[1]) >= 0);
}

hid_t with_degree(H5F_close_degree_t degree, bool native)
{
    hid_t fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);

    assert_true(H5Pset_fclose_degree(fapl, degree) >= 0);
    return fapl;
}
