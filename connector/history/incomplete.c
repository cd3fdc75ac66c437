/* What could not be put into a version: the table `incomplete`, made when it is first needed. The head is committed whatever
 * becomes of its history, so a version may have to do without an object, or a commit without a version. A row says which
 * and why. Rows are in the order of versions.
 *
 * A row of the newest version is something that the next one tries again. Rows of the version that is to come (one more than
 * the log has) are objects that changed since, while no version could be made, or no link led to them: whoever makes it must
 * make them anew.
 */
#include "history/incomplete.h"

#include "base/error.h"
#include "base/vector.h"
#include "history/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cow_incomplete {
    cow_lacks lacks; /* of the newest version, and of the next one */
    bool read, lost;
    cow_map told; /* head objects of which standard error was told */
};

cow_incomplete *cow_incomplete_new(void)
{
    return calloc(1, sizeof(cow_incomplete));
}

void cow_incomplete_free(cow_incomplete *incomplete)
{
    if (incomplete == NULL)
        return;
    cow_lacks_free(&incomplete->lacks);
    cow_map_free(&incomplete->told);
    free(incomplete);
}

/* ---- lists ---- */

int cow_lacks_add(cow_lacks *lacks, uint64_t version, uint64_t head, const char *path, const char *reason)
{
    cow_layout_lack lack = {.version = version, .head = head};

    if (COW_RESERVE(lacks->lack, lacks->room, lacks->count, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for what a version lacks");
    if ((lack.path = strdup(path == NULL ? "" : path)) == NULL || (lack.reason = strdup(reason)) == NULL) {
        free(lack.path);
        return cow_error(COW_MEMORY, "no memory for what a version lacks");
    }
    lacks->lack[lacks->count++] = lack;
    return 0;
}

size_t cow_lacks_count(const cow_lacks *lacks)
{
    return lacks->count;
}

void cow_lacks_free(cow_lacks *lacks)
{
    for (size_t i = 0; i < lacks->count; i++) {
        free(lacks->lack[i].path);
        free(lacks->lack[i].reason);
    }
    free(lacks->lack);
    *lacks = (cow_lacks){0};
}

/* ---- rows ---- */

/* VISIT each row from the last one on, until it answers something else than 0, which is returned (below 0: an error). *ROWS:
 * how many there are up to the last one visited, it included. */
static int each_row(cow_file *file, cow_table *table, int (*visit)(void *context, const cow_layout_lack *row),
                    void *context, uint64_t *rows)
{
    enum { MANY = 64 };
    cow_layout_lack row[MANY];
    uint64_t first = table->rows, sum = 0;
    int status = 0;

    while (status == 0 && first > 0) {
        uint64_t n = first < MANY ? first : MANY;
        if (cow_layout_lacks_rows(file->loc, table, first - n, n, &sum, row) < 0)
            return -1;
        first -= n;
        for (uint64_t i = n; status == 0 && i-- > 0;) {
            *rows = first + i + 1;
            status = visit(context, &row[i]);
        }
        cow_layout_lacks_rows_free(row, n);
    }
    return status;
}

typedef struct heads {
    cow_lack_visitor *visit;
    void *context;
    uint64_t versions;
} heads;

static int visit_head(void *context, const cow_layout_lack *row)
{
    const heads *h = context;

    return row->head == UINT64_MAX || h->visit(h->context, row->version, row->head, row->version >= h->versions) == 0
               ? 0
               : -1;
}

/* 1; 0: there is none, and *TABLE is NULL; -1. */
static int open_table(const cow_file *file, cow_table **table)
{
    *table = NULL;
    return cow_layout_still_lacks(file->written, COW_TABLE_INCOMPLETE) ? 0 : cow_layout_lacks_open(file->loc, table);
}

int cow_lacks_visit(cow_file *file, cow_lack_visitor *visit, void *context)
{
    heads h = {visit, context, cow_versions_known(file)};
    cow_table *table;
    uint64_t rows;
    int status;

    if (file->incomplete->lost || (status = open_table(file, &table)) == 0)
        return 0;
    if (status > 0) {
        status = !file->opened_all && cow_layout_log_rows(file->loc, &h.versions) < 0
                     ? -1
                     : each_row(file, table, visit_head, &h, &rows);
        table->close(table);
    }
    return status;
}

/* ---- of a file ---- */

static int take(void *context, const cow_layout_lack *row)
{
    const cow_file *file = context;
    uint64_t versions = cow_versions_known(file);

    if (versions > 0 && row->version < versions - 1)
        return 1;
    return cow_lacks_add(&file->incomplete->lacks, row->version, row->head, row->path,
                         row->reason == NULL ? "" : row->reason);
}

int cow_lacks_load(cow_file *file)
{
    cow_table *table;
    uint64_t rows;
    int status;

    if (file->incomplete->read)
        return 0;
    if ((status = open_table(file, &table)) > 0) {
        status = each_row(file, table, take, file, &rows);
        table->close(table);
    }
    if (status < 0) {
        cow_lacks_free(&file->incomplete->lacks);
        return -1;
    }
    file->incomplete->read = true;
    return 0;
}

int cow_lacks_each(const cow_file *file, cow_lacks_visitor *visit, void *context)
{
    const cow_lacks *lacks = &file->incomplete->lacks;
    int status = 0;

    for (size_t i = 0; status == 0 && i < lacks->count; i++)
        status = visit(context, &lacks->lack[i]);
    return status;
}

void cow_lacks_replace(cow_file *file, cow_lacks *lacks)
{
    cow_lacks_free(&file->incomplete->lacks);
    file->incomplete->lacks = *lacks;
    *lacks = (cow_lacks){0};
    file->incomplete->lost = false;
}

void cow_lacks_lose(cow_file *file)
{
    file->incomplete->read = file->incomplete->lost = true;
}

bool cow_lacks_lost(const cow_file *file)
{
    return file->incomplete->lost;
}

typedef struct limit {
    uint64_t from;
} limit;

static int older(void *context, const cow_layout_lack *row)
{
    return row->version < ((limit *)context)->from;
}

static int put_rows(cow_file *file, cow_table *table, uint64_t from, const cow_lacks *lacks)
{
    limit l = {from};
    uint64_t rows = 0;
    int found = table->rows == 0 ? 1 : each_row(file, table, older, &l, &rows);

    if (found < 0)
        return -1;
    if (found == 0)
        rows = 0; /* none is older */
    if (rows < table->rows && table->resize(table, rows) < 0)
        return -1;
    return cow_table_append(table, lacks->count, lacks->lack, NULL);
}

int cow_lacks_put(cow_file *file, uint64_t from, const cow_lacks *lacks)
{
    cow_table *table = NULL;
    int status;

    if (file->incomplete->lost && cow_layout_lacks_drop(file->loc) < 0)
        return -1;
    if ((status = open_table(file, &table)) < 0 || (table == NULL && lacks->count == 0))
        return status;
    if (table == NULL) {
        cow_layout_still_made(file->written, COW_TABLE_INCOMPLETE);
        if ((table = cow_layout_table_create(file->loc, COW_TABLE_INCOMPLETE, 0, 0)) == NULL)
            return -1;
    }
    status = put_rows(file, table, from, lacks);
    table->close(table);
    return status;
}

/* ---- telling ---- */

/* One line, whatever is in the text. */
static void print(const char *text)
{
    for (; *text != '\0'; text++)
        putc(iscntrl((unsigned char)*text) ? '?' : *text, stderr);
}

void cow_lacks_tell(cow_file *file, const char *version)
{
    const cow_lacks *lacks = &file->incomplete->lacks;
    cow_map *told = &file->incomplete->told;

    for (size_t i = 0; i < lacks->count; i++) {
        const cow_layout_lack *lack = &lacks->lack[i];
        if (lack->head == UINT64_MAX || lack->version >= cow_versions_known(file) ||
            cow_map_get(told, lack->head, NULL))
            continue;
        if (cow_map_put(told, lack->head, 0) < 0)
            cow_error_clear(); /* it may be told again */
        fprintf(stderr, "h5cow: %s: version '%s' is not complete: ", file->name, version);
        print(lack->path[0] == '\0' ? "an object without a known path" : lack->path);
        fputs(": ", stderr);
        print(lack->reason);
        fputs("; the file itself is as the program wrote it\n", stderr);
    }
}
