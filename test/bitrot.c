/* Bit rot: bits of a file with history turn over while it lies on the disk. Whatever is read afterwards, through the
 * connector, is right or an error; or h5cow verify tells of the damage.
 *
 * Two files: a small one (three versions, all kinds of datasets and attributes), of which each byte is damaged twice,
 * all bits and one bit; a larger one of which --bits random bits are. Of the small one a second time with its last commit
 * still waiting in the journal. A third file has some hundred versions and more than a thousand chunks, so that rows of `snapshots` and
 * equal chunks are found by runs (snapshot_rows, hashes): of it each byte is damaged once, and what nothing but writing reads is
 * damaged before a program writes; then what this has made must be right or an error as well. Damage is done to what pread returns, in processes of many damages each.
 *
 * What is read: the head and every version, in each all groups, links, datasets with their elements and creation
 * properties, and all attributes. Each object that can be read must be as it was, also where others give errors; and
 * where nothing gives an error, all must be there. A byte that no read touches while all this is read from the healthy
 * file is provably unused: it is counted, not damaged. And an opening that does not touch a byte is not repeated.
 *
 * Chunks are cut into pieces of 16 bytes and more, so composed chunks are in both files.
 *
 * Run through the connector (HDF5_VOL_CONNECTOR=h5cow).
 */
#include "die.h"
#include "files.h"
#include "waiting.h"
#include "random.h"
#include "results.h"
#include "sanitized.h"

#include <hdf5.h>

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERSIONS_MAX 12
#define OBJECTS_MAX  4096
#define BATCH        400
#define MANY         270 /* versions of the file with many */
#define MANY_CHUNKS  1100
#define SPARSER      8  /* of this larger file with --every */
#define SECONDS      20 /* of computing, for one damage: longer is a hang */
#define MEMORY       4  /* GiB: HDF5 allocates, and fills, as many mappings as a damaged virtual layout says */

static const char usage[] = "usage: bitrot [--bits N] [--part small|pending|many|large] [--every N] [--jobs N]\n"
                            "              [--flip BYTE:MASK, in this process, for a debugger]\n"
                            "              [--command H5COW] [--verbose]\n";

static char folder[64], path[sizeof folder + 16];
static char written_path[sizeof path + 16]; /* a copy of the file that this process writes to */
static const char *command;
static bool verbose;
static const char *one_flip;
static unsigned jobs = 2;
static uint64_t random_state;

static uint64_t next_random(void)
{
    return splitmix64(&random_state);
}

/* ---- in front of the system's pread ---- */

static size_t damaged_at = SIZE_MAX;
static uint8_t damage;
static uint8_t *touched; /* a byte for each of the file's: was it read? NULL: nobody asks */
static size_t touched_size;

static ssize_t rotten_pread(int fd, void *buffer, size_t size, off_t offset)
{
    ssize_t got = (ssize_t)syscall(SYS_pread64, fd, buffer, size, offset);
    size_t at = (size_t)offset;

    if (got <= 0)
        return got;
    if (touched != NULL && at < touched_size)
        memset(touched + at, 1, (size_t)got < touched_size - at ? (size_t)got : touched_size - at);
    if (damaged_at >= at && damaged_at - at < (size_t)got)
        ((uint8_t *)buffer)[damaged_at - at] ^= damage;
    return got;
}

/* By the names that the library and the connector call it. */
ssize_t stand_in(int fd, void *buffer, size_t size, off_t offset) __asm__("pread");
ssize_t stand_in(int fd, void *buffer, size_t size, off_t offset)
{
    return rotten_pread(fd, buffer, size, offset);
}

ssize_t stand_in_64(int fd, void *buffer, size_t size, off_t offset) __asm__("pread64");
ssize_t stand_in_64(int fd, void *buffer, size_t size, off_t offset)
{
    return rotten_pread(fd, buffer, size, offset);
}

/* ---- the files ---- */

