/* api/h5cow.h through the connector: what each function does, what it refuses and in which words, and that structures of
 * other sizes are taken as they are meant. Run with HDF5_VOL_CONNECTOR=h5cow.
 *
 *   test_api                     all
 *   test_api NAME                one test
 *   test_api --child NAME FILE   a program of its own, for tests that need one
 *
 * What the command says of the same versions, other languages, and the page docs/api.md: test_api.py.
 */
#include "h5cow.h"
#include "lowest_error.h"
#include "through.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COW   "test_api_cow.h5"
#define OTHER "test_api_other.h5"
#define PLAIN "test_api_plain.h5"
#define ASIDE COW ".h5cow-old-1"
#define MANY  2000 /* more than HDF5 keeps itself: 4 KiB */

/* ---- tools ---- */

static bool says(hid_t stack, const char *word)
{
    char lowest[LOWEST_ERROR] = "";

    lowest_error(stack, lowest);
    H5Eclose_stack(stack);
    if (strstr(lowest, word) != NULL)
        return true;
    printf("  no '%s' in '%s'\n", word, lowest);
    return false;
}

/* CALL fails, and the lowest record of HDF5's error stack has WORD in it. */
#define FAILS(call, word)                                                                                              \
    do {                                                                                                               \
        hid_t failed_stack_;                                                                                           \
        long long answer_;                                                                                             \
        H5E_BEGIN_TRY                                                                                                  \
        {                                                                                                              \
            answer_ = (long long)(call);                                                                               \
            failed_stack_ = H5Eget_current_stack();                                                                    \
        }                                                                                                              \
        H5E_END_TRY                                                                                                    \
        assert_true(answer_ < 0);                                                                                      \
        assert_true(says(failed_stack_, word));                                                                        \
    } while (0)

/* All elements of the dataset NAME become VALUE; it is made where it is missing: chunks of 100 elements. */
static herr_t put(hid_t file, const char *name, int value)
{
    static int values[MANY];
    const hsize_t many = MANY, chunk = 100;
    hid_t space = -1, dcpl = -1, dataset, stack;
    herr_t status = -1;

    for (int i = 0; i < MANY; i++)
        values[i] = value;
    if (H5Lexists(file, name, H5P_DEFAULT) > 0)
        dataset = H5Dopen2(file, name, H5P_DEFAULT);
    else {
        space = H5Screate_simple(1, &many, NULL);
        dcpl = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(dcpl, 1, &chunk);
        dataset = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    }
    if (dataset >= 0)
        status = H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    stack = H5Eget_current_stack(); /* which says why it failed */
    if (dcpl >= 0 && (H5Pclose(dcpl) < 0 || H5Sclose(space) < 0))
        status = -1;
    if (dataset >= 0 && H5Dclose(dataset) < 0)
        status = -1;
    H5Eset_current_stack(stack);
    return status;
}

/* Of a file or group; -1: it cannot be read, or is not one value throughout. */
static int get(hid_t file, const char *name)
{
    int values[MANY];
    hid_t dataset = -1;
    herr_t status = -1;

    H5E_BEGIN_TRY
    {
        if ((dataset = H5Dopen2(file, name, H5P_DEFAULT)) >= 0) {
            status = H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
            H5Dclose(dataset);
        }
    }
    H5E_END_TRY
    for (int i = 0; status >= 0 && i < MANY; i++)
        if (values[i] != values[0])
            status = -1;
    return status < 0 ? -1 : values[0];
}

static int value_in(const char *name, const char *dataset)
{
    hid_t file;
    int value = -1;

    H5E_BEGIN_TRY
    {
        file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    }
    H5E_END_TRY
    if (file >= 0) {
        value = get(file, dataset);
        assert_true(H5Fclose(file) >= 0);
    }
    return value;
}

static hid_t create(const char *name)
{
    hid_t file;

    remove(name);
    file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(file >= 0);
    return file;
}

static hid_t change(const char *name)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(file >= 0);
    return file;
}

/* A file with COUNT versions; in version N dataset "d" is N. */
static void make(const char *name, int count)
{
    for (int n = 1; n <= count; n++) {
        hid_t file = n == 1 ? create(name) : change(name);

        assert_true(put(file, "d", n) >= 0 && H5Fclose(file) >= 0);
    }
}

static hid_t with_options(const char *options)
{
    hid_t connector = H5VLget_connector_id_by_name("h5cow"), fapl = H5Pcreate(H5P_FILE_ACCESS);
    void *info = NULL;

    assert_true(H5VLconnector_str_to_info(options, connector, &info) >= 0 && H5Pset_vol(fapl, connector, info) >= 0);
    H5VLfree_connector_info(connector, info);
    H5VLclose(connector);
    return fapl;
}

static size_t count_versions(hid_t id)
{
    h5cow_version_t *versions;
    size_t count;

    assert_true(h5cow_versions(id, &count, &versions) >= 0);
    assert_true(h5cow_free(versions) >= 0);
    return count;
}

static size_t versions_of(const char *name)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);
    size_t count = count_versions(file);

    assert_true(H5Fclose(file) >= 0);
    return count;
}

/* Name and message of version NUMBER. */
static bool is_called(hid_t id, size_t number, const char *name, const char *message)
{
    h5cow_version_t *versions;
    size_t count;
    bool same = h5cow_versions(id, &count, &versions) >= 0 && number >= 1 && number <= count &&
                versions[number - 1].number == number && strcmp(versions[number - 1].name, name) == 0 &&
                strcmp(versions[number - 1].message, message) == 0;

    if (!same && count >= number)
        printf("  version %zu is '%s' \"%s\"\n", number, versions[number - 1].name, versions[number - 1].message);
    h5cow_free(versions);
    return same;
}

/* Number of the version that ID shows, 0: none; *OLD and *UNCOMMITTED (may be NULL) as h5cow_version says. */
static uint64_t shown(hid_t id, int *old, int *uncommitted)
{
    h5cow_state_t state;
    uint64_t number;

    assert_true(h5cow_version(id, &state) >= 0);
    number = state.version == NULL ? 0 : state.version->number;
    if (old != NULL)
        *old = state.old_version;
    if (uncommitted != NULL)
        *uncommitted = state.uncommitted;
    h5cow_free(state.version);
    return number;
}

static off_t size_of(const char *name)
{
    struct stat about;

    return stat(name, &about) < 0 ? -1 : about.st_size;
}

/* How the process ended that runs --child NAME on FILE. */
static char *self;
static int child(const char *name, const char *file)
{
    pid_t process = fork_child();
    int status = -1;

    if (process == 0) {
        execl(self, self, "--child", name, file, (char *)NULL);
        _exit(99);
    }
    assert_true(waitpid(process, &status, 0) == process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* ---- programs of their own ---- */

/* Another process sees version N only, can write the file, or cannot. */
static int child_reads(const char *file)
{
    return value_in(file, "d");
}

static int child_writes(const char *file)
{
    hid_t id;

    H5E_BEGIN_TRY
    {
        id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);
    }
    H5E_END_TRY
    if (id < 0)
        return 1;
    return put(id, "d", 77) < 0 || H5Fclose(id) < 0 ? 2 : 0;
}

/* Ends with everything open. */
static int child_aborts_and_exits(const char *file)
{
    hid_t id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT), dataset;

    if (put(id, "d", 50) < 0 || (dataset = H5Dopen2(id, "d", H5P_DEFAULT)) < 0 || h5cow_abort(dataset) < 0)
        return 1;
    exit(0);
}

static int child_aborts_a_new_file_and_exits(const char *file)
{
    hid_t id = H5Fcreate(file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

    if (put(id, "d", 50) < 0 || H5Dopen2(id, "d", H5P_DEFAULT) < 0 || h5cow_abort(id) < 0)
        return 1;
    exit(0);
}

static int child_aborts_and_closes_the_library(const char *file)
{
    hid_t id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);

    if (put(id, "d", 50) < 0 || h5cow_abort(id) < 0 || H5close() < 0)
        return 1;
    return value_in(file, "d"); /* in the library's next life */
}

