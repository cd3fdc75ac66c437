/* Where the views of a file's index are: see layout/layout.h. A file gets parts when its index has grown beyond what one of them has. */
#ifndef COW_HISTORY_VIEWS_H
#define COW_HISTORY_VIEWS_H

#include "history/history.h"
#include "layout/layout.h"

typedef struct cow_views cow_views;

/* NULL: no memory. */
cow_views *cow_views_new(void);
void cow_views_free(cow_views *views);
void cow_views_close(cow_file *file);

/* From which offset on views are in parts: this number changes as the file gets some, and lives as long as FILE. NULL: an error. */
const uint64_t *cow_views_parts(cow_file *file);
int cow_views_path(cow_file *file, char path[COW_PATH_MAX], uint64_t offset);
/* The same of a view that is about to be made, in a file that is written: it may get its first part by that. */
int cow_views_place(cow_file *file, uint64_t offset, char path[COW_PATH_MAX]);
/* 1: the record at OFFSET has a view, which perhaps waits for its link; 0; -1. */
int cow_views_exist(cow_file *file, uint64_t offset);
/* The view of the record at OFFSET has its header at ADDRESS (native/virtual.h), and waits for its link. A commit makes those of all its datasets together: most are in new
 * parts, each of which is then written with all its links. */
int cow_views_wait(cow_file *file, uint64_t offset, uint64_t address);
int cow_views_link(cow_file *file);
/* The group that has the view of the record at OFFSET, or is to have it, in a file that is written, and the view's path: cow_folder_name is what it is
 * called there. None waits any more. The group stays open at least until three others have been asked for. */
int cow_views_open(cow_file *file, uint64_t offset, cow_loc *group, char path[COW_PATH_MAX]);

#endif
