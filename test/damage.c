/* Damaged files: whatever the bytes of a file with history are, reading it, writing to it and `h5cow verify` end by
 * themselves, and reading gives what was written or an error.
 *
 * A small file with every kind of table is made through the connector. Then, again and again, a copy is damaged at
 * random places, and child processes look at all of it: the head, the versions, one write, the command. Without
 * --anywhere the places are the raw data of what h5cow keeps (tables, index nodes, chunks); with it they are the whole
 * file. Where a child crashes, another one reads the same file natively: what kills HDF5 itself is counted, and is not
 * our failure.
 */
#include "die.h"
#include "files.h"
#include "lowest_error.h"
#include "waiting.h"
#include "random.h"
#include "sanitized.h"

#include <hdf5.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSIONS    3
#define SECONDS     30 /* of computing, for one child: longer is a hang */
#define REGIONS_MAX 4096

static const char usage[] = "usage: damage [--mutations N] [--long] [--anywhere] [--verbose] [--command H5COW]\n"
                            "              [--dir FOLDER]\n";

/* What a child has found: in memory that it shares with us. */
typedef struct finding {
    char step[64]; /* what it was doing */
    uint64_t hash[VERSIONS + 1];
    bool read[VERSIONS + 1];  /* all of it, without an error */
    char error[LOWEST_ERROR]; /* the lowest record of the first failure */
} finding;

typedef struct region {
    uint64_t start, size;
    unsigned table; /* which dataset it belongs to */
} region;

static struct {
    unsigned char *healthy, *bytes;
    size_t size;
    region *regions; /* where damage is done */
    size_t count;
    unsigned tables;
    uint64_t total; /* bytes in them */
} file;
static finding *found;
static const char *command;
static char path[4096];

static uint64_t random_state;

static uint64_t next_random(void)
{
    return splitmix64(&random_state);
}

static uint64_t below(uint64_t n)
{
    return next_random() % n;
}

/* ---- the file ---- */

