/* The journal: its parts alone, and under HDF5 with public calls and the driver on the file access list. */
#include "h5/checksum.h"
#include "h5/superblock.h"
#include "journal/disk.h"
#include "journal/driver.h"
#include "journal/fence.h"
#include "journal/locks.h"
#include "journal/overlay.h"
#include "journal/record.h"

#include "base/error.h"
#include "files.h"
#include "harness.h"
#include "journal_states.h"
#include "random.h"

#include <errno.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/test_journal_XXXXXX", path[sizeof folder + 16];
static const char *program;
static hid_t journalled, stock;
static cow_journal_options at_once; /* every commit is applied at once */

/* ---- pages ---- */

static int count_preads;

static ssize_t counted_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    count_preads++;
    return cow_disk_system.pread(context, fd, buffer, size, offset);
}

/* Whatever is written, cut off, made longer or given back between them: a read that may be remembered is what the file has. */
static void test_recalled_is_what_the_file_has(void **state)
{
    enum { SIZE = 3 << 20 }; /* more pages than have a place */
    cow_disk_calls calls = cow_disk_system;
    uint8_t *shadow = calloc(1, SIZE), got[6000], bytes[6000];
    uint64_t seed = test_seed();
    cow_disk disk;

    (void)state;
    assert_non_null(shadow);
    assert_int_equal(cow_disk_open(&disk, &calls, path, O_RDWR | O_CREAT | O_TRUNC), 0);
    assert_int_equal(cow_disk_truncate(&disk, SIZE), 0);
    cow_disk_remember(&disk, SIZE);
    for (int round = 0; round < 60000; round++) {
        uint64_t from = splitmix64(&seed) % (round % 4 == 0 ? SIZE : 40000);
        size_t n = 1 + (size_t)(splitmix64(&seed) % (round % 50 == 0 ? sizeof got : 300));
        unsigned kind = (unsigned)(splitmix64(&seed) % 1000);

        n = n < SIZE - from ? n : (size_t)(SIZE - from);
        if (kind < 500) {
            assert_int_equal(cow_disk_recall(&disk, from, got, n), 0);
            assert_memory_equal(got, shadow + from, n);
        } else if (kind < 520) {
            assert_int_equal(cow_disk_read(&disk, from, got, n), 0);
            assert_memory_equal(got, shadow + from, n);
        } else if (kind < 522) { /* behind its back */
            assert_int_equal(cow_disk_settle(&disk, from, n), 0);
            assert_true(pread(disk.fd, got, n, (off_t)from) >= 0);
            for (size_t i = 0; i < n; i++)
                assert_true(got[i] == shadow[from + i] || from + i >= (uint64_t)lseek(disk.fd, 0, SEEK_END));
        } else if (kind < 990) {
            for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)(round + (int)i);
            assert_int_equal((kind < 940 ? cow_disk_put : cow_disk_write)(&disk, from, bytes, n), 0);
            memcpy(shadow + from, bytes, n);
        } else if (kind < 995) {
            assert_int_equal(cow_disk_truncate(&disk, from), 0);
            memset(shadow + from, 0, SIZE - from);
        } else { /* whole pages become zeros where the file system can, all of them or none */
            uint8_t now[4096];
            from -= from % sizeof now;
            cow_disk_hole(&disk, from, sizeof now);
            assert_int_equal(cow_disk_read(&disk, from, now, sizeof now), 0);
            memcpy(shadow + from, now, SIZE - from < sizeof now ? (size_t)(SIZE - from) : sizeof now);
        }
    }
    assert_int_equal(cow_disk_settle(&disk, 0, UINT64_MAX), 0);
    assert_true(cow_disk_written(&disk, 0) <= (uint64_t)lseek(disk.fd, 0, SEEK_END));
    for (uint64_t from = 0; from < SIZE; from += 4096) {
        memset(got, 0, 4096);
        assert_true(pread(disk.fd, got, 4096, (off_t)from) >= 0);
        assert_memory_equal(got, shadow + from, 4096);
    }
    calls.pread = counted_pread;
    count_preads = 0;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(cow_disk_recall(&disk, (uint64_t)(i % 40) * 100, got, 96), 0);
    assert_true(count_preads <= 1);
    cow_disk_forked(&disk);
    assert_int_equal(cow_disk_recall(&disk, 0, got, 96), 0);
    assert_int_equal(cow_disk_recall(&disk, 0, got, 96), 0);
    assert_true(count_preads >= 2);
    cow_disk_close(&disk);
    unlink(path);
    free(shadow);
}

static unsigned count_pwrites, fail_pwrites;

static ssize_t counted_pwrite(void *context, int fd, const void *bytes, size_t size, off_t offset)
{
    (void)context;
    count_pwrites++;
    if (fail_pwrites > 0) {
        errno = ENOSPC;
        return -1;
    }
    return pwrite(fd, bytes, size, offset);
}

/* What is put waits, and goes in few calls; what cannot be written still waits, and is told of by whoever needs it; a child that was forked has what waited. */
static void test_what_is_put_waits(void **state)
{
    enum { EACH = 100, COUNT = 1000 };
    cow_disk_calls calls = cow_disk_system;
    uint8_t bytes[EACH], got[EACH], all[EACH * COUNT];
    cow_disk disk;
    struct stat about;

    (void)state;
    calls.pwrite = counted_pwrite;
    count_pwrites = 0;
    assert_int_equal(cow_disk_open(&disk, &calls, path, O_RDWR | O_CREAT | O_TRUNC), 0);
    cow_disk_remember(&disk, 0);
    for (int i = 0; i < COUNT; i++) {
        memset(bytes, i, sizeof bytes);
        memset(all + i * EACH, i, EACH);
        assert_int_equal(cow_disk_put(&disk, (uint64_t)i * EACH, bytes, sizeof bytes), 0);
    }
    assert_int_equal(count_pwrites, 0);
    assert_int_equal(cow_disk_about(&disk, &about), 0);
    assert_true(about.st_size == 0 && cow_disk_written(&disk, sizeof all) == 0);
    fail_pwrites = 1;
    assert_int_equal(cow_disk_settle(&disk, 0, UINT64_MAX), -1);
    assert_non_null(strstr(cow_error_message(), "make room"));
    cow_error_clear();
    assert_int_equal(cow_disk_sync(&disk), -1);
    cow_error_clear();
    /* reading goes on, also where another page would have to go for it */
    for (uint64_t far = 0; far < 400; far++)
        assert_int_equal(cow_disk_recall(&disk, far * 4096, got, sizeof got), 0);
    assert_true(!cow_error_pending());
    assert_int_equal(cow_disk_recall(&disk, 500 * EACH, got, sizeof got), 0);
    assert_memory_equal(got, all + 500 * EACH, sizeof got);
    assert_int_equal(cow_disk_put(&disk, (uint64_t)128 * 4096, bytes, sizeof bytes), -1); /* there is no place */
    cow_error_clear();
    fail_pwrites = 0;
    cow_disk_forked(&disk);
    assert_int_equal(cow_disk_recall(&disk, 500 * EACH, got, sizeof got), 0);
    assert_memory_equal(got, all + 500 * EACH, sizeof got);
    assert_int_equal(cow_disk_read(&disk, 0, got, sizeof got), 0);
    assert_memory_equal(got, all, sizeof got);
    cow_disk_close(&disk);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_size, 0);

    count_pwrites = 0;
    assert_int_equal(cow_disk_open(&disk, &calls, path, O_RDWR | O_CREAT | O_TRUNC), 0);
    cow_disk_remember(&disk, 0);
    for (int i = COUNT; i-- > 0;)
        assert_int_equal(cow_disk_put(&disk, (uint64_t)i * EACH, all + i * EACH, EACH), 0);
    assert_int_equal(cow_disk_settle(&disk, 0, UINT64_MAX), 0);
    assert_true(count_pwrites <= 3);
    assert_int_equal(pread(disk.fd, all + 0, sizeof all, 0), sizeof all);
    for (int i = 0; i < COUNT; i++)
        assert_true(all[i * EACH] == (uint8_t)i && all[i * EACH + EACH - 1] == (uint8_t)i);
    cow_disk_close(&disk);
    unlink(path);
}

/* ---- overlay ---- */

static void test_overlay_agrees_with_an_array(void **state)
{
    enum { SIZE = 40000 };
    static uint8_t shadow[SIZE], bytes[SIZE], got[SIZE];
    static bool there[SIZE];
    cow_overlay *o = cow_overlay_new();
    uint64_t seed = test_seed();

    (void)state;
    for (int round = 0; round < 2000; round++) {
        size_t from, n;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        from = (size_t)(seed >> 33) % SIZE;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        n = (size_t)(seed >> 33) % (round % 10 == 0 ? 9000 : 60);
        if (n > SIZE - from)
            n = SIZE - from;
        if (round % 3 == 2) {
            bool touched = false, covered = true;
            memset(got, 0xee, n);
            cow_overlay_read(o, 100000 + from, got, n);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(got[i], there[from + i] ? shadow[from + i] : 0xee);
                touched |= there[from + i];
                covered &= there[from + i];
            }
            assert_int_equal(cow_overlay_touches(o, 100000 + from, n), touched);
            assert_int_equal(cow_overlay_covers(o, 100000 + from, n), covered);
            continue;
        }
        memset(bytes, round, n);
        assert_int_equal(cow_overlay_write(o, 100000 + from, bytes, n), 0);
        memset(shadow + from, round, n);
        memset(there + from, true, n);
    }
    assert_true(cow_overlay_touches(o, 0, (uint64_t)1 << 50));
    assert_false(cow_overlay_touches(o, (uint64_t)1 << 40, (uint64_t)1 << 50));
    cow_overlay_free(o);
}

typedef struct seen_runs {
    uint64_t behind, bytes;
    unsigned runs;
} seen_runs;

static int see_run(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    seen_runs *seen = context;

    (void)bytes;
    assert_true(address >= seen->behind);
    seen->behind = address + size;
    seen->bytes += size;
    seen->runs++;
    return 0;
}

