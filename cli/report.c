/* h5cow report: one page about a file and its history, for a browser. See report.h. */
#include "report.h"

#include "history/history.h"
#include "output.h"
#include "values.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char cli_report_help[] =
    "Usage: h5cow report [OPTION]... FILE\n\n"
    "Writes one HTML page about FILE and its history, which any browser shows, without a network: how the file grew,\n"
    "which objects each version changed, what each version and each dataset takes and forgetting a version would free,\n"
    "and pictures of datasets before and after they last changed. FILE is not changed.\n\n"
    "  -o, --output=OUT    the page; without it, FILE with .html behind its name\n"
    "  -f, --force         replace OUT if it is there, a regular file, and no HDF5 file\n"
    "  -p, --pictures=N    at most N pictures (12)\n"
    "  -h, --help\n\n"
    "Example: h5cow report -o run.html run.h5\n";

/* Paths that changed, of which the page has no more. */
#define MOST_OBJECTS 2000

/* ---- what there is ---- */

static void trouble(void *context, const char *what, const char *why)
{
    cli_report_note(context, what, why);
}

static int read_states(cli_report *r)
{
    char why[1024];

    r->states = (cli_states){.file = &r->newest.file, .trouble = trouble, .context = r};
    return cli_states_read(&r->states, why, sizeof why) == 0
               ? 0
               : cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", r->newest.file.name, why);
}

static json_object *versions_json(cli_report *r)
{
    static const char *const unwanted[] = {"host", "hdf5", "h5cow", "chunks", "time", "number"};
    json_object *list = json_object_new_array();
    cli_lack *lacks = NULL;
    size_t lacking = 0;
    char why[1024];

    if (cli_lacks_read(&r->newest.file, &lacks, &lacking, why, sizeof why) < 0)
        cli_report_note(r, r->newest.file.name, why);
    for (size_t i = 0; i < r->states.version_count; i++) {
        json_object *item = cli_version_json(r->states.versions, i), *lacked = json_object_new_array();
        for (size_t k = 0; k < sizeof unwanted / sizeof *unwanted; k++)
            json_object_object_del(item, unwanted[k]);
        for (size_t k = 0; k < lacking; k++)
            if (lacks[k].version == i)
                json_object_array_add(lacked, cli_lack_json(&lacks[k]));
        json_object_object_add(item, "incomplete", lacked);
        json_object_array_add(list, item);
    }
    cli_lacks_free(lacks, lacking);
    return list;
}

/* All that the page is given. */
static json_object *gather(cli_report *r, uint64_t pictures)
{
    json_object *all = json_object_new_object(), *changes;
    const char *name = strrchr(r->newest.file.name, '/');
    struct stat size = {0};
    struct timespec now = {0};
    size_t more = 0;

    if (stat(r->newest.file.name, &size) < 0)
        size.st_size = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    json_object_object_add(all, "file", cli_json_text(name == NULL ? r->newest.file.name : name + 1));
    json_object_object_add(all, "bytes", json_object_new_uint64((uint64_t)size.st_size));
    json_object_object_add(all, "made", json_object_new_int64((int64_t)now.tv_sec * 1000000));
    json_object_object_add(all, "h5cow", json_object_new_string(H5COW_VERSION));
    json_object_object_add(all, "versions", versions_json(r));
    json_object_object_add(all, "storage", cli_report_storage(r));
    json_object_object_add(all, "objects", changes = cli_report_changes(r, MOST_OBJECTS, &more));
    json_object_object_add(all, "more_objects", json_object_new_uint64(more));
    json_object_object_add(all, "pictures", cli_report_pictures(r, changes, pictures));
    json_object_object_add(all, "trouble", json_object_get(r->trouble));
    return all;
}

/* ---- the page ---- */

/* Inside of a page, "<" could begin a tag: in JSON it stands in texts only, where it has another way to be written. */
static void put_json(FILE *to, json_object *value)
{
    for (const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN); *text != '\0'; text++)
        if (*text == '<')
            fputs("\\u003c", to);
        else
            putc(*text, to);
}

