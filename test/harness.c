/* Runs a table of tests with cmocka. Contract: harness.h. */
#include "harness.h"

#include <hdf5.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct open_ids {
    size_t count;
    hid_t id[1000];
} open_ids;

static struct {
    bool ended;
    char during[1000];
    open_ids before;
    H5E_auto2_t print; /* what H5E_BEGIN_TRY has turned off, where an assertion fails in it */
    void *print_to;
} now;

void during(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(now.during, sizeof now.during, format, list);
    va_end(list);
}

static herr_t note_id(hid_t id, void *context)
{
    open_ids *ids = context;

    if (ids->count < COUNT(ids->id) && (H5Iget_type(id) != H5I_DATATYPE || H5Tcommitted(id) > 0))
        ids->id[ids->count++] = id;
    return 0;
}

/* All that holds a file open. */
static void note_ids(open_ids *ids)
{
    static const H5I_type_t types[] = {H5I_ATTR, H5I_DATASET, H5I_GROUP, H5I_DATATYPE, H5I_FILE};

    ids->count = 0;
    for (size_t i = 0; i < COUNT(types); i++)
        H5Iiterate(types[i], note_id, ids);
}

static bool was_open(hid_t id)
{
    for (size_t i = 0; i < now.before.count; i++)
        if (now.before.id[i] == id)
            return true;
    return false;
}

/* A file that stayed open could not be made anew by the next test. */
static void close_what_is_left(void)
{
    static open_ids left;

    note_ids(&left);
    H5E_BEGIN_TRY
    {
        for (size_t i = 0; i < left.count; i++)
            while (!was_open(left.id[i]) && H5Idec_ref(left.id[i]) > 0)
                ;
    }
    H5E_END_TRY
}

static void run_one(void **state)
{
    const struct CMUnitTest *test = *state;

    now.ended = false;
    now.during[0] = '\0';
    note_ids(&now.before);
    H5Eget_auto2(H5E_DEFAULT, &now.print, &now.print_to);
    *state = test->initial_state;
    if (test->setup_func != NULL)
        assert_int_equal(test->setup_func(state), 0);
    test->test_func(state);
    now.ended = true;
}

static int after_one(void **state)
{
    (void)state;
    if (now.ended)
        return 0;
    if (now.during[0] != '\0')
        print_error("during: %s\n", now.during);
    H5Eset_auto2(H5E_DEFAULT, now.print, now.print_to);
    close_what_is_left();
    return 0;
}

int test_table_main(const struct CMUnitTest tests[], size_t count, int argc, char **argv, CMFixtureFunction set_up,
                    CMFixtureFunction tear_down)
{
    struct CMUnitTest *run = calloc(count, sizeof *run);
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    size_t chosen = 0;
    int status;

    for (size_t i = 0; i < count; i++) {
        if (list)
            puts(tests[i].name);
        else if (argc < 2 || strcmp(argv[1], tests[i].name) == 0)
            run[chosen++] = (struct CMUnitTest){tests[i].name, run_one, NULL, after_one, (void *)(uintptr_t)&tests[i]};
    }
    if (!list && chosen == 0)
        fprintf(stderr, "%s: there is no test %s; --list\n", argv[0], argc < 2 ? "at all" : argv[1]);
    /* how many failed is no status: 77 means skipped, 256 is 0 */
    status = list ? 0 : chosen == 0 ? 2 : _cmocka_run_group_tests("tests", run, chosen, set_up, tear_down) != 0;
    free(run);
    return status;
}

pid_t fork_child(void)
{
    static const int crashes[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS}; /* which cmocka takes for itself */
    pid_t child = (fflush(NULL), fork());

    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < COUNT(crashes); i++)
            signal(crashes[i], SIG_DFL);
        setenv("CMOCKA_TEST_ABORT", "1", 1);
    }
    return child;
}
