/* h5cow cp: one object of a version, or of any file, into a file, as one version of that.
 *
 * H5Ocopy does it, through the connector: in one file nothing is stored again. What is copied gets its name when it is complete;
 * until the version is made, the file on the disk stays as it is.
 */
#include "base/error.h"
#include "base/ids.h"
#include "base/options.h"
#include "common.h"
#include "cp.h"
#include "h5cow.h"
#include "journal/journal.h"
#include "native/native.h"
#include "output.h"
#include "plugin.h"
#include "values.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char cli_cp_help[] =
    "Usage: h5cow cp [OPTION]... FILE[@REV]:PATH FILE2[:PATH2]\n\n"
    "Copies the object PATH and what is below it, as it was in version REV of FILE or is in its newest state, into FILE2:\n"
    "under PATH2, or under PATH. FILE2 gets one version that has it; if anything fails it stays as it was. In one file\n"
    "no data is stored again, so this gives back an object of yesterday at no cost. A FILE2 that is not there is made,\n"
    "with a history, and who may use it is as for FILE; groups that are missing on the way to PATH2 are made.\n\n"
    "  -f, --force           replace what is at PATH2; the versions before keep it\n"
    "  -m, --message=TEXT    recorded in the new version\n"
    "  -o, --option=KEY=VALUE\n"
    "                        any option of the connector (docs/options.md), for example compress=blosc:zstd:5\n"
    "      --wait=SECONDS    how long to wait for a program that is writing FILE2\n"
    "  -n, --dry-run         say what would be done, and do nothing\n"
    "  -h, --help\n\n"
    "Example: h5cow cp -f run.h5@{monday}:/temperature run.h5\n";

typedef struct copying {
    char *file, *revision, *path; /* revision NULL: the newest state */
    char *to_file, *to_path;
    bool force, dry;
    char *options;
    hid_t from, to;
    cli_output output; /* FILE2, when it is made here */
    char *replaced;    /* what was at PATH2, or NULL */
} copying;

/* ---- words ---- */

/* FILE, or FILE@REV: is there such a file? */
static bool is_there(const char *name)
{
    char *file = cli_strdup(name), *at = strrchr(file, '@');
    bool there = access(file, F_OK) == 0;

    if (!there && at != NULL) {
        *at = '\0';
        there = access(file, F_OK) == 0;
    }
    free(file);
    return there;
}

/* WORD is NAME:PATH, or, where PATH may be missing, NAME. The first part that is a file's name is it; of none, all before the last
 * ":/". *PATH NULL: there is none. */
static void split(const char *word, char **name, char **path)
{
    const char *last = NULL, *at = word;

    if (access(word, F_OK) != 0) /* a name may have all of this in it */
        while ((at = strstr(at, ":/")) != NULL) {
            last = at++;
            char *part = cli_format("%.*s", (int)(last - word), word);
            bool there = is_there(part);
            free(part);
            if (there)
                break;
        }
    *name = last == NULL ? cli_strdup(word) : cli_format("%.*s", (int)(last - word), word);
    *path = last == NULL ? NULL : cli_strdup(last + 1);
}

/* Without the "/" at its end. */
static void trim(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
}

static int parse_words(copying *c, const char *from, const char *to)
{
    char *name;
    cli_file file;

    split(from, &name, &c->path);
    split(to, &c->to_file, &c->to_path);
    if (c->path == NULL) {
        free(name);
        return cli_usage("cp", "which object? '%s' is followed by ':/' and its path", from);
    }
    if (cli_file_open(&file, "cp", name, true) != 0) {
        free(name);
        return CLI_FAILED;
    }
    free(name);
    c->file = cli_strdup(file.name);
    c->revision = file.revision == NULL ? NULL : cli_strdup(file.revision);
    int status = c->revision == NULL ? 0 : cli_file_history(&file);
    cli_file_close(&file);
    if (status != 0)
        return status;
    if (c->to_path == NULL)
        c->to_path = cli_strdup(c->path);
    trim(c->path);
    trim(c->to_path);
    return c->to_path[1] == '\0'
               ? cli_usage("cp", "the root of a file cannot be replaced: name a path in '%s'", c->to_file)
               : 0;
}

