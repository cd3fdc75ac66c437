/* H5A: attributes. They stay native; a version's object gets copies of them when they changed. */
#include "vol/vol.h"

#include "journal/driver.h"

#include <stdlib.h>
#include <string.h>

/* An attribute remembers the object it belongs to: writing it changes that object. */
static cow_object *wrap(cow_object *o, void *native, cow_target *target)
{
    cow_home *home = target->home != NULL ? target->home : o->home;
    cow_object *attribute = cow_object_new(cow_home_reference(home), native, H5I_ATTR);

    if (attribute == NULL) {
        cow_object_close_native(native, H5I_ATTR);
        return NULL;
    }
    attribute->token = target->token;
    attribute->has_token = target->known;
    attribute->unnamed = o->unnamed;
    attribute->detached = o->detached || home != o->home;
    attribute->owner_path = target->path;
    target->path = NULL;
    return attribute;
}

/* HDF5 refuses such a name in the older format only. In the newer one it cuts its length to 16 bits, cannot write the
 * value, and nobody can read any attribute of the object from then on. */
static int check_name(const cow_object *o, const char *name)
{
    if (o->home == NULL || strlen(name) < UINT16_MAX)
        return 0;
    return cow_error(COW_USAGE, "the name of an attribute has more than %d bytes", UINT16_MAX - 1);
}

void *cow_vol_attribute_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t type, hid_t space,
                               hid_t acpl, hid_t aapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object, *made = NULL;
    cow_where where;
    cow_target target = {0};
    void *native = NULL;

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0 || check_name(o, name) < 0 ||
        cow_target_object(o, &where, "write to", &target) < 0 || cow_home_allows_type(target.home, type) < 0)
        goto done;
    if ((native = H5VLattr_create(where.native, &where.loc, cow_native_id(), name, type, space, acpl, aapl, dxpl,
                                  req)) == NULL)
        goto done;
    if (cow_target_changed(&target, COW_CHANGED_ATTRIBUTES) < 0)
        cow_object_close_native(native, H5I_ATTR);
    else
        made = wrap(o, native, &target);
done:
    if (made == NULL)
        cow_creation_failed(&target, native != NULL, &made);
    cow_target_done(&target);
    cow_where_done(&where);
    return cow_leave_pointer(made);
}

/* Which object it belongs to, where that is not asked for the sake of writing: values are compared with checksums. */
static void learn_owner(const cow_object *o, const cow_where *where, cow_target *target)
{
    H5VL_object_get_args_t get = {.op_type = H5VL_OBJECT_GET_INFO};
    H5VL_loc_params_t loc = where->loc;
    H5O_info2_t info;

    if (o->home == NULL || o->home->file == NULL)
        return;
    if (loc.type == H5VL_OBJECT_BY_IDX) /* the index counts attributes */
        loc = cow_by_name(loc.obj_type, where->loc.loc_data.loc_by_idx.name);
    get.args.get_info.oinfo = &info;
    get.args.get_info.fields = H5O_INFO_BASIC;
    if (H5VLobject_get(where->native, &loc, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) >= 0 &&
        info.fileno == o->home->fileno) {
        target->token = info.token;
        target->known = true;
    }
}

void *cow_vol_attribute_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t aapl, hid_t dxpl,
                             void **req)
{
    COW_QUIET;
    cow_object *o = object, *opened = NULL;
    cow_where where;
    cow_detour detour;
    cow_target target = {0};
    void *native;

    if (cow_locate(o, loc, COW_TO_READ, &where) < 0)
        goto done;
    if ((native = H5VLattr_open(where.native, &where.loc, cow_native_id(), name, aapl, dxpl, req)) == NULL) {
        if (cow_detour_by_name(&where, &detour)) {
            opened = cow_vol_attribute_open(detour.file, &detour.loc, name, aapl, dxpl, req);
            cow_detour_end(&detour);
        }
        goto done;
    }
    /* Whether it may be written is asked when it is. */
    if (cow_target_object(o, &where, "write to", &target) < 0) {
        cow_error_clear();
        learn_owner(o, &where, &target);
    }
    opened = wrap(o, native, &target);
done:
    cow_target_done(&target);
    cow_where_done(&where);
    return cow_leave_pointer(opened);
}

