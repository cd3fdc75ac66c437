/* Links of groups from the bytes of a file, without opening the group. What is not known here is left to HDF5. */
#ifndef COW_LINKS_H
#define COW_LINKS_H

#include "h5/header.h"

/* Where the hard links of these N names lead in the group at ADDRESS; UINT64_MAX: there is none. DENSE: also where its links are in a heap, all
 * of which is read then. 1; 0: the group is not known here; -1: recorded. */
int cow_links_find(const cow_source *source, uint64_t group, bool dense, size_t n, const char *const names[],
                   uint64_t addresses[]);

/* Has the group at ADDRESS, all links of which are in its header, no link NAME, of whatever class? false: it has, or that is not known here. */
bool cow_links_lack(const cow_source *source, uint64_t group, const char *name);

#endif
