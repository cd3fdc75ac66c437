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

typedef struct addresses {
    uint64_t *at;
    size_t count, room;
} addresses;

typedef struct forgetting {
    cow_file *file;
    bool *go;        /* by row of the log */
    bool *forgotten; /* those that went earlier; then the same as well */
    int64_t *time;   /* when each was committed */
    uint64_t rows;
    addresses gone;   /* head objects that no version knows any more */
    addresses groups; /* of the newest version's tree, to be looked into */
    addresses ending; /* that are about to lose a link. Groups may be very deep: a list, not one call in the other */
    cow_map losing;   /* of those: how many links so far */
    addresses held;   /* snapshots that only a tree which goes may have */
    addresses copied; /* snapshots that are copied groups, and that nobody needs any more */
    addresses let_go; /* held ones that a row names which nobody needs any more, */
    cow_map staying;  /* and those that another row names */
    cow_map linked;   /* in the newest version's tree */
    uint32_t *why;    /* base/keep.h */
    bool by_policy;   /* the option keep= */
    cow_loc tags;
} forgetting;

static void forgetting_free(forgetting *f)
{
    free(f->go);
    free(f->forgotten);
    free(f->time);
    free(f->gone.at);
    free(f->groups.at);
    free(f->ending.at);
    free(f->held.at);
    free(f->copied.at);
    free(f->let_go.at);
    cow_map_free(&f->staying);
    cow_map_free(&f->losing);
    cow_map_free(&f->linked);
    free(f->why);
}

