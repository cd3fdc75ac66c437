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
#include "native/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_INCREMENT (256u << 10)

struct cow_scratch {
    cow_chunk_store *chunks; /* owns the dataset, which keeps the file open */
    cow_kept_type *type;     /* the caller's */
    bool changed;            /* the library computed other filter parameters than the dcpl had */
};

/* An empty file in memory. Open files of this driver are told apart by name, and HDF5 looks for a file of that name on
 * disk first: so it is one that nobody else uses. */
static hid_t create_file(const cow_scratch *scratch)
{
    char name[64];
    hid_t file = H5I_INVALID_HID, fapl = H5Pcreate(H5P_FILE_ACCESS), native = cow_native_id();

    snprintf(name, sizeof name, "h5cow-scratch-%ld-%p", (long)getpid(), (const void *)scratch);
    if (fapl < 0 || native < 0 || H5Pset_vol(fapl, native, NULL) < 0 ||
        H5Pset_fapl_core(fapl, FILE_INCREMENT, false) < 0 || H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0 ||
        (file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) < 0)
        cow_error_native("cannot make a scratch file in memory for filters");
    if (fapl >= 0)
        H5Pclose(fapl);
    return file;
}

/* 1: both property lists have the same filters with the same parameters; 0: not; -1. */
static int same_filters(hid_t a, hid_t b)
{
    int filters = H5Pget_nfilters(a), same = filters == H5Pget_nfilters(b);

    for (int i = 0; same && i < filters; i++) {
        unsigned flags, none, *value;
        size_t n_a = 0, n_b = 0;
        H5Z_filter_t id_a = H5Pget_filter2(a, (unsigned)i, &flags, &n_a, &none, 0, NULL, NULL);
        H5Z_filter_t id_b = H5Pget_filter2(b, (unsigned)i, &flags, &n_b, &none, 0, NULL, NULL);

        if (id_a < 0 || id_b < 0)
            return cow_error_native("cannot read a filter's parameters");
        if (id_a != id_b || n_a != n_b)
            return 0;
        if (n_a == 0)
            continue;
        if (!(value = calloc(2 * n_a, sizeof *value)))
            return cow_error(COW_MEMORY, "no memory for a filter's parameters");
        H5Pget_filter2(a, (unsigned)i, &flags, &n_a, value, 0, NULL, NULL);
        H5Pget_filter2(b, (unsigned)i, &flags, &n_b, value + n_a, 0, NULL, NULL);
        same = memcmp(value, value + n_a, n_a * sizeof *value) == 0;
        free(value);
    }
    return same;
}

/* Those of FROM that SKIP does not name, in place of TO's. They are put in one by one: a list out of which HDF5 1.14.5 has
 * removed a filter alone frees memory of another list when it was copied (H5Z_delete, H5O__pline_copy). */
static int keep_filters(hid_t from, hid_t to, uint32_t skip)
{
    int filters = H5Pget_nfilters(from);

    if (filters < 0 || (filters > 0 && H5Premove_filter(to, H5Z_FILTER_ALL) < 0))
        return -1;
    for (int i = 0; i < filters; i++) {
        unsigned flags, none, *values;
        size_t n = 0;
        H5Z_filter_t id = H5Pget_filter2(from, (unsigned)i, &flags, &n, &none, 0, NULL, NULL);
        bool kept;

        if (skip >> i & 1)
            continue;
        if ((values = calloc(n + 1, sizeof *values)) == NULL)
            return cow_error(COW_MEMORY, "no memory for a filter's parameters");
        kept = id >= 0 && H5Pget_filter2(from, (unsigned)i, &flags, &n, values, 0, NULL, NULL) == id &&
               H5Pset_filter(to, id, flags, n, values) >= 0;
        free(values);
        if (!kept)
            return -1;
    }
    return 0;
}

static int create_dataset(cow_scratch *scratch, hid_t file, hid_t dcpl)
{
    cow_loc root = {.object = H5VLobject(file), .type = H5I_FILE};
    hid_t scratch_dcpl = H5Pcopy(dcpl), made = H5I_INVALID_HID, space = H5I_INVALID_HID;
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    void *dataset;
    int rank, same, result = -1;

    /* One chunk, and nothing written before we write it. */
    for (int d = 0; d < H5S_MAX_RANK; d++)
        most[d] = H5S_UNLIMITED;
    if (scratch_dcpl < 0 || (rank = H5Pget_chunk(scratch_dcpl, H5S_MAX_RANK, dims)) < 0 ||
        (space = H5Screate_simple(rank, dims, most)) < 0 || H5Pset_alloc_time(scratch_dcpl, H5D_ALLOC_TIME_INCR) < 0 ||
        H5Pset_fill_time(scratch_dcpl, H5D_FILL_TIME_NEVER) < 0) {
        cow_error_native("cannot set up a scratch dataset for filters");
        goto done;
    }
    if (!(dataset = cow_native_dataset_create(root, "chunk", cow_kept_type_id(scratch->type), space, scratch_dcpl)))
        goto done;
    if ((made = cow_native_dataset_dcpl(dataset)) < 0) {
        cow_native_dataset_close(dataset);
        goto done;
    }
    if (!(scratch->chunks = cow_native_chunk_store(NULL, dataset, made)) || (same = same_filters(dcpl, made)) < 0)
        goto done;
    scratch->changed = !same;
    result = 0;
done:
    cow_close(made, space, scratch_dcpl);
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
    if ((applied = H5Pcopy(dcpl)) < 0 || (skip != 0 && keep_filters(dcpl, applied, skip) < 0)) {
        cow_error_native("cannot copy the filters of a dataset");
        goto done;
    }
    if ((file = create_file(scratch)) < 0 || cow_native_enter() < 0)
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

    if (scratch->changed)
        return cow_error(COW_UNSUPPORTED, "a filter that is installed here computes other parameters than the file has "
                                          "for this dataset: install the version of the filter that made the file");
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