/* ---- what is there ---- */

/* Something stands at PATH: 1, 0, -1. Soft links that lead nowhere stand there too. */
static int leads(hid_t file, const char *path)
{
    char *part = cli_strdup(path);
    int there = 1;

    for (char *p = strchr(part + 1, '/'); there > 0; p = p == NULL ? NULL : strchr(p + 1, '/')) {
        if (p != NULL)
            *p = '\0';
        if ((there = H5Lexists(file, part, H5P_DEFAULT)) > 0 && p != NULL)
            there = H5Oexists_by_name(file, part, H5P_DEFAULT);
        if (p == NULL)
            break;
        *p = '/';
    }
    free(part);
    return there;
}

/* "dataset of float64 (10, 20)"; a link that leads nowhere is one. free() it. */
static char *called(hid_t file, const char *path)
{
    hid_t object = H5Oopen(file, path, H5P_DEFAULT);
    char *text = object < 0 ? cli_strdup("a link") : cli_object_name(object);

    if (object >= 0)
        H5Oclose(object);
    H5Eclear2(H5E_DEFAULT);
    return text;
}

static bool same_file(const struct stat *a, const char *name)
{
    struct stat b;

    return stat(name, &b) == 0 && a->st_dev == b.st_dev && a->st_ino == b.st_ino;
}

/* A new FILE2: nobody but its owner may read it until it has its name, and the permissions of FILE. */
static int make_file(copying *c, bool replaces)
{
    int status = replaces ? cli_output_claim(&c->output, c->to_file, true) : cli_output_absent(c->to_file);

    if (status == 0 && (status = cli_output_make(&c->output, c->to_file)) == 0 &&
        (c->to = cli_plugin_make(c->output.new.path, c->to_file, c->options)) < 0)
        status = CLI_FAILED;
    return status;
}

/* FILE2 first: what is open to be read cannot be opened to be written. */
static int open_files(copying *c)
{
    struct stat there;
    char why[1200];
    bool is = stat(c->to_file, &there) == 0, abandoned = false;

    if (is && cow_journal_unfinished(c->to_file, &abandoned) && abandoned)
        is = false; /* what a program has left that was killed: it counts as missing */
    else if (!is && is_there(c->to_file))
        return cli_fail("'%s' is a version, or would look like one, and versions do not change: name the file",
                        c->to_file);
    if (is && cli_must_be_hdf5(c->to_file, why, sizeof why) != 0)
        return cli_fail("%s", why);
    if (is && (c->to = c->dry ? cli_plugin_open(c->to_file, NULL) : cli_plugin_write(c->to_file, c->options)) < 0)
        return CLI_FAILED;
    if (!is && !c->dry && make_file(c, abandoned) != 0)
        return CLI_FAILED;
    if (is && c->revision == NULL && same_file(&there, c->file)) /* one state of it, which is written */
        c->from = c->to;
    else if ((c->from = cli_plugin_open(c->file, c->revision)) < 0)
        return CLI_FAILED;
    return 0;
}

static int look(copying *c)
{
    int there = leads(c->from, c->path), taken = c->to < 0 ? 0 : leads(c->to, c->to_path);
    char text[1024];

    if (there < 0)
        return cli_fail("'%s' cannot be looked up in '%s': %s", c->path, c->file, cli_reason(text, sizeof text));
    if (taken < 0)
        return cli_fail("'%s' cannot be in '%s': what is above it is no group (%s)", c->to_path, c->to_file,
                        cli_reason(text, sizeof text));
    if (there == 0)
        return cli_fail("'%s%s%s' has no object '%s': 'h5cow ls' lists them", c->file, c->revision == NULL ? "" : "@",
                        c->revision == NULL ? "" : c->revision, c->path);
    if (taken > 0)
        c->replaced = called(c->to, c->to_path);
    return taken > 0 && !c->force
               ? cli_fail("'%s' has '%s' already (%s): say --force to replace it, or name another path", c->to_file,
                          c->to_path, c->replaced)
               : 0;
}

