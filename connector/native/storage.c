/* Where tables and chunks live in an HDF5 file: cow_table over a one-dimensional dataset, cow_chunk_store over the
 * chunks of a pool's raw_data. See native.h. */
#include "native/native.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/map.h"
#include "base/vector.h"
#include "h5/chunk_index.h"
#include "h5/dataset_header.h"
#include "journal/driver.h"
#include "native/still.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include <stdlib.h>
#include <string.h>

#define DXPL     H5P_DATASET_XFER_DEFAULT
#define ANY_MASK UINT32_MAX /* of a slot that another opening wrote, and that is written again */

/* ---- tables ---- */

typedef struct file_table {
    cow_table table;
    void *dataset;
    bool bytes; /* rows are bytes, whose type need not be asked for each time: the index is read node by node */
    cow_table_check *check; /* NULL: asked, and good */
} file_table;

static int checked(file_table *t)
{
    if (t->check != NULL && t->check(t->dataset, t->table.row_size) < 0)
        return -1;
    t->check = NULL;
    return 0;
}

static int table_transfer(file_table *t, bool write, uint64_t first, uint64_t count, void *rows)
{
    hsize_t extent = t->table.rows, start = first, n = count;
    hid_t memory = H5I_INVALID_HID, file = H5I_INVALID_HID, type = H5I_INVALID_HID;
    int status = -1;

    if (count == 0)
        return 0;
    if (checked(t) < 0)
        return -1;
    if (first > extent || count > extent - first)
        return cow_error(COW_CORRUPT, "rows %llu to %llu are asked of a table of %llu rows", (unsigned long long)first,
                         (unsigned long long)(first + count - 1), (unsigned long long)extent);
    if ((memory = H5Screate_simple(1, &n, NULL)) < 0 || (file = H5Screate_simple(1, &extent, NULL)) < 0 ||
        H5Sselect_hyperslab(file, H5S_SELECT_SET, &start, NULL, &n, NULL) < 0)
        cow_error_native("cannot select rows of a table");
    else if ((type = t->bytes ? H5T_STD_U8LE : cow_native_dataset_type(t->dataset)) < 0) /* rows are moved as bytes */
        status = -1;
    else if (write)
        status = cow_native_dataset_write(t->dataset, type, memory, file, DXPL, rows);
    else
        status = cow_native_dataset_read(t->dataset, type, memory, file, DXPL, rows);
    cow_close(t->bytes ? H5I_INVALID_HID : type, file, memory);
    return status;
}

static int table_read(cow_table *table, uint64_t first, uint64_t count, void *rows)
{
    return table_transfer((file_table *)table, false, first, count, rows);
}

static int table_write(cow_table *table, uint64_t first, uint64_t count, const void *rows)
{
    return table_transfer((file_table *)table, true, first, count, (void *)(uintptr_t)rows);
}

static int table_resize(cow_table *table, uint64_t rows)
{
    file_table *t = (file_table *)table;
    hsize_t extent = rows;

    if (checked(t) < 0)
        return -1;
    if (cow_native_dataset_resize(t->dataset, &extent) < 0)
        return -1;
    table->rows = rows;
    return 0;
}

static void table_close(cow_table *table)
{
    file_table *t = (file_table *)table;

    H5VLdataset_close(t->dataset, cow_native_id(), DXPL, NULL);
    free(t);
}

