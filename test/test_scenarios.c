/* Each scenario leaves the state that it says, for readers through the connector and for native HDF5: test_scenarios
 * [NAME] */
#include "journal/internal.h"

#include "files.h"
#include "harness.h"
#include "scenarios.h"
#include "with_connector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a disk whose syncs can fail ---- */

static int failing;

static int failing_sync(void *context, int fd)
{
    (void)context;
    if (failing > 0 && --failing == 0) {
        errno = EIO;
        return -1;
    }
    return cow_disk_system.fdatasync(NULL, fd);
}

static void fail_sync(void *context, int nth)
{
    (void)context;
    failing = nth;
}

/* ---- */

static char file[64];

static void test_scenario(void **state)
{
    const scenario *s = *state;
    scenario_run run = {file, connector_fapl(s->options), native_fapl(), NULL, fail_sync, NULL};
    scenario_states *states = scenario_expect(s);
    int newest = scenario_states_count(states), seen;
    char why[256];

    unlink(file);
    assert_int_equal(scenario_run_all(s, &run), 0);
    for (int stock = 0; stock < 2; stock++) {
        seen = scenario_check(states, file, stock ? run.stock_fapl : run.fapl, stock, why, sizeof why);
        if (seen != newest)
            fail_msg("%s sees state %d of %d: %s", stock ? "native HDF5" : "the connector", seen, newest, why);
    }
    printf("%-26s %2d states, %2d versions\n", s->name, newest, scenario_state_versions(states, newest));
    scenario_states_free(states);
    H5Pclose(run.fapl);
    H5Pclose(run.stock_fapl);
}

int main(int argc, char **argv)
{
    static cow_disk_calls calls; /* used until the process ends, where a file stayed open */
    static struct CMUnitTest tests[100];
    int status;

    snprintf(file, sizeof file, "%s/scenarios.%d.h5", memory_folder(), (int)getpid());
    if (getenv("SHOW") == NULL)
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    calls = cow_disk_system;
    calls.fdatasync = failing_sync;
    cow_journal_use_calls(&calls);
    for (size_t i = 0; i < scenario_count && i < COUNT(tests); i++)
        tests[i] = (struct CMUnitTest){scenarios[i].name, test_scenario, NULL, NULL, (void *)(uintptr_t)&scenarios[i]};
    status = scenario_count > COUNT(tests) ? 2 : test_table_main(tests, scenario_count, argc, argv, NULL, NULL);
    cow_journal_use_calls(NULL);
    unlink(file);
    return status;
}
