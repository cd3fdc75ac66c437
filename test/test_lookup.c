/* Finding by key without reading all (store/lookup.h), and pools that use it, against plain models. */
#include "base/bytes.h"
#include "base/error.h"
#include "harness.h"
#include "random.h"
#include "store/format.h"
#include "store/lookup.h"
#include "store/pool.h"
#include "test_tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 60000 };

static uint64_t dice;

static uint64_t random_number(void)
{
    return splitmix64(&dice);
}

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)(random_number() % n);
}

/* ---- the lookup alone ---- */

typedef struct model {
    uint64_t key[KEYS]; /* by value; 0: taken, or to be taken */
    bool there[KEYS];
    size_t count;
} model;

static model known;

static int is_value(void *context, uint64_t value)
{
    return value == *(uint64_t *)context;
}

static void assert_all_found(cow_lookup *lookup)
{
    for (uint64_t v = 0; v < KEYS; v++)
        if (known.there[v] && known.key[v] != 0)
            assert_int_equal(cow_lookup_find(lookup, known.key[v], is_value, &v), 1);
}

/* Some keys are the same, and some are one apart. */
static uint64_t some_key(void)
{
    switch (random_below(20)) {
    case 0:
        return known.key[random_below((uint32_t)known.count + 1)];
    case 1:
        return known.key[random_below((uint32_t)known.count + 1)] + 1;
    case 2:
        return random_below(2) ? 0 : random_below(100);
    case 3:
        return UINT64_MAX - random_below(30);
    default:
        return random_number();
    }
}

static void add_some(cow_lookup *lookup, size_t count)
{
    cow_lookup_entry *entry = calloc(count + 1, sizeof *entry);
    size_t n = 0;

    assert_non_null(entry);
    for (; n < count && known.count < KEYS; n++) {
        uint64_t value = known.count++;

        known.key[value] = some_key();
        known.there[value] = true;
        entry[n] = (cow_lookup_entry){known.key[value], value};
    }
    assert_int_equal(cow_lookup_add(lookup, entry, n, random_below(3) ? cow_lookup_noted(lookup) : known.count), 0);
    free(entry);
}

static void take_some(cow_lookup *lookup, size_t count)
{
    uint64_t value;

    for (; count > 0 && cow_lookup_take(lookup, &value) == 1; count--) {
        assert_true(value < known.count && known.key[value] == 0);
        known.there[value] = false; /* it may be told again, after the lookup was opened again */
    }
}

static void lookup_agrees_with_a_model(cow_room *room)
{
    cow_table *table = cow_table_memory(COW_LOOKUP_ROW);
    cow_lookup *lookup = cow_lookup_open(borrowed_table(table), 0, room);
    uint64_t value, left = 0, told = 0;

    memset(&known, 0, sizeof known);
    while (known.count < KEYS) {
        static const size_t most[] = {1, 3, 40, 300, 5000};

        assert_non_null(lookup);
        add_some(lookup, random_below((uint32_t)most[random_below(5)] + 1));
        if (random_below(4) == 0)
            take_some(lookup, random_below(20));
        if (random_below(30) == 0)
            assert_all_found(lookup);
        if (random_below(10) == 0)
            cow_lookup_hold(lookup, random_below(2));
        if (random_below(10) == 0)
            cow_lookup_committed(lookup);
        if (room != NULL)
            assert_true(room->filters <= room->bytes / 4 && room->filters + room->pages <= room->bytes);
        if (random_below(10) == 0) {
            uint64_t noted = cow_lookup_noted(lookup);

            cow_lookup_close(lookup);
            lookup = cow_lookup_open(borrowed_table(table), noted, room);
            assert_non_null(lookup);
            assert_true(cow_lookup_noted(lookup) == noted);
        }
    }
    assert_all_found(lookup);
    for (size_t v = 0; v < KEYS; v++)
        left += known.there[v] && known.key[v] == 0;
    for (; cow_lookup_take(lookup, &value) == 1; told++)
        assert_true(known.key[value] == 0);
    assert_true(told >= left);
    assert_int_equal(cow_lookup_find(lookup, 0, is_value, &value), 0);
    cow_lookup_close(lookup);
    table->close(table);
}

static void test_lookup_agrees_with_a_model(void **state)
{
    (void)state;
    lookup_agrees_with_a_model(NULL);
}

