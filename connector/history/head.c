/* Objects of the head: opening them by address, and keeping what a version knows when its last link goes. */
#include "history/head.h"

#include "base/error.h"
#include "history/internal.h"

#include <stdio.h>

static void *(*find_opened)(const cow_file *file, const H5O_token_t *token);

void cow_file_find_opened(void *(*find)(const cow_file *file, const H5O_token_t *token))
{
    find_opened = find;
}

int cow_head_open(const cow_file *file, uint64_t address, cow_loc *object, bool *borrowed)
{
    H5O_token_t token = cow_token(address);
    const cow_dataset *dataset = cow_datasets_find(file, address);
    cow_error_held *held;

    *borrowed = dataset != NULL && dataset->native != NULL && !cow_dataset_idle(dataset);
    if (*borrowed) {
        *object = (cow_loc){dataset->native, H5I_DATASET};
        return 0;
    }
    if (cow_native_open_token(file->loc, &token, object) == 0)
        return 0;
    held = cow_error_hold();
    *object = (cow_loc){find_opened == NULL ? NULL : find_opened(file, &token), H5I_DATASET};
    *borrowed = object->object != NULL;
    cow_error_put_back(held);
    if (!*borrowed)
        return -1;
    cow_error_clear();
    return 0;
}

void cow_head_close(cow_loc object, bool borrowed)
{
    if (!borrowed && cow_native_close(object) < 0)
        cow_error_clear();
}

/* The group `removed`, and what the link of the object at ADDRESS is called there. */
static int removed_place(const cow_file *file, uint64_t address, cow_loc *removed, char name[COW_PATH_MAX])
{
    snprintf(name, COW_PATH_MAX, "%llx", (unsigned long long)address);
    return cow_folder_open(file, COW_FOLDER_REMOVED, removed);
}

int cow_file_removed(cow_file *file, const H5O_token_t *object)
{
    char name[COW_PATH_MAX];
    cow_loc removed;

    if (!file->laid_out)
        return 0;
    return removed_place(file, cow_address(object), &removed, name) < 0 ? -1 : cow_native_exists(removed, name);
}

int cow_file_removed_info(cow_file *file, uint64_t address, H5O_info2_t *info)
{
    char name[COW_PATH_MAX];
    cow_loc removed;

    if (removed_place(file, address, &removed, name) < 0 || cow_native_info(removed, name, H5O_INFO_BASIC, info) < 0)
        return -1;
    return cow_address(&info->token) == address;
}