static void test_overlay_gives_runs_in_order(void **state)
{
    cow_overlay *o = cow_overlay_new(), *other = cow_overlay_new();
    seen_runs seen = {0};

    (void)state;
    cow_overlay_write(o, (uint64_t)9 << 40, "abc", 3);
    cow_overlay_write(o, 4094, "abcd", 4);
    cow_overlay_write(o, 10, "ab", 2);
    cow_overlay_write(o, 12, "cd", 2);
    assert_int_equal(cow_overlay_each(o, see_run, &seen), 0);
    assert_int_equal(seen.runs, 4); /* 10..14, 4094..4096, 4096..4098, far away */
    assert_int_equal(seen.bytes, 11);
    cow_overlay_write(other, 11, "XY", 2);
    assert_int_equal(cow_overlay_merge(o, other), 0);
    char got[4];
    cow_overlay_read(o, 10, got, 4);
    assert_memory_equal(got, "aXYd", 4);
    cow_overlay_clear(o);
    assert_true(cow_overlay_empty(o));
    cow_overlay_free(o);
    cow_overlay_free(other);
}

/* ---- records ---- */

static cow_anchor some_anchor(void)
{
    cow_anchor anchor = {.id = "0123456789abcde"};

    cow_anchor_place(&anchor, 0, 512, 1);
    return anchor;
}

static void test_records_of_a_file_whose_start_moved(void **state)
{
    static const uint64_t moves[][2] = {{0, 512}, {0, 1 << 20}, {512, 0}, {2048, 512}, {1024, 4096}};
    uint8_t anchor_bytes[COW_SECTOR], slot_bytes[COW_SECTOR], again[COW_SECTOR], byte = 7;
    uint8_t *bytes;
    size_t size;

    (void)state;
    for (unsigned i = 0; i < sizeof moves / sizeof *moves; i++) {
        uint64_t base = moves[i][0], to = moves[i][1], by = to - base;
        cow_anchor anchor = {.id = "0123456789abcde"}, read = {0}, guess = {0};
        cow_journal_slot slot = {.generation = 1, .sequence = 2, .applied = 1, .extension = COW_NOWHERE}, moved;
        cow_journal_extent extent = {.sequence = 2, .after = 1, .extension = COW_NOWHERE}, moved_extent;
        cow_overlay *frames = cow_overlay_new(), *out = cow_overlay_new();

        cow_anchor_place(&anchor, base, base + 48, 1);
        slot.end = slot.protect = extent.end = anchor.end + 512;
        slot.extent = (cow_journal_extent_name){anchor.end + 512, 512, {1}};
        slot.reserve[2] = (cow_range){anchor.end + 1024, 4096};
        memcpy(slot.superblock, "\211HDF\r\n\032\n\003\010\010", 11);
        slot.superblock[12] = base % 256, slot.superblock[13] = (uint8_t)(base / 256);
        cow_superblock_set(slot.superblock, anchor.address + COW_SECTOR - base, false);
        cow_anchor_encode(&anchor, anchor_bytes);
        cow_journal_slot_encode(&slot, &anchor, slot_bytes);
        assert_int_equal(cow_overlay_write(frames, anchor.end, &byte, 1), 0);
        assert_int_equal(cow_journal_extent_encode(&extent, &anchor, frames, &bytes, &size), 0);

        assert_true(cow_anchor_decode(&read, anchor_bytes, anchor.address + by));
        assert_true(read.base == to && read.address == anchor.address + by && read.slot[0] == anchor.slot[0] + by &&
                    read.slot[1] == anchor.slot[1] + by && read.end == anchor.end + by && read.shift == by);
        cow_anchor_encode(&read, again);
        assert_memory_equal(again, anchor_bytes, COW_SECTOR);
        cow_anchor_guess(&guess, to, read.address, base % 4096);
        assert_true(cow_anchor_from_slot(&guess, slot_bytes));
        assert_true(guess.shift == by && guess.slot[0] == read.slot[0]);
        cow_anchor_guess(&guess, to, read.address, base % 4096 == 512 ? 1024 : 512);
        assert_false(cow_anchor_from_slot(&guess, slot_bytes));

        assert_true(cow_journal_slot_decode(&moved, &read, 1, slot_bytes));
        assert_true(moved.end == slot.end + by && moved.protect == slot.protect + by &&
                    moved.extent.address == slot.extent.address + by && moved.reserve[0].address == 0 &&
                    moved.reserve[2].address == slot.reserve[2].address + by && moved.reserve[2].length == 4096);
        assert_true(cow_superblock_whole(moved.superblock) && cow_superblock_base(moved.superblock) == to &&
                    cow_superblock_end(moved.superblock) == cow_superblock_end(slot.superblock) + by);
        cow_journal_slot_encode(&moved, &read, again);
        assert_memory_equal(again, slot_bytes, COW_SECTOR);

        assert_int_equal(cow_journal_extent_decode(&moved_extent, &read, bytes, size, out), 0);
        assert_true(moved_extent.end == extent.end + by && cow_overlay_covers(out, anchor.end + by, 1));
        free(bytes);
        cow_overlay_free(frames);
        cow_overlay_free(out);
    }
}

static void test_anchor_goes_behind_the_first_block_at_few_places(void **state)
{
    uint8_t sector[COW_SECTOR];
    cow_anchor anchor = some_anchor(), read;

    (void)state;
    assert_int_equal(anchor.address, 2048);
    assert_int_equal(anchor.slot[0], 4096);
    assert_int_equal(anchor.slot[1], 8192);
    assert_int_equal(anchor.end, 12288);
    cow_anchor_encode(&anchor, sector);
    assert_true(cow_anchor_decode(&read, sector, 2048));
    assert_memory_equal(&read, &anchor, sizeof read);
    assert_false(cow_anchor_decode(&read, sector, 512)); /* a copy at another place is none */
    for (unsigned i = 0; i < COW_SECTOR; i++) {
        sector[i] ^= 1;
        assert_false(cow_anchor_decode(&read, sector, 2048));
        sector[i] ^= 1;
    }
    cow_anchor_place(&anchor, 1024, 1024 + 2048, 1);
    assert_int_equal(anchor.address, 1024 + 2048);
    assert_true(anchor.slot[0] % 4096 == 0 && anchor.slot[0] >= anchor.address + 1536);
    cow_anchor_place(&anchor, 0, 65536, 65536);
    assert_int_equal(anchor.end % 65536, 0);
}

