/* How far a verb is, on the terminal where its errors go: one line, from the second second on, gone when it ends. Elsewhere
 * nothing is shown, and nothing costs anything. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* The user wants none. */
void cli_progress_off(void);
/* Does anybody see how far it is? If not, nobody needs a total. */
bool cli_progress_is_seen(void);
/* DONE of TOTAL; 0: nobody knows how many. WHAT: "versions". As often as one likes; not in a signal handler. */
void cli_progress(const char *what, uint64_t done, uint64_t total);
/* Takes the line away. Before anything is printed; cli_fail and cli_warn do it themselves. */
void cli_progress_end(void);

#endif
