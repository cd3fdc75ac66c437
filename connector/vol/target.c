/* Which object a modification is about: asked before it, to refuse what must not be written before native HDF5 has done
 * anything, and reported after it, so that the commit finds what changed.
 *
 * The file that is changed need not be the one that the application named: a path may lead through an external link or
 * a mount point. So a path is looked up first; what cannot be found is left to native HDF5, which then says why.
 */
#include "vol/vol.h"

#include "base/witness.h"

#include "journal/driver.h"

#include <stdlib.h>
#include <string.h>

/* What a call of HDF5's that ended with STATUS says: 1, 0: there is nothing, without any trace on the error stack, which had ERRORS before; -1: the disk
 * has failed since there were FAILURES. */
static int answer(herr_t status, unsigned long failures, size_t errors, const char *failed)
{
    if (status < 0 && cow_journal_driver_failures() != failures)
        return cow_error_native("%s", failed);
    if (status < 0)
        cow_errors_drop(errors);
    return status >= 0;
}

int cow_info_quietly(void *native, const H5VL_loc_params_t *loc, H5O_info2_t *info)
{
    H5VL_object_get_args_t args = {.op_type = H5VL_OBJECT_GET_INFO};
    unsigned long failures = cow_journal_driver_failures();
    const size_t before = cow_errors_count();
    herr_t status;

    args.args.get_info.fields = H5O_INFO_BASIC;
    args.args.get_info.oinfo = info;
    H5E_BEGIN_TRY
    {
        status = H5VLobject_get(native, loc, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL);
    }
    H5E_END_TRY
    return answer(status, failures, before, "cannot look at an object");
}

int cow_link_quietly(void *native, const H5VL_loc_params_t *loc, H5L_info2_t *info)
{
    H5VL_link_get_args_t args = {.op_type = H5VL_LINK_GET_INFO};
    unsigned long failures = cow_journal_driver_failures();
    const size_t before = cow_errors_count();
    herr_t status;

    args.args.get_info.linfo = info;
    H5E_BEGIN_TRY
    {
        status = H5VLlink_get(native, loc, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL);
    }
    H5E_END_TRY
    return answer(status, failures, before, "cannot look at a link");
}

int cow_home_may_write(cow_home *home, const char *what, const char *path)
{
    if (home == NULL)
        return 0;
    if (home->version != NULL)
        return cow_error(COW_READ_ONLY,
                         "%s: cannot %s %s: version %s is never changed; open the file itself to change its newest "
                         "state, or write the version to a file of its own with: h5cow export",
                         cow_file_name(home->file), what, path == NULL ? "an object" : path,
                         strrchr(home->version, '/') + 1);
    if (home->foreign)
        return cow_error(COW_READ_ONLY,
                         "cannot %s %s: it is in a file with history that was reached through a link from another "
                         "file; open that file itself to change it",
                         what, path == NULL ? "an object" : path);
    if (home->plain != NULL) {
        cow_witness_plain(home->plain);
        free(home->plain);
        home->plain = NULL;
    }
    /* A file that is open for reading only is refused by native HDF5, in the words that programs expect. */
    return home->file == NULL || !cow_file_writable(home->file) ? 0 : cow_file_may_write(home->file);
}

herr_t cow_home_wrote(const cow_home *home, herr_t status)
{
    return status < 0 || home == NULL || home->file == NULL || !cow_file_writable(home->file) ||
                   cow_file_dropped(home->file) /* a flush then has nothing to do */
               ? status
               : cow_file_may_write(home->file);
}

/* A path below the one of OBJECT, or NULL. */
static char *joined(const cow_object *object, const char *name)
{
    char *base, *path;

    if (name[0] == '/')
        return object->detached ? NULL : strdup(name);
    if ((base = cow_object_path(object)) == NULL || strcmp(name, ".") == 0)
        return base;
    if (base[0] == '\0') { /* below something that has no link itself */
        free(base);
        return NULL;
    }
    while (strncmp(name, "./", 2) == 0)
        name += 2;
    if ((path = malloc(strlen(base) + strlen(name) + 2)) != NULL) {
        strcpy(path, base);
        if (strcmp(base, "/") != 0)
            strcat(path, "/");
        strcat(path, name);
    }
    free(base);
    return path;
}

/* What is at LOC from WHERE; false: nothing. */
static int look(cow_object *object, const cow_where *where, const H5VL_loc_params_t *loc, const char *name,
                cow_target *target, bool *found)
{
    cow_home *near = object->home;
    H5O_info2_t info;

    int status = cow_info_quietly(where->native, loc, &info);

    *found = status > 0;
    if (status <= 0)
        return status;
    if (near != NULL && info.fileno == near->fileno)
        target->home = cow_home_reference(near);
    else {
        /* By the object itself: names lead into that file only from here. */
        cow_loc other = {where->native, where->loc.obj_type};
        H5I_type_t type;
        void *native = H5VLobject_open(other.object, loc, cow_native_id(), &type, H5P_DATASET_XFER_DEFAULT, NULL);
        if (native == NULL)
            return cow_error_native("cannot open the object %s", name);
        target->home = cow_home_of(near, native, type, &info);
        cow_object_close_native(native, type);
        if (target->home == NULL)
            return -1;
    }
    target->token = info.token;
    target->known = true;
    if (target->home == near && target->home != NULL && target->home->file != NULL && name != NULL)
        target->path = joined(object, name);
    return 0;
}

