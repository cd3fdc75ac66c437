/* Opening protected files: withhold.c. The owner adds the own permission to write for the moment of opening, and takes it away
 * again; a process that is killed in that moment leaves it there, and the next one that opens the file takes it away. */
#include "journal/internal.h"

#include "base/error.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#define TRIES 200 /* of a millisecond: somebody else may take away what was just added */

unsigned cow_withheld_in(const cow_disk *disk)
{
    cow_journal_slot_pair pair = {0};
    cow_anchor anchor;
    struct stat about;
    int which = -1;

    if (disk->calls->fstat(disk->calls->context, disk->fd, &about) == 0 && S_ISREG(about.st_mode) &&
        cow_anchor_look(disk, (uint64_t)about.st_size, &anchor) > 0 &&
        cow_journal_slots_read(disk, &anchor, &pair) == 0)
        which = cow_journal_slots_newest(&pair);
    cow_error_clear();
    return which < 0 ? 0 : (unsigned)pair.slot[which].withheld;
}

/* Adds the owner's permission to the file that LOOK is to have open. false: it is not a protected file of this user. */
static bool lift(cow_disk *look, const cow_disk_calls *calls, const char *name)
{
    struct stat about;

    if (cow_disk_open(look, calls, name, O_RDONLY) < 0)
        return false;
    if (calls->fstat(calls->context, look->fd, &about) == 0 && about.st_uid == geteuid() &&
        cow_withheld_in(look) != 0 && calls->chmod(calls->context, look->fd, (about.st_mode | S_IWUSR) & 07777) == 0)
        return true;
    cow_disk_close(look);
    return false;
}

int cow_permission_open(cow_disk *disk, const cow_disk_calls *calls, const char *name, int flags)
{
    const struct timespec moment = {0, 1000000};
    cow_disk look;

    for (unsigned i = 0; cow_disk_open(disk, calls, name, flags) < 0; i++) {
        const int number = errno;
        int status;

        if (number != EACCES || (flags & O_ACCMODE) == O_RDONLY || calls->chmod == NULL || i == TRIES ||
            !lift(&look, calls, name)) {
            errno = number;
            return -1;
        }
        status = cow_disk_open(disk, calls, name, flags);
        cow_withhold_from(&look);
        cow_disk_close(&look);
        if (status == 0)
            return 0;
        if (i > 0)
            nanosleep(&moment, NULL);
    }
    return 0;
}
