/* Tables that a file which is written has by its bytes (layout/still.h), beside the same ones that HDF5 has opened: each sees what the other did,
 * and what the model of it says. */
#include "base/error.h"
#include "harness.h"
#include "journaled.h"
#include "journal/driver.h"
#include "layout/still.h"
#include "library/library.h"
#include "random.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME     "test_tables.h5"
#define RANK     2
#define ROW_MOST 64

static uint64_t dice;

static uint64_t below(uint64_t n)
{
    return splitmix64(&dice) % n;
}

static const struct {
    cow_table_kind kind;
    unsigned rank;
    const char *name;
} kinds[] = {{COW_TABLE_DATASETS, 0, "datasets"}, {COW_TABLE_SNAPSHOTS, 0, "snapshots"},
             {COW_TABLE_INDEX, 0, "index"},       {COW_TABLE_SNAPSHOT_ROWS, 0, "snapshot_rows"},
             {COW_TABLE_SLOTS, RANK, "slots/0"},  {COW_TABLE_HASHES, 0, "hashes/0"}};
#define KINDS (sizeof kinds / sizeof *kinds)

/* ---- the file ---- */

typedef struct opened {
    hid_t file;
    cow_loc loc;
    unsigned long fileno;
    cow_layout_still *still;
    cow_table *table[KINDS];
    uint64_t log_rows;
} opened;

