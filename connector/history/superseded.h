/* Index nodes of the running transaction that have a successor in it: their views go when the version that shows them is
 * amended. */
#ifndef COW_HISTORY_SUPERSEDED_H
#define COW_HISTORY_SUPERSEDED_H

#include "history/history.h"

typedef struct cow_superseded cow_superseded;

/* NULL: no memory. */
cow_superseded *cow_superseded_new(void);
void cow_superseded_free(cow_superseded *superseded);
#define COW_SUPERSEDED_ROOT     UINT32_MAX       /* the level of a root record */
#define COW_SUPERSEDED_COMPOSED (UINT32_MAX - 1) /* that of a composed chunk, whose ORIGIN is its number */
/* A node at OFFSET was written, in this place of the tree of DATASET (its number); RANK coordinates of ORIGIN. */
int cow_superseded_note(cow_file *file, uint64_t dataset, unsigned level, const uint64_t origin[], unsigned rank,
                        uint64_t offset);
/* Has the root record at ROOT a successor in this transaction? Views of what is below it are gone, or go. */
bool cow_superseded_has(const cow_file *file, uint64_t root);
/* Another dataset names nodes of this transaction now: from here on none is superseded. */
void cow_superseded_keep(cow_file *file);
/* The version that shows them has been amended: their views go. One that stays does no harm. */
void cow_superseded_remove(cow_file *file);
/* The transaction is over. */
void cow_superseded_forget(cow_file *file);

#endif
