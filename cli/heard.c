/* Reading what the connector has told: see heard.h. */
#include "heard.h"

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM 65536 /* bytes; thousands of records */

static char *outer; /* the file that this process shall write to */

/* A new file in FOLDER, with room on the disk for what it is to hear; free() its name. NULL: errno. */
static char *make_file(const char *folder)
{
    /* absolute: the command may change its folder before it opens a file */
    char *absolute = folder == NULL || *folder == '\0' ? NULL : realpath(folder, NULL), *name;
    int file, error;

    if (absolute == NULL)
        return NULL;
    name = cli_format("%s/h5cow-XXXXXX", absolute);
    free(absolute);
    if ((file = mkostemp(name, O_CLOEXEC)) >= 0) {
        error = fallocate(file, FALLOC_FL_KEEP_SIZE, 0, ROOM) < 0 ? errno : 0;
        close(file);
        if (error != ENOSPC && error != EDQUOT) /* not every file system can */
            return name;
        unlink(name);
        errno = error;
    }
    free(name);
    return NULL;
}

char *cli_heard_begin(void)
{
    const char *const folders[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};
    const char *before = getenv(COW_WITNESS_VARIABLE);
    char *witness = NULL;

    for (size_t i = 0; witness == NULL && i < sizeof folders / sizeof *folders; i++)
        witness = make_file(folders[i]);
    if (witness == NULL) {
        cli_fail("cannot make a temporary file, neither in TMPDIR nor in /tmp: %s", strerror(errno));
        return NULL;
    }
    outer = before == NULL ? NULL : cli_strdup(before);
    setenv(COW_WITNESS_VARIABLE, witness, 1);
    return witness;
}

static void free_record(json_object *object, void *record)
{
    (void)object;
    free(record);
}

/* Files that differ from what they were when they were opened for the first time. PLAIN: names and records. */
static void count_plain(cli_heard *heard, json_object *plain)
{
    json_object_object_foreach(plain, name, value)
    {
        const char *record = json_object_get_userdata(value);
        long long size = -1, time = -1;
        struct stat now;

        if (stat(name, &now) < 0 || sscanf(record, "%lld %lld ", &size, &time) != 2 ||
            (size == now.st_size && time == cow_witness_changed_at(&now)))
            continue;
        if (heard->plain++ == 0)
            heard->first = cli_strdup(name);
    }
}

static void hear_plain(json_object *plain, const char *record)
{
    const char *name = strchr(record, '/');
    json_object *value;

    if (name == NULL || json_object_object_get_ex(plain, name, NULL))
        return;
    value = json_object_new_object();
    json_object_set_userdata(value, cli_strdup(record), free_record);
    json_object_object_add(plain, name, value);
}

static void hear_version(json_object *newest, char *record)
{
    char *blank = strchr(record, ' ');

    if (blank == NULL)
        return;
    *blank = '\0';
    json_object_object_add(newest, record, json_object_new_string(blank + 1));
}

static void hear_library(cli_heard *heard, const char *record, bool told)
{
    cli_asked a = {.told = told};
    char version[41], instance;
    size_t name, plugin;
    int at = 0;

    if (sscanf(record, "%ld %40s %c %zu %zu %n", &a.pid, version, &instance, &name, &plugin, &at) != 5 || at == 0 ||
        name > strlen(record + at) || plugin + 2 > strlen(record + at) - name)
        return;
    a.version = cli_strdup(version);
    a.instance = (cow_instance)instance;
    a.file = cli_format("%.*s", (int)name, record + at);
    a.plugin = cli_format("%.*s", (int)plugin, record + at + name + 1);
    a.why = cli_strdup(record + at + name + plugin + 2);
    CLI_RESERVE(heard->asked, heard->room, heard->count, 1);
    heard->asked[heard->count++] = a;
}

static void add_lost(cli_heard *heard, const char *name, const char *what)
{
    CLI_RESERVE(heard->lost, heard->lost_room, heard->lost_count, 1);
    heard->lost[heard->lost_count++] = (cli_lost){.name = cli_strdup(name), .what = cli_strdup(what)};
}

/* "N NAME REST": NAME, and *REST behind it. NULL: it is no such record. */
static const char *cut_name(char *record, const char **rest)
{
    char *name;
    const size_t length = strtoul(record, &name, 10);

    if (*name != ' ' || strlen(++name) < length + 1)
        return NULL;
    name[length] = '\0';
    *rest = name + length + 1;
    return name;
}

