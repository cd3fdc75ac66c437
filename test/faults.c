/* Faults, one at a time: faults [--all [--minutes N]] [--points N] [--jobs N] [--only PROGRAM] [--class CLASS]
 *                               [--nth N [--ever]] [--quota PAGES] [--trace N] [--command H5COW] [--verbose]
 *
 * The scenario programs (scenarios.h), which use HDF5 through the connector, are run again and again. Each time another
 * system call of the journal fails, or another allocation of the connector, or a thread cannot be started: that one alone,
 * or from then on all of them; or the disk is full after N pages. A program stops at the first call that fails, and
 * closes what it has open; what then reports an error it closes once more. Then must be true
 *   - no crash, no hang; no file descriptor, no HDF5 id and no memory of the connector is left over
 *   - the file, opened when all works again: after success it is what was to be committed. After an error it is what the
 *     last successful H5Fflush or H5Fclose committed; or, where another call failed and H5Fclose then succeeded, what the
 *     program had done until that call. Every older version is as it was
 *   - what was reported says what, and in which file
 *   - what fails while a version is made, and is not the disk's, is no error: the head is as after success
 *   - faults that can be got over (EINTR, short transfers, a file system without fallocate, no threads) nobody notices
 *   - on a full disk a commit that succeeded is also applied: HDF5 without the connector can read the file.
 * And files are read with the same faults: what is read is right, or there is an error. Each run is a process of its own,
 * so that a crash is one failure. --all takes every point instead of a sample; with --minutes in random order, until so many have gone by.
 */
#include "die.h"
#include "faults_calls.h"

#include "files.h"
#include "waiting.h"
#include "journal/internal.h"
#include "lowest_error.h"
#include "random.h"
#include "results.h"
#include "scenarios.h"
#include "with_connector.h"

#include <hdf5.h>

#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS_MAX    1500 /* of a program */
#define COMMITS_MAX  64
#define VERSIONS_MAX 12
#define OBJECTS_MAX  128
#define PROGRAMS_MAX 64
#define ELEMENTS     ((size_t)1 << 20) /* bytes of a dataset */
#define SECONDS      120               /* of computing, for one run: longer is a hang */
#define JOBS_MAX     16
#define VERIFY_EVERY 20 /* runs */
#define SHOWN        60 /* kinds of failures that are shown */

static const char usage[] =
    "usage: faults [--all [--minutes N]] [--points N] [--jobs N] [--only PROGRAM] [--class CLASS]\n"
    "              [--nth N [--ever]] [--quota PAGES] [--trace N] [--command H5COW] [--verbose]\n";

/* ---- what is in a file ---- */

typedef struct state {
    bool none; /* there is nothing: no file, or one whose making came to nothing */
    bool
        lacking; /* a version was made without something, or a commit made none: h5cow says so, and the head has it all */
    uint64_t head;
    unsigned versions, objects;
    uint64_t version[VERSIONS_MAX];
    uint64_t object[OBJECTS_MAX]; /* of the head, in the order of their names */
} state;

#define START UINT64_C(0xcbf29ce484222325)

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ b[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    return mix(hash, text, strlen(text) + 1);
}

/* Elements of a dataset or an attribute, in the type that the file has. */
static int mix_elements(uint64_t *hash, hid_t object, bool attribute)
{
    hid_t type = attribute ? H5Aget_type(object) : H5Dget_type(object);
    hid_t space = attribute ? H5Aget_space(object) : H5Dget_space(object);
    hssize_t count = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    hsize_t dims[H5S_MAX_RANK] = {0};
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    htri_t text = type < 0 ? -1 : H5Tis_variable_str(type);
    static char buffer[ELEMENTS];
    const char *word;
    int rank, status = -1;

    if (count < 0 || size == 0 || text < 0 || (rank = H5Sget_simple_extent_dims(space, dims, NULL)) < 0)
        goto done;
    *hash = mix(*hash, dims, (size_t)rank * sizeof *dims);
    *hash = mix(*hash, &size, sizeof size);
    if (count == 0) {
        status = 0;
        goto done;
    }
    if ((size_t)count * size > sizeof buffer)
        goto done;
    memset(buffer, 0, (size_t)count * size);
    if ((attribute ? H5Aread(object, type, buffer) : H5Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer)) < 0)
        goto done;
    for (hssize_t i = 0; text && i < count; i++)
        memcpy(&word, buffer + (size_t)i * size, sizeof word), *hash = mix_text(*hash, word == NULL ? "(none)" : word);
    if (!text)
        *hash = mix(*hash, buffer, (size_t)count * size);
    if (text)
        H5Treclaim(type, space, H5P_DEFAULT, buffer);
    status = 0;
done:
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

static herr_t mix_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    int status = -1;

    (void)info;
    *(uint64_t *)context = mix_text(*(uint64_t *)context, name);
    if (attribute >= 0) {
        status = mix_elements(context, attribute, true);
        if (H5Aclose(attribute) < 0)
            status = -1;
    }
    return status;
}

static herr_t mix_object(hid_t root, const char *name, const H5O_info2_t *info, void *context)
{
    hid_t object = H5Oopen(root, name, H5P_DEFAULT);
    uint64_t hash = mix(mix_text(START, name), &info->type, sizeof info->type);
    state *s = context;
    hsize_t at = 0;
    int status = -1;

    if (object < 0 || s->objects == OBJECTS_MAX)
        return -1;
    if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, mix_attribute, &hash) >= 0 &&
        (info->type != H5O_TYPE_DATASET || mix_elements(&hash, object, false) == 0))
        status = 0;
    s->object[s->objects++] = hash;
    if (H5Oclose(object) < 0) /* faults_after has closed it then */
        status = -1;
    return status;
}

