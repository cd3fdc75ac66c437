/* Regions that references of HDF5 1.12 lead to. H5Ropen_region puts the selection of the reference on the extent that the
 * dataset has now, and does not compare their ranks (1.14.5, 2.2.0). Where the dataset is gone and another one is in its
 * place, or in a file that was made so, they differ: then HDF5 writes as many coordinates as the selection has dimensions
 * where its caller has made room for those of the extent. See native.h.
 */
#include "native/native.h"

#include "base/error.h"

#include <stdint.h>
#include <stdlib.h>

#define WIDEST ((size_t)2 * H5S_MAX_RANK) /* coordinates of one block */

/* No call tells the rank of a selection. It is seen from what is written for one block; a regular selection has its numbers
 * in an array for the highest rank, whatever its own, and nothing is written beyond. */
static bool fits(hid_t space)
{
    hsize_t block[WIDEST];
    int rank = H5Sget_simple_extent_ndims(space);
    hssize_t blocks = 0;
    size_t written = 0;

    switch (H5Sget_select_type(space)) {
    case H5S_SEL_NONE:
    case H5S_SEL_ALL:
        return true;
    case H5S_SEL_POINTS:
        return rank > 0;
    case H5S_SEL_HYPERSLABS:
        break;
    default:
        return false;
    }
    if (rank <= 0)
        return false;
    H5E_BEGIN_TRY
    blocks = H5Sget_select_hyper_nblocks(space);
    H5E_END_TRY
    if (blocks < 0) /* an unlimited one, which is regular */
        return H5Sis_regular_hyperslab(space) > 0;
    for (size_t i = 0; i < WIDEST; i++)
        block[i] = HSIZE_UNDEF;
    if (blocks == 0 || H5Sget_select_hyper_blocklist(space, 0, 1, block) < 0)
        return false;
    while (written < WIDEST && block[written] != HSIZE_UNDEF)
        written++;
    return written == (size_t)rank * 2;
}

hid_t cow_native_region_open(H5R_ref_t *reference)
{
    hid_t space = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT);

    if (space >= 0 && !fits(space)) {
        H5Sclose(space);
        return H5I_INVALID_HID;
    }
    return space;
}

int cow_native_region_list(hid_t space, uint64_t most, hsize_t **list, size_t *blocks)
{
    bool points = H5Sget_select_type(space) == H5S_SEL_POINTS;
    hssize_t n = -1;
    int rank = H5Sget_simple_extent_ndims(space);

    *list = NULL;
    *blocks = 0;
    H5E_BEGIN_TRY
    n = points ? H5Sget_select_elem_npoints(space) : H5Sget_select_hyper_nblocks(space);
    H5E_END_TRY
    if (n < 0 || rank < 0 || (uint64_t)n > most)
        return 0;
    if ((*list = calloc((size_t)n + 1, (size_t)(rank + 1) * 2 * sizeof **list)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a region reference");
    if (n > 0 && (points ? H5Sget_select_elem_pointlist(space, 0, (hsize_t)n, *list)
                         : H5Sget_select_hyper_blocklist(space, 0, (hsize_t)n, *list)) < 0) {
        free(*list);
        *list = NULL;
        return cow_error_native("cannot read the selection of a region reference");
    }
    *blocks = (size_t)n;
    return 1;
}
