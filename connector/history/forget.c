/* Versions that go. Their trees are unlinked, and HDF5 frees what only they had; the log keeps their rows, the table `snapshots`
 * only those that a version still needs. Head objects that were deleted, and that no version knows any more, go as well. The
 * chunks are freed by collect.c.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/vector.h"
#include "h5cow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct forgetting {
    cow_file *file;
    bool *go; /* by row of the log */
    uint64_t rows;
    uint64_t *gone; /* head objects that no version knows any more */
    size_t gone_count, gone_room;
    uint32_t *why; /* base/keep.h */
    cow_loc tags;
} forgetting;

static void forgetting_free(forgetting *f)
{
    free(f->go);
    free(f->gone);
    free(f->why);
}

/* ---- which may go ---- */

static int choose(forgetting *f, const char *revision, uint64_t *count)
{
    char version[1024];
    uint64_t row;

    if (cow_revision_resolve(f->file->native, revision, version, sizeof version) < 0 ||
        cow_version_row(f->file, version, &row) < 0)
        return -1;
    if (row + 1 >= f->rows)
        return cow_error(COW_USAGE, "%s: version '%s' is the newest one, which the next one is made from: it stays",
                         f->file->name, strrchr(version, '/') + 1);
    *count += !f->go[row];
    f->go[row] = true;
    return 0;
}

/* The row of the version that a tag leads to. 1; 0: none, which h5cow verify tells; -1. */
static int tagged_row(const forgetting *f, const char *tag, const H5L_info2_t *info, uint64_t *row)
{
    char *path;
    size_t size;
    int exists = 0;

    if (info->type != H5L_TYPE_SOFT)
        return 0;
    if ((path = cow_native_link_value(f->tags, tag, &size)) == NULL)
        return -1;
    if (cow_tagged_version(path) != NULL && (exists = cow_native_exists(f->file->loc, path)) > 0 &&
        cow_version_row(f->file, path, row) < 0)
        exists = -1;
    free(path);
    return exists;
}

static int refuse_tagged(void *context, const char *name, const H5L_info2_t *info)
{
    const forgetting *f = context;
    uint64_t row;
    int found = tagged_row(f, name, info, &row);

    if (found <= 0 || !f->go[row])
        return found < 0 ? -1 : 0;
    return cow_error(COW_USAGE,
                     "%s: the tag '%s' leads to version #%llu: it stays until the tag is removed (h5cow tag -d)",
                     f->file->name, name, (unsigned long long)row + 1);
}

static int visit_tags(forgetting *f, cow_link_visitor *visit)
{
    int exists = cow_tags_are_there(f->file), status;

    if (exists <= 0)
        return exists;
    if (cow_native_open(f->file->loc, COW_PATH_TAGS, &f->tags) < 0)
        return -1;
    status = cow_native_links(f->tags, false, visit, f);
    return cow_native_close(f->tags) < 0 ? -1 : status;
}

