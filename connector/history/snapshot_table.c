/* The table `snapshots`: which snapshot belongs to which head object, in which version. A row with snapshot 2^64-1 says
 * that the version does without the object: it was deleted. Rows of the running version are replaced when a flush amends
 * that version.
 */
#include "history/snapshot_table.h"

#include "base/error.h"
#include "base/vector.h"
#include "history/internal.h"

#include <stdlib.h>
#include <string.h>

struct cow_snapshots {
    cow_table *table;
    bool loaded;
    cow_layout_snapshot_row *row;
    size_t count, room, written;
    size_t changed;   /* the lowest row that differs from the file's */
    cow_map of;       /* head address -> row with its newest snapshot */
    cow_map at;       /* snapshot address -> its row */
    cow_map left_out; /* head objects that the newest version known of them had to do without: not deleted */
    cow_map outdated; /* head objects that changed after the newest version: their checksums are of before */
    uint64_t generation;
};

cow_snapshots *cow_snapshots_new(void)
{
    return calloc(1, sizeof(cow_snapshots));
}

static void free_maps(cow_snapshots *s)
{
    cow_map_free(&s->of);
    cow_map_free(&s->at);
    cow_map_free(&s->left_out);
    cow_map_free(&s->outdated);
}

void cow_snapshots_free(cow_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    free_maps(snapshots);
    free(snapshots->row);
    free(snapshots);
}

int cow_snapshots_create(cow_file *file)
{
    file->snapshots->table = cow_layout_table_create(file->loc, COW_TABLE_SNAPSHOTS, 0, 0);
    return file->snapshots->table == NULL ? -1 : 0;
}

int cow_snapshots_open(cow_file *file)
{
    return cow_file_open_table(file, COW_TABLE_SNAPSHOTS, &file->snapshots->table);
}

void cow_snapshots_close(cow_file *file)
{
    if (file->snapshots != NULL)
        cow_file_close_table(&file->snapshots->table);
}

/* ---- rows in memory ---- */

static bool is_left_out(const cow_snapshots *s, uint64_t head)
{
    return cow_map_get(&s->left_out, head, NULL);
}

static int map_row(cow_snapshots *s, size_t row)
{
    const cow_layout_snapshot_row *r = &s->row[row];

    return cow_map_put(&s->of, r->head, row) < 0 ||
                   (r->snapshot != UINT64_MAX && cow_map_put(&s->at, r->snapshot, row) < 0)
               ? -1
               : 0;
}

/* A row without a snapshot says that the object was deleted, unless the version is known to lack it. */
static int note_lack(void *context, uint64_t version, uint64_t head, bool to_come)
{
    cow_snapshots *s = context;
    uint64_t row;

    if (to_come)
        return cow_map_put(&s->outdated, head, 0);
    return cow_map_get(&s->of, head, &row) && s->row[row].snapshot == UINT64_MAX && s->row[row].version == version
               ? cow_map_put(&s->left_out, head, 0)
               : 0;
}

/* Of all rows, and of what versions lack. */
static int map_rows(cow_file *file)
{
    cow_snapshots *s = file->snapshots;

    free_maps(s);
    for (size_t i = 0; i < s->count; i++)
        if (map_row(s, i) < 0)
            return -1;
    return cow_lacks_visit(file, note_lack, s);
}

