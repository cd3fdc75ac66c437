/* Types, attributes and elements of datasets from one file to another; references are translated. See tree.h. */
#include "import/tree.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "import/references.h"
#include "library/library.h"
#include "native/datatype.h"
#include "native/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)32 << 20)

/* ---- types ---- */

hid_t cow_tree_type(cow_tree *tree, hid_t type)
{
    const cow_tree_object *known;
    H5O_info2_t info;

    if (H5Tcommitted(type) <= 0 || H5Oget_info3(type, &info, H5O_INFO_BASIC) < 0) {
        H5Eclear2(H5E_DEFAULT);
        return cow_native_type_placeless(type);
    }
    if ((known = cow_tree_find(tree, &info.token)) != NULL && known->path != NULL)
        return H5Topen2(tree->to, known->path, H5P_DEFAULT);
    if (known != NULL)
        return H5Iinc_ref(known->pending) < 0 ? H5I_INVALID_HID : known->pending;
    /* Its own link comes later: made now without one, and kept open until then. */
    hid_t new = cow_native_type_placeless(type), tcpl = H5Tget_create_plist(type);
    if (new < 0 || tcpl < 0 || H5Tcommit_anon(tree->to, new, tcpl, H5P_DEFAULT) < 0) {
        if (new >= 0)
            H5Tclose(new);
        new = H5I_INVALID_HID;
    } else if (cow_tree_remember(tree, &info.token, NULL, H5O_TYPE_NAMED_DATATYPE, new, false) < 0)
        new = H5I_INVALID_HID;
    else
        H5Iinc_ref(new);
    if (tcpl >= 0)
        H5Pclose(tcpl);
    return new;
}

/* ---- references that are null in the copy ---- */

/* COUNT more of them are in ATTRIBUTE, or, if that is NULL, in the elements of the object PATH. */
static void note_nulls(cow_tree_nulls *nulls, size_t count, const char *path, const char *attribute)
{
    size_t used = strlen(nulls->where), room = sizeof nulls->where - used;
    const char *comma = used == 0 ? "" : ", ";
    int length;

    if (count == 0)
        return;
    length = attribute == NULL ? snprintf(nulls->where + used, room, "%sthe dataset '%s' (%zu)", comma, path, count)
                               : snprintf(nulls->where + used, room, "%sthe attribute '%s' of '%s' (%zu)", comma,
                                          attribute, path, count);
    /* The first ones are named: after one that does not fit, none is. */
    if (length > 0 && (size_t)length < room && nulls->named == nulls->places)
        nulls->named++;
    else
        nulls->where[used] = '\0';
    nulls->places++;
}

cow_tree_null_counts cow_tree_nulls_now(const cow_tree *tree)
{
    return (cow_tree_null_counts){tree->dangling.count, tree->stray.count};
}

void cow_tree_nulls_since(cow_tree *tree, cow_tree_null_counts before, const char *path, const char *attribute)
{
    note_nulls(&tree->dangling, tree->dangling.count - before.dangling, path, attribute);
    note_nulls(&tree->stray, tree->stray.count - before.stray, path, attribute);
}

/* ---- attributes ---- */

int cow_tree_copy_attribute(cow_tree *tree, hid_t from, hid_t to, const char *path, const char *name)
{
    hid_t source = H5Aopen(from, name, H5P_DEFAULT), target = H5I_INVALID_HID;
    hid_t type = H5I_INVALID_HID, memory = H5I_INVALID_HID, new = H5I_INVALID_HID, space = H5I_INVALID_HID,
          acpl = H5I_INVALID_HID, extent = H5I_INVALID_HID;
    const cow_tree_null_counts before = cow_tree_nulls_now(tree);
    void *value = NULL;
    bool read = false;
    int status = -1;

    if (source < 0 || (type = H5Aget_type(source)) < 0 || (space = H5Aget_space(source)) < 0 ||
        (acpl = H5Aget_create_plist(source)) < 0 || (memory = H5Tcopy(type)) < 0 ||
        (new = cow_tree_type(tree, type)) < 0 || (extent = cow_native_space_placeless(space)) < 0 ||
        (target = H5Acreate2(to, name, new, extent, acpl, H5P_DEFAULT)) < 0)
        goto done;
    if (H5Sget_simple_extent_npoints(space) > 0) {
        size_t count = (size_t)H5Sget_simple_extent_npoints(space);
        if ((value = calloc(count, H5Tget_size(memory))) == NULL) {
            cow_tree_no_memory(tree);
            goto done;
        }
        if (H5Aread(source, memory, value) < 0)
            goto done;
        read = true;
        if (cow_tree_references(tree, memory, count, value) < 0 || H5Awrite(target, memory, value) < 0)
            goto done;
    }
    cow_tree_nulls_since(tree, before, path, name);
    status = 0;
done:
    if (status < 0) {
        char what[300];
        snprintf(what, sizeof what, "the attribute '%.200s' of", name);
        cow_tree_failed(tree, what, path);
    }
    if (read)
        cow_reclaim(memory, space, H5P_DEFAULT, value);
    free(value);
    if (target >= 0 && H5Aclose(target) < 0 && status == 0)
        status = cow_tree_failed(tree, "an attribute of", path);
    cow_close(acpl, extent, space, new, memory, type, source);
    return status;
}

