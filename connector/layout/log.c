/* The log of versions: rows of numbers and texts, read by the names of their members. See layout.h.
 *
 * Members that are not known do no harm, and a log that lacks one reads as zero or no text there: later versions of h5cow
 * add members.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "layout/internal.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdlib.h>
#include <string.h>

#define LOG     COW_PATH_LOG
#define BATCH   64 /* rows read together */
#define COLUMNS cow_layout_log_columns_count

/* ---- types ---- */

static hid_t text_type(void)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    if (type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        return type;
    cow_close(type);
    return H5I_INVALID_HID;
}

static bool wanted(const cow_column *c, const char *const texts[])
{
    if (texts == NULL)
        return true;
    while (*texts != NULL && strcmp(*texts, c->name) != 0)
        texts++;
    return *texts != NULL;
}

/* A row in memory, of the members in NAMES only (NULL: of all). */
static hid_t row_in_memory(const char *const names[])
{
    hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cow_layout_log_row)), string = text_type();
    bool bad = type < 0 || string < 0;

    for (const cow_column *c = cow_layout_log_columns; !bad && c < cow_layout_log_columns + COLUMNS; c++)
        if (wanted(c, names))
            bad = H5Tinsert(type, c->name, c->offset,
                            c->kind == COW_COLUMN_TEXT     ? string
                            : c->kind == COW_COLUMN_NUMBER ? H5T_NATIVE_INT64
                                                           : H5T_NATIVE_UINT8) < 0;
    cow_close(string);
    if (!bad)
        return type;
    cow_error_native("cannot describe the log of versions");
    cow_close(type);
    return H5I_INVALID_HID;
}

/* NULL: the rows have what the format says. */
static const char *wrong_member(hid_t row, const cow_column *c)
{
    int index = H5Tget_member_index(row, c->name);
    hid_t member;
    bool good;

    if (index < 0)
        return c->required ? c->name : NULL;
    member = H5Tget_member_type(row, (unsigned)index);
    good = c->kind == COW_COLUMN_TEXT
               ? H5Tget_class(member) == H5T_STRING && H5Tis_variable_str(member) > 0
               : H5Tget_class(member) == H5T_INTEGER && H5Tget_size(member) == (c->kind == COW_COLUMN_BYTE ? 1 : 8);
    cow_close(member);
    return good ? NULL : c->name;
}

/* ---- opening ---- */

struct cow_layout_log {
    cow_loc file;
    cow_still_log *bytes; /* NULL: it is not known by them, or no longer */
    size_t bytes_row;     /* of a row there */
    void *dataset;        /* NULL: it was not needed */
    hid_t type;           /* of a row */
    size_t size;          /* of a row in the file */
    uint64_t rows;
};
typedef cow_layout_log log;

static void log_close(log *l)
{
    cow_still_log_close(l->bytes);
    cow_close(l->type);
    if (l->dataset != NULL && cow_native_dataset_close(l->dataset) < 0)
        cow_error_clear(); /* nothing was written through it that is not stored */
}

static int log_extent(log *l, size_t size)
{
    hid_t space = cow_native_dataset_space(l->dataset);
    hsize_t rows;
    bool list = space >= 0 && H5Sget_simple_extent_type(space) == H5S_SIMPLE &&
                H5Sget_simple_extent_ndims(space) == 1 && H5Sget_simple_extent_dims(space, &rows, NULL) == 1;

    cow_close(space);
    if (!list)
        return cow_error(COW_CORRUPT, "'%s' is not a list of versions; try: h5cow recover", LOG);
    l->rows = rows;
    return cow_layout_room(l->file, LOG, rows, size);
}

static int log_open(cow_loc file, log *l)
{
    *l = (log){.file = file, .type = H5I_INVALID_HID};
    if (cow_layout_hard(file, LOG) < 0 || (l->dataset = cow_native_dataset_open(file, LOG)) == NULL ||
        (l->type = cow_native_dataset_type(l->dataset)) < 0 ||
        cow_native_element_size(file.object, l->type, &l->size) < 0)
        return -1;
    if (H5Tget_class(l->type) != H5T_COMPOUND)
        return cow_error(COW_CORRUPT, "'%s' is not a list of versions; try: h5cow recover", LOG);
    return log_extent(l, l->size);
}

/* Asked before a row is read or written. */
static int check_log(const log *l)
{
    const char *wrong = NULL;

    H5E_BEGIN_TRY
    {
        for (size_t i = 0; wrong == NULL && i < COLUMNS; i++)
            wrong = wrong_member(l->type, &cow_layout_log_columns[i]);
    }
    H5E_END_TRY
    if (wrong != NULL)
        return cow_error(COW_CORRUPT, "'%s' has no member '%s' as the format knows it; try: h5cow recover", LOG, wrong);
    return cow_layout_stored(l->dataset, l->size);
}

