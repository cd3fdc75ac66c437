/* Pools: the slot table, the map from hash to slot, and the life of a slot. Contract: pool.h; rows on disk: format.h.
 *
 *            add                    drop of the last use
 *    (none) -----> used, unsealed ------------------------> free, unsealed --add--> used, unsealed
 *                       |                                        |
 *                       | seal                                   | seal
 *                       v                                        v
 *                  sealed: never written again, uses not counted (a row of zeros, if it was free)
 *
 * Rows wait in memory until they are written: by cow_pool_flush, for a commit or because too much waits (room.h). That seals
 * nothing: a slot whose row is in the table is used and dropped, and given out again, as before.
 *
 * A sealed slot with a row of zeros is vacant: nobody can name it. It may be given out again, and is then as one that is
 * used and unsealed until the next seal (`reused`).
 *
 * Hashes are found in three places: those of the newest slots in `map`; those of the slots before, of a pool with many, by the runs
 * in the file (lookup.h), which say by the first bytes which slots may have them; what changes among these is in `others` and `changed`
 * until the next flush adds it to the runs. What these say is compared with the rows. A pool without runs has all in the map.
 *
 * Invariants
 *  1. Slots from `base` on have their rows in `rows`; that of a slot below base is in the table, unless it has changed since and
 *     waits to be written: in `reused` where the slot is sealed, else in `rewritten`. Blocks of the table are forgotten when rows
 *     below base are written.
 *  2. The map, once loaded, holds exactly the hashes of all sealed slots and of all used ones from map.first on (of slots with the
 *     same hash, which only a damaged table has, the lowest).
 *  3. A function that fails leaves the pool as it was.
 *  4. Runs are a help: where they cannot be read they are made anew, and nothing else fails.
 *  5. A slot that the last use left is not found any more, even where there is no memory to note that: `lost`.
 */
#include "store/pool.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/map.h"
#include "base/vector.h"
#include "store/format.h"
#include "store/hash_map.h"
#include "store/lookup.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS 64                /* rows fetched together for cow_pool_row */
#define BLOCKS     32                /* of them kept */
#define LOAD_BYTES (1024 * 1024)     /* of the slot table read at once for the map */
#define MOST_READ  1024              /* rows of it, where there are runs */
#define MOST_NOTED ((size_t)1 << 19) /* hashes that are given to the runs at once: 8 MiB */
#define MOST_USES  UINT8_MAX         /* are not counted down: such a slot is never freed */

/* What a row that waits costs in memory beside itself: its hash in the map; its place among those that are rewritten, and
 * in `others`. */
#define MAP_BYTES   (COW_HASH_SIZE + 3 * sizeof(uint64_t))
#define PLACE_BYTES (6 * sizeof(cow_map_entry))

static const uint8_t no_hash[COW_HASH_SIZE];

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
    uint8_t *uses; /* 0: vacant again */
    bool *written; /* the row is in the table as it is here */
    size_t count, rows_room, uses_room, written_room;
    uint64_t *vacant; /* known with the map; the highest first */
    size_t vacant_count, vacant_room;
    uint64_t most;  /* so many may be given out before the next seal */
    uint64_t total; /* since the pool was opened */
} reused_slots;

/* Slots from sealed to base whose rows have changed since they were written. */
typedef struct rewritten_rows {
    cow_map place; /* slot -> its place in `rows` */
    uint8_t *rows;
    size_t count, room;
} rewritten_rows;

/* A binary heap, the lowest first. */
typedef struct free_slots {
    uint64_t *slot;
    size_t count, room;
} free_slots;

typedef struct known_hashes {
    bool loaded; /* what follows is known */
    cow_hash_map map;
    cow_lookup *lookup; /* NULL: there is none, or none that can be used */
    cow_map others;     /* first bytes of a hash -> slot before map.first */
    uint64_t *changed;  /* slots before map.first whose rows differ from what the runs were told */
    size_t changed_count, changed_room;
    cow_pool_lookup source;
    bool damaged; /* what is in the file */
} known_hashes;

struct cow_pool {
    char *name;
    unsigned rank;
    cow_table *table;
    cow_chunk_store *store;
    uint64_t slots;
    uint64_t sealed; /* slots below are sealed; those from here on are in uses[] */
    uint64_t base;   /* slots below have their row in the table; those from here on are in rows[] */
    uint8_t *rows;
    uint8_t *uses; /* 0: free. A byte a slot, which stays in memory until the seal */
    size_t rows_room, uses_room;
    free_slots free;
    rewritten_rows rewritten;
    reused_slots reused;
    known_hashes known;
    cow_room *room; /* NULL: all may wait */
    size_t waiting; /* bytes of what this pool has counted there */
    bool lost;      /* there was no memory to note that a slot holds nothing: its row may not be committed */
    row_block block[BLOCKS];
    uint64_t clock;
};

