/* Runs in a table. Contract and layout: lookup.h.
 *
 * Most keys that are asked for are in no run: those of new chunks. So a run has a filter in memory, ten bits a key, which says of
 * all but two or three in a hundred that they are not in it. A run gets it when it is written; one that was in the file, when so
 * many of its pages were read to search in it that all of them could have been. Where there is no room for it, the pages tell. */
#include "store/lookup.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RUNS   (COW_LOOKUP_HEADER - 1)
#define MOST_LOOSE  256 /* all of them are read when the runs are opened, and looked at by each search */
#define RATIO       4   /* a run is merged with what is behind it when that has as many entries / RATIO */
#define PAGE_ROWS   256 /* a chunk of the table */
#define FILTER_BITS 10  /* of a key */
#define PAGE_BYTES  (PAGE_ROWS * COW_LOOKUP_ROW)
#define MOST_PAGES  ((size_t)1 << 14)          /* kept in memory, where there is no room to count in: 64 MiB */
#define LEAST_PAGES ((size_t)16)               /* places for them, and pages that are kept in any case */
#define MOST_MERGED ((size_t)1 << 21)          /* entries of a run that others are merged into: 32 MiB in memory */
#define BLOCK_ROWS  ((uint64_t)PAGE_ROWS * 64) /* read at once to be merged */
#define GUESSES     4                          /* by the value of the key, before the middle is taken */
#define MOST_EQUAL  1000                       /* entries of one key that are told: what a file may cost */
#define LARGEST_RUN ((size_t)1 << 26)          /* of which the last one grows when there are MOST_RUNS */

typedef struct run {
    uint64_t first; /* row of the table */
    uint32_t rows, zeros, taken;
    uint64_t *filter; /* NULL: none */
    size_t words;     /* of it */
    uint64_t read;    /* pages, to search in it */
} run;

typedef struct page {
    uint64_t first; /* row of the table */
    uint64_t rows;  /* 0: empty */
    uint8_t *bytes;
    struct page *next; /* of those that have bytes */
} page;

struct cow_lookup {
    cow_table *table;
    cow_room *room; /* NULL: see MOST_PAGES */
    uint64_t noted;
    run run[MOST_RUNS];
    size_t count;
    size_t committed; /* so many of them a commit has */
    bool hold;        /* these are not merged */
    cow_lookup_entry loose[MOST_LOOSE];
    size_t loose_count, loose_taken; /* taken: looked at for the key 0 */
    page *page;                      /* each page of the table has one place here */
    size_t pages;
    page *kept;              /* the first that has bytes: in a large table few of the places are ever used */
    page spare[LEAST_PAGES]; /* and one here, where there is no room for more */
};

static uint64_t end_of_runs(const cow_lookup *r, size_t runs)
{
    return runs == 0 ? COW_LOOKUP_HEADER : r->run[runs - 1].first + r->run[runs - 1].rows;
}

static void put_entry(uint8_t *bytes, const cow_lookup_entry *e)
{
    cow_put64(bytes, e->key);
    cow_put64(bytes + 8, e->value);
}

static cow_lookup_entry entry_in(const uint8_t *bytes, uint64_t row)
{
    bytes += row * COW_LOOKUP_ROW;
    return (cow_lookup_entry){cow_get64(bytes), cow_get64(bytes + 8)};
}

/* Room for ROWS rows, in whole pages. It never gets less: HDF5 would free chunks, and take new ones elsewhere. */
static int reserve(const cow_lookup *r, uint64_t rows)
{
    return rows <= r->table->rows ? 0 : r->table->resize(r->table, (rows + PAGE_ROWS - 1) / PAGE_ROWS * PAGE_ROWS);
}

/* ---- opening ---- */

/* That the first RUNS runs are there, and LOOSE entries. */
static int write_header(const cow_lookup *r, uint64_t noted, size_t runs, size_t loose)
{
    uint8_t header[COW_LOOKUP_HEADER * COW_LOOKUP_ROW] = {0};

    cow_put64(header, noted);
    cow_put32(header + 8, (uint32_t)runs);
    cow_put32(header + 12, (uint32_t)loose);
    for (size_t i = 0; i < runs; i++) {
        uint8_t *row = header + (i + 1) * COW_LOOKUP_ROW;

        cow_put32(row, r->run[i].rows);
        cow_put32(row + 4, r->run[i].zeros);
        cow_put32(row + 8, r->run[i].taken);
    }
    return r->table->write(r->table, 0, COW_LOOKUP_HEADER, header);
}

