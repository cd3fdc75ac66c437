/* h5cow log: the versions of a file, newest first. */
#include "base/times.h"
#include "changes.h"
#include "common.h"
#include "log.h"
#include "tables.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char cli_log_help[] =
    "Usage: h5cow log [OPTION]... FILE\n\n"
    "Lists the versions of FILE, newest first: name, number, time, user, bytes by which the file grew, objects that\n"
    "changed, program, message. What is in the first three columns names a version: FILE@NAME, FILE@#N, FILE@{TIME};\n"
    "tags stand in brackets behind the name: FILE@TAG.\n"
    "A version marked 'open' belongs to a program that has not closed the file yet, or never will;\n"
    "one marked 'incomplete' lacks what is listed below.\n\n"
    "  -n, --number=N      the newest N of those that are asked for\n"
    "      --since=TIME    only versions that were made at TIME or later: 2026-01-31T12:00, yesterday, 2 hours ago\n"
    "      --until=TIME    only those made at TIME or before\n"
    "      --object=PATH   only versions that changed the object PATH: its elements, attributes, what is below a group\n"
    "      --all           also those that are forgotten, of which nothing else is left\n"
    "      --oneline       only name, time and message of each\n"
    "      --graph         and lines from each version to the one that it was made of: those that were restored branch\n"
    "      --operations    instead: what was done to the history itself (restore, tag, rename ...), newest first\n"
    "  -u, --utc           show times in UTC, not in local time\n"
    "      --json          a list of objects, with all that is recorded; times in UTC\n"
    "  -h, --help\n";

json_object *cli_lack_json(const cli_lack *lack)
{
    json_object *item = json_object_new_object();

    json_object_object_add(item, "path", lack->path[0] == '\0' ? NULL : cli_json_text(lack->path));
    json_object_object_add(item, "head", lack->head == UINT64_MAX ? NULL : json_object_new_uint64(lack->head));
    json_object_object_add(item, "reason", cli_json_text(lack->reason));
    return item;
}

static json_object *lacks_json(const cli_listed *l, size_t version)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < l->lacking; i++)
        if (l->lacks[i].version == version)
            json_object_array_add(list, cli_lack_json(&l->lacks[i]));
    return list;
}

json_object *cli_version_json(const cli_version *rows, size_t number)
{
    const cli_version *v = &rows[number];
    const size_t parent = cli_version_parent(rows, number);
    json_object *item = json_object_new_object();
    char text[48];

    json_object_object_add(item, "number", json_object_new_uint64(number + 1));
    json_object_object_add(item, "name", cli_json_text(v->name));
    json_object_object_add(item, "parent", parent == SIZE_MAX ? NULL : cli_json_text(rows[parent].name));
    json_object_object_add(item, "time", cli_json_text(cli_time(text, v->time, CLI_UTC, true)));
    json_object_object_add(item, "time_us", json_object_new_int64(v->time));
    json_object_object_add(item, "user", cli_json_text(v->user));
    json_object_object_add(item, "host", cli_json_text(v->host));
    json_object_object_add(item, "program", cli_json_text(v->program));
    json_object_object_add(item, "hdf5", cli_json_text(v->hdf5));
    json_object_object_add(item, "h5cow", cli_json_text(v->h5cow));
    json_object_object_add(item, "message", cli_json_text(v->message));
    json_object_object_add(item, "added", json_object_new_int64(v->added));
    json_object_object_add(item, "chunks", json_object_new_int64(v->chunks));
    json_object_object_add(item, "changed", json_object_new_int64(v->changed));
    json_object_object_add(item, "open", json_object_new_boolean(v->open == COW_LOG_OPEN));
    json_object_object_add(item, "forgotten", json_object_new_boolean(v->open == COW_LOG_FORGOTTEN));
    return item;
}

static json_object *as_json(const cli_listed *l)
{
    json_object *list = json_object_new_array();

    for (size_t i = l->count; i-- > 0;) {
        if (l->left_out[i])
            continue;
        json_object *item = cli_version_json(l->rows, i);
        json_object *tags = json_object_new_array();
        for (size_t t = 0; t < l->tagged; t++)
            if (l->tags[t].version == i)
                json_object_array_add(tags, cli_json_text(l->tags[t].name));
        json_object_object_add(item, "tags", tags);
        json_object_object_add(item, "incomplete", lacks_json(l, i));
        json_object_array_add(list, item);
    }
    return list;
}

/* ---- which versions ---- */

typedef struct wanted {
    uint64_t number;
    int64_t since, until; /* microseconds since 1970 */
    const char *object;
    bool forgotten;
} wanted;

