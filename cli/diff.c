/* h5cow diff, h5cow show: what differs between two states. Parts: diff.h. */
#include "diff.h"

#include "pager.h"
#include "progress.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENOUGH 200 /* bytes of a value, on a terminal */

const char cli_diff_help[] =
    "Usage: h5cow diff [OPTION]... FILE[@REV] [FILE[@REV] [PATH]]\n\n"
    "Shows what the second state has that the first has not, and the other way round: objects that were added or\n"
    "removed, types and shapes, elements of datasets, attributes, links, comments; of the whole file, or of the object\n"
    "PATH and what is below it. FILE without @REV is the newest state; a second file that is not given is the newest\n"
    "state of the first; '@REV' alone is another version of it. Plain HDF5 files can be compared as well.\n"
    "What two versions share is not read, so large files take no longer than what differs in them.\n\n"
    "Numbers are compared by value: NaN equals NaN, -0 equals 0.\n\n"
    "  -n, --values=N       show N elements of each dataset that differ, with their positions\n"
    "  -a, --absolute=X     numbers that differ by X at most count as equal\n"
    "  -r, --relative=X     or by X times the value of the first\n"
    "  -s, --stat           one line for each object, and how many there are of each kind\n"
    "  -q, --quiet          print nothing, but answer with the exit code\n"
    "      --json           the answer as one JSON object\n"
    "  -h, --help\n\n"
    "Exit code: 0 nothing differs, 1 something does, 2 wrong usage or failure, or something could not be compared.\n\n"
    "Example: h5cow diff run.h5@~1 run.h5\n";

const char cli_show_help[] =
    "Usage: h5cow show [OPTION]... FILE[@REV] [PATH]\n\n"
    "Shows one version, the newest or REV: when, by whom, with which program and message it was made, and what it\n"
    "changed: what differs from the version that it was made of, as 'h5cow diff' shows it.\n\n"
    "  -n, --values=N       show N elements of each dataset that differ, with their positions\n"
    "  -u, --utc            show the time in UTC, not in local time\n"
    "      --json           the answer as one JSON object; times in UTC\n"
    "  -h, --help\n";

typedef struct request {
    cli_diff diff; /* the first: what it calls finds the rest */
    cli_state before, after;
    bool quiet, json, stat;
    cli_table *table; /* --stat */
    size_t added, removed, changed;
    uint64_t elements;
} request;

/* ---- as text ---- */

static const char *text_of(json_object *item, const char *key)
{
    json_object *value;

    return json_object_object_get_ex(item, key, &value) && value != NULL ? json_object_get_string(value) : "?";
}

/* (3, 4) of [3, 4]; free() it. */
static char *place_of(json_object *list)
{
    uint64_t dims[H5S_MAX_RANK];
    size_t rank = list == NULL ? 0 : json_object_array_length(list);
    char text[700];

    if (list == NULL)
        return cli_strdup("(nothing)");
    for (size_t d = 0; d < rank && d < H5S_MAX_RANK; d++)
        dims[d] = json_object_get_uint64(json_object_array_get_idx(list, d));
    return cli_strdup(cli_shape(text, sizeof text, (unsigned)rank, dims));
}

static char *place_in(json_object *item, const char *key)
{
    json_object *list = NULL;

    json_object_object_get_ex(item, key, &list);
    return place_of(list);
}

static bool is_within_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Text that came out of a file was made safe for JSON; here it is for a terminal. */
static void put(const char *text)
{
    char *escaped = cli_escape(text);

    fputs(escaped, stdout);
    free(escaped);
}

