/* A commit, and applying it. Numbers are the steps of the protocol: docs/architecture.md, "Journal".
 *
 *   W3 the extent: what differs from the newest state, with the fence in the superblock; written beyond everything;
 *      sync 1
 *   W4 the slot, in the block of the older one; sync 2; publish: the commit point
 *   W5 applying, where no reader pinned an older state and no HDF5 without h5cow reads the file: the flag in the
 *      superblock goes to the disk with sync 2, then the pages, sync, the clean superblock
 *   W6 a slot that says so; the next sync makes it durable, and the extents free
 */
#include "journal/internal.h"

#include "base/error.h"
#include "journal/locks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHAIN_MAX     64                   /* extents */
#define CHAIN_BYTES   ((uint64_t)64 << 20) /* beyond either, the chain becomes one extent */
#define PENDING_BYTES ((uint64_t)4 << 20)  /* beyond that, apply without waiting for the interval */
#define RESERVE_GAP   ((uint64_t)64 << 10) /* between two places for which room is made in one call */
#define FENCE_MAX     4096
#define HOLE          4096u /* bytes of a page */
#define GAP           16    /* unchanged bytes between two changed ones that cost less than a frame of their own */

int cow_journal_sync(cow_journal *journal)
{
    if (journal->options.sync != COW_SYNC_OFF && cow_disk_sync(&journal->disk) < 0)
        return -1;
    journal->dying_count = 0; /* the newest slot is on the disk now, and does not name them */
    return 0;
}

/* ---- what differs ---- */

typedef struct difference {
    const cow_journal *journal;
    cow_overlay *frames;
    uint64_t skip, skip_size; /* the superblock is dealt with apart */
    bool first;               /* the first commit: everything */
    bool found;
} difference;

/* From FROM on; SIZE: there is none. Most of what HDF5 writes is as it was. */
static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t from, size_t size)
{
    uint64_t x, y;

    for (; size - from >= sizeof x; from += sizeof x) {
        memcpy(&x, a + from, sizeof x);
        memcpy(&y, b + from, sizeof y);
        if (x != y)
            break;
    }
    while (from < size && a[from] == b[from])
        from++;
    return from;
}

static int differing(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    difference *d = context;
    uint8_t old[4096]; /* a run is never longer */
    size_t from = 0, to, last;

    if (address >= d->journal->end)
        return 0; /* cut off again */
    if (address + size > d->journal->end)
        size = (size_t)(d->journal->end - address);
    if (address < d->skip + d->skip_size && address + size > d->skip) {
        size_t before = address < d->skip ? (size_t)(d->skip - address) : 0;
        uint64_t behind = d->skip + d->skip_size;

        if (before > 0 && differing(context, address, bytes, before) < 0)
            return -1;
        return address + size > behind
                   ? differing(context, behind, bytes + (behind - address), (size_t)(address + size - behind))
                   : 0;
    }
    /* beyond the former end there is nothing to compare with: an extent may have been there */
    if (d->first || address + size > d->journal->committed_end) {
        d->found = true;
        return cow_overlay_write(d->frames, address, bytes, size);
    }
    if (cow_journal_read_committed(d->journal, address, old, size) < 0)
        return -1;
    while ((from = first_difference(bytes, old, from, size)) < size) {
        for (to = last = from + 1; to < size && to - last <= GAP; to++)
            if (bytes[to] != old[to])
                last = to + 1;
        d->found = true;
        if (cow_overlay_write(d->frames, address + from, bytes + from, last - from) < 0)
            return -1;
        from = last;
    }
    return 0;
}

/* The object header that the superblock on disk names, with the messages of the file's real extension. */
static int make_fence(const cow_journal *journal, uint64_t extension, uint8_t *fence, size_t room, size_t *size)
{
    uint8_t head[32], *source = NULL;
    size_t length = 0;
    int status = -1;

    if (extension != COW_NOWHERE) {
        if (extension >= COW_FILE_LIMIT ||
            cow_journal_read_raw(journal, journal->anchor.base + extension, head, sizeof head) < 0)
            return -1;
        if ((length = cow_fence_source_size(head, sizeof head)) == 0)
            return cow_error(COW_UNSUPPORTED, "%s: the superblock's extension has a form that h5cow does not know",
                             journal->name);
        if ((source = malloc(length < 32 ? 32 : length)) == NULL)
            return cow_error(COW_MEMORY, "%s: no memory for a commit", journal->name);
        if (cow_journal_read_raw(journal, journal->anchor.base + extension, source, length) < 0)
            goto done;
    }
    *size = cow_fence_make(fence, room, source);
    if (*size == 0) {
        cow_error(COW_UNSUPPORTED, "%s: the superblock's extension is damaged or too large", journal->name);
        goto done;
    }
    status = 0;
done:
    free(source);
    return status;
}

