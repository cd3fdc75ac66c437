/* Reading log, datasets and snapshots, and telling what a dataset object is. See tables.h. */
#include "tables.h"

#include "base/error.h"
#include "base/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const char *const numbers[] = {"parent", "time", "added", "chunks", "changed", "open", NULL};

int cli_versions_newest(const cli_file *file, uint64_t wanted, cli_version **rows, size_t *count, size_t *first,
                        char *why, size_t size)
{
    uint64_t n = 0, there = 0, most = wanted < 64 ? 64 : wanted;

    *rows = NULL;
    *count = *first = 0;
    if (cow_layout_log_rows(file->loc, &n) < 0)
        return failed(COW_PATH_LOG, why, size);
    *rows = cli_alloc(n, sizeof **rows);
    for (*count = *first = n; *first > 0 && there < wanted; most *= 2) {
        const size_t before = *first;

        *first -= before < most ? before : most;
        if (cow_layout_log_read_many(file->loc, *first, before - *first, numbers, *rows + *first) < 0) {
            free(*rows);
            *rows = NULL;
            *count = *first = 0;
            return failed(COW_PATH_LOG, why, size);
        }
        there += cli_versions_there(*rows + *first, before - *first);
    }
    return 0;
}

int cli_versions_numbers(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size)
{
    size_t first;

    return cli_versions_newest(file, UINT64_MAX, rows, count, &first, why, size);
}

int cli_versions_number(const cli_file *file, cli_version *rows, size_t row, char *why, size_t size)
{
    return cow_layout_log_read_many(file->loc, row, 1, numbers, &rows[row]) < 0 ? failed(COW_PATH_LOG, why, size) : 0;
}

int cli_versions_texts(const cli_file *file, cli_version *rows, size_t first, size_t end, char *why, size_t size)
{
    cow_layout_log_row *hdf5s = cli_alloc(end - first, sizeof *hdf5s);

    if (cow_layout_log_read_many(file->loc, first, end - first, NULL, hdf5s) < 0) {
        free(hdf5s);
        return failed(COW_PATH_LOG, why, size);
    }
    for (size_t i = first; i < end; i++) {
        for (size_t t = 0; text_of(&rows[i], t) != NULL; t++) {
            const char *text = *text_of(&hdf5s[i - first], t);

            if (*text_of(&rows[i], t) == NULL)
                *text_of(&rows[i], t) = cli_strdup(text == NULL ? "" : text); /* ours from now on */
        }
        cow_layout_log_row_free(&hdf5s[i - first]);
    }
    free(hdf5s);
    return 0;
}

int cli_versions_read(const cli_file *file, cli_version **rows, size_t *count, char *why, size_t size)
{
    if (cli_versions_numbers(file, rows, count, why, size) < 0)
        return -1;
    if (cli_versions_texts(file, *rows, 0, *count, why, size) == 0)
        return 0;
    cli_versions_free(*rows, *count);
    *rows = NULL;
    *count = 0;
    return -1;
}

/* The row of the log that the version NAME has; ROWS: there is none. Looked for from the newest one on. */
static int find_newest(const cli_file *file, const char *name, uint64_t rows, uint64_t *found)
{
    static const char *const members[] = {"name", "open", NULL};
    uint64_t n = 64;

    *found = rows;
    for (uint64_t end = rows; end > 0 && *found == rows; end -= n, n *= 2) {
        cli_version *block = cli_alloc(n = n < end ? n : end, sizeof *block);
        int status = cow_layout_log_read_many(file->loc, end - n, n, members, block);

        for (uint64_t i = n; status == 0 && i-- > 0;) {
            if (*found == rows && block[i].open != COW_LOG_FORGOTTEN && block[i].name != NULL &&
                strcmp(block[i].name, name) == 0)
                *found = end - n + i;
            cow_layout_log_row_free(&block[i]);
        }
        free(block);
        if (status < 0)
            return -1;
    }
    return 0;
}

