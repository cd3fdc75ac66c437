/* See native_head.h. */
#include "history/native_head.h"

#include "base/error.h"
#include "base/ids.h"
#include "h5/dataset_header.h"
#include "history/head_index.h"
#include "history/internal.h"
#include "io/scratch.h"
#include "native/header_file.h"
#include "native/pipeline.h"
#include "native/staged.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The header that HDF5 makes is the same but for extent, times and index where pool and properties are: this is the last one. */
struct cow_native_head {
    hid_t dcpl; /* H5I_INVALID_HID: none */
    uint32_t pool;
    bool named; /* the type */
    H5F_libver_t low;
    cow_scratch_head made;
    struct {
        uint8_t *bytes; /* NULL: none */
        size_t size;
        uint64_t address; /* in the file */
    } heap;               /* of the last fill value of variable length */
};

cow_native_head *cow_native_head_new(void)
{
    cow_native_head *last = calloc(1, sizeof *last);

    if (last != NULL)
        last->dcpl = H5I_INVALID_HID;
    return last;
}

void cow_native_head_free(cow_native_head *last)
{
    free(last);
}

static void forget(cow_native_head *last)
{
    cow_close(last->dcpl);
    last->dcpl = H5I_INVALID_HID;
    cow_scratch_head_free(&last->made);
}

void cow_native_head_close(cow_file *file)
{
    forget(file->native_head);
    free(file->native_head->heap.bytes);
    file->native_head->heap.bytes = NULL;
}

/* The properties that the program wants, with chunks and filters of the POOL. The caller closes them. */
static hid_t properties(const cow_creation *wanted, const cow_root *root, const cow_pool_entry *pool)
{
    hid_t dcpl = H5Pcopy(wanted->dcpl);
    hsize_t chunk[COW_MAX_RANK];
    H5D_alloc_time_t allocated; /* chunks have another usual one */

    for (unsigned d = 0; d < root->rank; d++)
        chunk[d] = root->chunk[d];
    if (dcpl >= 0 && H5Pget_alloc_time(dcpl, &allocated) >= 0 && allocated == H5D_ALLOC_TIME_EARLY)
        allocated = H5D_ALLOC_TIME_INCR; /* HDF5 would make chunks of its own */
    if (dcpl >= 0 && H5Pset_chunk(dcpl, (int)root->rank, chunk) >= 0 && H5Pset_alloc_time(dcpl, allocated) >= 0 &&
        cow_pipeline_take(dcpl, pool->dcpl >= 0 ? pool->dcpl : H5P_DATASET_CREATE_DEFAULT, 0) == 0)
        return dcpl;
    cow_close(dcpl);
    cow_error_native("cannot describe a dataset");
    return H5I_INVALID_HID;
}

/* The fill value that the last header names, into the file: one that was there already serves again, nobody counts who uses it. 1; 0: it cannot; -1. */
static int place_fill(cow_native_head *last, const cow_native_bytes *bytes)
{
    cow_scratch_head *made = &last->made;

    if (made->heap == NULL)
        return 1;
    if (last->heap.bytes == NULL || last->heap.size != made->heap_size ||
        memcmp(last->heap.bytes, made->heap, made->heap_size) != 0) {
        free(last->heap.bytes);
        last->heap.bytes = NULL;
        if ((last->heap.address = cow_bytes_take(bytes, made->heap_size, true)) == UINT64_MAX ||
            cow_bytes_write(bytes, last->heap.address, made->heap, made->heap_size) < 0)
            return -1;
        last->heap.bytes = made->heap;
        last->heap.size = made->heap_size;
    } else
        free(made->heap);
    made->heap = NULL;
    return cow_dataset_header_move_fill(made->header, made->size, made->heap_address, last->heap.address);
}

