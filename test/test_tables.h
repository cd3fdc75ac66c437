/* Tables for tests: one that fails at a chosen call, one that outlives its closing. */
#ifndef COW_TEST_TABLES_H
#define COW_TEST_TABLES_H

#include "assert_error.h"
#include "store/table.h"

#include <stdlib.h>

/* Passes everything on to TARGET, which stays the test's. */
typedef struct wrapped_table {
    cow_table table;
    cow_table *target;
    unsigned calls;   /* so far */
    unsigned failing; /* this many calls from now on, one fails; 0: none does */
} wrapped_table;

static inline int wrapped_call(cow_table *table, const char *what)
{
    wrapped_table *wrapped = (wrapped_table *)table;

    wrapped->calls++;
    if (wrapped->failing > 0 && --wrapped->failing == 0)
        return cow_error(COW_IO, "the test makes this %s fail", what);
    return 0;
}

static inline int wrapped_read(cow_table *table, uint64_t first, uint64_t count, void *rows)
{
    cow_table *target = ((wrapped_table *)table)->target;

    return wrapped_call(table, "read") < 0 ? -1 : target->read(target, first, count, rows);
}

static inline int wrapped_write(cow_table *table, uint64_t first, uint64_t count, const void *rows)
{
    cow_table *target = ((wrapped_table *)table)->target;

    return wrapped_call(table, "write") < 0 ? -1 : target->write(target, first, count, rows);
}

static inline int wrapped_resize(cow_table *table, uint64_t rows)
{
    cow_table *target = ((wrapped_table *)table)->target;

    if (wrapped_call(table, "resize") < 0 || target->resize(target, rows) < 0)
        return -1;
    table->rows = target->rows;
    return 0;
}

static inline void wrapped_close(cow_table *table)
{
    free(table);
}

static inline cow_table *borrowed_table(cow_table *target)
{
    wrapped_table *wrapped = calloc(1, sizeof *wrapped);

    assert_non_null(wrapped);
    wrapped->target = target;
    wrapped->table = (cow_table){.row_size = target->row_size,
                                 .rows = target->rows,
                                 .read = wrapped_read,
                                 .write = wrapped_write,
                                 .resize = wrapped_resize,
                                 .close = wrapped_close};
    return &wrapped->table;
}

static inline cow_table *failing_table(cow_table *target)
{
    return borrowed_table(target);
}

static inline void fail_call(cow_table *table, unsigned nth)
{
    ((wrapped_table *)table)->failing = nth;
}

static inline unsigned calls(const cow_table *table)
{
    return ((const wrapped_table *)table)->calls;
}

#endif
