/* States of damaged files: another one than the newest, with less asked than else. Contract: inspect.h. */
#include "journal/inspect.h"

#include "base/error.h"
#include "journal/internal.h"
#include "journal/locks.h"

#include <string.h>

/* ---- where the anchor is, when little can be trusted ---- */

static bool fence_at(const cow_disk *disk, uint64_t address)
{
    uint8_t fence[4096];

    return cow_disk_read(disk, address, fence, sizeof fence) == 0 && cow_fence_is(fence, sizeof fence);
}

bool cow_anchor_search(const cow_disk *disk, uint64_t size, cow_anchor *anchor)
{
    uint8_t sector[COW_SECTOR];

    for (unsigned round = 0; round < 3; round++)
        for (uint64_t base = 0; base + 2 * COW_SECTOR < size; base = base == 0 ? 512 : base * 2)
            for (uint64_t distance = COW_SECTOR; distance <= COW_ANCHOR_DISTANCE && base + distance < size;
                 distance *= 2) {
                uint64_t address = base + distance;
                int found = 0;

                if (round == 0)
                    found = cow_disk_read(disk, address, sector, sizeof sector) < 0
                                ? -1
                                : cow_anchor_decode(anchor, sector, address) && anchor->base == base;
                else if (round == 2 || fence_at(disk, address + COW_SECTOR))
                    found = cow_anchor_from_slots(disk, base, address, anchor);
                if (found > 0)
                    return true;
                cow_error_clear();
            }
    return false;
}

/* ---- a chosen state ---- */

/* The state that the file's own bytes are: its superblock says where it ends; the fence is its extension, which for
 * reading only is no obstacle. */
static int take_applied(cow_journal *journal, const cow_journal_slot_pair *pair, uint64_t size)
{
    uint8_t head[COW_SUPERBLOCK_MAX] = {0};
    int which = cow_journal_slots_newest(pair);
    size_t length;

    if (cow_disk_read(&journal->disk, journal->anchor.base, head, sizeof head) < 0)
        return -1;
    if (!cow_superblock_whole(head)) {
        if (which < 0)
            return cow_error(COW_CORRUPT, "%s: the superblock and both slots are damaged", journal->name);
        memcpy(head, pair->slot[which].superblock, sizeof head);
    }
    length = cow_superblock_size(head);
    cow_superblock_set(head, cow_superblock_extension(head), false);
    cow_superblock_move(head, journal->anchor.base);
    memset(&journal->slot, 0, sizeof journal->slot);
    journal->slot.sequence = journal->slot.applied = which < 0 ? 1 : pair->slot[which].applied;
    memcpy(journal->slot.superblock, head, length);
    journal->extension = cow_superblock_extension(head);
    journal->end = cow_superblock_end(head) > size ? cow_superblock_end(head) : size;
    return 0;
}

int cow_journal_load_choice(cow_journal *journal, const cow_journal_choice *choice)
{
    cow_journal_slot_pair pair = {0};
    struct stat about;
    uint64_t size;
    char writer[256];
    int status;

    journal->phase = COW_JOURNAL_READING;
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    size = (uint64_t)about.st_size;
    if (!choice->locked && cow_lock_is_writing(&journal->lock)) {
        cow_lock_describe_writer(&journal->lock, writer, sizeof writer);
        return cow_error(COW_IO, "%s: the file is being written by %s; wait until it is closed", journal->name, writer);
    }
    if (cow_lock_pin(&journal->lock, 0) < 0) /* below every state: nothing is applied meanwhile */
        cow_error_clear();                   /* where there are no locks, there are no writers either */
    journal->placed = cow_anchor_find(&journal->disk, size, &journal->anchor) ||
                      cow_anchor_search(&journal->disk, size, &journal->anchor);
    journal->end = size;
    if (!journal->placed) {
        /* a file without a journal: only patches stand before its bytes */
        if (choice->state != COW_CHOICE_APPLIED)
            return cow_error(COW_NOT_FOUND, "%s: there is no journal in the file", journal->name);
        memset(&journal->anchor, 0, sizeof journal->anchor);
    } else if (cow_journal_slots_read(&journal->disk, &journal->anchor, &pair) < 0)
        return -1;
    if (journal->placed && choice->state == COW_CHOICE_APPLIED) {
        if (take_applied(journal, &pair, size) < 0 && choice->patches == NULL)
            return -1;
        cow_error_clear();
    } else if (journal->placed) {
        int which = cow_journal_slots_newest(&pair);

        if (choice->state == COW_CHOICE_OLDER && which >= 0)
            which = pair.valid[!which] ? !which : -1;
        if (which < 0)
            return cow_error(COW_CORRUPT, "%s: the slot is damaged", journal->name);
        journal->slot = pair.slot[which];
        status = cow_journal_load_chain(journal, &pair.slot[which], &journal->pending, &journal->pending_count);
        if (status != 0)
            return status < 0 ? -1
                              : cow_error(COW_CORRUPT, "%s: the record of commit %llu is damaged", journal->name,
                                          (unsigned long long)pair.slot[which].sequence);
        journal->extension = pair.slot[which].extension;
        journal->end = pair.slot[which].end;
    }
    if (choice->end > journal->end)
        journal->end = choice->end;
    journal->committed_end = journal->end;
    journal->protect = journal->end > journal->anchor.end ? journal->end : journal->anchor.end;
    if (cow_journal_merge(journal) < 0 ||
        (choice->patches != NULL && cow_overlay_merge(journal->merged, choice->patches) < 0))
        return -1;
    return 0;
}
