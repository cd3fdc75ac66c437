/* The times of objects: see times.h. */
#include "import/times.h"

#include "h5/header.h"

#include <unistd.h>

static int read_file(void *context, uint64_t address, void *bytes, size_t size)
{
    const int *file = context;

    return pread(*file, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

static int write_file(void *context, uint64_t address, const void *bytes, size_t size)
{
    const int *file = context;

    return pwrite(*file, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

int cow_set_times(int file, off_t at, const H5O_info2_t *time)
{
    const cow_source source = {.context = &file, .end = UINT64_MAX, .read = read_file};
    const uint32_t stamp[4] = {(uint32_t)time->atime, (uint32_t)time->mtime, (uint32_t)time->ctime,
                               (uint32_t)time->btime};

    return cow_header_set_times(&source, (uint64_t)at, stamp, write_file, &file) < 0 ? -1 : 0;
}
