/* Descriptors away from those of standard input, output and errors, where a process has closed them (daemons do): else a
 * file gets one of these numbers, and what anything in the process prints, HDF5 its errors for one, lands in the file. */
#ifndef COW_DESCRIPTOR_H
#define COW_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* In the place of FILE, which was just opened, or is -1. -1: errno. */
static inline int cow_above_standard(int file)
{
    int above, error;

    if (file < 0 || file > STDERR_FILENO)
        return file;
    above = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    error = errno;
    close(file);
    errno = error;
    return above;
}

#endif
