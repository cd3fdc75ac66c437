/* Long answers on a terminal go through a pager, as with git. */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>

/* Where standard output is a terminal, what is printed from now on is shown by H5COW_PAGER, or PAGER, or less; an answer that
 * fits onto the screen is shown as it is. An empty H5COW_PAGER or "cat": no pager. The process ends when the reader has. */
void cli_pager_start(void);
/* Does somebody read standard output on a terminal, with a pager or without? Who does wants lines that are not too long; a program
 * that reads it wants all of them. */
bool cli_pager_terminal(void);

#endif
