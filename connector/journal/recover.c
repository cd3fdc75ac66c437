/* Finding the newest committed state of a file that exists: after a crash, beside a live writer, or just so.
 *
 *   V1 the newer valid slot whose chain of extents is whole. A crash cannot leave a valid slot with a damaged chain
 *      (I2), unless syncing was off: then the older slot counts, if no applying had begun. Else stop, change nothing.
 *   V2 to V4 a writer applies the pending commits, and notes that. A slot is written only after its extents were synced
 *      (I2), so they are on the disk; the slot itself is written anew, in the other block, before it is relied on: its
 *      own sync may have failed. Where the slot was written with syncing off, the extents are written anew as well, as
 *      one: cow_journal_recommit. Where a reader is in the way they stay pending, and further commits follow in the
 *      chain.
 *   R1 a reader pins the newest published state and then looks again; R2 it takes the frames into memory, so that
 *      nobody needs to keep the extents for it.
 */
#include "journal/internal.h"

#include "base/error.h"
#include "journal/locks.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRIES 200

/* ---- where the anchor is ---- */

/* The first bytes of the file, where superblock and anchor nearly always are. */
typedef struct front {
    uint8_t bytes[4096];
    bool read; /* false: it cannot be read at once */
} front;

static void read_front(const cow_disk *disk, front *f)
{
    f->read = cow_disk_read(disk, 0, f->bytes, sizeof f->bytes) == 0;
    if (!f->read)
        cow_error_clear();
}

static int read_by_front(const cow_disk *disk, const front *f, uint64_t address, void *bytes, size_t size)
{
    if (!f->read || address > sizeof f->bytes || size > sizeof f->bytes - address)
        return cow_disk_read(disk, address, bytes, size);
    memcpy(bytes, f->bytes + address, size);
    return 0;
}

/* 1, 0, -1: it cannot be read. */
static int anchor_at(const cow_disk *disk, const front *f, uint64_t size, uint64_t address, uint64_t base,
                     cow_anchor *anchor)
{
    uint8_t sector[COW_SECTOR];

    if (address + COW_SECTOR > size)
        return 0;
    if (read_by_front(disk, f, address, sector, sizeof sector) < 0)
        return -1;
    return cow_anchor_decode(anchor, sector, address) && anchor->base == base;
}

int cow_anchor_from_slots(const cow_disk *disk, uint64_t base, uint64_t address, cow_anchor *anchor)
{
    /* where the superblock was when the slots got their places: of that only the remainder by their size counts */
    static const uint64_t origins[] = {0, 512, 1024, 2048};
    uint8_t sector[COW_SECTOR];
    int status = 0;

    for (unsigned o = 0; o < sizeof origins / sizeof *origins; o++) {
        cow_anchor_guess(anchor, base, address, origins[o]);
        for (unsigned i = 0; i < 4; i++) { /* two copies of each */
            if (cow_disk_read(disk, anchor->slot[i / 2] + i % 2 * COW_SECTOR, sector, sizeof sector) < 0)
                status = -1;
            else if (cow_anchor_from_slot(anchor, sector)) {
                if (status < 0)
                    cow_error_clear();
                return 1;
            }
        }
    }
    cow_anchor_guess(anchor, base, address, base);
    return status;
}

/* The superblock leads to a fence, but the record of the anchor before it is damaged. 1, 0, -1. */
static int rebuilt_anchor(const cow_disk *disk, uint64_t base, uint64_t address, cow_anchor *anchor)
{
    uint8_t fence[4096];

    if (cow_disk_read(disk, address + COW_SECTOR, fence, sizeof fence) < 0)
        return -1;
    if (!cow_fence_is(fence, sizeof fence))
        return 0;
    /* where there is none, no slot will be valid, and that is said then */
    return cow_anchor_from_slots(disk, base, address, anchor) < 0 ? -1 : 1;
}

