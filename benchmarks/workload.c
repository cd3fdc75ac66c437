/* One piece of everyday HDF5 work in one process, timed. bench.py starts it, natively and through the connector; it is
 * an ordinary HDF5 program and does not know which. Only what stands between `begin` and `end` is timed: HDF5 calls,
 * and for copies the copying. What is read is checked (of the field one value a chunk), so that work that went wrong is
 * never fast.
 *
 * usage: workload WORK FILE NUMBER...       it prints lines "name value", the last is "done 1"
 *
 *   write FILE MIB FIELD       FIELD 0: random doubles, no filter; 1: a smooth field, shuffle and gzip; 2: the same, Blosc
 *   rewrite FILE MIB FIELD     all again, 1 % of the chunks are different
 *   change FILE MIB FIELD      only the chunks that change: another 1 %, each whole
 *   read FILE MIB STATE        all. STATE 0, 1, 2: after write, rewrite, change
 *   rows FILE MIB GROW         one row a call, GROW 1: the dataset is extended before each
 *   versions FILE N COPIES     N times: open, change one value, close. COPIES 1: each time in a fresh copy of the file
 *   chunks FILE N RANK         make a dataset of N small chunks
 *   commit FILE N RANK CHANGES TIMES COUNTED   open, change a value in each of CHANGES scattered chunks, close. COUNTED 1:
 *                              what that writes is counted as well, which needs a copy of the file before each
 *   open FILE N RANK TIMES     open, read one value, close
 *   age FILE FROM TO           TO - FROM times: open, change one of 100,000 values in chunks of 1,000, close. FROM 0: of a new file
 *   touch FILE TIMES           the same TIMES times, each timed
 *   glance FILE TIMES          open, read one value of it, close
 *
 * The field is 2048 doubles wide, in chunks of 64 x 512 (256 KiB): a row crosses four of them, as many as HDF5's own
 * chunk cache holds. It is made from 64 MiB of values over and over; the first value of each chunk is its number, so
 * that no two chunks are equal. */
#include "workload_disk.h"

#include <err.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 2048, CHUNK_ROWS = 64, CHUNK_COLUMNS = 512, ACROSS = WIDTH / CHUNK_COLUMNS, SLAB_ROWS = 4096 };
enum { SLAB_VALUES = SLAB_ROWS * WIDTH, ROWS_PER_MIB = (1 << 20) / (WIDTH * 8) };
enum { SMALL_CHUNK = 16 }; /* doubles in each of the many chunks: 16, or 4 x 4 */
enum { SMALL_DATASETS = 8, SMALL_VALUES = 1000 };
enum { AGED_VALUES = 100000, AGED_CHUNK = 1000 };
enum field_kind { FIELD_RANDOM, FIELD_GZIP, FIELD_BLOSC };

static double started, timed;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void begin(void)
{
    started = now();
}

static double end(void)
{
    double seconds = now() - started;
    timed += seconds;
    return seconds;
}

/* The value of an HDF5 call that must not fail. HDF5 has printed why. */
static int64_t must(int64_t value, const char *what)
{
    if (value < 0)
        errx(1, "%s failed", what);
    return value;
}
#define MUST(call) must(call, #call)

static uint64_t number(const char *text)
{
    char *rest;
    unsigned long long value = strtoull(text, &rest, 10);

    if (*text == '\0' || *rest != '\0')
        errx(2, "'%s' is not a number", text);
    return value;
}

static void *memory(size_t size)
{
    void *bytes = malloc(size);
    if (bytes == NULL)
        err(1, "%zu bytes", size);
    return bytes;
}

