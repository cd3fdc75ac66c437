/* Transfers chunk by chunk: a regular file selection and memory that is addressed by position (transfer.h).
 *
 * Pieces are taken in batches. What a batch writes completely goes to the pool at once when there is much of it, without
 * living in the cache, and without any copy where the application's memory has the chunk in one block; everything else
 * goes through the cache. What a batch reads completely is read, where that can be, and decoded on the worker threads straight to
 * where it belongs, and stays out of the cache, which is for chunks that are met again.
 */
#include "io/transfer.h"

#include "base/error.h"
#include "io/chunk_cache.h"
#include "io/heap.h"
#include "io/stored.h"

#include <stdlib.h>
#include <string.h>

/* Chunks of a batch that writes whole ones, where its bytes would allow less. */
#define WHOLE_CHUNKS 256

/* One batch. With conversion the elements of all its pieces are packed one after another. */
typedef struct batch {
    const cow_transfer *transfer;
    const cow_plan *plan;
    const cow_plan_memory *memory;
    cow_piece *pieces;
    size_t n;
    uint64_t elements;
    uint8_t *packed, *background;
    uint64_t *packed_at; /* elements; of each piece */
    bool *skip;          /* reading: a hole without fill value */
    void *items;         /* cow_save or cow_load, room for n */
} batch;

/* Where PIECE i is for the chunk's side of the transfer: in memory, or packed in the file's type. */
static void chunk_memory(const batch *b, size_t i, cow_plan_memory *memory)
{
    size_t size = b->transfer->array->element_size;

    if (b->packed == NULL)
        *memory = *b->memory;
    else
        cow_plan_memory_packed(memory, b->plan->rank, b->pieces[i].from, b->pieces[i].to, size,
                               b->packed + b->packed_at[i] * size);
}

/* The elements of PIECE between a chunk and memory, in the file's type or of it the parts that the program's type has. */
static void to_chunk(const batch *b, const cow_piece *piece, void *chunk, const cow_plan_memory *memory)
{
    const cow_transfer *t = b->transfer;

    if (t->parts == 0)
        cow_piece_to_chunk(b->plan, piece, t->array->element_size, chunk, memory);
    else
        cow_piece_parts_to_chunk(b->plan, piece, t->array->element_size, chunk, memory, t->part, t->parts);
}

static void from_chunk(const batch *b, const cow_piece *piece, const void *chunk, const cow_plan_memory *memory)
{
    const cow_transfer *t = b->transfer;

    if (t->parts == 0)
        cow_piece_from_chunk(b->plan, piece, t->array->element_size, chunk, memory);
    else
        cow_piece_parts_from_chunk(b->plan, piece, t->array->element_size, chunk, memory, t->part, t->parts);
}

/* Where PIECE begins in MEMORY when it is a whole chunk as the file has it, in one block; else NULL. */
static void *as_chunk(const batch *b, const cow_piece *piece, const cow_plan_memory *memory)
{
    return b->transfer->parts > 0 ? NULL
                                  : cow_piece_contiguous(b->plan, piece, b->transfer->array->element_size, memory);
}

/* Copy all pieces between the application's memory and PACKED, in the memory type. */
static void pack(const batch *b, uint8_t *packed)
{
    size_t size = b->transfer->mem_size;
    cow_plan_memory memory;

    for (size_t i = 0; i < b->n; i++) {
        const cow_piece *piece = &b->pieces[i];
        cow_plan_memory_packed(&memory, b->plan->rank, piece->from, piece->to, size, packed + b->packed_at[i] * size);
        cow_piece_copy(b->plan, piece, size, &memory, b->memory);
    }
}

static void unpack(const batch *b, uint8_t *packed)
{
    size_t size = b->transfer->mem_size;
    cow_plan_memory memory;

    for (size_t i = 0; i < b->n; i++) {
        const cow_piece *piece = &b->pieces[i];
        if (b->skip[i])
            continue;
        cow_plan_memory_packed(&memory, b->plan->rank, piece->from, piece->to, size, packed + b->packed_at[i] * size);
        cow_piece_copy(b->plan, piece, size, b->memory, &memory);
    }
}

/* ---- writing ---- */

/* A piece is whole that writes all inside the extent. Of a chunk that the extent cuts, what is outside is left alone, as in
 * HDF5: where that is not what it is in a new chunk, or may not be, the piece is none. */
