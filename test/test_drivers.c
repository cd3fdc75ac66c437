/* Every file driver that HDF5 can build here, besides the default one (sec2): new files are what native HDF5 makes of
 * the same calls, without a history; files with a history open for reading, head and versions; for writing, drivers that
 * do what sec2 does make the next version, core without backing store works in memory, and all others are refused with
 * a sentence that says what, where and what to do; no driver writes over a history, also not where the name of the file
 * is only a part of the name that the program gave (family, split, multi, splitter). Run with HDF5_VOL_CONNECTOR=h5cow.
 */
#include "lowest_error.h"
#include "through.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESERVED "_versioned_data"
#define COW      "test_drivers_cow.h5"
#define OTHER    "test_drivers_other.h5"
#define ASIDE    COW ".h5cow-old-1"
#define SECOND   "test_drivers_second.h5" /* what the splitter writes besides */
#define LOG      "test_drivers.log"
#define WIDTH    3000

/* ---- drivers ---- */

static herr_t set_core_backed(hid_t fapl)
{
    return H5Pset_fapl_core(fapl, 65536, true);
}

static herr_t set_core_unbacked(hid_t fapl)
{
    return H5Pset_fapl_core(fapl, 65536, false);
}

static herr_t set_family(hid_t fapl)
{
    return H5Pset_fapl_family(fapl, 8192, H5P_DEFAULT);
}

static herr_t set_split(hid_t fapl)
{
    return H5Pset_fapl_split(fapl, "-m.h5", H5P_DEFAULT, "-r.h5", H5P_DEFAULT);
}

static herr_t set_multi(hid_t fapl)
{
    return H5Pset_fapl_multi(fapl, NULL, NULL, NULL, NULL, true);
}

static herr_t set_log(hid_t fapl)
{
    return H5Pset_fapl_log(fapl, LOG, H5FD_LOG_LOC_WRITE, 0);
}

static herr_t set_stdio(hid_t fapl)
{
    return H5Pset_fapl_stdio(fapl);
}

static herr_t set_splitter(hid_t fapl)
{
    H5FD_splitter_vfd_config_t config = {.magic = H5FD_SPLITTER_MAGIC,
                                         .version = H5FD_CURR_SPLITTER_VFD_CONFIG_VERSION,
                                         .rw_fapl_id = H5P_DEFAULT,
                                         .wo_fapl_id = H5P_DEFAULT,
                                         .wo_path = SECOND};

    return H5Pset_fapl_splitter(fapl, &config);
}

static herr_t set_onion(hid_t fapl)
{
    static H5FD_onion_fapl_info_t info = {.version = H5FD_ONION_FAPL_INFO_VERSION_CURR,
                                          .backing_fapl_id = H5I_INVALID_HID, /* set below */
                                          .page_size = 4096,
                                          .store_target = H5FD_ONION_STORE_TARGET_ONION,
                                          .revision_num = H5FD_ONION_FAPL_INFO_REVISION_ID_LATEST,
                                          .comment = "test"};

    info.backing_fapl_id = H5P_FILE_ACCESS_DEFAULT;
    return H5Pset_fapl_onion(fapl, &info);
}

#ifdef H5_HAVE_DIRECT
static herr_t set_direct(hid_t fapl)
{
    return H5Pset_fapl_direct(fapl, 4096, 4096, 65536);
}
#endif

typedef enum { ONE, MEMORY, PARTS } layout; /* the file at its name; nothing on the disk; files of other names */

typedef struct driver {
    const char *name; /* as messages say it */
    herr_t (*set)(hid_t fapl);
    layout layout;
    const char *file[2];  /* to be made: through the connector, and natively */
    const char *over;     /* the name under which it would write over COW, or NULL: COW itself */
    const char *taken[2]; /* the names that COW has then: each alone */
    bool own_kind;        /* of files: COW cannot be read with it */
    enum { REFUSED, NEXT_VERSION, IN_MEMORY } written; /* what becomes of COW where it is opened for writing */
} driver;

static const driver drivers[] = {
    {"core", set_core_backed, ONE, {"test_drivers_a.h5", "test_drivers_b.h5"}, NULL, {NULL}, false, NEXT_VERSION},
    {"core", set_core_unbacked, MEMORY, {"test_drivers_a.h5", "test_drivers_b.h5"}, NULL, {NULL}, false, IN_MEMORY},
    {"log", set_log, ONE, {"test_drivers_a.h5", "test_drivers_b.h5"}, NULL, {NULL}, false, NEXT_VERSION},
    {"stdio", set_stdio, ONE, {"test_drivers_a.h5", "test_drivers_b.h5"}, NULL, {NULL}, false, NEXT_VERSION},
#ifdef H5_HAVE_DIRECT
    {"direct", set_direct, ONE, {"test_drivers_a.h5", "test_drivers_b.h5"}, NULL, {NULL}, false, NEXT_VERSION},
#endif
    {"splitter",
     set_splitter,
     ONE,
     {"test_drivers_a.h5", "test_drivers_b.h5"},
     "test_drivers_a.h5",
     {SECOND},
     false,
     REFUSED},
    {"onion", set_onion, ONE, {"test_drivers_a.h5", "test_drivers_b.h5"}, NULL, {NULL}, true, REFUSED},
    {"family",
     set_family,
     PARTS,
     {"test_drivers_a%d.h5", "test_drivers_b%d.h5"},
     "test_drivers_a%d.h5",
     {"test_drivers_a0.h5", "test_drivers_a1.h5"},
     true,
     REFUSED},
    {"split",
     set_split,
     PARTS,
     {"test_drivers_a", "test_drivers_b"},
     "test_drivers_a",
     {"test_drivers_a-m.h5", "test_drivers_a-r.h5"},
     true,
     REFUSED},
    {"multi",
     set_multi,
     PARTS,
     {"test_drivers_a", "test_drivers_b"},
     "test_drivers_a",
     {"test_drivers_a-s.h5", "test_drivers_a-r.h5"},
     true,
     REFUSED},
};