static int child_lives_twice(const char *file)
{
    uint64_t number[2] = {0, 0};

    for (int life = 0; life < 2; life++) {
        hid_t id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);
        char message[32];

        snprintf(message, sizeof message, "life %d", life);
        if (put(id, "d", 60 + life) < 0 || h5cow_describe(id, NULL, message) < 0 ||
            h5cow_commit(id, &number[life]) < 0 || !is_called(id, (size_t)number[life], life == 0 ? "3" : "5", message))
            return 1;
        if (life == 0 && put(id, "d", 70) < 0) /* open, and changed, when the library ends */
            return 1;
        if (life == 1 && H5Fclose(id) < 0)
            return 1;
        if (H5close() < 0)
            return 1;
    }
    return number[0] == 3 && number[1] == 5 ? 0 : 2;
}

/* Before anything was open through the connector. */
static int child_knows_nothing_yet(const char *file)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), id;

    H5Pset_vol(fapl, H5VL_NATIVE, NULL);
    id = H5Fopen(file, H5F_ACC_RDONLY, fapl);
    FAILS(h5cow_commit(id, NULL), "HDF5_VOL_CONNECTOR=h5cow");
    FAILS(h5cow_abort(-1), "not the id of a file");
    H5Fclose(id);
    H5Pclose(fapl);
    return 0;
}

/* A plain file is the first one. */
static int child_knows_plain_files(const char *file)
{
    hid_t id = H5Fopen(file, H5F_ACC_RDWR, H5P_DEFAULT);

    FAILS(h5cow_commit(id, NULL), "the file has no history");
    H5Fclose(id);
    return 0;
}

/* What is printed where nothing turns that off: one stack, with the reason. */
static int child_prints(const char *file)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), id;

    H5Pset_vol(fapl, H5VL_NATIVE, NULL);
    id = H5Fopen(file, H5F_ACC_RDONLY, fapl);
    h5cow_commit(id, NULL);
    h5cow_has_history(id);
    H5Fclose(id);
    H5Pclose(fapl);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(const char *file);
} children[] = {
    {"reads", child_reads},
    {"writes", child_writes},
    {"aborts and exits", child_aborts_and_exits},
    {"aborts a new file and exits", child_aborts_a_new_file_and_exits},
    {"aborts and closes the library", child_aborts_and_closes_the_library},
    {"lives twice", child_lives_twice},
    {"knows nothing yet", child_knows_nothing_yet},
    {"knows plain files", child_knows_plain_files},
    {"prints", child_prints},
};

/* ---- describing and committing ---- */

static void test_one_opening_makes_as_many_versions_as_are_committed(void **state)
{
    hid_t file = create(COW);
    h5cow_version_t *versions;
    char name[64];
    uint64_t number;
    size_t count;
    (void)state;

    for (int n = 1; n <= 3; n++) {
        snprintf(name, sizeof name, "run %d", n);
        assert_true(put(file, "d", n) >= 0);
        assert_true(h5cow_describe(file, n == 2 ? name : NULL, n == 1 ? NULL : name) >= 0);
        assert_true(h5cow_commit(file, &number) >= 0 && number == (uint64_t)n);
    }
    assert_true(put(file, "d", 4) >= 0);
    assert_true(h5cow_versions(file, &count, &versions) >= 0 && count == 3);
    for (size_t i = 0; i < count; i++) {
        h5cow_version_t *v = &versions[i];

        assert_true(v->size == sizeof *v && v->number == i + 1 && v->parent == i);
        assert_true(strcmp(v->name, i == 0 ? "1" : i == 1 ? "run 2" : "3") == 0);
        assert_true(strcmp(v->message, i == 0 ? "" : i == 1 ? "run 2" : "run 3") == 0);
        assert_true(v->unfinished == 0 && v->incomplete == 0 && v->tag_count == 0 && v->tags[0] == NULL);
        assert_true(v->nanoseconds >= 0 && v->nanoseconds < 1000000000 && v->nanoseconds % 1000 == 0);
        assert_true(v->seconds > 1700000000 && (i == 0 || v->seconds >= versions[i - 1].seconds));
        assert_true(v->user[0] != '\0' && strstr(v->program, "test_api") != NULL && v->h5cow[0] != '\0' &&
                    v->hdf5[0] != '\0');
        assert_true(v->changed > 0 && v->chunks > 0);
    }
    assert_true(h5cow_free(versions) >= 0);
    assert_true(H5Fclose(file) >= 0);
    assert_true(value_in(COW "@1", "d") == 1 && value_in(COW "@run 2", "d") == 2 && value_in(COW "@3", "d") == 3);
    assert_true(value_in(COW "@4", "d") == 4 && versions_of(COW) == 4);
}

static void test_nothing_changed_makes_no_version(void **state)
{
    uint64_t number = 9;
    hid_t file;
    (void)state;

    make(COW, 1);
    file = change(COW);
    assert_true(h5cow_commit(file, &number) >= 0 && number == 0);
    assert_true(put(file, "d", 1) >= 0); /* as it was */
    assert_true(h5cow_describe(file, "kept for later", NULL) >= 0);
    assert_true(h5cow_commit(file, &number) >= 0 && number == 0);
    assert_true(h5cow_commit(file, NULL) >= 0);
    assert_true(count_versions(file) == 1);
    assert_true(put(file, "d", 2) >= 0 && h5cow_commit(file, &number) >= 0 && number == 2);
    assert_true(is_called(file, 2, "kept for later", ""));
    assert_true(h5cow_describe(file, "never made", NULL) >= 0);
    assert_true(H5Fclose(file) >= 0 && versions_of(COW) == 2);
}