static void test_lookup_with_filters_agrees_with_a_model(void **state)
{
    (void)state;
    for (unsigned bits = 12; bits <= 22; bits += 5) {
        cow_room room = {.bytes = (size_t)1 << bits};

        lookup_agrees_with_a_model(&room);
        assert_true(room.pages == 0 && room.filters == 0);
    }
}

static int is_none(void *context, uint64_t value)
{
    (void)context;
    (void)value;
    return 0;
}

/* Who asks for keys that are not there reads of a run that it wrote a few pages in a hundred, and of one that it found there no
 * more than twice what the run has. */
static void test_keys_that_are_not_there_are_not_looked_for(void **state)
{
    enum { RUN = 50000, ASKED = 20000 };
    static cow_lookup_entry entry[RUN];
    cow_table *table = cow_table_memory(COW_LOOKUP_ROW), *counted = borrowed_table(table);
    cow_room room = {.bytes = (size_t)256 << 10};
    cow_lookup *lookup = cow_lookup_open(counted, 0, &room);
    unsigned before;

    (void)state;
    for (size_t i = 0; i < RUN; i++)
        entry[i] = (cow_lookup_entry){random_number(), i};
    assert_int_equal(cow_lookup_add(lookup, entry, RUN, RUN), 0);
    for (int reopened = 0; reopened < 2; reopened++) {
        before = calls(counted);
        for (size_t i = 0; i < ASKED; i++)
            assert_int_equal(cow_lookup_find(lookup, random_number(), is_none, NULL), 0);
        assert_true(calls(counted) - before < (reopened ? RUN / 256 * 2 : 0) + ASKED / 10);
        for (size_t i = 0; i < RUN; i += 7)
            assert_int_equal(cow_lookup_find(lookup, entry[i].key, is_value, &entry[i].value), 1);
        cow_lookup_close(lookup);
        counted = borrowed_table(table);
        lookup = cow_lookup_open(counted, RUN, &room);
    }
    cow_lookup_close(lookup);
    table->close(table);
}

/* The root of a file has an entry for each version. Where one key takes up many pages, others lie elsewhere than their values let
 * expect: no more is read than by halving, and a few guesses. */
static void test_a_key_with_many_entries_takes_few_reads(void **state)
{
    enum { RUN = 50000, HALVINGS = 8, GUESSES = 4 }; /* RUN is less than 256 << HALVINGS */
    static cow_lookup_entry entry[RUN];

    (void)state;
    for (int times = 0; times < 100; times++) {
        cow_table *table = cow_table_memory(COW_LOOKUP_ROW), *counted = borrowed_table(table);
        cow_lookup *lookup = cow_lookup_open(counted, 0, NULL);
        uint64_t often = random_number() | 1, equal = random_below(RUN - 2) + 1, first = 0, value = RUN - 1, key = 0;
        unsigned before;

        for (size_t i = 0; i < RUN; i++)
            entry[i] = (cow_lookup_entry){key = i < equal ? often : random_number(), i};
        assert_int_equal(cow_lookup_add(lookup, entry, RUN, RUN), 0);
        for (size_t i = 0; i < 2; i++) {
            cow_lookup_close(lookup);
            counted = borrowed_table(table);
            lookup = cow_lookup_open(counted, RUN, NULL);
            before = calls(counted);
            if (i == 0)
                assert_int_equal(cow_lookup_find(lookup, often, is_value, &first), 1);
            else
                assert_int_equal(cow_lookup_find(lookup, key, is_value, &value), 1);
            if (calls(counted) - before > HALVINGS + GUESSES)
                fail_msg("%u reads of key %d, %" PRIu64 " of %d entries have one key", calls(counted) - before, (int)i,
                         equal, RUN);
        }
        cow_lookup_close(lookup);
        table->close(table);
    }
}

