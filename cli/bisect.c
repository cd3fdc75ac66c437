/* h5cow bisect: the first version in which something is wrong, by halves: what is wrong in a version is wrong in all
 * later ones. */
#include "base/error.h"
#include "base/ids.h"
#include "child.h"
#include "history/history.h"
#include "object.h"
#include "progress.h"
#include "state.h"
#include "tally.h"

#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOX ((size_t)32 << 20) /* bytes that are read at once */

const char cli_bisect_help[] =
    "Usage: h5cow bisect [OPTION]... FILE[@REV] [PATH] [-- COMMAND [ARGUMENT]...]\n\n"
    "Finds the first version of FILE, up to REV or the newest, in which something is wrong, and looks at few of them for it:\n"
    "what is wrong in a version has to be wrong in all later ones.\n\n"
    "With --bad, that is whether an expression over the numbers of the dataset PATH holds: min, max, mean, sum, nan (how\n"
    "many are none; the others leave these out), size, or an element as [3,4]; then <, <=, >, >=, == or !=, and a number:\n"
    "'max > 400', '[3,4] != 0'.\n"
    "Versions without this dataset are left out.\n\n"
    "With a COMMAND, whether it fails: it is run as by 'h5cow run' and sees that version in the files that it opens; where\n"
    "an argument has '{}' in it, this is replaced by FILE@VERSION. Exit code 0 says that the version is good, 125\n"
    "that it is to be left out, 126 and above end the search, and anything else that it is bad. What the command prints\n"
    "goes to standard error.\n\n"
    "  -b, --bad=EXPRESSION   what is wrong, an expression as above\n"
    "  -g, --good=REV         begin behind this version, which is known to be good\n"
    "  -u, --utc              show the time in UTC, not in local time\n"
    "      --json             the answer as one JSON object; times in UTC\n"
    "  -h, --help\n\n"
    "Exit code: 0 the first one was found, 1 the last one is not bad, 2 wrong usage or failure, or it could not be told.\n\n"
    "Example: h5cow bisect --bad 'nan > 0' run.h5 /temperature\n";

/* ---- expressions ---- */

typedef enum { MIN, MAX, MEAN, SUM, NANS, SIZE, ELEMENT } measure;
typedef enum { LESS, LESS_OR_EQUAL, GREATER, GREATER_OR_EQUAL, EQUAL, NOT_EQUAL } relation;

typedef struct expression {
    measure what;
    unsigned rank; /* ELEMENT */
    hsize_t at[H5S_MAX_RANK];
    relation relation;
    long double number;
} expression;

static const char *skip(const char *text)
{
    return text + strspn(text, " \t");
}

/* What TEXT begins with, of NAMES; *REST: what follows. -1: none. */
static int one_of(const char *text, const char *const names[], int count, const char **rest)
{
    for (int i = 0; i < count; i++)
        if (strncmp(text, names[i], strlen(names[i])) == 0) {
            *rest = text + strlen(names[i]);
            return i;
        }
    return -1;
}

/* [3,4] */
static bool parse_place(const char *text, expression *e, const char **rest)
{
    char *end;

    e->what = ELEMENT;
    e->rank = 0;
    for (text = skip(text + 1); *text != ']'; text = skip(end)) {
        if (e->rank > 0 && *text++ != ',')
            return false;
        text = skip(text);
        if (e->rank == H5S_MAX_RANK || *text < '0' || *text > '9')
            return false;
        e->at[e->rank++] = strtoull(text, &end, 10);
    }
    *rest = text + 1;
    return true;
}

static bool parse(const char *text, expression *e)
{
    static const char *const measures[] = {"min", "max", "mean", "sum", "nan", "size"};
    static const char *const relations[] = {"<=", ">=", "==", "!=", "<", ">"};
    static const relation relation_of[] = {LESS_OR_EQUAL, GREATER_OR_EQUAL, EQUAL, NOT_EQUAL, LESS, GREATER};
    const char *rest = skip(text);
    char *end;
    int i;

    if (*rest == '[') {
        if (!parse_place(rest, e, &rest))
            return false;
    } else if ((i = one_of(rest, measures, 6, &rest)) >= 0)
        e->what = (measure)i;
    else
        return false;
    rest = skip(rest);
    if ((i = one_of(rest, relations, 6, &rest)) < 0)
        return false;
    e->relation = relation_of[i];
    rest = skip(rest);
    e->number = strtold(rest, &end);
    return end != rest && !isnan(e->number) && *skip(end) == '\0'; /* nothing is equal to NaN, nor less or greater */
}

