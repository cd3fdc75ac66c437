/* Reading log, datasets and snapshots, and telling what a dataset object is. See tables.h. */
#include "tables.h"

#include "ids.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADS "/_versioned_data/heads/"
#define VIEWS "/_versioned_data/views/"

typedef enum { TEXT, SIGNED, UNSIGNED, UNSIGNED32, BYTE } column_kind;
typedef struct column {
    const char *name;
    size_t offset;
    column_kind kind;
    bool required;
} column;

#define COLUMN(row, member, kind, required)                                                                            \
    {                                                                                                                  \
#member, offsetof(row, member), kind, required                                                                 \
    }

static const column log_columns[] = {
    COLUMN(cli_version, name, TEXT, true),      COLUMN(cli_version, parent, SIGNED, true),
    COLUMN(cli_version, time, SIGNED, true),    COLUMN(cli_version, user, TEXT, false),
    COLUMN(cli_version, host, TEXT, false),     COLUMN(cli_version, program, TEXT, false),
    COLUMN(cli_version, hdf5, TEXT, false),     COLUMN(cli_version, h5cow, TEXT, false),
    COLUMN(cli_version, message, TEXT, false),  COLUMN(cli_version, added, SIGNED, false),
    COLUMN(cli_version, chunks, SIGNED, false), COLUMN(cli_version, changed, SIGNED, false),
    COLUMN(cli_version, open, BYTE, false),
};
static const column dataset_columns[] = {
    COLUMN(cli_dataset_row, head, UNSIGNED, true),    COLUMN(cli_dataset_row, root, UNSIGNED, true),
    COLUMN(cli_dataset_row, pool, UNSIGNED32, true),  COLUMN(cli_dataset_row, layout, BYTE, false),
    COLUMN(cli_dataset_row, alloc_time, BYTE, false), COLUMN(cli_dataset_row, fill_time, BYTE, false),
    COLUMN(cli_dataset_row, flags, BYTE, false),
};
static const column snapshot_columns[] = {
    COLUMN(cli_snapshot_row, head, UNSIGNED, true),        COLUMN(cli_snapshot_row, snapshot, UNSIGNED, true),
    COLUMN(cli_snapshot_row, version, UNSIGNED, true),     COLUMN(cli_snapshot_row, elements, UNSIGNED, false),
    COLUMN(cli_snapshot_row, attributes, UNSIGNED, false),
};
static const column lack_columns[] = {
    COLUMN(cli_lack, version, UNSIGNED, true),
    COLUMN(cli_lack, head, UNSIGNED, true),
    COLUMN(cli_lack, path, TEXT, true),
    COLUMN(cli_lack, reason, TEXT, true),
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Put the column into the memory type, if the file has it. */
static int add_column(hid_t memory, hid_t stored, const char *path, const column *c, char *why, size_t size)
{
    int index = H5Tget_member_index(stored, c->name), status = -1;
    hid_t member = H5I_INVALID_HID, type = H5I_INVALID_HID;

    if (index < 0) {
        H5Eclear2(H5E_DEFAULT);
        if (!c->required)
            return 0;
        snprintf(why, size, "the table %s has no column '%s'", path, c->name);
        return -1;
    }
    member = H5Tget_member_type(stored, (unsigned)index);
    H5T_class_t class = H5Tget_class(member);
    if (c->kind == TEXT ? class != H5T_STRING || H5Tis_variable_str(member) <= 0 : class != H5T_INTEGER) {
        snprintf(why, size, "column '%s' of the table %s has the wrong type", c->name, path);
        goto done;
    }
    switch (c->kind) {
    case TEXT:
        type = H5Tcopy(H5T_C_S1);
        if (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5Tget_cset(member)) < 0)
            goto done;
        break;
    case SIGNED:
        type = H5Tcopy(H5T_NATIVE_INT64);
        break;
    case UNSIGNED:
        type = H5Tcopy(H5T_NATIVE_UINT64);
        break;
    case UNSIGNED32:
        type = H5Tcopy(H5T_NATIVE_UINT32);
        break;
    case BYTE:
        type = H5Tcopy(H5T_NATIVE_UINT8);
        break;
    }
    status = H5Tinsert(memory, c->name, c->offset, type) < 0 ? -1 : 0;
done:
    cow_close(type, member);
    return status;
}

