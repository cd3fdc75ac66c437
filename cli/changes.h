/* What changed from one version to another, by what objects hold: one answer for all verbs that tell of change.
 *
 * Versions share what nobody touched, and that costs a look at an address. What a program has written again is another object with,
 * perhaps, the same content: that is compared (diff.h), up to the first difference, and slots that are the same are not read.
 */
#ifndef CLI_CHANGES_H
#define CLI_CHANGES_H

#include "diff.h"
#include "state.h"
#include "tables.h"

typedef struct cli_changes {
    const cli_state *of; /* any state of the file */
    const cli_version *rows;
    size_t count;
    cli_state state[2]; /* those that were compared last */
    size_t row[2];      /* their rows; SIZE_MAX: not open */
} cli_changes;

/* ROWS, with their names, stay the caller's. */
cli_changes cli_changes_of(const cli_state *of, const cli_version *rows, size_t count);
void cli_changes_close(cli_changes *changes);
/* Does the object PATH, or what is below it, differ between the versions of two rows? One of them may not have it. What cannot be compared
 * differs. 1, 0; or -1: a version cannot be opened, said on standard error. */
int cli_changes_between(cli_changes *changes, size_t before, size_t after, const char *path);
/* The same of PATH and all below it, told as DIFF says: its `tell`, `enough` and `context` are the caller's, the rest is filled in here. BEFORE
 * SIZE_MAX: there was nothing. 0, or -1, said. */
int cli_changes_tell(cli_changes *changes, size_t before, size_t after, const char *path, cli_diff *diff);

/* An object, and the row of the version that made it what it is; SIZE_MAX: nobody knows. */
typedef struct cli_subject {
    const char *path;
    size_t row;
    bool known; /* false, before */
} cli_subject;
/* Of COUNT objects of the version of ROW. SNAPSHOTS: address -> row of the version that made it. Only versions that made one of them are
 * opened. 0, or -1, said. */
int cli_changes_last(cli_changes *changes, const cow_map *snapshots, size_t row, cli_subject subject[], size_t count);

#endif
