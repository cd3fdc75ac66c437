/* What test programs do with files, besides calling HDF5. */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* TO becomes what FROM is. false: errno says why not. */
static inline bool copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out;
    ssize_t n = -1;

    if (in < 0)
        return false;
    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    while (out >= 0 && (n = read(in, bytes, sizeof bytes)) > 0 && write(out, bytes, (size_t)n) == n)
        ;
    close(in);
    return out >= 0 && close(out) == 0 && n == 0;
}

/* For files that are written very often: in memory, if there is such a place. */
static inline const char *memory_folder(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

#endif
