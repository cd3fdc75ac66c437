/* Opening pools with the sizes of all their chunks, from one walk over them. See pools.h. */
#include "pools.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/history.h"
#include "store/format.h"
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static herr_t note_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    cli_pool *pool = context;
    uint64_t slot = offset[0] / pool->chunk[0];

    (void)address;
    (void)mask;
    if (slot < pool->room && pool->size[slot] == 0) {
        pool->size[slot] = size;
        pool->bytes += size;
    }
    return 0;
}

hid_t cli_raw_open(const cli_file *file, uint64_t id)
{
    char path[COW_PATH_MAX];

    if (id > UINT32_MAX)
        return H5I_INVALID_HID;
    cow_layout_raw_path(path, (uint32_t)id);
    return cow_layout_hard(file->loc, path) < 0 ? H5I_INVALID_HID : H5Dopen2(file->id, path, H5P_DEFAULT);
}

/* What raw data and the table of slots say of themselves. */
static int look_at_pool(const cli_file *file, cli_pool *pool)
{
    hid_t space = H5I_INVALID_HID;
    cow_raw raw;
    int status = -1;

    if ((pool->raw = cli_raw_open(file, pool->id)) < 0 || (pool->type = H5Dget_type(pool->raw)) < 0 ||
        (pool->dcpl = H5Dget_create_plist(pool->raw)) < 0 || (space = H5Dget_space(pool->raw)) < 0 ||
        cow_layout_raw_shape(pool->type, space, pool->dcpl, &raw) < 0)
        goto done;
    pool->rank = raw.rank;
    memcpy(pool->chunk, raw.chunk, sizeof pool->chunk);
    pool->element_size = raw.element_size;
    pool->chunk_bytes = raw.chunk_bytes;
    pool->heap = cow_type_is_heap(pool->type, true) > 0;
    if ((pool->rows = cow_layout_table_open(file->loc, COW_TABLE_SLOTS, (uint32_t)pool->id, pool->rank)) == NULL)
        goto done;
    pool->slots = pool->rows->rows;
    pool->room = raw.room < pool->slots ? raw.room : pool->slots; /* slots without a row hold nothing */
    status = 0;
done:
    if (space >= 0)
        H5Sclose(space);
    return status;
}

cow_table *cli_slots_open(const cli_file *file, uint64_t id, hid_t raw)
{
    hid_t type = H5Dget_type(raw), space = H5Dget_space(raw), dcpl = H5Dget_create_plist(raw);
    cow_table *rows = NULL;
    cow_raw shape;

    if (type >= 0 && space >= 0 && dcpl >= 0 && cow_layout_raw_shape(type, space, dcpl, &shape) == 0)
        rows = cow_layout_table_open(file->loc, COW_TABLE_SLOTS, (uint32_t)id, shape.rank);
    cow_close(dcpl, space, type);
    return rows;
}

bool cli_slot_is_free(const uint8_t *row)
{
    for (size_t i = 0; i < COW_SLOT_TRIMMED_AT; i++)
        if (row[i] != 0)
            return false;
    return true;
}

/* What is stored in slots that are free waits for new chunks. Rows that cannot be read are no matter of the sizes. */
static void leave_out_free(cli_pool *pool)
{
    enum { BATCH = 512 };
    const size_t row_size = COW_SLOT_TRIMMED_AT + 4 * (size_t)pool->rank;
    uint8_t *rows = cli_alloc(BATCH, row_size);

    for (uint64_t first = 0; pool->rows->row_size == row_size && first < pool->room; first += BATCH) {
        uint64_t n = pool->room - first < BATCH ? pool->room - first : BATCH;
        if (pool->rows->read(pool->rows, first, n, rows) < 0) {
            cow_error_clear();
            continue;
        }
        for (uint64_t i = 0; i < n; i++)
            if (cli_slot_is_free(rows + i * row_size)) {
                pool->bytes -= pool->size[first + i];
                pool->size[first + i] = 0;
            }
    }
    free(rows);
}

int cli_pool_open_bare(const cli_file *file, uint64_t id, cli_pool *pool, char *why, size_t size)
{
    char text[512];

    *pool = (cli_pool){.id = id, .raw = H5I_INVALID_HID, .type = H5I_INVALID_HID, .dcpl = H5I_INVALID_HID};
    if (look_at_pool(file, pool) < 0) {
        snprintf(why, size, "pool %llu cannot be opened: %s", (unsigned long long)id, cli_reason(text, sizeof text));
        cli_pool_close(pool);
        return -1;
    }
    return 0;
}

