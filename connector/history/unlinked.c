/* The first link of objects that were made without one, and open datasets and groups whose last one has gone.
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

/* ---- what the program has deleted, or made without a link, and has open ---- */

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

bool cow_group_unlinked(const cow_file *file, const H5O_info2_t *info)
{
    return info->rc == 0 ||
           (info->fileno == file->fileno && cow_map_get(&file->open_unlinked, cow_address(&info->token), NULL));
}

typedef struct looking {
    const cow_file *file;
    cow_map found;
} looking;

static int look_at_group(void *context, cow_loc group, const H5O_info2_t *info)
{
    looking *l = context;

    (void)group;
    return cow_group_unlinked(l->file, info) ? cow_map_put(&l->found, cow_address(&info->token), 0) : 0;
}

void cow_file_groups_unlinked(cow_file *file)
{
    looking l = {.file = file};

    if (cow_native_open_objects(file->fileno, H5I_GROUP, look_at_group, &l) == 0) {
        cow_map_free(&file->open_unlinked);
        file->open_unlinked = l.found;
        return;
    }
    cow_map_free(&l.found);
    cow_error_clear();
}

void cow_file_group_unlinked(cow_file *file, const H5O_token_t *group)
{
    if (cow_map_put(&file->open_unlinked, cow_address(group), 0) < 0)
        cow_error_clear();
}

static int look_at_member(void *context, const char *name, const H5L_info2_t *link)
{
    const cow_loc *group = context;
    H5O_info2_t info;

    if (link->type != H5L_TYPE_HARD)
        return 0;
    if (cow_native_info(*group, name, H5O_INFO_BASIC, &info) < 0)
        return -1;
    return info.type == H5O_TYPE_GROUP;
}

bool cow_file_group_holds_groups(cow_loc group)
{
    int status = cow_native_links(group, COW_LINKS_BY_NAME, look_at_member, &group);

    if (status < 0)
        cow_error_clear();
    return status != 0;
}