static uint64_t scramble(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- the large field ---- */

static double *make_field(bool smooth)
{
    double *field = memory((size_t)SLAB_VALUES * sizeof *field);

    for (int64_t i = 0; i < SLAB_VALUES; i++) {
        double y = (double)(i / WIDTH), x = (double)(i % WIDTH);
        if (!smooth)
            field[i] = (double)(scramble((uint64_t)i) >> 11) * 0x1p-53;
        else /* as measured: ten bits after the point */
            field[i] = floor(1024 * (15 + 10 * sin(x / 300) * cos(y / 200) + sin((x + 3 * y) / 50))) / 1024;
    }
    return field;
}

/* What the first value of a chunk must be after rewrite (state 1) and change (2). */
static double stamp(uint64_t chunk, uint64_t state)
{
    bool rewritten = state >= 1 && chunk % 100 == 7, changed = state >= 2 && chunk % 100 == 57;
    return (double)(chunk * 4 + rewritten + 2 * changed);
}

static double *stamp_at(double *slab, uint64_t chunk)
{
    uint64_t row = chunk / ACROSS * CHUNK_ROWS % SLAB_ROWS, column = chunk % ACROSS * CHUNK_COLUMNS;
    return &slab[row * WIDTH + column];
}

static uint64_t chunks_of(uint64_t rows)
{
    return rows / CHUNK_ROWS * ACROSS;
}

static void put_stamps(double *slab, uint64_t first_row, uint64_t rows, uint64_t state)
{
    for (uint64_t c = chunks_of(first_row); c < chunks_of(first_row + rows); c++)
        *stamp_at(slab, c) = stamp(c, state);
}

/* Blosc's filter: four numbers that it sets itself, level 5, bytes shuffled, LZ4. */
static void choose_blosc(hid_t dcpl)
{
    static const unsigned values[7] = {0, 0, 0, 0, 5, 1, 1};

    if (H5Zfilter_avail(32001) <= 0)
        errx(3, "HDF5 finds no Blosc filter");
    MUST(H5Pset_filter(dcpl, 32001, H5Z_FLAG_MANDATORY, 7, values));
}

static hid_t create_field(hid_t file, uint64_t rows, enum field_kind kind, bool grow)
{
    hsize_t extent[2] = {grow ? 0 : rows, WIDTH}, most[2] = {grow ? H5S_UNLIMITED : rows, WIDTH};
    hsize_t chunk[2] = {CHUNK_ROWS, CHUNK_COLUMNS};
    hid_t space = H5Screate_simple(2, extent, most), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;

    MUST(H5Pset_chunk(dcpl, 2, chunk));
    switch (kind) {
    case FIELD_RANDOM:
        break;
    case FIELD_GZIP:
        MUST(H5Pset_shuffle(dcpl));
        MUST(H5Pset_deflate(dcpl, 4));
        break;
    case FIELD_BLOSC:
        choose_blosc(dcpl);
        break;
    }
    dataset = MUST(H5Dcreate2(file, "field", H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    H5Pclose(dcpl);
    H5Sclose(space);
    return dataset;
}

static void transfer(hid_t dataset, bool write, uint64_t total, uint64_t first, uint64_t rows, double *values)
{
    hsize_t extent[2] = {total, WIDTH}, start[2] = {first, 0}, count[2] = {rows, WIDTH};
    hid_t file = H5Screate_simple(2, extent, NULL), mem = H5Screate_simple(2, count, NULL);

    MUST(H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL));
    if (write)
        MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, mem, file, H5P_DEFAULT, values));
    else
        MUST(H5Dread(dataset, H5T_NATIVE_DOUBLE, mem, file, H5P_DEFAULT, values));
    H5Sclose(mem);
    H5Sclose(file);
}

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static enum field_kind kind_of(uint64_t field)
{
    if (field > FIELD_BLOSC)
        errx(2, "FIELD is 0, 1 or 2");
    return (enum field_kind)field;
}

