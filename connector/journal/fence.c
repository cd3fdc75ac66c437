/* Superblock fields and the fence header. Contract: fence.h. Layouts: HDF5 File Format Specification, II.A and IV.A.1.
 */
#include "journal/fence.h"

#include "base/bytes.h"
#include "journal/record.h"

#include <string.h>

#define FLAGS_AT     11
#define FLAG_WRITING 0x05 /* open for writing, open for SWMR writing */
#define FENCE_TYPE   0x77
#define FENCE_FLAGS  0x08 /* fail if unknown and open for write */

static const char fence_text[24] = "h5cow: open with h5cow";

static uint32_t rotate(uint32_t x, unsigned k)
{
    return x << k | x >> (32 - k);
}

/* lookup3 by Bob Jenkins (public domain), hashlittle() with an initial value of 0. */
uint32_t cow_metadata_checksum(const uint8_t *bytes, size_t size)
{
    uint32_t a, b, c;
    uint8_t last[12] = {0};

    a = b = c = 0xdeadbeef + (uint32_t)size;
    for (; size > 12; size -= 12, bytes += 12) {
        a += cow_get32(bytes);
        b += cow_get32(bytes + 4);
        c += cow_get32(bytes + 8);
        a -= c, a ^= rotate(c, 4), c += b;
        b -= a, b ^= rotate(a, 6), a += c;
        c -= b, c ^= rotate(b, 8), b += a;
        a -= c, a ^= rotate(c, 16), c += b;
        b -= a, b ^= rotate(a, 19), a += c;
        c -= b, c ^= rotate(b, 4), b += a;
    }
    if (size == 0)
        return c;
    memcpy(last, bytes, size);
    a += cow_get32(last);
    b += cow_get32(last + 4);
    c += cow_get32(last + 8);
    c ^= b, c -= rotate(b, 14);
    a ^= c, a -= rotate(c, 11);
    b ^= a, b -= rotate(a, 25);
    c ^= b, c -= rotate(b, 16);
    a ^= c, a -= rotate(c, 4);
    b ^= a, b -= rotate(a, 14);
    c ^= b, c -= rotate(b, 24);
    return c;
}

bool cow_superblock_signature(const uint8_t *bytes)
{
    return memcmp(bytes, "\211HDF\r\n\032\n", 8) == 0;
}

size_t cow_superblock_size(const uint8_t *bytes)
{
    if (!cow_superblock_signature(bytes) || bytes[8] != 3 || (bytes[9] != 4 && bytes[9] != 8))
        return 0;
    return 16 + 4 * (size_t)bytes[9];
}

static uint64_t get_address(const uint8_t *superblock, unsigned which)
{
    const uint8_t *at = superblock + 12 + which * superblock[9];
    uint32_t small = cow_get32(at);

    if (superblock[9] == 8)
        return cow_get64(at);
    return small == UINT32_MAX ? COW_NOWHERE : small;
}

static void put_address(uint8_t *superblock, unsigned which, uint64_t address)
{
    uint8_t *at = superblock + 12 + which * superblock[9];

    if (superblock[9] == 8)
        cow_put64(at, address);
    else
        cow_put32(at, (uint32_t)address);
}

static void seal(uint8_t *superblock)
{
    size_t size = cow_superblock_size(superblock);

    cow_put32(superblock + size - 4, cow_metadata_checksum(superblock, size - 4));
}

bool cow_superblock_whole(const uint8_t *superblock)
{
    size_t size = cow_superblock_size(superblock);

    return size > 0 && cow_get32(superblock + size - 4) == cow_metadata_checksum(superblock, size - 4);
}

uint64_t cow_superblock_base(const uint8_t *superblock)
{
    return get_address(superblock, 0);
}

void cow_superblock_move(uint8_t *superblock, uint64_t base)
{
    if (!cow_superblock_whole(superblock) || get_address(superblock, 0) == base)
        return;
    put_address(superblock, 2, get_address(superblock, 2) - get_address(superblock, 0) + base);
    put_address(superblock, 0, base);
    seal(superblock);
}

uint64_t cow_superblock_extension(const uint8_t *superblock)
{
    return get_address(superblock, 1);
}

uint64_t cow_superblock_end(const uint8_t *superblock)
{
    return get_address(superblock, 2);
}

void cow_superblock_set_end(uint8_t *superblock, uint64_t end)
{
    put_address(superblock, 2, end);
}

bool cow_superblock_flagged(const uint8_t *superblock)
{
    return superblock[FLAGS_AT] & FLAG_WRITING;
}

void cow_superblock_set(uint8_t *superblock, uint64_t extension, bool flagged)
{
    put_address(superblock, 1, extension);
    superblock[FLAGS_AT] = (uint8_t)((superblock[FLAGS_AT] & ~FLAG_WRITING) | (flagged ? 1 : 0));
    seal(superblock);
}

bool cow_superblock_same_but_end(const uint8_t *a, const uint8_t *b)
{
    size_t before_end = 12 + 2 * (size_t)a[9], after_end = before_end + a[9];

    return a[9] == b[9] && memcmp(a, b, before_end) == 0 && memcmp(a + after_end, b + after_end, a[9]) == 0;
}

/* ---- the object header ---- */

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
