/* The index of chunks: grid, records, and the tree against a plain model, in every version that was committed. */
#include "base/bytes.h"
#include "base/error.h"
#include "harness.h"
#include "random.h"
#include "store/format.h"
#include "store/index.h"
#include "test_tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t below(uint64_t n)
{
    return (((uint64_t)rand() << 31) ^ (uint64_t)rand()) % n;
}

/* ---- the model: a list of chunks with a slot ---- */

enum { PLACES = 1 << 14 };

typedef struct model {
    unsigned rank;
    size_t used;
    struct {
        uint64_t chunk[5];
        uint64_t slot; /* COW_HOLE: none, but the place is taken */
        bool taken;
    } place[PLACES];
} model;

static size_t model_place(const model *m, const uint64_t chunk[])
{
    uint64_t hash = 1469598103934665603u;

    for (unsigned d = 0; d < m->rank; d++)
        hash = (hash ^ chunk[d]) * 0x9E3779B97F4A7C15u;
    size_t i = (size_t)(hash >> 40) % PLACES;
    while (m->place[i].taken && memcmp(m->place[i].chunk, chunk, m->rank * sizeof *chunk) != 0)
        i = (i + 1) % PLACES;
    return i;
}

static uint64_t model_get(const model *m, const uint64_t chunk[])
{
    size_t i = model_place(m, chunk);

    return m->place[i].taken ? m->place[i].slot : COW_HOLE;
}

static void model_set(model *m, const uint64_t chunk[], uint64_t slot)
{
    size_t i = model_place(m, chunk);

    if (!m->place[i].taken) {
        assert_true(++m->used < PLACES / 2);
        m->place[i].taken = true;
        memcpy(m->place[i].chunk, chunk, m->rank * sizeof *chunk);
    }
    m->place[i].slot = slot;
}

static uint64_t model_chunks(const model *m)
{
    uint64_t n = 0;

    for (size_t i = 0; i < PLACES; i++)
        n += m->place[i].taken && m->place[i].slot != COW_HOLE;
    return n;
}

typedef struct comparison {
    const model *m;
    const uint64_t *first, *count; /* NULL: everything */
    uint64_t seen;
} comparison;

static bool in_box(unsigned rank, const uint64_t chunk[], const uint64_t first[], const uint64_t count[])
{
    for (unsigned d = 0; d < rank; d++) {
        if (chunk[d] < first[d] || chunk[d] - first[d] >= count[d])
            return false;
    }
    return true;
}

static int compare(void *context, const uint64_t chunk[], uint64_t slot)
{
    comparison *c = context;

    assert_true(slot != COW_HOLE);
    assert_true(model_get(c->m, chunk) == slot);
    if (c->first)
        assert_true(in_box(c->m->rank, chunk, c->first, c->count));
    c->seen++;
    return 0;
}

static void assert_agrees(cow_index *index, const model *m)
{
    uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];
    comparison c = {.m = m};

    memset(count, 0xff, sizeof count);
    assert_int_equal(cow_index_visit(index, first, count, compare, &c), 0);
    assert_true(c.seen == model_chunks(m));
    assert_true(cow_index_chunks(index) == c.seen);
    for (size_t i = 0; i < PLACES; i += 3) {
        uint64_t slot;
        if (!m->place[i].taken)
            continue;
        assert_int_equal(cow_index_get(index, m->place[i].chunk, &slot), 0);
        assert_true(slot == m->place[i].slot);
    }
}

static void assert_box_agrees(cow_index *index, const model *m, const uint64_t extent[])
{
    uint64_t first[5], count[5], expected = 0;
    comparison c = {.m = m, .first = first, .count = count};

    for (unsigned d = 0; d < m->rank; d++) {
        first[d] = below(extent[d] + 1);
        count[d] = rand() % 5 == 0 ? UINT64_MAX : below(extent[d] + 2);
    }
    for (size_t i = 0; i < PLACES; i++)
        expected +=
            m->place[i].taken && m->place[i].slot != COW_HOLE && in_box(m->rank, m->place[i].chunk, first, count);
    assert_int_equal(cow_index_visit(index, first, count, compare, &c), 0);
    assert_true(c.seen == expected);
}

/* ---- grid ---- */

static void test_tile_grows_in_the_smallest_dimension(void **state)
{
    cow_grid grid;
    uint64_t split[COW_MAX_RANK], span[COW_MAX_RANK];
    const uint64_t ten[2] = {10, 10};
    (void)state;

    /* unlimited: 8 x 8, then 4 x 4, the last dimension first */
    cow_grid_init(&grid, 2, ten, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED});
    assert_true(grid.tile[0] == 8 && grid.tile[1] == 8);
    cow_grid_split(&grid, 1, split);
    assert_true(split[0] == 4 && split[1] == 4);
    cow_grid_span(&grid, 1, span);
    assert_true(span[0] == 32 && span[1] == 32);

    /* three chunks wide: 16 x 4, then it only grows along dimension 0 */
    cow_grid_init(&grid, 2, ten, (uint64_t[]){COW_UNLIMITED, 21});
    assert_true(grid.maximum[0] == COW_UNLIMITED && grid.maximum[1] == 3);
    assert_true(grid.tile[0] == 16 && grid.tile[1] == 4);
    cow_grid_split(&grid, 2, split);
    assert_true(split[0] == 16 && split[1] == 1);

    /* rank 3: 4 x 4 x 4; level 1 doubles the last dimension twice, level 2 the middle one */
    cow_grid_init(&grid, 3, (uint64_t[]){1, 1, 1}, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED, COW_UNLIMITED});
    assert_true(grid.tile[0] == 4 && grid.tile[1] == 4 && grid.tile[2] == 4);
    cow_grid_split(&grid, 1, split);
    assert_true(split[0] == 2 && split[1] == 2 && split[2] == 4);
    cow_grid_split(&grid, 2, split);
    assert_true(split[0] == 2 && split[1] == 4 && split[2] == 2);

    /* all covered: nothing is split any more */
    cow_grid_init(&grid, 1, (uint64_t[]){7}, (uint64_t[]){700});
    assert_true(grid.maximum[0] == 100 && grid.tile[0] == 64);
    cow_grid_split(&grid, 1, split);
    assert_true(split[0] == 2);
    cow_grid_split(&grid, 2, split);
    assert_true(split[0] == 1);

    cow_grid_init(&grid, 1, (uint64_t[]){1}, (uint64_t[]){0});
    assert_true(cow_grid_tile_chunks(&grid) == 1);
}

