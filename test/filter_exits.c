/* A program whose filter ends it: for test_filter_exits.py. filter_exits write FILE MOMENT TIMES KIND: the filter calls exit for the first TIMES
 * chunks that it is to encode (KIND 'e'; to decode: 'r') from that MOMENT on, or refuses them ('f'). filter_exits read FILE: prints what there is. As a library it is a
 * plugin with that filter, which ends nothing. */
#include <H5PLextern.h>
#include <hdf5.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILTER   32701
#define ELEMENTS 10000
#define CHUNK    1000

static int exits;        /* so often */
static unsigned reverse; /* H5Z_FLAG_REVERSE: where it decodes */
static int refuses;      /* it does not exit, but refuses the chunk */

static size_t filter(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room, void **buffer)
{
    unsigned char *p = *buffer;

    (void)count;
    (void)values;
    (void)room;
    if (exits > 0 && (flags & H5Z_FLAG_REVERSE) == reverse) {
        exits--;
        if (refuses)
            return 0;
        exit(7);
    }
    for (size_t i = 0; i < bytes; i++)
        p[i] ^= 0x55;
    return bytes;
}

static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, FILTER, 1, 1, "exits", NULL, NULL, filter};

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
    return &class;
}

static void put(hid_t dataset, int factor, hsize_t from, hsize_t count)
{
    hid_t file = H5Dget_space(dataset), memory = H5Screate_simple(1, &count, NULL);
    int *values = malloc(count * sizeof *values);

    for (hsize_t i = 0; values != NULL && i < count; i++)
        values[i] = (int)(from + i) * factor;
    H5Sselect_hyperslab(file, H5S_SELECT_SET, &from, NULL, &count, NULL);
    H5Dwrite(dataset, H5T_NATIVE_INT, memory, file, H5P_DEFAULT, values);
    free(values);
    H5Sclose(memory);
    H5Sclose(file);
}

static hid_t dataset_of(hid_t file, const char *name, hsize_t size, int filtered)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &size, NULL), dataset;
    hsize_t chunk = CHUNK;

    if (size > CHUNK)
        H5Pset_chunk(dcpl, 1, &chunk);
    if (filtered)
        H5Pset_filter(dcpl, FILTER, 0, 0, NULL);
    dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    put(dataset, 3, 0, size);
    H5Sclose(space);
    H5Pclose(dcpl);
    return dataset;
}

static int write_file(const char *path, const char *moment)
{
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), scalar = H5Screate(H5S_SCALAR), x, y, z,
          small, dapl = H5Pcreate(H5P_DATASET_ACCESS);
    const int often = exits;

    exits = 0;
    if (strcmp(moment, "write") == 0)
        H5Pset_chunk_cache(dapl, 7, (size_t)CHUNK * 8, 1);
    H5Dclose(dataset_of(file, "y", ELEMENTS, 0));
    H5Dclose(dataset_of(file, "z", ELEMENTS, 1));
    H5Dclose(dataset_of(file, "small", 10, 0));
    H5Dclose(dataset_of(file, "x", ELEMENTS, 1));
    H5Fclose(file);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    x = H5Dopen2(file, "x", dapl);
    y = H5Dopen2(file, "y", H5P_DEFAULT);
    z = H5Dopen2(file, "z", H5P_DEFAULT);
    small = H5Dopen2(file, "small", H5P_DEFAULT);
    put(y, 5, 0, ELEMENTS);
    put(small, 5, 0, 10);
    put(z, 5, 0, ELEMENTS);
    H5Gclose(H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Aclose(H5Acreate2(file, "attribute", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT));
    if (strcmp(moment, "write") == 0)
        exits = often;
    if (strcmp(moment, "part") == 0) {
        exits = often;
        put(x, 5, 10, 2 * CHUNK); /* chunks of which a part stays are decoded */
    } else
        put(x, 5, 0, 3 * CHUNK);
    exits = often;
    if (strcmp(moment, "H5Dflush") == 0)
        H5Dflush(x);
    if (strcmp(moment, "H5Fflush") == 0)
        H5Fflush(file, H5F_SCOPE_GLOBAL);
    if (strcmp(moment, "end") == 0)
        return 0;
    H5Dclose(x);
    H5Dclose(y);
    H5Dclose(z);
    if (strcmp(moment, "H5Fclose") == 0)
        H5Dclose(small);
    H5Fclose(file);
    if (strcmp(moment, "H5Fclose") != 0)
        H5Dclose(small);
    H5Sclose(scalar);
    return 0;
}

static void count(hid_t file, const char *name)
{
    static int values[ELEMENTS];
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    int size = (int)H5Sget_simple_extent_npoints(space), former = 0, new = 0;

    if (H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0)
        for (int i = 1; i < size; i++) {
            former += values[i] == 3 * i;
            new += values[i] == 5 * i;
        }
    printf("\"%s\": [%d, %d], ", name, former, new);
    H5Sclose(space);
    H5Dclose(dataset);
}

int main(int argc, char **argv)
{
    hid_t file;

    if (argc < 3 || H5Zregister(&class) < 0)
        return 2;
    if (argc == 6) {
        exits = atoi(argv[4]);
        refuses = *argv[5] == 'f';
        reverse = *argv[5] == 'r' ? H5Z_FLAG_REVERSE : 0;
        return write_file(argv[2], argv[3]);
    }
    if ((file = H5Fopen(argv[2], H5F_ACC_RDONLY, H5P_DEFAULT)) < 0)
        return 2;
    printf("{");
    count(file, "x");
    count(file, "y");
    count(file, "z");
    count(file, "small");
    printf("\"group\": %d, \"attribute\": %d}\n", H5Lexists(file, "group", H5P_DEFAULT) > 0,
           H5Aexists(file, "attribute") > 0);
    H5Fclose(file);
    return 0;
}
