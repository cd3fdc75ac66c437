/* What a program may ask of a dataset by its property lists (H5Ppublic.h: creation, access, transfer; H5Zpublic.h) and of
 * the calls on datasets (H5Dpublic.h), done twice: natively, and through the connector. Each test is a program that writes
 * down what every call answered and what it read; the two texts must be the same. */
#include "through.h"

#include <stdlib.h>
#include <string.h>

/* One of the two: where the program works, and what it saw. */
typedef struct side {
    bool native;
    hid_t fapl;
    char path[64];
    listing text;
    hid_t file;
} side;

/* Write down what EXPRESSION is. */
#define ASK(expression) say(&s->text, "%s: %lld\n", #expression, (long long)(expression))
/* Only whether it is an id, or a success. */
#define WORKS(expression) say(&s->text, "%s: %s\n", #expression, (expression) >= 0 ? "works" : "fails")

static void create(side *s)
{
    s->file = H5Fcreate(s->path, H5F_ACC_TRUNC, H5P_DEFAULT, s->fapl);
    WORKS(s->file);
}

static void close_file(side *s)
{
    WORKS(H5Fclose(s->file));
}

static void reopen(side *s)
{
    WORKS(H5Fclose(s->file));
    s->file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
    WORKS(s->file);
}

/* PROGRAM natively and through the connector. */
static void both(const char *name, void (*program)(side *))
{
    side one = {.native = true, .fapl = native_fapl}, two = {.fapl = H5P_DEFAULT};

    snprintf(one.path, sizeof one.path, "properties-native.h5");
    snprintf(two.path, sizeof two.path, "properties.h5");
    remove(one.path);
    remove(two.path);
    H5E_BEGIN_TRY
    {
        program(&one);
        program(&two);
    }
    H5E_END_TRY
    assert_true(same_text(name, &one.text, &two.text));
    free(one.text.data);
    free(two.text.data);
    remove(one.path);
    remove(two.path);
}

static hid_t chunked(hsize_t size)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

    H5Pset_chunk(dcpl, 1, &size);
    return dcpl;
}

static hid_t line(hsize_t size, hsize_t most)
{
    return H5Screate_simple(1, &size, &most);
}

static void say_ints(side *s, const char *what, const int *values, size_t n)
{
    say(&s->text, "%s:", what);
    for (size_t i = 0; i < n; i++)
        say(&s->text, " %d", values[i]);
    say(&s->text, "\n");
}

/* What can be asked of how a dataset is stored. ADDRESSES: whether there are any. */
static void say_storage(side *s, hid_t dataset)
{
    H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
    hsize_t chunks = 0, size, offset[H5S_MAX_RANK];
    unsigned mask;
    haddr_t address;
    hid_t space = H5Dget_space(dataset);
    int rank = H5Sget_simple_extent_ndims(space);

    say(&s->text, "storage %llu, ", (unsigned long long)H5Dget_storage_size(dataset));
    say(&s->text, "status %d", H5Dget_space_status(dataset, &status));
    say(&s->text, " %d, ", status);
    say(&s->text, "chunks %d", H5Dget_num_chunks(dataset, H5S_ALL, &chunks));
    say(&s->text, " %llu\n", (unsigned long long)chunks);
    for (hsize_t i = 0; i < chunks; i++) {
        say(&s->text, "  chunk %d at", H5Dget_chunk_info(dataset, H5S_ALL, i, offset, &mask, &address, &size));
        for (int d = 0; d < rank; d++)
            say(&s->text, " %llu", (unsigned long long)offset[d]);
        say(&s->text, ": mask %x, %llu bytes\n", mask, (unsigned long long)size);
    }
    H5Sclose(space);
}

/* ---- more than 2^64 elements ---- */

static const hsize_t huge[3] = {1804289383, 846930886, 1681692777};

/* Natively such a dataset can be made, described and read, but nothing can be written to it (its number of elements, modulo
 * 2^64, is taken for an error). */
static void program_a_dataset_of_more_than_2_64_elements_is_made_and_opened_again(side *s)
{
    const hsize_t chunk[3] = {1024, 1024, 64}, unlimited[3] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED},
                  far[3] = {1804289382, 846930885, 1681692776};
    const float fill = 7;
    hsize_t one = 1, extent[3] = {0};

    for (int most = 0; most < 2; most++) {
        hid_t space = H5Screate_simple(3, huge, most ? unlimited : NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset,
              memory = H5Screate_simple(1, &one, NULL);
        float value = 1;

        create(s);
        H5Pset_chunk(dcpl, 3, chunk);
        H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill);
        dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        WORKS(dataset);
        say_storage(s, dataset);
        ASK(H5Dclose(dataset));
        reopen(s);
        dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
        WORKS(dataset);
        say_storage(s, dataset);
        H5Sselect_elements(space, H5S_SELECT_SET, 1, far);
        ASK(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, &value));
        say(&s->text, "%g\n", value);
        H5Sclose(space);
        space = H5Dget_space(dataset);
        ASK(H5Sget_simple_extent_dims(space, extent, NULL));
        say(&s->text, "%llu %llu %llu\n", (unsigned long long)extent[0], (unsigned long long)extent[1],
            (unsigned long long)extent[2]);
        ASK(H5Dclose(dataset));
        ASK(H5Ldelete(s->file, "d", H5P_DEFAULT));
        close_file(s);
        H5Sclose(space);
        H5Sclose(memory);
        H5Pclose(dcpl);
    }
}
static void test_a_dataset_of_more_than_2_64_elements_is_made_and_opened_again(void **state)
{
    (void)state;
    both("a_dataset_of_more_than_2_64_elements_is_made_and_opened_again",
         program_a_dataset_of_more_than_2_64_elements_is_made_and_opened_again);
}

static float at(hid_t file, const hsize_t place[3])
{
    hsize_t one = 1;
    hid_t dataset = H5Dopen2(file, "d", H5P_DEFAULT), space = H5Dget_space(dataset),
          memory = H5Screate_simple(1, &one, NULL);
    float value = -1;

    H5Sselect_elements(space, H5S_SELECT_SET, 1, place);
    H5E_BEGIN_TRY
    {
        if (H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, &value) < 0)
            value = -2;
    }
    H5E_END_TRY
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
    return value;
}

