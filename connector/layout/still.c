/* Tables and pools of a file that stays as it is, from its bytes: see still.h. */
#include "layout/still.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "journal/driver.h"
#include "layout/internal.h"
#include "native/chunk_index.h"
#include "store/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATASETS, SNAPSHOTS, SNAPSHOT_ROWS, INDEX, LOG, SLOTS, HASHES, RAW, PLACES };

struct cow_layout_still {
    cow_loc file;
    cow_still *still;
    cow_journal *journal;   /* of a file that is written; else NULL */
    unsigned long fileno;   /* the same */
    bool settled;
    uint64_t group;         /* the address of /_versioned_data */
    uint64_t place[PLACES]; /* and those of what is in it; UINT64_MAX: not known */
};

#define ROOT_AT 36 /* of the superblock, where the address of the root group is */

/* Where PATH leads, whose last link is in the GROUP at that address. HDF5 looks where the group has so many links that they are in a heap, but
 * not in a file that is written: it may know of an object there whose bytes are not written yet. */
static bool find(const cow_layout_still *s, uint64_t group, const char *path, uint64_t *address)
{
    const char *const names[] = {strrchr(path, '/') + 1};
    H5L_info2_t info;
    uint8_t token[8];

    if (cow_described_links(cow_still_source(s->still), group, false, 1, names, address) > 0)
        return *address != UINT64_MAX;
    if (s->settled || cow_native_link_info(s->file, path, &info) < 0) {
        cow_error_clear();
        return false;
    }
    memcpy(token, &info.u.token, sizeof token);
    *address = cow_get64(token);
    return info.type == H5L_TYPE_HARD;
}

/* The address of /_versioned_data. */
static bool find_group(const cow_layout_still *s, uint64_t *group)
{
    uint8_t root[8];

    return cow_source_bring(cow_still_source(s->still), ROOT_AT, root, sizeof root) > 0 &&
           find(s, cow_get64(root), COW_ROOT, group);
}

/* STILL, which may be NULL, is taken over. */
static cow_layout_still *make(cow_loc file, cow_still *still)
{
    cow_layout_still *s = still == NULL ? NULL : malloc(sizeof *s);

    if (s == NULL) {
        cow_still_close(still);
        return NULL;
    }
    *s = (cow_layout_still){.file = file, .still = still};
    return s;
}

/* Where all that is; and what is there, at first, is what the bytes say. */
static bool find_places(cow_layout_still *s)
{
    static const char *const names[PLACES] = {"datasets", "snapshots", "snapshot_rows", "index",
                                              "log",      "slots",     "hashes",        "raw"};

    if (find_group(s, &s->group) &&
        cow_described_links(cow_still_source(s->still), s->group, true, PLACES, names, s->place) > 0)
        return true;
    cow_error_clear();
    for (size_t i = 0; i < PLACES; i++)
        s->place[i] = UINT64_MAX;
    return false;
}

cow_layout_still *cow_layout_still_open(cow_loc file, cow_journal *journal)
{
    cow_layout_still *s = make(file, cow_still_open(journal));

    if (s != NULL && !find_places(s)) {
        cow_layout_still_close(s);
        return NULL;
    }
    return s;
}

cow_layout_still *cow_layout_still_open_written(cow_loc file, cow_journal *journal, unsigned long fileno)
{
    cow_layout_still *s = make(file, cow_still_open_written(journal));

    if (s != NULL) {
        s->journal = journal;
        s->fileno = fileno;
        find_places(s);
    }
    return s;
}

void cow_layout_still_settle(cow_layout_still *still)
{
    if (still != NULL)
        still->settled = true;
}

/* Do the bytes at ADDRESS, a table's that was committed, say what HDF5 has? It reads the header of what it deletes, too. */
static bool current(const cow_layout_still *s, uint64_t address)
{
    return s->journal == NULL || !cow_journal_driver_met(s->fileno, address);
}

void cow_layout_still_close(cow_layout_still *still)
{
    if (still == NULL)
        return;
    cow_still_close(still->still);
    free(still);
}

const cow_still *cow_layout_still_bytes(const cow_layout_still *still)
{
    return still->still;
}

/* An attribute of one unsigned integer of four bytes: a message of version 3, behind its flags the sizes of name, type and space, and
 * which characters the name has. */