/* The objects of a file, and the hash over them all. */
static int mix_file(const char *name, hid_t fapl, state *s, uint64_t *hash)
{
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, fapl);
    int status = -1;

    s->objects = 0;
    if (file < 0)
        return -1;
    if (H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, mix_object, s, H5O_INFO_BASIC) >= 0)
        status = 0;
    if (H5Fclose(file) < 0) {
        H5Fclose(file);
        status = -1;
    }
    *hash = mix(START, s->object, s->objects * sizeof *s->object);
    return status;
}

/* A file that holds nothing: gone, empty, or one whose program died before the first commit. */
static bool is_nothing(const char *path)
{
    static const char unfinished[] = "h5cow: not committed yet";
    char head[sizeof unfinished - 1];
    struct stat about;
    int fd;
    bool nothing;

    if (stat(path, &about) < 0 || about.st_size == 0)
        return true;
    if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return false;
    nothing = read(fd, head, sizeof head) == (ssize_t)sizeof head && memcmp(head, unfinished, sizeof head) == 0;
    close(fd);
    return nothing;
}

/* Has the file what is listed in it as incomplete? */
static bool is_lacking(const char *path)
{
    hid_t fapl = native_fapl(), file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    bool lacking = file >= 0 && H5Lexists(file, "/_versioned_data", H5P_DEFAULT) > 0 &&
                   H5Lexists(file, "/_versioned_data/incomplete", H5P_DEFAULT) > 0;

    if (file >= 0)
        H5Fclose(file);
    H5Pclose(fapl);
    return lacking;
}

/* VERSIONS that are there, or 0: as many as can be opened. */
static int read_state(const char *path, hid_t fapl, unsigned versions, state *s)
{
    static state other;
    char name[300];

    memset(s, 0, sizeof *s); /* states are compared byte by byte */
    if (mix_file(path, fapl, s, &s->head) < 0) {
        memset(s, 0, sizeof *s);
        s->none = is_nothing(path);
        return s->none ? 0 : -1;
    }
    for (unsigned v = 1; v <= (versions > 0 ? versions : VERSIONS_MAX); v++) {
        hid_t file = H5I_INVALID_HID;

        snprintf(name, sizeof name, "%s@%u", path, v);
        if (versions == 0 && (file = H5Fopen(name, H5F_ACC_RDONLY, fapl)) < 0)
            break;
        if ((file >= 0 && H5Fclose(file) < 0) || mix_file(name, fapl, &other, &s->version[s->versions++]) < 0)
            return -1;
    }
    s->lacking = is_lacking(path);
    return 0;
}

/* S without the versions that are like the one before them, as one is where what versions lack cannot be read. */
static void drop_repeated(state *s)
{
    unsigned kept = 0;

    for (unsigned v = 0; v < s->versions; v++)
        if (kept == 0 || s->version[v] != s->version[kept - 1])
            s->version[kept++] = s->version[v];
    memset(s->version + kept, 0, (s->versions - kept) * sizeof *s->version);
    s->versions = kept;
}

/* S is what B is. Where S lacks something, all that its newest state must be; of its versions, one, or more where a fault
 * stays, may be missing or be without an object, and the next commit makes a whole one where none else was due:
 * test/version_faults.c looks closer. */
static bool same_state(const state *s, const state *b)
{
    state whole = *s;

    if (s->lacking && !b->lacking && s->versions <= 2 * b->versions) {
        whole.lacking = false;
        whole.versions = b->versions;
        memcpy(whole.version, b->version, sizeof whole.version);
    } else if (s->versions > b->versions)
        drop_repeated(&whole);
    return memcmp(&whole, b, sizeof whole) == 0;
}

/* Is S what came of a call that did a part of its work, between BEFORE and AFTER? What is the same in both is as it was;
 * HDF5 says nothing of what a write that failed has written. The newest version is like the head. */
static bool between(const state *s, const state *before, const state *after)
{
    if (s->none || before->none || s->objects != before->objects || s->objects != after->objects ||
        (!s->lacking &&
         (s->versions != after->versions || (s->versions > 0 && s->version[s->versions - 1] != s->head))))
        return false;
    for (unsigned v = 0; !s->lacking && v + 1 < s->versions; v++)
        if (s->version[v] != after->version[v])
            return false;
    for (unsigned i = 0; i < s->objects; i++)
        if (before->object[i] == after->object[i] && s->object[i] != after->object[i])
            return false;
    return true;
}

static void print_state(const char *what, const state *s)
{
    printf("      %s: ", what);
    if (s->none)
        printf("nothing");
    else
        printf("head %08x", (unsigned)s->head);
    for (unsigned v = 0; v < s->versions; v++)
        printf(" %u=%08x", v + 1, (unsigned)s->version[v]);
    printf("\n");
}

/* ---- a program at work ---- */

/* What a run has found: in memory that is shared with the process that started it. */
typedef struct finding {
    bool through;             /* it came to its end */
    char call[40];            /* the one it is in, or was in when it failed */
    unsigned calls, reported; /* made; flushes and closes of files that succeeded */
    bool error, at_commit;    /* a call failed; it was a flush or the close of a file */
    unsigned error_call;
    bool closing_failed; /* the close of the file that came after the error failed as well */
    bool named, doubt;   /* the message names the file; says that the outcome is not known */
    char message[400], closing[LOWEST_ERROR], reading[LOWEST_ERROR];
    unsigned count[16]; /* calls that could have failed, of each class */
    long pages;
    uintptr_t where[48], leaked[4];
    unsigned depth;
    int descriptors, ids; /* left over */
    long live;
    char left[100];
    int read; /* of what was there afterwards: 0, or -1 */
    state after;
    bool stock;     /* HDF5 without the connector can open it */
    bool kept_open; /* HDF5 itself, after an error, has not closed the file: it is looked at by another process */
    bool again;     /* where nothing was there: the program, run again, does its work */
} finding;