static void run_write(const char *name, uint64_t mib, enum field_kind kind, bool again)
{
    uint64_t rows = mib * ROWS_PER_MIB;
    double *slab = make_field(kind != FIELD_RANDOM);
    hid_t file, dataset;

    begin();
    if (again) {
        file = MUST(H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT));
        dataset = MUST(H5Dopen2(file, "field", H5P_DEFAULT));
    } else {
        file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
        dataset = create_field(file, rows, kind, false);
    }
    for (uint64_t r = 0; r < rows; r += SLAB_ROWS) {
        uint64_t n = min(SLAB_ROWS, rows - r);
        put_stamps(slab, r, n, again);
        transfer(dataset, true, rows, r, n, slab);
    }
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
    end();
    free(slab);
}

static void run_change(const char *name, uint64_t mib, enum field_kind kind)
{
    uint64_t rows = mib * ROWS_PER_MIB;
    hsize_t extent[2] = {rows, WIDTH}, slab_extent[2] = {SLAB_ROWS, WIDTH}, count[2] = {CHUNK_ROWS, CHUNK_COLUMNS};
    hid_t space = H5Screate_simple(2, extent, NULL), mem = H5Screate_simple(2, slab_extent, NULL), file, dataset;
    double *slab = make_field(kind != FIELD_RANDOM);

    begin();
    file = MUST(H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT));
    dataset = MUST(H5Dopen2(file, "field", H5P_DEFAULT));
    for (uint64_t c = 57; c < chunks_of(rows); c += 100) {
        hsize_t start[2] = {c / ACROSS * CHUNK_ROWS, c % ACROSS * CHUNK_COLUMNS};
        *stamp_at(slab, c) = stamp(c, 2);
        MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
        start[0] %= SLAB_ROWS;
        MUST(H5Sselect_hyperslab(mem, H5S_SELECT_SET, start, NULL, count, NULL));
        MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, mem, space, H5P_DEFAULT, slab));
    }
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
    end();
    H5Sclose(mem);
    H5Sclose(space);
    free(slab);
}

static void run_read(const char *name, uint64_t mib, uint64_t state)
{
    uint64_t rows = mib * ROWS_PER_MIB;
    double *slab = memory((size_t)SLAB_VALUES * sizeof *slab);
    hid_t file, dataset;

    memset(slab, 0, (size_t)SLAB_VALUES * sizeof *slab);
    begin();
    file = MUST(H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT));
    dataset = MUST(H5Dopen2(file, "field", H5P_DEFAULT));
    for (uint64_t r = 0; r < rows; r += SLAB_ROWS) {
        uint64_t n = min(SLAB_ROWS, rows - r);
        transfer(dataset, false, rows, r, n, slab);
        for (uint64_t c = chunks_of(r); c < chunks_of(r + n); c++)
            if (*stamp_at(slab, c) != stamp(c, state))
                errx(1, "chunk %llu: %g was read, %g is right", (unsigned long long)c, *stamp_at(slab, c),
                     stamp(c, state));
    }
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
    end();
    free(slab);
}

static void run_rows(const char *name, uint64_t mib, bool grow)
{
    uint64_t rows = mib * ROWS_PER_MIB;
    double *slab = make_field(false);
    hid_t file, dataset;

    begin();
    file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    dataset = create_field(file, rows, FIELD_RANDOM, grow);
    for (uint64_t r = 0; r < rows; r++) {
        hsize_t extent[2] = {r + 1, WIDTH};
        if (r % SLAB_ROWS == 0)
            put_stamps(slab, r, min(SLAB_ROWS, rows - r), 0);
        if (grow)
            MUST(H5Dset_extent(dataset, extent));
        transfer(dataset, true, grow ? r + 1 : rows, r, 1, slab + r % SLAB_ROWS * WIDTH);
    }
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
    end();
    free(slab);
}

/* ---- many small versions ---- */

static void one_value(const char *file_name, const char *name, const hsize_t place[], double value)
{
    hid_t file = MUST(H5Fopen(file_name, H5F_ACC_RDWR, H5P_DEFAULT)), dataset = MUST(H5Dopen2(file, name, H5P_DEFAULT));
    hid_t space = MUST(H5Dget_space(dataset)), mem = H5Screate(H5S_SCALAR);

    MUST(H5Sselect_elements(space, H5S_SELECT_SET, 1, place));
    MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, mem, space, H5P_DEFAULT, &value));
    H5Sclose(mem);
    H5Sclose(space);
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
}