static void test_span_saturates(void **state)
{
    cow_grid grid;
    uint64_t split[COW_MAX_RANK], span[COW_MAX_RANK];
    (void)state;

    cow_grid_init(&grid, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    cow_grid_span(&grid, 14, span);
    assert_true(span[0] == UINT64_C(1) << 62);
    cow_grid_span(&grid, 15, span);
    assert_true(span[0] == UINT64_MAX);
    cow_grid_split(&grid, 15, split);
    assert_true(split[0] == 4);
    cow_grid_split(&grid, 16, split);
    assert_true(split[0] == 1);
}

static unsigned tile_position(const cow_grid *grid, const uint64_t offset[])
{
    uint64_t position = 0;

    for (unsigned d = grid->rank; d-- > 0;)
        position = position * grid->tile[d] + offset[d];
    return (unsigned)position;
}

static unsigned child_position(const cow_grid *grid, unsigned level, const uint64_t child[])
{
    uint64_t split[COW_MAX_RANK];
    uint64_t position = 0;

    cow_grid_split(grid, level, split);
    for (unsigned d = 0; d < grid->rank; d++)
        position = position * split[d] + child[d];
    return (unsigned)position;
}

static void test_positions_and_offsets_are_inverse(void **state)
{
    (void)state;
    srand(3);
    for (int round = 0; round < 200; round++) {
        cow_grid grid;
        unsigned rank = 1 + (unsigned)below(5), children = 1;
        uint64_t chunk[5], maximum[5], offset[5], split[5];

        for (unsigned d = 0; d < rank; d++) {
            chunk[d] = 1 + below(20);
            maximum[d] = rand() % 2 ? COW_UNLIMITED : below(500);
        }
        cow_grid_init(&grid, rank, chunk, maximum);
        for (unsigned i = 0; i < cow_grid_tile_chunks(&grid); i++) {
            cow_grid_tile_offset(&grid, i, offset);
            assert_true(tile_position(&grid, offset) == i);
        }
        cow_grid_split(&grid, 1, split);
        for (unsigned d = 0; d < rank; d++)
            children *= (unsigned)split[d];
        assert_true(children <= COW_FANOUT && cow_grid_tile_chunks(&grid) <= COW_TILE_CHUNKS);
        for (unsigned i = 0; i < children; i++) {
            cow_grid_child_offset(&grid, 1, i, offset);
            assert_true(child_position(&grid, 1, offset) == i);
        }
    }
}

static void test_tile_runs_along_dimension_0(void **state)
{
    cow_grid grid;
    (void)state;

    cow_grid_init(&grid, 2, (uint64_t[]){1, 1}, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED});
    assert_true(tile_position(&grid, (uint64_t[]){1, 0}) == 1);
    assert_true(tile_position(&grid, (uint64_t[]){0, 1}) == 8);
    assert_true(child_position(&grid, 1, (uint64_t[]){0, 1}) == 1);
    assert_true(child_position(&grid, 1, (uint64_t[]){1, 0}) == 4);
}

/* ---- a dataset for tests ---- */

typedef struct dataset {
    cow_table *log;
    cow_grid grid;
    cow_root root;
    cow_index *index;
} dataset;

static void open_dataset(dataset *d, cow_table *log, uint64_t id, unsigned rank, const uint64_t chunk[],
                         const uint64_t maximum[])
{
    memset(d, 0, sizeof *d);
    d->log = log;
    d->root = (cow_root){.dataset = id, .pool = 1, .rank = rank, .top = COW_NO_NODE};
    memcpy(d->root.chunk, chunk, rank * sizeof *chunk);
    memcpy(d->root.maximum, maximum, rank * sizeof *maximum);
    cow_grid_init(&d->grid, rank, chunk, maximum);
    d->index = cow_index_open(log, &d->grid, &d->root);
    assert_non_null(d->index);
}

typedef struct order {
    uint64_t last;
    unsigned nodes;
    dataset *d;
} order;

/* Children come before their parents, and every entry was written before. */
static int note_written(void *context, const cow_node *node)
{
    order *o = context;

    assert_true(node->offset > o->last);
    for (unsigned i = 0; node->level > 0 && i < node->entries; i++)
        assert_true(node->entry[i] == COW_NO_NODE || node->entry[i] < node->offset);
    o->last = node->offset;
    o->nodes++;
    return 0;
}

/* Returns the offset of the new root record. */
static uint64_t commit_dataset(dataset *d, order *o)
{
    uint64_t offset = 0;

    assert_int_equal(cow_index_commit(d->index, o ? note_written : NULL, o, &d->root.top, &d->root.level), 0);
    assert_false(cow_index_changed(d->index));
    d->root.chunks = cow_index_chunks(d->index);
    assert_int_equal(cow_root_append(d->log, &d->root, &offset), 0);
    return offset;
}

static cow_index *reopen(cow_table *log, uint64_t offset, cow_grid *grid, cow_root *root)
{
    cow_index *index;

    assert_int_equal(cow_root_read(log, offset, root), 0);
    cow_grid_init(grid, root->rank, root->chunk, root->maximum);
    index = cow_index_open(log, grid, root);
    assert_non_null(index);
    return index;
}

/* ---- the tree against the model ---- */

typedef struct trimming {
    const uint64_t *extent;
    model *m;
} trimming;

static int note_dropped(void *context, const uint64_t chunk[], uint64_t slot)
{
    const uint64_t zero[5] = {0};
    trimming *t = context;

    assert_false(in_box(t->m->rank, chunk, zero, t->extent));
    assert_true(model_get(t->m, chunk) == slot && slot != COW_HOLE);
    model_set(t->m, chunk, COW_HOLE);
    return 0;
}

static void random_life(unsigned seed)
{
    enum { COMMITS = 12 };
    dataset d;
    cow_table *log = cow_table_memory(1);
    model *now = calloc(1, sizeof *now), *then[COMMITS];
    uint64_t chunk_dims[5], maximum[5], extent[5], offset[COMMITS], slot, next = 0;
    unsigned rank;
    bool sparse;

    assert_non_null(now);
    srand((unsigned)test_random(seed));
    rank = 1 + seed % 5;
    sparse = rand() % 3 == 0;
    now->rank = rank;
    for (unsigned i = 0; i < rank; i++) {
        chunk_dims[i] = 1 + below(10);
        maximum[i] = rand() % 2 ? COW_UNLIMITED : chunk_dims[i] * (1 + below(90));
    }
    open_dataset(&d, log, seed, rank, chunk_dims, maximum);
    for (unsigned i = 0; i < rank; i++)
        extent[i] = 1 + below(d.grid.maximum[i] < 4 ? d.grid.maximum[i] : 4);

    for (unsigned commit = 0; commit < COMMITS; commit++) {
        for (int step = 0; step < 120; step++) {
            uint64_t chunk[5], old;
            int kind = rand() % 20;

            if (kind == 0) { /* grow */
                unsigned i = (unsigned)below(rank);
                uint64_t more = extent[i] + below(sparse ? UINT64_C(1) << (45 / rank) : 12);
                extent[i] = more < d.grid.maximum[i] ? more : d.grid.maximum[i];
            } else if (kind == 1 && rand() % 8 == 0) { /* shrink */
                trimming t = {.extent = extent, .m = now};
                for (unsigned i = 0; i < rank; i++)
                    extent[i] -= below(extent[i] / 3 + 1);
                if (rand() % 20 == 0)
                    extent[0] = 0;
                assert_int_equal(cow_index_trim(d.index, extent, note_dropped, &t), 0);
                assert_agrees(d.index, now);
                if (extent[0] == 0)
                    extent[0] = 1;
            } else if (kind < 16) { /* one chunk, or a row of them */
                unsigned length = rand() % 4 ? 1 : 1 + (unsigned)below(30);
                unsigned along = (unsigned)below(rank);
                int what = rand() % 5;

                for (unsigned i = 0; i < rank; i++)
                    chunk[i] = below(extent[i]);
                for (unsigned n = 0; n < length && chunk[along] < extent[along]; n++, chunk[along]++) {
                    slot = what == 0 ? COW_HOLE : what == 1 ? next : next++;
                    assert_int_equal(cow_index_set(d.index, chunk, slot, &old), 0);
                    assert_true(old == model_get(now, chunk));
                    model_set(now, chunk, slot);
                }
            } else if (kind < 18) {
                assert_box_agrees(d.index, now, extent);
            } else {
                for (unsigned i = 0; i < rank; i++)
                    chunk[i] = below(extent[i] + 5);
                assert_int_equal(cow_index_get(d.index, chunk, &slot), 0);
                assert_true(slot == model_get(now, chunk));
            }
        }
        order o = {.d = &d};
        memcpy(d.root.extent, extent, sizeof extent);
        for (unsigned i = 0; i < rank; i++)
            d.root.extent[i] = maximum[i] == COW_UNLIMITED || extent[i] * chunk_dims[i] < maximum[i]
                                   ? extent[i] * chunk_dims[i]
                                   : maximum[i];
        offset[commit] = commit_dataset(&d, &o);
        then[commit] = malloc(sizeof *now);
        assert_non_null(then[commit]);
        memcpy(then[commit], now, sizeof *now);
        if (rand() % 3 == 0) { /* go on from the log */
            cow_index_close(d.index);
            d.index = reopen(log, offset[commit], &d.grid, &d.root);
        }
    }
    assert_agrees(d.index, now);
    cow_index_close(d.index);
    for (unsigned commit = 0; commit < COMMITS; commit++) {
        cow_root root;
        cow_grid grid;
        cow_index *index = reopen(log, offset[commit], &grid, &root);

        assert_true(root.dataset == seed && root.rank == rank);
        assert_memory_equal(root.maximum, maximum, rank * sizeof *maximum);
        assert_agrees(index, then[commit]);
        assert_false(cow_index_changed(index));
        cow_index_close(index);
        free(then[commit]);
    }
    free(now);
    log->close(log);
}

