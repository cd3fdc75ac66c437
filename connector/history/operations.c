/* What is done to the history itself: beginning, recording in the table `operations`, committing or dropping it. The log tells how versions were made, this what became
 * of them, and which were made by going back. */
#include "base/error.h"
#include "history/internal.h"

int cow_operation_record(cow_file *file, cow_operation kind, uint64_t version, const char *what)
{
    cow_layout_log_row who = {0};
    cow_layout_operation row;
    cow_table *table = NULL;
    int status = -1;

    if (cow_versions_describe_row(&who, NULL) == 0 && cow_layout_operations_open(file->loc, &table) >= 0 &&
        (table != NULL || (table = cow_layout_table_create(file->loc, COW_TABLE_OPERATIONS, 0, 0)) != NULL)) {
        row = (cow_layout_operation){.time = who.time,
                                     .version = version,
                                     .user = who.user,
                                     .host = who.host,
                                     .program = who.program,
                                     .what = cow_versions_text(what),
                                     .kind = (uint8_t)kind};
        status = row.what == NULL ? -1 : cow_table_append(table, 1, &row, NULL);
        H5free_memory(row.what);
    }
    if (table != NULL)
        table->close(table);
    cow_layout_log_row_free(&who);
    return status;
}

int cow_operation_begin(cow_file *file)
{
    if (cow_file_may_write(file) < 0)
        return -1;
    if (cow_file_state_of(file) != COW_FILE_CLEAN)
        return cow_error(COW_USAGE, "%s: there are changes that are not committed; commit or drop them first",
                         file->name);
    if (file->journal == NULL)
        return cow_error(COW_UNSUPPORTED, "%s: a file in memory keeps its history as it is", file->name);
    return cow_file_open_all(file);
}

int cow_operation_drop(cow_file *file)
{
    cow_error_held *held = cow_error_hold();

    if (cow_file_abandon(file) < 0)
        cow_file_fail(file);
    cow_error_put_back(held);
    return -1;
}

int cow_operation_end(cow_file *file, int status, cow_operation kind, uint64_t version, const char *what)
{
    if (status < 0 || cow_operation_record(file, kind, version, what) < 0)
        return cow_operation_drop(file);
    return cow_file_commit_history(file);
}
