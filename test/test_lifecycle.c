/* How programs begin and end: what they leave open, H5close and going on, files whose last commit failed. Each program
 * runs in a process of its own, natively and through the connector, with the plugin loaded before HDF5 looks for it and not. It
 * must end in the same way, print the same on both outputs, and leave the same in its files.
 *
 *   test_lifecycle PLUGIN [PROGRAM]            all, or one
 *   test_lifecycle --run PROGRAM LEFT MODE     one program in the current folder
 *   test_lifecycle --list FILE                 what is in the file
 */
#include "harness.h"

#include <hdf5.h>

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SMALL 10
#define LARGE 5000

static int values[LARGE];

/* ---- the programs ---- */

typedef enum kind { GROUP, SMALL_DATASET, ATTRIBUTE, NAMED_TYPE, LARGE_DATASET, FILE_ID, KINDS } kind;

/* What is left open is a set of these, and of the others. */
#define LEFT(kind)  (1u << (kind))
#define LEFT_SPACES LEFT(KINDS)
#define LEFT_LISTS  LEFT(KINDS + 1)
#define LEFT_ALL    (LEFT(KINDS + 2) - 1)

static hid_t access_list(H5F_close_degree_t degree)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    H5Pset_fclose_degree(fapl, degree);
    return fapl;
}

static hid_t create(hid_t file, const char *name, hsize_t elements)
{
    hsize_t chunk = 100;
    hid_t space = H5Screate_simple(1, &elements, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset;

    if (elements == LARGE)
        H5Pset_chunk(dcpl, 1, &chunk);
    dataset = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
    H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    H5Sclose(space);
    H5Pclose(dcpl);
    return dataset;
}

static void fill(hid_t file, hid_t id[KINDS])
{
    hsize_t elements = SMALL;
    hid_t space = H5Screate_simple(1, &elements, NULL);

    id[FILE_ID] = file;
    id[GROUP] = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    id[SMALL_DATASET] = create(file, "small", SMALL);
    id[LARGE_DATASET] = create(file, "large", LARGE);
    id[ATTRIBUTE] = H5Acreate2(id[GROUP], "attribute", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
    H5Awrite(id[ATTRIBUTE], H5T_NATIVE_INT, values);
    id[NAMED_TYPE] = H5Tcopy(H5T_NATIVE_INT);
    H5Tcommit2(file, "type", id[NAMED_TYPE], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Sclose(space);
}

static void open_all(hid_t file, hid_t id[KINDS])
{
    id[FILE_ID] = file;
    id[GROUP] = H5Gopen2(file, "group", H5P_DEFAULT);
    id[SMALL_DATASET] = H5Dopen2(file, "small", H5P_DEFAULT);
    id[LARGE_DATASET] = H5Dopen2(file, "large", H5P_DEFAULT);
    id[ATTRIBUTE] = H5Aopen(id[GROUP], "attribute", H5P_DEFAULT);
    id[NAMED_TYPE] = H5Topen2(file, "type", H5P_DEFAULT);
}

/* Errors are told by the answers. */
static void close_but(const hid_t id[KINDS], unsigned left)
{
    for (unsigned k = 0; k < KINDS; k++)
        if (!(left & LEFT(k)))
            printf("%d", k == NAMED_TYPE  ? H5Tclose(id[k])
                         : k == ATTRIBUTE ? H5Aclose(id[k])
                         : k == GROUP     ? H5Gclose(id[k])
                         : k == FILE_ID   ? H5Fclose(id[k])
                                          : H5Dclose(id[k]));
    if (left & LEFT_SPACES)
        H5Screate(H5S_SCALAR);
    if (left & LEFT_LISTS)
        access_list(H5F_CLOSE_STRONG);
    printf("\n");
}

enum { REOPENED = 1, MOUNTED = 2, UNHELD = 4, TWICE = 8, REFERENCED = 16, CLOSED = 32, STRONG = 64, SEMI = 128 };

/* Ids are left open when the program ends. */
static void leaves_open(unsigned left, unsigned mode)
{
    hid_t fapl = access_list(mode & STRONG ? H5F_CLOSE_STRONG : mode & SEMI ? H5F_CLOSE_SEMI : H5F_CLOSE_WEAK);
    hid_t id[KINDS], other;
    static H5R_ref_t reference;

    fill(H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl), id);
    if (mode & REOPENED) {
        close_but(id, 0);
        open_all(H5Fopen("a.h5", H5F_ACC_RDONLY, fapl), id);
    }
    if (mode & (MOUNTED | TWICE)) {
        other = H5Fcreate("b.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
        H5Dclose(create(other, "mounted", LARGE));
        if (mode & MOUNTED)
            printf("mounted %d\n", H5Fmount(id[FILE_ID], "group", other, H5P_DEFAULT));
        if (mode & UNHELD)
            H5Fclose(other);
    }
    if (mode & REFERENCED)
        printf("reference %d\n", H5Rcreate_object(id[FILE_ID], "large", H5P_DEFAULT, &reference));
    close_but(id, left);
    H5Pclose(fapl);
    if (mode & CLOSED)
        printf("closed %d\n", H5close());
}

static void *fails(void *unused)
{
    (void)unused;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    printf("%d", H5Fopen("nothing.h5", H5F_ACC_RDONLY, H5P_DEFAULT) >= 0);
    return NULL;
}

static void *closes(void *unused)
{
    hid_t file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);

    (void)unused;
    printf("%d", file >= 0);
    H5Fclose(file);
    printf("%d", H5close());
    return NULL;
}

static void in_a_thread(void *(*what)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, what, NULL) == 0)
        pthread_join(thread, NULL);
}

