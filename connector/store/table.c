/* Tables: appending to any, and one in memory that the tests of this room run on. Contract: table.h. */
#include "store/table.h"

#include "base/error.h"
#include "base/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int cow_table_append(cow_table *table, uint64_t count, const void *rows, uint64_t *first)
{
    uint64_t at = table->rows;

    if (count > UINT64_MAX - at)
        return cow_error(COW_CORRUPT, "a table of %" PRIu64 " rows cannot grow by %" PRIu64, at, count);
    if (first)
        *first = at;
    if (count == 0)
        return 0;
    if (table->resize(table, at + count) < 0)
        return -1;
    if (table->write(table, at, count, rows) < 0) {
        /* Rows without content must not be seen; if this fails too, the first error is the one to tell. */
        table->resize(table, at);
        return -1;
    }
    return 0;
}

typedef struct memory_table {
    cow_table table;
    uint8_t *bytes;
    size_t room; /* rows */
} memory_table;

static int memory_check(const cow_table *table, uint64_t first, uint64_t count)
{
    if (first > table->rows || count > table->rows - first)
        return cow_error(COW_CORRUPT,
                         "rows %" PRIu64 " and the %" PRIu64 " from there are not all in a table of %" PRIu64 " rows",
                         first, count, table->rows);
    return 0;
}

static int memory_read(cow_table *table, uint64_t first, uint64_t count, void *rows)
{
    const memory_table *memory = (const memory_table *)table;

    if (memory_check(table, first, count) < 0)
        return -1;
    if (count > 0)
        memcpy(rows, memory->bytes + first * table->row_size, count * table->row_size);
    return 0;
}

static int memory_write(cow_table *table, uint64_t first, uint64_t count, const void *rows)
{
    memory_table *memory = (memory_table *)table;

    if (memory_check(table, first, count) < 0)
        return -1;
    if (count > 0)
        memcpy(memory->bytes + first * table->row_size, rows, count * table->row_size);
    return 0;
}

static int memory_resize(cow_table *table, uint64_t rows)
{
    memory_table *memory = (memory_table *)table;

    if (cow_vector_reserve(&memory->bytes, &memory->room, 0, rows, table->row_size) < 0)
        return cow_error(COW_MEMORY, "no memory for a table of %" PRIu64 " rows", rows);
    if (rows > table->rows)
        memset(memory->bytes + table->rows * table->row_size, 0, (size_t)(rows - table->rows) * table->row_size);
    table->rows = rows;
    return 0;
}

static void memory_close(cow_table *table)
{
    memory_table *memory = (memory_table *)table;

    free(memory->bytes);
    free(memory);
}

cow_table *cow_table_memory(size_t row_size)
{
    memory_table *memory = row_size > 0 ? calloc(1, sizeof *memory) : NULL;

    if (!memory) {
        cow_error(row_size > 0 ? COW_MEMORY : COW_USAGE, "no table with rows of %zu bytes can be made", row_size);
        return NULL;
    }
    memory->table = (cow_table){.row_size = row_size,
                                .read = memory_read,
                                .write = memory_write,
                                .resize = memory_resize,
                                .close = memory_close};
    return &memory->table;
}
