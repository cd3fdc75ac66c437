/* H5Ocopy: within a file, between files with history, out of plain files and versions. Random copies are in the
 * differential test. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"
#include "whole.h"

#include <stdlib.h>
#include <string.h>

#define COW    "test_copies_cow.h5"
#define NATIVE "test_copies_native.h5"
#define OTHER  "test_copies_other.h5"

/* ---- copies ---- */

#define NUMBERS (1 << 20) /* 4 MiB that no filter makes smaller */

static void test_copy_within_a_file_costs_no_chunk_data(void **state)
{
    long long before, after;
    hid_t file;
    (void)state;

    remove(COW);
    file = create_file(COW, H5P_DEFAULT);
    write_numbers(file, "x", NUMBERS, 16384, 1);
    assert_true(H5Fclose(file) >= 0);
    before = size_of(COW);
    file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT);
    for (int i = 0; i < 10; i++) {
        char name[20];

        snprintf(name, sizeof name, "copy %d", i);
        assert_true(H5Ocopy(file, i == 0 ? "x" : "copy 0", file, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    }
    assert_true(H5Fclose(file) >= 0);
    after = size_of(COW);
    assert_true(before > 4 * NUMBERS && after - before < 4 * NUMBERS / 10);
    /* and they are copies: writing one leaves the others alone */
    file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT);
    write_numbers(file, "copy 3", NUMBERS, 16384, 2);
    assert_true(H5Fclose(file) >= 0);
    for (int version = 2; version <= 3; version++) {
        char name[60];
        hid_t twin = create_file(NATIVE, native_fapl);

        write_numbers(twin, "x", NUMBERS, 16384, 1);
        for (int i = 0; i < 10; i++) {
            snprintf(name, sizeof name, "copy %d", i);
            write_numbers(twin, name, NUMBERS, 16384, i == 3 && version == 3 ? 2 : 1);
        }
        assert_true(H5Fclose(twin) >= 0);
        snprintf(name, sizeof name, COW "@%d", version);
        same_files(name, NATIVE, name, H5P_DEFAULT);
    }
}

