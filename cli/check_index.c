/* Root records, nodes and views. See check.h. Nodes are shared between versions; each is checked once.
 *
 * A tree may be compared with that of an older version (verify --since), side by side: what both have at the same place is not
 * looked at, and chunks are counted as so many more or less than the older one has. */
#include "check.h"

#include "composed.h"

#include "base/error.h"
#include "base/ids.h"
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- views ---- */

/* Is the selection of SPACE the box? Closes SPACE. */
static bool is_box(hid_t space, unsigned rank, const uint64_t start[], const uint64_t count[])
{
    hsize_t first[COW_MAX_RANK], last[COW_MAX_RANK], elements = 1;
    bool same =
        space >= 0 && H5Sget_simple_extent_ndims(space) == (int)rank && H5Sget_select_bounds(space, first, last) >= 0;

    for (unsigned d = 0; same && d < rank; d++) {
        same = first[d] == start[d] && last[d] - first[d] + 1 == count[d];
        elements *= count[d];
    }
    same = same && (hsize_t)H5Sget_select_npoints(space) == elements;
    if (space >= 0)
        H5Sclose(space);
    return same;
}

typedef struct expected_view {
    unsigned rank;
    const uint64_t *extent;
    cow_mapping *mapping;
    unsigned mappings;
    const uint64_t *chunk; /* what shows chunks: their shape; what shows nodes: NULL */
    bool part; /* the root's mapping shows a part of its node; else it is all of it, whose extent is checked as well */
    bool root; /* it may have a mark */
    uint64_t pool;
    hid_t plan[2]; /* of a composed chunk: its mappings, in either of two ways; else H5I_INVALID_HID */
} expected_view;
#define NO_PLAN {H5I_INVALID_HID, H5I_INVALID_HID}

/* Does a mapping show all of the view of a node, or of a composed chunk? */
static bool shows_all(const expected_view *e, const cow_mapping *m)
{
    return e->chunk == NULL ? !e->part
                            : m->source != 0 && memcmp(m->source_count, e->chunk, e->rank * sizeof *e->chunk) == 0;
}

/* The same for the source of a mapping: all of a view may be said without its extent. */
static bool is_source(hid_t space, const expected_view *e, const cow_mapping *m)
{
    if (shows_all(e, m) && space >= 0 && H5Sget_select_type(space) == H5S_SEL_ALL) {
        H5Sclose(space);
        return true;
    }
    return is_box(space, e->rank, m->source_start, m->source_count);
}

/* Of a box that has too many elements, any part which has not, and in which both begin: the extent that it was cut at is not known here. */
static bool is_cut(hid_t view, hid_t source, unsigned rank, const cow_mapping *m)
{
    hsize_t first[COW_MAX_RANK], last[COW_MAX_RANK];
    cow_mapping cut = *m;
    bool good = view >= 0 && source >= 0 && H5Sget_select_type(view) == H5S_SEL_HYPERSLABS &&
                H5Sget_select_type(source) == H5S_SEL_HYPERSLABS && H5Sget_simple_extent_ndims(view) == (int)rank &&
                H5Sget_select_bounds(view, first, last) >= 0;

    for (unsigned d = 0; good && d < rank; d++) {
        cut.count[d] = last[d] - first[d] + 1;
        good = cut.count[d] <= m->count[d];
    }
    good = is_box(view, rank, m->start, cut.count) & is_box(source, rank, m->source_start, cut.count) &
           good; /* closes both */
    return good && !cow_view_too_large(&cut, rank);
}

/* The mapping of the plan that begins at the same place as mapping I of the view: their order means nothing. */
static const cow_mapping *planned(const expected_view *e, hid_t dcpl, size_t i)
{
    hid_t space = H5Pget_virtual_vspace(dcpl, i);
    hsize_t first[COW_MAX_RANK], last[COW_MAX_RANK];
    const cow_mapping *found = NULL;

    if (space >= 0 && H5Sget_simple_extent_ndims(space) == (int)e->rank &&
        H5Sget_select_bounds(space, first, last) >= 0)
        for (unsigned m = 0; found == NULL && m < e->mappings; m++) {
            bool same = true;
            for (unsigned d = 0; d < e->rank; d++)
                same = same && e->mapping[m].start[d] == first[d];
            found = same ? &e->mapping[m] : NULL;
        }
    if (space >= 0)
        H5Sclose(space);
    return found;
}