int cow_layout_log_create(cow_loc file)
{
    hid_t memory = row_in_memory(NULL), type = H5I_INVALID_HID;
    cow_table *table = NULL;
    int status = -1;

    if (memory < 0)
        goto done;
    /* on disk without the padding of the structure in memory */
    if ((type = H5Tcopy(memory)) < 0 || H5Tpack(type) < 0) {
        cow_error_native("cannot describe the log of versions");
        goto done;
    }
    if ((table = cow_native_table_create(file, LOG, type, 2048, true)) != NULL) {
        table->close(table);
        status = 0;
    }
done:
    cow_close(type, memory);
    return status;
}

/* Each opening for writing asks this, and types take time: they are compared when a row is read or written. */
int cow_layout_log_rows(cow_loc file, uint64_t *rows)
{
    log l = {.file = file, .type = H5I_INVALID_HID};
    int status = -1;

    if (cow_layout_hard(file, LOG) == 0 && (l.dataset = cow_native_dataset_open(file, LOG)) != NULL)
        status = log_extent(&l, COW_LEAST_LOG_ROW);
    *rows = l.rows;
    log_close(&l);
    return status;
}

/* ---- reading ---- */

static int select_rows(uint64_t rows, uint64_t first, uint64_t count, hid_t *memory, hid_t *space)
{
    hsize_t extent = rows, start = first, n = count;

    if ((*memory = H5Screate_simple(1, &n, NULL)) < 0 || (*space = H5Screate_simple(1, &extent, NULL)) < 0 ||
        H5Sselect_hyperslab(*space, H5S_SELECT_SET, &start, NULL, &n, NULL) < 0)
        return cow_error_native("cannot select rows of the log");
    return 0;
}

/* A transfer by another list than ours takes place apart: native/native.c. */
typedef struct few_rows {
    hid_t dxpl; /* H5P_DEFAULT: as ever */
    cow_apart apart;
} few_rows;

static int few_begin(few_rows *few, const log *l)
{
    few->dxpl = l->size > COW_FEW_BYTES / 2 ? H5P_DEFAULT : cow_native_few_rows();
    if (few->dxpl == H5P_DEFAULT)
        return 0;
    return few->dxpl < 0 ? -1 : cow_native_apart(&few->apart);
}

static void few_end(few_rows *few)
{
    if (few->dxpl != H5P_DEFAULT)
        cow_native_together(&few->apart);
}

static int read_batch(const log *l, hid_t type, uint64_t first, uint64_t count, uint64_t *sum, cow_layout_log_row *out)
{
    hid_t memory = H5I_INVALID_HID, space = H5I_INVALID_HID;
    few_rows few;
    int status = -1;

    if (cow_layout_texts(l->file, l->dataset, LOG, first, count, sum) == 0 &&
        select_rows(l->rows, first, count, &memory, &space) == 0 && few_begin(&few, l) == 0) {
        status = cow_native_dataset_read(l->dataset, type, memory, space, few.dxpl, out);
        few_end(&few);
    }
    cow_close(memory, space);
    return status;
}

static int read_rows(const log *l, uint64_t first, uint64_t count, const char *const members[], cow_layout_log_row *out)
{
    hid_t type = H5I_INVALID_HID;
    uint64_t sum = 0;
    int status = -1;

    memset(out, 0, count * sizeof *out);
    if (first > l->rows || count > l->rows - first)
        cow_error(COW_CORRUPT, "row %llu is asked of a log of %llu versions", (unsigned long long)first,
                  (unsigned long long)l->rows);
    else if ((type = row_in_memory(members)) >= 0)
        status = 0;
    for (uint64_t at = 0, n; status == 0 && at < count; at += n) {
        n = count - at < BATCH ? count - at : BATCH;
        status = read_batch(l, type, first + at, n, &sum, out + at);
    }
    for (uint64_t i = 0; status < 0 && i < count; i++)
        cow_layout_log_row_free(&out[i]);
    cow_close(type);
    return status;
}

int cow_layout_log_read_many(cow_loc file, uint64_t first, uint64_t count, const char *const members[],
                             cow_layout_log_row *out)
{
    log l;
    int status = log_open(file, &l) < 0 || check_log(&l) < 0 ? -1 : read_rows(&l, first, count, members, out);

    if (status < 0)
        memset(out, 0, count * sizeof *out);
    log_close(&l);
    return status;
}

