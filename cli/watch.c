/* Processes and their files: see watch.h. */
#include "watch.h"

#include "common.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHORTEST 1000000   /* nanoseconds between two looks */
#define LONGEST  250000000

cli_watch *cli_watch_new(void)
{
    cli_watch *watch = cli_alloc(1, sizeof *watch);

    watch->self = realpath("/proc/self/exe", NULL);
    watch->blind = watch->self == NULL;
    clock_gettime(CLOCK_MONOTONIC, &watch->began);
    return watch;
}

void cli_watch_free(cli_watch *watch)
{
    if (watch == NULL)
        return;
    for (size_t i = 0; i < watch->count; i++) {
        cli_process *p = watch->processes[i];
        for (size_t j = 0; j < p->count; j++)
            free(p->files[j]);
        free(p->files);
        free(p->program);
        free(p->connector);
        free(p->search);
        free(p->preload);
        free(p);
    }
    free(watch->processes);
    free(watch->self);
    free(watch);
}

static FILE *open_of(pid_t pid, const char *name)
{
    char path[120];

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    return fopen(path, "re");
}

/* The file that it runs; free() it. NULL: it has ended. */
static char *program_of(pid_t pid)
{
    char path[60], program[4096];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%ld/exe", (long)pid);
    if ((n = readlink(path, program, sizeof program - 1)) < 0)
        return NULL;
    program[n] = '\0';
    return cli_strdup(program);
}

/* At each look: while a program is begun under the number of another, its environment has no byte yet, and it may begin itself
 * again with another one. What a look does not find stays: programs write their titles over it. */
static void read_environment(cli_process *p)
{
    struct {
        const char *name;
        char **value;
        bool found;
    } wanted[] = {{"HDF5_VOL_CONNECTOR=", &p->connector, false},
                  {"HDF5_PLUGIN_PATH=", &p->search, false},
                  {"HDF5_PLUGIN_PRELOAD=", &p->preload, false}};
    FILE *file = open_of(p->pid, "environ");
    char *line = NULL;
    size_t room = 0;

    while (file != NULL && getdelim(&line, &room, '\0', file) > 0) {
        p->environment = true;
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            size_t length = strlen(wanted[i].name);
            if (!wanted[i].found && strncmp(line, wanted[i].name, length) == 0) { /* the first one is what getenv() finds */
                wanted[i].found = true;
                free(*wanted[i].value);
                *wanted[i].value = cli_strdup(line + length);
            }
        }
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

static void add_file(cli_process *p, const char *name)
{
    for (size_t i = p->count; i-- > 0;)
        if (strcmp(p->files[i], name) == 0)
            return;
    CLI_RESERVE(p->files, p->room, p->count, 1);
    p->files[p->count++] = cli_strdup(name);
}

/* "7f3c8000-7f3c9000 r-xp 00001000 fe:00 123   /usr/lib/libhdf5.so.310" */
static void read_files(cli_process *p)
{
    FILE *file = open_of(p->pid, "maps");
    char *line = NULL, *name, kind[5];
    size_t room = 0;

    while (file != NULL && getline(&line, &room, file) > 0)
        if (sscanf(line, "%*s %4s", kind) == 1 && kind[2] == 'x' && (name = strchr(line, '/')) != NULL) {
            name[strcspn(name, "\n")] = '\0';
            add_file(p, name);
        }
    free(line);
    if (file != NULL)
        fclose(file);
}

static cli_process *known(const cli_watch *watch, pid_t pid)
{
    for (size_t i = watch->count; i-- > 0;)
        if (watch->processes[i]->pid == pid && !watch->processes[i]->ended)
            return watch->processes[i];
    return NULL;
}

/* Takes PROGRAM. */
static cli_process *add(cli_watch *watch, pid_t pid, const cli_process *parent, char *program)
{
    cli_process *p = cli_alloc(1, sizeof *p);

    *p = (cli_process){.pid = pid, .parent = parent, .program = program, .own = strcmp(program, watch->self) == 0};
    CLI_RESERVE(watch->processes, watch->room, watch->count, 1);
    watch->processes[watch->count++] = p;
    return p;
}

static void look_at(cli_watch *watch, pid_t pid, const cli_process *parent)
{
    cli_process *p = known(watch, pid);
    char *program = program_of(pid);

    if (p != NULL && (program == NULL || strcmp(program, p->program) != 0)) {
        p->ended = true;
        parent = p;
        p = NULL;
    }
    if (program == NULL)
        return;
    if (p == NULL)
        p = add(watch, pid, parent, program);
    else
        free(program);
    if (!p->own) {
        read_environment(p);
        read_files(p);
    }
}

/* Each of its threads has children of its own. */
static void find_children(cli_watch *watch, const cli_process *p)
{
    char path[80];
    struct dirent *task;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%ld/task", (long)p->pid);
    if ((tasks = opendir(path)) == NULL)
        return;
    while ((task = readdir(tasks)) != NULL) {
        FILE *children;
        long pid;
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "task/%.20s/children", task->d_name);
        if ((children = open_of(p->pid, path)) == NULL)
            continue;
        while (fscanf(children, "%ld", &pid) == 1)
            if (known(watch, (pid_t)pid) == NULL)
                look_at(watch, (pid_t)pid, p);
        fclose(children);
    }
    closedir(tasks);
}

struct timespec cli_watch_look(cli_watch *watch, pid_t child)
{
    struct timespec now, pause = {.tv_nsec = LONGEST};
    int64_t elapsed;

    if (watch->blind)
        return pause;
    if (watch->count == 0)
        look_at(watch, child, NULL);
    for (size_t i = 0; i < watch->count; i++) /* which grows meanwhile */
        if (!watch->processes[i]->ended) {
            look_at(watch, watch->processes[i]->pid, NULL);
            find_children(watch, watch->processes[i]);
        }
    clock_gettime(CLOCK_MONOTONIC, &now);
    elapsed = (int64_t)(now.tv_sec - watch->began.tv_sec) * 1000000000 + (now.tv_nsec - watch->began.tv_nsec);
    pause.tv_nsec = elapsed / 8 < SHORTEST ? SHORTEST : elapsed / 8 > LONGEST ? LONGEST : (long)(elapsed / 8);
    return pause;
}
