/* Copies of this transaction that a commit need not open. The list is bare.c's alone. */
#ifndef COW_HISTORY_BARE_H
#define COW_HISTORY_BARE_H

#include "history/history.h"

typedef struct cow_bare cow_bare;

/* NULL: no memory. */
cow_bare *cow_bare_new(void);
void cow_bare_free(cow_bare *all);

/* What a snapshot of a versioned dataset shows. Lent, as are its ids, until the program's call ends. */
typedef struct cow_shown {
    uint64_t root; /* offset of the root record */
    unsigned rank;
    const uint64_t *extent, *maximum;
    hid_t type, dcpl; /* dcpl: without a mapping */
} cow_shown;
/* ADDRESS, a copy of SOURCE with the root record at ROOT, has neither attributes nor a comment. */
int cow_bare_note(cow_file *file, uint64_t address, const cow_dataset *source, uint64_t root);
/* NULL: not such a copy. It says nothing of one that was changed since. */
const cow_shown *cow_bare_find(const cow_file *file, uint64_t address);
/* Another object was made at ADDRESS. */
void cow_bare_forget(cow_file *file, uint64_t address);
void cow_bare_forget_all(cow_file *file);

#endif
