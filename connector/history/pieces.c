/* The pools of pieces of a dataset's chunks (io/composed.h): pools like all others, whose chunks are pieces. What chunks of one pool
 * are cut into follows from their shape, so all its datasets share the pieces as well. */
#include "history/pieces.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/internal.h"

#include <string.h>

/* The creation properties of the dataset's pool, for chunks of CUT. */
static hid_t piece_dcpl(hid_t pool, const cow_piecing *cut)
{
    hsize_t chunk[COW_MAX_RANK];
    hid_t dcpl = H5Pcopy(pool);

    for (unsigned d = 0; d < cut->rank; d++)
        chunk[d] = cut->piece[d];
    if (dcpl >= 0 && H5Pset_chunk(dcpl, (int)cut->rank, chunk) < 0) {
        H5Pclose(dcpl);
        dcpl = H5I_INVALID_HID;
    }
    if (dcpl < 0)
        cow_error_native("cannot describe a pool of pieces");
    return dcpl;
}

static int choose(void *context, const cow_piecing *cut, uint32_t *id)
{
    const cow_dataset *dataset = context;
    cow_file *file = dataset->file;
    const hid_t own = cow_pools_dcpl(file, dataset->pool);
    const cow_pool_entry *pool = own < 0 ? NULL : cow_pools_get(file, dataset->pool);
    cow_kept_type *type;
    hid_t dcpl;
    int status = -1;

    if (pool == NULL || (dcpl = piece_dcpl(own, cut)) < 0)
        return -1;
    type = cow_kept_type_share(pool->type); /* POOL is gone when another is opened */
    status = cow_pools_find(file, cow_kept_type_id(type), dcpl, dcpl, id);
    cow_kept_type_free(type);
    H5Pclose(dcpl);
    if (status > 0) { /* some filters refuse small chunks */
        cow_error_clear();
        return 0;
    }
    return status < 0 || cow_file_need_format(file, COW_FORMAT_PIECES) < 0 ? -1 : 1;
}

static int open_pool(void *context, uint32_t id, cow_pieces *pieces)
{
    const cow_dataset *dataset = context;
    const cow_array *array = &dataset->array;
    const cow_pool_entry *pool = cow_pools_get_like(dataset->file, id, cow_array_type(array), NULL);

    if (pool == NULL)
        return -1;
    if (H5Tequal(cow_kept_type_id(pool->type), cow_array_type(array)) <= 0 ||
        !cow_piecing_from(&pieces->cut, &array->grid, array->element_size, pool->raw.rank, pool->raw.chunk))
        return cow_error(COW_CORRUPT,
                         "%s: pool %u has no pieces of its chunks; to see what is damaged: h5cow verify %s",
                         array->label, id, dataset->file->name);
    pieces->id = id;
    pieces->pool = pool->pool;
    pieces->codec = pool->codec;
    cow_pools_use(dataset->file, id);
    return 0;
}

static void leave(void *context, uint32_t id)
{
    const cow_dataset *dataset = context;

    cow_pools_leave(dataset->file, id);
}

void cow_pieces_offer(cow_dataset *dataset)
{
    cow_array *array = &dataset->array;
    bool writable = cow_file_writable(dataset->file) && !dataset->snapshot;

    array->known = dataset->root != COW_NO_NODE;
    array->pieces_least = writable ? dataset->file->options->pieces_least : 0;
    array->pieces_asked = dataset->file->options->pieces_least != COW_PIECES_DEFAULT;
    array->pieces_source =
        (cow_pieces_source){.context = dataset, .choose = writable ? choose : NULL, .open = open_pool, .leave = leave};
}
