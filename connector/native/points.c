/* Points that name an element twice: see points.h. */
#include "native/points.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/map.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Of N POINTS those that no later one repeats, in LAST. Points of a selection that HDF5 accepts are in a box as large as the extent,
 * whatever its offset: so a number for each. -1: no memory. */
static int mark_last(const hsize_t *points, size_t n, int rank, const hsize_t extent[], bool last[], size_t *count)
{
    cow_map seen = {0};
    int status = 0;

    *count = 0;
    for (size_t i = n; status == 0 && i-- > 0;) {
        uint64_t place = 0;
        for (int d = 0; d < rank; d++)
            place = place * extent[d] + points[i * (size_t)rank + (size_t)d];
        last[i] = !cow_map_get(&seen, place, NULL);
        *count += last[i];
        status = cow_map_put(&seen, place, 0);
    }
    cow_map_free(&seen);
    return status;
}

/* FILE_SPACE with those of its points only that LAST has; POINTS are moved. */
static hid_t select_last(hid_t file_space, hsize_t *points, size_t n, int rank, const bool last[], size_t count)
{
    hid_t space = H5Scopy(file_space);
    size_t bytes = (size_t)rank * sizeof *points;

    for (size_t i = 0, at = 0; i < n; i++)
        if (last[i])
            memmove(points + at++ * (size_t)rank, points + i * (size_t)rank, bytes);
    if (space >= 0 && H5Sselect_elements(space, H5S_SELECT_SET, count, points) >= 0)
        return space;
    cow_error_native("cannot select elements");
    if (space >= 0)
        H5Sclose(space);
    return H5I_INVALID_HID;
}

/* The values that belong to those points, one after the other. */
static int take_last(hid_t mem_type, hid_t mem_space, const void *buf, size_t n, const bool last[], size_t count,
                     cow_points_once *once)
{
    size_t size = H5Tget_size(mem_type);
    hsize_t extent = count;
    uint8_t *values = malloc(n * size);

    once->own = values;
    once->buf = values;
    if (values == NULL)
        return cow_error(COW_MEMORY, "no memory for %zu elements", n);
    if (mem_space == H5S_BLOCK)
        memcpy(values, buf, n * size);
    else if (H5Dgather(mem_space, buf, mem_type, n * size, values, NULL, NULL) < 0)
        return cow_error_native("cannot use the selection in memory");
    for (size_t i = 0, at = 0; i < n; i++)
        if (last[i])
            memmove(values + at++ * size, values + i * size, size);
    once->memory = H5Screate_simple(1, &extent, NULL);
    return once->memory < 0 ? cow_error_native("cannot describe a buffer") : 0;
}

int cow_points_once_open(hid_t mem_type, hid_t mem_space, hid_t file_space, const void *buf, cow_points_once *once)
{
    hsize_t extent[H5S_MAX_RANK], *points = NULL;
    int rank, status = -1;
    hssize_t selected;
    size_t n, count;
    bool *last = NULL;

    *once = (cow_points_once){.file = H5I_INVALID_HID, .memory = mem_space, .buf = buf};
    if (buf == NULL || file_space == H5S_ALL || file_space == H5S_BLOCK || file_space == H5S_PLIST ||
        mem_space == H5S_PLIST || H5Sget_select_type(file_space) != H5S_SEL_POINTS ||
        (selected = H5Sget_select_npoints(file_space)) < 2 || H5Sselect_valid(file_space) <= 0)
        return 0;
    if (mem_space != H5S_ALL && mem_space != H5S_BLOCK &&
        (H5Sget_select_npoints(mem_space) != selected || H5Sselect_valid(mem_space) <= 0))
        return 0;
    n = (size_t)selected;
    if ((rank = H5Sget_simple_extent_dims(file_space, extent, NULL)) <= 0)
        return 0;
    if ((points = malloc(n * (size_t)rank * sizeof *points)) == NULL || (last = malloc(n * sizeof *last)) == NULL)
        cow_error(COW_MEMORY, "no memory for %zu points", n);
    else if (H5Sget_select_elem_pointlist(file_space, 0, (hsize_t)n, points) < 0)
        cow_error_native("cannot list the selected points");
    else if (mark_last(points, n, rank, extent, last, &count) < 0)
        status = -1;
    else if (count == n)
        status = 0;
    else if ((once->file = select_last(file_space, points, n, rank, last, count)) >= 0 &&
             (mem_space == H5S_ALL || take_last(mem_type, mem_space, buf, n, last, count, once) == 0))
        status = 1;
    if (status < 0)
        cow_points_once_free(once);
    free(last);
    free(points);
    return status;
}

void cow_points_once_free(cow_points_once *once)
{
    if (once->own != NULL && once->memory > 0)
        H5Sclose(once->memory);
    if (once->file >= 0)
        H5Sclose(once->file);
    free(once->own);
    once->own = NULL;
}
