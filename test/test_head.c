/* The head is what HDF5 alone would have kept, whatever becomes of its history. Each program runs natively and through the
 * connector: its calls must answer alike, and both files must then hold the same. Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "through.h"
#include "whole.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COW    "test_head_cow.h5"
#define NATIVE "test_head_native.h5"
#define FOLDER "test_head_external"
#define MANY   3000

/* What the calls of a program answered, in order. */
static listing answers;

#define DO(call)                                                                                                       \
    do {                                                                                                               \
        long answer = (long)(call);                                                                                    \
        say(&answers, "%d %s: %d\n", __LINE__, #call, answer < 0 ? -1 : 0);                                            \
    } while (0)

typedef struct program {
    const char *name;
    void (*run)(const char *file, hid_t fapl, int mode);
    int modes;
} program;

static hid_t raw_folder_dapl(void)
{
    hid_t dapl = H5Pcreate(H5P_DATASET_ACCESS);

    H5Pset_efile_prefix(dapl, FOLDER);
    H5Pset_virtual_prefix(dapl, FOLDER);
    return dapl;
}

static hid_t make(hid_t at, const char *name, hsize_t n, hsize_t most, hid_t dcpl, hid_t dapl)
{
    hid_t space = H5Screate_simple(1, &n, &most),
          d = H5Dcreate2(at, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, dapl);

    DO(d);
    H5Sclose(space);
    return d;
}

static void put(hid_t d, int value, hid_t dxpl)
{
    static int values[MANY];

    for (int i = 0; i < MANY; i++)
        values[i] = value + i;
    DO(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, dxpl, values));
}

static void note(hid_t at, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), a;

    H5Tset_size(type, H5T_VARIABLE);
    a = H5Aexists(at, name) > 0 ? H5Aopen(at, name, H5P_DEFAULT)
                                : H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    DO(H5Awrite(a, type, &text));
    DO(H5Aclose(a));
    H5Sclose(space);
    H5Tclose(type);
}

/* ---- external storage ---- */