static int keep_edges(const batch *b)
{
    cow_array *array = b->transfer->array;
    uint64_t trimmed[COW_MAX_RANK], slot;
    cow_slot row;

    for (size_t i = 0; i < b->n; i++) {
        cow_piece *piece = &b->pieces[i];

        if (!piece->whole || piece->elements == array->chunk_bytes / array->element_size)
            continue;
        piece->whole = cow_chunk_cache_find(array, piece->chunk) == NULL;
        if (!piece->whole)
            continue;
        if (cow_index_get(array->index, piece->chunk, &slot) < 0)
            return -1;
        if (slot == COW_HOLE)
            continue;
        if (cow_is_composed(slot)) { /* nobody noted what it has there */
            piece->whole = false;
            continue;
        }
        if (cow_pool_row(array->pool, slot, &row) < 0)
            return cow_error_where(array->label, "looking at the slot of a chunk");
        cow_array_chunk_trimmed(array, piece->chunk, trimmed);
        for (unsigned d = 0; d < array->grid.rank; d++)
            piece->whole = piece->whole && row.trimmed[d] <= trimmed[d];
    }
    return 0;
}

static int gather_piece(void *context, cow_save *save, void *room)
{
    const batch *b = context;
    const cow_array *array = b->transfer->array;
    const cow_piece *piece = &b->pieces[save->index];
    uint64_t trimmed[COW_MAX_RANK];
    cow_plan_memory memory;

    chunk_memory(b, save->index, &memory);
    if (b->packed != NULL && (save->bytes = as_chunk(b, piece, &memory)) != NULL)
        return 0; /* ours already */
    save->bytes = room;
    if (save->runs != NULL && b->transfer->parts == 0 &&
        (save->n_runs = cow_piece_runs(b->plan, piece, array->element_size, &memory, COW_RUN_BYTES, save->runs,
                                       cow_stored_runs(array->chunk_bytes))) > 0)
        return 0;
    cow_array_chunk_trimmed(array, piece->chunk, trimmed);
    cow_fill_padding(&array->grid, trimmed, array->element_size, cow_array_new_fill(array), room);
    to_chunk(b, piece, room, &memory);
    return 0;
}

/* Hand the chunks that are written completely to the pool, when they are worth a batch. Returns 1 when done so. */
static int write_whole(batch *b)
{
    cow_array *array = b->transfer->array;
    size_t enough = COW_BATCH_BYTES / 4, limit = cow_chunk_cache_limit(array->cache), n = 0;
    cow_save *saves = b->items;
    int status;

    if (enough > limit / 2)
        enough = limit / 2;
    for (size_t i = 0; i < b->n; i++)
        if (b->pieces[i].whole)
            saves[n++] = (cow_save){.chunk = b->pieces[i].chunk, .index = i};
    if (n * array->chunk_bytes < enough || (n == 1 && array->chunk_bytes < limit / 2))
        return 0;
    status = cow_stored_save(array, saves, n, gather_piece, b);
    for (size_t i = 0; i < n; i++) {
        cow_cached_chunk *entry = saves[i].settled ? cow_chunk_cache_find(array, saves[i].chunk) : NULL;
        if (entry != NULL) /* what it holds is history; but where storing failed, the last write that did not */
            cow_chunk_cache_remove(entry);
    }
    return status < 0 ? -1 : 1;
}

/* Load what a batch touches partly and the cache does not have. ALL: also what it touches completely. */
static int prefetch(const batch *b, bool all)
{
    cow_array *array = b->transfer->array;
    unsigned rank = array->grid.rank;
    uint64_t *chunks;
    size_t n = 0;

    if (b->n < 2)
        return 0;
    if ((chunks = cow_chunk_cache_scratch(array->cache, COW_BUFFER_CHUNKS, b->n * rank * sizeof *chunks)) == NULL)
        return -1;
    for (size_t i = 0; i < b->n; i++)
        if (all || !b->pieces[i].whole)
            memcpy(chunks + n++ * rank, b->pieces[i].chunk, rank * sizeof *chunks);
    return cow_chunk_cache_prefetch(array, chunks, n);
}