cow_table *cow_native_table_over(void *dataset, const char *path, cow_table_check *check)
{
    file_table *t = calloc(1, sizeof *t);
    hid_t space = H5I_INVALID_HID, type = H5I_INVALID_HID;
    hsize_t extent;

    if (t == NULL) {
        cow_error(COW_MEMORY, "no memory for the table '%s'", path);
        cow_native_dataset_close(dataset);
        return NULL;
    }
    t->dataset = dataset;
    t->check = check;
    t->table = (cow_table){.read = table_read, .write = table_write, .resize = table_resize, .close = table_close};
    if ((type = cow_native_dataset_type(dataset)) < 0 || (space = cow_native_dataset_space(dataset)) < 0)
        goto failed;
    if (H5Sget_simple_extent_ndims(space) != 1) {
        cow_error(COW_CORRUPT, "'%s' is not a table of one dimension", path);
        goto failed;
    }
    if ((t->table.row_size = H5Tget_size(type)) == 0 || H5Sget_simple_extent_dims(space, &extent, NULL) < 0) {
        cow_error_native("cannot get the size of the table '%s'", path);
        goto failed;
    }
    t->table.rows = extent;
    t->bytes = t->table.row_size == 1 && H5Tequal(type, H5T_STD_U8LE) > 0;
    cow_close(type, space);
    return &t->table;
failed:
    cow_close(type, space);
    table_close(&t->table);
    return NULL;
}

void *cow_native_table_dataset(cow_table *table)
{
    file_table *t = (file_table *)table;

    return checked(t) < 0 ? NULL : t->dataset;
}

cow_table *cow_native_table_create(cow_loc at, const char *path, hid_t row_type, size_t chunk_bytes, bool checked)
{
    hsize_t none = 0, unlimited = H5S_UNLIMITED, chunk = chunk_bytes / H5Tget_size(row_type);
    hid_t space = H5Screate_simple(1, &none, &unlimited), dcpl = H5Pcreate(H5P_DATASET_CREATE);
    void *dataset = NULL;

    if (chunk == 0)
        chunk = 1;
    if (space < 0 || dcpl < 0 || H5Pset_chunk(dcpl, 1, &chunk) < 0 || (checked && H5Pset_fletcher32(dcpl) < 0))
        cow_error_native("cannot describe the table '%s'", path);
    else
        dataset = cow_native_dataset_create(at, path, row_type, space, dcpl);
    cow_close(dcpl, space);
    return dataset == NULL ? NULL : cow_native_table_over(dataset, path, NULL);
}

/* ---- chunks ---- */

/* How the raw data is opened: cow_native_chunk_store_closed. */
typedef struct unopened {
    void *(*open)(cow_loc file, uint32_t number);
    uint32_t number;
} unopened;

/* Where chunks are looked for: cow_native_chunk_store_look. INDEX NULL: HDF5 finds all of them. */
typedef struct looking {
    const cow_still *still;
    cow_chunk_index *index;
} looking;

/* The raw data of a file that this process writes: cow_native_chunk_store_write. JOURNAL NULL: HDF5 writes it. */
typedef struct writing {
    cow_journal *journal;
    unsigned long fileno;
    uint64_t header; /* address of its object header */
} writing;

/* What one walk over all chunks told of COUNT slots; ADDRESS NULL: there was none. */
typedef struct walked {
    haddr_t *address;
    hsize_t *size;
    unsigned *mask;
    uint64_t count;
} walked;

typedef struct file_chunks {
    cow_chunk_store store;
    void *file;
    void *dataset; /* NULL: it was not needed */
    unopened unopened;
    looking looking;
    writing writing;
    cow_journal *journal; /* cow_native_chunk_store_read_apart; and its room is asked for before a chunk is written */
    int rank;
    hsize_t chunk[COW_MAX_RANK];
    size_t chunk_bytes; /* in the file */
    bool filtered;
    bool moving;
    hsize_t rows;      /* of raw_data */
    uint32_t *mask_of; /* filter masks of the slots that were written through this store */
    bool *written;     /* which those are */
    size_t mask_room, written_room;
    bool placed;      /* for native heads: places of slots are noted */
    cow_map place_of; /* slot -> address, of those that were written through this store */
    walked walked;
} file_chunks;

static void *dataset_of(file_chunks *c)
{
    if (c->dataset == NULL)
        c->dataset = c->unopened.open((cow_loc){c->file, H5I_FILE}, c->unopened.number);
    return c->dataset;
}