static void test_commit_finishes_what_was_flushed(void **state)
{
    hid_t file = create(COW);
    h5cow_state_t at;
    uint64_t number;
    (void)state;

    assert_true(h5cow_describe(file, "first", "said before") >= 0);
    assert_true(put(file, "d", 1) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    assert_true(h5cow_version(file, &at) >= 0 && at.version->number == 1 && at.version->unfinished == 1);
    assert_true(at.uncommitted == 0 && strcmp(at.version->name, "first") == 0);
    h5cow_free(at.version);
    /* the name is given away, the message not yet */
    FAILS(h5cow_describe(file, "late", "said with it"), "version #1, which has its name already");
    assert_true(h5cow_describe(file, NULL, "said after") >= 0);
    assert_true(h5cow_commit(file, &number) >= 0 && number == 1 && is_called(file, 1, "first", "said after"));
    assert_true(h5cow_version(file, &at) >= 0 && at.version->unfinished == 0);
    h5cow_free(at.version);
    assert_true(put(file, "d", 2) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && put(file, "d", 3) >= 0);
    assert_true(h5cow_commit(file, &number) >= 0 && number == 2 && is_called(file, 2, "2", ""));
    assert_true(H5Fclose(file) >= 0 && versions_of(COW) == 2);
    assert_true(value_in(COW "@first", "d") == 1 && value_in(COW "@2", "d") == 3);
}

static void test_closing_finishes_the_version_that_was_described(void **state)
{
    hid_t file = create(COW);
    (void)state;

    assert_true(put(file, "d", 1) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    assert_true(h5cow_describe(file, NULL, "said after the last change") >= 0 && H5Fclose(file) >= 0);
    file = change(COW);
    assert_true(is_called(file, 1, "1", "said after the last change"));
    assert_true(h5cow_describe(file, "second", "of the close") >= 0 && put(file, "d", 2) >= 0 && H5Fclose(file) >= 0);
    file = change(COW);
    assert_true(is_called(file, 2, "second", "of the close"));
    assert_true(H5Fclose(file) >= 0);
}

static void test_what_a_program_says_goes_before_the_options(void **state)
{
    hid_t fapl = with_options("name=run;message=of the option"), file;
    (void)state;

    remove(COW);
    file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_true(put(file, "d", 1) >= 0 && h5cow_commit(file, NULL) >= 0);
    assert_true(h5cow_describe(file, "mine", "my own") >= 0 && put(file, "d", 2) >= 0 && h5cow_commit(file, NULL) >= 0);
    assert_true(put(file, "d", 3) >= 0 && h5cow_commit(file, NULL) >= 0);
    assert_true(h5cow_describe(file, "", "") >= 0 && put(file, "d", 4) >= 0 && h5cow_commit(file, NULL) >= 0);
    assert_true(h5cow_describe(file, "gone", "gone") >= 0 && h5cow_describe(file, "", NULL) >= 0 &&
                h5cow_describe(file, NULL, "stays") >= 0 && put(file, "d", 5) >= 0 && H5Fclose(file) >= 0);
    file = change(COW);
    assert_true(is_called(file, 1, "run", "of the option") && is_called(file, 2, "mine", "my own"));
    assert_true(is_called(file, 3, "run.2", "of the option") && is_called(file, 4, "4", ""));
    assert_true(is_called(file, 5, "5", "stays"));
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
    /* and with a version for each flush, where the option `name` is refused */
    fapl = with_options("commit=flush;message=of the option");
    file = H5Fopen(COW, H5F_ACC_RDWR, fapl);
    assert_true(h5cow_describe(file, "flushed", NULL) >= 0 && put(file, "d", 6) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && put(file, "d", 7) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0);
    assert_true(is_called(file, 6, "flushed", "of the option") && is_called(file, 7, "7", "of the option"));
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

static void test_names_are_those_that_the_option_takes(void **state)
{
    static const char *const bad[] = {
        "a/b",  "a@b",   ".a",
        "~1",   "#1",    "{a}",
        "a\nb", "a\x7f", "12345678901234567890123456789012345678901234567890123456789012345"};
    static const char *const good[] = {"a b",
                                       "a;b=%3B",
                                       "\xc3\xa9t\xc3\xa9",
                                       "\xff\xfe",
                                       "7.",
                                       "a~#{",
                                       "a234567890123456789012345678901234567890123456789012345678901234"};
    hid_t file;
    (void)state;

    make(COW, 1);
    file = change(COW);
    for (size_t i = 0; i < COUNT(bad); i++)
        FAILS(h5cow_describe(file, bad[i], "m"), "allowed is 1 to 64 bytes");
    FAILS(h5cow_describe(file, "7", "m"), "'7' means something already");
    FAILS(h5cow_describe(file, "latest", "m"), "'latest' means something already");
    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(h5cow_describe(file, good[i], NULL) >= 0);
        assert_true(put(file, "d", (int)i + 10) >= 0 && h5cow_commit(file, NULL) >= 0 &&
                    is_called(file, i + 2, good[i], ""));
        FAILS(h5cow_describe(file, good[i], NULL), "already; choose another name");
    }
    assert_true(H5Fclose(file) >= 0);
    assert_true(value_in(COW "@\xc3\xa9t\xc3\xa9", "d") == 12);
}

static void test_messages_are_any_text(void **state)
{
    static char long_text[1 << 20];
    const char *const texts[] = {"two\nlines\t\x1b[31m", "\xff\xfe not UTF-8", "\xe2\x82\xac", long_text, ""};
    hid_t file = create(COW);
    (void)state;

    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t i = 0; i < COUNT(texts); i++) {
        char name[32];

        snprintf(name, sizeof name, "%zu", i + 1);
        assert_true(h5cow_describe(file, NULL, texts[i]) >= 0 && put(file, "d", (int)i) >= 0);
        assert_true(h5cow_commit(file, NULL) >= 0 && is_called(file, i + 1, name, texts[i]));
    }
    assert_true(H5Fclose(file) >= 0);
    file = change(COW);
    assert_true(is_called(file, 4, "4", long_text));
    assert_true(H5Fclose(file) >= 0);
}

static void test_commit_with_a_single_writer_and_many_readers(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, dataset;
    int values[MANY] = {0};
    uint64_t number;
    (void)state;

    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    make(COW, 1);
    file = H5Fopen(COW, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, fapl);
    dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    for (uint64_t n = 2; n <= 3; n++) {
        values[0] = (int)n;
        assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                    H5Dflush(dataset) >= 0);
        assert_true(h5cow_commit(dataset, &number) >= 0 && number == n);
    }
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0 && versions_of(COW) == 3);
    H5Pclose(fapl);
}

/* ---- what is open ---- */

static void test_version_says_what_is_open(void **state)
{
    int old, uncommitted;
    hid_t file = create(COW), fapl;
    (void)state;

    assert_true(shown(file, &old, &uncommitted) == 0 && old == 0 && uncommitted == 1);
    assert_true(put(file, "d", 1) >= 0 && h5cow_commit(file, NULL) >= 0);
    assert_true(shown(file, &old, &uncommitted) == 1 && old == 0 && uncommitted == 0);
    assert_true(put(file, "d", 2) >= 0);
    assert_true(shown(file, &old, &uncommitted) == 1 && old == 0 && uncommitted == 1);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(shown(file, &old, &uncommitted) == 1 && old == 1 && uncommitted == 0 && count_versions(file) == 2);
    assert_true(H5Fclose(file) >= 0);
    file = H5Fopen(COW "@~0", H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(shown(file, &old, NULL) == 2 && old == 1 && H5Fclose(file) >= 0);
    file = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT);
    assert_true(shown(file, &old, &uncommitted) == 2 && old == 0 && uncommitted == 0 && H5Fclose(file) >= 0);
    fapl = with_options("at=#1");
    file = H5Fopen(COW, H5F_ACC_RDONLY, fapl);
    assert_true(shown(file, &old, NULL) == 1 && old == 1 && H5Fclose(file) >= 0);
    H5Pclose(fapl);
}

/* Head and versions of one file at once, by several ids. */
static void test_several_openings_are_one_file(void **state)
{
    hid_t one, two, reader, old;
    int uncommitted, is_old;
    uint64_t number;
    (void)state;

    make(COW, 1);
    one = change(COW);
    old = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    two = change(COW);
    reader = H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT);
    assert_true(put(one, "d", 2) >= 0);
    assert_true(shown(two, NULL, &uncommitted) == 1 && uncommitted == 1);
    assert_true(shown(old, &is_old, &uncommitted) == 1 && is_old == 1 && uncommitted == 0);
    assert_true(h5cow_describe(one, "by both", NULL) >= 0 && h5cow_describe(two, NULL, "of both") >= 0);
    assert_true(h5cow_commit(reader, &number) >= 0 && number == 2 && is_called(old, 2, "by both", "of both"));
    assert_true(shown(old, NULL, NULL) == 1 && shown(one, NULL, NULL) == 2);
    FAILS(h5cow_commit(old, NULL), "version 1 is open, which is never changed");
    FAILS(h5cow_describe(old, "x", NULL), "version 1 is open, which is never changed");
    FAILS(h5cow_abort(old), "version 1 is open, which is never changed");
    assert_true(H5Fclose(one) >= 0 && H5Fclose(two) >= 0 && H5Fclose(reader) >= 0);
    assert_true(shown(old, NULL, NULL) == 1 && count_versions(old) == 2 && H5Fclose(old) >= 0);
}

/* ---- going back, and names ---- */

static int count_told(void *context, const char *path, int32_t what)
{
    (void)path, (void)what;
    ++*(int *)context;
    return 0;
}

static int stop_at_once(void *context, const char *path, int32_t what)
{
    (void)context, (void)path, (void)what;
    return 1;
}

#define RESTORE(...) h5cow_restore(file, &(h5cow_restore_t){__VA_ARGS__})

