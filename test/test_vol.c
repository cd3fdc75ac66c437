/* What h5_api_test skips or cannot know: flushing, chunk calls, storage size, comments, points in partial chunks,
 * user-defined links, the reserved group, error stacks, versions. Run with HDF5_VOL_CONNECTOR=h5cow.
 *
 * Where native HDF5 defines the answer, the same calls are made on a native file in the same process, and the answers
 * are compared; so nothing here has to know what HDF5 would say.
 */
#include "random.h"
#include "through.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RESERVED "_versioned_data"

static const char *const cow_file = "test_vol_cow.h5", *const native_file = "test_vol_native.h5";
/* A pair of files, one with and one without the connector, on which the same is done. */
typedef struct pair {
    hid_t file[2];
} pair;

static pair create_pair(hid_t fcpl)
{
    pair p;

    remove(cow_file);
    remove(native_file);
    p.file[0] = H5Fcreate(cow_file, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
    p.file[1] = H5Fcreate(native_file, H5F_ACC_TRUNC, fcpl, native_fapl);
    assert_true(p.file[0] >= 0 && p.file[1] >= 0);
    return p;
}

static void close_pair(pair p)
{
    assert_true(H5Fclose(p.file[0]) >= 0);
    assert_true(H5Fclose(p.file[1]) >= 0);
}

/* ---- errors ---- */

typedef struct stack_record {
    unsigned count;
    char lowest[512];
} stack_record;

static herr_t note_record(unsigned n, const H5E_error2_t *error, void *context)
{
    stack_record *record = context;

    if (n == 0)
        snprintf(record->lowest, sizeof record->lowest, "%s", error->desc);
    record->count++;
    return 0;
}

static void test_missing_file_keeps_errno_at_the_bottom_of_the_error_stack(void **state)
{
    stack_record records[2] = {0};
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t file, stack;
        H5E_BEGIN_TRY
        {
            file = H5Fopen("test_vol_missing.h5", H5F_ACC_RDONLY, i == 0 ? H5P_DEFAULT : native_fapl);
            stack = H5Eget_current_stack();
        }
        H5E_END_TRY
        assert_true(file < 0);
        H5Ewalk2(stack, H5E_WALK_UPWARD, note_record, &records[i]);
        H5Eclose_stack(stack);
    }
    assert_true(strcmp(records[0].lowest, records[1].lowest) == 0);
    assert_true(strstr(records[0].lowest, "errno = 2") != NULL);
    assert_true(records[0].count >= 5);
}

static void test_failed_create_keeps_errno_at_the_bottom_of_the_error_stack(void **state)
{
    stack_record record = {0};
    hid_t file, stack;
    (void)state;

    H5E_BEGIN_TRY
    {
        file = H5Fcreate("test_vol_no_such_folder/x.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        stack = H5Eget_current_stack();
    }
    H5E_END_TRY
    assert_true(file < 0);
    H5Ewalk2(stack, H5E_WALK_UPWARD, note_record, &record);
    H5Eclose_stack(stack);
    assert_true(strstr(record.lowest, "errno = 2") != NULL);
}

/* As a program sets it that selects the connector itself. */
static void test_bad_options_refuse_every_file(void **state)
{
    hid_t connector = H5VLget_connector_id_by_name("h5cow"), fapl[2], file, stack;
    void *info = NULL, *other = NULL, *again = NULL;
    char *text = NULL;
    (void)state;

    remove(cow_file);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    assert_true(H5VLconnector_str_to_info("colour=red", connector, &info) >= 0 && info != NULL);
    assert_true(H5VLconnector_str_to_info("threads=0", connector, &other) >= 0 && other != NULL);
    for (int i = 0; i < 2; i++) {
        fapl[i] = H5Pcreate(H5P_FILE_ACCESS);
        assert_true(H5Pset_vol(fapl[i], connector, info) >= 0);
    }
    assert_true(H5Pequal(fapl[0], fapl[1]) > 0);
    assert_true(H5Pget_vol_info(fapl[0], &again) >= 0);
    assert_true(H5VLconnector_info_to_str(again, connector, &text) >= 0 && text != NULL &&
                strcmp(text, "colour=red") == 0);
    H5free_memory(text);
    for (int call = 0; call < 5; call++) {
        stack_record record = {0};
        H5E_BEGIN_TRY
        {
            hid_t result = -1;
            if (call < 2)
                result = H5Fopen(cow_file, call == 0 ? H5F_ACC_RDONLY : H5F_ACC_RDWR, fapl[0]);
            else if (call == 2)
                result = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, fapl[0]);
            else if (call == 3)
                result = H5Fis_accessible(cow_file, fapl[0]);
            else
                result = H5Fdelete(cow_file, fapl[0]);
            stack = H5Eget_current_stack();
            assert_true(result < 0);
        }
        H5E_END_TRY
        H5Ewalk2(stack, H5E_WALK_UPWARD, note_record, &record);
        H5Eclose_stack(stack);
        assert_true(strstr(record.lowest, "'colour' is unknown") != NULL && strstr(record.lowest, "compress") != NULL);
    }
#if !H5_VERSION_GE(2, 0, 0)
    H5E_BEGIN_TRY
    {
        assert_true(H5Pset_vol(fapl[0], H5VLget_connector_id_by_name("native"), NULL) < 0); /* see class.c */
        assert_true(H5Pset_vol(fapl[1], connector, other) < 0);
        assert_true(H5Fopen(cow_file, H5F_ACC_RDONLY, fapl[0]) < 0);
    }
    H5E_END_TRY
#endif
    for (int i = 0; i < 2; i++)
        assert_true(H5Pclose(fapl[i]) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0 && H5Fclose(file) >= 0);
    H5VLclose(connector);
}

static void test_is_accessible_answers_as_native(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    FILE *text = fopen("test_vol_text.h5", "w");
    htri_t cow, native;
    (void)state;

    close_pair(p);
    assert_true(H5Fis_accessible(cow_file, H5P_DEFAULT) == 1);
    assert_true(text != NULL && fputs("no", text) >= 0 && fclose(text) == 0);
    H5E_BEGIN_TRY
    {
        assert_true(H5Fis_accessible("test_vol_text.h5", H5P_DEFAULT) ==
                    H5Fis_accessible("test_vol_text.h5", native_fapl));
        cow = H5Fis_accessible("test_vol_missing.h5", H5P_DEFAULT);
        native = H5Fis_accessible("test_vol_missing.h5", native_fapl);
        assert_true(cow == native);
    }
    H5E_END_TRY
    remove("test_vol_text.h5");
}

/* ---- flush, refresh, comments ---- */

static hid_t chunked(hid_t file, const char *name, hsize_t rows, hsize_t columns, unsigned deflate)
{
    hsize_t dims[2] = {rows, columns}, maximum[2] = {H5S_UNLIMITED, columns}, chunk[2] = {8, 8};
    hid_t space = H5Screate_simple(2, dims, maximum), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;

    H5Pset_chunk(dcpl, 2, chunk);
    if (deflate)
        H5Pset_deflate(dcpl, deflate);
    dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(dataset >= 0);
    H5Pclose(dcpl);
    H5Sclose(space);
    return dataset;
}

