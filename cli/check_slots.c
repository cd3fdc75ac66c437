/* Every stored chunk: read, decoded, hashed again, compared with its row. See check.h.
 *
 * Chunks are read in batches by this thread, since HDF5 is not to be called by two, and decoded and hashed by several.
 */
#include "check.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/codec.h"
#include "io/serial.h"
#include "io/workers.h"
#include "library/library.h"
#include "native/datatype.h"
#include "store/format.h"
#include "store/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES ((size_t)64 << 20)
#define BATCH_SLOTS 512

typedef struct slot_work {
    uint64_t slot;
    cow_digest expected;
    uint64_t trimmed[COW_MAX_RANK];
    void *bytes; /* as stored, SIZE of them, with a filter MASK */
    uint64_t size;
    uint32_t mask;
    char *bad; /* NULL: good */
} slot_work;

typedef struct batch {
    const cli_pool *pool;
    cow_codec *codec;
    size_t bytes; /* of a decoded chunk in the file */
    size_t row_size;
    uint8_t *rows; /* BATCH_SLOTS of them */
    slot_work work[BATCH_SLOTS];
    size_t count, stored; /* in work, and bytes of them */
    bool unlisted;        /* HDF5 does not find the chunks */
} batch;

static char *compare(const slot_work *w, const cow_digest *found)
{
    if (found->checksum != w->expected.checksum)
        return cli_strdup("its bytes do not match their checksum");
    if (memcmp(found->hash, w->expected.hash, COW_HASH_SIZE) != 0)
        return cli_strdup("its bytes match their checksum but not their hash: the row of the slot table is damaged");
    return NULL;
}

/* On any thread. */
static int hash_one(void *context, size_t i)
{
    batch *b = context;
    slot_work *w = &b->work[i];
    const cli_pool *pool = b->pool;
    void *chunk;
    cow_digest found;

    if (w->bad != NULL)
        return 0;
    if ((chunk = malloc(pool->chunk_bytes)) == NULL) {
        w->bad = cli_strdup("it cannot be checked: not enough memory");
        return 0;
    }
    if (cow_codec_decode(b->codec, w->bytes, w->size, w->mask, chunk) < 0 ||
        cow_digest_chunk(chunk, pool->rank, pool->chunk, w->trimmed, pool->element_size, &found) < 0) {
        w->bad = cli_format("its bytes cannot be decoded: %s", cow_error_message());
        cow_error_clear();
    } else {
        w->bad = compare(w, &found);
    }
    free(chunk);
    return 0;
}

static void finish_batch(cli_check *check, batch *b)
{
    if (b->count > 0) {
        cow_parallel(b->count, cow_codec_parallel(b->codec) ? check->threads : 1, hash_one, b);
        cow_error_clear();
    }
    for (size_t i = 0; i < b->count; i++) {
        slot_work *w = &b->work[i];
        if (w->bad != NULL)
            cli_damaged(check, CLI_BAD_SLOT, b->pool->id, w->slot, "%s", w->bad);
        free(w->bad);
        free(w->bytes);
    }
    b->count = b->stored = 0;
}

/* What the row says, and the bytes. -1: damaged, and told. */
static int prepare(cli_check *check, batch *b, uint64_t slot, const uint8_t *row, slot_work *w)
{
    const cli_pool *pool = b->pool;
    char text[512];
    hsize_t offset[COW_MAX_RANK] = {0};

    *w = (slot_work){.slot = slot};
    memcpy(w->expected.hash, row + COW_SLOT_HASH_AT, COW_HASH_SIZE);
    w->expected.checksum = cow_get64(row + COW_SLOT_CHECKSUM_AT);
    for (unsigned d = 0; d < pool->rank; d++) {
        w->trimmed[d] = cow_get32(row + COW_SLOT_TRIMMED_AT + 4 * d);
        if (w->trimmed[d] > pool->chunk[d]) {
            cli_damaged(check, CLI_BAD_SLOT, pool->id, slot, "its row in the slot table says impossible things");
            return -1;
        }
    }
    if (slot < pool->room && cli_pool_slot_size(pool, slot, &w->size) < 0) {
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "the chunks of pool %llu cannot be listed: %s",
                    (unsigned long long)pool->id, cli_reason(text, sizeof text));
        b->unlisted = true;
        return -1;
    }
    if (w->size == 0) {
        cli_damaged(check, CLI_BAD_SLOT, pool->id, slot, "its bytes are not in the file");
        return -1;
    }
    if (w->size > check->file_size) {
        cli_damaged(check, CLI_BAD_SLOT, pool->id, slot, "it claims to be larger than the file");
        return -1;
    }
    w->bytes = cli_alloc(w->size, 1);
    offset[0] = slot * pool->chunk[0];
    if (cow_library_read_chunk(pool->raw, offset, &w->mask, w->bytes, w->size) < 0) {
        cli_damaged(check, CLI_BAD_SLOT, pool->id, slot, "its bytes cannot be read: %s", cli_reason(text, sizeof text));
        free(w->bytes);
        return -1;
    }
    return 0;
}

