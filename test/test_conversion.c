/* Types that need a conversion which fails half-way: the program gives up, by H5T_CONV_ABORT from a function of
 * H5Pset_type_conv_cb. The call is an error as natively; each chunk has all of what it should get or nothing; nothing
 * else is lost; and what is done afterwards is fine, in this version and the next. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COW      "test_conversion_cow.h5"
#define NATIVE   "test_conversion_native.h5"
#define WIDTH    40000
#define CHUNK    5000
#define TOO_MUCH 1000 /* in a byte */

/* ---- conversions that fail ---- */

static H5T_conv_ret_t give_up(H5T_conv_except_t kind, hid_t from, hid_t to, void *source, void *target, void *left)
{
    (void)kind, (void)from, (void)to, (void)source;
    if (--*(int *)left < 0)
        return H5T_CONV_ABORT;
    *(signed char *)target = 99;
    return H5T_CONV_HANDLED;
}

/* The list of a transfer that gives up at exception number *LEFT. */
static hid_t transfer(int *left, size_t buffer)
{
    hid_t dxpl = H5Pcreate(H5P_DATASET_XFER);

    assert_true(H5Pset_type_conv_cb(dxpl, give_up, left) >= 0);
    assert_true(buffer == 0 || H5Pset_buffer(dxpl, buffer, NULL, NULL) >= 0);
    return dxpl;
}

/* ---- kinds of datasets ---- */

typedef struct kind {
    const char *name;
    H5D_layout_t layout;
    bool packed, compound, small;
} kind;

static const kind kinds[] = {
    {"chunked", H5D_CHUNKED, false, false, false},       {"packed", H5D_CHUNKED, true, false, false},
    {"contiguous", H5D_CONTIGUOUS, false, false, false}, {"compact", H5D_COMPACT, false, false, true},
    {"tiny", H5D_CONTIGUOUS, false, false, true},        {"compound", H5D_CHUNKED, false, true, false},
};

typedef struct pair {
    signed char a, b;
} pair;

typedef struct wide {
    int a, b;
} wide;

static hid_t type_of(const kind *k, bool memory)
{
    hid_t one = memory ? H5T_NATIVE_INT : H5T_STD_I8LE, type;

    if (!k->compound)
        return H5Tcopy(one);
    type = H5Tcreate(H5T_COMPOUND, memory ? sizeof(wide) : sizeof(pair));
    assert_true(H5Tinsert(type, "a", 0, one) >= 0);
    assert_true(H5Tinsert(type, "b", memory ? offsetof(wide, b) : offsetof(pair, b), one) >= 0);
    return type;
}

static hsize_t length_of(const kind *k)
{
    return k->small ? 200 : WIDTH;
}

