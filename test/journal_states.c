/* States of a file. Contract: journal_states.h. */
#include "journal_states.h"

#include "journal/driver.h"

#include <stdio.h>

void state_without_plugins(void)
{
    unsigned paths;

    while (H5PLsize(&paths) >= 0 && paths > 0 && H5PLremove(0) >= 0)
        continue;
}

hid_t state_fapl(const cow_journal_options *options)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V114);
    H5Pset_meta_block_size(fapl, 512);
    if (options != NULL && cow_journal_driver_set(fapl, options) < 0) {
        H5Pclose(fapl);
        return -1;
    }
    return fapl;
}

static int fill(hid_t file, const char *name, hsize_t count, hsize_t chunk, int v)
{
    const hsize_t unlimited = H5S_UNLIMITED;
    static int values[20000];
    int status = -1;
    hid_t set = -1, space = -1, dcpl = -1;

    for (hsize_t i = 0; i < count; i++)
        values[i] = v;
    if (v == 1) {
        space = H5Screate_simple(1, &count, &unlimited);
        dcpl = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(dcpl, 1, &chunk);
        set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    } else {
        set = H5Dopen2(file, name, H5P_DEFAULT);
        if (set >= 0 && H5Dset_extent(set, &count) < 0)
            goto done;
    }
    if (set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0)
        status = 0;
done:
    if (set >= 0 && H5Dclose(set) < 0)
        status = -1;
    if (space >= 0)
        H5Sclose(space);
    if (dcpl >= 0)
        H5Pclose(dcpl);
    return status;
}

int state_write(hid_t file, int v)
{
    char name[32];
    hid_t group;

    if (fill(file, "x", 200, 50, v) < 0 || fill(file, "grow", 100 * (hsize_t)v, 100, v) < 0)
        return -1;
    snprintf(name, sizeof name, "g%d", v);
    if ((group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) < 0 || H5Gclose(group) < 0)
        return -1;
    if (v % 2 == 0)
        return H5Ldelete(file, "gone", H5P_DEFAULT) < 0 ? -1 : 0;
    if ((group = H5Gcreate2(file, "gone", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) < 0 || H5Gclose(group) < 0)
        return -1;
    return 0;
}

/* The value that all COUNT elements have; -1. */
static int value_of(hid_t file, const char *name, hsize_t *count)
{
    static int values[20000];
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set);
    int value = -1;

    *count = 0;
    if (space >= 0 && H5Sget_simple_extent_dims(space, count, NULL) == 1 && *count > 0 && *count <= 20000 &&
        H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) {
        value = values[0];
        for (hsize_t i = 0; i < *count; i++)
            if (values[i] != value)
                value = -1;
    }
    if (space >= 0)
        H5Sclose(space);
    if (set >= 0)
        H5Dclose(set);
    return value;
}

int state_of(hid_t file)
{
    hsize_t count;
    char name[32];
    int v;
    H5G_info_t info;

    if (H5Gget_info(file, &info) < 0)
        return STATE_TORN;
    if (info.nlinks == 0)
        return 0;
    if ((v = value_of(file, "x", &count)) < 1 || count != 200 || value_of(file, "grow", &count) != v ||
        count != 100 * (hsize_t)v || info.nlinks != (hsize_t)(2 + v + v % 2) ||
        (H5Lexists(file, "gone", H5P_DEFAULT) > 0) != (v % 2 == 1))
        return STATE_TORN;
    for (int i = 1; i <= v; i++) {
        hid_t group;

        snprintf(name, sizeof name, "g%d", i);
        if ((group = H5Gopen2(file, name, H5P_DEFAULT)) < 0)
            return STATE_TORN;
        H5Gclose(group);
    }
    return v;
}

int state_of_path(const char *path, hid_t fapl)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    int state;

    if (file < 0)
        return STATE_REFUSED;
    state = state_of(file);
    H5Fclose(file);
    return state;
}
