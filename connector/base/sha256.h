/* SHA-256 of several messages of one length at once. A processor's SHA instructions take some time to answer and can be
 * asked again meanwhile: so two hashes together take less time than one after the other. Sixteen in the lanes of wide
 * vectors take half of that again. OpenSSL offers nothing like it. */
#ifndef COW_SHA256_H
#define COW_SHA256_H

#include "base/digest.h"

/* Longest tail. */
#define COW_SHA256_TAIL 768

/* The hashes of message[i][0, size), each followed by TAIL, for the first messages of N: as many as this processor does
 * well together, which is returned (at most COW_TOGETHER). 0: none, so take another way. Any thread may call it. LOOK is
 * shown the bytes of each of these messages, without the tail, in order, part by part, each before it is hashed: it may put them there,
 * and what it has looked at is in the processor's cache. It returns where it will read next, which is brought there meanwhile. */
typedef const void *cow_sha256_look(void *context, unsigned message, const void *bytes, size_t size);
unsigned cow_sha256_some(const void *const message[], unsigned n, size_t size, const void *tail, size_t tail_size,
                         uint8_t *const hash[], cow_sha256_look *look, void *context);
/* The number of messages that gets most from cow_sha256_some. */
unsigned cow_sha256_best(void);

#endif
