/* Worker threads for one call: see workers.h. The indices are handed out by an atomic counter, so a slow body holds up
 * nobody; the first error stops the handing out, and every thread is joined before the call returns.
 */
#include "io/workers.h"

#include "error.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MAX_THREADS 64
/* A body needs some 100 kB (compressors keep tables on the stack); said here because the default is whatever
 * `ulimit -s` and the C library make of it, from 128 kB to unlimited. */
#define STACK_BYTES (2u << 20)

typedef struct batch {
    size_t count;
    int (*body)(void *context, size_t i);
    void *context;
    atomic_size_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* of error */
    cow_error_box error;  /* the first one */
} batch;

static void note_failure(batch *b)
{
    cow_error_box mine = {0};

    cow_error_take(&mine); /* even when it is not the first: nothing may stay behind in this thread */
    pthread_mutex_lock(&b->lock);
    if (!atomic_load(&b->failed)) {
        b->error = mine;
        atomic_store(&b->failed, true);
    }
    pthread_mutex_unlock(&b->lock);
}

static void *work(void *argument)
{
    batch *b = argument;
    size_t i;

    while (!atomic_load(&b->failed) && (i = atomic_fetch_add(&b->next, 1)) < b->count)
        if (b->body(b->context, i) < 0)
            note_failure(b);
    return NULL;
}

/* Starts at most WANTED threads; returns how many it could. The application's signals stay with its own threads. */
static unsigned start(batch *b, pthread_t thread[], unsigned wanted)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    unsigned started = 0;

    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        while (started < wanted && pthread_create(&thread[started], &attributes, work, b) == 0)
            started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return started;
}

int cow_parallel(size_t count, unsigned threads, int (*body)(void *context, size_t i), void *context)
{
    batch b = {.count = count, .body = body, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread[MAX_THREADS];
    unsigned started;

    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    if (threads > count)
        threads = (unsigned)count;
    started = threads > 1 ? start(&b, thread, threads - 1) : 0;
    work(&b);
    for (unsigned t = 0; t < started; t++)
        pthread_join(thread[t], NULL);
    pthread_mutex_destroy(&b.lock);
    if (!atomic_load(&b.failed))
        return 0;
    if (b.error.set)
        cow_error_give(&b.error);
    return -1;
}
