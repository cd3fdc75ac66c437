/* May groups of the newest version, other than its root, have absolute soft links? Those name the version, so such groups are
 * made anew by each. */
#ifndef COW_HISTORY_ABSOLUTE_LINKS_H
#define COW_HISTORY_ABSOLUTE_LINKS_H

#include "history/history.h"

typedef struct cow_absolute_state cow_absolute_state;

/* NULL: no memory. */
cow_absolute_state *cow_absolute_links_new(void);
void cow_absolute_links_free(cow_absolute_state *state);
/* 1, 0, -1: it cannot be read. Looks once. */
int cow_absolute_links(cow_file *file);
/* What was found, or put; false before. */
bool cow_absolute_links_known(const cow_file *file);
int cow_absolute_links_put(cow_file *file, bool absolute);

#endif
