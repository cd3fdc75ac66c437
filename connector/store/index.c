/* The index of one dataset in memory: the tree of index.h over the records of node.c.
 *
 * A child is an offset in the log until it is needed, then a node in memory as well. A node that is changed, or new,
 * has `changed` set, and so have all nodes above it; everything else is as in the log and may be dropped from memory
 * at any time, which is done when more than `limit` nodes are held. Leaves that have to stay, since they are changed, are
 * packed then: as the runs that they will be in the log, some tens of bytes where slots follow one another. One that is asked for is
 * unpacked.
 *
 * Invariants
 *  1. A node in memory has at least one slot or child (only trim and set empty nodes, and prune them at once).
 *  2. entry[i] of an inner node is the child's offset in the log (COW_NO_NODE: none, or not yet written); child[i] is
 *     the child in memory, or NULL. A changed child's entry[i] is out of date.
 *  3. Work of get and set is bounded by the depth; recursion as well (COW_MAX_LEVEL).
 *  4. A function that fails leaves a tree that is whole; set leaves it as it was, commit too.
 */
#include "store/index.h"

#include "base/error.h"
#include "store/node.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NODE_LIMIT   32768         /* nodes kept in memory before unchanged ones are dropped: about 20 MB */
#define NODE_BYTES   600           /* of one, with what malloc adds */
#define PACKED_AT    COW_COMPOSED  /* the offset that a packed leaf is made for: all composed chunks stand before it */
#define COMMIT_BYTES (1024 * 1024) /* records gathered before they are appended */

typedef struct tree_node {
    bool changed;
    bool packed; /* a leaf of which entry[] holds runs: `bytes` of them */
    uint16_t bytes;
    unsigned used;            /* entries that are neither hole nor absent */
    uint64_t pending;         /* offset given by the commit that is running */
    struct tree_node **child; /* inner nodes only */
    uint64_t entry[];
} tree_node;

/* What the tree is made of at one level, as shifts: chunk >> shift[d] is the number of a node's box. */
typedef struct level_shape {
    unsigned entries;
    uint8_t shift[COW_MAX_RANK];      /* log2 of the span, 64 where it saturates */
    uint8_t split_bits[COW_MAX_RANK]; /* log2 of children (level 0: chunks) along each dimension */
} level_shape;

struct cow_index {
    cow_table *log;
    cow_grid grid;
    uint64_t dataset, pool;
    uint64_t chunks;
    unsigned level;  /* of the top node */
    uint64_t offset; /* of the top node, as entry[] */
    uint64_t lone; /* offset of the leaf that was the top node when the index was opened or committed, or COW_NO_NODE */
    tree_node *top; /* as child[] */
    bool changed;
    uint64_t sealed;     /* composed chunks from here on were made since open or the last commit */
    size_t nodes, limit; /* in memory, and not packed */
    size_t least;        /* of the limit */
    unsigned visits;     /* that run, and hold the nodes on their way */
    level_shape shape[COW_MAX_LEVEL + 1];
};

/* ---- shapes ---- */

static unsigned log2_of(uint64_t span)
{
    unsigned bits = 0;

    if (span == UINT64_MAX) /* saturated: 2^64 */
        return 64;
    while (span > 1) {
        span >>= 1;
        bits++;
    }
    return bits;
}

/* chunk >> bits, also for 64. */
static uint64_t shifted(uint64_t chunk, unsigned bits)
{
    return bits < 64 ? chunk >> bits : 0;
}

