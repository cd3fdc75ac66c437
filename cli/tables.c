/* Reading log, datasets and snapshots, and telling what a dataset object is. See tables.h. */
#include "tables.h"

#include "base/ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS COW_PATH_HEADS "/"
#define VIEWS COW_PATH_VIEWS "/"

static char **text_of(cli_version *row, size_t i)
{
    char **texts[] = {&row->name, &row->user, &row->host, &row->program, &row->hdf5, &row->h5cow, &row->message};

    return i < sizeof texts / sizeof *texts ? texts[i] : NULL;
}

static int failed(const char *path, char *why, size_t size)
{
    char text[512];

    snprintf(why, size, "the table %s cannot be read: %s", path, cli_reason(text, sizeof text));
    return -1;
}

int cli_versions_read(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size)
{
    uint64_t n = 0;

    *rows = NULL;
    *count = 0;
    if (cow_layout_log_rows(file->loc, &n) < 0)
        return failed(COW_PATH_LOG, why, size);
    *rows = cli_alloc(n, sizeof **rows);
    if (cow_layout_log_read_many(file->loc, 0, n, NULL, *rows) < 0) {
        free(*rows);
        *rows = NULL;
        return failed(COW_PATH_LOG, why, size);
    }
    *count = n;
    for (size_t i = 0; i < n; i++) {
        cow_layout_log_row hdf5s = (*rows)[i];
        for (size_t t = 0; text_of(&(*rows)[i], t) != NULL; t++) {
            char **text = text_of(&(*rows)[i], t);
            *text = cli_strdup(*text == NULL ? "" : *text); /* ours from now on */
        }
        cow_layout_log_row_free(&hdf5s);
    }
    return 0;
}

void cli_versions_free(cli_version *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t t = 0; text_of(&rows[i], t) != NULL; t++)
            free(*text_of(&rows[i], t));
    free(rows);
}

size_t cli_version_parent(const cli_version *rows, size_t row)
{
    int64_t parent = rows[row].parent;

    return parent >= 0 && (uint64_t)parent < row ? (size_t)parent : SIZE_MAX;
}

size_t cli_version_row(const cli_version *rows, size_t count, const char *name)
{
    size_t row = 0;

    while (row < count && strcmp(rows[row].name, name) != 0)
        row++;
    return row;
}

uint64_t cli_version_object(const cli_file *file, const cli_version *version, const char *path, H5O_type_t *type)
{
    char *full = cli_format(COW_PATH_VERSIONS "/%s%s", version->name, path[1] == '\0' ? "" : path);
    uint64_t address = UINT64_MAX;
    unsigned long own;
    H5O_info2_t info;

    H5E_BEGIN_TRY
    if (H5Fget_fileno(file->id, &own) >= 0 &&
        H5Oget_info_by_name3(file->id, full, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 && info.fileno == own) {
        address = cli_address(&info.token);
        *type = info.type;
    }
    H5E_END_TRY
    free(full);
    return address;
}

/* Texts are ours from then on: each with free(), and never NULL. */
int cli_lacks_read(const cli_file *file, cli_lack **rows, size_t *count, char *why, size_t size)
{
    cow_table *table;
    uint64_t sum = 0;
    int status = cow_layout_lacks_open(file->loc, &table);

    *rows = NULL;
    *count = 0;
    if (status > 0) {
        *rows = cli_alloc(table->rows, sizeof **rows);
        if ((status = cow_layout_lacks_rows(file->loc, table, 0, table->rows, &sum, *rows)) == 0)
            *count = table->rows;
        table->close(table);
    }
    if (status < 0) {
        free(*rows);
        *rows = NULL;
        return failed(COW_PATH_INCOMPLETE, why, size);
    }
    for (size_t i = 0; i < *count; i++) {
        cow_layout_lack hdf5s = (*rows)[i];
        (*rows)[i].path = cli_strdup(hdf5s.path == NULL ? "" : hdf5s.path);
        (*rows)[i].reason = cli_strdup(hdf5s.reason == NULL ? "" : hdf5s.reason);
        cow_layout_lacks_rows_free(&hdf5s, 1);
    }
    return 0;
}

void cli_lacks_free(cli_lack *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].path);
        free(rows[i].reason);
    }
    free(rows);
}

static int read_table(const cli_file *file, const char *path, cow_table_kind kind, void **rows, size_t *count,
                      char *why, size_t size)
{
    cow_table *table = cow_layout_table_open_at(file->loc, path, kind, 0);
    int status = -1;

    *rows = NULL;
    *count = 0;
    if (table == NULL)
        return failed(path, why, size);
    *rows = cli_alloc(table->rows, table->row_size);
    if (cow_layout_rows(table, kind, 0, table->rows, *rows) == 0) {
        *count = table->rows;
        status = 0;
    } else {
        failed(path, why, size);
        free(*rows);
        *rows = NULL;
    }
    table->close(table);
    return status;
}

int cli_datasets_read(const cli_file *file, cli_dataset_row **rows, size_t *count, char *why, size_t size)
{
    void *raw = NULL;
    int status = read_table(file, COW_PATH_DATASETS, COW_TABLE_DATASETS, &raw, count, why, size);

    *rows = raw;
    return status;
}

int cli_snapshots_read(const cli_file *file, cli_snapshot_row **rows, size_t *count, char *why, size_t size)
{
    return cli_snapshots_read_at(file, COW_PATH_SNAPSHOTS, rows, count, why, size);
}

int cli_snapshots_read_at(const cli_file *file, const char *path, cli_snapshot_row **rows, size_t *count, char *why,
                          size_t size)
{
    void *raw = NULL;
    int status = read_table(file, path, COW_TABLE_SNAPSHOTS, &raw, count, why, size);

    *rows = raw;
    return status;
}

/* The whole of TEXT after PREFIX as a number. */
static bool number_after(const char *text, const char *prefix, int base, uint64_t *number)
{
    size_t n = strlen(prefix);
    char *end;

    if (strncmp(text, prefix, n) != 0 || text[n] == '\0' ||
        strspn(text + n, base == 10 ? "0123456789" : "0123456789abcdef") != strlen(text + n))
        return false;
    errno = 0;
    *number = strtoull(text + n, &end, base);
    return errno == 0 && *end == '\0';
}

int cli_source(hid_t dataset, uint64_t *number)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    char name[128], file[8];
    size_t mappings = 0;
    int kind = CLI_NATIVE;

    if (dcpl < 0)
        return -1;
    if (H5Pget_layout(dcpl) == H5D_VIRTUAL) {
        if (H5Pget_virtual_count(dcpl, &mappings) < 0)
            kind = -1;
        else if (mappings == 1 && H5Pget_virtual_filename(dcpl, 0, file, sizeof file) == 1 && file[0] == '.') {
            ssize_t n = H5Pget_virtual_dsetname(dcpl, 0, name, sizeof name);
            if (n < 0)
                kind = -1;
            else if ((size_t)n < sizeof name)
                kind = number_after(name, HEADS, 10, number)   ? CLI_HEAD
                       : number_after(name, VIEWS, 16, number) ? CLI_VIEW
                                                               : CLI_NATIVE;
        }
    }
    H5Pclose(dcpl);
    return kind;
}

uint64_t cli_address(const H5O_token_t *token)
{
    uint64_t address = 0;

    for (int i = 7; i >= 0; i--)
        address = address << 8 | token->__data[i];
    return address;
}

H5O_token_t cli_token(uint64_t address)
{
    H5O_token_t token = {{0}};

    for (int i = 0; i < 8; i++)
        token.__data[i] = (uint8_t)(address >> (8 * i));
    return token;
}