/* The run that this process is. */
static struct {
    bool active;
    finding *found;
    const char *path, *base; /* the file; its name without folders */
    unsigned stop;           /* before the call of that number, counted from 0 */
    bool stopped;
    struct {
        faults_kind kind;
        hid_t id;
        bool after_error;
    } call[8];       /* under way, one in the other */
    unsigned sound;  /* commits that meet no faults */
    hid_t failed_id; /* of the close that failed last */
    void (*committed)(void);
} run;

static herr_t note_record(unsigned n, const H5E_error2_t *record, void *context)
{
    const char *text = record->desc == NULL ? "" : record->desc;

    (void)context;
    if (n == 0)
        snprintf(run.found->message, sizeof run.found->message, "%s", text);
    run.found->named |= strstr(text, run.base) != NULL;
    run.found->doubt |= strstr(text, "it is not known whether this commit happened") != NULL;
    return 0;
}

static bool closes(faults_kind kind)
{
    return kind == FAULTS_CLOSES || kind == FAULTS_CLOSES_FILE;
}

bool faults_before(faults_kind kind, hid_t id, const char *name)
{
    if (!run.active)
        return true;
    if (!run.found->error && run.found->calls == run.stop)
        run.stopped = true;
    if ((run.stopped || run.found->error) && !closes(kind))
        return false;
    if (!run.stopped && !run.found->error) {
        run.found->calls++;
        snprintf(run.found->call, sizeof run.found->call, "%s", name);
    }
    run.call[faults_inside].kind = kind;
    run.call[faults_inside].id = id;
    run.call[faults_inside++].after_error = run.found->error || run.stopped;
    return true;
}

static herr_t close_again(hid_t id)
{
    switch (H5Iget_type(id)) {
    case H5I_GROUP:
        return (H5Gclose)(id);
    case H5I_DATASET:
        return (H5Dclose)(id);
    case H5I_ATTR:
        return (H5Aclose)(id);
    default:
        return -1;
    }
}

int64_t faults_after(int64_t result)
{
    finding *f = run.found;
    faults_kind kind;
    hid_t id;
    bool after_error;

    if (!run.active)
        return result;
    kind = run.call[--faults_inside].kind;
    id = run.call[faults_inside].id;
    after_error = run.call[faults_inside].after_error;
    if (run.stopped)
        return result;
    if (result >= 0) {
        if (!f->error && (kind == FAULTS_FLUSHES || kind == FAULTS_CLOSES_FILE)) {
            f->reported++;
            if (f->reported == run.sound)
                faults_hold(false);
            if (run.committed != NULL)
                run.committed();
        }
        return result;
    }
    if (!after_error && !f->error) {
        f->error = true;
        f->error_call = f->calls - 1;
        f->at_commit = kind == FAULTS_FLUSHES || kind == FAULTS_CLOSES_FILE;
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_record, NULL);
    } else if (after_error && kind == FAULTS_CLOSES_FILE) {
        f->closing_failed = true;
        lowest_error(H5E_DEFAULT, f->closing);
    }
    if (closes(kind) && run.failed_id == id)
        snprintf(f->left, sizeof f->left, "an id that cannot be closed");
    if (closes(kind))
        run.failed_id = id;
    if (kind == FAULTS_CLOSES) {
        faults_inside++;
        if (close_again(id) < 0)
            snprintf(f->left, sizeof f->left, "an id that cannot be closed");
        faults_inside--;
    }
    return result;
}

/* Other processes, also those that a program starts, meet no faults. */
static void in_child(void)
{
    run.active = false;
    faults_inside = 0;
    faults_disarm();
}

/* ---- the programs ---- */

/* Enough for several threads: 800 kB, in chunks of 64 KiB. */
static int large(const char *path, hid_t fapl)
{
    static int values[200000];
    const hsize_t size = 200000, chunk = 16384;
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &size, NULL), file, set;
    int status = 0;

    H5Pset_chunk(list, 1, &chunk);
    for (int round = 0; status == 0 && round < 2; round++) {
        for (int i = 0; i < 200000; i++)
            values[i] = i / 3 + round;
        status = -1;
        file = round == 0 ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl) : H5Fopen(path, H5F_ACC_RDWR, fapl);
        if (file < 0)
            break;
        set = round == 0 ? H5Dcreate2(file, "values", H5T_STD_I32LE, space, H5P_DEFAULT, list, H5P_DEFAULT)
                         : H5Dopen2(file, "values", H5P_DEFAULT);
        if (set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0 &&
            H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0)
            status = 0;
        for (int i = 0; status == 0 && i < 200000; i++)
            if (values[i] != i / 3 + round)
                abort();
        if (set >= 0 && H5Dclose(set) < 0)
            status = -1;
        if (H5Fclose(file) < 0) {
            H5Fclose(file);
            status = -1;
        }
    }
    H5Sclose(space);
    H5Pclose(list);
    return status;
}

typedef struct program {
    char name[60];
    const scenario *scenario; /* NULL: large() */
    const char *options;
    bool reads; /* what is looked at is reading what the scenario has made */
} program;

static program programs[PROGRAMS_MAX];
static unsigned program_count;

static int run_once(const program *p, const scenario_run *arguments)
{
    return p->scenario == NULL ? large(arguments->file, arguments->fapl) : scenario_run_all(p->scenario, arguments);
}

static void add_program(const char *prefix, const scenario *s, const char *options, bool reads)
{
    program *p = &programs[program_count++];

    snprintf(p->name, sizeof p->name, "%s%s", prefix, s == NULL ? "large" : s->name);
    p->scenario = s;
    p->options = options;
    p->reads = reads;
}

