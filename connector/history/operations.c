/* What was done to the history itself, and by whom: the table `operations`. The log tells how versions were made, this what became
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
