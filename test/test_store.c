/* Tables, digests and pools, from the outside of the room. The index has its own file, test_index.c. */
#include "base/error.h"
#include "harness.h"
#include "random.h"
#include "store/pool.h"
#include "test_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- digests ---- */

static void assert_hash(const cow_digest *digest, const char *hex)
{
    char text[2 * COW_HASH_SIZE + 1];

    for (int i = 0; i < COW_HASH_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest->hash[i]);
    assert_string_equal(text, hex);
}

static void test_hashes_are_those_of_versioned_hdf5(void **state)
{
    const uint8_t int64[32] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3};
    const uint8_t int32[24] = {0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7};
    /* [[13, 14]] as the corner of a padded chunk of (2, 3) */
    const uint8_t edge[24] = {13, 0, 0, 0, 14, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    const uint8_t zeros[32] = {0};
    const uint8_t strings[] = {1, 0, 0, 0, 0, 0, 0, 0, 'a', 3, 0, 0, 0, 0, 0, 0, 0, 'b', 'c', 'd'};
    cow_digest digest;
    (void)state;

    assert_int_equal(cow_digest_chunk(int64, 1, (uint64_t[]){4}, (uint64_t[]){4}, 8, &digest), 0);
    assert_hash(&digest, "e36896a9e5798eed502c64146f3679675cf847eee9bfbdba8e44ede6c683754f");
    assert_int_equal(cow_digest_chunk(int32, 2, (uint64_t[]){2, 3}, (uint64_t[]){2, 3}, 4, &digest), 0);
    assert_hash(&digest, "309058942428b42d8446bb80d97d681d5ed6e34326eb96bf480e052f0a4bd431");
    assert_int_equal(cow_digest_chunk(edge, 2, (uint64_t[]){2, 3}, (uint64_t[]){1, 2}, 4, &digest), 0);
    assert_hash(&digest, "aabc03beb28a18012d06e750c0adcfef76076681963e6fceaeb2414c3adeb903");
    assert_int_equal(cow_digest_chunk("ab\0cde", 1, (uint64_t[]){2}, (uint64_t[]){2}, 3, &digest), 0);
    assert_hash(&digest, "22ea12c0e0e229d6901be5734e0502edb8fa4060780c9a5cc875770f2a4d0859");
    assert_int_equal(cow_digest_chunk(zeros, 1, (uint64_t[]){4}, (uint64_t[]){4}, 8, &digest), 0);
    assert_hash(&digest, "8e519974d52e663084f1f199d7a28bacc5b369f1a4ce2eafc0f2aff28815f62e");
    assert_int_equal(cow_digest_payload(strings, sizeof strings, 1, (uint64_t[]){2}, &digest), 0);
    assert_hash(&digest, "37bb2dd28115e790726fbbf10cbe383e7f73ece169a779521c11d69c36a4cfb8");
}

/* The trimmed part of a padded chunk hashes as the same elements packed. */
static void test_padding_is_not_hashed_but_checksummed(void **state)
{
    enum { ELEMENTS = 7 * 40 * 9 * 30 };
    static uint16_t chunk[ELEMENTS], packed[ELEMENTS];
    const uint64_t dims[4] = {7, 40, 9, 30};
    (void)state;

    srand(1);
    for (int round = 0; round < 60; round++) {
        uint64_t trimmed[4];
        size_t n = 0;
        cow_digest a, b, c;

        for (int d = 0; d < 4; d++)
            trimmed[d] = rand() % 3 == 0 ? dims[d] : 1 + (uint64_t)rand() % dims[d];
        for (size_t i = 0; i < ELEMENTS; i++)
            chunk[i] = (uint16_t)rand();
        for (size_t i = 0; i < ELEMENTS; i++) {
            if (i / 10800 < trimmed[0] && i / 270 % 40 < trimmed[1] && i / 30 % 9 < trimmed[2] && i % 30 < trimmed[3])
                packed[n++] = chunk[i];
        }
        assert_int_equal(cow_digest_chunk(chunk, 4, dims, trimmed, 2, &a), 0);
        assert_int_equal(cow_digest_chunk(packed, 4, trimmed, trimmed, 2, &b), 0);
        assert_memory_equal(a.hash, b.hash, COW_HASH_SIZE);
        assert_true(a.checksum == cow_checksum(chunk, sizeof chunk));
        if (n < ELEMENTS) {
            size_t last = ELEMENTS - 1;
            chunk[last] ^= 1;
            assert_int_equal(cow_digest_chunk(chunk, 4, dims, trimmed, 2, &c), 0);
            assert_memory_equal(a.hash, c.hash, COW_HASH_SIZE);
            assert_true(a.checksum != c.checksum);
        }
    }
}