static void shapes_init(cow_index *index)
{
    const cow_grid *grid = &index->grid;
    const uint8_t *below = NULL;
    uint64_t span[COW_MAX_RANK];

    cow_grid_span(grid, 0, span);
    for (unsigned level = 0; level <= COW_MAX_LEVEL; level++) {
        level_shape *shape = &index->shape[level];
        unsigned bits = 0;

        /* Once a level splits nothing, those above are the same. */
        if (level > 1 && index->shape[level - 1].entries == 1) {
            *shape = index->shape[level - 1];
            continue;
        }
        if (level > 0)
            cow_grid_raise(grid, span);
        for (unsigned d = 0; d < grid->rank; d++) {
            shape->shift[d] = (uint8_t)log2_of(span[d]);
            shape->split_bits[d] = (uint8_t)(shape->shift[d] - (below ? below[d] : 0));
            bits += shape->split_bits[d];
        }
        shape->entries = 1u << bits;
        below = shape->shift;
    }
}

/* The box of CHUNK's node at LEVEL begins at ORIGIN. */
static void origin_of(const cow_index *index, unsigned level, const uint64_t chunk[], uint64_t origin[])
{
    for (unsigned d = 0; d < index->grid.rank; d++) {
        unsigned shift = index->shape[level].shift[d];
        origin[d] = shift < 64 ? chunk[d] >> shift << shift : 0;
    }
}

/* Position of CHUNK's entry in the node of LEVEL that covers it. */
static unsigned position_of(const cow_index *index, unsigned level, const uint64_t chunk[])
{
    const level_shape *shape = &index->shape[level];
    unsigned rank = index->grid.rank;
    uint64_t position = 0;

    if (level == 0) {
        for (unsigned d = rank; d-- > 0;)
            position = position << shape->split_bits[d] | (chunk[d] & ((1u << shape->split_bits[d]) - 1));
        return (unsigned)position;
    }
    for (unsigned d = 0; d < rank; d++) {
        uint64_t number = shifted(chunk[d], index->shape[level - 1].shift[d]);
        position = position << shape->split_bits[d] | (number & ((1u << shape->split_bits[d]) - 1));
    }
    return (unsigned)position;
}

static bool covers(const cow_index *index, unsigned level, const uint64_t chunk[])
{
    for (unsigned d = 0; d < index->grid.rank; d++) {
        if (shifted(chunk[d], index->shape[level].shift[d]) != 0)
            return false;
    }
    return true;
}

/* ---- nodes in memory ---- */

static tree_node *node_new(cow_index *index, unsigned level)
{
    size_t entries = index->shape[level].entries;
    size_t entry_bytes = entries * sizeof(uint64_t);
    tree_node *node = calloc(1, sizeof *node + entry_bytes + (level > 0 ? entries * sizeof node : 0));

    if (!node) {
        cow_error(COW_MEMORY, "no memory for the chunk index of dataset %" PRIu64, index->dataset);
        return NULL;
    }
    memset(node->entry, 0xff, entry_bytes); /* COW_HOLE and COW_NO_NODE */
    if (level > 0)
        node->child = (tree_node **)(void *)(node->entry + entries);
    index->nodes++;
    return node;
}

static void node_free(cow_index *index, unsigned level, tree_node *node)
{
    if (!node)
        return;
    for (unsigned i = 0; level > 0 && i < index->shape[level].entries; i++)
        node_free(index, level - 1, node->child[i]);
    index->nodes -= !node->packed;
    free(node);
}

/* A changed leaf, packed; itself where that is not less, or there is no memory. */
static tree_node *pack(cow_index *index, tree_node *leaf)
{
    unsigned entries = index->shape[0].entries;
    uint8_t runs[COW_PAYLOAD_MAX];
    size_t size = (size_t)(cow_runs_encode(leaf->entry, entries, PACKED_AT, runs) - runs);
    tree_node *packed;

    if (size >= entries * sizeof *leaf->entry || (packed = malloc(sizeof *packed + size)) == NULL)
        return leaf;
    *packed = (tree_node){.changed = leaf->changed, .packed = true, .bytes = (uint16_t)size, .used = leaf->used};
    memcpy(packed->entry, runs, size);
    node_free(index, 0, leaf);
    return packed;
}