/* Whatever the bytes are: an error, or what is not found; values are the user's to check. */
static void test_a_damaged_table_does_no_harm(void **state)
{
    cow_table *table = cow_table_memory(COW_LOOKUP_ROW);
    cow_lookup *lookup = cow_lookup_open(borrowed_table(table), 0, NULL);
    (void)state;

    memset(&known, 0, sizeof known);
    for (int i = 0; i < 30; i++)
        add_some(lookup, random_below(1000));
    cow_lookup_close(lookup);
    for (int round = 0; round < 3000; round++) {
        uint8_t row[COW_LOOKUP_ROW];
        uint64_t at = random_below(3) ? random_below(COW_LOOKUP_HEADER / 4) : random_below((uint32_t)table->rows),
                 value;

        assert_int_equal(table->read(table, at, 1, row), 0);
        row[random_below(COW_LOOKUP_ROW)] = (uint8_t)random_number();
        assert_int_equal(table->write(table, at, 1, row), 0);
        if ((lookup = cow_lookup_open(borrowed_table(table), KEYS, NULL)) == NULL) {
            assert_kind(COW_CORRUPT);
            assert_int_equal(table->resize(table, 0), 0);
            lookup = cow_lookup_open(borrowed_table(table), 0, NULL);
            known.count = 0;
            for (int i = 0; i < 10; i++)
                add_some(lookup, random_below(1000));
        }
        for (int i = 0; i < 20; i++) {
            value = random_below(KEYS);
            cow_lookup_find(lookup, some_key(), is_value, &value);
            cow_lookup_take(lookup, &value);
        }
        if (known.count < KEYS)
            add_some(lookup, random_below(50));
        cow_lookup_close(lookup);
    }
    table->close(table);
}

static void test_tables_that_are_no_lookup_are_refused(void **state)
{
    cow_table *table = cow_table_memory(COW_LOOKUP_ROW), *other = cow_table_memory(8);
    (void)state;

    assert_int_equal(table->resize(table, 5), 0);
    assert_null(cow_lookup_open(borrowed_table(table), 5, NULL));
    assert_kind(COW_CORRUPT);
    assert_null(cow_lookup_open(other, 5, NULL));
    assert_kind(COW_CORRUPT);
    assert_int_equal(table->resize(table, 0), 0);
    cow_lookup_close(cow_lookup_open(borrowed_table(table), 0, NULL));
    table->close(table);
}

/* ---- pools ---- */

enum { NUMBERS = 9000 };

static struct {
    cow_table *slots, *lookup; /* NULL: none was made */
    unsigned opened, made;
    uint64_t slot_of[NUMBERS];
    unsigned uses[NUMBERS];
    bool needed[NUMBERS * 4]; /* by slot */
    bool faults;              /* calls of the lookup's table fail now and then */
    cow_pool *pool;
    cow_room *room; /* NULL: none */
} p;

static int write_out(void *context)
{
    (void)context;
    return cow_pool_write_out(p.pool);
}

static cow_table *lookup_table(void)
{
    cow_table *table = borrowed_table(p.lookup);

    if (p.faults && random_below(3) == 0)
        fail_call(table, 1 + random_below(60));
    return table;
}

static int open_lookup(void *context, cow_table **table)
{
    (void)context;
    p.opened++;
    *table = p.lookup == NULL ? NULL : lookup_table();
    return p.lookup != NULL;
}

static cow_table *make_lookup(void *context)
{
    (void)context;
    p.made++;
    if (p.lookup == NULL)
        p.lookup = cow_table_memory(COW_LOOKUP_ROW);
    assert_int_equal(p.lookup->resize(p.lookup, 0), 0);
    return lookup_table();
}

static cow_pool *open_pool(void)
{
    cow_pool *pool = cow_pool_open("pool 7", 1, borrowed_table(p.slots), cow_chunk_store_memory());

    assert_non_null(pool);
    cow_pool_allow_reuse(pool, 100);
    cow_pool_keep_lookup(pool, &(cow_pool_lookup){.open = open_lookup, .make = make_lookup});
    cow_pool_wait_in(pool, p.room);
    p.pool = pool;
    return pool;
}

static cow_slot row_of(uint64_t number)
{
    cow_slot row = {.trimmed = {1}};

    cow_digest_payload(&number, sizeof number, 1, (uint64_t[]){1}, &row.digest);
    return row;
}

static void commit(cow_pool *pool)
{
    assert_int_equal(cow_pool_flush(pool), 0);
    cow_pool_seal(pool);
}

static cow_pool *reopen(cow_pool *pool)
{
    cow_pool_close(pool);
    return open_pool();
}

static bool is_needed(void *context, uint64_t slot)
{
    (void)context;
    return p.needed[slot];
}

static int note_vacant(void *context, uint64_t slot, bool used)
{
    (void)context;
    (void)used;
    assert_false(p.needed[slot]);
    return 0;
}

/* Half of what nobody uses goes. */
static void collect(cow_pool *pool)
{
    const cow_pool_collector collector = {.needed = is_needed, .vacant = note_vacant};

    memset(p.needed, 0, sizeof p.needed);
    for (unsigned i = 0; i < NUMBERS; i++)
        if (p.slot_of[i] != COW_NO_SLOT && (p.uses[i] > 0 || random_below(2)))
            p.needed[p.slot_of[i]] = true;
        else
            p.slot_of[i] = COW_NO_SLOT;
    assert_int_equal(cow_pool_vacate(pool, &collector), 0);
}