/* What the next state has other than the newest one. *DIFFERS false: nothing. The superblock is always among the
 * frames. */
static int collect(cow_journal *journal, bool closing, cow_overlay *frames, uint64_t *extension, bool *differs)
{
    uint64_t base = journal->anchor.base, fence_at = journal->anchor.address + COW_SECTOR;
    uint8_t superblock[COW_SUPERBLOCK_MAX], old[COW_SUPERBLOCK_MAX], fence[FENCE_MAX], old_fence[FENCE_MAX];
    size_t length, fence_size = 0, room = (size_t)(journal->anchor.slot[0] - fence_at);
    difference d = {.journal = journal, .frames = frames, .skip = base, .first = journal->slot.sequence == 0};
    bool super, only_end;

    *differs = false;
    /* HDF5 gave up creating the file, and takes back what it allocated */
    if (journal->slot.sequence == 0 && journal->end < journal->anchor.end)
        return 0;
    if (!journal->placed || cow_journal_read_raw(journal, base, superblock, sizeof superblock) < 0)
        return journal->placed ? -1 : 0;
    if ((length = cow_superblock_size(superblock)) == 0) {
        if (journal->slot.sequence == 0 && !cow_superblock_signature(superblock))
            return 0; /* a new file without a superblock is nothing yet */
        return cow_error(COW_UNSUPPORTED,
                         "%s: the superblock is not of version 3 with addresses of 4 or 8 bytes; set the library "
                         "version bounds to 1.10 or later",
                         journal->name);
    }
    *extension = cow_superblock_extension(superblock);
    if (*extension == cow_journal_fence(journal))
        *extension = journal->extension;
    if (cow_superblock_end(superblock) < journal->beyond)
        cow_superblock_set_end(superblock, journal->beyond);
    cow_superblock_set(superblock, cow_journal_fence(journal), false);
    if (make_fence(journal, *extension, fence, room < sizeof fence ? room : sizeof fence, &fence_size) < 0 ||
        cow_journal_read_committed(journal, base, old, length) < 0 ||
        cow_journal_read_committed(journal, fence_at, old_fence, fence_size) < 0)
        return -1;
    if (cow_superblock_size(old) == length)
        cow_superblock_set(old, cow_superblock_extension(old), false); /* a flag is no difference */
    super = d.first || memcmp(superblock, old, length) != 0;
    only_end = super && !d.first && cow_superblock_same_but_end(superblock, old) &&
               cow_superblock_end(superblock) <= cow_superblock_end(old);
    d.skip_size = length;
    if (cow_overlay_each(journal->overlay, differing, &d) < 0)
        return -1;
    if ((d.first || memcmp(fence, old_fence, fence_size) != 0)) {
        d.found = true;
        if (cow_overlay_write(frames, fence_at, fence, fence_size) < 0)
            return -1;
    }
    /* Space at the end that HDF5 lets go of while it closes a file is not worth a commit. */
    *differs = d.found || (super && !(closing && only_end));
    return cow_overlay_write(frames, base, superblock, length);
}

/* ---- is the file still ours? ---- */

int cow_journal_check_file(cow_journal *journal)
{
    uint8_t copies[COW_JOURNAL_SLOT];
    struct stat about, path;
    cow_journal_slot slot;
    unsigned which = journal->slot.generation % 2;

    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    if (journal->disk.calls->stat(journal->disk.calls->context, journal->name, &path) == 0 &&
        (path.st_dev != journal->device || path.st_ino != journal->inode))
        return cow_error(COW_IO, "%s: somebody put another file in the place of the one that is open", journal->name);
    if ((uint64_t)about.st_size < cow_disk_written(&journal->disk, journal->size))
        return cow_error(COW_IO, "%s: somebody cut the file while it was open", journal->name);
    journal->unchecked = 0;
    if (journal->slot.sequence == 0)
        return cow_journal_is_begun(journal)
                   ? 0
                   : cow_error(COW_IO, "%s: somebody changed the file while it was open", journal->name);
    if (cow_disk_read(&journal->disk, journal->anchor.slot[which], copies, sizeof copies) < 0)
        return -1;
    if (!cow_journal_slot_decode_copies(&slot, &journal->anchor, which, copies) ||
        slot.generation != journal->slot.generation)
        return cow_error(COW_CORRUPT, "%s: somebody changed the file while it was open", journal->name);
    return 0;
}

/* ---- extents ---- */

static bool frames_in_chain(const cow_journal *journal, const cow_overlay *frames)
{
    for (size_t i = 0; i < journal->pending_count; i++)
        if (cow_overlay_touches(frames, journal->pending[i].name.address, journal->pending[i].name.length))
            return true;
    return false;
}

