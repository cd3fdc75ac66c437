/* cow_parallel: every body once, errors moved to the caller, nothing left running. */
#include "error.h"
#include "io/workers.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_is_visited_once_with_any_number_of_threads),
        cmocka_unit_test(test_two_bodies_run_at_the_same_time),
        cmocka_unit_test(test_workers_take_no_signals_and_the_caller_keeps_its_mask),
        cmocka_unit_test(test_an_error_reaches_the_caller_and_stops_the_batch),
        cmocka_unit_test(test_a_failure_without_message_is_still_a_failure),
        cmocka_unit_test(test_no_error_stays_behind_after_many_failures),
    };
    return cmocka_run_group_tests_name("workers", tests, NULL, NULL);
}
