/* The table `snapshots`: which snapshot belongs to which head object. Rows and maps are snapshot_table.c's alone. From
 * cow_snapshots_load on the newest rows are in memory, and all of them where they are few, or where many are asked for. Finding takes
 * the same time however many there are. */
#ifndef COW_HISTORY_SNAPSHOT_TABLE_H
#define COW_HISTORY_SNAPSHOT_TABLE_H

#include "history/history.h"

typedef struct cow_snapshots cow_snapshots;

/* NULL: no memory. */
cow_snapshots *cow_snapshots_new(void);
void cow_snapshots_free(cow_snapshots *snapshots);
/* The table itself: made in a new file, or opened, which does nothing where it is open. */
int cow_snapshots_create(cow_file *file);
int cow_snapshots_open(cow_file *file);
void cow_snapshots_close(cow_file *file);

/* Its rows, or what finds them. Looks once. -1 also after a row could not be read when it was looked for. */
int cow_snapshots_load(cow_file *file);
/* All rows into memory, for who goes through them. */
int cow_snapshots_load_all(cow_file *file);
/* A row could not be read: what said that there is none may be wrong, and nothing may be committed. */
bool cow_snapshots_failed(const cow_file *file);
bool cow_snapshots_loaded(const cow_file *file);
/* What was added or changed, into the file. */
int cow_snapshots_flush(cow_file *file);
/* Rows that no version needs, those of VERSIONS versions that are FORGOTTEN being none. LOOK is told each row, and whether it is
 * NEEDED, before anything is changed; */
typedef int cow_snapshots_look(void *context, const cow_layout_snapshot_row *row, bool needed);
int cow_snapshots_weigh(cow_file *file, const bool forgotten[], uint64_t versions, cow_snapshots_look *look,
                        void *context);
/* they go. UNKNOWN is told each head object of which nothing is left. The next flush writes the table anew. */
typedef int cow_snapshots_unknown(void *context, uint64_t head);
int cow_snapshots_purge(cow_file *file, const bool forgotten[], uint64_t versions, cow_snapshots_unknown *unknown,
                        void *context);

/* In the order of versions. A row is valid until the next one is added, or a row is looked for. NULL: it cannot be read. */
size_t cow_snapshots_count(const cow_file *file);
const cow_layout_snapshot_row *cow_snapshots_row(const cow_file *file, size_t row);
/* How many objects VERSION, the newest one or that which is being made, has a snapshot of its own of. */
int64_t cow_snapshots_count_of(const cow_file *file, uint64_t version);
/* Another number whenever a row has become another. */
uint64_t cow_snapshots_generation(const cow_file *file);

/* Does any version know this head object? */
bool cow_snapshots_known(const cow_file *file, uint64_t head);
/* VISIT each that one knows, until it answers something else than 0, which is returned. GONE: it is known to be deleted. */
typedef int cow_snapshots_visitor(void *context, uint64_t head, bool gone);
int cow_snapshots_each(const cow_file *file, cow_snapshots_visitor *visit, void *context);
/* A version knows HEAD, and it is known to be deleted. */
bool cow_snapshots_gone(const cow_file *file, uint64_t head);
/* Was something committed that no version knows yet? */
bool cow_snapshots_behind(const cow_file *file);
/* The newest snapshot of a head object; false: none, or none that still counts. */
bool cow_snapshots_newest(const cow_file *file, uint64_t head, uint64_t *snapshot);
/* The row of the snapshot at ADDRESS; NULL: there is none, or none any more (or it cannot be read: cow_snapshots_failed). */
const cow_layout_snapshot_row *cow_snapshots_made(const cow_file *file, uint64_t address);
/* The row that tells what a head object is, that of its newest snapshot; NULL: none, or it has changed since. */
const cow_layout_snapshot_row *cow_snapshots_of_head(const cow_file *file, uint64_t head);
/* The same where nobody knows whether the object is a head or a snapshot, which has its own row: to be sure takes two searches. */
const cow_layout_snapshot_row *cow_snapshots_find(const cow_file *file, uint64_t address);

/* A snapshot was told for the newest one of its head and is not: what finds rows leads astray, and all of them are read instead. */
void cow_snapshots_distrust(cow_file *file);

int cow_snapshots_add(cow_file *file, const cow_layout_snapshot_row *row);
/* A row says nothing any more: no tree holds its snapshot. */
void cow_snapshots_strike_out(cow_file *file, size_t row);
/* The newest version that knows of HEAD is the one of row VERSION, and does without it. SUMS: checksums of the head, which
 * did not change, 0 where it did. */
int cow_snapshots_leave_out(cow_file *file, uint64_t head, uint64_t version, const cow_layout_snapshot_row *sums);
/* HEAD changed after the newest version that knows of it: its checksums are of before. */
int cow_snapshots_outdate(cow_file *file, uint64_t head);

/* Rows of versions before FROM are not touched from here on. What is done to others until cow_snapshots_done, SAVED keeps
 * as it was for cow_snapshots_undo. */
typedef struct cow_snapshots_saved {
    cow_layout_snapshot_row *row; /* from `first` on */
    size_t first, count, written;
} cow_snapshots_saved;
int cow_snapshots_begin(cow_file *file, uint64_t from, cow_snapshots_saved *saved);
int cow_snapshots_undo(cow_file *file, cow_snapshots_saved *saved);
void cow_snapshots_done(cow_snapshots_saved *saved);

#endif
