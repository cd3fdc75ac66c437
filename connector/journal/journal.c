/* Atomic commits in one file: opening, reading, writing, closing.
 *
 * A state of the file is a numbered commit, from 1. A commit's record ("extent") and the note that it is the newest
 * ("slot") are in the file itself, beyond what HDF5 allocated; later the extent is applied to the file's own bytes.
 * N: the newest committed state; A: the state that the file's own bytes have; P: the protected end.
 *
 * Invariants
 *   I1  Bytes below P change only while applying. The slots, which no state contains, are the exception.
 *   I2  A slot is written only after everything it names was written and synced without error by the same opening.
 *   I3  Between two writes of slots there is a sync, and two slots in a row are in different blocks: one is always
 *       whole.
 *   I4  No byte that a pinned state, or one that is read under a shared flock, can see is changed, cut off or used
 *       again.
 *   I5  Who does not hold the writer's lock changes no byte, whatever flags the file was opened with.
 *   I6  On disk the superblock has the fence in every state; HDF5 in this process never sees it.
 *   I7  On disk the superblock's flag "being written" is set before the first byte is changed by applying and durable
 *       (unless sync=off), and cleared after the last one is durable. While it is set a complete chain exists, or all of
 *       it is applied.
 *   I8  Commits come from cow_journal_commit or the last close, in the process that opened the file; never from HDF5's
 *       flush or truncation.
 *   I9  After an error before the commit point this opening makes nothing durable but the voiding of its own slot.
 *   I10 An extent's place is used again only after a slot that no longer names it is durable.
 *   I11 A commit syncs twice (sync=full). Applying syncs once more; commits that come fast are applied together.
 *
 * States (cow_journal_phase) and who moves between them
 *
 *        write, truncate        commit: extent, sync      slot, sync            apply: pages, sync, superblock, slot
 *   IDLE ---------------> OPEN ---------------> SEALED ------------> COMMITTED ---------------------> APPLYING
 *    ^  ^                  |                      |                   |                                 |
 *    |  '------------------'                      |                   |  a reader is in the way         |
 *    |    nothing differs                         |                   '---------------> IDLE, A < N     |
 *    '--------------------------------------------|----------------------------------------------------'
 *                                                 |
 *   OPEN, SEALED -- error, cow_journal_abort --> ABORTED      SEALED -- error, and voiding failed too --> UNKNOWN
 *   IDLE, OPEN -- cow_journal_abandon --> ABORTED, and the last close clears up
 *
 * Readers stay in READING, files without a journal in PLAIN.
 */
#include "journal/internal.h"
#include "journal/inspect.h"

#include "base/error.h"
#include "base/process.h"
#include "base/witness.h"
#include "journal/locks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define JUMP_LIMIT  ((uint64_t)1 << 20) /* address space is not skipped over extents larger than that */
#define CHECK_BYTES ((uint64_t)1 << 20) /* after so many it is looked again whether the file is still ours */
#define LARGE_WRITE ((size_t)256 << 10) /* chunks, not metadata, which is written more than once */
#define OPENED_AGAIN                                                                                                   \
    10 /* times, where another file is there each time; then as it is: some file systems number files anew */

const cow_journal_options cow_journal_defaults = {.sync = COW_SYNC_FULL, .apply_interval = 1000};

/* All files that this process has open. HDF5 opens a file twice when it creates it, and again by other names. */
static struct {
    cow_journal *first;
    bool forks;                  /* the fork handler is registered */
    bool refused;                /* an opening was, since somebody else had the file */
    const cow_disk_calls *calls; /* cow_journal_use_calls */
} table;

void cow_journal_use_calls(const cow_disk_calls *calls)
{
    table.calls = calls;
}

static const cow_disk_calls *default_calls(void)
{
    return table.calls == NULL ? &cow_disk_system : table.calls;
}

/* The child shares the locks with its parent. A writer's would outlive the parent; a reader's shall, since what the child
 * has open goes on seeing the state that was pinned for it. */
static void in_child(void)
{
    for (cow_journal *journal = table.first; journal != NULL; journal = journal->next) {
        cow_disk_forked(&journal->disk);
        if (journal->lock.fd >= 0 && journal->phase != COW_JOURNAL_READING)
            cow_disk_close(&journal->lock);
    }
}

/* ---- what is where ---- */

bool cow_journal_take_on(cow_journal *journal)
{
    journal->borrowed = false;
    return journal->phase != COW_JOURNAL_READING;
}

bool cow_journal_plain(const cow_journal *journal)
{
    return journal->phase == COW_JOURNAL_PLAIN;
}

