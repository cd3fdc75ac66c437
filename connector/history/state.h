/* The state of a file, and who may write: the diagram is in history.h. Its fields are state.c's alone. */
#ifndef COW_HISTORY_STATE_H
#define COW_HISTORY_STATE_H

#include "history/history.h"

typedef enum cow_file_state {
    COW_FILE_CLEAN,
    COW_FILE_OPEN,
    COW_FILE_AMENDABLE,
    COW_FILE_FAILED,
    COW_FILE_ABANDONED
} cow_file_state;

typedef struct cow_state cow_state;

/* CLEAN, of this process. NULL: no memory. */
cow_state *cow_state_new(bool writable);
void cow_state_free(cow_state *state);

cow_file_state cow_file_state_of(const cow_file *file);
void cow_file_enter(cow_file *file, cow_file_state state); /* not FAILED: */
int cow_file_fail(cow_file *file);                         /* enter FAILED, keeping the recorded error; always -1 */
/* A commit has happened, and what the program changed is in it. */
void cow_file_all_committed(cow_file *file);
/* Why it is FAILED; "": it never was. */
const char *cow_file_failure(const cow_file *file);
/* Nothing more is committed: the state is FAILED or ABANDONED. */
bool cow_file_ended(const cow_file *file);
/* Did this process open it? Forked children must not write. */
bool cow_file_ours(const cow_file *file);
/* Opened once more, to write as well. */
void cow_file_allow_writing(cow_file *file);
/* By H5atclose: no native handle any more. */
void cow_file_set_shut(cow_file *file);

int cow_file_begin(cow_file *file); /* may_write, then OPEN */
/* Bytes that the file has grown by since the transaction began. */
int cow_file_grown(const cow_file *file, int64_t *bytes);
/* Where the address space of HDF5 ends. */
int cow_file_end(const cow_file *file, uint64_t *eoa);
/* A commit begins. */
void cow_file_begin_commit(cow_file *file);
/* Has the disk failed since then? */
bool cow_file_disk_failed(const cow_file *file);
/* So many of its failures do not count: what was asked of it then is not needed. */
void cow_file_excuse(cow_file *file, unsigned long failures);

/* ---- the file whose place this one takes ---- */

/* NULL: it takes none, or has had its first commit. */
const char *cow_file_instead_of(const cow_file *file);
/* A commit has happened: it goes, or is forgotten. */
void cow_file_replaced(cow_file *file);

#endif