static void test_restoring_in_a_program(void **state)
{
    const char *const nothing[] = {NULL}, *const relative[] = {"d"}, *const all[] = {"/"};
    uint64_t number;
    int told = 0;
    hid_t file, set;
    (void)state;

    make(COW, 2);
    file = change(COW);
    FAILS(h5cow_restore(file, NULL), "request is NULL");
    FAILS(RESTORE(.revision = NULL), "there is a null pointer");
    FAILS(RESTORE(.revision = "#1", .path_count = 1), "there is a null pointer");
    FAILS(RESTORE(.revision = "#1", .path_count = 1, .paths = nothing), "is not the path of an object");
    FAILS(RESTORE(.revision = "#1", .path_count = 1, .paths = relative), "is not the path of an object");
    FAILS(RESTORE(.revision = "#9"), "there is no version '#9'");
    set = H5Dopen2(file, "d", H5P_DEFAULT);
    FAILS(RESTORE(.revision = "#1"), "datasets are open");
    assert_true(H5Dclose(set) >= 0);
    assert_true(RESTORE(.revision = "#1", .dry_run = 1, .tell = count_told, .context = &told) >= 0 && told == 1);
    assert_true(h5cow_commit(file, &number) >= 0 && number == 0);
    assert_true(RESTORE(.revision = "#1", .path_count = 1, .paths = all, .tell = count_told, .context = &told) >= 0);
    FAILS(RESTORE(.revision = "#2"), "changes that are not committed");
    FAILS(h5cow_tag(file, "#1", "t", 0), "changes that are not committed");
    assert_true(told == 2 && h5cow_commit(file, &number) >= 0 && number == 3);
    FAILS(RESTORE(.revision = "#2", .tell = stop_at_once), "has stopped the restoring");
    FAILS(h5cow_commit(file, &number), "h5cow_abort");
    assert_true(H5Fclose(file) >= 0);
    file = change(COW);
    assert_true(count_versions(file) == 3);
    assert_true(RESTORE(.revision = "#2") >= 0 && put(file, "d", 7) >= 0 && h5cow_commit(file, &number) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

/* HDF5 has NAME open for that, so that it stays known when it is closed. */
static void look_closely(hid_t file, const char *name)
{
    hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
    H5O_info2_t info;

    assert_true(set >= 0 && H5Oget_info3(set, &info, H5O_INFO_BASIC) >= 0 && H5Dclose(set) >= 0);
}

/* Datasets that were closed stay known for who opens them again: as what they are then. */
static void test_a_dataset_that_was_read_before_is_what_it_has_become(void **state)
{
    const char *const first[] = {"#1"};
    h5cow_forget_t forget = {.count = 1, .revisions = first};
    uint64_t number;
    hid_t file;
    (void)state;

    make(COW, 3);
    file = change(COW);
    look_closely(file, "d");
    assert_true(get(file, "d") == 3 && get(file, "d") == 3);
    assert_true(RESTORE(.revision = "#2") >= 0 && get(file, "d") == 2 && h5cow_commit(file, &number) >= 0);
    assert_true(get(file, "d") == 2 && put(file, "d", 9) >= 0 && get(file, "d") == 9);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0);
    file = change(COW);
    look_closely(file, "d");
    assert_true(get(file, "d") == 2 && h5cow_forget(file, &forget) >= 0 && get(file, "d") == 2);
    assert_true(h5cow_collect(file, NULL) >= 0 && get(file, "d") == 2 && put(file, "d", 4) >= 0);
    assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && get(file, "d") == 4);
    assert_true(H5Fclose(file) >= 0);
    assert_true(value_in(COW, "d") == 4 && value_in(COW "@2", "d") == 2 && value_in(COW "@3", "d") == 3);
}

/* ---- ids ---- */

static void test_any_object_of_the_file_will_do(void **state)
{
    const hsize_t one = 1;
    hid_t file = create(COW), ids[5], space = H5Screate_simple(1, &one, NULL);
    ssize_t open;
    uint64_t number;
    (void)state;

    assert_true(put(file, "d", 1) >= 0);
    ids[0] = H5Dopen2(file, "d", H5P_DEFAULT);
    ids[1] = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    ids[2] = H5Acreate2(file, "a", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT);
    ids[3] = H5Tcopy(H5T_STD_I32LE);
    assert_true(H5Tcommit2(file, "t", ids[3], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    ids[4] = H5Freopen(file);
    open = H5Fget_obj_count(file, H5F_OBJ_ALL);
    for (size_t i = 0; i < COUNT(ids); i++) {
        char message[32];

        snprintf(message, sizeof message, "by %zu", i);
        assert_true(put(file, "d", (int)i + 2) >= 0 && h5cow_describe(ids[i], NULL, message) >= 0);
        assert_true(h5cow_commit(ids[i], &number) >= 0 && number == i + 1);
        assert_true(count_versions(ids[i]) == i + 1 && shown(ids[i], NULL, NULL) == i + 1 &&
                    h5cow_has_history(ids[i]) > 0);
    }
    assert_true(open > 0 && H5Fget_obj_count(file, H5F_OBJ_ALL) == open);
    FAILS(h5cow_describe(ids[0], "a/b", NULL), "allowed is 1 to 64 bytes");
    /* the file itself is closed, what is in it not */
    assert_true(H5Fclose(file) >= 0 && H5Fclose(ids[4]) >= 0);
    assert_true(count_versions(ids[0]) == 5 && put(ids[1], "e", 9) >= 0 && h5cow_commit(ids[0], &number) >= 0 &&
                number == 6);
    assert_true(H5Dclose(ids[0]) >= 0 && H5Gclose(ids[1]) >= 0 && H5Aclose(ids[2]) >= 0 && H5Tclose(ids[3]) >= 0);
    H5Sclose(space);
    assert_true(versions_of(COW) == 6 && value_in(COW "@6", "g/e") == 9);
}

static void test_ids_of_nothing_are_refused(void **state)
{
    hid_t file = create(COW), space = H5Screate(H5S_SCALAR), type = H5Tcopy(H5T_STD_I32LE), dataset = -1;
    h5cow_state_t at;
    h5cow_version_t *versions;
    size_t count;
    (void)state;

    assert_true(put(file, "d", 1) >= 0 && (dataset = H5Dopen2(file, "d", H5P_DEFAULT)) >= 0 && H5Dclose(dataset) >= 0);
    assert_true(H5Fclose(file) >= 0);
    const hid_t ids[] = {-1, 0, 12345, file, dataset, space, type, H5P_DEFAULT, H5T_NATIVE_INT};
    for (size_t i = 0; i < COUNT(ids); i++) {
        FAILS(h5cow_describe(ids[i], NULL, "m"), "not the id of a file");
        FAILS(h5cow_commit(ids[i], NULL), "not the id of a file");
        FAILS(h5cow_version(ids[i], &at), "not the id of a file");
        assert_true(at.version == NULL);
        FAILS(h5cow_versions(ids[i], &count, &versions), "not the id of a file");
        assert_true(versions == NULL && count == 0);
        FAILS(h5cow_abort(ids[i]), "not the id of a file");
        assert_true(h5cow_has_history(ids[i]) == 0);
    }
    H5Sclose(space);
    H5Tclose(type);
    file = change(COW);
    FAILS(h5cow_version(file, NULL), "state is NULL");
    FAILS(h5cow_versions(file, NULL, &versions), "is NULL");
    FAILS(h5cow_versions(file, &count, NULL), "is NULL");
    assert_true(h5cow_describe(file, NULL, NULL) >= 0 && h5cow_free(NULL) >= 0);
    assert_true(H5Fclose(file) >= 0);
}

static void all_refused(hid_t id, const char *word)
{
    h5cow_state_t state;
    h5cow_version_t *versions;
    size_t count;

    FAILS(h5cow_describe(id, "n", "m"), word);
    FAILS(h5cow_commit(id, NULL), word);
    FAILS(h5cow_version(id, &state), word);
    FAILS(h5cow_versions(id, &count, &versions), word);
    FAILS(h5cow_abort(id), word);
    assert_true(h5cow_has_history(id) == 0);
}

static void test_files_without_a_history_are_refused(void **state)
{
    hid_t core = H5Pcreate(H5P_FILE_ACCESS), file;
    (void)state;

    make(COW, 1);
    /* not through the connector */
    file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl);
    all_refused(file, "HDF5_VOL_CONNECTOR=h5cow");
    assert_true(H5Fclose(file) >= 0);
    /* through it, but plain */
    file = H5Fcreate(PLAIN, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl);
    assert_true(put(file, "d", 1) >= 0 && H5Fclose(file) >= 0);
    file = change(PLAIN);
    all_refused(file, PLAIN ": the file has no history");
    assert_true(put(file, "d", 2) >= 0 && H5Fclose(file) >= 0 && value_in(PLAIN, "d") == 2);
    assert_true(child("knows plain files", PLAIN) == 0);
    /* with a history, by another driver */
    assert_true(H5Pset_fapl_stdio(core) >= 0);
    file = H5Fopen(COW, H5F_ACC_RDONLY, core);
    all_refused(file, ": the file has a history, but");
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(core);
    remove(PLAIN);
}

/* Nothing of it reaches the file on the disk. */
static void test_a_file_in_memory_has_versions(void **state)
{
    hid_t core = H5Pcreate(H5P_FILE_ACCESS), file;
    uint64_t number;
    (void)state;

    make(COW, 1);
    assert_true(H5Pset_fapl_core(core, 4096, false) >= 0);
    file = H5Fopen(COW, H5F_ACC_RDWR, core);
    assert_true(put(file, "d", 2) >= 0 && h5cow_describe(file, "in memory", NULL) >= 0);
    assert_true(h5cow_commit(file, &number) >= 0 && number == 2 && is_called(file, 2, "in memory", ""));
    assert_true(put(file, "d", 3) >= 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0);
    assert_true(versions_of(COW) == 1 && value_in(COW, "d") == 1);
    H5Pclose(core);
}

static void test_a_file_that_is_only_read_is_not_changed(void **state)
{
    hid_t file;
    (void)state;

    make(COW, 2);
    file = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT);
    FAILS(h5cow_describe(file, "n", "m"), "open for reading only");
    FAILS(h5cow_commit(file, NULL), "open for reading only");
    FAILS(h5cow_abort(file), "open for reading only");
    assert_true(count_versions(file) == 2);
    assert_true(H5Fclose(file) >= 0);
}

