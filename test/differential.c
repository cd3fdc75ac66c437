/* Random programs of HDF5 calls, run twice in one process: on a file through the native connector (the twin, side 0)
 * and on a file through the connector named by HDF5_VOL_CONNECTOR (side 1). After every step the answers and the
 * objects touched must agree, every 25 steps and before every close both trees, and after every commit each earlier
 * version must still equal the copy of the twin that was kept when it was made: as FILE@N through the connector, and as
 * /_versioned_data/versions/N without it. Public HDF5 calls only; a run is repeated by its --seed.
 *
 * differential [--steps N] [--seed S] [--dir DIR] [--file-steps N] [--history N] [--self [--plant KIND]]
 *
 * --self runs native against native, which must agree. --plant then damages side 1 (element, attribute, link, extent,
 * version) now and then, and the run succeeds only when the damage is found: a test of the test.
 *
 * What may differ, and is not compared. Nothing else may.
 *  D1  Creation order numbers of the root's links, and its max_corder: the hidden group took a number. Their order must
 *      agree.
 *  D2  Addresses, file sizes, times, and what depends on the library version bounds, since a file with history has at
 *      least those of HDF5 1.10: group storage, header sizes, the order of H5_ITER_NATIVE; whether links have creation
 *      order numbers in a group that does not track them; native HDF5 may say that times are tracked where they are
 *      not, since an older object header cannot say it.
 *  D3  Real references hold addresses. Both sides must have one, and right after it was written it must lead to the
 *      same object; later on, and in versions, to the same object or nowhere, since where a reference to a deleted object
 *      leads natively is undefined. Pattern references are never followed, and compared as bytes.
 *  D4  Sizes of deflated or scale-offset chunks, and the storage size they add up to: encoders may differ. Raw bytes
 *      are decoded by native HDF5 and the elements compared.
 *  D5  Elements that nobody wrote, where native HDF5 1.14.5 leaves what the file had there before: without fill value or
 *      with H5D_FILL_TIME_NEVER; allocated at once by a first write that covers all, if only some members of each
 *      (H5D__alloc_storage); allocated early with the default fill value, or for data of variable length; and bytes of
 *      an edge chunk outside the extent. The program writes such datasets whole after they are made or grown, and raw
 *      chunks only where the whole chunk is inside.
 *  D6  Absolute soft links in a version begin with the version's path when read without the connector.
 *  D7  Reference counts and creation order numbers in versions: unchanged objects are shared by hard links.
 *  D8  Layout, chunks, filters and allocation of a versioned dataset read without the connector: it is virtual there.
 *  D9  Modifying a file that was opened for reading: only H5Dwrite is tried, which must be refused. Native HDF5 1.14.5
 *      accepts others (H5Awrite), and then cannot close the file.
 * D10  H5Ocopy of a filtered dataset that is open: native HDF5 1.14.5 copies cached chunks into a buffer of their
 *      encoded size (H5D__chunk_copy_cb) and overwrites memory. Such datasets are closed first.
 * D11  Sequences of sequences or of variable-length strings: writing them over older ones, native HDF5 1.14.5 frees
 *      what it never allocated (H5T__conv_vlen).
 * D12  Raw chunks with a filter mask: while the dataset is open native HDF5 1.14.5 may read them with the old mask, and
 *      keeps the old mask when the new bytes have the same size. All handles are closed after such a write, it is left
 *      out where the sizes are equal, and the dataset is only read from then on.
 * D13  H5Ocopy of a chunked dataset with variable-length data inside a compound or array: native HDF5 1.14.5 converts
 *      in a buffer that is too small; and it refuses to copy one of references. Such trees are not copied.
 * D14  Unions of hyperslabs that HDF5 1.14.5 itself builds wrong: 490+3 | 110+162x3/4 has 486 elements, most of them
 *      outside the bounds it gives, and reading them overruns memory. The last box is used alone.
 * D16  The scale-offset filter with fewer bits than the type has: HDF5 1.14.5 cannot decode what it encoded where the
 *      values of a chunk take all bits ("minimum number of bits exceeds size of type"; h5cow stores such a chunk without
 *      filters), and rounds values when the chunk leaves its cache. It is used with all bits, which changes nothing;
 *      test_array has the others.
 * D15  Which chunks are allocated after H5Dset_extent made a dataset smaller: native HDF5 1.14.5 allocates a chunk at the
 *      new edge that nobody wrote, when reading has put it into the chunk cache (H5D__chunk_prune_fill). The chunk cache
 *      is left out.
 * D17  The creation order of the attributes of an object that does not track it, and of its links: HDF5 answers with
 *      the order in which it finds them.
 * D18  Reference counts are higher once something was deleted that a version knows: it is kept, with what it refers to.
 * D19  What is read where nothing is stored: native HDF5 1.14.5 applies data transforms to the fill value, and fills up
 *      strings that are padded with spaces, or not, by whether the chunk fits its cache.
 * D20  Size and filter mask of a chunk whose elements were stored already, by whatever way: it is that stored chunk.
 * D21  The character set of link names in trees that H5Ocopy made: a connector cannot set it.
 * D22  Chunks of tiny datasets in FILE@N: what changes no element makes no new version.
 * D23  Groups that a refused H5Dcreate made on its way: native HDF5 1.14.5 leaves them.
 * D24  H5Dread_multi and H5Dwrite_multi where several datasets need conversion: native HDF5 1.14.5 may give elements that
 *      H5Dread of the same selection does not give, which then decides, and changes members that a compound memory type
 *      does not name; so does H5Dwrite to filtered chunks that do not fit the cache. The program names all of them there.
 * D25  Addresses of chunks in a file that is open for writing: none is told while the bytes wait to be committed.
 */
#include "differential_compare.h"
#include "random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HISTORY      2000 /* operations remembered, to be printed on a difference: the last 30 unless told */
#define MAX_HANDLES  6   /* datasets held open */
#define MAX_PATHS    400 /* links known */
#define MAX_LINKS    45  /* more than this and the program prefers to delete */
#define MAX_ELEMENTS 6000
#define FULL_EVERY   25
#define PATH_SIZE    600
#define RECENT       2 /* versions compared at every commit; all of them when the file is done */

typedef struct pair {
    hid_t id[2];
} pair;

typedef enum { AT_GROUP, AT_DATASET, AT_TYPE, AT_LINK } kind;

typedef struct place {
    char path[PATH_SIZE];
    kind what;
} place;

typedef enum { PLANT_NONE, PLANT_ELEMENT, PLANT_ATTRIBUTE, PLANT_LINK, PLANT_EXTENT, PLANT_VERSION } plant;
static const char *const plant_names[] = {"none", "element", "attribute", "link", "extent", "version"};

/* The whole run. */
static struct {
    uint64_t seed, random[4];
    long steps, step, file_steps, told;
    char dir[400];
    bool self, own_dir;
    plant plant;
    long planted, plants;
    char history[HISTORY][1400];
    long operations;

    hid_t access[2]; /* file access property lists */
    hid_t scratch, native_stack;
    char name[2][PATH_SIZE];
    pair file;
    bool writable, modified, created, deleted, copied;
    struct handle {
        pair set;
        char path[PATH_SIZE];
    } handle[MAX_HANDLES];
    size_t handles;
    place place[MAX_PATHS];
    size_t places;
    char touched[4][PATH_SIZE];
    size_t touches;
    unsigned named; /* names given so far */

    struct version {
        char name[64];
        char twin[PATH_SIZE];
    } * version;
    size_t versions, files;
    long compared[3];
    long op_count[64], op_done[64];
} w;

/* ---- random numbers: xoshiro256**, seeded by splitmix64 ---- */

static uint64_t next(void)
{
    uint64_t *s = w.random, result = ((s[1] * 5) << 7 | (s[1] * 5) >> 57) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = s[3] << 45 | s[3] >> 19;
    return result;
}

static size_t below(size_t n)
{
    return n ? (size_t)(next() % n) : 0;
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

/* ---- saying what happens, and that it differs ---- */

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
    va_list args;
    char *line = w.history[w.operations++ % HISTORY];
    int length = snprintf(line, sizeof w.history[0], "%6ld  ", w.step);
    va_start(args, format);
    vsnprintf(line + length, sizeof w.history[0] - (size_t)length, format, args);
    va_end(args);
}

/* Goes on with the last line of the history. */
static void also(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void also(const char *format, ...)
{
    va_list args;
    char *line = w.history[(w.operations + HISTORY - 1) % HISTORY];
    size_t length = strlen(line);
    va_start(args, format);
    vsnprintf(line + length, sizeof w.history[0] - length, format, args);
    va_end(args);
}

_Noreturn static void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn static void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "differential: ");
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static void close_pair(void);
static void run_end(void);

static void tell_history(void)
{
    fprintf(stderr, "\nthe last operations:\n");
    long told = w.told < HISTORY ? w.told : HISTORY;
    for (long i = w.operations > told ? w.operations - told : 0; i < w.operations; i++)
        fprintf(stderr, "%s\n", w.history[i % HISTORY]);
    fprintf(stderr, "files: %s (native), %s (under test)\nagain: --seed %" PRIu64 " --steps %ld\n", w.name[0],
            w.name[1], w.seed, w.steps);
}

/* STACK: the error stack of the call that should not have failed. */
#define NO_STACK H5I_INVALID_HID
_Noreturn static void differ(hid_t stack, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn static void differ(hid_t stack, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w.planted) {
        printf("planted %s at step %ld, found at step %ld: ", plant_names[w.plant], w.planted, w.step);
        vprintf(format, args);
        printf("\nPASS\n");
        va_end(args);
        run_end();
        exit(0);
    }
    if (stack >= 0)
        H5Eprint2(stack, stderr);
    fprintf(stderr, "DIFFERENCE at step %ld, seed %" PRIu64 ", file %zu\n  ", w.step, w.seed, w.files);
    vfprintf(stderr, format, args);
    va_end(args);
    tell_history();
    fflush(stdout);
    for (int s = 0; s < 2; s++) /* the files are kept as they are, without what closing would change */
        if (w.file.id[s] > 0)
            H5Fflush(w.file.id[s], H5F_SCOPE_GLOBAL);
    _exit(1);
}

/* A crash, or the end of somebody's patience: say where. */
static void on_signal(int number)
{
    fprintf(stderr, "SIGNAL %d (%s) at step %ld, seed %" PRIu64 ", file %zu", number, strsignal(number), w.step, w.seed,
            w.files);
    tell_history();
    _exit(1);
}

/* The answers of both sides to one call. Both fail, or both succeed with the same number. */
static bool answers(const char *what, const long long r[2])
{
    if (r[0] < 0 && r[1] < 0) {
        also(" [%s refused]", what);
        return false;
    }
    if (r[0] != r[1])
        differ(r[1] < 0 ? H5E_DEFAULT : r[0] < 0 ? w.native_stack : NO_STACK, "%s: native %lld, under test %lld", what, r[0], r[1]);
    return true;
}

/* Why the native side refused; the other side's call would clear it. */
static void keep_stack(long long answer)
{
    if (answer >= 0)
        return;
    if (w.native_stack > 0)
        H5Eclose_stack(w.native_stack);
    w.native_stack = H5Eget_current_stack();
}

/* Evaluates CALL for s = 0 and 1 and compares. true: both succeeded. */
#define BOTH(what, call)                                                                                               \
    (r_[0] = (s = 0, (long long)(call)), keep_stack(r_[0]), r_[1] = (s = 1, (long long)(call)), answers(what, r_))
/* The same for calls that return an id, kept in IDS. */
#define OPEN(what, ids, call)                                                                                          \
    (r_[0] = (s = 0, (ids).id[0] = (call)) < 0 ? -1 : 0, keep_stack(r_[0]), r_[1] = (s = 1, (ids).id[1] = (call)) < 0 ? -1 : 0,           \
     answers(what, r_))
#define SIDES                                                                                                          \
    int s = 0;                                                                                                         \
    long long r_[2] = {0, 0};                                                                                          \
    (void)s;                                                                                                           \
    (void)r_

static void close_ids(pair p)
{
    for (int s = 0; s < 2; s++)
        if (p.id[s] >= 0)
            H5Idec_ref(p.id[s]);
}

static void touch(const char *path)
{
    if (w.touches < sizeof w.touched / sizeof w.touched[0])
        snprintf(w.touched[w.touches++], PATH_SIZE, "%s", path);
}

/* ---- what is in the file ---- */

