/* Versioned datasets: creating and opening them, and answering for the dataset that the application made.
 *
 * The native object is a virtual dataset with one mapping. A head's names /_versioned_data/heads/<id>, and row <id> of
 * the table `datasets` says the rest; a snapshot's names the view of a root record. What the application sees of layout
 * and filters is put together from that row and the pool's raw data.
 */
#include "history/head_index.h"
#include "history/internal.h"
#include "history/pieces.h"

#include "base/error.h"
#include "base/ids.h"
#include "io/scratch.h"
#include "journal/driver.h"
#include "native/header_file.h"
#include "native/pipeline.h"
#include "native/staged.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DXPL       H5P_DATASET_XFER_DEFAULT
#define TINY_BYTES 4096 /* a dataset up to this size that cannot grow is kept by HDF5 itself */

int cow_dataset_wanted(cow_file *file, hid_t type, hid_t space, hid_t dcpl)
{
    H5D_layout_t layout = H5Pget_layout(dcpl);
    hsize_t extent[COW_MAX_RANK], most[COW_MAX_RANK], chunk[COW_MAX_RANK];
    H5D_fill_value_t defined;
    H5D_fill_time_t fill_time;
    bool fixed = true;
    double bytes = (double)H5Tget_size(type);
    int rank;

    if (!cow_file_writable(file) || H5Sget_simple_extent_type(space) != H5S_SIMPLE ||
        (layout != H5D_CHUNKED && (layout != H5D_CONTIGUOUS || H5Pget_external_count(dcpl) > 0)))
        return 0;
    if ((rank = H5Sget_simple_extent_dims(space, extent, most)) < 1)
        return 0;
    for (int d = 0; d < rank; d++) {
        bytes *= (double)extent[d];
        fixed = fixed && extent[d] == most[d];
    }
    if (H5Pfill_value_defined(dcpl, &defined) < 0 || H5Pget_fill_time(dcpl, &fill_time) < 0)
        return cow_error_native("cannot get the creation properties of a dataset");
    /* HDF5 1.14.5 forgets the only chunk of a dataset that it does not fill when its chunk cache is off and the library
     * version bounds are those of a file with history (H5D__single_idx_insert) */
    if (fixed && bytes <= TINY_BYTES &&
        !(layout == H5D_CHUNKED && (defined == H5D_FILL_VALUE_UNDEFINED || fill_time == H5D_FILL_TIME_NEVER)))
        return 0;
    /* what HDF5 refuses to create is HDF5's error to report */
    if ((defined == H5D_FILL_VALUE_UNDEFINED && fill_time == H5D_FILL_TIME_ALLOC) ||
        (fill_time == H5D_FILL_TIME_NEVER && cow_type_is_heap(type, false)))
        return 0;
    if (layout == H5D_CONTIGUOUS) /* filters, and more bytes than there are addresses, are HDF5's to refuse as well */
        return fixed && bytes < (double)(UINT64_MAX / 2) && H5Pget_nfilters(dcpl) == 0;
    if (H5Pget_chunk(dcpl, COW_MAX_RANK, chunk) != rank)
        return 0;
    bytes = (double)H5Tget_size(type);
    for (int d = 0; d < rank; d++) {
        if (chunk[d] == 0 || (extent[d] > 0 && most[d] != H5S_UNLIMITED && chunk[d] > most[d]))
            return 0;
        bytes *= (double)chunk[d];
    }
    return bytes <= UINT32_MAX;
}

/* The length of the pieces into which EXTENT is cut, MOST or a little less, which are together less than a twentieth longer than it. Few
 * lengths, since datasets with equal chunks share a pool. 0: they would be shorter than LEAST. */
static hsize_t even_piece(hsize_t extent, hsize_t most, hsize_t least)
{
    const hsize_t step = most < 64 ? 1 : most / 64;

    if ((most - extent % most) % most * 20 < extent) /* many pieces: others of the same length are found again */
        return most;
    for (hsize_t n = (extent - 1) / most + 1;; n++) {
        hsize_t piece = (extent - 1) / n + 1;

        piece = most - (most - piece) / step * step;
        if (piece < least)
            return 0;
        if ((piece - extent % piece) % piece * 20 < extent)
            return piece;
    }
}

/* Chunks for a dataset that the application wanted contiguous, of at most BYTES and about equal: they are stored whole, with what is outside
 * of the extent. The slowest dimension is cut that can be, of those before it only what would be too much, into chunks of a quarter of BYTES
 * or more; less where no dimension can, as those of 19 x 19 x 19. */
static void split_contiguous(int rank, const hsize_t extent[], size_t element, size_t bytes, hsize_t chunk[])
{
    const hsize_t room = bytes / element > 0 ? bytes / element : 1;

    for (hsize_t least = room / 4;; least /= 2) {
        for (int d = 0; d < rank; d++)
            chunk[d] = extent[d] > 0 ? extent[d] : 1;
        for (int d = 0; d < rank; d++) {
            hsize_t others = 1, piece;

            for (int i = 0; i < rank; i++)
                others = i == d ? others : cow_times(others, chunk[i]);
            if (others > room) {
                chunk[d] = 1;
                continue;
            }
            if (chunk[d] <= room / others)
                return;
            if ((piece = even_piece(chunk[d], room / others, (least + others - 1) / others)) > 0) {
                chunk[d] = piece;
                return;
            }
        }
    }
}

/* ---- the state of an open dataset ---- */

/* What it is called in messages. */
static void set_label(cow_dataset *dataset, const char *path)
{
    free(dataset->label);
    if (asprintf(&dataset->label, "%s: %.511s", dataset->file->name, path) < 0)
        dataset->label = NULL;
    dataset->array.label = dataset->label == NULL ? "" : dataset->label;
}

static void make_label(cow_dataset *dataset, void *native, bool named)
{
    H5VL_object_get_args_t args = {.op_type = H5VL_OBJECT_GET_NAME};
    H5VL_loc_params_t loc = cow_by_self(H5I_DATASET);
    char path[512] = "";
    size_t length = 0;

    args.args.get_name.buf = path;
    args.args.get_name.buf_size = sizeof path;
    args.args.get_name.name_len = &length;
    dataset->named = named && H5VLobject_get(native, &loc, cow_native_id(), &args, DXPL, NULL) >= 0 && path[0] != '\0';
    if (!dataset->named)
        snprintf(path, sizeof path, "(dataset %llu)", (unsigned long long)dataset->id);
    set_label(dataset, path);
}

void cow_dataset_tell_path(cow_dataset *dataset, void *native)
{
    char *before = dataset->label;
    cow_error_held *held;

    if (dataset->named || before == NULL || (held = cow_error_hold()) == NULL)
        return;
    dataset->label = NULL;
    make_label(dataset, native, true);
    cow_error_put_back(held);
    cow_error_replace(before, dataset->array.label);
    free(before);
}