static void make_group(hid_t file, const char *path)
{
    hid_t group = H5Gcreate2(file, path, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

    assert_true(group >= 0 && H5Gclose(group) >= 0);
}

static void make_file(void)
{
    hid_t fapl = journal_list(), file;
    cow_loc loc;

    remove(NAME);
    assert_true((file = H5Fcreate(NAME, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0);
    loc = (cow_loc){H5VLobject(file), H5I_FILE};
    make_group(file, COW_ROOT);
    make_group(file, COW_PATH_SLOTS);
    make_group(file, COW_PATH_HASHES);
    for (size_t k = 0; k < KINDS; k++) {
        cow_table *table = cow_layout_table_create(loc, kinds[k].kind, 0, kinds[k].rank);

        assert_non_null(table);
        table->close(table);
    }
    assert_int_equal(cow_layout_log_create(loc), 0);
    assert_true(H5Fclose(file) >= 0 && H5Pclose(fapl) >= 0);
}

/* Has HDF5 looked at it? */
static bool met(const opened *o, size_t k)
{
    char path[COW_PATH_MAX];
    H5L_info2_t info;
    uint64_t address;

    snprintf(path, sizeof path, COW_ROOT "/%s", kinds[k].name);
    assert_true(H5Lget_info2(o->file, path, &info, H5P_DEFAULT) >= 0);
    memcpy(&address, &info.u.token, sizeof address);
    return cow_journal_driver_met(o->fileno, address);
}

static void open_file(opened *o, unsigned flags)
{
    hid_t fapl = journal_list();

    assert_true((o->file = H5Fopen(NAME, flags, fapl)) >= 0 && H5Pclose(fapl) >= 0);
    o->loc = (cow_loc){H5VLobject(o->file), H5I_FILE};
    assert_true(H5Fget_fileno(o->file, &o->fileno) >= 0);
    o->still = flags == H5F_ACC_RDWR
                   ? cow_layout_still_open_written(o->loc, cow_journal_driver_of_file(o->fileno), o->fileno)
                   : cow_layout_still_open(o->loc, cow_journal_driver_of_file(o->fileno));
    assert_non_null(o->still);
    for (size_t k = 0; k < KINDS; k++)
        assert_non_null(o->table[k] = cow_layout_still_table(o->still, kinds[k].kind, 0, kinds[k].rank));
    if (!cow_layout_still_log_rows(o->still, &o->log_rows))
        assert_int_equal(cow_layout_log_rows(o->loc, &o->log_rows), 0);
    cow_layout_still_settle(o->still);
}

static void close_file(opened *o)
{
    for (size_t k = 0; k < KINDS; k++)
        o->table[k]->close(o->table[k]);
    cow_layout_still_close(o->still);
    assert_true(H5Fclose(o->file) >= 0);
}

/* ---- rows ---- */

static void compare(cow_table *table, cow_table *model, const char *what, const char *name)
{
    const size_t size = table->row_size;
    uint8_t *have, *want;

    if (table->rows != model->rows || size != model->row_size)
        fail_msg("%s: %s has %llu rows, not %llu", name, what, (unsigned long long)table->rows,
                 (unsigned long long)model->rows);
    have = malloc((size_t)table->rows * size + 1);
    want = malloc((size_t)table->rows * size + 1);
    assert_true(have != NULL && want != NULL && table->read(table, 0, table->rows, have) == 0 &&
                model->read(model, 0, model->rows, want) == 0);
    for (uint64_t i = 0; i < table->rows; i++)
        if (memcmp(have + i * size, want + i * size, size) != 0)
            fail_msg("%s: %s has another row %llu", name, what, (unsigned long long)i);
    free(have);
    free(want);
}

static void change_table(cow_table *table, cow_table *model)
{
    static uint8_t bytes[400 * ROW_MOST];
    uint64_t count = 1 + below(below(4) == 0 ? 300 : 5), first;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(1 + below(255));
    if (below(12) == 0) {
        const uint64_t rows = table->rows - below(table->rows < 9 ? table->rows + 1 : 9);

        assert_true(table->resize(table, rows) == 0 && model->resize(model, rows) == 0);
    } else if (table->rows > 0 && below(2) == 0) {
        first = below(table->rows);
        count = count < table->rows - first ? count : table->rows - first;
        assert_true(table->write(table, first, count, bytes) == 0 && model->write(model, first, count, bytes) == 0);
    } else
        assert_true(cow_table_append(table, count, bytes, NULL) == 0 &&
                    cow_table_append(model, count, bytes, NULL) == 0);
}

/* By HDF5, beside the other. */
static void look_by_hdf5(const opened *o, size_t k, cow_table *model, bool change)
{
    cow_table *table = cow_layout_table_open(o->loc, kinds[k].kind, 0, kinds[k].rank);

    assert_non_null(table);
    compare(table, model, "HDF5", kinds[k].name);
    if (change && table->rows > 0) {
        uint8_t row[ROW_MOST];
        const uint64_t at = below(table->rows);

        for (size_t i = 0; i < sizeof row; i++)
            row[i] = (uint8_t)(1 + below(255));
        assert_true(table->write(table, at, 1, row) == 0 && model->write(model, at, 1, row) == 0);
    }
    table->close(table);
}

static void test_tables_are_the_same_by_bytes_and_by_hdf5(void **state)
{
    enum { ROUNDS = 150, STEPS = 18 };
    cow_table *model[KINDS];
    unsigned by_bytes = 0, by_both = 0;
    void *context = NULL;
    opened o;
    (void)state;

    assert_true(cow_library_enter(&context) >= 0); /* as in the connector's functions */
    make_file();
    for (size_t k = 0; k < KINDS; k++)
        model[k] = NULL;
    for (int round = 0; round < ROUNDS; round++) {
        const bool others = below(3) == 0; /* HDF5 opens tables as well */

        open_file(&o, H5F_ACC_RDWR);
        for (size_t k = 0; k < KINDS; k++) {
            if (model[k] == NULL)
                model[k] = cow_table_memory(o.table[k]->row_size);
            assert_true(model[k] != NULL && model[k]->row_size <= ROW_MOST);
        }
        for (int step = 0; step < STEPS; step++) {
            const size_t k = below(KINDS);

            switch (below(others ? 6 : 4)) {
            case 0:
                compare(o.table[k], model[k], "the table", kinds[k].name);
                break;
            case 1:
            case 2:
                change_table(o.table[k], model[k]);
                break;
            case 3:
                if (below(4) == 0)
                    assert_true(H5Fflush(o.file, H5F_SCOPE_GLOBAL) >= 0);
                break;
            default:
                look_by_hdf5(&o, k, model[k], below(2) == 0);
            }
        }
        for (size_t k = 0; k < KINDS; k++) {
            by_bytes += !met(&o, k);
            by_both += met(&o, k);
            compare(o.table[k], model[k], "the table", kinds[k].name);
        }
        close_file(&o);
        open_file(&o, H5F_ACC_RDONLY);
        for (size_t k = 0; k < KINDS; k++) {
            compare(o.table[k], model[k], "the table of a reader", kinds[k].name);
            look_by_hdf5(&o, k, model[k], false);
        }
        close_file(&o);
    }
    assert_true(by_bytes > ROUNDS / 2 && by_both > ROUNDS / 2);
    for (size_t k = 0; k < KINDS; k++)
        model[k]->close(model[k]);
    assert_true(cow_library_leave(context) >= 0);
}

/* ---- the log ---- */

enum { LOG_ROWS = 400, TEXTS = 7 };
static char *texts[LOG_ROWS][TEXTS]; /* as they were written; NULL: none */
static cow_layout_log_row numbers[LOG_ROWS];

static char **text_of(cow_layout_log_row *row, int k)
{
    char **const at[TEXTS] = {&row->name, &row->user,  &row->host,   &row->program,
                              &row->hdf5, &row->h5cow, &row->message};

    return at[k];
}

static char *random_text(void)
{
    static const char *const letters[] = {"a", "Z", " ", "\xc3\xa9", "7", "/"};
    const size_t length = below(3) == 0 ? 0 : below(20) == 0 ? below(6000) : below(40);
    char *text = calloc(2 * length + 1, 1);

    assert_non_null(text);
    for (size_t i = 0; i < length; i++)
        strcat(text, letters[below(COUNT(letters))]);
    return text;
}

static cow_layout_log_row random_row(int at)
{
    cow_layout_log_row row = {.parent = (int64_t)below(UINT64_MAX),
                              .time = -(int64_t)below(1000),
                              .added = (int64_t)below(99),
                              .chunks = 5,
                              .changed = (int64_t)below(7),
                              .open = (uint8_t)below(3)};

    for (int k = 0; k < TEXTS; k++) {
        free(texts[at][k]);
        texts[at][k] = below(5) == 0 ? NULL : random_text();
        *text_of(&row, k) = texts[at][k];
    }
    numbers[at] = row;
    return row;
}

static void compare_rows(cow_layout_log_row *row, int first, int count)
{
    for (int i = 0; i < count; i++) {
        const cow_layout_log_row *n = &numbers[first + i];

        for (int k = 0; k < TEXTS; k++) {
            const char *want = texts[first + i][k], *have = *text_of(&row[i], k);

            if (want == NULL || *want == 0 ? have != NULL : have == NULL || strcmp(want, have) != 0)
                fail_msg("row %d, text %d: '%s' is not '%s'", first + i, k, have == NULL ? "none" : have, want);
        }
        assert_true(row[i].parent == n->parent && row[i].time == n->time && row[i].added == n->added &&
                    row[i].chunks == n->chunks && row[i].changed == n->changed && row[i].open == n->open);
        cow_layout_log_row_free(&row[i]);
    }
}

static bool log_met(const opened *o)
{
    H5L_info2_t info;
    uint64_t address;

    assert_true(H5Lget_info2(o->file, COW_PATH_LOG, &info, H5P_DEFAULT) >= 0);
    memcpy(&address, &info.u.token, sizeof address);
    return cow_journal_driver_met(o->fileno, address);
}

static void test_the_log_is_the_same_by_bytes_and_by_hdf5(void **state)
{
    static const char *const members[] = {"name", "program", "h5cow", NULL};
    static cow_layout_log_row read[LOG_ROWS];
    int rows = 0, by_bytes = 0, by_both = 0;
    void *context = NULL;
    (void)state;

    assert_true(cow_library_enter(&context) >= 0);
    make_file();
    while (rows < LOG_ROWS - 10) {
        const bool quiet = below(2) == 0, looked_at = !quiet && below(2) == 0; /* HDF5 has it open as well */
        cow_layout_log *log;
        opened o;

        open_file(&o, H5F_ACC_RDWR);
        assert_int_equal(o.log_rows, rows);
        for (uint64_t commits = 1 + below(3); commits > 0; commits--) {
            cow_layout_log_row row;

            assert_non_null(log = cow_layout_log_open(o.loc, o.still));
            assert_int_equal(cow_layout_log_meet(log, members), 0);
            if (looked_at && rows > 0) {
                const int first = (int)below((uint64_t)rows);

                assert_int_equal(cow_layout_log_read_many(o.loc, (uint64_t)first, (uint64_t)(rows - first), NULL, read),
                                 0);
                compare_rows(read, first, rows - first);
            }
            row = random_row(rows);
            assert_int_equal(cow_layout_log_put(log, (uint64_t)rows++, &row), 0);
            if (!quiet && below(4) == 0) { /* amended */
                row = random_row(rows - 1);
                assert_int_equal(cow_layout_log_put(log, (uint64_t)rows - 1, &row), 0);
            }
            if (!quiet && below(3) == 0) {
                assert_int_equal(cow_layout_log_take(log, (uint64_t)rows - 1, 1, NULL, read), 0);
                compare_rows(read, rows - 1, 1);
            }
            cow_layout_log_close(log);
            if (!quiet && below(8) == 0)
                assert_int_equal(cow_layout_log_trim(o.loc, (uint64_t)--rows), 0);
            if (below(2) == 0)
                assert_true(H5Fflush(o.file, H5F_SCOPE_GLOBAL) >= 0);
        }
        by_bytes += !log_met(&o);
        by_both += log_met(&o);
        close_file(&o);
        open_file(&o, H5F_ACC_RDONLY);
        assert_int_equal(cow_layout_log_read_many(o.loc, 0, (uint64_t)rows, NULL, read), 0);
        compare_rows(read, 0, rows);
        close_file(&o);
    }
    during("%d by bytes, %d by both", by_bytes, by_both);
    assert_true(by_bytes > 20 && by_both > 20);
    assert_true(cow_library_leave(context) >= 0);
}

static int begin(void **state)
{
    (void)state;
    dice = test_seed();
    return 0;
}

/* ---- where views are ---- */

static void path_tells(const char *path, int kind, uint64_t number)
{
    uint64_t told = 77;

    assert_int_equal(cow_layout_source(path, &told), kind);
    if (kind > 0)
        assert_int_equal(told, number);
}

static void test_paths_of_views(void **state)
{
    const uint64_t offsets[] = {0, 1, 9, 10, 255, 4095, 4096, 4097, 1000000, UINT32_MAX, UINT64_MAX - 1},
                   parts[] = {0, COW_VIEWS_PART, 4 * COW_VIEWS_PART, COW_NO_PARTS};
    char path[COW_PATH_MAX];
    uint64_t begin;

    (void)state;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            cow_layout_view_path(path, parts[k], offsets[i]);
            path_tells(path, 2, offsets[i]);
            cow_layout_part_path(path, offsets[i]);
            assert_true(cow_layout_part_name(strrchr(path, '/') + 1, &begin));
            assert_int_equal(begin, offsets[i] / COW_VIEWS_PART * COW_VIEWS_PART);
        }
    path_tells(COW_PATH_HEADS "/120", 1, 120);
    for (const char *const *bad = (const char *const[]){"", "/", "/p", "/p1", "/p1/", "/p/1", "/p01/1", "/p1/1000",
                                                        "/p1/01", "/p1/1/1", "/P1/1", "/1G", "/01", "/ 1", "/+1",
                                                        "/0x1", "/p10000000000000/1", "/10000000000000000", NULL};
         *bad != NULL; bad++) {
        snprintf(path, sizeof path, COW_PATH_VIEWS "%s", *bad);
        path_tells(path, 0, 0);
    }
    path_tells(COW_PATH_HEADS "/", 0, 0);
    path_tells(COW_PATH_HEADS "/1a", 0, 0);
    path_tells(COW_PATH_HEADS "/18446744073709551616", 0, 0);
    path_tells(COW_PATH_RAW "/1", 0, 0);
    path_tells("/data/views/1", 0, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tables_are_the_same_by_bytes_and_by_hdf5),
                                       cmocka_unit_test(test_the_log_is_the_same_by_bytes_and_by_hdf5),
                                       cmocka_unit_test(test_paths_of_views)};

    return test_main(tests, argc, argv, begin, NULL);
}
