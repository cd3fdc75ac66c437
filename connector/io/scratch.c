/* A dataset of exactly one chunk in a file of the core driver without backing store: what is written to it as elements
 * comes out as the encoded chunk, and the other way round.
 *
 * Promises: no file on disk; the file and the dataset are objects of the native connector and not ids, so no count of
 * open ids ever shows them; works inside a VOL callback (the calls that open the file are public ones, which bring
 * their own API context) as well as outside.
 */
#include "io/scratch.h"

#include "base/error.h"
#include "base/ids.h"
#include "h5/collection.h"
#include "h5/header.h"
#include "native/native.h"
#include "native/pipeline.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_INCREMENT (256u << 10)
#define LOW            H5F_LIBVER_V18 /* so chunks have an index that all readers know */

struct cow_scratch {
    cow_chunk_store *chunks; /* owns the dataset, which keeps the file open */
    cow_kept_type *type;     /* the caller's */
};

/* An empty file in memory, with addresses as large as in one with FCPL, which make out the size of references, and headers like those there. Open files of this driver
 * are told apart by name, and HDF5 looks for a file of that name on disk first: so it is one that nobody else uses. */
static hid_t create_file(const void *owner, hid_t fcpl)
{
    char name[64];
    hid_t file = H5I_INVALID_HID, fapl = H5Pcreate(H5P_FILE_ACCESS), own = H5Pcreate(H5P_FILE_CREATE),
          native = cow_native_id();
    size_t address, length;
    unsigned shared; /* indexes of shared messages: where there are any, HDF5 numbers the messages of all headers */

    snprintf(name, sizeof name, "h5cow-scratch-%ld-%p", (long)getpid(), owner);
    if (fapl < 0 || own < 0 || native < 0 || H5Pget_sizes(fcpl, &address, &length) < 0 ||
        H5Pset_sizes(own, address, length) < 0 || H5Pget_shared_mesg_nindexes(fcpl, &shared) < 0 ||
        (shared > 0 && (H5Pset_shared_mesg_nindexes(own, 1) < 0 ||
                        H5Pset_shared_mesg_index(own, 0, H5O_SHMESG_ATTR_FLAG, UINT_MAX) < 0)) ||
        H5Pset_vol(fapl, native, NULL) < 0 || H5Pset_fapl_core(fapl, FILE_INCREMENT, false) < 0 ||
        H5Pset_libver_bounds(fapl, LOW, H5F_LIBVER_LATEST) < 0 || H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0 ||
        (file = H5Fcreate(name, H5F_ACC_TRUNC, own, fapl)) < 0)
        cow_error_native("cannot make a scratch file in memory for filters");
    cow_close(own, fapl);
    return file;
}

static int create_dataset(cow_scratch *scratch, hid_t file, hid_t dcpl)
{
    cow_loc root = {.object = H5VLobject(file), .type = H5I_FILE};
    hid_t space = H5I_INVALID_HID;
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    void *dataset;
    int rank, result = -1;

    /* One chunk, and nothing written before we write it. */
    for (int d = 0; d < H5S_MAX_RANK; d++)
        most[d] = H5S_UNLIMITED;
    if ((rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, dims)) < 0 || (space = H5Screate_simple(rank, dims, most)) < 0 ||
        H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_INCR) < 0 || H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) < 0) {
        cow_error_native("cannot set up a scratch dataset for filters");
        goto done;
    }
    if ((dataset = cow_native_dataset_create(root, "chunk", cow_kept_type_id(scratch->type), space, dcpl)) != NULL &&
        (scratch->chunks = cow_native_chunk_store(NULL, dataset, dcpl)) != NULL)
        result = 0;
done:
    cow_close(space);
    return result;
}

cow_scratch *cow_scratch_open(hid_t dcpl, cow_kept_type *type, uint32_t skip)
{
    cow_scratch *scratch = calloc(1, sizeof *scratch);
    hid_t file = H5I_INVALID_HID, applied = H5I_INVALID_HID;
    bool entered = false, made = false;

    if (!scratch) {
        cow_error(COW_MEMORY, "no memory for a scratch dataset");
        return NULL;
    }
    scratch->type = type;
    if ((applied = H5Pcopy(dcpl)) < 0 || (skip != 0 && cow_pipeline_take(applied, dcpl, skip) < 0)) {
        cow_error_native("cannot copy the filters of a dataset");
        goto done;
    }
    if ((file = create_file(scratch, H5P_FILE_CREATE_DEFAULT)) < 0 || cow_native_enter() < 0)
        goto done;
    entered = true;
    made = create_dataset(scratch, file, applied) == 0;
done:
    if (entered)
        cow_native_leave();
    if (file >= 0)
        H5Fclose(file); /* the dataset keeps it open */
    if (applied >= 0)
        H5Pclose(applied);
    if (!made) {
        cow_scratch_close(scratch);
        return NULL;
    }
    return scratch;
}