/* TEXT, or as much of it as a terminal is to have: of two that are long, BESIDE being the other one, from where they differ on. */
static void put_value(const char *text, const char *beside)
{
    const size_t length = strlen(text);
    size_t start = 0, end;
    char *part;

    if (!cli_pager_terminal() || length <= ENOUGH) {
        put(text);
        return;
    }
    while (beside != NULL && text[start] != '\0' && text[start] == beside[start])
        start++;
    start = beside == NULL || start < ENOUGH / 2 ? 0 : start - ENOUGH / 4;
    while (start > 0 && is_within_character(text[start]))
        start--;
    end = length - start > ENOUGH ? start + ENOUGH : length;
    while (end < length && end > start && is_within_character(text[end]))
        end--;
    part = cli_format("%s%.*s%s", start > 0 ? "\xe2\x80\xa6" : "", (int)(end - start), text + start,
                      end < length ? "\xe2\x80\xa6" : "");
    put(part);
    free(part);
}

/* NULL: a number that JSON cannot tell. */
static double number_of(json_object *value)
{
    return value == NULL ? INFINITY : json_object_get_double(value);
}

static void print_elements(json_object *found)
{
    json_object *value, *list;
    char *first = place_in(found, "first"), *at = place_in(found, "largest_at");

    printf("  elements: %s of %s differ", text_of(found, "changed"), text_of(found, "compared"));
    if (json_object_object_get_ex(found, "chunks", &value))
        printf(", in %s of %s chunks", text_of(found, "chunks_changed"), text_of(found, "chunks"));
    printf("; the first at %s", first);
    if (json_object_object_get_ex(found, "largest", &value)) {
        printf("; by at most %g at %s", number_of(value), at);
        if (json_object_object_get_ex(found, "mean", &value))
            printf(", on average %g", number_of(value));
    }
    putchar('\n');
    for (size_t i = 0; json_object_object_get_ex(found, "values", &list) && i < json_object_array_length(list); i++) {
        json_object *item = json_object_array_get_idx(list, i);
        char *where = place_in(item, "at");
        printf("    %s: ", where);
        const char *before = text_of(item, "before"), *after = text_of(item, "after");
        put_value(before, after);
        fputs(" -> ", stdout);
        put_value(after, before);
        putchar('\n');
        free(where);
    }
    free(first);
    free(at);
}

static void print_attribute(json_object *told)
{
    const char *change = text_of(told, "change");

    fputs("  attribute '", stdout);
    put(text_of(told, "name"));
    printf("'%s%s: ", change[0] == 'c' ? "" : " ", change[0] == 'c' ? "" : change);
    if (change[0] != 'a')
        put_value(text_of(told, "before"), change[0] == 'c' ? text_of(told, "after") : NULL);
    if (change[0] == 'c')
        fputs(" -> ", stdout);
    if (change[0] != 'r')
        put_value(text_of(told, "after"), change[0] == 'c' ? text_of(told, "before") : NULL);
    putchar('\n');
}

static void print_both(json_object *item, const char *key)
{
    json_object *both, *value[2] = {NULL, NULL};

    if (!json_object_object_get_ex(item, key, &both))
        return;
    json_object_object_get_ex(both, "before", &value[0]);
    json_object_object_get_ex(both, "after", &value[1]);
    printf("  %s: ", key);
    for (int i = 0; i < 2; i++) {
        bool text = json_object_is_type(value[i], json_type_string), quoted = strcmp(key, "comment") == 0;
        char *place = text ? NULL : place_of(value[i]);
        fputs(quoted ? "\"" : "", stdout);
        put(text ? json_object_get_string(value[i]) : place);
        printf("%s%s", quoted ? "\"" : "", i == 0 ? " -> " : "\n");
        free(place);
    }
}