static void test_shape_is_part_of_the_hash(void **state)
{
    const uint8_t zeros[32] = {0};
    cow_digest a, b;
    (void)state;

    assert_int_equal(cow_digest_chunk(zeros, 2, (uint64_t[]){2, 4}, (uint64_t[]){2, 4}, 4, &a), 0);
    assert_int_equal(cow_digest_chunk(zeros, 2, (uint64_t[]){4, 2}, (uint64_t[]){4, 2}, 4, &b), 0);
    assert_memory_not_equal(a.hash, b.hash, COW_HASH_SIZE);
    assert_int_equal(cow_digest_chunk(zeros, 1, (uint64_t[]){4}, (uint64_t[]){5}, 4, &a), -1);
    assert_kind(COW_USAGE);
}

/* ---- tables ---- */

static void test_several_chunks_at_once_have_the_digests_of_each_alone(void **state)
{
    static uint8_t bytes[COW_TOGETHER * 50001], copies[sizeof bytes];
    static const uint64_t large[] = {16384, 16385, 32704, 32768, 32833, 50000};

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 131 + i / 256);
    for (uint64_t k = 1; k <= 712; k++) { /* all remainders modulo the block, and addresses that are not aligned */
        uint64_t n = k <= 700 ? k : large[(k - 701) / 2], dims[COW_MAX_RANK] = {n};
        unsigned rank = n % 7 == 0 ? COW_MAX_RANK : 1,
                 many = k <= 700 ? 1 + (unsigned)n % COW_TOGETHER : 10 + 6 * (k & 1);
        const void *chunk[COW_TOGETHER];
        struct iovec part[COW_TOGETHER][3];
        cow_scattered from[COW_TOGETHER];
        cow_digest alone[COW_TOGETHER], found[COW_TOGETHER], *digest[COW_TOGETHER];

        for (unsigned d = 1; d < rank; d++)
            dims[d] = 1;
        for (unsigned i = 0; i < many; i++) {
            chunk[i] = bytes + i * (n + 1);
            digest[i] = &found[i];
            assert_int_equal(cow_digest_chunk(chunk[i], rank, dims, dims, 1, &alone[i]), 0);
        }
        assert_int_equal(cow_digest_many(chunk, NULL, many, n, rank, dims, digest), 0);
        assert_memory_equal(alone, found, many * sizeof *alone);

        /* the same, of which some are brought together first; parts may be empty */
        for (unsigned i = 0; i < many; i++) {
            uint8_t *at = bytes + i * (n + 1);
            size_t first = n * 13 % (n + 1), second = i % 4 == 1 ? 0 : (n - first) / 3;

            part[i][0] = (struct iovec){at, first};
            part[i][1] = (struct iovec){at + first, second};
            part[i][2] = (struct iovec){at + first + second, n - first - second};
            from[i] = (cow_scattered){part[i], i % 3 == 2 ? 0 : 3};
            chunk[i] = i % 3 == 2 ? at : copies + i * (n + 1);
            assert_true(cow_checksum_parts(part[i], 3) == alone[i].checksum);
        }
        memset(copies, 0, sizeof copies);
        memset(found, 0, sizeof found);
        assert_int_equal(cow_digest_many(chunk, from, many, n, rank, dims, digest), 0);
        assert_memory_equal(alone, found, many * sizeof *alone);
        for (unsigned i = 0; i < many; i++)
            assert_memory_equal(chunk[i], bytes + i * (n + 1), n);
    }
}