static bool header_says(cow_lookup *r, const uint8_t *header, uint64_t most)
{
    r->noted = cow_get64(header);
    r->count = cow_get32(header + 8);
    r->loose_count = cow_get32(header + 12);
    if (r->noted > most || r->count > MOST_RUNS || r->loose_count > MOST_LOOSE)
        return false;
    for (size_t i = 0; i < r->count; i++) {
        const uint8_t *row = header + (i + 1) * COW_LOOKUP_ROW;

        r->run[i] = (run){.first = end_of_runs(r, i),
                          .rows = cow_get32(row),
                          .zeros = cow_get32(row + 4),
                          .taken = cow_get32(row + 8)};
        if (r->run[i].rows > LARGEST_RUN || r->run[i].zeros > r->run[i].rows || r->run[i].taken > r->run[i].zeros)
            return false;
    }
    return end_of_runs(r, r->count) + r->loose_count <= r->table->rows;
}

static int read_all(cow_lookup *r, uint64_t most)
{
    uint8_t bytes[MOST_LOOSE * COW_LOOKUP_ROW];

    if (r->table->rows < COW_LOOKUP_HEADER || r->table->read(r->table, 0, COW_LOOKUP_HEADER, bytes) < 0 ||
        !header_says(r, bytes, most))
        return cow_error(COW_CORRUPT, "what helps to find rows is damaged");
    if (r->loose_count > 0 && r->table->read(r->table, end_of_runs(r, r->count), r->loose_count, bytes) < 0)
        return -1;
    for (size_t i = 0; i < r->loose_count; i++)
        r->loose[i] = entry_in(bytes, i);
    return 0;
}

static void free_pages(cow_lookup *r)
{
    while (r->kept != NULL) {
        page *p = r->kept;

        r->kept = p->next;
        if (r->room != NULL)
            r->room->pages -= PAGE_BYTES;
        free(p->bytes);
        *p = (page){0};
    }
}

/* Places for as many pages as there are, up to the most. */
static int make_room(cow_lookup *r)
{
    size_t pages = LEAST_PAGES, most = r->room == NULL ? MOST_PAGES : r->room->bytes / PAGE_BYTES;
    page *more;

    while (pages < most && pages < r->table->rows / PAGE_ROWS)
        pages *= 2;
    if (pages <= r->pages)
        return 0;
    if ((more = calloc(pages, sizeof *more)) == NULL)
        return cow_error(COW_MEMORY, "no memory to find rows");
    free_pages(r);
    free(r->page);
    r->page = more;
    r->pages = pages;
    return 0;
}

/* ---- filters ---- */

/* Of one word. */
static uint64_t bits_of(uint64_t key)
{
    return (uint64_t)1 << (key & 63) | (uint64_t)1 << (key >> 6 & 63) | (uint64_t)1 << (key >> 12 & 63) |
           (uint64_t)1 << (key >> 18 & 63);
}

/* Keys are spread evenly by their upper bits, by which runs are sorted, and by their lower ones. */
static size_t word_of(const run *in, uint64_t key)
{
    return (size_t)((key >> 24) * in->words >> 40);
}

static void filter_free(const cow_lookup *r, run *in)
{
    if (in->filter == NULL)
        return;
    free(in->filter);
    in->filter = NULL;
    r->room->filters -= in->words * sizeof *in->filter;
}

/* An empty one. NULL: no room. */
static void filter_make(cow_lookup *r, run *in)
{
    size_t words = (size_t)in->rows * FILTER_BITS / 64 + 1, bytes = words * sizeof *in->filter;

    if (r->room == NULL || !cow_room_has_filter(r->room, bytes))
        return;
    if ((in->filter = calloc(words, sizeof *in->filter)) == NULL)
        return;
    in->words = words;
    r->room->filters += bytes;
    if (!cow_room_has_page(r->room, 0))
        free_pages(r);
}

static void filter_add(run *in, uint64_t key)
{
    in->filter[word_of(in, key)] |= bits_of(key);
}

/* Is KEY certainly not in the run? */
static bool is_not_in(const run *in, uint64_t key)
{
    return in->filter != NULL && (in->filter[word_of(in, key)] & bits_of(key)) != bits_of(key);
}

