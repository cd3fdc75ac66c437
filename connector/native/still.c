/* Bytes of a file that stays as it is: see still.h. */
#include "native/still.h"

#include "h5/superblock.h"

#include <stdlib.h>

struct cow_still {
    cow_journal *journal;
    uint64_t base;
    cow_source source;
};

/* The journal keeps what is read again and again. */
static int read_bytes(void *context, uint64_t address, void *bytes, size_t size)
{
    const cow_still *still = context;

    return cow_journal_look(still->journal, still->base + address, bytes, size) ? 0 : -1;
}

static cow_still *make(cow_journal *journal, cow_bytes_of_file which)
{
    uint8_t superblock[16];
    cow_still *still;
    uint64_t base;

    if (journal == NULL || cow_journal_bytes(journal, &base) != which || cow_journal_end(journal) < base ||
        (still = calloc(1, sizeof *still)) == NULL)
        return NULL;
    still->journal = journal;
    still->base = base;
    still->source = (cow_source){.context = still, .end = cow_journal_end(journal) - base, .read = read_bytes};
    if (cow_source_bring(&still->source, 0, superblock, sizeof superblock) <= 0 || !cow_superblock_wide(superblock)) {
        cow_still_close(still);
        return NULL;
    }
    return still;
}

cow_still *cow_still_open(cow_journal *journal)
{
    return make(journal, COW_BYTES_STAY);
}

cow_still *cow_still_open_written(cow_journal *journal)
{
    return make(journal, COW_BYTES_CHANGE);
}

void cow_still_close(cow_still *still)
{
    free(still);
}

const cow_source *cow_still_source(const cow_still *still)
{
    return &still->source;
}

uint64_t cow_still_base(const cow_still *still)
{
    return still->base;
}

int cow_still_write(void *still, uint64_t address, const void *bytes, size_t size)
{
    const cow_still *s = still;

    return cow_journal_write(s->journal, s->base + address, bytes, size);
}