int cow_layout_log_read(cow_loc file, uint64_t row, cow_layout_log_row *out)
{
    return cow_layout_log_read_many(file, row, 1, NULL, out);
}

/* An empty text would take a place in a heap, and none takes nothing; to readers they are the same. */
static cow_layout_log_row without_empty_texts(const cow_layout_log_row *in)
{
    cow_layout_log_row row = *in;

    for (const cow_column *c = cow_layout_log_columns; c < cow_layout_log_columns + COLUMNS; c++)
        if (c->kind == COW_COLUMN_TEXT) {
            char **text = (char **)((char *)&row + c->offset);
            if (*text != NULL && **text == '\0')
                *text = NULL;
        }
    return row;
}

static int write_row(log *l, uint64_t row, const char *const members[], const cow_layout_log_row *in)
{
    const cow_layout_log_row bare = without_empty_texts(in);
    hid_t type = H5I_INVALID_HID, memory = H5I_INVALID_HID, space = H5I_INVALID_HID;
    few_rows few;
    int status = -1;

    if (row > l->rows) {
        cow_error(COW_CORRUPT, "row %llu is asked of a log of %llu versions", (unsigned long long)row,
                  (unsigned long long)l->rows);
        goto done;
    }
    if ((type = row_in_memory(members)) < 0)
        goto done;
    if (row == l->rows) {
        hsize_t extent = ++l->rows;
        if (cow_native_dataset_resize(l->dataset, &extent) < 0)
            goto done;
    }
    if (select_rows(l->rows, row, 1, &memory, &space) == 0 && few_begin(&few, l) == 0) {
        status = cow_native_dataset_write(l->dataset, type, memory, space, few.dxpl, &bare);
        few_end(&few);
    }
done:
    cow_close(space, memory, type);
    return status;
}

int cow_layout_log_write(cow_loc file, uint64_t row, const cow_layout_log_row *in)
{
    log l;
    int status = log_open(file, &l) < 0 || check_log(&l) < 0 ? -1 : write_row(&l, row, NULL, in);

    log_close(&l);
    return status;
}

/* ---- one that stays open ---- */

/* From now on by HDF5. */
static int look_by_hdf5(log *l)
{
    if (l->dataset != NULL)
        return 0;
    cow_still_log_close(l->bytes);
    if (log_open(l->file, l) == 0 && check_log(l) == 0)
        return 0;
    log_close(l);
    *l = (log){.file = l->file, .type = H5I_INVALID_HID};
    return -1;
}

cow_layout_log *cow_layout_log_open(cow_loc file, const cow_layout_still *still)
{
    log *l = malloc(sizeof *l);

    if (l == NULL) {
        cow_error(COW_MEMORY, "no memory for the log of versions");
        return NULL;
    }
    *l = (log){.file = file, .type = H5I_INVALID_HID};
    if ((l->bytes = cow_still_log_open(still, &l->bytes_row)) != NULL || look_by_hdf5(l) == 0)
        return l;
    cow_layout_log_close(l);
    return NULL;
}

void cow_layout_log_close(cow_layout_log *l)
{
    if (l == NULL)
        return;
    log_close(l);
    free(l);
}

int cow_layout_log_take(cow_layout_log *l, uint64_t first, uint64_t count, const char *const members[],
                        cow_layout_log_row *out)
{
    return look_by_hdf5(l) < 0 ? -1 : read_rows(l, first, count, members, out);
}

/* TEXT goes into a heap of HDF5's; AT: what the row has of it. */
static int put_text(const log *l, const char *text, uint8_t at[COW_TEXT_STORED])
{
    const size_t size = text == NULL ? 0 : strlen(text);

    memset(at, 0, COW_TEXT_STORED);
    if (size == 0)
        return 0;
    if (size > UINT32_MAX)
        return cow_error(COW_USAGE, "a text of a version is too long");
    cow_put32(at, (uint32_t)size);
    return H5VLblob_put(l->file.object, cow_native_id(), text, size, at + 4, NULL) < 0
               ? cow_error_native("cannot write the row of a version")
               : 0;
}

/* A new row. 1; 0: HDF5 is to write it; -1. */
static int append_bytes(log *l, uint64_t row, const cow_layout_log_row *in)
{
    uint8_t bytes[256];
    uint8_t *p = bytes + l->bytes_row;

    if (l->bytes == NULL || l->bytes_row > sizeof bytes || row != cow_still_log_rows(l->bytes) ||
        !cow_still_log_room(l->bytes))
        return 0;
    for (size_t i = COLUMNS; i-- > 0;) { /* as HDF5: from the last member to the first */
        const cow_column *c = &cow_layout_log_columns[i];
        const char *from = (const char *)in + c->offset;
        int64_t number;
        const char *text;

        p -= cow_column_stored(c->kind);
        switch (c->kind) {
        case COW_COLUMN_TEXT:
            memcpy(&text, from, sizeof text);
            if (put_text(l, text, p) < 0)
                return -1;
            break;
        case COW_COLUMN_NUMBER:
            memcpy(&number, from, sizeof number);
            cow_put64(p, (uint64_t)number);
            break;
        case COW_COLUMN_BYTE:
            *p = *(const uint8_t *)from;
        }
    }
    return cow_still_log_append(l->bytes, bytes);
}

