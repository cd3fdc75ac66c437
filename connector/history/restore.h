/* The head becomes as it was in a version (cow_file_restore in history.h): what the files of this share.
 *
 * Nothing is copied that the version has: a versioned dataset of the head names the version's root record from then on. Head objects
 * keep their identity (their addresses): those that a version knows are never really deleted, so each object of a version is
 * there to be linked again.
 */
#ifndef COW_HISTORY_RESTORE_H
#define COW_HISTORY_RESTORE_H

#include "base/map.h"
#include "h5cow.h"
#include "history/changes.h"
#include "history/history.h"

/* ---- the files of this ---- */

typedef struct cow_restoring {
    cow_file *file;
    const char *version; /* path of its tree */
    bool dry;
    bool distrust;  /* the newest snapshots may not be what the head is */
    cow_map done;   /* head addresses that were looked at */
    cow_map linked; /* those that got a link */
    struct cow_told {
        char *path;
        int32_t what;
    } *told; /* when all is done */
    size_t told_count, told_room;
    struct cow_used {
        uint64_t snapshot;
        char *path;
    } *used; /* named datatypes of the version, and what uses them: those that no link leads to are restored in the end */
    size_t used_count, used_room;
    h5cow_restore_t *request;
} cow_restoring;

/* An object of the version, and that of the head that it is a snapshot of. */
typedef struct cow_restored_pair {
    cow_loc snapshot, head;
    H5O_token_t token; /* of the head */
    const char *path;  /* in the head; "" for the root */
    bool empty;        /* it was deleted, and comes back without its links: only told */
} cow_restored_pair;

/* restore.c: what is told (H5COW_ADDED and so on), and noted for the commit, by the flags of changes.h */
int cow_restoring_tell(cow_restoring *r, const char *path, int32_t what);
int cow_restoring_note(cow_restoring *r, const H5O_token_t *head, unsigned flags);
/* The token of the head object that the object of the version at ADDRESS is a snapshot of. */
int cow_restoring_head(cow_restoring *r, uint64_t snapshot, H5O_token_t *head);

/* restore_object.c: attributes, comment, elements. *CHANGED is set where they differ. */
int cow_restore_header(cow_restoring *r, const cow_restored_pair *pair, bool *changed);
int cow_restore_elements(cow_restoring *r, const cow_restored_pair *pair, bool *changed);

/* restore_links.c: the links of a group, told one by one; *CHANGED: their order alone differs. Afterwards VISIT is called for each
 * hard link of the version, with the object that it leads to there. */
typedef int cow_restore_member(cow_restoring *r, cow_loc snapshot, uint64_t address, const char *path);
int cow_restore_links(cow_restoring *r, const cow_restored_pair *pair, bool *changed, cow_restore_member *visit);
/* The link NAME alone of both groups. -1 COW_NOT_FOUND: the version has none. */
int cow_restore_link(cow_restoring *r, const cow_restored_pair *group, const char *name, cow_restore_member *visit);
/* The group has no links any more; and is the member NAME of the one above it. */
int cow_restore_no_links(cow_restoring *r, const cow_restored_pair *group);
int cow_restore_group(cow_restoring *r, const cow_restored_pair *above, const char *name,
                      const cow_restored_pair *group);

#endif
