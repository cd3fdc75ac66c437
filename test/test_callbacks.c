/* Functions of the program that HDF5 calls while it reads or writes a dataset, and that read another dataset of the file; and that
 * they are called. What native HDF5 does, the connector does. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COW    "test_callbacks_cow.h5"
#define NATIVE "test_callbacks_native.h5"
#define MANY   40000

static hid_t table = H5I_INVALID_HID; /* of integers: number i is 3 i */

/* What stands at PLACE, and what is all around it: as doubles, so that they are converted. */
static int look_up(hsize_t place)
{
    static double all[MANY];

    assert_true(H5Dread(table, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all) >= 0);
    for (size_t i = 0; i < MANY; i++)
        assert_true(all[i] == (double)i * 3);
    return (int)all[place];
}

static hid_t make(hid_t file, const char *name, hid_t type, hsize_t n, hid_t dcpl)
{
    hid_t space = H5Screate_simple(1, &n, NULL),
          set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);

    assert_true(set >= 0 && H5Sclose(space) >= 0);
    return set;
}

static hid_t begin(const char *name, hid_t fapl)
{
    hsize_t chunk = 500;
    hid_t file = (remove(name), H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, fapl)), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    int *values = malloc(MANY * sizeof *values);

    for (int i = 0; i < MANY; i++)
        values[i] = 3 * i;
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    table = make(file, "table", H5T_NATIVE_INT, MANY, dcpl);
    assert_true(H5Dwrite(table, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Pclose(dcpl) >= 0);
    free(values);
    return file;
}

static void end(hid_t file)
{
    assert_true(H5Dclose(table) >= 0 && H5Fclose(file) >= 0);
    table = H5I_INVALID_HID;
}

static void say_sum(listing *l, const char *what, const int values[], size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + (unsigned)values[i];
    say(l, "%s: %llu\n", what, (unsigned long long)sum);
}

static void compare(const char *what, void (*run)(const char *name, hid_t fapl, listing *l))
{
    listing found = {0}, native = {0};

    run(NATIVE, native_fapl, &native);
    run(COW, H5P_DEFAULT, &found);
    assert_true(same_text(what, &native, &found));
    free(found.data);
    free(native.data);
}

/* ---- conversions ---- */

#define POINTS 3000

/* What does not fit is a place in the table. */
static H5T_conv_ret_t too_large(H5T_conv_except_t what, hid_t from, hid_t to, void *value, void *result, void *context)
{
    double given;
    int found;
    (void)from;
    (void)to;
    (void)context;

    if (what != H5T_CONV_EXCEPT_RANGE_HI)
        return H5T_CONV_UNHANDLED;
    memcpy(&given, value, sizeof given);
    found = look_up((hsize_t)(given / 1e12));
    memcpy(result, &found, sizeof found);
    return H5T_CONV_HANDLED;
}

