/* h5cow verify: every stored chunk hashed again, and everything that names chunks checked against each other; or only what is new
 * since a version (check_since.c).
 *
 * The checks run in a child process, which tells what it finds as lines of JSON: libhdf5 itself may crash on damaged
 * bytes, or never come back, and that is an answer as well.
 */
#include "check.h"
#include "child.h"
#include "history/history.h"
#include "journal/disk.h"
#include "progress.h"
#include "recover.h"

#include "base/error.h"
#include "base/options.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char cli_verify_help[] =
    "Usage: h5cow verify [-v] [-q] [--json] [--since=REV] FILE\n\n"
    "Reads and re-hashes every stored chunk of FILE, checks index, views, tables, versions and newest state against each\n"
    "other, and lists what is damaged: which objects and versions are hit, and which older version still has the data;\n"
    "and what versions were made without, which is no damage.\n"
    "With --since only what was stored since a version, which was verified before: what the newest state and newer versions\n"
    "have and that one has not. What older versions alone have is not looked at.\n"
    "Never writes. Exit code 0: no damage, 1: damage, 2: the check could not be made.\n\n"
    "      --since=REV  only what was stored since version REV\n"
    "      --json       the answer as one JSON object\n"
    "  -q, --quiet      no progress bar\n"
    "  -v, --verbose    say on standard error what is being checked\n"
    "  -h, --help\n\n"
    "Example: h5cow verify --since=~20 t.h5\n";

/* A child that computes for so many seconds without a word is caught in a loop: it tells of every few objects, nodes and
 * chunks. */
#define SILENCE 20

/* ---- the child ---- */

static void tell(FILE *to, const char *key, json_object *value)
{
    json_object *line = json_object_new_object();

    json_object_object_add(line, key, value);
    fprintf(to, "%s\n", json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN));
    fflush(to);
    json_object_put(line);
}

static void tell_at(void *context, const char *where)
{
    tell(context, "at", cli_json_text(where));
}

static void tell_damage(FILE *to, const char *what)
{
    json_object *damage = json_object_new_object();

    json_object_object_add(damage, "what", cli_json_text(what));
    tell(to, "damage", damage);
}

/* What was checked; of a check of what is new since a version, what of that there is, and its name. */
static json_object *count_all(const cli_check *check)
{
    json_object *counts = json_object_new_object();
    const size_t first = check->first_version;

    json_object_object_add(
        counts, "versions",
        json_object_new_uint64(cli_versions_there(check->versions + first, check->version_count - first)));
    json_object_object_add(
        counts, "datasets",
        json_object_new_uint64(check->since == NULL ? check->dataset_count : cli_since_datasets(check)));
    json_object_object_add(counts, "chunks", json_object_new_uint64(check->chunks));
    json_object_object_add(counts, "bytes", json_object_new_uint64(check->bytes));
    json_object_object_add(counts, "nodes", json_object_new_uint64(check->node_count));
    json_object_object_add(counts, "views", json_object_new_uint64(check->views));
    json_object_object_add(counts, "unfound", json_object_new_uint64(check->unfound));
    return counts;
}

static void tell_lacks(const cli_check *check, FILE *to)
{
    for (size_t i = 0; i < check->lack_count; i++) {
        const cli_lack *lack = &check->lacks[i];
        const char *version = lack->version < check->version_count ? check->versions[lack->version].name : NULL;
        json_object *item = cli_lack_json(lack);

        json_object_object_add(item, "version", version == NULL ? NULL : cli_json_text(version));
        tell(to, "lack", item);
    }
}

