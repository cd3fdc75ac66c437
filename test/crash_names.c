/* Power cuts while names change: H5Fcreate over a file with history that cannot go on keeps it under another name.
 *
 * A change of a name (link, unlink, rename, creation) is certain once its folder was synced; before, each of them may
 * be lost or not, whatever became of the others. At every point, for each such mixture: the history is whole under one
 * of its names, and when the new file's commit was reported, the name is the new file's. */
#include "crash_programs.h"

#include "scenarios.h"
#include "with_connector.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EVENTS_MAX 16

typedef enum event_kind { EVENT_LINK, EVENT_UNLINK, EVENT_CREATE, EVENT_SYNC, EVENT_COMMITTED } event_kind;

typedef struct event {
    event_kind kind;
    bool aside; /* of the two names: the one for the old file */
    image made; /* the new file when this had happened */
} event;

static struct {
    bool on;
    event event[EVENTS_MAX];
    int count;
} names;

static char aside_name[80];

/* What the two names lead to. */
typedef enum content { NOTHING_THERE, OLD_FILE, NEW_FILE } content;
typedef struct folder {
    content name, aside;
} folder;

/* The link editor puts these in the place of the system's functions: see meson.build. */
int __real_link(const char *from, const char *to);
int __real_unlink(const char *name);
int __real_rename(const char *from, const char *to);
int __real_fsync(int fd);
int __real_open(const char *name, int flags, ...);
int __real_open64(const char *name, int flags, ...);
int __wrap_link(const char *from, const char *to);
int __wrap_unlink(const char *name);
int __wrap_rename(const char *from, const char *to);
int __wrap_fsync(int fd);
int __wrap_open(const char *name, int flags, ...);
int __wrap_open64(const char *name, int flags, ...);

static void note(event_kind kind, bool aside)
{
    event *e = &names.event[names.count++];

    if (names.count == EVENTS_MAX)
        die("names: too many events");
    *e = (event){.kind = kind, .aside = aside};
    if (kind == EVENT_CREATE || kind == EVENT_COMMITTED || kind == EVENT_SYNC)
        if (access(aside_name, F_OK) == 0 && access(crash_real, F_OK) == 0)
            image_load(&e->made, crash_real);
}

int __wrap_link(const char *from, const char *to)
{
    int status = __real_link(from, to);

    if (names.on && status == 0)
        note(EVENT_LINK, true);
    return status;
}

int __wrap_unlink(const char *name)
{
    int status = __real_unlink(name);

    if (names.on && status == 0)
        note(EVENT_UNLINK, strcmp(name, aside_name) == 0);
    return status;
}

int __wrap_rename(const char *from, const char *to)
{
    if (names.on)
        die("names: a rename is not expected where there are hard links");
    return __real_rename(from, to);
}

int __wrap_fsync(int fd)
{
    if (names.on)
        note(EVENT_SYNC, false);
    return __real_fsync(fd);
}

/* What opens with O_CREAT and finds nothing creates. */
static int open_and_note(const char *name, int flags, mode_t mode, int (*real)(const char *, int, ...))
{
    bool creates = names.on && (flags & O_CREAT) && access(name, F_OK) != 0;
    int fd = real(name, flags, mode);

    if (creates && fd >= 0)
        note(EVENT_CREATE, false);
    return fd;
}

#define OPEN_AND_NOTE(name, flags, real)                                                                               \
    va_list more;                                                                                                      \
    va_start(more, flags);                                                                                             \
    mode_t mode = (flags) & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;                                          \
    va_end(more);                                                                                                      \
    return open_and_note(name, flags, mode, real)

int __wrap_open(const char *name, int flags, ...)
{
    OPEN_AND_NOTE(name, flags, __real_open);
}

int __wrap_open64(const char *name, int flags, ...)
{
    OPEN_AND_NOTE(name, flags, __real_open64);
}

static void perform(folder *f, const event *e)
{
    switch (e->kind) {
    case EVENT_LINK:
        f->aside = OLD_FILE;
        break;
    case EVENT_UNLINK:
        *(e->aside ? &f->aside : &f->name) = NOTHING_THERE;
        break;
    case EVENT_CREATE:
        f->name = NEW_FILE;
        break;
    case EVENT_SYNC:
    case EVENT_COMMITTED:
        break;
    }
}

static void put(content c, const char *path, const image *old, const image *new)
{
    if (c == NOTHING_THERE)
        __real_unlink(path);
    else
        image_save(c == OLD_FILE ? old : new, path);
}

typedef struct looking {
    scenario_states *old;
    hid_t fapl, stock_fapl;
    hid_t fcpl; /* unlike the old file's */
    crash_totals *total;
} looking;

