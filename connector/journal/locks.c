/* Locks. Contract and list of them: locks.h. */
#include "journal/locks.h"

#include "base/error.h"
#include "journal/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define WRITER        ((off_t)1 << 62)
#define UNPUBLISHED   ((off_t)1 << 61)
#define PIN           (WRITER + 1)
#define PIN_COUNT     ((off_t)1 << 60)
#define BRIEF         (WRITER + ((off_t)1 << 60) + ((off_t)1 << 59))
#define LIFTED        (BRIEF + 1)
#define BRIEF_MOST    30000 /* milliseconds that a writer waits for one that only applies */
#define PROCESS       (WRITER + ((off_t)1 << 61))
#define PROCESS_COUNT ((off_t)1 << 32)

static int set(const cow_disk *disk, short type, off_t start)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = 1};
    int status;

    do
        status = disk->calls->lock(disk->calls->context, disk->fd, F_OFD_SETLK, &lock);
    while (status < 0 && errno == EINTR);
    return status;
}

/* Somebody else's lock in the way of one of TYPE: 1 and where it starts, 0: none, -1. */
static int get(const cow_disk *disk, short type, off_t start, off_t length, off_t *found)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    int status;

    do
        status = disk->calls->lock(disk->calls->context, disk->fd, F_OFD_GETLK, &lock);
    while (status < 0 && errno == EINTR);
    if (status < 0)
        return -1;
    *found = lock.l_start > start ? lock.l_start : start;
    return lock.l_type != F_UNLCK;
}

bool cow_lock_excused(void)
{
    const char *locking = getenv("HDF5_USE_FILE_LOCKING");

    return locking != NULL &&
           (strcasecmp(locking, "FALSE") == 0 || strcmp(locking, "0") == 0 || strcasecmp(locking, "BEST_EFFORT") == 0);
}

static bool taken(int number)
{
    return number == EAGAIN || number == EACCES;
}

static int no_locks(const cow_disk *disk)
{
    if (cow_lock_excused())
        return 0;
    return cow_error(COW_IO,
                     "%s: the file system has no working locks (%s), so nothing would keep two programs from writing "
                     "at once; where that cannot happen, set HDF5_USE_FILE_LOCKING=FALSE",
                     disk->name, strerror(errno));
}

/* "process 123 (python3) on host": what can be found out about the writer. */
void cow_lock_describe_writer(const cow_disk *disk, char *text, size_t size)
{
    char path[64], program[64] = "", host[64] = "this host";
    off_t found = 0;
    FILE *file;

    if (get(disk, F_WRLCK, PROCESS, PROCESS_COUNT, &found) != 1) {
        snprintf(text, size, "another program");
        return;
    }
    snprintf(path, sizeof path, "/proc/%lld/comm", (long long)(found - PROCESS));
    if ((file = fopen(path, "re")) != NULL) {
        if (fgets(program, sizeof program, file) == NULL)
            program[0] = '\0';
        program[strcspn(program, "\n")] = '\0';
        fclose(file);
        gethostname(host, sizeof host - 1);
    } else
        snprintf(host, sizeof host, "another host or in another container");
    snprintf(text, size, "process %lld%s%s%s on %s", (long long)(found - PROCESS), program[0] ? " (" : "", program,
             program[0] ? ")" : "", host);
}

static void pause_for(long milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};

    nanosleep(&time, NULL);
}

double cow_milliseconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1000 + (double)time.tv_nsec / 1e6;
}

/* Somebody else applies what waits, which was there before it had the file and is over soon. */
static bool is_brief(const cow_disk *disk)
{
    off_t found;

    return get(disk, F_WRLCK, BRIEF, 1, &found) == 1;
}

int cow_lock_writer(const cow_disk *disk, unsigned timeout)
{
    double start = cow_milliseconds(), waited;
    char writer[256];
    bool brief;

    while (set(disk, F_WRLCK, WRITER) < 0) {
        if (!taken(errno))
            return no_locks(disk);
        waited = cow_milliseconds() - start;
        brief = waited < BRIEF_MOST && is_brief(disk);
        if (waited < timeout || brief) {
            pause_for(brief ? 1 : 10);
            continue;
        }
        if (cow_lock_is_writing(disk)) {
            cow_lock_describe_writer(disk, writer, sizeof writer);
            return cow_error(COW_IO,
                             "%s: the file is being written by %s; nothing was changed; wait until it is closed, or "
                             "set the option lock_timeout=SECONDS",
                             disk->name, writer);
        }
        if (set(disk, F_WRLCK, WRITER) == 0)
            break; /* it was let go a moment ago */
        return cow_error(COW_IO,
                         "%s: the file is being read, and on this kind of file system (network, FUSE) nobody can "
                         "write meanwhile; nothing was changed; wait until it is closed, or set the option "
                         "lock_timeout=SECONDS",
                         disk->name);
    }
    set(disk, F_RDLCK, PROCESS + getpid());
    return 0;
}

