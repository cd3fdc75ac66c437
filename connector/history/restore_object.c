/* What an object of the head is in itself becomes what its snapshot is: attributes, comment, elements. */
#include "history/restore.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/header.h"
#include "history/head_index.h"
#include "history/internal.h"
#include "native/datatype.h"

#include <stdlib.h>
#include <string.h>

/* ---- header ---- */

/* The head's own type for one of the version, as an id to create with. */
static hid_t head_type(void *context, hid_t named)
{
    cow_restoring *r = context;
    H5O_token_t token;
    cow_loc type;

    if (cow_native_named_token(named, &token) < 0 || cow_restoring_head(r, cow_address(&token), &token) < 0 ||
        cow_native_open_token(r->file->loc, &token, &type) < 0)
        return H5I_INVALID_HID;
    return cow_native_type_id(type);
}

static int is_same_type(void *context, hid_t head, hid_t snapshot)
{
    H5O_token_t token[2];

    return cow_native_named_token(head, &token[0]) < 0 || cow_native_named_token(snapshot, &token[1]) < 0 ||
                   cow_restoring_head(context, cow_address(&token[1]), &token[1]) < 0
               ? -1
               : cow_address(&token[0]) == cow_address(&token[1]);
}

static hid_t creation_of(cow_loc object)
{
    return object.type == H5I_GROUP     ? cow_native_group_gcpl(object.object)
           : object.type == H5I_DATASET ? cow_native_dataset_dcpl(object.object)
                                        : cow_native_type_tcpl(object);
}

int cow_restore_header(cow_restoring *r, const cow_restored_pair *pair, bool *changed)
{
    hid_t creation = creation_of(pair->head);
    unsigned order = 0;
    H5O_info2_t info;
    int differs, status = -1;

    if (creation < 0)
        return -1;
    if (H5Pget_attr_creation_order(creation, &order) < 0) {
        cow_error_native("cannot get the creation properties of an object");
        goto done;
    }
    order &= H5P_CRT_ORDER_TRACKED;
    status = differs = cow_header_differs(pair->head, pair->snapshot, order != 0, is_same_type, r);
    if (differs <= 0)
        goto done;
    *changed = true;
    if (cow_native_info(pair->snapshot, NULL, H5O_INFO_BASIC, &info) < 0 ||
        cow_sum_check(r->file, &info.token, COW_CHANGED_ATTRIBUTES) < 0)
        status = -1;
    else if (r->dry)
        status = 0;
    else
        status = cow_restoring_note(r, &pair->token, 1u << COW_CHANGED_ATTRIBUTES) < 0
                     ? -1
                     : cow_header_restore(pair->head, pair->snapshot, order != 0, is_same_type, head_type, r);
done:
    H5Pclose(creation);
    return status;
}

/* ---- elements of versioned datasets ---- */

static int lead_to(cow_restoring *r, const cow_restored_pair *pair, cow_dataset *source, cow_layout_dataset_row *row)
{
    hsize_t extent[COW_MAX_RANK];

    for (unsigned d = 0; d < source->array.grid.rank; d++)
        extent[d] = source->array.extent[d];
    if (cow_restoring_note(r, &pair->token, 1u << COW_CHANGED_DATA) < 0 ||
        cow_head_lead(r->file, source->id, source->root, false) < 0 ||
        cow_native_dataset_resize(pair->head.object, extent) < 0 ||
        ((row->flags & COW_FLAG_NATIVE) && cow_head_index_follow(row->head, source->id, row->root, source) < 0))
        return -1;
    row->root = source->root;
    return cow_dataset_row_write(r->file, source->id, row);
}

/* The head's row names the version's root record: no chunk and no node is touched. */
static int restore_versioned(cow_restoring *r, const cow_restored_pair *pair, cow_dataset *source, bool *changed)
{
    cow_layout_dataset_row row;

    if (cow_dataset_row_read(r->file, source->id, &row) < 0)
        return -1;
    if (row.head != cow_address(&pair->token))
        return cow_error(COW_CORRUPT, "%s: %s: the version names the content of another dataset; try: h5cow verify",
                         r->file->name, pair->path);
    if (row.root == source->root)
        return 0;
    *changed = true;
    return r->dry ? 0 : lead_to(r, pair, source, &row);
}

/* ---- elements that HDF5 keeps itself ---- */

/* By their checksums, where both have one. */
static bool same_sums(const cow_restoring *r, const cow_restored_pair *pair, uint64_t snapshot)
{
    const cow_layout_snapshot_row *row = cow_snapshots_of_head(r->file, cow_address(&pair->token));
    const uint64_t newest = row == NULL ? 0 : row->elements; /* the row is valid until the next one is looked for */

    return !r->distrust && newest != 0 && (row = cow_snapshots_made(r->file, snapshot)) != NULL &&
           row->elements == newest;
}