/* Everything in a file that is open and has history, or what is new since a version. */
static int check_file(cli_check *check, const char *since, FILE *to)
{
    char why[1200];
    int status = since == NULL ? 0 : cli_since_open(check, since, why, sizeof why);

    if (status != 0)
        return cli_fail("%s", why);
    if (check->since != NULL)
        tell(to, "since", cli_json_text(cli_since_name(check)));
    cli_check_all(check);
    json_object *counts = count_all(check);
    if (check->damages > 0) {
        tell(to, "at", cli_json_text("what the damage means"));
        if (check->since != NULL)
            cli_check_complete(check);
        struct cli_impact *impact = cli_impact_open(check);
        for (size_t i = 0; i < check->damages; i++)
            tell(to, "damage", cli_damage_json(check, impact, i));
        cli_impact_close(impact);
    }
    tell_lacks(check, to);
    tell(to, "done", counts);
    return 0;
}

static int child(const char *name, const char *since, FILE *to)
{
    char why[1200];
    struct stat size;
    cli_file file;
    int status;

    cli_hdf5_start();
    tell(to, "at", cli_json_text("opening the file"));
    if ((status = cli_file_try(&file, name, why, sizeof why)) != 0) {
        if (status == CLI_DAMAGED) {
            tell_damage(to, why);
            tell(to, "done", json_object_new_object());
            return 0;
        }
        return cli_fail("%s", why);
    }
    if (file.revision != NULL) {
        cli_usage("verify", "'verify' looks at the whole history: give the file without '@%s'%s%s", file.revision,
                  since == NULL ? ", or what is new since that version: --since=" : "",
                  since == NULL ? file.revision : "");
        status = CLI_FAILED;
        goto done;
    }
    status = cow_file_versioned(file.loc.object);
    if (status < 0) {
        cow_error_box box;
        cow_error_take(&box);
        if (box.kind == COW_UNSUPPORTED) {
            status = cli_fail("'%s' cannot be checked: %s", file.name, box.message);
            goto done;
        }
        tell_damage(to, box.message);
        tell(to, "done", json_object_new_object());
        status = 0;
        goto done;
    }
    if (status == 0) {
        status = cli_file_history(&file);
        goto done;
    }
    cli_check check = {.file = &file, .at = tell_at, .context = to};
    check.file_size = stat(file.name, &size) == 0 ? (uint64_t)size.st_size : UINT64_MAX;
    check.threads = cow_threads_default();
    status = check_file(&check, since, to);
    cli_check_free(&check);
done:
    cli_file_close(&file);
    return status;
}

/* ---- the parent ---- */

typedef struct answer {
    bool verbose;
    json_object *damages; /* array */
    json_object *lacks;   /* array: what versions were made without */
    json_object *counts;  /* NULL: the child did not come to the end */
    json_object *since;   /* the name of the version since which all is checked; NULL: everything is */
    char at[512];
    uint64_t heard; /* lines */
} answer;

static void hear_line(void *context, const char *line)
{
    answer *a = context;
    json_object *told = json_tokener_parse(line), *value;

    cli_progress("places checked", ++a->heard, 0);
    if (json_object_object_get_ex(told, "at", &value)) {
        if (a->verbose && strcmp(a->at, json_object_get_string(value)) != 0) {
            cli_json_for_terminal(value);
            fprintf(stderr, "checking %s\n", json_object_get_string(value));
        }
        snprintf(a->at, sizeof a->at, "%s", json_object_get_string(value));
    } else if (json_object_object_get_ex(told, "damage", &value)) {
        json_object_array_add(a->damages, json_object_get(value));
    } else if (json_object_object_get_ex(told, "lack", &value)) {
        json_object_array_add(a->lacks, json_object_get(value));
    } else if (json_object_object_get_ex(told, "since", &value)) {
        a->since = json_object_get(value);
    } else if (json_object_object_get_ex(told, "done", &value)) {
        a->counts = json_object_get(value);
    }
    json_object_put(told);
}

/* Seconds that a process has computed so far; waiting for a slow disk does not count. */
static double computed(pid_t id)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(id, &clock) != 0 || clock_gettime(clock, &used) < 0)
        return 0;
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