/* The destination of a compound subset: what the chunks hold now. */
static int read_background(const batch *b)
{
    cow_array *array = b->transfer->array;
    cow_plan_memory memory;

    if (prefetch(b, true) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        const cow_piece *piece = &b->pieces[i];
        cow_cached_chunk *entry = cow_chunk_cache_get(array, piece->chunk, false);

        if (entry == NULL)
            return -1;
        cow_plan_memory_packed(&memory, b->plan->rank, piece->from, piece->to, array->element_size,
                               b->background + b->packed_at[i] * array->element_size);
        cow_piece_from_chunk(b->plan, piece, array->element_size, entry->bytes, &memory);
    }
    return 0;
}

/* Is every byte of an element written? */
static bool covers(const cow_transfer *transfer)
{
    size_t bytes = 0;

    for (size_t i = 0; i < transfer->parts; i++)
        bytes += transfer->part[i].size;
    return transfer->parts == 0 || bytes == transfer->array->element_size;
}

static int write_batch(batch *b)
{
    const cow_transfer *transfer = b->transfer;
    cow_array *array = transfer->array;
    int direct;

    if (b->packed != NULL) {
        pack(b, b->packed);
        if (transfer->conversion.background == COW_BACKGROUND_CONTENT && read_background(b) < 0)
            return -1;
        if (cow_transfer_convert(transfer, b->elements, b->packed, b->background) < 0)
            return -1;
    }
    if (!covers(transfer)) /* the rest of each element stays as it is */
        for (size_t i = 0; i < b->n; i++)
            b->pieces[i].whole = false;
    if (keep_edges(b) < 0 || (direct = write_whole(b)) < 0 || prefetch(b, false) < 0)
        return -1;
    for (size_t i = 0; i < b->n; i++) {
        const cow_piece *piece = &b->pieces[i];
        cow_cached_chunk *entry;
        cow_plan_memory memory;
        size_t from, to;

        if (direct > 0 && piece->whole)
            continue;
        if (covers(transfer) && cow_piece_range(b->plan, piece, array->element_size, &from, &to))
            entry = cow_chunk_cache_part(array, piece->chunk, from, to, piece->whole);
        else
            entry = cow_chunk_cache_get(array, piece->chunk, piece->whole);
        if (entry == NULL)
            return -1;
        chunk_memory(b, i, &memory);
        to_chunk(b, piece, entry->bytes, &memory);
        cow_chunk_cache_dirty(entry);
    }
    return 0;
}

/* ---- reading ---- */

static int scatter_piece(void *context, cow_load *load)
{
    const batch *b = context;
    cow_plan_memory memory;

    chunk_memory(b, load->index, &memory);
    if (load->bytes != as_chunk(b, &b->pieces[load->index], &memory))
        from_chunk(b, &b->pieces[load->index], load->bytes, &memory);
    return 0;
}

/* Where the elements of a whole chunk belong, if they go there as they are in the file. */
static size_t runs_of_piece(void *context, const cow_load *load, struct iovec runs[COW_RUNS])
{
    const batch *b = context;
    cow_plan_memory memory;

    if (b->transfer->parts > 0)
        return 0;
    chunk_memory(b, load->index, &memory);
    return cow_piece_runs(b->plan, &b->pieces[load->index], b->transfer->array->element_size, &memory, COW_RUN_BYTES,
                          runs, COW_RUNS);
}

/* The elements of a chunk that has no slot. */
static void read_hole(const batch *b, size_t i, const cow_plan_memory *memory)
{
    const cow_array *array = b->transfer->array;

    if (array->fill != NULL && b->transfer->parts > 0) {
        cow_piece_parts_fill(b->plan, &b->pieces[i], array->fill, memory, b->transfer->part, b->transfer->parts);
        return;
    }
    if (array->fill != NULL) {
        cow_piece_fill(b->plan, &b->pieces[i], array->element_size, array->fill, memory);
        return;
    }
    if (b->packed != NULL) /* something to convert; it does not go to memory */
        memset(memory->base, 0, b->pieces[i].elements * array->element_size);
    b->skip[i] = true;
}