static void write_all(hid_t group, const char *name, hid_t type, int rank, const hsize_t extent[],
                      const hsize_t chunk[], unsigned deflate, const void *values)
{
    const hsize_t unlimited[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    hid_t space = H5Screate_simple(rank, extent, chunk == NULL ? NULL : unlimited),
          list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset;

    if (chunk != NULL)
        H5Pset_chunk(list, rank, chunk);
    if (deflate > 0) {
        H5Pset_shuffle(list);
        H5Pset_deflate(list, deflate);
    }
    dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (dataset < 0 || H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        die("cannot make the file");
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
}

static void change(hid_t at, const char *name, int32_t value)
{
    hid_t dataset = H5Dopen2(at, name, H5P_DEFAULT), space = H5Dget_space(dataset), one = H5Screate(H5S_SCALAR);
    hsize_t where[2] = {(hsize_t)value % 7, (hsize_t)value % 5};

    H5Sselect_elements(space, H5S_SELECT_SET, 1, where);
    if (H5Dwrite(dataset, H5T_NATIVE_INT32, one, space, H5P_DEFAULT, &value) < 0)
        die("cannot change the file");
    H5Sclose(one);
    H5Sclose(space);
    H5Dclose(dataset);
}

static void make_file(void)
{
    static int32_t numbers[60 * 50];
    static const char *texts[40];
    hsize_t plane[] = {60, 50}, tile[] = {6, 5}, line[] = {40}, piece[] = {8}, flat[] = {1500};
    hid_t id, group, string = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR), attribute;

    for (int i = 0; i < 60 * 50; i++)
        numbers[i] = i * i;
    for (int i = 0; i < 40; i++)
        texts[i] = i % 3 == 0 ? "a text" : "another text, which is longer";
    H5Tset_size(string, H5T_VARIABLE);
    if ((id = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) < 0)
        die("cannot make the file");
    group = H5Gcreate2(id, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    write_all(group, "tiles", H5T_STD_I32LE, 2, plane, tile, 0, numbers);
    write_all(group, "packed", H5T_STD_I32LE, 2, plane, tile, 6, numbers);
    write_all(id, "flat", H5T_STD_I32LE, 1, flat, NULL, 0, numbers);
    write_all(id, "texts", string, 1, line, piece, 0, texts);
    attribute = H5Acreate2(group, "answer", H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(attribute, H5T_NATIVE_INT32, numbers + 7);
    H5Aclose(attribute);
    H5Lcreate_soft("/group/tiles", id, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(id, "/group/packed", id, "hard", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    H5Sclose(scalar);
    H5Tclose(string);
    if (H5Fclose(id) < 0)
        die("cannot close the file");
    for (int32_t version = 2; version <= VERSIONS; version++) {
        id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        change(id, "group/tiles", 1000 * version + 1);
        change(id, "group/packed", 1000 * version + 2);
        if (version == VERSIONS)
            H5Ldelete(id, "soft", H5P_DEFAULT);
        if (H5Fclose(id) < 0)
            die("cannot close the file");
    }
}

/* ---- where damage is done ---- */

static herr_t note_chunks(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    hid_t dataset;
    hsize_t chunks = 0, offset[H5S_MAX_RANK], size;
    haddr_t address;
    unsigned mask;

    (void)context;
    if (info->type != H5O_TYPE_DATASET || (dataset = H5Dopen2(root, name, H5P_DEFAULT)) < 0)
        return 0;
    H5E_BEGIN_TRY
    {
        H5Dget_num_chunks(dataset, H5S_ALL, &chunks);
        for (hsize_t i = 0; i < chunks && file.count < REGIONS_MAX; i++)
            if (H5Dget_chunk_info(dataset, H5S_ALL, i, offset, &mask, &address, &size) >= 0 && address != HADDR_UNDEF)
                file.regions[file.count++] = (region){address, size, file.tables};
    }
    H5E_END_TRY
    file.tables += file.count > 0 && file.regions[file.count - 1].table == file.tables;
    H5Dclose(dataset);
    return 0;
}

static hid_t native_list(void)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), native = H5VLregister_connector_by_name("native", H5P_DEFAULT);

    if (H5Pset_vol(list, native, NULL) < 0)
        die("no native connector");
    H5VLclose(native);
    return list;
}

static void find_regions(bool anywhere)
{
    hid_t list = native_list(), id = H5Fopen(path, H5F_ACC_RDONLY, list);

    if ((file.regions = calloc(REGIONS_MAX, sizeof *file.regions)) == NULL || id < 0)
        die("cannot look at the file");
    if (H5Lexists(id, "_versioned_data", H5P_DEFAULT) <= 0)
        die("the connector was not used: the file has no history");
    if (anywhere) {
        file.regions[file.count++] = (region){0, file.size, 0};
        file.tables = 1;
    } else {
        hid_t history = H5Gopen2(id, "_versioned_data", H5P_DEFAULT);
        H5Ovisit3(history, H5_INDEX_NAME, H5_ITER_NATIVE, note_chunks, NULL, H5O_INFO_BASIC);
        H5Gclose(history);
    }
    H5Fclose(id);
    H5Pclose(list);
    for (size_t i = 0; i < file.count; i++)
        file.total += file.regions[i].size;
}

/* Each dataset is as likely as another, whatever its size: tables are small, and chunks are many. */
static const region *any_region(void)
{
    unsigned table = (unsigned)below(file.tables);
    size_t count = 0, chosen;

    for (size_t i = 0; i < file.count; i++)
        count += file.regions[i].table == table;
    chosen = below(count);
    for (size_t i = 0; i < file.count; i++)
        if (file.regions[i].table == table && chosen-- == 0)
            return &file.regions[i];
    return file.regions;
}

static void damage_once(void)
{
    static const uint64_t values[] = {
        0, 1, 2, 255, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_MAX, INT64_MAX, (uint64_t)1 << 32, 64, 4096};
    const region *r = any_region();
    uint64_t at = r->start + below(r->size), value;

    switch (below(4)) {
    case 0:
        file.bytes[at] ^= (unsigned char)(1u << below(8));
        break;
    case 1:
        file.bytes[at] = (unsigned char)next_random();
        break;
    case 2: { /* a number, where numbers are */
        size_t width = below(2) ? 8 : 4;
        at -= (at - r->start) % width;
        value = below(3) == 0 ? below(2 * file.size) : values[below(sizeof values / sizeof *values)];
        for (size_t i = 0; i < width && at + i < r->start + r->size; i++)
            file.bytes[at + i] = (unsigned char)(value >> 8 * i);
        break;
    }
    case 3: /* a stretch of one byte, or of another place */
        value = next_random();
        for (uint64_t n = 1 + below(40); n > 0 && at < r->start + r->size; n--, at++)
            file.bytes[at] = value & 1 ? file.bytes[(at + 512) % file.size] : (unsigned char)(value >> 8);
        break;
    }
}

static void write_damaged(const char *name)
{
    int out = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (out < 0 || write(out, file.bytes, file.size) != (ssize_t)file.size || close(out) < 0)
        die("%s", name);
}

/* The file has times in it, so it is not the same in the next run: what a test failed with is kept. */
static void keep(unsigned long mutation)
{
    char name[sizeof path + 40];

    snprintf(name, sizeof name, "%s-%lu", path, mutation);
    write_damaged(name);
}

static void read_file(void)
{
    int in = open(path, O_RDONLY | O_CLOEXEC);
    off_t size = in < 0 ? -1 : lseek(in, 0, SEEK_END);

    if (size <= 0 || (file.healthy = malloc((size_t)size)) == NULL || (file.bytes = malloc((size_t)size)) == NULL ||
        pread(in, file.healthy, (size_t)size, 0) != size)
        die("%s", path);
    file.size = (size_t)size;
    close(in);
}

/* ---- what a child does ---- */

typedef struct reading {
    uint64_t hash;
    bool failed;
} reading;

static void hash_bytes(reading *r, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        r->hash = (r->hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static void failed(reading *r)
{
    r->failed = true;
    if (found->error[0] == '\0')
        lowest_error(H5E_DEFAULT, found->error);
    if (found->error[0] == '\0')
        snprintf(found->error, sizeof found->error, "(no error record)");
}

static void read_dataset(hid_t root, const char *name, reading *r)
{
    hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT), space = H5I_INVALID_HID, type = H5I_INVALID_HID;
    hssize_t elements;
    size_t size;
    void *values;

    if (dataset < 0 || (space = H5Dget_space(dataset)) < 0 || (type = H5Dget_type(dataset)) < 0 ||
        (elements = H5Sget_simple_extent_npoints(space)) < 0 || (size = H5Tget_size(type)) == 0) {
        failed(r);
        goto done;
    }
    if (elements > 1 << 22 || size > 4096) { /* the header says so, not the history: it is HDF5's to believe */
        r->failed = true;
        goto done;
    }
    if ((values = calloc((size_t)elements + 1, size)) == NULL)
        die("no memory");
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        failed(r);
    else if (H5Tis_variable_str(type) > 0) {
        for (hssize_t i = 0; i < elements; i++)
            if (((char **)values)[i] != NULL)
                hash_bytes(r, ((char **)values)[i], strlen(((char **)values)[i]));
        H5Treclaim(type, space, H5P_DEFAULT, values);
    } else if (H5Tdetect_class(type, H5T_VLEN) <= 0 && H5Tdetect_class(type, H5T_STRING) <= 0)
        hash_bytes(r, values, (size_t)elements * size);
    free(values);
done:
    H5E_BEGIN_TRY
    {
        H5Tclose(type);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    H5E_END_TRY
}

static herr_t read_object(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    reading *r = context;

    hash_bytes(r, name, strlen(name));
    if (info->type == H5O_TYPE_DATASET)
        read_dataset(root, name, r);
    return 0;
}

static reading read_all(const char *name, hid_t list)
{
    reading r = {.hash = 1};
    hid_t id = H5Fopen(name, H5F_ACC_RDONLY, list);

    if (id < 0) {
        failed(&r);
        return r;
    }
    if (H5Ovisit3(id, H5_INDEX_NAME, H5_ITER_INC, read_object, &r, H5O_INFO_BASIC) < 0)
        failed(&r);
    if (H5Fclose(id) < 0)
        failed(&r);
    return r;
}

static void look(void)
{
    char name[sizeof path + 16];

    for (int version = 0; version <= VERSIONS; version++) {
        snprintf(name, sizeof name, version == 0 ? "%s" : "%s@%d", path, version);
        snprintf(found->step, sizeof found->step, "reading %s", strrchr(name, '/') + 1);
        reading r = read_all(name, H5P_DEFAULT);
        found->hash[version] = r.hash;
        found->read[version] = !r.failed;
    }
}

static void look_natively(void)
{
    snprintf(found->step, sizeof found->step, "reading natively");
    read_all(path, native_list());
}

/* Partly overwrites a chunk, grows a dataset, makes a new one. */
static void write_something(void)
{
    static int32_t numbers[3000];
    hsize_t extent[] = {66, 50}, line[] = {3000};
    hid_t id, dataset;

    snprintf(found->step, sizeof found->step, "writing");
    if ((id = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT)) < 0)
        return;
    if ((dataset = H5Dopen2(id, "group/tiles", H5P_DEFAULT)) >= 0) {
        hid_t space = H5Dget_space(dataset), one = H5Screate(H5S_SCALAR);
        hsize_t where[2] = {1, 2};
        if (H5Sselect_elements(space, H5S_SELECT_SET, 1, where) >= 0)
            H5Dwrite(dataset, H5T_NATIVE_INT32, one, space, H5P_DEFAULT, numbers);
        H5Dset_extent(dataset, extent);
        H5Sclose(one);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    if ((dataset = H5Dopen2(id, "flat", H5P_DEFAULT)) >= 0) {
        H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
        H5Dclose(dataset);
    }
    H5Ldelete(id, "hard", H5P_DEFAULT);
    H5E_BEGIN_TRY
    {
        hid_t space = H5Screate_simple(1, line, NULL);
        if ((dataset = H5Dcreate2(id, "new", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0) {
            H5Dwrite(dataset, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
            H5Dclose(dataset);
        }
        H5Sclose(space);
    }
    H5E_END_TRY
    H5Fclose(id);
}

static void verify(void)
{
    int nothing = open("/dev/null", O_WRONLY);

    snprintf(found->step, sizeof found->step, "h5cow verify");
    dup2(nothing, STDOUT_FILENO);
    execl(command, command, "verify", path, (char *)NULL);
    die("%s", command);
}

/* ---- children ---- */

/* 0, or the signal that ended it; errors of a sanitizer are SIGABRT. What it prints is kept for a failure. */
static int in_child(void (*work)(void), const char *log)
{
    int state = 0;
    pid_t child;

    memset(found, 0, sizeof *found);
    fflush(NULL);
    if ((child = fork()) < 0)
        die("fork");
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(out, STDERR_FILENO);
        limit_computing(SECONDS);
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
        work();
        fflush(NULL);
        _exit(0);
    }
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            die("waitpid");
    if (WIFSIGNALED(state))
        return WTERMSIG(state);
    return WEXITSTATUS(state) > 2 ? SIGABRT : 0; /* a sanitizer's own exit code */
}

static void show(const char *log)
{
    char line[400];
    FILE *in = fopen(log, "r");

    for (int n = 0; in != NULL && n < 30 && fgets(line, sizeof line, in) != NULL; n++)
        fprintf(stderr, "    %s", line);
    if (in != NULL)
        fclose(in);
}

/* ---- the test ---- */

static unsigned long number(const char *text)
{
    char *end;
    unsigned long n = text == NULL ? 0 : strtoul(text, &end, 10);

    if (text == NULL || *end != '\0') {
        fputs(usage, stderr);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    char folder[3000], log[sizeof folder + 20];
    const char *dir = getenv("TMPDIR");
    unsigned long mutations = 800, seed = test_seed(), done, noticed = 0, harmless = 0, native = 0, bad = 0;
    bool anywhere = false, verbose = false;
    finding healthy;

    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--mutations") == 0)
            mutations = number(argv[++i]);
        else if (strcmp(argv[i], "--long") == 0)
            mutations = 20000;
        else if (strcmp(argv[i], "--anywhere") == 0)
            anywhere = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--command") == 0 && i + 1 < argc)
            command = argv[++i];
        else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
            dir = argv[++i];
        else
            number(NULL);

    /* in memory, if there is such a place: thousands of files are written */
    snprintf(folder, sizeof folder, "%s/h5cow-damage-XXXXXX", dir != NULL ? dir : memory_folder());
    if (mkdtemp(folder) == NULL)
        die("%s", folder);
    snprintf(path, sizeof path, "%s/f.h5", folder);
    snprintf(log, sizeof log, "%s/log", folder);
    setenv("ASAN_OPTIONS", SANITIZED, 1); /* of the command */
    if ((found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) == MAP_FAILED)
        die("no memory");
    make_file();
    read_file();
    find_regions(anywhere);
    if (in_child(look, log) != 0 || !found->read[0] || !found->read[1]) {
        fprintf(stderr, "damage: the healthy file cannot be read: %s\n", found->error);
        show(log);
        return 1;
    }
    healthy = *found;
    printf("%zu bytes, %zu places with %llu bytes, %lu mutations from seed %lu\n", file.size, file.count,
           (unsigned long long)file.total, mutations, seed);

    for (done = 0; done < mutations && bad < 5; done++) {
        int signal;
        random_state = (uint64_t)seed << 32 | done;
        memcpy(file.bytes, file.healthy, file.size);
        for (uint64_t n = 1 + below(3) * below(3); n > 0; n--)
            damage_once();
        write_damaged(path);
        signal = in_child(look, log);
        if (signal == 0) {
            bool all = true;
            for (int v = 0; v <= VERSIONS; v++) {
                all = all && found->read[v];
                if (found->read[v] && found->hash[v] != healthy.hash[v] && !anywhere) {
                    fprintf(stderr, "seed %lu, mutation %lu: wrong values and no error (%s%.0d)\n", seed, done,
                            v == 0 ? "head" : "version ", v);
                    keep(done);
                    bad++;
                    break;
                }
            }
            if (verbose)
                printf("%lu: %s\n", done, all ? "no consequence" : found->error);
            if (all)
                harmless++;
            else
                noticed++;
            if (strcmp(found->error, "(no error record)") == 0) {
                fprintf(stderr, "seed %lu, mutation %lu: a failure without an error record\n", seed, done);
                keep(done);
                bad++;
            }
        }
        if (signal == 0 && command != NULL && done % 4 == 0)
            signal = in_child(verify, log);
        if (signal == 0 && done % 2 == 0)
            signal = in_child(write_something, log);
        if (signal != 0) {
            finding crash = *found;
            char other[sizeof log + 8];
            snprintf(other, sizeof other, "%s-native", log);
            write_damaged(path);
            if (in_child(look_natively, other) != 0)
                native++;
            else {
                fprintf(stderr, "seed %lu, mutation %lu: %s while %s\n", seed, done, strsignal(signal), crash.step);
                show(log);
                keep(done);
                bad++;
            }
        }
    }
    printf("%lu mutations: %lu noticed, %lu without consequence, %lu that crash HDF5 natively, %lu failures\n", done,
           noticed, harmless, native, bad);
    if (bad == 0) {
        char other[sizeof log + 8];
        snprintf(other, sizeof other, "%s-native", log);
        unlink(other);
        unlink(log);
        unlink(path);
        rmdir(folder);
    } else
        printf("files: %s\n", folder);
    return bad > 0 || (!anywhere && noticed < mutations / 10) ? 1 : 0;
}
