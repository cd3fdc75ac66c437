/* H5O: objects of any kind. */
#include "vol/vol.h"

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

typedef struct object_opening {
    const cow_where *where;
    H5I_type_t *type;
    hid_t dxpl;
    void **req;
} object_opening;

static void *open_object(void *context)
{
    const object_opening *x = context;

    return H5VLobject_open(x->where->native, &x->where->loc, cow_native_id(), x->type, x->dxpl, x->req);
}

/* By which an object is opened: a dataset by the properties of one, if they are that. */
static hid_t lapl_of(const H5VL_loc_params_t *loc)
{
    if (loc->type == H5VL_OBJECT_BY_NAME)
        return loc->loc_data.loc_by_name.lapl_id;
    return loc->type == H5VL_OBJECT_BY_IDX ? loc->loc_data.loc_by_idx.lapl_id : H5P_LINK_ACCESS_DEFAULT;
}

void *cow_vol_object_open(void *object, const H5VL_loc_params_t *loc, H5I_type_t *opened_type, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object, *opened = NULL;
    cow_where where;
    cow_detour detour;
    object_opening opening = {&where, opened_type, dxpl, req};
    void *native;
    const hid_t lapl = lapl_of(loc);
    const bool as_dataset = cow_is_dapl(lapl);

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0 || cow_hide_index(o, &where) < 0)
        goto done;
    if (!as_dataset && cow_unopened_likely(o->home) && (opened = cow_unopened_new(o, &where, &where.loc)) != NULL) {
        *opened_type = H5I_DATASET;
        goto done;
    }
    if (where.loc.type == H5VL_OBJECT_BY_TOKEN)
        cow_homes_open_head(o->home, where.loc.loc_data.loc_by_token.token);
    else if (as_dataset)
        cow_homes_open_heads(o->home);
    if ((native = open_object(&opening)) != NULL ||
        (native = cow_open_again(o, open_object, &opening, opened_type)) != NULL)
        opened = cow_object_wrap(o, native, *opened_type, loc->type == H5VL_OBJECT_BY_TOKEN);
    else if (cow_detour_to_object(&where, &detour)) {
        opened = cow_vol_object_open(detour.file, &detour.loc, opened_type, dxpl, req);
        cow_detour_end(&detour);
    }
    cow_object_check_type(&opened);
    cow_unopened_met(o->home, native == NULL || *opened_type == H5I_DATASET);
    if (as_dataset && native != NULL && opened != NULL && *opened_type == H5I_DATASET)
        opened = cow_dapl_opened(opened, lapl);
done:
    if (loc->type == H5VL_OBJECT_BY_NAME)
        cow_home_followed(o, opened, loc->loc_data.loc_by_name.lapl_id);
    cow_where_done(&where);
    return cow_leave_pointer(opened);
}

/* A copy is made in the file that the handle is a place of (one that is mounted stands for that which it is mounted in). Where the name leads into
 * another one, by a mount or an external link, HDF5 refuses it. */
