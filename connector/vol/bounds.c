/* Library version bounds (H5Pset_libver_bounds, H5Fset_libver_bounds): those that the application asks for, and those that its
 * file has.
 *
 *   lower   the file's is V110 to V114, as near to the asked one as possible: it decides how things are written. But some headers
 *           are as the asked one has them: see cow_home_old_headers.
 *   upper   the file's is the library's newest. It decides nothing but what HDF5 refuses, and the history must be able to keep
 *           whatever is in the file already: a commit that is refused would lose the session. So the asked one is held against
 *           what the application makes, before HDF5 makes it.
 *
 * HDF5 keeps the bounds of the first opening of a file for all handles on it, and hands them on through external links.
 */
#include "vol/vol.h"

#include "library/library.h"
#include "native/datatype.h"

#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

void cow_raised_bounds(hid_t fapl, H5F_libver_t *low, H5F_libver_t *high)
{
    if (H5Pget_libver_bounds(fapl, low, high) < 0 || *low < H5F_LIBVER_V110)
        *low = H5F_LIBVER_V110;
    if (*low > H5F_LIBVER_V114) /* what 1.14 can write stays readable for 1.14 */
        *low = H5F_LIBVER_V114;
    *high = cow_library_latest();
}

/* HDF5 1.14.5 may lose messages when it adds a chunk to an object header. Where no message is as large as that of a continuation (8 bytes
 * and an address), it moves all messages of the last chunk, and forgets the one behind each null message (H5O__alloc_chunk). A group
 * then loses its settings and takes no more links; a named type loses its datatype, and a comment that changes is enough.
 * Headers of HDF5 1.6 align messages to 8 bytes. Newer headers do not: all messages of a named type may be that small, and with short
 * addresses those of a group. So these get the headers that they get natively. The file itself keeps the raised bound: what HDF5 makes
 * when it closes the file (the superblock's extension, where free space is kept) the journal knows in its newer form only. */
bool cow_home_old_headers(const cow_home *home, cow_loc at, H5I_type_t type, H5F_libver_t *low)
{
    return home != NULL && home->file != NULL && home->asked.bounds && home->asked.low < H5F_LIBVER_V18 &&
           (type == H5I_DATATYPE || cow_file_narrow(home->file)) && cow_native_old_headers(at, low);
}

int cow_home_new_headers(cow_loc at, H5F_libver_t low, bool made)
{
    hid_t stack = made ? H5I_INVALID_HID : cow_errors_take(); /* what follows would clear it */
    int status = cow_native_low_bound(at, low, NULL);

    cow_errors_give_back(stack);
    return status;
}

int cow_vol_file_set_bounds(void *native, H5F_libver_t low, H5F_libver_t high)
{
    H5VL_native_file_optional_args_t arguments;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_SET_LIBVER_BOUNDS, .args = &arguments};

    arguments.set_libver_bounds.low = low;
    arguments.set_libver_bounds.high = high;
    if (H5VLfile_optional(native, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot set the library version bounds of the file");
    return 0;
}

void cow_home_take_bounds(cow_home *home, const cow_home *from)
{
    home->asked.bounds = from->asked.bounds;
    home->asked.low = from->asked.low;
    home->asked.high = from->asked.high;
}

void cow_home_follow_bounds(cow_home *home, void *native_file, const cow_home *near)
{
    H5VL_file_get_args_t list = {.op_type = H5VL_FILE_GET_FAPL};
    H5F_libver_t given[2], raised[2];
    hid_t fapl;

    if (near == NULL || !near->asked.bounds)
        return;
    if (H5VLfile_get(native_file, cow_native_id(), &list, DXPL, NULL) < 0) {
        cow_error_clear();
        return;
    }
    fapl = list.args.get_fapl.fapl_id;
    if (H5Pget_libver_bounds(fapl, &given[0], &given[1]) >= 0 &&
        H5Pset_libver_bounds(fapl, near->asked.low, near->asked.high) >= 0) {
        cow_raised_bounds(fapl, &raised[0], &raised[1]);
        if (memcmp(given, raised, sizeof given) == 0)
            cow_home_take_bounds(home, near);
    }
    H5Pclose(fapl);
}

H5F_libver_t cow_home_newest(const cow_home *home)
{
    return home != NULL && home->asked.bounds ? home->asked.high : cow_library_latest();
}

int cow_home_allows_type(const cow_home *home, hid_t type)
{
    return cow_type_allowed(type, cow_home_newest(home));
}

int cow_home_allows_layout(const cow_home *home, hid_t dcpl)
{
    H5D_layout_t layout;
    unsigned options = 0;

    if (cow_home_newest(home) >= H5F_LIBVER_V110)
        return 0;
    if ((layout = H5Pget_layout(dcpl)) < 0 || (layout == H5D_CHUNKED && H5Pget_chunk_opts(dcpl, &options) < 0))
        return cow_error_native("cannot look at the layout of a dataset");
    if (layout != H5D_VIRTUAL && options == 0)
        return 0;
    return cow_error(
        COW_USAGE,
        "%s cannot be made: the upper library version bound of the file (H5Pset_libver_bounds) is older than "
        "1.10; raise the bound",
        layout == H5D_VIRTUAL ? "a virtual dataset" : "a dataset whose partial chunks have no filters");
}
