/* What of a file's objects the hash of a state does not tell, in the new file of h5cow gc --compact: their times, which it gets, and
 * how chunked datasets are stored, which is compared. */
#ifndef CLI_COMPACT_TREE_H
#define CLI_COMPACT_TREE_H

#include "tables.h"

#include "base/newfile.h"

/* NAME: the old file, ROWS its log. Nobody has NEW open. 0; or CLI_FAILED, and said why on standard error. */
int cli_compact_tree(const char *name, const cli_version *rows, size_t count, const cow_newfile *new);

#endif
