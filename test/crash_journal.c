/* Power cuts under HDF5 and the journal alone: what the connector adds makes files larger, not the journal's work
 * different. */
#include "crash_programs.h"

#include "journal/driver.h"
#include "journal/internal.h"
#include "journal/locks.h"

#include "base/error.h"
#include "journal_states.h"

#include <hdf5.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char *scenario_name;
static cow_journal_options options;
static hid_t fapl, fcpl;

/* ---- scenarios ---- */

static hid_t file = -1;

static cow_journal *journal_of_file(void)
{
    unsigned long number = 0;

    H5Fget_fileno(file, &number);
    return cow_journal_driver_of_file(number);
}

/* What is committed now was reported. */
static void report(void)
{
    recording_mark(0);
}

static void begin(void)
{
    file = H5Fcreate(crash_dummy, H5F_ACC_TRUNC, fcpl, fapl);
    must(file >= 0);
}

static void commit(void)
{
    must(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    if (cow_journal_commit(journal_of_file(), false) < 0)
        die("%s: %s", scenario_name, cow_error_message());
    report();
}

static void end(void)
{
    must(H5Fclose(file) >= 0);
    report();
}

static void reopen(void)
{
    file = H5Fopen(crash_dummy, H5F_ACC_RDWR, fapl);
    must(file >= 0);
    report();
}

static void state(int v)
{
    must(state_write(file, v) == 0);
}

static void made(int v)
{
    begin();
    state(1);
    end();
    for (int i = 2; i <= v; i++) {
        reopen();
        state(i);
        end();
    }
}

static void many_small(int from, int to)
{
    hid_t space = H5Screate(H5S_SCALAR);

    for (int i = from; i < to; i++) {
        char name[32];
        snprintf(name, sizeof name, "small%d", i);
        hid_t set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        must(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &i) >= 0);
        H5Dclose(set);
    }
    H5Sclose(space);
}

static void block(hsize_t a, hsize_t b, int value, bool creates)
{
    static int values[400 * 400];
    const hsize_t unlimited[2] = {H5S_UNLIMITED, H5S_UNLIMITED}, chunk[2] = {16, 16}, extent[2] = {a, b};
    hid_t set, space, dcpl;

    for (hsize_t i = 0; i < a * b; i++)
        values[i] = value + (int)i;
    if (creates) {
        space = H5Screate_simple(2, extent, unlimited);
        dcpl = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(dcpl, 2, chunk);
        set = H5Dcreate2(file, "block", H5T_NATIVE_INT, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
        H5Sclose(space);
        H5Pclose(dcpl);
    } else {
        set = H5Dopen2(file, "block", H5P_DEFAULT);
        must(H5Dset_extent(set, extent) >= 0);
    }
    must(set >= 0 && H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(set);
}

static void strings(int v, bool creates)
{
    const hsize_t count = 40;
    char text[40][32];
    const char *pointer[40];
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &count, NULL), set;

    H5Tset_size(type, H5T_VARIABLE);
    for (int i = 0; i < 40; i++) {
        snprintf(text[i], sizeof text[i], "text %d of %d", i * v, v);
        pointer[i] = text[i];
    }
    set = creates ? H5Dcreate2(file, "text", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                  : H5Dopen2(file, "text", H5P_DEFAULT);
    must(set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointer) >= 0);
    H5Dclose(set);
    H5Sclose(space);
    H5Tclose(type);
}

static int pin_fd = -1;
static cow_disk pin_disk;

static void pin_now(void)
{
    uint64_t sequence, applied;
    cow_journal_options quiet = options;
    int number;
    cow_journal *journal = cow_journal_open(crash_dummy, (cow_journal_mode){0}, &quiet, &number);

    cow_journal_state(journal, &sequence, &applied);
    cow_journal_close(journal);
    pin_fd = open(crash_dummy, O_RDONLY | O_CLOEXEC);
    pin_disk = (cow_disk){.calls = &cow_disk_system, .fd = pin_fd, .name = crash_dummy};
    if (cow_lock_pin(&pin_disk, sequence) < 0)
        die("%s: %s", scenario_name, cow_error_message());
}

static void unpin(void)
{
    close(pin_fd);
}

static void s_create(void)
{
    begin();
    state(1);
    end();
}
static void s_create_empty(void)
{
    begin();
    end();
}
static void s_create_and_flush(void)
{
    begin();
    for (int v = 1; v < 4; v++) {
        state(v);
        commit();
    }
    end();
}
static void s_rewrite(void)
{
    made(4);
}
static void s_flush_and_close(void)
{
    made(1);
    reopen();
    state(2);
    commit();
    state(3);
    end();
}
static void s_two_dimensions(void)
{
    begin();
    block(20, 20, 1, true);
    commit();
    block(50, 20, 2, false);
    commit();
    block(50, 50, 3, false);
    commit();
    block(10, 70, 4, false);
    end();
    reopen();
    block(1, 1, 5, false);
    end();
}
static void s_many_small(void)
{
    begin();
    many_small(0, 30);
    commit();
    many_small(30, 80);
    end();
    reopen();
    many_small(80, 90);
    end();
}
static void s_strings(void)
{
    begin();
    strings(1, true);
    commit();
    strings(2, false);
    end();
    reopen();
    strings(3, false);
    end();
}
static void s_delete_and_reuse(void)
{
    made(1);
    reopen();
    block(60, 60, 1, true);
    commit();
    must(H5Ldelete(file, "block", H5P_DEFAULT) >= 0);
    many_small(0, 20);
    commit();
    block(40, 40, 2, true);
    end();
}
static void s_nothing_changed(void)
{
    made(1);
    reopen();
    commit();
    end();
    reopen();
    end();
}
static void s_abort(void)
{
    made(2);
    reopen();
    state(3);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    cow_journal_abort(journal_of_file(), "scenario");
    end();
    reopen();
    state(3);
    end();
}
static void s_abort_in_creation(void)
{
    begin();
    state(1);
    commit();
    state(2);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    cow_journal_abort(journal_of_file(), "scenario");
    end();
}
static void s_pinned(void)
{
    made(1);
    pin_now();
    reopen();
    state(2);
    commit();
    state(3);
    commit();
    unpin();
    state(4);
    end();
}
static void s_pinned_at_close(void)
{
    made(1);
    pin_now();
    reopen();
    state(2);
    end();
    reopen();
    state(3);
    end();
    unpin();
    reopen();
    state(4);
    end();
}
static void s_pins_move(void)
{
    made(1);
    pin_now();
    reopen();
    state(2);
    commit();
    end();
    unpin();
    pin_now();
    reopen();
    state(3);
    commit();
    state(4);
    commit();
    end();
    unpin();
    reopen();
    end();
}
static void s_stock_reader(void)
{
    int fd;

    made(1);
    fd = open(crash_dummy, O_RDONLY | O_CLOEXEC);
    flock(fd, LOCK_SH);
    reopen();
    state(2);
    commit();
    state(3);
    end();
    close(fd);
    reopen();
    state(4);
    end();
}
static void s_applied_late(void)
{
    options.apply_interval = 1000000;
    H5Pclose(fapl);
    fapl = state_fapl(&options);
    made(1);
    reopen();
    for (int v = 2; v < 7; v++) {
        state(v);
        commit();
    }
    end();
}
static void s_long_chain(void)
{
    made(1);
    pin_now();
    reopen();
    for (int v = 2; v < 80; v++) {
        many_small(v, v + 1);
        commit();
    }
    end();
    unpin();
}
static void s_user_block(void)
{
    H5Pset_userblock(fcpl, 1024);
    made(3);
}
static void s_persistent_free_space(void)
{
    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1);
    made(3);
    reopen();
    block(40, 40, 2, true);
    commit();
    must(H5Ldelete(file, "block", H5P_DEFAULT) >= 0);
    end();
}
static void s_pages(void)
{
    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1);
    made(3);
}
static void s_large(void)
{
    begin();
    block(300, 300, 1, true);
    commit();
    block(320, 300, 1, false);
    end();
    reopen();
    block(320, 330, 1, false);
    end();
}
static void s_shrink(void)
{
    begin();
    block(100, 100, 1, true);
    end();
    for (int i = 0; i < 3; i++) {
        reopen();
        must(H5Ldelete(file, "block", H5P_DEFAULT) >= 0);
        end();
        reopen();
        block(60, 60, i, true);
        end();
    }
}
static void s_failed_sync(void)
{
    made(2);
    for (int n = 1; n <= 2; n++) {
        reopen();
        state(3);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        disk.fail_sync = n;
        must(cow_journal_commit(journal_of_file(), false) < 0);
        disk.fail_sync = 0;
        cow_error_clear();
        end();
    }
    reopen();
    state(3);
    commit();
    end();
}
static void s_kill_without_syncs(void)
{
    options.sync = COW_SYNC_OFF;
    H5Pclose(fapl);
    fapl = state_fapl(&options);
    made(3);
    reopen();
    state(4);
    commit();
    state(5);
    end();
}