/* Points, a box and a union of boxes in the far corners, in chunks that have no number of 64 bits; resizing; versions. */
static void test_far_corners_of_a_huge_dataset_are_written_and_read(void **state)
{
    const hsize_t points[4][3] = {{0, 0, 0},
                                  {1804289382, 846930885, 1681692776},
                                  {1000000000, 5, 1681692776},
                                  {0, 0, 0}},
                  corner[3] = {1804289380, 846930880, 1681692770}, box[3] = {3, 2, 2}, single[3] = {1, 1, 1},
                  near[3] = {1804289370, 846930870, 1681692760},
                  unlimited[3] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED},
                  beyond[3] = {1804289381, 846930886, (hsize_t)1 << 62}, last[3] = {0, 0, ((hsize_t)1 << 62) - 1};
    const hsize_t chunks[2][3] = {{1, 1, 1}, {64, 8, 1024}};
    const float in[13] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, fill = -5;
    (void)state;

    for (int c = 0; c < 2; c++) {
        float out[13] = {0};
        hsize_t four = 4, twelve = 12, thirteen = 13, count = 0, offset[3], size;
        unsigned mask;
        haddr_t address;
        hid_t file = H5Fcreate("huge.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
              dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(3, huge, unlimited),
              memory = H5Screate_simple(1, &four, NULL), dataset;

        H5Pset_chunk(dcpl, 3, chunks[c]);
        H5Pset_fill_value(dcpl, H5T_NATIVE_FLOAT, &fill);
        dataset = H5Dcreate2(file, "d", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        assert_true(dataset >= 0);
        assert_true(H5Sselect_elements(space, H5S_SELECT_SET, 4, points[0]) >= 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, in) >= 0);
        assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, out) >= 0);
        assert_true(out[0] == 4 && out[1] == 2 && out[2] == 3 && out[3] == 4); /* the later of two at one place */
        assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);

        file = H5Fopen("huge.h5", H5F_ACC_RDWR, H5P_DEFAULT);
        dataset = H5Dopen2(file, "d", H5P_DEFAULT);
        H5Sclose(memory);
        memory = H5Screate_simple(1, &twelve, NULL);
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, corner, NULL, box, NULL) >= 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, in) >= 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, out) >= 0);
        assert_true(memcmp(in, out, sizeof *in * 12) == 0);
        H5Sclose(memory);
        memory = H5Screate_simple(1, &thirteen, NULL);
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, near, NULL, single, NULL) >= 0);
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_OR, corner, NULL, box, NULL) >= 0);
        assert_true(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, in) >= 0);
        assert_true(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, out) >= 0);
        assert_true(memcmp(in, out, sizeof in) == 0);
        assert_true(H5Dget_num_chunks(dataset, H5S_ALL, &count) >= 0 && count == (c == 0 ? 16 : 4));
        for (hsize_t i = 0, before = 0; i < count; i++) {
            assert_true(H5Dget_chunk_info(dataset, H5S_ALL, i, offset, &mask, &address, &size) >= 0);
            assert_true(offset[0] >= before && offset[0] < huge[0] && offset[1] < huge[1] && offset[2] < huge[2]);
            before = offset[0];
            assert_true(H5Dget_chunk_storage_size(dataset, offset, &size) >= 0 &&
                        size == 4 * chunks[c][0] * chunks[c][1] * chunks[c][2]);
        }
        assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
        assert_true(H5Dset_extent(dataset, beyond) >= 0);
        assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);

        file = H5Fopen("huge.h5", H5F_ACC_RDWR, H5P_DEFAULT);
        assert_true(at(file, points[0]) == 4 && at(file, points[1]) == -2 && at(file, corner) == 2 &&
                    at(file, last) == fill);
        dataset = H5Dopen2(file, "d", H5P_DEFAULT);
        assert_true(H5Dset_extent(dataset, single) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
        file = H5Fopen("huge.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(at(file, points[0]) == 4 && at(file, points[1]) == 2 && at(file, corner) == fill);
        assert_true(H5Fclose(file) >= 0);
        file = H5Fopen("huge.h5@2", H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(at(file, points[0]) == 4 && at(file, corner) == 2 && at(file, last) == fill);
        assert_true(H5Fclose(file) >= 0);
        file = H5Fopen("huge.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
        assert_true(at(file, points[0]) == 4 && at(file, corner) == -2);
        assert_true(H5Fclose(file) >= 0);
        H5Sclose(memory);
        H5Sclose(space);
        H5Pclose(dcpl);
        remove("huge.h5");
    }
}

/* ---- filters that are the test's own ---- */

enum {
    FAILS = 400,
    FAILS_ONCE = 401,
    REFUSES = 402,
    CANNOT_TELL = 403,
    LOCAL_FAILS = 404,
    DECODES_ONLY = 405,
    COUNTS = 406
};

static int filter_calls, fail_next;

/* Adds one to each byte. */
static size_t shift_bytes(unsigned flags, size_t bytes, void **buffer)
{
    unsigned char *p = *buffer;

    filter_calls++;
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(flags & H5Z_FLAG_REVERSE ? p[i] - 1 : p[i] + 1);
    return bytes;
}

static size_t filter_works(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room,
                           void **buffer)
{
    (void)count;
    (void)values;
    (void)room;
    return shift_bytes(flags, bytes, buffer);
}

/* Refuses chunks that begin with a negative number, when writing. */
static size_t filter_fails(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room,
                           void **buffer)
{
    (void)count;
    (void)values;
    (void)room;
    if (!(flags & H5Z_FLAG_REVERSE) && *(int *)*buffer < 0)
        return 0;
    return shift_bytes(flags, bytes, buffer);
}

static size_t filter_fails_once(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *room,
                                void **buffer)
{
    (void)count;
    (void)values;
    (void)room;
    if (fail_next > 0 && fail_next-- > 0)
        return 0;
    return shift_bytes(flags, bytes, buffer);
}

static htri_t says_no(hid_t dcpl, hid_t type, hid_t space)
{
    (void)dcpl;
    (void)type;
    (void)space;
    return 0;
}

static htri_t fails_to_say(hid_t dcpl, hid_t type, hid_t space)
{
    (void)dcpl;
    (void)type;
    (void)space;
    return -1;
}

static herr_t no_local(hid_t dcpl, hid_t type, hid_t space)
{
    (void)dcpl;
    (void)type;
    (void)space;
    return -1;
}

static const H5Z_class2_t classes[] = {
    {H5Z_CLASS_T_VERS, FAILS, 1, 1, "fails", NULL, NULL, filter_fails},
    {H5Z_CLASS_T_VERS, FAILS_ONCE, 1, 1, "fails once", NULL, NULL, filter_fails_once},
    {H5Z_CLASS_T_VERS, REFUSES, 1, 1, "refuses", says_no, NULL, filter_works},
    {H5Z_CLASS_T_VERS, CANNOT_TELL, 1, 1, "cannot tell", fails_to_say, NULL, filter_works},
    {H5Z_CLASS_T_VERS, LOCAL_FAILS, 1, 1, "local fails", NULL, no_local, filter_works},
    {H5Z_CLASS_T_VERS, DECODES_ONLY, 0, 1, "decodes only", NULL, NULL, filter_works},
    {H5Z_CLASS_T_VERS, COUNTS, 1, 1, "counts", NULL, NULL, filter_works},
};

static void register_filters(void)
{
    for (size_t i = 0; i < COUNT(classes); i++)
        H5Zregister(&classes[i]);
}

/* ---- creating with filters ---- */

static void add_filter(hid_t dcpl, int filter, unsigned flags)
{
    const unsigned szip[2] = {H5_SZIP_NN_OPTION_MASK, 8};

    switch (filter) {
    case H5Z_FILTER_SCALEOFFSET:
        H5Pset_scaleoffset(dcpl, H5Z_SO_INT, 0);
        H5Pmodify_filter(dcpl, filter, flags, 0, NULL);
        break;
    case H5Z_FILTER_SZIP:
        H5Pset_szip(dcpl, szip[0], szip[1]);
        break;
    case H5Z_FILTER_DEFLATE:
        H5Pset_filter(dcpl, filter, flags, 1, (unsigned[]){1});
        break;
    default:
        H5Pset_filter(dcpl, filter, flags, 0, NULL);
    }
}

static hid_t type_number(int which)
{
    static const hsize_t three = 3;
    hid_t type;

    switch (which) {
    case 0:
        return H5Tcopy(H5T_NATIVE_INT);
    case 1:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case 2:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, H5T_VARIABLE);
        return type;
    case 3:
        return H5Tvlen_create(H5T_NATIVE_INT);
    case 4:
        return H5Tcreate(H5T_OPAQUE, 7);
    case 5:
        return H5Tarray_create2(H5T_NATIVE_SHORT, 1, &three);
    default:
        type = H5Tcreate(H5T_COMPOUND, 16);
        H5Tinsert(type, "a", 0, H5T_NATIVE_INT);
        H5Tinsert(type, "b", 8, H5T_NATIVE_DOUBLE);
        return type;
    }
}

static void program_filters_are_refused_where_native_refuses_them(side *s)
{
    const int filters[] = {H5Z_FILTER_DEFLATE,
                           H5Z_FILTER_SHUFFLE,
                           H5Z_FILTER_FLETCHER32,
                           H5Z_FILTER_SZIP,
                           H5Z_FILTER_NBIT,
                           H5Z_FILTER_SCALEOFFSET,
                           32000,
                           499,
                           FAILS,
                           REFUSES,
                           CANNOT_TELL,
                           LOCAL_FAILS,
                           DECODES_ONLY,
                           COUNTS};
    const H5D_layout_t layouts[] = {H5D_COMPACT, H5D_CONTIGUOUS, H5D_CHUNKED};
    char name[80];

    register_filters();
    create(s);
    for (size_t f = 0; f < COUNT(filters); f++)
        for (size_t l = 0; l < COUNT(layouts); l++)
            for (int optional = 0; optional < 2; optional++)
                for (int t = 0; t < 7; t++)
                    for (int shape = 0; shape < 3; shape++) {
                        hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), type = type_number(t), dataset, got,
                              space = shape == 0   ? H5Screate_simple(1, (hsize_t[]){2000}, NULL)
                                      : shape == 1 ? H5Screate(H5S_SCALAR)
                                                   : H5Screate_simple(2, (hsize_t[]){50, 4}, NULL);

                        H5Pset_layout(dcpl, layouts[l]);
                        if (layouts[l] == H5D_CHUNKED)
                            H5Pset_chunk(dcpl, shape == 2 ? 2 : 1,
                                         shape == 2 ? (hsize_t[]){7, 3} : (hsize_t[]){100, 0});
                        add_filter(dcpl, filters[f], optional ? H5Z_FLAG_OPTIONAL : H5Z_FLAG_MANDATORY);
                        snprintf(name, sizeof name, "%d %d %d %d %d", filters[f], layouts[l], optional, t, shape);
                        dataset = H5Dcreate2(s->file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
                        say(&s->text, "%s: %s", name, dataset >= 0 ? "made" : "refused");
                        if (dataset >= 0) {
                            unsigned flags = 99, values[20] = {0}, config = 99;
                            size_t n = 20;
                            got = H5Dget_create_plist(dataset);
                            say(&s->text, ", %d filters, layout %d", H5Pget_nfilters(got), H5Pget_layout(got));
                            if (H5Pget_nfilters(got) > 0) {
                                say(&s->text, ", filter %d",
                                    H5Pget_filter2(got, 0, &flags, &n, values, 0, NULL, &config));
                                say(&s->text, " flags %x config %x:", flags, config);
                                for (size_t i = 0; i < n && i < 20; i++)
                                    say(&s->text, " %u", values[i]);
                            }
                            say(&s->text, " all available %d", H5Pall_filters_avail(got));
                            H5Pclose(got);
                            H5Dclose(dataset);
                        }
                        say(&s->text, "\n");
                        say(&s->text, "is there: %d\n", H5Lexists(s->file, name, H5P_DEFAULT));
                        H5Sclose(space);
                        H5Tclose(type);
                        H5Pclose(dcpl);
                    }
    close_file(s);
}
static void test_filters_are_refused_where_native_refuses_them(void **state)
{
    (void)state;
    both("filters_are_refused_where_native_refuses_them", program_filters_are_refused_where_native_refuses_them);
}

/* ---- filters that fail ---- */

static H5Z_cb_return_t goes_on(H5Z_filter_t filter, void *buffer, size_t size, void *data)
{
    (void)buffer;
    say(data, "  callback: filter %d, %zu bytes\n", filter, size);
    return H5Z_CB_CONT;
}

static H5Z_cb_return_t gives_up(H5Z_filter_t filter, void *buffer, size_t size, void *data)
{
    (void)filter;
    (void)buffer;
    (void)size;
    (void)data;
    return H5Z_CB_FAIL;
}

/* CALLBACK: 0 none, 1 goes on, 2 gives up. */
static void write_negative(side *s, unsigned flags, int callback, bool flush, bool tiny)
{
    int values[40], out[40] = {0};
    hid_t dcpl = chunked(10), dxpl = H5Pcreate(H5P_DATASET_XFER), space = line(40, tiny ? 40 : H5S_UNLIMITED), dataset,
          none = line(40, 40), dapl = H5Pcreate(H5P_DATASET_ACCESS);

    say(&s->text, "-- flags %u, callback %d, flush %d, tiny %d\n", flags, callback, flush, tiny);
    if (flags == H5Z_FLAG_MANDATORY) /* so that chunks are filtered in the call that has the callback */
        H5Pset_chunk_cache(dapl, 0, 0, 1);
    for (int i = 0; i < 40; i++)
        values[i] = i / 10 == 2 ? -i : i;
    H5Pset_filter(dcpl, FAILS, flags, 0, NULL);
    if (callback > 0)
        H5Pset_filter_callback(dxpl, callback == 1 ? goes_on : gives_up, &s->text);
    create(s);
    dataset = H5Dcreate2(s->file, "other", H5T_NATIVE_INT, none, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    ASK(H5Dclose(dataset));
    dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, dapl);
    ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, values));
    if (flush)
        ASK(H5Dflush(dataset));
    if (callback == 1 || (flags & H5Z_FLAG_OPTIONAL))
        say_storage(s, dataset);
    ASK(H5Dclose(dataset));
    WORKS(H5Fclose(s->file));
    s->file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
    WORKS(s->file);
    if (s->file >= 0) {
        dataset = H5Dopen2(s->file, "other", H5P_DEFAULT);
        ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
        say_ints(s, "other", out, 40);
        ASK(H5Dclose(dataset));
        dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
        WORKS(dataset);
        if (dataset >= 0 && (callback == 1 || (flags & H5Z_FLAG_OPTIONAL))) {
            say_storage(s, dataset);
            ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, out));
            say_ints(s, "read", out, 40);
        }
        if (dataset >= 0)
            ASK(H5Dclose(dataset));
        close_file(s);
    }
    H5Sclose(space);
    H5Sclose(none);
    H5Pclose(dapl);
    H5Pclose(dxpl);
    H5Pclose(dcpl);
}

