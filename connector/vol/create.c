/* H5Fcreate. New files get a history when they are kept by the default driver. Truncating a file that has a history
 * empties the head and keeps the history: the re-run of a program is its next version. */
#include "vol/vol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* Could a file created with FCPL look like the one that exists? 1, 0, -1. What is compared is what a program can see
 * and what cannot be changed later. */
static int same_properties(void *native, hid_t fcpl)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FCPL};
    H5VL_group_get_args_t get_root = {.op_type = H5VL_GROUP_GET_GCPL};
    H5F_fspace_strategy_t strategy[2];
    hsize_t block[2], threshold[2], page[2];
    unsigned links[2], attributes[2], indexes[2];
    size_t addresses[2], sizes[2];
    hbool_t persist[2];
    void *root = cow_native_group_open((cow_loc){native, H5I_FILE}, "/");
    hid_t list[2] = {H5I_INVALID_HID, fcpl}, root_list[2] = {H5I_INVALID_HID, fcpl};
    int same = -1;

    if (root == NULL || H5VLfile_get(native, cow_native_id(), &get, DXPL, NULL) < 0)
        goto done;
    list[0] = get.args.get_fcpl.fcpl_id;
    if (H5VLgroup_get(root, cow_native_id(), &get_root, DXPL, NULL) < 0)
        goto done;
    root_list[0] = get_root.args.get_gcpl.gcpl_id;
    for (int i = 0; i < 2; i++)
        if (H5Pget_userblock(list[i], &block[i]) < 0 || H5Pget_sizes(list[i], &addresses[i], &sizes[i]) < 0 ||
            H5Pget_file_space_strategy(list[i], &strategy[i], &persist[i], &threshold[i]) < 0 ||
            H5Pget_file_space_page_size(list[i], &page[i]) < 0 ||
            H5Pget_shared_mesg_nindexes(list[i], &indexes[i]) < 0 ||
            H5Pget_link_creation_order(root_list[i], &links[i]) < 0 ||
            H5Pget_attr_creation_order(root_list[i], &attributes[i]) < 0)
            goto done;
    same = block[0] == block[1] && addresses[0] == addresses[1] && sizes[0] == sizes[1] && strategy[0] == strategy[1] &&
           persist[0] == persist[1] && threshold[0] == threshold[1] && page[0] == page[1] && indexes[0] == indexes[1] &&
           links[0] == links[1] && attributes[0] == attributes[1];
done:
    if (same < 0)
        cow_error_native("cannot compare the file's creation properties");
    if (root != NULL)
        cow_native_group_close(root);
    if (list[0] >= 0)
        H5Pclose(list[0]);
    if (root_list[0] >= 0)
        H5Pclose(root_list[0]);
    return same;
}

/* Keep what cannot go on in the same file: NAME becomes NAME.h5cow-old-1, -2 ... */
static int put_aside(const char *name)
{
    char *aside = malloc(strlen(name) + 40);
    int status = -1;

    if (aside == NULL)
        return cow_error(COW_MEMORY, "no memory for the name '%s'", name);
    for (unsigned n = 1; n < 1000000; n++) {
        sprintf(aside, "%s.h5cow-old-%u", name, n);
        if (link(name, aside) == 0) { /* unlike rename, never over an existing file */
            status = unlink(name) == 0 ? 0 : cow_error(COW_IO, "%s: cannot be put aside: %s", name, strerror(errno));
            break;
        }
        if (errno == EEXIST)
            continue;
        if (access(aside, F_OK) != 0 && rename(name, aside) == 0) /* a file system without hard links */
            status = 0;
        else
            cow_error(COW_IO, "%s: it has a history, which is kept, and cannot be renamed to %s: %s", name, aside,
                      strerror(errno));
        break;
    }
    free(aside);
    return status;
}

/* H5F_ACC_TRUNC on a file with history. *OBJECT NULL and 0: it was put aside, a new one is to be made. */
static int truncate_head(const char *name, hid_t fcpl, hid_t fapl, hid_t under, const cow_options *options,
                         cow_object **object)
{
    void *native = H5VLfile_open(name, H5F_ACC_RDWR, under, DXPL, NULL);
    int same;

    *object = NULL;
    if (native == NULL)
        return cow_error_native("%s: the file has a history, which is kept, but it cannot be opened for writing", name);
    if ((same = same_properties(native, fcpl)) <= 0) {
        if (cow_object_close_native(native, H5I_FILE) < 0)
            return cow_error_native("%s: cannot close the file", name);
        return same < 0 ? -1 : put_aside(name);
    }
    if ((*object = cow_file_join(native, name, NULL, NULL, true, false, options, fapl)) == NULL)
        return -1;
    if (cow_file_clear_head((*object)->home->file) == 0)
        return 0;
    cow_file_close_callback(*object, DXPL, NULL);
    *object = NULL;
    return cow_error(COW_IO, "%s: the file could not be emptied", name);
}

void *cow_file_create_callback(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl, void **req)
{
    cow_options *options = cow_fapl_options(fapl);
    cow_object *object = NULL;
    hid_t under = H5I_INVALID_HID, stack = H5I_INVALID_HID;
    H5F_libver_t low, high;
    unsigned long number = 0;
    void *native;
    bool ours;

    if (options == NULL || (under = cow_native_fapl(fapl)) < 0)
        goto done;
    /* Another driver keeps the file elsewhere, or in another form; and single-writer/multiple-readers needs HDF5's own
     * order of writing. Such files are passed through. */
    ours = cow_default_driver(fapl) && !(flags & H5F_ACC_SWMR_WRITE);
    if (ours) {
        cow_raised_bounds(fapl, &low, &high);
        if (H5Pset_libver_bounds(under, low, high) < 0) {
            cow_error_native("%s: cannot prepare to create the file", name);
            goto done;
        }
        /* A file that is open here already is native HDF5's to refuse. */
        if ((flags & H5F_ACC_TRUNC) && cow_has_history(name, fapl, &number) && !cow_home_open(number)) {
            if (truncate_head(name, fcpl, fapl, under, options, &object) < 0 || object != NULL)
                goto done;
        }
    }
    if ((native = H5VLfile_create(name, flags, fcpl, under, dxpl, req)) == NULL)
        stack = H5Eget_current_stack(); /* programs read the reason there; closing the lists would clear it */
    else
        object = ours ? cow_file_join(native, name, NULL, NULL, true, true, options, fapl)
                      : cow_file_pass(native, false, options);
done:
    if (under >= 0)
        H5Pclose(under);
    cow_options_free(options);
    if (stack >= 0)
        H5Eset_current_stack(stack);
    return cow_leave_pointer(object);
}
