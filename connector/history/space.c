/* HDF5 knows of free space while a file is open, and forgets it when it is closed. In a file that something was freed in, the table
 * `free` keeps it: with each commit what HDF5 knows then, and what is left of what the file driver was given when the file was
 * opened. The next opening gives it all to the driver (journal/driver.h), so the two never have the same.
 *
 * A place that is free in the table, and in use in the file, would be written twice. So the table counts for one commit only, whose
 * number is in its first row: after any other, of whoever does not know of the table, nothing in it is used.
 *
 * In a file with a user block it stays empty as well: where HDF5 counts its addresses from is not told, and is not the same for all
 * of them.
 *
 * A file that was made so that HDF5 keeps free space itself has no table (collect.c). Where somebody put one there nothing in it is
 * used, for HDF5 has it all when it opens the file again, and each place would be given out twice. None is made either where HDF5 takes
 * whole pages, or never uses free space again.
 */
#include "history/space.h"

#include "base/error.h"
#include "history/internal.h"
#include "journal/driver.h"
#include "journal/inspect.h"

#include <stdlib.h>
#include <string.h>

#define LEAST      ((uint64_t)16) /* bytes of a place that is worth a row; what lies between others parts them for good */
#define MOST_ROWS  ((size_t)1 << 14)
#define STEP       64 /* rows by which the table grows */
#define MOST_TRIES 8

struct cow_space {
    cow_table *table; /* NULL: the file has none */
    bool unused;      /* nothing is read from it, nor written */
};

cow_space *cow_space_new(void)
{
    return calloc(1, sizeof(cow_space));
}

void cow_space_free(cow_space *space)
{
    free(space);
}

void cow_space_close(cow_file *file)
{
    if (file->space != NULL)
        cow_file_close_table(&file->space->table);
}

static bool has_block(const cow_file *file)
{
    return file->journal != NULL && cow_journal_base(file->journal) != 0;
}

int cow_space_create(cow_file *file)
{
    if (file->space->table != NULL)
        return 0;
    file->space->unused = has_block(file);
    cow_journal_driver_offer(file->fileno, NULL, 0);
    cow_layout_still_made(file->written, COW_TABLE_FREE);
    return (file->space->table = cow_layout_table_create(file->loc, COW_TABLE_FREE, 0, 0)) == NULL ? -1 : 0;
}

/* ---- reading ---- */

static int offer(cow_file *file)
{
    cow_table *table = file->space->table;
    uint64_t sequence, applied, rows = table->rows;
    cow_layout_free_row *row;
    cow_place *place;
    size_t count = 0;

    if (rows < 2 || file->journal == NULL)
        return 0;
    row = calloc(rows, sizeof *row);
    place = calloc(rows, sizeof *place);
    if (row == NULL || place == NULL || cow_layout_rows(table, COW_TABLE_FREE, 0, rows, row) < 0) {
        free(row);
        free(place);
        return -1;
    }
    cow_journal_state(file->journal, &sequence, &applied);
    for (uint64_t i = 1; row[0].address == sequence && i < rows; i++)
        if (row[i].size > 0)
            place[count++] = (cow_place){row[i].address, row[i].size};
    free(row);
    cow_journal_driver_offer(file->fileno, place, count);
    return 0;
}

int cow_space_open(cow_file *file)
{
    cow_space_kept kept = COW_SPACE_FORGOTTEN;
    int found = cow_layout_still_lacks(file->written, COW_TABLE_FREE)
                    ? 0
                    : cow_layout_free_open(file->loc, &file->space->table);

    if (found > 0 && cow_native_file_space(file->native, &kept) < 0)
        found = -1;
    file->space->unused = found < 0 || kept == COW_SPACE_PERSISTS || has_block(file);
    if (found > 0 && !file->space->unused && file->space->table->rows <= MOST_ROWS + STEP)
        found = offer(file);
    if (found < 0) {
        cow_error_clear(); /* h5cow verify tells it */
        cow_space_close(file);
    }
    cow_journal_driver_offer(file->fileno, NULL, 0);
    return 0;
}

/* ---- finding ---- */

