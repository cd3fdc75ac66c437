/* The versioned datasets of a file: the table of all, and those that are open. */
#include "history/datasets.h"

#include "base/error.h"
#include "history/internal.h"

#include <stdlib.h>

struct cow_datasets {
    cow_table *table;
    cow_map open; /* address -> cow_dataset * */
};

cow_datasets *cow_datasets_new(void)
{
    return calloc(1, sizeof(cow_datasets));
}

void cow_datasets_free(cow_datasets *datasets)
{
    free(datasets);
}

int cow_datasets_create(cow_file *file)
{
    file->datasets->table = cow_layout_table_create(file->loc, COW_TABLE_DATASETS, 0, 0);
    return file->datasets->table == NULL ? -1 : 0;
}

int cow_datasets_open(cow_file *file)
{
    return cow_file_open_table(file, COW_TABLE_DATASETS, &file->datasets->table);
}

void cow_datasets_close(cow_file *file)
{
    cow_map_free(&file->datasets->open);
    cow_file_close_table(&file->datasets->table);
}

/* ---- rows ---- */

uint64_t cow_datasets_rows(const cow_file *file)
{
    return file->datasets->table->rows;
}

int cow_datasets_add_row(cow_file *file, const cow_layout_dataset_row *row)
{
    return cow_table_append(file->datasets->table, 1, row, NULL);
}

int cow_dataset_row_write(cow_file *file, uint64_t id, const cow_layout_dataset_row *row)
{
    return file->datasets->table->write(file->datasets->table, id, 1, row);
}

int cow_dataset_row_read(cow_file *file, uint64_t id, cow_layout_dataset_row *row)
{
    if (id >= file->datasets->table->rows)
        return cow_error(COW_CORRUPT, "%s: dataset %llu is named, but there are %llu; try: h5cow verify", file->name,
                         (unsigned long long)id, (unsigned long long)file->datasets->table->rows);
    return cow_layout_rows(file->datasets->table, COW_TABLE_DATASETS, id, 1, row);
}

/* ---- open ones ---- */

cow_dataset *cow_datasets_find(const cow_file *file, uint64_t address)
{
    uint64_t found;

    return cow_map_get(&file->datasets->open, address, &found) ? (cow_dataset *)(uintptr_t)found : NULL;
}

int cow_datasets_put(cow_file *file, uint64_t address, cow_dataset *dataset)
{
    return cow_map_put(&file->datasets->open, address, (uintptr_t)dataset);
}

void cow_datasets_remove(cow_file *file, uint64_t address)
{
    cow_map_remove(&file->datasets->open, address);
}

size_t cow_datasets_count(const cow_file *file)
{
    return file->datasets->open.count;
}

cow_dataset *cow_datasets_next(const cow_file *file, size_t *at)
{
    const cow_map *open = &file->datasets->open;

    while (*at < open->capacity) {
        const cow_map_entry *e = &open->entry[(*at)++];
        if (e->used)
            return (cow_dataset *)(uintptr_t)e->value;
    }
    return NULL;
}

bool cow_datasets_in_use(const cow_file *file)
{
    const cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (dataset->references > 0 && !dataset->snapshot)
            return true;
    return false;
}
