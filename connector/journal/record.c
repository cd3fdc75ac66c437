/* Encoding and decoding of the journal's records. Contract: record.h. Layout: docs/format.md. */
#include "journal/record.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/vector.h"
#include "h5/superblock.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define CHECKSUM_AT   504
#define EXTENT_HEADER 112
#define FRAME_ENTRY   16
#define FENCE_ROOM    1024 /* at least, for the fence header */
#define SUPERBLOCK_AT 168  /* in a slot */

static const uint8_t anchor_magic[8] = {'h', '5', 'c', 'o', 'w', 'j', 'n', 'l'},
                     slot_magic[8] = {'h', '5', 'c', 'o', 'w', 's', 'l', 't'},
                     extent_magic[8] = {'h', '5', 'c', 'o', 'w', 'e', 'x', 't'};

static void seal(uint8_t sector[COW_SECTOR])
{
    cow_put64(sector + CHECKSUM_AT, cow_checksum(sector, CHECKSUM_AT));
}

static bool sealed(const uint8_t sector[COW_SECTOR], const uint8_t magic[8])
{
    return memcmp(sector, magic, 8) == 0 && cow_get64(sector + CHECKSUM_AT) == cow_checksum(sector, CHECKSUM_AT);
}

static uint64_t up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* ---- anchor ---- */

static void place_slots(cow_anchor *anchor)
{
    anchor->slot[0] = up(anchor->address + COW_SECTOR + FENCE_ROOM, COW_BLOCK);
    anchor->slot[1] = anchor->slot[0] + COW_BLOCK;
    anchor->end = anchor->slot[1] + COW_BLOCK;
}

static void shift(cow_anchor *anchor, uint64_t by)
{
    anchor->shift += by;
    anchor->base += by;
    anchor->address += by;
    anchor->slot[0] += by;
    anchor->slot[1] += by;
    anchor->end += by;
}

void cow_anchor_guess(cow_anchor *anchor, uint64_t base, uint64_t address, uint64_t origin)
{
    *anchor = (cow_anchor){.base = origin, .address = origin + (address - base)};
    place_slots(anchor);
    shift(anchor, base - origin);
}

bool cow_anchor_from_slot(cow_anchor *anchor, const uint8_t sector[COW_SECTOR])
{
    const uint8_t *superblock = sector + SUPERBLOCK_AT;
    uint64_t origin;

    if (!sealed(sector, slot_magic) || !cow_superblock_whole(superblock))
        return false;
    /* it tells where superblock and fence were; the guess was of what counts for the slots' places */
    origin = cow_superblock_base(superblock);
    if (origin % COW_BLOCK != (anchor->base - anchor->shift) % COW_BLOCK ||
        cow_superblock_extension(superblock) != anchor->address + COW_SECTOR - anchor->base)
        return false;
    anchor->shift = anchor->base - origin;
    memcpy(anchor->id, sector + 8, sizeof anchor->id);
    return true;
}

void cow_anchor_place(cow_anchor *anchor, uint64_t base, uint64_t first_end, uint64_t unit)
{
    uint64_t distance = 2048; /* what is free before it, HDF5 gets */

    /* The superblock may be lost when the anchor is looked for: few places are possible. */
    while (base + distance < first_end)
        distance *= 2;
    anchor->base = base;
    anchor->shift = 0;
    anchor->address = base + distance;
    place_slots(anchor);
    anchor->end = up(anchor->end, unit < COW_SECTOR ? COW_SECTOR : unit);
}

void cow_anchor_encode(const cow_anchor *anchor, uint8_t sector[COW_SECTOR])
{
    memset(sector, 0, COW_SECTOR);
    memcpy(sector, anchor_magic, 8);
    cow_put32(sector + 8, 1);
    memcpy(sector + 16, anchor->id, 16);
    cow_put64(sector + 32, anchor->base - anchor->shift);
    cow_put64(sector + 40, anchor->address - anchor->shift);
    cow_put64(sector + 48, anchor->slot[0] - anchor->shift);
    cow_put64(sector + 56, anchor->slot[1] - anchor->shift);
    cow_put64(sector + 64, anchor->end - anchor->shift);
    seal(sector);
}