static void make_dataset(hid_t at, const char *name, hid_t type, int rank, const hsize_t extent[],
                         const hsize_t chunk[], bool packed, bool compact, const void *values)
{
    const hsize_t unlimited[] = {H5S_UNLIMITED, H5S_UNLIMITED};
    hid_t space =
        rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extent, chunk == NULL || packed ? NULL : unlimited);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), set;

    if (chunk != NULL)
        H5Pset_chunk(list, rank, chunk);
    if (packed)
        H5Pset_deflate(list, 6);
    if (compact)
        H5Pset_layout(list, H5D_COMPACT);
    set = H5Dcreate2(at, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    must(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
}

static void make_attribute(hid_t at, const char *name, hid_t type, hsize_t count, const void *values)
{
    hid_t space = count == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &count, NULL), attribute;

    if (H5Aexists(at, name) > 0)
        H5Adelete(at, name);
    attribute = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    must(attribute >= 0 && H5Awrite(attribute, type, values) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

static void overwrite(hid_t file, const char *name, const void *values)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = set < 0 ? -1 : H5Dget_type(set);

    must(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Tclose(type);
    H5Dclose(set);
}

static hid_t text_type(void)
{
    hid_t string = H5Tcopy(H5T_C_S1);

    H5Tset_size(string, H5T_VARIABLE);
    return string;
}

typedef struct pair {
    int number;
    char *text;
} pair;

static hid_t pair_type(void)
{
    hid_t string = text_type(), type = H5Tcreate(H5T_COMPOUND, sizeof(pair));

    H5Tinsert(type, "number", HOFFSET(pair, number), H5T_NATIVE_INT);
    H5Tinsert(type, "text", HOFFSET(pair, text), string);
    H5Tclose(string);
    return type;
}

/* State V of a file; SCALE 1: small. */
static void write_state(hid_t file, int v, hsize_t scale)
{
    static int numbers[100000];
    static const char *texts[] = {"a text", "another text", "one that is longer than the others", "", "the last one"};
    const hsize_t plane[] = {20 * scale, 12}, tile[] = {5, 6}, line[] = {5}, piece[] = {2}, flat[] = {1200 * scale};
    const hsize_t few[] = {6}, patched[] = {240}, part[] = {60};
    int numbers_then[240];
    hid_t string = text_type(), pairs = pair_type(), group, named;
    pair two[2] = {{v, "first of two"}, {10 * v, "second of two"}};
    char name[32];

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        numbers[i] = (int)i * v + v;
    texts[1] = v % 2 ? "another text" : "an other text";
    if (v == 1) {
        group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        make_dataset(file, "group/tiles", H5T_STD_I32LE, 2, plane, tile, false, false, numbers);
        make_dataset(file, "packed", H5T_STD_I32LE, 2, plane, tile, true, false, numbers);
        make_dataset(file, "flat", H5T_STD_I32LE, 1, flat, NULL, false, false, numbers);
        make_dataset(file, "patched", H5T_STD_I32LE, 1, patched, part, false, false, numbers);
        make_dataset(file, "texts", string, 1, line, piece, false, false, texts);
        make_dataset(file, "tiny", H5T_STD_I32LE, 1, few, NULL, false, false, numbers);
        make_dataset(file, "compact", H5T_STD_I32LE, 1, few, NULL, false, true, numbers);
        make_dataset(file, "scalar", H5T_STD_I32LE, 0, NULL, NULL, false, false, numbers + 3);
        make_dataset(file, "word", string, 0, NULL, NULL, false, false, &texts[1]);
        make_dataset(file, "pairs", pairs, 1, &(hsize_t){2}, NULL, false, false, two);
        named = H5Tcopy(H5T_STD_I16BE);
        H5Tcommit2(file, "named", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Tclose(named);
        H5Lcreate_soft("/group/tiles", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_hard(file, "/group/tiles", file, "hard", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_external("other.h5", "/x", file, "external", H5P_DEFAULT, H5P_DEFAULT);
        for (hsize_t i = 0; i < 10 * (scale - 1); i++) {
            snprintf(name, sizeof name, "group/small%d", (int)i);
            make_dataset(file, name, H5T_STD_I32LE, 1, few, NULL, false, false, numbers + i);
        }
    } else {
        overwrite(file, "group/tiles", numbers);
        for (int i = 0; i < 240; i++)
            numbers_then[i] = i + 1 + (i % 60 == v ? 1000 * v : 0); /* as version 1 has it, but for four elements */
        overwrite(file, "patched", numbers_then);
        overwrite(file, "tiny", numbers);
        overwrite(file, "word", &texts[1]);
        if (v % 2 == 0) {
            overwrite(file, "flat", numbers);
            overwrite(file, "texts", texts);
            overwrite(file, "pairs", two);
        } else {
            overwrite(file, "packed", numbers);
            overwrite(file, "scalar", numbers + 7);
            overwrite(file, "compact", numbers);
        }
    }
    group = H5Gopen2(file, "group", H5P_DEFAULT);
    make_attribute(group, "fixed", H5T_STD_I32LE, 3, numbers + v);
    make_attribute(group, "text", string, 0, &texts[2]);
    make_attribute(group, "texts", string, 5, texts);
    H5Gclose(group);
    group = H5Dopen2(file, "flat", H5P_DEFAULT);
    make_attribute(group, "units", string, 0, &texts[v % 2]);
    make_attribute(group, "large", H5T_STD_I32LE, scale > 1 ? 3000 : 20, numbers);
    H5Dclose(group);
    H5Tclose(string);
    H5Tclose(pairs);
}

static void make_file(int versions, hsize_t scale, bool pending)
{
    int held = -1;

    for (int v = 1; v <= versions; v++) {
        hid_t file = v == 1 ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                            : H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        must(file >= 0);
        if (pending && v == versions) {
            held = open(path, O_RDONLY | O_CLOEXEC);
            must(held >= 0 && flock(held, LOCK_SH) == 0);
        }
        write_state(file, v, scale);
        must(H5Fclose(file) >= 0);
    }
    if (held >= 0)
        close(held);
}

/* A few values of each dataset of the file with many versions. What is written to `few` a chunk of `many` has. */
static bool change_many(const char *name, int v)
{
    static const struct {
        const char *name;
        hsize_t first, count;
    } changed[] = {{"tiny", 0, 1}, {"group/tiny", 1, 1}, {"patched", 100, 1}, {"few", 4, 4}};
    hid_t file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT);
    bool good = file >= 0;

    for (size_t i = 0; file >= 0 && i < (v > MANY ? 4 : 3); i++) {
        const int same[] = {4000, 4001, 4002, 4003}, *values = changed[i].count == 1 ? &v : same;
        hid_t set = H5Dopen2(file, changed[i].name, H5P_DEFAULT), space = set < 0 ? -1 : H5Dget_space(set),
              memory = H5Screate_simple(1, &changed[i].count, NULL);

        good = space >= 0 &&
               H5Sselect_hyperslab(space, H5S_SELECT_SET, &changed[i].first, NULL, &changed[i].count, NULL) >= 0 &&
               H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0 && good;
        H5Sclose(memory);
        if (space >= 0)
            H5Sclose(space);
        if (set >= 0)
            H5Dclose(set);
    }
    return (file < 0 || H5Fclose(file) >= 0) && good;
}

/* Runs: HDF5 without the connector sees them. */
static void must_have_runs(void)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), native = H5VLregister_connector_by_name("native", H5P_DEFAULT), file;
    H5G_info_t hashes;

    must(H5Pset_vol(list, native, NULL) >= 0 && (file = H5Fopen(path, H5F_ACC_RDONLY, list)) >= 0);
    must(H5Lexists(file, "/_versioned_data/snapshot_rows", H5P_DEFAULT) > 0 &&
         H5Gget_info_by_name(file, "/_versioned_data/hashes", &hashes, H5P_DEFAULT) >= 0 && hashes.nlinks > 0);
    H5Fclose(file);
    H5Pclose(list);
    H5VLclose(native);
}

static void make_many(void)
{
    static int numbers[4 * MANY_CHUNKS];
    const hsize_t few[] = {6}, patched[] = {240}, part[] = {60}, line[] = {4 * MANY_CHUNKS}, piece[] = {4},
                  pair_of[] = {8};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), group;

    must(file >= 0);
    for (int i = 0; i < 4 * MANY_CHUNKS; i++)
        numbers[i] = i;
    group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    make_dataset(file, "tiny", H5T_STD_I32LE, 1, few, NULL, false, false, numbers);
    make_dataset(file, "group/tiny", H5T_STD_I32LE, 1, few, NULL, false, false, numbers);
    make_dataset(file, "group/rare", H5T_STD_I32LE, 1, patched, part, false, false, numbers);
    make_dataset(file, "patched", H5T_STD_I32LE, 1, patched, part, false, false, numbers);
    make_dataset(file, "many", H5T_STD_I32LE, 1, line, piece, false, false, numbers);
    make_dataset(file, "few", H5T_STD_I32LE, 1, pair_of, piece, false, false, numbers);
    make_attribute(group, "fixed", H5T_STD_I32LE, 3, numbers);
    H5Gclose(group);
    must(H5Fclose(file) >= 0);
    must((file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0 && H5Ldelete(file, "many", H5P_DEFAULT) >= 0 &&
         H5Fclose(file) >= 0);
    for (int v = 3; v <= MANY; v++)
        must(change_many(path, v));
    must_have_runs();
}

/* ---- reading everything ---- */

typedef struct seen_object {
    uint64_t path, digest;
    char name[32]; /* for messages: the last of the path */
} seen_object;

/* What one opening shows. */
typedef struct picture {
    seen_object object[OBJECTS_MAX];
    size_t count;
    bool failed;
} picture;

static picture *healthy; /* head, version 1, version 2 ... */
static int views;
/* Of the file with many versions: those that are looked at, 0 the head; and what they show when it was written to. */
static const int many_views[] = {0, MANY / 2, MANY, 1, MANY + 1};
enum { MANY_READ = 4, MANY_WRITTEN = 5, SLOW_TO_READ = 3 };
static bool many;
static picture *healthy_written; /* NULL: nothing is written */

static void add(uint64_t *sum, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *sum = (*sum ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
}

static void add_number(uint64_t *sum, uint64_t number)
{
    add(sum, &number, sizeof number);
}

static void add_text(uint64_t *sum, const char *text)
{
    if (text == NULL)
        add_number(sum, UINT64_MAX);
    else
        add(sum, text, strlen(text) + 1);
}

/* 0, or -1: it cannot be read. */
static int add_type(uint64_t *sum, hid_t type)
{
    uint8_t bytes[1000];
    size_t size = sizeof bytes;

    if (H5Tencode(type, NULL, &size) < 0 || size > sizeof bytes || H5Tencode(type, bytes, &size) < 0)
        return -1;
    add(sum, bytes, size);
    return 0;
}

/* *COUNT: elements, at most a million. */
static int add_space(uint64_t *sum, hid_t space, size_t *count)
{
    hsize_t extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, most);
    hssize_t n = H5Sget_simple_extent_npoints(space);

    if (rank < 0 || n < 0 || n > 1000000)
        return -1;
    add_number(sum, (uint64_t)rank);
    add(sum, extent, (size_t)rank * sizeof *extent);
    add(sum, most, (size_t)rank * sizeof *most);
    *count = (size_t)n;
    return 0;
}

static void add_values(uint64_t *sum, hid_t type, const void *values, size_t count)
{
    if (H5Tis_variable_str(type) > 0)
        for (size_t i = 0; i < count; i++)
            add_text(sum, ((char *const *)values)[i]);
    else if (H5Tget_class(type) == H5T_COMPOUND)
        for (size_t i = 0; i < count; i++) {
            add_number(sum, (uint64_t)((const pair *)values)[i].number);
            add_text(sum, ((const pair *)values)[i].text);
        }
    else
        add(sum, values, count * H5Tget_size(type));
}

static int add_dcpl(uint64_t *sum, hid_t list)
{
    hsize_t chunk[H5S_MAX_RANK];
    H5D_alloc_time_t alloc;
    H5D_fill_time_t fill;
    H5D_fill_value_t value;
    int rank, filters;

    if (H5Pget_alloc_time(list, &alloc) < 0 || H5Pget_fill_time(list, &fill) < 0 ||
        H5Pfill_value_defined(list, &value) < 0 || (filters = H5Pget_nfilters(list)) < 0)
        return -1;
    add_number(sum, (uint64_t)H5Pget_layout(list));
    add_number(sum, (uint64_t)alloc);
    add_number(sum, (uint64_t)fill);
    add_number(sum, (uint64_t)value);
    if (H5Pget_layout(list) == H5D_CHUNKED) {
        if ((rank = H5Pget_chunk(list, H5S_MAX_RANK, chunk)) < 0)
            return -1;
        add(sum, chunk, (size_t)rank * sizeof *chunk);
    }
    for (int i = 0; i < filters; i++) {
        unsigned flags, values[20], config;
        size_t n = 20;
        H5Z_filter_t id = H5Pget_filter2(list, (unsigned)i, &flags, &n, values, 0, NULL, &config);
        if (id < 0)
            return -1;
        add_number(sum, (uint64_t)id);
        add(sum, values, (n < 20 ? n : 20) * sizeof *values);
    }
    return 0;
}

static int add_dataset(uint64_t *sum, hid_t set)
{
    hid_t file_type = H5Dget_type(set), type = H5I_INVALID_HID, space = H5Dget_space(set),
          list = H5Dget_create_plist(set);
    size_t count;
    void *values = NULL;
    int status = -1;

    if (file_type >= 0 && H5Tget_size(file_type) < 10000)
        type = H5Tget_class(file_type) == H5T_COMPOUND ? pair_type() : H5Tcopy(file_type);
    if (type < 0 || space < 0 || list < 0 || add_type(sum, file_type) < 0 || add_space(sum, space, &count) < 0 ||
        add_dcpl(sum, list) < 0 || (values = calloc(count + 1, H5Tget_size(type))) == NULL)
        goto done;
    if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        goto done;
    add_values(sum, type, values, count);
    H5Treclaim(type, space, H5P_DEFAULT, values);
    status = 0;
done:
    free(values);
    H5E_BEGIN_TRY
    {
        H5Pclose(list);
        H5Sclose(space);
        H5Tclose(type);
        H5Tclose(file_type);
    }
    H5E_END_TRY
    return status;
}

static herr_t add_attribute(hid_t at, const char *name, const H5A_info_t *info, void *context)
{
    uint64_t *sum = context;
    hid_t attribute = H5Aopen(at, name, H5P_DEFAULT), type = H5I_INVALID_HID, space = H5I_INVALID_HID;
    size_t count;
    void *values = NULL;
    herr_t status = -1;

    (void)info;
    if (attribute < 0 || (type = H5Aget_type(attribute)) < 0 || (space = H5Aget_space(attribute)) < 0)
        goto done;
    add_text(sum, name);
    if (H5Tget_size(type) > 10000 || add_type(sum, type) < 0 || add_space(sum, space, &count) < 0 ||
        (values = calloc(count + 1, H5Tget_size(type))) == NULL || H5Aread(attribute, type, values) < 0)
        goto done;
    add_values(sum, type, values, count);
    H5Treclaim(type, space, H5P_DEFAULT, values);
    status = 0;
done:
    free(values);
    H5E_BEGIN_TRY
    {
        H5Sclose(space);
        H5Tclose(type);
        H5Aclose(attribute);
    }
    H5E_END_TRY
    return status;
}

static void note(picture *p, uint64_t path_sum, uint64_t digest, const char *name)
{
    if (p->count == OBJECTS_MAX)
        return;
    p->object[p->count] = (seen_object){path_sum, digest, ""};
    snprintf(p->object[p->count++].name, sizeof p->object->name, "%s", name);
}

typedef struct walk {
    picture *picture;
    uint64_t path;
    unsigned depth;
    const char *name;
} walk;

static void walk_object(hid_t object, walk *w);

static herr_t walk_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    walk *w = context, below = {w->picture, w->path, w->depth + 1, name};
    char value[200];
    hid_t object;

    add_text(&below.path, name);
    if (info->type != H5L_TYPE_HARD) {
        uint64_t sum = 1;
        if (info->u.val_size > sizeof value || H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) < 0)
            w->picture->failed = true;
        else {
            add_number(&sum, (uint64_t)info->type);
            add(&sum, value, info->u.val_size);
            note(w->picture, below.path, sum, name);
        }
        return 0;
    }
    if (w->depth > 8 || (object = H5Oopen(group, name, H5P_DEFAULT)) < 0) {
        w->picture->failed = true;
        return 0;
    }
    walk_object(object, &below);
    H5Oclose(object);
    return 0;
}

