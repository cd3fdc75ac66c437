/* What h5cow forget and squash are asked for, and which versions that is.
 *
 *   forget.c         the verbs
 *   forget_choose.c  which versions go, by their names or by a policy, and what that frees
 *   forget_tell.c    the table of it
 *   gc.c             what is not needed becomes free
 */
#ifndef CLI_FORGET_H
#define CLI_FORGET_H

#include "common.h"
#include "owners.h"
#include "tables.h"

#include "base/keep.h"
#include "h5cow.h"

/* Words of the command line. */
typedef struct cli_words {
    const char **word;
    size_t count, room;
} cli_words;

/* More than 20 fields: what the user asked for, and what follows from it for one file. */
typedef struct cli_forgetting {
    const char *verb;
    bool dry, json, collect;
    unsigned wait; /* for another writer, seconds */
    bool policy;   /* what is kept is given, else what goes */
    cli_words revisions;
    cow_keep keep;
    cli_words kept_tags, kept_revisions;

    /* what follows from it, of the file as it was looked at */
    char *name;
    cli_states states;
    cli_tag *tags;
    size_t tag_count;
    uint32_t *why;   /* of each version: COW_KEEP_..., COW_KEPT_... */
    bool *go;        /* of each version */
    size_t going;    /* how many */
    uint64_t *alone; /* of each version: bytes of chunks that only it has */
    uint64_t *free;  /* of each that goes: bytes that are free once it and the older ones of those that go are gone */
    uint64_t frees;  /* all of these */
    char *trouble;   /* what could not be read, so that this is not all; NULL: nothing */
    h5cow_collect_t collected;
} cli_forgetting;

/* FILE's versions, and which of them go. 0, or the exit code, after saying why not. */
int cli_forget_choose(cli_forgetting *f, const cli_file *file);
void cli_forget_free(cli_forgetting *f);
/* The answer is the exit code. */
int cli_forget_tell(const cli_forgetting *f);

/* gc.c: h5cow_collect, said on standard error when it fails: 0, or CLI_FAILED; FILE is closed then. FORGOTTEN: versions were, by a commit
 * before. */
int cli_gc_collect(hid_t file, bool forgotten, h5cow_collect_t *collected);
/* What it did, as a sentence's end: "12 chunks became free, ...". free() it. */
char *cli_gc_text(const h5cow_collect_t *collected);
void cli_gc_json(json_object *answer, const h5cow_collect_t *collected);

#endif
