/* What the parts of the journal share. From the bottom to the top: state.c (what all ask), ahead.c, write_out.c, commit.c (W3 to W6), recover.c
 * (finding the newest state), choice.c (another one), journal.c (opening, reading, writing), closing.c, image.c, inspect.c (for the command). */
#ifndef COW_JOURNAL_INTERNAL_H
#define COW_JOURNAL_INTERNAL_H

#include "h5/superblock.h"
#include "journal/fence.h"
#include "journal/journal.h"
#include "journal/label.h"
#include "journal/overlay.h"
#include "journal/record.h"

#include <sys/types.h>

/* Stands where the superblock will be until the first commit is applied. */
#define COW_UNFINISHED      "h5cow: not committed yet"
#define COW_UNFINISHED_SIZE (sizeof COW_UNFINISHED - 1) /* in the file it ends without a zero */
/* The anchor lies at most so many bytes behind the superblock: where both are damaged, it is looked for so far. */
#define COW_ANCHOR_DISTANCE ((uint64_t)16 << 20)

typedef enum cow_journal_phase {
    COW_JOURNAL_PLAIN,     /* a file without a journal: everything goes straight through */
    COW_JOURNAL_READING,   /* a pinned state */
    COW_JOURNAL_IDLE,      /* writer, nothing uncommitted */
    COW_JOURNAL_OPEN,      /* something uncommitted */
    COW_JOURNAL_SEALED,    /* the extent is on the disk, the slot not yet */
    COW_JOURNAL_COMMITTED, /* the slot is on the disk: the commit point is behind us */
    COW_JOURNAL_APPLYING,  /* the file's own bytes are being changed */
    COW_JOURNAL_ABORTED,   /* sticky: something failed before the commit point */
    COW_JOURNAL_UNKNOWN,   /* sticky: the commit may or may not have happened */
} cow_journal_phase;

/* A commit that is not applied. */
typedef struct cow_pending {
    cow_journal_extent extent;
    cow_journal_extent_name name;
    cow_overlay *frames;
} cow_pending;

/* Both slots of an anchor, as they are in the file. */
typedef struct cow_journal_slot_pair {
    bool valid[2];
    cow_journal_slot slot[2]; /* where valid */
} cow_journal_slot_pair;

/* More than 20 fields: one opening of a file. The invariants tie them together, and a commit moves most of them at once. */
struct cow_journal {
    cow_journal *next;
    unsigned references;
    pid_t owner;
    dev_t device;
    ino_t inode;
    char *name; /* absolute, so that a change of directory does no harm */
    cow_disk disk;
    cow_disk lock; /* an open file description of its own, which a forked child closes */
    cow_journal_options options;
    cow_journal_phase phase;
    char failure[512];
    struct timespec
        modified;   /* when the state that this writer found was written; stands for the time of its last change */
    bool committed; /* this opening has made a new state */
    bool made;      /* by this opening: the name led nowhere before */
    bool abandoned; /* nothing failed: cow_journal_abandon, whose INSTEAD this is, owned */
    char *instead;

    bool placed; /* the anchor has its place */
    cow_anchor anchor;
    cow_journal_slot slot;  /* the newest one in the file; sequence 0: none yet */
    uint64_t extension;     /* of the newest state's superblock */
    uint64_t committed_end; /* of the newest state */
    cow_pending *pending;   /* (applied, sequence], in order */
    size_t pending_count;
    cow_overlay *merged; /* their frames, newest on top; the superblock always */
    bool trusted;        /* the pending extents were synced: by who wrote a slot with syncing, or by this opening */
    bool renewed;        /* this opening wrote the newest slot */
    bool twice;          /* when it began, both slots named the same state */
    cow_range *dying;    /* extents that the slot before the newest one needs, until the next sync */
    size_t dying_count;
    cow_label label; /* of the next commit, where LABELLED */
    bool labelled;
    bool pinned;   /* reader: slot.sequence is pinned */
    bool borrowed; /* writer, but nothing may be written until the connector takes the file on */