/* Has it a header of HDF5 1.6? That has no checksum, and nothing tells how often what is in it is used (docs/command.md, verify). */
static bool uncounted(hid_t object, H5I_type_t kind)
{
    H5O_native_info_t info;

    return kind == H5I_DATATYPE && H5Oget_native_info(object, &info, H5O_NATIVE_INFO_HDR) >= 0 && info.hdr.version == 1;
}

static void walk_object(hid_t object, walk *w)
{
    H5I_type_t kind = H5Iget_type(object);
    uint64_t sum = 1, attributes = 2, name = w->path;
    H5O_info2_t info;
    bool good = true;

    add_number(&sum, (uint64_t)kind);
    if (H5Oget_info3(object, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS) < 0) {
        w->picture->failed = true;
        return;
    }
    if (!uncounted(object, kind))
        add_number(&sum, info.rc);
    add_number(&sum, info.num_attrs);
    switch (kind) {
    case H5I_GROUP:
        if (H5Literate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, walk_link, w) < 0)
            good = false;
        break;
    case H5I_DATASET:
        good = add_dataset(&sum, object) == 0;
        break;
    case H5I_DATATYPE:
        good = add_type(&sum, object) == 0;
        break;
    default:
        good = false;
    }
    if (good)
        note(w->picture, name, sum, w->name);
    else
        w->picture->failed = true;
    if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, add_attribute, &attributes) < 0)
        w->picture->failed = true;
    else {
        add_text(&name, "/@");
        note(w->picture, name, attributes, w->name);
    }
}

