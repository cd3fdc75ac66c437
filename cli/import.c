/* h5cow import: a plain HDF5 file gets a history. What is done, and in which order: connector/import/import.c.
 *
 * It runs in a child process: libhdf5 may crash on a damaged file, and a signal may end it anywhere. Whatever happens
 * to the child, this process takes away the unfinished file. */
#include "child.h"
#include "common.h"
#include "plugin.h"

#include "base/error.h"
#include "base/options.h"
#include "import/import.h"
#include "output.h"
#include "progress.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char cli_import_help[] =
    "Usage: h5cow import [OPTION]... PLAIN [OUT]\n\n"
    "Gives the HDF5 file PLAIN a history: what is in it becomes version 1, and programs that h5cow runs add the next\n"
    "ones. With OUT, PLAIN stays as it is and OUT, which must not exist, is the file with history.\n"
    "The new file is written beside, compared with PLAIN, and takes its place when it is complete and on disk; if\n"
    "anything fails, nothing has changed. PLAIN must not be open in any program.\n\n"
    "  -m, --message=TEXT    recorded in version 1\n"
    "      --name=NAME       name of the version, instead of 1\n"
    "  -o, --option=KEY=VALUE\n"
    "                        any option of the connector (docs/options.md), for example compress=blosc:zstd:5\n"
    "      --drop-unlinked   in place: references to objects that no link leads to become null, and these are lost\n"
    "  -q, --quiet           no progress bar\n"
    "  -h, --help\n";

typedef struct bar {
    uint64_t done[2], total;
} bar;

static void show(void *context, cow_import_phase phase, uint64_t bytes)
{
    static const char *const what[] = {[COW_IMPORT_COPYING] = "copying ", [COW_IMPORT_CHECKING] = "checking"};
    bar *b = context;

    b->done[phase] += bytes;
    cli_progress(what[phase], b->done[phase], b->total);
}

static const char *plural(size_t n)
{
    return n == 1 ? "" : "s";
}

static void tell_nulls(const cow_tree_nulls *nulls, const char *led_to)
{
    char where[sizeof nulls->where + 60];

    cow_tree_nulls_where(nulls, where, sizeof where);
    if (nulls->count > 0)
        cli_warn("%zu reference%s pointed to %s, and %s null now%s", nulls->count, plural(nulls->count), led_to,
                 nulls->count == 1 ? "is" : "are", where);
}

/* What the verb was given. */
typedef struct request {
    const char *from, *to; /* to: NULL, in place */
    char *options;         /* of the connector */
    bool message;          /* one of them is a message */
    bool drop_unlinked;
} request;

static int work(const request *r, cow_newfile *new)
{
    const char *from = r->from, *to = r->to;
    bar b = {0};
    cow_import import = {
        .from = from, .to = to, .drop_unlinked = r->drop_unlinked, .new = new, .progress = show, .context = &b};
    struct stat about;
    void *info;

    cli_hdf5_start();
    if ((import.connector = cli_plugin_load(r->options, &info)) < 0)
        return CLI_FAILED;
    import.info = info;
    if (stat(from, &about) == 0)
        b.total = (uint64_t)about.st_size;
    int failed = cow_import_file(&import);
    cli_progress_end();
    cli_plugin_unload(import.connector, info);
    if (failed < 0)
        return cli_fail("%s; nothing was changed", import.why);
    if (import.lost_history)
        cli_warn("the older versions of '%s' are not in '%s', which begins with the newest state", from, to);
    tell_nulls(&import.dangling, "nothing");
    tell_nulls(&import.unlinked, "objects that no link leads to (deleted, or kept by a reference count alone)");
    if (import.external > 0)
        cli_warn("the data of %zu dataset%s is in other files (external storage): it stays there, and has no history",
                 import.external, plural(import.external));
    if (import.virtual > 0)
        cli_warn(
            "%zu virtual dataset%s: what %s made of is kept, the data of the sources in other files has no history",
            import.virtual, plural(import.virtual), import.virtual == 1 ? "it is" : "they are");
    if (import.other_names > 0)
        cli_warn("'%s' has %zu other name%s (hard links), which go on leading to the plain file as it was", from,
                 import.other_names, plural(import.other_names));
    if (!import.kept_owner)
        cli_warn("owner, permissions or extended attributes of '%s' could not all be kept: look at them", from);
    printf("%s has a history: version 1 has its %zu object%s\n", to == NULL ? from : to, import.objects,
           plural(import.objects));
    return cli_flush();
}

/* ---- the child process ---- */

static volatile pid_t child;

static void pass_on(int number)
{
    if (child > 0)
        kill(child, number);
}