static void test_every_version_keeps_its_answers(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 60; seed++)
        random_life(seed);
}

static void test_nothing_changed_writes_nothing(void **state)
{
    cow_table *log = cow_table_memory(1);
    dataset d;
    uint64_t rows, old;
    (void)state;

    open_dataset(&d, log, 1, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(cow_index_set(d.index, &i, i, NULL), 0);
    assert_true(cow_index_changed(d.index));
    commit_dataset(&d, NULL);
    rows = log->rows;
    assert_int_equal(cow_index_set(d.index, (uint64_t[]){500}, 500, &old), 0);
    assert_true(old == 500);
    assert_int_equal(cow_index_set(d.index, (uint64_t[]){100000}, COW_HOLE, &old), 0);
    assert_true(old == COW_HOLE);
    assert_false(cow_index_changed(d.index));
    assert_int_equal(cow_index_commit(d.index, NULL, NULL, &d.root.top, &d.root.level), 0);
    assert_true(log->rows == rows);
    cow_index_close(d.index);
    log->close(log);
}

static void test_emptied_index_has_no_top(void **state)
{
    cow_table *log = cow_table_memory(1);
    dataset d;
    cow_root root;
    cow_grid grid;
    cow_index *index;
    uint64_t offset, slot;
    (void)state;

    open_dataset(&d, log, 1, 2, (uint64_t[]){1, 1}, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED});
    assert_int_equal(cow_index_set(d.index, (uint64_t[]){1000, 3}, 5, NULL), 0);
    commit_dataset(&d, NULL);
    assert_int_equal(cow_index_set(d.index, (uint64_t[]){1000, 3}, COW_HOLE, NULL), 0);
    assert_true(cow_index_changed(d.index));
    offset = commit_dataset(&d, NULL);
    assert_true(d.root.top == COW_NO_NODE && d.root.chunks == 0);
    index = reopen(log, offset, &grid, &root);
    assert_int_equal(cow_index_get(index, (uint64_t[]){1000, 3}, &slot), 0);
    assert_true(slot == COW_HOLE);
    cow_index_close(index);
    cow_index_close(d.index);
    log->close(log);
}

/* The old top is not touched when a level is put on top of it. */
static void test_outgrowing_the_tree_keeps_what_was_there(void **state)
{
    cow_table *log = cow_table_memory(1);
    dataset d;
    cow_root root;
    cow_grid grid;
    cow_index *index;
    uint64_t slot, offset = 0;
    (void)state;

    open_dataset(&d, log, 1, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    for (uint64_t i = 0, chunk = 3; i < 5; i++, chunk *= 64) {
        order o = {.d = &d};
        assert_int_equal(cow_index_set(d.index, &chunk, i, NULL), 0);
        offset = commit_dataset(&d, &o);
    }
    index = reopen(log, offset, &grid, &root);
    for (uint64_t i = 0, chunk = 3; i < 5; i++, chunk *= 64) {
        assert_int_equal(cow_index_get(index, &chunk, &slot), 0);
        assert_true(slot == i);
    }
    cow_index_close(index);
    cow_index_close(d.index);
    log->close(log);
}

/* Chunks at the far ends of what HDF5 can address. */
static void test_extents_up_to_2_64_work(void **state)
{
    const uint64_t far[][2] = {{0, 0},
                               {(UINT64_C(1) << 40) - 1, (UINT64_C(1) << 40) - 1},
                               {UINT64_C(1) << 40, 0},
                               {0, UINT64_C(1) << 40},
                               {UINT64_MAX - 1, UINT64_MAX - 1},
                               {UINT64_MAX - 1, 0},
                               {0, UINT64_MAX - 1},
                               {UINT64_C(1) << 63, 77}};
    const size_t n = sizeof far / sizeof *far;
    cow_table *log = cow_table_memory(1);
    dataset d;
    cow_root root;
    cow_grid grid;
    model *m = calloc(1, sizeof *m);
    (void)state;

    assert_non_null(m);
    m->rank = 2;
    open_dataset(&d, log, 1, 2, (uint64_t[]){1, 1}, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED});
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(cow_index_set(d.index, far[i], i, NULL), 0);
        model_set(m, far[i], i);
        assert_agrees(d.index, m);
    }
    assert_int_equal(cow_index_set(d.index, (uint64_t[]){UINT64_MAX, 0}, 1, NULL), -1);
    assert_kind(COW_USAGE);
    d.root.extent[0] = d.root.extent[1] = UINT64_MAX;
    uint64_t offset = commit_dataset(&d, NULL);
    cow_index_close(d.index);
    cow_index *index = reopen(log, offset, &grid, &root);
    assert_true(root.extent[0] == UINT64_MAX);
    assert_agrees(index, m);
    trimming t = {.extent = (uint64_t[]){UINT64_C(1) << 63, UINT64_MAX}, .m = m};
    assert_int_equal(cow_index_trim(index, t.extent, note_dropped, &t), 0);
    assert_true(cow_index_chunks(index) == n - 3);
    assert_agrees(index, m);
    cow_index_close(index);
    free(m);
    log->close(log);
}