static int read_chunks(batch *b)
{
    cow_array *array = b->transfer->array;
    cow_load *loads = b->items;
    size_t n = 0, partly = 0;
    bool *later = b->skip + b->n;
    cow_plan_memory memory;

    for (size_t i = 0; i < b->n; i++) {
        const cow_piece *piece = &b->pieces[i];
        cow_cached_chunk *entry = cow_chunk_cache_find(array, piece->chunk);
        uint64_t slot;

        b->skip[i] = later[i] = false;
        chunk_memory(b, i, &memory);
        if (entry != NULL) {
            from_chunk(b, piece, entry->bytes, &memory);
            continue;
        }
        if (cow_index_get(array->index, piece->chunk, &slot) < 0)
            return cow_error_where(array->label, "looking for a chunk");
        if (slot == COW_HOLE) {
            read_hole(b, i, &memory);
        } else if (piece->whole) {
            loads[n] = (cow_load){.chunk = piece->chunk, .slot = slot, .index = i};
            loads[n++].bytes = as_chunk(b, piece, &memory);
        } else {
            later[i] = true;
            partly++;
        }
    }
    const cow_load_calls calls = {.done = scatter_piece, .runs = runs_of_piece, .context = b};
    if (n > 0 && cow_stored_load(array, loads, n, &calls) < 0)
        return -1;
    if (partly > 0 && prefetch(b, false) < 0)
        return -1;
    for (size_t i = 0; partly > 0 && i < b->n; i++) {
        cow_cached_chunk *entry;

        if (!later[i])
            continue;
        if ((entry = cow_chunk_cache_get(array, b->pieces[i].chunk, false)) == NULL)
            return -1;
        chunk_memory(b, i, &memory);
        from_chunk(b, &b->pieces[i], entry->bytes, &memory);
    }
    return 0;
}

static int read_batch(batch *b)
{
    const cow_transfer *transfer = b->transfer;

    if (read_chunks(b) < 0)
        return -1;
    if (b->packed == NULL)
        return 0;
    if (transfer->conversion.background == COW_BACKGROUND_CONTENT)
        pack(b, b->background);
    if (cow_transfer_convert(transfer, b->elements, b->packed, b->background) < 0)
        return -1;
    unpack(b, b->packed);
    return 0;
}

/* ---- heap arrays ---- */

/* The places of a piece's elements in its chunk, in selection order. */
static void places_of(const cow_plan *plan, const cow_piece *piece, uint64_t place[])
{
    const cow_grid *grid = plan->grid;
    uint64_t position[COW_MAX_RANK];

    memcpy(position, piece->from, grid->rank * sizeof *position);
    for (uint64_t i = 0; i < piece->elements; i++) {
        place[i] = 0;
        for (unsigned d = 0; d < grid->rank; d++)
            place[i] = place[i] * grid->chunk[d] + cow_slab_coordinate(&plan->slab[d], position[d]) -
                       piece->chunk[d] * grid->chunk[d];
        for (unsigned d = grid->rank; d-- > 0;) {
            if (++position[d] < piece->to[d])
                break;
            position[d] = piece->from[d];
        }
    }
}

static int heap_batch(batch *b)
{
    const cow_transfer *transfer = b->transfer;
    cow_array *array = transfer->array;
    uint64_t first[COW_MAX_RANK], count[COW_MAX_RANK], *place = NULL;
    int status = 0;

    pack(b, b->packed); /* for a read as well: members that the file does not have are left alone */
    for (size_t i = 0; i < b->n; i++) {
        const cow_piece *piece = &b->pieces[i];
        cow_heap_part part = {.chunk = piece->chunk, .elements = piece->elements, .whole = piece->whole};
        uint8_t *packed = b->packed + b->packed_at[i] * transfer->mem_size;

        if (piece->box) {
            for (unsigned d = 0; d < b->plan->rank; d++) {
                first[d] =
                    cow_slab_coordinate(&b->plan->slab[d], piece->from[d]) - piece->chunk[d] * array->grid.chunk[d];
                count[d] = piece->to[d] - piece->from[d];
            }
            part.first = first;
            part.count = count;
        } else {
            if ((place = cow_chunk_cache_scratch(array->cache, COW_BUFFER_SPANS, piece->elements * sizeof *place)) ==
                NULL) {
                status = -1;
                b->n = i;
                break;
            }
            places_of(b->plan, piece, place);
            part.place = place;
        }
        if (cow_transfer_heap(transfer, &part, packed) < 0) {
            status = -1;
            b->n = i;
            break;
        }
        b->skip[i] = false;
    }
    if (!transfer->write)
        unpack(b, b->packed); /* after an error as well: what was read so far is the application's to free */
    return status;
}

/* ---- batches ---- */

