/* Who uses a file, told by locks, which die with their process: nothing is ever stale.
 *
 * Open file description locks (OFD) on bytes far beyond any data:
 *   2^62                the writer, exclusive
 *   2^62 + 2^61 + PID   shared, held by the writer: for messages only
 *   2^62 + 2^60 + 2^59  shared, held by a writer that only applies what waits, while it has the file
 *   2^62 + 2^60 + 2^59 + 1  shared: protection is lifted as long as somebody has it
 *   2^61 + G            exclusive, while the slot of generation G is written but not yet on the disk
 *   2^62 + 1 + S        shared: a reader sees the state S
 * HDF5 without h5cow takes a flock, shared for reading. Applying takes it exclusively, and never waits for it. */
#ifndef COW_JOURNAL_LOCKS_H
#define COW_JOURNAL_LOCKS_H

#include "journal/disk.h"

/* 0, or -1 and an error that names the writer there is; waits for it up to TIMEOUT milliseconds. */
int cow_lock_writer(const cow_disk *disk, unsigned timeout);
/* The same, without waiting, for a moment: other writers wait for its end, whatever their TIMEOUT. */
int cow_lock_writer_briefly(const cow_disk *disk);
/* Let go of all locks that DISK has, in whatever process else they may be. */
void cow_lock_release(const cow_disk *disk);
/* Does anybody else hold it? */
bool cow_lock_is_writing(const cow_disk *disk);
/* "process 123 (python3) on host": what can be found out about it. */
void cow_lock_describe_writer(const cow_disk *disk, char *text, size_t size);
/* On file systems whose locks cannot be trusted between machines: readers hold this against writers. */
int cow_lock_against_writer(const cow_disk *disk);

int cow_lock_pin(const cow_disk *disk, uint64_t sequence);
void cow_lock_unpin(const cow_disk *disk, uint64_t sequence);
/* The lowest state that a reader has pinned, COW_NOWHERE: none. -1: the locks do not answer. */
int cow_lock_lowest_pin(const cow_disk *disk, uint64_t *sequence);

/* The lowest one from the state FROM on, likewise. */
int cow_lock_next_pin(const cow_disk *disk, uint64_t from, uint64_t *sequence);

/* Protection of the file is lifted: it keeps the permissions to write that it has. */
int cow_lock_lift(const cow_disk *disk);
bool cow_lock_is_lifted(const cow_disk *disk);

int cow_lock_unpublished(const cow_disk *disk, uint64_t generation);
void cow_lock_publish(const cow_disk *disk, uint64_t generation);
bool cow_lock_is_unpublished(const cow_disk *disk, uint64_t generation);

/* false: somebody without h5cow has the file. Else nobody can open it so until stop. */
bool cow_lock_against_stock(const cow_disk *disk);
void cow_lock_against_stock_stop(const cow_disk *disk);

/* For those who find locks with the system: which lock of these starts at START. */
typedef enum cow_lock_kind {
    COW_LOCK_NONE, /* none of those that are in the way of applying */
    COW_LOCK_READER,
    COW_LOCK_STOCK, /* HDF5's own */
} cow_lock_kind;
/* *STATE: of a reader. */
cow_lock_kind cow_lock_means(off_t start, uint64_t *state);

/* What HDF5's own driver takes. -1: errno says why, nothing is recorded. */
int cow_lock_plain(const cow_disk *disk, bool exclusive);
void cow_lock_plain_stop(const cow_disk *disk);

/* NFS, FUSE, 9p, Lustre, SMB: locks may not reach other machines. */
bool cow_lock_doubtful(const cow_disk *disk);
/* The user said that locks do not work here: HDF5_USE_FILE_LOCKING=FALSE or BEST_EFFORT. */
bool cow_lock_excused(void);

/* Of a clock that nobody sets. */
double cow_milliseconds(void);

#endif
