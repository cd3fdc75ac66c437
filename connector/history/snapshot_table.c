/* The table `snapshots`: which snapshot belongs to which head object, in which version. A row with snapshot 2^64-1 says
 * that the version does without the object: it was deleted. Rows of the running version are replaced when a flush amends
 * that version.
 *
 * Where there are many rows, only the newest are read. Of the others `snapshot_rows` (store/lookup.h) says which ones an address has:
 *
 *     row   0 ........... base ............ noted ........ count
 *           found by runs | in memory       | in memory
 *           in the runs ................... | not there yet
 *
 * Runs know rows of finished versions alone. Such rows never change; only versions that are forgotten make rows go, and then all
 * behind them move. So what the runs say holds exactly as long as row noted - 1 is the one that it was, which an entry tells
 * (stamp_key): an h5cow that does not know of the runs may have added what it likes, and what it took away shows. A row that runs
 * lead to is compared with what was looked for. That it is the newest one, each version's root tells when they are opened, and the
 * links of the newest version when the next is made (cow_snapshots_distrust). Where anything is wrong with them all rows are read,
 * and the next commit makes them anew. */
#include "history/snapshot_table.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/vector.h"
#include "history/hashes.h"
#include "history/internal.h"
#include "store/lookup.h"

#include <stdlib.h>
#include <string.h>

#define LEAST             1024 /* rows of a table that has runs */
#define BATCH             512  /* rows that are noted together */
#define ASKED             64   /* so many rows are read in the time in which one is found by the runs, at least */
#define MOST_LOADED       ((size_t)1 << 22) /* rows that are read because many are asked for */
#define MOST_KEPT         8192              /* noted rows that stay in memory */
#define MOST_NOTED        ((size_t)1 << 18) /* rows at a time */
#define FOUND_BLOCK       64                /* rows */
#define MOST_GONE_THROUGH 4096 /* rows in memory that are gone through for what is asked, instead of being mapped */
#define GONE_THROUGH      16   /* times, until they are mapped */

/* What is looked for: part of the key. */
typedef enum key_kind { OF_HEAD, OF_SNAPSHOT, STAMP } key_kind;

typedef struct by_runs {
    cow_hashes *hashes; /* who opens and makes the runs */
    cow_pool_lookup source;
    cow_lookup *runs; /* NULL: there are none, or none that can be used */
    size_t noted;     /* rows that the runs know */
    bool none;        /* they cannot be made */
    size_t asked;     /* what was looked for in them */
} by_runs;

/* Rows before base, in blocks that stay where they are. */
typedef struct found_rows {
    cow_map place; /* row -> its place */
    cow_layout_snapshot_row **block;
    size_t blocks, room;
} found_rows;

struct cow_snapshots {
    cow_table *table;
    bool loaded, failed;
    cow_layout_snapshot_row *row; /* from row base on */
    size_t base, count, room, written;
    size_t changed; /* the lowest row that differs from the file's */
    cow_map
        of; /* head address -> row with its newest snapshot; before `mapped` only what was asked for, as in the next */
    cow_map at;       /* snapshot address -> its row */
    size_t mapped;    /* rows in memory before that one are not in the maps yet: a commit asks for a few */
    size_t passed;    /* rows that were gone through, instead */
    cow_map left_out; /* head objects that the newest version known of them had to do without: not deleted */
    bool behind;      /* a commit made no version: what it deleted has no row yet */
    cow_map outdated; /* head objects that changed after the newest version: their checksums are of before */
    uint64_t generation;
    by_runs by;
    found_rows found;
};

cow_snapshots *cow_snapshots_new(void)
{
    return calloc(1, sizeof(cow_snapshots));
}

/* What is known of addresses. */
static void forget_addresses(cow_snapshots *s)
{
    cow_map_free(&s->of);
    cow_map_free(&s->at);
    cow_map_free(&s->found.place);
    for (size_t i = 0; i < s->found.blocks; i++)
        free(s->found.block[i]);
    free(s->found.block);
    s->found.block = NULL;
    s->found.blocks = s->found.room = 0;
    s->by.asked = 0;
}