static void wrong(const looking *l, int at, const char *what)
{
    l->total->wrong++;
    fprintf(stderr, "names: after %d changes: %s\n", at, what);
}

static bool is_old(const looking *l, const char *path)
{
    int newest = scenario_states_count(l->old);

    return access(path, F_OK) == 0 && scenario_check(l->old, path, l->fapl, false, NULL, 0) == newest &&
           scenario_check(l->old, path, l->stock_fapl, true, NULL, 0) == newest;
}

static bool is_new(const looking *l, const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, l->fapl);
    htri_t has = file < 0 ? -1 : H5Lexists(file, "new", H5P_DEFAULT);

    if (file >= 0)
        H5Fclose(file);
    return has > 0;
}

static int create_over(const looking *l)
{
    hid_t file = H5Fcreate(crash_real, H5F_ACC_TRUNC, l->fcpl, l->fapl), group;

    if (file < 0)
        return -1;
    if ((group = H5Gcreate2(file, "new", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0)
        H5Gclose(group);
    return H5Fclose(file) < 0 || group < 0 ? -1 : 0;
}

static void look(const looking *l, folder f, int at, bool committed, const image *old, const image *new)
{
    char second[96];
    bool kept;

    snprintf(second, sizeof second, "%s.h5cow-old-2", crash_real);
    put(f.name, crash_real, old, new);
    put(f.aside, aside_name, old, new);
    l->total->states++;
    l->total->deep++;
    kept = is_old(l, crash_real) || is_old(l, aside_name);
    if (!kept)
        wrong(l, at, "the history is under neither name");
    if (committed && !is_new(l, crash_real))
        wrong(l, at, "the new file was committed, and its name does not lead to it");
    *(committed ? &l->total->after : &l->total->before) += 1;
    /* the program is started once more */
    if (create_over(l) < 0 || !is_new(l, crash_real))
        wrong(l, at, "the file cannot be created again");
    if (!is_old(l, aside_name) && !is_old(l, second))
        wrong(l, at, "creating it again lost the history");
    __real_unlink(crash_real);
    __real_unlink(aside_name);
    __real_unlink(second);
}

/* Each mixture of what was not synced. */
static void look_at_all(const looking *l, const image *old)
{
    folder durable = {.name = OLD_FILE};
    int from = 0;
    bool committed = false;
    image none = {0};
    const image *new = &none;

    for (int at = 0; at <= names.count; at++) {
        for (unsigned mixture = 0; mixture < 1u << (at - from); mixture++) {
            folder f = durable;
            for (int i = from; i < at; i++)
                if (mixture >> (i - from) & 1)
                    perform(&f, &names.event[i]);
            look(l, f, at, committed, old, new);
        }
        if (at == names.count)
            break;
        if (names.event[at].made.size > 0)
            new = &names.event[at].made;
        committed = committed || names.event[at].kind == EVENT_COMMITTED;
        if (names.event[at].kind == EVENT_SYNC) {
            for (; from < at; from++)
                perform(&durable, &names.event[from]);
            from = at + 1;
        }
    }
}

void crash_names(const char *only, crash_totals *total)
{
    const scenario *s = &scenarios[0];
    looking l = {scenario_expect(s), connector_fapl(s->options), native_fapl(), H5Pcreate(H5P_FILE_CREATE), total};
    const scenario_run run = {crash_real, l.fapl, l.stock_fapl, NULL, NULL, NULL};
    crash_totals start = *total;
    image old = {0}, kept = {0};

    if (only != NULL && strcmp(only, "names") != 0)
        goto done;
    snprintf(aside_name, sizeof aside_name, "%s.h5cow-old-1", crash_real);
    H5Pset_userblock(l.fcpl, 512);
    names.count = 0;
    if (scenario_run_all(s, &run) < 0)
        die("names: the scenario failed");
    image_load(&old, crash_real);
    names.on = true;
    if (create_over(&l) < 0)
        die("names: the file cannot be created");
    note(EVENT_COMMITTED, false);
    names.on = false;
    image_load(&kept, aside_name);
    if (kept.size != old.size || memcmp(kept.data, old.data, old.size) != 0)
        wrong(&l, names.count, "what was put aside was changed");
    look_at_all(&l, &old);
    total->scenarios++;
    total->operations += (unsigned long)names.count;
    printf("%-26s %5d operations %3d states %8lu crash states; %lu wrong\n", "names", names.count, 2,
           total->states - start.states, total->wrong - start.wrong);
    free(old.data);
    free(kept.data);
    for (int i = 0; i < names.count; i++)
        free(names.event[i].made.data);
done:
    scenario_states_free(l.old);
    H5Pclose(l.fapl);
    H5Pclose(l.stock_fapl);
    H5Pclose(l.fcpl);
}
