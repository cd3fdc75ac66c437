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
#include "history/internal.h"

#include "error.h"
#include "journal/driver.h"
#include "planted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- datasets ---- */

typedef struct written_nodes {
    cow_file *file;
    cow_dataset *dataset;
    cow_view_context view;
} written_nodes;

/* Remember where in the tree a node of this transaction stands; what stood there before, in the same transaction, is
 * superseded, and its view goes. */
static int supersede(cow_file *file, uint64_t dataset, unsigned level, const uint64_t origin[], unsigned rank,
                     uint64_t offset)
{
    uint64_t place[COW_MAX_RANK + 2] = {dataset, level}, key, old;
    char path[COW_PATH_MAX];

    if (rank > 0)
        memcpy(place + 2, origin, rank * sizeof *origin);
    key = cow_checksum(place, sizeof place);
    if (cow_map_get(&file->node_at, key, &old) && !file->shared_nodes) {
        cow_view_path(path, old);
        if (cow_native_link_delete(file->loc, path) < 0)
            return -1;
    }
    return cow_map_put(&file->node_at, key, offset);
}

static int node_written(void *context, const cow_node *node)
{
    written_nodes *w = context;

    if (cow_view_node(&w->view, node) < 0)
        return -1;
    return supersede(w->file, w->dataset->id, node->level, node->origin, w->view.grid->rank, node->offset);
}

static int copy_fill(const cow_dataset *dataset, hid_t dcpl)
{
    const cow_array *array = &dataset->array;
    H5D_fill_value_t defined;
    void *value;
    int status = -1;

    if (H5Pfill_value_defined(dataset->dcpl, &defined) < 0)
        return -1;
    if (defined == H5D_FILL_VALUE_DEFAULT)
        return 0;
    if (defined != H5D_FILL_VALUE_USER_DEFINED)
        return H5Pset_fill_value(dcpl, array->type, NULL);
    if ((value = calloc(1, array->element_size)) == NULL)
        return -1;
    if (H5Pget_fill_value(dataset->dcpl, array->type, value) >= 0) {
        status = H5Pset_fill_value(dcpl, array->type, value);
        cow_fill_free(array, value);
    } else
        free(value);
    return status;
}

hid_t cow_view_dcpl(const cow_dataset *dataset)
{
    hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE);

    if (dcpl < 0 || copy_fill(dataset, dcpl) < 0 || H5Pset_obj_track_times(dcpl, false) < 0) {
        cow_error_native("%s: cannot describe the views", dataset->array.label);
        if (dcpl >= 0)
            H5Pclose(dcpl);
        return H5I_INVALID_HID;
    }
    return dcpl;
}

