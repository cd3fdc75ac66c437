/* Whole reads and writes over a table of system calls. Contract: disk.h. */
#include "journal/disk.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "base/newfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MAX_TRANSFER ((size_t)1 << 30) /* Linux transfers at most 2 GiB at once */

static int system_open(void *context, const char *name, int flags, mode_t mode)
{
    (void)context;
    return cow_above_standard(open(name, flags, mode));
}

static int system_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}

static ssize_t system_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    (void)context;
    return pread(fd, buffer, size, offset);
}

static ssize_t system_preadv(void *context, int fd, const struct iovec *parts, int n, off_t offset)
{
    (void)context;
    return preadv(fd, parts, n, offset);
}

static ssize_t system_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    (void)context;
    return pwrite(fd, buffer, size, offset);
}

static int system_fdatasync(void *context, int fd)
{
    (void)context;
    return fdatasync(fd);
}

static int system_ftruncate(void *context, int fd, off_t size)
{
    (void)context;
    return ftruncate(fd, size);
}

static int system_fallocate(void *context, int fd, off_t offset, off_t size)
{
    (void)context;
    return fallocate(fd, 0, offset, size);
}

static int system_hole(void *context, int fd, off_t offset, off_t size)
{
    (void)context;
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
}

static int system_ahead(void *context, int fd, off_t offset, off_t size)
{
    struct rlimit limit;

    (void)context;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (rlim_t)(offset + size) > limit.rlim_cur) {
        errno = EFBIG; /* what is written would say that, or a signal */
        return -1;
    }
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, size);
}

static int system_fstat(void *context, int fd, struct stat *about)
{
    (void)context;
    return fstat(fd, about);
}

static int system_stat(void *context, const char *name, struct stat *about)
{
    (void)context;
    return stat(name, about);
}

static int system_lock(void *context, int fd, int command, struct flock *lock)
{
    (void)context;
    return fcntl(fd, command, lock);
}

static int system_flock(void *context, int fd, int operation)
{
    (void)context;
    return flock(fd, operation);
}

static int system_start_sync(void *context, int fd, off_t offset, off_t size)
{
    (void)context;
    return sync_file_range(fd, offset, size, SYNC_FILE_RANGE_WRITE);
}

