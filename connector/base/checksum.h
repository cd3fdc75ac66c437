/* XXH3 (64 bits) of bytes that come one part after the other, as fast as this processor can. Private to base/: others use
 * cow_checksum and cow_checksum_parts (digest.h), whose results are the same. Pure: any thread may be here. */
#ifndef COW_CHECKSUM_H
#define COW_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) /* which has no pragma for it */
#define COW_CHECKSUM_AVX2
#endif

/* Room for XXH3_state_t, of which each way of compiling xxhash.h has a type of its own. */
typedef struct cow_checksum_state {
    _Alignas(64) uint8_t bytes[640];
} cow_checksum_state;

/* None can fail. */
typedef struct cow_checksum_way {
    uint64_t (*whole)(const void *bytes, size_t size);
    void (*begin)(cow_checksum_state *state);
    void (*add)(cow_checksum_state *state, const void *bytes, size_t size);
    uint64_t (*end)(const cow_checksum_state *state);
} cow_checksum_way;

extern const cow_checksum_way cow_checksum_plain, cow_checksum_avx2;
/* The best one here. */
const cow_checksum_way *cow_checksum_best(void);

#endif