cow_lookup *cow_lookup_open(cow_table *table, uint64_t most, cow_room *room)
{
    cow_lookup *r = calloc(1, sizeof *r);

    if (r == NULL) {
        cow_error(COW_MEMORY, "no memory to find rows");
        table->close(table);
        return NULL;
    }
    r->table = table;
    r->room = room;
    if (table->row_size != COW_LOOKUP_ROW) {
        cow_error(COW_CORRUPT, "what helps to find rows is damaged");
        goto failed;
    }
    if ((table->rows == 0 ? reserve(r, COW_LOOKUP_HEADER) < 0 || write_header(r, 0, 0, 0) < 0
                          : read_all(r, most) < 0) ||
        make_room(r) < 0)
        goto failed;
    r->committed = r->count;
    return r;
failed:
    r->count = 0; /* which may be damaged */
    cow_lookup_close(r);
    return NULL;
}

void cow_lookup_close(cow_lookup *r)
{
    if (r == NULL)
        return;
    free_pages(r);
    free(r->page);
    for (size_t i = 0; i < LEAST_PAGES; i++)
        free(r->spare[i].bytes);
    for (size_t i = 0; i < r->count; i++)
        filter_free(r, &r->run[i]);
    r->table->close(r->table);
    free(r);
}

uint64_t cow_lookup_noted(const cow_lookup *r)
{
    return r->noted;
}

uint64_t cow_lookup_entries(const cow_lookup *r)
{
    return end_of_runs(r, r->count) - COW_LOOKUP_HEADER + r->loose_count;
}

/* ---- searching ---- */

/* Where the page with the number NUMBER is, or is to be. */
static page *place_of(cow_lookup *r, uint64_t number)
{
    page *p = &r->page[number & (r->pages - 1)];

    if (p->bytes != NULL)
        return p;
    if (r->room != NULL && !cow_room_has_page(r->room, PAGE_BYTES)) {
        p = &r->spare[number % LEAST_PAGES];
        p->bytes = p->bytes == NULL ? malloc(PAGE_BYTES) : p->bytes;
    } else if ((p->bytes = malloc(PAGE_BYTES)) != NULL) {
        p->next = r->kept;
        r->kept = p;
        if (r->room != NULL)
            r->room->pages += PAGE_BYTES;
    }
    return p->bytes == NULL ? NULL : p;
}

/* *READ: one more where it had to be read. */
static const page *page_of(cow_lookup *r, uint64_t row, uint64_t *read)
{
    uint64_t first = row - row % PAGE_ROWS, rows = r->table->rows - first;
    page *p = place_of(r, first / PAGE_ROWS);

    if (p == NULL) {
        cow_error(COW_MEMORY, "no memory to find rows");
        return NULL;
    }
    if (p->rows > 0 && p->first == first)
        return p;
    p->rows = 0;
    if (rows > PAGE_ROWS)
        rows = PAGE_ROWS;
    if (r->table->read(r->table, first, rows, p->bytes) < 0)
        return NULL;
    ++*read;
    p->first = first;
    p->rows = rows;
    return p;
}

/* In rows [*LOW, *HIGH) of the table, whose keys lie in [LOW_KEY, HIGH_KEY]: where may KEY be? */
static uint64_t guess(uint64_t low, uint64_t high, uint64_t low_key, uint64_t high_key, uint64_t key, int turn)
{
    double part = 0.5;

    if (turn < GUESSES && key >= low_key && high_key > low_key && key < high_key)
        part = (double)(key - low_key) / ((double)(high_key - low_key) + 1);
    low += (uint64_t)((double)(high - low) * part);
    return low < high ? low : high - 1;
}

/* The first row of a run whose key is KEY or more. */
static int search(cow_lookup *r, run *in, uint64_t key, uint64_t *row)
{
    uint64_t low = in->first + in->zeros, high = in->first + in->rows, low_key = 1, high_key = UINT64_MAX;

    for (int turn = 0; low < high; turn++) {
        uint64_t at = guess(low, high, low_key, high_key, key, turn), from, to, last;
        const page *p = page_of(r, at, &in->read);

        if (p == NULL)
            return -1;
        from = p->first > low ? p->first : low;
        to = p->first + p->rows < high ? p->first + p->rows : high;
        last = entry_in(p->bytes, to - 1 - p->first).key;
        if (entry_in(p->bytes, from - p->first).key >= key) {
            high = from;
            high_key = entry_in(p->bytes, from - p->first).key;
        } else if (last < key) {
            low = to;
            low_key = last;
        } else {
            while (from < to) { /* inside the page */
                uint64_t middle = from + (to - from) / 2;

                if (entry_in(p->bytes, middle - p->first).key < key)
                    from = middle + 1;
                else
                    to = middle;
            }
            low = high = from;
        }
    }
    *row = low;
    return 0;
}

