/* H5Dread and H5Dwrite of an array: what is selected, who does it (transfer.h), and the application's memory.
 *
 * Promises: the same elements in the same order as native HDF5, whatever the two selections look like; no allocation
 * and no id made where memory is addressable by position and no conversion is needed; otherwise a bounded amount of
 * memory, whatever is selected.
 */
#include "io/transfer.h"

#include "base/error.h"
#include "base/ids.h"
#include "io/chunk_cache.h"

#include <inttypes.h>
#include <string.h>

/* ---- the memory selection ---- */

/* A regular selection of memory that is one run: *OFFSET its first element. */
static bool one_run(const cow_selection *memory, uint64_t *offset)
{
    uint64_t stride = 1;
    bool full = true; /* all dimensions so far are selected completely */

    *offset = 0;
    for (unsigned d = memory->rank; d-- > 0;) {
        const cow_slab *slab = &memory->slab[d];
        uint64_t n = cow_slab_length(slab);

        if (slab->count > 1 || (n > 1 && !full))
            return false;
        *offset += slab->start * stride;
        full = full && n == memory->extent[d];
        stride *= memory->extent[d];
    }
    return true;
}

/* Both selections have the same shape but for dimensions of one element, and memory is evenly spaced along each:
 * then IN_MEMORY addresses it by position in the file selection. */
static bool same_shape(const cow_transfer *transfer, const cow_selection *memory, cow_plan_memory *in_memory)
{
    const cow_selection *file = &transfer->file;
    uint64_t stride[COW_MAX_RANK], s = transfer->mem_size;
    unsigned m = 0;

    in_memory->base = transfer->buf;
    for (unsigned d = memory->rank; d-- > 0;) {
        const cow_slab *slab = &memory->slab[d];
        if (slab->count > 1 && slab->block > 1)
            return false;
        in_memory->base += slab->start * s;
        stride[d] = slab->count > 1 ? slab->stride * s : s;
        s *= memory->extent[d];
    }
    for (unsigned d = 0; d < file->rank; d++) {
        uint64_t n = cow_slab_length(&file->slab[d]);

        in_memory->origin[d] = 0;
        in_memory->stride[d] = 0;
        if (n == 1)
            continue;
        while (m < memory->rank && cow_slab_length(&memory->slab[m]) == 1)
            m++;
        if (m == memory->rank || cow_slab_length(&memory->slab[m]) != n)
            return false;
        in_memory->stride[d] = stride[m++];
    }
    return true; /* the numbers of elements agree, so what is left of memory's dimensions has one element each */
}

