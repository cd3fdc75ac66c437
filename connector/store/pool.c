/* Pools: the slot table, the map from hash to slot, and the life of a slot. Contract: pool.h; rows on disk: format.h.
 *
 *            add                    drop of the last use
 *    (none) -----> used, unsealed ------------------------> free, unsealed --add--> used, unsealed
 *                       |                                        |
 *                       | seal                                   | seal
 *                       v                                        v
 *                  sealed: never written again, uses not counted (a row of zeros, if it was free)
 *
 * A sealed slot with a row of zeros is vacant: nobody can name it. It may be given out again, and is then as one that is
 * used and unsealed until the next seal (`reused`).
 *
 * Invariants
 *  1. Slots from `base` on have their rows in memory (`rows`, `uses`); base <= sealed, base <= first_unwritten. A slot
 *     below base is sealed and its row is in the table, unless it is in `reused`. Blocks of the table are forgotten when rows
 *     below base are written.
 *  2. The map, once loaded, holds exactly the hashes of all sealed slots and of all used ones (of slots with the same
 *     hash, which only a damaged table has, the lowest).
 *  3. A function that fails leaves the pool as it was.
 */
#include "store/pool.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"
#include "store/format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS 64            /* rows fetched together for cow_pool_row */
#define BLOCKS     32            /* of them kept */
#define LOAD_BYTES (1024 * 1024) /* of the slot table read at once for the map */

static const uint8_t no_hash[COW_HASH_SIZE];

/* Open addressing with linear probing; SHA-256 needs no further mixing. A place holds slot + 1, 0 is empty. */
typedef struct hash_map {
    uint64_t *place;
    size_t size;                    /* a power of two, or 0 */
    uint8_t (*hash)[COW_HASH_SIZE]; /* by slot */
    size_t hash_room;
    bool loaded;
} hash_map;

typedef struct row_block {
    uint8_t *rows;
    uint64_t first;
    uint64_t count; /* 0: empty */
    uint64_t used;  /* time of the last use */
} row_block;

/* Slots below base that are vacant, and those that were and are given out since the last seal. */
typedef struct reused_slots {
    cow_map place; /* slot -> its place in the two that follow */
    uint8_t *rows;
    uint32_t *uses; /* 0: vacant again */
    size_t count, rows_room, uses_room;
    uint64_t *vacant; /* known with the map; the highest first */
    size_t vacant_count, vacant_room;
    uint64_t most;  /* so many may be given out before the next seal */
    uint64_t total; /* since the pool was opened */
} reused_slots;

struct cow_pool {
    char *name;
    unsigned rank;
    cow_table *table;
    cow_chunk_store *store;
    uint64_t slots;
    uint64_t sealed;          /* slots below are sealed */
    uint64_t first_unwritten; /* slots below have their row in the table */
    uint64_t base;            /* slots from here on are in rows[] and uses[] */
    uint8_t *rows;
    uint32_t *uses;      /* 0: free. UINT32_MAX sticks: such a slot is never freed */
    uint64_t *free_slot; /* a binary heap, the lowest first; room for as many as rows[], so freeing cannot fail */
    size_t rows_room, uses_room, free_room, free_count;
    reused_slots reused;
    hash_map map;
    row_block block[BLOCKS];
    uint64_t clock;
};

size_t cow_slot_row_size(unsigned rank)
{
    return COW_SLOT_TRIMMED_AT + 4 * (size_t)rank;
}

/* ---- map ---- */

static size_t home(const hash_map *map, const uint8_t hash[])
{
    return (size_t)cow_get64(hash) & (map->size - 1);
}

/* The place of HASH, or the empty one where it belongs. */
static size_t probe(const hash_map *map, const uint8_t hash[])
{
    size_t i = home(map, hash);

    while (map->place[i] != 0 && memcmp(map->hash[map->place[i] - 1], hash, COW_HASH_SIZE) != 0)
        i = (i + 1) & (map->size - 1);
    return i;
}