/* A run of whose pages many were read gets its filter. */
static int read_filter(cow_lookup *r, run *in)
{
    uint8_t *bytes;
    int status = 0;

    in->read = 0;
    filter_make(r, in);
    if (in->filter == NULL)
        return 0;
    if ((bytes = malloc(BLOCK_ROWS * COW_LOOKUP_ROW)) == NULL)
        status = cow_error(COW_MEMORY, "no memory to find rows");
    for (uint64_t row = in->zeros, n; status == 0 && row < in->rows; row += n) {
        n = in->rows - row < BLOCK_ROWS ? in->rows - row : BLOCK_ROWS;
        status = r->table->read(r->table, in->first + row, n, bytes);
        for (uint64_t i = 0; status == 0 && i < n; i++)
            filter_add(in, entry_in(bytes, i).key);
    }
    free(bytes);
    if (status < 0)
        filter_free(r, in);
    return status;
}

static int find_in(cow_lookup *r, run *in, uint64_t key, cow_lookup_visitor *visit, void *context)
{
    uint64_t row;
    int status = 0;

    if (is_not_in(in, key))
        return 0;
    if (r->room != NULL && in->filter == NULL && in->read > in->rows / PAGE_ROWS && read_filter(r, in) < 0)
        return -1;
    if (search(r, in, key, &row) < 0)
        return -1;
    for (uint64_t end = row + MOST_EQUAL; status == 0 && row < in->first + in->rows && row < end; row++) {
        const page *p = page_of(r, row, &in->read);
        cow_lookup_entry e;

        if (p == NULL)
            return -1;
        if ((e = entry_in(p->bytes, row - p->first)).key != key)
            break;
        status = visit(context, e.value);
    }
    return status;
}

int cow_lookup_find(cow_lookup *r, uint64_t key, cow_lookup_visitor *visit, void *context)
{
    int status = 0;

    for (size_t i = r->loose_count; key != 0 && status == 0 && i-- > 0;)
        if (r->loose[i].key == key)
            status = visit(context, r->loose[i].value);
    for (size_t i = r->count; key != 0 && status == 0 && i-- > 0;)
        status = find_in(r, &r->run[i], key, visit, context);
    return status;
}

int cow_lookup_check(cow_lookup *r)
{
    for (size_t i = 0; i < r->count; i++) {
        run *in = &r->run[i];
        uint64_t before = 0;

        for (uint64_t row = 0; row < in->rows; row++) {
            const page *p = page_of(r, in->first + row, &in->read);
            uint64_t key;

            if (p == NULL)
                return -1;
            key = entry_in(p->bytes, in->first + row - p->first).key;
            if (key < before || (key == 0) != (row < in->zeros))
                return cow_error(COW_CORRUPT, "run %zu of what helps to find rows is out of order in row %" PRIu64, i,
                                 row);
            before = key;
        }
    }
    return 0;
}

int cow_lookup_take(cow_lookup *r, uint64_t *value)
{
    for (size_t i = 0; i < r->count; i++) {
        run *in = &r->run[i];
        const page *p;

        if (in->taken == in->zeros)
            continue;
        if ((p = page_of(r, in->first + in->taken, &in->read)) == NULL)
            return -1;
        *value = entry_in(p->bytes, in->first + in->taken - p->first).value;
        in->taken++;
        return 1;
    }
    while (r->loose_taken < r->loose_count) {
        const cow_lookup_entry *e = &r->loose[r->loose_taken++];

        if (e->key == 0) {
            *value = e->value;
            return 1;
        }
    }
    return 0;
}

/* ---- adding ---- */

static int by_key(const void *a, const void *b)
{
    const cow_lookup_entry *x = a, *y = b;

    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->value > y->value) - (x->value < y->value);
}

