/* Protecting files, and taking that back: what it is, says withhold.c. For the command, and for what makes one file of another.
 *
 * Functions return 0 or -1 and a recorded error. */
#ifndef COW_JOURNAL_PROTECT_H
#define COW_JOURNAL_PROTECT_H

#include <stdbool.h>
#include <sys/types.h>

#define COW_PROTECTED_FOR_OWNER 12u /* as cow_protection_of tells it of a file that only its owner could write */

/* Permissions to write that the file NAME, which is protected, does not have between sessions, for cow_protect_as; 0: it is not
 * protected, or cannot be read. */
unsigned cow_protection_of(const char *name);
/* open(2), also of a protected file of this user that FLAGS want to write. */
int cow_protection_open(const char *name, int flags);
/* MODE with what is WITHHELD. */
mode_t cow_protection_mode(mode_t mode, unsigned withheld);
/* Protect the file NAME, or take that back. *NUMBER: errno where it cannot be opened for writing, else 0. */
int cow_protect(const char *name, bool on, int *number);
/* The file NAME is to be protected as one of which WITHHELD was told; its permissions stay as they are, until it is opened. */
int cow_protect_as(const char *name, unsigned withheld);
/* What is withheld from the protected file NAME is given back as long as this descriptor is open, and not taken away again before.
 * -1: errno says why, nothing is recorded. */
int cow_protection_lift(const char *name);
/* Ends that: takes it away again, if the file is protected still, and closes LIFTED. */
void cow_protection_restore(int lifted);

#endif