static void test_table_refuses_rows_beyond_its_end(void **state)
{
    cow_table *table = cow_table_memory(3);
    uint64_t first;
    char rows[6];
    (void)state;

    assert_int_equal(cow_table_append(table, 2, "abcdef", &first), 0);
    assert_true(first == 0 && table->rows == 2);
    assert_int_equal(cow_table_append(table, 1, "ghi", &first), 0);
    assert_true(first == 2 && table->rows == 3);
    assert_int_equal(table->read(table, 1, 2, rows), 0);
    assert_memory_equal(rows, "defghi", 6);
    assert_int_equal(table->read(table, 2, 2, rows), -1);
    assert_kind(COW_CORRUPT);
    assert_int_equal(table->write(table, UINT64_MAX, 2, rows), -1);
    assert_kind(COW_CORRUPT);
    assert_int_equal(table->resize(table, UINT64_MAX), -1);
    assert_kind(COW_MEMORY);
    assert_int_equal(cow_table_append(table, UINT64_MAX, rows, NULL), -1);
    assert_kind(COW_CORRUPT);
    table->close(table);
}

static void test_failed_append_leaves_no_rows(void **state)
{
    cow_table *memory = cow_table_memory(1), *table = failing_table(memory);
    (void)state;

    assert_int_equal(cow_table_append(table, 3, "abc", NULL), 0);
    fail_call(table, 2); /* resize goes well, write does not */
    assert_int_equal(cow_table_append(table, 3, "def", NULL), -1);
    assert_kind(COW_IO);
    assert_true(table->rows == 3);
    table->close(table);
    memory->close(memory);
}

/* ---- pools ---- */

static cow_slot slot_row(unsigned number)
{
    cow_slot row = {.digest.checksum = number * 77, .trimmed = {number % 9 + 1, number % 5 + 1}};
    const uint64_t shape[2] = {2, 3};

    cow_digest_payload(&number, sizeof number, 2, shape, &row.digest);
    return row;
}

static cow_pool *memory_pool(cow_table *table)
{
    return cow_pool_open("pool 1", 2, borrowed_table(table), cow_chunk_store_memory());
}

static uint64_t add(cow_pool *pool, unsigned number)
{
    cow_slot row = slot_row(number);
    uint64_t slot = COW_NO_SLOT;

    assert_int_equal(cow_pool_add(pool, &row, &slot), 0);
    return slot;
}

static uint64_t find(cow_pool *pool, unsigned number)
{
    cow_slot row = slot_row(number);
    uint64_t slot = 0;

    assert_int_equal(cow_pool_find(pool, &row.digest, &slot), 0);
    return slot;
}

static void commit(cow_pool *pool)
{
    assert_int_equal(cow_pool_flush(pool), 0);
    cow_pool_seal(pool);
}

static void test_pool_finds_what_was_added_also_after_reopening(void **state)
{
    enum { SLOTS = 30000 };
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    (void)state;

    assert_non_null(pool);
    for (unsigned i = 0; i < SLOTS; i++) {
        if (i % 1000 == 500)
            commit(pool);
        if (i % 100 == 1)
            assert_true(find(pool, i) == COW_NO_SLOT);
        assert_true(add(pool, i) == i);
    }
    commit(pool);
    for (int round = 0; round < 2; round++) {
        assert_true(cow_pool_slots(pool) == SLOTS);
        for (unsigned i = 0; i < SLOTS; i++)
            assert_true(find(pool, i) == i);
        assert_true(find(pool, SLOTS) == COW_NO_SLOT);
        for (unsigned i = 0; i < 3000; i++) {
            unsigned number = (unsigned)rand() % SLOTS;
            cow_slot expected = slot_row(number), row;
            assert_int_equal(cow_pool_row(pool, number, &row), 0);
            assert_memory_equal(&row, &expected, sizeof row);
        }
        cow_pool_close(pool);
        pool = memory_pool(table);
    }
    cow_pool_close(pool);
    table->close(table);
}

