/* Datasets are not opened before HDF5 is needed for them, neither those that are there nor those that are created (vol/unopened.c): whatever is asked or written first, in whatever order, whatever
 * becomes of the links meanwhile, and however file and handles are closed, every call answers as HDF5 alone does. */
#include "random.h"
#include "through.h"

#include <stdlib.h>
#include <string.h>

#include <sys/wait.h>
#include <unistd.h>

static const char *const names[2] = {"unopened-native.h5", "unopened.h5"};

/* ---- the file ---- */

#define ROWS 30
#define WIDE 8

static void fill_in(hid_t at, const char *name, hid_t type, hid_t dcpl, bool some)
{
    hsize_t extent[2] = {ROWS, WIDE}, most[2] = {H5S_UNLIMITED, WIDE}, start[2] = {3, 0}, count[2] = {9, WIDE};
    bool chunked = H5Pget_layout(dcpl) == H5D_CHUNKED;
    hid_t space = H5Screate_simple(2, extent, chunked ? most : NULL), part = H5Scopy(space);
    hid_t dataset = H5Dcreate2(at, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    static int values[ROWS * WIDE];

    for (int i = 0; i < ROWS * WIDE; i++)
        values[i] = (i * 37 + name[0]) % 120;
    assert_true(dataset >= 0);
    if (some) {
        assert_true(H5Sselect_hyperslab(part, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, part, part, H5P_DEFAULT, values) >= 0);
    } else
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(part);
    H5Sclose(space);
}

static void put_attribute(hid_t file, const char *object, const char *name, int value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute =
        H5Acreate_by_name(file, object, name, H5T_STD_I16BE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(attribute >= 0 && H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0);
    H5Aclose(attribute);
    H5Sclose(space);
}

/* A filter that is not HDF5's: chunks are then decoded by HDF5, in a file of its own in memory. */
#define FOREIGN 300

static size_t turn(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *size, void **buffer)
{
    (void)flags;
    (void)n;
    (void)values;
    (void)size;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)*buffer)[i] ^= 0x55;
    return bytes;
}

static const H5Z_class2_t foreign = {H5Z_CLASS_T_VERS, FOREIGN, 1, 1, "turned", NULL, NULL, turn};

