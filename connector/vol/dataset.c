/* H5D: datasets. A versioned dataset is read, written and described through its cow_array; the native object under it,
 * a virtual dataset, is only its place in the file. All other datasets are native, and a write to one is reported.
 * Chunk-level calls: chunk.c. */
#include "vol/vol.h"

#include "base/ids.h"
#include "journal/driver.h"
#include "native/datatype.h"
#include "native/pipeline.h"
#include "native/points.h"

#include <stdlib.h>
#include <string.h>

/* ---- prefixes of external files ---- */

static herr_t is_about_prefix(unsigned n, const H5E_error2_t *error, void *context)
{
    (void)n;
    if (error->desc != NULL && strstr(error->desc, "external file prefix does not match") != NULL)
        *(bool *)context = true;
    return 0;
}

/* Does STACK, of a native call that failed, say that a dataset is open with another prefix? Then none that the application has closed stays open. */
static bool refused_for_prefix(hid_t stack)
{
    bool prefix = false;

    if (stack >= 0)
        H5Ewalk2(stack, H5E_WALK_UPWARD, is_about_prefix, &prefix);
    if (prefix)
        cow_homes_prefix_seen();
    return prefix;
}

static void look_for_prefix(hid_t dapl)
{
    if (dapl != H5P_DATASET_ACCESS_DEFAULT && H5Pget_efile_prefix(dapl, NULL, 0) > 0)
        cow_homes_prefix_seen();
}

/* ---- create, open ---- */

/* The filters were asked, once, and refuse: what HDF5 does then in the file, and what it said. */
static void refuse_as_filters_did(const cow_where *where, const cow_creation *wanted, hid_t records)
{
    hid_t dcpl = cow_pipeline_refusing(wanted->dcpl);

    if (dcpl >= 0)
        H5VLdataset_create(where->native, &where->loc, cow_native_id(), where->name, wanted->lcpl, wanted->type,
                           wanted->space, dcpl, wanted->dapl, H5P_DATASET_XFER_DEFAULT, NULL);
    cow_close(dcpl);
    cow_errors_give_back(records);
}

void *cow_vol_dataset_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t lcpl, hid_t type,
                             hid_t space, hid_t dcpl, hid_t dapl, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object, *made;
    cow_where where;
    cow_target target = {0};
    cow_dataset *dataset = NULL;
    cow_file *file;
    cow_creation wanted;
    char *path = NULL;
    void *native = NULL;
    const size_t given = cow_vol_groups_given();
    const bool computed = cow_pipeline_is_computed(dcpl);
    hid_t own = computed ? cow_pipeline_told(H5Pcopy(dcpl)) : dcpl;
    cow_no_pool no_pool = {.records = H5I_INVALID_HID};
    int versioned = 0;

    look_for_prefix(dapl);
    if (own < 0 || cow_locate_name(o, loc, name, COW_TO_CREATE, &where) < 0 || cow_target_new(o, &where, &target) < 0)
        goto done;
    if (cow_home_allows_type(target.home, type) < 0 || cow_home_allows_layout(target.home, dcpl) < 0)
        goto done;
    file = target.home == NULL ? NULL : target.home->file;
    if (file != NULL && cow_file_writable(file) && (versioned = cow_dataset_wanted(file, type, space, own)) < 0)
        goto done;
    versioned = versioned && (H5Pget_layout(own) != H5D_CHUNKED || cow_dapl_fits(dapl, space));
    if (versioned) {
        if (dapl == H5P_DATASET_ACCESS_DEFAULT &&
            cow_vol_groups_given() == given) /* no function of the program said where */
            path = cow_unopened_path(o, &where.loc, where.name, &target);
        wanted = (cow_creation){where.native, &where.loc, where.name, lcpl, type, space, own, dapl, path, computed};
        dataset = cow_dataset_create(file, &wanted, &native, &no_pool);
    }
    if (no_pool.refused)
        cow_error_clear(); /* HDF5 is to say what it says without a history, and to leave what it leaves then */
    if (no_pool.records >= 0)
        refuse_as_filters_did(&where, &wanted, no_pool.records);
    else if (!versioned || no_pool.refused)
        native = H5VLdataset_create(where.native, &where.loc, cow_native_id(), where.name, lcpl, type, space, dcpl,
                                    dapl, dxpl, req);
    if (native != NULL && dataset == NULL && file != NULL && cow_unwritten_created(native, dcpl) < 0) {
        cow_object_close_native(native, H5I_DATASET);
        native = NULL;
    }