static void test_free_slots_are_reused_lowest_first_until_sealed(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    (void)state;

    for (unsigned i = 0; i < 10; i++)
        add(pool, i);
    cow_pool_drop(pool, 7);
    cow_pool_drop(pool, 2);
    cow_pool_drop(pool, 5);
    assert_true(find(pool, 5) == COW_NO_SLOT);
    assert_true(add(pool, 100) == 2);
    assert_true(add(pool, 101) == 5);
    assert_true(find(pool, 100) == 2);
    commit(pool);
    assert_true(add(pool, 102) == 10); /* 7 is sealed */
    cow_pool_drop(pool, 3);            /* sealed: nothing happens */
    assert_true(find(pool, 3) == 3);
    assert_true(add(pool, 103) == 11);
    cow_pool_close(pool);
    pool = memory_pool(table);
    assert_true(find(pool, 7) == COW_NO_SLOT);
    assert_true(find(pool, 102) == COW_NO_SLOT); /* was not flushed */
    assert_true(find(pool, 101) == 5);
    cow_pool_close(pool);
    table->close(table);
}

static void test_slot_lives_until_its_last_use_is_dropped(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    (void)state;

    assert_true(add(pool, 1) == 0);
    assert_true(find(pool, 1) == 0); /* two */
    cow_pool_use(pool, 0);           /* three */
    cow_pool_drop(pool, 0);
    cow_pool_drop(pool, 0);
    assert_true(add(pool, 2) == 1);
    cow_pool_drop(pool, 0);
    cow_pool_drop(pool, 0); /* once too often: ignored */
    cow_pool_drop(pool, 99);
    assert_true(add(pool, 3) == 0);
    assert_true(add(pool, 4) == 2);
    cow_pool_close(pool);
    table->close(table);
}

/* Flushed but not sealed: the row in the table is written again. */
static void test_slot_reused_after_flush_has_its_new_row(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    cow_slot row, expected = slot_row(50);
    (void)state;

    for (unsigned i = 0; i < 5; i++)
        add(pool, i);
    assert_int_equal(cow_pool_flush(pool), 0);
    cow_pool_drop(pool, 1);
    cow_pool_drop(pool, 3);
    assert_true(add(pool, 50) == 1);
    cow_pool_seal(pool); /* before the flush: nothing may be lost */
    assert_true(add(pool, 51) == 5);
    commit(pool);
    cow_pool_close(pool);
    pool = memory_pool(table);
    assert_int_equal(cow_pool_row(pool, 1, &row), 0);
    assert_memory_equal(&row, &expected, sizeof row);
    assert_true(find(pool, 3) == COW_NO_SLOT && find(pool, 50) == 1 && find(pool, 51) == 5 && find(pool, 4) == 4);
    cow_pool_close(pool);
    table->close(table);
}