void cow_scratch_close(cow_scratch *scratch)
{
    if (!scratch)
        return;
    if (scratch->chunks && cow_native_enter() == 0) {
        scratch->chunks->close(scratch->chunks);
        cow_native_leave();
    }
    free(scratch);
}

static H5Z_cb_return_t ask(H5Z_filter_t filter, void *bytes, size_t size, void *context)
{
    cow_filtering *filtering = context;
    H5Z_cb_return_t answer = filtering->callback(filter, bytes, size, filtering->data);

    filtering->excused = filtering->excused || answer != H5Z_CB_FAIL;
    return answer;
}

/* The transfer properties that FILTERING came from, as far as they concern filters. */
static hid_t transfer_list(cow_filtering *filtering)
{
    hid_t dxpl;

    if (filtering == NULL)
        return H5P_DATASET_XFER_DEFAULT;
    filtering->excused = false;
    if ((dxpl = H5Pcreate(H5P_DATASET_XFER)) < 0 ||
        (filtering->unchecked && H5Pset_edc_check(dxpl, H5Z_DISABLE_EDC) < 0) ||
        (filtering->callback != NULL && H5Pset_filter_callback(dxpl, ask, filtering) < 0)) {
        cow_error_native("cannot describe what is asked of filters");
        cow_close(dxpl);
        return H5I_INVALID_HID;
    }
    return dxpl;
}

static void transfer_list_close(hid_t dxpl)
{
    if (dxpl != H5P_DATASET_XFER_DEFAULT)
        cow_close(dxpl);
}

int cow_scratch_encode(cow_scratch *scratch, cow_filtering *filtering, const void *chunk, void *out, size_t capacity,
                       size_t *size, uint32_t *mask)
{
    void *dataset = cow_native_chunk_store_dataset(scratch->chunks);
    hid_t dxpl;
    int result = -1;

    if (cow_native_enter() < 0)
        return -1;
    if ((dxpl = transfer_list(filtering)) < 0 ||
        cow_native_dataset_write(dataset, cow_kept_type_id(scratch->type), H5S_ALL, H5S_ALL, dxpl, chunk) < 0 ||
        scratch->chunks->size(scratch->chunks, 0, size) < 0)
        goto done;
    if (*size > capacity) {
        cow_error(COW_UNSUPPORTED, "the filters make %zu bytes of a chunk that is at most %zu bytes in h5cow", *size,
                  capacity);
        goto done;
    }
    result = scratch->chunks->read(scratch->chunks, 0, out, *size, mask);
done:
    transfer_list_close(dxpl);
    cow_native_leave();
    return result;
}

int cow_scratch_decode(cow_scratch *scratch, cow_filtering *filtering, const void *bytes, size_t size, void *chunk)
{
    void *dataset = cow_native_chunk_store_dataset(scratch->chunks);
    hid_t dxpl;
    int result = -1;

    if (cow_native_enter() < 0)
        return -1;
    if ((dxpl = transfer_list(filtering)) >= 0 && scratch->chunks->write(scratch->chunks, 0, bytes, size, 0) == 0 &&
        (result = cow_native_dataset_read(dataset, cow_kept_type_id(scratch->type), H5S_ALL, H5S_ALL, dxpl, chunk)) < 0)
        cow_context("a stored chunk is damaged: its filters cannot decode it");
    transfer_list_close(dxpl);
    cow_native_leave();
    return result;
}

/* ---- asking the filters ---- */

/* A dataset of no elements: the filters are asked about type, properties and chunk alone, and nothing is allocated. */
static hid_t space_without_elements(hid_t space)
{
    hsize_t none[H5S_MAX_RANK] = {0}, most[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, NULL, most);

    return rank < 0 ? H5I_INVALID_HID : H5Screate_simple(rank, none, most);
}

