/* What a history has beside the trees of its versions: the log, tags, and what was done to it. See salvage.h. */
#include "salvage.h"

#include "journal/driver.h"
#include "library/library.h"

#include <stdlib.h>
#include <string.h>

/* The row in the new log of row AT of the source's; SIZE_MAX: it has none. */
static size_t new_row(const salvage *s, uint64_t at)
{
    return at < s->row_count ? s->new_row[at] : SIZE_MAX;
}

/* Takes TEXT. */
static void say(salvage *s, char *text)
{
    salvage_tell(s, "said", cli_json_text(text));
    free(text);
}

static int put_tag(const cli_file *to, const cli_tag *tag, const char *version)
{
    char *value = cli_format(COW_PATH_VERSIONS "/%s", version), *path = cli_format(COW_PATH_TAGS "/%s", tag->name);
    hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
    int status =
        H5Pset_create_intermediate_group(lcpl, 1) < 0 || H5Lcreate_soft(value, to->id, path, lcpl, H5P_DEFAULT) < 0 ? -1
                                                                                                                    : 0;

    H5Pclose(lcpl);
    free(path);
    free(value);
    return status;
}

/* ROW: in the new log, whose names are not always those of the source. */
static int put_tagged(const cli_file *to, const cli_tag *tag, size_t row)
{
    cow_layout_log_row version = {0};
    int status = cow_layout_log_read(to->loc, row, &version) < 0 ? -1 : put_tag(to, tag, version.name);

    cow_layout_log_row_free(&version);
    return status;
}

static int put_tags(salvage *s, const cli_file *to)
{
    char why[1024] = "the HDF5 library crashes on them";
    cli_tag *tags = NULL;
    size_t tagged = 0;
    int status = 0;

    if (salvage_at(s, "tags") || cli_tags_read(&s->file, s->rows, s->row_count, &tags, &tagged, why, sizeof why) < 0)
        say(s, cli_format("tags are lost: %s", why));
    for (size_t i = 0; status == 0 && i < tagged; i++) {
        size_t row = new_row(s, tags[i].version);
        if (row != SIZE_MAX)
            status = put_tagged(to, &tags[i], row);
        else
            say(s, cli_format("the tag '%s' names no version that could be saved", tags[i].name));
    }
    cli_tags_free(tags, tagged);
    return status;
}

static int put_operations(salvage *s, const cli_file *to)
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
        size_t row = new_row(s, operations[i].version);
        operations[i].version = row == SIZE_MAX ? UINT64_MAX : row;
    }
    if (table != NULL) {
        status = cow_table_append(table, done, operations, NULL);
        table->close(table);
    }
    cli_operations_free(operations, done);
    return status;
}

/* ---- the log ---- */

typedef struct opened {
    hid_t fapl;
    cli_file file;
} opened;

/* The new file natively, as one commit of its own. To be closed, in any case. */
static int open_natively(const salvage *s, opened *o)
{
    cow_journal_options options = cow_journal_defaults;

    options.sync = COW_SYNC_OFF; /* all of the file is synced when it gets its name */
    *o = (opened){H5Pcreate(H5P_FILE_ACCESS), {.id = H5I_INVALID_HID}};
    if (H5Pset_vol(o->fapl, cow_native_id(), NULL) < 0 || cow_journal_driver_set(o->fapl, &options) < 0 ||
        H5Pset_libver_bounds(o->fapl, H5F_LIBVER_V110, cow_library_latest()) < 0 ||
        (o->file.id = H5Fopen(s->temporary, H5F_ACC_RDWR, o->fapl)) < 0)
        return -1;
    o->file.loc = (cow_loc){H5VLobject(o->file.id), H5I_FILE};
    return 0;
}

/* STATUS, or -1. WHY of what failed, also before. */
static int close_natively(opened *o, int status, char *why, size_t size)
{
    if (status < 0)
        cli_reason(why, size);
    if (o->file.id >= 0 && H5Fclose(o->file.id) < 0 && status == 0) {
        cli_reason(why, size);
        status = -1;
    }
    H5Pclose(o->fapl);
    return status;
}

/* ROW of the source is row AT of the new log: what that says of its parent. */
static int64_t parent_of(const salvage *s, const cli_version *row, uint64_t at)
{
    size_t parent = cli_version_made_of(s->rows, (size_t)(row - s->rows)),
           found = parent == SIZE_MAX ? SIZE_MAX : s->new_row[parent];

    return found < at ? (int64_t)found : (int64_t)at - 1;
}

