/* What a history has beside its versions: tags, what was done to it, and which versions were made by going back. See salvage.h. */
#include "salvage.h"

#include <string.h>

/* The row in the new log of row AT of the source's; COUNT: it has none. */
static size_t new_row(const salvage *s, size_t at, const cli_version *rows, size_t count)
{
    return at < s->row_count ? cli_version_row(rows, count, s->rows[at].name) : count;
}

int64_t salvage_parent(const salvage *s, const cli_version *row, const cli_version *rows, size_t own)
{
    size_t parent = cli_version_parent(s->rows, (size_t)(row - s->rows));
    size_t found = parent == SIZE_MAX ? own : new_row(s, parent, rows, own);

    return found < own ? (int64_t)found : (int64_t)own - 1;
}

/* Takes TEXT. */
static void say(salvage *s, char *text)
{
    salvage_tell(s, "said", cli_json_text(text));
    free(text);
}

static int put_tag(salvage *s, const cli_file *to, const cli_tag *tag, const char *version)
{
    char *value = cli_format(COW_PATH_VERSIONS "/%s", version), *path = cli_format(COW_PATH_TAGS "/%s", tag->name);
    hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
    int status =
        H5Pset_create_intermediate_group(lcpl, 1) < 0 || H5Lcreate_soft(value, to->id, path, lcpl, H5P_DEFAULT) < 0 ? -1
                                                                                                                    : 0;

    (void)s;
    H5Pclose(lcpl);
    free(path);
    free(value);
    return status;
}

static int put_tags(salvage *s, const cli_file *to, const cli_version *rows, size_t count)
{
    char why[1024] = "the HDF5 library crashes on them";
    cli_tag *tags = NULL;
    size_t tagged = 0;
    int status = 0;

    if (salvage_at(s, "tags") || cli_tags_read(&s->file, s->rows, s->row_count, &tags, &tagged, why, sizeof why) < 0)
        say(s, cli_format("tags are lost: %s", why));
    for (size_t i = 0; status == 0 && i < tagged; i++) {
        size_t row = new_row(s, tags[i].version, rows, count);
        if (row < count)
            status = put_tag(s, to, &tags[i], rows[row].name);
        else
            say(s, cli_format("the tag '%s' names no version that could be saved", tags[i].name));
    }
    cli_tags_free(tags, tagged);
    return status;
}

static int put_operations(salvage *s, const cli_file *to, const cli_version *rows, size_t count)
{
    char why[1024] = "the HDF5 library crashes on it";
    cli_operation *operations = NULL;
    size_t done = 0;
    cow_table *table = NULL;
    int status = 0;

    if (salvage_at(s, "operations") || cli_operations_read(&s->file, &operations, &done, why, sizeof why) < 0)
        say(s, cli_format("the record of what was done to the history is lost: %s", why));
    if (done > 0 && (table = cow_layout_table_create(to->loc, COW_TABLE_OPERATIONS, 0, 0)) == NULL)
        status = -1;
    for (size_t i = 0; i < done; i++) {
        size_t row =
            operations[i].version > SIZE_MAX - 1 ? count : new_row(s, (size_t)operations[i].version, rows, count);
        operations[i].version = row < count ? row : UINT64_MAX;
    }
    if (table != NULL) {
        status = cow_table_append(table, done, operations, NULL);
        table->close(table);
    }
    cli_operations_free(operations, done);
    return status;
}

int salvage_put_names(salvage *s, const cli_file *to, const cli_version *rows, size_t count)
{
    return put_tags(s, to, rows, count) < 0 ? -1 : put_operations(s, to, rows, count);
}
