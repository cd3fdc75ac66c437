/* What opening, committing and recovering ask of a journal: its phase, its extents, the bytes of its states. Nothing here
 * writes. The diagram of phases: journal.c. */
#include "journal/internal.h"

#include "base/error.h"
#include "base/process.h"
#include "journal/locks.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- phases ---- */

bool cow_journal_sticky(const cow_journal *journal)
{
    return journal->phase == COW_JOURNAL_ABORTED || journal->phase == COW_JOURNAL_UNKNOWN;
}

bool cow_journal_writer(const cow_journal *journal)
{
    return journal->phase != COW_JOURNAL_PLAIN && journal->phase != COW_JOURNAL_READING;
}

bool cow_journal_ours(const cow_journal *journal)
{
    return journal->owner == cow_process_id();
}

int cow_journal_fail(cow_journal *journal, cow_journal_phase phase, const char *what)
{
    if (!cow_journal_sticky(journal)) {
        snprintf(journal->failure, sizeof journal->failure, "%s", cow_error_message());
        journal->phase = phase;
    }
    return cow_context("%s: %s", journal->name, what);
}

uint64_t cow_journal_fence(const cow_journal *journal)
{
    return journal->anchor.address + COW_SECTOR - journal->anchor.base;
}

bool cow_journal_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
    return a_size > 0 && b_size > 0 && a < b + b_size && b < a + a_size;
}

bool cow_journal_in_use(const cow_journal *journal, uint64_t address, uint64_t size, uint64_t *behind)
{
    for (size_t i = 0; i < journal->pending_count; i++) {
        const cow_journal_extent_name *name = &journal->pending[i].name;
        if (cow_journal_overlap(address, size, name->address, name->length)) {
            *behind = name->address + name->length;
            return true;
        }
    }
    for (size_t i = 0; i < journal->dying_count; i++)
        if (cow_journal_overlap(address, size, journal->dying[i].address, journal->dying[i].length)) {
            *behind = journal->dying[i].address + journal->dying[i].length;
            return true;
        }
    return false;
}

void cow_journal_assert_state(const cow_journal *journal)
{
    uint64_t state = journal->slot.applied;

    assert(journal->phase != COW_JOURNAL_IDLE || cow_overlay_empty(journal->overlay));
    assert(journal->pending_count == 0 || journal->slot.applied < journal->slot.sequence);
    for (size_t i = 0; i < journal->pending_count; i++) {
        assert(i == 0 ? journal->pending[i].extent.after <= state : journal->pending[i].extent.after == state);
        assert(journal->pending[i].extent.sequence > journal->pending[i].extent.after);
        state = journal->pending[i].extent.sequence;
    }
    assert(journal->phase == COW_JOURNAL_PLAIN || state == journal->slot.sequence);
    assert(!cow_journal_writer(journal) || journal->slot.sequence == 0 || journal->protect >= journal->committed_end);
    assert(!journal->placed || journal->protect >= journal->anchor.end);
    (void)state;
}

void cow_pending_free(cow_pending *pending, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cow_overlay_free(pending[i].frames);
    free(pending);
}

int cow_journal_merge(cow_journal *journal)
{
    size_t length = cow_superblock_size(journal->slot.superblock);
    cow_overlay *merged = cow_overlay_new(); /* without memory for it the former one goes on being right */
    int status =
        merged == NULL ? -1 : cow_overlay_write(merged, journal->anchor.base, journal->slot.superblock, length);

    for (size_t i = 0; status == 0 && i < journal->pending_count; i++)
        status = cow_overlay_merge(merged, journal->pending[i].frames);
    if (status < 0) {
        cow_overlay_free(merged);
        return -1;
    }
    cow_overlay_free(journal->merged);
    journal->merged = merged;
    return 0;
}

/* ---- before the first commit ---- */

bool cow_journal_is_begun(const cow_journal *journal)
{
    char head[COW_UNFINISHED_SIZE];
    uint64_t base = journal->anchor.base;
    struct stat about;
    size_t there;

    if (cow_disk_about(&journal->disk, &about) < 0 || cow_disk_read(&journal->disk, base, head, sizeof head) < 0) {
        cow_error_clear();
        return false;
    }
    if ((uint64_t)about.st_size <= base || !journal->placed)
        return about.st_size == 0;
    there = (uint64_t)about.st_size - base < sizeof head ? (size_t)((uint64_t)about.st_size - base) : sizeof head;
    return memcmp(head, COW_UNFINISHED, there) == 0;
}

/* A file in which nothing was ever committed is none: programs that create what is missing do so. */
int cow_journal_nothing_yet(const cow_journal *journal)
{
    return cow_error(COW_IO, "unable to open file: name = '%s', errno = %d, error message = '%s': %s", journal->name,
                     ENOENT, strerror(ENOENT),
                     cow_lock_is_writing(&journal->lock)
                         ? "another program is creating it and has not committed anything yet"
                         : "a program began to create it and ended before it committed anything");
}

/* ---- reading ---- */

int cow_journal_read_committed(const cow_journal *journal, uint64_t address, void *buffer, size_t size)
{
    if (!cow_overlay_covers(journal->merged, address, size) &&
        cow_disk_recall(&journal->disk, address, buffer, size) < 0)
        return -1;
    cow_overlay_read(journal->merged, address, buffer, size);
    return 0;
}

int cow_journal_read_raw(const cow_journal *journal, uint64_t address, void *buffer, size_t size)
{
    if (!cow_overlay_covers(journal->overlay, address, size) &&
        cow_journal_read_committed(journal, address, buffer, size) < 0)
        return -1;
    cow_overlay_read(journal->overlay, address, buffer, size);
    return 0;
}

bool cow_journal_is_hdf5s(const cow_journal *journal, uint64_t address, uint64_t size)
{
    const cow_anchor *anchor = &journal->anchor;
    uint64_t behind;

    if (!journal->placed || address < anchor->base + COW_SUPERBLOCK_MAX ||
        cow_journal_overlap(address, size, anchor->address, anchor->end - anchor->address) ||
        cow_journal_in_use(journal, address, size, &behind))
        return false;
    for (unsigned i = 0; i < COW_RESERVES; i++)
        if (cow_journal_overlap(address, size, journal->slot.reserve[i].address, journal->slot.reserve[i].length))
            return false;
    return true;
}