uint64_t cli_check_address(cli_check *check, const char *path)
{
    H5O_info2_t info;

    if (H5Oget_info_by_name3(check->file->id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0)
        return cow_address(&info.token);
    H5Eclear2(H5E_DEFAULT);
    return UINT64_MAX;
}

static const char wrong_count[] = "it has the wrong number of mappings";
static const char wrong_source[] = "one of its mappings names the wrong source";
static const char wrong_elements[] = "one of its mappings shows the wrong elements";

/* The source of mapping I, which must be in the same file. */
static bool source_of(hid_t dcpl, size_t i, char name[COW_MARKED_MAX])
{
    char file[8] = "";

    name[0] = '\0';
    return H5Pget_virtual_filename(dcpl, i, file, sizeof file) >= 0 &&
           H5Pget_virtual_dsetname(dcpl, i, name, COW_MARKED_MAX) >= 0 && strcmp(file, ".") == 0;
}

/* What is wrong with the mappings of DCPL, or NULL. */
static const char *look_at_mappings(const cli_check *check, hid_t dcpl, size_t mappings, const expected_view *e)
{
    if (mappings != e->mappings)
        return wrong_count;
    for (size_t i = 0; i < mappings; i++) {
        char name[COW_MARKED_MAX], source[COW_PATH_MAX];
        const cow_mapping *m = planned(e, dcpl, i);
        uint64_t mark;

        if (m == NULL)
            return "one of its mappings is at the wrong place";
        if (e->chunk != NULL && m->source == 0)
            snprintf(source, sizeof source, COW_PATH_RAW "/%llu", (unsigned long long)e->pool);
        else
            cow_layout_view_path(source, check->parts, m->source);
        if (!source_of(dcpl, i, name))
            return wrong_source;
        if (e->root && i == 0)
            cow_layout_unmark(name, &mark);
        if (strcmp(name, source) != 0)
            return wrong_source;
        if (e->chunk == NULL && !e->root && cow_view_too_large(m, e->rank)
                ? !is_cut(H5Pget_virtual_vspace(dcpl, i), H5Pget_virtual_srcspace(dcpl, i), e->rank, m)
                : !is_box(H5Pget_virtual_vspace(dcpl, i), e->rank, m->start, m->count) ||
                      !is_source(H5Pget_virtual_srcspace(dcpl, i), e, m))
            return wrong_elements;
    }
    return NULL;
}

/* Do both select the same elements? Closes both. */
static bool same_selection(hid_t a, hid_t b, unsigned rank)
{
    hsize_t first[2][COW_MAX_RANK], last[2][COW_MAX_RANK];
    bool same = a >= 0 && b >= 0 && H5Sget_simple_extent_ndims(a) == (int)rank &&
                H5Sget_select_bounds(a, first[0], last[0]) >= 0 && H5Sget_select_bounds(b, first[1], last[1]) >= 0 &&
                memcmp(first[0], first[1], rank * sizeof **first) == 0 &&
                memcmp(last[0], last[1], rank * sizeof **last) == 0 && H5Sselect_shape_same(a, b) > 0;

    cow_close(b, a);
    return same;
}

/* The same of those of a composed chunk, which are not boxes: PLAN has what they should be. */
static const char *look_at_composed(hid_t dcpl, size_t mappings, hid_t plan, unsigned rank)
{
    size_t planned_mappings = 0;

    if (H5Pget_virtual_count(plan, &planned_mappings) < 0 || mappings != planned_mappings)
        return wrong_count;
    for (size_t i = 0; i < mappings; i++) {
        char name[COW_MARKED_MAX], source[COW_MARKED_MAX];
        const char *bad = wrong_source;

        if (!source_of(dcpl, i, name))
            return bad;
        for (size_t k = 0; bad != NULL && k < mappings; k++) {
            if (!source_of(plan, k, source) || strcmp(name, source) != 0)
                continue;
            bad = same_selection(H5Pget_virtual_vspace(dcpl, i), H5Pget_virtual_vspace(plan, k), rank) &&
                          same_selection(H5Pget_virtual_srcspace(dcpl, i), H5Pget_virtual_srcspace(plan, k), rank)
                      ? NULL
                      : wrong_elements;
        }
        if (bad != NULL)
            return bad;
    }
    return NULL;
}

/* What is wrong with the view, or NULL. */
static const char *look_at_view(const cli_check *check, hid_t view, const expected_view *e, hid_t type)
{
    hid_t space = H5Dget_space(view), dcpl = H5Dget_create_plist(view), own = H5Dget_type(view);
    hsize_t extent[COW_MAX_RANK];
    const char *bad = NULL;
    size_t mappings = 0;

    if (space < 0 || dcpl < 0 || own < 0)
        bad = "it cannot be read";
    else if (H5Sget_simple_extent_dims(space, extent, NULL) != (int)e->rank)
        bad = "it has the wrong rank";
    else if (H5Tequal(own, type) <= 0)
        bad = "it has the wrong type";
    for (unsigned d = 0; bad == NULL && d < e->rank; d++)
        bad = extent[d] == e->extent[d] ? NULL : "it has the wrong extent";
    if (bad == NULL && H5Pget_layout(dcpl) == H5D_VIRTUAL && H5Pget_virtual_count(dcpl, &mappings) < 0)
        bad = "its mappings cannot be read";
    if (bad == NULL && e->plan[0] >= 0) {
        if ((bad = look_at_composed(dcpl, mappings, e->plan[0], e->rank)) != NULL && e->plan[1] >= 0 &&
            look_at_composed(dcpl, mappings, e->plan[1], e->rank) == NULL)
            bad = NULL;
    } else if (bad == NULL)
        bad = look_at_mappings(check, dcpl, mappings, e);
    cow_close(own, dcpl, space);
    return bad;
}

/* Does VIEW show that of NODE, and nothing else? */
static bool shows_node(const cli_check *check, hid_t view, uint64_t node)
{
    char path[COW_PATH_MAX], name[COW_MARKED_MAX];
    hid_t dcpl = view < 0 ? H5I_INVALID_HID : H5Dget_create_plist(view);
    size_t mappings = 0;
    uint64_t mark;
    bool shows = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_VIRTUAL && H5Pget_virtual_count(dcpl, &mappings) >= 0 &&
                 mappings == 1 && source_of(dcpl, 0, name);

    if (shows)
        cow_layout_unmark(name, &mark);
    cow_layout_view_path(path, check->parts, node);
    shows = shows && strcmp(name, path) == 0;
    cow_close(dcpl);
    H5Eclear2(H5E_DEFAULT);
    return shows;
}

/* Does the view of ROOT, at OFFSET, show the chunks of its only leaf, which then needs no view? */
static bool shows_leaf(const cli_check *check, uint64_t offset, const cow_root *root)
{
    char path[COW_PATH_MAX];
    hid_t view;
    bool lone;

    if (root->top == COW_NO_NODE || root->level > 0)
        return false;
    cow_layout_view_path(path, check->parts, offset);
    view = H5Dopen2(check->file->id, path, H5P_DEFAULT);
    lone = !shows_node(check, view, root->top);
    cow_close(view);
    H5Eclear2(H5E_DEFAULT);
    return lone;
}

/* The view at OFFSET may say whose it is: of that record, or, since the view of a copy may be another link to that of its source, of
 * an older one, whose view is the same or gone. */
static bool has_right_mark(cli_check *check, uint64_t offset, const char *path, hid_t view)
{
    char other[COW_PATH_MAX];
    uint64_t number, there;
    bool marked;

    if (cli_source(view, &number, &marked) != CLI_VIEW || !marked)
        return true;
    check->marked = true;
    if (number == offset)
        return true;
    cow_layout_view_path(other, check->parts, number);
    there = cli_check_address(check, other);
    return number < offset && (there == UINT64_MAX || there == cli_check_address(check, path));
}

static void check_view(cli_check *check, uint64_t node, const expected_view *e, hid_t type)
{
    char path[COW_PATH_MAX], text[512];
    const char *bad;

    cow_layout_view_path(path, check->parts, node);
    hid_t view = H5Dopen2(check->file->id, path, H5P_DEFAULT);
    check->views++;
    if (view < 0) {
        cli_damaged(check, CLI_BAD_VIEW, 0, node, "the view %s cannot be opened: %s", path,
                    cli_reason(text, sizeof text));
        return;
    }
    bad = look_at_view(check, view, e, type);
    if (bad == NULL && e->root && !has_right_mark(check, node, path, view))
        bad = "it says that it is that of another record";
    if (bad != NULL)
        cli_damaged(check, CLI_BAD_VIEW, 0, node, "the view %s does not show what the index says: %s", path, bad);
    H5Eclear2(H5E_DEFAULT);
    H5Dclose(view);
}

/* ---- nodes ---- */

typedef struct tree {
    cli_check *check;
    const cow_root *root;
    const cli_pool *pool;
    cow_grid grid;
    uint64_t lone;  /* the leaf that was all of the older tree, and may have got its view since then; or COW_NO_NODE */
    bool uncounted; /* nobody knows how many chunks the older tree has where this one differs */
} tree;

/* What an older version has at the place of a node: a node, perhaps of a lower level. */
typedef struct older {
    uint64_t node; /* COW_NO_NODE: nothing */
    unsigned level;
} older;
static const older nothing = {COW_NO_NODE, 0};

static size_t remember(cli_check *check, uint64_t offset, const tree *t, const cow_node *node, older before)
{
    CLI_RESERVE(check->node, check->node_room, check->node_count, 1);
    cli_seen_node *seen = &check->node[check->node_count];
    *seen = (cli_seen_node){.pool = t->root->pool, .before = before.node};
    if (node != NULL) {
        seen->level = node->level;
        seen->origin = cli_alloc(t->grid.rank, sizeof *seen->origin);
        memcpy(seen->origin, node->origin, t->grid.rank * sizeof *seen->origin);
    }
    cli_map_put(&check->nodes, offset, check->node_count);
    return check->node_count++;
}

static bool same_place(const cow_grid *grid, const uint64_t a[], const uint64_t b[])
{
    return memcmp(a, b, grid->rank * sizeof *a) == 0;
}

static void use_slot(cli_check *check, const cli_pool *pool, uint64_t slot)
{
    if (check->since != NULL)
        cli_since_slot(check, pool, slot);
    else if (slot < pool->room)
        check->used[pool->id][slot] = true;
}

/* Does the view of a composed chunk show its base and its pieces? Not asked where HDF5 has no place for them in raw data: which is told
 * of these slots. */
static void check_composed_view(tree *t, const cow_composed *composed, const cow_piecing *cut)
{
    const cli_pool *pieces = &t->check->pools[composed->piece_pool];
    char base_name[COW_PATH_MAX], piece_name[COW_PATH_MAX];
    const cow_view_source base = {base_name, t->pool->room * t->grid.chunk[0]},
                          own = {piece_name, pieces->room * cut->piece[0]};
    expected_view e = {.rank = t->grid.rank, .extent = t->grid.chunk, .plan = NO_PLAN};
    bool there = composed->base == COW_HOLE || composed->base < t->pool->room;
    char text[512];

    for (unsigned i = 0; i < cut->count; i++)
        there = there && (!(composed->own >> i & 1) || composed->slot[i] < pieces->room);
    if (!there)
        return;
    cow_layout_raw_path(base_name, (uint32_t)t->pool->id);
    cow_layout_raw_path(piece_name, (uint32_t)pieces->id);
    for (int alone = 0; there && alone < 2; alone++)
        there = (e.plan[alone] = H5Pcreate(H5P_DATASET_CREATE)) >= 0 &&
                cow_view_map_composed(e.plan[alone], &t->grid, composed, cut, &base, &own, alone > 0) == 0;
    if (there)
        check_view(t->check, composed->offset, &e, t->pool->type);
    else
        cli_damaged(t->check, CLI_BAD_VIEW, 0, composed->offset,
                    "the view of the composed chunk at offset %llu cannot be checked: %s",
                    (unsigned long long)composed->offset, cli_reason(text, sizeof text));
    cow_close(e.plan[1], e.plan[0]);
}

/* The slots of a composed chunk, but for those that the entry BEFORE, of an older leaf, has as well. */
static void use_composed(tree *t, const cow_composed *composed, const cow_piecing *cut, uint64_t before)
{
    cli_check *check = t->check;
    cow_composed old = {.base = before, .piece_pool = UINT64_MAX};

    if (before != COW_HOLE && cow_is_composed(before) &&
        cow_composed_read(check->log, t->grid.rank, before, t->root->pool, composed->chunk, &old) < 0) {
        cow_error_clear(); /* which is of the older version */
        old = (cow_composed){.base = COW_HOLE, .piece_pool = UINT64_MAX};
    }
    if (composed->base != COW_HOLE && composed->base != old.base)
        use_slot(check, t->pool, composed->base);
    for (unsigned i = 0; i < cut->count; i++)
        if ((composed->own >> i & 1) &&
            (old.piece_pool != composed->piece_pool || !(old.own >> i & 1) || old.slot[i] != composed->slot[i]))
            use_slot(check, &check->pools[composed->piece_pool], composed->slot[i]);
}

/* A composed chunk, which many leaves may name: its record, its slots and its view. BEFORE: the entry of an older leaf. */
static void check_composed(tree *t, uint64_t entry, const uint64_t chunk[], uint64_t before)
{
    cli_check *check = t->check;
    uint64_t offset = cow_composed_offset(entry), place[COW_MAX_RANK + 1] = {t->root->pool}, key;
    uint64_t *known = cow_map_at(&check->composed, offset);
    cow_composed composed;
    cow_piecing cut;
    char text[512];

    memcpy(place + 1, chunk, t->grid.rank * sizeof *chunk);
    key = cow_checksum(place, (t->grid.rank + 1) * sizeof *place);
    if (known != NULL && *known == key)
        return;
    cli_map_put(&check->composed, offset, key);
    if (cli_composed_read(check->log, &t->grid, check->pools, check->pool_count, t->root->pool, entry, chunk, &composed,
                          &cut) < 0) {
        cli_damaged(check, CLI_BAD_NODE, 0, offset, "the record of a composed chunk at offset %llu is damaged: %s",
                    (unsigned long long)offset, cli_reason(text, sizeof text));
        return;
    }
    use_composed(t, &composed, &cut, before);
    check_composed_view(t, &composed, &cut);
}

/* Slots of a leaf: in the pool, inside the extent. What is wrong with a composed chunk, whose record has a checksum of its own, is no
 * fault of the leaf's. OLD: the older one at its place, or NULL. */
static bool check_leaf(tree *t, const cow_node *node, const cow_node *old, uint64_t *chunks)
{
    cli_check *check = t->check;
    bool good = true;

    for (unsigned p = 0; p < node->entries; p++) {
        uint64_t offset[COW_MAX_RANK], slot = node->entry[p], before = old == NULL ? COW_HOLE : old->entry[p];
        *chunks -= before != COW_HOLE;
        if (slot == COW_HOLE)
            continue;
        ++*chunks;
        cow_grid_tile_offset(&t->grid, p, offset);
        for (unsigned d = 0; d < t->grid.rank; d++)
            if (cow_times(node->origin[d] + offset[d], t->grid.chunk[d]) >= t->root->extent[d]) {
                cli_damaged(check, CLI_BAD_NODE, 0, node->offset,
                            "the index node at offset %llu names a chunk outside the dataset",
                            (unsigned long long)node->offset);
                return false;
            }
        if (slot == before)
            continue;
        if (cow_is_composed(slot)) {
            for (unsigned d = 0; d < t->grid.rank; d++)
                offset[d] += node->origin[d];
            check_composed(t, slot, offset, before);
        } else if (slot >= t->pool->slots) {
            cli_damaged(check, CLI_BAD_NODE, 0, node->offset,
                        "the index node at offset %llu names slot %llu of pool %llu, which has %llu slots",
                        (unsigned long long)node->offset, (unsigned long long)slot, (unsigned long long)t->pool->id,
                        (unsigned long long)t->pool->slots);
            good = false;
        } else {
            use_slot(check, t->pool, slot);
        }
    }
    return good;
}

static void check_node_view(tree *t, const cow_node *node)
{
    cow_mapping *mappings = cli_alloc(COW_TILE_CHUNKS, sizeof *mappings);
    uint64_t extent[COW_MAX_RANK];
    const expected_view e = {.rank = t->grid.rank,
                             .extent = extent,
                             .mapping = mappings,
                             .mappings = cow_view_plan(&t->grid, node, NULL, mappings),
                             .chunk = node->level == 0 ? t->grid.chunk : NULL,
                             .pool = t->pool->id,
                             .plan = NO_PLAN};

    cow_grid_box(&t->grid, node->level, node->origin, extent);
    check_view(t->check, node->offset, &e, t->pool->type);
    free(mappings);
}

/* A leaf that was met as a top node before, without a view, and has a parent as well. */
static void check_leaf_view(tree *t, uint64_t offset)
{
    cow_node *node = cli_alloc(1, sizeof *node);

    if (cow_node_read(t->check->log, &t->grid, offset, node) == 0)
        check_node_view(t, node);
    cow_error_clear();
    free(node);
}

/* The older node at the place of one of LEVEL at ORIGIN. NULL: there is none, or none that can be used. */
static cow_node *read_older(tree *t, older before, unsigned level, const uint64_t origin[])
{
    cow_node *node;

    if (before.node == COW_NO_NODE || before.level != level)
        return NULL;
    node = cli_alloc(1, sizeof *node);
    if (cow_node_read(t->check->log, &t->grid, before.node, node) == 0 && node->pool == t->root->pool &&
        node->level == level && same_place(&t->grid, node->origin, origin))
        return node;
    cow_error_clear(); /* which is of the older version */
    free(node);
    t->uncounted = true;
    return NULL;
}

/* What is below position P of a node of LEVEL in the older tree. */
static older older_child(const cow_node *old, older before, unsigned level, unsigned p)
{
    if (old != NULL)
        return (older){old->entry[p], level - 1};
    return p == 0 && before.node != COW_NO_NODE && before.level < level ? before : nothing; /* a tree that grew */
}

/* What is known of a node that was met before. */
static bool meet_again(tree *t, cli_seen_node *seen, uint64_t offset, unsigned level, const uint64_t origin[],
                       older before, bool viewed, uint64_t *chunks)
{
    if (seen->origin == NULL)
        return false;
    if (seen->pool != t->root->pool || seen->level != level || !same_place(&t->grid, seen->origin, origin)) {
        cli_damaged(t->check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu stands in two different places",
                    (unsigned long long)offset);
        return false;
    }
    if (seen->uncounted || seen->before != before.node)
        t->uncounted = true; /* nothing was known, or it was compared with another one then */
    if (viewed && !seen->viewed)
        check_leaf_view(t, offset);
    seen->viewed = seen->viewed || viewed;
    *chunks += seen->chunks;
    return true;
}

static bool check_node(tree *t, uint64_t offset, unsigned level, const uint64_t origin[], older before, bool viewed,
                       uint64_t *chunks);

static bool check_children(tree *t, const cow_node *node, const cow_node *old, older before, uint64_t *chunks)
{
    uint64_t span[COW_MAX_RANK];
    bool good = true;

    cow_grid_span(&t->grid, node->level - 1, span);
    for (unsigned p = 0; p < node->entries; p++) {
        const older below = older_child(old, before, node->level, p);
        uint64_t child[COW_MAX_RANK];

        if (node->entry[p] == COW_NO_NODE) {
            if (below.node != COW_NO_NODE)
                t->uncounted = true; /* a dataset that shrank */
            continue;
        }
        cow_grid_child_offset(&t->grid, node->level, p, child);
        for (unsigned d = 0; d < t->grid.rank; d++)
            child[d] = node->origin[d] + child[d] * span[d];
        if (!check_node(t, node->entry[p], node->level - 1, child, below, true, chunks))
            good = false;
    }
    return good;
}

/* A node and what is below it. *CHUNKS grows by the chunks that have a slot, less those that the older version BEFORE has there. VIEWED:
 * it needs a view. At most COW_MAX_LEVEL deep. */
static bool check_node(tree *t, uint64_t offset, unsigned level, const uint64_t origin[], older before, bool viewed,
                       uint64_t *chunks)
{
    cli_check *check = t->check;
    uint64_t *known = cow_map_at(&check->nodes, offset), own = 0;
    const bool uncounted = t->uncounted; /* elsewhere in this tree */
    cow_node *node = NULL, *old = NULL;
    char text[512];
    bool good = false;
    size_t place;

    if (offset == before.node && level == before.level) {
        if (viewed && offset == t->lone) /* its view is newer */
            check_leaf_view(t, offset);
        return true;
    }
    if (known != NULL)
        return meet_again(t, &check->node[*known], offset, level, origin, before, viewed, chunks);
    cli_check_beat(check);
    node = cli_alloc(1, sizeof *node);
    if (cow_node_read(check->log, &t->grid, offset, node) < 0) {
        cli_damaged(check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu is damaged: %s",
                    (unsigned long long)offset, cli_reason(text, sizeof text));
        remember(check, offset, t, NULL, before);
        goto done;
    }
    if (node->pool != t->root->pool || node->level != level || !same_place(&t->grid, node->origin, origin)) {
        cli_damaged(check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu belongs to another place",
                    (unsigned long long)offset);
        remember(check, offset, t, NULL, before);
        goto done;
    }
    place = remember(check, offset, t, node, before);
    t->uncounted = false;
    old = read_older(t, before, level, origin);
    good = level == 0 ? check_leaf(t, node, old, &own) : check_children(t, node, old, before, &own);
    if (good && viewed) {
        check_node_view(t, node);
        check->node[place].viewed = true;
    } else if (!good) {
        free(check->node[place].origin);
        check->node[place].origin = NULL;
    }
    check->node[place].chunks = own;
    check->node[place].uncounted = t->uncounted;
    t->uncounted = t->uncounted || uncounted;
    *chunks += own;
done:
    free(old);
    free(node);
    return good;
}

/* ---- roots ---- */

static const char *implausible(cli_check *check, const cow_root *root)
{
    const cli_dataset_row *dataset = cli_check_dataset(check, root->dataset);

    if (dataset == NULL)
        return "it belongs to a dataset that the table does not know";
    if (root->pool != dataset->pool || root->pool >= check->pool_count)
        return "it names another pool than its dataset";
    const cli_pool *pool = &check->pools[root->pool];
    if (pool->rank == 0)
        return "its pool is damaged";
    if (root->rank != pool->rank || root->level > COW_MAX_LEVEL)
        return "its shape is not that of its pool";
    for (unsigned d = 0; d < root->rank; d++) {
        if (root->chunk[d] != pool->chunk[d])
            return "its chunks are not those of its pool";
        if (root->extent[d] > root->maximum[d])
            return "its extent is larger than its maximum";
    }
    return NULL;
}

/* The top of the tree of an older root record BASE, of the same dataset, as seen from the top of this one; *CHUNKS: what it counts. */
static older older_top(tree *t, uint64_t base, uint64_t *chunks)
{
    const uint64_t origin[COW_MAX_RANK] = {0};
    const cow_root *root = t->root;
    cow_root old;
    bool same = base != COW_NO_NODE && cow_root_read(t->check->log, base, &old) == 0 && old.dataset == root->dataset &&
                old.pool == root->pool && old.rank == root->rank && old.level <= COW_MAX_LEVEL;

    cow_error_clear(); /* which is of the older version */
    for (unsigned d = 0; same && d < root->rank; d++)
        same = old.chunk[d] == root->chunk[d] && old.maximum[d] == root->maximum[d];
    if (!same)
        return nothing;
    *chunks = old.chunks;
    t->lone = old.level == 0 ? old.top : COW_NO_NODE;
    older before = {old.top, old.level};
    while (before.node != COW_NO_NODE && before.level > root->level) { /* a dataset that shrank */
        cow_node *node = read_older(t, before, before.level, origin);

        t->uncounted = true;
        before = node == NULL ? nothing : (older){node->entry[0], before.level - 1};
        free(node);
    }
    return before;
}

/* What the view of the root should be. LONE: its top node is a leaf without a view, whose chunks it shows. MAPPINGS: as many as a tile
 * has chunks. False: the leaf cannot be read, which is told elsewhere. */
static bool expect_root(const tree *t, bool lone, cow_mapping mappings[], expected_view *e)
{
    cow_node *leaf = lone ? cli_alloc(1, sizeof *leaf) : NULL;
    const uint64_t origin[COW_MAX_RANK] = {0};
    uint64_t box[COW_MAX_RANK];
    bool good = leaf == NULL || cow_node_read(t->check->log, &t->grid, t->root->top, leaf) == 0;

    *e = (expected_view){.rank = t->root->rank,
                         .extent = t->root->extent,
                         .mapping = mappings,
                         .chunk = lone ? t->grid.chunk : NULL,
                         .root = true,
                         .pool = t->pool->id,
                         .plan = NO_PLAN};
    if (good) {
        e->mappings = cow_view_plan_root(&t->grid, t->root, leaf, mappings);
        cow_grid_box(&t->grid, t->root->level, origin, box);
        for (unsigned d = 0; d < t->root->rank; d++)
            e->part = e->part || t->root->extent[d] < box[d];
    }
    cow_error_clear();
    free(leaf);
    return good;
}

static void check_root_view(tree *t, uint64_t offset, bool lone)
{
    cow_mapping *mappings = cli_alloc(COW_TILE_CHUNKS, sizeof *mappings);
    expected_view e;

    if (expect_root(t, lone, mappings, &e)) {
        check_view(t->check, offset, &e, t->pool->type);
        t->check->lone_leaves = t->check->lone_leaves || lone;
    }
    free(mappings);
}

void cli_check_marked(cli_check *check, hid_t object, uint64_t address, uint64_t offset, const char *path)
{
    char view[COW_PATH_MAX];
    cow_root root;

    cow_layout_view_path(view, check->parts, offset);
    if (cli_check_address(check, view) == address || check->quiet)
        return;
    if (cow_root_read(check->log, offset, &root) == 0 && implausible(check, &root) == NULL) {
        tree t = {.check = check, .root = &root, .pool = &check->pools[root.pool], .lone = COW_NO_NODE};
        cow_mapping *mappings = cli_alloc(COW_TILE_CHUNKS, sizeof *mappings);
        bool lone = root.top != COW_NO_NODE && root.level == 0 && !shows_node(check, object, root.top);
        const char *bad = NULL;
        expected_view e;

        cli_grid(&root, &t.grid);
        if (expect_root(&t, lone, mappings, &e) && (bad = look_at_view(check, object, &e, t.pool->type)) != NULL)
            cli_damaged(check, CLI_BAD_VIEW, 0, offset, "the dataset '%s' does not show what the index says: %s", path,
                        bad);
        free(mappings);
    }
    cow_error_clear();
}

bool cli_check_root(cli_check *check, uint64_t offset, uint64_t base)
{
    uint64_t *known = cow_map_at(&check->roots, offset), chunks = 0;
    const uint64_t origin[COW_MAX_RANK] = {0};
    char text[512];
    const char *bad;
    cow_root root;

    if (known != NULL)
        return *known == 1;
    cli_map_put(&check->roots, offset, 2);
    if (cow_root_read(check->log, offset, &root) < 0) {
        cli_damaged(check, CLI_BAD_ROOT, 0, offset, "the root record at offset %llu is damaged: %s",
                    (unsigned long long)offset, cli_reason(text, sizeof text));
        return false;
    }
    if ((bad = implausible(check, &root)) != NULL) {
        cli_damaged(check, CLI_BAD_ROOT, 0, offset, "the root record at offset %llu is wrong: %s",
                    (unsigned long long)offset, bad);
        return false;
    }
    cli_map_put(&check->roots, offset, 1); /* whatever is found below, the rest of the tree can be used */
    if (base == offset || check->quiet)
        return true;
    tree t = {.check = check, .root = &root, .pool = &check->pools[root.pool], .lone = COW_NO_NODE};
    cli_grid(&root, &t.grid);
    const bool lone = shows_leaf(check, offset, &root);
    older before = older_top(&t, base, &chunks);
    if (root.top == COW_NO_NODE)
        chunks = 0;
    else if (!check_node(&t, root.top, root.level, origin, before, !lone, &chunks))
        return true;
    if (chunks != root.chunks && !t.uncounted)
        cli_damaged(check, CLI_BAD_ROOT, 0, offset,
                    "the root record at offset %llu counts %llu chunks, its tree has %llu", (unsigned long long)offset,
                    (unsigned long long)root.chunks, (unsigned long long)chunks);
    check_root_view(&t, offset, lone);
    return true;
}
