/* The faults themselves. Contract: faults.h. */
#include "faults.h"

#include "instead.h"
#include "journal/disk.h"

#include <openssl/evp.h>

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE      4096
#define PAGES_MAX ((long)1 << 16)
#define DEPTH     48
#define KINDS     12 /* of calls: fault_call */

static struct {
    pthread_mutex_t lock;
    const fault_class *class; /* NULL: nothing fails, nothing is counted */
    unsigned nth, count;      /* of the class */
    unsigned counts[KINDS];   /* of each kind of call */
    bool ever, torn;
    bool held; /* nothing fails, and nothing is counted */
    uintptr_t where[DEPTH];
    unsigned depth;
    unsigned traced; /* faults still to be told of on stderr */

    long pages, most, quota; /* taken now, at most; -1: no limit */
    bool taken[PAGES_MAX];
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER, .quota = -1};

unsigned faults_inside;

/* ---- when ---- */

static uintptr_t loaded_at;

static int first_object(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    loaded_at = info->dlpi_addr; /* the program itself comes first */
    return 1;
}

void faults_arm(const fault_class *class, unsigned nth, bool ever)
{
    void *warm[1];

    backtrace(warm, 1); /* loads what it needs now */
    dl_iterate_phdr(first_object, NULL);
    faults.nth = nth;
    faults.count = 0;
    memset(faults.counts, 0, sizeof faults.counts);
    faults.ever = ever;
    faults.torn = false;
    faults.depth = 0;
    faults.class = class;
}

void faults_disarm(void)
{
    faults.class = NULL;
}

void faults_hold(bool held)
{
    faults.held = held;
}

void faults_trace(unsigned count)
{
    faults.traced = count;
}

unsigned faults_count(const fault_class *class)
{
    unsigned count = 0;

    for (unsigned kind = 0; kind < KINDS; kind++)
        if (class->calls & 1u << kind)
            count += faults.counts[kind];
    return count;
}

unsigned faults_where(uintptr_t at[], unsigned room)
{
    unsigned n = faults.depth < room ? faults.depth : room;

    memcpy(at, faults.where, n * sizeof *at);
    return n;
}

unsigned faults_relative(void *const at[], unsigned depth, uintptr_t relative[])
{
    for (unsigned i = 0; i < depth; i++)
        relative[i] = (uintptr_t)at[i] - loaded_at;
    return depth;
}

static void note_where(void)
{
    void *at[DEPTH];
    int depth;

    if (faults.traced == 0 && faults.depth > 0)
        return;
    depth = backtrace(at, DEPTH);
    if (faults.traced > 0) {
        faults.traced--;
        fprintf(stderr, "fault, call %u\n", faults.count);
        backtrace_symbols_fd(at, depth, 2);
    }
    if (faults.depth > 0)
        return;
    faults.depth = faults_relative(at, (unsigned)depth, faults.where);
}

/* Does this call fail? */
static bool hit(fault_call call)
{
    bool result = false;

    if (faults_inside == 0 || faults.class == NULL || faults.held)
        return false;
    pthread_mutex_lock(&faults.lock);
    faults.counts[__builtin_ctz(call)]++;
    if ((faults.class->calls & call) && ++faults.count >= faults.nth && faults.nth > 0) {
        unsigned since = faults.count - faults.nth;

        result = since == 0 || (faults.ever && (faults.class->way != FAULT_OTHER || since % 2 == 0));
        if (faults.class->way == FAULT_TORN && since == 1)
            result = true;
        if (result)
            note_where();
    }
    pthread_mutex_unlock(&faults.lock);
    return result;
}

/* A transfer of SIZE bytes: how many are to be done; -1: it fails. */
static ssize_t part(fault_call call, size_t size)
{
    bool half;

    if (!hit(call))
        return (ssize_t)size;
    half = faults.class->way == FAULT_SHORT || (faults.class->way == FAULT_TORN && faults.count == faults.nth);
    if (half && size > 1)
        return (ssize_t)(size / 2);
    if (faults.class->way == FAULT_SHORT)
        return (ssize_t)size;
    errno = faults.class->number;
    return -1;
}

static bool fails(fault_call call)
{
    if (!hit(call))
        return false;
    errno = faults.class->number;
    return true;
}

/* ---- the disk that gets full ---- */

void faults_quota(const char *name, long pages)
{
    struct stat about = {0};

    memset(faults.taken, 0, sizeof faults.taken);
    faults.pages = 0;
    faults.quota = -1;
    if (stat(name, &about) == 0)
        for (long page = 0; page < (about.st_size + PAGE - 1) / PAGE && page < PAGES_MAX; page++) {
            faults.taken[page] = true;
            faults.pages++;
        }
    faults.most = faults.pages;
    faults.quota = pages;
}

long faults_pages(void)
{
    return faults.most;
}