static void free_maps(cow_snapshots *s)
{
    forget_addresses(s);
    cow_map_free(&s->left_out);
    cow_map_free(&s->outdated);
}

static void close_runs(cow_snapshots *s)
{
    cow_lookup_close(s->by.runs);
    s->by.runs = NULL;
    s->by.noted = 0;
}

void cow_snapshots_free(cow_snapshots *snapshots)
{
    if (snapshots == NULL)
        return;
    close_runs(snapshots);
    free_maps(snapshots);
    cow_hashes_free(snapshots->by.hashes);
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
    if (file->snapshots == NULL)
        return;
    close_runs(file->snapshots);
    cow_file_close_table(&file->snapshots->table);
}

/* ---- rows by the runs ---- */

static int no_memory(const cow_file *file)
{
    return cow_error(COW_MEMORY, "%s: no memory for the list of snapshots", file->name);
}

static uint64_t key_of(key_kind kind, uint64_t address)
{
    const uint64_t both[2] = {kind, address};
    uint64_t key = cow_checksum(both, sizeof both);

    return key == 0 ? 1 : key;
}

/* An entry with this key says that the first NOTED rows were noted when the last of them was ROW. */
static uint64_t stamp_key(const cow_layout_snapshot_row *row, uint64_t noted)
{
    const uint64_t all[7] = {STAMP, noted, row->head, row->snapshot, row->version, row->elements, row->attributes};
    uint64_t key = cow_checksum(all, sizeof all);

    return key == 0 ? 1 : key;
}

/* Runs tell the lowest value of a key first, which is to be the newest row. */
static uint64_t value_of(uint64_t row)
{
    return UINT64_MAX - row;
}

/* A row that is in memory, or was found. */
static cow_layout_snapshot_row *row_at(const cow_snapshots *s, size_t row)
{
    uint64_t place;

    if (row >= s->base)
        return &s->row[row - s->base];
    return cow_map_get(&s->found.place, row, &place) ? &s->found.block[place / FOUND_BLOCK][place % FOUND_BLOCK] : NULL;
}

/* Row ROW, which is before base and stays where it is put. NULL: the error. */
static const cow_layout_snapshot_row *read_row(const cow_file *file, size_t row)
{
    cow_snapshots *s = file->snapshots;
    size_t place = s->found.place.count;
    cow_layout_snapshot_row *there = row_at(s, row);

    if (there != NULL)
        return there;
    if (place / FOUND_BLOCK == s->found.blocks) {
        if (COW_RESERVE(s->found.block, s->found.room, s->found.blocks, 1) < 0 ||
            (s->found.block[s->found.blocks] = calloc(FOUND_BLOCK, sizeof **s->found.block)) == NULL) {
            no_memory(file);
            return NULL;
        }
        s->found.blocks++;
    }
    there = &s->found.block[place / FOUND_BLOCK][place % FOUND_BLOCK];
    if (cow_layout_rows(s->table, COW_TABLE_SNAPSHOTS, row, 1, there) < 0) {
        cow_error_where(file->name, "reading which snapshots there are");
        return NULL;
    }
    return cow_map_put(&s->found.place, row, place) < 0 ? NULL : there;
}

typedef struct sought {
    const cow_file *file;
    key_kind kind;
    uint64_t address;
    size_t row;
    bool failed; /* the table cannot be read */
} sought;

/* 1: it is this row. -1: it is not, so the runs are not those of this table. */
static int compare(void *context, uint64_t value)
{
    sought *w = context;
    const cow_layout_snapshot_row *row;

    w->row = value_of(value);
    if (w->row >= w->file->snapshots->base)
        return 0; /* in memory, and found there if it is the newest one */
    if ((row = read_row(w->file, w->row)) == NULL)
        w->failed = true;
    return row != NULL && (w->kind == OF_HEAD ? row->head : row->snapshot) == w->address ? 1 : -1;
}

static int find_stamp(void *context, uint64_t value)
{
    return value_of(value) == *(const uint64_t *)context;
}

static int take_first(void *context, uint64_t value)
{
    *(uint64_t *)context = value_of(value);
    return 1;
}

