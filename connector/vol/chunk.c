/* H5D by chunks: H5Dget_chunk_info, H5Dread_chunk, H5Dwrite_chunk and their like for versioned datasets, answered as if
 * the dataset had the layout that the application gave it. Programs read chunks at the addresses they are told: those
 * are true.
 */
#include "vol/vol.h"

#include "library/library.h"

#include <stdlib.h>
#include <string.h>

int cow_vol_dataset_allocated(cow_dataset *dataset, hsize_t *bytes, H5D_space_status_t *status)
{
    cow_array *array = cow_dataset_array(dataset);
    uint64_t stored = 0, size = 0, all = 1, elements = 1;

    for (unsigned d = 0; d < array->grid.rank; d++) {
        all = cow_times(all, cow_grid_chunks_along(array->extent[d], array->grid.chunk[d]));
        elements = cow_times(elements, array->extent[d]);
    }
    if (cow_array_chunk_count(array, &stored) < 0)
        return -1;
    if (!cow_dataset_chunked(dataset)) { /* contiguous: all of it, or nothing */
        if (stored > 0 || cow_dataset_early(dataset)) {
            size = cow_times(elements, array->heap ? array->file_element_size : array->element_size);
            stored = all;
        }
    } else if (cow_array_storage_size(array, &size) < 0)
        return -1;
    else if (array->early) {
        size += cow_times(all - stored, cow_array_file_chunk_bytes(array));
        stored = all;
    }
    if (bytes != NULL)
        *bytes = size;
    if (status != NULL)
        *status = stored == 0    ? H5D_SPACE_STATUS_NOT_ALLOCATED
                  : stored < all ? H5D_SPACE_STATUS_PART_ALLOCATED
                                 : H5D_SPACE_STATUS_ALLOCATED;
    return 0;
}

/* The first element of the chunk that OFFSET is in. EXACT: it must be that element, as H5Dread_chunk wants it. */
static int chunk_offset(const cow_array *array, const hsize_t *offset, bool exact, uint64_t chunk[])
{
    for (unsigned d = 0; d < array->grid.rank; d++) {
        if (exact && offset[d] > array->extent[d])
            return cow_error(COW_USAGE, "%s: offset exceeds dimensions of dataset", array->label);
        if (exact && offset[d] % array->grid.chunk[d] != 0)
            return cow_error(COW_USAGE, "%s: offset doesn't fall on chunks's boundary", array->label);
        chunk[d] = offset[d] - offset[d] % array->grid.chunk[d];
    }
    return 0;
}

static bool inside(const cow_array *array, const uint64_t chunk[])
{
    for (unsigned d = 0; d < array->grid.rank; d++)
        if (chunk[d] >= array->extent[d])
            return false;
    return true;
}

/* What stands at a chunk; a chunk beyond the extent is not stored. */
static int look(cow_array *array, const hsize_t *offset, bool exact, cow_chunk_info *info)
{
    uint64_t chunk[COW_MAX_RANK];

    *info = (cow_chunk_info){.slot = COW_HOLE, .address = HADDR_UNDEF};
    if (chunk_offset(array, offset, exact, chunk) < 0)
        return -1;
    return inside(array, chunk) ? cow_array_chunk_by_offset(array, chunk, info) : 0;
}

static int storage_size(cow_array *array, const H5VL_native_dataset_get_chunk_storage_size_t *args)
{
    cow_chunk_info info;
    uint64_t stored = 0;

    if (cow_array_chunk_count(array, &stored) < 0)
        return -1;
    if (stored == 0 &&
        !array->early) { /* native HDF5 leaves the answer alone then, or fails where there were chunks once */
        *args->size = 0;
        return 0;
    }
    if (look(array, args->offset, false, &info) < 0)
        return -1;
    if (info.slot == COW_HOLE && !array->early)
        return cow_error(COW_USAGE, "%s: chunk storage is not allocated", array->label);
    *args->size = info.slot == COW_HOLE ? cow_array_file_chunk_bytes(array) : info.size;
    return 0;
}

static int info_by_index(cow_array *array, const H5VL_native_dataset_get_chunk_info_by_idx_t *args)
{
    cow_chunk_info info = {.slot = COW_HOLE, .address = HADDR_UNDEF};
    uint64_t stored = 0;
    bool found;

    if (cow_array_chunk_count(array, &stored) < 0)
        return -1;
    found = args->chk_index < stored;
    if (found && cow_array_chunk_by_index(array, args->chk_index, &info) < 0)
        return -1;
    if (args->addr != NULL)
        *args->addr = info.address;
    if (args->size != NULL)
        *args->size = info.size;
    if (found && args->filter_mask != NULL)
        *args->filter_mask = info.filter_mask;
    for (unsigned d = 0; found && args->offset != NULL && d < array->grid.rank; d++)
        args->offset[d] = info.offset[d];
    return 0;
}