static void test_slot_with_any_bit_wrong_is_no_slot(void **state)
{
    cow_anchor anchor = some_anchor();
    uint8_t sector[COW_SECTOR];
    cow_journal_slot read, slot = {.generation = 7,
                                   .sequence = 5,
                                   .applied = 4,
                                   .end = 20000,
                                   .extension = COW_NOWHERE,
                                   .protect = 30000,
                                   .extent = {.address = 30208, .length = 1024, .hash = "hash"},
                                   .reserve = {{40960, 512}}};

    (void)state;
    cow_journal_slot_encode(&slot, &anchor, sector);
    assert_true(cow_journal_slot_decode(&read, &anchor, 1, sector));
    assert_memory_equal(&read, &slot, sizeof read);
    assert_false(cow_journal_slot_decode(&read, &anchor, 0, sector)); /* of the other block */
    /* numbers that no file comes to, and that are no places for locks */
    for (unsigned i = 0; i < 2; i++) {
        cow_journal_slot large = slot;
        uint8_t damaged[COW_SECTOR];

        *(i == 0 ? &large.generation : &large.sequence) |= UINT64_C(1) << 62;
        cow_journal_slot_encode(&large, &anchor, damaged);
        assert_false(cow_journal_slot_decode(&read, &anchor, 1, damaged));
    }
    assert_true(cow_journal_slot_decode(&read, &anchor, 1, sector));
    for (unsigned i = 0; i < COW_SECTOR * 8; i++) {
        sector[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(cow_journal_slot_decode(&read, &anchor, 1, sector));
        sector[i / 8] ^= (uint8_t)(1 << i % 8);
    }
    anchor.id[0]++;
    assert_false(cow_journal_slot_decode(&read, &anchor, 1, sector)); /* of another file */
}

static void test_slot_is_there_twice(void **state)
{
    cow_anchor anchor = some_anchor();
    uint8_t copies[COW_JOURNAL_SLOT];
    cow_journal_slot read, slot = {.generation = 7, .sequence = 5, .applied = 5, .end = 20000, .protect = 20000};

    (void)state;
    cow_journal_slot_encode(&slot, &anchor, copies);
    memcpy(copies + COW_SECTOR, copies, COW_SECTOR);
    for (unsigned i = 0; i < COW_JOURNAL_SLOT; i++) {
        copies[i] ^= 0x40;
        assert_true(cow_journal_slot_decode_copies(&read, &anchor, 1, copies));
        assert_int_equal(read.generation, 7);
        copies[i] ^= 0x40;
    }
    /* a power cut between the two: the newer one counts */
    slot.generation = 9;
    for (unsigned newer = 0; newer < 2; newer++) {
        slot.generation += 2;
        cow_journal_slot_encode(&slot, &anchor, copies + newer * COW_SECTOR);
        assert_true(cow_journal_slot_decode_copies(&read, &anchor, 1, copies));
        assert_int_equal(read.generation, slot.generation);
    }
    memset(copies, 0, sizeof copies);
    assert_false(cow_journal_slot_decode_copies(&read, &anchor, 1, copies));
}

static void test_impossible_slots_are_refused(void **state)
{
    cow_anchor anchor = some_anchor();
    uint8_t sector[COW_SECTOR];
    const cow_journal_slot good = {.generation = 7,
                                   .sequence = 5,
                                   .applied = 4,
                                   .end = 20000,
                                   .extension = COW_NOWHERE,
                                   .protect = 30000,
                                   .extent = {.address = 30208, .length = 1024}};
    cow_journal_slot slot, read;

    (void)state;
#define REFUSES(FIELD, VALUE)                                                                                          \
    do {                                                                                                               \
        slot = good;                                                                                                   \
        slot.FIELD = VALUE;                                                                                            \
        cow_journal_slot_encode(&slot, &anchor, sector);                                                               \
        assert_false(cow_journal_slot_decode(&read, &anchor, 1, sector));                                              \
    } while (0)
    REFUSES(applied, 6);
    REFUSES(applied, 5); /* then there is no extent */
    REFUSES(sequence, 0);
    REFUSES(end, 100);
    REFUSES(end, 30001); /* beyond what is protected */
    REFUSES(protect, UINT64_MAX);
    REFUSES(extent.address, 30209);
    REFUSES(extent.address, 512); /* over the anchor */
    REFUSES(extent.length, UINT64_MAX - 511);
    REFUSES(extent.length, 0);
    REFUSES(reserve[2], ((cow_range){0, 512}));
#undef REFUSES
}

static void test_extent_holds_its_frames(void **state)
{
    cow_anchor anchor = some_anchor();
    cow_overlay *frames = cow_overlay_new(), *back = cow_overlay_new();
    cow_journal_extent read,
        extent = {.sequence = 9, .after = 7, .end = 50000, .extension = 300, .previous = {40960, 512, "h"}};
    uint8_t *bytes, got[9000], expected[9000];
    size_t size;

    (void)state;
    memset(expected, 'q', sizeof expected);
    cow_overlay_write(frames, 0, "superblock", 10);
    cow_overlay_write(frames, 20000, expected, sizeof expected);
    assert_int_equal(cow_journal_extent_encode(&extent, &anchor, frames, &bytes, &size), 0);
    assert_int_equal(size % 512, 0);
    assert_int_equal(cow_journal_extent_decode(&read, &anchor, bytes, size, back), 0);
    assert_memory_equal(&read, &extent, sizeof read);
    cow_overlay_read(back, 20000, got, sizeof got);
    assert_memory_equal(got, expected, sizeof got);
    assert_true(cow_overlay_covers(back, 0, 10));
    assert_false(cow_overlay_touches(back, 10, 19990));
    /* all lengths, and all single bytes wrong: refused or harmless, never outside the buffer (valgrind, ASan) */
    for (size_t n = 0; n < size; n += n < 200 ? 1 : 512) {
        uint8_t *cut = malloc(n + 1);
        memcpy(cut, bytes, n);
        assert_int_equal(cow_journal_extent_decode(&read, &anchor, cut, n, NULL), 1);
        free(cut);
    }
    for (size_t i = 0; i < 160; i++)
        for (unsigned value = 0; value < 256; value += 51) {
            uint8_t old = bytes[i];
            bytes[i] = (uint8_t)value;
            if (cow_journal_extent_decode(&read, &anchor, bytes, size, NULL) == 0)
                assert_true(read.after < read.sequence);
            bytes[i] = old;
        }
    /* a frame over the slots */
    cow_overlay_write(frames, 5000, "x", 1);
    free(bytes);
    assert_int_equal(cow_journal_extent_encode(&extent, &anchor, frames, &bytes, &size), 0);
    assert_int_equal(cow_journal_extent_decode(&read, &anchor, bytes, size, NULL), 1);
    free(bytes);
    cow_overlay_free(frames);
    cow_overlay_free(back);
}

/* ---- fence ---- */

static void test_metadata_checksum_is_that_of_hdf5(void **state)
{
    /* from the author's own driver program */
    (void)state;
    assert_int_equal(cow_metadata_checksum((const uint8_t *)"", 0), 0xdeadbeef);
    assert_int_equal(cow_metadata_checksum((const uint8_t *)"Four score and seven years ago", 30), 0x17770551);
}

static void test_fence_carries_the_messages_of_an_extension(void **state)
{
    uint8_t source[64] = "OHDR", fence[256];
    size_t size;

    (void)state;
    source[4] = 2;
    source[5] = 0; /* one byte of size */
    source[6] = 4 + 8 + 2;
    source[7] = 0x17; /* a message of 8 bytes, and a gap of 2 */
    source[8] = 8;
    memcpy(source + 11, "freespac", 8);
    uint32_t sum = cow_metadata_checksum(source, 21);
    for (int i = 0; i < 4; i++)
        source[21 + i] = (uint8_t)(sum >> (8 * i));
    assert_int_equal(cow_fence_source_size(source, 32), 25);
    size = cow_fence_make(fence, sizeof fence, source);
    assert_int_equal(size, 8 + 12 + 28 + 4);
    assert_memory_equal(fence + 8, source + 7, 12);
    assert_int_equal(fence[20], 0x77);
    assert_int_equal(fence[23], 0x08);
    source[12]++; /* damaged */
    assert_int_equal(cow_fence_make(fence, sizeof fence, source), 0);
    assert_int_equal(cow_fence_make(fence, sizeof fence, NULL), 40);
    assert_int_equal(cow_fence_make(fence, 39, NULL), 0);
}

/* ---- under HDF5 ---- */

static cow_journal *journal_of(hid_t file)
{
    unsigned long number = 0;

    assert_true(H5Fget_fileno(file, &number) >= 0);
    return cow_journal_driver_of_file(number);
}

static int commit(hid_t file, bool closing)
{
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0)
        return -1;
    return cow_journal_commit(journal_of(file), closing);
}

static hid_t create(void)
{
    unlink(path);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, journalled);
    assert_true(file >= 0);
    return file;
}

/* A file in state V, closed. */
static void make(int v)
{
    hid_t file = create();

    for (int i = 1; i <= v; i++) {
        assert_int_equal(state_write(file, i), 0);
        assert_int_equal(commit(file, false), 0);
    }
    assert_true(H5Fclose(file) >= 0);
}

static hid_t open_writer(void)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, journalled);
    assert_true(file >= 0);
    return file;
}

static void sequence_is(hid_t file, uint64_t sequence, uint64_t applied)
{
    uint64_t n, a;

    cow_journal_state(journal_of(file), &n, &a);
    assert_int_equal(n, sequence);
    assert_int_equal(a, applied);
}

/* This program again, to run BODY (its name) in a process that has nothing open: a forked one would have HDF5's table
 * of open files. */
static pid_t start(const char *body)
{
    pid_t child = fork_child();

    if (child == 0) {
        execl(program, "test_journal", "--run", body, path, (char *)NULL);
        _exit(99);
    }
    return child;
}

static int finish(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

/* Its exit code. */
static int elsewhere(const char *body)
{
    return finish(start(body));
}

static int stock_state(void)
{
    return state_of_path(path, stock) + 10;
}

static int journal_state(void)
{
    return state_of_path(path, journalled) + 10;
}

static void both_see(int v)
{
    assert_int_equal(elsewhere("journal_state"), v + 10);
    assert_int_equal(elsewhere("stock_state"), v + 10);
}

static off_t size_of(void)
{
    struct stat about;

    assert_int_equal(stat(path, &about), 0);
    return about.st_size;
}

static uint64_t digest(void)
{
    FILE *file = fopen(path, "r");
    uint64_t sum = 0;
    int c;

    while ((c = fgetc(file)) != EOF)
        sum = sum * 1099511628211u + (uint64_t)c + 1;
    fclose(file);
    return sum;
}

static void test_file_is_read_by_everybody(void **state)
{
    (void)state;
    make(1);
    both_see(1);
    for (int v = 2; v <= 6; v++) {
        hid_t file = open_writer();
        assert_int_equal(state_of(file), v - 1);
        assert_int_equal(state_write(file, v), 0);
        assert_true(H5Fclose(file) >= 0);
        both_see(v);
    }
}

static void test_creation_that_is_never_committed_leaves_nothing(void **state)
{
    hid_t file = create();

    (void)state;
    assert_int_equal(state_write(file, 1), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0); /* is no commit */
    assert_int_equal(elsewhere("stock_state"), 10 + STATE_REFUSED);
    assert_int_equal(elsewhere("journal_state"), 10 + STATE_REFUSED);
    cow_journal_abort(journal_of(file), "test");
    H5Fclose(file);
    assert_int_equal(size_of(), 0);
}

static void test_abort_leaves_the_former_state(void **state)
{
    hid_t file;

    (void)state;
    make(3);
    file = open_writer();
    assert_int_equal(state_write(file, 4), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_int_equal(state_of(file), 4);
    cow_journal_abort(journal_of(file), "test");
    assert_int_equal(state_write(file, 5), 0); /* HDF5 goes on */
    assert_int_equal(state_of(file), 5);
    H5Fclose(file);
    both_see(3);
}

static void test_nothing_changed_is_no_commit(void **state)
{
    uint64_t before;
    hid_t file;

    (void)state;
    make(2);
    before = digest();
    file = open_writer();
    sequence_is(file, 2, 2);
    assert_int_equal(commit(file, false), 0);
    sequence_is(file, 2, 2);
    H5Fclose(file);
    assert_int_equal(digest(), before);
}

static void test_uncommitted_changes_are_seen_by_nobody(void **state)
{
    hid_t file;

    (void)state;
    make(1);
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    both_see(1);
    assert_int_equal(commit(file, false), 0);
    both_see(2);
    H5Fclose(file);
}

static int stock_writes(void)
{
    hid_t file;

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file = H5Fopen(path, H5F_ACC_RDWR, stock);
    return file >= 0;
}

static void test_hdf5_without_the_driver_cannot_write(void **state)
{
    uint64_t before;

    (void)state;
    make(2);
    before = digest();
    assert_int_equal(elsewhere("stock_writes"), 0);
    assert_int_equal(digest(), before);
    both_see(2);
}

static void test_driver_shows_no_fence(void **state)
{
    hid_t file, fcpl;
    unsigned version;
    haddr_t eof;
    H5F_info2_t info;

    (void)state;
    make(1);
    file = open_writer();
    assert_true(H5Fget_info2(file, &info) >= 0);
    assert_int_equal(info.super.super_ext_size, 0);
    eof = cow_journal_end(journal_of(file));
    assert_true((off_t)eof <= size_of());
    fcpl = H5Fget_create_plist(file);
    assert_true(H5Pget_version(fcpl, &version, NULL, NULL, NULL) >= 0);
    assert_int_equal(version, 3);
    H5Pclose(fcpl);
    H5Fclose(file);
}

static void test_real_extension_is_carried_by_the_fence(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE), file;
    H5F_fspace_strategy_t strategy;
    hbool_t persist;
    hsize_t threshold;

    (void)state;
    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_FSM_AGGR, true, 1);
    H5Pset_sym_k(fcpl, 20, 8);
    unlink(path);
    file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, journalled);
    H5Pclose(fcpl);
    for (int v = 1; v < 5; v++) {
        if (v > 1)
            file = open_writer();
        assert_true(file >= 0);
        assert_int_equal(state_of(file), v - 1);
        assert_int_equal(state_write(file, v), 0);
        H5Fclose(file);
        both_see(v);
    }
    assert_int_equal(elsewhere("stock_writes"), 0);
    for (int i = 0; i < 2; i++) {
        file = H5Fopen(path, H5F_ACC_RDONLY, i == 0 ? journalled : stock);
        fcpl = H5Fget_create_plist(file);
        assert_true(H5Pget_file_space_strategy(fcpl, &strategy, &persist, &threshold) >= 0);
        assert_int_equal(strategy, H5F_FSPACE_STRATEGY_FSM_AGGR);
        assert_true(persist);
        H5Pclose(fcpl);
        H5Fclose(file);
    }
}

