/* Processes and their files: see watch.h. */
#include "watch.h"

#include "common.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHORTEST 1000000 /* nanoseconds between two looks */
#define LONGEST  250000000
#define THOROUGH INT64_C(10000000000) /* at most between two looks that read everything */

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

/* ---- has anything changed? ---- */

/* The process or thread that was started last, of all. 0: the system does not tell. */
static long newest_process(void)
{
    FILE *file = fopen("/proc/loadavg", "re");
    long pid = 0;

    if (file != NULL) {
        if (fscanf(file, "%*s %*s %*s %*s %ld", &pid) != 1)
            pid = 0;
        fclose(file);
    }
    return pid;
}

/* "123 (name) S 1 ...": fields 23 and 28. */
static cli_image image_of(pid_t pid)
{
    FILE *file = open_of(pid, "stat");
    cli_image image = {0};
    char line[1024], *rest = NULL, *field;

    if (file != NULL && fgets(line, sizeof line, file) != NULL && (rest = strrchr(line, ')')) != NULL)
        rest++;
    for (int n = 2; rest != NULL && n <= 28 && (field = strsep(&rest, " ")) != NULL; n++)
        if (n == 23)
            image.space = strtoull(field, NULL, 10);
        else if (n == 28)
            image.stack = strtoull(field, NULL, 10);
    if (file != NULL)
        fclose(file);
    return image;
}

static unsigned long long code_of(pid_t pid)
{
    FILE *file = open_of(pid, "status");
    unsigned long long code = 0;
    char line[256];

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmLib: %llu", &code) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return code;
}

/* Is P what it was when its files were read? NOW becomes what it is. */
static bool is_as_before(const cli_process *p, cli_image *now)
{
    *now = image_of(p->pid);
    if (now->stack != 0 && now->stack == p->image.stack && now->space == p->image.space) {
        now->code = p->image.code;
        return true;
    }
    now->code = code_of(p->pid);
    return now->stack != 0 && now->stack == p->image.stack && now->code == p->image.code;
}

/* ---- what is read ---- */

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
            if (!wanted[i].found &&
                strncmp(line, wanted[i].name, length) == 0) { /* the first one is what getenv() finds */
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

/* THOROUGH: whether or not anything has changed. */
static void look_at(cli_watch *watch, pid_t pid, const cli_process *parent, bool thorough)
{
    cli_process *p = known(watch, pid);
    cli_image now;
    char *program;

    if (p != NULL && is_as_before(p, &now) && !thorough) {
        p->image = now;
        if (!p->own && !p->environment)
            read_environment(p);
        return;
    }
    if (p == NULL) {
        now = image_of(pid);
        now.code = code_of(pid);
    }
    program = program_of(pid);
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
    p->image = now;
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
                look_at(watch, (pid_t)pid, p, true);
        fclose(children);
    }
    closedir(tasks);
}

static int64_t since(const struct timespec *then)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - then->tv_sec) * 1000000000 + (now.tv_nsec - then->tv_nsec);
}

struct timespec cli_watch_look(cli_watch *watch, pid_t child)
{
    struct timespec pause = {.tv_nsec = LONGEST};
    int64_t elapsed = since(&watch->began);
    bool thorough = elapsed >= watch->thorough, started;
    long newest;

    if (watch->blind)
        return pause;
    if (thorough)
        watch->thorough = elapsed + (elapsed < THOROUGH ? elapsed : THOROUGH);
    newest = newest_process();
    started = thorough || newest == 0 || newest != watch->newest;
    watch->newest = newest;
    if (watch->count == 0)
        look_at(watch, child, NULL, true);
    for (size_t i = 0; i < watch->count; i++) /* which grows meanwhile */
        if (!watch->processes[i]->ended) {
            look_at(watch, watch->processes[i]->pid, NULL, thorough);
            if (started)
                find_children(watch, watch->processes[i]);
        }
    elapsed = since(&watch->began);
    pause.tv_nsec = elapsed / 8 < SHORTEST ? SHORTEST : elapsed / 8 > LONGEST ? LONGEST : (long)(elapsed / 8);
    return pause;
}
