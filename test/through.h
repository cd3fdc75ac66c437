/* What C tests that use public HDF5 calls only, through the connector, have in common: checks that are counted, a runner,
 * and texts that describe what is in a file. */
#ifndef THROUGH_H
#define THROUGH_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

extern unsigned failures;
extern hid_t native_fapl; /* of HDF5 without the connector, while tests run */

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("  %s:%d: not true: %s\n", __func__, __LINE__, #condition);                                         \
            failures++;                                                                                                \
        }                                                                                                              \
    } while (0)

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef struct test {
    const char *name;
    void (*run)(void);
} test;
#define TEST(name) {#name, name}

/* All, or the one that argv[1] names. The answer is main's: 2 where the connector is not in use. */
int run_tests(const test tests[], size_t count, int argc, char **argv);

/* {0} is an empty one; free(data). */
typedef struct listing {
    char *data;
    size_t length, room;
} listing;

void clear(listing *l);

/* Append less than 1000 characters. */
void say(listing *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where two texts differ, that is printed. */
bool same_text(const char *what, const listing *a, const listing *b);

#endif