static int info_by_offset(cow_array *array, const H5VL_native_dataset_get_chunk_info_by_coord_t *args)
{
    cow_chunk_info info;

    if (look(array, args->offset, false, &info) < 0)
        return -1;
    if (info.slot != COW_HOLE && args->filter_mask != NULL) /* HDF5 leaves it alone else */
        *args->filter_mask = info.filter_mask;
    if (args->addr != NULL)
        *args->addr = info.address;
    if (args->size != NULL)
        *args->size = info.size;
    return 0;
}

/* ARGS begins as that of 1.14 in every release. */
static int read_chunk(cow_array *array, cow_chunk_read_2 *args, hid_t dxpl)
{
    uint64_t chunk[COW_MAX_RANK];
    cow_filtering filtering;
    cow_chunk_info info;
    int status;

    if (chunk_offset(array, args->offset, true, chunk) < 0 || look(array, args->offset, true, &info) < 0)
        return -1;
    if (info.slot == COW_HOLE)
        return cow_error(COW_USAGE, "%s: chunk address isn't defined", array->label);
    if (cow_library_is_2() && args->size != NULL) {
        size_t room = *args->size;
        *args->size = info.size;
        if (args->bytes == NULL || room < info.size)
            return 0;
    }
    if (cow_filtering_of(dxpl, &filtering))
        array->filtering = &filtering;
    status = cow_array_chunk_read(array, chunk, &args->filters, args->bytes, info.size);
    array->filtering = NULL;
    return status;
}

static cow_chunk_write_2 chunk_to_write(const void *args)
{
    const cow_chunk_write_1 *older = args;

    return cow_library_is_2() ? *(const cow_chunk_write_2 *)args
                              : (cow_chunk_write_2){older->offset, older->filters, older->size, older->bytes};
}

static int write_chunk(cow_object *o, cow_array *array, const void *args)
{
    cow_chunk_write_2 wanted = chunk_to_write(args);
    uint64_t chunk[COW_MAX_RANK];

    if (chunk_offset(array, wanted.offset, true, chunk) < 0 || cow_vol_dataset_before_write(o) < 0)
        return -1;
    return cow_array_chunk_write(array, chunk, wanted.filters, wanted.bytes, wanted.size);
}

/* A contiguous dataset that fits one unfiltered chunk of its own size really is contiguous in the file. */
static int contiguous_offset(cow_dataset *dataset, cow_array *array, haddr_t *offset)
{
    uint64_t origin[COW_MAX_RANK] = {0};
    cow_chunk_info info;

    *offset = HADDR_UNDEF;
    if (cow_dataset_chunked(dataset) || !cow_codec_identity(array->codec))
        return 0;
    for (unsigned d = 0; d < array->grid.rank; d++)
        if (array->grid.chunk[d] != array->extent[d])
            return 0;
    if (cow_array_chunk_by_offset(array, origin, &info) < 0)
        return -1;
    *offset = info.address;
    return 0;
}

/* ---- all chunks ---- */

/* In the order of H5Dget_chunk_info, which is HDF5's own. */
static int iterate(cow_array *array, H5D_chunk_iter_op_t op, void *op_data)
{
    uint64_t count;
    int status = 0;

    for (uint64_t i = 0; status == 0; i++) {
        hsize_t offset[COW_MAX_RANK] = {0};
        cow_chunk_info info;

        if (cow_array_chunk_count(array, &count) < 0) /* OP may have made the dataset smaller */
            return -1;
        if (i >= count)
            break;
        if (cow_array_chunk_by_index(array, i, &info) < 0)
            return -1;
        for (unsigned d = 0; d < array->grid.rank; d++)
            offset[d] = info.offset[d];
        status = op(offset, info.filter_mask, info.address, info.size, op_data);
    }
    return status;
}

/* What HDF5 would have chosen. */
static int index_type(const cow_home *home, const cow_array *array, H5D_chunk_index_t *type)
{
    unsigned unlimited = 0;
    bool single = true;

    for (unsigned d = 0; d < array->grid.rank; d++) {
        unlimited += array->maximum[d] == COW_UNLIMITED;
        single = single && array->maximum[d] == array->extent[d] && array->grid.chunk[d] == array->extent[d];
    }
    if (home->asked.bounds && home->asked.low < H5F_LIBVER_V110 &&
        !array->plain_edges) /* that needs the newer layout */
        *type = H5D_CHUNK_IDX_BTREE;
    else if (unlimited > 0)
        *type = unlimited == 1 ? H5D_CHUNK_IDX_EARRAY : H5D_CHUNK_IDX_BT2;
    else if (single)
        *type = H5D_CHUNK_IDX_SINGLE;
    else
        *type = array->early && (cow_codec_identity(array->codec) || array->filters_hidden) ? H5D_CHUNK_IDX_NONE
                                                                                            : H5D_CHUNK_IDX_FARRAY;
    return 0;
}