static hid_t list_of(const driver *d, bool native)
{
    hid_t fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);

    assert_true(d->set(fapl) >= 0);
    return fapl;
}

static void clean(void)
{
    assert_true(system("rm -rf test_drivers_* test_drivers.log") == 0);
}

/* ---- what is in a file ---- */

static void fill(int *values, int value)
{
    for (int i = 0; i < WIDTH; i++)
        values[i] = value + i;
}

static void write_data(hid_t file, int value)
{
    int values[WIDTH];
    hid_t d = H5Dopen2(file, "g/d", H5P_DEFAULT);

    fill(values, value);
    assert_true(d >= 0 && H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(H5Dclose(d) >= 0);
}

static void make_content(hid_t file, int value)
{
    const hsize_t dims = WIDTH, chunk = 500;
    hid_t space = H5Screate_simple(1, &dims, NULL), scalar = H5Screate(H5S_SCALAR),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), lcpl = H5Pcreate(H5P_LINK_CREATE), object;

    H5Pset_create_intermediate_group(lcpl, 1);
    H5Pset_chunk(dcpl, 1, &chunk);
    assert_true((object = H5Dcreate2(file, "g/d", H5T_STD_I32LE, space, lcpl, dcpl, H5P_DEFAULT)) >= 0);
    H5Dclose(object);
    assert_true((object = H5Acreate2(file, "a", H5T_STD_I32LE, scalar, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Awrite(object, H5T_NATIVE_INT, &value) >= 0 && H5Aclose(object) >= 0);
    write_data(file, value);
    H5Pclose(lcpl);
    H5Pclose(dcpl);
    H5Sclose(scalar);
    H5Sclose(space);
}

static herr_t note_member(hid_t group, const char *name, const H5L_info2_t *info, void *l)
{
    (void)group;
    say(l, "link %s %d\n", name, (int)info->type);
    return 0;
}

static void describe(hid_t file, listing *l)
{
    int values[WIDTH] = {0}, attribute = 0;
    hid_t d, a;
    long long sum = 0;

    clear(l);
    assert_true(H5Literate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, note_member, l) >= 0);
    assert_true((a = H5Aopen(file, "a", H5P_DEFAULT)) >= 0 && H5Aread(a, H5T_NATIVE_INT, &attribute) >= 0);
    assert_true(H5Aclose(a) >= 0);
    assert_true((d = H5Dopen2(file, "g/d", H5P_DEFAULT)) >= 0);
    assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
    for (int i = 0; i < WIDTH; i++)
        sum += (long long)values[i] * (i % 7 + 1);
    say(l, "attribute %d, values %d to %d, %lld\n", attribute, values[0], values[WIDTH - 1], sum);
}

/* What make_content(VALUE) and write_data(NOW) leave, natively. */
static void describe_native(int value, int now, listing *l)
{
    hid_t file = H5Fcreate("test_drivers_model.h5", H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl);

    make_content(file, value);
    write_data(file, now);
    describe(file, l);
    assert_true(H5Fclose(file) >= 0);
}

/* A file with two versions: the attribute 1, the values from 1 and from 2 on. */
static void make_history(const char *name)
{
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    make_content(file, 1);
    assert_true(H5Fclose(file) >= 0);
    assert_true((file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    write_data(file, 2);
    assert_true(H5Fclose(file) >= 0);
}

static bool has_version(const char *name, int version)
{
    char text[200];
    listing model = {0}, found = {0};
    hid_t file;
    bool same = false;

    snprintf(text, sizeof text, "%s@%d", name, version);
    H5E_BEGIN_TRY
    {
        file = H5Fopen(text, H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    H5E_END_TRY
    if (file >= 0) {
        describe_native(1, version, &model);
        describe(file, &found);
        same = same_text(text, &model, &found);
        assert_true(H5Fclose(file) >= 0);
    }
    free(model.data);
    free(found.data);
    return same;
}

/* ---- bytes of files ---- */

typedef struct bytes {
    unsigned char *data;
    size_t size;
} bytes;

static bytes read_bytes(const char *name)
{
    FILE *file = fopen(name, "rb");
    bytes b = {calloc(1, 1 << 20), 0};

    if (b.data == NULL)
        abort();
    if (file != NULL) {
        b.size = fread(b.data, 1, 1 << 20, file);
        fclose(file);
    }
    return b;
}

static bool bytes_are(const char *name, const bytes *before)
{
    bytes now = read_bytes(name);
    bool same = now.size == before->size && now.size < 1 << 20 && memcmp(now.data, before->data, now.size) == 0;

    free(now.data);
    return same;
}

/* ---- errors ---- */

/* A file is opened or created; the lowest record of the error goes to TEXT. */
static hid_t attempt(const char *name, bool create, unsigned flags, hid_t fapl, char text[static LOWEST_ERROR])
{
    hid_t file, stack;

    text[0] = '\0';
    H5E_BEGIN_TRY
    {
        file = create ? H5Fcreate(name, flags, H5P_DEFAULT, fapl) : H5Fopen(name, flags, fapl);
        stack = H5Eget_current_stack();
    }
    H5E_END_TRY
    lowest_error(stack, text);
    H5Eclose_stack(stack);
    return file;
}

static void check_sentence(const char *text, const char *file, const char *name)
{
    bool good = strstr(text, file) != NULL && strstr(text, name) != NULL && strstr(text, "history") != NULL &&
                strstr(text, "sec2") != NULL && strstr(text, "h5cow export") != NULL;

    if (!good)
        printf("  the lowest record is: %s\n", text);
    assert_true(good);
}

/* ---- tests ---- */

static void test_new_files_are_what_native_hdf5_makes_of_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(drivers); i++) {
        const driver *d = &drivers[i];
        listing found[2][3] = {{{0}}};

        clean();
        for (int native = 0; native < 2; native++) {
            hid_t fapl = list_of(d, native), file = H5Fcreate(d->file[native], H5F_ACC_TRUNC, H5P_DEFAULT, fapl);

            assert_true(file >= 0);
            make_content(file, 5);
            describe(file, &found[native][0]);
            assert_true(H5Fclose(file) >= 0);
            assert_true((access(d->file[native], F_OK) == 0) == (d->layout == ONE));
            if (d->layout != MEMORY) {
                assert_true((file = H5Fopen(d->file[native], H5F_ACC_RDWR, fapl)) >= 0);
                write_data(file, 6);
                assert_true(H5Fclose(file) >= 0 && (file = H5Fopen(d->file[native], H5F_ACC_RDONLY, fapl)) >= 0);
                describe(file, &found[native][1]);
                assert_true(H5Fclose(file) >= 0);
            }
            H5Pclose(fapl);
        }
        if (d->layout != MEMORY) { /* what the connector wrote, without the connector */
            hid_t fapl = list_of(d, true), file = H5Fopen(d->file[0], H5F_ACC_RDONLY, fapl);

            assert_true(file >= 0 && H5Lexists(file, RESERVED, H5P_DEFAULT) == 0);
            describe(file, &found[0][2]);
            assert_true(H5Fclose(file) >= 0);
            assert_true((file = H5Fopen(d->file[1], H5F_ACC_RDONLY, fapl)) >= 0);
            describe(file, &found[1][2]);
            assert_true(H5Fclose(file) >= 0);
            H5Pclose(fapl);
        }
        for (int n = 0; n < 3; n++) {
            assert_true(same_text(d->name, &found[1][n], &found[0][n]));
            free(found[0][n].data);
            free(found[1][n].data);
        }
    }
}

static void test_head_and_versions_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(drivers); i++) {
        const driver *d = &drivers[i];
        hid_t fapl;

        if (d->own_kind)
            continue;
        clean();
        make_history(COW);
        if (d->set == set_splitter) /* opens that file too */
            make_history(SECOND);
        fapl = list_of(d, false);
        for (int version = 0; version < 3; version++) { /* 0: the head */
            char name[100];
            listing model = {0}, found = {0};
            hid_t file;

            snprintf(name, sizeof name, version == 0 ? COW : COW "@%d", version);
            file = H5Fopen(name, H5F_ACC_RDONLY, fapl);
            if (file < 0)
                printf("  %s: %s\n", d->name, name);
            assert_true(file >= 0);
            if (file < 0)
                continue;
            describe_native(1, version == 0 ? 2 : version, &model);
            describe(file, &found);
            assert_true(same_text(d->name, &model, &found));
            assert_true(H5Lexists(file, RESERVED, H5P_DEFAULT) == 0);
            assert_true(H5Fclose(file) >= 0);
            free(model.data);
            free(found.data);
        }
        H5Pclose(fapl);
    }
}

static void test_opening_for_writing_is_refused_with_a_reason(void **state)
{
    char text[LOWEST_ERROR];
    (void)state;

    for (size_t i = 0; i < COUNT(drivers); i++) {
        const driver *d = &drivers[i];

        for (int n = 0; d->written == REFUSED && n < 2 && (n == 0 || d->taken[n] != NULL); n++) {
            const char *file = d->taken[n] == NULL ? COW : d->taken[n], *name = d->over == NULL ? COW : d->over;
            hid_t fapl = list_of(d, false), opened;
            bytes before;

            clean();
            make_history(file);
            before = read_bytes(file);
            if (d->layout == ONE && d->over != NULL) { /* the file itself may be written, the second one not */
                assert_true((opened = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0 &&
                            H5Fclose(opened) >= 0);
            }
            opened = attempt(name, false, H5F_ACC_RDWR, fapl, text);
            assert_true(opened < 0);
            if (opened >= 0)
                H5Fclose(opened);
            check_sentence(text, file, d->name);
            assert_true(bytes_are(file, &before));
            assert_true(access(COW ".onion", F_OK) != 0);
            free(before.data);
            assert_true(has_version(file, 1) && has_version(file, 2));
            assert_true((opened = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0 && H5Fclose(opened) >= 0);
            H5Pclose(fapl);
        }
    }
}

static void test_drivers_that_do_what_sec2_does_make_the_next_version(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(drivers); i++) {
        const driver *d = &drivers[i];
        hid_t fapl, file, again, list;
        listing model = {0}, found = {0};
        void *handle;
        size_t increment;
        hbool_t backed;

        if (d->written != NEXT_VERSION)
            continue;
        clean();
        make_history(COW);
        fapl = list_of(d, false);
        assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, fapl)) >= 0);
        write_data(file, 3);
        assert_true((list = H5Fget_access_plist(file)) >= 0);
        assert_true(H5Pget_driver(list) == H5Pget_driver(fapl));
        if (d->set == set_core_backed)
            assert_true(H5Pget_fapl_core(list, &increment, &backed) >= 0 && increment == 65536 && backed);
        H5E_BEGIN_TRY
        {
            assert_true(H5Fget_vfd_handle(file, fapl, &handle) < 0); /* it would not be what this driver gives */
        }
        H5E_END_TRY
        assert_true((again = H5Fopen(COW, H5F_ACC_RDWR, list)) >= 0);
        describe_native(1, 3, &model);
        describe(again, &found);
        assert_true(same_text(d->name, &model, &found));
        assert_true(H5Pclose(list) >= 0 && H5Fclose(again) >= 0 && H5Fclose(file) >= 0);
        for (int version = 1; version <= 3; version++)
            assert_true(has_version(COW, version));
        assert_true((file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0);
        clear(&found);
        clear(&model);
        describe(file, &found);
        assert_true(strstr(found.data, "values 3 to") != NULL);
        assert_true(H5Fclose(file) >= 0);
        H5Pclose(fapl);
        free(model.data);
        free(found.data);
    }
}