/* Without the first SKIPPED extents. */
static uint64_t chain_bytes(const cow_journal *journal, size_t skipped)
{
    uint64_t bytes = 0;

    for (size_t i = skipped; i < journal->pending_count; i++)
        bytes += journal->pending[i].name.length;
    return bytes;
}

/* Is the chain to become one extent? When the first one is large, not for each commit anew: what came after it counts. */
static bool chain_is_long(const cow_journal *journal)
{
    uint64_t after = chain_bytes(journal, 1);

    return journal->pending_count >= CHAIN_MAX || (after > CHAIN_BYTES && after > journal->pending[0].name.length);
}

/* A place for an extent: the smallest reserve that has room, or the first gap beyond everything of HDF5's. */
static uint64_t place_extent(const cow_journal *journal, uint64_t length)
{
    uint64_t at = journal->protect > journal->end ? journal->protect : journal->end, behind;
    const cow_range *best = NULL;

    for (unsigned i = 0; i < COW_RESERVES; i++) {
        const cow_range *reserve = &journal->slot.reserve[i];
        if (reserve->length >= length && (best == NULL || reserve->length < best->length) &&
            !cow_journal_in_use(journal, reserve->address, length, &behind))
            best = reserve;
    }
    if (best != NULL)
        return best->address;
    at = (at + COW_SECTOR - 1) / COW_SECTOR * COW_SECTOR;
    for (bool moved = true; moved;) {
        moved = false;
        while (cow_journal_in_use(journal, at, length, &behind)) {
            at = (behind + COW_SECTOR - 1) / COW_SECTOR * COW_SECTOR;
            moved = true;
        }
        for (unsigned i = 0; i < COW_RESERVES; i++) {
            const cow_range *reserve = &journal->slot.reserve[i];
            if (reserve->length > 0 && at < reserve->address + reserve->length && reserve->address < at + length) {
                at = (reserve->address + reserve->length + COW_SECTOR - 1) / COW_SECTOR * COW_SECTOR;
                moved = true;
            }
        }
    }
    return at;
}

/* Has the file blocks for all bytes before END? A call that asks for them costs more than to write a small commit. */
static bool has_room(const cow_journal *journal, const struct stat *about, uint64_t end)
{
    const uint64_t size = (uint64_t)about->st_size;

    return size >= end && (uint64_t)about->st_blocks * 512 >= size + cow_journal_ahead_of(journal, size);
}

static int make_room(const cow_journal *journal, uint64_t address, uint64_t size)
{
    struct stat about;

    if (cow_journal_is_ahead(journal, address, size))
        return 0;
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    return has_room(journal, &about, address + size) ? 0 : cow_disk_reserve(&journal->disk, address, size);
}

static int put_extent(cow_journal *journal, const cow_journal_extent *extent, const cow_overlay *frames,
                      cow_journal_extent_name *name)
{
    uint8_t *bytes, anchor[COW_SECTOR];
    size_t size;
    int status = -1;

    if (cow_journal_extent_encode(extent, &journal->anchor, frames, &bytes, &size) < 0)
        return -1;
    name->address = place_extent(journal, size);
    name->length = size;
    cow_journal_extent_hash(bytes, size, name->hash);
    if (make_room(journal, name->address, size) < 0 || cow_disk_write(&journal->disk, name->address, bytes, size) < 0)
        goto done;
    if (name->address + size > journal->size)
        journal->size = name->address + size;
    if (journal->slot.sequence == 0) {
        cow_anchor_encode(&journal->anchor, anchor);
        if (cow_disk_write(&journal->disk, journal->anchor.address, anchor, sizeof anchor) < 0)
            goto done;
    }
    status = 0;
done:
    free(bytes);
    return status;
}

/* HDF5 may end its address space behind the last byte that it wrote. */
static int reach_end(cow_journal *journal, uint64_t end)
{
    if (journal->size >= end)
        return 0;
    if (cow_disk_truncate(&journal->disk, end) < 0)
        return -1;
    journal->size = end;
    return 0;
}

/* ---- room for applying ---- */

typedef struct reserving {
    const cow_disk *disk;
    uint64_t from, end;
} reserving;

static int reserve_run(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    reserving *r = context;
    int status = 0;

    (void)bytes;
    if (address > r->end + RESERVE_GAP) {
        if (r->end > r->from)
            status = cow_disk_reserve(r->disk, r->from, r->end - r->from);
        r->from = address;
    }
    r->end = address + size;
    return status;
}

/* A disk that is full must not stop the applying of what was reported as committed. Only a file with holes, or one that
 * ends before the last frame, can need more room. */