/* Of elements that are not plain bytes. */
static int heap_digest(const cli_check *check, const cli_pool *pool, const slot_work *w, const void *chunk,
                       bool regions, cow_digest *digest)
{
    cow_serial *serial = cow_serial_open(pool->type, check->file->name);
    int status = serial == NULL ? -1
                                : cow_serial_digest(serial, chunk, pool->element_size, pool->rank, pool->chunk,
                                                    w->trimmed, w->slot, regions, digest);

    cow_serial_close(serial);
    return status;
}

/* What the lengths in a slot claim, the file has; else HDF5 would take that much memory. */
static int check_lengths(const cli_check *check, const batch *b, const slot_work *w)
{
    const cli_pool *pool = b->pool;
    cow_lengths *lengths = NULL;
    uint64_t elements = pool->chunk_bytes / pool->element_size, sum = 0;
    uint8_t *chunk;
    int status = -1;

    if (!cow_codec_parallel(b->codec))
        return 0;
    if ((chunk = malloc(b->bytes)) == NULL)
        return cow_error(COW_MEMORY, "not enough memory");
    if (cow_codec_decode(b->codec, w->bytes, w->size, w->mask, chunk) == 0 &&
        (lengths = cow_lengths_open(check->file->loc.object, pool->type)) != NULL)
        status = cow_lengths_check(lengths, chunk, elements, &sum);
    cow_lengths_close(lengths);
    free(chunk);
    return status;
}

/* Elements that HDF5 stores itself: read by it, then hashed. */
static void check_heap_slot(cli_check *check, const batch *b, slot_work *w)
{
    const cli_pool *pool = b->pool;
    hsize_t start[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];
    hid_t space = H5Dget_space(pool->raw), memory = H5I_INVALID_HID;
    size_t elements = pool->chunk_bytes / pool->element_size;
    void *chunk = NULL;
    char text[512];
    cow_digest found;
    bool references;

    start[0] = w->slot * pool->chunk[0];
    for (unsigned d = 0; d < pool->rank; d++)
        count[d] = pool->chunk[d];
    memory = H5Screate_simple((int)pool->rank, count, NULL);
    if (space < 0 || memory < 0 || check_lengths(check, b, w) < 0 ||
        (chunk = calloc(elements, pool->element_size)) == NULL ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(pool->raw, pool->type, memory, space, H5P_DEFAULT, chunk) < 0) {
        cli_damaged(check, CLI_BAD_SLOT, pool->id, w->slot, "its elements cannot be read: %s",
                    cli_reason(text, sizeof text));
        goto done;
    }
    references = H5Tdetect_class(pool->type, H5T_REFERENCE) > 0;
    if (heap_digest(check, pool, w, chunk, false, &found) < 0 ||
        (references && found.checksum != w->expected.checksum && heap_digest(check, pool, w, chunk, true, &found) < 0))
        w->bad = cli_format("its elements cannot be hashed: %s", cli_reason(text, sizeof text));
    else {
        if (references) /* the hash of a region whose dataset is gone cannot be made again */
            memcpy(found.hash, w->expected.hash, sizeof found.hash);
        w->bad = compare(w, &found);
    }
    if (w->bad != NULL)
        cli_damaged(check, CLI_BAD_SLOT, pool->id, w->slot, "%s", w->bad);
    free(w->bad);
    cow_reclaim(pool->type, memory, H5P_DEFAULT, chunk);
done:
    free(w->bytes);
    free(chunk);
    cow_close(memory, space);
}

