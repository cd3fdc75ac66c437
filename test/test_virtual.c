/* Virtual datasets that are written as bytes (native/virtual.h), each beside one that HDF5 made of the same: HDF5 tells and reads both alike, in the same
 * session and in another, counts their links, and deletes them. */
#include "base/error.h"
#include "harness.h"
#include "journaled.h"
#include "library/library.h"
#include "native/header_file.h"
#include "native/staged.h"
#include "native/virtual.h"
#include "random.h"

#include <H5VLconnector.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME   "test_virtual.h5"
#define ROUNDS 60
#define MOST   40 /* datasets of a round */
#define BOXES  5
#define EDGE   6 /* of a source, in each dimension */

static uint64_t dice;

static uint64_t below(uint64_t n)
{
    return splitmix64(&dice) % n;
}

/* ---- what datasets are ---- */

static hid_t draw_type(void)
{
    hid_t predefined[] = {H5T_STD_I8LE,   H5T_STD_U16BE, H5T_STD_I32LE, H5T_STD_U64BE, H5T_IEEE_F32LE,
                          H5T_IEEE_F64BE, H5T_STD_B16LE, H5T_C_S1,      H5T_FORTRAN_S1};
    hid_t type;

    if (below(8) == 0) {
        assert_true((type = H5Tcreate(H5T_OPAQUE, 1 + below(40))) >= 0 && H5Tset_tag(type, "a tag") >= 0);
        return type;
    }
    assert_true((type = H5Tcopy(predefined[below(sizeof predefined / sizeof *predefined)])) >= 0);
    if (H5Tget_class(type) == H5T_STRING)
        assert_true(H5Tset_size(type, 1 + below(60)) >= 0);
    return type;
}

static hid_t draw_settings(hid_t type)
{
    const H5D_alloc_time_t allocated[] = {H5D_ALLOC_TIME_EARLY, H5D_ALLOC_TIME_LATE, H5D_ALLOC_TIME_INCR};
    const H5D_fill_time_t filled[] = {H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_NEVER, H5D_FILL_TIME_IFSET};
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);
    uint8_t value[64];

    assert_true(H5Pset_obj_track_times(dcpl, below(2)) >= 0);
    if (below(2))
        assert_true(H5Pset_alloc_time(dcpl, allocated[below(3)]) >= 0 && H5Pset_fill_time(dcpl, filled[below(3)]) >= 0);
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (uint8_t)(1 + below(60));
    switch (below(3)) {
    case 0:
        assert_true(H5Pset_fill_value(dcpl, type, value) >= 0);
        break;
    case 1:
        assert_true(H5Pset_fill_time(dcpl, H5D_FILL_TIME_IFSET) >= 0 && H5Pset_fill_value(dcpl, type, NULL) >= 0);
        break;
    default:
        break;
    }
    return dcpl;
}

typedef struct shape {
    unsigned rank;
    hsize_t extent[H5S_MAX_RANK], maximum[H5S_MAX_RANK];
    hsize_t away; /* where its mappings begin */
} shape;

static shape draw_shape(void)
{
    /* about the ends of what takes 16 and 32 bits */
    const hsize_t away[] = {
        0, 0, 0, UINT16_MAX - below(EDGE * BOXES), UINT32_MAX - below(EDGE * BOXES), (hsize_t)1 << 33};
    shape s = {.rank = below(20) == 0 ? 1 + (unsigned)below(H5S_MAX_RANK) : 1 + (unsigned)below(4),
               .away = away[below(sizeof away / sizeof *away)]};

    for (unsigned d = 0; d < s.rank; d++) {
        s.extent[d] = s.rank > 4 ? 2 : EDGE * BOXES;
        if (d == 0)
            s.extent[d] += s.away;
        s.maximum[d] = below(3) == 0 ? H5S_UNLIMITED : s.extent[d] + below(3);
    }
    return s;
}