static void convert(const char *name, hid_t fapl, listing *l)
{
    static double values[20000];
    static int read[20000];
    static hsize_t points[POINTS];
    hsize_t chunk = 1000, some = POINTS;
    hid_t file = begin(name, fapl), dcpl = H5Pcreate(H5P_DATASET_CREATE), dxpl = H5Pcreate(H5P_DATASET_XFER), whole,
          real, space, memory = H5Screate_simple(1, &some, NULL);

    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = i % 977 == 5 ? 1e12 * (double)i : (double)i;
    for (size_t i = 0; i < POINTS; i++)
        points[i] = i * 7919 % COUNT(values);
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Pset_type_conv_cb(dxpl, too_large, NULL) >= 0);
    whole = make(file, "whole", H5T_NATIVE_INT, COUNT(values), dcpl);
    real = make(file, "real", H5T_NATIVE_DOUBLE, COUNT(values), dcpl);
    assert_true(H5Dwrite(whole, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, dxpl, values) >= 0);
    assert_true(H5Dread(whole, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0);
    say_sum(l, "written", read, COUNT(read));
    assert_true(H5Dwrite(real, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dread(real, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, read) >= 0);
    say_sum(l, "read", read, COUNT(read));
    assert_true((space = H5Dget_space(real)) >= 0 && H5Sselect_elements(space, H5S_SELECT_SET, POINTS, points) >= 0);
    assert_true(H5Dread(real, H5T_NATIVE_INT, memory, space, dxpl, read) >= 0);
    say_sum(l, "points read", read, POINTS);
    for (size_t i = 0; i < POINTS; i++)
        values[i] = i % 500 == 7 ? 1e12 * (double)(i + 2) : -(double)i;
    assert_true(H5Dwrite(whole, H5T_NATIVE_DOUBLE, memory, space, dxpl, values) >= 0);
    assert_true(H5Dread(whole, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0);
    say_sum(l, "points written", read, COUNT(read));
    assert_true(H5Dclose(whole) >= 0 && H5Dclose(real) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0 &&
                H5Pclose(dcpl) >= 0 && H5Pclose(dxpl) >= 0);
    end(file);
}

static void test_a_conversion_may_read_another_dataset(void **state)
{
    (void)state;
    compare("conversions", convert);
}

/* ---- memory of variable-length values ---- */

static void *take(size_t size, void *context)
{
    (void)context;
    assert_int_equal(look_up(7), 21);
    return malloc(size);
}

static void give(void *memory, void *context)
{
    (void)context;
    free(memory);
}

static void read_texts(const char *name, hid_t fapl, listing *l)
{
    char text[200][20], *given[200], *read[200] = {0};
    hsize_t chunk = 50, points[70], some = COUNT(points);
    hid_t file = begin(name, fapl), dcpl = H5Pcreate(H5P_DATASET_CREATE), dxpl = H5Pcreate(H5P_DATASET_XFER),
          type = H5Tcopy(H5T_C_S1), memory = H5Screate_simple(1, &some, NULL), set, space = H5I_INVALID_HID;

    for (size_t i = 0; i < COUNT(text); i++) {
        snprintf(text[i], sizeof text[i], "text %zu", i);
        given[i] = text[i];
    }
    for (size_t i = 0; i < COUNT(points); i++)
        points[i] = i * 37 % COUNT(text);
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 &&
                H5Pset_vlen_mem_manager(dxpl, take, NULL, give, NULL) >= 0);
    set = make(file, "texts", type, COUNT(text), dcpl);
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, given) >= 0 && (space = H5Dget_space(set)) >= 0);
    for (int round = 0; round < 2; round++) {
        hid_t selected = round == 0 ? H5S_ALL : space;
        size_t n = round == 0 ? COUNT(text) : COUNT(points);

        assert_true(round == 0 || H5Sselect_elements(space, H5S_SELECT_SET, COUNT(points), points) >= 0);
        assert_true(H5Dread(set, type, round == 0 ? H5S_ALL : memory, selected, dxpl, read) >= 0);
        for (size_t i = 0; i < n; i++) {
            say(l, "%s\n", read[i]);
            free(read[i]);
        }
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    }
    assert_true(H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0 && H5Tclose(type) >= 0 &&
                H5Pclose(dcpl) >= 0 && H5Pclose(dxpl) >= 0);
    end(file);
}

static void test_a_memory_manager_may_read_another_dataset(void **state)
{
    (void)state;
    compare("texts", read_texts);
}

/* ---- filters ---- */

#define FILTER  300
#define NUMBERS 3000000 /* more bytes than the chunk cache of h5cow has in this test, 4 MiB, many times */

static bool looking;

static size_t disguise(unsigned flags, size_t n, const unsigned values[], size_t size, size_t *room, void **bytes)
{
    static unsigned turn;
    unsigned char *p = *bytes;
    (void)flags;
    (void)n;
    (void)values;
    (void)room;

    if (!looking && table >= 0 && turn++ % 8 == 0) {
        looking = true;
        assert_int_equal(look_up(turn % MANY), (int)(turn % MANY) * 3);
        looking = false;
    }
    for (size_t i = 0; i < size; i++)
        p[i] ^= (unsigned char)(i + 1);
    return size;
}

static const H5Z_class2_t disguising = {H5Z_CLASS_T_VERS, FILTER, 1, 1, "disguise", NULL, NULL, disguise};