int cli_pool_slot_size(const cli_pool *pool, uint64_t slot, uint64_t *size)
{
    hsize_t offset[COW_MAX_RANK] = {slot * pool->chunk[0]}, bytes = 0;

    *size = pool->size == NULL ? 0 : pool->size[slot];
    if (pool->size != NULL)
        return 0;
    if (H5Dget_chunk_storage_size(pool->raw, offset, &bytes) < 0) {
        if (cow_native_chunk_was_missing())
            return 0;
        if (H5Dget_chunk_storage_size(pool->raw, offset, &bytes) < 0) /* again: what it said is forgotten */
            return -1;
    }
    *size = bytes;
    return 0;
}

int cli_pool_open(const cli_file *file, uint64_t id, cli_pool *pool, char *why, size_t size)
{
    char text[512];

    if (cli_pool_open_bare(file, id, pool, why, size) < 0)
        return -1;
    pool->size = cli_alloc(pool->room, sizeof *pool->size);
    if (H5Dchunk_iter(pool->raw, H5P_DEFAULT, note_chunk, pool) < 0) {
        snprintf(why, size, "the chunks of pool %llu cannot be listed: %s", (unsigned long long)id,
                 cli_reason(text, sizeof text));
        cli_pool_close(pool);
        return -1;
    }
    leave_out_free(pool);
    return 0;
}

void cli_pool_close(cli_pool *pool)
{
    if (pool->rows != NULL)
        pool->rows->close(pool->rows);
    cow_close(pool->type, pool->dcpl, pool->raw);
    free(pool->size);
    *pool = (cli_pool){.raw = H5I_INVALID_HID, .type = H5I_INVALID_HID, .dcpl = H5I_INVALID_HID};
}

int cli_pool_count(const cli_file *file, uint64_t *count, char *why, size_t size)
{
    cow_table *table = cow_layout_table_open(file->loc, COW_TABLE_POOLS, 0, 0);
    char text[512];

    *count = 0;
    if (table == NULL) {
        snprintf(why, size, "the table of pools cannot be opened: %s", cli_reason(text, sizeof text));
        return -1;
    }
    *count = table->rows;
    table->close(table);
    return 0;
}

int cli_pools_read(const cli_file *file, uint64_t count, char *why, size_t size)
{
    cow_table *table = cow_layout_table_open(file->loc, COW_TABLE_POOLS, 0, 0);
    uint8_t signature[64][COW_HASH_SIZE];
    char text[512];
    int status = table == NULL ? -1 : 0;

    for (uint64_t at = 0, n; status == 0 && at < count; at += n) {
        n = count - at < 64 ? count - at : 64;
        status = cow_layout_rows(table, COW_TABLE_POOLS, at, n, signature);
    }
    if (table != NULL)
        table->close(table);
    if (status < 0)
        snprintf(why, size, "the table of pools cannot be read: %s", cli_reason(text, sizeof text));
    return status;
}

const char *cli_filters(hid_t dcpl, char *text, size_t size)
{
    static const char *const blosc[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
    int n = H5Pget_nfilters(dcpl);
    size_t used = 0;

    snprintf(text, size, "none");
    for (int i = 0; i < n && used < size; i++) {
        unsigned values[20] = {0}, flags, config;
        size_t count = sizeof values / sizeof *values;
        char name[64] = "";
        H5Z_filter_t filter = H5Pget_filter2(dcpl, (unsigned)i, &flags, &count, values, sizeof name, name, &config);

        used += (size_t)snprintf(text + used, size - used, "%s", i == 0 ? "" : ", ");
        if (used >= size)
            break;
        if (filter == H5Z_FILTER_DEFLATE)
            used += (size_t)snprintf(text + used, size - used, "gzip %u", values[0]);
        else if (filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_FLETCHER32)
            used += (size_t)snprintf(text + used, size - used, filter == H5Z_FILTER_SHUFFLE ? "shuffle" : "fletcher32");
        else if (filter == 32000)
            used += (size_t)snprintf(text + used, size - used, "lzf");
        else if (filter == 32001 && count >= 7 && values[6] < sizeof blosc / sizeof *blosc)
            used += (size_t)snprintf(text + used, size - used, "blosc %s %u%s", blosc[values[6]], values[4],
                                     values[5] == 1   ? " byte shuffle"
                                     : values[5] == 2 ? " bit shuffle"
                                                      : "");
        else
            used +=
                (size_t)snprintf(text + used, size - used, "%s (%d)", name[0] == '\0' ? "filter" : name, (int)filter);
    }
    return text;
}

void cli_grid(const cow_root *root, cow_grid *grid)
{
    cow_grid_init(grid, root->rank, root->chunk, root->maximum);
}
