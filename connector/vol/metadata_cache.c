/* The metadata cache of a file with history. Where objects are made before they are linked, it is not smaller than HDF5's own
 * default allows (native/metadata_cache.c). Commits and copies see to that for what they make; the program's own objects
 * without a link, of which it may make the first at any time, or delete something that is open, are the reason why the cache
 * stays larger from then on. The program is told the sizes that it asked for.
 *
 * And no image of the cache is put into such a file when it is closed (H5Pset_mdc_image_config): HDF5 2.0.0 cannot open many
 * files that have one, and with it no version could be read. The program is told that it asked for one. */
#include "vol/vol.h"

/* What a program that asked for CONFIG is told, where it is not what was set. */
static cow_metadata_cache_sizes asked_for(const H5AC_cache_config_t *config, bool raised)
{
    return (cow_metadata_cache_sizes){
        true, raised, config->set_initial_size, config->initial_size, config->min_size, config->max_size};
}

int cow_metadata_cache_for_unlinked(cow_home *home)
{
    H5AC_cache_config_t asked;
    cow_metadata_cache_sizes sizes;
    int raised;

    if (home == NULL || home->file == NULL || !cow_file_writable(home->file) || home->cache.unlinked)
        return 0;
    if ((raised = cow_native_metadata_cache_widen(cow_file_native(home->file), &asked)) < 0)
        return -1;
    sizes = asked_for(&asked, raised > 0);
    cow_home_metadata_cache_asked(home, &sizes);
    return 0;
}

int cow_metadata_cache_set(cow_home *home, void *native, const H5AC_cache_config_t *wanted)
{
    H5AC_cache_config_t config;
    cow_metadata_cache_sizes asked;

    /* a version that is not known, or sizes that make no sense, HDF5 is to refuse */
    if (!home->cache.unlinked || wanted == NULL || wanted->version != H5AC__CURR_CACHE_CONFIG_VERSION ||
        wanted->min_size > wanted->max_size || wanted->min_size < 1024 ||
        (wanted->set_initial_size &&
         (wanted->initial_size < wanted->min_size || wanted->initial_size > wanted->max_size)))
        return cow_native_metadata_cache_set(native, wanted);
    config = *wanted;
    asked = asked_for(wanted, cow_native_metadata_cache_raise(&config));
    if (cow_native_metadata_cache_set(native, &config) < 0)
        return -1;
    cow_home_metadata_cache_asked(home, &asked);
    return 0;
}

void cow_metadata_cache_show(const cow_home *home, H5AC_cache_config_t *config)
{
    if (!home->cache.raised)
        return;
    config->set_initial_size = home->cache.set_initial;
    config->initial_size = home->cache.initial;
    config->min_size = home->cache.least;
    config->max_size = home->cache.most;
}

/* ---- images ---- */

bool cow_metadata_cache_wants_image(hid_t fapl)
{
    H5AC_cache_image_config_t config = {.version = H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION};

    return H5Pget_mdc_image_config(fapl, &config) >= 0 && config.generate_image;
}

int cow_metadata_cache_set_image(hid_t fapl, bool made)
{
    H5AC_cache_image_config_t config = {.version = H5AC__CURR_CACHE_IMAGE_CONFIG_VERSION};

    if (H5Pget_mdc_image_config(fapl, &config) < 0)
        return cow_error_native("cannot get the configuration of images of the metadata cache");
    if (config.generate_image == made)
        return 0;
    config.generate_image = made;
    return H5Pset_mdc_image_config(fapl, &config) < 0
               ? cow_error_native("cannot configure images of the metadata cache")
               : 0;
}
