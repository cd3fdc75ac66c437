/* For LD_PRELOAD, by compact_cuts.py: every call of a program and its children that changes a file in the folder RECORDED_FOLDER
 * (a real path), or brings it onto the disk, is noted in the file RECORDED_LOG, which lies elsewhere, with what was written.
 *
 * The log is a number, how many calls there are, and each call: a `call`, then its data. It is locked while a call is done and
 * noted, so that the order is right among threads and processes.
 *
 * With RECORDED_KILL=N the process that makes call N ends with SIGKILL right after it; with RECORDED_KILL=-N its whole process
 * group. With RECORDED_STOP=LETTER a process is stopped after a call of that kind. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* compact_cuts.py knows this layout. */
typedef struct call {
    int64_t kind;  /* a letter, see the calls below */
    int64_t inode; /* of the file, not where only names change */
    int64_t offset, size, length;
    char name[256], to[256]; /* in the folder */
} call;

static int begin(void)
{
    const char *name = getenv("RECORDED_LOG");
    int log = name == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (log < 0 || flock(log, LOCK_EX) < 0)
        abort();
    return log;
}

/* DATA, MADE.length bytes. NOTED false: the call changed nothing. */
static void end(int log, bool noted, const call *made, const void *data)
{
    const char *kill_at = getenv("RECORDED_KILL"), *stop_at = getenv("RECORDED_STOP");
    int64_t count = 0, at = lseek(log, 0, SEEK_END);
    int number = errno;

    if (noted) {
        at = at < (int64_t)sizeof count ? (int64_t)sizeof count : at;
        if (syscall(SYS_pread64, log, &count, sizeof count, (off_t)0) < 0)
            abort();
        count++;
        if (syscall(SYS_pwrite64, log, &count, sizeof count, (off_t)0) != sizeof count ||
            syscall(SYS_pwrite64, log, made, sizeof *made, (off_t)at) != sizeof *made ||
            syscall(SYS_pwrite64, log, data, (size_t)made->length, (off_t)at + (off_t)sizeof *made) != made->length)
            abort();
        if (kill_at != NULL && llabs(atoll(kill_at)) == count)
            kill(kill_at[0] == '-' ? 0 : getpid(), SIGKILL);
        if (stop_at != NULL && stop_at[0] == made->kind)
            raise(SIGSTOP);
    }
    syscall(SYS_close, log);
    errno = number;
}

