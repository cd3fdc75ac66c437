/* Chunks in and out of a pool, in batches: see stored.h.
 *
 * Promises
 *  1. A chunk whose bytes are those of the slot it has keeps the slot, and nothing is written.
 *  2. The index names a slot only after its bytes were handed to the store; a batch that fails leaves the index with
 *     what was stored so far, and gives back every use it took for the rest.
 *  3. Nobody is told that a chunk was read before its checksum was compared, unless it asked for that (cow_filtering).
 *  4. Filters that are not ours may be lossy. Digest and cached chunk are then those of what can be read again, so the
 *     same values are the same chunk whether they were written just now or came out of the file.
 *  5. What the program changes while it is written is stored as it was when it was copied: nothing looks twice at memory of the program.
 *  6. Which slots are given out does not depend on the threads. For that, a slot that the index lets go of is dropped,
 *     and so free to be given out again, only when the chunk comes to its turn that the pipeline begins after it.
 */
#include "io/stored.h"

#include "base/error.h"
#include "io/chunk_cache.h"
#include "io/composed.h"
#include "io/plan.h"
#include "io/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Below this a second thread costs more than it saves. */
#define PARALLEL_BYTES ((size_t)256 << 10)

/* Small chunks go through the pipeline in groups of about so many bytes, others in pairs, which are hashed faster, or in
 * as many as are hashed fastest where hashing is all there is to do; but few chunks one by one, so that every thread
 * gets some. */
#define GROUP_BYTES ((size_t)64 << 10)
#define PAIRS_FROM  16
/* Decoded bytes in a pipeline: what fits a core's cache, but some chunks in any case, but not endless memory. */
#define WINDOW_BYTES     ((size_t)4 << 20)
#define WINDOW_CHUNKS    8
#define WINDOW_BYTES_MAX ((size_t)32 << 20)

