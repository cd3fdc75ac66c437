/* Virtual datasets of the program's own over sources with history, in the same file, in another file with history, in
 * plain files, missing ones; with strides, without end, with numbers in their names, over one another: read and written
 * at random, always the same with native HDF5 in another folder, where nothing has a history. Run with
 * HDF5_VOL_CONNECTOR=h5cow. Arguments: --seed N, --steps N; the seed is printed. */
#include "random.h"
#include "through.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define VERSIONS 400
#define ROOM     4000 /* elements of any virtual dataset */
#define KINDS    8

static uint64_t random_state, seed;
static unsigned steps = 1200;

static unsigned below(unsigned n)
{
    return (unsigned)(splitmix64(&random_state) % n);
}

/* ---- both sides ---- */

typedef struct side {
    const char *folder;
    hid_t plain, fapl; /* for files without history, for others */
    hid_t main, other; /* open files; the second sometimes */
    hid_t virtual[KINDS];
} side;

static side sides[2] = {{.folder = "test_mapped_cow"}, {.folder = "test_mapped_native"}};

static hid_t file_of(const side *s, const char *name, int what, bool history)
{
    char path[200];
    hid_t fapl = history ? s->fapl : s->plain;

    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return what == 0 ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)
                     : H5Fopen(path, what == 1 ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl);
}

static void make(hid_t file, const char *name, int rank, hsize_t a, hsize_t b, hsize_t chunk, int first)
{
    hsize_t dims[2] = {a, b}, most[2] = {chunk > 0 ? H5S_UNLIMITED : a, b}, chunks[2] = {chunk, b};
    hid_t space = H5Screate_simple(rank, dims, most), dcpl = H5Pcreate(H5P_DATASET_CREATE), d = H5I_INVALID_HID;
    int *values = calloc((size_t)(a * (rank == 2 ? b : 1)) + 1, sizeof *values), fill = -first;

    for (hsize_t i = 0; i < a * (rank == 2 ? b : 1); i++)
        values[i] = first + (int)i;
    if (chunk > 0)
        H5Pset_chunk(dcpl, rank, chunks);
    H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill);
    assert_true((d = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
    free(values);
    H5Sclose(space);
    H5Pclose(dcpl);
}

static hid_t slab(hsize_t extent, hsize_t start, hsize_t stride, hsize_t count, hsize_t block)
{
    hid_t space = H5Screate_simple(1, &extent, NULL);

    H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, &stride, &count, &block);
    return space;
}

static void map(hid_t dcpl, hid_t to, const char *file, const char *name, hid_t from)
{
    assert_true(H5Pset_virtual(dcpl, to, file, name, from) >= 0);
    H5Sclose(to);
    H5Sclose(from);
}