int cow_anchor_look(const cow_disk *disk, uint64_t size, cow_anchor *anchor)
{
    front f;
    uint8_t head[COW_SUPERBLOCK_MAX];
    int found;

    read_front(disk, &f);
    /* Where HDF5 looks for a superblock: at 0, 512, 1024, 2048 ... */
    for (uint64_t base = 0; base + 2 * COW_SECTOR < size; base = base == 0 ? 512 : base * 2) {
        if (read_by_front(disk, &f, base, head, sizeof head) < 0)
            return -1;
        if (cow_superblock_signature(head)) {
            uint64_t fence;

            if (cow_superblock_version(head) != 3)
                return 0; /* another version of the superblock: never one of ours */
            if (cow_superblock_whole(head)) {
                fence = cow_superblock_extension(head);
                if (fence >= COW_FILE_LIMIT || fence < COW_SECTOR || fence % COW_SECTOR != 0)
                    return 0;
                found = anchor_at(disk, &f, size, base + fence - COW_SECTOR, base, anchor);
                return found != 0 ? found : rebuilt_anchor(disk, base, base + fence - COW_SECTOR, anchor);
            }
        }
        /* no superblock, or a torn one: the first commit was not applied yet, or a disk failed */
        for (uint64_t distance = COW_SECTOR; distance <= COW_ANCHOR_DISTANCE; distance *= 2)
            if ((found = anchor_at(disk, &f, size, base + distance, base, anchor)) != 0)
                return found;
        if (cow_superblock_signature(head))
            return 0;
    }
    return 0;
}

bool cow_anchor_find(const cow_disk *disk, uint64_t size, cow_anchor *anchor)
{
    int found = cow_anchor_look(disk, size, anchor);

    if (found < 0)
        cow_error_clear();
    return found > 0;
}

/* ---- slots and chains ---- */

#define TOGETHER                                                                                                       \
    ((size_t)2 * COW_BLOCK) /* slots that are no farther apart are read at once: both blocks are a page or two */

int cow_journal_slots_read(const cow_disk *disk, const cow_anchor *anchor, cow_journal_slot_pair *pair)
{
    uint8_t both[TOGETHER + COW_JOURNAL_SLOT];
    const bool together = anchor->slot[1] >= anchor->slot[0] && anchor->slot[1] - anchor->slot[0] <= TOGETHER;
    const size_t apart = together ? (size_t)(anchor->slot[1] - anchor->slot[0]) : COW_JOURNAL_SLOT;

    if (cow_disk_read(disk, anchor->slot[0], both, together ? apart + COW_JOURNAL_SLOT : COW_JOURNAL_SLOT) < 0 ||
        (!together && cow_disk_read(disk, anchor->slot[1], both + apart, COW_JOURNAL_SLOT) < 0))
        return -1;
    for (unsigned i = 0; i < 2; i++)
        pair->valid[i] = cow_journal_slot_decode_copies(&pair->slot[i], anchor, i, both + i * apart) &&
                         cow_superblock_whole(pair->slot[i].superblock);
    return 0;
}

int cow_journal_slots_newest(const cow_journal_slot_pair *pair)
{
    if (pair->valid[0] && pair->valid[1])
        return pair->slot[1].generation > pair->slot[0].generation;
    return pair->valid[0] ? 0 : pair->valid[1] ? 1 : -1;
}

bool cow_journal_has_state(const cow_disk *disk, const cow_anchor *anchor)
{
    uint8_t head[8] = {0};
    cow_journal_slot_pair pair = {0};
    int which;

    if (cow_disk_read(disk, anchor->base, head, sizeof head) < 0 ||
        (!cow_superblock_signature(head) && cow_journal_slots_read(disk, anchor, &pair) < 0)) {
        cow_error_clear();
        return true; /* who cannot look must not overwrite */
    }
    if (cow_superblock_signature(head) || (pair.valid[0] && pair.valid[1]))
        return true;
    /* the first commit, just being made, may yet fail */
    return (which = cow_journal_slots_newest(&pair)) >= 0 &&
           !cow_lock_is_unpublished(disk, pair.slot[which].generation);
}