/* The object of a version, and of the newest one before it. 1: they differ, 0; -1, said. SNAPSHOT, of each row: its address. */
static int has_changed(cli_changes *changes, const cli_listed *l, const uint64_t snapshot[], size_t row,
                       const char *path)
{
    const size_t before = cli_version_before(l->rows, row);

    if (snapshot[row] == (before == SIZE_MAX ? UINT64_MAX : snapshot[before]))
        return 0;
    return before == SIZE_MAX ? 1 : cli_changes_between(changes, before, row, path);
}

/* Of each version the address of its object PATH; of forgotten ones nothing. free() it. NULL: no version has it, said. */
static uint64_t *find_snapshots(const cli_file *file, const cli_listed *l, const char *path)
{
    uint64_t *snapshot = cli_alloc(l->count, sizeof *snapshot);
    bool known = false;
    H5O_type_t type;

    for (size_t i = 0; i < l->count; i++) {
        snapshot[i] =
            l->rows[i].open == COW_LOG_FORGOTTEN ? UINT64_MAX : cli_version_object(file, &l->rows[i], path, &type);
        known = known || snapshot[i] != UINT64_MAX;
    }
    if (known)
        return snapshot;
    free(snapshot);
    cli_fail("no version of '%s' has an object '%s'", file->name, path);
    return NULL;
}

/* The newest first: no more of them are compared than are wanted. */
static int leave_out(const cli_file *file, cli_listed *l, const wanted *w)
{
    const cli_state of = {.file = *file};
    cli_changes changes = cli_changes_of(&of, l->rows, l->count);
    uint64_t kept = 0, *snapshot = NULL;
    int differs = 1;

    l->left_out = cli_alloc(l->count, sizeof *l->left_out);
    if (w->object != NULL && (snapshot = find_snapshots(file, l, w->object)) == NULL)
        return CLI_FAILED;
    memset(l->left_out, true, l->first);
    for (size_t i = l->count; differs >= 0 && i-- > l->first;) {
        const bool forgotten = l->rows[i].open == COW_LOG_FORGOTTEN;

        l->left_out[i] = (forgotten && !w->forgotten) || l->rows[i].time < w->since || l->rows[i].time > w->until ||
                         kept == w->number;
        if (!l->left_out[i] && snapshot != NULL) {
            differs = forgotten ? 0 : has_changed(&changes, l, snapshot, i, w->object);
            l->left_out[i] = differs <= 0;
        }
        kept += !l->left_out[i];
        l->some = l->some || (l->left_out[i] && (!forgotten || w->forgotten));
    }
    cli_changes_close(&changes);
    free(snapshot);
    return differs < 0 ? CLI_FAILED : 0;
}

static int parse_time(const char *option, const char *text, int64_t *first, int64_t *last)
{
    int64_t unwanted;

    if (cow_times_parse(text, time(NULL), first == NULL ? &unwanted : first, last == NULL ? &unwanted : last) == 0)
        return 0;
    return cli_usage("log", "%s wants a time, as 2026-01-31T12:00, yesterday or '2 hours ago', not '%s'", option, text);
}

typedef struct asked {
    wanted w;
    cli_clock clock;
    bool json, lines, operations, graph;
} asked;

/* What the version of ROW was made of, though it is not among the rows that were read. */
static int read_parent(const cli_file *file, cli_listed *l, size_t row, char *why, size_t size)
{
    size_t parent = row;

    do {
        parent = cli_version_made_of(l->rows, parent);
        if (parent < l->first && l->rows[parent].name == NULL &&
            cli_versions_number(file, l->rows, parent, why, size) < 0)
            return -1;
    } while (parent != SIZE_MAX && l->rows[parent].open == COW_LOG_FORGOTTEN);
    return 0;
}

/* The texts of rows that are shown, and of those that these were made of. */
static int read_texts(const cli_file *file, cli_listed *l, char *why, size_t size)
{
    int status = 0;

    for (size_t first = 0, end; status == 0 && first < l->count; first = end + 1) {
        for (; first < l->count && l->left_out[first]; first++)
            ;
        for (end = first; end < l->count && !l->left_out[end]; end++)
            ;
        if (first < end)
            status = cli_versions_texts(file, l->rows, first, end, why, size);
    }
    for (size_t i = l->first; status == 0 && i < l->count; i++) {
        size_t parent = SIZE_MAX;

        if (!l->left_out[i] && (status = read_parent(file, l, i, why, size)) == 0)
            parent = cli_version_parent(l->rows, i);
        if (status == 0 && parent != SIZE_MAX && l->rows[parent].name == NULL)
            status = cli_versions_texts(file, l->rows, parent, parent + 1, why, size);
    }
    return status;
}