int cow_file_keep(cow_file *file, uint64_t address)
{
    char name[COW_PATH_MAX];
    cow_loc object, removed;
    bool borrowed;
    int kept, status;

    if (removed_place(file, address, &removed, name) < 0 || (kept = cow_native_exists(removed, name)) < 0)
        return -1;
    if (kept > 0)
        return 0;
    if (cow_head_open(file, address, &object, &borrowed) < 0)
        return -1;
    cow_changes_edited(file);
    if (object.type == H5I_GROUP)
        cow_changes_keeps_group(file);
    status = cow_native_link_object(object, removed, name);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

int cow_file_unkeep(cow_file *file, uint64_t address)
{
    char name[COW_PATH_MAX];
    cow_loc removed;
    int kept;

    if (removed_place(file, address, &removed, name) < 0)
        return -1;
    if ((kept = cow_native_exists(removed, name)) <= 0)
        return kept;
    cow_changes_edited(file);
    return cow_native_link_delete(removed, name);
}

/* ---- what goes with a group ---- */

typedef struct doomed {
    cow_file *file;
    cow_map met; /* groups */
} doomed;

/* The root, whose last link is none of a group's, stays anyway. */
static int keep_member(void *context, const char *name, const H5L_info2_t *info)
{
    doomed *d = context;
    H5O_info2_t of_object;
    cow_loc object;
    bool borrowed;
    uint64_t address;
    int status;

    (void)name;
    if (info->type != H5L_TYPE_HARD || (address = cow_address(&info->u.token)) == cow_address(&d->file->root) ||
        cow_map_get(&d->met, address, NULL))
        return 0;
    if (cow_snapshots_known(d->file, address)) {
        cow_changes_distrust_paths(d->file);
        return cow_file_begin(d->file) < 0 ? -1 : cow_file_keep(d->file, address);
    }
    if (cow_head_open(d->file, address, &object, &borrowed) < 0)
        return -1;
    status = cow_native_info(object, NULL, H5O_INFO_BASIC, &of_object);
    if (status == 0 && of_object.rc == 1)
        cow_changes_forget(d->file, address);
    if (status == 0 && object.type == H5I_GROUP && (status = cow_map_put(&d->met, address, 0)) == 0)
        status = cow_native_links(object, COW_LINKS_BY_NAME, keep_member, d);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

/* A group goes that no version knows, with its only link. What a version knows may have been moved into it. */
static int keep_below(cow_file *file, const H5O_token_t *group)
{
    doomed d = {.file = file};
    H5L_info2_t link = {.type = H5L_TYPE_HARD, .u.token = *group};
    int status = cow_snapshots_count(file) == 0 ? 0 : keep_member(&d, "", &link);

    cow_map_free(&d.met);
    return status;
}

/* What the link leads to; its name alone may lead to the root of a file that is mounted there. */
static int linked_info(cow_file *file, cow_loc group, const char *name, const H5L_info2_t *link, H5O_info2_t *info)
{
    uint64_t address = cow_address(&link->u.token);
    cow_loc object;
    bool borrowed;
    int status;

    if (cow_native_info(group, name, H5O_INFO_BASIC, info) < 0)
        return -1;
    if (info->fileno == file->fileno && cow_address(&info->token) == address)
        return 0;
    if (cow_head_open(file, address, &object, &borrowed) < 0)
        return -1;
    status = cow_native_info(object, NULL, H5O_INFO_BASIC, info);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

int cow_file_keep_removed(cow_file *file, cow_loc group, const char *name, const H5L_info2_t *link)
{
    H5O_info2_t info;
    H5L_info2_t own;
    char kept_name[COW_PATH_MAX];
    cow_loc removed;
    uint64_t address;
    int kept;

    if (cow_file_begin(file) < 0 || (link == NULL && cow_native_link_info(group, name, &own) < 0))
        return -1;
    link = link == NULL ? &own : link;
    if (link->type != H5L_TYPE_HARD)
        return 0;
    cow_changes_edited(file);
    if (linked_info(file, group, name, link, &info) < 0 || cow_file_unstow(file, &info) < 0)
        return -1;
    address = cow_address(&info.token);
    if (info.rc != 1 || info.fileno != file->fileno)
        cow_changes_distrust_paths(file); /* what is gone shows in a walk through the whole head */
    /* A second link keeps the object alive, and what no version knows may go. What else counts for a named type may be an
     * attribute, and nobody notices when the last of these goes: the link is kept while there still is one. */
    if (info.rc != 1 && info.type != H5O_TYPE_NAMED_DATATYPE)
        return 0;
    if (file->laid_out && cow_snapshots_load(file) < 0)
        return -1;
    if (!file->laid_out || !cow_snapshots_known(file, address)) {
        if (info.type == H5O_TYPE_GROUP)
            cow_changed_group_unlinked(file); /* where it is open, more may be put into it */
        if (info.type == H5O_TYPE_GROUP && file->laid_out)
            return keep_below(file, &info.token);
        if (info.type != H5O_TYPE_GROUP && info.rc == 1)
            cow_changes_forget(file, address);
        return 0;
    }
    if (removed_place(file, address, &removed, kept_name) < 0)
        return -1;
    if (info.rc != 1 && (kept = cow_native_exists(removed, kept_name)) != 0)
        return kept < 0 ? -1 : 0;
    if (cow_native_link_move(group, name, removed, kept_name) < 0)
        return -1;
    if (info.type == H5O_TYPE_GROUP)
        cow_changes_keeps_group(file);
    cow_changes_removed(file, address);
    return 1;
}

int cow_file_group_closes(cow_file *file, cow_loc group)
{
    doomed d = {.file = file};
    H5O_info2_t info;
    int status;

    if (!cow_changes_groups_unlinked(file) || !cow_file_writable(file))
        return 0;
    if (cow_native_info(group, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (!cow_group_unlinked(file, &info))
        return 0;
    if (cow_file_unstow(file, &info) < 0 || (file->laid_out && cow_snapshots_load(file) < 0))
        return -1;
    if (!file->laid_out || cow_snapshots_count(file) == 0)
        return 1;
    status = cow_native_links(group, COW_LINKS_BY_NAME, keep_member, &d);
    cow_map_free(&d.met);
    return status < 0 ? -1 : 1;
}

int cow_file_keep_uncounted(cow_file *file, const H5O_token_t *object)
{
    if (!file->laid_out)
        return 0;
    if (cow_file_begin(file) < 0 || cow_snapshots_load(file) < 0)
        return -1;
    return cow_snapshots_known(file, cow_address(object)) ? cow_file_keep(file, cow_address(object)) : 0;
}
