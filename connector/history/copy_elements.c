/* The elements of a dataset into another one of the same type and extent: chunk by chunk, as they are stored where that
 * can be, or in boxes. What is not stored is not stored in the copy.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/ids.h"
#include "native/datatype.h"

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

#define PIECE ((size_t)32 << 20)

/* Of each pair one is NULL. */
typedef struct transfer {
    cow_array *array, *to_array;
    void *native, *to_native;
    hid_t type, space;
    const char *label;
    bool encoded;               /* chunks go as they are stored */
    bool filled;                /* HDF5 fills `to_native` when it allocates it */
    bool heap;                  /* elements may have parts elsewhere */
    cow_values_change *changed; /* what becomes of references; NULL: there are none */
    void *context;
    void *buffer;
    size_t room;
} transfer;

static int make_room(transfer *p, size_t size)
{
    void *larger;

    if (size <= p->room)
        return 0;
    if ((larger = realloc(p->buffer, size)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", p->label, size);
    p->buffer = larger;
    p->room = size;
    return 0;
}

static int read_native(transfer *p, const hsize_t start[], uint32_t *mask, hsize_t *size)
{
    if (cow_native_chunk_size(p->native, start, size) < 0)
        return cow_error_native("%s: cannot look at a chunk", p->label);
    if (make_room(p, *size) < 0)
        return -1;
    return cow_native_chunk_read(p->native, start, mask, p->buffer, *size) < 0
               ? cow_error_native("%s: cannot read a chunk", p->label)
               : 0;
}

static bool is_filled(void *native)
{
    hid_t dcpl = cow_native_dataset_dcpl(native);
    bool filled = cow_native_fills(dcpl);

    cow_close(dcpl);
    return filled;
}

static int write_native(transfer *p, const hsize_t start[], uint32_t mask, size_t size)
{
    int status = p->filled ? cow_native_chunk_write_over_fill(p->to_native, start, mask, p->buffer, size)
                           : cow_native_chunk_write(p->to_native, start, mask, p->buffer, size);

    return status < 0 ? cow_error_native("%s: cannot write a chunk of the copy", p->label) : 0;
}

static int copy_encoded(transfer *p, unsigned rank, const hsize_t start[])
{
    uint64_t offset[COW_MAX_RANK];
    cow_chunk_info info;
    hsize_t size;
    uint32_t mask;

    for (unsigned d = 0; d < rank; d++)
        offset[d] = start[d];
    if (p->native != NULL) {
        if (read_native(p, start, &mask, &size) < 0)
            return -1;
        if (p->to_array != NULL)
            return cow_array_chunk_write(p->to_array, offset, mask, p->buffer, size);
        return write_native(p, start, mask, size);
    }
    if (cow_array_chunk_by_offset(p->array, offset, &info) < 0 || make_room(p, info.size) < 0 ||
        cow_array_chunk_read(p->array, offset, &mask, p->buffer, info.size) < 0)
        return -1;
    return write_native(p, start, mask, info.size);
}

static int copy_decoded(transfer *p, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    hid_t memory = H5S_ALL, file = H5S_ALL;
    size_t n = 1, size = H5Tget_size(p->type);
    uint64_t elements;
    bool all;
    int status = -1;

    for (unsigned d = 0; d < rank; d++)
        n *= (size_t)count[d];
    if (cow_space_elements(p->space, &elements) < 0 || make_room(p, n * size) < 0)
        return -1;
    all = n == elements;
    if (p->heap)
        memset(p->buffer, 0, n * size);
    if (!all && ((memory = H5Screate_simple((int)rank, count, NULL)) < 0 || (file = H5Scopy(p->space)) < 0 ||
                 H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) < 0))
        cow_error_native("%s: cannot select a chunk", p->label);
    else if ((p->array != NULL ? cow_array_read(p->array, p->type, memory, file, DXPL, p->buffer)
                               : cow_native_dataset_read(p->native, p->type, memory, file, DXPL, p->buffer)) == 0) {
        if (p->changed == NULL || p->changed(p->context, p->type, n, p->buffer) == 0)
            status = p->to_array != NULL
                         ? cow_array_write(p->to_array, p->type, memory, file, DXPL, p->buffer)
                         : cow_native_dataset_write(p->to_native, p->type, memory, file, DXPL, p->buffer);
        if (p->heap)
            cow_reclaim(p->type, all ? p->space : memory, DXPL, p->buffer);
    }
    if (!all)
        cow_close(file, memory);
    return status;
}

static int copy_one_box(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    transfer *p = context;

    return p->encoded ? copy_encoded(p, rank, start) : copy_decoded(p, rank, start, count);
}

static int copy_chunk(void *context, const uint64_t chunk[], uint64_t slot)
{
    const cow_array *array = ((transfer *)context)->array;
    const cow_grid *grid = &array->grid;
    hsize_t start[COW_MAX_RANK], count[COW_MAX_RANK];

    (void)slot;
    for (unsigned d = 0; d < grid->rank; d++) {
        start[d] = chunk[d] * grid->chunk[d];
        count[d] = array->extent[d] - start[d] < grid->chunk[d] ? array->extent[d] - start[d] : grid->chunk[d];
    }
    return copy_one_box(context, grid->rank, start, count);
}

static bool has_references(hid_t type)
{
    return H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

int cow_copy_elements_of_dataset(cow_dataset *source, cow_dataset *target, void *native, cow_values_change *change,
                                 void *context)
{
    cow_array *array = &source->array;
    transfer p = {.array = array,
                  .to_array = target == NULL ? NULL : &target->array,
                  .to_native = native,
                  .type = cow_array_type(array),
                  .label = array->label,
                  .heap = array->heap,
                  .changed = has_references(cow_array_type(array)) ? change : NULL,
                  .context = context};
    uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];
    int status = -1;

    p.encoded = target == NULL && cow_dataset_chunked(source) && !p.heap && p.changed == NULL &&
                !(source->row.flags & COW_FLAG_FILTERS_ADDED);
    p.filled = p.encoded && is_filled(native);
    for (unsigned d = 0; d < array->grid.rank; d++)
        count[d] = cow_grid_chunks_along(array->extent[d], array->grid.chunk[d]);
    if ((p.space = cow_dataset_space(source)) >= 0)
        status = cow_index_visit(array->index, first, count, copy_chunk, &p);
    free(p.buffer);
    cow_close(p.space);
    return status;
}

/* All of P's native dataset; where it is not chunked, in boxes. */
static int copy_stored(transfer *p, hid_t dcpl, const hsize_t box[])
{
    H5D_space_status_t stored;
    uint64_t elements;
    int status = -1;

    if (cow_native_dataset_status(p->native, &stored) < 0 || cow_space_elements(p->space, &elements) < 0)
        return -1;
    if (stored == H5D_SPACE_STATUS_NOT_ALLOCATED || elements == 0)
        return 0;
    status = H5Pget_layout(dcpl) == H5D_CHUNKED ? cow_native_stored_boxes(p->native, p->space, dcpl, copy_one_box, p)
                                                : cow_boxes(p->space, box, copy_one_box, p);
    free(p->buffer);
    return status;
}

int cow_copy_elements_of_native(void *source, cow_dataset *target, cow_values_change *change, void *context)
{
    cow_array *array = &target->array;
    hid_t dcpl = cow_native_dataset_dcpl(source);
    transfer p = {.native = source,
                  .to_array = array,
                  .type = cow_array_type(array),
                  .label = array->label,
                  .heap = array->heap,
                  .changed = has_references(cow_array_type(array)) ? change : NULL,
                  .context = context,
                  .space = cow_native_dataset_space(source)};
    hsize_t box[COW_MAX_RANK];
    int status = -1;

    for (unsigned d = 0; d < array->grid.rank; d++)
        box[d] = array->grid.chunk[d];
    if (dcpl >= 0 && p.space >= 0) {
        p.encoded = H5Pget_layout(dcpl) == H5D_CHUNKED && !p.heap && p.changed == NULL;
        status = copy_stored(&p, dcpl, box);
    }
    cow_close(p.space, dcpl);
    return status;
}

int cow_copy_elements_between_files(const char *file, void *source, void *target, cow_values_change *change,
                                    void *context)
{
    hid_t dcpl = cow_native_dataset_dcpl(source);
    transfer p = {.native = source,
                  .to_native = target,
                  .type = cow_native_dataset_type(source),
                  .label = file,
                  .heap = true,
                  .context = context,
                  .space = cow_native_dataset_space(source)};
    hsize_t box[H5S_MAX_RANK];
    int heap, status = -1;

    if (dcpl >= 0 && p.type >= 0 && p.space >= 0 && (heap = cow_type_is_heap(p.type, true)) >= 0) {
        p.changed = has_references(p.type) ? change : NULL;
        /* as they are stored: a filter may refuse to encode them again, or be lossy */
        p.encoded = H5Pget_layout(dcpl) == H5D_CHUNKED && !heap && p.changed == NULL;
        p.filled = p.encoded && is_filled(target);
        status = cow_box_of(p.space, PIECE / H5Tget_size(p.type), box) < 0
                     ? cow_error_native("%s: cannot get the size of a dataset", file)
                     : copy_stored(&p, dcpl, box);
    }
    cow_close(p.space, p.type, dcpl);
    return status;
}

static int lend(void *context, hid_t type, size_t n, void *values)
{
    (void)context;
    return cow_native_references_lend(type, n, values);
}

int cow_copy_elements_within_file(const char *file, void *source, void *target)
{
    return cow_copy_elements_between_files(file, source, target, lend, NULL);
}

/* What either of them has stored: TARGET's first, which may be more. */
static int copy_over(transfer *p, hid_t dcpl, const hsize_t box[])
{
    H5D_space_status_t stored[2];
    uint64_t elements;

    if (cow_native_dataset_status(p->native, &stored[0]) < 0 ||
        cow_native_dataset_status(p->to_native, &stored[1]) < 0 || cow_space_elements(p->space, &elements) < 0)
        return -1;
    if (elements == 0 || (stored[0] == H5D_SPACE_STATUS_NOT_ALLOCATED && stored[1] == H5D_SPACE_STATUS_NOT_ALLOCATED))
        return 0;
    if (H5Pget_layout(dcpl) != H5D_CHUNKED)
        return cow_boxes(p->space, box, copy_one_box, p);
    return cow_native_stored_boxes(p->to_native, p->space, dcpl, copy_one_box, p) < 0
               ? -1
               : cow_native_stored_boxes(p->native, p->space, dcpl, copy_one_box, p);
}

int cow_copy_elements_over(const char *file, void *source, void *target)
{
    hid_t dcpl = cow_native_dataset_dcpl(source);
    transfer p = {.native = source,
                  .to_native = target,
                  .type = cow_native_dataset_type(source),
                  .label = file,
                  .heap = true,
                  .space = cow_native_dataset_space(source)};
    hsize_t box[H5S_MAX_RANK];
    int status = -1;

    if (dcpl >= 0 && p.type >= 0 && p.space >= 0) {
        p.changed = has_references(p.type) ? lend : NULL;
        status = cow_box_of(p.space, PIECE / H5Tget_size(p.type), box) < 0
                     ? cow_error_native("%s: cannot get the size of a dataset", file)
                     : copy_over(&p, dcpl, box);
    }
    free(p.buffer);
    cow_close(p.space, p.type, dcpl);
    return status;
}
