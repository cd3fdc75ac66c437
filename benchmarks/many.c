/* Many small objects: what each of them costs, besides its elements. many.py runs it natively and through the connector.
 *
 *   many make FILE N          before the others: /sources with N datasets of 4 chunks, an empty dataset "object"
 *   many copy FILE N          H5Ocopy of /sources within the file
 *   many copy-here FILE N     of each dataset by a call of its own
 *   many create FILE N        N new datasets of 4 chunks, written and closed one after the other
 *   many attributes FILE N    N attributes on "object"
 *
 * Prints the seconds from opening the file to having closed it, and those of processor time. */
#include <hdf5.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ELEMENTS 512 /* of 4 bytes, in chunks of a quarter: more than h5cow leaves to HDF5 */

static void check(long long answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "many: %s failed\n", what);
        exit(1);
    }
}

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* No two have a chunk in common, also those of another GROUP. */
static void make_datasets(hid_t file, const char *group, int n)
{
    hsize_t size = ELEMENTS, most = H5S_UNLIMITED, chunk = ELEMENTS / 4;
    hid_t in = H5Gcreate2(file, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), space = H5Screate_simple(1, &size, &most),
          dcpl = H5Pcreate(H5P_DATASET_CREATE);
    int values[ELEMENTS];

    check(in, "H5Gcreate2");
    check(H5Pset_chunk(dcpl, 1, &chunk), "H5Pset_chunk");
    for (int i = 0; i < n; i++) {
        char name[20];
        hid_t set;

        snprintf(name, sizeof name, "d%d", i);
        for (int k = 0; k < ELEMENTS; k++)
            values[k] = i * ELEMENTS + k + group[1] * 100000000;
        set = H5Dcreate2(in, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        check(set, "H5Dcreate2");
        check(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dwrite");
        check(H5Dclose(set), "H5Dclose");
    }
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Gclose(in);
}

static void make_attributes(hid_t object, int n)
{
    hid_t scalar = H5Screate(H5S_SCALAR);

    for (int i = 0; i < n; i++) {
        char name[20];
        hid_t attribute;

        snprintf(name, sizeof name, "a%d", i);
        attribute = H5Acreate2(object, name, H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
        check(attribute, "H5Acreate2");
        check(H5Awrite(attribute, H5T_NATIVE_INT, &i), "H5Awrite");
        check(H5Aclose(attribute), "H5Aclose");
    }
    H5Sclose(scalar);
}

static void copy_each(hid_t file, int n)
{
    hid_t from = H5Gopen2(file, "sources", H5P_DEFAULT),
          to = H5Gcreate2(file, "copies", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    for (int i = 0; i < n; i++) {
        char name[20];

        snprintf(name, sizeof name, "d%d", i);
        check(H5Ocopy(from, name, to, name, H5P_DEFAULT, H5P_DEFAULT), "H5Ocopy");
    }
    H5Gclose(to);
    H5Gclose(from);
}

static void make(const char *path, int n)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, object;
    hsize_t one = 1;

    /* a file with history has these bounds at least: attributes and headers are kept alike */
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_LATEST);
    check(file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), "H5Fcreate");
    make_datasets(file, "sources", n);
    object = H5Dcreate2(file, "object", H5T_NATIVE_INT, H5Screate_simple(1, &one, NULL), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    check(object, "H5Dcreate2");
    check(H5Dclose(object), "H5Dclose");
    check(H5Fclose(file), "H5Fclose");
}

int main(int count, char **words)
{
    const char *work = count == 4 ? words[1] : "";
    double began = now(CLOCK_MONOTONIC), worked = now(CLOCK_PROCESS_CPUTIME_ID);
    hid_t file, fapl, object;
    int n = count == 4 ? atoi(words[3]) : 0;

    if (n < 1) {
        fprintf(stderr, "usage: many make|copy|copy-here|create|attributes FILE N\n");
        return 2;
    }
    if (strcmp(work, "make") == 0)
        make(words[2], n);
    else {
        fapl = H5Pcreate(H5P_FILE_ACCESS);
        H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_LATEST);
        check(file = H5Fopen(words[2], H5F_ACC_RDWR, fapl), "H5Fopen");
        if (strcmp(work, "copy") == 0)
            check(H5Ocopy(file, "sources", file, "copies", H5P_DEFAULT, H5P_DEFAULT), "H5Ocopy");
        else if (strcmp(work, "copy-here") == 0)
            copy_each(file, n);
        else if (strcmp(work, "create") == 0)
            make_datasets(file, "new", n);
        else {
            check(object = H5Dopen2(file, "object", H5P_DEFAULT), "H5Dopen2");
            make_attributes(object, n);
            check(H5Dclose(object), "H5Dclose");
        }
        check(H5Fclose(file), "H5Fclose");
    }
    printf("%.6f %.6f\n", now(CLOCK_MONOTONIC) - began, now(CLOCK_PROCESS_CPUTIME_ID) - worked);
    return 0;
}
