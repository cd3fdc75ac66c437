/* Datatypes of every class, and values of them that depend on a seed alone. For C tests through the connector. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include "through.h"

#include <stdint.h>

typedef struct sample_type {
    const char *name;
    hid_t (*make)(void); /* the caller closes it */
} sample_type;

extern const sample_type sample_types[];
extern const size_t sample_type_count;

void sample_seed(uint32_t seed);

/* One value in memory; H5Treclaim frees what it points to. */
void sample_value(hid_t type, unsigned char *at);

/* What it is, without padding and pointers. */
void say_value(listing *out, hid_t type, const unsigned char *at);

#endif
