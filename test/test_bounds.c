/* H5Pset_libver_bounds and H5Fset_libver_bounds: what a session made within one pair of bounds, another one goes on with within
 * another. What the program makes is accepted and refused as in a plain file, whose state the head, and each version, are after
 * each session; no version lacks anything, and `h5cow verify` finds nothing. Run with HDF5_VOL_CONNECTOR=h5cow.
 *
 *   test_bounds            a sample of the pairs of pairs, drawn anew at each run
 *   H5COW_TEST_BOUNDS=all  all of them: some minutes
 */
#include "random.h"
#include "samples.h"
#include "whole.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define COW    "test_bounds_cow.h5"
#define NATIVE "test_bounds_native.h5"
#define FIRST  "test_bounds_native_1.h5" /* what the first session left */
#define OTHER  "test_bounds_other.h5"
#define SAMPLE 5
#define SMALL  4096 /* bytes: what is larger is versioned */

typedef struct pair {
    H5F_libver_t low, high;
} pair;

/* A type, and what of it HDF5 1.14.5 can do twice: test/differential/main.c, D11, D13, D28. */
typedef struct kind {
    const char *name;
    bool rewritten, copied;
} kind;

static const kind kinds[] = {
    {"integer", true, true},
    {"tagged", true, true},
    {"fixed_string", true, true},
    {"text_utf8", true, false},
    {"enumeration", true, true},
    {"sequence_of_numbers", true, false},
    {"sequence_of_arrays", true, false},
    {"plain_compound", true, true},
    {"compound_with_sequences", true, false},
    {"nested_arrays", true, true},
    {"nested_compounds", true, false},
#if H5_VERSION_GE(2, 0, 0)
    {"complex_number", true, true},
#endif
    {"reference", false, false},
    {"object reference", true, false},
    {"region reference", true, false},
};

static hid_t made(const kind *k)
{
    for (size_t i = 0; i < sample_type_count; i++)
        if (strcmp(sample_types[i].name, k->name) == 0)
            return sample_types[i].make();
    return H5Tcopy(strcmp(k->name, "reference") == 0          ? H5T_STD_REF
                   : strcmp(k->name, "object reference") == 0 ? H5T_STD_REF_OBJ
                                                              : H5T_STD_REF_DSETREG);
}

/* ---- values ---- */

static void value_of(hid_t file, hid_t type, unsigned char *at)
{
    hid_t target, space;

    if (H5Tget_class(type) != H5T_REFERENCE)
        sample_value(type, at);
    else if (H5Tequal(type, H5T_STD_REF) > 0)
        assert_true(H5Rcreate_object(file, "target", H5P_DEFAULT, (H5R_ref_t *)(void *)at) >= 0);
    else if (H5Tequal(type, H5T_STD_REF_OBJ) > 0)
        assert_true(H5Rcreate(at, file, "target", H5R_OBJECT1, -1) >= 0);
    else {
        assert_true((target = H5Dopen2(file, "target", H5P_DEFAULT)) >= 0 && (space = H5Dget_space(target)) >= 0 &&
                    H5Sselect_hyperslab(space, H5S_SELECT_SET, (hsize_t[]){2}, NULL, (hsize_t[]){3}, NULL) >= 0 &&
                    H5Rcreate(at, file, "target", H5R_DATASET_REGION1, space) >= 0 && H5Sclose(space) >= 0 &&
                    H5Dclose(target) >= 0);
    }
}

