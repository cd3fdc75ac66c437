/* Is the copy what the source is? See tree.h. It is asked before a copy takes the place of the only file there is, so
 * it reads everything again, from both, and knows nothing of how the copy was made but which path stands for which
 * object. */
#include "import/tree.h"

#include "base/error.h"
#include "base/ids.h"
#include "import/references.h"
#include "library/library.h"
#include "native/datatype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct comparison {
    cow_tree *tree;
    uint64_t *address; /* in the copy, by place; 0: has no path */
} comparison;

static int differs(cow_tree *tree, const char *what, const char *path)
{
    H5Eclear2(H5E_DEFAULT);
    if (tree->why[0] == '\0')
        snprintf(tree->why, sizeof tree->why, "%s '%.400s' came out differently in the copy", what, path);
    return -1;
}

/* ---- types and elements ---- */

bool cow_tree_same_type(hid_t a, hid_t b)
{
    H5T_class_t class = H5Tget_class(a);
    bool same = class == H5Tget_class(b) && H5Tget_size(a) == H5Tget_size(b);

    if (!same)
        return false;
    if (class == H5T_COMPOUND) {
        int members = H5Tget_nmembers(a);
        same = members == H5Tget_nmembers(b);
        for (int m = 0; same && m < members; m++) {
            char *name[2] = {H5Tget_member_name(a, (unsigned)m), H5Tget_member_name(b, (unsigned)m)};
            hid_t member[2] = {H5Tget_member_type(a, (unsigned)m), H5Tget_member_type(b, (unsigned)m)};
            same = name[0] != NULL && name[1] != NULL && strcmp(name[0], name[1]) == 0 &&
                   H5Tget_member_offset(a, (unsigned)m) == H5Tget_member_offset(b, (unsigned)m) &&
                   cow_tree_same_type(member[0], member[1]);
            for (int i = 0; i < 2; i++) {
                H5free_memory(name[i]);
                H5Tclose(member[i]);
            }
        }
        return same;
    }
    if (class == H5T_ARRAY || class == H5T_VLEN) {
        hid_t base[2] = {H5Tget_super(a), H5Tget_super(b)};
        hsize_t dims[2][H5S_MAX_RANK];
        same = cow_tree_same_type(base[0], base[1]);
        if (class == H5T_ARRAY) {
            int rank = H5Tget_array_ndims(a);
            same = same && rank == H5Tget_array_ndims(b) && H5Tget_array_dims2(a, dims[0]) == rank &&
                   H5Tget_array_dims2(b, dims[1]) == rank &&
                   memcmp(dims[0], dims[1], (size_t)rank * sizeof **dims) == 0;
        }
        H5Tclose(base[0]);
        H5Tclose(base[1]);
        return same;
    }
    if (class == H5T_STRING && H5Tis_variable_str(a) > 0) /* HDF5 calls those of two files different */
        return H5Tis_variable_str(b) > 0 && H5Tget_cset(a) == H5Tget_cset(b) && H5Tget_strpad(a) == H5Tget_strpad(b);
    if (class == H5T_REFERENCE)
        return (H5Tequal(a, H5T_STD_REF_OBJ) > 0) == (H5Tequal(b, H5T_STD_REF_OBJ) > 0) &&
               (H5Tequal(a, H5T_STD_REF_DSETREG) > 0) == (H5Tequal(b, H5T_STD_REF_DSETREG) > 0);
    return H5Tequal(a, b) > 0;
}