static void test_too_deep_a_tree_is_refused(void **state)
{
    enum { RANK = 32 };
    cow_table *log = cow_table_memory(1);
    dataset d;
    uint64_t one[RANK], unlimited[RANK], chunk[RANK] = {0}, slot;
    (void)state;

    for (int i = 0; i < RANK; i++) {
        one[i] = 1;
        unlimited[i] = COW_UNLIMITED;
    }
    open_dataset(&d, log, 1, RANK, one, unlimited);
    for (int i = 0; i < RANK; i++)
        chunk[i] = 255 - (unsigned)i;
    assert_int_equal(cow_index_set(d.index, chunk, 9, NULL), 0);
    chunk[3] = 1 << 20;
    assert_int_equal(cow_index_set(d.index, chunk, 9, NULL), -1);
    assert_kind(COW_UNSUPPORTED);
    commit_dataset(&d, NULL);
    chunk[3] = 252;
    assert_int_equal(cow_index_get(d.index, chunk, &slot), 0);
    assert_true(slot == 9);
    cow_index_close(d.index);
    log->close(log);
}

/* ---- damage ---- */

typedef struct nodes {
    uint64_t offset[4000];
    unsigned count;
} nodes;

static int collect(void *context, const cow_node *node)
{
    nodes *n = context;

    assert_true(n->count < 4000);
    n->offset[n->count++] = node->offset;
    return 0;
}

static int ignore(void *context, const uint64_t chunk[], uint64_t slot)
{
    (void)context, (void)chunk, (void)slot;
    return 0;
}

/* A dataset of 60 x 60 chunks with holes, runs and repeated slots; returns the root record's offset. */
static uint64_t fill_log(cow_table *log, nodes *n, cow_grid *grid)
{
    dataset d;
    uint64_t offset = 0;

    open_dataset(&d, log, 300, 2, (uint64_t[]){1, 1}, (uint64_t[]){COW_UNLIMITED, 100});
    for (uint64_t i = 0; i < 3600; i++) {
        uint64_t chunk[2] = {i / 60, i % 60};
        uint64_t slot = i % 7 == 0 ? COW_HOLE : i % 1000 < 300 ? 42 : i * 1000;
        assert_int_equal(cow_index_set(d.index, chunk, slot, NULL), 0);
    }
    assert_int_equal(cow_index_commit(d.index, collect, n, &d.root.top, &d.root.level), 0);
    d.root.chunks = cow_index_chunks(d.index);
    d.root.extent[0] = d.root.extent[1] = 60;
    assert_int_equal(cow_root_append(log, &d.root, &offset), 0);
    *grid = d.grid;
    cow_index_close(d.index);
    return offset;
}

/* Every single damaged byte of a record is noticed. */
static void test_any_changed_byte_of_a_record_is_noticed(void **state)
{
    cow_table *log = cow_table_memory(1);
    nodes n = {.count = 0};
    cow_grid grid;
    cow_node node;
    cow_root root;
    uint64_t offset = fill_log(log, &n, &grid);
    (void)state;

    assert_int_equal(cow_node_read(log, &grid, 0, &node), -1);
    assert_kind(COW_CORRUPT);
    for (unsigned i = 0; i <= n.count; i++) {
        uint64_t first = i < n.count ? n.offset[i] : offset;
        uint64_t next = i + 1 < n.count ? n.offset[i + 1] : i < n.count ? offset : log->rows;

        for (uint64_t at = first; at < next; at++) {
            uint8_t byte, changed;
            assert_int_equal(log->read(log, at, 1, &byte), 0);
            changed = byte ^ (uint8_t)(1u << below(8));
            log->write(log, at, 1, &changed);
            assert_int_equal(i < n.count ? cow_node_read(log, &grid, first, &node) : cow_root_read(log, first, &root),
                             -1);
            assert_kind(COW_CORRUPT);
            log->write(log, at, 1, &byte);
        }
        assert_int_equal(i < n.count ? cow_node_read(log, &grid, first, &node) : cow_root_read(log, first, &root), 0);
        /* the other kind of record, and every other place */
        assert_int_equal(i < n.count ? cow_root_read(log, first, &root) : cow_node_read(log, &grid, first, &node), -1);
        assert_kind(COW_CORRUPT);
        assert_int_equal(cow_node_read(log, &grid, first + 1, &node), -1);
        assert_kind(COW_CORRUPT);
    }
    log->close(log);
}

/* Damage with a checksum that fits, as an attacker makes it: the parser must stand on its own. */
static void test_forged_records_are_refused_or_harmless(void **state)
{
    cow_table *log = cow_table_memory(1);
    nodes n = {.count = 0};
    cow_grid grid, other;
    uint64_t offset = fill_log(log, &n, &grid), rows = log->rows;
    uint8_t *good = malloc(rows), record[COW_RECORD_MAX];
    unsigned refused = 0, taken = 0;
    (void)state;

    assert_non_null(good);
    assert_int_equal(log->read(log, 0, rows, good), 0);
    cow_grid_init(&other, 5, (uint64_t[]){3, 3, 3, 3, 3}, (uint64_t[]){9, COW_UNLIMITED, 7, 12, 1});
    srand(7);
    for (int round = 0; round < 60000; round++) {
        unsigned i = (unsigned)below(n.count + 1);
        uint64_t first = i < n.count ? n.offset[i] : offset;
        size_t length = cow_get16(good + first + 4), size;
        cow_node node;
        cow_root root;
        int result;

        memcpy(record, good + first, COW_RECORD_HEADER + length);
        for (uint64_t changes = 1 + below(6); changes > 0; changes--) {
            size_t at = 2 + (size_t)below(COW_RECORD_HEADER + length - 2);
            record[at] = rand() % 2 ? (uint8_t)rand() : rand() % 2 ? 0xff : record[at] ^ (uint8_t)(1u << below(8));
        }
        if (rand() % 4)
            cow_put16(record + 4, (uint16_t)(rand() % 8 ? length : below(length + 1)));
        size = COW_RECORD_HEADER + (size_t)cow_get16(record + 4);
        if (size > COW_RECORD_MAX - 8)
            size = COW_RECORD_MAX - 8;
        if (first + size + 8 > rows)
            continue;
        /* what lies behind the record stays what it was, so longer lengths run into the next one */
        if (size > COW_RECORD_HEADER + length)
            memcpy(record + COW_RECORD_HEADER + length, good + first + COW_RECORD_HEADER + length,
                   size - COW_RECORD_HEADER - length);
        cow_put64(record + size, cow_checksum(record, size));
        log->write(log, first, size + 8, record);

        result = cow_node_read(log, rand() % 4 ? &grid : &other, first, &node);
        if (result == 0) {
            taken++;
            for (unsigned e = 0; node.level > 0 && e < node.entries; e++)
                assert_true(node.entry[e] == COW_NO_NODE || (node.entry[e] < first && node.entry[e] >= 16));
        } else {
            refused++;
            assert_kind(COW_CORRUPT);
        }
        if (cow_root_read(log, first, &root) == 0) {
            assert_true(root.rank > 0 && root.rank <= COW_MAX_RANK && (root.top == COW_NO_NODE || root.top < first));
            for (unsigned d = 0; d < root.rank; d++)
                assert_true(root.chunk[d] > 0);
        } else {
            assert_kind(COW_CORRUPT);
        }
        /* the whole tree, and changing it, above the forged node */
        if (cow_root_read(log, offset, &root) == 0) {
            cow_grid g;
            cow_index *index;
            const uint64_t zero[COW_MAX_RANK] = {0}, small[COW_MAX_RANK] = {1, 2};
            uint64_t all[COW_MAX_RANK], slot;

            memset(all, 0xff, sizeof all);
            cow_grid_init(&g, root.rank, root.chunk, root.maximum);
            index = cow_index_open(log, &g, &root);
            if (index) {
                cow_index_get(index, (uint64_t[COW_MAX_RANK]){30, 30}, &slot);
                cow_error_clear();
                cow_index_set(index, (uint64_t[COW_MAX_RANK]){59, 30}, 1, NULL);
                cow_error_clear();
                if (round % 16 == 0) {
                    cow_index_visit(index, zero, all, ignore, NULL);
                    cow_error_clear();
                    cow_index_trim(index, small, NULL, NULL);
                }
            }
            cow_index_close(index);
        }
        cow_error_clear();
        log->write(log, first, size + 8, good + first);
    }
    assert_true(refused > 1000 && taken > 100);
    free(good);
    log->close(log);
}