/* Forgotten versions before row END of the source that the new log does not have yet, from its row AT on. In the smallest file
 * they are their name, who made them, when, and what they said. */
static int put_forgotten(salvage *s, const cli_file *to, size_t end, uint64_t *at)
{
    int status = 0;

    for (; status == 0 && s->next_row < end; s->next_row++) {
        cli_version row = s->rows[s->next_row];
        if (row.open != COW_LOG_FORGOTTEN)
            continue;
        if (s->whole)
            row.host = row.program = row.hdf5 = row.h5cow = NULL;
        row.parent = parent_of(s, &s->rows[s->next_row], *at);
        s->new_row[s->next_row] = (size_t)*at;
        status = cow_layout_log_write(to->loc, (*at)++, &row);
    }
    return status;
}

/* The newest version, which was row FROM, is row TO of the log. Its snapshots are the last ones. */
static int move_snapshots(const cli_file *file, uint64_t from, uint64_t to)
{
    cow_table *table = cow_layout_table_open(file->loc, COW_TABLE_SNAPSHOTS, 0, 0);
    cli_snapshot_row row = {.version = from};
    int status = table == NULL ? -1 : 0;

    for (uint64_t i = status < 0 ? 0 : table->rows; status == 0 && i > 0 && row.version == from; i--) {
        status = cow_layout_rows(table, COW_TABLE_SNAPSHOTS, i - 1, 1, &row);
        if (status == 0 && row.version == from) {
            row.version = to;
            status = table->write(table, i - 1, 1, &row);
            row.version = from;
        }
    }
    if (table != NULL)
        table->close(table);
    return status;
}

/* What the source says of the version at hand, whose commit wrote row AT. */
static int put_row(salvage *s, const cli_file *to, uint64_t at)
{
    const cli_version *source = s->now->row;
    cow_layout_log_row own = {0};
    uint64_t place = at;
    int status;

    if (source == NULL)
        return 0;
    if (cow_layout_log_read(to->loc, at, &own) < 0)
        return -1;
    status = put_forgotten(s, to, (size_t)(source - s->rows), &place);
    if (status == 0 && place > at)
        status = move_snapshots(to, at, place);
    if (status == 0) {
        cli_version row = *source;
        row.name = own.name;
        row.parent = parent_of(s, source, place);
        row.added = own.added;
        row.chunks = own.chunks;
        row.changed = own.changed;
        row.open = 0;
        s->new_row[source - s->rows] = (size_t)place;
        s->next_row = (size_t)(source - s->rows) + 1;
        status = cow_layout_log_write(to->loc, place, &row);
    }
    cow_layout_log_row_free(&own);
    s->new_rows = place + 1;
    return status;
}

int salvage_put_row(salvage *s, bool *same, char *why, size_t size)
{
    uint64_t rows = 0;
    opened to;
    int status = open_natively(s, &to) < 0 || cow_layout_log_rows(to.file.loc, &rows) < 0 ? -1 : 0;

    *same = status == 0 && rows <= s->new_rows;
    if (status == 0 && !*same) {
        s->new_rows = rows;
        status = put_row(s, &to.file, rows - 1);
    }
    return close_natively(&to, status, why, size);
}

int salvage_log_begin(salvage *s, bool made, char *why, size_t size)
{
    cli_version *rows = NULL;
    size_t count = 0;
    opened to;
    int status = 0;

    s->new_row = cli_alloc(s->row_count + 1, sizeof *s->new_row);
    for (size_t i = 0; i < s->row_count; i++)
        s->new_row[i] = SIZE_MAX;
    if (!made)
        return 0;
    if (open_natively(s, &to) < 0 || cli_versions_read(&to.file, &rows, &count, why, size) < 0)
        status = -1;
    for (size_t i = 0; i < s->row_count && s->new_rows < count; i++)
        if (strcmp(rows[s->new_rows].name, s->rows[i].name) == 0) {
            s->new_row[i] = (size_t)s->new_rows++;
            s->next_row = i + 1;
        }
    s->new_rows = count;
    cli_versions_free(rows, count);
    return close_natively(&to, status, why, size);
}

int salvage_put_names(salvage *s, char *why, size_t size)
{
    opened to;
    int status = open_natively(s, &to) < 0 || put_forgotten(s, &to.file, s->row_count, &s->new_rows) < 0 ? -1 : 0;

    if (status == 0)
        status = put_tags(s, &to.file) < 0 ? -1 : put_operations(s, &to.file);
    return close_natively(&to, status, why, size);
}