/* PyTables (File.fileno) reads eight bytes where the driver says that its int is, and pandas gives them to fsync. With sec2 that
 * works: four bytes of padding stand behind its descriptor, and they are zeros. */
static void test_the_descriptor_reads_the_same_as_a_wider_number(void **state)
{
    const unsigned flags[] = {H5F_ACC_TRUNC, H5F_ACC_RDWR, H5F_ACC_RDONLY, H5F_ACC_RDWR};

    (void)state;
    clean();
    for (size_t i = 0; i < COUNT(flags); i++) {
        hid_t file = i == 0 ? H5Fcreate(COW, flags[i], H5P_DEFAULT, H5P_DEFAULT) : H5Fopen(COW, flags[i], H5P_DEFAULT);
        void *handle;
        int read[2];

        assert_true(file >= 0 && H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) >= 0);
        memcpy(read, handle, sizeof read);
        assert_true(read[0] > 2 && fcntl(read[0], F_GETFD) >= 0);
        assert_int_equal(read[1], 0);
        assert_true(H5Fclose(file) >= 0);
    }
}

static void change_much(hid_t file)
{
    const hsize_t dims = 10;
    hid_t space = H5Screate_simple(1, &dims, NULL), d;
    int values[10] = {5, 4, 3};

    write_data(file, 8);
    assert_true((d = H5Gcreate2(file, "made", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0 && H5Gclose(d) >= 0);
    assert_true((d = H5Dcreate2(file, "made/d", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
    assert_true(H5Ocopy(file, "g", file, "copied", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Adelete(file, "a") >= 0);
    assert_true((d = H5Acreate2(file, "a", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(H5Awrite(d, H5T_NATIVE_INT, values) >= 0 && H5Aclose(d) >= 0 && H5Sclose(space) >= 0);
}

static void describe_much(hid_t file, listing *l)
{
    int values[WIDTH] = {0};
    hid_t d;
    static const char *const names[] = {"g/d", "copied/d", "made/d"};

    clear(l);
    assert_true(H5Literate2(file, H5_INDEX_NAME, H5_ITER_INC, NULL, note_member, l) >= 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_true((d = H5Dopen2(file, names[i], H5P_DEFAULT)) >= 0);
        assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(d) >= 0);
        say(l, "%s %d %d %d\n", names[i], values[0], values[1], values[WIDTH - 1]);
    }
    assert_true((d = H5Aopen(file, "a", H5P_DEFAULT)) >= 0 && H5Aread(d, H5T_NATIVE_INT, values) >= 0 &&
                H5Aclose(d) >= 0);
    say(l, "a %d %d %d\n", values[0], values[1], values[2]);
}

/* Changes live as long as the file is open, for every handle on it; the file on the disk stays as it is. */
static void test_core_without_backing_store_changes_a_history_in_memory(void **state)
{
    static unsigned char image[1 << 20];
    listing found[2] = {{0}}, now = {0};
    hid_t fapl, file, again, list;
    char name[200];
    size_t increment;
    ssize_t size = 0;
    hbool_t backed;
    bytes before;
    (void)state;

    clean();
    make_history(COW);
    before = read_bytes(COW);
    assert_true((file = H5Fcreate("test_drivers_model.h5", H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    make_content(file, 1);
    write_data(file, 2);
    assert_true(H5Fclose(file) >= 0);
    for (int native = 0; native < 2; native++) {
        const char *path = native ? "test_drivers_model.h5" : COW;

        fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);
        set_core_unbacked(fapl);
        assert_true((file = H5Fopen(path, H5F_ACC_RDWR, fapl)) >= 0);
        change_much(file);
        assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
        snprintf(name, sizeof name, "./%s", path); /* the same file by another name */
        assert_true((again = H5Fopen(name, H5F_ACC_RDWR, fapl)) >= 0);
        describe_much(again, &found[native]);
        assert_true(H5Fget_name(file, name, sizeof name) == (ssize_t)strlen(path) && strcmp(name, path) == 0);
        assert_true((list = H5Fget_access_plist(file)) >= 0 && H5Pget_driver(list) == H5FD_CORE);
        assert_true(H5Pget_fapl_core(list, &increment, &backed) >= 0 && increment == 65536);
        assert_true(H5Pclose(list) >= 0 && H5Fclose(again) >= 0);
        if (!native)
            assert_true(bytes_are(COW, &before) && (size = H5Fget_file_image(file, image, sizeof image)) > 0);
        assert_true(H5Fclose(file) >= 0);
        H5Pclose(fapl);
    }
    assert_true(same_text("in memory", &found[1], &found[0]));
    assert_true(bytes_are(COW, &before));
    assert_true(system("test $(ls test_drivers_* | wc -l) = 2") == 0);
    assert_true(has_version(COW, 1) && has_version(COW, 2) && !has_version(COW, 3));
    /* opened again, it is as on the disk, and its versions are read in memory as well */
    fapl = H5Pcreate(H5P_FILE_ACCESS);
    set_core_unbacked(fapl);
    describe_native(1, 2, &found[1]);
    for (int writable = 0; writable < 2; writable++) {
        assert_true((file = H5Fopen(COW, writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY, fapl)) >= 0);
        describe(file, &now);
        assert_true(same_text("again", &found[1], &now) && H5Fclose(file) >= 0);
    }
    H5Pclose(fapl);
    /* what was in memory can be written to a file, which HDF5 alone reads */
    assert_true((fapl = H5Pcopy(native_fapl)) >= 0 && set_core_unbacked(fapl) >= 0);
    assert_true(H5Pset_file_image(fapl, image, (size_t)size) >= 0);
    assert_true((file = H5Fopen("test_drivers_image.h5", H5F_ACC_RDONLY, fapl)) >= 0);
    clear(&found[1]);
    describe_much(file, &found[1]);
    assert_true(strstr(found[1].data, "made/d 5 4 ") != NULL && H5Fclose(file) >= 0);
    H5Pclose(fapl);
    free(before.data);
    free(now.data);
    free(found[0].data);
    free(found[1].data);
}

/* What h5repack writes has a history, and no fence. */
static void test_a_history_without_a_fence_is_refused_as_well(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, copy, source;
    char text[LOWEST_ERROR];
    bytes before;
    (void)state;

    clean();
    make_history(COW);
    assert_true((source = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl)) >= 0);
    assert_true((copy = H5Fcreate("test_drivers_copy.h5", H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    assert_true(H5Ocopy(source, RESERVED, copy, RESERVED, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    assert_true(H5Fclose(copy) >= 0 && H5Fclose(source) >= 0);
    before = read_bytes("test_drivers_copy.h5");
    set_stdio(fapl);
    file = attempt("test_drivers_copy.h5", false, H5F_ACC_RDWR, fapl, text);
    assert_true(file < 0);
    assert_true(strstr(text, "has a history but no journal") != NULL && strstr(text, "h5cow import") != NULL);
    assert_true(bytes_are("test_drivers_copy.h5", &before));
    free(before.data);
    H5Pclose(fapl);
}

static void test_creating_over_a_history_keeps_it(void **state)
{
    char text[LOWEST_ERROR];
    (void)state;

    for (size_t i = 0; i < COUNT(drivers); i++) {
        const driver *d = &drivers[i];

        for (int n = 0; n < 2 && (n == 0 || d->taken[n] != NULL); n++) {
            const char *file = d->taken[n] == NULL ? COW : d->taken[n];
            hid_t fapl = list_of(d, false), created;
            bytes before;

            clean();
            make_history(file);
            before = read_bytes(file);
            created = attempt(d->over == NULL ? COW : d->over, true, H5F_ACC_TRUNC, fapl, text);
            if (d->over == NULL) { /* kept beside, or (in memory) where it was */
                assert_true(created >= 0);
                if (created < 0)
                    printf("  %s: %s\n", d->name, text);
                else {
                    make_content(created, 9);
                    assert_true(H5Fclose(created) >= 0);
                }
                if (d->layout == MEMORY)
                    assert_true(bytes_are(file, &before));
                assert_true((access(ASIDE, F_OK) == 0) == (d->layout == ONE));
                assert_true(has_version(d->layout == ONE ? ASIDE : COW, 1) &&
                            has_version(d->layout == ONE ? ASIDE : COW, 2));
            } else { /* a part of what is created */
                assert_true(created < 0);
                if (created >= 0)
                    H5Fclose(created);
                check_sentence(text, file, d->name);
                assert_true(bytes_are(file, &before) && has_version(file, 1) && has_version(file, 2));
            }
            free(before.data);
            H5Pclose(fapl);
        }
    }
}

/* A family goes on in the next member as it grows, whatever there is. */
static void test_a_family_does_not_grow_into_a_history(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    char text[LOWEST_ERROR];
    bytes before;
    (void)state;

    clean();
    set_family(fapl);
    make_history("test_drivers_a3.h5");
    before = read_bytes("test_drivers_a3.h5");
    file = attempt("test_drivers_a%d.h5", true, H5F_ACC_TRUNC, fapl, text);
    assert_true(file < 0);
    check_sentence(text, "test_drivers_a3.h5", "family");
    assert_true(bytes_are("test_drivers_a3.h5", &before));
    free(before.data);
    H5Pclose(fapl);
}

/* Given by H5Pset_file_image, in the place of a file. */
static void test_images_of_files_are_read_and_written_in_memory(void **state)
{
    listing found[2][2] = {{{0}}}, model = {0};
    hid_t source, fapl, file;
    static unsigned char image[1 << 20];
    ssize_t size;
    (void)state;

    clean();
    assert_true((source = H5Fcreate("test_drivers_model.h5", H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    make_content(source, 3);
    assert_true(H5Fflush(source, H5F_SCOPE_LOCAL) >= 0);
    assert_true((size = H5Fget_file_image(source, image, sizeof image)) > 0 && H5Fclose(source) >= 0);
    for (int native = 0; native < 2; native++) {
        fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);
        set_core_unbacked(fapl);
        assert_true(H5Pset_file_image(fapl, image, (size_t)size) >= 0);
        assert_true((file = H5Fopen("test_drivers_image.h5", H5F_ACC_RDWR, fapl)) >= 0);
        describe(file, &found[native][0]);
        write_data(file, 8);
        describe(file, &found[native][1]);
        assert_true(H5Fclose(file) >= 0 && access("test_drivers_image.h5", F_OK) != 0);
        H5Pclose(fapl);
    }
    for (int n = 0; n < 2; n++) {
        assert_true(same_text("image", &found[1][n], &found[0][n]));
        free(found[0][n].data);
        free(found[1][n].data);
        found[0][n] = (listing){0};
    }
    /* the image of a file with history: its newest state */
    make_history(COW);
    assert_true((source = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
    write_data(source, 7);
    assert_true((size = H5Fget_file_image(source, image, sizeof image)) > 0 && H5Fclose(source) >= 0);
    describe_native(1, 7, &model);
    for (int native = 0; native < 2; native++) {
        fapl = native ? H5Pcopy(native_fapl) : H5Pcreate(H5P_FILE_ACCESS);
        set_core_unbacked(fapl);
        assert_true(H5Pset_file_image(fapl, image, (size_t)size) >= 0);
        assert_true((file = H5Fopen("test_drivers_image.h5", H5F_ACC_RDONLY, fapl)) >= 0);
        if (file >= 0) {
            if (!native) {
                describe(file, &found[0][0]);
                assert_true(same_text("image of a history", &model, &found[0][0]));
                free(found[0][0].data);
                found[0][0] = (listing){0};
            }
            assert_true(H5Fclose(file) >= 0);
        }
        /* it has neither fence nor journal, and is in memory: it can be written */
        assert_true((file = H5Fopen("test_drivers_image.h5", H5F_ACC_RDWR, fapl)) >= 0);
        if (!native) {
            change_much(file);
            describe_much(file, &found[0][0]);
            assert_true(H5Fclose(file) >= 0);
            assert_true((file = H5Fopen("test_drivers_model.h5", H5F_ACC_RDWR, native_fapl)) >= 0);
            change_much(file);
            describe_much(file, &found[0][1]);
            assert_true(same_text("image of a history, written", &found[0][1], &found[0][0]));
            for (int n = 0; n < 2; n++) {
                free(found[0][n].data);
                found[0][n] = (listing){0};
            }
        }
        assert_true(H5Fclose(file) >= 0 && access("test_drivers_image.h5", F_OK) != 0);
        H5Pclose(fapl);
    }
    free(model.data);
}

/* A link can say which driver opens the file that it leads to. */
static void test_external_links_with_another_driver_read_a_history_and_do_not_write_it(void **state)
{
    hid_t outer, dapl = H5Pcreate(H5P_DATASET_ACCESS), fapl = H5Pcreate(H5P_FILE_ACCESS), d;
    int values[WIDTH] = {0};
    bytes before;
    (void)state;

    clean();
    make_history(COW);
    before = read_bytes(COW);
    assert_true(set_stdio(fapl) >= 0 && H5Pset_elink_fapl(dapl, fapl) >= 0);
    for (int history = 0; history < 2; history++) {
        const char *name = "test_drivers_outer.h5";

        assert_true((outer = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, history ? H5P_DEFAULT : native_fapl)) >= 0);
        assert_true(H5Lcreate_external(COW, "/g/d", outer, "there", H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
                    H5Fclose(outer) >= 0);
        assert_true((outer = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
        assert_true((d = H5Dopen2(outer, "there", dapl)) >= 0);
        assert_true(H5Dread(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && values[0] == 2);
        assert_true(H5Dclose(d) >= 0 && H5Fclose(outer) >= 0);
        assert_true((outer = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT)) >= 0);
        H5E_BEGIN_TRY
        {
            if ((d = H5Dopen2(outer, "there", dapl)) >= 0) {
                assert_true(H5Dwrite(d, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0);
                assert_true(H5Dclose(d) >= 0);
            }
        }
        H5E_END_TRY
        assert_true(H5Fclose(outer) >= 0 && bytes_are(COW, &before));
    }
    assert_true(has_version(COW, 1) && has_version(COW, 2));
    free(before.data);
    H5Pclose(dapl);
    H5Pclose(fapl);
}

/* ---- an image that the program lends ---- */

static char *lent;

static void *lend(size_t size, H5FD_file_image_op_t op, void *context)
{
    (void)context;
    return op == H5FD_FILE_IMAGE_OP_FILE_RESIZE ? malloc(size) : lent;
}

static void *lend_copy(void *to, const void *from, size_t size, H5FD_file_image_op_t op, void *context)
{
    (void)op;
    (void)context;
    return to == from ? to : memcpy(to, from, size);
}

static void *lend_more(void *image, size_t size, H5FD_file_image_op_t op, void *context)
{
    (void)size;
    (void)op;
    (void)context;
    return image;
}

static herr_t take_back(void *image, H5FD_file_image_op_t op, void *context)
{
    (void)image;
    (void)op;
    (void)context;
    return 0;
}

static void *same_context(void *context)
{
    return context;
}

static herr_t keep_context(void *context)
{
    (void)context;
    return 0;
}

/* As netCDF's nc_open_mem: what its callbacks give is no block that could be freed. */
static void test_an_image_that_the_program_lends_stays_the_programs(void **state)
{
    H5FD_file_image_callbacks_t callbacks = {lend, lend_copy, lend_more, take_back, same_context, keep_context, &lent};
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    ssize_t size;
    char *block = NULL;
    (void)state;

    assert_true(H5Pset_fapl_core(fapl, 4096, false) >= 0);
    assert_true((file = H5Fcreate("test_drivers_image.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    assert_true(H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0 &&
                H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_true((size = H5Fget_file_image(file, NULL, 0)) > 0 && (block = malloc((size_t)size + 64)) != NULL);
    lent = block + 64; /* no beginning of a block of malloc */
    assert_true(H5Fget_file_image(file, lent, (size_t)size) == size && H5Fclose(file) >= 0);
    assert_true(H5Pset_file_image_callbacks(fapl, &callbacks) >= 0 && H5Pset_file_image(fapl, lent, (size_t)size) >= 0);
    assert_true((file = H5Fopen("image", H5F_ACC_RDONLY, fapl)) >= 0 && H5Lexists(file, "g", H5P_DEFAULT) > 0);
    assert_true(H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    free(block);
}

static bool may_grow;

static void *grow(void *image, size_t size, H5FD_file_image_op_t op, void *context)
{
    (void)op;
    (void)context;
    return may_grow ? lent = realloc(image, size) : NULL;
}

/* An image of NAME in `lent`, opened with FLAGS: by copying it, in the program's own buffer, or in one that may not grow. */
static hid_t open_image(hid_t list, const char *name, unsigned flags, int kind)
{
    H5FD_file_image_callbacks_t callbacks = {lend, lend_copy, grow, take_back, same_context, keep_context, &lent};
    hid_t source, fapl = H5Pcopy(list), file;
    ssize_t size;

    assert_true((source = H5Fopen(name, H5F_ACC_RDONLY, list)) >= 0);
    assert_true((size = H5Fget_file_image(source, NULL, 0)) > 0 && (lent = malloc((size_t)size)) != NULL);
    assert_true(H5Fget_file_image(source, lent, (size_t)size) == size && H5Fclose(source) >= 0);
    may_grow = kind == 1;
    assert_true(H5Pset_fapl_core(fapl, 1 << 16, false) >= 0);
    assert_true(kind == 0 || H5Pset_file_image_callbacks(fapl, &callbacks) >= 0);
    assert_true(H5Pset_file_image(fapl, lent, (size_t)size) >= 0);
    assert_true((file = H5Fopen("image", flags, fapl)) >= 0 && H5Pclose(fapl) >= 0);
    return file;
}

/* What a program does with it. -1: it fails. */
static int use_image(hid_t file, int what)
{
    int values[30] = {0}, status;
    hid_t set;

    if (what == 0)
        return 0;
    assert_true((set = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0);
    status = what == 1 ? H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values)
                       : H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    assert_true(what != 1 || values[3] == 3);
    H5Dclose(set);
    return status;
}

static void make_source(const char *name, hid_t fapl)
{
    const hsize_t n = 30, chunk = 10, most = H5S_UNLIMITED;
    hid_t file, set, dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, &most);
    int values[30];

    for (int i = 0; i < 30; i++)
        values[i] = i;
    remove(name);
    assert_true((file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0 && H5Pset_chunk(dcpl, 1, &chunk) >= 0);
    assert_true((set = H5Dcreate2(file, "d", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0);
    assert_true(H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 && H5Dclose(set) >= 0);
    assert_true(H5Fclose(file) >= 0 && H5Pclose(dcpl) >= 0 && H5Sclose(space) >= 0);
}

/* As H5LTopen_file_image with all of its flags: all closes as natively, also where the buffer may not grow. */
static void test_images_in_buffers_of_the_program_close(void **state)
{
    hid_t lists[2] = {native_fapl, H5Pcreate(H5P_FILE_ACCESS)};
    const char *const names[2] = {OTHER, COW};
    (void)state;

    for (int i = 0; i < 2; i++)
        make_source(names[i], lists[i]);
    for (int kind = 0; kind < 3; kind++)
        for (int what = 0; what < 6; what++) {
            const unsigned flags = what < 3 ? H5F_ACC_RDONLY : H5F_ACC_RDWR;
            int answer[2][3];

            during("buffer %d, flags %u, what %d", kind, flags, what % 3);
            for (int i = 0; i < 2; i++) {
                hid_t file = open_image(lists[i], names[i], flags, kind);
                hid_t left = what % 3 == 0 ? H5Oopen(file, kind == 0 ? "/" : "d", H5P_DEFAULT) : H5I_INVALID_HID;

                H5E_BEGIN_TRY
                {
                    answer[i][0] = use_image(file, what % 3);
                    answer[i][1] = H5Fclose(file);
                    answer[i][2] = answer[i][1] < 0 ? H5Fclose(file) : left >= 0 ? H5Oclose(left) : 0;
                }
                H5E_END_TRY
                assert_true(answer[i][2] == 0 && H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
                free(lent);
            }
            assert_memory_equal(answer[0], answer[1], sizeof answer[0]);
        }
    assert_true(H5Pclose(lists[1]) >= 0);
    remove(OTHER);
    remove(COW);
}

/* ---- what HDF5's tools mend ---- */

static long long bytes_in(const char *name)
{
    struct stat about;

    return stat(name, &about) == 0 ? (long long)about.st_size : -1;
}

/* h5clear opens such files with properties of its own, to mend them: closed without that, HDF5 would cut off their end. */
static void test_a_file_with_a_damaged_root_opens_as_natively(void **state)
{
    const char garbage[8] = "garbage";
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    hbool_t yes = true;
    long long before;
    int raw;
    (void)state;

    assert_true(H5Pset_libver_bounds(native_fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0 && H5Fclose(file) >= 0);
    assert_true(H5Pset_libver_bounds(native_fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) >= 0);
    assert_true((raw = open(COW, O_RDWR)) >= 0 && pwrite(raw, garbage, sizeof garbage, 48) == sizeof garbage &&
                ftruncate(raw, 5000) == 0 && close(raw) == 0);
    before = bytes_in(COW);
    assert_true(H5Pset(fapl, "skip_eof_check", &yes) >= 0);
    assert_true((file = H5Fopen(COW, H5F_ACC_RDWR, fapl)) >= 0);
    assert_true(H5Fincrement_filesize(file, 0) >= 0 && H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
    assert_true(before == 5000 && bytes_in(COW) == before);
    remove(COW);
}

/* h5repart: of a family, whose superblock names its driver, to one file. */
static void test_a_family_becomes_a_single_file(void **state)
{
    hid_t family = H5Pcreate(H5P_FILE_ACCESS), fapl = H5Pcreate(H5P_FILE_ACCESS), file;
    hbool_t yes = true;
    (void)state;

    /* of the oldest format: with another one HDF5 2.2.0 crashes where it takes the driver out of the superblock, also alone */
    assert_true(H5Pset_fapl_family(family, 1 << 20, H5P_DEFAULT) >= 0 &&
                H5Pset_libver_bounds(family, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST) >= 0);
    assert_true((file = H5Fcreate("test_drivers_family_%d.h5", H5F_ACC_TRUNC, H5P_DEFAULT, family)) >= 0);
    assert_true(H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0 && H5Fclose(file) >= 0);
    assert_true(H5Pset_fapl_sec2(fapl) >= 0 && H5Pset(fapl, "family_to_single", &yes) >= 0);
    assert_true((file = H5Fopen("test_drivers_family_0.h5", H5F_ACC_RDWR, fapl)) >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fopen("test_drivers_family_0.h5", H5F_ACC_RDONLY, H5P_DEFAULT)) >= 0);
    assert_true(H5Lexists(file, "g", H5P_DEFAULT) > 0 && H5Fclose(file) >= 0);
    assert_true(H5Pclose(family) >= 0 && H5Pclose(fapl) >= 0);
    remove("test_drivers_family_0.h5");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_image_that_the_program_lends_stays_the_programs),
        cmocka_unit_test(test_images_in_buffers_of_the_program_close),
        cmocka_unit_test(test_a_file_with_a_damaged_root_opens_as_natively),
        cmocka_unit_test(test_a_family_becomes_a_single_file),
        cmocka_unit_test(test_new_files_are_what_native_hdf5_makes_of_them),
        cmocka_unit_test(test_head_and_versions_are_read),
        cmocka_unit_test(test_opening_for_writing_is_refused_with_a_reason),
        cmocka_unit_test(test_drivers_that_do_what_sec2_does_make_the_next_version),
        cmocka_unit_test(test_the_descriptor_reads_the_same_as_a_wider_number),
        cmocka_unit_test(test_core_without_backing_store_changes_a_history_in_memory),
        cmocka_unit_test(test_a_history_without_a_fence_is_refused_as_well),
        cmocka_unit_test(test_creating_over_a_history_keeps_it),
        cmocka_unit_test(test_a_family_does_not_grow_into_a_history),
        cmocka_unit_test(test_external_links_with_another_driver_read_a_history_and_do_not_write_it),
        cmocka_unit_test(test_images_of_files_are_read_and_written_in_memory),
    };
    int status = test_main(tests, argc, argv, through_begin, through_end);

    clean();
    return status;
}
