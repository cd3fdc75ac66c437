/* What numbers come to, on all cores: see tally.h. */
#include "tally.h"

#include "base/options.h"
#include "common.h"
#include "io/workers.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define RUN ((size_t)64 << 10) /* elements that a thread adds at a time */

#define NEVER_NAN(value) ((void)(value), false)

#define ADD(name, type, is_nan)                                                                                        \
    static void add_##name(cli_tally *t, const void *values, size_t count)                                             \
    {                                                                                                                  \
        const type *value = values;                                                                                    \
        type min = 0, max = 0;                                                                                         \
                                                                                                                       \
        for (size_t i = 0; i < count; i++) {                                                                           \
            if (is_nan(value[i])) {                                                                                    \
                t->nans++;                                                                                             \
                continue;                                                                                              \
            }                                                                                                          \
            min = t->count == 0 || value[i] < min ? value[i] : min;                                                    \
            max = t->count == 0 || value[i] > max ? value[i] : max;                                                    \
            t->sum += value[i];                                                                                        \
            t->count++;                                                                                                \
        }                                                                                                              \
        t->min = min;                                                                                                  \
        t->max = max;                                                                                                  \
    }

ADD(int8, int8_t, NEVER_NAN)
ADD(uint8, uint8_t, NEVER_NAN)
ADD(int16, int16_t, NEVER_NAN)
ADD(uint16, uint16_t, NEVER_NAN)
ADD(int32, int32_t, NEVER_NAN)
ADD(uint32, uint32_t, NEVER_NAN)
ADD(int64, int64_t, NEVER_NAN)
ADD(uint64, uint64_t, NEVER_NAN)
ADD(float, float, isnan)
ADD(double, double, isnan)
ADD(long_double, long double, isnan)

typedef void adding(cli_tally *t, const void *values, size_t count);

/* The types in memory, the narrowest first. */
static adding *adding_of(hid_t type, size_t *size)
{
    const struct {
        hid_t type;
        size_t size;
        adding *add;
    } all[] = {
        {H5T_NATIVE_INT8, 1, add_int8},
        {H5T_NATIVE_UINT8, 1, add_uint8},
        {H5T_NATIVE_INT16, 2, add_int16},
        {H5T_NATIVE_UINT16, 2, add_uint16},
        {H5T_NATIVE_INT32, 4, add_int32},
        {H5T_NATIVE_UINT32, 4, add_uint32},
        {H5T_NATIVE_INT64, 8, add_int64},
        {H5T_NATIVE_UINT64, 8, add_uint64},
        {H5T_NATIVE_FLOAT, sizeof(float), add_float},
        {H5T_NATIVE_DOUBLE, sizeof(double), add_double},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (type == all[i].type) {
            *size = all[i].size;
            return all[i].add;
        }
    *size = sizeof(long double);
    return add_long_double;
}

static bool is_either(hid_t type, hid_t little, hid_t big)
{
    return H5Tequal(type, little) > 0 || H5Tequal(type, big) > 0;
}

hid_t cli_tally_type(hid_t type)
{
    const hid_t integers[] = {H5T_NATIVE_INT8,  H5T_NATIVE_UINT8,  H5T_NATIVE_INT16, H5T_NATIVE_UINT16,
                              H5T_NATIVE_INT32, H5T_NATIVE_UINT32, H5T_NATIVE_INT64, H5T_NATIVE_UINT64};
    const size_t size = H5Tget_size(type);

    if (H5Tget_class(type) == H5T_INTEGER) {
        for (size_t i = 0; i < 4; i++)
            if (size > 0 && size <= (size_t)1 << i)
                return integers[2 * i + (H5Tget_sign(type) == H5T_SGN_NONE)];
        return H5T_NATIVE_LDOUBLE; /* integers of more than 8 bytes */
    }
    return is_either(type, H5T_IEEE_F32LE, H5T_IEEE_F32BE)   ? H5T_NATIVE_FLOAT
           : is_either(type, H5T_IEEE_F64LE, H5T_IEEE_F64BE) ? H5T_NATIVE_DOUBLE
                                                             : H5T_NATIVE_LDOUBLE;
}

static void merge(cli_tally *into, const cli_tally *more)
{
    if (more->count > 0) {
        into->min = into->count == 0 || more->min < into->min ? more->min : into->min;
        into->max = into->count == 0 || more->max > into->max ? more->max : into->max;
    }
    into->count += more->count;
    into->nans += more->nans;
    into->sum += more->sum;
}

typedef struct runs {
    adding *add;
    const unsigned char *values;
    size_t size, count; /* bytes of an element; elements */
    cli_tally *of;      /* each run's */
} runs;

static int add_run(void *context, size_t i)
{
    runs *r = context;
    size_t first = i * RUN;

    r->add(&r->of[i], r->values + first * r->size, r->count - first < RUN ? r->count - first : RUN);
    return 0;
}

void cli_tally_add(cli_tally *tally, hid_t type, const void *values, size_t count)
{
    const size_t most = count / RUN + 1;
    runs r = {.values = values, .count = count, .of = cli_alloc(most, sizeof *r.of)};
    const size_t n = (count + RUN - 1) / RUN;

    r.add = adding_of(type, &r.size);
    memset(r.of, 0, most * sizeof *r.of);
    cow_parallel(n, cow_threads_default(), add_run, &r);
    for (size_t i = 0; i < n; i++)
        merge(tally, &r.of[i]);
    free(r.of);
}