static void print_item(cli_diff *diff, json_object *item)
{
    json_object *value, *before, *after;

    (void)diff;
    cli_progress_end();
    cli_progress_off(); /* a pager may have the terminal from here on */
    put(text_of(item, "path"));
    printf(": %s", text_of(item, "change"));
    bool had = json_object_object_get_ex(item, "before", &before),
         has = json_object_object_get_ex(item, "after", &after);
    if (had || has)
        fputs(", ", stdout);
    if (had)
        put(json_object_get_string(before));
    if (had && has)
        fputs(" -> ", stdout);
    if (has)
        put(json_object_get_string(after));
    putchar('\n');
    print_both(item, "type");
    print_both(item, "shape");
    if (json_object_object_get_ex(item, "maximum_changed", &value))
        puts("  the largest shape that it may have");
    if (json_object_object_get_ex(item, "elements", &value))
        print_elements(value);
    for (size_t i = 0; json_object_object_get_ex(item, "attributes", &value) && i < json_object_array_length(value);
         i++)
        print_attribute(json_object_array_get_idx(value, i));
    print_both(item, "comment");
    for (size_t i = 0; json_object_object_get_ex(item, "trouble", &value) && i < json_object_array_length(value); i++) {
        fputs("  ! ", stdout);
        put(json_object_get_string(json_object_array_get_idx(value, i)));
        putchar('\n');
    }
    json_object_put(item);
}

/* ---- as a table ---- */

/* What else differs, in words. */
static void put_rest(cli_table *table, json_object *item)
{
    static const char *const keys[] = {"type", "shape", "maximum_changed", "comment", "trouble"};
    static const char *const words[] = {"type", "shape", "maximum", "comment", "cannot be compared"};
    char text[200] = "";
    size_t length = 0, attributes = 0;
    json_object *value;

    if (json_object_object_get_ex(item, "attributes", &value) && (attributes = json_object_array_length(value)) > 0)
        length = (size_t)snprintf(text, sizeof text, "%zu attribute%s", attributes, attributes == 1 ? "" : "s");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_object_get_ex(item, keys[i], &value))
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", length > 0 ? ", " : "", words[i]);
    cli_table_cell(table, "%s", text);
}

static void put_number_cell(cli_table *table, json_object *found, const char *key)
{
    json_object *value;

    if (found != NULL && json_object_object_get_ex(found, key, &value))
        cli_table_cell(table, "%g", number_of(value));
    else
        cli_table_cell(table, "%s", "");
}

static void count_item(cli_diff *diff, json_object *item)
{
    request *r = (request *)diff;
    const char *change = text_of(item, "change");
    char *path = cli_escape(text_of(item, "path"));
    json_object *found = NULL, *value;

    ++*(strcmp(change, "added") == 0 ? &r->added : strcmp(change, "removed") == 0 ? &r->removed : &r->changed);
    cli_table_cell(r->table, "%s", path);
    cli_table_cell(r->table, "%s", change);
    if (json_object_object_get_ex(item, "elements", &found) && json_object_object_get_ex(found, "changed", &value)) {
        r->elements += json_object_get_uint64(value);
        cli_table_cell(r->table, "%s of %s", text_of(found, "changed"), text_of(found, "compared"));
    } else
        cli_table_cell(r->table, "%s", "");
    put_number_cell(r->table, found, "largest");
    put_number_cell(r->table, found, "mean");
    put_rest(r->table, item);
    free(path);
    json_object_put(item);
}

static void print_counts(const request *r)
{
    if (r->added + r->removed + r->changed == 0)
        return;
    cli_table_print(r->table);
    printf("\n%zu changed, %zu added, %zu removed; %llu elements differ\n", r->changed, r->added, r->removed,
           (unsigned long long)r->elements);
}

static void drop_item(cli_diff *diff, json_object *item)
{
    (void)diff;
    json_object_put(item);
}

static void keep_item(cli_diff *diff, json_object *item)
{
    json_object_array_add(diff->list, item);
}

/* ---- the work ---- */

static int parse_number(const char *verb, const char *option, const char *text, double *number)
{
    char *end;

    errno = 0;
    *number = strtod(text, &end);
    if (*text != '\0' && *end == '\0' && errno == 0 && *number >= 0)
        return 0;
    return cli_usage(verb, "%s wants a number that is not below 0, not '%s'", option, text);
}

