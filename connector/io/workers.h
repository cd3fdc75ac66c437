/* Worker threads: loops and pipelines that several threads run, and that return when all is done.
 *
 * Threads live for one call only (starting two costs about 30 us, a batch takes milliseconds), so nothing of ours runs
 * while the application runs: fork, exit and dlclose need no care. Signals are blocked in the workers. What runs on any
 * thread must not call HDF5. Both functions use at most THREADS threads, the caller's among them, and fall back to the
 * calling thread when none can be made. The first error recorded by a step is moved to the caller, the others are
 * dropped, and -1 returned; every step that has started is finished by then.
 */
#ifndef COW_WORKERS_H
#define COW_WORKERS_H

#include <stddef.h>

/* Calls body(context, i) once for every i in [0, count). */
int cow_parallel(size_t count, unsigned threads, int (*body)(void *context, size_t i), void *context);

/* Items that each go through four steps, one after another:
 *
 *      early   any thread, in any order      (hash)
 *      turn    the caller's, in order        (look up; read)    1: late is wanted, 0: it is not
 *      late    any thread, in any order      (encode; decode)
 *      last    the caller's, in order        (write)
 *
 * Each may be NULL, and then is nothing (a NULL turn: late is wanted). The calling thread first does what only it can
 * do, and else helps with the rest. An item begins only after the item WINDOW before it is through: so what items need may
 * lie in a ring of WINDOW places, and turn(i) comes after last(i - WINDOW), always. Nothing else is certain about
 * what the other items have come to. */
#define COW_WINDOW_MAX 256
typedef struct cow_pipeline {
    size_t count;
    size_t window; /* 1 to COW_WINDOW_MAX */
    unsigned threads;
    int (*early)(void *context, size_t i);
    int (*turn)(void *context, size_t i);
    int (*late)(void *context, size_t i);
    int (*last)(void *context, size_t i);
    void *context;
} cow_pipeline;
int cow_pipeline_run(const cow_pipeline *pipeline);

#endif