/* A record whose payload is the varints (a negative one: two bytes of a bitmap, ~bitmap). Returns its offset. */
static uint64_t forge(cow_table *log, uint8_t kind, uint8_t level, const int64_t number[], size_t count)
{
    uint8_t record[COW_RECORD_MAX] = {COW_RECORD_MAGIC[0], COW_RECORD_MAGIC[1], kind, level};
    uint8_t *p = record + COW_RECORD_HEADER;
    uint64_t offset;

    for (size_t i = 0; i < count; i++) {
        if (number[i] < -1) {
            cow_put16(p, (uint16_t)~number[i]);
            p += 2;
        } else {
            p += cow_put_varint(p, number[i] == -1 ? COW_COMPOSED - 2 : (uint64_t)number[i]);
        }
    }
    cow_put16(record + 4, (uint16_t)(p - record - COW_RECORD_HEADER));
    cow_put64(p, cow_checksum(record, (size_t)(p - record)));
    assert_int_equal(cow_table_append(log, (uint64_t)(p - record) + 8, record, &offset), 0);
    return offset;
}

static void test_each_rule_of_a_record_is_checked(void **state)
{
    enum { RUN5 = 5 << 2, REST = 59 << 2 | COW_RUN_HOLES };
    const struct {
        uint8_t kind, level;
        int64_t number[6];
        size_t count;
        bool good;
    } cases[] = {
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_SLOTS, 9, REST}, 5, true},
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_SAME, -1, REST}, 5, true}, /* -1: the last slot but one */
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_SLOTS, -1, REST}, 5, false},
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_COMPOSED, 9, REST}, 5, false}, /* five distances, two are there */
        {COW_RECORD_LEAF, 0, {1, 0, 1 << 2 | COW_RUN_COMPOSED, 9, 63 << 2}, 5, true},
        {COW_RECORD_LEAF, 0, {1, 0, 1 << 2 | COW_RUN_COMPOSED, 0, 63 << 2}, 5, false}, /* itself */
        {COW_RECORD_LEAF, 0, {1, 0, 1 << 2 | COW_RUN_COMPOSED, 1 << 20, 63 << 2}, 5, false},
        {COW_RECORD_COMPOSED, 0, {1, 0, 5, 2, 1, 9}, 6, false}, /* no node */
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_SLOTS, 9}, 4, false},
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_SLOTS, 9, REST + 4}, 5, false},
        {COW_RECORD_LEAF, 0, {1, 0, COW_RUN_SLOTS, 9, REST}, 5, false},
        {COW_RECORD_LEAF, 0, {1, 0, 64 << 2 | COW_RUN_HOLES}, 3, false},
        {COW_RECORD_LEAF, 0, {1, 1, RUN5 | COW_RUN_SLOTS, 9, REST}, 5, true},
        {COW_RECORD_LEAF, 0, {1, 2, RUN5 | COW_RUN_SLOTS, 9, REST}, 5, false}, /* chunk 128 of 100 */
        {COW_RECORD_LEAF, 0, {1, 0, RUN5 | COW_RUN_SLOTS, 9, REST, 0}, 6, false},
        {COW_RECORD_LEAF, 1, {1, 0, RUN5 | COW_RUN_SLOTS, 9, REST}, 5, false},
        {COW_RECORD_INNER, 0, {1, 0, RUN5 | COW_RUN_SLOTS, 9, REST}, 5, false},
        {COW_RECORD_ROOT, 0, {1, 0, RUN5 | COW_RUN_SLOTS, 9, REST}, 5, false},
        {COW_RECORD_INNER, 1, {1, 0, ~2, 9}, 4, true}, /* 9: five bytes back */
        {COW_RECORD_INNER, 1, {1, 0, ~2, 10}, 4, false},
        {COW_RECORD_INNER, 1, {1, 0, ~2, 1 << 20 | 1}, 4, false},
        {COW_RECORD_INNER, 1, {1, 0, ~4}, 3, false},
        {COW_RECORD_INNER, 1, {1, 0, ~4, 9}, 4, false},
        {COW_RECORD_INNER, COW_MAX_LEVEL + 1, {1, 0, ~1, 9}, 4, false},
    };
    cow_table *log = cow_table_memory(1);
    cow_grid grid;
    cow_node node;
    (void)state;

    cow_grid_init(&grid, 1, (uint64_t[]){1}, (uint64_t[]){100});
    assert_int_equal(cow_table_append(log, 16, "h5cowidx\1\0\0\0\0\0\0", NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t offset = forge(log, cases[i].kind, cases[i].level, cases[i].number, cases[i].count);
        int result = cow_node_read(log, &grid, offset, &node);
        if (result != (cases[i].good ? 0 : -1))
            fail_msg("case %zu", i);
        if (!cases[i].good)
            assert_kind(COW_CORRUPT);
    }
    log->close(log);
}

static void assert_composed(cow_table *log, const cow_composed *expected, unsigned rank)
{
    cow_composed read;

    assert_int_equal(
        cow_composed_read(log, rank, COW_COMPOSED | expected->offset, expected->pool, expected->chunk, &read), 0);
    assert_int_equal(read.offset, expected->offset);
    assert_int_equal(read.base, expected->base);
    assert_int_equal(read.piece_pool, expected->piece_pool);
    assert_int_equal(read.own, expected->own);
    for (unsigned i = 0; i < COW_PIECES; i++)
        assert_int_equal(read.slot[i], expected->own >> i & 1 ? expected->slot[i] : COW_HOLE);
}

