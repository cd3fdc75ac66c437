/* Tables and log by their bytes: see still.h. */
#include "layout/internal.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "h5/chunk_index.h"
#include "journal/driver.h"

#include <stdlib.h>
#include <string.h>

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
    return t->opened == NULL && cow_still_current(t->still, t->address);
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

            if ((status = write_chunk(t, first / t->chunk_rows, (size_t)in * table->row_size,
                                      (size_t)n * table->row_size, from)) <= 0)
                break;
            from += n * table->row_size;
            first += n;
            count -= n;
        }
    if (count == 0 || status < 0)
        return status < 0 ? -1 : 0;
    return opened(t) == NULL ? -1 : t->opened->write(t->opened, first, count, from);
}

/* The header says so. 1; 0: HDF5 is to do it; -1 */
static int grow(const still_table *t, uint64_t rows)
{
    return cow_header_resize(cow_still_source(t->still->still), t->address, t->table.rows, rows, cow_still_write,
                             t->still->still);
}

/* Is there a chunk for each of so many rows? */
static bool has_room(still_table *t, uint64_t rows)
{
    cow_chunk_place place;

    for (uint64_t number = t->table.rows / t->chunk_rows; number * t->chunk_rows < rows; number++)
        if (!find_chunk(t, number, &place))
            return false;
    return true;
}

/* Rows that go are emptied by HDF5, and where new ones need chunks it is that as well: it has to open the table before it claims rows that are
 * more than the file has bytes for yet. */