/* Each version has a root of its own, so the newest row of the root is of the same version as the last row. */
static bool lead_to_newest_root(const cow_file *file, const cow_layout_snapshot_row *last)
{
    const cow_snapshots *s = file->snapshots;
    uint64_t head = cow_address(&file->root), row = UINT64_MAX;
    cow_layout_snapshot_row root;

    return cow_lookup_find(s->by.runs, key_of(OF_HEAD, head), take_first, &row) > 0 && row < s->by.noted &&
           cow_layout_rows(s->table, COW_TABLE_SNAPSHOTS, row, 1, &root) == 0 && root.head == head &&
           root.version == last->version;
}

/* Do the runs know this table? Those that are wrong are let alone until others are made. */
static void open_runs(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    cow_layout_snapshot_row last;
    cow_table *table;
    uint64_t row;

    if (s->table->rows <= LEAST || (s->by.hashes == NULL && (s->by.hashes = cow_hashes_of_snapshots(file)) == NULL)) {
        cow_error_clear();
        return;
    }
    s->by.source = cow_hashes_source(s->by.hashes);
    if (s->by.source.open(s->by.source.context, &table) <= 0 ||
        (s->by.runs = cow_lookup_open(table, s->table->rows, &file->room)) == NULL) {
        cow_error_clear();
        return;
    }
    s->by.noted = cow_lookup_noted(s->by.runs);
    row = s->by.noted - 1;
    if (s->by.noted == 0 || cow_layout_rows(s->table, COW_TABLE_SNAPSHOTS, row, 1, &last) < 0 ||
        cow_lookup_find(s->by.runs, stamp_key(&last, s->by.noted), find_stamp, &row) <= 0 ||
        !lead_to_newest_root(file, &last)) {
        cow_error_clear();
        close_runs(s);
    }
}

/* ---- rows in memory ---- */

static bool is_left_out(const cow_snapshots *s, uint64_t head)
{
    return cow_map_get(&s->left_out, head, NULL);
}

static int map_row(cow_snapshots *s, size_t row)
{
    const cow_layout_snapshot_row *r = row_at(s, row);

    return cow_map_put(&s->of, r->head, row) < 0 ||
                   (r->snapshot != UINT64_MAX && cow_map_put(&s->at, r->snapshot, row) < 0)
               ? -1
               : 0;
}

/* Rows in memory are other ones. */
static void unmap(cow_snapshots *s)
{
    forget_addresses(s);
    s->mapped = s->count;
    s->passed = 0;
}

static int put_older(cow_map *map, uint64_t address, size_t row)
{
    return cow_map_get(map, address, NULL) ? 0 : cow_map_put(map, address, row);
}

/* All rows in memory are in the maps. */
static int map_all(cow_snapshots *s)
{
    for (; s->mapped > s->base; s->mapped--) {
        const cow_layout_snapshot_row *row = row_at(s, s->mapped - 1);

        if (put_older(&s->of, row->head, s->mapped - 1) < 0 ||
            (row->snapshot != UINT64_MAX && put_older(&s->at, row->snapshot, s->mapped - 1) < 0))
            return -1;
    }
    return 0;
}

/* The newest row in memory that has ADDRESS. It is found without memory for the maps, too. */
static bool find_in_memory(cow_snapshots *s, key_kind kind, uint64_t address, uint64_t *row)
{
    cow_map *map = kind == OF_HEAD ? &s->of : &s->at;
    const size_t rows = s->mapped - s->base;

    if ((rows > MOST_GONE_THROUGH || s->passed > rows * GONE_THROUGH) && map_all(s) < 0)
        cow_error_clear();
    if (cow_map_get(map, address, row) && *row >= s->base)
        return true;
    if (kind == OF_SNAPSHOT && address == UINT64_MAX) /* none */
        return false;
    for (size_t i = s->mapped; i-- > s->base; s->passed++) {
        const cow_layout_snapshot_row *r = &s->row[i - s->base];

        if ((kind == OF_HEAD ? r->head : r->snapshot) != address)
            continue;
        if (cow_map_put(map, address, *row = i) < 0)
            cow_error_clear();
        return true;
    }
    return false;
}