/* Room for slots below SLOTS, so that inserting them cannot fail. */
static int map_reserve(hash_map *map, uint64_t slots, const char *pool)
{
    if (COW_RESERVE(map->hash, map->hash_room, 0, slots) < 0)
        goto no_memory;
    if (slots >= map->size / 4 * 3) {
        size_t size = map->size > 0 ? map->size : 64;
        uint64_t *old = map->place, *place;
        size_t old_size = map->size;

        while (slots >= size / 4 * 3)
            size *= 2;
        place = calloc(size, sizeof *place);
        if (!place)
            goto no_memory;
        map->place = place;
        map->size = size;
        for (size_t i = 0; i < old_size; i++) {
            if (old[i] != 0)
                map->place[probe(map, map->hash[old[i] - 1])] = old[i];
        }
        free(old);
    }
    return 0;
no_memory:
    return cow_error(COW_MEMORY, "no memory for the hashes of the %" PRIu64 " chunks of %s", slots, pool);
}

/* SLOT must be below the reserved number. A hash that is there already keeps its slot. */
static void map_insert(hash_map *map, uint64_t slot, const uint8_t hash[])
{
    size_t i;

    memcpy(map->hash[slot], hash, COW_HASH_SIZE);
    if (memcmp(hash, no_hash, COW_HASH_SIZE) == 0)
        return;
    i = probe(map, hash);
    if (map->place[i] == 0)
        map->place[i] = slot + 1;
}

static void map_remove(hash_map *map, uint64_t slot)
{
    size_t mask = map->size - 1;
    size_t hole = probe(map, map->hash[slot]);

    if (map->place[hole] != slot + 1)
        return; /* another slot with the same hash stands for it */
    /* Close the gap: move up whoever could no longer be found across it. */
    for (size_t i = (hole + 1) & mask; map->place[i] != 0; i = (i + 1) & mask) {
        size_t wanted = home(map, map->hash[map->place[i] - 1]);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            map->place[hole] = map->place[i];
            hole = i;
        }
    }
    map->place[hole] = 0;
    memset(map->hash[slot], 0, COW_HASH_SIZE);
}

static void map_free(hash_map *map)
{
    free(map->place);
    free(map->hash);
    memset(map, 0, sizeof *map);
}

/* Of a slot from base on. */
static uint8_t *row_at(const cow_pool *pool, uint64_t slot)
{
    return pool->rows + (size_t)(slot - pool->base) * cow_slot_row_size(pool->rank);
}

/* The place of SLOT among those that are given out again. */
static bool is_reused(const cow_pool *pool, uint64_t slot, uint64_t *place)
{
    return pool->reused.count > 0 && cow_map_get(&pool->reused.place, slot, place);
}

/* Uses of a slot that was given out since the last seal. NULL: it was not. */
static uint32_t *uses_of(const cow_pool *pool, uint64_t slot)
{
    uint64_t place;

    if (slot < pool->slots && slot >= pool->sealed)
        return &pool->uses[slot - pool->base];
    return is_reused(pool, slot, &place) ? &pool->reused.uses[place] : NULL;
}

/* The row in memory of a slot. NULL: it is in the table. */
static uint8_t *row_in_memory(const cow_pool *pool, uint64_t slot)
{
    uint64_t place;

    if (slot >= pool->base)
        return row_at(pool, slot);
    return is_reused(pool, slot, &place) ? pool->reused.rows + place * cow_slot_row_size(pool->rank) : NULL;
}

static int note_vacant(cow_pool *pool, uint64_t first, uint64_t count, const uint8_t *rows)
{
    for (uint64_t i = 0; i < count; i++) {
        if (memcmp(rows + (size_t)i * cow_slot_row_size(pool->rank), no_hash, COW_HASH_SIZE) != 0)
            continue;
        if (COW_RESERVE(pool->reused.vacant, pool->reused.vacant_room, pool->reused.vacant_count, 1) < 0)
            return cow_error(COW_MEMORY, "no memory for the free slots of %s", pool->name);
        pool->reused.vacant[pool->reused.vacant_count++] = first + i;
    }
    return 0;
}

