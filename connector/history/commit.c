/* A transaction becomes a version.
 *
 *   1. every changed array puts its dirty chunks into the pools, and the rows of new slots are written
 *   2. every changed index appends its new nodes and a root record, each with its view; heads/<id> is linked to the new
 *      root view and the head object gets its extent
 *   3. the walk decides whether the head differs from the newest version at all; if not, no version is made
 *   4. the walk builds the version's tree, and the log gets its row
 *   5. everything is flushed, and the journal makes it a commit
 * A second commit of the same transaction (after H5Fflush) amends: same name, same row, former tree replaced.
 *
 * Steps 1, 2 and 5 are the head's: when one fails, so does the commit. Steps 3 and 4 are the version's. What cannot be put
 * into it is left out (snapshot.c). When no version can be made at all, what was done for it is undone, and the head is
 * committed alone; the changes are noted, in memory and in the file (incomplete.c), and the next commit makes a version
 * of them. Only where the disk failed meanwhile, or undoing fails as well, the commit fails.
 */
#include "history/head_index.h"
#include "history/internal.h"

#include "base/error.h"
#include "base/witness.h"
#include "journal/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Chunks that filters did not take. */
struct cow_refused {
    char text[1024]; /* of the running commit; "": none */
    bool ever;       /* one of a dataset that HDF5 keeps itself, in this opening */
    bool waits;      /* there are chunks that this commit was not to store */
};

cow_refused *cow_refused_new(void)
{
    return calloc(1, sizeof(cow_refused));
}

void cow_refused_free(cow_refused *refused)
{
    free(refused);
}

/* ---- datasets ---- */

typedef struct written_nodes {
    cow_file *file;
    cow_dataset *dataset;
    cow_view_context view;
    cow_node leaf;         /* the top node, where that is a leaf; offset COW_NO_NODE: it was not written now */
    cow_head_change *head; /* of a head that HDF5 reads; else NULL */
} written_nodes;

/* The view of a composed chunk that is new since the last commit. */
static int composed_written(written_nodes *w, uint64_t entry)
{
    cow_array *array = &w->dataset->array;
    char pieces[COW_PATH_MAX];
    const cow_pieces *from;
    cow_composed composed;

    if (cow_index_composed(array->index, NULL, entry, &composed) < 0 ||
        (from = cow_array_pieces(array, composed.piece_pool)) == NULL)
        return -1;
    cow_layout_raw_path(pieces, from->id);
    return cow_view_composed(&w->view, &composed, &from->cut, pieces, cow_pool_slots(from->pool) * from->cut.piece[0]) <
                   0
               ? -1
               : cow_superseded_note(w->file, w->dataset->id, COW_SUPERSEDED_COMPOSED, composed.chunk,
                                     w->view.grid->rank, composed.offset);
}

/* The tree has grown above its only leaf, which had no view before; NODE may be its parent. */
static int show_lone_leaf(written_nodes *w, const cow_node *node)
{
    const uint64_t lone = cow_index_lone_leaf(w->dataset->array.index);
    int made = 0;

    for (unsigned i = 0; lone != COW_NO_NODE && made == 0 && i < node->entries; i++)
        if (node->entry[i] == lone)
            made = cow_view_node_once(&w->view, w->file->index, lone);
    return made;
}

static int node_written(void *context, const cow_node *node)
{
    written_nodes *w = context;

    for (unsigned i = 0; node->level == 0 && i < node->entries; i++)
        if (cow_index_composed_now(w->dataset->array.index, node->entry[i]) && composed_written(w, node->entry[i]) < 0)
            return -1;
    if (w->head != NULL && node->level == 0 && cow_head_index_leaf(w->head, node) < 0)
        return -1;
    if (cow_index_level(w->dataset->array.index) == 0) { /* the root's view shows it */
        w->leaf = *node;
        return 0;
    }
    if ((node->level == 1 && show_lone_leaf(w, node) < 0) || cow_view_node(&w->view, node) < 0)
        return -1;
    return cow_superseded_note(w->file, w->dataset->id, node->level, node->origin, w->view.grid->rank, node->offset);
}

