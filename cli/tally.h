/* What the numbers of a dataset come to: how many, the least, the greatest, the sum. */
#ifndef CLI_TALLY_H
#define CLI_TALLY_H

#include "library/calls.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cli_tally {
    uint64_t count, nans; /* numbers; what is none */
    long double min, max; /* of the numbers; meaningless if there are none */
    long double sum;      /* added in runs of RUN elements, so the same on any number of cores */
} cli_tally;

/* The type in memory of which cli_tally_add can add elements of a dataset of TYPE, an integer or a float: one that holds all of
 * its values. Not to be closed. */
hid_t cli_tally_type(hid_t type);
/* Add COUNT elements of TYPE, which cli_tally_type gave, at VALUES. */
void cli_tally_add(cli_tally *tally, hid_t type, const void *values, size_t count);

#endif