/* How many of SIZE bytes at OFFSET there is room for; these are taken. */
static size_t take(off_t offset, size_t size)
{
    for (off_t at = offset; at < offset + (off_t)size; at = (at / PAGE + 1) * PAGE) {
        if (at / PAGE >= PAGES_MAX)
            return (size_t)(at - offset);
        if (faults.taken[at / PAGE])
            continue;
        if (faults.quota >= 0 && faults.pages >= faults.quota)
            return (size_t)(at - offset);
        faults.taken[at / PAGE] = true;
        if (++faults.pages > faults.most)
            faults.most = faults.pages;
    }
    return size;
}

static bool lacking(off_t offset, off_t size)
{
    long pages = 0;

    for (off_t at = offset; at < offset + size; at = (at / PAGE + 1) * PAGE)
        pages += at / PAGE >= PAGES_MAX || !faults.taken[at / PAGE];
    return (offset + size) / PAGE >= PAGES_MAX || (faults.quota >= 0 && faults.pages + pages > faults.quota);
}

static void give_back(off_t size)
{
    for (long page = (size + PAGE - 1) / PAGE; page < PAGES_MAX; page++)
        if (faults.taken[page]) {
            faults.taken[page] = false;
            faults.pages--;
        }
}

/* ---- system calls ---- */

#define REAL cow_disk_system

static int faulty_open(void *context, const char *name, int flags, mode_t mode)
{
    return fails(CALL_OPEN) ? -1 : REAL.open(context, name, flags, mode);
}

static int faulty_close(void *context, int fd)
{
    return REAL.close(context, fd);
}

static ssize_t faulty_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    ssize_t n = part(CALL_READ, size);

    return n < 0 ? -1 : REAL.pread(context, fd, buffer, (size_t)n, offset);
}

static ssize_t faulty_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    ssize_t n = part(CALL_WRITE, size);

    if (n > 0 && (n = (ssize_t)take(offset, (size_t)n)) == 0) {
        errno = ENOSPC;
        return -1;
    }
    return n < 0 ? -1 : REAL.pwrite(context, fd, buffer, (size_t)n, offset);
}

static int faulty_fdatasync(void *context, int fd)
{
    (void)context;
    (void)fd;
    return fails(CALL_SYNC) ? -1 : 0; /* the power does not go here: test/crash.c */
}

static int faulty_ftruncate(void *context, int fd, off_t size)
{
    if (fails(CALL_TRUNCATE))
        return -1;
    give_back(size);
    return REAL.ftruncate(context, fd, size);
}

static int faulty_fallocate(void *context, int fd, off_t offset, off_t size)
{
    if (fails(CALL_ALLOCATE))
        return -1;
    if (take(offset, (size_t)size) < (size_t)size) {
        errno = ENOSPC;
        return -1;
    }
    return REAL.fallocate(context, fd, offset, size);
}

static int faulty_ahead(void *context, int fd, off_t offset, off_t size)
{
    if (fails(CALL_ALLOCATE))
        return -1;
    if (lacking(offset, size)) {
        errno = ENOSPC;
        return -1;
    }
    take(offset, (size_t)size);
    return REAL.ahead(context, fd, offset, size);
}

static int faulty_hole(void *context, int fd, off_t offset, off_t size)
{
    return fails(CALL_ALLOCATE) ? -1 : REAL.hole(context, fd, offset, size);
}

static int faulty_fstat(void *context, int fd, struct stat *about)
{
    return fails(CALL_FSTAT) ? -1 : REAL.fstat(context, fd, about);
}

static int faulty_stat(void *context, const char *name, struct stat *about)
{
    return fails(CALL_STAT) ? -1 : REAL.stat(context, name, about);
}

static int faulty_lock(void *context, int fd, int command, struct flock *lock)
{
    return fails(CALL_LOCK) ? -1 : REAL.lock(context, fd, command, lock);
}

static int faulty_flock(void *context, int fd, int operation)
{
    return fails(CALL_FLOCK) ? -1 : REAL.flock(context, fd, operation);
}

const cow_disk_calls faults_disk = {
    .open = faulty_open,
    .close = faulty_close,
    .pread = faulty_pread,
    .pwrite = faulty_pwrite,
    .fdatasync = faulty_fdatasync,
    .ftruncate = faulty_ftruncate,
    .fallocate = faulty_fallocate,
    .hole = faulty_hole,
    .ahead = faulty_ahead,
    .fstat = faulty_fstat,
    .stat = faulty_stat,
    .lock = faulty_lock,
    .flock = faulty_flock,
};

/* ---- memory ---- */

#define LIVE_MAX ((size_t)1 << 17)

typedef struct block {
    void *at;
    uintptr_t caller;
    size_t number;
} block;