int cow_root_show(cow_file *file, cow_view_context *context, uint64_t offset, const cow_root *root, cow_node *leaf,
                  hid_t dcpl)
{
    const bool lone = root->level == 0 && root->top != COW_NO_NODE;
    int whole;

    if (lone && leaf->offset != root->top && cow_node_read(file->index, context->grid, root->top, leaf) < 0)
        return -1;
    if ((whole = cow_view_root(context, offset, root, lone ? leaf : NULL, dcpl)) < 0 ||
        ((whole || lone) && cow_file_need_format(file, whole ? COW_FORMAT_MARKED : COW_FORMAT_LONE_LEAF) < 0))
        return -1;
    return whole;
}

/* The view of the root record that the dataset has from now on. It is made so that it can be the snapshot as well, which is one object
 * less in each version. But a snapshot has a named type of the version's own; and views have no attributes, for netCDF without the
 * connector takes a dimension's name from any dataset in the file that says to be that dimension. */
static int show_root(written_nodes *w, uint64_t offset, const cow_root *root)
{
    cow_dataset *dataset = w->dataset;
    const int attributes = cow_dataset_has_attributes(dataset);
    int whole;

    if (attributes < 0)
        return -1;
    whole = cow_root_show(dataset->file, &w->view, offset, root, &w->leaf,
                          dataset->named_type || attributes ? H5I_INVALID_HID : dataset->dcpl);
    dataset->whole_view = whole > 0;
    dataset->view = w->view.made;
    return whole < 0 ? -1 : 0;
}

/* The creation properties of views: they have the fill value of DATASET, and no times. The caller closes them. */
static hid_t fill_properties(const cow_dataset *dataset)
{
    const cow_array *array = &dataset->array;
    H5D_fill_value_t defined;
    hid_t dcpl;
    void *value;
    int status = -1;

    if (H5Pfill_value_defined(dataset->dcpl, &defined) < 0)
        return H5I_INVALID_HID;
    if (defined == H5D_FILL_VALUE_DEFAULT)
        return cow_native_usual_dcpl(false);
    if ((dcpl = H5Pcreate(H5P_DATASET_CREATE)) < 0)
        return H5I_INVALID_HID;
    if (defined != H5D_FILL_VALUE_USER_DEFINED)
        status = H5Pset_fill_value(dcpl, cow_array_type(array), NULL);
    else if ((value = calloc(1, array->element_size)) != NULL) {
        if (H5Pget_fill_value(dataset->dcpl, cow_array_type(array), value) >= 0) {
            status = H5Pset_fill_value(dcpl, cow_array_type(array), value);
            cow_dataset_fill_free(cow_array_type(array), array->heap, value);
        } else
            free(value);
    }
    if (status >= 0 && H5Pset_obj_track_times(dcpl, false) >= 0)
        return dcpl;
    H5Pclose(dcpl);
    return H5I_INVALID_HID;
}

static int place_view(void *file, uint64_t offset, char path[COW_PATH_MAX])
{
    return cow_views_place(file, offset, path);
}

static int view_exists(void *file, uint64_t offset)
{
    return cow_views_exist(file, offset);
}

static int open_views(void *file, uint64_t offset, cow_loc *group)
{
    char path[COW_PATH_MAX];

    return cow_views_open(file, offset, group, path);
}

static int view_waits(void *file, uint64_t offset, uint64_t address)
{
    return cow_views_wait(file, offset, address);
}