static void use(cow_pool *pool, unsigned i, bool sealed[])
{
    cow_slot row = row_of(i);
    uint64_t slot;

    assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
    assert_true(slot == p.slot_of[i]);
    if (slot == COW_NO_SLOT) {
        assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
        for (unsigned j = 0; j < NUMBERS; j++)
            assert_true(p.slot_of[j] != slot);
        assert_true(slot < sizeof p.needed);
        p.slot_of[i] = slot;
        sealed[i] = false;
    }
    p.uses[i]++;
}

static void compare_all(cow_pool *pool)
{
    for (unsigned i = 0; i < NUMBERS; i++) {
        cow_slot row, expected = row_of(i);
        uint64_t slot;

        assert_int_equal(cow_pool_find(pool, &expected.digest, &slot), 0);
        assert_true(slot == p.slot_of[i]);
        if (slot == COW_NO_SLOT)
            continue;
        cow_pool_drop(pool, slot);
        assert_int_equal(cow_pool_row(pool, slot, &row), 0);
        assert_memory_equal(&row, &expected, sizeof row);
    }
}

/* What is noted is found by its hash, and vacant slots are told, but for those that were. */
static void assert_lookup_is_complete(void)
{
    static bool told[NUMBERS * 4];
    cow_lookup *lookup = p.lookup == NULL ? NULL : cow_lookup_open(borrowed_table(p.lookup), p.slots->rows, NULL);
    uint8_t row[COW_SLOT_TRIMMED_AT + 4];
    uint64_t value;

    if (p.lookup == NULL)
        return;
    assert_non_null(lookup);
    assert_true(p.slots->rows <= sizeof told);
    memset(told, 0, sizeof told);
    while (cow_lookup_take(lookup, &value) == 1)
        told[value] = true;
    for (uint64_t slot = 0; slot < cow_lookup_noted(lookup); slot++) {
        assert_int_equal(p.slots->read(p.slots, slot, 1, row), 0);
        if (cow_get64(row) != 0)
            assert_int_equal(cow_lookup_find(lookup, cow_get64(row), is_value, &slot), 1);
        else
            assert_true(told[slot] || p.faults);
    }
    cow_lookup_close(lookup);
}

static void agrees_with_a_model(bool faults, cow_room *room)
{
    static bool sealed[NUMBERS];
    cow_pool *pool;

    memset(&p, 0, sizeof p);
    p.faults = faults;
    p.room = room;
    memset(sealed, 0, sizeof sealed);
    memset(p.slot_of, 0xff, sizeof p.slot_of);
    p.slots = cow_table_memory(cow_slot_row_size(1));
    pool = open_pool();
    for (int step = 0; step < 60000; step++) {
        unsigned i = random_below(NUMBERS), what = random_below(1000);

        if (what < 550)
            use(pool, i, sealed);
        else if (what < 990) {
            if (p.uses[i] == 0)
                continue;
            cow_pool_drop(pool, p.slot_of[i]);
            if (--p.uses[i] == 0 && !sealed[i])
                p.slot_of[i] = COW_NO_SLOT;
        } else if (what < 993)
            assert_int_equal(cow_pool_flush(pool), 0);
        else {
            commit(pool);
            assert_lookup_is_complete();
            for (unsigned j = 0; j < NUMBERS; j++)
                sealed[j] = true;
            if (what == 993)
                collect(pool);
            if (random_below(2))
                pool = reopen(pool);
        }
        if (step % 5000 == 0)
            compare_all(pool);
    }
    commit(pool);
    compare_all(pool);
    pool = reopen(pool);
    compare_all(pool);
    assert_true(p.made > 0 && p.lookup != NULL && p.opened > 10);
    cow_pool_close(pool);
    p.slots->close(p.slots);
    p.lookup->close(p.lookup);
}

static void test_pool_agrees_with_a_model(void **state)
{
    (void)state;
    agrees_with_a_model(false, NULL);
}

/* Whatever fails of the lookup, chunks are found as if it did not. */
static void test_pool_with_a_failing_lookup_agrees_with_a_model(void **state)
{
    (void)state;
    agrees_with_a_model(true, NULL);
}