static int choose_all(forgetting *f, h5cow_forget_t *request)
{
    request->forgotten = 0;
    f->rows = cow_versions_known(f->file);
    if ((f->go = calloc(f->rows + 1, sizeof *f->go)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for the list of versions", f->file->name);
    for (size_t i = 0; i < request->count; i++)
        if (choose(f, request->revisions[i], &request->forgotten) < 0)
            return -1;
    return visit_tags(f, refuse_tagged);
}

/* ---- the trees ---- */

static int unlink_version(cow_file *file, uint64_t at)
{
    char path[COW_PATH_MAX + 256];
    cow_layout_log_row row = {0};
    int status = -1;

    if (cow_layout_log_read(file->loc, at, &row) < 0)
        return -1;
    if (row.name == NULL || strchr(row.name, '/') != NULL)
        cow_error(COW_CORRUPT, "%s: version #%llu has no name; try: h5cow verify", file->name,
                  (unsigned long long)at + 1);
    else {
        snprintf(path, sizeof path, COW_PATH_VERSIONS "/%s", row.name);
        row.open = COW_LOG_FORGOTTEN;
        if (cow_native_link_delete(file->loc, path) == 0)
            status = cow_layout_log_write(file->loc, at, &row);
    }
    cow_layout_log_row_free(&row);
    return status;
}

static int unlink_all(const forgetting *f)
{
    for (uint64_t at = 0; at < f->rows; at++)
        if (f->go[at] && unlink_version(f->file, at) < 0)
            return -1;
    return 0;
}

/* ---- head objects that no version knows ---- */

static int end_object(cow_file *file, cow_loc object);

/* The dataset goes with its last link: what its newest state needs is needed no more. */
static int end_dataset(cow_file *file, void *native)
{
    char head[COW_PATH_MAX];
    cow_layout_dataset_row row;
    hid_t dcpl = cow_native_dataset_dcpl(native);
    uint64_t id;
    int kind = dcpl < 0 ? -1 : cow_dataset_source(dcpl, &id), exists;

    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (kind != 1)
        return kind < 0 ? -1 : 0;
    cow_head_path(head, id);
    if (cow_dataset_row_read(file, id, &row) < 0 || (exists = cow_native_exists(file->loc, head)) < 0 ||
        (exists && cow_native_link_delete(file->loc, head) < 0))
        return -1;
    row.root = COW_NO_NODE;
    return cow_dataset_row_write(file, id, &row);
}

static int end_member(void *context, const char *name, const H5L_info2_t *link)
{
    cow_file *file = context;
    cow_loc object;
    int status;

    (void)name;
    if (link->type != H5L_TYPE_HARD)
        return 0;
    if (cow_snapshots_known(file, cow_address(&link->u.token)))
        return cow_file_keep(file, cow_address(&link->u.token));
    if (cow_native_open_token(file->loc, &link->u.token, &object) < 0)
        return -1;
    status = end_object(file, object);
    return cow_native_close(object) < 0 ? -1 : status;
}

/* OBJECT is about to lose a link; where that is the last one, it goes. */
static int end_object(cow_file *file, cow_loc object)
{
    H5O_info2_t info;

    if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (info.rc > 1)
        return 0;
    if (object.type == H5I_DATASET)
        return end_dataset(file, object.object);
    return object.type == H5I_GROUP ? cow_native_links(object, false, end_member, file) : 0;
}

static int end_removed(cow_file *file, uint64_t address)
{
    const H5O_token_t token = cow_token(address);
    cow_loc object;
    int removed = cow_file_removed(file, &token), status;

    if (removed <= 0)
        return removed;
    if (cow_native_open_token(file->loc, &token, &object) < 0)
        return -1;
    status = end_object(file, object);
    if (cow_native_close(object) < 0 || status < 0)
        return -1;
    return cow_file_unkeep(file, address);
}

static int note_gone(void *context, uint64_t head)
{
    forgetting *f = context;

    if (COW_RESERVE(f->gone, f->gone_room, f->gone_count, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for the list of deleted objects", f->file->name);
    f->gone[f->gone_count++] = head;
    return 0;
}

/* Those that went earlier. */
static int note_forgotten(forgetting *f)
{
    static const char *const members[] = {"open", NULL};
    cow_layout_log_row *row = calloc(f->rows, sizeof *row);
    int status = -1;

    if (row == NULL)
        cow_error(COW_MEMORY, "%s: no memory for the list of versions", f->file->name);
    else if (cow_layout_log_read_many(f->file->loc, 0, f->rows, members, row) == 0) {
        for (uint64_t at = 0; at < f->rows; at++)
            f->go[at] |= row[at].open == COW_LOG_FORGOTTEN;
        status = 0;
    }
    free(row); /* no texts were asked for */
    return status;
}

static int forget(forgetting *f)
{
    cow_file *file = f->file;

    if (unlink_all(f) < 0)
        return -1;
    if (note_forgotten(f) < 0 || cow_snapshots_purge(file, f->go, f->rows, note_gone, f) < 0)
        return -1;
    for (size_t i = 0; i < f->gone_count; i++)
        if (end_removed(file, f->gone[i]) < 0)
            return -1;
    return cow_snapshots_flush(file);
}

/* And the commit. WHY is put behind what is recorded. */
static int forget_chosen(forgetting *f, uint64_t count, cow_operation kind, const char *why)
{
    char what[300];
    int status = forget(f);

    snprintf(what, sizeof what, "%llu version%s %s%s", (unsigned long long)count, count == 1 ? "" : "s",
             kind == COW_OPERATION_SQUASH ? "squashed" : "forgotten", why);
    cow_version_objects_free(f->file->version_objects); /* by their paths */
    f->file->version_objects = NULL;
    return cow_operation_end(f->file, status, kind, UINT64_MAX, what);
}

int cow_file_forget(cow_file *file, h5cow_forget_t *request)
{
    forgetting f = {.file = file};
    int status;

    if ((request->dry_run ? cow_file_open_all(file) : cow_operation_begin(file)) < 0 || cow_snapshots_load(file) < 0)
        return -1;
    status = choose_all(&f, request);
    if (status == 0 && request->forgotten > 0 && !request->dry_run)
        status =
            forget_chosen(&f, request->forgotten, request->kind == 1 ? COW_OPERATION_SQUASH : COW_OPERATION_FORGET, "");
    forgetting_free(&f);
    return status;
}

/* ---- the option keep= ---- */

/* Tags take versions out of the policy. */
static int note_tagged(void *context, const char *name, const H5L_info2_t *info)
{
    forgetting *f = context;
    uint64_t row;
    int found = tagged_row(f, name, info, &row);

    if (found > 0)
        f->why[row] |= COW_KEPT_TAGGED;
    return found < 0 ? -1 : 0;
}

/* f->why, and how many versions there are. */
static int decide(forgetting *f, uint64_t *there)
{
    static const char *const members[] = {"time", "open", NULL};
    cow_layout_log_row *row = calloc(f->rows, sizeof *row);
    int64_t *time = calloc(f->rows, sizeof *time);
    int status = -1;

    f->why = calloc(f->rows, sizeof *f->why);
    if (row == NULL || time == NULL || f->why == NULL)
        cow_error(COW_MEMORY, "%s: no memory for the list of versions", f->file->name);
    else if (cow_layout_log_read_many(f->file->loc, 0, f->rows, members, row) == 0 && visit_tags(f, note_tagged) == 0) {
        *there = 0;
        for (uint64_t at = 0; at < f->rows; at++) {
            time[at] = row[at].time;
            *there += row[at].open != COW_LOG_FORGOTTEN;
            f->why[at] |= row[at].open == COW_LOG_FORGOTTEN ? COW_KEPT_NOT : 0;
        }
        status = cow_keep_decide(&f->file->options->keep.rules, f->rows, time, f->why);
    }
    free(time);
    free(row);
    return status;
}

/* Looking for what nobody needs goes through the whole history. So it is done for a quarter more versions than are kept. */
static int keep_policy(forgetting *f)
{
    uint64_t there, going = 0;
    h5cow_collect_t freed = {0};
    char why[200];

    f->rows = cow_versions_known(f->file);
    if (f->rows == 0 || (f->go = calloc(f->rows + 1, sizeof *f->go)) == NULL || decide(f, &there) < 0)
        return f->rows == 0 ? 0 : -1;
    for (uint64_t at = 0; at + 1 < f->rows; at++)
        going += f->go[at] = f->why[at] == 0;
    if (going == 0 || going * 4 < there - going)
        return 0;
    snprintf(why, sizeof why, ", by keep=%s", f->file->options->keep.text);
    return cow_snapshots_load(f->file) < 0 || forget_chosen(f, going, COW_OPERATION_FORGET, why) < 0
               ? -1
               : cow_file_collect(f->file, &freed);
}

void cow_file_keep_policy(cow_file *file)
{
    forgetting f = {.file = file};

    if (file->options->keep.text == NULL || !cow_file_writable(file) || file->journal == NULL || !file->laid_out ||
        cow_file_state_of(file) != COW_FILE_CLEAN || !cow_file_ours(file) || cow_versions_missed(file))
        return;
    if (cow_operation_begin(file) < 0 || keep_policy(&f) < 0) {
        fprintf(stderr, "h5cow: %s: what keep=%s says could not be done in full, all else is committed: %s\n",
                file->name, file->options->keep.text, cow_error_message());
        cow_error_clear();
    }
    forgetting_free(&f);
}