int cli_versions_since(const cli_file *file, const char *name, cli_version **rows, size_t *count, size_t *first,
                       char *why, size_t size)
{
    uint64_t n = 0, row = 0;

    *rows = NULL;
    *count = *first = 0;
    if (cow_layout_log_rows(file->loc, &n) < 0 || find_newest(file, name, n, &row) < 0)
        return failed(COW_PATH_LOG, why, size);
    if (row == n) {
        snprintf(why, size, "the log lacks version '%s'", name);
        return -1;
    }
    *rows = cli_alloc(n, sizeof **rows);
    *count = n;
    *first = row;
    if (cow_layout_log_read_many(file->loc, row, n - row, numbers, *rows + row) < 0)
        failed(COW_PATH_LOG, why, size);
    else if (cli_versions_texts(file, *rows, row, n, why, size) == 0)
        return 0;
    cli_versions_free(*rows, n);
    *rows = NULL;
    *count = *first = 0;
    return -1;
}

void cli_versions_free(cli_version *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t t = 0; text_of(&rows[i], t) != NULL; t++)
            free(*text_of(&rows[i], t));
    free(rows);
}

size_t cli_version_made_of(const cli_version *rows, size_t row)
{
    int64_t parent = rows[row].parent;

    return parent >= 0 && (uint64_t)parent < row ? (size_t)parent : SIZE_MAX;
}

size_t cli_version_parent(const cli_version *rows, size_t row)
{
    do
        row = cli_version_made_of(rows, row);
    while (row != SIZE_MAX && rows[row].open == COW_LOG_FORGOTTEN);
    return row;
}

size_t cli_version_before(const cli_version *rows, size_t row)
{
    while (row > 0 && rows[row - 1].open == COW_LOG_FORGOTTEN)
        row--;
    return row == 0 ? SIZE_MAX : row - 1;
}

size_t cli_versions_there(const cli_version *rows, size_t count)
{
    size_t there = 0;

    for (size_t i = 0; i < count; i++)
        there += rows[i].open != COW_LOG_FORGOTTEN;
    return there;
}

size_t cli_version_row(const cli_version *rows, size_t count, const char *name)
{
    size_t row = 0;

    while (row < count &&
           (rows[row].open == COW_LOG_FORGOTTEN || rows[row].name == NULL || strcmp(rows[row].name, name) != 0))
        row++;
    return row;
}

typedef struct cli_name {
    const char *text;
    size_t row;
    bool forgotten;
} cli_name;

/* Of the same name those that are there first, and of them the oldest. */
static int by_name(const void *a, const void *b)
{
    const cli_name *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    if (order != 0)
        return order;
    return x->forgotten != y->forgotten ? x->forgotten - y->forgotten : (x->row > y->row) - (x->row < y->row);
}

cli_names cli_names_of(const cli_version *rows, size_t count)
{
    cli_names names = {cli_alloc(count, sizeof *names.name), 0, count};

    for (size_t i = 0; i < count; i++)
        if (rows[i].name != NULL)
            names.name[names.count++] = (cli_name){rows[i].name, i, rows[i].open == COW_LOG_FORGOTTEN};
    if (names.count > 0)
        qsort(names.name, names.count, sizeof *names.name, by_name);
    return names;
}

size_t cli_names_find(const cli_names *names, const char *name, bool *forgotten)
{
    size_t low = 0, high = names->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(names->name[middle].text, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool known = low < names->count && strcmp(names->name[low].text, name) == 0;
    if (forgotten != NULL)
        *forgotten = known && names->name[low].forgotten;
    return known && !names->name[low].forgotten ? names->name[low].row : names->rows;
}

void cli_names_free(cli_names *names)
{
    free(names->name);
    *names = (cli_names){0};
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
        address = cow_address(&info.token);
        *type = info.type;
    }
    H5E_END_TRY
    free(full);
    return address;
}

/* ---- tags ---- */