static void choose_programs(void)
{
    static char options[PROGRAMS_MAX][80];

    for (size_t i = 0; i < scenario_count; i++) {
        const scenario *s = &scenarios[i];

        /* other processes that write are none of ours, and one that lets syncs fail meets faults already */
        if (s->fails || (s->forks && strncmp(s->name, "pending", 7) != 0))
            continue;
        snprintf(options[i], sizeof options[i], "threads=1;%s", s->options);
        add_program("", s, options[i], false);
        if (strcmp(s->name, "compressed") == 0) {
            add_program("reading_", s, options[i], true);
        }
        if (strcmp(s->name, "strings") == 0 || strcmp(s->name, "attributes_and_groups") == 0)
            add_program("reading_", s, options[i], true);
    }
    add_program("threads_", NULL, "threads=4;compress=gzip:1", false);
}

/* What a program makes when nothing fails. */
typedef struct expected {
    unsigned calls, commits;
    state committed[COMMITS_MAX + 1]; /* 0: before it began */
    bool known[CALLS_MAX + 1];
    state stopped[CALLS_MAX + 1]; /* when it ends, and closes all, before the call of that number */
} expected;

static expected *expectation; /* of each program; shared */

/* ---- one run ---- */

static char folder[200];
static unsigned traces; /* faults that a run tells of */

static const fault_class nothing_fails = {.name = "none"};

static const fault_class classes[] = {
    {"EIO", CALL_OPEN | CALL_READ | CALL_WRITE | CALL_SYNC | CALL_TRUNCATE | CALL_ALLOCATE | CALL_FSTAT | CALL_STAT,
     FAULT_FAIL, EIO, false},
    {"ENOSPC", CALL_OPEN | CALL_WRITE | CALL_SYNC | CALL_TRUNCATE | CALL_ALLOCATE, FAULT_FAIL, ENOSPC, false},
    {"EDQUOT", CALL_OPEN | CALL_WRITE | CALL_SYNC | CALL_TRUNCATE | CALL_ALLOCATE, FAULT_FAIL, EDQUOT, false},
    {"half, then ENOSPC", CALL_WRITE, FAULT_TORN, ENOSPC, false},
    {"EMFILE", CALL_OPEN, FAULT_FAIL, EMFILE, false},
    {"ENOLCK", CALL_LOCK | CALL_FLOCK, FAULT_FAIL, ENOLCK, false},
    {"EINTR", CALL_OPEN | CALL_READ | CALL_WRITE | CALL_SYNC | CALL_TRUNCATE | CALL_ALLOCATE | CALL_LOCK | CALL_FLOCK,
     FAULT_OTHER, EINTR, true},
    {"short", CALL_READ | CALL_WRITE, FAULT_SHORT, 0, true},
    {"EOPNOTSUPP", CALL_ALLOCATE, FAULT_FAIL, EOPNOTSUPP, true},
    {"memory", CALL_MEMORY, FAULT_FAIL, ENOMEM, false},
    {"thread", CALL_THREAD, FAULT_FAIL, EAGAIN, true},
};
#define CLASSES (sizeof classes / sizeof *classes)

/* None where FROM is not there. */
static void copy_if_any(const char *from, const char *to)
{
    unlink(to);
    if (!copy_file(from, to) && errno != ENOENT)
        die("%s", to);
}

static int count_descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(all) != NULL)
        count++;
    closedir(all);
    return count;
}

/* Kinds of ids that are counted; the program and what looks at the file close all of theirs. */
static const struct {
    H5I_type_t type;
    const char *name;
} kinds[] = {
    {H5I_FILE, "file"},
    {H5I_GROUP, "group"},
    {H5I_DATATYPE, "datatype"},
    {H5I_DATASPACE, "dataspace"},
    {H5I_DATASET, "dataset"},
    {H5I_ATTR, "attribute"},
    {H5I_GENPROP_LST, "property list"},
    {H5I_ERROR_STACK, "error stack"},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static void count_ids(hsize_t count[KINDS])
{
    for (size_t k = 0; k < KINDS; k++)
        if (H5Inmembers(kinds[k].type, &count[k]) < 0)
            count[k] = 0;
}

static bool stock_opens(const char *path, hid_t fapl)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, fapl);

    if (file >= 0)
        H5Fclose(file);
    return file >= 0;
}

/* Where it crashed is more than that it did. */
static void crashed(int signal)
{
    void *at[24];
    int depth = backtrace(at, 24);

    if (run.found != NULL)
        run.found->depth = faults_relative(at, depth < 0 ? 0 : (unsigned)depth, run.found->where);
    if (traces > 0)
        backtrace_symbols_fd(at, depth, 2);
    raise(signal); /* SA_RESETHAND */
}

/* No file of this process may be longer, -1: as long as may be. The system itself refuses then (EFBIG). */
static void limit_files(long bytes)
{
    struct rlimit limit;

    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
        die("getrlimit");
    limit.rlim_cur = bytes < 0 ? limit.rlim_max : (rlim_t)bytes;
    if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
        die("setrlimit");
}

static void do_work(const program *p, const char *path, hid_t fapl, hid_t stock, finding *found)
{
    scenario_run arguments = {.file = path, .fapl = fapl, .stock_fapl = stock};

    memset(&run, 0, sizeof run);
    run.found = found;
    run.path = path;
    run.base = strrchr(path, '/') + 1;
    run.stop = UINT32_MAX;
    run.sound = p->scenario == NULL ? 0 : p->scenario->sound_commits;
    faults_hold(run.sound > 0);
    run.active = true;
    run_once(p, &arguments);
    run.active = false;
}

static void do_reading(const char *path, hid_t fapl, unsigned versions, finding *found)
{
    memset(&run, 0, sizeof run);
    run.found = found;
    run.base = strrchr(path, '/') + 1;
    run.stop = UINT32_MAX;
    run.active = true;
    if (read_state(path, fapl, versions, &found->after) < 0 && !found->error)
        abort(); /* no call has failed */
    run.active = false;
}

