/* A file that gets its name when it is complete: exports, copies, imports, rescued files, and what takes the place of a
 * file that is put aside.
 *
 * It is made under a short random name (.h5cow-XXXXXX.tmp) in the target's folder, never through a link and never over
 * anything, and only its owner may read it until it gets the owner and the permissions of what it was made from. A
 * process that is killed leaves it behind under that name, which nothing else uses.
 *
 * Functions return 0 or -1 and a recorded error. */
#ifndef COW_NEWFILE_H
#define COW_NEWFILE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct cow_newfile {
    char *target; /* the name that it will have */
    char *name;   /* the one that it has */
    int file;     /* open for reading and writing */
    char *path;   /* for those who open it again: leads to that file, whatever stands at its name by then */
} cow_newfile;

#define COW_NEWFILE_NONE ((cow_newfile){.file = -1})

int cow_newfile_make(cow_newfile *new, const char *target);
/* The same under the name NAME, in the target's folder, that no other run makes as well: what stands there was left by one that
 * was killed, and goes. */
int cow_newfile_make_as(cow_newfile *new, const char *target, const char *name);
/* Onto the disk, then under its name. REPLACE: over what is there; else there must be nothing. Its target is synced: a
 * crash leaves what was there, or the new file, complete. */
int cow_newfile_place(cow_newfile *new, bool replace);
/* Give back the memory and the descriptor; a file that was not placed is removed. COW_NEWFILE_NONE is allowed. */
void cow_newfile_drop(cow_newfile *new);

/* Is that the `path` of such a file, which has not got its name? */
bool cow_newfile_is(const char *path);

/* The first BYTES of FILE, an application's own before the superblock, become those of the file SOURCE. */
int cow_newfile_user_block(int file, const char *source, uint64_t bytes);

/* An extended attribute that tells which history a file has: journal/label.h. */
#define COW_LABEL "user.h5cow"

/* FILE gets owner, group, permissions, access control lists and extended attributes of the file SOURCE, as far as this
 * user may; but not the label. Nobody may do more with FILE than with SOURCE but its owner: what would be wider for somebody, since owner,
 * group or lists could not be kept, is taken away. 1: all was kept; 0: not all; -1. */
int cow_newfile_like(int file, const char *source);

/* NAME with SUFFIX behind its last part, which is cut short where the file system allows no name as long as that.
 * free() it. NULL: no memory. */
char *cow_name_beside(const char *name, const char *suffix);

#endif