/* So that what was written out is found by runs of the same transaction, dropped and given out again. */
static void test_pool_that_writes_out_agrees_with_a_model(void **state)
{
    (void)state;
    for (int faults = 0; faults < 2; faults++) {
        cow_room room = {.bytes = (size_t)1 << (13 + random_below(8)), .write_out = write_out};

        agrees_with_a_model(faults, &room);
        assert_true(room.waiting == 0 && room.pages == 0 && room.filters == 0);
    }
}

/* Chunks that are overwritten again and again in one transaction: slots and runs are no more than a few times what is needed. */
static void test_what_is_overwritten_again_and_again_takes_no_more_room(void **state)
{
    enum { SLOTS = 3000, ROUNDS = 30 };
    cow_room room = {.bytes = (size_t)1 << 15, .write_out = write_out};
    static uint64_t slot[SLOTS];
    cow_pool *pool;
    (void)state;

    memset(&p, 0, sizeof p);
    p.room = &room;
    p.slots = cow_table_memory(cow_slot_row_size(1));
    pool = open_pool();
    for (uint64_t i = 0; i < SLOTS * ROUNDS; i++) {
        cow_slot row = row_of(i);
        uint64_t found;

        assert_int_equal(cow_pool_find(pool, &row.digest, &found), 0);
        assert_true(found == COW_NO_SLOT);
        assert_int_equal(cow_pool_add(pool, &row, &found), 0);
        if (i >= SLOTS)
            cow_pool_drop(pool, slot[i % SLOTS]);
        slot[i % SLOTS] = found;
    }
    commit(pool);
    assert_true(cow_pool_slots(pool) == SLOTS + 1);
    assert_true(p.lookup != NULL && p.lookup->rows < (uint64_t)3 * SLOTS + 3000);
    for (int reopened = 0; reopened < 2; reopened++, pool = reopen(pool))
        for (uint64_t i = SLOTS * (ROUNDS - 2); i < SLOTS * ROUNDS; i++) {
            cow_slot row = row_of(i);
            uint64_t found;

            assert_int_equal(cow_pool_find(pool, &row.digest, &found), 0);
            assert_true(found == (i < SLOTS * (ROUNDS - 1) ? COW_NO_SLOT : slot[i % SLOTS]));
        }
    cow_pool_close(pool);
    p.slots->close(p.slots);
    p.lookup->close(p.lookup);
}

static bool third(void *context, uint64_t slot)
{
    (void)context;
    return slot % 3 != 0;
}

static int note_any(void *context, uint64_t slot, bool used)
{
    *(unsigned *)context += used;
    assert_true(slot % 3 == 0);
    return 0;
}

static void test_what_is_freed_in_a_large_pool_is_given_out_again(void **state)
{
    enum { SLOTS = 6000 };
    static bool given[SLOTS];
    unsigned freed = 0, reused = 0;
    const cow_pool_collector collector = {.context = &freed, .needed = third, .vacant = note_any};
    uint64_t slot;
    cow_pool *pool;
    (void)state;

    memset(&p, 0, sizeof p);
    memset(given, 0, sizeof given);
    p.slots = cow_table_memory(cow_slot_row_size(1));
    pool = open_pool();
    for (uint64_t i = 0; i < SLOTS; i++) {
        cow_slot row = row_of(i);

        assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
        assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
    }
    commit(pool);
    assert_int_equal(cow_pool_vacate(pool, &collector), 0);
    assert_int_equal(freed, SLOTS / 3);
    for (uint64_t i = 0; cow_pool_slots(pool) == SLOTS; i++) {
        cow_slot row = row_of(SLOTS + i);

        assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
        assert_true(slot == COW_NO_SLOT);
        assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
        if (slot >= SLOTS)
            break;
        assert_true(slot % 3 == 0 && !given[slot]);
        given[slot] = true;
        reused++;
        if (i % 7 == 0) {
            cow_pool_drop(pool, slot); /* and it is vacant again */
            given[slot] = false;
            reused--;
        }
        if (i % 50 == 49)
            commit(pool);
        if (i % 300 == 299)
            pool = reopen(pool);
    }
    assert_int_equal(reused, SLOTS / 3);
    cow_pool_close(pool);
    p.slots->close(p.slots);
    p.lookup->close(p.lookup);
}

