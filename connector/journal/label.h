/* The label of a file: which history it has, in an extended attribute that survives what destroys the file's own bytes. A program
 * without h5cow that empties the file, or writes it anew, leaves the label; so does a new name. From it the next opening, and
 * `h5cow doctor`, tell what the file was.
 *
 * A label is a help and nothing else. It is no part of the file's state and no part of a commit: it may be missing, be that of an
 * older version, or be lost (`cp`). Nothing fails for it, and nothing is refused. Its bytes: docs/format.md, "The label".
 *
 * Nothing here records an error. */
#ifndef COW_JOURNAL_LABEL_H
#define COW_JOURNAL_LABEL_H

#include "journal/journal.h"

typedef struct cow_label {
    uint8_t history[16]; /* its identity, as in the journal */
    uint64_t number;     /* of the newest version, from 1; 0: there is none yet */
    int64_t time;        /* of that: microseconds since 1970 UTC */
    bool told;           /* the history is gone, and that was said */
    char name[256];      /* of that version */
} cow_label;

/* The next commit of JOURNAL has the version NAME of that NUMBER and TIME: its label will say so. */
void cow_label_version(cow_journal *journal, const char *name, uint64_t number, int64_t time);
/* A commit is made: its label. The first one of a history says on standard error which history the file had before. */
void cow_label_committed(cow_journal *journal);
/* The file has a history: where the label is of another, that is said on standard error, once. */
void cow_label_compare(const cow_journal *journal);
/* label_of.c */
/* The file NAME was opened and has no history, or it could not be opened: which one it had is said on standard error, once. */
void cow_label_tell(const char *name);
/* Which history had the file NAME that it has not any more? false: none that is known. Says nothing. */
bool cow_label_lost(const char *name, cow_label *label);
/* The label of the file NAME; false: none. */
bool cow_label_of(const char *name, cow_label *label);
/* FILE, which is open for writing, has the history of the file SOURCE: its label as well. NULL: no label is true of it. */
void cow_label_copy(const char *source, int file);
/* "#25 'calibrated', made 2026-11-30T12:00:05", as it is told. */
const char *cow_label_text(const cow_label *label, char text[400]);

#endif