static int packed_entries(const cow_index *index, const tree_node *leaf, uint64_t entry[])
{
    return cow_runs_decode((const uint8_t *)leaf->entry, leaf->bytes, PACKED_AT, entry, index->shape[0].entries);
}

static int unpack(cow_index *index, tree_node **place)
{
    tree_node *packed = *place, *leaf = node_new(index, 0);

    if (leaf == NULL)
        return -1;
    if (packed_entries(index, packed, leaf->entry) < 0) {
        node_free(index, 0, leaf);
        return -1;
    }
    leaf->changed = packed->changed;
    leaf->used = packed->used;
    node_free(index, 0, packed);
    *place = leaf;
    return 0;
}

/* The node at OFFSET of the log, that must be the one of LEVEL whose box begins at ORIGIN. */
static tree_node *node_load(cow_index *index, unsigned level, const uint64_t origin[], uint64_t offset)
{
    cow_expected expected = {.pool = index->pool, .level = level};
    cow_node read;
    tree_node *node;

    memcpy(expected.origin, origin, index->grid.rank * sizeof *origin);
    if (cow_node_read_expected(index->log, &index->grid, offset, &expected, &read) < 0)
        return NULL;
    node = node_new(index, level);
    if (!node)
        return NULL;
    for (unsigned i = 0; i < read.entries; i++) {
        node->entry[i] = read.entry[i];
        node->used += read.entry[i] != COW_HOLE; /* the same value as COW_NO_NODE */
    }
    return node;
}

/* Drop what is unchanged below NODE, which stays, and pack leaves that are changed. */
static void drop_unchanged(cow_index *index, unsigned level, tree_node *node)
{
    for (unsigned i = 0; level > 0 && i < index->shape[level].entries; i++) {
        tree_node *child = node->child[i];
        if (!child)
            continue;
        if (!child->changed) {
            node_free(index, level - 1, child);
            node->child[i] = NULL;
        } else if (level > 1)
            drop_unchanged(index, level - 1, child);
        else if (!child->packed)
            node->child[i] = pack(index, child);
    }
}

/* Called where nobody but a visit holds a node. The limit moves with what must stay, so that the sweep pays for itself. */
static void keep_small(cow_index *index)
{
    if (index->nodes <= index->limit || !index->top || index->visits > 0)
        return;
    drop_unchanged(index, index->level, index->top);
    index->limit = 2 * index->nodes > index->least ? 2 * index->nodes : index->least;
}

/* The top node in memory; NULL without an error when there is none. */
static int load_top(cow_index *index)
{
    static const uint64_t zero[COW_MAX_RANK];

    if (!index->top && index->offset != COW_NO_NODE) {
        index->top = node_load(index, index->level, zero, index->offset);
        if (!index->top)
            return -1;
    }
    return 0;
}

/* The child at POSITION in memory, not packed; *CHILD NULL where there is none. ORIGIN: of the child. */
static int load_child(cow_index *index, unsigned level, tree_node *node, unsigned position, const uint64_t origin[],
                      tree_node **child)
{
    if (!node->child[position] && node->entry[position] != COW_NO_NODE) {
        node->child[position] = node_load(index, level - 1, origin, node->entry[position]);
        if (!node->child[position])
            return -1;
    }
    if (node->child[position] && node->child[position]->packed && unpack(index, &node->child[position]) < 0)
        return -1;
    *child = node->child[position];
    return 0;
}

/* ---- open, close ---- */

