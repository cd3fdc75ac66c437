/* See hashes.h. A commit fails when the driver failed meanwhile, since what HDF5 keeps of the file may then lack something. Reading
 * the runs changes nothing that HDF5 keeps, so failures of that do not count. */
#include "history/hashes.h"

#include "base/error.h"
#include "history/internal.h"
#include "journal/driver.h"

#include <stdlib.h>

struct cow_hashes {
    cow_file *file;
    bool snapshots; /* of that table; else of pool */
    uint32_t id;
    bool lost;      /* the disk failed there */
    bool half_done; /* while it was changed */
};

/* A table that tells `of` what the disk does. */
typedef struct told_table {
    cow_table table; /* first */
    cow_table *under;
    cow_hashes *of;
} told_table;

cow_hashes *cow_hashes_new(cow_file *file, uint32_t id)
{
    cow_hashes *h = calloc(1, sizeof *h);

    if (h == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to find what is in it", file->name);
        return NULL;
    }
    h->file = file;
    h->id = id;
    return h;
}

cow_hashes *cow_hashes_of_snapshots(cow_file *file)
{
    cow_hashes *h = cow_hashes_new(file, 0);

    if (h != NULL)
        h->snapshots = true;
    return h;
}

void cow_hashes_free(cow_hashes *h)
{
    free(h);
}

/* ---- the disk ---- */

static unsigned long failures(const cow_hashes *h)
{
    return cow_journal_driver_file_failures(h->file->fileno);
}

/* STATUS of what was done since there were BEFORE failures. */
static int looked_at(cow_hashes *h, int status, unsigned long before, bool reading)
{
    unsigned long more = failures(h) - before;

    h->lost = h->lost || more > 0;
    if (reading)
        cow_file_excuse(h->file, more);
    else
        h->half_done = h->half_done || more > 0;
    return status;
}

static int told_read(cow_table *table, uint64_t first, uint64_t count, void *rows)
{
    told_table *t = (told_table *)table;
    unsigned long before = failures(t->of);

    return looked_at(t->of, t->under->read(t->under, first, count, rows), before, true);
}

static int told_write(cow_table *table, uint64_t first, uint64_t count, const void *rows)
{
    told_table *t = (told_table *)table;
    unsigned long before = failures(t->of);

    return looked_at(t->of, t->under->write(t->under, first, count, rows), before, false);
}

static int told_resize(cow_table *table, uint64_t rows)
{
    told_table *t = (told_table *)table;
    unsigned long before = failures(t->of);
    int status = looked_at(t->of, t->under->resize(t->under, rows), before, false);

    table->rows = t->under->rows;
    return status;
}

static void told_close(cow_table *table)
{
    told_table *t = (told_table *)table;

    t->under->close(t->under);
    free(t);
}

/* Takes over UNDER, also when it fails. */
static cow_table *told(cow_hashes *h, cow_table *under)
{
    told_table *t = under == NULL ? NULL : malloc(sizeof *t);

    if (t != NULL) {
        *t = (told_table){{under->row_size, under->rows, told_read, told_write, told_resize, told_close}, under, h};
        return &t->table;
    }
    if (under != NULL) {
        under->close(under);
        cow_error(COW_MEMORY, "%s: no memory to find what is in it", h->file->name);
    }
    return NULL;
}

/* ---- for the pool, or the table of snapshots ---- */

static cow_table_kind kind_of(const cow_hashes *h)
{
    return h->snapshots ? COW_TABLE_SNAPSHOT_ROWS : COW_TABLE_HASHES;
}

static int open_under(const cow_hashes *h, cow_table **under)
{
    *under = cow_layout_still_table(h->file->written, kind_of(h), h->id, 0);
    if (*under != NULL)
        return 1;
    if (cow_layout_still_lacks(h->file->written, kind_of(h)))
        return 0;
    return h->snapshots ? cow_layout_snapshot_rows_open(h->file->loc, under)
                        : cow_layout_hashes_open(h->file->loc, h->id, under);
}

static int open_hashes(void *context, cow_table **table)
{
    cow_hashes *h = context;
    unsigned long before = failures(h);
    cow_table *under;
    int found = h->lost ? 0 : looked_at(h, open_under(h, &under), before, true);

    if (found <= 0)
        return found;
    return (*table = told(h, under)) == NULL ? -1 : 1;
}

/* What the disk does not give back cannot be removed either. */
static cow_table *make_hashes(void *context)
{
    cow_hashes *h = context;
    unsigned long before = failures(h);
    cow_table *under;

    if (h->lost) {
        if (h->snapshots)
            cow_error(COW_IO, "%s: what helps to find snapshots could not be read", h->file->name);
        else
            cow_error(COW_IO, "%s: what helps to find equal chunks of pool %u could not be read", h->file->name, h->id);
        return NULL;
    }
    cow_layout_still_made(h->file->written, kind_of(h));
    under = h->snapshots ? cow_layout_snapshot_rows_make(h->file->loc) : cow_layout_hashes_make(h->file->loc, h->id);
    looked_at(h, 0, before, false);
    cow_own_changed(h->file);
    return told(h, under);
}

static bool is_half_done(void *context)
{
    return ((const cow_hashes *)context)->half_done;
}

cow_pool_lookup cow_hashes_source(cow_hashes *h)
{
    return (cow_pool_lookup){h, open_hashes, make_hashes, is_half_done};
}