static herr_t collect_place(hid_t group, const char *name, const H5L_info2_t *info, void *data)
{
    (void)data;
    if (w.places == MAX_PATHS)
        return 1;
    place *p = &w.place[w.places];
    p->what = AT_LINK;
    if (info->type == H5L_TYPE_HARD) {
        H5O_info2_t object;
        if (H5Oget_info_by_name3(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
            return 0;
        p->what = object.type == H5O_TYPE_GROUP ? AT_GROUP : object.type == H5O_TYPE_DATASET ? AT_DATASET : AT_TYPE;
    }
    if ((size_t)snprintf(p->path, PATH_SIZE, "/%s", name) < PATH_SIZE)
        w.places++;
    return 0;
}

static void learn_places(void)
{
    w.places = 0;
    H5Lvisit2(w.file.id[0], H5_INDEX_NAME, H5_ITER_INC, collect_place, NULL);
}

/* A random known place of a kind; NULL if there is none. */
static const char *some(kind what)
{
    size_t n = 0, pick;
    for (size_t i = 0; i < w.places; i++)
        n += w.place[i].what == what;
    if (n == 0)
        return NULL;
    pick = below(n);
    for (size_t i = 0; i < w.places; i++)
        if (w.place[i].what == what && pick-- == 0)
            return w.place[i].path;
    return NULL;
}

static const char *some_group(void)
{
    const char *path = chance(30) ? NULL : some(AT_GROUP);
    return path ? path : "/";
}

static const char *some_object(void)
{
    const char *path = chance(25) ? some_group() : chance(15) ? some(AT_TYPE) : some(AT_DATASET);
    return path ? path : "/";
}

static const char *some_link(void)
{
    return w.places ? w.place[below(w.places)].path : NULL;
}

/* A new path, now and then below a group that does not exist yet, or a name that is taken. */
static void new_path(char path[PATH_SIZE], const char *stem)
{
    const char *group = some_group();
    if (strlen(group) > 60)
        group = "/";
    if (chance(3) && some_link()) {
        snprintf(path, PATH_SIZE, "%s", some_link());
        return;
    }
    unsigned number = chance(70) ? ++w.named : (unsigned)below(40);
    const char *slash = strcmp(group, "/") == 0 ? "" : "/";
    if (chance(6))
        snprintf(path, PATH_SIZE, "%s%sway%zu/%s%u", group, slash, below(20), stem, number);
    else if (chance(5))
        snprintf(path, PATH_SIZE, "%s%s%s %u@\xc3\xa9", group, slash, stem, number);
    else
        snprintf(path, PATH_SIZE, "%s%s%s%u", group, slash, stem, number);
}

static hid_t link_plist(void)
{
    hid_t plist = H5Pcreate(H5P_LINK_CREATE);
    if (chance(80))
        H5Pset_create_intermediate_group(plist, 1);
    if (chance(30))
        H5Pset_char_encoding(plist, H5T_CSET_UTF8);
    return plist;
}

static void parent(const char *path, char group[PATH_SIZE])
{
    snprintf(group, PATH_SIZE, "%s", path);
    char *slash = strrchr(group, '/');
    if (slash == group || !slash)
        strcpy(group, "/");
    else
        *slash = 0;
}

/* ---- types ---- */

static hid_t number_type(void)
{
    const hid_t types[] = {H5T_STD_I8LE,   H5T_STD_U8BE,   H5T_STD_I16LE, H5T_STD_U16BE, H5T_STD_I32LE,
                           H5T_STD_I32BE,  H5T_STD_U32LE,  H5T_STD_I64LE, H5T_STD_U64BE, H5T_IEEE_F32LE,
                           H5T_IEEE_F32BE, H5T_IEEE_F64LE, H5T_IEEE_F64BE};
    return H5Tcopy(types[below(sizeof types / sizeof types[0])]);
}

static hid_t string_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 1 + below(16));
    H5Tset_strpad(type, (H5T_str_t)below(3));
    if (chance(30))
        H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

static hid_t random_type(int depth, bool pointers)
{
    hid_t type = H5I_INVALID_HID, base;
    switch (below(depth > 0 ? 20 : 13)) {
    case 0: { /* part of the bits */
        type = H5Tcopy(chance(50) ? H5T_STD_I32LE : H5T_STD_U16BE);
        H5Tset_precision(type,
                         4 * H5Tget_size(type) + below(4)); /* fewer than half of the bits: HDF5 will not read it */
        H5Tset_offset(type, below(2));
        return type;
    }
    case 1: {
        base = H5Tcopy(chance(50) ? H5T_STD_I16BE : H5T_STD_I8LE);
        type = H5Tenum_create(base);
        size_t n = 2 + below(4);
        for (size_t i = 0; i < n; i++) {
            char name[32];
            long value = (long)(i * 3);
            snprintf(name, sizeof name, "E%zu", i);
            H5Tconvert(H5T_NATIVE_LONG, base, 1, &value, NULL, H5P_DEFAULT);
            H5Tenum_insert(type, name, &value);
        }
        H5Tclose(base);
        return type;
    }
    case 2:
        type = H5Tcreate(H5T_OPAQUE, 1 + below(20));
        H5Tset_tag(type, chance(50) ? "blob" : "other tag");
        return type;
    case 3:
        return string_type();
    case 4: {
        const hid_t bits[] = {H5T_STD_B8LE, H5T_STD_B16BE, H5T_STD_B32LE, H5T_STD_B64BE};
        return H5Tcopy(bits[below(4)]);
    }
    case 5:
        return H5Tcopy(chance(70) ? H5T_STD_REF_OBJ : H5T_STD_REF_DSETREG);
    case 6:
        if (!pointers)
            return number_type();
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, H5T_VARIABLE);
        if (chance(40))
            H5Tset_cset(type, H5T_CSET_UTF8);
        return type;
    case 7:
        if (!pointers)
            return number_type();
        base = depth > 0 && chance(30) ? random_type(depth - 1, false) : number_type(); /* D11 */
        type = H5Tvlen_create(base);
        H5Tclose(base);
        return type;
    case 13:
    case 14: {
        hsize_t dims[2] = {1 + below(4), 1 + below(3)};
        base = random_type(depth - 1, pointers && chance(20));
        type = H5Tarray_create2(base, (unsigned)(1 + below(2)), dims);
        H5Tclose(base);
        return type;
    }
    case 15:
    case 16:
    case 17:
    case 18:
    case 19: {
        size_t n = 1 + below(5), size = 0, offset[5];
        hid_t member[5];
        for (size_t i = 0; i < n; i++) {
            member[i] = random_type(depth - 1, pointers && chance(20));
            size += chance(30) ? below(6) : 0;
            offset[i] = size;
            size += H5Tget_size(member[i]);
        }
        type = H5Tcreate(H5T_COMPOUND, size + (chance(20) ? below(5) : 0));
        for (size_t i = 0; i < n; i++) {
            char name[32];
            snprintf(name, sizeof name, "m%zu", i);
            H5Tinsert(type, name, offset[i], member[i]);
            H5Tclose(member[i]);
        }
        return type;
    }
    default:
        return number_type();
    }
}

/* A type in memory for values of file type FILE: the same, or one that HDF5 converts to and from. */
static hid_t memory_type(hid_t file, bool same)
{
    const hid_t numbers[] = {H5T_NATIVE_SCHAR,  H5T_NATIVE_USHORT, H5T_NATIVE_INT,   H5T_NATIVE_LLONG,
                             H5T_NATIVE_ULLONG, H5T_NATIVE_FLOAT,  H5T_NATIVE_DOUBLE};
    hid_t type, base;
    if (same)
        return H5Tcopy(file);
    switch (H5Tget_class(file)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
        return H5Tcopy(numbers[below(sizeof numbers / sizeof numbers[0])]);
    case H5T_STRING:
        type = H5Tcopy(file);
        if (H5Tis_variable_str(file) <= 0 && H5Tget_strpad(file) != H5T_STR_SPACEPAD) /* D19 */
            H5Tset_size(type, 1 + below(20));
        return type;
    case H5T_ARRAY: {
        hsize_t dims[H5S_MAX_RANK];
        int rank = H5Tget_array_dims2(file, dims);
        hid_t super = H5Tget_super(file);
        base = memory_type(super, false);
        type = H5Tarray_create2(base, (unsigned)rank, dims);
        H5Tclose(super);
        H5Tclose(base);
        return type;
    }
    case H5T_COMPOUND: { /* some of the fields, in another order, packed */
        int n = H5Tget_nmembers(file), first = (int)below((size_t)n), taken = 1 + (int)below((size_t)n);
        hid_t member[8];
        size_t size = 0;
        for (int i = 0; i < taken; i++) {
            hid_t own = H5Tget_member_type(file, (unsigned)((first + i) % n));
            member[i] = memory_type(own, chance(50));
            size += H5Tget_size(member[i]);
            H5Tclose(own);
        }
        type = H5Tcreate(H5T_COMPOUND, size);
        size = 0;
        for (int i = 0; i < taken; i++) {
            char *name = H5Tget_member_name(file, (unsigned)((first + i) % n));
            H5Tinsert(type, name, size, member[i]);
            size += H5Tget_size(member[i]);
            H5free_memory(name);
            H5Tclose(member[i]);
        }
        return type;
    }
    case H5T_TIME:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_REFERENCE:
    case H5T_ENUM:
    case H5T_VLEN:
    case H5T_NO_CLASS:
    case H5T_NCLASSES:
        break;
    }
    return H5Tcopy(file);
}

/* ---- values ---- */

typedef enum { MANY, FEW, ONE } variety;

static void random_value(hid_t type, unsigned char *value, variety v)
{
    size_t size = H5Tget_size(type);
    hid_t base;
    switch (H5Tget_class(type)) {
    case H5T_COMPOUND: {
        int n = H5Tget_nmembers(type);
        for (size_t i = 0; i < size; i++)
            value[i] = (unsigned char)next();
        for (int i = 0; i < n; i++) {
            base = H5Tget_member_type(type, (unsigned)i);
            random_value(base, value + H5Tget_member_offset(type, (unsigned)i), v);
            H5Tclose(base);
        }
        return;
    }
    case H5T_ARRAY:
        base = H5Tget_super(type);
        for (size_t at = 0, step = H5Tget_size(base); at < size; at += step)
            random_value(base, value + at, v);
        H5Tclose(base);
        return;
    case H5T_VLEN: {
        hvl_t sequence = {below(v == FEW ? 3 : 6), NULL};
        base = H5Tget_super(type);
        size_t step = H5Tget_size(base);
        if (sequence.len)
            sequence.p = calloc(sequence.len, step);
        for (size_t i = 0; i < sequence.len; i++)
            random_value(base, (unsigned char *)sequence.p + i * step, v);
        memcpy(value, &sequence, sizeof sequence);
        H5Tclose(base);
        return;
    }
    case H5T_STRING: {
        size_t length = H5Tis_variable_str(type) > 0 ? below(20) : below(size + 1);
        char *text = calloc(1, (length > size ? length : size) + 1);
        for (size_t i = 0; i < length; i++)
            text[i] = (char)('a' + below(v == MANY ? 26 : 2));
        if (H5Tis_variable_str(type) <= 0) {
            memcpy(value, text, size);
            free(text);
        } else {
            if (chance(5)) {
                free(text);
                text = NULL;
            }
            memcpy(value, &text, sizeof text);
        }
        return;
    }
    case H5T_REFERENCE:
        memset(value, 0, size);
        if (chance(80)) {
            for (size_t i = 0; i < size; i++)
                value[i] = (unsigned char)next();
            value[7] = PATTERN_REFERENCE;
        }
        return;
    case H5T_FLOAT:
        if (chance(90) && (size == 4 || size == 8)) { /* ordinary numbers; else any bits */
            double number = v == ONE ? 1.5 : (double)(int64_t)below(v == FEW ? 4 : 20000) / 8 - 1000;
            memcpy(value, &number, sizeof number < size ? sizeof number : size);
            if (size == 8) {
                H5Tconvert(H5T_NATIVE_DOUBLE, type, 1, value, NULL, H5P_DEFAULT);
                return;
            }
            float small = (float)number;
            memcpy(value, &small, sizeof small);
            H5Tconvert(H5T_NATIVE_FLOAT, type, 1, value, NULL, H5P_DEFAULT);
            return;
        }
        break;
    case H5T_INTEGER:
    case H5T_TIME:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_ENUM:
    case H5T_NO_CLASS:
    case H5T_NCLASSES:
        break;
    }
    for (size_t i = 0; i < size; i++)
        value[i] = v == MANY ? (unsigned char)next() : v == FEW ? (unsigned char)(i ? 0 : below(4)) : 7;
}

/* N random values; few different ones at times, so that chunks are equal. Free with reclaim. */
static void *random_values(hid_t type, size_t n)
{
    size_t size = H5Tget_size(type);
    unsigned char *values = calloc(n ? n : 1, size);
    variety v = chance(60) ? MANY : chance(60) ? FEW : ONE;
    if (!values)
        die("out of memory");
    if (v == MANY && (H5Tget_class(type) == H5T_INTEGER || H5Tget_class(type) == H5T_OPAQUE)) {
        for (size_t i = 0; i < n * size; i++)
            values[i] = (unsigned char)next();
        return values;
    }
    for (size_t i = 0; i < n; i++)
        random_value(type, values + i * size, v);
    return values;
}