static void with_fcpl(hid_t fcpl, hid_t fapl)
{
    hid_t file;

    unlink(path);
    file = H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl);
    for (int v = 1; v < 6; v++) {
        if (v > 1)
            file = H5Fopen(path, H5F_ACC_RDWR, fapl);
        assert_true(file >= 0);
        assert_int_equal(state_of(file), v - 1);
        assert_int_equal(state_write(file, v), 0);
        assert_int_equal(commit(file, false), 0);
        H5Fclose(file);
        both_see(v);
    }
    H5Pclose(fcpl);
}

static void test_user_block(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    (void)state;
    H5Pset_userblock(fcpl, 2048);
    with_fcpl(fcpl, journalled);
}

static void test_short_addresses(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    (void)state;
    H5Pset_sizes(fcpl, 4, 8);
    with_fcpl(fcpl, journalled);
}

static void test_paged_file_space(void **state)
{
    hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);

    (void)state;
    H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, true, 1);
    with_fcpl(fcpl, journalled);
}

static void test_alignment_and_large_metadata_blocks(void **state)
{
    hid_t fapl = H5Pcopy(journalled);

    (void)state;
    H5Pset_alignment(fapl, 1, 4096);
    H5Pset_meta_block_size(fapl, 100000);
    with_fcpl(H5Pcreate(H5P_FILE_CREATE), fapl);
    H5Pclose(fapl);
}

static void test_superblock_of_version_0_is_refused(void **state)
{
    hid_t fapl = H5Pcopy(journalled), file;

    (void)state;
    H5Pset_libver_bounds(fapl, H5F_LIBVER_EARLIEST, H5F_LIBVER_V114);
    unlink(path);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    assert_int_equal(state_write(file, 1), 0);
    assert_int_equal(commit(file, false), -1);
    assert_non_null(strstr(cow_error_message(), "library version bounds"));
    cow_error_clear();
    H5Fclose(file);
    H5Pclose(fapl);
}

static void test_file_of_others_goes_straight_through(void **state)
{
    hid_t file;

    (void)state;
    unlink(path);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, stock);
    assert_int_equal(state_write(file, 1), 0);
    H5Fclose(file);
    file = open_writer();
    assert_null(journal_of(file));
    assert_int_equal(state_write(file, 2), 0);
    H5Fclose(file);
    both_see(2);
    assert_int_equal(elsewhere("stock_writes"), 1); /* no fence */
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, journalled);
    assert_int_equal(state_write(file, 1), 0);
    H5Fclose(file);
    both_see(1);
    assert_int_equal(elsewhere("stock_writes"), 0);
}

static void test_truncation_never_empties_a_history(void **state)
{
    uint64_t before;
    hid_t file;

    (void)state;
    make(2);
    before = digest();
    H5E_BEGIN_TRY
    {
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, journalled);
    }
    H5E_END_TRY
    assert_true(file < 0);
    assert_int_equal(digest(), before);
}

/* ---- readers ---- */

static int ask[2], answer[2];

static char listen_to(int fd)
{
    char c = 0;

    return read(fd, &c, 1) == 1 ? c : 0;
}

static void say(int fd, char c)
{
    assert_int_equal(write(fd, &c, 1), 1);
}

enum { ASK = 20, ANSWER = 21 }; /* descriptors in the reader */

static int keep_reading(hid_t fapl)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    char question;

    say(ANSWER, file < 0 ? 'f' : 'o');
    while ((question = listen_to(ASK)) == 's')
        say(ANSWER, (char)('a' + state_of(file)));
    if (question == 'q')
        H5Fclose(file);
    return 0;
}

static int journal_reader(void)
{
    return keep_reading(journalled);
}

static int stock_reader(void)
{
    return keep_reading(stock);
}

/* A reader in a process of its own: answers each question with the state it sees; 'q' ends it. */
static pid_t reader(const char *body)
{
    pid_t child;

    assert_int_equal(pipe(ask), 0);
    assert_int_equal(pipe(answer), 0);
    dup2(ask[0], ASK);
    dup2(answer[1], ANSWER);
    fcntl(ask[1], F_SETFD, FD_CLOEXEC);
    fcntl(answer[0], F_SETFD, FD_CLOEXEC);
    child = start(body);
    close(ASK);
    close(ANSWER);
    close(ask[0]);
    close(answer[1]);
    assert_int_equal(listen_to(answer[0]), 'o');
    return child;
}

static int reader_sees(void)
{
    say(ask[1], 's');
    return listen_to(answer[0]) - 'a';
}

static void reader_ends(pid_t child)
{
    say(ask[1], 'q');
    waitpid(child, NULL, 0);
    close(ask[1]);
    close(answer[0]);
}

/* It applies nothing any more. */
static void reader_dies(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ask[1]);
    close(answer[0]);
}

static void reader_keeps(const char *body, bool pins)
{
    hid_t file;
    pid_t child;

    make(1);
    child = reader(body);
    for (int v = 2; v <= 8; v++) {
        file = open_writer();
        assert_int_equal(state_of(file), v - 1);
        assert_int_equal(state_write(file, v), 0);
        assert_int_equal(commit(file, false), 0);
        sequence_is(file, (uint64_t)v, 1);
        H5Fclose(file);
        assert_int_equal(reader_sees(), 1);
        assert_int_equal(elsewhere("journal_state"), v + 10);
        if (pins)
            assert_int_equal(elsewhere("stock_state"), 11);
    }
    reader_ends(child);
    file = open_writer(); /* applies what is pending */
    sequence_is(file, 8, 8);
    H5Fclose(file);
    both_see(8);
}

static void test_reader_keeps_seeing_its_state(void **state)
{
    (void)state;
    reader_keeps("journal_reader", true);
}

static void test_stock_reader_keeps_seeing_its_state(void **state)
{
    (void)state;
    reader_keeps("stock_reader", false);
}

/* ---- somebody comes at the worst moment ---- */

/* Calls of the system with something done before the one of a kind. */
typedef struct moment {
    void (*sync)(struct moment *m); /* before each sync */
    void (*pin)(struct moment *m);  /* before each lock for reading */
    void (*write)(struct moment *m, const void *bytes, size_t size, off_t offset);
    int count;
} moment;

static int moment_fdatasync(void *context, int fd)
{
    moment *m = context;

    (void)fd;
    m->count++;
    if (m->sync != NULL)
        m->sync(m);
    return 0;
}
static int moment_lock(void *context, int fd, int command, struct flock *lock)
{
    moment *m = context;

    if (m->pin != NULL && command == F_OFD_SETLK && lock->l_type == F_RDLCK) {
        m->count++;
        m->pin(m);
    }
    return fcntl(fd, command, lock);
}
static ssize_t moment_pwrite(void *context, int fd, const void *bytes, size_t size, off_t offset)
{
    moment *m = context;

    if (m->write != NULL)
        m->write(m, bytes, size, offset);
    return pwrite(fd, bytes, size, offset);
}

static hid_t moment_fapl(moment *m, cow_disk_calls *calls)
{
    cow_journal_options options = at_once;

    *calls = cow_disk_system;
    calls->context = m;
    calls->fdatasync = moment_fdatasync;
    calls->lock = moment_lock;
    calls->pwrite = moment_pwrite;
    options.calls = calls;
    return state_fapl(&options);
}

static pid_t late_reader;

static void reader_at_second_sync(moment *m)
{
    if (m->count == 2)
        late_reader = reader("journal_reader");
}

/* The slot is written and not yet durable: the reader must take the state before, and its pin must be seen. */
static void test_reader_that_comes_during_a_commit_sees_the_state_before(void **state)
{
    moment m = {.sync = reader_at_second_sync};
    cow_disk_calls calls;
    hid_t fapl = moment_fapl(&m, &calls), file;

    (void)state;
    make(1);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    assert_true(file >= 0);
    assert_int_equal(state_write(file, 2), 0);
    m.count = 0;
    assert_int_equal(commit(file, false), 0);
    sequence_is(file, 2, 1);
    assert_int_equal(reader_sees(), 1);
    m.sync = NULL;
    H5Fclose(file);
    assert_int_equal(reader_sees(), 1);
    reader_ends(late_reader);
    H5Pclose(fapl);
    file = open_writer();
    H5Fclose(file);
    both_see(2);
}

/* Commits the next state when it is told to. */
static int writer_on_demand(void)
{
    hid_t file;
    int v;

    say(ANSWER, 'o');
    while (listen_to(ASK) == 's') {
        if ((file = H5Fopen(path, H5F_ACC_RDWR, journalled)) < 0)
            return 1;
        v = state_of(file);
        if (state_write(file, v + 1) < 0 || H5Fclose(file) < 0)
            return 1;
        say(ANSWER, (char)('a' + v + 1));
    }
    return 0;
}

static void commit_before_pin(moment *m)
{
    if (m->count == 1)
        assert_int_equal(reader_sees(), 2); /* the writer's answer */
}

/* Between a reader's choice of a state and its pin the next one is committed and applied. */
static void test_reader_looks_again_after_its_pin(void **state)
{
    moment m = {.pin = commit_before_pin};
    cow_disk_calls calls;
    hid_t fapl = moment_fapl(&m, &calls), file;
    cow_disk other = {.calls = &cow_disk_system, .name = path};
    uint64_t pin;
    pid_t writer;

    (void)state;
    make(1);
    writer = reader("writer_on_demand");
    file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    assert_true(file >= 0);
    sequence_is(file, 2, 2);
    assert_int_equal(state_of(file), 2);
    /* and an older pin, which would hold up applying, is not kept */
    other.fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(cow_lock_lowest_pin(&other, &pin), 0);
    assert_int_equal(pin, 2);
    close(other.fd);
    H5Fclose(file);
    reader_ends(writer);
    H5Pclose(fapl);
}

/* What a writer does with a commit that another process left pending: the pages may be written only after the slot, which
 * may never have reached the disk, was written anew and synced; and where the other one did not sync, after the record was. */
typedef struct anew {
    moment m;          /* first */
    const char *magic; /* of what must be written and synced before the first page */
    bool written, synced, early;
} anew;

