/* Commits that wait to be applied. Contract: waiting.h. Who has a lock on a file says the system, under /proc: for the processes
 * of this user, or for all of them when it asks as root. */
#include "waiting.h"

#include "base/error.h"
#include "journal/locks.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t cli_waiting_count(const cow_journal_report *r)
{
    return r->newest < 0 ? 0 : r->slot[r->newest].sequence - r->slot[r->newest].applied;
}

typedef struct search {
    const struct stat *file;
    uint64_t newest; /* state */
    char *found;     /* what is said so far */
} search;

static void add(search *s, const char *what)
{
    char *longer = cli_format("%s%s%s", s->found, *s->found == '\0' ? "" : ", ", what);

    free(s->found);
    s->found = longer;
}

/* "lock:\t1: OFDLCK ADVISORY  READ -1 fe:00:131 4611686018427387906 4611686018427387906" */
static cow_lock_kind lock_of(const char *line, uint64_t *state)
{
    char kind[16], access[16];
    long long start;

    if (sscanf(line, "lock: %*d: %15s %*s %15s %*s %*s %lld", kind, access, &start) != 3)
        return COW_LOCK_NONE;
    if (strcmp(kind, "FLOCK") == 0)
        return COW_LOCK_STOCK;
    return strcmp(kind, "OFDLCK") == 0 ? cow_lock_means((off_t)start, state) : COW_LOCK_NONE;
}

/* The locks of one descriptor of the process PID. */
static void look_at_locks(search *s, const char *pid, const char *descriptor)
{
    char path[300], program[64] = "", *line = NULL, *what;
    uint64_t state = 0;
    size_t room = 0;
    FILE *info, *comm;

    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    if ((comm = fopen(path, "re")) != NULL) {
        if (fgets(program, sizeof program, comm) == NULL)
            program[0] = '\0';
        program[strcspn(program, "\n")] = '\0';
        fclose(comm);
    }
    snprintf(path, sizeof path, "/proc/%.20s/fdinfo/%.20s", pid, descriptor);
    if ((info = fopen(path, "re")) == NULL)
        return;
    while (getline(&line, &room, info) > 0) {
        cow_lock_kind kind = lock_of(line, &state);

        if (kind != COW_LOCK_STOCK && (kind != COW_LOCK_READER || state >= s->newest))
            continue;
        what = cli_format("process %s (%s) %s", pid, cli_clean(program),
                          kind == COW_LOCK_STOCK ? "has the file open without h5cow" : "has an older state open");
        if (strstr(s->found, what) == NULL)
            add(s, what);
        free(what);
    }
    free(line);
    fclose(info);
}

static void look_at_process(search *s, const char *pid)
{
    struct dirent *entry;
    char path[300];
    struct stat about;
    DIR *descriptors;

    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    if (atol(pid) == (long)getpid() || (descriptors = opendir(path)) == NULL)
        return;
    while ((entry = readdir(descriptors)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && fstatat(dirfd(descriptors), entry->d_name, &about, 0) == 0 &&
            about.st_dev == s->file->st_dev && about.st_ino == s->file->st_ino)
            look_at_locks(s, pid, entry->d_name);
    closedir(descriptors);
}

/* Has somebody the file open who takes HDF5's own lock? */
static bool stock_readers(const char *name)
{
    cow_disk disk;
    bool alone;

    if (cow_disk_open(&disk, &cow_disk_system, name, O_RDONLY) < 0)
        return false;
    alone = cow_lock_against_stock(&disk);
    cow_disk_close(&disk);
    return !alone;
}

char *cli_waiting_why(const char *name, const cow_journal_report *r)
{
    search s = {.newest = r->newest < 0 ? 0 : r->slot[r->newest].sequence, .found = cli_strdup("")};
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    struct stat about;
    char *what;

    if (r->writing) {
        what = cli_format("%s is writing the file, and applies it when it closes", r->writer);
        add(&s, what);
        free(what);
    }
    s.file = &about;
    memset(&about, 0, sizeof about);
    if (processes != NULL && stat(name, &about) < 0)
        about.st_ino = 0; /* which no file has */
    while (processes != NULL && (entry = readdir(processes)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]))
            look_at_process(&s, entry->d_name);
    if (processes != NULL)
        closedir(processes);
    if (*s.found == '\0' && r->pins > 0 && r->pin[0] < s.newest)
        add(&s, "a reader of another user, container or machine has an older state open");
    if (*s.found == '\0' && stock_readers(name))
        add(&s, "a program of another user or container has the file open without h5cow");
    return s.found;
}

char *cli_waiting_text(const char *name, const cow_journal_report *r)
{
    uint64_t count = cli_waiting_count(r);
    const char *plural = count == 1 ? "" : "s";
    char *why, *text;

    if (count == 0)
        return NULL;
    why = cli_waiting_why(name, r);
    text = cli_format("%llu commit%s wait%s to be applied, and HDF5 without h5cow does not see %s: %s%s",
                      (unsigned long long)count, plural, count == 1 ? "s" : "", count == 1 ? "it" : "them",
                      *why == '\0' ? "nobody is in the way by now; apply it with: h5cow apply " : why,
                      *why == '\0' ? name : "");
    free(why);
    return text;
}
