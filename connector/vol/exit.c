/* Programs that exit without closing their files still commit.
 *
 * Two moments. At exit(): a commit that a later one may amend, early enough that OpenSSL, which cleans up by an exit
 * handler of its own, still computes hashes: ours is registered after OpenSSL was used, so it runs before. And when the
 * HDF5 library closes (H5atclose): the last commit, after which the files are let go. Later, when HDF5 closes what is
 * still open, predefined datatypes are gone and nothing could be written any more.
 *
 * Both need a call that HDF5 makes on an object of the file: only inside a callback can the history's own handle be closed
 * while others are open, and does HDF5 know whose a named datatype is that a commit meets. So one private operation
 * (operations.c) is called on each file.
 */
#include "vol/vol.h"

#include <stdlib.h>
#include <string.h>

static struct {
    bool at_close; /* H5atclose was called since the library was opened */
    bool at_exit;  /* atexit was called: once for the process */
    bool closing;  /* HDF5 closes: files were let go */
} exiting;

/* The file of an object, by its id or one made for it. Of a file itself HDF5 would tell the one that it is mounted in. */
static hid_t file_of(hid_t id)
{
    if (H5Iget_type(id) != H5I_FILE)
        return H5Iget_file_id(id);
    return H5Iinc_ref(id) < 0 ? H5I_INVALID_HID : id;
}

/* LAST: HDF5 closes. A file whose close has failed is closed then: to the program it was the first time, and HDF5
 * 1.14.5 crashes at its end when three ids of one file are left. */
static void commit_file(hid_t id, bool last)
{
    cow_exit_request request = {.last = last};
    H5VL_optional_args_t args = {.op_type = cow_operation_let_go(), .args = &request};
    char connector[sizeof COW_CONNECTOR_NAME + 1] = "";
    hid_t file;

    if (H5VLget_connector_name(id, connector, sizeof connector) < 0 || strcmp(connector, COW_CONNECTOR_NAME) != 0 ||
        (file = file_of(id)) < 0)
        return;
    H5VLfile_optional_op(file, &args, H5P_DATASET_XFER_DEFAULT, H5ES_NONE);
    H5Fclose(file);
    if (last && request.given_up && file == id)
        H5Fclose(file);
}

static void commit_files(bool last)
{
    ssize_t count;
    hid_t *ids = NULL;

    if (cow_operation_let_go() != 0 && (count = H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL)) > 0 &&
        (ids = malloc((size_t)count * sizeof *ids)) != NULL) {
        count = H5Fget_obj_ids((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL, (size_t)count, ids);
        for (ssize_t i = 0; i < count; i++)
            commit_file(ids[i], last);
    }
    free(ids);
}

/* What no id of the program leads to. */
static void commit_others(bool last)
{
    if (cow_native_enter() == 0) {
        cow_file_commit_all(last);
        cow_native_leave();
    }
}

static void commit_at_exit(void)
{
    /* the library may have been closed by hand, and then there is nothing to do */
    if (!exiting.at_close)
        return;
    H5E_BEGIN_TRY
    {
        commit_files(false);
    }
    H5E_END_TRY
    commit_others(false);
    cow_error_clear();
}

static void commit_at_close(void *context)
{
    (void)context;
    exiting.at_close = false;
    exiting.closing = true;
    H5E_BEGIN_TRY
    {
        commit_files(true);
        commit_others(true);
        cow_operations_unregister();
    }
    H5E_END_TRY
    cow_error_clear();
}

int cow_exit_prepare(bool writable)
{
    /* OpenSSL takes a millisecond to start, and who only reads never needs it */
    if (writable && !exiting.at_exit) {
        if (cow_digest_prepare() < 0)
            return -1;
        /* twice: the first may end in a filter that calls exit */
        if (atexit(commit_at_exit) != 0 || atexit(commit_at_exit) != 0)
            return cow_error(COW_MEMORY, "cannot make sure that changes are committed when the program exits");
        exiting.at_exit = true;
    }
    if (exiting.at_close)
        return 0;
    if (cow_operations_register() < 0)
        return -1;
    if (H5atclose(commit_at_close, NULL) < 0) {
        cow_error_native("cannot make sure that changes are committed when the program exits");
        cow_operations_unregister();
        return -1;
    }
    exiting.at_close = true;
    exiting.closing = false;
    return 0;
}

bool cow_exit_is_closing(void)
{
    return exiting.closing;
}

bool cow_exit_closing(void)
{
    bool closing = exiting.closing;

    exiting.closing = false;
    return closing;
}

void cow_exit_commit(const cow_home *home, void *native, cow_exit_request *request)
{
    request->given_up = home->failed;
    if (home->file != NULL && request->last)
        cow_file_let_go(home->file, native);
    else if (home->file != NULL)
        cow_file_commit_left(home->file);
    for (size_t i = 0; i < home->mounted_count; i++) /* the program may have no id of it any more */
        cow_exit_commit(home->mounted[i], NULL, &(cow_exit_request){.last = request->last});
}
