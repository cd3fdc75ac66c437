/* What a protected file does not have between sessions: permissions to write. Contract: internal.h. Opening one: permission.c. */
#include "journal/internal.h"

#include "base/error.h"
#include "base/witness.h"
#include "journal/locks.h"

#include <unistd.h>

#define WRITE (S_IWUSR | S_IWGRP | S_IWOTH)

unsigned cow_withheld_of(mode_t mode)
{
    return COW_WITHHELD | (mode & S_IWUSR ? 4u : 0) | (mode & S_IWGRP ? 2u : 0) | (mode & S_IWOTH ? 1u : 0);
}

mode_t cow_withheld_mode(unsigned withheld)
{
    return (withheld & 4 ? S_IWUSR : 0) | (withheld & 2 ? S_IWGRP : 0) | (withheld & 1 ? S_IWOTH : 0);
}

void cow_withhold_from(const cow_disk *disk)
{
    const cow_disk_calls *calls = disk->calls;
    struct stat about;

    if (calls->chmod != NULL && calls->fstat(calls->context, disk->fd, &about) == 0 && (about.st_mode & WRITE) != 0 &&
        !cow_lock_is_lifted(disk))
        calls->chmod(calls->context, disk->fd, about.st_mode & 07777 & ~(mode_t)WRITE); /* only its owner can */
}

void cow_withhold(const cow_journal *journal)
{
    if (journal->slot.withheld != 0 && journal->slot.sequence > 0)
        cow_withhold_from(&journal->disk);
}

bool cow_withhold_fails(cow_journal *journal)
{
    struct stat about;

    if (!journal->options.protect || journal->slot.withheld == 0 || journal->phase != COW_JOURNAL_IDLE ||
        journal->disk.calls->fstat(journal->disk.calls->context, journal->disk.fd, &about) < 0 ||
        (about.st_mode & WRITE) == 0 || cow_lock_is_lifted(&journal->disk))
        return false;
    cow_tell("%s: the file is not protected: the file system keeps no permissions", journal->name);
    journal->options.protect = false;
    journal->slot.withheld = 0;
    return true;
}

void cow_withhold_begin(cow_journal *journal)
{
    struct stat about;

    if (journal->options.protect && journal->slot.withheld == 0 && cow_disk_about(&journal->disk, &about) == 0 &&
        (about.st_mode & S_IWUSR) != 0 && journal->disk.calls->chmod != NULL &&
        (about.st_uid == geteuid() || geteuid() == 0))
        journal->slot.withheld = cow_withheld_of(about.st_mode);
    cow_error_clear();
}