done:
    if (computed)
        cow_close(own);
    if (dataset != NULL && native == NULL) {
        if ((made = cow_unopened_made(o, &where, dataset, path)) == NULL)
            cow_dataset_release(dataset);
        made = cow_creation_noted(&where, &target, made, true, name);
    } else {
        made = cow_creation_end(o, &where, &target, native, H5I_DATASET, name);
        if (dataset != NULL)
            cow_dataset_release(dataset); /* the wrapper has a reference of its own */
    }
    if (made != NULL && dataset != NULL && cow_dapl_keep(made, dapl) < 0)
        cow_error_clear(); /* it was checked before */
    free(path);
    return cow_leave_pointer(made);
}

void *cow_open_again(const cow_object *o, cow_opener *open, void *context, const H5I_type_t *type)
{
    hid_t stack = cow_errors_take();
    cow_file *file = o->home == NULL ? NULL : o->home->file;
    void *native = NULL;

    if (refused_for_prefix(stack)) {
        if (file != NULL)
            cow_datasets_let_go(file);
        H5E_BEGIN_TRY
        {
            native = open(context);
        }
        H5E_END_TRY
        if (file != NULL && cow_datasets_hold_again(file) < 0 && native != NULL) {
            cow_object_close_native(native, *type);
            native = NULL;
        }
    }
    if (native == NULL)
        cow_errors_give_back(stack);
    else if (stack >= 0)
        H5Eclose_stack(stack);
    return native;
}

typedef struct dataset_opening {
    const cow_where *where;
    hid_t dapl, dxpl;
    void **req;
} dataset_opening;

static void *open_dataset(void *context)
{
    const dataset_opening *d = context;

    return H5VLdataset_open(d->where->native, &d->where->loc, cow_native_id(), d->where->name, d->dapl, d->dxpl,
                            d->req);
}

void *cow_vol_dataset_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t dapl, hid_t dxpl,
                           void **req)
{
    COW_QUIET;
    cow_object *o = object, *opened = NULL;
    cow_where where;
    cow_detour detour;
    H5VL_loc_params_t at;
    dataset_opening opening = {&where, dapl, dxpl, req};
    const H5I_type_t type = H5I_DATASET;
    void *native = NULL;

    look_for_prefix(dapl);
    if (cow_locate_name(o, loc, name, COW_TO_READ, &where) < 0)
        goto done;
    at = cow_by_name(where.loc.obj_type, where.name);
    if (dapl == H5P_DATASET_ACCESS_DEFAULT && loc->type == H5VL_OBJECT_BY_SELF &&
        (opened = cow_unopened_new(o, &where, &at)) != NULL)
        goto done;
    if ((native = open_dataset(&opening)) != NULL ||
        (native = cow_open_again(o, open_dataset, &opening, &type)) != NULL)
        opened = cow_object_wrap(o, native, H5I_DATASET, false);
    else if (cow_detour_begin(&where, where.name, dapl, &detour)) {
        opened = cow_vol_dataset_open(detour.file, &detour.loc, detour.name, dapl, dxpl, req);
        cow_detour_end(&detour);
    }
    if (native != NULL && opened != NULL)
        opened = cow_dapl_opened(opened, dapl);
done:
    cow_home_followed(o, opened, dapl);
    cow_where_done(&where);
    return cow_leave_pointer(opened);
}

/* ---- native datasets in a file with history ---- */

static int check_type(const cow_object *o)
{
    hid_t type;
    int status;

    if (o->home->file == NULL)
        return 0;
    if ((type = cow_native_dataset_type(cow_object_opened(o))) < 0)
        return -1;
    status = cow_home_check_type(o->home, type);
    H5Tclose(type);
    return status;
}

int cow_vol_dataset_learn(cow_object *o)
{
    bool missing = false;
    hid_t dcpl;
    int serves;

    if (o->layout_known || o->home == NULL)
        return 0;
    if (check_type(o) < 0)
        return -1;
    if ((dcpl = cow_native_dataset_dcpl(cow_object_opened(o))) < 0)
        return -1;
    if ((serves = cow_mapped_serves(o, dcpl, &o->user_virtual, &missing)) >= 0) {
        o->mapped = serves;
        o->layout_known = !missing || serves;
    }
    if (serves > 0 && cow_mapped_prepare(o, dcpl) < 0)
        serves = -1;
    H5Pclose(dcpl);
    return serves < 0 ? -1 : 0;
}

