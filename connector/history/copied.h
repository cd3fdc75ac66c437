/* Versions of large groups that are copied, not made: h5/dense.h. HDF5 has counted none of the links in such a group, so
 *
 *  1. it has a link in /_versioned_data/copied, called by its address. Without that a tree that goes would take it along, and HDF5 would
 *     take links from its members' counts that were never added;
 *  2. each of its members has a link in /_versioned_data/held, called likewise, until no version needs that snapshot any more: as it
 *     could be the only one that is counted;
 *  3. where no version needs the group itself any more, its bytes are given back without asking HDF5, which would look at its links.
 *
 * The table `snapshots` tells what versions need. A member has one link in the head, and so has the group: nothing is met twice, nor in a
 * circle, by who relies on counts for that. */
#ifndef COW_HISTORY_COPIED_H
#define COW_HISTORY_COPIED_H

#include "history/history.h"

typedef struct cow_copied cow_copied;

/* NULL: no memory. */
cow_copied *cow_copied_new(void);
void cow_copied_free(cow_copied *copied);
/* What it has open. */
void cow_copied_close(cow_file *file);

/* Is the group at ADDRESS one whose links are not counted? 1, 0, -1 */
int cow_copied_is(cow_file *file, uint64_t address);
/* The group MADE, at ADDRESS, is one, of the version that is being made. */
int cow_copied_note(cow_file *file, cow_loc made, uint64_t address);
/* The snapshot at ADDRESS, to which GROUP has the link NAME, gets one in `held`, if it has none. MOVE: that very link, which GROUP has no
 * more. FRESH: the version that is being made has made it. */
int cow_copied_hold(cow_file *file, cow_loc group, const char *name, uint64_t address, bool move, bool fresh);

/* May one more group that is of the version which is amended be copied? What it had is free in this opening no more: not many times. */
bool cow_copied_again(cow_file *file);

/* A version is about to be made. AMEND: one that this transaction made, and committed. */
void cow_copied_begin(cow_file *file, bool amend);
/* Links in `held` besides: is there one to SNAPSHOT? 1, 0, -1 */
int cow_held_is(cow_file *file, uint64_t snapshot);
/* It has none, and gets one. */
int cow_held_add(cow_file *file, uint64_t snapshot);
/* What HDF5 says of it, by that link, without opening it. */
int cow_held_info(cow_file *file, uint64_t snapshot, H5O_info2_t *info);
/* It goes, if there is one. */
int cow_held_remove(cow_file *file, uint64_t snapshot);

/* The table `snapshots` says what is: of what was made for this version, what it does not name goes. What cannot go does no harm but that
 * its place is taken, here and in the next one. */
void cow_copied_settle(cow_file *file);
/* No version needs the snapshot at ADDRESS: if it is a copied group, it goes. */
void cow_copied_drop(cow_file *file, uint64_t address);

/* Places that were given back in this opening, beside those that HDF5 knows; borrowed. */
size_t cow_copied_given_back(const cow_file *file, const cow_place **list);

#endif
