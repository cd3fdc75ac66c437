/* The state of a file: who may write, what failed, when the transaction began. */
#include "history/state.h"

#include "base/error.h"
#include "base/process.h"
#include "base/witness.h"
#include "history/internal.h"
#include "journal/driver.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cow_state {
    cow_file_state kind;
    bool changed;     /* by the program, since the last commit */
    char error[1024]; /* why it is FAILED */
    bool doubtful;    /* then: the commit that failed may have happened */
    bool never;       /* then: there is no commit yet */
    bool told;        /* cow_file_tell_lost */
    pid_t owner;
    bool writable, shut;
    uint64_t end_before;    /* of the file, when the transaction began */
    unsigned long failures; /* of the driver, when the running commit began */
    char *replaced;         /* until the first commit; or NULL */
    bool discard;           /* it is to be removed then */
};

cow_state *cow_state_new(bool writable)
{
    cow_state *state = calloc(1, sizeof *state);

    if (state != NULL) {
        state->owner = cow_process_id();
        state->writable = writable;
    }
    return state;
}

void cow_state_free(cow_state *state)
{
    if (state != NULL)
        free(state->replaced); /* without a commit the old file stays */
    free(state);
}

cow_file_state cow_file_state_of(const cow_file *file)
{
    return file->state->kind;
}

void cow_file_enter(cow_file *file, cow_file_state state)
{
    file->state->kind = state;
}

const char *cow_file_failure(const cow_file *file)
{
    return file->state->error;
}

bool cow_file_ours(const cow_file *file)
{
    return file->state->owner == cow_process_id();
}

void cow_file_allow_writing(cow_file *file)
{
    file->state->writable = true;
}

void cow_file_set_shut(cow_file *file)
{
    file->state->shut = true;
}

bool cow_file_ended(const cow_file *file)
{
    return file->state->kind == COW_FILE_FAILED || file->state->kind == COW_FILE_ABANDONED;
}

bool cow_file_dropped(const cow_file *file)
{
    return file->state->kind == COW_FILE_ABANDONED;
}

int cow_file_wanted(const cow_file *file)
{
    if (!cow_file_dropped(file))
        return 0;
    return cow_error(COW_READ_ONLY,
                     "%s: nothing can be written, and nothing is committed, since the program dropped its changes "
                     "(h5cow_abort); close the file and all that is open in it, then open it again",
                     file->name);
}

int cow_file_fail(cow_file *file)
{
    uint64_t sequence = 1, applied;

    if (cow_file_ended(file))
        return -1;
    file->state->kind = COW_FILE_FAILED;
    snprintf(file->state->error, sizeof file->state->error, "%s", cow_error_message());
    if (file->journal != NULL) {
        file->state->doubtful = cow_journal_doubtful(file->journal);
        cow_journal_state(file->journal, &sequence, &applied);
        cow_journal_abort(file->journal, file->state->error); /* what HDF5 still writes must not become a commit */
    }
    file->state->never = sequence == 0;
    return -1;
}

void cow_file_all_committed(cow_file *file)
{
    file->state->changed = false;
}

void cow_file_tell_lost(cow_file *file)
{
    cow_state *state = file->state;

    if (state->kind != COW_FILE_FAILED || state->told || !cow_file_ours(file))
        return;
    state->told = true;
    if (!state->changed)
        cow_tell("%s: all changes are committed, but the file could not be closed as it should be: %s", file->name,
                 state->error);
    else if (state->doubtful)
        cow_tell_lost(
            file->name,
            "it is not known whether the last changes were committed: %s; to see which is the newest version: "
            "h5cow log %s",
            state->error, file->name);
    else
        cow_tell_lost(file->name,
                      "the last changes were not committed, and are lost: %s; %s; mend the cause and run the "
                      "program again",
                      state->error,
                      state->never ? "nothing was committed before, so there is no file yet"
                                   : "the file is as it was at the commit before");
}

int cow_file_may_write(cow_file *file)
{
    const char *failure;

    if (!file->state->writable)
        return cow_error(COW_READ_ONLY, "%s: the file is open for reading only", file->name);
    if (!cow_file_ours(file))
        return cow_error(COW_USAGE,
                         "%s: this process was forked when the file was open, and what it writes would be lost; open "
                         "the file anew in this process",
                         file->name);
    if (file->state->kind == COW_FILE_FAILED)
        return cow_error(COW_IO,
                         "%s: nothing more is written since an earlier failure (%s); close the file, mend the cause "
                         "and open it again",
                         file->name, file->state->error);
    if (cow_file_wanted(file) < 0)
        return -1;
    if (file->state->shut)
        return cow_error(COW_USAGE, "%s: the HDF5 library is shutting down", file->name);
    if (file->journal != NULL && (failure = cow_journal_failure(file->journal)) != NULL) {
        cow_error(COW_IO, "%s", failure); /* is what is told from now on */
        cow_file_fail(file);
        return cow_error(COW_IO, "%s: nothing more is written since an earlier failure (%s)", file->name, failure);
    }
    return 0;
}

int cow_file_room(cow_file *file)
{
    return file->journal == NULL ? 0 : cow_journal_room(file->journal, 0, true);
}

int cow_file_end(const cow_file *file, uint64_t *eoa)
{
    H5VL_native_file_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_EOA, .args = &native};
    haddr_t end = 0;
    hsize_t size = 0;
    bool journal = file->journal != NULL;

    if (journal)
        native.get_eoa.eoa = &end;
    else { /* some drivers do not tell */
        args.op_type = H5VL_NATIVE_FILE_GET_SIZE;
        native.get_size.size = &size;
    }
    if (H5VLfile_optional(file->native, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        return cow_error_native("%s: cannot get the end of the file", file->name);
    *eoa = journal ? end : size;
    return 0;
}

int cow_file_begin(cow_file *file)
{
    if (cow_file_may_write(file) < 0)
        return -1;
    if (file->state->kind == COW_FILE_CLEAN && cow_file_end(file, &file->state->end_before) < 0)
        return -1;
    file->state->kind = COW_FILE_OPEN;
    file->state->changed = true;
    return 0;
}

bool cow_file_disk_failed(const cow_file *file)
{
    return cow_journal_driver_file_failures(file->fileno) != file->state->failures;
}

void cow_file_excuse(cow_file *file, unsigned long failures)
{
    file->state->failures += failures;
}

bool cow_file_writable(const cow_file *file)
{
    return file->state->writable;
}

bool cow_file_shut(const cow_file *file)
{
    return file->state->shut;
}

int cow_file_grown(const cow_file *file, int64_t *bytes)
{
    uint64_t end;

    if (cow_file_end(file, &end) < 0)
        return -1;
    *bytes = (int64_t)end - (int64_t)file->state->end_before;
    return 0;
}

void cow_file_begin_commit(cow_file *file)
{
    file->state->failures = cow_journal_driver_file_failures(file->fileno);
}

/* ---- the file whose place this one takes ---- */

const char *cow_file_instead_of(const cow_file *file)
{
    return file->state->replaced;
}

int cow_file_replaces(cow_file *file, const char *old, bool discard)
{
    file->state->discard = discard;
    return (file->state->replaced = strdup(old)) == NULL ? cow_error(COW_MEMORY, "%s: no memory", file->name) : 0;
}

void cow_file_replaced(cow_file *file)
{
    if (file->state->replaced == NULL)
        return;
    if (file->state->discard) {
        unlink(file->state->replaced);
        if (cow_journal_sync_name(file->state->replaced) < 0) /* the commit has happened */
            cow_error_clear();
    }
    free(file->state->replaced);
    file->state->replaced = NULL;
}
