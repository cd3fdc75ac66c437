/* h5cow doctor: what is installed, what the environment says, and what is wrong with it, or with a file. */
#include "common.h"
#include "history/history.h"
#include "plugin.h"
#include "tables.h"

#include "error.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Usage: h5cow doctor [FILE]\n\n"
    "Says whether the plugin is found and loads, which libhdf5 is used, what the environment does to it, and with FILE\n"
    "whether that file has history, and why not. Exit code 1: something is wrong, and it says what to do.\n\n"
    "  -h, --help\n";

typedef struct findings {
    char **text;
    size_t count;
} findings;

static void wrong(findings *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void wrong(findings *f, const char *format, ...)
{
    char *text = NULL;
    va_list list;

    va_start(list, format);
    int n = vasprintf(&text, format, list);
    va_end(list);
    if (n < 0)
        return;
    f->text = cli_grow(f->text, f->count + 1, sizeof *f->text);
    f->text[f->count++] = text;
}

/* ---- the environment ---- */

static const char *const variables[] = {"HDF5_VOL_CONNECTOR", "HDF5_PLUGIN_PATH",     "HDF5_PLUGIN_PRELOAD",
                                        "HDF5_DRIVER",        "HDF5_DRIVER_CONFIG",   "HDF5_USE_FILE_LOCKING"};

static void look_at_environment(findings *f, const char *directory)
{
    const char *connector = getenv("HDF5_VOL_CONNECTOR"), *driver = getenv("HDF5_DRIVER"),
               *path = getenv("HDF5_PLUGIN_PATH"), *preload = getenv("HDF5_PLUGIN_PRELOAD");
    bool any = false, reachable = false;

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value != NULL)
            printf("%s%s=%s\n", any ? "             " : "environment  ", variables[i], value);
        any = any || value != NULL;
    }
    if (!any)
        printf("environment  no HDF5_ variable is set\n");
    if (preload != NULL && strcmp(preload, "::") == 0)
        wrong(f, "HDF5_PLUGIN_PRELOAD=:: forbids HDF5 to load plugins: unset it");
    if (driver != NULL && *driver != '\0' && strcmp(driver, "sec2") != 0)
        wrong(f, "HDF5_DRIVER=%s: files that are made with another driver than sec2 have no history: unset it", driver);
    if (connector == NULL || *connector == '\0')
        return;
    size_t n = strcspn(connector, " \t");
    if (n != 5 || strncmp(connector, "h5cow", 5) != 0) {
        wrong(f, "HDF5_VOL_CONNECTOR names another connector: programs have no history unless 'h5cow run' starts them");
        return;
    }
    char *copy = cli_strdup(path == NULL ? "" : path), *rest = copy;
    for (char *folder; (folder = strsep(&rest, ":")) != NULL;) {
        char *plugin = cli_format("%s/" CLI_PLUGIN_FILE, folder);
        reachable = reachable || (*folder != '\0' && access(plugin, F_OK) == 0);
        free(plugin);
    }
    free(copy);
    if (!reachable && directory != NULL)
        wrong(f,
              "HDF5_VOL_CONNECTOR names h5cow, but no folder of HDF5_PLUGIN_PATH has " CLI_PLUGIN_FILE ": most programs "
              "then go on without history; set HDF5_PLUGIN_PATH=%s, or use 'h5cow run'",
              directory);
}

/* ---- plugin and library ---- */

static void look_at_plugin(findings *f, const char *directory, const char *looked)
{
    const char *connector = getenv("HDF5_VOL_CONNECTOR");
    const char *options = connector != NULL && strncmp(connector, "h5cow ", 6) == 0 ? connector + 6 : "";
    char why[1024];

    if (directory == NULL) {
        printf("plugin       not found\n");
        wrong(f, "the plugin " CLI_PLUGIN_FILE " is nowhere (looked in %s): install h5cow, or set HDF5_PLUGIN_PATH to its "
                 "folder", looked);
        return;
    }
    int loads = cli_plugin_probe(directory, options, why, sizeof why) == 0;
    printf("plugin       %s/" CLI_PLUGIN_FILE ", %s\n", directory, loads ? "loads" : "does not load");
    if (!loads)
        wrong(f, "the plugin cannot be used: %s", why);
}