static void make_virtual(hid_t file, int kind)
{
    hsize_t dims[2] = {100, 20}, most[2] = {100, 20}, zero[2] = {0}, half[2] = {20, 10}, right[2] = {0, 10};
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space, d = H5I_INVALID_HID, part;
    int fill = -1 - kind, rank = 1;
    char name[20];

    H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill);
    switch (kind) {
    case 0: /* this file only */
        map(dcpl, slab(100, 0, 1, 1, 50), ".", "/a", slab(50, 0, 1, 1, 50));
        map(dcpl, slab(100, 50, 2, 25, 1), ".", "/b", slab(60, 10, 1, 1, 25));
        map(dcpl, slab(100, 51, 2, 25, 1), ".", "/b", slab(60, 35, 1, 1, 25));
        break;
    case 1: /* files of all kinds, and holes */
        map(dcpl, slab(100, 0, 1, 1, 30), "other.h5", "a", slab(50, 20, 1, 1, 30));
        map(dcpl, slab(100, 35, 3, 10, 2), "plain.h5", "/a", slab(50, 0, 1, 1, 20));
        map(dcpl, slab(100, 80, 1, 1, 20), ".", "a", slab(50, 0, 2, 20, 1));
        break;
    case 2: /* without end */
        dims[0] = 0, most[0] = H5S_UNLIMITED;
        map(dcpl, slab(0, 0, 4, H5S_UNLIMITED, 2), ".", "/grows", slab(0, 0, 1, 1, H5S_UNLIMITED));
        map(dcpl, slab(0, 2, 4, H5S_UNLIMITED, 2), "other.h5", "/grows", slab(0, 3, 2, H5S_UNLIMITED, 1));
        break;
    case 3: /* a dataset for each block */
        dims[0] = 5, most[0] = H5S_UNLIMITED;
        map(dcpl, slab(0, 5, 12, H5S_UNLIMITED, 10), "other.h5", "/block%b", slab(10, 0, 1, 1, 10));
        break;
    case 4: /* a file for each block */
        dims[0] = 0, most[0] = H5S_UNLIMITED;
        map(dcpl, slab(0, 0, 10, H5S_UNLIMITED, 10), "part%b.h5", "/a", slab(50, 5, 4, 10, 1));
        break;
    case 5: /* over others */
        map(dcpl, slab(100, 0, 1, 1, 40), ".", "/v0", slab(100, 30, 1, 1, 40));
        map(dcpl, slab(100, 40, 1, 1, 60), "other.h5", "/v", slab(100, 0, 1, 1, 60));
        break;
    case 6: /* two dimensions */
        rank = 2, dims[0] = most[0] = 20;
        space = H5Screate_simple(2, dims, NULL), part = H5Screate_simple(2, half, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, half, NULL);
        map(dcpl, H5Scopy(space), ".", "/m", H5Scopy(part));
        H5Sselect_hyperslab(space, H5S_SELECT_SET, right, NULL, half, NULL);
        map(dcpl, space, "other.h5", "/m", part);
        break;
    default: /* sources that are not there */
        map(dcpl, slab(100, 0, 1, 1, 50), "missing.h5", "/a", slab(50, 0, 1, 1, 50));
        map(dcpl, slab(100, 50, 1, 1, 20), "other.h5", "/missing", slab(50, 0, 1, 1, 20));
        map(dcpl, slab(100, 70, 1, 1, 30), "other.h5", "/a", slab(50, 0, 1, 1, 30));
    }
    snprintf(name, sizeof name, "v%d", kind);
    space = H5Screate_simple(rank, dims, most);
    assert_true((d = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0 &&
                H5Dclose(d) >= 0);
    H5Sclose(space);
    H5Pclose(dcpl);
}

static void make_part(const side *s, int n)
{
    char name[30];
    hid_t file;

    snprintf(name, sizeof name, "part%d.h5", n);
    assert_true((file = file_of(s, name, 0, n % 2 == 0)) >= 0);
    make(file, "a", 1, 50, 1, n % 3 * 7, 1000 * n);
    assert_true(H5Fclose(file) >= 0);
}

static void begin(side *s)
{
    hid_t file, dcpl;

    assert_true((s->main = file_of(s, "main.h5", 0, true)) >= 0);
    make(s->main, "a", 1, 50, 1, 8, 1);
    make(s->main, "b", 1, 60, 1, 0, 100);
    make(s->main, "grows", 1, 7, 1, 8, 200);
    make(s->main, "m", 2, 20, 10, 6, 10000);
    assert_true((file = file_of(s, "other.h5", 0, true)) >= 0);
    make(file, "a", 1, 50, 1, 0, 300);
    make(file, "grows", 1, 11, 1, 8, 400);
    make(file, "m", 2, 20, 10, 0, 20000);
    make(file, "block0", 1, 10, 1, 4, 500);
    dcpl = H5Pcreate(H5P_DATASET_CREATE);
    map(dcpl, slab(100, 10, 1, 1, 50), ".", "/a", slab(50, 0, 1, 1, 50));
    map(dcpl, slab(100, 0, 1, 1, 10), "plain.h5", "/a", slab(50, 40, 1, 1, 10));
    hsize_t dims = 100;
    hid_t space = H5Screate_simple(1, &dims, NULL),
          d = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, 0);
    assert_true(d >= 0 && H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
    H5Sclose(space);
    H5Pclose(dcpl);
    assert_true((file = file_of(s, "plain.h5", 0, false)) >= 0);
    make(file, "a", 1, 50, 1, 5, 600);
    assert_true(H5Fclose(file) >= 0);
    make_part(s, 0);
    make_part(s, 1);
    for (int kind = 0; kind < KINDS; kind++) {
        make_virtual(s->main, kind);
        s->virtual[kind] = H5I_INVALID_HID;
    }
    s->other = H5I_INVALID_HID;
}

