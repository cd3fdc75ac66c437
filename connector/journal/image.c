/* The newest state of a file as HDF5 alone would have written it. Contract: journal.h. */
#include "journal/internal.h"

#include "base/error.h"

#include <stdlib.h>

/* The superblock of the newest state in BYTES, SIZE of them, without the fence. */
static void unfence(const cow_journal *journal, uint8_t *bytes, uint64_t size)
{
    uint64_t base = journal->anchor.base;

    if (journal->slot.sequence > 0 && size >= COW_SUPERBLOCK_MAX && base <= size - COW_SUPERBLOCK_MAX &&
        cow_superblock_whole(bytes + base))
        cow_superblock_set(bytes + base, journal->slot.extension, false);
}

int cow_journal_image(const char *name, void **bytes, size_t *size)
{
    int number, status = -1;
    cow_journal *journal = cow_journal_open(name, (cow_journal_mode){0}, &cow_journal_defaults, &number);
    uint64_t end;

    *bytes = NULL;
    if (journal == NULL)
        return -1;
    end = journal->slot.sequence > 0 ? journal->committed_end : journal->end;
    *size = (size_t)end;
    if (end > SIZE_MAX / 2 || (*bytes = malloc(*size + 1)) == NULL)
        cow_error(COW_MEMORY, "%s: no memory for a file of %llu bytes", name, (unsigned long long)end);
    else if ((status = cow_journal_read_committed(journal, 0, *bytes, *size)) == 0)
        unfence(journal, *bytes, end);
    cow_journal_close(journal);
    if (status < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return status;
}
