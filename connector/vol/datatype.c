/* H5T: named datatypes. */
#include "vol/vol.h"

static void *commit(const cow_where *where, const cow_home *home, hid_t type, hid_t lcpl, hid_t tcpl, hid_t tapl,
                    hid_t dxpl, void **req)
{
    const cow_loc at = {where->native, where->loc.obj_type};
    H5F_libver_t low;
    const bool old = cow_home_old_headers(home, at, H5I_DATATYPE, &low);
    void *native = H5VLdatatype_commit(where->native, &where->loc, cow_native_id(), where->name, type, lcpl, tcpl, tapl,
                                       dxpl, req);

    if (old && cow_home_new_headers(at, low, native != NULL) < 0 && native != NULL) {
        cow_object_close_native(native, H5I_DATATYPE);
        return NULL;
    }
    return native;
}

void cow_object_check_type(cow_object **opened)
{
    cow_object *o = *opened;
    cow_error_held *held;

    if (o == NULL || o->type != H5I_DATATYPE || o->home == NULL || o->home->file == NULL || !o->has_token ||
        cow_sum_check_type(o->home->file, &o->token) == 0)
        return;
    held = cow_error_hold();
    cow_object_close(o, H5P_DATASET_XFER_DEFAULT, NULL);
    cow_error_put_back(held);
    *opened = NULL;
}

int cow_home_check_type(const cow_home *home, hid_t type)
{
    H5O_token_t token;
    int named = home == NULL || home->file == NULL ? 0 : cow_native_named_token(type, &token);

    return named > 0 ? cow_sum_check_type(home->file, &token) : named;
}

void *cow_vol_datatype_commit(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t type, hid_t lcpl,
                              hid_t tcpl, hid_t tapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_where where;
    cow_target target = {0};
    void *native = NULL;

    if (cow_locate_name(o, loc, name, COW_TO_CREATE, &where) == 0 && cow_target_new(o, &where, &target) == 0 &&
        cow_home_allows_type(target.home, type) == 0)
        native = commit(&where, target.home, type, lcpl, tcpl, tapl, dxpl, req);
    return cow_leave_pointer(cow_creation_end(o, &where, &target, native, H5I_DATATYPE, name));
}

void *cow_vol_datatype_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t tapl, hid_t dxpl,
                            void **req)
{
    COW_QUIET;
    cow_object *o = object, *opened = NULL;
    cow_where where;
    cow_detour detour;
    void *native;

    if (cow_locate_name(o, loc, name, COW_TO_READ, &where) < 0)
        goto done;
    if ((native = H5VLdatatype_open(where.native, &where.loc, cow_native_id(), where.name, tapl, dxpl, req)) != NULL)
        opened = cow_object_wrap(o, native, H5I_DATATYPE, false);
    else if (cow_detour_begin(&where, where.name, tapl, &detour)) {
        opened = cow_vol_datatype_open(detour.file, &detour.loc, detour.name, tapl, dxpl, req);
        cow_detour_end(&detour);
    }
    cow_object_check_type(&opened);
done:
    cow_home_followed(o, opened, tapl);
    cow_where_done(&where);
    return cow_leave_pointer(opened);
}

herr_t cow_vol_datatype_get(void *object, H5VL_datatype_get_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    return H5VLdatatype_get(cow_object_native(object), cow_native_id(), args, dxpl, req);
}

herr_t cow_vol_datatype_specific(void *object, H5VL_datatype_specific_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_home *home = cow_home_reference(o->home); /* a refresh closes the object in the middle */
    herr_t status = H5VLdatatype_specific(o->handle, cow_native_id(), args, dxpl, req);

    if (cow_home_release(home) < 0)
        status = -1;
    return cow_leave(status);
}

herr_t cow_vol_datatype_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    return H5VLdatatype_optional(cow_object_native(object), cow_native_id(), args, dxpl, req);
}

herr_t cow_vol_datatype_close(void *object, hid_t dxpl, void **req)
{
    COW_QUIET;
    return cow_object_close(object, dxpl, req);
}
