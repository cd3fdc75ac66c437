/* H5L: links. Native, apart from the reserved group, from absolute soft links inside versions (they carry the version's
 * prefix, which is not shown), and from removed objects that a version knows: those keep their address. */
#include "vol/vol.h"

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* H5L_SAME_LOC is no object, and its location has no type: put in the other one. */
static H5VL_loc_params_t on(const cow_object *object, const H5VL_loc_params_t *loc)
{
    H5VL_loc_params_t same = *loc;

    if (object != NULL)
        same.obj_type = object->type;
    return same;
}

static const char *link_name(const cow_where *where)
{
    return where->loc.type == H5VL_OBJECT_BY_NAME ? where->loc.loc_data.loc_by_name.name : NULL;
}

/* ---- create, copy, move ---- */

/* A hard link was made at WHERE. */
static void note_linked(cow_file *file, const cow_where *where)
{
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_INFO};
    const size_t before = cow_errors_count();
    H5L_info2_t info;

    get.args.get_info.linfo = &info;
    if (H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL) >= 0)
        cow_file_linked(file, &info.u.token);
    else
        cow_errors_drop(before);
}

herr_t cow_vol_link_create(H5VL_link_create_args_t *args, void *object, const H5VL_loc_params_t *loc, hid_t lcpl,
                           hid_t lapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object, *base = o;
    H5VL_link_create_args_t native = *args;
    cow_where where = {0}, current = {0};
    cow_target target = {0};
    H5VL_loc_params_t at;
    herr_t status = -1;

    if (args->op_type == H5VL_LINK_CREATE_HARD) {
        cow_object *c = args->args.hard.curr_obj, *from = c == NULL ? o : c;

        if (base == NULL)
            base = c;
        at = on(from, &args->args.hard.curr_loc_params);
        if (cow_locate(from, &at, COW_TO_READ, &current) < 0)
            goto done;
        native.args.hard.curr_obj = current.native;
        native.args.hard.curr_loc_params = current.loc;
        if (c != NULL && o != NULL && c->home != NULL && c->home->version != NULL) {
            cow_home_may_write(c->home, "link", link_name(&current));
            goto done;
        }
    } else if (args->op_type == H5VL_LINK_CREATE_SOFT && base != NULL && cow_home_hides(base->home) &&
               strncmp(args->args.soft.target, "/" COW_GROUP, sizeof COW_GROUP) == 0 &&
               (args->args.soft.target[sizeof COW_GROUP] == '/' || args->args.soft.target[sizeof COW_GROUP] == '\0')) {
        cow_error(COW_USAGE, "'%s': the group '" COW_GROUP "' is reserved for the file's history and cannot be linked",
                  args->args.soft.target);
        goto done;
    }
    at = on(base, loc);
    if (cow_locate(base, &at, COW_TO_CREATE, &where) < 0 ||
        cow_target_parent(base, &where, link_name(&where), "create the link", &target) < 0)
        goto done;
    if ((status = H5VLlink_create(&native, where.native, &where.loc, cow_native_id(), lcpl, lapl, dxpl, req)) < 0)
        goto done;
    status = cow_target_member_changed(&target, link_name(&where));
    if (args->op_type == H5VL_LINK_CREATE_HARD && target.home != NULL && target.home->file != NULL) {
        cow_object *c = args->args.hard.curr_obj;

        if (c != NULL && c->unlinked && args->args.hard.curr_loc_params.type == H5VL_OBJECT_BY_SELF) {
            /* Its first link: native HDF5 knows its name from now on, if it knows that of the group. */
            c->unlinked = false;
            c->unnamed = base != c && base->unnamed;
            if (cow_object_made(c) < 0)
                status = -1;
        } else
            cow_changed_counts(target.home->file);
        note_linked(target.home->file, &where);
    }
done:
    cow_target_done(&target);
    cow_where_done(&where);
    cow_where_done(&current);
    return cow_leave(status);
}

static bool is_hard(const cow_where *where)
{
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_INFO};
    H5L_info2_t info;

    get.args.get_info.linfo = &info;
    return H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL) >= 0 &&
           info.type == H5L_TYPE_HARD;
}