/* Reading before anything was written is an error: there is no fill value, and HDF5 has made no storage. */
static bool must_be_written(const cow_array *array, const cow_layout_dataset_row *row)
{
    return !array->fill_new && row->fill_time != H5D_FILL_TIME_NEVER && row->alloc_time != H5D_ALLOC_TIME_EARLY;
}

/* DCPL H5I_INVALID_HID: it has no fill value of its own, DEFINED says whether it has one at all. */
static int load_fill(cow_array *array, hid_t dcpl, H5D_fill_value_t defined, const cow_layout_dataset_row *row,
                     const cow_root *root)
{
    void **fill;

    if (dcpl >= 0 && H5Pfill_value_defined(dcpl, &defined) < 0)
        return cow_error_native("%s: cannot get the fill value", array->label);
    array->fill_new = defined != H5D_FILL_VALUE_UNDEFINED && row->fill_time != H5D_FILL_TIME_NEVER;
    fill = array->fill_new ? &array->fill : &array->cut;
    /* what was never written leaves the reader's memory alone */
    array->nothing_to_read = must_be_written(array, row) && !(row->flags & COW_FLAG_WRITTEN) && root->chunks == 0;
    if (!array->fill_new && defined != H5D_FILL_VALUE_USER_DEFINED)
        return 0;
    if ((*fill = calloc(1, array->element_size)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for the fill value", array->label);
    if (defined == H5D_FILL_VALUE_USER_DEFINED && H5Pget_fill_value(dcpl, cow_array_type(array), *fill) < 0)
        return cow_error_native("%s: cannot get the fill value", array->label);
    return 0;
}

void cow_dataset_shut(cow_dataset *dataset)
{
    cow_array *array = &dataset->array;

    if (array->cache != NULL)
        cow_array_forget(array);
    array->cache = NULL;
    if (array->index != NULL)
        cow_index_close(array->index);
    array->index = NULL;
    cow_dataset_fill_free(array->heap && array->fill != NULL ? cow_array_type(array) : H5I_INVALID_HID, array->heap,
                          array->fill);
    array->fill = NULL;
    free(array->cut);
    array->cut = NULL;
    cow_kept_type_free(array->type);
    array->type = NULL;
    cow_array_leave_pieces(array);
    if (array->pool != NULL)
        cow_pools_leave(dataset->file, dataset->pool);
    array->pool = NULL;
    cow_close(dataset->dcpl, dataset->told);
    dataset->dcpl = dataset->told = H5I_INVALID_HID;
    if (dataset->native != NULL)
        cow_counts_closed(dataset->file);
    if (dataset->native != NULL && cow_native_dataset_close(dataset->native) < 0)
        cow_error_clear();
    dataset->native = NULL;
    free(dataset->label);
    dataset->label = NULL;
    array->label = "";
}

void cow_dataset_free(cow_dataset *dataset)
{
    cow_dataset_shut(dataset);
    cow_datasets_remove(dataset->file, dataset->address);
    free(dataset);
}

/* HDF5 opens a dataset that is open already only with the same prefix for external files. So the handle is opened with
 * the application's own access properties, which needs the path; where there is none, with the default ones. */
static void *open_alike(cow_file *file, void *native)
{
    H5VL_dataset_get_args_t dapl = {.op_type = H5VL_DATASET_GET_DAPL};
    H5VL_object_get_args_t name = {.op_type = H5VL_OBJECT_GET_NAME};
    H5VL_loc_params_t self = cow_by_self(H5I_DATASET), root = cow_by_self(H5I_FILE);
    char path[1024] = "";
    size_t length = 0;
    void *own = NULL;

    name.args.get_name.buf = path;
    name.args.get_name.buf_size = sizeof path;
    name.args.get_name.name_len = &length;
    H5E_BEGIN_TRY
    {
        if (H5VLobject_get(native, &self, cow_native_id(), &name, DXPL, NULL) >= 0 && length > 0 &&
            length < sizeof path && H5VLdataset_get(native, cow_native_id(), &dapl, DXPL, NULL) >= 0) {
            own = H5VLdataset_open(file->native, &root, cow_native_id(), path, dapl.args.get_dapl.dapl_id, DXPL, NULL);
            H5Pclose(dapl.args.get_dapl.dapl_id);
        }
    }
    H5E_END_TRY
    return own;
}

/* *OWN: NULL where the path leads elsewhere by now, or there is none. */
static int hold_alike(cow_dataset *dataset, void *native, void **own)
{
    H5O_info2_t info;

    if ((*own = open_alike(dataset->file, native)) == NULL ||
        (cow_native_info((cow_loc){*own, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) == 0 &&
         cow_address(&info.token) == dataset->address))
        return 0;
    if (cow_native_dataset_close(*own) < 0)
        return -1;
    *own = NULL;
    return 0;
}

/* HDF5 takes the access properties of what is opened by its address from the call of the program that it is in. Of ours they are the default
 * ones, of one beside NATIVE those that this has. */
static int open_own(const cow_dataset *dataset, const void *native, cow_loc *own)
{
    const H5O_token_t token = cow_token(dataset->address);
    cow_apart apart;
    bool alone = native == NULL && cow_native_apart(&apart) == 0;
    int status;

    if (native == NULL && !alone)
        cow_error_clear();
    status = cow_native_open_token(dataset->file->loc, &token, own);
    if (alone)
        cow_native_together(&apart);
    if (alone && status < 0) { /* the program has it open by this call: cow_datasets_hold_again */
        cow_error_clear();
        status = cow_native_open_token(dataset->file->loc, &token, own);
    }
    return status;
}

int cow_dataset_hold(cow_dataset *dataset, void *native)
{
    cow_loc own = {.type = H5I_DATASET};

    if (dataset->native != NULL)
        return 0;
    if (open_own(dataset, native, &own) < 0) { /* which costs less, and is refused rarely */
        cow_file_keep_no_closed();
        own.object = NULL;
        if (native == NULL || hold_alike(dataset, native, &own.object) < 0 || own.object == NULL)
            return -1;
        cow_error_clear();
    }
    dataset->native = own.object;
    cow_datasets_held(dataset->file, dataset->address);
    return 0;
}

/* False: it cannot be had, and is tried again when its link goes; no error. */
static bool hold_quietly(cow_dataset *dataset)
{
    cow_error_held *held = cow_error_hold();
    const bool done = cow_dataset_hold(dataset, NULL) == 0;

    if (!done)
        cow_error_clear();
    cow_error_put_back(held);
    return done;
}

/* Until its link goes, or gets another name: then its address must not be given away. */
static void note_unopened(cow_dataset *dataset)
{
    if (cow_datasets_note_unopened(dataset->file, dataset) < 0 && !hold_quietly(dataset))
        cow_file_fail(dataset->file);
}

/* Chunks are decoded as the pool says, and shown as the dataset and its root record say: that must be the same. A named
 * type of sequences is where its own handle says, which H5Tequal compares: its copy is not. */
static bool other_shape(const cow_pool_entry *pool, hid_t type, const cow_root *root)
{
    hid_t copy = H5Tcopy(type);
    bool other = root->rank != pool->raw.rank || H5Tequal(copy, cow_kept_type_id(pool->type)) <= 0;

    cow_close(copy);
    for (unsigned d = 0; !other && d < root->rank; d++)
        other = root->chunk[d] != pool->raw.chunk[d] || root->extent[d] > root->maximum[d];
    return other;
}

void cow_datasets_let_go(cow_file *file)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;) {
        if (dataset->references > 0 || dataset->native == NULL)
            continue;
        /* what has no link would be gone */
        if (cow_dataset_unlinked(dataset) == 0 && cow_native_dataset_close(dataset->native) == 0) {
            dataset->native = NULL;
            dataset->let_go = true;
        }
        cow_error_clear();
    }
}

int cow_datasets_hold_again(cow_file *file)
{
    cow_dataset *dataset;
    int status = 0;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;) {
        if (!dataset->let_go)
            continue;
        if (cow_dataset_hold(dataset, NULL) < 0)
            status = -1;
        dataset->let_go = false;
    }
    return status < 0 ? cow_file_fail(file) : 0;
}