static void look_at_library(findings *f)
{
    static const struct {
        H5Z_filter_t id;
        const char *name;
    } filters[] = {{H5Z_FILTER_DEFLATE, "gzip"}, {H5Z_FILTER_SHUFFLE, "shuffle"}, {H5Z_FILTER_FLETCHER32, "fletcher32"},
                   {H5Z_FILTER_SZIP, "szip"},    {H5Z_FILTER_NBIT, "nbit"},       {H5Z_FILTER_SCALEOFFSET, "scaleoffset"},
                   {32000, "lzf"},               {32001, "blosc"}};
    unsigned major = 0, minor = 0, release = 0;
    hbool_t threadsafe = false;
    const char *separator = "";
    Dl_info where;

    H5get_libversion(&major, &minor, &release);
    H5is_library_threadsafe(&threadsafe);
    printf("libhdf5      %u.%u.%u, %s, thread-safe: %s\n", major, minor, release,
           dladdr((void *)(uintptr_t)H5open, &where) != 0 && where.dli_fname != NULL ? where.dli_fname : "?",
           threadsafe ? "yes" : "no");
    if (major < 1 || (major == 1 && minor < 14))
        wrong(f, "libhdf5 %u.%u.%u is too old for h5cow: it needs 1.14 or newer", major, minor, release);
    else if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR)
        wrong(f, "this h5cow is built for libhdf5 %d.%d and refuses to work with %u.%u.%u: build it for this one",
              H5_VERS_MAJOR, H5_VERS_MINOR, major, minor, release);
    printf("filters      ");
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (H5Zfilter_avail(filters[i].id) > 0 || filters[i].id >= 32000) {
            printf("%s%s", separator, filters[i].name);
            separator = ", ";
        }
    printf(" (lzf and blosc come with h5cow)\n");
    H5Eclear2(H5E_DEFAULT);
    printf("             A program may use a libhdf5 of its own, as Python wheels do: 'h5cow run' tells if h5cow was not "
           "used.\n");
}

/* ---- a file ---- */

static void look_at_file(findings *f, const char *name)
{
    char why[1200];
    cli_version *rows = NULL;
    size_t count = 0;
    cli_file file;

    if (cli_file_try(&file, name, why, sizeof why) != 0) {
        printf("file         %s\n", why);
        wrong(f, "%s", why);
        return;
    }
    int versioned = cow_file_versioned(file.loc.object);
    if (versioned < 0) {
        cli_reason(why, sizeof why);
        printf("file         %s: has history that cannot be used\n", file.name);
        wrong(f, "%s: %s", file.name, why);
    } else if (versioned == 0) {
        bool foreign = H5Lexists(file.id, "/_versioned_data", H5P_DEFAULT) > 0;
        printf("file         %s: no history\n", file.name);
        if (foreign)
            wrong(f, "'%s' has a group /_versioned_data that h5cow did not make (versioned-hdf5 uses that name): h5cow "
                     "leaves the file alone", file.name);
        else
            wrong(f, "'%s' was created without h5cow, or with a driver other than sec2: a file has history when it is "
                     "created through h5cow ('h5cow run -- h5repack %s NEW' makes a copy that has)", file.name, file.name);
    } else if (cli_versions_read(&file, &rows, &count, why, sizeof why) < 0) {
        printf("file         %s: has history that cannot be read\n", file.name);
        wrong(f, "'%s' is damaged: %s; 'h5cow verify %s' says what is left", file.name, why, file.name);
    } else {
        printf("file         %s: %zu version%s", file.name, count, count == 1 ? "" : "s");
        if (count > 0)
            printf(", the newest is '%s'%s", cli_clean(rows[count - 1].name, true),
                   rows[count - 1].open ? ", not finished by a close" : "");
        printf("\n");
    }
    cli_versions_free(rows, count);
    cow_error_clear();
    cli_file_close(&file);
}

int cli_doctor(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    char *directory, *looked = NULL;
    findings f = {0};

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(help, stdout);
            return cli_flush();
        }
        return cli_usage("doctor", "there is no option '%s'", argv[optind - 1]);
    }
    if (argc - optind > 1)
        return cli_usage("doctor", "one file at a time");
    directory = cli_plugin_directory(&looked);
    printf("h5cow        " H5COW_VERSION "\n");
    look_at_plugin(&f, directory, looked); /* before HDF5 is used here: it starts a child with the real environment */
    look_at_environment(&f, directory);
    cli_hdf5_start();
    look_at_library(&f);
    if (optind < argc)
        look_at_file(&f, argv[optind]);
    printf(f.count == 0 ? "\nAll is well.\n" : "\n");
    for (size_t i = 0; i < f.count; i++) {
        printf("Problem: %s.\n", f.text[i]);
        free(f.text[i]);
    }
    free(f.text);
    free(directory);
    free(looked);
    if (cli_flush() != 0)
        return CLI_FAILED;
    return f.count == 0 ? CLI_OK : CLI_DAMAGED;
}
