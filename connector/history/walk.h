/* Private to the rooms that make the tree of a version: decide.c, snapshot.c, previous.c, group_copy.c, former_tree.c.
 * snapshot.c says how they do it together. */
#ifndef COW_HISTORY_WALK_H
#define COW_HISTORY_WALK_H

#include "h5/small_group.h"
#include "history/internal.h"

enum { COW_SAME = 1, COW_NEW = 2, COW_VISITING = 3 };

/* Of a head object in `built` whose snapshot could not be made. */
#define COW_LEFT_OUT UINT64_MAX

#define COW_PATH_UNKNOWN "//" /* the path of what was not met by its links */

/* More than 20 fields: deciding, building and taking back go over the same objects, and know them by the same maps. */
struct cow_walk {
    cow_file *file;
    cow_map state;    /* head address -> COW_SAME, COW_NEW, COW_VISITING */
    cow_map built;    /* head address -> address of the snapshot made in this walk, or COW_LEFT_OUT */
    cow_map used;     /* head addresses of named datatypes with a snapshot that were met by their use, not by a link */
    cow_map held;     /* of all that were made for their use -> a handle: what was to use it may fail */
    cow_map bare;     /* head addresses of what need not be opened -> 1: empty groups, 0: copies (bare.c) */
    cow_map unlinked; /* snapshots that have no link yet: see unlinked.c */
    cow_map
        partial;    /* head addresses of objects whose snapshot lacks an attribute, a comment or a link -> 0, DAMAGED */
    cow_map summed; /* head addresses of objects of which attributes have a checksum in the table */
    cow_map deleted; /* head addresses; not full */
    bool full;       /* look into every group */
    bool types;      /* a named datatype changed: what is of this type changes with it */
    bool renew;      /* groups with absolute soft links are made anew: the links name the version */
    bool absolute;   /* building: such a group was met */
    cow_map
        several; /* head addresses of what changed and has several links -> how many: all groups that hold one change with it.
                      * Those of what no version knows were made since, and are known to have changed */
    cow_map links;                   /* head addresses of what was looked at -> links to it that were met; not full */
    bool failed;                     /* building: not a single object, but no version can be made */
    char prefix[COW_PATH_MAX + 256]; /* of the version being built */
    uint64_t row;
    cow_lacks *lacks;             /* building: what could not be made */
    cow_loc made;                 /* the new root */
    bool linked, set_aside, gone; /* the new tree; the former one, which then is gone */
    unsigned copying;             /* groups below COW_PATH_COPYING that were made */
    struct cow_leftover *rest;    /* amending */
};

/* The links of a group as they were listed. */
typedef struct cow_listed_link {
    char *name;
    H5L_info2_t info;
} cow_listed_link;

typedef struct cow_listed_links {
    cow_listed_link *link;
    size_t count, room;
} cow_listed_links;

typedef struct cow_walk_group {
    cow_walk *walk;
    cow_loc group; /* head group whose links are visited */
    const char *path;
    bool root;
    int answer; /* deciding: -1: the walk fails */
    /* building only */
    uint64_t address;
    cow_loc target;          /* the new group */
    uint64_t before;         /* the group's newest snapshot; UINT64_MAX: there is none */
    cow_loc previous;        /* the same, where it is open; else object NULL */
    cow_small_group former;  /* its links, in the order of their names */
    cow_listed_links listed; /* those of `group`, where they were all listed already; else link NULL */
} cow_walk_group;

/* A link that was met: an object can be looked at by it without being opened. */
typedef struct cow_by_link {
    cow_loc group;
    const char *name;
} cow_by_link;

/* decide.c */
/* The link to the history itself, which no version has. */
bool cow_walk_is_history(const cow_walk_group *p, const char *name);
/* NULL: no memory for it. */
char *cow_walk_child_path(const char *path, const char *name);
/* 1: *INFO; 0: the group has no such link; -1 */
int cow_walk_find_link(cow_loc group, const char *name, H5L_info2_t *info);
/* PATH is "" for the root, else "/a/b"; MET: the link that led here, or NULL. COW_SAME, COW_NEW; COW_VISITING: it is being decided, for
 * it is above itself; -1. */
int cow_decide(cow_walk *walk, uint64_t address, const char *path, const cow_by_link *met);
/* The names of the few links of a group that need to be looked at; NULL: all do. */
const char *const *cow_decide_few_names(const cow_walk *walk, cow_loc group, const char *path, size_t *count);
/* A dataset of this transaction that waits for the version, with a view that can be its snapshot: since that was made, neither an
 * attribute nor a comment was noted of it. */
bool cow_decide_is_whole(const cow_walk *walk, uint64_t address, cow_stowed_head *head);

/* snapshot.c */
/* No version can be made. Always -1. */
int cow_walk_fail(cow_walk *walk);
/* The snapshot of the object at ADDRESS does without something, WHAT and its NAME, for the reason that is recorded, which is
 * forgotten. -1: the walk fails. */
int cow_walk_lack(cow_walk *walk, uint64_t address, const char *path, const char *what, const char *name);
/* The head object at ADDRESS has this snapshot. */
int cow_walk_note_built(cow_walk *walk, uint64_t address, cow_loc snapshot);
/* The object at ADDRESS, as NAME of the group that is being made. -1: the walk fails. */
int cow_build(cow_walk *walk, cow_walk_group *p, const char *name, uint64_t address, const char *path);

/* previous.c: the newest snapshot of a group, of which the next one takes what stays */
/* false: there is none, or it cannot be opened: that spares openings only. */
bool cow_previous_open(cow_walk_group *p);
/* Its hard links are in P->former, as far as they can be listed. */
void cow_previous_list(cow_walk_group *p);
void cow_previous_close(cow_walk_group *p);
/* Has it the link NAME to the snapshot at ADDRESS? */
bool cow_previous_has(const cow_walk_group *p, const char *name, uint64_t address);
/* Does it have, below NAME, another snapshot of head ADDRESS than the one that is said to be the newest? */
bool cow_previous_misled(const cow_walk *walk, const cow_walk_group *p, const char *name, uint64_t address);
/* The new group, with all links that stay as they are in the previous one, where that is one with usual properties and few links; HDF5 goes on
 * with the rest. 1: *MADE; 0: HDF5 makes it; -1: the walk fails. */
int cow_previous_keep(cow_walk_group *p, cow_loc *made);
/* Was the new group made with this link? */
bool cow_previous_kept(const cow_walk_group *p, const char *name);

/* group_copy.c: a group with many links, of which few changed */
/* 1: *MADE; 0: it is to be made anew; -1: the walk fails. */
int cow_group_copy(cow_walk *walk, cow_walk_group *p, cow_loc *made);
/* What the groups of copied ones were gathered in goes; what they have is held, or has a link elsewhere. */
int cow_group_copy_end(cow_walk *walk);

/* former_tree.c: the tree that a flush made of an amended version */
int cow_former_set_aside(cow_walk *walk);
void cow_former_free(struct cow_leftover *rest);

#endif