static void reclaim(hid_t type, size_t n, void *values)
{
    if (n && type_contains(type, H5T_VLEN)) {
        hsize_t count = n;
        hid_t space = H5Screate_simple(1, &count, NULL);
        H5Treclaim(type, space, H5P_DEFAULT, values);
        H5Sclose(space);
    }
    free(values);
}

/* ---- datasets held open ---- */

static void drop_handle(size_t i)
{
    close_ids(w.handle[i].set);
    w.handle[i] = w.handle[--w.handles];
}

static void keep_handle(pair set, const char *path)
{
    if (w.handles == MAX_HANDLES)
        drop_handle(below(MAX_HANDLES));
    w.handle[w.handles].set = set;
    memmove(w.handle[w.handles++].path, path, strlen(path) + 1); /* PATH may be that of another handle */
}

static bool masked(hid_t set);

/* A dataset to work on: one that is open, or opened now (and kept open, or not: *own). false: there is none. */
static bool find_dataset(pair *set, char path[PATH_SIZE], bool *own)
{
    SIDES;
    *own = false;
    if (w.handles && chance(50)) {
        struct handle *h = &w.handle[below(w.handles)];
        *set = h->set;
        snprintf(path, PATH_SIZE, "%s", h->path);
        return true;
    }
    const char *at = some(AT_DATASET);
    if (!at)
        return false;
    snprintf(path, PATH_SIZE, "%s", at);
    if (!OPEN("H5Dopen", *set, H5Dopen2(w.file.id[s], path, H5P_DEFAULT))) {
        return false;
    }
    if (chance(40))
        keep_handle(*set, path);
    else
        *own = true;
    return true;
}

/* The same, to be changed (D12). */
static bool take_dataset(pair *set, char path[PATH_SIZE], bool *own)
{
    if (!find_dataset(set, path, own))
        return false;
    if (!masked(set->id[0]))
        return true;
    if (*own)
        close_ids(*set);
    return false;
}

/* Compares the dataset behind open handles: its link may be gone. */
static void check_dataset(pair set, const char *path)
{
    comparison c = {.stack = NO_STACK, .how = REACHED_HEAD, .deleted = w.deleted, .scratch = w.scratch,
                    .chunk_bytes = chance(30)};
    if (!compare_objects(&c, path, set.id[0], set.id[1]))
        differ(c.stack, "%s", c.why);
}

/* ---- selections ---- */

/* Do the blocks of a selection add up to its number of elements? (D14) */
static bool sound(hid_t space, int rank)
{
    hssize_t n = H5Sget_select_hyper_nblocks(space), points = 0;
    hsize_t *corner = calloc((size_t)(n > 0 ? n : 1) * 2 * (size_t)rank, sizeof *corner);
    if (n > 0)
        H5Sget_select_hyper_blocklist(space, 0, (hsize_t)n, corner);
    for (hssize_t b = 0; b < n; b++) {
        hssize_t volume = 1;
        for (int i = 0; i < rank; i++)
            volume *= (hssize_t)(corner[(2 * b + 1) * rank + i] - corner[2 * b * rank + i] + 1);
        points += volume;
    }
    free(corner);
    return points == H5Sget_select_npoints(space);
}

/* Chooses elements of a space and says so. */
static void random_selection(hid_t space, char *text, size_t size)
{
    hsize_t dims[H5S_MAX_RANK], start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    size_t length = 0;
    bool empty = rank <= 0;
    for (int i = 0; i < rank; i++)
        empty = empty || dims[i] == 0;
    if (empty || chance(15)) {
        H5Sselect_all(space);
        snprintf(text, size, "all");
        return;
    }
    if (chance(3)) {
        H5Sselect_none(space);
        snprintf(text, size, "none");
        return;
    }
    if (chance(15)) {
        size_t n = 1 + below(12);
        hsize_t point[12 * H5S_MAX_RANK];
        length = (size_t)snprintf(text, size, "points");
        for (size_t p = 0; p < n; p++)
            for (int i = 0; i < rank; i++) {
                point[p * (size_t)rank + (size_t)i] = below(dims[i]);
                if (length < size)
                    length += (size_t)snprintf(text + length, size - length, "%c%llu", i ? ',' : ' ',
                                               (unsigned long long)point[p * (size_t)rank + (size_t)i]);
            }
        H5Sselect_elements(space, H5S_SELECT_SET, n, point);
        return;
    }
    const H5S_seloper_t ways[] = {H5S_SELECT_OR, H5S_SELECT_OR, H5S_SELECT_XOR, H5S_SELECT_NOTB};
    size_t boxes = chance(65) ? 1 : 2 + below(3);
    text[0] = 0;
    for (size_t k = 0; k < boxes; k++) {
        H5S_seloper_t how = k ? ways[below(4)] : H5S_SELECT_SET;
        for (int i = 0; i < rank; i++) {
            start[i] = below(dims[i]);
            hsize_t room = dims[i] - start[i];
            block[i] = 1 + below(chance(50) ? (size_t)room : (room < 4 ? (size_t)room : 4));
            stride[i] = block[i] + below(4);
            hsize_t most = (room - block[i]) / stride[i] + 1;
            count[i] = chance(50) ? 1 : 1 + below((size_t)most);
            if (length < size)
                length += (size_t)snprintf(text + length, size - length, "%s%llu+%llux%llu/%llu",
                                           i   ? ","
                                           : k ? " | "
                                               : "",
                                           (unsigned long long)start[i], (unsigned long long)count[i],
                                           (unsigned long long)block[i], (unsigned long long)stride[i]);
        }
        H5Sselect_hyperslab(space, how, start, stride, count, block);
    }
    if (boxes > 1 && !sound(space, rank)) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block);
        snprintf(text + (length < size ? length : size - 1), length < size ? size - length : 1, " (the last alone)");
    }
}

/* One transfer: which elements of the file, where in memory, as what type. */
typedef struct transfer {
    hid_t type, file_space, mem_space; /* spaces may be H5S_ALL or H5S_BLOCK */
    size_t elements;                   /* of the buffer */
    hid_t plist;
    char text[700];
} transfer;

static void plan_transfer(transfer *t, hid_t set, bool whole)
{
    hid_t file_type = H5Dget_type(set), space = H5Dget_space(set);
    char selection[500] = "all";
    hsize_t dims[3];
    t->type = memory_type(file_type, whole || chance(50));
    H5Tclose(file_type);
    t->plist = H5P_DEFAULT;
    t->mem_space = H5S_ALL;
    size_t extent = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space);
    t->elements = extent;
    if (!whole)
        random_selection(space, selection, sizeof selection);
    size_t n = extent ? (size_t)H5Sget_select_npoints(space) : 0;
    const char *memory = "the same";
    t->file_space = space;
    if (!whole && extent) {
        hsize_t zero = 0, two = 2, start[2], count[2], one[2] = {1, 1};
        switch (below(6)) {
        case 0:
            break;
        case 1: /* one after the other */
            if (n == 0)
                break;
            memory = "line";
            dims[0] = n;
            t->mem_space = H5Screate_simple(1, dims, NULL);
            t->elements = n;
            break;
        case 2: /* every second, with room around */
            if (n == 0)
                break;
            memory = "every second";
            dims[0] = 2 * n + 3;
            start[0] = 1;
            count[0] = n;
            t->mem_space = H5Screate_simple(1, dims, NULL);
            H5Sselect_hyperslab(t->mem_space, H5S_SELECT_SET, start, &two, count, one);
            t->elements = 2 * n + 3;
            break;
        case 3: /* a column */
            if (n == 0)
                break;
            memory = "column";
            dims[0] = n;
            dims[1] = 3;
            start[0] = zero;
            start[1] = 1;
            count[0] = n;
            count[1] = 1;
            t->mem_space = H5Screate_simple(2, dims, NULL);
            H5Sselect_hyperslab(t->mem_space, H5S_SELECT_SET, start, NULL, count, one);
            t->elements = 3 * n;
            break;
        case 4: /* points, backwards */
            if (n == 0 || n > 200)
                break;
            memory = "points";
            dims[0] = n + 1;
            hsize_t point[200];
            for (size_t i = 0; i < n; i++)
                point[i] = n - i;
            t->mem_space = H5Screate_simple(1, dims, NULL);
            H5Sselect_elements(t->mem_space, H5S_SELECT_SET, n, point);
            t->elements = n + 1;
            break;
        case 5:
            if (n == 0)
                break;
            memory = "block";
            t->mem_space = H5S_BLOCK;
            t->elements = n;
            break;
        }
    }
    if (t->mem_space == H5S_ALL && (whole || (n == extent && chance(50)))) {
        H5Sclose(space);
        t->file_space = H5S_ALL;
    }
    H5T_class_t cls = H5Tget_class(t->type);
    const char *transform = "";
    H5D_space_status_t allocated = H5D_SPACE_STATUS_ERROR;
    H5Dget_space_status(set, &allocated); /* D19 */
    if ((cls == H5T_INTEGER || cls == H5T_FLOAT) && !whole && allocated == H5D_SPACE_STATUS_ALLOCATED && chance(6)) {
        transform = ", transformed 2*x+1";
        H5Tclose(t->type); /* most others are refused, half-way through */
        t->type = H5Tcopy(H5T_NATIVE_DOUBLE);
        t->plist = H5Pcreate(H5P_DATASET_XFER);
        H5Pset_data_transform(t->plist, "2*x+1");
    } else if (chance(5)) {
        transform = ", small conversion buffer";
        t->plist = H5Pcreate(H5P_DATASET_XFER);
        H5Pset_buffer(t->plist, 1024 + H5Tget_size(t->type) * 4, NULL, NULL);
    }
    snprintf(t->text, sizeof t->text, "file %s, memory %s, class %d size %zu%s", selection, memory, (int)cls,
             H5Tget_size(t->type), transform);
}

/* D24 */
static void name_all_members(transfer *t, hid_t set)
{
    if (type_contains(t->type, H5T_COMPOUND)) {
        H5Tclose(t->type);
        t->type = H5Dget_type(set);
    }
}

static void end_transfer(transfer *t)
{
    H5Tclose(t->type);
    if (t->file_space > 0)
        H5Sclose(t->file_space);
    if (t->mem_space > 0 && t->mem_space != H5S_BLOCK)
        H5Sclose(t->mem_space);
    if (t->plist != H5P_DEFAULT)
        H5Pclose(t->plist);
}

static bool write_dataset(pair set, bool whole)
{
    SIDES;
    transfer t;
    hid_t dcpl = H5Dget_create_plist(set.id[0]);
    plan_transfer(&t, set.id[0], whole);
    if (H5Pget_nfilters(dcpl) > 0)
        name_all_members(&t, set.id[0]);
    H5Pclose(dcpl);
    also(": %s", t.text);
    void *values = random_values(t.type, t.elements);
    w.modified = true;
    bool done = BOTH("H5Dwrite", H5Dwrite(set.id[s], t.type, t.mem_space, t.file_space, t.plist, values));
    reclaim(t.type, t.elements, values);
    end_transfer(&t);
    return done;
}

static int find_mask(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *found)
{
    (void)offset;
    (void)address;
    (void)size;
    *(unsigned *)found |= mask;
    return 0;
}

/* D12: a chunk was written raw, past filters that never fail by themselves. Deflate alone may give up. */
static bool masked(hid_t set)
{
    hid_t dcpl = H5Dget_create_plist(set);
    unsigned found = 0, config, flags;
    int filters = H5Pget_nfilters(dcpl);
    if (filters > 0 && H5Pget_layout(dcpl) == H5D_CHUNKED)
        H5Dchunk_iter(set, H5P_DEFAULT, find_mask, &found);
    for (int i = 0; i < filters; i++) {
        size_t none = 0;
        if (H5Pget_filter2(dcpl, (unsigned)i, &flags, &none, NULL, 0, NULL, &config) == H5Z_FILTER_DEFLATE)
            found &= ~(1u << i);
    }
    H5Pclose(dcpl);
    return found != 0;
}

