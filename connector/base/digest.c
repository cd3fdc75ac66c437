/* Hash and checksum of chunks. Contract and sources: digest.h. Pure: any thread may be here. */
#include "base/digest.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/sha256.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Rows of a trimmed chunk shorter than this are gathered before they are hashed: a call into OpenSSL costs as much as
 * hashing about a hundred bytes. */
#define GATHER 8192

int cow_digest_prepare(void)
{
    cow_digest digest;

    if (OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) != 1)
        return cow_error(COW_MEMORY, "OpenSSL cannot be initialised");
    return cow_digest_payload("", 0, 0, NULL, &digest);
}

static int openssl_failed(void)
{
    return cow_error(COW_MEMORY, "OpenSSL cannot compute SHA-256 (no memory, or SHA-256 is disabled by its settings)");
}

/* A context that has hashed nothing, or NULL. */
static EVP_MD_CTX *hash_start(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();

    if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        openssl_failed();
        return NULL;
    }
    return context;
}

static int hash_bytes(EVP_MD_CTX *context, const void *bytes, size_t size)
{
    if (size > 0 && EVP_DigestUpdate(context, bytes, size) != 1)
        return openssl_failed();
    return 0;
}

/* The shape as Python prints a tuple. Returns its length. */
static size_t print_shape(unsigned rank, const uint64_t shape[], char text[COW_SHA256_TAIL])
{
    size_t length = 0;

    text[length++] = '(';
    for (unsigned d = 0; d < rank; d++)
        length += (size_t)snprintf(text + length, COW_SHA256_TAIL - length, "%s%" PRIu64, d > 0 ? ", " : "", shape[d]);
    if (rank == 1)
        text[length++] = ',';
    text[length++] = ')';
    return length;
}

/* The shape, and the end of the hash. */
static int hash_finish(EVP_MD_CTX *context, unsigned rank, const uint64_t shape[], uint8_t hash[COW_HASH_SIZE])
{
    char text[COW_SHA256_TAIL];

    if (hash_bytes(context, text, print_shape(rank, shape, text)) < 0)
        return -1;
    if (EVP_DigestFinal_ex(context, hash, NULL) != 1)
        return openssl_failed();
    return 0;
}

/* Hash the box trimmed[] at the origin of a chunk, in C order. Trailing dimensions that are whole are hashed in one
 * piece with the dimension before them. */
static int hash_trimmed(EVP_MD_CTX *context, const uint8_t *chunk, unsigned rank, const uint64_t dims[],
                        const uint64_t trimmed[], size_t element_size)
{
    uint64_t position[COW_MAX_RANK] = {0};
    size_t stride[COW_MAX_RANK]; /* bytes from one index of a dimension to the next */
    size_t bytes = element_size;
    size_t piece = element_size; /* contiguous bytes */
    unsigned outer = rank;       /* dimensions that are walked one index at a time */
    uint8_t gathered[GATHER];
    size_t fill = 0;

    for (unsigned d = rank; d-- > 0;) {
        if (trimmed[d] == 0)
            return 0;
        stride[d] = bytes;
        bytes *= (size_t)dims[d];
    }
    while (outer > 0) {
        outer--;
        piece *= (size_t)trimmed[outer];
        if (trimmed[outer] != dims[outer])
            break;
    }

    for (;;) {
        size_t at = 0;
        for (unsigned d = 0; d < outer; d++)
            at += (size_t)position[d] * stride[d];
        if (piece > GATHER - fill) {
            if (hash_bytes(context, gathered, fill) < 0)
                return -1;
            fill = 0;
        }
        if (piece <= GATHER / 4) {
            memcpy(gathered + fill, chunk + at, piece);
            fill += piece;
        } else {
            if (hash_bytes(context, gathered, fill) < 0 || hash_bytes(context, chunk + at, piece) < 0)
                return -1;
            fill = 0;
        }

        unsigned d = outer;
        while (d > 0 && ++position[d - 1] == trimmed[d - 1])
            position[--d] = 0;
        if (d == 0)
            return hash_bytes(context, gathered, fill);
    }
}

int cow_digest_chunk(const void *chunk, unsigned rank, const uint64_t chunk_dims[], const uint64_t trimmed[],
                     size_t element_size, cow_digest *digest)
{
    EVP_MD_CTX *context = NULL;
    size_t size = element_size;
    int result = -1;

    for (unsigned d = 0; d < rank; d++) {
        if (trimmed[d] > chunk_dims[d])
            return cow_error(COW_USAGE, "a chunk of %" PRIu64 " elements in dimension %u has no %" PRIu64,
                             chunk_dims[d], d, trimmed[d]);
        size *= (size_t)chunk_dims[d];
    }
    context = hash_start();
    if (!context)
        goto done;
    if (hash_trimmed(context, chunk, rank, chunk_dims, trimmed, element_size) < 0 ||
        hash_finish(context, rank, trimmed, digest->hash) < 0)
        goto done;
    digest->checksum = cow_checksum(chunk, size);
    result = 0;
done:
    EVP_MD_CTX_free(context);
    return result;
}

unsigned cow_digest_best(void)
{
    return cow_sha256_best();
}

/* A chunk on its way. */
typedef struct message {
    cow_checksum_state checksum;
    cow_scattered from; /* where its next bytes are to be had; without parts: they are there */
    size_t at;          /* bytes of the first part that are there already */
} message;

typedef struct messages {
    const cow_checksum_way *way;
    message *of;
} messages;

