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

static int put_tags(salvage *s, const cli_file *to, const cli_version *rows)
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
            status = put_tag(s, to, &tags[i], rows[row].name);
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

/* The rows that the new log is to have. The commits of this program wrote COUNT as OWN; those of the source's forgotten versions
 * come between them. TO: by row of OWN, where it goes. Texts are others'. */
static cli_version *all_rows(salvage *s, const cli_version *own, size_t count, uint64_t to[], size_t *all)
{
    cli_version *rows = cli_alloc(s->row_count + count, sizeof *rows);
    size_t n = 0, taken = 0;

    s->new_row = cli_alloc(s->row_count, sizeof *s->new_row);
    for (size_t i = 0; i < s->row_count; i++) {
        const cli_version *row = &s->rows[i];
        bool forgotten = row->open == COW_LOG_FORGOTTEN;
        size_t parent = cli_version_parent(s->rows, i);
        s->new_row[i] = SIZE_MAX;
        if (!forgotten && (taken == count || strcmp(own[taken].name, row->name) != 0))
            continue; /* lost, or the same as the one before */
        parent = parent == SIZE_MAX ? SIZE_MAX : s->new_row[parent];
        rows[n] = *row;
        rows[n].parent = parent == SIZE_MAX ? (int64_t)n - 1 : (int64_t)parent;
        rows[n].open = forgotten ? COW_LOG_FORGOTTEN : 0;
        if (!forgotten) {
            rows[n].added = own[taken].added;
            rows[n].chunks = own[taken].chunks;
            rows[n].changed = own[taken].changed;
            to[taken++] = n;
        }
        s->new_row[i] = n++;
    }
    for (; taken < count; taken++) { /* those that the log of the source does not know */
        rows[n] = own[taken];
        rows[n].parent = (int64_t)n - 1;
        to[taken] = n++;
    }
    *all = n;
    return rows;
}

/* Forgotten versions have come between: the rows that name versions by their place in the log name the new one. */
static int move_snapshots(const cli_file *to, const uint64_t place[], size_t count)
{
    cow_table *table = cow_layout_table_open(to->loc, COW_TABLE_SNAPSHOTS, 0, 0);
    cli_snapshot_row *rows = table == NULL ? NULL : cli_alloc(table->rows, sizeof *rows);
    int status = table == NULL || cow_layout_rows(table, COW_TABLE_SNAPSHOTS, 0, table->rows, rows) < 0 ? -1 : 0;

    for (uint64_t i = 0; status == 0 && i < table->rows; i++)
        if (rows[i].version < count)
            rows[i].version = place[rows[i].version];
    if (status == 0 && table->rows > 0)
        status = table->write(table, 0, table->rows, rows);
    if (table != NULL)
        table->close(table);
    free(rows);
    return status;
}

static int write_rows(const cli_file *to, const cli_version *rows, size_t count)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < count; i++)
        status = cow_layout_log_write(to->loc, i, &rows[i]);
    return status;
}

/* Those that were made, but that nothing of is in the new log. */
static void tell_same(salvage *s, const cli_version *own, size_t count)
{
    for (size_t v = 0; v < s->versions; v++)
        if (cli_version_row(own, count, s->version[v].name) == count)
            salvage_tell(s, "same", cli_json_text(s->version[v].name));
}

int salvage_put_log(salvage *s, char *why, size_t size)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), file = H5I_INVALID_HID;
    cow_journal_options options = cow_journal_defaults;
    cli_version *own = NULL, *rows = NULL;
    size_t count = 0, all = 0;
    uint64_t *place = NULL;
    int status = -1;

    options.sync = COW_SYNC_OFF; /* all of the file is synced when it gets its name */
    if (H5Pset_vol(fapl, cow_native_id(), NULL) < 0 || cow_journal_driver_set(fapl, &options) < 0 ||
        H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, cow_library_latest()) < 0 ||
        (file = H5Fopen(s->temporary, H5F_ACC_RDWR, fapl)) < 0) {
        cli_reason(why, size);
        goto done;
    }
    cli_file to = {.id = file, .loc = {H5VLobject(file), H5I_FILE}};
    if (cli_versions_read(&to, &own, &count, why, size) < 0)
        goto done;
    tell_same(s, own, count);
    place = cli_alloc(count, sizeof *place);
    rows = all_rows(s, own, count, place, &all);
    if (write_rows(&to, rows, all) < 0 || (all > count && move_snapshots(&to, place, count) < 0) ||
        put_tags(s, &to, rows) < 0 || put_operations(s, &to) < 0)
        cli_reason(why, size);
    else
        status = 0;
done:
    free(place);
    free(rows);
    cli_versions_free(own, count);
    if (file >= 0 && H5Fclose(file) < 0 && status == 0) {
        cli_reason(why, size);
        status = -1;
    }
    H5Pclose(fapl);
    return status;
}
