/* Bytes of a file that stays as it is: see still.h. */
#include "native/still.h"

#include "base/bytes.h"

#include <stdlib.h>

/* What is looked at stands in many small pieces, of which many are near each other. */
#define PAGE  4096
#define PAGES 16

struct cow_still {
    cow_journal *journal;
    uint64_t base;
    cow_source source;
    uint64_t page[PAGES]; /* each has a place of its own; UINT64_MAX: nothing is there */
    uint8_t *bytes[PAGES];
};

static int read_pages(void *context, uint64_t address, void *bytes, size_t size)
{
    cow_still *still = context;
    const uint64_t end = still->source.end;
    uint8_t *to = bytes;

    if (size > 2 * PAGE)
        return cow_journal_look(still->journal, still->base + address, bytes, size) ? 0 : -1;
    while (size > 0) {
        const uint64_t page = address / PAGE, place = page % PAGES;
        const size_t in = (size_t)(address % PAGE), n = size < PAGE - in ? size : PAGE - in;

        if (still->page[place] != page) {
            const uint64_t first = page * PAGE;

            still->page[place] = UINT64_MAX;
            if (still->bytes[place] == NULL && (still->bytes[place] = malloc(PAGE)) == NULL)
                return -1;
            if (!cow_journal_look(still->journal, still->base + first, still->bytes[place],
                                  end - first < PAGE ? (size_t)(end - first) : PAGE))
                return -1;
            still->page[place] = page;
        }
        memcpy(to, still->bytes[place] + in, n);
        to += n;
        address += n;
        size -= n;
    }
    return 0;
}

/* The journal has what is read again and again of a file that is written. */
static int read_now(void *context, uint64_t address, void *bytes, size_t size)
{
    const cow_still *still = context;

    return cow_journal_look(still->journal, still->base + address, bytes, size) ? 0 : -1;
}

static cow_still *make(cow_journal *journal, uint64_t base, int (*read)(void *context, uint64_t address, void *bytes, size_t size))
{
    uint8_t superblock[16];
    cow_still *still;

    if (cow_journal_end(journal) < base || (still = calloc(1, sizeof *still)) == NULL)
        return NULL;
    still->journal = journal;
    still->base = base;
    still->source = (cow_source){.context = still, .end = cow_journal_end(journal) - base, .read = read};
    memset(still->page, 0xff, sizeof still->page);
    /* signature, version, bytes of an address and of a length */
    if (cow_source_bring(&still->source, 0, superblock, sizeof superblock) <= 0 || superblock[8] < 2 || superblock[8] > 3 ||
        superblock[9] != 8 || superblock[10] != 8) {
        cow_still_close(still);
        return NULL;
    }
    return still;
}

cow_still *cow_still_open(cow_journal *journal)
{
    uint64_t base;

    return journal == NULL || cow_journal_bytes(journal, &base) != COW_BYTES_STAY ? NULL : make(journal, base, read_pages);
}

cow_still *cow_still_open_written(cow_journal *journal)
{
    uint64_t base;

    return journal == NULL || cow_journal_bytes(journal, &base) != COW_BYTES_CHANGE ? NULL : make(journal, base, read_now);
}

void cow_still_close(cow_still *still)
{
    if (still == NULL)
        return;
    for (unsigned p = 0; p < PAGES; p++)
        free(still->bytes[p]);
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
