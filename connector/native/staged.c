/* See staged.h. */
#include "native/staged.h"

#include "base/error.h"
#include "base/ids.h"
#include "journal/driver.h"
#include "native/header_file.h"

#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* Links that one group has before they are moved: HDF5 goes through all of its header for each. */
#define TOGETHER 16

int cow_staged_group(const cow_native_bytes *bytes, const cow_staged list[], size_t count, uint64_t *address)
{
    uint8_t header[COW_NEW_START + COW_NEW_GROUP + COW_STAGED_MOST * (COW_NEW_LINK + COW_STAGED_NAME) + 4],
        *messages = header + COW_NEW_START, *p = cow_new_group(messages, 0);

    for (size_t i = 0; i < count; i++)
        p = cow_new_link(p, list[i].name, list[i].address);
    return cow_header_write(bytes, messages, p, false, address);
}

/* A group of them that has no link itself, so it goes when HDF5 does not count one any more. */
static int open_group(cow_loc file, const cow_native_bytes *bytes, const cow_staged *list, size_t count, cow_loc *group)
{
    H5O_token_t token;
    uint64_t address;

    if (cow_staged_group(bytes, list, count, &address) < 0)
        return -1;
    token = cow_token(address);
    if (cow_native_open_token(file, &token, group) < 0)
        return -1;
    if (group->type == H5I_GROUP)
        return 0;
    cow_native_close(*group);
    return cow_error(COW_CORRUPT, "the group that new objects are linked from is none");
}

/* DROP: with it goes what it still leads to. Else it stays, without any use: HDF5 would have to read what it could not. */
static int close_group(cow_loc group, bool drop)
{
    const int status = drop ? cow_native_change_references(group, -1) : 0;

    return cow_native_close(group) < 0 ? -1 : status;
}

static int move_links(void *file, const cow_native_bytes *bytes, const cow_staged list[], size_t count, cow_loc to)
{
    cow_loc group;
    int status = 0;

    if (open_group((cow_loc){file, H5I_FILE}, bytes, list, count, &group) < 0)
        return -1;
    for (size_t i = 0; status == 0 && i < count; i++)
        status = cow_native_link_move(group, list[i].name, to, list[i].name);
    return close_group(group, status == 0) < 0 ? -1 : status;
}

int cow_staged_link(void *file, const cow_native_bytes *bytes, const cow_staged list[], size_t count, cow_loc group)
{
    for (size_t i = 0, n; i < count; i += n) {
        n = count - i < TOGETHER ? count - i : TOGETHER;
        if (move_links(file, bytes, list + i, n, group) < 0)
            return -1;
    }
    return 0;
}

static bool has_path(void *at, H5I_type_t type)
{
    H5VL_object_get_args_t args = {.op_type = H5VL_OBJECT_GET_NAME};
    H5VL_loc_params_t self = cow_by_self(type);
    size_t length = 0;

    args.args.get_name.name_len = &length;
    return H5VLobject_get(at, &self, cow_native_id(), &args, DXPL, NULL) >= 0 && length > 0;
}

/* HDF5 1.14.5 crashes where it moves a link to a group that has no path. */
static bool give_link(cow_loc group, const H5VL_loc_params_t *source, void *at, const H5VL_loc_params_t *target,
                      hid_t lcpl)
{
    H5VL_link_create_args_t hard = {.op_type = H5VL_LINK_CREATE_HARD};

    if (has_path(at, target->obj_type))
        return H5VLlink_move(group.object, source, at, target, cow_native_id(), lcpl, H5P_LINK_ACCESS_DEFAULT, DXPL,
                             NULL) >= 0;
    hard.args.hard.curr_obj = group.object;
    hard.args.hard.curr_loc_params = *source;
    return H5VLlink_create(&hard, at, target, cow_native_id(), lcpl, H5P_LINK_ACCESS_DEFAULT, DXPL, NULL) >= 0;
}

int cow_staged_link_to(void *file, const cow_native_bytes *bytes, uint64_t address, void *at,
                       const H5VL_loc_params_t *loc, const char *to, hid_t lcpl)
{
    const cow_staged one = {"new", address};
    const H5VL_loc_params_t source = cow_by_name(H5I_GROUP, one.name), target = cow_by_name(loc->obj_type, to);
    const size_t before = cow_errors_count();
    const unsigned long failures = cow_journal_driver_file_failures(bytes->fileno);
    cow_loc group;
    bool moved;

    if (open_group((cow_loc){file, H5I_FILE}, bytes, &one, 1, &group) < 0)
        return 0;
    H5E_BEGIN_TRY
    {
        moved = give_link(group, &source, at, &target, lcpl);
    }
    H5E_END_TRY
    if (!moved)
        cow_errors_drop(before);
    return close_group(group, cow_journal_driver_file_failures(bytes->fileno) == failures) < 0 ? -1 : moved;
}

void *cow_staged_anonymous(cow_loc at, const cow_native_bytes *bytes, uint64_t address, hid_t dapl)
{
    const cow_staged one = {"new", address};
    const H5VL_loc_params_t self = cow_by_self(H5I_GROUP);
    cow_loc group;
    void *native;

    if (open_group(at, bytes, &one, 1, &group) < 0)
        return NULL;
    if ((native = H5VLdataset_open(group.object, &self, cow_native_id(), one.name, dapl, DXPL, NULL)) == NULL)
        cow_error_native("cannot open a dataset that was made");
    else if (cow_native_link_delete(group, one.name) <
             0) { /* HDF5 counts no link of an open object: it is as H5Dcreate_anon leaves it */
        cow_native_dataset_close(native);
        native = NULL;
    }
    if (close_group(group, native != NULL) == 0 || native == NULL)
        return native;
    cow_native_dataset_close(native);
    return NULL;
}