/* Rows FROM to TO of the file. */
static int read_rows(const cow_file *file, size_t from, size_t to, cow_layout_snapshot_row *row)
{
    if (file->snapshots->table == NULL)
        return cow_error(COW_USAGE, "%s: the list of snapshots is closed", file->name);
    return cow_layout_rows(file->snapshots->table, COW_TABLE_SNAPSHOTS, from, to - from, row) < 0
               ? cow_error_where(file->name, "reading which snapshots there are")
               : 0;
}

/* All rows, whatever the runs know. */
static int load_all(const cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    cow_layout_snapshot_row *all;

    if (s->base == 0)
        return 0;
    if ((all = malloc(s->count * sizeof *all)) == NULL)
        return no_memory(file);
    if (read_rows(file, 0, s->base, all) < 0) {
        free(all);
        return -1;
    }
    memcpy(all + s->base, s->row, (s->count - s->base) * sizeof *all);
    free(s->row);
    s->row = all;
    s->room = s->count;
    s->base = 0;
    unmap(s);
    return 0;
}

/* The row before base that has ADDRESS: 1; 0: none; -1. */
static int search(const cow_file *file, key_kind kind, uint64_t address, uint64_t *row)
{
    cow_snapshots *s = file->snapshots;
    cow_map *map = kind == OF_HEAD ? &s->of : &s->at;
    sought w = {.file = file, .kind = kind, .address = address};
    int status;

    if (s->base == 0 || address == UINT64_MAX)
        return 0;
    if (s->by.runs != NULL && (s->by.asked++ < s->base / ASKED + ASKED || s->count > MOST_LOADED)) {
        status = cow_lookup_find(s->by.runs, key_of(kind, address), compare, &w);
        if (w.failed)
            return -1;
        if (status > 0)
            *row = w.row;
        if (status >= 0)
            return status > 0 && cow_map_put(map, address, w.row) < 0 ? -1 : status;
        cow_error_clear();
        close_runs(s);
    }
    return load_all(file) < 0 ? -1 : find_in_memory(s, kind, address, row);
}

void cow_snapshots_distrust(cow_file *file)
{
    close_runs(file->snapshots);
    if (load_all(file) < 0) {
        cow_error_clear(); /* cow_snapshots_load tells */
        file->snapshots->failed = true;
    }
}

static int find(const cow_file *file, key_kind kind, uint64_t address, uint64_t *row)
{
    cow_snapshots *s = file->snapshots;
    return cow_map_get(kind == OF_HEAD ? &s->of : &s->at, address, row) || find_in_memory(s, kind, address, row)
               ? 1
               : search(file, kind, address, row);
}

/* The row with the newest snapshot of HEAD, or that of the snapshot at ADDRESS. NULL: there is none; or the table cannot be read,
 * and nothing is committed any more. */
static const cow_layout_snapshot_row *row_of(const cow_file *file, key_kind kind, uint64_t address)
{
    cow_snapshots *s = file->snapshots;
    uint64_t row;
    int found = s->failed ? 0 : find(file, kind, address, &row);

    if (found < 0) {
        cow_error_clear(); /* cow_snapshots_load tells */
        s->failed = true;
    }
    return found > 0 ? row_at(s, row) : NULL;
}

/* A row without a snapshot says that the object was deleted, unless the version is known to lack it. */
static int note_lack(void *context, uint64_t version, uint64_t head, bool to_come)
{
    const cow_file *file = context;
    const cow_layout_snapshot_row *row;

    if (to_come) {
        file->snapshots->behind = true;
        return cow_map_put(&file->snapshots->outdated, head, 0);
    }
    row = row_of(file, OF_HEAD, head);
    return row != NULL && row->snapshot == UINT64_MAX && row->version == version
               ? cow_map_put(&file->snapshots->left_out, head, 0)
               : 0;
}

/* Of what versions lack; rows in memory are mapped when they are asked for. */
static int map_rows(cow_file *file)
{
    cow_snapshots *s = file->snapshots;

    free_maps(s);
    unmap(s);
    s->behind = false;
    return cow_lacks_visit(file, note_lack, file);
}

