/* What C tests that use public HDF5 calls only, through the connector, have in common besides harness.h: HDF5 without the
 * connector, and texts that describe what is in a file. */
#ifndef THROUGH_H
#define THROUGH_H

#include "harness.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stdio.h>

extern hid_t native_fapl; /* of HDF5 without the connector, while tests run */

/* For test_main. They refuse to begin where the connector is not in use. */
int through_begin(void **state);
int through_end(void **state);

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