static void take_pool(cow_dataset *dataset, const cow_pool_entry *pool)
{
    dataset->array.pool = pool->pool;
    dataset->array.codec = pool->codec;
    dataset->pool = pool->id;
    cow_pools_use(dataset->file, pool->id);
}

/* Without the mapping, which makes each copy of the list dear. */
static int take_properties(cow_dataset *dataset, hid_t dcpl)
{
    dataset->dcpl = dcpl;
    return dcpl >= 0 && ((H5Pget_layout(dcpl) != H5D_CONTIGUOUS && H5Pset_layout(dcpl, H5D_CONTIGUOUS) < 0) ||
                         (H5Pget_nfilters(dcpl) > 0 && H5Premove_filter(dcpl, H5Z_FILTER_ALL) < 0))
               ? cow_error_native("%s: cannot keep its creation properties", dataset->array.label)
               : 0;
}

hid_t cow_dataset_properties(cow_dataset *dataset, void *native)
{
    if (dataset->dcpl >= 0)
        return dataset->dcpl;
    if (dataset->usual)
        return dataset->dcpl = cow_native_usual_dcpl(dataset->times);
    if (native == NULL) {
        if (cow_dataset_hold(dataset, NULL) < 0)
            return H5I_INVALID_HID;
        native = dataset->native;
    }
    return take_properties(dataset, cow_native_dataset_dcpl(native)) < 0 ? H5I_INVALID_HID : dataset->dcpl;
}

/* What the row says of how storage was asked for. */
static void take_storage(cow_array *array, const cow_layout_dataset_row *row)
{
    bool chunked = row->layout == H5D_CHUNKED;

    array->reserved = row->alloc_time == H5D_ALLOC_TIME_EARLY;
    array->early = chunked && array->reserved;
    array->late = chunked && row->alloc_time == H5D_ALLOC_TIME_LATE && !(row->flags & COW_FLAG_ALLOCATED);
    array->filters_hidden = (row->flags & COW_FLAG_FILTERS_ADDED) != 0;
}

/* Everything of the state that follows from root record, row and the native object. TOLD, what its header says, or else its creation
 * properties DCPL, which become the state's, also when it fails. NATIVE NULL: it is not open, and its type is OWN, one of HDF5's own. Takes
 * one reference. */
static cow_dataset *dataset_make(cow_file *file, void *native, bool named, hid_t dcpl, const cow_dataset_header *told,
                                 hid_t own, uint64_t address, bool snapshot, const cow_root *root, uint64_t root_offset,
                                 const cow_layout_dataset_row *row)
{
    cow_dataset *dataset = calloc(1, sizeof *dataset);
    cow_array *array;
    const cow_pool_entry *pool;
    hid_t type = H5I_INVALID_HID;

    if (dataset == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to open a dataset", file->name);
        if (dcpl >= 0)
            H5Pclose(dcpl);
        return NULL;
    }
    *dataset = (cow_dataset){.file = file,
                             .address = address,
                             .id = root->dataset,
                             .references = 1,
                             .snapshot = snapshot,
                             .root = root_offset,
                             .led = root_offset,
                             .row = *row,
                             .dcpl = H5I_INVALID_HID,
                             .told = H5I_INVALID_HID,
                             .usual = told != NULL && told->usual && told->fill == COW_DATASET_HEADER_DEFAULT,
                             .times = told != NULL && told->times};
    array = &dataset->array;
    if (native != NULL)
        make_label(dataset, native, named);
    if (take_properties(dataset, dcpl) < 0 || (dcpl < 0 && told == NULL) ||
        (cow_file_writable(file) && cow_dataset_properties(dataset, native) < 0) ||
        (type = native == NULL ? H5Tcopy(own) : cow_native_dataset_type(native)) < 0 ||
        (pool = cow_pools_get_like(file, root->pool > UINT32_MAX ? UINT32_MAX : (uint32_t)root->pool, type, told)) ==
            NULL)
        goto failed;
    if (other_shape(pool, type, root)) {
        cow_error(COW_CORRUPT,
                  "%s: the chunks of the dataset are not those of its pool %u; to see what is damaged: h5cow verify %s",
                  file->name, pool->id, file->name);
        goto failed;
    }
    array->type = cow_kept_type_share(pool->type);
    dataset->named_type = H5Tcommitted(type) > 0;
    array->element_size = H5Tget_size(type);
    array->chunk_bytes = array->element_size;
    for (unsigned d = 0; d < root->rank; d++)
        array->chunk_bytes *= root->chunk[d];
    array->heap = cow_type_is_heap(type, true) > 0;
    if (array->heap && cow_native_element_size(file->native, type, &array->file_element_size) < 0)
        goto failed;
    take_storage(array, row);
    array->plain_edges = pool->plain_edges;
    take_pool(dataset, pool);
    array->threads = file->options->threads;
    memcpy(array->extent, root->extent, sizeof array->extent);
    memcpy(array->maximum, root->maximum, sizeof array->maximum);
    cow_grid_init(&array->grid, root->rank, root->chunk, root->maximum);
    if (load_fill(array, dataset->dcpl,
                  told != NULL && told->fill == COW_DATASET_HEADER_UNDEFINED ? H5D_FILL_VALUE_UNDEFINED
                                                                             : H5D_FILL_VALUE_DEFAULT,
                  row, root) < 0 ||
        (array->index = cow_index_open(file->index, &array->grid, root)) == NULL)
        goto failed;
    cow_index_keep(array->index, file->options->memory_bytes / 4);
    array->cache = file->cache;
    cow_pieces_offer(dataset);
    if (cow_file_writable(file) && !snapshot && native != NULL && cow_dataset_hold(dataset, native) < 0)
        goto failed;
    if (cow_datasets_put(file, address, dataset) < 0)
        goto failed;
    H5Tclose(type);
    return dataset;
failed:
    if (type >= 0)
        H5Tclose(type);
    cow_dataset_shut(dataset);
    free(dataset);
    return NULL;
}

