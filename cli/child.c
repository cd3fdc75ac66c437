/* Starting a program and waiting for it: see child.h. */
#include "child.h"

#include "common.h"
#include "journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void (*size_limit)(int) = SIG_DFL; /* what SIGXFSZ did to this process, and does to the programs it starts */

void cli_child_settle(void)
{
    /* Else the file that a verb writes would take the place of one that is closed, and get what is printed. The folder can
     * be neither read nor written, so that a print fails as it would have. Programs that are started have it closed. */
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0)
            _exit(CLI_FAILED);
    size_limit = signal(SIGXFSZ, SIG_IGN);
}

void cli_child_quiet(void)
{
#ifndef __SANITIZE_ADDRESS__ /* what that finds it writes in the same way */
    int own = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE *to = own < 0 ? NULL : fdopen(own, "w");

    if (to != NULL && nowhere >= 0 && dup2(nowhere, STDERR_FILENO) >= 0) {
        setvbuf(to, NULL, _IONBF, 0);
        stderr = to;
    } else if (to != NULL)
        fclose(to);
    if (nowhere >= 0)
        close(nowhere);
#endif
}

bool cli_is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT || signal == SIGFPE || signal == SIGILL;
}

/* Wait for CHILD and pass on the signals that were sent to this process alone; those of the terminal reach the child by
 * themselves. SIGNALS are blocked, so that none is lost. */
static int wait_for(pid_t child, const sigset_t *signals, cli_watch *watch)
{
    int state;

    for (;;) {
        siginfo_t info;
        pid_t ended = waitpid(child, &state, WNOHANG);
        int number;

        if (ended == child && WIFEXITED(state))
            return WEXITSTATUS(state);
        if (ended == child && WIFSIGNALED(state))
            return 128 + WTERMSIG(state);
        if (ended < 0 && errno != EINTR)
            return cli_fail("cannot wait for the command: %s", strerror(errno));
        if (watch == NULL)
            number = sigwaitinfo(signals, &info);
        else {
            const struct timespec pause = cli_watch_look(watch, child);
            number = sigtimedwait(signals, &info, &pause);
        }
        if (number > 0 && number != SIGCHLD && info.si_code <= 0)
            kill(child, number);
    }
}

int cli_child_run(char **command, int out, cli_watch *watch, bool *ran)
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
        signal(SIGXFSZ, size_limit);
        sigprocmask(SIG_SETMASK, &before, NULL);
        unsetenv(COW_LOOKS_VARIABLE); /* for this command alone */
        if (out == STDOUT_FILENO || dup2(out, STDOUT_FILENO) >= 0)
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
    int code = wait_for(child, &signals, watch);
    if (*ran)
        return code;
    cli_fail("cannot run '%s': %s", command[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}