int cow_lock_writer_briefly(const cow_disk *disk)
{
    int status = set(disk, F_RDLCK, BRIEF); /* before the other: who is kept away by that sees why */

    if (status == 0 && (status = set(disk, F_WRLCK, WRITER)) < 0)
        set(disk, F_UNLCK, BRIEF);
    if (status == 0) {
        set(disk, F_RDLCK, PROCESS + getpid());
        return 0;
    }
    return taken(errno) ? cow_error(COW_IO, "%s: the file is being written", disk->name) : no_locks(disk);
}

void cow_lock_release(const cow_disk *disk)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET}; /* length 0: to the end */

    disk->calls->lock(disk->calls->context, disk->fd, F_OFD_SETLK, &lock);
}

bool cow_lock_is_writing(const cow_disk *disk)
{
    off_t found;

    return get(disk, F_RDLCK, WRITER, 1, &found) == 1;
}

int cow_lock_against_writer(const cow_disk *disk)
{
    char writer[256];

    if (set(disk, F_RDLCK, WRITER) == 0)
        return 0;
    if (!taken(errno))
        return no_locks(disk);
    cow_lock_describe_writer(disk, writer, sizeof writer);
    return cow_error(COW_IO,
                     "%s: the file is being written by %s, and on this kind of file system (network, FUSE) nobody can "
                     "read meanwhile; wait until it is closed, or read a copy",
                     disk->name, writer);
}

int cow_lock_pin(const cow_disk *disk, uint64_t sequence)
{
    return set(disk, F_RDLCK, PIN + (off_t)sequence) < 0 ? no_locks(disk) : 0;
}

void cow_lock_unpin(const cow_disk *disk, uint64_t sequence)
{
    set(disk, F_UNLCK, PIN + (off_t)sequence);
}

int cow_lock_lowest_pin(const cow_disk *disk, uint64_t *sequence)
{
    off_t found, end = PIN_COUNT;
    int status;

    *sequence = COW_NOWHERE;
    while (end > 0 && (status = get(disk, F_WRLCK, PIN, end, &found)) != 0) {
        if (status < 0)
            return -1;
        *sequence = (uint64_t)(found - PIN);
        end = found - PIN; /* the system tells one, not the first */
    }
    return 0;
}

int cow_lock_next_pin(const cow_disk *disk, uint64_t from, uint64_t *sequence)
{
    off_t found, start = PIN + (off_t)from, end = PIN + PIN_COUNT;
    int status;

    *sequence = COW_NOWHERE;
    while (end > start && (status = get(disk, F_WRLCK, start, end - start, &found)) != 0) {
        if (status < 0)
            return -1;
        *sequence = (uint64_t)(found - PIN);
        end = found;
    }
    return 0;
}

int cow_lock_lift(const cow_disk *disk)
{
    return set(disk, F_RDLCK, LIFTED);
}

bool cow_lock_is_lifted(const cow_disk *disk)
{
    off_t found;

    return get(disk, F_WRLCK, LIFTED, 1, &found) == 1;
}

int cow_lock_unpublished(const cow_disk *disk, uint64_t generation)
{
    return set(disk, F_WRLCK, UNPUBLISHED + (off_t)generation) < 0 ? no_locks(disk) : 0;
}

void cow_lock_publish(const cow_disk *disk, uint64_t generation)
{
    set(disk, F_UNLCK, UNPUBLISHED + (off_t)generation);
}

bool cow_lock_is_unpublished(const cow_disk *disk, uint64_t generation)
{
    off_t found;

    return get(disk, F_RDLCK, UNPUBLISHED + (off_t)generation, 1, &found) == 1;
}

bool cow_lock_against_stock(const cow_disk *disk)
{
    int status;

    do
        status = disk->calls->flock(disk->calls->context, disk->fd, LOCK_EX | LOCK_NB);
    while (status < 0 && errno == EINTR);
    return status == 0 || errno != EWOULDBLOCK; /* where there is no flock, nobody holds one */
}

void cow_lock_against_stock_stop(const cow_disk *disk)
{
    disk->calls->flock(disk->calls->context, disk->fd, LOCK_UN);
}

cow_lock_kind cow_lock_means(off_t start, uint64_t *state)
{
    if (start < PIN || start >= PIN + PIN_COUNT)
        return COW_LOCK_NONE;
    *state = (uint64_t)(start - PIN);
    return COW_LOCK_READER;
}

int cow_lock_plain(const cow_disk *disk, bool exclusive)
{
    return disk->calls->flock(disk->calls->context, disk->fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
}

void cow_lock_plain_stop(const cow_disk *disk)
{
    disk->calls->flock(disk->calls->context, disk->fd, LOCK_UN);
}

bool cow_lock_doubtful(const cow_disk *disk)
{
    struct statfs about;

    if (fstatfs(disk->fd, &about) < 0)
        return false;
    switch ((unsigned long)about.f_type) {
    case 0x6969:     /* NFS */
    case 0x65735546: /* FUSE */
    case 0x01021997: /* 9p */
    case 0x0bd00bd0: /* Lustre */
    case 0xff534d42: /* CIFS */
    case 0xfe534d42: /* SMB2 */
    case 0x517b:     /* SMB */
    case 0x47504653: /* GPFS */
        return true;
    default:
        return false;
    }
}
