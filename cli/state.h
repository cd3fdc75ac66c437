/* A state of a file that is looked at or compared: a version, the newest state, or a plain file. It is open twice: natively,
 * where a version is a tree below a path and its index says what is stored, and as programs see it. */
#ifndef CLI_STATE_H
#define CLI_STATE_H

#include "common.h"
#include "tables.h"

#include "store/index.h"

typedef struct cli_state {
    cli_file file;
    bool borrowed;    /* `file` is another state's */
    char *root;       /* where its tree is natively: "/", "/_versioned_data/versions/3" */
    char *name;       /* of the version; NULL: the newest state, which no version is, or a plain file */
    hid_t through;    /* as programs see it */
    cow_table *index; /* NULL: the file has no history */
} cli_state;

/* ARGUMENT: FILE or FILE@REV; BESIDE (may be NULL): a state that is open, perhaps of the same file. FILE alone is its newest
 * version, which has the newest state's values, unless that lacks something. 0; or CLI_FAILED, said on standard error. */
int cli_state_open(cli_state *state, const char *verb, const char *argument, const cli_state *beside);
/* Another version, by its NAME, of the file of BESIDE; NULL: the newest state, as it is in no version. */
int cli_state_version(cli_state *state, const cli_state *beside, const char *name);
void cli_state_close(cli_state *state);
/* What is left of a verb's words behind its options: FILE[@REV] and, if it is there, *PATH, else "/". 0, or CLI_FAILED, said. */
int cli_state_words(const char *verb, int argc, char **argv, const char **path);

/* All versions of its file, and the row of its own; cli_versions_free. What has none: said. 0, or CLI_FAILED. */
int cli_state_rows(const cli_state *state, cli_version **rows, size_t *count, size_t *row);
/* The path of the object PATH of this state, natively. free() it. */
char *cli_state_path(const cli_state *state, const char *path);
/* 1: DATASET, opened natively, is in chunks of h5cow: *ROOT; 0: HDF5 keeps it; -1: cli_reason. */
int cli_state_root(const cli_state *state, hid_t dataset, cow_root *root);

#endif
