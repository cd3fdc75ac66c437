/* The table `snapshots`: which snapshot belongs to which head object, in which version. A row with snapshot 2^64-1 says
 * that the version does without the object: it was deleted. Rows of the running version are replaced when a flush amends
 * that version.
 */
#include "history/internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static int map_row(cow_file *file, size_t row)
{
    const cow_layout_snapshot_row *r = &file->snapshot[row];

    return cow_map_put(&file->snapshot_of, r->head, row) < 0 ||
                   (r->snapshot != UINT64_MAX && cow_map_put(&file->snapshot_at, r->snapshot, row) < 0)
               ? -1
               : 0;
}

/* A row without a snapshot says that the object was deleted, unless the version is known to lack it. */
static int note_left_out(void *context, uint64_t version, uint64_t head, bool to_come)
{
    cow_file *file = context;
    uint64_t row;

    if (to_come)
        return cow_map_put(&file->stale, head, 0);
    return cow_map_get(&file->snapshot_of, head, &row) && file->snapshot[row].snapshot == UINT64_MAX &&
                   file->snapshot[row].version == version
               ? cow_map_put(&file->left_out, head, 0)
               : 0;
}

/* Of all rows, and of what versions lack. */
static int map_rows(cow_file *file)
{
    cow_map_free(&file->snapshot_of);
    cow_map_free(&file->snapshot_at);
    cow_map_free(&file->left_out);
    cow_map_free(&file->stale);
    for (size_t i = 0; i < file->snapshot_count; i++)
        if (map_row(file, i) < 0)
            return -1;
    return cow_lacks_visit(file, note_left_out, file);
}

int cow_snapshots_load(cow_file *file)
{
    uint64_t rows;

    if (file->snapshots_loaded)
        return 0;
    if (cow_file_open_snapshots(file) < 0)
        return -1;
    rows = file->snapshots->rows; /* not more than the file has bytes for */
    free(file->snapshot);         /* of an attempt that failed */
    file->snapshot = NULL;
    if (rows > 0 && (file->snapshot = malloc(rows * sizeof *file->snapshot)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for %llu snapshots", file->name, (unsigned long long)rows);
    if (cow_layout_rows(file->snapshots, COW_TABLE_SNAPSHOTS, 0, rows, file->snapshot) < 0)
        return cow_error_where(file->name, "reading which snapshots there are");
    file->snapshot_room = file->snapshot_count = file->snapshot_written = file->snapshot_changed = rows;
    if (map_rows(file) < 0)
        return -1;
    file->snapshots_loaded = true;
    return 0;
}

bool cow_snapshots_known(const cow_file *file, uint64_t head)
{
    return cow_map_get(&file->snapshot_of, head, NULL);
}

bool cow_snapshots_newest(const cow_file *file, uint64_t head, uint64_t *snapshot)
{
    uint64_t row;

    /* after a row that is struck out, older ones are out of date */
    if (!cow_map_get(&file->snapshot_of, head, &row) || file->snapshot[row].snapshot == UINT64_MAX)
        return false;
    if (snapshot != NULL)
        *snapshot = file->snapshot[row].snapshot;
    return true;
}

bool cow_snapshots_find(const cow_file *file, uint64_t address, uint64_t *row)
{
    return (cow_map_get(&file->snapshot_at, address, row) && file->snapshot[*row].snapshot == address) ||
           (cow_map_get(&file->snapshot_of, address, row) && !cow_map_get(&file->stale, address, NULL) &&
            (file->snapshot[*row].snapshot != UINT64_MAX || cow_snapshots_left_out(file, address)));
}

/* A row of the file changed: it is written with the next flush. */
static void row_changed(cow_file *file, size_t row)
{
    if (row < file->snapshot_changed)
        file->snapshot_changed = row;
    file->snapshot_generation++;
}

int cow_snapshots_add(cow_file *file, const cow_layout_snapshot_row *added)
{
    uint64_t row;

    cow_map_remove(&file->left_out, added->head);
    cow_map_remove(&file->stale, added->head);
    if (!cow_map_get(&file->snapshot_of, added->head, &row) || file->snapshot[row].version != added->version) {
        if (file->snapshot_count == file->snapshot_room) {
            size_t room = file->snapshot_room == 0 ? 64 : file->snapshot_room * 2;
            cow_layout_snapshot_row *larger = realloc(file->snapshot, room * sizeof *larger);
            if (larger == NULL)
                return cow_error(COW_MEMORY, "%s: no memory for the list of snapshots", file->name);
            file->snapshot = larger;
            file->snapshot_room = room;
        }
        row = file->snapshot_count++;
    }
    file->snapshot[row] = *added;
    row_changed(file, row);
    return map_row(file, row);
}

int cow_snapshots_flush(cow_file *file)
{
    size_t from = file->snapshot_changed, written = file->snapshot_written;

    if (from < written && file->snapshots->write(file->snapshots, from, written - from, file->snapshot + from) < 0)
        return -1;
    if (cow_table_append(file->snapshots, file->snapshot_count - written, file->snapshot + written, NULL) < 0)
        return -1;
    file->snapshot_written = file->snapshot_changed = file->snapshot_count;
    return 0;
}

int cow_snapshots_begin(cow_file *file, uint64_t from, cow_snapshots_saved *saved)
{
    size_t first = file->snapshot_count;

    while (first > 0 && file->snapshot[first - 1].version >= from)
        first--;
    *saved =
        (cow_snapshots_saved){.first = first, .count = file->snapshot_count - first, .written = file->snapshot_written};
    if (saved->count > 0 && (saved->row = malloc(saved->count * sizeof *saved->row)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a version", file->name);
    if (saved->count > 0)
        memcpy(saved->row, file->snapshot + first, saved->count * sizeof *saved->row);
    return 0;
}

int cow_snapshots_undo(cow_file *file, cow_snapshots_saved *saved)
{
    size_t rows = file->snapshots->rows, first = saved->first;
    int status = 0;

    if (saved->count > 0)
        memcpy(file->snapshot + first, saved->row, saved->count * sizeof *saved->row);
    file->snapshot_count = first + saved->count;
    /* what a flush that failed has written */
    if (rows > saved->written)
        status = file->snapshots->resize(file->snapshots, saved->written);
    if (status == 0 && first < saved->written)
        status = file->snapshots->write(file->snapshots, first, saved->written - first, file->snapshot + first);
    file->snapshot_written = file->snapshot_changed = saved->written;
    file->snapshot_generation++;
    cow_snapshots_done(saved);
    return status < 0 || map_rows(file) < 0 ? -1 : 0;
}

void cow_snapshots_done(cow_snapshots_saved *saved)
{
    free(saved->row);
    saved->row = NULL;
}

bool cow_snapshots_left_out(const cow_file *file, uint64_t head)
{
    return cow_map_get(&file->left_out, head, NULL);
}

int cow_snapshots_leave_out(cow_file *file, uint64_t head, uint64_t version, const cow_layout_snapshot_row *sums)
{
    const cow_layout_snapshot_row row = {head, UINT64_MAX, version, sums->elements, sums->attributes};

    return cow_snapshots_add(file, &row) < 0 ? -1 : cow_map_put(&file->left_out, head, 0);
}

int cow_snapshots_strike_out(cow_file *file, uint64_t row)
{
    file->snapshot[row].snapshot = UINT64_MAX;
    row_changed(file, row);
    return 0;
}
