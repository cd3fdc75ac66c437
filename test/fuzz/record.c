/* Anchor, slots and extents of the journal. The first byte chooses which, and whether the checksum is made right, so that
 * what stands behind it is reached. */
#include "fuzz.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "journal/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SEALED 0x80
enum { ANCHOR, SLOT, COPIES, EXTENT, KINDS };

static cow_anchor some_anchor(void)
{
    cow_anchor anchor = {.id = "0123456789abcde"};

    cow_anchor_place(&anchor, 0, 512, 1);
    return anchor;
}

static void seal(uint8_t *sector)
{
    cow_put64(sector + 504, cow_checksum(sector, 504));
}

static void check_slot(const cow_journal_slot *slot, const cow_anchor *anchor)
{
    assert(slot->applied <= slot->sequence && slot->end >= anchor->end && slot->protect >= slot->end);
    assert(slot->extent.length == 0 || slot->extent.address >= anchor->end);
    assert(slot->extent.address + slot->extent.length >= slot->extent.address);
}

static int inside(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    const cow_anchor *anchor = context;

    (void)bytes;
    /* never over the records themselves */
    assert(address + size <= anchor->slot[0] || address >= anchor->end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cow_anchor anchor = some_anchor(), read;
    uint8_t bytes[COW_JOURNAL_SLOT] = {0};
    cow_journal_slot slot;
    cow_journal_extent extent;
    cow_overlay *frames;
    bool sealed;

    if (size == 0)
        return 0;
    sealed = data[0] & SEALED;
    memcpy(bytes, data + 1, size - 1 < sizeof bytes ? size - 1 : sizeof bytes);
    switch (data[0] % KINDS) {
    case ANCHOR:
        if (sealed)
            seal(bytes);
        if (cow_anchor_decode(&read, bytes, 2048))
            assert(read.address == 2048 && read.slot[0] < read.slot[1] && read.slot[1] < read.end);
        cow_anchor_guess(&read, 0, 2048, 0);
        cow_anchor_from_slot(&read, bytes);
        break;
    case SLOT:
        if (sealed)
            seal(bytes);
        if (cow_journal_slot_decode(&slot, &anchor, 1, bytes))
            check_slot(&slot, &anchor);
        break;
    case COPIES:
        if (sealed) {
            seal(bytes);
            seal(bytes + COW_SECTOR);
        }
        if (cow_journal_slot_decode_copies(&slot, &anchor, 1, bytes))
            check_slot(&slot, &anchor);
        break;
    case EXTENT:
        if ((frames = cow_overlay_new()) == NULL)
            abort();
        if (cow_journal_extent_decode(&extent, &anchor, data + 1, size - 1, frames) == 0) {
            assert(extent.after < extent.sequence);
            cow_overlay_each(frames, inside, &anchor);
        }
        cow_overlay_free(frames);
        break;
    }
    cow_error_clear();
    return 0;
}

/* Each kind once: the driver mutates from there. */
size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    cow_anchor anchor = some_anchor();
    cow_journal_slot slot = {.generation = 7,
                             .sequence = 5,
                             .applied = 4,
                             .end = 20000,
                             .protect = 30000,
                             .extent = {.address = 30208, .length = 1024},
                             .reserve = {{40960, 512}}};
    cow_journal_extent extent = {.sequence = 9, .after = 7, .end = 50000, .extension = 300};
    cow_overlay *frames;
    uint8_t *bytes;
    size_t size;

    if (n >= KINDS)
        return 0;
    to[0] = (uint8_t)(SEALED | n);
    cow_anchor_encode(&anchor, to + 1);
    if (n == SLOT || n == COPIES)
        cow_journal_slot_encode(&slot, &anchor, to + 1);
    memcpy(to + 1 + COW_SECTOR, to + 1, COW_SECTOR);
    if (n != EXTENT)
        return 1 + (n == COPIES ? COW_JOURNAL_SLOT : COW_SECTOR);
    if ((frames = cow_overlay_new()) == NULL)
        abort();
    cow_overlay_write(frames, 0, "superblock", 10);
    cow_overlay_write(frames, 20000, "somewhere else", 14);
    if (cow_journal_extent_encode(&extent, &anchor, frames, &bytes, &size) < 0 || size + 1 > room)
        abort();
    cow_overlay_free(frames);
    memcpy(to + 1, bytes, size);
    free(bytes);
    return size + 1;
}
