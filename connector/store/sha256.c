/* SHA-256 (FIPS 180-4) in two lanes, with the SHA instructions of x86. Contract: sha256.h. The tests compare it with
 * OpenSSL's, which everything else uses. */
#include "store/sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <string.h>

#define BLOCK 64

/* Two 128-bit words hold the state of a lane: a, b, e, f and c, d, g, h, the highest first. */
typedef struct lane {
    __m128i abef, cdgh;
} lane;

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define SHA __attribute__((target("sha,sse4.1,ssse3")))

static SHA lane initial(void)
{
    return (lane){.abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c),
                  .cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19)};
}

/* Four big-endian words. */
static inline SHA __m128i load(const uint8_t *p)
{
    return _mm_shuffle_epi8(_mm_loadu_si128((const void *)p), _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
}

/* The next four words of the schedule from the sixteen before: w[-16..-13], w[-12..-9], w[-8..-5], w[-4..-1]. */
static inline SHA __m128i schedule(__m128i w16, __m128i w12, __m128i w8, __m128i w4)
{
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w16, w12), _mm_alignr_epi8(w4, w8, 4));
    return _mm_sha256msg2_epu32(sum, w4);
}

static SHA void take_blocks(lane *first, lane *second, const uint8_t *p, const uint8_t *q, size_t blocks)
{
    lane a = *first, b = *second;

    for (; blocks > 0; blocks--, p += BLOCK, q += BLOCK) {
        const lane before_a = a, before_b = b;
        __m128i w[4], x[4];

        for (int i = 0; i < 4; i++) {
            w[i] = load(p + 16 * i);
            x[i] = load(q + 16 * i);
        }
#pragma GCC unroll 16
        for (int r = 0; r < 16; r++) { /* four rounds each */
            const __m128i k = _mm_loadu_si128((const void *)(constant + 4 * r));
            __m128i s = _mm_add_epi32(w[r & 3], k), t = _mm_add_epi32(x[r & 3], k);

            a.cdgh = _mm_sha256rnds2_epu32(a.cdgh, a.abef, s);
            b.cdgh = _mm_sha256rnds2_epu32(b.cdgh, b.abef, t);
            a.abef = _mm_sha256rnds2_epu32(a.abef, a.cdgh, _mm_shuffle_epi32(s, 0x0e));
            b.abef = _mm_sha256rnds2_epu32(b.abef, b.cdgh, _mm_shuffle_epi32(t, 0x0e));
            if (r < 12) {
                w[r & 3] = schedule(w[r & 3], w[(r + 1) & 3], w[(r + 2) & 3], w[(r + 3) & 3]);
                x[r & 3] = schedule(x[r & 3], x[(r + 1) & 3], x[(r + 2) & 3], x[(r + 3) & 3]);
            }
        }
        a.abef = _mm_add_epi32(a.abef, before_a.abef);
        a.cdgh = _mm_add_epi32(a.cdgh, before_a.cdgh);
        b.abef = _mm_add_epi32(b.abef, before_b.abef);
        b.cdgh = _mm_add_epi32(b.cdgh, before_b.cdgh);
    }
    *first = a;
    *second = b;
}

static SHA void give_hash(const lane *l, uint8_t hash[COW_HASH_SIZE])
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i feba = _mm_shuffle_epi32(l->abef, 0x1b), hgdc = _mm_shuffle_epi32(l->cdgh, 0x1b);

    _mm_storeu_si128((void *)hash, _mm_shuffle_epi8(_mm_unpacklo_epi64(feba, hgdc), big_endian));
    _mm_storeu_si128((void *)(hash + 16), _mm_shuffle_epi8(_mm_unpackhi_epi64(feba, hgdc), big_endian));
}

bool cow_sha256_two(const void *a, const void *b, size_t size, const void *tail, size_t tail_size,
                    uint8_t hash_a[COW_HASH_SIZE], uint8_t hash_b[COW_HASH_SIZE])
{
    /* What is left of the message, the tail, a one bit, zeros, and the length in bits. */
    uint8_t end_a[BLOCK + COW_SHA256_TAIL + BLOCK + 16], end_b[sizeof end_a];
    size_t whole = size / BLOCK, rest = size % BLOCK, blocks = (rest + tail_size + 1 + 8 + BLOCK - 1) / BLOCK;
    uint64_t bits = ((uint64_t)size + tail_size) * 8;
    lane la, lb;

    if (tail_size > COW_SHA256_TAIL || !__builtin_cpu_supports("sha") || !__builtin_cpu_supports("sse4.1"))
        return false;
    memset(end_a, 0, sizeof end_a);
    memcpy(end_a + rest, tail, tail_size);
    end_a[rest + tail_size] = 0x80;
    for (int i = 0; i < 8; i++)
        end_a[blocks * BLOCK - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
    memcpy(end_b, end_a, sizeof end_b);
    memcpy(end_a, (const uint8_t *)a + whole * BLOCK, rest);
    memcpy(end_b, (const uint8_t *)b + whole * BLOCK, rest);
    la = lb = initial();
    take_blocks(&la, &lb, a, b, whole);
    take_blocks(&la, &lb, end_a, end_b, blocks);
    give_hash(&la, hash_a);
    give_hash(&lb, hash_b);
    return true;
}

#else

bool cow_sha256_two(const void *a, const void *b, size_t size, const void *tail, size_t tail_size,
                    uint8_t hash_a[COW_HASH_SIZE], uint8_t hash_b[COW_HASH_SIZE])
{
    (void)a;
    (void)b;
    (void)size;
    (void)tail;
    (void)tail_size;
    (void)hash_a;
    (void)hash_b;
    return false;
}

#endif
