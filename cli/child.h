/* The command's own process, and the program that `run` and `doctor --program` start. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "watch.h"

#include <stdbool.h>

/* Makes this process one that writes files: the standard files are open, and a limit on the size of files is an error of the
 * call that writes, as a full disk is. What is started later has both as this process had them. */
void cli_child_settle(void);

/* In a process that was forked because libhdf5 may crash in it: what the C library writes to standard error when it ends
 * a process ("free(): invalid pointer") is dropped, as its parent says that better. What the command says is not. */
void cli_child_quiet(void);

/* Is this how libhdf5 ends on damaged bytes, and not what somebody has sent, or a limit? */
bool cli_is_crash(int signal);

/* Runs COMMAND to its end, passes on signals, and lets WATCH, unless that is NULL, look at it. Its standard output goes to the descriptor OUT. The
 * exit code is the command's, 128 + N when signal N ended it; 126 or 127, after saying why, and *RAN false, when it cannot
 * be run. */
int cli_child_run(char **command, int out, cli_watch *watch, bool *ran);

#endif