/* It is made anew where it is of another pool, or of other properties. 1; 0: HDF5 makes none that can be used; -1. */
static int make_header(cow_file *file, const cow_native_bytes *bytes, const cow_creation *wanted, const cow_root *root,
                       const cow_pool_entry *pool)
{
    cow_native_head *last = file->native_head;
    const bool named = H5Tcommitted(wanted->type) > 0;
    hid_t fcpl, dcpl;
    int status;

    if (last->dcpl >= 0 && last->pool == root->pool && last->named == named && last->low == file->low &&
        H5Pequal(last->dcpl, wanted->dcpl) > 0)
        return 1;
    forget(last);
    fcpl = cow_native_file_fcpl(file->native);
    dcpl = properties(wanted, root, pool);
    status =
        fcpl < 0 || dcpl < 0 ? 0 : cow_scratch_header(fcpl, dcpl, wanted->type, wanted->space, file->low, &last->made);
    cow_close(fcpl, dcpl);
    last->pool = (uint32_t)root->pool;
    last->named = named;
    last->low = file->low;
    if (status <= 0)
        return 0;
    if ((status = place_fill(last, bytes)) > 0)
        last->dcpl = H5Pcopy(wanted->dcpl);
    return status < 0 ? -1 : last->dcpl >= 0;
}

/* The named type of the dataset; *ADDRESS UINT64_MAX: it has none. 1; 0: it is of another file; -1. */
static int find_type(const cow_file *file, const cow_creation *wanted, cow_loc *type, uint64_t *address)
{
    H5O_info2_t info;

    *address = UINT64_MAX;
    if (H5Tcommitted(wanted->type) <= 0)
        return 1;
    *type = cow_native_named_type(wanted->type);
    if (cow_native_info(*type, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    *address = cow_address(&info.token);
    return info.fileno == file->fileno;
}

int cow_native_head_make(cow_file *file, const cow_creation *wanted, bool unopened, const cow_root *root,
                         const cow_pool_entry *pool, cow_layout_dataset_row *row, void **native)
{
    const cow_native_head *last = file->native_head;
    const cow_loc at = {wanted->at, wanted->loc->obj_type};
    cow_native_bytes bytes;
    cow_dataset_header told;
    uint8_t *header;
    uint64_t index, type_address;
    cow_loc type;
    int status;

    if (!cow_native_file_bytes(file->native, &bytes))
        return 0;
    if ((status = find_type(file, wanted, &type, &type_address)) <= 0 ||
        (status = make_header(file, &bytes, wanted, root, pool)) <= 0 ||
        cow_dataset_header_parse(last->made.header, last->made.size, &told) <= 0 ||
        told.layout != COW_DATASET_HEADER_TREE || told.rank != root->rank)
        return status < 0 ? -1 : 0;
    if ((header = malloc(last->made.size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the header of a dataset");
    memcpy(header, last->made.header, last->made.size);
    if (cow_head_index_create(file, &told, root->dataset, &index) < 0)
        status = -1;
    else if (!cow_dataset_header_fit(header, last->made.size, root->rank, root->extent, root->maximum, index,
                                     type_address, (uint32_t)time(NULL)))
        status = cow_error(COW_UNSUPPORTED, "%s: HDF5 makes other headers of datasets than h5cow knows", file->name);
    else
        status = cow_header_put(&bytes, header, last->made.size, &row->head) < 0 ? -1 : 1;
    free(header);
    if (status > 0 && type_address != UINT64_MAX && cow_native_change_references(type, 1) < 0)
        status = -1; /* HDF5 counts who uses a named type as its links; a head that cannot be linked takes that back */
    if (status > 0 && wanted->name != NULL)
        status =
            cow_staged_link_to(file->native, &bytes, row->head, wanted->at, wanted->loc, wanted->name, wanted->lcpl);
    if (status <= 0)
        return status;
    row->flags |= COW_FLAG_NATIVE;
    if (unopened && wanted->name != NULL)
        return 1;
    if (wanted->name == NULL)
        *native = cow_staged_anonymous(at, &bytes, row->head, wanted->dapl);
    else if ((*native = H5VLdataset_open(wanted->at, wanted->loc, cow_native_id(), wanted->name, wanted->dapl,
                                         H5P_DATASET_XFER_DEFAULT, NULL)) == NULL)
        cow_error_native("cannot open the dataset '%s'", wanted->name);
    return *native == NULL ? -1 : 1;
}