/* Run PROGRAM on the file PATH with faults, and see what there is afterwards. */
static void run_program(const program *p, const char *path, const fault_class *class, unsigned nth, bool ever,
                        long quota, bool limited, unsigned versions, finding *found)
{
    hid_t fapl = connector_fapl(p->options), reader = connector_fapl("threads=1"), stock = native_fapl();
    hsize_t ids[KINDS], ids_after[KINDS];
    int descriptors = count_descriptors();
    state seen;

    count_ids(ids);
    if (quota >= 0 && !limited)
        faults_quota(path, quota);
    if (limited)
        limit_files(quota * 4096);
    faults_arm(class, nth, ever);
    if (p->reads)
        do_reading(path, fapl, versions, found);
    else
        do_work(p, path, fapl, stock, found);
    for (size_t c = 0; c < CLASSES; c++)
        found->count[c] = faults_count(&classes[c]);
    found->pages = faults_pages();
    faults_disarm();
    faults_hold(false);
    faults_quota(path, -1);
    if (limited)
        limit_files(-1);
    found->depth = faults_where(found->where, 48);
    H5Eclear2(H5E_DEFAULT);
    found->descriptors = count_descriptors() - descriptors;
    count_ids(ids_after);
    for (size_t k = 0; k < KINDS; k++)
        if (ids_after[k] != ids[k]) {
            snprintf(found->left, sizeof found->left, "%d of kind %s", (int)(ids_after[k] - ids[k]), kinds[k].name);
            found->ids++;
        }
    found->live = (long)faults_live(found->leaked, 4);
    found->read = read_state(path, reader, 0, &seen);
    if (found->read < 0)
        lowest_error(H5E_DEFAULT, found->reading);
    if (found->read < 0 && strstr(found->reading, "the HDF5 library has kept the file open") != NULL) {
        found->kept_open = found->through = true;
        return;
    }
    if (!p->reads || found->error)
        found->after = seen;
    found->stock = !seen.none && stock_opens(path, stock);
    found->again = true;
    if (seen.none && found->read == 0) {
        finding second = {0};

        do_work(p, path, fapl, stock, &second);
        found->again = !second.error && read_state(path, reader, 0, &seen) == 0;
        if (!found->again)
            snprintf(found->reading, sizeof found->reading, "%s", second.message);
    }
    found->through = true;
}

/* ---- what is expected ---- */

static char state_file[300];

static void keep_state(void)
{
    char name[320];

    snprintf(name, sizeof name, "%s.%u", state_file, run.found->reported);
    copy_if_any(run.path, name);
}

static void base_name(unsigned p, char name[300])
{
    snprintf(name, 300, "%s/base-%u.h5", folder, p);
}

/* In a process of its own: what PROGRAM makes, stopped before call STOP. */
static void expect_one(unsigned p, unsigned stop)
{
    expected *e = &expectation[p];
    finding found = {0};
    char path[300];
    hid_t fapl = connector_fapl(programs[p].options), stock = native_fapl();
    scenario_run arguments = {.file = path, .fapl = fapl, .stock_fapl = stock};
    state s;

    snprintf(path, sizeof path, "%s/expect-%d.h5", folder, (int)getpid());
    snprintf(state_file, sizeof state_file, "%s/state-%d", folder, (int)getpid());
    run.found = &found;
    run.path = path;
    run.base = "expect";
    run.stop = stop;
    run.active = true;
    if (stop == UINT32_MAX)
        run.committed = keep_state;
    if (run_once(&programs[p], &arguments) < 0 && !run.stopped)
        found.error = true;
    run.active = false;
    if (found.error || found.calls > CALLS_MAX || found.reported > COMMITS_MAX || read_state(path, fapl, 0, &s) < 0)
        die("%s: %s: %s", programs[p].name, found.call, found.message);
    if (stop != UINT32_MAX) {
        unlink(path);
        e->stopped[stop] = s;
        e->known[stop] = true;
        return;
    }
    e->calls = found.calls;
    e->commits = found.reported;
    e->stopped[found.calls] = s;
    e->known[found.calls] = true;
    e->committed[0].none = true; /* what is shared began as zeros */
    for (unsigned c = 1; c <= found.reported; c++) {
        char name[320];

        snprintf(name, sizeof name, "%s.%u", state_file, c);
        if (read_state(name, fapl, 0, &e->committed[c]) < 0)
            die("a committed state cannot be read");
        unlink(name);
    }
    if (programs[p].reads) {
        char base[300];

        base_name(p, base);
        copy_if_any(path, base);
    }
    unlink(path);
}