static void hear_lost(cli_heard *heard, char *record, bool told)
{
    const char *what, *name = cut_name(record, &what);

    if (name == NULL)
        return;
    add_lost(heard, name, what);
    heard->lost[heard->lost_count - 1].told = told;
}

/* A program may try again and again. */
static void hear_refused(cli_heard *heard, char *record)
{
    const char *why, *name = cut_name(record, &why);
    size_t i = 0;

    while (name != NULL && i < heard->refused_count && strcmp(heard->refused[i].name, name) != 0)
        i++;
    if (name == NULL)
        return;
    if (i == heard->refused_count) {
        CLI_RESERVE(heard->refused, heard->refused_room, heard->refused_count, 1);
        heard->refused[heard->refused_count++] = (cli_refused){.name = cli_strdup(name)};
    }
    free(heard->refused[i].why);
    heard->refused[i].why = cli_strdup(why);
}

void cli_heard_end(char *witness, cli_heard *heard)
{
    json_object *plain = json_object_new_object();
    FILE *file = fopen(witness, "re");
    struct stat about;
    char *record = NULL;
    size_t room = 0;

    *heard = (cli_heard){.opened = file == NULL, /* it was removed: nothing is known, or told */
                         .version = file == NULL,
                         .newest = json_object_new_object()};
    while (file != NULL && getdelim(&record, &room, '\0', file) > 0)
        switch ((cow_witness_kind)record[0]) {
        case COW_WITNESS_OPENED:
            heard->opened = true;
            break;
        case COW_WITNESS_VERSION:
            heard->version = true;
            hear_version(heard->newest, record + 1);
            break;
        case COW_WITNESS_RUN:
            heard->told = true;
            break;
        case COW_WITNESS_PLAIN:
            hear_plain(plain, record + 1);
            break;
        case COW_WITNESS_LOST:
        case COW_WITNESS_LOST_TOLD:
            hear_lost(heard, record + 1, record[0] == COW_WITNESS_LOST_TOLD);
            break;
        case COW_WITNESS_REFUSED:
            hear_refused(heard, record + 1);
            break;
        case COW_WITNESS_LIBRARY:
        case COW_WITNESS_LIBRARY_TOLD:
            hear_library(heard, record + 1, record[0] == COW_WITNESS_LIBRARY_TOLD);
            break;
        }
    if (file != NULL && heard->lost_count == 0 && fstat(fileno(file), &about) == 0 && (about.st_mode & S_IXUSR))
        add_lost(heard, "a file", "what was written to it is lost; there was no room to say more");
    if (file != NULL)
        fclose(file);
    free(record);
    count_plain(heard, plain);
    json_object_put(plain);
    unlink(witness);
    free(witness);
    if (outer != NULL)
        setenv(COW_WITNESS_VARIABLE, outer, 1);
    else
        unsetenv(COW_WITNESS_VARIABLE);
    free(outer);
    outer = NULL;
}

void cli_heard_free(cli_heard *heard)
{
    for (size_t i = 0; i < heard->count; i++) {
        free(heard->asked[i].version);
        free(heard->asked[i].file);
        free(heard->asked[i].plugin);
        free(heard->asked[i].why);
    }
    free(heard->asked);
    for (size_t i = 0; i < heard->lost_count; i++) {
        free(heard->lost[i].name);
        free(heard->lost[i].what);
    }
    free(heard->lost);
    for (size_t i = 0; i < heard->refused_count; i++) {
        free(heard->refused[i].name);
        free(heard->refused[i].why);
    }
    free(heard->refused);
    json_object_put(heard->newest);
    free(heard->first);
}

void cli_heard_pass_up(const cli_heard *heard)
{
    cow_witness(COW_WITNESS_RUN, "h5cow run");
    if (heard->opened)
        cow_witness(COW_WITNESS_OPENED, "h5cow run");
    if (heard->version)
        cow_witness(COW_WITNESS_VERSION, "");
    for (size_t i = 0; i < heard->lost_count; i++)
        cow_witness_lost(COW_WITNESS_LOST_TOLD, heard->lost[i].name, heard->lost[i].what);
    for (size_t i = 0; i < heard->count; i++) {
        const cli_asked *a = &heard->asked[i];
        cow_witness_library(COW_WITNESS_LIBRARY_TOLD, a->pid, a->version, a->instance, a->file, a->plugin, a->why);
    }
}
