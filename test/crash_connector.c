/* Power cuts under the whole connector: scenarios.h says what the programs do, and what a file must hold. */
#include "crash_programs.h"

#include "base/error.h"
#include "check.h"
#include "history/history.h"
#include "scenarios.h"
#include "with_connector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void committed(void *context, int state)
{
    (void)context;
    recording_mark(state);
}

static void fail_sync(void *context, int nth)
{
    (void)context;
    disk.fail_sync = nth;
}

typedef struct judging {
    scenario_states *states;
    hid_t fapl, stock_fapl;
} judging;

static void unheard(void *context, const char *where)
{
    (void)context;
    (void)where;
}

static int verify(const char *path, char *why, size_t size)
{
    struct stat about;
    cli_file file;
    int status = LOOK_WRONG;

    if (cli_file_try(&file, path, why, size) != 0)
        return LOOK_WRONG;
    if (cow_file_versioned(file.loc.object) > 0) {
        cli_check check = {.file = &file, .threads = 1, .at = unheard};

        check.file_size = stat(path, &about) == 0 ? (uint64_t)about.st_size : UINT64_MAX;
        cli_check_all(&check);
        if (check.damages == 0 && check.version_count > 0)
            status = 0;
        else
            snprintf(why, size, "%s", check.damages == 0 ? "no versions" : check.damage[0].what);
        cli_check_free(&check);
    } else
        snprintf(why, size, "no history");
    cli_file_close(&file);
    cow_error_clear();
    return status;
}

static int write_and_close(hid_t file, char *why, size_t size)
{
    if (file >= 0 && H5Fclose(file) >= 0)
        return 0;
    snprintf(why, size, "it cannot be opened and closed");
    return LOOK_WRONG;
}

/* A file can be created over what a program left that died before its first commit. Where its beginning is garbage, it
 * may have been anything: then the refusal must change nothing. */
static int create(const judging *j, const char *path, char *why, size_t size)
{
    image before = {0}, after = {0};
    hid_t file;
    int status = 0;

    image_load(&before, path);
    if ((file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, j->fapl)) >= 0)
        status = write_and_close(file, why, size);
    else {
        image_load(&after, path);
        if (before.size != after.size || memcmp(before.data, after.data, before.size) != 0) {
            snprintf(why, size, "refused, and changed");
            status = LOOK_WRONG;
        }
    }
    free(before.data);
    free(after.data);
    return status;
}

static int judge(void *context, const char *path, crash_look look, char *why, size_t size)
{
    const judging *j = context;

    switch (look) {
    case LOOK_READER:
    case LOOK_STOCK:
        return scenario_check(j->states, path, look == LOOK_STOCK ? j->stock_fapl : j->fapl, look == LOOK_STOCK, why,
                              size);
    case LOOK_WRITER:
        return write_and_close(H5Fopen(path, H5F_ACC_RDWR, j->fapl), why, size);
    case LOOK_VERIFY:
        return verify(path, why, size);
    case LOOK_CREATE:
        return create(j, path, why, size);
    }
    return LOOK_WRONG;
}

static void record(const scenario *s, const judging *j, recording *r)
{
    const scenario_run run = {crash_real, j->fapl, j->stock_fapl, committed, fail_sync, NULL};

    memset(&disk, 0, sizeof disk);
    disk.log = disk.real = true;
    disk.recording = r;
    calls_for_all(&memory_calls);
    if (scenario_run_all(s, &run) < 0)
        die("%s: the scenario failed", s->name);
    calls_for_all(NULL);
    unlink(crash_real);
}

void crash_connector(const char *only, crash_totals *total)
{
    for (size_t i = 0; i < scenario_count; i++) {
        const scenario *s = &scenarios[i];
        judging j;
        crash_scenario c = {s->name, s->kill_only, s->loses_newest, judge, &j};
        recording *r = recording_start();

        if (only != NULL && strcmp(only, s->name) != 0)
            continue;
        j = (judging){scenario_expect(s), connector_fapl(s->options), native_fapl()};
        record(s, &j, r);
        crash_sweep(&c, r, total);
        scenario_states_free(j.states);
        H5Pclose(j.fapl);
        H5Pclose(j.stock_fapl);
    }
}
