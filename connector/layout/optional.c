/* The tables that are made when they are first needed: `incomplete`, what versions do without, `operations`, what was done to the
 * history itself, and `free`. See layout.h; who writes them: history/incomplete.c, history/operations.c, history/space.c. */
#include "layout/internal.h"

#include "base/error.h"

#include <string.h>

#define LACKS COW_PATH_INCOMPLETE

static int open_table(cow_loc file, const char *path, cow_table_kind kind, cow_table **table)
{
    int exists = cow_native_exists(file, path);

    *table = NULL;
    if (exists <= 0)
        return exists;
    return (*table = cow_layout_table_open(file, kind, 0, 0)) == NULL ? -1 : 1;
}

int cow_layout_lacks_open(cow_loc file, cow_table **table)
{
    return open_table(file, LACKS, COW_TABLE_INCOMPLETE, table);
}

int cow_layout_operations_open(cow_loc file, cow_table **table)
{
    return open_table(file, COW_PATH_OPERATIONS, COW_TABLE_OPERATIONS, table);
}

int cow_layout_free_open(cow_loc file, cow_table **table)
{
    return open_table(file, COW_PATH_FREE, COW_TABLE_FREE, table);
}

int cow_layout_lacks_rows(cow_loc file, cow_table *table, uint64_t first, uint64_t count, uint64_t *sum,
                          cow_layout_lack *out)
{
    void *dataset = cow_native_table_dataset(table);

    memset(out, 0, count * sizeof *out);
    if (dataset == NULL || cow_layout_texts(file, dataset, LACKS, first, count, sum) < 0)
        return -1;
    return cow_layout_rows(table, COW_TABLE_INCOMPLETE, first, count, out);
}

int cow_layout_operations_rows(cow_loc file, cow_table *table, uint64_t first, uint64_t count, uint64_t *sum,
                               cow_layout_operation *out)
{
    void *dataset = cow_native_table_dataset(table);

    memset(out, 0, count * sizeof *out);
    if (dataset == NULL || cow_layout_texts(file, dataset, COW_PATH_OPERATIONS, first, count, sum) < 0)
        return -1;
    return cow_layout_rows(table, COW_TABLE_OPERATIONS, first, count, out);
}

void cow_layout_operations_rows_free(cow_layout_operation *row, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        H5free_memory(row[i].user);
        H5free_memory(row[i].host);
        H5free_memory(row[i].program);
        H5free_memory(row[i].what);
    }
}

void cow_layout_lacks_rows_free(cow_layout_lack *row, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        H5free_memory(row[i].path);
        H5free_memory(row[i].reason);
    }
}

int cow_layout_lacks_drop(cow_loc file)
{
    int exists = cow_native_exists(file, LACKS);

    return exists <= 0 ? exists : cow_native_link_delete(file, LACKS);
}