static void expect(unsigned p, unsigned stop)
{
    int status;
    pid_t child;

    if (stop != UINT32_MAX && expectation[p].known[stop])
        return;
    if ((child = fork()) == 0) {
        expect_one(p, stop);
        _exit(0);
    }
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static const state *stopped_at(unsigned p, unsigned call)
{
    expect(p, call);
    return &expectation[p].stopped[call];
}

/* ---- judging ---- */

/* NULL, or what is wrong with the content of the file. */
static const char *judge_state(unsigned p, const finding *f)
{
    const expected *e = &expectation[p];
    const state *s = &f->after, *before, *after;

    if (f->read < 0)
        return "the file cannot be read afterwards";
    if (programs[p].reads)
        return same_state(s, &e->committed[e->commits]) ? NULL
               : f->error                               ? "reading has changed the file"
                                                        : "wrong data was read, without an error";
    if (!f->error &&
        f->calls < e->calls) /* a process that the program has started saw that its file cannot be opened */
        return same_state(s, stopped_at(p, f->calls)) ? NULL
                                                      : "the program has stopped, and the file is not what was done";
    if (!f->error)
        return same_state(s, &e->committed[e->commits]) ? NULL : "no error, and the data is not there";
    if (f->at_commit) {
        if (same_state(s, &e->committed[f->reported]))
            return NULL;
        if (f->reported == e->commits || !same_state(s, &e->committed[f->reported + 1]))
            return "a commit has failed, and the file is in no state that was ever committed";
        return f->doubt ? NULL : "a commit was reported as failed, and the file is in the new state all the same";
    }
    if (f->closing_failed)
        return same_state(s, &e->committed[f->reported]) ? NULL : "closing has failed, and the file is not as it was";
    before = stopped_at(p, f->error_call);
    after = stopped_at(p, f->error_call + 1);
    return same_state(s, before) || same_state(s, after) ||
                   (strcmp(f->call, "H5Dwrite") == 0 && between(s, before, after))
               ? NULL
               : "after an error the file is not what had been done";
}

/* NULL, or what is wrong with this run. */
static const char *judge(unsigned p, const fault_class *class, const finding *f, int status, bool quota)
{
    const char *why;

    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "hang" : "crash";
    if (status != 0 || !f->through)
        return "it ended too early";
    if (class->unseen && f->error)
        return "was noticed";
    if ((why = judge_state(p, f)) != NULL)
        return why;
    if (!f->again)
        return "the file cannot be made again";
    if (f->descriptors != 0)
        return "a file descriptor is left over";
    if (f->ids != 0)
        return "an id is left over";
    if (f->live != 0)
        return "memory is left over";
    if (f->error && f->message[0] == '\0')
        return "no message";
    if (f->error && !f->named)
        return "the message does not name the file";
    if (quota && !f->error && !f->stock)
        return "a commit succeeded, and then there was no room to apply it";
    return NULL;
}

/* ---- all of them ---- */

typedef struct point {
    unsigned program, class, nth;
    bool ever;
    long quota;   /* pages, -1: no full disk */
    bool limited; /* by the system, as the greatest size of a file */
} point;

typedef struct failure {
    unsigned count;
    char key[400];
    point first;
    finding found;
} failure;

typedef struct slot {
    finding found;
    failure failure[SHOWN * 4];
    unsigned failures, failed;
    unsigned runs, faults, reported, unseen, kept_open, verified;
    unsigned by_class[32]; /* runs: of each class, with a full disk, with a limit */
} slot;

static slot *slots; /* one a job; shared */
static point *points;
static size_t point_count;
static bool verbose;
static const char *command;   /* h5cow, or NULL */
static long minutes, started; /* 0: until all is done; in seconds of the monotonic clock */

/* The state of the file, seen by a process that has nothing open. */
static void look_elsewhere(const char *path, finding *found)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        found->read = read_state(path, connector_fapl("threads=1"), 0, &found->after);
        found->again = true;
        found->descriptors = found->ids = 0;
        found->live = 0;
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
        die("cannot look at a file");
}

static int run_point(const point *pt, const char *path, finding *found, const char *log)
{
    const fault_class *class = pt->quota >= 0 ? &nothing_fails : &classes[pt->class];
    const expected *e = &expectation[pt->program];
    char base[300];
    pid_t child;
    int status;

    memset(found, 0, sizeof *found);
    base_name(pt->program, base);
    copy_if_any(base, path);
    if ((child = fork()) == 0) {
        int out = log == NULL ? -1 : open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

        if (out >= 0) {
            dup2(out, 2);
            close(out);
        }
        limit_computing(SECONDS);
        sigaction(SIGSEGV, &(struct sigaction){.sa_handler = crashed, .sa_flags = SA_RESETHAND | SA_NODEFER}, NULL);
        sigaction(SIGABRT, &(struct sigaction){.sa_handler = crashed, .sa_flags = SA_RESETHAND | SA_NODEFER}, NULL);
        faults_trace(traces);
        run_program(&programs[pt->program], path, class, pt->nth, pt->ever, pt->quota, pt->limited,
                    e->committed[e->commits].versions, found);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        die("cannot start a process");
    if (status == 0 && found->kept_open)
        look_elsewhere(path, found);
    return status;
}

/* Does `h5cow verify` find nothing? It is another program, so it costs some milliseconds. */
static bool verify(const char *path)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, 1);
        dup2(null, 2);
        execl(command, command, "verify", path, (char *)NULL);
        _exit(99);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool log_has_report(const char *log)
{
    char text[4096];
    int fd = open(log, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strstr(text, "runtime error") != NULL || strstr(text, "Sanitizer") != NULL;
}

static void note_failure(slot *s, const point *pt, const char *why)
{
    char key[400];
    failure *f = NULL;

    s->failed++;
    snprintf(key, sizeof key, "%s: %s, in %s",
             pt->limited      ? "limit"
             : pt->quota >= 0 ? "full"
                              : classes[pt->class].name,
             why, s->found.call);
    for (unsigned i = 0; i < s->failures; i++)
        if (strcmp(s->failure[i].key, key) == 0)
            f = &s->failure[i];
    if (f == NULL && s->failures < SHOWN * 4) {
        f = &s->failure[s->failures++];
        memcpy(f->key, key, sizeof key);
        f->first = *pt;
        f->found = s->found;
    }
    if (f != NULL)
        f->count++;
}

static long seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec;
}

static void work(unsigned job, unsigned jobs)
{
    slot *s = &slots[job];
    char path[300], log[300];

    snprintf(path, sizeof path, "%s/faulty-%u.h5", folder, job);
    snprintf(log, sizeof log, "%s/log-%u", folder, job);
    for (size_t i = job; i < point_count && (minutes == 0 || seconds() - started < 60 * minutes); i += jobs) {
        const point *pt = &points[i];
        int status = run_point(pt, path, &s->found, traces > 0 ? NULL : log);
        const char *why = judge(pt->program, pt->quota >= 0 ? &nothing_fails : &classes[pt->class], &s->found, status,
                                pt->quota >= 0);

        if (why == NULL && log_has_report(log))
            why = "the sanitizer has found something";
        if (why == NULL && command != NULL && !s->found.after.none && (verbose || s->runs % VERIFY_EVERY == 0)) {
            s->verified++;
            if (!verify(path))
                why = "h5cow verify finds damage";
        }
        s->kept_open += s->found.kept_open;
        s->by_class[pt->limited ? CLASSES + 1 : pt->quota >= 0 ? CLASSES : pt->class]++;
        s->runs++;
        s->faults += s->found.depth > 0 || pt->quota >= 0;
        s->reported += s->found.error;
        s->unseen += !s->found.error;
        if (why != NULL)
            note_failure(s, pt, why);
    }
}