int cow_snapshots_load(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    uint64_t rows;

    if (s->loaded)
        return 0;
    if (cow_snapshots_open(file) < 0)
        return -1;
    rows = s->table->rows; /* not more than the file has bytes for */
    free(s->row);          /* of an attempt that failed */
    s->row = NULL;
    if (rows > 0 && (s->row = malloc(rows * sizeof *s->row)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for %llu snapshots", file->name, (unsigned long long)rows);
    if (cow_layout_rows(s->table, COW_TABLE_SNAPSHOTS, 0, rows, s->row) < 0)
        return cow_error_where(file->name, "reading which snapshots there are");
    s->room = s->count = s->written = s->changed = rows;
    if (map_rows(file) < 0)
        return -1;
    s->loaded = true;
    return 0;
}

bool cow_snapshots_loaded(const cow_file *file)
{
    return file->snapshots->loaded;
}

size_t cow_snapshots_count(const cow_file *file)
{
    return file->snapshots->count;
}

const cow_layout_snapshot_row *cow_snapshots_row(const cow_file *file, size_t row)
{
    return &file->snapshots->row[row];
}

uint64_t cow_snapshots_generation(const cow_file *file)
{
    return file->snapshots->generation;
}

/* ---- finding ---- */

bool cow_snapshots_known(const cow_file *file, uint64_t head)
{
    return cow_map_get(&file->snapshots->of, head, NULL);
}

bool cow_snapshots_gone(const cow_file *file, uint64_t head)
{
    const cow_snapshots *s = file->snapshots;
    uint64_t row;

    return cow_map_get(&s->of, head, &row) && s->row[row].snapshot == UINT64_MAX && !is_left_out(s, head);
}

int cow_snapshots_each(const cow_file *file, cow_snapshots_visitor *visit, void *context)
{
    const cow_map *of = &file->snapshots->of;
    int status = 0;

    for (size_t i = 0; status == 0 && i < of->capacity; i++)
        if (of->entry[i].used)
            status = visit(context, of->entry[i].key, cow_snapshots_gone(file, of->entry[i].key));
    return status;
}

bool cow_snapshots_newest(const cow_file *file, uint64_t head, uint64_t *snapshot)
{
    const cow_snapshots *s = file->snapshots;
    uint64_t row;

    /* after a row that is struck out, older ones are out of date */
    if (!cow_map_get(&s->of, head, &row) || s->row[row].snapshot == UINT64_MAX)
        return false;
    if (snapshot != NULL)
        *snapshot = s->row[row].snapshot;
    return true;
}

const cow_layout_snapshot_row *cow_snapshots_made(const cow_file *file, uint64_t address)
{
    const cow_snapshots *s = file->snapshots;
    uint64_t row;

    return cow_map_get(&s->at, address, &row) && s->row[row].snapshot == address ? &s->row[row] : NULL;
}

const cow_layout_snapshot_row *cow_snapshots_find(const cow_file *file, uint64_t address)
{
    const cow_snapshots *s = file->snapshots;
    const cow_layout_snapshot_row *made = cow_snapshots_made(file, address);
    uint64_t row;

    if (made != NULL)
        return made;
    return cow_map_get(&s->of, address, &row) && !cow_map_get(&s->outdated, address, NULL) &&
                   (s->row[row].snapshot != UINT64_MAX || is_left_out(s, address))
               ? &s->row[row]
               : NULL;
}

/* ---- changing ---- */

/* A row of the file changed: it is written with the next flush. */
static void row_changed(cow_snapshots *s, size_t row)
{
    if (row < s->changed)
        s->changed = row;
    s->generation++;
}

int cow_snapshots_add(cow_file *file, const cow_layout_snapshot_row *added)
{
    cow_snapshots *s = file->snapshots;
    uint64_t row;

    cow_map_remove(&s->left_out, added->head);
    cow_map_remove(&s->outdated, added->head);
    if (!cow_map_get(&s->of, added->head, &row) || s->row[row].version != added->version) {
        if (COW_RESERVE(s->row, s->room, s->count, 1) < 0)
            return cow_error(COW_MEMORY, "%s: no memory for the list of snapshots", file->name);
        row = s->count++;
    }
    s->row[row] = *added;
    row_changed(s, row);
    return map_row(s, row);
}

void cow_snapshots_strike_out(cow_file *file, size_t row)
{
    file->snapshots->row[row].snapshot = UINT64_MAX;
    row_changed(file->snapshots, row);
}

int cow_snapshots_leave_out(cow_file *file, uint64_t head, uint64_t version, const cow_layout_snapshot_row *sums)
{
    const cow_layout_snapshot_row row = {head, UINT64_MAX, version, sums->elements, sums->attributes};

    return cow_snapshots_add(file, &row) < 0 ? -1 : cow_map_put(&file->snapshots->left_out, head, 0);
}

int cow_snapshots_outdate(cow_file *file, uint64_t head)
{
    return cow_map_put(&file->snapshots->outdated, head, 0);
}

/* ---- versions that go ---- */

typedef struct purge {
    cow_file *file;
    const bool *forgotten;
    uint64_t versions;
    uint64_t *kept; /* how many of the first N versions are */
    bool *needed;   /* rows */
    cow_map map;    /* head address -> version of the row that was met last; then: a row is needed */
} purge;

/* Is a row of VERSION, the next one of the same head being of NEXT, what a version has? */
static bool stands(const purge *p, uint64_t version, uint64_t next)
{
    return version >= p->versions || p->kept[next < p->versions ? next : p->versions] > p->kept[version];
}

/* Each row stands from its version to the next row of its head. */
static int find_needed(purge *p)
{
    const cow_snapshots *s = p->file->snapshots;

    for (uint64_t v = 0; v < p->versions; v++)
        p->kept[v + 1] = p->kept[v] + !p->forgotten[v];
    for (size_t i = s->count; i-- > 0;) {
        const cow_layout_snapshot_row *row = &s->row[i];
        uint64_t next = UINT64_MAX;

        cow_map_get(&p->map, row->head, &next);
        p->needed[i] = stands(p, row->version, next);
        if (cow_map_put(&p->map, row->head, row->version) < 0)
            return -1;
    }
    return 0;
}

/* That there is no snapshot from a version on need not be said where there was none before. */
static int drop_needless(purge *p)
{
    const cow_snapshots *s = p->file->snapshots;

    cow_map_free(&p->map);
    for (size_t i = 0; i < s->count; i++) {
        const cow_layout_snapshot_row *row = &s->row[i];

        if (p->needed[i] && row->snapshot == UINT64_MAX && row->elements == 0 && row->attributes == 0 &&
            !is_left_out(s, row->head) && !cow_map_get(&p->map, row->head, NULL))
            p->needed[i] = false;
        if (p->needed[i] && cow_map_put(&p->map, row->head, 0) < 0)
            return -1;
    }
    return 0;
}

/* Heads that were known before; each is told once. */
static int tell_unknown(purge *p, cow_snapshots_unknown *unknown, void *context)
{
    const cow_map *of = &p->file->snapshots->of;

    for (size_t i = 0; i < of->capacity; i++)
        if (of->entry[i].used && !cow_map_get(&p->map, of->entry[i].key, NULL) &&
            unknown(context, of->entry[i].key) < 0)
            return -1;
    return 0;
}

static void purge_free(purge *p)
{
    cow_map_free(&p->map);
    free(p->kept);
    free(p->needed);
}

static int weigh(purge *p)
{
    p->kept = calloc(p->versions + 1, sizeof *p->kept);
    p->needed = calloc(p->file->snapshots->count + 1, sizeof *p->needed);
    if (p->kept == NULL || p->needed == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for the list of snapshots", p->file->name);
    return find_needed(p) < 0 ? -1 : drop_needless(p);
}

int cow_snapshots_weigh(cow_file *file, const bool forgotten[], uint64_t versions, cow_snapshots_look *look,
                        void *context)
{
    const cow_snapshots *s = file->snapshots;
    purge p = {.file = file, .forgotten = forgotten, .versions = versions};
    int status = weigh(&p);

    for (size_t i = 0; status == 0 && i < s->count; i++)
        status = look(context, &s->row[i], p.needed[i]);
    purge_free(&p);
    return status;
}

int cow_snapshots_purge(cow_file *file, const bool forgotten[], uint64_t versions, cow_snapshots_unknown *unknown,
                        void *context)
{
    cow_snapshots *s = file->snapshots;
    purge p = {.file = file, .forgotten = forgotten, .versions = versions};
    size_t count = 0;
    int status = weigh(&p) < 0 ? -1 : tell_unknown(&p, unknown, context);

    if (status == 0) {
        for (size_t i = 0; i < s->count; i++)
            if (p.needed[i])
                s->row[count++] = s->row[i];
        s->count = s->written = count;
        s->changed = 0;
        s->generation++;
        status = s->table->resize(s->table, count) < 0 ? -1 : map_rows(file);
    }
    purge_free(&p);
    return status;
}

/* ---- writing, and taking back ---- */

int cow_snapshots_flush(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    size_t from = s->changed, written = s->written;

    if (from < written && s->table->write(s->table, from, written - from, s->row + from) < 0)
        return -1;
    if (cow_table_append(s->table, s->count - written, s->row + written, NULL) < 0)
        return -1;
    s->written = s->changed = s->count;
    return 0;
}

int cow_snapshots_begin(cow_file *file, uint64_t from, cow_snapshots_saved *saved)
{
    const cow_snapshots *s = file->snapshots;
    size_t first = s->count;

    while (first > 0 && s->row[first - 1].version >= from)
        first--;
    *saved = (cow_snapshots_saved){.first = first, .count = s->count - first, .written = s->written};
    if (saved->count > 0 && (saved->row = malloc(saved->count * sizeof *saved->row)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a version", file->name);
    if (saved->count > 0)
        memcpy(saved->row, s->row + first, saved->count * sizeof *saved->row);
    return 0;
}

int cow_snapshots_undo(cow_file *file, cow_snapshots_saved *saved)
{
    cow_snapshots *s = file->snapshots;
    size_t rows = s->table->rows, first = saved->first;
    int status = 0;

    if (saved->count > 0)
        memcpy(s->row + first, saved->row, saved->count * sizeof *saved->row);
    s->count = first + saved->count;
    /* what a flush that failed has written */
    if (rows > saved->written)
        status = s->table->resize(s->table, saved->written);
    if (status == 0 && first < saved->written)
        status = s->table->write(s->table, first, saved->written - first, s->row + first);
    s->written = s->changed = saved->written;
    s->generation++;
    cow_snapshots_done(saved);
    return status < 0 || map_rows(file) < 0 ? -1 : 0;
}

void cow_snapshots_done(cow_snapshots_saved *saved)
{
    free(saved->row);
    saved->row = NULL;
}
