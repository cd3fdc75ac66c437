/* h5cow.h: for programs that know that their files have a history. Nothing but libhdf5 is linked; the connector h5cow
 * does the work where the program runs with it (HDF5_VOL_CONNECTOR=h5cow), and elsewhere each function is an error that
 * says so. C99 and C++11, HDF5 1.14 or newer. Described, with an example, in docs/api.md.
 *
 * ID is that of a file, or of any object that is open in it: group, dataset, named datatype, attribute. Functions return
 * a negative value on failure, with the reason on HDF5's error stack. Texts are UTF-8, and end with a zero.
 *
 * Each function is one optional operation of the VOL on files (H5VLfind_opt_operation, H5VLfile_optional_op), with one of
 * the structures below as its argument. They begin with their size: later versions of this file may add members behind
 * the last one, and a connector leaves alone, or takes for zeros, what a program does not have.
 *
 * BSD-3-Clause, see LICENSE. */
#ifndef H5COW_H
#define H5COW_H

#include <hdf5.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !H5_VERSION_GE(1, 14, 0)
#error "h5cow.h needs HDF5 1.14 or newer"
#endif

/* ---- what is passed ---- */

/* What is recorded of a version. */
typedef struct h5cow_version_t {
    size_t size;                  /* bytes of this structure that the connector has filled in */
    uint64_t number;              /* 1, 2, 3 ... in the order of commits: FILE@#NUMBER */
    uint64_t parent;              /* number of the version that it was made from, 0: none */
    int64_t seconds, nanoseconds; /* when it was committed, since 1970-01-01 UTC; nanoseconds from 0 to 999999999 */
    int32_t unfinished; /* 1: whoever makes it has flushed the file, and not closed it yet, or ended without */
    int32_t incomplete; /* 1: something could not be put into it; h5cow log says what */
    const char *name;   /* FILE@NAME */
    const char *message;
    const char *user, *host, *program; /* who committed it, where, and the command line */
    const char *hdf5, *h5cow;          /* versions of the libraries that made it */
    int64_t added;                     /* bytes by which the file grew */
    int64_t chunks;                    /* chunks stored anew */
    int64_t changed;                   /* objects that it has anew */
    size_t tag_count;
    const char *const *tags; /* FILE@TAG; a null pointer behind the last one */
    int32_t forgotten;       /* 1: all else of it is gone */
} h5cow_version_t;

/* Argument of "h5cow.version". */
typedef struct h5cow_state_t {
    size_t size;
    size_t version_size;      /* given: sizeof(h5cow_version_t), or 0: only what follows `version` is wanted */
    h5cow_version_t *version; /* null: there is none yet. H5free_memory frees it with all that it points to */
    int32_t old_version;      /* 1: the file was opened as FILE@REVISION; 0: it is the newest state */
    int32_t uncommitted;      /* 1: something was written since `version` */
} h5cow_state_t;

/* Argument of "h5cow.versions". */
typedef struct h5cow_list_t {
    size_t size;
    size_t version_size; /* given: sizeof(h5cow_version_t) */
    size_t count;
    h5cow_version_t *versions; /* oldest first, so number N is versions[N - 1]; null: there are none. As above */
} h5cow_list_t;

/* Argument of "h5cow.describe". */
typedef struct h5cow_description_t {
    size_t size;
    const char *name, *message;
} h5cow_description_t;

/* Argument of "h5cow.commit". */
typedef struct h5cow_commit_t {
    size_t size;
    uint64_t number;
} h5cow_commit_t;

/* Argument of "h5cow.abort". */
typedef struct h5cow_abort_t {
    size_t size;
} h5cow_abort_t;

/* What h5cow_restore tells of a path. Of what is added, removed or replaced, all below it is not told. */
#define H5COW_ADDED    1 /* the version has something there, the file had not */
#define H5COW_REMOVED  2 /* the file had something there, the version has not */
#define H5COW_REPLACED 3 /* another object, or another link, is there */
#define H5COW_CHANGED  4 /* the same object, with other attributes, elements, or order of members */

