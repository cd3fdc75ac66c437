/* The last close of a file, and bringing in what waits to be applied.
 *
 * A commit waits when a reader had an older state open as it was made. Whoever is last to be in its way applies it: the reader
 * that closes, or the writer, where the readers have gone since it looked. A reader lets go of its pin and then looks for commits
 * that wait; a writer lets go of its lock and then looks for pins: one of them sees the other.
 *
 * Applying is what any writer does that opens the file, so that is how it is done: opened for writing, applied, closed. It is
 * never waited for, and nothing that it meets is an error of the close. */
#include "journal/internal.h"

#include "base/error.h"
#include "base/witness.h"
#include "journal/locks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 3 /* others may come and go between looking and locking */

/* ---- the time of the last change ---- */

/* Nothing of what the file holds has changed: what was written for that is no change of the file to others. */
static void restore_time(const cow_journal *journal)
{
    const cow_disk_calls *calls = journal->disk.calls;
    struct stat about;

    if (journal->committed || journal->phase != COW_JOURNAL_IDLE || journal->slot.sequence == 0 ||
        calls->times == NULL || calls->fstat(calls->context, journal->disk.fd, &about) < 0 ||
        (about.st_mtim.tv_sec == journal->modified.tv_sec && about.st_mtim.tv_nsec == journal->modified.tv_nsec))
        return;
    calls->times(
        calls->context, journal->disk.fd,
        (struct timespec[2]){{.tv_nsec = UTIME_OMIT}, journal->modified}); /* only its owner may: else it stays */
}

/* ---- a file that shall not get longer ---- */

/* Nothing but the newest state is needed, by either slot. */
static int leave_one_state(cow_journal *journal)
{
    return journal->pending_count > 0 || cow_journal_sticky(journal) ? 0 : cow_journal_put_slot(journal);
}

int cow_journal_shorten(cow_journal *journal, uint64_t *spare)
{
    struct stat about;

    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    *spare = (uint64_t)about.st_size > journal->committed_end ? (uint64_t)about.st_size - journal->committed_end : 0;
    journal->shorten = true;
    return leave_one_state(journal);
}

/* ---- what waits ---- */

/* A file that was closed, and may have a commit that waits. */
typedef struct waiting {
    cow_disk look; /* still open for reading; holds no lock */
    char *name;
    dev_t device;
    ino_t inode;
    cow_anchor anchor;
} waiting;

/* Does a commit wait that could be applied now? */
static bool can_apply(const waiting *w, uint64_t *newest)
{
    cow_journal_slot_pair pair = {0};
    uint64_t pin;
    int which;

    if (cow_journal_slots_read(&w->look, &w->anchor, &pair) < 0 || (which = cow_journal_slots_newest(&pair)) < 0)
        return false;
    *newest = pair.slot[which].sequence;
    return pair.slot[which].applied < *newest && cow_lock_lowest_pin(&w->look, &pin) == 0 &&
           pin > pair.slot[which].applied && !cow_lock_is_writing(&w->look); /* a writer does it when it closes */
}

/* Is the file still at its name? */
static bool at_name(const waiting *w)
{
    struct stat about;

    return w->look.calls->stat(w->look.calls->context, w->name, &about) == 0 && about.st_dev == w->device &&
           about.st_ino == w->inode;
}

/* -1: it cannot be opened for writing here, *NUMBER says why, or the error. Else 0, though perhaps nothing could be applied. */
static int apply_once(const waiting *w, int *number)
{
    const cow_journal_options options = {.sync = COW_SYNC_FULL, .brief = true, .calls = w->look.calls};
    cow_journal *journal = cow_journal_open(w->name, (cow_journal_mode){.writable = true}, &options, number);
    int status = -1;

    if (journal == NULL)
        return -1;
    if (journal->references == 1 && cow_journal_writer(journal) && journal->device == w->device &&
        journal->inode == w->inode && journal->slot.sequence > 0) {
        status = cow_journal_apply(journal); /* opening has done it, where all could be applied */
        cow_journal_trim(journal);
        restore_time(journal);
    }
    if (--journal->references == 0)
        cow_journal_free(journal);
    return status;
}

/* PINNED: the state that was open, COW_NOWHERE: by a writer. */
static void bring_in(const waiting *w, uint64_t pinned)
{
    const bool looks = pinned != COW_NOWHERE && getenv(COW_LOOKS_VARIABLE) != NULL;
    uint64_t newest;
    int number;

    for (unsigned i = 0; i < TRIES && can_apply(w, &newest) && (!looks || pinned < newest) && at_name(w); i++)
        if (apply_once(w, &number) < 0)
            break;
    cow_error_clear();
}

static bool is_waiting(const cow_journal *journal)
{
    if (journal->phase == COW_JOURNAL_READING)
        return journal->pinned && journal->options.choice == NULL;
    return cow_journal_writer(journal) && cow_journal_ours(journal) && !cow_journal_sticky(journal) &&
           !journal->borrowed && journal->pending_count > 0;
}

void cow_journal_close(cow_journal *journal)
{
    cow_error_held *held;
    uint64_t pinned;
    waiting w;

    if (--journal->references > 0)
        return;
    if (cow_journal_ours(journal) && cow_journal_writer(journal)) {
        if (!cow_journal_sticky(journal) && cow_journal_commit(journal, true) < 0) {
            cow_tell_lost(journal->name, "the last changes were not committed: %s", cow_error_message());
            cow_error_clear();
        }
        if (journal->shorten && leave_one_state(journal) < 0)
            cow_error_clear(); /* it stays as long as it is */
        cow_journal_trim(journal);
        cow_journal_give_back(journal);
        cow_error_clear(); /* what could not be given back stays where it is */
        restore_time(journal);
    }
    if (!is_waiting(journal)) {
        cow_journal_free(journal);
        return;
    }
    pinned = journal->phase == COW_JOURNAL_READING ? journal->slot.sequence : COW_NOWHERE;
    w = (waiting){.look = {.calls = journal->disk.calls, .fd = journal->disk.fd},
                  .name = journal->name,
                  .device = journal->device,
                  .inode = journal->inode,
                  .anchor = journal->anchor};
    w.look.name = w.name;
    journal->disk.fd = -1;
    journal->name = NULL;
    held = cow_error_hold();
    cow_journal_free(journal); /* with its locks */
    bring_in(&w, pinned);
    cow_error_put_back(held);
    cow_disk_close(&w.look);
    free(w.name);
}

int cow_journal_apply_waiting(const char *name, int *number)
{
    waiting w = {.look = {.fd = -1}, .name = (char *)(uintptr_t)name};
    struct stat about;
    int status;

    *number = 0;
    if (cow_disk_open(&w.look, &cow_disk_system, name, O_RDONLY) < 0) {
        *number = errno;
        return cow_error(COW_IO, "cannot read '%s': %s", name, strerror(errno));
    }
    if (cow_disk_about(&w.look, &about) < 0) {
        cow_disk_close(&w.look);
        return -1;
    }
    w.device = about.st_dev;
    w.inode = about.st_ino;
    status = apply_once(&w, number);
    cow_disk_close(&w.look);
    return status;
}
