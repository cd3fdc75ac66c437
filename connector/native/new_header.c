/* See new_header.h. */
#include "native/new_header.h"

#include "base/bytes.h"
#include "journal/driver.h"
#include "journal/fence.h"
#include "native/header.h"

#include <string.h>
#include <time.h>

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
static size_t encode_start(uint8_t *p, size_t size, bool times)
{
    const bool wide = size > UINT8_MAX;
    size_t at = 6;

    memcpy(p, "OHDR", 4);
    p[4] = 2;
    p[5] = (uint8_t)(wide | (times ? COW_HEADER_TIMES : 0));
    for (; times && at < 22; at += 4)
        cow_put32(p + at, (uint32_t)time(NULL));
    if (wide)
        cow_put16(p + at, (uint16_t)size);
    else
        p[at] = (uint8_t)size;
    return at + 1 + wide;
}

int cow_new_header(const cow_native_bytes *bytes, uint8_t *messages, const uint8_t *end, bool times, uint64_t *address)
{
    uint8_t start[COW_NEW_START], *begin;
    const size_t before = encode_start(start, (size_t)(end - messages), times),
                 size = before + (size_t)(end - messages);

    begin = messages - before;
    memcpy(begin, start, before);
    cow_put32(begin + size, cow_metadata_checksum(begin, size));
    *address = cow_journal_driver_allocate(bytes->fileno, size + 4, true);
    return *address == UINT64_MAX ? -1 : cow_journal_write(bytes->journal, *address, begin, size + 4);
}
