/* Virtual datasets for HDF5 without the connector. See view.h: cow_view_plan says which box shows which, the rest makes
 * the datasets.
 *
 * A mapping moves elements in row-major order on both sides. Slots are stacked along dimension 0 of raw_data, so chunks
 * that are neighbours along dimension d merge into one mapping when every chunk dimension before d is 1 (always true
 * for d = 0): only then do both boxes have their elements in the same order.
 */
#include "view/view.h"

#include "base/error.h"
#include "base/ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ELEMENTS ((uint64_t)INT64_MAX)

/* The chunk at OFFSET of the tile, as far as it is inside EXTENT (NULL: all of it). False: it is outside. */
static bool plan_chunk(const cow_grid *grid, const uint64_t offset[], const uint64_t extent[], cow_mapping *m)
{
    memset(m, 0, sizeof *m);
    for (unsigned d = 0; d < grid->rank; d++) {
        m->start[d] = offset[d] * grid->chunk[d];
        m->count[d] = grid->chunk[d];
        if (extent != NULL && m->start[d] >= extent[d])
            return false;
        if (extent != NULL && m->count[d] > extent[d] - m->start[d])
            m->count[d] = extent[d] - m->start[d];
        m->source_count[d] = m->count[d];
    }
    return true;
}

static unsigned plan_leaf(const cow_grid *grid, const cow_node *node, const uint64_t extent[], cow_mapping mappings[])
{
    uint64_t last[COW_MAX_RANK] = {0};
    unsigned n = 0;

    for (unsigned p = 0; p < node->entries; p++) {
        uint64_t offset[COW_MAX_RANK], slot = node->entry[p];
        cow_mapping chunk;
        bool merged = false;

        if (slot == COW_HOLE)
            continue;
        cow_grid_tile_offset(grid, p, offset);
        if (!plan_chunk(grid, offset, extent, &chunk))
            continue;
        if (cow_is_composed(slot)) {
            chunk.source = cow_composed_offset(slot);
            mappings[n++] = chunk;
            continue;
        }
        if (n > 0 && p > 0 && node->entry[p - 1] != COW_HOLE && slot == node->entry[p - 1] + 1) {
            unsigned d = 0, others = 0;
            while (d < grid->rank && offset[d] == last[d])
                d++;
            for (unsigned e = d + 1; e < grid->rank; e++)
                others += offset[e] != last[e];
            merged = d < grid->rank && others == 0 && offset[d] == last[d] + 1;
            for (unsigned e = 0; merged && e < d; e++)
                merged = grid->chunk[e] == 1;
            /* the extent cuts it: behind whole chunks it is no box in raw_data, but along the dimension they are stacked in */
            merged = merged && (d == 0 || chunk.count[d] == grid->chunk[d]);
            if (merged) {
                mappings[n - 1].count[d] += chunk.count[d];
                mappings[n - 1].source_count[0] += chunk.count[0];
            }
        }
        if (!merged) {
            chunk.source_start[0] = slot * grid->chunk[0];
            mappings[n++] = chunk;
        }
        memcpy(last, offset, sizeof last);
    }
    return n;
}

bool cow_view_too_large(const cow_mapping *m, unsigned rank)
{
    uint64_t elements = 1;

    for (unsigned d = 0; d < rank; d++)
        elements = cow_times(elements, m->count[d]);
    return elements > MOST_ELEMENTS;
}

/* The child has nothing beyond EXTENT, and is made anew when it has. */
static void cut_at(cow_mapping *m, const cow_grid *grid, const uint64_t origin[], const uint64_t extent[])
{
    for (unsigned d = 0; d < grid->rank; d++) {
        const uint64_t begin = cow_times(origin[d], grid->chunk[d]), rest = extent[d] > begin ? extent[d] - begin : 1;

        if (m->count[d] > rest) {
            m->count[d] = m->source_count[d] = rest;
            m->cut = true;
        }
    }
}