static void view_name(char *name, size_t size, int view)
{
    const char *of = written_path[0] != '\0' ? written_path : path;
    int version = many ? many_views[view] : view;

    snprintf(name, size, version == 0 ? "%s" : "%s@%d", of, version);
}

static void look(int view, picture *p)
{
    char name[sizeof written_path + 16];
    walk w = {p, 1, 0, "/"};
    hid_t file, root;

    p->count = 0;
    p->failed = false;
    view_name(name, sizeof name, view);
    if ((file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)) < 0) {
        p->failed = true;
        return;
    }
    if ((root = H5Gopen2(file, "/", H5P_DEFAULT)) < 0)
        p->failed = true;
    else {
        walk_object(root, &w);
        H5Gclose(root);
    }
    if (H5Fclose(file) < 0)
        p->failed = true;
}

static const seen_object *find(const picture *p, uint64_t name)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->object[i].path == name)
            return &p->object[i];
    return NULL;
}

/* Is everything that could be read as it was? */
static bool right(const picture *now, const picture *then)
{
    if (!now->failed && now->count != then->count) {
        if (verbose)
            fprintf(stderr, "byte %zu ^ %02x: %zu objects instead of %zu\n", damaged_at, damage, now->count,
                    then->count);
        return false;
    }
    for (size_t i = 0; i < now->count; i++) {
        const seen_object *o = i < then->count && then->object[i].path == now->object[i].path
                                   ? &then->object[i]
                                   : find(then, now->object[i].path);
        if (o == NULL || o->digest != now->object[i].digest) {
            if (verbose)
                fprintf(stderr, "byte %zu ^ %02x: '%s'%s differs\n", damaged_at, damage, now->object[i].name,
                        i > 0 && strcmp(now->object[i].name, now->object[i - 1].name) == 0 ? " (attributes)" : "");
            return false;
        }
    }
    return true;
}

