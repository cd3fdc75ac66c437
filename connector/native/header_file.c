/* See header_file.h. */
#include "native/header_file.h"

#include <stdlib.h>
#include <time.h>

int cow_header_write(const cow_native_bytes *bytes, uint8_t *messages, const uint8_t *end, bool times,
                     uint64_t *address)
{
    size_t size;
    const uint8_t *header = cow_new_header(messages, end, times ? (uint32_t)time(NULL) : 0, &size);

    return cow_header_put(bytes, header, size, address);
}

int cow_header_put(const cow_native_bytes *bytes, const uint8_t *header, size_t size, uint64_t *address)
{
    *address = cow_bytes_take(bytes, size, true);
    return *address == UINT64_MAX ? -1 : cow_bytes_write(bytes, *address, header, size);
}

int cow_small_group_write(const cow_native_bytes *bytes, const cow_small_group *group, size_t room, size_t names,
                          uint64_t *address)
{
    uint8_t *end, *header = cow_small_group_encode(group, room, names, &end);
    int status;

    if (header == NULL)
        return -1;
    status = cow_header_write(bytes, header + COW_NEW_START, end, group->times, address);
    free(header);
    return status;
}
