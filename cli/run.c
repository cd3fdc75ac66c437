/* h5cow run: set the environment, make sure that it works, run the program, look whether it was of any use. */
#include "base/error.h"
#include "base/options.h"
#include "child.h"
#include "common.h"
#include "heard.h"
#include "journal/protect.h"
#include "libraries.h"
#include "lives.h"
#include "plugin.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char cli_run_help[] =
    "Usage: h5cow run [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
    "Runs COMMAND so that every HDF5 file it creates has history, and every file with history that it changes gets\n"
    "a new version. The command itself need not know. Its exit code is passed on (128 + N when signal N ended it;\n"
    "126 or 127 when it cannot be run). 74: it ended with 0, but something that it wrote is lost.\n\n"
    "What was not recorded is said on standard error when the command has ended: that no HDF5 file was opened through\n"
    "h5cow, that a libhdf5 of a program cannot be served and why, that a file without history was changed, that a file\n"
    "could not be opened since another program has it, that there is no version to have the message or name.\n\n"
    "  -m, --message=TEXT    recorded in the versions that are made\n"
    "      --at=REV          the command sees version REV of the files it opens, read-only\n"
    "      --name=NAME       name of the version, instead of the next number\n"
    "  -o, --option=KEY=VALUE\n"
    "                        any option of the connector (docs/options.md), for example compress=blosc:zstd:5\n"
    "      --writable=FILE   FILE is not protected while the command runs; others may write it then as well\n"
    "  -q, --quiet           do not say what was not recorded; what is lost is said all the same\n"
    "  -h, --help\n\n"
    "Example: h5cow run -m 'second calibration' -- python3 calibrate.py run42.h5\n";

/* The libraries whose programs lose their history, a line each. How many. */
static size_t tell_libraries(const cli_libraries *libraries)
{
    size_t told = 0;

    for (size_t i = 0; i < libraries->count; i++) {
        const cli_library *l = &libraries->library[i];
        if (l->service != CLI_REFUSED)
            continue;
        if (l->program == NULL || strcmp(l->program, l->file) == 0)
            cli_warn("no version is made with HDF5 %s of '%s': %s", l->version, l->file, l->why);
        else
            cli_warn("'%s' makes no version with its libhdf5 %s, '%s': %s", l->program, l->version, l->file, l->why);
        told++;
    }
    return told;
}

/* One line for each thing that the user may not expect. */
static void tell(const cli_heard *heard, const cli_watch *watch, const char *command, const char *named)
{
    bool nothing = !heard->opened && !heard->told;
    cli_libraries libraries = cli_libraries_of(watch, heard, nothing);
    size_t told = tell_libraries(&libraries);

    if (nothing && told == 0)
        cli_warn("no HDF5 file was opened through h5cow, so there is no new version: '%s' uses no HDF5, or one that "
                 "loads no plugins (older than 1.14, statically linked, its own connector)%s",
                 command, watch->blind ? "; without /proc nobody can see which" : "");
    else if (heard->opened && named != NULL && !heard->version)
        cli_warn("no file with history was changed, so there is no new version, and the %s is recorded nowhere", named);
    if (heard->plain == 1)
        cli_warn("'%s' has no history, so this change of it made no version; to give it one from now on: h5cow import "
                 "%s",
                 heard->first, heard->first);
    else if (heard->plain > 1)
        cli_warn("%zu files without history were changed, which made no versions; to give one a history from now on: "
                 "h5cow import %s",
                 heard->plain, heard->first);
    for (size_t i = 0; i < heard->refused_count; i++)
        if (*heard->refused[i].why != '\0')
            cli_warn("'%s' could not open a file: %s", command, heard->refused[i].why);
    cli_libraries_free(&libraries);
}

/* In the end, since standard error of the command may go elsewhere, or scroll away. */
static void tell_lost(const cli_heard *heard, const char *command)
{
    for (size_t i = 0; i < heard->lost_count; i++)
        if (!heard->lost[i].told)
            cli_warn("something that '%s' wrote is not in its file: %s: %s", command, heard->lost[i].name,
                     heard->lost[i].what);
}

/* ---- the verb ---- */

typedef struct request {
    char *options;     /* of the connector */
    const char *named; /* "name" or "message", if such a one was given */
    bool quiet;
    const char **writable; /* files whose protection is lifted */
    size_t count, room;
} request;

