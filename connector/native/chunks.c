/* Chunks of native datasets, and boxes of elements. */
#include "native/native.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "h5/chunk_tree.h"
#include "journal/journal.h"
#include "library/library.h"
#include "store/index.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* ---- boxes ---- */

int cow_boxes(hid_t space, const hsize_t box[], cow_box_visitor *visit, void *context)
{
    hsize_t extent[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, NULL), status = rank < 0 ? -1 : 0;

    for (int d = 0; status == 0 && d >= 0;) {
        for (int e = 0; e < rank; e++)
            count[e] = extent[e] - start[e] < box[e] ? extent[e] - start[e] : box[e];
        status = visit(context, (unsigned)rank, start, count);
        for (d = rank - 1; d >= 0 && extent[d] - start[d] <= box[d]; d--)
            start[d] = 0;
        if (d >= 0)
            start[d] += box[d];
    }
    return status;
}

int cow_space_elements(hid_t space, uint64_t *elements)
{
    hsize_t extent[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, NULL);

    if (rank < 0)
        return cow_error_native("cannot get the extent of a dataspace");
    *elements = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : 1;
    for (int d = 0; d < rank; d++)
        *elements = cow_times(*elements, extent[d]);
    return 0;
}

int cow_box_of(hid_t space, size_t elements, hsize_t box[])
{
    int rank = H5Sget_simple_extent_dims(space, box, NULL);

    for (int d = rank; d-- > 0;) {
        if (box[d] > elements)
            box[d] = elements > 0 ? elements : 1;
        elements /= box[d] > 0 ? box[d] : 1;
    }
    return rank < 0 ? -1 : 0;
}

/* ---- chunks ---- */

static herr_t find_not_allocated(unsigned n, const H5E_error2_t *record, void *context)
{
    (void)n;
    if (record->desc != NULL && strstr(record->desc, "chunk storage is not allocated") != NULL)
        *(bool *)context = true;
    return 0;
}

bool cow_native_chunk_was_missing(void)
{
    bool missing = false;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_not_allocated, &missing);
    H5Eclear2(H5E_DEFAULT);
    return missing;
}

static int operation(void *dataset, int which, void *native)
{
    H5VL_optional_args_t args = {.op_type = which, .args = native};

    return H5VLdataset_optional(dataset, cow_native_id(), &args, DXPL, NULL) < 0 ? -1 : 0;
}

int cow_native_chunk_size(void *dataset, const hsize_t offset[], hsize_t *size)
{
    H5VL_native_dataset_optional_args_t native = {.get_chunk_storage_size = {.offset = offset, .size = size}};

    return operation(dataset, H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE, &native);
}

int cow_native_chunk_read(void *dataset, const hsize_t offset[], uint32_t *mask, void *bytes, size_t size)
{
    cow_chunk_read_2 chunk = {.offset = offset, .bytes = bytes, .size = &size}; /* begins as that of 1.14 */

    if (operation(dataset, H5VL_NATIVE_DATASET_CHUNK_READ, &chunk) < 0)
        return -1;
    *mask = chunk.filters;
    return 0;
}

int cow_native_chunk_iterate(void *dataset, H5D_chunk_iter_op_t visit, void *context)
{
    H5VL_native_dataset_optional_args_t native = {.chunk_iter = {.op = visit, .op_data = context}};

    return operation(dataset, H5VL_NATIVE_DATASET_CHUNK_ITER, &native);
}

static int index_of(void *dataset, H5D_chunk_index_t *index)
{
    H5VL_native_dataset_optional_args_t native = {.get_chunk_idx_type = {.idx_type = index}};

    return operation(dataset, H5VL_NATIVE_DATASET_GET_CHUNK_INDEX_TYPE, &native);
}

bool cow_native_has_tree(void *dataset)
{
    H5D_chunk_index_t index;

    if (index_of(dataset, &index) == 0)
        return index == H5D_CHUNK_IDX_BTREE;
    H5Eclear2(H5E_DEFAULT);
    return false;
}

