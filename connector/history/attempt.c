/* One version: made, or taken back. Nothing here fails a commit but a disk that fails, and an undoing that fails; see
 * commit.c for what belongs to the head. The tree of the version: snapshot.c.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/witness.h"
#include "journal/driver.h"
#include "journal/label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was asked for, or the number of the version; with something appended where that name is taken. */
static int choose_name(cow_file *file, char name[256])
{
    const char *wanted = cow_description_name(file);
    int exists = 1;

    for (unsigned n = 0; exists == 1; n++) {
        if (wanted == NULL)
            snprintf(name, 256, "%llu", (unsigned long long)cow_versions_known(file) + 1 + n);
        else if (n == 0)
            snprintf(name, 256, "%s", wanted);
        else
            snprintf(name, 256, "%s.%u", wanted, n + 1);
        exists = cow_version_exists(file, name);
    }
    return exists;
}

/* A version that is being made, so that it can be taken back. */
typedef struct attempt {
    cow_walk *walk;
    bool finished, amend;
    uint64_t at; /* row in the log */
    char name[256];
    int64_t time;
    cow_layout_log_row former; /* amending: its row */
    int64_t changed;           /* what its row says */
    cow_lacks lacks;
    cow_snapshots_saved saved;
    bool begun, logged;
} attempt;

/* What the newest version lacks, and what changed when none could be made, is made anew. */
static int renew_lack(void *context, const cow_layout_lack *lack)
{
    cow_file *file = context;

    if (lack->version >= cow_versions_known(file))
        cow_changes_distrust_paths(file); /* which paths changed since is not known */
    return lack->head == UINT64_MAX
               ? 0
               : cow_changes_note(file, lack->head, COW_CHANGED_RENEW, lack->path[0] == '\0' ? NULL : lack->path);
}

static int renew_lacks(cow_file *file)
{
    if (cow_lacks_load(file) < 0) {
        fprintf(stderr, "h5cow: %s: %s; the next version is made anew\n", file->name, cow_error_message());
        cow_error_clear();
        cow_lacks_lose(file);
        cow_changes_distrust_paths(file);
    }
    return cow_lacks_each(file, renew_lack, file);
}

/* Commits that made no version: the next one says so. */
typedef struct skipped {
    const cow_file *file;
    uint64_t at; /* row of the version that says so */
    const char *reason;
    cow_lacks *lacks;
} skipped;

static int add_former_skipped(void *context, const cow_layout_lack *lack)
{
    skipped *s = context;

    if (lack->head != UINT64_MAX || lack->version < cow_versions_known(s->file))
        return 0;
    if (s->reason != NULL && strcmp(s->reason, lack->reason) == 0)
        s->reason = NULL;
    return cow_lacks_add(s->lacks, s->at, UINT64_MAX, NULL, lack->reason);
}

static int add_skipped(const cow_file *file, uint64_t at, const char *reason, cow_lacks *lacks)
{
    skipped s = {file, at, reason, lacks};

    if (cow_lacks_each(file, add_former_skipped, &s) < 0)
        return -1;
    return s.reason == NULL ? 0 : cow_lacks_add(lacks, at, UINT64_MAX, NULL, s.reason);
}

static int begin_version(cow_file *file, attempt *a)
{
    int64_t running = cow_versions_running(file);

    a->amend = running >= 0;
    a->at = a->amend ? (uint64_t)running : cow_versions_known(file);
    if (a->amend) {
        if (cow_layout_log_read(file->loc, a->at, &a->former) < 0 || a->former.name == NULL)
            return cow_error(COW_CORRUPT, "%s: the version to amend is gone", file->name);
        snprintf(a->name, sizeof a->name, "%s", a->former.name);
    } else if (choose_name(file, a->name) < 0)
        return -1;
    if (add_skipped(file, a->at, NULL, &a->lacks) < 0 || cow_snapshots_begin(file, a->at, &a->saved) < 0)
        return -1;
    a->begun = true;
    cow_copied_begin(file, a->amend);
    return 0;
}

static int write_version(cow_file *file, attempt *a)
{
    cow_layout_log_row row = {.parent = a->amend ? a->former.parent : cow_versions_parent(file)};
    int status = -1;

    if (cow_walk_build(a->walk, a->name, a->at, &a->lacks) < 0 || cow_lacks_put(file, a->at, &a->lacks) < 0 ||
        cow_snapshots_flush(file) < 0 || (row.name = cow_versions_text(a->name)) == NULL ||
        cow_versions_describe_row(&row, cow_description_message(file)) < 0 || cow_file_grown(file, &row.added) < 0)
        goto done;
    a->time = row.time;
    row.chunks = cow_pools_added(file);
    row.changed = a->changed = cow_snapshots_count_of(file, a->at);
    row.open = !a->finished;
    a->logged = true;
    status = cow_layout_log_put(cow_versions_log(file), a->at, &row);
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
    if (!a->begun)
        return 0;
    if (cow_walk_undo(a->walk) < 0 || cow_snapshots_undo(file, &a->saved) < 0)
        return -1;
    cow_copied_settle(file);
    return 0;
}

typedef struct noting {
    const cow_file *file;
    uint64_t from;
    cow_lacks *lacks;
} noting;

static int note_change(void *context, uint64_t address, const char *path)
{
    const noting *n = context;

    return cow_lacks_add(n->lacks, cow_versions_known(n->file), address, path, "");
}