static void filter(const char *name, hid_t fapl, listing *l)
{
    int *values = malloc(NUMBERS * sizeof *values), *read = malloc(NUMBERS * sizeof *values);
    hsize_t chunk = 5000, start = 17, count = NUMBERS - 40, points[POINTS], some = POINTS;
    hid_t file = begin(name, fapl), dcpl = H5Pcreate(H5P_DATASET_CREATE), set, space,
          memory = H5Screate_simple(1, &some, NULL);

    for (int i = 0; i < NUMBERS; i++)
        values[i] = i * 7;
    for (size_t i = 0; i < POINTS; i++)
        points[i] = i * 10007 % NUMBERS;
    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Pset_filter(dcpl, FILTER, 0, 0, NULL) >= 0);
    set = make(file, "set", H5T_NATIVE_INT, NUMBERS, dcpl);
    assert_true((space = H5Dget_space(set)) >= 0);
    assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, space, space, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_true(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0);
    say(l, "all: %d\n", memcmp(values, read, NUMBERS * sizeof *values));
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, POINTS, points) >= 0);
    assert_true(H5Dread(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, read) >= 0);
    say_sum(l, "points", read, POINTS);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(set) >= 0 && (set = H5Dopen2(file, "set", H5P_DEFAULT)) >= 0);
    assert_true(H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read) >= 0);
    say_sum(l, "after points", read, NUMBERS);
    assert_true(H5Dclose(set) >= 0 && H5Sclose(space) >= 0 && H5Sclose(memory) >= 0 && H5Pclose(dcpl) >= 0);
    end(file);
    free(values);
    free(read);
}

static void test_a_filter_may_read_another_dataset(void **state)
{
    (void)state;
    assert_true(H5Zregister(&disguising) >= 0);
    compare("filters", filter);
    assert_true(H5Zunregister(FILTER) >= 0);
}

/* ---- transfer lists ---- */

typedef struct of_numbers {
    double number;
    char *text;
} of_numbers;

typedef struct of_integers {
    int number;
    char *text;
} of_integers;

/* HDF5 asks a transfer list once in a call: what the history reads before in the same call must not answer for it. */
static hid_t reopen(hid_t file, const char *name, hid_t fapl)
{
    assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(name, H5F_ACC_RDWR, fapl)) >= 0);
    return file;
}

static unsigned taken;

static void *count_taken(size_t size, void *context)
{
    (void)context;
    taken++;
    return malloc(size);
}

static int too_many;

static H5T_conv_ret_t seventy(H5T_conv_except_t what, hid_t from, hid_t to, void *value, void *result, void *context)
{
    int found = 70;
    (void)from;
    (void)to;
    (void)value;
    (void)context;

    if (what != H5T_CONV_EXCEPT_RANGE_HI)
        return H5T_CONV_UNHANDLED;
    too_many++;
    memcpy(result, &found, sizeof found);
    return H5T_CONV_HANDLED;
}

