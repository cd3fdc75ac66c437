/* For programs that are run by tests and are none themselves: sweeps, random programs, what they start. What such a program
 * cannot do without ends it, with where and why. What it finds out it counts by itself. Tests: harness.h.
 */
#ifndef DIE_H
#define DIE_H

#include <hdf5.h>

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* At once: nothing is closed or committed any more. */
_Noreturn static inline void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn static inline void die(const char *format, ...)
{
    int error = errno;
    va_list list;

    fflush(NULL);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n(errno %d: %s)\n", error, strerror(error));
    H5Eprint2(H5E_DEFAULT, stderr);
    _exit(2);
}

#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            die("%s:%d: not true: %s", __FILE__, __LINE__, #condition);                                                \
    } while (0)

/* POINTER, to memory that there must be. */
static inline void *need(void *pointer)
{
    must(pointer != NULL);
    return pointer;
}

#endif