/* Gets each path; anything but 0 stops, as an error. */
typedef int (*h5cow_tell_t)(void *context, const char *path, int32_t what);

/* Argument of "h5cow.restore". Set what is wanted, the rest to zeros. */
typedef struct h5cow_restore_t {
    size_t size;
    const char *revision;     /* which version: what stands behind FILE@ */
    size_t path_count;        /* 0: the whole file */
    const char *const *paths; /* absolute; these objects alone, with what is below them */
    int32_t dry_run;          /* 1: only tell; the file may be open to be read */
    int32_t force; /* 1: also where the version is incomplete, or the file has what no version has; that is lost then */
    h5cow_tell_t tell; /* may be null */
    void *context;
    uint64_t number; /* answer: of the version that was restored */
    int32_t differs; /* answer: 1: there was something to do */
    int32_t kind;    /* how it is recorded: 0 restored, 1 undone, 2 redone */
} h5cow_restore_t;

/* Argument of "h5cow.forget". Set what is wanted, the rest to zeros. */
typedef struct h5cow_forget_t {
    size_t size;
    size_t count;
    const char *const *revisions; /* which versions: what stands behind FILE@ */
    int32_t kind;                 /* how it is recorded: 0 forgotten, 1 squashed */
    int32_t dry_run;              /* 1: only ask whether it may be done; the file may be open to be read */
    uint64_t forgotten;           /* answer: how many versions */
} h5cow_forget_t;

/* Argument of "h5cow.collect". */
typedef struct h5cow_collect_t {
    size_t size;
    uint64_t chunks; /* answer: places of chunks that have become free */
    uint64_t bytes;  /* answer: what these took in the file */
    uint64_t holes;  /* answer: bytes given back to the file system, as holes in the file */
} h5cow_collect_t;

/* Argument of "h5cow.name". */
typedef struct h5cow_naming_t {
    size_t size;
    int32_t what; /* one of the numbers below */
    int32_t force;
    const char *revision, *text;
} h5cow_naming_t;

/* ---- not for programs ---- */

#define H5COW_PRIVATE_TAG     1
#define H5COW_PRIVATE_UNTAG   2
#define H5COW_PRIVATE_RENAME  3
#define H5COW_PRIVATE_MESSAGE 4

#define H5COW_PRIVATE_ELSEWHERE                                                                                        \
    "the file is not open through h5cow: run the program with HDF5_VOL_CONNECTOR=h5cow, or by 'h5cow run'"

/* The error, printed as HDF5 prints its own. Always -1. */
static inline herr_t h5cow_private_fail(const char *function, const char *why)
{
    unsigned second = 0;
    H5E_auto2_t print = NULL;
    void *data = NULL;

    H5Eclear2(H5E_DEFAULT);
    H5Epush2(H5E_DEFAULT, __FILE__, function, __LINE__, H5E_ERR_CLS, H5E_VOL, H5E_UNSUPPORTED, "%s", why);
    if (H5Eauto_is_v2(H5E_DEFAULT, &second) >= 0 && second != 0 && H5Eget_auto2(H5E_DEFAULT, &print, &data) >= 0 &&
        print != NULL)
        print(H5E_DEFAULT, data);
    return -1;
}

/* The file of ID, and the number of OPERATION on it. NULL, or why there is none; nothing is printed. */
static inline const char *h5cow_private_find(hid_t id, const char *operation, hid_t *file, int *number)
{
    char connector[16] = "";
    uint64_t flags = 0;
    const char *why = NULL;

    H5E_BEGIN_TRY
    {
        *file = H5Iget_type(id) == H5I_FILE ? id : H5Iget_file_id(id);
        if (*file < 0)
            why = "this is not the id of a file, or of an object in one";
        else if (H5VLfind_opt_operation(H5VL_SUBCLS_FILE, operation, number) < 0)
            why = H5VLget_connector_name(*file, connector, sizeof connector) > 0 && strcmp(connector, "h5cow") == 0
                      ? "the h5cow of this program is too old for this: install a newer one"
                      : H5COW_PRIVATE_ELSEWHERE;
        else if (H5VLquery_optional(*file, H5VL_SUBCLS_FILE, *number, &flags) < 0 ||
                 (flags & H5VL_OPT_QUERY_SUPPORTED) == 0)
            why = H5COW_PRIVATE_ELSEWHERE;
    }
    H5E_END_TRY
    return why;
}