/* Boxes along the first dimension, which do not overlap. FROM: as many elements of a source. */
static void draw_boxes(const shape *s, size_t at, cow_box_list *shown, cow_box_list *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t start[H5S_MAX_RANK] = {0}, size[H5S_MAX_RANK] = {0}, source[H5S_MAX_RANK] = {0};

        for (unsigned d = 0; d < s->rank; d++) {
            size[d] = s->rank > 4 || (d == 0 && count > 1) ? 1 : 1 + below(EDGE);
            source[d] = s->rank > 4 ? 0 : below(EDGE - size[d] + 1);
            start[d] = d > 0 ? 0 : s->away + (s->rank > 4 ? at : at * EDGE);
        }
        start[0] += count > 1 ? i : 0;
        source[0] = count > 1 ? i : source[0];
        assert_int_equal(cow_box_list_add(shown, start, size), 0);
        assert_int_equal(cow_box_list_add(from, source, size), 0);
    }
}

static void select_boxes(hid_t space, const cow_box_list *boxes)
{
    hsize_t start[H5S_MAX_RANK], size[H5S_MAX_RANK];

    for (size_t i = 0; i < boxes->count; i++) {
        for (unsigned d = 0; d < boxes->rank; d++) {
            start[d] = boxes->start[i * boxes->rank + d];
            size[d] = boxes->size[i * boxes->rank + d];
        }
        assert_true(H5Sselect_hyperslab(space, i == 0 ? H5S_SELECT_SET : H5S_SELECT_OR, start, NULL, size, NULL) >= 0);
    }
}

static void make_source(hid_t file, hid_t type, unsigned rank, const char *name)
{
    hsize_t extent[H5S_MAX_RANK], bytes = H5Tget_size(type);
    uint8_t *values;
    hid_t space, dataset;

    for (unsigned d = 0; d < rank; d++)
        bytes *= extent[d] = rank > 4 ? 1 : EDGE;
    assert_non_null(values = malloc(bytes));
    for (hsize_t i = 0; i < bytes; i++)
        values[i] = (uint8_t)(1 + below(60));
    assert_true((space = H5Screate_simple((int)rank, extent, NULL)) >= 0);
    assert_true((dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0 && H5Sclose(space) >= 0);
    free(values);
}

/* ---- comparing ---- */

/* The boxes of a selection, as HDF5 lists them; free(). It tells a box as one, or as so many of one element. */
static hsize_t *list_boxes(hid_t space, hsize_t *numbers)
{
    const size_t rank = (size_t)H5Sget_simple_extent_ndims(space);
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK], *list;
    const hsize_t n = (hsize_t)H5Sget_select_hyper_nblocks(space);
    bool one = H5Sis_regular_hyperslab(space) > 0 && H5Sget_regular_hyperslab(space, start, stride, count, block) >= 0;

    for (size_t d = 0; one && d < rank; d++)
        one = count[d] == 1 || stride[d] == block[d];
    *numbers = (one ? 1 : n) * 2 * rank;
    assert_non_null(list = calloc(*numbers + 1, sizeof *list));
    if (!one)
        assert_true(H5Sget_select_hyper_blocklist(space, 0, n, list) >= 0);
    for (size_t d = 0; one && d < rank; d++) {
        list[d] = start[d];
        list[rank + d] = start[d] + count[d] * block[d] - 1;
    }
    return list;
}

static void compare_selections(hid_t a, hid_t b)
{
    hsize_t *x, *y, numbers[2];

    assert_int_equal(H5Sget_select_type(a), H5Sget_select_type(b));
    if (H5Sget_select_type(a) == H5S_SEL_HYPERSLABS) {
        x = list_boxes(a, &numbers[0]);
        y = list_boxes(b, &numbers[1]);
        assert_int_equal(numbers[0], numbers[1]);
        assert_memory_equal(x, y, numbers[0] * sizeof *x);
        free(x);
        free(y);
    }
    assert_true(H5Sclose(a) >= 0 && H5Sclose(b) >= 0);
}

