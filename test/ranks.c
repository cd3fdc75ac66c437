/* A program for many processes, which knows nothing of versions: test_mpi.py compiles it for each MPI.
 *
 *   ranks create FILE        new file through MPI-IO, written by all; -1 where HDF5 says no
 *   ranks exclusive FILE     the same, where none may be
 *   ranks change FILE        the same file once more, opened for writing
 *   ranks read FILE          through MPI-IO; FILE may be FILE@REVISION
 *   ranks together FILE      the same, with metadata and data read by all processes together
 *   ranks first FILE         metadata are read by all together, and data by process 0 alone
 *   ranks serial FILE        each process a file of its own, FILE.0 ..., three times, without MPI-IO
 *   ranks root FILE          process 0 alone, three times
 *   ranks missing FILE       change, where FILE does not exist for process 1, which calls it otherwise
 *
 * Each process prints one line, "RANK ANSWER" and what it has read. A call that fails for one process only leaves the others
 * waiting: who starts this gives it a time to end. */
#include <hdf5.h>
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 64

static int rank, ranks;
static int together, first;

static hid_t parallel_list(void)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL);
    if (together || first)
        H5Pset_all_coll_metadata_ops(list, 1);
    return list;
}

/* All rows of this process, in a dataset without chunks and one with a filter, which needs collective writes. */
static int write_rows(hid_t file, int add, int how)
{
    const char *const names[] = {"plain", "packed"};
    hsize_t dims[] = {(hsize_t)(ranks * ROWS), 16}, chunk[] = {ROWS / 2, 16};
    hsize_t start[] = {(hsize_t)(rank * ROWS), 0}, count[] = {ROWS, 16};
    int *values = malloc(ROWS * 16 * sizeof *values), status = 0;
    hid_t collective = H5Pcreate(H5P_DATASET_XFER);

    for (int i = 0; i < ROWS * 16; i++)
        values[i] = add + rank * ROWS * 16 + i;
    if (how != 0)
        H5Pset_dxpl_mpio(collective, H5FD_MPIO_COLLECTIVE);
    for (int i = 0; i < 2; i++) {
        hid_t space = H5Screate_simple(2, dims, NULL), memory = H5Screate_simple(2, count, NULL);
        hid_t create = H5Pcreate(H5P_DATASET_CREATE), transfer = i == 1 || how == 2 ? collective : H5P_DEFAULT;
        hid_t dataset;
        if (i == 1) {
            H5Pset_chunk(create, 2, chunk);
            H5Pset_deflate(create, 1);
        }
        dataset = H5Lexists(file, names[i], 0) > 0 ? H5Dopen2(file, names[i], 0)
                                                   : H5Dcreate2(file, names[i], H5T_NATIVE_INT, space, 0, create, 0);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if (dataset < 0 || H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, transfer, values) < 0)
            status = -1;
        H5Dclose(dataset);
        H5Pclose(create);
        H5Sclose(memory);
        H5Sclose(space);
    }
    H5Pclose(collective);
    free(values);
    return status;
}

/* The sum of this process's rows in both; attributes and links of all processes are read by each. */
static long long read_rows(hid_t file)
{
    const char *const names[] = {"plain", "packed"};
    hsize_t start[] = {(hsize_t)(rank * ROWS), 0}, count[] = {ROWS, 16};
    int *values = calloc(ROWS * 16, sizeof *values);
    hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
    long long sum = 0;

    if (together)
        H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);

    for (int i = 0; i < 2; i++) {
        hid_t dataset = H5Dopen2(file, names[i], 0), space = H5Dget_space(dataset),
              memory = H5Screate_simple(2, count, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        if ((!first || rank == 0) && H5Dread(dataset, H5T_NATIVE_INT, memory, space, transfer, values) < 0)
            sum = -1000000000;
        for (int j = 0; j < ROWS * 16; j++)
            sum += values[j];
        H5Sclose(memory);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    H5Pclose(transfer);
    free(values);
    return sum;
}

static hid_t open_file(const char *what, const char *name)
{
    hid_t list = parallel_list(), file;

    if (strcmp(what, "create") == 0)
        file = H5Fcreate(name, H5F_ACC_TRUNC, 0, list);
    else if (strcmp(what, "exclusive") == 0)
        file = H5Fcreate(name, H5F_ACC_EXCL, 0, list);
    else
        file = H5Fopen(name, strcmp(what, "read") == 0 ? H5F_ACC_RDONLY : H5F_ACC_RDWR, list);
    H5Pclose(list);
    return file;
}

static void in_parallel(const char *what, const char *name)
{
    char other[4096];
    hid_t file;
    int status = 0;

    snprintf(other, sizeof other, "%s.nowhere", name);
    file = open_file(what, strcmp(what, "missing") == 0 && rank == 1 ? other : name);
    if (file < 0) {
        printf("%d refused\n", rank);
        return;
    }
    if (strcmp(what, "read") != 0) {
        hbool_t atomic = 1;
        if (H5Fget_mpi_atomicity(file, &atomic) < 0 || atomic)
            status = -1;
        if (write_rows(file, strcmp(what, "change") == 0 ? 7 : 0, 1) < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 ||
            write_rows(file, strcmp(what, "change") == 0 ? 7 : 0, 2) < 0)
            status = -1;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("%d %s %lld\n", rank, status < 0 ? "failed" : "done", read_rows(file));
    if (H5Fclose(file) < 0)
        printf("%d not closed\n", rank);
}

static void alone(const char *name)
{
    for (int i = 0; i < 3; i++) {
        hid_t file = i == 0 ? H5Fcreate(name, H5F_ACC_TRUNC, 0, 0) : H5Fopen(name, H5F_ACC_RDWR, 0);
        int all = ranks, status = -1;
        ranks = 1;
        status = file < 0 ? -1 : write_rows(file, i, 0);
        ranks = all;
        if (H5Fclose(file) < 0 || status < 0) {
            printf("%d failed\n", rank);
            return;
        }
    }
    printf("%d done 0\n", rank);
}

int main(int argc, char **argv)
{
    char name[4096];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 3)
        return 2;
    snprintf(name, sizeof name, "%s.%d", argv[2], rank);
    together = strcmp(argv[1], "together") == 0;
    first = strcmp(argv[1], "first") == 0;
    if (strcmp(argv[1], "serial") == 0) {
        int mine = rank;
        rank = 0;
        alone(name);
        rank = mine;
    } else if (strcmp(argv[1], "root") == 0) {
        if (rank == 0)
            alone(argv[2]);
    } else
        in_parallel(together || first ? "read" : argv[1], argv[2]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
