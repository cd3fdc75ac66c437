/* SHA-256 (FIPS 180-4) in two lanes with the SHA instructions of x86, and in sixteen with AVX-512. Contract: sha256.h.
 * The tests compare it with OpenSSL's, which everything else uses. */
#include "base/sha256.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#include <stdbool.h>
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

/* What follows the whole blocks of a message: its rest, the tail, a one bit, zeros, and the length in bits. */
typedef struct ending {
    uint8_t bytes[BLOCK + COW_SHA256_TAIL + BLOCK + 16];
} ending;

/* Returns the blocks of the endings of N messages. */
static size_t make_endings(const void *const message[], unsigned n, size_t size, const void *tail, size_t tail_size,
                           ending end[])
{
    size_t rest = size % BLOCK, blocks = (rest + tail_size + 1 + 8 + BLOCK - 1) / BLOCK;
    uint64_t bits = ((uint64_t)size + tail_size) * 8;

    memset(end, 0, sizeof *end);
    memcpy(end->bytes + rest, tail, tail_size);
    end->bytes[rest + tail_size] = 0x80;
    for (int i = 0; i < 8; i++)
        end->bytes[blocks * BLOCK - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
    for (unsigned i = 1; i < n; i++)
        end[i] = end[0];
    for (unsigned i = 0; i < n; i++)
        memcpy(end[i].bytes, (const uint8_t *)message[i] + (size - rest), rest);
    return blocks;
}

/* Bytes of each message that are looked at, and then hashed: those of all together stay in the cache. Whole blocks, but for the rest. */
#define PART (4u << 10)

static size_t next_part(size_t size, size_t at)
{
    return size - at < PART + BLOCK ? size - at : PART;
}

static void hash_two(const void *const message[], size_t size, const void *tail, size_t tail_size,
                     uint8_t *const hash[], cow_sha256_look *look, void *context)
{
    ending end[2];
    size_t blocks;
    lane a, b;

    a = b = initial();
    for (size_t at = 0, some; at < size; at += some) {
        const uint8_t *p = (const uint8_t *)message[0] + at, *q = (const uint8_t *)message[1] + at;

        some = next_part(size, at);
        look(context, 0, p, some);
        look(context, 1, q, some);
        take_blocks(&a, &b, p, q, some / BLOCK);
    }
    blocks = make_endings(message, 2, size, tail, tail_size, end); /* now, when all was looked at */
    take_blocks(&a, &b, end[0].bytes, end[1].bytes, blocks);
    give_hash(&a, hash[0]);
    give_hash(&b, hash[1]);
}

/* ---- sixteen lanes: word i of all sixteen messages in one vector ---- */

#define WIDE __attribute__((target("avx512f,avx512bw")))
/* With fewer lanes than this in use, pairs take less time. */
#define WIDE_FROM 9

#define ROTATE          _mm512_ror_epi32
#define XOR3(a, b, c)   _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define CHOOSE(e, f, g) _mm512_ternarylogic_epi32(e, f, g, 0xca)
#define MAJOR(a, b, c)  _mm512_ternarylogic_epi32(a, b, c, 0xe8)
#define ADD             _mm512_add_epi32

/* Rows to columns. */
static inline WIDE void transpose(__m512i w[16])
{
    __m512i t[16];

#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(w[i], w[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(w[i], w[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
        w[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        w[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        w[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        w[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(w[i], w[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(w[i], w[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(w[i + 8], w[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        w[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        w[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        w[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
        w[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* NEXT: what is looked at next. */
static WIDE void take_wide(__m512i state[8], const uint8_t *const p[COW_TOGETHER],
                           const uint8_t *const next[COW_TOGETHER], size_t blocks)
{
    const __m512i swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));

    for (size_t at = 0; at < blocks * BLOCK; at += BLOCK) {
        __m512i a = state[0], b = state[1], c = state[2], d = state[3];
        __m512i e = state[4], f = state[5], g = state[6], h = state[7], w[16];

#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            w[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(p[i] + at), swap);
            _mm_prefetch((const char *)((uintptr_t)next[i] + at), _MM_HINT_T1);
        }
        transpose(w);
        for (int r = 0; r < 64; r += 16) {
#pragma GCC unroll 16
            for (int i = 0; i < 16; i++) {
                __m512i s, t = ADD(ADD(h, w[i]), _mm512_set1_epi32((int)constant[r + i]));

                t = ADD(t, ADD(CHOOSE(e, f, g), XOR3(ROTATE(e, 6), ROTATE(e, 11), ROTATE(e, 25))));
                s = ADD(MAJOR(a, b, c), XOR3(ROTATE(a, 2), ROTATE(a, 13), ROTATE(a, 22)));
                h = g;
                g = f;
                f = e;
                e = ADD(d, t);
                d = c;
                c = b;
                b = a;
                a = ADD(t, s);
                if (r < 48) { /* the word that is needed sixteen rounds later */
                    const __m512i x = w[(i + 1) & 15], y = w[(i + 14) & 15];
                    w[i] = ADD(ADD(w[i], w[(i + 9) & 15]),
                               ADD(XOR3(ROTATE(x, 7), ROTATE(x, 18), _mm512_srli_epi32(x, 3)),
                                   XOR3(ROTATE(y, 17), ROTATE(y, 19), _mm512_srli_epi32(y, 10))));
                }
            }
        }
        state[0] = ADD(state[0], a);
        state[1] = ADD(state[1], b);
        state[2] = ADD(state[2], c);
        state[3] = ADD(state[3], d);
        state[4] = ADD(state[4], e);
        state[5] = ADD(state[5], f);
        state[6] = ADD(state[6], g);
        state[7] = ADD(state[7], h);
    }
}

/* N messages, n >= 1; lanes that are left over hash the first one again. */
static WIDE void hash_wide(const void *const message[], unsigned n, size_t size, const void *tail, size_t tail_size,
                           uint8_t *const hash[], cow_sha256_look *look, void *context)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint8_t *p[COW_TOGETHER], *next[COW_TOGETHER];
    uint32_t word[8][COW_TOGETHER];
    ending end[COW_TOGETHER];
    __m512i state[8];
    size_t blocks;

    for (unsigned i = 0; i < COW_TOGETHER; i++)
        p[i] = message[i < n ? i : 0];
    for (int i = 0; i < 8; i++)
        state[i] = _mm512_set1_epi32((int)first[i]);
    for (size_t at = 0, some; at < size; at += some) {
        some = next_part(size, at);
        for (unsigned i = 0; i < COW_TOGETHER; i++)
            next[i] = i < n ? look(context, i, p[i], some) : p[i];
        take_wide(state, p, next, some / BLOCK);
        for (unsigned i = 0; i < COW_TOGETHER; i++)
            p[i] += some;
    }
    blocks = make_endings(message, n, size, tail, tail_size, end); /* now, when all was looked at */
    for (unsigned i = 0; i < COW_TOGETHER; i++)
        p[i] = end[i < n ? i : 0].bytes;
    take_wide(state, p, p, blocks);
    for (int i = 0; i < 8; i++)
        _mm512_storeu_si512(word[i], state[i]);
    for (unsigned m = 0; m < n; m++)
        for (int i = 0; i < 8; i++)
            for (int k = 0; k < 4; k++)
                hash[m][4 * i + k] = (uint8_t)(word[i][m] >> (24 - 8 * k));
}

/* ---- the door ---- */

static bool have_pairs(void)
{
    return __builtin_cpu_supports("sha") && __builtin_cpu_supports("sse4.1");
}

static bool have_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

unsigned cow_sha256_best(void)
{
    return have_wide() ? COW_TOGETHER : have_pairs() ? 2 : 1;
}

unsigned cow_sha256_some(const void *const message[], unsigned n, size_t size, const void *tail, size_t tail_size,
                         uint8_t *const hash[], cow_sha256_look *look, void *context)
{
    n = n < COW_TOGETHER ? n : COW_TOGETHER;
    if (tail_size > COW_SHA256_TAIL)
        return 0;
    if (n >= WIDE_FROM && have_wide()) {
        hash_wide(message, n, size, tail, tail_size, hash, look, context);
        return n;
    }
    if (n < 2 || !have_pairs())
        return 0;
    hash_two(message, size, tail, tail_size, hash, look, context);
    return 2;
}

#else

unsigned cow_sha256_best(void)
{
    return 1;
}

unsigned cow_sha256_some(const void *const message[], unsigned n, size_t size, const void *tail, size_t tail_size,
                         uint8_t *const hash[], cow_sha256_look *look, void *context)
{
    (void)message;
    (void)n;
    (void)size;
    (void)tail;
    (void)tail_size;
    (void)hash;
    (void)look;
    (void)context;
    return 0;
}

#endif