static void program_optional_filters_that_fail_are_left_out(side *s)
{
    register_filters();
    for (int flush = 0; flush < 2; flush++)
        for (int callback = 0; callback < 3; callback++)
            for (int tiny = 0; tiny < 2; tiny++)
                write_negative(s, H5Z_FLAG_OPTIONAL, callback, flush, tiny);
}
static void test_optional_filters_that_fail_are_left_out(void **state)
{
    (void)state;
    both("optional_filters_that_fail_are_left_out", program_optional_filters_that_fail_are_left_out);
}

static void program_mandatory_filters_that_fail_ask_the_callback(side *s)
{
    register_filters();
    for (int flush = 0; flush < 2; flush++)
        for (int tiny = 0; tiny < 2; tiny++)
            for (int callback = 0; callback < 3; callback++)
                write_negative(s, H5Z_FLAG_MANDATORY, callback, flush, tiny);
}
static void test_mandatory_filters_that_fail_ask_the_callback(void **state)
{
    (void)state;
    both("mandatory_filters_that_fail_ask_the_callback", program_mandatory_filters_that_fail_ask_the_callback);
}

/* ---- damaged chunks ---- */

/* One byte of the only chunk is another one, in the file itself. */
static void damage(side *s, const int *values, size_t n)
{
    FILE *f = fopen(s->path, "r+b");
    static unsigned char bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, f);
    unsigned char *found = memmem(bytes, size, values, n * sizeof *values);

    say(&s->text, "found: %d\n", found != NULL);
    while (found != NULL) {
        fseek(f, found - bytes + 4, SEEK_SET);
        fputc(0x77, f);
        found = memmem(found + 1, size - (size_t)(found + 1 - bytes), values, n * sizeof *values);
    }
    fclose(f);
}

static void program_damage_is_read_when_error_detection_is_off(side *s)
{
    int values[100], out[100];
    hsize_t offset = 0;
    unsigned mask;

    for (int round = 0; round < 6; round++) {
        int more = round % 3;
        hid_t dcpl = chunked(100), dxpl = H5Pcreate(H5P_DATASET_XFER),
              space = line(100, round < 3 ? 100 : H5S_UNLIMITED), dataset;
        unsigned char raw[500];

        for (int i = 0; i < 100; i++)
            values[i] = 0x01020304 + 1000 * i;
        register_filters();
        say(&s->text, "-- %d\n", round);
        if (more == 1)
            H5Pset_filter(dcpl, FAILS_ONCE, 0, 0, NULL);
        if (more < 2)
            H5Pset_fletcher32(dcpl);
        create(s);
        dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        ASK(H5Dclose(dataset));
        close_file(s);
        if (more == 1)
            for (int i = 0; i < 100; i++)
                for (unsigned char *p = (unsigned char *)&values[i]; p < (unsigned char *)&values[i] + 4; p++)
                    ++*p;
        damage(s, values, 100);
        s->file = H5Fopen(s->path, H5F_ACC_RDWR, s->fapl);
        WORKS(s->file);
        dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
        WORKS(dataset);
        if (more < 2)
            ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
        ASK(H5Pset_edc_check(dxpl, H5Z_DISABLE_EDC));
        ASK(H5Pget_edc_check(dxpl));
        memset(out, 0, sizeof out);
        ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, out));
        say_ints(s, "read", out, 100);
        if (more < 2) {
            say(&s->text, "raw: %d\n", H5Dread_chunk(dataset, dxpl, &offset, &mask, raw));
            say(&s->text, "mask %x\n", mask);
        }
        /* A partial write reads the chunk. */
        H5Sselect_elements(space, H5S_SELECT_SET, 1, (hsize_t[]){50});
        {
            hid_t one = line(1, 1);
            int fifty = 5000;
            ASK(H5Dread(dataset, H5T_NATIVE_INT, one, space, dxpl, &fifty));
            say(&s->text, "%d\n", fifty);
            H5Sclose(one);
        }
        ASK(H5Dclose(dataset));
        close_file(s);
        H5Sclose(space);
        H5Pclose(dxpl);
        H5Pclose(dcpl);
    }
}
static void test_damage_is_read_when_error_detection_is_off(void **state)
{
    (void)state;
    both("damage_is_read_when_error_detection_is_off", program_damage_is_read_when_error_detection_is_off);
}

/* A filter that cannot decode: the callback decides. */
static void program_filters_that_fail_to_decode_ask_the_callback(side *s)
{
    int values[20], out[20];

    register_filters();
    for (int callback = 0; callback < 3; callback++)
        for (int which = 0; which < 4; which++) {
            hid_t dcpl = chunked(10), dxpl = H5Pcreate(H5P_DATASET_XFER), dataset,
                  space = line(20, which < 2 ? 20 : H5S_UNLIMITED);
            bool deflate = which % 2 != 0;

            for (int i = 0; i < 20; i++)
                values[i] = i;
            H5Pset_filter(dcpl, FAILS_ONCE, 0, 0, NULL);
            if (deflate)
                H5Pset_deflate(dcpl, 1);
            if (callback > 0)
                ASK(H5Pset_filter_callback(dxpl, callback == 1 ? goes_on : gives_up, &s->text));
            create(s);
            dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
            ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
            ASK(H5Dclose(dataset));
            reopen(s);
            dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
            fail_next = 1;
            memset(out, 0, sizeof out);
            ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, out));
            if (callback == 1)
                say_ints(s, "read", out, 20);
            fail_next = 0;
            ASK(H5Dclose(dataset));
            reopen(s);
            dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
            ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, out));
            say_ints(s, "again", out, 20);
            ASK(H5Dclose(dataset));
            close_file(s);
            H5Sclose(space);
            H5Pclose(dxpl);
            H5Pclose(dcpl);
        }
}
static void test_filters_that_fail_to_decode_ask_the_callback(void **state)
{
    (void)state;
    both("filters_that_fail_to_decode_ask_the_callback", program_filters_that_fail_to_decode_ask_the_callback);
}