/* ---- create ---- */

/* The application's creation properties as those of the head object: virtual layout, no filters. */
static hid_t head_dcpl(hid_t dcpl, int rank, const hsize_t extent[], const hsize_t most[], const char *source)
{
    hid_t p = H5Pcopy(dcpl), view = H5Screate_simple(rank, extent, most), all = H5Screate_simple(rank, extent, NULL);

    if (p < 0 || view < 0 || all < 0 || (H5Pget_nfilters(p) > 0 && H5Premove_filter(p, H5Z_FILTER_ALL) < 0) ||
        H5Pset_fill_time(p, H5D_FILL_TIME_IFSET) < 0 || H5Pset_virtual(p, view, ".", source, all) < 0 ||
        H5Pset_alloc_time(p, H5D_ALLOC_TIME_INCR) < 0) {
        cow_error_native("cannot describe the head of a dataset");
        if (p >= 0)
            H5Pclose(p);
        p = H5I_INVALID_HID;
    }
    cow_close(all, view);
    return p;
}

/* Of those that HDF5 keeps with a dataset, DCPL has nothing that others have not, but perhaps the times. Where the file shares attributes between
 * objects, HDF5 tells that it keeps their order. */
static bool has_usual_properties(cow_file *file, hid_t dcpl, bool *times)
{
    H5D_fill_value_t defined;
    unsigned order, most, least;
    hbool_t hint, tracked;
    size_t count, usual;
    const cow_native_bytes *bytes = cow_file_bytes(file);

    *times = false;
    if (H5Pfill_value_defined(dcpl, &defined) < 0 || defined != H5D_FILL_VALUE_DEFAULT ||
        H5Pget_attr_creation_order(dcpl, &order) < 0 || order != 0 ||
        H5Pget_attr_phase_change(dcpl, &most, &least) < 0 || most != 8 || least != 6 ||
        H5Pget_dset_no_attrs_hint(dcpl, &hint) < 0 || hint || H5Pget_obj_track_times(dcpl, &tracked) < 0 ||
        H5Pget_nprops(dcpl, &count) < 0 || H5Pget_nprops(H5P_DATASET_CREATE_DEFAULT, &usual) < 0 || count != usual ||
        bytes == NULL || bytes->shares)
        return false;
    *times = tracked;
    return true;
}

/* The one of the option compress, where the program asks for no filter. */
static int add_compressor(const cow_file *file, hid_t dcpl, hid_t type, int rank, const hsize_t chunk[],
                          cow_layout_dataset_row *row)
{
    size_t bytes = H5Tget_size(type);
    int added;

    if (H5Pget_nfilters(dcpl) != 0)
        return 0;
    for (int d = 0; d < rank; d++)
        bytes *= chunk[d];
    if ((added = cow_codec_add(dcpl, type, &file->options->compress, bytes)) > 0)
        row->flags |= COW_FLAG_FILTERS_ADDED;
    return added < 0 ? -1 : 0;
}

/* Early allocation: every chunk of the extent is there from the start. Its filters may refuse that: then there is no dataset,
 * and the next commit meets one that was deleted before anybody saw it. */
static int take_back(cow_dataset *dataset, const cow_creation *wanted)
{
    cow_error_held *held = cow_error_hold();
    int status = -1;

    if (wanted->loc->type == H5VL_OBJECT_BY_SELF)
        status = wanted->name == NULL
                     ? 0
                     : cow_native_link_delete((cow_loc){wanted->at, wanted->loc->obj_type}, wanted->name);
    if (status == 0)
        cow_dataset_release(dataset);
    cow_error_put_back(held);
    return status;
}

/* Layout and times of DCPL, as HDF5 would note them, into ROW. */
static int describe_properties(hid_t dcpl, hid_t type, cow_layout_dataset_row *row)
{
    H5D_alloc_time_t alloc;
    H5D_fill_time_t fill;
    H5D_fill_value_t defined;

    if (H5Pget_alloc_time(dcpl, &alloc) < 0 || H5Pget_fill_time(dcpl, &fill) < 0 ||
        H5Pfill_value_defined(dcpl, &defined) < 0)
        return cow_error_native("cannot get the creation properties of a dataset");
    if (fill == H5D_FILL_TIME_IFSET && defined == H5D_FILL_VALUE_DEFAULT && cow_type_is_heap(type, false))
        fill = H5D_FILL_TIME_ALLOC; /* as HDF5 does (H5D__update_oh_info) */
    row->layout = (uint8_t)H5Pget_layout(dcpl);
    row->alloc_time = (uint8_t)alloc;
    row->fill_time = (uint8_t)fill;
    return 0;
}

/* The chunks of the dataset of ROW, which CHUNKED is to have: those of the program, or some of ours. */
static int cut(const cow_file *file, const cow_layout_dataset_row *row, int rank, const hsize_t extent[],
               size_t element, hid_t chunked, hsize_t chunk[])
{
    if (row->layout != H5D_CONTIGUOUS) {
        H5Pget_chunk(chunked, rank, chunk);
        return 0;
    }
    split_contiguous(rank, extent, element, file->options->chunk_bytes, chunk);
    return H5Pset_chunk(chunked, rank, chunk) < 0 ? cow_error_native("cannot cut a contiguous dataset into chunks") : 0;
}