static int reserve_frames(const cow_journal *journal, const cow_overlay *frames, uint64_t end)
{
    reserving r = {.disk = &journal->disk};
    struct stat about;

    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    if (has_room(journal, &about, end))
        return 0;
    if (cow_overlay_each(frames, reserve_run, &r) < 0)
        return -1;
    return r.end > r.from ? cow_disk_reserve(&journal->disk, r.from, r.end - r.from) : 0;
}

static int add_dying(cow_journal *journal, const cow_journal_extent_name *name)
{
    cow_range *larger = realloc(journal->dying, (journal->dying_count + 1) * sizeof *larger);

    if (larger == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a commit", journal->name);
    journal->dying = larger;
    larger[journal->dying_count++] = (cow_range){name->address, name->length};
    return 0;
}

static int write_slot(cow_journal *journal, const cow_journal_slot *slot)
{
    uint8_t copies[COW_JOURNAL_SLOT];

    cow_journal_slot_encode(slot, &journal->anchor, copies);
    memcpy(copies + COW_SECTOR, copies, COW_SECTOR);
    return cow_disk_write(&journal->disk, journal->anchor.slot[slot->generation % 2], copies, sizeof copies);
}

/* A slot that says "applied" is not synced when it is written. If a sync failed since, the system may hold it in memory
 * and never write it, while the commit to come overwrites the other slot, which is the only one that the disk has. So it
 * is written once more, the same bytes, for the sync to come. Where that tears it the other one still says the same. */
static int write_slot_again(cow_journal *journal)
{
    uint64_t address = journal->anchor.slot[journal->slot.generation % 2];
    uint8_t copies[COW_JOURNAL_SLOT];

    if (cow_disk_read(&journal->disk, address, copies, sizeof copies) < 0)
        return -1;
    return cow_disk_write(&journal->disk, address, copies, sizeof copies);
}

/* The newest slot is another opening's. It may not be on the disk yet, and then the other one is needed (I3); or its
 * sync failed unheard, and no sync brings it there any more. The new one is durable with the next sync. */
static int renew_slot(cow_journal *journal)
{
    cow_journal_slot slot = journal->slot;

    if (journal->renewed)
        return 0;
    slot.generation++;
    if (cow_journal_sync(journal) < 0 || write_slot(journal, &slot) < 0)
        return -1;
    journal->slot = slot;
    journal->renewed = true;
    return 0;
}

int cow_journal_put_slot(cow_journal *journal)
{
    journal->renewed = false;
    return renew_slot(journal) < 0 || cow_journal_sync(journal) < 0 ? -1 : 0;
}

/* ---- applying ---- */

typedef struct applying {
    uint64_t target;                    /* 0: not applying */
    uint8_t before[COW_SUPERBLOCK_MAX]; /* the superblock on disk, without flag */
    size_t length;                      /* 0: the file has none yet */
} applying;

/* The newest pending state that no pin forbids; 0: none. ALSO: one that is about to be added, or 0; INSTEAD: in place of
 * those there are. */
static uint64_t apply_target(const cow_journal *journal, uint64_t also, bool instead)
{
    uint64_t pin, target = 0;

    if (cow_lock_lowest_pin(&journal->lock, &pin) < 0) {
        if (!cow_lock_excused())
            return 0;
        pin = COW_NOWHERE; /* without locks there are no pins */
    }
    if (instead || (also > 0 && pin >= also))
        return pin >= also ? also : 0;
    for (size_t i = 0; i < journal->pending_count; i++)
        if (journal->pending[i].extent.sequence <= pin)
            target = journal->pending[i].extent.sequence;
    return target;
}

/* The flag on the superblock, to be durable with the next sync. Not being able to is no failure: a->target is 0. */
static int begin_apply(cow_journal *journal, uint64_t target, applying *a)
{
    uint8_t flagged[COW_SUPERBLOCK_MAX];

    a->target = 0;
    a->length = 0;
    if (target == 0 || !cow_lock_against_stock(&journal->lock))
        return 0;
    if (cow_disk_read(&journal->disk, journal->anchor.base, a->before, sizeof a->before) < 0)
        goto failed;
    /* where it is torn, nobody can open the file without h5cow anyway */
    if (cow_superblock_whole(a->before)) {
        a->length = cow_superblock_size(a->before);
        cow_superblock_set(a->before, cow_journal_fence(journal), false);
        memcpy(flagged, a->before, a->length);
        cow_superblock_set(flagged, cow_journal_fence(journal), true);
        if (cow_disk_write(&journal->disk, journal->anchor.base, flagged, a->length) < 0)
            goto failed;
    }
    a->target = target;
    return 0;
failed:
    if (a->length > 0) /* a part of it may have arrived */
        cow_disk_write(&journal->disk, journal->anchor.base, a->before, a->length);
    cow_lock_against_stock_stop(&journal->lock);
    return -1;
}

static int give_up_apply(cow_journal *journal, applying *a)
{
    int status = 0;

    if (a->target == 0)
        return 0;
    if (a->length > 0)
        status = cow_disk_write(&journal->disk, journal->anchor.base, a->before, a->length);
    cow_lock_against_stock_stop(&journal->lock);
    a->target = 0;
    return status;
}

/* The bytes of commits up to TARGET, into the file. The superblock goes with them, flagged; then clean. */
static int write_pages(cow_journal *journal, uint64_t target, cow_overlay *frames)
{
    uint8_t superblock[COW_SUPERBLOCK_MAX] = {0};
    uint64_t end = journal->committed_end;
    struct stat about;
    size_t length;

    for (size_t i = 0; i < journal->pending_count && journal->pending[i].extent.sequence <= target; i++) {
        if (cow_overlay_merge(frames, journal->pending[i].frames) < 0)
            return -1;
        end = journal->pending[i].extent.end;
    }
    cow_overlay_read(frames, journal->anchor.base, superblock, sizeof superblock);
    if ((length = cow_superblock_size(superblock)) == 0)
        return cow_error(COW_CORRUPT, "%s: a commit without a superblock", journal->name);
    cow_superblock_set(superblock, cow_journal_fence(journal), true);
    if (cow_disk_about(&journal->disk, &about) < 0 || /* HDF5 refuses a file that ends too early */
        ((uint64_t)about.st_size < end && cow_disk_truncate(&journal->disk, end) < 0) ||
        cow_overlay_write(frames, journal->anchor.base, superblock, length) < 0 ||
        cow_journal_write_frames(journal, frames) < 0 ||
        (journal->options.sync != COW_SYNC_OFF && cow_disk_sync(&journal->disk) < 0))
        return -1;
    if (end > journal->size)
        journal->size = end;
    cow_superblock_set(superblock, cow_journal_fence(journal), false);
    return cow_disk_write(&journal->disk, journal->anchor.base, superblock, length);
}

/* What a reader without h5cow, or an older pin, may reach. */
static void lower_protection(cow_journal *journal)
{
    uint64_t pin;

    if (journal->pending_count == 0 && cow_lock_lowest_pin(&journal->lock, &pin) == 0 && pin >= journal->slot.sequence)
        journal->protect = journal->committed_end;
}

static int retire(cow_journal *journal, uint64_t target)
{
    cow_journal_slot slot = journal->slot;
    size_t done = 0;

    for (; done < journal->pending_count && journal->pending[done].extent.sequence <= target; done++)
        if (add_dying(journal, &journal->pending[done].name) < 0)
            return -1;
    for (size_t i = 0; i < done; i++)
        cow_overlay_free(journal->pending[i].frames);
    memmove(journal->pending, journal->pending + done, (journal->pending_count - done) * sizeof *journal->pending);
    journal->pending_count -= done;
    journal->slot.applied = slot.applied = target;
    if (cow_journal_merge(journal) < 0)
        return -1;
    lower_protection(journal);
    slot.generation++;
    slot.protect = journal->protect > slot.end ? journal->protect : slot.end;
    if (target == slot.sequence)
        memset(&slot.extent, 0, sizeof slot.extent);
    if (write_slot(journal, &slot) < 0)
        return -1;
    journal->slot = slot;
    return 0;
}

/* After the sync that made the flag durable. The commits stand whatever happens here; an error only stops this opening.
 */
static int finish_apply(cow_journal *journal, applying *a)
{
    cow_overlay *frames = NULL;
    uint64_t pin;
    int status = -1;

    if (a->target == 0)
        return 0;
    /* A reader that came while the commit was not published yet has pinned an older state. It pins before it looks for
     * newer slots, we publish before we look for pins: one of us sees the other. */
    if (cow_lock_lowest_pin(&journal->lock, &pin) == 0 && pin < a->target)
        return give_up_apply(journal, a);
    journal->phase = COW_JOURNAL_APPLYING;
    if ((frames = cow_overlay_new()) != NULL && write_pages(journal, a->target, frames) == 0)
        status = 0;
    cow_lock_against_stock_stop(&journal->lock);
    if (status == 0 && (status = retire(journal, a->target)) == 0)
        journal->last_apply = cow_milliseconds();
    cow_overlay_free(frames);
    a->target = 0;
    return status;
}

static bool apply_now(const cow_journal *journal, bool closing)
{
    return closing || journal->slot.sequence == 0 || journal->options.sync == COW_SYNC_OFF ||
           cow_milliseconds() - journal->last_apply >= journal->options.apply_interval ||
           journal->pending_count >= CHAIN_MAX / 2 || chain_bytes(journal, 0) > PENDING_BYTES;
}

/* ---- the commit ---- */

/* The slot may or may not reach the disk by itself: it must not come up later as a commit that was reported failed. */
static int void_slot(cow_journal *journal, uint64_t generation, applying *a)
{
    static const uint8_t nothing[COW_JOURNAL_SLOT];
    cow_error_box cause;
    int status;

    cow_error_take(&cause);
    status = cow_disk_write(&journal->disk, journal->anchor.slot[generation % 2], nothing, sizeof nothing);
    if (give_up_apply(journal, a) < 0)
        status = -1;
    if (status == 0 && journal->options.sync != COW_SYNC_OFF)
        status = cow_disk_sync(&journal->disk);
    cow_error_clear();
    cow_error_give(&cause);
    if (status < 0)
        return cow_journal_fail(journal, COW_JOURNAL_UNKNOWN,
                                "it is not known whether this commit happened: the disk failed while it was written "
                                "and again while it was taken back; open the file again to see");
    return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "nothing was committed; the file is as it was");
}