static void compare_settings(hid_t a, hid_t b, hid_t type)
{
    H5D_fill_value_t defined[2];
    H5D_alloc_time_t allocated[2];
    H5D_fill_time_t filled[2];
    hbool_t times[2];
    size_t count[2];
    uint8_t value[2][64];
    char name[2][200];

    assert_true(H5Pfill_value_defined(a, &defined[0]) >= 0 && H5Pfill_value_defined(b, &defined[1]) >= 0);
    assert_int_equal(defined[0], defined[1]);
    if (defined[0] == H5D_FILL_VALUE_USER_DEFINED) {
        assert_true(H5Pget_fill_value(a, type, value[0]) >= 0 && H5Pget_fill_value(b, type, value[1]) >= 0);
        assert_memory_equal(value[0], value[1], H5Tget_size(type));
    }
    assert_true(H5Pget_alloc_time(a, &allocated[0]) >= 0 && H5Pget_alloc_time(b, &allocated[1]) >= 0);
    assert_int_equal(allocated[0], allocated[1]);
    assert_true(H5Pget_fill_time(a, &filled[0]) >= 0 && H5Pget_fill_time(b, &filled[1]) >= 0);
    assert_int_equal(filled[0], filled[1]);
    assert_true(H5Pget_obj_track_times(a, &times[0]) >= 0 && H5Pget_obj_track_times(b, &times[1]) >= 0);
    assert_int_equal(times[0], times[1]);
    assert_int_equal(H5Pget_layout(a), H5D_VIRTUAL);
    assert_int_equal(H5Pget_layout(b), H5D_VIRTUAL);
    assert_true(H5Pget_virtual_count(a, &count[0]) >= 0 && H5Pget_virtual_count(b, &count[1]) >= 0);
    assert_int_equal(count[0], count[1]);
    for (size_t i = 0; i < count[0]; i++) {
        assert_true(H5Pget_virtual_filename(a, i, name[0], sizeof name[0]) > 0 &&
                    H5Pget_virtual_filename(b, i, name[1], sizeof name[1]) > 0);
        assert_string_equal(name[0], name[1]);
        assert_true(H5Pget_virtual_dsetname(a, i, name[0], sizeof name[0]) > 0 &&
                    H5Pget_virtual_dsetname(b, i, name[1], sizeof name[1]) > 0);
        assert_string_equal(name[0], name[1]);
        compare_selections(H5Pget_virtual_vspace(a, i), H5Pget_virtual_vspace(b, i));
        compare_selections(H5Pget_virtual_srcspace(a, i), H5Pget_virtual_srcspace(b, i));
    }
    assert_true(H5Pclose(a) >= 0 && H5Pclose(b) >= 0);
}

/* Elements from where the mappings begin. */
static void compare_elements(hid_t a, hid_t b, hid_t type, const shape *s)
{
    hsize_t start[H5S_MAX_RANK] = {0}, size[H5S_MAX_RANK], n = 1;
    hid_t file, memory;
    uint8_t *x, *y;

    for (unsigned d = 0; d < s->rank; d++)
        n *= size[d] = s->rank > 4 ? (d == 0 ? 2 : 1) : EDGE * BOXES;
    if (n > 100000)
        return;
    start[0] = s->away;
    assert_true((file = H5Dget_space(a)) >= 0 &&
                H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, size, NULL) >= 0);
    assert_true((memory = H5Screate_simple((int)s->rank, size, NULL)) >= 0);
    x = calloc(n, H5Tget_size(type));
    y = calloc(n, H5Tget_size(type));
    assert_true(H5Dread(a, type, memory, file, H5P_DEFAULT, x) >= 0 &&
                H5Dread(b, type, memory, file, H5P_DEFAULT, y) >= 0);
    assert_memory_equal(x, y, n * H5Tget_size(type));
    free(x);
    free(y);
    assert_true(H5Sclose(memory) >= 0 && H5Sclose(file) >= 0);
}