static void test_a_slot_gets_its_row_later(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    cow_slot row, expected = slot_row(70);
    (void)state;

    for (int loaded = 0; loaded < 2; loaded++) { /* without and with the map */
        uint64_t slot = add(pool, 60 + (unsigned)loaded);
        expected = slot_row(70 + (unsigned)loaded);
        assert_int_equal(cow_pool_set_row(pool, slot, &expected), 0);
        assert_int_equal(cow_pool_row(pool, slot, &row), 0);
        assert_memory_equal(&row, &expected, sizeof row);
        assert_true(find(pool, 60 + (unsigned)loaded) == COW_NO_SLOT);
        assert_true(find(pool, 70 + (unsigned)loaded) == slot);
    }
    assert_int_equal(cow_pool_flush(pool), 0); /* and after the row was written, but before it is sealed */
    expected = slot_row(80);
    assert_int_equal(cow_pool_set_row(pool, 0, &expected), 0);
    commit(pool);
    assert_int_equal(cow_pool_set_row(pool, 0, &expected), -1);
    assert_non_null(strstr(cow_error_message(), "slot 0"));
    cow_error_clear();
    cow_pool_close(pool);
    pool = memory_pool(table);
    assert_true(find(pool, 80) == 0 && find(pool, 70) == COW_NO_SLOT && find(pool, 71) == 1);
    cow_pool_drop(pool, add(pool, 90));
    assert_int_equal(cow_pool_set_row(pool, 2, &expected), -1); /* free */
    cow_error_clear();
    assert_int_equal(cow_pool_set_row(pool, 3, &expected), -1); /* not given out */
    cow_error_clear();
    cow_pool_close(pool);
    table->close(table);
}

static void test_slot_freed_after_flush_is_not_found_later(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    (void)state;

    for (unsigned i = 0; i < 3; i++)
        add(pool, i);
    assert_int_equal(cow_pool_flush(pool), 0);
    cow_pool_drop(pool, 1);
    commit(pool);
    cow_pool_close(pool);
    pool = memory_pool(table);
    assert_true(find(pool, 1) == COW_NO_SLOT && find(pool, 2) == 2);
    cow_pool_close(pool);
    table->close(table);
}

static void test_sealed_slot_is_never_given_out_again(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    (void)state;

    add(pool, 0);
    add(pool, 1);
    cow_pool_seal(pool); /* its row is still in memory only */
    cow_pool_drop(pool, 0);
    assert_true(find(pool, 0) == 0);
    assert_true(add(pool, 2) == 2);
    commit(pool);
    cow_pool_drop(pool, 0);
    assert_true(find(pool, 0) == 0);
    assert_true(add(pool, 3) == 3);
    cow_pool_close(pool);
    table->close(table);
}

static unsigned written_out;

static int write_out(void *context)
{
    written_out++;
    return cow_pool_write_out(*(cow_pool **)context);
}

/* Of ten rows or so, in what CONTEXT points to. */
static cow_room small_room(cow_pool **pool)
{
    written_out = 0;
    return (cow_room){.bytes = 2048, .write_out = write_out, .context = pool};
}

/* Random life against a plain model. ROOM: NULL, or what the pool counts in, whose context is the pool. */
static void agrees_with_a_model(cow_pool **in_room, cow_room *room)
{
    enum { NUMBERS = 400 };
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    uint64_t slot_of[NUMBERS];
    unsigned uses[NUMBERS] = {0};
    uint64_t sealed = 0;

    *in_room = pool;
    cow_pool_wait_in(pool, room);
    srand(test_seed());
    memset(slot_of, 0xff, sizeof slot_of);
    for (int step = 0; step < 200000; step++) {
        unsigned i = (unsigned)rand() % NUMBERS;
        int what = rand() % 1000;

        if (what < 500) {
            uint64_t slot = find(pool, i);
            assert_true(slot == slot_of[i]);
            if (slot == COW_NO_SLOT) {
                slot = add(pool, i);
                assert_true(slot >= sealed);
                for (unsigned j = 0; j < NUMBERS; j++)
                    assert_true(slot_of[j] != slot);
                slot_of[i] = slot;
            }
            uses[i]++;
        } else if (what < 995) {
            if (slot_of[i] == COW_NO_SLOT || uses[i] == 0)
                continue;
            cow_pool_drop(pool, slot_of[i]);
            if (--uses[i] == 0 && slot_of[i] >= sealed)
                slot_of[i] = COW_NO_SLOT;
        } else if (what < 998) {
            assert_int_equal(cow_pool_flush(pool), 0);
        } else {
            commit(pool);
            sealed = cow_pool_slots(pool);
            if (rand() % 2) {
                cow_pool_close(pool);
                *in_room = pool = memory_pool(table);
                cow_pool_wait_in(pool, room);
            }
        }
        assert_true(room == NULL || room->waiting < room->bytes / 2 + 200);
        if (step % 5000 == 0) {
            for (unsigned j = 0; j < NUMBERS; j++) {
                cow_slot row, expected = slot_row(j);
                if (slot_of[j] == COW_NO_SLOT)
                    continue;
                assert_int_equal(cow_pool_row(pool, slot_of[j], &row), 0);
                assert_memory_equal(&row, &expected, sizeof row);
            }
        }
    }
    cow_pool_close(pool);
    table->close(table);
}