int cow_tree_copy_attributes(cow_tree *tree, hid_t from, hid_t to, const char *path)
{
    cow_tree_names names = {0};
    int status = cow_tree_attributes(from, &names) < 0 ? cow_tree_failed(tree, "the attributes of", path) : 0;

    for (size_t i = 0; status == 0 && i < names.count; i++)
        status = cow_tree_copy_attribute(tree, from, to, path, names.entry[i].name);
    cow_tree_names_free(&names);
    return status;
}

/* ---- elements ---- */

static int add_chunk(cow_tree_chunks *s, const hsize_t *offset, hsize_t size)
{
    if (COW_RESERVE(s->chunk, s->room, s->count, 1) < 0)
        return -1;
    s->chunk[s->count] = (cow_tree_chunk){.size = size};
    memcpy(s->chunk[s->count++].offset, offset, s->rank * sizeof *offset);
    return 0;
}

static herr_t note_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    (void)mask;
    (void)address;
    return add_chunk(context, offset, size);
}

typedef struct asking {
    hid_t dataset;
    cow_tree_chunks *chunks;
} asking;

static int ask_for_chunk(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    asking *a = context;
    hsize_t size;

    (void)rank;
    (void)count;
    if (H5Dget_chunk_storage_size(a->dataset, start, &size) < 0)
        return cow_native_chunk_was_missing() ? 0 : -1;
    return add_chunk(a->chunks, start, size);
}

/* Then each place is asked for. */
static bool is_listed_wrong(hid_t dataset, hid_t space)
{
    H5D_chunk_index_t index;

    return H5Dget_chunk_index_type(dataset, &index) < 0 || cow_native_chunks_listed_wrong(index, space);
}

int cow_tree_list_chunks(hid_t dataset, hid_t dcpl, cow_tree_chunks *chunks)
{
    hsize_t chunk[H5S_MAX_RANK];
    int rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk), status = -1;
    hid_t space = H5Dget_space(dataset), stack;
    asking a = {dataset, chunks};

    *chunks = (cow_tree_chunks){.rank = rank < 0 ? 0 : (unsigned)rank};
    if (rank > 0 && space >= 0)
        status = is_listed_wrong(dataset, space) ? cow_boxes(space, chunk, ask_for_chunk, &a)
                 : H5Dchunk_iter(dataset, H5P_DEFAULT, note_chunk, chunks) < 0 ? -1
                                                                               : 0;
    stack = cow_errors_take(); /* closing would clear it */
    cow_close(space);
    cow_errors_give_back(stack);
    return status;
}

bool cow_tree_fills(hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    bool fills = cow_native_fills(dcpl);

    cow_close(dcpl);
    return fills;
}

herr_t cow_tree_write_chunk(hid_t to, bool fills, uint32_t mask, const hsize_t *offset, size_t size, const void *bytes)
{
    static const unsigned char two[2];
    hsize_t former = 0; /* left unset by HDF5 where nothing is allocated: then the write fills the dataset first */

    if (fills)
        H5E_BEGIN_TRY
        {
            /* refused where chunks are decoded at once, which get their mask anyway */
            if (H5Dget_chunk_storage_size(to, offset, &former) < 0 || former == 0 || former == size)
                H5Dwrite_chunk(to, H5P_DEFAULT, mask, offset, size > 1 ? size - 1 : sizeof two, size > 1 ? bytes : two);
        }
    H5E_END_TRY
    return H5Dwrite_chunk(to, H5P_DEFAULT, mask, offset, size, bytes);
}

static int copy_encoded(cow_tree *tree, hid_t from, hid_t to, const cow_tree_chunks *stored)
{
    size_t room = 0;
    uint8_t *bytes = NULL;
    bool fills = cow_tree_fills(to);
    int status = 0;

    for (size_t i = 0; status == 0 && i < stored->count; i++) {
        const cow_tree_chunk *c = &stored->chunk[i];
        uint32_t mask = 0;
        if (COW_RESERVE(bytes, room, 0, c->size) < 0 ||
            cow_library_read_chunk(from, c->offset, &mask, bytes, c->size) < 0 ||
            cow_tree_write_chunk(to, fills, mask, c->offset, c->size, bytes) < 0)
            status = -1;
        else if (tree->progress != NULL)
            tree->progress(tree->context, c->size);
    }
    free(bytes);
    return status;
}