/* What an amended version lacks, it lacks still. */
static int note_former(void *context, const cow_layout_lack *lack)
{
    const noting *n = context;

    return lack->version < n->from || lack->version >= cow_versions_known(n->file)
               ? 0
               : cow_lacks_add(n->lacks, lack->version, lack->head, lack->path, lack->reason);
}

/* What changed is noted for whoever makes the next version, with what an amended one lacks: ALL of it, or where there is nothing
 * to make a version of, what no link leads to. */
static int note_changes(cow_file *file, const attempt *a, bool all, const char *reason)
{
    int64_t running = cow_versions_running(file);
    uint64_t known = cow_versions_known(file);
    cow_lacks lacks = {0};
    noting n = {file, running >= 0 ? (uint64_t)running : known, &lacks};
    int status = -1;

    if (cow_lacks_each(file, note_former, &n) < 0 ||
        add_skipped(file, known, a->finished ? reason : NULL, &lacks) < 0 ||
        (all ? cow_changes_each(file, note_change, &n) : cow_walk_note_unreached(a->walk, known, &lacks)) < 0 ||
        cow_lacks_put(file, n.from, &lacks) < 0)
        goto done;
    cow_lacks_replace(file, &lacks);
    status = 0;
done:
    cow_lacks_free(&lacks);
    return status;
}

/* The disk failed, or the journal did: what HDF5 was doing then is half done. */
static bool disk_failed(const cow_file *file)
{

    return cow_file_disk_failed(file) || (file->journal != NULL && cow_journal_failure(file->journal) != NULL);
}

static int settle(cow_file *file, attempt *a)
{
    if (cow_walk_settle(a->walk) < 0)
        return -1;
    cow_copied_settle(file);
    return cow_snapshots_flush(file);
}

/* Which named datatypes went with their use shows when the former tree has gone: then the version has fewer objects than its row says. */
static void correct_changed(cow_file *file, const attempt *a)
{
    static const char *const members[] = {"changed", NULL};
    const cow_layout_log_row row = {.changed = cow_snapshots_count_of(file, a->at)};

    if (row.changed != a->changed && cow_layout_log_put_some(cow_versions_log(file), a->at, members, &row) < 0)
        cow_error_clear(); /* the number stays too high; a disk that fails is noticed by the caller */
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
    correct_changed(file, a);
    cow_superseded_remove(file);
    if (disk_failed(file)) {
        const char *reason = file->journal == NULL ? NULL : cow_journal_failure(file->journal);

        return cow_error(COW_IO, "%s: the disk failed while a version was made: %s", file->name,
                         reason == NULL ? "it cannot be read or written; is it full?" : reason);
    }
    cow_versions_made(file, a->at, a->finished);
    if (a->finished)
        cow_description_used(file);
    if (file->journal != NULL)
        cow_label_version(file->journal, a->name, a->at + 1, a->time); /* the commit tells `run` */
    else
        cow_witness(COW_WITNESS_VERSION, "");
    cow_lacks_replace(file, &a->lacks);
    cow_lacks_tell(file, a->name);
    return 0;
}

/* No version can be made, for the reason that is recorded. The head is committed all the same: 0. */
static int do_without(cow_file *file, attempt *a)
{
    char reason[1024];
    cow_error_held *held;
    int status = -1;

    /* without the list of snapshots nobody knows what of the head a version needs */
    if (disk_failed(file) || cow_snapshots_failed(file))
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
    cow_versions_set_missed(file, true);
    if (a->finished)
        cow_versions_end(file);
    return 0;
}

/* The message that the program has given since the last flush. */
static int change_message(const cow_file *file, cow_layout_log_row *row)
{
    const char *given = cow_description_given(file);

    if (given == NULL)
        return 0;
    H5free_memory(row->message);
    return (row->message = cow_versions_text(given)) == NULL ? -1 : 0;
}

/* The transaction ends with nothing more to say than the last flush did. */
int cow_version_close(cow_file *file)
{
    int64_t running = cow_versions_running(file);
    cow_layout_log_row row = {0};
    int status = -1;

    if (running < 0)
        return 0;
    if (cow_layout_log_read(file->loc, (uint64_t)running, &row) == 0 && change_message(file, &row) == 0) {
        row.open = 0;
        status = cow_layout_log_write(file->loc, (uint64_t)running, &row);
    }
    cow_layout_log_row_free(&row);
    cow_versions_end(file);
    cow_description_used(file);
    if (status == 0 || disk_failed(file))
        return status;
    fprintf(stderr, "h5cow: %s: the newest version stays marked as open: %s\n", file->name, cow_error_message());
    cow_error_clear();
    return 0;
}

typedef struct unreached_noted {
    const cow_file *file;
    size_t count;
} unreached_noted;

static int count_unreached(void *context, const cow_layout_lack *lack)
{
    unreached_noted *noted = context;

    noted->count += lack->version >= cow_versions_known(noted->file) && lack->head != UINT64_MAX;
    return 0;
}

/* Is what changed without being reached by links other than what is noted already? 1, 0, -1 */
static int unreached_changed(const cow_file *file, const attempt *a)
{
    unreached_noted noted = {.file = file};
    cow_lacks found = {0};
    int status = cow_walk_note_unreached(a->walk, cow_versions_known(file), &found);

    cow_lacks_each(file, count_unreached, &noted);
    if (status == 0)
        status = cow_lacks_count(&found) != noted.count;
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

    cow_versions_set_missed(file, false);
    if (cow_versions_meet(file) == 0 && renew_lacks(file) == 0 && (a.walk = cow_walk_open(file)) != NULL)
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