int cow_native_tree_owner(void *file, uint64_t address, uint64_t *owner)
{
    cow_native_bytes bytes;
    const cow_source source = cow_bytes_source(&bytes);
    cow_dataset_header head;
    cow_chunk_form form;
    int status;

    if (!cow_native_file_looks(file, &bytes)) /* so none of ours is in it */
        return 0;
    if ((status = cow_dataset_header_read(&source, address, &head)) <= 0)
        return status;
    return head.layout == COW_DATASET_HEADER_TREE && cow_chunk_form_of(&head, cow_native_file_half(file), &form)
               ? cow_chunk_tree_owner(&form, &source, head.index, owner)
               : 0;
}

/* Another chunk of the dataset than that at OFFSET: one that may be there, since most indexes are asked for no other. */
static bool other_chunk(void *dataset, const hsize_t offset[], hsize_t other[])
{
    hid_t space = cow_native_dataset_space(dataset), dcpl = cow_native_dataset_dcpl(dataset);
    hsize_t most[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    int rank = space < 0 || dcpl < 0 || H5Pget_nfilters(dcpl) <= 0 ? 0 : H5Sget_simple_extent_dims(space, NULL, most);
    H5D_chunk_index_t index;
    bool found = false;

    if (rank > 0 && H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk) == rank && index_of(dataset, &index) == 0) {
        memcpy(other, offset, (size_t)rank * sizeof *other);
        for (int d = 0; !found && d < rank; d++)
            if ((found = index == H5D_CHUNK_IDX_SINGLE || index == H5D_CHUNK_IDX_BTREE || most[d] > chunk[d]))
                other[d] = offset[d] == 0 ? chunk[d] : 0;
    }
    cow_close(dcpl, space);
    return found;
}

void cow_native_chunk_written(void *dataset, const hsize_t offset[])
{
    hsize_t other[H5S_MAX_RANK], size;

    if (other_chunk(dataset, offset, other) && cow_native_chunk_size(dataset, other, &size) < 0)
        H5Eclear2(H5E_DEFAULT); /* it is not stored */
}

int cow_native_chunk_write(void *dataset, const hsize_t offset[], uint32_t mask, const void *bytes, size_t size)
{
    cow_chunk_write_1 chunk = {.offset = offset, .filters = mask, .size = (uint32_t)size, .bytes = bytes};
    cow_chunk_write_2 chunk_2 = {.offset = offset, .filters = mask, .size = size, .bytes = bytes};

    if (operation(dataset, H5VL_NATIVE_DATASET_CHUNK_WRITE, cow_library_is_2() ? (void *)&chunk_2 : &chunk) < 0)
        return -1;
    if (mask != 0) /* else it is the former one: chunks go to where none is */
        cow_native_chunk_written(dataset, offset);
    return 0;
}

bool cow_native_fills(hid_t dcpl)
{
    H5D_alloc_time_t when;

    return H5Pget_alloc_time(dcpl, &when) < 0 || (when != H5D_ALLOC_TIME_INCR && H5Pget_nfilters(dcpl) != 0);
}

int cow_native_chunk_write_over_fill(void *dataset, const hsize_t offset[], uint32_t mask, const void *bytes,
                                     size_t size)
{
    static const unsigned char two[2];
    hsize_t former = 0; /* left unset by HDF5 where nothing is allocated: then the write fills the dataset first */

    if (cow_native_chunk_size(dataset, offset, &former) < 0)
        H5Eclear2(H5E_DEFAULT);
    /* another size in between makes HDF5 store the new mask */
    if ((former == 0 || former == size) &&
        cow_native_chunk_write(dataset, offset, mask, size > 1 ? bytes : two, size > 1 ? size - 1 : sizeof two) < 0)
        return -1;
    if (cow_native_chunk_write(dataset, offset, mask, bytes, size) < 0)
        return -1;
    cow_native_chunk_written(dataset, offset);
    return 0;
}