static int system_sync_folder(void *context, const char *name)
{
    const char *slash = strrchr(name, '/');
    char folder[PATH_MAX];
    int fd, status, number;

    (void)context;
    if (slash == NULL)
        snprintf(folder, sizeof folder, ".");
    else
        snprintf(folder, sizeof folder, "%.*s", slash == name ? 1 : (int)(slash - name), name);
    if ((fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return -1;
    status = fsync(fd);
    number = errno;
    close(fd);
    errno = number;
    return status;
}

static int system_chmod(void *context, int fd, mode_t mode)
{
    (void)context;
    return fchmod(fd, mode);
}

static int system_times(void *context, int fd, const struct timespec times[2])
{
    (void)context;
    return futimens(fd, times);
}

static ssize_t system_get_label(void *context, int fd, void *value, size_t size)
{
    (void)context;
    return fgetxattr(fd, COW_LABEL, value, size);
}

static int system_set_label(void *context, int fd, const void *value, size_t size)
{
    (void)context;
    return fsetxattr(fd, COW_LABEL, value, size, 0);
}

static int system_unlink(void *context, const char *name)
{
    (void)context;
    return unlink(name);
}

static int system_rename(void *context, const char *from, const char *to)
{
    (void)context;
    return rename(from, to);
}

const cow_disk_calls cow_disk_system = {
    .open = system_open,
    .close = system_close,
    .pread = system_pread,
    .pwrite = system_pwrite,
    .fdatasync = system_fdatasync,
    .ftruncate = system_ftruncate,
    .fallocate = system_fallocate,
    .fstat = system_fstat,
    .stat = system_stat,
    .lock = system_lock,
    .flock = system_flock,
    .start_sync = system_start_sync,
    .sync_folder = system_sync_folder,
    .unlink = system_unlink,
    .rename = system_rename,
    .hole = system_hole,
    .chmod = system_chmod,
    .times = system_times,
    .preadv = system_preadv,
    .get_label = system_get_label,
    .set_label = system_set_label,
    .ahead = system_ahead,
};

bool cow_disk_labelled(const char *name)
{
    return getxattr(name, COW_LABEL, NULL, 0) > 0;
}

int cow_disk_open(cow_disk *disk, const cow_disk_calls *calls, const char *name, int flags)
{
    disk->calls = calls;
    disk->name = name;
    disk->pages = NULL;
    disk->zero = 0;
    if ((flags & O_ACCMODE) == O_RDONLY)
        flags |= O_NONBLOCK; /* a pipe would wait for its other end */
    do
        disk->fd = calls->open(calls->context, name, flags | O_CLOEXEC, 0666);
    while (disk->fd < 0 && errno == EINTR);
    return disk->fd < 0 ? -1 : 0;
}

void cow_disk_close(cow_disk *disk)
{
    if (disk->fd >= 0)
        disk->calls->close(disk->calls->context,
                           disk->fd); /* all that matters was synced, and closing releases anyway */
    disk->fd = -1;
    cow_pages_free(disk->pages);
    disk->pages = NULL;
}

static int failed(const cow_disk *disk, const char *what)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return cow_error(COW_IO, "%s: %s: errno = %d, error message = '%s'; make room and open the file again",
                         disk->name, what, errno, strerror(errno));
    return cow_error(COW_IO, "%s: %s: errno = %d, error message = '%s'", disk->name, what, errno, strerror(errno));
}

/* As many of SIZE bytes as the file has there. -1: errno says why. */
static ssize_t read_there(const void *context, uint64_t address, void *buffer, size_t size)
{
    const cow_disk *disk = context;
    uint8_t *to = buffer;
    size_t done = 0;

    while (done < size) {
        size_t most = size - done < MAX_TRANSFER ? size - done : MAX_TRANSFER;
        ssize_t n = disk->calls->pread(disk->calls->context, disk->fd, to + done, most, (off_t)(address + done));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* All of them. -1: errno says why. */
static int write_there(const void *context, uint64_t address, const void *buffer, size_t size)
{
    const cow_disk *disk = context;
    const uint8_t *from = buffer;

    while (size > 0) {
        ssize_t n = disk->calls->pwrite(disk->calls->context, disk->fd, from, size < MAX_TRANSFER ? size : MAX_TRANSFER,
                                        (off_t)address);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = ENOSPC; /* nothing written without a reason: do not go round for ever */
        if (n <= 0)
            return -1;
        from += n;
        address += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

void cow_disk_remember(cow_disk *disk, uint64_t size)
{
    static const cow_pages_file file = {read_there, write_there};

    if (disk->pages == NULL)
        disk->pages = cow_pages_new(&file, size);
}

void cow_disk_forked(cow_disk *disk)
{
    if (disk->pages != NULL)
        cow_pages_freeze(disk->pages);
}

int cow_disk_read(const cow_disk *disk, uint64_t address, void *buffer, size_t size)
{
    ssize_t there = read_there(disk, address, buffer, size);

    if (there < 0)
        return failed(disk, "cannot read");
    if ((size_t)there < size)
        memset((uint8_t *)buffer + there, 0, size - (size_t)there);
    if (disk->pages != NULL)
        cow_pages_overlay(disk->pages, address, buffer, size);
    return 0;
}

int cow_disk_recall(const cow_disk *disk, uint64_t address, void *buffer, size_t size)
{
    if (disk->pages != NULL && cow_pages_read(disk->pages, disk, address, buffer, size))
        return 0;
    return cow_disk_read(disk, address, buffer, size);
}

bool cow_disk_read_parts(const cow_disk *disk, uint64_t address, const struct iovec parts[], size_t n)
{
    ssize_t there = 0;

    if (disk->calls->preadv != NULL && n > 1 && n <= IOV_MAX) {
        there = disk->calls->preadv(disk->calls->context, disk->fd, parts, (int)n, (off_t)address);
        there = there < 0 ? 0 : there; /* tried again below */
    }
    for (size_t i = 0; i < n; i++) {
        size_t done = (size_t)there < parts[i].iov_len ? (size_t)there : parts[i].iov_len,
               rest = parts[i].iov_len - done;

        if (read_there(disk, address + done, (uint8_t *)parts[i].iov_base + done, rest) != (ssize_t)rest)
            return false;
        there -= (ssize_t)done;
        address += parts[i].iov_len;
    }
    return true;
}

int cow_disk_settle(const cow_disk *disk, uint64_t address, uint64_t size)
{
    return disk->pages == NULL || cow_pages_settle(disk->pages, disk, address, size) == 0
               ? 0
               : failed(disk, "cannot write");
}

uint64_t cow_disk_written(const cow_disk *disk, uint64_t size)
{
    return disk->pages == NULL ? size : cow_pages_end(disk->pages);
}

/* What waits of them is written, and then all of them are to be changed past the pages, whatever becomes of it. */
static int changes(const cow_disk *disk, uint64_t address, uint64_t size)
{
    if (cow_disk_settle(disk, address, size) < 0)
        return -1;
    if (disk->pages != NULL)
        cow_pages_forget(disk->pages, address, size);
    return 0;
}

int cow_disk_write(const cow_disk *disk, uint64_t address, const void *buffer, size_t size)
{
    int status;

    if (changes(disk, address, size) < 0)
        return -1;
    status = write_there(disk, address, buffer, size);
    if (status == 0 && disk->pages != NULL)
        cow_pages_reach(disk->pages, address + size);
    return status < 0 ? failed(disk, "cannot write") : 0;
}

int cow_disk_put(const cow_disk *disk, uint64_t address, const void *buffer, size_t size)
{
    if (disk->pages == NULL || !cow_pages_take(disk->pages, size))
        return cow_disk_write(disk, address, buffer, size);
    return cow_pages_put(disk->pages, disk, address, buffer, size) < 0 ? failed(disk, "cannot write") : 0;
}

int cow_disk_sync(const cow_disk *disk)
{
    int status;

    if (cow_disk_settle(disk, 0, UINT64_MAX) < 0)
        return -1;
    do
        status = disk->calls->fdatasync(disk->calls->context, disk->fd);
    while (status < 0 && errno == EINTR);
    return status < 0 ? failed(disk, "cannot bring what was written onto the disk") : 0;
}

void cow_disk_start_sync(const cow_disk *disk, uint64_t from, uint64_t to)
{
    const uint64_t page = 4096;

    from = (from + page - 1) / page * page;
    to = to / page * page;
    if (from < to && disk->calls->start_sync != NULL)
        disk->calls->start_sync(disk->calls->context, disk->fd, (off_t)from, (off_t)(to - from));
}

int cow_disk_truncate(const cow_disk *disk, uint64_t size)
{
    int status;

    if (disk->pages != NULL)
        cow_pages_forget(disk->pages, size, UINT64_MAX);
    do
        status = disk->calls->ftruncate(disk->calls->context, disk->fd, (off_t)size);
    while (status < 0 && errno == EINTR);
    if (status == 0 && disk->pages != NULL)
        cow_pages_cut(disk->pages, size);
    return status < 0 ? failed(disk, "cannot change the size of the file") : 0;
}

int cow_disk_sync_folder(const cow_disk_calls *calls, const char *name)
{
    int status;

    if (calls->sync_folder == NULL)
        return 0;
    do
        status = calls->sync_folder(calls->context, name);
    while (status < 0 && errno == EINTR);
    if (status == 0 || (errno != EIO && errno != ENOSPC && errno != EDQUOT))
        return 0; /* one that must not be read, or a file system that has nothing to sync */
    return cow_error(COW_IO, "%s: cannot bring the name of the file onto the disk: errno = %d, error message = '%s'",
                     name, errno, strerror(errno));
}

int cow_disk_reserve(const cow_disk *disk, uint64_t address, uint64_t size)
{
    int status;

    do
        status = disk->calls->fallocate(disk->calls->context, disk->fd, (off_t)address, (off_t)size);
    while (status < 0 && errno == EINTR);
    if (status < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == ENODEV || errno == EINVAL))
        return 0; /* the write that follows finds out */
    return status < 0 ? failed(disk, "cannot make room for a commit") : 0;
}

int cow_disk_ahead(const cow_disk *disk, uint64_t address, uint64_t size)
{
    int status;

    if (disk->calls->ahead == NULL)
        return 0;
    do
        status = disk->calls->ahead(disk->calls->context, disk->fd, (off_t)address, (off_t)size);
    while (status < 0 && errno == EINTR);
    return status == 0 ? 1 : errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? -1 : 0;
}

void cow_disk_hole(const cow_disk *disk, uint64_t address, uint64_t size)
{
    if (disk->calls->hole == NULL)
        return;
    if (changes(disk, address, size) < 0) {
        cow_error_clear();
        return;
    }
    while (disk->calls->hole(disk->calls->context, disk->fd, (off_t)address, (off_t)size) < 0 && errno == EINTR)
        ;
}

int cow_disk_about(const cow_disk *disk, struct stat *about)
{
    return disk->calls->fstat(disk->calls->context, disk->fd, about) < 0 ? failed(disk, "cannot look at the file") : 0;
}

int cow_disk_mentions(const cow_disk_calls *calls, const char *name, const char *text, uint64_t most)
{
    const size_t length = strlen(text);
    char bytes[1 << 16];
    cow_disk disk;
    struct stat about;
    size_t kept = 0;
    off_t at = 0;
    ssize_t n = 0;
    bool found = false;

    if (cow_disk_open(&disk, calls, name, O_RDONLY) < 0)
        return -1;
    if (calls->fstat(calls->context, disk.fd, &about) < 0)
        n = -1;
    else if (S_ISREG(about.st_mode))
        while (!found && (uint64_t)at < most) {
            n = calls->pread(calls->context, disk.fd, bytes + kept, sizeof bytes - kept, at);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            size_t all = kept + (size_t)n;
            at += n;
            found = memmem(bytes, all, text, length) != NULL;
            kept = all < length ? all : length - 1;
            memmove(bytes, bytes + all - kept, kept);
        }
    int error = errno;
    cow_disk_close(&disk);
    errno = error;
    return found ? 1 : n < 0 ? -1 : 0;
}
