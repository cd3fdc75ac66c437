/* Root records, nodes and views. See check.h. Nodes are shared between versions; each is checked once. */
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
    uint64_t pool;
    hid_t plan[2]; /* of a composed chunk: its mappings, in either of two ways; else H5I_INVALID_HID */
} expected_view;
#define NO_PLAN                                                                                                        \
    {                                                                                                                  \
        H5I_INVALID_HID, H5I_INVALID_HID                                                                               \
    }

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

static const char wrong_count[] = "it has the wrong number of mappings";
static const char wrong_source[] = "one of its mappings names the wrong source";
static const char wrong_elements[] = "one of its mappings shows the wrong elements";

/* The source of mapping I, which must be in the same file. */
static bool source_of(hid_t dcpl, size_t i, char name[COW_PATH_MAX])
{
    char file[8] = "";

    name[0] = '\0';
    return H5Pget_virtual_filename(dcpl, i, file, sizeof file) >= 0 &&
           H5Pget_virtual_dsetname(dcpl, i, name, COW_PATH_MAX) >= 0 && strcmp(file, ".") == 0;
}

/* What is wrong with the mappings of DCPL, or NULL. */
static const char *look_at_mappings(hid_t dcpl, size_t mappings, const expected_view *e)
{
    if (mappings != e->mappings)
        return wrong_count;
    for (size_t i = 0; i < mappings; i++) {
        char name[COW_PATH_MAX], source[COW_PATH_MAX];
        const cow_mapping *m = planned(e, dcpl, i);

        if (m == NULL)
            return "one of its mappings is at the wrong place";
        if (e->chunk != NULL && m->source == 0)
            snprintf(source, sizeof source, COW_PATH_RAW "/%llu", (unsigned long long)e->pool);
        else
            cow_view_path(source, m->source);
        if (!source_of(dcpl, i, name) || strcmp(name, source) != 0)
            return wrong_source;
        if (!is_box(H5Pget_virtual_vspace(dcpl, i), e->rank, m->start, m->count) ||
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
        char name[COW_PATH_MAX], source[COW_PATH_MAX];
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
static const char *look_at_view(hid_t view, const expected_view *e, hid_t type)
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
        bad = look_at_mappings(dcpl, mappings, e);
    cow_close(own, dcpl, space);
    return bad;
}

/* Does the view of the record at OFFSET show that of NODE, and nothing else? */
static bool shows_node(const cli_check *check, uint64_t offset, uint64_t node)
{
    char path[COW_PATH_MAX], name[COW_PATH_MAX];
    hid_t view, dcpl = H5I_INVALID_HID;
    size_t mappings = 0;
    bool shows;

    cow_view_path(path, offset);
    if ((view = H5Dopen2(check->file->id, path, H5P_DEFAULT)) >= 0)
        dcpl = H5Dget_create_plist(view);
    cow_view_path(path, node);
    shows = dcpl >= 0 && H5Pget_layout(dcpl) == H5D_VIRTUAL && H5Pget_virtual_count(dcpl, &mappings) >= 0 &&
            mappings == 1 && source_of(dcpl, 0, name) && strcmp(name, path) == 0;
    cow_close(dcpl, view);
    H5Eclear2(H5E_DEFAULT);
    return shows;
}

static void check_view(cli_check *check, uint64_t node, const expected_view *e, hid_t type)
{
    char path[COW_PATH_MAX], text[512];
    const char *bad;

    cow_view_path(path, node);
    hid_t view = H5Dopen2(check->file->id, path, H5P_DEFAULT);
    check->views++;
    if (view < 0) {
        cli_damaged(check, CLI_BAD_VIEW, 0, node, "the view %s cannot be opened: %s", path,
                    cli_reason(text, sizeof text));
        return;
    }
    if ((bad = look_at_view(view, e, type)) != NULL)
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
} tree;

static size_t remember(cli_check *check, uint64_t offset, const tree *t, const cow_node *node)
{
    CLI_RESERVE(check->node, check->node_room, check->node_count, 1);
    cli_seen_node *seen = &check->node[check->node_count];
    *seen = (cli_seen_node){.pool = t->root->pool};
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
    if (slot < pool->room)
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

/* A composed chunk, which many leaves may name: its record, its slots and its view. */
static void check_composed(tree *t, uint64_t entry, const uint64_t chunk[])
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
    if (composed.base != COW_HOLE)
        use_slot(check, t->pool, composed.base);
    for (unsigned i = 0; i < cut.count; i++)
        if (composed.own >> i & 1)
            use_slot(check, &check->pools[composed.piece_pool], composed.slot[i]);
    check_composed_view(t, &composed, &cut);
}

/* Slots of a leaf: in the pool, inside the extent. What is wrong with a composed chunk, whose record has a checksum of its own, is no
 * fault of the leaf's. */
static bool check_leaf(tree *t, const cow_node *node, uint64_t *chunks)
{
    cli_check *check = t->check;
    bool good = true;

    for (unsigned p = 0; p < node->entries; p++) {
        uint64_t offset[COW_MAX_RANK], slot = node->entry[p];
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
        if (cow_is_composed(slot)) {
            for (unsigned d = 0; d < t->grid.rank; d++)
                offset[d] += node->origin[d];
            check_composed(t, slot, offset);
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
                             .mappings = cow_view_plan(&t->grid, node, mappings),
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

/* A node and what is below it. *CHUNKS grows by the chunks that have a slot. VIEWED: it needs a view. At most COW_MAX_LEVEL deep. */
static bool check_node(tree *t, uint64_t offset, unsigned level, const uint64_t origin[], bool viewed, uint64_t *chunks)
{
    cli_check *check = t->check;
    uint64_t *known = cow_map_at(&check->nodes, offset), own = 0;
    cow_node *node = NULL;
    char text[512];
    bool good = false;
    size_t place;

    if (known != NULL) {
        cli_seen_node *seen = &check->node[*known];
        if (seen->origin == NULL)
            return false;
        if (seen->pool != t->root->pool || seen->level != level || !same_place(&t->grid, seen->origin, origin)) {
            cli_damaged(check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu stands in two different places",
                        (unsigned long long)offset);
            return false;
        }
        if (viewed && !seen->viewed)
            check_leaf_view(t, offset);
        seen->viewed = seen->viewed || viewed;
        *chunks += seen->chunks;
        return true;
    }
    cli_check_beat(check);
    node = cli_alloc(1, sizeof *node);
    if (cow_node_read(check->log, &t->grid, offset, node) < 0) {
        cli_damaged(check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu is damaged: %s",
                    (unsigned long long)offset, cli_reason(text, sizeof text));
        remember(check, offset, t, NULL);
        goto done;
    }
    if (node->pool != t->root->pool || node->level != level || !same_place(&t->grid, node->origin, origin)) {
        cli_damaged(check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu belongs to another place",
                    (unsigned long long)offset);
        remember(check, offset, t, NULL);
        goto done;
    }
    place = remember(check, offset, t, node);
    good = true;
    if (level == 0) {
        good = check_leaf(t, node, &own);
    } else {
        uint64_t span[COW_MAX_RANK];
        cow_grid_span(&t->grid, level - 1, span);
        for (unsigned p = 0; p < node->entries; p++) {
            uint64_t child[COW_MAX_RANK];
            if (node->entry[p] == COW_NO_NODE)
                continue;
            cow_grid_child_offset(&t->grid, level, p, child);
            for (unsigned d = 0; d < t->grid.rank; d++)
                child[d] = origin[d] + child[d] * span[d];
            if (!check_node(t, node->entry[p], level - 1, child, true, &own))
                good = false;
        }
    }
    if (good && viewed) {
        check_node_view(t, node);
        check->node[place].viewed = true;
    } else if (!good) {
        free(check->node[place].origin);
        check->node[place].origin = NULL;
    }
    check->node[place].chunks = own;
    *chunks += own;
done:
    free(node);
    return good;
}

/* ---- roots ---- */

static const char *implausible(const cli_check *check, const cow_root *root)
{
    if (root->dataset >= check->dataset_count)
        return "it belongs to a dataset that the table does not know";
    if (root->pool != check->datasets[root->dataset].pool || root->pool >= check->pool_count)
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

/* LONE: its top node is a leaf without a view, whose chunks it shows. */
static void check_root_view(tree *t, uint64_t offset, bool lone)
{
    cow_mapping *mappings = cli_alloc(COW_TILE_CHUNKS, sizeof *mappings);
    cow_node *leaf = lone ? cli_alloc(1, sizeof *leaf) : NULL;
    const uint64_t origin[COW_MAX_RANK] = {0};
    uint64_t box[COW_MAX_RANK];
    expected_view e = {.rank = t->root->rank,
                       .extent = t->root->extent,
                       .mapping = mappings,
                       .chunk = lone ? t->grid.chunk : NULL,
                       .pool = t->pool->id,
                       .plan = NO_PLAN};

    if (leaf == NULL || cow_node_read(t->check->log, &t->grid, t->root->top, leaf) == 0) {
        e.mappings = cow_view_plan_root(&t->grid, t->root, leaf, mappings);
        cow_grid_box(&t->grid, t->root->level, origin, box);
        for (unsigned d = 0; d < t->root->rank; d++)
            e.part = e.part || t->root->extent[d] < box[d];
        check_view(t->check, offset, &e, t->pool->type);
        t->check->lone_leaves = t->check->lone_leaves || lone;
    }
    cow_error_clear();
    free(leaf);
    free(mappings);
}

bool cli_check_root(cli_check *check, uint64_t offset)
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
    tree t = {.check = check, .root = &root, .pool = &check->pools[root.pool]};
    cli_grid(&root, &t.grid);
    const bool lone = root.top != COW_NO_NODE && root.level == 0 && !shows_node(check, offset, root.top);
    if (root.top != COW_NO_NODE && !check_node(&t, root.top, root.level, origin, !lone, &chunks))
        return true;
    if (chunks != root.chunks)
        cli_damaged(check, CLI_BAD_ROOT, 0, offset,
                    "the root record at offset %llu counts %llu chunks, its tree has %llu", (unsigned long long)offset,
                    (unsigned long long)root.chunks, (unsigned long long)chunks);
    check_root_view(&t, offset, lone);
    return true;
}
