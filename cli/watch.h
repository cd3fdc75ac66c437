/* What a program has loaded, and every program that it starts: the lists of mapped files under /proc, read while they
 * run. Often in the beginning, then after each eighth of the time that it has run, at least four times a second: only what
 * comes and goes in between, or in the last moment, is missed. Nothing is done to the programs.
 *
 * Such a list is long, and the kernel has no event for it. So a look asks first whether a program has got, or given up, code
 * since the last one, is another program, or has a new process beside it: three short files. At times everything is read
 * all the same, since these are sums. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What changes when a process gets code, or becomes another program; zeros: not known. */
typedef struct cli_image {
    unsigned long long space; /* bytes of address space */
    unsigned long long stack; /* where its stack begins: elsewhere for each program */
    unsigned long long code;  /* kB of code in libraries */
} cli_image;

typedef struct cli_process {
    pid_t pid;
    const struct cli_process
        *parent;   /* or what the same process was before it became another program; NULL: the first */
    char *program; /* its file */
    bool own;      /* this command: what it loads is not of interest */
    bool ended;
    cli_image image;  /* before the rest was read */
    bool environment; /* the next three are known */
    char *connector, *search,
        *preload; /* HDF5_VOL_CONNECTOR, _PLUGIN_PATH and _PLUGIN_PRELOAD as it began last, or NULL */
    char **files; /* that it runs code of */
    size_t count, room;
} cli_process;

typedef struct cli_watch {
    bool blind; /* there is no /proc: nothing is seen */
    cli_process **processes;
    size_t count, room;
    char *self;
    struct timespec began;
    int64_t thorough; /* nanoseconds after that, when the next look reads everything */
    long newest;      /* process that the system has started, at the last look; 0: not known */
} cli_watch;

cli_watch *cli_watch_new(void);
/* Looks at CHILD and what it has started. How long to wait until the next look. */
struct timespec cli_watch_look(cli_watch *watch, pid_t child);
void cli_watch_free(cli_watch *watch);

#endif
