/* See new_header.h. */
#include "h5/new_header.h"

#include "base/bytes.h"
#include "h5/checksum.h"
#include "h5/header.h"

#include <string.h>

uint8_t *cow_new_prefix(uint8_t *p, uint8_t type, uint8_t flags, size_t size, bool ordered)
{
    p[0] = type;
    cow_put16(p + 1, (uint16_t)size);
    p[3] = flags;
    if (ordered)
        cow_put16(p + 4, 0);
    return p + (ordered ? 6 : 4);
}

uint8_t *cow_new_message(uint8_t *p, uint8_t type, uint8_t flags, const void *body, size_t size)
{
    return (uint8_t *)memcpy(cow_new_prefix(p, type, flags, size, false), body, size) + size;
}

uint8_t *cow_new_group(uint8_t *p, size_t links)
{
    static const uint8_t usual[2], roomy[6] = {0, 1, COW_HEADER_LINKS, 0, COW_HEADER_LINKS_LEAST, 0};
    const bool has_room = links > COW_HEADER_LINKS_USUAL;

    p = cow_new_message(p, COW_MESSAGE_LINK_INFO, 0, cow_links_without_heap, COW_LINKS_WITHOUT_HEAP);
    return cow_new_message(p, COW_MESSAGE_GROUP_INFO, 1, has_room ? roomy : usual,
                           has_room ? sizeof roomy : sizeof usual);
}

uint8_t *cow_new_link(uint8_t *p, const char *name, uint64_t address)
{
    const size_t length = strlen(name), width = length > UINT8_MAX ? 2 : 1;
    uint8_t *body = cow_new_prefix(p, COW_MESSAGE_LINK, 0, 2 + width + length + 8, false);

    body[0] = 1;
    body[1] = (uint8_t)(width - 1); /* two to the power of that */
    if (width == 1)
        body[2] = (uint8_t)length;
    else
        cow_put16(body + 2, (uint16_t)length);
    memcpy(body + 2 + width, name, length);
    cow_put64(body + 2 + width + length, address);
    return body + 2 + width + length + 8;
}

size_t cow_new_start(uint8_t *p, uint8_t flags, uint32_t now, size_t size)
{
    size_t at = 6;

    memcpy(p, "OHDR", 4);
    p[4] = 2;
    p[5] = (uint8_t)(flags | (now > 0 ? COW_HEADER_TIMES : 0));
    for (; now > 0 && at < 22; at += 4)
        cow_put32(p + at, now);
    for (unsigned i = 0; i < 1u << (flags & 3); i++)
        p[at++] = (uint8_t)(size >> 8 * i);
    return at;
}

uint8_t *cow_new_header(uint8_t *messages, const uint8_t *end, uint32_t now, size_t *size)
{
    const size_t content = (size_t)(end - messages);
    uint8_t start[COW_NEW_START], *begin;
    const size_t before = cow_new_start(start, content > UINT8_MAX, now, content);

    begin = messages - before;
    memcpy(begin, start, before);
    *size = before + content + 4;
    cow_metadata_sum_up(begin, *size);
    return begin;
}

void cow_new_continued(uint8_t to[COW_NEW_CONTINUED], uint64_t address, uint64_t size)
{
    uint8_t *body = cow_new_prefix(to + cow_new_start(to, 0, 0, 4 + 16), COW_MESSAGE_CONTINUATION, 0, 16, false);

    cow_put64(body, address);
    cow_put64(body + 8, size);
    cow_metadata_sum_up(to, COW_NEW_CONTINUED);
}

uint8_t *cow_new_chunk(uint8_t *p)
{
    return (uint8_t *)memcpy(p, "OCHK", 4) + 4;
}
