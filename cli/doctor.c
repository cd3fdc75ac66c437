/* h5cow doctor: why history is kept here, or is not: what is installed, what the environment says, and what is wrong
 * with it. What a file says: doctor_file.c. */
#include "doctor.h"

#include "base/error.h"
#include "base/options.h"
#include "plugin.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char cli_doctor_help[] =
    "Usage: h5cow doctor [--json] [FILE] [--program COMMAND [ARGUMENT]...]\n\n"
    "Says why history is kept, or is not: whether the plugin is found and loads, which libhdf5 is used, how the "
    "options\n"
    "are understood, what the environment does; and with FILE whether it has a history and which, what its journal "
    "holds,\n"
    "who is writing it, whether locks work where it is, and whether it can be written. Changes nothing.\n\n"
    "      --json      the answer as one JSON object\n"
    "      --program   run COMMAND, all words that follow, in this environment, and say which libhdf5 it has loaded, and the\n"
    "                  programs that it starts, which part of h5cow serves each, and why not; what it prints goes to\n"
    "                  standard error\n"
    "  -h, --help\n\n"
    "Exit code 0: all is well, 1: something is wrong, and it says what to do.\n\n"
    "Example: h5cow doctor --program h5cow run -- python3 calibrate.py run42.h5\n";

/* ---- the environment ---- */

static const char *const variables[] = {"HDF5_VOL_CONNECTOR", "HDF5_PLUGIN_PATH",   "HDF5_PLUGIN_PRELOAD",
                                        "HDF5_DRIVER",        "HDF5_DRIVER_CONFIG", "HDF5_USE_FILE_LOCKING"};

/* The driver that programs get in this environment, unless they choose one; NULL: the default one. */
static const char *chosen_driver(void)
{
    const char *driver = getenv("HDF5_DRIVER");

    return driver == NULL || *driver == '\0' || strcmp(driver, "sec2") == 0 ? NULL : driver;
}

/* What stands behind the connector's name; NULL: the environment does not choose h5cow. */
static const char *chosen_options(void)
{
    const char *connector = getenv("HDF5_VOL_CONNECTOR");

    if (connector == NULL || strncmp(connector, "h5cow", 5) != 0 || strchr(" \t", connector[5]) == NULL)
        return NULL;
    return connector + 5 + strspn(connector + 5, " \t");
}

static void look_at_environment(doctor *d)
{
    const char *preload = getenv("HDF5_PLUGIN_PRELOAD"), *locking = getenv("HDF5_USE_FILE_LOCKING"),
               *key = "environment";
    json_object *set = json_object_new_object();

    json_object_object_add(d->whole, "environment", set);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value == NULL)
            continue;
        json_object_object_add(set, variables[i], cli_json_text(value));
        doctor_say(d, key, "%s=%s", variables[i], value);
        key = "";
    }
    if (*key != '\0')
        doctor_say(d, key, "no HDF5_ variable is set");
    if (preload != NULL && strcmp(preload, "::") == 0)
        doctor_wrong(d, "HDF5_PLUGIN_PRELOAD=:: forbids HDF5 to load plugins: unset it");
    if (chosen_driver() != NULL)
        doctor_wrong(
            d,
            "HDF5_DRIVER=%s: files that are made with another driver than sec2 have no history, and those that have "
            "one are written with some drivers only: unset it",
            chosen_driver());
    if (locking != NULL && (strcasecmp(locking, "FALSE") == 0 || strcmp(locking, "0") == 0))
        doctor_say(d, "", "(with it, HDF5 without h5cow may read a file while commits are applied, and see a mixture)");
}

/* ---- plugin and library ---- */

