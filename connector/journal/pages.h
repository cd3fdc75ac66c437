/* What was read of a file a moment ago: HDF5 reads headers, nodes and rows of some hundred bytes, many of them in the same pages, and
 * each would be a system call.
 *
 * Only for bytes that nobody else changes: under the lock of writers, or those of a state that is pinned. Whoever changes the file through its
 * cow_disk says so with cow_pages_forget; disk.c does. One thread at a time. */
#ifndef COW_JOURNAL_PAGES_H
#define COW_JOURNAL_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct cow_pages cow_pages;

/* NULL: no memory, which is no error: then everything is read from the file. */
cow_pages *cow_pages_new(void);
void cow_pages_free(cow_pages *pages);

/* As many of SIZE bytes from ADDRESS as the file has there, less only at its end. -1: cannot. Calls no HDF5 function. */
typedef ssize_t cow_pages_reader(const void *context, uint64_t address, void *buffer, size_t size);
/* SIZE bytes from ADDRESS, zeros beyond the end of the file. False: not by pages (too long, unreadable, no memory); BUFFER may be changed then. */
bool cow_pages_read(cow_pages *pages, cow_pages_reader *read, const void *context, uint64_t address, void *buffer,
                    size_t size);
/* These bytes of the file change. */
void cow_pages_forget(cow_pages *pages, uint64_t address, uint64_t size);

#endif
