/* See small_group.h. */
#include "h5/small_group.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

typedef struct reading {
    cow_small_group *group;
    bool info, settings;
} reading;

static int take_link(cow_small_group *group, const uint8_t *body, size_t length)
{
    cow_link_parts parts;
    char *name;

    /* no creation order, no character set but ASCII, a hard link */
    if (!cow_link_parse(body, length, &parts) || body[1] & ~3 || parts.address == 0 ||
        group->count == COW_HEADER_LINKS || memchr(body + parts.name, '\0', parts.length) != NULL ||
        COW_RESERVE(group->link, group->room, group->count, 1) < 0 ||
        (name = strndup((const char *)body + parts.name, parts.length)) == NULL)
        return 0;
    group->link[group->count++] = (cow_small_link){.name = name, .address = cow_get64(body + parts.address)};
    return 1;
}

static int take_message(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    const uint8_t *body = message + prefix;
    reading *r = context;

    if (message[3] & COW_MESSAGE_SHARED)
        return 0;
    switch (message[0]) {
    case COW_MESSAGE_LINK_INFO:
        r->info = length == COW_LINKS_WITHOUT_HEAP && memcmp(body, cow_links_without_heap, length) == 0;
        return r->info;
    case COW_MESSAGE_GROUP_INFO:
        r->settings = (length == 2 && body[0] == 0 && body[1] == 0) ||
                      (length == 6 && body[0] == 0 && body[1] == 1 && cow_get16(body + 2) == COW_HEADER_LINKS &&
                       cow_get16(body + 4) == COW_HEADER_LINKS_LEAST);
        return r->settings;
    case COW_MESSAGE_LINK:
        return take_link(r->group, body, length);
    case COW_MESSAGE_ATTRIBUTE: /* what is no matter of its links */
    case COW_MESSAGE_ATTRIBUTE_INFO:
    case COW_MESSAGE_COMMENT:
    case COW_MESSAGE_REFERENCES:
        return 1;
    default:
        return 0;
    }
}

int cow_small_group_read(const cow_source *source, uint64_t address, cow_small_group *group)
{
    reading r = {.group = group};
    cow_header header;
    int status;

    *group = (cow_small_group){0};
    status = cow_header_visit(source, address, &header, take_message, &r);
    group->times = header.start[5] & COW_HEADER_TIMES;
    return status > 0 ? (header.start[5] & ~(COW_HEADER_TIMES | 3)) == 0 && r.info && r.settings : status;
}

void cow_small_group_free(cow_small_group *group)
{
    for (size_t i = 0; i < group->count; i++)
        free(group->link[i].name);
    free(group->link);
    *group = (cow_small_group){0};
}

uint8_t *cow_small_group_encode(const cow_small_group *group, size_t room, size_t names, uint8_t **end)
{
    /* the count of references, which HDF5 writes where there are several, and links */
    size_t spare = 5 + room * COW_NEW_LINK + names, kept = 0;
    uint8_t *header = calloc(1, COW_NEW_START + COW_NEW_GROUP + group->count * COW_NEW_LINK + 4 + spare + 4), *p;

    if (header == NULL) {
        cow_error(COW_MEMORY, "no memory for a group of %zu links", group->count);
        return NULL;
    }
    for (size_t i = 0; i < group->count; i++)
        kept += group->link[i].kept;
    p = cow_new_group(header + COW_NEW_START, kept + room);
    for (size_t i = 0; i < group->count; i++)
        if (group->link[i].kept) {
            p = cow_new_link(p, group->link[i].name, group->link[i].address);
            spare -= strlen(group->link[i].name);
        }
    *end = cow_new_prefix(p, COW_MESSAGE_NIL, 0, spare, false) + spare;
    return header;
}
