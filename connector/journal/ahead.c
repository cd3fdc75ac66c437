/* Room on the disk for what waits in memory, so that a full disk is the error of the call that writes, and not of the commit: contract in
 * journal.h.
 *
 * The room lies behind everything that is in the file: there HDF5 puts what is new, and commits their records. It is taken by megabytes,
 * more at once the more was needed already, and the file does not get longer by it. What is left is given back at the end; of a process that
 * is killed, by the next one that commits.
 *
 * Not everything is counted: what HDF5 keeps in its metadata cache, and what is changed of the former state. COMMIT is for that. It need not be
 * enough: then the commit fails. */
#include "journal/internal.h"

#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define PAGE   ((uint64_t)4096)
#define STEP   ((uint64_t)1 << 20)
#define LARGE  ((uint64_t)16 << 20) /* the largest step */
#define COMMIT ((uint64_t)64 << 10) /* what belongs to the head and the version beside the chunks */
#define INDEX  64 /* of what is new, one part more is for indexes of heads: 128 bytes for a chunk of 8 KiB */
/* As much waits in HDF5's own buffer, natively: its lack of room is told when the dataset, or the file, is flushed or closed. */
#define UNASKED ((uint64_t)64 << 10)
/* Where a disk has so much free, nothing is taken for the first STEP of an opening: a small session would pay for it with half its time. */
#define PLENTY ((uint64_t)64 << 20)

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Is there far more room than a small session needs, and may the file end at END? Quotas are not seen. */
static bool plenty(const cow_journal *journal, uint64_t end)
{
    struct statvfs about;
    struct rlimit limit;

    return journal->disk.calls == &cow_disk_system && fstatvfs(journal->disk.fd, &about) == 0 &&
           (uint64_t)about.f_bavail >= PLENTY / (about.f_frsize > 0 ? about.f_frsize : 1) &&
           getrlimit(RLIMIT_FSIZE, &limit) == 0 && (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= end);
}

/* Room from what is there to END. 1: it is taken; 0: nothing can be taken on this file system; -1: there is none, errno says why. */
static int take(cow_journal *journal, uint64_t from, uint64_t end)
{
    int status = cow_disk_ahead(&journal->disk, from, end - from);

    if (status <= 0)
        return status == 0 ? 0 : -1;
    if (from != journal->ahead_end)
        journal->ahead = from;
    journal->ahead_end = end;
    journal->ahead_step = journal->ahead_step * 2 < LARGE ? journal->ahead_step * 2 : LARGE;
    return 1;
}

int cow_journal_room(cow_journal *journal, uint64_t bytes, bool all)
{
    const uint64_t waits = journal->waiting + bytes;
    uint64_t from, end, written;
    int status;

    if (!cow_journal_writer(journal) || !cow_journal_ours(journal) || cow_journal_sticky(journal) ||
        journal->borrowed || !journal->placed || journal->never_ahead || waits > COW_FILE_LIMIT)
        return 0;
    from = larger(larger(journal->end, journal->protect), journal->size);
    if (journal->unasked == 0)
        journal->unasked = from + UNASKED;
    if ((!all || journal->ahead_step > 0) && from + waits <= journal->unasked)
        return 0;
    if (journal->ahead_step == 0) { /* asked for the first time */
        journal->ahead_step = STEP;
        if (waits <= STEP && plenty(journal, from + 2 * STEP)) {
            journal->unasked = from + STEP;
            return 0;
        }
    }
    end = from + waits;
    end += COMMIT + (end > journal->committed_end ? (end - journal->committed_end) / INDEX : 0);
    end = (end + PAGE - 1) / PAGE * PAGE;
    if (end <= journal->ahead_end)
        return 0;
    /* between the two is what waits in pages; or else a hole, which may stay one */
    written = cow_disk_written(&journal->disk, journal->size);
    if (written < from && from - written <= STEP)
        from = written;
    from = larger(from / PAGE * PAGE, journal->ahead_end);
    if ((status = take(journal, from, end + journal->ahead_step)) < 0)
        status = take(journal, from, end);
    journal->never_ahead = status == 0;
    if (status >= 0)
        return 0;
    return cow_error(COW_IO,
                     "%s: there is no room for what is written: errno = %d, error message = '%s'; make room and write "
                     "it again",
                     journal->name, errno, strerror(errno));
}

int cow_journal_promise(cow_journal *journal, uint64_t bytes)
{
    if (cow_journal_room(journal, bytes, false) < 0)
        return -1;
    journal->waiting += bytes;
    return 0;
}

void cow_journal_promised(cow_journal *journal, uint64_t bytes)
{
    journal->waiting -= bytes;
}

bool cow_journal_is_ahead(const cow_journal *journal, uint64_t address, uint64_t size)
{
    return address >= journal->ahead && address + size <= journal->ahead_end;
}

uint64_t cow_journal_ahead_of(const cow_journal *journal, uint64_t size)
{
    const uint64_t from = larger(size, journal->ahead);

    return journal->ahead_end > from ? journal->ahead_end - from : 0;
}

void cow_journal_give_back(cow_journal *journal)
{
    struct stat about;

    /* Who has written nothing leaves the file's times alone. A file that has grown beyond has none, or is another program's by now. */
    if ((journal->ahead_end > 0 || journal->renewed) && cow_disk_about(&journal->disk, &about) == 0) {
        const uint64_t size = (uint64_t)about.st_size;
        const bool left = (uint64_t)about.st_blocks * 512 > size + STEP / 2; /* by a process that was killed */

        if (size < journal->ahead_end || (journal->renewed && left))
            cow_disk_truncate(&journal->disk, size);
    }
    journal->ahead = journal->ahead_end = 0;
}