/* Of a write that failed: each object as it was, or as it would be. */
static bool as_one_of(const picture *now, const picture *one, const picture *other)
{
    for (size_t i = 0; i < now->count; i++) {
        const seen_object *a = find(one, now->object[i].path), *b = find(other, now->object[i].path);

        if ((a == NULL || a->digest != now->object[i].digest) && (b == NULL || b->digest != now->object[i].digest)) {
            if (verbose)
                fprintf(stderr, "byte %zu ^ %02x: '%s' is neither\n", damaged_at, damage, now->object[i].name);
            return false;
        }
    }
    return true;
}

/* ---- damaging ---- */

typedef enum outcome { UNUSED, HARMLESS, NOTICED, WRONG, CRASHED } outcome;

typedef struct flip {
    uint32_t at;
    uint8_t mask, outcome, view;
    uint8_t signal; /* CRASHED: that ended the program, 0: it ended by itself */
    bool in_table;  /* CRASHED: while HDF5 freed a table of links that it had not filled */
} flip;

static struct {
    size_t size;
    uint8_t *touched[VERSIONS_MAX]; /* by each view */
    uint8_t *touched_writing;       /* NULL: nothing is written */
    uint8_t *bytes;
} file;
static flip *flips; /* shared with the children */
static size_t flip_count;

static void make_pictures(void)
{
    struct stat about;
    int in = open(path, O_RDONLY);

    must(in >= 0 && fstat(in, &about) == 0);
    file.size = (size_t)about.st_size;
    file.bytes = malloc(file.size);
    must(pread(in, file.bytes, file.size, 0) == (ssize_t)file.size);
    close(in);
    healthy = calloc((size_t)views, sizeof *healthy);
    must(healthy != NULL);
    touched_size = file.size;
    for (int v = 0; v < views; v++) {
        touched = file.touched[v] = calloc(1, file.size);
        look(v, &healthy[v]);
        touched = NULL;
        must(!healthy[v].failed && healthy[v].count > 10 && healthy[v].count < OBJECTS_MAX);
    }
}

static void put_copy(const char *name, size_t at, uint8_t mask)
{
    int out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    file.bytes[at] ^= mask;
    must(out >= 0 && write(out, file.bytes, file.size) == (ssize_t)file.size);
    file.bytes[at] ^= mask;
    close(out);
}

