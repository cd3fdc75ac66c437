/* h5cow run: set the environment, make sure that it works, run the program, look whether it was of any use. */
#include "common.h"
#include "error.h"
#include "options.h"
#include "plugin.h"
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char cli_run_help[] =
    "Usage: h5cow run [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
    "Runs COMMAND so that every HDF5 file it creates has history, and every file with history that it changes gets\n"
    "a new version. The command itself need not know. Its exit code is passed on (128 + N when signal N ended it;\n"
    "126 or 127 when it cannot be run).\n\n"
    "What was not recorded is said on standard error when the command has ended: that no HDF5 file was opened through\n"
    "h5cow, that a file without history was changed, that there is no version to have the message or name.\n\n"
    "  -m, --message=TEXT    recorded in the versions that are made\n"
    "      --at=REV          the command sees version REV of the files it opens, read-only\n"
    "      --name=NAME       name of the version, instead of the next number\n"
    "  -o, --option=KEY=VALUE\n"
    "                        any option of the connector (docs/options.md), for example compress=blosc:zstd:5\n"
    "  -q, --quiet           do not say what was not recorded\n"
    "  -h, --help\n\n"
    "Example: h5cow run -m 'second calibration' -- python3 calibrate.py run42.h5\n";

/* Wait for CHILD and pass on the signals that were sent to this process alone; those of the terminal reach the child by
 * themselves. SIGNALS are blocked, so that none is lost. */
static int wait_for(pid_t child, const sigset_t *signals)
{
    int state;

    for (;;) {
        siginfo_t info;
        pid_t ended = waitpid(child, &state, WNOHANG);

        if (ended == child && WIFEXITED(state))
            return WEXITSTATUS(state);
        if (ended == child && WIFSIGNALED(state))
            return 128 + WTERMSIG(state);
        if (ended < 0 && errno != EINTR)
            return cli_fail("cannot wait for the command: %s", strerror(errno));
        int number = sigwaitinfo(signals, &info);
        if (number > 0 && number != SIGCHLD && info.si_code <= 0)
            kill(child, number);
    }
}