static void test_pool_agrees_with_a_model(void **state)
{
    cow_pool *pool;

    (void)state;
    agrees_with_a_model(&pool, NULL);
}

static void test_pool_that_writes_out_agrees_with_a_model(void **state)
{
    cow_pool *pool;
    cow_room room = small_room(&pool);

    (void)state;
    agrees_with_a_model(&pool, &room);
    assert_true(written_out > 5);
    assert_int_equal(room.waiting, 0);
}

/* What was written out is no version's: it goes on being used and dropped, and its slot is given out again. */
static void test_a_slot_that_was_written_out_is_dropped_and_given_out_again(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    cow_room room = small_room(&pool);
    cow_slot row, expected = slot_row(1000);

    (void)state;
    cow_pool_wait_in(pool, &room);
    for (unsigned i = 0; i < 500; i++)
        assert_true(add(pool, i) == i);
    assert_true(written_out > 5 && table->rows > 400);
    assert_false(cow_pool_sealed(pool, 3));
    assert_false(cow_pool_idle(pool));
    assert_true(find(pool, 3) == 3); /* two uses */
    cow_pool_drop(pool, 3);
    assert_true(find(pool, 3) == 3);
    cow_pool_drop(pool, 3);
    cow_pool_drop(pool, 3);
    assert_true(find(pool, 3) == COW_NO_SLOT);
    assert_int_equal(cow_pool_row(pool, 3, &row), 0);
    for (size_t i = 0; i < COW_HASH_SIZE; i++)
        assert_int_equal(row.digest.hash[i], 0);
    assert_true(add(pool, 1000) == 3);
    assert_int_equal(cow_pool_row(pool, 3, &row), 0);
    assert_memory_equal(&row, &expected, sizeof row);
    expected = slot_row(1001); /* learned later what it holds */
    assert_int_equal(cow_pool_set_row(pool, 4, &expected), 0);
    assert_true(find(pool, 4) == COW_NO_SLOT && find(pool, 1001) == 4);
    for (unsigned i = 10; i < 490; i++) /* so many that their rows cannot all wait */
        cow_pool_drop(pool, i);
    assert_true(room.waiting < room.bytes / 2 + 200);
    for (unsigned i = 0; i < 300; i++)
        assert_true(add(pool, 2000 + i) == 10 + i);
    commit(pool);
    cow_pool_close(pool);
    pool = memory_pool(table);
    assert_true(find(pool, 3) == COW_NO_SLOT && find(pool, 1000) == 3 && find(pool, 1001) == 4);
    assert_true(find(pool, 2299) == 309 && find(pool, 400) == COW_NO_SLOT && find(pool, 495) == 495);
    cow_pool_close(pool);
    table->close(table);
}

