/* One version: made, or taken back. Nothing here fails a commit but a disk that fails, and an undoing that fails; see
 * commit.c for what belongs to the head. The tree of the version: snapshot.c.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/witness.h"
#include "journal/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t new_chunks(const cow_file *file)
{
    int64_t n = 0;

    for (size_t i = 0; i < file->pool_count; i++)
        if (file->pool[i].pool != NULL)
            n += (int64_t)(cow_pool_slots(file->pool[i].pool) - file->pool[i].slots_before);
    return n;
}

/* What was asked for, or the number of the version; with something appended where that name is taken. */
static int choose_name(cow_file *file, char name[256])
{
    const char *wanted = cow_description_name(file);
    int exists = 1;

    for (unsigned n = 0; exists == 1; n++) {
        if (wanted == NULL)
            snprintf(name, 256, "%llu", (unsigned long long)file->log_rows + 1 + n);
        else if (n == 0)
            snprintf(name, 256, "%s", wanted);
        else
            snprintf(name, 256, "%s.%u", wanted, n + 1);
        exists = cow_version_exists(file, name);
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
    cow_layout_log_row former; /* amending: its row */
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
        file->lacks_read = file->lacks_lost = true;
        cow_changes_distrust_paths(file);
    }
    for (size_t i = 0; i < file->lacks.count; i++) {
        const cow_layout_lack *lack = &file->lacks.lack[i];
        if (lack->version >= file->log_rows)
            cow_changes_distrust_paths(file); /* which paths changed since is not known */
        if (lack->head != UINT64_MAX &&
            cow_changes_note(file, lack->head, COW_CHANGED_RENEW, lack->path[0] == '\0' ? NULL : lack->path) < 0)
            return -1;
    }
    return 0;
}

