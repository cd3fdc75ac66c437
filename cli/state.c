/* Opening states of files. See state.h. */
#include "state.h"

#include "base/ids.h"
#include "history/history.h"
#include "plugin.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* The newest version, if it is the newest state in full. NULL: it is not. */
static char *newest_version(const cli_file *file, char *why, size_t size)
{
    cli_version *rows = NULL;
    cli_lack *lacks = NULL;
    size_t count = 0, lacking = 0;
    char *name = NULL;
    bool whole;

    if (cli_versions_numbers(file, &rows, &count, why, size) == 0 && count > 0 &&
        cli_versions_texts(file, rows, count - 1, count, why, size) == 0 &&
        cli_lacks_read(file, &lacks, &lacking, why, size) == 0) {
        whole = true;
        for (size_t i = 0; i < lacking; i++)
            whole = whole && lacks[i].version + 1 < count;
        if (whole)
            name = cli_strdup(rows[count - 1].name);
    }
    cli_versions_free(rows, count);
    cli_lacks_free(lacks, lacking);
    return name;
}

static int find_version(cli_state *state)
{
    char path[1024], why[1024] = "";
    const size_t above = strlen(COW_PATH_VERSIONS "/");

    if (state->file.revision == NULL)
        state->name = newest_version(&state->file, why, sizeof why);
    else if (cow_revision_resolve(state->file.loc.object, state->file.revision, path, sizeof path) < 0)
        return cli_fail("%s", cli_reason(why, sizeof why));
    else
        state->name = cli_strdup(path + above);
    if (why[0] != '\0')
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", state->file.name, why);
    return 0;
}

static int open_index(cli_state *state)
{
    char why[1024];

    if ((state->index = cow_layout_table_open(state->file.loc, COW_TABLE_INDEX, 0, 0)) != NULL)
        return 0;
    return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", state->file.name,
                    cli_reason(why, sizeof why));
}

/* The tree of the version, or of the head, twice. */
static int open_tree(cli_state *state)
{
    state->root = state->name == NULL ? cli_strdup("/") : cli_format(COW_PATH_VERSIONS "/%s", state->name);
    state->through = cli_plugin_open(state->file.name, state->name);
    return state->through < 0 ? CLI_FAILED : 0;
}

static int open_plain(cli_state *state)
{
    if (state->file.revision != NULL)
        return cli_file_history(&state->file);
    state->root = cli_strdup("/");
    state->through = state->file.id;
    return 0;
}

int cli_state_open(cli_state *state, const char *verb, const char *argument, const cli_state *beside)
{
    char text[1024];
    int versioned;

    *state = (cli_state){.through = H5I_INVALID_HID};
    if (cli_file_open(&state->file, verb, argument, true) != 0)
        return CLI_FAILED;
    if (beside != NULL &&
        strcmp(beside->file.name, state->file.name) == 0) { /* one state of the file, whoever writes it */
        cli_file own = state->file;
        state->file = beside->file;
        state->file.name = cli_strdup(own.name);
        state->file.revision = own.revision == NULL ? NULL : cli_strdup(own.revision);
        state->borrowed = true;
        cli_file_close(&own);
    }
    if ((versioned = cow_file_versioned(state->file.loc.object)) < 0) {
        cli_fail("the history of '%s' cannot be used: %s", state->file.name, cli_reason(text, sizeof text));
        goto failed;
    }
    if (versioned == 0) {
        cli_reason(text, sizeof text);
        if (open_plain(state) != 0)
            goto failed;
        return 0;
    }
    if (find_version(state) == 0 && open_index(state) == 0 && open_tree(state) == 0)
        return 0;
failed:
    cli_state_close(state);
    return CLI_FAILED;
}

int cli_state_version(cli_state *state, const cli_state *beside, const char *name)
{
    *state = (cli_state){.file = beside->file,
                         .borrowed = true,
                         .name = name == NULL ? NULL : cli_strdup(name),
                         .through = H5I_INVALID_HID};
    state->file.name = cli_strdup(beside->file.name);
    state->file.revision = NULL;
    if (open_index(state) == 0 && open_tree(state) == 0)
        return 0;
    cli_state_close(state);
    return CLI_FAILED;
}

void cli_state_close(cli_state *state)
{
    if (state->index != NULL)
        state->index->close(state->index);
    if (state->through >= 0 && state->through != state->file.id)
        H5Fclose(state->through);
    if (state->borrowed) {
        free(state->file.name);
        free(state->file.revision);
    } else
        cli_file_close(&state->file);
    free(state->root);
    free(state->name);
    *state = (cli_state){.file = {.id = H5I_INVALID_HID}, .through = H5I_INVALID_HID};
}

int cli_state_words(const char *verb, int argc, char **argv, const char **path)
{
    int count = argc - optind;

    if (count < 1 || count > 2)
        return cli_usage(verb, count < 1 ? "which file?" : "it wants one state of a file, and one object at most");
    *path = count == 2 ? argv[optind + 1] : "/";
    if ((*path)[0] != '/')
        return cli_usage(verb, "the path of an object begins with '/': '%s'", *path);
    return 0;
}

int cli_state_rows(const cli_state *state, cli_version **rows, size_t *count, size_t *row)
{
    const char *name = state->file.name;
    char why[1024];

    if (state->index == NULL)
        return cli_file_history(&state->file);
    if (state->name == NULL)
        return cli_fail("'%s' has no version that has all of its newest state: name one, as 'h5cow log %s' lists them",
                        name, name);
    if (cli_versions_read(&state->file, rows, count, why, sizeof why) < 0)
        return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", name, why);
    if ((*row = cli_version_row(*rows, *count, state->name)) < *count)
        return 0;
    cli_versions_free(*rows, *count);
    *rows = NULL;
    *count = 0;
    return cli_fail("'%s' is damaged: its log does not know version %s", name, state->name);
}

char *cli_state_path(const cli_state *state, const char *path)
{
    return state->root[1] == '\0' ? cli_strdup(path) : cli_format("%s%s", state->root, path[1] == '\0' ? "" : path);
}

int cli_state_root(const cli_state *state, hid_t dataset, cow_root *root)
{
    cow_layout_dataset_row row;
    uint64_t number = 0;
    int kind = state->index == NULL ? CLI_NATIVE : cli_source(dataset, &number, NULL);

    if (kind == CLI_HEAD) {
        cow_table *table = cow_layout_table_open(state->file.loc, COW_TABLE_DATASETS, 0, 0);
        kind = table == NULL || number >= table->rows || cow_layout_rows(table, COW_TABLE_DATASETS, number, 1, &row) < 0
                   ? -1
                   : CLI_VIEW;
        if (table != NULL)
            table->close(table);
        if (kind < 0)
            return -1;
        if (row.root == UINT64_MAX) /* nothing was committed of it */
            return 0;
        number = row.root;
    }
    if (kind != CLI_VIEW)
        return kind < 0 ? -1 : 0;
    return cow_root_read(state->index, number, root) < 0 ? -1 : 1;
}