static size_t aligned(size_t size)
{
    return (size + 63) & ~(size_t)63;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The pipeline of N chunks. HASH: they are hashed, and nothing else. *GROUP: chunks of one item. */
static cow_pipeline pipeline_for(const cow_array *array, size_t n, bool hash, size_t *group)
{
    cow_pipeline pipeline = {.window = 1, .threads = n * array->chunk_bytes >= PARALLEL_BYTES ? array->threads : 1};
    bool asks = array->filtering != NULL && array->filtering->callback != NULL;
    size_t least = WINDOW_CHUNKS;

    if (asks) /* the application, which expects its own thread */
        pipeline.threads = 1;
    if (n == 0) {
        *group = 1;
        return pipeline;
    }
    *group = array->chunk_bytes < GROUP_BYTES / 2 ? smaller(GROUP_BYTES / array->chunk_bytes, COW_BATCH_CHUNKS) : 2;
    *group = n < PAIRS_FROM ? 1 : *group;
    if (hash && *group < cow_digest_best() && n >= cow_digest_best() * pipeline.threads &&
        cow_digest_best() * (pipeline.threads + 1) * array->chunk_bytes <= WINDOW_BYTES_MAX) {
        *group = cow_digest_best();
        least = pipeline.threads + 1;
    }
    pipeline.count = (n + *group - 1) / *group;
    pipeline.window = WINDOW_BYTES / (*group * array->chunk_bytes);
    if (pipeline.window < least)
        pipeline.window = least;
    pipeline.window = smaller(pipeline.window, WINDOW_BYTES_MAX / array->chunk_bytes + 1);
    pipeline.window = smaller(smaller(pipeline.window, COW_WINDOW_MAX), pipeline.count);
    return pipeline;
}

void cow_array_chunk_trimmed(const cow_array *array, const uint64_t chunk[], uint64_t trimmed[])
{
    for (unsigned d = 0; d < array->grid.rank; d++) {
        uint64_t size = array->grid.chunk[d], inside = array->extent[d] - chunk[d] * size;
        trimmed[d] = inside < size ? inside : size;
    }
}

bool cow_array_chunk_plain(const cow_array *array, const uint64_t chunk[])
{
    uint64_t trimmed[COW_MAX_RANK];

    if (!array->plain_edges || array->heap)
        return false;
    cow_array_chunk_trimmed(array, chunk, trimmed);
    return memcmp(trimmed, array->grid.chunk, array->grid.rank * sizeof *trimmed) != 0;
}

const char *cow_array_chunk_place(const cow_array *array, const uint64_t chunk[], char text[COW_PLACE_SIZE])
{
    size_t at = 0;

    for (unsigned d = 0; d < array->grid.rank; d++)
        at += (size_t)snprintf(text + at, COW_PLACE_SIZE - at, "%s%" PRIu64, d == 0 ? "(" : ", ",
                               chunk[d] * array->grid.chunk[d]);
    snprintf(text + at, COW_PLACE_SIZE - at, ")");
    return text;
}

const void *cow_array_new_fill(const cow_array *array)
{
    return array->fill_new ? array->fill : NULL;
}

void cow_array_set_fill(const cow_array *array, uint8_t *bytes, size_t from, size_t to)
{
    if (cow_array_new_fill(array) == NULL)
        memset(bytes + from, 0, to - from);
    else
        cow_fill_elements(bytes + from, array->fill, array->element_size, (to - from) / array->element_size);
}

int cow_array_chunk_verify(const cow_array *array, const uint64_t chunk[], uint64_t slot, uint64_t checksum,
                           uint64_t expected)
{
    char place[COW_PLACE_SIZE];

    if (checksum == expected)
        return 0;
    return cow_error(COW_CORRUPT,
                     "%s: the chunk at %s is not what was written: its checksum differs (%s, slot %" PRIu64 "); run "
                     "h5cow verify on the file; an older version may still have the chunk",
                     array->label, cow_array_chunk_place(array, chunk, place), cow_pool_name(array->pool), slot);
}

/* *OLD: the slot that lost its use, which the caller drops. */
static int set_slot(cow_array *array, const uint64_t chunk[], uint64_t slot, uint64_t *old)
{
    *old = COW_HOLE;
    if (cow_index_set(array->index, chunk, slot, old) < 0)
        return -1;
    cow_chunk_cache_forget_listing(array->cache);
    return 0;
}

int cow_stored_set(cow_array *array, const uint64_t chunk[], uint64_t slot)
{
    uint64_t old;

    if (set_slot(array, chunk, slot, &old) < 0)
        return -1;
    if (old != COW_HOLE)
        cow_array_drop(array, old);
    return 0;
}

/* Before filters run on the calling thread, which may be the program's own, and after. */
static bool put_aside(cow_array *array, cow_buffers *aside)
{
    bool programs =
        !cow_codec_parallel(array->codec) || (array->filtering != NULL && array->filtering->callback != NULL);

    if (programs)
        cow_chunk_cache_aside(array, true, aside);
    return programs;
}

/* ---- in ---- */

typedef struct save_line {
    cow_array *array;
    cow_save *saves;
    size_t n, group, window;
    int (*prepare)(void *context, cow_save *save, void *room);
    void *context;
    uint8_t *rooms;     /* a ring: for prepare */
    struct iovec *runs; /* a ring: for prepare; NULL where nothing is hashed before it is encoded (lossy) */
    uint8_t *encoded;   /* a ring */
    size_t bound;       /* bytes of a place in it */
    uint8_t *back;      /* lossy: one chunk decoded again */
    bool identity, parallel, lossy;
} save_line;

/* The chunks of item I. */
static cow_save *group_of(const save_line *l, size_t i, size_t *n)
{
    *n = smaller(l->group, l->n - i * l->group);
    return l->saves + i * l->group;
}

/* The place in the rings. */
static size_t place_of(const save_line *l, const cow_save *save)
{
    return (size_t)(save - l->saves) % (l->window * l->group);
}

static bool is_whole(const cow_array *array, const cow_save *save)
{
    uint64_t trimmed[COW_MAX_RANK];

    cow_array_chunk_trimmed(array, save->chunk, trimmed);
    return memcmp(trimmed, array->grid.chunk, array->grid.rank * sizeof *trimmed) == 0;
}

/* Is what is outside the extent what it is in every new chunk? Else the digest is of the whole chunk: another dataset with
 * these elements would see it when it grows. */
static bool padding_is_new(const cow_array *array, const uint64_t trimmed[], const void *bytes)
{
    return cow_padding_is(&array->grid, trimmed, array->element_size, cow_array_new_fill(array), bytes);
}

size_t cow_stored_runs(size_t bytes)
{
    return bytes < 2 * COW_RUN_BYTES ? 1 : smaller(bytes / COW_RUN_BYTES, COW_RUNS);
}

static int digest_group(void *context, size_t i)
{
    const save_line *l = context;
    const cow_array *array = l->array;
    const cow_grid *grid = &array->grid;
    uint64_t trimmed[COW_MAX_RANK];
    size_t n;
    cow_save *save = group_of(l, i, &n);

    for (size_t k = 0; l->prepare != NULL && k < n; k++) {
        size_t place = place_of(l, &save[k]);

        save[k].runs = l->runs == NULL ? NULL : l->runs + place * cow_stored_runs(array->chunk_bytes);
        if (l->prepare(l->context, &save[k], l->rooms + place * aligned(array->chunk_bytes)) < 0)
            return -1;
    }
    while (n > 0 && !l->lossy) {
        const void *bytes[COW_TOGETHER];
        cow_scattered from[COW_TOGETHER];
        cow_digest *digest[COW_TOGETHER];
        unsigned whole = 0;

        for (; whole < n && whole < COW_TOGETHER && is_whole(array, &save[whole]); whole++) {
            bytes[whole] = save[whole].bytes;
            from[whole] = (cow_scattered){save[whole].runs, save[whole].n_runs};
            digest[whole] = &save[whole].digest;
        }
        cow_array_chunk_trimmed(array, save->chunk, trimmed);
        if (whole == 0)
            save->whole = !padding_is_new(array, trimmed, save->bytes);
        if ((whole > 0 ? cow_digest_many(bytes, from, whole, array->chunk_bytes, grid->rank, grid->chunk, digest)
                       : cow_digest_chunk(save->bytes, grid->rank, grid->chunk, save->whole ? grid->chunk : trimmed,
                                          array->element_size, &save->digest)) < 0)
            return -1;
        whole = whole > 0 ? whole : 1;
        save += whole;
        n -= whole;
    }
    return 0;
}

static int encode(const save_line *l, cow_save *save);

/* Encode a chunk, see what is read again, and digest that. A lossy filter may change what is outside the extent as well. */
static int digest_lossy(const save_line *l, cow_save *save)
{
    const cow_array *array = l->array;
    const void *back = save->ready != NULL || cow_array_chunk_plain(array, save->chunk) ? save->bytes : l->back;
    uint64_t trimmed[COW_MAX_RANK];

    if (encode(l, save) < 0)
        return -1;
    if (save->keep != NULL && back != save->bytes)
        memcpy(save->keep, back, array->chunk_bytes);
    cow_array_chunk_trimmed(array, save->chunk, trimmed);
    save->whole = !padding_is_new(array, trimmed, back);
    return cow_digest_chunk(back, array->grid.rank, array->grid.chunk, save->whole ? array->grid.chunk : trimmed,
                            array->element_size, &save->digest);
}

/* 1: SLOT holds what the application gave, to the byte and with its mask of filters. Else its elements may still be the
 * same, but the application wants its own bytes back: they get a slot of their own. */
static int holds_given(cow_array *array, uint64_t slot, const cow_save *save)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    uint32_t mask = 0;
    size_t size;
    void *bytes;
    int status = -1;

    if (save->ready == NULL)
        return 1;
    if (store->size(store, slot, &size) < 0)
        return cow_context("%s: looking at a stored chunk", array->label);
    if (size != save->ready_size)
        return 0;
    if ((bytes = malloc(size > 0 ? size : 1)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", array->label, size);
    if (store->read(store, slot, bytes, size, &mask) < 0)
        cow_context("%s: looking at a stored chunk", array->label);
    else
        status = mask == save->ready_mask && memcmp(bytes, save->ready, size) == 0;
    free(bytes);
    return status;
}

/* What the chunk's slot will be: the one it has, a known one, or a new one (save->add). Takes one use of it, except
 * where the chunk keeps its slot (save->settled). */
static int choose_slot(cow_array *array, cow_save *save)
{
    uint64_t trimmed[COW_MAX_RANK], old;
    cow_slot row;
    int same, composed;

    if (cow_index_get(array->index, save->chunk, &old) < 0)
        return -1;
    if (old != COW_HOLE && !cow_is_composed(old)) {
        if (cow_pool_row(array->pool, old, &row) < 0)
            return cow_error_where(array->label, "looking at the slot of a chunk");
        if (memcmp(row.digest.hash, save->digest.hash, COW_HASH_SIZE) == 0) {
            if ((same = holds_given(array, old, save)) < 0)
                return -1;
            if ((save->settled = same == 1))
                return 0;
        }
    }
    if (cow_pool_find(array->pool, &save->digest, &save->slot) < 0)
        return -1;
    if (save->slot != COW_NO_SLOT) {
        if ((same = holds_given(array, save->slot, save)) != 0)
            return same < 0 ? -1 : 0;
        cow_pool_drop(array->pool, save->slot);
        save->slot = COW_NO_SLOT;
    }
    if ((composed = cow_composed_save(array, save, old)) != 0)
        return composed < 0 ? -1 : 0;
    row.digest = save->digest;
    cow_array_chunk_trimmed(array, save->chunk, trimmed);
    for (unsigned d = 0; d < array->grid.rank; d++)
        row.trimmed[d] = (uint32_t)(save->whole ? array->grid.chunk[d] : trimmed[d]);
    if (cow_pool_add(array->pool, &row, &save->slot) < 0) {
        save->slot = COW_NO_SLOT;
        return -1;
    }
    save->add = true;
    return 0;
}

static void drop_former(cow_array *array, cow_save *save)
{
    if (save->former != COW_HOLE)
        cow_array_drop(array, save->former);
    save->former = COW_HOLE;
}

static int choose_group(void *context, size_t i)
{
    const save_line *l = context;
    size_t n;
    cow_save *save;
    int adds = 0;

    if (i >= l->window)
        for (save = group_of(l, i - l->window, &n); n > 0; n--)
            drop_former(l->array, save++);
    for (save = group_of(l, i, &n); n > 0; n--, save++) {
        if ((l->lossy && digest_lossy(l, save) < 0) || choose_slot(l->array, save) < 0)
            return -1;
        adds += save->add;
    }
    return adds > 0 && l->parallel;
}

static int encode(const save_line *l, cow_save *save)
{
    if (save->ready != NULL) {
        save->encoded = save->ready;
        save->size = save->ready_size;
        save->mask = save->ready_mask;
    } else if (l->identity) {
        save->encoded = save->bytes;
        save->size = l->array->chunk_bytes;
        save->mask = 0;
    } else if (cow_array_chunk_plain(l->array, save->chunk)) {
        save->encoded = save->bytes;
        save->size = l->array->chunk_bytes;
        save->mask = cow_codec_all(l->array->codec);
    } else {
        cow_array *array = l->array;
        uint8_t *room = l->encoded + place_of(l, save) * l->bound;
        cow_buffers buffers;
        bool aside = put_aside(array, &buffers);
        int status =
            l->lossy ? cow_codec_encode_back(array->codec, array->filtering, save->bytes, room, &save->size,
                                             &save->mask, l->back)
                     : cow_codec_encode_as(array->codec, array->filtering, save->bytes, room, &save->size, &save->mask);

        if (aside)
            cow_chunk_cache_back(array->cache, &buffers);
        if (status < 0) {
            save->refused = !cow_error_is(COW_MEMORY);
            return cow_context("%s: encoding a chunk", array->label);
        }
        save->encoded = room;
    }
    return 0;
}

static int encode_group(void *context, size_t i)
{
    const save_line *l = context;
    size_t n;

    for (cow_save *save = group_of(l, i, &n); n > 0; n--, save++)
        if (save->add && encode(l, save) < 0)
            return -1;
    return 0;
}

static int store_group(void *context, size_t i)
{
    const save_line *l = context;
    cow_array *array = l->array;
    cow_chunk_store *store = cow_pool_store(array->pool);
    size_t n;

    for (cow_save *save = group_of(l, i, &n); n > 0; n--, save++) {
        if (save->settled)
            continue;
        if (save->add) {
            if (l->identity && encode(l, save) < 0)
                return -1;
            if (store->write(store, save->slot, save->encoded, save->size, save->mask) < 0)
                return cow_context("%s: storing a chunk", array->label);
        }
        if (set_slot(array, save->chunk, save->slot, &save->former) < 0)
            return -1;
        save->settled = true;
    }
    return 0;
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

void cow_stored_give_up(cow_array *array, cow_save *saves, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        drop_former(array, &saves[i]);
        if (!saves[i].settled && saves[i].slot != COW_NO_SLOT)
            cow_array_drop(array, saves[i].slot);
    }
}

int cow_stored_save(cow_array *array, cow_save *saves, size_t n,
                    int (*prepare)(void *context, cow_save *save, void *room), void *context)
{
    save_line l = {.array = array,
                   .saves = saves,
                   .n = n,
                   .prepare = prepare,
                   .context = context,
                   .identity = cow_codec_identity(array->codec),
                   .bound = aligned(cow_codec_bound(array->codec))};
    cow_pipeline pipeline = pipeline_for(array, n, l.identity, &l.group);
    size_t places = pipeline.window * l.group;
    cow_saving saving = {.array = array, .saves = saves, .n = n};
    int status;

    sort_saves(&array->grid, saves, n);
    for (size_t i = 0; i < n; i++) {
        saves[i].slot = COW_NO_SLOT;
        saves[i].former = COW_HOLE;
        saves[i].n_runs = 0;
        saves[i].add = saves[i].settled = saves[i].refused = saves[i].whole = false;
    }
    l.window = pipeline.window;
    l.parallel = !l.identity && cow_codec_parallel(array->codec);
    l.lossy = !l.identity && !l.parallel;
    if ((prepare != NULL && (l.rooms = cow_chunk_cache_scratch(array->cache, COW_BUFFER_ROOMS,
                                                               places * aligned(array->chunk_bytes))) == NULL) ||
        (prepare != NULL && !l.lossy &&
         (l.runs = cow_chunk_cache_scratch(array->cache, COW_BUFFER_RUNS,
                                           places * cow_stored_runs(array->chunk_bytes) * sizeof *l.runs)) == NULL) ||
        (!l.identity &&
         (l.encoded = cow_chunk_cache_scratch(array->cache, COW_BUFFER_ENCODED, places * l.bound)) == NULL) ||
        (l.lossy && (l.back = cow_chunk_cache_scratch(array->cache, COW_BUFFER_BACK, array->chunk_bytes)) == NULL))
        return -1;
    pipeline.early = digest_group;
    pipeline.turn = choose_group;
    pipeline.late = encode_group;
    pipeline.last = store_group;
    pipeline.context = &l;
    cow_chunk_cache_begin_saving(&saving);
    status = cow_pipeline_run(&pipeline);
    cow_chunk_cache_end_saving(&saving);
    cow_stored_give_up(array, saves, n);
    return status < 0 ? cow_error_where(array->label, "storing chunks") : 0;
}

/* ---- out ---- */

typedef struct load_line {
    cow_array *array;
    cow_load *loads;
    size_t n, group, window;
    cow_load_calls calls;
    uint8_t *rooms; /* a ring: for chunks that have no place of their own */
    uint8_t *raw;   /* a ring of encoded chunks */
    size_t bound;   /* bytes of a place in it */
    bool identity, parallel;
    bool apart; /* chunks may be found first, and their bytes read by any thread */
} load_line;

static void undecoded(const cow_array *array, const cow_load *load)
{
    char chunk[COW_PLACE_SIZE], text[COW_PLACE_SIZE + 1500];

    snprintf(text, sizeof text,
             "%s: the chunk at %s cannot be decoded (%s, slot %" PRIu64 "); run h5cow verify on the file; an older "
             "version may still have the chunk",
             array->label, cow_array_chunk_place(array, load->chunk, chunk), cow_pool_name(array->pool), load->slot);
    cow_error_where(text, "reading chunks");
}

static int decode(const load_line *l, cow_load *load)
{
    cow_array *array = l->array;
    cow_buffers buffers;
    bool aside = put_aside(array, &buffers);
    int status = cow_codec_decode_as(array->codec, array->filtering, load->raw, load->size, load->mask, load->bytes);

    if (aside)
        cow_chunk_cache_back(array->cache, &buffers);
    load->excused = array->filtering != NULL && (array->filtering->unchecked || array->filtering->excused);
    free(load->own);
    load->own = NULL;
    if (status < 0)
        undecoded(array, load);
    return status;
}

/* Bring the bytes of one chunk into memory. AT: its place in the rings. */
static int fetch(const load_line *l, cow_load *load, size_t at)
{
    cow_array *array = l->array;
    cow_chunk_store *store = cow_pool_store(array->pool);
    char place[COW_PLACE_SIZE];

    if (load->bytes == NULL)
        load->bytes = l->rooms + at * aligned(array->chunk_bytes);
    if (cow_is_composed(load->slot) &&
        (load->parts = cow_composed_fetch(array, load->chunk, load->slot, &load->slot)) == NULL)
        goto failed;
    if (load->slot == COW_HOLE) { /* its base */
        cow_array_set_fill(array, load->bytes, 0, array->chunk_bytes);
        return 0;
    }
    if (cow_pool_row(array->pool, load->slot, &load->row) < 0 || store->size(store, load->slot, &load->size) < 0)
        goto failed;
    if (l->identity) {
        if (load->size != array->chunk_bytes)
            return cow_error(COW_CORRUPT,
                             "%s: the chunk at %s has %zu bytes in the file, but %zu are expected (%s, slot %" PRIu64
                             "); run h5cow verify on the file",
                             array->label, cow_array_chunk_place(array, load->chunk, place), load->size,
                             array->chunk_bytes, cow_pool_name(array->pool), load->slot);
        load->raw = load->bytes;
    } else if (load->size <= l->bound) {
        load->raw = l->raw + at * l->bound;
    } else if ((load->raw = load->own = malloc(load->size)) == NULL) { /* another encoder's: longer than ours */
        return cow_error(COW_MEMORY, "%s: no memory for a stored chunk of %zu bytes", array->label, load->size);
    }
    if ((l->apart ? store->find(store, load->slot, load->raw, load->size, &load->mask, &load->place)
                  : store->read(store, load->slot, load->raw, load->size, &load->mask)) < 0)
        goto failed;
    return l->identity || l->parallel ? 0 : decode(l, load);
failed:
    if (load->parts != NULL) { /* its base */
        char which[COW_PLACE_SIZE + 20];

        snprintf(which, sizeof which, "the chunk at %s", cow_array_chunk_place(array, load->chunk, place));
        cow_error_where(which, "reading its base");
    }
    return cow_error_where(array->label, "reading chunks");
}

static int fetch_group(void *context, size_t i)
{
    const load_line *l = context;
    size_t first = i * l->group, n = smaller(l->group, l->n - first);

    for (size_t k = first; k < first + n; k++)
        if (fetch(l, &l->loads[k], k % (l->window * l->group)) < 0)
            return -1;
    return 1;
}

/* Read a chunk that was found, without filters straight to where it belongs in the end: then *PLACED. False: that is not what was stored. */
static bool bring(const load_line *l, cow_load *load, bool *placed)
{
    cow_array *array = l->array;
    cow_chunk_store *store = cow_pool_store(array->pool);
    struct iovec runs[COW_RUNS];
    size_t n = 0;

    if (l->identity && load->parts == NULL && l->calls.runs != NULL)
        n = l->calls.runs(l->calls.context, load, runs);
    *placed = n > 0;
    if (n == 0)
        runs[n++] = (struct iovec){load->raw, load->size};
    return store->bring(store, load->place, runs, n) &&
           (!l->identity || cow_checksum_parts(runs, n) == load->row.digest.checksum);
}

/* Bytes that were read on the calling thread. */
static int look_at(const load_line *l, cow_load *load)
{
    const cow_array *array = l->array;

    if (l->parallel && !l->identity && decode(l, load) < 0)
        return -1;
    return load->excused
               ? 0
               : cow_array_chunk_verify(array, load->chunk, load->slot, cow_checksum(load->bytes, array->chunk_bytes),
                                        load->row.digest.checksum);
}

static int finish(const load_line *l, cow_load *load)
{
    const cow_array *array = l->array;
    bool placed = false;

    if (load->place != COW_NO_PLACE) {
        if (!bring(l, load, &placed) || (!l->identity && look_at(l, load) < 0)) {
            cow_error_clear();
            load->again = true;
            return 0;
        }
    } else if (load->slot != COW_HOLE && look_at(l, load) < 0) {
        return -1;
    }
    if (load->parts != NULL && cow_composed_lay(array, load->chunk, load->parts, load->excused, load->bytes) < 0)
        return -1;
    return placed || l->calls.done == NULL ? 0 : l->calls.done(l->calls.context, load);
}

static int finish_group(void *context, size_t i)
{
    const load_line *l = context;
    size_t first = i * l->group, n = smaller(l->group, l->n - first);

    for (size_t k = first; k < first + n; k++)
        if (finish(l, &l->loads[k]) < 0)
            return -1;
    return 0;
}

/* What the file had there was not it: HDF5, which may have newer bytes in memory, has the last word. */
static int load_again(load_line *l)
{
    l->apart = false;
    for (size_t i = 0; i < l->n; i++) {
        cow_load *load = &l->loads[i];

        if (!load->again)
            continue;
        free(load->own);
        load->own = NULL;
        load->place = COW_NO_PLACE;
        if (load->homeless)
            load->bytes = NULL;
        if (fetch(l, load, 0) < 0 || finish(l, load) < 0)
            return -1;
    }
    return 0;
}

int cow_stored_load(cow_array *array, cow_load *loads, size_t n, const cow_load_calls *calls)
{
    load_line l = {.array = array,
                   .loads = loads,
                   .n = n,
                   .identity = cow_codec_identity(array->codec),
                   .parallel = cow_codec_parallel(array->codec),
                   .bound = aligned(cow_codec_bound(array->codec))};
    cow_pipeline pipeline = pipeline_for(array, n, false, &l.group);
    size_t places = pipeline.window * l.group;
    bool homeless = false;
    int status;

    if (calls != NULL)
        l.calls = *calls;
    l.window = pipeline.window;
    /* not where the program wants no checks: they say whether HDF5 has newer bytes; nor where it hears of what fails */
    l.apart = cow_pool_store(array->pool)->find != NULL && (l.identity || l.parallel) && array->filtering == NULL &&
              (pipeline.threads > 1 || l.calls.runs != NULL);
    for (size_t i = 0; i < n; i++) {
        loads[i].own = NULL;
        loads[i].parts = NULL;
        loads[i].place = COW_NO_PLACE;
        loads[i].again = false;
        loads[i].excused = array->filtering != NULL && array->filtering->unchecked;
        loads[i].homeless = loads[i].bytes == NULL;
        homeless = homeless || loads[i].homeless;
    }
    if ((homeless && (l.rooms = cow_chunk_cache_scratch(array->cache, COW_BUFFER_ROOMS,
                                                        places * aligned(array->chunk_bytes))) == NULL) ||
        (!l.identity && (l.raw = cow_chunk_cache_scratch(array->cache, COW_BUFFER_ENCODED, places * l.bound)) == NULL))
        return -1;
    pipeline.turn = fetch_group;
    pipeline.late = finish_group;
    pipeline.context = &l;
    status = cow_pipeline_run(&pipeline);
    if (status == 0)
        status = load_again(&l);
    for (size_t i = 0; i < n; i++) {
        free(loads[i].own);
        free(loads[i].parts);
    }
    return status;
}

/* ---- sizes ---- */

size_t cow_array_file_chunk_bytes(const cow_array *array)
{
    return array->heap ? array->chunk_bytes / array->element_size * array->file_element_size : array->chunk_bytes;
}
