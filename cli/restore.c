/* h5cow restore, undo, redo: the file, or objects of it, as they were in a version, as a new version.
 *
 * The connector does it (h5cow_restore): no data is copied. Nothing is written before the commit, so what fails leaves the file as
 * it was; and as it is a version like any other, it can be undone itself.
 */
#include "base/error.h"
#include "common.h"
#include "h5cow.h"
#include "history/history.h"
#include "plugin.h"
#include "tables.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON_OPTIONS                                                                                                 \
    "      --force           although a version is incomplete (h5cow log): what no version has is lost\n"              \
    "  -m, --message=TEXT    recorded in the new version, instead of what was restored\n"                              \
    "  -n, --dry-run         say what would be done, and do nothing\n"                                                 \
    "  -q, --quiet           do not list what changed\n"                                                               \
    "      --wait=SECONDS    how long to wait for a program that is writing FILE\n"                                    \
    "      --json            an object: the version that was restored, the new one, what changed\n"                    \
    "  -h, --help\n\n"

const char cli_restore_help[] =
    "Usage: h5cow restore [OPTION]... FILE@REV [PATH]...\n\n"
    "FILE is as it was in version REV, or only the objects PATH and what is below them are. That is a new version: the\n"
    "versions before it stay, and 'h5cow undo' takes it back. No data is copied, however large the file is. Objects are\n"
    "the same ones as before, so references to them lead to them.\n"
    "What is listed: an object that changed, a link that was added (+), removed (-) or leads to another object.\n\n" COMMON_OPTIONS
    "Example: h5cow restore run.h5@{monday} /temperature\n";

const char cli_undo_help[] =
    "Usage: h5cow undo [OPTION]... FILE\n\n"
    "FILE is as it was before its newest version. That is a new version, so nothing is lost: 'h5cow redo' takes it back.\n"
    "Once more goes back one version more.\n\n" COMMON_OPTIONS "Example: h5cow undo run.h5\n";

const char cli_redo_help[] =
    "Usage: h5cow redo [OPTION]... FILE\n\n"
    "Takes back the last 'h5cow undo': FILE is as it was before. Once more goes on to the next version that was undone.\n"
    "Not after something else was written, which began another branch: restore what is wanted.\n\n" COMMON_OPTIONS
    "Example: h5cow redo run.h5\n";

typedef struct restoring {
    const char *verb;
    char *name; /* of the file */
    h5cow_restore_t request;
    char *message;
    bool quiet, json, dry;
    unsigned wait; /* seconds */
    cli_version *rows;
    size_t versions, row;    /* of the version that is restored */
    size_t *step, steps, at; /* of undo and redo */
    json_object *changes;
    uint64_t made; /* number of the new version, 0: none */
} restoring;

/* ---- what changed ---- */

static const char *const change_words[] = {
    [H5COW_ADDED] = "added",
    [H5COW_REMOVED] = "removed",
    [H5COW_REPLACED] = "replaced",
    [H5COW_CHANGED] = "changed",
};

static int note(void *context, const char *path, int32_t what)
{
    restoring *r = context;
    json_object *item = json_object_new_object();

    json_object_object_add(item, "path", cli_json_text(path));
    json_object_object_add(item, "change", json_object_new_string(change_words[what]));
    json_object_array_add(r->changes, item);
    return 0;
}

static void print_changes(const restoring *r)
{
    for (size_t i = 0; !r->quiet && i < json_object_array_length(r->changes); i++) {
        json_object *item = json_object_array_get_idx(r->changes, i), *path, *change;

        json_object_object_get_ex(item, "path", &path);
        json_object_object_get_ex(item, "change", &change);
        char *clean = cli_escape(json_object_get_string(path));
        const char *word = json_object_get_string(change);
        printf("  %s%s %s\n", word[0] == 'a' ? "+ " : word[2] == 'm' ? "- " : "  ", word, clean);
        free(clean);
    }
}

static int print_json(const restoring *r, const char *restored)
{
    json_object *answer = json_object_new_object();

    json_object_object_add(answer, "file", cli_json_text(r->name));
    json_object_object_add(answer, "restored", cli_json_text(restored));
    json_object_object_add(answer, "restored_number", json_object_new_uint64(r->request.number));
    json_object_object_add(answer, "dry_run", json_object_new_boolean(r->dry));
    json_object_object_add(answer, "version", r->made == 0 ? NULL : json_object_new_uint64(r->made));
    json_object_object_add(answer, "changes", json_object_get(r->changes));
    return cli_json(answer);
}

static int print(const restoring *r, const char *restored)
{
    if (r->json)
        return print_json(r, restored);
    if (!r->request.differs)
        printf("%s: %s is as in version %s already\n", r->name, r->request.path_count == 0 ? "all of it" : "that",
               restored);
    else if (r->dry)
        printf("%s: would be as in version %s:\n", r->name, restored);
    else if (r->made == 0)
        printf("%s: as in version %s; no version of that could be made\n", r->name, restored);
    else
        printf("%s: as in version %s; version #%llu\n", r->name, restored, (unsigned long long)r->made);
    print_changes(r);
    return cli_flush();
}