/* What reading shows after writing. */
static void make_written_pictures(void)
{
    snprintf(written_path, sizeof written_path, "%s.written", path);
    put_copy(written_path, 0, 0);
    touched = file.touched_writing = calloc(1, file.size);
    must(change_many(written_path, MANY + 1));
    touched = NULL;
    healthy_written = calloc(MANY_WRITTEN, sizeof *healthy_written);
    must(healthy_written != NULL);
    for (int v = 0; v < MANY_WRITTEN; v++) {
        look(v, &healthy_written[v]);
        must(!healthy_written[v].failed && healthy_written[v].count >= healthy[0].count);
    }
    must(!right(&healthy_written[0], &healthy[0]) && right(&healthy_written[MANY_WRITTEN - 1], &healthy_written[0]));
    unlink(written_path);
    written_path[0] = '\0';
}

/* The byte is damaged on the disk, and a program writes. */
static outcome write_over(const flip *f, uint8_t *view)
{
    static picture now;
    outcome seen = HARMLESS;
    bool done;

    snprintf(written_path, sizeof written_path, "%s.written.%d", path, (int)getpid());
    put_copy(written_path, f->at, f->mask);
    if (!(done = change_many(written_path, MANY + 1)))
        seen = NOTICED;
    for (int v = 0; v < MANY_WRITTEN && seen != WRONG; v++) {
        if (v == SLOW_TO_READ)
            continue;
        look(v, &now);
        if (done ? !right(&now, &healthy_written[v])
                 : !as_one_of(&now, &healthy_written[v], &healthy[v < MANY_READ ? v : 0])) {
            seen = WRONG;
            *view = (uint8_t)(VERSIONS_MAX + v);
        } else if (now.failed)
            seen = NOTICED;
    }
    unlink(written_path);
    written_path[0] = '\0';
    return seen;
}

/* Of a process that reads damaged bytes. Memory only without sanitizers, which reserve addresses by the terabyte. */
static void limit_process(void)
{
    const struct rlimit no_core = {0, 0};

    setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
    const struct rlimit memory = {(rlim_t)MEMORY << 30, (rlim_t)MEMORY << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
}

static void try_flip(flip *f)
{
    static picture now;
    bool used = false;

    f->outcome = HARMLESS;
    damaged_at = f->at;
    damage = f->mask;
    for (int v = 0; v < views; v++) {
        if (!file.touched[v][f->at])
            continue;
        used = true;
        look(v, &now);
        if (!right(&now, &healthy[v])) {
            f->outcome = WRONG;
            f->view = (uint8_t)v;
            break;
        }
        if (now.failed)
            f->outcome = NOTICED;
    }
    damaged_at = SIZE_MAX;
    if (file.touched_writing != NULL && file.touched_writing[f->at] && f->outcome != WRONG) {
        outcome seen = write_over(f, &f->view);

        used = true;
        if (seen != HARMLESS)
            f->outcome = (uint8_t)seen;
    }
    if (!used)
        f->outcome = UNUSED;
}

static size_t *progress; /* shared: of each job, the flip at work */

#define IN_HDF5 77 /* exit code */

/* HDF5 1.14.5 frees a table of links of which it has filled only a part when a link of a group is damaged (H5G__dense_build_table). What
 * it finds in the rest depends on all that the process did before, so HDF5 alone may be luckier: here the stack tells. And it decodes the
 * selections of a virtual dataset's mappings before it compares the checksum of their block (H5O__layout_decode); of a commit that is pending
 * HDF5 alone does not see them. */
static void on_crash(int number)
{
    void *at[64];
    int count = backtrace(at, 64);
    Dl_info where;

    for (int i = 0; i < count; i++)
        if (dladdr(at[i], &where) != 0 && where.dli_sname != NULL &&
            (strcmp(where.dli_sname, "H5G__link_release_table") == 0 ||
             strcmp(where.dli_sname, "H5S_select_deserialize") == 0))
            _exit(IN_HDF5);
    signal(number, SIG_DFL);
    raise(number);
}

static void child(size_t job, size_t from, size_t to)
{
    int null = open("/dev/null", O_WRONLY);

    void *at[1];

    limit_process();
    backtrace(at, 1); /* loads what it needs */
    signal(SIGSEGV, on_crash);
    signal(SIGABRT, on_crash);
    if (!verbose)
        dup2(null, STDERR_FILENO);
    for (size_t i = from; i < to; i++) {
        progress[job] = i;
        limit_computing(SECONDS);
        try_flip(&flips[i]);
        /* what HDF5 leaves open after an error would be in the way of the next */
        if (H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) > 0)
            to = i + 1;
    }
    progress[job] = to;
    _exit(0);
}

static void try_all(void)
{
    struct {
        pid_t id;
        size_t next, end;
    } job[16] = {0};
    size_t share = flip_count / jobs + 1, running = 0;

    for (size_t j = 0; j < jobs; j++) {
        job[j].next = j * share;
        job[j].end = (j + 1) * share < flip_count ? (j + 1) * share : flip_count;
    }
    for (;;) {
        int state;
        pid_t ended;
        for (size_t j = 0; j < jobs; j++)
            if (job[j].id == 0 && job[j].next < job[j].end) {
                size_t to = job[j].next + BATCH < job[j].end ? job[j].next + BATCH : job[j].end;
                progress[j] = job[j].next;
                fflush(NULL);
                if ((job[j].id = fork()) == 0)
                    child(j, job[j].next, to);
                running++;
            }
        if (running == 0)
            return;
        if ((ended = wait(&state)) < 0)
            die("wait");
        for (size_t j = 0; j < jobs; j++)
            if (job[j].id == ended) {
                job[j].id = 0;
                running--;
                job[j].next = progress[j];
                if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) {
                    flips[job[j].next].outcome = CRASHED;
                    flips[job[j].next].in_table = WIFEXITED(state) && WEXITSTATUS(state) == IN_HDF5;
                    flips[job[j].next].signal = WIFSIGNALED(state) ? (uint8_t)WTERMSIG(state) : 0;
                    job[j].next++;
                }
            }
    }
}

