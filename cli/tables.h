/* The tables of a history, read by the names of their columns, so that columns added later do no harm. Everything that
 * is read is checked for plausible size; nothing is believed about the values. Layout: docs/format.md. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

#include "common.h"

/* A row of /_versioned_data/log. Strings are never NULL. */
typedef struct cli_version {
    char *name, *user, *host, *program, *hdf5, *h5cow, *message;
    int64_t parent, time, added, chunks, changed;
    uint8_t open;
} cli_version;
typedef struct cli_dataset_row {
    uint64_t head, root;
    uint32_t pool;
    uint8_t layout, alloc_time, fill_time, flags;
} cli_dataset_row;
typedef struct cli_snapshot_row {
    uint64_t head, snapshot, version;
    uint64_t elements, attributes; /* checksums; 0: none */
} cli_snapshot_row;

/* A row of /_versioned_data/incomplete: what the version of row `version` of the log lacks. Strings are never NULL. */
typedef struct cli_lack {
    uint64_t version, head; /* head object, UINT64_MAX: none; then a commit before that version made none */
    char *path, *reason;
} cli_lack;

/* 0; or -1 and WHY. *ROWS: free with the function below, or free(). */
int cli_versions_read(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size);
void cli_versions_free(cli_version *rows, size_t count);
int cli_datasets_read(const cli_file *file, cli_dataset_row **rows, size_t *count, char *why, size_t size);
/* None where there is no such table. */
int cli_lacks_read(const cli_file *file, cli_lack **rows, size_t *count, char *why, size_t size);
json_object *cli_lack_json(const cli_lack *lack);
void cli_lacks_free(cli_lack *rows, size_t count);
int cli_snapshots_read(const cli_file *file, cli_snapshot_row **rows, size_t *count, char *why, size_t size);

/* The same of a table that is somewhere else. */
int cli_snapshots_read_at(const cli_file *file, const char *path, cli_snapshot_row **rows, size_t *count, char *why,
                          size_t size);

/* What a dataset object is. */
typedef enum { CLI_NATIVE, CLI_HEAD, CLI_VIEW } cli_source_kind;
/* The one mapping of a versioned dataset object: CLI_HEAD with *NUMBER the dataset's id, CLI_VIEW with the offset of its
 * root record; CLI_NATIVE for any other dataset. -1: cannot be read (cli_reason). */
int cli_source(hid_t dataset, uint64_t *number);

/* The identity of an object in its file: its address. */
uint64_t cli_address(const H5O_token_t *token);
H5O_token_t cli_token(uint64_t address);

#endif