/* The exit code of the command; *RAN false when it could not be started. */
static int run_command(char **command, bool *ran)
{
    static const int passed_on[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    sigset_t signals, before;
    int ends[2], error = 0;
    pid_t child;

    *ran = false;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&signals, passed_on[i]);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_BLOCK, &signals, &before);
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) < 0 || (child = fork()) < 0)
        return cli_fail("cannot start '%s': %s", command[0], strerror(errno));
    if (child == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(command[0], command);
        error = errno;
        ssize_t told = write(ends[1], &error, sizeof error);
        _exit(told < 0 ? 126 : 127);
    }
    close(ends[1]);
    ssize_t n;
    while ((n = read(ends[0], &error, sizeof error)) < 0 && errno == EINTR)
        ;
    close(ends[0]);
    *ran = n == 0;
    int code = wait_for(child, &signals);
    if (*ran)
        return code;
    cli_fail("cannot run '%s': %s", command[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

/* ---- what the command did, as the connector saw it: witness.h ---- */

typedef struct seen {
    bool opened, version;
    bool told;    /* by a `run` that the command started */
    size_t plain; /* files without history that were written */
    char *first;  /* the first of them */
} seen;

static void free_record(json_object *object, void *record)
{
    (void)object;
    free(record);
}

/* Files that differ from what they were when they were opened for the first time. PLAIN: names and records. */
static void count_plain(seen *what, json_object *plain)
{
    json_object_object_foreach(plain, name, value)
    {
        const char *record = json_object_get_userdata(value);
        long long size = -1, time = -1;
        struct stat now;

        if (stat(name, &now) < 0 || sscanf(record, "%lld %lld ", &size, &time) != 2 ||
            (size == now.st_size && time == cow_changed_at(&now)))
            continue;
        if (what->plain++ == 0)
            what->first = cli_strdup(name);
    }
}

static void look(const char *witness, seen *what)
{
    json_object *plain = json_object_new_object(), *value;
    FILE *file = fopen(witness, "re");
    char *record = NULL;
    size_t room = 0;

    what->opened = what->version = file == NULL; /* it was removed: then nothing is known, and nothing told */
    for (ssize_t n; file != NULL && (n = getdelim(&record, &room, '\0', file)) > 0;) {
        what->opened |= record[0] == COW_WITNESS_OPENED;
        what->version |= record[0] == COW_WITNESS_VERSION;
        what->told |= record[0] == COW_WITNESS_RUN;
        char *name = record[0] == COW_WITNESS_PLAIN ? strchr(record, '/') : NULL;
        if (name == NULL || json_object_object_get_ex(plain, name, NULL))
            continue;
        value = json_object_new_object();
        json_object_set_userdata(value, cli_strdup(record + 1), free_record);
        json_object_object_add(plain, name, value);
    }
    if (file != NULL)
        fclose(file);
    free(record);
    count_plain(what, plain);
    json_object_put(plain);
}

/* One line for each thing that the user may not expect. */
static void tell(const seen *what, const char *command, const char *named)
{
    if (!what->opened && !what->told)
        cli_warn("no HDF5 file was opened through h5cow, so there is no new version: '%s' uses no HDF5, or one that "
                 "loads no plugins (older than 1.14, statically linked, its own connector)",
                 command);
    else if (what->opened && named != NULL && !what->version)
        cli_warn("no file with history was changed, so there is no new version, and the %s is recorded nowhere", named);
    if (what->plain == 1)
        cli_warn("'%s' has no history, so this change of it made no version; to give it one from now on: h5cow import "
                 "%s",
                 what->first, what->first);
    else if (what->plain > 1)
        cli_warn("%zu files without history were changed, which made no versions; to give one a history from now on: "
                 "h5cow import %s",
                 what->plain, what->first);
}

/* The `run` that this one runs in hears of it: what was told here is not told again. */
static void pass_up(const seen *what)
{
    cow_witness(COW_WITNESS_RUN, "h5cow run");
    if (what->opened)
        cow_witness(COW_WITNESS_OPENED, "h5cow run");
    if (what->version)
        cow_witness(COW_WITNESS_VERSION, "h5cow run");
}

/* ---- the verb ---- */

typedef struct request {
    char *options;     /* of the connector */
    const char *named; /* "name" or "message", if such a one was given */
    bool quiet;
} request;

/* -1; or the exit code, after saying why or printing the help. */
static int understand(int argc, char **argv, request *r)
{
    static const struct option options[] = {
        {"message", required_argument, NULL, 'm'},
        {"at", required_argument, NULL, 'a'},
        {"name", required_argument, NULL, 'n'},
        {"option", required_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
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
        case 'q':
            r->quiet = true;
            break;
        case 'h':
            fputs(cli_run_help, stdout);
            return cli_flush();
        default:
            return cli_usage("run", c == ':' ? "the option '%s' wants a value" : "there is no option '%s'",
                             argv[optind - 1]);
        }
    }
    return optind == argc ? cli_usage("run", "which command shall run?") : -1;
}

/* A file that the connector can write to. free() its name. NULL: said why. */
static char *make_witness(void)
{
    const char *folder = getenv("TMPDIR");
    /* absolute: the command may change its folder before it opens a file */
    char *absolute = realpath(folder == NULL || *folder == '\0' ? "/tmp" : folder, NULL);
    char *witness = cli_format("%s/h5cow-XXXXXX", absolute == NULL ? "/tmp" : absolute);
    int file = mkostemp(witness, O_CLOEXEC);

    free(absolute);
    if (file >= 0) {
        close(file);
        return witness;
    }
    cli_fail("cannot make a temporary file in '%s': %s", witness, strerror(errno));
    free(witness);
    return NULL;
}

static int run_with(const char *directory, const char *witness, const request *r, char **command)
{
    char *search = cli_plugin_search_path(directory), *connector = cli_plugin_connector(r->options);
    char *outer = getenv(COW_WITNESS_VARIABLE) == NULL ? NULL : cli_strdup(getenv(COW_WITNESS_VARIABLE));
    seen what = {0};
    bool ran;

    setenv("HDF5_PLUGIN_PATH", search, 1);
    setenv("HDF5_VOL_CONNECTOR", connector, 1);
    setenv(COW_WITNESS_VARIABLE, witness, 1);
    int status = run_command(command, &ran);
    if (ran)
        look(witness, &what);
    if (ran && !r->quiet)
        tell(&what, command[0], r->named);
    if (outer != NULL) {
        setenv(COW_WITNESS_VARIABLE, outer, 1);
        pass_up(&what);
    }
    free(what.first);
    free(outer);
    free(search);
    free(connector);
    return status;
}

int cli_run(int argc, char **argv)
{
    request r = {.options = cli_strdup("")};
    char *directory = NULL, *looked = NULL, *witness = NULL, why[1024];
    cow_options *options = NULL;
    int status = understand(argc, argv, &r);

    if (status >= 0)
        goto done;
    status = CLI_FAILED;
    if ((options = cow_options_parse(r.options)) == NULL)
        cli_fail("%s; '%s' was not run", cow_error_message(), argv[optind]);
    else if ((directory = cli_plugin_directory(&looked)) == NULL)
        cli_fail("the plugin " CLI_PLUGIN_FILE " is nowhere (looked in %s): install h5cow, or set HDF5_PLUGIN_PATH to "
                 "its folder; '%s' was not run",
                 looked, argv[optind]);
    else if (cli_plugin_probe(directory, r.options, why, sizeof why) < 0)
        cli_fail("the plugin %s/" CLI_PLUGIN_FILE " cannot be used: %s; '%s' was not run", directory, why,
                 argv[optind]);
    else if ((witness = make_witness()) != NULL)
        status = run_with(directory, witness, &r, argv + optind);
    if (witness != NULL)
        unlink(witness);
done:
    cow_options_free(options);
    free(witness);
    free(looked);
    free(directory);
    free(r.options);
    return status;
}
