/* Access properties of versioned datasets (H5Dget_access_plist). The native object is a virtual dataset, so native HDF5
 * forgets what it would know of a chunked one: its chunk cache and the boundary at which appending flushes. As natively they
 * are those of who opened the dataset first, and are told to all, until it is closed. */
#include "vol/vol.h"

#include "base/ids.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdlib.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* The boundary as HDF5 keeps it: so many dimensions, as large as what has been set. */
static unsigned boundary_of(hid_t dapl, hsize_t boundary[], H5D_append_cb_t *flush, void **data)
{
    struct {
        unsigned rank;
        hsize_t boundary[H5S_MAX_RANK];
        H5D_append_cb_t flush;
        void *data;
    } all; /* H5D_append_flush_t: H5Pget_append_flush does not tell the number of dimensions */

    if (H5Pget(dapl, "append_flush", &all) < 0 || H5Pget_append_flush(dapl, H5S_MAX_RANK, boundary, flush, data) < 0)
        return 0;
    return all.rank <= H5S_MAX_RANK ? all.rank : 0;
}

bool cow_dapl_fits(hid_t dapl, hid_t space)
{
    hsize_t boundary[H5S_MAX_RANK], extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
    H5D_append_cb_t flush;
    void *data;
    unsigned rank;

    if (dapl == H5P_DEFAULT || dapl == H5P_DATASET_ACCESS_DEFAULT ||
        (rank = boundary_of(dapl, boundary, &flush, &data)) == 0)
        return true;
    if (H5Sget_simple_extent_dims(space, extent, most) != (int)rank)
        return false;
    for (unsigned d = 0; d < rank; d++)
        if (boundary[d] != 0 && most[d] == extent[d])
            return false;
    return true;
}

int cow_dapl_keep(cow_object *o, hid_t dapl)
{
    cow_access *access;
    cow_array *array;
    hid_t space;
    bool fits;

    if (dapl == H5P_DEFAULT || dapl == H5P_DATASET_ACCESS_DEFAULT || o->home == NULL || o->home->file == NULL)
        return 0;
    if (cow_object_classify(o) < 0) {
        cow_error_clear(); /* reading says why */
        return 0;
    }
    if (o->dataset == NULL || !cow_dataset_chunked(o->dataset) || cow_dataset_open_again(o->dataset))
        return 0;
    array = cow_dataset_array(o->dataset);
    if ((space = cow_dataset_space(o->dataset)) < 0)
        return -1;
    fits = cow_dapl_fits(dapl, space);
    H5Sclose(space);
    if (!fits)
        return cow_error(COW_USAGE, "%s: the boundary of H5Pset_append_flush does not fit its dimensions",
                         array->label);
    if ((access = calloc(1, sizeof *access)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for its access properties", array->label);
    /* the cache itself, for H5Pget_chunk_cache does not tell what was left to the file */
    if (H5Pget(dapl, "rdcc_nslots", &access->slots) < 0 || H5Pget(dapl, "rdcc_nbytes", &access->bytes) < 0 ||
        H5Pget(dapl, "rdcc_w0", &access->preemption) < 0) {
        free(access);
        return cow_error_native("%s: cannot read its access properties", array->label);
    }
    access->rank = boundary_of(dapl, access->boundary, &access->flush, &access->data);
    free(*cow_dataset_access(o->dataset));
    *cow_dataset_access(o->dataset) = access;
    array->through = access->slots == 0 || array->chunk_bytes > access->bytes;
    return 0;
}

cow_object *cow_dapl_opened(cow_object *opened, hid_t dapl)
{
    cow_error_held *held;

    if (cow_dapl_keep(opened, dapl) == 0)
        return opened;
    held = cow_error_hold();
    cow_object_close(opened, DXPL, NULL);
    cow_error_put_back(held);
    return NULL;
}

/* What the file says of the chunk cache. */
static int cache_of_file(const cow_object *o, size_t *slots, size_t *bytes, double *preemption)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FAPL};
    int metadata, status;

    if (H5VLfile_get(cow_file_native(o->home->file), cow_native_id(), &get, DXPL, NULL) < 0)
        return cow_error_native("cannot get the access properties of a file");
    status = H5Pget_cache(get.args.get_fapl.fapl_id, &metadata, slots, bytes, preemption);
    H5Pclose(get.args.get_fapl.fapl_id);
    return status < 0 ? cow_error_native("cannot get the chunk cache of a file") : 0;
}

int cow_dapl_tell(cow_object *o, hid_t dapl)
{
    const cow_access *access = *cow_dataset_access(o->dataset);
    size_t slots, bytes;
    double preemption;

    if (H5Pset_virtual_view(dapl, H5D_VDS_LAST_AVAILABLE) < 0 || H5Pset_virtual_printf_gap(dapl, 0) < 0)
        return cow_error_native("cannot describe the access to a dataset");
    if (!cow_dataset_chunked(o->dataset))
        return 0;
    if (cache_of_file(o, &slots, &bytes, &preemption) < 0)
        return -1;
    if (access != NULL) {
        slots = access->slots == SIZE_MAX ? slots : access->slots;
        bytes = access->bytes == SIZE_MAX ? bytes : access->bytes;
        preemption = access->preemption < 0 ? preemption : access->preemption;
    }
    if (slots == 0 || bytes == 0)
        slots = bytes = 0;
    if (H5Pset_chunk_cache(dapl, slots, bytes, preemption) < 0 ||
        (access != NULL && access->rank > 0 &&
         H5Pset_append_flush(dapl, access->rank, access->boundary, access->flush, access->data) < 0))
        return cow_error_native("cannot describe the access to a dataset");
    return 0;
}