static void note_write(moment *m, const void *bytes, size_t size, off_t offset)
{
    anew *a = (anew *)m;

    if (size > 8 && memcmp(bytes, a->magic, 8) == 0)
        a->written = true;
    else if (offset >= 12288 && memcmp(bytes, "h5cowext", 8) != 0) /* behind the anchor: a page */
        a->early |= !a->synced;
}
static void note_sync(moment *m)
{
    anew *a = (anew *)m;

    a->synced = a->synced || a->written;
}

static void is_written_anew(const char *magic, cow_sync sync, bool later)
{
    anew a = {.m = {.sync = note_sync, .write = note_write}, .magic = magic};
    cow_journal_options options = at_once;
    cow_disk_calls calls;
    hid_t fapl = moment_fapl(&a.m, &calls), other, file;
    pid_t child;

    options.sync = sync;
    other = state_fapl(&options);
    make(1);
    child = reader("journal_reader");
    file = H5Fopen(path, H5F_ACC_RDWR, other);
    assert_int_equal(state_write(file, 2), 0);
    H5Fclose(file);
    H5Pclose(other);
    if (!later)
        reader_dies(child);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    assert_true(file >= 0);
    sequence_is(file, 2, later ? 1 : 2);
    if (later)
        reader_ends(child);
    H5Fclose(file);
    assert_true(a.written && a.synced);
    assert_false(a.early);
    H5Pclose(fapl);
    both_see(2);
}

static void test_slot_of_another_process_is_written_anew(void **state)
{
    (void)state;
    is_written_anew("h5cowslt", COW_SYNC_FULL, false);
}

static void test_slot_of_another_process_is_written_anew_when_a_reader_has_gone(void **state)
{
    (void)state;
    is_written_anew("h5cowslt", COW_SYNC_FULL, true);
}

static void test_record_that_was_not_synced_is_written_anew(void **state)
{
    (void)state;
    is_written_anew("h5cowext", COW_SYNC_OFF, false);
}

static void test_record_that_was_not_synced_is_written_anew_when_a_reader_has_gone(void **state)
{
    (void)state;
    is_written_anew("h5cowext", COW_SYNC_OFF, true);
}

static const hsize_t block_size = 50000;

static int write_block(hid_t file, const char *name, int value)
{
    static int values[50000];
    hid_t space = H5Screate_simple(1, &block_size, NULL), set;
    int status;

    for (size_t i = 0; i < block_size; i++)
        values[i] = value;
    set = H5Dcreate2(file, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    status = H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0 || H5Dclose(set) < 0 ? -1 : 0;
    H5Sclose(space);
    return status;
}

/* Answers with the value that all elements of "block" have. */
static int block_reader(void)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, journalled), set = H5Dopen2(file, "block", H5P_DEFAULT);
    static int values[50000];

    say(ANSWER, set < 0 ? 'f' : 'o');
    while (listen_to(ASK) == 's') {
        int value = H5Dread(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0 ? -1 : values[0];
        for (size_t i = 0; i < block_size; i++)
            if (values[i] != value)
                value = -1;
        say(ANSWER, (char)('a' + value));
    }
    H5Dclose(set);
    H5Fclose(file);
    return 0;
}

static void test_space_of_a_pinned_state_is_not_used(void **state)
{
    hid_t file = create();
    pid_t child;

    (void)state;
    assert_int_equal(write_block(file, "block", 7), 0);
    H5Fclose(file);
    child = reader("block_reader");
    file = open_writer();
    assert_true(H5Ldelete(file, "block", H5P_DEFAULT) >= 0); /* the file ends earlier now */
    assert_int_equal(commit(file, false), 0);
    assert_int_equal(write_block(file, "other", 9), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_int_equal(reader_sees(), 7);
    assert_int_equal(commit(file, false), 0);
    assert_int_equal(reader_sees(), 7);
    H5Fclose(file);
    assert_int_equal(reader_sees(), 7);
    reader_ends(child);
}

static void test_commits_up_to_a_pin_are_applied(void **state)
{
    hid_t file;
    pid_t child;

    (void)state;
    make(1);
    file = open_writer();
    child = reader("journal_reader");
    for (int v = 2; v <= 3; v++) {
        assert_int_equal(state_write(file, v), 0);
        assert_int_equal(commit(file, false), 0);
    }
    sequence_is(file, 3, 1);
    reader_ends(child);
    child = reader("journal_reader"); /* of state 3 */
    assert_int_equal(reader_sees(), 3);
    assert_int_equal(state_write(file, 4), 0);
    assert_int_equal(commit(file, false), 0);
    sequence_is(file, 4, 3);
    assert_int_equal(elsewhere("stock_state"), 3 + 10);
    assert_int_equal(reader_sees(), 3);
    reader_ends(child);
    assert_int_equal(state_write(file, 5), 0);
    assert_int_equal(commit(file, false), 0);
    sequence_is(file, 5, 5);
    H5Fclose(file);
    both_see(5);
}

static void test_long_reader_does_not_make_the_log_grow_without_bound(void **state)
{
    hid_t file;
    pid_t child;
    off_t middle = 0;

    (void)state;
    make(1);
    child = reader("journal_reader");
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    /* the same few bytes again and again */
    for (int i = 0; i < 1000; i++) {
        hid_t set = H5Dopen2(file, "x", H5P_DEFAULT);
        int values[200];
        for (int k = 0; k < 200; k++)
            values[k] = i + k;
        H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        H5Dclose(set);
        assert_int_equal(commit(file, false), 0);
        if (i == 300)
            middle = size_of();
    }
    assert_true(size_of() < 2 * middle);
    assert_int_equal(reader_sees(), 1);
    reader_ends(child);
    H5Fclose(file);
}

static off_t grown_to(hid_t fapl, int v)
{
    hid_t file;

    unlink(path);
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
    for (int i = 1; i <= v; i++) {
        if (i > 1)
            file = H5Fopen(path, H5F_ACC_RDWR, fapl);
        assert_true(file >= 0);
        assert_int_equal(state_write(file, i), 0);
        H5Fclose(file);
    }
    return size_of();
}

static void test_journal_space_is_used_again(void **state)
{
    off_t without = grown_to(stock, 60), with = grown_to(journalled, 60);

    /* a commit's record grows to 24 kB here; what places it had, of 4, 8, 16 and 32 kB, two each, and the anchor stay
     */
    (void)state;
    print_message("# %ld bytes without, %ld with journal\n", (long)without, (long)with);
    assert_true(with - without < 2 * 65536 + 12288);
    both_see(60);
}

/* ---- who may write ---- */

static int second_writer(void)
{
    hid_t file;
    char message[1024] = "";
    uint64_t before = digest();

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    file = H5Fopen(path, H5F_ACC_RDWR, journalled);
    if (file >= 0 || digest() != before)
        return 1;
    file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, journalled);
    if (file >= 0 || digest() != before)
        return 2;
    int number;
    cow_journal_open(path, (cow_journal_mode){.writable = true}, &at_once, &number);
    snprintf(message, sizeof message, "%s", cow_error_message());
    char who[64];
    snprintf(who, sizeof who, "process %d (test_journal) on ", (int)getppid());
    return strstr(message, who) == NULL ? 3 : 0;
}

static void test_second_writer_is_refused_and_told_who(void **state)
{
    hid_t file;

    (void)state;
    make(1);
    file = open_writer();
    assert_int_equal(elsewhere("second_writer"), 0);
    assert_int_equal(state_write(file, 2), 0);
    assert_int_equal(elsewhere("second_writer"), 0);
    H5Fclose(file);
    both_see(2);
    /* also while a file is created */
    file = create();
    assert_int_equal(state_write(file, 1), 0);
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    assert_int_equal(elsewhere("second_writer"), 0);
    H5Fclose(file);
    both_see(1);
}

static int waiting_writer(void)
{
    cow_journal_options patient = at_once;
    hid_t fapl, file;
    int state = 0;

    patient.lock_timeout = 20000;
    fapl = state_fapl(&patient);
    if ((file = H5Fopen(path, H5F_ACC_RDWR, fapl)) >= 0) {
        state = state_of(file);
        H5Fclose(file);
    }
    return state;
}

static void test_writer_waits_for_another(void **state)
{
    hid_t file;
    pid_t child;

    (void)state;
    make(1);
    file = open_writer();
    child = start("waiting_writer");
    usleep(100000);
    assert_int_equal(state_write(file, 2), 0);
    H5Fclose(file);
    assert_int_equal(finish(child), 2);
}

static void test_lock_dies_with_its_process(void **state)
{
    pid_t child;
    hid_t file;
    int status;

    (void)state;
    make(1);
    if ((child = fork_child()) == 0) {
        file = H5Fopen(path, H5F_ACC_RDWR, journalled);
        state_write(file, 2);
        H5Fflush(file, H5F_SCOPE_GLOBAL);
        kill(getpid(), 9);
    }
    waitpid(child, &status, 0);
    both_see(1);
    file = open_writer();
    assert_int_equal(state_of(file), 1);
    assert_int_equal(state_write(file, 2), 0);
    H5Fclose(file);
    both_see(2);
}

static void test_forked_child_changes_nothing(void **state)
{
    pid_t child;
    hid_t file;
    int status;

    (void)state;
    make(1);
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    if ((child = fork_child()) == 0)
        exit(0); /* HDF5 shuts down and writes what its parent has not written */
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    both_see(1);
    assert_int_equal(state_of(file), 2);
    H5Fclose(file);
    both_see(2);
    /* a child that lives longer than its parent's use of the file keeps nobody out */
    file = open_writer();
    if ((child = fork_child()) == 0) {
        pause();
        _exit(0);
    }
    H5Fclose(file);
    assert_int_equal(elsewhere("waiting_writer"), 2);
    kill(child, 9);
    waitpid(child, NULL, 0);
}