/* The head by HDF5, which has it open then. */
static int create_head(const cow_creation *wanted, int rank, const hsize_t extent[], const hsize_t most[],
                       const char *source, void **native, uint64_t *address)
{
    hid_t dcpl = head_dcpl(wanted->dcpl, rank, extent, most, source);
    H5O_info2_t info;

    if (dcpl < 0)
        return -1;
    *native = H5VLdataset_create(wanted->at, wanted->loc, cow_native_id(), wanted->name, wanted->lcpl, wanted->type,
                                 wanted->space, dcpl, wanted->dapl, DXPL, NULL);
    if (*native == NULL)
        cow_error_native("cannot create the dataset '%s'", wanted->name == NULL ? "(anonymous)" : wanted->name);
    cow_close(dcpl);
    if (*native == NULL || cow_native_info((cow_loc){*native, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    *address = cow_address(&info.token);
    return 0;
}

/* HDF5 can do without having it open, as without one that is opened (cow_dataset_attach_unopened): with the usual properties, and a type of HDF5's
 * own, which that is. 0: it cannot. */
static hid_t type_unopened(cow_file *file, const cow_creation *wanted, const cow_layout_dataset_row *row, bool usual)
{
    const cow_pool_entry *pool;
    hid_t own;

    return wanted->path != NULL && usual && row->alloc_time != H5D_ALLOC_TIME_EARLY &&
                   H5Tcommitted(wanted->type) == 0 && cow_file_ours(file) &&
                   (pool = cow_pools_get(file, row->pool)) != NULL &&
                   cow_type_predefined(own = cow_kept_type_id(pool->type)) && cow_file_begin(file) == 0
               ? own
               : 0;
}

/* The head as bytes. 1; 0: HDF5 is to make it, or to say why it cannot; -1: nothing more is to be committed. */
static int write_head(cow_file *file, const cow_creation *wanted, hid_t type, int rank, const hsize_t extent[],
                      const hsize_t most[], const char *source, bool times, uint64_t *address)
{
    hid_t dcpl = cow_native_usual_dcpl(times);
    cow_virtual *v = dcpl < 0 ? NULL : cow_virtual_open(file->native, cow_file_bytes(file), file->low, type, false);
    int status = 0;

    if (v != NULL) {
        cow_virtual_begin(v);
        if (cow_virtual_map(v, NULL, source, NULL) == 0 &&
            cow_virtual_put(v, (unsigned)rank, extent, most, dcpl, address) > 0)
            status = cow_staged_link_to(file->native, cow_file_bytes(file), *address, wanted->at, wanted->loc,
                                        wanted->name, wanted->lcpl);
        cow_virtual_close(v);
    }
    if (status == 0)
        cow_error_clear();
    cow_close(dcpl);
    return status;
}

int cow_dataset_make_native(cow_file *file, const cow_creation *wanted, bool unopened, const cow_root *root,
                            cow_layout_dataset_row *row, void **native)
{
    const cow_pool_entry *pool;
    int made;

    if (!cow_native_heads() || wanted->loc->type != H5VL_OBJECT_BY_SELF || !cow_file_ours(file))
        return 0;
    if ((pool = cow_pools_get(file, row->pool)) == NULL || cow_file_begin(file) < 0)
        return -1;
    if ((made = cow_native_head_make(file, wanted, unopened, root, pool, row, native)) == 0)
        cow_error_clear();
    return made;
}

/* The parameters that the program's filters compute: *COMPUTED is DCPL with them, or DCPL itself. 1: *NO_POOL says why not; -1. */
static int ask_filters(cow_file *file, const cow_creation *wanted, hid_t dcpl, hid_t *computed, cow_no_pool *no_pool)
{
    hid_t fcpl;
    int status;

    *computed = dcpl;
    if (wanted->computed || cow_pipeline_stable(dcpl)) /* HDF5 asks its own when it makes the pool */
        return 0;
    if ((fcpl = cow_native_file_fcpl(file->native)) < 0)
        return -1;
    if ((status = cow_scratch_ask(fcpl, dcpl, wanted->type, wanted->space, computed, &no_pool->records)) > 0)
        no_pool->refused = true;
    H5Pclose(fcpl);
    return status;
}

/* HDF5 has never had the new dataset open. */
static void never_opened(cow_dataset *dataset, const cow_creation *wanted)
{
    dataset->bare = dataset->named = true;
    set_label(dataset, wanted->path);
    note_unopened(dataset);
}

cow_dataset *cow_dataset_create(cow_file *file, const cow_creation *wanted, void **native, cow_no_pool *no_pool)
{
    hsize_t extent[COW_MAX_RANK], most[COW_MAX_RANK], chunk[COW_MAX_RANK];
    char source[COW_PATH_MAX];
    cow_dataset *dataset = NULL;
    cow_layout_dataset_row row = {.root = COW_NO_NODE};
    cow_root root = {.top = COW_NO_NODE};
    const hid_t type = wanted->type, dcpl = wanted->dcpl;
    hid_t copy = H5I_INVALID_HID, chunked = dcpl, computed = H5I_INVALID_HID, own;
    unsigned long failures = cow_journal_driver_file_failures(file->fileno);
    int rank, found, written = 0;
    bool gone = false, usual, times;

    *native = NULL;
    *no_pool = (cow_no_pool){.records = H5I_INVALID_HID};
    if (cow_file_lay_out(file) < 0)
        return NULL;
    rank = H5Sget_simple_extent_dims(wanted->space, extent, most);
    if (H5Pget_layout(dcpl) != H5D_CHUNKED || file->options->compress.library != COW_COMPRESS_NONE)
        chunked = copy = H5Pcopy(dcpl); /* it gets chunks, or a filter */
    if (chunked < 0) {
        cow_error_native("cannot get the creation properties of a dataset");
        goto done;
    }
    if (describe_properties(dcpl, type, &row) < 0 ||
        cut(file, &row, rank, extent, H5Tget_size(type), chunked, chunk) < 0)
        goto done;
    root.rank = (unsigned)rank;
    for (int d = 0; d < rank; d++) {
        root.extent[d] = extent[d];
        root.maximum[d] = most[d] == H5S_UNLIMITED ? COW_UNLIMITED : most[d];
        root.chunk[d] = chunk[d];
    }
    if (ask_filters(file, wanted, chunked, &computed, no_pool) != 0 ||
        add_compressor(file, computed, type, rank, chunk, &row) < 0)
        goto done;
    if ((found = cow_pools_find(file, type, chunked, computed, &row.pool)) != 0) {
        no_pool->refused = found > 0;
        goto done;
    }
    root.pool = row.pool;
    root.dataset = cow_datasets_rows(file);
    cow_head_path(source, root.dataset);
    usual = has_usual_properties(file, dcpl, &times);
    own = type_unopened(file, wanted, &row, usual);
    written = cow_dataset_make_native(file, wanted, own != 0, &root, &row, native);
    if (written == 0 && own != 0)
        written = write_head(file, wanted, own, rank, extent, most, source, times, &row.head);
    if (written < 0 || (written == 0 && create_head(wanted, rank, extent, most, source, native, &row.head) < 0) ||
        cow_datasets_add_row(file, &row) < 0)
        goto done;
    dataset =
        dataset_make(file, *native, false, usual ? cow_native_usual_dcpl(times) : cow_native_dataset_dcpl(*native),
                     NULL, type, row.head, false, &root, COW_NO_NODE, &row);
    if (dataset == NULL)
        goto done;
    dataset->usual = usual;
    dataset->times = times;
    dataset->asked = true;
    if (written && *native == NULL)
        never_opened(dataset, wanted);
    if (dataset->array.early && cow_array_resize(&dataset->array, root.extent) < 0) {
        gone = cow_journal_driver_file_failures(file->fileno) == failures && take_back(dataset, wanted) == 0;
        if (!gone)
            cow_dataset_free(dataset);
        dataset = NULL;
    }
done:
    cow_close(copy, computed != chunked ? computed : H5I_INVALID_HID);
    if (dataset == NULL && !gone && (*native != NULL || written != 0))
        cow_file_fail(file); /* a head that has no history */
    if (dataset == NULL && *native != NULL) {
        H5VLdataset_close(*native, cow_native_id(), DXPL, NULL);
        *native = NULL;
    }
    return dataset;
}

H5O_token_t cow_dataset_token(const cow_dataset *dataset)
{
    return cow_token(dataset->address);
}

/* ---- open ---- */

/* The source of the first mapping; "" where there is none. */
static int first_source(hid_t dcpl, char name[COW_MARKED_MAX], size_t *mappings)
{
    ssize_t length;

    name[0] = '\0';
    *mappings = 0;
    if (H5Pget_layout(dcpl) != H5D_VIRTUAL)
        return 0;
    if (H5Pget_virtual_count(dcpl, mappings) < 0)
        return cow_error_native("cannot get the mappings of a virtual dataset");
    if (*mappings == 0)
        return 0;
    if ((length = H5Pget_virtual_dsetname(dcpl, 0, name, COW_MARKED_MAX)) < 0)
        return cow_error_native("cannot get the source of a virtual dataset");
    if (length >= COW_MARKED_MAX)
        name[0] = '\0';
    return 0;
}

int cow_dataset_is_view(void *native)
{
    hid_t dcpl = cow_native_dataset_dcpl(native);
    char name[COW_MARKED_MAX];
    uint64_t root;
    size_t mappings;
    int status = dcpl < 0 || first_source(dcpl, name, &mappings) < 0 ? -1 : cow_layout_unmark(name, &root);

    cow_close(dcpl);
    return status;
}

/* What the source of the first of so many mappings says: as cow_dataset_source. */
static int kind_of(char name[COW_MARKED_MAX], uint64_t mappings, uint64_t *number)
{
    if (cow_layout_unmark(name, number))
        return 2;
    return mappings == 1 ? cow_layout_source(name, number) : 0;
}

int cow_dataset_source(hid_t dcpl, uint64_t *number)
{
    char name[COW_MARKED_MAX];
    size_t mappings;
    int kind;

    if (first_source(dcpl, name, &mappings) < 0)
        return -1;
    if ((kind = kind_of(name, mappings, number)) == 0)
        return 0;
    if (H5Pget_virtual_filename(dcpl, 0, name, sizeof name) < 0)
        return cow_error_native("cannot get the source of a virtual dataset");
    return strcmp(name, ".") == 0 ? kind : 0;
}

int cow_dataset_kind(cow_file *file, void *native, hid_t dcpl, uint64_t *number)
{
    const int kind = cow_dataset_source(dcpl, number);
    H5O_info2_t info;

    if (kind != 0 || H5Pget_layout(dcpl) != H5D_CHUNKED || !cow_native_has_tree(native))
        return kind;
    return cow_native_info((cow_loc){native, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0
               ? -1
               : cow_native_tree_owner(file->native, cow_address(&info.token), number);
}

/* The same from what the object's header says, in the bytes of SOURCE. -1: that is not to be had; no error is recorded. */
static int source_in(cow_file *file, const cow_source *source, uint64_t address, cow_dataset_header *told,
                     uint64_t *number)
{
    char where[COW_MARKED_MAX], name[COW_MARKED_MAX];
    uint64_t mappings;
    int kind;

    if (cow_dataset_header_read(source, address, told) <= 0)
        return -1;
    if (told->layout == COW_DATASET_HEADER_TREE) {
        if ((kind = cow_head_index_owner(file, source, told, number)) < 0)
            cow_error_clear();
        return kind > 0 && told->fill == COW_DATASET_HEADER_USER ? -1 : kind;
    }
    if (told->layout != COW_DATASET_HEADER_VIRTUAL)
        return 0;
    if (cow_dataset_header_source(source, told, COW_MARKED_MAX, where, name, &mappings) <= 0)
        return -1;
    kind = kind_of(name, mappings, number);
    return kind > 0 && told->fill == COW_DATASET_HEADER_USER ? -1 : strcmp(where, ".") == 0 ? kind : 0;
}

/* In a file that is written a header that was committed and has not changed since is as HDF5 has it. That it is one: the object is no changed
 * one, and the row of its dataset leads to it, while the place of an object that is gone is only given to new ones, which are changed. Only
 * heads are opened so often that it matters. */
static int source_written(cow_file *file, uint64_t address, cow_dataset_header *told, uint64_t *number)
{
    cow_layout_dataset_row row;

    if (cow_changes_flags(file, address) != 0 || cow_changes_somewhere(file) ||
        source_in(file, cow_still_source(cow_layout_still_bytes(file->written)), address, told, number) != 1 ||
        !told->usual || told->fill != COW_DATASET_HEADER_DEFAULT)
        return -1;
    if (cow_dataset_row_read(file, *number, &row) < 0) {
        cow_error_clear();
        return -1;
    }
    return row.head == address && row.root != COW_NO_NODE ? 1 : -1;
}

static int source_told(cow_file *file, uint64_t address, cow_dataset_header *told, uint64_t *number)
{
    if (file->still != NULL)
        return source_in(file, cow_still_source(cow_layout_still_bytes(file->still)), address, told, number);
    return file->written != NULL ? source_written(file, address, told, number) : -1;
}

/* The root record that a source names, and the row of its dataset. */
static int root_of(cow_file *file, int kind, uint64_t number, uint64_t *offset, cow_root *root,
                   cow_layout_dataset_row *row)
{
    *offset = number;
    if (kind == 1) {
        if (cow_dataset_row_read(file, number, row) < 0)
            return -1;
        *offset = row->root;
        if (*offset == COW_NO_NODE)
            return cow_error(COW_CORRUPT, "%s: a dataset was made but never committed: its content is lost",
                             file->name);
    }
    if (cow_root_read(file->index, *offset, root) < 0)
        return cow_context("%s: the index of a dataset is damaged; another version may still be whole: h5cow verify",
                           file->name);
    return kind == 2 ? cow_dataset_row_read(file, root->dataset, row) : 0;
}

/* A head that names a number which is another's: a copy that was made without the connector, unless a version knows it. */
static int foreign_head(cow_file *file, uint64_t address)
{
    if (cow_snapshots_load(file) < 0)
        return -1;
    return cow_snapshots_known(file, address)
               ? cow_error(COW_CORRUPT,
                           "%s: a dataset names the content of another one; to see what is damaged: h5cow "
                           "verify %s",
                           file->name, file->name)
               : 0;
}

int cow_dataset_attach(cow_file *file, void *native, bool named, cow_dataset **dataset)
{
    H5O_info2_t info;
    uint64_t address, number = 0, offset;
    cow_layout_dataset_row row;
    cow_dataset_header told;
    cow_root root;
    hid_t dcpl = H5I_INVALID_HID;
    bool snapshot;
    int kind;

    *dataset = NULL;
    if (!file->laid_out || cow_file_shut(file))
        return 0;
    if (cow_native_info((cow_loc){native, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    address = cow_address(&info.token);
    if ((*dataset = cow_datasets_find(file, address)) != NULL) {
        if (cow_file_writable(file) && !(*dataset)->snapshot && !(*dataset)->dead &&
            cow_dataset_hold(*dataset, native) < 0) {
            *dataset = NULL; /* as NATIVE is open here, it can be opened: so no commit fails for it */
            return -1;
        }
        if (named && ((*dataset)->references == 0 || !(*dataset)->named))
            make_label(*dataset, native, true);
        (*dataset)->references++;
        return 0;
    }
    if ((kind = source_told(file, address, &told, &number)) < 0) {
        if ((dcpl = cow_native_dataset_dcpl(native)) < 0)
            return -1;
        kind = cow_dataset_kind(file, native, dcpl, &number);
    }
    if (kind > 0 && (root_of(file, kind, number, &offset, &root, &row) < 0 ||
                     (kind == 2 && cow_sum_check_root(file, address, offset) < 0) ||
                     (kind == 1 && row.head != address && foreign_head(file, address) < 0)))
        kind = -1;
    if (kind <= 0) {
        cow_close(dcpl);
        return kind;
    }
    /* the copy of a head object made without the connector: reads, never writes */
    snapshot = kind == 2 || row.head != address;
    if ((*dataset = dataset_make(file, native, named, dcpl, dcpl < 0 ? &told : NULL, H5I_INVALID_HID, address, snapshot,
                                 &root, offset, &row)) == NULL)
        return -1;
    if (!snapshot)
        cow_stowed_take(*dataset);
    return 0;
}

/* ---- without opening it ---- */

bool cow_file_unopened(const cow_file *file)
{
    const cow_layout_still *still = file->still != NULL || cow_file_ended(file) ? file->still : file->written;

    return still != NULL;
}

/* The head at ADDRESS, if it is of one of HDF5's own types. BARE: and has neither attributes nor a comment. NULL: not known. */
static cow_dataset *make_unopened(cow_file *file, uint64_t address, bool bare)
{
    uint64_t number = 0, offset;
    cow_layout_dataset_row row;
    cow_dataset_header told;
    cow_root root;
    hid_t own;

    return source_told(file, address, &told, &number) != 1 || (bare && !told.bare) ||
                   (own = cow_type_of_message(told.type, told.type_size)) == 0 ||
                   root_of(file, 1, number, &offset, &root, &row) < 0 || row.head != address
               ? NULL
               : dataset_make(file, NULL, false, H5I_INVALID_HID, &told, own, address, false, &root, offset, &row);
}

int cow_dataset_attach_unopened(cow_file *file, const H5O_token_t *token, const char *path, cow_dataset **dataset)
{
    uint64_t address = cow_address(token);

    if ((*dataset = cow_datasets_find(file, address)) != NULL) {
        if ((*dataset)->snapshot || (*dataset)->named_type || !cow_type_predefined(cow_array_type(&(*dataset)->array)))
            return 0;
        (*dataset)->references++;
    } else if ((*dataset = make_unopened(file, address, false)) == NULL)
        return 0;
    else
        cow_stowed_take(*dataset);
    if (cow_file_writable(file))
        note_unopened(*dataset);
    if (!(*dataset)->named) {
        set_label(*dataset, path);
        (*dataset)->named = true;
    }
    return 1;
}

int cow_dataset_attach_bare(cow_file *file, uint64_t address, const char *name, cow_dataset **dataset)
{
    *dataset = file->written == NULL || cow_file_shut(file) || cow_datasets_find(file, address) != NULL
                   ? NULL
                   : make_unopened(file, address, true);
    if (*dataset == NULL) {
        cow_error_clear();
        return 0;
    }
    set_label(*dataset, name);
    return 1;
}

int cow_dataset_has_attributes(cow_dataset *dataset)
{
    cow_file *file = dataset->file;
    cow_dataset_header told;
    H5O_info2_t info;

    if (dataset->native == NULL && dataset->bare && cow_changes_bare(file, dataset->address))
        return 0;
    if (dataset->native == NULL && file->written != NULL && !cow_changes_somewhere(file) &&
        (cow_changes_flags(file, dataset->address) & ~COW_CHANGED_ARRAY) == 0 &&
        cow_dataset_header_read(cow_still_source(cow_layout_still_bytes(file->written)), dataset->address, &told) > 0 &&
        told.bare)
        return 0;
    if (!hold_quietly(dataset))
        return 1; /* then its snapshot is made anew */
    return cow_native_info((cow_loc){dataset->native, H5I_DATASET}, NULL, H5O_INFO_NUM_ATTRS, &info) < 0
               ? -1
               : info.num_attrs > 0;
}

void cow_dataset_opened(cow_dataset *dataset)
{
    if (cow_file_writable(dataset->file) && !dataset->snapshot)
        hold_quietly(dataset);
}

bool cow_file_heads_unheld(const cow_file *file)
{
    return file->laid_out && !cow_file_shut(file) && cow_file_writable(file) && cow_datasets_unopened(file);
}

bool cow_head_unheld(const cow_file *file, const H5O_token_t *head)
{
    const cow_dataset *dataset = cow_file_heads_unheld(file) ? cow_datasets_find(file, cow_address(head)) : NULL;

    return dataset != NULL && dataset->native == NULL && !dataset->snapshot;
}

void cow_file_hold_heads(cow_file *file, bool opened)
{
    cow_map unheld = cow_datasets_take_unheld(file);

    for (size_t i = 0; i < unheld.capacity; i++) {
        cow_dataset *dataset = unheld.entry[i].used ? cow_datasets_find(file, unheld.entry[i].key) : NULL;

        if (dataset != NULL && !dataset->snapshot && !cow_dataset_idle(dataset) && !hold_quietly(dataset))
            note_unopened(dataset);
    }
    cow_map_free(&unheld);
    if (!opened)
        cow_datasets_note_unopened(file, NULL);
}

hid_t cow_dataset_type_unopened(cow_dataset *dataset)
{
    void *raw_data = cow_native_chunk_store_dataset(cow_pool_store(dataset->array.pool));

    return raw_data == NULL ? H5I_INVALID_HID : cow_native_dataset_type(raw_data);
}

int cow_dataset_store_last(cow_dataset *dataset)
{
    cow_array *array = &dataset->array;

    if (dataset->snapshot || dataset->dead || !cow_file_writable(dataset->file) || cow_file_ended(dataset->file) ||
        array->dirty == NULL || array->heap || cow_codec_parallel(array->codec) || cow_array_store(array) == 0)
        return 0;
    if (!array->refused || dataset->references > 1) {
        cow_error_clear(); /* it stays in the cache, and is the commit's error, or that of the last handle */
        return 0;
    }
    cow_array_forget(array);
    array->refused = false;
    return -1;
}

bool cow_dataset_dirty(const cow_dataset *dataset)
{
    return !dataset->snapshot && !dataset->dead && !dataset->let_go &&
           (dataset->root == COW_NO_NODE || dataset->array.written || dataset->array.extent_changed ||
            cow_index_changed(dataset->array.index));
}

bool cow_dataset_open_again(const cow_dataset *dataset)
{
    return dataset->references > 1;
}

cow_access **cow_dataset_access(cow_dataset *dataset)
{
    return &dataset->access;
}

void cow_dataset_corked(cow_dataset *dataset)
{
    cow_dataset_opened(dataset);
    dataset->corked = true;
}

/* The application has closed it, we have not: HDF5 would let the metadata cache write its headers again. */
static void uncork(cow_dataset *dataset)
{
    if (dataset->corked && dataset->native != NULL && !cow_file_shut(dataset->file))
        cow_native_uncork((cow_loc){dataset->native, H5I_DATASET});
    dataset->corked = false;
}

bool cow_dataset_idle(const cow_dataset *dataset)
{
    return dataset->references == 0 && !dataset->committing && !dataset->let_go && !cow_dataset_dirty(dataset) &&
           !dataset->root_changed; /* which the next version has to be told of */
}

/* Programs that ask for a dataset by its name each time open it again and again. A handle of our own, which heads of writable files have
 * in any case, makes that cheaper for HDF5 as well; others get it the second time, and go on without one, too. */
static void keep(cow_dataset *dataset)
{
    if (dataset->kept) {
        if (cow_dataset_hold(dataset, NULL) < 0) { /* the application has used a prefix */
            cow_error_clear();
            cow_dataset_free(dataset);
        }
    } else if ((dataset = cow_datasets_keep(dataset->file, dataset)) != NULL && cow_dataset_idle(dataset))
        cow_dataset_free(dataset);
}

void cow_dataset_release(cow_dataset *dataset)
{
    const bool corked = dataset->corked;

    if (--dataset->references > 0)
        return;
    uncork(dataset);
    free(dataset->access);
    dataset->access = NULL;
    dataset->array.through = false;
    dataset->asked = false;
    if (cow_file_shut(dataset->file))
        free(dataset);
    else if (!cow_dataset_idle(dataset))
        return;
    else if (corked || !cow_file_keeps_closed() ||
             (cow_file_writable(dataset->file) && (dataset->native == NULL || dataset->snapshot || dataset->dead)))
        cow_dataset_free(dataset);
    else
        keep(dataset);
}

void cow_datasets_sweep(cow_file *file)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;)
        if (cow_dataset_idle(dataset)) {
            cow_dataset_free(dataset);
            at--;
        }
}

/* Datasets that a wrapper still holds (only at shutdown) keep their bare memory until it lets go. */
void cow_datasets_shut(cow_file *file)
{
    cow_dataset *dataset;

    for (size_t at = 0; (dataset = cow_datasets_next(file, &at)) != NULL;) {
        cow_dataset_shut(dataset);
        if (dataset->references == 0)
            free(dataset);
    }
    cow_datasets_close(file);
}

int cow_dataset_begin_write(cow_dataset *dataset, const char *path)
{
    if (dataset->snapshot)
        return cow_error(COW_READ_ONLY,
                         "%s: a version is never changed; open the file itself to change its newest state, or write "
                         "the version to a file of its own with: h5cow export",
                         dataset->array.label);
    if (cow_file_begin(dataset->file) < 0)
        return -1;
    cow_versions_depart(dataset->file);
    return cow_changes_note(dataset->file, dataset->address, COW_CHANGED_ARRAY, path);
}

/* Does HDF5 fill new chunks of it (H5D__check_filters)? */
static bool fills(const cow_dataset *dataset)
{
    H5D_fill_value_t defined;

    return dataset->array.fill_new && (dataset->row.fill_time == H5D_FILL_TIME_ALLOC ||
                                       (dataset->dcpl >= 0 && H5Pfill_value_defined(dataset->dcpl, &defined) >= 0 &&
                                        defined == H5D_FILL_VALUE_USER_DEFINED));
}

int cow_dataset_ask_filters(cow_dataset *dataset, bool grows)
{
    int status;

    if (dataset->asked || (grows && !fills(dataset)))
        return 0;
    if ((status = cow_pools_ask(dataset->file, dataset->row.pool)) == 0 &&
        !(dataset->row.flags & COW_FLAG_FILTERS_ADDED))
        status = cow_codec_check(dataset->array.codec);
    if (status < 0)
        return cow_context("%s: its filters cannot encode", dataset->array.label);
    dataset->asked = true;
    return 0;
}

/* ---- answers ---- */

cow_array *cow_dataset_array(cow_dataset *dataset)
{
    return &dataset->array;
}

bool cow_dataset_chunked(const cow_dataset *dataset)
{
    return dataset->row.layout == H5D_CHUNKED;
}

bool cow_dataset_early(const cow_dataset *dataset)
{
    return dataset->row.alloc_time == H5D_ALLOC_TIME_EARLY;
}

bool cow_dataset_filtered(const cow_dataset *dataset)
{
    return !(dataset->row.flags & COW_FLAG_FILTERS_ADDED) && !cow_codec_identity(dataset->array.codec);
}

bool cow_dataset_was_written(const cow_dataset *dataset)
{
    return must_be_written(&dataset->array, &dataset->row) && !dataset->array.nothing_to_read;
}

bool cow_dataset_snapshot(const cow_dataset *dataset)
{
    return dataset->snapshot;
}

hid_t cow_dataset_space(cow_dataset *dataset)
{
    hsize_t extent[COW_MAX_RANK], most[COW_MAX_RANK];
    const cow_array *array = &dataset->array;
    hid_t space;

    for (unsigned d = 0; d < array->grid.rank; d++) {
        extent[d] = array->extent[d];
        most[d] = array->maximum[d] == COW_UNLIMITED ? H5S_UNLIMITED : array->maximum[d];
    }
    if ((space = H5Screate_simple((int)array->grid.rank, extent, most)) < 0)
        cow_error_native("%s: cannot describe the extent", array->label);
    return space;
}
