/* H5G: groups. */
#include "vol/vol.h"

static void *create(const cow_where *where, const cow_home *home, hid_t lcpl, hid_t gcpl, hid_t gapl, hid_t dxpl,
                    void **req)
{
    const cow_loc at = {where->native, where->loc.obj_type};
    H5F_libver_t low;
    const bool old = cow_home_old_headers(home, at, H5I_GROUP, &low);
    void *native =
        H5VLgroup_create(where->native, &where->loc, cow_native_id(), where->name, lcpl, gcpl, gapl, dxpl, req);

    if (old && cow_home_new_headers(at, low, native != NULL) < 0 && native != NULL) {
        cow_object_close_native(native, H5I_GROUP);
        return NULL;
    }
    return native;
}

void *cow_vol_group_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t lcpl, hid_t gcpl,
                           hid_t gapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    cow_target target = {0};
    void *native = NULL;
    cow_object *made;

    if (cow_locate_name(o, loc, name, COW_TO_CREATE, &where) == 0 && cow_target_new(o, &where, &target) == 0)
        native = create(&where, target.home, lcpl, gcpl, gapl, dxpl, req);
    made = cow_creation_end(o, &where, &target, native, H5I_GROUP, name);
    if (made != NULL && gcpl == H5P_GROUP_CREATE_DEFAULT && made->has_token && made->home != NULL &&
        made->home->file != NULL)
        cow_changed_empty_group(made->home->file, &made->token);
    return cow_leave_pointer(made);
}

void *cow_vol_group_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t gapl, hid_t dxpl,
                         void **req)
{
    COW_QUIET;
    cow_object *o = object, *opened = NULL;
    cow_where where;
    cow_detour detour;
    void *native;

    if (cow_locate_name(o, loc, name, COW_TO_READ, &where) < 0)
        goto done;
    if ((native = H5VLgroup_open(where.native, &where.loc, cow_native_id(), where.name, gapl, dxpl, req)) != NULL)
        opened = cow_object_wrap(o, native, H5I_GROUP, false);
    else if (cow_detour_begin(&where, where.name, gapl, &detour)) {
        opened = cow_vol_group_open(detour.file, &detour.loc, detour.name, gapl, dxpl, req);
        cow_detour_end(&detour);
    }
done:
    cow_home_followed(o, opened, gapl);
    cow_where_done(&where);
    return cow_leave_pointer(opened);
}

herr_t cow_vol_group_get(void *object, H5VL_group_get_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    H5VL_group_get_args_t native = *args;
    cow_where where = {.native = cow_object_opened(o)};
    cow_detour detour;
    bool good = true;
    herr_t status = -1;

    switch (args->op_type) {
    case H5VL_GROUP_GET_GCPL: {
        H5VL_loc_params_t self = cow_by_self(o->type);
        if (cow_locate(o, &self, COW_TO_READ, &where) < 0)
            goto done;
        break;
    }
    case H5VL_GROUP_GET_INFO:
        if (cow_locate(o, &args->args.get_info.loc_params, COW_TO_READ, &where) < 0)
            goto done;
        good = cow_hide_index(o, &where) == 0;
        native.args.get_info.loc_params = where.loc;
        break;
    }
    if (!good || (status = H5VLgroup_get(where.native, cow_native_id(), &native, dxpl, req)) < 0) {
        if (args->op_type == H5VL_GROUP_GET_INFO && cow_detour_to_object(&where, &detour)) {
            native.args.get_info.loc_params = detour.loc;
            status = cow_vol_group_get(detour.file, &native, dxpl, req);
            cow_detour_end(&detour);
        }
        goto done;
    }
    switch (args->op_type) {
    case H5VL_GROUP_GET_GCPL:
        args->args.get_gcpl.gcpl_id = native.args.get_gcpl.gcpl_id;
        if (o->home->version != NULL && cow_native_gcpl_tell(native.args.get_gcpl.gcpl_id) < 0)
            status = -1;
        break;
    case H5VL_GROUP_GET_INFO:
        status = cow_hide_group_info(o, &where, args->args.get_info.ginfo);
        break;
    }
done:
    cow_where_done(&where);
    return cow_leave(status);
}

