/* Operations on files that HDF5 does not know: those for programs that know of versions, api/h5cow.h, and one of our own,
 * which exit.c calls. HDF5 gives each a number, while it is open, by which a program finds it (H5VLfind_opt_operation).
 *
 * A program passes a structure that begins with its size, made by its own h5cow.h, which may be older or newer than ours.
 * We work on a copy: what the program does not have is zeros, and is not written; what we do not know must be zeros.
 */
#include "vol/vol.h"

#include "h5cow.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MOST 4096 /* of a structure: more is a size that was never set */

/* ---- structures ---- */

/* OURS, of SIZE bytes, becomes what is GIVEN, of which LEAST are needed. */
static int take(const char *operation, const void *given, void *ours, size_t size, size_t least)
{
    size_t theirs = 0;

    if (given != NULL)
        memcpy(&theirs, given, sizeof theirs);
    if (theirs < least || theirs > SIZE_MOST)
        return cow_error(COW_USAGE,
                         "%s: the argument is a structure of h5cow.h that begins with its size, %zu to %d bytes",
                         operation, least, SIZE_MOST);
    memset(ours, 0, size);
    memcpy(ours, given, theirs < size ? theirs : size);
    for (size_t i = size; i < theirs; i++)
        if (((const char *)given)[i] != 0)
            return cow_error(COW_UNSUPPORTED,
                             "%s: the program asks for something that this h5cow, " H5COW_VERSION
                             ", does not know; use a newer one",
                             operation);
    return 0;
}

/* And back. OURS begins with the size that was given. */
static void give(void *given, const void *ours, size_t size)
{
    size_t theirs;

    memcpy(&theirs, given, sizeof theirs);
    memcpy(given, ours, theirs < size ? theirs : size);
}

#define THROUGH(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))

/* Of h5cow_version_t: its number, at least. */
static int check_version_size(const char *operation, size_t size)
{
    if (size < THROUGH(h5cow_version_t, number) || size > SIZE_MOST)
        return cow_error(COW_USAGE, "%s: version_size is that of a h5cow_version_t, %zu to %d bytes", operation,
                         THROUGH(h5cow_version_t, number), SIZE_MOST);
    return 0;
}

/* ---- files ---- */

static int no_history(const cow_object *object)
{
    char name[1024];

    cow_native_file_name(object->handle, name, sizeof name);
    if (object->home != NULL && object->home->foreign)
        return cow_error(COW_UNSUPPORTED,
                         "%s: the file has a history, but it is open with a file driver, or was reached by a link, "
                         "round it; open the file itself with the default driver",
                         name);
    return cow_error(COW_NOT_FOUND,
                     "%s: the file has no history, so there are no versions of it; h5cow import FILE, or the option "
                     "adopt=yes, gives it one",
                     name);
}

/* NULL: it has no history. */
static cow_file *file_of(const cow_object *object)
{
    if (object->home != NULL && object->home->file != NULL)
        return object->home->file;
    no_history(object);
    return NULL;
}

/* The same of one whose newest state is open. */
static cow_file *head_of(const cow_object *object)
{
    cow_file *file = file_of(object);

    if (file == NULL || object->home->version == NULL)
        return file;
    cow_error(COW_READ_ONLY, "%s: version %s is open, which is never changed; open the file itself",
              cow_file_name(file), strrchr(object->home->version, '/') + 1);
    return NULL;
}

/* ---- the operations ---- */

static int let_go(cow_object *object, const char *operation, void *argument)
{
    (void)operation;
    if (object->home != NULL)
        cow_exit_commit(object->home, object->handle, argument);
    return 0;
}

static int describe(cow_object *object, const char *operation, void *argument)
{
    h5cow_description_t a;
    cow_file *file;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_description_t, size)) < 0 ||
        (file = head_of(object)) == NULL)
        return -1;
    return cow_file_describe(file, a.name, a.message);
}

static int commit(cow_object *object, const char *operation, void *argument)
{
    h5cow_commit_t a;
    cow_file *file;
    int status;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_commit_t, size)) < 0 || (file = head_of(object)) == NULL)
        return -1;
    status =
        cow_sources_flush(object->home) < 0 || cow_file_make_version(file, &a.number) < 0 || cow_file_refused(file) < 0
            ? -1
            : 0;
    give(argument, &a, sizeof a);
    return status;
}

static int tell_version(cow_object *object, const char *operation, void *argument)
{
    h5cow_state_t a;
    cow_file *file;
    uint64_t count, row;
    void *version;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_state_t, version)) < 0 ||
        (a.version_size != 0 && check_version_size(operation, a.version_size) < 0) ||
        (file = file_of(object)) == NULL || cow_versions_count(file, &count) < 0)
        return -1;
    a.version = NULL;
    a.old_version = object->home->version != NULL;
    a.uncommitted = !a.old_version && cow_file_changed(file);
    row = count - 1;
    if (a.old_version && cow_version_row(file, object->home->version, &row) < 0)
        return -1;
    if (a.version_size != 0 && count > 0) {
        if (cow_versions_tell(file, row, 1, a.version_size, &version) < 0)
            return -1;
        a.version = version;
    }
    give(argument, &a, sizeof a);
    return 0;
}

static int list_versions(cow_object *object, const char *operation, void *argument)
{
    h5cow_list_t a;
    cow_file *file;
    uint64_t count;
    void *versions = NULL;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_list_t, versions)) < 0 ||
        check_version_size(operation, a.version_size) < 0 || (file = file_of(object)) == NULL ||
        cow_versions_count(file, &count) < 0 ||
        (count > 0 && cow_versions_tell(file, 0, count, a.version_size, &versions) < 0))
        return -1;
    a.count = (size_t)count;
    a.versions = versions;
    give(argument, &a, sizeof a);
    return 0;
}