static int push_pending(cow_journal *journal, const cow_journal_extent *extent, const cow_journal_extent_name *name,
                        cow_overlay *frames, bool whole)
{
    cow_pending *larger;

    for (size_t i = 0; whole && i < journal->pending_count; i++)
        if (add_dying(journal, &journal->pending[i].name) < 0)
            return -1;
    if ((larger = realloc(journal->pending, (journal->pending_count + 1) * sizeof *larger)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a commit", journal->name);
    journal->pending = larger;
    if (whole) {
        for (size_t i = 0; i < journal->pending_count; i++)
            cow_overlay_free(larger[i].frames);
        journal->pending_count = 0;
    }
    larger[journal->pending_count++] = (cow_pending){*extent, *name, frames};
    return 0;
}

/* The slot that names EXTENT, which NAME is; MERGED: all that is not applied then. */
static cow_journal_slot next_slot(cow_journal *journal, const cow_journal_extent *extent,
                                  const cow_journal_extent_name *name, const cow_overlay *merged)
{
    cow_journal_slot slot;

    cow_withhold_begin(journal);
    slot = journal->slot;
    slot.generation++;
    slot.sequence = extent->sequence;
    slot.end = extent->end;
    slot.extension = extent->extension;
    if (journal->protect < slot.end)
        journal->protect = slot.end;
    slot.protect = journal->protect;
    slot.extent = *name;
    slot.unsynced = journal->options.sync == COW_SYNC_OFF;
    memset(slot.superblock, 0, sizeof slot.superblock);
    cow_overlay_read(merged, journal->anchor.base, slot.superblock, sizeof slot.superblock);
    return slot;
}

/* FRAMES bring the newest state to EXTENT->sequence; taken over. */
static int put_commit(cow_journal *journal, cow_journal_extent *extent, cow_overlay *frames, bool apply)
{
    cow_journal_slot slot;
    bool whole =
        journal->pending_count > 0 && (!journal->trusted || chain_is_long(journal) || frames_in_chain(journal, frames));
    bool second = journal->options.sync == COW_SYNC_FULL || (journal->options.sync == COW_SYNC_NORMAL && apply);
    cow_overlay *all = frames, *merged = NULL;
    applying a = {0};
    cow_journal_extent_name name;

    if (cow_disk_settle(&journal->disk, 0, UINT64_MAX) < 0 ||
        (journal->pending_count > 0 && journal->trusted && renew_slot(journal) < 0))
        goto early;
    if ((merged = cow_overlay_new()) == NULL || cow_overlay_merge(merged, journal->merged) < 0 ||
        cow_overlay_merge(merged, frames) < 0)
        goto early;
    if (whole) {
        if ((all = cow_overlay_new()) == NULL || cow_overlay_merge(all, merged) < 0)
            goto early;
        cow_overlay_free(frames);
        frames = all;
        extent->after = journal->slot.applied;
    } else if (journal->pending_count > 0)
        extent->previous = journal->pending[journal->pending_count - 1].name;
    if (put_extent(journal, extent, all, &name) < 0 || reach_end(journal, extent->end) < 0 ||
        reserve_frames(journal, all, extent->end) < 0 ||
        (journal->twice && !journal->renewed && write_slot_again(journal) < 0) || cow_journal_sync(journal) < 0 ||
        (journal->slot.sequence == 0 && journal->options.sync != COW_SYNC_OFF &&
         cow_disk_sync_folder(journal->disk.calls, journal->name) < 0))
        goto early;
    journal->phase = COW_JOURNAL_SEALED;
    slot = next_slot(journal, extent, &name, merged);
    if (second && cow_lock_unpublished(&journal->lock, slot.generation) < 0)
        goto early;
    /* from here on the slot may be on the disk */
    if (write_slot(journal, &slot) < 0 ||
        (apply && begin_apply(journal, apply_target(journal, extent->sequence, whole), &a) < 0) ||
        push_pending(journal, extent, &name, frames, whole) < 0 || (second && cow_journal_sync(journal) < 0)) {
        bool pushed = journal->pending_count > 0 && journal->pending[journal->pending_count - 1].frames == frames;
        int status = void_slot(journal, slot.generation, &a);

        cow_lock_publish(&journal->lock, slot.generation);
        if (pushed)
            journal->pending_count--;
        cow_overlay_free(frames);
        cow_overlay_free(merged);
        return status;
    }
    cow_lock_publish(&journal->lock, slot.generation);
    journal->phase = COW_JOURNAL_COMMITTED;
    journal->slot = slot;
    journal->trusted = journal->renewed = true;
    journal->committed_end = extent->end;
    journal->extension = extent->extension;
    journal->direct = false;
    cow_overlay_free(journal->merged);
    journal->merged = merged;
    cow_overlay_clear(journal->overlay);
    if (finish_apply(journal, &a) < 0) {
        cow_journal_fail(
            journal, COW_JOURNAL_ABORTED,
            "the commit is safe, but could not be applied; HDF5 without h5cow will not open the file until "
            "it was opened for writing with h5cow");
        cow_error_clear(); /* the commit itself happened; the next one reports it */
        return 0;
    }
    journal->phase = COW_JOURNAL_IDLE;
    cow_journal_assert_state(journal);
    return 0;
early:
    if (all != frames)
        cow_overlay_free(all);
    cow_overlay_free(frames);
    cow_overlay_free(merged);
    return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "nothing was committed; the file is as it was");
}

void cow_journal_start_sync(cow_journal *journal)
{
    if (journal->options.sync != COW_SYNC_OFF && cow_journal_writer(journal) && cow_journal_ours(journal) &&
        !cow_journal_sticky(journal))
        cow_disk_start_sync(&journal->disk, journal->bulk, journal->bulk_end);
    journal->bulk = journal->bulk_end = 0;
}

int cow_journal_check(cow_journal *journal)
{
    if (!cow_journal_writer(journal) || !cow_journal_ours(journal) || cow_journal_sticky(journal) ||
        journal->borrowed || cow_journal_check_file(journal) == 0)
        return 0;
    return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "nothing was committed");
}

