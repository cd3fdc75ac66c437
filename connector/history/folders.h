/* The groups of the history that get a link for each object: a path from the root would be followed anew for each. They are
 * opened when they are first needed, and stay open with the file. */
#ifndef COW_HISTORY_FOLDERS_H
#define COW_HISTORY_FOLDERS_H

#include "history/history.h"

typedef enum cow_folder { COW_FOLDER_VIEWS, COW_FOLDER_HEADS, COW_FOLDER_REMOVED } cow_folder;

typedef struct cow_folders cow_folders;

/* NULL: no memory. */
cow_folders *cow_folders_new(void);
void cow_folders_free(cow_folders *folders);
void cow_folders_close(cow_file *file);
/* The group, which the file keeps. */
int cow_folder_open(const cow_file *file, cow_folder which, cow_loc *group);
/* A group that was opened, NULL: none, is closed, and NULL then. */
void cow_folder_close(void **group);
/* The paths of the history are short from now on, where they can be: a program may have any number of links in its root. */
void cow_folders_shorten(cow_file *file);
/* The last name of a path: what it is called in its folder. */
const char *cow_folder_name(const char *path);

#endif