/* What the child would write when it ends is in the way of what its parent has written since. */
static void child_ends_late(cow_sync sync)
{
    cow_journal_options options = at_once;
    int go[2];
    pid_t child;
    hid_t file, fapl;

    options.sync = sync;
    fapl = state_fapl(&options);
    make(1);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    assert_int_equal(state_write(file, 2), 0);
    assert_int_equal(pipe(go), 0);
    if ((child = fork_child()) == 0) {
        close(go[1]);
        listen_to(go[0]);
        exit(0);
    }
    close(go[0]);
    assert_int_equal(write_block(file, "block", 7), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    uint64_t before = digest();
    close(go[1]);
    assert_int_equal(finish(child), 0);
    assert_int_equal(digest(), before);
    both_see(1);
    H5Fclose(file);
    H5Pclose(fapl);
}

static void test_forked_child_that_ends_late_changes_nothing(void **state)
{
    (void)state;
    child_ends_late(COW_SYNC_FULL);
    child_ends_late(COW_SYNC_OFF);
}

static void test_two_openings_in_one_process_are_one(void **state)
{
    hid_t file, again;

    (void)state;
    make(1);
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    again = H5Fopen(path, H5F_ACC_RDONLY, journalled);
    assert_true(again >= 0);
    assert_int_equal(state_of(again), 2);
    H5Fclose(file);
    both_see(1); /* still open */
    H5Fclose(again);
    both_see(2);
}

static void test_file_that_was_replaced_is_not_touched(void **state)
{
    char other[sizeof path + 8];
    hid_t file;
    uint64_t before;

    (void)state;
    make(2);
    snprintf(other, sizeof other, "%s.old", path);
    file = open_writer();
    rename(path, other);
    hid_t new = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, stock);
    state_write(new, 1);
    H5Fclose(new);
    before = digest();
    state_write(file, 3); /* may notice */
    assert_int_equal(commit(file, false), -1);
    assert_non_null(strstr(cow_error_message(), "another file"));
    cow_error_clear();
    H5Fclose(file);
    assert_int_equal(digest(), before);
    assert_int_equal(state_of_path(other, journalled), 2);
    unlink(other);
}

static void test_renamed_file_is_committed_where_it_went(void **state)
{
    char other[sizeof path + 8];
    hid_t file;

    (void)state;
    make(1);
    snprintf(other, sizeof other, "%s.moved", path);
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    rename(path, other);
    H5Fclose(file);
    assert_int_equal(state_of_path(other, journalled), 2);
    assert_int_equal(state_of_path(other, stock), 2);
    unlink(other);
}

static void test_file_cut_by_somebody_is_noticed(void **state)
{
    hid_t file;

    (void)state;
    make(2);
    file = open_writer();
    assert_int_equal(state_write(file, 3), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(cow_journal_commit(journal_of(file), false), -1);
    assert_non_null(strstr(cow_error_message(), "cut"));
    cow_error_clear();
    H5Fclose(file);
}

static void test_copy_with_a_pending_commit_carries_it(void **state)
{
    char copy[sizeof path + 8];
    pid_t child;
    hid_t file;

    (void)state;
    make(1);
    child = reader("journal_reader");
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    H5Fclose(file);
    snprintf(copy, sizeof copy, "%s.copy", path);
    assert_true(copy_file(path, copy));
    reader_ends(child);
    assert_int_equal(state_of_path(copy, stock), 1);
    setenv(COW_LOOKS_VARIABLE, "1", 1);
    assert_int_equal(state_of_path(copy, journalled), 2);
    unsetenv(COW_LOOKS_VARIABLE);
    assert_int_equal(state_of_path(copy, stock), 1);
    file = H5Fopen(copy, H5F_ACC_RDWR, journalled);
    H5Fclose(file);
    assert_int_equal(state_of_path(copy, stock), 2);
    unlink(copy);
}

static void flip(off_t at)
{
    int fd = open(path, O_RDWR);
    uint8_t byte = 0;

    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_flipped_byte_of_the_journal_never_shows_another_state(void **state)
{
    pid_t child;
    hid_t file;
    off_t size;
    int right = 0, refused = 0;
    uint64_t end;

    (void)state;
    make(1);
    child = reader("journal_reader");
    file = open_writer();
    assert_int_equal(state_write(file, 2), 0);
    H5Fclose(file);                     /* pending */
    setenv(COW_LOOKS_VARIABLE, "1", 1); /* it stays pending */
    file = H5Fopen(path, H5F_ACC_RDONLY, journalled);
    end = cow_journal_end(journal_of(file));
    H5Fclose(file);
    reader_dies(child);
    size = size_of();
    assert_true((uint64_t)size > end);
    /* the anchor block, and what lies behind the state */
    for (off_t at = 2048; at < size; at += at < 12288 ? 7 : (uint64_t)at < end ? (off_t)end - at : 3) {
        int seen;

        flip(at);
        seen = state_of_path(path, journalled);
        right += seen == 2;
        refused += seen == STATE_REFUSED;
        if (seen != 2 && seen != STATE_REFUSED)
            fail_msg("byte %ld flipped: state %d", (long)at, seen);
        flip(at);
    }
    print_message("# %d flips are refused, %d do no harm\n", refused, right);
    assert_true(refused > 300);
    assert_int_equal(state_of_path(path, journalled), 2);
    unsetenv(COW_LOOKS_VARIABLE);
}

static void test_borrowed_file_is_read_and_not_written(void **state)
{
    cow_journal_options borrowed = at_once;
    uint64_t before;
    hid_t fapl, file;

    (void)state;
    make(3);
    before = digest();
    borrowed.borrowed = true;
    fapl = state_fapl(&borrowed);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    assert_true(file >= 0);
    assert_int_equal(state_of(file), 3);
    assert_true(H5Fclose(file) >= 0); /* HDF5 writes the superblock again */
    assert_int_equal(digest(), before);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    H5E_BEGIN_TRY
    {
        int values[200] = {0};
        hid_t set = H5Dopen2(file, "x", H5P_DEFAULT);
        H5Dwrite(set, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
        herr_t status = H5Dclose(set);
        if (status >= 0)
            status = H5Fflush(file, H5F_SCOPE_GLOBAL);
        assert_true(status < 0);
        H5Fclose(file);
    }
    H5E_END_TRY
    assert_int_equal(digest(), before);
    H5Pclose(fapl);
}

static void test_external_link_reads_a_file_with_history(void **state)
{
    char other[sizeof path + 8];
    hid_t file, group;
    uint64_t before;

    (void)state;
    make(2);
    before = digest();
    snprintf(other, sizeof other, "%s.linked", path);
    unlink(other);
    file = H5Fcreate(other, H5F_ACC_TRUNC, H5P_DEFAULT, journalled);
    assert_true(H5Lcreate_external(path, "/", file, "there", H5P_DEFAULT, H5P_DEFAULT) >= 0);
    group = H5Gopen2(file, "there", H5P_DEFAULT);
    assert_true(group >= 0);
    assert_int_equal(state_of(group), 2);
    H5Gclose(group);
    H5Fclose(file);
    assert_int_equal(digest(), before);
    unlink(other);
}

/* ---- faults ---- */

typedef struct faults {
    long until;     /* calls that work */
    bool always;    /* all further ones fail as well, or only one */
    bool interrupt; /* every call is interrupted once, every transfer short */
    int number;
    long calls, failed;
} faults;

static bool fails(void *context)
{
    faults *f = context;

    f->calls++;
    if (f->calls <= f->until || (!f->always && f->failed > 0))
        return false;
    f->failed++;
    errno = f->number;
    return true;
}

static int fault_open(void *context, const char *name, int flags, mode_t mode)
{
    return fails(context) ? -1 : cow_disk_system.open(NULL, name, flags, mode);
}
static int fault_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}
static ssize_t fault_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    faults *f = context;
    if (f->interrupt && f->calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return fails(context) ? -1 : pread(fd, buffer, f->interrupt && size > 7 ? size / 2 : size, offset);
}
static ssize_t fault_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    faults *f = context;
    if (f->interrupt && f->calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (fails(context)) { /* half of it arrived */
        if (pwrite(fd, buffer, size / 2, offset) < 0)
            perror("pwrite");
        errno = f->number;
        return -1;
    }
    return pwrite(fd, buffer, f->interrupt && size > 7 ? size / 2 : size, offset);
}
static int fault_fdatasync(void *context, int fd)
{
    (void)fd;
    return fails(context) ? -1 : 0;
}
static int fault_ftruncate(void *context, int fd, off_t size)
{
    return fails(context) ? -1 : ftruncate(fd, size);
}
static int fault_fallocate(void *context, int fd, off_t offset, off_t size)
{
    return fails(context) ? -1 : fallocate(fd, 0, offset, size);
}
static int fault_fstat(void *context, int fd, struct stat *about)
{
    return fails(context) ? -1 : fstat(fd, about);
}
static int fault_stat(void *context, const char *name, struct stat *about)
{
    return fails(context) ? -1 : stat(name, about);
}
static int fault_lock(void *context, int fd, int command, struct flock *lock)
{
    return fails(context) ? -1 : fcntl(fd, command, lock);
}
static int fault_flock(void *context, int fd, int operation)
{
    return fails(context) ? -1 : flock(fd, operation);
}

static cow_disk_calls faulty(faults *f)
{
    return (cow_disk_calls){.context = f,
                            .open = fault_open,
                            .close = fault_close,
                            .pread = fault_pread,
                            .pwrite = fault_pwrite,
                            .fdatasync = fault_fdatasync,
                            .ftruncate = fault_ftruncate,
                            .fallocate = fault_fallocate,
                            .fstat = fault_fstat,
                            .stat = fault_stat,
                            .lock = fault_lock,
                            .flock = fault_flock};
}

/* Opens state 2, makes states 3 and 4 by commits, state 5 by closing; *COMMITTED: the newest one that was reported. */
static void scenario(cow_disk_calls *calls, bool creates, int *committed, bool *reported)
{
    cow_journal_options options = at_once;
    hid_t fapl, file;
    int first = creates ? 1 : 3;

    options.calls = calls;
    fapl = state_fapl(&options);
    *committed = first - 1;
    *reported = false;
    int keep = dup(2), null = open("/dev/null", O_WRONLY);

    dup2(null, 2); /* closing reports on stderr what it could not commit */
    H5E_BEGIN_TRY
    {
        file = creates ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl) : H5Fopen(path, H5F_ACC_RDWR, fapl);
        if (file < 0)
            *reported = true;
        for (int v = first; file >= 0 && v < first + 2; v++) {
            if (state_write(file, v) < 0 || commit(file, false) < 0) {
                *reported = true;
                cow_journal_abort(journal_of(file), "failed");
                break;
            }
            *committed = v;
        }
        if (file >= 0 && !*reported && state_write(file, first + 2) < 0)
            *reported = true;
        if (file >= 0) {
            if (*reported)
                cow_journal_abort(journal_of(file), "failed");
            H5Fclose(file);
        }
    }
    H5E_END_TRY
    dup2(keep, 2);
    close(keep);
    close(null);
    cow_error_clear();
    H5Pclose(fapl);
}

static void every_call_fails(bool creates, bool always, int number)
{
    int runs = 0;

    for (long until = 0;; until++) {
        faults f = {.until = until, .always = always, .number = number};
        cow_disk_calls calls = faulty(&f);
        int committed, now;
        bool reported;

        if (creates)
            unlink(path);
        else
            make(2);
        scenario(&calls, creates, &committed, &reported);
        now = access(path, F_OK) == 0 ? state_of_path(path, journalled) : STATE_REFUSED;
        if (f.failed == 0) {
            assert_int_equal(now, creates ? 3 : 5);
            break;
        }
        runs++;
        /* what was reported as committed is there, and nothing that is half of a state */
        if (now == STATE_REFUSED && creates && committed == 0)
            continue;
        if (now < committed || now > committed + 1)
            fail_msg("call %ld failed%s: state %d, committed %d", until, always ? " and all after it" : "", now,
                     committed);
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, journalled); /* and writing goes on */
        assert_true(file >= 0);
        assert_int_equal(state_write(file, now + 1), 0);
        H5Fclose(file);
        now++;
        assert_int_equal(state_of_path(path, journalled), now);
        assert_int_equal(state_of_path(path, stock), now);
    }
    assert_true(runs > 40);
    print_message("# %d faults\n", runs);
}