/* What is not in a checksummed header. */
static int check_value(const cow_object *o)
{
    H5VL_attr_get_args_t type = {.op_type = H5VL_ATTR_GET_TYPE}, space = {.op_type = H5VL_ATTR_GET_SPACE};
    hssize_t n = -1;
    bool covered = false;
    int status = 0;

    if (o->home == NULL || o->home->file == NULL || !o->has_token)
        return 0;
    if (H5VLattr_get(o->handle, cow_native_id(), &type, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        return cow_error_native("cannot get the type of an attribute");
    if (H5VLattr_get(o->handle, cow_native_id(), &space, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        status = cow_error_native("cannot get the space of an attribute");
    else {
        n = H5Sget_simple_extent_npoints(space.args.get_space.space_id);
        covered = n > 0 && cow_sum_covers(type.args.get_type.type_id, (size_t)n);
        H5Sclose(space.args.get_space.space_id);
    }
    if (status == 0)
        status = cow_home_check_type(o->home, type.args.get_type.type_id);
    H5Tclose(type.args.get_type.type_id);
    return status == 0 && covered ? cow_sum_check(o->home->file, &o->token, COW_CHANGED_ATTRIBUTES) : status;
}

herr_t cow_vol_attribute_read(void *object, hid_t type, void *buf, hid_t dxpl, void **req)
{
    COW_QUIET;
    if (check_value(cow_object_of(object)) < 0)
        return cow_leave(-1);
    return H5VLattr_read(cow_object_native(object), cow_native_id(), type, buf, dxpl, req);
}

herr_t cow_vol_attribute_write(void *object, hid_t type, const void *buf, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_target target = {.home = o->home, .known = o->has_token, .token = o->token, .path = o->owner_path};
    unsigned long failures;
    herr_t status = -1;

    if (cow_home_may_write(o->home, "write to", o->owner_path) < 0)
        return cow_leave(-1);
    failures = cow_journal_driver_failures();
    if ((status = H5VLattr_write(o->handle, cow_native_id(), type, buf, dxpl, req)) >= 0)
        status = cow_home_wrote(o->home, cow_target_changed(&target, COW_CHANGED_ATTRIBUTES));
    else if (cow_journal_driver_failures() != failures)
        cow_home_half_changed(o->home);
    return cow_leave(status);
}

herr_t cow_vol_attribute_get(void *object, H5VL_attr_get_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    H5VL_attr_get_args_t native = *args;
    H5VL_loc_params_t *loc = NULL;
    cow_where where = {.native = cow_object_opened(o)};
    cow_detour detour;
    herr_t status = -1;

    switch (args->op_type) {
    case H5VL_ATTR_GET_NAME:
        loc = &native.args.get_name.loc_params;
        break;
    case H5VL_ATTR_GET_INFO:
        loc = &native.args.get_info.loc_params;
        break;
    case H5VL_ATTR_GET_ACPL:
    case H5VL_ATTR_GET_SPACE:
    case H5VL_ATTR_GET_STORAGE_SIZE:
    case H5VL_ATTR_GET_TYPE:
        break;
    }
    if (loc != NULL && o->type != H5I_ATTR) {
        if (cow_locate(o, loc, COW_TO_READ, &where) < 0)
            goto done;
        *loc = where.loc;
    }
    status = H5VLattr_get(where.native, cow_native_id(), &native, dxpl, req);
    if (status >= 0 && args->op_type == H5VL_ATTR_GET_TYPE &&
        cow_home_check_type(o->home, native.args.get_type.type_id) < 0) {
        H5Tclose(native.args.get_type.type_id);
        native.args.get_type.type_id = H5I_INVALID_HID;
        status = -1;
    }
    if (loc == NULL)
        *args = native;
    else if (status < 0 && o->type != H5I_ATTR && cow_detour_by_name(&where, &detour)) {
        *loc = detour.loc;
        status = cow_vol_attribute_get(detour.file, &native, dxpl, req);
        cow_detour_end(&detour);
    }
done:
    cow_where_done(&where);
    return cow_leave(status);
}

herr_t cow_vol_attribute_specific(void *object, const H5VL_loc_params_t *loc, H5VL_attr_specific_args_t *args,
                                  hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    cow_target target = {0};
    cow_detour detour;
    cow_loud loud;
    bool writes = false, deletes = false;
    herr_t status = -1;

    switch (args->op_type) {
    case H5VL_ATTR_DELETE:
    case H5VL_ATTR_DELETE_BY_IDX:
        deletes = writes = true;
        break;
    case H5VL_ATTR_RENAME:
        writes = true;
        break;
    case H5VL_ATTR_EXISTS:
        break;
    case H5VL_ATTR_ITER:
        cow_loud_attribute(&quiet, &args->args.iterate.op, &args->args.iterate.op_data, &loud);
        break;
    }
    if (cow_locate(o, loc, COW_TO_READ, &where) < 0 ||
        (args->op_type == H5VL_ATTR_RENAME && check_name(o, args->args.rename.new_name) < 0) ||
        (writes && cow_target_object(o, &where, "change the attributes of", &target) < 0))
        goto done;
    status = deletes ? cow_native_attribute_remove(where.native, &where.loc, args, dxpl, req)
                     : H5VLattr_specific(where.native, &where.loc, cow_native_id(), args, dxpl, req);
    if (status >= 0 && writes && cow_target_changed(&target, COW_CHANGED_ATTRIBUTES) < 0)
        status = -1;
    if (status < 0 && !writes && cow_detour_by_name(&where, &detour)) {
        status = cow_vol_attribute_specific(detour.file, &detour.loc, args, dxpl, req);
        cow_detour_end(&detour);
    }
done:
    cow_target_done(&target);
    cow_where_done(&where);
    return cow_leave(status);
}

herr_t cow_vol_attribute_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    H5VL_loc_params_t self = cow_by_self(o->type);
    cow_where where = {.native = cow_object_opened(o)};
    cow_loud loud;
    herr_t status = -1;

    if (args->op_type == H5VL_NATIVE_ATTR_ITERATE_OLD) {
        H5VL_native_attr_optional_args_t *old = args->args;
        cow_loud_attribute_old(&quiet, &old->iterate_old.op, &old->iterate_old.op_data, &loud);
    }
    /* The only operation there is: H5Aiterate1, which reads. It works with the id in its arguments. */
    if (args->op_type != H5VL_NATIVE_ATTR_ITERATE_OLD && o->home != NULL && (o->home->file != NULL || o->home->foreign))
        cow_error(COW_UNSUPPORTED, "operation %d on attributes is not known to this h5cow, and could write",
                  args->op_type);
    else if (o->type == H5I_ATTR || cow_locate(o, &self, COW_TO_READ, &where) == 0)
        status = H5VLattr_optional(where.native, cow_native_id(), args, dxpl, req);
    cow_where_done(&where);
    return cow_leave(status);
}

herr_t cow_vol_attribute_close(void *object, hid_t dxpl, void **req)
{
    COW_QUIET;
    return cow_object_close(object, dxpl, req);
}