/* Bit 0: found by a prefix; bit 1: open at the close of the file; bit 2: flushed, bit 3: the raw file is gone meanwhile. */
static void external_prefix(const char *name, hid_t fapl, int mode)
{
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          dapl = mode & 1 ? raw_folder_dapl() : H5Pcreate(H5P_DATASET_ACCESS), d, other;
    int values[20];

    H5Pset_external(dcpl, "raw", 0, H5F_UNLIMITED); /* both have the same name for it */
    mkdir(FOLDER, 0755);
    unlink(FOLDER "/raw");
    unlink("raw");
    other = make(file, "other", MANY, MANY, H5P_DEFAULT, H5P_DEFAULT);
    put(other, 1, H5P_DEFAULT);
    d = make(file, "d", 20, H5S_UNLIMITED, dcpl, dapl);
    put(d, 2, H5P_DEFAULT);
    note(d, "note", "a text");
    if (mode & 4)
        DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    put(d, 3, H5P_DEFAULT);
    put(other, 4, H5P_DEFAULT);
    note(d, "note", "another text");
    if (mode & 8) {
        unlink(FOLDER "/raw");
        unlink("raw");
    }
    if (!(mode & 2))
        DO(H5Dclose(d));
    DO(H5Dclose(other));
    DO(H5Fclose(file));
    if (mode & 2)
        DO(H5Dclose(d));
    file = H5Fopen(name, H5F_ACC_RDWR, fapl);
    d = H5Dopen2(file, "d", dapl);
    memset(values, 0, sizeof values);
    DO(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    say(&answers, "%d %d\n", values[0], values[19]);
    note(d, "note", "a third text");
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    DO(H5Dclose(d));
    DO(H5Fclose(file));
    H5Pclose(dapl);
    H5Pclose(dcpl);
}

/* The second dimension of external storage changes, and the first. */
static void external_resized(const char *name, hid_t fapl, int mode)
{
    static const hsize_t sizes[][2] = {{5, 4}, {5, 2}, {2, 4}, {9, 1}, {9, 4}};
    const hsize_t most[2] = {H5S_UNLIMITED, 4};
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          space = H5Screate_simple(2, sizes[0], most), d;

    unlink("raw");
    H5Pset_external(dcpl, "raw", 0, H5F_UNLIMITED);
    d = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    DO(d);
    for (int i = 1; i < (int)COUNT(sizes); i++) {
        DO(H5Dset_extent(d, sizes[(i + mode) % (int)COUNT(sizes)]));
        put(d, i, H5P_DEFAULT);
        DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    }
    DO(H5Dclose(d));
    DO(H5Fclose(file));
    H5Sclose(space);
    H5Pclose(dcpl);
}

/* The program's prefix is that of an open handle; a version is made in between, attributes are read. Bit 2: nothing but an
 * attribute is written with that handle. */
static void prefix_of_versioned(const char *name, hid_t fapl, int mode)
{
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dapl = raw_folder_dapl(), d;

    d = make(file, "d", MANY, MANY, H5P_DEFAULT, mode & 1 ? dapl : H5P_DEFAULT);
    note(d, "note", "a text");
    put(d, 1, H5P_DEFAULT);
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    put(d, 2, H5P_DEFAULT);
    DO(H5Dclose(d));
    if (mode & 2) {
        DO(H5Fclose(file));
        file = H5Fopen(name, H5F_ACC_RDWR, fapl);
        DO(file);
    }
    d = H5Dopen2(file, "d", mode & 1 ? H5P_DEFAULT : dapl);
    DO(d);
    if (!(mode & 4))
        put(d, 3, H5P_DEFAULT);
    note(d, "note", "another text");
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    DO(H5Fclose(file));
    DO(H5Dclose(d));
    H5Pclose(dapl);
}

/* ---- read again ---- */

#define AGAIN 20 /* datasets: more than are kept for who opens them again */

static void say_first(hid_t d)
{
    static int values[MANY];

    values[0] = values[MANY - 1] = -1;
    DO(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    say(&answers, "%d %d\n", values[0], values[MANY - 1]);
}

static void open_and_say(hid_t file, const char *name, hid_t dapl)
{
    hid_t d = H5Dopen2(file, name, dapl);

    DO(d);
    say_first(d);
    DO(H5Dclose(d));
    say(&answers, "open: %d\n", (int)H5Fget_obj_count(file, H5F_OBJ_ALL));
}

/* In a file that is only read, by names that lead to the same dataset too. Bit 0: all of them at once; bit 1: nothing
 * may be open when the file is closed; bit 2: a dataset is; bit 3: with other prefixes the second time. */
static void read_again(const char *name, hid_t fapl, int mode)
{
    hid_t mine = fapl == H5P_DEFAULT ? H5Pcreate(H5P_FILE_ACCESS) : H5Pcopy(fapl), dapl = raw_folder_dapl(),
          file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), d, all[AGAIN];
    char path[32];

    for (int i = 0; i < AGAIN; i++) {
        snprintf(path, sizeof path, "d%d", i);
        d = make(file, path, MANY, MANY, H5P_DEFAULT, H5P_DEFAULT);
        put(d, 1000 * i, H5P_DEFAULT);
        DO(H5Dclose(d));
    }
    DO(H5Lcreate_hard(file, "d3", file, "alias", H5P_DEFAULT, H5P_DEFAULT));
    DO(H5Fclose(file));
    H5Pset_fclose_degree(mine, mode & 2 ? H5F_CLOSE_SEMI : H5F_CLOSE_WEAK);
    file = H5Fopen(name, H5F_ACC_RDONLY, mine);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < AGAIN; i++) {
            snprintf(path, sizeof path, "d%d", mode & 1 ? i : i % 5);
            open_and_say(file, path, (mode & 8) && round == 1 ? dapl : H5P_DEFAULT);
            if (i % 7 == 0)
                open_and_say(file, "alias", H5P_DEFAULT);
        }
    for (int i = 0; i < 3; i++) {
        hbool_t disabled = true;

        d = H5Dopen2(file, "d3", H5P_DEFAULT);
        DO(H5Oare_mdc_flushes_disabled(d, &disabled));
        DO(H5Odisable_mdc_flushes(d));
        DO(H5Dclose(d));
        say(&answers, "disabled: %d\n", disabled);
    }
    for (int i = 0; i < AGAIN; i++) {
        snprintf(path, sizeof path, "d%d", i);
        all[i] = H5Dopen2(file, path, H5P_DEFAULT);
        open_and_say(file, path, (mode & 8) && (mode & 1) ? dapl : H5P_DEFAULT);
    }
    for (int i = 0; i < AGAIN; i++) {
        say_first(all[i]);
        if (i < AGAIN - 1 || !(mode & 4))
            DO(H5Dclose(all[i]));
    }
    if (mode & 4) {
        herr_t closed = H5Fclose(file);
        say(&answers, "closed: %d\n", (int)closed);
        say_first(all[AGAIN - 1]);
        DO(H5Dclose(all[AGAIN - 1]));
        if (closed < 0)
            DO(H5Fclose(file));
    } else
        DO(H5Fclose(file));
    file = H5Fopen(name, H5F_ACC_RDWR, fapl); /* refused while anything of it is open to be read */
    DO(file);
    d = H5Dopen2(file, "alias", H5P_DEFAULT);
    put(d, 77, H5P_DEFAULT);
    DO(H5Dclose(d));
    DO(H5Ldelete(file, "d4", H5P_DEFAULT));
    DO(H5Fclose(file));
    file = H5Fopen(name, H5F_ACC_RDONLY, mine);
    open_and_say(file, "d3", H5P_DEFAULT);
    DO(H5Dopen2(file, "d4", H5P_DEFAULT));
    DO(H5Fclose(file));
    H5Pclose(mine);
    H5Pclose(dapl);
}