/* The name of PATH in the folder, "" for the folder itself; NULL: it is elsewhere. */
static const char *in_folder(const char *path)
{
    const char *folder = getenv("RECORDED_FOLDER");
    size_t length = folder == NULL ? 0 : strlen(folder);

    if (length == 0 || strncmp(path, folder, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return path[length] == '\0' ? "" : path + length + 1;
}

/* Of FD, also when it has lost its name. */
static bool file_in_folder(int fd, struct stat *about)
{
    char link[64], path[PATH_MAX];
    ssize_t length;

    if (fstat(fd, about) < 0 || (!S_ISREG(about->st_mode) && !S_ISDIR(about->st_mode)))
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((length = readlink(link, path, sizeof path - 1)) < 0)
        return false;
    path[length] = '\0';
    return in_folder(path) != NULL;
}

/* ---- names ---- */

static call of_name(char kind, const char *name, const char *to)
{
    call made = {.kind = kind};

    snprintf(made.name, sizeof made.name, "%s", name);
    snprintf(made.to, sizeof made.to, "%s", to);
    return made;
}

/* 'c': a new file: offset: user, size: permissions. 't': it is emptied. */
static int opened(int folder, const char *path, int flags, mode_t mode)
{
    const char *name = in_folder(path);
    call made = of_name('t', name == NULL ? "" : name, "");
    struct stat about;
    int file, log;
    bool noted;

    if (!(flags & (O_CREAT | O_TRUNC)))
        return (int)syscall(SYS_openat, folder, path, flags, mode);
    log = begin();
    if ((flags & O_CREAT) && name != NULL && lstat(path, &about) < 0)
        made.kind = 'c';
    file = (int)syscall(SYS_openat, folder, path, flags, mode);
    noted = file >= 0 && file_in_folder(file, &about) && (made.kind == 'c' || (flags & O_TRUNC));
    if (noted) {
        made.inode = (int64_t)about.st_ino;
        if (made.kind == 'c') {
            made.offset = about.st_uid;
            made.size = about.st_mode & 07777;
        }
    }
    end(log, noted, &made, NULL);
    return file;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    return opened(folder, path, flags, mode);
}

/* 'r' */
static int renamed(const char *from, const char *to, unsigned flags)
{
    const char *a = in_folder(from), *b = in_folder(to);
    int log = begin(), status = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags);
    call made = of_name('r', a == NULL ? "" : a, b == NULL ? "" : b);

    end(log, status == 0 && a != NULL && b != NULL, &made, NULL);
    return status;
}

int rename(const char *from, const char *to)
{
    return renamed(from, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (from_folder != AT_FDCWD || to_folder != AT_FDCWD)
        return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
    return renamed(from, to, flags);
}

/* 'l' */
int link(const char *from, const char *to)
{
    const char *a = in_folder(from), *b = in_folder(to);
    int log = begin(), status = (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
    call made = of_name('l', a == NULL ? "" : a, b == NULL ? "" : b);

    end(log, status == 0 && a != NULL && b != NULL, &made, NULL);
    return status;
}

/* 'u' */
int unlink(const char *path)
{
    const char *name = in_folder(path);
    int log = begin(), status = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    call made = of_name('u', name == NULL ? "" : name, "");

    end(log, status == 0 && name != NULL, &made, NULL);
    return status;
}

/* ---- bytes ---- */

/* 'w'. OFFSET -1: where the file is. */
static ssize_t written(int fd, const void *bytes, size_t size, off_t offset)
{
    struct stat about;
    bool noted = file_in_folder(fd, &about);
    int log = noted ? begin() : -1;
    ssize_t n;

    if (offset >= 0)
        n = syscall(SYS_pwrite64, fd, bytes, size, offset);
    else if ((n = syscall(SYS_write, fd, bytes, size)) > 0 && noted)
        offset = lseek(fd, 0, SEEK_CUR) - n;
    if (noted) {
        call made = {'w', (int64_t)about.st_ino, offset, n, n, "", ""};
        end(log, n > 0, &made, bytes);
    }
    return n;
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    return written(fd, bytes, size, offset);
}

ssize_t write(int fd, const void *bytes, size_t size)
{
    return written(fd, bytes, size, -1);
}

/* System call NUMBER of FD, which gives 0. */
static int changed(int fd, call made, const void *data, long number, long a, long b, long c, long d)
{
    struct stat about;
    bool noted = file_in_folder(fd, &about);
    int log = noted ? begin() : -1, status = (int)syscall(number, fd, a, b, c, d);

    if (noted) {
        made.inode = (int64_t)about.st_ino;
        end(log, status == 0, &made, data);
    }
    return status;
}

/* 't' */
int ftruncate(int fd, off_t size)
{
    return changed(fd, (call){.kind = 't', .size = size}, NULL, SYS_ftruncate, size, 0, 0, 0);
}

/* 'e': the file gets as long as that. 'h': these bytes are zeros. What else it does changes no byte. */
int fallocate(int fd, int mode, off_t offset, off_t size)
{
    bool hole = (mode & FALLOC_FL_PUNCH_HOLE) != 0, keep = !hole && (mode & FALLOC_FL_KEEP_SIZE);

    return changed(fd, (call){.kind = hole ? 'h' : 'e', .offset = offset, .size = keep ? 0 : size}, NULL, SYS_fallocate,
                   mode, offset, size, 0);
}

/* ---- onto the disk ---- */

/* 's'. sync_file_range promises nothing, and is not noted. */
int fsync(int fd)
{
    return changed(fd, (call){.kind = 's'}, NULL, SYS_fsync, 0, 0, 0, 0);
}

/* 'd' */
int fdatasync(int fd)
{
    return changed(fd, (call){.kind = 'd'}, NULL, SYS_fdatasync, 0, 0, 0, 0);
}

/* ---- who may use it ---- */

/* 'm' */
int fchmod(int fd, mode_t mode)
{
    return changed(fd, (call){.kind = 'm', .size = mode}, NULL, SYS_fchmod, mode, 0, 0, 0);
}

/* 'o' */
int fchown(int fd, uid_t user, gid_t group)
{
    return changed(fd, (call){.kind = 'o', .offset = (int)user, .size = (int)group}, NULL, SYS_fchown, user, group, 0,
                   0);
}

/* 'x' */
int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    call made = of_name('x', name, "");

    made.length = (int64_t)size;
    return changed(fd, made, value, SYS_fsetxattr, (long)name, (long)value, (long)size, flags);
}

/* 'y' */
int fremovexattr(int fd, const char *name)
{
    return changed(fd, of_name('y', name, ""), NULL, SYS_fremovexattr, (long)name, 0, 0, 0);
}