static int run_batch(batch *b)
{
    const cow_transfer *transfer = b->transfer;
    cow_chunk_cache *cache = transfer->array->cache;

    b->elements = 0;
    b->packed = b->background = NULL;
    if (transfer->array->heap || (transfer->conversion.needed && transfer->parts == 0)) {
        size_t size = transfer->array->heap ? transfer->mem_size : transfer->conversion.size;

        for (size_t i = 0; i < b->n; i++) {
            b->packed_at[i] = b->elements;
            b->elements += b->pieces[i].elements;
        }
        if ((b->packed = cow_chunk_cache_scratch(cache, COW_BUFFER_PACKED, b->elements * size)) == NULL)
            return -1;
        if (transfer->conversion.background != COW_BACKGROUND_NONE &&
            (b->background = cow_chunk_cache_scratch(cache, COW_BUFFER_BACKGROUND,
                                                     b->elements * transfer->conversion.to_size)) == NULL)
            return -1;
    }
    if (transfer->array->heap)
        return heap_batch(b);
    return transfer->write ? write_batch(b) : read_batch(b);
}

/* Pieces of one batch at most. */
static size_t batch_size(const cow_transfer *transfer)
{
    const cow_array *array = transfer->array;
    size_t bytes = array->chunk_bytes, most;

    if (transfer->conversion.needed && transfer->conversion.size > array->element_size)
        bytes = bytes / array->element_size * transfer->conversion.size;
    most = COW_BATCH_BYTES / bytes;
    return most == 0 ? 1 : most > COW_BATCH_CHUNKS ? COW_BATCH_CHUNKS : most;
}

/* Chunks that are written as a whole go through the pipeline from the program's memory: a batch of them may have more, so that the
 * pipeline runs empty less often. */
static bool may_have_more(const batch *b)
{
    if (!b->transfer->write || b->transfer->array->heap || b->transfer->conversion.needed)
        return false;
    for (size_t i = 0; i < b->n; i++)
        if (!b->pieces[i].whole)
            return false;
    return true;
}

int cow_transfer_pieces(const cow_transfer *transfer, cow_plan *plan, const cow_plan_memory *memory)
{
    cow_chunk_cache *cache = transfer->array->cache;
    size_t most = batch_size(transfer), room = most > WHOLE_CHUNKS ? most : WHOLE_CHUNKS,
           item = sizeof(cow_save) > sizeof(cow_load) ? sizeof(cow_save) : sizeof(cow_load);
    batch b = {.transfer = transfer, .plan = plan, .memory = memory, .n = 1};
    cow_piece first, second;
    uint64_t packed_at;
    bool skip[2];
    union {
        cow_save save;
        cow_load load;
    } one;
    bool more = cow_plan_next(plan, &first);

    if (!more)
        return 0;
    /* Most small transfers touch one chunk: no memory but the stack's. */
    if (!(more = cow_plan_next(plan, &second)) || most == 1) {
        b.pieces = &first;
        b.packed_at = &packed_at;
        b.skip = skip;
        b.items = &one;
        if (run_batch(&b) < 0)
            return -1;
        while (more) { /* chunks that are each a batch of their own */
            first = second;
            more = cow_plan_next(plan, &second);
            if (run_batch(&b) < 0)
                return -1;
        }
        return 0;
    }
    if ((b.pieces = cow_chunk_cache_scratch(
             cache, COW_BUFFER_PIECES, room * (sizeof *b.pieces + sizeof *b.packed_at + 2 * sizeof *b.skip))) == NULL ||
        (b.items = cow_chunk_cache_scratch(cache, COW_BUFFER_ITEMS, room * item)) == NULL)
        return -1;
    b.packed_at = (uint64_t *)(b.pieces + room);
    b.skip = (bool *)(b.packed_at + room);
    b.pieces[0] = first;
    b.pieces[1] = second;
    b.n = 2;
    do {
        while (b.n < most && (more = cow_plan_next(plan, &b.pieces[b.n])))
            b.n++;
        for (bool whole = may_have_more(&b); more && whole && b.n < room; b.n += more)
            if ((more = cow_plan_next(plan, &b.pieces[b.n])))
                whole = b.pieces[b.n].whole;
        if (b.n > 0 && run_batch(&b) < 0)
            return -1;
        b.n = 0;
    } while (more);
    return 0;
}
