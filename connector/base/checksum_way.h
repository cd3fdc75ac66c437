/* One way to compute XXH3, compiled once for any processor (checksum.c) and once for those with AVX2 (checksum_avx2.c): xxhash.h takes the
 * instructions that the compiler may use where it is included. COW_CHECKSUM_WAY: what it is called. No header to be included elsewhere. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checksum.h"

_Static_assert(sizeof(XXH3_state_t) <= sizeof(cow_checksum_state) && _Alignof(XXH3_state_t) <= 64,
               "no room for xxhash's state");

static uint64_t whole(const void *bytes, size_t size)
{
    return XXH3_64bits(bytes, size);
}

static void begin(cow_checksum_state *state)
{
    XXH3_64bits_reset((XXH3_state_t *)state);
}

static void add(cow_checksum_state *state, const void *bytes, size_t size)
{
    XXH3_64bits_update((XXH3_state_t *)state, bytes, size);
}

static uint64_t end(const cow_checksum_state *state)
{
    return XXH3_64bits_digest((const XXH3_state_t *)state);
}

const cow_checksum_way COW_CHECKSUM_WAY = {whole, begin, add, end};