/* H5Zunregister while datasets are open, before and after reading. */
static void program_filters_that_go_away(side *s)
{
    int values[30], out[30] = {0};
    hid_t dcpl = chunked(10), space = line(30, 30), dataset;

    register_filters();
    for (int i = 0; i < 30; i++)
        values[i] = i;
    H5Pset_filter(dcpl, COUNTS, 0, 0, NULL);
    create(s);
    dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    WORKS(H5Zunregister(COUNTS)); /* a dataset of this filter is open */
    ASK(H5Zfilter_avail(COUNTS));
    ASK(H5Dclose(dataset));
    WORKS(H5Zunregister(COUNTS));
    ASK(H5Zfilter_avail(COUNTS));
    dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
    WORKS(dataset);
    ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
    ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    register_filters();
    ASK(H5Zfilter_avail(COUNTS));
    ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
    say_ints(s, "read", out, 30);
    values[3] = 33;
    ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    ASK(H5Dclose(dataset));
    reopen(s);
    dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
    ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
    say_ints(s, "read", out, 30);
    ASK(H5Dclose(dataset));
    close_file(s);
    H5Sclose(space);
    H5Pclose(dcpl);
}
static void test_filters_that_go_away(void **state)
{
    (void)state;
    both("filters_that_go_away", program_filters_that_go_away);
}

/* ---- edge chunks without filters ---- */

static void say_chunk(side *s, hid_t dataset, hsize_t x, hsize_t y)
{
    const hsize_t offset[2] = {x, y};
    unsigned char bytes[400];
    unsigned mask = 77;
    hsize_t size = 0;

    say(&s->text, "chunk %d %d: ", (int)x, (int)y);
    say(&s->text, "size %d", H5Dget_chunk_storage_size(dataset, offset, &size));
    say(&s->text, " %d ", (int)size);
    memset(bytes, 0, sizeof bytes);
    if (size > 0 && size < sizeof bytes)
        say(&s->text, "read %d", H5Dread_chunk(dataset, H5P_DEFAULT, offset, &mask, bytes));
    say(&s->text, " mask %x first bytes %x %x %x %x\n", mask, bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* Bytes of an edge chunk are elements where it is not filtered. */
static void write_edge(side *s, hid_t dataset, bool plain)
{
    static int out[40 * 40];
    int chunk[50];

    for (int i = 0; i < 50; i++)
        chunk[i] = 1000 + i;
    if (plain)
        ASK(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, (hsize_t[]){20, 10}, sizeof chunk, chunk));
    say_chunk(s, dataset, 20, 10);
    memset(out, 0, sizeof out);
    ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
    say_ints(s, "last row", out + 24 * 14, 14);
}

static void program_edge_chunks_are_not_filtered_when_asked(side *s)
{
    int values[25 * 14], out[40 * 40];

    register_filters();
    for (int i = 0; i < 25 * 14; i++)
        values[i] = i + 1;
    for (int opts = 0; opts < 2; opts++)
        for (int which = 0; which < 4; which++) {
            hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), got, dataset,
                  space = H5Screate_simple(2, (hsize_t[]){25, 14},
                                           (hsize_t[]){H5S_UNLIMITED, which == 3 ? H5S_UNLIMITED : 40});
            unsigned options = 9;
            H5D_chunk_index_t index = -9;

            say(&s->text, "-- options %d, filter %d\n", opts, which);
            H5Pset_chunk(dcpl, 2, (hsize_t[]){10, 5});
            if (opts)
                ASK(H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS));
            ASK(H5Pset_chunk_opts(dcpl, 8));
            if (which == 0 || which == 3)
                H5Pset_filter(dcpl, COUNTS, 0, 0, NULL);
            if (which == 1)
                H5Pset_fletcher32(dcpl);
            if (which == 2) {
                H5Pset_shuffle(dcpl);
                H5Pset_filter(dcpl, COUNTS, H5Z_FLAG_OPTIONAL, 0, NULL);
            }
            create(s);
            dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
            got = H5Dget_create_plist(dataset);
            ASK(H5Pget_chunk_opts(got, &options));
            say(&s->text, "options %u\n", options);
            H5Pclose(got);
            ASK(H5Dget_chunk_index_type(dataset, &index));
            say(&s->text, "index %d\n", index);
            ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
            say_storage(s, dataset);
            say_chunk(s, dataset, 0, 0);
            say_chunk(s, dataset, 20, 0);
            say_chunk(s, dataset, 20, 10);
            for (int size = 0; size < 4; size++) {
                static const hsize_t sizes[4][2] = {{30, 15}, {33, 17}, {15, 9}, {20, 10}};

                ASK(H5Dset_extent(dataset, sizes[size]));
                say_storage(s, dataset);
                say_chunk(s, dataset, 10, 5);
                say_chunk(s, dataset, 20, 10);
                memset(out, 0, sizeof out);
                ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
                say_ints(s, "read", out, sizes[size][0] * sizes[size][1] < 60 ? sizes[size][0] * sizes[size][1] : 60);
                if (size == 1) {
                    ASK(H5Dclose(dataset));
                    reopen(s);
                    dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
                    say_storage(s, dataset);
                }
            }
            ASK(H5Dset_extent(dataset, (hsize_t[]){25, 14}));
            write_edge(s, dataset, opts);
            ASK(H5Dclose(dataset));
            reopen(s);
            dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
            say_storage(s, dataset);
            memset(out, 0, sizeof out);
            ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
            say_ints(s, "last row", out + 24 * 14, 14);
            ASK(H5Dclose(dataset));
            close_file(s);
            H5Sclose(space);
            H5Pclose(dcpl);
        }
}
static void test_edge_chunks_are_not_filtered_when_asked(void **state)
{
    (void)state;
    both("edge_chunks_are_not_filtered_when_asked", program_edge_chunks_are_not_filtered_when_asked);
}

/* ---- copies of edge chunks ---- */

static void say_edges(side *s, hid_t file, const char *name)
{
    int out[25 * 14] = {0};
    long sum = 0;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);

    say(&s->text, "%s\n", name);
    ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
    for (int i = 0; i < 25 * 14; i++)
        sum += (long)out[i] * (i + 1);
    say(&s->text, "sum %ld\n", sum);
    say_storage(s, dataset);
    say_chunk(s, dataset, 0, 0);
    say_chunk(s, dataset, 20, 10);
    H5Dclose(dataset);
}