int cow_snapshots_load(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    uint64_t rows;

    if (s->failed)
        return cow_error(COW_IO, "%s: the list of snapshots could not be read", file->name);
    if (s->loaded)
        return 0;
    if (cow_snapshots_open(file) < 0)
        return -1;
    rows = s->table->rows; /* not more than the file has bytes for */
    free(s->row);          /* of an attempt that failed */
    close_runs(s);
    s->row = NULL;
    open_runs(file);
    s->base = s->by.noted;
    if (rows > s->base && (s->row = malloc((rows - s->base) * sizeof *s->row)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for %llu snapshots", file->name, (unsigned long long)rows);
    if (read_rows(file, s->base, rows, s->row) < 0)
        return -1;
    s->room = rows - s->base;
    s->count = s->written = s->changed = rows;
    if (map_rows(file) < 0)
        return -1;
    s->loaded = true;
    return cow_snapshots_failed(file) ? cow_snapshots_load(file) : 0;
}

int cow_snapshots_load_all(cow_file *file)
{
    return cow_snapshots_load(file) < 0 ? -1 : load_all(file);
}

bool cow_snapshots_failed(const cow_file *file)
{
    return file->snapshots->failed;
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
    cow_snapshots *s = file->snapshots;
    const cow_layout_snapshot_row *there = row_at(s, row);

    if (there == NULL && (there = read_row(file, row)) == NULL) {
        cow_error_clear();
        s->failed = true;
    }
    return there;
}

int64_t cow_snapshots_count_of(const cow_file *file, uint64_t version)
{
    const cow_snapshots *s = file->snapshots;
    int64_t count = 0;

    /* its rows are the last ones, and in memory: runs know those of finished versions alone */
    for (size_t i = s->count; i > s->base && row_at(s, i - 1)->version == version; i--)
        count += row_at(s, i - 1)->snapshot != UINT64_MAX;
    return count;
}

uint64_t cow_snapshots_generation(const cow_file *file)
{
    return file->snapshots->generation;
}

/* ---- finding ---- */

bool cow_snapshots_known(const cow_file *file, uint64_t head)
{
    return row_of(file, OF_HEAD, head) != NULL;
}

bool cow_snapshots_gone(const cow_file *file, uint64_t head)
{
    const cow_layout_snapshot_row *row = row_of(file, OF_HEAD, head);

    return row != NULL && row->snapshot == UINT64_MAX && !is_left_out(file->snapshots, head);
}

int cow_snapshots_each(const cow_file *file, cow_snapshots_visitor *visit, void *context)
{
    const cow_map *of = &file->snapshots->of;
    int status = load_all(file) < 0 || map_all(file->snapshots) < 0 ? -1 : 0;

    for (size_t i = 0; status == 0 && i < of->capacity; i++)
        if (of->entry[i].used)
            status = visit(context, of->entry[i].key, cow_snapshots_gone(file, of->entry[i].key));
    return status;
}

bool cow_snapshots_newest(const cow_file *file, uint64_t head, uint64_t *snapshot)
{
    const cow_layout_snapshot_row *row = row_of(file, OF_HEAD, head);

    /* after a row that is struck out, older ones are out of date */
    if (row == NULL || row->snapshot == UINT64_MAX)
        return false;
    if (snapshot != NULL)
        *snapshot = row->snapshot;
    return true;
}

bool cow_snapshots_behind(const cow_file *file)
{
    return file->snapshots->behind;
}

const cow_layout_snapshot_row *cow_snapshots_made(const cow_file *file, uint64_t address)
{
    const cow_layout_snapshot_row *row = row_of(file, OF_SNAPSHOT, address);

    return row != NULL && row->snapshot == address ? row : NULL;
}

const cow_layout_snapshot_row *cow_snapshots_of_head(const cow_file *file, uint64_t head)
{
    const cow_snapshots *s = file->snapshots;
    const cow_layout_snapshot_row *row = row_of(file, OF_HEAD, head);

    return row != NULL && !cow_map_get(&s->outdated, head, NULL) &&
                   (row->snapshot != UINT64_MAX || is_left_out(s, head))
               ? row
               : NULL;
}

const cow_layout_snapshot_row *cow_snapshots_find(const cow_file *file, uint64_t address)
{
    const cow_layout_snapshot_row *made = cow_snapshots_made(file, address);

    return made != NULL ? made : cow_snapshots_of_head(file, address);
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
    const bool found = find_in_memory(s, OF_HEAD, added->head, &row); /* what is before base is of finished versions */

    cow_map_remove(&s->left_out, added->head);
    cow_map_remove(&s->outdated, added->head);
    if (!found || row_at(s, row)->version != added->version) {
        if (COW_RESERVE(s->row, s->room, s->count - s->base, 1) < 0)
            return no_memory(file);
        row = s->count++;
    }
    *row_at(s, row) = *added;
    row_changed(s, row);
    return map_row(s, row);
}

void cow_snapshots_strike_out(cow_file *file, size_t row)
{
    cow_layout_snapshot_row *struck = row_at(file->snapshots, row); /* of the running version, so in memory */

    struck->snapshot = UINT64_MAX;
    struck->elements = struck->attributes = 0;
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
    if (cow_snapshots_load_all(p->file) < 0 || map_all(p->file->snapshots) < 0)
        return -1;
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
        close_runs(s); /* rows have other numbers: the next flush makes them anew */
        status = s->table->resize(s->table, count) < 0 ? -1 : map_rows(file);
    }
    purge_free(&p);
    return status;
}

/* ---- writing, and taking back ---- */

/* Rows up to END, which are in memory from what is noted on. */
static int note_rows(const cow_file *file, size_t end)
{
    cow_snapshots *s = file->snapshots;
    size_t most = end - s->by.noted < MOST_NOTED ? end - s->by.noted : MOST_NOTED;
    cow_lookup_entry *entry = malloc((2 * most + 1) * sizeof *entry);
    int status = entry == NULL ? no_memory(file) : 0;

    while (status == 0 && s->by.noted < end) {
        size_t upto = end - s->by.noted < most ? end : s->by.noted + most, n = 0;

        for (size_t i = s->by.noted; i < upto; i++) {
            const cow_layout_snapshot_row *row = row_at(s, i);

            entry[n++] = (cow_lookup_entry){key_of(OF_HEAD, row->head), value_of(i)};
            if (row->snapshot != UINT64_MAX)
                entry[n++] = (cow_lookup_entry){key_of(OF_SNAPSHOT, row->snapshot), value_of(i)};
        }
        entry[n++] = (cow_lookup_entry){stamp_key(row_at(s, upto - 1), upto), value_of(upto - 1)};
        if ((status = cow_lookup_add(s->by.runs, entry, n, upto)) == 0)
            s->by.noted = upto;
    }
    free(entry);
    return status;
}

static int make_runs(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    cow_table *table;

    if (s->by.hashes == NULL && (s->by.hashes = cow_hashes_of_snapshots(file)) == NULL)
        return -1;
    s->by.source = cow_hashes_source(s->by.hashes);
    if ((table = s->by.source.make(s->by.source.context)) == NULL)
        return -1;
    s->by.noted = 0;
    return (s->by.runs = cow_lookup_open(table, 0, &file->room)) == NULL ? -1 : 0;
}

/* A program that makes very many versions does not keep all rows. */
static void forget_noted(cow_snapshots *s)
{
    size_t rows = s->count - s->by.noted;
    cow_layout_snapshot_row *rest;

    if (s->by.noted - s->base <= MOST_KEPT || (rest = malloc((rows + 1) * sizeof *rest)) == NULL)
        return;
    memcpy(rest, s->row + (s->by.noted - s->base), rows * sizeof *rest);
    free(s->row);
    s->row = rest;
    s->room = rows + 1;
    s->base = s->by.noted;
    unmap(s);
}

/* Rows of finished versions, when they are many, after they were written. */
static int note(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    int64_t running = cow_versions_running(file);
    uint64_t limit = running >= 0 ? (uint64_t)running : cow_versions_known(file);
    size_t end = s->count;

    while (end > s->base && row_at(s, end - 1)->version >= limit)
        end--;
    if (s->by.none || end <= LEAST || end < s->by.noted + BATCH)
        return 0;
    if ((s->by.runs != NULL || make_runs(file) == 0) && note_rows(file, end) == 0) {
        forget_noted(s);
        return 0;
    }
    if (s->by.hashes == NULL || s->by.source.half_done(s->by.source.context))
        return -1;
    cow_error_clear();
    close_runs(s);
    s->by.none = true;
    return load_all(file);
}

int cow_snapshots_flush(cow_file *file)
{
    cow_snapshots *s = file->snapshots;
    size_t from = s->changed, written = s->written;

    if (s->failed)
        return cow_snapshots_load(file);
    if (from < written && s->table->write(s->table, from, written - from, row_at(s, from)) < 0)
        return -1;
    if (cow_table_append(s->table, s->count - written, s->row + (written - s->base), NULL) < 0)
        return -1;
    s->written = s->changed = s->count;
    return note(file);
}

int cow_snapshots_begin(cow_file *file, uint64_t from, cow_snapshots_saved *saved)
{
    const cow_snapshots *s = file->snapshots;
    size_t first = s->count;

    while (first > s->base && row_at(s, first - 1)->version >= from)
        first--;
    *saved = (cow_snapshots_saved){.first = first, .count = s->count - first, .written = s->written};
    if (saved->count > 0 && (saved->row = malloc(saved->count * sizeof *saved->row)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a version", file->name);
    if (saved->count > 0)
        memcpy(saved->row, row_at(s, first), saved->count * sizeof *saved->row);
    return 0;
}

int cow_snapshots_undo(cow_file *file, cow_snapshots_saved *saved)
{
    cow_snapshots *s = file->snapshots;
    size_t rows = s->table->rows, first = saved->first;
    int status = 0;

    if (saved->count > 0)
        memcpy(row_at(s, first), saved->row, saved->count * sizeof *saved->row);
    s->count = first + saved->count;
    /* what a flush that failed has written */
    if (rows > saved->written)
        status = s->table->resize(s->table, saved->written);
    if (status == 0 && first < saved->written)
        status = s->table->write(s->table, first, saved->written - first, row_at(s, first));
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

/* ---- for the command ---- */

/* Each address of MAP leads to its row. */
static int lead_to_rows(cow_lookup *runs, key_kind kind, const cow_map *map)
{
    for (size_t i = 0; i < map->capacity; i++) {
        const cow_map_entry *e = &map->entry[i];
        uint64_t row = UINT64_MAX;

        if (!e->used)
            continue;
        if (cow_lookup_find(runs, key_of(kind, e->key), take_first, &row) < 0)
            return -1;
        if (row != e->value)
            return cow_error(COW_CORRUPT, "it does not lead to row %llu of the snapshots",
                             (unsigned long long)e->value);
    }
    return 0;
}

static int check_rows(cow_lookup *runs, const cow_layout_snapshot_row *row, uint64_t first, uint64_t noted)
{
    cow_map of = {0}, at = {0};
    int status = first == 0 ? cow_lookup_check(runs) : 0;

    for (uint64_t i = first; status == 0 && i < noted; i++)
        if (cow_map_put(&of, row[i].head, i) < 0 ||
            (row[i].snapshot != UINT64_MAX && cow_map_put(&at, row[i].snapshot, i) < 0))
            status = -1;
    if (status == 0 && (lead_to_rows(runs, OF_HEAD, &of) < 0 || lead_to_rows(runs, OF_SNAPSHOT, &at) < 0))
        status = -1;
    cow_map_free(&of);
    cow_map_free(&at);
    return status;
}

/* 1: RUNS know the first *NOTED rows of TABLE; 0: there are none, or none that still count; -1. */
static int open_current_runs(cow_loc file, cow_table *table, cow_lookup **runs, uint64_t *noted)
{
    cow_layout_snapshot_row last;
    cow_table *help;
    uint64_t row;
    int status = cow_layout_snapshot_rows_open(file, &help);

    *runs = NULL;
    *noted = 0;
    if (status <= 0)
        return status;
    /* an h5cow that does not know of them may have taken rows away, and noted more than there are now */
    if ((*runs = cow_lookup_open(help, UINT64_MAX, NULL)) == NULL)
        return -1;
    *noted = cow_lookup_noted(*runs);
    row = *noted - 1;
    status = *noted == 0 || *noted > table->rows                              ? 0
             : cow_layout_rows(table, COW_TABLE_SNAPSHOTS, row, 1, &last) < 0 ? -1
                                                                              : 1;
    if (status > 0)
        status = cow_lookup_find(*runs, stamp_key(&last, *noted), find_stamp, &row);
    if (status <= 0) {
        cow_lookup_close(*runs);
        *runs = NULL;
        *noted = 0;
    }
    return status;
}

int cow_snapshot_rows_check(cow_loc file, const cow_layout_snapshot_row *row, uint64_t first, uint64_t count)
{
    cow_table *table = count == 0 ? NULL : cow_layout_table_open(file, COW_TABLE_SNAPSHOTS, 0, 0);
    cow_lookup *runs = NULL;
    uint64_t noted;
    int status = count == 0 ? 0 : table == NULL ? -1 : open_current_runs(file, table, &runs, &noted);

    if (status > 0)
        status = noted > count ? 0 : check_rows(runs, row, first, noted) < 0 ? -1 : 1;
    cow_lookup_close(runs);
    if (table != NULL)
        table->close(table);
    return status;
}

struct cow_snapshot_finder {
    cow_table *table;
    cow_lookup *runs; /* NULL: there are none that can be used */
    uint64_t end, noted;
    cow_layout_snapshot_row *row; /* those behind what is noted, before END */
    cow_map of;                   /* of them: head address -> its newest row */
};

void cow_snapshot_finder_close(cow_snapshot_finder *f)
{
    if (f == NULL)
        return;
    cow_lookup_close(f->runs);
    if (f->table != NULL)
        f->table->close(f->table);
    cow_map_free(&f->of);
    free(f->row);
    free(f);
}

cow_snapshot_finder *cow_snapshot_finder_open(cow_loc file, uint64_t end)
{
    cow_snapshot_finder *f = calloc(1, sizeof *f);
    uint64_t rows;

    if (f == NULL) {
        cow_error(COW_MEMORY, "no memory to find snapshots");
        return NULL;
    }
    f->end = end;
    if ((f->table = cow_layout_table_open(file, COW_TABLE_SNAPSHOTS, 0, 0)) == NULL)
        goto failed;
    if (open_current_runs(file, f->table, &f->runs, &f->noted) < 0)
        cow_error_clear(); /* then all rows are read */
    rows = f->noted < end ? end - f->noted : 0;
    if ((f->row = malloc((rows + 1) * sizeof *f->row)) == NULL) {
        cow_error(COW_MEMORY, "no memory to find snapshots");
        goto failed;
    }
    if (rows > 0 && cow_layout_rows(f->table, COW_TABLE_SNAPSHOTS, f->noted, rows, f->row) < 0)
        goto failed;
    for (uint64_t i = 0; i < rows; i++)
        if (f->row[i].snapshot != UINT64_MAX && cow_map_put(&f->of, f->row[i].head, i) < 0)
            goto failed;
    return f;
failed:
    cow_snapshot_finder_close(f);
    return NULL;
}

typedef struct wanted {
    cow_snapshot_finder *finder;
    uint64_t head;
    cow_layout_snapshot_row row;
} wanted;

static int is_wanted(void *context, uint64_t value)
{
    wanted *w = context;
    uint64_t row = value_of(value);

    if (row >= w->finder->end)
        return 0;
    if (cow_layout_rows(w->finder->table, COW_TABLE_SNAPSHOTS, row, 1, &w->row) < 0)
        return -1;
    return w->row.head == w->head && w->row.snapshot != UINT64_MAX;
}

int cow_snapshot_finder_find(cow_snapshot_finder *finder, uint64_t head, uint64_t *snapshot)
{
    wanted w = {.finder = finder, .head = head};
    uint64_t row;
    int status = 1;

    if (cow_map_get(&finder->of, head, &row))
        *snapshot = finder->row[row].snapshot;
    else if (finder->runs == NULL)
        status = 0;
    else if ((status = cow_lookup_find(finder->runs, key_of(OF_HEAD, head), is_wanted, &w)) > 0)
        *snapshot = w.row.snapshot;
    return status;
}