/* ROWS rows from FIRST on, in blocks, into ENTRY or from it. */
static int move(const cow_lookup *r, uint64_t first, uint64_t rows, cow_lookup_entry *entry, bool write)
{
    uint8_t *bytes = malloc(BLOCK_ROWS * COW_LOOKUP_ROW);
    int status = bytes == NULL ? cow_error(COW_MEMORY, "no memory to find rows") : 0;

    for (uint64_t done = 0, n; status == 0 && done < rows; done += n) {
        n = rows - done < BLOCK_ROWS ? rows - done : BLOCK_ROWS;
        if (write) {
            for (uint64_t i = 0; i < n; i++)
                put_entry(bytes + i * COW_LOOKUP_ROW, &entry[done + i]);
            status = r->table->write(r->table, first + done, n, bytes);
        } else if ((status = r->table->read(r->table, first + done, n, bytes)) == 0)
            for (uint64_t i = 0; i < n; i++)
                entry[done + i] = entry_in(bytes, i);
    }
    free(bytes);
    return status;
}

/* What is behind row FROM is not what was read. */
static void forget_pages(cow_lookup *r, uint64_t from)
{
    for (size_t i = 0; i < r->pages; i++)
        if (r->page[i].first + PAGE_ROWS > from)
            r->page[i].rows = 0;
    for (size_t i = 0; i < LEAST_PAGES; i++)
        if (r->spare[i].first + PAGE_ROWS > from)
            r->spare[i].rows = 0;
}

static int add_loose(cow_lookup *r, cow_lookup_entry *entry, size_t count)
{
    uint64_t at = end_of_runs(r, r->count) + r->loose_count;

    if (reserve(r, at + count) < 0 || move(r, at, count, entry, true) < 0)
        return -1;
    forget_pages(r, at);
    memcpy(r->loose + r->loose_count, entry, count * sizeof *entry);
    r->loose_count += count;
    return 0;
}

/* Does a run of TOTAL entries leave LAST, the run before it, as it is? */
static bool stays(const run *last, size_t total)
{
    return last->rows > RATIO * total || last->rows + total > MOST_MERGED;
}

/* Entries of the runs that no commit has. */
static size_t uncommitted(const cow_lookup *r)
{
    size_t total = 0;

    for (size_t i = r->committed; i < r->count; i++)
        total += r->run[i].rows - r->run[i].taken;
    return total;
}

/* Are there runs that were kept apart, and are to be merged with those of the commit? With TOTAL entries more. */
static bool is_due(const cow_lookup *r, size_t total)
{
    return !r->hold && r->committed > 0 && r->committed < r->count &&
           !stays(&r->run[r->committed - 1], uncommitted(r) + total);
}

/* So many runs stay what they are, when *TOTAL entries come behind them; *TOTAL: with what is in the others. */
static size_t runs_that_stay(const cow_lookup *r, size_t *total)
{
    size_t stay = r->count;

    if (is_due(r, *total)) {
        *total += uncommitted(r);
        stay = r->committed;
    }
    while (stay > 0) {
        const run *last = &r->run[stay - 1];

        if (stay < MOST_RUNS && ((r->hold && stay <= r->committed) || stays(last, *total)))
            break;
        *total += last->rows - last->taken;
        stay--;
    }
    return stay;
}

/* Sorted entries. */
typedef struct part {
    const cow_lookup_entry *next, *end;
} part;

/* Parts become one, block by block. */
typedef struct merging {
    cow_lookup *lookup;
    part part[MOST_RUNS + 1];
    size_t parts;
    run *made;
    uint8_t *block;
    uint64_t in_block; /* rows */
    cow_lookup_entry last;
} merging;

static int put_block(merging *m)
{
    cow_table *table = m->lookup->table;
    uint64_t first = m->made->first + m->made->rows - m->in_block;
    int status = m->in_block == 0 ? 0 : table->write(table, first, m->in_block, m->block);

    m->in_block = 0;
    return status;
}

static int put_merged(merging *m, const cow_lookup_entry *e)
{
    run *made = m->made;

    if (made->rows > 0 && by_key(&m->last, e) == 0)
        return 0;
    put_entry(m->block + m->in_block++ * COW_LOOKUP_ROW, e);
    made->rows++;
    made->zeros += e->key == 0;
    if (made->filter != NULL && e->key != 0)
        filter_add(made, e->key);
    m->last = *e;
    return m->in_block == BLOCK_ROWS ? put_block(m) : 0;
}

