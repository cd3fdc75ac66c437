/* The versioned datasets of a file: the table of all, and those that are open. */
#include "history/datasets.h"

#include "base/error.h"
#include "base/vector.h"
#include "history/internal.h"

#include <stdlib.h>
#include <string.h>

/* A row that is not in the table yet: programs make datasets by the thousand, and each commit writes the rows of all that it
 * has changed, which HDF5 does at once or one by one for the same price. */
typedef struct changed_row {
    uint64_t id;
    cow_layout_dataset_row row;
} changed_row;

/* Whoever opens one dataset soon opens another one: HDF5 reads a chunk of the table for each row. */
#define BLOCK_ROWS ((uint64_t)64)
#define KEPT       8

struct cow_datasets {
    cow_table *table;
    changed_row *changed;
    size_t changed_count, changed_room;
    cow_map at;     /* id -> its place in `changed` */
    uint64_t added; /* of these, those that the table has no room for yet: they follow its last one */
    /* rows of the table that were read together, from BLOCK_ROWS times block_number on; block_rows 0: none */
    cow_layout_dataset_row *block;
    uint64_t block_number, block_rows;
    cow_map open; /* address -> cow_dataset * */
    /* cow_file_hold_heads: some are open, of which HDF5 has not all that the program has; and those that there is no handle of, by address */
    bool unopened;
    cow_map unheld;
    /* some of them: programs that ask for a dataset by its name each time open it again and again */
    cow_dataset *kept[KEPT];
    size_t oldest; /* of these */
};

cow_datasets *cow_datasets_new(void)
{
    return calloc(1, sizeof(cow_datasets));
}

static void forget_block(cow_datasets *d)
{
    free(d->block);
    d->block = NULL;
    d->block_rows = 0;
}

static void forget_rows(cow_datasets *d)
{
    free(d->changed);
    cow_map_free(&d->at);
    d->changed = NULL;
    d->changed_count = d->changed_room = 0;
    d->added = 0;
}

void cow_datasets_free(cow_datasets *datasets)
{
    if (datasets != NULL) {
        forget_rows(datasets);
        forget_block(datasets);
    }
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
    cow_map_free(&file->datasets->unheld);
    file->datasets->unopened = false;
    memset(file->datasets->kept, 0, sizeof file->datasets->kept);
    forget_rows(file->datasets);
    forget_block(file->datasets);
    cow_file_close_table(&file->datasets->table);
}

/* ---- rows ---- */

uint64_t cow_datasets_rows(const cow_file *file)
{
    return file->datasets->table->rows + file->datasets->added;
}