cow_index *cow_index_open(cow_table *log, const cow_grid *grid, const cow_root *root)
{
    cow_index *index = NULL;

    if (grid->rank == 0 || grid->rank > COW_MAX_RANK || root->rank != grid->rank || root->level > COW_MAX_LEVEL) {
        cow_error(COW_CORRUPT, "the chunk index of dataset %" PRIu64 " has rank %u and level %u, which cannot be",
                  root->dataset, root->rank, root->level);
        return NULL;
    }
    index = calloc(1, sizeof *index);
    if (!index) {
        cow_error(COW_MEMORY, "no memory for the chunk index of dataset %" PRIu64, root->dataset);
        return NULL;
    }
    index->log = log;
    index->grid = *grid;
    index->dataset = root->dataset;
    index->pool = root->pool;
    index->chunks = root->top == COW_NO_NODE ? 0 : root->chunks;
    index->level = root->top == COW_NO_NODE ? 0 : root->level;
    index->offset = root->top;
    index->lone = index->level == 0 ? index->offset : COW_NO_NODE;
    index->limit = index->least = NODE_LIMIT;
    index->sealed = log->rows;
    shapes_init(index);
    return index;
}

void cow_index_close(cow_index *index)
{
    if (!index)
        return;
    node_free(index, index->level, index->top);
    free(index);
}

void cow_index_keep(cow_index *index, size_t bytes)
{
    index->limit = index->least = bytes / NODE_BYTES;
}

uint64_t cow_index_chunks(const cow_index *index)
{
    return index->chunks;
}

bool cow_index_changed(const cow_index *index)
{
    return index->changed;
}

unsigned cow_index_level(const cow_index *index)
{
    return index->level;
}

uint64_t cow_index_lone_leaf(const cow_index *index)
{
    return index->lone;
}

/* ---- get, set ---- */

/* From the top down to CHUNK's leaf, as far as there are nodes: path[level] for each, *LOWEST the last one's level
 * (index->level + 1: not even a top). Everything is in memory then. */
static int descend(cow_index *index, const uint64_t chunk[], tree_node *path[], unsigned *lowest)
{
    tree_node *node;
    uint64_t origin[COW_MAX_RANK];
    unsigned level = index->level;

    *lowest = level + 1;
    if (load_top(index) < 0)
        return -1;
    node = index->top;
    if (!covers(index, level, chunk))
        return 0;
    while (node) {
        path[level] = node;
        *lowest = level;
        if (level == 0)
            return 0;
        unsigned position = position_of(index, level, chunk);
        tree_node *child = node->child[position];
        if (!child || child->packed) {
            origin_of(index, level - 1, chunk, origin);
            if (load_child(index, level, node, position, origin, &child) < 0)
                return -1;
        }
        node = child;
        level--;
    }
    return 0;
}

int cow_index_get(cow_index *index, const uint64_t chunk[], uint64_t *slot)
{
    tree_node *path[COW_MAX_LEVEL + 1];
    unsigned lowest;

    *slot = COW_HOLE;
    keep_small(index);
    if (descend(index, chunk, path, &lowest) < 0)
        return -1;
    if (lowest == 0)
        *slot = path[0]->entry[position_of(index, 0, chunk)];
    return 0;
}

/* Levels on top until CHUNK is covered: the old top becomes the first child of the new one. */
static int outgrow(cow_index *index, const uint64_t chunk[])
{
    while (!covers(index, index->level, chunk)) {
        tree_node *node = NULL;

        if (index->level == COW_MAX_LEVEL)
            return cow_error(COW_UNSUPPORTED,
                             "dataset %" PRIu64
                             " has too many chunks along one dimension: in rank %u its index ends at "
                             "%u levels. Larger chunks, or fewer unlimited dimensions, help",
                             index->dataset, index->grid.rank, COW_MAX_LEVEL);
        if (index->top) {
            node = node_new(index, index->level + 1);
            if (!node)
                return -1;
            node->changed = index->changed = true;
            node->used = 1;
            node->child[0] = index->top;
            node->entry[0] = index->offset;
            index->top = node;
            index->offset = COW_NO_NODE;
        }
        index->level++;
    }
    return 0;
}