    cow_overlay *overlay;    /* uncommitted bytes below the protected end */
    uint64_t end;            /* of the uncommitted state */
    uint64_t beyond;         /* what was given out without HDF5 ends there: its superblock may not tell yet */
    uint64_t protect;        /* P: below, nothing is changed but by applying */
    uint64_t size;           /* the file is at least that long */
    uint64_t waiting;        /* bytes in memory for which there is room: cow_journal_promise */
    uint64_t ahead;          /* room that was taken behind the end of the file, the last in one piece, begins there */
    uint64_t ahead_end;      /* and ends there; 0: none was taken */
    uint64_t ahead_step;     /* so much more than is needed is taken next */
    uint64_t unasked;        /* the file grows so far before any is taken; 0: it has not grown yet */
    bool never_ahead;        /* the file system cannot */
    uint64_t gap;            /* a new file: what is free between the first block and the anchor begins here; 0: none */
    uint64_t unchecked;      /* bytes written since it was last looked whether the file is still ours */
    bool direct;             /* bytes beyond P were written since the last commit */
    uint64_t bulk, bulk_end; /* of these, the newest large writes that follow one another */
    uint64_t lost, lost_end; /* after a failure: what was written somewhere in there could not be kept for reading */
    bool shorten;            /* cow_journal_shorten */
    double last_apply;
    const void *expects; /* cow_journal_expect; NULL: nothing */
    size_t expects_size;
    uint64_t expected; /* where; COW_NOWHERE: not met yet */
};

/* journal.c */
/* For tests: the calls of files whose options name none, from now on. NULL: the system's. */
void cow_journal_use_calls(const cow_disk_calls *calls);
/* Lets go of everything, without a commit: closing.c. */
void cow_journal_free(cow_journal *journal);

/* state.c */
bool cow_journal_sticky(const cow_journal *journal);
bool cow_journal_writer(const cow_journal *journal);
bool cow_journal_ours(const cow_journal *journal); /* not in a forked child */
int cow_journal_fail(cow_journal *journal, cow_journal_phase phase, const char *what);
/* The newest committed state, raw: with the fence. */
int cow_journal_read_committed(const cow_journal *journal, uint64_t address, void *buffer, size_t size);
/* The uncommitted one, raw. */
int cow_journal_read_raw(const cow_journal *journal, uint64_t address, void *buffer, size_t size);
uint64_t cow_journal_fence(const cow_journal *journal); /* address of the fence header, relative to the base */
/* Have two ranges a byte in common? */
bool cow_journal_overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size);
/* Does [address, address + size) hold a live or dying extent? *BEHIND: the end of one. */
bool cow_journal_in_use(const cow_journal *journal, uint64_t address, uint64_t size, uint64_t *behind);
void cow_journal_assert_state(const cow_journal *journal);
/* No commit yet: does the file hold nothing but what this opening wrote? */
bool cow_journal_is_begun(const cow_journal *journal);
/* The error for a file in which nothing was committed so far. */
int cow_journal_nothing_yet(const cow_journal *journal);
/* Make journal->merged anew: the superblock of the newest state, and what is pending. */
int cow_journal_merge(cow_journal *journal);
void cow_pending_free(cow_pending *pending, size_t count);

/* withhold.c: protected files. Between sessions nobody may write them, so that no program without h5cow can empty one. The newest slot
 * says so, and which permissions to write are withheld. */
unsigned cow_withheld_of(mode_t mode);
mode_t cow_withheld_mode(unsigned withheld);
/* Take away those that the file that DISK has open has; not while somebody holds the lock that lifts protection. */
void cow_withhold_from(const cow_disk *disk);
/* The same of JOURNAL's file, if it is protected. */
void cow_withhold(const cow_journal *journal);
/* Before a commit: the option `protect`, where the file is not protected yet. */
void cow_withhold_begin(cow_journal *journal);
/* After cow_withhold. true: the option asked for what the file system cannot do, which is said. The file is not protected then, and its slot is
 * to be written again. */