/* Commits that made no version: the next one says so. */
static int add_skipped(const cow_file *file, uint64_t at, const char *reason, cow_lacks *lacks)
{
    for (size_t i = 0; i < file->lacks.count; i++) {
        const cow_layout_lack *lack = &file->lacks.lack[i];
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
        if (cow_layout_log_read(file->loc, a->at, &a->former) < 0 || a->former.name == NULL)
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
    cow_layout_log_row row = {.parent = a->amend ? a->former.parent : file->version_row};
    int status = -1;

    if (cow_walk_build(a->walk, a->name, a->at, &row.changed, &a->lacks) < 0 ||
        cow_lacks_put(file, a->at, &a->lacks) < 0 || cow_snapshots_flush(file) < 0 ||
        (row.name = text(a->name)) == NULL || cow_versions_describe_row(&row, cow_description_message(file)) < 0 ||
        cow_file_eoa(file, &eoa) < 0)
        goto done;
    row.added = (int64_t)eoa - (int64_t)file->eoa_before;
    row.chunks = new_chunks(file);
    row.open = !a->finished;
    a->logged = true;
    status = cow_layout_log_write(file->loc, a->at, &row);
done:
    cow_layout_log_row_free(&row);
    return status;
}

/* Everything is where it was. */
static int undo_version(cow_file *file, attempt *a)
{
    if (a->logged &&
        (a->amend ? cow_layout_log_write(file->loc, a->at, &a->former) : cow_layout_log_trim(file->loc, a->at)) < 0)
        return -1;
    return a->begun && (cow_walk_undo(a->walk) < 0 || cow_snapshots_undo(file, &a->saved) < 0) ? -1 : 0;
}

typedef struct noting {
    const cow_file *file;
    cow_lacks *lacks;
} noting;

static int note_change(void *context, uint64_t address, const char *path)
{
    const noting *n = context;

    return cow_lacks_add(n->lacks, n->file->log_rows, address, path, "");
}

/* What changed is noted for whoever makes the next version, with what an amended one lacks: ALL of it, or where there is nothing
 * to make a version of, what no link leads to. */
static int note_changes(cow_file *file, const attempt *a, bool all, const char *reason)
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
    if (all && cow_changes_each(file, note_change, &(noting){file, &lacks}) < 0)
        goto done;
    if (!all && cow_walk_note_unreached(a->walk, file->log_rows, &lacks) < 0)
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

/* The disk failed, or the journal did: what HDF5 was doing then is half done. */
static bool disk_failed(const cow_file *file)
{
    const cow_journal *journal = cow_journal_driver_of_file(file->fileno);

    return cow_journal_driver_file_failures(file->fileno) != file->failures ||
           (journal != NULL && cow_journal_failure(journal) != NULL);
}

/* Views of nodes that only the amended version had. One that stays does no harm. */
static void remove_superseded(cow_file *file)
{
    char path[COW_PATH_MAX];

    for (size_t i = 0; i < file->superseded.capacity; i++) {
        if (!file->superseded.entry[i].used)
            continue;
        cow_view_path(path, file->superseded.entry[i].key);
        if (cow_native_link_delete(file->loc, path) < 0)
            cow_error_clear();
    }
    cow_map_free(&file->superseded);
}

static int settle(cow_file *file, attempt *a)
{
    return cow_walk_settle(a->walk) < 0 ? -1 : cow_snapshots_flush(file);
}

/* The version is there. */
static int end_version(cow_file *file, attempt *a)
{
    if (settle(file, a) < 0) {
        if (disk_failed(file))
            return -1;
        cow_error_clear();
        if (settle(file, a) < 0) /* else the table would name snapshots that are gone */
            return -1;
    }
    remove_superseded(file);
    if (disk_failed(file)) {
        const cow_journal *journal = cow_journal_driver_of_file(file->fileno);
        const char *reason = journal == NULL ? NULL : cow_journal_failure(journal);

        return cow_error(COW_IO, "%s: the disk failed while a version was made: %s", file->name,
                         reason == NULL ? "it cannot be read or written; is it full?" : reason);
    }
    file->version_row = (int64_t)a->at;
    if (!a->amend)
        file->log_rows++;
    file->amend_row = a->finished ? -1 : (int64_t)a->at;
    if (a->finished)
        cow_description_used(file);
    cow_witness(COW_WITNESS_VERSION, file->name);
    cow_lacks_free(&file->lacks);
    file->lacks = a->lacks;
    a->lacks = (cow_lacks){0};
    file->lacks_lost = false;
    cow_lacks_tell(file, a->name, &file->lacks);
    return 0;
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
    if (undo_version(file, a) == 0 && note_changes(file, a, true, reason) == 0)
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

/* The message that the program has given since the last flush. */
static int change_message(const cow_file *file, cow_layout_log_row *row)
{
    if (file->next_message == NULL)
        return 0;
    H5free_memory(row->message);
    return (row->message = text(file->next_message)) == NULL ? -1 : 0;
}

/* The transaction ends with nothing more to say than the last flush did. */
int cow_version_close(cow_file *file)
{
    cow_layout_log_row row = {0};
    int status = -1;

    if (file->amend_row < 0)
        return 0;
    if (cow_layout_log_read(file->loc, (uint64_t)file->amend_row, &row) == 0 && change_message(file, &row) == 0) {
        row.open = 0;
        status = cow_layout_log_write(file->loc, (uint64_t)file->amend_row, &row);
    }
    cow_layout_log_row_free(&row);
    file->amend_row = -1;
    cow_description_used(file);
    if (status == 0 || disk_failed(file))
        return status;
    fprintf(stderr, "h5cow: %s: the newest version stays marked as open: %s\n", file->name, cow_error_message());
    cow_error_clear();
    return 0;
}

/* Is what changed without being reached by links other than what is noted already? 1, 0, -1 */
static int unreached_changed(const cow_file *file, const attempt *a)
{
    cow_lacks found = {0};
    size_t noted = 0;
    int status = cow_walk_note_unreached(a->walk, file->log_rows, &found);

    for (size_t i = 0; i < file->lacks.count; i++)
        noted += file->lacks.lack[i].version >= file->log_rows && file->lacks.lack[i].head != UINT64_MAX;
    if (status == 0)
        status = found.count != noted;
    cow_lacks_free(&found);
    return status;
}

/* There is nothing to make a version of. */
static int same_version(cow_file *file, attempt *a)
{
    int changed = unreached_changed(file, a);

    if (changed < 0 || (changed > 0 && note_changes(file, a, false, NULL) < 0))
        return do_without(file, a);
    return a->finished ? cow_version_close(file) : 0;
}

int cow_version_commit(cow_file *file, bool finished)
{
    attempt a = {.finished = finished};
    int differs = -1, status;

    file->unversioned = false;
    if (cow_versions_meet_blocks(file->loc, file->log_rows) == 0 && renew_lacks(file) == 0 &&
        (a.walk = cow_walk_open(file)) != NULL)
        differs = cow_walk_decide(a.walk);
    if (differs == 0)
        status = same_version(file, &a);
    else if (differs > 0 && begin_version(file, &a) == 0 && write_version(file, &a) == 0)
        status = end_version(file, &a);
    else
        status = do_without(file, &a);
    cow_snapshots_done(&a.saved);
    cow_lacks_free(&a.lacks);
    cow_layout_log_row_free(&a.former);
    if (a.walk != NULL)
        cow_walk_close(a.walk);
    return status;
}