int cow_dataset_views(const cow_dataset *dataset, cow_view_context *context)
{
    static const cow_view_folder folder = {place_view, view_exists, open_views, view_waits};
    const cow_array *array = &dataset->array;
    const uint64_t *parts = cow_views_parts(dataset->file);
    hid_t dcpl = parts == NULL ? H5I_INVALID_HID : fill_properties(dataset);

    if (parts == NULL)
        return -1;
    if (dcpl < 0)
        return cow_error_native("%s: cannot describe the views", array->label);
    *context = (cow_view_context){.folder = &folder,
                                  .file = dataset->file,
                                  .parts = parts,
                                  .grid = &array->grid,
                                  .extent = array->extent,
                                  .type = cow_array_type(array),
                                  .fill_dcpl = dcpl,
                                  .source_rows = cow_pool_slots(array->pool) * array->grid.chunk[0],
                                  .virtual = cow_virtual_open(dataset->file->native, cow_file_bytes(dataset->file),
                                                              dataset->file->low, cow_array_type(array), array->heap)};
    cow_layout_raw_path(context->source, dataset->row.pool);
    return 0;
}

bool cow_dataset_extent_waits(const cow_dataset *dataset)
{
    const cow_file *file = dataset->file;

    return dataset->native == NULL && file->written != NULL &&
           !cow_journal_driver_met(file->fileno, dataset->address) &&
           dataset->address < cow_still_source(cow_layout_still_bytes(file->written))->end;
}

/* In the bytes of the head's header. false: HDF5 has to do that. */
static bool write_head_extent(const cow_dataset *dataset)
{
    const cow_array *array = &dataset->array;
    const cow_still *still = cow_layout_still_bytes(dataset->file->written);

    if (cow_header_set_extent(cow_still_source(still), dataset->address, array->grid.rank, array->extent,
                              (uint32_t)time(NULL), cow_still_write, (void *)(uintptr_t)still) > 0)
        return true;
    cow_error_clear();
    return false;
}

/* The head object gets the dataset's extent. */
static int set_head_extent(cow_dataset *dataset)
{
    hsize_t extent[COW_MAX_RANK], now[COW_MAX_RANK];
    hid_t space;
    int status = -1;

    if (dataset->native == NULL && !dataset->array.extent_changed)
        return 0;
    if (cow_dataset_extent_waits(dataset) && write_head_extent(dataset))
        return 0;
    if (cow_dataset_hold(dataset, NULL) < 0)
        return -1;
    space = cow_native_dataset_space(dataset->native);
    for (unsigned d = 0; d < dataset->array.grid.rank; d++)
        extent[d] = dataset->array.extent[d];
    if (space < 0)
        return -1;
    if (H5Sget_simple_extent_dims(space, now, NULL) < 0)
        cow_error_native("%s: cannot get the extent of the head", dataset->array.label);
    else if (memcmp(now, extent, dataset->array.grid.rank * sizeof *now) == 0 ||
             cow_native_dataset_resize(dataset->native, extent) == 0)
        status = 0;
    H5Sclose(space);
    return status;
}

static int unlink_head(cow_loc heads, const char *head)
{
    if (cow_native_link_delete(heads, cow_folder_name(head)) == 0) /* it is nearly always there */
        return 0;
    if (cow_native_exists(heads, cow_folder_name(head)) != 0)
        return -1;
    cow_error_clear();
    return 0;
}

int cow_head_lead(cow_file *file, uint64_t id, uint64_t root, bool first)
{
    char head[COW_PATH_MAX], view[COW_PATH_MAX];
    cow_loc views, heads;

    cow_head_path(head, id);
    if (cow_views_open(file, root, &views, view) < 0 || cow_folder_open(file, COW_FOLDER_HEADS, &heads) < 0)
        return -1;
    if (first && cow_native_link_hard(views, cow_folder_name(view), heads, cow_folder_name(head)) == 0)
        return 0;
    cow_error_clear();
    return unlink_head(heads, head) < 0
               ? -1
               : cow_native_link_hard(views, cow_folder_name(view), heads, cow_folder_name(head));
}

int cow_head_end_row(cow_file *file, uint64_t id)
{
    cow_layout_dataset_row row;

    if (cow_dataset_row_read(file, id, &row) < 0)
        return -1;
    row.root = COW_NO_NODE;
    return cow_dataset_row_write(file, id, &row);
}