static void say_object(hid_t file, const char *name)
{
    H5O_info2_t info;

    info.rc = 0;
    if (H5Oget_info_by_name3(file, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        info.rc = 1000;
    say(&answers, "%s: %u\n", name, info.rc);
}

/* In a file that is written: what was read a moment ago is deleted, replaced, moved, resized. Bit 0: flushed between; bit 1: the
 * file is opened anew between, so that versions know the datasets; bit 2: with other prefixes. */
static void used_again(const char *name, hid_t fapl, int mode)
{
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dapl = raw_folder_dapl(),
          other = mode & 4 ? dapl : H5P_DEFAULT, dcpl = H5Pcreate(H5P_DATASET_CREATE), d;
    const hsize_t chunk = 100, more = MANY + 50;
    char path[32];

    H5Pset_chunk(dcpl, 1, &chunk);
    for (int i = 0; i < AGAIN; i++) {
        snprintf(path, sizeof path, "d%d", i);
        d = make(file, path, MANY, i % 2 ? H5S_UNLIMITED : MANY, i % 2 ? dcpl : H5P_DEFAULT, H5P_DEFAULT);
        put(d, 1000 * i, H5P_DEFAULT);
        DO(H5Dclose(d));
    }
    if (mode & 2) {
        DO(H5Fclose(file));
        file = H5Fopen(name, H5F_ACC_RDWR, fapl);
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < AGAIN; i++) {
            snprintf(path, sizeof path, "d%d", i);
            open_and_say(file, path, H5P_DEFAULT);
            open_and_say(file, path, other);
        }
        if (mode & 1)
            DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
        open_and_say(file, "d1", H5P_DEFAULT);
        DO(H5Ldelete(file, "d1", H5P_DEFAULT));
        say_object(file, "d1");
        d = make(file, "d1", MANY, MANY, dcpl, H5P_DEFAULT);
        put(d, 7, H5P_DEFAULT);
        DO(H5Dclose(d));
        open_and_say(file, "d1", other);
        open_and_say(file, "d2", H5P_DEFAULT);
        DO(H5Lmove(file, "d2", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT));
        open_and_say(file, "elsewhere", other);
        DO(H5Lmove(file, "elsewhere", file, "d2", H5P_DEFAULT, H5P_DEFAULT));
        open_and_say(file, "d3", H5P_DEFAULT);
        d = H5Dopen2(file, "d3", other);
        DO(H5Dset_extent(d, &more));
        DO(H5Dset_extent(d, &(hsize_t){MANY}));
        DO(H5Dclose(d));
        open_and_say(file, "d3", H5P_DEFAULT);
        DO(H5Lcreate_hard(file, "d4", file, "link", H5P_DEFAULT, H5P_DEFAULT));
        open_and_say(file, "link", H5P_DEFAULT);
        DO(H5Ldelete(file, "d4", H5P_DEFAULT));
        open_and_say(file, "link", other);
        say_object(file, "link");
        DO(H5Lmove(file, "link", file, "d4", H5P_DEFAULT, H5P_DEFAULT));
        DO(H5Ocopy(file, "d4", file, "copy", H5P_DEFAULT, H5P_DEFAULT));
        open_and_say(file, "copy", H5P_DEFAULT);
        DO(H5Ldelete(file, "copy", H5P_DEFAULT));
        if (round == 1 && (mode & 2)) {
            DO(H5Fclose(file));
            file = H5Fopen(name, H5F_ACC_RDWR, fapl);
        }
    }
    DO(H5Fclose(file));
    H5Pclose(dcpl);
    H5Pclose(dapl);
}

/* ---- filters that refuse ---- */

static size_t refuse_13(unsigned flags, size_t n, const unsigned values[], size_t bytes, size_t *size, void **buffer)
{
    (void)n;
    (void)values;
    (void)size;
    return !(flags & H5Z_FLAG_REVERSE) && **(int **)buffer == 13 ? 0 : bytes;
}

static H5Z_cb_return_t go_on(H5Z_filter_t id, void *buffer, size_t size, void *context)
{
    (void)id;
    (void)buffer;
    (void)size;
    (void)context;
    return H5Z_CB_CONT;
}

/* Bit 0: HDF5 keeps the dataset itself; 1: H5Dflush; 2: H5Fflush; 3: mended in the end; 4: closed after the file; 5: a
 * callback lets it pass, with bit 0; 6: a second handle. */
static void refused(const char *name, hid_t fapl, int mode)
{
    const H5Z_class2_t filter = {H5Z_CLASS_T_VERS, 300, 1, 1, "refuse 13", NULL, NULL, refuse_13};
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl), dcpl = H5Pcreate(H5P_DATASET_CREATE),
          dxpl = H5Pcreate(H5P_DATASET_XFER), d, other, second = H5I_INVALID_HID;
    hsize_t chunk = 100, n = mode & 1 ? 500 : MANY;
    int values[MANY];

    /* of a versioned dataset, a callback is asked when the elements are written, and more is kept (docs/data-model.md) */
    if ((mode & 32) && (mode & 1))
        H5Pset_filter_callback(dxpl, go_on, NULL);
    DO(H5Zregister(&filter));
    H5Pset_chunk(dcpl, 1, &chunk);
    other = make(file, "other", MANY, MANY, dcpl, H5P_DEFAULT);
    H5Pset_filter(dcpl, 300, H5Z_FLAG_MANDATORY, 0, NULL);
    d = make(file, "d", n, n, dcpl, H5P_DEFAULT);
    put(d, 1, H5P_DEFAULT);
    put(other, 1, H5P_DEFAULT);
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    if (mode & 64)
        second = H5Dopen2(file, "d", H5P_DEFAULT);
    put(d, -287, dxpl); /* the fourth chunk begins with 13 */
    put(other, 2, dxpl);
    for (int i = 0; i < 2 && mode & 2; i++)
        DO(H5Dflush(d));
    for (int i = 0; i < 2 && mode & 4; i++)
        DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    DO(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    say(&answers, "%d %d %d\n", values[0], values[300], values[400]);
    if (mode & 8)
        put(d, -286, H5P_DEFAULT);
    DO(H5Dclose(other));
    if (mode & 16)
        DO(H5Fclose(file));
    if (mode & 64)
        DO(H5Dclose(second));
    DO(H5Dclose(d));
    DO(H5Iis_valid(d) > 0 ? 0 : -1);
    if (!(mode & 16))
        DO(H5Fclose(file));
    /* and the same process goes on with the file */
    file = H5Fopen(name, H5F_ACC_RDWR, fapl);
    DO(file);
    d = H5Dopen2(file, "d", H5P_DEFAULT);
    DO(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    say(&answers, "%d %d %d\n", values[0], values[300], values[400]);
    DO(H5Dclose(d));
    DO(H5Fclose(file));
    H5Pclose(dxpl);
    H5Pclose(dcpl);
}

/* ---- all ---- */

static void both(const program *p)
{
    for (int mode = 0; mode < p->modes; mode++) {
        listing native = {0};
        char what[100];

        snprintf(what, sizeof what, "%s, mode %d", p->name, mode);
        clear(&answers);
        p->run(NATIVE, native_fapl, mode);
        native = answers;
        answers = (listing){0};
        p->run(COW, H5P_DEFAULT, mode);
        assert_true(same_text(what, &native, &answers));
        free(native.data);
        same_files(what, NATIVE, COW, H5P_DEFAULT);
    }
}

static void test_external_storage_found_by_a_prefix_or_lost(void **state)
{
    (void)state;
    both(&(program){"external storage", external_prefix, 16});
}

static void test_external_storage_resized_in_any_dimension(void **state)
{
    (void)state;
    both(&(program){"external storage resized", external_resized, 5});
}

static void test_prefixes_of_open_handles(void **state)
{
    (void)state;
    both(&(program){"a prefix", prefix_of_versioned, 8});
}

static void test_datasets_that_are_read_again(void **state)
{
    (void)state;
    both(&(program){"datasets that are read again", read_again, 8});
    both(&(program){"datasets that are used again", used_again, 4});
    both(&(program){"datasets that are read again", read_again, 16});
    both(&(program){"datasets that are used again", used_again, 8});
}

static void test_a_refused_chunk_is_its_datasets_error(void **state)
{
    (void)state;
    both(&(program){"a refused chunk", refused, 128});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* first: once a prefix was used nothing is kept any more */
        cmocka_unit_test(test_datasets_that_are_read_again),
        cmocka_unit_test(test_external_storage_found_by_a_prefix_or_lost),
        cmocka_unit_test(test_external_storage_resized_in_any_dimension),
        cmocka_unit_test(test_prefixes_of_open_handles),
        cmocka_unit_test(test_a_refused_chunk_is_its_datasets_error),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return test_main(tests, argc, argv, through_begin, through_end);
}
