/* Making the objects and links of the new file. See copy.h.
 *
 * Group by group, links in the order of their creation where that is recorded. Attributes, and elements that hold
 * references, come last: what they point to must exist.
 */
#include "copy.h"

#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cli_copy_failed(cli_copy *copy, const char *what, const char *path)
{
    char text[800];

    cli_reason(text, sizeof text);
    if (copy->why[0] == '\0')
        snprintf(copy->why, sizeof copy->why, "%s '%.200s' cannot be copied: %s", what, path, text);
    return -1;
}

typedef struct link_names {
    struct {
        char *name;
        H5L_info2_t info;
    } *link;
    size_t count, room;
} link_names;

static herr_t note_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    link_names *n = context;

    (void)group;
    if (n->count == n->room) {
        n->room = n->room == 0 ? 32 : 2 * n->room;
        n->link = cli_grow(n->link, n->room, sizeof *n->link);
    }
    n->link[n->count].name = cli_strdup(name);
    n->link[n->count++].info = *info;
    return 0;
}

static void remember(cli_copy *copy, uint64_t address, const char *path, H5O_type_t type, bool data_later)
{
    if (copy->objects == copy->room) {
        copy->room = copy->room == 0 ? 64 : 2 * copy->room;
        copy->object = cli_grow(copy->object, copy->room, sizeof *copy->object);
    }
    cli_map_put(&copy->places, address, copy->objects);
    copy->object[copy->objects++] = (cli_copied){cli_strdup(path), type, H5I_INVALID_HID, data_later};
}

/* ---- objects ---- */

/* The settings of a group's creation properties, one by one. The list that HDF5 gives for a group with many links also
 * holds the addresses of that group's heap and B-tree (1.14.5): a group made with it would take them for its own. */
