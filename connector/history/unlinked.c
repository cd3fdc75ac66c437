/* The first link of objects that were made without one, and open datasets whose last one has gone.
 *
 * HDF5 (1.14.5) keeps no reference count of 0 in object headers of the newer format: when such an object's header leaves the
 * metadata cache, which takes about 2 MiB of other metadata, it comes back with a count of 1. A first link then makes 2,
 * and leaves the object marked as one that nobody refers to: closing it deletes it, under its links. So what was made
 * without a link is remembered until it gets its first one, and the count is put right before.
 */
#include "history/internal.h"

#include "base/error.h"

int cow_unlinked_note(cow_map *unlinked, cow_loc made)
{
    H5O_info2_t info;

    if (cow_native_info(made, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    /* a named datatype may be in use already, by its own attribute */
    return info.rc > 0 ? 0 : cow_map_put(unlinked, cow_address(&info.token), 0);
}

int cow_unlinked_use(cow_map *unlinked, cow_loc type)
{
    H5O_info2_t info;

    if (unlinked->count == 0)
        return 0;
    if (cow_native_info(type, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (!cow_map_get(unlinked, cow_address(&info.token), NULL))
        return 0;
    cow_map_remove(unlinked, cow_address(&info.token));
    for (; info.rc > 0; info.rc--)
        if (cow_native_change_references(type, -1) < 0)
            return -1;
    return 0;
}

int cow_unlinked_link(cow_map *unlinked, cow_loc object, cow_loc to, const char *name)
{
    return cow_unlinked_use(unlinked, object) < 0 ? -1 : cow_native_link_object(object, to, name);
}

void cow_unlinked_forget(cow_map *unlinked, cow_loc made)
{
    H5O_info2_t info;
    cow_error_held *held = cow_error_hold();

    if (cow_native_info(made, NULL, H5O_INFO_BASIC, &info) == 0)
        cow_map_remove(unlinked, cow_address(&info.token));
    cow_error_put_back(held);
}

/* ---- datasets that the program has deleted, and that are open ---- */

int cow_dataset_unlinked(cow_dataset *dataset)
{
    H5O_info2_t info;

    if (dataset->unlinked || dataset->native == NULL)
        return dataset->unlinked;
    if (cow_native_info((cow_loc){dataset->native, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    dataset->unlinked = info.rc == 0;
    return dataset->unlinked;
}