/* Elements in HDF5's heaps, which it converts and allocates while it reads and writes them. */
static void transfer_texts(const char *name, hid_t fapl, listing *l)
{
    static of_numbers numbers[2000];
    static of_integers integers[2000];
    static char text[2000][20], *texts[2000];
    hsize_t chunk = 500;
    hid_t file = (remove(name), H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, fapl)), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          dxpl = H5Pcreate(H5P_DATASET_XFER), string = H5Tcopy(H5T_C_S1),
          of_double = H5Tcreate(H5T_COMPOUND, sizeof(of_numbers)),
          of_int = H5Tcreate(H5T_COMPOUND, sizeof(of_integers)), set, space = H5I_INVALID_HID;

    assert_true(H5Tset_size(string, H5T_VARIABLE) >= 0 && H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    assert_true(H5Tinsert(of_double, "number", HOFFSET(of_numbers, number), H5T_NATIVE_DOUBLE) >= 0 &&
                H5Tinsert(of_double, "text", HOFFSET(of_numbers, text), string) >= 0 &&
                H5Tinsert(of_int, "number", HOFFSET(of_integers, number), H5T_NATIVE_INT) >= 0 &&
                H5Tinsert(of_int, "text", HOFFSET(of_integers, text), string) >= 0);
    assert_true(H5Pset_type_conv_cb(dxpl, seventy, NULL) >= 0 &&
                H5Pset_vlen_mem_manager(dxpl, count_taken, NULL, give, NULL) >= 0);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        snprintf(text[i], sizeof text[i], "text %zu", i);
        texts[i] = text[i];
        numbers[i] = (of_numbers){i % 7 == 3 ? 1e12 : (double)i, text[i]};
    }
    assert_true(H5Dclose(make(file, "compound", of_int, COUNT(numbers), dcpl)) >= 0 &&
                H5Dclose(make(file, "texts", string, COUNT(numbers), dcpl)) >= 0);
    for (int round = 0; round < 2; round++) {
        too_many = 0;
        file = reopen(file, name, fapl);
        assert_true((set = H5Dopen2(file, "compound", H5P_DEFAULT)) >= 0 && (space = H5Dget_space(set)) >= 0);
        assert_true(H5Dwrite(set, of_double, H5S_ALL, H5S_ALL, dxpl, numbers) >= 0);
        assert_true(H5Dread(set, of_int, H5S_ALL, H5S_ALL, H5P_DEFAULT, integers) >= 0);
        for (size_t i = 0; i < COUNT(integers); i++)
            say(l, "%d %s\n", integers[i].number, integers[i].text);
        say(l, "%d\n", too_many);
        assert_true(H5Treclaim(of_int, space, H5P_DEFAULT, integers) >= 0 && H5Sclose(space) >= 0 &&
                    H5Dclose(set) >= 0);
        assert_true((set = H5Dopen2(file, "texts", H5P_DEFAULT)) >= 0);
        assert_true(H5Dwrite(set, string, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0 && H5Dclose(set) >= 0);
        file = reopen(file, name, fapl);
        taken = 0;
        assert_true((set = H5Dopen2(file, "texts", H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(set, string, H5S_ALL, H5S_ALL, dxpl, texts) >= 0 && H5Dclose(set) >= 0);
        say(l, "taken %u\n", taken);
        for (size_t i = 0; i < COUNT(texts); i++) {
            assert_string_equal(texts[i], text[i]);
            free(texts[i]);
            texts[i] = text[i];
        }
    }
    assert_true(H5Fclose(file) >= 0 && H5Pclose(dcpl) >= 0 && H5Pclose(dxpl) >= 0 && H5Tclose(string) >= 0 &&
                H5Tclose(of_double) >= 0 && H5Tclose(of_int) >= 0);
}

static void test_conversions_and_memory_managers_are_asked_for_what_lies_in_heaps(void **state)
{
    (void)state;
    compare("in heaps", transfer_texts);
}

/* In one call a dataset that HDF5 keeps and one in a pool. */
static void transform_two(const char *name, hid_t fapl, listing *l)
{
    static int values[5000], read[2][5000];
    hsize_t chunk = 100, n[] = {5000, 20};
    hid_t file = (remove(name), H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, fapl)), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          dxpl = H5Pcreate(H5P_DATASET_XFER), types[] = {H5T_NATIVE_INT, H5T_NATIVE_INT}, all[] = {H5S_ALL, H5S_ALL};

    assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0 && H5Pset_data_transform(dxpl, "x*2") >= 0);
    for (int i = 0; i < 5000; i++)
        values[i] = i;
    for (int i = 0; i < 2; i++) {
        hid_t set = make(file, i == 0 ? "large" : "small", H5T_NATIVE_INT, n[i], i == 0 ? dcpl : H5P_DEFAULT);
        assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(set) >= 0);
    }
    for (int round = 0; round < 4; round++) {
        hid_t sets[2];
        void *to[] = {read[0], read[1]};
        const void *from[] = {values, values};

        file = reopen(file, name, fapl);
        assert_true((sets[round % 2] = H5Dopen2(file, "large", H5P_DEFAULT)) >= 0 &&
                    (sets[1 - round % 2] = H5Dopen2(file, "small", H5P_DEFAULT)) >= 0);
        if (round < 2)
            assert_true(H5Dread_multi(2, sets, types, all, all, dxpl, to) >= 0);
        else
            assert_true(H5Dwrite_multi(2, sets, types, all, all, dxpl, from) >= 0);
        say(l, "%d: %d %d\n", round, read[0][7], read[1][7]);
        for (int i = 0; i < 2; i++) {
            assert_true(H5Dread(sets[i], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, read[i]) >= 0);
            say(l, "%d %d\n", i, read[i][7]);
            assert_true(H5Dclose(sets[i]) >= 0);
        }
    }
    assert_true(H5Fclose(file) >= 0 && H5Pclose(dcpl) >= 0 && H5Pclose(dxpl) >= 0);
}

static void test_a_data_transform_is_that_of_the_programs_elements_alone(void **state)
{
    (void)state;
    compare("transformed", transform_two);
}