bool cli_hear(pid_t id, int from, double silence, void (*hear)(void *context, const char *line), void *context)
{
    size_t used = 0, room = 0;
    char *text = NULL, *line, *end;
    double last = 0;
    bool stuck = false;

    for (;;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        int n = poll(&ready, 1, 1000);
        if (n == 0 && computed(id) - last > silence) {
            kill(id, SIGKILL);
            stuck = true;
            break;
        }
        if (n <= 0)
            continue;
        if (used == room)
            CLI_RESERVE(text, room, used, 1 << 16);
        ssize_t got = read(from, text + used, room - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
        for (line = text; (end = memchr(line, '\n', used)) != NULL; line = end + 1) {
            *end = '\0';
            hear(context, line);
            used -= (size_t)(end + 1 - line);
        }
        memmove(text, line, used);
        last = computed(id);
    }
    free(text);
    return stuck;
}

static uint64_t count_of(const answer *a, const char *name)
{
    json_object *value;

    return json_object_object_get_ex(a->counts, name, &value) ? json_object_get_uint64(value) : 0;
}

static void print_list(json_object *list, const char *separator)
{
    for (size_t i = 0; i < json_object_array_length(list); i++)
        printf("%s%s", i == 0 ? "" : separator, json_object_get_string(json_object_array_get_idx(list, i)));
}

void cli_verify_print(const char *file, size_t number, json_object *damage)
{
    json_object *what = NULL, *objects = NULL, *versions = NULL, *older = NULL, *value = NULL;

    json_object_object_get_ex(damage, "what", &what);
    printf("%zu. ", number);
    if (json_object_object_get_ex(damage, "slot", &value)) {
        json_object *chunk = NULL;
        if (!json_object_object_get_ex(damage, "objects", &objects))
            printf("a chunk: ");
        else if (json_object_array_length(objects) > 0 && json_object_object_get_ex(damage, "chunk_text", &chunk))
            printf("chunk %s of %s: ", json_object_get_string(chunk),
                   json_object_get_string(json_object_array_get_idx(objects, 0)));
        else
            printf("a chunk that no version names: ");
        printf("%s", json_object_get_string(what));
        printf(" (slot %s", json_object_get_string(value));
        json_object_object_get_ex(damage, "pool", &value);
        printf(" of pool %s)\n", json_object_get_string(value));
    } else {
        printf("%s\n", json_object_get_string(what));
    }
    if (json_object_object_get_ex(damage, "objects", &objects) && json_object_array_length(objects) > 0) {
        printf("   objects: ");
        print_list(objects, ", ");
        if (json_object_object_get_ex(damage, "more_objects", &value) && json_object_get_uint64(value) > 0)
            printf(" and %s more", json_object_get_string(value));
        printf("\n");
    }
    if (json_object_object_get_ex(damage, "versions", &versions)) {
        bool head = json_object_object_get_ex(damage, "head", &value) && json_object_get_boolean(value);
        if (head || json_object_array_length(versions) > 0) {
            printf("   hit: %s%s", head ? "the newest state" : "",
                   head && json_object_array_length(versions) > 0 ? ", " : "");
            if (json_object_array_length(versions) > 0) {
                printf("version%s ", json_object_array_length(versions) == 1 ? "" : "s");
                print_list(versions, ", ");
            }
            printf("\n");
        }
    }
    if (json_object_object_get_ex(damage, "only_without_h5cow", &value) && json_object_get_boolean(value))
        printf("   reading through h5cow is not affected; HDF5 without h5cow reads wrong values or fails there\n");
    if (json_object_object_get_ex(damage, "older_version_with_data", &older) && older != NULL)
        printf("   version %s still has the data as it was then: h5cow export '%s@%s' OUT\n",
               json_object_get_string(older), file, json_object_get_string(older));
}

char *cli_verify_rewritten(const char *name, json_object *damages)
{
    cow_journal_report r;
    char text[1024], *shown, *said;
    bool journal;

    if (json_object_array_length(damages) == 0)
        return NULL;
    if (cow_journal_inspect(name, &r) < 0) {
        cli_reason(text, sizeof text);
        return NULL;
    }
    journal = r.journal || r.hidden || r.unfinished;
    cow_journal_report_free(&r);
    if (journal || cow_disk_mentions(&cow_disk_system, name, COW_GROUP, UINT64_MAX) <= 0)
        return NULL;
    shown = cli_visible(cli_strdup(name));
    said =
        cli_format("%s has a history but no journal, as what h5repack writes: another program has rewritten it, so its "
                   "history cannot be used; for a new one that begins with its newest state: h5cow import %s OUT",
                   shown, shown);
    free(shown);
    return said;
}

/* Versions that were made without something; that is no damage. */
static void print_lacks(json_object *lacks)
{
    for (size_t i = 0; i < json_object_array_length(lacks); i++) {
        json_object *lack = json_object_array_get_idx(lacks, i), *version, *path, *reason;

        json_object_object_get_ex(lack, "version", &version);
        json_object_object_get_ex(lack, "path", &path);
        json_object_object_get_ex(lack, "reason", &reason);
        if (version == NULL)
            printf("in no version yet: %s\n",
                   path == NULL ? "changes after the newest one" : json_object_get_string(path));
        else
            printf("version %s is not complete: %s: %s\n", json_object_get_string(version),
                   path == NULL ? "a commit before it made no version" : json_object_get_string(path),
                   json_object_get_string(reason));
    }
}

/* SINCE: what was asked for. */
static void print_since(const char *since, answer *a)
{
    if (since == NULL)
        return;
    if (a->since == NULL) {
        printf("since which version is new what the file has cannot be found out: everything was looked at\n");
        return;
    }
    cli_json_for_terminal(a->since);
    printf("only what was stored since version %s: what older versions alone have was not looked at\n",
           json_object_get_string(a->since));
}

static int print_answer(const char *file, const char *since, answer *a, double seconds, bool json)
{
    size_t damages = json_object_array_length(a->damages);
    char bytes[32], *rewritten = cli_verify_rewritten(file, a->damages);

    if (json) {
        json_object *whole = json_object_new_object();
        json_object_object_add(whole, "file", cli_json_text(file));
        json_object_object_add(whole, "damaged", json_object_new_boolean(damages > 0));
        json_object_object_add(whole, "rewritten", rewritten == NULL ? NULL : cli_json_text(rewritten));
        json_object_object_add(whole, "damage", json_object_get(a->damages));
        json_object_object_add(whole, "incomplete", json_object_get(a->lacks));
        json_object_object_add(whole, "since", json_object_get(a->since));
        json_object_object_add(whole, "checked", json_object_get(a->counts));
        json_object_object_add(whole, "seconds", json_object_new_double(seconds));
        free(rewritten);
        return cli_json(whole) != 0 ? CLI_FAILED : damages > 0 ? CLI_DAMAGED : CLI_OK;
    }
    char *shown = cli_visible(cli_strdup(file));
    cli_json_for_terminal(a->damages);
    cli_json_for_terminal(a->lacks);
    if (rewritten != NULL)
        printf("%s\n", rewritten);
    free(rewritten);
    if (damages > 0) {
        printf("%s: %zu damaged place%s\n", shown, damages, damages == 1 ? "" : "s");
        for (size_t i = 0; i < damages; i++)
            cli_verify_print(file, i + 1, json_object_array_get_idx(a->damages, i));
    } else {
        printf("%s: no damage\n", shown);
    }
    free(shown);
    print_lacks(a->lacks);
    if (a->counts != NULL && json_object_object_length(a->counts) > 0)
        printf("checked: %llu version%s, %llu dataset%s, %llu chunks (%s) hashed again, %llu index nodes, %llu views, "
               "in %.1f s\n",
               (unsigned long long)count_of(a, "versions"), count_of(a, "versions") == 1 ? "" : "s",
               (unsigned long long)count_of(a, "datasets"), count_of(a, "datasets") == 1 ? "" : "s",
               (unsigned long long)count_of(a, "chunks"), cli_bytes(bytes, (double)count_of(a, "bytes")),
               (unsigned long long)count_of(a, "nodes"), (unsigned long long)count_of(a, "views"), seconds);
    print_since(since, a);
    if (count_of(a, "unfound") > 0)
        printf(
            "chunks that their hashes do not lead to: %llu (an older h5cow wrote the file; equal ones would be stored "
            "again)\n",
            (unsigned long long)count_of(a, "unfound"));
    return cli_flush() != 0 ? CLI_FAILED : damages > 0 ? CLI_DAMAGED : CLI_OK;
}

/* Run the child. 0 when A holds its answer. */
static int ask(const char *name, const char *since, bool verbose, answer *result)
{
    answer a = {.verbose = verbose, .damages = json_object_new_array(), .lacks = json_object_new_array()};
    int ends[2], state = 0, status = CLI_FAILED;
    pid_t id;

    fflush(NULL);
    if (pipe(ends) < 0 || (id = fork()) < 0) {
        cli_fail("cannot start a process for the check: %s", strerror(errno));
        goto done;
    }
    if (id == 0) {
        FILE *to = fdopen(ends[1], "w");
        close(ends[0]);
        cli_child_quiet();
        int code = to == NULL ? CLI_FAILED : child(name, since, to);
        fflush(NULL);
        _exit(code);
    }
    close(ends[1]);
    bool stuck = cli_hear(id, ends[0], SILENCE, hear_line, &a);
    cli_progress_end();
    close(ends[0]);
    while (waitpid(id, &state, 0) < 0 && errno == EINTR)
        ;
    if (!stuck && WIFSIGNALED(state) && !cli_is_crash(WTERMSIG(state))) {
        cli_fail("the check was ended by a signal (%s) at: %s", strsignal(WTERMSIG(state)), a.at);
        goto done;
    }
    if (WIFSIGNALED(state)) {
        json_object *damage = json_object_new_object();
        char text[700];
        snprintf(text, sizeof text, "the HDF5 library %s%s%s on what it reads at: %s; nothing after that was checked",
                 stuck ? "does not come back" : "ends with '", stuck ? "" : strsignal(WTERMSIG(state)),
                 stuck ? "" : "'", a.at);
        json_object_object_add(damage, "what", cli_json_text(text));
        json_object_array_add(a.damages, damage);
    } else if (WEXITSTATUS(state) != 0 || a.counts == NULL) {
        goto done; /* the child has said why */
    }
    status = 0;
done:
    *result = a;
    return status;
}

int cli_verify_file(const char *name, bool verbose, json_object **damages, json_object **counts)
{
    answer a;
    int status = ask(name, NULL, verbose, &a);

    *damages = a.damages;
    *counts = a.counts;
    json_object_put(a.lacks);
    return status;
}

static int verify(const char *name, const char *since, bool json, bool verbose)
{
    struct timespec start, end;
    answer a;
    int status;

    clock_gettime(CLOCK_MONOTONIC, &start);
    status = ask(name, since, verbose, &a);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (status == 0)
        status = print_answer(name, since, &a,
                              (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec), json);
    json_object_put(a.damages);
    json_object_put(a.lacks);
    json_object_put(a.counts);
    json_object_put(a.since);
    return status;
}

int cli_verify(int argc, char **argv)
{
    static const struct option options[] = {
        {"since", required_argument, NULL, 's'}, {"json", no_argument, NULL, 'j'}, {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},     {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    bool json = false, verbose = false;
    const char *since = NULL;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":qvh", options, NULL)) != -1;)
        switch (c) {
        case 's':
            since = optarg;
            break;
        case ':':
            return cli_no_value("verify", argv);
        case 'j':
            json = true;
            cli_progress_off();
            break;
        case 'v':
            verbose = true; /* and no bar */
            cli_progress_off();
            break;
        case 'q':
            cli_progress_off();
            break;
        case 'h':
            fputs(cli_verify_help, stdout);
            return cli_flush();
        default:
            return cli_no_option("verify", argv);
        }
    if (optind + 1 != argc)
        return cli_usage("verify", optind == argc ? "which file?" : "one file at a time");
    return verify(argv[optind], since, json, verbose);
}
