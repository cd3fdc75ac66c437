/* Protecting files. Contract: protect.h. */
#include "journal/protect.h"

#include "base/error.h"
#include "journal/internal.h"
#include "journal/locks.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

unsigned cow_protection_of(const char *name)
{
    cow_disk disk;
    unsigned withheld;

    if (cow_disk_open(&disk, &cow_disk_system, name, O_RDONLY) < 0)
        return 0;
    withheld = cow_withheld_in(&disk);
    cow_disk_close(&disk);
    return withheld;
}

int cow_protection_open(const char *name, int flags)
{
    cow_disk disk;

    return cow_permission_open(&disk, &cow_disk_system, name, flags) < 0 ? -1 : disk.fd;
}

mode_t cow_protection_mode(mode_t mode, unsigned withheld)
{
    return mode | cow_withheld_mode(withheld);
}

static int protect(cow_journal *journal)
{
    const char *name = cow_journal_name(journal);
    struct stat about;

    if (journal->slot.withheld != 0)
        return 0; /* opening has taken away what was there */
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    if (about.st_uid != geteuid() && geteuid() != 0)
        return cow_error(COW_READ_ONLY, "%s: only its owner can protect a file", name);
    /* first what says it, so that a crash leaves no file that its owner cannot write */
    journal->slot.withheld = cow_withheld_of(about.st_mode);
    if (cow_journal_put_slot(journal) < 0)
        return -1;
    cow_withhold(journal);
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    if (cow_withheld_of(about.st_mode) == COW_WITHHELD || cow_lock_is_lifted(&journal->disk))
        return 0;
    journal->slot.withheld = 0;
    if (cow_journal_put_slot(journal) < 0)
        return -1;
    return cow_error(
        COW_UNSUPPORTED,
        "%s: the file system keeps no permissions (permission to write could not be taken away), so the file "
        "cannot be protected here",
        name);
}

static int unprotect(cow_journal *journal)
{
    struct stat about;

    if (journal->slot.withheld == 0)
        return 0;
    if (cow_disk_about(&journal->disk, &about) < 0)
        return -1;
    /* first the permissions: after a crash it is protected as before */
    if (fchmod(journal->disk.fd, (about.st_mode | cow_withheld_mode((unsigned)journal->slot.withheld)) & 07777) < 0)
        return cow_error(COW_IO, "%s: cannot give back permission to write: %s", cow_journal_name(journal),
                         strerror(errno));
    journal->slot.withheld = 0;
    return cow_journal_put_slot(journal);
}

static int change(const char *name, int (*how)(cow_journal *journal), int *number)
{
    cow_journal *journal = cow_journal_open(name, (cow_journal_mode){.writable = true}, &cow_journal_defaults, number);
    cow_error_held *held;
    int status;

    if (journal == NULL)
        return -1;
    if (cow_journal_plain(journal) || journal->slot.sequence == 0)
        status =
            cow_error(COW_UNSUPPORTED, "%s: the file has no history, and only a file with history is protected", name);
    else
        status = how(journal);
    held = cow_error_hold();
    cow_journal_close(journal);
    cow_error_put_back(held);
    return status;
}

int cow_protect(const char *name, bool on, int *number)
{
    return change(name, on ? protect : unprotect, number);
}

int cow_protect_as(const char *name, unsigned withheld)
{
    int number, status;
    cow_journal *journal = cow_journal_open(name, (cow_journal_mode){.writable = true}, &cow_journal_defaults, &number);
    cow_error_held *held;

    if (journal == NULL)
        return -1;
    journal->slot.withheld = withheld;
    status = cow_journal_plain(journal) || journal->slot.sequence == 0 ? 0 : cow_journal_put_slot(journal);
    held = cow_error_hold();
    cow_journal_close(journal);
    cow_error_put_back(held);
    return status;
}

int cow_protection_lift(const char *name)
{
    struct stat about;
    unsigned withheld;
    cow_disk disk;

    if (cow_disk_open(&disk, &cow_disk_system, name, O_RDONLY) < 0)
        return -1;
    withheld = cow_withheld_in(&disk);
    if (cow_lock_lift(&disk) == 0 && fstat(disk.fd, &about) == 0 &&
        fchmod(disk.fd, (about.st_mode | cow_withheld_mode(withheld)) & 07777) == 0)
        return disk.fd;
    cow_disk_close(&disk);
    return -1;
}

void cow_protection_restore(int lifted)
{
    cow_disk disk = {.calls = &cow_disk_system, .fd = lifted, .name = "the file"};
    struct stat about;

    cow_lock_release(&disk);
    if (cow_withheld_in(&disk) != 0 && !cow_lock_is_lifted(&disk) && fstat(lifted, &about) == 0)
        fchmod(lifted, about.st_mode & 07777 & ~(mode_t)(S_IWUSR | S_IWGRP | S_IWOTH));
    cow_disk_close(&disk);
}
