/* The types of rows as they stand in object headers (HDF5 File Format Specification, IV.A.2.d): is a table one of the format's? */
#include "layout/internal.h"

#include "base/bytes.h"
#include "store/lookup.h"

#include <string.h>

const cow_column cow_layout_log_columns[] = {
    {"name", offsetof(cow_layout_log_row, name), COW_COLUMN_TEXT, true},
    {"parent", offsetof(cow_layout_log_row, parent), COW_COLUMN_NUMBER, true},
    {"time", offsetof(cow_layout_log_row, time), COW_COLUMN_NUMBER, true},
    {"user", offsetof(cow_layout_log_row, user), COW_COLUMN_TEXT, false},
    {"host", offsetof(cow_layout_log_row, host), COW_COLUMN_TEXT, false},
    {"program", offsetof(cow_layout_log_row, program), COW_COLUMN_TEXT, false},
    {"hdf5", offsetof(cow_layout_log_row, hdf5), COW_COLUMN_TEXT, false},
    {"h5cow", offsetof(cow_layout_log_row, h5cow), COW_COLUMN_TEXT, false},
    {"message", offsetof(cow_layout_log_row, message), COW_COLUMN_TEXT, false},
    {"added", offsetof(cow_layout_log_row, added), COW_COLUMN_NUMBER, false},
    {"chunks", offsetof(cow_layout_log_row, chunks), COW_COLUMN_NUMBER, false},
    {"changed", offsetof(cow_layout_log_row, changed), COW_COLUMN_NUMBER, false},
    {"open", offsetof(cow_layout_log_row, open), COW_COLUMN_BYTE, false},
};
const size_t cow_layout_log_columns_count = sizeof cow_layout_log_columns / sizeof *cow_layout_log_columns;

/* What is left of a type's message. */
typedef struct message {
    const uint8_t *p;
    size_t left;
} message;

static bool take(message *m, const void *bytes, size_t size)
{
    if (m->left < size || memcmp(m->p, bytes, size) != 0)
        return false;
    m->p += size;
    m->left -= size;
    return true;
}

/* Class and version: those of integers stay as they were, the others have that of the file. */
static bool take_class(message *m, unsigned class, unsigned least)
{
    if (m->left < 1 || (m->p[0] & 15) != class || m->p[0] >> 4 < least || m->p[0] >> 4 > 5)
        return false;
    m->p++;
    m->left--;
    return true;
}

/* An integer of SIZE bytes, little-endian. */
static bool take_signed(message *m, unsigned size, bool has_sign)
{
    const uint8_t rest[] = {has_sign ? 8 : 0, 0, 0, (uint8_t)size, 0, 0, 0, 0, 0, (uint8_t)(8 * size), 0};

    return take_class(m, 0, 1) && take(m, rest, sizeof rest);
}

static bool take_integer(message *m, unsigned size)
{
    return take_signed(m, size, false);
}

/* N of them. */
static bool take_array(message *m, unsigned n, unsigned size)
{
    const uint8_t rest[] = {0, 0, 0, (uint8_t)(n * size), 0, 0, 0, 1, (uint8_t)n, 0, 0, 0};

    return take_class(m, 10, 3) && take(m, rest, sizeof rest) && take_integer(m, size);
}

static bool take_compound(message *m, unsigned members, unsigned size)
{
    const uint8_t rest[] = {(uint8_t)members, 0, 0, (uint8_t)size, 0, 0, 0};

    return take_class(m, 6, 3) && take(m, rest, sizeof rest);
}

/* The name of a member, and where it is, which takes one byte in rows of less than 256. */
static bool take_member(message *m, const char *name, size_t offset)
{
    const uint8_t at = (uint8_t)offset;

    return take(m, name, strlen(name) + 1) && take(m, &at, 1);
}