typedef struct listing {
    const cli_file *file;
    const cli_version *rows;
    size_t versions, count, room;
    cli_tag *tags;
    cow_loc group;
    cli_names names;
} listing;

static int note_tag(void *context, const char *name, const H5L_info2_t *info)
{
    static const char above[] = COW_PATH_VERSIONS "/";
    listing *l = context;
    size_t bytes, version = l->versions;
    char *value = info->type == H5L_TYPE_SOFT ? cow_native_link_value(l->group, name, &bytes) : NULL;

    if (info->type == H5L_TYPE_SOFT && value == NULL)
        return -1;
    if (value != NULL && strncmp(value, above, sizeof above - 1) == 0)
        version = cli_names_find(&l->names, value + sizeof above - 1, NULL);
    CLI_RESERVE(l->tags, l->room, l->count, 1);
    l->tags[l->count++] = (cli_tag){cli_strdup(name), version < l->versions ? version : SIZE_MAX};
    free(value);
    return 0;
}

int cli_tags_read(const cli_file *file, const cli_version *rows, size_t versions, cli_tag **tags, size_t *count,
                  char *why, size_t size)
{
    listing l = {.file = file, .rows = rows, .versions = versions, .names = cli_names_of(rows, versions)};
    int exists = cow_native_exists(file->loc, COW_PATH_TAGS), status = exists < 0 ? -1 : 0;

    if (exists > 0) {
        status =
            cow_layout_hard(file->loc, COW_PATH_TAGS) < 0 || cow_native_open(file->loc, COW_PATH_TAGS, &l.group) < 0
                ? -1
                : 0;
        if (status == 0 && l.group.type != H5I_GROUP)
            status = cow_error(COW_CORRUPT, "'%s' is no group", COW_PATH_TAGS);
        else if (status == 0)
            status = cow_native_links(l.group, COW_LINKS_BY_NAME, note_tag, &l);
        if (l.group.object != NULL && cow_native_close(l.group) < 0)
            status = -1;
    }
    *tags = l.tags;
    *count = l.count;
    cli_names_free(&l.names);
    if (status == 0)
        return 0;
    cli_tags_free(l.tags, l.count);
    *tags = NULL;
    *count = 0;
    return failed(COW_PATH_TAGS, why, size);
}

void cli_tags_free(cli_tag *tags, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(tags[i].name);
    free(tags);
}

char *cli_tags_of(const cli_tag *tags, size_t count, size_t version)
{
    char *text = cli_strdup("");

    for (size_t i = 0; i < count; i++) {
        if (tags[i].version != version)
            continue;
        char *more = cli_format("%s%s%s", text, text[0] == '\0' ? " (" : ", ", tags[i].name);
        free(text);
        text = more;
    }
    if (text[0] == '\0')
        return text;
    char *closed = cli_format("%s)", text);
    free(text);
    return closed;
}

/* ---- the newest rows of tables ---- */

/* A table whose rows stand in the order of a value. */
typedef struct ordered {
    const cli_file *file;
    cow_table *table;
    cow_table_kind kind;
} ordered;

/* Times before 1970 as well come out in their order. */
static uint64_t order_of(int64_t time)
{
    return (uint64_t)time ^ (uint64_t)1 << 63;
}

static int read_values(const ordered *o, uint64_t first, uint64_t count, uint64_t value[])
{
    void *rows = NULL;
    uint64_t sum = 0;
    int status = -1;

    if (o->kind == COW_TABLE_SNAPSHOTS) {
        cow_layout_snapshot_row *row = rows = cli_alloc(count, sizeof *row);
        status = cow_layout_rows(o->table, o->kind, first, count, row);
        for (uint64_t i = 0; status == 0 && i < count; i++)
            value[i] = row[i].version;
    } else if (o->kind == COW_TABLE_INCOMPLETE) {
        cow_layout_lack *row = rows = cli_alloc(count, sizeof *row);
        if ((status = cow_layout_lacks_rows(o->file->loc, o->table, first, count, &sum, row)) == 0) {
            for (uint64_t i = 0; i < count; i++)
                value[i] = row[i].version;
            cow_layout_lacks_rows_free(row, count);
        }
    } else {
        cow_layout_operation *row = rows = cli_alloc(count, sizeof *row);
        if ((status = cow_layout_operations_rows(o->file->loc, o->table, first, count, &sum, row)) == 0) {
            for (uint64_t i = 0; i < count; i++)
                value[i] = order_of(row[i].time);
            cow_layout_operations_rows_free(row, count);
        }
    }
    free(rows);
    return status;
}