static inline herr_t h5cow_private_call(hid_t id, const char *function, const char *operation, void *argument)
{
    H5VL_optional_args_t args;
    hid_t file = H5I_INVALID_HID, stack;
    herr_t status = -1;
    const char *why;

    args.op_type = 0;
    args.args = argument;
    if ((why = h5cow_private_find(id, operation, &file, &args.op_type)) == NULL)
        status = H5VLfile_optional_op(file, &args, H5P_DATASET_XFER_DEFAULT, H5ES_NONE);
    if (file >= 0 && file != id) {
        stack = status < 0 && why == NULL ? H5Eget_current_stack() : H5I_INVALID_HID;
        if (H5Fclose(file) < 0)
            status = -1;
        if (stack >= 0)
            H5Eset_current_stack(stack);
    }
    return why == NULL ? status : h5cow_private_fail(function, why);
}

static inline herr_t h5cow_private_name(hid_t id, const char *function, int32_t what, int force, const char *revision,
                                        const char *text)
{
    h5cow_naming_t naming;

    memset(&naming, 0, sizeof naming);
    naming.size = sizeof naming;
    naming.what = what;
    naming.force = force != 0;
    naming.revision = revision;
    naming.text = text;
    return h5cow_private_call(id, function, "h5cow.name", &naming);
}

/* ---- for programs ---- */

/* Has the file a history, and is it open through h5cow, so that the functions below can work? Positive: yes; 0: no, which
 * is no error. */
static inline htri_t h5cow_has_history(hid_t id)
{
    h5cow_state_t state;
    htri_t has = 0;

    memset(&state, 0, sizeof state);
    state.size = sizeof state;
    H5E_BEGIN_TRY
    {
        has = h5cow_private_call(id, "h5cow_has_history", "h5cow.version", &state) >= 0;
    }
    H5E_END_TRY
    return has;
}

/* Name and message of the version to come: the next one that is finished. NULL leaves one as it is; "" is no message, or
 * the version's number for a name. What is said here goes before the options `name` and `message`, for one version. */
static inline herr_t h5cow_describe(hid_t id, const char *name, const char *message)
{
    h5cow_description_t description;

    memset(&description, 0, sizeof description);
    description.size = sizeof description;
    description.name = name;
    description.message = message;
    return h5cow_private_call(id, "h5cow_describe", "h5cow.describe", &description);
}

/* Make a finished version of the changes now; the file stays open. NUMBER (may be NULL) gets the version's, or 0: nothing
 * had changed, so there is none. (Also 0: all is committed, but no version could be made, as standard error says; the
 * next one has the changes.) */
static inline herr_t h5cow_commit(hid_t id, uint64_t *number)
{
    h5cow_commit_t made;
    herr_t status;

    memset(&made, 0, sizeof made);
    made.size = sizeof made;
    status = h5cow_private_call(id, "h5cow_commit", "h5cow.commit", &made);
    if (number != NULL)
        *number = made.number;
    return status;
}

/* What is open: the version that FILE@REVISION names, else the newest one, and whether something was written since. Free
 * STATE->version with h5cow_free. */
static inline herr_t h5cow_version(hid_t id, h5cow_state_t *state)
{
    if (state == NULL)
        return h5cow_private_fail("h5cow_version", "there is no place for the answer: state is NULL");
    memset(state, 0, sizeof *state);
    state->size = sizeof *state;
    state->version_size = sizeof *state->version;
    return h5cow_private_call(id, "h5cow_version", "h5cow.version", state);
}