int cow_vol_dataset_before_write(cow_object *o)
{
    char *path;
    bool noted;
    int status = -1;

    if (cow_object_classify(o) < 0)
        return -1;
    if (o->home == NULL || (o->home->file == NULL && !o->home->foreign))
        return cow_home_may_write(o->home, "write to", NULL);
    /* The first write of a transaction notes the path; asking for it at each costs more than a small write does. */
    noted = o->dataset != NULL && cow_dataset_array(o->dataset)->written;
    path = noted ? NULL : cow_object_path(o);
    if (cow_home_may_write(o->home, "write to", path) < 0)
        goto done;
    if (o->dataset != NULL)
        status = cow_dataset_begin_write(o->dataset, noted ? "" : path);
    else
        status = cow_vol_dataset_learn(o);
done:
    free(path);
    return status;
}

int cow_vol_dataset_after_native_write(cow_object *o)
{
    H5O_token_t token;
    char *path;
    int status;

    if (o->home == NULL || o->home->file == NULL)
        return 0;
    if (cow_object_token(o, &token) < 0)
        return -1;
    path = cow_object_path(o);
    status = cow_changed_object(o->home->file, &token, path, COW_CHANGED_DATA);
    free(path);
    return status;
}

/* A native call that failed may have changed some of the elements, or the extent: that is the object's new state, with
 * what the program does next. The error stays the native one. FAILURES: cow_journal_driver_failures() before the call. */
static void after_failed_native_write(cow_object *o, unsigned long failures)
{
    hid_t stack;

    if (o->home == NULL || o->home->file == NULL || !cow_file_writable(o->home->file))
        return;
    if (cow_journal_driver_failures() != failures) {
        cow_home_half_changed(o->home);
        return;
    }
    stack = cow_errors_take();
    if (cow_vol_dataset_after_native_write(o) < 0)
        cow_changed_half(o->home->file);
    cow_errors_give_back(stack);
}

/* ---- read, write ---- */

/* HDF5 has no checksum of what it keeps itself. Who switches error detection off, or excuses filters, wants what there is. */
static int check_native(cow_object *o, hid_t dxpl)
{
    H5O_token_t token;
    cow_filtering filtering;

    if (cow_filtering_of(dxpl, &filtering))
        return 0;
    if (o->home == NULL || o->home->file == NULL || o->mapped || o->user_virtual)
        return 0;
    return cow_object_token(o, &token) < 0 ? -1 : cow_sum_check(o->home->file, &token, COW_CHANGED_DATA);
}

/* Several native datasets stay one native call; as soon as one is not, each is served alone, in order. */
static int classify_all(size_t count, void *dataset[], bool *all_native)
{
    *all_native = true;
    for (size_t i = 0; i < count; i++) {
        cow_object *o = dataset[i];
        if (cow_object_classify(o) < 0 || (o->dataset == NULL && cow_vol_dataset_learn(o) < 0))
            return -1;
        if (o->dataset != NULL || o->mapped)
            *all_native = false;
    }
    return 0;
}

/* HDF5 moves elements of one file in a call; a version is a file. */
static int check_one_file(size_t count, void *dataset[])
{
    const cow_home *first = count == 0 ? NULL : ((cow_object *)dataset[0])->home;

    for (size_t i = 1; i < count; i++) {
        const cow_home *home = ((cow_object *)dataset[i])->home;
        bool same = home == first;

        if (!same && home != NULL && first != NULL && home->fileno == first->fileno)
            same = home->version == NULL || first->version == NULL ? home->version == first->version
                                                                   : strcmp(home->version, first->version) == 0;
        if (!same)
            return cow_error(COW_USAGE, "the datasets of one call are in different files");
    }
    return 0;
}

static void **natives(size_t count, void *dataset[], void *one[1])
{
    void **native = count <= 1 ? one : malloc(count * sizeof *native);

    if (native == NULL)
        cow_error(COW_MEMORY, "no memory to read or write %zu datasets", count);
    for (size_t i = 0; native != NULL && i < count; i++)
        native[i] = ((cow_object *)dataset[i])->handle;
    return native;
}

/* Does HDF5 keep elements of O elsewhere than in its storage? 1, 0, -1 */
static int is_heap(const cow_object *o)
{
    hid_t type = cow_native_dataset_type(cow_object_opened(o));
    int heap = type < 0 ? -1 : cow_type_is_heap(type, true);

    if (type >= 0)
        H5Tclose(type);
    return heap;
}

/* May points name an element of a dataset in a file with history twice that HDF5 keeps in a heap? Then each is written alone. */
static int may_repeat_points(cow_object *o, hid_t file_space)
{
    if (o->home == NULL || o->home->file == NULL || o->dataset != NULL || o->mapped || file_space == H5S_ALL ||
        file_space == H5S_BLOCK || file_space == H5S_PLIST || H5Sget_select_type(file_space) != H5S_SEL_POINTS)
        return 0;
    return is_heap(o);
}