static void test_composed_chunks_are_read_as_they_were_written(void **state)
{
    cow_table *log = cow_table_memory(1);
    (void)state;

    for (unsigned round = 0; round < 2000; round++) {
        cow_composed c = {.pool = below(1 << 20), .piece_pool = below(1 << 20)}, read;
        unsigned rank = 1 + (unsigned)below(COW_MAX_RANK);
        uint64_t other[COW_MAX_RANK];

        for (unsigned d = 0; d < rank; d++)
            c.chunk[d] = round % 7 == 0 ? UINT64_MAX - below(9) : below((uint64_t)1 << (1 + below(61)));
        c.base = round % 3 == 0 ? COW_HOLE : round % 3 == 1 ? COW_COMPOSED - 1 - below(3) : below(1000);
        do
            c.own = round % 5 == 0 ? UINT64_MAX : below((uint64_t)1 << 62) << 1 | below(2);
        while (c.own == 0);
        for (unsigned i = 0; i < COW_PIECES; i++)
            c.slot[i] = round % 5 == 1 ? COW_COMPOSED - 1 - below(9) : below((uint64_t)1 << (1 + below(61)));
        assert_int_equal(cow_composed_append(log, rank, &c), 0);
        assert_composed(log, &c, rank);
        memcpy(other, c.chunk, sizeof other);
        other[below(rank)] ^= 1;
        assert_int_equal(cow_composed_read(log, rank, COW_COMPOSED | c.offset, c.pool, other, &read), -1);
        assert_kind(COW_CORRUPT);
        assert_int_equal(cow_composed_read(log, rank, COW_COMPOSED | c.offset, c.pool + 1, c.chunk, &read), -1);
        assert_kind(COW_CORRUPT);
    }
    log->close(log);
}

static void test_each_rule_of_a_composed_chunk_is_checked(void **state)
{
    const struct {
        uint8_t kind, level;
        int64_t number[8];
        size_t count;
        bool good;
    } cases[] = {
        /* pool, chunk, base + 1, pool of pieces, own, slots */
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, 2, 1, 18}, 6, true},
        {COW_RECORD_COMPOSED, 0, {1, 0, 0, 2, 5, 18, 2}, 7, true},
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, 2, 5, 18, 1}, 7, true},   /* one back */
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, 2, 5, 18, 19}, 7, false}, /* further back than 0 */
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, 2, 0}, 5, false},         /* none of its own */
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, 2, 5, 18}, 6, false},
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, 2, 1, 18, 2}, 7, false},
        {COW_RECORD_COMPOSED, 0, {2, 0, 6, 2, 1, 18}, 6, false},
        {COW_RECORD_COMPOSED, 0, {1, 3, 6, 2, 1, 18}, 6, false},
        {COW_RECORD_COMPOSED, 0, {1, 0, 6, (int64_t)1 << 32, 1, 18}, 6, false},
        {COW_RECORD_COMPOSED, 1, {1, 0, 6, 2, 1, 18}, 6, false},
        {COW_RECORD_LEAF, 0, {1, 0, 6, 2, 1, 18}, 6, false},
    };
    cow_table *log = cow_table_memory(1);
    const uint64_t chunk[1] = {0};
    cow_composed composed;
    (void)state;

    assert_int_equal(cow_table_append(log, 16, "h5cowidx\1\0\0\0\0\0\0", NULL), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t offset = forge(log, cases[i].kind, cases[i].level, cases[i].number, cases[i].count);
        int result = cow_composed_read(log, 1, COW_COMPOSED | offset, 1, chunk, &composed);
        if (result != (cases[i].good ? 0 : -1))
            fail_msg("case %zu", i);
        if (!cases[i].good)
            assert_kind(COW_CORRUPT);
    }
    log->close(log);
}

static void test_leaves_name_composed_chunks(void **state)
{
    cow_table *log = cow_table_memory(1);
    const uint64_t chunk[1] = {10};
    cow_root root = {.rank = 1, .chunk = {10}, .maximum = {COW_UNLIMITED}, .extent = {700}, .top = COW_NO_NODE};
    cow_grid grid;
    (void)state;

    cow_grid_init(&grid, 1, chunk, root.maximum);
    for (unsigned round = 0; round < 200; round++) {
        uint64_t expected[70], entry, offset;
        cow_index *index = cow_index_open(log, &grid, &root);

        assert_non_null(index);
        for (uint64_t k = 0; k < 70; k++) {
            cow_composed c = {.base = below(100), .piece_pool = 3, .own = 1 + below(1000)};

            for (unsigned i = 0; i < COW_PIECES; i++)
                c.slot[i] = below(1000);
            entry = below(3) == 0 ? COW_HOLE : below(200);
            if (entry != COW_HOLE && below(2) == 0) {
                assert_int_equal(cow_index_compose(index, &k, &c, &entry), 0);
                assert_true(cow_is_composed(entry) && cow_index_composed_now(index, entry));
            }
            expected[k] = entry;
            assert_int_equal(cow_index_set(index, &k, entry, NULL), 0);
        }
        assert_int_equal(cow_index_commit(index, NULL, NULL, &root.top, &root.level), 0);
        root.chunks = cow_index_chunks(index);
        for (uint64_t k = 0; k < 70; k++)
            assert_false(cow_index_composed_now(index, expected[k]));
        cow_index_close(index);
        assert_int_equal(cow_root_append(log, &root, &offset), 0);
        assert_int_equal(cow_root_read(log, offset, &root), 0);
        index = cow_index_open(log, &grid, &root);
        for (uint64_t k = 0; k < 70; k++) {
            assert_int_equal(cow_index_get(index, &k, &entry), 0);
            assert_int_equal(entry, expected[k]);
        }
        cow_index_close(index);
    }
    log->close(log);
}

static void test_random_bytes_are_refused(void **state)
{
    cow_table *log = cow_table_memory(1);
    uint8_t bytes[4096];
    cow_grid grid;
    cow_node node;
    cow_root root;
    (void)state;

    srand((unsigned)test_random(1000));
    cow_grid_init(&grid, 3, (uint64_t[]){3, 3, 3}, (uint64_t[]){9, COW_UNLIMITED, 7});
    assert_int_equal(cow_table_append(log, sizeof bytes, bytes, NULL), 0);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = rand() % 3 ? (uint8_t)rand() : (uint8_t)COW_RECORD_MAGIC[i % 2];
        log->write(log, 0, sizeof bytes, bytes);
        for (uint64_t at = 0; at < sizeof bytes + 20; at++) {
            assert_int_equal(cow_node_read(log, &grid, at, &node), -1);
            assert_kind(COW_CORRUPT);
            assert_int_equal(cow_root_read(log, at, &root), -1);
            cow_error_clear();
        }
    }
    assert_int_equal(cow_node_read(log, &grid, UINT64_MAX, &node), -1);
    assert_kind(COW_CORRUPT);
    log->close(log);
}