/* A leaf with only CHUNK's slot, and new nodes above it up to (not including) LEVEL. */
static tree_node *new_branch(cow_index *index, unsigned level, const uint64_t chunk[], uint64_t slot)
{
    tree_node *node = NULL;

    for (unsigned l = 0; l < level; l++) {
        tree_node *above = node_new(index, l);
        if (!above) {
            if (l > 0)
                node_free(index, l - 1, node);
            return NULL;
        }
        above->changed = true;
        above->used = 1;
        if (l == 0)
            above->entry[position_of(index, 0, chunk)] = slot;
        else
            above->child[position_of(index, l, chunk)] = node;
        node = above;
    }
    return node;
}

/* Nodes from LEVEL up were changed through path[]; those that became empty go. */
static void mark_and_prune(cow_index *index, const uint64_t chunk[], tree_node *path[], unsigned level)
{
    index->changed = true;
    for (; level <= index->level; level++) {
        path[level]->changed = true;
        if (path[level]->used > 0)
            continue;
        if (level == index->level) {
            node_free(index, level, index->top);
            index->top = NULL;
            index->offset = COW_NO_NODE;
            index->level = 0;
            return;
        }
        unsigned position = position_of(index, level + 1, chunk);
        node_free(index, level, path[level]);
        path[level + 1]->child[position] = NULL;
        path[level + 1]->entry[position] = COW_NO_NODE;
        path[level + 1]->used--;
    }
}

int cow_index_set(cow_index *index, const uint64_t chunk[], uint64_t slot, uint64_t *old)
{
    tree_node *path[COW_MAX_LEVEL + 1];
    uint64_t before = COW_HOLE;
    unsigned lowest, position = position_of(index, 0, chunk);

    for (unsigned d = 0; d < index->grid.rank; d++) {
        if (chunk[d] >= index->grid.maximum[d])
            return cow_error(COW_USAGE,
                             "chunk %" PRIu64 " of dimension %u lies beyond the maximum of %" PRIu64
                             " chunks of dataset %" PRIu64,
                             chunk[d], d, index->grid.maximum[d], index->dataset);
    }
    keep_small(index);
    if (descend(index, chunk, path, &lowest) < 0)
        return -1;
    if (lowest == 0)
        before = path[0]->entry[position];
    if (old)
        *old = before;
    if (before == slot)
        return 0;

    if (lowest == 0) {
        path[0]->entry[position] = slot;
        path[0]->used += (slot != COW_HOLE) - (unsigned)(before != COW_HOLE);
        mark_and_prune(index, chunk, path, 0);
    } else {
        tree_node *branch;

        if (outgrow(index, chunk) < 0)
            return -1;
        if (!index->top) {
            branch = new_branch(index, index->level + 1, chunk, slot);
            if (!branch)
                return -1;
            index->top = branch;
            index->changed = true;
        } else {
            /* Growing has put new nodes on the path. */
            if (descend(index, chunk, path, &lowest) < 0)
                return -1;
            branch = new_branch(index, lowest, chunk, slot);
            if (!branch)
                return -1;
            path[lowest]->child[position_of(index, lowest, chunk)] = branch;
            path[lowest]->used++;
            mark_and_prune(index, chunk, path, lowest);
        }
    }
    index->chunks += (slot != COW_HOLE) - (uint64_t)(before != COW_HOLE);
    return 0;
}

/* ---- composed chunks ---- */

int cow_index_compose(cow_index *index, const uint64_t chunk[], cow_composed *composed, uint64_t *entry)
{
    composed->pool = index->pool;
    memcpy(composed->chunk, chunk, index->grid.rank * sizeof *chunk);
    if (cow_composed_append(index->log, index->grid.rank, composed) < 0)
        return -1;
    *entry = COW_COMPOSED | composed->offset;
    return 0;
}

int cow_index_composed(cow_index *index, const uint64_t chunk[], uint64_t entry, cow_composed *composed)
{
    return cow_composed_read(index->log, index->grid.rank, entry, index->pool, chunk, composed);
}

bool cow_index_composed_now(const cow_index *index, uint64_t entry)
{
    return cow_is_composed(entry) && cow_composed_offset(entry) >= index->sealed;
}

/* ---- walks ---- */