herr_t cow_vol_group_specific(void *object, H5VL_group_specific_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_home *home = cow_home_reference(o->home); /* a refresh closes the object in the middle */
    H5VL_group_specific_args_t native = *args;
    H5VL_loc_params_t self = cow_by_self(o->type);
    cow_where where = {0};
    herr_t status = -1;

    switch (args->op_type) {
    case H5VL_GROUP_MOUNT: {
        cow_object *child = cow_object_of(args->args.mount.child_file);

        if (child != NULL && child->home != NULL && child->home->version != NULL) {
            cow_error(COW_UNSUPPORTED,
                      "%s: an old version cannot be mounted, for HDF5 would show the newest state there; mount what "
                      "h5cow export makes of it",
                      cow_file_name(child->home->file));
            break;
        }
        if (cow_locate_name(o, &self, args->args.mount.name, COW_TO_READ, &where) < 0)
            break;
        native.args.mount.name = where.name;
        cow_homes_open_all();
        native.args.mount.child_file = cow_object_native(args->args.mount.child_file);
        status = H5VLgroup_specific(where.native, cow_native_id(), &native, dxpl, req);
        if (status >= 0 && child != NULL)
            status = cow_home_mount(home, child->home);
        break;
    }
    case H5VL_GROUP_UNMOUNT: {
        H5VL_loc_params_t at;
        H5O_info2_t info; /* of the root of what is mounted there */
        int there;

        if (cow_locate_name(o, &self, args->args.unmount.name, COW_TO_READ, &where) < 0)
            break;
        native.args.unmount.name = where.name;
        at = cow_by_name(where.loc.obj_type, where.name);
        there = cow_info_quietly(where.native, &at, &info);
        status = H5VLgroup_specific(where.native, cow_native_id(), &native, dxpl, req);
        if (status >= 0 && there > 0)
            cow_home_unmount(home, info.fileno);
        break;
    }
    case H5VL_GROUP_FLUSH:
    case H5VL_GROUP_REFRESH:
        where = (cow_where){0};
        status = H5VLgroup_specific(o->handle, cow_native_id(), args, dxpl, req);
        break;
    default:
        where = (cow_where){0};
        cow_error(COW_UNSUPPORTED, "an operation on groups that this h5cow does not know");
    }
    cow_where_done(&where);
    if (cow_home_release(home) < 0)
        status = -1;
    return cow_leave(status);
}

herr_t cow_vol_group_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    H5VL_native_group_optional_args_t *given = args->args, native;
    H5VL_optional_args_t again = {.op_type = args->op_type, .args = &native};
    cow_where where = {0};
    cow_detour detour;
    cow_listed listed;
    cow_loud loud;
    herr_t status = -1;
    int hides;

    switch (args->op_type) {
    case H5VL_NATIVE_GROUP_ITERATE_OLD:
        native.iterate_old = given->iterate_old;
        cow_loud_member_old(&quiet, &native.iterate_old.op, &native.iterate_old.op_data, &loud);
        if (cow_locate(o, &given->iterate_old.loc_params, COW_TO_READ, &where) < 0)
            break;
        native.iterate_old.loc_params = where.loc;
        if ((hides = cow_hides(o, &where, &listed)) >= 0)
            status = hides ? cow_hide_iterate_old(&listed, &native.iterate_old, dxpl)
                           : H5VLgroup_optional(where.native, cow_native_id(), &again, dxpl, req);
        if (status < 0 && cow_detour_by_name(&where, &detour)) {
            native.iterate_old.loc_params = detour.loc;
            status = cow_vol_group_optional(detour.file, &again, dxpl, req);
            cow_detour_end(&detour);
        }
        break;
    case H5VL_NATIVE_GROUP_GET_OBJINFO: {
        H5G_stat_t *stat = given->get_objinfo.statbuf;

        native.get_objinfo = given->get_objinfo;
        if (cow_locate(o, &given->get_objinfo.loc_params, COW_TO_READ, &where) < 0)
            break;
        native.get_objinfo.loc_params = where.loc;
        status = H5VLgroup_optional(where.native, cow_native_id(), &again, dxpl, req);
        if (status >= 0 && stat != NULL && stat->type != H5G_LINK)
            status = cow_show_stat(o->home, stat);
        else if (status >= 0 && stat != NULL && o->home != NULL && o->home->version != NULL)
            status = cow_path_link_length(o, &where, &stat->linklen);
        else if (status < 0 && given->get_objinfo.follow_link && cow_detour_by_name(&where, &detour)) {
            native.get_objinfo.loc_params = detour.loc;
            status = cow_vol_group_optional(detour.file, &again, dxpl, req);
            cow_detour_end(&detour);
        }
        break;
    }
    default:
        if (o->home != NULL && (o->home->file != NULL || o->home->foreign))
            cow_error(COW_UNSUPPORTED, "operation %d on groups is not known to this h5cow, and could write",
                      args->op_type);
        else
            status = H5VLgroup_optional(o->handle, cow_native_id(), args, dxpl, req);
    }
    cow_where_done(&where);
    return cow_leave(status);
}

herr_t cow_vol_group_close(void *object, hid_t dxpl, void **req)
{
    COW_QUIET;
    return cow_object_close(object, dxpl, req);
}
