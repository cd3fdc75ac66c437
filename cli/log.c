/* h5cow log: the versions of a file, newest first. */
#include "base/times.h"
#include "common.h"
#include "tables.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char cli_log_help[] =
    "Usage: h5cow log [OPTION]... FILE\n\n"
    "Lists the versions of FILE, newest first: name, number, time, user, bytes by which the file grew, objects that\n"
    "changed, program, message. What is in the first three columns names a version: FILE@NAME, FILE@#N, FILE@{TIME}.\n"
    "A version marked 'open' belongs to a program that has not closed the file yet, or never will;\n"
    "one marked 'incomplete' lacks what is listed below.\n\n"
    "  -n, --number=N      the newest N of those that are asked for\n"
    "      --since=TIME    only versions that were made at TIME or later: 2026-01-31T12:00, yesterday, 2 hours ago\n"
    "      --until=TIME    only those made at TIME or before\n"
    "      --object=PATH   only versions that changed the object PATH: its elements, attributes, what is below a group\n"
    "      --oneline       only name, time and message of each\n"
    "  -u, --utc           show times in UTC, not in local time\n"
    "      --json          a list of objects, with all that is recorded; times in UTC\n"
    "  -h, --help\n";

/* At most WIDTH characters, the rest as an ellipsis. free() it. */
static char *shorten(const char *text, size_t width)
{
    size_t characters = 0, kept = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (((unsigned char)text[i] & 0xc0) == 0x80)
            continue;
        if (++characters == width)
            kept = i;
    }
    return characters <= width ? cli_strdup(text) : cli_format("%.*s\xe2\x80\xa6", (int)kept, text);
}

typedef struct listed {
    cli_version *rows;
    cli_lack *lacks;
    size_t count, lacking;
    bool *left_out; /* of each row: it was not asked for */
    bool some;      /* one was left out */
} listed;

static bool incomplete(const listed *l, size_t version)
{
    for (size_t i = 0; i < l->lacking; i++)
        if (l->lacks[i].version == version)
            return true;
    return false;
}

static void print_lacks(const listed *l)
{
    for (size_t v = l->count + 1; v-- > 0;) {
        if (!incomplete(l, v) || (v == l->count ? l->some : l->left_out[v]))
            continue;
        if (v == l->count)
            printf("\nChanges after the newest version are in no version yet; the next one will have them:\n");
        else
            printf("\nVersion %s is not complete:\n", l->rows[v].name);
        for (size_t i = 0; i < l->lacking; i++) {
            const cli_lack *lack = &l->lacks[i];
            char *path = cli_escape(lack->path), *reason = cli_escape(lack->reason);
            if (lack->version == v && lack->head == UINT64_MAX)
                printf("  a commit before it made no version: %s\n", reason);
            else if (lack->version == v)
                printf("  %s%s%s\n", path[0] == '\0' ? "(path not known)" : path, reason[0] == '\0' ? "" : ": ",
                       reason);
            free(path);
            free(reason);
        }
    }
}

/* As it can stand in a line: a program's text is often several, whose indentation says nothing in one. free() it. */
static char *program_line(const char *text)
{
    char *copy = cli_strdup(text), *to = copy;

    for (const char *from = copy; *from != '\0'; from++)
        if (*from != ' ' || (to > copy && to[-1] != ' '))
            *to++ = *from;
    *to = '\0';
    char *escaped = cli_escape(copy), *shown = shorten(escaped, 40);
    free(escaped);
    free(copy);
    return shown;
}

/* Versions of one second can be told apart, and named, by its fractions only. */
static bool close_together(const cli_version *rows, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (rows[i].time / 1000000 == rows[i - 1].time / 1000000)
            return true;
    return false;
}

