/* h5cow tag, rename, describe: what versions that are there are called. Each change is one commit, and recorded. */
#include "common.h"
#include "h5cow.h"
#include "plugin.h"
#include "tables.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cli_tag_help[] =
    "Usage: h5cow tag [--json] FILE\n"
    "       h5cow tag [-f] [--wait=SECONDS] FILE@REV NAME\n"
    "       h5cow tag -d [--wait=SECONDS] FILE NAME\n\n"
    "Lists the tags of FILE; or gives the version REV the tag NAME, by which it can be named as well: FILE@NAME. A version\n"
    "may have several. Recorded, as 'h5cow log --operations' shows; data and versions stay as they are.\n\n"
    "  -f, --force         the tag may lead to another version so far: it is moved\n"
    "  -d, --delete        remove the tag; its version stays\n"
    "      --wait=SECONDS  how long to wait for a program that is writing FILE\n"
    "      --json          the list as a list of objects\n"
    "  -h, --help\n\n"
    "Example: h5cow tag run.h5@latest submitted\n";

const char cli_rename_help[] =
    "Usage: h5cow rename [--wait=SECONDS] FILE@REV NAME\n\n"
    "The version REV is called NAME from now on, in its file and wherever a version is named; its number (#N) stays. Tags\n"
    "go on leading to it. Recorded, as 'h5cow log --operations' shows.\n\n"
    "      --wait=SECONDS  how long to wait for a program that is writing FILE\n"
    "  -h, --help\n\n"
    "Example: h5cow rename run.h5@3 first-light\n";

const char cli_describe_help[] =
    "Usage: h5cow describe [--wait=SECONDS] FILE@REV MESSAGE\n\n"
    "Changes the message of the version REV. 'h5cow log --operations' shows the one before.\n\n"
    "      --wait=SECONDS  how long to wait for a program that is writing FILE\n"
    "  -h, --help\n\n"
    "Example: h5cow describe run.h5@latest 'after calibration, by the new table'\n";

typedef struct naming {
    const char *verb;
    char *name, *revision; /* of the file; NULL: none was given */
    bool force, delete, json;
    unsigned wait; /* seconds */
} naming;

/* ---- changing ---- */

/* 0: CALL has succeeded, on the file as programs see it. */
static int change(const naming *n, const char *text)
{
    hid_t file = cli_plugin_change(n->name, n->wait);
    herr_t status;

    if (file < 0)
        return CLI_FAILED;
    status = n->delete                        ? h5cow_untag(file, text)
             : strcmp(n->verb, "tag") == 0    ? h5cow_tag(file, n->revision, text, n->force)
             : strcmp(n->verb, "rename") == 0 ? h5cow_rename(file, n->revision, text)
                                              : h5cow_set_message(file, n->revision, text);
    if (status < 0)
        return cli_plugin_failed(file);
    return cli_plugin_close(file, n->name) != 0 ? CLI_FAILED : cli_flush();
}

/* ---- listing ---- */

static int print_tags(const cli_version *rows, const cli_tag *tags, size_t count)
{
    static const char *const titles[] = {"tag", "version", "#", "time", "message"};
    cli_table *table = cli_table_open(5, titles);
    char text[48];

    cli_table_right(table, 2);
    for (size_t i = 0; i < count; i++) {
        const cli_version *v = tags[i].version == SIZE_MAX ? NULL : &rows[tags[i].version];
        char *message = cli_escape(v == NULL ? "names no version: h5cow verify" : v->message);

        cli_table_cell(table, "%s", tags[i].name);
        cli_table_cell(table, "%s", v == NULL ? "-" : v->name);
        if (v == NULL)
            cli_table_cell(table, "-");
        else
            cli_table_cell(table, "%zu", tags[i].version + 1);
        cli_table_cell(table, "%s", v == NULL ? "-" : cli_time(text, v->time, CLI_LOCAL, false));
        cli_table_cell(table, "%s", message);
        free(message);
    }
    cli_table_print(table);
    cli_table_close(table);
    return cli_flush();
}

