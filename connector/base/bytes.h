/* Little-endian integers and varints in memory, for everything that h5cow writes into a file itself. Without its loop each is
 * one instruction of the processor. */
#ifndef COW_BYTES_H
#define COW_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void cow_put16(uint8_t *p, uint16_t v)
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static inline void cow_put32(uint8_t *p, uint32_t v)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static inline void cow_put64(uint8_t *p, uint64_t v)
{
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static inline uint16_t cow_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t cow_get32(const uint8_t *p)
{
    uint32_t v = 0;
#pragma GCC unroll 4
    for (int i = 3; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}
static inline uint64_t cow_get64(const uint8_t *p)
{
    uint64_t v = 0;
#pragma GCC unroll 8
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

/* LEB128. put: writes at most 10 bytes, returns the number. get: returns the number of bytes read, 0 when the value
 * does not end before END or does not fit 64 bits. */
static inline size_t cow_put_varint(uint8_t *p, uint64_t v)
{
    size_t n = 0;
    while (v >= 0x80) {
        p[n++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    p[n++] = (uint8_t)v;
    return n;
}
static inline size_t cow_get_varint(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    uint64_t value = 0;
    for (size_t n = 0; n < 10 && p + n < end; n++) {
        if (n == 9 && p[n] > 1)
            return 0;
        value |= (uint64_t)(p[n] & 0x7f) << (7 * n);
        if (!(p[n] & 0x80)) {
            *v = value;
            return n + 1;
        }
    }
    return 0;
}

#endif