/* The transaction is given up: the table has rows that no commit has. They are not there for who opens what the commit has. */
static void test_what_was_written_out_and_given_up_leaves_no_room_taken(void **state)
{
    cow_table *table = cow_table_memory(cow_slot_row_size(2));
    cow_pool *pool = memory_pool(table);
    cow_room room = small_room(&pool);

    (void)state;
    cow_pool_wait_in(pool, &room);
    for (unsigned i = 0; i < 77; i++)
        add(pool, i);
    assert_true(written_out > 0 && room.waiting > 0);
    cow_pool_close(pool);
    assert_int_equal(room.waiting, 0);
    table->close(table);
}

static void test_single_rows_are_read_in_blocks(void **state)
{
    cow_table *memory = cow_table_memory(cow_slot_row_size(2)), *table;
    cow_pool *pool = memory_pool(memory);
    cow_slot row;
    (void)state;

    for (unsigned i = 0; i < 10000; i++)
        add(pool, i);
    commit(pool);
    cow_pool_close(pool);

    table = failing_table(memory);
    pool = cow_pool_open("pool 1", 2, table, cow_chunk_store_memory());
    for (unsigned i = 0; i < 10000; i++)
        assert_int_equal(cow_pool_row(pool, i, &row), 0);
    assert_true(calls(table) == (10000 + 63) / 64);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(cow_pool_row(pool, 9000 + i * 31 % 1000, &row), 0);
    assert_true(calls(table) == (10000 + 63) / 64);
    assert_int_equal(cow_pool_row(pool, 0, &row), 0);
    assert_true(calls(table) == (10000 + 63) / 64 + 1);
    assert_int_equal(cow_pool_row(pool, 10000, &row), -1);
    assert_kind(COW_CORRUPT);
    cow_pool_close(pool);
    memory->close(memory);
}

static void test_pool_survives_every_failing_table_call(void **state)
{
    (void)state;
    for (unsigned nth = 1; nth < 12; nth++) {
        cow_table *memory = cow_table_memory(cow_slot_row_size(2)), *table = failing_table(memory);
        cow_pool *pool = cow_pool_open("pool 1", 2, table, cow_chunk_store_memory());
        bool failed = false;

        fail_call(table, nth);
        for (unsigned i = 0; i < 300; i++) {
            cow_slot row = slot_row(i), back;
            uint64_t slot;

            while (cow_pool_find(pool, &row.digest, &slot) < 0) {
                assert_kind(COW_IO);
                failed = true;
            }
            assert_true(slot == COW_NO_SLOT);
            assert_true(add(pool, i) == i);
            if (i % 70 == 69) {
                while (cow_pool_flush(pool) < 0) {
                    assert_kind(COW_IO);
                    failed = true;
                }
                cow_pool_seal(pool);
            }
            while (cow_pool_row(pool, i / 2, &back) < 0) {
                assert_kind(COW_IO);
                failed = true;
            }
            row = slot_row(i / 2);
            assert_memory_equal(&row, &back, sizeof row);
        }
        assert_true(failed);
        commit(pool);
        cow_pool_close(pool);
        pool = memory_pool(memory);
        for (unsigned i = 0; i < 300; i++)
            assert_true(find(pool, i) == i);
        cow_pool_close(pool);
        memory->close(memory);
    }
}