size_t cow_slot_row_size(unsigned rank)
{
    return COW_SLOT_TRIMMED_AT + 4 * (size_t)rank;
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
static uint8_t *uses_of(const cow_pool *pool, uint64_t slot)
{
    uint64_t place;

    if (slot < pool->slots && slot >= pool->sealed)
        return &pool->uses[slot - pool->sealed];
    return is_reused(pool, slot, &place) ? &pool->reused.uses[place] : NULL;
}

/* The row in memory of a slot. NULL: it is in the table. */
static uint8_t *row_in_memory(const cow_pool *pool, uint64_t slot)
{
    uint64_t place;

    if (slot >= pool->base)
        return row_at(pool, slot);
    if (pool->rewritten.count > 0 && cow_map_get(&pool->rewritten.place, slot, &place))
        return pool->rewritten.rows + place * cow_slot_row_size(pool->rank);
    return is_reused(pool, slot, &place) ? pool->reused.rows + place * cow_slot_row_size(pool->rank) : NULL;
}

/* ---- knowing hashes ---- */

static int no_memory(const cow_pool *pool)
{
    return cow_error(COW_MEMORY, "no memory for the slot table of %s (%" PRIu64 " slots)", pool->name, pool->slots);
}

static void forget_hashes(cow_pool *pool)
{
    cow_hash_map_free(&pool->known.map);
    pool->known.map.first = 0;
    cow_map_free(&pool->known.others);
    free(pool->known.changed);
    pool->known.changed = NULL;
    pool->known.changed_count = pool->known.changed_room = 0;
    cow_lookup_close(pool->known.lookup);
    pool->known.lookup = NULL;
    pool->reused.vacant_count = 0;
    pool->known.loaded = false;
}

/* They failed: what was to be written is written without them. */
static void do_without_lookup(cow_pool *pool)
{
    cow_error_clear();
    forget_hashes(pool);
    pool->known.damaged = true;
}

static bool half_done(const known_hashes *known)
{
    return known->source.half_done != NULL && known->source.half_done(known->source.context);
}

static void open_lookup(cow_pool *pool)
{
    cow_table *table = NULL;
    int found = pool->known.source.open == NULL || pool->known.damaged
                    ? 0
                    : pool->known.source.open(pool->known.source.context, &table);

    if (found > 0)
        pool->known.lookup = cow_lookup_open(table, pool->base, pool->room);
    if (found < 0 || (found > 0 && pool->known.lookup == NULL))
        do_without_lookup(pool);
}

static uint64_t key_of(const uint8_t hash[])
{
    return cow_get64(hash);
}

/* The row of SLOT, before map.first, changes. Where that cannot be kept, an equal chunk is stored once more, or the slot stays
 * vacant. */
static void note_change(known_hashes *known, uint64_t slot)
{
    if (COW_RESERVE(known->changed, known->changed_room, known->changed_count, 1) == 0)
        known->changed[known->changed_count++] = slot;
}

/* The hash of SLOT has room. */
static void insert(cow_pool *pool, uint64_t slot, const uint8_t hash[])
{
    if (slot >= pool->known.map.first) {
        cow_hash_map_insert(&pool->known.map, slot, hash);
        return;
    }
    note_change(&pool->known, slot);
    if (memcmp(hash, no_hash, COW_HASH_SIZE) != 0 && cow_map_put(&pool->known.others, key_of(hash), slot) < 0)
        cow_error_clear();
}

/* The slot holds nothing that may be found. In `others` and runs it may stand: its row tells. */
static void take_out(cow_pool *pool, uint64_t slot)
{
    if (!pool->known.loaded)
        return;
    if (slot >= pool->known.map.first)
        cow_hash_map_remove(&pool->known.map, slot);
    else
        note_change(&pool->known, slot);
}

/* VISIT the rows FROM to TO of the table, in blocks. */
typedef int rows_visitor(cow_pool *pool, uint64_t first, uint64_t count, const uint8_t *rows, void *context);

static int visit_rows(cow_pool *pool, uint64_t from, uint64_t to, rows_visitor *visit, void *context)
{
    const size_t size = cow_slot_row_size(pool->rank);
    uint64_t block = LOAD_BYTES / size, count;
    uint8_t *rows;
    int status = 0;

    if (from >= to)
        return 0;
    if (block > to - from)
        block = to - from;
    if ((rows = malloc((size_t)block * size)) == NULL)
        return no_memory(pool);
    for (; status == 0 && from < to; from += count) {
        count = to - from < block ? to - from : block;
        if (pool->table->read(pool->table, from, count, rows) < 0)
            status = cow_context("reading the slot table of %s", pool->name);
        else
            status = visit(pool, from, count, rows, context);
    }
    free(rows);
    return status;
}

static int load_rows(cow_pool *pool, uint64_t first, uint64_t count, const uint8_t *rows, void *context)
{
    reused_slots *r = &pool->reused;

    (void)context;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *row = row_in_memory(pool, first + i);

        if (row == NULL)
            row = rows + (size_t)i * cow_slot_row_size(pool->rank);
        insert(pool, first + i, row);
        if (r->most == 0 || memcmp(row, no_hash, COW_HASH_SIZE) != 0)
            continue;
        if (COW_RESERVE(r->vacant, r->vacant_room, r->vacant_count, 1) < 0)
            return no_memory(pool);
        r->vacant[r->vacant_count++] = first + i;
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

/* What was given out again and the runs do not know yet. */
static void insert_reused(cow_pool *pool)
{
    const reused_slots *r = &pool->reused;

    for (size_t i = 0; i < r->place.capacity; i++) {
        const cow_map_entry *e = &r->place.entry[i];

        if (e->used && e->key < pool->known.map.first)
            insert(pool, e->key, r->rows + e->value * cow_slot_row_size(pool->rank));
    }
}

static int load(cow_pool *pool)
{
    if (pool->known.loaded)
        return 0;
    open_lookup(pool);
    pool->known.map.first = pool->known.lookup == NULL ? 0 : cow_lookup_noted(pool->known.lookup);
    if (cow_hash_map_reserve(&pool->known.map, pool->slots) < 0) {
        no_memory(pool);
        goto failed;
    }
    if (visit_rows(pool, pool->known.map.first, pool->base, load_rows, NULL) < 0)
        goto failed;
    /* look_for_vacant needs one, and each of those that were given out may come back. */
    if (COW_RESERVE(pool->reused.vacant, pool->reused.vacant_room, pool->reused.vacant_count, pool->reused.count + 1) <
        0) {
        no_memory(pool);
        goto failed;
    }
    turn_vacant(pool);
    insert_reused(pool);
    /* A free slot's row is all zeros, and such a hash is not entered. */
    for (uint64_t slot = pool->base; slot < pool->slots; slot++)
        insert(pool, slot, row_at(pool, slot));
    pool->known.loaded = true;
    return 0;
failed:
    forget_hashes(pool);
    return -1;
}

/* ---- free slots ---- */

/* What was given out is sealed, or gone. */
static void reused_forget(cow_pool *pool)
{
    reused_slots *r = &pool->reused;

    cow_map_free(&r->place);
    free(r->rows);
    free(r->uses);
    free(r->written);
    r->rows = NULL;
    r->uses = NULL;
    r->written = NULL;
    r->count = r->rows_room = r->uses_room = r->written_room = 0;
}

static void free_push(cow_pool *pool, uint64_t slot)
{
    size_t i = pool->free.count++;

    for (; i > 0 && pool->free.slot[(i - 1) / 2] > slot; i = (i - 1) / 2)
        pool->free.slot[i] = pool->free.slot[(i - 1) / 2];
    pool->free.slot[i] = slot;
}

static uint64_t free_pop(cow_pool *pool)
{
    uint64_t *heap = pool->free.slot;
    uint64_t lowest = heap[0], last = heap[--pool->free.count];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= pool->free.count)
            break;
        if (child + 1 < pool->free.count && heap[child + 1] < heap[child])
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
    pool->slots = pool->sealed = pool->base = table->rows;
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

void cow_pool_wait_in(cow_pool *pool, cow_room *room)
{
    pool->room = room;
}

static void waits(cow_pool *pool, size_t bytes)
{
    pool->waiting += bytes;
    if (pool->room != NULL)
        pool->room->waiting += bytes;
}

static void nothing_waits(cow_pool *pool)
{
    if (pool->room != NULL)
        pool->room->waiting -= pool->waiting;
    pool->waiting = 0;
}

static void rewritten_forget(cow_pool *pool)
{
    cow_map_free(&pool->rewritten.place);
    free(pool->rewritten.rows);
    pool->rewritten = (rewritten_rows){0};
}

void cow_pool_close(cow_pool *pool)
{
    if (!pool)
        return;
    nothing_waits(pool);
    rewritten_forget(pool);
    for (size_t i = 0; i < BLOCKS; i++)
        free(pool->block[i].rows);
    forget_hashes(pool);
    free(pool->rows);
    free(pool->uses);
    free(pool->free.slot);
    free(pool->reused.vacant);
    reused_forget(pool);
    pool->store->close(pool->store);
    pool->table->close(pool->table);
    free(pool->name);
    free(pool);
}

bool cow_pool_idle(const cow_pool *pool)
{
    return !pool->known.loaded && pool->base == pool->slots && pool->sealed == pool->slots;
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

/* Room in memory for one slot more. */
static int reserve(cow_pool *pool)
{
    if (cow_vector_reserve(&pool->rows, &pool->rows_room, (size_t)(pool->slots - pool->base), 1,
                           cow_slot_row_size(pool->rank)) == 0 &&
        COW_RESERVE(pool->uses, pool->uses_room, (size_t)(pool->slots - pool->sealed), 1) == 0)
        return 0;
    return no_memory(pool);
}

/* The row in memory of an unsealed slot, which is about to change: all of it. NULL, without an error: no memory. */
static uint8_t *row_to_change(cow_pool *pool, uint64_t slot)
{
    rewritten_rows *r = &pool->rewritten;
    size_t size = cow_slot_row_size(pool->rank);
    uint8_t *row = row_in_memory(pool, slot);

    if (row != NULL)
        return row;
    if (cow_vector_reserve(&r->rows, &r->room, r->count, 1, size) < 0)
        return NULL;
    if (cow_map_put(&r->place, slot, r->count) < 0) {
        cow_error_clear();
        return NULL;
    }
    waits(pool, size + PLACE_BYTES);
    return r->rows + r->count++ * size;
}

/* Called where nobody holds anything of a pool. */
static int write_out_if_full(const cow_pool *pool)
{
    cow_room *room = pool->room;

    return room != NULL && cow_room_is_full(room) ? room->write_out(room->context) : 0;
}

/* The row in memory of a sealed slot changes. */
static void not_written(cow_pool *pool, uint64_t slot)
{
    uint64_t place;

    if (slot < pool->sealed && is_reused(pool, slot, &place))
        pool->reused.written[place] = false;
}

/* Put ROW into the row of a slot in memory, and into the map, which has room for it. */
static void put_row(cow_pool *pool, uint64_t slot, const cow_slot *row)
{
    uint8_t *bytes = row_in_memory(pool, slot);

    not_written(pool, slot);
    memcpy(bytes + COW_SLOT_HASH_AT, row->digest.hash, COW_HASH_SIZE);
    cow_put64(bytes + COW_SLOT_CHECKSUM_AT, row->digest.checksum);
    for (unsigned d = 0; d < pool->rank; d++)
        cow_put32(bytes + COW_SLOT_TRIMMED_AT + 4 * d, row->trimmed[d]);
    if (pool->known.loaded)
        insert(pool, slot, row->digest.hash);
}

/* The next slot that may be vacant becomes the last one of those that are known. 1; 0: there is none; -1. */
static int look_for_vacant(cow_pool *pool)
{
    reused_slots *r = &pool->reused;
    uint64_t slot;
    int found;

    while (r->vacant_count == 0 && pool->known.lookup != NULL) {
        if ((found = cow_lookup_take(pool->known.lookup, &slot)) == 0)
            return 0;
        if (found > 0)
            r->vacant[r->vacant_count++] = slot;
        else {
            do_without_lookup(pool);
            if (load(pool) < 0)
                return -1;
        }
    }
    return r->vacant_count > 0;
}

/* Does a vacant slot take the next chunk? 1: the last one of `vacant`; 0; -1. */
static int find_vacant(cow_pool *pool)
{
    reused_slots *r = &pool->reused;
    cow_slot row;
    int found;

    if (!pool->known.loaded || pool->free.count > 0 || r->count >= r->most)
        return 0;
    while ((found = look_for_vacant(pool)) > 0) {
        uint64_t slot = r->vacant[r->vacant_count - 1];

        if (slot < pool->base && cow_pool_row(pool, slot, &row) < 0)
            return -1;
        if (slot < pool->base && slot < pool->sealed && !cow_map_get(&pool->rewritten.place, slot, NULL) &&
            memcmp(row.digest.hash, no_hash, COW_HASH_SIZE) == 0)
            break;
        r->vacant_count--;
    }
    return found;
}

static int reuse_slot(cow_pool *pool, uint64_t *slot)
{
    reused_slots *r = &pool->reused;
    uint64_t place;

    *slot = r->vacant[r->vacant_count - 1];
    if (pool->store->again != NULL && pool->store->again(pool->store, *slot) < 0)
        return -1;
    if (!is_reused(pool, *slot, &place)) {
        place = r->count;
        if (cow_vector_reserve(&r->rows, &r->rows_room, place, 1, cow_slot_row_size(pool->rank)) < 0 ||
            COW_RESERVE(r->vacant, r->vacant_room, r->vacant_count, r->count + 1) < 0 ||
            COW_RESERVE(r->uses, r->uses_room, place, 1) < 0 ||
            COW_RESERVE(r->written, r->written_room, place, 1) < 0 || cow_map_put(&r->place, *slot, place) < 0)
            return no_memory(pool);
        r->count++;
        r->total++;
    }
    r->vacant_count--;
    return 0;
}

/* A slot that nobody uses, which has a row in memory: one that was dropped, or a new one. */
static int free_or_new_slot(cow_pool *pool, uint64_t *slot)
{
    if (pool->free.count > 0) {
        if (row_to_change(pool, pool->free.slot[0]) == NULL)
            return no_memory(pool);
        *slot = free_pop(pool);
        return 0;
    }
    if (reserve(pool) < 0)
        return -1;
    *slot = pool->slots++;
    waits(pool, cow_slot_row_size(pool->rank) + MAP_BYTES);
    return 0;
}

int cow_pool_add(cow_pool *pool, const cow_slot *row, uint64_t *slot)
{
    int vacant;

    if (write_out_if_full(pool) < 0 || (vacant = find_vacant(pool)) < 0)
        return -1;
    if (pool->known.loaded && cow_hash_map_reserve(&pool->known.map, pool->slots + 1) < 0)
        return no_memory(pool);
    if ((vacant ? reuse_slot(pool, slot) : free_or_new_slot(pool, slot)) < 0)
        return -1;
    *uses_of(pool, *slot) = 1;
    put_row(pool, *slot, row);
    return 0;
}

int cow_pool_set_row(cow_pool *pool, uint64_t slot, const cow_slot *row)
{
    const uint8_t *uses = uses_of(pool, slot);

    if (uses == NULL || *uses == 0)
        return cow_error(COW_USAGE,
                         "slot %" PRIu64 " of %s cannot get another row: this transaction did not give it out", slot,
                         pool->name);
    if (write_out_if_full(pool) < 0)
        return -1;
    if (row_to_change(pool, slot) == NULL)
        return no_memory(pool);
    take_out(pool, slot);
    put_row(pool, slot, row);
    return 0;
}

bool cow_pool_sealed(const cow_pool *pool, uint64_t slot)
{
    return uses_of(pool, slot) == NULL;
}

/* In the middle of what fails, or of what cannot: so that dropping very many is bounded as well. What is not written now goes
 * on waiting. */
static void try_to_write_out(const cow_pool *pool)
{
    cow_error_held *held;

    if (pool->room == NULL || !cow_room_is_full(pool->room))
        return;
    held = cow_error_hold();
    if (write_out_if_full(pool) < 0)
        cow_error_clear();
    cow_error_put_back(held);
}

static void free_slot(cow_pool *pool, uint64_t slot)
{
    bool written = slot < pool->base;
    uint8_t *row = row_to_change(pool, slot);

    /* The bytes may never have been written, or be overwritten next: nobody may find them any more. */
    pool->lost = pool->lost || row == NULL;
    if (row == NULL)
        return;
    take_out(pool, slot);
    memset(row, 0, cow_slot_row_size(pool->rank));
    if (COW_RESERVE(pool->free.slot, pool->free.room, pool->free.count, 1) == 0)
        free_push(pool, slot); /* else it stays free until the seal */
    if (written)
        try_to_write_out(pool);
}

void cow_pool_drop(cow_pool *pool, uint64_t slot)
{
    uint8_t *uses = uses_of(pool, slot);

    if (uses == NULL || *uses == 0 || *uses == MOST_USES || --*uses > 0)
        return;
    if (slot >= pool->sealed) {
        free_slot(pool, slot);
        return;
    }
    take_out(pool, slot);
    not_written(pool, slot);
    memset(row_in_memory(pool, slot), 0, cow_slot_row_size(pool->rank));
    pool->reused.vacant[pool->reused.vacant_count++] = slot; /* which has room for all that were given out */
}

void cow_pool_use(cow_pool *pool, uint64_t slot)
{
    uint8_t *uses = uses_of(pool, slot);

    if (uses != NULL && *uses > 0 && *uses < MOST_USES)
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

/* ---- finding ---- */

typedef struct searched {
    cow_pool *pool;
    const uint8_t *hash;
    uint64_t slot;
    bool failed; /* the rows cannot be read */
} searched;

/* 1: it has the hash. */
static int compare(void *context, uint64_t slot)
{
    searched *s = context;
    cow_slot row;

    if (slot >= s->pool->slots)
        return 0;
    if (cow_pool_row(s->pool, slot, &row) < 0) {
        s->failed = true;
        return -1;
    }
    if (memcmp(row.digest.hash, s->hash, COW_HASH_SIZE) != 0)
        return 0;
    s->slot = slot;
    return 1;
}

/* 1: what helps to find it is damaged. */
static int find_before(cow_pool *pool, const uint8_t hash[], uint64_t *slot)
{
    searched s = {.pool = pool, .hash = hash, .slot = COW_NO_SLOT};
    uint64_t other;
    int found = 0;

    if (cow_map_get(&pool->known.others, key_of(hash), &other))
        found = compare(&s, other);
    if (found == 0 && pool->known.lookup != NULL)
        found = cow_lookup_find(pool->known.lookup, key_of(hash), compare, &s);
    *slot = s.slot;
    if (s.failed)
        return -1;
    return found < 0;
}

static int find(cow_pool *pool, const uint8_t hash[], uint64_t *slot)
{
    int damaged;

    if (load(pool) < 0)
        return -1;
    if (cow_hash_map_find(&pool->known.map, hash, slot))
        return 0;
    if ((damaged = find_before(pool, hash, slot)) <= 0)
        return damaged;
    do_without_lookup(pool);
    if (load(pool) < 0)
        return -1;
    if (!cow_hash_map_find(&pool->known.map, hash, slot))
        *slot = COW_NO_SLOT;
    return 0;
}

int cow_pool_find(cow_pool *pool, const cow_digest *digest, uint64_t *slot)
{
    *slot = COW_NO_SLOT;
    if (find(pool, digest->hash, slot) < 0)
        return -1;
    if (*slot != COW_NO_SLOT)
        cow_pool_use(pool, *slot);
    return 0;
}

/* ---- noting, in the runs ---- */

typedef struct noting {
    cow_lookup_entry *entry;
    size_t count, room;
} noting;

static int note(cow_pool *pool, noting *n, const uint8_t *row, uint64_t slot)
{
    if (n->count >= MOST_NOTED) {
        if (cow_lookup_add(pool->known.lookup, n->entry, n->count, cow_lookup_noted(pool->known.lookup)) < 0)
            return -1;
        n->count = 0;
    }
    if (COW_RESERVE(n->entry, n->room, n->count, 1) < 0)
        return no_memory(pool);
    n->entry[n->count++] = (cow_lookup_entry){row == NULL ? 0 : key_of(row), slot};
    return 0;
}

static int note_rows(cow_pool *pool, uint64_t first, uint64_t count, const uint8_t *rows, void *context)
{
    for (uint64_t i = 0; i < count; i++)
        if (note(pool, context, rows + (size_t)i * cow_slot_row_size(pool->rank), first + i) < 0)
            return -1;
    return 0;
}

static int note_changed(cow_pool *pool, noting *n)
{
    for (size_t i = 0; i < pool->known.changed_count; i++) {
        const uint8_t *row = row_in_memory(pool, pool->known.changed[i]);

        if (row != NULL && note(pool, n, row, pool->known.changed[i]) < 0)
            return -1;
    }
    return 0;
}

/* What is new to the runs, whose rows are in the table. ALL: of the newest slots too, else only if they are many. */
static int note_new(cow_pool *pool, bool all)
{
    uint64_t first = pool->known.map.first, waiting = first < pool->base ? pool->base : first;
    noting n = {0};
    int status = note_changed(pool, &n);

    all = all || pool->slots - first > MOST_READ;
    if (status == 0 && all && first < pool->base)
        status = visit_rows(pool, first, pool->base, note_rows, &n);
    if (status == 0 && all && waiting < pool->slots)
        status = note_rows(pool, waiting, pool->slots - waiting, row_at(pool, waiting), &n);
    if (status == 0 && (all || n.count > 0 || cow_lookup_is_due(pool->known.lookup)))
        status = cow_lookup_add(pool->known.lookup, n.entry, n.count,
                                all ? pool->slots : cow_lookup_noted(pool->known.lookup));
    free(n.entry);
    if (status < 0)
        return -1;
    cow_map_free(&pool->known.others);
    pool->known.changed_count = 0;
    if (all) {
        cow_hash_map_free(&pool->known.map);
        pool->known.map.first = pool->slots;
    }
    return 0;
}

/* There are none, so the map knows all. Where they cannot be made it goes on to. */
static int make_lookup(cow_pool *pool)
{
    known_hashes *known = &pool->known;
    cow_table *table = known->source.make(known->source.context);

    if (table != NULL && (known->lookup = cow_lookup_open(table, 0, pool->room)) != NULL && note_new(pool, true) == 0) {
        known->damaged = false;
        return 0;
    }
    cow_lookup_close(known->lookup);
    known->lookup = NULL;
    known->source.make = NULL;
    if (half_done(known))
        return -1;
    cow_error_clear();
    return 0;
}

/* Have the runs more entries of rows that have changed since than others? */
static bool outdated(const cow_pool *pool)
{
    return pool->known.lookup != NULL &&
           cow_lookup_entries(pool->known.lookup) + pool->known.changed_count > 2 * pool->slots + MOST_READ;
}

/* From the rows, all of which are written or wait. Where that cannot be, the map knows all. */
static int make_lookup_anew(cow_pool *pool)
{
    forget_hashes(pool);
    if (make_lookup(pool) < 0)
        return -1;
    if (pool->known.lookup != NULL) {
        pool->known.loaded = true;
        return 0;
    }
    do_without_lookup(pool);
    return load(pool);
}

/* What the runs lack, after the rows have been written. */
static int flush_hashes(cow_pool *pool)
{
    if (!pool->known.loaded || pool->known.source.make == NULL)
        return 0;
    if (outdated(pool))
        return make_lookup_anew(pool);
    if (pool->known.lookup != NULL) {
        if (note_new(pool, false) == 0)
            return 0;
        if (half_done(&pool->known))
            return -1;
        do_without_lookup(pool);
        if (load(pool) < 0)
            return -1;
    }
    return pool->slots > MOST_READ ? make_lookup(pool) : 0;
}

/* ---- writing ---- */

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

        if (!e->used || r->written[e->value])
            continue;
        if (pool->table->write(pool->table, e->key, 1, r->rows + e->value * size) < 0)
            return -1;
        r->written[e->value] = true;
    }
    forget_blocks(pool);
    return 0;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Rows that follow one another together. */
static int flush_rewritten(cow_pool *pool)
{
    const rewritten_rows *r = &pool->rewritten;
    size_t size = cow_slot_row_size(pool->rank), most = LOAD_BYTES / size, count = 0;
    uint64_t *slot = malloc(r->count * sizeof *slot);
    uint8_t *rows = malloc(most * size);
    int status = slot == NULL || rows == NULL ? no_memory(pool) : 0;

    for (size_t i = 0; status == 0 && i < r->place.capacity; i++)
        if (r->place.entry[i].used)
            slot[count++] = r->place.entry[i].key;
    if (status == 0)
        qsort(slot, count, sizeof *slot, by_number);
    for (size_t i = 0, n; status == 0 && i < count; i += n) {
        for (n = 0; n < most && i + n < count && slot[i + n] == slot[i] + n; n++)
            memcpy(rows + n * size, row_in_memory(pool, slot[i + n]), size);
        status = pool->table->write(pool->table, slot[i], n, rows);
    }
    free(rows);
    free(slot);
    forget_blocks(pool);
    return status;
}

/* In blocks: what HDF5 needs to write very many rows at once is more than the rows. */
static int flush_new(cow_pool *pool)
{
    uint64_t most = LOAD_BYTES / cow_slot_row_size(pool->rank), count;

    if (pool->slots > pool->table->rows && pool->table->resize(pool->table, pool->slots) < 0)
        return -1;
    for (uint64_t first = pool->base; first < pool->slots; first += count) {
        count = pool->slots - first < most ? pool->slots - first : most;
        if (pool->table->write(pool->table, first, count, row_at(pool, first)) < 0)
            return -1;
    }
    return 0;
}

/* What is in the table need not stay in memory. */
static void forget_written(cow_pool *pool)
{
    rewritten_forget(pool);
    free(pool->rows);
    pool->rows = NULL;
    pool->rows_room = 0;
    pool->base = pool->slots;
    nothing_waits(pool);
}

int cow_pool_flush(cow_pool *pool)
{
    if (pool->lost)
        return cow_error(COW_MEMORY, "there was no memory to note that a slot of %s holds nothing", pool->name);
    if ((pool->reused.count > 0 && flush_reused(pool) < 0) ||
        (pool->rewritten.count > 0 && flush_rewritten(pool) < 0) || flush_new(pool) < 0)
        return cow_context("writing the slot table of %s", pool->name);
    if (flush_hashes(pool) < 0)
        return cow_context("noting the hashes of %s", pool->name);
    forget_written(pool);
    return 0;
}

int cow_pool_write_out(cow_pool *pool)
{
    int status;

    if (pool->waiting == 0)
        return 0;
    if (pool->known.lookup != NULL)
        cow_lookup_hold(pool->known.lookup, true);
    status = cow_pool_flush(pool);
    if (pool->known.lookup != NULL)
        cow_lookup_hold(pool->known.lookup, false);
    return status;
}

void cow_pool_seal(cow_pool *pool)
{
    free(pool->uses);
    free(pool->free.slot);
    pool->uses = NULL;
    pool->free.slot = NULL;
    pool->uses_room = pool->free.room = pool->free.count = 0;
    pool->sealed = pool->slots;
    reused_forget(pool);
    if (pool->known.lookup != NULL)
        cow_lookup_committed(pool->known.lookup);
}

void cow_pool_keep_lookup(cow_pool *pool, const cow_pool_lookup *source)
{
    pool->known.source = *source;
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

/* Slots that become vacant, to be noted. */
typedef struct vacating {
    const cow_pool_collector *collector;
    noting vacated;
    bool many;
} vacating;

static int note_one_vacant(cow_pool *pool, vacating *v, uint64_t slot)
{
    if (v->collector->vacant(v->collector->context, slot, true) < 0)
        return -1;
    v->many = v->many || v->vacated.count >= pool->slots / 4 || v->vacated.count >= MOST_NOTED;
    return v->many ? 0 : note(pool, &v->vacated, NULL, slot);
}

/* Of COUNT rows those that nobody needs become zeros; [*FROM, *TO): what changed. */
static int vacate_rows(cow_pool *pool, uint64_t first, uint64_t count, uint8_t *rows, vacating *v, uint64_t *from,
                       uint64_t *to)
{
    const cow_pool_collector *c = v->collector;
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
        if ((used ? note_one_vacant(pool, v, first + i) : c->vacant(c->context, first + i, false)) < 0)
            return -1;
        if (!used)
            continue;
        memset(row, 0, size);
        *from = *to == 0 ? i : *from;
        *to = i + 1;
    }
    return 0;
}

/* They are found when a slot is to be given out. Entries of chunks that are gone stay, until they are as many as the others. */
static int note_vacated(cow_pool *pool, vacating *v)
{
    known_hashes *known = &pool->known;
    size_t count = 0;
    int status = 0;

    if (known->source.make == NULL || pool->slots <= MOST_READ || (v->vacated.count == 0 && !v->many))
        return 0;
    open_lookup(pool);
    if (known->lookup == NULL || v->many || cow_lookup_entries(known->lookup) > 2 * pool->slots + MOST_READ) {
        forget_hashes(pool);
        status = make_lookup(pool);
    } else {
        for (size_t i = 0; i < v->vacated.count; i++)
            if (v->vacated.entry[i].value < cow_lookup_noted(known->lookup))
                v->vacated.entry[count++] = v->vacated.entry[i];
        if (cow_lookup_add(known->lookup, v->vacated.entry, count, cow_lookup_noted(known->lookup)) < 0) {
            if (half_done(known))
                status = -1;
            else
                do_without_lookup(pool);
        }
    }
    forget_hashes(pool);
    return status;
}

int cow_pool_vacate(cow_pool *pool, const cow_pool_collector *collector)
{
    vacating v = {.collector = collector};
    size_t size = cow_slot_row_size(pool->rank);
    uint64_t block = LOAD_BYTES / size, from = 0, to = 0;
    uint8_t *rows;
    int status = 0;

    if (pool->sealed < pool->slots || pool->base < pool->slots || pool->reused.count > 0)
        return cow_error(COW_USAGE, "%s has slots that are not committed", pool->name);
    if ((rows = malloc(LOAD_BYTES)) == NULL)
        return no_memory(pool);
    for (uint64_t first = 0; status == 0 && first < pool->slots; first += block) {
        uint64_t count = block < pool->slots - first ? block : pool->slots - first;

        if (pool->table->read(pool->table, first, count, rows) < 0 ||
            vacate_rows(pool, first, count, rows, &v, &from, &to) < 0 ||
            (to > from && pool->table->write(pool->table, first + from, to - from, rows + from * size) < 0))
            status = cow_context("freeing slots of %s", pool->name);
    }
    free(rows);
    forget_blocks(pool);
    forget_hashes(pool);
    if (status == 0)
        status = note_vacated(pool, &v);
    free(v.vacated.entry);
    return status;
}