int cow_head_end(cow_file *file, uint64_t id)
{
    char head[COW_PATH_MAX];
    cow_loc heads;

    cow_head_path(head, id);
    return cow_folder_open(file, COW_FOLDER_HEADS, &heads) < 0 || unlink_head(heads, head) < 0
               ? -1
               : cow_head_end_row(file, id);
}

int cow_file_show_extents(cow_file *file)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (cow_dataset_dirty(dataset) && dataset->array.extent_changed && set_head_extent(dataset) < 0)
            return -1;
    return 0;
}

static int commit_dataset(cow_dataset *dataset)
{
    cow_file *file = dataset->file;
    cow_array *array = &dataset->array;
    written_nodes w = {.file = file, .dataset = dataset, .leaf.offset = COW_NO_NODE};
    cow_root root = {.dataset = dataset->id, .pool = dataset->row.pool, .rank = array->grid.rank};
    const bool native = (dataset->row.flags & COW_FLAG_NATIVE) != 0;
    uint64_t offset;
    int status = -1;

    if (dataset->root != COW_NO_NODE && !array->extent_changed && !cow_index_changed(array->index)) {
        array->written = array->refused || array->waits;
        return 0;
    }
    if (cow_dataset_views(dataset, &w.view) < 0)
        return -1;
    if (native && (w.head = cow_head_index_begin(dataset)) == NULL)
        goto done;
    memcpy(root.extent, array->extent, sizeof root.extent);
    memcpy(root.maximum, array->maximum, sizeof root.maximum);
    memcpy(root.chunk, array->grid.chunk, sizeof root.chunk);
    root.chunks = cow_index_chunks(array->index);
    if (cow_index_commit(array->index, node_written, &w, &root.top, &root.level) < 0 ||
        cow_root_append(file->index, &root, &offset) < 0 || show_root(&w, offset, &root) < 0 ||
        set_head_extent(dataset) < 0 ||
        cow_superseded_note(file, dataset->id, COW_SUPERSEDED_ROOT, NULL, 0, offset) < 0)
        goto done;
    status = cow_head_index_end(w.head, array->trimmed, 0);
    w.head = NULL;
    if (status < 0)
        goto done;
    status = -1;
    array->trimmed = false;
    dataset->root = dataset->row.root = offset;
    if (dataset->row.alloc_time == H5D_ALLOC_TIME_LATE && !dataset->array.late)
        dataset->row.flags |= COW_FLAG_ALLOCATED;
    if (cow_dataset_was_written(dataset))
        dataset->row.flags |= COW_FLAG_WRITTEN;
    if (cow_dataset_row_write(file, dataset->id, &dataset->row) < 0)
        goto done;
    dataset->root_changed = true;
    array->written = array->refused || array->waits; /* what the filters did not take is tried again */
    array->extent_changed = false;
    array->known = true;
    array->pieces_made = 0;
    status = 0;
done:
    cow_head_index_end(w.head, false, status);
    cow_view_end(&w.view);
    return status < 0 ? cow_context("%s: cannot be committed", array->label) : 0;
}

/* COUNT datasets of one file: what changed, with an index and views, and then where the heads lead. REFUSED: also of those with a chunk that filters did not
 * take. */
static int commit_list(cow_file *file, cow_dataset *list[], size_t count, bool refused)
{
    for (size_t i = 0; i < count; i++)
        if (!list[i]->dead && (refused || !list[i]->array.refused) && cow_dataset_dirty(list[i]) &&
            commit_dataset(list[i]) < 0)
            return -1;
    if (cow_views_link(file) < 0)
        return -1;
    for (size_t i = 0; i < count; i++) {
        cow_dataset *dataset = list[i];

        if (dataset->led == dataset->root)
            continue;
        if (cow_head_lead(file, dataset->id, dataset->root, dataset->led == COW_NO_NODE) < 0)
            return cow_context("%s: cannot be committed", dataset->array.label);
        dataset->led = dataset->root;
    }
    return 0;
}