static void look_at_plugin(doctor *d, const char *directory, const char *looked)
{
    const char *options = chosen_options();
    json_object *plugin = json_object_new_object();
    char why[1024];

    json_object_object_add(d->whole, "plugin", plugin);
    json_object_object_add(plugin, "folder", directory == NULL ? NULL : cli_json_text(directory));
    json_object_object_add(plugin, "looked_in", cli_json_text(looked));
    if (directory == NULL) {
        doctor_say(d, "plugin", "not found");
        json_object_object_add(plugin, "loads", json_object_new_boolean(false));
        doctor_wrong(d,
                     "the plugin " CLI_PLUGIN_FILE
                     " is nowhere (looked in %s): install h5cow, or set HDF5_PLUGIN_PATH to its "
                     "folder",
                     looked);
        return;
    }
    int loads = cli_plugin_probe(directory, options == NULL ? "" : options, why, sizeof why) == 0;
    doctor_say(d, "plugin", "%s/" CLI_PLUGIN_FILE ", %s", directory, loads ? "loads" : "does not load");
    json_object_object_add(plugin, "loads", json_object_new_boolean(loads));
    if (!loads)
        doctor_wrong(d, "the plugin cannot be used: %s", why);
}

/* Programs that are started here, and not by `h5cow run`: do they keep history? FOLDER: of the plugin. */
static void look_at_programs(doctor *d, const char *folder)
{
    const char *connector = getenv("HDF5_VOL_CONNECTOR");
    char *found = cli_plugin_for_programs();
    bool chosen = chosen_options() != NULL;

    json_object_object_add(d->whole, "programs_use_h5cow", json_object_new_boolean(chosen && found != NULL));
    json_object_object_add(d->whole, "programs_find", found == NULL ? NULL : cli_json_text(found));
    if (chosen && found != NULL)
        doctor_say(d, "programs", "started here they use h5cow, from %s", found);
    else if (!chosen)
        doctor_say(d, "programs",
                   "started here they do not use h5cow: start them with 'h5cow run', or set "
                   "HDF5_VOL_CONNECTOR=h5cow%s%s",
                   found == NULL && folder != NULL ? " and HDF5_PLUGIN_PATH=" : "",
                   found == NULL && folder != NULL ? folder : "");
    if (connector != NULL && *connector != '\0' && !chosen)
        doctor_wrong(
            d, "HDF5_VOL_CONNECTOR names another connector: programs have no history unless 'h5cow run' starts them");
    if (chosen && found == NULL && folder != NULL)
        doctor_wrong(d,
                     "HDF5_VOL_CONNECTOR names h5cow, but no folder of HDF5_PLUGIN_PATH has " CLI_PLUGIN_FILE
                     ": most programs "
                     "then go on without history; set HDF5_PLUGIN_PATH=%s, or use 'h5cow run'",
                     folder);
    if (chosen && found != NULL && folder != NULL && strcmp(found, folder) != 0)
        doctor_say(d, "", "(that is another one than was tried: %s)", folder);
    free(found);
}

/* What is wrong with them, the trial of the plugin has said. */
static void look_at_options(doctor *d)
{
    const char *text = chosen_options();
    cow_options *options = cow_options_parse(text);
    char *understood = options == NULL ? NULL : cow_options_text(options);

    cow_error_clear();
    if (understood != NULL)
        doctor_say(d, "options", "%s%s", text == NULL || *text == '\0' ? "none is given: " : "", understood);
    json_object_object_add(d->whole, "options", understood == NULL ? NULL : cli_json_text(understood));
    free(understood);
    cow_options_free(options);
}

