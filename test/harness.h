/* What all C tests are written with: cmocka, whose assertions end a test at the first thing that is not as it should be; and
 * what cmocka leaves to us: one test chosen by its name, a word on what a test was doing, and that a test which fails, or
 * the children of a test, leave nothing to the others.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* The answer is main's. PROGRAM: all tests of the table; PROGRAM NAME: one; PROGRAM --list: their names. SET_UP and TEAR_DOWN
 * are the table's: once before all, once after; or NULL. */
#define test_main(tests, argc, argv, set_up, tear_down)                                                                \
    test_table_main(tests, COUNT(tests), argc, argv, set_up, tear_down)
int test_table_main(const struct CMUnitTest tests[], size_t count, int argc, char **argv, CMFixtureFunction set_up,
                    CMFixtureFunction tear_down);

/* What the test does next, for whoever reads that it failed: of many settings, or random ones, which. */
void during(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fork() in a test: a failed assertion, or a crash, ends the child with a signal. Otherwise cmocka would go on with the other
 * tests in it. */
pid_t fork_child(void);

#endif