static void print_table(const listed *l, cli_clock clock)
{
    const cli_version *rows = l->rows;
    const size_t count = l->count;
    static const char *const titles[] = {"version", "#", "time", "user", "added", "changed", "program", "message"};
    cli_table *table = cli_table_open(8, titles);
    bool exact = close_together(rows, count);
    char text[48];

    cli_table_right(table, 1);
    cli_table_right(table, 4);
    cli_table_right(table, 5);
    for (size_t i = count; i-- > 0;) {
        if (l->left_out[i])
            continue;
        const cli_version *v = &rows[i];
        char *program = program_line(v->program), *message = cli_escape(v->message);

        cli_table_cell(table, "%s%s%s", v->name, v->open ? " (open)" : "", incomplete(l, i) ? " (incomplete)" : "");
        cli_table_cell(table, "%zu", i + 1);
        cli_table_cell(table, "%s", cli_time(text, v->time, clock, exact));
        cli_table_cell(table, "%s", v->user);
        cli_table_cell(table, "%s", cli_bytes(text, (double)v->added));
        cli_table_cell(table, "%lld", (long long)v->changed);
        cli_table_cell(table, "%s", program);
        cli_table_cell(table, "%s", message);
        free(program);
        free(message);
    }
    cli_table_print(table);
    cli_table_close(table);
}

static void print_lines(const listed *l, cli_clock clock)
{
    static const char *const titles[] = {"version", "time", "message"};
    cli_table *table = cli_table_open(3, titles);
    bool exact = close_together(l->rows, l->count);
    char text[48];

    for (size_t i = l->count; i-- > 0;) {
        if (l->left_out[i])
            continue;
        char *message = cli_escape(l->rows[i].message);
        cli_table_cell(table, "%s", l->rows[i].name);
        cli_table_cell(table, "%s", cli_time(text, l->rows[i].time, clock, exact));
        cli_table_cell(table, "%s", message);
        free(message);
    }
    cli_table_print(table);
    cli_table_close(table);
}

json_object *cli_lack_json(const cli_lack *lack)
{
    json_object *item = json_object_new_object();

    json_object_object_add(item, "path", lack->path[0] == '\0' ? NULL : cli_json_text(lack->path));
    json_object_object_add(item, "head", lack->head == UINT64_MAX ? NULL : json_object_new_uint64(lack->head));
    json_object_object_add(item, "reason", cli_json_text(lack->reason));
    return item;
}

static json_object *lacks_json(const listed *l, size_t version)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < l->lacking; i++)
        if (l->lacks[i].version == version)
            json_object_array_add(list, cli_lack_json(&l->lacks[i]));
    return list;
}

json_object *cli_version_json(const cli_version *rows, size_t count, size_t number)
{
    const cli_version *v = &rows[number];
    json_object *item = json_object_new_object();
    char text[48];

    json_object_object_add(item, "number", json_object_new_uint64(number + 1));
    json_object_object_add(item, "name", cli_json_text(v->name));
    json_object_object_add(
        item, "parent", v->parent >= 0 && (uint64_t)v->parent < count ? cli_json_text(rows[v->parent].name) : NULL);
    json_object_object_add(item, "time", cli_json_text(cli_time(text, v->time, CLI_UTC, false)));
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
    json_object_object_add(item, "open", json_object_new_boolean(v->open != 0));
    return item;
}

