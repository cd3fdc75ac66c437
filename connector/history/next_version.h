/* The version to come, and the ones before it: how many the log has, which one the running transaction amends, name and
 * message of the next. next_version.c alone knows how that is kept. */
#ifndef COW_HISTORY_NEXT_VERSION_H
#define COW_HISTORY_NEXT_VERSION_H

#include "history/history.h"

typedef struct cow_next_version cow_next_version;

/* Of a new file: its log has no row. NULL: no memory. */
cow_next_version *cow_next_version_new(void);
void cow_next_version_free(cow_next_version *next);
/* Of a file that has versions: looks into the log. */
int cow_versions_open(cow_file *file);

/* Rows of the log, which are its versions. */
uint64_t cow_versions_known(const cow_file *file);
/* The row of the newest one, -1: none. */
int64_t cow_versions_newest(const cow_file *file);
/* The row of the one that the running transaction has made, and amends; -1: none yet. */
int64_t cow_versions_running(const cow_file *file);

/* There is a version of row ROW now, a new one or an amended one. Until it is FINISHED, it is the running one. */
void cow_versions_made(cow_file *file, uint64_t row, bool finished);
/* The transaction ends; its version, if it made any, stays as it is. */
void cow_versions_end(cow_file *file);
/* The next one is made of the version of row ROW, not of the newest one. */
void cow_versions_descend(cow_file *file, uint64_t row);
/* Something is written that that one has not. */
void cow_versions_depart(cow_file *file);
/* What it is made of: a row, -1: nothing. */
int64_t cow_versions_parent(const cow_file *file);
/* The last commit had changes and could make no version of them. */
void cow_versions_set_missed(cow_file *file, bool missed);
bool cow_versions_missed(const cow_file *file);
/* The running version has named datatypes that no link leads to, but only their use: with what uses them they go from its tree. */
void cow_versions_use_types(cow_file *file);
bool cow_versions_uses_types(const cow_file *file);
/* The log, open for the running commit, which has met its heap blocks (cow_versions_meet_blocks). Met again: nothing is done. */
int cow_versions_meet(cow_file *file);
cow_layout_log *cow_versions_log(const cow_file *file);
void cow_versions_part(cow_file *file); /* the commit ends; errors stay as they are */

/* -1: there is a version, or a tag, of the name that the option gives, and not from this process: a program that opens a file once more
 * goes on with NAME.2. */
int cow_version_may_be_made(const cow_file *file);
/* -1: there is a version of that name, or a tag. */
int cow_version_is_new(const cow_file *file, const char *name);
/* 1: there is one, or a tag, 0, -1. Of a file that is laid out. */
int cow_version_exists(const cow_file *file, const char *name);

/* What the next one is to be called (NULL: by its number), and its message (NULL: none). */
const char *cow_description_name(const cow_file *file);
const char *cow_description_message(const cow_file *file);
/* The message that the program has given for it; NULL: none. */
const char *cow_description_given(const cow_file *file);
/* The version to come has come. */
void cow_description_used(cow_file *file);

#endif
