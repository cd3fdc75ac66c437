/* What waiting for the disk makes of a commit: commits of 1 MiB of new data, by H5Fflush and by closing the file, and in
 * turn with them what the disk itself needs for the same bytes. An ordinary HDF5 program; bench.py starts it.
 *
 * usage: commits FILE N       it prints N lines each, in seconds, the last line is "done 1":
 *
 *   flush S     H5Dwrite of 1 MiB and H5Fflush
 *   close S     H5Fopen, H5Dwrite of 1 MiB, H5Fclose
 *   disk S1 S2  in another file: 1 MiB is appended, fdatasync (S1); 512 bytes are overwritten, fdatasync (S2) */
#include <err.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 1 << 20 };

static uint64_t random_state = 88172645463325252u;
static unsigned char bytes[SIZE];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t must(int64_t value, const char *what)
{
    if (value < 0)
        err(1, "%s failed", what);
    return value;
}
#define MUST(call) must(call, #call)

static void fill(void)
{
    for (size_t i = 0; i < SIZE; i += sizeof random_state) {
        random_state ^= random_state << 13; /* xorshift64 */
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        memcpy(bytes + i, &random_state, sizeof random_state);
    }
}

static void put(hid_t dataset, hsize_t i)
{
    const hsize_t start = i * SIZE, count = SIZE;
    hid_t space = MUST(H5Dget_space(dataset)), mem = H5Screate_simple(1, &count, NULL);

    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
    MUST(H5Dwrite(dataset, H5T_NATIVE_UCHAR, mem, space, H5P_DEFAULT, bytes));
    H5Sclose(mem);
    H5Sclose(space);
}

int main(int argc, char **argv)
{
    const char *name = argc == 3 ? argv[1] : "";
    hsize_t n = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, extent = 2 * n * SIZE, chunk = SIZE;
    hid_t file, space, dcpl, dataset;
    double start, first;
    char *beside;
    int fd;

    if (n == 0)
        errx(2, "usage: commits FILE N");
    if (asprintf(&beside, "%s.disk", name) < 0)
        err(1, "no memory");
    fd = (int)MUST(open(beside, O_RDWR | O_CREAT | O_TRUNC, 0666));
    MUST(pwrite(fd, bytes, 4096, 0));
    file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    space = H5Screate_simple(1, &extent, NULL);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    MUST(H5Pset_chunk(dcpl, 1, &chunk));
    dataset = MUST(H5Dcreate2(file, "x", H5T_NATIVE_UCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pclose(dcpl);
    H5Sclose(space);
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
    for (hsize_t i = 0; i < n; i++) {
        fill();
        start = now();
        MUST(pwrite(fd, bytes, SIZE, (off_t)(4096 + i * SIZE)));
        MUST(fdatasync(fd));
        first = now() - start;
        start = now();
        MUST(pwrite(fd, bytes, 512, 0));
        MUST(fdatasync(fd));
        printf("disk %.9f %.9f\n", first, now() - start);

        file = MUST(H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT));
        dataset = MUST(H5Dopen2(file, "x", H5P_DEFAULT));
        fill();
        start = now();
        put(dataset, 2 * i);
        MUST(H5Fflush(file, H5F_SCOPE_GLOBAL));
        printf("flush %.9f\n", now() - start);
        MUST(H5Dclose(dataset));
        MUST(H5Fclose(file));

        fill();
        start = now();
        file = MUST(H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT));
        dataset = MUST(H5Dopen2(file, "x", H5P_DEFAULT));
        put(dataset, 2 * i + 1);
        MUST(H5Dclose(dataset));
        MUST(H5Fclose(file));
        printf("close %.9f\n", now() - start);
    }
    close(fd);
    unlink(beside);
    free(beside);
    puts("done 1");
    return 0;
}