enum { IN_THREAD = 1, FAILING = 2, OTHER_DRIVER = 4 };

/* H5close, and on with the same files, four times. */
static void goes_on(unsigned left, unsigned mode)
{
    static char name[4][16];

    for (unsigned life = 0; life < 4; life++) {
        hid_t id[KINDS], file;

        if (mode & OTHER_DRIVER && life > 0) { /* which gets the number that the journal had */
            hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
            H5Pset_fapl_stdio(fapl);
            file = H5Fcreate("c.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
            printf("%d", file >= 0);
            H5Fclose(file);
        }
        printf("accessible %d\n", life == 0 ? 1 : H5Fis_accessible("a.h5", H5P_DEFAULT));
        file = life == 0 ? H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                         : H5Fopen("a.h5", H5F_ACC_RDWR, H5P_DEFAULT);
        snprintf(name[life], sizeof name[life], "life %u", life);
        file = H5Gcreate2(file, name[life], H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        fill(file, id);
        id[FILE_ID] = H5Iget_file_id(file);
        printf("file %d\n", id[FILE_ID] >= 0);
        H5Gclose(file);
        H5Fclose(id[FILE_ID]); /* that of the opening */
        close_but(id, left | LEFT(FILE_ID));
        if (!(left & LEFT(FILE_ID)))
            while (H5Fclose(id[FILE_ID]) >= 0 && H5Iis_valid(id[FILE_ID]) > 0)
                continue;
        if (mode & FAILING)
            fails(NULL);
        if (mode & FAILING && mode & IN_THREAD)
            in_a_thread(fails);
        if (mode & IN_THREAD)
            in_a_thread(closes);
        else
            printf("closed %d\n", H5close());
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    }
}

/* The next file has another user block; HDF5 gives it the number that the last one had. */
static void begins_elsewhere(unsigned left, unsigned mode)
{
    (void)left;
    for (unsigned life = 0; life < 2; life++) {
        const bool with = (life == 1) != ((mode & TWICE) != 0);
        hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), file, dataset;

        H5Pset_userblock(fcpl, with ? 4096 : 0);
        file = H5Fcreate(life == 0 ? "a.h5" : "b.h5", H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);
        dataset = create(file, "large", LARGE);
        printf("made %d\n", dataset >= 0);
        H5Dclose(dataset);
        printf("closed %d\n", H5Fclose(file));
        H5Pclose(fcpl);
        printf("closed %d\n", H5close());
    }
}

/* The connector, chosen by the program, is unregistered and registered again. */
static void registers(unsigned left, unsigned mode)
{
    const char *name = getenv("LIFECYCLE_CONNECTOR");

    for (unsigned life = 0; life < 4; life++) {
        hid_t connector = H5VLregister_connector_by_name(name, H5P_DEFAULT), fapl = H5Pcreate(H5P_FILE_ACCESS);
        hid_t id[KINDS], file;

        printf("set %d\n", H5Pset_vol(fapl, connector, NULL));
        file = life == 0 ? H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, fapl) : H5Fopen("a.h5", H5F_ACC_RDWR, fapl);
        if (life == 0)
            fill(file, id);
        else
            open_all(file, id);
        H5Dwrite(id[LARGE_DATASET], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values + life);
        H5Pclose(fapl);
        if (strcmp(name, "native") != 0)
            H5VLunregister_connector(connector);
        close_but(id, left);
        if (mode & CLOSED)
            printf("closed %d\n", H5close());
    }
}