/* What opening and one chunk more read does not grow with the pool. */
static void test_a_pool_with_many_slots_is_not_read(void **state)
{
    unsigned most[2] = {0};
    (void)state;

    for (int large = 0; large < 2; large++) {
        uint64_t slots = large ? 400000 : 4000, slot;
        cow_pool *pool;

        memset(&p, 0, sizeof p);
        p.slots = cow_table_memory(cow_slot_row_size(1));
        pool = open_pool();
        for (uint64_t i = 0; i < slots; i++) {
            cow_slot row = row_of(i);

            if (i == 0)
                assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
            assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
        }
        commit(pool);
        for (int i = 0; i < 50; i++) {
            cow_table *slot_table;
            cow_slot old = row_of(random_below((uint32_t)slots)), new = row_of(random_number() | 1ull << 40);
            unsigned read;

            cow_pool_close(pool);
            slot_table = borrowed_table(p.slots);
            pool = cow_pool_open("pool 7", 1, slot_table, cow_chunk_store_memory());
            cow_pool_keep_lookup(pool, &(cow_pool_lookup){.open = open_lookup, .make = make_lookup});
            assert_int_equal(cow_pool_find(pool, &old.digest, &slot), 0);
            assert_true(slot != COW_NO_SLOT);
            assert_int_equal(cow_pool_find(pool, &new.digest, &slot), 0);
            assert_true(slot == COW_NO_SLOT);
            assert_int_equal(cow_pool_add(pool, &new, &slot), 0);
            commit(pool);
            read = calls(slot_table);
            most[large] = read > most[large] ? read : most[large];
            assert_non_null(p.lookup);
        }
        cow_pool_close(pool);
        p.slots->close(p.slots);
        p.lookup->close(p.lookup);
    }
    assert_true(most[1] <= most[0] + 1 && most[1] < 10);
}

/* What is wrong in the lookup, or fails there, changes no answer but that an equal chunk is found. */
static void test_a_pool_does_without_a_damaged_lookup(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        cow_pool *pool;
        uint64_t slot;

        memset(&p, 0, sizeof p);
        p.slots = cow_table_memory(cow_slot_row_size(1));
        pool = open_pool();
        for (uint64_t i = 0; i < 1500; i++) {
            cow_slot row = row_of(i);

            assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
            assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
        }
        commit(pool);
        cow_pool_close(pool);
        for (uint32_t n = random_below(40); n > 0; n--) {
            uint8_t row[COW_LOOKUP_ROW];
            uint64_t at = random_below((uint32_t)p.lookup->rows);

            assert_int_equal(p.lookup->read(p.lookup, at, 1, row), 0);
            row[random_below(COW_LOOKUP_ROW)] = (uint8_t)random_number();
            assert_int_equal(p.lookup->write(p.lookup, at, 1, row), 0);
        }
        if (random_below(4) == 0)
            assert_int_equal(p.lookup->resize(p.lookup, random_below((uint32_t)p.lookup->rows)), 0);
        pool = open_pool();
        for (uint64_t i = 0; i < 3000; i++) {
            cow_slot row = row_of(i), back;

            assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
            assert_true(slot == COW_NO_SLOT || (i < 1500 && slot == i));
            if (slot == COW_NO_SLOT)
                assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
            assert_int_equal(cow_pool_row(pool, slot, &back), 0);
            assert_memory_equal(&row, &back, sizeof row);
        }
        commit(pool);
        cow_pool_close(pool);
        p.slots->close(p.slots);
        p.lookup->close(p.lookup);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookup_agrees_with_a_model),
        cmocka_unit_test(test_lookup_with_filters_agrees_with_a_model),
        cmocka_unit_test(test_keys_that_are_not_there_are_not_looked_for),
        cmocka_unit_test(test_a_key_with_many_entries_takes_few_reads),
        cmocka_unit_test(test_a_damaged_table_does_no_harm),
        cmocka_unit_test(test_tables_that_are_no_lookup_are_refused),
        cmocka_unit_test(test_pool_agrees_with_a_model),
        cmocka_unit_test(test_pool_with_a_failing_lookup_agrees_with_a_model),
        cmocka_unit_test(test_pool_that_writes_out_agrees_with_a_model),
        cmocka_unit_test(test_what_is_overwritten_again_and_again_takes_no_more_room),
        cmocka_unit_test(test_what_is_freed_in_a_large_pool_is_given_out_again),
        cmocka_unit_test(test_a_pool_with_many_slots_is_not_read),
        cmocka_unit_test(test_a_pool_does_without_a_damaged_lookup),
    };

    dice = test_random(0);
    return test_main(tests, argc, argv, NULL, NULL);
}