/* Given out from the end: the lowest first. */
static void turn_vacant(cow_pool *pool)
{
    for (size_t i = 0, j = pool->reused.vacant_count; i + 1 < j; i++) {
        uint64_t slot = pool->reused.vacant[i];
        pool->reused.vacant[i] = pool->reused.vacant[--j];
        pool->reused.vacant[j] = slot;
    }
}

static int map_load(cow_pool *pool)
{
    size_t row_size = cow_slot_row_size(pool->rank);
    uint64_t block = LOAD_BYTES / row_size, first = 0;
    uint8_t *rows = NULL;
    int result = -1;

    if (pool->map.loaded)
        return 0;
    if (block > pool->base)
        block = pool->base;
    rows = malloc(block > 0 ? (size_t)block * row_size : 1);
    if (!rows) {
        cow_error(COW_MEMORY, "no memory to read the slot table of %s", pool->name);
        goto done;
    }
    pool->reused.vacant_count = 0;
    if (map_reserve(&pool->map, pool->slots, pool->name) < 0)
        goto done;
    while (first < pool->base) {
        uint64_t count = block < pool->base - first ? block : pool->base - first;
        if (pool->table->read(pool->table, first, count, rows) < 0) {
            cow_context("reading the slot table of %s", pool->name);
            goto done;
        }
        for (uint64_t i = 0; i < count; i++)
            map_insert(&pool->map, first + i, rows + (size_t)i * row_size);
        if (pool->reused.most > 0 && note_vacant(pool, first, count, rows) < 0)
            goto done;
        first += count;
    }
    turn_vacant(pool);
    /* A free slot's row is all zeros, and such a hash is not entered. */
    for (uint64_t slot = pool->base; slot < pool->slots; slot++)
        map_insert(&pool->map, slot, row_at(pool, slot));
    pool->map.loaded = true;
    result = 0;
done:
    if (result < 0)
        map_free(&pool->map);
    free(rows);
    return result;
}

/* ---- free slots ---- */

/* What was given out is sealed, or gone. */
static void reused_forget(cow_pool *pool)
{
    reused_slots *r = &pool->reused;

    cow_map_free(&r->place);
    free(r->rows);
    free(r->uses);
    r->rows = NULL;
    r->uses = NULL;
    r->count = r->rows_room = r->uses_room = 0;
}

static void free_push(cow_pool *pool, uint64_t slot)
{
    size_t i = pool->free_count++;

    for (; i > 0 && pool->free_slot[(i - 1) / 2] > slot; i = (i - 1) / 2)
        pool->free_slot[i] = pool->free_slot[(i - 1) / 2];
    pool->free_slot[i] = slot;
}

static uint64_t free_pop(cow_pool *pool)
{
    uint64_t *heap = pool->free_slot;
    uint64_t lowest = heap[0], last = heap[--pool->free_count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= pool->free_count)
            break;
        if (child + 1 < pool->free_count && heap[child + 1] < heap[child])
            child++;
        if (last <= heap[child])
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return lowest;
}

/* ---- pool ---- */

cow_pool *cow_pool_open(const char *name, unsigned rank, cow_table *table, cow_chunk_store *store)
{
    cow_pool *pool = NULL;
    bool good = false;

    if (!table || !store) {
        cow_context("opening %s", name);
        goto done;
    }
    if (rank == 0 || rank > COW_MAX_RANK || table->row_size != cow_slot_row_size(rank)) {
        cow_error(COW_CORRUPT, "the slot table of %s has rows of %zu bytes, which does not fit rank %u", name,
                  table->row_size, rank);
        goto done;
    }
    pool = calloc(1, sizeof *pool);
    if (!pool || !(pool->name = strdup(name))) {
        cow_error(COW_MEMORY, "no memory to open %s", name);
        goto done;
    }
    pool->rank = rank;
    pool->slots = pool->sealed = pool->first_unwritten = pool->base = table->rows;
    good = true;
done:
    if (good) {
        pool->table = table;
        pool->store = store;
        return pool;
    }
    free(pool);
    if (table)
        table->close(table);
    if (store)
        store->close(store);
    return NULL;
}