/* A string of variable length. */
static bool take_text(message *m)
{
    static const uint8_t rest[] = {1, 1, 0, COW_TEXT_STORED, 0, 0, 0};

    return take_class(m, 9, 1) && take(m, rest, sizeof rest) && take_integer(m, 1);
}

size_t cow_column_stored(cow_column_kind kind)
{
    return kind == COW_COLUMN_TEXT ? COW_TEXT_STORED : kind == COW_COLUMN_NUMBER ? 8 : 1;
}

/* As H5Tpack makes it, with all members that there are. */
bool cow_is_log_row(const cow_dataset_header *d, size_t *row_size)
{
    message m = {d->type, d->type_size};
    size_t size = 0, offset = 0;
    bool good;

    for (size_t i = 0; i < cow_layout_log_columns_count; i++)
        size += cow_column_stored(cow_layout_log_columns[i].kind);
    *row_size = size;
    good = size < 256 && take_compound(&m, (unsigned)cow_layout_log_columns_count, (unsigned)size);
    for (size_t i = 0; good && i < cow_layout_log_columns_count; i++) {
        const cow_column *c = &cow_layout_log_columns[i];

        good = take_member(&m, c->name, offset) &&
               (c->kind == COW_COLUMN_TEXT
                    ? take_text(&m)
                    : take_signed(&m, (unsigned)cow_column_stored(c->kind), c->kind == COW_COLUMN_NUMBER));
        offset += cow_column_stored(c->kind);
    }
    return good && m.left == 0;
}

/* Of N unsigned ones of eight bytes. */
static bool is_row_of_numbers(message *m, const char *const names[], size_t n)
{
    bool good = take_compound(m, (unsigned)n, (unsigned)(8 * n));

    for (size_t i = 0; good && i < n; i++)
        good = take_member(m, names[i], 8 * i) && take_integer(m, 8);
    return good && m->left == 0;
}

bool cow_is_row(cow_table_kind kind, unsigned rank, const cow_dataset_header *d)
{
    static const struct {
        const char *name;
        size_t offset;
        unsigned size;
    } dataset[] = {{"head", 0, 8},        {"root", 8, 8},       {"pool", 16, 4}, {"layout", 20, 1},
                   {"alloc_time", 21, 1}, {"fill_time", 22, 1}, {"flags", 23, 1}};
    static const char *const snapshot[] = {"head", "snapshot", "version", "elements", "attributes"},
                             *const found_row[] = {"key", "row"}, *const found_slot[] = {"key", "slot"};
    message m = {d->type, d->type_size};
    bool good;

    switch (kind) {
    case COW_TABLE_INDEX:
        return take_integer(&m, 1) && m.left == 0;
    case COW_TABLE_SNAPSHOTS:
        return is_row_of_numbers(&m, snapshot, sizeof snapshot / sizeof *snapshot);
    case COW_TABLE_SNAPSHOT_ROWS:
        return is_row_of_numbers(&m, found_row, 2);
    case COW_TABLE_HASHES:
        return is_row_of_numbers(&m, found_slot, 2);
    case COW_TABLE_SLOTS:
        return cow_slot_row_size(rank) < 256 && take_compound(&m, 3, (unsigned)cow_slot_row_size(rank)) &&
               take_member(&m, "hash", 0) && take_array(&m, COW_HASH_SIZE, 1) &&
               take_member(&m, "checksum", COW_HASH_SIZE) && take_integer(&m, 8) &&
               take_member(&m, "extent", COW_HASH_SIZE + 8) && take_array(&m, rank, 4) && m.left == 0;
    case COW_TABLE_DATASETS:
        good = take_compound(&m, sizeof dataset / sizeof *dataset, sizeof(cow_layout_dataset_row));
        for (size_t i = 0; good && i < sizeof dataset / sizeof *dataset; i++)
            good = take_member(&m, dataset[i].name, dataset[i].offset) && take_integer(&m, dataset[i].size);
        return good && m.left == 0;
    default:
        return false;
    }
}