/* HDF5 writes one selection in different ways, as old as the file is. */
bool cow_tree_same_selection(hid_t a, hid_t b)
{
    hid_t space[2] = {a, b};
    hsize_t box[2][4][H5S_MAX_RANK] = {{{0}}}, *list[2] = {NULL, NULL};
    size_t count[2] = {0, 0}, wide;
    H5S_sel_type type;
    bool same;

    if (a < 0 || b < 0)
        return a < 0 && b < 0;
    type = H5Sget_select_type(a);
    if (type < 0 || type != H5Sget_select_type(b))
        return false;
    if (type != H5S_SEL_POINTS && type != H5S_SEL_HYPERSLABS)
        return true;
    if (H5Sget_simple_extent_ndims(a) != H5Sget_simple_extent_ndims(b))
        return false;
    if (type == H5S_SEL_HYPERSLABS && H5Sis_regular_hyperslab(a) > 0 && H5Sis_regular_hyperslab(b) > 0) {
        for (int i = 0; i < 2; i++)
            if (H5Sget_regular_hyperslab(space[i], box[i][0], box[i][1], box[i][2], box[i][3]) < 0)
                return false;
        return memcmp(box[0], box[1], sizeof box[0]) == 0;
    }
    for (int i = 0; i < 2; i++)
        if (cow_native_region_list(space[i], UINT64_MAX, &list[i], &count[i]) < 0)
            cow_error_clear();
    wide = (size_t)H5Sget_simple_extent_ndims(a) * (type == H5S_SEL_POINTS ? 1 : 2) * sizeof **list;
    same = list[0] != NULL && list[1] != NULL && count[0] == count[1] && memcmp(list[0], list[1], count[0] * wide) == 0;
    free(list[0]);
    free(list[1]);
    return same;
}

static bool same_region(hid_t a, hid_t b)
{
    return cow_tree_same_selection(a, b) && (a < 0 || cow_native_space_same_extent(a, b));
}

static bool same_reference(const comparison *c, hid_t type, void *a, void *b)
{
    cow_import_reference from, to = {.region = H5I_INVALID_HID};
    uint64_t place;
    bool same = false;

    if (cow_import_reference_look(c->tree->from, type, a, &from) == 0 &&
        cow_import_reference_look(c->tree->to, type, b, &to) == 0)
        switch (from.state) {
        case COW_REFERENCE_NULL:
        case COW_REFERENCE_DANGLES:
            same = to.state == COW_REFERENCE_NULL;
            break;
        case COW_REFERENCE_FOREIGN:
            same = to.state == COW_REFERENCE_FOREIGN && to.kind == from.kind && memcmp(a, b, sizeof(H5O_token_t)) == 0;
            break;
        case COW_REFERENCE_GOOD:
            if (!cow_map_get(&c->tree->places, cow_tree_address(&from.token), &place) || c->address[place] == 0) {
                same = to.state == COW_REFERENCE_NULL; /* no link leads to the object */
                break;
            }
            same = to.state == COW_REFERENCE_GOOD && to.kind == from.kind &&
                   c->address[place] == cow_tree_address(&to.token) && same_region(from.region, to.region) &&
                   (from.attribute == NULL) == (to.attribute == NULL) &&
                   (from.attribute == NULL || strcmp(from.attribute, to.attribute) == 0);
            break;
        }
    cow_import_reference_done(&from);
    cow_import_reference_done(&to);
    H5Eclear2(H5E_DEFAULT);
    return same;
}

/* 0: the same in both files, 1: not. */
static int differ_values(void *context, const cow_part *part, size_t count, void *a, void *b)
{
    const char *text[2];

    switch (part->kind) {
    case COW_PART_REFERENCE:
        return !same_reference(context, H5T_STD_REF, a, b);
    case COW_PART_OBJECT:
        return !same_reference(context, H5T_STD_REF_OBJ, a, b);
    case COW_PART_REGION:
        return !same_reference(context, H5T_STD_REF_DSETREG, a, b);
    case COW_PART_STRING:
        text[0] = *(char **)a;
        text[1] = *(char **)b;
        return text[0] == NULL || text[1] == NULL ? text[0] != text[1] : strcmp(text[0], text[1]) != 0;
    case COW_PART_SEQUENCE:
        return cow_sequence_length(a) != cow_sequence_length(b);
    case COW_PART_BYTES:
    case COW_PART_COMPOUND:
    case COW_PART_ARRAY:
        break;
    }
    return memcmp(a, b, count * part->size) != 0;
}

