/* Contract: pager.h. */
#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager = -1;

/* Is NAME a program in PATH? */
static bool installed(const char *name)
{
    const char *path = getenv("PATH");

    for (const char *p = path == NULL ? "/usr/bin:/bin" : path; *p != '\0'; p += *p == ':') {
        char file[4096];
        size_t length = strcspn(p, ":");
        if (snprintf(file, sizeof file, "%.*s/%s", (int)length, p, name) < (int)sizeof file && access(file, X_OK) == 0)
            return true;
        p += length;
    }
    return false;
}

static const char *chosen(void)
{
    const char *own = getenv("H5COW_PAGER"), *users = getenv("PAGER"), *name = own != NULL ? own : users;

    if (name == NULL)
        return installed("less") ? "less" : NULL;
    return *name == '\0' || strcmp(name, "cat") == 0 ? NULL : name;
}

/* Ctrl-C is the pager's, and it sees the end of what it is given. */
static void wait_for_pager(void)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    fflush(stdout);
    close(STDOUT_FILENO);
    while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
        ;
}

bool cli_pager_terminal(void)
{
    return pager > 0 || isatty(STDOUT_FILENO);
}

void cli_pager_start(void)
{
    const char *terminal = getenv("TERM"), *command = chosen();
    int ends[2];

    if (!isatty(STDOUT_FILENO) || command == NULL || terminal == NULL || strcmp(terminal, "dumb") == 0 ||
        pipe2(ends, O_CLOEXEC) < 0)
        return;
    fflush(stdout);
    if ((pager = fork()) == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("LESS", "FRX", 0); /* what fits is printed, and stays on the screen */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    if (pager > 0 && dup2(ends[1], STDOUT_FILENO) >= 0)
        atexit(wait_for_pager);
    close(ends[1]);
}