int cow_tree_boxes(hid_t space, size_t element, const cow_tree_chunks *chunks, hid_t dcpl, cow_box_visitor *visit,
                   void *context)
{
    hsize_t extent[H5S_MAX_RANK], box[H5S_MAX_RANK], count[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, NULL);

    if (chunks == NULL)
        return cow_box_of(space, BLOCK_BYTES / element, box) < 0 ? -1 : cow_boxes(space, box, visit, context);
    if (rank < 0 || H5Pget_chunk(dcpl, rank, box) != rank)
        return -1;
    for (size_t i = 0; i < chunks->count; i++) {
        const hsize_t *offset = chunks->chunk[i].offset;
        bool inside = true;
        for (int d = 0; d < rank; d++) {
            inside = inside && offset[d] < extent[d];
            if (inside)
                count[d] = extent[d] - offset[d] < box[d] ? extent[d] - offset[d] : box[d];
        }
        if (inside && visit(context, (unsigned)rank, offset, count) < 0)
            return -1;
    }
    return 0;
}

typedef struct copying {
    cow_tree *tree;
    hid_t from, to, type, space;
} copying;

static int copy_box(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    copying *c = context;
    hid_t memory = rank == 0 ? H5Scopy(c->space) : H5Screate_simple((int)rank, count, NULL), stack;
    size_t elements = 1;
    void *buffer = NULL;
    int status = -1;

    for (unsigned d = 0; d < rank; d++)
        elements *= count[d];
    if (memory >= 0 && (buffer = calloc(elements, H5Tget_size(c->type))) == NULL)
        cow_tree_no_memory(c->tree);
    else if (memory >= 0 &&
             (rank == 0 || H5Sselect_hyperslab(c->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0) &&
             H5Dread(c->from, c->type, memory, c->space, H5P_DEFAULT, buffer) >= 0) {
        if (cow_tree_references(c->tree, c->type, elements, buffer) == 0 &&
            H5Dwrite(c->to, c->type, memory, c->space, H5P_DEFAULT, buffer) >= 0) {
            status = 0;
            if (c->tree->progress != NULL)
                c->tree->progress(c->tree->context, elements * H5Tget_size(c->type));
        }
        stack = cow_errors_take(); /* what follows would clear it */
        cow_reclaim(c->type, memory, H5P_DEFAULT, buffer);
        cow_errors_give_back(stack);
    }
    free(buffer);
    if (memory >= 0) {
        stack = cow_errors_take();
        H5Sclose(memory);
        cow_errors_give_back(stack);
    }
    return status;
}

int cow_tree_copy_elements(cow_tree *tree, hid_t from, hid_t to, const char *path)
{
    hid_t stored_type = H5Dget_type(from), type = H5I_INVALID_HID, space = H5I_INVALID_HID, dcpl = H5I_INVALID_HID;
    cow_tree_chunks stored = {0};
    const cow_tree_null_counts before = cow_tree_nulls_now(tree);
    H5D_space_status_t allocated;
    uint64_t elements;
    int status = -1;

    if (stored_type < 0 || (type = H5Tcopy(stored_type)) < 0 || (space = H5Dget_space(from)) < 0 ||
        (dcpl = H5Dget_create_plist(from)) < 0 || H5Dget_space_status(from, &allocated) < 0 ||
        cow_space_elements(space, &elements) < 0)
        goto done;
    /* Nothing was ever written: nothing is stored in the copy either. The data of external files and of virtual
     * datasets is not in this file. */
    status = 0;
    tree->virtual += H5Pget_layout(dcpl) == H5D_VIRTUAL;
    tree->external += H5Pget_external_count(dcpl) > 0;
    if (elements == 0 || allocated == H5D_SPACE_STATUS_NOT_ALLOCATED || H5Pget_layout(dcpl) == H5D_VIRTUAL ||
        H5Pget_external_count(dcpl) > 0)
        goto done;
    copying c = {tree, from, to, type, space};
    size_t element = H5Tget_size(type);
    if (H5Pget_layout(dcpl) != H5D_CHUNKED || cow_tree_list_chunks(from, dcpl, &stored) < 0)
        status = cow_tree_boxes(space, element, NULL, dcpl, copy_box, &c);
    else if (cow_type_has(type, COW_PART_LENGTHS | COW_PART_REFERENCES) != 0 ||
             copy_encoded(tree, from, to, &stored) < 0)
        status = cow_tree_boxes(space, element, &stored, dcpl, copy_box, &c);
    cow_tree_nulls_since(tree, before, path, NULL);
done:
    if (status < 0)
        cow_tree_failed(tree, "the data of", path);
    free(stored.chunk);
    cow_close(dcpl, space, type, stored_type);
    return status;
}