/* ---- which version ---- */

/* Of each version, how it was made: 0, or COW_OPERATION_UNDO, COW_OPERATION_REDO. */
static uint8_t *ways(const cli_file *file, size_t versions, char *why, size_t size)
{
    cli_operation *operations;
    size_t count;
    uint8_t *way = cli_alloc(versions, sizeof *way);

    if (cli_operations_read(file, &operations, &count, why, size) < 0) {
        free(way);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        if (operations[i].version < versions &&
            (operations[i].kind == COW_OPERATION_UNDO || operations[i].kind == COW_OPERATION_REDO))
            way[operations[i].version] = operations[i].kind;
    cli_operations_free(operations, count);
    return way;
}

/* Where ROW is in STEP, from FIRST to before END; END: nowhere. */
static size_t place_of(const size_t step[], size_t first, size_t end, size_t row)
{
    while (first < end && step[first] != row)
        first++;
    return first;
}

/* What undo and redo go through, as in an editor: the versions in their order, but for those that undo and redo made, which only
 * are where one is in the list: at what they restored. What is made after an undo takes the place of what was undone. Forgotten
 * ones are no steps. */
static void find_steps(restoring *r, const cli_version *rows, const uint8_t way[], size_t versions)
{
    size_t *step = cli_alloc(versions, sizeof *step), count = 0, at = 0;

    for (size_t row = 0; row < versions; row++) {
        size_t parent = cli_version_made_of(rows, row);
        size_t before = way[row] == COW_OPERATION_UNDO ? place_of(step, 0, at, parent) : at,
               behind = way[row] == COW_OPERATION_REDO ? place_of(step, at + 1, count, parent) : count;

        if (before < at)
            at = before;
        else if (behind < count)
            at = behind;
        else {
            at = count == 0 ? 0 : at + 1;
            step[at] = row;
            count = at + 1;
        }
    }
    if (count > 0 && rows[step[at]].open == COW_LOG_FORGOTTEN)
        step[at] = versions - 1; /* which is as that one was */
    r->step = step;
    r->steps = r->at = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == at)
            r->at = r->steps;
        if (rows[step[i]].open != COW_LOG_FORGOTTEN)
            r->step[r->steps++] = step[i];
    }
}

static int choose_step(restoring *r, const cli_file *file, const cli_version *rows, size_t versions)
{
    char why[1024];
    uint8_t *way = ways(file, versions, why, sizeof why);

    if (way == NULL)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file->name, why);
    free(r->step);
    find_steps(r, rows, way, versions);
    free(way);
    if (r->verb[0] == 'u')
        return r->at > 0 ? 0 : cli_fail("'%s': nothing to undo: there is no version before this one", file->name);
    return r->at + 1 < r->steps
               ? 0
               : cli_fail("'%s': nothing to redo: nothing was undone, or something was written since", file->name);
}

/* Which version, by the log: R->row, or for undo and redo the steps. 0, or the exit code. */
static int choose(restoring *r, cli_file *file)
{
    char why[1024], path[1024];
    int status;

    cli_versions_free(r->rows, r->versions);
    r->rows = NULL;
    if (cli_versions_read(file, &r->rows, &r->versions, why, sizeof why) < 0)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file->name, why);
    if (r->versions == 0)
        return cli_fail("'%s' has no version yet", file->name);
    if (strcmp(r->verb, "restore") != 0)
        return (status = choose_step(r, file, r->rows, r->versions)) == 0 ? 0 : status;
    if (cow_revision_resolve(file->loc.object, file->revision, path, sizeof path) < 0)
        return cli_fail("%s", cli_reason(why, sizeof why));
    r->row = cli_version_row(r->rows, r->versions, path + strlen(COW_PATH_VERSIONS "/"));
    return r->row < r->versions ? 0
                                : cli_fail("'%s' is damaged: the log lacks version '%s'", file->name, file->revision);
}

/* ---- doing it ---- */

static int restore_row(restoring *r, hid_t file, size_t row, bool dry)
{
    char revision[32];
    int status;

    snprintf(revision, sizeof revision, "#%zu", row + 1);
    r->row = row;
    r->request.revision = revision;
    r->request.dry_run = dry;
    json_object_put(r->changes);
    r->changes = json_object_new_array();
    status = h5cow_restore(file, &r->request) < 0 ? -1 : 0;
    r->request.revision = NULL;
    return status;
}

/* The next of the steps from which the file differs: others would lead nowhere. */
static int take_step(restoring *r, hid_t file)
{
    const bool back = r->verb[0] == 'u';

    for (size_t at = r->at; back ? at > 0 : at + 1 < r->steps;) {
        at = back ? at - 1 : at + 1;
        if (restore_row(r, file, r->step[at], true) < 0)
            return -1;
        if (r->request.differs)
            break;
    }
    return r->request.differs && !r->dry ? restore_row(r, file, r->row, false) : 0;
}