/* D5: nobody knows what unwritten elements of such a dataset are. */
static bool without_fill(hid_t set)
{
    hid_t dcpl = H5Dget_create_plist(set);
    H5D_fill_value_t defined = 0;
    H5D_fill_time_t when = 0;
    H5Pfill_value_defined(dcpl, &defined);
    H5Pget_fill_time(dcpl, &when);
    H5D_alloc_time_t alloc = 0;
    H5Pget_alloc_time(dcpl, &alloc);
    H5D_layout_t layout = H5Pget_layout(dcpl);
    bool first = layout == H5D_CONTIGUOUS || (layout == H5D_CHUNKED && alloc == H5D_ALLOC_TIME_LATE);
    hid_t type = H5Dget_type(set);
    bool early = alloc == H5D_ALLOC_TIME_EARLY &&
                 ((defined == H5D_FILL_VALUE_DEFAULT && when == H5D_FILL_TIME_IFSET) || type_contains(type, H5T_VLEN));
    H5Tclose(type);
    H5Pclose(dcpl);
    return defined == H5D_FILL_VALUE_UNDEFINED || when == H5D_FILL_TIME_NEVER || first || early;
}

/* ---- operations: each says what it does with note() before it does it; false when it had nothing to work on ---- */

static bool op_group(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE];
    pair made;
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), lcpl = link_plist();
    unsigned tracked = chance(50) ? 0 : H5P_CRT_ORDER_TRACKED | (chance(50) ? H5P_CRT_ORDER_INDEXED : 0);
    new_path(path, "g");
    H5Pset_link_creation_order(gcpl, tracked);
    if (chance(30))
        H5Pset_attr_creation_order(gcpl, H5P_CRT_ORDER_TRACKED);
    if (chance(20))
        H5Pset_link_phase_change(gcpl, 2, 1);
    note("H5Gcreate %s tracked %u", path, tracked);
    w.modified = true;
    if (OPEN("H5Gcreate", made, H5Gcreate2(w.file.id[s], path, lcpl, gcpl, H5P_DEFAULT))) {
        close_ids(made);
        touch(path);
    }
    H5Pclose(gcpl);
    H5Pclose(lcpl);
    parent(path, group);
    touch(group);
    return true;
}

static hid_t random_space(char *text, size_t size, int *rank, hsize_t dims[4], hsize_t max[4])
{
    size_t length = 0, total = 1;
    *rank = 0;
    if (chance(5)) {
        snprintf(text, size, "null");
        return H5Screate(H5S_NULL);
    }
    if (chance(8)) {
        snprintf(text, size, "scalar");
        return H5Screate(H5S_SCALAR);
    }
    *rank = 1 + (int)below(4);
    for (int i = 0; i < *rank; i++) {
        size_t room = MAX_ELEMENTS / total;
        size_t most = *rank == 1 ? (chance(30) ? 3000 : 60) : *rank == 2 ? 40 : *rank == 3 ? 14 : 8;
        dims[i] = chance(3) ? 0 : 1 + below(most < room ? most : room);
        total *= dims[i] ? dims[i] : 1;
        max[i] = chance(45) ? dims[i] : chance(60) ? H5S_UNLIMITED : dims[i] + below(20);
        if (max[i] == 0)
            max[i] = 5;
        length += (size_t)snprintf(text + length, size - length, "%s%llu", i ? "x" : "", (unsigned long long)dims[i]);
        if (max[i] != dims[i] && length < size)
            length += max[i] == H5S_UNLIMITED
                          ? (size_t)snprintf(text + length, size - length, "..")
                          : (size_t)snprintf(text + length, size - length, "..%llu", (unsigned long long)max[i]);
    }
    return H5Screate_simple(*rank, dims, max);
}

static void random_filters(hid_t dcpl, hid_t type, char *text, size_t size)
{
    H5T_class_t cls = H5Tget_class(type);
    bool lossless = cls == H5T_INTEGER && H5Tget_precision(type) == 8 * H5Tget_size(type);
    *text = 0;
    if (chance(45))
        return;
    if (lossless && chance(15)) {
        H5Pset_scaleoffset(dcpl, H5Z_SO_INT, (int)(8 * H5Tget_size(type))); /* D15 */
        strncat(text, " scaleoffset", size - strlen(text) - 1);
    } else if (lossless && chance(15)) {
        H5Pset_nbit(dcpl);
        strncat(text, " nbit", size - strlen(text) - 1);
    } else if (chance(45)) {
        H5Pset_shuffle(dcpl);
        strncat(text, " shuffle", size - strlen(text) - 1);
    }
    if (chance(55)) {
        H5Pset_deflate(dcpl, (unsigned)below(10));
        strncat(text, " deflate", size - strlen(text) - 1);
    }
    if (chance(30)) {
        H5Pset_fletcher32(dcpl);
        strncat(text, " fletcher32", size - strlen(text) - 1);
    }
}

static hid_t random_dcpl(hid_t type, int rank, const hsize_t dims[], const hsize_t max[], char *text, size_t size)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[4];
    char filters[100] = "", shape[80] = "";
    const char *layout = "default";
    bool fixed = true;
    for (int i = 0; i < rank; i++)
        fixed = fixed && max[i] == dims[i];
    if (rank && (!fixed || chance(60))) {
        size_t length = 0;
        for (int i = 0; i < rank; i++) {
            hsize_t most = dims[i] ? dims[i] : 4;
            chunk[i] = 1 + below(chance(50) && most > 5 ? 5 : (size_t)most);
            if (max[i] == H5S_UNLIMITED && chance(10))
                chunk[i] = most + below(10);
            if (chance(1))
                chunk[i] += 30; /* often not allowed */
            length += (size_t)snprintf(shape + length, sizeof shape - length, "%s%llu", i ? "x" : " ",
                                       (unsigned long long)chunk[i]);
        }
        H5Pset_chunk(dcpl, rank, chunk);
        layout = "chunked";
        random_filters(dcpl, type, filters, sizeof filters);
    } else if (chance(25)) {
        H5Pset_layout(dcpl, H5D_COMPACT);
        layout = "compact";
    } else if (chance(50)) {
        H5Pset_layout(dcpl, H5D_CONTIGUOUS);
        layout = "contiguous";
    }
    bool special = type_contains(type, H5T_VLEN) || type_contains(type, H5T_REFERENCE);
    const char *fill = "";
    if (!special && chance(35)) {
        void *value = random_values(type, 1);
        H5Pset_fill_value(dcpl, type, value);
        free(value);
        fill = " fill user";
    } else if (chance(12) && !type_contains(type, H5T_VLEN)) { /* overwriting garbage would free it */
        H5Pset_fill_value(dcpl, type, NULL);
        fill = " fill undefined";
    }
    int alloc = 0, when = 0;
    if (chance(35)) {
        alloc = 1 + (int)below(3);
        H5Pset_alloc_time(dcpl, (H5D_alloc_time_t)alloc);
    }
    if (chance(30)) {
        when = 1 + (int)below(3);
        const H5D_fill_time_t times[] = {0, H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_IFSET, H5D_FILL_TIME_NEVER};
        H5Pset_fill_time(dcpl, times[when]);
    }
    if (chance(30))
        H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED | (chance(50) ? H5P_CRT_ORDER_INDEXED : 0));
    if (chance(30))
        H5Pset_obj_track_times(dcpl, chance(50));
    snprintf(text, size, "%s%s%s%s alloc %d filltime %d", layout, shape, filters, fill, alloc, when);
    return dcpl;
}

static bool op_dataset(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE], shape[200], properties[300], type_text[PATH_SIZE + 40];
    hsize_t dims[4] = {0}, max[4] = {0};
    int rank;
    pair set, named = {{H5I_INVALID_HID, H5I_INVALID_HID}};
    hid_t types[2], space = random_space(shape, sizeof shape, &rank, dims, max);
    const char *committed = chance(10) && !getenv("NOTYPES") ? some(AT_TYPE) : NULL;
    types[0] = types[1] = H5I_INVALID_HID;
    if (committed && OPEN("H5Topen", named, H5Topen2(w.file.id[s], committed, H5P_DEFAULT))) {
        types[0] = named.id[0];
        types[1] = named.id[1];
        snprintf(type_text, sizeof type_text, "committed %s", committed);
    } else {
        types[0] = types[1] = random_type(2, chance(40));
        snprintf(type_text, sizeof type_text, "class %d size %zu", (int)H5Tget_class(types[0]), H5Tget_size(types[0]));
        committed = NULL;
    }
    hid_t dcpl = random_dcpl(types[0], rank, dims, max, properties, sizeof properties), lcpl = link_plist();
    bool anonymous = chance(5);
    new_path(path, "d");
    note("H5Dcreate%s %s: %s %s %s", anonymous ? "_anon+H5Olink" : "", path, type_text, shape, properties);
    w.modified = true;
    bool done = anonymous
                    ? OPEN("H5Dcreate_anon", set, H5Dcreate_anon(w.file.id[s], types[s], space, dcpl, H5P_DEFAULT))
                    : OPEN("H5Dcreate", set, H5Dcreate2(w.file.id[s], path, types[s], space, lcpl, dcpl, H5P_DEFAULT));
    if (done) {
        if (without_fill(set.id[0]) || chance(50))
            write_dataset(set, true);
        if (anonymous) /* may be refused: then the dataset goes when it is closed */
            BOTH("H5Olink", H5Olink(set.id[s], w.file.id[s], path, lcpl, H5P_DEFAULT));
        check_dataset(set, path);
        if (chance(60))
            keep_handle(set, path);
        else
            close_ids(set);
    } else { /* D23 */
        bool there = true, same = true;
        for (char *slash = path; same && there && (slash = strchr(slash + 1, '/'));) {
            *slash = 0;
            there = H5Lexists(w.file.id[0], path, H5P_DEFAULT) > 0;
            same = (H5Lexists(w.file.id[1], path, H5P_DEFAULT) > 0) == there;
            if (!same && there)
                H5Ldelete(w.file.id[0], path, H5P_DEFAULT);
            *slash = '/';
        }
    }
    if (committed)
        close_ids(named);
    else
        H5Tclose(types[0]);
    H5Sclose(space);
    H5Pclose(dcpl);
    H5Pclose(lcpl);
    parent(path, group);
    touch(group);
    return true;
}

static bool op_open(void)
{
    SIDES;
    pair set;
    const char *path = some(AT_DATASET);
    if (!path)
        return false;
    note("open and keep %s", path);
    if (chance(70) ? OPEN("H5Dopen", set, H5Dopen2(w.file.id[s], path, H5P_DEFAULT))
                   : OPEN("H5Oopen", set, H5Oopen(w.file.id[s], path, H5P_DEFAULT)))
        keep_handle(set, path);
    return true;
}

static bool op_close(void)
{
    if (!w.handles)
        return false;
    size_t i = below(w.handles);
    note("close handle of %s", w.handle[i].path);
    drop_handle(i);
    return true;
}

static bool op_write(void)
{
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (!take_dataset(&set, path, &own))
        return false;
    note("H5Dwrite %s", path);
    write_dataset(set, chance(8));
    check_dataset(set, path);
    if (own)
        close_ids(set);
    return true;
}

static void read_dataset(pair set)
{
    SIDES;
    transfer t;
    plan_transfer(&t, set.id[0], false);
    also(": %s", t.text);
    size_t size = H5Tget_size(t.type);
    char *values[2];
    bool pointers = type_contains(t.type, H5T_VLEN);
    for (int i = 0; i < 2; i++) {
        values[i] = malloc(t.elements * size + 1);
        memset(values[i], pointers ? 0 : 0xA5, t.elements * size + 1); /* what is not selected must stay */
    }
    if (BOTH("H5Dread", H5Dread(set.id[s], t.type, t.mem_space, t.file_space, t.plist, values[s])) &&
        !values_agree(t.type, values[0], values[1], t.elements))
        differ(NO_STACK, "H5Dread gives other elements");
    for (int i = 0; i < 2; i++)
        reclaim(t.type, t.elements, values[i]);
    end_transfer(&t);
}

static bool op_read(void)
{
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (!find_dataset(&set, path, &own))
        return false;
    note("H5Dread %s", path);
    read_dataset(set);
    if (own)
        close_ids(set);
    return true;
}