static int drop_slot(void *context, const uint64_t chunk[], uint64_t slot)
{
    (void)chunk;
    cow_array_drop(context, slot);
    return 0;
}

/* The filters do not take a chunk, which is recorded: an error of that dataset alone. The chunk stays in the cache while the
 * dataset is open, as in HDF5. */
static void note_refused(cow_dataset *dataset)
{
    cow_file *file = dataset->file;

    if (dataset->references == 0) {
        cow_tell_lost(file->name, "a chunk is lost: %s", cow_error_message());
        cow_array_forget(&dataset->array);
    } else if (file->refused->text[0] == '\0')
        snprintf(file->refused->text, sizeof file->refused->text, "%s", cow_error_message());
    cow_error_clear();
}

int cow_file_refused(cow_file *file)
{
    if (file->refused->text[0] == '\0')
        return 0;
    cow_error(COW_UNSUPPORTED, "%s; all else is committed", file->refused->text);
    file->refused->text[0] = '\0';
    return -1;
}

bool cow_file_refusing(const cow_file *file)
{
    return file->refused->ever;
}

/* A dataset that the application deleted before anybody else could see it: its chunks are free again. What a version knows is not
 * deleted, but has a link in `removed`; so a root record that such a one has is of this transaction (stowed.h), and goes with its view. */
static int drop_dead(cow_dataset *dataset)
{
    static const uint64_t nothing[COW_MAX_RANK];
    cow_array *array = &dataset->array;
    const bool rooted = dataset->root != COW_NO_NODE;
    char view[COW_PATH_MAX];

    cow_array_forget(array);
    if (!rooted || dataset->root_changed) {
        if (cow_index_trim(array->index, nothing, drop_slot, array) < 0 ||
            (rooted && cow_head_end(dataset->file, dataset->id) < 0))
            return -1;
        if (rooted && (cow_views_path(dataset->file, view, dataset->root) < 0 ||
                       cow_native_link_delete(dataset->file->loc, view) < 0))
            cow_error_clear(); /* it does no harm */
    }
    dataset->dead = true;
    return 0;
}

/* Was it deleted, and has nobody it open? 1, 0, -1. */
static int is_deleted(cow_dataset *dataset)
{
    return dataset->references > 0 ? 0 : cow_dataset_unlinked(dataset);
}

/* The heads among the open datasets, as a list: committing one may open others, and close them, since HDF5 opens a dataset to
 * tell a region of it. None of the list is forgotten until let_go. */