/* Of a row that is in memory only, or else in the table. */
static int put_row(cow_datasets *d, uint64_t id, const cow_layout_dataset_row *row)
{
    uint64_t at;

    if (cow_map_get(&d->at, id, &at)) {
        d->changed[at].row = *row;
        return 0;
    }
    if (COW_RESERVE(d->changed, d->changed_room, d->changed_count, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for the row of a dataset");
    if (cow_map_put(&d->at, id, d->changed_count) < 0)
        return -1;
    d->changed[d->changed_count++] = (changed_row){id, *row};
    return 0;
}

int cow_datasets_add_row(cow_file *file, const cow_layout_dataset_row *row)
{
    if (put_row(file->datasets, cow_datasets_rows(file), row) < 0)
        return -1;
    file->datasets->added++;
    return 0;
}

static int no_row(const cow_file *file, uint64_t id)
{
    return cow_error(COW_CORRUPT, "%s: dataset %llu is named, but there are %llu; try: h5cow verify", file->name,
                     (unsigned long long)id, (unsigned long long)cow_datasets_rows(file));
}

int cow_dataset_row_write(cow_file *file, uint64_t id, const cow_layout_dataset_row *row)
{
    return id >= cow_datasets_rows(file) ? no_row(file, id) : put_row(file->datasets, id, row);
}

int cow_file_exposes_heads(cow_file *file)
{
    cow_layout_dataset_row row;

    if (cow_file_bytes(file) != NULL)
        return 0;
    if (cow_datasets_open(file) < 0)
        return -1;
    for (uint64_t id = 0; id < cow_datasets_rows(file); id++)
        if (cow_dataset_row_read(file, id, &row) < 0)
            return -1;
        else if (row.flags & COW_FLAG_NATIVE)
            return 1;
    return 0;
}

/* The block of a row of the table. A row of it that is damaged is nothing to the others: -1 then, and none is kept. */
static int read_block(cow_datasets *d, uint64_t id)
{
    uint64_t first = id - id % BLOCK_ROWS, count = d->table->rows - first;

    if (d->block_rows > 0 && d->block_number == id / BLOCK_ROWS)
        return 0;
    if (count > BLOCK_ROWS)
        count = BLOCK_ROWS;
    d->block_rows = 0;
    if ((d->block == NULL && (d->block = malloc(BLOCK_ROWS * sizeof *d->block)) == NULL) ||
        cow_layout_rows(d->table, COW_TABLE_DATASETS, first, count, d->block) < 0) {
        cow_error_clear();
        return -1;
    }
    d->block_number = id / BLOCK_ROWS;
    d->block_rows = count;
    return 0;
}

int cow_dataset_row_read(cow_file *file, uint64_t id, cow_layout_dataset_row *row)
{
    cow_datasets *d = file->datasets;
    uint64_t at;

    if (id >= cow_datasets_rows(file))
        return no_row(file, id);
    if (cow_map_get(&d->at, id, &at)) {
        *row = d->changed[at].row;
        return 0;
    }
    if (read_block(d, id) < 0)
        return cow_layout_rows(d->table, COW_TABLE_DATASETS, id, 1, row);
    *row = d->block[id % BLOCK_ROWS];
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const changed_row *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Rows that follow one another, COUNT of them from the first of CHANGED on, which are old ones or new ones. ROWS: room. */
static int write_run(cow_datasets *d, const changed_row *changed, size_t count, cow_layout_dataset_row *rows)
{
    for (size_t i = 0; i < count; i++)
        rows[i] = changed[i].row;
    if (changed->id < d->table->rows)
        return d->table->write(d->table, changed->id, count, rows);
    if (cow_table_append(d->table, count, rows, NULL) < 0)
        return -1;
    d->added -= count;
    return 0;
}

int cow_datasets_flush(cow_file *file)
{
    cow_datasets *d = file->datasets;
    cow_layout_dataset_row *rows;
    int status = 0;

    if (d->changed_count == 0)
        return 0;
    if ((rows = malloc(d->changed_count * sizeof *rows)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory to write the rows of its datasets", file->name);
    cow_map_free(&d->at);
    forget_block(d);
    qsort(d->changed, d->changed_count, sizeof *d->changed, by_id);
    for (size_t i = 0, n; status == 0 && i < d->changed_count; i += n) {
        const changed_row *first = &d->changed[i];
        uint64_t end = first->id < d->table->rows ? d->table->rows : UINT64_MAX;

        for (n = 1; i + n < d->changed_count && first[n].id == first->id + n && first[n].id < end; n++)
            ;
        status = write_run(d, first, n, rows);
    }
    free(rows);
    if (status == 0)
        forget_rows(d);
    for (size_t i = 0; i < d->changed_count; i++) /* what could not be written is known all the same */
        if (cow_map_put(&d->at, d->changed[i].id, i) < 0)
            status = -1;
    return status;
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
    cow_datasets *d = file->datasets;
    const cow_dataset *dataset = cow_datasets_find(file, address);

    for (size_t i = 0; dataset != NULL && dataset->kept && i < KEPT; i++)
        if (d->kept[i] == dataset)
            d->kept[i] = NULL;
    cow_map_remove(&d->unheld, address);
    cow_map_remove(&d->open, address);
}

cow_dataset *cow_datasets_keep(cow_file *file, cow_dataset *dataset)
{
    cow_datasets *d = file->datasets;
    cow_dataset *former = d->kept[d->oldest];

    if (former != NULL)
        former->kept = false;
    dataset->kept = true;
    d->kept[d->oldest] = dataset;
    d->oldest = (d->oldest + 1) % KEPT;
    return former;
}

int cow_datasets_note_unopened(cow_file *file, const cow_dataset *dataset)
{
    file->datasets->unopened = true;
    return dataset == NULL || dataset->native != NULL ? 0 : cow_map_put(&file->datasets->unheld, dataset->address, 0);
}

void cow_datasets_held(cow_file *file, uint64_t address)
{
    cow_map_remove(&file->datasets->unheld, address);
}

bool cow_datasets_unopened(const cow_file *file)
{
    return file->datasets->unopened;
}

cow_map cow_datasets_take_unheld(cow_file *file)
{
    cow_map unheld = file->datasets->unheld;

    file->datasets->unheld = (cow_map){0};
    file->datasets->unopened = false;
    return unheld;
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

bool cow_datasets_in_use(cow_file *file)
{
    const cow_dataset *dataset;

    cow_datasets_sweep(file);
    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (dataset->references > 0 && !dataset->snapshot)
            return true;
    return false;
}

/* ---- deleted while they are open ---- */

static void look_at(cow_dataset *dataset)
{
    if (!dataset->snapshot && cow_dataset_unlinked(dataset) < 0)
        cow_error_clear();
}

void cow_file_unlinked(cow_file *file, const H5O_info2_t *gone)
{
    const bool one = gone != NULL && gone->type != H5O_TYPE_GROUP;
    cow_dataset *dataset = one ? cow_datasets_find(file, cow_address(&gone->token)) : NULL;

    if (dataset != NULL)
        look_at(dataset);
    for (size_t at = 0; !one && (dataset = cow_datasets_next(file, &at)) != NULL;)
        look_at(dataset);
    if (gone == NULL)
        cow_file_groups_unlinked(file);
}

void cow_file_linked(cow_file *file, const H5O_token_t *head)
{
    cow_dataset *dataset = cow_datasets_find(file, cow_address(head));

    if (dataset != NULL)
        dataset->unlinked = false;
    cow_map_remove(&file->open_unlinked, cow_address(head));
}