static void test_forked_children_change_nothing(void **state)
{
    hid_t file;
    pid_t process;
    int status = -1;
    (void)state;

    make(COW, 1);
    file = change(COW);
    assert_true(put(file, "d", 2) >= 0);
    fflush(stdout);
    if ((process = fork_child()) == 0) {
        FAILS(h5cow_describe(file, "n", "m"), "forked");
        FAILS(h5cow_commit(file, NULL), "forked");
        FAILS(h5cow_abort(file), "forked");
        _exit(0);
    }
    assert_true(waitpid(process, &status, 0) == process && status == 0);
    assert_true(h5cow_commit(file, NULL) >= 0 && H5Fclose(file) >= 0);
    assert_true(versions_of(COW) == 2 && value_in(COW, "d") == 2);
}

static void test_operations_live_as_long_as_the_library(void **state)
{
    (void)state;
    make(COW, 2);
    assert_true(child("knows nothing yet", COW) == 0);
    assert_true(child("lives twice", COW) == 0);
    assert_true(versions_of(COW) == 5 && value_in(COW "@4", "d") == 70 && value_in(COW "@5", "d") == 61);
}

static void test_an_error_is_printed_once(void **state)
{
    char text[4096];
    FILE *out;
    size_t length;
    (void)state;

    make(COW, 1);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    assert_true(freopen("test_api_stderr.txt", "w", stderr) != NULL);
    assert_true(child("prints", COW) == 0);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);
    assert_true((out = fopen("test_api_stderr.txt", "r")) != NULL);
    length = fread(text, 1, sizeof text - 1, out);
    text[length] = '\0';
    fclose(out);
    remove("test_api_stderr.txt");
    assert_true(strstr(text, "HDF5_VOL_CONNECTOR=h5cow") != NULL && strstr(text, "h5cow_commit") != NULL);
    assert_true(strstr(text, "HDF5-DIAG") != NULL && strstr(strstr(text, "HDF5-DIAG") + 1, "HDF5-DIAG") == NULL);
}

/* ---- structures of other programs ---- */

static herr_t raw(hid_t file, const char *operation, void *argument)
{
    H5VL_optional_args_t args = {0, argument};

    return H5VLfind_opt_operation(H5VL_SUBCLS_FILE, operation, &args.op_type) < 0
               ? -2
               : H5VLfile_optional_op(file, &args, H5P_DATASET_XFER_DEFAULT, H5ES_NONE);
}

/* SIZE bytes with 0xee behind them, of which nobody may touch one. */
typedef union room {
    size_t size;
    unsigned char byte[512];
} room;

static void lay_out(room *r, const void *from, size_t size)
{
    memset(r, 0xee, sizeof *r);
    memcpy(r->byte, from, size);
    r->size = size;
}

static bool untouched(const room *r, size_t size)
{
    for (size_t i = size; i < sizeof *r; i++)
        if (r->byte[i] != 0xee)
            return false;
    return r->size == size;
}

static void test_smaller_structures_are_filled_as_far_as_they_go(void **state)
{
    h5cow_state_t at = {.version_size = sizeof(h5cow_version_t)};
    h5cow_list_t list = {.version_size = sizeof(h5cow_version_t)};
    h5cow_description_t description = {.name = "n", .message = "m"};
    h5cow_commit_t made = {0};
    hid_t file;
    room r;
    (void)state;

    make(COW, 3);
    file = change(COW);
    for (size_t size = 0; size <= sizeof at; size++) {
        lay_out(&r, &at, size < sizeof(size_t) ? sizeof(size_t) : size);
        r.size = size;
        if (size < offsetof(h5cow_state_t, old_version)) {
            FAILS(raw(file, "h5cow.version", &r), "begins with its size");
            continue;
        }
        assert_true(raw(file, "h5cow.version", &r) >= 0 && untouched(&r, size));
        h5cow_state_t *answer = (h5cow_state_t *)(void *)&r;
        assert_true(answer->version->number == 3 && strcmp(answer->version->name, "3") == 0);
        H5free_memory(answer->version);
    }
    for (size_t size = 0; size <= sizeof list; size++) {
        lay_out(&r, &list, size < sizeof(size_t) ? sizeof(size_t) : size);
        r.size = size;
        if (size < sizeof list) {
            FAILS(raw(file, "h5cow.versions", &r), "begins with its size");
            continue;
        }
        assert_true(raw(file, "h5cow.versions", &r) >= 0 && untouched(&r, size));
        H5free_memory(((h5cow_list_t *)(void *)&r)->versions);
    }
    /* a name, and no member for a message */
    lay_out(&r, &description, offsetof(h5cow_description_t, message));
    assert_true(raw(file, "h5cow.describe", &r) >= 0 && untouched(&r, offsetof(h5cow_description_t, message)));
    assert_true(put(file, "d", 4) >= 0);
    lay_out(&r, &made, sizeof(size_t));
    assert_true(raw(file, "h5cow.commit", &r) >= 0 && untouched(&r, sizeof(size_t)) && is_called(file, 4, "n", ""));
    FAILS(raw(file, "h5cow.commit", NULL), "begins with its size");
    FAILS(raw(file, "h5cow.abort", NULL), "begins with its size");
    assert_true(put(file, "d", 5) >= 0 && H5Fclose(file) >= 0 && versions_of(COW) == 5);
}

static void test_larger_structures_may_ask_for_nothing_unknown(void **state)
{
    h5cow_list_t list = {.version_size = sizeof(h5cow_version_t)};
    h5cow_description_t description = {.message = "m"};
    hid_t file;
    room r;
    (void)state;

    make(COW, 1);
    file = change(COW);
    lay_out(&r, &list, sizeof list);
    memset(r.byte + sizeof list, 0, 40);
    r.size = sizeof list + 40;
    assert_true(raw(file, "h5cow.versions", &r) >= 0 && untouched(&r, sizeof list + 40));
    assert_true(((h5cow_list_t *)(void *)&r)->count == 1);
    H5free_memory(((h5cow_list_t *)(void *)&r)->versions);
    lay_out(&r, &description, sizeof description);
    memset(r.byte + sizeof description, 0, 16);
    r.size = sizeof description + 16;
    assert_true(raw(file, "h5cow.describe", &r) >= 0);
    r.byte[sizeof description + 15] = 1;
    FAILS(raw(file, "h5cow.describe", &r), "use a newer one");
    r.size = SIZE_MAX; /* never set */
    FAILS(raw(file, "h5cow.describe", &r), "begins with its size");
    assert_true(H5Fclose(file) >= 0);
}

