/* Root records, nodes and views. See check.h. Nodes are shared between versions; each is checked once. */
#include "check.h"

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
    bool leaf;
    bool
        part; /* the root's mapping shows a part of its source; else it is all of it, whose extent is checked as well */
    uint64_t pool;
} expected_view;

/* The same for the source of a mapping: all of a node's view may be said without its extent. */
static bool is_source(hid_t space, const expected_view *e, const cow_mapping *m)
{
    if (!e->leaf && !e->part && space >= 0 && H5Sget_select_type(space) == H5S_SEL_ALL) {
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
    if (bad == NULL && mappings != e->mappings)
        bad = "it has the wrong number of mappings";
    for (size_t i = 0; bad == NULL && i < mappings; i++) {
        char name[COW_PATH_MAX] = "", file[8] = "", source[COW_PATH_MAX];
        const cow_mapping *m = planned(e, dcpl, i);

        if (m == NULL) {
            bad = "one of its mappings is at the wrong place";
            break;
        }
        if (e->leaf)
            snprintf(source, sizeof source, COW_PATH_RAW "/%llu", (unsigned long long)e->pool);
        else
            cow_view_path(source, m->source);
        if (H5Pget_virtual_filename(dcpl, i, file, sizeof file) < 0 ||
            H5Pget_virtual_dsetname(dcpl, i, name, sizeof name) < 0 || strcmp(file, ".") != 0 ||
            strcmp(name, source) != 0)
            bad = "one of its mappings names the wrong source";
        else if (!is_box(H5Pget_virtual_vspace(dcpl, i), e->rank, m->start, m->count) ||
                 !is_source(H5Pget_virtual_srcspace(dcpl, i), e, m))
            bad = "one of its mappings shows the wrong elements";
    }
    cow_close(own, dcpl, space);
    return bad;
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

/* Slots of a leaf: in the pool, inside the extent. */
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
        if (slot >= t->pool->slots) {
            cli_damaged(check, CLI_BAD_NODE, 0, node->offset,
                        "the index node at offset %llu names slot %llu of pool %llu, which has %llu slots",
                        (unsigned long long)node->offset, (unsigned long long)slot, (unsigned long long)t->pool->id,
                        (unsigned long long)t->pool->slots);
            good = false;
        } else if (slot < t->pool->room) {
            check->used[t->pool->id][slot] = true;
        }
    }
    return good;
}

/* A node and what is below it. *CHUNKS grows by the chunks that have a slot. At most COW_MAX_LEVEL deep. */
static bool check_node(tree *t, uint64_t offset, unsigned level, const uint64_t origin[], uint64_t *chunks)
{
    cli_check *check = t->check;
    uint64_t *known = cow_map_at(&check->nodes, offset), own = 0;
    cow_mapping *mappings = NULL;
    cow_node *node = NULL;
    char text[512];
    bool good = false;
    size_t place;

    if (known != NULL) {
        const cli_seen_node *seen = &check->node[*known];
        if (seen->origin == NULL)
            return false;
        if (seen->pool != t->root->pool || seen->level != level || !same_place(&t->grid, seen->origin, origin)) {
            cli_damaged(check, CLI_BAD_NODE, 0, offset, "the index node at offset %llu stands in two different places",
                        (unsigned long long)offset);
            return false;
        }
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
            if (!check_node(t, node->entry[p], level - 1, child, &own))
                good = false;
        }
    }
    if (good) {
        uint64_t extent[COW_MAX_RANK];
        expected_view e = {.rank = t->grid.rank, .extent = extent, .leaf = level == 0, .pool = t->pool->id};
        mappings = cli_alloc(COW_TILE_CHUNKS, sizeof *mappings);
        e.mapping = mappings;
        e.mappings = cow_view_plan(&t->grid, node, mappings);
        cow_grid_box(&t->grid, level, origin, extent);
        check_view(check, offset, &e, t->pool->type);
    } else {
        free(check->node[place].origin);
        check->node[place].origin = NULL;
    }
    check->node[place].chunks = own;
    *chunks += own;
done:
    free(mappings);
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

bool cli_check_root(cli_check *check, uint64_t offset)
{
    uint64_t *known = cow_map_at(&check->roots, offset), chunks = 0, elements;
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
    elements = t.pool->element_size;
    for (unsigned d = 0; d < root.rank; d++)
        elements = cow_times(elements, root.extent[d]);
    if (root.top != COW_NO_NODE && !check_node(&t, root.top, root.level, origin, &chunks))
        return true;
    if (chunks != root.chunks)
        cli_damaged(check, CLI_BAD_ROOT, 0, offset,
                    "the root record at offset %llu counts %llu chunks, its tree has %llu", (unsigned long long)offset,
                    (unsigned long long)root.chunks, (unsigned long long)chunks);
    uint64_t box[COW_MAX_RANK];
    cow_mapping mapping = {.source = root.top};
    expected_view e = {.rank = root.rank, .extent = root.extent, .mapping = &mapping};
    if (root.top != COW_NO_NODE && elements > 0) {
        e.mappings = 1;
        cow_grid_box(&t.grid, root.level, origin, box);
        for (unsigned d = 0; d < root.rank; d++) {
            mapping.count[d] = mapping.source_count[d] = root.extent[d] < box[d] ? root.extent[d] : box[d];
            e.part = e.part || root.extent[d] < box[d];
        }
    }
    check_view(check, offset, &e, t.pool->type);
    return true;
}
