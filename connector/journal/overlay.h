/* Bytes that stand in front of a file's own, by address. Knows nothing of files. */
#ifndef COW_JOURNAL_OVERLAY_H
#define COW_JOURNAL_OVERLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cow_overlay cow_overlay;

/* NULL: out of memory. */
cow_overlay *cow_overlay_new(void);
void cow_overlay_free(cow_overlay *overlay);

/* -1: out of memory; then some of the bytes may have been taken. */
int cow_overlay_write(cow_overlay *overlay, uint64_t address, const void *bytes, size_t size);
/* Put over BUFFER, which holds [address, address + size), what the overlay has of it. */
void cow_overlay_read(const cow_overlay *overlay, uint64_t address, void *buffer, size_t size);
/* Does it have any byte of [address, address + size)? */
bool cow_overlay_touches(const cow_overlay *overlay, uint64_t address, uint64_t size);
/* Does it have all of them? */
bool cow_overlay_covers(const cow_overlay *overlay, uint64_t address, uint64_t size);
/* FROM's bytes over those of TO. */
int cow_overlay_merge(cow_overlay *to, const cow_overlay *from);
void cow_overlay_clear(cow_overlay *overlay);
bool cow_overlay_empty(const cow_overlay *overlay);

/* Runs of adjacent bytes in order of address. A run never crosses a multiple of 4096; two calls in a row may be
 * adjacent. Stops and returns what VISIT returned when that is not 0. -1: out of memory. */
typedef int (*cow_overlay_visitor)(void *context, uint64_t address, const uint8_t *bytes, size_t size);
int cow_overlay_each(const cow_overlay *overlay, cow_overlay_visitor visit, void *context);

#endif