static void compare(hid_t file, hid_t type, size_t i, const shape *s)
{
    char ours[32], theirs[32];
    hid_t a, b, t[2], space[2];
    hsize_t extent[2][H5S_MAX_RANK], maximum[2][H5S_MAX_RANK];
    H5O_info2_t info;

    snprintf(theirs, sizeof theirs, "/made/%zu", i);
    snprintf(ours, sizeof ours, "/written/%zu", i);
    assert_true((a = H5Dopen2(file, theirs, H5P_DEFAULT)) >= 0);
    if ((b = H5Dopen2(file, ours, H5P_DEFAULT)) < 0)
        fail_msg("%s cannot be opened", ours);
    t[0] = H5Dget_type(a);
    t[1] = H5Dget_type(b);
    assert_true(H5Tequal(t[0], t[1]) > 0 && H5Tequal(t[1], type) > 0);
    space[0] = H5Dget_space(a);
    space[1] = H5Dget_space(b);
    assert_int_equal(H5Sget_simple_extent_dims(space[0], extent[0], maximum[0]), s->rank);
    assert_int_equal(H5Sget_simple_extent_dims(space[1], extent[1], maximum[1]), s->rank);
    assert_memory_equal(extent[0], extent[1], s->rank * sizeof **extent);
    assert_memory_equal(maximum[0], maximum[1], s->rank * sizeof **maximum);
    compare_settings(H5Dget_create_plist(a), H5Dget_create_plist(b), type);
    compare_elements(a, b, type, s);
    assert_true(H5Oget_info3(b, &info, H5O_INFO_BASIC) >= 0);
    assert_int_equal(info.rc, 1);
    for (int k = 0; k < 2; k++)
        assert_true(H5Tclose(t[k]) >= 0 && H5Sclose(space[k]) >= 0);
    assert_true(H5Dclose(a) >= 0 && H5Dclose(b) >= 0);
}