static herr_t copy_or_move(bool move, cow_object *source, const H5VL_loc_params_t *source_loc, cow_object *target,
                           const H5VL_loc_params_t *target_loc, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req)
{
    cow_object *from_object = source == NULL ? target : source, *to_object = target == NULL ? source : target;
    cow_where from = {0}, to = {0};
    cow_target from_target = {0}, to_target = {0};
    bool in_version = from_object->home != NULL && from_object->home->version != NULL;
    char *soft = NULL;
    H5VL_loc_params_t from_loc = on(from_object, source_loc), to_loc = on(to_object, target_loc);
    herr_t status = -1;

    if (cow_locate(from_object, &from_loc, COW_TO_READ, &from) < 0)
        goto done;
    if (!move && in_version && (soft = cow_path_soft_link(from_object, &from)) != NULL) {
        /* It says its path in the version; here the one that it had when it was written. */
        H5VL_link_create_args_t args = {.op_type = H5VL_LINK_CREATE_SOFT, .args.soft.target = soft};
        status = cow_vol_link_create(&args, to_object, &to_loc, lcpl, lapl, dxpl, req);
        goto done;
    }
    if (cow_locate(to_object, &to_loc, COW_TO_CREATE, &to) < 0 ||
        cow_target_parent(to_object, &to, link_name(&to), move ? "move a link to" : "copy a link to", &to_target) < 0)
        goto done;
    /* A hard link out of a version would make one object of the past and the present. */
    if ((move || (in_version && is_hard(&from))) &&
        cow_target_parent(from_object, &from, link_name(&from), move ? "move the link" : "copy the link",
                          &from_target) < 0)
        goto done;
    if (move)
        cow_homes_open_heads(from_target.home);
    status = move ? H5VLlink_move(from.native, &from.loc, to.native, &to.loc, cow_native_id(), lcpl, lapl, dxpl, req)
                  : H5VLlink_copy(from.native, &from.loc, to.native, &to.loc, cow_native_id(), lcpl, lapl, dxpl, req);
    if (status < 0)
        goto done;
    if (cow_target_member_changed(&to_target, link_name(&to)) < 0 ||
        (move && cow_target_member_changed(&from_target, link_name(&from)) < 0))
        status = -1;
    if (to_target.home != NULL && to_target.home->file != NULL)
        cow_changed_counts(to_target.home->file);
done:
    free(soft);
    cow_target_done(&from_target);
    cow_target_done(&to_target);
    cow_where_done(&from);
    cow_where_done(&to);
    return cow_leave(status);
}

herr_t cow_vol_link_copy(void *source, const H5VL_loc_params_t *source_loc, void *target,
                         const H5VL_loc_params_t *target_loc, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    return copy_or_move(false, source, source_loc, target, target_loc, lcpl, lapl, dxpl, req);
}

herr_t cow_vol_link_move(void *source, const H5VL_loc_params_t *source_loc, void *target,
                         const H5VL_loc_params_t *target_loc, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    return copy_or_move(true, source, source_loc, target, target_loc, lcpl, lapl, dxpl, req);
}

/* ---- information ---- */

/* The whole value of the soft link as it is in the file. NULL: another kind of link, or an error. */
static char *soft_value(const cow_where *where)
{
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_INFO};
    H5L_info2_t info;
    char *value;

    get.args.get_info.linfo = &info;
    if (H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL) < 0 || info.type != H5L_TYPE_SOFT)
        return NULL;
    if ((value = calloc(1, info.u.val_size + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the value of a link");
        return NULL;
    }
    get.op_type = H5VL_LINK_GET_VAL;
    get.args.get_val.buf = value;
    get.args.get_val.buf_size = info.u.val_size;
    if (H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL) < 0) {
        free(value);
        return NULL;
    }
    return value;
}

char *cow_path_soft_link(const cow_object *object, const cow_where *where)
{
    char *value = soft_value(where);
    size_t prefix = value == NULL ? 0 : cow_path_version_prefix(object->home, value);

    if (prefix > 0) {
        memmove(value, value + prefix, strlen(value + prefix) + 1);
        if (value[0] == '\0')
            strcpy(value, "/");
    }
    return value;
}

int cow_path_link_length(const cow_object *object, const cow_where *where, size_t *length)
{
    char *value = cow_path_soft_link(object, where);

    if (value == NULL)
        return -1;
    *length = strlen(value) + 1;
    free(value);
    return 0;
}