/* -1; or the exit code, after saying why or printing the help. */
static int understand(int argc, char **argv, request *r)
{
    static const struct option options[] = {
        {"message", required_argument, NULL, 'm'},  {"at", required_argument, NULL, 'a'},
        {"name", required_argument, NULL, 'n'},     {"option", required_argument, NULL, 'o'},
        {"writable", required_argument, NULL, 'w'}, {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "+:m:o:qh", options, NULL)) != -1;) {
        const char *equals;
        switch (c) {
        case 'm':
            cli_plugin_option(&r->options, "message", 7, optarg);
            r->named = "message";
            break;
        case 'a':
            cli_plugin_option(&r->options, "at", 2, optarg);
            break;
        case 'n':
            if (cow_version_name_not_reserved("--name", optarg) < 0)
                return cli_usage("run", "%s", cow_error_message());
            cli_plugin_option(&r->options, "name", 4, optarg);
            r->named = "name";
            break;
        case 'o':
            if ((equals = strchr(optarg, '=')) == NULL || equals == optarg)
                return cli_usage("run", "-o wants KEY=VALUE, not '%s'", optarg);
            cli_plugin_option(&r->options, optarg, (size_t)(equals - optarg), equals + 1);
            r->named = strncmp(optarg, "name=", 5) == 0      ? "name"
                       : strncmp(optarg, "message=", 8) == 0 ? "message"
                                                             : r->named;
            break;
        case 'w':
            CLI_RESERVE(r->writable, r->room, r->count, 1);
            r->writable[r->count++] = optarg;
            break;
        case 'q':
            r->quiet = true;
            break;
        case 'h':
            fputs(cli_run_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_usage("run", "the option '%s' wants a value", argv[optind - 1])
                            : cli_no_option("run", argv);
        }
    }
    return optind == argc ? cli_usage("run", "which command shall run?") : -1;
}

/* LIFTED: a descriptor for each file, which is protected again with the last of them. 0, or CLI_FAILED after saying why. */
static int lift(const request *r, int *lifted)
{
    for (size_t i = 0; i < r->count; i++)
        lifted[i] = -1;
    for (size_t i = 0; i < r->count; i++)
        if (cow_protection_of(r->writable[i]) != 0 && (lifted[i] = cow_protection_lift(r->writable[i])) < 0)
            return cli_fail("--writable: the protection of '%s' cannot be lifted: %s", r->writable[i], strerror(errno));
        else if (lifted[i] < 0 && access(r->writable[i], F_OK) != 0)
            return cli_fail("--writable: cannot look at '%s': %s", r->writable[i], strerror(errno));
    return 0;
}

static void restore(const request *r, int *lifted)
{
    for (size_t i = 0; i < r->count; i++)
        if (lifted[i] >= 0)
            cow_protection_restore(lifted[i]);
    free(lifted);
}

static int run_with(const char *directory, char *witness, const request *r, char **command)
{
    char *search = cli_plugin_search_path(directory), *connector = cli_plugin_connector(r->options);
    cli_watch *watch = cli_watch_new();
    cli_lives *lives = r->quiet ? NULL : cli_lives_begin(command);
    cli_heard heard;
    bool ran = false;

    setenv("HDF5_PLUGIN_PATH", search, 1);
    setenv("HDF5_VOL_CONNECTOR", connector, 1);
    int *lifted = cli_alloc(r->count + 1, sizeof *lifted), status = lift(r, lifted);
    if (status == 0)
        status = cli_child_run(command, STDOUT_FILENO, watch, &ran);
    restore(r, lifted);
    cli_heard_end(witness, &heard);
    if (ran && !r->quiet)
        tell(&heard, watch, command[0], r->named);
    if (lives != NULL && ran && !heard.told)
        cli_lives_end(lives, &heard);
    if (lives != NULL)
        cli_lives_free(lives);
    tell_lost(&heard, command[0]);
    if (status == CLI_OK && heard.lost_count > 0)
        status = CLI_LOST;
    cli_heard_pass_up(&heard);
    cli_heard_free(&heard);
    cli_watch_free(watch);
    free(search);
    free(connector);
    return status;
}

int cli_run(int argc, char **argv)
{
    request r = {.options = cli_strdup("")};
    char *directory = NULL, *witness = NULL, *after = NULL;
    int status = understand(argc, argv, &r);

    if (status >= 0)
        goto done;
    status = CLI_FAILED;
    after = cli_format("; '%s' was not run", argv[optind]);
    if ((directory = cli_plugin_tried(r.options, after)) != NULL && (witness = cli_heard_begin()) != NULL)
        status = run_with(directory, witness, &r, argv + optind);
done:
    free(after);
    free(directory);
    free(r.options);
    free(r.writable);
    return status;
}
