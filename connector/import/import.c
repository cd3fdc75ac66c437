/* The steps of an import. See import.h.
 *
 *   1. FROM is opened natively, read-only; to be replaced, it is locked against everybody who locks at all.
 *   2. Beside the target a new file is created through the connector, FROM is copied into it, and it is closed: the
 *      commit is version 1.
 *   3. What HDF5 gives no call for is written into it: the times of the objects, the user block.
 *   4. It is opened again and compared with FROM, object by object, element by element.
 *   5. Owner, permissions, extended attributes, times of the file; onto the disk; under its name.
 *
 * Until the last step the only change that others can see is one more file with a name that says what it is.
 */
#include "import/import.h"

#include "base/ids.h"
#include "import/times.h"
#include "import/tree.h"

#include "base/bytes.h"
#include "base/error.h"
#include "history/history.h"
#include "journal/journal.h"
#include "journal/locks.h"

#include "library/library.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <H5VLconnector.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct work {
    cow_import *import;
    char *source; /* FROM without symbolic links */
    cow_newfile own, *new;
    struct stat before; /* FROM */
    hid_t plain;        /* FROM, natively */
    hid_t from;         /* what is copied: PLAIN, or FROM through the connector */
    hid_t to;
    hsize_t user_block;
    cow_tree tree;
} work;

static int fail(cow_import *import, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int fail(cow_import *import, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (import->why[0] == '\0')
        vsnprintf(import->why, sizeof import->why, format, list);
    va_end(list);
    return -1;
}

typedef struct lowest {
    char text[600];
} lowest;

static lowest reason(void)
{
    lowest r;

    cow_error_lowest(r.text, sizeof r.text);
    return r;
}

/* ---- the source ---- */

/* Object headers have the four times of their objects from HDF5 1.8 on. */
static hid_t access_list(const cow_import *import, bool connector)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    if (fapl < 0 || H5Pset_fapl_sec2(fapl) < 0 ||
        H5Pset_libver_bounds(fapl, H5F_LIBVER_V18, cow_library_latest()) < 0 ||
        (connector ? H5Pset_vol(fapl, import->connector, import->info) : H5Pset_vol(fapl, cow_native_id(), NULL)) < 0) {
        if (fapl >= 0)
            H5Pclose(fapl);
        return H5I_INVALID_HID;
    }
    return fapl;
}

static hid_t open_file(const cow_import *import, const char *name, bool connector)
{
    hid_t fapl = access_list(import, connector);
    hid_t file = fapl < 0 ? H5I_INVALID_HID : H5Fopen(name, H5F_ACC_RDONLY, fapl);

    if (fapl >= 0) {
        hid_t stack = cow_errors_take();
        H5Pclose(fapl);
        cow_errors_give_back(stack);
    }
    return file;
}