/* *FIRST: the row from which on values are LEAST or more. Looked for from the newest one on. */
static int find_first(const ordered *o, uint64_t least, uint64_t *first)
{
    uint64_t n = 64;
    bool more = true;

    *first = o->table->rows;
    for (uint64_t end = o->table->rows; more && end > 0; end -= n, n *= 2) {
        uint64_t *value = cli_alloc(n = n < end ? n : end, sizeof *value);
        int status = read_values(o, end - n, n, value);

        for (uint64_t i = n; status == 0 && i-- > 0;)
            if (value[i] >= least)
                *first = end - n + i;
        more = value[0] >= least;
        free(value);
        if (status < 0)
            return -1;
    }
    return 0;
}

/* ---- what was done to the history ---- */

int cli_operations_read(const cli_file *file, cli_operation **rows, size_t *count, char *why, size_t size)
{
    cow_table *table;
    uint64_t sum = 0;
    int status = cow_layout_operations_open(file->loc, &table);

    *rows = NULL;
    *count = 0;
    if (status > 0) {
        *rows = cli_alloc(table->rows, sizeof **rows);
        if ((status = cow_layout_operations_rows(file->loc, table, 0, table->rows, &sum, *rows)) == 0)
            *count = table->rows;
        table->close(table);
    }
    if (status < 0) {
        free(*rows);
        *rows = NULL;
        return failed(COW_PATH_OPERATIONS, why, size);
    }
    for (size_t i = 0; i < *count; i++) {
        cow_layout_operation hdf5s = (*rows)[i];
        char **ours[] = {&(*rows)[i].user, &(*rows)[i].host, &(*rows)[i].program, &(*rows)[i].what};
        for (size_t t = 0; t < sizeof ours / sizeof *ours; t++)
            *ours[t] = cli_strdup(*ours[t] == NULL ? "" : *ours[t]);
        cow_layout_operations_rows_free(&hdf5s, 1);
    }
    return 0;
}

int cli_operations_check(const cli_file *file, int64_t time, char *why, size_t size)
{
    ordered o = {.file = file, .kind = COW_TABLE_OPERATIONS};
    uint64_t first;
    int status = cow_layout_operations_open(file->loc, &o.table);

    if (status > 0) {
        status = find_first(&o, order_of(time), &first); /* which reads them */
        o.table->close(o.table);
    }
    return status < 0 ? failed(COW_PATH_OPERATIONS, why, size) : 0;
}

void cli_operations_free(cli_operation *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].user);
        free(rows[i].host);
        free(rows[i].program);
        free(rows[i].what);
    }
    free(rows);
}