int cow_journal_load_chain(const cow_journal *journal, const cow_journal_slot *slot, cow_pending **list, size_t *count)
{
    uint64_t expected = slot->sequence;
    cow_journal_extent_name name = slot->extent;
    struct stat about;
    uint8_t *bytes = NULL, hash[16];
    int status = -1;

    *list = NULL;
    *count = 0;
    if (slot->applied == slot->sequence)
        return 0;
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    while (expected > slot->applied) {
        cow_pending *larger, *entry;

        status = 1;
        if (name.length == 0 || name.address > (uint64_t)about.st_size ||
            name.length > (uint64_t)about.st_size - name.address)
            goto done;
        status = -1;
        if ((larger = realloc(*list, (*count + 1) * sizeof *larger)) == NULL) {
            cow_error(COW_MEMORY, "%s: no memory for what is pending", journal->name);
            goto done;
        }
        *list = larger;
        memmove(larger + 1, larger, *count * sizeof *larger);
        ++*count;
        entry = larger;
        memset(entry, 0, sizeof *entry);
        entry->name = name;
        free(bytes);
        if ((bytes = malloc((size_t)name.length)) == NULL) {
            cow_error(COW_MEMORY, "%s: no memory for what is pending", journal->name);
            goto done;
        }
        if ((entry->frames = cow_overlay_new()) == NULL ||
            cow_disk_read(&journal->disk, name.address, bytes, (size_t)name.length) < 0)
            goto done;
        cow_journal_extent_hash(bytes, (size_t)name.length, hash);
        status = 1;
        if (memcmp(hash, name.hash, sizeof hash) != 0)
            goto done;
        if ((status = cow_journal_extent_decode(&entry->extent, &journal->anchor, bytes, (size_t)name.length,
                                                entry->frames)) != 0)
            goto done;
        status = 1;
        if (entry->extent.sequence != expected ||
            (expected == slot->sequence &&
             (entry->extent.end != slot->end || entry->extent.extension != slot->extension)))
            goto done;
        expected = entry->extent.after;
        name = entry->extent.previous;
    }
    status = 0;
done:
    free(bytes);
    if (status != 0) {
        cow_pending_free(*list, *count);
        *list = NULL;
        *count = 0;
    }
    return status;
}

static int take_state(cow_journal *journal, const cow_journal_slot *slot, cow_pending *list, size_t count)
{
    struct stat about;

    cow_pending_free(journal->pending, journal->pending_count);
    journal->pending = list;
    journal->pending_count = count;
    journal->slot = *slot;
    journal->extension = slot->extension;
    journal->end = journal->committed_end = slot->end;
    journal->protect = slot->protect;
    journal->placed = true;
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    if ((uint64_t)about.st_size < slot->end)
        return cow_error(COW_CORRUPT, "%s: truncated file: it has %llu bytes, its content ends at %llu", journal->name,
                         (unsigned long long)about.st_size, (unsigned long long)slot->end);
    return cow_journal_merge(journal);
}

static int damaged(const cow_journal *journal)
{
    return cow_error(COW_CORRUPT,
                     "%s: the record of the newest commit is damaged; nothing was changed; to see what can be saved: "
                     "h5cow recover %s",
                     journal->name, journal->name);
}

static int nothing_there(const cow_journal *journal)
{
    uint8_t head[8];

    if (cow_disk_read(&journal->disk, journal->anchor.base, head, sizeof head) < 0)
        return -1;
    return cow_superblock_signature(head) ? damaged(journal) : cow_journal_nothing_yet(journal);
}