/* All versions of the file, the oldest first. Free *VERSIONS with h5cow_free. */
static inline herr_t h5cow_versions(hid_t id, size_t *count, h5cow_version_t **versions)
{
    h5cow_list_t list;
    herr_t status;

    if (count == NULL || versions == NULL)
        return h5cow_private_fail("h5cow_versions", "there is no place for the answer: count or versions is NULL");
    memset(&list, 0, sizeof list);
    list.size = sizeof list;
    list.version_size = sizeof *list.versions;
    status = h5cow_private_call(id, "h5cow_versions", "h5cow.versions", &list);
    *count = list.count;
    *versions = list.versions;
    return status;
}

/* Drop what was written since the last commit. Until the file is closed nothing more can be written; closing it succeeds
 * and commits nothing. A file that this program has made, and never committed, is gone then. */
static inline herr_t h5cow_abort(hid_t id)
{
    h5cow_abort_t argument;

    memset(&argument, 0, sizeof argument);
    argument.size = sizeof argument;
    return h5cow_private_call(id, "h5cow_abort", "h5cow.abort", &argument);
}

/* The file, or objects of it, become as they were in a version: REQUEST. The commit that follows makes a version of that; of the whole
 * file, its parent is the version that was restored. No data is copied. Refused while something is not committed, or while
 * datasets of the file are open; other objects that are open may be deleted by it. If it fails half-way, it was as
 * h5cow_abort. */
static inline herr_t h5cow_restore(hid_t id, h5cow_restore_t *request)
{
    if (request == NULL)
        return h5cow_private_fail("h5cow_restore", "what is to be restored? request is NULL");
    request->size = sizeof *request;
    return h5cow_private_call(id, "h5cow_restore", "h5cow.restore", request);
}

/* The four below change what versions that are there are called. Each is a commit of its own, makes no version, and is recorded (h5cow log
 * --operations). Refused while something is not committed. REVISION: what stands behind FILE@. */

/* The version may be opened as FILE@TAG as well. MOVE: a tag of that name may lead to another version so far. */
static inline herr_t h5cow_tag(hid_t id, const char *revision, const char *tag, int move)
{
    return h5cow_private_name(id, "h5cow_tag", H5COW_PRIVATE_TAG, move, revision, tag);
}

static inline herr_t h5cow_untag(hid_t id, const char *tag)
{
    return h5cow_private_name(id, "h5cow_untag", H5COW_PRIVATE_UNTAG, 0, "", tag);
}

/* The version is called NAME from now on. Refused while a version of the file is open in this program. */
static inline herr_t h5cow_rename(hid_t id, const char *revision, const char *name)
{
    return h5cow_private_name(id, "h5cow_rename", H5COW_PRIVATE_RENAME, 0, revision, name);
}

/* The message of a version that is there. */
static inline herr_t h5cow_set_message(hid_t id, const char *revision, const char *message)
{
    return h5cow_private_name(id, "h5cow_set_message", H5COW_PRIVATE_MESSAGE, 0, revision, message);
}

/* The versions of REQUEST go; all others stay as they are. Name, time and message of those that go stay in the log. Refused for
 * the newest version, for versions that a tag leads to, and while a version of the file is open in this program or something
 * is not committed. One commit, which makes no version. Nothing of the space is free before h5cow_collect. */
static inline herr_t h5cow_forget(hid_t id, h5cow_forget_t *request)
{
    if (request == NULL)
        return h5cow_private_fail("h5cow_forget", "what is to be forgotten? request is NULL");
    request->size = sizeof *request;
    return h5cow_private_call(id, "h5cow_forget", "h5cow.forget", request);
}

/* What no version and nothing of the head needs becomes free: places of chunks, for new chunks; and where the file system can
 * have holes, their bytes. One commit, which makes no version. ANSWER may be null. */
static inline herr_t h5cow_collect(hid_t id, h5cow_collect_t *answer)
{
    h5cow_collect_t own;

    if (answer == NULL)
        answer = &own;
    memset(answer, 0, sizeof *answer);
    answer->size = sizeof *answer;
    return h5cow_private_call(id, "h5cow_collect", "h5cow.collect", answer);
}

/* NULL is freed as well. */
static inline herr_t h5cow_free(h5cow_version_t *versions)
{
    return H5free_memory(versions);
}

#endif
