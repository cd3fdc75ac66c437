/* The table `incomplete`: what versions do without. See layout.h; who writes it: history/incomplete.c. */
#include "layout/internal.h"

#include "base/error.h"

#include <string.h>

#define LACKS COW_PATH_INCOMPLETE

int cow_layout_lacks_open(cow_loc file, cow_table **table)
{
    int exists = cow_native_exists(file, LACKS);

    *table = NULL;
    if (exists <= 0)
        return exists;
    return (*table = cow_layout_table_open(file, COW_TABLE_INCOMPLETE, 0, 0)) == NULL ? -1 : 1;
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
