/* What the elements of a call cost on their way: strings, single elements, rows, members of a compound. Public HDF5 calls only;
 * paths.py runs it natively and with a plugin in turn.
 *
 *   paths WORK FILE
 *
 * Prints a line for each step: its name, its wall time, and its processor time of all threads, in nanoseconds. */
#include <hdf5.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(long answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "paths: %s failed\n", what);
        exit(1);
    }
}

/* ---- time ---- */

static long long wall_before, cpu_before;

static long long wall(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long cpu(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void begin(void)
{
    wall_before = wall();
    cpu_before = cpu();
}

static void end(const char *step)
{
    printf("%s\t%lld\t%lld\n", step, wall() - wall_before, cpu() - cpu_before);
}

/* ---- files ---- */

static hid_t latest(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    check(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "H5Pset_libver_bounds");
    return fapl;
}

static hid_t create(const char *path)
{
    hid_t fapl = latest(), file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);

    check(file, "H5Fcreate");
    H5Pclose(fapl);
    return file;
}

static hid_t reopen(const char *path, unsigned flags)
{
    hid_t fapl = latest(), file = H5Fopen(path, flags, fapl);

    check(file, "H5Fopen");
    H5Pclose(fapl);
    return file;
}

static hid_t dataset(hid_t file, hid_t type, unsigned rank, const hsize_t dims[], const hsize_t maximum[],
                     const hsize_t chunk[])
{
    hid_t space = H5Screate_simple((int)rank, dims, maximum), dcpl = H5Pcreate(H5P_DATASET_CREATE), made;

    check(H5Pset_chunk(dcpl, (int)rank, chunk), "H5Pset_chunk");
    check(made = H5Dcreate2(file, "x", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), "H5Dcreate2");
    H5Pclose(dcpl);
    H5Sclose(space);
    return made;
}

/* ---- strings ---- */

#define STRINGS 300000
#define CHUNK   10000

static hid_t string_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    check(H5Tset_size(type, H5T_VARIABLE), "H5Tset_size");
    return type;
}

static void append(hid_t x, hid_t type, hsize_t *size, hsize_t n, char **values)
{
    hsize_t start = *size, all = start + n;
    hid_t space, memory = H5Screate_simple(1, &n, NULL);

    check(H5Dset_extent(x, &all), "H5Dset_extent");
    check(space = H5Dget_space(x), "H5Dget_space");
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &n, NULL), "H5Sselect_hyperslab");
    check(H5Dwrite(x, type, memory, space, H5P_DEFAULT, values), "H5Dwrite");
    H5Sclose(space);
    H5Sclose(memory);
    *size = all;
}

static void read_all(hid_t x, hid_t type, hsize_t from, hsize_t n, hsize_t step, char **values)
{
    hid_t space, memory;

    check(space = H5Dget_space(x), "H5Dget_space");
    for (hsize_t at = from; at < n; at += step) {
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &step, NULL), "H5Sselect_hyperslab");
        memory = H5Screate_simple(1, &step, NULL);
        check(H5Dread(x, type, memory, space, H5P_DEFAULT, values), "H5Dread");
        for (hsize_t i = 0; i < step; i++)
            H5free_memory(values[i]);
        H5Sclose(memory);
    }
    H5Sclose(space);
}

static void strings(const char *path)
{
    hid_t type = string_type(), file, x;
    hsize_t size = STRINGS, chunk = CHUNK, maximum = H5S_UNLIMITED;
    char **values = malloc(STRINGS * sizeof *values), *room = malloc(STRINGS * 16);

    for (int i = 0; i < STRINGS; i++) {
        values[i] = room + i * 16;
        snprintf(values[i], 16, "value %d", i % 1000000);
    }
    begin();
    file = create(path);
    x = dataset(file, type, 1, &size, &maximum, &chunk);
    check(H5Dwrite(x, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dwrite");
    H5Dclose(x);
    H5Fclose(file);
    end("strings, write");

    char **back = malloc(STRINGS * sizeof *back);
    begin();
    file = reopen(path, H5F_ACC_RDONLY);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    read_all(x, type, 0, STRINGS, STRINGS, back);
    H5Dclose(x);
    H5Fclose(file);
    end("strings, read");
    begin();
    file = reopen(path, H5F_ACC_RDONLY);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    read_all(x, type, 0, STRINGS, 1000, back);
    H5Dclose(x);
    H5Fclose(file);
    end("strings, read 1,000 at a time");
    free(back);

    begin();
    for (int i = 0; i < 10; i++) {
        file = reopen(path, H5F_ACC_RDWR);
        check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
        append(x, type, &size, 100, values);
        H5Dclose(x);
        H5Fclose(file);
    }
    end("strings, 10 times: open, append 100, close");
    begin();
    file = reopen(path, H5F_ACC_RDWR);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    for (int i = 0; i < 100; i++)
        append(x, type, &size, 1000, values);
    H5Dclose(x);
    H5Fclose(file);
    end("strings, append 1,000 100 times");
    free(room);
    free(values);
    H5Tclose(type);
}

/* ---- a little at a time ---- */

static void singles(const char *path)
{
    enum { N = 50000 };
    const hsize_t n = N, chunk = 1000, one = 1;
    hid_t file = create(path), x = dataset(file, H5T_NATIVE_DOUBLE, 1, &n, NULL, &chunk), space = H5Dget_space(x),
          memory = H5Screate_simple(1, &one, NULL);
    const hsize_t first = 0;
    double value = 0;

    begin();
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &one, NULL), "H5Sselect_hyperslab");
    check(H5Dwrite(x, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value), "H5Dwrite");
    end("single elements, the first");
    begin();
    for (hsize_t i = 0; i < N; i++) {
        value = (double)i;
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &i, NULL, &one, NULL), "H5Sselect_hyperslab");
        check(H5Dwrite(x, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value), "H5Dwrite");
    }
    end("single elements, write");
    begin();
    for (hsize_t i = 0; i < N; i++) {
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &i, NULL, &one, NULL), "H5Sselect_hyperslab");
        check(H5Dread(x, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value), "H5Dread");
    }
    end("single elements, read");
    /* as h5py does it: with a list of its own */
    hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);
    begin();
    for (hsize_t i = 0; i < N; i++) {
        value = (double)i;
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &i, NULL, &one, NULL), "H5Sselect_hyperslab");
        check(H5Dwrite(x, H5T_NATIVE_DOUBLE, memory, space, dxpl, &value), "H5Dwrite");
    }
    end("single elements, write with a list of properties");
    H5Pclose(dxpl);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(x);
    H5Fclose(file);
}

