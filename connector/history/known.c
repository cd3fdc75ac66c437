/* The table `snapshots`: which snapshot belongs to which head object, in which version. A row with snapshot 2^64-1 says
 * that the version does without the object: it was deleted. Rows of the running version are replaced when a flush amends
 * that version.
 */
#include "history/internal.h"

#include "error.h"

#include <stdlib.h>
#include <string.h>

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
    file->snapshot_room = file->snapshot_count = file->snapshot_written = rows;
    for (uint64_t i = 0; i < rows; i++)
        if (cow_map_put(&file->snapshot_of, file->snapshot[i].head, i) < 0 ||
            (file->snapshot[i].snapshot != UINT64_MAX &&
             cow_map_put(&file->snapshot_at, file->snapshot[i].snapshot, i) < 0))
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
           (cow_map_get(&file->snapshot_of, address, row) && file->snapshot[*row].snapshot != UINT64_MAX);
}

int cow_snapshots_add(cow_file *file, const cow_snapshot_row *added)
{
    uint64_t row;

    file->snapshot_generation++;
    if (cow_map_get(&file->snapshot_of, added->head, &row) && file->snapshot[row].version == added->version) {
        file->snapshot[row] = *added;
        if (added->snapshot != UINT64_MAX && cow_map_put(&file->snapshot_at, added->snapshot, row) < 0)
            return -1;
        if (row < file->snapshot_written)
            return file->snapshots->write(file->snapshots, row, 1, &file->snapshot[row]);
        return 0;
    }
    if (file->snapshot_count == file->snapshot_room) {
        size_t room = file->snapshot_room == 0 ? 64 : file->snapshot_room * 2;
        cow_snapshot_row *larger = realloc(file->snapshot, room * sizeof *larger);
        if (larger == NULL)
            return cow_error(COW_MEMORY, "%s: no memory for the list of snapshots", file->name);
        file->snapshot = larger;
        file->snapshot_room = room;
    }
    file->snapshot[file->snapshot_count] = *added;
    if (added->snapshot != UINT64_MAX && cow_map_put(&file->snapshot_at, added->snapshot, file->snapshot_count) < 0)
        return -1;
    return cow_map_put(&file->snapshot_of, added->head, file->snapshot_count++);
}

int cow_snapshots_flush(cow_file *file)
{
    if (cow_table_append(file->snapshots, file->snapshot_count - file->snapshot_written,
                         file->snapshot + file->snapshot_written, NULL) < 0)
        return -1;
    file->snapshot_written = file->snapshot_count;
    return 0;
}

int cow_snapshots_strike_out(cow_file *file, uint64_t row)
{
    file->snapshot_generation++;
    file->snapshot[row].snapshot = UINT64_MAX;
    return row < file->snapshot_written ? file->snapshots->write(file->snapshots, row, 1, &file->snapshot[row]) : 0;
}