static int merge(merging *m)
{
    for (;;) {
        part *least = NULL;

        for (size_t i = 0; i < m->parts; i++) {
            part *p = &m->part[i];

            if (p->next < p->end && (least == NULL || by_key(p->next, least->next) < 0))
                least = p;
        }
        if (least == NULL)
            return put_block(m);
        if (put_merged(m, least->next++) < 0)
            return -1;
    }
}

static void add_part(merging *m, const cow_lookup_entry *first, size_t count)
{
    m->part[m->parts++] = (part){first, first + count};
}

/* Most are in order, unless they are damaged. */
static void sort(cow_lookup_entry *entry, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (by_key(&entry[i - 1], &entry[i]) > 0) {
            qsort(entry, count, sizeof *entry, by_key);
            return;
        }
}

/* The runs from STAY on behind the HAVE entries of ALL that are sorted, each a part. */
static int read_runs(merging *m, size_t stay, cow_lookup_entry *all, size_t have)
{
    const cow_lookup *r = m->lookup;

    add_part(m, all, have);
    for (size_t i = stay; i < r->count; i++) {
        const run *old = &r->run[i];
        size_t rows = old->rows - old->taken;

        if (move(r, old->first + old->taken, rows, all + have, false) < 0)
            return -1;
        sort(all + have, rows);
        add_part(m, all + have, rows);
        have += rows;
    }
    return 0;
}

static void drop_runs(cow_lookup *r, size_t stay)
{
    for (size_t i = stay; i < r->count; i++)
        filter_free(r, &r->run[i]);
    r->count = stay;
    r->committed = r->committed < stay ? r->committed : stay;
    r->loose_count = r->loose_taken = 0;
}

/* A run of ALL, TOTAL entries with those of the runs from STAY on, into their place: should that be left half done, nothing is
 * noted. */
static int write_run(cow_lookup *r, size_t stay, cow_lookup_entry *all, size_t have, size_t total)
{
    run made = {.first = end_of_runs(r, stay), .rows = (uint32_t)total};
    merging m = {.lookup = r, .made = &made};
    int status = -1;

    sort(all, have);
    if ((m.block = malloc(BLOCK_ROWS * COW_LOOKUP_ROW)) == NULL)
        return cow_error(COW_MEMORY, "no memory to find rows");
    if (read_runs(&m, stay, all, have) < 0)
        goto done;
    forget_pages(r, made.first);
    drop_runs(r, stay);
    filter_make(r, &made);
    made.rows = 0;
    if (write_header(r, 0, stay, 0) == 0 && reserve(r, made.first + total) == 0 && merge(&m) == 0) {
        r->run[r->count++] = made;
        status = make_room(r);
    } else
        filter_free(r, &made);
done:
    free(m.block);
    return status;
}

static int add_run(cow_lookup *r, const cow_lookup_entry *entry, size_t count)
{
    size_t total = count + r->loose_count, stay = runs_that_stay(r, &total);
    cow_lookup_entry *all;
    int status;

    if (total > LARGEST_RUN)
        return cow_error(COW_UNSUPPORTED, "these are too many for what helps to find rows");
    if ((all = malloc((total + 1) * sizeof *all)) == NULL)
        return cow_error(COW_MEMORY, "no memory to find rows");
    if (count > 0)
        memcpy(all, entry, count * sizeof *entry);
    memcpy(all + count, r->loose, r->loose_count * sizeof *r->loose);
    status = write_run(r, stay, all, count + r->loose_count, total);
    free(all);
    return status;
}

int cow_lookup_add(cow_lookup *r, cow_lookup_entry *entry, size_t count, uint64_t noted)
{
    bool loose = noted == r->noted && r->loose_count + count <= MOST_LOOSE && !is_due(r, count);

    if ((loose ? add_loose(r, entry, count) : add_run(r, entry, count)) < 0)
        return -1;
    r->noted = noted;
    return write_header(r, noted, r->count, r->loose_count);
}

void cow_lookup_hold(cow_lookup *r, bool hold)
{
    r->hold = hold;
}

bool cow_lookup_is_due(const cow_lookup *r)
{
    return is_due(r, 0);
}

void cow_lookup_committed(cow_lookup *r)
{
    r->committed = r->count;
}