bool cow_native_dataset_lacks_chunk(void *dataset, const hsize_t offset[])
{
    hsize_t size;

    return cow_native_chunk_size(dataset, offset, &size) < 0 && cow_native_chunk_was_missing();
}

/* HDF5 1.14.5: H5D__earray_idx_iterate_cb counts the places as if the unlimited dimension were the first. */
bool cow_native_chunks_listed_wrong(H5D_chunk_index_t index, hid_t space)
{
    hsize_t most[H5S_MAX_RANK];

    return index == H5D_CHUNK_IDX_EARRAY &&
           (H5Sget_simple_extent_dims(space, NULL, most) < 0 || most[0] != H5S_UNLIMITED);
}

typedef struct stored {
    void *dataset;
    unsigned rank;
    hsize_t *offset; /* [count][rank] */
    size_t count, room;
    cow_box_visitor *visit;
    void *context;
} stored;

static int note_stored(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    stored *s = context;

    (void)mask;
    (void)address;
    (void)size;
    if (cow_vector_reserve(&s->offset, &s->room, s->count, 1, s->rank * sizeof *s->offset) < 0)
        return cow_error(COW_MEMORY, "no memory for a list of %zu chunks", s->count + 1);
    memcpy(&s->offset[s->count++ * s->rank], offset, s->rank * sizeof *offset);
    return 0;
}

static int visit_stored(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    stored *s = context;

    return cow_native_dataset_lacks_chunk(s->dataset, start) ? 0 : s->visit(s->context, rank, start, count);
}

int cow_native_stored_boxes(void *dataset, hid_t space, hid_t dcpl, cow_box_visitor *visit, void *context)
{
    H5D_chunk_index_t index;
    hsize_t extent[H5S_MAX_RANK], box[H5S_MAX_RANK], count[H5S_MAX_RANK];
    stored s = {.dataset = dataset, .visit = visit, .context = context};
    int rank = H5Sget_simple_extent_dims(space, extent, NULL), status = 0;

    if (rank < 0 || H5Pget_chunk(dcpl, H5S_MAX_RANK, box) != rank || index_of(dataset, &index) < 0)
        return cow_error_native("cannot look at the chunks of a dataset");
    s.rank = (unsigned)rank;
    if (cow_native_chunks_listed_wrong(index, space))
        return cow_boxes(space, box, visit_stored, &s);
    if (cow_native_chunk_iterate(dataset, note_stored, &s) < 0)
        status = cow_error_native("cannot list the chunks of a dataset");
    for (size_t i = 0; status == 0 && i < s.count; i++) {
        const hsize_t *start = &s.offset[i * s.rank];
        bool inside = true;
        for (int d = 0; inside && d < rank; d++)
            if ((inside = start[d] < extent[d]))
                count[d] = extent[d] - start[d] < box[d] ? extent[d] - start[d] : box[d];
        if (inside)
            status = visit(context, s.rank, start, count);
    }
    free(s.offset);
    return status;
}

int cow_native_space_at_first(hid_t dcpl, hid_t space)
{
    hsize_t chunk[H5S_MAX_RANK], extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
    bool chunked = H5Pget_layout(dcpl) == H5D_CHUNKED, external = H5Pget_external_count(dcpl) > 0;
    int rank, grows = 0;

    if (!chunked && !external)
        return 0;
    if ((rank = H5Sget_simple_extent_dims(space, extent, most)) < 0 ||
        (chunked && H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk) != rank))
        return -1;
    for (int d = 0; d < rank; d++) {
        if (chunked && extent[d] > 0 && most[d] != H5S_UNLIMITED && most[d] < chunk[d]) {
            extent[d] = 0;
            grows = 1;
        }
        if (external && d > 0 && extent[d] != most[d]) {
            extent[d] = most[d];
            grows = 1;
        }
    }
    return grows && H5Sset_extent_simple(space, rank, extent, most) < 0 ? -1 : grows;
}
