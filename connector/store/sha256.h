/* SHA-256 of two messages of one length at once. A processor's SHA instructions take some time to answer and can be
 * asked again meanwhile: so two hashes together take less time than one after the other. OpenSSL offers nothing like
 * it. */
#ifndef COW_SHA256_H
#define COW_SHA256_H

#include "store/digest.h"

#include <stdbool.h>

/* Longest tail. */
#define COW_SHA256_TAIL 768

/* The hashes of a[0, size) and b[0, size), each followed by TAIL. false, and nothing done, where the processor has no
 * such instructions. Any thread may call it. */
bool cow_sha256_two(const void *a, const void *b, size_t size, const void *tail, size_t tail_size,
                    uint8_t hash_a[COW_HASH_SIZE], uint8_t hash_b[COW_HASH_SIZE]);

#endif
