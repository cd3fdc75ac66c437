/* What changed in the running transaction. The list is changes.c's alone. */
#ifndef COW_HISTORY_CHANGES_H
#define COW_HISTORY_CHANGES_H

#include "history/history.h"

typedef struct cow_changes cow_changes;

/* What is known of a change: a bit set of 1 << cow_change, and these. */
#define COW_CHANGED_LINKS (1u << 8)
#define COW_CHANGED_ARRAY (1u << 9) /* a versioned dataset was opened for writing or written */
#define COW_CHANGED_RENEW                                                                                              \
    (1u << 10) /* an earlier version lacks it, or an earlier commit: nothing is known of its change */

#define COW_CHANGED_ELSEWHERE (1u << 11) /* its links, and by another path than that which is noted */
#define COW_CHANGED_EMPTY     (1u << 12) /* cow_changed_empty_group; of the object that was made there last */

/* NULL: no memory. */
cow_changes *cow_changes_new(void);
void cow_changes_free(cow_changes *changes);
/* The transaction is over. */
void cow_changes_clear(cow_file *file);

/* The object at ADDRESS changed, by FLAGS of the ones above; PATH as for cow_changed_object. */
int cow_changes_note(cow_file *file, uint64_t address, unsigned flags, const char *path);
/* The group PATH ("" is the root) has a link to the object at ADDRESS, which has several: where that changes again while the file is
 * open, the next walk looks there as well. PATH NULL: those that were told before do not count any more. */
void cow_changes_held_by(cow_file *file, uint64_t address, const char *path);
/* The object at ADDRESS, which no version knows, has lost its last link: no walk needs to meet it. */
void cow_changes_forget(cow_file *file, uint64_t address);
/* That at ADDRESS, which a version knows, has lost its last link, but for that in `removed`. */
void cow_changes_removed(cow_file *file, uint64_t address);
/* A group that was deleted is kept, and all that is in it; was one since the file was opened? */
void cow_changes_keeps_group(cow_file *file);
bool cow_changes_groups_kept(const cow_file *file);
/* Was cow_changed_group_unlinked called since the file was opened? */
bool cow_changes_groups_unlinked(const cow_file *file);
/* The next walk goes through the whole head. */
void cow_changes_distrust_paths(cow_file *file);
bool cow_changes_distrusted(const cow_file *file);
/* H5Fcreate empties the head: what no link from the root leads to is gone. */
void cow_changes_set_cleared(cow_file *file);
bool cow_changes_cleared(const cow_file *file);

/* Has something changed that is not noted? */
bool cow_changes_somewhere(const cow_file *file);
/* Is there a new group with the usual properties at ADDRESS, and nothing in it? false: it may be all the same. */
bool cow_changes_empty_group(const cow_file *file, uint64_t address);

/* Was it made in this transaction, and neither an attribute nor a comment noted of it since? */
bool cow_changes_bare(const cow_file *file, uint64_t address);
/* 0: the object did not change. */
unsigned cow_changes_flags(const cow_file *file, uint64_t address);
/* Absolute; NULL: the object did not change, or its path is not known. */
const char *cow_changes_path(const cow_file *file, uint64_t address);
/* Is PATH ("" for the root) an ancestor of something that changed? */
bool cow_changes_below(const cow_file *file, const char *path);
/* The names of all links of the group PATH ("" for the root) that changed, or lead to what did: *COUNT, borrowed, until something
 * changes. NULL: there are none, or not all of them are known. */
const char *const *cow_changes_names(const cow_file *file, const char *path, size_t *count);
/* Is NAME one of them? 2: the link itself was made, removed or replaced; 1: what it leads to changed; 0; -1: no memory to ask. */
int cow_changes_at(const cow_file *file, const char *path, const char *name);
/* VISIT each in the order in which they changed first, until it answers something else than 0, which is returned. PATH as for
 * cow_changes_path. */
typedef int cow_changes_visitor(void *context, uint64_t address, const char *path);
int cow_changes_each(const cow_file *file, cow_changes_visitor *visit, void *context);
/* The same for those of cow_changes_removed, in any order and without paths. */
int cow_changes_each_removed(const cow_file *file, cow_changes_visitor *visit, void *context);

/* Another number each time that an object lost a link or got a further one, its count was changed, or the history kept it: what
 * else is done to objects changes nothing of what only the history holds. */
uint64_t cow_changes_edits(const cow_file *file);
void cow_changes_edited(cow_file *file);

#endif