static bool holds(relation how, long double value, long double number)
{
    switch (how) {
    case LESS:
        return value < number;
    case LESS_OR_EQUAL:
        return value <= number;
    case GREATER:
        return value > number;
    case GREATER_OR_EQUAL:
        return value >= number;
    case EQUAL:
        return value == number;
    case NOT_EQUAL:
        return value != number;
    }
    return false;
}

/* ---- datasets ---- */

typedef struct numbers {
    hid_t dataset, space, type; /* the type in memory */
    uint64_t elements;          /* all */
    cli_tally tally;            /* of those that were looked at */
    uint64_t done;              /* how many these are */
    const char *version;        /* for the progress bar */
} numbers;

static int add_box(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    numbers *n = context;
    cli_box box;
    int status = 0;

    if (cli_box_read(&box, n->dataset, n->space, n->type, rank, start, count) < 0)
        status = cow_error_native("its elements");
    else {
        char what[80];
        cli_tally_add(&n->tally, n->type, box.value, box.count);
        snprintf(what, sizeof what, "version %.60s", n->version);
        cli_progress(what, n->done += box.count, n->elements);
    }
    cli_box_close(&box, false);
    return status;
}

/* One element, if there is such a one. */
static int add_element(numbers *n, const expression *e, unsigned rank, const hsize_t extent[])
{
    hsize_t one[H5S_MAX_RANK];

    if (e->rank != rank)
        return cow_error(COW_USAGE, "it has %u dimensions, and the element that is asked for %u", rank, e->rank);
    if (n->elements == 0)
        return 0;
    for (unsigned d = 0; d < rank; d++) {
        if (e->at[d] >= extent[d])
            return 0;
        one[d] = 1;
    }
    return add_box(n, rank, e->at, one);
}

static int add_all(numbers *n)
{
    hsize_t box[H5S_MAX_RANK];

    if (n->elements == 0)
        return 0;
    if (cow_box_of(n->space, BOX / H5Tget_size(n->type), box) < 0)
        return cow_error_native("its shape");
    return cow_boxes(n->space, box, add_box, n) == 0 ? 0 : cow_error_pending() ? -1 : cow_error_native("its shape");
}

/* NUMBER as a dataset of TYPE holds it: a 0.1 of 64 bits is greater than that of 80. */
static long double held(long double number, hid_t type)
{
    size_t size = H5Tget_class(type) == H5T_FLOAT ? H5Tget_size(type) : 0;
    long double own = size == sizeof(float) ? (float)number : size == sizeof(double) ? (double)number : number;

    return isinf(own) ? number : own;
}

static bool bad_numbers(const expression *e, const numbers *n, hid_t type)
{
    const long double number = held(e->number, type);
    const cli_tally *t = &n->tally;

    switch (e->what) {
    case MIN:
        return t->count > 0 && holds(e->relation, t->min, number);
    case MAX:
        return t->count > 0 && holds(e->relation, t->max, number);
    case MEAN:
        return t->count > 0 && holds(e->relation, t->sum / (long double)t->count, number);
    case SUM:
        return holds(e->relation, t->sum, number);
    case NANS:
        return holds(e->relation, (long double)t->nans, e->number);
    case SIZE:
        return holds(e->relation, (long double)n->elements, e->number);
    case ELEMENT:
        return t->count + t->nans > 0 && holds(e->relation, t->nans > 0 ? NAN : t->sum, number);
    }
    return false;
}