/* ---- the copy ---- */

/* What is at NEW becomes PATH2, and what was there is gone. -1 and a recorded error: all is where it was. */
static int put_in_place(const copying *c, const char *new, const char *old, hid_t lcpl)
{
    if (c->replaced != NULL && H5Lmove(c->to, c->to_path, c->to, old, H5P_DEFAULT, H5P_DEFAULT) < 0)
        return cow_error_native("what it replaces cannot be moved");
    if (H5Lmove(c->to, new, c->to, c->to_path, lcpl, H5P_DEFAULT) >= 0)
        return c->replaced != NULL && H5Ldelete(c->to, old, H5P_DEFAULT) < 0
                   ? cow_error_native("what it replaces cannot be removed")
                   : 0;
    cow_error_native("it cannot get its name");
    H5E_BEGIN_TRY
    {
        if (c->replaced != NULL)
            H5Lmove(c->to, old, c->to, c->to_path, H5P_DEFAULT, H5P_DEFAULT);
    }
    H5E_END_TRY
    return -1;
}

/* -1 and a recorded error; a plain file has what it had. */
static int copy(const copying *c)
{
    char *new = cli_format(".h5cow-cp-new-%ld", (long)getpid()), *old = cli_format(".h5cow-cp-old-%ld", (long)getpid());
    hid_t lcpl = H5Pcreate(H5P_LINK_CREATE), ocpypl = H5Pcreate(H5P_OBJECT_COPY);
    int status = -1;

    if (lcpl >= 0 && ocpypl >= 0 && H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
        H5Pset_char_encoding(lcpl, H5T_CSET_UTF8) >= 0 && cli_cp_types(c->from, c->path, c->to, ocpypl) == 0 &&
        H5Ocopy(c->from, c->path, c->to, new, ocpypl, H5P_DEFAULT) >= 0) {
        status = put_in_place(c, new, old, lcpl);
        if (status < 0) {
            H5E_BEGIN_TRY
            {
                H5Ldelete(c->to, new, H5P_DEFAULT);
            }
            H5E_END_TRY
        }
    } else if (!cow_error_pending())
        cow_error_native("H5Ocopy");
    cow_close(ocpypl, lcpl);
    free(old);
    free(new);
    return status;
}

static int fail(const copying *c, const char *why)
{
    return cli_fail("'%s' cannot be copied into '%s': %s; nothing was changed", c->path, c->to_file, why);
}

static void tell_nulls(const cow_tree_nulls *nulls, const char *to, const char *file)
{
    char where[sizeof nulls->where + 60];

    cow_tree_nulls_where(nulls, where, sizeof where);
    if (nulls->count > 0)
        cli_warn("'%s': %zu reference%s lead%s to %s, and %s null%s", file, nulls->count, nulls->count == 1 ? "" : "s",
                 nulls->count == 1 ? "s" : "", to, nulls->count == 1 ? "is" : "are", where);
}

static int copy_and_commit(copying *c)
{
    bool history = h5cow_has_history(c->to) > 0;
    char *what = NULL, text[1024];
    uint64_t number = 0;
    cow_tree_nulls lost[2] = {0};

    if (copy(c) < 0)
        return fail(c, cli_reason(text, sizeof text));
    if (c->from != c->to && cli_cp_references(c->from, c->path, c->to, c->to_path, lost, text, sizeof text) < 0)
        return fail(c, text);
    what = called(c->to, c->to_path);
    if (history && h5cow_commit(c->to, &number) < 0) {
        free(what);
        return fail(c, cli_reason(text, sizeof text));
    }
    hid_t to = c->to;
    c->from = c->from == to ? H5I_INVALID_HID : c->from;
    c->to = H5I_INVALID_HID;
    if (H5Fclose(to) < 0) {
        free(what);
        return cli_fail("'%s' cannot be written: %s", c->to_file, cli_reason(text, sizeof text));
    }
    if (c->output.new.file >= 0 && cli_output_place(&c->output, c->file) != 0) {
        free(what);
        return CLI_FAILED;
    }
    printf("%s: %s, %s%s%s%s%s", c->to_file, c->to_path, what, c->revision == NULL ? "" : " of version ",
           c->revision == NULL ? "" : c->revision, c->replaced == NULL ? "" : ", in place of ",
           c->replaced == NULL ? "" : c->replaced);
    if (number > 0)
        printf("; version #%llu", (unsigned long long)number);
    puts(history ? "" : "; this file has no history");
    tell_nulls(&lost[0], "nothing", c->to_file);
    tell_nulls(&lost[1], "what it does not have", c->to_file);
    free(what);
    return cli_flush();
}