static void bring(message *m, uint8_t *to, size_t size)
{
    for (size_t n; size > 0; to += n, size -= n) {
        n = m->from.part->iov_len - m->at < size ? m->from.part->iov_len - m->at : size;
        memcpy(to, (const uint8_t *)m->from.part->iov_base + m->at, n);
        m->at += n;
        if (m->at == m->from.part->iov_len) {
            m->from.part++;
            m->from.n--;
            m->at = 0;
        }
    }
}

/* The next bytes of a chunk, before they are hashed. */
static const void *take(void *context, unsigned which, const void *bytes, size_t size)
{
    const messages *all = context;
    message *m = &all->of[which];

    if (m->from.n > 0)
        bring(m, (uint8_t *)(uintptr_t)bytes, size);
    all->way->add(&m->checksum, bytes, size);
    return m->from.n > 0 ? (const uint8_t *)m->from.part->iov_base + m->at : (const uint8_t *)bytes + size;
}

/* One chunk that is not hashed together with others, by so many bytes that they are in the processor's cache when they are hashed. */
#define ALONE ((size_t)64 << 10)
static int hash_alone(messages *all, const void *chunk, size_t size, unsigned rank, const uint64_t chunk_dims[],
                      uint8_t hash[COW_HASH_SIZE])
{
    EVP_MD_CTX *context = hash_start();
    int status = context == NULL ? -1 : 0;

    for (size_t at = 0, some; at < size && status == 0; at += some) {
        some = size - at < ALONE ? size - at : ALONE;
        take(all, 0, (const uint8_t *)chunk + at, some);
        status = hash_bytes(context, (const uint8_t *)chunk + at, some);
    }
    if (status == 0)
        status = hash_finish(context, rank, chunk_dims, hash);
    EVP_MD_CTX_free(context);
    return status;
}

int cow_digest_many(const void *const chunk[], const cow_scattered from[], unsigned n, size_t size, unsigned rank,
                    const uint64_t chunk_dims[], cow_digest *const digest[])
{
    char text[COW_SHA256_TAIL];
    size_t length = print_shape(rank, chunk_dims, text);
    uint8_t *hash[COW_TOGETHER];
    message each[COW_TOGETHER];
    messages all = {.way = cow_checksum_best()};

    for (unsigned i = 0; i < n; i++) {
        hash[i] = digest[i]->hash;
        each[i].from = from != NULL ? from[i] : (cow_scattered){0};
        each[i].at = 0;
        all.way->begin(&each[i].checksum);
    }
    for (unsigned done = 0, some; done < n; done += some) {
        all.of = each + done;
        some = cow_sha256_some(chunk + done, n - done, size, text, length, hash + done, take, &all);
        if (some == 0 && hash_alone(&all, chunk[done], size, rank, chunk_dims, hash[done]) < 0)
            return -1;
        some = some == 0 ? 1 : some;
    }
    for (unsigned i = 0; i < n; i++)
        digest[i]->checksum = all.way->end(&each[i].checksum);
    return 0;
}

int cow_digest_hash(const void *payload, size_t size, unsigned rank, const uint64_t trimmed[],
                    uint8_t hash[COW_HASH_SIZE])
{
    EVP_MD_CTX *context = hash_start();
    int result = -1;

    if (context && hash_bytes(context, payload, size) == 0 && hash_finish(context, rank, trimmed, hash) == 0)
        result = 0;
    EVP_MD_CTX_free(context);
    return result;
}

int cow_digest_payload(const void *payload, size_t size, unsigned rank, const uint64_t trimmed[], cow_digest *digest)
{
    if (cow_digest_hash(payload, size, rank, trimmed, digest->hash) < 0)
        return -1;
    digest->checksum = cow_checksum(payload, size);
    return 0;
}

/* The two sums of N words, at most 360, are made of those of each lane: the k-th word of M in lane j is counted M - k times there, and
 * LANES (M - k) - j times in all. */
#define LANES 8
typedef uint16_t words_of_lanes __attribute__((vector_size(2 * LANES)));
typedef uint32_t sums_of_lanes __attribute__((vector_size(4 * LANES)));

static void sum_words(const uint8_t *bytes, size_t n, uint32_t *low, uint32_t *high)
{
    sums_of_lanes sum = {0}, counted = {0};
    uint32_t all = 0;
    size_t rows = n / LANES;

    *high += (uint32_t)(rows * LANES) * *low;
    for (size_t row = 0; row < rows; row++, bytes += 2 * LANES) {
        words_of_lanes words;

        memcpy(&words, bytes, sizeof words);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        words = words << 8 | words >> 8;
#endif
        sum += __builtin_convertvector(words, sums_of_lanes);
        counted += sum;
    }
    for (unsigned j = 0; j < LANES; j++) {
        all += sum[j];
        *high += LANES * counted[j] - j * sum[j];
    }
    *low += all;
    for (n %= LANES; n > 0; n--, bytes += 2) {
        *low += (uint32_t)bytes[0] << 8 | bytes[1];
        *high += *low;
    }
}

uint32_t cow_fletcher32(const uint8_t *bytes, size_t size)
{
    uint32_t low = 0, high = 0;
    size_t words = size / 2;

    while (words > 0) {
        size_t n = words < 360 ? words : 360;

        sum_words(bytes, n, &low, &high);
        words -= n;
        bytes += 2 * n;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    if (size % 2) {
        low += (uint32_t)bytes[0] << 8;
        high += low;
        low = (low & 0xffff) + (low >> 16);
        high = (high & 0xffff) + (high >> 16);
    }
    low = (low & 0xffff) + (low >> 16);
    high = (high & 0xffff) + (high >> 16);
    return high << 16 | low;
}