static herr_t read_native(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    uint64_t sum = 0;
    hid_t at = H5Oopen(root, name, H5P_DEFAULT);

    (void)context;
    if (at >= 0 && info->type == H5O_TYPE_DATASET)
        add_dataset(&sum, at);
    if (at >= 0)
        H5Aiterate2(at, H5_INDEX_NAME, H5_ITER_INC, NULL, add_attribute, &sum);
    H5Oclose(at);
    return 0;
}

/* Does WORK end by itself? In a child process, for file NAME, within a tenth of the time that the connector has: it opens what
 * is damaged more than once, and HDF5 makes room for as many mappings as a damaged number says, each time. Memory that was never written is garbage there, as it is after
 * much other work: HDF5 frees what it finds in tables that it has not filled (1.14.5: H5G__dense_build_table). */
static bool ends_well(void (*work)(const char *name), const char *name)
{
    int state;
    pid_t id = fork();

    if (id == 0) {
        limit_process();
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        limit_computing(SECONDS / 10);
        mallopt(M_PERTURB, 0x5a);
        work(name);
        _exit(0);
    }
    waitpid(id, &state, 0);
    return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

static void read_natively(const char *name)
{
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), native = H5VLregister_connector_by_name("native", H5P_DEFAULT), file_id;

    H5Pset_vol(list, native, NULL);
    if ((file_id = H5Fopen(name, H5F_ACC_RDONLY, list)) >= 0)
        H5Ovisit3(file_id, H5_INDEX_NAME, H5_ITER_INC, read_native, NULL, H5O_INFO_BASIC);
}

static void open_for_writing(const char *name)
{
    hid_t file_id = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT);

    if (file_id >= 0)
        H5Fclose(file_id);
}

static void write_damaged(const char *name, const flip *f)
{
    int out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    file.bytes[f->at] ^= f->mask;
    must(out >= 0 && write(out, file.bytes, file.size) == (ssize_t)file.size);
    file.bytes[f->at] ^= f->mask;
    close(out);
}

/* Does the damage end HDF5 without the connector as well? It sees a pending commit only when that is applied. */
static bool ends_hdf5_itself(const flip *f)
{
    char name[sizeof path + 16];
    bool ends;

    snprintf(name, sizeof name, "%s.damaged", path);
    write_damaged(name, f);
    ends = !ends_well(read_natively, name);
    if (!ends && ends_well(open_for_writing, name))
        ends = !ends_well(read_natively, name);
    unlink(name);
    return ends;
}

/* Does h5cow verify tell of it? */
static bool verify_tells(const flip *f)
{
    char name[sizeof path + 16], line[sizeof name + 500];

    if (command == NULL)
        return false;
    snprintf(name, sizeof name, "%s.damaged", path);
    write_damaged(name, f);
    snprintf(line, sizeof line, "env -u HDF5_VOL_CONNECTOR %s verify %s >/dev/null 2>&1", command, name);
    int code = system(line);
    unlink(name);
    return WIFEXITED(code) && WEXITSTATUS(code) == 1;
}

static unsigned long all_flips, all_wrong, all_told, all_noticed, all_crashed, all_harmless, all_unused;

static void report(const char *part)
{
    unsigned long count[5] = {0}, told = 0, wrong = 0;

    for (size_t i = 0; i < flip_count; i++) {
        const flip *f = &flips[i];
        count[f->outcome]++;
        if (f->outcome != WRONG && f->outcome != CRASHED)
            continue;
        if (f->outcome == WRONG && verify_tells(f)) {
            told++;
            if (verbose)
                fprintf(stderr, "%s: byte %u ^ %02x: only verify tells (%s%d)\n", part, f->at, f->mask, "view ",
                        f->view);
            continue;
        }
        if (f->outcome == CRASHED && (f->in_table || ends_hdf5_itself(f)))
            continue;
        if (wrong++ < 20 || verbose)
            fprintf(stderr, "%s: byte %u ^ %02x: %s, view %d, signal %d\n", part, f->at, f->mask,
                    f->outcome == WRONG ? "wrong and no error" : "ends the program, but not HDF5 alone", f->view,
                    f->signal);
    }
    printf("%s: %zu bytes, %zu flips: %lu give an error, %lu only verify tells, %lu in bytes that nothing reads, "
           "%lu change nothing that is read, %lu end HDF5 itself, %lu wrong\n",
           part, file.size, flip_count, count[NOTICED], told, count[UNUSED], count[HARMLESS], count[CRASHED], wrong);
    fflush(stdout);
    if (wrong > 0 && verbose) {
        char name[sizeof path + 40];
        snprintf(name, sizeof name, "/tmp/bitrot-%s.h5", part);
        FILE *out = fopen(name, "w");
        fwrite(file.bytes, 1, file.size, out);
        fclose(out);
    }
    all_flips += flip_count;
    all_noticed += count[NOTICED];
    all_told += told;
    all_unused += count[UNUSED];
    all_harmless += count[HARMLESS];
    all_crashed += count[CRASHED];
    all_wrong += wrong;
}