herr_t cow_vol_link_get(void *object, const H5VL_loc_params_t *loc, H5VL_link_get_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    bool version = o->home != NULL && o->home->version != NULL;
    cow_where where;
    cow_detour detour;
    char *value = NULL;
    herr_t status = -1;

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0)
        goto done;
    if (cow_hide_index(o, &where) < 0 ||
        (status = H5VLlink_get(where.native, &where.loc, cow_native_id(), args, dxpl, req)) < 0) {
        if (cow_detour_by_name(&where, &detour)) {
            status = cow_vol_link_get(detour.file, &detour.loc, args, dxpl, req);
            cow_detour_end(&detour);
        }
        goto done;
    }
    switch (args->op_type) {
    case H5VL_LINK_GET_INFO:
        if (args->args.get_info.linfo == NULL)
            break;
        if (version && args->args.get_info.linfo->type == H5L_TYPE_SOFT)
            status = cow_path_link_length(o, &where, &args->args.get_info.linfo->u.val_size);
        else if (version)
            status = cow_show_link_info(o->home, args->args.get_info.linfo);
        else
            status = cow_hide_link_info(o, &where, args->args.get_info.linfo);
        break;
    case H5VL_LINK_GET_NAME:
        break;
    case H5VL_LINK_GET_VAL:
        if (version && args->args.get_val.buf_size > 0 && (value = cow_path_soft_link(o, &where)) != NULL) {
            char *buf = args->args.get_val.buf;
            strncpy(buf, value, args->args.get_val.buf_size);
            if (strlen(value) >= args->args.get_val.buf_size)
                buf[args->args.get_val.buf_size - 1] = '\0';
        }
        break;
    }
done:
    free(value);
    cow_where_done(&where);
    return cow_leave(status);
}

/* ---- delete, exists, iterate ---- */

/* The group that holds the link at WHERE, opened unless it is BORROWED, and the link's name in it; free() it. */
static int holder(const cow_where *where, cow_loc *group, bool *borrowed, char **name)
{
    cow_loc at = {where->native, where->loc.obj_type};
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_NAME};
    size_t length = 0, end;
    const char *path, *last;
    char *parent = NULL;
    int status = -1;

    *name = NULL;
    *borrowed = false;
    group->object = NULL;
    if (where->loc.type == H5VL_OBJECT_BY_IDX) {
        path = where->loc.loc_data.loc_by_idx.name;
        get.args.get_name.name = NULL;
        get.args.get_name.name_size = 0;
        get.args.get_name.name_len = &length;
        if (H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL) < 0)
            return 0; /* native HDF5 says why */
        if ((*name = malloc(length + 1)) == NULL)
            return cow_error(COW_MEMORY, "no memory for the name of a link");
        get.args.get_name.name = *name;
        get.args.get_name.name_size = length + 1;
        if (H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL) < 0)
            return cow_error_native("cannot read the name of a link");
        return cow_native_open(at, path, group);
    }
    path = where->loc.loc_data.loc_by_name.name;
    for (end = strlen(path); end > 0 && path[end - 1] == '/'; end--)
        ;
    for (last = path + end; last > path && last[-1] != '/'; last--)
        ;
    *borrowed = last == path && (at.type == H5I_FILE || at.type == H5I_GROUP);
    if ((*name = strndup(last, (size_t)(path + end - last))) == NULL ||
        (!*borrowed && (parent = last == path ? strdup(".") : strndup(path, (size_t)(last - path))) == NULL))
        cow_error(COW_MEMORY, "no memory for the name '%s'", path);
    else if (*borrowed) {
        *group = at;
        status = 0;
    } else
        status = cow_native_open(at, parent, group);
    free(parent);
    return status;
}

/* HDF5 (seen in 1.14.5, with the newer object headers that a file with history has) crashes when the link of a group to
 * itself goes and leaves one: the message with the reference count, which is no longer needed, is removed from the
 * header while it is walked for the link. With one reference more meanwhile that comes later. */
static int is_own_link(cow_loc group, const H5L_info2_t *info)
{
    H5O_info2_t own;

    if (cow_native_info(group, NULL, H5O_INFO_BASIC, &own) < 0)
        return -1;
    return own.rc == 2 && memcmp(&own.token, &info->u.token, sizeof own.token) == 0;
}

/* Which open groups lose their last link with the one of GROUP by NAME: none; the one that it leads to, which then keeps what
 * is in it; or some that are in there. */
