/* What versions do without: lists of it, and what is known of it in a file. The fields of lists are incomplete.c's alone. */
#ifndef COW_HISTORY_INCOMPLETE_H
#define COW_HISTORY_INCOMPLETE_H

#include "history/history.h"

/* A list; all zero: empty. */
typedef struct cow_lacks {
    cow_layout_lack *lack; /* texts are owned */
    size_t count, room;
} cow_lacks;

/* One more; the texts are copied. PATH NULL: "". */
int cow_lacks_add(cow_lacks *lacks, uint64_t version, uint64_t head, const char *path, const char *reason);
size_t cow_lacks_count(const cow_lacks *lacks);
void cow_lacks_free(cow_lacks *lacks);

/* ---- of a file ---- */

typedef struct cow_incomplete cow_incomplete;

/* NULL: no memory. */
cow_incomplete *cow_incomplete_new(void);
void cow_incomplete_free(cow_incomplete *incomplete);

/* What the newest version, and changes that are in no version, lack: from the table. Looks once. */
int cow_lacks_load(cow_file *file);
/* VISIT each of these, until it answers something else than 0, which is returned. */
typedef int cow_lacks_visitor(void *context, const cow_layout_lack *lack);
int cow_lacks_each(const cow_file *file, cow_lacks_visitor *visit, void *context);
/* Instead of these: LACKS, which is empty afterwards. */
void cow_lacks_replace(cow_file *file, cow_lacks *lacks);
/* The table cannot be read, so nothing is known to be the same as before, until cow_lacks_replace. */
void cow_lacks_lose(cow_file *file);
bool cow_lacks_lost(const cow_file *file);
/* Heads that versions had to do without: VISIT for each row of the table. TO_COME: there is no such version yet. */
typedef int cow_lack_visitor(void *context, uint64_t version, uint64_t head, bool to_come);
int cow_lacks_visit(cow_file *file, cow_lack_visitor *visit, void *context);
/* LACKS, of versions from FROM on, instead of what the table has of these. */
int cow_lacks_put(cow_file *file, uint64_t from, const cow_lacks *lacks);
/* Standard error is told of each object once. VERSION: its name. */
void cow_lacks_tell(cow_file *file, const char *version);

#endif
