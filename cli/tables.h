/* The tables of a history, as the door gives them out (connector/layout/layout.h): nothing is believed about the values. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "common.h"

#include "layout/layout.h"

/* Rows as they are in the file. Of the log: texts are free()'s, and never NULL. */
typedef cow_layout_log_row cli_version;
typedef cow_layout_dataset_row cli_dataset_row;
typedef cow_layout_snapshot_row cli_snapshot_row;

/* A row of /_versioned_data/incomplete: what the version of row `version` of the log lacks. Strings are never NULL. */
typedef cow_layout_lack cli_lack; /* texts with free() */

/* 0; or -1 and WHY. *ROWS: free with the function below, or free(). */
int cli_versions_read(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size);
/* In two steps, where few of very many rows are shown: all numbers, with NULL for texts; and the texts of rows FIRST to END. */
int cli_versions_numbers(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size);
/* Of the newest rows alone, from *FIRST on, among which WANTED versions are not forgotten if there are so many; rows before are zeros.
 * And of one more of these, which has none of its texts yet. */
int cli_versions_newest(const cli_file *file, uint64_t wanted, cli_version **rows, size_t *count, size_t *first,
                        char *why, size_t size);
/* The version NAME and all that are newer, in full; rows before *FIRST, its own, are zeros. */
int cli_versions_since(const cli_file *file, const char *name, cli_version **rows, size_t *count, size_t *first,
                       char *why, size_t size);
int cli_versions_number(const cli_file *file, cli_version *rows, size_t row, char *why, size_t size);
int cli_versions_texts(const cli_file *file, cli_version *rows, size_t first, size_t end, char *why, size_t size);
void cli_versions_free(cli_version *rows, size_t count);
int cli_datasets_read(const cli_file *file, cli_dataset_row **rows, size_t *count, char *why, size_t size);
/* The same row by row. NULL and WHY; 0, or -1 and WHY. */
cow_table *cli_datasets_open(const cli_file *file, char *why, size_t size);
int cli_datasets_row(cow_table *table, uint64_t row, cli_dataset_row *out, char *why, size_t size);
/* The row of the version that the one of ROW was made of, which stands before it and may be forgotten; SIZE_MAX: of none. */
size_t cli_version_made_of(const cli_version *rows, size_t row);
/* The nearest of these that is not forgotten. */
size_t cli_version_parent(const cli_version *rows, size_t row);
/* The newest before ROW that is not forgotten; SIZE_MAX: there is none. */
size_t cli_version_before(const cli_version *rows, size_t row);
/* How many are not forgotten. */
size_t cli_versions_there(const cli_version *rows, size_t count);
/* The row of the version NAME, which is not forgotten; COUNT: there is none. Rows without texts are not looked at. */
size_t cli_version_row(const cli_version *rows, size_t count, const char *name);
/* The same for who looks for very many: their names in order. */
typedef struct cli_names {
    struct cli_name *name;
    size_t count, rows;
} cli_names;
cli_names cli_names_of(const cli_version *rows, size_t count);
/* FORGOTTEN, or NULL: is it the name of one that is? */
size_t cli_names_find(const cli_names *names, const char *name, bool *forgotten);
void cli_names_free(cli_names *names);
/* A tag, and the row of its version; SIZE_MAX: it names none. */
typedef struct cli_tag {
    char *name;
    size_t version;
} cli_tag;
/* In the order of their names. 0, or -1 and WHY. */
int cli_tags_read(const cli_file *file, const cli_version *rows, size_t versions, cli_tag **tags, size_t *count,
                  char *why, size_t size);
void cli_tags_free(cli_tag *tags, size_t count);
/* "(paper, final)" with a blank before, or "". free() it. */
char *cli_tags_of(const cli_tag *tags, size_t count, size_t version);
/* What was done to the history itself; texts as those of the log. */
typedef cow_layout_operation cli_operation;
int cli_operations_read(const cli_file *file, cli_operation **rows, size_t *count, char *why, size_t size);
/* Can those be read that were recorded at TIME and later? */
int cli_operations_check(const cli_file *file, int64_t time, char *why, size_t size);
void cli_operations_free(cli_operation *rows, size_t count);
/* The address of the object PATH in a version; UINT64_MAX: it has none, or one of another file behind an external link.
 * Versions share what did not change. */
uint64_t cli_version_object(const cli_file *file, const cli_version *version, const char *path, H5O_type_t *type);
/* All that is recorded of version NUMBER of them (from 0), but what it lacks. */
json_object *cli_version_json(const cli_version *rows, size_t number);
/* None where there is no such table. */
int cli_lacks_read(const cli_file *file, cli_lack **rows, size_t *count, char *why, size_t size);
/* The same of the version of row VERSION and newer ones. *FIRST: the row of the table that the first of *ROWS has. */
int cli_lacks_since(const cli_file *file, uint64_t version, cli_lack **rows, size_t *count, size_t *first, char *why,
                    size_t size);
json_object *cli_lack_json(const cli_lack *lack);
void cli_lacks_free(cli_lack *rows, size_t count);
int cli_snapshots_read(const cli_file *file, cli_snapshot_row **rows, size_t *count, char *why, size_t size);
/* The same, but rows before *FIRST, which are those of versions before that of row VERSION, are zeros. */
int cli_snapshots_since(const cli_file *file, uint64_t version, cli_snapshot_row **rows, size_t *count, size_t *first,
                        char *why, size_t size);

/* The same of a table that is somewhere else. */
int cli_snapshots_read_at(const cli_file *file, const char *path, cli_snapshot_row **rows, size_t *count, char *why,
                          size_t size);

/* What a dataset object is. */
enum { CLI_NATIVE, CLI_HEAD, CLI_VIEW };
/* What the mappings of a dataset object say: CLI_HEAD with *NUMBER the dataset's id, CLI_VIEW with the offset of its
 * root record; CLI_NATIVE for any other dataset. -1: cannot be read (cli_reason). *MARKED, where not NULL: the object is no dataset that
 * shows the view of the root record, but says that it is that view. */
int cli_source(hid_t dataset, uint64_t *number, bool *marked);

#endif
