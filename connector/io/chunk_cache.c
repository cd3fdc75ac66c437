/* The chunk cache: see chunk_cache.h for what an entry is, array.h for what the room promises.
 *
 *                 get, insert                       cow_chunk_cache_dirty
 *    (not cached) ------------> clean, in LRU order ---------------> dirty, in LRU order and in the array's ring
 *          ^                       |        ^                           |
 *          +------- evicted -------+        +---- stored in a batch ----+
 *
 * Heap entries weigh nothing while dirty (their data is in the file already) and are never evicted then: they say which
 * slot is the chunk's until cow_array_store has given it a name.
 */
#include "io/chunk_cache.h"

#include "base/error.h"
#include "io/heap.h"
#include "io/plan.h"
#include "io/stored.h"

#include <stdlib.h>
#include <string.h>

/* What a clean heap entry counts for: it holds no chunk, but there must not be endlessly many. */
#define ENTRY_BYTES 256

struct cow_chunk_cache {
    size_t limit, used; /* bytes */
    cow_cached_chunk **bucket;
    size_t buckets, entries; /* buckets: a power of two */
    cow_cached_chunk *newest, *oldest;
    uint8_t *spare; /* the buffer of the entry evicted last */
    size_t spare_size;
    cow_buffers scratch;
    unsigned held;      /* callers with entries in their hands */
    cow_array *calling; /* whose functions of the program run, the innermost; NULL: none that holds */
    cow_saving *saving;
    cow_listing listing;
    cow_journal *journal; /* whose file has room for what is dirty, or NULL */
};

cow_chunk_cache *cow_chunk_cache_open(size_t bytes)
{
    cow_chunk_cache *cache = calloc(1, sizeof *cache);

    if (cache == NULL || (cache->bucket = calloc(64, sizeof *cache->bucket)) == NULL) {
        free(cache);
        cow_error(COW_MEMORY, "no memory for a chunk cache");
        return NULL;
    }
    cache->buckets = 64;
    cache->limit = bytes;
    return cache;
}

void cow_chunk_cache_room(cow_chunk_cache *cache, cow_journal *journal)
{
    cache->journal = journal;
}

static void free_buffers(cow_buffers *buffers)
{
    for (size_t i = 0; i < COW_BUFFER_COUNT; i++)
        free(buffers->bytes[i]);
    *buffers = (cow_buffers){0};
}

void cow_chunk_cache_close(cow_chunk_cache *cache)
{
    if (cache == NULL)
        return;
    free_buffers(&cache->scratch);
    free(cache->listing.chunk);
    free(cache->spare);
    free(cache->bucket);
    free(cache);
}

bool cow_chunk_cache_busy(const cow_chunk_cache *cache)
{
    return cache != NULL && cache->held > 0;
}

size_t cow_chunk_cache_limit(const cow_chunk_cache *cache)
{
    return cache->limit;
}

void *cow_chunk_cache_scratch(cow_chunk_cache *cache, cow_buffer_use use, size_t bytes)
{
    cow_buffers *scratch = &cache->scratch;

    if (bytes > scratch->size[use]) {
        free(scratch->bytes[use]); /* the old content is not wanted, so no realloc */
        scratch->size[use] = 0;
        if ((scratch->bytes[use] = malloc(bytes)) == NULL) {
            cow_error(COW_MEMORY, "no memory for a buffer of %zu bytes", bytes);
            return NULL;
        }
        scratch->size[use] = bytes;
    } else if (scratch->bytes[use] == NULL) { /* nothing asked for, but NULL means failure */
        return cow_chunk_cache_scratch(cache, use, 64);
    }
    return scratch->bytes[use];
}

void cow_chunk_cache_aside(cow_array *array, bool holds, cow_buffers *aside)
{
    cow_chunk_cache *cache = array->cache;

    *aside = cache->scratch;
    aside->holds = holds;
    aside->outer = cache->calling;
    cache->held += holds;
    if (holds)
        cache->calling = array;
    cache->scratch = (cow_buffers){0};
}

void cow_chunk_cache_back(cow_chunk_cache *cache, const cow_buffers *aside)
{
    free_buffers(&cache->scratch);
    cache->scratch = *aside;
    cache->held -= aside->holds;
    cache->calling = aside->outer;
}

void cow_chunk_cache_begin_saving(cow_saving *saving)
{
    saving->outer = saving->array->cache->saving;
    saving->array->cache->saving = saving;
}

void cow_chunk_cache_end_saving(cow_saving *saving)
{
    saving->array->cache->saving = saving->outer;
}