/* The head object gets the dataset's extent. */
static int set_head_extent(cow_dataset *dataset)
{
    hsize_t extent[COW_MAX_RANK], now[COW_MAX_RANK];
    hid_t space = cow_native_dataset_space(dataset->native);
    int status = -1;

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

static int set_head(cow_dataset *dataset, uint64_t root)
{
    cow_file *file = dataset->file;
    char head[COW_PATH_MAX], view[COW_PATH_MAX];
    int exists;

    cow_head_path(head, dataset->id);
    cow_view_path(view, root);
    return (exists = cow_native_exists(file->loc, head)) >= 0 &&
                   (!exists || cow_native_link_delete(file->loc, head) == 0) &&
                   cow_native_link_hard(file->loc, view, file->loc, head) == 0
               ? set_head_extent(dataset)
               : -1;
}

int cow_file_show_extents(cow_file *file)
{
    for (size_t i = 0; i < file->open_datasets.capacity; i++) {
        cow_dataset *dataset = (cow_dataset *)(uintptr_t)file->open_datasets.entry[i].value;
        if (file->open_datasets.entry[i].used && cow_dataset_dirty(dataset) && dataset->array.extent_changed &&
            set_head_extent(dataset) < 0)
            return -1;
    }
    return 0;
}

static int commit_dataset(cow_dataset *dataset)
{
    cow_file *file = dataset->file;
    cow_array *array = &dataset->array;
    written_nodes w = {.file = file, .dataset = dataset};
    cow_root root = {.dataset = dataset->id, .pool = dataset->row.pool, .rank = array->grid.rank};
    uint64_t offset;
    int status = -1;

    if (dataset->root != COW_NO_NODE && !array->extent_changed && !cow_index_changed(array->index)) {
        array->written = false;
        return 0;
    }
    if ((w.view.fill_dcpl = cow_view_dcpl(dataset)) < 0)
        return -1;
    w.view.file = file->loc;
    w.view.grid = &array->grid;
    w.view.type = array->type;
    w.view.source_rows = cow_pool_slots(array->pool) * array->grid.chunk[0];
    cow_pool_path(w.view.source, dataset->row.pool);
    memcpy(root.extent, array->extent, sizeof root.extent);
    memcpy(root.maximum, array->maximum, sizeof root.maximum);
    memcpy(root.chunk, array->grid.chunk, sizeof root.chunk);
    root.chunks = cow_index_chunks(array->index);
    if (cow_index_commit(array->index, node_written, &w, &root.top, &root.level) < 0 ||
        cow_root_append(file->index, &root, &offset) < 0 || cow_view_root(&w.view, offset, &root) < 0 ||
        set_head(dataset, offset) < 0 || supersede(file, dataset->id, UINT32_MAX, NULL, 0, offset) < 0)
        goto done;
    dataset->root = dataset->row.root = offset;
    if (dataset->row.alloc_time == H5D_ALLOC_TIME_LATE && !dataset->array.late)
        dataset->row.flags |= COW_FLAG_ALLOCATED;
    if (cow_dataset_row_write(file, dataset->id, &dataset->row) < 0)
        goto done;
    dataset->root_changed = true;
    array->written = array->extent_changed = false;
    status = 0;
done:
    H5Pclose(w.view.fill_dcpl);
    return status < 0 ? cow_context("%s: cannot be committed", array->label) : 0;
}

static int drop_slot(void *context, const uint64_t chunk[], uint64_t slot)
{
    (void)chunk;
    cow_pool_drop(context, slot);
    return 0;
}

/* A dataset that the application deleted before anybody else could see it: its chunks are free again. */
static int drop_dead(cow_dataset *dataset)
{
    static const uint64_t nothing[COW_MAX_RANK];
    cow_array *array = &dataset->array;

    cow_array_forget(array);
    if (dataset->root == COW_NO_NODE && cow_index_trim(array->index, nothing, drop_slot, array->pool) < 0)
        return -1;
    dataset->dead = true;
    return 0;
}

/* The heads among the open datasets, as a list: committing one may open others. */
static int list_heads(cow_file *file, cow_dataset ***list, size_t *count)
{
    *count = 0;
    if ((*list = malloc((file->open_datasets.count + 1) * sizeof **list)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a commit", file->name);
    for (size_t i = 0; i < file->open_datasets.capacity; i++) {
        cow_dataset *dataset = (cow_dataset *)(uintptr_t)file->open_datasets.entry[i].value;
        if (file->open_datasets.entry[i].used && !dataset->snapshot && !dataset->dead)
            (*list)[(*count)++] = dataset;
    }
    return 0;
}

static int by_id(const void *a, const void *b)
{
    const cow_dataset *x = *(cow_dataset *const *)a, *y = *(cow_dataset *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

int cow_commit_datasets(cow_file *file)
{
    cow_journal *journal;
    cow_dataset **list;
    size_t count;
    int status = -1;

    if (list_heads(file, &list, &count) < 0)
        return -1;
    qsort(list, count, sizeof(cow_dataset *), by_id); /* the same file from run to run */
    for (size_t i = 0; i < count; i++) {
        H5O_info2_t info;
        if (!cow_dataset_dirty(list[i]))
            continue;
        if (cow_native_info((cow_loc){list[i]->native, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0)
            goto done;
        if (info.rc == 0 && list[i]->references == 0) {
            if (drop_dead(list[i]) < 0)
                goto done;
        } else if (cow_array_store(&list[i]->array) < 0)
            goto done;
    }
    if ((journal = cow_driver_journal(file->fileno)) != NULL)
        cow_journal_start_sync(journal);
    for (size_t i = 0; i < file->pool_count; i++)
        if (file->pool[i].pool != NULL && cow_pool_flush(file->pool[i].pool) < 0)
            goto done;
    for (size_t i = 0; i < count; i++)
        if (!list[i]->dead && cow_dataset_dirty(list[i]) && commit_dataset(list[i]) < 0)
            goto done;
    status = 0;
done:
    free(list);
    return status;
}

/* ---- versions ---- */

static int64_t new_chunks(const cow_file *file)
{
    int64_t n = 0;

    for (size_t i = 0; i < file->pool_count; i++)
        if (file->pool[i].pool != NULL)
            n += (int64_t)(cow_pool_slots(file->pool[i].pool) - file->pool[i].slots_before);
    return n;
}

static void seal(cow_file *file, bool finished)
{
    for (size_t i = 0; i < file->pool_count; i++)
        if (file->pool[i].pool != NULL) {
            cow_pool_seal(file->pool[i].pool);
            if (finished)
                file->pool[i].slots_before = cow_pool_slots(file->pool[i].pool);
        }
}

/* name=, or the number of the version; with something appended where that name is taken. */
static int choose_name(cow_file *file, char name[256])
{
    char path[COW_PATH_MAX + 256];
    int exists = 1;

    for (unsigned n = 0; exists == 1; n++) {
        if (file->options->name == NULL)
            snprintf(name, 256, "%llu", (unsigned long long)file->log_rows + 1 + n);
        else if (n == 0)
            snprintf(name, 256, "%s", file->options->name);
        else
            snprintf(name, 256, "%s.%u", file->options->name, n + 1);
        snprintf(path, sizeof path, COW_ROOT "/versions/%s", name);
        exists = cow_native_exists(file->loc, path);
    }
    return exists;
}

static char *text(const char *value)
{
    char *copy = H5allocate_memory(strlen(value) + 1, false);

    if (copy == NULL)
        cow_error(COW_MEMORY, "no memory for the description of a version");
    else
        memcpy(copy, value, strlen(value) + 1);
    return copy;
}

/* A version that is being made, so that it can be taken back. */
typedef struct attempt {
    cow_walk *walk;
    bool finished, amend;
    uint64_t at; /* row in the log */
    char name[256];
    cow_log_row former; /* amending: its row */
    cow_lacks lacks;
    cow_snapshots_saved saved;
    bool begun, logged;
} attempt;

/* What the newest version lacks, and what changed when none could be made, is made anew. */
static int renew_lacks(cow_file *file)
{
    if (cow_lacks_load(file) < 0) {
        fprintf(stderr, "h5cow: %s: %s; the next version is made anew\n", file->name, cow_error_message());
        cow_error_clear();
        file->lacks_read = file->lacks_lost = file->full_walk = true;
    }
    for (size_t i = 0; i < file->lacks.count; i++) {
        const cow_lack *lack = &file->lacks.lack[i];
        if (lack->version >= file->log_rows)
            file->full_walk = true; /* which paths changed since is not known */
        if (lack->head != UINT64_MAX &&
            cow_changes_renew(file, lack->head, lack->path[0] == '\0' ? NULL : lack->path) < 0)
            return -1;
    }
    return 0;
}

/* Commits that made no version: the next one says so. */
static int add_skipped(const cow_file *file, uint64_t at, const char *reason, cow_lacks *lacks)
{
    for (size_t i = 0; i < file->lacks.count; i++) {
        const cow_lack *lack = &file->lacks.lack[i];
        if (lack->head != UINT64_MAX || lack->version < file->log_rows)
            continue;
        if (reason != NULL && strcmp(reason, lack->reason) == 0)
            reason = NULL;
        if (cow_lacks_add(lacks, at, UINT64_MAX, NULL, lack->reason) < 0)
            return -1;
    }
    return reason == NULL ? 0 : cow_lacks_add(lacks, at, UINT64_MAX, NULL, reason);
}

static int begin_version(cow_file *file, attempt *a)
{
    a->amend = file->amend_row >= 0;
    a->at = a->amend ? (uint64_t)file->amend_row : file->log_rows;
    if (a->amend) {
        if (cow_log_read(file->loc, a->at, &a->former) < 0 || a->former.name == NULL)
            return cow_error(COW_CORRUPT, "%s: the version to amend is gone", file->name);
        snprintf(a->name, sizeof a->name, "%s", a->former.name);
    } else if (choose_name(file, a->name) < 0)
        return -1;
    if (add_skipped(file, a->at, NULL, &a->lacks) < 0 || cow_snapshots_begin(file, a->at, &a->saved) < 0)
        return -1;
    a->begun = true;
    return 0;
}

static int write_version(cow_file *file, attempt *a)
{
    uint64_t eoa;
    cow_log_row row = {.parent = a->amend ? a->former.parent : file->version_row};
    int status = -1;

    if (cow_walk_build(a->walk, a->name, a->at, &row.changed, &a->lacks) < 0 ||
        cow_lacks_put(file, a->at, &a->lacks) < 0 || cow_snapshots_flush(file) < 0 ||
        (row.name = text(a->name)) == NULL || cow_log_row_describe(&row, file->options->message) < 0 ||
        cow_file_eoa(file, &eoa) < 0)
        goto done;
    row.added = (int64_t)eoa - (int64_t)file->eoa_before;
    row.chunks = new_chunks(file);
    row.open = !a->finished;
    a->logged = true;
    status = cow_log_write(file->loc, a->at, &row);
done:
    cow_log_row_free(&row);
    return status;
}

/* Everything is where it was. */
static int undo_version(cow_file *file, attempt *a)
{
    if (a->logged && (a->amend ? cow_log_write(file->loc, a->at, &a->former) : cow_log_trim(file->loc, a->at)) < 0)
        return -1;
    return a->begun && (cow_walk_undo(a->walk) < 0 || cow_snapshots_undo(file, &a->saved) < 0) ? -1 : 0;
}

/* What changed is noted for whoever makes the next version, with what an amended one lacks. */
static int note_changes(cow_file *file, const attempt *a, const char *reason)
{
    uint64_t from = file->amend_row >= 0 ? (uint64_t)file->amend_row : file->log_rows;
    cow_lacks lacks = {0};
    int status = -1;

    for (size_t i = 0; i < file->lacks.count; i++)
        if (file->lacks.lack[i].version >= from && file->lacks.lack[i].version < file->log_rows &&
            cow_lacks_add(&lacks, file->lacks.lack[i].version, file->lacks.lack[i].head, file->lacks.lack[i].path,
                          file->lacks.lack[i].reason) < 0)
            goto done;
    if (add_skipped(file, file->log_rows, a->finished ? reason : NULL, &lacks) < 0)
        goto done;
    for (size_t i = 0; i < file->change_count; i++)
        if (cow_lacks_add(&lacks, file->log_rows, file->change[i].address, file->change[i].path, "") < 0)
            goto done;
    if (cow_lacks_put(file, from, &lacks) < 0)
        goto done;
    cow_lacks_free(&file->lacks);
    file->lacks = lacks;
    file->lacks_lost = false;
    return 0;
done:
    cow_lacks_free(&lacks);
    return status;
}

/* The version is there. */
static int end_version(cow_file *file, attempt *a)
{
    if (cow_walk_settle(a->walk) < 0 || cow_snapshots_flush(file) < 0)
        return -1;
    file->version_row = (int64_t)a->at;
    if (!a->amend)
        file->log_rows++;
    file->amend_row = a->finished ? -1 : (int64_t)a->at;
    cow_lacks_free(&file->lacks);
    file->lacks = a->lacks;
    a->lacks = (cow_lacks){0};
    file->lacks_lost = false;
    cow_lacks_tell(file, a->name, &file->lacks);
    return 0;
}

/* The disk failed, or the journal did: what HDF5 was doing then is half done. */
static bool disk_failed(const cow_file *file)
{
    const cow_journal *journal = cow_driver_journal(file->fileno);

    return cow_driver_file_failures(file->fileno) != file->failures ||
           (journal != NULL && cow_journal_failure(journal) != NULL);
}

/* No version can be made, for the reason that is recorded. The head is committed all the same: 0. */
static int do_without(cow_file *file, attempt *a)
{
    char reason[1024];
    cow_error_held *held;
    int status = -1;

    if (disk_failed(file))
        return -1;
    snprintf(reason, sizeof reason, "%s", cow_error_message());
    held = cow_error_hold();
    if (undo_version(file, a) == 0 && note_changes(file, a, reason) == 0)
        status = 0;
    cow_error_put_back(held);
    if (status < 0 || disk_failed(file))
        return -1;
    fprintf(stderr,
            "h5cow: %s: no version could be made: %s; the file is as the program wrote it, and the next version "
            "will have its changes\n",
            file->name, reason);
    cow_error_clear();
    file->unversioned = true;
    if (a->finished)
        file->amend_row = -1;
    return 0;
}

/* The transaction ends with nothing more to say than the last flush did. */
static int close_version(cow_file *file)
{
    cow_log_row row = {0};
    int status = -1;

    if (file->amend_row < 0)
        return 0;
    if (cow_log_read(file->loc, (uint64_t)file->amend_row, &row) == 0) {
        row.open = 0;
        status = cow_log_write(file->loc, (uint64_t)file->amend_row, &row);
    }
    cow_log_row_free(&row);
    file->amend_row = -1;
    if (status == 0 || disk_failed(file))
        return status;
    fprintf(stderr, "h5cow: %s: the newest version stays marked as open: %s\n", file->name, cow_error_message());
    cow_error_clear();
    return 0;
}

/* A new version where the head differs from the newest one. -1: the commit fails. */
static int commit_version(cow_file *file, bool finished, bool log_readable)
{
    attempt a = {.finished = finished};
    int differs = -1, status;

    file->unversioned = false;
    if ((log_readable || cow_log_meet_blocks(file->loc, file->log_rows) == 0) && renew_lacks(file) == 0 &&
        (a.walk = cow_walk_open(file)) != NULL)
        differs = cow_walk_decide(a.walk);
    if (differs == 0)
        status = finished ? close_version(file) : 0;
    else if (differs > 0 && begin_version(file, &a) == 0 && write_version(file, &a) == 0)
        status = end_version(file, &a);
    else
        status = do_without(file, &a);
    cow_snapshots_done(&a.saved);
    cow_lacks_free(&a.lacks);
    cow_log_row_free(&a.former);
    if (a.walk != NULL)
        cow_walk_close(a.walk);
    return status;
}

static int commit(cow_file *file, bool finished)
{
    bool small = false, set, good;
    int status = -1;

    if (cow_file_lay_out(file) < 0)
        return -1;
    file->failures = cow_driver_file_failures(file->fileno);
    if (!(set = cow_native_file_small_headers(file->native, true, &small) == 0))
        cow_error_clear(); /* a commit can do without */
    if (!(good = cow_log_meet_blocks(file->loc, file->log_rows) == 0)) {
        if (disk_failed(file))
            goto done;
        cow_error_clear(); /* the version, which needs the log, meets it again */
    }
    if (cow_commit_datasets(file) < 0 || commit_version(file, finished, good) < 0 ||
        cow_native_file_flush(file->native) < 0)
        goto done;
    seal(file, finished);
    if (!file->unversioned) {
        for (size_t i = 0; i < file->open_datasets.capacity; i++)
            if (file->open_datasets.entry[i].used)
                ((cow_dataset *)(uintptr_t)file->open_datasets.entry[i].value)->root_changed = false;
        cow_changes_clear(file);
    }
    status = 0;
done:
    /* the application's datasets are none of our business */
    return set && cow_native_file_small_headers(file->native, small, NULL) < 0 ? -1 : status;
}

/* Is there something that the version which is about to be finished had to do without? */
static bool lacking(const cow_file *file)
{
    for (size_t i = 0; i < file->lacks.count; i++)
        if (file->lacks.lack[i].head != UINT64_MAX)
            return true;
    return false;
}

int cow_file_commit(cow_file *file, cow_commit_kind kind)
{
    bool finished = kind == COW_FINISH || file->options->commit == COW_COMMIT_FLUSH;
    cow_journal *journal;
    int status = 0;

    if (file->state == COW_AMENDABLE && finished && lacking(file))
        file->state = COW_OPEN; /* once more */
    if (file->owner != getpid())
        return 0; /* what a forked child has got from its parent is the parent's to commit */
    if ((file->state == COW_OPEN || (file->state == COW_AMENDABLE && finished)) &&
        (journal = cow_driver_journal(file->fileno)) != NULL && cow_journal_check(journal) < 0) {
        cow_context("%s: the changes since the last version were not committed", file->name);
        return cow_file_fail(file);
    }
    switch (file->state) {
    case COW_CLEAN:
        return 0;
    case COW_FAILED:
        return cow_file_may_write(file);
    case COW_AMENDABLE:
        if (!finished)
            return 0;
        status = close_version(file);
        if (status == 0)
            status = cow_native_file_flush(file->native);
        break;
    case COW_OPEN:
        if (COW_PLANTED(head_before_history) && cow_commit_datasets(file) == 0 &&
            cow_native_file_flush(file->native) == 0 && (journal = cow_driver_journal(file->fileno)) != NULL)
            cow_journal_commit(journal, false);
        status = commit(file, finished);
        break;
    }
    if (status == 0 && (journal = cow_driver_journal(file->fileno)) != NULL)
        status = cow_journal_commit(journal, kind == COW_FINISH);
    if (status < 0) {
        cow_context("%s: the changes since the last version were not committed", file->name);
        return cow_file_fail(file);
    }
    if (finished) {
        cow_map_free(&file->node_at);
        file->shared_nodes = false;
    }
    if (file->unversioned && !finished)
        file->state = COW_OPEN; /* the version is still to be made */
    else
        file->state = finished || file->amend_row < 0 ? COW_CLEAN : COW_AMENDABLE;
    cow_datasets_sweep(file);
    cow_file_discard_now(file);
    return 0;
}
