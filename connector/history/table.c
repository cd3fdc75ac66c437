/* One table of the history, for its owner. */
#include "history/tables.h"

#include "base/error.h"
#include "history/internal.h"

const cow_layout_still *cow_file_tables(const cow_file *file)
{
    return file->still != NULL ? file->still : file->written;
}

int cow_file_open_table(const cow_file *file, cow_table_kind kind, cow_table **table)
{
    if (*table == NULL)
        *table = cow_layout_still_table(cow_file_tables(file), kind, 0, 0);
    if (*table == NULL && (*table = cow_layout_table_open(file->loc, kind, 0, 0)) == NULL)
        return cow_context("%s: the history of the file is incomplete; try: h5cow verify", file->name);
    return 0;
}

void cow_file_close_table(cow_table **table)
{
    if (*table != NULL)
        (*table)->close(*table);
    *table = NULL;
}