static hid_t group_settings(hid_t group)
{
    hid_t old = H5Gget_create_plist(group), new = H5Pcreate(H5P_GROUP_CREATE);
    unsigned links, names, order, attributes, most[2], least[2];
    hbool_t times;
    size_t hint;
    bool good = old >= 0 && new >= 0 && H5Pget_est_link_info(old, &links, &names) >= 0 &&
                H5Pset_est_link_info(new, links, names) >= 0 && H5Pget_local_heap_size_hint(old, &hint) >= 0 &&
                H5Pset_local_heap_size_hint(new, hint) >= 0 && H5Pget_link_phase_change(old, &most[0], &least[0]) >= 0 &&
                H5Pset_link_phase_change(new, most[0], least[0]) >= 0 && H5Pget_link_creation_order(old, &order) >= 0 &&
                H5Pset_link_creation_order(new, order) >= 0 && H5Pget_attr_phase_change(old, &most[1], &least[1]) >= 0 &&
                H5Pset_attr_phase_change(new, most[1], least[1]) >= 0 &&
                H5Pget_attr_creation_order(old, &attributes) >= 0 && H5Pset_attr_creation_order(new, attributes) >= 0 &&
                H5Pget_obj_track_times(old, &times) >= 0 && H5Pset_obj_track_times(new, times) >= 0;

    for (int i = 0, n = good ? H5Pget_nfilters(old) : 0; good && i < n; i++) {
        unsigned flags, config, values[20];
        size_t count = sizeof values / sizeof *values;
        H5Z_filter_t id = H5Pget_filter2(old, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        good = id >= 0 && count <= sizeof values / sizeof *values && H5Pset_filter(new, id, flags, count, values) >= 0;
    }
    hid_t stack = H5Eget_current_stack(); /* closing would clear it */
    if (old >= 0)
        H5Pclose(old);
    if (!good && new >= 0)
        H5Pclose(new);
    H5Eset_current_stack(stack);
    return good ? new : H5I_INVALID_HID;
}

static int make_group(cli_copy *copy, hid_t from, const char *path, hid_t lcpl)
{
    hid_t gcpl = group_settings(from);
    hid_t group = gcpl < 0 ? H5I_INVALID_HID : H5Gcreate2(copy->to, path, lcpl, gcpl, H5P_DEFAULT);
    int status = group < 0 ? cli_copy_failed(copy, "the group", path) : 0;

    if (group >= 0)
        H5Gclose(group);
    if (gcpl >= 0)
        H5Pclose(gcpl);
    return status;
}

static int make_type(cli_copy *copy, hid_t from, const char *path, hid_t lcpl)
{
    hid_t tcpl = H5Tget_create_plist(from), type = H5Tcopy(from);
    int status = 0;

    if (tcpl < 0 || type < 0 || H5Tcommit2(copy->to, path, type, lcpl, tcpl, H5P_DEFAULT) < 0)
        status = cli_copy_failed(copy, "the named type", path);
    if (type >= 0)
        H5Tclose(type);
    if (tcpl >= 0)
        H5Pclose(tcpl);
    return status;
}

static int make_dataset(cli_copy *copy, hid_t from, const char *path, hid_t lcpl, bool *data_later)
{
    hid_t type = H5Dget_type(from), space = H5Dget_space(from), dcpl = H5Dget_create_plist(from);
    hid_t new = type < 0 ? H5I_INVALID_HID : cli_copy_type(copy, type), dataset = H5I_INVALID_HID;
    int status = -1;

    if (space < 0 || dcpl < 0 || new < 0 ||
        (dataset = H5Dcreate2(copy->to, path, new, space, lcpl, dcpl, H5P_DEFAULT)) < 0) {
        cli_copy_failed(copy, "the dataset", path);
        goto done;
    }
    *data_later = cli_type_has(type, H5T_REFERENCE);
    if (!*data_later && cli_copy_elements(copy, from, dataset, path) < 0)
        goto done;
    status = 0;
done:
    if (dataset >= 0 && H5Dclose(dataset) < 0 && status == 0)
        status = cli_copy_failed(copy, "the dataset", path);
    if (new >= 0)
        H5Tclose(new);
    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    return status;
}

/* ---- links ---- */

/* A link to an object that the copy has already. */
static int link_again(cli_copy *copy, size_t place, const char *path, hid_t lcpl)
{
    cli_copied *known = &copy->object[place];

    if (known->path != NULL) {
        if (H5Lcreate_hard(copy->to, known->path, copy->to, path, lcpl, H5P_DEFAULT) < 0)
            return cli_copy_failed(copy, "the link", path);
        return 0;
    }
    if (H5Olink(known->pending, copy->to, path, lcpl, H5P_DEFAULT) < 0)
        return cli_copy_failed(copy, "the named type", path);
    H5Tclose(known->pending);
    known->pending = H5I_INVALID_HID;
    known->path = cli_strdup(path);
    return 0;
}

static int copy_hard(cli_copy *copy, hid_t group, const char *name, const char *path, hid_t lcpl)
{
    hid_t object = H5Oopen(group, name, H5P_DEFAULT);
    bool data_later = false;
    H5O_info2_t info;
    int status = -1;

    if (object < 0 || H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0) {
        cli_copy_failed(copy, "the object", path);
        goto done;
    }
    uint64_t *known = cli_map_get(&copy->places, cli_address(&info.token));
    if (known != NULL) {
        status = link_again(copy, (size_t)*known, path, lcpl);
        goto done;
    }
    switch (info.type) {
    case H5O_TYPE_GROUP:
        status = make_group(copy, object, path, lcpl);
        break;
    case H5O_TYPE_DATASET:
        status = make_dataset(copy, object, path, lcpl, &data_later);
        break;
    case H5O_TYPE_NAMED_DATATYPE:
        status = make_type(copy, object, path, lcpl);
        break;
    case H5O_TYPE_MAP:
    case H5O_TYPE_UNKNOWN:
    case H5O_TYPE_NTYPES:
        snprintf(copy->why, sizeof copy->why, "'%s' is of a kind that this program does not know", path);
        break;
    }
    if (status == 0)
        remember(copy, cli_address(&info.token), path, info.type, data_later);
done:
    if (object >= 0)
        H5Oclose(object);
    return status;
}

static int copy_valued(cli_copy *copy, hid_t group, const char *name, const H5L_info2_t *info, const char *path,
                       hid_t lcpl)
{
    char *value = cli_alloc(info->u.val_size + 1, 1);
    const char *file, *object;
    unsigned flags;
    int status = -1;

    if (H5Lget_val(group, name, value, info->u.val_size, H5P_DEFAULT) < 0)
        goto done;
    if (info->type == H5L_TYPE_SOFT)
        status = H5Lcreate_soft(value, copy->to, path, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
    else if (info->type == H5L_TYPE_EXTERNAL)
        status = H5Lunpack_elink_val(value, info->u.val_size, &flags, &file, &object) < 0 ||
                         H5Lcreate_external(file, object, copy->to, path, lcpl, H5P_DEFAULT) < 0
                     ? -1
                     : 0;
    else
        status = H5Lcreate_ud(copy->to, path, info->type, value, info->u.val_size, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
done:
    if (status < 0)
        cli_copy_failed(copy, "the link", path);
    free(value);
    return status;
}

static int copy_group(cli_copy *copy, const char *path)
{
    hid_t group = H5Gopen2(copy->from, path, H5P_DEFAULT), lcpl = H5Pcreate(H5P_LINK_CREATE);
    link_names links = {0};
    int status = 0;

    if (group < 0 || lcpl < 0) {
        status = cli_copy_failed(copy, "the group", path);
    } else if (H5Literate2(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, note_link, &links) < 0) {
        for (size_t i = 0; i < links.count; i++)
            free(links.link[i].name);
        links.count = 0;
        if (H5Literate2(group, H5_INDEX_NAME, H5_ITER_INC, NULL, note_link, &links) < 0)
            status = cli_copy_failed(copy, "the group", path);
    }
    for (size_t i = 0; i < links.count; i++) {
        const char *name = links.link[i].name;
        const H5L_info2_t *info = &links.link[i].info;
        char *child = cli_format("%s/%s", path[1] == '\0' ? "" : path, name);
        if (status == 0) {
            H5Pset_char_encoding(lcpl, info->cset);
            status = info->type == H5L_TYPE_HARD ? copy_hard(copy, group, name, child, lcpl)
                                                 : copy_valued(copy, group, name, info, child, lcpl);
        }
        free(child);
        free(links.link[i].name);
    }
    free(links.link);
    if (lcpl >= 0)
        H5Pclose(lcpl);
    if (group >= 0)
        H5Gclose(group);
    return status;
}

/* Attributes, comment, and the elements that had to wait. */
static int finish_object(cli_copy *copy, const char *path, bool data_later)
{
    hid_t from = H5Oopen(copy->from, path, H5P_DEFAULT), to = H5Oopen(copy->to, path, H5P_DEFAULT);
    ssize_t length;
    int status = -1;

    if (from < 0 || to < 0) {
        cli_copy_failed(copy, "the object", path);
        goto done;
    }
    if (data_later && cli_copy_elements(copy, from, to, path) < 0)
        goto done;
    if (cli_copy_attributes(copy, from, to, path) < 0)
        goto done;
    if ((length = H5Oget_comment(from, NULL, 0)) > 0) {
        char *comment = cli_alloc((size_t)length + 1, 1);
        herr_t set = H5Oget_comment(from, comment, (size_t)length + 1) < 0 ? -1 : H5Oset_comment(to, comment);
        free(comment);
        if (set < 0) {
            cli_copy_failed(copy, "the comment of", path);
            goto done;
        }
    }
    status = 0;
done:
    if (to >= 0)
        H5Oclose(to);
    if (from >= 0)
        H5Oclose(from);
    return status;
}

int cli_copy_tree(cli_copy *copy)
{
    H5O_info2_t info;

    if (H5Oget_info_by_name3(copy->from, "/", &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return cli_copy_failed(copy, "the root group", "/");
    remember(copy, cli_address(&info.token), "/", H5O_TYPE_GROUP, false);
    for (size_t i = 0; i < copy->objects; i++)
        if (copy->object[i].type == H5O_TYPE_GROUP && copy_group(copy, copy->object[i].path) < 0)
            return -1;
    for (size_t i = 0; i < copy->objects; i++)
        if (copy->object[i].path != NULL && finish_object(copy, copy->object[i].path, copy->object[i].data_later) < 0)
            return -1;
    return 0;
}

void cli_copy_free(cli_copy *copy)
{
    for (size_t i = 0; i < copy->objects; i++) {
        free(copy->object[i].path);
        if (copy->object[i].pending >= 0)
            H5Tclose(copy->object[i].pending);
    }
    free(copy->object);
    cli_map_free(&copy->places);
}