static void make(hid_t file, const kind *k)
{
    const hsize_t dims = length_of(k), chunk = CHUNK;
    hid_t space = H5Screate_simple(1, &dims, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), type = type_of(k, false), d;

    if (k->layout == H5D_CHUNKED)
        assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    else
        assert_true(H5Pset_layout(dcpl, k->layout) >= 0);
    assert_true(!k->packed || H5Pset_deflate(dcpl, 4) >= 0);
    assert_true((d = H5Dcreate2(file, k->name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0 && H5Dclose(d) >= 0);
    H5Tclose(type);
    H5Pclose(dcpl);
    H5Sclose(space);
}

/* Elements VALUE; those from BAD on, every 50th, do not fit. */
static herr_t write_all(hid_t file, const kind *k, int value, int bad, hid_t dxpl)
{
    hsize_t length = length_of(k);
    int count = (int)length * (k->compound ? 2 : 1), *values = malloc(sizeof *values * (size_t)count);
    hid_t d = H5Dopen2(file, k->name, H5P_DEFAULT), type = type_of(k, true);
    herr_t status;

    if (values == NULL)
        abort();
    for (int i = 0; i < count; i++) {
        int element = k->compound ? i / 2 : i;
        values[i] = bad >= 0 && element >= bad && (element - bad) % 50 == 0 ? TOO_MUCH : value;
    }
    assert_true(d >= 0);
    H5E_BEGIN_TRY
    {
        status = H5Dwrite(d, type, H5S_ALL, H5S_ALL, dxpl, values);
    }
    H5E_END_TRY
    assert_true(H5Dclose(d) >= 0);
    H5Tclose(type);
    free(values);
    return status;
}

static void read_all(hid_t file, const kind *k, signed char *values)
{
    hid_t d = H5Dopen2(file, k->name, H5P_DEFAULT), type = type_of(k, false);

    assert_true(d >= 0 && H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
    H5Tclose(type);
}

static bool all_are(hid_t file, const kind *k, int value)
{
    signed char values[2 * WIDTH];

    read_all(file, k, values);
    for (hsize_t i = 0; i < length_of(k) * (k->compound ? 2 : 1); i++)
        if (values[i] != value)
            return false;
    return true;
}

/* Chunk by chunk: OLD everywhere, or NOW (99 where it did not fit) everywhere. How many have OLD; -1: neither. Small
 * datasets are HDF5's own: each element. */
static int chunks_left(hid_t file, const kind *k, int old, int now)
{
    signed char values[2 * WIDTH];
    hsize_t members = k->compound ? 2 : 1, chunk = (k->layout == H5D_CHUNKED ? CHUNK : length_of(k)) * members;
    int left = 0;

    read_all(file, k, values);
    for (hsize_t at = 0; at < length_of(k) * members; at += chunk) {
        bool first = values[at] == old;
        for (hsize_t i = at; i < at + chunk; i++)
            if (k->small ? values[i] != old && values[i] != now && values[i] != 99
                : first  ? values[i] != old
                         : values[i] != now && values[i] != 99)
                return -1;
        left += first || k->small;
    }
    return left;
}

/* ---- tests ---- */

static hid_t open_version(int version)
{
    char name[64];

    snprintf(name, sizeof name, COW "@%d", version);
    return H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
}

/* PATIENCE: exceptions that are handled before. */
static void fail_once(const kind *k, int bad, int patience, size_t buffer)
{
    herr_t ended[2];
    hid_t file;

    during("%s, element %d, %d exceptions before, buffer %zu", k->name, bad, patience, buffer);
    remove(COW);
    remove(NATIVE);
    for (int native = 0; native < 2; native++) {
        int left = patience;
        hid_t dxpl = transfer(&left, buffer);

        assert_true((file = H5Fcreate(native ? NATIVE : COW, H5F_ACC_TRUNC, H5P_DEFAULT,
                                      native ? native_fapl : H5P_DEFAULT)) >= 0);
        make(file, k);
        make(file, &(kind){"other", H5D_CHUNKED, false, false, false});
        assert_true(write_all(file, k, 1, -1, H5P_DEFAULT) >= 0 && H5Fclose(file) >= 0);
        assert_true((file = H5Fopen(native ? NATIVE : COW, H5F_ACC_RDWR, native ? native_fapl : H5P_DEFAULT)) >= 0);
        ended[native] = write_all(file, k, 2, bad, dxpl);
        if (!native) {
            assert_true(chunks_left(file, k, 1, 2) > 0); /* that in which it gave up, at least */
            assert_true(write_all(file, &(kind){"other", H5D_CHUNKED, false, false, false}, 7, -1, H5P_DEFAULT) >= 0);
        }
        assert_true(H5Fclose(file) >= 0);
        H5Pclose(dxpl);
    }
    assert_true(ended[0] < 0 && ended[1] < 0);
    assert_true((file = open_version(1)) >= 0 && all_are(file, k, 1) && H5Fclose(file) >= 0);
    assert_true((file = open_version(2)) >= 0 && chunks_left(file, k, 1, 2) > 0);
    assert_true(all_are(file, &(kind){"other", H5D_CHUNKED, false, false, false}, 7) && H5Fclose(file) >= 0);
    /* and again, now to the end */
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0 && write_all(file, k, 3, -1, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(file) >= 0 && (file = open_version(3)) >= 0 && all_are(file, k, 3) && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0 && all_are(file, k, 3) && H5Fclose(file) >= 0);
}

static void test_write_that_gives_up_changes_each_chunk_wholly_or_not(void **state)
{
    static const size_t buffers[] = {0, 64, 4096};
    (void)state;

    for (size_t i = 0; i < COUNT(kinds); i++)
        for (size_t b = 0; b < COUNT(buffers); b++) {
            int last = (int)length_of(&kinds[i]) - 1;

            fail_once(&kinds[i], 0, 0, buffers[b]);
            fail_once(&kinds[i], 130, 0, buffers[b]);
            fail_once(&kinds[i], 30, 3, buffers[b]);
            fail_once(&kinds[i], last, 0, buffers[b]);
            if (!kinds[i].small)
                fail_once(&kinds[i], 17777, 5, buffers[b]);
        }
}

/* Reading does not change anything, and what was asked for later is right. */
static void test_read_that_gives_up_is_an_error_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const kind *k = &kinds[i];
        int left = 2;
        hid_t dxpl = transfer(&left, 0), file, d = H5I_INVALID_HID, type = H5Tcopy(H5T_STD_U8LE);
        unsigned char values[WIDTH];
        herr_t status;

        remove(COW);
        if (k->compound) {
            H5Tclose(type);
            H5Pclose(dxpl);
            continue;
        }
        assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        make(file, k);
        assert_true(write_all(file, k, -1, -1, H5P_DEFAULT) >= 0 && (d = H5Dopen2(file, k->name, H5P_DEFAULT)) >= 0);
        H5E_BEGIN_TRY
        {
            status = H5Dread(d, type, H5S_ALL, H5S_ALL, dxpl, values);
        }
        H5E_END_TRY
        assert_true(status < 0 && left < 0);
        assert_true(H5Dclose(d) >= 0 && all_are(file, k, -1) && H5Fclose(file) >= 0);
        assert_true((file = open_version(1)) >= 0 && all_are(file, k, -1) && H5Fclose(file) >= 0);
        H5Tclose(type);
        H5Pclose(dxpl);
    }
}

/* Types between which there is no conversion at all. */
static void test_types_that_cannot_be_converted_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        hid_t type = H5Tcreate(H5T_OPAQUE, 4), file, d = H5I_INVALID_HID;
        static char bytes[4 * WIDTH];
        herr_t written, read;

        remove(COW);
        assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
        make(file, &kinds[i]);
        assert_true(write_all(file, &kinds[i], 5, -1, H5P_DEFAULT) >= 0);
        assert_true((d = H5Dopen2(file, kinds[i].name, H5P_DEFAULT)) >= 0);
        H5E_BEGIN_TRY
        {
            written = H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
            read = H5Dread(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
        }
        H5E_END_TRY
        assert_true(written < 0 && read < 0 && H5Dclose(d) >= 0 && all_are(file, &kinds[i], 5));
        assert_true(H5Fclose(file) >= 0 && (file = open_version(1)) >= 0 && all_are(file, &kinds[i], 5) &&
                    H5Fclose(file) >= 0);
        H5Tclose(type);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_that_gives_up_changes_each_chunk_wholly_or_not),
        cmocka_unit_test(test_read_that_gives_up_is_an_error_only),
        cmocka_unit_test(test_types_that_cannot_be_converted_are_refused),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(COW);
    remove(NATIVE);
    return status;
}