bool cow_anchor_decode(cow_anchor *anchor, const uint8_t sector[COW_SECTOR], uint64_t address)
{
    if (!sealed(sector, anchor_magic) || cow_get32(sector + 8) != 1)
        return false;
    memcpy(anchor->id, sector + 16, 16);
    anchor->shift = 0;
    anchor->base = cow_get64(sector + 32);
    anchor->address = cow_get64(sector + 40);
    anchor->slot[0] = cow_get64(sector + 48);
    anchor->slot[1] = cow_get64(sector + 56);
    anchor->end = cow_get64(sector + 64);
    if (anchor->address % COW_SECTOR != 0 || anchor->base >= anchor->address || anchor->end >= COW_FILE_LIMIT ||
        anchor->slot[0] % COW_BLOCK != 0 || anchor->slot[0] < anchor->address + COW_SECTOR + FENCE_ROOM ||
        anchor->slot[1] != anchor->slot[0] + COW_BLOCK || anchor->end < anchor->slot[1] + COW_BLOCK)
        return false;
    shift(anchor, address - anchor->address);
    return anchor->base < address && anchor->base % COW_SECTOR == 0 && anchor->end < COW_FILE_LIMIT;
}

/* ---- slots ---- */

static void put_name(uint8_t *at, const cow_anchor *anchor, const cow_journal_extent_name *name)
{
    cow_put64(at, name->length == 0 ? name->address : name->address - anchor->shift);
    cow_put64(at + 8, name->length);
    memcpy(at + 16, name->hash, 16);
}

/* Is this a place where an extent can be? */
static bool get_name(cow_journal_extent_name *name, const cow_anchor *anchor, const uint8_t *at)
{
    name->address = cow_get64(at);
    name->length = cow_get64(at + 8);
    memcpy(name->hash, at + 16, 16);
    if (name->length == 0)
        return true;
    name->address += anchor->shift;
    return name->address % COW_SECTOR == 0 && name->length % COW_SECTOR == 0 && name->address >= anchor->end &&
           name->address < COW_FILE_LIMIT && name->length < COW_FILE_LIMIT;
}

void cow_journal_slot_encode(const cow_journal_slot *slot, const cow_anchor *anchor, uint8_t sector[COW_SECTOR])
{
    memset(sector, 0, COW_SECTOR);
    memcpy(sector, slot_magic, 8);
    memcpy(sector + 8, anchor->id, 16);
    cow_put64(sector + 24, slot->generation);
    cow_put64(sector + 32, slot->sequence);
    cow_put64(sector + 40, slot->applied);
    cow_put64(sector + 48, slot->end - anchor->shift);
    cow_put64(sector + 56, slot->extension);
    cow_put64(sector + 64, slot->protect - anchor->shift);
    put_name(sector + 72, anchor, &slot->extent);
    for (unsigned i = 0; i < COW_RESERVES; i++) {
        const cow_range *reserve = &slot->reserve[i];

        cow_put64(sector + 104 + 16 * i, reserve->length == 0 ? 0 : reserve->address - anchor->shift);
        cow_put64(sector + 112 + 16 * i, reserve->length);
    }
    memcpy(sector + SUPERBLOCK_AT, slot->superblock, sizeof slot->superblock);
    cow_superblock_move(sector + SUPERBLOCK_AT, anchor->base - anchor->shift);
    cow_put64(sector + 216, slot->unsynced);
    cow_put64(sector + 224, slot->withheld);
    seal(sector);
}

