/* The program that `run` and `doctor --program` start. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "watch.h"

#include <stdbool.h>

/* Runs COMMAND to its end, passes on signals, and lets WATCH look at it. Its standard output goes to the descriptor OUT. The
 * exit code is the command's, 128 + N when signal N ended it; 126 or 127, after saying why, and *RAN false, when it cannot
 * be run. */
int cli_child_run(char **command, int out, cli_watch *watch, bool *ran);

#endif