/* References of HDF5 1.8 read as those of HDF5 1.12, which hold their file: HDF5 converts them only while it reads a
 * dataset. So it reads them through the views, once we have seen that the chunks are what was written. */
static herr_t read_converted(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf,
                             void **req)
{
    cow_array *array = cow_dataset_array(o->dataset);
    hid_t own = H5I_INVALID_HID, memory = H5I_INVALID_HID;
    hssize_t n;
    hsize_t size;
    void *values = NULL;
    herr_t status = -1;

    if (!cow_dataset_snapshot(o->dataset) && cow_file_writable(o->home->file) &&
        (cow_file_wanted(o->home->file) < 0 || cow_file_commit(o->home->file, COW_FLUSH) < 0 ||
         cow_home_reopen_datasets(o->home) < 0))
        return -1;
    if (file_space == H5S_ALL && (own = cow_dataset_space(o->dataset)) < 0)
        return -1;
    if ((n = H5Sget_select_npoints(file_space == H5S_ALL ? own : file_space)) < 0) {
        cow_error_native("%s: cannot count the selected elements", array->label);
        goto done;
    }
    size = (hsize_t)n;
    if ((memory = n == 0 ? H5Screate(H5S_NULL) : H5Screate_simple(1, &size, NULL)) < 0 ||
        (values = malloc((size_t)n * array->element_size + 1)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for %lld references", array->label, (long long)n);
        goto done;
    }
    if (n > 0 && cow_array_read(array, cow_array_type(array), memory, own >= 0 ? own : file_space, dxpl, values) < 0)
        goto done;
    status = cow_native_read(1, &o->handle, &mem_type, &mem_space, &file_space, dxpl, &buf, req);
done:
    free(values);
    cow_close(memory, own);
    return status;
}

/* HDF5 makes the dataspace of a region reference of HDF5 1.8 with the extent that the head has now, and a selection that
 * was inside the version's extent may be outside of that one. The same selection in the version's own extent, or
 * H5I_INVALID_HID: the dataspace will do, or it never was inside. */
static hid_t region_of_version(const cow_object *o, hid_t file_space)
{
    hid_t space;

    if (o->home == NULL || o->home->version == NULL || o->dataset == NULL || file_space == H5S_ALL ||
        file_space == H5S_BLOCK || file_space == H5S_PLIST || H5Sselect_valid(file_space) != 0 ||
        (space = cow_dataset_space(o->dataset)) < 0)
        return H5I_INVALID_HID;
    if (H5Sget_simple_extent_ndims(space) == H5Sget_simple_extent_ndims(file_space) &&
        H5Sselect_copy(space, file_space) >= 0 && H5Sselect_valid(space) > 0)
        return space;
    H5Sclose(space);
    return H5I_INVALID_HID;
}

/* Why HDF5's selection I/O was not used, for H5Pget_no_selection_io_cause: as for native datasets of this layout. */
static void tell_selection_io(const cow_object *o, hid_t dxpl)
{
    H5D_selection_io_mode_t mode;
    uint32_t cause, before;

    if (cow_is_default_transfer(dxpl) || H5Pget_selection_io(dxpl, &mode) < 0 ||
        H5Pget_no_selection_io_cause(dxpl, &before) < 0)
        return;
    if (mode == H5D_SELECTION_IO_MODE_OFF)
        cause = H5D_SEL_IO_DISABLE_BY_API;
    else if (cow_dataset_chunked(o->dataset))
        cause = cow_dataset_filtered(o->dataset) ? H5D_SEL_IO_DATASET_FILTER : H5D_SEL_IO_CHUNK_CACHE;
    else
        cause = mode == H5D_SELECTION_IO_MODE_ON ? H5D_SEL_IO_NO_VECTOR_OR_SELECTION_IO_CB : H5D_SEL_IO_DEFAULT_OFF;
    if (cause != before)
        H5Pset(dxpl, "no_selection_io_cause", &cause);
}

/* The same for a dataset that HDF5 keeps. */
static int check_kept_by_hdf5(const cow_object *o, bool write, hid_t mem_type, hid_t mem_space, hid_t file_space,
                              const void *buf)
{
    hid_t type = cow_native_dataset_type(cow_object_opened(o)), space = cow_native_dataset_space(cow_object_opened(o));
    hid_t file = file_space > 0 && file_space != H5S_PLIST ? file_space : space,
          memory = mem_space > 0 && mem_space != H5S_BLOCK ? mem_space : file;
    H5T_cdata_t *path = NULL;
    hssize_t n = H5Sget_select_npoints(file);
    int status = -1;

    if (type < 0 || space < 0 || H5Tfind(write ? mem_type : type, write ? type : mem_type, &path) == NULL)
        cow_error_native("HDF5 has no conversion between the datatype in memory and the one in the file");
    else if (file_space != H5S_PLIST && !o->mapped && (n < 0 || H5Sget_select_npoints(memory) != n))
        cow_error_native("src and dest dataspaces have different number of elements selected");
    else if (n > 0 && buf == NULL)
        cow_error(COW_USAGE, "no buffer, but %lld elements are selected", (long long)n);
    else
        status = 0;
    cow_close(space, type);
    return status;
}

/* Before a write into a dataset that HDF5 keeps: see unwritten.c. */
static int clear_unwritten(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, const void *buf)
{
    int waits;

    if (o->home == NULL || o->home->file == NULL || o->dataset != NULL || o->mapped || o->user_virtual || o->settled ||
        (waits = cow_unwritten_waits(o->handle, file_space, &o->settled)) == 0)
        return 0;
    if (waits > 0 && check_kept_by_hdf5(o, true, mem_type, mem_space, file_space, buf) < 0) {
        cow_error_clear(); /* HDF5 refuses the write before it allocates anything, and says why */
        return 0;
    }
    return waits < 0 ? -1 : cow_unwritten_clear(o->handle);
}

/* HDF5 moves elements of several datasets when all of them can be moved, or none. */
static int check_several(size_t count, void *dataset[], bool write, const hid_t mem_type[], const hid_t mem_space[],
                         const hid_t file_space[], hid_t dxpl, const void *const buf[])
{
    for (size_t i = 0; count > 1 && i < count; i++) {
        const cow_object *o = dataset[i];
        if ((o->dataset != NULL ? cow_array_check(cow_dataset_array(o->dataset), write, mem_type[i], mem_space[i],
                                                  file_space[i], dxpl, buf[i])
                                : check_kept_by_hdf5(o, write, mem_type[i], mem_space[i], file_space[i], buf[i])) < 0)
            return -1;
    }
    return 0;
}

herr_t cow_vol_dataset_read(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                            hid_t dxpl, void *buf[], void **req)
{
    COW_QUIET;
    void *one[1], **native = NULL;
    bool all_native;
    herr_t status = -1;

    if (check_one_file(count, dataset) < 0 || classify_all(count, dataset, &all_native) < 0)
        return cow_leave(-1);
    for (size_t i = 0; i < count; i++)
        if (((cow_object *)dataset[i])->dataset == NULL &&
            (cow_vol_dataset_learn(dataset[i]) < 0 || check_native(dataset[i], dxpl) < 0))
            return cow_leave(-1);
    if (all_native) {
        if ((native = natives(count, dataset, one)) != NULL)
            status = cow_native_read(count, native, mem_type, mem_space, file_space, dxpl, buf, req);
        if (native != one)
            free(native);
        return cow_leave(status);
    }
    status = check_several(count, dataset, false, mem_type, mem_space, file_space, dxpl, (const void *const *)buf);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        cow_object *o = dataset[i];
        cow_reading(o->handle);
        if (o->dataset != NULL) {
            hid_t region = region_of_version(o, file_space[i]), from = region >= 0 ? region : file_space[i];
            int converted = o->old_references ? cow_type_has(mem_type[i], COW_PART_REFERENCE) : 0;
            if (converted != 0)
                status = converted < 0 ? -1 : read_converted(o, mem_type[i], mem_space[i], from, dxpl, buf[i], req);
            else
                status = cow_array_read(cow_dataset_array(o->dataset), mem_type[i], mem_space[i], from, dxpl, buf[i]);
            if (region >= 0)
                H5Sclose(region);
            tell_selection_io(o, dxpl);
            if (status < 0)
                cow_dataset_tell_path(o->dataset, o->handle);
        } else if (o->mapped)
            status = cow_mapped_read(o, mem_type[i], mem_space[i], file_space[i], dxpl, buf[i]);
        else
            status = cow_native_read(1, &o->handle, &mem_type[i], &mem_space[i], &file_space[i], dxpl, &buf[i], req);
    }
    cow_reading(NULL);
    return cow_leave(status);
}