static int note_address(const forgetting *f, addresses *list, uint64_t address)
{
    if (COW_RESERVE(list->at, list->room, list->count, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for a list of objects", f->file->name);
    list->at[list->count++] = address;
    return 0;
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
    status = cow_native_links(f->tags, COW_LINKS_BY_NAME, visit, f);
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

static int unlink_version(const forgetting *f, cow_layout_log *log, uint64_t at)
{
    static const char *const name[] = {"name", NULL}, *const open[] = {"open", NULL};
    char path[COW_PATH_MAX + 256];
    cow_layout_log_row row = {0};
    int status = -1;

    if (cow_layout_log_take(log, at, 1, name, &row) < 0)
        return -1;
    if (row.name == NULL || strchr(row.name, '/') != NULL)
        cow_error(COW_CORRUPT, "%s: version #%llu has no name; try: h5cow verify", f->file->name,
                  (unsigned long long)at + 1);
    else {
        snprintf(path, sizeof path, COW_PATH_VERSIONS "/%s", row.name);
        row.open = COW_LOG_FORGOTTEN;
        if (cow_native_link_delete(f->file->loc, path) == 0)
            status = cow_layout_log_put_some(log, at, open, &row);
    }
    cow_layout_log_row_free(&row);
    return status;
}

static int unlink_all(const forgetting *f, cow_layout_log *log)
{
    for (uint64_t at = 0; at < f->rows; at++)
        if (f->go[at] && unlink_version(f, log, at) < 0)
            return -1;
    return 0;
}

/* ---- rows of the log ---- */

/* Of a version that is gone the log keeps the numbers, the name, who made it and what they said. HDF5 has texts in blocks of 4 KiB,
 * and a block stays as long as one text in it does. So of many versions at once all texts are freed, and then those
 * that stay are written anew, side by side. */

enum {
    TOGETHER = 24,    /* rows that a policy waits for */
    LOOKED_AT = 1024, /* so many of the newest: a text that was overlooked does no harm */
    MET = 512,        /* in so many of them there may be room for texts */
    BATCH = 64,
};

typedef struct full_rows {
    uint64_t *at; /* rows of versions that are gone, with all their texts */
    cow_layout_log_row *row;
    uint64_t count;
    uint64_t newest; /* of the others that are gone: the row behind it; 0: there is none */
    bool old;        /* some will not be looked at again */
} full_rows;

static void full_rows_free(full_rows *full)
{
    for (uint64_t i = 0; full->row != NULL && i < full->count; i++)
        cow_layout_log_row_free(&full->row[i]);
    free(full->row);
    free(full->at);
}

/* How many rows from AT on are to be looked at, at most a batch. */
static uint64_t run_of_gone(const forgetting *f, uint64_t at)
{
    const uint64_t from = f->rows > LOOKED_AT ? f->rows - LOOKED_AT : 0;
    uint64_t n = 0;

    while (n < BATCH && at + n < f->rows && f->forgotten[at + n] && (at + n >= from || f->go[at + n]))
        n++;
    return n;
}

/* The row of a version always tells its h5cow. */
static int find_full(const forgetting *f, cow_layout_log *log, full_rows *full)
{
    static const char *const members[] = {"h5cow", NULL};
    cow_layout_log_row row[BATCH];
    uint64_t at = 0, n;

    while (at < f->rows) {
        if ((n = run_of_gone(f, at)) == 0) {
            at++;
            continue;
        }
        if (cow_layout_log_take(log, at, n, members, row) < 0)
            return -1;
        for (uint64_t i = 0; i < n; i++) {
            if (row[i].h5cow == NULL)
                full->newest = at + i + 1;
            else {
                full->at[full->count++] = at + i;
                full->old |= f->rows - (at + i) > LOOKED_AT;
            }
            cow_layout_log_row_free(&row[i]);
        }
        at += n;
    }
    return 0;
}

/* HDF5 puts a text into a block that it has met and that has room: rather into one that has such texts already. */
static void meet_others(cow_layout_log *log, const full_rows *full)
{
    static const char *const members[] = {"name", NULL};
    cow_layout_log_row row[BATCH];
    uint64_t at = full->newest > MET ? full->newest - MET : 0, n;

    for (; at < full->newest; at += n) {
        n = full->newest - at < BATCH ? full->newest - at : BATCH;
        if (cow_layout_log_take(log, at, n, members, row) < 0)
            cow_error_clear(); /* there is damage, and room elsewhere */
        else
            for (uint64_t i = 0; i < n; i++)
                cow_layout_log_row_free(&row[i]);
    }
}

/* All of them: a text that cannot be read cannot be freed either. */
static int read_full(cow_layout_log *log, full_rows *full)
{
    for (uint64_t i = 0; i < full->count; i++)
        if (cow_layout_log_take(log, full->at[i], 1, NULL, &full->row[i]) < 0)
            return -1;
    return 0;
}

static int rewrite_full(cow_layout_log *log, const full_rows *full)
{
    static const char *const texts[] = {"name", "user", "host", "program", "hdf5", "h5cow", "message", NULL},
                             *const stay[] = {"name", "user", "message", NULL};
    static const cow_layout_log_row none;

    for (uint64_t i = 0; i < full->count; i++)
        if (cow_layout_log_put_some(log, full->at[i], texts, &none) < 0)
            return -1;
    meet_others(log, full);
    for (uint64_t i = 0; i < full->count; i++)
        if (cow_layout_log_put_some(log, full->at[i], stay, &full->row[i]) < 0)
            return -1;
    return 0;
}

/* A row that cannot be read keeps the others from nothing but this. */
static int shorten_rows(const forgetting *f, cow_layout_log *log)
{
    full_rows full = {.at = calloc(f->rows, sizeof *full.at), .row = calloc(f->rows, sizeof *full.row)};
    int status = 0;

    if (full.at == NULL || full.row == NULL)
        status = cow_error(COW_MEMORY, "%s: no memory for the list of versions", f->file->name);
    else if (find_full(f, log, &full) < 0)
        cow_error_clear();
    else if (!f->by_policy || full.count >= TOGETHER || full.old) {
        if (read_full(log, &full) < 0)
            cow_error_clear();
        else
            status = rewrite_full(log, &full);
    }
    full_rows_free(&full);
    return status;
}

static int leave_trees(const forgetting *f)
{
    cow_layout_log *log = cow_layout_log_open(f->file->loc, NULL);
    int status = log == NULL || unlink_all(f, log) < 0 || shorten_rows(f, log) < 0 ? -1 : 0;

    cow_layout_log_close(log);
    return status;
}

/* ---- snapshots that no tree has any more ---- */

/* An object that lives without a link, by a link to itself or a count, is in no tree of the newer versions; still, what is known of it in
 * them is its newest snapshot, though the version that made that one goes. */

static int note_linked(void *context, const char *name, const H5L_info2_t *info)
{
    forgetting *f = context;
    uint64_t address = cow_address(&info->u.token);

    (void)name;
    if (info->type != H5L_TYPE_HARD || cow_map_get(&f->linked, address, NULL))
        return 0;
    return cow_map_put(&f->linked, address, 0) < 0 ? -1 : note_address(f, &f->groups, address);
}

/* All that the tree of the newest version has. */
static int walk_newest(forgetting *f)
{
    H5L_info2_t root = {.type = H5L_TYPE_HARD};
    char path[1024];
    H5O_info2_t info;

    if (cow_revision_resolve(f->file->native, "~0", path, sizeof path) < 0 ||
        cow_native_info(f->file->loc, path, H5O_INFO_BASIC, &info) < 0)
        return -1;
    root.u.token = info.token;
    if (note_linked(f, "", &root) < 0)
        return -1;
    while (f->groups.count > 0) {
        const H5O_token_t token = cow_token(f->groups.at[--f->groups.count]);
        cow_loc object;
        int status = cow_native_open_token(f->file->loc, &token, &object);

        if (status == 0 && object.type == H5I_GROUP)
            status = cow_native_links(object, COW_LINKS_BY_NAME, note_linked, f);
        if (status < 0 || cow_native_close(object) < 0)
            return -1;
    }
    return 0;
}

/* Which rows have a snapshot that may lose its last link; and which links are not needed any more. */
static int look_at_row(void *context, const cow_layout_snapshot_row *row, bool needed)
{
    forgetting *f = context;
    int exists;

    if (row->snapshot == UINT64_MAX || (needed && (row->version >= f->rows || !f->forgotten[row->version])) ||
        cow_map_get(&f->linked, row->snapshot, NULL))
        return 0;
    if (!needed && ((exists = cow_copied_is(f->file, row->snapshot)) < 0 ||
                    (exists && note_address(f, &f->copied, row->snapshot) < 0)))
        return -1;
    if ((exists = cow_held_is(f->file, row->snapshot)) < 0)
        return -1;
    if (needed && exists && cow_map_put(&f->staying, row->snapshot, 0) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for a list of objects", f->file->name);
    if (needed)
        return exists ? 0 : note_address(f, &f->held, row->snapshot);
    return exists ? note_address(f, &f->let_go, row->snapshot) : 0;
}

/* Before the trees go: whatever may be lost is held, and only then what was held is let go: that may be all that uses a named datatype. */
static int hold_doubtful(forgetting *f)
{
    if (walk_newest(f) < 0 || cow_snapshots_weigh(f->file, f->forgotten, f->rows, look_at_row, f) < 0)
        return -1;
    for (size_t i = 0; i < f->held.count; i++)
        if (cow_held_add(f->file, f->held.at[i]) < 0)
            return -1;
    for (size_t i = 0; i < f->let_go.count; i++)
        if (!cow_map_get(&f->staying, f->let_go.at[i], NULL) && cow_held_remove(f->file, f->let_go.at[i]) < 0)
            return -1;
    return 0;
}

/* Has the held SNAPSHOT other links, each of them in the tree of a version? Of a view nobody can tell. 1, 0, -1 */
static int is_linked(cow_file *file, uint64_t snapshot)
{
    const H5O_token_t token = cow_token(snapshot);
    H5O_info2_t info;
    cow_loc object;
    int view = 0;

    if (cow_held_info(file, snapshot, &info) < 0)
        return -1;
    if (info.rc == 1)
        return 0;
    if (info.type == H5O_TYPE_DATASET) {
        if (cow_native_open_token(file->loc, &token, &object) < 0)
            return -1;
        view = cow_dataset_is_view(object.object);
        if (cow_native_close(object) < 0)
            view = -1;
    }
    return view < 0 ? -1 : !view;
}

/* Afterwards: what other trees have as well needs no other link. */
static int let_go_of_linked(forgetting *f)
{
    int linked;

    for (size_t i = 0; i < f->held.count; i++)
        if ((linked = is_linked(f->file, f->held.at[i])) < 0 || (linked && cow_held_remove(f->file, f->held.at[i]) < 0))
            return -1;
    return 0;
}

/* ---- head objects that no version knows ---- */

/* The dataset goes with its last link: what its newest state needs is needed no more. */
static int end_dataset(cow_file *file, void *native)
{
    hid_t dcpl = cow_native_dataset_dcpl(native);
    uint64_t id;
    int kind = dcpl < 0 ? -1 : cow_dataset_kind(file, native, dcpl, &id);

    if (dcpl >= 0)
        H5Pclose(dcpl);
    return kind == 1 ? cow_head_end(file, id) : kind < 0 ? -1 : 0;
}

static int end_member(void *context, const char *name, const H5L_info2_t *link)
{
    forgetting *f = context;
    uint64_t address = cow_address(&link->u.token);

    (void)name;
    if (link->type != H5L_TYPE_HARD || address == cow_address(&f->file->root))
        return 0;
    return cow_snapshots_known(f->file, address) ? cow_file_keep(f->file, address)
                                                 : note_address(f, &f->ending, address);
}

/* It is about to lose a link. Where that is the last one, with those that it loses as well, it goes, and what hangs below it. */
static int end_object(forgetting *f, uint64_t address)
{
    const H5O_token_t token = cow_token(address);
    uint64_t links = 0;
    H5O_info2_t info;
    cow_loc object;
    int status;

    cow_map_get(&f->losing, address, &links);
    if (cow_map_put(&f->losing, address, ++links) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for a list of objects", f->file->name);
    if (cow_native_open_token(f->file->loc, &token, &object) < 0)
        return -1;
    status = cow_native_info(object, NULL, H5O_INFO_BASIC, &info);
    if (status == 0 && info.rc == links && object.type == H5I_DATASET)
        status = end_dataset(f->file, object.object);
    else if (status == 0 && info.rc == links && object.type == H5I_GROUP)
        status = cow_native_links(object, COW_LINKS_BY_NAME, end_member, f);
    return cow_native_close(object) < 0 ? -1 : status;
}

static int end_removed(forgetting *f, uint64_t address)
{
    const H5O_token_t token = cow_token(address);
    int removed = cow_file_removed(f->file, &token);

    if (removed <= 0)
        return removed;
    cow_map_free(&f->losing); /* what was lost before is not counted any more */
    if (note_address(f, &f->ending, address) < 0)
        return -1;
    while (f->ending.count > 0)
        if (end_object(f, f->ending.at[--f->ending.count]) < 0)
            return -1;
    return cow_file_unkeep(f->file, address);
}

static int note_gone(void *context, uint64_t head)
{
    forgetting *f = context;

    return note_address(f, &f->gone, head);
}

/* When each version was committed, and which ones are gone already. */
static int read_log(forgetting *f)
{
    static const char *const members[] = {"time", "open", NULL};
    cow_layout_log_row *row = calloc(f->rows, sizeof *row);
    int status = -1;

    f->time = calloc(f->rows, sizeof *f->time);
    f->forgotten = calloc(f->rows, sizeof *f->forgotten);
    if (row == NULL || f->time == NULL || f->forgotten == NULL)
        cow_error(COW_MEMORY, "%s: no memory for the list of versions", f->file->name);
    else if (cow_layout_log_read_many(f->file->loc, 0, f->rows, members, row) == 0) {
        for (uint64_t at = 0; at < f->rows; at++) {
            f->time[at] = row[at].time;
            f->forgotten[at] = row[at].open == COW_LOG_FORGOTTEN;
        }
        status = 0;
    }
    free(row); /* no texts were asked for */
    return status;
}

static int forget(forgetting *f)
{
    for (uint64_t at = 0; at < f->rows; at++)
        f->forgotten[at] |= f->go[at];
    if (hold_doubtful(f) < 0 || leave_trees(f) < 0)
        return -1;
    for (size_t i = 0; i < f->copied.count; i++)
        cow_copied_drop(f->file, f->copied.at[i]); /* no tree has them any more */
    if (let_go_of_linked(f) < 0 || cow_snapshots_purge(f->file, f->forgotten, f->rows, note_gone, f) < 0)
        return -1;
    for (size_t i = 0; i < f->gone.count; i++)
        if (end_removed(f, f->gone.at[i]) < 0)
            return -1;
    return cow_snapshots_flush(f->file);
}

/* And the commit. KIND: how it is recorded, where no policy says so. */
static int forget_chosen(forgetting *f, uint64_t count, cow_operation kind)
{
    char what[100];
    int status = forget(f);

    cow_version_objects_free(f->file->version_objects); /* by their paths */
    f->file->version_objects = NULL;
    if (f->by_policy) {
        if (status == 0)
            status = cow_operation_record_kept(f->file, count, f->file->options->keep.text);
        return cow_operation_end_recorded(f->file, status);
    }
    snprintf(what, sizeof what, "%llu version%s %s", (unsigned long long)count, count == 1 ? "" : "s",
             kind == COW_OPERATION_SQUASH ? "squashed" : "forgotten");
    return cow_operation_end(f->file, status, kind, UINT64_MAX, what);
}

int cow_file_forget(cow_file *file, h5cow_forget_t *request)
{
    forgetting f = {.file = file};
    int status;

    if ((request->dry_run ? cow_file_open_all(file) : cow_operation_begin(file)) < 0 || cow_snapshots_load(file) < 0)
        return -1;
    if (!request->dry_run && cow_datasets_in_use(file))
        return cow_error(COW_USAGE, "%s: datasets are open; close them before versions are forgotten", file->name);
    status = choose_all(&f, request);
    if (status == 0 && request->forgotten > 0 && !request->dry_run && (status = read_log(&f)) == 0)
        status =
            forget_chosen(&f, request->forgotten, request->kind == 1 ? COW_OPERATION_SQUASH : COW_OPERATION_FORGET);
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
    *there = 0;
    if (read_log(f) < 0)
        return -1;
    if ((f->why = calloc(f->rows, sizeof *f->why)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for the list of versions", f->file->name);
    for (uint64_t at = 0; at < f->rows; at++) {
        *there += !f->forgotten[at];
        f->why[at] = f->forgotten[at] ? COW_KEPT_NOT : 0;
    }
    return visit_tags(f, note_tagged) < 0 ? -1
                                          : cow_keep_decide(&f->file->options->keep.rules, f->rows, f->time, f->why);
}

/* Looking for what nobody needs goes through the whole history. So it is done for a quarter more versions than are kept. */
static int keep_policy(forgetting *f)
{
    uint64_t there, going = 0;

    f->rows = cow_versions_known(f->file);
    if (f->rows == 0 || (f->go = calloc(f->rows + 1, sizeof *f->go)) == NULL || decide(f, &there) < 0)
        return f->rows == 0 ? 0 : -1;
    for (uint64_t at = 0; at + 1 < f->rows; at++)
        going += f->go[at] = f->why[at] == 0;
    if (going == 0 || going * 4 < there - going)
        return 0;
    return cow_snapshots_load(f->file) < 0 || forget_chosen(f, going, COW_OPERATION_FORGET) < 0
               ? -1
               : cow_file_collect_by_policy(f->file);
}

void cow_file_keep_policy(cow_file *file)
{
    forgetting f = {.file = file, .by_policy = true};

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