static int tags_as_json(const cli_version *rows, const cli_tag *tags, size_t count)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < count; i++) {
        size_t version = tags[i].version;
        json_object *item = json_object_new_object();
        json_object_object_add(item, "tag", cli_json_text(tags[i].name));
        json_object_object_add(item, "version", version == SIZE_MAX ? NULL : cli_json_text(rows[version].name));
        json_object_object_add(item, "number", version == SIZE_MAX ? NULL : json_object_new_uint64(version + 1));
        json_object_array_add(list, item);
    }
    return cli_json(list);
}

static int list(const cli_file *file, bool json)
{
    cli_version *rows = NULL;
    cli_tag *tags = NULL;
    size_t versions = 0, count = 0;
    char why[1024];
    int status = cli_versions_read(file, &rows, &versions, why, sizeof why);

    if (status == 0)
        status = cli_tags_read(file, rows, versions, &tags, &count, why, sizeof why);
    if (status < 0)
        status = cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file->name, why);
    else
        status = json ? tags_as_json(rows, tags, count) : print_tags(rows, tags, count);
    cli_tags_free(tags, count);
    cli_versions_free(rows, versions);
    return status;
}

/* ---- words ---- */

static int run(naming *n, const char *argument, const char *text)
{
    cli_file file;
    int status;

    if (cli_file_open(&file, n->verb, argument, true) != 0)
        return CLI_FAILED;
    n->name = cli_strdup(file.name);
    n->revision = file.revision == NULL ? NULL : cli_strdup(file.revision);
    if ((n->revision != NULL) != (text != NULL && !n->delete))
        status = cli_usage(
            n->verb, n->revision != NULL ? "the whole file has tags: FILE, without '@%s'" : "which version? FILE@REV",
            n->revision);
    else if ((status = cli_file_history(&file)) == 0 && text == NULL)
        status = list(&file, n->json);
    cli_file_close(&file);
    return status == 0 && text != NULL ? change(n, text) : status;
}

static int check_words(const naming *n, int words)
{
    bool tag = strcmp(n->verb, "tag") == 0;

    if (words == 2 || (words == 1 && tag && !n->delete && !n->force))
        return 0;
    return cli_usage(n->verb, tag && n->delete    ? "it wants FILE and the NAME of a tag"
                              : tag               ? "it wants FILE, or FILE@REV and a NAME"
                              : n->verb[0] == 'r' ? "it wants FILE@REV and a NAME"
                                                  : "it wants FILE@REV and a MESSAGE, as one word");
}

static int name_verb(naming *n, const char *help, const struct option options[], int argc, char **argv)
{
    int status = 0;

    opterr = 0;
    for (int o;
         status == 0 && (o = getopt_long(argc, argv, options[2].name == NULL ? ":h" : ":fdh", options, NULL)) != -1;)
        switch (o) {
        case 'f':
            n->force = true;
            break;
        case 'd':
            n->delete = true;
            break;
        case 'j':
            n->json = true;
            break;
        case 'w':
            status = cli_wait(n->verb, optarg, &n->wait);
            break;
        case 'h':
            fputs(help, stdout);
            return cli_flush();
        default:
            status = o == ':' ? cli_no_value(n->verb, argv) : cli_no_option(n->verb, argv);
        }
    if (status == 0 && (status = check_words(n, argc - optind)) == 0) {
        cli_hdf5_start();
        status = run(n, argv[optind], optind + 1 < argc ? argv[optind + 1] : NULL);
    }
    free(n->name);
    free(n->revision);
    return status;
}

int cli_tag_verb(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},  {"wait", required_argument, NULL, 'w'},
                                            {"force", no_argument, NULL, 'f'}, {"delete", no_argument, NULL, 'd'},
                                            {"json", no_argument, NULL, 'j'},  {NULL, 0, NULL, 0}};

    return name_verb(&(naming){.verb = "tag"}, cli_tag_help, options, argc, argv);
}

static const struct option without_more[] = {
    {"help", no_argument, NULL, 'h'}, {"wait", required_argument, NULL, 'w'}, {NULL, 0, NULL, 0}};

int cli_rename(int argc, char **argv)
{
    return name_verb(&(naming){.verb = "rename"}, cli_rename_help, without_more, argc, argv);
}

int cli_describe(int argc, char **argv)
{
    return name_verb(&(naming){.verb = "describe"}, cli_describe_help, without_more, argc, argv);
}