/* Writing out fails: what is asked then fails, nothing else is wrong, and it is tried again. */
static void test_pool_survives_every_failing_call_while_it_writes_out(void **state)
{
    (void)state;
    for (unsigned nth = 1; nth < 60; nth++) {
        cow_table *memory = cow_table_memory(cow_slot_row_size(2)), *table = failing_table(memory);
        cow_pool *pool = cow_pool_open("pool 1", 2, table, cow_chunk_store_memory());
        cow_room room = small_room(&pool);
        bool failed = false;

        cow_pool_wait_in(pool, &room);
        fail_call(table, nth);
        for (unsigned i = 0; i < 300; i++) {
            cow_slot row = slot_row(i), other = slot_row(i - 1);
            uint64_t slot;

            while (cow_pool_find(pool, &row.digest, &slot) < 0 || cow_pool_add(pool, &row, &slot) < 0) {
                assert_kind(COW_IO);
                failed = true;
            }
            if (i % 3 == 2) {
                while (cow_pool_find(pool, &other.digest, &slot) < 0) {
                    assert_kind(COW_IO);
                    failed = true;
                }
                assert_true(slot != COW_NO_SLOT);
                cow_pool_drop(pool, slot);
                cow_pool_drop(pool, slot);
            }
        }
        while (cow_pool_flush(pool) < 0) {
            assert_kind(COW_IO);
            failed = true;
        }
        assert_true(failed || calls(table) < nth);
        cow_pool_seal(pool);
        cow_pool_close(pool);
        pool = memory_pool(memory);
        for (unsigned i = 0; i < 300; i++)
            assert_true((find(pool, i) == COW_NO_SLOT) == (i % 3 == 1));
        cow_pool_close(pool);
        memory->close(memory);
    }
}

static void test_pool_refuses_a_table_of_another_rank(void **state)
{
    (void)state;
    assert_null(cow_pool_open("pool 1", 3, cow_table_memory(cow_slot_row_size(2)), cow_chunk_store_memory()));
    assert_kind(COW_CORRUPT);
    assert_null(cow_pool_open("pool 1", 2, NULL, cow_chunk_store_memory()));
    cow_error_clear();
}

static void test_memory_store_keeps_sizes_and_masks(void **state)
{
    cow_chunk_store *store = cow_chunk_store_memory();
    size_t size;
    uint32_t mask;
    char bytes[5];
    (void)state;

    assert_int_equal(store->write(store, 3, "hello", 5, 6), 0);
    assert_int_equal(store->size(store, 3, &size), 0);
    assert_true(size == 5);
    assert_int_equal(store->read(store, 3, bytes, 5, &mask), 0);
    assert_true(mask == 6);
    assert_memory_equal(bytes, "hello", 5);
    assert_int_equal(store->size(store, 2, &size), -1);
    assert_kind(COW_CORRUPT);
    store->close(store);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashes_are_those_of_versioned_hdf5),
        cmocka_unit_test(test_padding_is_not_hashed_but_checksummed),
        cmocka_unit_test(test_shape_is_part_of_the_hash),
        cmocka_unit_test(test_several_chunks_at_once_have_the_digests_of_each_alone),
        cmocka_unit_test(test_table_refuses_rows_beyond_its_end),
        cmocka_unit_test(test_failed_append_leaves_no_rows),
        cmocka_unit_test(test_pool_finds_what_was_added_also_after_reopening),
        cmocka_unit_test(test_free_slots_are_reused_lowest_first_until_sealed),
        cmocka_unit_test(test_slot_lives_until_its_last_use_is_dropped),
        cmocka_unit_test(test_slot_reused_after_flush_has_its_new_row),
        cmocka_unit_test(test_a_slot_gets_its_row_later),
        cmocka_unit_test(test_slot_freed_after_flush_is_not_found_later),
        cmocka_unit_test(test_sealed_slot_is_never_given_out_again),
        cmocka_unit_test(test_pool_agrees_with_a_model),
        cmocka_unit_test(test_pool_that_writes_out_agrees_with_a_model),
        cmocka_unit_test(test_a_slot_that_was_written_out_is_dropped_and_given_out_again),
        cmocka_unit_test(test_what_was_written_out_and_given_up_leaves_no_room_taken),
        cmocka_unit_test(test_single_rows_are_read_in_blocks),
        cmocka_unit_test(test_pool_survives_every_failing_table_call),
        cmocka_unit_test(test_pool_survives_every_failing_call_while_it_writes_out),
        cmocka_unit_test(test_pool_refuses_a_table_of_another_rank),
        cmocka_unit_test(test_memory_store_keeps_sizes_and_masks),
    };

    srand((unsigned)test_random(0));
    return test_main(tests, argc, argv, NULL, NULL);
}