static void make(const char *name, hid_t fapl)
{
    hsize_t chunk[2] = {4, WIDE}, small[2] = {3, 5};
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), group, plain = H5Pcreate(H5P_DATASET_CREATE), p,
          named;
    unsigned char seven = 7;

    assert_true(file >= 0);
    fill_in(file, "a", H5T_IEEE_F64LE, plain, false);
    p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(p, 2, chunk);
    fill_in(file, "chunked", H5T_STD_I32LE, p, true);
    H5Pset_deflate(p, 3);
    fill_in(file, "gzip", H5T_STD_I64BE, p, false);
    H5Pset_shuffle(p);
    H5Pset_fletcher32(p);
    H5Pset_chunk(p, 2, small);
    H5Pset_chunk_opts(p, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    H5Pset_alloc_time(p, H5D_ALLOC_TIME_EARLY);
    group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    fill_in(group, "edges", H5T_IEEE_F32BE, p, true);
    H5Pclose(p);
    p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(p, 2, small);
    H5Pset_obj_track_times(p, false);
    H5Pset_fill_time(p, H5D_FILL_TIME_NEVER);
    fill_in(group, "timeless", H5T_STD_U16LE, p, false);
    H5Pset_attr_creation_order(p, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Pset_attr_phase_change(p, 3, 2);
    fill_in(group, "ordered", H5T_STD_U32BE, p, false);
    H5Pclose(p);
    p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(p, 2, chunk);
    H5Pset_fill_value(p, H5T_NATIVE_UCHAR, &seven);
    fill_in(file, "seven", H5T_STD_U8LE, p, true);
    H5Pset_fill_value(p, H5T_NATIVE_UCHAR, NULL);
    fill_in(file, "undefined", H5T_STD_I8LE, p, true);
    H5Pclose(p);
    p = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(p, 2, chunk);
    H5Pset_filter(p, FOREIGN, 0, 0, NULL);
    fill_in(file, "foreign", H5T_STD_I16LE, p, false);
    named = H5Tcopy(H5T_STD_I16LE);
    assert_true(H5Tcommit2(file, "type", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    fill_in(file, "of a named type", named, p, false);
    H5Pclose(p);
    put_attribute(file, "a", "x", 5);
    put_attribute(file, "a", "y", 6);
    put_attribute(file, "g/ordered", "z", 8);
    put_attribute(file, "g/ordered", "b", 9);
    assert_true(H5Lcreate_hard(file, "a", group, "again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/g/edges", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("g", file, "way", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Oset_comment_by_name(file, "chunked", "said", H5P_DEFAULT) >= 0);
    H5Tclose(named);
    H5Gclose(group);
    H5Pclose(plain);
    H5Fclose(file);
}

static const char *const paths[] = {"a",
                                    "chunked",
                                    "gzip",
                                    "g/edges",
                                    "g/timeless",
                                    "g/ordered",
                                    "seven",
                                    "undefined",
                                    "foreign",
                                    "of a named type",
                                    "g/again",
                                    "soft",
                                    "way/timeless",
                                    "/g/edges",
                                    "./a",
                                    "g//again",
                                    "way/again",
                                    "g",
                                    "type",
                                    "nowhere"};

/* ---- what is asked ---- */

static int which; /* side: 0 HDF5 alone */

static hid_t access_of(int side, H5F_close_degree_t degree)
{
    hid_t fapl = side == 0 ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_fclose_degree(fapl, degree);
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_LATEST); /* in older formats all datasets have times */
    which = side;
    return fapl;
}

static herr_t add_name(hid_t at, const char *name, const H5A_info_t *info, void *context)
{
    (void)at;
    say(context, " %s %d", name, (int)info->data_size);
    return 0;
}

static herr_t add_value(void *value, hid_t type, unsigned rank, const hsize_t *point, void *context)
{
    say(context, " %llu",
        (unsigned long long)(point[0] + (rank > 1 ? point[1] : 0) + H5Tget_size(type) + *(unsigned char *)value));
    return 0;
}

static void say_values(listing *l, hid_t id, hid_t memory_type, hid_t memory, hid_t file)
{
    static double values[ROWS * WIDE];
    unsigned long long sum = 0;
    herr_t status;

    memset(values, 0, sizeof values);
    status = H5Dread(id, memory_type, memory, file, H5P_DEFAULT, values);
    for (size_t i = 0; status >= 0 && i < sizeof values; i++)
        sum = sum * 31 + ((unsigned char *)values)[i];
    say(l, "read %d %llu\n", status, sum);
}

static void ask_type(listing *l, hid_t id)
{
    hid_t type = H5Dget_type(id), file;
    char name[100] = "";

    say(l, "type %d: %d %zu %d", type >= 0, H5Tget_class(type), H5Tget_size(type), H5Tget_order(type));
    say(l, " set %d committed %d", H5Tset_size(type, 16), H5Tcommitted(type));
    say(l, " double %d", H5Tequal(type, H5T_IEEE_F64LE));
    if (H5Tcommitted(type) > 0)
        H5Iget_name(type, name, sizeof name);
    file = type < 0 ? type : H5Tcopy(type);
    say(l, " %s copy %d close %d\n", name, H5Tset_size(file, 16), H5Tclose(type));
    if (file >= 0)
        H5Tclose(file);
}

static void ask_space(listing *l, hid_t id)
{
    hsize_t extent[2] = {0}, most[2] = {0};
    hid_t space = H5Dget_space(id);

    say(l, "space %d %lld %lld", H5Sget_simple_extent_dims(space, extent, most), (long long)extent[0],
        (long long)extent[1]);
    say(l, " %lld %lld\n", (long long)most[0], (long long)most[1]);
    if (space >= 0)
        H5Sclose(space);
}

static void ask_creation(listing *l, hid_t id)
{
    hid_t p = H5Dget_create_plist(id);
    hsize_t chunk[2] = {0};
    unsigned options = 9, order = 9, compact = 9, dense = 9;
    H5D_alloc_time_t alloc = 9;
    H5D_fill_time_t time = 9;
    H5D_fill_value_t defined = 9;
    hbool_t times = 9, missing = 9;
    long long value = -1;

    say(l, "created %d usual %d layout %d", p >= 0, H5Pequal(p, H5P_DATASET_CREATE_DEFAULT), H5Pget_layout(p));
    say(l, " chunk %d", H5Pget_layout(p) == H5D_CHUNKED ? H5Pget_chunk(p, 2, chunk) : -7);
    say(l, " %d %d", (int)chunk[0], (int)chunk[1]);
    if (p >= 0) {
        if (H5Pget_layout(p) == H5D_CHUNKED)
            H5Pget_chunk_opts(p, &options);
        H5Pget_alloc_time(p, &alloc);
        H5Pget_fill_time(p, &time);
        H5Pfill_value_defined(p, &defined);
        H5Pget_obj_track_times(p, &times);
        H5Pget_attr_creation_order(p, &order);
        H5Pget_attr_phase_change(p, &compact, &dense);
        H5Pget_dset_no_attrs_hint(p, &missing);
        if (defined != H5D_FILL_VALUE_UNDEFINED)
            H5Pget_fill_value(p, H5T_NATIVE_LLONG, &value);
    }
    say(l, " options %u alloc %d time %d defined %d", options, alloc, time, defined);
    say(l, " times %d order %u %u %u hint %d value %lld", times, order, compact, dense, missing, value);
    say(l, " external %d filters %d", H5Pget_external_count(p), H5Pget_nfilters(p));
    for (int i = 0; i < H5Pget_nfilters(p); i++) {
        unsigned flags = 0, config = 0, v[20];
        size_t n = 20;
        H5Z_filter_t filter = H5Pget_filter2(p, (unsigned)i, &flags, &n, v, 0, NULL, &config);

        say(l, " %d %u %zu", filter, flags, n);
    }
    say(l, "\n");
    if (p >= 0)
        H5Pclose(p);
}

static void ask_access(listing *l, hid_t id)
{
    hid_t p = H5Dget_access_plist(id);
    size_t slots = 0, bytes = 0;
    double w0 = 0;

    say(l, "access %d %d", p >= 0, H5Pget_chunk_cache(p, &slots, &bytes, &w0));
    say(l, " %zu %zu %.2f\n", slots, bytes, w0);
    if (p >= 0)
        H5Pclose(p);
}

static void ask_name(listing *l, hid_t id)
{
    char name[200] = "";
    ssize_t length = H5Iget_name(id, name, sizeof name);

    say(l, "name %d %s\n", (int)length, name);
}

static void ask_file(listing *l, hid_t id)
{
    hid_t file = H5Iget_file_id(id);
    char name[200] = "";

    say(l, "file %d", file >= 0);
    say(l, " %d", (int)H5Fget_name(id, name, sizeof name) - (which == 0 ? 7 : 0));
    say(l, " %d\n", file >= 0 ? (int)H5Fget_obj_count(file, H5F_OBJ_DATASET) : -1);
    if (file >= 0)
        H5Fclose(file);
}

static void ask_attributes(listing *l, hid_t id)
{
    hsize_t at = 0;
    int value = 0;
    hid_t attribute;

    say(l, "attributes %d %d:", H5Aexists(id, "x"), H5Aexists(id, "z"));
    say(l, " %d", H5Aiterate2(id, H5_INDEX_NAME, H5_ITER_INC, &at, add_name, l));
    if (H5Aexists(id, "y") > 0) {
        attribute = H5Aopen(id, "y", H5P_DEFAULT);
        say(l, " %d %d", H5Aread(attribute, H5T_NATIVE_INT, &value), value);
        H5Aclose(attribute);
    }
    attribute = H5Acreate2(id, "new", H5T_NATIVE_INT, H5S_ALL, H5P_DEFAULT, H5P_DEFAULT);
    say(l, " new %d\n", attribute >= 0);
}

static void ask_info(listing *l, hid_t id)
{
    H5O_info2_t info = {0}, again = {0};
    char comment[20] = "";
    int cmp = 7;
    hid_t other;

    say(l, "info %d", H5Oget_info3(id, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS));
    /* that an object has no link HDF5 1.14.5 knows as long as it has its header in memory: read again, it says that there is one */
    say(l, " %d %d %d", info.type, H5Iget_name(id, NULL, 0) > 0 ? (int)info.rc : -1, (int)info.num_attrs);
    other = H5Oopen_by_token(id, info.token);
    say(l, " by token %d", other >= 0);
    H5Oget_info3(other, &again, H5O_INFO_BASIC);
    H5Otoken_cmp(id, &info.token, &again.token, &cmp);
    say(l, " %d comment %d %s\n", cmp, (int)H5Oget_comment(id, comment, sizeof comment), comment);
    if (other >= 0)
        H5Oclose(other);
}

static void ask_values(listing *l, hid_t id)
{
    hsize_t start[2] = {5, 2}, count[2] = {4, 3}, n = 12;
    hid_t space = H5Dget_space(id), memory = H5Screate_simple(1, &n, NULL), point = H5Screate(H5S_SCALAR);

    say_values(l, id, H5T_NATIVE_INT, H5S_ALL, H5S_ALL);
    if (space >= 0) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        say_values(l, id, H5T_NATIVE_DOUBLE, memory, space);
        H5Sselect_elements(space, H5S_SELECT_SET, 1, start);
        say_values(l, id, H5T_NATIVE_SHORT, point, space);
        H5Sclose(space);
    }
    H5Sclose(point);
    H5Sclose(memory);
}

static void ask_writing(listing *l, hid_t id)
{
    int values[ROWS * WIDE] = {0};

    say(l, "write %d", H5Dwrite(id, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    say(l, " flush %d refresh %d\n", H5Dflush(id), H5Drefresh(id));
}

static void ask_refreshing(listing *l, hid_t id)
{
    say(l, "refresh %d\n", H5Orefresh(id));
    ask_values(l, id);
}

static void ask_extending(listing *l, hid_t id)
{
    hsize_t extent[2] = {40, WIDE};

    say(l, "extend %d\n", H5Dset_extent(id, extent));
}

static void ask_storage(listing *l, hid_t id)
{
    H5D_space_status_t status = 9;

    say(l, "storage %d", H5Dget_space_status(id, &status));
    say(l, " %d size %d\n", status, H5Dget_storage_size(id) > 0);
}

static void ask_chunks(listing *l, hid_t id)
{
    hsize_t n = 0, offset[2] = {0}, bytes = 0;
    hid_t p = H5Dget_create_plist(id);
    unsigned mask = 9;

    if (p >= 0 && H5Pget_layout(p) == H5D_CHUNKED) {
        say(l, "chunks %d", H5Dget_num_chunks(id, H5S_ALL, &n));
        say(l, " %d", (int)n);
        say(l, " %d", n == 0 ? -7 : H5Dget_chunk_info(id, H5S_ALL, 0, offset, &mask, NULL, &bytes));
        say(l, " %d %d %u\n", (int)offset[0], (int)offset[1], mask);
    }
    if (p >= 0)
        H5Pclose(p);
}

static void ask_references(listing *l, hid_t id)
{
    H5R_ref_t reference;
    char name[100] = "";
    hid_t space = H5Dget_space(id), object;
    herr_t status = space < 0 ? -1 : H5Rcreate_region(id, ".", space, H5P_DEFAULT, &reference);

    say(l, "reference %d", status);
    if (status >= 0) {
        object = H5Ropen_object(&reference, H5P_DEFAULT, H5P_DEFAULT);
        say(l, " %d %d %s", object >= 0, (int)H5Rget_obj_name(&reference, H5P_DEFAULT, name, sizeof name), name);
        if (object >= 0)
            H5Dclose(object);
        H5Rdestroy(&reference);
    }
    say(l, "\n");
    if (space >= 0)
        H5Sclose(space);
}

static void ask_copy(listing *l, hid_t id)
{
    hid_t fapl = access_of(which, H5F_CLOSE_DEFAULT), file, copy;

    H5Pset_fapl_core(fapl, 65536, false);
    file = H5Fcreate("in memory", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    say(l, "copy %d\n", H5Ocopy(id, ".", file, "copy", H5P_DEFAULT, H5P_DEFAULT));
    copy = H5Lexists(file, "copy", H5P_DEFAULT) > 0 ? H5Oopen(file, "copy", H5P_DEFAULT) : -1;
    if (copy >= 0 && H5Iget_type(copy) == H5I_DATASET)
        say_values(l, copy, H5T_NATIVE_INT, H5S_ALL, H5S_ALL);
    if (copy >= 0)
        H5Oclose(copy);
    H5Fclose(file);
    H5Pclose(fapl);
}

static void ask_from_there(listing *l, hid_t id)
{
    hid_t other = H5Dopen2(id, "/g/edges", H5P_DEFAULT), relative = H5Dopen2(id, "edges", H5P_DEFAULT);

    say(l, "from there %d %d exists %d\n", other >= 0, relative >= 0, H5Lexists(id, "/gzip", H5P_DEFAULT));
    if (other >= 0) {
        ask_name(l, other);
        H5Dclose(other);
    }
    if (relative >= 0)
        H5Dclose(relative);
}

static void ask_all(listing *l, hid_t id)
{
    hid_t space = H5Dget_space(id), type = H5Dget_type(id);
    static char values[ROWS * WIDE * 8];
    hsize_t n[1] = {4};
    hid_t four = H5Screate_simple(1, n, NULL);

    memset(values, 3, sizeof values);
    say(l, "visit");
    if (type >= 0)
        say(l, " %d", H5Diterate(values, type, four, add_value, l));
    say(l, " object flush %d\n", H5Oflush(id));
    H5Sclose(four);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
}

typedef void question(listing *l, hid_t id);
static question *const questions[] = {
    ask_type, ask_space,  ask_creation, ask_name,       ask_file,    ask_attributes,
    ask_info, ask_values, ask_chunks,   ask_references, ask_copy,    ask_from_there,
    ask_all,  ask_access, ask_storage,  ask_refreshing, ask_writing, ask_extending,
};
/* To the first two of the last five HDF5 1.14.5 gives various answers, and after the others it reads other elements through the handle,
 * or through others on the dataset. */
#define GOING_ON (COUNT(questions) - 5)

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* HDF5 lists them in no order. */
static void count_open(listing *l, hid_t file)
{
    char name[50][40] = {0};
    hid_t ids[50];
    ssize_t n = H5Fget_obj_ids(file, H5F_OBJ_DATASET | H5F_OBJ_LOCAL, 50, ids);

    say(l, "open: %d %d %d %d", (int)H5Fget_obj_count(file, H5F_OBJ_ALL), (int)H5Fget_obj_count(file, H5F_OBJ_DATASET),
        (int)H5Fget_obj_count(file, H5F_OBJ_GROUP | H5F_OBJ_LOCAL), (int)n);
    for (ssize_t i = 0; i < n; i++)
        H5Iget_name(ids[i], name[i], sizeof name[i]);
    qsort(name, n > 0 ? (size_t)n : 0, sizeof name[0], by_name);
    for (ssize_t i = 0; i < n; i++)
        say(l, " %s", name[i]);
    say(l, "\n");
}

/* ---- each alone ---- */

/* How a dataset is opened: by H5Dopen or H5Oopen, from the file or from a group. */
static hid_t open_as(hid_t file, hid_t group, const char *path, unsigned how)
{
    if (how & 2) { /* from the group g */
        if (strncmp(path, "g/", 2) == 0)
            path += path[2] == '/' ? 3 : 2;
        return how & 1 ? H5Oopen(group, path, H5P_DEFAULT) : H5Dopen2(group, path, H5P_DEFAULT);
    }
    return how & 1 ? H5Oopen(file, path, H5P_DEFAULT) : H5Dopen2(file, path, H5P_DEFAULT);
}

static void ask_first(int side, listing *l, const char *path, unsigned how, question *ask)
{
    hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT), file = H5Fopen(names[side], H5F_ACC_RDONLY, fapl);
    hid_t group = H5Gopen2(file, "g", H5P_DEFAULT), id = open_as(file, group, path, how);

    say(l, "opened %d\n", id >= 0);
    if (how & 4) { /* the dataset is the last to be closed */
        H5Gclose(group);
        say(l, "closed %d\n", H5Fclose(file));
    }
    if (id >= 0) {
        if (H5Iget_type(id) == H5I_DATASET)
            ask(l, id);
        say(l, "closed %d\n", H5Oclose(id));
    }
    if (!(how & 4)) {
        H5Gclose(group);
        say(l, "closed %d\n", H5Fclose(file));
    }
    H5Pclose(fapl);
}

static void make_both(void)
{
    for (int side = 0; side < 2; side++) {
        hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT);

        make(names[side], fapl);
        H5Pclose(fapl);
    }
}

static void test_first(void **state)
{
    listing l[2] = {{0}};

    (void)state;
    make_both();
    for (size_t p = 0; p < COUNT(paths); p++)
        for (unsigned how = 0; how < 8; how++)
            for (size_t q = 0; q < COUNT(questions); q++) {
                during("%s, opened in way %u, asked question %zu first", paths[p], how, q);
                for (int side = 0; side < 2; side++) {
                    clear(&l[side]);
                    H5E_BEGIN_TRY
                    {
                        ask_first(side, &l[side], paths[p], how, questions[q]);
                    }
                    H5E_END_TRY
                }
                assert_true(same_text(paths[p], &l[0], &l[1]));
            }
    free(l[0].data);
    free(l[1].data);
}

/* ---- what changes what names lead to ---- */

static const char *const others[2] = {"unopened-other-native.h5", "unopened-other.h5"};

static void names_after_mount(int side, listing *l, bool asked_before)
{
    hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT), other = H5Fcreate(others[side], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    hid_t file = H5Fopen(names[side], H5F_ACC_RDONLY, fapl), a = H5Dopen2(file, "a", H5P_DEFAULT),
          deep = H5Oopen(file, "g/edges", H5P_DEFAULT), far;

    H5Gclose(H5Gcreate2(other, "m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    if (asked_before)
        ask_name(l, a);
    say(l, "mount %d\n", H5Fmount(other, "m", file, H5P_DEFAULT));
    ask_name(l, a);
    ask_name(l, deep);
    ask_values(l, deep);
    far = H5Oopen(other, "m/g/timeless", H5P_DEFAULT);
    if (far >= 0) {
        ask_name(l, far);
        ask_values(l, far);
        H5Oclose(far);
    }
    say(l, "unmount %d\n", H5Funmount(other, "m"));
    ask_name(l, a);
    H5Dclose(a);
    H5Oclose(deep);
    H5Fclose(file);
    H5Fclose(other);
    H5Pclose(fapl);
}

/* More soft links than HDF5 follows where nobody has said so. */
static void name_of_a_chain(int side, listing *l, size_t most)
{
    hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT), lapl = H5Pcreate(H5P_LINK_ACCESS), file, id;

    H5Pset_nlinks(lapl, most);
    file = H5Fopen(names[side], H5F_ACC_RDONLY, fapl);
    id = H5Oopen(file, "chain24", lapl);
    say(l, "opened %d\n", id >= 0);
    if (id >= 0) {
        ask_name(l, id);
        ask_values(l, id);
        H5Oclose(id);
    }
    H5Fclose(file);
    H5Pclose(lapl);
    H5Pclose(fapl);
}

static void test_names(void **state)
{
    listing l[2] = {{0}};

    (void)state;
    make_both();
    for (int side = 0; side < 2; side++) {
        hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT), file = H5Fopen(names[side], H5F_ACC_RDWR, fapl);
        char name[20], before[24] = "/a";

        for (int i = 0; i < 25; i++) {
            snprintf(name, sizeof name, "chain%d", i);
            assert_true(H5Lcreate_soft(before, file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            snprintf(before, sizeof before, "/%s", name);
        }
        H5Fclose(file);
        H5Pclose(fapl);
        H5E_BEGIN_TRY
        {
            names_after_mount(side, &l[side], false);
            names_after_mount(side, &l[side], true);
            name_of_a_chain(side, &l[side], 16);
            name_of_a_chain(side, &l[side], 40);
        }
        H5E_END_TRY
    }
    assert_true(same_text("names", &l[0], &l[1]));
    free(l[0].data);
    free(l[1].data);
}

/* ---- many together ---- */

static unsigned next(unsigned *r, unsigned n)
{
    *r = *r * 1664525u + 1013904223u;
    return (*r >> 8) % n;
}

#define HANDLES 6

static void at_random(int side, listing *l, unsigned seed)
{
    static const H5F_close_degree_t degrees[] = {H5F_CLOSE_DEFAULT, H5F_CLOSE_WEAK, H5F_CLOSE_SEMI, H5F_CLOSE_STRONG};
    unsigned r = seed;
    bool twice = next(&r, 3) == 0; /* then H5F_CLOSE_STRONG makes HDF5 1.14.5 crash */
    hid_t fapl = access_of(side, degrees[next(&r, twice ? 3 : 4)]), handle[HANDLES];
    hid_t file = H5Fopen(names[side], H5F_ACC_RDONLY, fapl),
          second = twice ? H5Fopen(names[side], H5F_ACC_RDONLY, fapl) : -1, group = H5Gopen2(file, "g", H5P_DEFAULT);

    for (int i = 0; i < HANDLES; i++)
        handle[i] = -1;
    for (int step = 0; step < 40; step++) {
        const unsigned what = next(&r, 20), i = next(&r, HANDLES), how = next(&r, 4), path = next(&r, COUNT(paths)),
                       q = next(&r, GOING_ON);

        if (what < 6 && handle[i] < 0 && file >= 0) {
            handle[i] = open_as(second >= 0 && how == 0 ? second : file, group, paths[path], how);
            say(l, "%s %d\n", paths[path], handle[i] >= 0);
        } else if (what < 14 && handle[i] >= 0 && H5Iget_type(handle[i]) == H5I_DATASET)
            questions[q](l, handle[i]);
        else if (what < 16 && handle[i] >= 0) {
            say(l, "close %d\n", H5Oclose(handle[i]));
            handle[i] = -1;
        } else if (what == 16 && file >= 0)
            count_open(l, file);
        else if (what == 17 && second >= 0) {
            count_open(l, second);
            say(l, "close second %d\n", H5Fclose(second));
            for (int k = 0; k < HANDLES; k++)
                if (handle[k] >= 0 && H5Iis_valid(handle[k]) <= 0)
                    handle[k] = -1;
            second = H5Iis_valid(second) > 0 ? second : -1;
        } else if (what == 18 && file >= 0 && group >= 0 && step > 25) {
            H5Gclose(group);
            group = -1;
            say(l, "close file %d\n", H5Fclose(file));
            for (int k = 0; k < HANDLES; k++)
                if (handle[k] >= 0 && H5Iis_valid(handle[k]) <= 0)
                    handle[k] = -1;
            if (H5Iis_valid(file) <= 0)
                file = -1;
        }
    }
    for (int i = 0; i < HANDLES; i++)
        if (handle[i] >= 0 && H5Iis_valid(handle[i]) > 0) {
            ask_name(l, handle[i]);
            say(l, "close %d\n", H5Oclose(handle[i]));
        }
    if (group >= 0)
        H5Gclose(group);
    if (file >= 0)
        say(l, "close file %d\n", H5Fclose(file));
    if (second >= 0)
        say(l, "close second %d\n", H5Fclose(second));
    say(l, "left %d\n", (int)H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL));
    H5Pclose(fapl);
}

static void test_at_random(void **state)
{
    const unsigned seed = test_seed();
    listing l[2] = {{0}};

    (void)state;
    make_both();
    for (unsigned n = 0; n < 100; n++) {
        during("session %u of seed %u", n, seed);
        for (int side = 0; side < 2; side++) {
            clear(&l[side]);
            H5E_BEGIN_TRY
            {
                at_random(side, &l[side], seed + n * 65537u);
            }
            H5E_END_TRY
        }
        assert_true(same_text("session", &l[0], &l[1]));
    }
    free(l[0].data);
    free(l[1].data);
}

/* ---- many together, written ---- */

static void write_some(listing *l, hid_t id, unsigned at)
{
    hsize_t start[2] = {at % 25, at % 5}, count[2] = {3, 2};
    hid_t space = H5Dget_space(id);
    int values[6];
    herr_t status = -1;

    for (int i = 0; i < 6; i++)
        values[i] = (int)(at + (unsigned)i) % 100;
    if (space >= 0) {
        hsize_t n = 6;
        hid_t memory = H5Screate_simple(1, &n, NULL);

        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        status = H5Dwrite(id, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values);
        H5Sclose(memory);
        H5Sclose(space);
    }
    say(l, "write %d\n", status);
}

/* What is added without a fill value has any values. */
static void extend(listing *l, hid_t id, unsigned rows)
{
    hsize_t extent[2] = {26 + rows % 20, WIDE};
    hid_t p = H5Dget_create_plist(id);
    H5D_fill_time_t time = H5D_FILL_TIME_NEVER;
    H5D_fill_value_t defined = H5D_FILL_VALUE_UNDEFINED;

    if (p >= 0 && H5Pget_layout(p) == H5D_CHUNKED && H5Pget_fill_time(p, &time) >= 0 &&
        H5Pfill_value_defined(p, &defined) >= 0 && time != H5D_FILL_TIME_NEVER && defined != H5D_FILL_VALUE_UNDEFINED)
        say(l, "extend %d\n", H5Dset_extent(id, extent));
    if (p >= 0)
        H5Pclose(p);
}

static void change_attribute(listing *l, hid_t id, unsigned value)
{
    hid_t space = H5Screate(H5S_SCALAR), a;

    if (value % 3 == 0 && H5Aexists(id, "new") > 0)
        say(l, "attribute goes %d\n", H5Adelete(id, "new"));
    else {
        a = H5Aexists(id, "new") > 0 ? H5Aopen(id, "new", H5P_DEFAULT)
                                     : H5Acreate2(id, "new", H5T_NATIVE_UINT, space, H5P_DEFAULT, H5P_DEFAULT);
        say(l, "attribute %d %d\n", a >= 0, H5Awrite(a, H5T_NATIVE_UINT, &value));
        H5Aclose(a);
    }
    H5Sclose(space);
}

/* Not those with elements that have no defined values. */
static const char *const written[] = {
    "a",        "chunked",         "gzip",    "g/edges", "g/timeless",   "g/ordered", "seven",
    "foreign",  "of a named type", "g/again", "soft",    "way/timeless", "/g/edges",  "./a",
    "g//again", "way/again",       "g",       "nowhere"};

static const char *const links[] = {"a",       "chunked", "gzip", "g/edges", "g/timeless", "g/ordered", "seven",
                                    "foreign", "g/again", "soft", "way",     "g",          "n0",        "n1",
                                    "n2",      "g/n0",    "g/n1", "n0",      "g/n1",       "n1"};

/* What is created, most of it so that HDF5 need not have it open: by a handle on the file or on its group g, or not at all, since there is something, or no
 * way to it. */
static const char *const created[] = {"n0",    "n1",     "n2",   "/n0",     "./n1",    "g/n0", "/g/n1",
                                      "g//n0", "way/n1", "soft", "none/n1", "none/n2", "g",    "a"};

static hid_t create_one(listing *l, hid_t file, hid_t group, unsigned *r)
{
    const hid_t types[] = {H5T_STD_I32LE, H5T_NATIVE_INT, H5T_IEEE_F64LE, H5T_STD_U8LE, H5T_STD_I16BE};
    const hsize_t extent[2] = {ROWS, WIDE}, most[2] = {H5S_UNLIMITED, WIDE}, chunk[2] = {7, 3}, small[2] = {2, 2};
    const char *name = created[next(r, COUNT(created))];
    const unsigned how = next(r, 32), size = next(r, 8);
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), lcpl = H5Pcreate(H5P_LINK_CREATE),
          space = size == 0 ? H5Screate_simple(2, small, NULL) : H5Screate_simple(2, extent, how & 1 ? most : NULL),
          type = H5Tcopy(types[next(r, COUNT(types))]), at = how & 2 ? group : file, id;

    if (how & 1)
        H5Pset_chunk(dcpl, 2, size == 0 ? small : chunk);
    else /* else HDF5 does not fill it, and what is in its place may be anything */
        H5Pset_fill_time(dcpl, H5D_FILL_TIME_ALLOC);
    if (size == 1)
        H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED);
    if (size == 2)
        H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
    H5Pset_create_intermediate_group(lcpl, (how & 12) == 12);
    H5Pset_char_encoding(lcpl, how & 16 ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
    id = H5Dcreate2(at, name, type, space, lcpl, dcpl, H5P_DEFAULT);
    say(l, "create %s by %s: %d\n", name, at == file ? "file" : "group", id >= 0);
    if (id >= 0 && next(r, 3) > 0 && size > 0)
        write_some(l, id, next(r, 1000));
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(lcpl);
    H5Pclose(dcpl);
    return id;
}

/* What else can be done with an object that is open: by its name, and by its place. */
static void use_otherwise(listing *l, hid_t file, hid_t id, unsigned value)
{
    char name[100] = "", copy[40];
    H5O_info2_t info;
    hid_t other = -1, dcpl = H5Dget_create_plist(id);
    /* HDF5 1.14.5 copies what is in its cache past the filter, and of a contiguous one not what is in its buffer */
    const bool plain = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_CHUNKED && H5Pget_nfilters(dcpl) == 0;

    H5Pclose(dcpl);
    if (H5Iget_name(id, name, sizeof name) <= 0 ||
        H5Oget_info_by_name3(file, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
        info.rc != 1) /* which of several it is called by is up to HDF5 */
        return;
    snprintf(copy, sizeof copy, "copy %u", value);
    switch (value % 5) {
    case 0:
        if (plain)
            say(l, "copied %d\n", H5Ocopy(file, name, file, copy, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case 1:
        other = H5Oopen_by_token(file, info.token);
        break;
    case 2:
        other = H5Dopen2(file, name, H5P_DEFAULT);
        break;
    case 3:
        if (H5Aexists_by_name(file, name, copy, H5P_DEFAULT) == 0)
            put_attribute(file, name, copy, 3);
        break;
    default:
        say(l, "incremented %d\n", H5Oincr_refcount(id));
        say(l, "decremented %d\n", H5Odecr_refcount(id));
    }
    if (other >= 0) {
        write_some(l, other, value);
        ask_values(l, id);
        say(l, "closed %d\n", H5Oclose(other));
    }
    say(l, "there %d\n", H5Lexists(file, name, H5P_DEFAULT));
}

static void change_links(listing *l, hid_t file, unsigned *r, unsigned step)
{
    const char *name = links[next(r, COUNT(links))];
    char other[40];

    snprintf(other, sizeof other, "%s of %u", name[1] == '/' ? "g" : name, step);
    switch (next(r, 5)) {
    case 0:
        say(l, "%s goes %d\n", name, H5Ldelete(file, name, H5P_DEFAULT));
        break;
    case 1:
        say(l, "%s is moved %d\n", name, H5Lmove(file, name, file, other, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case 2:
        say(l, "%s is linked %d\n", name, H5Lcreate_hard(file, name, file, other, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case 3:
        if (H5Lexists(file, name, H5P_DEFAULT) == 0 && name[1] != '/' && strcmp(name, "g") != 0)
            fill_in(file, name, H5T_STD_I32LE, H5P_DATASET_CREATE_DEFAULT, false);
        break;
    default:
        say(l, "flush %d\n", H5Fflush(file, H5F_SCOPE_GLOBAL));
    }
}

/* Which of several names an object has depends on how HDF5 looks for it. */
static void ask_only_name(listing *l, hid_t id)
{
    H5O_info2_t info;

    if (H5Oget_info3(id, &info, H5O_INFO_BASIC) >= 0 && info.rc == 1)
        ask_name(l, id);
}

/* To others HDF5 1.14.5 has various answers, or copies what is in its cache past the filter. */
static question *const asked_meanwhile[] = {ask_type, ask_space, ask_creation, ask_only_name,
                                            ask_file, ask_info,  ask_values,   ask_from_there};

/* FRESH: in a file that is made anew. */
static void write_at_random(int side, listing *l, unsigned seed, bool fresh)
{
    unsigned r = seed;
    hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT),
          file = fresh ? H5Fcreate(names[side], H5F_ACC_TRUNC, H5P_DEFAULT, fapl)
                       : H5Fopen(names[side], H5F_ACC_RDWR, fapl),
          handle[HANDLES],
          group =
              fresh ? H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) : H5Gopen2(file, "g", H5P_DEFAULT);

    assert_true(file >= 0);
    for (int i = 0; i < HANDLES; i++)
        handle[i] = -1;
    for (unsigned step = 0; step < 60; step++) {
        const unsigned what = next(&r, 32), i = next(&r, HANDLES), how = next(&r, 4), path = next(&r, COUNT(written)),
                       value = next(&r, 1000);
        const bool dataset = handle[i] >= 0 && H5Iget_type(handle[i]) == H5I_DATASET;

        say(l, "%u: ", step);
        if (what < 8 && handle[i] < 0) {
            handle[i] = open_as(file, group, written[path], how);
            say(l, "%s %d\n", written[path], handle[i] >= 0);
        } else if (what < 12 && dataset)
            write_some(l, handle[i], value);
        else if (what < 13 && dataset)
            extend(l, handle[i], value);
        else if (what < 14 && dataset)
            change_attribute(l, handle[i], value);
        else if (what < 18 && dataset)
            asked_meanwhile[value % COUNT(asked_meanwhile)](l, handle[i]);
        else if (what < 20 && handle[i] >= 0) {
            say(l, "close %d\n", H5Oclose(handle[i]));
            handle[i] = -1;
        } else if (what < 22)
            change_links(l, file, &r, step);
        else if (what == 22)
            say(l, "open: %d %d\n", (int)H5Fget_obj_count(file, H5F_OBJ_ALL),
                (int)H5Fget_obj_count(file, H5F_OBJ_DATASET));
        else if (what < 30 && handle[i] < 0)
            handle[i] = create_one(l, file, group, &r);
        else if (what >= 30 && dataset)
            use_otherwise(l, file, handle[i], value);
        say(l, "\n");
    }
    H5Gclose(group);
    if (next(&r, 2))
        say(l, "close file %d\n", H5Fclose(file));
    for (int i = 0; i < HANDLES; i++)
        if (handle[i] >= 0) {
            if (H5Iget_type(handle[i]) == H5I_DATASET)
                write_some(l, handle[i], (unsigned)i);
            say(l, "close %d\n", H5Oclose(handle[i]));
        }
    if (H5Iis_valid(file) > 0)
        say(l, "close file %d\n", H5Fclose(file));
    H5Pclose(fapl);
}

static herr_t look_at(hid_t file, const char *name, const H5O_info2_t *info, void *context)
{
    hid_t id = info->type == H5O_TYPE_DATASET ? H5Dopen2(file, name, H5P_DEFAULT) : -1;

    say(context, "%s %d %u %u\n", name, info->type, info->rc, (unsigned)info->num_attrs);
    if (id >= 0) {
        ask_space(context, id);
        if (strcmp(name, "undefined") != 0)
            ask_values(context, id);
        say(context, "attribute %d\n", H5Aexists(id, "new"));
        H5Dclose(id);
    }
    return 0;
}

static void look_at_all(int side, listing *l, const char *of)
{
    char name[60];
    hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT), file;

    snprintf(name, sizeof name, "%s%s", names[side], side == 0 ? "" : of);
    file = H5Fopen(name, H5F_ACC_RDONLY, fapl);
    say(l, "opened %d\n", file >= 0);
    H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, look_at, l, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS);
    H5Fclose(file);
    H5Pclose(fapl);
}

static void test_written_at_random(void **state)
{
    const unsigned seed = test_seed();
    listing l[2] = {{0}};

    (void)state;
    for (unsigned n = 0; n < 90; n++) {
        const bool fresh = n % 6 == 3;

        if (n % 6 == 0)
            make_both();
        during("session %u of seed %u", n, seed);
        for (int side = 0; side < 2; side++) {
            clear(&l[side]);
            H5E_BEGIN_TRY
            {
                write_at_random(side, &l[side], seed + n * 65537u, fresh);
                look_at_all(side, &l[side], n % 2 == 0 ? "" : "@latest");
            }
            H5E_END_TRY
        }
        assert_true(same_text("session", &l[0], &l[1]));
    }
    free(l[0].data);
    free(l[1].data);
}

/* ---- other access properties ---- */

/* The first open handle on "chunked" is one that HDF5 has not opened: what the program opens otherwise, by a list with a prefix for files, must
 * neither take that from it nor be refused where HDF5 does not. HOW: what is done meanwhile. */
static void open_otherwise(int side, listing *l, int how)
{
    hid_t fapl = access_of(side, H5F_CLOSE_DEFAULT), file = H5Fopen(names[side], H5F_ACC_RDWR, fapl),
          prefix = H5Pcreate(H5P_DATASET_ACCESS), id = H5Oopen(file, how & 1 ? "a" : "chunked", H5P_DEFAULT),
          other = -1;
    hobj_ref_t reference;

    H5Pset_efile_prefix(prefix, "/tmp");
    H5Rcreate(&reference, file, how & 1 ? "a" : "chunked", H5R_OBJECT, -1);
    write_some(l, id, 17);
    if (how & 2)
        say(l, "closed %d\n", H5Oclose(id));
    if (how & 4)
        other = H5Rdereference2(file, prefix, H5R_OBJECT, &reference);
    else if (how & 8)
        other = H5Dopen2(file, how & 16 ? "gzip" : "chunked", prefix);
    else
        H5Pset_chunk_cache(prefix, 101, 123456, 0.5), other = H5Oopen(file, "chunked", prefix);
    say(l, "opened otherwise %d\n", other >= 0);
    if (other >= 0) {
        write_some(l, other, 24);
        extend(l, other, 9);
    }
    if (!(how & 2)) {
        change_attribute(l, id, 4);
        ask_name(l, id);
        say(l, "moved %d\n", H5Lmove(file, "gzip", file, "packed", H5P_DEFAULT, H5P_DEFAULT));
        say(l, "deleted %d\n", H5Ldelete(file, how & 1 ? "a" : "chunked", H5P_DEFAULT));
        ask_info(l, id);
        say(l, "linked %d\n", H5Lcreate_hard(id, ".", file, "back", H5P_DEFAULT, H5P_DEFAULT));
        say(l, "closed %d\n", H5Oclose(id));
    }
    say(l, "flush %d\n", H5Fflush(file, H5F_SCOPE_GLOBAL));
    if (other >= 0)
        say(l, "closed %d\n", H5Oclose(other));
    say(l, "closed %d\n", H5Fclose(file));
    H5Pclose(prefix);
    H5Pclose(fapl);
}

/* The last one: once a prefix was used, nothing stays unopened in this process. So each is a process of its own. */
static void test_other_access_properties(void **state)
{
    (void)state;
    for (int how = 0; how < 32; how++) {
        pid_t child;
        int status;

        fflush(stdout);
        assert_true((child = fork()) >= 0);
        if (child == 0) {
            listing l[2] = {{0}};

            make_both();
            during("way %d", how);
            for (int side = 0; side < 2; side++) {
                H5E_BEGIN_TRY
                {
                    open_otherwise(side, &l[side], how);
                }
                H5E_END_TRY
                look_at_all(side, &l[side], "");
            }
            status = same_text("otherwise", &l[0], &l[1]);
            fflush(stdout);
            _exit(status ? 0 : 1);
        }
        assert_true(waitpid(child, &status, 0) == child && status == 0);
    }
}

/* ---- links of the program's own ---- */

#define OWN ((H5L_type_t)(H5L_TYPE_UD_MIN + 9))

static hid_t leads_into,
    leads_to; /* into this file, by the path that the link has; or to what is open under that id already */

static hid_t go(const char *name, hid_t group, const void *value, size_t size, hid_t lapl, hid_t dxpl)
{
    (void)name;
    (void)group;
    (void)size;
    (void)dxpl;
    if (leads_to < 0)
        return H5Oopen(leads_into, value, lapl);
    return H5Iinc_ref(leads_to) < 0 ? H5I_INVALID_HID : leads_to;
}

static const H5L_class_t own_links = {.version = H5L_LINK_CLASS_T_VERS, .id = OWN, .comment = "own", .trav_func = go};

static const char *const led_to[] = {"a", "chunked", "foreign", "g/edges", "g"};
static const char *const link_files[2] = {"unopened-links-native.h5", "unopened-links.h5"};

/* The second file has no history. */
static void add_links(int side, const char *name)
{
    hid_t fapl = access_of(name == names[side] ? side : 0, H5F_CLOSE_DEFAULT),
          file = name == names[side] ? H5Fopen(name, H5F_ACC_RDWR, fapl)
                                     : H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    char link[20], soft[20];

    assert_true(file >= 0);
    for (size_t i = 0; i < COUNT(led_to); i++) {
        snprintf(link, sizeof link, "own %zu", i);
        snprintf(soft, sizeof soft, "to own %zu", i);
        assert_true(H5Lcreate_ud(file, link, OWN, led_to[i], strlen(led_to[i]) + 1, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_soft(link, file, soft, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    H5Fclose(file);
    H5Pclose(fapl);
    which = side;
}

#define ELSEWHERE 1u  /* the link is in the file without history */
#define BY_SOFT   2u  /* a soft link leads to it */
#define IS_OPEN   4u  /* it leads to what the program has open */
#define WRITTEN   8u  /* the file is open for writing, and what it leads to was written */
#define TWICE     16u /* it was followed twice before */
#define WAYS      16u /* besides */

static void say_where(listing *l, hid_t from, const char *link)
{
    H5O_info2_t info = {0}, there;

    say(l, "info %d", H5Oget_info_by_name3(from, link, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT));
    say(l, " type %d counted %u attributes %d:", (int)info.type, info.rc, (int)info.num_attrs);
    for (size_t i = 0; i < COUNT(led_to); i++) {
        int cmp = 9;

        if (H5Oget_info_by_name3(leads_into, led_to[i], &there, H5O_INFO_BASIC, H5P_DEFAULT) >= 0)
            H5Otoken_cmp(leads_into, &there.token, &info.token, &cmp);
        say(l, " %s %s", led_to[i], cmp == 0 && there.fileno == info.fileno ? "is it" : "is another");
    }
    say(l, "\n");
}

static void follow(int side, listing *l, size_t what, unsigned how)
{
    hid_t fapl = access_of(side, H5F_CLOSE_SEMI),
          file = H5Fopen(names[side], how & WRITTEN ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl),
          from = how & ELSEWHERE ? H5Fopen(link_files[side], H5F_ACC_RDONLY, fapl) : H5Freopen(file),
          id = H5Oopen(file, led_to[what], H5P_DEFAULT), before[2];
    H5O_info2_t info;
    char link[20];

    snprintf(link, sizeof link, "%sown %zu", how & BY_SOFT ? "to " : "", what);
    assert_true(file >= 0 && from >= 0 && id >= 0);
    leads_into = file;
    leads_to = how & IS_OPEN ? id : H5I_INVALID_HID;
    if (how & WRITTEN && H5Iget_type(id) == H5I_DATASET)
        write_some(l, id, 5);
    for (int i = 0; i < 2 && how & TWICE; i++)
        before[i] = H5Oopen(from, link, H5P_DEFAULT);
    for (int i = 0; i < 2 && how & TWICE; i++) {
        say(l, "before %d: %d", before[i] >= 0, H5Oget_info3(before[i], &info, H5O_INFO_ALL));
        say(l, " counted %u\n", info.rc);
        ask_name(l, before[i]);
    }
    say_where(l, from, link);
    say(l, "exists %d attribute %d\n", H5Oexists_by_name(from, link, H5P_DEFAULT),
        H5Aexists_by_name(from, link, "x", H5P_DEFAULT));
    for (size_t q = 0; q < GOING_ON; q++) {
        hid_t found = q & 1 ? H5Oopen(from, link, H5P_DEFAULT) : H5Dopen2(from, link, H5P_DEFAULT);

        say(l, "question %zu: opened %d\n", q, found >= 0);
        if (found >= 0 && H5Iget_type(found) == H5I_DATASET)
            questions[q](l, found);
        if (found >= 0)
            say(l, "closed %d\n", H5Oclose(found));
    }
    if ((how & (WRITTEN | ELSEWHERE)) == WRITTEN) {
        say(l, "linked %d\n", H5Lcreate_hard(from, link, file, "another name", H5P_DEFAULT, H5P_DEFAULT));
        say(l, "copied %d\n", H5Ocopy(from, link, file, "copy", H5P_DEFAULT, H5P_DEFAULT));
        say_where(l, file, "another name");
    }
    if (H5Iget_type(id) == H5I_DATASET)
        ask_values(l, id);
    count_open(l, file);
    for (int i = 0; i < 2 && how & TWICE; i++)
        say(l, "closed %d\n", H5Oclose(before[i]));
    say(l, "closed %d", H5Oclose(id));
    say(l, " %d", H5Fclose(from));
    say(l, " %d\n", H5Fclose(file));
    H5Pclose(fapl);
}

static void test_links_of_its_own(void **state)
{
    listing l[2] = {{0}};

    (void)state;
    assert_true(H5Lregister(&own_links) >= 0);
    for (unsigned way = 0; way < WAYS; way++)
        for (size_t what = 0; what < COUNT(led_to); what++) {
            const unsigned how = way | ((way + what) % 2 ? TWICE : 0);

            during("%s, followed in way %u", led_to[what], how);
            for (int side = 0; side < 2; side++)
                unlink(names[side]);
            make_both();
            for (int side = 0; side < 2; side++) {
                add_links(side, names[side]);
                add_links(side, link_files[side]);
                clear(&l[side]);
                H5E_BEGIN_TRY
                {
                    follow(side, &l[side], what, how);
                    look_at_all(side, &l[side], "");
                }
                H5E_END_TRY
            }
            assert_true(same_text(led_to[what], &l[0], &l[1]));
        }
    free(l[0].data);
    free(l[1].data);
}

static int begin(void **state)
{
    return H5Zregister(&foreign) < 0 ? -1 : through_begin(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_first),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_at_random),
                                       cmocka_unit_test(test_written_at_random),
                                       cmocka_unit_test(test_links_of_its_own),
                                       cmocka_unit_test(test_other_access_properties)};

    return test_main(tests, argc, argv, begin, through_end);
}