/* Up to three different datasets in one call. */
static bool op_multi(void)
{
    SIDES;
    transfer t[3];
    pair set[3];
    void *values[2][3];
    hid_t ids[2][3], type[3], mem[3], file[3];
    const void *out[3];
    size_t n = 0;
    bool writing = chance(60);
    note(writing ? "H5Dwrite_multi" : "H5Dread_multi");
    for (int tries = 0; tries < 6 && n < 3; tries++) {
        const char *path = some(AT_DATASET);
        H5O_info2_t mine, other;
        bool fresh = path && OPEN("H5Dopen", set[n], H5Dopen2(w.file.id[s], path, H5P_DEFAULT));
        if (!fresh)
            continue;
        H5Oget_info3(set[n].id[0], &mine, H5O_INFO_BASIC);
        for (size_t i = 0; i < n; i++) {
            int cmp = 1;
            H5Oget_info3(set[i].id[0], &other, H5O_INFO_BASIC);
            H5Otoken_cmp(w.file.id[0], &mine.token, &other.token, &cmp);
            fresh = fresh && cmp != 0;
        }
        fresh = fresh && !(writing && masked(set[n].id[0]));
        if (!fresh) {
            close_ids(set[n]);
            continue;
        }
        plan_transfer(&t[n], set[n].id[0], false);
        if (t[n].plist != H5P_DEFAULT) {
            H5Pclose(t[n].plist);
            t[n].plist = H5P_DEFAULT;
        }
        if (writing)
            name_all_members(&t[n], set[n].id[0]);
        also(" %s (%s)", path, t[n].text);
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        size_t size = H5Tget_size(t[i].type);
        for (int k = 0; k < 2; k++) {
            ids[k][i] = set[i].id[k];
            values[k][i] = NULL;
            if (!writing)
                values[k][i] = memset(malloc(t[i].elements * size + 1), type_contains(t[i].type, H5T_VLEN) ? 0 : 0xA5,
                                      t[i].elements * size + 1);
        }
        if (writing)
            values[0][i] = random_values(t[i].type, t[i].elements);
        out[i] = values[0][i];
        type[i] = t[i].type;
        mem[i] = t[i].mem_space;
        file[i] = t[i].file_space;
    }
    if (n && writing) {
        w.modified = true;
        BOTH("H5Dwrite_multi", H5Dwrite_multi(n, ids[s], type, mem, file, H5P_DEFAULT, out));
    } else if (n && BOTH("H5Dread_multi", H5Dread_multi(n, ids[s], type, mem, file, H5P_DEFAULT, values[s])))
        for (size_t i = 0; i < n; i++)
            if (!values_agree(type[i], values[0][i], values[1][i], t[i].elements)) { /* D24 */
                if (H5Dread(ids[0][i], type[i], mem[i], file[i], H5P_DEFAULT, values[0][i]) < 0 ||
                    !values_agree(type[i], values[0][i], values[1][i], t[i].elements))
                    differ(NO_STACK, "H5Dread_multi gives other elements for dataset %zu", i);
                also(" [native H5Dread_multi and H5Dread disagree]");
            }
    for (size_t i = 0; i < n; i++) {
        if (writing)
            check_dataset(set[i], "a dataset of H5Dwrite_multi");
        for (int k = 0; k < 2; k++)
            if (values[k][i])
                reclaim(t[i].type, t[i].elements, values[k][i]);
        end_transfer(&t[i]);
        close_ids(set[i]);
    }
    return n > 0;
}

static bool op_extent(void)
{
    SIDES;
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (!take_dataset(&set, path, &own))
        return false;
    hid_t space = H5Dget_space(set.id[0]);
    hsize_t dims[H5S_MAX_RANK] = {0}, max[H5S_MAX_RANK] = {0};
    int rank = H5Sget_simple_extent_dims(space, dims, max);
    size_t total = 1;
    bool resizable = false;
    for (int i = 0; i < rank; i++)
        resizable = resizable || max[i] != dims[i];
    H5Sclose(space);
    if (!resizable && chance(90)) {
        if (own)
            close_ids(set);
        return false;
    }
    note("H5Dset_extent %s:", path);
    for (int i = 0; i < rank; i++) {
        if (chance(25))
            dims[i] = chance(8) ? 0 : 1 + below((size_t)dims[i] + 1); /* down */
        else if (chance(60) && (max[i] != dims[i] || chance(2)))
            dims[i] += below(rank == 1 ? 60 : rank == 2 ? 15 : 6);
        if (max[i] != H5S_UNLIMITED && dims[i] > max[i] && chance(95))
            dims[i] = max[i];
        if (total * (dims[i] ? dims[i] : 1) > MAX_ELEMENTS)
            dims[i] = 1;
        total *= dims[i] ? dims[i] : 1;
        also(" %llu", (unsigned long long)dims[i]);
    }
    w.modified = true;
    if (BOTH("H5Dset_extent", H5Dset_extent(set.id[s], dims)) && without_fill(set.id[0]))
        write_dataset(set, true);
    check_dataset(set, path);
    if (own)
        close_ids(set);
    return true;
}

/* Raw chunks: from one place of a dataset to another, or unfiltered bytes with every filter masked out. */
static bool op_chunk(void)
{
    SIDES;
    pair set;
    char path[PATH_SIZE];
    bool own, done = false;
    if (!take_dataset(&set, path, &own))
        return false;
    hid_t space = H5Dget_space(set.id[0]), type = H5Dget_type(set.id[0]), dcpl = H5Dget_create_plist(set.id[0]);
    hsize_t dims[H5S_MAX_RANK] = {0}, chunk[H5S_MAX_RANK] = {0}, at[H5S_MAX_RANK] = {0}, from[H5S_MAX_RANK] = {0},
            n = 0;
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    bool fits =
        H5Pget_layout(dcpl) == H5D_CHUNKED && !type_contains(type, H5T_VLEN) && !type_contains(type, H5T_REFERENCE);
    size_t bytes = H5Tget_size(type);
    if (fits)
        H5Pget_chunk(dcpl, rank, chunk);
    for (int i = 0; i < rank && fits; i++) {
        fits = dims[i] >= chunk[i]; /* D5 */
        at[i] = fits ? below((size_t)(dims[i] / chunk[i])) * chunk[i] : 0;
        bytes *= chunk[i];
    }
    if (fits) {
        note("H5Dwrite_chunk %s to", path);
        for (int i = 0; i < rank; i++)
            also(" %llu", (unsigned long long)at[i]);
        uint32_t mask = 0;
        hsize_t size = bytes;
        void *raw = NULL;
        int filters = H5Pget_nfilters(dcpl);
        haddr_t address;
        unsigned ignored;
        if (filters && chance(70) && H5Dget_num_chunks(set.id[0], H5S_ALL, &n) >= 0 && n > 0 &&
            H5Dget_chunk_info(set.id[0], H5S_ALL, below((size_t)n), from, &ignored, &address, &size) >= 0) {
            raw = malloc(size + 1);
            if (H5Dread_chunk(set.id[0], H5P_DEFAULT, from, &mask, raw) < 0)
                fits = false;
        } else {
            raw = random_values(type, bytes / H5Tget_size(type));
            mask = filters ? (1u << filters) - 1 : 0;
        }
        also(", %llu bytes, mask %x", (unsigned long long)size, mask);
        unsigned before[2] = {0, 0};
        hsize_t there[2] = {0, 0};
        BOTH("H5Dget_chunk_info_by_coord",
             H5Dget_chunk_info_by_coord(set.id[s], at, &before[s], &address, &there[s]));
        if (fits && mask != before[0] && there[0] == size) { /* D12 */
            also(" [not written, same size]");
            done = true;
        } else if (fits) {
            w.modified = true;
            BOTH("H5Dwrite_chunk", H5Dwrite_chunk(set.id[s], H5P_DEFAULT, mask, at, size, raw));
            done = true;
            if (mask || before[0]) { /* D12 */
                if (own)
                    close_ids(set);
                own = false;
                while (w.handles)
                    drop_handle(0);
                touch(path);
            } else
                check_dataset(set, path);
        }
        free(raw);
    } else if (H5Pget_layout(dcpl) != H5D_CHUNKED) {
        hsize_t count;
        note("chunk questions to %s, which has none", path);
        BOTH("H5Dget_num_chunks", H5Dget_num_chunks(set.id[s], H5S_ALL, &count));
        done = true;
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(dcpl);
    if (own)
        close_ids(set);
    return done;
}

/* A real reference is written, read back, and must lead to the same path on both sides (D3). */
static bool op_reference(void)
{
    SIDES;
    const char *target = some_object();
    char path[PATH_SIZE] = "";
    pair set = {{H5I_INVALID_HID, H5I_INVALID_HID}};
    for (int tries = 0; tries < 20 && set.id[0] < 0; tries++) {
        const char *at = some(AT_DATASET);
        if (!at || !OPEN("H5Dopen", set, H5Dopen2(w.file.id[s], at, H5P_DEFAULT)))
            return false;
        hid_t type = H5Dget_type(set.id[0]), space = H5Dget_space(set.id[0]);
        if (H5Tequal(type, H5T_STD_REF_OBJ) > 0 && H5Sget_select_npoints(space) > 0)
            snprintf(path, sizeof path, "%s", at);
        else {
            close_ids(set);
            set.id[0] = H5I_INVALID_HID;
        }
        H5Tclose(type);
        H5Sclose(space);
    }
    if (set.id[0] < 0)
        return false;
    note("write a reference to %s into %s", target, path);
    hid_t space = H5Dget_space(set.id[0]), one = H5Screate(H5S_SCALAR);
    hsize_t point[H5S_MAX_RANK] = {0};
    if (H5Sget_simple_extent_ndims(space) > 0)
        H5Sselect_elements(space, H5S_SELECT_SET, 1, point);
    hobj_ref_t reference[2] = {0, 0}, back[2] = {0, 0};
    char name[2][PATH_SIZE] = {"", ""};
    w.modified = true;
    bool written =
        BOTH("H5Rcreate", H5Rcreate(&reference[s], w.file.id[s], target, H5R_OBJECT1, -1)) &&
        BOTH("H5Dwrite", H5Dwrite(set.id[s], H5T_STD_REF_OBJ, one, space, H5P_DEFAULT, &reference[s])) &&
        BOTH("H5Dread", H5Dread(set.id[s], H5T_STD_REF_OBJ, one, space, H5P_DEFAULT, &back[s]));
    for (s = 0; written && s < 2; s++)
        H5Rget_name(w.file.id[s], H5R_OBJECT1, &back[s], name[s], PATH_SIZE);
    /* of several names HDF5 gives the one that it finds first, which depends on the groups' storage (D2) */
    H5O_info2_t info[2];
    if (written && strcmp(name[0], name[1]) != 0 &&
        BOTH("H5Oget_info", H5Oget_info_by_name3(w.file.id[1], name[s], &info[s], H5O_INFO_BASIC, H5P_DEFAULT)) &&
        memcmp(&info[0].token, &info[1].token, sizeof info[0].token) != 0)
        differ(NO_STACK, "the reference leads to %s, under test to %s", name[0], name[1]);
    check_dataset(set, path);
    H5Sclose(space);
    H5Sclose(one);
    close_ids(set);
    return true;
}

static bool op_attribute(void)
{
    SIDES;
    char path[PATH_SIZE], name[40], other[40], shape[200];
    hsize_t dims[4], max[4];
    int rank;
    snprintf(path, sizeof path, "%s", some_object());
    snprintf(name, sizeof name, "a%zu", below(14));
    snprintf(other, sizeof other, "a%zu", below(14));
    pair object, at;
    if (!OPEN("H5Oopen", object, H5Oopen(w.file.id[s], path, H5P_DEFAULT)))
        return false;
    touch(path);
    w.modified = true;
    size_t what = below(100);
    if (what < 45) {
        hid_t type = random_type(1, true), space = random_space(shape, sizeof shape, &rank, dims, max);
        if (H5Sget_simple_extent_type(space) == H5S_SIMPLE) { /* attributes have no maximum, and are small */
            for (int i = 0; i < rank; i++)
                dims[i] = dims[i] % 5;
            H5Sclose(space);
            space = H5Screate_simple(rank, dims, NULL);
        }
        size_t n = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space);
        void *values = random_values(type, n);
        note("H5Acreate %s@%s class %d rank %d", path, name, (int)H5Tget_class(type), rank);
        if (OPEN("H5Acreate", at, H5Acreate2(object.id[s], name, type, space, H5P_DEFAULT, H5P_DEFAULT))) {
            BOTH("H5Awrite", H5Awrite(at.id[s], type, values));
            close_ids(at);
        }
        reclaim(type, n, values);
        H5Tclose(type);
        H5Sclose(space);
    } else if (what < 70) {
        note("H5Awrite %s@%s", path, name);
        if (BOTH("H5Aexists", H5Aexists(object.id[s], name)) && r_[0] > 0 &&
            OPEN("H5Aopen", at, H5Aopen(object.id[s], name, H5P_DEFAULT))) {
            hid_t own = H5Aget_type(at.id[0]), type = memory_type(own, chance(60)), space = H5Aget_space(at.id[0]);
            size_t n = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space);
            void *values = random_values(type, n);
            BOTH("H5Awrite", H5Awrite(at.id[s], type, values));
            reclaim(type, n, values);
            H5Tclose(own);
            H5Tclose(type);
            H5Sclose(space);
            close_ids(at);
        }
    } else if (what < 80) {
        note("H5Adelete %s@%s", path, name);
        BOTH("H5Adelete", H5Adelete(object.id[s], name));
    } else if (what < 85) {
        hsize_t n = below(4);
        note("H5Adelete_by_idx %s %llu", path, (unsigned long long)n);
        BOTH("H5Adelete_by_idx", H5Adelete_by_idx(w.file.id[s], path, H5_INDEX_NAME, H5_ITER_INC, n, H5P_DEFAULT));
    } else if (what < 92) {
        note("H5Arename %s@%s to %s", path, name, other);
        BOTH("H5Arename", H5Arename_by_name(w.file.id[s], path, name, other, H5P_DEFAULT));
    } else {
        char text[2][60] = {"", ""};
        hsize_t n = below(5);
        note("H5Aget_name_by_idx %s %llu", path, (unsigned long long)n);
        if (BOTH("H5Aget_name_by_idx", H5Aget_name_by_idx(w.file.id[s], path, H5_INDEX_NAME, H5_ITER_DEC, n, text[s],
                                                          sizeof text[s], H5P_DEFAULT)) &&
            strcmp(text[0], text[1]) != 0)
            differ(NO_STACK, "attribute %llu of %s is %s, under test %s", (unsigned long long)n, path, text[0],
                   text[1]);
    }
    close_ids(object);
    return true;
}

