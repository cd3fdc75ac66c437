/* h5cow gc --compact: the file is written anew, smallest, and takes its own place.
 *
 * Every version, its name and number (#N), tags and what was done to the history stay; of forgotten versions their rows in the
 * log. The new file is made beside, compared with the old one version by version, and renamed over it: at every moment there
 * is the old file or the new one. Nobody can write the file meanwhile; who reads it goes on reading the old one. */
#ifndef CLI_COMPACT_H
#define CLI_COMPACT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cli_compact_options {
    bool
        dry; /* make the new file and compare it, but leave the old one in its place: the answer says what it would be */
    bool quiet;    /* no progress bar */
    unsigned wait; /* for another writer, seconds */
} cli_compact_options;

typedef struct cli_compact_answer {
    uint64_t before, after;       /* size of the file, bytes */
    uint64_t versions, forgotten; /* rows of the log: with a tree, and without */
} cli_compact_answer;

/* PATH must not be open in this process. 0, or CLI_FAILED: said why on standard error, and the file is what it was. */
int cli_compact(const char *path, const cli_compact_options *options, cli_compact_answer *answer);

#endif
