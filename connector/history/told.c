/* The creation properties that the application is told of a versioned dataset: those that it was made with. The native object is a virtual
 * dataset, whose list has some of them; layout, times of allocation and fill are in its row, chunks and filters in its pool. Bindings ask for
 * the list each time that they open a dataset, and HDF5 takes 60,000 instructions and more to put one together. */
#include "base/error.h"
#include "base/ids.h"
#include "history/internal.h"

#include <stdlib.h>

/* The lists of most datasets are equal: this is the last one of a usual dataset. */
struct cow_told {
    hid_t list;                 /* H5I_INVALID_HID: none */
    cow_layout_dataset_row row; /* but for head and root */
    bool times;
};

cow_told *cow_told_new(void)
{
    cow_told *told = calloc(1, sizeof *told);

    if (told != NULL)
        told->list = H5I_INVALID_HID;
    return told;
}

void cow_told_free(cow_told *told)
{
    free(told);
}

void cow_told_close(cow_file *file)
{
    cow_told *told = file->told;

    cow_close(told->list);
    told->list = H5I_INVALID_HID;
}

/* What the native object has of them; the caller closes it. */
static hid_t own(cow_dataset *dataset, void *native)
{
    hid_t list = cow_dataset_properties(dataset, native);

    return list < 0 ? H5I_INVALID_HID : H5Pcopy(list);
}

static int add_chunks(const cow_dataset *dataset, hid_t list)
{
    const unsigned rank = dataset->array.grid.rank;
    const cow_pool_entry *pool = cow_pools_get(dataset->file, dataset->row.pool);
    hsize_t chunk[COW_MAX_RANK];

    for (unsigned d = 0; d < rank; d++)
        chunk[d] = dataset->array.grid.chunk[d];
    /* H5Pset_chunk_opts makes a list for bounds of 1.10 at least, whatever it sets */
    return pool == NULL || H5Pset_chunk(list, (int)rank, chunk) < 0 ||
                   (pool->plain_edges && H5Pset_chunk_opts(list, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) < 0) ||
                   (pool->dcpl >= 0 && !(dataset->row.flags & COW_FLAG_FILTERS_ADDED) &&
                    cow_native_filters_add(list, pool->dcpl) < 0)
               ? -1
               : 0;
}

/* Only where it is not the one of its layout: HDF5 notes that it was set, so that the list equals no other one, and keeps it with another
 * layout. */
static int set_alloc_time(hid_t list, H5D_alloc_time_t wanted)
{
    H5D_alloc_time_t now;

    return H5Pset_alloc_time(list, H5D_ALLOC_TIME_DEFAULT) < 0 || H5Pget_alloc_time(list, &now) < 0 ||
                   (now != wanted && H5Pset_alloc_time(list, wanted) < 0)
               ? -1
               : 0;
}

static hid_t make(cow_dataset *dataset, void *native)
{
    const cow_layout_dataset_row *row = &dataset->row;
    hid_t list = own(dataset, native);

    if (list >= 0 && (row->layout != H5D_CHUNKED || add_chunks(dataset, list) == 0) &&
        set_alloc_time(list, (H5D_alloc_time_t)row->alloc_time) == 0 &&
        H5Pset_fill_time(list, (H5D_fill_time_t)row->fill_time) >= 0)
        return list;
    if (!cow_error_pending())
        cow_error_native("%s: cannot put together the creation properties", dataset->array.label);
    cow_close(list);
    return H5I_INVALID_HID;
}

static bool same(const cow_told *told, const cow_dataset *dataset)
{
    const cow_layout_dataset_row *a = &told->row, *b = &dataset->row;

    return told->list >= 0 && told->times == dataset->times && a->pool == b->pool && a->layout == b->layout &&
           a->alloc_time == b->alloc_time && a->fill_time == b->fill_time && a->flags == b->flags;
}

/* The list of a usual dataset, which is another one's as well. */
static hid_t make_shared(cow_dataset *dataset, void *native)
{
    cow_told *told = dataset->file->told;
    hid_t list;

    if (same(told, dataset))
        return H5Iinc_ref(told->list) < 0 ? H5I_INVALID_HID : told->list;
    if ((list = make(dataset, native)) >= 0 && H5Iinc_ref(list) >= 0) {
        cow_close(told->list);
        told->list = list;
        told->row = dataset->row;
        told->times = dataset->times;
    }
    return list;
}

hid_t cow_dataset_dcpl(cow_dataset *dataset, void *native)
{
    hid_t copy;

    if (dataset->told < 0 &&
        (dataset->told = dataset->usual ? make_shared(dataset, native) : make(dataset, native)) < 0)
        return H5I_INVALID_HID;
    if ((copy = H5Pcopy(dataset->told)) < 0)
        cow_error_native("%s: cannot get the creation properties", dataset->array.label);
    return copy;
}