struct search {
    hid_t file;
    H5O_token_t token;
    bool found;
};

static herr_t search_token(hid_t at, const char *name, const H5O_info2_t *info, void *data)
{
    struct search *search = data;
    int cmp = 1;
    (void)at;
    (void)name;
    H5Otoken_cmp(search->file, &info->token, &search->token, &cmp);
    search->found = search->found || cmp == 0;
    return 0;
}

/* Would a link to FROM inside group TO close a circle, or move FROM out of the tree? Asked of the twin. */
static bool holds(const char *from, const char *to)
{
    H5O_info2_t info;
    struct search search = {.file = w.file.id[0]};
    if (H5Oget_info_by_name3(w.file.id[0], to, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return false;
    search.token = info.token;
    H5Ovisit_by_name3(w.file.id[0], from, H5_INDEX_NAME, H5_ITER_INC, search_token, &search, H5O_INFO_BASIC,
                      H5P_DEFAULT);
    return search.found;
}

/* The nearest group above PATH that exists. */
static void existing_parent(const char *path, char group[PATH_SIZE])
{
    H5O_info2_t info;
    char child[PATH_SIZE];
    snprintf(child, sizeof child, "%s", path);
    do {
        parent(child, group);
        snprintf(child, sizeof child, "%s", group);
    } while (strcmp(group, "/") != 0 &&
             H5Oget_info_by_name3(w.file.id[0], group, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0);
}

static bool op_link(void)
{
    SIDES;
    char from[PATH_SIZE], to[PATH_SIZE], group[PATH_SIZE], above[PATH_SIZE];
    const char *link = some_link();
    hid_t lcpl = link_plist();
    bool crowded = w.places > MAX_LINKS, done = true;
    size_t what = below(100);
    if (crowded && what < 75)
        what = 40;
    snprintf(from, sizeof from, "%s", link ? link : "/");
    new_path(to, "l");
    parent(to, group);
    existing_parent(to, above);
    w.modified = true;
    if (what < 12) {
        note("H5Lcreate_hard %s %s", from, to);
        if (strcmp(from, "/") == 0 || holds(from, above))
            done = false;
        else
            BOTH("H5Lcreate_hard", H5Lcreate_hard(w.file.id[s], from, w.file.id[s], to, lcpl, H5P_DEFAULT));
        touch(from);
    } else if (what < 24) {
        const char *target = chance(20)                       ? "nowhere/at all"
                             : chance(20)                     ? "/"
                             : chance(30) && strlen(from) > 1 ? from + 1
                                                              : from;
        note("H5Lcreate_soft %s %s", target, to);
        BOTH("H5Lcreate_soft", H5Lcreate_soft(target, w.file.id[s], to, lcpl, H5P_DEFAULT));
    } else if (what < 28) {
        note("H5Lcreate_external %s", to);
        BOTH("H5Lcreate_external", H5Lcreate_external("no such file.h5", "/x", w.file.id[s], to, lcpl, H5P_DEFAULT));
    } else if (what < 55) {
        if (!link || (!crowded && chance(40)))
            done = false;
        else {
            note("H5Ldelete %s", from);
            w.deleted = true;
            BOTH("H5Ldelete", H5Ldelete(w.file.id[s], from, H5P_DEFAULT));
            parent(from, group);
        }
    } else if (what < 58) {
        hsize_t n = below(3);
        snprintf(group, sizeof group, "%s", some_group());
        note("H5Ldelete_by_idx %s %llu", group, (unsigned long long)n);
        w.deleted = true;
        BOTH("H5Ldelete_by_idx", H5Ldelete_by_idx(w.file.id[s], group, H5_INDEX_NAME, H5_ITER_INC, n, H5P_DEFAULT));
    } else if (what < 76) {
        if (!link || holds(from, above))
            done = false;
        else {
            char old[PATH_SIZE];
            parent(from, old);
            note("H5Lmove %s %s", from, to);
            BOTH("H5Lmove", H5Lmove(w.file.id[s], from, w.file.id[s], to, lcpl, H5P_DEFAULT));
            touch(old);
        }
    } else if (what < 84) {
        if (!link || holds(from, above))
            done = false;
        else {
            note("H5Lcopy %s %s", from, to);
            BOTH("H5Lcopy", H5Lcopy(w.file.id[s], from, w.file.id[s], to, lcpl, H5P_DEFAULT));
        }
    } else {
        char value[2][PATH_SIZE] = {"", ""};
        note("H5Lexists, H5Lget_info, H5Oexists %s", from);
        H5L_info2_t info[2];
        memset(info, 0, sizeof info);
        BOTH("H5Lexists", link ? H5Lexists(w.file.id[s], from, H5P_DEFAULT) : 0);
        BOTH("H5Oexists_by_name", H5Oexists_by_name(w.file.id[s], from, H5P_DEFAULT));
        if (link && BOTH("H5Lget_info", H5Lget_info2(w.file.id[s], from, &info[s], H5P_DEFAULT)) &&
            (info[0].type != info[1].type || (info[0].cset != info[1].cset && !w.copied /* D21 */) ||
             (info[0].type == H5L_TYPE_SOFT && info[0].u.val_size != info[1].u.val_size)))
            differ(NO_STACK, "H5Lget_info %s: type %d cset %d size %zu, under test type %d cset %d size %zu", from,
                   info[0].type, info[0].cset, info[0].u.val_size, info[1].type, info[1].cset, info[1].u.val_size);
        if (link && info[0].type == H5L_TYPE_SOFT &&
            BOTH("H5Lget_val", H5Lget_val(w.file.id[s], from, value[s], PATH_SIZE, H5P_DEFAULT)) &&
            strcmp(value[0], value[1]) != 0)
            differ(NO_STACK, "H5Lget_val %s: %s, under test %s", from, value[0], value[1]);
    }
    H5Pclose(lcpl);
    touch(group);
    return done;
}

static herr_t find_uncopyable(hid_t at, const char *name, const H5O_info2_t *info, void *found)
{
    if (info->type != H5O_TYPE_DATASET)
        return 0;
    hid_t set = H5Dopen2(at, name, H5P_DEFAULT), type = H5Dget_type(set);
    H5T_class_t cls = H5Tget_class(type);
    if (((cls == H5T_COMPOUND || cls == H5T_ARRAY) && type_contains(type, H5T_VLEN)) ||
        type_contains(type, H5T_REFERENCE))
        *(bool *)found = true;
    H5Tclose(type);
    H5Dclose(set);
    return 0;
}

/* D13. Asked of the twin. */
static bool copyable(const char *path)
{
    bool found = false;
    H5O_info2_t info;
    if (H5Oget_info_by_name3(w.file.id[0], path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return true;
    hid_t top = H5Oopen(w.file.id[0], path, H5P_DEFAULT);
    H5Ovisit3(top, H5_INDEX_NAME, H5_ITER_INC, find_uncopyable, &found, H5O_INFO_BASIC);
    H5Oclose(top);
    return !found;
}

static bool op_copy(void)
{
    SIDES;
    char from[PATH_SIZE], to[PATH_SIZE], group[PATH_SIZE];
    if (w.places > MAX_LINKS)
        return false;
    const char *link = chance(70) ? some(AT_DATASET) : some_link();
    if (!link)
        return false;
    snprintf(from, sizeof from, "%s", link);
    new_path(to, "c");
    existing_parent(to, group);
    if (holds(from, group) || !copyable(from))
        return false;
    for (size_t i = w.handles; i-- > 0;) { /* D10 */
        hid_t dcpl = H5Dget_create_plist(w.handle[i].set.id[0]);
        bool filtered = H5Pget_nfilters(dcpl) > 0;
        H5Pclose(dcpl);
        if (filtered)
            drop_handle(i);
    }
    hid_t plist = H5Pcreate(H5P_OBJECT_COPY), lcpl = link_plist();
    unsigned flags = (chance(10) ? H5O_COPY_SHALLOW_HIERARCHY_FLAG : 0) | (chance(10) ? H5O_COPY_WITHOUT_ATTR_FLAG : 0);
    H5Pset_copy_object(plist, flags);
    note("H5Ocopy %s %s flags %x", from, to, flags);
    w.copied = true;
    w.modified = true;
    BOTH("H5Ocopy", H5Ocopy(w.file.id[s], from, w.file.id[s], to, plist, lcpl));
    H5Pclose(plist);
    H5Pclose(lcpl);
    touch(to);
    touch(group);
    touch(from);
    return true;
}

static bool op_type(void)
{
    SIDES;
    char path[PATH_SIZE], group[PATH_SIZE];
    pair copy;
    hid_t type = random_type(2, true), lcpl = link_plist();
    new_path(path, "t");
    note("H5Tcommit %s class %d", path, (int)H5Tget_class(type));
    w.modified = true;
    OPEN("H5Tcopy", copy, H5Tcopy(type)); /* each side turns its own into a named one */
    BOTH("H5Tcommit", H5Tcommit2(w.file.id[s], path, copy.id[s], lcpl, H5P_DEFAULT, H5P_DEFAULT));
    close_ids(copy);
    H5Tclose(type);
    H5Pclose(lcpl);
    parent(path, group);
    touch(path);
    touch(group);
    return true;
}

static bool op_comment(void)
{
    SIDES;
    char path[PATH_SIZE], text[60];
    snprintf(path, sizeof path, "%s", some_object());
    snprintf(text, sizeof text, "comment %zu", below(1000));
    note("H5Oset_comment %s", path);
    w.modified = true;
    BOTH("H5Oset_comment", H5Oset_comment_by_name(w.file.id[s], path, text, H5P_DEFAULT));
    touch(path);
    return true;
}

/* Everything that lists, as text. */
typedef struct listing {
    char text[40000];
    size_t length;
} listing;

static void list_more(listing *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void list_more(listing *l, const char *format, ...)
{
    va_list args;
    if (l->length >= sizeof l->text - 1)
        return;
    va_start(args, format);
    l->length += (size_t)vsnprintf(l->text + l->length, sizeof l->text - l->length, format, args);
    va_end(args);
}

static herr_t list_link(hid_t at, const char *name, const H5L_info2_t *info, void *data)
{
    (void)at;
    list_more(data, "%s %d\n", name, (int)info->type);
    return 0;
}

static herr_t list_object(hid_t at, const char *name, const H5O_info2_t *info, void *data)
{
    (void)at;
    list_more(data, "%s %d attributes %llu\n", name, (int)info->type, (unsigned long long)info->num_attrs);
    return 0;
}

static bool op_list(void)
{
    SIDES;
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s", some_group());
    H5_index_t index = chance(60) ? H5_INDEX_NAME : H5_INDEX_CRT_ORDER;
    H5_iter_order_t order = chance(50) ? H5_ITER_INC : H5_ITER_DEC;
    listing *list[2] = {calloc(1, sizeof(listing)), calloc(1, sizeof(listing))};
    size_t what = below(5);
    const char *const call[] = {"H5Lvisit", "H5Ovisit", "H5Literate", "H5Lget_name_by_idx", "H5Iget_name"};
    note("%s %s index %d order %d", call[what], path, (int)index, (int)order);
    switch (what) {
    case 0:
        BOTH("H5Lvisit", H5Lvisit_by_name2(w.file.id[s], path, index, order, list_link, list[s], H5P_DEFAULT));
        break;
    case 1:
        BOTH("H5Ovisit", H5Ovisit_by_name3(w.file.id[s], path, index, order, list_object, list[s],
                                           H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT));
        break;
    case 2: {
        hsize_t at[2], start = below(4);
        at[0] = at[1] = start;
        if (BOTH("H5Literate",
                 H5Literate_by_name2(w.file.id[s], path, index, order, &at[s], list_link, list[s], H5P_DEFAULT)) &&
            at[0] != at[1])
            differ(NO_STACK, "H5Literate ends at %llu, under test %llu", (unsigned long long)at[0],
                   (unsigned long long)at[1]);
        break;
    }
    case 3: {
        H5G_info_t info;
        H5Gget_info_by_name(w.file.id[0], path, &info, H5P_DEFAULT);
        for (hsize_t n = 0; n <= info.nlinks && n < 40; n++) { /* one too many */
            char name[2][PATH_SIZE] = {"", ""};
            pair object = {{H5I_INVALID_HID, H5I_INVALID_HID}};
            if (BOTH("H5Lget_name_by_idx",
                     H5Lget_name_by_idx(w.file.id[s], path, index, order, n, name[s], PATH_SIZE, H5P_DEFAULT)) &&
                strcmp(name[0], name[1]) != 0)
                differ(NO_STACK, "link %llu is %s, under test %s", (unsigned long long)n, name[0], name[1]);
            if (chance(20) &&
                OPEN("H5Oopen_by_idx", object, H5Oopen_by_idx(w.file.id[s], path, index, order, n, H5P_DEFAULT)))
                close_ids(object);
        }
        break;
    }
    case 4:
        for (size_t i = 0; i < w.handles; i++) {
            char name[2][PATH_SIZE] = {"", ""};
            if (BOTH("H5Iget_name", H5Iget_name(w.handle[i].set.id[s], name[s], PATH_SIZE)) &&
                strcmp(name[0], name[1]) != 0)
                differ(NO_STACK, "H5Iget_name: %s, under test %s", name[0], name[1]);
        }
        BOTH("H5Fget_obj_count of all", H5Fget_obj_count(w.file.id[s], H5F_OBJ_ALL));
        BOTH("H5Fget_obj_count of datasets", H5Fget_obj_count(w.file.id[s], H5F_OBJ_DATASET));
        break;
    }
    if (strcmp(list[0]->text, list[1]->text) != 0) {
        size_t i = 0;
        while (list[0]->text[i] == list[1]->text[i])
            i++;
        while (i && list[0]->text[i - 1] != '\n')
            i--;
        differ(NO_STACK, "%s lists otherwise: native '%.80s', under test '%.80s'", call[what], list[0]->text + i,
               list[1]->text + i);
    }
    free(list[0]);
    free(list[1]);
    return true;
}

static bool op_flush(void)
{
    SIDES;
    pair set;
    char path[PATH_SIZE];
    bool own;
    if (chance(50)) {
        note("H5Fflush");
        BOTH("H5Fflush", H5Fflush(w.file.id[s], chance(50) ? H5F_SCOPE_LOCAL : H5F_SCOPE_GLOBAL));
        return true;
    }
    if (!find_dataset(&set, path, &own))
        return false;
    note("H5Dflush %s", path);
    BOTH("H5Dflush", H5Dflush(set.id[s]));
    check_dataset(set, path);
    if (own)
        close_ids(set);
    return true;
}

/* ---- files and their versions ---- */

static void copy_file(const char *from, const char *to)
{
    char block[65536];
    ssize_t n;
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (in < 0 || out < 0)
        die("cannot copy %s to %s: %s", from, to, strerror(errno));
    while ((n = read(in, block, sizeof block)) > 0)
        if (write(out, block, (size_t)n) != n)
            die("cannot write %s: %s", to, strerror(errno));
    close(in);
    close(out);
}

static void full_check(void)
{
    comparison c = {.stack = NO_STACK, .how = REACHED_HEAD, .deleted = w.deleted, .scratch = w.scratch,
                    .chunk_bytes = chance(30)};
    if (!compare_trees(&c, w.file.id[0], w.file.id[1]))
        differ(c.stack, "%s", c.why);
    w.compared[REACHED_HEAD]++;
}

/* Names of the versions of the file under test, oldest first, from its log, read natively. */
static size_t read_log(char (**names)[64])
{
    *names = NULL;
    hid_t file = H5Fopen(w.name[1], H5F_ACC_RDONLY, w.access[0]), log = H5I_INVALID_HID;
    hssize_t n = 0;
    if (file < 0)
        differ(H5E_DEFAULT, "%s does not open without the connector", w.name[1]);
    if (H5Lexists(file, "_versioned_data", H5P_DEFAULT) > 0)
        log = H5Dopen2(file, "_versioned_data/log", H5P_DEFAULT);
    if (log >= 0) {
        hid_t space = H5Dget_space(log), text = H5Tcopy(H5T_C_S1), row = H5Tcreate(H5T_COMPOUND, sizeof(char *));
        H5Tset_size(text, H5T_VARIABLE);
        H5Tset_cset(text, H5T_CSET_UTF8);
        H5Tinsert(row, "name", 0, text);
        n = H5Sget_simple_extent_npoints(space);
        char **read = calloc((size_t)n + 1, sizeof *read);
        *names = calloc((size_t)n + 1, sizeof **names);
        if (n && H5Dread(log, row, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) < 0)
            differ(H5E_DEFAULT, "/_versioned_data/log cannot be read");
        for (hssize_t i = 0; i < n; i++)
            snprintf((*names)[i], sizeof(*names)[i], "%s", read[i] ? read[i] : "");
        H5Treclaim(row, space, H5P_DEFAULT, read);
        free(read);
        H5Tclose(row);
        H5Tclose(text);
        H5Sclose(space);
        H5Dclose(log);
    }
    H5Fclose(file);
    return (size_t)n;
}

static void compare_version(const struct version *v, reached how)
{
    char path[PATH_SIZE + 80];
    comparison c = {.stack = NO_STACK, .how = how, .scratch = w.scratch, .chunk_bytes = chance(20)};
    hid_t twin = H5Fopen(v->twin, H5F_ACC_RDONLY, w.access[0]), file = H5I_INVALID_HID, root = H5I_INVALID_HID;
    if (w.self)
        snprintf(path, sizeof path, "%s.%s", w.name[1], v->name);
    else if (how == REACHED_AT)
        snprintf(path, sizeof path, "%s@%s", w.name[1], v->name);
    else {
        snprintf(path, sizeof path, "%s", w.name[1]);
        snprintf(c.prefix, sizeof c.prefix, "/_versioned_data/versions/%s", v->name);
    }
    if (twin < 0)
        die("cannot open %s", v->twin);
    file = H5Fopen(path, H5F_ACC_RDONLY, w.access[how == REACHED_AT]);
    root = file < 0 ? file : H5Gopen2(file, how == REACHED_VERSION && !w.self ? c.prefix : "/", H5P_DEFAULT);
    if (root < 0)
        differ(H5E_DEFAULT, "version %s does not open %s", v->name,
               how == REACHED_AT ? "through the connector" : "natively");
    hid_t top = H5Gopen2(twin, "/", H5P_DEFAULT);
    if (!compare_trees(&c, top, root)) {
        fprintf(stderr, "twin of the version: %s\n", v->twin);
        differ(c.stack, "version %s, read %s: %s", v->name, how == REACHED_AT ? "through the connector" : "natively",
               c.why);
    }
    H5Gclose(top);
    H5Gclose(root);
    H5Fclose(file);
    H5Fclose(twin);
    w.compared[how]++;
}

static void check_versions(bool all)
{
    size_t first = all || w.versions <= RECENT ? 0 : w.versions - RECENT;
    for (size_t i = first; i < w.versions; i++) {
        compare_version(&w.version[i], REACHED_AT);
        compare_version(&w.version[i], REACHED_VERSION);
    }
    if (!all && first > 0) { /* and an old one */
        size_t i = below(first);
        compare_version(&w.version[i], chance(50) ? REACHED_AT : REACHED_VERSION);
    }
}

/* The twin as it is now is what version NAME must be for ever. */
static void keep_version(const char *name)
{
    struct version *v;
    w.version = realloc(w.version, (w.versions + 1) * sizeof *w.version);
    v = &w.version[w.versions++];
    snprintf(v->name, sizeof v->name, "%s", name);
    snprintf(v->twin, sizeof v->twin, "%.500s.%s", w.name[0], name);
    copy_file(w.name[0], v->twin);
}

static void plant_damage(void);

/* Both files have been closed: a version more, when something changed, and none, when not. */
static void after_close(void)
{
    char(*names)[64] = NULL, made[64];
    size_t n;
    bool new_one;
    if (w.self) {
        char copy[2 * PATH_SIZE];
        snprintf(made, sizeof made, "%zu", w.versions + 1);
        new_one = w.modified;
        snprintf(copy, sizeof copy, "%s.%s", w.name[1], made);
        if (new_one)
            copy_file(w.name[1], copy);
    } else {
        n = read_log(&names);
        if (n < w.versions || n > w.versions + 1)
            differ(NO_STACK, "the file has %zu versions after a close, it had %zu before", n, w.versions);
        for (size_t i = 0; i < w.versions; i++)
            if (strcmp(names[i], w.version[i].name) != 0)
                differ(NO_STACK, "version %zu is now called %s, it was %s", i, names[i], w.version[i].name);
        new_one = n == w.versions + 1;
        snprintf(made, sizeof made, "%s", new_one ? names[n - 1] : "");
        free(names);
        if (new_one && !w.modified && !w.created)
            differ(NO_STACK, "nothing was changed, but version %s was made", made);
    }
    if (new_one)
        keep_version(made);
    else if (w.modified && w.versions) {
        /* Changes that changed nothing (refused calls, equal bytes): then the last version is the present state. */
        struct version *last = &w.version[w.versions - 1];
        comparison c = {.stack = NO_STACK, .how = REACHED_HEAD, .scratch = w.scratch};
        hid_t now = H5Fopen(w.name[0], H5F_ACC_RDONLY, w.access[0]),
              then = H5Fopen(last->twin, H5F_ACC_RDONLY, w.access[0]);
        if (!compare_trees(&c, then, now))
            differ(NO_STACK, "no version was made, but since version %s this changed: %s", last->name, c.why);
        H5Fclose(now);
        H5Fclose(then);
    } else if (w.modified)
        differ(NO_STACK, "the first close made no version");
    if (w.plant == PLANT_VERSION)
        plant_damage();
    check_versions(false);
}

static void open_pair(bool writable)
{
    SIDES;
    unsigned flags = writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY;
    note("H5Fopen %s", writable ? "to write" : "to read");
    if (!OPEN("H5Fopen", w.file, H5Fopen(w.name[s], flags, w.access[s])))
        differ(H5E_DEFAULT, "neither file opens again");
    unsigned intent[2] = {0, 0};
    if (BOTH("H5Fget_intent", H5Fget_intent(w.file.id[s], &intent[s])) && intent[0] != intent[1])
        differ(NO_STACK, "H5Fget_intent: %u, under test %u", intent[0], intent[1]);
    w.writable = writable;
    w.modified = w.created = false;
}

static void close_pair(void)
{
    SIDES;
    full_check();
    if (H5Fget_obj_count(w.file.id[0], H5F_OBJ_ALL) != 1 + (ssize_t)w.handles)
        die("an operation since the last opening left an object open: a fault of this test");
    if (w.handles && chance(35)) { /* the file id goes first: its datasets keep the file open */
        note("H5Fclose with %zu datasets open", w.handles);
        BOTH("H5Fclose", H5Fclose(w.file.id[s]));
        size_t i = below(w.handles);
        if (w.writable && !masked(w.handle[i].set.id[0])) {
            note("H5Dwrite %s of the closed file", w.handle[i].path);
            write_dataset(w.handle[i].set, false);
        }
        for (i = 0; i < w.handles; i++)
            check_dataset(w.handle[i].set, w.handle[i].path);
        while (w.handles)
            drop_handle(0);
    } else {
        note("H5Fclose");
        while (w.handles)
            drop_handle(0);
        BOTH("H5Fclose", H5Fclose(w.file.id[s]));
    }
    w.file.id[0] = w.file.id[1] = H5I_INVALID_HID;
    after_close();
}

static void create_pair(void)
{
    SIDES;
    hid_t plist = H5Pcreate(H5P_FILE_CREATE);
    unsigned tracked = chance(60) ? 0 : H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    H5Pset_link_creation_order(plist, tracked);
    if (chance(30))
        H5Pset_attr_creation_order(plist, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    note("H5Fcreate, links tracked %u", tracked);
    if (!OPEN("H5Fcreate", w.file, H5Fcreate(w.name[s], H5F_ACC_TRUNC, plist, w.access[s])))
        die("cannot create files in %s", w.dir);
    H5Pclose(plist);
    w.deleted = w.copied = false;
    w.writable = w.modified = w.created = true;
}

static bool op_reopen(void)
{
    close_pair();
    if (chance(15)) { /* look, without a change */
        open_pair(false);
        full_check();
    } else
        open_pair(true);
    return true;
}

/* Creation properties stay: the connector keeps the file, and its root with it, when it is made anew. */
static bool op_truncate(void)
{
    SIDES;
    if (!w.writable)
        return false;
    hid_t plist = H5Fget_create_plist(w.file.id[0]), root = H5Gopen2(w.file.id[0], "/", H5P_DEFAULT),
          of_root = H5Gget_create_plist(root); /* the other one knows of these only in the opening that created the file */
    unsigned order = 0;
    H5Pget_link_creation_order(of_root, &order);
    H5Pset_link_creation_order(plist, order);
    H5Pget_attr_creation_order(of_root, &order);
    H5Pset_attr_creation_order(plist, order);
    H5Pclose(of_root);
    H5Gclose(root);
    close_pair();
    note("H5Fcreate over the existing file");
    w.deleted = true;
    if (!OPEN("H5Fcreate", w.file, H5Fcreate(w.name[s], H5F_ACC_TRUNC, plist, w.access[s])))
        differ(H5E_DEFAULT, "the files cannot be created anew");
    H5Pclose(plist);
    w.writable = w.modified = w.created = true;
    return true;
}

/* ---- the run ---- */

static const struct operation {
    const char *name;
    bool (*run)(void);
    unsigned weight;
    bool writes;
} operations[] = {
    {"create group", op_group, 4, true},   {"create dataset", op_dataset, 9, true}, {"open dataset", op_open, 4, false},
    {"close dataset", op_close, 3, false}, {"write", op_write, 22, true},           {"read", op_read, 14, false},
    {"multi", op_multi, 4, true},          {"set extent", op_extent, 9, true},      {"raw chunk", op_chunk, 5, true},
    {"reference", op_reference, 2, true},  {"attribute", op_attribute, 11, true},   {"link", op_link, 9, true},
    {"copy object", op_copy, 3, true},     {"commit type", op_type, 1, true},       {"comment", op_comment, 1, true},
    {"list", op_list, 5, false},           {"flush", op_flush, 2, false},           {"reopen", op_reopen, 3, false},
    {"truncate", op_truncate, 0, true}, /* weight in pick() */
};
#define OPERATIONS (sizeof operations / sizeof operations[0])

static size_t pick(void)
{
    unsigned total = 0, at;
    if (w.step % 500 == 499)
        return OPERATIONS - 1;
    for (size_t i = 0; i < OPERATIONS; i++)
        total += operations[i].weight;
    at = (unsigned)below(total);
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (at < operations[i].weight)
            return i;
        at -= operations[i].weight;
    }
    return 0;
}

/* Side 1 is damaged; the comparisons must notice. */
static void plant_damage(void)
{
    static const int one = 1;
    bool done = false;
    if (w.plant == PLANT_VERSION) {
        char path[2 * PATH_SIZE];
        if (!w.versions)
            return;
        snprintf(path, sizeof path, "%s.%s", w.name[1], w.version[w.versions - 1].name);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, w.access[1]);
        hid_t group = H5Gcreate2(file, "planted", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5Gclose(group);
        H5Fclose(file);
        done = true;
    } else if (w.plant == PLANT_LINK) {
        done = H5Lcreate_soft("x", w.file.id[1], "/planted", H5P_DEFAULT, H5P_DEFAULT) >= 0;
    } else if (w.plant == PLANT_ATTRIBUTE) {
        hid_t space = H5Screate(H5S_SCALAR);
        hid_t at = H5Acreate_by_name(w.file.id[1], some_object(), "planted", H5T_NATIVE_INT, space, H5P_DEFAULT,
                                     H5P_DEFAULT, H5P_DEFAULT);
        if (at >= 0) {
            done = H5Awrite(at, H5T_NATIVE_INT, &one) >= 0;
            H5Aclose(at);
        }
        H5Sclose(space);
    } else {
        const char *path = some(AT_DATASET);
        hid_t set = path ? H5Dopen2(w.file.id[1], path, H5P_DEFAULT) : H5I_INVALID_HID;
        if (set >= 0) {
            hid_t type = H5Dget_type(set), space = H5Dget_space(set);
            hsize_t dims[H5S_MAX_RANK], max[H5S_MAX_RANK];
            int rank = H5Sget_simple_extent_dims(space, dims, max);
            size_t size = H5Tget_size(type);
            if (w.plant == PLANT_EXTENT && rank > 0 && max[0] == H5S_UNLIMITED) {
                dims[0]++;
                done = H5Dset_extent(set, dims) >= 0;
            } else if (w.plant == PLANT_ELEMENT && rank > 0 && H5Sget_simple_extent_npoints(space) > 0 &&
                       H5Tget_class(type) != H5T_COMPOUND && H5Tget_class(type) != H5T_ARRAY &&
                       !type_contains(type, H5T_VLEN) && !type_contains(type, H5T_REFERENCE)) {
                hsize_t point[H5S_MAX_RANK], n = 1;
                for (int i = 0; i < rank; i++)
                    point[i] = below(dims[i]);
                H5Sselect_elements(space, H5S_SELECT_SET, 1, point);
                hid_t mem = H5Screate_simple(1, &n, NULL), memory = H5Tcopy(type);
                unsigned char *value = calloc(1, size);
                done = H5Dread(set, memory, mem, space, H5P_DEFAULT, value) >= 0;
                value[below(size)] ^= 0x10;
                done = done && H5Dwrite(set, memory, mem, space, H5P_DEFAULT, value) >= 0;
                free(value);
                H5Sclose(mem);
                H5Tclose(memory);
            }
            H5Tclose(type);
            H5Sclose(space);
            H5Dclose(set);
        }
    }
    if (done) {
        note("(planted: %s)", plant_names[w.plant]);
        w.planted = w.step;
        w.plants++;
    }
}

static void one_step(void)
{
    w.touches = 0;
    for (int tries = 0; tries < 50; tries++) {
        size_t i = pick();
        /*DEBUG*/ if (getenv("SKIP") && strstr(getenv("SKIP"), operations[i].name))
            continue;
        if (!w.writable && operations[i].writes && !(operations[i].run == op_write && chance(10))) /* D9 */
            continue;
        w.op_count[i]++;
        if (operations[i].run()) {
            w.op_done[i]++;
            break;
        }
    }
    if (w.plant && w.plant != PLANT_VERSION && w.writable && w.step % 50 == 40)
        plant_damage();
    for (size_t i = 0; i < w.touches; i++) {
        SIDES;
        pair object;
        comparison c = {.stack = NO_STACK, .how = REACHED_HEAD, .deleted = w.deleted, .scratch = w.scratch};
        if (!OPEN("H5Oopen of what was touched", object, H5Oopen(w.file.id[s], w.touched[i], H5P_DEFAULT)))
            continue;
        if (!compare_objects(&c, w.touched[i], object.id[0], object.id[1]))
            differ(c.stack, "%s", c.why);
        close_ids(object);
    }
    learn_places();
    if (w.step % FULL_EVERY == 0)
        full_check();
}

static void end_file(void)
{
    close_pair();
    check_versions(true);
    for (size_t i = 0; i < w.versions; i++) {
        char copy[2 * PATH_SIZE];
        unlink(w.version[i].twin);
        snprintf(copy, sizeof copy, "%s.%s", w.name[1], w.version[i].name);
        unlink(copy);
    }
    unlink(w.name[0]);
    unlink(w.name[1]);
    w.versions = 0;
}

static void run(void)
{
    size_t versions = 0;
    for (w.step = 0; w.step < w.steps; w.files++) {
        uint64_t x = w.seed * 1000003u + w.files;
        for (int i = 0; i < 4; i++)
            w.random[i] = splitmix64(&x);
        w.named = 0;
        snprintf(w.name[0], PATH_SIZE, "%s/%zu-native.h5", w.dir, w.files);
        snprintf(w.name[1], PATH_SIZE, "%s/%zu-tested.h5", w.dir, w.files);
        create_pair();
        learn_places();
        for (long n = 0; n < w.file_steps && w.step < w.steps; n++) {
            w.step++;
            one_step();
        }
        versions += w.versions;
        end_file();
    }
    printf("%ld steps, seed %" PRIu64
           ", %zu files, %zu versions; compared: %ld trees, %ld versions through the connector, "
           "%ld without it\n",
           w.step, w.seed, w.files, versions, w.compared[REACHED_HEAD], w.compared[REACHED_AT],
           w.compared[REACHED_VERSION]);
    for (size_t i = 0; i < OPERATIONS; i++)
        printf("%s%s %ld", i ? ", " : "", operations[i].name, w.op_done[i]);
    printf("\n");
}

/* Side 1 must really go through the connector that HDF5_VOL_CONNECTOR names: HDF5 falls back to native silently. */
static void check_connector(void)
{
    const char *wanted = getenv("HDF5_VOL_CONNECTOR");
    char path[PATH_SIZE], name[80] = "", want[80] = "";
    if (!wanted || sscanf(wanted, "%79s", want) != 1 || strcmp(want, "native") == 0)
        die("HDF5_VOL_CONNECTOR does not name a connector (h5cow run -- differential ..., or --self)");
    snprintf(path, sizeof path, "%s/probe.h5", w.dir);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, w.access[1]);
    if (file < 0 || H5VLget_connector_name(file, name, sizeof name) < 0)
        die("no file can be created through the connector %s in %s", want, w.dir);
    H5Fclose(file);
    unlink(path);
    if (strcmp(name, want) != 0)
        die("files are opened through '%s', not '%s': is HDF5_PLUGIN_PATH right?", name, want);
    printf("connector: %s\n", wanted);
}

static void set_up(void)
{
    hid_t native = H5VLget_connector_id_by_name("native");
    if (native < 0)
        die("HDF5 does not start: does HDF5_VOL_CONNECTOR name a connector that HDF5_PLUGIN_PATH has?");
    if (!*w.dir) {
        const char *tmp = getenv("TMPDIR");
        snprintf(w.dir, sizeof w.dir, "%s/differential.XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(w.dir))
            die("cannot make %s: %s", w.dir, strerror(errno));
        w.own_dir = true;
    } else if (mkdir(w.dir, 0777) != 0 && errno != EEXIST)
        die("cannot make %s: %s", w.dir, strerror(errno));
    for (int s = 0; s < 2; s++)
        if (H5Pset_cache(w.access[s] = H5Pcreate(H5P_FILE_ACCESS), 0, 521, 0, 0.75) < 0) /* D15 */
            die("cannot make a file access property list");
    H5Pset_vol(w.access[0], native, NULL);
    if (w.self)
        H5Pset_vol(w.access[1], native, NULL);
    else
        check_connector();
    hid_t memory = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_vol(memory, native, NULL);
    H5Pset_fapl_core(memory, 1 << 20, false);
    w.scratch = H5Fcreate("differential scratch", H5F_ACC_TRUNC, H5P_DEFAULT, memory);
    H5Pclose(memory);
    H5VLclose(native);
}

static void run_end(void)
{
    H5Fclose(w.scratch);
    H5Pclose(w.access[0]);
    H5Pclose(w.access[1]);
    free(w.version);
    if (w.own_dir)
        rmdir(w.dir);
}

int main(int argc, char **argv)
{
    bool seeded = false;
    w.steps = 20000;
    w.file_steps = 600;
    w.told = 30;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--self") == 0)
            w.self = true;
        else if (strcmp(argv[i], "--steps") == 0 && value)
            w.steps = atol(argv[++i]);
        else if (strcmp(argv[i], "--file-steps") == 0 && value)
            w.file_steps = atol(argv[++i]);
        else if (strcmp(argv[i], "--history") == 0 && value)
            w.told = atol(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && value) {
            w.seed = strtoull(argv[++i], NULL, 10);
            seeded = true;
        } else if (strcmp(argv[i], "--dir") == 0 && value)
            snprintf(w.dir, sizeof w.dir, "%s", argv[++i]);
        else if (strcmp(argv[i], "--plant") == 0 && value) {
            i++;
            for (plant p = PLANT_ELEMENT; p <= PLANT_VERSION; p++)
                if (strcmp(value, plant_names[p]) == 0)
                    w.plant = p;
            if (!w.plant)
                die("--plant takes element, attribute, link, extent or version");
        } else
            die("usage: differential [--steps N] [--seed S] [--dir DIR] [--file-steps N] [--history N] [--self "
                "[--plant KIND]]");
    }
    if (w.plant && !w.self)
        die("--plant needs --self");
    if (w.steps < 1 || w.file_steps < 1)
        die("--steps and --file-steps are at least 1");
    if (!seeded)
        w.seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid() % 1000;
    printf("seed %" PRIu64 "\n", w.seed);
    fflush(stdout);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTERM, SIGINT};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], on_signal);
    set_up();
    run();
    run_end();
    if (w.plant) {
        printf("planted %s %ld times, never found\nFAIL\n", plant_names[w.plant], w.plants);
        return 1;
    }
    printf("PASS\n");
    return 0;
}