/* An array of the program's own structures. */
static void test_versions_come_in_the_programs_size(void **state)
{
    h5cow_list_t list = {sizeof list, 0, 0, NULL};
    h5cow_version_t *all;
    size_t count;
    hid_t file;
    (void)state;

    make(COW, 3);
    file = change(COW);
    assert_true(h5cow_versions(file, &count, &all) >= 0 && count == 3);
    for (size_t each = 0; each <= sizeof(h5cow_version_t) + 64; each++) {
        list.version_size = each;
        if (each < offsetof(h5cow_version_t, parent)) {
            FAILS(raw(file, "h5cow.versions", &list), "version_size");
            continue;
        }
        assert_true(raw(file, "h5cow.versions", &list) >= 0 && list.count == 3);
        for (size_t i = 0; i < 3; i++) {
            const unsigned char *at = (const unsigned char *)list.versions + i * each;
            size_t size, number = offsetof(h5cow_version_t, number), texts = offsetof(h5cow_version_t, name);

            memcpy(&size, at, sizeof size);
            assert_true(size == (each < sizeof *all ? each : sizeof *all));
            assert_true(memcmp(at + number, (const unsigned char *)&all[i] + number,
                               (size < texts ? size : texts) - number) == 0);
            for (size_t j = size; j < each; j++)
                assert_true(at[j] == 0);
        }
        H5free_memory(list.versions);
    }
    list.version_size = 5000;
    FAILS(raw(file, "h5cow.versions", &list), "version_size");
    h5cow_free(all);
    assert_true(H5Fclose(file) >= 0);
}

/* ---- dropping changes ---- */

static void test_abort_leaves_the_last_commit(void **state)
{
    hid_t file, dataset;
    off_t size;
    (void)state;

    make(COW, 2);
    size = size_of(COW);
    file = change(COW);
    dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    assert_true(put(file, "d", 3) >= 0 && put(file, "new", 3) >= 0 && H5Ldelete(file, "d", H5P_DEFAULT) >= 0);
    assert_true(h5cow_abort(file) >= 0);
    assert_true(h5cow_abort(file) >= 0); /* once more does no harm */
    /* nothing more is written ... */
    FAILS(put(file, "new", 4), "h5cow_abort");
    FAILS(put(file, "newer", 4), "h5cow_abort");
    FAILS(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "h5cow_abort");
    FAILS(H5Ldelete(file, "new", H5P_DEFAULT), "h5cow_abort");
    FAILS(h5cow_commit(file, NULL), "h5cow_abort");
    FAILS(h5cow_describe(file, NULL, "m"), "h5cow_abort");
    FAILS(H5Fstart_swmr_write(file), "h5cow_abort");
    FAILS(H5Fget_file_image(file, NULL, 0), "h5cow_abort");
    /* libraries flush when they close: there is nothing to be flushed */
    assert_true(H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 &&
                H5Dflush(dataset) >= 0);
    /* ... what the program wrote can still be read, and what was committed is told */
    assert_true(get(file, "new") == 3 && count_versions(file) == 2);
    int uncommitted;
    assert_true(shown(file, NULL, &uncommitted) == 2 && uncommitted == 0);
    assert_true(child("reads", COW) == 2);
    assert_true(child("writes", COW) == 1); /* the lock is held */
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    assert_true(value_in(COW, "d") == 2 && value_in(COW, "new") == -1 && versions_of(COW) == 2);
    assert_true(size_of(COW) == size);
    assert_true(child("writes", COW) == 0 && versions_of(COW) == 3);
}

/* Old references read as new ones come through the views, which show what was committed. */
static void test_what_only_a_commit_shows_is_not_read_after_an_abort(void **state)
{
    static hobj_ref_t old[MANY];
    static H5R_ref_t new[MANY];
    const hsize_t many = MANY;
    hid_t file, space = H5Screate_simple(1, &many, NULL), dataset;
    (void)state;

    make(COW, 1);
    file = change(COW);
    assert_true(H5Rcreate(&old[0], file, "d", H5R_OBJECT, -1) >= 0);
    for (int i = 1; i < MANY; i++)
        old[i] = old[0];
    dataset = H5Dcreate2(file, "r", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0 && h5cow_abort(file) >= 0);
    assert_true(H5Dread(dataset, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, old) >= 0);
    FAILS(H5Dread(dataset, H5T_STD_REF, H5S_ALL, H5S_ALL, H5P_DEFAULT, new), "h5cow_abort");
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0 && value_in(COW, "d") == 1);
    H5Sclose(space);
}

/* With nothing written as well. */
static void test_abort_of_no_changes_ends_writing(void **state)
{
    hid_t file;
    (void)state;

    make(COW, 1);
    file = change(COW);
    assert_true(h5cow_abort(file) >= 0);
    FAILS(put(file, "d", 4), "h5cow_abort");
    assert_true(H5Fclose(file) >= 0 && versions_of(COW) == 1 && value_in(COW, "d") == 1);
}

/* More than the cache holds, so most of it was in the file. */
static void test_abort_gives_the_space_back(void **state)
{
    const hsize_t many = 1 << 20, chunk = 1 << 14;
    hid_t fapl = with_options("cache=64K"), file, space = H5Screate_simple(1, &many, NULL),
          dcpl = H5Pcreate(H5P_DATASET_CREATE), dataset;
    static int values[1 << 20];
    off_t size;
    (void)state;

    for (int i = 0; i < 1 << 20; i++)
        values[i] = i * 1999;
    H5Pset_chunk(dcpl, 1, &chunk);
    make(COW, 1);
    size = size_of(COW);
    file = H5Fopen(COW, H5F_ACC_RDWR, fapl);
    dataset = H5Dcreate2(file, "large", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(size_of(COW) > size + (3 << 20));
    assert_true(h5cow_abort(file) >= 0);
    memset(values, 0, sizeof values);
    assert_true(H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                values[12345] == 12345 * 1999);
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0 && size_of(COW) == size && value_in(COW, "d") == 1);
    H5Pclose(fapl);
    H5Pclose(dcpl);
    H5Sclose(space);
}

static void test_abort_keeps_what_was_flushed(void **state)
{
    hid_t file, fapl = with_options("commit=flush");
    h5cow_state_t at;
    (void)state;

    make(COW, 1);
    file = change(COW);
    assert_true(put(file, "d", 2) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && put(file, "d", 3) >= 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0);
    file = change(COW);
    assert_true(get(file, "d") == 2 && h5cow_version(file, &at) >= 0);
    assert_true(at.version->number == 2 && at.version->unfinished == 1);
    h5cow_free(at.version);
    assert_true(put(file, "d", 4) >= 0 && H5Fclose(file) >= 0 && versions_of(COW) == 3);
    file = H5Fopen(COW, H5F_ACC_RDWR, fapl);
    assert_true(put(file, "d", 5) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && put(file, "d", 6) >= 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && versions_of(COW) == 4 && value_in(COW, "d") == 5);
    H5Pclose(fapl);
}

static void test_abort_with_a_single_writer_and_many_readers(void **state)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file, dataset;
    int values[MANY] = {0};
    (void)state;

    H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    make(COW, 1);
    file = H5Fopen(COW, H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE, fapl);
    dataset = H5Dopen2(file, "d", H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                H5Dflush(dataset) >= 0);
    values[0] = 7;
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    assert_true(h5cow_abort(dataset) >= 0);
    assert_true(H5Dflush(dataset) >= 0 && H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    assert_true(versions_of(COW) == 2 && value_in(COW, "d") == 0);
    H5Pclose(fapl);
}