bool cow_journal_slot_decode(cow_journal_slot *slot, const cow_anchor *anchor, unsigned which,
                             const uint8_t sector[COW_SECTOR])
{
    if (!sealed(sector, slot_magic) || memcmp(sector + 8, anchor->id, 16) != 0)
        return false;
    slot->generation = cow_get64(sector + 24);
    slot->sequence = cow_get64(sector + 32);
    slot->applied = cow_get64(sector + 40);
    slot->end = cow_get64(sector + 48) + anchor->shift;
    slot->extension = cow_get64(sector + 56);
    slot->protect = cow_get64(sector + 64) + anchor->shift;
    if (!get_name(&slot->extent, anchor, sector + 72))
        return false;
    for (unsigned i = 0; i < COW_RESERVES; i++) {
        cow_range *reserve = &slot->reserve[i];

        *reserve = (cow_range){0, cow_get64(sector + 112 + 16 * i)};
        if (reserve->length == 0)
            continue;
        reserve->address = cow_get64(sector + 104 + 16 * i) + anchor->shift;
        if (reserve->address < anchor->end || reserve->address >= COW_FILE_LIMIT || reserve->length >= COW_FILE_LIMIT ||
            reserve->address % COW_SECTOR != 0)
            return false;
    }
    memcpy(slot->superblock, sector + SUPERBLOCK_AT, sizeof slot->superblock);
    cow_superblock_move(slot->superblock, anchor->base);
    slot->unsynced = cow_get64(sector + 216);
    slot->withheld = cow_get64(sector + 224);
    if (slot->withheld < COW_WITHHELD || slot->withheld >= 2 * COW_WITHHELD)
        slot->withheld = 0;
    return slot->generation % 2 == which && slot->generation > 0 && slot->generation < COW_FILE_LIMIT / 2 &&
           slot->sequence > 0 && slot->sequence < COW_FILE_LIMIT / 2 && slot->applied <= slot->sequence &&
           slot->end < COW_FILE_LIMIT && slot->end >= anchor->end && slot->protect >= slot->end &&
           slot->protect < COW_FILE_LIMIT && (slot->extent.length == 0) == (slot->applied == slot->sequence);
}

bool cow_journal_slot_decode_copies(cow_journal_slot *slot, const cow_anchor *anchor, unsigned which,
                                    const uint8_t copies[COW_JOURNAL_SLOT])
{
    cow_journal_slot other;
    bool first = cow_journal_slot_decode(slot, anchor, which, copies);

    /* torn between the two, the second is of the slot that was here before */
    if (cow_journal_slot_decode(&other, anchor, which, copies + COW_SECTOR) &&
        (!first || other.generation > slot->generation)) {
        *slot = other;
        return true;
    }
    return first;
}

/* ---- extents ---- */

typedef struct frame_list {
    cow_range *range;
    size_t count, capacity;
    uint64_t bytes;
    uint8_t *to; /* where the bytes go, in the second round */
} frame_list;