static struct {
    pthread_mutex_t lock;
    block block[LIVE_MAX]; /* open addressing; at NULL: free */
    size_t count, numbered;
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t home_of(const void *at)
{
    return (size_t)((uintptr_t)at / 16 * UINT64_C(0x9e3779b97f4a7c15) >> 40) % LIVE_MAX;
}

static void *born(void *at, void *caller)
{
    size_t i;

    if (at == NULL || faults_inside == 0)
        return at;
    pthread_mutex_lock(&live.lock);
    if (live.count >= LIVE_MAX / 2)
        abort();
    for (i = home_of(at); live.block[i].at != NULL; i = (i + 1) % LIVE_MAX)
        ;
    live.block[i] = (block){at, (uintptr_t)caller, ++live.numbered};
    live.count++;
    pthread_mutex_unlock(&live.lock);
    return at;
}

static void dies(void *at)
{
    size_t i, hole;

    if (at == NULL)
        return;
    pthread_mutex_lock(&live.lock);
    for (i = home_of(at); live.block[i].at != NULL && live.block[i].at != at; i = (i + 1) % LIVE_MAX)
        ;
    if (live.block[i].at == at) {
        live.count--;
        for (hole = i, i = (i + 1) % LIVE_MAX; live.block[i].at != NULL; i = (i + 1) % LIVE_MAX)
            if ((i - home_of(live.block[i].at)) % LIVE_MAX >= (i - hole) % LIVE_MAX) {
                live.block[hole] = live.block[i];
                hole = i;
            }
        live.block[hole].at = NULL;
    }
    pthread_mutex_unlock(&live.lock);
}

size_t faults_live(uintptr_t at[], unsigned room)
{
    size_t below = SIZE_MAX;

    for (unsigned n = 0; n < room; n++) {
        const block *newest = NULL;

        for (size_t i = 0; i < LIVE_MAX; i++)
            if (live.block[i].at != NULL && live.block[i].number < below &&
                (newest == NULL || live.block[i].number > newest->number))
                newest = &live.block[i];
        at[n] = newest == NULL ? 0 : newest->caller - loaded_at;
        below = newest == NULL ? 0 : newest->number;
    }
    return live.count;
}

/* The linker gives __wrap_NAME what the objects of this program call NAME, and __real_NAME is the real one. */
#define WRAP(type, name, parameters)                                                                                   \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters

#define CALLER __builtin_return_address(0)

static bool no_memory(void)
{
    if (!hit(CALL_MEMORY))
        return false;
    errno = ENOMEM;
    return true;
}

WRAP(void *, malloc, (size_t size))
{
    return no_memory() ? NULL : born(__real_malloc(size), CALLER);
}

/* HDF5 frees it, or the program. */
WRAP(void *, cow_program_memory, (size_t size))
{
    return no_memory() ? NULL : __real_malloc(size);
}

WRAP(void *, calloc, (size_t count, size_t size))
{
    return no_memory() ? NULL : born(__real_calloc(count, size), CALLER);
}

WRAP(void *, realloc, (void *old, size_t size))
{
    void *at;

    if (no_memory())
        return NULL;
    dies(old);
    if ((at = __real_realloc(old, size)) == NULL)
        abort(); /* really no memory: not what is tested */
    return born(at, CALLER);
}

WRAP(void, free, (void *at))
{
    dies(at);
    __real_free(at);
}

WRAP(char *, strdup, (const char *text))
{
    return no_memory() ? NULL : born(__real_strdup(text), CALLER);
}

WRAP(char *, strndup, (const char *text, size_t size))
{
    return no_memory() ? NULL : born(__real_strndup(text, size), CALLER);
}

int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **text, const char *format, ...)
{
    va_list arguments;
    int length;

    if (no_memory())
        return -1;
    va_start(arguments, format);
    length = vasprintf(text, format, arguments);
    va_end(arguments);
    if (length >= 0)
        born(*text, CALLER);
    return length;
}

WRAP(char *, realpath, (const char *name, char *to))
{
    return to == NULL && no_memory() ? NULL
           : to == NULL              ? born(__real_realpath(name, to), CALLER)
                                     : __real_realpath(name, to);
}

WRAP(FILE *, open_memstream, (char **text, size_t *size))
{
    return no_memory() ? NULL : __real_open_memstream(text, size);
}

WRAP(FILE *, fopen64, (const char *name, const char *mode))
{
    return no_memory() ? NULL : __real_fopen64(name, mode);
}

INSTEAD(void *, H5allocate_memory, (size_t size, bool clear))
{
    return no_memory() ? NULL : real_H5allocate_memory(size, clear);
}

WRAP(EVP_MD_CTX *, EVP_MD_CTX_new, (void))
{
    return no_memory() ? NULL : __real_EVP_MD_CTX_new();
}

WRAP(int, pthread_atfork, (void (*prepare)(void), void (*parent)(void), void (*child)(void)))
{
    return no_memory() ? ENOMEM : __real_pthread_atfork(prepare, parent, child);
}

WRAP(int, atexit, (void (*function)(void)))
{
    return no_memory() ? -1 : __real_atexit(function);
}

WRAP(int, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument))
{
    if (hit(CALL_THREAD))
        return EAGAIN;
    return __real_pthread_create(thread, attributes, start, argument);
}