static void forget_addresses(file_chunks *c)
{
    free(c->walked.address);
    free(c->walked.size);
    free(c->walked.mask);
    c->walked.address = NULL;
    c->walked.size = NULL;
    c->walked.mask = NULL;
    c->walked.count = 0;
}

/* Remember the mask of a slot that is written now. HDF5 1.14.5 forgets it twice: a chunk read through the dataset that
 * wrote it comes with the mask it had before, and a chunk overwritten with as many bytes keeps its old mask on disk. */
static int note_mask(file_chunks *c, uint64_t slot, uint32_t mask)
{
    size_t known = c->written_room;

    if (COW_RESERVE(c->mask_of, c->mask_room, slot, 1) < 0 || COW_RESERVE(c->written, c->written_room, slot, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for the filter masks of a pool");
    if (known < c->written_room)
        memset(c->written + known, 0, (c->written_room - known) * sizeof *c->written);
    c->mask_of[slot] = mask;
    c->written[slot] = true;
    return 0;
}

bool cow_native_heads(void)
{
    const char *wanted = getenv("H5COW_HEADS");

    return wanted != NULL && strcmp(wanted, "native") == 0;
}

/* Where a slot is from now on, as the driver has seen it; 0: it has not. */
static int note_place(file_chunks *c, uint64_t slot, uint64_t address)
{
    if (!c->placed)
        return 0;
    if (address != 0)
        return cow_map_put(&c->place_of, slot, address);
    cow_map_remove(&c->place_of, slot);
    return 0;
}

static bool known_mask(const file_chunks *c, uint64_t slot, uint32_t *mask)
{
    if (slot >= c->written_room || !c->written[slot])
        return false;
    *mask = c->mask_of[slot];
    return true;
}

static void chunk_offset(const file_chunks *c, uint64_t slot, hsize_t offset[])
{
    memset(offset, 0, COW_MAX_RANK * sizeof *offset);
    offset[0] = slot * c->chunk[0];
}

static int check_slot(const file_chunks *c, uint64_t slot)
{
    if (slot >= c->rows / c->chunk[0])
        return cow_error(COW_CORRUPT, "slot %llu is asked of a pool that has room for %llu", (unsigned long long)slot,
                         (unsigned long long)(c->rows / c->chunk[0]));
    return 0;
}

/* Do the bytes of a file that is written say what there is? As long as HDF5 has not looked at the dataset. */
static bool by_bytes(const file_chunks *c)
{
    return c->writing.journal != NULL && c->dataset == NULL && !cow_journal_driver_paged(c->writing.fileno) &&
           !cow_journal_driver_met(c->writing.fileno, c->writing.header);
}

/* Where the bytes of a slot are. false: HDF5 is to be asked. */
static bool look_up(file_chunks *c, uint64_t slot, cow_chunk_place *place)
{
    uint64_t end;

    if (c->looking.index == NULL || (c->writing.journal != NULL && !by_bytes(c)) ||
        cow_chunk_index_find(c->looking.index, slot, place) <= 0 || place->address == UINT64_MAX)
        return false;
    if (!c->filtered)
        place->size = c->chunk_bytes;
    end = cow_still_source(c->looking.still)->end;
    return place->size > 0 && place->address <= end && place->size <= end - place->address;
}

static int chunks_size(cow_chunk_store *store, uint64_t slot, size_t *bytes)
{
    file_chunks *c = (file_chunks *)store;
    hsize_t offset[COW_MAX_RANK], size = 0;
    cow_chunk_place place;
    uint64_t most;

    if (check_slot(c, slot) < 0)
        return -1;
    if (!c->filtered) {
        *bytes = c->chunk_bytes;
        return 0;
    }
    if (look_up(c, slot, &place)) {
        *bytes = (size_t)place.size;
        return 0;
    }
    chunk_offset(c, slot, offset);
    if (dataset_of(c) == NULL)
        return -1;
    if (cow_native_chunk_size(c->dataset, offset, &size) < 0)
        return cow_error_native("cannot get the stored size of slot %llu", (unsigned long long)slot);
    if (size == 0)
        return cow_error(COW_CORRUPT, "slot %llu of the pool was never written", (unsigned long long)slot);
    if (c->file != NULL && cow_native_file_size(c->file, &most) < 0)
        return -1;
    if (c->file != NULL && size > most)
        return cow_error(COW_CORRUPT, "slot %llu of the pool claims more bytes than the file has",
                         (unsigned long long)slot);
    *bytes = size;
    return 0;
}

static int chunks_read(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *filter_mask)
{
    file_chunks *c = (file_chunks *)store;
    hsize_t offset[COW_MAX_RANK];
    cow_chunk_place place;
    uint32_t mask;

    if (check_slot(c, slot) < 0)
        return -1;
    if (look_up(c, slot, &place) && place.size == size &&
        cow_source_bring(cow_still_source(c->looking.still), place.address, bytes, size) > 0) {
        *filter_mask = place.mask;
        return 0;
    }
    chunk_offset(c, slot, offset);
    if (dataset_of(c) == NULL)
        return -1;
    if (cow_native_chunk_read(c->dataset, offset, &mask, bytes, size) < 0) /* SIZE as chunks_size gave it */
        return cow_error_native("cannot read slot %llu", (unsigned long long)slot);
    if (!known_mask(c, slot, filter_mask))
        *filter_mask = mask;
    return 0;
}

static int chunks_find(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *filter_mask,
                       uint64_t *place)
{
    file_chunks *c = (file_chunks *)store;
    cow_chunk_place found;
    int status;

    if (check_slot(c, slot) == 0 && look_up(c, slot, &found) && found.size == size) {
        *place = cow_still_base(c->looking.still) + found.address;
        *filter_mask = found.mask;
        if (cow_journal_in_place(c->journal, *place, size))
            return 0;
    }
    cow_journal_expect(c->journal, bytes, size);
    status = chunks_read(store, slot, bytes, size, filter_mask);
    if (!cow_journal_expected(c->journal, place))
        *place = COW_NO_PLACE;
    return status;
}

static bool chunks_bring(const cow_chunk_store *store, uint64_t place, const struct iovec parts[], size_t n)
{
    return cow_journal_bring(((const file_chunks *)store)->journal, place, parts, n);
}

void cow_native_chunk_store_look(cow_chunk_store *store, const cow_still *still, const cow_dataset_header *raw)
{
    file_chunks *c = (file_chunks *)store;

    if (raw->index != UINT64_MAX &&
        cow_chunk_index_open(cow_still_source(still), raw->index, c->filtered, true, &c->looking.index) > 0)
        c->looking.still = still;
}

void cow_native_chunk_store_read_apart(cow_chunk_store *store, cow_journal *journal)
{
    ((file_chunks *)store)->journal = journal;
    store->find = chunks_find;
    store->bring = chunks_bring;
}

void cow_native_chunk_store_write(cow_chunk_store *store, cow_journal *journal, unsigned long fileno,
                                  const cow_dataset_header *raw)
{
    file_chunks *c = (file_chunks *)store;

    if (c->looking.index != NULL && raw->filters == COW_DATASET_HEADER_PLAIN)
        c->writing = (writing){journal, fileno, raw->address};
}

/* The raw data has so many rows. 1; 0: HDF5 is to do it; -1 */
static int resize_bytes(file_chunks *c, hsize_t rows)
{
    return by_bytes(c) ? cow_header_resize(cow_still_source(c->looking.still), c->writing.header, c->rows, rows,
                                           cow_still_write, (void *)(uintptr_t)c->looking.still)
                       : 0;
}

int cow_native_chunk_store_reserve(cow_chunk_store *store, uint64_t slots)
{
    file_chunks *c = (file_chunks *)store;
    uint64_t have = c->rows / c->chunk[0];
    hsize_t extent[COW_MAX_RANK];
    int status;

    if (slots <= have)
        return 0;
    if (slots < have + have / 8)
        slots = have + have / 8;
    memcpy(extent, c->chunk, sizeof extent);
    extent[0] = slots * c->chunk[0];
    if ((status = resize_bytes(c, extent[0])) < 0 ||
        (status == 0 && (dataset_of(c) == NULL || cow_native_dataset_resize(c->dataset, extent) < 0)))
        return -1;
    c->rows = extent[0];
    return 0;
}

/* The chunk as bytes, where it has a place or can be given one without HDF5: 1; 0: HDF5 is to do it; -1. */
static int write_bytes(file_chunks *c, uint64_t slot, const void *bytes, size_t size)
{
    uint64_t base, address;
    int status;
    bool had;

    if (!by_bytes(c) || size != c->chunk_bytes ||
        (status = cow_chunk_index_may_put(c->looking.index, slot, &address)) == 0)
        return 0;
    base = cow_still_base(c->looking.still);
    had = status > 0 && address != UINT64_MAX;
    if (had && (address > cow_journal_end(c->writing.journal) - base ||
                size > cow_journal_end(c->writing.journal) - base - address))
        return 0; /* HDF5 says what is wrong */
    if (status > 0 && !had && (address = cow_journal_driver_allocate(c->writing.fileno, size, 0, true)) != UINT64_MAX)
        address -= base;
    if (status < 0 || address == UINT64_MAX || cow_journal_write(c->writing.journal, base + address, bytes, size) < 0)
        return cow_context("cannot write slot %llu (%zu bytes); is the disk full?", (unsigned long long)slot, size);
    if (note_place(c, slot, address) < 0)
        return -1;
    return had ? 1
               : cow_chunk_index_put(c->looking.index, slot, address, cow_still_write,
                                     (void *)(uintptr_t)c->looking.still);
}

static int write_slot(file_chunks *c, uint64_t slot, const void *bytes, size_t size, uint32_t filter_mask)
{
    const bool expected = c->placed && c->journal != NULL;
    hsize_t offset[COW_MAX_RANK];
    uint64_t address = 0;
    int status;

    chunk_offset(c, slot, offset);
    if (expected)
        cow_journal_expect(c->journal, bytes, size);
    status = cow_native_chunk_write(c->dataset, offset, filter_mask, bytes, size);
    if (!expected || !cow_journal_expected(c->journal, &address))
        address = 0;
    if (status < 0)
        return cow_error_native("cannot write slot %llu (%zu bytes); is the disk full?", (unsigned long long)slot,
                                size);
    return note_place(c, slot, address);
}

static int chunks_write(cow_chunk_store *store, uint64_t slot, const void *bytes, size_t size, uint32_t filter_mask)
{
    file_chunks *c = (file_chunks *)store;
    hsize_t offset[COW_MAX_RANK];
    uint32_t before;
    size_t old;
    bool again;
    int status;

    /* before anything changes: a write that is refused here has done nothing */
    if ((c->journal != NULL && cow_journal_room(c->journal, size, false) < 0) ||
        cow_native_chunk_store_reserve(store, slot + 1) < 0 || (status = write_bytes(c, slot, bytes, size)) < 0 ||
        (status == 0 && dataset_of(c) == NULL))
        return -1;
    forget_addresses(c);
    if (status > 0)
        return 0;
    again = c->filtered && known_mask(c, slot, &before) && before == ANY_MASK;
    if (c->filtered) {
        /* another size in between makes HDF5 store the new mask */
        if (known_mask(c, slot, &before) && before != filter_mask) {
            if (chunks_size(store, slot, &old) < 0) {
                if (before != ANY_MASK)
                    return -1;
                cow_error_clear(); /* it has never been written */
                old = 0;
            }
            if (old == size && size > 1 && write_slot(c, slot, bytes, size - 1, filter_mask) < 0)
                return -1;
        }
        if (note_mask(c, slot, filter_mask) < 0)
            return -1;
    }
    if (write_slot(c, slot, bytes, size, filter_mask) < 0)
        return -1;
    if (again) {
        chunk_offset(c, slot, offset);
        cow_native_chunk_written(c->dataset, offset);
    }
    return 0;
}

static int chunks_again(cow_chunk_store *store, uint64_t slot)
{
    file_chunks *c = (file_chunks *)store;

    return c->filtered ? note_mask(c, slot, ANY_MASK) : 0;
}

static void chunks_close(cow_chunk_store *store)
{
    file_chunks *c = (file_chunks *)store;

    forget_addresses(c);
    free(c->mask_of);
    free(c->written);
    cow_map_free(&c->place_of);
    cow_chunk_index_close(c->looking.index);
    if (c->dataset != NULL)
        H5VLdataset_close(c->dataset, cow_native_id(), DXPL, NULL);
    free(c);
}

static file_chunks *new_chunks(void *file)
{
    file_chunks *c = calloc(1, sizeof *c);

    if (c == NULL) {
        cow_error(COW_MEMORY, "no memory for a pool");
        return NULL;
    }
    c->file = file;
    c->placed = cow_native_heads();
    c->store = (cow_chunk_store){
        .size = chunks_size, .read = chunks_read, .write = chunks_write, .again = chunks_again, .close = chunks_close};
    return c;
}

cow_chunk_store *cow_native_chunk_store_closed(void *file, const cow_dataset_header *raw,
                                               void *(*open)(cow_loc file, uint32_t number), uint32_t number)
{
    file_chunks *c = new_chunks(file);

    if (c == NULL)
        return NULL;
    c->unopened = (unopened){open, number};
    c->rank = (int)raw->rank;
    c->rows = raw->extent[0];
    c->chunk_bytes = (size_t)raw->element_size;
    for (unsigned d = 0; d < raw->rank; d++) {
        c->chunk[d] = raw->chunk[d];
        c->chunk_bytes *= (size_t)raw->chunk[d];
    }
    return &c->store;
}

cow_chunk_store *cow_native_chunk_store(void *file, void *raw_data, hid_t dcpl)
{
    file_chunks *c = new_chunks(file);
    hid_t space = H5I_INVALID_HID, type = H5I_INVALID_HID;
    hsize_t extent[COW_MAX_RANK];
    cow_chunk_store *store = NULL;

    if (c == NULL) {
        cow_native_dataset_close(raw_data);
        return NULL;
    }
    c->dataset = raw_data;
    if ((space = cow_native_dataset_space(raw_data)) < 0 || (type = cow_native_dataset_type(raw_data)) < 0)
        goto done;
    c->rank = H5Sget_simple_extent_dims(space, extent, NULL);
    if (H5Pget_layout(dcpl) != H5D_CHUNKED || c->rank < 1 || H5Pget_chunk(dcpl, COW_MAX_RANK, c->chunk) != c->rank) {
        cow_error(COW_CORRUPT, "a pool's raw data is not a chunked dataset");
        goto done;
    }
    c->rows = extent[0];
    c->filtered = H5Pget_nfilters(dcpl) > 0;
    c->chunk_bytes = H5Tget_size(type);
    if (file != NULL && cow_native_element_size(file, type, &c->chunk_bytes) < 0)
        goto done;
    for (int d = 0; d < c->rank; d++)
        c->chunk_bytes *= c->chunk[d];
    store = &c->store;
done:
    cow_close(type, space);
    if (store == NULL)
        chunks_close(&c->store);
    return store;
}

/* Since 1.14.4 HDF5 tells addresses of chunks with the user block in them (issue 3003 of HDF5). */
static uint64_t without_user_block(const file_chunks *c, haddr_t told)
{
    unsigned major, minor, release;
    cow_native_bytes bytes;

    if (c->file == NULL || !cow_native_file_bytes(c->file, &bytes) || bytes.base == 0 ||
        H5get_libversion(&major, &minor, &release) < 0 || (major == 1 && minor == 14 && release < 4))
        return told;
    return told - bytes.base;
}

int cow_native_chunk_store_place(cow_chunk_store *store, uint64_t slots, uint64_t slot, cow_chunk_place *place)
{
    file_chunks *c = (file_chunks *)store;
    haddr_t address;
    hsize_t size;
    unsigned mask;

    if (check_slot(c, slot) < 0)
        return -1;
    if (!c->filtered && cow_map_get(&c->place_of, slot, &place->address)) {
        place->size = c->chunk_bytes;
        place->mask = 0;
        return 0;
    }
    if (!known_mask(c, slot, &mask) && look_up(c, slot, place)) /* it may have moved */
        return 0;
    if (cow_native_chunk_address(store, slots, slot, &address, &size, &mask) < 0)
        return -1;
    if (address == HADDR_UNDEF)
        return cow_error(COW_CORRUPT, "slot %llu of the pool was never written", (unsigned long long)slot);
    *place = (cow_chunk_place){without_user_block(c, address), size, mask};
    return 0;
}

void *cow_native_chunk_store_dataset(cow_chunk_store *store)
{
    return dataset_of((file_chunks *)store);
}

void *cow_native_chunk_store_file(cow_chunk_store *store)
{
    return ((file_chunks *)store)->file;
}

bool *cow_native_chunk_store_moving(cow_chunk_store *store)
{
    return &((file_chunks *)store)->moving;
}

static int note_address(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    file_chunks *c = context;
    uint64_t slot = offset[0] / c->chunk[0];

    if (slot < c->walked.count) {
        c->walked.address[slot] = address;
        c->walked.size[slot] = size;
        c->walked.mask[slot] = mask;
    }
    return 0;
}

/* HDF5 1.14 finds the address of one chunk by walking over all: walk once and keep the answers. */
void cow_native_chunk_store_changed(cow_chunk_store *store)
{
    forget_addresses((file_chunks *)store);
}

int cow_native_chunk_address(cow_chunk_store *store, uint64_t slots, uint64_t slot, haddr_t *address, hsize_t *size,
                             unsigned *mask)
{
    file_chunks *c = (file_chunks *)store;

    if (check_slot(c, slot) < 0 || dataset_of(c) == NULL)
        return -1;
    if (slot >= slots)
        return cow_error(COW_CORRUPT, "slot %llu is asked of a pool of %llu", (unsigned long long)slot,
                         (unsigned long long)slots);
    if (c->walked.address != NULL && slot >= c->walked.count)
        forget_addresses(c);
    if (c->walked.address == NULL) {
        c->walked.count = slots;
        c->walked.address = malloc(c->walked.count * sizeof *c->walked.address);
        c->walked.size = calloc(c->walked.count, sizeof *c->walked.size);
        c->walked.mask = calloc(c->walked.count, sizeof *c->walked.mask);
        if (c->walked.address == NULL || c->walked.size == NULL || c->walked.mask == NULL) {
            forget_addresses(c);
            return cow_error(COW_MEMORY, "no memory for the addresses of a pool's chunks");
        }
        memset(c->walked.address, 0xff, c->walked.count * sizeof *c->walked.address);
        if (cow_native_chunk_iterate(c->dataset, note_address, c) < 0) {
            cow_error_native("cannot walk over the chunks of a pool");
            forget_addresses(c);
            return -1;
        }
    }
    *address = c->walked.address[slot];
    *size = c->walked.size[slot];
    *mask = c->walked.mask[slot];
    return 0;
}