int cow_layout_log_put(cow_layout_log *l, uint64_t row, const cow_layout_log_row *in)
{
    const int status = append_bytes(l, row, in);

    if (status != 0)
        return status < 0 ? -1 : 0;
    return look_by_hdf5(l) < 0 ? -1 : write_row(l, row, NULL, in);
}

/* HDF5 reads an object of the heap at AT, of a row, into its memory. */
static int meet_text(const log *l, const uint8_t at[COW_TEXT_STORED])
{
    const uint32_t size = cow_get32(at);
    char some[256], *text = size <= sizeof some ? some : malloc(size);
    herr_t status = -1;

    if (text == NULL)
        return cow_error(COW_MEMORY, "no memory for a text of a version");
    H5E_BEGIN_TRY
    {
        status = H5VLblob_get(l->file.object, cow_native_id(), at + 4, text, size, NULL);
    }
    H5E_END_TRY
    if (text != some)
        free(text);
    return status < 0 ? -1 : 0;
}

/* Each heap once. 1; 0: HDF5 is to look, and has the last word on what is wrong. */
static int meet_by_bytes(log *l, const char *const members[])
{
    enum { MOST_TEXT = 1 << 16, MOST = 8 };
    uint64_t met[MOST];
    uint64_t row = l->bytes == NULL ? 0 : cow_still_log_rows(l->bytes);
    const uint64_t end = row < COW_LOG_MEET_MOST ? 0 : row - COW_LOG_MEET_MOST;
    size_t count = 0;

    if (l->bytes == NULL)
        return 0;
    while (row > end) {
        uint8_t bytes[256];
        size_t at = 0;

        if (l->bytes_row > sizeof bytes || !cow_still_log_get(l->bytes, --row, bytes))
            return 0;
        for (size_t i = 0; i < COLUMNS; i++) {
            const cow_column *c = &cow_layout_log_columns[i];
            const uint64_t heap = cow_get64(bytes + at + 4);
            size_t k = 0;

            if (c->kind == COW_COLUMN_TEXT && wanted(c, members) && cow_get32(bytes + at) > 0) {
                while (k < count && met[k] != heap)
                    k++;
                if (k == MOST || cow_get32(bytes + at) > MOST_TEXT || (k == count && meet_text(l, bytes + at) < 0))
                    return 0;
                if (k == count)
                    met[count++] = heap;
            }
            at += cow_column_stored(c->kind);
        }
    }
    return 1;
}

int cow_layout_log_meet(cow_layout_log *l, const char *const members[])
{
    cow_layout_log_row row[COW_LOG_MEET_MOST] = {0};
    uint64_t rows;
    int status;

    if (meet_by_bytes(l, members) > 0)
        return 0;
    cow_error_clear();
    if (look_by_hdf5(l) < 0)
        return -1;
    rows = l->rows < COW_LOG_MEET_MOST ? l->rows : COW_LOG_MEET_MOST;
    status = rows == 0 ? 0 : read_rows(l, l->rows - rows, rows, members, row);
    for (uint64_t i = 0; i < rows; i++)
        cow_layout_log_row_free(&row[i]);
    return status;
}

int cow_layout_log_put_some(cow_layout_log *l, uint64_t row, const char *const members[], const cow_layout_log_row *in)
{
    return look_by_hdf5(l) < 0 ? -1 : write_row(l, row, members, in);
}

void cow_layout_log_row_free(cow_layout_log_row *row)
{
    for (size_t i = 0; i < COLUMNS; i++)
        if (cow_layout_log_columns[i].kind == COW_COLUMN_TEXT) {
            char **text = (char **)((char *)row + cow_layout_log_columns[i].offset);
            H5free_memory(*text);
            *text = NULL;
        }
}

int cow_layout_log_trim(cow_loc file, uint64_t rows)
{
    log l;
    hsize_t extent = rows;
    int status = log_open(file, &l);

    if (status == 0 && l.rows > rows)
        status = check_log(&l) < 0 ? -1 : cow_native_dataset_resize(l.dataset, &extent);
    log_close(&l);
    return status;
}