/* A node of another dataset under the right offset is not taken for one's own. */
static void test_node_of_another_pool_is_refused(void **state)
{
    cow_table *log = cow_table_memory(1);
    dataset a, b;
    cow_index *index;
    uint64_t slot;
    (void)state;

    open_dataset(&a, log, 1, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    open_dataset(&b, log, 2, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    cow_index_close(b.index);
    b.root.pool = 2;
    b.index = cow_index_open(log, &b.grid, &b.root);
    assert_non_null(b.index);
    assert_int_equal(cow_index_set(a.index, (uint64_t[]){5}, 1, NULL), 0);
    assert_int_equal(cow_index_set(b.index, (uint64_t[]){5}, 2, NULL), 0);
    commit_dataset(&a, NULL);
    commit_dataset(&b, NULL);
    a.root.top = b.root.top;
    index = cow_index_open(log, &a.grid, &a.root);
    assert_int_equal(cow_index_get(index, (uint64_t[]){5}, &slot), -1);
    assert_non_null(strstr(cow_error_message(), "pool 1, level 0, chunks from (0)"));
    assert_kind(COW_CORRUPT);
    cow_index_close(index);
    cow_index_close(a.index);
    cow_index_close(b.index);
    log->close(log);
}

/* ---- failing tables ---- */

static void test_index_survives_every_failing_table_call(void **state)
{
    model *m = calloc(1, sizeof *m);
    unsigned nth = 0;
    bool failed = true;
    (void)state;

    assert_non_null(m);
    while (failed) {
        cow_table *memory = cow_table_memory(1), *log = failing_table(memory);
        uint64_t root_at = 0;
        dataset d;

        nth++;
        failed = false;
        memset(m, 0, sizeof *m);
        m->rank = 2;
        open_dataset(&d, log, 1, 2, (uint64_t[]){1, 1}, (uint64_t[]){COW_UNLIMITED, COW_UNLIMITED});
        fail_call(log, nth);
        srand(11);
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 60; i++) {
                uint64_t chunk[2] = {below(200), below(200)}, slot = below(1000), old;
                while (cow_index_set(d.index, chunk, slot, &old) < 0) {
                    assert_kind(COW_IO);
                    failed = true;
                }
                assert_true(old == model_get(m, chunk));
                model_set(m, chunk, slot);
            }
            trimming t = {.extent = (uint64_t[]){150, UINT64_MAX}, .m = m};
            while (cow_index_trim(d.index, t.extent, note_dropped, &t) < 0) {
                assert_kind(COW_IO);
                failed = true;
            }
            uint64_t rows = memory->rows;
            while (cow_index_commit(d.index, NULL, NULL, &d.root.top, &d.root.level) < 0) {
                assert_kind(COW_IO);
                assert_true(cow_index_changed(d.index));
                assert_true(memory->rows == rows);
                failed = true;
            }
            d.root.chunks = cow_index_chunks(d.index);
            while (cow_root_append(log, &d.root, &root_at) < 0) {
                assert_kind(COW_IO);
                failed = true;
            }
            cow_index_close(d.index);
            while (cow_root_read(log, root_at, &d.root) < 0) {
                assert_kind(COW_IO);
                failed = true;
            }
            d.index = cow_index_open(log, &d.grid, &d.root);
        }
        fail_call(log, 0);
        assert_agrees(d.index, m);
        cow_index_close(d.index);
        log->close(log);
        memory->close(memory);
    }
    assert_true(nth > 50);
    free(m);
}

static int refuse(void *context, const cow_node *node)
{
    unsigned *left = context;

    (void)node;
    return --*left == 0 ? cow_error(COW_IO, "the test refuses this node") : 0;
}

