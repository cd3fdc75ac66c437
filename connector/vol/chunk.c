/* H5D by chunks: H5Dget_chunk_info, H5Dread_chunk, H5Dwrite_chunk and their like for versioned datasets, answered as if
 * the dataset had the layout that the application gave it. Programs read chunks at the addresses they are told: those
 * are true.
 */
#include "vol/vol.h"

#include <stdlib.h>
#include <string.h>

int cow_dataset_allocated(cow_dataset *dataset, hsize_t *bytes, H5D_space_status_t *status)
{
    cow_array *array = cow_dataset_array(dataset);
    uint64_t stored = 0, size = 0, all = 1, elements = 1;

    for (unsigned d = 0; d < array->grid.rank; d++) {
        all *= array->extent[d] / array->grid.chunk[d] + (array->extent[d] % array->grid.chunk[d] != 0);
        elements *= array->extent[d];
    }
    if (cow_array_chunk_count(array, &stored) < 0)
        return -1;
    if (!cow_dataset_chunked(dataset)) { /* contiguous: all of it, or nothing */
        if (stored > 0 || cow_dataset_early(dataset)) {
            size = elements * (array->heap ? array->file_element_size : array->element_size);
            stored = all;
        }
    } else if (cow_array_storage_size(array, &size) < 0)
        return -1;
    else if (array->early) {
        size += (all - stored) * cow_array_file_chunk_bytes(array);
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
    if (stored == 0 && !array->early)
        return 0; /* native HDF5 leaves the answer alone then */
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
    if (args->filter_mask != NULL)
        *args->filter_mask = info.filter_mask;
    if (args->addr != NULL)
        *args->addr = info.address;
    if (args->size != NULL)
        *args->size = info.size;
    return 0;
}

static int read_chunk(cow_array *array, H5VL_native_dataset_chunk_read_t *args)
{
    uint64_t chunk[COW_MAX_RANK];
    cow_chunk_info info;

    if (chunk_offset(array, args->offset, true, chunk) < 0 || look(array, args->offset, true, &info) < 0)
        return -1;
    if (info.slot == COW_HOLE)
        return cow_error(COW_USAGE, "%s: chunk address isn't defined", array->label);
#if H5_VERSION_GE(2, 0, 0)
    /* The same structure has one member more there: the size of the buffer, and what was needed of it. */
    if (args->buf_size != NULL) {
        size_t room = *args->buf_size;
        *args->buf_size = info.size;
        if (args->buf == NULL || room < info.size)
            return 0;
    }
#endif
    return cow_array_chunk_read(array, chunk, &args->filters, args->buf, info.size);
}

static int write_chunk(cow_object *o, cow_array *array, const H5VL_native_dataset_chunk_write_t *args)
{
    uint64_t chunk[COW_MAX_RANK];

    if (chunk_offset(array, args->offset, true, chunk) < 0 || cow_dataset_before_write(o) < 0)
        return -1;
    return cow_array_chunk_write(array, chunk, args->filters, args->buf, args->size);
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
    int status = cow_array_chunk_count(array, &count);

    for (uint64_t i = 0; status == 0 && i < count; i++) {
        hsize_t offset[COW_MAX_RANK] = {0};
        cow_chunk_info info;

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
    if (home->bounds && home->low < H5F_LIBVER_V110)
        *type = H5D_CHUNK_IDX_BTREE;
    else if (unlimited > 0)
        *type = unlimited == 1 ? H5D_CHUNK_IDX_EARRAY : H5D_CHUNK_IDX_BT2;
    else if (single)
        *type = H5D_CHUNK_IDX_SINGLE;
    else
        *type = array->early && cow_codec_identity(array->codec) ? H5D_CHUNK_IDX_NONE : H5D_CHUNK_IDX_FARRAY;
    return 0;
}

/* ---- memory of variable-length data ---- */

static void *count_alloc(size_t size, void *info)
{
    *(hsize_t *)info += size;
    return malloc(size);
}

static void count_free(void *memory, void *info)
{
    (void)info;
    free(memory);
}

/* H5Dvlen_get_buf_size: read it all into memory that is counted. */
static int buffer_size(cow_array *array, const H5VL_native_dataset_get_vlen_buf_size_t *args)
{
    hssize_t points = H5Sget_select_npoints(args->space_id);
    hsize_t count = points < 0 ? 0 : (hsize_t)points, bytes = 0;
    size_t element = H5Tget_size(args->type_id);
    hid_t dxpl = H5Pcreate(H5P_DATASET_XFER), space = H5Screate_simple(1, &count, NULL);
    void *data = NULL;
    int status = -1;

    if (points < 0 || element == 0 || dxpl < 0 || space < 0 ||
        H5Pset_vlen_mem_manager(dxpl, count_alloc, &bytes, count_free, NULL) < 0) {
        cow_error_native("%s: cannot prepare to read", array->label);
        goto done;
    }
    if (count == 0) {
        status = 0;
        goto done;
    }
    if (count > SIZE_MAX / element || (data = calloc(count, element)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to read %llu elements", array->label, (unsigned long long)count);
        goto done;
    }
    status = cow_array_read(array, args->type_id, space, args->space_id, dxpl, data);
    H5Treclaim(args->type_id, space, dxpl, data);
done:
    if (status == 0)
        *args->size = bytes;
    free(data);
    if (space >= 0)
        H5Sclose(space);
    if (dxpl >= 0)
        H5Pclose(dxpl);
    return status;
}

int cow_dataset_chunk_operation(cow_object *o, H5VL_optional_args_t *args, hid_t dxpl)
{
    cow_array *array = cow_dataset_array(o->dataset);
    H5VL_native_dataset_optional_args_t *a = args->args;

    switch (args->op_type) {
    case H5VL_NATIVE_DATASET_FORMAT_CONVERT:
        return 0; /* as for any virtual dataset */
    case H5VL_NATIVE_DATASET_GET_OFFSET:
        return contiguous_offset(o->dataset, array, a->get_offset.offset);
    case H5VL_NATIVE_DATASET_GET_VLEN_BUF_SIZE:
        return buffer_size(array, &a->get_vlen_buf_size);
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
    /* The native dataset is not chunked either: it refuses in HDF5's own words. */
    if (!cow_dataset_chunked(o->dataset))
        return H5VLdataset_optional(o->native, cow_native_id(), args, dxpl, NULL);
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
        return read_chunk(array, &a->chunk_read);
    case H5VL_NATIVE_DATASET_CHUNK_WRITE:
        return write_chunk(o, array, &a->chunk_write);
    default: /* H5VL_NATIVE_DATASET_CHUNK_ITER */
        return iterate(array, a->chunk_iter.op, a->chunk_iter.op_data);
    }
}
