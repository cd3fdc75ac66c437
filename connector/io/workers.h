/* Worker threads: one call runs a loop body on several threads and returns when all are done.
 *
 * Threads live for one call only (starting two costs about 30 us, a batch takes milliseconds), so nothing of ours runs
 * while the application runs: fork, exit and dlclose need no care. Signals are blocked in the workers. A body must not
 * call HDF5.
 */
#ifndef COW_WORKERS_H
#define COW_WORKERS_H

#include <stddef.h>

/* Calls body(context, i) once for every i in [0, count), on at most THREADS threads, the caller's among them. The
 * first error recorded by a body is moved to the caller, the others are dropped, and -1 returned; all bodies that have
 * started are finished by then. Falls back to the calling thread when no thread can be made. */
int cow_parallel(size_t count, unsigned threads, int (*body)(void *context, size_t i), void *context);

#endif