static int list_frame(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    frame_list *list = context;
    cow_range *last = list->count == 0 ? NULL : &list->range[list->count - 1];

    (void)bytes;
    list->bytes += size;
    if (last != NULL && last->address + last->length == address) {
        last->length += size;
        return 0;
    }
    if (COW_RESERVE(list->range, list->capacity, list->count, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for the record of a commit");
    list->range[list->count++] = (cow_range){address, size};
    return 0;
}

static int copy_frame(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    frame_list *list = context;

    (void)address;
    memcpy(list->to, bytes, size);
    list->to += size;
    return 0;
}

int cow_journal_extent_encode(const cow_journal_extent *extent, const cow_anchor *anchor, const cow_overlay *frames,
                              uint8_t **bytes, size_t *size)
{
    frame_list list = {0};
    uint64_t length;
    int status = -1;

    *bytes = NULL;
    if (cow_overlay_each(frames, list_frame, &list) < 0)
        goto done;
    length = EXTENT_HEADER + (uint64_t)list.count * FRAME_ENTRY + list.bytes;
    *size = (size_t)up(length, COW_SECTOR);
    if ((*bytes = calloc(1, *size)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the record of a commit");
        goto done;
    }
    memcpy(*bytes, extent_magic, 8);
    memcpy(*bytes + 8, anchor->id, 16);
    cow_put64(*bytes + 24, extent->sequence);
    cow_put64(*bytes + 32, extent->after);
    cow_put64(*bytes + 40, extent->end - anchor->shift);
    cow_put64(*bytes + 48, extent->extension);
    put_name(*bytes + 56, anchor, &extent->previous);
    cow_put64(*bytes + 88, list.count);
    cow_put64(*bytes + 96, list.bytes);
    for (size_t i = 0; i < list.count; i++) {
        cow_put64(*bytes + EXTENT_HEADER + FRAME_ENTRY * i, list.range[i].address - anchor->shift);
        cow_put64(*bytes + EXTENT_HEADER + FRAME_ENTRY * i + 8, list.range[i].length);
    }
    list.to = *bytes + EXTENT_HEADER + FRAME_ENTRY * list.count;
    status = cow_overlay_each(frames, copy_frame, &list);
done:
    free(list.range);
    if (status < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}

void cow_journal_extent_hash(const uint8_t *bytes, size_t size, uint8_t hash[16])
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes, size));
    memcpy(hash, canonical.digest, 16);
}

int cow_journal_extent_decode(cow_journal_extent *extent, const cow_anchor *anchor, const uint8_t *bytes, size_t size,
                              cow_overlay *frames)
{
    uint64_t count, total, sum = 0, behind = 0;
    uint8_t superblock[COW_SUPERBLOCK_MAX] = {0};
    const uint8_t *entry, *data;

    if (size < EXTENT_HEADER || memcmp(bytes, extent_magic, 8) != 0 || memcmp(bytes + 8, anchor->id, 16) != 0)
        return 1;
    extent->sequence = cow_get64(bytes + 24);
    extent->after = cow_get64(bytes + 32);
    extent->end = cow_get64(bytes + 40) + anchor->shift;
    extent->extension = cow_get64(bytes + 48);
    count = cow_get64(bytes + 88);
    total = cow_get64(bytes + 96);
    if (!get_name(&extent->previous, anchor, bytes + 56) || extent->after >= extent->sequence ||
        extent->end < anchor->end || extent->end >= COW_FILE_LIMIT || count > (size - EXTENT_HEADER) / FRAME_ENTRY ||
        total > size - EXTENT_HEADER - count * FRAME_ENTRY ||
        up(EXTENT_HEADER + count * FRAME_ENTRY + total, COW_SECTOR) != size)
        return 1;
    entry = bytes + EXTENT_HEADER;
    data = entry + count * FRAME_ENTRY;
    for (uint64_t i = 0; i < count; i++, entry += FRAME_ENTRY) {
        uint64_t address = cow_get64(entry) + anchor->shift, length = cow_get64(entry + 8);

        /* in order, apart, inside; and never over the records themselves */
        if (length == 0 || length > total - sum || address < behind || address >= COW_FILE_LIMIT ||
            (address < anchor->end && address + length > anchor->slot[0]) ||
            (address < anchor->address + COW_SECTOR && address + length > anchor->address))
            return 1;
        sum += length;
        behind = address + length;
    }
    if (sum != total)
        return 1;
    if (frames == NULL)
        return 0;
    entry = bytes + EXTENT_HEADER;
    for (uint64_t i = 0; i < count; i++, entry += FRAME_ENTRY) {
        uint64_t length = cow_get64(entry + 8);

        if (cow_overlay_write(frames, cow_get64(entry) + anchor->shift, data, (size_t)length) < 0)
            return -1;
        data += length;
    }
    if (anchor->shift == 0)
        return 0;
    cow_overlay_read(frames, anchor->base, superblock, sizeof superblock);
    if (!cow_superblock_whole(superblock))
        return 0;
    cow_superblock_move(superblock, anchor->base);
    return cow_overlay_write(frames, anchor->base, superblock, cow_superblock_size(superblock));
}