void cow_pool_close(cow_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < BLOCKS; i++)
        free(pool->block[i].rows);
    map_free(&pool->map);
    free(pool->rows);
    free(pool->uses);
    free(pool->free_slot);
    free(pool->reused.vacant);
    reused_forget(pool);
    pool->store->close(pool->store);
    pool->table->close(pool->table);
    free(pool->name);
    free(pool);
}

bool cow_pool_idle(const cow_pool *pool)
{
    return !pool->map.loaded && pool->base == pool->slots;
}

uint64_t cow_pool_slots(const cow_pool *pool)
{
    return pool->slots;
}

const char *cow_pool_name(const cow_pool *pool)
{
    return pool->name;
}

cow_chunk_store *cow_pool_store(cow_pool *pool)
{
    return pool->store;
}

int cow_pool_find(cow_pool *pool, const cow_digest *digest, uint64_t *slot)
{
    uint64_t place;

    *slot = COW_NO_SLOT;
    if (map_load(pool) < 0)
        return -1;
    place = pool->map.place[probe(&pool->map, digest->hash)];
    if (place != 0) {
        *slot = place - 1;
        cow_pool_use(pool, *slot);
    }
    return 0;
}

/* Room in memory for one slot more. */
static int reserve(cow_pool *pool)
{
    size_t count = (size_t)(pool->slots - pool->base);

    if (cow_vector_reserve(&pool->rows, &pool->rows_room, count, 1, cow_slot_row_size(pool->rank)) == 0 &&
        COW_RESERVE(pool->uses, pool->uses_room, count, 1) == 0 &&
        COW_RESERVE(pool->free_slot, pool->free_room, count, 1) == 0)
        return 0;
    return cow_error(COW_MEMORY, "no memory for the slot table of %s (%" PRIu64 " slots)", pool->name, pool->slots);
}

/* Put ROW into the row of a slot in memory, and into the map, which has room for it. */
static void put_row(cow_pool *pool, uint64_t slot, const cow_slot *row)
{
    uint8_t *bytes = row_in_memory(pool, slot);

    memcpy(bytes + COW_SLOT_HASH_AT, row->digest.hash, COW_HASH_SIZE);
    cow_put64(bytes + COW_SLOT_CHECKSUM_AT, row->digest.checksum);
    for (unsigned d = 0; d < pool->rank; d++)
        cow_put32(bytes + COW_SLOT_TRIMMED_AT + 4 * d, row->trimmed[d]);
    if (slot >= pool->base && slot < pool->first_unwritten)
        pool->first_unwritten = slot;
    if (pool->map.loaded)
        map_insert(&pool->map, slot, row->digest.hash);
}

/* Does a vacant slot take the next chunk? 1: *SLOT; 0; -1. */
static int reuse_slot(cow_pool *pool, uint64_t *slot)
{
    reused_slots *r = &pool->reused;
    uint64_t place;

    if (pool->free_count > 0 || pool->reused.vacant_count == 0 || r->count >= r->most)
        return 0;
    *slot = pool->reused.vacant[pool->reused.vacant_count - 1];
    if (pool->store->again != NULL && pool->store->again(pool->store, *slot) < 0)
        return -1;
    if (!is_reused(pool, *slot, &place)) {
        place = r->count;
        if (cow_vector_reserve(&r->rows, &r->rows_room, place, 1, cow_slot_row_size(pool->rank)) < 0 ||
            COW_RESERVE(r->uses, r->uses_room, place, 1) < 0 || cow_map_put(&r->place, *slot, place) < 0)
            return cow_error(COW_MEMORY, "no memory for the slot table of %s", pool->name);
        r->count++;
        r->total++;
    }
    pool->reused.vacant_count--;
    return 1;
}

int cow_pool_add(cow_pool *pool, const cow_slot *row, uint64_t *slot)
{
    int reused;

    if (pool->map.loaded && map_reserve(&pool->map, pool->slots + 1, pool->name) < 0)
        return -1;
    if ((reused = reuse_slot(pool, slot)) < 0 || (!reused && pool->free_count == 0 && reserve(pool) < 0))
        return -1;
    if (!reused)
        *slot = pool->free_count > 0 ? free_pop(pool) : pool->slots++;
    *uses_of(pool, *slot) = 1;
    put_row(pool, *slot, row);
    return 0;
}