static const struct scenario {
    const char *name;
    void (*run)(void);
    bool kill_only;
} list[] = {
    {.name = "create", .run = s_create},
    {.name = "create_empty", .run = s_create_empty},
    {.name = "create_and_flush", .run = s_create_and_flush},
    {.name = "rewrite", .run = s_rewrite},
    {.name = "flush_and_close", .run = s_flush_and_close},
    {.name = "two_dimensions", .run = s_two_dimensions},
    {.name = "many_small", .run = s_many_small},
    {.name = "strings", .run = s_strings},
    {.name = "delete_and_reuse", .run = s_delete_and_reuse},
    {.name = "nothing_changed", .run = s_nothing_changed},
    {.name = "abort", .run = s_abort},
    {.name = "abort_in_creation", .run = s_abort_in_creation},
    {.name = "pinned", .run = s_pinned},
    {.name = "pinned_at_close", .run = s_pinned_at_close},
    {.name = "pins_move", .run = s_pins_move},
    {.name = "stock_reader", .run = s_stock_reader},
    {.name = "applied_late", .run = s_applied_late},
    {.name = "long_chain", .run = s_long_chain},
    {.name = "user_block", .run = s_user_block},
    {.name = "persistent_free_space", .run = s_persistent_free_space},
    {.name = "pages", .run = s_pages},
    {.name = "large", .run = s_large},
    {.name = "shrink", .run = s_shrink},
    {.name = "failed_sync", .run = s_failed_sync},
    {.name = "kill_without_syncs", .run = s_kill_without_syncs, .kill_only = true},
};

void crash_journal(const char *only, crash_totals *total)
{
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const crash_scenario s = {.name = list[i].name, .kill_only = list[i].kill_only};
        recording *r = recording_start();
        FILE *make;

        if (only != NULL && strcmp(only, s.name) != 0)
            continue;
        if ((make = fopen(crash_dummy, "w")) == NULL || fclose(make) != 0)
            die("%s", crash_dummy);
        scenario_name = s.name;
        options = cow_journal_defaults;
        options.calls = &memory_calls;
        options.apply_interval = 0;
        fapl = state_fapl(&options);
        fcpl = H5Pcreate(H5P_FILE_CREATE);
        memset(&disk, 0, sizeof disk);
        disk.log = true;
        disk.recording = r;
        list[i].run();
        free(disk.file.data);
        H5Pclose(fcpl);
        H5Pclose(fapl);
        crash_sweep(&s, r, total);
    }
}
