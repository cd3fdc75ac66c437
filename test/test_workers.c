/* Loops and pipelines: every step once and in its order, errors moved to the caller, nothing left running. */
#include "base/error.h"
#include "harness.h"
#include "io/workers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MANY 5000

typedef struct tally {
    atomic_int calls[MANY];
    atomic_int running;
    atomic_int total;
    pthread_t caller;
    atomic_int elsewhere;    /* bodies on another thread than the caller's */
    atomic_int signals_open; /* bodies on another thread that SIGUSR1 could reach */
    size_t fail_at;
    bool silent;
} tally;

static int body(void *context, size_t i)
{
    tally *t = context;

    atomic_fetch_add(&t->running, 1);
    atomic_fetch_add(&t->calls[i], 1);
    atomic_fetch_add(&t->total, 1);
    if (!pthread_equal(pthread_self(), t->caller)) {
        sigset_t blocked;
        atomic_fetch_add(&t->elsewhere, 1);
        pthread_sigmask(SIG_BLOCK, NULL, &blocked);
        if (!sigismember(&blocked, SIGUSR1))
            atomic_fetch_add(&t->signals_open, 1);
    }
    for (volatile int spin = 0; spin < 2000; spin++)
        ;
    atomic_fetch_sub(&t->running, 1);
    if (i >= t->fail_at)
        return t->silent ? -1 : cow_error(COW_IO, "body %zu failed", i);
    return 0;
}

static tally *tally_new(void)
{
    tally *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->caller = pthread_self();
    t->fail_at = SIZE_MAX;
    return t;
}

static void test_every_index_is_visited_once_with_any_number_of_threads(void **state)
{
    static const unsigned threads[] = {0, 1, 2, 3, 8, 64, 1000};
    static const size_t counts[] = {0, 1, 2, 63, MANY};

    (void)state;
    for (size_t n = 0; n < sizeof threads / sizeof *threads; n++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            tally *t = tally_new();
            assert_int_equal(cow_parallel(counts[c], threads[n], body, t), 0);
            assert_int_equal(t->running, 0);
            for (size_t i = 0; i < MANY; i++)
                assert_int_equal(t->calls[i], i < counts[c] ? 1 : 0);
            if (threads[n] <= 1)
                assert_int_equal(t->elsewhere, 0);
            free(t);
        }
    assert_false(cow_error_pending());
}

static int wait_for_the_other(void *context, size_t i)
{
    (void)i;
    pthread_barrier_wait(context); /* hangs unless two threads are at it at once */
    return 0;
}

static void test_two_bodies_run_at_the_same_time(void **state)
{
    pthread_barrier_t barrier;

    (void)state;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
    assert_int_equal(cow_parallel(2, 2, wait_for_the_other, &barrier), 0);
    pthread_barrier_destroy(&barrier);
}

static void test_workers_take_no_signals_and_the_caller_keeps_its_mask(void **state)
{
    sigset_t before, after;
    tally *t = tally_new();

    (void)state;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(cow_parallel(MANY, 4, body, t), 0);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(t->signals_open, 0);
    for (int s = 1; s < NSIG; s++)
        assert_int_equal(sigismember(&before, s), sigismember(&after, s));
    free(t);
}

static void test_an_error_reaches_the_caller_and_stops_the_batch(void **state)
{
    static const unsigned threads[] = {1, 4};

    (void)state;
    for (size_t n = 0; n < 2; n++) {
        tally *t = tally_new();
        t->fail_at = 100;
        assert_int_equal(cow_parallel(MANY, threads[n], body, t), -1);
        assert_true(cow_error_pending());
        assert_non_null(strstr(cow_error_message(), "failed"));
        assert_int_equal(t->running, 0);
        assert_true(t->total < MANY);
        cow_error_clear();
        free(t);
    }
}

static void test_a_failure_without_message_is_still_a_failure(void **state)
{
    tally *t = tally_new();

    (void)state;
    t->fail_at = 0;
    t->silent = true;
    assert_int_equal(cow_parallel(10, 2, body, t), -1);
    assert_false(cow_error_pending());
    free(t);
}

static void test_no_error_stays_behind_after_many_failures(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        tally *t = tally_new();
        t->fail_at = 0;
        assert_int_equal(cow_parallel(8, 4, body, t), -1);
        cow_error_clear();
        assert_false(cow_error_pending());
        free(t);
    }
}

/* ---- pipelines ---- */

enum { EARLY, TURN, LATE, LAST, STEPS };

/* What each step must find, and what it leaves for the next. */
typedef struct checked {
    cow_pipeline pipeline;
    atomic_uint done[MANY]; /* bit s: step s is over */
    unsigned steps;         /* bit s: the pipeline has step s */
    atomic_int running, wrong;
    pthread_t caller;
    size_t turns, lasts;
    size_t fail_at;
    int fail_step; /* -1: none */
} checked;

static bool wants_late(size_t i)
{
    return i % 3 != 1;
}