/* A box of entries of one node, walked entry by entry. */
typedef struct entry_walk {
    uint64_t low[COW_MAX_RANK], high[COW_MAX_RANK]; /* inclusive, in entries from the node's origin */
    uint64_t at[COW_MAX_RANK];
    unsigned position;
} entry_walk;

static unsigned walk_position(const cow_index *index, unsigned level, const uint64_t at[])
{
    const level_shape *shape = &index->shape[level];
    uint64_t position = 0;

    if (level == 0) {
        for (unsigned d = index->grid.rank; d-- > 0;)
            position = position << shape->split_bits[d] | at[d];
    } else {
        for (unsigned d = 0; d < index->grid.rank; d++)
            position = position << shape->split_bits[d] | at[d];
    }
    return (unsigned)position;
}

/* Entries of the node at ORIGIN that touch the chunks [first, last]. False: none. */
static bool walk_start(const cow_index *index, unsigned level, const uint64_t origin[], const uint64_t first[],
                       const uint64_t last[], entry_walk *walk)
{
    for (unsigned d = 0; d < index->grid.rank; d++) {
        unsigned shift = level > 0 ? index->shape[level - 1].shift[d] : 0;
        uint64_t most = (1u << index->shape[level].split_bits[d]) - 1;

        if (last[d] < origin[d])
            return false;
        walk->low[d] = first[d] > origin[d] ? shifted(first[d] - origin[d], shift) : 0;
        walk->high[d] = shifted(last[d] - origin[d], shift);
        if (walk->low[d] > most)
            return false;
        if (walk->high[d] > most)
            walk->high[d] = most;
        walk->at[d] = walk->low[d];
    }
    walk->position = walk_position(index, level, walk->at);
    return true;
}

/* The next entry in the order of positions. */
static bool walk_next(const cow_index *index, unsigned level, entry_walk *walk)
{
    unsigned rank = index->grid.rank;

    for (unsigned i = 0; i < rank; i++) {
        unsigned d = level == 0 ? i : rank - 1 - i;
        if (walk->at[d] < walk->high[d]) {
            walk->at[d]++;
            walk->position = walk_position(index, level, walk->at);
            return true;
        }
        walk->at[d] = walk->low[d];
    }
    return false;
}

/* First chunk of the entry that WALK is at. */
static void walk_origin(const cow_index *index, unsigned level, const uint64_t origin[], const entry_walk *walk,
                        uint64_t chunk[])
{
    for (unsigned d = 0; d < index->grid.rank; d++) {
        unsigned shift = level > 0 ? index->shape[level - 1].shift[d] : 0;
        chunk[d] = origin[d] + (shift < 64 ? walk->at[d] << shift : 0);
    }
}

typedef struct visit {
    const uint64_t *first, *last;
    cow_index_visitor *visitor;
    void *context;
} visit;

static int visit_node(cow_index *index, unsigned level, tree_node *node, const uint64_t origin[], const visit *what)
{
    uint64_t chunk[COW_MAX_RANK];
    entry_walk walk;
    int result = 0;

    if (!walk_start(index, level, origin, what->first, what->last, &walk))
        return 0;
    do {
        if (node->entry[walk.position] == COW_HOLE && (level == 0 || !node->child[walk.position]))
            continue;
        walk_origin(index, level, origin, &walk, chunk);
        if (level == 0) {
            result = what->visitor(what->context, chunk, node->entry[walk.position]);
        } else {
            tree_node **place = &node->child[walk.position];
            tree_node *child;
            bool loaded = !*place, packed = *place && (*place)->packed;

            if (load_child(index, level, node, walk.position, chunk, &child) < 0)
                return -1;
            result = visit_node(index, level - 1, child, chunk, what);
            if (loaded && index->nodes > index->limit) {
                node_free(index, level - 1, child);
                *place = NULL;
            } else if (packed && index->nodes > index->limit)
                *place = pack(index, child);
        }
    } while (result == 0 && walk_next(index, level, &walk));
    return result;
}