/* OBJECT, which is at WHERE. */
static int itself(cow_object *object, const cow_where *where, const char *what, cow_target *target)
{
    bool found = false;

    if (cow_object_mounts(object)) {
        H5VL_loc_params_t root = cow_by_name(where->loc.obj_type, "/");
        if (look(object, where, &root, "/", target, &found) < 0)
            return -1;
    }
    if (found)
        return cow_home_may_write(target->home, what, NULL);
    target->home = cow_home_reference(object->home);
    /* Without history nobody asks which object it was. */
    if (object->home == NULL || object->home->file == NULL)
        return 0;
    if (cow_object_token(object, &target->token) < 0)
        return -1;
    target->known = true;
    target->path = cow_object_path(object);
    return 0;
}

static int target_object(cow_object *object, const cow_where *where, const char *what, cow_target *target)
{
    const char *name = NULL;
    bool found;

    if (cow_home_may_write(object->home, what, NULL) < 0)
        return -1;
    switch (where->loc.type) {
    case H5VL_OBJECT_BY_SELF:
        if (object->type != H5I_ATTR)
            return itself(object, where, what, target);
        target->home = cow_home_reference(object->home);
        target->known = object->has_token;
        target->token = object->token;
        target->path = cow_object_path(object);
        return 0;
    case H5VL_OBJECT_BY_NAME:
        name = where->loc.loc_data.loc_by_name.name;
        break;
    case H5VL_OBJECT_BY_IDX: /* the index counts attributes, or links of this group */
        name = where->loc.loc_data.loc_by_idx.name;
        break;
    case H5VL_OBJECT_BY_TOKEN:
        break;
    }
    if (name != NULL && strcmp(name, ".") == 0)
        return itself(object, where, what, target);
    H5VL_loc_params_t loc = name == NULL ? where->loc : cow_by_name(where->loc.obj_type, name);
    if (look(object, where, &loc, name, target, &found) < 0)
        return -1;
    if (!found)
        target->home = cow_home_reference(object->home);
    return cow_home_may_write(target->home, what, target->path);
}

/* The first LENGTH characters of NAME lead to a group; the way goes on from there: is the next part missing? */
static int note_missing(const cow_where *where, const char *name, size_t length, cow_target *target)
{
    size_t end = length + strspn(name + length, "/");

    end += strcspn(name + end, "/");
    if (name[end + strspn(name + end, "/")] == '\0')
        return 0; /* it is the link itself */
    target->native = where->native;
    target->type = where->loc.obj_type;
    target->missing = strndup(name, end);
    return target->missing == NULL ? cow_error(COW_MEMORY, "no memory for the name '%s'", name) : 0;
}