static void add_point(point pt)
{
    if (point_count % 1024 == 0)
        points = realloc(points, (point_count + 1024) * sizeof *points);
    points[point_count++] = pt;
}

/* How often calls of each class are made: in slots[0].found. */
static void count_calls(unsigned p)
{
    point pt = {.program = p, .quota = LONG_MAX};
    char path[300];
    const char *why;
    int status;

    snprintf(path, sizeof path, "%s/faulty-0.h5", folder);
    status = run_point(&pt, path, &slots[0].found, NULL);
    if ((why = judge(p, &nothing_fails, &slots[0].found, status, false)) != NULL)
        die("%s without a fault: %s", programs[p].name, why);
}

static void print_where(const uintptr_t at[], unsigned depth)
{
    char addresses[1200];
    int length = snprintf(addresses, sizeof addresses, "addr2line -s -f -p -e /proc/%ld/exe", (long)getpid());
    FILE *out;
    char line[200];

    for (unsigned i = 0; i < depth; i++)
        length += snprintf(addresses + length, sizeof addresses - (size_t)length, " %#lx", (unsigned long)at[i] - 1);
    if ((out = popen(addresses, "r")) == NULL)
        return;
    while (fgets(line, sizeof line, out) != NULL)
        if (strncmp(line, "??", 2) != 0 && strstr(line, "faults") == NULL)
            printf("        %s", line);
    pclose(out);
}

static void print_failure(const failure *f)
{
    const finding *found = &f->found;
    const expected *e = &expectation[f->first.program];

    printf("  %u x %s\n    --only '%s' ", f->count, f->key, programs[f->first.program].name);
    if (f->first.quota >= 0)
        printf("--class %s --quota %ld\n", f->first.limited ? "limit" : "full", f->first.quota);
    else
        printf("--class '%s' --nth %u%s\n", classes[f->first.class].name, f->first.nth, f->first.ever ? " --ever" : "");
    printf("      %s %u, commits reported %u of %u: %s\n", found->error ? "error at call" : "no error",
           found->error ? found->error_call : found->calls, found->reported, e->commits, found->message);
    if (found->closing[0] != '\0')
        printf("      closing: %s\n", found->closing);
    if (found->reading[0] != '\0')
        printf("      reading: %s\n", found->reading);
    if (found->left[0] != '\0')
        printf("      left over: %s\n", found->left);
    if (verbose) {
        print_state("now", &found->after);
        for (unsigned c = 0; c <= e->commits; c++)
            print_state("committed", &e->committed[c]);
        if (found->error && !programs[f->first.program].reads) {
            print_state("stopped here", stopped_at(f->first.program, found->error_call));
            print_state("and after it", stopped_at(f->first.program, found->error_call + 1));
        }
    }
    if (found->live != 0) {
        printf("      %ld blocks left over, asked for in\n", found->live);
        print_where(found->leaked, 4);
    }
    printf(found->through ? "      the first fault was in\n" : "      it crashed in\n");
    print_where(found->where, found->depth);
}

static void add_up(slot *sum, const slot *s)
{
    sum->runs += s->runs;
    sum->faults += s->faults;
    sum->reported += s->reported;
    sum->unseen += s->unseen;
    sum->kept_open += s->kept_open;
    sum->verified += s->verified;
    for (size_t c = 0; c < CLASSES + 2; c++)
        sum->by_class[c] += s->by_class[c];
}

/* 1234567 as "1,234,567". */
static const char *thousands(unsigned n, char text[20])
{
    char plain[16];
    size_t length = (size_t)snprintf(plain, sizeof plain, "%u", n), to = 0;

    for (size_t i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = plain[i];
    }
    text[to] = '\0';
    return text;
}

static void report(const slot *sum, unsigned failed)
{
    unsigned calls = 0, memory = 0;
    char n[9][20];
    FILE *out;

    for (size_t c = 0; c < CLASSES; c++)
        if (classes[c].calls & (CALL_MEMORY | CALL_THREAD))
            memory += sum->by_class[c];
        else
            calls += sum->by_class[c];
    thousands(calls, n[0]), thousands(memory, n[1]), thousands(sum->by_class[CLASSES], n[2]);
    thousands(sum->by_class[CLASSES + 1], n[3]), thousands(sum->reported, n[4]), thousands(sum->unseen, n[5]);
    thousands(sum->verified, n[6]), thousands(failed, n[7]), thousands((unsigned)point_count, n[8]);
    printf(
        "%u programs, %u runs: %s failing system calls, %s failing allocations and threads, %s full disks, %s limits "
        "of the size; %s reported, %s went on, %s verified, %u files kept open by HDF5; %s failed\n",
        program_count, sum->runs, n[0], n[1], n[2], n[3], n[4], n[5], n[6], sum->kept_open, n[7]);
    if ((out = results_open()) == NULL)
        return;
    fprintf(
        out,
        "{\"item\": 4, \"what\": \"%u programs run again and again, each time another system call of the journal (%s "
        "runs) or allocation or thread of the connector (%s runs) fails, once or for ever after; or the disk is full "
        "(%s runs), or the file may not get longer (%s runs)%s%s\", \"result\": \"%s runs got an error, %s went on "
        "without one; %s files checked by h5cow verify; crashes, hangs, leaks, silent failures and wrong files: %s\", "
        "\"command\": \"test/faults --all%s%.0ld\"}\n",
        program_count, n[0], n[1], n[2], n[3], minutes > 0 ? "; at random, of all such places: " : "",
        minutes > 0 ? n[8] : "", n[4], n[5], n[6], n[7], minutes > 0 ? " --minutes " : "", minutes);
    fclose(out);
}

