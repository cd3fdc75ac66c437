/* checksum.c for processors with AVX2, which take a third of the time for bytes that are in their cache. */
#include "base/checksum.h"

#ifdef COW_CHECKSUM_AVX2
#pragma GCC target("avx2")
#define COW_CHECKSUM_WAY cow_checksum_avx2
#include "base/checksum_way.h"

#if XXH_VECTOR != XXH_AVX2
#error "xxhash.h does not use AVX2"
#endif
#endif