static int show(const cli_file *file, const asked *a)
{
    cli_listed l = {0};
    char why[1024] = "";
    bool texts = a->w.object != NULL; /* all of them are needed to choose */
    /* one more, which tells whether some are left out */
    const uint64_t newest = a->w.number == UINT64_MAX || a->w.since != INT64_MIN || a->w.until != INT64_MAX || a->graph
                                ? UINT64_MAX
                                : a->w.number + 1;
    int status = texts ? cli_versions_read(file, &l.rows, &l.count, why, sizeof why)
                       : cli_versions_newest(file, newest, &l.rows, &l.count, &l.first, why, sizeof why);

    if (status == 0 && (status = cli_lacks_read(file, &l.lacks, &l.lacking, why, sizeof why)) == 0)
        status = leave_out(file, &l, &a->w);
    if (status == 0 && !texts)
        status = read_texts(file, &l, why, sizeof why);
    if (status < 0)
        status = cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file->name, why);
    else if (status == 0 && cli_tags_read(file, l.rows, l.count, &l.tags, &l.tagged, why, sizeof why) < 0)
        cli_warn("'%s' is damaged, so no tags are shown: %s", file->name, why);
    if (status == 0 && a->json)
        status = cli_json(as_json(&l));
    else if (status == 0) {
        (a->lines ? cli_log_lines : cli_log_table)(&l, a->clock, a->graph);
        status = cli_flush();
    }
    free(l.left_out);
    cli_versions_free(l.rows, l.count);
    cli_lacks_free(l.lacks, l.lacking);
    cli_tags_free(l.tags, l.tagged);
    return status;
}

static int parse(asked *a, int argc, char **argv, bool *helped)
{
    static const struct option options[] = {
        {"number", required_argument, NULL, 'n'}, {"since", required_argument, NULL, 's'},
        {"until", required_argument, NULL, 't'},  {"object", required_argument, NULL, 'o'},
        {"all", no_argument, NULL, 'a'},          {"oneline", no_argument, NULL, 'l'},
        {"json", no_argument, NULL, 'j'},         {"operations", no_argument, NULL, 'p'},
        {"graph", no_argument, NULL, 'g'},        {"utc", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int status = 0;

    opterr = 0;
    for (int c; status == 0 && (c = getopt_long(argc, argv, ":n:uh", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            status = cli_parse_count("log", "--number", optarg, &a->w.number);
            break;
        case 's':
            status = parse_time("--since", optarg, &a->w.since, NULL);
            break;
        case 't':
            status = parse_time("--until", optarg, NULL, &a->w.until);
            break;
        case 'o':
            a->w.object = optarg;
            if (optarg[0] != '/')
                status = cli_usage("log", "the path of an object begins with '/': '%s'", optarg);
            break;
        case 'a':
            a->w.forgotten = true;
            break;
        case 'l':
            a->lines = true;
            break;
        case 'p':
            a->operations = true;
            break;
        case 'g':
            a->graph = true;
            break;
        case 'j':
            a->json = true;
            break;
        case 'u':
            a->clock = CLI_UTC;
            break;
        case 'h':
            *helped = true;
            fputs(cli_log_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("log", argv) : cli_no_option("log", argv);
        }
    return status;
}

int cli_log(int argc, char **argv)
{
    asked a = {.w = {.number = UINT64_MAX, .since = INT64_MIN, .until = INT64_MAX}, .clock = CLI_LOCAL};
    bool helped = false;
    cli_file file;
    int status = parse(&a, argc, argv, &helped);

    if (status != 0 || helped)
        return status;
    if (a.operations && (a.w.number != UINT64_MAX || a.w.since != INT64_MIN || a.w.until != INT64_MAX ||
                         a.w.object != NULL || a.w.forgotten || a.lines || a.graph))
        return cli_usage("log", "--operations lists all of them: only --utc and --json go with it");
    if (optind + 1 != argc)
        return cli_usage("log", optind == argc ? "which file?" : "one file at a time");
    const char *name = argv[optind];
    cli_hdf5_start();
    if (cli_file_open(&file, "log", name, false) != 0)
        return CLI_FAILED;
    if ((status = cli_file_history(&file)) == 0)
        status = a.operations ? cli_log_operations(&file, a.json, a.clock) : show(&file, &a);
    cli_file_close(&file);
    return status;
}