/* Was applying begun? */
static int disk_flagged(const cow_journal *journal, uint8_t superblock[COW_SUPERBLOCK_MAX])
{
    if (cow_disk_read(&journal->disk, journal->anchor.base, superblock, COW_SUPERBLOCK_MAX) < 0)
        return -1;
    return !cow_superblock_whole(superblock) || cow_superblock_flagged(superblock);
}

/* V1: the state that SLOT of PAIR names, or where its chain is not whole the other one. 0, 1: neither, -1. */
static int take_newest(cow_journal *journal, const cow_journal_slot_pair *pair, int which)
{
    uint8_t superblock[COW_SUPERBLOCK_MAX];
    cow_pending *list;
    size_t count;
    int status = cow_journal_load_chain(journal, &pair->slot[which], &list, &count);

    if (status == 1 && pair->slot[which].unsynced && pair->valid[!which] && disk_flagged(journal, superblock) == 0) {
        which = !which;
        status = cow_journal_load_chain(journal, &pair->slot[which], &list, &count);
    }
    return status != 0 ? status : take_state(journal, &pair->slot[which], list, count);
}

/* ---- writer ---- */

/* The extents of the slot that is not the newest: until the newest is known to be on the disk, they are needed. */
static int keep_other(cow_journal *journal, const cow_journal_slot_pair *pair)
{
    unsigned other = !(journal->slot.generation % 2);
    cow_pending *list;
    size_t count;
    int status;

    if (!pair->valid[other] || pair->slot[other].generation > journal->slot.generation)
        return 0;
    if ((status = cow_journal_load_chain(journal, &pair->slot[other], &list, &count)) != 0)
        return status < 0 ? -1 : 0;
    if (count > 0 && (journal->dying = malloc(count * sizeof *journal->dying)) == NULL) {
        cow_pending_free(list, count);
        return cow_error(COW_MEMORY, "%s: no memory to open the file", journal->name);
    }
    for (size_t i = 0; i < count; i++)
        journal->dying[journal->dying_count++] = (cow_range){list[i].name.address, list[i].name.length};
    cow_pending_free(list, count);
    return 0;
}

static int load_writer(cow_journal *journal)
{
    uint8_t superblock[COW_SUPERBLOCK_MAX];
    cow_journal_slot_pair pair = {0};
    struct stat about;
    uint64_t pin;
    size_t length;
    int which, status;

    /* once more: what was seen before the lock was held may have changed */
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    journal->size = (uint64_t)about.st_size;
    journal->modified = about.st_mtim;
    if ((status = cow_anchor_look(&journal->disk, journal->size, &journal->anchor)) < 0)
        return -1;
    if (status == 0)
        return cow_error(COW_IO, "%s: somebody changed the file while it was opened", journal->name);
    if (cow_journal_slots_read(&journal->disk, &journal->anchor, &pair) < 0)
        return -1;
    if ((which = cow_journal_slots_newest(&pair)) < 0)
        return nothing_there(journal);
    if ((status = take_newest(journal, &pair, which)) != 0)
        return status < 0 ? -1 : damaged(journal);
    journal->phase = COW_JOURNAL_IDLE;
    journal->trusted = !journal->slot.unsynced;
    if (keep_other(journal, &pair) < 0)
        return -1;
    /* Somebody may have taken back a commit there and died before that was on the disk: after a power cut its slot would be
     * the newest again, over an extent that is cut off or written over by then. */
    if (!pair.valid[!which] && cow_journal_sync(journal) < 0)
        return -1;
    journal->twice = pair.valid[0] && pair.valid[1] && pair.slot[0].sequence == pair.slot[1].sequence;
    if (journal->pending_count > 0)
        return cow_journal_recommit(journal);
    if (cow_lock_lowest_pin(&journal->lock, &pin) == 0 && pin >= journal->slot.sequence)
        journal->protect = journal->committed_end;
    /* all is applied: but the power may have gone before the clean superblock was on the disk */
    length = cow_superblock_size(journal->slot.superblock);
    if (cow_disk_read(&journal->disk, journal->anchor.base, superblock, sizeof superblock) < 0)
        return -1;
    cow_superblock_move(superblock, journal->anchor.base);
    if (memcmp(superblock, journal->slot.superblock, length) == 0)
        return 0;
    return cow_disk_write(&journal->disk, journal->anchor.base, journal->slot.superblock, length);
}