static void program_copies_of_edge_chunks_that_are_not_filtered(side *s)
{
    int values[25 * 14];
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), plain, dataset,
          space = H5Screate_simple(2, (hsize_t[]){25, 14}, (hsize_t[]){H5S_UNLIMITED, 14});

    register_filters();
    for (int i = 0; i < 25 * 14; i++)
        values[i] = i + 1;
    H5Pset_chunk(dcpl, 2, (hsize_t[]){10, 5});
    H5Pset_chunk_opts(dcpl, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
    H5Pset_filter(dcpl, COUNTS, 0, 0, NULL);
    plain = H5Fcreate("properties-plain.h5", H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl);
    dataset = H5Dcreate2(plain, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    ASK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    H5Dclose(dataset);
    H5Fclose(plain);
    plain = H5Fopen("properties-plain.h5", H5F_ACC_RDWR, s->fapl);
    create(s);
    ASK(H5Ocopy(plain, "d", s->file, "in", H5P_DEFAULT, H5P_DEFAULT));
    say_edges(s, s->file, "in");
    reopen(s);
    say_edges(s, s->file, "in");
    ASK(H5Ocopy(s->file, "in", s->file, "within", H5P_DEFAULT, H5P_DEFAULT));
    say_edges(s, s->file, "within");
    ASK(H5Ocopy(s->file, "in", plain, "out", H5P_DEFAULT, H5P_DEFAULT));
    say_edges(s, plain, "out");
    close_file(s);
    H5Fclose(plain);
    plain = H5Fopen("properties-plain.h5", H5F_ACC_RDONLY, native_fapl);
    say_edges(s, plain, "out");
    H5Fclose(plain);
    remove("properties-plain.h5");
    H5Sclose(space);
    H5Pclose(dcpl);
}

static void test_copies_of_edge_chunks_that_are_not_filtered(void **state)
{
    (void)state;
    both("copies_of_edge_chunks_that_are_not_filtered", program_copies_of_edge_chunks_that_are_not_filtered);
}

/* ---- selections in the transfer list ---- */

static void program_selections_in_the_transfer_list(side *s)
{
    const hsize_t start[2] = {1, 2}, stride[2] = {3, 4}, count[2] = {2, 3}, block[2] = {2, 2};
    int in[24], out[2000], all[2000];

    for (int i = 0; i < 24; i++)
        in[i] = 100 + i;
    for (int layout = 0; layout < 4; layout++) {
        hid_t space = H5Screate_simple(2, (hsize_t[]){layout == 3 ? 100 : 10, 20},
                                       layout == 0 ? (hsize_t[]){H5S_UNLIMITED, 20} : NULL),
              dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset, dxpl = H5Pcreate(H5P_DATASET_XFER), memory = line(24, 24),
              region = H5Scopy(space), type = type_number(2);
        hsize_t size = 0;

        say(&s->text, "-- %d\n", layout);
        if (layout < 2)
            H5Pset_chunk(dcpl, 2, (hsize_t[]){4, 5});
        else if (layout == 2)
            H5Pset_layout(dcpl, H5D_COMPACT);
        create(s);
        dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        ASK(H5Pset_dataset_io_hyperslab_selection(dxpl, 2, H5S_SELECT_SET, start, stride, count, block));
        WORKS(H5Dwrite(dataset, H5T_NATIVE_INT, memory, H5S_PLIST, dxpl, in));
        memset(out, 0, sizeof out);
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, memory, H5S_PLIST, dxpl, out));
        say_ints(s, "read", out, 24);
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_BLOCK, H5S_PLIST, dxpl, out));
        say_ints(s, "block", out, 24);
        memset(all, 0, sizeof all);
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_PLIST, dxpl, all));
        say_ints(s, "all", all, 200);
        ASK(H5Pset_dataset_io_hyperslab_selection(dxpl, 2, H5S_SELECT_OR, (hsize_t[]){9, 19}, NULL, (hsize_t[]){1, 1},
                                                  NULL));
        memset(all, 0, sizeof all);
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_BLOCK, H5S_PLIST, dxpl, all));
        say_ints(s, "or", all, 30);
        ASK(H5Pset_dataset_io_hyperslab_selection(dxpl, 2, H5S_SELECT_SET, (hsize_t[]){9, 19}, NULL, (hsize_t[]){2, 2},
                                                  NULL));
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_BLOCK, H5S_PLIST, dxpl, all)); /* beyond the extent */
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_PLIST, H5S_ALL, dxpl, all));
        WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_BLOCK, dxpl, all));
        WORKS(H5Dvlen_get_buf_size(dataset, H5T_NATIVE_INT, H5S_ALL, &size));
        H5Dclose(dataset);
        /* one more, of strings */
        dataset = H5Dcreate2(s->file, "s", type, space, H5P_DEFAULT, layout == 2 ? H5P_DEFAULT : dcpl, H5P_DEFAULT);
        {
            const char *texts[4] = {"one", "two", "", "four"}, *got[4] = {NULL};
            hid_t four = line(4, 4);
            ASK(H5Pset_dataset_io_hyperslab_selection(dxpl, 2, H5S_SELECT_SET, start, NULL, (hsize_t[]){2, 2}, NULL));
            WORKS(H5Dwrite(dataset, type, four, H5S_PLIST, dxpl, texts));
            WORKS(H5Dread(dataset, type, four, H5S_PLIST, dxpl, got));
            for (int i = 0; i < 4; i++)
                say(&s->text, "%s\n", got[i] == NULL ? "(null)" : got[i]);
            H5Treclaim(type, four, H5P_DEFAULT, got);
            H5Sclose(four);
        }
        H5Dclose(dataset);
        close_file(s);
        H5Sclose(region);
        H5Sclose(space);
        H5Sclose(memory);
        H5Tclose(type);
        H5Pclose(dxpl);
        H5Pclose(dcpl);
    }
}
static void test_selections_in_the_transfer_list(void **state)
{
    (void)state;
    both("selections_in_the_transfer_list", program_selections_in_the_transfer_list);
}

/* ---- allocation, fill time and fill value ---- */

static void say_creation(side *s, hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    H5D_alloc_time_t alloc = -9;
    H5D_fill_time_t time = -9;
    H5D_fill_value_t defined = -9;
    bool track = false;
    unsigned order = 9, compact = 9, dense = 9, options = 9;
    int value = -9;
    bool hint = true;

    H5Pget_alloc_time(dcpl, &alloc);
    H5Pget_fill_time(dcpl, &time);
    H5Pfill_value_defined(dcpl, &defined);
    H5Pget_obj_track_times(dcpl, &track);
    H5Pget_attr_creation_order(dcpl, &order);
    H5Pget_attr_phase_change(dcpl, &compact, &dense);
    H5Pget_dset_no_attrs_hint(dcpl, &hint);
    say(&s->text, "fill value %d", H5Pget_fill_value(dcpl, H5T_NATIVE_INT, &value));
    say(&s->text, " %d; ", value);
    say(&s->text, "chunk options %d %u; ", H5Pget_chunk_opts(dcpl, &options), options);
    say(&s->text, "layout %d alloc %d time %d defined %d times %d order %u phase %u %u hint %d external %d\n",
        H5Pget_layout(dcpl), alloc, time, defined, track, order, compact, dense, hint, H5Pget_external_count(dcpl));
    H5Pclose(dcpl);
}

