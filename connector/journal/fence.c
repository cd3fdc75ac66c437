/* The fence header. Contract: fence.h. */
#include "journal/fence.h"

#include "base/bytes.h"
#include "h5/checksum.h"

#include <string.h>

#define FENCE_TYPE  0x77
#define FENCE_FLAGS 0x08 /* fail if unknown and open for write */

static const char fence_text[24] = "h5cow: open with h5cow";

/* Where the messages start and how many bytes they take; false: not an object header of version 2. */
static bool messages(const uint8_t *header, size_t size, size_t *start, size_t *length)
{
    size_t at = 6, width;

    if (size < 6 || memcmp(header, "OHDR", 4) != 0 || header[4] != 2)
        return false;
    if (header[5] & 0x20)
        at += 16; /* times */
    if (header[5] & 0x10)
        at += 4; /* attribute storage phase change */
    width = (size_t)1 << (header[5] & 3);
    if (size < at + width)
        return false;
    *length = 0;
    for (size_t i = width < 4 ? width : 4; i-- > 0;)
        *length = *length << 8 | header[at + i];
    for (size_t i = 4; i < width; i++)
        if (header[at + i] != 0)
            return false;
    *start = at + width;
    return true;
}

size_t cow_fence_source_size(const uint8_t *bytes, size_t size)
{
    size_t start, length;

    return messages(bytes, size, &start, &length) && length < ((size_t)1 << 20) ? start + length + 4 : 0;
}

size_t cow_fence_make(uint8_t *to, size_t room, const uint8_t *extension)
{
    size_t start = 0, length = 0, message, all;
    uint8_t order = 0;

    if (extension != NULL) {
        size_t size = cow_fence_source_size(extension, 32);

        if (size == 0 || cow_get32(extension + size - 4) != cow_metadata_checksum(extension, size - 4))
            return 0;
        messages(extension, size, &start, &length);
        order = extension[5] & 0x04; /* each message then has two more bytes */
        /* what is left over at the end of a chunk is no message */
        for (size_t at = 0, head = order ? 6 : 4;;) {
            if (length - at < head) {
                length = at;
                break;
            }
            at += head + cow_get16(extension + start + at + 1);
            if (at > length)
                return 0;
        }
    }
    message = (order ? 6 : 4) + sizeof fence_text;
    all = 8 + length + message + 4;
    if (all > room || length + message > UINT16_MAX)
        return 0;
    memcpy(to, "OHDR", 4);
    to[4] = 2;
    to[5] = (uint8_t)(order | 1);
    cow_put16(to + 6, (uint16_t)(length + message));
    if (length > 0)
        memcpy(to + 8, extension + start, length);
    memset(to + 8 + length, 0, message);
    to[8 + length] = FENCE_TYPE;
    cow_put16(to + 9 + length, sizeof fence_text);
    to[11 + length] = FENCE_FLAGS;
    memcpy(to + 8 + length + message - sizeof fence_text, fence_text, sizeof fence_text);
    cow_put32(to + all - 4, cow_metadata_checksum(to, all - 4));
    return all;
}

bool cow_fence_is(const uint8_t *bytes, size_t size)
{
    return size > 4 && memcmp(bytes, "OHDR", 4) == 0 && memmem(bytes, size, fence_text, strlen(fence_text)) != NULL;
}