int cow_journal_load_writer(cow_journal *journal)
{
    if (load_writer(journal) < 0)
        return -1;
    cow_journal_trim(journal); /* a disk may be full of what a writer that failed has left behind the end */
    return 0;
}

/* ---- reader ---- */

/* The newest slot that is not just being written. -1: none. */
static int newest_published(const cow_journal *journal, const cow_journal_slot_pair *pair)
{
    int which = cow_journal_slots_newest(pair);

    if (which >= 0 && cow_lock_is_unpublished(&journal->lock, pair->slot[which].generation))
        which = pair->valid[!which] ? !which : -1;
    return which;
}

/* Not NEWEST was taken, whose chain is damaged, but the slot before it. Is that what the file's own bytes are? Not where a
 * writer has applied NEWEST meanwhile, and used the place of its chain again: 1. It sets the flag before it looks for pins, we
 * pin before we look for the flag. */
static int keep_older(const cow_journal *journal, const cow_journal_slot *newest)
{
    uint8_t superblock[COW_SUPERBLOCK_MAX];
    cow_journal_slot_pair now = {0};
    int which, flagged;

    if (cow_lock_pin(&journal->lock, journal->slot.sequence) < 0 || (flagged = disk_flagged(journal, superblock)) < 0 ||
        cow_journal_slots_read(&journal->disk, &journal->anchor, &now) < 0)
        return -1;
    which = cow_journal_slots_newest(&now);
    if (flagged == 0 && which >= 0 && now.slot[which].generation == newest->generation)
        return 0;
    cow_lock_unpin(&journal->lock, journal->slot.sequence);
    return 1;
}

int cow_journal_load_reader(cow_journal *journal)
{
    const struct timespec moment = {0, 1000000};
    cow_journal_slot_pair pair = {0};
    bool alone = false; /* nobody wrote when this try began */
    uint64_t seen = 0;  /* the generation that the try before met; 0: none */
    int which, status = 1;

    journal->phase = COW_JOURNAL_READING;
    for (unsigned i = 0; i < TRIES && status == 1; i++) {
        bool was_alone = alone;
        uint64_t sequence, generation;

        alone = i > 1 && !cow_lock_is_writing(&journal->lock);
        if (i > 1 && !alone)
            nanosleep(&moment, NULL);
        if (cow_journal_slots_read(&journal->disk, &journal->anchor, &pair) < 0)
            return -1;
        which = newest_published(journal, &pair);
        generation = which < 0 ? 0 : pair.slot[which].generation;
        if (was_alone && generation == seen)
            break; /* nobody has changed anything since: it stays as it is */
        seen = generation;
        if (which < 0)
            continue;
        sequence = pair.slot[which].sequence;
        if (cow_lock_pin(&journal->lock, sequence) < 0 ||
            cow_journal_slots_read(&journal->disk, &journal->anchor, &pair) < 0)
            return -1;
        /* A writer that did not see the pin published before it looked: then a newer state is here now. */
        which = newest_published(journal, &pair);
        if (which >= 0 && pair.slot[which].sequence == sequence)
            status = take_newest(journal, &pair, which);
        if (status == 0 && journal->slot.sequence != sequence)
            status = keep_older(journal, &pair.slot[which]);
        if (status < 0)
            return -1;
        if (status == 1)
            cow_lock_unpin(&journal->lock, sequence);
    }
    if (status < 0)
        return -1;
    if (status == 1)
        return cow_journal_slots_newest(&pair) < 0 ? nothing_there(journal) : damaged(journal);
    journal->pinned = true;
    return 0;
}
