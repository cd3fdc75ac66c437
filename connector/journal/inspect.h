/* Looking at a journal without changing anything, for the command: what is pending or half done in a file; states other
 * than the newest, for files that are damaged; a copy of a state that a reader sees.
 *
 * Functions return 0 or -1 and a recorded error. */
#ifndef COW_JOURNAL_INSPECT_H
#define COW_JOURNAL_INSPECT_H

#include "journal/journal.h"
#include "journal/overlay.h"

#define COW_REPORT_PINS 16

typedef struct cow_journal_extent_note {
    uint64_t after, sequence; /* it turns the state AFTER into the state SEQUENCE */
    uint64_t bytes;           /* of the record */
} cow_journal_extent_note;

/* Of a slot that is valid: docs/format.md, "Journal". */
typedef struct cow_journal_slot_note {
    uint64_t sequence, applied; /* N and A */
    uint64_t end;               /* of state N */
    bool unsynced;
} cow_journal_slot_note;

/* What was found at one moment; nothing is kept open or locked. */
typedef struct cow_journal_report {
    uint64_t size;   /* of the file, bytes */
    bool journal;    /* it has an anchor with a state */
    bool hidden;     /* its superblock does not lead to it: opening takes it for a file without a journal */
    bool unfinished; /* it was being created, and nothing was ever committed */
    bool valid[2];   /* the slots */
    bool blank[2];   /* nothing was ever written there */
    bool whole[2];   /* all extents that the slot needs are there and right */
    cow_journal_slot_note slot[2];
    int newest;                      /* the valid slot of the higher generation, -1: none */
    cow_journal_extent_note *extent; /* pending commits of that slot, oldest first */
    size_t extents;
    bool superblock_whole;         /* in the file itself, not what the slots say */
    bool flagged;                  /* "being written": applying was begun and not finished */
    bool stale;                    /* it is not that of the applied state */
    uint64_t need;                 /* the file's size when all that is not needed is given back */
    bool writing;                  /* somebody has the file open for writing */
    char writer[256];              /* who */
    uint64_t pin[COW_REPORT_PINS]; /* states that readers through h5cow have open, lowest first */
    size_t pins;
} cow_journal_report;

/* What a history is known by, wherever its file is. */
typedef struct cow_journal_identity {
    uint8_t id[16];
    uint64_t sequence; /* its newest commit */
} cow_journal_identity;

/* Records no error. False: the file NAME has no journal with a commit, or cannot be read. */
bool cow_journal_identify(const char *name, cow_journal_identity *identity);

int cow_journal_inspect(const char *name, cow_journal_report *report);
void cow_journal_report_free(cow_journal_report *report);

/* Cut off a file whose creation was never committed, under the writer's lock; a user block stays. */
int cow_journal_drop_unfinished(const char *name);

/* ---- states of damaged files ---- */

typedef enum cow_choice_state {
    COW_CHOICE_NEWEST,  /* the newest slot that is valid, also where the file was cut off */
    COW_CHOICE_OLDER,   /* the other one */
    COW_CHOICE_APPLIED, /* what the file's own bytes are, whatever the slots say */
} cow_choice_state;

/* Option `choice` of cow_journal_options: opens a state read-only, and with less asked than else. As long as that
 * journal is open, everything that opens the file in this process sees the same state. */
typedef struct cow_journal_choice {
    cow_choice_state state;
    const cow_overlay *patches; /* bytes that stand in front of all others; NULL: none */
    uint64_t end;               /* the state ends there at least */
    bool locked;                /* the caller has the writer's lock; else nobody may have it */
} cow_journal_choice;

struct cow_journal;
int cow_journal_load_choice(struct cow_journal *journal, const cow_journal_choice *choice);
/* Address of the superblock. */
uint64_t cow_journal_base(const cow_journal *journal);

/* ---- a copy ---- */

/* Write the state that JOURNAL has open for reading into the empty file TO, as a file of its own: all history, the
 * fence, a journal with nothing pending. What is sparse stays so. */
int cow_journal_copy(const cow_journal *journal, int to);
/* The file NAME, which nobody else has, gets the identity ID: what was made of a file with history, and has all of it, is found by it, and
 * has its label. -1: it is as it was. */
int cow_journal_identify_as(const char *name, const uint8_t id[16]);

#endif