/* ---- steps: what both sides do ---- */

static void close_virtual(side *s, int kind)
{
    if (s->virtual[kind] >= 0)
        assert_true(H5Dclose(s->virtual[kind]) >= 0);
    s->virtual[kind] = H5I_INVALID_HID;
}

static void open_virtual(int kind)
{
    H5D_vds_view_t view = below(2) ? H5D_VDS_LAST_AVAILABLE : H5D_VDS_FIRST_MISSING;
    hsize_t gap = below(3);
    char name[20];

    snprintf(name, sizeof name, "v%d", kind);
    for (int i = 0; i < 2 && sides[i].virtual[kind] < 0; i++) {
        hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);

        H5Pset_virtual_view(dapl, view);
        H5Pset_virtual_printf_gap(dapl, view == H5D_VDS_LAST_AVAILABLE ? gap : 0);
        assert_true((sides[i].virtual[kind] = H5Dopen2(sides[i].main, name, dapl)) >= 0);
        H5Pclose(dapl);
    }
}

/* The extent as both sides tell it. */
static int extent_of(int kind, hsize_t dims[2], hid_t space[2])
{
    hsize_t cow[2] = {0}, native[2] = {0};
    int rank = 0;

    for (int i = 0; i < 2; i++) {
        assert_true((space[i] = H5Dget_space(sides[i].virtual[kind])) >= 0);
        rank = H5Sget_simple_extent_dims(space[i], i == 0 ? cow : native, NULL);
    }
    for (int k = 0; k < rank; k++) {
        if (cow[k] != native[k])
            fail_msg("v%d: extent: native %llu, with history %llu", kind, (unsigned long long)native[k],
                     (unsigned long long)cow[k]);
        dims[k] = native[k];
    }
    return rank;
}

/* The same random selection on both; equal numbers of elements. */
static hsize_t select_some(int rank, const hsize_t dims[2], hid_t space[2])
{
    hsize_t start[2], stride[2], count[2], block[2], points[2 * 12];
    unsigned how = below(6), n = 1 + below(12);

    if (how == 0)
        return 0; /* all */
    for (int k = 0; k < rank; k++) {
        start[k] = below((unsigned)dims[k]);
        block[k] = 1 + below(3);
        stride[k] = block[k] + below(4);
        if (start[k] + block[k] > dims[k])
            block[k] = 1, stride[k] = 1 + below(4);
        count[k] = 1 + (dims[k] - start[k] - block[k]) / stride[k];
        count[k] = 1 + below((unsigned)count[k]);
    }
    for (unsigned i = 0; i < n * (unsigned)rank; i++)
        points[i] = below((unsigned)dims[i % (unsigned)rank]);
    for (int i = 0; i < 2; i++)
        if (how == 1 && n == 1)
            assert_true(H5Sselect_elements(space[i], H5S_SELECT_SET, n, points) >= 0);
        else
            assert_true(H5Sselect_hyperslab(space[i], H5S_SELECT_SET, start, stride, count, block) >= 0);
    if (how == 2) /* and another one */
        for (int i = 0; i < 2; i++) {
            hsize_t zero[2] = {0}, one[2] = {1, 1};
            assert_true(H5Sselect_hyperslab(space[i], H5S_SELECT_OR, zero, NULL, one, NULL) >= 0);
        }
    return (hsize_t)H5Sget_select_npoints(space[0]);
}