/* 1: EXPRESSION holds of the dataset of VERSION, 0: not, or there is no such element; -1: cow_error. */
static int measure_dataset(const expression *e, hid_t dataset, const char *version)
{
    numbers n = {.dataset = dataset, .space = H5Dget_space(dataset), .version = version};
    hid_t type = H5Dget_type(dataset);
    hsize_t extent[H5S_MAX_RANK];
    int rank = n.space < 0 ? -1 : H5Sget_simple_extent_dims(n.space, extent, NULL), status = 0;
    H5T_class_t class = type < 0 ? H5T_NO_CLASS : H5Tget_class(type);

    if (rank < 0 || type < 0 || cow_space_elements(n.space, &n.elements) < 0)
        status = cow_error_native("its type or shape");
    else if (class != H5T_INTEGER && class != H5T_FLOAT)
        status = cow_error(COW_USAGE, "it does not hold numbers");
    else {
        n.type = cli_tally_type(type);
        status = e->what == ELEMENT ? add_element(&n, e, (unsigned)rank, extent) : e->what == SIZE ? 0 : add_all(&n);
    }
    cli_progress_end();
    if (status == 0)
        status = bad_numbers(e, &n, type);
    cow_close(type, n.space);
    return status;
}

/* ---- versions ---- */

typedef enum { UNKNOWN, GOOD, BAD, LEFT_OUT, STOP } verdict; /* STOP: it was said why */

static const char *const verdicts[] = {"", "good", "bad", "left out", ""};

typedef struct bisection {
    cli_state last;
    const char *path; /* of the dataset, with an expression; or */
    char **command;   /* a command */
    expression expression;
    cli_version *rows;
    size_t row_count;
    size_t *chain; /* rows, the oldest first: each was made of the one before */
    size_t length;
    verdict *verdict; /* of each of the chain */
    bool json;        /* verdicts are in the answer alone */
} bisection;

static verdict ask_dataset(const bisection *b, const char *name)
{
    cli_state state = {.through = H5I_INVALID_HID};
    verdict found = STOP;
    char why[600];
    hid_t dataset;
    int bad;

    if (cli_state_version(&state, &b->last, name) != 0)
        return STOP;
    dataset = H5Oopen(state.through, b->path, H5P_DEFAULT);
    if (dataset < 0 || H5Iget_type(dataset) != H5I_DATASET)
        found = LEFT_OUT;
    else if ((bad = measure_dataset(&b->expression, dataset, name)) >= 0)
        found = bad ? BAD : GOOD;
    else
        cli_fail("'%s' of version %s cannot be looked at: %s", b->path, name, cli_reason(why, sizeof why));
    if (dataset >= 0)
        H5Oclose(dataset);
    H5Eclear2(H5E_DEFAULT);
    cli_state_close(&state);
    return found;
}

/* WORD with FILE@NAME in place of each {}. free() it. */
static char *with_state(const bisection *b, const char *word, const char *name)
{
    char *made = cli_strdup(""), *longer;

    for (const char *next; (next = strstr(word, "{}")) != NULL; word = next + 2) {
        longer = cli_format("%s%.*s%s@%s", made, (int)(next - word), word, b->last.file.name, name);
        free(made);
        made = longer;
    }
    longer = cli_format("%s%s", made, word);
    free(made);
    return longer;
}

/* What runs the command so that it sees version NAME: words, each free()'s, and NULL. */
static char **words_for(const bisection *b, const char *name)
{
    size_t count = 0, n = 0;
    bool placed = false;
    char **words;

    for (; b->command[count] != NULL; count++)
        placed = placed || strstr(b->command[count], "{}") != NULL;
    words = cli_alloc(count + 6, sizeof *words);
    words[n++] = cli_strdup("/proc/self/exe");
    words[n++] = cli_strdup("run");
    words[n++] = cli_strdup("-q");
    if (!placed)
        words[n++] = cli_format("--at=%s", name);
    words[n++] = cli_strdup("--");
    for (size_t i = 0; i < count; i++)
        words[n++] = with_state(b, b->command[i], name);
    return words;
}

static verdict ask_command(const bisection *b, const char *name)
{
    char **words = words_for(b, name);
    sigset_t before;
    bool ran;
    int code;

    sigprocmask(SIG_SETMASK, NULL, &before);
    code = cli_child_run(words, STDERR_FILENO, NULL, &ran);
    sigprocmask(SIG_SETMASK, &before, NULL); /* else the next command could not be ended by them */
    for (size_t i = 0; words[i] != NULL; i++)
        free(words[i]);
    free(words);
    if (!ran || code > 125) {
        cli_fail("the command ended with exit code %d at version %s: nothing can be told", code, name);
        return STOP;
    }
    return code == 0 ? GOOD : code == 125 ? LEFT_OUT : BAD;
}