/* Signals that end other verbs. None that this process ignores, as under nohup, or in the background of a shell. */
static void find_ending(sigset_t *ending)
{
    static const int ended_by[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};
    struct sigaction now;

    sigemptyset(ending);
    for (size_t i = 0; i < sizeof ended_by / sizeof *ended_by; i++)
        if (sigaction(ended_by[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaddset(ending, ended_by[i]);
}

static void each(const sigset_t *signals, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};

    for (int number = 1; number < NSIG; number++)
        if (sigismember(signals, number) > 0)
            sigaction(number, &action, NULL);
}

static int supervise(const request *r)
{
    const char *from = r->from, *to = r->to;
    char *target = to != NULL ? cli_strdup(to) : realpath(from, NULL);
    cow_newfile new = COW_NEWFILE_NONE;
    sigset_t ending, before;
    int state = 0, status = CLI_FAILED, ended_by = 0;
    char text[1024];

    find_ending(&ending);
    each(&ending, pass_on);
    sigprocmask(SIG_BLOCK, &ending, &before); /* none may come before there is a child to end */
    if (target == NULL) {
        cli_fail("cannot read '%s': %s", from, strerror(errno));
        goto done;
    }
    if (cow_newfile_make(&new, target) < 0) {
        cli_fail("%s; nothing was changed", cli_reason(text, sizeof text));
        goto done;
    }
    fflush(NULL);
    pid_t parent = getpid();
    if ((child = fork()) < 0) {
        cli_fail("cannot start a process: %s", strerror(errno));
        goto done;
    }
    if (child == 0) {
        each(&ending, SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it was killed before that: nobody waits for what is made */
            _exit(CLI_FAILED);
        cli_child_quiet();
        int code = work(r, &new);
        fflush(NULL);
        _exit(code);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    child = 0;
    if (WIFEXITED(state)) {
        status = WEXITSTATUS(state);
        goto done;
    }
    /* The new file may be complete and in place: then there is no temporary one any more. */
    bool unfinished = access(new.name, F_OK) == 0;
    int number = WTERMSIG(state);
    if (number == SIGPIPE || sigismember(&ending, number) > 0)
        ended_by = number;
    if (number == SIGPIPE) /* nobody reads what it says */
        goto done;
    if (cli_is_crash(number) && unfinished)
        cli_fail("the HDF5 library ends with '%s' on '%s', which seems to be damaged; nothing was changed",
                 strsignal(number), from);
    else
        cli_fail("ended by a signal (%s); %s", strsignal(number),
                 unfinished ? "nothing was changed" : "see whether the file has a history: h5cow doctor");
done:
    cow_newfile_drop(&new);
    sigprocmask(SIG_SETMASK, &before, NULL);
    free(target);
    each(&ending, SIG_DFL);
    if (ended_by != 0)
        raise(ended_by); /* so it ends as the other verbs do */
    return status;
}

/* -1; or the exit code, after saying why or printing the help. */
static int understand(int argc, char **argv, request *r)
{
    static const struct option options[] = {
        {"message", required_argument, NULL, 'm'},
        {"name", required_argument, NULL, 'n'},
        {"option", required_argument, NULL, 'o'},
        {"drop-unlinked", no_argument, NULL, 'd'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char *equals;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":m:o:qh", options, NULL)) != -1;)
        switch (c) {
        case 'm':
            cli_plugin_option(&r->options, "message", 7, optarg);
            r->message = true;
            break;
        case 'n':
            if (cow_version_name_not_reserved("--name", optarg) < 0)
                return cli_usage("import", "%s", cow_error_message());
            cli_plugin_option(&r->options, "name", 4, optarg);
            break;
        case 'o':
            if ((equals = strchr(optarg, '=')) == NULL)
                return cli_usage("import", "'%s' is not KEY=VALUE", optarg);
            cli_plugin_option(&r->options, optarg, (size_t)(equals - optarg), equals + 1);
            r->message = r->message || strncmp(optarg, "message=", 8) == 0;
            break;
        case 'd':
            r->drop_unlinked = true;
            break;
        case 'q':
            cli_progress_off();
            break;
        case 'h':
            fputs(cli_import_help, stdout);
            return cli_flush();
        case ':':
            return cli_usage("import", "option '%s' wants a value", argv[optind - 1]);
        default:
            return cli_no_option("import", argv);
        }
    if (optind + 1 != argc && optind + 2 != argc)
        return cli_usage("import", "it wants PLAIN, and perhaps OUT");
    r->from = argv[optind];
    r->to = optind + 2 == argc ? argv[optind + 1] : NULL;
    return -1;
}

int cli_import(int argc, char **argv)
{
    request r = {.options = cli_strdup("")};
    cow_options *checked = NULL;
    char why[1200];
    int status = understand(argc, argv, &r);

    if (status >= 0)
        goto done;
    status = CLI_FAILED;
    if ((checked = cow_options_parse(r.options)) == NULL) {
        cli_fail("%s; nothing was changed", cow_error_message());
        goto done;
    }
    if (cli_must_be_hdf5(r.from, why, sizeof why) != 0) {
        cli_fail("%s", why);
        goto done;
    }
    if (r.to != NULL && cli_output_absent(r.to) != 0)
        goto done;
    if (!r.message) {
        char *what = cli_format("imported from %s", r.from);
        cli_plugin_option(&r.options, "message", 7, what);
        free(what);
    }
    status = supervise(&r);
done:
    cow_options_free(checked);
    free(r.options);
    return status;
}
