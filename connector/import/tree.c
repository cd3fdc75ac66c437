/* Making the objects and links of the new file. See tree.h.
 *
 * Group by group, links in the order of their creation where that is recorded. Attributes, and elements that hold
 * references, come last: what they point to must exist.
 */
#include "import/tree.h"

#include "base/error.h"
#include "base/ids.h"
#include "native/datatype.h"
#include "native/native.h"
#include "native/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- objects ---- */

/* One by one: the list that HDF5 gives for a group with many links also holds the addresses of that group's heap and
 * B-tree (1.14.5), and a group made with it would take them for its own. */
int cow_tree_group_settings(hid_t group, hid_t new)
{
    hid_t old = H5Gget_create_plist(group);
    unsigned links, names, order, attributes, most[2], least[2];
    hbool_t times;
    size_t hint;
    bool good =
        old >= 0 && H5Pget_est_link_info(old, &links, &names) >= 0 && H5Pset_est_link_info(new, links, names) >= 0 &&
        H5Pget_local_heap_size_hint(old, &hint) >= 0 && H5Pset_local_heap_size_hint(new, hint) >= 0 &&
        H5Pget_link_phase_change(old, &most[0], &least[0]) >= 0 &&
        H5Pset_link_phase_change(new, most[0], least[0]) >= 0 && H5Pget_link_creation_order(old, &order) >= 0 &&
        H5Pset_link_creation_order(new, order) >= 0 && H5Pget_attr_phase_change(old, &most[1], &least[1]) >= 0 &&
        H5Pset_attr_phase_change(new, most[1], least[1]) >= 0 && H5Pget_attr_creation_order(old, &attributes) >= 0 &&
        H5Pset_attr_creation_order(new, attributes) >= 0 && H5Pget_obj_track_times(old, &times) >= 0 &&
        H5Pset_obj_track_times(new, times) >= 0;

    for (int i = 0, n = good ? H5Pget_nfilters(old) : 0; good && i < n; i++) {
        unsigned flags, config, values[20];
        size_t count = sizeof values / sizeof *values;
        H5Z_filter_t id = H5Pget_filter2(old, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        good = id >= 0 && count <= sizeof values / sizeof *values && H5Pset_filter(new, id, flags, count, values) >= 0;
    }
    hid_t stack = cow_errors_take(); /* closing would clear it */
    if (old >= 0)
        H5Pclose(old);
    cow_errors_give_back(stack);
    return good ? 0 : -1;
}

static int make_group(cow_tree *tree, hid_t from, const char *path, hid_t lcpl)
{
    hid_t gcpl = H5Pcreate(H5P_GROUP_CREATE);
    hid_t group = gcpl < 0 || cow_tree_group_settings(from, gcpl) < 0
                      ? H5I_INVALID_HID
                      : H5Gcreate2(tree->to, path, lcpl, gcpl, H5P_DEFAULT);
    int status = group < 0 ? cow_tree_failed(tree, "the group", path) : 0;

    cow_close(group, gcpl);
    return status;
}

static int make_type(cow_tree *tree, hid_t from, const char *path, hid_t lcpl)
{
    hid_t tcpl = H5I_INVALID_HID, type = H5I_INVALID_HID;
    int status = 0;

    if ((tcpl = H5Tget_create_plist(from)) < 0 || (type = cow_native_type_placeless(from)) < 0 ||
        H5Tcommit2(tree->to, path, type, lcpl, tcpl, H5P_DEFAULT) < 0)
        status = cow_tree_failed(tree, "the named type", path);
    cow_close(type, tcpl);
    return status;
}

hid_t cow_tree_dataset(hid_t to, const char *path, hid_t type, hid_t space, hid_t lcpl, hid_t dcpl)
{
    hsize_t extent[H5S_MAX_RANK];
    hid_t dataset = H5I_INVALID_HID, first = cow_native_space_placeless(space),
          list = cow_native_dcpl_placeless(dcpl, type), own = H5I_INVALID_HID, stack;
    int grows;

    if (first >= 0 && list >= 0 && H5Sget_simple_extent_dims(space, extent, NULL) >= 0 &&
        (grows = cow_native_space_at_first(list, first)) >= 0 && (own = cow_pipeline_computed(list)) >= 0 &&
        (dataset = H5Dcreate2(to, path, type, first, lcpl, own, H5P_DEFAULT)) >= 0 && grows &&
        H5Dset_extent(dataset, extent) < 0) {
        H5Dclose(dataset);
        dataset = H5I_INVALID_HID;
    }
    stack = cow_errors_take(); /* closing would clear it */
    cow_close(own, list, first);
    cow_errors_give_back(stack);
    return dataset;
}

static int make_dataset(cow_tree *tree, hid_t from, const char *path, hid_t lcpl, bool *data_later)
{
    hid_t type = H5I_INVALID_HID, space = H5I_INVALID_HID, dcpl = H5I_INVALID_HID, new = H5I_INVALID_HID,
          dataset = H5I_INVALID_HID;
    int status = -1;

    /* one after the other: each call forgets why the one before failed */
    if ((type = H5Dget_type(from)) < 0 || (space = H5Dget_space(from)) < 0 || (dcpl = H5Dget_create_plist(from)) < 0 ||
        (new = cow_tree_type(tree, type)) < 0 ||
        (dataset = cow_tree_dataset(tree->to, path, new, space, lcpl, dcpl)) < 0) {
        cow_tree_failed(tree, "the dataset", path);
        goto done;
    }
    *data_later = cow_type_has(type, COW_PART_REFERENCES) != 0;
    if (!*data_later && cow_tree_copy_elements(tree, from, dataset, path) < 0)
        goto done;
    status = 0;
done:
    if (dataset >= 0 && H5Dclose(dataset) < 0 && status == 0)
        status = cow_tree_failed(tree, "the dataset", path);
    cow_close(new, dcpl, space, type);
    return status;
}

/* ---- links ---- */

/* HDF5 gives out the value of a user-defined link only through a class, and the programs that have one are not here. */
static int stand_in(cow_tree *tree, H5L_type_t type)
{
    int made = cow_native_link_class_stand_in(type);

    if (made > 0)
        tree->stand_in[type] = true;
    return made < 0 ? -1 : 0;
}

char *cow_tree_link_value(cow_tree *tree, hid_t group, const char *name, const H5L_info2_t *info)
{
    H5L_info2_t now = *info;
    char *value;

    /* the size is known only through the class as well */
    if (stand_in(tree, info->type) < 0 || H5Lget_info2(group, name, &now, H5P_DEFAULT) < 0)
        return NULL;
    if ((value = calloc(1, now.u.val_size + 1)) == NULL ||
        (now.u.val_size > 0 && H5Lget_val(group, name, value, now.u.val_size, H5P_DEFAULT) < 0)) {
        free(value);
        return NULL;
    }
    return value;
}

/* A link to an object that the copy has already. */
static int link_again(cow_tree *tree, size_t place, const char *path, hid_t lcpl)
{
    cow_tree_object *known = &tree->object[place];

    if (known->path != NULL) {
        if (H5Lcreate_hard(tree->to, known->path, tree->to, path, lcpl, H5P_DEFAULT) < 0)
            return cow_tree_failed(tree, "the link", path);
        return 0;
    }
    if (H5Olink(known->pending, tree->to, path, lcpl, H5P_DEFAULT) < 0)
        return cow_tree_failed(tree, "the named type", path);
    H5Tclose(known->pending);
    known->pending = H5I_INVALID_HID;
    return (known->path = strdup(path)) == NULL ? cow_tree_no_memory(tree) : 0;
}

static int copy_hard(cow_tree *tree, hid_t group, const char *name, const char *path, hid_t lcpl)
{
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    bool data_later = false;
    H5O_info2_t info;
    uint64_t place;
    char *kept;
    int status = -1;

    if (object < 0 || H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) {
        cow_tree_failed(tree, "the object", path);
        goto done;
    }
    if (cow_map_get(&tree->places, cow_tree_address(&info.token), &place)) {
        status = link_again(tree, (size_t)place, path, lcpl);
        goto done;
    }
    switch (info.type) {
    case H5O_TYPE_GROUP:
        status = make_group(tree, object, path, lcpl);
        break;
    case H5O_TYPE_DATASET:
        status = make_dataset(tree, object, path, lcpl, &data_later);
        break;
    case H5O_TYPE_NAMED_DATATYPE:
        status = make_type(tree, object, path, lcpl);
        break;
    case H5O_TYPE_MAP:
    case H5O_TYPE_UNKNOWN:
    case H5O_TYPE_NTYPES:
        snprintf(tree->why, sizeof tree->why, "'%.400s' is of a kind that this program does not know", path);
        break;
    }
    if (status == 0)
        status = (kept = strdup(path)) == NULL
                     ? cow_tree_no_memory(tree)
                     : cow_tree_remember(tree, &info.token, kept, info.type, H5I_INVALID_HID, data_later);
done:
    if (object >= 0)
        H5Oclose(object);
    return status;
}

static int copy_valued(cow_tree *tree, hid_t group, const char *name, const H5L_info2_t *info, const char *path,
                       hid_t lcpl)
{
    char *value = cow_tree_link_value(tree, group, name, info);
    const char *file, *object;
    H5L_info2_t now;
    unsigned flags;
    int status = -1;

    if (value == NULL || H5Lget_info2(group, name, &now, H5P_DEFAULT) < 0)
        goto done;
    if (info->type == H5L_TYPE_SOFT)
        status = H5Lcreate_soft(value, tree->to, path, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
    else if (info->type == H5L_TYPE_EXTERNAL)
        status = H5Lunpack_elink_val(value, now.u.val_size, &flags, &file, &object) < 0 ||
                         H5Lcreate_external(file, object, tree->to, path, lcpl, H5P_DEFAULT) < 0
                     ? -1
                     : 0;
    else
        status = H5Lcreate_ud(tree->to, path, info->type, value, now.u.val_size, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
done:
    if (status < 0)
        cow_tree_failed(tree, "the link", path);
    free(value);
    return status;
}

static int copy_group(cow_tree *tree, const char *path)
{
    hid_t group = H5I_INVALID_HID, lcpl = H5Pcreate(H5P_LINK_CREATE);
    cow_tree_names links = {0};
    int status = 0;

    if (lcpl < 0 || (group = H5Gopen2(tree->from, path, H5P_DEFAULT)) < 0 || cow_tree_links(group, &links) < 0)
        status = cow_tree_failed(tree, "the group", path);
    for (size_t i = 0; status == 0 && i < links.count; i++) {
        const char *name = links.entry[i].name;
        const H5L_info2_t *info = &links.entry[i].link;
        char *child = cow_tree_join(path, name);
        H5Pset_char_encoding(lcpl, info->cset);
        if (child == NULL)
            status = cow_tree_no_memory(tree);
        else
            status = info->type == H5L_TYPE_HARD ? copy_hard(tree, group, name, child, lcpl)
                                                 : copy_valued(tree, group, name, info, child, lcpl);
        free(child);
    }
    cow_tree_names_free(&links);
    cow_close(lcpl, group);
    return status;
}

static int copy_comment(hid_t from, hid_t to)
{
    ssize_t length = H5Oget_comment(from, NULL, 0);
    char *comment;
    int status;

    if (length <= 0)
        return length < 0 ? -1 : 0;
    if ((comment = calloc(1, (size_t)length + 1)) == NULL)
        return -1;
    status = H5Oget_comment(from, comment, (size_t)length + 1) < 0 || H5Oset_comment(to, comment) < 0 ? -1 : 0;
    free(comment);
    return status;
}

/* References that are not links, which applications count with H5Oincr_refcount. */
static int copy_count(hid_t from, hid_t to)
{
    H5O_info2_t info[2];

    if (H5Oget_info3(from, &info[0], H5O_INFO_BASIC) < 0 || H5Oget_info3(to, &info[1], H5O_INFO_BASIC) < 0)
        return -1;
    for (unsigned n = info[1].rc; info[0].type != H5O_TYPE_NAMED_DATATYPE && n < info[0].rc; n++)
        if (H5Oincr_refcount(to) < 0)
            return -1;
    return 0;
}

/* Attributes, comment, and the elements that had to wait. OBJECT must not be used afterwards: attributes may bring
 * types that had no link. */
static int finish_object(cow_tree *tree, size_t place)
{
    const cow_tree_object object = tree->object[place];
    const char *path = object.path == NULL ? "(a named type without a link)" : object.path;
    hid_t from = H5Oopen_by_token(tree->from, object.token), to = object.pending;
    int status = -1;

    if (from < 0 || (object.path != NULL && (to = H5Oopen(tree->to, path, H5P_DEFAULT)) < 0))
        cow_tree_failed(tree, "the object", path);
    else if ((!object.data_later || cow_tree_copy_elements(tree, from, to, path) == 0) &&
             cow_tree_copy_attributes(tree, from, to, path) == 0) {
        if (copy_comment(from, to) < 0)
            cow_tree_failed(tree, "the comment of", path);
        else if (copy_count(from, to) < 0)
            cow_tree_failed(tree, "the reference count of", path);
        else
            status = 0;
    }
    if (to >= 0 && object.path != NULL)
        H5Oclose(to);
    if (from >= 0)
        H5Oclose(from);
    return status;
}

static void close_pending(cow_tree *tree)
{
    for (size_t i = 0; i < tree->objects; i++)
        if (tree->object[i].pending >= 0) {
            H5Tclose(tree->object[i].pending);
            tree->object[i].pending = H5I_INVALID_HID;
        }
}

int cow_tree_copy(cow_tree *tree)
{
    H5O_info2_t info;
    char *root = strdup("/");

    if (root == NULL)
        return cow_tree_no_memory(tree);
    if (H5Oget_info_by_name3(tree->from, "/", &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
        free(root);
        return cow_tree_failed(tree, "the root group", "/");
    }
    if (cow_tree_remember(tree, &info.token, root, H5O_TYPE_GROUP, H5I_INVALID_HID, false) < 0)
        return -1;
    for (size_t i = 0; i < tree->objects; i++)
        if (tree->object[i].type == H5O_TYPE_GROUP && copy_group(tree, tree->object[i].path) < 0)
            return -1;
    for (size_t i = 0; i < tree->objects; i++)
        if (finish_object(tree, i) < 0)
            return -1;
    close_pending(tree); /* or they would keep the file open */
    return 0;
}

void cow_tree_free(cow_tree *tree)
{
    close_pending(tree);
    for (size_t i = 0; i < tree->objects; i++)
        free(tree->object[i].path);
    free(tree->object);
    tree->object = NULL;
    tree->objects = tree->room = 0;
    cow_map_free(&tree->places);
    cow_native_link_classes_withdraw(tree->stand_in);
    memset(tree->stand_in, 0, sizeof tree->stand_in);
}