int cow_journal_commit(cow_journal *journal, bool closing)
{
    cow_journal_extent extent = {0};
    cow_overlay *frames;
    bool differs;

    if (!cow_journal_writer(journal) || !cow_journal_ours(journal))
        return 0;
    if (cow_journal_sticky(journal))
        return cow_error(COW_IO,
                         "%s: nothing more is committed since an earlier failure (%s); close the file and open "
                         "it again",
                         journal->name, journal->failure);
    cow_journal_assert_state(journal);
    if (journal->phase == COW_JOURNAL_IDLE)
        return closing ? cow_journal_apply(journal) : 0;
    if (cow_journal_check(journal) < 0)
        return -1;
    if ((frames = cow_overlay_new()) == NULL)
        return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "nothing was committed");
    if (collect(journal, closing, frames, &extent.extension, &differs) < 0) {
        cow_overlay_free(frames);
        return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "nothing was committed; the file is as it was");
    }
    if (!differs) {
        cow_overlay_free(frames);
        if (journal->slot.sequence == 0)
            return 0;
        if (closing || journal->end == journal->committed_end) {
            cow_overlay_clear(journal->overlay);
            journal->phase = COW_JOURNAL_IDLE;
            journal->end = journal->committed_end;
        }
        return closing ? cow_journal_apply(journal) : 0;
    }
    extent.sequence = journal->slot.sequence + 1;
    extent.after = journal->slot.sequence;
    extent.end = journal->end;
    if (put_commit(journal, &extent, frames, apply_now(journal, closing)) < 0)
        return -1;
    cow_label_committed(journal);
    if (!journal->committed) {
        cow_withhold(journal); /* after the first one: nobody is kept from a file that holds nothing yet */
        if (cow_withhold_fails(journal) && cow_journal_put_slot(journal) < 0)
            cow_error_clear(); /* the next commit says it */
    }
    journal->committed = true;
    return 0;
}