static unsigned plan_inner(const cow_grid *grid, const cow_node *node, const uint64_t limit[], cow_mapping mappings[])
{
    uint64_t span[COW_MAX_RANK], child[COW_MAX_RANK], origin[COW_MAX_RANK];
    unsigned n = 0;

    cow_grid_span(grid, node->level - 1, span);
    for (unsigned p = 0; p < node->entries; p++) {
        cow_mapping *m = &mappings[n];
        hsize_t extent[COW_MAX_RANK];

        if (node->entry[p] == COW_NO_NODE)
            continue;
        n++;
        memset(m, 0, sizeof *m);
        cow_grid_child_offset(grid, node->level, p, child);
        for (unsigned d = 0; d < grid->rank; d++)
            origin[d] = node->origin[d] + child[d] * span[d];
        cow_grid_box(grid, node->level - 1, origin, extent);
        for (unsigned d = 0; d < grid->rank; d++) {
            m->start[d] = child[d] * span[d] * grid->chunk[d];
            m->count[d] = m->source_count[d] = extent[d];
        }
        m->source = node->entry[p];
        if (limit != NULL && cow_view_too_large(m, grid->rank))
            cut_at(m, grid, origin, limit);
    }
    return n;
}

unsigned cow_view_plan(const cow_grid *grid, const cow_node *node, const uint64_t extent[], cow_mapping mappings[])
{
    return node->level == 0 ? plan_leaf(grid, node, NULL, mappings) : plan_inner(grid, node, extent, mappings);
}

unsigned cow_view_plan_root(const cow_grid *grid, const cow_root *root, const cow_node *leaf, cow_mapping mappings[])
{
    uint64_t box[COW_MAX_RANK];
    const uint64_t origin[COW_MAX_RANK] = {0};

    if (root->top == COW_NO_NODE)
        return 0;
    for (unsigned d = 0; d < root->rank; d++)
        if (root->extent[d] == 0)
            return 0;
    if (root->level == 0 && leaf != NULL)
        return plan_leaf(grid, leaf, root->extent, mappings);
    cow_grid_box(grid, root->level, origin, box);
    memset(mappings, 0, sizeof *mappings);
    for (unsigned d = 0; d < root->rank; d++)
        mappings->count[d] = mappings->source_count[d] = root->extent[d] < box[d] ? root->extent[d] : box[d];
    mappings->source = root->top;
    return 1;
}

/* Is it all of a source of EXTENT? That takes 16 bytes to store instead of 17 + 32 for each dimension. It must not be
 * said of raw data, which grows. */
static bool whole(const cow_mapping *m, unsigned rank, const hsize_t extent[])
{
    for (unsigned d = 0; d < rank; d++)
        if (m->source_start[d] != 0 || m->source_count[d] != extent[d])
            return false;
    return true;
}

/* Where mappings go: into bytes, or into a property list, for which boxes of VIEW, a space that is reused, are selected. */
typedef struct sink {
    cow_virtual *virtual; /* NULL: DCPL */
    hid_t dcpl, view;
} sink;

static int select_boxes(hid_t space, const cow_box_list *boxes)
{
    hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK];

    for (size_t i = 0; i < boxes->count; i++) {
        for (unsigned d = 0; d < boxes->rank; d++) {
            start[d] = boxes->start[i * boxes->rank + d];
            count[d] = boxes->size[i * boxes->rank + d];
        }
        if (H5Sselect_hyperslab(space, i == 0 ? H5S_SELECT_SET : H5S_SELECT_OR, start, NULL, count, NULL) < 0)
            return -1;
    }
    return 0;
}

