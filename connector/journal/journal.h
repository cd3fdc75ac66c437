/* One file with atomic commits: what the file driver (driver.h) reads and writes through. Knows nothing of HDF5 but a
 * few fields of its superblock. Invariants and states: journal.c. What is promised: docs/promises.md.
 *
 * Functions return 0 or -1 and a recorded error. Everything here is called under HDF5's global lock. */
#ifndef COW_JOURNAL_JOURNAL_H
#define COW_JOURNAL_JOURNAL_H

#include "h5/place.h"
#include "journal/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cow_journal cow_journal;

typedef enum cow_sync {
    COW_SYNC_FULL,   /* a commit that returned survives a power cut */
    COW_SYNC_NORMAL, /* the file survives a power cut; of commits by flush the newest may be lost */
    COW_SYNC_OFF,    /* all survives the death of the program, nothing is said of power cuts */
} cow_sync;

typedef struct cow_journal_options {
    cow_sync sync;
    unsigned lock_timeout;   /* milliseconds to wait for another writer */
    unsigned apply_interval; /* milliseconds: commits that come faster are applied together */
    bool protect;            /* a file that is written is protected from its next commit on: withhold.c */
    bool in_memory;          /* its name is a way to it, and no place in a folder */
    bool brief;    /* opened for a moment, to apply what waits: never waits itself, and other writers wait for it */
    bool borrowed; /* the file was reached round the connector (external link, virtual dataset, mount): a file
                                with a journal can be read, and not be written before cow_journal_take_on */
    const struct cow_journal_choice *choice; /* NULL, or a state of a damaged file: inspect.h */
    const cow_disk_calls *calls;             /* NULL: the system's; must outlive the process' use of the file */
} cow_journal_options;

/* full, no waiting, one second */
extern const cow_journal_options cow_journal_defaults;

typedef struct cow_journal_mode {
    bool writable, create, exclusive, truncate; /* as the flags of open(2) */
} cow_journal_mode;

/* Open, or join what this process has open already: one cow_journal a file, whatever its name. A file that is empty or
 * truncated gets a journal with its first commit; a file of others is passed through (cow_journal_plain). Nothing is
 * truncated before the writer's lock is held. *NUMBER: errno where that is why, else 0. */
cow_journal *cow_journal_open(const char *name, cow_journal_mode mode, const cow_journal_options *options, int *number);
/* One more to close it. */
cow_journal *cow_journal_reference(cow_journal *journal);
/* Has the newest state's superblock an extension, where HDF5 keeps what is not usual of a file? */
bool cow_journal_extended_superblock(const cow_journal *journal);
/* The last one to close commits what differs, applies what can be applied, and lets go of the locks. Never fails: what
 * could not be committed is reported on stderr. A reader that closes applies commits that wait, where it may write the file and
 * nobody is in the way: closing.c. */
void cow_journal_close(cow_journal *journal);
/* In the environment of the command, and of the plugin that it loads: as a reader it applies only commits that it was in the way
 * of, so that a verb that changes nothing writes nothing. */
#define COW_LOOKS_VARIABLE "H5COW_LOOKS"
/* Apply what waits in the file NAME. 0, also where somebody is in the way: look again. -1: it cannot be opened for writing;
 * *NUMBER: errno where that is why, else 0. */
int cow_journal_apply_waiting(const char *name, int *number);

/* Is there a journal in the file NAME, or is one being made by this process? Also where that cannot be found out: opened
 * with the journal, a file that has none is passed through. */
bool cow_journal_present(const char *name);
/* A file was given the name NAME: bring that onto the disk. */
int cow_journal_sync_name(const char *name);
/* Was the file NAME created, and nothing committed yet? *ABANDONED: and nobody is about to. */
bool cow_journal_unfinished(const char *name, bool *abandoned);
/* The same; also an empty file, of which nobody can tell who left it. */
bool cow_journal_holds_nothing(const char *name, bool *abandoned);

int cow_journal_read(cow_journal *journal, uint64_t address, void *buffer, size_t size);
/* The same for a look at bytes that may not be there: records no error. */
bool cow_journal_look(cow_journal *journal, uint64_t address, void *buffer, size_t size);
/* For reading by several threads. The next read of the driver that would put raw data of SIZE bytes into BUFFER, and for which the
 * bytes of the file itself are the right ones, is not done. */
void cow_journal_expect(cow_journal *journal, const void *buffer, size_t size);
/* For the driver: a write, which may be what is expected instead; ADDRESS is HDF5's. */
void cow_journal_stores(cow_journal *journal, uint64_t address, const void *buffer, size_t size);
/* Has there been one? Then *ADDRESS is where. Ends what cow_journal_expect has begun. */
bool cow_journal_expected(cow_journal *journal, uint64_t *address);
/* For the driver: is that the read that is expected? */
bool cow_journal_meets(cow_journal *journal, uint64_t address, const void *buffer, size_t size);
/* The bytes at such an ADDRESS, into N places one after the other; on any thread. Records no error. False: they cannot be read. */
bool cow_journal_bring(const cow_journal *journal, uint64_t address, const struct iovec parts[], size_t n);
/* Whoever reads the file itself at this place does not find old bytes there, as where new ones wait to be applied, or to be
 * committed over them. Before the first commit there are no old ones: what is not in place then reads as zeros. */
bool cow_journal_in_place(const cow_journal *journal, uint64_t address, uint64_t size);
typedef enum cow_bytes_of_file {
    COW_BYTES_UNKNOWN, /* no journal, or nothing was committed yet */
    COW_BYTES_STAY,    /* this process only reads the file, and so one state of it as long as it is open */
    COW_BYTES_CHANGE,  /* it writes the file */
} cow_bytes_of_file;
/* *BASE: what HDF5's addresses are added to. */
cow_bytes_of_file cow_journal_bytes(const cow_journal *journal, uint64_t *base);
/* What cannot be written makes cow_journal_failure, and is reported by the next commit, as with the system's own cache:
 * HDF5 cannot close an object whose writing has failed. From then on writes are kept for reading and come to nothing. -1
 * only where nothing may be written. */
