/* The bytes of commits, into the file: W5 of commit.c. See internal.h.
 *
 * Most of them are a few bytes here and there, and to the system a call costs more than a page of bytes. So what follows each other is written
 * in one call; and with `sync=off` all that is in the same pages, with what is between as it is in the file. Otherwise nothing between is
 * written: what is written to when the power fails may be garbage afterwards, and records mend only what is in them. With `sync=off`
 * nothing is promised then, and a program that is killed has written what was there before, or the same once more. */
#include "journal/internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

#define PAGE ((uint64_t)4096)
#define ROOM (16 * PAGE) /* of one call */
#define RUNS 256

typedef struct run {
    uint64_t address;
    const uint8_t *bytes; /* of the frames */
    size_t size;
} run;

typedef struct writing {
    cow_journal *journal;
    bool between; /* bytes between runs may be written as well */
    run runs[RUNS];
    size_t count;
    uint8_t together[ROOM];
} writing;

static int write_run(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    cow_journal *journal = context;

    if (cow_disk_write(&journal->disk, address, bytes, size) < 0)
        return -1;
    if (address + size > journal->size)
        journal->size = address + size;
    return 0;
}

/* What was gathered, one run at least. Where what is between cannot be read, it is not written. */
static int write_gathered(writing *w)
{
    const run *first = w->runs, *last = w->runs + w->count - 1;
    const size_t count = w->count, size = (size_t)(last->address + last->size - first->address);
    bool together = count > 1;
    size_t ours = 0;

    w->count = 0;
    for (size_t i = 0; i < count; i++)
        ours += w->runs[i].size;
    if (ours < size && cow_disk_read(&w->journal->disk, first->address, w->together, size) < 0) {
        cow_error_clear();
        together = false;
    }
    for (size_t i = 0; i < count; i++) {
        const run *r = w->runs + i;

        if (together)
            memcpy(w->together + (r->address - first->address), r->bytes, r->size);
        else if (write_run(w->journal, r->address, r->bytes, r->size) < 0)
            return -1;
    }
    return together ? write_run(w->journal, first->address, w->together, size) : 0;
}

/* Runs come in their order, and none is longer than a page. */
static int gather(void *context, uint64_t address, const uint8_t *bytes, size_t size)
{
    writing *w = context;

    if (w->count > 0) {
        const run *last = w->runs + w->count - 1;
        const uint64_t end = last->address + last->size;
        /* no page is written to that is not written to anyway */
        const bool near = address == end || (w->between && address / PAGE <= (end - 1) / PAGE + 1);

        if ((!near || w->count == RUNS || address + size - w->runs[0].address > ROOM) && write_gathered(w) < 0)
            return -1;
    }
    w->runs[w->count++] = (run){address, bytes, size};
    return 0;
}

int cow_journal_write_frames(cow_journal *journal, const cow_overlay *frames)
{
    writing *w = malloc(sizeof *w);
    int status;

    if (w == NULL)
        return cow_overlay_each(frames, write_run, journal);
    w->journal = journal;
    w->between = journal->options.sync == COW_SYNC_OFF;
    w->count = 0;
    status = cow_overlay_each(frames, gather, w);
    if (status == 0 && w->count > 0)
        status = write_gathered(w);
    free(w);
    return status;
}
