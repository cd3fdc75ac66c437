/* What surrounds a program: the library it starts and closes, the processes it goes on in, the drivers of its files. */
#include "life.h"

#include "filter.h"
#include "operations.h"
#include "properties.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_PROCESSES 12 /* that wait for one another */

const char *const sides[] = {"native", "tested"};

/* Side 1 must really go through the connector that HDF5_VOL_CONNECTOR names: HDF5 falls back to native silently. */
static void check_connector(void)
{
    const char *wanted = getenv("HDF5_VOL_CONNECTOR");
    char path[PATH_SIZE], name[80] = "", want[80] = "";
    if (!wanted || sscanf(wanted, "%79s", want) != 1 || strcmp(want, "native") == 0)
        die("HDF5_VOL_CONNECTOR does not name a connector (h5cow run -- differential ..., or --self)");
    snprintf(path, sizeof path, "%s/probe.h5", w.dir);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, w.access[1]);
    if (file < 0 || H5VLget_connector_name(file, name, sizeof name) < 0)
        die("no file can be created through the connector %s in %s", want, w.dir);
    H5Fclose(file);
    unlink(path);
    if (strcmp(name, want) != 0)
        die("files are opened through '%s', not '%s': is HDF5_PLUGIN_PATH right?", name, want);
}

void start_library(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t native = H5VLget_connector_id_by_name("native");
    if (native < 0)
        die("HDF5 does not start: does HDF5_VOL_CONNECTOR name a connector that HDF5_PLUGIN_PATH has?");
    know_links();
    know_filter();
    for (int s = 0; s < 2; s++)
        if (H5Pset_cache(w.access[s] = H5Pcreate(H5P_FILE_ACCESS), 0, 521, 0, 0.75) < 0) /* D15 */
            die("cannot make a file access property list");
    H5Pset_vol(w.access[0], native, NULL);
    if (w.self)
        H5Pset_vol(w.access[1], native, NULL);
    else
        check_connector();
    hid_t memory = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_vol(memory, native, NULL);
    H5Pset_fapl_core(memory, 1 << 20, false);
    w.scratch = H5Fcreate("differential scratch", H5F_ACC_TRUNC, H5P_DEFAULT, memory);
    H5Pclose(memory);
    H5VLclose(native);
    w.native_stack = H5I_INVALID_HID;
}

void end_library(void)
{
    H5Fclose(w.scratch);
    H5Pclose(w.access[0]);
    H5Pclose(w.access[1]);
}

void go_on_elsewhere(void)
{
    static int processes;
    if (chance(50)) {
        note("H5close");
        end_library();
        if (H5close() < 0)
            differ(H5E_DEFAULT, "H5close fails");
        if (H5Eget_num(H5E_DEFAULT) > 0) /* it frees what it knows of, and then meets what it has lost */
            differ(H5E_DEFAULT, "H5close finds that a file was never closed");
        start_library();
    }
    if (processes < MOST_PROCESSES && chance(30)) {
        int status = 0;
        pid_t child = fork();
        note("another process");
        if (child < 0)
            die("fork");
        processes++;
        if (child == 0)
            return;
        while (waitpid(child, &status, 0) < 0)
            if (errno != EINTR)
                die("waitpid");
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1); /* the child has told everything */
    }
}

/* ---- drivers without a history ---- */

static const struct driver {
    const char *name, *file; /* what the file is called, with its number */
    herr_t (*set)(hid_t access);
} drivers[];

static herr_t set_core(hid_t access)
{
    return H5Pset_fapl_core(access, 1 << 16, true);
}

static const struct driver drivers[] = {
    {"sec2", "%s/%s/%zu.h5", NULL},
    {"core", "%s/%s/%zu.core.h5", set_core},
    {"stdio", "%s/%s/%zu.stdio.h5", H5Pset_fapl_stdio},
};

void choose_driver(void)
{
    w.driver = chance(85) ? 0 : 1 + below(sizeof drivers / sizeof drivers[0] - 1);
    w.plain = w.driver > 0;
    for (int s = 0; s < 2; s++)
        snprintf(w.name[s], PATH_SIZE, drivers[w.driver].file, w.dir, sides[s], w.files);
    if (w.plain)
        note("driver %s: no history", drivers[w.driver].name);
}

pair file_access(bool writable)
{
    pair access;
    for (int s = 0; s < 2; s++) {
        access.id[s] = H5Pcopy(w.access[s]);
        if (drivers[w.driver].set && drivers[w.driver].set(access.id[s]) < 0)
            die("the driver %s cannot be set", drivers[w.driver].name);
    }
    snprintf(w.opened, sizeof w.opened, "%s", draw_properties(FILE_ACCESS | (writable ? WRITING : 0), access.id));
    also("%s", w.opened);
    return access;
}

void unlink_files(void)
{
    char path[PATH_SIZE + 40];
    for (int s = 0; s < 2; s++) {
        unlink(w.name[s]);
        for (unsigned n = 0; n < w.external; n++) {
            snprintf(path, sizeof path, "%s/%s/%zu-%u.raw", w.dir, sides[s], w.files, n);
            unlink(path);
        }
    }
    w.external = 0;
}
