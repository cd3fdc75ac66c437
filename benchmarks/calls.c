/* What one call costs that does next to nothing: writes of one element, questions. calls.py runs it with one plugin after the
 * other.
 *
 *   calls write FILE N     N times H5Dwrite of one element of a dataset with chunks, at ever other places
 *   calls ask FILE N       N questions in turn: H5Aread, H5Lexists, H5Oexists_by_name, H5Dget_space
 *
 * Prints what the loop has cost this thread: nanoseconds of processor time, and instructions outside of the kernel where the
 * system counts them, else 0. */
#include <hdf5.h>

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIDE 512

typedef struct place {
    hid_t file, dataset, attribute, memory, space;
    long sum; /* so that no answer is thrown away */
} place;

static void check(long answer, const char *what)
{
    if (answer < 0) {
        fprintf(stderr, "calls: %s failed\n", what);
        exit(1);
    }
}

static void write_one(place *p, unsigned long i)
{
    hsize_t at[] = {i * 7 % SIDE, i * 13 % SIDE};
    double value = (double)i;

    check(H5Sselect_elements(p->space, H5S_SELECT_SET, 1, at), "H5Sselect_elements");
    check(H5Dwrite(p->dataset, H5T_NATIVE_DOUBLE, p->memory, p->space, H5P_DEFAULT, &value), "H5Dwrite");
}

static void ask_one(place *p, unsigned long i)
{
    hid_t space;
    int value;

    switch (i % 4) {
    case 0:
        check(H5Aread(p->attribute, H5T_NATIVE_INT, &value), "H5Aread");
        p->sum += value;
        break;
    case 1:
        p->sum += H5Lexists(p->file, "values", H5P_DEFAULT);
        break;
    case 2:
        p->sum += H5Oexists_by_name(p->file, "values", H5P_DEFAULT);
        break;
    default:
        check(space = H5Dget_space(p->dataset), "H5Dget_space");
        check(H5Sclose(space), "H5Sclose");
    }
}

static int open_counter(void)
{
    struct perf_event_attr what = {.size = sizeof what,
                                   .type = PERF_TYPE_HARDWARE,
                                   .config = PERF_COUNT_HW_INSTRUCTIONS,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};

    return (int)syscall(SYS_perf_event_open, &what, 0, -1, -1, 0);
}

static unsigned long long counted(int counter)
{
    unsigned long long count = 0;

    return counter >= 0 && read(counter, &count, sizeof count) == sizeof count ? count : 0;
}

static unsigned long long nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
}

int main(int argc, char **argv)
{
    hsize_t dims[] = {SIDE, SIDE}, chunk[] = {64, 64}, one = 1;
    void (*call)(place *, unsigned long);
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), scalar = H5Screate(H5S_SCALAR);
    unsigned long long time, instructions;
    unsigned long times;
    int counter = open_counter(), value = 1;
    place p = {0};

    if (argc != 4 || (strcmp(argv[1], "write") != 0 && strcmp(argv[1], "ask") != 0)) {
        fprintf(stderr, "usage: calls write|ask FILE N\n");
        return 2;
    }
    call = strcmp(argv[1], "write") == 0 ? write_one : ask_one;
    times = strtoul(argv[3], NULL, 10);
    check(p.file = H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "H5Fcreate");
    H5Pset_chunk(create, 2, chunk);
    p.space = H5Screate_simple(2, dims, NULL);
    p.memory = H5Screate_simple(1, &one, NULL);
    p.dataset = H5Dcreate2(p.file, "values", H5T_NATIVE_DOUBLE, p.space, H5P_DEFAULT, create, H5P_DEFAULT);
    check(p.dataset, "H5Dcreate2");
    p.attribute = H5Acreate2(p.dataset, "unit", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
    check(p.attribute, "H5Acreate2");
    check(H5Awrite(p.attribute, H5T_NATIVE_INT, &value), "H5Awrite");
    for (unsigned long i = 0; i < 4096; i++) /* every chunk is in memory */
        call(&p, i);
    time = nanoseconds();
    instructions = counted(counter);
    for (unsigned long i = 0; i < times; i++)
        call(&p, i);
    instructions = counted(counter) - instructions;
    time = nanoseconds() - time;
    printf("%llu %llu\n", time, instructions);
    H5Aclose(p.attribute);
    H5Dclose(p.dataset);
    H5Sclose(p.space);
    H5Sclose(p.memory);
    H5Sclose(scalar);
    H5Pclose(create);
    check(H5Fclose(p.file), "H5Fclose");
    return p.sum < 0;
}
