/* Runs: which numbers belong to a key, in a table on the disk that is never read as a whole. A run is sorted by key, then by number;
 * the table has a few, each at most some times as long as all behind it, and entries that are still loose at its end. They merge
 * as they grow, so that an entry is written a few times in all.
 *
 * Keys are spread evenly, as hashes are: a key is found by one page of each run, or two. What a run says is a hint that its user
 * checks: an entry may name what is not so any more.
 *
 * The first HEADER rows say what is where (little-endian):
 *   row 0       noted (uint64), runs (uint32), loose entries (uint32)
 *   row 1 + i   of run i: rows, of these with the key 0, of these taken (uint32 each), 0 (uint32)
 * and then come the runs, one after the other, and the loose entries. Rows behind them mean nothing. */
#ifndef COW_LOOKUP_H
#define COW_LOOKUP_H

#include "store/room.h"
#include "store/table.h"

#include <stdbool.h>
#include <stdint.h>

#define COW_LOOKUP_ROW    16                /* bytes: key, value (uint64, little-endian) */
#define COW_LOOKUP_HEADER 64                /* rows */
#define COW_LOOKUP_MOST   ((size_t)1 << 22) /* entries of one call */

typedef struct cow_lookup_entry {
    uint64_t key, value;
} cow_lookup_entry;

typedef struct cow_lookup cow_lookup;

/* Of a table with rows of COW_LOOKUP_ROW bytes, which is the runs' own from now on; one without rows gets its header. NULL with
 * COW_CORRUPT: what it has are not runs of at most MOST rows noted. ROOM: where pages and filters that are kept count; NULL: 64 MiB
 * of pages are kept, and no filters. */
cow_lookup *cow_lookup_open(cow_table *table, uint64_t most, cow_room *room);
void cow_lookup_close(cow_lookup *lookup);

/* How far the user has noted what there is. */
uint64_t cow_lookup_noted(const cow_lookup *lookup);
/* Entries, also those that name what is not so any more: it is made anew when they get too many. */
uint64_t cow_lookup_entries(const cow_lookup *lookup);

/* VISIT is told values that KEY, not 0, may have, the newest first (of very many, some), until it answers something else than 0, which is returned. */
typedef int cow_lookup_visitor(void *context, uint64_t value);
int cow_lookup_find(cow_lookup *lookup, uint64_t key, cow_lookup_visitor *visit, void *context);
/* Is each run in order? -1 COW_CORRUPT, or what reading says. It reads all of them. */
int cow_lookup_check(cow_lookup *lookup);
/* A value of the key 0 that was not told before. 1; 0: there is none; -1. */
int cow_lookup_take(cow_lookup *lookup, uint64_t *value);
/* COUNT <= COW_LOOKUP_MOST entries more, which are reordered, and what is noted with them. -1: LOOKUP can only be closed; the table
 * says what it said, or that nothing is noted. */
int cow_lookup_add(cow_lookup *lookup, cow_lookup_entry *entry, size_t count, uint64_t noted);
/* From now on runs that a commit has are not merged with others, as long as there may be more: of what is written over them the
 * commit's bytes are held in memory until the next one. HOLD false: they are. */
void cow_lookup_hold(cow_lookup *lookup, bool hold);
/* Were runs kept apart for that, and is the next cow_lookup_add, which may be of none, to merge them? */
bool cow_lookup_is_due(const cow_lookup *lookup);
/* A commit has all runs. */
void cow_lookup_committed(cow_lookup *lookup);

#endif