int cow_journal_apply(cow_journal *journal)
{
    uint64_t target;
    applying a;

    if (journal->pending_count == 0 || (target = apply_target(journal, 0, false)) == 0)
        return 0;
    if (!journal->trusted)
        return cow_journal_recommit(journal);
    if (!cow_lock_against_stock(&journal->lock))
        return 0; /* not worth beginning */
    if (renew_slot(journal) < 0 || begin_apply(journal, target, &a) < 0) {
        cow_lock_against_stock_stop(&journal->lock);
        return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "a commit could not be applied");
    }
    if (a.target == 0)
        return 0;
    if (cow_journal_sync(journal) < 0 || finish_apply(journal, &a) < 0) {
        if (a.target != 0)
            cow_lock_against_stock_stop(&journal->lock);
        return cow_journal_fail(journal, COW_JOURNAL_ABORTED, "a commit could not be applied");
    }
    journal->phase = COW_JOURNAL_IDLE;
    return 0;
}

int cow_journal_recommit(cow_journal *journal)
{
    cow_journal_extent extent = {.sequence = journal->slot.sequence,
                                 .after = journal->slot.applied,
                                 .end = journal->committed_end,
                                 .extension = journal->extension};
    cow_overlay *frames;

    /* only worth it when it can be applied at once */
    if (apply_target(journal, 0, false) != journal->slot.sequence)
        return 0;
    if (!cow_lock_against_stock(&journal->lock))
        return 0;
    cow_lock_against_stock_stop(&journal->lock);
    if (journal->trusted)
        return cow_journal_apply(journal);
    if ((frames = cow_overlay_new()) == NULL)
        return -1;
    return put_commit(journal, &extent, frames, true);
}