int cow_index_visit(cow_index *index, const uint64_t first[], const uint64_t count[], cow_index_visitor *visitor,
                    void *context)
{
    static const uint64_t zero[COW_MAX_RANK];
    uint64_t last[COW_MAX_RANK];
    visit what = {.first = first, .last = last, .visitor = visitor, .context = context};
    int result;

    for (unsigned d = 0; d < index->grid.rank; d++) {
        if (count[d] == 0)
            return 0;
        last[d] = count[d] - 1 > UINT64_MAX - first[d] ? UINT64_MAX : first[d] + (count[d] - 1);
    }
    keep_small(index);
    if (load_top(index) < 0)
        return -1;
    index->visits++;
    result = index->top ? visit_node(index, index->level, index->top, zero, &what) : 0;
    index->visits--;
    return result;
}

typedef struct trim {
    const uint64_t *extent; /* chunks */
    cow_index_visitor *dropped;
    void *context;
} trim;

/* Whether the box of span of LEVEL from ORIGIN ends inside the extent. */
static bool box_inside(const cow_index *index, unsigned level, const uint64_t origin[], const uint64_t extent[])
{
    for (unsigned d = 0; d < index->grid.rank; d++) {
        unsigned shift = index->shape[level].shift[d];
        uint64_t most = shift < 64 ? ((uint64_t)1 << shift) - 1 : UINT64_MAX;

        if (origin[d] >= extent[d] || extent[d] - origin[d] - 1 < most)
            return false;
    }
    return true;
}

/* *CHANGED: something went, also when the result is not 0. */
static int trim_node(cow_index *index, unsigned level, tree_node *node, const uint64_t origin[], const trim *what)
{
    static const uint64_t zero[COW_MAX_RANK];
    uint64_t last[COW_MAX_RANK], chunk[COW_MAX_RANK];
    entry_walk walk;
    int result = 0;

    memset(last, 0xff, sizeof last);
    if (!walk_start(index, level, origin, zero, last, &walk))
        return 0;
    do {
        if (node->entry[walk.position] == COW_HOLE && (level == 0 || !node->child[walk.position]))
            continue;
        walk_origin(index, level, origin, &walk, chunk);
        if (level == 0) {
            bool inside = true;
            for (unsigned d = 0; d < index->grid.rank; d++)
                inside = inside && chunk[d] < what->extent[d];
            if (inside)
                continue;
            result = what->dropped ? what->dropped(what->context, chunk, node->entry[walk.position]) : 0;
            if (result != 0)
                break;
            node->entry[walk.position] = COW_HOLE;
            node->used--;
            node->changed = true;
            index->chunks--;
        } else {
            tree_node *child;

            if (box_inside(index, level - 1, chunk, what->extent))
                continue;
            if (load_child(index, level, node, walk.position, chunk, &child) < 0)
                return -1;
            result = trim_node(index, level - 1, child, chunk, what);
            node->changed = node->changed || child->changed;
            if (child->used == 0) {
                node_free(index, level - 1, child);
                node->child[walk.position] = NULL;
                node->entry[walk.position] = COW_NO_NODE;
                node->used--;
            }
        }
    } while (result == 0 && walk_next(index, level, &walk));
    return result;
}

int cow_index_trim(cow_index *index, const uint64_t grid_extent[], cow_index_visitor *dropped, void *context)
{
    static const uint64_t zero[COW_MAX_RANK];
    trim what = {.extent = grid_extent, .dropped = dropped, .context = context};
    int result;

    keep_small(index);
    if (box_inside(index, index->level, zero, grid_extent))
        return 0;
    if (load_top(index) < 0)
        return -1;
    if (!index->top)
        return 0;
    result = trim_node(index, index->level, index->top, zero, &what);
    index->changed = index->changed || index->top->changed;
    if (index->top->used == 0) {
        node_free(index, index->level, index->top);
        index->top = NULL;
        index->offset = COW_NO_NODE;
        index->level = 0;
    }
    return result;
}