/* ---- commits in the middle ---- */

static hid_t flushed = H5I_INVALID_HID;

static H5T_conv_ret_t flush_then_seventy(H5T_conv_except_t what, hid_t from, hid_t to, void *value, void *result,
                                         void *context)
{
    if (what == H5T_CONV_EXCEPT_RANGE_HI && flushed >= 0)
        assert_true(H5Fflush(flushed, H5F_SCOPE_GLOBAL) >= 0);
    return seventy(what, from, to, value, result, context);
}

/* What is half written is in no version, and in the head when the call is over. */
static void flush_halfway(const char *name, hid_t fapl, listing *l)
{
    static of_numbers numbers[1000];
    static of_integers integers[1000];
    static char text[1000][32];
    hsize_t chunk = 250;
    hid_t file = (remove(name), H5Fcreate(name, H5F_ACC_EXCL, H5P_DEFAULT, fapl)), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          dxpl = H5Pcreate(H5P_DATASET_XFER), string = H5Tcopy(H5T_C_S1),
          of_double = H5Tcreate(H5T_COMPOUND, sizeof(of_numbers)),
          of_int = H5Tcreate(H5T_COMPOUND, sizeof(of_integers)), set, space = H5I_INVALID_HID;

    assert_true(H5Tset_size(string, H5T_VARIABLE) >= 0 && H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    assert_true(H5Tinsert(of_double, "number", HOFFSET(of_numbers, number), H5T_NATIVE_DOUBLE) >= 0 &&
                H5Tinsert(of_double, "text", HOFFSET(of_numbers, text), string) >= 0 &&
                H5Tinsert(of_int, "number", HOFFSET(of_integers, number), H5T_NATIVE_INT) >= 0 &&
                H5Tinsert(of_int, "text", HOFFSET(of_integers, text), string) >= 0);
    assert_true(H5Pset_type_conv_cb(dxpl, flush_then_seventy, NULL) >= 0);
    set = make(file, "compound", of_int, COUNT(numbers), dcpl);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT(numbers); i++) {
            snprintf(text[i], sizeof text[i], "text %d %zu", round, i);
            numbers[i] = (of_numbers){i % 97 == 3 ? 1e12 : (double)i + round, text[i]};
        }
        too_many = 0;
        flushed =
            fapl == H5P_DEFAULT ? file : H5I_INVALID_HID; /* natively HDF5 2 ends the program there (an assertion) */
        assert_true(H5Dwrite(set, of_double, H5S_ALL, H5S_ALL, dxpl, numbers) >= 0);
        if (round > 0) {
            assert_true(H5Dclose(set) >= 0);
            file = reopen(file, name, fapl);
            assert_true((set = H5Dopen2(file, "compound", H5P_DEFAULT)) >= 0);
        }
        assert_true((space = H5Dget_space(set)) >= 0);
        assert_true(H5Dread(set, of_int, H5S_ALL, H5S_ALL, H5P_DEFAULT, integers) >= 0);
        for (size_t i = 0; i < COUNT(integers); i++)
            say(l, "%d %s\n", integers[i].number, integers[i].text);
        say(l, "%d\n", too_many);
        assert_true(H5Treclaim(of_int, space, H5P_DEFAULT, integers) >= 0 && H5Sclose(space) >= 0);
    }
    assert_true(H5Dclose(set) >= 0 && H5Fclose(file) >= 0 && H5Pclose(dcpl) >= 0 && H5Pclose(dxpl) >= 0 &&
                H5Tclose(string) >= 0 && H5Tclose(of_double) >= 0 && H5Tclose(of_int) >= 0);
}

static void test_a_conversion_may_flush(void **state)
{
    (void)state;
    compare("flushed", flush_halfway);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_conversion_may_read_another_dataset),
        cmocka_unit_test(test_a_memory_manager_may_read_another_dataset),
        cmocka_unit_test(test_a_filter_may_read_another_dataset),
        cmocka_unit_test(test_conversions_and_memory_managers_are_asked_for_what_lies_in_heaps),
        cmocka_unit_test(test_a_data_transform_is_that_of_the_programs_elements_alone),
        cmocka_unit_test(test_a_conversion_may_flush),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    remove(COW);
    remove(NATIVE);
    return status;
}
