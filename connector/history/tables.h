/* The tables of a file: laying out a new history, opening one that is there. */
#ifndef COW_HISTORY_TABLES_H
#define COW_HISTORY_TABLES_H

#include "history/history.h"
#include "layout/still.h"

/* Make the tables, in a file that has none. Needed before anything is put into them. */
int cow_file_lay_out(cow_file *file);
/* The attribute NAME of /_versioned_data becomes VALUE of TYPE. */
int cow_file_put_number(cow_file *file, const char *name, hid_t type, const void *value);
/* The file says from now on that it has what only FORMAT (layout.h) knows. */
int cow_file_need_format(cow_file *file, uint32_t format);
/* Open those that reading needs; all of them where the file is to be written. */
int cow_file_open_tables(cow_file *file);
/* Open what was left out because the file was opened for reading: pools, snapshots, and the number of rows of the log. */
int cow_file_open_all(cow_file *file);

/* Those that are known by the file's bytes; NULL: none is. */
const cow_layout_still *cow_file_tables(const cow_file *file);
/* One of them, for its owner. Does nothing where it is open; the error says to which file it belongs. */
int cow_file_open_table(const cow_file *file, cow_table_kind kind, cow_table **table);
void cow_file_close_table(cow_table **table);

#endif