int cow_vol_dataset_chunk_operation(cow_object *o, H5VL_optional_args_t *args, hid_t dxpl)
{
    cow_array *array = cow_dataset_array(o->dataset);
    H5VL_native_dataset_optional_args_t *a = args->args;

    switch (args->op_type) {
    case H5VL_NATIVE_DATASET_FORMAT_CONVERT:
        return 0; /* as for any virtual dataset */
    case H5VL_NATIVE_DATASET_GET_OFFSET:
        return contiguous_offset(o->dataset, array, a->get_offset.offset);
    case H5VL_NATIVE_DATASET_GET_VLEN_BUF_SIZE:
        return cow_array_memory_size(array, a->get_vlen_buf_size.type_id, a->get_vlen_buf_size.space_id,
                                     a->get_vlen_buf_size.size);
    case H5VL_NATIVE_DATASET_GET_CHUNK_INDEX_TYPE:
    case H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE:
    case H5VL_NATIVE_DATASET_GET_NUM_CHUNKS:
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX:
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD:
    case H5VL_NATIVE_DATASET_CHUNK_READ:
    case H5VL_NATIVE_DATASET_CHUNK_WRITE:
    case H5VL_NATIVE_DATASET_CHUNK_ITER:
        break;
    default:
        return cow_error(COW_UNSUPPORTED, "operation %d on datasets is not known to this h5cow, and could write",
                         args->op_type);
    }
    if (!cow_dataset_chunked(o->dataset))
        return cow_error(COW_USAGE, "%s: not a chunked dataset", array->label); /* as HDF5 says it */
    switch (args->op_type) {
    case H5VL_NATIVE_DATASET_GET_CHUNK_INDEX_TYPE:
        return index_type(o->home, array, a->get_chunk_idx_type.idx_type);
    case H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE:
        return storage_size(array, &a->get_chunk_storage_size);
    case H5VL_NATIVE_DATASET_GET_NUM_CHUNKS:
        return cow_array_chunk_count(array, a->get_num_chunks.nchunks);
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX:
        return info_by_index(array, &a->get_chunk_info_by_idx);
    case H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD:
        return info_by_offset(array, &a->get_chunk_info_by_coord);
    case H5VL_NATIVE_DATASET_CHUNK_READ:
        return read_chunk(array, args->args, dxpl);
    case H5VL_NATIVE_DATASET_CHUNK_WRITE:
        return write_chunk(o, array, args->args);
    default: /* H5VL_NATIVE_DATASET_CHUNK_ITER */
        return iterate(array, a->chunk_iter.op, a->chunk_iter.op_data);
    }
}

/* ---- addresses ---- */

/* Some programs read the file itself at the address of a chunk: PyTables with Blosc2, kerchunk. Where the journal has
 * newer bytes the address would lead to old ones, so there is none, as for a chunk that is not stored. */
static void only_in_place(const cow_home *home, haddr_t *address, hsize_t size)
{
    if (address != NULL && *address != HADDR_UNDEF && *address != COW_NOWHERE &&
        !cow_vol_file_in_place(home, *address, size))
        *address = HADDR_UNDEF;
}

static int placed_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    const cow_placed *placed = context;

    only_in_place(placed->home, &address, size);
    return placed->op(offset, mask, address, size, placed->data);
}

void cow_placed_begin(const cow_object *o, H5VL_optional_args_t *args, cow_placed *placed)
{
    H5VL_native_dataset_optional_args_t *a = args->args;
    hsize_t **asked = NULL;

    *placed = (cow_placed){.home = o->home};
    if (args->op_type == H5VL_NATIVE_DATASET_CHUNK_ITER) {
        placed->op = a->chunk_iter.op;
        placed->data = a->chunk_iter.op_data;
        a->chunk_iter.op = placed_chunk;
        a->chunk_iter.op_data = placed;
    } else if (args->op_type == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX) {
        asked = &a->get_chunk_info_by_idx.size;
    } else if (args->op_type == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD) {
        asked = &a->get_chunk_info_by_coord.size;
    }
    if (asked != NULL && *asked == NULL) /* needed to judge the address */
        *asked = &placed->size;
}

void cow_placed_end(const cow_object *o, H5VL_optional_args_t *args)
{
    H5VL_native_dataset_optional_args_t *a = args->args;
    H5VL_dataset_get_args_t get = {.op_type = H5VL_DATASET_GET_STORAGE_SIZE};
    hsize_t bytes = 0;

    if (args->op_type == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_IDX) {
        only_in_place(o->home, a->get_chunk_info_by_idx.addr, *a->get_chunk_info_by_idx.size);
    } else if (args->op_type == H5VL_NATIVE_DATASET_GET_CHUNK_INFO_BY_COORD) {
        only_in_place(o->home, a->get_chunk_info_by_coord.addr, *a->get_chunk_info_by_coord.size);
    } else if (args->op_type == H5VL_NATIVE_DATASET_GET_OFFSET && *a->get_offset.offset != HADDR_UNDEF) {
        get.args.get_storage_size.storage_size = &bytes;
        if (o->dataset != NULL)
            bytes = cow_array_file_chunk_bytes(cow_dataset_array(o->dataset)); /* see contiguous_offset */
        else if (H5VLdataset_get(cow_object_opened(o), cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
            bytes = 1; /* its first byte will do */
        only_in_place(o->home, a->get_offset.offset, bytes);
    }
}