/* One dataset that HDF5 keeps itself. */
static herr_t write_native(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                           const void *buf, void **req)
{
    unsigned long failures = cow_journal_driver_failures();
    cow_points_once once = {0};
    int repeats = may_repeat_points(o, file_space);
    herr_t status;

    if (repeats < 0 ||
        (repeats > 0 && (repeats = cow_points_once_open(mem_type, mem_space, file_space, buf, &once)) < 0))
        return -1;
    if (repeats > 0) {
        mem_space = once.memory;
        file_space = once.file;
        buf = once.buf;
    }
    status = cow_native_write(1, &o->handle, &mem_type, &mem_space, &file_space, dxpl, &buf, req);
    if (status < 0)
        after_failed_native_write(o, failures);
    else
        status = cow_vol_dataset_after_native_write(o);
    if (repeats > 0)
        cow_points_once_free(&once);
    return status;
}

static int ask_filters(const cow_object *o)
{
    return o->dataset == NULL ? 0 : cow_dataset_ask_filters(o->dataset, false);
}

herr_t cow_vol_dataset_write(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                             hid_t dxpl, const void *buf[], void **req)
{
    COW_QUIET;
    void *one[1], **native = NULL;
    unsigned long failures;
    bool all_native, tried;
    herr_t status = -1;

    if (check_one_file(count, dataset) < 0 || classify_all(count, dataset, &all_native) < 0)
        return cow_leave(-1);
    for (size_t i = 0; i < count; i++)
        if (cow_vol_dataset_before_write(dataset[i]) < 0 || ask_filters(dataset[i]) < 0 ||
            clear_unwritten(dataset[i], mem_type[i], mem_space[i], file_space[i], buf[i]) < 0)
            return cow_leave(-1);
    for (size_t i = 0; all_native && i < count; i++) {
        int repeats = may_repeat_points(dataset[i], file_space[i]);
        if (repeats < 0)
            return cow_leave(-1);
        all_native = repeats == 0;
    }
    failures = cow_journal_driver_failures();
    if (all_native) {
        if ((tried = (native = natives(count, dataset, one)) != NULL))
            status = cow_native_write(count, native, mem_type, mem_space, file_space, dxpl, buf, req);
        if (native != one)
            free(native);
        for (size_t i = 0; status < 0 && tried && i < count; i++)
            after_failed_native_write(dataset[i], failures);
        for (size_t i = 0; status >= 0 && i < count; i++)
            status = cow_vol_dataset_after_native_write(dataset[i]);
        return cow_leave(count == 0 ? status : cow_home_wrote(((cow_object *)dataset[0])->home, status));
    }
    status = check_several(count, dataset, true, mem_type, mem_space, file_space, dxpl, buf);
    for (size_t i = 0; status >= 0 && i < count; i++) {
        cow_object *o = dataset[i];
        if (o->dataset != NULL) {
            status =
                cow_array_write(cow_dataset_array(o->dataset), mem_type[i], mem_space[i], file_space[i], dxpl, buf[i]);
            tell_selection_io(o, dxpl);
            if (status < 0)
                cow_dataset_tell_path(o->dataset, o->handle);
        } else if (o->mapped)
            status = cow_mapped_write(o, mem_type[i], mem_space[i], file_space[i], dxpl, buf[i]);
        else
            status = write_native(o, mem_type[i], mem_space[i], file_space[i], dxpl, buf[i], req);
    }
    return cow_leave(count == 0 ? status : cow_home_wrote(((cow_object *)dataset[0])->home, status));
}