static int look_for_format(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    static const uint8_t type[] = {0x10, 0, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0}, scalar[] = {2, 0, 0, 0};
    const size_t name = sizeof COW_FORMAT_NAME, all = 9 + name + sizeof type + sizeof scalar + 4;
    const uint8_t *body = message + prefix, *p = body + 9;

    if (message[0] != COW_MESSAGE_ATTRIBUTE || message[3] & COW_MESSAGE_SHARED || length < all || body[0] != 3 || body[1] != 0 ||
        cow_get16(body + 2) != name || cow_get16(body + 4) != sizeof type || cow_get16(body + 6) != sizeof scalar ||
        memcmp(p, COW_FORMAT_NAME, name) != 0 || memcmp(p + name, type, sizeof type) != 0 ||
        memcmp(p + name + sizeof type, scalar, sizeof scalar) != 0)
        return 1;
    *(uint32_t *)context = cow_get32(body + all - 4);
    return 1;
}

bool cow_layout_still_format(const cow_layout_still *still, uint32_t *format)
{
    const cow_source *source = cow_still_source(still->still);
    cow_header header;
    bool known;

    *format = 0;
    known = cow_header_begin(source, still->group, &header) > 0 &&
            cow_header_messages(source, &header, look_for_format, format) > 0;
    cow_header_free(&header);
    return known && *format != 0;
}

bool cow_layout_still_has(cow_loc file, cow_journal *journal)
{
    cow_layout_still s = {.file = file, .still = cow_still_open(journal)};
    uint32_t format;
    bool has;

    if (s.still == NULL) /* a history that was committed stays */
        s.still = cow_still_open_written(journal);
    has = s.still != NULL && find_group(&s, &s.group) && cow_layout_still_format(&s, &format);
    cow_error_clear();
    cow_still_close(s.still);
    return has;
}

bool cow_layout_still_index(const cow_layout_still *still, uint64_t *address)
{
    *address = still->place[INDEX];
    return *address != UINT64_MAX;
}

bool cow_layout_still_raw(const cow_layout_still *still, uint32_t pool, cow_described *raw)
{
    char path[COW_PATH_MAX];
    uint64_t address;

    cow_layout_raw_path(path, pool);
    return find(still, still->place[RAW], path, &address) && cow_described_read(cow_still_source(still->still), address, raw) > 0 &&
           raw->layout == COW_DESCRIBED_CHUNKED;
}

int cow_layout_still_shape(const cow_described *d, size_t element_size, cow_raw *raw)
{
    *raw = (cow_raw){.rank = d->rank, .element_size = element_size, .chunk_bytes = element_size};
    if (d->rank < 1 || d->rank > COW_MAX_RANK || d->element_size != element_size)
        return -1;
    for (unsigned k = 0; k < d->rank; k++) {
        raw->chunk[k] = d->chunk[k];
        if ((k == 0 ? d->maximum[k] != UINT64_MAX : d->extent[k] != d->chunk[k]) ||
            __builtin_mul_overflow(raw->chunk_bytes, d->chunk[k], &raw->chunk_bytes))
            return -1;
    }
    raw->room = d->extent[0] / d->chunk[0];
    return 0;
}

/* ---- the types of rows ---- */

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

static size_t stored_size(cow_column_kind kind)
{
    return kind == COW_COLUMN_TEXT ? COW_TEXT_STORED : kind == COW_COLUMN_NUMBER ? 8 : 1;
}