static void create_small(const char *name)
{
    hid_t file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent = SMALL_VALUES, chunk = SMALL_VALUES / 4;
    hid_t space = H5Screate_simple(1, &extent, NULL);
    double values[SMALL_VALUES];

    MUST(H5Pset_chunk(dcpl, 1, &chunk));
    for (int d = 0; d < SMALL_DATASETS; d++) {
        char path[32];
        hid_t dataset;

        snprintf(path, sizeof path, "series %d", d);
        for (int i = 0; i < SMALL_VALUES; i++)
            values[i] = (double)scramble((uint64_t)(d * SMALL_VALUES + i));
        dataset = MUST(H5Dcreate2(file, path, H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
        MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        MUST(H5Dclose(dataset));
    }
    H5Sclose(space);
    H5Pclose(dcpl);
    MUST(H5Fclose(file));
}

static void run_versions(const char *name, uint64_t n, bool copies)
{
    size_t room = strlen(name) + 32;
    char *former = strdup(name), *copy = memory(room);

    create_small(name);
    begin();
    for (uint64_t i = 0; i < n; i++) {
        char path[32];
        hsize_t place = scramble(i) % SMALL_VALUES;

        snprintf(path, sizeof path, "series %d", (int)(i % SMALL_DATASETS));
        if (copies) {
            snprintf(copy, room, "%s.%llu", name, (unsigned long long)i);
            disk_copy(former, copy);
            one_value(copy, path, &place, (double)i);
            free(former);
            former = strdup(copy);
        } else
            one_value(name, path, &place, (double)i);
    }
    end();
    free(copy);
    free(former);
}

/* ---- a file that gets old ---- */

static void create_aged(const char *name)
{
    hid_t file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t extent = AGED_VALUES, chunk = AGED_CHUNK;
    hid_t space = H5Screate_simple(1, &extent, NULL), dataset;
    double *values = memory(AGED_VALUES * sizeof *values);

    for (int i = 0; i < AGED_VALUES; i++)
        values[i] = i;
    MUST(H5Pset_chunk(dcpl, 1, &chunk));
    dataset = MUST(H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    MUST(H5Dclose(dataset));
    H5Sclose(space);
    H5Pclose(dcpl);
    MUST(H5Fclose(file));
    free(values);
}

static void run_age(const char *name, uint64_t from, uint64_t to)
{
    begin();
    if (from == 0)
        create_aged(name);
    for (uint64_t i = from; i < to; i++) {
        hsize_t place = scramble(i) % AGED_VALUES;
        one_value(name, "x", &place, 0.5 + (double)i);
    }
    end();
}

static void run_touch(const char *name, uint64_t times)
{
    MUST(H5open());
    for (uint64_t t = 0; t < times; t++) {
        hsize_t place = t * 37 * AGED_CHUNK % AGED_VALUES;

        begin();
        one_value(name, "x", &place, -started); /* a value that it has not had */
        printf("once %.9f\n", end());
    }
}

/* Open the file, read one value, close. */
static double look_at(const char *name, const hsize_t place[])
{
    hid_t file = MUST(H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)), dataset = MUST(H5Dopen2(file, "x", H5P_DEFAULT)),
          space = MUST(H5Dget_space(dataset)), mem = H5Screate(H5S_SCALAR);
    double value = 0;

    MUST(H5Sselect_elements(space, H5S_SELECT_SET, 1, place));
    MUST(H5Dread(dataset, H5T_NATIVE_DOUBLE, mem, space, H5P_DEFAULT, &value));
    H5Sclose(mem);
    H5Sclose(space);
    MUST(H5Dclose(dataset));
    MUST(H5Fclose(file));
    return value;
}

static void run_glance(const char *name, uint64_t times)
{
    MUST(H5open());
    for (uint64_t t = 0; t < times; t++) {
        hsize_t place = t * 37 * AGED_CHUNK % AGED_VALUES;

        begin();
        look_at(name, &place);
        printf("once %.9f\n", end());
    }
}

/* ---- many chunks ---- */

/* The extent of a dataset of N chunks of 16 values: a square of squares where rank is 2. */
static void chunks_extent(uint64_t n, unsigned rank, hsize_t chunk[2], hsize_t extent[2])
{
    uint64_t side = (uint64_t)llround(sqrt((double)n));

    if (rank < 1 || rank > 2 || (rank == 2 && side * side != n))
        errx(2, "there is no square of %llu chunks of rank %u", (unsigned long long)n, rank);
    for (unsigned d = 0; d < rank; d++) {
        chunk[d] = rank == 1 ? SMALL_CHUNK : SMALL_CHUNK / 4;
        extent[d] = (rank == 1 ? n : side) * chunk[d];
    }
}

/* In slabs of about a million values, so that the program's own memory does not grow with the file. */
static void run_chunks(const char *name, uint64_t n, unsigned rank)
{
    hsize_t chunk[2], extent[2], most[2] = {H5S_UNLIMITED, H5S_UNLIMITED}, start[2] = {0, 0}, count[2], across;
    hid_t file, space, dcpl, dataset;
    double *values;

    chunks_extent(n, rank, chunk, extent);
    across = rank == 1 ? 1 : extent[1];
    count[1] = across;
    count[0] = min(extent[0], ((1 << 20) / across / chunk[0] + 1) * chunk[0]);
    values = memory(count[0] * across * sizeof *values);
    begin();
    file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    space = H5Screate_simple((int)rank, extent, most);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    MUST(H5Pset_chunk(dcpl, (int)rank, chunk));
    dataset = MUST(H5Dcreate2(file, "x", H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    for (; start[0] < extent[0]; start[0] += count[0]) {
        hid_t mem;

        count[0] = min(count[0], extent[0] - start[0]);
        for (uint64_t i = 0; i < count[0] * across; i++)
            values[i] = (double)(start[0] * across + i);
        mem = H5Screate_simple((int)rank, count, NULL);
        MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
        MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, mem, space, H5P_DEFAULT, values));
        H5Sclose(mem);
    }
    MUST(H5Dclose(dataset));
    H5Pclose(dcpl);
    H5Sclose(space);
    MUST(H5Fclose(file));
    end();
    free(values);
}

/* A value in the K-th of the places that are changed, no two in one chunk as long as there are chunks left. */
static void scattered(uint64_t k, uint64_t n, unsigned rank, hsize_t place[2])
{
    hsize_t chunk[2], extent[2];
    uint64_t step = 7919, at = k * step % n; /* a prime, no divisor of a power of ten: all chunks in turn */

    chunks_extent(n, rank, chunk, extent);
    if (rank == 1)
        place[0] = at * chunk[0];
    else {
        place[0] = at / (extent[1] / chunk[1]) * chunk[0];
        place[1] = at % (extent[1] / chunk[1]) * chunk[1];
    }
}

static void run_commit(const char *name, uint64_t n, unsigned rank, uint64_t changes, uint64_t times, bool counted)
{
    char *former = memory(strlen(name) + 8);
    double *value = memory(changes * sizeof *value);
    hsize_t *place = memory(2 * changes * sizeof *place), many = changes;
    const double first = -now(); /* values that it has not had, in any round */

    sprintf(former, "%s.before", name);
    MUST(H5open());
    for (uint64_t t = 0; t < times; t++) {
        hid_t file, dataset, space, mem;
        disk_count count = {0};
        double seconds;

        for (uint64_t i = 0; i < changes; i++) {
            scattered(t * changes + i, n, rank, place + i * rank);
            value[i] = first - (double)(t * changes + i);
        }
        if (counted)
            disk_watch(name, former);
        begin();
        file = MUST(H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT));
        dataset = MUST(H5Dopen2(file, "x", H5P_DEFAULT));
        space = MUST(H5Dget_space(dataset));
        mem = H5Screate_simple(1, &many, NULL);
        MUST(H5Sselect_elements(space, H5S_SELECT_SET, changes, place));
        MUST(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, mem, space, H5P_DEFAULT, value));
        H5Sclose(mem);
        H5Sclose(space);
        MUST(H5Dclose(dataset));
        MUST(H5Fclose(file));
        seconds = end();
        if (counted)
            count = disk_result();
        printf("commit %llu %llu %llu %.9f\n", (unsigned long long)count.appended,
               (unsigned long long)count.overwritten, (unsigned long long)count.changed, seconds);
    }
    free(place);
    free(value);
    free(former);
}