/* Add one mapping: boxes of the view <- boxes FROM (NULL: all) of a source of EXTENT. */
static int map_boxes(const sink *to, const cow_box_list *shown, const char *source, const cow_box_list *from,
                     const hsize_t extent[])
{
    hid_t space;
    int status = -1;

    if (to->virtual != NULL)
        return cow_virtual_map(to->virtual, shown, source, from);
    space = H5Screate_simple((int)shown->rank, extent, NULL);
    if (space < 0 || select_boxes(to->view, shown) < 0 || (from != NULL && select_boxes(space, from) < 0) ||
        H5Pset_virtual(to->dcpl, to->view, ".", source, space) < 0)
        cow_error_native("cannot map a view onto %s", source);
    else
        status = 0;
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* The same of one box. GROWS: the source has a larger extent, or may get one. */
static int add_mapping(const sink *to, unsigned rank, const cow_mapping *m, const char *source, const hsize_t extent[],
                       bool grows)
{
    cow_mapping box = *m;
    const cow_box_list shown = {.rank = rank, .count = 1, .start = box.start, .size = box.count},
                       from = {.rank = rank, .count = 1, .start = box.source_start, .size = box.source_count};

    return map_boxes(to, &shown, source, !grows && whole(m, rank, extent) ? NULL : &from, extent);
}

/* The path of the view at OFFSET is CONTEXT's from here on, and decides what others call it. */
static int enter(cow_view_context *context, uint64_t offset)
{
    return context->folder->place(context->file, offset, context->path);
}

/* By HDF5. */
static int make_view(const cow_view_context *context, uint64_t offset, hid_t space, hid_t dcpl)
{
    void *dataset;
    cow_loc group;

    if (H5Sselect_all(space) < 0)
        return cow_error_native("cannot make the view %s", context->path);
    if (context->folder->open(context->file, offset, &group) < 0 ||
        (dataset = cow_native_dataset_create(group, strrchr(context->path, '/') + 1, context->type, space, dcpl)) ==
            NULL)
        return -1;
    return cow_native_dataset_close(dataset);
}

/* The view at OFFSET that is described, as bytes. 1; 0: HDF5 is to make it; -1. */
static int put_view(cow_view_context *context, uint64_t offset, const hsize_t extent[], const hsize_t maximum[],
                    hid_t settings)
{
    const int status =
        cow_virtual_put(context->virtual, context->grid->rank, extent, maximum, settings, &context->made);

    if (status <= 0)
        return status;
    return context->folder->wait(context->file, offset, context->made) < 0 ? -1 : 1;
}

/* All N mappings of a view of EXTENT. A leaf's lead to raw data and to composed chunks; others to nodes, of which LIMIT is the extent
 * (NULL: they are shown as a whole). MARK: the root that the view tells to be its own, 0: none. */
static int add_mappings(const cow_view_context *context, const sink *to, bool leaf, const cow_mapping mappings[],
                        unsigned n, const hsize_t limit[], uint64_t mark)
{
    const cow_grid *grid = context->grid;

    for (unsigned i = 0; i < n; i++) {
        const cow_mapping *m = &mappings[i];
        const bool raw = leaf && m->source == 0;
        char source[COW_PATH_MAX], marked[COW_MARKED_MAX];
        hsize_t extent[COW_MAX_RANK];

        for (unsigned d = 0; d < grid->rank; d++)
            extent[d] = leaf ? grid->chunk[d] : limit != NULL ? limit[d] : m->source_count[d];
        if (raw) {
            snprintf(source, sizeof source, "%s", context->source);
            extent[0] = context->source_rows;
        } else {
            cow_layout_view_path(source, *context->parts, m->source);
        }
        if (mark != 0 && i == 0)
            cow_layout_mark(marked, source, mark);
        if (add_mapping(to, grid->rank, m, mark != 0 && i == 0 ? marked : source, extent, raw || m->cut) < 0)
            return -1;
    }
    return 0;
}

static hsize_t most(uint64_t maximum)
{
    return maximum == COW_UNLIMITED ? H5S_UNLIMITED : maximum;
}

/* Make the view at OFFSET, of EXTENT, with these mappings: see add_mappings. MAXIMUM and PROPERTIES are those of the dataset, where the view can
 * be its snapshot; else MAXIMUM is NULL, and it has neither. */
static int show(cow_view_context *context, uint64_t offset, const hsize_t extent[], const hsize_t maximum[],
                hid_t properties, bool leaf, const cow_mapping mappings[], unsigned n, const hsize_t limit[])
{
    const unsigned rank = context->grid->rank;
    const hid_t told = maximum == NULL ? context->fill_dcpl : properties;
    const uint64_t mark = maximum == NULL ? 0 : offset;
    uint64_t bytes = H5Tget_size(context->type);
    hid_t space, dcpl;
    int status = -1;

    context->made = 0;
    if (enter(context, offset) < 0)
        return -1;
    if (context->virtual != NULL && n > 0) {
        cow_virtual_begin(context->virtual);
        if (add_mappings(context, &(sink){.virtual = context->virtual}, leaf, mappings, n, limit, mark) < 0 ||
            (status = put_view(context, offset, extent, maximum, told)) != 0)
            return status > 0 ? 0 : -1;
        status = -1;
    }
    space = H5Screate_simple((int)rank, extent, maximum);
    dcpl = H5Pcopy(told);
    for (unsigned d = 0; d < rank; d++)
        bytes = cow_times(bytes, extent[d]);
    if (space < 0 || dcpl < 0 ||
        /* nothing is stored: an unallocated contiguous dataset reads as fill value, but has a largest size */
        (n == 0 && bytes > UINT64_MAX / 2 && H5Pset_layout(dcpl, H5D_VIRTUAL) < 0))
        cow_error_native("cannot describe a view");
    else if (add_mappings(context, &(sink){NULL, dcpl, space}, leaf, mappings, n, limit, mark) == 0)
        status = make_view(context, offset, space, dcpl);
    cow_close(dcpl, space);
    return status;
}

/* Room for the plan of a view. */
static cow_mapping *new_plan(void)
{
    cow_mapping *mappings = malloc(COW_TILE_CHUNKS * sizeof *mappings);

    if (mappings == NULL)
        cow_error(COW_MEMORY, "no memory for the plan of a view");
    return mappings;
}

int cow_view_node(cow_view_context *context, const cow_node *node)
{
    cow_mapping *mappings = new_plan();
    hsize_t extent[COW_MAX_RANK];
    int status;

    if (mappings == NULL)
        return -1;
    cow_grid_box(context->grid, node->level, node->origin, extent);
    status = show(context, node->offset, extent, NULL, H5I_INVALID_HID, node->level == 0, mappings,
                  cow_view_plan(context->grid, node, context->extent, mappings), NULL);
    free(mappings);
    return status;
}

int cow_view_node_once(cow_view_context *context, cow_table *log, uint64_t node)
{
    cow_node *record;
    int status = context->folder->exists(context->file, node);

    if (status != 0)
        return status < 0 ? -1 : 0;
    if ((record = malloc(sizeof *record)) == NULL)
        return cow_error(COW_MEMORY, "no memory for an index node");
    status = cow_node_read(log, context->grid, node, record) < 0 || cow_view_node(context, record) < 0 ? -1 : 1;
    free(record);
    return status;
}

/* ---- composed chunks ---- */

/* Each piece joins the mapping whose last slot is the highest below its own: so there are as few mappings as can be. */
unsigned cow_view_plan_pieces(const cow_composed *composed, uint64_t group[COW_PIECES])
{
    uint64_t last[COW_PIECES];
    unsigned n = 0;

    for (unsigned i = 0; i < COW_PIECES; i++) {
        unsigned best = n;

        if (!(composed->own >> i & 1))
            continue;
        for (unsigned k = 0; k < n; k++)
            if (last[k] < composed->slot[i] && (best == n || last[k] > last[best]))
                best = k;
        if (best == n)
            group[n++] = 0;
        group[best] |= (uint64_t)1 << i;
        last[best] = composed->slot[i];
    }
    return n;
}

/* The pieces in WHICH, as they lie in the chunk: in VIEW, and in BASE from row FIRST on. Neighbours are one box. */
static int add_places(cow_box_list *view, cow_box_list *base, const cow_piecing *cut, const cow_grid *grid,
                      uint64_t which, uint64_t first)
{
    for (unsigned i = 0; i < cut->count; i++) {
        uint64_t start[COW_MAX_RANK], count[COW_MAX_RANK], next[COW_MAX_RANK], more[COW_MAX_RANK];

        if (!(which >> i & 1))
            continue;
        cow_piecing_box(cut, grid, i, start, count);
        while (i + 1 < cut->count && (which >> (i + 1) & 1) && (i + 1) % cut->along != 0) {
            cow_piecing_box(cut, grid, ++i, next, more);
            count[cut->cut] += more[cut->cut];
        }
        if (cow_box_list_add(view, start, count) < 0)
            return -1;
        start[0] += first;
        if (base != NULL && cow_box_list_add(base, start, count) < 0)
            return -1;
    }
    return 0;
}

static int add_slots(cow_box_list *pieces, const cow_piecing *cut, const cow_grid *grid, uint64_t which,
                     const uint64_t slot[])
{
    for (unsigned i = 0; i < cut->count; i++) {
        uint64_t start[COW_MAX_RANK], count[COW_MAX_RANK];

        if (!(which >> i & 1))
            continue;
        cow_piecing_box(cut, grid, i, start, count);
        memset(start, 0, cut->rank * sizeof *start);
        start[0] = slot[i] * cut->piece[0];
        if (cow_box_list_add(pieces, start, count) < 0)
            return -1;
    }
    return 0;
}

/* The boxes of one mapping. SLOT: those of pieces in the source; NULL: the source is the base, from row FIRST on. */
static int map_pieces(const sink *to, const cow_piecing *cut, const cow_grid *grid, uint64_t which,
                      const uint64_t slot[], uint64_t first, const char *source, const hsize_t extent[])
{
    cow_box_list places = {.rank = grid->rank}, sources = {.rank = grid->rank};
    int status = -1;

    if (add_places(&places, slot == NULL ? &sources : NULL, cut, grid, which, first) == 0 &&
        (slot == NULL || add_slots(&sources, cut, grid, which, slot) == 0))
        status = map_boxes(to, &places, source, &sources, extent);
    cow_box_list_free(&places);
    cow_box_list_free(&sources);
    return status;
}

/* HDF5 keeps a selection of several boxes in 32 bits a coordinate in the older formats of a file: where that is too little each
 * piece is a mapping of its own. */
static uint64_t part_of(uint64_t which, bool alone)
{
    return alone ? which & (~which + 1) : which;
}

static int map_composed(const sink *to, const cow_grid *grid, const cow_composed *composed, const cow_piecing *cut,
                        const cow_view_source *base, const cow_view_source *pieces, bool alone)
{
    uint64_t group[COW_PIECES], all = cut->count == COW_PIECES ? UINT64_MAX : ((uint64_t)1 << cut->count) - 1;
    unsigned groups = cow_view_plan_pieces(composed, group);
    hsize_t source[COW_MAX_RANK];

    for (unsigned d = 0; d < grid->rank; d++)
        source[d] = grid->chunk[d];
    source[0] = base->rows;
    for (uint64_t rest = composed->base == COW_HOLE ? 0 : all & ~composed->own, part; rest != 0; rest &= ~part) {
        part = part_of(rest, alone);
        if (map_pieces(to, cut, grid, part, NULL, composed->base * grid->chunk[0], base->name, source) < 0)
            return -1;
    }
    for (unsigned d = 0; d < grid->rank; d++)
        source[d] = cut->piece[d];
    source[0] = pieces->rows;
    for (unsigned k = 0; k < groups; k++)
        for (uint64_t rest = group[k], part; rest != 0; rest &= ~part) {
            part = part_of(rest, alone);
            if (map_pieces(to, cut, grid, part, composed->slot, 0, pieces->name, source) < 0)
                return -1;
        }
    return 0;
}

int cow_view_map_composed(hid_t dcpl, const cow_grid *grid, const cow_composed *composed, const cow_piecing *cut,
                          const cow_view_source *base, const cow_view_source *pieces, bool alone)
{
    hsize_t extent[COW_MAX_RANK];
    hid_t space;
    int status;

    for (unsigned d = 0; d < grid->rank; d++)
        extent[d] = grid->chunk[d];
    if ((space = H5Screate_simple((int)grid->rank, extent, NULL)) < 0)
        return cow_error_native("cannot describe a view");
    status = map_composed(&(sink){NULL, dcpl, space}, grid, composed, cut, base, pieces, alone);
    H5Sclose(space);
    return status;
}

int cow_view_composed(cow_view_context *context, const cow_composed *composed, const cow_piecing *cut,
                      const char *pieces, uint64_t piece_rows)
{
    const cow_grid *grid = context->grid;
    const cow_view_source from = {context->source, context->source_rows}, own = {pieces, piece_rows};
    bool alone = context->source_rows > UINT32_MAX || piece_rows > UINT32_MAX;
    hsize_t extent[COW_MAX_RANK];
    hid_t space = H5I_INVALID_HID, dcpl = H5I_INVALID_HID;
    int status = -1, exists;

    /* a commit that failed may have left it */
    if ((exists = context->folder->exists(context->file, composed->offset)) != 0)
        return exists < 0 ? -1 : 0;
    if (enter(context, composed->offset) < 0)
        return -1;
    for (unsigned d = 0; d < grid->rank; d++) {
        extent[d] = grid->chunk[d];
        alone = alone || extent[d] > UINT32_MAX;
    }
    if (context->virtual != NULL) {
        cow_virtual_begin(context->virtual);
        if (map_composed(&(sink){.virtual = context->virtual}, grid, composed, cut, &from, &own, alone) < 0 ||
            (status = put_view(context, composed->offset, extent, NULL, context->fill_dcpl)) != 0)
            return status > 0 ? 0 : -1;
        status = -1;
    }
    if ((space = H5Screate_simple((int)grid->rank, extent, NULL)) < 0 || (dcpl = H5Pcopy(context->fill_dcpl)) < 0)
        cow_error_native("cannot describe a view");
    else if (cow_view_map_composed(dcpl, grid, composed, cut, &from, &own, alone) == 0)
        status = make_view(context, composed->offset, space, dcpl);
    cow_close(dcpl, space);
    return status;
}

int cow_view_root(cow_view_context *context, uint64_t node, const cow_root *root, const cow_node *leaf, hid_t dcpl)
{
    cow_mapping *mappings = new_plan();
    hsize_t extent[COW_MAX_RANK], maximum[COW_MAX_RANK], box[COW_MAX_RANK];
    const uint64_t origin[COW_MAX_RANK] = {0};
    unsigned n;
    bool whole;
    int status;

    if (mappings == NULL)
        return -1;
    for (unsigned d = 0; d < root->rank; d++) {
        extent[d] = root->extent[d];
        maximum[d] = most(root->maximum[d]);
    }
    cow_grid_box(context->grid, root->level, origin, box);
    n = cow_view_plan_root(context->grid, root, leaf, mappings);
    whole = dcpl >= 0 && n > 0;
    status = show(context, node, extent, whole ? maximum : NULL, dcpl, leaf != NULL, mappings, n, box);
    free(mappings);
    return status < 0 ? -1 : whole;
}

void *cow_view_whole(cow_loc group, const char *name, hid_t type, unsigned rank, const uint64_t extent[],
                     const uint64_t maximum[], hid_t dcpl, const char *source)
{
    hsize_t now[COW_MAX_RANK], limit[COW_MAX_RANK];
    hid_t view = H5I_INVALID_HID, all = H5I_INVALID_HID, plist = H5I_INVALID_HID;
    void *dataset = NULL;

    for (unsigned d = 0; d < rank; d++) {
        now[d] = extent[d];
        limit[d] = most(maximum[d]);
    }
    if ((view = H5Screate_simple((int)rank, now, limit)) < 0 || (all = H5Screate_simple((int)rank, now, NULL)) < 0 ||
        (plist = H5Pcopy(dcpl)) < 0 || H5Pset_virtual(plist, view, ".", source, all) < 0)
        cow_error_native("cannot describe the virtual dataset '%s'", name == NULL ? "(anonymous)" : name);
    else
        dataset = cow_native_dataset_create(group, name, type, view, plist);
    cow_close(plist, all, view);
    return dataset;
}

void cow_view_end(cow_view_context *context)
{
    H5Pclose(context->fill_dcpl);
    cow_virtual_close(context->virtual);
}