/* Nobody else may have it open: what is written to the old file after it was copied would be lost. */
static int take_alone(work *w)
{
    int *descriptor = NULL;

    if (H5Fget_obj_count(w->plain, H5F_OBJ_ALL) != 1)
        return fail(w->import, "'%s' is open in this program: close it first", w->import->from);
    if (H5Fget_vfd_handle(w->plain, H5P_DEFAULT, (void **)&descriptor) < 0)
        return fail(w->import, "'%s' cannot be locked: %s", w->import->from, reason().text);
    if (flock(*descriptor, LOCK_EX | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return fail(w->import, "'%s' is open in another program: try again when it is closed", w->import->from);
    if (cow_lock_excused())
        return 0;
    return fail(w->import,
                "'%s' cannot be locked (%s), so another program might be using it; if none does, set "
                "HDF5_USE_FILE_LOCKING=FALSE, or import to another name",
                w->import->from, strerror(errno));
}

static int open_source(work *w)
{
    cow_import *import = w->import;
    const char *name = import->from;
    lowest r;

    if ((w->source = realpath(name, NULL)) == NULL || stat(w->source, &w->before) < 0)
        return fail(import, "cannot read '%s': %s", name, strerror(errno));
    if (!S_ISREG(w->before.st_mode))
        return fail(import, "'%s' is not a regular file", name);
    if (import->to == NULL && access(w->source, W_OK) < 0)
        return fail(import, "'%s' cannot be replaced: %s", name, strerror(errno));
    if (cow_journal_present(w->source))
        return fail(import, "'%s' has a history already: it needs no import", name);
    if ((w->plain = open_file(import, w->source, false)) < 0) {
        r = reason();
        if (strstr(r.text, "unable to lock file") != NULL)
            return fail(import, "'%s' is open for writing in another program: try again when it is closed", name);
        if (strstr(r.text, "already open for write") != NULL)
            return fail(
                import,
                "'%s' is open for writing, or its program died: if no program uses it, 'h5clear -s %s' takes the "
                "mark away; then see whether it is whole",
                name, name);
        return fail(import, "HDF5 cannot open '%s': %s", name, r.text);
    }
    if (import->to == NULL && take_alone(w) < 0)
        return -1;
    w->from = w->plain;
    if (H5Lexists(w->plain, COW_GROUP, H5P_DEFAULT) <= 0)
        return 0;
    if (H5Aexists_by_name(w->plain, COW_GROUP, COW_FORMAT_NAME, H5P_DEFAULT) <= 0)
        return fail(import,
                    "'%s' has an object named '" COW_GROUP "', which is the name where h5cow keeps the history: "
                    "rename it first (h5py: file.move)",
                    name);
    import->lost_history = true;
    if (import->to == NULL)
        return fail(
            import,
            "'%s' has a history, but no journal, as what h5repack writes: replacing it would lose that history; "
            "for a new history that begins with its newest state: h5cow import %s OUT",
            name, name);
    if ((w->from = open_file(import, w->source, true)) < 0)
        return fail(import, "'%s' cannot be opened with its history: %s", name, reason().text);
    return 0;
}

/* ---- the new file ---- */

static void copied(void *context, uint64_t bytes)
{
    cow_import *import = context;

    import->progress(import->context, COW_IMPORT_COPYING, bytes);
}

static void checked(void *context, uint64_t bytes)
{
    cow_import *import = context;

    import->progress(import->context, COW_IMPORT_CHECKING, bytes);
}

static int make_new(work *w)
{
    cow_import *import = w->import;

    w->new = import->new;
    if (w->new != NULL)
        return 0;
    w->new = &w->own;
    if (cow_newfile_make(&w->own, import->to == NULL ? w->source : import->to) < 0) {
        fail(import, "%s", cow_error_message());
        cow_error_clear();
        return -1;
    }
    return 0;
}

/* The plain file may be the only place where such an object lives, so it is not replaced without a word of its owner. */
static int refuse_unlinked(const work *w)
{
    const cow_tree_nulls *nulls = &w->tree.stray;
    const char *name = w->import->from;
    char where[sizeof nulls->where + 60];

    if (nulls->count == 0 || w->import->to != NULL || w->import->drop_unlinked)
        return 0;
    cow_tree_nulls_where(nulls, where, sizeof where);
    return fail(
        w->import,
        "%zu reference%s point%s to objects that no link leads to: deleted ones, or some that a reference count keeps, "
        "which would be lost with the plain file; 'h5cow import %s OUT' leaves it as it is, 'h5cow import "
        "--drop-unlinked %s' replaces it, and both make these references null%s",
        nulls->count, nulls->count == 1 ? "" : "s", nulls->count == 1 ? "s" : "", name, name, where);
}

static int copy(work *w)
{
    cow_import *import = w->import;
    hid_t fcpl = H5Fget_create_plist(w->from), fapl = access_list(import, true),
          root = H5Gopen2(w->from, "/", H5P_DEFAULT);
    int status = -1;

    if (fcpl < 0 || fapl < 0 || root < 0 || cow_tree_group_settings(root, fcpl) < 0 ||
        H5Pget_userblock(fcpl, &w->user_block) < 0 ||
        (w->to = H5Fcreate(w->new->path, H5F_ACC_TRUNC, fcpl, fapl)) < 0) {
        fail(import, "the copy of '%s' cannot be made: %s", import->from, reason().text);
        goto done;
    }
    w->tree.from = w->from;
    w->tree.to = w->to;
    w->tree.progress = import->progress == NULL ? NULL : copied;
    w->tree.context = import;
    if (cow_tree_copy(&w->tree) < 0) {
        fail(import, "%s", w->tree.why);
        goto done;
    }
    if (refuse_unlinked(w) < 0)
        goto done;
    import->objects = w->tree.objects;
    import->dangling = w->tree.dangling;
    import->unlinked = w->tree.stray;
    import->external = w->tree.external;
    import->virtual = w->tree.virtual;
    hid_t to = w->to;
    w->to = H5I_INVALID_HID;
    if (H5Fclose(to) < 0) {
        fail(import, "the copy of '%s' cannot be written: %s", import->from, reason().text);
        H5Fclose(to); /* the second close closes without a commit */
        goto done;
    }
    status = 0;
done:
    cow_close(root, fapl, fcpl);
    return status;
}

/* ---- what HDF5 has no call for ---- */

static char *version_path(hid_t file, const char *path)
{
    char name[300], *joined;

    if (H5Lget_name_by_idx(file, COW_PATH_VERSIONS + 1, H5_INDEX_NAME, H5_ITER_NATIVE, 0, name, sizeof name,
                           H5P_DEFAULT) < 0 ||
        asprintf(&joined, COW_PATH_VERSIONS "/%s%s", name, path) < 0)
        return NULL;
    return joined;
}

/* The head's objects and those of version 1 get the times of the source's. */
static int copy_times(work *w)
{
    hid_t native = open_file(w->import, w->new->path, false);
    int status = -1;
    struct change {
        off_t at;
        H5O_info2_t time;
    } *change = calloc(w->tree.objects + 1, 2 * sizeof *change);
    size_t changes = 0;

    if (native < 0 || change == NULL) {
        fail(w->import, "the copy cannot be opened again: %s", native < 0 ? reason().text : strerror(errno));
        goto done;
    }
    for (size_t i = 0; i < w->tree.objects; i++) {
        const char *path = w->tree.object[i].path;
        H5O_info2_t old, new[2];
        char *version;
        if (path == NULL)
            continue;
        version = version_path(native, path);
        if (version == NULL ||
            H5Oget_info_by_name3(w->from, path, &old, H5O_INFO_BASIC | H5O_INFO_TIME, H5P_DEFAULT) < 0 ||
            H5Oget_info_by_name3(native, path, &new[0], H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
            H5Oget_info_by_name3(native, version, &new[1], H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
            fail(w->import, "'%.400s' cannot be found in the copy: %s", path, reason().text);
            free(version);
            goto done;
        }
        free(version);
        for (int k = 0; k < 2; k++)
            change[changes++] = (struct change){(off_t)(w->user_block + cow_tree_address(&new[k].token)), old};
    }
    H5Fclose(native);
    native = H5I_INVALID_HID;
    for (size_t i = 0; i < changes; i++)
        if (cow_set_times(w->new->file, change[i].at, &change[i].time) < 0) {
            fail(w->import, "the times of the objects cannot be written: %s", strerror(errno));
            goto done;
        }
    status = 0;
done:
    free(change);
    if (native >= 0)
        H5Fclose(native);
    return status;
}

static int copy_user_block(work *w)
{
    if (cow_newfile_user_block(w->new->file, w->source, w->user_block) == 0)
        return 0;
    fail(w->import, "%s", cow_error_message());
    cow_error_clear();
    return -1;
}

static int check(work *w)
{
    cow_import *import = w->import;
    int status;

    if ((w->to = open_file(import, w->new->path, true)) < 0)
        return fail(import, "the copy cannot be opened again: %s", reason().text);
    w->tree.to = w->to;
    w->tree.progress = import->progress == NULL ? NULL : checked;
    if ((status = cow_tree_compare(&w->tree)) < 0)
        fail(import, "%s", w->tree.why);
    H5Fclose(w->to);
    w->to = H5I_INVALID_HID;
    return status;
}

/* ---- under its name ---- */

static bool unchanged(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
           a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int put_in_place(work *w)
{
    cow_import *import = w->import;
    bool in_place = import->to == NULL;
    int kept = cow_newfile_like(w->new->file, w->source);
    struct stat now;

    if (in_place)
        futimens(w->new->file, (struct timespec[2]){w->before.st_atim, w->before.st_mtim});
    if (kept < 0)
        goto failed;
    fsync(w->new->file); /* the long wait, before the last look; done again, and checked, by `place` */
    import->kept_owner = kept > 0;
    if (stat(w->source, &now) < 0 || !unchanged(&w->before, &now))
        return fail(import, "'%s' was changed while it was imported: try again when nobody writes it", import->from);
    import->other_names = in_place ? (size_t)w->before.st_nlink - 1 : 0;
    if (cow_newfile_place(w->new, in_place) == 0)
        return 0;
failed:
    fail(import, "%s", cow_error_message());
    cow_error_clear();
    return -1;
}

int cow_import_file(cow_import *import)
{
    work w = {.import = import,
              .own = COW_NEWFILE_NONE,
              .plain = H5I_INVALID_HID,
              .from = H5I_INVALID_HID,
              .to = H5I_INVALID_HID};
    int status = -1;

    if (open_source(&w) < 0 || make_new(&w) < 0 || copy(&w) < 0 || copy_times(&w) < 0 ||
        (w.user_block > 0 && copy_user_block(&w) < 0) || check(&w) < 0)
        goto done;
    status = put_in_place(&w);
done:
    cow_tree_free(&w.tree);
    if (w.to >= 0 && H5Fclose(w.to) < 0)
        H5Fclose(w.to); /* an error of the commit: the second close closes */
    if (w.from >= 0 && w.from != w.plain)
        H5Fclose(w.from);
    if (w.plain >= 0)
        H5Fclose(w.plain);
    cow_newfile_drop(&w.own);
    free(w.source);
    return status;
}