/* Fill in the memory side of TRANSFER. *ADDRESSABLE: of a regular file selection, IN_MEMORY addresses it by position. */
static int describe_memory(cow_transfer *transfer, hid_t mem_space, hid_t file_space, cow_plan_memory *in_memory,
                           bool *addressable)
{
    const uint64_t none[COW_MAX_RANK] = {0};
    uint64_t lengths[COW_MAX_RANK], elements, offset = 0;
    cow_selection memory;

    *addressable = memory.regular = false;
    if (mem_space == H5S_ALL) /* the same selection in memory, in the file dataspace's own extent */
        mem_space = file_space;
    if (mem_space == H5S_ALL || mem_space == H5S_BLOCK) {
        elements = transfer->file.elements;
        transfer->contiguous = true;
    } else {
        hsize_t dims[H5S_MAX_RANK];
        H5S_sel_type kind = H5Sget_select_type(mem_space);
        int rank = H5Sget_simple_extent_dims(mem_space, dims, NULL);
        hssize_t selected;

        elements = 1;
        if (kind == H5S_SEL_ALL && rank > 0) { /* what most programs do, and every call costs */
            for (int d = 0; d < rank; d++)
                elements = cow_times(elements, dims[d]);
            transfer->contiguous = true;
        } else if (kind < 0 || rank < 0 || (selected = H5Sget_select_npoints(mem_space)) < 0) {
            return cow_error_native("the memory dataspace is no dataspace");
        } else
            elements = (uint64_t)selected;
        transfer->mem_space = mem_space;
        if (rank == 0) {
            transfer->contiguous = true;
        } else if (elements > 0 && !transfer->contiguous) {
            uint64_t extent[COW_MAX_RANK];
            for (int d = 0; d < rank; d++)
                extent[d] = dims[d];
            if (cow_selection_from(&memory, mem_space, (unsigned)rank, extent) < 0)
                return cow_context("in the memory dataspace");
            transfer->contiguous = memory.regular && one_run(&memory, &offset);
        }
    }
    if (elements != transfer->file.elements)
        return cow_error(COW_USAGE,
                         "src and dest dataspaces have different number of elements selected: %" PRIu64
                         " in memory, %" PRIu64 " in the file",
                         elements, transfer->file.elements);
    transfer->mem_offset = offset;
    if (elements == 0 || !transfer->file.regular)
        return 0;
    if (transfer->contiguous) {
        for (unsigned d = 0; d < transfer->file.rank; d++)
            lengths[d] = cow_slab_length(&transfer->file.slab[d]);
        cow_plan_memory_packed(in_memory, transfer->file.rank, none, lengths, transfer->mem_size,
                               transfer->buf + offset * transfer->mem_size);
        *addressable = true;
    } else if (memory.regular) {
        *addressable = same_shape(transfer, &memory, in_memory);
    }
    return 0;
}

/* ---- regular in the file, irregular in memory ---- */

/* Cut the positions of a regular file selection into boxes that follow each other in selection order and have at most
 * MOST elements (at least one position), at chunk boundaries where possible. FIRST: of the box; END: set. */
static void next_box(const cow_plan *whole, uint64_t most, const uint64_t first[], uint64_t end[])
{
    uint64_t inner = 1, group;
    unsigned d = whole->rank - 1;

    /* All of the dimensions after d, a group of d's positions, one position of those before. */
    while (d > 0 && first[d] == 0 && inner * whole->end[d] <= most)
        inner *= whole->end[d--];
    for (unsigned e = 0; e < whole->rank; e++)
        end[e] = e < d ? first[e] + 1 : whole->end[e];
    group = most / inner == 0 ? 1 : most / inner;
    if (group < end[d] - first[d]) {
        const cow_slab *slab = &whole->slab[d];
        uint64_t size = whole->grid->chunk[d];
        uint64_t boundary = cow_slab_below(slab, cow_slab_coordinate(slab, first[d] + group) / size * size);

        end[d] = boundary > first[d] ? boundary : first[d] + group;
    }
}

/* Go to the position that follows the box. false: there is none. */
static bool after_box(const cow_plan *whole, uint64_t first[], const uint64_t end[])
{
    for (unsigned d = whole->rank; d-- > 0;) {
        if (end[d] < whole->end[d]) {
            first[d] = end[d];
            return true;
        }
        first[d] = 0;
    }
    return false;
}

static int transfer_boxes(const cow_transfer *transfer, cow_plan *plan)
{
    const cow_plan whole = *plan;
    uint64_t first[COW_MAX_RANK] = {0}, end[COW_MAX_RANK], most = COW_SLAB_BYTES / transfer->mem_size;
    bool before = transfer->write || transfer->array->fill == NULL || transfer->array->heap ||
                  transfer->conversion.background == COW_BACKGROUND_CONTENT;
    cow_stream in = {.runs = NULL}, out = {.runs = NULL};
    int status = -1;

    if (cow_stream_open(&in, transfer) < 0 || cow_stream_open(&out, transfer) < 0)
        goto done;
    do {
        uint64_t n = 1;
        uint8_t *packed;
        cow_plan_memory in_memory;

        next_box(&whole, most, first, end);
        for (unsigned d = 0; d < whole.rank; d++)
            n *= end[d] - first[d];
        if ((packed = cow_chunk_cache_scratch(transfer->array->cache, COW_BUFFER_STAGED, n * transfer->mem_size)) ==
            NULL)
            goto done;
        /* A read begins with what is in memory where it may leave some of it alone. */
        if (before && cow_stream_gather(&in, n, packed) < 0)
            goto done;
        cow_plan_memory_packed(&in_memory, whole.rank, first, end, transfer->mem_size, packed);
        cow_plan_restrict(plan, first, end);
        if (cow_transfer_pieces(transfer, plan, &in_memory) < 0)
            goto done;
        if (!transfer->write && cow_stream_scatter(&out, n, packed) < 0)
            goto done;
    } while (after_box(&whole, first, end));
    status = 0;
done:
    cow_stream_close(&out);
    cow_stream_close(&in);
    return status;
}

