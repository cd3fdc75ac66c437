/* What decides that two chunks are the same, and what notices that one has changed on disk.
 *
 * Identity: SHA-256 over the trimmed chunk (the part inside the dataset's extent, C order, in the file's datatype) and
 * then its shape in ASCII as Python prints a tuple: "(4,)", "(2, 3)". Source: the format of versioned-hdf5, whose test
 * vectors are in the tests. Integrity: XXH3 (64 bits) over the whole decoded chunk as it is stored, padding included.
 */
#ifndef COW_DIGEST_H
#define COW_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define COW_MAX_RANK  32
#define COW_HASH_SIZE 32

typedef struct cow_digest {
    uint8_t hash[COW_HASH_SIZE]; /* SHA-256: identity */
    uint64_t checksum;           /* XXH3: integrity */
} cow_digest;

/* CHUNK holds chunk[0] x ... x chunk[rank-1] elements of ELEMENT_SIZE bytes; trimmed[d] <= chunk[d] of them, anchored
 * at the origin, are inside the dataset. Calls no HDF5 function: any thread may call it. -1: out of memory, OpenSSL. */
int cow_digest_chunk(const void *chunk, unsigned rank, const uint64_t chunk_dims[], const uint64_t trimmed[],
                     size_t element_size, cow_digest *digest);
/* Make OpenSSL ready. Where nobody used it before, it then does not clean up when the process exits, so that hashes can
 * still be computed by exit handlers. */
int cow_digest_prepare(void);
/* The bytes of a chunk as N parts of memory, one after the other. */
typedef struct cow_scattered {
    const struct iovec *part;
    size_t n;
} cow_scattered;
/* The same for N whole chunks of SIZE bytes (trimmed = chunk), N at most COW_TOGETHER, which costs less than one after
 * the other: least for the number that cow_digest_best tells. FROM (may be NULL): the bytes of each are first copied from there to
 * chunk[], which may be written then, and read nowhere else, so that somebody may change them meanwhile; part by part, which costs
 * little. Without parts: they are there. */
#define COW_TOGETHER 16
int cow_digest_many(const void *const chunk[], const cow_scattered from[], unsigned n, size_t size, unsigned rank,
                    const uint64_t chunk_dims[], cow_digest *const digest[]);
unsigned cow_digest_best(void);
/* The checksum alone. */
uint64_t cow_checksum(const void *bytes, size_t size);
/* That of N parts of memory, one after the other. */
uint64_t cow_checksum_parts(const struct iovec parts[], size_t n);
/* SHA-256 of PAYLOAD (already serialised elements) and the shape string: for data whose bytes in memory are pointers. */
int cow_digest_payload(const void *payload, size_t size, unsigned rank, const uint64_t trimmed[], cow_digest *digest);
/* The hash alone. */
int cow_digest_hash(const void *payload, size_t size, unsigned rank, const uint64_t trimmed[],
                    uint8_t hash[COW_HASH_SIZE]);

/* Fletcher's checksum over big-endian 16-bit words modulo 65535, an odd last byte being the high half of a word.
 * Source: HDF5 file format specification, and H5checksum.c. 360 is how many words 32-bit sums can take unreduced. */
uint32_t cow_fletcher32(const uint8_t *bytes, size_t size);

#endif
