/* The metadata cache of a file with history is never smaller than HDF5's own default allows. HDF5 1.14 forgets, of an
 * object that has no link yet, that it has none, when the cache evicts its header: linked then, it is deleted with the
 * last handle, link or not. Programs cannot do much about that, but most of what a commit makes has no link at first.
 * What a commit makes is put right by history/unlinked.c as soon as it is known; this covers the time until then, and the
 * program's own objects. The program is told the sizes that it asked for. */
#include "vol/vol.h"

#define DXPL H5P_DATASET_XFER_DEFAULT

/* What HDF5 itself does not go below, unless it is told to. */
#define LEAST ((size_t)1 << 20)

static int get(void *native, H5AC_cache_config_t *config)
{
    H5VL_native_file_optional_args_t arguments = {.get_mdc_config.config = config};
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_MDC_CONF, .args = &arguments};

    config->version = H5AC__CURR_CACHE_CONFIG_VERSION;
    if (H5VLfile_optional(native, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot look at the metadata cache");
    return 0;
}

static int set(void *native, const H5AC_cache_config_t *config)
{
    H5VL_native_file_optional_args_t arguments = {.set_mdc_config.config = config};
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_SET_MDC_CONFIG, .args = &arguments};

    if (H5VLfile_optional(native, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot set the metadata cache");
    return 0;
}

/* False: it is large enough. */
static bool raise_sizes(H5AC_cache_config_t *config)
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

int cow_cache_prepare(cow_home *home, void *native)
{
    H5AC_cache_config_t config, asked;

    if (get(native, &config) < 0)
        return -1;
    asked = config;
    if (!raise_sizes(&config))
        return 0; /* also where it was raised by an opening before */
    if (set(native, &config) < 0)
        return -1;
    cow_home_cache_asked(
        home, &(cow_cache_sizes){true, asked.set_initial_size, asked.initial_size, asked.min_size, asked.max_size});
    return 0;
}

int cow_cache_set(cow_home *home, void *native, const H5AC_cache_config_t *wanted)
{
    H5AC_cache_config_t config;
    cow_cache_sizes asked = {.raised = false};

    /* a version that is not known, or sizes that make no sense, HDF5 is to refuse */
    if (wanted == NULL || wanted->version != H5AC__CURR_CACHE_CONFIG_VERSION || wanted->min_size > wanted->max_size ||
        wanted->min_size < 1024 ||
        (wanted->set_initial_size &&
         (wanted->initial_size < wanted->min_size || wanted->initial_size > wanted->max_size)))
        return set(native, wanted);
    config = *wanted;
    if (raise_sizes(&config))
        asked =
            (cow_cache_sizes){true, wanted->set_initial_size, wanted->initial_size, wanted->min_size, wanted->max_size};
    if (set(native, &config) < 0)
        return -1;
    cow_home_cache_asked(home, &asked);
    return 0;
}

void cow_cache_show(const cow_home *home, H5AC_cache_config_t *config)
{
    if (!home->cache.raised)
        return;
    config->set_initial_size = home->cache.set_initial;
    config->initial_size = home->cache.initial;
    config->min_size = home->cache.least;
    config->max_size = home->cache.most;
}