static void test_copy_into_another_file_with_history_is_deduplicated(void **state)
{
    long long before;
    hid_t from, to;
    (void)state;

    remove(COW);
    remove(OTHER);
    from = create_file(COW, H5P_DEFAULT);
    write_numbers(from, "x", NUMBERS, 16384, 1);
    assert_true(H5Fclose(from) >= 0);
    assert_true((from = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    to = create_file(OTHER, H5P_DEFAULT);
    assert_true(H5Ocopy(from, "x", to, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(to) >= 0);
    before = size_of(OTHER);
    assert_true((to = H5Fopen(OTHER, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    assert_true(H5Ocopy(from, "x", to, "again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(to) >= 0 && H5Fclose(from) >= 0);
    assert_true(before > 4 * NUMBERS && size_of(OTHER) - before < 4 * NUMBERS / 10);
    to = create_file(NATIVE, native_fapl);
    write_numbers(to, "x", NUMBERS, 16384, 1);
    write_numbers(to, "again", NUMBERS, 16384, 1);
    assert_true(H5Fclose(to) >= 0);
    same_files("both copies", NATIVE, OTHER, H5P_DEFAULT);
}

/* ---- files that keep filters and fill values once for all objects ---- */

static hid_t file_that_shares(const char *name, hid_t fapl)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), file;

    assert_true(H5Pset_shared_mesg_nindexes(fcpl, 1) >= 0 &&
                H5Pset_shared_mesg_index(fcpl, 0, H5O_SHMESG_FILL_FLAG | H5O_SHMESG_PLINE_FLAG, 1) >= 0);
    remove(name);
    assert_true((file = H5Fcreate(name, H5F_ACC_TRUNC, fcpl, fapl)) >= 0 && H5Pclose(fcpl) >= 0);
    return file;
}

/* Also tiny ones, which HDF5 keeps itself. */
static void fill_that_shares(hid_t file)
{
    int fill = 9, values[3000];
    char name[20];

    for (int i = 0; i < 3000; i++)
        values[i] = i;
    for (int i = 0; i < 8; i++) {
        hsize_t extent = i % 3 == 0 ? 100 : 3000, chunk = 70;
        hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &extent, NULL), set;

        snprintf(name, sizeof name, "%d", i);
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Pset_shuffle(dcpl) >= 0 && H5Pset_deflate(dcpl, 4) >= 0 &&
                    H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &fill) >= 0);
        set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        assert_true(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                    H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Pclose(dcpl) >= 0);
    }
}

/* HDF5 gives out creation properties that lead to such a place in their own file. */
static void test_copies_out_of_a_file_that_shares_filters_and_fill_values(void **state)
{
    const hid_t from_fapl[] = {H5P_DEFAULT, native_fapl, H5P_DEFAULT},
                to_fapl[] = {H5P_DEFAULT, H5P_DEFAULT, native_fapl};
    hid_t from, to;
    (void)state;

    to = create_file(NATIVE, native_fapl);
    fill_that_shares(to);
    assert_true(H5Fclose(to) >= 0);
    for (size_t i = 0; i < COUNT(from_fapl); i++) {
        from = file_that_shares(COW, from_fapl[i]);
        fill_that_shares(from);
        assert_true(H5Fclose(from) >= 0 && (from = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        remove(OTHER);
        assert_true(H5Fclose(create_file(OTHER, to_fapl[i])) >= 0 &&
                    (to = H5Fopen(OTHER, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        for (int k = 0; k < 8; k++) {
            char name[20];

            snprintf(name, sizeof name, "%d", k);
            assert_true(H5Ocopy(from, name, to, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        }
        assert_true(H5Fclose(to) >= 0 && H5Fclose(from) >= 0);
        same_files("copies", NATIVE, OTHER, H5P_DEFAULT);
    }
}

/* HDF5 1.14.5 itself cannot open a second group with these filters: versions do without them. */
static void test_versions_of_a_group_with_shared_filters(void **state)
{
    hid_t file = file_that_shares(COW, H5P_DEFAULT), gcpl = H5Pcreate(H5P_GROUP_CREATE), group;
    H5G_info_t info;
    (void)state;

    assert_true(H5Pset_deflate(gcpl, 6) >= 0 && H5Pset_link_phase_change(gcpl, 2, 1) >= 0);
    assert_true((group = H5Gcreate2(file, "g", H5P_DEFAULT, gcpl, H5P_DEFAULT)) >= 0);
    fill_that_shares(group);
    assert_true(H5Gclose(group) >= 0 && H5Pclose(gcpl) >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    assert_true(H5Ldelete(file, "g/3", H5P_DEFAULT) >= 0 && H5Fclose(file) >= 0);
    for (int version = 1; version <= 2; version++) {
        char name[40];

        snprintf(name, sizeof name, COW "@%d", version);
        assert_true((file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true(H5Gget_info_by_name(file, "g", &info, H5P_DEFAULT) >= 0 && info.nlinks == (hsize_t)(9 - version));
        assert_true(H5Lexists(file, "g/7", H5P_DEFAULT) > 0 && H5Fclose(file) >= 0);
    }
}

/* ---- what is stored, and how ---- */

/* A version has the chunks that are stored, and no others. */
static void test_version_of_a_sparse_copy_is_sparse(void **state)
{
    const hsize_t extent = 1 << 22, chunk = 1 << 14, at[2] = {5, (1 << 21) + 7}, one = 1;
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &extent, NULL),
          memory = H5Screate_simple(1, &one, NULL), from, file, set;
    double value = 42;
    hsize_t chunks = 0;
    (void)state;

    remove(COW);
    remove(OTHER);
    H5Pset_chunk(dcpl, 1, &chunk);
    assert_true((from = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    assert_true((set = H5Dcreate2(from, "x", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    for (int i = 0; i < 2; i++) {
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at[i], NULL, &one, NULL) >= 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value) >= 0);
    }
    assert_true(H5Dclose(set) >= 0 && H5Fclose(from) >= 0);
    file = create_file(COW, H5P_DEFAULT);
    assert_true((from = H5Fopen(OTHER, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Ocopy(from, "x", file, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(from) >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true((set = H5Dopen2(file, "x", H5P_DEFAULT)) >= 0);
    assert_true(H5Dget_num_chunks(set, H5S_ALL, &chunks) >= 0 && chunks == 2);
    for (int i = 0; i < 2; i++) {
        value = 0;
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &at[i], NULL, &one, NULL) >= 0);
        assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value) >= 0 && value == 42);
    }
    assert_true(H5Dclose(set) >= 0 && H5Fclose(file) >= 0);
    assert_true(size_of(COW) < 2 << 20);
    H5Sclose(memory);
    H5Sclose(space);
    H5Pclose(dcpl);
    remove(COW);
    remove(OTHER);
}

/* HDF5 lets a chunk be larger than a maximum only while the extent is 0. */
static void test_copy_of_chunks_larger_than_the_maximum(void **state)
{
    static const int numbers[3] = {1, 2, 3};
    hsize_t none = 0, most = 4, chunk = 16, some = 3;
    (void)state;

    for (int k = 0; k < 2; k++) {
        hid_t from, to, set, space = H5Screate_simple(1, &none, &most), dcpl = H5Pcreate(H5P_DATASET_CREATE);
        int got[3] = {0};

        remove(COW);
        remove(OTHER);
        from = create_file(COW, H5P_DEFAULT);
        to = create_file(OTHER, k ? H5P_DEFAULT : native_fapl);
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
        assert_true((set = H5Dcreate2(from, "x", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
        assert_true(H5Dset_extent(set, &some) >= 0);
        assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        assert_true(H5Dclose(set) >= 0 && H5Fclose(to) >= 0);
        assert_true((to = H5Fopen(OTHER, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0); /* plain, through the connector */
        assert_true(H5Ocopy(from, "x", to, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true((set = H5Dopen2(to, "x", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
        assert_true(memcmp(got, numbers, sizeof got) == 0);
        assert_true(H5Dclose(set) >= 0 && H5Fclose(to) >= 0 && H5Fclose(from) >= 0);
        assert_true(H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
    }
    remove(COW);
    remove(OTHER);
}

/* ---- named types ---- */

/* A group with an attribute and two datasets, a versioned one and one that HDF5 keeps, all of one named type. */
static void make_of_named_type(hid_t file)
{
    hsize_t n = 4000;
    int value = 7, values[4000];
    hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), type = H5Tcopy(H5T_NATIVE_INT),
          scalar = H5Screate(H5S_SCALAR), simple = H5Screate_simple(1, &n, NULL), made;

    for (int i = 0; i < 4000; i++)
        values[i] = i * 3;
    assert_true(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    made = H5Acreate2(group, "a", type, scalar, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(made, type, &value) >= 0 && H5Aclose(made) >= 0);
    made = H5Dcreate2(group, "scalar", type, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0 && H5Dclose(made) >= 0);
    made = H5Dcreate2(group, "numbers", type, simple, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(made, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(made) >= 0);
    H5Sclose(simple);
    H5Sclose(scalar);
    H5Tclose(type);
    H5Gclose(group);
}

static void look_at_named_types(hid_t file)
{
    static const char *const names[] = {"g/scalar", "g/numbers"};
    int values[4000];
    hid_t opened = H5Aopen_by_name(file, "g", "a", H5P_DEFAULT, H5P_DEFAULT);

    assert_true(opened >= 0 && H5Aread(opened, H5T_NATIVE_INT, values) >= 0 && values[0] == 7 && H5Aclose(opened) >= 0);
    for (int i = 0; i < 2; i++) {
        opened = H5Dopen2(file, names[i], H5P_DEFAULT);
        assert_true(opened >= 0 && H5Dread(opened, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dclose(opened) >= 0);
    }
}

/* HDF5 1.14.5 itself crashes, or copies out of another file, where the handle that a message with a named type was read
 * by is closed; with versions that is every day's work. */
static void test_copy_after_another_opening_was_closed(void **state)
{
    static const char *const others[] = {COW, COW "@1"};
    hid_t plain;
    (void)state;

    remove(COW);
    plain = H5Fcreate(NATIVE, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl);
    assert_true(plain >= 0 && H5Fclose(plain) >= 0);
    hid_t file = create_file(COW, H5P_DEFAULT);
    make_of_named_type(file);
    assert_true(H5Fclose(file) >= 0);
    for (int degree = H5F_CLOSE_WEAK; degree <= H5F_CLOSE_STRONG; degree++)
        for (int other = 0; other < 2; other++) {
            hid_t fapl = with_degree(degree, false), second, groups[2];
            char copy[40], out[40];

            snprintf(copy, sizeof copy, "copy %d %d", degree, other);
            snprintf(out, sizeof out, "copy of version %d %d", degree, other);
            file = H5Fopen(COW, H5F_ACC_RDWR, fapl);
            second = H5Fopen(others[other], other == 0 ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl);
            assert_true(file >= 0 && second >= 0);
            look_at_named_types(second);
            assert_true(H5Fclose(second) >= 0);
            plain = H5Fopen(NATIVE, H5F_ACC_RDONLY, native_fapl); /* in the memory of the one that was closed */
            assert_true(H5Ocopy(file, "g", file, copy, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(plain >= 0 && H5Fclose(plain) >= 0);
            second = H5Fopen(COW "@1", H5F_ACC_RDONLY, fapl);
            assert_true(second >= 0 && H5Ocopy(second, "g", file, out, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Fclose(second) >= 0);
            for (int i = 0; i < 2; i++) {
                groups[0] = H5Gopen2(file, "g", H5P_DEFAULT);
                groups[1] = H5Gopen2(file, i == 0 ? copy : out, H5P_DEFAULT);
                assert_true(groups[0] >= 0 && groups[1] >= 0);
                same_tree("copy", REACHED_HEAD, groups[0], groups[1]);
                assert_true(H5Gclose(groups[0]) >= 0 && H5Gclose(groups[1]) >= 0);
            }
            assert_true(H5Fclose(file) >= 0);
            H5Pclose(fapl);
        }
}

/* ---- out of plain files ---- */

static hid_t new_format(void)
{
    hid_t fapl = H5Pcopy(native_fapl);

    assert_true(H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    return fapl;
}

static void put(hid_t group, const char *name, hid_t type, int rank, const hsize_t extent[], const hsize_t most[],
                const hsize_t chunk[], const void *values)
{
    hid_t space = rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, extent, most),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), set;

    if (chunk != NULL)
        assert_true(H5Pset_chunk(dcpl, rank, chunk) >= 0 && H5Pset_deflate(dcpl, 1) >= 0);
    set = H5Dcreate2(group, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(set) >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
}

/* Of every kind that H5Dcreate versions, and some that it does not. */
static void make_plain(bool ordered)
{
    static int squares[130 * 70];
    static char *texts[3000];
    static hobj_ref_t references[3000];
    const hsize_t plane[2] = {130, 70}, tile[2] = {32, 64}, wide[2] = {130, H5S_UNLIMITED},
                  all[2] = {H5S_UNLIMITED, H5S_UNLIMITED}, line = 3000, piece = 100;
    hid_t fapl = new_format(), gcpl = H5Pcreate(H5P_GROUP_CREATE), file = create_file(OTHER, fapl), group, below, text,
          named;
    int seven = 7;

    for (int i = 0; i < 130 * 70; i++)
        squares[i] = i * i;
    if (ordered)
        assert_true(H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0);
    group = H5Gcreate2(file, "g", H5P_DEFAULT, gcpl, H5P_DEFAULT);
    below = H5Gcreate2(group, "below", H5P_DEFAULT, gcpl, H5P_DEFAULT);
    write_numbers(below, "numbers", NUMBERS, 16384, 1);
    put(group, "contiguous", H5T_NATIVE_INT, 2, plane, NULL, NULL, squares);
    put(group, "tiles", H5T_NATIVE_INT, 2, plane, all, tile, squares);
    /* beside the group, for what HDF5's calls say of its chunks is wrong */
    put(file, "wide", H5T_NATIVE_INT, 2, plane, wide, tile, squares);
    put(group, "scalar", H5T_NATIVE_INT, 0, NULL, NULL, NULL, &seven);
    text = H5Tcopy(H5T_C_S1);
    assert_true(H5Tset_size(text, H5T_VARIABLE) >= 0);
    for (int i = 0; i < 3000; i++) {
        texts[i] = i % 2 ? "odd" : "not so";
        assert_true(i > 0 || H5Rcreate(&references[0], group, "tiles", H5R_OBJECT, -1) >= 0);
        references[i] = references[0];
    }
    put(group, "texts", text, 1, &line, NULL, &piece, texts);
    put(group, "references", H5T_STD_REF_OBJ, 1, &line, NULL, &piece, references);
    named = H5Tcopy(H5T_NATIVE_INT);
    assert_true(H5Tcommit2(group, "type", named, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    put(below, "of named type", named, 1, &line, NULL, &piece, squares);
    assert_true(H5Lcreate_hard(group, "tiles", below, "same tiles", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_hard(group, ".", below, "back", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_soft("/g/tiles", below, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Oset_comment_by_name(group, "tiles", "a comment", H5P_DEFAULT) >= 0);
    H5Tclose(named);
    H5Tclose(text);
    assert_true(H5Gclose(below) >= 0 && H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
    H5Pclose(gcpl);
    H5Pclose(fapl);
}

/* HDF5 1.14.5 alone makes a header here that it cannot read again. */
static void test_null_messages_are_not_kept_in_plain_files(void **state)
{
    hid_t latest = H5Pcopy(native_fapl), how = H5Pcreate(H5P_OBJECT_COPY), file, type = H5Tcopy(H5T_STD_REF_OBJ);
    (void)state;

    assert_true(H5Pset_libver_bounds(latest, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    assert_true((file = H5Fcreate(NATIVE, H5F_ACC_TRUNC, H5P_DEFAULT, latest)) >= 0);
    assert_true(H5Tcommit2(file, "type", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_hard(file, "type", file, "link", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Tclose(type) >= 0 && H5Fclose(file) >= 0);
    assert_true(H5Pset_copy_object(how, H5O_COPY_PRESERVE_NULL_FLAG) >= 0);
    assert_true((file = H5Fopen(NATIVE, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0); /* through the connector */
    assert_true(H5Ocopy(file, "type", file, "copy", how, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(NATIVE, H5F_ACC_RDONLY, native_fapl)) >= 0);
    type = H5Topen2(file, "copy", H5P_DEFAULT);
    assert_true(type >= 0 && H5Tequal(type, H5T_STD_REF_OBJ) > 0 && H5Tclose(type) >= 0);
    assert_true(H5Fclose(file) >= 0 && H5Pclose(how) >= 0 && H5Pclose(latest) >= 0);
}

static hid_t open_plain(bool native)
{
    hid_t file = H5Fopen(OTHER, H5F_ACC_RDONLY, native ? native_fapl : H5P_DEFAULT);

    assert_true(file >= 0);
    return file;
}

/* HDF5 1.14.5 lists its chunks at the places of others (H5D__earray_idx_iterate_cb). */
static void copy_wide(hid_t ocpypl)
{
    static int values[2][130 * 70];
    hid_t from = open_plain(false), to = create_file("test_copies_wide.h5", H5P_DEFAULT), set[2];

    assert_true(H5Ocopy(from, "wide", to, "wide", ocpypl, H5P_DEFAULT) >= 0);
    set[0] = H5Dopen2(from, "wide", H5P_DEFAULT);
    set[1] = H5Dopen2(to, "wide", H5P_DEFAULT);
    for (int i = 0; i < 2; i++)
        assert_true(H5Dread(set[i], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values[i]) >= 0 &&
                    H5Dclose(set[i]) >= 0);
    assert_true(values[0][130 * 70 - 1] != 0 && memcmp(values[0], values[1], sizeof values[0]) == 0);
    assert_true(H5Fclose(from) >= 0 && H5Fclose(to) >= 0);
    remove("test_copies_wide.h5");
}

/* HDF5 1.14.5 forgets that an object has no link yet when its metadata cache evicts the header; a copy has none at first. */
static void test_copies_into_a_plain_file_with_a_small_metadata_cache(void **state)
{
    static const char *const names[] = {"below", "type", "tiles", "scalar", "contiguous"},
                             *const sources[] = {COW, COW "@1"}, *const target = "test_copies_to.h5";
    H5AC_cache_config_t config = {.version = H5AC__CURR_CACHE_CONFIG_VERSION}, told = config;
    hid_t small, fapl = new_format(), from, to;
    (void)state;

    remove(COW);
    make_plain(false);
    to = create_file(COW, H5P_DEFAULT);
    from = open_plain(false);
    assert_true(H5Ocopy(from, "g", to, "g", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(from) >= 0 && H5Fclose(to) >= 0);
    assert_true((small = H5Pcreate(H5P_FILE_ACCESS)) >= 0 && H5Pget_mdc_config(small, &config) >= 0);
    assert_true(H5Pset_libver_bounds(small, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0);
    config.set_initial_size = true;
    config.initial_size = config.min_size = config.max_size = 1024;
    assert_true(H5Pset_mdc_config(small, &config) >= 0);
    for (int k = 0; k < 2; k++) {
        for (int side = 0; side < 2; side++) {
            bool native = side == 0;
            const char *name = native ? NATIVE : target;

            assert_true(H5Fclose(create_file(name, fapl)) >= 0);
            from = H5Fopen(native ? OTHER : sources[k], H5F_ACC_RDONLY, native ? native_fapl : H5P_DEFAULT);
            assert_true(from >= 0 && (to = H5Fopen(name, H5F_ACC_RDWR, native ? fapl : small)) >= 0);
            assert_true(H5Ocopy(from, "g", to, "g", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                char path[20];

                snprintf(path, sizeof path, "g/%s", names[i]);
                assert_true(H5Ocopy(from, path, to, names[i], H5P_DEFAULT, H5P_DEFAULT) >= 0);
            }
            assert_true(native ||
                        (H5Fget_mdc_config(to, &told) >= 0 && told.min_size == 1024 && told.max_size == 1024));
            assert_true(H5Fclose(to) >= 0 && H5Fclose(from) >= 0);
        }
        same_files(sources[k], NATIVE, target, native_fapl);
    }
    remove(target);
    H5Pclose(small);
    H5Pclose(fapl);
}

static void test_copies_out_of_a_plain_file_are_versioned(void **state)
{
    const char *const names[] = {COW, NATIVE};
    long long once, twice;
    int minus = -1;
    (void)state;

    for (int ordered = 0; ordered < 2; ordered++)
        for (int expand = 0; expand < 2; expand++) {
            hid_t ocpypl = H5Pcreate(H5P_OBJECT_COPY), fapl = new_format(), from, to, set, space, memory;
            const hsize_t one[2] = {1, 1}, at[2] = {129, 69};

            remove(COW);
            make_plain(ordered);
            if (expand) /* elements are then taken from HDF5's own copy */
                assert_true(H5Pset_copy_object(ocpypl, H5O_COPY_EXPAND_EXT_LINK_FLAG) >= 0);
            for (int side = 0; side < 2; side++) {
                to = create_file(names[side], side == 0 ? H5P_DEFAULT : fapl);
                from = open_plain(side == 1);
                assert_true(H5Ocopy(from, "g", to, "g", ocpypl, H5P_DEFAULT) >= 0);
                assert_true(H5Fclose(from) >= 0 && H5Fclose(to) >= 0);
            }
            copy_wide(ocpypl);
            same_files("head", NATIVE, COW, H5P_DEFAULT);
            same_files("version 1", NATIVE, COW "@1", H5P_DEFAULT);
            once = size_of(COW);
            assert_true(once < size_of(OTHER) + (512 << 10)); /* HDF5's own copy has given its room back */
            to = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT);
            from = open_plain(false);
            assert_true(H5Ocopy(from, "g", to, "again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            assert_true(H5Fclose(from) >= 0 && H5Fclose(to) >= 0);
            twice = size_of(COW);
            /* the chunks are there already: what remains is the room of HDF5's own copy */
            assert_true(twice - once < size_of(OTHER) + (256 << 10));
            to = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT);
            memory = H5Screate_simple(2, one, NULL);
            set = H5Dopen2(to, "again/tiles", H5P_DEFAULT);
            space = H5Dget_space(set);
            assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, at, NULL, one, NULL) >= 0);
            assert_true(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, &minus) >= 0 && H5Dclose(set) >= 0);
            assert_true(H5Fclose(to) >= 0 && size_of(COW) - twice < 64 << 10);
            same_files("version 1 after changes", NATIVE, COW "@1", H5P_DEFAULT);
            H5Sclose(space);
            H5Sclose(memory);
            H5Pclose(fapl);
            H5Pclose(ocpypl);
        }
}

static size_t invert(unsigned flags, size_t count, const unsigned values[], size_t size, size_t *room, void **buffer)
{
    unsigned char *bytes = *buffer;

    (void)flags, (void)count, (void)values, (void)room;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)~bytes[i];
    return size;
}

/* HDF5 copies stored chunks blindly. We would store what nobody can read. */
static void test_copy_of_chunks_that_cannot_be_read_fails_and_leaves_nothing(void **state)
{
    static const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 310, 1, 1, "inverting", NULL, NULL, invert};
    static int numbers[10000];
    const hsize_t n = 10000, chunk = 1000, zero = 0;
    (void)state;

    for (int damaged = 0; damaged < 2; damaged++) {
        hid_t space = H5Screate_simple(1, &n, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), from, to, set;

        remove(COW);
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
        assert_true(damaged ? H5Pset_deflate(dcpl, 1) >= 0
                            : H5Zregister(&filter) >= 0 && H5Pset_filter(dcpl, 310, 0, 0, NULL) >= 0);
        from = create_file(OTHER, native_fapl);
        write_numbers(from, "before", 5000, 500, 1);
        assert_true(H5Gclose(H5Gcreate2(from, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        assert_true(H5Lcreate_hard(from, "before", from, "g/a", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        set = H5Dcreate2(from, "g/b", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers) >= 0);
        if (damaged)
            assert_true(H5Dwrite_chunk(set, H5P_DEFAULT, 0, &zero, 100, numbers) >= 0);
        assert_true(H5Dclose(set) >= 0 && H5Fclose(from) >= 0);
        if (!damaged)
            assert_true(H5Zunregister(310) >= 0);
        to = create_file(COW, H5P_DEFAULT);
        write_numbers(to, "before", 5000, 500, 1);
        from = open_plain(false);
        H5E_BEGIN_TRY
        {
            assert_true(H5Ocopy(from, "g", to, "g", H5P_DEFAULT, H5P_DEFAULT) < 0);
        }
        H5E_END_TRY
        assert_true(H5Lexists(to, "g", H5P_DEFAULT) == 0);
        assert_true(H5Ocopy(from, "g/a", to, "after", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Fclose(from) >= 0 && H5Fclose(to) >= 0);
        from = create_file(NATIVE, native_fapl);
        write_numbers(from, "before", 5000, 500, 1);
        write_numbers(from, "after", 5000, 500, 1);
        assert_true(H5Fclose(from) >= 0);
        same_files("without the copy", NATIVE, COW, H5P_DEFAULT);
        same_files("its version", NATIVE, COW "@1", H5P_DEFAULT);
        H5Pclose(dcpl);
        H5Sclose(space);
    }
}

/* What is mounted hides what HDF5 copies. */
static void test_copy_of_what_is_under_a_mount(void **state)
{
    const char *const names[] = {COW, NATIVE};
    hid_t file = create_file("test_copies_child.h5", native_fapl);
    (void)state;

    assert_true(H5Gclose(H5Gcreate2(file, "below", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    write_numbers(file, "below/numbers", NUMBERS / 2, 16384, 9);
    write_numbers(file, "tiles", 20, 10, 9);
    assert_true(H5Fclose(file) >= 0);
    remove(COW);
    for (int side = 0; side < 2; side++) {
        make_plain(false);
        hid_t fapl = side == 0 ? H5P_DEFAULT : native_fapl, to = create_file(names[side], fapl),
              from = H5Fopen(OTHER, H5F_ACC_RDWR, fapl), child = H5Fopen("test_copies_child.h5", H5F_ACC_RDWR, fapl);

        assert_true(from >= 0 && child >= 0 && H5Fmount(from, "g", child, H5P_DEFAULT) >= 0);
        assert_true(H5Ldelete(from, "wide", H5P_DEFAULT) >= 0);
        assert_true(H5Ocopy(from, "/", to, "all", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Ocopy(from, "g", to, "mounted", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Funmount(from, "g") >= 0 && H5Fclose(child) >= 0 && H5Fclose(from) >= 0 && H5Fclose(to) >= 0);
    }
    same_files("head", NATIVE, COW, H5P_DEFAULT);
    same_files("version 1", NATIVE, COW "@1", H5P_DEFAULT);
    remove("test_copies_child.h5");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy_within_a_file_costs_no_chunk_data),
        cmocka_unit_test(test_copy_into_another_file_with_history_is_deduplicated),
        cmocka_unit_test(test_version_of_a_sparse_copy_is_sparse),
        cmocka_unit_test(test_copy_of_chunks_larger_than_the_maximum),
        cmocka_unit_test(test_copy_after_another_opening_was_closed),
        cmocka_unit_test(test_copies_out_of_a_plain_file_are_versioned),
        cmocka_unit_test(test_copies_into_a_plain_file_with_a_small_metadata_cache),
        cmocka_unit_test(test_null_messages_are_not_kept_in_plain_files),
        cmocka_unit_test(test_copy_of_chunks_that_cannot_be_read_fails_and_leaves_nothing),
        cmocka_unit_test(test_copies_out_of_a_file_that_shares_filters_and_fill_values),
        cmocka_unit_test(test_versions_of_a_group_with_shared_filters),
        cmocka_unit_test(test_copy_of_what_is_under_a_mount),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(COW);
    remove(NATIVE);
    remove(OTHER);
    return status;
}