/* ---- the door ---- */

/* Natively the fill value is read without looking at the file then. */
static bool nothing_stored(const cow_array *array)
{
    return !array->reserved && array->dirty == NULL && cow_index_chunks(array->index) == 0;
}

/* All that can be wrong with the call, before anything is touched. */
static int prepare(cow_transfer *transfer, cow_array *array, bool write, hid_t mem_type, hid_t mem_space,
                   hid_t file_space, hid_t dxpl, void *buf, cow_plan_memory *in_memory, bool *addressable)
{
    transfer->array = array;
    transfer->write = write;
    transfer->mem_type = mem_type;
    transfer->dxpl = dxpl == H5P_DEFAULT ? cow_default_transfer() : dxpl;
    transfer->buf = buf;
    transfer->contiguous = false;
    transfer->parts = 0;
    transfer->mem_space = H5I_INVALID_HID;
    if (file_space == H5S_BLOCK)
        return cow_error(COW_USAGE, "H5S_BLOCK is not allowed for the file dataspace");
    if (mem_space == H5S_PLIST)
        return cow_error(COW_USAGE, "H5S_PLIST is not allowed for the memory dataspace");
    if (array->heap) {
        memset(&transfer->conversion, 0, sizeof transfer->conversion);
        if ((transfer->mem_size = H5Tget_size(mem_type)) == 0)
            return cow_error_native("the memory datatype is no datatype");
    } else {
        bool known = array->same_type == mem_type && mem_type > 0;
        hid_t file_type = known ? mem_type : cow_array_type(array);

        if (file_type < 0 || cow_conversion_open(&transfer->conversion, file_type, array->element_size, mem_type, known,
                                                 dxpl, write) < 0)
            return -1;
        if (!known && transfer->conversion.same && cow_type_predefined(mem_type))
            array->same_type = mem_type;
        if (!write && transfer->conversion.transform && nothing_stored(array))
            cow_conversion_without_transform(&transfer->conversion);
        transfer->mem_size = write ? transfer->conversion.from_size : transfer->conversion.to_size;
    }
    if (cow_selection_from(&transfer->file, file_space, array->grid.rank, array->extent) < 0 ||
        describe_memory(transfer, mem_space, file_space, in_memory, addressable) < 0)
        return -1;
    if (transfer->file.elements == 0)
        return 0;
    if (transfer->file.elements > SIZE_MAX / transfer->mem_size)
        return cow_error(COW_USAGE, "%s: no memory can hold %" PRIu64 " elements; select fewer", array->label,
                         transfer->file.elements);
    if (buf == NULL)
        return cow_error(COW_USAGE,
                         write ? "no input buffer, but %" PRIu64 " elements are selected"
                               : "no output buffer, but %" PRIu64 " elements are selected",
                         transfer->file.elements);
    if (!array->heap && transfer->file.regular && transfer->file.elements * transfer->mem_size >= COW_PARTS_BYTES)
        transfer->parts = cow_conversion_parts(&transfer->conversion, transfer->part);
    if (!write && array->nothing_to_read)
        return cow_error(COW_USAGE, "%s: nothing was written yet, and the fill value is undefined", array->label);
    return 0;
}

