/* Chunks in and out of a pool, in batches: see stored.h.
 *
 * Promises
 *  1. A chunk whose bytes are those of the slot it has keeps the slot, and nothing is written.
 *  2. The index names a slot only after its bytes were handed to the store; a batch that fails leaves the index with
 *     what was stored so far, and gives back every use it took for the rest.
 *  3. No decoded byte reaches a caller before its chunk's checksum was compared.
 */
#include "io/stored.h"

#include "error.h"
#include "io/cache.h"
#include "io/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this a second thread costs more than it saves. */
#define PARALLEL_BYTES ((size_t)256 << 10)

static size_t aligned(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

static unsigned threads_for(const cow_array *array, size_t n)
{
    return n > 1 && n * array->chunk_bytes >= PARALLEL_BYTES ? array->threads : 1;
}

void cow_chunk_trimmed(const cow_array *array, const uint64_t chunk[], uint64_t trimmed[])
{
    for (unsigned d = 0; d < array->grid.rank; d++) {
        uint64_t size = array->grid.chunk[d], inside = array->extent[d] - chunk[d] * size;
        trimmed[d] = inside < size ? inside : size;
    }
}

const char *cow_chunk_place(const cow_array *array, const uint64_t chunk[], char text[COW_PLACE_SIZE])
{
    size_t at = 0;

    for (unsigned d = 0; d < array->grid.rank; d++)
        at += (size_t)snprintf(text + at, COW_PLACE_SIZE - at, "%s%" PRIu64, d == 0 ? "(" : ", ",
                               chunk[d] * array->grid.chunk[d]);
    snprintf(text + at, COW_PLACE_SIZE - at, ")");
    return text;
}

const void *cow_new_fill(const cow_array *array)
{
    return array->fill_new ? array->fill : NULL;
}

int cow_chunk_verify(const cow_array *array, const uint64_t chunk[], uint64_t slot, uint64_t checksum,
                     uint64_t expected)
{
    char place[COW_PLACE_SIZE];

    if (checksum == expected)
        return 0;
    return cow_error(COW_CORRUPT,
                     "%s: the chunk at %s is not what was written: its checksum differs (%s, slot %" PRIu64 "); run "
                     "h5cow verify on the file; an older version may still have the chunk",
                     array->label, cow_chunk_place(array, chunk, place), cow_pool_name(array->pool), slot);
}

int cow_stored_set(cow_array *array, const uint64_t chunk[], uint64_t slot)
{
    uint64_t old = COW_HOLE;

    if (cow_index_set(array->index, chunk, slot, &old) < 0)
        return -1;
    cow_cache_forget_listing(array->cache);
    if (old != COW_HOLE)
        cow_pool_drop(array->pool, old);
    return 0;
}

/* ---- in ---- */

typedef struct save_batch {
    cow_array *array;
    cow_save *saves;
    cow_save **add; /* those that get a new slot, in the order of slots */
    int (*prepare)(void *context, cow_save *save);
    void *context;
} save_batch;

static int digest_one(void *context, size_t i)
{
    save_batch *b = context;
    cow_save *save = &b->saves[i];
    uint64_t trimmed[COW_MAX_RANK];

    if (b->prepare != NULL && b->prepare(b->context, save) < 0)
        return -1;
    cow_chunk_trimmed(b->array, save->chunk, trimmed);
    return cow_digest_chunk(save->bytes, b->array->grid.rank, b->array->grid.chunk, trimmed, b->array->element_size,
                            &save->digest);
}

static int encode_one(void *context, size_t i)
{
    save_batch *b = context;
    cow_save *save = b->add[i];

    if (save->ready != NULL) {
        save->encoded = save->ready;
        save->size = save->ready_size;
        save->mask = save->ready_mask;
        return 0;
    }
    save->encoded = save->room;
    return cow_codec_encode(b->array->codec, save->bytes, save->room, &save->size, &save->mask);
}

/* What the chunk's slot will be: the one it has, a known one, or a new one (save->add). Takes one use of it, except
 * where the chunk keeps its slot (save->settled). */
static int choose_slot(cow_array *array, cow_save *save)
{
    uint64_t trimmed[COW_MAX_RANK];
    cow_slot row;

    if (cow_index_get(array->index, save->chunk, &save->old) < 0)
        return -1;
    if (save->old != COW_HOLE) {
        if (cow_pool_row(array->pool, save->old, &row) < 0)
            return cow_context("%s: looking at the slot of a chunk", array->label);
        if (memcmp(row.digest.hash, save->digest.hash, COW_HASH_SIZE) == 0) {
            save->settled = true;
            return 0;
        }
    }
    if (cow_pool_find(array->pool, &save->digest, &save->slot) < 0)
        return -1;
    if (save->slot != COW_NO_SLOT)
        return 0;
    row = (cow_slot){.digest = save->digest};
    cow_chunk_trimmed(array, save->chunk, trimmed);
    for (unsigned d = 0; d < array->grid.rank; d++)
        row.trimmed[d] = (uint32_t)trimmed[d];
    if (cow_pool_add(array->pool, &row, &save->slot) < 0) {
        save->slot = COW_NO_SLOT;
        return -1;
    }
    save->add = true;
    return 0;
}

/* Encode (on the worker threads) and write COUNT new chunks. */
static int write_new(save_batch *b, size_t count)
{
    cow_array *array = b->array;
    cow_chunk_store *store = cow_pool_store(array->pool);

    if (cow_codec_identity(array->codec)) {
        for (size_t i = 0; i < count; i++) {
            if (store->write(store, b->add[i]->slot, b->add[i]->bytes, array->chunk_bytes, 0) < 0)
                return cow_context("%s: storing a chunk", array->label);
        }
        return 0;
    }
    /* Encoded chunks may be larger than decoded ones: no more at once than fits a batch. */
    size_t bound = aligned(cow_codec_bound(array->codec)), most = COW_BATCH_BYTES / bound + 1;
    cow_save **all = b->add;
    uint8_t *room;
    int status = -1;

    if (most > count)
        most = count;
    if (count > 0 && (room = cow_cache_scratch(array->cache, COW_BUFFER_ENCODED, most * bound)) == NULL)
        return -1;
    for (size_t done = 0; done < count; done += most) {
        size_t n = count - done < most ? count - done : most;

        b->add = all + done;
        for (size_t i = 0; i < n; i++)
            b->add[i]->room = room + i * bound;
        if (cow_parallel(n, cow_codec_parallel(array->codec) ? threads_for(array, n) : 1, encode_one, b) < 0) {
            cow_context("%s: encoding a chunk", array->label);
            goto done;
        }
        for (size_t i = 0; i < n; i++)
            if (store->write(store, b->add[i]->slot, b->add[i]->encoded, b->add[i]->size, b->add[i]->mask) < 0) {
                cow_context("%s: storing a chunk", array->label);
                goto done;
            }
    }
    status = 0;
done:
    b->add = all;
    return status;
}

/* Tile by tile, inside a tile as slots stand in a leaf: then neighbours in the grid get neighbouring slots. */
static int compare_saves(const void *a, const void *b, void *context)
{
    const cow_save *x = a, *y = b;
    const cow_grid *grid = context;

    for (unsigned d = 0; d < grid->rank; d++) {
        uint64_t p = x->chunk[d] / grid->tile[d], q = y->chunk[d] / grid->tile[d];
        if (p != q)
            return p < q ? -1 : 1;
    }
    for (unsigned d = grid->rank; d-- > 0;)
        if (x->chunk[d] != y->chunk[d])
            return x->chunk[d] < y->chunk[d] ? -1 : 1;
    return 0;
}

static void sort_saves(const cow_grid *grid, cow_save *saves, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (compare_saves(&saves[i - 1], &saves[i], (void *)(uintptr_t)grid) > 0) {
            qsort_r(saves, n, sizeof *saves, compare_saves, (void *)(uintptr_t)grid);
            return;
        }
}

int cow_stored_save(cow_array *array, cow_save *saves, size_t n, int (*prepare)(void *context, cow_save *save),
                    void *context)
{
    cow_save *few[16];
    save_batch b = {.array = array, .saves = saves, .add = few, .prepare = prepare, .context = context};
    size_t adds = 0;
    int status = -1;

    if (n > sizeof few / sizeof *few && (b.add = malloc(n * sizeof *b.add)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory to store %zu chunks", array->label, n);
    sort_saves(&array->grid, saves, n);
    for (size_t i = 0; i < n; i++) {
        saves[i].slot = COW_NO_SLOT;
        saves[i].add = saves[i].settled = false;
    }
    if (cow_parallel(n, threads_for(array, n), digest_one, &b) < 0)
        goto done;
    for (size_t i = 0; i < n; i++) {
        if (choose_slot(array, &saves[i]) < 0)
            goto done;
        if (saves[i].add)
            b.add[adds++] = &saves[i];
    }
    if (write_new(&b, adds) < 0)
        goto done;
    for (size_t i = 0; i < n; i++) {
        if (saves[i].settled)
            continue;
        if (cow_stored_set(array, saves[i].chunk, saves[i].slot) < 0)
            goto done;
        saves[i].settled = true;
    }
    status = 0;
done:
    if (status < 0)
        for (size_t i = 0; i < n; i++)
            if (!saves[i].settled && saves[i].slot != COW_NO_SLOT)
                cow_pool_drop(array->pool, saves[i].slot);
    if (b.add != few)
        free(b.add);
    return status;
}

/* ---- out ---- */

typedef struct load_batch {
    cow_array *array;
    cow_load *loads;
    int (*done)(void *context, cow_load *load);
    void *context;
} load_batch;

static int finish_load(void *context, size_t i)
{
    load_batch *b = context;
    cow_load *load = &b->loads[i];
    char place[COW_PLACE_SIZE];

    if (load->raw != NULL && cow_codec_decode(b->array->codec, load->raw, load->size, load->mask, load->bytes) < 0)
        return cow_context("%s: the chunk at %s cannot be decoded (%s, slot %" PRIu64 "); run h5cow verify on the file; "
                           "an older version may still have the chunk",
                           b->array->label, cow_chunk_place(b->array, load->chunk, place),
                           cow_pool_name(b->array->pool), load->slot);
    if (cow_chunk_verify(b->array, load->chunk, load->slot, cow_checksum(load->bytes, b->array->chunk_bytes),
                         load->row.digest.checksum) < 0)
        return -1;
    return b->done == NULL ? 0 : b->done(b->context, load);
}

int cow_stored_load(cow_array *array, cow_load *loads, size_t n, int (*done)(void *context, cow_load *load),
                    void *context)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    bool identity = cow_codec_identity(array->codec);
    char place[COW_PLACE_SIZE];

    for (size_t first = 0, count; first < n; first += count) {
        load_batch b = {.array = array, .loads = loads + first, .done = done, .context = context};
        size_t raw_bytes = 0;
        uint8_t *room = NULL;

        for (count = 0; first + count < n && raw_bytes < COW_BATCH_BYTES; count++) {
            cow_load *load = &loads[first + count];

            load->raw = NULL;
            if (cow_pool_row(array->pool, load->slot, &load->row) < 0 ||
                store->size(store, load->slot, &load->size) < 0)
                goto failed;
            if (identity && load->size != array->chunk_bytes)
                return cow_error(COW_CORRUPT,
                                 "%s: the chunk at %s has %zu bytes in the file, but %zu are expected (%s, slot %" PRIu64
                                 "); run h5cow verify on the file",
                                 array->label, cow_chunk_place(array, load->chunk, place), load->size,
                                 array->chunk_bytes, cow_pool_name(array->pool), load->slot);
            if (!identity)
                raw_bytes += aligned(load->size);
        }
        if (!identity && (room = cow_cache_scratch(array->cache, COW_BUFFER_RAW, raw_bytes)) == NULL)
            return -1;
        for (size_t i = 0; i < count; i++) {
            cow_load *load = &b.loads[i];

            if (!identity) {
                load->raw = room;
                room += aligned(load->size);
            }
            if (store->read(store, load->slot, identity ? load->bytes : load->raw, load->size, &load->mask) < 0)
                goto failed;
        }
        if (cow_parallel(count, identity || cow_codec_parallel(array->codec) ? threads_for(array, count) : 1,
                         finish_load, &b) < 0)
            return -1;
    }
    return 0;
failed:
    return cow_context("%s: reading chunks", array->label);
}