static char *default_message(const restoring *r, const char *restored)
{
    char *message = cli_format("%s: as in version %s", r->verb, restored);

    for (size_t i = 0; i < r->request.path_count; i++) {
        char *more = cli_format("%s%s%s", message, i == 0 ? ": " : ", ", r->request.paths[i]);
        free(message);
        message = more;
    }
    return message;
}

static int commit(restoring *r, hid_t file, const char *restored)
{
    char *message = r->message != NULL ? cli_strdup(r->message) : default_message(r, restored);
    int status = h5cow_describe(file, NULL, message) < 0 || h5cow_commit(file, &r->made) < 0 ? -1 : 0;

    free(message);
    return status;
}

/* FILE is closed. */
static int restore(restoring *r, hid_t file)
{
    bool done = strcmp(r->verb, "restore") == 0 ? restore_row(r, file, r->row, r->dry) == 0 : take_step(r, file) == 0;
    const char *restored = r->rows[r->row].name;

    if (done && r->request.differs && !r->dry)
        done = commit(r, file, restored) == 0;
    if (!done)
        return cli_plugin_failed(file);
    if (cli_plugin_close(file, r->name) != 0)
        return CLI_FAILED;
    return print(r, restored);
}

static int open_and_choose(void *context, const char *argument, hid_t *through, size_t *versions)
{
    restoring *r = context;
    cli_file file;
    int status;

    if (cli_file_open(&file, r->verb, argument, strcmp(r->verb, "restore") == 0) != 0)
        return CLI_FAILED;
    free(r->name);
    r->name = cli_strdup(file.name);
    if (strcmp(r->verb, "restore") == 0 && file.revision == NULL)
        status = cli_usage("restore", "which version? FILE@REV; 'h5cow log %s' lists them", file.name);
    else if ((status = cli_file_history(&file)) == 0)
        status = choose(r, &file);
    cli_file_close(&file);
    if (status == 0 && (*through = r->dry ? cli_plugin_open(r->name, NULL) : cli_plugin_change(r->name, r->wait)) < 0)
        status = CLI_FAILED;
    *versions = r->versions;
    return status;
}

static int run(restoring *r, const char *argument)
{
    hid_t file = H5I_INVALID_HID;
    int status = cli_plugin_settle(open_and_choose, r, argument, &r->name, &file);

    if (status == 0)
        status = restore(r, file);
    free(r->name);
    free(r->step);
    cli_versions_free(r->rows, r->versions);
    return status;
}

static int parse(restoring *r, int argc, char **argv, const char *help, bool *helped)
{
    enum { FORCE = 1, JSON, WAIT };
    static const struct option options[] = {
        {"message", required_argument, NULL, 'm'}, {"dry-run", no_argument, NULL, 'n'},
        {"quiet", no_argument, NULL, 'q'},         {"force", no_argument, NULL, FORCE},
        {"wait", required_argument, NULL, WAIT},   {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0}};

    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, ":m:nqh", options, NULL)) != -1;)
        switch (o) {
        case 'm':
            r->message = optarg;
            break;
        case 'n':
            r->dry = true;
            break;
        case FORCE:
            r->request.force = 1;
            break;
        case 'q':
            r->quiet = true;
            break;
        case JSON:
            r->json = true;
            break;
        case WAIT:
            if (cli_wait(r->verb, optarg, &r->wait) != 0)
                return CLI_FAILED;
            break;
        case 'h':
            *helped = true;
            fputs(help, stdout);
            return cli_flush();
        default:
            return o == ':' ? cli_no_value(r->verb, argv) : cli_no_option(r->verb, argv);
        }
    return 0;
}

static int check_words(restoring *r, int words, char **word)
{
    if (words == 0)
        return cli_usage(r->verb, "it wants %s", strcmp(r->verb, "restore") == 0 ? "FILE@REV" : "a FILE");
    if (words > 1 && strcmp(r->verb, "restore") != 0)
        return cli_usage(r->verb, "one FILE, not %d words", words);
    for (int i = 1; i < words; i++)
        if (word[i][0] != '/')
            return cli_usage(r->verb, "'%s' is not a path in the file: those begin with /", word[i]);
    r->request.paths = (const char *const *)word + 1;
    r->request.path_count = (size_t)words - 1;
    return 0;
}

static int restore_verb(const char *verb, const char *help, int argc, char **argv)
{
    restoring r = {.verb = verb,
                   .request = {.tell = note,
                               .context = &r,
                               .kind = verb[0] == 'u'   ? 1
                                       : verb[2] == 'd' ? 2
                                                        : 0}};
    bool helped = false;
    int status = parse(&r, argc, argv, help, &helped);

    if (status == 0 && !helped && (status = check_words(&r, argc - optind, argv + optind)) == 0) {
        r.changes = json_object_new_array();
        cli_hdf5_start();
        status = run(&r, argv[optind]);
        json_object_put(r.changes);
    }
    return status;
}

int cli_restore(int argc, char **argv)
{
    return restore_verb("restore", cli_restore_help, argc, argv);
}

int cli_undo(int argc, char **argv)
{
    return restore_verb("undo", cli_undo_help, argc, argv);
}

int cli_redo(int argc, char **argv)
{
    return restore_verb("redo", cli_redo_help, argc, argv);
}
