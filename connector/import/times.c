/* The times of objects: see times.h. */
#include "import/times.h"

#include "base/bytes.h"
#include "h5/checksum.h"
#include "h5/header.h"

#include <stdlib.h>
#include <unistd.h>

static int read_file(void *context, uint64_t address, void *bytes, size_t size)
{
    const int *file = context;

    return pread(*file, bytes, size, (off_t)address) == (ssize_t)size ? 0 : -1;
}

int cow_set_times(int file, off_t at, const H5O_info2_t *time)
{
    const cow_source source = {.context = &file, .end = UINT64_MAX, .read = read_file};
    const uint32_t stamp[4] = {(uint32_t)time->atime, (uint32_t)time->mtime, (uint32_t)time->ctime,
                               (uint32_t)time->btime};
    uint8_t *bytes;
    cow_header header;
    size_t sum;
    int status = cow_header_begin(&source, (uint64_t)at, &header);

    if (status <= 0 || !(header.start[5] & COW_HEADER_TIMES))
        return status < 0 ? -1 : 0;
    if ((bytes = malloc(header.first)) == NULL)
        return -1;
    sum = header.first - 4;
    status = cow_source_bring(&source, header.address, bytes, header.first);
    if (status > 0 && cow_source_good(&source, bytes, sum, cow_get32(bytes + sum))) {
        for (int i = 0; i < 4; i++)
            cow_put32(bytes + 6 + 4 * i, stamp[i]);
        cow_put32(bytes + sum, cow_metadata_checksum(bytes, sum));
        status = pwrite(file, bytes, header.first, at) == (ssize_t)header.first ? 1 : -1;
    }
    free(bytes);
    return status < 0 ? -1 : 0;
}