/* ---- commit ---- */

typedef struct commit {
    uint64_t start; /* of buffer[] in the log */
    uint8_t *buffer;
    size_t size;
    cow_node_visitor *written;
    void *context;
} commit;

static int commit_append(cow_index *index, commit *run)
{
    if (run->size > 0 && cow_index_log_append(index->log, run->start, run->buffer, run->size) < 0)
        return -1;
    run->start += run->size;
    run->size = 0;
    return 0;
}

/* Children first; gives changed nodes their `pending` offset. */
static int commit_node(cow_index *index, unsigned level, tree_node *node, const uint64_t origin[], commit *run)
{
    static const uint64_t zero[COW_MAX_RANK];
    uint64_t last[COW_MAX_RANK];
    cow_node record;
    entry_walk walk;

    memset(last, 0xff, sizeof last);
    if (level > 0 && walk_start(index, level, origin, zero, last, &walk)) {
        do {
            tree_node *child = node->child[walk.position];
            uint64_t chunk[COW_MAX_RANK];
            int result;

            if (!child || !child->changed)
                continue;
            walk_origin(index, level, origin, &walk, chunk);
            result = commit_node(index, level - 1, child, chunk, run);
            if (result != 0)
                return result;
        } while (walk_next(index, level, &walk));
    }

    if (COMMIT_BYTES - run->size < COW_RECORD_MAX && commit_append(index, run) < 0)
        return -1;
    record.offset = node->pending = run->start + run->size;
    record.pool = index->pool;
    record.level = level;
    memcpy(record.origin, origin, index->grid.rank * sizeof *origin);
    record.entries = index->shape[level].entries;
    if (node->packed && packed_entries(index, node, record.entry) < 0)
        return -1;
    for (unsigned i = 0; !node->packed && i < record.entries; i++) {
        const tree_node *child = level > 0 ? node->child[i] : NULL;
        record.entry[i] = child && child->changed ? child->pending : node->entry[i];
    }
    run->size += cow_node_encode(&index->grid, &record, run->buffer + run->size);
    return run->written ? run->written(run->context, &record) : 0;
}

/* What was written is now as in the log. */
static void commit_done(cow_index *index, unsigned level, tree_node *node)
{
    node->changed = false;
    for (unsigned i = 0; level > 0 && i < index->shape[level].entries; i++) {
        tree_node *child = node->child[i];
        if (!child || !child->changed)
            continue;
        node->entry[i] = child->pending;
        commit_done(index, level - 1, child);
    }
}

int cow_index_commit(cow_index *index, cow_node_visitor *written, void *context, uint64_t *top, unsigned *level)
{
    static const uint64_t zero[COW_MAX_RANK];
    commit run = {.written = written, .context = context};
    uint64_t rows = index->log->rows;
    int result = -1;

    if (index->top && index->top->changed) {
        if (cow_index_log_end(index->log, &run.start) < 0)
            goto done;
        run.buffer = malloc(COMMIT_BYTES);
        if (!run.buffer) {
            cow_error(COW_MEMORY, "no memory to write the chunk index of dataset %" PRIu64, index->dataset);
            goto done;
        }
        result = commit_node(index, index->level, index->top, zero, &run);
        if (result == 0)
            result = commit_append(index, &run);
        if (result != 0) {
            /* Nothing names these records; without them the log is as it was. */
            if (index->log->rows > rows)
                index->log->resize(index->log, rows);
            goto done;
        }
        index->offset = index->top->pending;
        commit_done(index, index->level, index->top);
    }
    index->changed = false;
    index->sealed = index->log->rows;
    index->lone = index->level == 0 ? index->offset : COW_NO_NODE;
    *top = index->offset;
    *level = index->level;
    result = 0;
done:
    free(run.buffer);
    return result;
}