static bool same_file(const cli_state *a, const cli_state *b)
{
    struct stat x, y;

    return a->index != NULL && b->index != NULL && stat(a->file.name, &x) == 0 && stat(b->file.name, &y) == 0 &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Compare what is open, and tell it. */
static int compare(request *r, const char *path, json_object *answer)
{
    cli_diff *diff = &r->diff;
    int status;

    diff->tell = r->quiet ? drop_item : r->json ? keep_item : r->stat ? count_item : print_item;
    diff->list = r->json ? json_object_new_array() : NULL;
    diff->same_file = diff->before != NULL && same_file(diff->before, diff->after);
    if (r->quiet)
        cli_progress_off();
    status = cli_diff_tree(diff, path);
    cli_progress_end();
    if (status != 0) {
        json_object_put(diff->list);
        json_object_put(answer);
        return status;
    }
    if (r->json) {
        json_object_object_add(answer, "objects", diff->list);
        status = cli_json(answer);
    } else {
        if (r->stat && !r->quiet)
            print_counts(r);
        status = cli_flush();
    }
    return status != 0 || diff->troubles > 0 ? CLI_FAILED : 0;
}

static json_object *state_json(const cli_state *state)
{
    json_object *told = json_object_new_object();

    json_object_object_add(told, "file", cli_json_text(state->file.name));
    json_object_object_add(told, "version", state->name == NULL ? NULL : cli_json_text(state->name));
    return told;
}

static int diff_states(request *r, const char *path)
{
    json_object *answer = r->json ? json_object_new_object() : NULL;
    int status;

    r->diff.before = &r->before;
    r->diff.after = &r->after;
    if (answer != NULL) {
        json_object_object_add(answer, "before", state_json(&r->before));
        json_object_object_add(answer, "after", state_json(&r->after));
    }
    status = compare(r, path, answer);
    return status != 0 ? status : r->diff.differences > 0;
}

/* The second state: another file, '@REV' of the first, or the newest of the first. free() it. */
static char *second_name(const cli_state *first, const char *argument)
{
    if (argument == NULL)
        return cli_strdup(first->file.name);
    return argument[0] == '@' ? cli_format("%s%s", first->file.name, argument) : cli_strdup(argument);
}

int cli_diff_verb(int argc, char **argv)
{
    static const struct option options[] = {
        {"values", required_argument, NULL, 'n'},   {"absolute", required_argument, NULL, 'a'},
        {"relative", required_argument, NULL, 'r'}, {"stat", no_argument, NULL, 's'},
        {"quiet", no_argument, NULL, 'q'},          {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    request r = {.diff = {.absolute = -1, .relative = -1}};
    int status = 0;
    char *second;

    opterr = 0;
    for (int c; status == 0 && (c = getopt_long(argc, argv, ":n:a:r:sqh", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            status = cli_parse_count("diff", "--values", optarg, &r.diff.listed);
            break;
        case 'a':
            status = parse_number("diff", "--absolute", optarg, &r.diff.absolute);
            break;
        case 'r':
            status = parse_number("diff", "--relative", optarg, &r.diff.relative);
            break;
        case 's':
            r.stat = true;
            break;
        case 'q':
            r.quiet = true;
            break;
        case 'j':
            r.json = true;
            break;
        case 'h':
            fputs(cli_diff_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("diff", argv) : cli_no_option("diff", argv);
        }
    if (status != 0)
        return status;
    const char *const *words = (const char *const *)argv + optind;
    int count = argc - optind;
    if (count < 1 || count > 3)
        return cli_usage("diff", count < 1 ? "which files?" : "it wants two states of files, and one object at most");
    if (count == 3 && words[2][0] != '/')
        return cli_usage("diff", "the path of an object begins with '/': '%s'", words[2]);
    cli_hdf5_start();
    if (cli_state_open(&r.before, "diff", words[0], NULL) != 0)
        return CLI_FAILED;
    if (r.stat)
        r.table = cli_table_open(6, (const char *const[]){"path", "change", "elements", "largest", "mean", "also"});
    second = second_name(&r.before, count > 1 ? words[1] : NULL);
    status = cli_state_open(&r.after, "diff", second, &r.before);
    if (status == 0) {
        status = diff_states(&r, count == 3 ? words[2] : "/");
        cli_state_close(&r.after);
    }
    free(second);
    if (r.table != NULL)
        cli_table_close(r.table);
    cli_state_close(&r.before);
    return status;
}

/* ---- show ---- */

static void print_field(const char *title, const char *text)
{
    fputs(title, stdout);
    put(text);
    putchar('\n');
}

/* What the version of ROW comes from. BEFORE: the row of the one before it, which it is compared with. */
static void print_origin(const cli_version *rows, size_t row, size_t before)
{
    const size_t made_of = cli_version_made_of(rows, row), parent = cli_version_parent(rows, row);

    if (parent != SIZE_MAX && parent != before && parent == made_of)
        print_field("as was  ", rows[parent].name);
    else if (parent != SIZE_MAX) /* of one that was forgotten, the nearest that is left is told, as log does */
        print_field("made of ", rows[parent].name);
    if (before != SIZE_MAX && parent != before)
        print_field("after   ", rows[before].name);
}

static void print_version(const cli_version *rows, size_t row, size_t before, cli_clock clock)
{
    const cli_version *version = &rows[row];
    char text[48], bytes[32];

    fputs("version ", stdout);
    put(version->name);
    printf("%s\n", version->open == COW_LOG_OPEN ? " (open)" : "");
    print_origin(rows, row, before);
    printf("time    %s\nuser    ", cli_time(text, version->time, clock, true));
    put(version->user);
    fputs(" on ", stdout);
    put(version->host);
    fputs("\nprogram ", stdout);
    put(version->program);
    printf("\nadded   %s\n", cli_bytes(bytes, (double)version->added));
    if (version->message[0] != '\0')
        print_field("message ", version->message);
    putchar('\n');
}

static int show(request *r, const char *path, cli_clock clock)
{
    cli_version *rows = NULL;
    size_t count = 0, row = 0, before;
    json_object *answer = NULL;
    const char *former;
    int status = cli_state_rows(&r->after, &rows, &count, &row);

    if (status != 0)
        return status;
    before = cli_version_before(rows, row);
    former = before == SIZE_MAX ? NULL : rows[before].name;
    if (former != NULL && (status = cli_state_version(&r->before, &r->after, former)) != 0)
        goto done;
    r->diff.before = former == NULL ? NULL : &r->before;
    r->diff.after = &r->after;
    if (r->json) {
        answer = cli_version_json(rows, row);
        json_object_object_add(answer, "file", cli_json_text(r->after.file.name));
    } else
        print_version(rows, row, before, clock);
    status = compare(r, path, answer);
    if (former != NULL)
        cli_state_close(&r->before);
done:
    cli_versions_free(rows, count);
    return status;
}

int cli_show(int argc, char **argv)
{
    static const struct option options[] = {{"values", required_argument, NULL, 'n'},
                                            {"utc", no_argument, NULL, 'u'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    request r = {.diff = {.absolute = -1, .relative = -1}};
    cli_clock clock = CLI_LOCAL;
    const char *path;
    int status = 0;

    opterr = 0;
    for (int c; status == 0 && (c = getopt_long(argc, argv, ":n:uh", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            status = cli_parse_count("show", "--values", optarg, &r.diff.listed);
            break;
        case 'u':
            clock = CLI_UTC;
            break;
        case 'j':
            r.json = true;
            break;
        case 'h':
            fputs(cli_show_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("show", argv) : cli_no_option("show", argv);
        }
    if (status != 0)
        return status;
    if ((status = cli_state_words("show", argc, argv, &path)) != 0)
        return status;
    cli_hdf5_start();
    if (cli_state_open(&r.after, "show", argv[optind], NULL) != 0)
        return CLI_FAILED;
    status = show(&r, path, clock);
    cli_state_close(&r.after);
    return status;
}