static void program_allocation_and_fill(side *s)
{
    static const H5D_layout_t layouts[] = {H5D_COMPACT, H5D_CONTIGUOUS, H5D_CHUNKED};
    static int out[2500], in[700];

    for (int i = 0; i < 700; i++)
        in[i] = i;
    create(s);
    for (size_t l = 0; l < 3; l++)
        for (int alloc = H5D_ALLOC_TIME_DEFAULT; alloc <= H5D_ALLOC_TIME_INCR; alloc++)
            for (int time = 0; time <= H5D_FILL_TIME_IFSET; time++)
                for (int value = 0; value < 3; value++)
                    for (int size = 0; size < 2; size++)
                        for (int filter = 0; filter < (l == 2 ? 2 : 1); filter++) {
                            hsize_t extent = size == 0 ? 1000 : 2500, many = 700, start = 300, small = 250;
                            hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset, space, memory = line(700, 700);
                            bool known = value != 1 && time != H5D_FILL_TIME_NEVER;
                            int fill = 42;
                            char name[80];

                            space = line(extent, l == 2 ? H5S_UNLIMITED : extent);
                            H5Pset_layout(dcpl, layouts[l]);
                            if (l == 2)
                                H5Pset_chunk(dcpl, 1, &small);
                            if (filter)
                                H5Pset_fletcher32(dcpl);
                            H5Pset_alloc_time(dcpl, (H5D_alloc_time_t)alloc);
                            H5Pset_fill_time(dcpl, (H5D_fill_time_t)time);
                            if (value > 0)
                                H5Pset_fill_value(dcpl, H5T_NATIVE_INT, value == 1 ? NULL : &fill);
                            if (size == 0) {
                                H5Pset_attr_creation_order(dcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
                                H5Pset_attr_phase_change(dcpl, 3, 2);
                                H5Pset_obj_track_times(dcpl, false);
                                H5Pset_dset_no_attrs_hint(dcpl, true);
                            }
                            snprintf(name, sizeof name, "%d %d %d %d %d %d", layouts[l], alloc, time, value, size,
                                     filter);
                            dataset = H5Dcreate2(s->file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
                            say(&s->text, "%s %s\n", name, dataset >= 0 ? "made" : "refused");
                            if (dataset >= 0) {
                                say_creation(s, dataset);
                                say_storage(s, dataset);
                                for (int i = 0; i < 2500; i++)
                                    out[i] = -1;
                                ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
                                if (known)
                                    say_ints(s, "read", out, 3);
                                H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &many, NULL);
                                ASK(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, in));
                                say_storage(s, dataset);
                                ASK(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
                                say_ints(s, "read", out + 300, 3);
                                if (known)
                                    say_ints(s, "edges", out + 298, 4);
                                if (l == 2) {
                                    extent += 700;
                                    ASK(H5Dset_extent(dataset, &extent));
                                    say_storage(s, dataset);
                                    extent = 100;
                                    ASK(H5Dset_extent(dataset, &extent));
                                    /* else HDF5 may store a hole that was read */
                                    if (alloc == H5D_ALLOC_TIME_EARLY)
                                        say_storage(s, dataset);
                                }
                                H5Dclose(dataset);
                                if (size == 0) {
                                    reopen(s);
                                    dataset = H5Dopen2(s->file, name, H5P_DEFAULT);
                                    say_creation(s, dataset);
                                    if (l < 2 || alloc == H5D_ALLOC_TIME_EARLY)
                                        say_storage(s, dataset);
                                    H5Dclose(dataset);
                                }
                            }
                            H5Sclose(memory);
                            H5Sclose(space);
                            H5Pclose(dcpl);
                        }
    close_file(s);
}
static void test_allocation_and_fill(void **state)
{
    (void)state;
    both("allocation_and_fill", program_allocation_and_fill);
}

/* ---- access properties ---- */

static int flushes;

static herr_t count_flushes(hid_t dataset, hsize_t *extent, void *data)
{
    listing *text = data;

    flushes++;
    say(text, "  append flush: %s, extent %d\n", H5Iget_type(dataset) == H5I_DATASET ? "dataset" : "?", (int)extent[0]);
    return 0;
}

static void say_access(side *s, hid_t dataset)
{
    hid_t dapl = H5Dget_access_plist(dataset);
    size_t slots = 9, bytes = 9;
    double w0 = 9;
    char text[80] = "";
    H5D_vds_view_t view = -9;
    hsize_t gap = 99, boundary[1] = {99};
    H5D_append_cb_t call = NULL;
    void *data = NULL;

    say(&s->text, "access: cache %d", H5Pget_chunk_cache(dapl, &slots, &bytes, &w0));
    say(&s->text, " %zu %zu %g", slots, bytes, w0);
    say(&s->text, ", external %d", (int)H5Pget_efile_prefix(dapl, text, sizeof text));
    say(&s->text, " '%s'", text);
    say(&s->text, ", virtual %d", (int)H5Pget_virtual_prefix(dapl, text, sizeof text));
    say(&s->text, " '%s'", text);
    say(&s->text, ", view %d", H5Pget_virtual_view(dapl, &view));
    say(&s->text, " %d, gap %d", view, H5Pget_virtual_printf_gap(dapl, &gap));
    say(&s->text, " %d, append %d", (int)gap, H5Pget_append_flush(dapl, 1, boundary, &call, &data));
    say(&s->text, " %d %d %d\n", (int)boundary[0], call != NULL, data != NULL);
    H5Pclose(dapl);
}

/* The first opening of a dataset says what it is used by until it is closed, whatever the later ones, by LIST, would have. */
static void open_twice(side *s, hid_t first, hid_t list)
{
    for (int how = 0; how < 4; how++) {
        hid_t dataset = how == 0   ? H5Dopen2(s->file, "d", list)
                        : how == 1 ? H5Oopen(s->file, "d", list)
                        : how == 2 ? H5Oopen_by_idx(s->file, ".", H5_INDEX_NAME, H5_ITER_INC, 0, list)
                                   : H5Dopen2(s->file, "d", H5P_DEFAULT);
        WORKS(dataset);
        if (dataset >= 0) {
            say_access(s, dataset);
            say_access(s, first);
            H5Dclose(dataset);
        }
    }
}

static void program_access_properties(side *s)
{
    int values[300] = {0};

    for (int layout = 0; layout < 3; layout++)
        for (int which = 0; which < 7; which++) {
            hsize_t boundary[2] = {4, 4}, size = 10, extent = 20, chunk = 5;
            hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset, other,
                  another = H5Pcreate(H5P_DATASET_ACCESS), space = line(size, layout == 0 ? H5S_UNLIMITED : size);

            say(&s->text, "-- layout %d, access %d\n", layout, which);
            if (layout == 0)
                H5Pset_chunk(dcpl, 1, &chunk);
            if (layout == 2)
                H5Pset_layout(dcpl, H5D_COMPACT);
            if (which == 1)
                ASK(H5Pset_chunk_cache(dapl, 101, 5000, 0.25));
            if (which == 2)
                ASK(H5Pset_chunk_cache(dapl, 0, 0, 1));
            if (which == 3)
                ASK(H5Pset_append_flush(dapl, 1, boundary, count_flushes, &s->text));
            if (which == 4)
                ASK(H5Pset_virtual_prefix(dapl, "y"));
            if (which == 6)
                ASK(H5Pset_append_flush(dapl, 2, boundary, count_flushes, &s->text));
            if (which == 5) {
                ASK(H5Pset_virtual_view(dapl, H5D_VDS_FIRST_MISSING));
                ASK(H5Pset_virtual_printf_gap(dapl, 3));
            }
            ASK(H5Pset_chunk_cache(another, 7, 5000, 0.125));
            ASK(H5Pset_append_flush(another, which % 2 == 0 ? 2 : 1, boundary, count_flushes, &s->text));
            create(s);
            dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, dapl);
            WORKS(dataset);
            if (dataset >= 0) {
                say_access(s, dataset);
                open_twice(s, dataset, another);
                WORKS(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
                ASK(H5Dset_extent(dataset, &extent));
                extent = 21;
                ASK(H5Dset_extent(dataset, &extent));
                ASK(H5Dflush(dataset));
                ASK(H5Drefresh(dataset));
                H5Dclose(dataset);
            }
            reopen(s);
            dataset = H5Dopen2(s->file, "d", dapl);
            WORKS(dataset);
            if (dataset >= 0) {
                say_access(s, dataset);
                other = H5Dopen2(s->file, "d", H5P_DEFAULT);
                WORKS(other);
                if (other >= 0) {
                    say_access(s, other);
                    H5Dclose(other);
                }
                extent = 24;
                ASK(H5Dset_extent(dataset, &extent));
                H5Dclose(dataset);
            }
            dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
            if (which != 4) { /* our own handle keeps the prefix until the next commit */
                say_access(s, dataset);
                open_twice(s, dataset, dapl);
                open_twice(s, dataset, another);
            }
            H5Dclose(dataset);
            for (int by_index = 0; by_index < 2; by_index++) {
                reopen(s);
                dataset = by_index ? H5Oopen_by_idx(s->file, ".", H5_INDEX_NAME, H5_ITER_INC, 0, dapl)
                                   : H5Oopen(s->file, "d", dapl);
                WORKS(dataset);
                if (dataset >= 0) {
                    say_access(s, dataset);
                    H5Dclose(dataset);
                }
            }
            close_file(s);
            H5Sclose(space);
            H5Pclose(another);
            H5Pclose(dapl);
            H5Pclose(dcpl);
        }
}

static void test_access_properties(void **state)
{
    (void)state;
    both("access_properties", program_access_properties);
}

/* ---- transfer properties ---- */

static H5T_conv_ret_t on_overflow(H5T_conv_except_t kind, hid_t from, hid_t to, void *in, void *out, void *data)
{
    (void)from;
    (void)to;
    (void)in;
    say(data, "  exception %d\n", kind);
    if (kind != H5T_CONV_EXCEPT_RANGE_HI)
        return H5T_CONV_UNHANDLED;
    *(signed char *)out = 99;
    return H5T_CONV_HANDLED;
}

static H5T_conv_ret_t aborts(H5T_conv_except_t kind, hid_t from, hid_t to, void *in, void *out, void *data)
{
    (void)kind;
    (void)from;
    (void)to;
    (void)in;
    (void)out;
    (void)data;
    return H5T_CONV_ABORT;
}

static int allocations;

static void *take(size_t size, void *data)
{
    (void)data;
    allocations++;
    return malloc(size);
}

static void give(void *memory, void *data)
{
    (void)data;
    if (memory != NULL)
        allocations--;
    free(memory);
}

static void say_transfer(side *s, hid_t dxpl)
{
    uint32_t cause = 99, mode = 99;
    H5D_selection_io_mode_t io = -9;
    bool modify = false;
    size_t vector = 0;
    double ratio[3] = {0};
    char text[60] = "";
    H5MM_allocate_t allocate = NULL;
    H5MM_free_t release = NULL;
    void *data;

    say(&s->text, "cause %d", H5Pget_no_selection_io_cause(dxpl, &cause));
    say(&s->text, " %x, mode %d", cause, H5Pget_actual_selection_io_mode(dxpl, &mode));
    say(&s->text, " %x, io %d", mode, H5Pget_selection_io(dxpl, &io));
    say(&s->text, " %d, modify %d", io, H5Pget_modify_write_buf(dxpl, &modify));
    say(&s->text, " %d, buffer %zu, preserve %d, edc %d", modify, H5Pget_buffer(dxpl, NULL, NULL),
        H5Pget_preserve(dxpl), H5Pget_edc_check(dxpl));
    say(&s->text, ", vector %d", H5Pget_hyper_vector_size(dxpl, &vector));
    say(&s->text, " %zu, btree %d", vector, H5Pget_btree_ratios(dxpl, &ratio[0], &ratio[1], &ratio[2]));
    say(&s->text, " %g %g %g, transform %d", ratio[0], ratio[1], ratio[2],
        (int)H5Pget_data_transform(dxpl, text, sizeof text));
    say(&s->text, " '%s', vlen %d", text, H5Pget_vlen_mem_manager(dxpl, &allocate, &data, &release, &data));
    say(&s->text, " %d\n", allocate != NULL);
}

/* Transfer properties number WHICH. IN: values to be written. */
static void set_transfer(side *s, hid_t dxpl, int which, int in[])
{
    switch (which) {
    case 1:
        ASK(H5Pset_buffer(dxpl, 64, NULL, NULL));
        break;
    case 2:
        ASK(H5Pset_preserve(dxpl, true));
        break;
    case 3:
        ASK(H5Pset_selection_io(dxpl, H5D_SELECTION_IO_MODE_ON));
        break;
    case 4:
        ASK(H5Pset_selection_io(dxpl, H5D_SELECTION_IO_MODE_OFF));
        break;
    case 5:
        ASK(H5Pset_modify_write_buf(dxpl, true));
        break;
    case 6:
        ASK(H5Pset_hyper_vector_size(dxpl, 3));
        break;
    case 7:
        ASK(H5Pset_btree_ratios(dxpl, 0.2, 0.6, 0.8));
        break;
    case 8:
        ASK(H5Pset_type_conv_cb(dxpl, on_overflow, &s->text));
        break;
    case 9:
        ASK(H5Pset_type_conv_cb(dxpl, aborts, NULL));
        in[5] = 4000;
        break;
    case 10:
        ASK(H5Pset_data_transform(dxpl, "2*x+3"));
        break;
    case 11:
        ASK(H5Pset_data_transform(dxpl, "2*+"));
        break;
    case 12:
        ASK(H5Pset_vlen_mem_manager(dxpl, take, NULL, give, NULL));
        break;
    case 13:
        ASK(H5Pset_edc_check(dxpl, H5Z_DISABLE_EDC));
        break;
    case 14:
        ASK(H5Pset_edc_check(dxpl, 7));
        ASK(H5Pset_buffer(dxpl, 0, NULL, NULL));
        break;
    case 15:
        ASK(H5Pset_data_transform(dxpl, "x/3"));
        ASK(H5Pset_selection_io(dxpl, H5D_SELECTION_IO_MODE_ON));
        break;
    }
}

static void program_transfer_properties(side *s)
{
    static int in[1000], out[1000], copy[1000];

    for (int layout = 0; layout < 3; layout++)
        for (int which = 0; which < 16; which++) {
            hid_t dxpl = H5Pcreate(H5P_DATASET_XFER), dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset, small,
                  space = line(layout == 2 ? 500 : 1000, layout == 0   ? H5S_UNLIMITED
                                                         : layout == 2 ? 500
                                                                       : 1000);
            size_t n = layout == 2 ? 500 : 1000;

            for (size_t i = 0; i < 1000; i++)
                in[i] = which == 8 ? (int)i - 10 : (int)(i % 100);
            memcpy(copy, in, sizeof in);
            say(&s->text, "-- layout %d, transfer %d\n", layout, which);
            if (layout == 0)
                H5Pset_chunk(dcpl, 1, (hsize_t[]){128});
            if (layout == 2)
                H5Pset_layout(dcpl, H5D_COMPACT);
            set_transfer(s, dxpl, which, in);
            create(s);
            dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_SCHAR, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
            say_transfer(s, dxpl);
            WORKS(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, in));
            if (which != 5)
                ASK(memcmp(in, copy, n * sizeof *in) != 0);
            say_transfer(s, dxpl);
            memset(out, 0, sizeof out);
            WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, out));
            if (which != 9)
                say_ints(s, "read", out, 200);
            say_transfer(s, dxpl);
            small = H5Dcreate2(s->file, "e", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
            WORKS(H5Dwrite(small, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, in));
            say_transfer(s, dxpl);
            memset(out, 0, sizeof out);
            WORKS(H5Dread(small, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, out));
            say_ints(s, "read", out, 200);
            say_transfer(s, dxpl);
            H5Dclose(small);
            H5Dclose(dataset);
            close_file(s);
            H5Sclose(space);
            H5Pclose(dxpl);
            H5Pclose(dcpl);
        }
}
static void test_transfer_properties(void **state)
{
    (void)state;
    both("transfer_properties", program_transfer_properties);
}