/* All rows of a table. Texts are variable-length strings of HDF5's: reclaim them with *MEMORY and *SPACE. */
static int read_table(const cli_file *file, const char *path, const column *columns, size_t n, size_t row_size,
                      void **rows, size_t *count, hid_t *memory, hid_t *space, char *why, size_t size)
{
    hid_t table = H5I_INVALID_HID, stored = H5I_INVALID_HID;
    char text[512];
    hsize_t extent = 0;
    int status = -1;

    *rows = NULL;
    *count = 0;
    *memory = *space = H5I_INVALID_HID;
    snprintf(why, size, "the table %s cannot be read", path);
    if ((table = H5Dopen2(file->id, path, H5P_DEFAULT)) < 0 || (stored = H5Dget_type(table)) < 0 ||
        (*space = H5Dget_space(table)) < 0 || (*memory = H5Tcreate(H5T_COMPOUND, row_size)) < 0) {
        snprintf(why, size, "the table %s cannot be read: %s", path, cli_reason(text, sizeof text));
        goto done;
    }
    if (H5Sget_simple_extent_ndims(*space) != 1 || H5Tget_class(stored) != H5T_COMPOUND) {
        snprintf(why, size, "the table %s is not a list of rows", path);
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        if (add_column(*memory, stored, path, &columns[i], why, size) < 0)
            goto done;
    H5Sget_simple_extent_dims(*space, &extent, NULL);
    /* Unfiltered: every row is stored, so a claim of more rows than bytes is damage, not a reason to take memory. */
    if (extent > H5Dget_storage_size(table) / H5Tget_size(stored)) {
        snprintf(why, size, "the table %s claims %llu rows, more than are stored", path, (unsigned long long)extent);
        goto done;
    }
    *rows = cli_alloc(extent, row_size);
    if (extent > 0 && H5Dread(table, *memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, *rows) < 0) {
        snprintf(why, size, "the rows of the table %s cannot be read: %s", path, cli_reason(text, sizeof text));
        goto done;
    }
    *count = extent;
    status = 0;
done:
    cow_close(stored, table);
    if (status < 0) {
        free(*rows);
        *rows = NULL;
        cow_close(*memory, *space);
        *memory = *space = H5I_INVALID_HID;
    }
    return status;
}

static int read_plain(const cli_file *file, const char *path, const column *columns, size_t n, size_t row_size,
                      void **rows, size_t *count, char *why, size_t size)
{
    hid_t memory, space;

    if (read_table(file, path, columns, n, row_size, rows, count, &memory, &space, why, size) < 0)
        return -1;
    H5Tclose(memory);
    H5Sclose(space);
    return 0;
}

/* The same of a table with texts, which are ours from then on: each with free(), and never NULL. */
static int read_texts(const cli_file *file, const char *path, const column *columns, size_t n, size_t row_size,
                      void **rows, size_t *count, char *why, size_t size)
{
    hid_t memory, space;
    void *raw;

    if (read_table(file, path, columns, n, row_size, &raw, count, &memory, &space, why, size) < 0)
        return -1;
    *rows = cli_alloc(*count, row_size);
    memcpy(*rows, raw, *count * row_size);
    for (size_t i = 0; i < *count; i++)
        for (size_t c = 0; c < n; c++)
            if (columns[c].kind == TEXT) {
                char **text = (char **)((char *)*rows + i * row_size + columns[c].offset);
                *text = cli_strdup(*text == NULL ? "" : *text);
            }
    H5Treclaim(memory, space, H5P_DEFAULT, raw);
    free(raw);
    H5Tclose(memory);
    H5Sclose(space);
    return 0;
}

static void free_texts(void *rows, size_t count, const column *columns, size_t n, size_t row_size)
{
    for (size_t i = 0; i < count; i++)
        for (size_t c = 0; c < n; c++)
            if (columns[c].kind == TEXT)
                free(*(char **)((char *)rows + i * row_size + columns[c].offset));
    free(rows);
}

int cli_versions_read(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size)
{
    void *raw = NULL;
    int status = read_texts(file, "/_versioned_data/log", log_columns, COUNT(log_columns), sizeof **rows, &raw, count,
                            why, size);

    *rows = raw;
    return status;
}

void cli_versions_free(cli_version *rows, size_t count)
{
    free_texts(rows, count, log_columns, COUNT(log_columns), sizeof *rows);
}

int cli_lacks_read(const cli_file *file, cli_lack **rows, size_t *count, char *why, size_t size)
{
    void *raw = NULL;
    int status = 0;

    *count = 0;
    if (H5Lexists(file->id, "/_versioned_data/incomplete", H5P_DEFAULT) != 0)
        status = read_texts(file, "/_versioned_data/incomplete", lack_columns, COUNT(lack_columns), sizeof **rows, &raw,
                            count, why, size);
    *rows = raw;
    return status;
}

void cli_lacks_free(cli_lack *rows, size_t count)
{
    free_texts(rows, count, lack_columns, COUNT(lack_columns), sizeof *rows);
}

int cli_datasets_read(const cli_file *file, cli_dataset_row **rows, size_t *count, char *why, size_t size)
{
    void *raw = NULL;
    int status = read_plain(file, "/_versioned_data/datasets", dataset_columns, COUNT(dataset_columns), sizeof **rows,
                            &raw, count, why, size);
    *rows = raw;
    return status;
}

int cli_snapshots_read(const cli_file *file, cli_snapshot_row **rows, size_t *count, char *why, size_t size)
{
    return cli_snapshots_read_at(file, "/_versioned_data/snapshots", rows, count, why, size);
}

int cli_snapshots_read_at(const cli_file *file, const char *path, cli_snapshot_row **rows, size_t *count, char *why,
                          size_t size)
{
    void *raw = NULL;
    int status =
        read_plain(file, path, snapshot_columns, COUNT(snapshot_columns), sizeof **rows, &raw, count, why, size);
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