/* Connector only: the disk is full at the close, which fails; the program takes no notice. */
static void meets_a_full_disk(unsigned left, unsigned mode)
{
    struct rlimit small, whole;
    hid_t id[KINDS], file;
    int *many = calloc(1000000, sizeof *many);
    hsize_t elements = 1000000;
    hid_t space = H5Screate_simple(1, &elements, NULL);

    signal(SIGXFSZ, SIG_IGN);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    for (size_t i = 0; i < 1000000; i++)
        many[i] = (int)(i * 7919);
    fill(H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), id);
    close_but(id, 0);
    open_all(H5Fopen("a.h5", H5F_ACC_RDWR, H5P_DEFAULT), id);
    file = H5Dcreate2(id[FILE_ID], "lost", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(file, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, many);
    H5Dclose(file);
    getrlimit(RLIMIT_FSIZE, &whole);
    small = (struct rlimit){200000, whole.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    close_but(id, left & ~LEFT(FILE_ID));
    setrlimit(RLIMIT_FSIZE, &whole);
    if (mode & TWICE)
        printf("again %d\n", H5Fclose(id[FILE_ID]));
    if (mode & CLOSED)
        printf("closed %d\n", H5close());
    file = H5Fopen("a.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
    printf("open %d\n", file >= 0);
    if (file >= 0) {
        hid_t dataset = H5Dopen2(file, "large", H5P_DEFAULT);
        printf("read %d\n", H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
        H5Dclose(dataset);
    }
    if (!(left & LEFT(FILE_ID)))
        H5Fclose(file);
    H5Sclose(space);
    free(many);
}

/* Connector only: objects of a version and of the head are left open. */
static void leaves_a_version_open(unsigned left, unsigned mode)
{
    hid_t id[KINDS];

    fill(H5Fcreate("a.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), id);
    close_but(id, 0);
    if (mode & TWICE) {
        open_all(H5Fopen("a.h5", H5F_ACC_RDWR, H5P_DEFAULT), id);
        H5Dclose(create(id[FILE_ID], "more", LARGE));
        close_but(id, left);
    }
    open_all(H5Fopen("a.h5@1", H5F_ACC_RDONLY, H5P_DEFAULT), id);
    close_but(id, left);
    if (mode & CLOSED)
        printf("closed %d\n", H5close());
}

/* Has this process the file open? */
static bool is_open(const char *name)
{
    char path[64], target[4096];

    for (int file = 0; file < 256; file++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = '\0';
        if (strrchr(target, '/') != NULL && strcmp(strrchr(target, '/') + 1, name) == 0)
            return true;
    }
    return false;
}

/* A file with so many attributes and links that they are listed by a walk, is emptied, and closed: nothing has it open. */
static void truncates(unsigned left, unsigned mode)
{
    hid_t id[KINDS], fcpl = H5Pcreate(H5P_FILE_CREATE), space = H5Screate(H5S_SCALAR);
    char name[16];

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (mode & TWICE)
        H5Pset_attr_creation_order(fcpl, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    for (int life = 0; life < 3; life++) {
        hid_t file = H5Fcreate("a.h5", H5F_ACC_TRUNC, fcpl, H5P_DEFAULT);

        printf("created %d\n", file >= 0);
        if (file < 0)
            break;
        for (int i = 0; i < 30; i++) {
            snprintf(name, sizeof name, "n%d", i);
            H5Aclose(H5Acreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT));
            H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        }
        fill(file, id);
        close_but(id, life == 2 ? left : 0);
    }
    H5Pclose(fcpl);
    H5Sclose(space);
    if (left == 0)
        printf("open %d\n", is_open("a.h5"));
    if (mode & CLOSED)
        printf("closed %d, errors %d, open %d\n", H5close(), (int)H5Eget_num(H5E_DEFAULT), is_open("a.h5"));
}

typedef struct program {
    const char *name;
    void (*run)(unsigned left, unsigned mode);
    bool ours;          /* natively it cannot run: it must end well and say nothing on standard error */
    unsigned modes[16]; /* the first, and others up to a 0 */
} program;

static const program programs[] = {
    {"leaves open",
     leaves_open,
     false,
     {0, REOPENED, MOUNTED, MOUNTED | REOPENED, MOUNTED | UNHELD, MOUNTED | UNHELD | REOPENED, TWICE, REFERENCED,
      CLOSED, CLOSED | REOPENED, STRONG, STRONG | CLOSED, SEMI, SEMI | REOPENED, MOUNTED | CLOSED,
      MOUNTED | UNHELD | CLOSED}},
    {"goes on", goes_on, false, {0, IN_THREAD, FAILING, FAILING | IN_THREAD, OTHER_DRIVER}},
    {"begins elsewhere", begins_elsewhere, false, {0, TWICE}},
    {"registers", registers, false, {0, CLOSED}},
    {"truncates", truncates, false, {0, TWICE, CLOSED, TWICE | CLOSED}},
    {"meets a full disk", meets_a_full_disk, true, {0, TWICE, CLOSED, TWICE | CLOSED}},
    {"leaves a version open", leaves_a_version_open, true, {0, TWICE, CLOSED, TWICE | CLOSED}},
};

static int run_program(char **argv)
{
    const char *kept = getenv("LIFECYCLE_KEEP");

    if (kept != NULL && dlopen(kept, RTLD_LAZY | RTLD_NODELETE) == NULL)
        return 3;
    for (int i = 0; i < LARGE; i++)
        values[i] = 3 * i;
    for (size_t p = 0; p < COUNT(programs); p++)
        if (strcmp(programs[p].name, argv[0]) == 0) {
            programs[p].run((unsigned)atoi(argv[1]), (unsigned)atoi(argv[2]));
            return 7;
        }
    return 2;
}

/* ---- what is in a file ---- */

static herr_t list_object(hid_t file, const char *name, const H5O_info2_t *info, void *context)
{
    static int buffer[LARGE];
    unsigned sum = 0;

    (void)context;
    if (strncmp(name, "_versioned_data", 15) == 0)
        return 0;
    printf("%s: type %d, attributes %d", name, info->type, (int)info->num_attrs);
    if (info->type == H5O_TYPE_DATASET) {
        hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
        hssize_t elements = H5Sget_simple_extent_npoints(space);

        if (elements <= LARGE && H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer) >= 0)
            for (hssize_t i = 0; i < elements; i++)
                sum = 31 * sum + (unsigned)buffer[i];
        printf(", elements %lld, sum %u", (long long)elements, sum);
        H5Sclose(space);
        H5Dclose(dataset);
    }
    printf("\n");
    return 0;
}

static int list_file(const char *name)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, H5P_DEFAULT);

    if (file < 0)
        return 1;
    H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, list_object, NULL, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS);
    H5Fclose(file);
    return 0;
}

/* ---- the comparison ---- */

static const char *self, *plugin;

static char *contents(const char *name)
{
    FILE *in = fopen(name, "r");
    char *text = calloc(1, 1 << 16);

    if (in != NULL) {
        text[fread(text, 1, (1 << 16) - 1, in)] = '\0';
        fclose(in);
    }
    return text;
}

/* Its exit status, 1000 and the signal; what it printed, appended to the files out and err of the folder. */
static int start(const char *folder, const char *connector, bool kept, char *const argv[])
{
    int status = 0;
    pid_t child = fork_child();

    if (child == 0) {
        if (chdir(folder) != 0 || freopen("out", "a", stdout) == NULL || freopen("err", "a", stderr) == NULL)
            _exit(99);
        alarm(60);
        setenv("HDF5_VOL_CONNECTOR", connector, 1);
        setenv("LIFECYCLE_CONNECTOR", strcmp(connector, "native") == 0 ? "native" : "h5cow", 1);
        if (kept)
            setenv("LIFECYCLE_KEEP", plugin, 1);
        execv(self, argv);
        _exit(98);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

typedef struct outcome {
    int status;
    char *out, *err, *files;
} outcome;

static void forget(outcome *o)
{
    free(o->out);
    free(o->err);
    free(o->files);
}

static outcome run(const program *p, unsigned left, unsigned mode, const char *connector, bool kept)
{
    static const char *const files[] = {"a.h5", "b.h5"};
    static const char *const made[] = {"a.h5", "b.h5", "c.h5", "out", "err"};
    char folder[] = "lifecycle.XXXXXX", path[64], numbers[2][16];
    outcome o = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(numbers[0], sizeof numbers[0], "%u", left);
    snprintf(numbers[1], sizeof numbers[1], "%u", mode);
    o.status =
        start(folder, connector, kept,
              (char *[]){(char *)(uintptr_t)self, "--run", (char *)(uintptr_t)p->name, numbers[0], numbers[1], NULL});
    snprintf(path, sizeof path, "%s/out", folder);
    o.out = contents(path);
    unlink(path);
    snprintf(path, sizeof path, "%s/err", folder);
    o.err = contents(path);
    for (size_t f = 0; f < COUNT(files); f++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        if (access(path, F_OK) == 0)
            start(folder, "native", false,
                  (char *[]){(char *)(uintptr_t)self, "--list", (char *)(uintptr_t)files[f], NULL});
    }
    snprintf(path, sizeof path, "%s/out", folder);
    o.files = contents(path);
    for (size_t m = 0; m < COUNT(made); m++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[m]);
        unlink(path);
    }
    rmdir(folder);
    return o;
}

/* Error stacks are deeper through the connector; their first lines are the program's own calls. */
static void only_calls(char *text)
{
    char *to = text;

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strncmp(line, "    m", 5) != 0 && (strncmp(line, "  #", 3) != 0 || strncmp(line, "  #000", 6) == 0)) {
            size_t length = strlen(line);
            memmove(to, line, length);
            to += length;
            *to++ = '\n';
        }
    *to = '\0';
}

/* Takes out the line that says what is lost, which a program that takes no notice hears, once: true. */
static bool heard_of_loss(char *err)
{
    static const char lost[] = "h5cow: a.h5: the last changes were not committed, and are lost: ";
    char *end = strchr(err, '\n');

    if (strncmp(err, lost, sizeof lost - 1) != 0 || end == NULL)
        return false;
    memmove(err, end + 1, strlen(end + 1) + 1);
    return true;
}

/* With the plugin KEPT by the program, which has loaded it before HDF5 does, or not. */
static bool same(const program *p, unsigned left, unsigned mode, bool kept)
{
    bool same = true;
    outcome native = {.status = 7, .out = calloc(1, 1), .err = calloc(1, 1), .files = calloc(1, 1)};

    if (!p->ours) {
        forget(&native);
        native = run(p, left, mode, "native", false);
        only_calls(native.err);
        if (native.status != 7)
            printf("  natively '%s' left %u, mode %u ends with %d\n", p->name, left, mode, native.status);
    }
    if (native.status == 7) {
        outcome through = run(p, left, mode, "h5cow sync=off", kept);

        only_calls(through.err);
        same = p->run != meets_a_full_disk || heard_of_loss(through.err);
        same = same && through.status == native.status && strcmp(through.err, native.err) == 0;
        if (!p->ours)
            same = same && strcmp(through.out, native.out) == 0 && strcmp(through.files, native.files) == 0;
        else
            same = same && strstr(through.files, "large: type 1, attributes 0, elements 5000, sum") != NULL;
        if (!same)
            printf("  '%s' left %u, mode %u%s: natively %d\n%s%s%s  through the connector %d\n%s%s%s", p->name, left,
                   mode, kept ? ", plugin kept" : "", native.status, native.out, native.err, native.files,
                   through.status, through.out, through.err, through.files);
        forget(&through);
    }
    forget(&native);
    return same;
}

static void test_program(void **state)
{
    static const unsigned lefts[] = {0,
                                     LEFT(GROUP),
                                     LEFT(SMALL_DATASET),
                                     LEFT(ATTRIBUTE),
                                     LEFT(NAMED_TYPE),
                                     LEFT(LARGE_DATASET),
                                     LEFT(FILE_ID),
                                     LEFT(GROUP) | LEFT(ATTRIBUTE),
                                     LEFT(LARGE_DATASET) | LEFT(NAMED_TYPE),
                                     LEFT_ALL & ~LEFT(FILE_ID),
                                     LEFT_ALL};
    const program *p = *state;
    unsigned different = 0;

    for (size_t m = 0; m < COUNT(p->modes) && (m == 0 || p->modes[m] != 0); m++)
        for (size_t l = 0; l < COUNT(lefts); l++)
            different += !same(p, lefts[l], p->modes[m], (l + m) % 2 == 1);
    assert_int_equal(different, 0);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[COUNT(programs)];
    static char own[4096];

    if (argc == 5 && strcmp(argv[1], "--run") == 0)
        return run_program(argv + 2);
    if (argc == 3 && strcmp(argv[1], "--list") == 0)
        return list_file(argv[2]);
    if (argc < 2 || readlink("/proc/self/exe", own, sizeof own - 1) < 0) {
        fprintf(stderr, "usage: test_lifecycle PLUGIN [PROGRAM]\n");
        return 2;
    }
    self = own;
    plugin = argv[1];
    for (size_t p = 0; p < COUNT(programs); p++)
        tests[p] = (struct CMUnitTest){programs[p].name, test_program, NULL, NULL, (void *)(uintptr_t)&programs[p]};
    return test_main(tests, argc - 1, argv + 1, NULL, NULL);
}