/* The changes are the file's, not those of an id. */
static void test_abort_is_of_all_ids_of_the_file(void **state)
{
    hid_t one, two, dataset, old;
    (void)state;

    make(COW, 1);
    one = change(COW);
    old = H5Fopen(COW "@1", H5F_ACC_RDONLY, H5P_DEFAULT);
    two = change(COW);
    dataset = H5Dopen2(two, "d", H5P_DEFAULT);
    assert_true(put(one, "d", 2) >= 0 && put(two, "e", 2) >= 0 && h5cow_abort(one) >= 0);
    FAILS(put(two, "e", 3), "h5cow_abort");
    assert_true(H5Fclose(one) >= 0 && H5Fclose(two) >= 0);
    /* still open by the dataset: nothing new may be led to believe what is dropped */
    FAILS(H5Fopen(COW, H5F_ACC_RDWR, H5P_DEFAULT), "has it still open");
    FAILS(H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT), "has it still open");
    assert_true(h5cow_abort(dataset) >= 0 && count_versions(dataset) == 1 && get(old, "d") == 1);
    assert_true(H5Dclose(dataset) >= 0);
    assert_true(H5Fclose(old) >= 0);
    one = change(COW);
    assert_true(get(one, "d") == 1 && H5Lexists(one, "e", H5P_DEFAULT) == 0);
    assert_true(put(one, "d", 5) >= 0 && H5Fclose(one) >= 0 && versions_of(COW) == 2 && value_in(COW, "d") == 5);
}