/* Links are counted, attributes find room, and what has no link goes. */
static void use(hid_t file, size_t i)
{
    char name[32];
    hid_t dataset, space, attribute;
    H5O_info2_t info;

    snprintf(name, sizeof name, "/written/%zu", i);
    assert_true(H5Lcreate_hard(file, name, file, "/again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true((dataset = H5Dopen2(file, "/again", H5P_DEFAULT)) >= 0);
    space = H5Screate(H5S_SCALAR);
    assert_true((attribute = H5Acreate2(dataset, "a", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Aclose(attribute) >= 0 && H5Sclose(space) >= 0);
    assert_true(H5Oget_info3(dataset, &info, H5O_INFO_BASIC) >= 0);
    assert_int_equal(info.rc, 2);
    assert_true(H5Dclose(dataset) >= 0 && H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    assert_true(H5Oget_info_by_name3(file, "/again", &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0);
    assert_int_equal(info.rc, 1);
    assert_true(H5Ldelete(file, "/again", H5P_DEFAULT) >= 0);
}

/* ---- rounds ---- */

static hid_t make_group(hid_t file, const char *path)
{
    hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(group >= 0);
    return group;
}

static void make_one(hid_t made, cow_virtual *virtual, hid_t type, size_t i, const shape *s, cow_staged *staged)
{
    const hid_t dcpl = draw_settings(type);
    hid_t plist = H5Pcopy(dcpl), view = H5Screate_simple((int)s->rank, s->extent, s->maximum), dataset;
    const size_t mappings = s->rank > 4 ? 1 : 1 + below(BOXES);
    char name[COW_STAGED_NAME];

    cow_virtual_begin(virtual);
    for (size_t m = 0; m < mappings; m++) {
        const bool several = s->rank <= 4 && below(3) == 0, all = !several && s->rank > 4;
        cow_box_list shown = {.rank = s->rank}, from = {.rank = s->rank};
        hsize_t extent[H5S_MAX_RANK];
        hid_t source;

        draw_boxes(s, m, &shown, &from, several ? 1 + below(BOXES) : 1);
        for (unsigned d = 0; d < s->rank; d++)
            extent[d] = s->rank > 4 ? 1 : EDGE;
        assert_true((source = H5Screate_simple((int)s->rank, extent, NULL)) >= 0);
        select_boxes(view, &shown);
        if (!all)
            select_boxes(source, &from);
        assert_true(H5Pset_virtual(plist, view, ".", "/source", source) >= 0 && H5Sclose(source) >= 0);
        assert_int_equal(cow_virtual_map(virtual, &shown, "/source", all ? NULL : &from), 0);
        cow_box_list_free(&shown);
        cow_box_list_free(&from);
    }
    assert_true(H5Sselect_all(view) >= 0);
    snprintf(name, sizeof name, "%zu", i);
    assert_true((dataset = H5Dcreate2(made, name, type, view, H5P_DEFAULT, plist, H5P_DEFAULT)) >= 0 &&
                H5Dclose(dataset) >= 0);
    strcpy(staged->name, name);
    assert_int_equal(cow_virtual_put(virtual, s->rank, s->extent, s->maximum, dcpl, &staged->address), 1);
    assert_true(H5Sclose(view) >= 0 && H5Pclose(plist) >= 0 && H5Pclose(dcpl) >= 0);
}

static cow_virtual *open_in(hid_t file, H5F_libver_t low, hid_t type, bool heap)
{
    cow_native_bytes bytes;

    return cow_virtual_open(H5VLobject(file), cow_native_file_bytes(H5VLobject(file), &bytes) ? &bytes : NULL, low,
                            type, heap);
}

static void run_round(void)
{
    const size_t count = 1 + below(MOST);
    const hid_t type = draw_type(), fapl = journal_list();
    const H5F_libver_t lows[] = {H5F_LIBVER_V110, H5F_LIBVER_V112, H5F_LIBVER_V114}, low = lows[below(3)];
    shape shapes[MOST];
    cow_staged staged[MOST];
    size_t waiting = 0;
    cow_native_bytes bytes;
    hid_t file, made, written;
    cow_virtual *virtual;
    cow_loc at;

    remove(NAME);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    made = make_group(file, "/made");
    written = make_group(file, "/written");
    at = (cow_loc){H5VLobject(written), H5I_GROUP};
    assert_non_null(virtual = open_in(file, low, type, false));
    assert_true(cow_native_file_bytes(H5VLobject(file), &bytes));
    shapes[0] = draw_shape();
    make_source(file, type, shapes[0].rank, "/source");
    for (size_t i = 0; i < count; i++) {
        while (i > 0 && (shapes[i] = draw_shape()).rank != shapes[0].rank)
            ;
        make_one(made, virtual, type, i, &shapes[i], &staged[waiting++]);
        if (below(8) == 0) {
            assert_int_equal(cow_staged_link(H5VLobject(file), &bytes, staged, waiting, at), 0);
            waiting = 0;
        }
    }
    assert_int_equal(cow_staged_link(H5VLobject(file), &bytes, staged, waiting, at), 0);
    cow_virtual_close(virtual);
    assert_true(H5Gclose(made) >= 0 && H5Gclose(written) >= 0);
    for (size_t i = 0; i < count; i += 1 + below(3))
        compare(file, type, i, &shapes[i]);
    assert_true(H5Fclose(file) >= 0);
    /* by HDF5 alone */
    assert_true((file = H5Fopen(NAME, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    for (size_t i = 0; i < count; i++)
        compare(file, type, i, &shapes[i]);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(NAME, H5F_ACC_RDWR, fapl)) >= 0);
    for (size_t i = 0; i < count; i++)
        use(file, i);
    assert_true(H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0 && H5Tclose(type) >= 0);
}

static void test_both_are_alike(void **state)
{
    void *context = NULL;

    (void)state;
    assert_true(cow_library_enter(&context) >= 0); /* as in the connector's functions */
    for (int i = 0; i < ROUNDS; i++)
        run_round();
    assert_true(cow_library_leave(context) >= 0);
    remove(NAME);
}

/* What is not as easily told is HDF5's. */
static void test_what_hdf5_makes(void **state)
{
    const hid_t fapl = journal_list();
    hid_t file, fcpl, string = H5Tcopy(H5T_C_S1), compound = H5Tcreate(H5T_COMPOUND, 8),
                      dcpl = H5Pcreate(H5P_DATASET_CREATE);
    const uint64_t zero = 0, one = 1;
    uint64_t address;
    const hsize_t extent = 1;
    cow_box_list box = {.rank = 1};
    cow_virtual *virtual;
    void *context = NULL;

    (void)state;
    assert_true(cow_library_enter(&context) >= 0);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    assert_true(H5Tset_size(string, H5T_VARIABLE) >= 0 && H5Tinsert(compound, "a", 0, H5T_STD_I64LE) >= 0);
    assert_null(open_in(file, H5F_LIBVER_V110, string, false));
    assert_null(open_in(file, H5F_LIBVER_V110, compound, false));
    assert_null(open_in(file, H5F_LIBVER_V110, H5T_STD_REF_OBJ, false));
    assert_null(open_in(file, H5F_LIBVER_V110, H5T_STD_I32LE, true));
    assert_non_null(virtual = open_in(file, H5F_LIBVER_V110, H5T_STD_I32LE, false));
    cow_virtual_begin(virtual);
    assert_int_equal(cow_virtual_put(virtual, 1, &extent, NULL, dcpl, &address), 0);
    assert_int_equal(cow_box_list_add(&box, &zero, &one), 0);
    assert_int_equal(cow_virtual_map(virtual, &box, "/source", NULL), 0);
    assert_true(H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED) >= 0);
    assert_int_equal(cow_virtual_put(virtual, 1, &extent, NULL, dcpl, &address), 0);
    cow_box_list_free(&box);
    cow_virtual_close(virtual);
    assert_true(H5Tclose(string) >= 0 && H5Tclose(compound) >= 0 && H5Pclose(dcpl) >= 0);
    assert_true(H5Fclose(file) >= 0);
    remove(NAME);
    assert_true((fcpl = H5Pcreate(H5P_FILE_CREATE)) >= 0 && H5Pset_shared_mesg_nindexes(fcpl, 1) >= 0 &&
                H5Pset_shared_mesg_index(fcpl, 0, H5O_SHMESG_ALL_FLAG, 50) >= 0);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, fcpl, fapl)) >= 0 && H5Pclose(fcpl) >= 0);
    assert_null(open_in(file, H5F_LIBVER_V110, H5T_STD_I32LE, false));
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0); /* without a journal */
    assert_null(open_in(file, H5F_LIBVER_V110, H5T_STD_I32LE, false));
    assert_true(H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    assert_true(!cow_error_pending());
    assert_true(cow_library_leave(context) >= 0);
    remove(NAME);
}

/* A dataset that gets its link as H5Dcreate would make it, or not, where HDF5 would not. */
static void test_link_of_its_own(void **state)
{
    const hid_t fapl = journal_list();
    const hsize_t extent[2] = {7, 5}, maximum[2] = {H5S_UNLIMITED, 5};
    const struct {
        const char *to;
        int made;
    } ways[] = {{"x", 1}, {"x", 0}, {"/g/y", 1}, {"g/z", 1}, {"none/z", 0}, {"x/z", 0}};
    hid_t file, group, dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset, space = H5I_INVALID_HID;
    hsize_t is[2], most[2];
    H5VL_loc_params_t loc = {.type = H5VL_OBJECT_BY_SELF, .obj_type = H5I_FILE};
    H5O_info2_t info;
    H5L_info2_t link;
    cow_native_bytes bytes;
    uint64_t address;
    void *context = NULL;

    (void)state;
    assert_true(cow_library_enter(&context) >= 0);
    remove(NAME);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    group = make_group(file, "/g");
    assert_true(cow_native_file_bytes(H5VLobject(file), &bytes));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        cow_virtual *virtual = open_in(file, H5F_LIBVER_V110, H5T_STD_I32LE, false);

        assert_non_null(virtual);
        cow_virtual_begin(virtual);
        assert_int_equal(cow_virtual_map(virtual, NULL, "/source", NULL), 0);
        assert_int_equal(cow_virtual_put(virtual, 2, extent, maximum, dcpl, &address), 1);
        assert_int_equal(cow_staged_link_to(H5VLobject(file), &bytes, address, H5VLobject(file), &loc, ways[i].to,
                                            H5P_LINK_CREATE_DEFAULT),
                         ways[i].made);
        cow_virtual_close(virtual);
        assert_true(!cow_error_pending() && H5Eget_num(H5E_DEFAULT) == 0);
        if (!ways[i].made)
            continue;
        assert_true(H5Oget_info_by_name3(file, ways[i].to, &info, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT) >=
                        0 &&
                    H5Lget_info2(file, ways[i].to, &link, H5P_DEFAULT) >= 0);
        assert_true(info.type == H5O_TYPE_DATASET && info.rc == 1 && info.num_attrs == 0 &&
                    memcmp(&info.token, &link.u.token, sizeof info.token) == 0 && address != 0);
        assert_true((dataset = H5Dopen2(file, ways[i].to, H5P_DEFAULT)) >= 0 && (space = H5Dget_space(dataset)) >= 0 &&
                    H5Sget_simple_extent_dims(space, is, most) == 2);
        assert_true(is[0] == 7 && is[1] == 5 && most[0] == H5S_UNLIMITED && most[1] == 5);
        assert_true(H5Sclose(space) >= 0 && H5Dclose(dataset) >= 0);
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].made)
            assert_true(H5Ldelete(file, ways[i].to, H5P_DEFAULT) >= 0);
    assert_true(H5Gclose(group) >= 0 && H5Pclose(dcpl) >= 0 && H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    assert_true(cow_library_leave(context) >= 0);
    remove(NAME);
}

static int begin(void **state)
{
    (void)state;
    dice = test_seed();
    return 0;
}

/* A group that is bytes, with as many links as a part of the views may have: HDF5 finds, deletes and adds links in it as in its own. */
static void test_group_of_links(void **state)
{
    const hid_t fapl = journal_list();
    const size_t count = 1 + below(COW_STAGED_MOST);
    bool there[COW_STAGED_MOST + 40] = {false};
    cow_staged list[COW_STAGED_MOST], part = {.name = "part"};
    cow_native_bytes bytes;
    hid_t file, group;
    H5G_info_t info;
    size_t links;
    void *context = NULL;
    char name[32];

    (void)state;
    assert_true(cow_library_enter(&context) >= 0);
    remove(NAME);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    assert_true(cow_native_file_bytes(H5VLobject(file), &bytes));
    for (size_t i = 0; i < count; i++) {
        snprintf(list[i].name, sizeof list[i].name, "%zx", i * 17);
        there[i] = true;
        assert_int_equal(cow_staged_group(&bytes, NULL, 0, &list[i].address), 0);
    }
    assert_int_equal(cow_staged_group(&bytes, list, count, &part.address), 0);
    assert_int_equal(cow_staged_link(H5VLobject(file), &bytes, &part, 1, (cow_loc){H5VLobject(file), H5I_FILE}), 0);
    assert_true((group = H5Gopen2(file, "part", H5P_DEFAULT)) >= 0);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
            if (below(3) != 0)
                continue;
            snprintf(name, sizeof name, "%zx", i * 17);
            if (there[i])
                assert_true(H5Ldelete(group, name, H5P_DEFAULT) >= 0);
            else
                assert_true(H5Gclose(H5Gcreate2(group, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
            there[i] = !there[i];
        }
        assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        /* by HDF5 alone, and then once more with ours */
        assert_true(
            (file = H5Fopen(NAME, round == 0 ? H5F_ACC_RDWR : H5F_ACC_RDONLY, round == 0 ? fapl : H5P_DEFAULT)) >= 0);
        assert_true((group = H5Gopen2(file, "part", H5P_DEFAULT)) >= 0);
        links = 0;
        for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
            snprintf(name, sizeof name, "%zx", i * 17);
            assert_int_equal(H5Lexists(group, name, H5P_DEFAULT), there[i]);
            links += there[i];
            if (there[i])
                assert_true(H5Gclose(H5Gopen2(group, name, H5P_DEFAULT)) >= 0);
        }
        assert_true(H5Gget_info(group, &info) >= 0);
        assert_int_equal(info.nlinks, links);
    }
    assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    assert_true(cow_library_leave(context) >= 0);
    remove(NAME);
}

/* The same of a small group, some links of which are kept: HDF5 goes on with it as with its own, up to many links and attributes. */
static void test_group_of_kept_links(void **state)
{
    const hid_t fapl = journal_list(), scalar = H5Screate(H5S_SCALAR);
    cow_staged part = {.name = "part"};
    cow_small_group small = {0};
    bool there[60] = {false};
    cow_small_link link[COW_HEADER_LINKS];
    cow_native_bytes bytes;
    size_t names = 0, kept = 0;
    hid_t file, group, attribute;
    char name[60][300];
    void *context = NULL;
    H5G_info_t info;

    (void)state;
    assert_true(cow_library_enter(&context) >= 0);
    remove(NAME);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    assert_true(cow_native_file_bytes(H5VLobject(file), &bytes));
    for (size_t i = 0; i < 60; i++) {
        memset(name[i], 'n', sizeof name[i]);
        snprintf(name[i] + below(280), 12, "%zu", i);
    }
    small = (cow_small_group){.link = link, .count = below(below(2) ? 9 : COW_HEADER_LINKS + 1), .times = below(2)};
    for (size_t i = 0; i < small.count; i++) {
        link[i] = (cow_small_link){.name = name[i], .kept = there[i] = below(4) > 0};
        names += strlen(name[i]);
        kept += link[i].kept;
        assert_int_equal(cow_staged_group(&bytes, NULL, 0, &link[i].address), 0);
    }
    assert_int_equal(cow_small_group_write(&bytes, &small, below(4), names, &part.address), 0);
    assert_int_equal(cow_staged_link(H5VLobject(file), &bytes, &part, 1, (cow_loc){H5VLobject(file), H5I_FILE}), 0);
    assert_true((group = H5Gopen2(file, "part", H5P_DEFAULT)) >= 0);
    assert_true(H5Gget_info(group, &info) >= 0);
    assert_int_equal(info.nlinks, kept);
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < (round == 0 ? 10 : 60); i++) {
            if (below(3) != 0)
                continue;
            if (there[i])
                assert_true(H5Ldelete(group, name[i], H5P_DEFAULT) >= 0);
            else
                assert_true(H5Gclose(H5Gcreate2(group, name[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
            there[i] = !there[i];
        }
        if (below(2))
            assert_true(
                (attribute = H5Acreate2(group, name[round], H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT)) >= 0 &&
                H5Aclose(attribute) >= 0);
        assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        /* by HDF5 alone, and then with ours */
        assert_true((file = H5Fopen(NAME, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true((group = H5Gopen2(file, "part", H5P_DEFAULT)) >= 0);
        kept = 0;
        for (size_t i = 0; i < 60; i++) {
            assert_int_equal(H5Lexists(group, name[i], H5P_DEFAULT), there[i]);
            kept += there[i];
            if (there[i])
                assert_true(H5Gclose(H5Gopen2(group, name[i], H5P_DEFAULT)) >= 0);
        }
        assert_true(H5Gget_info(group, &info) >= 0);
        assert_int_equal(info.nlinks, kept);
        assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(NAME, H5F_ACC_RDWR, fapl)) >= 0);
        assert_true((group = H5Gopen2(file, "part", H5P_DEFAULT)) >= 0);
    }
    assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0 && H5Sclose(scalar) >= 0);
    assert_true(cow_library_leave(context) >= 0);
    remove(NAME);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_are_alike), cmocka_unit_test(test_what_hdf5_makes),
                                       cmocka_unit_test(test_link_of_its_own), cmocka_unit_test(test_group_of_links),
                                       cmocka_unit_test(test_group_of_kept_links)};

    return test_main(tests, argc, argv, begin, NULL);
}