typedef enum { NONE, ITSELF, BELOW } going_groups;

static going_groups groups_going(const cow_home *home, cow_loc group, const char *name, const H5O_info2_t *object)
{
    going_groups going = BELOW;
    cow_loc gone;

    if (object->type != H5O_TYPE_GROUP || object->rc > 1)
        return NONE;
    if (cow_home_group_open(home, &object->token, NULL))
        return ITSELF;
    if (cow_native_open(group, name, &gone) == 0) {
        going = cow_file_group_holds_groups(gone) ? BELOW : NONE;
        cow_native_close(gone);
    } else
        cow_error_clear();
    return going;
}

static void note_unlinked(cow_file *file, const H5O_info2_t *gone, going_groups going)
{
    cow_file_unlinked(file, gone);
    if (going == ITSELF)
        cow_file_group_unlinked(file, &gone->token);
    else if (going == BELOW)
        cow_file_groups_unlinked(file);
}

/* What LINK leads to; its name may lead to the root of a file that is mounted there. */
static bool is_known(const cow_home *home, cow_loc group, const char *name, const H5L_info2_t *link,
                     H5O_info2_t *object)
{
    const H5VL_loc_params_t by_name = cow_by_name(group.type, name);

    return cow_info_quietly(group.object, &by_name, object) > 0 && object->fileno == home->fileno &&
           memcmp(&object->token, &link->u.token, sizeof object->token) == 0;
}

static herr_t delete(cow_object *o, cow_where *where, H5VL_link_specific_args_t *args, hid_t dxpl, void **req)
{
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_INFO};
    cow_target target = {0};
    cow_loc group = {0};
    H5L_info2_t info;
    H5O_info2_t object;
    char *name = NULL;
    herr_t status = -1, found = -1;
    int kept = 0, own = 0;
    going_groups going = NONE;
    bool borrowed = false, known = false;

    if (where->loc.type == H5VL_OBJECT_BY_IDX) {
        cow_where in = *where;
        in.loc = cow_by_name(where->loc.obj_type, where->loc.loc_data.loc_by_idx.name);
        if (cow_target_object(o, &in, "delete a link of", &target) < 0)
            goto done;
    } else if (cow_target_parent(o, where, link_name(where), "delete", &target) < 0)
        goto done;
    cow_homes_open_heads(target.home);
    if (target.home != NULL && target.home->file != NULL && cow_file_writable(target.home->file)) {
        const size_t before = cow_errors_count();
        get.args.get_info.linfo = &info;
        H5E_BEGIN_TRY
        {
            found = H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL);
        }
        H5E_END_TRY
        if (found < 0)
            cow_errors_drop(before); /* deleting it says it better */
    }
    if (found >= 0 && (info.type == H5L_TYPE_HARD || where->loc.type == H5VL_OBJECT_BY_IDX) &&
        holder(where, &group, &borrowed, &name) < 0) {
        if (info.type == H5L_TYPE_HARD)
            goto done;
        cow_error_clear();
    }
    if (found >= 0 && info.type == H5L_TYPE_HARD) {
        if ((kept = group.object != NULL ? cow_file_keep_removed(target.home->file, group, name,
                                                                 where->loc.type == H5VL_OBJECT_BY_IDX ? NULL : &info)
                                         : cow_file_unstow(target.home->file, NULL)) < 0 ||
            (kept == 0 && group.object != NULL && (own = is_own_link(group, &info)) < 0) ||
            (own && cow_native_change_references(group, 1) < 0))
            goto done;
        if (kept == 0 && group.object != NULL && (known = is_known(target.home, group, name, &info, &object)))
            going = groups_going(target.home, group, name, &object);
        /* what is open lives on without a link */
        if (kept == 0 && (!known || object.rc <= 1) && cow_metadata_cache_for_unlinked(target.home) < 0)
            goto done;
        if (group.object == NULL)
            cow_changed_paths(target.home->file);
    }
    if (where->loc.type == H5VL_OBJECT_BY_IDX && group.object != NULL) {
        /* by its name: of a mount point HDF5 lists the mounted root by index, but deletes from the group below it (seen in 1.14.5) */
        where->native = group.object;
        where->loc = cow_by_name(group.type, name);
    }
    status = kept ? 0 : H5VLlink_specific(where->native, &where->loc, cow_native_id(), args, dxpl, req);
    if (own && cow_native_change_references(group, -1) < 0)
        status = -1;
    if (status >= 0 && kept == 0 && found >= 0 && info.type == H5L_TYPE_HARD)
        note_unlinked(target.home->file, known ? &object : NULL, going);
    if (status >= 0)
        status = cow_target_member_changed(&target, link_name(where));