uint64_t cow_journal_holes(cow_journal *journal, const cow_place *place, size_t count)
{
    struct stat before, after;
    uint64_t behind;

    if (journal->phase != COW_JOURNAL_IDLE || !cow_journal_ours(journal) || journal->pending_count > 0 ||
        journal->slot.applied != journal->slot.sequence)
        return 0;
    /* HDF5 counts addresses of chunks from the start of the file or from the superblock, from version to version */
    if (journal->anchor.base != 0)
        return 0;
    /* What the disk has must be the state in which nothing is needed there. The extents that the slot before names stay, as
     * without this sync: whoever opens the file next writes the newest slot once more, and may tear it. */
    if ((journal->options.sync != COW_SYNC_OFF && cow_disk_sync(&journal->disk) < 0) ||
        cow_disk_about(&journal->disk, &before) < 0) {
        cow_error_clear(); /* all is committed, and takes more space than it must */
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t from = (place[i].address + HOLE - 1) / HOLE * HOLE, to = place[i].address + place[i].size;

        to = (to < journal->committed_end ? to : journal->committed_end) / HOLE * HOLE;
        if (from < to && !cow_journal_in_use(journal, from, to - from, &behind))
            cow_disk_hole(&journal->disk, from, to - from);
    }
    if (cow_disk_about(&journal->disk, &after) < 0) {
        cow_error_clear();
        return 0;
    }
    return after.st_blocks < before.st_blocks ? (uint64_t)(before.st_blocks - after.st_blocks) * 512 : 0;
}

/* The file holds nothing, and nobody wants it. */
static void give_back_name(const cow_journal *journal)
{
    const cow_disk_calls *calls = journal->disk.calls;
    struct stat path;

    if (calls->stat(calls->context, journal->name, &path) < 0 || path.st_dev != journal->device ||
        path.st_ino != journal->inode)
        return;
    if (journal->instead != NULL && calls->rename != NULL)
        calls->rename(calls->context, journal->instead, journal->name);
    else if (journal->made && calls->unlink != NULL)
        calls->unlink(calls->context, journal->name);
}

void cow_journal_trim(cow_journal *journal)
{
    uint64_t need = journal->protect;
    struct stat about;

    if (cow_disk_about(&journal->disk, &about) < 0)
        return;
    if (journal->slot.sequence == 0) { /* nothing was ever committed: leave nothing behind */
        if (journal->phase == COW_JOURNAL_UNKNOWN || !cow_journal_is_begun(journal))
            return;
        if (about.st_size > 0)
            cow_disk_truncate(&journal->disk, 0);
        if (journal->abandoned)
            give_back_name(journal);
        return;
    }
    if (cow_journal_sticky(journal) && !journal->abandoned)
        return;
    for (size_t i = 0; i < journal->pending_count; i++)
        if (journal->pending[i].name.address + journal->pending[i].name.length > need)
            need = journal->pending[i].name.address + journal->pending[i].name.length;
    for (size_t i = 0; i < journal->dying_count; i++)
        if (journal->dying[i].address + journal->dying[i].length > need)
            need = journal->dying[i].address + journal->dying[i].length;
    if ((uint64_t)about.st_size > need && cow_disk_truncate(&journal->disk, need) == 0)
        journal->size = need;
}