static int checked_step(checked *c, int step, size_t i)
{
    unsigned before = (1u << step) - 1;
    size_t window = c->pipeline.window;

    atomic_fetch_add(&c->running, 1);
    if (!(c->steps >> TURN & 1) || wants_late(i))
        before &= c->steps;
    else
        before &= c->steps & ~(1u << LATE);
    if (atomic_load(&c->done[i]) != before)
        atomic_fetch_add(&c->wrong, 1);
    if (i >= window && (c->steps >> LAST & 1) && !(atomic_load(&c->done[i - window]) >> LAST & 1))
        atomic_fetch_add(&c->wrong, 1);
    if ((step == TURN && (c->turns++ != i || !pthread_equal(pthread_self(), c->caller))) ||
        (step == LAST && (c->lasts++ != i || !pthread_equal(pthread_self(), c->caller))))
        atomic_fetch_add(&c->wrong, 1);
    for (volatile int spin = 0; spin < 500; spin++)
        ;
    atomic_fetch_or(&c->done[i], 1u << step);
    atomic_fetch_sub(&c->running, 1);
    if (step == c->fail_step && i >= c->fail_at)
        return cow_error(COW_IO, "step %d of item %zu failed", step, i);
    return step == TURN && wants_late(i) ? 1 : 0;
}

static int checked_early(void *context, size_t i)
{
    return checked_step(context, EARLY, i);
}
static int checked_turn(void *context, size_t i)
{
    return checked_step(context, TURN, i);
}
static int checked_late(void *context, size_t i)
{
    return checked_step(context, LATE, i);
}
static int checked_last(void *context, size_t i)
{
    return checked_step(context, LAST, i);
}

static checked *checked_new(unsigned steps, size_t count, size_t window, unsigned threads)
{
    checked *c = calloc(1, sizeof *c);

    assert_non_null(c);
    c->pipeline = (cow_pipeline){.count = count,
                                 .window = window,
                                 .threads = threads,
                                 .context = c,
                                 .early = steps >> EARLY & 1 ? checked_early : NULL,
                                 .turn = steps >> TURN & 1 ? checked_turn : NULL,
                                 .late = steps >> LATE & 1 ? checked_late : NULL,
                                 .last = steps >> LAST & 1 ? checked_last : NULL};
    c->steps = steps;
    c->caller = pthread_self();
    c->fail_step = -1;
    return c;
}

static void test_a_pipeline_takes_every_item_through_its_steps_in_order(void **state)
{
    static const unsigned threads[] = {0, 1, 2, 3, 8, 1000};
    static const size_t counts[] = {0, 1, 2, 7, 1000}, windows[] = {1, 2, 5, 64, COW_WINDOW_MAX};

    (void)state;
    for (unsigned steps = 0; steps < 1u << STEPS; steps++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
                for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
                    checked *c = checked_new(steps, counts[n], windows[w], threads[t]);
                    assert_int_equal(cow_pipeline_run(&c->pipeline), 0);
                    assert_int_equal(c->running, 0);
                    assert_int_equal(c->wrong, 0);
                    for (size_t i = 0; i < MANY; i++) {
                        unsigned all = steps;
                        if ((steps >> TURN & 1) && !wants_late(i))
                            all &= ~(1u << LATE);
                        assert_int_equal(c->done[i], i < counts[n] ? all : 0);
                    }
                    free(c);
                }
    assert_false(cow_error_pending());
}

static void test_an_error_in_any_step_ends_a_pipeline(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads++)
        for (int step = 0; step < STEPS; step++)
            for (int round = 0; round < 10; round++) {
                checked *c = checked_new((1u << STEPS) - 1, MANY, 8, threads);
                c->fail_step = step;
                c->fail_at = 99; /* 99 is 0 modulo 3: it has all steps */
                assert_int_equal(cow_pipeline_run(&c->pipeline), -1);
                assert_non_null(strstr(cow_error_message(), "failed"));
                assert_int_equal(c->running, 0);
                assert_int_equal(c->wrong, 0);
                assert_int_equal(c->done[99 + 8 + 1], 0); /* nothing began beyond the window */
                cow_error_clear();
                assert_false(cow_error_pending());
                free(c);
            }
}

static int meet_late(void *context, size_t i)
{
    if (i == 0)
        atomic_store((atomic_bool *)context, true);
    return 0;
}

static int meet_turn(void *context, size_t i)
{
    while (i == 1 && !atomic_load((atomic_bool *)context)) /* hangs unless a worker has item 0 meanwhile */
        sched_yield();
    return 1;
}

static void test_workers_go_on_while_the_caller_has_its_turn(void **state)
{
    atomic_bool met = false;
    cow_pipeline p = {.count = 2, .window = 2, .threads = 2, .turn = meet_turn, .late = meet_late, .context = &met};

    (void)state;
    assert_int_equal(cow_pipeline_run(&p), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_is_visited_once_with_any_number_of_threads),
        cmocka_unit_test(test_two_bodies_run_at_the_same_time),
        cmocka_unit_test(test_workers_take_no_signals_and_the_caller_keeps_its_mask),
        cmocka_unit_test(test_an_error_reaches_the_caller_and_stops_the_batch),
        cmocka_unit_test(test_a_failure_without_message_is_still_a_failure),
        cmocka_unit_test(test_no_error_stays_behind_after_many_failures),
        cmocka_unit_test(test_a_pipeline_takes_every_item_through_its_steps_in_order),
        cmocka_unit_test(test_an_error_in_any_step_ends_a_pipeline),
        cmocka_unit_test(test_workers_go_on_while_the_caller_has_its_turn),
    };
    return test_main(tests, argc, argv, NULL, NULL);
}