static void transfer(int kind, bool writing)
{
    static int values[2][ROOM];
    hsize_t dims[2] = {0}, n;
    hid_t space[2], memory;
    herr_t status[2];
    int rank, first = (int)below(1000000);

    open_virtual(kind);
    rank = extent_of(kind, dims, space);
    if (rank < 1 || dims[0] == 0 || dims[0] * (rank == 2 ? dims[1] : 1) > ROOM)
        goto done;
    n = select_some(rank, dims, space);
    for (int i = 0; i < ROOM; i++)
        values[0][i] = values[1][i] = writing ? first + i : 7;
    memory = n == 0 ? H5S_ALL : H5Screate_simple(1, &n, NULL);
    H5E_BEGIN_TRY
    {
        for (int i = 0; i < 2; i++)
            status[i] = writing ? H5Dwrite(sides[i].virtual[kind], H5T_NATIVE_INT, memory, n == 0 ? H5S_ALL : space[i],
                                           H5P_DEFAULT, values[i])
                                : H5Dread(sides[i].virtual[kind], H5T_NATIVE_INT, memory, n == 0 ? H5S_ALL : space[i],
                                          H5P_DEFAULT, values[i]);
    }
    H5E_END_TRY
    if ((status[0] < 0) != (status[1] < 0))
        fail_msg("v%d: %s: native %d, with history %d", kind, writing ? "writing" : "reading", status[1], status[0]);
    for (int i = 0; !writing && i < ROOM; i++)
        if (values[0][i] != values[1][i])
            fail_msg("v%d: element %d: native %d, with history %d", kind, i, values[1][i], values[0][i]);
    if (n > 0)
        H5Sclose(memory);
done:
    H5Sclose(space[0]);
    H5Sclose(space[1]);
}

/* A source is written, or gets longer, by its own name. */
static void change_source(void)
{
    static const char *const names[] = {"a", "b", "grows", "m"};
    const char *name = names[below(4)];
    bool other = below(2), longer = below(2);
    hsize_t more = below(9);
    int first = (int)below(1000000);

    if (other && *name == 'b')
        return;
    for (int i = 0; i < 2; i++) {
        side *s = &sides[i];
        hid_t file = s->main, d = H5I_INVALID_HID, space;
        hsize_t dims[2] = {0};
        int values[400];

        if (other)
            file = s->other >= 0 ? s->other : file_of(s, "other.h5", 1, true);
        assert_true(file >= 0 && (d = H5Dopen2(file, name, H5P_DEFAULT)) >= 0);
        space = H5Dget_space(d);
        H5Sget_simple_extent_dims(space, dims, NULL);
        H5Sclose(space);
        dims[0] += more;
        if (longer && *name == 'g' && dims[0] < 300)
            assert_true(H5Dset_extent(d, dims) >= 0);
        for (int k = 0; k < 400; k++)
            values[k] = first + k;
        if (dims[0] < 300)
            assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dclose(d) >= 0);
        if (other && s->other < 0)
            assert_true(H5Fclose(file) >= 0);
    }
}

/* A source that was missing. */
static void add_source(void)
{
    static int blocks, parts;
    bool block = below(2);
    int skip = (int)below(2);

    if (block ? blocks > 8 : parts > 8)
        return;
    if (block)
        blocks += 1 + skip;
    else
        parts += 1 + skip;
    for (int i = 0; i < 2; i++) {
        side *s = &sides[i];

        for (int kind = 0; kind < KINDS; kind++) /* HDF5 may have looked, and not look again */
            close_virtual(s, kind);
        if (!block)
            make_part(s, 1 + parts);
        else {
            hid_t file = s->other >= 0 ? s->other : file_of(s, "other.h5", 1, true);
            char name[20];

            snprintf(name, sizeof name, "block%d", blocks);
            make(file, name, 1, 10, 1, 4, 700 + blocks);
            if (s->other < 0)
                assert_true(H5Fclose(file) >= 0);
        }
    }
}