static int target_parent(cow_object *object, const cow_where *where, const char *name, const char *what,
                         cow_target *target)
{
    char *prefix = NULL;
    size_t length = 0;
    bool found = false;
    int status = -1;

    if (cow_home_may_write(object->home, what, name) < 0)
        return -1;
    if (name == NULL || strchr(name, '/') == NULL)
        return itself(object, where, what, target);
    if ((prefix = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the name '%s'", name);
    /* "/a/b/c": try "/a/b", "/a", "/" */
    while (!found) {
        length = strlen(prefix);
        while (length > 1 && prefix[length - 1] == '/')
            length--;
        while (length > 0 && prefix[length - 1] != '/')
            length--;
        while (length > 1 && prefix[length - 1] == '/')
            length--;
        prefix[length] = '\0';
        if (length == 0) {
            status = itself(object, where, what, target) < 0 ? -1 : note_missing(where, name, 0, target);
            goto done;
        }
        H5VL_loc_params_t loc = cow_by_name(where->loc.obj_type, prefix);
        if (look(object, where, &loc, prefix, target, &found) < 0)
            goto done;
        if (!found && strcmp(prefix, "/") == 0) {
            target->home = cow_home_reference(object->home);
            break;
        }
    }
    status = cow_home_may_write(target->home, what, name);
    if (status == 0)
        status = note_missing(where, name, length, target);
done:
    free(prefix);
    return status;
}

static unsigned long failures(const cow_home *home)
{
    return home == NULL || home->file == NULL ? 0 : cow_journal_driver_file_failures(home->fileno);
}

int cow_target_object(cow_object *object, const cow_where *where, const char *what, cow_target *target)
{
    *target = (cow_target){0};
    int status = target_object(object, where, what, target);
    target->failures = failures(target->home);
    return status;
}

int cow_target_parent(cow_object *object, const cow_where *where, const char *name, const char *what,
                      cow_target *target)
{
    *target = (cow_target){0};
    int status = target_parent(object, where, name, what, target);
    target->failures = failures(target->home);
    return status;
}

int cow_target_new(cow_object *object, const cow_where *where, cow_target *target)
{
    int status = cow_target_parent(object, where, where->name, "create", target);

    return status == 0 && where->name == NULL ? cow_metadata_cache_for_unlinked(target->home) : status;
}

void cow_home_half_changed(cow_home *home)
{
    if (home == NULL || home->file == NULL || !cow_file_writable(home->file))
        return;
    cow_error_native("%s: the disk failed while the file was changed: what was not committed yet is given up",
                     cow_file_name(home->file));
    cow_changed_half(home->file);
}

/* HDF5 leaves the groups that it made on the way to a link which it then refuses to make: they have changed the group that
 * they are in. */
static void note_groups_left(cow_target *target)
{
    H5VL_loc_params_t loc = cow_by_name(target->type, target->missing);
    hid_t stack = cow_errors_take();
    H5O_info2_t info;

    if (cow_info_quietly(target->native, &loc, &info) > 0 && cow_target_member_changed(target, NULL) < 0)
        cow_changed_half(target->home->file);
    cow_errors_give_back(stack);
}

void cow_target_done(cow_target *target)
{
    if (target->missing != NULL && target->home != NULL && target->home->file != NULL &&
        cow_file_writable(target->home->file))
        note_groups_left(target);
    free(target->missing);
    if (failures(target->home) != target->failures)
        cow_home_half_changed(target->home);
    free(target->path);
    /* If this is the last of its home, everything has been committed: settle. */
    cow_home_release(target->home);
    *target = (cow_target){0};
}

/* Nothing of that file is open but for this call: what it changed is committed now, while an error can be told. */
static int settle(const cow_target *target)
{
    return target->home->references == 1 ? cow_file_commit(target->home->file, COW_FINISH) : 0;
}

int cow_target_changed(const cow_target *target, cow_change change)
{
    if (target->home == NULL || target->home->file == NULL)
        return 0;
    if (target->known)
        return cow_changed_object(target->home->file, &target->token, target->path, change) < 0 ? -1 : settle(target);
    /* It was not found before the call, and yet the call succeeded: look at everything. */
    cow_changed_somewhere(target->home->file);
    return cow_changed_object(target->home->file, &target->home->root, "/", COW_CHANGED_ATTRIBUTES);
}

int cow_target_member_changed(cow_target *target, const char *name)
{
    /* where groups were made on the way, the link to the first of them is what the group did not have */
    char *made = target->missing;
    const char *path = made != NULL ? made : name, *slash = path == NULL ? NULL : strrchr(path, '/'),
               *last = slash == NULL ? path : slash + 1;
    int status = 0;

    target->missing = NULL; /* noted with the rest */
    if (target->home == NULL || target->home->file == NULL)
        goto done;
    if (target->known)
        status = cow_changed_link(target->home->file, &target->token, target->path,
                                  last == NULL || last[0] == '\0' ? NULL : last) < 0
                     ? -1
                     : settle(target);
    else {
        cow_changed_somewhere(target->home->file);
        status = cow_changed_link(target->home->file, &target->home->root, "/", NULL);
    }
done:
    free(made);
    return status;
}

void cow_creation_failed(const cow_target *target, bool there, cow_object **made)
{
    cow_error_held *held;

    if (!there)
        return;
    if (target->home != NULL && target->home->file != NULL)
        cow_changed_half(target->home->file);
    held = cow_error_hold(); /* closing forgets it */
    if (*made != NULL)
        cow_object_close(*made, H5P_DATASET_XFER_DEFAULT, NULL);
    *made = NULL;
    cow_error_put_back(held);
}

cow_object *cow_creation_noted(cow_where *where, cow_target *target, cow_object *made, bool there, const char *name)
{
    if (made == NULL || cow_object_made(made) < 0 ||
        (name != NULL && cow_target_member_changed(target, where->name) < 0))
        cow_creation_failed(target, there, &made);
    cow_target_done(target);
    cow_where_done(where);
    return made;
}

cow_object *cow_creation_end(cow_object *near, cow_where *where, cow_target *target, void *native, H5I_type_t type,
                             const char *name)
{
    cow_object *made = native == NULL ? NULL : cow_object_wrap(near, native, type, name == NULL);
    bool anonymous_group = false;

    if (made != NULL) {
        made->unlinked = name == NULL;
        anonymous_group = made->unlinked && type == H5I_GROUP && made->home != NULL && made->home->file != NULL;
    }
    made = cow_creation_noted(where, target, made, native != NULL, name);
    if (made != NULL && anonymous_group) {
        cow_changed_group_unlinked(made->home->file);
        cow_file_group_unlinked(made->home->file, &made->token);
    }
    return made;
}

int cow_object_made(cow_object *object)
{
    H5O_token_t token;
    char *path;
    int status;

    if (object->home == NULL || object->home->file == NULL)
        return 0;
    if (cow_object_token(object, &token) < 0) {
        cow_changed_half(object->home->file);
        return -1;
    }
    path = cow_object_path(object);
    status = cow_changed_object(object->home->file, &token, path, COW_CHANGED_NEW);
    free(path);
    return status;
}
