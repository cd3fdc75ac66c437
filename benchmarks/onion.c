/* The histories of programs.py, the same changes of the same datasets, with versions by HDF5's own Onion driver: each
 * session is one of its revisions. It is a program of its own because h5py cannot choose that driver; what Python takes
 * of each session is not in its times.
 *
 * usage: onion WORK FILE N       WORK: series, value or append, as in programs.py. Prints one line of JSON.
 *
 * The history stands in FILE.onion, the first version in FILE. Both are counted. Of all PAGE sizes, powers of two from
 * 32 to 16384, this one makes the smallest histories in about the shortest time. */
#include <hdf5.h>

#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { PAGE = 4096 };
enum { SERIES_FIRST = 5000, SERIES_CHUNK = 4096, SERIES_MORE = 10 };
enum { VALUE_ELEMENTS = 1 << 17, VALUE_CHUNK = 1 << 13 };
enum { APPEND_MORE = 100, APPEND_CHUNK = 8192 };
enum { MOST_DATASETS = 3 };

/* The datasets, and what is in them: what a version must be read as. */
typedef struct model {
    int datasets;
    hsize_t chunk, length[MOST_DATASETS];
    double *values[MOST_DATASETS];
} model;

static int64_t must(int64_t value, const char *what)
{
    if (value < 0)
        errx(1, "%s failed", what);
    return value;
}
#define MUST(call) must(call, #call)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t scramble(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void fill(double *values, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = (double)(scramble(first + i) >> 11) * 0x1p-53;
}

/* What is below the Onion driver. It takes no H5P_DEFAULT, and uses this list as long as it is chosen. */
static hid_t below;

/* A list to open REVISION with; UINT64_MAX is the newest. */
static hid_t onion(uint64_t revision)
{
    H5FD_onion_fapl_info_t info = {
        .version = H5FD_ONION_FAPL_INFO_VERSION_CURR,
        .backing_fapl_id = below,
        .page_size = PAGE,
        .store_target = H5FD_ONION_STORE_TARGET_ONION,
        .revision_num = revision,
    };
    hid_t fapl = MUST(H5Pcreate(H5P_FILE_ACCESS));

    MUST(H5Pset_fapl_onion(fapl, &info));
    MUST(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST));
    return fapl;
}

static const char *name_of(const model *m, int d)
{
    static const char *const names[] = {"a", "b", "c"};
    return m->datasets == 1 ? "x" : names[d];
}

static void create(const char *name, const model *m)
{
    hid_t fapl = onion(H5FD_ONION_FAPL_INFO_REVISION_ID_LATEST), dcpl = H5Pcreate(H5P_DATASET_CREATE), file;
    hsize_t most = H5S_UNLIMITED;

    MUST(H5Pset_chunk(dcpl, 1, &m->chunk));
    file = MUST(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl));
    for (int d = 0; d < m->datasets; d++) {
        hid_t space = MUST(H5Screate_simple(1, &m->length[d], &most));
        hid_t set = MUST(H5Dcreate2(file, name_of(m, d), H5T_IEEE_F64LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
        if (m->length[d] > 0)
            MUST(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, m->values[d]));
        MUST(H5Dclose(set));
        H5Sclose(space);
    }
    MUST(H5Fclose(file));
    H5Pclose(dcpl);
    H5Pclose(fapl);
}

/* COUNT elements of an open dataset, beginning with number AT, get the model's values. */
static void put(hid_t set, const model *m, int d, hsize_t at, hsize_t count)
{
    hid_t space = MUST(H5Dget_space(set)), mem = MUST(H5Screate_simple(1, &count, NULL));

    MUST(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &count, NULL));
    MUST(H5Dwrite(set, H5T_NATIVE_DOUBLE, mem, space, H5P_DEFAULT, m->values[d] + at));
    H5Sclose(mem);
    H5Sclose(space);
}

/* One session. CHANGED elements at AT[d] were changed in the model, and its length has grown by MORE. */
static void change(const char *name, const model *m, const hsize_t at[], hsize_t changed, hsize_t more)
{
    hid_t fapl = onion(H5FD_ONION_FAPL_INFO_REVISION_ID_LATEST), file = MUST(H5Fopen(name, H5F_ACC_RDWR, fapl));

    for (int d = 0; d < m->datasets; d++) {
        hid_t set = MUST(H5Dopen2(file, name_of(m, d), H5P_DEFAULT));
        if (changed > 0)
            put(set, m, d, at[d], changed);
        if (more > 0) {
            MUST(H5Dset_extent(set, &m->length[d]));
            put(set, m, d, m->length[d] - more, more);
        }
        MUST(H5Dclose(set));
    }
    MUST(H5Fclose(file));
    H5Pclose(fapl);
}

static void compare(const char *name, const model *m, uint64_t revision)
{
    hid_t fapl = onion(revision), file = MUST(H5Fopen(name, H5F_ACC_RDONLY, fapl));

    for (int d = 0; d < m->datasets; d++) {
        hid_t set = MUST(H5Dopen2(file, name_of(m, d), H5P_DEFAULT)), space = MUST(H5Dget_space(set));
        hsize_t length;
        double *found;

        MUST(H5Sget_simple_extent_dims(space, &length, NULL));
        found = calloc(length + 1, sizeof *found);
        if (found == NULL || length != m->length[d])
            errx(1, "revision %llu has %llu elements", (unsigned long long)revision, (unsigned long long)length);
        if (length > 0)
            MUST(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, found));
        if (memcmp(found, m->values[d], length * sizeof *found) != 0)
            errx(1, "revision %llu of %s is not what was written", (unsigned long long)revision, name_of(m, d));
        free(found);
        H5Sclose(space);
        MUST(H5Dclose(set));
    }
    MUST(H5Fclose(file));
    H5Pclose(fapl);
}