static int by_address(const void *a, const void *b)
{
    const cow_place *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

size_t cow_places_join(cow_place *place, size_t places, uint64_t least)
{
    size_t joined = 0, count = 0;

    if (places > 0)
        qsort(place, places, sizeof *place, by_address);
    for (size_t i = 0; i < places; i++)
        if (joined > 0 && place[joined - 1].address + place[joined - 1].size == place[i].address)
            place[joined - 1].size += place[i].size;
        else
            place[joined++] = place[i];
    for (size_t i = 0; i < joined; i++)
        if (place[i].size >= least)
            place[count++] = place[i];
    return count;
}

static int where(const void *address, const void *place)
{
    const uint64_t at = *(const uint64_t *)address;
    const cow_place *p = place;

    return at < p->address ? -1 : at - p->address >= p->size;
}

bool cow_places_hold(const cow_place *place, size_t places, uint64_t address)
{
    return bsearch(&address, place, places, sizeof *place, where) != NULL;
}

int cow_space_all(cow_file *file, uint64_t least, cow_place **list, size_t *count)
{
    const cow_place *offered, *given_back;
    size_t left = cow_journal_driver_offered(file->fileno, &offered), known;
    const size_t more = cow_copied_given_back(file, &given_back);
    H5F_sect_info_t *section;

    *list = NULL;
    *count = 0;
    if (cow_native_file_free_space(file->native, &section, &known) < 0)
        return -1;
    if ((*list = calloc(left + known + more + 1, sizeof **list)) == NULL) {
        free(section);
        return cow_error(COW_MEMORY, "%s: no memory for a list of free places", file->name);
    }
    for (size_t i = 0; i < left; i++)
        (*list)[i] = offered[i];
    for (size_t i = 0; i < known; i++)
        (*list)[left + i] = (cow_place){section[i].addr, section[i].size};
    free(section);
    for (size_t i = 0; i < more; i++)
        (*list)[left + known + i] = given_back[i];
    *count = cow_places_join(*list, left + known + more, least);
    return 0;
}

int cow_space_list(cow_file *file, uint64_t least, cow_place **list, size_t *count)
{
    *list = NULL;
    *count = 0;
    /* what HDF5 keeps there it moves while it closes the file */
    return file->space->unused ? 0 : cow_space_all(file, least, list, count);
}

/* ---- writing ---- */

/* The rows of a table for the commit that follows; free(). */
static cow_layout_free_row *rows_of(cow_file *file, size_t *needed)
{
    cow_place *place;
    size_t count;
    uint64_t least = LEAST, sequence, applied, rows;
    cow_layout_free_row *row = NULL;

    do {
        if (cow_space_list(file, least, &place, &count) < 0)
            return NULL;
        if (count < MOST_ROWS)
            break;
        free(place);
        least *= 2;
    } while (true);
    rows = file->space->table->rows > count ? file->space->table->rows : count + 1;
    rows = (rows + STEP - 1) / STEP * STEP;
    if ((row = calloc(rows, sizeof *row)) == NULL)
        cow_error(COW_MEMORY, "%s: no memory for a list of free places", file->name);
    else {
        cow_journal_state(file->journal, &sequence, &applied);
        row[0].address = sequence + 1;
        for (size_t i = 0; i < count; i++)
            row[i + 1] = (cow_layout_free_row){place[i].address, place[i].size};
        for (size_t i = count + 1; i < rows; i++)
            row[i].address = UINT64_MAX;
        *needed = rows;
    }
    free(place);
    return row;
}

/* Writing the table takes space itself, at first: until it says what is. */
static int write_table(cow_file *file, int (*flush)(cow_file *file))
{
    cow_layout_free_row *row, *written = NULL;
    cow_table *table = file->space->table;
    size_t needed, before = 0;
    int status = 0;
    bool same = false;

    for (unsigned tries = 0; status == 0 && !same; tries++) {
        if ((row = rows_of(file, &needed)) == NULL) {
            status = -1;
            break;
        }
        same = needed == before && memcmp(row, written, needed * sizeof *row) == 0;
        if (!same && tries >= MOST_TRIES)
            row[0].address = 0; /* of no commit */
        if (!same && ((needed > table->rows && table->resize(table, needed) < 0) ||
                      table->write(table, 0, needed, row) < 0 || flush(file) < 0))
            status = -1;
        same |= tries >= MOST_TRIES;
        free(written);
        written = row;
        before = needed;
    }
    free(written);
    return status;
}

/* What is in the table counts for no commit. */
static int void_table(cow_file *file, int (*flush)(cow_file *file))
{
    static const cow_layout_free_row none;
    cow_table *table = file->space->table;

    return (table->rows > 0 && table->write(table, 0, 1, &none) < 0) || flush(file) < 0 ? -1 : 0;
}

int cow_space_note(cow_file *file, int (*flush)(cow_file *file))
{
    cow_error_held *held;
    int status;

    if (file->space->table == NULL || file->journal == NULL || file->space->unused)
        return 0;
    cow_journal_driver_hold(file->fileno, true);
    if (write_table(file, flush) == 0)
        return 0;
    /* the commit can do without, unless the disk has failed */
    held = cow_error_hold();
    status = cow_file_disk_failed(file) ? -1 : void_table(file, flush);
    cow_error_put_back(held);
    if (status == 0)
        cow_error_clear();
    return status;
}

void cow_space_noted(cow_file *file)
{
    cow_journal_driver_hold(file->fileno, false);
}