/* ---- get ---- */

/* STATUS of a question of the native object: a type that was asked for is not given where it is not what was committed. */
static herr_t checked_type(const cow_object *o, H5VL_dataset_get_args_t *args, herr_t status)
{
    if (status < 0 || args->op_type != H5VL_DATASET_GET_TYPE ||
        cow_home_check_type(o->home, args->args.get_type.type_id) == 0)
        return status;
    H5Tclose(args->args.get_type.type_id);
    args->args.get_type.type_id = H5I_INVALID_HID;
    return -1;
}

herr_t cow_vol_dataset_get(void *object, H5VL_dataset_get_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    herr_t status = -1;

    /* H5Ropen_region asks whatever the reference leads to, and native HDF5 1.14.5 takes it for a dataset */
    if (o->type != H5I_DATASET)
        return cow_leave(cow_error(COW_NOT_FOUND, "what this leads to is no dataset (any more)"));
    if (cow_object_classify(o) < 0)
        return cow_leave(-1);
    if (o->dataset == NULL) {
        /* The extent of a virtual dataset may follow that of its sources. */
        if (args->op_type == H5VL_DATASET_GET_SPACE &&
            (cow_vol_dataset_learn(o) < 0 || cow_mapped_set_extent(o, NULL) < 0))
            return cow_leave(-1);
        if (args->op_type == H5VL_DATASET_GET_SPACE && o->mapped)
            return cow_leave((args->args.get_space.space_id = cow_mapped_space(o)) < 0 ? -1 : 0);
        if (args->op_type == H5VL_DATASET_GET_DAPL && o->dapl > 0)
            return cow_leave((args->args.get_dapl.dapl_id = H5Pcopy(o->dapl)) < 0 ? -1 : 0);
        status = checked_type(o, args, H5VLdataset_get(cow_object_opened(o), cow_native_id(), args, dxpl, req));
        /* files with history have newer layouts than the program asked for */
        if (status >= 0 && args->op_type == H5VL_DATASET_GET_DCPL && o->home->file != NULL &&
            (status = cow_native_dcpl_for_any_bounds(args->args.get_dcpl.dcpl_id)) < 0)
            H5Pclose(args->args.get_dcpl.dcpl_id);
        return cow_leave(status);
    }
    switch (args->op_type) {
    case H5VL_DATASET_GET_SPACE:
        status = (args->args.get_space.space_id = cow_dataset_space(o->dataset)) < 0 ? -1 : 0;
        break;
    case H5VL_DATASET_GET_DCPL:
        status =
            (args->args.get_dcpl.dcpl_id = cow_dataset_dcpl(o->dataset, o->unopened == NULL ? o->handle : NULL)) < 0
                ? -1
                : 0;
        break;
    case H5VL_DATASET_GET_SPACE_STATUS:
        status = cow_vol_dataset_allocated(o->dataset, NULL, args->args.get_space_status.status);
        break;
    case H5VL_DATASET_GET_STORAGE_SIZE:
        status = cow_vol_dataset_allocated(o->dataset, args->args.get_storage_size.storage_size, NULL);
        break;
    case H5VL_DATASET_GET_DAPL:
        if ((status = H5VLdataset_get(cow_object_opened(o), cow_native_id(), args, dxpl, req)) >= 0 &&
            (status = cow_dapl_tell(o, args->args.get_dapl.dapl_id)) < 0)
            H5Pclose(args->args.get_dapl.dapl_id);
        break;
    case H5VL_DATASET_GET_TYPE:
        if (o->unopened == NULL)
            status = checked_type(o, args, H5VLdataset_get(o->handle, cow_native_id(), args, dxpl, req));
        else
            status = (args->args.get_type.type_id = cow_dataset_type_unopened(o->dataset)) < 0 ? -1 : 0;
        break;
    }
    return cow_leave(status);
}