static int list_heads(cow_file *file, cow_dataset ***list, size_t *count)
{
    cow_dataset *dataset;

    *count = 0;
    if ((*list = malloc((cow_datasets_count(file) + 1) * sizeof(cow_dataset *))) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a commit", file->name);
    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (!dataset->snapshot && !dataset->dead)
            (*list)[(*count)++] = dataset;
    for (size_t i = 0; i < *count; i++)
        (*list)[i]->committing = true;
    return 0;
}

/* What nobody has open goes with the sweep, when the version is made: until then its place is not given away. */
static void let_go(cow_dataset **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list[i]->committing = false;
    free(list);
}

static int by_id(const void *a, const void *b)
{
    const cow_dataset *x = *(cow_dataset *const *)a, *y = *(cow_dataset *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static int in_the_middle(const cow_file *file)
{
    return cow_error(COW_USAGE,
                     "%s: a function that HDF5 calls while it moves elements cannot copy them or make a version",
                     file->name);
}

int cow_commit_datasets(cow_file *file)
{
    cow_dataset **list;
    size_t count;
    int status = -1;

    if (cow_chunk_cache_busy(file->cache)) /* H5Ocopy in a function of the program */
        return in_the_middle(file);
    if (list_heads(file, &list, &count) < 0)
        return -1;
    file->refused->waits = false;
    qsort(list, count, sizeof(cow_dataset *), by_id); /* the same file from run to run */
    for (size_t i = 0; i < count; i++) {
        int deleted = cow_dataset_dirty(list[i]) || list[i]->root_changed ? is_deleted(list[i]) : 0;

        if (deleted < 0 || (deleted > 0 && drop_dead(list[i]) < 0))
            goto done;
        if (!cow_dataset_dirty(list[i]))
            continue;
        list[i]->whole_view = false;
        file->refused->waits |= list[i]->array.waits;
        if (cow_array_store(&list[i]->array) < 0) {
            if (!list[i]->array.refused)
                goto done;
            note_refused(list[i]);
        }
    }
    if (file->journal != NULL)
        cow_journal_start_sync(file->journal);
    status = cow_pools_flush(file) < 0 ? -1 : commit_list(file, list, count, true);
done:
    let_go(list, count);
    return status;
}

static int store_and_commit(cow_file *file, cow_dataset *list[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        list[i]->whole_view = list[i]->whole_view && !cow_dataset_dirty(list[i]);
        if (cow_dataset_dirty(list[i]) && cow_array_store(&list[i]->array) < 0 && !list[i]->array.refused)
            return 1;
    }
    return cow_pools_flush(file) < 0 ? -1 : commit_list(file, list, count, false);
}

/* How HDF5 makes objects and keeps them in memory: as the history wants it between begin and end, only for its own objects. */
typedef struct made_small {
    bool small, set;
    int wider;
    H5AC_cache_config_t cache;
} made_small;

static int begin_making(cow_file *file, made_small *m)
{
    m->small = false;
    if ((m->wider = cow_native_metadata_cache_widen(file->native, &m->cache)) < 0)
        return -1;
    if (!(m->set = cow_native_file_small_headers(file->native, true, &m->small) == 0))
        cow_error_clear(); /* a commit can do without */
    return 0;
}

static int end_making(cow_file *file, const made_small *m)
{
    if (m->wider > 0)
        cow_native_metadata_cache_restore(file->native, &m->cache);
    return m->set ? cow_native_file_small_headers(file->native, m->small, NULL) : 0;
}

int cow_commit_some(cow_file *file, cow_dataset *list[], size_t count)
{
    made_small making;
    int status;

    if (begin_making(file, &making) < 0)
        return -1;
    qsort(list, count, sizeof(cow_dataset *), by_id);
    for (size_t i = 0; i < count; i++)
        list[i]->committing = true;
    status = store_and_commit(file, list, count);
    for (size_t i = 0; i < count; i++)
        list[i]->committing = false;
    return end_making(file, &making) < 0 ? -1 : status;
}

/* ---- the whole ---- */

/* A dataset that HDF5 keeps itself may have filters as well that do not take a chunk. */
int cow_file_flush_native(cow_file *file)
{
    if (cow_native_file_flush(file->native) == 0)
        return 0;
    if (!cow_error_of_filters() || cow_file_disk_failed(file))
        return -1;
    file->refused->ever = true;
    if (file->refused->text[0] == '\0')
        snprintf(file->refused->text, sizeof file->refused->text, "%s: a chunk cannot be stored: %s", file->name,
                 cow_error_message());
    cow_error_clear();
    return 0;
}

/* All that is in memory, and then which space of the file is free. BY_CLOSING: what is not HDF5's to write. */
static int write_out(cow_file *file, bool by_closing)
{
    if (file->laid_out && cow_datasets_flush(file) < 0)
        return -1;
    if (by_closing)
        return 0;
    return cow_file_flush_native(file) < 0 ? -1 : cow_space_note(file, cow_file_flush_native);
}

/* The version to come is to look at datasets that have chunks which this one did without. */
static int note_not_stored(cow_file *file)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if ((dataset->array.refused || dataset->array.waits) && !dataset->snapshot &&
            cow_changes_note(file, dataset->address, COW_CHANGED_ARRAY, NULL) < 0)
            return -1;
    return 0;
}

static int commit(cow_file *file, bool finished, bool by_closing)
{
    made_small making;
    cow_dataset *dataset;
    int status = -1;

    if (cow_file_lay_out(file) < 0 || begin_making(file, &making) < 0)
        return -1;
    if (cow_versions_meet(file) < 0)
        cow_error_clear(); /* the version, which needs the log, meets it again */
    if (cow_commit_datasets(file) < 0 || cow_version_commit(file, finished) < 0 || write_out(file, by_closing) < 0)
        goto done;
    cow_pools_seal(file, finished);
    if (!cow_versions_missed(file)) {
        for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
            dataset->root_changed = false;
        cow_changes_clear(file);
        cow_bare_forget_all(file);
    }
    cow_stowed_end(file, cow_versions_missed(file));
    status = note_not_stored(file);
done:
    cow_versions_part(file);
    return end_making(file, &making) < 0 ? -1 : status;
}

/* Something that a version had to do without, which is tried again. */
static int is_lacking(void *context, const cow_layout_lack *lack)
{
    return lack->head != UINT64_MAX && lack->version < cow_versions_known(context);
}

/* Is there something that the version which is about to be finished had to do without? */
static bool lacking(cow_file *file)
{
    return cow_lacks_each(file, is_lacking, file) != 0;
}

void (*cow_file_committed)(cow_file *file);

int cow_file_commit_history(cow_file *file)
{
    if (cow_journal_check(file->journal) < 0)
        return cow_file_fail(file);
    cow_file_begin_commit(file);
    if (write_out(file, false) < 0 || cow_journal_commit(file->journal, true) < 0)
        return cow_file_fail(file);
    cow_space_noted(file);
    return 0;
}

static int not_committed(cow_file *file)
{
    cow_context("%s: the changes since the last version were not committed", file->name);
    return cow_file_fail(file);
}

/* All of a commit that comes before the journal's. 1: there is nothing to commit. */
static int prepare(cow_file *file, cow_commit_kind kind, bool finished, bool by_closing)
{
    int status = 0;

    if (cow_chunk_cache_busy(file->cache))
        switch (kind) {
        case COW_FLUSH:
            return 1; /* the next commit has it */
        case COW_VERSION:
            return in_the_middle(file);
        case COW_FINISH: /* the program ends there: what is half stored is in no commit */
            in_the_middle(file);
            return cow_file_fail(file);
        }
    if (cow_file_state_of(file) == COW_FILE_AMENDABLE && finished && lacking(file))
        cow_file_enter(file, COW_FILE_OPEN); /* once more */
    if (!cow_file_ours(file))
        return 1; /* what a forked child has got from its parent is the parent's to commit */
    if ((cow_file_state_of(file) == COW_FILE_OPEN || (cow_file_state_of(file) == COW_FILE_AMENDABLE && finished)) &&
        file->journal != NULL && cow_journal_check(file->journal) < 0)
        return not_committed(file);
    cow_file_begin_commit(file);
    file->refused->text[0] = '\0';
    switch (cow_file_state_of(file)) {
    case COW_FILE_CLEAN:
    case COW_FILE_ABANDONED:
        return 1;
    case COW_FILE_FAILED:
        return cow_file_may_write(file);
    case COW_FILE_AMENDABLE:
        if (!finished)
            return 1;
        status = cow_version_close(file);
        if (status == 0)
            status = write_out(file, by_closing);
        break;
    case COW_FILE_OPEN:
        status = commit(file, finished, by_closing);
        break;
    }
    return status < 0 ? not_committed(file) : 0;
}

int cow_file_commit(cow_file *file, cow_commit_kind kind)
{
    bool finished = kind != COW_FLUSH || file->options->commit == COW_COMMIT_FLUSH;
    int status = prepare(file, kind, finished, false);

    if (status != 0)
        return status < 0 ? -1 : 0;
    if (file->journal != NULL && cow_journal_commit(file->journal, kind == COW_FINISH) < 0)
        return not_committed(file);
    cow_file_all_committed(file);
    cow_space_noted(file);
    if (finished)
        cow_superseded_forget(file);
    if (file->refused->waits || ((cow_versions_missed(file) || file->refused->text[0] != '\0') && !finished))
        cow_file_enter(file, COW_FILE_OPEN); /* there is still something to be tried */
    else
        cow_file_enter(file, finished || cow_versions_running(file) < 0 ? COW_FILE_CLEAN : COW_FILE_AMENDABLE);
    cow_datasets_sweep(file);
    cow_file_replaced(file);
    if (cow_file_committed != NULL)
        cow_file_committed(file);
    return 0;
}

/* ---- a filter that ends the program ---- */

typedef enum filtered { NONE, THAT_NEVER_ENDED_IT, ALL } filtered;

/* Of the datasets whose chunks HDF5's filters encode, only WHICH are to be stored. */
static void store_only(const cow_file *file, filtered which)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;) {
        cow_array *array = &dataset->array;

        array->waits = array->dirty != NULL && which != ALL && !cow_codec_parallel(array->codec) &&
                       (which == NONE || array->ended);
    }
}