/* Texts are ours from then on: each with free(), and never NULL. */
int cli_lacks_since(const cli_file *file, uint64_t version, cli_lack **rows, size_t *count, size_t *first, char *why,
                    size_t size)
{
    ordered o = {.file = file, .kind = COW_TABLE_INCOMPLETE};
    uint64_t sum = 0, from = 0;
    int status = cow_layout_lacks_open(file->loc, &o.table);

    *rows = NULL;
    *count = *first = 0;
    if (status > 0) {
        if (version == 0 || (status = find_first(&o, version, &from)) == 0) {
            *rows = cli_alloc(o.table->rows - from, sizeof **rows);
            status = cow_layout_lacks_rows(file->loc, o.table, from, o.table->rows - from, &sum, *rows);
        }
        *count = status == 0 ? o.table->rows - from : 0;
        *first = from;
        o.table->close(o.table);
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

int cli_lacks_read(const cli_file *file, cli_lack **rows, size_t *count, char *why, size_t size)
{
    size_t first;

    return cli_lacks_since(file, 0, rows, count, &first, why, size);
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

cow_table *cli_datasets_open(const cli_file *file, char *why, size_t size)
{
    cow_table *table = cow_layout_table_open(file->loc, COW_TABLE_DATASETS, 0, 0);

    if (table == NULL)
        failed(COW_PATH_DATASETS, why, size);
    return table;
}

int cli_datasets_row(cow_table *table, uint64_t row, cli_dataset_row *out, char *why, size_t size)
{
    return cow_layout_rows(table, COW_TABLE_DATASETS, row, 1, out) < 0 ? failed(COW_PATH_DATASETS, why, size) : 0;
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

int cli_snapshots_since(const cli_file *file, uint64_t version, cli_snapshot_row **rows, size_t *count, size_t *first,
                        char *why, size_t size)
{
    ordered o = {file, cow_layout_table_open(file->loc, COW_TABLE_SNAPSHOTS, 0, 0), COW_TABLE_SNAPSHOTS};
    uint64_t from = 0;
    int status = -1;

    *rows = NULL;
    *count = *first = 0;
    if (o.table == NULL)
        return failed(COW_PATH_SNAPSHOTS, why, size);
    if (find_first(&o, version, &from) == 0) {
        *rows = cli_alloc(o.table->rows, sizeof **rows);
        *count = o.table->rows;
        *first = from;
        status = cow_layout_rows(o.table, o.kind, from, *count - from, *rows + from);
    }
    if (status < 0) {
        failed(COW_PATH_SNAPSHOTS, why, size);
        free(*rows);
        *rows = NULL;
        *count = *first = 0;
    }
    o.table->close(o.table);
    return status;
}

/* A chunked dataset that is a head has an index that h5cow made. */
static int chunked_kind(hid_t dataset, uint64_t *number)
{
    hid_t file = H5Iget_file_id(dataset);
    H5O_info2_t info;
    int status = -1;

    if (file >= 0 && H5Oget_info3(dataset, &info, H5O_INFO_BASIC) >= 0)
        status = cow_native_tree_owner(H5VLobject(file), cow_address(&info.token), number);
    if (file >= 0)
        H5Fclose(file);
    return status < 0 ? -1 : status > 0 ? CLI_HEAD : CLI_NATIVE;
}

int cli_source(hid_t dataset, uint64_t *number, bool *marked)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    char name[COW_MARKED_MAX], file[8];
    size_t mappings = 0;
    int kind = CLI_NATIVE;
    bool mark = false;

    if (dcpl < 0)
        return -1;
    if (H5Pget_layout(dcpl) == H5D_CHUNKED)
        kind = chunked_kind(dataset, number);
    else if (H5Pget_layout(dcpl) == H5D_VIRTUAL) {
        if (H5Pget_virtual_count(dcpl, &mappings) < 0)
            kind = -1;
        else if (mappings > 0 && H5Pget_virtual_filename(dcpl, 0, file, sizeof file) == 1 && file[0] == '.') {
            ssize_t n = H5Pget_virtual_dsetname(dcpl, 0, name, sizeof name);
            if (n < 0)
                kind = -1;
            else if ((size_t)n < sizeof name && (mark = cow_layout_unmark(name, number)))
                kind = CLI_VIEW;
            else if ((size_t)n < sizeof name && mappings == 1)
                switch (cow_layout_source(name, number)) {
                case 1:
                    kind = CLI_HEAD;
                    break;
                case 2:
                    kind = CLI_VIEW;
                    break;
                }
        }
    }
    if (marked != NULL)
        *marked = mark;
    H5Pclose(dcpl);
    return kind;
}