static int write_page(cli_output *output, const char *out, json_object *all)
{
    int copy = dup(output->new.file);
    FILE *to = copy < 0 ? NULL : fdopen(copy, "w");

    if (to == NULL) {
        if (copy >= 0)
            close(copy);
        return cli_fail("cannot write '%s': %s", out, strerror(errno));
    }
    fputs(cli_report_page_begin, to);
    put_json(to, all);
    fputs(cli_report_page_end, to);
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed)
        return cli_fail("cannot write '%s': %s", out, strerror(errno));
    return 0;
}

static int claim(cli_output *output, const char *out, bool force)
{
    struct stat there;

    if (lstat(out, &there) < 0)
        return errno == ENOENT ? 0 : cli_fail("cannot look at '%s': %s", out, strerror(errno));
    if (!S_ISREG(there.st_mode))
        return cli_output_claim(output, out, false); /* says what it is */
    if (cli_is_hdf5(out) == 1)
        return cli_fail("'%s' is an HDF5 file, which no page replaces: choose another name", out);
    return force ? cli_output_claim(output, out, false)
                 : cli_fail("'%s' exists: choose another name, or say --force to replace it", out);
}

static int report(const char *argument, const char *wanted, bool force, uint64_t pictures)
{
    cli_report r = {.newest = {.file = {.id = H5I_INVALID_HID}, .through = H5I_INVALID_HID}};
    cli_output output = CLI_OUTPUT_NONE;
    char *out = NULL, size[32];
    struct stat made = {0};
    int status;

    if (cli_state_open(&r.newest, "report", argument, NULL) != 0)
        return CLI_FAILED;
    r.trouble = json_object_new_array();
    out = wanted != NULL ? cli_strdup(wanted) : cli_format("%s.html", r.newest.file.name);
    if (r.newest.file.revision != NULL)
        status = cli_usage("report", "it is about the whole history of a file, not about one version");
    else if ((status = cli_file_history(&r.newest.file)) == 0 && (status = claim(&output, out, force)) == 0 &&
             (status = read_states(&r)) == 0 && (status = cli_output_make(&output, out)) == 0) {
        json_object *all = gather(&r, pictures);
        if ((status = write_page(&output, out, all)) == 0 && fstat(output.new.file, &made) == 0 &&
            (status = cli_output_place(&output, r.newest.file.name)) == 0) {
            size_t troubles = json_object_array_length(r.trouble),
                   versions = cli_versions_there(r.states.versions, r.states.version_count);
            printf("%s: %zu version%s, %s\n", out, versions, versions == 1 ? "" : "s",
                   cli_bytes(size, (double)made.st_size));
            if (troubles > 0)
                cli_warn("not all of '%s' could be read: the page says what; 'h5cow verify' says more",
                         r.newest.file.name);
            status = cli_flush() != 0 ? CLI_FAILED : troubles > 0 ? CLI_DAMAGED : CLI_OK;
        }
        json_object_put(all);
    }
    cli_output_drop(&output);
    cli_states_free(&r.states);
    json_object_put(r.trouble);
    cli_state_close(&r.newest);
    free(out);
    return status;
}

int cli_report_verb(int argc, char **argv)
{
    static const struct option options[] = {{"output", required_argument, NULL, 'o'},
                                            {"force", no_argument, NULL, 'f'},
                                            {"pictures", required_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *out = NULL;
    uint64_t pictures = 12;
    bool force = false;
    int status = 0;

    opterr = 0;
    for (int c; status == 0 && (c = getopt_long(argc, argv, ":o:fp:h", options, NULL)) != -1;)
        switch (c) {
        case 'o':
            out = optarg;
            break;
        case 'f':
            force = true;
            break;
        case 'p':
            status = cli_parse_count("report", "--pictures", optarg, &pictures);
            break;
        case 'h':
            fputs(cli_report_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("report", argv) : cli_no_option("report", argv);
        }
    if (status != 0)
        return status;
    if (optind + 1 != argc)
        return cli_usage("report", optind == argc ? "which file?" : "one file at a time");
    cli_hdf5_start();
    return report(argv[optind], out, force, pictures);
}