static int stays_in_its_file(const cow_where *to, const cow_target *into, const char *name)
{
    H5O_info2_t info;

    if (into->home == NULL)
        return 0;
    if (cow_native_info((cow_loc){to->native, to->loc.obj_type}, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    return info.fileno == into->home->fileno
               ? 0
               : cow_error(
                     COW_UNSUPPORTED,
                     "interfile hard links are not allowed: '%s' leads into another file than the one it begins in; copy to a group that "
                     "was opened there",
                     name);
}

/* HDF5's own copy, without H5O_COPY_PRESERVE_NULL_FLAG: a count of references is left behind as a null message, beside a
 * gap of 1 to 3 bytes where the header is of the newer format and small, and such a header cannot be read again (1.14.5:
 * test_copies.c). Only the room in a header is another one without it. */
static herr_t copy_native(const cow_where *from, const cow_where *to, hid_t ocpypl, hid_t lcpl, hid_t dxpl, void **req)
{
    hid_t own = H5I_INVALID_HID;
    unsigned flags = 0;
    herr_t status = -1;

    if (ocpypl != H5P_DEFAULT && H5Pget_copy_object(ocpypl, &flags) < 0)
        return cow_error_native("cannot get how to copy");
    if ((flags & H5O_COPY_PRESERVE_NULL_FLAG) != 0 &&
        ((own = H5Pcopy(ocpypl)) < 0 || H5Pset_copy_object(own, flags & ~(unsigned)H5O_COPY_PRESERVE_NULL_FLAG) < 0))
        cow_error_native("cannot set how to copy");
    else
        status = H5VLobject_copy(from->native, &from->loc, from->name, to->native, &to->loc, to->name, cow_native_id(),
                                 own < 0 ? ocpypl : own, lcpl, dxpl, req);
    if (own >= 0 && H5Pclose(own) < 0)
        status = -1;
    return status;
}

herr_t cow_vol_object_copy(void *source, const H5VL_loc_params_t *source_loc, const char *source_name, void *target,
                           const H5VL_loc_params_t *target_loc, const char *target_name, hid_t ocpypl, hid_t lcpl,
                           hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *s = source, *t = target;
    cow_where from = {0}, to = {0};
    cow_target what = {0}, into = {0};
    cow_detour detour;
    H5VL_loc_params_t at;
    cow_file *from_file, *to_file;
    const char *version;
    H5O_info2_t info;
    herr_t status = -1;
    int there;

    if (cow_locate_name(s, source_loc, source_name, COW_TO_READ, &from) < 0 ||
        cow_locate_name(t, target_loc, target_name, COW_TO_CREATE, &to) < 0 ||
        cow_target_parent(t, &to, to.name, "copy to", &into) < 0)
        goto done;
    at = cow_by_name(from.loc.obj_type, from.name);
    from_file = s->home == NULL ? NULL : s->home->file;
    version = s->home == NULL ? NULL : s->home->version;
    to_file = into.home == NULL ? NULL : into.home->file;
    if ((there = cow_info_quietly(from.native, &at, &info)) < 0)
        goto done;
    if (there == 0 && cow_detour_begin(&from, from.name, H5P_DEFAULT, &detour)) {
        status = cow_vol_object_copy(detour.file, &detour.loc, detour.name, target, target_loc, target_name, ocpypl,
                                     lcpl, dxpl, req);
        cow_detour_end(&detour);
        goto done;
    }
    if (there > 0 && s->home != NULL && info.fileno != s->home->fileno) {
        H5I_type_t type;
        void *native = H5VLobject_open(from.native, &at, cow_native_id(), &type, dxpl, NULL);

        if (native == NULL) {
            cow_error_native("cannot open '%s'", source_name);
            goto done;
        }
        what.home = cow_home_of(s->home, native, type, &info);
        cow_object_close_native(native, type);
        if (what.home == NULL)
            goto done;
        from_file = what.home->file;
        version = what.home->version;
    }
    if (what.home != NULL ? what.home->foreign : s->home != NULL && s->home->foreign) {
        cow_error(COW_UNSUPPORTED,
                  "'%s' is in a file with history that was reached through a link from another file; open that file "
                  "itself to copy it",
                  source_name);
        goto done;
    }
    if ((from_file != NULL || to_file != NULL) && stays_in_its_file(&to, &into, target_name) < 0)
        goto done;
    if (from_file == NULL && to_file == NULL)
        status = copy_native(&from, &to, ocpypl, lcpl, dxpl, req);
    else
        status = cow_copy_named_object(from_file, version, from.native, &from.loc, from.name, to_file, to.native,
                                       &to.loc, to.name, cow_home_newest(into.home), ocpypl);
    if (status >= 0 && cow_target_member_changed(&into, to.name) < 0)
        status = -1;
done:
    cow_target_done(&what);
    cow_target_done(&into);
    cow_where_done(&from);
    cow_where_done(&to);
    return cow_leave(status);
}

/* ---- get ---- */

/* Like native: as much as fits, and the whole length; nothing for no name. */
static void give_name(const char *name, H5VL_object_get_args_t *args)
{
    size_t length = strlen(name);

    if (args->args.get_name.name_len != NULL)
        *args->args.get_name.name_len = length;
    if (length > 0 && args->args.get_name.buf != NULL && args->args.get_name.buf_size > 0) {
        size_t n = length < args->args.get_name.buf_size - 1 ? length : args->args.get_name.buf_size - 1;
        memcpy(args->args.get_name.buf, name, n);
        args->args.get_name.buf[n] = '\0';
    }
}

/* What HDF5 itself says the name is, with room for it; NULL: the error. */
static char *native_name(cow_where *where, hid_t dxpl)
{
    H5VL_object_get_args_t native = {.op_type = H5VL_OBJECT_GET_NAME};
    size_t length = 0;
    char *path;

    native.args.get_name.name_len = &length;
    if (H5VLobject_get(where->native, &where->loc, cow_native_id(), &native, dxpl, NULL) < 0)
        return NULL;
    if ((path = malloc(length + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the name of an object");
        return NULL;
    }
    path[0] = '\0';
    native.args.get_name.buf = path;
    native.args.get_name.buf_size = length + 1;
    if (H5VLobject_get(where->native, &where->loc, cow_native_id(), &native, dxpl, NULL) >= 0)
        return path;
    free(path);
    return NULL;
}

/* Of an object that may not be searched for: what lies in the history has no name. */
static int get_shown_name(const cow_object *o, cow_where *where, H5VL_object_get_args_t *args, hid_t dxpl)
{
    char *path = native_name(where, dxpl);
    size_t prefix;

    if (path == NULL)
        return -1;
    if ((prefix = cow_path_version_prefix(o->home, path)) > 0)
        give_name(path[prefix] == '\0' ? "/" : path + prefix, args);
    else
        give_name(strncmp(path, "/" COW_GROUP, sizeof COW_GROUP) == 0 ? "" : path, args);
    free(path);
    return 0;
}

/* The name, without a version's prefix. What HDF5 itself finds by searching may be a path into the history, so where it
 * would search, we do. */
static int get_name(cow_object *o, cow_where *where, H5VL_object_get_args_t *args, hid_t dxpl)
{
    bool search = where->loc.type == H5VL_OBJECT_BY_TOKEN || o->unnamed;
    H5O_token_t token;
    char *path = NULL;
    int status = -1;

    if (!search) {
        size_t length;
        if ((path = native_name(where, dxpl)) == NULL)
            return -1;
        length = strlen(path);
        if (o->home->version == NULL) {
            if (strncmp(path, "/" COW_GROUP, sizeof COW_GROUP) != 0) {
                give_name(path, args);
                status = 0;
                goto done;
            }
        } else if (length == 0 || cow_path_version_prefix(o->home, path) > 0) {
            const char *shown = path + cow_path_version_prefix(o->home, path);
            give_name(length > 0 && shown[0] == '\0' ? "/" : shown, args);
            status = 0;
            goto done;
        }
        free(path);
        path = NULL;
    }
    if (where->loc.type == H5VL_OBJECT_BY_TOKEN)
        token = where->token;
    else if (cow_object_token(o, &token) < 0)
        goto done;
    if (cow_find_path(o, &token, &path) < 0)
        goto done;
    give_name(path == NULL ? "" : path, args);
    status = 0;
done:
    free(path);
    return status;
}

herr_t cow_vol_object_get(void *object, const H5VL_loc_params_t *loc, H5VL_object_get_args_t *args, hid_t dxpl,
                          void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    cow_detour detour;
    herr_t status = -1;

    /* The file of an object is the file, not a version's root group. */
    if (args->op_type == H5VL_OBJECT_GET_FILE) {
        void *native = cow_object_native(object), *dataset = cow_reading_for(native);
        H5VL_loc_params_t self = cow_by_self(H5I_DATASET);

        status = H5VLobject_get(dataset == NULL ? native : dataset, dataset == NULL ? loc : &self, cow_native_id(),
                                args, dxpl, req);
        if (status >= 0)
            cow_vol_file_asked(*args->args.get_file.file);
        return status;
    }
    if (cow_locate(o, loc, COW_TO_READ, &where) < 0) {
        /* what was deleted has no name, whether it is open or not */
        if (args->op_type == H5VL_OBJECT_GET_NAME && loc->type == H5VL_OBJECT_BY_TOKEN && o->home != NULL &&
            o->home->version == NULL && cow_error_is(COW_NOT_FOUND)) {
            cow_error_clear();
            give_name("", args);
            status = 0;
        }
        goto done;
    }
    switch (args->op_type) {
    case H5VL_OBJECT_GET_FILE:
    case H5VL_OBJECT_GET_TYPE:
        status = H5VLobject_get(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        break;
    case H5VL_OBJECT_GET_INFO:
        if (cow_hide_index(o, &where) == 0 &&
            (status = H5VLobject_get(where.native, &where.loc, cow_native_id(), args, dxpl, req)) >= 0)
            status = cow_show_object_info(o->home, args->args.get_info.fields, where.loc.type != H5VL_OBJECT_BY_SELF,
                                          args->args.get_info.oinfo);
        else if (cow_detour_to_object(&where, &detour)) {
            status = cow_vol_object_get(detour.file, &detour.loc, args, dxpl, req);
            cow_detour_end(&detour);
        }
        break;
    case H5VL_OBJECT_GET_NAME:
        if (o->home == NULL || (o->home->file == NULL && !o->home->foreign))
            status = H5VLobject_get(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        else if (o->detached || o->type == H5I_ATTR)
            status = get_shown_name(o, &where, args, dxpl);
        else
            status = get_name(o, &where, args, dxpl);
        break;
    }
done:
    cow_where_done(&where);
    return cow_leave(status);
}

/* ---- specific ---- */

static herr_t flush_or_refresh(cow_object *o, cow_where *where, H5VL_object_specific_args_t *args, hid_t dxpl,
                               void **req)
{
    if (cow_object_classify(o) < 0)
        return -1;
    if (o->dataset != NULL) {
        if (args->op_type == H5VL_OBJECT_REFRESH)
            return 0; /* see cow_vol_dataset_specific */
        if (cow_vol_dataset_flush(o) < 0)
            return -1;
    }
    return H5VLobject_specific(where->native, &where->loc, cow_native_id(), args, dxpl, req);
}

typedef struct shown_visit {
    const cow_home *home;
    unsigned fields;
    H5O_iterate2_t op;
    void *op_data;
} shown_visit;

static herr_t each_shown_object(hid_t start, const char *name, const H5O_info2_t *info, void *context)
{
    shown_visit *v = context;
    H5O_info2_t shown = *info;

    return cow_show_object_info(v->home, v->fields, true, &shown) < 0 ? -1 : v->op(start, name, &shown, v->op_data);
}

static herr_t visit_shown(cow_object *o, cow_where *where, H5VL_object_specific_args_t *args, hid_t dxpl, void **req)
{
    H5VL_object_specific_args_t native = *args;
    shown_visit v = {o->home, args->args.visit.fields, args->args.visit.op, args->args.visit.op_data};

    native.args.visit.op = each_shown_object;
    native.args.visit.op_data = &v;
    return H5VLobject_specific(where->native, &where->loc, cow_native_id(), &native, dxpl, req);
}

/* The name may lead out of the version's file. */
static int lookup_shown(cow_object *o, cow_where *where, H5O_token_t *token)
{
    H5O_info2_t info;

    if (o->home == NULL || o->home->version == NULL)
        return 0;
    if (cow_info_quietly(where->native, &where->loc, &info) < 0 || info.fileno != o->home->fileno)
        return 0;
    return cow_show_token(o->home, token);
}

/* The count that goes may be all that keeps an object in the file. */
static int keep_last(const cow_where *where, const cow_target *target)
{
    H5O_info2_t info;
    bool known;

    if (target->home == NULL || target->home->file == NULL)
        return 0;
    cow_homes_open_heads(target->home);
    known = target->known && cow_info_quietly(where->native, &where->loc, &info) > 0;
    if (cow_file_unstow(target->home->file, known ? &info : NULL) < 0)
        return -1;
    if (!known || info.type == H5O_TYPE_GROUP)
        cow_changed_group_unlinked(target->home->file);
    if (!known || info.rc > 1)
        return 0;
    return cow_metadata_cache_for_unlinked(target->home) < 0
               ? -1
               : cow_file_keep_uncounted(target->home->file, &target->token);
}

herr_t cow_vol_object_specific(void *object, const H5VL_loc_params_t *loc, H5VL_object_specific_args_t *args,
                               hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_home *home = cow_home_reference(o->home); /* a refresh closes the object in the middle */
    cow_where where;
    cow_target target = {0};
    cow_listed listed;
    cow_detour detour;
    cow_loud loud;
    herr_t status = -1;
    int ours;

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0)
        goto done;
    switch (args->op_type) {
    case H5VL_OBJECT_CHANGE_REF_COUNT:
        if (cow_target_object(o, &where, "change the reference count of", &target) < 0 ||
            (args->args.change_rc.delta < 0 && keep_last(&where, &target) < 0))
            break;
        status = H5VLobject_specific(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        if (status >= 0 && target.home != NULL && target.home->file != NULL) {
            cow_changed_paths(target.home->file);
            if (args->args.change_rc.delta < 0)
                cow_file_unlinked(target.home->file, NULL);
            else if (target.known)
                cow_file_linked(target.home->file, &target.token);
            status = cow_target_changed(&target, COW_CHANGED_ATTRIBUTES);
        }
        break;
    case H5VL_OBJECT_EXISTS:
        status = H5VLobject_specific(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        if ((status < 0 || !*args->args.exists.exists) && cow_detour_by_name(&where, &detour)) {
            status = cow_vol_object_specific(detour.file, &detour.loc, args, dxpl, req);
            cow_detour_end(&detour);
        }
        break;
    case H5VL_OBJECT_LOOKUP:
        if ((status = H5VLobject_specific(where.native, &where.loc, cow_native_id(), args, dxpl, req)) >= 0)
            status = lookup_shown(o, &where, args->args.lookup.token_ptr);
        break;
    case H5VL_OBJECT_VISIT:
        cow_loud_object(&quiet, &args->args.visit.op, &args->args.visit.op_data, &loud);
        ours = home != NULL && home->version != NULL ? 0 : cow_visits(o, &where, &listed);
        if (ours < 0)
            status = -1;
        else if (ours)
            status = cow_visit_objects(&listed, &args->args.visit, dxpl);
        else if (home != NULL && home->file != NULL)
            status = visit_shown(o, &where, args, dxpl, req);
        else
            status = H5VLobject_specific(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        if (status < 0 && cow_detour_by_name(&where, &detour)) {
            status = cow_vol_object_specific(detour.file, &detour.loc, args, dxpl, req);
            cow_detour_end(&detour);
        }
        break;
    case H5VL_OBJECT_FLUSH:
    case H5VL_OBJECT_REFRESH:
        status = flush_or_refresh(o, &where, args, dxpl, req);
        break;
    }
done:
    cow_target_done(&target);
    cow_where_done(&where);
    if (cow_home_release(home) < 0)
        status = -1;
    return cow_leave(status);
}

herr_t cow_vol_object_optional(void *object, const H5VL_loc_params_t *loc, H5VL_optional_args_t *args, hid_t dxpl,
                               void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    cow_detour detour;
    cow_target target = {0};
    herr_t status = -1;

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0)
        goto done;
    switch (args->op_type) {
    case H5VL_NATIVE_OBJECT_SET_COMMENT:
        if (cow_target_object(o, &where, "set the comment of", &target) < 0)
            goto done;
        status = H5VLobject_optional(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        if (status >= 0)
            status = cow_target_changed(&target, COW_CHANGED_ATTRIBUTES);
        break;
    case H5VL_NATIVE_OBJECT_GET_NATIVE_INFO:
        if (cow_hide_index(o, &where) < 0)
            goto done;
        /* fall through */
    case H5VL_NATIVE_OBJECT_GET_COMMENT:
        status = H5VLobject_optional(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        if (status < 0 && cow_detour_to_object(&where, &detour)) {
            status = cow_vol_object_optional(detour.file, &detour.loc, args, dxpl, req);
            cow_detour_end(&detour);
        }
        break;
    case H5VL_NATIVE_OBJECT_DISABLE_MDC_FLUSHES:
        if (o->type == H5I_DATASET && cow_object_classify(o) < 0)
            goto done;
        if (o->dataset != NULL)
            cow_dataset_corked(o->dataset);
        /* fall through */
    case H5VL_NATIVE_OBJECT_ENABLE_MDC_FLUSHES:
    case H5VL_NATIVE_OBJECT_ARE_MDC_FLUSHES_DISABLED:
        status = H5VLobject_optional(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        break;
    default:
        if (o->home != NULL && (o->home->file != NULL || o->home->foreign))
            cow_error(COW_UNSUPPORTED, "operation %d on objects is not known to this h5cow, and could write",
                      args->op_type);
        else
            status = H5VLobject_optional(where.native, &where.loc, cow_native_id(), args, dxpl, req);
    }
done:
    cow_target_done(&target);
    cow_where_done(&where);
    return cow_leave(status);
}