int cow_pool_set_row(cow_pool *pool, uint64_t slot, const cow_slot *row)
{
    const uint32_t *uses = uses_of(pool, slot);

    if (uses == NULL || *uses == 0)
        return cow_error(COW_USAGE,
                         "slot %" PRIu64 " of %s cannot get another row: this transaction did not give it out", slot,
                         pool->name);
    if (pool->map.loaded)
        map_remove(&pool->map, slot);
    put_row(pool, slot, row);
    return 0;
}

void cow_pool_drop(cow_pool *pool, uint64_t slot)
{
    uint32_t *uses = uses_of(pool, slot);

    if (uses == NULL || *uses == 0 || *uses == UINT32_MAX || --*uses > 0)
        return;
    /* The bytes may never have been written, or be overwritten next: nobody may find them any more. */
    if (pool->map.loaded)
        map_remove(&pool->map, slot);
    memset(row_in_memory(pool, slot), 0, cow_slot_row_size(pool->rank));
    if (slot < pool->base) {
        pool->reused.vacant[pool->reused.vacant_count++] = slot; /* it was the last one there */
        return;
    }
    if (slot < pool->first_unwritten)
        pool->first_unwritten = slot;
    free_push(pool, slot);
}

void cow_pool_use(cow_pool *pool, uint64_t slot)
{
    uint32_t *uses = uses_of(pool, slot);

    if (uses != NULL && *uses > 0 && *uses < UINT32_MAX)
        ++*uses;
}

/* The row of a slot below base, in a cached block of the table. NULL on failure. */
static const uint8_t *table_row(cow_pool *pool, uint64_t slot)
{
    size_t row_size = cow_slot_row_size(pool->rank);
    row_block *oldest = &pool->block[0];
    uint64_t first = slot - slot % BLOCK_ROWS;
    uint64_t count = pool->base - first < BLOCK_ROWS ? pool->base - first : BLOCK_ROWS;

    pool->clock++;
    for (size_t i = 0; i < BLOCKS; i++) {
        row_block *block = &pool->block[i];
        if (block->count > 0 && block->first == first) {
            oldest = block; /* also when it was cached while the table was shorter: then it is read anew */
            if (slot - first < block->count)
                goto found;
            break;
        }
        if (block->used < oldest->used)
            oldest = block;
    }
    if (!oldest->rows && !(oldest->rows = malloc(BLOCK_ROWS * row_size))) {
        cow_error(COW_MEMORY, "no memory to read the slot table of %s", pool->name);
        return NULL;
    }
    oldest->count = 0;
    if (pool->table->read(pool->table, first, count, oldest->rows) < 0) {
        cow_context("reading the slot table of %s", pool->name);
        return NULL;
    }
    oldest->first = first;
    oldest->count = count;
found:
    oldest->used = pool->clock;
    return oldest->rows + (size_t)(slot - first) * row_size;
}

int cow_pool_row(cow_pool *pool, uint64_t slot, cow_slot *row)
{
    const uint8_t *bytes;

    if (slot >= pool->slots)
        return cow_error(COW_CORRUPT, "%s has no slot %" PRIu64 ", only %" PRIu64, pool->name, slot, pool->slots);
    if ((bytes = row_in_memory(pool, slot)) == NULL && (bytes = table_row(pool, slot)) == NULL)
        return -1;
    memset(row, 0, sizeof *row);
    memcpy(row->digest.hash, bytes + COW_SLOT_HASH_AT, COW_HASH_SIZE);
    row->digest.checksum = cow_get64(bytes + COW_SLOT_CHECKSUM_AT);
    for (unsigned d = 0; d < pool->rank; d++)
        row->trimmed[d] = cow_get32(bytes + COW_SLOT_TRIMMED_AT + 4 * d);
    return 0;
}

/* Rows that are sealed and in the table need not stay in memory. */
static void forget_written(cow_pool *pool)
{
    if (pool->sealed < pool->slots || pool->first_unwritten < pool->slots)
        return;
    free(pool->rows);
    free(pool->uses);
    free(pool->free_slot);
    pool->rows = NULL;
    pool->uses = NULL;
    pool->free_slot = NULL;
    pool->rows_room = pool->uses_room = pool->free_room = 0;
    pool->base = pool->slots;
}