static void test_commit_that_fails_can_be_repeated(void **state)
{
    cow_table *log = cow_table_memory(1);
    dataset d;
    uint64_t rows, slot;
    unsigned left = 20;
    (void)state;

    open_dataset(&d, log, 1, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    for (uint64_t i = 0; i < 3000; i++)
        assert_int_equal(cow_index_set(d.index, &i, 3 * i, NULL), 0);
    rows = log->rows;
    assert_int_equal(cow_index_commit(d.index, refuse, &left, &d.root.top, &d.root.level), -1);
    assert_kind(COW_IO);
    assert_true(log->rows == rows && cow_index_changed(d.index));
    commit_dataset(&d, NULL);
    for (uint64_t i = 0; i < 3000; i++) {
        assert_int_equal(cow_index_get(d.index, &i, &slot), 0);
        assert_true(slot == 3 * i);
    }
    cow_index_close(d.index);
    log->close(log);
}

/* More than is gathered for one append: what was appended before the failure goes as well. */
static void test_failed_commit_leaves_the_log_as_it_was(void **state)
{
    for (unsigned nth = 1; nth <= 6; nth++) {
        cow_table *memory = cow_table_memory(1), *log = failing_table(memory);
        dataset d;
        (void)state;

        open_dataset(&d, log, 1, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
        for (uint64_t i = 0; i < 300000; i++)
            assert_int_equal(cow_index_set(d.index, &i, 1000000 + i * 7919 % 300000, NULL), 0);
        fail_call(log, nth);
        assert_int_equal(cow_index_commit(d.index, NULL, NULL, &d.root.top, &d.root.level), -1);
        assert_kind(COW_IO);
        assert_true(memory->rows == 0);
        commit_dataset(&d, NULL);
        assert_true(memory->rows > 1024 * 1024);
        cow_index_close(d.index);
        log->close(log);
        memory->close(memory);
    }
}

static void test_failed_root_leaves_the_log_as_it_was(void **state)
{
    cow_root root = {.rank = 1, .chunk = {1}, .top = COW_NO_NODE};
    uint64_t offset;
    (void)state;

    for (unsigned nth = 1; nth <= 4; nth++) {
        cow_table *memory = cow_table_memory(1), *log = failing_table(memory);

        fail_call(log, nth);
        assert_int_equal(cow_root_append(log, &root, &offset), -1);
        assert_kind(COW_IO);
        assert_true(memory->rows == 0);
        assert_int_equal(cow_root_append(log, &root, &offset), 0);
        assert_true(offset == COW_INDEX_LOG_HEADER);
        assert_int_equal(cow_root_read(log, offset, &root), 0);
        log->close(log);
        memory->close(memory);
    }
}

/* ---- size and speed ---- */

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void test_commit_of_one_chunk_among_a_million_is_small(void **state)
{
    cow_table *log = cow_table_memory(1);
    dataset d;
    cow_root root;
    cow_grid grid;
    cow_index *index;
    uint64_t rows, offset, slot, n = 1000000, most = 0, count = UINT64_MAX, zero = 0;
    double start = seconds(), set, committed, read;
    (void)state;

    open_dataset(&d, log, 7, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    for (uint64_t i = 0; i < n; i++)
        assert_int_equal(cow_index_set(d.index, &i, i, NULL), 0);
    set = seconds();
    offset = commit_dataset(&d, NULL);
    committed = seconds();
    rows = log->rows;
    index = reopen(log, offset, &grid, &root);
    assert_int_equal(cow_index_visit(index, &zero, &count, ignore, NULL), 0);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t chunk = i * 7919 % n;
        assert_int_equal(cow_index_get(index, &chunk, &slot), 0);
        assert_true(slot == chunk);
    }
    read = seconds();
    cow_index_close(index);
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t before = log->rows, chunk = i * 4999;
        order o = {.d = &d};
        assert_int_equal(cow_index_set(d.index, &chunk, n + i, NULL), 0);
        commit_dataset(&d, &o);
        assert_int_equal(o.nodes, 5);
        most = log->rows - before > most ? log->rows - before : most;
    }
    print_message("# 1,000,000 chunks: set %.3f s, commit %.3f s (%" PRIu64 " bytes), visit and a million gets %.3f s; "
                  "commit of one chunk at most %" PRIu64 " bytes\n",
                  set - start, committed - set, rows, read - committed, most);
    assert_true(most < 400);
    cow_index_close(d.index);
    log->close(log);
}

/* Reading far more tiles than are kept in memory. */
static void test_index_larger_than_what_is_kept_in_memory(void **state)
{
    enum { TILES = 70000 };
    cow_table *log = cow_table_memory(1);
    dataset d;
    uint64_t slot, zero = 0, count = UINT64_MAX;
    (void)state;

    open_dataset(&d, log, 7, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    for (uint64_t i = 0; i < TILES; i++)
        assert_int_equal(cow_index_set(d.index, (uint64_t[]){i * 64 + i % 64}, i, NULL), 0);
    commit_dataset(&d, NULL);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(cow_index_visit(d.index, &zero, &count, ignore, NULL), 0);
        for (uint64_t i = 0; i < TILES; i++) {
            if (i % 100 == 0)
                assert_int_equal(cow_index_set(d.index, (uint64_t[]){i * 64 + i % 64}, i + (uint64_t)round, NULL), 0);
            assert_int_equal(cow_index_get(d.index, (uint64_t[]){i * 64 + i % 64}, &slot), 0);
            assert_true(slot == (i % 100 == 0 ? i + (uint64_t)round : i));
        }
        if (round == 1)
            commit_dataset(&d, NULL);
    }
    cow_index_close(d.index);
    log->close(log);
}

typedef struct asking {
    cow_index *index;
    uint64_t seen;
} asking;

static int ask_again(void *context, const uint64_t chunk[], uint64_t slot)
{
    asking *a = context;
    uint64_t found = COW_HOLE;

    a->seen++;
    assert_int_equal(cow_index_get(a->index, chunk, &found), 0);
    assert_true(found == slot);
    return 0;
}

/* Leaves that wait for the commit are packed: with slots that follow one another, that are the same, that are scattered, and with
 * composed chunks. They are asked for, changed, visited, cut off and written as if they were not. */
static void test_changed_leaves_that_are_packed_agree_with_a_model(void **state)
{
    enum { CHUNKS = 64 * 300 };
    static uint64_t is[CHUNKS];
    cow_table *log = cow_table_memory(1);
    uint64_t zero = 0, count = CHUNKS, extent, visited = 0, slot, random = test_random(17);
    cow_grid grid;
    cow_root root;
    dataset d;
    asking a = {0};
    (void)state;

    memset(is, 0xff, sizeof is);
    open_dataset(&d, log, 7, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    cow_index_keep(d.index, 0);
    for (unsigned step = 0; step < 40000; step++) {
        uint64_t draw = splitmix64(&random), at = draw % CHUNKS, length = 1 + (draw >> 20) % 90,
                 kind = (draw >> 32) % 5;
        uint64_t first = (draw >> 36) % 1000000;

        if (step % 9973 == 9972) {
            cow_index *index = reopen(log, commit_dataset(&d, NULL), &grid, &root);

            for (uint64_t i = 0; i < CHUNKS; i++) {
                assert_int_equal(cow_index_get(index, &i, &slot), 0);
                assert_true(slot == is[i]);
            }
            cow_index_close(index);
        } else if (step % 5003 == 5002) {
            extent = CHUNKS - draw % (CHUNKS / 4);
            assert_int_equal(cow_index_trim(d.index, &extent, NULL, NULL), 0);
            memset(is + extent, 0xff, (CHUNKS - extent) * sizeof *is);
        } else if (step % 1009 == 0) {
            a = (asking){.index = d.index};
            visited = 0;
            for (uint64_t i = 0; i < CHUNKS; i++)
                visited += is[i] != COW_HOLE;
            assert_int_equal(cow_index_visit(d.index, &zero, &count, ask_again, &a), 0);
            assert_true(a.seen == visited && visited == cow_index_chunks(d.index));
        }
        for (uint64_t i = at; i < at + length && i < CHUNKS; i++) {
            cow_composed made = {.base = 5, .own = 1, .slot = {first}};
            uint64_t old, now = kind == 0   ? COW_HOLE
                                : kind == 1 ? first
                                : kind == 2 ? splitmix64(&random) >> 2
                                            : first + i;

            if (kind == 3 && log->rows > 0 && i % 16 == 0)
                assert_int_equal(cow_index_compose(d.index, &i, &made, &now), 0);
            assert_int_equal(cow_index_set(d.index, &i, now, &old), 0);
            assert_true(old == is[i]);
            is[i] = now;
        }
        assert_int_equal(cow_index_get(d.index, &at, &slot), 0);
        assert_true(slot == is[at]);
    }
    assert_true(visited > CHUNKS / 4);
    cow_index_close(d.index);
    log->close(log);
}

/* As copying a dataset does: what is visited is read. */
static void test_visitors_may_ask_an_index_larger_than_what_is_kept_in_memory(void **state)
{
    enum { TILES = 70000 };
    cow_table *log = cow_table_memory(1);
    dataset d;
    cow_root root;
    cow_grid grid;
    uint64_t zero = 0, count = UINT64_MAX;
    asking a = {0};
    (void)state;

    open_dataset(&d, log, 7, 1, (uint64_t[]){1}, (uint64_t[]){COW_UNLIMITED});
    for (uint64_t i = 0; i < TILES; i++)
        assert_int_equal(cow_index_set(d.index, (uint64_t[]){i * 64 + i % 64}, i, NULL), 0);
    a.index = reopen(log, commit_dataset(&d, NULL), &grid, &root);
    assert_int_equal(cow_index_visit(a.index, &zero, &count, ask_again, &a), 0);
    assert_int_equal(a.seen, TILES);
    cow_index_close(a.index);
    cow_index_close(d.index);
    log->close(log);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tile_grows_in_the_smallest_dimension),
        cmocka_unit_test(test_span_saturates),
        cmocka_unit_test(test_positions_and_offsets_are_inverse),
        cmocka_unit_test(test_tile_runs_along_dimension_0),
        cmocka_unit_test(test_every_version_keeps_its_answers),
        cmocka_unit_test(test_nothing_changed_writes_nothing),
        cmocka_unit_test(test_emptied_index_has_no_top),
        cmocka_unit_test(test_outgrowing_the_tree_keeps_what_was_there),
        cmocka_unit_test(test_extents_up_to_2_64_work),
        cmocka_unit_test(test_too_deep_a_tree_is_refused),
        cmocka_unit_test(test_any_changed_byte_of_a_record_is_noticed),
        cmocka_unit_test(test_forged_records_are_refused_or_harmless),
        cmocka_unit_test(test_each_rule_of_a_record_is_checked),
        cmocka_unit_test(test_composed_chunks_are_read_as_they_were_written),
        cmocka_unit_test(test_each_rule_of_a_composed_chunk_is_checked),
        cmocka_unit_test(test_leaves_name_composed_chunks),
        cmocka_unit_test(test_random_bytes_are_refused),
        cmocka_unit_test(test_node_of_another_pool_is_refused),
        cmocka_unit_test(test_index_survives_every_failing_table_call),
        cmocka_unit_test(test_commit_that_fails_can_be_repeated),
        cmocka_unit_test(test_failed_commit_leaves_the_log_as_it_was),
        cmocka_unit_test(test_failed_root_leaves_the_log_as_it_was),
        cmocka_unit_test(test_commit_of_one_chunk_among_a_million_is_small),
        cmocka_unit_test(test_index_larger_than_what_is_kept_in_memory),
        cmocka_unit_test(test_changed_leaves_that_are_packed_agree_with_a_model),
        cmocka_unit_test(test_visitors_may_ask_an_index_larger_than_what_is_kept_in_memory),
    };
    return test_main(tests, argc, argv, NULL, NULL);
}