static int table_resize(cow_table *table, uint64_t rows)
{
    still_table *t = (still_table *)table;
    int status =
        t->still->journal != NULL && rows >= table->rows && by_bytes(t) && has_room(t, rows) ? grow(t, rows) : 0;

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
static bool fits(const cow_layout_still *s, const cow_dataset_header *d, size_t row_size, bool summed)
{
    const cow_dataset_header_filters filters = summed ? COW_DATASET_HEADER_FLETCHER32 : COW_DATASET_HEADER_PLAIN;

    return d->layout == COW_DATASET_HEADER_CHUNKED && d->rank == 1 && d->maximum[0] == UINT64_MAX &&
           d->filters == filters && !d->whole_edges && d->fill != COW_DATASET_HEADER_USER &&
           d->element_size == row_size && d->chunk[0] <= MOST_CHUNK / row_size &&
           d->extent[0] <= cow_still_source(s->still)->end / row_size;
}

static const struct {
    bool known, numbered; /* its rows are read here; it is one of several, in the group that is at the place */
    int place;
} tables[] = {[COW_TABLE_DATASETS] = {true, false, COW_PLACE_DATASETS},
              [COW_TABLE_SNAPSHOTS] = {true, false, COW_PLACE_SNAPSHOTS},
              [COW_TABLE_INDEX] = {true, false, COW_PLACE_INDEX},
              [COW_TABLE_SLOTS] = {true, true, COW_PLACE_SLOTS},
              [COW_TABLE_INCOMPLETE] = {false, false, COW_PLACE_INCOMPLETE},
              [COW_TABLE_FREE] = {false, false, COW_PLACE_FREE},
              [COW_TABLE_HASHES] = {true, true, COW_PLACE_HASHES},
              [COW_TABLE_SNAPSHOT_ROWS] = {true, false, COW_PLACE_SNAPSHOT_ROWS}};

bool cow_layout_still_lacks(const cow_layout_still *still, cow_table_kind kind)
{
    const int place = tables[kind].place;

    return still != NULL && still->place.all && still->place.at[place] == UINT64_MAX && !still->made[place];
}

void cow_layout_still_made(cow_layout_still *still, cow_table_kind kind)
{
    if (still != NULL)
        still->made[tables[kind].place] = true;
}

/* Where the header of the table is. false: not known. */
static bool find_table(const cow_layout_still *s, cow_table_kind kind, uint32_t number, uint64_t *address)
{
    char path[COW_PATH_MAX];

    if (!tables[kind].known || (*address = s->place.at[tables[kind].place]) == UINT64_MAX)
        return false;
    if (!tables[kind].numbered)
        return true;
    cow_table_path(path, kind, number);
    return cow_still_find(s, *address, path, address);
}

/* What the header of a dataset says, where its bytes are what HDF5 has. */
static bool describe(const cow_layout_still *s, uint64_t address, cow_dataset_header *d)
{
    return address != UINT64_MAX && cow_still_current(s, address) &&
           cow_dataset_header_read(cow_still_source(s->still), address, d) > 0;
}

/* NULL: not known here, or no memory. */
static still_table *make_table(const cow_layout_still *still, uint64_t address, const cow_dataset_header *d)
{
    still_table *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    *t = (still_table){.table = {.row_size = (size_t)d->element_size,
                                 .rows = d->extent[0],
                                 .read = table_read,
                                 .write = table_write,
                                 .resize = table_resize,
                                 .close = table_close},
                       .still = still,
                       .address = address,
                       .chunk_rows = d->chunk[0],
                       .summed = d->filters == COW_DATASET_HEADER_FLETCHER32,
                       .chunk_number = UINT64_MAX};
    if (d->index != UINT64_MAX &&
        cow_chunk_index_open(cow_still_source(still->still), d->index, t->summed, false, &t->index) <= 0) {
        table_close(&t->table);
        return NULL;
    }
    return t;
}

cow_table *cow_layout_still_table(const cow_layout_still *still, cow_table_kind kind, uint32_t number, unsigned rank)
{
    uint64_t address;
    cow_dataset_header d;
    still_table *t;

    if (still == NULL || !find_table(still, kind, number, &address) || !describe(still, address, &d) ||
        !fits(still, &d, cow_table_row_size(kind, rank), cow_table_is_summed(kind)) || !cow_is_row(kind, rank, &d) ||
        (t = make_table(still, address, &d)) == NULL)
        return NULL;
    t->kind = kind;
    t->number = number;
    t->rank = rank;
    return &t->table;
}

/* ---- the log: a table that HDF5 is not asked to open here ---- */

cow_still_log *cow_still_log_open(const cow_layout_still *still, size_t *row_size)
{
    const uint64_t address = still == NULL ? UINT64_MAX : still->place.at[COW_PLACE_LOG];
    cow_dataset_header d;

    return still != NULL && still->journal != NULL && describe(still, address, &d) && cow_is_log_row(&d, row_size) &&
                   fits(still, &d, *row_size, true)
               ? make_table(still, address, &d)
               : NULL;
}

void cow_still_log_close(cow_still_log *log)
{
    if (log != NULL)
        table_close(&log->table);
}

uint64_t cow_still_log_rows(const cow_still_log *log)
{
    return log->table.rows;
}

int cow_still_log_get(cow_still_log *log, uint64_t row, void *bytes)
{
    const size_t size = log->table.row_size;

    return by_bytes(log) && row < log->table.rows &&
           read_chunk(log, row / log->chunk_rows, (size_t)(row % log->chunk_rows) * size, size, bytes);
}

bool cow_still_log_room(cow_still_log *log)
{
    const uint64_t number = log->table.rows / log->chunk_rows;
    cow_chunk_place place;

    return by_bytes(log) && find_chunk(log, number, &place) && bring_chunk(log, number, &place);
}

int cow_still_log_append(cow_still_log *log, const void *bytes)
{
    const uint64_t row = log->table.rows;
    const size_t size = log->table.row_size;
    int status = cow_still_log_room(log) ? grow(log, row + 1) : 0;

    if (status <= 0)
        return status;
    log->table.rows = row + 1;
    return write_chunk(log, row / log->chunk_rows, (size_t)(row % log->chunk_rows) * size, size, bytes) <= 0 ? -1 : 1;
}

bool cow_layout_still_log_rows(const cow_layout_still *still, uint64_t *rows)
{
    cow_dataset_header d;

    if (still == NULL || still->settled || !describe(still, still->place.at[COW_PLACE_LOG], &d) ||
        d.layout != COW_DATASET_HEADER_CHUNKED || d.rank != 1 ||
        d.extent[0] > cow_still_source(still->still)->end / COW_LEAST_LOG_ROW)
        return false;
    *rows = d.extent[0];
    return true;
}
