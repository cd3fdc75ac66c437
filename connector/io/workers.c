/* Worker threads for one call: see workers.h. The first error stops the handing out, and every thread is joined before
 * the call returns. A loop hands its indices out by an atomic counter, so a slow body holds up nobody. A pipeline keeps
 * its state under one lock, which is taken a few times for each item: items are large.
 */
#include "io/workers.h"

#include "base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#define MAX_THREADS 64
/* A body needs some 100 kB (compressors keep tables on the stack); said here because the default is whatever
 * `ulimit -s` and the C library make of it, from 128 kB to unlimited. */
#define STACK_BYTES (2u << 20)

/* Starts at most WANTED threads; returns how many it could. The application's signals stay with its own threads. */
static unsigned start(void *(*work)(void *), void *argument, pthread_t thread[], unsigned wanted)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    unsigned started = 0;

    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) == 0) {
        while (started < wanted && pthread_create(&thread[started], &attributes, work, argument) == 0)
            started++;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return started;
}

/* How many of THREADS threads COUNT items can use. */
static unsigned useful(unsigned threads, size_t count)
{
    if (threads > MAX_THREADS)
        threads = MAX_THREADS;
    return threads > count ? (unsigned)count : threads;
}

/* ---- loops ---- */

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

int cow_parallel(size_t count, unsigned threads, int (*body)(void *context, size_t i), void *context)
{
    batch b = {.count = count, .body = body, .context = context, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread[MAX_THREADS];
    unsigned started;

    threads = useful(threads, count);
    started = threads > 1 ? start(work, &b, thread, threads - 1) : 0;
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

/* ---- pipelines ---- */

/* What an item waits for, or is in. */
typedef enum { EARLY, TURN, LATE_WANTED, LATE, LAST } stage;

typedef struct line {
    const cow_pipeline *pipeline;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t work;  /* there is something for a worker, or nothing ever more */
    pthread_cond_t ready; /* there may be something for the caller */
    unsigned idle;        /* workers that wait */
    bool caller_waits, over, failed;
    size_t begun;                /* items below have begun */
    size_t turned;               /* items below have had their turn */
    size_t searched;             /* no item below waits for a thread to do its late step */
    size_t through;              /* items below are through */
    stage stage[COW_WINDOW_MAX]; /* of those that have begun and are not through, by number modulo window */
    pthread_t caller;
    cow_error_box error; /* the first one, when it is a worker's; the caller's stays where it is */
} line;

static stage *stage_of(line *l, size_t i)
{
    return &l->stage[i % l->pipeline->window];
}

/* Run a step without the lock. */
static int run_step(line *l, int (*step)(void *context, size_t i), size_t i)
{
    cow_error_box mine;
    int status;

    if (step == NULL)
        return 1;
    pthread_mutex_unlock(&l->lock);
    status = step(l->pipeline->context, i);
    pthread_mutex_lock(&l->lock);
    if (status < 0) {
        if (l->failed)
            cow_error_take(&mine); /* to drop it */
        else if (!pthread_equal(pthread_self(), l->caller))
            cow_error_take(&l->error);
        l->failed = true;
    }
    return status;
}

static bool room(const line *l)
{
    return l->begun < l->pipeline->count && l->begun < l->through + l->pipeline->window;
}

static bool do_late(line *l)
{
    size_t i;

    if (l->searched < l->through) /* whose places others have now */
        l->searched = l->through;
    while (l->searched < l->turned && *stage_of(l, l->searched) != LATE_WANTED)
        l->searched++;
    if (l->searched == l->turned)
        return false;
    i = l->searched++;
    *stage_of(l, i) = LATE;
    run_step(l, l->pipeline->late, i);
    *stage_of(l, i) = LAST;
    return true;
}

static bool do_early(line *l)
{
    size_t i = l->begun;

    if (l->pipeline->early == NULL || !room(l))
        return false;
    l->begun++;
    *stage_of(l, i) = EARLY;
    run_step(l, l->pipeline->early, i);
    *stage_of(l, i) = TURN;
    return true;
}

static void *work_on_line(void *argument)
{
    line *l = argument;

    pthread_mutex_lock(&l->lock);
    while (!l->over && !l->failed) {
        if (do_late(l) || do_early(l)) {
            if (l->caller_waits)
                pthread_cond_signal(&l->ready);
        } else {
            l->idle++;
            pthread_cond_wait(&l->work, &l->lock);
            l->idle--;
        }
    }
    if (l->caller_waits)
        pthread_cond_signal(&l->ready);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* The steps that are the caller's. false: it is not the turn of any. */
static bool take_turn(line *l)
{
    const cow_pipeline *p = l->pipeline;
    size_t i = l->through;

    if (i < l->turned && *stage_of(l, i) == LAST) {
        if (run_step(l, p->last, i) >= 0)
            l->through++;
        /* A worker is woken for more than one item: waking costs as much as a small item. The caller waits for none
         * that has not begun: it begins such an item itself. */
        if (l->idle > 0 && p->early != NULL && room(l) && l->through + p->window - l->begun >= (p->window + 3) / 4)
            pthread_cond_signal(&l->work);
        return true;
    }
    i = l->turned;
    if (p->early == NULL ? !room(l) : i == l->begun || *stage_of(l, i) != TURN)
        return false;
    if (p->early == NULL)
        l->begun++;
    int wanted = run_step(l, p->turn, i);
    if (wanted >= 0) {
        *stage_of(l, i) = wanted > 0 && p->late != NULL ? LATE_WANTED : LAST;
        l->turned++;
        if (wanted > 0 && p->late != NULL && l->idle > 0)
            pthread_cond_signal(&l->work);
    }
    return true;
}

/* All steps on the calling thread, each item from end to end. */
static int run_alone(const cow_pipeline *p)
{
    for (size_t i = 0; i < p->count; i++) {
        int wanted = 1;

        if (p->early != NULL && p->early(p->context, i) < 0)
            return -1;
        if (p->turn != NULL && (wanted = p->turn(p->context, i)) < 0)
            return -1;
        if (wanted > 0 && p->late != NULL && p->late(p->context, i) < 0)
            return -1;
        if (p->last != NULL && p->last(p->context, i) < 0)
            return -1;
    }
    return 0;
}

int cow_pipeline_run(const cow_pipeline *pipeline)
{
    line l = {.pipeline = pipeline,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .work = PTHREAD_COND_INITIALIZER,
              .ready = PTHREAD_COND_INITIALIZER,
              .caller = pthread_self()};
    unsigned threads = useful(pipeline->threads, pipeline->count), started;
    pthread_t thread[MAX_THREADS];

    if (threads < 2 || pipeline->window < 2 || (started = start(work_on_line, &l, thread, threads - 1)) == 0)
        return run_alone(pipeline);
    pthread_mutex_lock(&l.lock);
    while (!l.failed && l.through < pipeline->count)
        /* Early steps first: while the caller is in a late one, only items that had their turn keep others busy. */
        if (!take_turn(&l) && !do_early(&l) && !do_late(&l)) {
            l.caller_waits = true;
            pthread_cond_wait(&l.ready, &l.lock);
            l.caller_waits = false;
        }
    l.over = true;
    pthread_cond_broadcast(&l.work);
    pthread_mutex_unlock(&l.lock);
    for (unsigned t = 0; t < started; t++)
        pthread_join(thread[t], NULL);
    pthread_cond_destroy(&l.ready);
    pthread_cond_destroy(&l.work);
    pthread_mutex_destroy(&l.lock);
    if (!l.failed)
        return 0;
    if (l.error.set)
        cow_error_give(&l.error);
    return -1;
}