static void program_memory_of_variable_length_values(side *s)
{
    hid_t type = H5Tvlen_create(H5T_NATIVE_INT), space = line(100, 100), dxpl = H5Pcreate(H5P_DATASET_XFER), dataset,
          dcpl = chunked(30);
    static hvl_t in[100], out[100];
    int numbers[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    hsize_t size = 0;

    for (int i = 0; i < 100; i++)
        in[i] = (hvl_t){(size_t)i % 7, numbers};
    H5Pset_vlen_mem_manager(dxpl, take, NULL, give, NULL);
    for (int layout = 0; layout < 2; layout++) {
        create(s);
        dataset = H5Dcreate2(s->file, "d", type, space, H5P_DEFAULT, layout ? dcpl : H5P_DEFAULT, H5P_DEFAULT);
        ASK(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, in));
        allocations = 0;
        ASK(H5Dread(dataset, type, H5S_ALL, H5S_ALL, dxpl, out));
        ASK(allocations);
        ASK(((int *)out[6].p)[5]);
        ASK(H5Treclaim(type, space, dxpl, out));
        ASK(allocations);
        ASK(H5Dvlen_get_buf_size(dataset, type, space, &size));
        ASK(size);
        H5Dclose(dataset);
        close_file(s);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(dxpl);
    H5Pclose(dcpl);
}
static void test_memory_of_variable_length_values(void **state)
{
    (void)state;
    both("memory_of_variable_length_values", program_memory_of_variable_length_values);
}

/* ---- creation properties that cannot be ---- */

/* A creation that is unusual in way number WHICH; the answer is the dataspace to use. */
static hid_t unusual(side *s, int which, hid_t dcpl, hid_t space)
{
    const hsize_t far = (hsize_t)1 << 62, twelve = 12;
    hsize_t chunk = 10;

    switch (which) {
    case 0: /* contiguous and extendible */
        H5Sset_extent_simple(space, 1, &twelve, (hsize_t[]){2000});
        break;
    case 1: /* larger than 2^64 bytes */
        H5Sset_extent_simple(space, 1, &far, NULL);
        break;
    case 2: /* elements beyond 2^64 */
        H5Sset_extent_simple(space, 2, (hsize_t[]){far, 4096}, NULL);
        break;
    case 3:
        H5Sset_extent_simple(space, 1, (hsize_t[]){far / 8}, NULL);
        H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_LATE);
        break;
    case 4: /* chunk larger than the maximum */
        chunk = 2000;
        H5Pset_chunk(dcpl, 1, &chunk);
        break;
    case 5: /* rank of the chunk */
        H5Pset_chunk(dcpl, 2, (hsize_t[]){10, 10});
        break;
    case 6: /* chunk of 4 GiB */
        chunk = (hsize_t)1 << 30;
        H5Sset_extent_simple(space, 1, &chunk, NULL);
        ASK(H5Pset_chunk(dcpl, 1, &chunk));
        break;
    case 7:
        ASK(H5Pset_chunk(dcpl, 1, (hsize_t[]){0}));
        break;
    case 8: /* compact of 64 KiB */
        H5Pset_layout(dcpl, H5D_COMPACT);
        H5Sset_extent_simple(space, 1, (hsize_t[]){17000}, NULL);
        break;
    case 9:
        H5Pset_layout(dcpl, H5D_COMPACT);
        H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_LATE);
        break;
    case 10: /* virtual without a mapping */
        ASK(H5Pset_layout(dcpl, H5D_VIRTUAL));
        break;
    case 11: /* chunked without chunks */
        ASK(H5Pset_layout(dcpl, H5D_CHUNKED));
        break;
    case 12: /* external and chunked */
        H5Pset_external(dcpl, "properties.raw", 0, 4000);
        ASK(H5Pset_chunk(dcpl, 1, &chunk));
        break;
    case 13: /* a fill value of another type that cannot be converted */
        H5Pset_fill_value(dcpl, H5T_C_S1, "x");
        break;
    case 14: /* a fill value that is converted */
        H5Pset_fill_value(dcpl, H5T_NATIVE_DOUBLE, (double[]){3.7});
        break;
    case 15: /* no extent */
        H5Sclose(space);
        space = H5Screate(H5S_SIMPLE);
        break;
    }
    return space;
}