static void forget_ended(cow_file *file)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (dataset->array.ended && dataset->array.dirty != NULL) {
            cow_tell_lost(file->name, "chunks are lost, since a filter ended the program instead of storing one: %s",
                          dataset->array.label);
            cow_array_forget(&dataset->array);
        }
}

/* Each step may end the program again, so what is surer is committed before. */
int cow_file_commit_interrupted(cow_file *file, bool last)
{
    cow_chunk_cache_interrupted(file->cache);
    for (filtered which = NONE; which <= (last ? THAT_NEVER_ENDED_IT : ALL); which++) {
        store_only(file, which);
        if (cow_file_commit(file, COW_FLUSH) < 0)
            return -1;
    }
    store_only(file, ALL);
    if (last)
        forget_ended(file);
    return 0;
}

/* Where HDF5 writes such a file out, and keeps it open, it writes past the end of its memory at times: it finds space for the list of
 * free space after it has made room in memory for that list, which grows by finding it (1.14.5, H5FScache.c). Closing the file it finds
 * the space first. So the last commit, which every program has, is made of what HDF5 writes by closing the file.
 * (Not with keep=, which commits once more after it.) */
bool cow_file_commits_by_closing(cow_file *file)
{
    cow_space_kept kept;

    if (file->journal == NULL || !cow_file_writable(file) || file->kept.count > 0 || file->options->keep.text != NULL ||
        (file->written != NULL && !cow_journal_extended_superblock(file->journal)))
        return false;
    if (cow_native_file_space(file->native, &kept) == 0)
        return kept == COW_SPACE_PERSISTS;
    cow_error_clear();
    return false;
}

int cow_file_commit_by_closing(cow_file *file, void *native, bool told, bool *closed)
{
    const int begun = told ? 1 : prepare(file, COW_FINISH, true, true);
    cow_journal *journal = file->journal;
    cow_error_held *held = NULL;
    int status;

    *closed = begun >= 0;
    if (begun < 0)
        return -1;
    cow_journal_reference(journal);
    status = cow_file_close_natively(file, native);
    if (begun == 0 && status == 0 && !cow_journal_driver_has(journal)) /* else it commits when HDF5 closes it */
        status = cow_journal_commit(journal, true);
    if (begun == 0 && status < 0) {
        not_committed(file);
        held = cow_error_hold();
    }
    if (status < 0)
        cow_journal_abort(journal, "HDF5 could not close the file");
    cow_error_clear();
    cow_journal_close(journal);
    if (begun == 0 && status == 0) {
        cow_file_all_committed(file);
        cow_file_enter(file, COW_FILE_CLEAN);
        cow_file_replaced(file);
    }
    cow_error_put_back(held);
    return begun == 0 ? status : 0;
}