/* COUNT elements of TYPE, the same in both files. Where there is nothing to be followed, each byte, with the padding. */
static bool same_values(const comparison *c, hid_t type, size_t count, void *a, void *b)
{
    cow_part *part = cow_parts_open(NULL, type);
    bool same = part != NULL && cow_values_each(part, COW_PART_LENGTHS | COW_PART_REFERENCES, count, a, b,
                                                differ_values, (void *)(uintptr_t)c) == 0;

    cow_parts_close(part);
    return same;
}

typedef struct boxes {
    const comparison *c;
    hid_t dataset[2], type, space;
} boxes;

static int same_box(void *context, unsigned rank, const hsize_t start[], const hsize_t count[])
{
    boxes *b = context;
    hid_t memory = rank == 0 ? H5Scopy(b->space) : H5Screate_simple((int)rank, count, NULL);
    size_t elements = 1;
    void *value[2] = {NULL, NULL};
    int status = -1;

    for (unsigned d = 0; d < rank; d++)
        elements *= count[d];
    if (memory >= 0 && (rank == 0 || H5Sselect_hyperslab(b->space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0)) {
        status = 0;
        for (int i = 0; status == 0 && i < 2; i++)
            if ((value[i] = calloc(elements, H5Tget_size(b->type))) == NULL ||
                H5Dread(b->dataset[i], b->type, memory, b->space, H5P_DEFAULT, value[i]) < 0)
                status = -1;
        if (status == 0 && !same_values(b->c, b->type, elements, value[0], value[1]))
            status = -1;
        if (status == 0 && b->c->tree->progress != NULL)
            b->c->tree->progress(b->c->tree->context, elements * H5Tget_size(b->type));
        for (int i = 0; i < 2; i++)
            if (value[i] != NULL)
                cow_reclaim(b->type, memory, H5P_DEFAULT, value[i]);
    }
    free(value[0]);
    free(value[1]);
    if (memory >= 0)
        H5Sclose(memory);
    return status;
}

/* Chunks as they are stored: 1 the same, 0 not, or not known. */
static int same_encoded(const comparison *c, const hid_t dataset[2], const cow_tree_chunks *chunks)
{
    void *bytes[2] = {NULL, NULL};
    int same = 1;

    for (size_t i = 0; same && i < chunks->count; i++) {
        const cow_tree_chunk *chunk = &chunks->chunk[i];
        hsize_t size = 0;
        uint32_t mask[2] = {0, 0};
        free(bytes[0]);
        free(bytes[1]);
        bytes[0] = malloc(chunk->size);
        bytes[1] = malloc(chunk->size);
        same = bytes[0] != NULL && bytes[1] != NULL &&
               H5Dget_chunk_storage_size(dataset[1], chunk->offset, &size) >= 0 && size == chunk->size &&
               cow_library_read_chunk(dataset[0], chunk->offset, &mask[0], bytes[0], size) >= 0 &&
               cow_library_read_chunk(dataset[1], chunk->offset, &mask[1], bytes[1], size) >= 0 && mask[0] == mask[1] &&
               memcmp(bytes[0], bytes[1], size) == 0;
        if (same && c->tree->progress != NULL)
            c->tree->progress(c->tree->context, size);
    }
    free(bytes[0]);
    free(bytes[1]);
    return same;
}

static bool same_elements(const comparison *c, const hid_t dataset[2], hid_t stored_type, hid_t space, hid_t dcpl)
{
    cow_tree_chunks chunks[2] = {{0}};
    H5D_space_status_t allocated;
    hid_t type = H5Tcopy(stored_type);
    boxes b = {c, {dataset[0], dataset[1]}, type, space};
    size_t size = type < 0 ? 0 : H5Tget_size(type);
    uint64_t elements;
    bool same = false;

    if (type < 0 || H5Dget_space_status(dataset[0], &allocated) < 0 || cow_space_elements(space, &elements) < 0)
        goto done;
    /* Data that is elsewhere is not looked at; a dataset that holds nothing may be larger than any disk. */
    if (elements == 0 || H5Pget_layout(dcpl) == H5D_VIRTUAL || H5Pget_external_count(dcpl) > 0 ||
        allocated == H5D_SPACE_STATUS_NOT_ALLOCATED) {
        same = true;
        goto done;
    }
    if (H5Pget_layout(dcpl) != H5D_CHUNKED || cow_tree_list_chunks(dataset[0], dcpl, &chunks[0]) < 0 ||
        cow_tree_list_chunks(dataset[1], dcpl, &chunks[1]) < 0) {
        same = cow_tree_boxes(space, size, NULL, dcpl, same_box, &b) == 0;
        goto done;
    }
    same = (cow_type_has(type, COW_PART_LENGTHS | COW_PART_REFERENCES) == 0 && same_encoded(c, dataset, &chunks[0])) ||
           cow_tree_boxes(space, size, &chunks[0], dcpl, same_box, &b) == 0;
    if (same && chunks[1].count > chunks[0].count) /* what is nowhere in the source is fill value in the copy */
        same = cow_tree_boxes(space, size, &chunks[1], dcpl, same_box, &b) == 0;
done:
    free(chunks[0].chunk);
    free(chunks[1].chunk);
    if (type >= 0)
        H5Tclose(type);
    return same;
}

/* ---- creation properties ---- */

bool cow_tree_same_filters(const hid_t list[2])
{
    int count = H5Pget_nfilters(list[0]);

    if (count != H5Pget_nfilters(list[1]))
        return false;
    for (int i = 0; i < count; i++) {
        unsigned flags[2], config, values[2][64] = {{0}};
        size_t n[2] = {64, 64};
        H5Z_filter_t id[2];
        for (int k = 0; k < 2; k++)
            id[k] = H5Pget_filter2(list[k], (unsigned)i, &flags[k], &n[k], values[k], 0, NULL, &config);
        if (id[0] < 0 || id[0] != id[1] || flags[0] != flags[1])
            return false;
        /* these work out their parameters anew for each dataset */
        if (id[0] != H5Z_FILTER_SZIP && id[0] != H5Z_FILTER_NBIT && id[0] != H5Z_FILTER_SCALEOFFSET &&
            (n[0] != n[1] || memcmp(values[0], values[1], (n[0] < 64 ? n[0] : 64) * sizeof **values) != 0))
            return false;
    }
    return true;
}

/* What all kinds of objects have. */
static bool same_object_list(const hid_t list[2])
{
    unsigned order[2], most[2], least[2];
    hbool_t times[2];

    for (int i = 0; i < 2; i++)
        if (H5Pget_attr_creation_order(list[i], &order[i]) < 0 ||
            H5Pget_attr_phase_change(list[i], &most[i], &least[i]) < 0 ||
            H5Pget_obj_track_times(list[i], &times[i]) < 0)
            return false;
    return order[0] == order[1] && most[0] == most[1] && least[0] == least[1] && times[0] == times[1];
}

static bool same_group_list(const hid_t list[2])
{
    unsigned order[2], most[2], least[2];

    for (int i = 0; i < 2; i++)
        if (H5Pget_link_creation_order(list[i], &order[i]) < 0 ||
            H5Pget_link_phase_change(list[i], &most[i], &least[i]) < 0)
            return false;
    return order[0] == order[1] && most[0] == most[1] && least[0] == least[1];
}

static bool same_fill(const comparison *c, const hid_t list[2], hid_t type)
{
    H5D_fill_value_t defined[2];
    H5D_fill_time_t when[2];
    H5D_alloc_time_t alloc[2];
    void *value[2] = {NULL, NULL};
    bool same;

    for (int i = 0; i < 2; i++)
        if (H5Pfill_value_defined(list[i], &defined[i]) < 0 || H5Pget_fill_time(list[i], &when[i]) < 0 ||
            H5Pget_alloc_time(list[i], &alloc[i]) < 0)
            return false;
    same = defined[0] == defined[1] && when[0] == when[1] && alloc[0] == alloc[1];
    if (same && defined[0] == H5D_FILL_VALUE_USER_DEFINED) {
        hid_t memory = H5Tcopy(type), scalar = H5Screate(H5S_SCALAR);
        for (int i = 0; same && i < 2; i++)
            same = (value[i] = calloc(1, H5Tget_size(memory))) != NULL &&
                   H5Pget_fill_value(list[i], memory, value[i]) >= 0;
        same = same && same_values(c, memory, 1, value[0], value[1]);
        for (int i = 0; i < 2; i++)
            if (value[i] != NULL && cow_type_has(memory, COW_PART_LENGTHS) != 0)
                cow_reclaim(memory, scalar, H5P_DEFAULT, value[i]);
        free(value[0]);
        free(value[1]);
        H5Sclose(scalar);
        H5Tclose(memory);
    }
    return same;
}

bool cow_tree_same_layout(const hid_t list[2])
{
    H5D_layout_t layout = H5Pget_layout(list[0]);
    hsize_t chunk[2][H5S_MAX_RANK], size[2];
    unsigned options[2];
    size_t count[2];
    off_t offset[2];
    int external = H5Pget_external_count(list[0]), rank;
    char text[2][2][4096];
    bool same = layout == H5Pget_layout(list[1]) && external == H5Pget_external_count(list[1]);

    if (same && layout == H5D_CHUNKED)
        same = (rank = H5Pget_chunk(list[0], H5S_MAX_RANK, chunk[0])) > 0 &&
               rank == H5Pget_chunk(list[1], H5S_MAX_RANK, chunk[1]) &&
               memcmp(chunk[0], chunk[1], (size_t)rank * sizeof **chunk) == 0 &&
               H5Pget_chunk_opts(list[0], &options[0]) >= 0 && H5Pget_chunk_opts(list[1], &options[1]) >= 0 &&
               options[0] == options[1];
    for (int i = 0; same && i < external; i++) {
        for (int k = 0; k < 2; k++)
            same =
                same && H5Pget_external(list[k], (unsigned)i, sizeof text[k][0], text[k][0], &offset[k], &size[k]) >= 0;
        same = same && offset[0] == offset[1] && size[0] == size[1] &&
               strncmp(text[0][0], text[1][0], sizeof text[0][0]) == 0;
    }
    if (!same || layout != H5D_VIRTUAL)
        return same;
    same = H5Pget_virtual_count(list[0], &count[0]) >= 0 && H5Pget_virtual_count(list[1], &count[1]) >= 0 &&
           count[0] == count[1];
    for (size_t i = 0; same && i < count[0]; i++) {
        hid_t space[2][2]; /* of the dataset, whose extent HDF5 itself puts there when it is made; of the source */
        for (int k = 0; k < 2; k++) {
            same = same && H5Pget_virtual_filename(list[k], i, text[k][0], sizeof text[k][0]) >= 0 &&
                   H5Pget_virtual_dsetname(list[k], i, text[k][1], sizeof text[k][1]) >= 0;
            space[k][0] = H5Pget_virtual_vspace(list[k], i);
            space[k][1] = H5Pget_virtual_srcspace(list[k], i);
        }
        same = same && strcmp(text[0][0], text[1][0]) == 0 && strcmp(text[0][1], text[1][1]) == 0 && space[0][0] >= 0 &&
               space[1][0] >= 0 && cow_tree_same_selection(space[0][0], space[1][0]) &&
               same_region(space[0][1], space[1][1]);
        for (int k = 0; k < 4; k++)
            if (space[k / 2][k % 2] >= 0)
                H5Sclose(space[k / 2][k % 2]);
    }
    return same;
}

/* ---- objects ---- */

/* A type of the source that is named, named by the same object in the copy, and equal. */
static bool same_named_type(const comparison *c, const hid_t type[2])
{
    H5O_info2_t info[2];
    uint64_t place;

    if (!cow_tree_same_type(type[0], type[1]) || H5Tcommitted(type[0]) != H5Tcommitted(type[1]))
        return false;
    if (H5Tcommitted(type[0]) <= 0)
        return true;
    return H5Oget_info3(type[0], &info[0], H5O_INFO_BASIC) >= 0 &&
           H5Oget_info3(type[1], &info[1], H5O_INFO_BASIC) >= 0 &&
           cow_map_get(&c->tree->places, cow_tree_address(&info[0].token), &place) &&
           (c->address[place] == 0 || c->address[place] == cow_tree_address(&info[1].token));
}

/* How far a virtual dataset goes now HDF5 works out anew each time that it is opened, from the sources that it finds: the copy
 * may have others, as it is in another folder. */
static bool same_shape(const hid_t space[2], hid_t dcpl)
{
    hsize_t extent[H5S_MAX_RANK], most[2][H5S_MAX_RANK];
    int rank;

    if (space[0] < 0 || space[1] < 0)
        return false;
    if (dcpl < 0 || H5Pget_layout(dcpl) != H5D_VIRTUAL)
        return cow_native_space_same_extent(space[0], space[1]);
    rank = H5Sget_simple_extent_dims(space[0], extent, most[0]);
    return rank >= 0 && rank == H5Sget_simple_extent_dims(space[1], extent, most[1]) &&
           memcmp(most[0], most[1], (size_t)rank * sizeof **most) == 0;
}

static int same_dataset(const comparison *c, const hid_t dataset[2], const char *path)
{
    hid_t type[2], space[2], list[2];
    const char *what = NULL;

    for (int i = 0; i < 2; i++) {
        type[i] = H5Dget_type(dataset[i]);
        space[i] = H5Dget_space(dataset[i]);
        list[i] = H5Dget_create_plist(dataset[i]);
    }
    if (type[0] < 0 || type[1] < 0 || !same_named_type(c, type))
        what = "the type of";
    else if (!same_shape(space, list[0]))
        what = "the shape of";
    else if (list[0] < 0 || list[1] < 0 || !same_object_list(list) || !cow_tree_same_layout(list))
        what = "the layout of";
    else if (!cow_tree_same_filters(list))
        what = "the filters of";
    else if (!same_fill(c, list, type[0]))
        what = "the fill value of";
    else if (!same_elements(c, dataset, type[0], space[0], list[0]))
        what = "the data of";
    for (int i = 0; i < 2; i++)
        cow_close(type[i], space[i], list[i]);
    return what == NULL ? 0 : differs(c->tree, what, path);
}

static bool same_link(const comparison *c, const hid_t group[2], const char *path, const char *name,
                      const H5L_info2_t info[2])
{
    H5L_info2_t now[2];
    char *value[2] = {NULL, NULL};
    uint64_t place;
    bool same;

    (void)path;
    if (info[0].type != info[1].type || info[0].cset != info[1].cset || info[0].corder_valid != info[1].corder_valid)
        return false;
    if (info[0].type == H5L_TYPE_HARD)
        return cow_map_get(&c->tree->places, cow_tree_address(&info[0].u.token), &place) &&
               c->address[place] == cow_tree_address(&info[1].u.token);
    for (int i = 0; i < 2; i++)
        value[i] = cow_tree_link_value(c->tree, group[i], name, &info[i]);
    same = value[0] != NULL && value[1] != NULL && H5Lget_info2(group[0], name, &now[0], H5P_DEFAULT) >= 0 &&
           H5Lget_info2(group[1], name, &now[1], H5P_DEFAULT) >= 0 && now[0].u.val_size == now[1].u.val_size &&
           memcmp(value[0], value[1], now[0].u.val_size) == 0;
    free(value[0]);
    free(value[1]);
    return same;
}

static int same_group(const comparison *c, const hid_t group[2], const char *path)
{
    cow_tree_names names[2] = {{0}};
    hid_t list[2] = {H5Gget_create_plist(group[0]), H5Gget_create_plist(group[1])};
    const char *what = NULL;

    if (list[0] < 0 || list[1] < 0 || !same_object_list(list) || !same_group_list(list) || !cow_tree_same_filters(list))
        what = "the group";
    else if (cow_tree_links(group[0], &names[0]) < 0 || cow_tree_links(group[1], &names[1]) < 0 ||
             names[0].count != names[1].count)
        what = "the links of";
    for (size_t i = 0; what == NULL && i < names[0].count; i++) {
        const H5L_info2_t info[2] = {names[0].entry[i].link, names[1].entry[i].link};
        if (strcmp(names[0].entry[i].name, names[1].entry[i].name) != 0 ||
            !same_link(c, group, path, names[0].entry[i].name, info))
            what = "the links of";
    }
    for (int i = 0; i < 2; i++) {
        cow_tree_names_free(&names[i]);
        if (list[i] >= 0)
            H5Pclose(list[i]);
    }
    return what == NULL ? 0 : differs(c->tree, what, path);
}

static bool same_attribute(const comparison *c, const hid_t object[2], const char *name)
{
    hid_t attribute[2], type[2], space[2], list[2], memory = H5I_INVALID_HID;
    void *value[2] = {NULL, NULL};
    H5T_cset_t set[2];
    bool same = true;

    for (int i = 0; i < 2; i++) {
        attribute[i] = H5Aopen(object[i], name, H5P_DEFAULT);
        type[i] = attribute[i] < 0 ? H5I_INVALID_HID : H5Aget_type(attribute[i]);
        space[i] = attribute[i] < 0 ? H5I_INVALID_HID : H5Aget_space(attribute[i]);
        list[i] = attribute[i] < 0 ? H5I_INVALID_HID : H5Aget_create_plist(attribute[i]);
        same = same && type[i] >= 0 && space[i] >= 0 && list[i] >= 0 && H5Pget_char_encoding(list[i], &set[i]) >= 0;
    }
    same = same && set[0] == set[1] && same_named_type(c, type) && cow_native_space_same_extent(space[0], space[1]);
    if (same && H5Sget_simple_extent_npoints(space[0]) > 0) {
        size_t count = (size_t)H5Sget_simple_extent_npoints(space[0]);
        memory = H5Tcopy(type[0]);
        for (int i = 0; same && i < 2; i++) {
            same = memory >= 0 && (value[i] = calloc(count, H5Tget_size(memory))) != NULL &&
                   H5Aread(attribute[i], memory, value[i]) >= 0;
        }
        same = same && same_values(c, memory, count, value[0], value[1]);
        for (int i = 0; i < 2; i++) {
            if (value[i] != NULL)
                cow_reclaim(memory, space[0], H5P_DEFAULT, value[i]);
            free(value[i]);
        }
    }
    if (memory >= 0)
        H5Tclose(memory);
    for (int i = 0; i < 2; i++)
        cow_close(list[i], space[i], type[i], attribute[i]);
    return same;
}

static int by_name(const void *a, const void *b)
{
    const cow_tree_entry *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static bool same_comment(const hid_t object[2])
{
    char *text[2] = {NULL, NULL};
    bool same = true;

    for (int i = 0; i < 2; i++) {
        ssize_t length = H5Oget_comment(object[i], NULL, 0);
        same = same && length >= 0 && (text[i] = calloc(1, (size_t)length + 1)) != NULL &&
               (length == 0 || H5Oget_comment(object[i], text[i], (size_t)length + 1) >= 0);
    }
    same = same && strcmp(text[0], text[1]) == 0;
    free(text[0]);
    free(text[1]);
    return same;
}

static int same_object(const comparison *c, const cow_tree_object *known)
{
    const char *path = known->path;
    hid_t object[2] = {H5Oopen(c->tree->from, path, H5P_DEFAULT), H5Oopen(c->tree->to, path, H5P_DEFAULT)};
    cow_tree_names names[2] = {{0}};
    H5O_info2_t info[2];
    int status = -1;

    for (int i = 0; i < 2; i++)
        if (object[i] < 0 || H5Oget_info3(object[i], &info[i], H5O_INFO_ALL) < 0) {
            differs(c->tree, "the object", path);
            goto done;
        }
    if (info[0].type != info[1].type || (info[0].type != H5O_TYPE_NAMED_DATATYPE && info[0].rc != info[1].rc) ||
        info[0].atime != info[1].atime || info[0].mtime != info[1].mtime || info[0].ctime != info[1].ctime ||
        info[0].btime != info[1].btime) {
        differs(c->tree, "the object", path);
        goto done;
    }
    if (!same_comment(object)) {
        differs(c->tree, "the comment of", path);
        goto done;
    }
    if (cow_tree_attributes(object[0], &names[0]) < 0 || cow_tree_attributes(object[1], &names[1]) < 0 ||
        names[0].count != names[1].count) {
        differs(c->tree, "the attributes of", path);
        goto done;
    }
    for (int i = 0; names[0].unordered && names[0].count > 0 && i < 2; i++)
        qsort(names[i].entry, names[i].count, sizeof *names[i].entry, by_name);
    for (size_t i = 0; i < names[0].count; i++)
        if (strcmp(names[0].entry[i].name, names[1].entry[i].name) != 0 ||
            !same_attribute(c, object, names[0].entry[i].name)) {
            char what[300];
            snprintf(what, sizeof what, "the attribute '%.200s' of", names[0].entry[i].name);
            differs(c->tree, what, path);
            goto done;
        }
    if (info[0].type == H5O_TYPE_GROUP)
        status = same_group(c, object, path);
    else if (info[0].type == H5O_TYPE_DATASET)
        status = same_dataset(c, object, path);
    else
        status = cow_tree_same_type(object[0], object[1]) ? 0 : differs(c->tree, "the named type", path);
done:
    for (int i = 0; i < 2; i++) {
        cow_tree_names_free(&names[i]);
        if (object[i] >= 0)
            H5Oclose(object[i]);
    }
    return status;
}

int cow_tree_compare(cow_tree *tree)
{
    comparison c = {tree, calloc(tree->objects + 1, sizeof *c.address)};
    cow_map seen = {0};
    uint64_t other;
    int status = 0;

    if (c.address == NULL)
        return cow_tree_no_memory(tree);
    for (size_t i = 0; status == 0 && i < tree->objects; i++) {
        H5O_info2_t info;
        if (tree->object[i].path == NULL)
            continue;
        if (H5Oget_info_by_name3(tree->to, tree->object[i].path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
            status = differs(tree, "the object", tree->object[i].path);
            break;
        }
        c.address[i] = cow_tree_address(&info.token);
        if (cow_map_get(&seen, c.address[i], &other))
            status = differs(tree, "the object", tree->object[i].path); /* two became one */
        else if (cow_map_put(&seen, c.address[i], i) < 0)
            status = cow_tree_no_memory(tree);
    }
    for (size_t i = 0; status == 0 && i < tree->objects; i++)
        if (tree->object[i].path != NULL)
            status = same_object(&c, &tree->object[i]);
    cow_map_free(&seen);
    free(c.address);
    return status;
}
