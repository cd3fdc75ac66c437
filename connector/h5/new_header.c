/* See new_header.h. */
#include "h5/new_header.h"

#include "base/bytes.h"
#include "h5/checksum.h"
#include "h5/header.h"

#include <string.h>

uint8_t *cow_new_message(uint8_t *p, uint8_t type, uint8_t flags, const void *body, size_t size)
{
    p[0] = type;
    cow_put16(p + 1, (uint16_t)size);
    p[3] = flags;
    memcpy(p + 4, body, size);
    return p + 4 + size;
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
    uint8_t *body = p + 4;

    p[0] = COW_MESSAGE_LINK;
    cow_put16(p + 1, (uint16_t)(2 + width + length + 8));
    p[3] = 0;
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

/* What stands before the messages, whose bytes are SIZE. */
static size_t encode_start(uint8_t *p, size_t size, uint32_t now)
{
    const bool wide = size > UINT8_MAX;
    size_t at = 6;

    memcpy(p, "OHDR", 4);
    p[4] = 2;
    p[5] = (uint8_t)(wide | (now > 0 ? COW_HEADER_TIMES : 0));
    for (; now > 0 && at < 22; at += 4)
        cow_put32(p + at, now);
    if (wide)
        cow_put16(p + at, (uint16_t)size);
    else
        p[at] = (uint8_t)size;
    return at + 1 + wide;
}

uint8_t *cow_new_header(uint8_t *messages, const uint8_t *end, uint32_t now, size_t *size)
{
    const size_t content = (size_t)(end - messages);
    uint8_t start[COW_NEW_START], *begin;
    const size_t before = encode_start(start, content, now);

    begin = messages - before;
    memcpy(begin, start, before);
    *size = before + content + 4;
    cow_metadata_sum_up(begin, *size);
    return begin;
}