static void program_creations_that_cannot_be(side *s)
{
    char name[40];

    create(s);
    for (int which = 0; which < 16; which++) {
        hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = line(1000, 1000), dataset, type = H5Tcopy(H5T_NATIVE_INT);

        space = unusual(s, which, dcpl, space);
        snprintf(name, sizeof name, "%d", which);
        dataset = H5Dcreate2(s->file, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        say(&s->text, "%s: %s\n", name, dataset >= 0 ? "made" : "refused");
        ASK(H5Lexists(s->file, name, H5P_DEFAULT));
        if (dataset >= 0) {
            say_creation(s, dataset);
            say_storage(s, dataset);
            H5Dclose(dataset);
        }
        H5Tclose(type);
        H5Sclose(space);
        H5Pclose(dcpl);
    }
    /* a property list of another class, and an unknown fill or allocation time */
    {
        hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = line(2000, 2000), wrong = H5Pcreate(H5P_DATASET_XFER);

        ASK(H5Pset_alloc_time(dcpl, 17));
        ASK(H5Pset_fill_time(dcpl, 17));
        WORKS(H5Dcreate2(s->file, "wrong", H5T_NATIVE_INT, space, H5P_DEFAULT, wrong, H5P_DEFAULT));
        WORKS(H5Dcreate2(s->file, "wrong", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, wrong));
        H5Pclose(wrong);
        H5Sclose(space);
        H5Pclose(dcpl);
    }
    close_file(s);
}
static void test_creations_that_cannot_be(void **state)
{
    (void)state;
    both("creations_that_cannot_be", program_creations_that_cannot_be);
}

/* ---- calls on chunks ---- */

static int say_iterated(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *data)
{
    (void)address;
    say(data, "  iterated %d: mask %x, %d bytes\n", (int)offset[0], mask, (int)size);
    return 0;
}

static void program_calls_on_chunks(side *s)
{
    int values[95], out[100], chunk[10];

    register_filters();
    for (int i = 0; i < 95; i++)
        values[i] = i;
    for (int i = 0; i < 10; i++)
        chunk[i] = -i;
    for (int filter = 0; filter < 3; filter++) {
        hid_t dcpl = chunked(10), space = line(95, H5S_UNLIMITED), dataset, none = H5Scopy(space);
        hsize_t offset = 0, size = 77, n = 77;
        unsigned mask = 77;
        haddr_t address;
        unsigned char raw[400];

        say(&s->text, "-- filter %d\n", filter);
        if (filter == 1)
            H5Pset_fletcher32(dcpl);
        if (filter == 2) {
            H5Pset_filter(dcpl, COUNTS, H5Z_FLAG_OPTIONAL, 0, NULL);
            H5Pset_shuffle(dcpl);
        }
        create(s);
        dataset = H5Dcreate2(s->file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        for (int round = 0; round < 3; round++) {
            say(&s->text, "- round %d\n", round);
            say_storage(s, dataset);
            for (hsize_t o = 0; o <= 100; o += 25) {
                size = 77;
                offset = o;
                WORKS(H5Dget_chunk_storage_size(dataset, &offset, &size));
                if (round > 0)
                    ASK(size);
                else
                    assert_true(s->native || size == 0); /* HDF5 leaves what the program had there */
                mask = 77;
                WORKS(H5Dread_chunk(dataset, H5P_DEFAULT, &offset, &mask, raw));
                say(&s->text, "mask %x\n", mask);
                size = 77;
                mask = 77;
                WORKS(H5Dget_chunk_info_by_coord(dataset, &offset, &mask, &address, &size));
                say(&s->text, "mask %x size %d stored %d\n", mask, (int)size, address != HADDR_UNDEF || size > 0);
            }
            WORKS(H5Dget_chunk_info(dataset, H5S_ALL, 50, &offset, &mask, &address, &size));
            WORKS(H5Dget_chunk_info(dataset, none, 0, &offset, &mask, &address, &size));
            WORKS(H5Dget_num_chunks(dataset, none, &n));
            WORKS(H5Dchunk_iter(dataset, H5P_DEFAULT, say_iterated, &s->text));
            offset = 30;
            if (round == 0)
                WORKS(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
            if (round == 1 && filter == 0) { /* HDF5 1.14.5 forgets the mask of a chunk that is overwritten */
                WORKS(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, sizeof chunk, chunk));
                offset = 35;
                WORKS(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, sizeof chunk, chunk));
                offset = 200;
                WORKS(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, sizeof chunk, chunk));
                offset = 30;
                WORKS(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, 0, chunk));
                WORKS(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, &offset, sizeof chunk, NULL));
            }
            memset(out, 0, sizeof out);
            WORKS(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, out));
            say_ints(s, "read", out, 95);
            if (round == 1) {
                H5Dclose(dataset);
                reopen(s);
                dataset = H5Dopen2(s->file, "d", H5P_DEFAULT);
            }
        }
        ASK(H5Dformat_convert(dataset));
        H5Dclose(dataset);
        close_file(s);
        H5Sclose(none);
        H5Sclose(space);
        H5Pclose(dcpl);
    }
}
static void test_calls_on_chunks(void **state)
{
    (void)state;
    both("calls_on_chunks", program_calls_on_chunks);
}

/* ---- a file that is created again ---- */

/* What HDF5 tells of a file while it is open that was created with it. */
static void test_creation_properties_of_the_root_group(void **state)
{
    const hid_t fapl[] = {native_fapl, H5P_DEFAULT};
    (void)state;

    for (int i = 0; i < 2; i++) {
        remove("test_properties_root.h5");
        for (int again = 0; again < 3; again++) {
            hid_t list = H5Pcreate(H5P_FILE_CREATE), told, file;
            unsigned links = 0, attributes = 0, most = 0, least = 0;

            assert_true(H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
                        H5Pset_attr_creation_order(list, H5P_CRT_ORDER_TRACKED) >= 0 &&
                        H5Pset_link_phase_change(list, 12, 5) >= 0);
            assert_true((file = H5Fcreate("test_properties_root.h5", H5F_ACC_TRUNC, list, fapl[i])) >= 0);
            assert_true((told = H5Fget_create_plist(file)) >= 0 && H5Pget_link_creation_order(told, &links) >= 0 &&
                        H5Pget_attr_creation_order(told, &attributes) >= 0 &&
                        H5Pget_link_phase_change(told, &most, &least) >= 0);
            assert_true(links == (H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) &&
                        attributes == H5P_CRT_ORDER_TRACKED && most == 12 && least == 5);
            assert_true(H5Pclose(told) >= 0 && H5Pclose(list) >= 0 && H5Fclose(file) >= 0);
        }
    }
    remove("test_properties_root.h5");
}

static void link_properties_are(hid_t list, unsigned order, unsigned most, unsigned least)
{
    unsigned links, from, to;

    assert_true(list >= 0 && H5Pget_link_creation_order(list, &links) >= 0 &&
                H5Pget_link_phase_change(list, &from, &to) >= 0);
    assert_int_equal(links, order);
    assert_int_equal(from, most);
    assert_int_equal(to, least);
    assert_true(H5Pclose(list) >= 0);
}

/* Groups of versions have links in their headers where those of the head have them in a heap: who asks hears of the head's. */
static void test_creation_properties_of_groups_in_versions(void **state)
{
    static const char *const name[] = {"test_properties_groups.h5", "test_properties_groups.h5@1",
                                       "test_properties_groups.h5@2"};
    const unsigned members[] = {3, 9, 20, 31, 40}, tracked = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    const struct {
        unsigned order, most, least;
    } list[] = {{0, 8, 6}, {tracked, 8, 6}, {0, 12, 5}, {0, 40, 30}};
    (void)state;

    remove(name[0]);
    for (int session = 0; session < 2; session++) {
        hid_t file = session == 0 ? H5Fcreate(name[0], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                                  : H5Fopen(name[0], H5F_ACC_RDWR, H5P_DEFAULT);
        char path[40];

        assert_true(file >= 0);
        for (unsigned i = 0; i < 5; i++)
            for (unsigned k = 0; k < 4; k++) {
                hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE), group;

                snprintf(path, sizeof path, "%u %u", i, k);
                assert_true(H5Pset_link_creation_order(gcpl, list[k].order) >= 0 &&
                            H5Pset_link_phase_change(gcpl, list[k].most, list[k].least) >= 0);
                assert_true((group = session == 0 ? H5Gcreate2(file, path, H5P_DEFAULT, gcpl, H5P_DEFAULT)
                                                  : H5Gopen2(file, path, H5P_DEFAULT)) >= 0);
                for (unsigned m = 0; m < members[i]; m++) {
                    snprintf(path, sizeof path, "%u", m);
                    if (session == 0)
                        assert_true(H5Gclose(H5Gcreate2(group, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
                }
                if (session == 1)
                    assert_true(H5Gclose(H5Gcreate2(group, "0/new", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
                assert_true(H5Gclose(group) >= 0 && H5Pclose(gcpl) >= 0);
            }
        assert_true(H5Fclose(file) >= 0);
    }
    for (int n = 0; n < 3; n++) {
        hid_t file = H5Fopen(name[n], H5F_ACC_RDONLY, H5P_DEFAULT);
        char path[40];

        assert_true(file >= 0);
        link_properties_are(H5Fget_create_plist(file), 0, 8, 6);
        for (unsigned i = 0; i < 5; i++)
            for (unsigned k = 0; k < 4; k++) {
                hid_t group;
                H5G_info_t info;

                snprintf(path, sizeof path, "%u %u", i, k);
                assert_true((group = H5Gopen2(file, path, H5P_DEFAULT)) >= 0 && H5Gget_info(group, &info) >= 0);
                link_properties_are(H5Gget_create_plist(group), list[k].order, list[k].most, list[k].least);
                assert_int_equal(info.nlinks, members[i]);
                assert_int_equal(H5Lexists(group, "0", H5P_DEFAULT), 1);
                assert_int_equal(H5Lexists(group, "0/new", H5P_DEFAULT), n != 1);
                assert_true(H5Gclose(group) >= 0);
            }
        assert_true(H5Fclose(file) >= 0);
    }
    remove(name[0]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creation_properties_of_groups_in_versions),
        cmocka_unit_test(test_creation_properties_of_the_root_group),
        cmocka_unit_test(test_a_dataset_of_more_than_2_64_elements_is_made_and_opened_again),
        cmocka_unit_test(test_far_corners_of_a_huge_dataset_are_written_and_read),
        cmocka_unit_test(test_filters_are_refused_where_native_refuses_them),
        cmocka_unit_test(test_optional_filters_that_fail_are_left_out),
        cmocka_unit_test(test_mandatory_filters_that_fail_ask_the_callback),
        cmocka_unit_test(test_damage_is_read_when_error_detection_is_off),
        cmocka_unit_test(test_filters_that_fail_to_decode_ask_the_callback),
        cmocka_unit_test(test_filters_that_go_away),
        cmocka_unit_test(test_edge_chunks_are_not_filtered_when_asked),
        cmocka_unit_test(test_copies_of_edge_chunks_that_are_not_filtered),
        cmocka_unit_test(test_selections_in_the_transfer_list),
        cmocka_unit_test(test_allocation_and_fill),
        cmocka_unit_test(test_access_properties),
        cmocka_unit_test(test_transfer_properties),
        cmocka_unit_test(test_memory_of_variable_length_values),
        cmocka_unit_test(test_creations_that_cannot_be),
        cmocka_unit_test(test_calls_on_chunks),
    };
    return test_main(tests, argc, argv, through_begin, through_end);
}
