/* The LZF format. A stream is a row of items, each led by a control byte:
 *
 *    000LLLLL                        L+1 literal bytes follow
 *    LLLooooo oooooooo               copy L+2 bytes (L 1 to 6) from o+1 bytes back
 *    111ooooo LLLLLLLL oooooooo      copy L+9 bytes from o+1 bytes back
 *
 * A copy may overlap what it makes. Output depends on the input alone; nothing is read or written outside the buffers,
 * whatever the input is.
 */
#include "io/lzf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HASH_BITS    14 /* 64 KiB of table: fits the stack of any thread and the second-level cache */
#define MAX_LITERALS 32
#define MAX_DISTANCE 8192
#define MAX_COPY     264
#define MIN_COPY     3

static uint32_t hash3(const uint8_t *p)
{
    uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
    return v * 2654435761u >> (32 - HASH_BITS);
}

/* Appends LENGTH literals at OUT + *MADE; false when they do not fit. */
static bool put_literals(const uint8_t *from, size_t length, uint8_t *out, size_t capacity, size_t *made)
{
    while (length > 0) {
        size_t n = length < MAX_LITERALS ? length : MAX_LITERALS;
        if (capacity - *made < n + 1)
            return false;
        out[(*made)++] = (uint8_t)(n - 1);
        memcpy(out + *made, from, n);
        *made += n;
        from += n;
        length -= n;
    }
    return true;
}

static bool put_copy(size_t distance, size_t length, uint8_t *out, size_t capacity, size_t *made)
{
    size_t offset = distance - 1, code = length - 2;

    if (capacity - *made < 3)
        return false;
    if (code < 7) {
        out[(*made)++] = (uint8_t)(code << 5 | offset >> 8);
    } else {
        out[(*made)++] = (uint8_t)(7 << 5 | offset >> 8);
        out[(*made)++] = (uint8_t)(code - 7);
    }
    out[(*made)++] = (uint8_t)offset;
    return true;
}

size_t cow_lzf_compress(const void *in, size_t size, void *out, size_t capacity)
{
    uint32_t last[1 << HASH_BITS] = {0}; /* 1 + newest position of each hash, 0: none */
    const uint8_t *bytes = in;
    size_t at = 0, literals = 0, made = 0;

    if (size >= UINT32_MAX)
        return 0;
    while (at + MIN_COPY <= size) {
        uint32_t *entry = &last[hash3(bytes + at)];
        size_t from = *entry, length = MIN_COPY, longest = size - at < MAX_COPY ? size - at : MAX_COPY;

        *entry = (uint32_t)at + 1;
        if (from == 0 || at - (from - 1) > MAX_DISTANCE || memcmp(bytes + from - 1, bytes + at, MIN_COPY) != 0) {
            at++;
            continue;
        }
        from--;
        while (length < longest && bytes[from + length] == bytes[at + length])
            length++;
        if (!put_literals(bytes + literals, at - literals, out, capacity, &made) ||
            !put_copy(at - from, length, out, capacity, &made))
            return 0;
        for (size_t i = at + 1; i < at + length && i + MIN_COPY <= size; i++)
            last[hash3(bytes + i)] = (uint32_t)i + 1;
        at += length;
        literals = at;
    }
    return put_literals(bytes + literals, size - literals, out, capacity, &made) ? made : 0;
}

size_t cow_lzf_decompressed_size(const void *in, size_t size)
{
    const uint8_t *bytes = in;
    size_t at = 0, made = 0;

    while (at < size) {
        size_t code = bytes[at] >> 5;
        if (code == 0) {
            made += bytes[at] + 1u;
            at += bytes[at] + 2u;
        } else if (code < 7) {
            made += code + 2;
            at += 2;
        } else {
            if (size - at < 3)
                return 0;
            made += bytes[at + 1] + 9u;
            at += 3;
        }
    }
    return at == size ? made : 0;
}

size_t cow_lzf_decompress(const void *in, size_t size, void *out, size_t capacity)
{
    const uint8_t *bytes = in;
    uint8_t *to = out;
    size_t at = 0, made = 0;

    while (at < size) {
        size_t control = bytes[at++], length = control >> 5, distance;

        if (length == 0) {
            length = control + 1;
            if (size - at < length || capacity - made < length)
                return 0;
            memcpy(to + made, bytes + at, length);
            at += length;
            made += length;
            continue;
        }
        if (size - at < (length == 7 ? 2u : 1u))
            return 0;
        if (length == 7)
            length += bytes[at++];
        length += 2;
        distance = ((control & 0x1f) << 8 | bytes[at++]) + 1;
        if (distance > made || capacity - made < length)
            return 0;
        for (size_t i = 0; i < length; i++, made++) /* byte by byte: a copy may overlap what it makes */
            to[made] = to[made - distance];
    }
    return made;
}
