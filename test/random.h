/* Random numbers that are the same on every machine: splitmix64 (Steele, Lea and Flood 2014). And where they begin: a
 * test draws other numbers at each run, and tells which. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static inline uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The seed of this run, below 2^32: H5COW_TEST_SEED, else a fresh one. Told once. */
static inline uint32_t test_seed(void)
{
    static uint32_t seed;
    static int drawn;
    const char *given = getenv("H5COW_TEST_SEED");

    if (!drawn) {
        drawn = 1;
        if (given != NULL)
            seed = (uint32_t)strtoul(given, NULL, 10);
        else if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
            abort();
        fprintf(stderr, "random numbers from seed %u; again: H5COW_TEST_SEED=%u\n", (unsigned)seed, (unsigned)seed);
    }
    return seed;
}

/* Where the N-th sequence of random numbers of this run begins; never 0. */
static inline uint64_t test_random(uint32_t n)
{
    uint64_t state = (uint64_t)test_seed() << 32 | n;

    return splitmix64(&state) | 1;
}

#endif
