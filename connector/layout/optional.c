/* The tables that are made when they are first needed: `incomplete`, what versions do without, `operations`, what was done to the
 * history itself, `free`, `hashes`, and `snapshot_rows`. See layout.h; who writes them: history/incomplete.c, history/operations.c, history/space.c,
 * store/pool.c, history/snapshot_table.c. */
#include "layout/internal.h"

#include "base/error.h"

#include <stdio.h>
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

int cow_layout_operations_exist(cow_loc file)
{
    return cow_native_exists(file, COW_PATH_OPERATIONS);
}

int cow_layout_operations_open(cow_loc file, cow_table **table)
{
    return open_table(file, COW_PATH_OPERATIONS, COW_TABLE_OPERATIONS, table);
}

int cow_layout_free_open(cow_loc file, cow_table **table)
{
    return open_table(file, COW_PATH_FREE, COW_TABLE_FREE, table);
}

int cow_layout_hashes_open(cow_loc file, uint32_t pool, cow_table **table)
{
    char path[COW_PATH_MAX];
    int exists = cow_native_exists(file, COW_PATH_HASHES);

    *table = NULL;
    snprintf(path, sizeof path, COW_PATH_HASHES "/%u", pool);
    if (exists <= 0)
        return exists;
    if (cow_layout_hard(file, COW_PATH_HASHES) < 0 || (exists = cow_native_exists(file, path)) < 0)
        return -1;
    if (!exists)
        return 0;
    return (*table = cow_layout_table_open(file, COW_TABLE_HASHES, pool, 0)) == NULL ? -1 : 1;
}

cow_table *cow_layout_hashes_make(cow_loc file, uint32_t pool)
{
    char path[COW_PATH_MAX];
    int exists = cow_native_exists(file, COW_PATH_HASHES);
    void *group;

    snprintf(path, sizeof path, COW_PATH_HASHES "/%u", pool);
    if (exists < 0 ||
        (exists && (cow_layout_hard(file, COW_PATH_HASHES) < 0 || (exists = cow_native_exists(file, path)) < 0 ||
                    (exists && cow_native_link_delete(file, path) < 0))))
        return NULL;
    if (cow_native_exists(file, COW_PATH_HASHES) == 0 &&
        ((group = cow_native_group_create(file, COW_PATH_HASHES, H5P_DEFAULT)) == NULL ||
         cow_native_group_close(group) < 0))
        return NULL;
    return cow_layout_table_create(file, COW_TABLE_HASHES, pool, 0);
}

int cow_layout_snapshot_rows_open(cow_loc file, cow_table **table)
{
    return open_table(file, COW_PATH_SNAPSHOT_ROWS, COW_TABLE_SNAPSHOT_ROWS, table);
}

cow_table *cow_layout_snapshot_rows_make(cow_loc file)
{
    int exists = cow_native_exists(file, COW_PATH_SNAPSHOT_ROWS);

    if (exists < 0 || (exists && cow_native_link_delete(file, COW_PATH_SNAPSHOT_ROWS) < 0))
        return NULL;
    return cow_layout_table_create(file, COW_TABLE_SNAPSHOT_ROWS, 0, 0);
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
