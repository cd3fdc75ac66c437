/* h5cow recover: what its parts share.
 *
 *   recover.c        the verb: what is pending in a file, finishing it, checking it
 *   salvage.c        what can be read of a damaged file, into a new one: the process that tries, and the report
 *   salvage_state.c  finding a state of the damaged file that HDF5 can open
 *   salvage_tree.c   groups, links, attributes, version by version
 *   salvage_data.c   elements, chunk by chunk
 */
#ifndef CLI_RECOVER_H
#define CLI_RECOVER_H

#include "common.h"

#include "base/newfile.h"
#include "journal/inspect.h"

#include <sys/types.h>

/* The check of h5cow verify, of NAME. 0, *DAMAGES (array) and *COUNTS to be given back; or CLI_FAILED, and said why. */
int cli_verify_file(const char *name, bool verbose, json_object **damages, json_object **counts);
/* Hear a child out: HEAR gets each line that it writes to FROM, without its end. True: it computed for SILENCE seconds
 * without a word, so it is caught in a loop, and was killed. Waiting for it to end is left to the caller. */
bool cli_hear(pid_t id, int from, double silence, void (*hear)(void *context, const char *line), void *context);
/* What `verify` prints of one damage. */
void cli_verify_print(const char *name, size_t number, json_object *damage);
/* Where a history with DAMAGES is that of a file that another program has rewritten: a sentence that says so, free() it;
 * else NULL. */
char *cli_verify_rewritten(const char *name, json_object *damages);

/* All of NAME, which nobody writes, into the empty file NEW: every version, every row of its log. 0; or
 * CLI_FAILED and said why, also of what would be lost. */
int cli_salvage_whole(const char *name, const cow_newfile *new);
/* The exit code. OUT does not exist. */
int cli_salvage(const char *name, const char *out, bool dry, bool json);

#endif