done:
    if (group.object != NULL && !borrowed)
        cow_native_close(group);
    free(name);
    cow_target_done(&target);
    return status;
}

typedef struct version_iteration {
    const cow_home *home;
    H5L_iterate2_t op;
    void *op_data;
} version_iteration;

/* The length of a soft link's value is that of the value which is shown, a hard link's token that of the head. */
static herr_t each_version_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    version_iteration *it = context;
    H5L_info2_t shown = *info;

    if (info->type == H5L_TYPE_SOFT ? H5Lget_info2(group, name, &shown, H5P_DEFAULT) < 0
                                    : cow_show_link_info(it->home, &shown) < 0)
        return -1;
    return it->op(group, name, &shown, it->op_data);
}

static herr_t iterate(cow_object *o, cow_where *where, H5VL_link_specific_args_t *args, hid_t dxpl, void **req)
{
    H5VL_link_specific_args_t native = *args;
    version_iteration it = {o->home, args->args.iterate.op, args->args.iterate.op_data};
    cow_listed listed;
    int ours;

    if (o->home != NULL && o->home->version != NULL) {
        native.args.iterate.op = each_version_link;
        native.args.iterate.op_data = &it;
        return H5VLlink_specific(where->native, &where->loc, cow_native_id(), &native, dxpl, req);
    }
    ours = args->args.iterate.recursive ? cow_visits(o, where, &listed) : cow_hides(o, where, &listed);
    if (ours < 0)
        return -1;
    if (!ours)
        return H5VLlink_specific(where->native, &where->loc, cow_native_id(), args, dxpl, req);
    return args->args.iterate.recursive ? cow_visit_links(&listed, &args->args.iterate, dxpl)
                                        : cow_hide_iterate(&listed, &args->args.iterate, dxpl);
}

/* The last link of a name is asked about, not followed: does one stand before it, which may lead to a version? */
static bool follows_links(const char *name)
{
    const char *last = strrchr(name, '/');

    return last != NULL && strspn(name, "/") < (size_t)(last - name);
}

herr_t cow_vol_link_specific(void *object, const H5VL_loc_params_t *loc, H5VL_link_specific_args_t *args, hid_t dxpl,
                             void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    cow_detour detour;
    cow_loud loud;
    herr_t status = -1;

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0)
        goto done;
    switch (args->op_type) {
    case H5VL_LINK_DELETE:
        if (cow_hide_index(o, &where) == 0)
            status = delete (o, &where, args, dxpl, req);
        break;
    case H5VL_LINK_EXISTS:
        status = H5VLlink_specific(where.native, &where.loc, cow_native_id(), args, dxpl, req);
        break;
    case H5VL_LINK_ITER:
        cow_loud_link(&quiet, &args->args.iterate.op, &args->args.iterate.op_data, &loud);
        status = iterate(o, &where, args, dxpl, req);
        break;
    }
    if (args->op_type != H5VL_LINK_DELETE &&
        (status < 0 || (args->op_type == H5VL_LINK_EXISTS && !*args->args.exists.exists &&
                        follows_links(where.loc.loc_data.loc_by_name.name))) &&
        cow_detour_by_name(&where, &detour)) {
        status = cow_vol_link_specific(detour.file, &detour.loc, args, dxpl, req);
        cow_detour_end(&detour);
    }
done:
    cow_where_done(&where);
    return cow_leave(status);
}

herr_t cow_vol_link_optional(void *object, const H5VL_loc_params_t *loc, H5VL_optional_args_t *args, hid_t dxpl,
                             void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    herr_t status = -1;

    if (o->home != NULL && (o->home->file != NULL || o->home->foreign)) {
        cow_error(COW_UNSUPPORTED, "operation %d on links is not known to this h5cow, and could write", args->op_type);
        return cow_leave(-1);
    }
    if (cow_locate(o, loc, COW_TO_READ, &where) == 0)
        status = H5VLlink_optional(where.native, &where.loc, cow_native_id(), args, dxpl, req);
    cow_where_done(&where);
    return cow_leave(status);
}