void cow_chunk_cache_interrupted(cow_chunk_cache *cache)
{
    if (!cow_chunk_cache_busy(cache))
        return;
    for (; cache->saving != NULL; cache->saving = cache->saving->outer)
        cow_stored_give_up(cache->saving->array, cache->saving->saves, cache->saving->n);
    if (cache->calling != NULL) {
        cache->calling->ended = true;
        cache->calling->filtering = NULL;
        cache->calling->writing = false;
        if (cache->calling->heap)
            cow_heap_interrupted(cache->calling);
    }
    cache->calling = NULL;
    cache->held = 0;
}

cow_listing *cow_chunk_cache_listing(cow_chunk_cache *cache)
{
    return &cache->listing;
}

void cow_chunk_cache_forget_listing(cow_chunk_cache *cache)
{
    if (cache->listing.array != NULL) {
        free(cache->listing.chunk);
        cache->listing = (cow_listing){0};
    }
}

/* ---- entries ---- */

static uint64_t hash_of(const cow_array *array, const uint64_t chunk[])
{
    uint64_t h = (uint64_t)(uintptr_t)array;

    for (unsigned d = 0; d < array->grid.rank; d++) {
        h = (h ^ chunk[d]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static size_t weight(const cow_cached_chunk *entry)
{
    return ENTRY_BYTES + (entry->bytes == NULL ? entry->content_bytes : entry->array->chunk_bytes);
}

static void use_last(cow_chunk_cache *cache, cow_cached_chunk *entry) /* out of the order of use */
{
    *(entry->newer == NULL ? &cache->newest : &entry->newer->older) = entry->older;
    *(entry->older == NULL ? &cache->oldest : &entry->older->newer) = entry->newer;
}

static void use_first(cow_chunk_cache *cache, cow_cached_chunk *entry)
{
    entry->newer = NULL;
    entry->older = cache->newest;
    *(cache->newest == NULL ? &cache->oldest : &cache->newest->newer) = entry;
    cache->newest = entry;
}

/* Dirty heap entries are not in the order of use, so that nothing ever evicts them. */
static bool evictable(const cow_cached_chunk *entry)
{
    return entry->bytes != NULL || !entry->dirty;
}

static cow_cached_chunk *look_up(cow_array *array, const uint64_t chunk[])
{
    cow_chunk_cache *cache = array->cache;
    uint64_t hash = hash_of(array, chunk);
    cow_cached_chunk *entry = cache->bucket[hash & (cache->buckets - 1)];

    while (entry != NULL && (entry->hash != hash || entry->array != array ||
                             memcmp(entry->chunk, chunk, array->grid.rank * sizeof *chunk) != 0))
        entry = entry->same_hash;
    if (entry != NULL && entry != cache->newest && evictable(entry)) {
        use_last(cache, entry);
        use_first(cache, entry);
    }
    return entry;
}

void cow_chunk_cache_complete(cow_cached_chunk *entry)
{
    size_t size = entry->array->chunk_bytes;

    if (entry->bytes == NULL || entry->set == size)
        return;
    cow_array_set_fill(entry->array, entry->bytes, entry->set, size);
    entry->set = size;
}

cow_cached_chunk *cow_chunk_cache_find(cow_array *array, const uint64_t chunk[])
{
    cow_cached_chunk *entry = look_up(array, chunk);

    if (entry != NULL)
        cow_chunk_cache_complete(entry);
    return entry;
}

/* Does the disk keep room for the chunk? Not as it is, perhaps: encoded, or as a delta chunk, it may take less. Who knows: store_homeless. */
static void promise(cow_cached_chunk *entry)
{
    cow_array *array = entry->array;
    cow_journal *journal = array->cache->journal;

    if (journal == NULL || entry->bytes == NULL || entry->promised)
        return;
    cow_error_held *held = cow_error_hold();
    entry->promised = cow_journal_promise(journal, array->chunk_bytes) == 0;
    if (!entry->promised)
        cow_error_clear();
    cow_error_put_back(held);
}

/* It is stored, where what it takes is asked for, or forgotten. */
static void release(cow_cached_chunk *entry)
{
    if (entry->promised && entry->array->cache->journal != NULL)
        cow_journal_promised(entry->array->cache->journal, entry->array->chunk_bytes);
    entry->promised = false;
}

void cow_chunk_cache_dirty(cow_cached_chunk *entry)
{
    cow_array *array = entry->array;

    if (entry->dirty)
        return;
    promise(entry);
    entry->homeless = array->writing && array->cache->journal != NULL && entry->bytes != NULL && !entry->promised;
    array->homeless += entry->homeless;
    if (entry->bytes == NULL) {
        use_last(array->cache, entry);
        array->cache->used -= weight(entry);
    }
    entry->dirty = true;
    if (array->dirty == NULL) {
        entry->next_dirty = entry->former_dirty = entry;
        array->dirty = entry;
    } else { /* at the end of the ring: just before the oldest */
        entry->next_dirty = array->dirty;
        entry->former_dirty = array->dirty->former_dirty;
        entry->former_dirty->next_dirty = entry;
        entry->next_dirty->former_dirty = entry;
    }
}

void cow_chunk_cache_clean(cow_cached_chunk *entry)
{
    cow_array *array = entry->array;

    if (!entry->dirty)
        return;
    release(entry);
    array->homeless -= entry->homeless;
    entry->dirty = entry->refused = entry->homeless = false;
    if (entry->next_dirty == entry) {
        array->dirty = NULL;
    } else {
        entry->next_dirty->former_dirty = entry->former_dirty;
        entry->former_dirty->next_dirty = entry->next_dirty;
        if (array->dirty == entry)
            array->dirty = entry->next_dirty;
    }
    entry->next_dirty = entry->former_dirty = NULL;
    if (entry->bytes == NULL) {
        use_first(array->cache, entry);
        array->cache->used += weight(entry);
    }
}

void cow_chunk_cache_keep(cow_cached_chunk *entry, struct cow_content *content, size_t bytes)
{
    if (!entry->dirty)
        entry->array->cache->used += bytes - entry->content_bytes;
    entry->content = content;
    entry->content_bytes = bytes;
}

uint8_t *cow_chunk_cache_buffer(cow_array *array)
{
    cow_chunk_cache *cache = array->cache;
    uint8_t *bytes = cache->spare;

    if (bytes != NULL && cache->spare_size == array->chunk_bytes) {
        cache->spare = NULL;
        return bytes;
    }
    if ((bytes = malloc(array->chunk_bytes)) == NULL)
        cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", array->label, array->chunk_bytes);
    return bytes;
}

void cow_chunk_cache_buffer_free(cow_array *array, uint8_t *bytes)
{
    cow_chunk_cache *cache = array->cache;

    if (bytes == NULL)
        return;
    free(cache->spare);
    cache->spare = bytes;
    cache->spare_size = array->chunk_bytes;
}

void cow_chunk_cache_remove(cow_cached_chunk *entry)
{
    cow_array *array = entry->array;
    cow_chunk_cache *cache = array->cache;
    cow_cached_chunk **at = &cache->bucket[entry->hash & (cache->buckets - 1)];

    cow_chunk_cache_clean(entry);
    if (array->heap)
        cow_heap_forget(entry);
    while (*at != entry)
        at = &(*at)->same_hash;
    *at = entry->same_hash;
    if (entry->next_own != NULL)
        entry->next_own->former_own = entry->former_own;
    *(entry->former_own != NULL ? &entry->former_own->next_own : &array->cached) = entry->next_own;
    use_last(cache, entry);
    cache->used -= weight(entry);
    cache->entries--;
    cow_chunk_cache_buffer_free(array, entry->bytes);
    free(entry);
}

static int complete_entry(void *context, cow_save *save, void *room)
{
    (void)room;
    cow_chunk_cache_complete(((cow_cached_chunk **)context)[save->index]);
    return 0;
}

static bool any_refused(const cow_save *saves, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (saves[i].refused)
            return true;
    return false;
}

/* Some of N chunks are refused by the filters: each is stored alone, so that the others are. */
static int store_singly(cow_array *array, cow_save *saves, cow_cached_chunk **entries, size_t n)
{
    cow_error_held *first = NULL;

    for (size_t i = 0; i < n; i++) {
        cow_cached_chunk *entry = entries[i];

        saves[0] = (cow_save){.chunk = entry->chunk, .bytes = entry->bytes, .keep = entry->bytes};
        if (!array->refused)
            cow_error_clear();
        else if (first == NULL)
            first = cow_error_hold(); /* the first reason is told */
        if (cow_stored_save(array, saves, 1, complete_entry, &entry) == 0)
            cow_chunk_cache_clean(entry);
        else if (!saves[0].refused)
            return -1;
        else
            entry->refused = array->refused = true;
    }
    cow_error_put_back(first);
    return 0;
}

/* Store the oldest dirty chunks of ARRAY, at most BYTES of them (at least one). Those that the filters refused are passed
 * over; new ones set array->refused, and their reason is recorded: no error. */
static int store_batch(cow_array *array, size_t bytes)
{
    cow_cached_chunk *entry = array->dirty;
    size_t most = bytes / array->chunk_bytes, n = 0;
    cow_cached_chunk **entries;
    cow_save *saves;

    if (most > COW_BATCH_CHUNKS)
        most = COW_BATCH_CHUNKS;
    if (most == 0)
        most = 1;
    if ((saves = cow_chunk_cache_scratch(array->cache, COW_BUFFER_SAVES, most * (sizeof *saves + sizeof *entries))) ==
        NULL)
        return -1;
    entries = (cow_cached_chunk **)(saves + most);
    do {
        if (!entry->refused) {
            saves[n] = (cow_save){.chunk = entry->chunk, .bytes = entry->bytes, .keep = entry->bytes, .index = n};
            entries[n++] = entry;
        }
        entry = entry->next_dirty;
    } while (entry != array->dirty && n < most);
    for (size_t i = 0; i < n; i++)
        release(entries[i]);
    if (cow_stored_save(array, saves, n, complete_entry, entries) < 0) {
        int status = any_refused(saves, n) ? store_singly(array, saves, entries, n) : -1;

        for (size_t i = 0; i < n; i++)
            if (entries[i]->dirty)
                promise(entries[i]);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        cow_chunk_cache_clean(entries[i]);
    return 0;
}

/* The one used least that can be stored. */
static cow_cached_chunk *oldest(const cow_chunk_cache *cache)
{
    cow_cached_chunk *entry = cache->oldest;

    while (entry != NULL && entry->refused)
        entry = entry->newer;
    return entry;
}

/* Evict until NEED more bytes fit, or nothing is left. What another array cannot store is its own trouble: it stays, and is
 * told when that is written, flushed or closed. */
static int make_room(const cow_array *array, size_t need)
{
    cow_chunk_cache *cache = array->cache;

    while (cache->held == 0 && cache->used + need > cache->limit && cache->oldest != NULL) {
        cow_cached_chunk *entry = oldest(cache);
        if (entry == NULL) { /* as in HDF5, a chunk for which there is no room any more is lost, and the call fails */
            if (cache->oldest->array != array)
                return 0;
            cow_chunk_cache_remove(cache->oldest);
            return cow_error(COW_UNSUPPORTED, "%s: a chunk is lost that a filter of the dataset does not take",
                             array->label);
        }
        if (entry->dirty) {
            size_t batch = cache->limit / 2 < COW_BATCH_BYTES ? cache->limit / 2 : COW_BATCH_BYTES;
            if (store_batch(entry->array, batch) < 0) {
                if (entry->array == array)
                    return -1;
                cow_error_clear();
                return 0;
            }
            if (entry->array->refused)
                cow_error_clear(); /* it is told when it is stored, or lost */
            if (entry->dirty) {    /* used least, but not first to become dirty: it comes with a later batch */
                while (entry != NULL && entry->dirty)
                    entry = entry->newer;
                if (entry != NULL)
                    cow_chunk_cache_remove(entry);
                continue;
            }
        }
        cow_chunk_cache_remove(entry);
    }
    return 0;
}

static void grow_buckets(cow_chunk_cache *cache)
{
    size_t buckets = cache->buckets * 2;
    cow_cached_chunk **bucket = calloc(buckets, sizeof *bucket);

    if (bucket == NULL)
        return; /* longer chains, nothing worse */
    for (size_t i = 0; i < cache->buckets; i++)
        for (cow_cached_chunk *entry = cache->bucket[i], *next; entry != NULL; entry = next) {
            next = entry->same_hash;
            entry->same_hash = bucket[entry->hash & (buckets - 1)];
            bucket[entry->hash & (buckets - 1)] = entry;
        }
    free(cache->bucket);
    cache->bucket = bucket;
    cache->buckets = buckets;
}

cow_cached_chunk *cow_chunk_cache_insert(cow_array *array, const uint64_t chunk[], uint8_t *bytes)
{
    cow_chunk_cache *cache = array->cache;
    cow_cached_chunk *entry = NULL;

    if (make_room(array, ENTRY_BYTES + (bytes == NULL ? 0 : array->chunk_bytes)) < 0)
        goto failed;
    if ((entry = cow_chunk_cache_find(array, chunk)) != NULL) {
        cow_chunk_cache_buffer_free(array, bytes);
        return entry;
    }
    if ((entry = malloc(sizeof *entry + array->grid.rank * sizeof *entry->chunk)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for a cached chunk", array->label);
        goto failed;
    }
    *entry = (cow_cached_chunk){.array = array, .bytes = bytes, .set = array->chunk_bytes, .slot = COW_HOLE};
    entry->hash = hash_of(array, chunk);
    memcpy(entry->chunk, chunk, array->grid.rank * sizeof *chunk);
    if (cache->entries >= cache->buckets)
        grow_buckets(cache);
    entry->same_hash = cache->bucket[entry->hash & (cache->buckets - 1)];
    cache->bucket[entry->hash & (cache->buckets - 1)] = entry;
    if ((entry->next_own = array->cached) != NULL)
        array->cached->former_own = entry;
    array->cached = entry;
    cache->entries++;
    cache->used += weight(entry);
    use_first(cache, entry);
    return entry;
failed:
    cow_chunk_cache_buffer_free(array, bytes);
    return NULL;
}

/* ---- chunks ---- */

cow_cached_chunk *cow_chunk_cache_get(cow_array *array, const uint64_t chunk[], bool overwritten)
{
    cow_cached_chunk *entry = cow_chunk_cache_find(array, chunk);
    uint64_t slot = COW_HOLE, trimmed[COW_MAX_RANK];
    uint8_t *bytes = NULL;

    if (entry != NULL)
        return entry;
    if (!overwritten && cow_index_get(array->index, chunk, &slot) < 0)
        return NULL;
    /* Room first: then the buffer of an evicted chunk is at hand. */
    if (make_room(array, ENTRY_BYTES + array->chunk_bytes) < 0 || (bytes = cow_chunk_cache_buffer(array)) == NULL)
        return NULL;
    if (overwritten) {
        cow_array_chunk_trimmed(array, chunk, trimmed);
        cow_fill_padding(&array->grid, trimmed, array->element_size, cow_array_new_fill(array), bytes);
    } else if (slot != COW_HOLE) {
        cow_load load = {.chunk = chunk, .slot = slot, .bytes = bytes};
        if (cow_stored_load(array, &load, 1, NULL) < 0) {
            cow_chunk_cache_buffer_free(array, bytes);
            return NULL;
        }
    } else {
        cow_array_set_fill(array, bytes, 0, array->chunk_bytes);
    }
    return cow_chunk_cache_insert(array, chunk, bytes);
}

cow_cached_chunk *cow_chunk_cache_part(cow_array *array, const uint64_t chunk[], size_t from, size_t to,
                                       bool overwritten)
{
    cow_cached_chunk *entry = look_up(array, chunk);
    uint64_t slot = COW_HOLE;
    uint8_t *bytes;

    if (entry == NULL) {
        if (!overwritten && cow_index_get(array->index, chunk, &slot) < 0)
            return NULL;
        if (slot != COW_HOLE)
            return cow_chunk_cache_get(array, chunk, false);
        if (make_room(array, ENTRY_BYTES + array->chunk_bytes) < 0 || (bytes = cow_chunk_cache_buffer(array)) == NULL ||
            (entry = cow_chunk_cache_insert(array, chunk, bytes)) == NULL)
            return NULL;
        if (entry->bytes == bytes)
            entry->set = 0;
    }
    if (entry->set < to) {
        if (entry->set < from)
            cow_array_set_fill(array, entry->bytes, entry->set, from);
        entry->set = to;
    }
    return entry;
}

int cow_chunk_cache_prefetch(cow_array *array, const uint64_t *chunks, size_t n)
{
    unsigned rank = array->grid.rank;
    size_t most = array->cache->limit / 2 / array->chunk_bytes, wanted = 0, kept = 0;
    cow_load *loads;
    int status = -1;

    if (most > COW_BATCH_BYTES / array->chunk_bytes)
        most = COW_BATCH_BYTES / array->chunk_bytes;
    if (most > n)
        most = n;
    if (most < 2) /* one alone is loaded when it is used */
        return 0;
    if ((loads = cow_chunk_cache_scratch(array->cache, COW_BUFFER_LOADS, most * sizeof *loads)) == NULL)
        return -1;
    for (size_t i = 0; i < n && wanted < most; i++) {
        uint64_t slot;

        if (look_up(array, chunks + i * rank) != NULL) /* what is not set of it may stay so */
            continue;
        if (cow_index_get(array->index, chunks + i * rank, &slot) < 0)
            goto done;
        if (slot == COW_HOLE)
            continue;
        loads[wanted] = (cow_load){.chunk = chunks + i * rank, .slot = slot, .bytes = cow_chunk_cache_buffer(array)};
        if (loads[wanted].bytes == NULL)
            goto done;
        wanted++;
    }
    if (wanted > 0 && cow_stored_load(array, loads, wanted, NULL) < 0)
        goto done;
    for (; kept < wanted; kept++)
        if (cow_chunk_cache_insert(array, loads[kept].chunk, loads[kept].bytes) == NULL) {
            kept++; /* its buffer is gone as well */
            goto done;
        }
    status = 0;
done:
    for (; kept < wanted; kept++)
        cow_chunk_cache_buffer_free(array, loads[kept].bytes);
    return status;
}

void cow_chunk_cache_each(cow_array *array, void (*visitor)(cow_cached_chunk *entry, void *context), void *context)
{
    for (cow_cached_chunk *entry = array->cached, *next; entry != NULL; entry = next) {
        next = entry->next_own;
        visitor(entry, context);
    }
}

static void try_again(cow_array *array)
{
    for (cow_cached_chunk *entry = array->dirty; array->refused && entry != NULL;) {
        entry->refused = false;
        entry = entry->next_dirty == array->dirty ? NULL : entry->next_dirty;
    }
    array->refused = false;
}

/* Is there a dirty chunk that was not refused? */
static bool waits(const cow_array *array)
{
    const cow_cached_chunk *entry = array->dirty;

    if (entry == NULL)
        return false;
    while (entry->refused && entry->next_dirty != array->dirty)
        entry = entry->next_dirty;
    return !entry->refused;
}

int cow_array_store(cow_array *array)
{
    if (cow_chunk_cache_busy(array->cache) || array->waits)
        return 0;
    if (array->heap)
        return cow_heap_store(array);
    try_again(array);
    while (waits(array))
        if (store_batch(array, COW_BATCH_BYTES) < 0)
            return -1;
    return array->refused ? -1 : 0;
}

int cow_chunk_cache_store_homeless(cow_array *array)
{
    cow_cached_chunk *entry, *next;
    int status = 0;

    if (array->homeless == 0 || cow_chunk_cache_busy(array->cache))
        return 0;
    if (cow_array_store(array) < 0 && !array->refused)
        status = -1;
    for (entry = array->cached; entry != NULL && array->homeless > 0; entry = next) {
        next = entry->next_own;
        if (!entry->homeless)
            continue;
        if (entry->promised || entry->refused) {
            entry->homeless = false;
            array->homeless--;
        } else
            cow_chunk_cache_remove(entry);
    }
    if (status == 0)
        cow_error_clear(); /* what filters refuse is told when HDF5 would tell it */
    return status;
}

int cow_array_drop_refused(cow_array *array)
{
    size_t n = 0, dropped = 0;
    char place[COW_PLACE_SIZE] = "";
    cow_cached_chunk *entry, *next;

    cow_error_clear();
    if (cow_array_store(array) == 0)
        return 0;
    if (!array->refused)
        return -1;
    for (entry = array->dirty; entry != NULL; entry = entry->next_dirty == array->dirty ? NULL : entry->next_dirty)
        n++;
    for (entry = array->dirty; n > 0; n--, entry = next) {
        next = entry->next_dirty;
        if (!entry->refused)
            continue;
        cow_array_chunk_place(array, entry->chunk, place);
        cow_chunk_cache_remove(entry);
        dropped++;
    }
    array->refused = false;
    return cow_error(COW_UNSUPPORTED,
                     "%s: a filter refused %zu chunks, the last at %s, which keep what they had before", array->label,
                     dropped, place);
}

static void forget(cow_cached_chunk *entry, void *context)
{
    (void)context;
    if (entry->array->heap && entry->dirty)
        cow_pool_drop(entry->array->pool, entry->slot);
    cow_chunk_cache_remove(entry);
}

static void forget_clean(cow_cached_chunk *entry, void *context)
{
    (void)context;
    if (!entry->dirty)
        cow_chunk_cache_remove(entry);
}

void cow_array_forget_clean(cow_array *array)
{
    cow_chunk_cache_each(array, forget_clean, NULL);
}

void cow_array_forget(cow_array *array)
{
    cow_chunk_cache_each(array, forget, NULL);
    if (array->cache->listing.array == array)
        cow_chunk_cache_forget_listing(array->cache);
}