static void test_one_failing_call_in_creation(void **state)
{
    (void)state;
    every_call_fails(true, false, EIO);
}

static void test_disk_failing_for_good_in_creation(void **state)
{
    (void)state;
    every_call_fails(true, true, EIO);
}

static void test_one_failing_call(void **state)
{
    (void)state;
    every_call_fails(false, false, ENOSPC);
}

static void test_disk_failing_for_good(void **state)
{
    (void)state;
    every_call_fails(false, true, EIO);
}

static void test_interrupted_and_short_transfers_are_gone_through(void **state)
{
    faults f = {.until = 1000000000, .interrupt = true};
    cow_disk_calls calls = faulty(&f);
    int committed;
    bool reported;

    (void)state;
    make(2);
    scenario(&calls, false, &committed, &reported);
    assert_int_equal(committed, 4);
    assert_false(reported);
    both_see(5);
}

static int no_room(void *context, int fd, off_t offset, off_t size)
{
    (void)context, (void)fd, (void)offset, (void)size;
    errno = ENOSPC;
    return -1;
}
static int writes;
static ssize_t counting_pwrite(void *context, int fd, const void *bytes, size_t size, off_t offset)
{
    (void)context;
    writes++;
    return pwrite(fd, bytes, size, offset);
}

/* A few elements here and there of a dataset in the file of PATH; WRITES: how often the file was written to. */
static void change_here_and_there(cow_sync sync, uint8_t *values, hsize_t count, uint64_t *seed, int *written)
{
    cow_journal_options options = at_once;
    cow_disk_calls calls = cow_disk_system;
    hsize_t place[200];
    uint8_t value[200];
    const hsize_t n = sizeof value, first = splitmix64(seed) % 2 == 0 ? 0 : splitmix64(seed) % (count / 2);
    hid_t fapl, file, dataset, space, memory;

    calls.pwrite = counting_pwrite;
    options.calls = &calls;
    options.sync = sync;
    fapl = state_fapl(&options);
    assert_true((file = H5Fopen(path, H5F_ACC_RDWR, fapl)) >= 0);
    dataset = H5Dopen2(file, "scattered", H5P_DEFAULT);
    space = H5Dget_space(dataset);
    memory = H5Screate_simple(1, &n, NULL);
    for (hsize_t i = 0; i < n; i++) {
        place[i] = first + splitmix64(seed) % (count - first);
        values[place[i]] = (uint8_t)splitmix64(seed);
    }
    for (hsize_t i = 0; i < n; i++)
        value[i] = values[place[i]];
    assert_true(H5Sselect_elements(space, H5S_SELECT_SET, n, place) >= 0);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT8, memory, space, H5P_DEFAULT, value) >= 0);
    writes = 0;
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(dataset);
    assert_true(H5Fclose(file) >= 0);
    H5Pclose(fapl);
    *written = writes;
}

/* What is between the bytes that a commit changes stays as it is, also where it is written with them. */
static void test_bytes_between_changes_stay(void **state)
{
    enum { COUNT = 300000 };
    const hsize_t count = COUNT;
    uint8_t *values = malloc(COUNT), *found = malloc(COUNT);
    uint64_t seed = test_seed();
    hid_t file, dataset, space;
    int one_by_one, together;

    (void)state;
    make(1);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = (uint8_t)splitmix64(&seed);
    file = open_writer();
    space = H5Screate_simple(1, &count, NULL);
    dataset = H5Dcreate2(file, "scattered", H5T_STD_U8LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Dwrite(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Fclose(file);
    for (int round = 0; round < 10; round++) {
        change_here_and_there(COW_SYNC_FULL, values, COUNT, &seed, &one_by_one);
        change_here_and_there(COW_SYNC_OFF, values, COUNT, &seed, &together);
        assert_true(one_by_one > 150 && together < one_by_one);
        assert_true((file = H5Fopen(path, H5F_ACC_RDONLY, stock)) >= 0);
        dataset = H5Dopen2(file, "scattered", H5P_DEFAULT);
        assert_true(H5Dread(dataset, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, found) >= 0);
        assert_memory_equal(found, values, COUNT);
        H5Dclose(dataset);
        H5Fclose(file);
    }
    free(values);
    free(found);
}

/* Who is told that bytes are in place reads them from the file, past the pages. */
static void test_bytes_in_place_are_in_the_file(void **state)
{
    uint8_t bytes[100], got[100] = {0};
    const struct iovec part = {got, sizeof got};
    cow_journal *journal;
    uint64_t end;
    hid_t file;

    (void)state;
    make(1);
    file = open_writer();
    journal = journal_of(file);
    end = cow_journal_end(journal);
    memset(bytes, 7, sizeof bytes);
    assert_int_equal(cow_journal_write(journal, end, bytes, sizeof bytes), 0);
    assert_true(cow_journal_in_place(journal, end, sizeof bytes));
    assert_true(cow_journal_bring(journal, end, &part, 1));
    assert_memory_equal(got, bytes, sizeof bytes);
    cow_journal_abort(journal, "it was a test");
    H5E_BEGIN_TRY
    {
        H5Fclose(file);
    }
    H5E_END_TRY
    both_see(1);
}

/* Room for the record of a commit is there before its first byte is written. */
static void test_full_disk_is_noticed_before_the_record_is_written(void **state)
{
    cow_journal_options options = at_once;
    cow_disk_calls calls = cow_disk_system;
    hid_t fapl, file;

    (void)state;
    make(1);
    calls.fallocate = no_room;
    calls.pwrite = counting_pwrite;
    options.calls = &calls;
    fapl = state_fapl(&options);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    assert_int_equal(state_write(file, 2), 0);
    assert_true(H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0);
    cow_journal_in_place(journal_of(file), 0, UINT64_MAX); /* what waits is written, which is not of the record */
    writes = 0;
    assert_int_equal(cow_journal_commit(journal_of(file), false), -1);
    assert_int_equal(writes, 0);
    assert_non_null(strstr(cow_error_message(), strerror(ENOSPC)));
    cow_error_clear();
    H5Fclose(file);
    H5Pclose(fapl);
    both_see(1);
}

/* ---- a full disk ---- */

#define SMALL_DISK 4096 /* pages */

static struct {
    bool taken[SMALL_DISK];
    long left; /* pages that are free */
} small_disk;

/* How many of SIZE bytes at OFFSET there is room for. */
static size_t take_room(off_t offset, size_t size)
{
    for (off_t page = offset / 4096; page * 4096 < offset + (off_t)size; page++) {
        if (small_disk.taken[page])
            continue;
        if (small_disk.left == 0)
            return page * 4096 > offset ? (size_t)(page * 4096 - offset) : 0;
        small_disk.taken[page] = true;
        small_disk.left--;
    }
    return size;
}

static ssize_t small_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    size_t n = take_room(offset, size);

    if (n > 0)
        return cow_disk_system.pwrite(context, fd, buffer, n, offset);
    errno = ENOSPC;
    return -1;
}

static int small_fallocate(void *context, int fd, off_t offset, off_t size)
{
    if (take_room(offset, (size_t)size) == (size_t)size)
        return cow_disk_system.fallocate(context, fd, offset, size);
    errno = ENOSPC;
    return -1;
}

/* Holes of the file are not on the disk. */
static void fill_small_disk(long left)
{
    int fd = open(path, O_RDONLY);
    off_t end = lseek(fd, 0, SEEK_END);

    memset(&small_disk, 0, sizeof small_disk);
    for (off_t at = 0; at < end && (at = lseek(fd, at, SEEK_DATA)) >= 0; at += 4096)
        small_disk.taken[at / 4096] = true;
    small_disk.left = left;
    close(fd);
}

/* A file of state 1, and a dataset of 100 pages for which HDF5 has address space, and the disk no pages. */
static void make_with_hole(void)
{
    const hsize_t size = 100 * 4096;
    hid_t file = create(), space = H5Screate_simple(1, &size, NULL), list = H5Pcreate(H5P_DATASET_CREATE), set;

    assert_int_equal(state_write(file, 1), 0);
    assert_true(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) >= 0 && H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) >= 0);
    set = H5Dcreate2(file, "hole", H5T_STD_U8LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
    assert_true(set >= 0 && H5Dclose(set) >= 0 && H5Pclose(list) >= 0 && H5Sclose(space) >= 0);
    assert_int_equal(commit(file, true), 0);
    assert_true(H5Fclose(file) >= 0);
}

/* Does the commit succeed that fills the hole? */
static bool fills_hole(long left)
{
    static uint8_t sevens[100 * 4096];
    cow_journal_options options = at_once;
    cow_disk_calls calls = cow_disk_system;
    hid_t fapl, file, set;
    bool committed;

    memset(sevens, 7, sizeof sevens);
    make_with_hole();
    fill_small_disk(left);
    calls.pwrite = small_pwrite;
    calls.fallocate = small_fallocate;
    options.calls = &calls;
    fapl = state_fapl(&options);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    set = H5Dopen2(file, "hole", H5P_DEFAULT);
    assert_true(H5Dwrite(set, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, sevens) >= 0);
    assert_true(H5Dclose(set) >= 0);
    committed = commit(file, true) == 0;
    assert_true(H5Fclose(file) >= 0);
    assert_true(H5Pclose(fapl) >= 0);
    cow_error_clear();
    return committed;
}