static void *create_asking(hid_t file, hid_t type, hid_t space, hid_t dcpl)
{
    const H5VL_loc_params_t loc = {.type = H5VL_OBJECT_BY_SELF, .obj_type = H5I_FILE};

    return H5VLdataset_create(H5VLobject(file), &loc, cow_native_id(), NULL, H5P_LINK_CREATE_DEFAULT, type, space, dcpl,
                              H5P_DATASET_ACCESS_DEFAULT, H5P_DATASET_XFER_DEFAULT, NULL);
}

int cow_scratch_ask(hid_t fcpl, hid_t dcpl, hid_t type, hid_t space, hid_t *computed, hid_t *records)
{
    hid_t empty = space_without_elements(space), told = H5I_INVALID_HID, file = H5I_INVALID_HID;
    void *dataset = NULL;
    int status = -1;

    *computed = *records = H5I_INVALID_HID;
    if (empty < 0 || (*computed = H5Pcopy(dcpl)) < 0) {
        cow_error_native("cannot describe a dataset for its filters");
        goto done;
    }
    if ((file = create_file(computed, fcpl)) < 0 || cow_native_enter() < 0)
        goto done;
    if ((dataset = create_asking(file, type, empty, dcpl)) == NULL) {
        *records = cow_errors_take();
        status = 1;
    } else if ((told = cow_native_dataset_dcpl(dataset)) >= 0 && cow_pipeline_take(*computed, told, 0) == 0)
        status = 0;
    if (dataset != NULL && cow_native_dataset_close(dataset) < 0)
        status = -1;
    cow_native_leave();
done:
    if (status != 0) {
        cow_close(*computed);
        *computed = H5I_INVALID_HID;
    }
    cow_close(told, empty);
    if (file >= 0)
        H5Fclose(file);
    return status;
}

int cow_scratch_check(hid_t dcpl, hid_t type)
{
    hid_t file = create_file(&dcpl, H5P_FILE_CREATE_DEFAULT), space = H5I_INVALID_HID, list = H5Pcopy(dcpl);
    hsize_t none[H5S_MAX_RANK] = {0}, most[H5S_MAX_RANK];
    int rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, most), status = -1;
    cow_loc root = {.type = H5I_FILE};
    void *dataset;

    if (file < 0 || cow_native_enter() < 0)
        goto done;
    root.object = H5VLobject(file);
    for (int d = 0; d < rank; d++)
        most[d] = H5S_UNLIMITED;
    if (rank < 0 || list < 0 || (space = H5Screate_simple(rank, none, most)) < 0 ||
        H5Pset_alloc_time(list, H5D_ALLOC_TIME_INCR) < 0)
        cow_error_native("cannot describe a dataset for its filters");
    else if ((dataset = cow_native_dataset_create(root, "opened", type, space, list)) != NULL &&
             cow_native_dataset_close(dataset) == 0 && (dataset = cow_native_dataset_open(root, "opened")) != NULL) {
        status = cow_native_dataset_write(dataset, type, H5S_ALL, H5S_ALL, H5P_DATASET_XFER_DEFAULT, "");
        if (cow_native_dataset_close(dataset) < 0)
            status = -1;
    }
    cow_native_leave();
done:
    cow_close(space, list);
    if (file >= 0)
        H5Fclose(file);
    return status;
}

/* ---- headers ---- */

/* The bytes of FILE, which nothing waits to be written to. NULL: the error. */
static uint8_t *bytes_of(hid_t file, size_t *size)
{
    uint8_t *image = NULL;
    ssize_t told;

    if (H5Fflush(file, H5F_SCOPE_LOCAL) < 0 || (told = H5Fget_file_image(file, NULL, 0)) <= 0)
        cow_error_native("cannot look at a scratch file");
    else if ((image = malloc((size_t)told)) == NULL)
        cow_error(COW_MEMORY, "no memory for a scratch file");
    else if (H5Fget_file_image(file, image, (size_t)told) != told) {
        cow_error_native("cannot look at a scratch file");
        free(image);
        return NULL;
    }
    *size = image == NULL ? 0 : (size_t)told;
    return image;
}