/* NULL: the chunks cannot be checked, which is told. */
static batch *begin_batch(cli_check *check, const cli_pool *pool)
{
    batch *b = cli_alloc(1, sizeof *b);
    char text[512];

    b->pool = pool;
    b->row_size = COW_SLOT_TRIMMED_AT + 4 * (size_t)pool->rank;
    if (pool->rows->row_size != b->row_size)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "the slot table of pool %llu has rows of %zu bytes instead of %zu",
                    (unsigned long long)pool->id, pool->rows->row_size, b->row_size);
    else if (cow_native_element_size(check->file->loc.object, pool->type, &b->bytes) < 0 ||
             (b->codec = cow_codec_open(pool->dcpl, pool->type, b->bytes *= pool->chunk_bytes / pool->element_size)) ==
                 NULL)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0, "the chunks of pool %llu cannot be checked: %s",
                    (unsigned long long)pool->id, cli_reason(text, sizeof text));
    if (b->codec != NULL) {
        b->rows = cli_alloc(BATCH_SLOTS, b->row_size);
        return b;
    }
    free(b);
    return NULL;
}

static void end_batch(cli_check *check, batch *b)
{
    finish_batch(check, b);
    cow_codec_close(b->codec);
    free(b->rows);
    free(b);
}

/* Rows FIRST to FIRST + N, at most BATCH_SLOTS, into b->rows. What cannot be read is told. */
static bool read_rows(cli_check *check, batch *b, uint64_t first, uint64_t n)
{
    char text[512];

    if (b->pool->rows->read(b->pool->rows, first, n, b->rows) >= 0)
        return true;
    cli_damaged(check, CLI_BAD_ELSE, 0, 0, "rows %llu to %llu of the slot table of pool %llu cannot be read: %s",
                (unsigned long long)first, (unsigned long long)(first + n - 1), (unsigned long long)b->pool->id,
                cli_reason(text, sizeof text));
    return false;
}

/* What SLOT, whose ROW says that it holds something, holds. */
static void check_slot(cli_check *check, batch *b, uint64_t slot, const uint8_t *row)
{
    slot_work *w = &b->work[b->count];

    if (b->unlisted || prepare(check, b, slot, row, w) < 0)
        return;
    cli_check_beat(check);
    check->chunks++;
    check->bytes += w->size;
    if (b->pool->heap) {
        check_heap_slot(check, b, w);
        return;
    }
    b->stored += w->size;
    if (++b->count == BATCH_SLOTS || b->stored > BATCH_BYTES)
        finish_batch(check, b);
}

void cli_check_slots(cli_check *check, const cli_pool *pool)
{
    batch *b = begin_batch(check, pool);

    if (b == NULL)
        return;
    for (uint64_t first = 0; first < pool->slots; first += BATCH_SLOTS) {
        uint64_t n = pool->slots - first < BATCH_SLOTS ? pool->slots - first : BATCH_SLOTS;
        if (!read_rows(check, b, first, n))
            continue;
        for (uint64_t i = 0; i < n; i++)
            if (!cli_slot_is_free(b->rows + i * b->row_size))
                check_slot(check, b, first + i, b->rows + i * b->row_size);
    }
    end_batch(check, b);
}

static void named_but_free(cli_check *check, const cli_pool *pool, uint64_t slot)
{
    cli_damaged(check, CLI_BAD_SLOT, pool->id, slot, "the index names it, but the slot table says it is empty");
}

void cli_check_some_slots(cli_check *check, const cli_pool *pool, const uint64_t slots[], size_t count)
{
    batch *b = begin_batch(check, pool);

    if (b == NULL)
        return;
    for (size_t i = 0, n; i < count; i += n) {
        for (n = 1; n < BATCH_SLOTS && i + n < count && slots[i + n] == slots[i] + n; n++)
            ;
        if (!read_rows(check, b, slots[i], n))
            continue;
        for (size_t k = 0; k < n; k++) {
            const uint8_t *row = b->rows + k * b->row_size;
            if (!cli_slot_is_free(row))
                check_slot(check, b, slots[i + k], row);
            else if (slots[i + k] < pool->room)
                named_but_free(check, pool, slots[i + k]);
        }
    }
    end_batch(check, b);
}

/* ---- by their hashes ---- */

typedef struct wanted {
    const cli_pool *pool;
    uint64_t slot;
    const uint8_t *row; /* of it */
    uint8_t *other;     /* room for a row */
} wanted;