/* ---- versions ---- */

static int content[VERSIONS][100], versions;

static bool read_own(const char *path, int *values)
{
    hid_t file, d = H5I_INVALID_HID;

    H5E_BEGIN_TRY
    {
        file = H5Fopen(path, H5F_ACC_RDONLY, sides[0].fapl);
    }
    H5E_END_TRY
    if (file < 0)
        return false;
    assert_true((d = H5Dopen2(file, "v0", H5P_DEFAULT)) >= 0);
    assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
    assert_true(H5Fclose(file) >= 0);
    return true;
}

static void close_files(void)
{
    for (int i = 0; i < 2; i++) {
        for (int kind = 0; kind < KINDS; kind++)
            close_virtual(&sides[i], kind);
        if (sides[i].other >= 0)
            assert_true(H5Fclose(sides[i].other) >= 0);
        assert_true(H5Fclose(sides[i].main) >= 0);
        sides[i].other = sides[i].main = H5I_INVALID_HID;
    }
}

/* All is closed: what HDF5 alone reads of the head, and a new version. */
static void between_sessions(void)
{
    char path[100];
    int now[2][100];

    close_files();
    for (int kind = 0; kind < KINDS; kind++) {
        static int values[2][ROOM];

        for (int i = 0; i < 2; i++) {
            hid_t file = H5Fopen(i == 0 ? "test_mapped_cow/main.h5" : "test_mapped_native/main.h5", H5F_ACC_RDONLY,
                                 native_fapl),
                  d = H5I_INVALID_HID;
            char name[20];

            memset(values[i], 0, sizeof values[i]);
            snprintf(name, sizeof name, "v%d", kind);
            assert_true(file >= 0 && (d = H5Dopen2(file, name, H5P_DEFAULT)) >= 0);
            assert_true(H5Sclose(H5Dget_space(d)) >= 0); /* so that the extent follows the sources */
            assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values[i]) >= 0);
            assert_true(H5Dclose(d) >= 0 && H5Fclose(file) >= 0);
        }
        if (memcmp(values[0], values[1], sizeof values[0]) != 0)
            fail_msg("v%d: HDF5 alone reads something else", kind);
    }
    assert_true(read_own("test_mapped_cow/main.h5", now[0]) && read_own("test_mapped_native/main.h5", now[1]));
    assert_true(memcmp(now[0], now[1], sizeof now[0]) == 0);
    snprintf(path, sizeof path, "test_mapped_cow/main.h5@%d", versions + 1);
    if (versions + 1 < VERSIONS && read_own(path, content[versions + 1])) {
        versions++;
        assert_true(memcmp(content[versions], now[0], sizeof now[0]) == 0);
    }
    for (int i = 0; i < 2; i++)
        assert_true((sides[i].main = file_of(&sides[i], "main.h5", 1, true)) >= 0);
}

static void step(void)
{
    unsigned what = below(100);
    int kind = (int)below(KINDS);

    if (what < 40)
        transfer(kind, true);
    else if (what < 70)
        transfer(kind, false);
    else if (what < 80)
        change_source();
    else if (what < 85)
        for (int i = 0; i < 2; i++)
            close_virtual(&sides[i], kind);
    else if (what < 88)
        for (int i = 0; i < 2; i++)
            assert_true(H5Fflush(sides[i].main, H5F_SCOPE_LOCAL) >= 0);
    else if (what < 91) {
        for (int i = 0; i < 2; i++)
            if (sides[i].other >= 0) {
                assert_true(H5Fclose(sides[i].other) >= 0);
                sides[i].other = H5I_INVALID_HID;
            } else
                assert_true((sides[i].other = file_of(&sides[i], "other.h5", 1, true)) >= 0);
    } else if (what < 93)
        add_source();
    else if (what < 95 && sides[0].virtual[kind] >= 0)
        for (int i = 0; i < 2; i++)
            assert_true((what == 93 ? H5Dflush : H5Drefresh)(sides[i].virtual[kind]) >= 0);
    else if (what >= 97)
        between_sessions();
}