/* A null pointer has the checksum of an empty string. */
static bool holds_strings(void *dataset)
{
    hid_t type = cow_native_dataset_type(dataset);
    bool holds = type < 0 || (cow_type_is_heap(type, true) && H5Tdetect_class(type, H5T_STRING) != 0);

    cow_close(type);
    return holds;
}

#define MOST                                                                                                           \
    ((size_t)1                                                                                                         \
     << 20) /* bytes of a dataset that is compared; a larger one is copied, where its checksum is another one */

/* All of a dataset that may be read at once; free() *VALUES, after they were reclaimed. */
static int read_all(void *dataset, hid_t type, size_t n, void **values)
{
    size_t size = n * H5Tget_size(type);

    if ((*values = calloc(1, size + 1)) == NULL)
        return cow_error(COW_MEMORY, "no memory to compare a dataset");
    if (n == 0 || cow_native_dataset_read(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *values) == 0)
        return 0;
    free(*values);
    *values = NULL;
    return -1;
}

/* SPACE: the extent of both. 1, 0, -1 */
static int equal_elements(const cow_restoring *r, const cow_restored_pair *pair, hid_t dcpl, hid_t space, size_t most)
{
    hid_t type = cow_native_dataset_type(pair->head.object);
    void *now = NULL, *then = NULL;
    uint64_t elements;
    size_t n[2];
    int equal = -1;

    if (type < 0)
        return -1;
    if (cow_space_elements(space, &elements) < 0) {
        cow_error_native("cannot get the size of a dataset");
        goto done;
    }
    equal = 0;
    if (elements > most / H5Tget_size(type))
        goto done;
    equal = -1;
    if (cow_sum_fits(r->file->name, r->file->loc, pair->head.object, dcpl, type, space, &n[0]) < 0 ||
        cow_sum_fits(r->file->name, r->file->loc, pair->snapshot.object, dcpl, type, space, &n[1]) < 0)
        goto done;
    if (read_all(pair->head.object, type, n[0], &now) == 0 && read_all(pair->snapshot.object, type, n[0], &then) == 0)
        equal = cow_native_values_equal(type, type, n[0], now, then);
    if (now != NULL && n[0] > 0)
        cow_reclaim(type, space, H5P_DEFAULT, now);
    if (then != NULL && n[0] > 0)
        cow_reclaim(type, space, H5P_DEFAULT, then);
done:
    free(now);
    free(then);
    H5Tclose(type);
    return equal;
}

/* ELSEWHERE: its elements are in no version. MOVED: the extent differs. */
static int write_native(cow_restoring *r, const cow_restored_pair *pair, hid_t space, bool elsewhere, bool moved)
{
    hsize_t extent[H5S_MAX_RANK];
    H5O_info2_t info;

    if (cow_native_info(pair->snapshot, NULL, H5O_INFO_BASIC, &info) < 0 ||
        (!elsewhere && cow_sum_check(r->file, &info.token, COW_CHANGED_DATA) < 0))
        return -1;
    if (r->dry)
        return 0;
    if (H5Sget_simple_extent_dims(space, extent, NULL) < 0)
        return cow_error_native("cannot describe a snapshot");
    if (cow_restoring_note(r, &pair->token, 1u << COW_CHANGED_DATA) < 0 ||
        (moved && cow_native_dataset_resize(pair->head.object, extent) < 0))
        return -1;
    return elsewhere ? 0 : cow_copy_elements_over(r->file->name, pair->snapshot.object, pair->head.object);
}

static int restore_native(cow_restoring *r, const cow_restored_pair *pair, bool *changed)
{
    hid_t dcpl = cow_native_dataset_dcpl(pair->head.object), space = cow_native_dataset_space(pair->snapshot.object),
          now = cow_native_dataset_space(pair->head.object);
    H5O_info2_t info;
    bool moved, elsewhere;
    int same = 1, status = -1;

    if (dcpl >= 0 && space >= 0 && now >= 0 && cow_native_info(pair->snapshot, NULL, H5O_INFO_BASIC, &info) == 0) {
        moved = !cow_native_space_same_extent(space, now);
        elsewhere = cow_lies_elsewhere(dcpl);
        if (!moved && !elsewhere) {
            const bool sums = same_sums(r, pair, cow_address(&info.token));

            if (!sums || holds_strings(pair->head.object))
                same = equal_elements(r, pair, dcpl, space, sums ? SIZE_MAX : MOST);
        }
        status = same < 0 ? -1 : 0;
        if (status == 0 && (moved || !same)) {
            *changed = true;
            status = write_native(r, pair, space, elsewhere, moved);
        }
    }
    cow_close(now, space, dcpl);
    return status;
}

int cow_restore_elements(cow_restoring *r, const cow_restored_pair *pair, bool *changed)
{
    cow_dataset *source;
    int status;

    if (cow_dataset_attach(r->file, pair->snapshot.object, false, &source) < 0)
        return -1;
    if (source == NULL)
        return restore_native(r, pair, changed);
    status = restore_versioned(r, pair, source, changed);
    cow_dataset_release(source);
    return status;
}