/* As H5Tpack makes it, with all members that there are. */
static bool is_log_row(const cow_described *d, size_t *row_size)
{
    message m = {d->type, d->type_size};
    size_t size = 0, offset = 0;
    bool good;

    for (size_t i = 0; i < cow_layout_log_columns_count; i++)
        size += stored_size(cow_layout_log_columns[i].kind);
    *row_size = size;
    good = size < 256 && take_compound(&m, (unsigned)cow_layout_log_columns_count, (unsigned)size);
    for (size_t i = 0; good && i < cow_layout_log_columns_count; i++) {
        const cow_column *c = &cow_layout_log_columns[i];

        good = take_member(&m, c->name, offset) &&
               (c->kind == COW_COLUMN_TEXT ? take_text(&m) : take_signed(&m, c->kind == COW_COLUMN_NUMBER ? 8 : 1, c->kind == COW_COLUMN_NUMBER));
        offset += stored_size(c->kind);
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

static bool is_row(cow_table_kind kind, unsigned rank, const cow_described *d)
{
    static const struct {
        const char *name;
        size_t offset;
        unsigned size;
    } dataset[] = {{"head", 0, 8},       {"root", 8, 8},        {"pool", 16, 4}, {"layout", 20, 1},
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

/* ---- tables ---- */

#define MOST_CHUNK ((size_t)64 << 10) /* bytes; h5cow's have at most 4 KiB */

typedef struct still_table {
    cow_table table;
    const cow_layout_still *still;
    cow_table_kind kind;
    uint32_t number;
    unsigned rank;
    uint64_t address; /* of its header */
    cow_chunk_index *index;
    uint64_t chunk_rows;
    bool summed;           /* chunks have the checksum of the filter fletcher32 */
    uint8_t *chunk;        /* of these the last one, without it */
    uint64_t chunk_number; /* UINT64_MAX: none */
    cow_table *opened;     /* by HDF5, which has the last word from then on; NULL: it was not needed */
} still_table;

static cow_table *opened(still_table *t)
{
    if (t->opened == NULL)
        t->opened = cow_layout_table_open(t->still->file, t->kind, t->number, t->rank);
    return t->opened;
}

/* Is it the bytes that count? */
static bool by_bytes(const still_table *t)
{
    return t->opened == NULL && current(t->still, t->address);
}

/* The chunk NUMBER, where it is stored as it should be. */
static bool find_chunk(still_table *t, uint64_t number, cow_chunk_place *place)
{
    const size_t all = (size_t)t->chunk_rows * t->table.row_size + (t->summed ? 4 : 0);

    return t->index != NULL && cow_chunk_index_find(t->index, number, place) > 0 && place->address != UINT64_MAX &&
           place->mask == 0 && (!t->summed || place->size == all) &&
           place->address <= cow_still_source(t->still->still)->end &&
           all <= cow_still_source(t->still->still)->end - place->address;
}

/* All of the chunk at PLACE, in `chunk`, its checksum compared. */
static bool bring_chunk(still_table *t, uint64_t number, const cow_chunk_place *place)
{
    const size_t all = (size_t)t->chunk_rows * t->table.row_size;

    if (t->chunk_number == number)
        return true;
    t->chunk_number = UINT64_MAX;
    if ((t->chunk == NULL && (t->chunk = malloc(all + 4)) == NULL) ||
        cow_source_bring(cow_still_source(t->still->still), place->address, t->chunk, all + 4) <= 0 ||
        cow_fletcher32(t->chunk, all) != cow_get32(t->chunk + all))
        return false;
    t->chunk_number = number;
    return true;
}

/* Bytes FIRST to FIRST + SIZE of the chunk NUMBER. */
static bool read_chunk(still_table *t, uint64_t number, size_t first, size_t size, void *bytes)
{
    cow_chunk_place place;

    if (t->summed && t->chunk_number == number) {
        memcpy(bytes, t->chunk + first, size);
        return true;
    }
    if (!find_chunk(t, number, &place))
        return false;
    if (!t->summed)
        return cow_source_bring(cow_still_source(t->still->still), place.address + first, bytes, size) > 0;
    if (!bring_chunk(t, number, &place))
        return false;
    memcpy(bytes, t->chunk + first, size);
    return true;
}

/* The same, written. 0: HDF5 is to do it; -1: recorded. */
static int write_chunk(still_table *t, uint64_t number, size_t first, size_t size, const void *bytes)
{
    const size_t all = (size_t)t->chunk_rows * t->table.row_size;
    const uint64_t base = cow_still_base(t->still->still);
    cow_chunk_place place;

    if (!find_chunk(t, number, &place) || (t->summed && !bring_chunk(t, number, &place)))
        return 0;
    if (t->summed) {
        memcpy(t->chunk + first, bytes, size);
        cow_put32(t->chunk + all, cow_fletcher32(t->chunk, all));
        if (cow_journal_write(t->still->journal, base + place.address + all, t->chunk + all, 4) < 0)
            return -1;
    }
    return cow_journal_write(t->still->journal, base + place.address + first, bytes, size) < 0 ? -1 : 1;
}

static int table_read(cow_table *table, uint64_t first, uint64_t count, void *rows)
{
    still_table *t = (still_table *)table;
    uint8_t *to = rows;

    if (by_bytes(t) && first <= table->rows && count <= table->rows - first) {
        uint64_t row = first, left = count;

        while (left > 0) {
            const uint64_t in = row % t->chunk_rows, n = left < t->chunk_rows - in ? left : t->chunk_rows - in;

            if (!read_chunk(t, row / t->chunk_rows, (size_t)in * table->row_size, (size_t)n * table->row_size, to))
                break;
            to += n * table->row_size;
            row += n;
            left -= n;
        }
        if (left == 0)
            return 0;
    }
    return opened(t) == NULL ? -1 : t->opened->read(t->opened, first, count, rows);
}

static int table_write(cow_table *table, uint64_t first, uint64_t count, const void *rows)
{
    still_table *t = (still_table *)table;
    const uint8_t *from = rows;
    int status = 1;

    if (t->still->journal != NULL && first <= table->rows && count <= table->rows - first)
        while (count > 0 && by_bytes(t)) {
            const uint64_t in = first % t->chunk_rows, n = count < t->chunk_rows - in ? count : t->chunk_rows - in;

            if ((status = write_chunk(t, first / t->chunk_rows, (size_t)in * table->row_size, (size_t)n * table->row_size,
                                      from)) <= 0)
                break;
            from += n * table->row_size;
            first += n;
            count -= n;
        }
    if (count == 0 || status < 0)
        return status < 0 ? -1 : 0;
    return opened(t) == NULL ? -1 : t->opened->write(t->opened, first, count, from);
}

static int write_header(void *context, uint64_t address, const void *bytes, size_t size)
{
    const cow_layout_still *s = context;

    return cow_journal_write(s->journal, cow_still_base(s->still) + address, bytes, size);
}

/* Rows that go are emptied by HDF5. */
static int table_resize(cow_table *table, uint64_t rows)
{
    still_table *t = (still_table *)table;
    int status = 0;

    if (t->still->journal != NULL && rows >= table->rows && by_bytes(t))
        status = cow_header_resize(cow_still_source(t->still->still), t->address, table->rows, rows, write_header,
                                   (void *)(uintptr_t)t->still);
    if (status == 0)
        status = opened(t) == NULL ? -1 : t->opened->resize(t->opened, rows);
    if (status < 0)
        return -1;
    table->rows = rows;
    return 0;
}

static void table_close(cow_table *table)
{
    still_table *t = (still_table *)table;

    if (t->opened != NULL)
        t->opened->close(t->opened);
    cow_chunk_index_close(t->index);
    free(t->chunk);
    free(t);
}

/* Is it as the table's dataset should be? Else HDF5 says what is wrong. */
static bool fits(const cow_layout_still *s, const cow_described *d, size_t row_size, bool summed)
{
    const cow_described_filters filters = summed ? COW_DESCRIBED_FLETCHER32 : COW_DESCRIBED_PLAIN;

    return d->layout == COW_DESCRIBED_CHUNKED && d->rank == 1 && d->maximum[0] == UINT64_MAX && d->filters == filters &&
           !d->whole_edges && d->fill != COW_DESCRIBED_USER && d->element_size == row_size &&
           d->chunk[0] <= MOST_CHUNK / row_size && d->extent[0] <= cow_still_source(s->still)->end / row_size;
}

/* How the table KIND is stored: the address of its header, and the bytes of its rows. false: not known. */
static bool find_table(const cow_layout_still *s, cow_table_kind kind, uint32_t number, unsigned rank, uint64_t *address,
                       size_t *row_size)
{
    char path[COW_PATH_MAX];

    *address = UINT64_MAX;
    switch (kind) {
    case COW_TABLE_DATASETS:
        *row_size = sizeof(cow_layout_dataset_row);
        *address = s->place[DATASETS];
        break;
    case COW_TABLE_SNAPSHOTS:
        *row_size = sizeof(cow_layout_snapshot_row);
        *address = s->place[SNAPSHOTS];
        break;
    case COW_TABLE_INDEX:
        *row_size = 1;
        *address = s->place[INDEX];
        break;
    case COW_TABLE_SNAPSHOT_ROWS:
        *row_size = COW_LOOKUP_ROW;
        *address = s->place[SNAPSHOT_ROWS];
        break;
    case COW_TABLE_SLOTS:
        *row_size = cow_slot_row_size(rank);
        snprintf(path, sizeof path, COW_PATH_SLOTS "/%u", number);
        return s->place[SLOTS] != UINT64_MAX && find(s, s->place[SLOTS], path, address);
    case COW_TABLE_HASHES:
        *row_size = COW_LOOKUP_ROW;
        snprintf(path, sizeof path, COW_PATH_HASHES "/%u", number);
        return s->place[HASHES] != UINT64_MAX && find(s, s->place[HASHES], path, address);
    default:
        break;
    }
    return *address != UINT64_MAX;
}

/* NULL: not known here, or no memory. */
static still_table *make_table(const cow_layout_still *still, uint64_t address, const cow_described *d, size_t row_size)
{
    still_table *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    *t = (still_table){.table = {.row_size = row_size,
                                 .rows = d->extent[0],
                                 .read = table_read,
                                 .write = table_write,
                                 .resize = table_resize,
                                 .close = table_close},
                       .still = still,
                       .address = address,
                       .chunk_rows = d->chunk[0],
                       .summed = d->filters == COW_DESCRIBED_FLETCHER32,
                       .chunk_number = UINT64_MAX};
    if (d->index != UINT64_MAX &&
        cow_chunk_index_open(cow_still_source(still->still), d->index, t->summed, &t->index) <= 0) {
        table_close(&t->table);
        return NULL;
    }
    return t;
}

cow_table *cow_layout_still_table(const cow_layout_still *still, cow_table_kind kind, uint32_t number, unsigned rank)
{
    const bool summed = kind != COW_TABLE_INDEX && kind != COW_TABLE_SLOTS;
    uint64_t address;
    size_t row_size;
    cow_described d;
    still_table *t;

    if (!find_table(still, kind, number, rank, &address, &row_size) || !current(still, address) ||
        cow_described_read(cow_still_source(still->still), address, &d) <= 0 || !fits(still, &d, row_size, summed) ||
        !is_row(kind, rank, &d) || (t = make_table(still, address, &d, row_size)) == NULL)
        return NULL;
    t->kind = kind;
    t->number = number;
    t->rank = rank;
    return &t->table;
}

/* ---- the log ---- */

struct cow_still_log {
    still_table *t; /* which HDF5 is never asked to open: log.c does that */
};

cow_still_log *cow_still_log_open(const cow_layout_still *still, size_t *row_size)
{
    cow_still_log *log;
    cow_described d;

    if (still->journal == NULL || still->place[LOG] == UINT64_MAX || !current(still, still->place[LOG]) ||
        cow_described_read(cow_still_source(still->still), still->place[LOG], &d) <= 0 || !is_log_row(&d, row_size) ||
        !fits(still, &d, *row_size, true) || (log = malloc(sizeof *log)) == NULL)
        return NULL;
    if ((log->t = make_table(still, still->place[LOG], &d, *row_size)) != NULL)
        return log;
    free(log);
    return NULL;
}

void cow_still_log_close(cow_still_log *log)
{
    if (log == NULL)
        return;
    table_close(&log->t->table);
    free(log);
}

uint64_t cow_still_log_rows(const cow_still_log *log)
{
    return log->t->table.rows;
}

int cow_still_log_get(cow_still_log *log, uint64_t row, void *bytes)
{
    const size_t size = log->t->table.row_size;

    return by_bytes(log->t) && row < log->t->table.rows &&
           read_chunk(log->t, row / log->t->chunk_rows, (size_t)(row % log->t->chunk_rows) * size, size, bytes);
}

bool cow_still_log_room(cow_still_log *log)
{
    const uint64_t number = log->t->table.rows / log->t->chunk_rows;
    cow_chunk_place place;

    return by_bytes(log->t) && find_chunk(log->t, number, &place) && bring_chunk(log->t, number, &place);
}

int cow_still_log_append(cow_still_log *log, const void *bytes)
{
    still_table *t = log->t;
    const uint64_t row = t->table.rows;
    int status;

    if (!cow_still_log_room(log))
        return 0;
    if ((status = cow_header_resize(cow_still_source(t->still->still), t->address, row, row + 1, write_header,
                                    (void *)(uintptr_t)t->still)) <= 0)
        return status;
    t->table.rows = row + 1;
    return write_chunk(t, row / t->chunk_rows, (size_t)(row % t->chunk_rows) * t->table.row_size, t->table.row_size, bytes) <= 0
               ? -1
               : 1;
}

bool cow_layout_still_log_rows(const cow_layout_still *still, uint64_t *rows)
{
    const cow_source *source = cow_still_source(still->still);
    cow_described d;

    if (still->settled || still->place[LOG] == UINT64_MAX || !current(still, still->place[LOG]) ||
        cow_described_read(source, still->place[LOG], &d) <= 0 || d.layout != COW_DESCRIBED_CHUNKED || d.rank != 1 ||
        d.extent[0] > source->end / COW_LEAST_LOG_ROW)
        return false;
    *rows = d.extent[0];
    return true;
}