/* An equal chunk would be found by SLOT. */
static int has_hash(void *context, uint64_t slot)
{
    const wanted *w = context;

    if (slot == w->slot)
        return 1;
    if (slot >= w->pool->slots)
        return 0;
    if (w->pool->rows->read(w->pool->rows, slot, 1, w->other) < 0) {
        cow_error_clear(); /* which is told elsewhere */
        return 0;
    }
    return memcmp(w->other, w->row, COW_HASH_SIZE) == 0;
}

/* A slot that is noted, and not found by its hash, is counted: one that wrote without knowing of the runs gave it out again. OTHER:
 * room for a row. */
static int find_slot(cli_check *check, const cli_pool *pool, cow_lookup *lookup, uint64_t slot, const uint8_t *row,
                     uint8_t *other)
{
    wanted w = {pool, slot, row, other};
    int found = 1;

    if (!cli_slot_is_free(row) && cow_get64(row) != 0)
        found = cow_lookup_find(lookup, cow_get64(row), has_hash, &w);
    check->unfound += found == 0;
    return found < 0 ? -1 : 0;
}

static int find_all(cli_check *check, const cli_pool *pool, cow_lookup *lookup)
{
    size_t row_size = pool->rows->row_size;
    uint8_t *rows = cli_alloc(BATCH_SLOTS + 1, row_size);
    uint64_t noted = cow_lookup_noted(lookup), n;
    int status = 0;

    for (uint64_t first = 0; status == 0 && first < noted; first += n) {
        n = noted - first < BATCH_SLOTS ? noted - first : BATCH_SLOTS;
        cli_check_beat(check);
        if (pool->rows->read(pool->rows, first, n, rows) < 0) {
            cow_error_clear(); /* which is told elsewhere */
            continue;
        }
        for (uint64_t i = 0; status == 0 && i < n; i++)
            status = find_slot(check, pool, lookup, first + i, rows + i * row_size, rows + BATCH_SLOTS * row_size);
    }
    free(rows);
    return status;
}

static int find_some(cli_check *check, const cli_pool *pool, cow_lookup *lookup, const uint64_t slots[], size_t count)
{
    size_t row_size = pool->rows->row_size;
    uint8_t *rows = cli_alloc(2, row_size);
    int status = 0;

    for (size_t i = 0; status == 0 && i < count && slots[i] < cow_lookup_noted(lookup); i++) {
        cli_check_beat(check);
        if (pool->rows->read(pool->rows, slots[i], 1, rows) < 0)
            cow_error_clear(); /* which is told elsewhere */
        else
            status = find_slot(check, pool, lookup, slots[i], rows, rows + row_size);
    }
    free(rows);
    return status;
}

void cli_check_hashes(cli_check *check, const cli_pool *pool, const uint64_t slots[], size_t count)
{
    cow_table *table;
    cow_lookup *lookup = NULL;
    char text[512];
    int status;

    if (pool->rows->row_size != COW_SLOT_TRIMMED_AT + 4 * (size_t)pool->rank)
        return; /* which is told elsewhere */
    status = cow_layout_hashes_open(check->file->loc, (uint32_t)pool->id, &table);
    if (status > 0 && (lookup = cow_lookup_open(table, pool->slots, NULL)) == NULL)
        status = -1;
    else if (status > 0 && slots != NULL)
        status = find_some(check, pool, lookup, slots, count);
    else if (status > 0)
        status = cow_lookup_check(lookup) < 0 || find_all(check, pool, lookup) < 0 ? -1 : 0;
    if (status < 0)
        cli_damaged(check, CLI_BAD_ELSE, 0, 0,
                    "what helps to find equal chunks of pool %llu is damaged (nothing is lost by that): %s",
                    (unsigned long long)pool->id, cli_reason(text, sizeof text));
    cow_lookup_close(lookup);
}

void cli_check_used_slots(cli_check *check, const cli_pool *pool)
{
    size_t row_size = COW_SLOT_TRIMMED_AT + 4 * (size_t)pool->rank;
    uint8_t row[COW_SLOT_TRIMMED_AT + 4 * COW_MAX_RANK];

    if (pool->rows->row_size != row_size)
        return;
    for (uint64_t slot = 0; slot < pool->room && slot < pool->slots; slot++)
        if (check->used[pool->id][slot] && pool->rows->read(pool->rows, slot, 1, row) >= 0 && cli_slot_is_free(row))
            named_but_free(check, pool, slot);
    cow_error_clear();
}