static void look_at_library(doctor *d)
{
    static const struct {
        H5Z_filter_t id;
        const char *name;
    } filters[] = {{H5Z_FILTER_DEFLATE, "gzip"},
                   {H5Z_FILTER_SHUFFLE, "shuffle"},
                   {H5Z_FILTER_FLETCHER32, "fletcher32"},
                   {H5Z_FILTER_SZIP, "szip"},
                   {H5Z_FILTER_NBIT, "nbit"},
                   {H5Z_FILTER_SCALEOFFSET, "scaleoffset"},
                   {32000, "lzf"},
                   {32001, "blosc"}};
    json_object *library = json_object_new_object(), *list = json_object_new_array();
    unsigned major = 0, minor = 0, release = 0;
    hbool_t threadsafe = false;
    char *version, *names = cli_strdup("");
    const char *path;
    Dl_info where;

    H5get_libversion(&major, &minor, &release);
    H5is_library_threadsafe(&threadsafe);
    version = cli_format("%u.%u.%u", major, minor, release);
    path = dladdr((void *)(uintptr_t)H5open, &where) != 0 && where.dli_fname != NULL ? where.dli_fname : "?";
    doctor_say(d, "libhdf5", "%s, %s, thread-safe: %s", version, path, threadsafe ? "yes" : "no");
    json_object_object_add(library, "version", cli_json_text(version));
    json_object_object_add(library, "file", cli_json_text(path));
    json_object_object_add(library, "thread_safe", json_object_new_boolean(threadsafe));
    json_object_object_add(d->whole, "libhdf5", library);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (H5Zfilter_avail(filters[i].id) > 0 || filters[i].id >= 32000) {
            char *longer = cli_format("%s%s%s", names, *names == '\0' ? "" : ", ", filters[i].name);
            free(names);
            names = longer;
            json_object_array_add(list, cli_json_text(filters[i].name));
        }
    json_object_object_add(d->whole, "filters", list);
    doctor_say(d, "filters", "%s (lzf and blosc come with h5cow)", names);
    doctor_say(d, "", "A program may use a libhdf5 of its own, as Python wheels do: see --program.");
    H5Eclear2(H5E_DEFAULT);
    free(version);
    free(names);
}

/* The words of the command behind --program, which are none of ours; NULL: it is not asked for. */
static char **split_program(int *argc, char **argv)
{
    char **command = NULL;

    for (int i = 1; command == NULL && i < *argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--program") == 0) {
            command = argv + i + 1;
            if (*command != NULL && strcmp(*command, "--") == 0)
                command++;
            *argc = i;
            argv[i] = NULL;
        }
    return command;
}

int cli_doctor(int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    char *directory, *looked = NULL, **command = split_program(&argc, argv);
    doctor d = {0};
    size_t count;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(cli_doctor_help, stdout);
            return cli_flush();
        }
        if (c == 'j')
            d.json = true;
        else
            return cli_no_option("doctor", argv);
    }
    if (argc - optind > 1)
        return cli_usage("doctor", "one file at a time");
    if (command != NULL && *command == NULL)
        return cli_usage("doctor", "which command shall run?");
    d.whole = json_object_new_object();
    d.problems = json_object_new_array();
    json_object_object_add(d.whole, "h5cow", cli_json_text(H5COW_VERSION));
    directory = cli_plugin_directory(&looked);
    doctor_say(&d, "h5cow", "%s", H5COW_VERSION);
    look_at_plugin(&d, directory, looked); /* before HDF5 is used here: it starts a child with the real environment */
    look_at_programs(&d, directory);
    look_at_options(&d);
    look_at_environment(&d);
    if (command != NULL)
        doctor_program(&d, command);
    char *driver = chosen_driver() == NULL ? NULL : cli_strdup(chosen_driver());
    cli_hdf5_start();
    look_at_library(&d);
    if (optind < argc)
        doctor_file(&d, argv[optind], driver);
    json_object_object_add(d.whole, "problems", d.problems);
    count = json_object_array_length(d.problems);
    if (!d.json) {
        puts(count == 0 ? "\nAll is well." : "");
        for (size_t i = 0; i < count; i++)
            printf("Problem: %s.\n", json_object_get_string(json_object_array_get_idx(d.problems, i)));
    }
    free(driver);
    free(directory);
    free(looked);
    if (!d.json)
        json_object_put(d.whole);
    if ((d.json ? cli_json(d.whole) : cli_flush()) != 0)
        return CLI_FAILED;
    return count == 0 ? CLI_OK : CLI_DAMAGED;
}
