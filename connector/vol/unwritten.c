/* Elements that nobody has written, of datasets that HDF5 keeps itself in a file with history. HDF5 fills the storage of a dataset only
 * where its creation properties say so; else its elements are what stands in the file there. In a new file that is zeros, and programs
 * count on it. In a file with history, space is given out again that the history used, with object headers of its own in it, or deleted
 * data. So what HDF5 will not fill gets zeros before a part of it is written.
 */
#include "vol/vol.h"

#include "base/error.h"
#include "base/ids.h"
#include "native/native.h"

#include <stdlib.h>

#define SLAB ((hsize_t)1 << 20) /* bytes written at once */

/* Does HDF5 allocate storage for elements that are not written? A chunk that is made when it is written begins with zeros, and what is
 * filtered is filled. */
static int allocates(hid_t dcpl)
{
    const H5D_layout_t layout = H5Pget_layout(dcpl);
    H5D_alloc_time_t when;

    if (layout == H5D_CONTIGUOUS)
        return H5Pget_external_count(dcpl) == 0;
    if (layout != H5D_CHUNKED)
        return 0;
    if (H5Pget_alloc_time(dcpl, &when) < 0)
        return cow_error_native("cannot get the creation properties of a dataset");
    return when != H5D_ALLOC_TIME_INCR && H5Pget_nfilters(dcpl) == 0;
}

/* And does it not fill that? */
static int leaves_as_it_is(hid_t dcpl)
{
    H5D_fill_time_t filled;
    H5D_fill_value_t value;
    int status = allocates(dcpl);

    if (status <= 0)
        return status;
    if (H5Pget_fill_time(dcpl, &filled) < 0 || H5Pfill_value_defined(dcpl, &value) < 0)
        return cow_error_native("cannot get the creation properties of a dataset");
    if (filled != H5D_FILL_TIME_IFSET)
        return filled == H5D_FILL_TIME_NEVER;
    return value == H5D_FILL_VALUE_UNDEFINED ||
           (value == H5D_FILL_VALUE_DEFAULT && H5Pget_layout(dcpl) == H5D_CONTIGUOUS);
}

/* Zeros into COUNT rows from FIRST on; a scalar has none. */
static int clear_rows(void *native, hid_t type, hid_t space, const hsize_t *extent, int rank, hsize_t first,
                      hsize_t count, const void *zeros)
{
    hsize_t start[H5S_MAX_RANK] = {first}, block[H5S_MAX_RANK] = {count};
    hid_t memory = H5S_ALL, file = H5S_ALL;
    int status = 0;

    for (int d = 1; d < rank; d++)
        block[d] = extent[d];
    if (rank > 0) {
        file = space;
        if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL) < 0 ||
            (memory = H5Screate_simple(rank, block, NULL)) < 0)
            status = cow_error_native("cannot select elements of a new dataset");
    }
    if (status == 0 && cow_native_dataset_write(native, type, memory, file, H5P_DATASET_XFER_DEFAULT, zeros) < 0)
        status = -1;
    if (memory > 0)
        H5Sclose(memory);
    return status;
}

static int clear_all(void *native, hid_t type, hid_t space)
{
    hsize_t extent[H5S_MAX_RANK] = {1}, row = H5Tget_size(type), rows;
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    void *zeros;
    int status = 0;

    if (rank < 0 || row == 0)
        return cow_error_native("cannot get the extent of a new dataset");
    for (int d = 1; d < rank; d++)
        row *= extent[d];
    rows = rank == 0 || row >= SLAB ? 1 : SLAB / row;
    if (rows > extent[0])
        rows = extent[0];
    if ((zeros = calloc((size_t)rows, (size_t)row)) == NULL)
        return cow_error(COW_MEMORY, "no memory to clear the storage of a new dataset");
    for (hsize_t first = 0; status == 0 && first < extent[0]; first += rows)
        status = clear_rows(native, type, space, extent, rank, first,
                            extent[0] - first < rows ? extent[0] - first : rows, zeros);
    free(zeros);
    return status;
}

int cow_unwritten_clear(void *native)
{
    hid_t type = cow_native_dataset_type(native), space = cow_native_dataset_space(native);
    int status = type < 0 || space < 0 ? -1 : 0;

    if (status == 0 && H5Sget_simple_extent_npoints(space) > 0)
        status = clear_all(native, type, space);
    cow_close(space, type);
    return status;
}

int cow_unwritten_created(void *native, hid_t dcpl)
{
    H5D_space_status_t status;
    int bare;

    if ((bare = leaves_as_it_is(dcpl)) <= 0)
        return bare;
    if (cow_native_dataset_status(native, &status) < 0)
        return -1;
    return status == H5D_SPACE_STATUS_NOT_ALLOCATED ? 0 : cow_unwritten_clear(native);
}

typedef enum reach {
    REACH_FAILED = -1,
    REACH_PART,
    REACH_MOST, /* as many elements as there are: HDF5 fills nothing, though members, or points, may be left out */
    REACH_ALL,
} reach;

static reach reach_of(void *native, hid_t file_space)
{
    hid_t type = cow_native_dataset_type(native), space = cow_native_dataset_space(native);
    htri_t compound = type < 0 ? -1 : H5Tdetect_class(type, H5T_COMPOUND);
    reach found = REACH_FAILED;

    if (space >= 0 && compound >= 0) {
        const bool every = file_space == H5S_ALL ||
                           H5Sget_select_npoints(file_space) == H5Sget_simple_extent_npoints(space),
                   points = file_space != H5S_ALL && H5Sget_select_type(file_space) == H5S_SEL_POINTS;

        found = !every ? REACH_PART : compound > 0 || points ? REACH_MOST : REACH_ALL;
    }
    cow_close(space, type);
    return found;
}

/* The same of storage that is not allocated yet. */
static int waits_for(void *native, hid_t dcpl, hid_t file_space)
{
    const bool special = file_space == H5S_BLOCK || file_space == H5S_PLIST;
    reach reached = REACH_PART;

    if (file_space != H5S_ALL && !special &&
        (H5Sselect_valid(file_space) <= 0 || H5Sget_select_npoints(file_space) == 0))
        return 0;
    if (!special && (reached = reach_of(native, file_space)) == REACH_FAILED)
        return -1;
    return reached == REACH_ALL ? 0 : reached == REACH_MOST ? 1 : leaves_as_it_is(dcpl);
}

int cow_unwritten_waits(void *native, hid_t file_space, bool *settled)
{
    H5D_space_status_t status;
    hid_t dcpl = cow_native_dataset_dcpl(native);
    int waits = dcpl < 0 ? -1 : allocates(dcpl);

    /* HDF5 writes out the chunks that it has in memory before it answers, so only where the answer counts */
    if (waits > 0 && cow_native_dataset_status(native, &status) < 0)
        waits = -1;
    *settled = waits == 0 || (waits > 0 && status != H5D_SPACE_STATUS_NOT_ALLOCATED);
    if (waits > 0)
        waits = *settled ? 0 : waits_for(native, dcpl, file_space);
    cow_close(dcpl);
    return waits;
}
