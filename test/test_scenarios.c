/* Each scenario leaves the state that it says, for readers through the connector and for native HDF5: test_scenarios
 * [NAME] */
#include "journal/internal.h"

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

static int check(const scenario *s, const char *file)
{
    scenario_run run = {file, connector_fapl(s->options), native_fapl(), NULL, fail_sync, NULL};
    scenario_states *states = scenario_expect(s);
    int newest = scenario_states_count(states), wrong = 0;
    char why[256];

    if (scenario_run_all(s, &run) < 0) {
        printf("%s: a call failed\n", s->name);
        wrong++;
    }
    for (int stock = 0; stock < 2; stock++) {
        int state = scenario_check(states, file, stock ? run.stock_fapl : run.fapl, stock, why, sizeof why);
        if (state != newest) {
            printf("%s: %s sees state %d of %d: %s\n", s->name, stock ? "native HDF5" : "the connector", state, newest,
                   why);
            wrong++;
        }
    }
    printf("%-26s %2d states, %2d versions%s\n", s->name, newest, scenario_state_versions(states, newest),
           wrong ? ", WRONG" : "");
    scenario_states_free(states);
    H5Pclose(run.fapl);
    H5Pclose(run.stock_fapl);
    return wrong;
}

int main(int argc, char **argv)
{
    static cow_disk_calls calls; /* used until the process ends, where a file stayed open */
    char file[64];
    int wrong = 0;

    snprintf(file, sizeof file, "%s/scenarios.%d.h5", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (int)getpid());
    if (getenv("SHOW") == NULL)
        H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    calls = cow_disk_system;
    calls.fdatasync = failing_sync;
    cow_journal_use_calls(&calls);
    for (size_t i = 0; i < scenario_count; i++)
        if (argc < 2 || strcmp(argv[1], scenarios[i].name) == 0) {
            wrong += check(&scenarios[i], file);
            unlink(file);
        }
    cow_journal_use_calls(NULL);
    return wrong > 0;
}
