/* Some bytes of a file in memory, by pages: what was read of it a moment ago, and what was written and waits to be. HDF5 reads and writes headers, nodes and rows
 * of some hundred bytes, many of them in the same pages, and each would be a system call.
 *
 * Only for bytes that nobody else changes: under the lock of writers, or those of a state that is pinned. Whoever changes the file past them says so;
 * disk.c does. One thread at a time. */
#ifndef COW_JOURNAL_PAGES_H
#define COW_JOURNAL_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct cow_pages cow_pages;

/* The file, of which CONTEXT is what each function here is given. Both call no HDF5 function, and record no error. */
typedef struct cow_pages_file {
    /* As many of SIZE bytes from ADDRESS as the file has there, less only at its end. -1: cannot. */
    ssize_t (*read)(const void *context, uint64_t address, void *buffer, size_t size);
    /* All of them. -1: cannot, errno says why. */
    int (*write)(const void *context, uint64_t address, const void *bytes, size_t size);
} cow_pages_file;

/* Of a file of END bytes. NULL: no memory, which is no error: then everything is read from the file, and written to it. */
cow_pages *cow_pages_new(const cow_pages_file *file, uint64_t end);
/* What waits is never written. */
void cow_pages_free(cow_pages *pages);
/* In a process that was forked: from here on only what waits is known, and it is not written here, but by the parent. */
void cow_pages_freeze(cow_pages *pages);

/* SIZE bytes from ADDRESS, zeros beyond the end of the file. False: not by pages (too long, unreadable, no memory); BUFFER may be changed then. */
bool cow_pages_read(cow_pages *pages, const void *context, uint64_t address, void *buffer, size_t size);
/* BUFFER has what the file has there: it gets what waits. */
void cow_pages_overlay(cow_pages *pages, uint64_t address, void *buffer, size_t size);

/* Is so much written by pages? */
bool cow_pages_take(const cow_pages *pages, size_t size);
/* These bytes wait; in each page only such as follow each other, so that nothing else of the file is written with them. -1: others could not be written, errno says why;
 * or there is no memory. */
int cow_pages_put(cow_pages *pages, const void *context, uint64_t address, const void *bytes, size_t size);
/* Of SIZE bytes from ADDRESS none waits any more: they are written. -1: errno says why. */
int cow_pages_settle(cow_pages *pages, const void *context, uint64_t address, uint64_t size);

/* These bytes of the file change, or have changed: no longer known, nor written, if they wait. Not in the middle of what waits. */
void cow_pages_forget(cow_pages *pages, uint64_t address, uint64_t size);
/* The size that the file must have, as far as nothing waits: it was written up to END past the pages; it was cut, or made longer, to END, and what is behind is
 * forgotten already. */
uint64_t cow_pages_end(const cow_pages *pages);
void cow_pages_reach(cow_pages *pages, uint64_t end);
void cow_pages_cut(cow_pages *pages, uint64_t end);

#endif