static long long bytes_of(const char *name)
{
    const size_t room = strlen(name) + sizeof ".onion";
    char *history = malloc(room);
    struct stat one, other;

    if (history == NULL)
        err(1, "memory");
    memcpy(history, name, room - sizeof ".onion");
    memcpy(history + room - sizeof ".onion", ".onion", sizeof ".onion");
    if (stat(name, &one) != 0 || stat(history, &other) != 0)
        err(1, "%s", history);
    free(history);
    return (long long)one.st_size + (long long)other.st_size;
}

/* The first version, with room for all N that follow. */
static model begin(const char *work, uint64_t n)
{
    model m = {.datasets = 1};
    uint64_t room;

    if (strcmp(work, "series") == 0) {
        m = (model){
            .datasets = MOST_DATASETS, .chunk = SERIES_CHUNK, .length = {SERIES_FIRST, SERIES_FIRST, SERIES_FIRST}};
        room = SERIES_FIRST + n * SERIES_MORE;
    } else if (strcmp(work, "value") == 0) {
        m.chunk = VALUE_CHUNK;
        room = m.length[0] = VALUE_ELEMENTS;
    } else {
        m.chunk = APPEND_CHUNK;
        m.length[0] = APPEND_MORE;
        room = (n + 1) * APPEND_MORE;
    }
    for (int d = 0; d < m.datasets; d++) {
        m.values[d] = calloc(room, sizeof(double));
        if (m.values[d] == NULL)
            err(1, "memory");
        fill(m.values[d], 1000000000 + (uint64_t)d * 1000000, m.length[d]);
    }
    return m;
}

static void end(model *m)
{
    for (int d = 0; d < m->datasets; d++)
        free(m->values[d]);
}

static void one_version(const char *work, const char *name, model *m, uint64_t v)
{
    hsize_t at[MOST_DATASETS] = {0};

    if (strcmp(work, "series") == 0) {
        for (int d = 0; d < m->datasets; d++) {
            uint64_t key = (v * 8 + (uint64_t)d) * 64;
            at[d] = scramble(key) % (m->length[d] - SERIES_MORE + 1);
            fill(m->values[d] + at[d], key + 1, SERIES_MORE);
            fill(m->values[d] + m->length[d], key + 32, SERIES_MORE);
            m->length[d] += SERIES_MORE;
        }
        change(name, m, at, SERIES_MORE, SERIES_MORE);
    } else if (strcmp(work, "value") == 0) {
        at[0] = scramble(v * 64) % VALUE_ELEMENTS;
        fill(m->values[0] + at[0], v * 64 + 1, 1);
        change(name, m, at, 1, 0);
    } else {
        fill(m->values[0] + m->length[0], v * 1000, APPEND_MORE);
        m->length[0] += APPEND_MORE;
        change(name, m, at, 0, APPEND_MORE);
    }
}

int main(int argc, char **argv)
{
    const char *work = argc == 4 ? argv[1] : "", *name = argc == 4 ? argv[2] : "";
    uint64_t n = argc == 4 ? strtoull(argv[3], NULL, 10) : 0, shown = 10;
    int told = 0;
    double took = 0;
    model m;
    struct rusage used;
    unsigned major, minor, release;

    if (n < 1 || (strcmp(work, "series") != 0 && strcmp(work, "value") != 0 && strcmp(work, "append") != 0))
        errx(2, "usage: onion series|value|append FILE N");
    /* version 0 is what revision 1 has: revision 0 is the file before anything was written */
    below = MUST(H5Pcreate(H5P_FILE_ACCESS));
    MUST(H5Pset_fapl_sec2(below));
    m = begin(work, n);
    create(name, &m);
    printf("{\"points\": [");
    for (uint64_t v = 1; v <= n; v++) {
        double start = now();
        one_version(work, name, &m, v);
        took += now() - start;
        if (v == shown || v == n)
            printf("%s[%llu, %.9f, %lld]", told++ > 0 ? ", " : "", (unsigned long long)v, took, bytes_of(name));
        if (v == shown)
            shown = shown % 3 == 0 ? shown / 3 * 10 : shown * 3;
    }
    compare(name, &m, H5FD_ONION_FAPL_INFO_REVISION_ID_LATEST);
    compare(name, &m, n + 1);
    end(&m);
    m = begin(work, n);
    compare(name, &m, 1);
    MUST(H5get_libversion(&major, &minor, &release));
    getrusage(RUSAGE_SELF, &used);
    printf("], \"a version\": %.9f, \"file, bytes\": %lld", took / (double)n, bytes_of(name));
    end(&m);
    if (strcmp(work, "append") == 0)
        printf(", \"beyond the data, bytes\": %.1f",
               ((double)bytes_of(name) - (double)(n + 1) * APPEND_MORE * 8) / (double)n);
    printf(", \"memory\": %lld, \"hdf5\": \"%u.%u.%u\"}\n", (long long)used.ru_maxrss * 1024, major, minor, release);
    return 0;
}