static verdict ask(bisection *b, size_t i)
{
    const char *name = b->rows[b->chain[i]].name;

    if (b->verdict[i] != UNKNOWN)
        return b->verdict[i];
    b->verdict[i] = b->path != NULL ? ask_dataset(b, name) : ask_command(b, name);
    if (b->verdict[i] != STOP && !b->json) {
        char *escaped = cli_escape(name);
        printf("version %s: %s\n", escaped, verdicts[b->verdict[i]]);
        fflush(stdout);
        free(escaped);
    }
    return b->verdict[i];
}

/* Of the chain from LOW to before HIGH, the nearest to the middle that was not left out; HIGH: there is none. */
static size_t next_between(const bisection *b, size_t low, size_t high)
{
    size_t middle = low + (high - low) / 2;

    for (size_t away = 0; away <= high - low; away++) {
        if (middle + away < high && b->verdict[middle + away] != LEFT_OUT)
            return middle + away;
        if (middle >= low + away && middle - away < high && b->verdict[middle - away] != LEFT_OUT)
            return middle - away;
    }
    return high;
}

/* The row of the version GOOD. 0, or CLI_FAILED. */
static int find_good(const bisection *b, const char *good, size_t *row)
{
    char path[1024], why[600];

    if (cow_revision_resolve(b->last.file.loc.object, good, path, sizeof path) < 0)
        return cli_fail("%s", cli_reason(why, sizeof why));
    *row = cli_version_row(b->rows, b->row_count, path + strlen(COW_PATH_VERSIONS "/"));
    return 0;
}

/* From the first one, or the one behind GOOD, which may be NULL, to the one of ROW. 0, or CLI_FAILED. */
static int make_chain(bisection *b, size_t row, const char *good)
{
    size_t until = SIZE_MAX, first = row;

    if (good != NULL && find_good(b, good, &until) != 0)
        return CLI_FAILED;
    for (; first != SIZE_MAX && first != until; first = cli_version_parent(b->rows, first))
        b->length++;
    if (first != until)
        return cli_fail("version %s was not made of version %s", b->last.name, good);
    if (b->length == 0)
        return cli_fail("there is no version behind %s", good);
    b->chain = cli_alloc(b->length, sizeof *b->chain);
    b->verdict = cli_alloc(b->length, sizeof *b->verdict);
    for (size_t i = b->length; i-- > 0; row = cli_version_parent(b->rows, row))
        b->chain[i] = row;
    return 0;
}

/* The last version has no dataset of that name. CLI_FAILED */
static int no_dataset(const bisection *b)
{
    H5O_type_t type;

    for (size_t i = b->length; i-- > 0;)
        if (cli_version_object(&b->last.file, &b->rows[b->chain[i]], b->path, &type) != UINT64_MAX &&
            type == H5O_TYPE_DATASET)
            return cli_fail(
                "nothing can be told of version %s, the last one, which has no dataset '%s': name an older one "
                "that is bad, such as %s@%s",
                b->last.name, b->path, b->last.file.name, b->rows[b->chain[i]].name);
    return cli_fail("no version of '%s' has a dataset '%s'", b->last.file.name, b->path);
}

/* *BAD: the first bad one of the chain, *FOUND; or all that stand right before it, up to a good one, were left out. */
static int search(bisection *b, size_t *bad, bool *found)
{
    size_t low = 0, next; /* those before LOW are good */

    *bad = b->length - 1;
    *found = false;
    if (ask(b, *bad) == STOP)
        return CLI_FAILED;
    if (b->verdict[*bad] == LEFT_OUT && b->path != NULL)
        return no_dataset(b);
    if (b->verdict[*bad] == LEFT_OUT)
        return cli_fail("nothing can be told of version %s, the last one: name an older one that is bad", b->last.name);
    if (b->verdict[*bad] == GOOD)
        return 0;
    while (low < *bad && (next = next_between(b, low, *bad)) < *bad)
        switch (ask(b, next)) {
        case GOOD:
            low = next + 1;
            break;
        case BAD:
            *bad = next;
            break;
        case STOP:
            return CLI_FAILED;
        case LEFT_OUT:
        case UNKNOWN:
            break;
        }
    *found = low == *bad;
    return 0;
}

/* ---- the verb ---- */