/* ---- specific ---- */

static int set_extent(cow_object *o, const hsize_t *size)
{
    cow_array *array = cow_dataset_array(o->dataset);
    uint64_t extent[COW_MAX_RANK];
    bool changed = false;

    if (!cow_dataset_chunked(o->dataset))
        return cow_error(COW_USAGE, "%s: the dataset has contiguous storage and cannot change its extent",
                         array->label);
    for (unsigned d = 0; d < array->grid.rank; d++) {
        if (array->maximum[d] != COW_UNLIMITED && size[d] > array->maximum[d])
            return cow_error(COW_USAGE,
                             "%s: dimension %u cannot exceed the existing maximal size (new: %llu max: %llu)",
                             array->label, d, (unsigned long long)size[d], (unsigned long long)array->maximum[d]);
        extent[d] = size[d];
        changed = changed || size[d] != array->extent[d];
    }
    if (cow_dataset_ask_filters(o->dataset, true) < 0)
        return -1;
    if (!changed)
        return 0;
    if (cow_vol_dataset_before_write(o) < 0 ||
        (!cow_dataset_extent_waits(o->dataset) &&
         cow_object_opened(o) == NULL)) /* the commit changes what HDF5 has of it */
        return -1;
    return cow_array_resize(array, extent);
}

int cow_vol_dataset_flush(cow_object *o)
{
    if (cow_dataset_snapshot(o->dataset) || !cow_file_writable(o->home->file))
        return 0;
    if (cow_array_store(cow_dataset_array(o->dataset)) < 0 || cow_home_wrote(o->home, 0) < 0 ||
        (!o->home->swmr_write && cow_file_room(o->home->file) < 0))
        return -1;
    /* With a single writer and many readers the flush of a dataset is how readers get to see it. */
    return o->home->swmr_write ? cow_file_commit(o->home->file, COW_FLUSH) : 0;
}