static json_object *as_json(const listed *l)
{
    json_object *list = json_object_new_array();

    for (size_t i = l->count; i-- > 0;) {
        if (l->left_out[i])
            continue;
        json_object *item = cli_version_json(l->rows, l->count, i);
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
} wanted;

/* Versions share what did not change. */
static int leave_out_unchanged(const cli_file *file, listed *l, const char *path)
{
    uint64_t *snapshot = cli_alloc(l->count, sizeof *snapshot);
    bool known = false;

    for (size_t i = 0; i < l->count; i++) {
        size_t parent = cli_version_parent(l->rows, i);
        H5O_type_t type;
        snapshot[i] = cli_version_object(file, &l->rows[i], path, &type);
        known = known || snapshot[i] != UINT64_MAX;
        if (snapshot[i] == (parent != SIZE_MAX ? snapshot[parent] : UINT64_MAX))
            l->left_out[i] = true;
    }
    free(snapshot);
    return known ? 0 : cli_fail("no version of '%s' has an object '%s'", file->name, path);
}

static int leave_out(const cli_file *file, listed *l, const wanted *w)
{
    uint64_t kept = 0;

    l->left_out = cli_alloc(l->count, sizeof *l->left_out);
    if (w->object != NULL && leave_out_unchanged(file, l, w->object) != 0)
        return CLI_FAILED;
    for (size_t i = l->count; i-- > 0;) {
        if (l->rows[i].time < w->since || l->rows[i].time > w->until || kept == w->number)
            l->left_out[i] = true;
        kept += !l->left_out[i];
        l->some = l->some || l->left_out[i];
    }
    return 0;
}

static int parse_time(const char *option, const char *text, int64_t *first, int64_t *last)
{
    int64_t unwanted;

    if (cow_times_parse(text, time(NULL), first == NULL ? &unwanted : first, last == NULL ? &unwanted : last) == 0)
        return 0;
    return cli_usage("log", "%s wants a time, as 2026-01-31T12:00, yesterday or '2 hours ago', not '%s'", option, text);
}

int cli_log(int argc, char **argv)
{
    static const struct option options[] = {
        {"number", required_argument, NULL, 'n'}, {"since", required_argument, NULL, 's'},
        {"until", required_argument, NULL, 't'},  {"object", required_argument, NULL, 'o'},
        {"oneline", no_argument, NULL, 'l'},      {"json", no_argument, NULL, 'j'},
        {"utc", no_argument, NULL, 'u'},          {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    cli_file file = {.id = H5I_INVALID_HID};
    listed l = {0};
    wanted w = {.number = UINT64_MAX, .since = INT64_MIN, .until = INT64_MAX};
    cli_clock clock = CLI_LOCAL;
    char why[1024];
    bool json = false, lines = false;
    int status = 0;

    opterr = 0;
    for (int c; status == 0 && (c = getopt_long(argc, argv, ":n:uh", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            status = cli_parse_count("log", "--number", optarg, &w.number);
            break;
        case 's':
            status = parse_time("--since", optarg, &w.since, NULL);
            break;
        case 't':
            status = parse_time("--until", optarg, NULL, &w.until);
            break;
        case 'o':
            w.object = optarg;
            if (optarg[0] != '/')
                status = cli_usage("log", "the path of an object begins with '/': '%s'", optarg);
            break;
        case 'l':
            lines = true;
            break;
        case 'j':
            json = true;
            break;
        case 'u':
            clock = CLI_UTC;
            break;
        case 'h':
            fputs(cli_log_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("log", argv) : cli_no_option("log", argv);
        }
    if (status != 0)
        return status;
    status = CLI_FAILED;
    if (optind + 1 != argc)
        return cli_usage("log", optind == argc ? "which file?" : "one file at a time");
    const char *name = argv[optind];
    cli_hdf5_start();
    if (cli_file_open(&file, "log", name, false) != 0)
        return CLI_FAILED;
    if (cli_file_history(&file) != 0)
        goto done;
    if (cli_versions_read(&file, &l.rows, &l.count, why, sizeof why) < 0 ||
        cli_lacks_read(&file, &l.lacks, &l.lacking, why, sizeof why) < 0) {
        cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file.name, why);
        goto done;
    }
    if (leave_out(&file, &l, &w) != 0)
        goto done;
    if (json)
        status = cli_json(as_json(&l));
    else {
        (lines ? print_lines : print_table)(&l, clock);
        print_lacks(&l);
        status = cli_flush();
    }
done:
    free(l.left_out);
    cli_versions_free(l.rows, l.count);
    cli_lacks_free(l.lacks, l.lacking);
    cli_file_close(&file);
    return status;
}