static int say(const copying *c)
{
    char *what = called(c->from, c->path);

    printf("would %s '%s' of '%s'%s%s by %s of '%s%s%s'\n", c->replaced == NULL ? "make" : "replace", c->to_path,
           c->to_file, c->replaced == NULL ? "" : ", ", c->replaced == NULL ? "" : c->replaced, what, c->file,
           c->revision == NULL ? "" : "@", c->revision == NULL ? "" : c->revision);
    free(what);
    return cli_flush();
}

static int run(copying *c, const char *from, const char *to)
{
    int status = parse_words(c, from, to);

    if (status == 0 && (status = open_files(c)) == 0 && (status = look(c)) == 0)
        status = c->dry ? say(c) : copy_and_commit(c);
    if (c->to >= 0 && !c->dry && h5cow_has_history(c->to) > 0)
        h5cow_abort(c->to); /* a file that was made is gone */
    cow_close(c->from != c->to ? c->from : H5I_INVALID_HID, c->to);
    cli_output_drop(&c->output);
    return status;
}

static int parse_option(copying *c, const char *text)
{
    const char *equals = strchr(text, '=');

    if (equals == NULL)
        return cli_usage("cp", "'%s' is not KEY=VALUE", text);
    cli_plugin_option(&c->options, text, (size_t)(equals - text), equals + 1);
    return 0;
}

int cli_cp(int argc, char **argv)
{
    static const struct option options[] = {{"force", no_argument, NULL, 'f'},
                                            {"message", required_argument, NULL, 'm'},
                                            {"option", required_argument, NULL, 'o'},
                                            {"dry-run", no_argument, NULL, 'n'},
                                            {"wait", required_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    copying c = {.from = H5I_INVALID_HID, .to = H5I_INVALID_HID, .output = CLI_OUTPUT_NONE, .options = cli_strdup("")};
    cow_options *checked = NULL;
    unsigned wait;
    int status = 0;

    opterr = 0;
    for (int o; status == 0 && (o = getopt_long(argc, argv, ":fm:o:nh", options, NULL)) != -1;)
        switch (o) {
        case 'f':
            c.force = true;
            break;
        case 'm':
            cli_plugin_option(&c.options, "message", 7, optarg);
            break;
        case 'o':
            status = parse_option(&c, optarg);
            break;
        case 'n':
            c.dry = true;
            break;
        case 'w':
            if ((status = cli_wait("cp", optarg, &wait)) == 0)
                cli_plugin_option(&c.options, "lock_timeout", 12, optarg);
            break;
        case 'h':
            fputs(cli_cp_help, stdout);
            free(c.options);
            return cli_flush();
        default:
            status = o == ':' ? cli_no_value("cp", argv) : cli_no_option("cp", argv);
        }
    if (status == 0 && optind + 2 != argc)
        status = cli_usage("cp", "it wants FILE[@REV]:PATH and FILE2[:PATH2]");
    if (status == 0 && (checked = cow_options_parse(c.options)) == NULL)
        status = cli_fail("%s; nothing was changed", cow_error_message());
    if (status == 0) {
        cli_hdf5_start();
        status = run(&c, argv[optind], argv[optind + 1]);
    }
    cow_options_free(checked);
    free(c.options);
    free(c.file);
    free(c.revision);
    free(c.path);
    free(c.to_file);
    free(c.to_path);
    free(c.replaced);
    return status;
}