static int drop_changes(cow_object *object, const char *operation, void *argument)
{
    h5cow_abort_t a;
    cow_file *file;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_abort_t, size)) < 0 || (file = head_of(object)) == NULL)
        return -1;
    return cow_file_abandon(file);
}

static int restore(cow_object *object, const char *operation, void *argument)
{
    h5cow_restore_t a;
    cow_file *file;
    int status;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_restore_t, differs)) < 0 ||
        (file = head_of(object)) == NULL)
        return -1;
    if (a.revision == NULL || (a.path_count > 0 && a.paths == NULL))
        return cow_error(COW_USAGE, "%s: which version, and which paths? there is a null pointer", operation);
    for (size_t i = 0; i < a.path_count; i++)
        if (a.paths[i] == NULL || a.paths[i][0] != '/')
            return cow_error(COW_USAGE, "%s: '%s' is not the path of an object: those begin with /", operation,
                             a.paths[i] == NULL ? "(null)" : a.paths[i]);
    status = cow_file_restore(file, &a);
    give(argument, &a, sizeof a);
    return status;
}

static int version_is_open(const cow_file *file)
{
    return cow_error(COW_USAGE, "%s: a version of the file is open in this program; close it first",
                     cow_file_name(file));
}

static int name_version(cow_object *object, const char *operation, void *argument)
{
    h5cow_naming_t a;
    cow_file *file;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_naming_t, text)) < 0 || (file = head_of(object)) == NULL)
        return -1;
    if (a.revision == NULL || a.text == NULL)
        return cow_error(COW_USAGE, "%s: there is a null pointer where a text is wanted", operation);
    switch (a.what) {
    case H5COW_PRIVATE_TAG:
        return cow_file_tag(file, a.revision, a.text, a.force != 0);
    case H5COW_PRIVATE_UNTAG:
        return cow_file_untag(file, a.text);
    case H5COW_PRIVATE_RENAME:
        if (cow_home_version_open(file))
            return version_is_open(file);
        return cow_file_rename_version(file, a.revision, a.text);
    case H5COW_PRIVATE_MESSAGE:
        return cow_file_set_message(file, a.revision, a.text);
    default:
        return cow_error(COW_UNSUPPORTED,
                         "%s: the program asks for something that this h5cow, " H5COW_VERSION
                         ", does not know; use a newer one",
                         operation);
    }
}

static int forget(cow_object *object, const char *operation, void *argument)
{
    h5cow_forget_t a;
    cow_file *file;
    int status;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_forget_t, forgotten)) < 0 ||
        (file = head_of(object)) == NULL)
        return -1;
    for (size_t i = 0; i < a.count; i++)
        if (a.revisions == NULL || a.revisions[i] == NULL)
            return cow_error(COW_USAGE, "%s: which versions? there is a null pointer", operation);
    if (cow_home_version_open(file))
        return version_is_open(file);
    status = cow_file_forget(file, &a);
    give(argument, &a, sizeof a);
    return status;
}

static int collect(cow_object *object, const char *operation, void *argument)
{
    h5cow_collect_t a;
    cow_file *file;
    int status;

    if (take(operation, argument, &a, sizeof a, THROUGH(h5cow_collect_t, holes)) < 0 ||
        (file = head_of(object)) == NULL)
        return -1;
    if (cow_home_version_open(file))
        return version_is_open(file);
    a.chunks = a.bytes = a.holes = 0;
    status = cow_file_collect(file, &a);
    give(argument, &a, sizeof a);
    return status;
}

/* ---- by name and number ---- */

static struct {
    const char *name;
    int (*serve)(cow_object *object, const char *operation, void *argument);
    bool heads; /* they may get others, or go */
    int number; /* 0: none */
} operations[] = {
    {"h5cow.let_go", let_go, false, 0},        {"h5cow.describe", describe, false, 0},
    {"h5cow.commit", commit, false, 0},        {"h5cow.abort", drop_changes, true, 0},
    {"h5cow.version", tell_version, false, 0}, {"h5cow.versions", list_versions, false, 0},
    {"h5cow.restore", restore, true, 0},       {"h5cow.name", name_version, false, 0},
    {"h5cow.forget", forget, true, 0},         {"h5cow.collect", collect, true, 0},
};
#define OPERATIONS (sizeof operations / sizeof *operations)

int cow_operations_register(void)
{
    for (size_t i = 0; i < OPERATIONS; i++)
        if (H5VLregister_opt_operation(H5VL_SUBCLS_FILE, operations[i].name, &operations[i].number) < 0) {
            cow_error_native("cannot register what programs may ask of h5cow");
            operations[i].number = 0;
            cow_operations_unregister();
            return -1;
        }
    return 0;
}

void cow_operations_unregister(void)
{
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (operations[i].number != 0)
            H5VLunregister_opt_operation(H5VL_SUBCLS_FILE, operations[i].name);
        operations[i].number = 0;
    }
}

int cow_operation_let_go(void)
{
    return operations[0].number;
}

/* OPERATIONS: it is none of these. */
static size_t place_of(int number)
{
    size_t i = 0;

    while (i < OPERATIONS && (operations[i].number == 0 || operations[i].number != number))
        i++;
    return i;
}

bool cow_operation_known(int number)
{
    return place_of(number) < OPERATIONS;
}

int cow_operation_serve(cow_object *object, const H5VL_optional_args_t *args)
{
    size_t i = place_of(args->op_type);

    if (object == NULL) /* a handle of HDF5's own */
        return cow_error(COW_USAGE, "this is not a file of the program");
    if (i == OPERATIONS)
        return -1;
    if (operations[i].heads)
        cow_homes_open_heads(object->home);
    return operations[i].serve(object, operations[i].name, args->args);
}
