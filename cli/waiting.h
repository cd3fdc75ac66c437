/* Commits that wait to be applied: how many, and who is in their way. */
#ifndef CLI_WAITING_H
#define CLI_WAITING_H

#include "common.h"
#include "journal/inspect.h"

/* How many commits wait in a file of which R was found. */
uint64_t cli_waiting_count(const cow_journal_report *r);
/* Who is in the way of applying them in the file NAME, "process 12 (python3) has an older state open, ..."; "" where nobody is.
 * free() it. */
char *cli_waiting_why(const char *name, const cow_journal_report *r);
/* "1 commit waits to be applied, ..., so HDF5 without h5cow does not see it: WHY". free() it. NULL: none waits. */
char *cli_waiting_text(const char *name, const cow_journal_report *r);

#endif
