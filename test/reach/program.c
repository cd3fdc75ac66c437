/* A program of test/reach.py, which says what it must do: with HDF5's C interface. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 100, COLUMNS = 1000 };

/* Row N of the dataset becomes N + 1. */
static void put(hid_t file, int n)
{
    const hsize_t all[] = {ROWS, COLUMNS}, row[] = {1, COLUMNS}, start[] = {(hsize_t)n, 0};
    static int values[COLUMNS];
    if (H5Lexists(file, "d", H5P_DEFAULT) <= 0) {
        hid_t space = H5Screate_simple(2, all, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(how, 2, row);
        H5Dclose(H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, how, H5P_DEFAULT));
        H5Pclose(how);
        H5Sclose(space);
    }
    for (int i = 0; i < COLUMNS; i++)
        values[i] = n + 1;
    hid_t set = H5Dopen2(file, "d", H5P_DEFAULT), space = H5Dget_space(set), memory = H5Screate_simple(2, row, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, row, NULL);
    if (H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) < 0)
        exit(1);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
}

static void show(hid_t file)
{
    static int values[ROWS][COLUMNS];
    hid_t set = H5Dopen2(file, "d", H5P_DEFAULT);
    if (H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        exit(1);
    H5Dclose(set);
    for (int i = 0; i < ROWS && values[i][0] != 0; i++)
        printf("%d ", values[i][COLUMNS - 1]);
}

int main(int argc, char **argv)
{
    const char *word = argc > 2 ? argv[2] : "";
    char name[100];
    snprintf(name, sizeof name, "c.h5%s", argv[1][0] == 'r' ? word : "");
    hid_t file = argv[1][0] == 'r'         ? H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)
                 : access(name, F_OK) == 0 ? H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT)
                                           : H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        return 1;
    if (strcmp(argv[1], "write") == 0)
        put(file, atoi(word));
    else if (strcmp(argv[1], "read") == 0)
        show(file);
    else {
        put(file, 3);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        put(file, 4);
        puts("ready");
        fflush(stdout);
        sleep(600);
    }
    return H5Fclose(file) < 0;
}
