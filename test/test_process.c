/* The number of the process, as getpid() tells it: in children of any kind as well. */
#include "base/process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void expect_right_child(pid_t child)
{
    int status = -1;

    if (child == 0)
        _exit(cow_process_id() == (pid_t)syscall(SYS_getpid) && cow_process_id() == (pid_t)syscall(SYS_getpid) ? 0 : 1);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_a_child_has_a_number_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cow_process_id(), getpid());
        expect_right_child(fork());
        /* what no handler of pthread_atfork hears of */
        expect_right_child((pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL));
    }
    assert_int_equal(cow_process_id(), getpid());
}

static void test_a_child_of_a_child_too(void **state)
{
    int status = -1;
    pid_t child;

    (void)state;
    cow_process_id();
    if ((child = fork()) == 0) {
        pid_t mine = cow_process_id(), inner = fork();

        if (inner == 0)
            _exit(cow_process_id() == getpid() && cow_process_id() != mine ? 0 : 1);
        _exit(inner > 0 && waitpid(inner, &status, 0) == inner && status == 0 && cow_process_id() == mine ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_has_a_number_of_its_own),
        cmocka_unit_test(test_a_child_of_a_child_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