static void test_random_transfers_are_those_of_native_hdf5(void **state)
{
    char path[100];
    int values[100];
    (void)state;

    printf("  seed %llu, %u steps\n", (unsigned long long)seed, steps);
    assert_true(system("rm -rf test_mapped_cow test_mapped_native") == 0);
    for (int i = 0; i < 2; i++) {
        assert_true(mkdir(sides[i].folder, 0700) == 0);
        sides[i].plain = native_fapl;
        sides[i].fapl = i == 0 ? H5P_DEFAULT : native_fapl;
        begin(&sides[i]);
    }
    for (unsigned n = 0; n < steps; n++) {
        during("seed %llu, step %u", (unsigned long long)seed, n);
        step();
    }
    between_sessions();
    close_files();
    for (int v = 1; v <= versions; v++) {
        snprintf(path, sizeof path, "test_mapped_cow/main.h5@%d", v);
        assert_true(read_own(path, values) && memcmp(values, content[v], sizeof values) == 0);
    }
    assert_true(versions > 2 || steps < 300);
    assert_true(system("rm -rf test_mapped_cow test_mapped_native") == 0);
}

/* A selection that is only in the transfer property list. */
static void test_listed_selections_are_those_of_native_hdf5(void **state)
{
    static const hsize_t start = 3, stride = 7, count = 5, block = 2;
    int in[10], out[2][50];
    (void)state;

    for (int k = 0; k < 10; k++)
        in[k] = 1000 + k;
    memset(out, 0, sizeof out);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "test_mapped_cow.h5" : "test_mapped_native.h5";
        hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, i == 0 ? H5P_DEFAULT : native_fapl), d,
              dcpl = H5Pcreate(H5P_DATASET_CREATE), space = slab(50, 0, 1, 1, 50), dxpl = H5Pcreate(H5P_DATASET_XFER);

        make(file, "source", 1, 2000, 0, 100, 1);
        map(dcpl, slab(50, 0, 1, 1, 50), ".", "source", slab(2000, 20, 3, 50, 1));
        assert_true((d = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
        assert_true(H5Pset_dataset_io_hyperslab_selection(dxpl, 1, H5S_SELECT_SET, &start, &stride, &count, &block) >=
                    0);
        assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_BLOCK, H5S_PLIST, dxpl, in) >= 0);
        assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_PLIST, dxpl, out[i]) >= 0);
        assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_BLOCK, H5S_PLIST, dxpl, in) >= 0 && in[9] == 1009 && in[0] == 1000);
        assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_PLIST, H5S_ALL, dxpl, out[i]) < 0);
        assert_true(H5Dclose(d) >= 0 && H5Pclose(dcpl) >= 0 && H5Pclose(dxpl) >= 0 && H5Sclose(space) >= 0);
        assert_true((d = H5Dopen2(file, "v", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out[i]) >= 0 && H5Dclose(d) >= 0);
        assert_true(H5Fclose(file) >= 0);
        remove(name);
    }
    assert_true(memcmp(out[0], out[1], sizeof out[0]) == 0 && out[0][3] == 1000 && out[0][4] == 1001 &&
                out[0][32] == 1009);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_listed_selections_are_those_of_native_hdf5),
                                       cmocka_unit_test(test_random_transfers_are_those_of_native_hdf5)};

    seed = test_seed();
    for (; argc > 2 && strncmp(argv[1], "--", 2) == 0; argc -= 2, argv += 2)
        if (strcmp(argv[1], "--seed") == 0)
            seed = strtoull(argv[2], NULL, 10);
        else
            steps = (unsigned)strtoul(argv[2], NULL, 10);
    random_state = seed;
    return test_main(tests, argc, argv, through_begin, through_end);
}
