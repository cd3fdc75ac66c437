/* Links by index, in the order of their names. Groups of files with history are of HDF5's newer kind: where they have very many links
 * these are kept in the order of hashes of their names, and HDF5 lists and sorts all of them anew for each that is asked for by its
 * index in another order. So that order is kept here, of one group, where nobody changes the file, and HDF5 is asked by its own.
 */
#include "vol/vol.h"

#include <stdlib.h>
#include <string.h>

#define LEAST 64 /* links: fewer are sorted quickly enough */

typedef struct cow_sorted {
    H5O_token_t group;
    hsize_t *places,
        count; /* of the links in the order of their names, without the reserved one: where HDF5 has them */
} cow_sorted;

void cow_sorted_free(cow_sorted *sorted)
{
    if (sorted != NULL)
        free(sorted->places);
    free(sorted);
}

/* The group that the index counts in, a large one of this very file, and its token. */
static bool large_group(const cow_home *home, const cow_where *where, const char *name, H5O_token_t *token)
{
    H5VL_loc_params_t loc =
        strcmp(name, ".") == 0 ? cow_by_self(where->loc.obj_type) : cow_by_name(where->loc.obj_type, name);
    H5VL_group_get_args_t get = {.op_type = H5VL_GROUP_GET_INFO};
    H5G_info_t links;
    H5O_info2_t info;

    if (cow_info_quietly(where->native, &loc, &info) <= 0 || info.type != H5O_TYPE_GROUP || info.fileno != home->fileno)
        return false;
    *token = info.token;
    if (home->sorted != NULL && memcmp(&home->sorted->group, token, sizeof *token) == 0)
        return true;
    get.args.get_info.loc_params = loc;
    get.args.get_info.ginfo = &links;
    return H5VLgroup_get(where->native, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) >= 0 &&
           links.nlinks >= LEAST;
}

static cow_sorted *sort(const cow_home *home, const cow_where *where, const char *name, const H5O_token_t *token)
{
    const bool root = cow_home_hides(home) && memcmp(token, &home->root, sizeof *token) == 0;
    cow_loc group = {cow_native_group_open((cow_loc){where->native, where->loc.obj_type}, name), H5I_GROUP};
    cow_sorted *sorted = group.object == NULL ? NULL : calloc(1, sizeof *sorted);

    if (sorted != NULL) {
        sorted->group = *token;
        if (cow_native_links_places(group, root ? COW_GROUP : NULL, &sorted->places, &sorted->count) < 0) {
            cow_sorted_free(sorted);
            sorted = NULL;
        }
    }
    if (group.object != NULL)
        cow_native_group_close(group.object);
    return sorted;
}

bool cow_sorted_index(cow_object *object, cow_where *where)
{
    H5VL_loc_by_idx_t *at = &where->loc.loc_data.loc_by_idx;
    cow_home *home = object->home;
    cow_sorted *sorted;
    H5O_token_t token;
    bool known = false;

    if (home == NULL || home->file == NULL || cow_file_writable(home->file) || at->idx_type != H5_INDEX_NAME ||
        (at->order != H5_ITER_INC && at->order != H5_ITER_DEC))
        return false;
    H5E_BEGIN_TRY
    {
        if (large_group(home, where, at->name, &token)) {
            if (home->sorted == NULL || memcmp(&home->sorted->group, &token, sizeof token) != 0) {
                cow_sorted_free(home->sorted);
                home->sorted = sort(home, where, at->name, &token);
            }
            known = home->sorted != NULL;
        }
    }
    H5E_END_TRY
    cow_error_clear(); /* then HDF5 is asked as ever, and says what is wrong */
    if (!known || at->n >= (sorted = home->sorted)->count)
        return false;
    at->n = sorted->places[at->order == H5_ITER_INC ? at->n : sorted->count - 1 - at->n];
    at->order = H5_ITER_NATIVE;
    return true;
}
