/* See checksum.h. */
#include "h5/checksum.h"

#include "base/bytes.h"

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

bool cow_metadata_whole(const uint8_t *bytes, size_t size)
{
    return cow_get32(bytes + size - 4) == cow_metadata_checksum(bytes, size - 4);
}

void cow_metadata_sum_up(uint8_t *bytes, size_t size)
{
    cow_put32(bytes + size - 4, cow_metadata_checksum(bytes, size - 4));
}