herr_t cow_vol_dataset_specific(void *object, H5VL_dataset_specific_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    cow_home *home = cow_home_reference(o->home); /* a refresh closes the object in the middle */
    bool writes = args->op_type == H5VL_DATASET_SET_EXTENT;
    unsigned long failures;
    herr_t status = -1;

    if (cow_object_classify(o) < 0)
        goto done;
    if (o->dataset == NULL) {
        if (writes && cow_vol_dataset_before_write(o) < 0)
            goto done;
        failures = cow_journal_driver_failures();
        status = H5VLdataset_specific(cow_object_opened(o), cow_native_id(), args, dxpl, req);
        if (status >= 0 && writes)
            status =
                cow_vol_dataset_after_native_write(o) < 0 ? -1 : cow_mapped_set_extent(o, args->args.set_extent.size);
        else if (writes)
            after_failed_native_write(o, failures);
        goto done;
    }
    switch (args->op_type) {
    case H5VL_DATASET_SET_EXTENT:
        if (cow_home_may_write(home, "change the extent of", cow_dataset_array(o->dataset)->label) == 0)
            status = !cow_file_writable(home->file) || cow_dataset_snapshot(o->dataset)
                         ? cow_dataset_begin_write(o->dataset, NULL) /* says why not */
                         : set_extent(o, args->args.set_extent.size);
        break;
    case H5VL_DATASET_FLUSH:
        if (cow_vol_dataset_flush(o) < 0)
            break;
        status = H5VLdataset_specific(cow_object_opened(o), cow_native_id(), args, dxpl, req);
        break;
    case H5VL_DATASET_REFRESH:
        /* Native HDF5 would close and open the virtual dataset and everything below it. There is nothing to drop: what
         * this handle shows is what this process wrote, or the state it opened. */
        status = 0;
        break;
    }
done:
    if (cow_home_release(home) < 0)
        status = -1;
    return cow_leave(status);
}

/* ---- optional ---- */

/* H5Dget_chunk_storage_size of HDF5 1.14.5 leaves the size unset while the only chunks of a dataset in the newer file
 * format are still in its cache. Counting chunks writes them out first. */
static void settle_chunks(cow_object *o, hid_t dxpl)
{
    H5VL_native_dataset_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_DATASET_GET_NUM_CHUNKS, .args = &native};
    hsize_t count;

    native.get_num_chunks.space_id = H5S_ALL;
    native.get_num_chunks.nchunks = &count;
    H5E_BEGIN_TRY
    {
        H5VLdataset_optional(cow_object_opened(o), cow_native_id(), &args, dxpl, NULL);
    }
    H5E_END_TRY
}

herr_t cow_vol_dataset_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    bool history = o->home != NULL && (o->home->file != NULL || o->home->foreign), writes;
    unsigned long failures;
    cow_loud loud;
    cow_placed placed;
    herr_t status = -1;

    if (args->op_type == H5VL_NATIVE_DATASET_CHUNK_ITER) {
        H5VL_native_dataset_optional_args_t *all = args->args;
        cow_loud_chunk(&quiet, &all->chunk_iter.op, &all->chunk_iter.op_data, &loud);
    }
    cow_placed_begin(o, args, &placed);
    if (cow_object_classify(o) < 0)
        goto done;
    if (o->dataset != NULL) {
        status = cow_vol_dataset_chunk_operation(o, args, dxpl);
        if (args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE)
            status = cow_home_wrote(o->home, status);
        goto done;
    }
    if (history && args->op_type > H5VL_NATIVE_DATASET_CHUNK_ITER) {
        cow_error(COW_UNSUPPORTED, "operation %d on datasets is not known to this h5cow, and could write",
                  args->op_type);
        goto done;
    }
    writes = args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE || args->op_type == H5VL_NATIVE_DATASET_FORMAT_CONVERT;
    if (writes && cow_vol_dataset_before_write(o) < 0)
        goto done;
    if (history && args->op_type == H5VL_NATIVE_DATASET_GET_CHUNK_STORAGE_SIZE)
        settle_chunks(o, dxpl);
    failures = cow_journal_driver_failures();
    status = H5VLdataset_optional(cow_object_opened(o), cow_native_id(), args, dxpl, req);
    if (status >= 0 && history && args->op_type == H5VL_NATIVE_DATASET_CHUNK_WRITE)
        cow_native_chunk_written(cow_object_opened(o),
                                 ((H5VL_native_dataset_optional_args_t *)args->args)->chunk_write.offset);
    if (status >= 0 && writes)
        status = cow_home_wrote(o->home, cow_vol_dataset_after_native_write(o));
    else if (writes)
        after_failed_native_write(o, failures);
done:
    if (status >= 0)
        cow_placed_end(o, args);
    return cow_leave(status);
}

/* A lossy filter rounds what is written when native HDF5 drops the chunk from its cache, at the latest when the dataset
 * is closed: so that is what is read when it is opened again. A chunk that a filter does not take is lost then, which the
 * call reports; the dataset is closed all the same. */
herr_t cow_vol_dataset_close(void *object, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = object;
    bool failed = o->dataset != NULL && o->home->version == NULL && cow_dataset_store_last(o->dataset) < 0;

    (void)dxpl;
    (void)req;
    if (o->mapped && cow_sources_close(o) < 0)
        failed = true;
    return cow_object_close_dataset(o, failed);
}