static void remove_folder(void)
{
    DIR *all = opendir(folder);
    struct dirent *entry;
    char name[600];

    while (all != NULL && (entry = readdir(all)) != NULL) {
        snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
        unlink(name);
    }
    if (all != NULL)
        closedir(all);
    rmdir(folder);
}

static long number(const char *text)
{
    char *end;
    long value = text == NULL ? -1 : strtol(text, &end, 10);

    if (text == NULL || *end != '\0' || value < 0) {
        fputs(usage, stderr);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    const char *only = NULL, *only_class = NULL, *tmp = getenv("TMPDIR");
    long limit = 6000, jobs = sysconf(_SC_NPROCESSORS_ONLN), nth = 0, quota = -1;
    bool all = false, ever = false;
    unsigned trace = 0, failed = 0, kinds_shown = 0;
    uint64_t random = test_random(0);
    static slot sum;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            all = true;
        else if (strcmp(argv[i], "--ever") == 0)
            ever = true;
        else if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--points") == 0)
            limit = number(argv[++i]);
        else if (strcmp(argv[i], "--minutes") == 0)
            minutes = number(argv[++i]);
        else if (strcmp(argv[i], "--jobs") == 0)
            jobs = number(argv[++i]);
        else if (strcmp(argv[i], "--nth") == 0)
            nth = number(argv[++i]);
        else if (strcmp(argv[i], "--trace") == 0)
            trace = (unsigned)number(argv[++i]);
        else if (strcmp(argv[i], "--quota") == 0)
            quota = number(argv[++i]);
        else if (strcmp(argv[i], "--command") == 0 && i + 1 < argc)
            command = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--class") == 0 && i + 1 < argc)
            only_class = argv[++i];
        else {
            fputs(usage, stderr);
            return 2;
        }
    }
    jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    started = seconds();
    if (tmp == NULL)
        tmp = memory_folder();
    snprintf(folder, sizeof folder, "%s/h5cow-faults-XXXXXX", tmp);
    if (mkdtemp(folder) == NULL)
        die("%s", folder);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pthread_atfork(NULL, NULL, in_child) != 0)
        die("no memory");
    H5open();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    connector_fapl(""); /* stays, and with it the connector */
    cow_journal_use_calls(&faults_disk);
    choose_programs();
    expectation =
        mmap(NULL, program_count * sizeof *expectation, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    slots = mmap(NULL, JOBS_MAX * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (expectation == MAP_FAILED || slots == MAP_FAILED)
        die("no memory");

    for (unsigned p = 0; p < program_count; p++) {
        if (only != NULL && strcmp(only, programs[p].name) != 0)
            continue;
        expect(p, UINT32_MAX);
        count_calls(p);
        for (unsigned c = 0; c < CLASSES; c++) {
            unsigned count = slots[0].found.count[c];

            if (only_class != NULL && strcmp(only_class, classes[c].name) != 0)
                continue;
            if (verbose)
                printf("%s: %u calls that can fail with %s\n", programs[p].name, count, classes[c].name);
            for (unsigned n = 1; n <= count; n++)
                for (unsigned e = 0; e < 2; e++)
                    if ((nth == 0 || (nth == n && ever == e)) && (!e || n == 1 || classes[c].way != FAULT_OTHER))
                        add_point((point){p, c, n, e, -1, false});
        }
        if (!programs[p].reads && nth == 0)
            for (long pages = 0; pages <= slots[0].found.pages; pages++)
                for (unsigned limited = 0; limited < 2; limited++)
                    if ((quota < 0 || quota == pages) &&
                        (only_class == NULL || strcmp(only_class, limited ? "limit" : "full") == 0))
                        add_point((point){.program = p, .quota = pages, .limited = limited});
    }
    if (!all && point_count > (size_t)limit) {
        size_t stride = (point_count + (size_t)limit - 1) / (size_t)limit, kept = 0;

        while (stride % 2 == 0) /* once and for ever alternate */
            stride++;
        for (size_t i = (size_t)test_random(0) % stride; i < point_count; i += stride)
            points[kept++] = points[i];
        point_count = kept;
    }
    for (size_t i = minutes > 0 ? point_count : 0; i > 1; i--) {
        const size_t k = (size_t)splitmix64(&random) % i;
        const point last = points[i - 1];

        points[i - 1] = points[k];
        points[k] = last;
    }
    traces = trace;
    for (unsigned j = 0; j < (unsigned)jobs; j++)
        if (fork() == 0) {
            work(j, (unsigned)jobs);
            _exit(0);
        }
    for (unsigned j = 0; j < (unsigned)jobs; j++)
        if (wait(NULL) < 0)
            die("a job is lost");
    for (unsigned j = 0; j < (unsigned)jobs; j++) {
        failed += slots[j].failed;
        add_up(&sum, &slots[j]);
        for (unsigned i = 0; i < slots[j].failures; i++) {
            failure *f = &slots[j].failure[i];

            for (unsigned k = j + 1; k < (unsigned)jobs; k++)
                for (unsigned m = 0; m < slots[k].failures; m++)
                    if (strcmp(slots[k].failure[m].key, f->key) == 0) {
                        f->count += slots[k].failure[m].count;
                        slots[k].failure[m].count = 0;
                    }
            if (f->count > 0 && kinds_shown++ < SHOWN)
                print_failure(f);
        }
    }
    report(&sum, failed);
    remove_folder();
    return failed > 0;
}