/* What is known of the table has changed there. */
static void forget_blocks(cow_pool *pool)
{
    for (size_t i = 0; i < BLOCKS; i++)
        pool->block[i].count = 0;
}

static int flush_reused(cow_pool *pool)
{
    const reused_slots *r = &pool->reused;
    size_t size = cow_slot_row_size(pool->rank);

    for (size_t i = 0; i < r->place.capacity; i++) {
        const cow_map_entry *e = &r->place.entry[i];
        if (e->used && pool->table->write(pool->table, e->key, 1, r->rows + e->value * size) < 0)
            return -1;
    }
    forget_blocks(pool);
    return 0;
}

int cow_pool_flush(cow_pool *pool)
{
    uint64_t first = pool->first_unwritten;

    if (pool->reused.count > 0 && flush_reused(pool) < 0)
        return cow_context("writing the slot table of %s", pool->name);
    if (first < pool->slots) {
        if ((pool->slots > pool->table->rows && pool->table->resize(pool->table, pool->slots) < 0) ||
            pool->table->write(pool->table, first, pool->slots - first, row_at(pool, first)) < 0)
            return cow_context("writing the slot table of %s", pool->name);
        pool->first_unwritten = pool->slots;
    }
    forget_written(pool);
    return 0;
}

void cow_pool_seal(cow_pool *pool)
{
    pool->sealed = pool->slots;
    pool->free_count = 0;
    reused_forget(pool);
    forget_written(pool);
}

void cow_pool_allow_reuse(cow_pool *pool, uint64_t slots)
{
    pool->reused.most = slots;
}

uint64_t cow_pool_reused(const cow_pool *pool)
{
    return pool->reused.total;
}

/* ---- collecting ---- */

/* Of COUNT rows those that nobody needs become zeros; [*FROM, *TO): what changed. */
static int vacate_rows(cow_pool *pool, uint64_t first, uint64_t count, uint8_t *rows, const cow_pool_collector *c,
                       uint64_t *from, uint64_t *to)
{
    size_t size = cow_slot_row_size(pool->rank);

    *from = *to = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *row = rows + (size_t)i * size;
        bool used = memcmp(row, no_hash, COW_HASH_SIZE) != 0;

        if (c->needed(c->context, first + i)) {
            if (!used)
                return cow_error(COW_CORRUPT, "slot %" PRIu64 " of %s is in use and has no row; try: h5cow verify",
                                 first + i, pool->name);
            continue;
        }
        if (c->vacant(c->context, first + i, used) < 0)
            return -1;
        if (!used)
            continue;
        memset(row, 0, size);
        *from = *to == 0 ? i : *from;
        *to = i + 1;
    }
    return 0;
}

int cow_pool_vacate(cow_pool *pool, const cow_pool_collector *collector)
{
    size_t size = cow_slot_row_size(pool->rank);
    uint64_t block = LOAD_BYTES / size, from, to;
    uint8_t *rows;
    int status = 0;

    if (pool->base < pool->slots || pool->reused.count > 0)
        return cow_error(COW_USAGE, "%s has slots that are not committed", pool->name);
    if ((rows = malloc(LOAD_BYTES)) == NULL)
        return cow_error(COW_MEMORY, "no memory to read the slot table of %s", pool->name);
    for (uint64_t first = 0; status == 0 && first < pool->slots; first += block) {
        uint64_t count = block < pool->slots - first ? block : pool->slots - first;

        if (pool->table->read(pool->table, first, count, rows) < 0 ||
            vacate_rows(pool, first, count, rows, collector, &from, &to) < 0 ||
            (to > from && pool->table->write(pool->table, first + from, to - from, rows + from * size) < 0))
            status = cow_context("freeing slots of %s", pool->name);
    }
    free(rows);
    map_free(&pool->map);
    pool->reused.vacant_count = 0;
    forget_blocks(pool);
    return status;
}
