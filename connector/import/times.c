/* The times of objects: see times.h. */
#include "import/times.h"

#include "base/bytes.h"
#include "journal/fence.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cow_set_times(int file, off_t at, const H5O_info2_t *time)
{
    uint8_t prefix[26 + 8], *header;
    const uint32_t stamp[4] = {(uint32_t)time->atime, (uint32_t)time->mtime, (uint32_t)time->ctime,
                               (uint32_t)time->btime};
    size_t before, width, size = 0;
    int status = -1;

    if (pread(file, prefix, sizeof prefix, at) != (ssize_t)sizeof prefix)
        return -1;
    if (memcmp(prefix, "OHDR", 4) != 0 || prefix[4] != 2 || !(prefix[5] & 0x20))
        return 0;
    before = 6 + 16 + (prefix[5] & 0x10 ? 4 : 0);
    width = (size_t)1 << (prefix[5] & 3);
    for (size_t i = 0; i < width; i++)
        size |= (size_t)prefix[before + i] << (8 * i);
    if (size > (size_t)1 << 30)
        return 0;
    size += before + width;
    if ((header = malloc(size + 4)) == NULL)
        return -1;
    if (pread(file, header, size + 4, at) != (ssize_t)(size + 4))
        goto done;
    status = 0;
    if (cow_metadata_checksum(header, size) != cow_get32(header + size))
        goto done;
    for (int i = 0; i < 4; i++)
        cow_put32(header + 6 + 4 * i, stamp[i]);
    cow_put32(header + size, cow_metadata_checksum(header, size));
    if (pwrite(file, header, size + 4, at) != (ssize_t)(size + 4))
        status = -1;
done:
    free(header);
    return status;
}