/* BITS 0: each EVERYth byte of the file twice, of the one with many versions once; else so many random bits. VERSIONS 0: of the file with many. */
static void part(const char *name, int versions, hsize_t scale, bool pending, size_t bits, size_t every)
{
    many = versions == 0;
    if (many)
        make_many();
    else
        make_file(versions, scale, pending);
    views = many ? MANY_READ : versions + 1;
    make_pictures();
    if (many)
        make_written_pictures();
    if (one_flip != NULL) {
        unsigned at = 0, mask = 0;
        must(sscanf(one_flip, "%u:%x", &at, &mask) == 2 && at < file.size);
        flip f = {.at = at, .mask = (uint8_t)mask};
        limit_process();
        try_flip(&f);
        printf("%s: outcome %d, view %d\n", name, f.outcome, f.view);
        exit(0);
    }
    size_t times = many ? 1 : 2;
    flip_count = bits > 0 ? bits : times * ((file.size + every - 1) / every);
    flips = mmap(NULL, flip_count * sizeof *flips + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(flips != MAP_FAILED);
    size_t first = every > 1 ? next_random() % every : 0;
    for (size_t i = 0; i < flip_count; i++) {
        flips[i].at = (uint32_t)(bits > 0 ? next_random() % file.size : (first + i / times * every) % file.size);
        flips[i].mask =
            bits == 0 && (many ? next_random() % 2 == 0 : i % 2 == 0) ? 0xff : (uint8_t)(1u << next_random() % 8);
    }
    try_all();
    report(name);
    munmap(flips, flip_count * sizeof *flips + 1);
    for (int v = 0; v < views; v++)
        free(file.touched[v]);
    free(file.touched_writing);
    file.touched_writing = NULL;
    free(file.bytes);
    free(healthy);
    free(healthy_written);
    healthy_written = NULL;
    many = false;
    unlink(path);
}

static const char *with_commas(unsigned long n)
{
    static char text[8][32];
    static unsigned turn;
    char digits[32], *to = text[turn++ % 8], *start = to;
    int length = snprintf(digits, sizeof digits, "%lu", n);

    for (int i = 0; i < length; i++) {
        *to++ = digits[i];
        if (i + 1 < length && (length - i - 1) % 3 == 0)
            *to++ = ',';
    }
    *to = '\0';
    return start;
}

static void tell_result(void)
{
    FILE *out = results_open();

    if (out == NULL)
        return;
    fprintf(
        out,
        "{\"item\": 5, \"what\": \"%s damages: each byte of a small file, also with a pending commit, and of one with "
        "many versions, which is written to as well, and random bits of a larger one; each read within %d GiB and %d s of computing\", \"result\": \"%s reported by an error when read, %s by h5cow verify, %s in bytes "
        "that nothing reads, %s without consequence, %s end HDF5 itself, wrong data returned %s times\", "
        "\"command\": \"test/bitrot --bits 100000 --command cli/h5cow\"}\n",
        with_commas(all_flips), MEMORY, SECONDS, with_commas(all_noticed), with_commas(all_told),
        with_commas(all_unused), with_commas(all_harmless), with_commas(all_crashed), with_commas(all_wrong));
    fclose(out);
}

int main(int argc, char **argv)
{
    size_t bits = 10000, every = 1;
    const char *only = NULL;

    random_state = test_seed();
    if (getenv("HDF5_VOL_CONNECTOR") != NULL && strcmp(getenv("HDF5_VOL_CONNECTOR"), "h5cow") == 0)
        setenv("HDF5_VOL_CONNECTOR", "h5cow pieces=16",
               1); /* so that these small chunks are composed of pieces as well */
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (i + 1 == argc) {
            fputs(usage, stderr);
            return 2;
        } else if (strcmp(argv[i], "--bits") == 0)
            bits = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--every") == 0)
            every = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--jobs") == 0)
            jobs = (unsigned)strtoul(argv[++i], NULL, 10) % 16;
        else if (strcmp(argv[i], "--part") == 0)
            only = argv[++i];
        else if (strcmp(argv[i], "--flip") == 0)
            one_flip = argv[++i];
        else if (strcmp(argv[i], "--command") == 0)
            command = argv[++i];
        else {
            fputs(usage, stderr);
            return 2;
        }
    if (jobs == 0 || every == 0)
        return 2;
    snprintf(folder, sizeof folder, "%s/h5cow-bitrot-XXXXXX", memory_folder());
    must(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/f.h5", folder);
    setenv("ASAN_OPTIONS", SANITIZED, 1); /* of the command */
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    progress = mmap(NULL, 16 * sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(progress != MAP_FAILED);
    if (only == NULL || strcmp(only, "small") == 0)
        part("small", 3, 1, false, 0, every);
    if (only == NULL || strcmp(only, "pending") == 0)
        part("pending", 3, 1, true, 0, every);
    if (only == NULL || strcmp(only, "many") == 0)
        part("many", 0, 1, false, 0, every == 1 ? 1 : SPARSER * every);
    if ((only == NULL || strcmp(only, "large") == 0) && bits > 0)
        part("large", 8, 12, false, bits, 1);
    rmdir(folder);
    tell_result();
    return all_wrong > 0;
}