static void run_open(const char *name, uint64_t n, unsigned rank, uint64_t times)
{
    MUST(H5open());
    for (uint64_t t = 0; t < times; t++) {
        hsize_t place[2], chunk[2], extent[2];
        double value, expected;

        scattered(t + 12345, n, rank, place);
        chunks_extent(n, rank, chunk, extent);
        expected = (double)(rank == 1 ? place[0] : place[0] * extent[1] + place[1]);
        begin();
        value = look_at(name, place);
        printf("once %.9f\n", end());
        if (value != expected)
            errx(1, "%g was read, %g is right", value, expected);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int numbers;
    } works[] = {{"write", 2},  {"rewrite", 2}, {"change", 2}, {"read", 2}, {"rows", 2},  {"versions", 2},
                 {"chunks", 2}, {"commit", 5},  {"open", 3},   {"age", 2},  {"touch", 1}, {"glance", 1}};
    enum { WRITE, REWRITE, CHANGE, READ, ROWS, VERSIONS, CHUNKS, COMMIT, OPEN, AGE, TOUCH, GLANCE, NONE } work = 0;
    const char *file = argc > 2 ? argv[2] : "";
    uint64_t n[5] = {0};
    unsigned major, minor, release;

    while (work < NONE && (argc < 2 || strcmp(argv[1], works[work].name) != 0))
        work++;
    if (work == NONE || argc != 3 + works[work].numbers)
        errx(2, "usage: workload WORK FILE NUMBER...; WORK and its numbers are in the first comment of workload.c");
    for (int i = 3; i < argc; i++)
        n[i - 3] = number(argv[i]);
    switch (work) {
    case WRITE:
    case REWRITE:
        run_write(file, n[0], kind_of(n[1]), work == REWRITE);
        break;
    case CHANGE:
        run_change(file, n[0], kind_of(n[1]));
        break;
    case READ:
        run_read(file, n[0], n[1]);
        break;
    case ROWS:
        run_rows(file, n[0], n[1]);
        break;
    case VERSIONS:
        run_versions(file, n[0], n[1]);
        break;
    case CHUNKS:
        run_chunks(file, n[0], (unsigned)n[1]);
        break;
    case COMMIT:
        run_commit(file, n[0], (unsigned)n[1], n[2], n[3], n[4] != 0);
        break;
    case OPEN:
        run_open(file, n[0], (unsigned)n[1], n[2]);
        break;
    case AGE:
        run_age(file, n[0], n[1]);
        break;
    case TOUCH:
        run_touch(file, n[0]);
        break;
    case GLANCE:
        run_glance(file, n[0]);
        break;
    case NONE:
        break;
    }
    /* HDF5 goes on natively where a connector cannot be loaded: the runner compares this with what it asked for */
    MUST(H5get_libversion(&major, &minor, &release));
    printf("hdf5 %u.%u.%u\n", major, minor, release);
    printf("connector %d\n", H5VLis_connector_registered_by_name("h5cow") > 0);
    printf("seconds %.9f\nmemory %llu\ndone 1\n", timed, (unsigned long long)disk_peak_memory());
    return 0;
}