int cow_journal_write(cow_journal *journal, uint64_t address, const void *bytes, size_t size);
/* Is there room on the disk for BYTES more, beside all that waits in memory? Taken here, beyond the end of the file, which gets no
 * longer, and given back by the last close. -1: the disk, a quota or the limit on the size of files has not that much; nothing has
 * changed. 0 also where it is little, unless ALL, and where the file system cannot take it: then the commit finds out. */
int cow_journal_room(cow_journal *journal, uint64_t bytes, bool all);
/* The same for what waits in memory from now on, until cow_journal_promised takes it back. */
int cow_journal_promise(cow_journal *journal, uint64_t bytes);
void cow_journal_promised(cow_journal *journal, uint64_t bytes);
/* The state ends at END: takes effect with the commit. */
int cow_journal_truncate(cow_journal *journal, uint64_t end);
uint64_t cow_journal_end(const cow_journal *journal);
/* The end of HDF5's address space as the newest state's superblock tells it. */
uint64_t cow_journal_stored_end(const cow_journal *journal);
/* HDF5's address space ends at *END and shall have SIZE bytes more: where they begin; moves *END. Avoids the journal's
 * own records. BASE: of the superblock. ALIGNMENT: the distance to the old end is kept a multiple of that. PAGED: HDF5
 * allocates by pages. */
uint64_t cow_journal_allocate(cow_journal *journal, uint64_t base, uint64_t alignment, bool paged, uint64_t size,
                              uint64_t *end);
/* HDF5 has not been told that the bytes up to END were given out, and may not write it: what is committed says so. */
void cow_journal_reach(cow_journal *journal, uint64_t end);
/* Is a place in the file HDF5's, in whole: neither its superblock nor the journal's own? */
bool cow_journal_is_hdf5s(const cow_journal *journal, uint64_t address, uint64_t size);
/* HDF5 moved the end of its address space from OLD to NEW by itself. */
void cow_journal_extended(cow_journal *journal, uint64_t old_end, uint64_t new_end);

/* Make what was written since the last commit a commit, durable as OPTIONS.sync says. CLOSING: nothing follows; also
 * apply it. Nothing differs: no commit. A failure is final for this opening. */
int cow_journal_commit(cow_journal *journal, bool closing);
/* The commit that this opening will make shall not lengthen the file by what it takes for a while: it has the place of the one before for
 * that, and once it is applied, the file ends where its state does. Takes three syncs more. *SPARE: bytes that the file has behind its state
 * by now. */
int cow_journal_shorten(cow_journal *journal, uint64_t *spare);
/* COUNT places at addresses of HDF5's, of which nothing is needed in the newest state: where nobody can see an older one,
 * and all is applied, whole pages of them are given back to the file system. How many bytes the file takes less. */
uint64_t cow_journal_holes(cow_journal *journal, const cow_place *place, size_t count);
/* A commit is about to follow, and the bulk of it is written: the disk can begin. */
void cow_journal_start_sync(cow_journal *journal);
/* Drop what was written since the last commit; for this opening nothing more is committed. WHY goes into messages. */
void cow_journal_abort(cow_journal *journal, const char *why);
/* The same because nobody wants it, while nothing has failed: so the last close leaves nothing of it behind. Of a file that
 * has no commit not even the name, where this opening made it; INSTEAD, if not NULL, is a file that gets the name then.
 * -1: no memory, nothing is done. */
int cow_journal_abandon(cow_journal *journal, const char *why, const char *instead);
/* Is the file still the one that was opened, and did nobody else write it? A failure is final for this opening. Before
 * a commit, so that what is read and written for it is not another's. */
int cow_journal_check(cow_journal *journal);
/* After a failure: may the commit that failed have happened? */
bool cow_journal_doubtful(const cow_journal *journal);
/* NULL, or why nothing more is committed. */
const char *cow_journal_failure(const cow_journal *journal);
bool cow_journal_plain(const cow_journal *journal);
/* The connector has seen a borrowed file that HDF5 opened for writing, and keeps its history. false: somebody else is
 * writing it, so it is only read. */
bool cow_journal_take_on(cow_journal *journal);
/* Does nobody but this writer have the file open: neither through h5cow nor with HDF5 alone? Not knowing is false. */
bool cow_journal_alone(const cow_journal *journal);
/* Newest committed state that is seen, and the one that the file's own bytes have. For tests and h5cow recover. */
void cow_journal_state(const cow_journal *journal, uint64_t *sequence, uint64_t *applied);

/* What of a file does not change while this is the same: the file, and the newest committed state that is seen. */
typedef struct cow_journal_stamp {
    uint64_t device, inode, sequence;
    uint8_t id[16];
} cow_journal_stamp;
void cow_journal_stamp_of(const cow_journal *journal, cow_journal_stamp *stamp);

/* HDF5 locks the file that it opened: what its own driver does, for files without a journal; the others have locks of their
 * own. LOCKLESS: a file system without locks is no error. */
int cow_journal_lock_plain(cow_journal *journal, bool writable, bool lockless);
void cow_journal_unlock_plain(cow_journal *journal);

/* Absolute. */
const char *cow_journal_name(const cow_journal *journal);
/* What the driver tells of as its handle, with sizeof(int) zeros behind it. */
int *cow_journal_descriptor(cow_journal *journal);
/* Identity of the file: device and inode. */
int cow_journal_compare(const cow_journal *a, const cow_journal *b);

#endif