const char *cow_journal_failure(const cow_journal *journal)
{
    return cow_journal_sticky(journal) ? journal->failure : NULL;
}

bool cow_journal_doubtful(const cow_journal *journal)
{
    return journal->phase == COW_JOURNAL_UNKNOWN;
}

const char *cow_journal_name(const cow_journal *journal)
{
    return journal->name;
}

int *cow_journal_descriptor(cow_journal *journal)
{
    return &journal->disk.fd;
}

int cow_journal_compare(const cow_journal *a, const cow_journal *b)
{
    if (a->owner != b->owner) /* what a forked child opens is not what it got from its parent */
        return a->owner < b->owner ? -1 : 1;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

void cow_journal_state(const cow_journal *journal, uint64_t *sequence, uint64_t *applied)
{
    *sequence = journal->slot.sequence;
    *applied = journal->slot.applied;
}

/* ---- opening ---- */

void cow_journal_free(cow_journal *journal)
{
    for (cow_journal **at = &table.first; *at != NULL; at = &(*at)->next)
        if (*at == journal) {
            *at = journal->next;
            break;
        }
    /* not left to the closing: a process that was just forked, and is about to become another program, has them too */
    if (journal->lock.fd >= 0 && cow_journal_ours(journal) && journal->phase != COW_JOURNAL_READING)
        cow_lock_release(&journal->lock);
    cow_disk_close(&journal->disk);
    cow_disk_close(&journal->lock);
    cow_pending_free(journal->pending, journal->pending_count);
    cow_overlay_free(journal->merged);
    cow_overlay_free(journal->overlay);
    free(journal->dying);
    free(journal->instead);
    free(journal->name);
    free(journal);
}

/* The words of HDF5's own driver: programs look for "errno = 2". */
static cow_journal *cannot_open(const char *name, cow_journal_mode mode, int *number)
{
    unsigned flags = (mode.writable ? 1u : 0) | (mode.truncate ? 2u : 0) | (mode.exclusive ? 4u : 0) |
                     (mode.create ? 16u : 0); /* H5F_ACC_... */
    int system = (mode.writable ? O_RDWR : O_RDONLY) | (mode.truncate ? O_TRUNC : 0) | (mode.exclusive ? O_EXCL : 0) |
                 (mode.create ? O_CREAT : 0);

    *number = errno;
    cow_error(COW_IO, "unable to open file: name = '%s', errno = %d, error message = '%s', flags = %x, o_flags = %x",
              name, errno, strerror(errno), flags, (unsigned)system);
    return NULL;
}

static int refuse_truncation(const cow_journal *journal)
{
    return cow_error(COW_READ_ONLY,
                     "%s: the file has a history, which is never overwritten; to begin a new file, move this one away",
                     journal->name);
}

/* Somebody else has the file, as the recorded error says; many programs do not hand that on. */
static int refused(const cow_journal *journal)
{
    table.refused = true;
    cow_witness_lost(COW_WITNESS_REFUSED, journal->name, cow_error_message());
    return -1;
}

static int lock_writer(const cow_journal *journal)
{
    if (journal->options.brief)
        return cow_lock_writer_briefly(&journal->lock);
    if (journal->options.borrowed)
        return cow_lock_writer(&journal->lock, 0);
    return cow_lock_writer(&journal->lock, journal->options.lock_timeout) < 0 ? refused(journal) : 0;
}

/* A new file, or one that is to be emptied: it gets its journal with the first commit. */
static int open_new(cow_journal *journal, bool truncate)
{
    struct stat about;
    cow_anchor old;
    int begun, status = 0;

    if (lock_writer(journal) < 0 || cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    begun = about.st_size == 0 ? 0 : cow_anchor_look(&journal->disk, (uint64_t)about.st_size, &old);
    if (begun < 0) /* who cannot look must not overwrite */
        return -1;
    if (begun > 0 && cow_journal_has_state(&journal->disk, &old))
        return refuse_truncation(journal);
    if (about.st_size > 0 && !truncate)
        return cow_error(COW_IO, "%s: another program wrote the file while it was opened; nothing was changed",
                         journal->name);
    /* also when it is empty: HDF5 without h5cow may have just created it */
    if (!cow_lock_excused() && !cow_lock_against_stock(&journal->lock)) {
        cow_error(COW_IO, "%s: unable to lock file: another program is using it; nothing was changed", journal->name);
        return refused(journal);
    }
    if (about.st_size > 0)
        status = cow_disk_truncate(&journal->disk, 0);
    /* a first commit that was taken back must not come up again, half written over, after a power cut */
    if (status == 0 && begun > 0 && journal->options.sync != COW_SYNC_OFF)
        status = cow_disk_sync(&journal->disk);
    cow_lock_against_stock_stop(&journal->lock);
    if (status < 0)
        return -1;
    journal->size = 0;
    if (getrandom(journal->anchor.id, sizeof journal->anchor.id, 0) != sizeof journal->anchor.id)
        return cow_error(COW_IO, "%s: the system gives no random numbers", journal->name);
    journal->phase = COW_JOURNAL_IDLE;
    journal->extension = COW_NOWHERE;
    journal->protect = COW_NOWHERE; /* until the anchor has its place: the superblock is withheld */
    return 0;
}

/* The mark that stands where the superblock will be: at one of the places where HDF5 looks for that. */
static bool find_mark(const cow_disk *disk, uint64_t size)
{
    char head[COW_UNFINISHED_SIZE];

    for (uint64_t base = 0; base < size; base = base == 0 ? 512 : base * 2) {
        if (cow_disk_read(disk, base, head, sizeof head) < 0) {
            cow_error_clear();
            return false;
        }
        if (memcmp(head, COW_UNFINISHED, sizeof head) == 0)
            return true;
        if (cow_superblock_signature((const uint8_t *)head))
            return false; /* that is what HDF5 finds */
    }
    return false;
}

static void open_plain(cow_journal *journal, uint64_t size)
{
    journal->phase = COW_JOURNAL_PLAIN;
    journal->end = size;
}

int cow_journal_lock_plain(cow_journal *journal, bool writable, bool lockless)
{
    if (journal->phase != COW_JOURNAL_PLAIN || cow_lock_plain(&journal->disk, writable) == 0 ||
        (lockless && errno == ENOSYS))
        return 0;
    return cow_error(COW_IO, "%s: unable to lock file, errno = %d, error message = '%s'", journal->name, errno,
                     strerror(errno));
}

void cow_journal_unlock_plain(cow_journal *journal)
{
    if (journal->phase == COW_JOURNAL_PLAIN)
        cow_lock_plain_stop(&journal->disk);
}

static int open_with_journal(cow_journal *journal, bool writable)
{
    if (writable && lock_writer(journal) < 0) {
        if (!journal->options.borrowed)
            return -1;
        cow_error_clear(); /* HDF5 asks for writing because the file that led here is open for writing */
        writable = false;
    }
    journal->borrowed = writable && journal->options.borrowed;
    if (!writable && cow_lock_doubtful(&journal->lock) && cow_lock_against_writer(&journal->lock) < 0)
        return refused(journal);
    return writable ? cow_journal_load_writer(journal) : cow_journal_load_reader(journal);
}

/* For the file that DISK has open, ABOUT; in the table, with one reference. Takes over DISK. NULL: no memory. */
static cow_journal *journal_new(const cow_disk *disk, const struct stat *about, const cow_journal_options *options)
{
    cow_journal *journal = calloc(1, sizeof *journal);

    if (journal == NULL || (journal->merged = cow_overlay_new()) == NULL ||
        (journal->overlay = cow_overlay_new()) == NULL) {
        if (journal != NULL)
            cow_overlay_free(journal->merged);
        free(journal);
        return NULL;
    }
    journal->next = table.first;
    table.first = journal;
    journal->references = 1;
    journal->owner = cow_process_id();
    journal->device = about->st_dev;
    journal->inode = about->st_ino;
    journal->disk = *disk;
    journal->lock.fd = -1;
    journal->options = *options;
    journal->unchecked = CHECK_BYTES;
    journal->last_apply = cow_milliseconds();
    journal->size = (uint64_t)about->st_size;
    return journal;
}

/* What is in the file: *ABOUT is looked at anew once nobody else can be creating it. */
static int load(cow_journal *journal, cow_journal_mode mode, struct stat *about)
{
    const cow_journal_options *options = &journal->options;
    int status;

    if (options->choice != NULL)
        return cow_journal_load_choice(journal, options->choice);
    if (!S_ISREG(about->st_mode)) {
        open_plain(journal, (uint64_t)about->st_size);
        return 0;
    }
    /* an empty file may be one that is just being created: who has waited for that looks again */
    if (mode.writable && !mode.truncate && about->st_size == 0 && !options->borrowed &&
        (lock_writer(journal) < 0 || cow_disk_about(&journal->disk, about) < 0))
        return -1;
    if (mode.writable && (mode.truncate || about->st_size == 0) && !options->borrowed)
        return open_new(journal, mode.truncate); /* HDF5 makes a file of an empty one that it opens for writing */
    if (mode.writable && cow_lock_is_writing(&journal->lock) && lock_writer(journal) < 0)
        return -1; /* also a file that is just being created, which does not look like one of ours yet */
    if (cow_disk_about(&journal->disk, about) < 0 ||
        (status = cow_anchor_look(&journal->disk, (uint64_t)about->st_size, &journal->anchor)) < 0)
        return -1;
    if (status > 0)
        return cow_journal_has_state(&journal->disk, &journal->anchor) ? open_with_journal(journal, mode.writable)
                                                                       : cow_journal_nothing_yet(journal);
    /* HDF5 says what it thinks of an empty file, unless a program is just creating it */
    if (about->st_size == 0 ? cow_lock_is_writing(&journal->lock) : find_mark(&journal->disk, (uint64_t)about->st_size))
        return cow_journal_nothing_yet(journal);
    open_plain(journal, (uint64_t)about->st_size);
    return 0;
}

/* Is the file that FD has open, or for -1 the one at its name, the one that JOURNAL is for? A name that is gone leads to no other. */
static bool same_file(const cow_journal *journal, int fd)
{
    const cow_disk_calls *calls = journal->disk.calls;
    struct stat about;

    if ((fd >= 0 ? calls->fstat(calls->context, fd, &about) : calls->stat(calls->context, journal->name, &about)) < 0)
        return true;
    return about.st_dev == journal->device && about.st_ino == journal->inode;
}

/* *AGAIN: somebody put another file in its place, and nothing was changed in this one. NULL: do not look. */
static cow_journal *open_once(const char *name, cow_journal_mode mode, const cow_journal_options *options, int *number,
                              bool *again)
{
    const cow_disk_calls *calls = options->calls == NULL ? default_calls() : options->calls;
    int flags = (mode.writable ? O_RDWR : O_RDONLY) | (mode.create ? O_CREAT : 0) | (mode.exclusive ? O_EXCL : 0);
    cow_journal *journal = NULL;
    struct stat about;
    cow_disk disk;
    bool missing;

    *number = 0;
    if (!table.forks && pthread_atfork(NULL, NULL, in_child) == 0)
        table.forks = true;
    missing = mode.create && calls->stat(calls->context, name, &about) < 0 && errno == ENOENT;
    if (cow_permission_open(&disk, calls, name, flags) < 0) /* never O_TRUNC: somebody else may be writing */
        return cannot_open(name, mode, number);
    if (calls->fstat(calls->context, disk.fd, &about) < 0) {
        cannot_open(name, mode, number);
        cow_disk_close(&disk);
        return NULL;
    }
    for (journal = table.first; journal != NULL; journal = journal->next)
        if (journal->device == about.st_dev && journal->inode == about.st_ino && cow_journal_ours(journal)) {
            cow_disk_close(&disk);
            return cow_journal_reference(journal);
        }
    if ((journal = journal_new(&disk, &about, options)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to open the file", name);
        cow_disk_close(&disk);
        return NULL;
    }
    journal->made = missing;
    if ((journal->name = realpath(name, NULL)) == NULL && (journal->name = strdup(name)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to open the file", name);
        goto failed;
    }
    journal->disk.name = journal->name;
    if (S_ISREG(about.st_mode) &&
        cow_permission_open(&journal->lock, calls, journal->name, mode.writable ? O_RDWR : O_RDONLY) < 0) {
        cannot_open(name, mode, number);
        goto failed;
    }
    if (again != NULL && S_ISREG(about.st_mode) && !same_file(journal, journal->lock.fd)) {
        *again = true;
        goto failed;
    }
    if (load(journal, mode, &about) < 0)
        goto failed;
    if (options->choice == NULL) {
        cow_label_compare(journal);
        cow_withhold(journal);
    }
    if (again != NULL && cow_journal_writer(journal) && journal->slot.sequence > 0 && !same_file(journal, -1)) {
        *again = true; /* while we waited for the lock */
        goto failed;
    }
    if (journal->phase == COW_JOURNAL_PLAIN)
        cow_disk_close(&journal->lock); /* programs that have many files open run out of descriptors */
    /* what a pinned state has nobody changes; nobody else changes anything under the lock of writers */
    if (journal->pinned || (cow_journal_writer(journal) && !options->borrowed))
        cow_disk_remember(&journal->disk, journal->size);
    cow_journal_assert_state(journal);
    return journal;
failed:
    cow_journal_free(journal);
    return NULL;
}

cow_journal *cow_journal_open(const char *name, cow_journal_mode mode, const cow_journal_options *options, int *number)
{
    cow_journal *journal = NULL;
    bool again = true;

    for (unsigned i = 1; again; i++) {
        again = false;
        journal = open_once(name, mode, options, number, i < OPENED_AGAIN ? &again : NULL);
    }
    if (journal != NULL && mode.writable && table.refused)
        cow_witness_lost(COW_WITNESS_REFUSED, journal->name, "");
    return journal;
}

/* Has opening failed in a way that it fails again? */
static bool never_opens(int number)
{
    return number == ENOENT || number == ENOTDIR || number == EISDIR || number == EACCES || number == EPERM ||
           number == ELOOP || number == ENAMETOOLONG || number == ENXIO || number == ENODEV;
}

bool cow_journal_present(const char *name)
{
    struct stat about;
    cow_anchor anchor;
    cow_disk disk;
    int found;

    if (cow_disk_open(&disk, default_calls(), name, O_RDONLY | O_NONBLOCK) < 0)
        return !never_opens(errno);
    found = disk.calls->fstat(disk.calls->context, disk.fd, &about) < 0 ? -1 : S_ISREG(about.st_mode);
    for (const cow_journal *journal = table.first; found > 0 && journal != NULL; journal = journal->next)
        if (journal->device == about.st_dev && journal->inode == about.st_ino && cow_journal_ours(journal) &&
            journal->phase != COW_JOURNAL_PLAIN)
            goto done;
    if (found > 0 && (found = cow_anchor_look(&disk, (uint64_t)about.st_size, &anchor)) > 0)
        found = cow_journal_has_state(&disk, &anchor);
    cow_error_clear();
done:
    cow_disk_close(&disk);
    return found != 0;
}

int cow_journal_sync_name(const char *name)
{
    return cow_disk_sync_folder(default_calls(), name);
}

bool cow_journal_alone(const cow_journal *journal)
{
    uint64_t pin;
    bool alone;

    if (!cow_journal_writer(journal) || cow_lock_lowest_pin(&journal->lock, &pin) < 0 || pin != COW_NOWHERE)
        return false;
    alone = cow_lock_against_stock(&journal->lock);
    cow_lock_against_stock_stop(&journal->lock);
    return alone;
}

static bool holds_nothing(const char *name, bool also_empty, bool *abandoned)
{
    struct stat about;
    cow_disk disk;
    bool found = false;

    *abandoned = false;
    if (cow_disk_open(&disk, default_calls(), name, O_RDONLY | O_NONBLOCK) < 0)
        return false;
    if (disk.calls->fstat(disk.calls->context, disk.fd, &about) == 0 && S_ISREG(about.st_mode))
        found = about.st_size == 0 ? also_empty : find_mark(&disk, (uint64_t)about.st_size);
    found = found && !cow_journal_present(name);
    *abandoned = found && !cow_lock_is_writing(&disk);
    cow_disk_close(&disk);
    return found;
}

bool cow_journal_unfinished(const char *name, bool *abandoned)
{
    return holds_nothing(name, false, abandoned);
}

bool cow_journal_holds_nothing(const char *name, bool *abandoned)
{
    return holds_nothing(name, true, abandoned);
}

cow_journal *cow_journal_reference(cow_journal *journal)
{
    journal->references++;
    return journal;
}

bool cow_journal_extended_superblock(const cow_journal *journal)
{
    return journal->extension != COW_NOWHERE;
}

/* ---- reading ---- */

/* What HDF5 wrote there: no fence, no flag. */
static int hide_fence(const cow_journal *journal, uint64_t address, uint8_t *buffer, size_t size)
{
    uint64_t base = journal->anchor.base, from, to, extension;
    uint8_t superblock[COW_SUPERBLOCK_MAX];
    size_t length;

    if (!cow_journal_overlap(address, size, base, COW_SUPERBLOCK_MAX))
        return 0;
    if (cow_journal_read_raw(journal, base, superblock, sizeof superblock) < 0)
        return -1;
    if ((length = cow_superblock_size(superblock)) == 0 || !cow_superblock_whole(superblock))
        return 0;
    extension = cow_superblock_extension(superblock);
    cow_superblock_set(superblock, extension == cow_journal_fence(journal) ? journal->extension : extension, false);
    from = address > base ? address : base;
    to = address + size < base + length ? address + size : base + length;
    if (from < to)
        memcpy(buffer + (from - address), superblock + (from - base), (size_t)(to - from));
    return 0;
}

int cow_journal_read(cow_journal *journal, uint64_t address, void *buffer, size_t size)
{
    if (journal->phase == COW_JOURNAL_PLAIN)
        return cow_disk_read(&journal->disk, address, buffer, size);
    if (cow_journal_overlap(address, size, journal->lost, journal->lost_end - journal->lost))
        return cow_error(COW_MEMORY, "%s: what was written there is lost since an earlier failure (%s)", journal->name,
                         journal->failure);
    if (cow_journal_read_raw(journal, address, buffer, size) < 0)
        return -1;
    return journal->placed ? hide_fence(journal, address, buffer, size) : 0;
}

bool cow_journal_look(cow_journal *journal, uint64_t address, void *buffer, size_t size)
{
    cow_error_held *held = cow_error_hold();
    int status = cow_journal_read(journal, address, buffer, size);

    if (status < 0)
        cow_error_clear();
    cow_error_put_back(held);
    return status == 0;
}

void cow_journal_expect(cow_journal *journal, const void *buffer, size_t size)
{
    journal->expects = buffer;
    journal->expects_size = size;
    journal->expected = COW_NOWHERE;
}

bool cow_journal_meets(cow_journal *journal, uint64_t address, const void *buffer, size_t size)
{
    if (journal->expects == NULL || journal->expects != buffer || journal->expects_size != size ||
        !cow_journal_in_place(journal, address, size) ||
        cow_journal_overlap(address, size, journal->lost, journal->lost_end - journal->lost))
        return false;
    journal->expected = address;
    return true;
}

void cow_journal_stores(cow_journal *journal, uint64_t address, const void *buffer, size_t size)
{
    if (journal->expects != NULL && journal->expects == buffer && journal->expects_size == size)
        journal->expected = address;
}

bool cow_journal_expected(cow_journal *journal, uint64_t *address)
{
    *address = journal->expected;
    journal->expects = NULL;
    return *address != COW_NOWHERE;
}

bool cow_journal_bring(const cow_journal *journal, uint64_t address, const struct iovec parts[], size_t n)
{
    return cow_disk_read_parts(&journal->disk, address, parts, n);
}

bool cow_journal_in_place(const cow_journal *journal, uint64_t address, uint64_t size)
{
    if (cow_disk_settle(&journal->disk, address, size) < 0) {
        cow_error_clear(); /* the commit says so */
        return false;
    }
    return journal->phase == COW_JOURNAL_PLAIN || journal->slot.sequence == 0 ||
           (!cow_overlay_touches(journal->merged, address, size) &&
            !cow_overlay_touches(journal->overlay, address, size));
}

cow_bytes_of_file cow_journal_bytes(const cow_journal *journal, uint64_t *base)
{
    *base = journal->anchor.base;
    if (journal->phase == COW_JOURNAL_PLAIN || !journal->placed || journal->slot.sequence == 0)
        return COW_BYTES_UNKNOWN;
    return journal->phase == COW_JOURNAL_READING ? COW_BYTES_STAY : COW_BYTES_CHANGE;
}

void cow_journal_stamp_of(const cow_journal *journal, cow_journal_stamp *stamp)
{
    memset(stamp, 0, sizeof *stamp); /* they are compared as bytes */
    stamp->device = journal->device;
    stamp->inode = journal->inode;
    stamp->sequence = journal->slot.sequence;
    memcpy(stamp->id, journal->anchor.id, sizeof stamp->id);
}

uint64_t cow_journal_end(const cow_journal *journal)
{
    return journal->end;
}

/* ---- writing ---- */

/* A file that was reached round the connector may be written with what it has already, but for HDF5's mark on the
 * superblock: HDF5 does that when opening and closing. */
static int write_reader(cow_journal *journal, uint64_t address, const uint8_t *bytes, size_t size)
{
    uint8_t now[4096], superblock[COW_SUPERBLOCK_MAX];

    if (address == journal->anchor.base && size <= sizeof superblock && size >= 12 &&
        cow_superblock_size(bytes) == size) {
        memcpy(superblock, bytes, size);
        cow_superblock_set(superblock, cow_superblock_extension(superblock), false);
        bytes = superblock;
    }
    for (size_t done = 0, n; done < size; done += n) {
        n = size - done < sizeof now ? size - done : sizeof now;
        if (cow_journal_read(journal, address + done, now, n) < 0)
            return -1;
        if (memcmp(now, bytes + done, n) != 0)
            return cow_error(COW_READ_ONLY,
                             "%s: a file with history cannot be written through an external link, a virtual dataset or "
                             "a mount; open the file itself",
                             journal->name);
    }
    return 0;
}

/* HDF5 shall read what it wrote while it shuts the file down. */
static void keep_for_reading(cow_journal *journal, uint64_t address, const uint8_t *bytes, size_t size)
{
    if (cow_overlay_write(journal->overlay, address, bytes, size) == 0)
        return;
    cow_error_clear();
    if (journal->lost == journal->lost_end)
        journal->lost = journal->lost_end = address;
    if (address < journal->lost)
        journal->lost = address;
    if (address + size > journal->lost_end)
        journal->lost_end = address + size;
}

static int write_direct(cow_journal *journal, uint64_t address, const uint8_t *bytes, size_t size)
{
    /* not into a file that is another program's by now */
    if (journal->phase != COW_JOURNAL_PLAIN && journal->unchecked >= CHECK_BYTES && cow_journal_check_file(journal) < 0)
        return -1;
    if ((journal->phase == COW_JOURNAL_PLAIN ? cow_disk_write : cow_disk_put)(&journal->disk, address, bytes, size) < 0)
        return -1;
    journal->direct = true;
    if (size >= LARGE_WRITE) {
        if (address != journal->bulk_end)
            journal->bulk = address;
        journal->bulk_end = address + size;
    }
    journal->unchecked += size;
    if (address + size > journal->size)
        journal->size = address + size;
    return 0;
}

int cow_journal_write(cow_journal *journal, uint64_t address, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    uint64_t behind;
    size_t below;
    int status = 0;

    if (size == 0)
        return 0;
    if (!cow_journal_ours(journal))
        return 0; /* a forked child closes what its parent has open: not its business */
    if (journal->phase == COW_JOURNAL_READING || journal->borrowed)
        return write_reader(journal, address, bytes, size);
    if (address + size > journal->end)
        journal->end = address + size;
    if (journal->phase == COW_JOURNAL_PLAIN)
        return write_direct(journal, address, bytes, size);
    if (cow_journal_sticky(journal)) {
        keep_for_reading(journal, address, bytes, size);
        return 0;
    }
    journal->phase = COW_JOURNAL_OPEN;
    below = address >= journal->protect         ? 0
            : journal->protect - address < size ? (size_t)(journal->protect - address)
                                                : size;
    if (below < size && (cow_journal_in_use(journal, address + below, size - below, &behind) ||
                         cow_overlay_touches(journal->overlay, address + below, size - below) ||
                         cow_overlay_touches(journal->merged, address + below, size - below)))
        below = size; /* an extent is there, or bytes that would stand in front of these */
    if (below > 0)
        status = cow_overlay_write(journal->overlay, address, from, below);
    if (status == 0 && below < size)
        status = write_direct(journal, address + below, from + below, size - below);
    if (status < 0) {
        cow_journal_fail(journal, COW_JOURNAL_ABORTED, "nothing more of this opening is committed");
        cow_error_clear();
        keep_for_reading(journal, address, bytes, size);
    }
    return 0;
}

int cow_journal_truncate(cow_journal *journal, uint64_t end)
{
    if (!cow_journal_ours(journal) || journal->phase == COW_JOURNAL_READING || journal->borrowed || end == journal->end)
        return 0;
    if (journal->phase == COW_JOURNAL_PLAIN && cow_disk_truncate(&journal->disk, end) < 0)
        return -1;
    journal->end = end;
    if (journal->phase == COW_JOURNAL_IDLE)
        journal->phase = COW_JOURNAL_OPEN;
    return 0;
}

void cow_journal_abort(cow_journal *journal, const char *why)
{
    if (!cow_journal_ours(journal) || !cow_journal_writer(journal) || cow_journal_sticky(journal))
        return;
    journal->phase = COW_JOURNAL_ABORTED;
    snprintf(journal->failure, sizeof journal->failure, "%s", why);
}

int cow_journal_abandon(cow_journal *journal, const char *why, const char *instead)
{
    if (!cow_journal_ours(journal) || !cow_journal_writer(journal) || cow_journal_sticky(journal))
        return 0;
    if (instead != NULL && (journal->instead = strdup(instead)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory", journal->name);
    cow_journal_abort(journal, why);
    journal->abandoned = true;
    return 0;
}

/* ---- address space ---- */

uint64_t cow_journal_stored_end(const cow_journal *journal)
{
    return journal->slot.sequence == 0 ? 0 : cow_superblock_end(journal->slot.superblock);
}

static void add_reserve(cow_journal *journal, uint64_t address, uint64_t length)
{
    cow_range *smallest = journal->slot.reserve;

    for (unsigned i = 0; i < COW_RESERVES; i++) {
        cow_range *reserve = &journal->slot.reserve[i];
        if (cow_journal_overlap(address, length, reserve->address, reserve->length))
            return;
        if (reserve->length < smallest->length)
            smallest = reserve;
    }
    if (smallest->length < length)
        *smallest = (cow_range){address, length};
}

/* Move *AT, where SIZE bytes are wanted, behind [address, address + length) if that is in the way. */
static bool jump(cow_journal *journal, uint64_t *at, uint64_t size, uint64_t alignment, uint64_t address,
                 uint64_t length, bool extent)
{
    uint64_t room = length, to, old = *at;

    if (!cow_journal_overlap(*at, size, address, length) || (extent && length > JUMP_LIMIT && length > size))
        return false;
    /* extents that grow little by little shall not outgrow the place again and again */
    if (extent)
        for (room = COW_BLOCK; room < length;)
            room *= 2;
    to = address + room;
    if (alignment > 1 && (to - *at) % alignment != 0)
        to += alignment - (to - *at) % alignment;
    *at = to;
    if (extent && address >= old)
        add_reserve(journal, address, room);
    return true;
}

void cow_journal_reach(cow_journal *journal, uint64_t end)
{
    if (journal->beyond < end)
        journal->beyond = end;
}

/* HDF5 takes what is new at its end for empty, and gives out what it does not write of it. There may be records of ours, which nobody needs, or
 * which are needed where they are: then the zeros go to the overlay. */
static void empty(cow_journal *journal, uint64_t address, uint64_t size)
{
    static const uint8_t zeros[4096];
    const uint64_t end = address + size < journal->size ? address + size : journal->size;

    while (address < end) {
        const size_t n = end - address < sizeof zeros ? (size_t)(end - address) : sizeof zeros;

        if (cow_journal_write(journal, address, zeros, n) < 0)
            break;
        address += n;
    }
    cow_error_clear();
}

uint64_t cow_journal_allocate(cow_journal *journal, uint64_t base, uint64_t alignment, bool paged, uint64_t size,
                              uint64_t *end)
{
    uint64_t at = *end;
    const bool unbroken = paged || at % alignment != 0;
    bool moved = true;

    if (!cow_journal_writer(journal)) {
        *end += size;
        return at;
    }
    if (!journal->placed) {
        /* the first block of a new file, with the superblock; the anchor comes next */
        cow_anchor_place(&journal->anchor, base, at + size, paged ? size : 1);
        journal->placed = true;
        journal->protect = journal->anchor.end;
        if (cow_disk_write(&journal->disk, base, COW_UNFINISHED, COW_UNFINISHED_SIZE) < 0)
            cow_journal_fail(journal, COW_JOURNAL_ABORTED,
                             "the file cannot be created"); /* the commit will report it */
        cow_error_clear();
        *end = journal->anchor.end;
        journal->gap = paged ? 0 : at + size;
        return at;
    }
    if (journal->gap > 0 && alignment == 1 && size <= journal->anchor.address - journal->gap) {
        at = journal->gap;
        journal->gap += size;
        return at;
    }
    /* By pages HDF5 counts on an unbroken address space: what lies over an extent then goes through the overlay. So also
     * where it aligns: it uses what it skips, from the old end on, for something else. */
    while (moved && !unbroken) {
        moved = false;
        for (size_t i = 0; i < journal->pending_count; i++)
            moved |= jump(journal, &at, size, alignment, journal->pending[i].name.address,
                          journal->pending[i].name.length, true);
        for (size_t i = 0; i < journal->dying_count; i++)
            moved |= jump(journal, &at, size, alignment, journal->dying[i].address, journal->dying[i].length, true);
        for (unsigned i = 0; i < COW_RESERVES; i++)
            moved |= jump(journal, &at, size, alignment, journal->slot.reserve[i].address,
                          journal->slot.reserve[i].length, false);
    }
    *end = at;
    cow_journal_extended(journal, at, at + size);
    if (unbroken)
        empty(journal, at, size);
    *end = at + size;
    return at;
}

void cow_journal_extended(cow_journal *journal, uint64_t old_end, uint64_t new_end)
{
    if (new_end < journal->beyond)
        journal->beyond = new_end; /* it has freed some of that, at the end of the file */
    if (!cow_journal_writer(journal) || new_end <= old_end)
        return;
    for (unsigned i = 0; i < COW_RESERVES; i++) /* HDF5's now */
        if (cow_journal_overlap(old_end, new_end - old_end, journal->slot.reserve[i].address,
                                journal->slot.reserve[i].length))
            journal->slot.reserve[i] = (cow_range){0, 0};
}
