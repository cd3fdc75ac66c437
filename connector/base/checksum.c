/* Checksums of chunks and records. Contracts: digest.h, checksum.h. */
#define COW_CHECKSUM_WAY cow_checksum_plain
#include "base/checksum_way.h"

#include "base/digest.h"

/* Of fewer bytes every way takes the same time. */
#define WIDE_BYTES 512

const cow_checksum_way *cow_checksum_best(void)
{
#ifdef COW_CHECKSUM_AVX2
    if (__builtin_cpu_supports("avx2"))
        return &cow_checksum_avx2;
#endif
    return &cow_checksum_plain;
}

uint64_t cow_checksum(const void *bytes, size_t size)
{
    return size < WIDE_BYTES ? XXH3_64bits(bytes, size) : cow_checksum_best()->whole(bytes, size);
}

uint64_t cow_checksum_parts(const struct iovec parts[], size_t n)
{
    const cow_checksum_way *way = cow_checksum_best();
    cow_checksum_state state;

    if (n == 1)
        return cow_checksum(parts->iov_base, parts->iov_len);
    way->begin(&state);
    for (size_t i = 0; i < n; i++)
        way->add(&state, parts[i].iov_base, parts[i].iov_len);
    return way->end(&state);
}