/* All elements of a dataset, or an attribute, of the memory type TYPE. */
static void write_values(hid_t file, hid_t object, hid_t type, unsigned seed)
{
    bool attribute = H5Iget_type(object) == H5I_ATTR;
    hid_t space = attribute ? H5Aget_space(object) : H5Dget_space(object);
    hssize_t n = H5Sget_simple_extent_npoints(space);
    size_t size = H5Tget_size(type);
    unsigned char *values = calloc((size_t)n, size);

    sample_seed(seed);
    for (hssize_t i = 0; i < n; i++)
        value_of(file, type, values + (size_t)i * size);
    assert_true((attribute ? H5Awrite(object, type, values)
                           : H5Dwrite(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values)) >= 0);
    assert_true(H5Treclaim(type, space, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(space);
}

/* ---- what sessions do: each answer is said ---- */

typedef struct session {
    hid_t file;
    listing *said;
    unsigned seed;
    bool oldest; /* the judge has the bounds that were asked for, so it is asked about layouts too */
    bool native;
    pair made, now; /* the bounds of the first session, and of this one */
} session;

static hid_t answer(const session *s, const char *what, const char *name, hid_t id)
{
    say(s->said, "%s %s: %s\n", what, name, id < 0 ? "refused" : "done");
    return id;
}

typedef enum { COMPACT, TINY, CONTIGUOUS, CHUNKED, FILTERED, LAYOUTS } layout;
static const char *const layouts[] = {"compact", "tiny", "contiguous", "chunked", "filtered"};

static hid_t creation(layout l)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 70;

    if (l == COMPACT)
        assert_true(H5Pset_layout(dcpl, H5D_COMPACT) >= 0);
    if (l >= CHUNKED)
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    if (l == FILTERED)
        assert_true(H5Pset_shuffle(dcpl) >= 0 && H5Pset_deflate(dcpl, 1) >= 0);
    return dcpl;
}

/* A dataset NAME of the type IN_FILE, written from TYPE, with an attribute of it. */
static void make_dataset(const session *s, const char *name, hid_t in_file, hid_t type, layout l)
{
    const hsize_t n = l <= TINY ? 3 : SMALL / H5Tget_size(type) + 5, unlimited = H5S_UNLIMITED, two = 2;
    hid_t space = H5Screate_simple(1, &n, l >= CHUNKED ? &unlimited : NULL), both = H5Screate_simple(1, &two, NULL),
          dcpl = creation(l), dataset, attribute;

    dataset = answer(s, "create", name, H5Dcreate2(s->file, name, in_file, space, H5P_DEFAULT, dcpl, H5P_DEFAULT));
    if (dataset >= 0) {
        write_values(s->file, dataset, type, s->seed);
        attribute =
            answer(s, "attribute of", name, H5Acreate2(dataset, "own", in_file, both, H5P_DEFAULT, H5P_DEFAULT));
        if (attribute >= 0) {
            write_values(s->file, attribute, type, s->seed + 1);
            H5Aclose(attribute);
        }
        H5Dclose(dataset);
    }
    H5Pclose(dcpl);
    H5Sclose(both);
    H5Sclose(space);
}

/* Datasets of each layout, a committed type and one of it, and attributes of a group. */
static void make_objects(const session *s, const kind *k, const char *folder)
{
    char name[200];
    hid_t type = made(k), group, gcpl = H5Pcreate(H5P_GROUP_CREATE), named, space = H5Screate(H5S_SCALAR), attribute;

    assert_true(H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
                H5Pset_attr_creation_order(gcpl, H5P_CRT_ORDER_TRACKED) >= 0);
    snprintf(name, sizeof name, "%s %s", folder, k->name);
    group = answer(s, "group", name, H5Gcreate2(s->file, name, H5P_DEFAULT, gcpl, H5P_DEFAULT));
    assert_true(group >= 0);
    for (int i = 0; i < 11; i++) { /* more than stand in a header */
        snprintf(name, sizeof name, "number %d", i);
        attribute = H5Acreate2(group, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        if (i == 0)
            answer(s, "attributes of the group", k->name, attribute);
        if (attribute >= 0) {
            write_values(s->file, attribute, type, s->seed + (unsigned)i);
            H5Aclose(attribute);
        }
    }
    H5Gclose(group);
    for (layout l = 0; l < LAYOUTS; l++) {
        snprintf(name, sizeof name, "%s %s/%s", folder, k->name, layouts[l]);
        make_dataset(s, name, type, type, l);
    }
    snprintf(name, sizeof name, "%s %s/type", folder, k->name);
    named = H5Tcopy(type);
    if (answer(s, "commit", name, H5Tcommit2(s->file, name, named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0) {
        snprintf(name, sizeof name, "%s %s/of the type", folder, k->name);
        make_dataset(s, name, named, type, CHUNKED);
    }
    H5Tclose(named);
    H5Sclose(space);
    H5Pclose(gcpl);
    H5Tclose(type);
}

static void make_target(hid_t file)
{
    const hsize_t n = 10;
    hid_t space = H5Screate_simple(1, &n, NULL),
          dataset = H5Dcreate2(file, "target", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int values[10] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};

    assert_true(dataset >= 0 && H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                H5Dclose(dataset) >= 0 && H5Sclose(space) >= 0);
}

static void copy(const session *s, const char *from, const char *to)
{
    answer(s, "copy of", from, H5Ocopy(s->file, from, s->file, to, H5P_DEFAULT, H5P_DEFAULT));
}

/* Something of the type that the dataset NAME has in the file. */
static void use_type(const session *s, const kind *k, const char *name)
{
    char other[240];
    const hsize_t two = 2;
    hid_t dataset = H5Dopen2(s->file, name, H5P_DEFAULT), space = H5Screate_simple(1, &two, NULL), type = made(k),
          in_file, attribute, copied;

    if (dataset < 0) { /* its creation was refused */
        H5Sclose(space);
        H5Tclose(type);
        return;
    }
    in_file = H5Dget_type(dataset);
    assert_true(in_file >= 0);
    attribute = answer(s, "attribute of the type of", name,
                       H5Acreate2(dataset, "as in the file", in_file, space, H5P_DEFAULT, H5P_DEFAULT));
    if (attribute >= 0) {
        write_values(s->file, attribute, type, s->seed + 7);
        H5Aclose(attribute);
    }
    snprintf(other, sizeof other, "%s, again", name);
    make_dataset(s, other, in_file, type, CHUNKED);
    copied = H5Tcopy(in_file);
    assert_true(copied >= 0);
    snprintf(other, sizeof other, "%s, its type", name);
    answer(s, "commit of the type of", name, H5Tcommit2(s->file, other, copied, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Tclose(copied);
    snprintf(other, sizeof other, "attribute of %s", name);
    attribute = answer(s, "by name,", other,
                       H5Acreate_by_name(s->file, ".", other, in_file, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (attribute >= 0) {
        write_values(s->file, attribute, type, s->seed + 8);
        H5Aclose(attribute);
    }
    H5Tclose(type);
    H5Tclose(in_file);
    H5Sclose(space);
    H5Dclose(dataset);
}

/* Elements and attributes that are there are changed, which no bound forbids. */
static void change_objects(const session *s, const kind *k, const char *folder)
{
    char name[200];
    hid_t type = made(k), dataset, attribute;

    for (layout l = 0; l < LAYOUTS && k->rewritten; l++) {
        snprintf(name, sizeof name, "%s %s/%s", folder, k->name, layouts[l]);
        if ((dataset = H5Dopen2(s->file, name, H5P_DEFAULT)) < 0)
            continue;
        if (l >= CHUNKED)
            assert_true(H5Dset_extent(dataset, (hsize_t[]){SMALL / H5Tget_size(type) + 130}) >= 0);
        write_values(s->file, dataset, type, s->seed + 10);
        if (H5Aexists(dataset, "own") > 0) {
            assert_true((attribute = H5Aopen(dataset, "own", H5P_DEFAULT)) >= 0);
            write_values(s->file, attribute, type, s->seed + 11);
            H5Aclose(attribute);
            if (l == CONTIGUOUS)
                assert_true(H5Arename(dataset, "own", "renamed") >= 0);
            if (l == TINY)
                assert_true(H5Adelete(dataset, "own") >= 0);
        }
        H5Dclose(dataset);
    }
    H5Tclose(type);
}

static void compare_values(hid_t file, const char *name, const char *other)
{
    hid_t dataset[2] = {H5Dopen2(file, name, H5P_DEFAULT), H5Dopen2(file, other, H5P_DEFAULT)},
          type = H5Dget_type(dataset[0]), space = H5Dget_space(dataset[0]);
    size_t size = (size_t)H5Sget_simple_extent_npoints(space) * H5Tget_size(type);
    unsigned char *values[2] = {calloc(1, size), calloc(1, size)};

    for (int i = 0; i < 2; i++)
        assert_true(H5Dread(dataset[i], type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values[i]) >= 0 &&
                    H5Dclose(dataset[i]) >= 0);
    assert_memory_equal(values[0], values[1], size);
    free(values[0]);
    free(values[1]);
    H5Sclose(space);
    H5Tclose(type);
}

/* HDF5 does not copy chunks that were made within newer bounds than 1.8 once the upper bound is V18. h5cow does: its own files are of
 * 1.10 whatever the bounds (docs/access.md). Such a copy is compared with what it is of, FROM, and taken away again. */
static void copy_chunks(const session *s, const char *from, const char *to)
{
    herr_t done;

    if (s->made.low < H5F_LIBVER_V110 || s->now.high >= H5F_LIBVER_V110) {
        copy(s, from, to);
        return;
    }
    if (H5Lexists(s->file, from, H5P_DEFAULT) <= 0)
        return;
    done = H5Ocopy(s->file, from, s->file, to, H5P_DEFAULT, H5P_DEFAULT);
    /* types of 1.12 are refused by either */
    assert_true(done < 0 ? s->native || s->made.low >= H5F_LIBVER_V112 : !s->native);
    if (done >= 0)
        compare_values(s->file, from, to);
    if (H5Lexists(s->file, to, H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(s->file, to, H5P_DEFAULT) >= 0);
}

static void delete_and_copy(const session *s, const kind *k)
{
    char name[4][200];

    if (k->copied) {
        snprintf(name[0], sizeof name[0], "first %s", k->name);
        snprintf(name[1], sizeof name[1], "copied %s", k->name);
        copy(s, name[0], name[1]);
        for (layout l = 0; l < LAYOUTS; l++) {
            snprintf(name[0], sizeof name[0], "first %s/%s", k->name, layouts[l]);
            snprintf(name[1], sizeof name[1], "copy of %s, %s", layouts[l], k->name);
            copy(s, name[0], name[1]);
        }
        snprintf(name[0], sizeof name[0], "first %s/type", k->name);
        snprintf(name[1], sizeof name[1], "copy of type %s", k->name);
        copy(s, name[0], name[1]);
    }
    snprintf(name[2], sizeof name[2], "first %s/filtered", k->name);
    if (H5Lexists(s->file, name[2], H5P_DEFAULT) > 0)
        assert_true(H5Ldelete(s->file, name[2], H5P_DEFAULT) >= 0);
    snprintf(name[2], sizeof name[2], "first %s/contiguous", k->name);
    snprintf(name[3], sizeof name[3], "moved %s", k->name);
    if (H5Lexists(s->file, name[2], H5P_DEFAULT) > 0)
        assert_true(H5Lmove(s->file, name[2], s->file, name[3], H5P_DEFAULT, H5P_DEFAULT) >= 0);
}

/* H5Dcreate2 of a dataset with H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS in a file whose upper bound is V18: HDF5 1.14.5 and 2.0.0 refuse,
 * HDF5 2.2.0 as Debian builds it ends the program (assertion "layout->version <= ..." in H5D__chunk_construct):
 *     H5Pset_libver_bounds(fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18);
 *     file = H5Fcreate("edges.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
 *     H5Pset_chunk(dcpl, 1, (hsize_t[]){10});
 *     H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
 *     H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
 * There it is taken as refused. */
#define EDGES_END_IT H5_VERSION_GE(2, 0, 0)

/* Layouts that files of HDF5 1.8 cannot have. */
static void make_newer_layouts(const session *s, const char *folder)
{
    const hsize_t n = 10, chunk = 3;
    hid_t space = H5Screate_simple(1, &n, NULL), mapped = H5Pcreate(H5P_DATASET_CREATE),
          edges = H5Pcreate(H5P_DATASET_CREATE), dataset;
    char name[100];

    assert_true(H5Pset_virtual(mapped, space, ".", "/target", space) >= 0 && H5Pset_chunk(edges, 1, &chunk) >= 0 &&
                H5Pset_chunk_opts(edges, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) >= 0);
    snprintf(name, sizeof name, "%s virtual", folder);
    dataset =
        answer(s, "create", name, H5Dcreate2(s->file, name, H5T_STD_I32LE, space, H5P_DEFAULT, mapped, H5P_DEFAULT));
    assert_true(dataset < 0 || H5Dclose(dataset) >= 0);
    snprintf(name, sizeof name, "%s edges", folder);
    dataset = answer(s, "create", name,
                     s->native && s->now.high < H5F_LIBVER_V110 && EDGES_END_IT
                         ? H5I_INVALID_HID
                         : H5Dcreate2(s->file, name, H5T_STD_I32LE, space, H5P_DEFAULT, edges, H5P_DEFAULT));
    assert_true(dataset < 0 || H5Dclose(dataset) >= 0);
    H5Pclose(mapped);
    H5Pclose(edges);
    H5Sclose(space);
}

static void first_session(const session *s)
{
    make_target(s->file);
    for (size_t i = 0; i < COUNT(kinds); i++)
        make_objects(s, &kinds[i], "first");
    if (s->oldest)
        make_newer_layouts(s, "first");
}

/* The formats of HDF5 2.0 h5cow uses only where nothing else will do, so that what HDF5 1.14 can write stays readable for it; so does
 * the judge. */
static H5F_libver_t lower(pair bounds, bool native)
{
    return native && bounds.low > H5F_LIBVER_V114 ? H5F_LIBVER_V114 : bounds.low;
}

static void second_session(const session *s, pair later)
{
    session last = *s;
    char name[100];

    for (size_t i = 0; i < COUNT(kinds); i++) {
        change_objects(s, &kinds[i], "first");
        make_objects(s, &kinds[i], "second");
        for (int l = 0; l < LAYOUTS; l += 3) {
            snprintf(name, sizeof name, "first %s/%s", kinds[i].name, layouts[l]);
            use_type(s, &kinds[i], name);
        }
        delete_and_copy(s, &kinds[i]);
    }
    if (s->oldest)
        make_newer_layouts(s, "second");
    assert_true(H5Fflush(s->file, H5F_SCOPE_GLOBAL) >= 0);
    answer(s, "H5Fset_libver_bounds", "", H5Fset_libver_bounds(s->file, lower(later, s->native), later.high));
    last.now = later;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        change_objects(s, &kinds[i], "second");
        make_objects(s, &kinds[i], "third");
        snprintf(name, sizeof name, "first %s/chunked", kinds[i].name);
        if (kinds[i].copied) {
            char again[110];
            snprintf(again, sizeof again, "third copy of %s", kinds[i].name); /* the root tracks no order */
            copy_chunks(&last, name, again);
        }
    }
}

/* ---- pairs ---- */

static size_t all_pairs(pair pairs[], size_t room)
{
    size_t n = 0;

    for (int low = H5F_LIBVER_EARLIEST; low <= H5F_LIBVER_LATEST; low++)
        for (int high = low > H5F_LIBVER_V18 ? low : H5F_LIBVER_V18; high <= H5F_LIBVER_LATEST; high++) {
            assert_true(n < room);
            pairs[n++] = (pair){(H5F_libver_t)low, (H5F_libver_t)high};
        }
    return n;
}

static hid_t within(pair bounds, bool native)
{
    hid_t fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);

    assert_true(fapl >= 0 && H5Pset_libver_bounds(fapl, lower(bounds, native), bounds.high) >= 0);
    return fapl;
}

static void copy_bytes(const char *from, const char *to)
{
    char bytes[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t n;

    assert_true(in != NULL && out != NULL);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_true(fwrite(bytes, 1, n, out) == n);
    assert_true(fclose(in) == 0 && fclose(out) == 0);
}

/* Without the connector: no version lacks anything. And the command finds no damage. */
static void check_history(void)
{
    const char *command = getenv("H5COW_COMMAND");
    hid_t file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl), lacks, space;
    char line[1000];
    int status;

    assert_true(file >= 0);
    if (H5Lexists(file, "/_versioned_data/incomplete", H5P_DEFAULT) > 0) {
        lacks = H5Dopen2(file, "/_versioned_data/incomplete", H5P_DEFAULT);
        space = H5Dget_space(lacks);
        assert_true(H5Sget_simple_extent_npoints(space) == 0);
        H5Sclose(space);
        H5Dclose(lacks);
    }
    H5Fclose(file);
    snprintf(line, sizeof line, "env -u HDF5_VOL_CONNECTOR %s verify %s >test_bounds.log 2>&1",
             command == NULL ? "h5cow" : command, COW);
    status = system(line);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Natively HDF5 1.14 does not open a file of 1.10 within bounds that end before, and HDF5 2 does, but copies no chunks of it
 * (copy_chunks); h5cow does both, since its own files are of 1.10. Then the judge has the next bounds. */
#define JUDGE_BOUNDS ((pair){H5F_LIBVER_V110, H5F_LIBVER_V110})

static hid_t open_judge(pair made, pair bounds, bool *oldest)
{
    hid_t fapl = within(bounds, true), file = H5Fopen(NATIVE, H5F_ACC_RDWR, fapl);

    H5Pclose(fapl);
    if (file >= 0 && made.low >= H5F_LIBVER_V110 && bounds.high == H5F_LIBVER_V18) {
        assert_true(H5Fclose(file) >= 0);
        file = H5I_INVALID_HID;
    }
    *oldest = file >= 0;
    if (file < 0) {
        assert_true(bounds.high == H5F_LIBVER_V18);
        fapl = within(JUDGE_BOUNDS, true);
        file = H5Fopen(NATIVE, H5F_ACC_RDWR, fapl);
        H5Pclose(fapl);
    }
    assert_true(file >= 0);
    return file;
}

static void close_file(hid_t file)
{
    assert_true(H5Fclose(file) >= 0);
}

static void run(pair first, pair second, pair later)
{
    listing said[2] = {{0}};
    hid_t fapl;
    session s;

    remove(COW);
    for (int native = 1; native >= 0; native--) {
        fapl = within(first, native);
        s = (session){.file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl),
                      .said = &said[native],
                      .seed = 1,
                      .oldest = true,
                      .native = native,
                      .made = first,
                      .now = first};
        assert_true(s.file >= 0);
        H5Pclose(fapl);
        H5E_BEGIN_TRY
        {
            first_session(&s);
        }
        H5E_END_TRY
        close_file(s.file);
    }
    assert_true(same_text("the first session", &said[1], &said[0]));
    copy_bytes(NATIVE, FIRST);
    s.seed = 100;
    s.now = second;
    H5E_BEGIN_TRY
    {
        clear(&said[0]);
        clear(&said[1]);
        s.said = &said[1];
        s.file = open_judge(first, second, &s.oldest);
        s.native = true;
        if (!s.oldest)
            s.now = JUDGE_BOUNDS;
        second_session(&s, later);
        close_file(s.file);
        fapl = within(second, false);
        s.said = &said[0];
        s.native = false;
        s.file = H5Fopen(COW, H5F_ACC_RDWR, fapl);
        assert_true(s.file >= 0);
        H5Pclose(fapl);
        second_session(&s, later);
    }
    H5E_END_TRY
    close_file(s.file);
    assert_true(same_text("the second session", &said[1], &said[0]));
    same_files("the newest state", NATIVE, COW, H5P_DEFAULT);
    same_files("version 1", FIRST, COW "@1", H5P_DEFAULT);
    same_files("the newest version", NATIVE, COW "@2", H5P_DEFAULT);
    check_history();
    free(said[0].data);
    free(said[1].data);
}

static void test_every_pair_of_bounds_after_every_other(void **state)
{
    const char *wanted = getenv("H5COW_TEST_BOUNDS");
    bool all = wanted != NULL && strcmp(wanted, "all") == 0;
    uint64_t dice = test_random(1);
    pair pairs[32];
    size_t n = all_pairs(pairs, COUNT(pairs)), count = all ? n * n : SAMPLE;
    (void)state;

    for (size_t i = 0; i < count; i++) {
        uint64_t drawn = splitmix64(&dice);
        pair first = pairs[(all ? i / n : drawn % n) % n], second = pairs[(all ? i : drawn / n) % n],
             later = pairs[drawn / n / n % n];

        during("bounds %d to %d, then %d to %d, in the middle %d to %d", (int)first.low, (int)first.high,
               (int)second.low, (int)second.high, (int)later.low, (int)later.high);
        run(first, second, later);
    }
}

/* ---- several handles, and several files ---- */

/* A dataset of a type in the newest encoding of 1.12, natively or with history. */
static void make_file(const char *name, bool native)
{
    hid_t fapl = within((pair){H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST}, native), file = create_file(name, fapl);
    const kind *k = &kinds[0];
    listing said = {0};

    assert_true(H5Fset_libver_bounds(file, H5F_LIBVER_V112, H5F_LIBVER_LATEST) >= 0); /* the file itself stays old */

    while (strcmp(k->name, "plain_compound") != 0)
        k++;
    hid_t type = made(k);
    make_dataset(&(session){.file = file, .said = &said, .seed = 1}, "d", type, type, CHUNKED);
    free(said.data);
    assert_true(H5Tcommit2(file, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Tclose(type);
    close_file(file);
    H5Pclose(fapl);
}

static void say_bounds(listing *said, const char *what, hid_t file)
{
    hid_t fapl = H5Fget_access_plist(file);
    H5F_libver_t low, high;

    assert_true(fapl >= 0 && H5Pget_libver_bounds(fapl, &low, &high) >= 0 && H5Pclose(fapl) >= 0);
    say(said, "%s: %d to %d\n", what, (int)low, (int)high);
}

/* What is made of a type that is in the file, in encoding 4: natively refused within bounds that end before 1.12. */
static void use_newest(listing *said, const char *what, hid_t from, hid_t to, const char *folder)
{
    char name[200];
    hid_t dataset = H5Dopen2(from, "d", H5P_DEFAULT), type = H5Dget_type(dataset), space = H5Screate(H5S_SCALAR),
          made_of_it;

    say(said, "%s\n", what);
    snprintf(name, sizeof name, "%s%s", folder, what);
    made_of_it = H5Dcreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    say(said, "  a dataset: %s\n", made_of_it < 0 ? "refused" : "made");
    assert_true(made_of_it < 0 || H5Dclose(made_of_it) >= 0);
    made_of_it =
        H5Acreate_by_name(to, *folder == '\0' ? "." : folder, what, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    say(said, "  an attribute: %s\n", made_of_it < 0 ? "refused" : "made");
    assert_true(made_of_it < 0 || H5Aclose(made_of_it) >= 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
}

static void test_a_second_opening_has_the_bounds_of_the_first(void **state)
{
    static const pair pairs[] = {{H5F_LIBVER_EARLIEST, H5F_LIBVER_V110},
                                 {H5F_LIBVER_V112, H5F_LIBVER_LATEST},
                                 {H5F_LIBVER_V110, H5F_LIBVER_LATEST}};
    listing said[2] = {{0}};
    (void)state;

    for (size_t i = 0; i < COUNT(pairs) * COUNT(pairs); i++) {
        for (int native = 0; native < 2; native++) {
            const char *name = native ? NATIVE : COW;
            hid_t fapl[2] = {within(pairs[i / COUNT(pairs)], native), within(pairs[i % COUNT(pairs)], native)}, file[2];

            make_file(name, native);
            for (int f = 0; f < 2; f++)
                assert_true((file[f] = H5Fopen(name, H5F_ACC_RDWR, fapl[f])) >= 0);
            H5E_BEGIN_TRY
            {
                say_bounds(&said[native], "the first", file[0]);
                say_bounds(&said[native], "the second", file[1]);
                use_newest(&said[native], "by the second", file[1], file[1], "");
                use_newest(&said[native], "by the first", file[0], file[0], "");
                assert_true(H5Fset_libver_bounds(file[1], H5F_LIBVER_V18, H5F_LIBVER_V110) >= 0);
                say_bounds(&said[native], "the first, set by the second", file[0]);
                use_newest(&said[native], "by the first, set by the second", file[0], file[0], "");
                close_file(file[0]);
                use_newest(&said[native], "after the first was closed", file[1], file[1], "");
            }
            H5E_END_TRY
            close_file(file[1]);
            assert_true(H5Pclose(fapl[0]) >= 0 && H5Pclose(fapl[1]) >= 0);
        }
        during("the second opening, pair %zu", i);
        assert_true(same_text("two openings", &said[1], &said[0]));
        check_history();
    }
    free(said[0].data);
    free(said[1].data);
}

/* The other file is opened by HDF5, within the bounds of the one that leads there; or, with the property, within those. */
static void test_bounds_hold_through_external_links(void **state)
{
    listing said[2][3] = {{{0}}}; /* [2]: by the list */
    const pair old = {H5F_LIBVER_EARLIEST, H5F_LIBVER_V110}, new = {H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST};
    (void)state;

    for (int native = 0; native < 2; native++)
        for (int history = 0; history < 2 - native; history++) {
            listing *l = &said[native][history];
            hid_t fapl = within(old, native), through = within(new, native), lapl = H5Pcreate(H5P_GROUP_ACCESS), file,
                  group;

            make_file(OTHER, native || !history);
            file = create_file(native ? NATIVE : COW, fapl);
            assert_true(H5Pset_elink_fapl(lapl, through) >= 0 &&
                        H5Lcreate_external(OTHER, "/", file, "other", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            H5E_BEGIN_TRY
            {
                assert_true((group = H5Gopen2(file, "other", H5P_DEFAULT)) >= 0);
                use_newest(l, "below a group", group, group, "");
                use_newest(l, "by a path", group, file, "other/");
                use_newest(l, "in the file itself", group, file, "");
                say(l, "a copy: %s\n",
                    H5Ocopy(group, "d", file, "copy", H5P_DEFAULT, H5P_DEFAULT) < 0 ? "refused" : "made");
                say(l, "a copy of a type: %s\n",
                    H5Ocopy(group, "t", file, "copied type", H5P_DEFAULT, H5P_DEFAULT) < 0 ? "refused" : "made");
                assert_true(H5Gclose(group) >= 0);
                if (!history) {
                    assert_true((group = H5Gopen2(file, "other", lapl)) >= 0);
                    use_newest(&said[native][2], "by a list of its own", group, group, "");
                    assert_true(H5Gclose(group) >= 0);
                }
            }
            H5E_END_TRY
            close_file(file);
            assert_true(H5Pclose(lapl) >= 0 && H5Pclose(through) >= 0 && H5Pclose(fapl) >= 0);
        }
    assert_true(same_text("a link to a plain file", &said[1][0], &said[0][0]));
    assert_true(same_text("a link to a file with history", &said[1][0], &said[0][1]));
    assert_true(same_text("by a list", &said[1][2], &said[0][2]));
    check_history();
    for (int i = 0; i < 6; i++)
        free(said[i / 3][i % 3].data);
}

static void test_copies_into_another_file_keep_its_bounds(void **state)
{
    listing said[2] = {{0}};
    pair pairs[32];
    size_t n = all_pairs(pairs, COUNT(pairs));
    (void)state;

    for (int native = 0; native < 2; native++)
        make_file(native ? NATIVE : COW, native);
    for (size_t i = 0; i < n; i++)
        for (int native = 0; native < 2; native++) {
            hid_t fapl = within(pairs[i], native),
                  from = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDONLY, native ? native_fapl : H5P_DEFAULT),
                  to = create_file(OTHER, fapl);

            assert_true(from >= 0);
            H5E_BEGIN_TRY
            {
                for (int object = 0; object < 3; object++) {
                    static const char *const names[] = {"d", "t", "/"};

                    say(&said[native], "%d to %d, %s: %s\n", (int)pairs[i].low, (int)pairs[i].high, names[object],
                        H5Ocopy(from, names[object], to, object == 2 ? "root" : names[object], H5P_DEFAULT,
                                H5P_DEFAULT) < 0
                            ? "refused"
                            : "copied");
                }
            }
            H5E_END_TRY
            close_file(to);
            close_file(from);
            H5Pclose(fapl);
        }
    assert_true(same_text("copies", &said[1], &said[0]));
    free(said[0].data);
    free(said[1].data);
}

/* The creation lists of datasets in a file with history, which has newer layouts than the program asked for, serve in another file whose
 * upper bound is V18: one in memory, which has no history. */
static void test_creation_lists_serve_within_older_bounds(void **state)
{
    const hsize_t size[] = {3, 3, 3, 20000, 20000, 20000}, chunk[] = {2, 7000}, unlimited = H5S_UNLIMITED;
    listing said[2] = {{0}};
    (void)state;

    for (int native = 1; native >= 0; native--) {
        hid_t fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS), old = H5Pcopy(fapl), file, plain;

        assert_true(H5Pset_fapl_core(old, 1 << 16, false) >= 0 &&
                    H5Pset_libver_bounds(old, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18) >= 0);
        file = create_file(native ? NATIVE : COW, fapl);
        for (int opened = 0; opened < 2; opened++) {
            plain = create_file(OTHER, old);
            for (size_t i = 0; i < COUNT(size); i++) {
                hid_t space = H5Screate_simple(1, &size[i], i % 3 == 0 || i == 2 ? NULL : &unlimited), dcpl, again;
                H5D_alloc_time_t time;
                char name[20];

                snprintf(name, sizeof name, "%zu", i);
                dcpl = H5Pcreate(H5P_DATASET_CREATE);
                assert_true(
                    (i != 0 || H5Pset_layout(dcpl, H5D_COMPACT) >= 0) &&
                    (i % 3 == 0 || H5Pset_chunk(dcpl, 1, &chunk[i / 3]) >= 0) &&
                    (i % 3 != 2 || H5Pset_deflate(dcpl, 1) >= 0) &&
                    (i == 0 || H5Pset_alloc_time(dcpl, i % 3 == 0 ? H5D_ALLOC_TIME_EARLY : H5D_ALLOC_TIME_LATE) >= 0));
                if (!opened)
                    assert_true(
                        H5Dclose(H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
                again = H5Dopen2(file, name, H5P_DEFAULT);
                assert_true(again >= 0 && H5Pclose(dcpl) >= 0 && (dcpl = H5Dget_create_plist(again)) >= 0 &&
                            H5Dclose(again) >= 0 && H5Pget_alloc_time(dcpl, &time) >= 0);
                H5E_BEGIN_TRY
                {
                    again = H5Dcreate2(plain, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
                }
                H5E_END_TRY
                say(&said[native], "%d: layout %d of %s, allocated at %d: %s\n", opened, (int)H5Pget_layout(dcpl), name,
                    (int)time, again < 0 ? "refused" : "made");
                assert_true(again < 0 || H5Dclose(again) >= 0);
                H5Pclose(dcpl);
                H5Sclose(space);
            }
            close_file(plain);
            close_file(file);
            assert_true((file = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDWR, fapl)) >= 0);
        }
        close_file(file);
        H5Pclose(old);
        H5Pclose(fapl);
    }
    assert_true(same_text("creation lists", &said[1], &said[0]));
    free(said[0].data);
    free(said[1].data);
}

/* ---- references of regions, which are encoded by the lower bound ---- */

#define REGIONS 600
#define EVERY   7

static hssize_t region_points(hid_t file, int number, H5R_ref_t *reference)
{
    hid_t target = H5Dopen2(file, "target", H5P_DEFAULT), space = H5Dget_space(target);
    hsize_t start = (hsize_t)number % 3, count = 1 + (hsize_t)number % 4, last = 9, one = 1;
    hssize_t points;

    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0 &&
                (number % 2 == 0 || H5Sselect_hyperslab(space, H5S_SELECT_OR, &last, NULL, &one, NULL) >= 0));
    points = H5Sget_select_npoints(space);
    assert_true(reference == NULL || H5Rcreate_region(file, "target", space, H5P_DEFAULT, reference) >= 0);
    H5Sclose(space);
    H5Dclose(target);
    return points;
}

/* Each EVERYth element. */
static void write_regions(hid_t file, hid_t dataset, hsize_t every, int first)
{
    const hsize_t none = 0, n = REGIONS / every;
    H5R_ref_t references[REGIONS];
    hid_t memory = H5Screate_simple(1, &n, NULL), space = H5Dget_space(dataset);

    for (hsize_t i = 0; i < n; i++)
        region_points(file, first + (int)(i * every), &references[i]);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &none, &every, &n, NULL) >= 0 &&
                H5Dwrite(dataset, H5T_STD_REF, memory, space, H5P_DEFAULT, references) >= 0);
    for (hsize_t i = 0; i < n; i++)
        assert_true(H5Rdestroy(&references[i]) >= 0);
    H5Sclose(space);
    H5Sclose(memory);
}

static void check_regions(const char *name, hid_t fapl, bool changed)
{
    H5R_ref_t references[REGIONS];
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, fapl), dataset = H5Dopen2(file, "regions", H5P_DEFAULT), space;

    assert_true(dataset >= 0 && H5Dread(dataset, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, references) >= 0);
    for (int i = 0; i < REGIONS; i++) {
        bool other = changed && i % EVERY == 0 && i / EVERY < REGIONS / EVERY;

        assert_true((space = H5Ropen_region(&references[i], H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Sget_select_npoints(space) == region_points(file, i + (other ? 1 : 0), NULL));
        assert_true(H5Sclose(space) >= 0 && H5Rdestroy(&references[i]) >= 0);
    }
    assert_true(H5Dclose(dataset) >= 0);
    close_file(file);
}

static void test_references_of_regions_outlive_other_bounds(void **state)
{
    static const pair pairs[] = {{H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST},
                                 {H5F_LIBVER_V110, H5F_LIBVER_LATEST},
                                 {H5F_LIBVER_V112, H5F_LIBVER_LATEST}};
    const hsize_t n = REGIONS, chunk = 150;
    (void)state;

    for (size_t i = 0; i < COUNT(pairs) * COUNT(pairs); i++)
        for (int native = 1; native >= 0; native--) {
            const char *name = native ? NATIVE : COW;
            hid_t fapl[2] = {within(pairs[i / COUNT(pairs)], native), within(pairs[i % COUNT(pairs)], native)},
                  space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), file, dataset;

            during("references, pair %zu", i);
            remove(name);
            file = create_file(name, fapl[0]);
            make_target(file);
            assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
            dataset = H5Dcreate2(file, "regions", H5T_STD_REF, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
            write_regions(file, dataset, 1, 0);
            assert_true(H5Dclose(dataset) >= 0);
            close_file(file);
            assert_true((file = H5Fopen(name, H5F_ACC_RDWR, fapl[1])) >= 0);
            dataset = H5Dopen2(file, "regions", H5P_DEFAULT);
            write_regions(file, dataset, EVERY, 1);
            assert_true(H5Dclose(dataset) >= 0);
            close_file(file);
            check_regions(name, native ? native_fapl : H5P_DEFAULT, true);
            if (!native) {
                check_regions(COW "@1", H5P_DEFAULT, false);
                check_regions(COW "@2", H5P_DEFAULT, true);
            }
            H5Pclose(dcpl);
            H5Sclose(space);
            assert_true(H5Pclose(fapl[0]) >= 0 && H5Pclose(fapl[1]) >= 0);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_of_bounds_after_every_other),
        cmocka_unit_test(test_a_second_opening_has_the_bounds_of_the_first),
        cmocka_unit_test(test_bounds_hold_through_external_links),
        cmocka_unit_test(test_copies_into_another_file_keep_its_bounds),
        cmocka_unit_test(test_creation_lists_serve_within_older_bounds),
        cmocka_unit_test(test_references_of_regions_outlive_other_bounds),
    };

    return test_main(tests, argc, argv, through_begin, through_end);
}
