/* HDF5's metadata cache: its size.
 *
 * HDF5 1.14 forgets, of an object that has no link yet, that it has none, when the cache evicts its header; linked then, it
 * is deleted with the last handle on it. A cache that HDF5 itself would make is large enough for what lies between making
 * an object and linking it; a program may want a smaller one.
 */
#include "native/native.h"

#include "base/error.h"

#define DXPL H5P_DATASET_XFER_DEFAULT

/* What HDF5 itself does not go below, unless it is told to. */
#define LEAST ((size_t)1 << 20)

int cow_native_metadata_cache_get(void *file, H5AC_cache_config_t *config)
{
    H5VL_native_file_optional_args_t arguments = {.get_mdc_config.config = config};
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_MDC_CONF, .args = &arguments};

    config->version = H5AC__CURR_CACHE_CONFIG_VERSION;
    if (H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot look at the metadata cache");
    return 0;
}

int cow_native_metadata_cache_set(void *file, const H5AC_cache_config_t *config)
{
    H5VL_native_file_optional_args_t arguments;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_SET_MDC_CONFIG, .args = &arguments};

    arguments.set_mdc_config.config = config;
    if (H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot set the metadata cache");
    return 0;
}

bool cow_native_metadata_cache_raise(H5AC_cache_config_t *config)
{
    if (config->min_size >= LEAST)
        return false;
    config->min_size = LEAST;
    if (config->max_size < LEAST)
        config->max_size = LEAST;
    if (config->initial_size < LEAST)
        config->initial_size = LEAST;
    config->set_initial_size = true;
    return true;
}

int cow_native_metadata_cache_widen(void *file, H5AC_cache_config_t *before)
{
    H5AC_cache_config_t wide;

    if (cow_native_metadata_cache_get(file, before) < 0)
        return -1;
    wide = *before;
    if (!cow_native_metadata_cache_raise(&wide))
        return 0;
    return cow_native_metadata_cache_set(file, &wide) < 0 ? -1 : 1;
}

void cow_native_metadata_cache_restore(void *file, const H5AC_cache_config_t *before)
{
    cow_error_held *held = cow_error_hold();

    if (cow_native_metadata_cache_set(file, before) < 0)
        cow_error_clear(); /* it stays larger than the program wants it */
    cow_error_put_back(held);
}

void cow_native_uncork(cow_loc object)
{
    H5VL_loc_params_t self = {.type = H5VL_OBJECT_BY_SELF, .obj_type = object.type};
    H5VL_native_object_optional_args_t arguments;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_OBJECT_ARE_MDC_FLUSHES_DISABLED, .args = &arguments};
    hbool_t corked = false;

    arguments.are_mdc_flushes_disabled.flag = &corked;
    if (H5VLobject_optional(object.object, &self, cow_native_id(), &args, DXPL, NULL) < 0 || !corked)
        return;
    args.op_type = H5VL_NATIVE_OBJECT_ENABLE_MDC_FLUSHES;
    H5VLobject_optional(object.object, &self, cow_native_id(), &args, DXPL, NULL);
}