bool cow_withhold_fails(cow_journal *journal);

/* label.c. false: it has none, or of another form. */
bool cow_label_get(const cow_disk *disk, cow_label *label);
bool cow_label_put(const cow_disk *disk, const cow_label *label);
/* The history of LABEL is gone, and what NOW says is true. Only by who can note in the file that it was said: else each opening would say it. */
void cow_label_say_once(const cow_disk *disk, const char *name, cow_label *label, const char *now);

/* write_out.c. FRAMES, into the file. Where this fails a part of them may be there. */
int cow_journal_write_frames(cow_journal *journal, const cow_overlay *frames);

/* ahead.c */
/* Has that place in the file its room on the disk already? */
bool cow_journal_is_ahead(const cow_journal *journal, uint64_t address, uint64_t size);
/* Bytes on the disk behind a file of SIZE bytes. */
uint64_t cow_journal_ahead_of(const cow_journal *journal, uint64_t size);
/* The last close: what is behind the end of the file is the file system's again. */
void cow_journal_give_back(cow_journal *journal);

/* commit.c */
/* Is the file still the one that was opened, and nobody else's? */
int cow_journal_check_file(cow_journal *journal);
int cow_journal_sync(cow_journal *journal);
/* Bring the pending commits into the file's own bytes where nobody is in the way. Not being able to is no failure. */
int cow_journal_apply(cow_journal *journal);
/* Where all of them can be applied, do that; those that may not be on the disk are first written anew as one commit of
 * the same state. */
int cow_journal_recommit(cow_journal *journal);
/* The newest slot again, durably, as journal->slot is by now. */
int cow_journal_put_slot(cow_journal *journal);
/* Give back what lies beyond all that is in use. */
void cow_journal_trim(cow_journal *journal);

/* recover.c */
/* 1: found, 0: the file has none, -1: it cannot be read. */
int cow_anchor_look(const cow_disk *disk, uint64_t size, cow_anchor *anchor);
bool cow_anchor_find(const cow_disk *disk, uint64_t size, cow_anchor *anchor); /* forgets the error */
/* The anchor at ADDRESS, whose record is damaged, from a copy of one of its slots. 1: found; 0: there is none, and ANCHOR
 * has only its places; -1: none that can be read. */
int cow_anchor_from_slots(const cow_disk *disk, uint64_t base, uint64_t address, cow_anchor *anchor);
/* Any slot that is valid, or an HDF5 signature where the superblock should be. */
bool cow_journal_has_state(const cow_disk *disk, const cow_anchor *anchor);
int cow_journal_load_reader(cow_journal *journal);
int cow_journal_load_writer(cow_journal *journal);
int cow_journal_slots_read(const cow_disk *disk, const cow_anchor *anchor, cow_journal_slot_pair *pair);
int cow_journal_slots_newest(
    const cow_journal_slot_pair *pair); /* the valid one of the higher generation: 0 or 1; -1: none */
/* The extents between what is applied and SLOT, to be given back with cow_pending_free. 0; 1: not whole; -1. */
int cow_journal_load_chain(const cow_journal *journal, const cow_journal_slot *slot, cow_pending **list, size_t *count);

/* permission.c. Of the newest slot of the file that DISK has open; 0: it has none, or cannot be read. */
unsigned cow_withheld_in(const cow_disk *disk);
/* As cow_disk_open, also of a protected file of this user that FLAGS want to write: its permission is added for the moment of opening. */
int cow_permission_open(cow_disk *disk, const cow_disk_calls *calls, const char *name, int flags);

/* choice.c */
/* As cow_anchor_find, but nothing that a superblock says keeps it from looking: at every place where an anchor can be,
 * for its record, or else for a slot that lies where it would; first with the fence between them, since the second copy of
 * a slot may look like the first of another place. */
bool cow_anchor_search(const cow_disk *disk, uint64_t size, cow_anchor *anchor);

#endif