/* Whether applying finds room must be known before the commit is reported: after it, it is too late. */
static void test_full_disk_fails_the_commit_and_not_its_applying(void **state)
{
    unsigned failed = 0, committed = 0;

    (void)state;
    for (long left = 0; left <= 240; left += 20) {
        bool done = fills_hole(left);

        committed += done;
        failed += !done;
        /* HDF5 without the journal refuses a file whose applying is not finished */
        assert_int_not_equal(elsewhere("stock_state"), STATE_REFUSED + 10);
        assert_int_not_equal(elsewhere("journal_state"), STATE_REFUSED + 10);
    }
    assert_true(failed > 5 && committed > 1);
}

static long syncs;

static int counting_fdatasync(void *context, int fd)
{
    (void)context;
    (void)fd;
    syncs++;
    return 0;
}

static void count_syncs(cow_sync sync, long *commit_syncs, long *close_syncs)
{
    cow_journal_options options = {.sync = sync, .apply_interval = 1000000};
    cow_disk_calls calls = cow_disk_system;
    hid_t fapl, file;

    make(1);
    calls.fdatasync = counting_fdatasync;
    options.calls = &calls;
    fapl = state_fapl(&options);
    file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    state_write(file, 2);
    commit(file, false); /* the first of an opening is applied */
    state_write(file, 3);
    syncs = 0;
    assert_int_equal(commit(file, false), 0);
    *commit_syncs = syncs;
    state_write(file, 4);
    syncs = 0;
    H5Fclose(file);
    *close_syncs = syncs;
    H5Pclose(fapl);
    both_see(4);
}

static void test_number_of_syncs(void **state)
{
    long commit_syncs, close_syncs;

    (void)state;
    count_syncs(COW_SYNC_FULL, &commit_syncs, &close_syncs);
    assert_int_equal(commit_syncs, 2);
    assert_int_equal(close_syncs, 3); /* and the pages before the clean superblock */
    count_syncs(COW_SYNC_NORMAL, &commit_syncs, &close_syncs);
    assert_int_equal(commit_syncs, 1);
    assert_int_equal(close_syncs, 3);
    count_syncs(COW_SYNC_OFF, &commit_syncs, &close_syncs);
    assert_int_equal(commit_syncs, 0);
    assert_int_equal(close_syncs, 0);
}

/* Syncs before the first change, by a writer that finds the slot at AT as one who took a commit back and died left it; 0: all
 * is as it should be. -1: it does not open the file. */
static long syncs_of_opening(off_t at)
{
    static const uint8_t nothing[COW_JOURNAL_SLOT];
    cow_journal_options options = at_once;
    cow_disk_calls calls = cow_disk_system;
    hid_t fapl, file;
    int fd;

    make(1);
    file = open_writer();
    state_write(file, 2);
    H5Fclose(file);
    fd = open(path, O_RDWR);
    if (at > 0)
        assert_int_equal(pwrite(fd, nothing, sizeof nothing, at), sizeof nothing);
    close(fd);
    calls.fdatasync = counting_fdatasync;
    options.calls = &calls;
    fapl = state_fapl(&options);
    syncs = 0;
    H5E_BEGIN_TRY
    {
        file = H5Fopen(path, H5F_ACC_RDWR, fapl);
    }
    H5E_END_TRY
    H5Pclose(fapl);
    if (file < 0)
        return -1;
    assert_int_equal(journal_of(file) != NULL, 1);
    H5Fclose(file);
    return syncs;
}

/* Else a power cut could bring the slot back, with its record half written over. */
static void test_writer_waits_until_a_voided_slot_is_on_the_disk(void **state)
{
    int opened = 0;

    (void)state;
    assert_int_equal(syncs_of_opening(0), 0);
    for (off_t at = 4096; at <= 8192; at += 4096) {
        long n = syncs_of_opening(at);
        assert_int_not_equal(n, 0);
        opened += n > 0;
    }
    assert_true(opened > 0);
}

/* HDF5 1.14 never frees the chunks of a dataset that it could not write out; disks that fail are tested here. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        int (*run)(void);
    } bodies[] = {
        {"journal_state", journal_state}, {"stock_state", stock_state},           {"stock_writes", stock_writes},
        {"second_writer", second_writer}, {"waiting_writer", waiting_writer},     {"journal_reader", journal_reader},
        {"stock_reader", stock_reader},   {"writer_on_demand", writer_on_demand}, {"block_reader", block_reader}};

    state_without_plugins();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recalled_is_what_the_file_has),
        cmocka_unit_test(test_what_is_put_waits),
        cmocka_unit_test(test_bytes_in_place_are_in_the_file),
        cmocka_unit_test(test_overlay_agrees_with_an_array),
        cmocka_unit_test(test_overlay_gives_runs_in_order),
        cmocka_unit_test(test_records_of_a_file_whose_start_moved),
        cmocka_unit_test(test_anchor_goes_behind_the_first_block_at_few_places),
        cmocka_unit_test(test_slot_with_any_bit_wrong_is_no_slot),
        cmocka_unit_test(test_slot_is_there_twice),
        cmocka_unit_test(test_impossible_slots_are_refused),
        cmocka_unit_test(test_extent_holds_its_frames),
        cmocka_unit_test(test_metadata_checksum_is_that_of_hdf5),
        cmocka_unit_test(test_fence_carries_the_messages_of_an_extension),
        cmocka_unit_test(test_file_is_read_by_everybody),
        cmocka_unit_test(test_creation_that_is_never_committed_leaves_nothing),
        cmocka_unit_test(test_abort_leaves_the_former_state),
        cmocka_unit_test(test_nothing_changed_is_no_commit),
        cmocka_unit_test(test_uncommitted_changes_are_seen_by_nobody),
        cmocka_unit_test(test_hdf5_without_the_driver_cannot_write),
        cmocka_unit_test(test_driver_shows_no_fence),
        cmocka_unit_test(test_real_extension_is_carried_by_the_fence),
        cmocka_unit_test(test_user_block),
        cmocka_unit_test(test_short_addresses),
        cmocka_unit_test(test_paged_file_space),
        cmocka_unit_test(test_alignment_and_large_metadata_blocks),
        cmocka_unit_test(test_superblock_of_version_0_is_refused),
        cmocka_unit_test(test_file_of_others_goes_straight_through),
        cmocka_unit_test(test_truncation_never_empties_a_history),
        cmocka_unit_test(test_reader_keeps_seeing_its_state),
        cmocka_unit_test(test_stock_reader_keeps_seeing_its_state),
        cmocka_unit_test(test_reader_that_comes_during_a_commit_sees_the_state_before),
        cmocka_unit_test(test_reader_looks_again_after_its_pin),
        cmocka_unit_test(test_slot_of_another_process_is_written_anew),
        cmocka_unit_test(test_slot_of_another_process_is_written_anew_when_a_reader_has_gone),
        cmocka_unit_test(test_record_that_was_not_synced_is_written_anew),
        cmocka_unit_test(test_record_that_was_not_synced_is_written_anew_when_a_reader_has_gone),
        cmocka_unit_test(test_space_of_a_pinned_state_is_not_used),
        cmocka_unit_test(test_commits_up_to_a_pin_are_applied),
        cmocka_unit_test(test_long_reader_does_not_make_the_log_grow_without_bound),
        cmocka_unit_test(test_journal_space_is_used_again),
        cmocka_unit_test(test_second_writer_is_refused_and_told_who),
        cmocka_unit_test(test_writer_waits_for_another),
        cmocka_unit_test(test_lock_dies_with_its_process),
        cmocka_unit_test(test_forked_child_changes_nothing),
        cmocka_unit_test(test_forked_child_that_ends_late_changes_nothing),
        cmocka_unit_test(test_two_openings_in_one_process_are_one),
        cmocka_unit_test(test_file_that_was_replaced_is_not_touched),
        cmocka_unit_test(test_renamed_file_is_committed_where_it_went),
        cmocka_unit_test(test_file_cut_by_somebody_is_noticed),
        cmocka_unit_test(test_copy_with_a_pending_commit_carries_it),
        cmocka_unit_test(test_flipped_byte_of_the_journal_never_shows_another_state),
        cmocka_unit_test(test_borrowed_file_is_read_and_not_written),
        cmocka_unit_test(test_external_link_reads_a_file_with_history),
        cmocka_unit_test(test_one_failing_call_in_creation),
        cmocka_unit_test(test_disk_failing_for_good_in_creation),
        cmocka_unit_test(test_one_failing_call),
        cmocka_unit_test(test_disk_failing_for_good),
        cmocka_unit_test(test_interrupted_and_short_transfers_are_gone_through),
        cmocka_unit_test(test_bytes_between_changes_stay),
        cmocka_unit_test(test_full_disk_is_noticed_before_the_record_is_written),
        cmocka_unit_test(test_full_disk_fails_the_commit_and_not_its_applying),
        cmocka_unit_test(test_number_of_syncs),
        cmocka_unit_test(test_writer_waits_until_a_voided_slot_is_on_the_disk),
    };
    int status;

    program = argv[0];
    if (argc == 4)
        snprintf(path, sizeof path, "%s", argv[3]);
    else if (mkdtemp(folder) == NULL)
        return 1;
    else
        snprintf(path, sizeof path, "%s/file.h5", folder);
    at_once = cow_journal_defaults;
    at_once.apply_interval = 0;
    journalled = state_fapl(&at_once);
    stock = state_fapl(NULL);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (getenv("SHOW") != NULL)
        H5Eset_auto2(H5E_DEFAULT, (H5E_auto2_t)H5Eprint2, stderr);
    for (size_t i = 0; argc == 4 && i < sizeof bodies / sizeof *bodies; i++)
        if (strcmp(bodies[i].name, argv[2]) == 0)
            return bodies[i].run();
    if (argc == 4)
        return 98;
    status = test_main(tests, argc, argv, NULL, NULL);
    H5Pclose(journalled);
    H5Pclose(stock);
    unlink(path);
    rmdir(folder);
    return status;
}