static void test_flush_and_refresh_of_every_kind_of_object(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    int values[20][20], back[20][20];
    (void)state;

    for (int i = 0; i < 400; i++)
        values[i / 20][i % 20] = i;
    for (int i = 0; i < 2; i++) {
        hid_t dataset = chunked(p.file[i], "d", 20, 20, 0);
        hid_t group = H5Gcreate2(p.file[i], "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        hid_t type = H5Tcopy(H5T_NATIVE_INT);

        assert_true(H5Tcommit2(p.file[i], "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dflush(dataset) >= 0 && H5Gflush(group) >= 0 && H5Tflush(type) >= 0 && H5Oflush(dataset) >= 0);
        assert_true(H5Drefresh(dataset) >= 0 && H5Grefresh(group) >= 0 && H5Trefresh(type) >= 0 &&
                    H5Orefresh(dataset) >= 0);
        assert_true(H5Fflush(p.file[i], H5F_SCOPE_LOCAL) >= 0 && H5Fflush(dataset, H5F_SCOPE_GLOBAL) >= 0);
        memset(back, 0, sizeof back);
        assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
        assert_true(memcmp(values, back, sizeof back) == 0);
        H5Dclose(dataset);
        H5Gclose(group);
        H5Tclose(type);
    }
    close_pair(p);
}

static void test_refresh_of_objects_in_a_file_open_for_reading(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    int back[20][20];
    hid_t file, dataset, group;
    (void)state;

    for (int i = 0; i < 2; i++) {
        H5Dclose(chunked(p.file[i], "d", 20, 20, 0));
        H5Gclose(H5Gcreate2(p.file[i], "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    }
    close_pair(p);
    file = H5Fopen(cow_file, H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    group = H5Gopen2(file, "g", H5P_DEFAULT);
    assert_true(H5Drefresh(dataset) >= 0 && H5Grefresh(group) >= 0 && H5Orefresh(group) >= 0);
    assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
    assert_true(H5Gclose(group) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
}

static void test_comments_are_kept(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    char text[32];
    hid_t file;
    (void)state;

    for (int i = 0; i < 2; i++) {
        H5Gclose(H5Gcreate2(p.file[i], "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        assert_true(H5Oset_comment_by_name(p.file[i], "g", "a comment", H5P_DEFAULT) >= 0);
        assert_true(H5Oset_comment(p.file[i], "of the root") >= 0);
        assert_true(H5Oget_comment_by_name(p.file[i], "g", text, sizeof text, H5P_DEFAULT) == 9);
        assert_true(strcmp(text, "a comment") == 0);
        assert_true(H5Oget_comment(p.file[i], text, sizeof text) == 11 && strcmp(text, "of the root") == 0);
    }
    close_pair(p);
    file = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Oget_comment_by_name(file, "g", text, sizeof text, H5P_DEFAULT) == 9 &&
                strcmp(text, "a comment") == 0);
    assert_true(H5Oget_comment(file, text, sizeof text) == 11 && strcmp(text, "of the root") == 0);
    assert_true(H5Fclose(file) >= 0);
}

#define NAMED 40

/* HDF5 1.14.5 loses messages of a header in which all are small, when it makes another part of it. Files with history have such
 * headers, but for what natively has none of these. The groups in between keep the parts from growing. */
static void test_named_types_keep_all_while_comments_change(void **state)
{
    uint64_t random = test_random(1);
    unsigned links[NAMED], made = 0;
    char comment[NAMED][40] = {0}, name[40], text[40];
    hid_t file, types[2] = {H5Tcopy(H5T_STD_I32LE), H5Tcopy(H5T_C_S1)}, type, group;
    H5O_info2_t info;
    (void)state;

    remove(cow_file);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    for (unsigned i = 0; i < NAMED; i++) {
        snprintf(name, sizeof name, "t%u", i);
        type = H5Tcopy(types[i % 2]);
        assert_true(H5Tcommit2(file, name, type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0 && H5Tclose(type) >= 0);
        links[i] = 1;
    }
    for (unsigned round = 0; round < 8; round++) {
        for (unsigned step = 0; step < 6 * NAMED; step++) {
            const unsigned i = splitmix64(&random) % NAMED, what = splitmix64(&random) % 4;

            snprintf(name, sizeof name, "t%u", i);
            if (what < 2) {
                snprintf(comment[i], sizeof comment[i], "%.*s", 1 + (int)(splitmix64(&random) % 20),
                         "said of this and that");
                assert_true(H5Oset_comment_by_name(file, name, comment[i], H5P_DEFAULT) >= 0);
            } else if (what == 2 || links[i] == 1) {
                snprintf(text, sizeof text, "t%u link %u", i, links[i]++);
                assert_true(H5Lcreate_hard(file, name, file, text, H5P_DEFAULT, H5P_DEFAULT) >= 0);
            } else {
                snprintf(text, sizeof text, "t%u link %u", i, --links[i]);
                assert_true(H5Ldelete(file, text, H5P_DEFAULT) >= 0);
            }
            snprintf(name, sizeof name, "between %u", made++);
            group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            assert_true(H5Gclose(group) >= 0);
        }
        assert_true(H5Fclose(file) >= 0);
        file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(file >= 0);
        for (unsigned i = 0; i < NAMED; i++) {
            snprintf(name, sizeof name, "t%u", i);
            type = H5Topen2(file, name, H5P_DEFAULT);
            assert_true(H5Tequal(type, types[i % 2]) > 0 && H5Oget_info3(type, &info, H5O_INFO_BASIC) >= 0);
            assert_true(info.rc == links[i]);
            memset(text, 0, sizeof text);
            assert_true(H5Oget_comment(type, text, sizeof text) >= 0 && strcmp(text, comment[i]) == 0);
            assert_true(H5Tclose(type) >= 0);
        }
    }
    assert_true(H5Fclose(file) >= 0 && H5Tclose(types[0]) >= 0 && H5Tclose(types[1]) >= 0);
}

static unsigned header_version(hid_t at, const char *name)
{
    H5O_native_info_t info;

    assert_true(H5Oget_native_info_by_name(at, name, &info, H5O_NATIVE_INFO_HDR, H5P_DEFAULT) >= 0);
    return info.hdr.version;
}

static void test_headers_are_no_newer_where_hdf5_would_lose_messages(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), gcpl = H5Pcreate(H5P_GROUP_CREATE), lcpl = H5Pcreate(H5P_LINK_CREATE);
    (void)state;

    assert_true(H5Pset_link_phase_change(gcpl, 3, 2) >= 0 && H5Pset_create_intermediate_group(lcpl, 1) >= 0);
    for (int narrow = 0; narrow < 2; narrow++) {
        assert_true(H5Pset_sizes(fcpl, narrow ? 4 : 8, 8) >= 0);
        pair p = create_pair(fcpl);
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < 2; i++) {
                hid_t type = H5Tcopy(H5T_STD_I32LE),
                      at = H5Gcreate2(p.file[i], again ? "again" : "g", H5P_DEFAULT, gcpl, H5P_DEFAULT);
                assert_true(H5Tcommit2(at, "on/the/way/type", type, lcpl, H5P_DEFAULT, H5P_DEFAULT) >= 0);
                assert_true(H5Ocopy(at, "on/the/way/type", at, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0);
                assert_true(H5Ocopy(at, "on/the", at, "groups", H5P_DEFAULT, H5P_DEFAULT) >= 0);
                assert_true(H5Tclose(type) >= 0 && H5Gclose(at) >= 0);
            }
            for (int i = 0; i < 2; i++) {
                hid_t at = H5Gopen2(p.file[i], again ? "again" : "g", H5P_DEFAULT);
                const unsigned usual = header_version(p.file[1], again ? "again" : "g"); /* 1; of HDF5 2: 2 */
                assert_int_equal(header_version(at, "on/the/way/type"), usual);
                assert_int_equal(header_version(at, "copy"), usual);
                assert_int_equal(header_version(at, "groups/way/type"), usual);
                if (narrow || i == 1)
                    assert_int_equal(
                        header_version(at, ".") | header_version(at, "on/the") | header_version(at, "groups"), usual);
                assert_true(H5Gclose(at) >= 0);
            }
            close_pair(p);
            p.file[0] = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
            p.file[1] = H5Fopen(native_file, H5F_ACC_RDWR, native_fapl);
        }
        close_pair(p);
    }
    H5Pclose(lcpl);
    H5Pclose(gcpl);
    H5Pclose(fcpl);
}

/* HDF5 makes the superblock's extension anew when it closes a file that keeps its free space. */
static void test_free_space_is_kept_whatever_the_size_of_addresses(void **state)
{
    static const H5F_fspace_strategy_t strategies[] = {H5F_FSPACE_STRATEGY_FSM_AGGR, H5F_FSPACE_STRATEGY_PAGE};
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), group;
    char name[20];
    (void)state;

    for (int i = 0; i < 4; i++) {
        assert_true(H5Pset_sizes(fcpl, i < 2 ? 4 : 8, 8) >= 0 &&
                    H5Pset_file_space_strategy(fcpl, strategies[i % 2], true, 1) >= 0);
        pair p = create_pair(fcpl);
        for (int session = 0; session < 4; session++) {
            for (int side = 0; side < 2; side++) {
                for (int g = 0; g < 3; g++) {
                    snprintf(name, sizeof name, "g%d", 3 * session + g);
                    group = H5Gcreate2(p.file[side], name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
                    assert_true(group >= 0 && H5Gclose(group) >= 0);
                    if (g == 1)
                        assert_true(H5Fflush(p.file[side], H5F_SCOPE_GLOBAL) >= 0);
                }
                if (session > 0) {
                    snprintf(name, sizeof name, "g%d", 3 * session - 1);
                    assert_true(H5Ldelete(p.file[side], name, H5P_DEFAULT) >= 0);
                }
            }
            close_pair(p);
            p.file[0] = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
            p.file[1] = H5Fopen(native_file, H5F_ACC_RDWR, native_fapl);
            assert_true(p.file[0] >= 0 && p.file[1] >= 0);
            for (int g = 0; g < 12; g++) {
                snprintf(name, sizeof name, "g%d", g);
                assert_int_equal(H5Lexists(p.file[0], name, H5P_DEFAULT), H5Lexists(p.file[1], name, H5P_DEFAULT));
            }
        }
        close_pair(p);
    }
    H5Pclose(fcpl);
}

/* ---- chunks ---- */

static int count_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    hsize_t *sum = context;

    (void)mask;
    sum[0]++;
    sum[1] += offset[0] * 1000 + offset[1];
    sum[2] += size;
    sum[3] += address == HADDR_UNDEF;
    return 0;
}

static void test_chunk_calls_answer_as_native(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    static int values[40][20];
    hsize_t start[2] = {16, 0}, count[2] = {17, 13};
    struct {
        hsize_t storage, chunks, iterated[4], by_offset, size;
        unsigned mask;
        H5D_space_status_t status[3];
        haddr_t offset;
        herr_t bad[3];
    } seen[2];
    (void)state;

    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 800; i++)
        values[i / 20][i % 20] = i * 7;
    for (int i = 0; i < 2; i++) {
        hid_t dataset = chunked(p.file[i], "d", 40, 20, 4), space = H5Dget_space(dataset);
        hsize_t origin[2] = {16, 8}, odd[2] = {17, 8}, beyond[2] = {400, 0}, at[2];
        haddr_t address;
        unsigned char chunk[4096];
        uint32_t mask;
        hid_t other;

        assert_true(H5Dget_space_status(dataset, &seen[i].status[0]) >= 0);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, space, space, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dget_space_status(dataset, &seen[i].status[1]) >= 0);
        assert_true(H5Dget_num_chunks(dataset, H5S_ALL, &seen[i].chunks) >= 0);
        assert_true(H5Dchunk_iter(dataset, H5P_DEFAULT, count_chunk, seen[i].iterated) >= 0);
        assert_true(H5Dget_chunk_storage_size(dataset, origin, &seen[i].by_offset) >= 0);
        assert_true(H5Dget_chunk_info_by_coord(dataset, origin, &seen[i].mask, &address, &seen[i].size) >= 0);
        assert_true(address != HADDR_UNDEF && seen[i].size == seen[i].by_offset);
        for (hsize_t n = 0; n < seen[i].chunks; n++) {
            unsigned m = 99;
            hsize_t size = 0;
            assert_true(H5Dget_chunk_info(dataset, H5S_ALL, n, at, &m, &address, &size) >= 0);
            assert_true(size > 0 && address != HADDR_UNDEF && m == 0 && at[0] % 8 == 0 && at[1] % 8 == 0);
        }
        seen[i].storage = H5Dget_storage_size(dataset);
        seen[i].offset = H5Dget_offset(dataset);
        /* the bytes of a chunk can be taken to another dataset */
        assert_true(H5Dread_chunk(dataset, H5P_DEFAULT, origin, &mask, chunk) >= 0);
        other = chunked(p.file[i], "e", 40, 20, 4);
        assert_true(H5Dwrite_chunk(other, H5P_DEFAULT, mask, origin, (size_t)seen[i].size, chunk) >= 0);
        {
            static int back[40][20];
            assert_true(H5Dread(other, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
            assert_true(back[17][9] == values[17][9] && back[0][0] == 0);
        }
        H5E_BEGIN_TRY
        {
            seen[i].bad[0] = H5Dread_chunk(dataset, H5P_DEFAULT, odd, &mask, chunk);
            seen[i].bad[1] = H5Dread_chunk(dataset, H5P_DEFAULT, beyond, &mask, chunk);
            seen[i].bad[2] = H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, odd, 10, chunk);
        }
        H5E_END_TRY
        H5Dclose(other);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    assert_true(memcmp(seen[0].status, seen[1].status, sizeof seen[0].status) == 0);
    assert_true(seen[0].chunks == seen[1].chunks && seen[0].mask == seen[1].mask && seen[0].offset == seen[1].offset);
    assert_true(seen[0].iterated[0] == seen[1].iterated[0] && seen[0].iterated[1] == seen[1].iterated[1]);
    assert_true(seen[0].iterated[2] == seen[0].storage && seen[0].iterated[3] == 0);
    assert_true(seen[0].storage == seen[1].storage && seen[0].by_offset == seen[1].by_offset);
    assert_true(seen[0].bad[0] < 0 && seen[0].bad[1] < 0 && seen[0].bad[2] < 0);
    close_pair(p);
}

static void test_chunk_addresses_are_true(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    static int values[40][20], chunk[8][8];
    hid_t dataset = chunked(p.file[0], "d", 40, 20, 0);
    hsize_t origin[2] = {8, 0}, size;
    unsigned mask;
    haddr_t address;
    FILE *file;
    (void)state;

    for (int i = 0; i < 800; i++)
        values[i / 20][i % 20] = i + 1;
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Fflush(p.file[0], H5F_SCOPE_GLOBAL) >= 0);
    assert_true(H5Dget_chunk_info_by_coord(dataset, origin, &mask, &address, &size) >= 0);
    assert_true(size == sizeof chunk);
    H5Dclose(dataset);
    close_pair(p);
    file = fopen(cow_file, "rb");
    assert_true(file != NULL && fseek(file, (long)address, SEEK_SET) == 0 &&
                fread(chunk, 1, sizeof chunk, file) == sizeof chunk);
    assert_true(chunk[3][5] == values[11][5]);
    if (file != NULL)
        fclose(file);
}

/* 1: the file has VALUE in all places of the chunk that ADDRESS leads to; 0: it has something else; -1: no address. */
static int chunk_in_file(haddr_t address, size_t size, int value)
{
    int bytes[1024] = {0};
    FILE *file;
    size_t n = 0;

    if (address == HADDR_UNDEF)
        return -1;
    if ((file = fopen(cow_file, "rb")) != NULL && fseek(file, (long)address, SEEK_SET) == 0)
        n = fread(bytes, 1, size, file);
    if (file != NULL)
        fclose(file);
    for (size_t i = 0; i < size / sizeof(int); i++)
        if (n != size || bytes[i] != value)
            return 0;
    return 1;
}

typedef struct chunk_look {
    int value;
    unsigned right, wrong, nowhere;
} chunk_look;

static void look_at(chunk_look *look, haddr_t address, hsize_t size)
{
    int found = chunk_in_file(address, (size_t)size, look->value);

    look->right += found == 1;
    look->wrong += found == 0;
    look->nowhere += found < 0;
}

static int look_at_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    (void)offset;
    (void)mask;
    look_at(context, address, size);
    return H5_ITER_CONT;
}

/* PyTables with Blosc2 reads the file itself at the addresses of chunks, right after it wrote them. Natively that works;
 * small datasets are overwritten in place, so here their new bytes are in no place of their own before the commit. */
static void test_chunk_addresses_never_lead_to_old_bytes(void **state)
{
    static const hsize_t dims[3][2] = {{8, 8}, {64, 64}, {8, 8}}; /* kept by HDF5, by the connector, contiguous */
    static int values[64 * 64];
    hid_t file;
    (void)state;

    for (int step = 1; step <= 4; step++) {
        chunk_look look = {.value = step < 4 ? step : 3};
        unsigned flags = step < 4 ? H5F_ACC_RDWR : H5F_ACC_RDONLY;

        for (int i = 0; i < 64 * 64; i++)
            values[i] = look.value;
        file = step == 1 ? H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                         : H5Fopen(cow_file, flags, H5P_DEFAULT);
        for (int d = 0; d < 3; d++) {
            char name[] = {'d', (char)('0' + d), 0};
            hsize_t chunk[2] = {4, 4}, at[2] = {4, 4}, size = 0;
            haddr_t address = 0, alone = 0;
            unsigned mask;
            hid_t dataset;

            if (step == 1) {
                hid_t space = H5Screate_simple(2, dims[d], NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
                if (d < 2)
                    H5Pset_chunk(dcpl, 2, chunk);
                dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
                H5Pclose(dcpl);
                H5Sclose(space);
            } else {
                dataset = H5Dopen2(file, name, H5P_DEFAULT);
            }
            if (step < 4)
                assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
            if (d == 2) {
                assert_true(step == 4 ||
                            H5Dflush(dataset) >= 0); /* native HDF5 leaves small data in a buffer till then */
                look_at(&look, H5Dget_offset(dataset), sizeof(int[8][8]));
                H5Dclose(dataset);
                continue;
            }
            assert_true(H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &size) >= 0 &&
                        size == sizeof(int[4][4]));
            look_at(&look, address, size);
            assert_true(H5Dget_chunk_info_by_coord(dataset, at, NULL, &alone, NULL) >= 0 && alone == address);
            assert_true(H5Dget_chunk_info(dataset, H5S_ALL, 1, at, &mask, &address, &size) >= 0);
            look_at(&look, address, size);
            assert_true(H5Dget_chunk_info(dataset, H5S_ALL, 1, NULL, NULL, &alone, NULL) >= 0 && alone == address);
            assert_true(H5Dchunk_iter(dataset, H5P_DEFAULT, look_at_chunk, &look) >= 0);
            H5Dclose(dataset);
        }
        assert_true(look.right > 0 && (step == 1 || look.wrong == 0));
        /* before the first commit there are no old bytes; when all is applied, everything is in its place */
        assert_true((step > 1 && step < 4) || look.nowhere == 0);
        assert_true(H5Fclose(file) >= 0);
    }
}

static void test_memory_of_variable_length_data_is_counted_as_native(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    typedef struct element {
        int id;
        char *name;
        hvl_t list[2]; /* of lists */
    } element;
    static int numbers[5] = {1, 2, 3, 4, 5};
    hvl_t inner[3] = {{2, numbers}, {0, NULL}, {5, numbers}};
    element data[3] = {{1, (char[]){"one"}, {{3, inner}, {1, inner}}},
                       {2, NULL, {{0, NULL}, {2, inner + 1}}},
                       {3, (char[]){""}, {{0, NULL}, {0, NULL}}}};
    hid_t ints = H5Tvlen_create(H5T_NATIVE_INT), lists = H5Tvlen_create(ints), string = H5Tcopy(H5T_C_S1);
    hid_t two = H5Tarray_create2(lists, 1, (hsize_t[]){2}), type = H5Tcreate(H5T_COMPOUND, sizeof(element));
    hid_t space = H5Screate_simple(1, (hsize_t[]){3}, (hsize_t[]){H5S_UNLIMITED}), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t seen[2][5];
    (void)state;

    H5Tset_size(string, H5T_VARIABLE);
    H5Tinsert(type, "id", HOFFSET(element, id), H5T_NATIVE_INT);
    H5Tinsert(type, "name", HOFFSET(element, name), string);
    H5Tinsert(type, "list", HOFFSET(element, list), two);
    H5Pset_chunk(dcpl, 1, (hsize_t[]){2});
    memset(seen, 0xff, sizeof seen);
    for (int i = 0; i < 2; i++) {
        hid_t dataset = H5Dcreate2(p.file[i], "v", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT), part;

        assert_true(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
        part = H5Dget_space(dataset);
        assert_true(H5Dvlen_get_buf_size(dataset, type, part, &seen[i][3]) >= 0);
        for (hsize_t n = 0; n < 3; n++) {
            H5Sselect_hyperslab(part, H5S_SELECT_SET, &n, NULL, (hsize_t[]){1}, NULL);
            assert_true(H5Dvlen_get_buf_size(dataset, type, part, &seen[i][n]) >= 0);
        }
        H5Sselect_none(part);
        assert_true(H5Dvlen_get_buf_size(dataset, type, part, &seen[i][4]) >= 0);
        H5Sclose(part);
        H5Dclose(dataset);
    }
    assert_true(memcmp(seen[0], seen[1], sizeof seen[0]) == 0);
    assert_true(seen[1][3] == seen[1][0] + seen[1][1] + seen[1][2] && seen[1][0] > 4);
    H5Pclose(dcpl);
    H5Sclose(space);
    H5Tclose(type);
    H5Tclose(two);
    H5Tclose(string);
    H5Tclose(lists);
    H5Tclose(ints);
    close_pair(p);
}

static void test_contiguous_dataset_looks_contiguous(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    static double values[3000];
    (void)state;

    for (int i = 0; i < 2; i++) {
        hsize_t dims = 3000, more = 4000, chunks;
        hid_t space = H5Screate_simple(1, &dims, NULL), dcpl;
        hid_t dataset = H5Dcreate2(p.file[i], "c", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        H5D_space_status_t status;

        assert_true(H5Dget_storage_size(dataset) == 0);
        assert_true(H5Dget_space_status(dataset, &status) >= 0 && status == H5D_SPACE_STATUS_NOT_ALLOCATED);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dget_storage_size(dataset) == sizeof values);
        assert_true(H5Dget_space_status(dataset, &status) >= 0 && status == H5D_SPACE_STATUS_ALLOCATED);
        dcpl = H5Dget_create_plist(dataset);
        assert_true(H5Pget_layout(dcpl) == H5D_CONTIGUOUS && H5Pget_nfilters(dcpl) == 0);
        H5E_BEGIN_TRY
        {
            assert_true(H5Dset_extent(dataset, &more) < 0);
            assert_true(H5Dget_num_chunks(dataset, H5S_ALL, &chunks) < 0);
        }
        H5E_END_TRY
        H5Pclose(dcpl);
        H5Dclose(dataset);
        H5Sclose(space);
    }
    close_pair(p);
}

static void test_extent_beyond_the_maximum_is_refused(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t dataset = chunked(p.file[i], "d", 20, 20, 0), space;
        hsize_t too_wide[2] = {20, 21}, longer[2] = {33, 20}, same[2] = {33, 20}, now[2];
        herr_t status;

        H5E_BEGIN_TRY
        {
            status = H5Dset_extent(dataset, too_wide);
        }
        H5E_END_TRY
        assert_true(status < 0);
        assert_true(H5Dset_extent(dataset, longer) >= 0 && H5Dset_extent(dataset, same) >= 0);
        space = H5Dget_space(dataset);
        H5Sget_simple_extent_dims(space, now, NULL);
        assert_true(now[0] == 33 && now[1] == 20);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    close_pair(p);
}

static void test_points_in_partial_edge_chunks(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    int back[2][20][20];
    (void)state;

    memset(back, 0, sizeof back);
    for (int i = 0; i < 2; i++) {
        hid_t dataset = chunked(p.file[i], "d", 20, 20, 0), space = H5Dget_space(dataset), memory;
        hsize_t points[5][2] = {{19, 19}, {0, 0}, {16, 19}, {19, 3}, {7, 8}}, five = 5;
        int values[5] = {1, 2, 3, 4, 5}, again[5] = {0};

        memory = H5Screate_simple(1, &five, NULL);
        assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 5, &points[0][0]) >= 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, again) >= 0);
        assert_true(memcmp(values, again, sizeof values) == 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back[i]) >= 0);
        H5Sclose(memory);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    assert_true(memcmp(back[0], back[1], sizeof back[0]) == 0 && back[0][19][19] == 1 && back[0][16][19] == 3);
    close_pair(p);
}

static void test_multi_dataset_write_of_versioned_and_native_ones(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t scalar = H5Screate(H5S_SCALAR);
        hid_t set[3] = {chunked(p.file[i], "a", 20, 20, 0),
                        H5Dcreate2(p.file[i], "s", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                        chunked(p.file[i], "b", 20, 20, 0)};
        hid_t type[3] = {H5T_NATIVE_INT, H5T_NATIVE_INT, H5T_NATIVE_INT}, all[3] = {H5S_ALL, H5S_ALL, H5S_ALL};
        static int a[20][20], b[20][20], a2[20][20], b2[20][20];
        int s = 42, s2 = 0;
        const void *from[3] = {a, &s, b};
        void *to[3] = {a2, &s2, b2};

        a[3][4] = 5;
        b[6][7] = 8;
        memset(a2, 0, sizeof a2);
        memset(b2, 0, sizeof b2);
        assert_true(H5Dwrite_multi(3, set, type, all, all, H5P_DEFAULT, from) >= 0);
        assert_true(H5Dread_multi(3, set, type, all, all, H5P_DEFAULT, to) >= 0);
        assert_true(memcmp(a, a2, sizeof a) == 0 && s2 == 42 && memcmp(b, b2, sizeof b) == 0);
        for (int k = 0; k < 3; k++)
            H5Dclose(set[k]);
        H5Sclose(scalar);
    }
    close_pair(p);
}

static void test_user_virtual_dataset_shows_what_is_not_committed(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    (void)state;

    for (int i = 0; i < 2; i++) {
        hid_t source = chunked(p.file[i], "d", 20, 20, 0), space = H5Dget_space(source);
        hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;
        static int values[20][20], back[20][20];
        hsize_t dims[2] = {20, 20}, start[2] = {4, 4}, count[2] = {10, 10};
        hid_t target = H5Screate_simple(2, dims, NULL);
        int minus = -1;

        H5Pset_fill_value(dcpl, H5T_NATIVE_INT, &minus);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        H5Sselect_hyperslab(target, H5S_SELECT_SET, start, NULL, count, NULL);
        assert_true(H5Pset_virtual(dcpl, target, ".", "/d", space) >= 0);
        dataset = H5Dcreate2(p.file[i], "v", H5T_NATIVE_INT, target, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        for (int round = 1; round <= 3; round++) {
            for (int k = 0; k < 400; k++)
                values[k / 20][k % 20] = k * round;
            assert_true(H5Dwrite(source, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
            assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, back) >= 0);
            assert_true(back[0][0] == -1 && back[19][4] == -1 && back[4][4] == values[4][4] &&
                        back[13][13] == values[13][13]);
            if (round == 2)
                assert_true(H5Fflush(p.file[i], H5F_SCOPE_GLOBAL) >= 0);
        }
        if (i == 0) {
            herr_t status;
            H5E_BEGIN_TRY
            {
                status = H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
            }
            H5E_END_TRY
            assert_true(status < 0);
        }
        H5Dclose(dataset);
        H5Dclose(source);
        H5Sclose(space);
        H5Sclose(target);
        H5Pclose(dcpl);
    }
    close_pair(p);
}

/* ---- links ---- */

static hid_t traverse(const char *name, hid_t group, const void *data, size_t size, hid_t lapl, hid_t dxpl)
{
    (void)name;
    (void)size;
    (void)lapl;
    (void)dxpl;
    return H5Oopen(group, data, H5P_DEFAULT);
}

static ssize_t query(const char *name, const void *data, size_t size, void *buf, size_t room)
{
    (void)name;
    if (buf != NULL)
        memcpy(buf, data, size < room ? size : room);
    return (ssize_t)size;
}

static void test_user_defined_links_are_followed_and_kept(void **state)
{
    const H5L_class_t class = {.version = H5L_LINK_CLASS_T_VERS,
                               .id = (H5L_type_t)(H5L_TYPE_UD_MIN + 7),
                               .comment = "by name",
                               .trav_func = traverse,
                               .query_func = query};
    pair p = create_pair(H5P_DEFAULT);
    hid_t file;
    H5L_info2_t info;
    (void)state;

    assert_true(H5Lregister(&class) >= 0);
    for (int i = 0; i < 2; i++) {
        hid_t group = H5Gcreate2(p.file[i], "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), opened;
        char value[8];

        assert_true(H5Lcreate_ud(p.file[i], "u", class.id, "/g", 3, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lget_info2(p.file[i], "u", &info, H5P_DEFAULT) >= 0 && info.type == class.id &&
                    info.u.val_size == 3);
        assert_true(H5Lget_val(p.file[i], "u", value, sizeof value, H5P_DEFAULT) >= 0 && strcmp(value, "/g") == 0);
        opened = H5Gopen2(p.file[i], "u", H5P_DEFAULT);
        assert_true(opened >= 0);
        H5Gclose(H5Gcreate2(opened, "below", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        assert_true(H5Lexists(group, "below", H5P_DEFAULT) == 1);
        H5Gclose(opened);
        H5Gclose(group);
    }
    close_pair(p);
    file = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Lget_info2(file, "u", &info, H5P_DEFAULT) >= 0 && info.type == class.id && info.u.val_size == 3);
    assert_true(H5Fclose(file) >= 0);
    assert_true(H5Lunregister(class.id) >= 0);
}

/* ---- the reserved group ---- */

typedef struct link_list {
    char text[65536];
    hsize_t stop_after, seen;
} link_list;

static void add_line(link_list *list, const char *name, int64_t order, bool valid)
{
    size_t length = strlen(list->text);

    snprintf(list->text + length, sizeof list->text - length, "%s %lld\n", name, valid ? (long long)order : -1);
    list->seen++;
}

static herr_t list_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    link_list *list = context;

    if (H5Iget_type(group) != H5I_GROUP)
        return -1;
    add_line(list, name, info->corder, info->corder_valid);
    return list->stop_after > 0 && list->seen == list->stop_after;
}

static herr_t list_object(hid_t group, const char *name, const H5O_info2_t *info, void *context)
{
    if (group < 0 || info->rc == 0)
        return -1;
    add_line(context, name, info->type, true);
    return 0;
}

/* Everything that a program can ask about the links of the root group, as text. */
static void describe_root(hid_t file, bool by_creation, link_list *list)
{
    H5G_info_t group;
    hid_t root = H5Gopen2(file, "/", H5P_DEFAULT);

    assert_true(H5Gget_info(file, &group) >= 0);
    add_line(list, "nlinks", (int64_t)group.nlinks, true);
    add_line(list, "max", group.max_corder, true);
    assert_true(H5Gget_info_by_name(root, ".", &group, H5P_DEFAULT) >= 0);
    add_line(list, "nlinks", (int64_t)group.nlinks, true);
    for (int type = 0; type <= (by_creation ? 1 : 0); type++)
        for (int order = 0; order < 2; order++) {
            link_list part = {0};

            for (hsize_t n = 0; n <= group.nlinks; n++) {
                char name[64] = "";
                H5L_info2_t link;
                H5O_info2_t object;
                ssize_t length;
                herr_t status;
                hid_t opened;

                H5E_BEGIN_TRY
                {
                    length = H5Lget_name_by_idx(root, ".", type, order, n, name, sizeof name, H5P_DEFAULT);
                    status = H5Lget_info_by_idx2(file, "/", type, order, n, &link, H5P_DEFAULT);
                    opened = H5Oopen_by_idx(file, ".", type, order, n, H5P_DEFAULT);
                }
                H5E_END_TRY
                add_line(list, name, length, true);
                if (status >= 0)
                    add_line(list, name, link.corder, link.corder_valid);
                if (opened >= 0) {
                    assert_true(H5Oget_info_by_idx3(root, ".", type, order, n, &object, H5O_INFO_BASIC, H5P_DEFAULT) >=
                                0);
                    add_line(list, "type", object.type, true);
                    H5Oclose(opened);
                }
            }
            assert_true(H5Literate2(file, type, order, NULL, list_link, list) >= 0);
            /* in steps of two, with the index handed on */
            part.stop_after = 2;
            for (hsize_t index = 0; index < group.nlinks;) {
                part.seen = 0;
                assert_true(H5Literate_by_name2(root, "/", type, order, &index, list_link, &part, H5P_DEFAULT) >= 0);
                add_line(list, "stopped at", (int64_t)index, true);
            }
            snprintf(list->text + strlen(list->text), sizeof list->text - strlen(list->text), "%s", part.text);
            assert_true(H5Lvisit2(root, type, order, list_link, list) >= 0);
            assert_true(H5Ovisit3(file, type, order, list_object, list, H5O_INFO_BASIC) >= 0);
        }
    H5Gclose(root);
}

static void make_tree(hid_t file)
{
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), group;

    H5Pset_link_creation_order(gcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    H5Gclose(H5Gcreate2(file, "zebra", H5P_DEFAULT, gcpl, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "Alpha", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    group = H5Gcreate2(file, "_a", H5P_DEFAULT, gcpl, H5P_DEFAULT);
    H5Dclose(chunked(group, "two", 20, 20, 0));
    H5Dclose(chunked(group, "one", 20, 20, 0));
    H5Lcreate_hard(file, "zebra", group, "also zebra", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/zebra", file, "soft", H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(group);
    H5Pclose(gcpl);
}

static herr_t list_any(hid_t group, const char *name, const H5O_info2_t *info, void *context)
{
    (void)info;
    if (group < 0)
        return -1;
    add_line(context, name, 0, true);
    return 0;
}

/* Circles: to the root, to the start by one link or two, with and without asking for the number of links. */
static void test_visits_through_circles_report_what_native_hdf5_reports(void **state)
{
    static const char *const starts[] = {"/", "a", "a/b", "a/b/root/a", "other"};
    static const unsigned fields[] = {H5O_INFO_BASIC, H5O_INFO_ALL, H5O_INFO_NUM_ATTRS};
    static link_list seen[2];
    pair p = create_pair(H5P_DEFAULT);
    (void)state;

    memset(seen, 0, sizeof seen);
    for (int i = 0; i < 2; i++) {
        hid_t file = p.file[i];
        H5Gclose(H5Gcreate2(file, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Gclose(H5Gcreate2(file, "a/b", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Gclose(H5Gcreate2(file, "other", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        H5Dclose(chunked(file, "a/b/x", 20, 20, 0));
        assert_true(H5Lcreate_hard(file, "/", file, "a/b/root", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_hard(file, "a/b/x", file, "a/y", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_hard(file, "other", file, "a/b/up", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Lcreate_hard(file, "a/b", file, "other/b", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        for (size_t s = 0; s < COUNT(starts); s++)
            for (size_t k = 0; k < COUNT(fields); k++)
                for (int order = 0; order < 2; order++) {
                    hid_t start = H5Oopen(file, starts[s], H5P_DEFAULT);
                    add_line(&seen[i], starts[s], (int64_t)fields[k], true);
                    assert_true(H5Ovisit3(start, H5_INDEX_NAME, order, list_any, &seen[i], fields[k]) >= 0);
                    assert_true(H5Ovisit_by_name3(file, starts[s], H5_INDEX_NAME, order, list_any, &seen[i], fields[k],
                                                  H5P_DEFAULT) >= 0);
                    assert_true(H5Lvisit2(start, H5_INDEX_NAME, order, list_link, &seen[i]) >= 0);
                    H5Oclose(start);
                }
    }
    assert_true(strlen(seen[0].text) + 100 < sizeof seen[0].text && strcmp(seen[0].text, seen[1].text) == 0);
    close_pair(p);
}

static void compare_listings(bool by_creation, unsigned more)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
    static link_list seen[2];
    pair p;

    if (by_creation)
        H5Pset_link_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    p = create_pair(fcpl);
    for (int round = 0; round < 2; round++) { /* before, and after a commit */
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < 2; i++) {
            char name[32];

            if (round == 0)
                make_tree(p.file[i]);
            for (unsigned k = 0; k < more; k++) {
                snprintf(name, sizeof name, "g%d%u", round, k);
                H5Gclose(H5Gcreate2(p.file[i], name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
            }
            describe_root(p.file[i], by_creation, &seen[i]);
        }
        assert_true(strcmp(seen[0].text, seen[1].text) == 0);
        if (strcmp(seen[0].text, seen[1].text) != 0)
            printf("---- connector, round %d\n%s---- native\n%s", round, seen[0].text, seen[1].text);
        close_pair(p);
        p.file[0] = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
        p.file[1] = H5Fopen(native_file, H5F_ACC_RDWR, native_fapl);
    }
    close_pair(p);
    H5Pclose(fcpl);
}

static void test_root_listings_are_those_of_a_file_without_history(void **state)
{
    (void)state;
    compare_listings(false, 0);
}

static void test_root_listings_by_creation_order(void **state)
{
    (void)state;
    compare_listings(true, 0);
}

static void test_root_listings_of_many_links(void **state)
{
    (void)state;
    compare_listings(true, 12); /* more than fit the group's header: another form of storage */
}

static void test_reserved_group_cannot_be_reached_by_any_name(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    static const char *const names[] = {RESERVED, "/" RESERVED, "./" RESERVED, "/up/" RESERVED,
                                        "/" RESERVED "/versions"};
    hid_t root;
    H5O_info2_t info;
    herr_t status;
    hid_t id;
    (void)state;

    H5Dclose(chunked(p.file[0], "d", 20, 20, 0));
    assert_true(H5Lcreate_hard(p.file[0], "/", p.file[0], "up", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fflush(p.file[0], H5F_SCOPE_GLOBAL) >= 0);
    root = H5Gopen2(p.file[0], "/", H5P_DEFAULT);
    H5E_BEGIN_TRY
    {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            assert_true(H5Lexists(root, names[i], H5P_DEFAULT) <= 0);
            id = H5Oopen(root, names[i], H5P_DEFAULT);
            assert_true(id < 0);
            id = H5Gopen2(p.file[0], names[i], H5P_DEFAULT);
            assert_true(id < 0);
            status = H5Oget_info_by_name3(root, names[i], &info, H5O_INFO_BASIC, H5P_DEFAULT);
            assert_true(status < 0);
            id = H5Gcreate2(root, names[i], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            assert_true(id < 0);
            status = H5Ldelete(root, names[i], H5P_DEFAULT);
            assert_true(status < 0);
            status = H5Lmove(root, names[i], root, "moved", H5P_DEFAULT, H5P_DEFAULT);
            assert_true(status < 0);
            status = H5Lcreate_hard(root, names[i], root, "linked", H5P_DEFAULT, H5P_DEFAULT);
            assert_true(status < 0);
            status = H5Lcreate_soft("/d", root, names[i], H5P_DEFAULT, H5P_DEFAULT);
            assert_true(status < 0);
        }
    }
    H5E_END_TRY
    assert_true(H5Lexists(root, "d", H5P_DEFAULT) == 1);
    /* in any other group the name is free */
    H5Gclose(H5Gcreate2(root, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    id = H5Gcreate2(root, "g/" RESERVED, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(id >= 0 && H5Gclose(id) >= 0);
    assert_true(H5Lexists(root, "g/" RESERVED, H5P_DEFAULT) == 1);
    H5Gclose(root);
    close_pair(p);
}

static void test_last_own_link_of_a_group_can_be_deleted(void **state)
{
    pair p = create_pair(H5P_DEFAULT);
    hid_t group = H5Gcreate2(p.file[0], "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    (void)state;

    assert_true(H5Lcreate_hard(group, ".", group, "a", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Lcreate_hard(group, ".", group, "b", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete(group, "a", H5P_DEFAULT) >= 0);
    assert_true(H5Ldelete_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT) >= 0);
    assert_true(H5Lexists(group, "a", H5P_DEFAULT) == 0 && H5Lexists(group, "b", H5P_DEFAULT) == 0);
    H5Gclose(group);
    close_pair(p);
}

/* ---- versions ---- */

static void write_all(hid_t file, const char *name, int value)
{
    static int values[20][20];
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);

    for (int i = 0; i < 400; i++)
        values[i / 20][i % 20] = value;
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0);
}

static int first_value(hid_t file, const char *name)
{
    static int values[20][20];
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);

    values[0][0] = -999;
    assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    return values[0][0];
}

static void make_versions(void)
{
    hid_t file, group;

    remove(cow_file);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(chunked(group, "d", 20, 20, 0));
    write_all(file, "/g/d", 1);
    assert_true(H5Lcreate_soft("/g/d", file, "soft", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    write_all(file, "g/d", 2);
    assert_true(H5Fclose(file) >= 0);
}

static void test_version_shows_its_own_values_and_names(void **state)
{
    char name[64];
    H5L_info2_t link;
    hid_t file, dataset;
    (void)state;

    make_versions();
    file = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0);
    assert_true(first_value(file, "g/d") == 1 && first_value(file, "/g/d") == 1 && first_value(file, "/soft") == 1);
    assert_true(H5Fget_name(file, name, sizeof name) > 0 && strcmp(name, "test_vol_cow.h5@1") == 0);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    assert_true(H5Iget_name(dataset, name, sizeof name) == 4 && strcmp(name, "/g/d") == 0);
    assert_true(H5Dclose(dataset) >= 0);
    assert_true(H5Iget_name(file, name, sizeof name) == 1 && strcmp(name, "/") == 0);
    assert_true(H5Lget_info2(file, "soft", &link, H5P_DEFAULT) >= 0 && link.u.val_size == 5);
    assert_true(H5Lget_val(file, "soft", name, sizeof name, H5P_DEFAULT) >= 0 && strcmp(name, "/g/d") == 0);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(file, "g/d") == 2);
    assert_true(H5Fclose(file) >= 0);
}

static void test_version_and_head_can_be_open_together(void **state)
{
    hid_t head, old;
    (void)state;

    make_versions();
    head = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    old = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    write_all(head, "g/d", 3);
    assert_true(first_value(old, "g/d") == 1 && first_value(head, "g/d") == 3);
    assert_true(H5Fclose(head) >= 0);
    assert_true(first_value(old, "g/d") == 1);
    assert_true(H5Fclose(old) >= 0);
    old = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(old, "g/d") == 3);
    assert_true(H5Fclose(old) >= 0);
}

static void test_version_refuses_every_change(void **state)
{
    hsize_t longer[2] = {40, 20};
    int values[20][20] = {{0}};
    hid_t file, dataset, space = H5Screate(H5S_SCALAR);
    unsigned intent = 99;
    (void)state;

    make_versions();
    file = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    assert_true(H5Fget_intent(file, &intent) >= 0 && intent == H5F_ACC_RDONLY);
    H5E_BEGIN_TRY
    {
        assert_true(H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDWR, H5P_DEFAULT) < 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0);
        assert_true(H5Dset_extent(dataset, longer) < 0);
        assert_true(H5Acreate2(dataset, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT) < 0);
        assert_true(H5Gcreate2(file, "new", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) < 0);
        assert_true(H5Ldelete(file, "g", H5P_DEFAULT) < 0);
        assert_true(H5Lmove(file, "g", file, "h", H5P_DEFAULT, H5P_DEFAULT) < 0);
        assert_true(H5Lcreate_soft("x", file, "y", H5P_DEFAULT, H5P_DEFAULT) < 0);
        assert_true(H5Oset_comment(dataset, "no") < 0);
        assert_true(H5Oincr_refcount(dataset) < 0);
        assert_true(H5Ocopy(file, "g", file, "copy", H5P_DEFAULT, H5P_DEFAULT) < 0);
    }
    H5E_END_TRY
    assert_true(first_value(file, "g/d") == 1);
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    H5Sclose(space);
}

static void test_unknown_revision_is_an_error(void **state)
{
    hid_t file;
    (void)state;

    make_versions();
    H5E_BEGIN_TRY
    {
        file = H5Fopen("test_vol_cow.h5@77", H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    H5E_END_TRY
    assert_true(file < 0);
}

static void test_literal_file_name_with_at_wins(void **state)
{
    hid_t file;
    (void)state;

    make_versions();
    remove("test_vol_cow.h5@1");
    file = H5Fcreate("test_vol_cow.h5@1", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(file, "mine", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Lexists(file, "mine", H5P_DEFAULT) == 1);
    assert_true(H5Fclose(file) >= 0);
    remove("test_vol_cow.h5@1");
}

static void test_truncate_keeps_history(void **state)
{
    hid_t file;
    (void)state;

    make_versions();
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0 && H5Lexists(file, "g", H5P_DEFAULT) == 0);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5@2", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(file, "g/d") == 2);
    assert_true(H5Fclose(file) >= 0);
}

static void test_truncate_with_other_properties_puts_the_old_file_aside(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), file;
    (void)state;

    make_versions();
    remove("test_vol_cow.h5.h5cow-old-1");
    H5Pset_userblock(fcpl, 512);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
    assert_true(file >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5.h5cow-old-1@2", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0 && first_value(file, "g/d") == 2);
    assert_true(H5Fclose(file) >= 0);
    remove("test_vol_cow.h5.h5cow-old-1");
    H5Pclose(fcpl);
}

/* ---- handles ---- */

static void test_dataset_written_after_its_file_was_closed_is_committed(void **state)
{
    static int values[20][20];
    hid_t file, dataset;
    (void)state;

    make_versions();
    values[0][0] = 9;
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(dataset) >= 0);
    file = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0 && first_value(file, "g/d") == 9);
    assert_true(H5Fclose(file) >= 0);
}

static void test_dataset_written_before_another_is_copied_is_in_the_version(void **state)
{
    hid_t file;
    (void)state;

    make_versions();
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Dclose(chunked(file, "other", 20, 20, 0));
    write_all(file, "g/d", 8);
    assert_true(H5Ocopy(file, "other", file, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(first_value(file, "g/d") == 8);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(file, "g/d") == 8);
    assert_true(H5Fclose(file) >= 0);
}

static void test_copied_datasets_keep_their_named_type(void **state)
{
    hsize_t n = 5000;
    hid_t other = H5Fcreate("test_vol_other.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), file,
          type = H5Tcopy(H5T_STD_I16BE), space = H5Screate_simple(1, &n, NULL), d, named;
    (void)state;

    make_versions();
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Tcommit2(file, "t", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    H5Dclose(H5Dcreate2(file, "of t", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    for (int k = 0; k < 2; k++) {
        assert_true(H5Ocopy(file, "of t", k ? other : file, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true((d = H5Dopen2(k ? other : file, "copy", H5P_DEFAULT)) >= 0);
        assert_true((named = H5Dget_type(d)) >= 0 && H5Tcommitted(named) > 0);
        H5Tclose(named);
        H5Dclose(d);
    }
    H5Tclose(type);
    H5Sclose(space);
    assert_true(H5Fclose(file) >= 0);
    assert_true(H5Fclose(other) >= 0);
    remove("test_vol_other.h5");
}

/* In the file each absolute soft link of a version names the version: a copy out of it leads where the program led it. */
static void test_soft_links_copied_out_of_a_version_are_as_they_were_made(void **state)
{
    static const char *const targets[] = {"/g/d", "/", "d", "/g/gone"};
    hid_t file, old, group, gcpl = H5Pcreate(H5P_GROUP_CREATE);
    char value[100], name[100];
    (void)state;

    make_versions();
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    for (int tracked = 0; tracked < 2; tracked++) {
        H5Pset_link_creation_order(gcpl, tracked ? H5P_CRT_ORDER_TRACKED : 0);
        group = H5Gcreate2(file, tracked ? "tracked" : "links", H5P_DEFAULT, gcpl, H5P_DEFAULT);
        for (size_t i = 0; i < COUNT(targets); i++) {
            snprintf(name, sizeof name, "%zu", i);
            assert_true(H5Lcreate_soft(targets[i], group, name, H5P_DEFAULT, H5P_DEFAULT) >= 0);
        }
        H5Gclose(group);
    }
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    old = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Ocopy(old, "links", file, "0", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Ocopy(old, "tracked", file, "1", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < COUNT(targets); i++) {
            snprintf(name, sizeof name, "%d/%zu", k, i);
            assert_true(H5Lget_val(file, name, value, sizeof value, H5P_DEFAULT) >= 0 &&
                        strcmp(value, targets[i]) == 0);
        }
    assert_true(H5Fclose(old) >= 0);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(gcpl);
}

static bool version_exists(const char *name)
{
    hid_t file;

    H5E_BEGIN_TRY
    {
        file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    H5E_END_TRY
    return file >= 0 && H5Fclose(file) >= 0;
}

static void test_closing_makes_one_version_while_other_handles_are_open(void **state)
{
    static int values[20][20];
    hid_t file, dataset, old;
    (void)state;

    make_versions();
    /* written before and after the file is closed: one version */
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    for (int i = 3; i < 5; i++) {
        values[0][0] = i;
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        if (i == 3)
            assert_true(H5Fclose(file) >= 0 && version_exists("test_vol_cow.h5@3"));
    }
    assert_true(H5Dclose(dataset) >= 0 && !version_exists("test_vol_cow.h5@4"));
    /* an old version that stays open keeps nothing back, and an object that does joins no sessions */
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    old = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    write_all(file, "g/d", 5);
    assert_true(H5Fclose(file) >= 0 && version_exists("test_vol_cow.h5@4"));
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    write_all(file, "g/d", 6);
    assert_true(H5Fclose(file) >= 0 && version_exists("test_vol_cow.h5@5"));
    assert_true(H5Dclose(dataset) >= 0);
    assert_true(first_value(old, "g/d") == 1 && H5Fclose(old) >= 0);
    for (int i = 3; i < 6; i++) {
        static const int expected[] = {4, 5, 6};
        char name[64];

        snprintf(name, sizeof name, "test_vol_cow.h5@%d", i);
        file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(first_value(file, "g/d") == expected[i - 3]);
        assert_true(H5Fclose(file) >= 0);
    }
}

static void test_counts_of_open_objects_are_those_of_the_application(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, dataset, same, ids[4];
    herr_t status;
    (void)state;

    make_versions();
    H5Pset_fclose_degree(fapl, H5F_CLOSE_SEMI);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, fapl);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    assert_true(H5Fget_obj_count(file, H5F_OBJ_ALL) == 2 && H5Fget_obj_ids(file, H5F_OBJ_ALL, 4, ids) == 2);
    same = H5Iget_file_id(dataset);
    assert_true(same == file && H5Fclose(same) >= 0);
    H5E_BEGIN_TRY
    {
        status = H5Fclose(file);
    }
    H5E_END_TRY
    assert_true(status < 0); /* semi: an object is open */
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, fapl);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    assert_true(H5Iis_valid(dataset) == 0);
    H5Pclose(fapl);
}

static void test_access_properties_are_given_back(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, list, connector, own;
    H5F_libver_t low, high;
    hsize_t metadata, raw;
    char name[32];
    int differ;
    (void)state;

    H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, H5F_LIBVER_V18);
    remove(cow_file);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    H5Dclose(chunked(file, "d", 20, 20, 0));
    list = H5Fget_access_plist(file);
    assert_true(H5Pget_libver_bounds(list, &low, &high) >= 0 && low == H5F_LIBVER_V18 && high == H5F_LIBVER_V18);
    assert_true(H5Pget_vol_id(list, &connector) >= 0 && H5Pget_vol_id(H5P_FILE_ACCESS_DEFAULT, &own) >= 0);
    assert_true(H5VLget_connector_name(file, name, sizeof name) > 0 && strcmp(name, "h5cow") == 0);
    assert_true(H5Pget_meta_block_size(list, &metadata) >= 0 && metadata == 2048);
    assert_true(H5Pget_small_data_block_size(list, &raw) >= 0 && raw == 2048);
    assert_true(H5VLcmp_connector_cls(&differ, connector, own) >= 0 &&
                differ == 0); /* HDF5 2 gives a new id each time */
    assert_true(H5Pget_driver(list) == H5Pget_driver(fapl));
    H5VLclose(connector);
    H5VLclose(own);
    H5Pclose(list);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, fapl);
    assert_true(file >= 0 && H5Lexists(file, "d", H5P_DEFAULT) == 1);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

static void test_external_link_to_a_file_with_history_is_written_with_history(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), outer, file;
    (void)state;

    make_versions();
    remove("test_vol_outer.h5");
    outer = H5Fcreate("test_vol_outer.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_true(H5Lcreate_external(cow_file, "/", outer, "there", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(first_value(outer, "there/g/d") == 2);
    write_all(outer, "there/g/d", 7);
    assert_true(first_value(outer, "there/g/d") == 7);
    assert_true(H5Lexists(outer, "there/" RESERVED, H5P_DEFAULT) <= 0);
    assert_true(H5Fclose(outer) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(file, "g/d") == 7);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5@2", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(file, "g/d") == 2);
    assert_true(H5Fclose(file) >= 0);
    remove("test_vol_outer.h5");
    H5Pclose(fapl);
}

static void test_mounted_file_with_history_is_written_with_history(void **state)
{
    hid_t outer, file;
    (void)state;

    make_versions();
    remove("test_vol_outer.h5");
    outer = H5Fcreate("test_vol_outer.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(outer, "at", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Fmount(outer, "at", file, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0);
    write_all(outer, "at/g/d", 8);
    assert_true(first_value(outer, "at/g/d") == 8);
    assert_true(H5Lexists(outer, "at/" RESERVED, H5P_DEFAULT) <= 0);
    assert_true(H5Funmount(outer, "at") >= 0);
    assert_true(H5Fclose(outer) >= 0);
    file = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0 && first_value(file, "g/d") == 8);
    assert_true(H5Fclose(file) >= 0);
    remove("test_vol_outer.h5");
}

static void test_files_of_other_drivers_have_no_history(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    (void)state;

    H5Pset_fapl_core(fapl, 65536, true);
    remove("test_vol_core.h5");
    file = H5Fcreate("test_vol_core.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    H5Gclose(H5Gcreate2(file, RESERVED, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    assert_true(H5Lexists(file, RESERVED, H5P_DEFAULT) == 1);
    H5Dclose(chunked(file, "d", 20, 20, 0));
    write_all(file, "d", 4);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_core.h5", H5F_ACC_RDONLY, native_fapl);
    assert_true(file >= 0 && H5Lexists(file, RESERVED, H5P_DEFAULT) == 1 && first_value(file, "d") == 4);
    assert_true(H5Fclose(file) >= 0);
    remove("test_vol_core.h5");
    H5Pclose(fapl);
}

/* GDAL has a driver of its own, h5py one for Python's file objects: who asks for a version gets that one or an error. */
static void test_versions_are_read_with_other_drivers_too(void **state)
{
    static const char *const names[] = {"test_vol_cow.h5@1", "test_vol_cow.h5@2"};
    (void)state;

    make_versions();
    for (int driver = 0; driver < 2; driver++) {
        hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

        assert_true((driver == 0 ? H5Pset_fapl_stdio(fapl) : H5Pset_fapl_core(fapl, 65536, false)) >= 0);
        for (int n = 0; n < 2; n++) {
            hid_t file = H5Fopen(names[n], H5F_ACC_RDONLY, fapl);
            assert_true(file >= 0 && first_value(file, "g/d") == n + 1);
            assert_true(H5Lexists(file, RESERVED, H5P_DEFAULT) == 0 && H5Fclose(file) >= 0);
        }
        H5E_BEGIN_TRY
        {
            assert_true(H5Fopen(names[0], H5F_ACC_RDWR, fapl) < 0);
        }
        H5E_END_TRY
        H5Pclose(fapl);
    }
}

/* ---- printing of errors ---- */

/* Standard error goes to a file while WHAT runs, which must be true; how often does TEXT stand there? */
static unsigned printed(bool (*what)(hid_t), hid_t file, const char *text)
{
    char buffer[65536];
    FILE *out = tmpfile();
    int saved = dup(2);
    unsigned count = 0;
    size_t n;
    bool right;

    assert_true(out != NULL && saved >= 0 && dup2(fileno(out), 2) == 2);
    right = what(file);
    fflush(stderr);
    assert_true(dup2(saved, 2) == 2 && right);
    close(saved);
    rewind(out);
    n = fread(buffer, 1, sizeof buffer - 1, out);
    buffer[n] = '\0';
    fclose(out);
    for (const char *at = buffer; (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

static bool open_missing_dataset(hid_t file)
{
    return H5Dopen2(file, "missing", H5P_DEFAULT) < 0;
}

static bool open_missing_file(hid_t file)
{
    (void)file;
    return H5Fopen("test_vol_missing.h5", H5F_ACC_RDONLY, H5P_DEFAULT) < 0;
}

static bool open_missing_revision(hid_t file)
{
    (void)file;
    return H5Fopen("test_vol_cow.h5@77", H5F_ACC_RDONLY, H5P_DEFAULT) < 0;
}

static herr_t fails_inside(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    (void)name;
    (void)info;
    (void)context;
    return H5Dopen2(group, "missing", H5P_DEFAULT) < 0 ? 0 : -1;
}

static bool iterate_over_links(hid_t file)
{
    return H5Literate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, fails_inside, NULL) >= 0;
}

static bool visit_links(hid_t file)
{
    return H5Lvisit2(file, H5_INDEX_NAME, H5_ITER_INC, fails_inside, NULL) >= 0;
}

static herr_t turns_printing_off(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    (void)group;
    (void)name;
    (void)info;
    (void)context;
    return H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static herr_t print_old(void *data)
{
    (void)data;
    return fputs("HDF5-DIAG\n", stderr);
}

static void test_an_error_is_printed_once(void **state)
{
    static int mine;
    H5E_auto2_t function, now;
    void *data, *now_data;
    hid_t file;
    (void)state;

    make_versions();
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(H5Eget_auto2(H5E_DEFAULT, &function, &data) >= 0 && function != NULL);
    assert_true(printed(open_missing_dataset, file, "HDF5-DIAG") == 1);
    assert_true(printed(open_missing_file, file, "HDF5-DIAG") == 1);
    assert_true(printed(open_missing_revision, file, "HDF5-DIAG") == 1);
    /* the application's own function prints its own errors: one for each of two links, respectively three */
    assert_true(printed(iterate_over_links, file, "HDF5-DIAG") == 2);
    assert_true(printed(visit_links, file, "HDF5-DIAG") == 3);
    assert_true(H5Eget_auto2(H5E_DEFAULT, &now, &now_data) >= 0 && now == function && now_data == data);
    /* what it sets meanwhile stays, but for HDF5 2, which puts it back */
#if H5_VERSION_GE(2, 0, 0)
    (void)mine;
    assert_true(H5Eset_auto2(H5E_DEFAULT, NULL, NULL) >= 0);
#else
    assert_true(H5Eset_auto2(H5E_DEFAULT, function, &mine) >= 0);
#endif
    assert_true(H5Literate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, turns_printing_off, NULL) >= 0);
    assert_true(H5Eget_auto2(H5E_DEFAULT, &now, &now_data) >= 0 && now == NULL);
    assert_true(printed(open_missing_dataset, file, "HDF5-DIAG") == 0);
    /* the older way to set it: that it was changed is noticed by a failure, which may show */
    assert_true(H5Eset_auto1(print_old, NULL) >= 0);
    assert_true(printed(open_missing_dataset, file, "HDF5-DIAG") <= 2);
    assert_true(printed(open_missing_dataset, file, "HDF5-DIAG") == 1);
    assert_true(H5Eset_auto1(NULL, NULL) >= 0);
    assert_true(printed(open_missing_dataset, file, "HDF5-DIAG") == 0);
    assert_true(H5Eset_auto2(H5E_DEFAULT, function, data) >= 0);
    assert_true(printed(open_missing_dataset, file, "HDF5-DIAG") == 1);
    assert_true(H5Fclose(file) >= 0);
}

/* ---- single writer, multiple readers ---- */

static unsigned intent(hid_t file)
{
    unsigned flags = 0;

    assert_true(H5Fget_intent(file, &flags) >= 0);
    return flags;
}

/* H5Fstart_swmr_write without a trace. */
static herr_t start(hid_t file)
{
    herr_t status;

    H5E_BEGIN_TRY
    {
        status = H5Fstart_swmr_write(file);
    }
    H5E_END_TRY
    return status;
}

static void test_single_writer_flushes_make_versions_that_readers_open(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, dataset, reader;
    int values[20][20] = {{0}};
    (void)state;

    make_versions();
    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, fapl);
    dataset = H5Dopen2(file, "g/d", H5P_DEFAULT);
    assert_true(intent(file) == H5F_ACC_RDWR);
    assert_true(start(file) >= 0);
    assert_true(intent(file) == (H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE));
    assert_true(start(file) < 0); /* already in this mode */
    for (int round = 5; round < 7; round++) {
        values[0][0] = round;
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
        assert_true((round == 5 ? H5Dflush(dataset) : H5Oflush(dataset)) >= 0);
        reader = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, fapl);
        assert_true(reader >= 0 && first_value(reader, "g/d") == round);
        assert_true(H5Fclose(reader) >= 0);
        assert_true(H5Drefresh(dataset) >= 0);
    }
    reader = H5Fopen(cow_file, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, fapl);
    assert_true(reader >= 0 && first_value(reader, "g/d") == 6);
    assert_true(H5Fclose(reader) >= 0);
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    /* all of it was one version, and the mode ended with the file */
    H5E_BEGIN_TRY
    {
        reader = H5Fopen("test_vol_cow.h5@4", H5F_ACC_RDONLY, fapl);
    }
    H5E_END_TRY
    assert_true(reader < 0);
    reader = H5Fopen(cow_file, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, fapl);
    assert_true(intent(reader) == (H5F_ACC_RDONLY | H5F_ACC_SWMR_READ) && first_value(reader, "g/d") == 6);
    assert_true(start(reader) < 0);
    assert_true(H5Fclose(reader) >= 0);
    file = H5Fopen(cow_file, H5F_ACC_RDWR, fapl);
    assert_true(intent(file) == H5F_ACC_RDWR);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

static void test_single_writer_is_refused_where_native_refuses(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), native_latest = H5Pcopy(native_fapl), space = H5Screate(H5S_SCALAR);
    (void)state;

    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    H5Pset_libver_bounds(native_latest, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    for (int native = 0; native < 2; native++) {
        const char *name = native ? native_file : cow_file;
        hid_t latest = native ? native_latest : fapl, oldest = native ? native_fapl : H5P_DEFAULT, file, other;

        remove(name);
        file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, latest);
        assert_true(H5Fclose(file) >= 0);
        file = H5Fopen(name, H5F_ACC_RDONLY, latest);
        assert_true(start(file) < 0); /* nothing may be written */
        assert_true(H5Fclose(file) >= 0);
        file = H5Fopen(name, H5F_ACC_RDWR, latest);
        other = H5Acreate2(file, "a", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(start(file) < 0); /* an attribute is open */
        assert_true(H5Aclose(other) >= 0 && start(file) >= 0);
        other = H5Fopen(name, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, latest);
        assert_true(other >= 0 && intent(other) == (H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE));
        assert_true(H5Fclose(other) >= 0 && H5Fclose(file) >= 0);
        remove(name);
        file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, oldest);
        assert_true(start(file) < 0); /* bounds that are too low */
        assert_true(H5Fclose(file) >= 0);
        file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, latest);
        H5E_BEGIN_TRY
        {
            other = H5Fopen(name, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, latest);
        }
        H5E_END_TRY
        assert_true(other < 0); /* open without it */
        assert_true(H5Fclose(file) >= 0);
    }
    H5Sclose(space);
    H5Pclose(native_latest);
    H5Pclose(fapl);
}

static void test_file_opened_for_a_single_writer_has_a_history(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    (void)state;

    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    make_versions();
    file = H5Fopen(cow_file, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, fapl);
    assert_true(file >= 0 && intent(file) == (H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE));
    write_all(file, "g/d", 3);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC | H5F_ACC_SWMR_WRITE, H5P_DEFAULT, fapl);
    assert_true(file >= 0 && intent(file) == (H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE) && H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, fapl);
    assert_true(file >= 0 && first_value(file, "g/d") == 3);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

/* ---- a history is never overwritten ---- */

static char *contents(const char *name, size_t *size)
{
    FILE *in = fopen(name, "rb");
    char *bytes = malloc(1 << 20);

    assert_true(in != NULL && bytes != NULL);
    *size = in == NULL || bytes == NULL ? 0 : fread(bytes, 1, 1 << 20, in);
    if (in != NULL)
        fclose(in);
    return bytes;
}

/* H5Fcreate over cow_file must fail, say what to do, and leave every byte alone. */
static void check_refused(void)
{
    stack_record record = {0};
    size_t size[2];
    char *bytes[2];
    hid_t file, stack;

    bytes[0] = contents(cow_file, &size[0]);
    H5E_BEGIN_TRY
    {
        file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        stack = H5Eget_current_stack();
    }
    H5E_END_TRY
    assert_true(file < 0);
    H5Ewalk2(stack, H5E_WALK_UPWARD, note_record, &record);
    H5Eclose_stack(stack);
    assert_true(strstr(record.lowest, "h5cow verify test_vol_cow.h5") != NULL &&
                strstr(record.lowest, "move this one away"));
    bytes[1] = contents(cow_file, &size[1]);
    assert_true(size[0] > 0 && size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0);
    free(bytes[0]);
    free(bytes[1]);
}

/* HDF5's own; not in its headers. */
extern uint32_t H5_checksum_metadata(const void *bytes, size_t size, uint32_t start);

/* Take the fence off, as no program does, so that native HDF5 can damage the file. */
static void unfence(void)
{
    unsigned char superblock[48];
    FILE *file = fopen(cow_file, "r+b");
    uint32_t sum;

    assert_true(file != NULL && fread(superblock, 1, sizeof superblock, file) == sizeof superblock);
    memset(superblock + 20, 0xff, 8);
    sum = H5_checksum_metadata(superblock, 44, 0);
    memcpy(superblock + 44, &sum, 4);
    assert_true(fseek(file, 0, SEEK_SET) == 0 && fwrite(superblock, 1, sizeof superblock, file) == sizeof superblock);
    assert_true(fclose(file) == 0);
}

static void test_truncate_of_a_damaged_history_changes_nothing(void **state)
{
    hid_t file;
    (void)state;

    make_versions();
    unfence();
    file = H5Fopen(cow_file, H5F_ACC_RDWR, native_fapl);
    assert_true(H5Ldelete(file, RESERVED "/index", H5P_DEFAULT) >= 0 && H5Fclose(file) >= 0);
    check_refused();
}

static void test_truncate_of_a_file_that_cannot_be_opened_changes_nothing(void **state)
{
    size_t size;
    char *bytes;
    FILE *out;
    (void)state;

    make_versions();
    bytes = contents(cow_file, &size);
    assert_true(truncate(cow_file, (off_t)(size / 2)) == 0); /* cut off */
    check_refused();
    for (size_t at = 4096; at <= 8192; at += 4096) { /* both slots of the journal, of which there are two copies each */
        bytes[at] ^= 1;
        bytes[at + 512] ^= 1;
    }
    out = fopen(cow_file, "wb");
    assert_true(out != NULL && fwrite(bytes, 1, size, out) == size && fclose(out) == 0);
    check_refused();
    free(bytes);
    remove(cow_file);
}

static void test_truncate_by_another_driver_puts_the_old_file_aside(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    (void)state;

    make_versions();
    remove("test_vol_cow.h5.h5cow-old-1");
    H5Pset_fapl_core(fapl, 65536, false); /* never writes a file */
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_true(file >= 0 && H5Fclose(file) >= 0);
    assert_true(access("test_vol_cow.h5.h5cow-old-1", F_OK) != 0);
    H5Pset_fapl_stdio(fapl);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_true(file >= 0 && H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5.h5cow-old-1@2", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(file >= 0 && first_value(file, "g/d") == 2);
    assert_true(H5Fclose(file) >= 0);
    remove("test_vol_cow.h5.h5cow-old-1");
    H5Pclose(fapl);
}

/* ---- what is left behind ---- */

static unsigned descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    unsigned count = 0;

    while (all != NULL && readdir(all) != NULL)
        count++;
    if (all != NULL)
        closedir(all);
    return count;
}

static void open_and_fail(unsigned round)
{
    static const char *const missing[] = {"test_vol_missing.h5", "test_vol_cow.h5@77", "test_vol_cow.h5@{1999}",
                                          "test_vol_no_such_folder/x.h5"};
    unsigned before = descriptors();
    hid_t file;

    H5E_BEGIN_TRY
    {
        for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
            assert_true(H5Fopen(missing[i], H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
        assert_true(H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDWR, H5P_DEFAULT) < 0);
        assert_true(H5Fcreate("test_vol_no_such_folder/x.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT) < 0);
        assert_true(H5Fcreate(cow_file, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT) < 0);
    }
    H5E_END_TRY
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    write_all(file, "g/d", (int)round);
    H5E_BEGIN_TRY
    {
        assert_true(H5Dopen2(file, "nothing", H5P_DEFAULT) < 0);
        assert_true(H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT) < 0);
        assert_true(H5Fopen("test_vol_cow.h5@77", H5F_ACC_RDONLY, H5P_DEFAULT) < 0);
        assert_true(H5Fopen(cow_file, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, H5P_DEFAULT) < 0);
    }
    H5E_END_TRY
    assert_true(H5Fclose(file) >= 0);
    assert_true(descriptors() == before);
    for (unsigned n = 1; n < 3; n++) {
        char name[64];
        snprintf(name, sizeof name, "test_vol_cow.h5@%u", n);
        file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(first_value(file, "g/d") == (int)n);
        assert_true(H5Fclose(file) >= 0);
    }
}

static void test_nothing_stays_open(void **state)
{
    unsigned files;
    (void)state;

    make_versions();
    open_and_fail(0); /* what is made once and kept */
    files = descriptors();
    for (unsigned round = 1; round < 20; round++)
        open_and_fail(round);
    assert_true(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
    assert_true(descriptors() == files);
}

static void test_witness_hears_of_every_file(void **state)
{
    static const char *const heard[] = {"otest_vol_cow.h5", "v", "otest_vol_missing.h5", "otest_vol_cow.h5@1"};
    char text[512] = "";
    const char *record = text;
    size_t length;
    FILE *in;
    hid_t file;
    (void)state;

    remove("test_vol_witness");
    setenv("H5COW_WITNESS", "test_vol_witness", 1);
    make_versions();
    assert_true(access("test_vol_witness", F_OK) != 0); /* never made */
    in = fopen("test_vol_witness", "w+");
    assert_true(in != NULL);
    file = H5Fcreate(cow_file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    H5E_BEGIN_TRY
    {
        H5Fopen("test_vol_missing.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    H5E_END_TRY
    file = H5Fopen("test_vol_cow.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0);
    unsetenv("H5COW_WITNESS");
    length = fread(text, 1, sizeof text - 1, in);
    for (unsigned i = 0; i < 4; i++, record += strlen(record) + 1)
        if (*heard[i] == 'v') /* an identity, and the version */
            assert_true(strspn(record + 1, "0123456789abcdef") == 32 &&
                        strncmp(record + 33, " #3 '3', made 20", 16) == 0);
        else
            assert_string_equal(record, heard[i]);
    assert_true(record == text + length);
    fclose(in);
    remove("test_vol_witness");
}

/* h5py makes every dataset without a name, writes it, and links it then. */
static void test_dataset_named_after_it_was_written_is_in_the_version(void **state)
{
    hsize_t dims[2] = {20, 20};
    hid_t file, space = H5Screate_simple(2, dims, NULL), dataset, group, scalar = H5Screate(H5S_SCALAR), attribute;
    int values[20][20] = {{4}}, one = 1;
    (void)state;

    make_versions();
    file = H5Fopen(cow_file, H5F_ACC_RDWR, H5P_DEFAULT);
    group = H5Gopen2(file, "g", H5P_DEFAULT);
    dataset = H5Dcreate_anon(file, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    attribute = H5Acreate2(dataset, "a", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT, &one) >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Olink(dataset, group, "late", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    one = 2;
    values[0][0] = 5;
    assert_true(H5Awrite(attribute, H5T_NATIVE_INT, &one) >= 0 && H5Aclose(attribute) >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    /* a second name, by another way, for one that had none */
    assert_true(H5Lcreate_hard(dataset, ".", file, "second", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Dclose(dataset) >= 0 && H5Gclose(group) >= 0);
    /* a group without a name, with something in it, is found too */
    group = H5Gcreate_anon(file, H5P_DEFAULT, H5P_DEFAULT);
    H5Dclose(chunked(group, "in", 20, 20, 0));
    write_all(group, "in", 6);
    assert_true(H5Olink(group, file, "made", H5P_DEFAULT, H5P_DEFAULT) >= 0 && H5Gclose(group) >= 0);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen("test_vol_cow.h5@3", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(first_value(file, "g/late") == 5 && first_value(file, "second") == 5 &&
                first_value(file, "made/in") == 6);
    attribute = H5Aopen_by_name(file, "g/late", "a", H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Aread(attribute, H5T_NATIVE_INT, &one) >= 0 && one == 2);
    assert_true(H5Aclose(attribute) >= 0 && H5Fclose(file) >= 0);
    H5Sclose(scalar);
    H5Sclose(space);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing_file_keeps_errno_at_the_bottom_of_the_error_stack),
        cmocka_unit_test(test_failed_create_keeps_errno_at_the_bottom_of_the_error_stack),
        cmocka_unit_test(test_bad_options_refuse_every_file),
        cmocka_unit_test(test_is_accessible_answers_as_native),
        cmocka_unit_test(test_flush_and_refresh_of_every_kind_of_object),
        cmocka_unit_test(test_refresh_of_objects_in_a_file_open_for_reading),
        cmocka_unit_test(test_comments_are_kept),
        cmocka_unit_test(test_named_types_keep_all_while_comments_change),
        cmocka_unit_test(test_headers_are_no_newer_where_hdf5_would_lose_messages),
        cmocka_unit_test(test_free_space_is_kept_whatever_the_size_of_addresses),
        cmocka_unit_test(test_chunk_calls_answer_as_native),
        cmocka_unit_test(test_chunk_addresses_are_true),
        cmocka_unit_test(test_chunk_addresses_never_lead_to_old_bytes),
        cmocka_unit_test(test_memory_of_variable_length_data_is_counted_as_native),
        cmocka_unit_test(test_contiguous_dataset_looks_contiguous),
        cmocka_unit_test(test_extent_beyond_the_maximum_is_refused),
        cmocka_unit_test(test_points_in_partial_edge_chunks),
        cmocka_unit_test(test_multi_dataset_write_of_versioned_and_native_ones),
        cmocka_unit_test(test_user_virtual_dataset_shows_what_is_not_committed),
        cmocka_unit_test(test_user_defined_links_are_followed_and_kept),
        cmocka_unit_test(test_visits_through_circles_report_what_native_hdf5_reports),
        cmocka_unit_test(test_root_listings_are_those_of_a_file_without_history),
        cmocka_unit_test(test_root_listings_by_creation_order),
        cmocka_unit_test(test_root_listings_of_many_links),
        cmocka_unit_test(test_reserved_group_cannot_be_reached_by_any_name),
        cmocka_unit_test(test_last_own_link_of_a_group_can_be_deleted),
        cmocka_unit_test(test_version_shows_its_own_values_and_names),
        cmocka_unit_test(test_version_and_head_can_be_open_together),
        cmocka_unit_test(test_version_refuses_every_change),
        cmocka_unit_test(test_unknown_revision_is_an_error),
        cmocka_unit_test(test_literal_file_name_with_at_wins),
        cmocka_unit_test(test_truncate_keeps_history),
        cmocka_unit_test(test_truncate_with_other_properties_puts_the_old_file_aside),
        cmocka_unit_test(test_dataset_written_after_its_file_was_closed_is_committed),
        cmocka_unit_test(test_dataset_written_before_another_is_copied_is_in_the_version),
        cmocka_unit_test(test_copied_datasets_keep_their_named_type),
        cmocka_unit_test(test_soft_links_copied_out_of_a_version_are_as_they_were_made),
        cmocka_unit_test(test_closing_makes_one_version_while_other_handles_are_open),
        cmocka_unit_test(test_counts_of_open_objects_are_those_of_the_application),
        cmocka_unit_test(test_access_properties_are_given_back),
        cmocka_unit_test(test_external_link_to_a_file_with_history_is_written_with_history),
        cmocka_unit_test(test_mounted_file_with_history_is_written_with_history),
        cmocka_unit_test(test_files_of_other_drivers_have_no_history),
        cmocka_unit_test(test_versions_are_read_with_other_drivers_too),
        cmocka_unit_test(test_an_error_is_printed_once),
        cmocka_unit_test(test_single_writer_flushes_make_versions_that_readers_open),
        cmocka_unit_test(test_single_writer_is_refused_where_native_refuses),
        cmocka_unit_test(test_file_opened_for_a_single_writer_has_a_history),
        cmocka_unit_test(test_truncate_of_a_damaged_history_changes_nothing),
        cmocka_unit_test(test_truncate_of_a_file_that_cannot_be_opened_changes_nothing),
        cmocka_unit_test(test_truncate_by_another_driver_puts_the_old_file_aside),
        cmocka_unit_test(test_nothing_stays_open),
        cmocka_unit_test(test_witness_hears_of_every_file),
        cmocka_unit_test(test_dataset_named_after_it_was_written_is_in_the_version),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(cow_file);
    remove(native_file);
    return status;
}
