/* Attributes through the native connector: listing, copying and comparing them, whatever their type. See native.h.
 *
 * A copied attribute keeps type, space, creation properties and value. Object references keep their bytes, that is,
 * they go on naming objects of the head.
 */
#include "native/native.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "library/library.h"
#include "native/datatype.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

int cow_native_attribute_number(cow_loc object, const char *name, int64_t *number)
{
    H5VL_attr_get_args_t args = {.op_type = H5VL_ATTR_GET_INFO};
    H5A_info_t info;

    args.args.get_info.loc_params = cow_by_name(object.type, ".");
    args.args.get_info.attr_name = name;
    args.args.get_info.ainfo = &info;
    if (H5VLattr_get(object.object, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get information about the attribute '%s'", name);
    *number = info.corder_valid ? (int64_t)info.corder : -1;
    return 0;
}

typedef struct listed {
    char *name;
    int64_t number;
} listed;

static int by_number(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number) : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const listed *x = a, *y = b;
    return strcmp(x->name, y->name);
}

/* The name of attribute N, in HDF5's own order; free() it. In any other order HDF5 reads and sorts all attributes of the
 * object for each question. */
static char *attribute_name(cow_loc object, hsize_t n)
{
    H5VL_attr_get_args_t args = {.op_type = H5VL_ATTR_GET_NAME};
    H5VL_loc_params_t *loc = &args.args.get_name.loc_params;
    size_t length = 0;
    char local[256], *name;

    loc->obj_type = object.type;
    loc->type = H5VL_OBJECT_BY_IDX;
    loc->loc_data.loc_by_idx.name = ".";
    loc->loc_data.loc_by_idx.idx_type = H5_INDEX_NAME;
    loc->loc_data.loc_by_idx.order = H5_ITER_NATIVE;
    loc->loc_data.loc_by_idx.n = n;
    loc->loc_data.loc_by_idx.lapl_id = H5P_LINK_ACCESS_DEFAULT;
    args.args.get_name.buf = local;
    args.args.get_name.buf_size = sizeof local;
    args.args.get_name.attr_name_len = &length;
    if (H5VLattr_get(object.object, cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("cannot read the name of attribute %llu", (unsigned long long)n);
        return NULL;
    }
    if ((name = malloc(length + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the name of an attribute");
        return NULL;
    }
    if (length < sizeof local)
        return memcpy(name, local, length + 1);
    args.args.get_name.buf = name;
    args.args.get_name.buf_size = length + 1;
    if (H5VLattr_get(object.object, cow_native_id(), &args, DXPL, NULL) < 0) {
        free(name);
        cow_error_native("cannot read the name of attribute %llu", (unsigned long long)n);
        return NULL;
    }
    return name;
}

typedef struct attribute_list {
    listed *attribute;
    size_t count, room;
} attribute_list;

static void forget_attributes(attribute_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->attribute[i].name);
    list->count = 0;
}

static int add_attribute(attribute_list *list, char *name, int64_t number)
{
    if (name == NULL || COW_RESERVE(list->attribute, list->room, list->count, 1) < 0) {
        free(name);
        return cow_error(COW_MEMORY, "no memory for the names of the attributes");
    }
    list->attribute[list->count++] = (listed){name, number};
    return 0;
}

static herr_t add_met(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object;
    return add_attribute(context, strdup(name), info->corder_valid ? (int64_t)info->corder : -1);
}

/* By one walk: 0. Else nothing is listed. Asked for the name of one attribute, HDF5 walks from the first one to it. */
static int walk_attributes(cow_loc object, attribute_list *list)
{
    H5VL_attr_specific_args_t args = {.op_type = H5VL_ATTR_ITER};
    H5VL_loc_params_t self = cow_by_self(object.type);
    herr_t status;

    if (object.type == H5I_DATATYPE || cow_native_list_begin() < 0)
        return -1;
    args.args.iterate.idx_type = H5_INDEX_NAME;
    args.args.iterate.order = H5_ITER_NATIVE;
    args.args.iterate.op = add_met;
    args.args.iterate.op_data = list;
    H5E_BEGIN_TRY
    {
        status = H5VLattr_specific(object.object, &self, cow_native_id(), &args, DXPL, NULL);
    }
    H5E_END_TRY
    cow_native_list_end();
    if (status == 0)
        return 0;
    cow_error_clear();
    forget_attributes(list);
    return -1;
}

/* One by one. */
static int ask_for_attributes(cow_loc object, bool numbers, hsize_t count, attribute_list *list)
{
    for (hsize_t n = 0; n < count; n++) {
        char *name = attribute_name(object, n);
        int64_t number = 0;

        if (name == NULL)
            return -1;
        if (numbers && cow_native_attribute_number(object, name, &number) < 0) {
            free(name);
            return -1;
        }
        if (add_attribute(list, name, number) < 0)
            return -1;
    }
    return 0;
}

int cow_native_attributes(cow_loc object, bool by_creation, cow_attribute_visitor *visitor, void *context)
{
    H5O_info2_t info;
    attribute_list list = {0};
    int status = 0;

    if (cow_native_info(object, NULL, H5O_INFO_NUM_ATTRS, &info) < 0)
        return -1;
    if (info.num_attrs < COW_LIST_FROM || walk_attributes(object, &list) < 0)
        status = ask_for_attributes(object, by_creation, info.num_attrs, &list);
    if (status == 0 && list.count > 1)
        qsort(list.attribute, list.count, sizeof *list.attribute, by_creation ? by_number : by_name);
    for (size_t i = 0; status == 0 && i < list.count; i++)
        status = visitor(context, list.attribute[i].name);
    forget_attributes(&list);
    free(list.attribute);
    return status;
}

/* An open attribute with its ids and, once loaded, its value in memory. */
typedef struct attribute {
    void *object;
    hid_t type, space, acpl;
    hsize_t elements;
    size_t size; /* of an element in memory */
    void *value;
} attribute;

int cow_native_attribute_exists(cow_loc at, const char *name)
{
    H5VL_attr_specific_args_t args = {.op_type = H5VL_ATTR_EXISTS};
    H5VL_loc_params_t loc = cow_by_self(at.type);
    hbool_t exists = false;

    args.args.exists.name = name;
    args.args.exists.exists = &exists;
    if (H5VLattr_specific(at.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot look for the attribute '%s'", name);
    return exists;
}

static void attribute_close(attribute *a)
{
    if (a->value != NULL && a->elements > 0)
        cow_reclaim(a->type, a->space, DXPL, a->value);
    free(a->value);
    cow_close(a->type, a->space, a->acpl);
    if (a->object != NULL)
        H5VLattr_close(a->object, cow_native_id(), DXPL, NULL);
}

/* Opens and reads. Close with attribute_close whatever the answer. */
static int attribute_load(cow_loc at, const char *name, attribute *a)
{
    H5VL_loc_params_t loc = cow_by_self(at.type);
    H5VL_attr_get_args_t args;
    hssize_t n;

    *a = (attribute){.type = H5I_INVALID_HID, .space = H5I_INVALID_HID, .acpl = H5I_INVALID_HID};
    if ((a->object = H5VLattr_open(at.object, &loc, cow_native_id(), name, H5P_ATTRIBUTE_ACCESS_DEFAULT, DXPL, NULL)) ==
        NULL)
        return cow_error_native("cannot open the attribute '%s'", name);
    args.op_type = H5VL_ATTR_GET_TYPE;
    if (H5VLattr_get(a->object, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the type of the attribute '%s'", name);
    a->type = args.args.get_type.type_id;
    args.op_type = H5VL_ATTR_GET_SPACE;
    if (H5VLattr_get(a->object, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the space of the attribute '%s'", name);
    a->space = args.args.get_space.space_id;
    args.op_type = H5VL_ATTR_GET_ACPL;
    if (H5VLattr_get(a->object, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the creation properties of the attribute '%s'", name);
    a->acpl = args.args.get_acpl.acpl_id;
    if ((n = H5Sget_simple_extent_npoints(a->space)) < 0 || (a->size = H5Tget_size(a->type)) == 0)
        return cow_error_native("cannot get the size of the attribute '%s'", name);
    if (n == 0)
        return 0;
    if ((a->value = calloc((size_t)n, a->size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the attribute '%s'", name);
    if (H5VLattr_read(a->object, cow_native_id(), a->type, a->value, DXPL, NULL) < 0)
        return cow_error_native("cannot read the attribute '%s'", name);
    a->elements = (hsize_t)n;
    return 0;
}

hid_t cow_native_type_placeless(hid_t type)
{
    size_t size = 0;
    void *bytes = NULL;
    hid_t copy = H5I_INVALID_HID;

    if (H5Tencode(type, NULL, &size) >= 0 && (bytes = malloc(size)) != NULL && H5Tencode(type, bytes, &size) >= 0)
        copy = cow_library_decode_type(bytes, size);
    free(bytes);
    return copy < 0 ? cow_error_native("cannot describe a datatype anew") : copy;
}

hid_t cow_native_space_placeless(hid_t space)
{
    H5S_class_t class = H5Sget_simple_extent_type(space);
    hsize_t extent[H5S_MAX_RANK], maximum[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, maximum);
    hid_t copy = class == H5S_SIMPLE ? H5Screate_simple(rank, extent, maximum) : H5Screate(class);

    return copy < 0 ? cow_error_native("cannot describe a dataspace anew") : copy;
}

/* Filters one by one, since H5Pdecode leaks their names (1.14.5). */
/* LIST gets its fill value as one of TYPE, which has no pointers; whatever it was set as may have some. */
static int settle_fill(hid_t list, hid_t type)
{
    void *value = malloc(H5Tget_size(type) + 1);
    int status = value != NULL && H5Pget_fill_value(list, type, value) >= 0 && H5Pset_fill_value(list, type, value) >= 0
                     ? 0
                     : -1;

    free(value);
    return status;
}

int cow_native_dcpl_for_any_bounds(hid_t dcpl)
{
    H5D_layout_t layout = H5Pget_layout(dcpl);
    H5D_alloc_time_t before, after;
    hsize_t chunk[H5S_MAX_RANK];
    unsigned options;
    int rank;
    bool good;

    if (layout != H5D_COMPACT && layout != H5D_CONTIGUOUS && layout != H5D_CHUNKED)
        return 0;
    good = H5Pget_alloc_time(dcpl, &before) >= 0;
    if (layout == H5D_CHUNKED)
        good = good && (rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk)) >= 0 &&
               H5Pget_chunk_opts(dcpl, &options) >= 0 && H5Pset_chunk(dcpl, rank, chunk) >= 0 &&
               (options == 0 || H5Pset_chunk_opts(dcpl, options) >= 0);
    else
        good = good && H5Pset_layout(dcpl, layout) >= 0;
    /* to set the layout may set when space is allocated */
    if (good && H5Pget_alloc_time(dcpl, &after) >= 0 && (after == before || H5Pset_alloc_time(dcpl, before) >= 0))
        return 0;
    return cow_error_native("cannot put together the creation properties of a dataset");
}

hid_t cow_native_dcpl_placeless(hid_t dcpl, hid_t type)
{
    size_t size = 0;
    void *bytes = NULL;
    hid_t copy = H5I_INVALID_HID, bare = H5I_INVALID_HID;
    H5D_fill_value_t fill;
    unsigned options;
    const bool user = H5Pfill_value_defined(dcpl, &fill) >= 0 && fill == H5D_FILL_VALUE_USER_DEFINED;

    /* a fill value with pointers in it would be encoded as these, and is never such a message */
    if (user && cow_type_has(type, COW_PART_LENGTHS | COW_PART_REFERENCE) != 0)
        copy = H5Pcopy(dcpl);
    else if ((bare = H5Pcopy(dcpl)) >= 0 && (!user || settle_fill(bare, type) == 0) &&
             (H5Pget_nfilters(bare) == 0 || H5Premove_filter(bare, H5Z_FILTER_ALL) >= 0) &&
             H5Pencode2(bare, NULL, &size, H5P_DEFAULT) >= 0 && (bytes = malloc(size)) != NULL &&
             H5Pencode2(bare, bytes, &size, H5P_DEFAULT) >= 0)
        copy = H5Pdecode(bytes);
    free(bytes);
    /* what the encoded form has no room for */
    if (copy >= 0 && bare >= 0 &&
        (cow_native_filters_add(copy, dcpl) < 0 ||
         (H5Pget_layout(dcpl) == H5D_CHUNKED &&
          (H5Pget_chunk_opts(dcpl, &options) < 0 || (options != 0 && H5Pset_chunk_opts(copy, options) < 0))))) {
        H5Pclose(copy);
        copy = H5I_INVALID_HID;
    }
    cow_close(bare);
    return copy < 0 ? cow_error_native("cannot describe creation properties anew") : copy;
}

bool cow_native_space_same_extent(hid_t a, hid_t b)
{
    hsize_t extent[2][H5S_MAX_RANK], most[2][H5S_MAX_RANK];
    int rank;
    size_t size;

    if (H5Sextent_equal(a, b) > 0)
        return true;
    if (H5Sget_simple_extent_type(a) != H5S_SIMPLE || H5Sget_simple_extent_type(b) != H5S_SIMPLE ||
        (rank = H5Sget_simple_extent_dims(a, extent[0], most[0])) < 0 ||
        rank != H5Sget_simple_extent_dims(b, extent[1], most[1]))
        return false;
    size = (size_t)rank * sizeof **extent;
    return memcmp(extent[0], extent[1], size) == 0 && memcmp(most[0], most[1], size) == 0;
}

int cow_native_attribute_copy(cow_loc from, const char *name, cow_loc to, cow_type_of *type_of,
                              cow_values_change *change, void *context)
{
    H5VL_loc_params_t loc = cow_by_self(to.type);
    attribute a;
    void *copy;
    hid_t type = H5I_INVALID_HID, space = H5I_INVALID_HID; /* of the copy */
    int status = -1;

    if (attribute_load(from, name, &a) < 0 || (space = cow_native_space_placeless(a.space)) < 0 ||
        (type = H5Tcommitted(a.type) > 0 ? type_of(context, a.type) : cow_native_type_placeless(a.type)) < 0)
        goto done;
    if ((copy = H5VLattr_create(to.object, &loc, cow_native_id(), name, type, space, a.acpl,
                                H5P_ATTRIBUTE_ACCESS_DEFAULT, DXPL, NULL)) == NULL) {
        cow_error_native("cannot create the attribute '%s'", name);
        goto done;
    }
    if ((change != NULL ? change(context, a.type, a.elements, a.value)
                        : cow_native_references_lend(a.type, a.elements, a.value)) == 0)
        status = a.elements > 0 && H5VLattr_write(copy, cow_native_id(), a.type, a.value, DXPL, NULL) < 0
                     ? cow_error_native("cannot write the attribute '%s'", name)
                     : 0;
    if (H5VLattr_close(copy, cow_native_id(), DXPL, NULL) < 0)
        status = cow_error_native("cannot close the attribute '%s'", name);
done:
    cow_close(type, space);
    attribute_close(&a);
    return status;
}

typedef struct reading {
    cow_loc object;
    cow_attribute_values *visitor;
    void *context;
} reading;

static int read_one(void *context, const char *name)
{
    reading *r = context;
    attribute a;
    int status = attribute_load(r->object, name, &a);

    if (status == 0)
        status = r->visitor(r->context, name, a.type, a.elements, a.value);
    attribute_close(&a);
    return status;
}

int cow_native_attributes_read(cow_loc object, cow_attribute_values *visitor, void *context)
{
    reading r = {object, visitor, context};

    return cow_native_attributes(object, false, read_one, &r);
}

hid_t cow_native_attribute_type(cow_loc object, const char *name)
{
    H5VL_loc_params_t loc = cow_by_self(object.type);
    H5VL_attr_get_args_t args = {.op_type = H5VL_ATTR_GET_TYPE};
    void *a = H5VLattr_open(object.object, &loc, cow_native_id(), name, H5P_ATTRIBUTE_ACCESS_DEFAULT, DXPL, NULL);
    hid_t type = H5I_INVALID_HID;

    if (a == NULL || H5VLattr_get(a, cow_native_id(), &args, DXPL, NULL) < 0)
        cow_error_native("cannot get the type of the attribute '%s'", name);
    else
        type = args.args.get_type.type_id;
    if (a != NULL)
        H5VLattr_close(a, cow_native_id(), DXPL, NULL);
    return type;
}

/* H5Requal is not for what was never written, and does not look at what a region selects: two of these are never the same. */
static bool references_differ(const H5R_ref_t *a, const H5R_ref_t *b)
{
    bool written = cow_native_reference_is_written(a);

    if (!written || !cow_native_reference_is_written(b))
        return written != cow_native_reference_is_written(b);
    return H5Rget_type(a) == H5R_DATASET_REGION2 || H5Requal(a, b) <= 0;
}

/* 0: the same, pointers followed; 1: not. */
static int differ(void *context, const cow_part *part, size_t count, void *a, void *b)
{
    H5R_ref_t reference[2];
    const char *x, *y;

    (void)context;
    switch (part->kind) {
    case COW_PART_STRING:
        memcpy(&x, a, sizeof x);
        memcpy(&y, b, sizeof y);
        return x != y && (x == NULL || y == NULL || strcmp(x, y) != 0);
    case COW_PART_SEQUENCE:
        return cow_sequence_length(a) != cow_sequence_length(b);
    case COW_PART_REFERENCE:
        memcpy(&reference[0], a, sizeof *reference);
        memcpy(&reference[1], b, sizeof *reference);
        return references_differ(&reference[0], &reference[1]);
    case COW_PART_BYTES:
    case COW_PART_OBJECT:
    case COW_PART_REGION:
    case COW_PART_COMPOUND:
    case COW_PART_ARRAY:
        break;
    }
    return memcmp(a, b, count * part->size) != 0;
}

/* As far as their values may be compared: 1, 0, -1. H5Tequal does not ask which types are named. */
static int made_alike(const attribute *x, const attribute *y, cow_named_types_same *same, void *context)
{
    bool named = H5Tcommitted(x->type) > 0;
    H5T_cset_t set[2];

    if (H5Pget_char_encoding(x->acpl, &set[0]) < 0 || H5Pget_char_encoding(y->acpl, &set[1]) < 0)
        return cow_error_native("cannot get the character set of an attribute's name");
    if (set[0] != set[1] || named != (H5Tcommitted(y->type) > 0) || H5Tequal(x->type, y->type) <= 0 ||
        !cow_native_space_same_extent(x->space, y->space))
        return 0;
    return named ? same(context, x->type, y->type) : 1;
}

int cow_native_values_equal(hid_t a, hid_t b, size_t n, void *x, void *y)
{
    cow_part *part = cow_parts_open(NULL, a), *other = cow_parts_open(NULL, b);
    int equal = -1;

    if (part != NULL && other != NULL) /* member by member: nobody compares padding */
        equal = cow_parts_strings_same(part, other) && cow_values_each(part, ~0u, n, x, y, differ, NULL) == 0;
    cow_parts_close(part);
    cow_parts_close(other);
    return equal;
}

int cow_native_attribute_equal(cow_loc a, cow_loc b, const char *name, cow_named_types_same *same, void *context)
{
    attribute x = {.type = H5I_INVALID_HID, .space = H5I_INVALID_HID, .acpl = H5I_INVALID_HID}, y = x;
    int status = cow_native_attribute_exists(b, name);

    if (status <= 0)
        return status;
    status = -1;
    if (attribute_load(a, name, &x) == 0 && attribute_load(b, name, &y) == 0 &&
        (status = made_alike(&x, &y, same, context)) > 0)
        status = cow_native_values_equal(x.type, y.type, x.elements, x.value, y.value);
    attribute_close(&x);
    attribute_close(&y);
    return status;
}

/* The named type at LOC if its last count but one could go, with a count more; else it is NULL. *OPENED: to be closed. */
static int hold_type(void *at, const H5VL_loc_params_t *loc, cow_loc *type, bool *opened)
{
    H5O_info2_t info;
    H5VL_object_get_args_t get = {.op_type = H5VL_OBJECT_GET_INFO};

    *type = (cow_loc){NULL, H5I_DATATYPE};
    *opened = loc->type != H5VL_OBJECT_BY_SELF;
    get.args.get_info.oinfo = &info;
    get.args.get_info.fields = H5O_INFO_BASIC;
    if ((!*opened && loc->obj_type != H5I_DATATYPE) ||
        H5VLobject_get(at, loc, cow_native_id(), &get, DXPL, NULL) < 0 || /* the call itself will say so */
        info.type != H5O_TYPE_NAMED_DATATYPE || info.rc != 2)
        return 0;
    type->object = *opened ? H5VLobject_open(at, loc, cow_native_id(), &type->type, DXPL, NULL) : at;
    if (type->object == NULL)
        return cow_error_native("cannot open a named datatype");
    if (cow_native_change_references(*type, 1) == 0)
        return 0;
    if (*opened && cow_native_close(*type) < 0)
        cow_error_clear();
    return -1;
}

herr_t cow_native_attribute_remove(void *at, const H5VL_loc_params_t *loc, H5VL_attr_specific_args_t *args, hid_t dxpl,
                                   void **req)
{
    cow_loc type;
    bool opened;
    herr_t status;

    if (hold_type(at, loc, &type, &opened) < 0)
        return -1;
    status = H5VLattr_specific(at, loc, cow_native_id(), args, dxpl, req);
    if (type.object != NULL) {
        hid_t stack = cow_errors_take(); /* what follows would clear it */
        if (cow_native_change_references(type, -1) < 0 || (opened && cow_native_close(type) < 0))
            status = -1;
        cow_errors_give_back(stack);
    }
    return status;
}

int cow_native_attribute_delete(cow_loc object, const char *name)
{
    H5VL_attr_specific_args_t args = {.op_type = H5VL_ATTR_DELETE};
    H5VL_loc_params_t loc = cow_by_self(object.type);

    args.args.del.name = name;
    if (cow_native_attribute_remove(object.object, &loc, &args, DXPL, NULL) < 0)
        return cow_error_native("cannot delete the attribute '%s'", name);
    return 0;
}

int cow_native_attribute_put(cow_loc object, const char *name, hid_t type, const void *value)
{
    H5VL_loc_params_t loc = cow_by_self(object.type);
    int exists = cow_native_attribute_exists(object, name), status = -1;
    hid_t space = H5I_INVALID_HID;
    void *a;

    if (exists < 0)
        return -1;
    if (exists)
        a = H5VLattr_open(object.object, &loc, cow_native_id(), name, H5P_ATTRIBUTE_ACCESS_DEFAULT, DXPL, NULL);
    else {
        space = H5Screate(H5S_SCALAR);
        a = H5VLattr_create(object.object, &loc, cow_native_id(), name, type, space, H5P_ATTRIBUTE_CREATE_DEFAULT,
                            H5P_ATTRIBUTE_ACCESS_DEFAULT, DXPL, NULL);
    }
    if (a == NULL || H5VLattr_write(a, cow_native_id(), type, value, DXPL, NULL) < 0)
        cow_error_native("cannot write the attribute '%s'", name);
    else
        status = 0;
    if (a != NULL && H5VLattr_close(a, cow_native_id(), DXPL, NULL) < 0)
        status = cow_error_native("cannot close the attribute '%s'", name);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* 0: the attribute is one value of TYPE. */
static int attribute_is(void *a, const char *name, hid_t type)
{
    H5VL_attr_get_args_t args = {.op_type = H5VL_ATTR_GET_TYPE};
    hid_t own = H5I_INVALID_HID, space = H5I_INVALID_HID;
    int status = -1;

    if (H5VLattr_get(a, cow_native_id(), &args, DXPL, NULL) >= 0) {
        own = args.args.get_type.type_id;
        args.op_type = H5VL_ATTR_GET_SPACE;
        if (H5VLattr_get(a, cow_native_id(), &args, DXPL, NULL) >= 0)
            space = args.args.get_space.space_id;
    }
    if (own < 0 || space < 0)
        cow_error_native("cannot look at the attribute '%s'", name);
    else if (H5Tequal(own, type) <= 0 || H5Sget_simple_extent_type(space) != H5S_SCALAR)
        cow_error(COW_CORRUPT,
                  "the attribute '%s' is not the one number that it should be: the file is damaged, or its group was "
                  "made by another program, which reads it without h5cow",
                  name);
    else
        status = 0;
    cow_close(space, own);
    return status;
}

int cow_native_attribute_get(cow_loc object, const char *name, hid_t type, void *value)
{
    H5VL_loc_params_t loc = cow_by_self(object.type);
    int exists = cow_native_attribute_exists(object, name), status = -1;
    void *a;

    if (exists <= 0)
        return exists;
    a = H5VLattr_open(object.object, &loc, cow_native_id(), name, H5P_ATTRIBUTE_ACCESS_DEFAULT, DXPL, NULL);
    if (a == NULL)
        cow_error_native("cannot open the attribute '%s'", name);
    else if (attribute_is(a, name, type) == 0)
        status = H5VLattr_read(a, cow_native_id(), type, value, DXPL, NULL) < 0
                     ? cow_error_native("cannot read the attribute '%s'", name)
                     : 1;
    if (a != NULL && H5VLattr_close(a, cow_native_id(), DXPL, NULL) < 0)
        status = cow_error_native("cannot close the attribute '%s'", name);
    return status;
}
