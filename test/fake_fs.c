/* For LD_PRELOAD: every file is on the file system whose number FAKE_FS holds (hexadecimal), and with FAKE_NO_LOCKS
 * that one has no locks. With FAKE_NO_ATTRIBUTES it takes no extended attributes, with FAKE_NO_PERMISSIONS
 * it keeps no permissions: these hold errno, 0 for one that says nothing. With FAKE_QUOTA=BYTES no file gets
 * longer than that, as by a quota; the disk has room. With FAKE_BAD=FIRST-END,FIRST-END... no file gives back bytes between these. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

int fstatfs(int fd, struct statfs *about)
{
    int (*real)(int, struct statfs *) = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
    const char *number = getenv("FAKE_FS");
    int status = real(fd, about);

    if (status == 0 && number != NULL)
        about->f_type = (__typeof__(about->f_type))strtoul(number, NULL, 16);
    return status;
}

int fcntl(int fd, int command, ...)
{
    int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
    va_list arguments;
    void *argument;

    va_start(arguments, command);
    argument = va_arg(arguments, void *);
    va_end(arguments);
    if ((command == F_OFD_SETLK || command == F_OFD_GETLK) && getenv("FAKE_NO_LOCKS") != NULL) {
        errno = ENOLCK;
        return -1;
    }
    return real(fd, command, argument);
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t) = (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread64");
    const char *bad = getenv("FAKE_BAD"), *end;

    for (; bad != NULL && (end = strchr(bad, '-')) != NULL; bad = (end = strchr(end, ',')) == NULL ? NULL : end + 1)
        if (offset < atoll(end + 1) && offset + (off_t)size > atoll(bad)) {
            errno = EIO;
            return -1;
        }
    return real(fd, buffer, size, offset);
}

int flock(int fd, int operation)
{
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");

    if (getenv("FAKE_NO_LOCKS") != NULL) {
        errno = ENOSYS;
        return -1;
    }
    return real(fd, operation);
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    int (*real)(int, const char *, const void *, size_t, int) =
        (int (*)(int, const char *, const void *, size_t, int))dlsym(RTLD_NEXT, "fsetxattr");
    const char *number = getenv("FAKE_NO_ATTRIBUTES");

    if (number != NULL) {
        errno = atoi(number);
        return -1;
    }
    return real(fd, name, value, size, flags);
}

int fchmod(int fd, mode_t mode)
{
    int (*real)(int, mode_t) = (int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod");
    const char *number = getenv("FAKE_NO_PERMISSIONS");

    if (number != NULL) {
        errno = atoi(number);
        return errno == 0 ? 0 : -1;
    }
    return real(fd, mode);
}

/* ---- quotas ---- */

static bool over_quota(off_t end)
{
    const char *bytes = getenv("FAKE_QUOTA");

    if (bytes == NULL || end <= atoll(bytes))
        return false;
    errno = EDQUOT;
    return true;
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
    ssize_t (*real)(int, const void *, size_t, off_t) =
        (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");

    return over_quota(offset + (off_t)size) ? -1 : real(fd, buffer, size, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t size)
{
    int (*real)(int, int, off_t, off_t) = (int (*)(int, int, off_t, off_t))dlsym(RTLD_NEXT, "fallocate64");

    return (mode & FALLOC_FL_PUNCH_HOLE) == 0 && over_quota(offset + size) ? -1 : real(fd, mode, offset, size);
}
