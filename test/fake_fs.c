/* For LD_PRELOAD: every file is on the file system whose number FAKE_FS holds (hexadecimal), and with FAKE_NO_LOCKS
 * that one has no locks. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/vfs.h>

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

int flock(int fd, int operation)
{
    int (*real)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");

    if (getenv("FAKE_NO_LOCKS") != NULL) {
        errno = ENOSYS;
        return -1;
    }
    return real(fd, operation);
}