static int run(cow_array *array, bool write, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf)
{
    cow_transfer transfer;
    cow_plan plan;
    cow_plan_memory in_memory;
    bool addressable;

    if (prepare(&transfer, array, write, mem_type, mem_space, file_space, dxpl, buf, &in_memory, &addressable) < 0)
        return -1;
    if (transfer.file.elements == 0)
        return 0;
    if (write && cow_array_allocate_late(array) < 0)
        return -1;
    if (write) {
        array->written = true;
        array->nothing_to_read = false;
    }
    if (!transfer.file.regular)
        return cow_transfer_spans(&transfer);
    cow_plan_open(&plan, &array->grid, array->extent, &transfer.file);
    return addressable ? cow_transfer_pieces(&transfer, &plan, &in_memory) : transfer_boxes(&transfer, &plan);
}

/* A chunk goes through its filters when it leaves the cache, and the callback that may excuse them is this call's. */
static int store_now(cow_array *array)
{
    if (array->heap || cow_codec_identity(array->codec) ||
        (!array->through && (array->filtering == NULL || array->filtering->callback == NULL)))
        return 0;
    if (cow_array_store(array) == 0)
        return 0;
    if (array->through)
        return cow_array_drop_refused(array);
    cow_error_clear(); /* it is told when HDF5 would tell it */
    return 0;
}

/* STATUS of a write: the first error is the one to tell. */
static int end_homeless(cow_array *array, int status)
{
    cow_error_held *held = cow_error_hold();

    if (cow_chunk_cache_store_homeless(array) < 0 && status == 0)
        return -1;
    cow_error_put_back(held);
    return status;
}

static int run_filtered(cow_array *array, bool write, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                        void *buf)
{
    cow_filtering filtering, *outer = array->filtering; /* of a call that calls the program, which makes this one */
    const bool writing = array->writing;
    hid_t listed = H5I_INVALID_HID;
    int status;

    if (file_space == H5S_PLIST &&
        (file_space = listed = cow_selection_from_plist(array->grid.rank, array->extent, array->label, dxpl)) < 0)
        return -1;
    array->filtering = cow_filtering_of(dxpl, &filtering) ? &filtering : NULL;
    array->writing = write;
    status = run(array, write, mem_type, mem_space, file_space, dxpl, buf);
    array->writing = writing;
    cow_close(listed);
    if (write && array->homeless > 0)
        status = end_homeless(array, status);
    if (write && status == 0)
        status = store_now(array);
    if (array->filtering != NULL) /* what was not checked is not for others */
        cow_array_forget_clean(array);
    array->filtering = outer;
    return status;
}

int cow_array_read(cow_array *array, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf)
{
    return run_filtered(array, false, mem_type, mem_space, file_space, dxpl, buf);
}

int cow_array_write(cow_array *array, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, const void *buf)
{
    return run_filtered(array, true, mem_type, mem_space, file_space, dxpl, (void *)(uintptr_t)buf);
}

int cow_array_check(cow_array *array, bool write, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                    const void *buf)
{
    hid_t listed = H5I_INVALID_HID;
    H5T_cdata_t *path = NULL;
    cow_transfer transfer;
    cow_plan_memory in_memory;
    bool addressable;
    int status;

    if (file_space == H5S_PLIST &&
        (file_space = listed = cow_selection_from_plist(array->grid.rank, array->extent, array->label, dxpl)) < 0)
        return -1;
    status = prepare(&transfer, array, write, mem_type, mem_space, file_space, dxpl, (void *)(uintptr_t)buf, &in_memory,
                     &addressable);
    if (status == 0 && array->heap &&
        H5Tfind(write ? mem_type : cow_array_type(array), write ? cow_array_type(array) : mem_type, &path) == NULL)
        status = cow_error_native("HDF5 has no conversion between the datatype in memory and the one in the file");
    cow_close(listed);
    return status;
}