static void test_abort_is_of_one_of_mounted_files(void **state)
{
    hid_t parent, inner, dataset;
    uint64_t number;
    (void)state;

    make(OTHER, 1);
    parent = create(COW);
    inner = H5Gcreate2(parent, "at", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(put(parent, "d", 1) >= 0 && H5Gclose(inner) >= 0 && H5Fclose(parent) >= 0);
    for (int by_dataset = 0; by_dataset < 2; by_dataset++) {
        parent = change(COW);
        inner = change(OTHER);
        assert_true(H5Fmount(parent, "at", inner, H5P_DEFAULT) >= 0);
        assert_true(put(parent, "d", 5 + by_dataset) >= 0 && put(parent, "at/d", 9) >= 0);
        dataset = H5Dopen2(parent, "at/d", H5P_DEFAULT);
        assert_true(h5cow_abort(by_dataset ? dataset : inner) >= 0);
        FAILS(put(parent, "at/d", 10), "h5cow_abort");
        assert_true(h5cow_commit(parent, &number) >= 0 && number == 2 + (uint64_t)by_dataset);
        assert_true(H5Dclose(dataset) >= 0 && H5Funmount(parent, "at") >= 0 && H5Fclose(inner) >= 0 &&
                    H5Fclose(parent) >= 0);
        assert_true(value_in(OTHER, "d") == 1 && versions_of(OTHER) == 1 && value_in(COW, "d") == 5 + by_dataset);
    }
    remove(OTHER);
}

/* The file behind a link is another one. */
static void test_objects_behind_links_are_of_their_own_file(void **state)
{
    hid_t file, dataset;
    uint64_t number;
    (void)state;

    make(OTHER, 1);
    file = create(COW);
    assert_true(H5Lcreate_external(OTHER, "/d", file, "link", H5P_DEFAULT, H5P_DEFAULT) >= 0 && put(file, "d", 1) >= 0);
    dataset = H5Dopen2(file, "link", H5P_DEFAULT);
    assert_true(dataset >= 0 && put(file, "link", 2) >= 0);
    assert_true(h5cow_describe(dataset, "through a link", NULL) >= 0 && h5cow_commit(dataset, &number) >= 0 &&
                number == 2);
    assert_true(put(file, "link", 3) >= 0 && h5cow_abort(dataset) >= 0);
    assert_true(H5Dclose(dataset) >= 0 && H5Fclose(file) >= 0);
    assert_true(value_in(OTHER, "d") == 2 && value_in(OTHER "@through a link", "d") == 2 && versions_of(OTHER) == 2);
    assert_true(versions_of(COW) == 1 && value_in(COW, "d") == 1);
    remove(OTHER);
}

/* As if H5Fcreate had not been called. */
static void test_abort_of_a_new_file_leaves_none(void **state)
{
    hid_t file = create(COW), group;
    (void)state;

    assert_true(put(file, "d", 1) >= 0 && h5cow_abort(file) >= 0);
    assert_true(shown(file, NULL, NULL) == 0 && count_versions(file) == 0);
    group = H5Gopen2(file, "/", H5P_DEFAULT);
    assert_true(H5Fclose(file) >= 0 && access(COW, F_OK) == 0 && H5Gclose(group) >= 0 && access(COW, F_OK) != 0);
    /* once more, and this time it is kept */
    make(COW, 1);
    assert_true(value_in(COW, "d") == 1);
    /* exclusively, and through a link that leads nowhere yet */
    remove(COW);
    remove(OTHER);
    assert_true((file = H5Fcreate(COW, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && access(COW, F_OK) != 0);
    assert_true(symlink(COW, OTHER) == 0);
    assert_true((file = H5Fcreate(OTHER, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(access(COW, F_OK) == 0 && h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && access(COW, F_OK) != 0 &&
                unlink(OTHER) == 0);
    /* after a commit it stays */
    file = create(COW);
    assert_true(put(file, "d", 1) >= 0 && H5Fflush(file, H5F_SCOPE_LOCAL) >= 0 && put(file, "d", 2) >= 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && value_in(COW, "d") == 1);
}

/* Somebody else's file by now. */
static void test_abort_removes_no_other_file_of_that_name(void **state)
{
    hid_t file = create(COW);
    FILE *out;
    (void)state;

    assert_true(put(file, "d", 1) >= 0 && rename(COW, OTHER) == 0);
    assert_true((out = fopen(COW, "w")) != NULL && fputs("mine", out) >= 0 && fclose(out) == 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0);
    assert_true(size_of(COW) == 4 && size_of(OTHER) == 0);
    remove(OTHER);
    remove(COW);
}

static void test_abort_of_a_file_created_over_another(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), fapl = with_options("truncate=discard"), file;
    FILE *out;
    (void)state;

    /* over a history: it goes on as it was */
    make(COW, 2);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(put(file, "e", 7) >= 0 && get(file, "d") == -1 && h5cow_abort(file) >= 0 && H5Fclose(file) >= 0);
    assert_true(value_in(COW, "d") == 2 && value_in(COW, "e") == -1 && versions_of(COW) == 2);
    /* over one that cannot go on in this file, and one that is to be given up: it has its name again */
    assert_true(H5Pset_userblock(fcpl, 512) >= 0);
    for (int discard = 0; discard < 2; discard++) {
        assert_true(
            (file = H5Fcreate(COW, H5F_ACC_TRUNC, discard ? H5P_DEFAULT : fcpl, discard ? fapl : H5P_DEFAULT)) >= 0);
        assert_true(access(ASIDE, F_OK) == 0 && put(file, "e", 7) >= 0 && h5cow_abort(file) >= 0 &&
                    H5Fclose(file) >= 0);
        assert_true(access(ASIDE, F_OK) != 0 && value_in(COW, "d") == 2 && versions_of(COW) == 2);
    }
    /* after a commit they stay what they are */
    for (int discard = 0; discard < 2; discard++) {
        assert_true(
            (file = H5Fcreate(COW, H5F_ACC_TRUNC, discard ? H5P_DEFAULT : fcpl, discard ? fapl : H5P_DEFAULT)) >= 0);
        assert_true(put(file, "e", 7) >= 0 && h5cow_commit(file, NULL) >= 0 && put(file, "e", 8) >= 0);
        assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && value_in(COW, "e") == 7 && versions_of(COW) == 1);
        assert_true((access(ASIDE, F_OK) == 0) == !discard);
        remove(ASIDE);
        make(COW, 2);
    }
    /* over a plain file: H5Fcreate has emptied it, as with HDF5 alone */
    remove(COW);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, native_fapl)) >= 0);
    assert_true(put(file, "d", 1) >= 0 && H5Fclose(file) >= 0);
    assert_true((file = H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
    assert_true(h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && size_of(COW) == 0);
    /* an empty file, as mkstemp makes them, stays one */
    assert_true((out = fopen(COW, "w")) != NULL && fclose(out) == 0);
    for (int by_opening = 0; by_opening < 2; by_opening++) {
        file = by_opening ? change(COW) : H5Fcreate(COW, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        assert_true(put(file, "d", 1) >= 0 && h5cow_abort(file) >= 0 && H5Fclose(file) >= 0 && size_of(COW) == 0);
    }
    H5Pclose(fcpl);
    H5Pclose(fapl);
    remove(COW);
}

static void test_abort_and_the_end_of_the_program(void **state)
{
    (void)state;
    make(COW, 2);
    assert_true(child("aborts and exits", COW) == 0 && value_in(COW, "d") == 2 && versions_of(COW) == 2);
    assert_true(child("aborts a new file and exits", OTHER) == 0 && access(OTHER, F_OK) != 0);
    assert_true(child("aborts and closes the library", COW) == 2);
    assert_true(value_in(COW, "d") == 2 && versions_of(COW) == 2);
}

/* The disk is full: what could not be committed is given up, and closing need not say so again. */
static void test_abort_after_a_failure_closes_quietly(void **state)
{
    static int values[1 << 16];
    const hsize_t many = 1 << 16;
    hid_t file, space = H5Screate_simple(1, &many, NULL), dataset;
    struct rlimit whole, low;
    (void)state;

    signal(SIGXFSZ, SIG_IGN);
    make(COW, 1);
    assert_true(getrlimit(RLIMIT_FSIZE, &whole) == 0);
    low = (struct rlimit){(rlim_t)size_of(COW) + 20000, whole.rlim_max};
    file = change(COW);
    for (int i = 0; i < 1 << 16; i++)
        values[i] = i * 31;
    dataset = H5Dcreate2(file, "large", H5T_STD_I32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
                H5Dclose(dataset) >= 0);
    assert_true(setrlimit(RLIMIT_FSIZE, &low) == 0);
    FAILS(h5cow_commit(file, NULL), "");
    assert_true(setrlimit(RLIMIT_FSIZE, &whole) == 0);
    FAILS(put(file, "d", 2), "nothing more is written since an earlier failure");
    FAILS(h5cow_commit(file, NULL), "nothing more is written since an earlier failure");
    assert_true(h5cow_abort(file) >= 0);
    FAILS(put(file, "d", 2), "h5cow_abort");
    h5cow_version_t *versions;
    size_t count;
    FAILS(h5cow_versions(file, &count, &versions), "since an earlier failure");
    assert_true(H5Fclose(file) >= 0 && value_in(COW, "d") == 1 && versions_of(COW) == 1);
    file = change(COW);
    assert_true(put(file, "d", 2) >= 0 && H5Fclose(file) >= 0 && versions_of(COW) == 2);
    H5Sclose(space);
}

/* A reader that had the file open all the time, and one that comes in between. */
static void test_readers_never_see_what_is_dropped(void **state)
{
    int answers[2], questions[2], value = 0;
    pid_t reader;
    hid_t file;
    (void)state;

    make(COW, 2);
    assert_true(pipe(answers) == 0 && pipe(questions) == 0);
    fflush(stdout);
    if ((reader = fork_child()) == 0) {
        hid_t id = H5Fopen(COW, H5F_ACC_RDONLY, H5P_DEFAULT);
        int seen;

        close(questions[1]);
        do {
            seen = get(id, "d");
            if (write(answers[1], &seen, sizeof seen) != sizeof seen)
                _exit(1);
        } while (read(questions[0], &seen, sizeof seen) == sizeof seen);
        _exit(H5Fclose(id) < 0);
    }
    close(questions[0]);
    assert_true(read(answers[0], &value, sizeof value) == sizeof value && value == 2);
    file = change(COW);
    assert_true(put(file, "d", 3) >= 0 && put(file, "e", 3) >= 0);
    for (int step = 0; step < 3; step++) {
        assert_true(child("reads", COW) == 2);
        assert_true(write(questions[1], &step, sizeof step) == sizeof step &&
                    read(answers[0], &value, sizeof value) == sizeof value && value == 2);
        if (step == 0)
            assert_true(h5cow_abort(file) >= 0);
        else if (step == 1)
            assert_true(H5Fclose(file) >= 0);
    }
    close(questions[1]);
    assert_true(waitpid(reader, &value, 0) == reader && value == 0);
    close(answers[0]);
    close(answers[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_opening_makes_as_many_versions_as_are_committed),
        cmocka_unit_test(test_nothing_changed_makes_no_version),
        cmocka_unit_test(test_commit_finishes_what_was_flushed),
        cmocka_unit_test(test_closing_finishes_the_version_that_was_described),
        cmocka_unit_test(test_what_a_program_says_goes_before_the_options),
        cmocka_unit_test(test_names_are_those_that_the_option_takes),
        cmocka_unit_test(test_messages_are_any_text),
        cmocka_unit_test(test_commit_with_a_single_writer_and_many_readers),
        cmocka_unit_test(test_version_says_what_is_open),
        cmocka_unit_test(test_several_openings_are_one_file),
        cmocka_unit_test(test_restoring_in_a_program),
        cmocka_unit_test(test_a_dataset_that_was_read_before_is_what_it_has_become),
        cmocka_unit_test(test_any_object_of_the_file_will_do),
        cmocka_unit_test(test_ids_of_nothing_are_refused),
        cmocka_unit_test(test_files_without_a_history_are_refused),
        cmocka_unit_test(test_a_file_in_memory_has_versions),
        cmocka_unit_test(test_a_file_that_is_only_read_is_not_changed),
        cmocka_unit_test(test_forked_children_change_nothing),
        cmocka_unit_test(test_operations_live_as_long_as_the_library),
        cmocka_unit_test(test_an_error_is_printed_once),
        cmocka_unit_test(test_smaller_structures_are_filled_as_far_as_they_go),
        cmocka_unit_test(test_larger_structures_may_ask_for_nothing_unknown),
        cmocka_unit_test(test_versions_come_in_the_programs_size),
        cmocka_unit_test(test_abort_leaves_the_last_commit),
        cmocka_unit_test(test_what_only_a_commit_shows_is_not_read_after_an_abort),
        cmocka_unit_test(test_abort_of_no_changes_ends_writing),
        cmocka_unit_test(test_abort_gives_the_space_back),
        cmocka_unit_test(test_abort_keeps_what_was_flushed),
        cmocka_unit_test(test_abort_with_a_single_writer_and_many_readers),
        cmocka_unit_test(test_abort_is_of_all_ids_of_the_file),
        cmocka_unit_test(test_abort_is_of_one_of_mounted_files),
        cmocka_unit_test(test_objects_behind_links_are_of_their_own_file),
        cmocka_unit_test(test_abort_of_a_new_file_leaves_none),
        cmocka_unit_test(test_abort_removes_no_other_file_of_that_name),
        cmocka_unit_test(test_abort_of_a_file_created_over_another),
        cmocka_unit_test(test_abort_and_the_end_of_the_program),
        cmocka_unit_test(test_abort_after_a_failure_closes_quietly),
        cmocka_unit_test(test_readers_never_see_what_is_dropped),
    };

    self = argv[0];
    if (argc == 4 && strcmp(argv[1], "--child") == 0) {
        for (size_t i = 0; i < COUNT(children); i++)
            if (strcmp(argv[2], children[i].name) == 0)
                return children[i].run(argv[3]);
        return 98;
    }
    int status = test_main(tests, argc, argv, through_begin, through_end);
    remove(COW);
    return status;
}
