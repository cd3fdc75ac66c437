/* What is done to the history itself: beginning, recording in the table `operations`, committing or dropping it. The log tells how versions were made, this what became
 * of them, and which were made by going back. */
#include "base/error.h"
#include "history/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cow_table *open_table(cow_file *file)
{
    cow_table *table = NULL;

    if (cow_layout_operations_open(file->loc, &table) < 0)
        return NULL;
    return table != NULL ? table : cow_layout_table_create(file->loc, COW_TABLE_OPERATIONS, 0, 0);
}

int cow_operation_record(cow_file *file, cow_operation kind, uint64_t version, const char *what)
{
    cow_layout_log_row who = {0};
    cow_layout_operation row;
    cow_table *table = NULL;
    int status = -1;

    if (cow_versions_describe_row(&who, NULL) == 0 && (table = open_table(file)) != NULL) {
        row = (cow_layout_operation){.time = who.time,
                                     .version = version,
                                     .user = who.user,
                                     .host = who.host,
                                     .program = who.program,
                                     .what = cow_versions_text(what),
                                     .kind = (uint8_t)kind};
        status = row.what == NULL ? -1 : cow_table_append(table, 1, &row, NULL);
        H5free_memory(row.what);
    }
    if (table != NULL)
        table->close(table);
    cow_layout_log_row_free(&who);
    return status;
}

/* ---- what the option keep= has forgotten ---- */

static void say_policy(char *what, size_t size, uint64_t count, const char *policy)
{
    snprintf(what, size, "%llu version%s forgotten, by keep=%.200s", (unsigned long long)count, count == 1 ? "" : "s",
             policy);
}

/* How many versions ROW says the same policy and user have forgotten; 0: it says something else. */
static uint64_t said(const cow_layout_operation *row, const char *user, const char *policy)
{
    char what[300];
    uint64_t count;

    if (row->kind != COW_OPERATION_FORGET || row->what == NULL || row->user == NULL || strcmp(row->user, user) != 0)
        return 0;
    count = strtoull(row->what, NULL, 10);
    say_policy(what, sizeof what, count, policy);
    return strcmp(row->what, what) == 0 ? count : 0;
}

/* One row for as long as nothing else is done: a program that writes all day would fill the file with them. */
static int record_kept(cow_file *file, cow_table *table, uint64_t count, const char *policy)
{
    cow_layout_log_row who = {0};
    cow_layout_operation last = {0}, row;
    uint64_t before = 0, sum = 0;
    char what[300];
    int status = cow_versions_describe_row(&who, NULL);

    if (status == 0 && table->rows > 0) {
        if (cow_layout_operations_rows(file->loc, table, table->rows - 1, 1, &sum, &last) == 0) {
            before = said(&last, who.user, policy);
            cow_layout_operations_rows_free(&last, 1);
        } else
            cow_error_clear(); /* it stays as it is */
    }
    say_policy(what, sizeof what, before + count, policy);
    row = (cow_layout_operation){.time = who.time,
                                 .version = (uint64_t)cow_versions_newest(file),
                                 .user = who.user,
                                 .host = who.host,
                                 .program = who.program,
                                 .what = what,
                                 .kind = COW_OPERATION_FORGET};
    if (status == 0)
        status = before > 0 ? table->write(table, table->rows - 1, 1, &row) : cow_table_append(table, 1, &row, NULL);
    cow_layout_log_row_free(&who);
    return status;
}

int cow_operation_record_kept(cow_file *file, uint64_t count, const char *policy)
{
    cow_table *table = open_table(file);
    int status = table == NULL ? -1 : record_kept(file, table, count, policy);

    if (table != NULL)
        table->close(table);
    return status;
}

/* ---- the frame of all operations ---- */

int cow_operation_begin(cow_file *file)
{
    if (cow_file_may_write(file) < 0)
        return -1;
    if (cow_file_state_of(file) != COW_FILE_CLEAN)
        return cow_error(COW_USAGE, "%s: there are changes that are not committed; commit or drop them first",
                         file->name);
    if (file->journal == NULL)
        return cow_error(COW_UNSUPPORTED, "%s: a file in memory keeps its history as it is", file->name);
    return cow_file_open_all(file);
}

int cow_operation_drop(cow_file *file)
{
    cow_error_held *held = cow_error_hold();

    if (cow_file_abandon(file) < 0)
        cow_file_fail(file);
    cow_error_put_back(held);
    return -1;
}

int cow_operation_end(cow_file *file, int status, cow_operation kind, uint64_t version, const char *what)
{
    return cow_operation_end_recorded(file, status < 0 ? -1 : cow_operation_record(file, kind, version, what));
}

int cow_operation_end_recorded(cow_file *file, int status)
{
    return status < 0 ? cow_operation_drop(file) : cow_file_commit_history(file);
}