static json_object *answer_json(const bisection *b, size_t bad, bool found)
{
    json_object *answer = json_object_new_object(), *list = json_object_new_array();

    json_object_object_add(answer, "first_bad", found ? cli_version_json(b->rows, b->chain[bad]) : NULL);
    for (size_t i = 0; i < b->length; i++)
        if (b->verdict[i] != UNKNOWN) {
            json_object *item = json_object_new_object();
            json_object_object_add(item, "version", cli_json_text(b->rows[b->chain[i]].name));
            json_object_object_add(item, "verdict", cli_json_text(verdicts[b->verdict[i]]));
            json_object_array_add(list, item);
        }
    json_object_object_add(answer, "looked_at", list);
    return answer;
}

static void print_answer(const bisection *b, size_t bad, cli_clock clock)
{
    const cli_version *row = &b->rows[b->chain[bad]];
    char *name = cli_escape(row->name), *user = cli_escape(row->user), *program = cli_escape(row->program);
    char *message = cli_escape(row->message), time[48];

    printf("the first bad one is version %s\n", name);
    printf("  %s, by %s, with %s\n", cli_time(time, row->time, clock, false), user, program);
    if (message[0] != '\0')
        printf("  %s\n", message);
    free(name);
    free(user);
    free(program);
    free(message);
}

static int tell(const bisection *b, size_t bad, bool found, cli_clock clock)
{
    bool none = b->verdict[bad] == GOOD;
    int status = 0;

    if (b->json)
        status = cli_json(answer_json(b, bad, found));
    else if (found)
        print_answer(b, bad, clock);
    else if (none)
        puts("the last one is good");
    if (status == 0 && !b->json)
        status = cli_flush();
    if (status != 0)
        return status;
    if (!found && !none)
        return cli_fail("the first bad one is version %s, or one of those before it that were left out",
                        b->rows[b->chain[bad]].name);
    return none ? CLI_DAMAGED : 0;
}

static int bisect(bisection *b, const char *good, cli_clock clock)
{
    size_t row, bad;
    bool found;
    int status = cli_state_rows(&b->last, &b->rows, &b->row_count, &row);

    if (status != 0 || (status = make_chain(b, row, good)) != 0 || (status = search(b, &bad, &found)) != 0)
        return status;
    return tell(b, bad, found, clock);
}

int cli_bisect(int argc, char **argv)
{
    static const struct option options[] = {
        {"bad", required_argument, NULL, 'b'}, {"good", required_argument, NULL, 'g'}, {"utc", no_argument, NULL, 'u'},
        {"json", no_argument, NULL, 'j'},      {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0}};
    bisection b = {.json = false};
    const char *bad = NULL, *good = NULL;
    cli_clock clock = CLI_LOCAL;
    int status, own = 1; /* words before "--" */

    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    opterr = 0;
    for (int c; (c = getopt_long(own, argv, ":b:g:uh", options, NULL)) != -1;)
        switch (c) {
        case 'b':
            bad = optarg;
            break;
        case 'g':
            good = optarg;
            break;
        case 'u':
            clock = CLI_UTC;
            break;
        case 'j':
            b.json = true;
            break;
        case 'h':
            fputs(cli_bisect_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("bisect", argv) : cli_no_option("bisect", argv);
        }
    b.command = own + 1 < argc ? argv + own + 1 : NULL;
    if ((bad == NULL) == (b.command == NULL))
        return cli_usage("bisect", "it wants either --bad=EXPRESSION, or -- and a command");
    if ((status = cli_state_words("bisect", own, argv, &b.path)) != 0)
        return status;
    if ((bad == NULL) == (optind + 2 == own))
        return cli_usage("bisect", bad == NULL ? "a command is told no dataset" : "of which dataset is '%s' asked?",
                         bad);
    if (bad != NULL && !parse(bad, &b.expression))
        return cli_usage("bisect", "'%s' is no expression such as 'max > 400', 'nan != 0' or '[3,4] <= 0.5'", bad);
    if (bad == NULL)
        b.path = NULL;
    cli_hdf5_start();
    if (cli_state_open(&b.last, "bisect", argv[optind], NULL) != 0)
        return CLI_FAILED;
    status = bisect(&b, good, clock);
    cli_state_close(&b.last);
    cli_versions_free(b.rows, b.row_count);
    free(b.chain);
    free(b.verdict);
    return status;
}
