/* h5cow run: set the environment, make sure that it works, run the program, look whether it was of any use. */
#include "common.h"
#include "plugin.h"

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

static const char help[] =
    "Usage: h5cow run [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
    "Runs COMMAND so that every HDF5 file it creates has history, and every file with history that it changes gets\n"
    "a new version. The command itself need not know. Its exit code is passed on (128 + N when signal N ended it;\n"
    "126 or 127 when it cannot be run).\n\n"
    "  -m, --message=TEXT    recorded in the versions that are made\n"
    "      --at=REV          the command sees version REV of the files it opens, read-only\n"
    "      --name=NAME       name of the version, instead of the next number\n"
    "  -o, --option=KEY=VALUE  any option of the connector (docs/options.md), for example compress=blosc:zstd:5\n"
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

int cli_run(int argc, char **argv)
{
    static const struct option options[] = {
        {"message", required_argument, NULL, 'm'}, {"at", required_argument, NULL, 'a'},
        {"name", required_argument, NULL, 'n'},    {"option", required_argument, NULL, 'o'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    char *text = cli_strdup(""), *directory = NULL, *looked = NULL, *search = NULL, *connector = NULL, *witness = NULL;
    char why[1024];
    const char *folder = getenv("TMPDIR");
    int status = CLI_FAILED, file;
    struct stat seen;
    bool ran;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "+:m:o:h", options, NULL)) != -1;) {
        const char *equals;
        switch (c) {
        case 'm':
            cli_plugin_option(&text, "message", 7, optarg);
            break;
        case 'a':
            cli_plugin_option(&text, "at", 2, optarg);
            break;
        case 'n':
            cli_plugin_option(&text, "name", 4, optarg);
            break;
        case 'o':
            if ((equals = strchr(optarg, '=')) == NULL || equals == optarg) {
                cli_usage("run", "-o wants KEY=VALUE, not '%s'", optarg);
                goto done;
            }
            cli_plugin_option(&text, optarg, (size_t)(equals - optarg), equals + 1);
            break;
        case 'h':
            fputs(help, stdout);
            status = cli_flush();
            goto done;
        default:
            cli_usage("run", c == ':' ? "the option '%s' wants a value" : "there is no option '%s'", argv[optind - 1]);
            goto done;
        }
    }
    if (optind == argc) {
        cli_usage("run", "which command shall run?");
        goto done;
    }
    if ((directory = cli_plugin_directory(&looked)) == NULL) {
        cli_fail("the plugin " CLI_PLUGIN_FILE " is nowhere (looked in %s): install h5cow, or set HDF5_PLUGIN_PATH to "
                 "its folder; '%s' was not run",
                 looked, argv[optind]);
        goto done;
    }
    if (cli_plugin_probe(directory, text, why, sizeof why) < 0) {
        cli_fail("the plugin %s/" CLI_PLUGIN_FILE " cannot be used: %s; '%s' was not run", directory, why,
                 argv[optind]);
        goto done;
    }
    /* absolute: the command may change its folder before it opens a file */
    char *absolute = realpath(folder == NULL || *folder == '\0' ? "/tmp" : folder, NULL);
    witness = cli_format("%s/h5cow-XXXXXX", absolute == NULL ? "/tmp" : absolute);
    free(absolute);
    if ((file = mkstemp(witness)) < 0) {
        cli_fail("cannot make a temporary file in '%s': %s", witness, strerror(errno));
        free(witness);
        witness = NULL;
        goto done;
    }
    close(file);
    search = cli_plugin_search_path(directory);
    connector = cli_plugin_connector(text);
    setenv("HDF5_PLUGIN_PATH", search, 1);
    setenv("HDF5_VOL_CONNECTOR", connector, 1);
    setenv("H5COW_WITNESS", witness, 1);
    status = run_command(argv + optind, &ran);
    if (ran && stat(witness, &seen) == 0 && seen.st_size == 0)
        cli_warn("no HDF5 file was opened through h5cow, so there is no new version: '%s' uses no HDF5, or one that "
                 "loads no plugins (older than 1.14, statically linked, its own connector)",
                 argv[optind]);
done:
    if (witness != NULL)
        unlink(witness);
    free(witness);
    free(connector);
    free(search);
    free(looked);
    free(directory);
    free(text);
    return status;
}