static void rows(const char *path)
{
    enum { ROWS = 4000, WIDTH = 1000 };
    const hsize_t dims[] = {ROWS, WIDTH}, chunk[] = {100, 100}, one[] = {1, WIDTH}, width = WIDTH;
    double row[WIDTH];

    for (int i = 0; i < WIDTH; i++)
        row[i] = i * 1.37;
    begin();
    hid_t file = create(path), x = dataset(file, H5T_NATIVE_DOUBLE, 2, dims, NULL, chunk), space = H5Dget_space(x),
          memory = H5Screate_simple(1, &width, NULL);
    for (hsize_t i = 0; i < ROWS; i++) {
        const hsize_t at[] = {i, 0};

        row[i % WIDTH] += (double)i;
        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL), "H5Sselect_hyperslab");
        check(H5Dwrite(x, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row), "H5Dwrite");
    }
    end("rows, write");
    H5Dclose(x);
    H5Fclose(file);
    end("rows, write and close");
    begin();
    file = reopen(path, H5F_ACC_RDONLY);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    for (hsize_t i = 0; i < ROWS; i++) {
        const hsize_t at[] = {i, 0};

        check(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL), "H5Sselect_hyperslab");
        check(H5Dread(x, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, row), "H5Dread");
    }
    H5Dclose(x);
    H5Fclose(file);
    end("rows, read");
    H5Sclose(memory);
    H5Sclose(space);
}

static void fields(const char *path)
{
    enum { N = 1000000 };
    struct all {
        int a;
        double b;
        short c;
    } *values = calloc(N, sizeof *values);
    const hsize_t n = N, chunk = 10000;
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof *values), packed, member = H5Tcreate(H5T_COMPOUND, sizeof(double));
    double *some = malloc(N * sizeof *some);

    check(H5Tinsert(type, "a", offsetof(struct all, a), H5T_NATIVE_INT), "H5Tinsert");
    check(H5Tinsert(type, "b", offsetof(struct all, b), H5T_NATIVE_DOUBLE), "H5Tinsert");
    check(H5Tinsert(type, "c", offsetof(struct all, c), H5T_NATIVE_SHORT), "H5Tinsert");
    check(H5Tinsert(member, "b", 0, H5T_NATIVE_DOUBLE), "H5Tinsert");
    packed = H5Tcopy(type);
    H5Tpack(packed);
    for (int i = 0; i < N; i++)
        values[i] = (struct all){i, i * 0.5, (short)i};
    begin();
    hid_t file = create(path), x = dataset(file, packed, 1, &n, NULL, &chunk);
    check(H5Dwrite(x, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dwrite");
    H5Dclose(x);
    H5Fclose(file);
    end("compound, write");
    begin();
    file = reopen(path, H5F_ACC_RDONLY);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    check(H5Dread(x, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "H5Dread");
    H5Dclose(x);
    H5Fclose(file);
    end("compound, read");
    begin();
    file = reopen(path, H5F_ACC_RDONLY);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    check(H5Dread(x, member, H5S_ALL, H5S_ALL, H5P_DEFAULT, some), "H5Dread");
    H5Dclose(x);
    H5Fclose(file);
    end("compound, read a member");
    begin();
    file = reopen(path, H5F_ACC_RDWR);
    check(x = H5Dopen2(file, "x", H5P_DEFAULT), "H5Dopen2");
    for (int i = 0; i < N; i++)
        some[i] += 1;
    check(H5Dwrite(x, member, H5S_ALL, H5S_ALL, H5P_DEFAULT, some), "H5Dwrite");
    H5Dclose(x);
    H5Fclose(file);
    end("compound, write a member");
    free(some);
    free(values);
    H5Tclose(member);
    H5Tclose(packed);
    H5Tclose(type);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*work)(const char *path);
    } all[] = {{"strings", strings}, {"singles", singles}, {"rows", rows}, {"fields", fields}};

    for (size_t i = 0; argc == 3 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            all[i].work(argv[2]);
            return 0;
        }
    fprintf(stderr, "usage: paths strings|singles|rows|fields FILE\n");
    return 1;
}
