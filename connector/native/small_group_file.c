/* New small groups: see small_group.h. */
#include "native/small_group.h"

#include "base/bytes.h"
#include "base/error.h"
#include "native/new_header.h"

#include <stdlib.h>
#include <string.h>

int cow_small_group_write(const cow_native_bytes *bytes, const cow_small_group *group, size_t room, size_t names,
                          uint64_t *address)
{
    /* the count of references, which HDF5 writes where there are several, and links */
    size_t spare = 5 + room * COW_NEW_LINK + names, kept = 0;
    uint8_t *header = calloc(1, COW_NEW_START + COW_NEW_GROUP + group->count * COW_NEW_LINK + 4 + spare + 4), *p;
    int status;

    if (header == NULL)
        return cow_error(COW_MEMORY, "no memory for a group of %zu links", group->count);
    for (size_t i = 0; i < group->count; i++)
        kept += group->link[i].kept;
    p = cow_new_group(header + COW_NEW_START, kept + room);
    for (size_t i = 0; i < group->count; i++)
        if (group->link[i].kept) {
            p = cow_new_link(p, group->link[i].name, group->link[i].address);
            spare -= strlen(group->link[i].name);
        }
    *p = COW_MESSAGE_NIL;
    cow_put16(p + 1, (uint16_t)spare);
    status = cow_new_header(bytes, header + COW_NEW_START, p + 4 + spare, group->times, address);
    free(header);
    return status;
}
