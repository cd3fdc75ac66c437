/* An array of fixed-size rows that grows at its end, wherever it is kept: an HDF5 dataset (native/native.h) or memory
 * (tests). The index log is one with rows of one byte. */
#ifndef COW_TABLE_H
#define COW_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct cow_table cow_table;
struct cow_table {
    size_t row_size; /* bytes of a row */
    uint64_t rows;   /* rows that exist; changed by resize only */
    int (*read)(cow_table *table, uint64_t first, uint64_t count, void *rows);
    int (*write)(cow_table *table, uint64_t first, uint64_t count, const void *rows); /* inside rows only */
    int (*resize)(cow_table *table, uint64_t rows);
    void (*close)(cow_table *table); /* frees the table itself */
};

/* Write COUNT rows at the end. *FIRST (may be NULL) is the number of the first of them. */
int cow_table_append(cow_table *table, uint64_t count, const void *rows, uint64_t *first);

/* A table in memory. */
cow_table *cow_table_memory(size_t row_size);

#endif