/* A type of FILE that is equal to TYPE, encoded as HDF5 encodes it within bounds that begin with LOW; named if that is. */
static hid_t type_in(hid_t file, hid_t type, H5F_libver_t low)
{
    const bool named = H5Tcommitted(type) > 0;
    hid_t own = H5Tcopy(type), opened = H5I_INVALID_HID, copy = H5I_INVALID_HID;

    if (!named && low < H5F_LIBVER_V110)
        return own;
    /* HDF5 encodes anew what it puts into the file, which only who opens it has */
    if (own >= 0 && H5Fset_libver_bounds(file, low < LOW ? LOW : low, H5F_LIBVER_LATEST) >= 0 &&
        H5Tcommit2(file, "type", own, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT) >= 0 &&
        (opened = H5Topen2(file, "type", H5P_DEFAULT)) >= 0 && (named || (copy = H5Tcopy(opened)) >= 0) &&
        H5Fset_libver_bounds(file, LOW, H5F_LIBVER_LATEST) >= 0) {
        cow_close(own, named ? H5I_INVALID_HID : opened);
        return named ? opened : copy;
    }
    cow_close(own, opened, copy);
    cow_error_native("cannot make a type in a scratch file");
    return H5I_INVALID_HID;
}

/* The header at ADDRESS of IMAGE. 0: it is of more than one chunk, or of another version. */
static int keep_header(const uint8_t *image, size_t all, uint64_t address, cow_scratch_head *head)
{
    cow_header header;

    if (address >= all || !cow_header_parse(image + address, all - address, &header) || header.first > all - address)
        return 0;
    if ((head->header = malloc(header.first)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the header of a dataset");
    memcpy(head->header, image + address, header.first);
    head->size = header.first;
    return 1;
}

/* A fill value of variable length, in a collection of its own. 0: it has more of them, or they are inside of others. */
static int keep_heap(const uint8_t *image, size_t all, hid_t type, cow_scratch_head *head)
{
    const uint8_t *heap = memmem(image, all, COW_COLLECTION_SIGN, 4);
    hid_t part;

    if (heap == NULL)
        return 1;
    if (H5Tis_variable_str(type) <= 0) {
        part = H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : H5I_INVALID_HID;
        if (part < 0 || (H5Tget_class(part) != H5T_INTEGER && H5Tget_class(part) != H5T_FLOAT)) {
            cow_close(part);
            return 0;
        }
        H5Tclose(part);
    }
    head->heap_size = all - (size_t)(heap - image) < COW_COLLECTION_HEADER ? 0 : cow_collection_size(heap);
    if (head->heap_size == 0 || head->heap_size > all - (size_t)(heap - image) ||
        memmem(heap + 4, all - (size_t)(heap - image) - 4, COW_COLLECTION_SIGN, 4) != NULL)
        return 0;
    if ((head->heap = malloc(head->heap_size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the fill value of a dataset");
    memcpy(head->heap, heap, head->heap_size);
    head->heap_address = (uint64_t)(heap - image);
    return 1;
}

static int keep(const uint8_t *image, size_t all, hid_t type, uint64_t address, cow_scratch_head *head)
{
    const int status = keep_header(image, all, address, head);

    return status > 0 ? keep_heap(image, all, type, head) : status;
}

int cow_scratch_header(hid_t fcpl, hid_t dcpl, hid_t type, hid_t space, H5F_libver_t low, cow_scratch_head *head)
{
    hid_t file = create_file(head, fcpl), own = file < 0 ? H5I_INVALID_HID : type_in(file, type, low);
    cow_loc root = {.type = H5I_FILE};
    uint8_t *image = NULL;
    void *dataset;
    H5O_info2_t info;
    size_t all;
    int status = -1;

    *head = (cow_scratch_head){.header = NULL};
    if (own >= 0 && cow_native_enter() == 0) {
        root.object = H5VLobject(file);
        if ((dataset = cow_native_dataset_create(root, "head", own, space, dcpl)) != NULL) {
            status = cow_native_info((cow_loc){dataset, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info);
            if (cow_native_dataset_close(dataset) < 0)
                status = -1;
        }
        cow_native_leave();
    }
    if (status == 0)
        status = (image = bytes_of(file, &all)) == NULL ? -1 : keep(image, all, type, cow_address(&info.token), head);
    free(image);
    cow_close(own);
    if (file >= 0)
        H5Fclose(file);
    if (status <= 0)
        cow_scratch_head_free(head);
    return status;
}

void cow_scratch_head_free(cow_scratch_head *head)
{
    free(head->header);
    free(head->heap);
    *head = (cow_scratch_head){.header = NULL};
}
