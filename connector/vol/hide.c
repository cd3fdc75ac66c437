/* The reserved group does not exist in listings: counts, indices, creation order and iterations of the root group in
 * the head are those of a group without it.
 */
#include "vol/vol.h"

#include "journal/driver.h"

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* "a/_versioned_data" for the group "a"; free() it. */
static char *reserved_name(const char *group)
{
    char *name = malloc(strlen(group) + sizeof COW_GROUP + 1);

    if (name == NULL) {
        cow_error(COW_MEMORY, "no memory for the name '%s'", group);
        return NULL;
    }
    strcpy(name, strcmp(group, ".") == 0 ? "" : group);
    if (name[0] != '\0' && name[strlen(name) - 1] != '/')
        strcat(name, "/");
    strcat(name, COW_GROUP);
    return name;
}

/* The reserved link itself: 1 there, 0 not yet made, -1. */
static int reserved_link(const cow_listed *listed, H5L_info2_t *info)
{
    H5VL_link_specific_args_t exists = {.op_type = H5VL_LINK_EXISTS};
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_INFO};
    char *name = reserved_name(listed->name);
    H5VL_loc_params_t loc = cow_by_name(listed->type, name);
    hbool_t there = false;
    int status = -1;

    exists.args.exists.exists = &there;
    get.args.get_info.linfo = info;
    if (name == NULL)
        return -1;
    if (H5VLlink_specific(listed->native, &loc, cow_native_id(), &exists, DXPL, NULL) < 0 ||
        (there && H5VLlink_get(listed->native, &loc, cow_native_id(), &get, DXPL, NULL) < 0))
        cow_error_native("cannot look at the group '" COW_GROUP "'");
    else
        status = there;
    free(name);
    return status;
}

static int hides_at(cow_object *object, const cow_where *where, const char *name, const H5VL_loc_params_t *loc,
                    cow_listed *listed)
{
    cow_home *near = object->home, *home;
    H5O_info2_t info;
    H5O_token_t token;
    H5L_info2_t link;
    bool hides = false;

    *listed = (cow_listed){.native = where->native, .type = where->loc.obj_type, .name = name, .home = near};
    if (near == NULL || near->version != NULL)
        return 0;
    if (strcmp(name, ".") == 0 && loc == NULL && !cow_object_mounts(object)) {
        if (!cow_home_hides(near))
            return 0;
        if (cow_object_token(object, &token) < 0)
            return -1;
        hides = memcmp(&token, &near->root, sizeof token) == 0;
    } else {
        H5VL_loc_params_t by_name = cow_by_name(where->loc.obj_type, name);
        if (loc == NULL)
            loc = &by_name;
        int there = cow_info_quietly(where->native, loc, &info);
        if (there <= 0)
            return there; /* native HDF5 will say what is wrong */
        if (info.fileno == near->fileno)
            hides = cow_home_hides(near) && memcmp(&info.token, &near->root, sizeof info.token) == 0;
        else if (info.type == H5O_TYPE_GROUP) {
            H5I_type_t type;
            void *group = H5VLobject_open(where->native, loc, cow_native_id(), &type, DXPL, NULL);
            if (group == NULL)
                return cow_error_native("cannot open the group '%s'", name);
            home = cow_home_of(near, group, type, &info);
            hides = cow_home_hides(home) && memcmp(&info.token, &home->root, sizeof info.token) == 0;
            cow_object_close_native(group, type);
            if (home == NULL)
                return -1;
            cow_home_release(home);
            listed->home = NULL;
        }
    }
    return hides ? reserved_link(listed, &link) : 0;
}

int cow_hides(cow_object *object, const cow_where *where, cow_listed *listed)
{
    const char *name = ".";

    if (where->loc.type == H5VL_OBJECT_BY_NAME)
        name = where->loc.loc_data.loc_by_name.name;
    else if (where->loc.type == H5VL_OBJECT_BY_IDX)
        name = where->loc.loc_data.loc_by_idx.name;
    return hides_at(object, where, name, NULL, listed);
}

/* ---- indices ---- */

static H5VL_loc_params_t link_at(const cow_listed *listed, H5_index_t type, H5_iter_order_t order, hsize_t n)
{
    H5VL_loc_params_t loc = {.obj_type = listed->type, .type = H5VL_OBJECT_BY_IDX};

    loc.loc_data.loc_by_idx.name = listed->name;
    loc.loc_data.loc_by_idx.idx_type = type;
    loc.loc_data.loc_by_idx.order = order;
    loc.loc_data.loc_by_idx.n = n;
    loc.loc_data.loc_by_idx.lapl_id = H5P_LINK_ACCESS_DEFAULT;
    return loc;
}

/* <0, 0, >0: the link at index N comes before, is, comes after the reserved one (in increasing order). 2 on error. */
static int compare_at(const cow_listed *listed, H5_index_t type, H5_iter_order_t order, hsize_t n, int64_t creation)
{
    H5VL_loc_params_t loc = link_at(listed, type, order, n);
    H5VL_link_get_args_t args = {.op_type = H5VL_LINK_GET_NAME};
    char name[sizeof COW_GROUP + 1];
    H5L_info2_t info;
    size_t length;
    int difference;

    if (type == H5_INDEX_CRT_ORDER && order != H5_ITER_NATIVE) {
        args.op_type = H5VL_LINK_GET_INFO;
        args.args.get_info.linfo = &info;
        if (H5VLlink_get(listed->native, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
            return 2;
        return info.corder < creation ? -1 : info.corder > creation;
    }
    args.args.get_name.name = name;
    args.args.get_name.name_size = sizeof name;
    args.args.get_name.name_len = &length;
    if (H5VLlink_get(listed->native, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return 2;
    difference = strcmp(name, COW_GROUP); /* one character more than the reserved name is enough to compare */
    return difference < 0 ? -1 : difference > 0;
}

/* Index of the reserved link, or HSIZE_UNDEF when native HDF5 has no such order (it will say so itself). */
static hsize_t position(const cow_listed *listed, H5_index_t type, H5_iter_order_t order)
{
    H5VL_group_get_args_t get = {.op_type = H5VL_GROUP_GET_INFO};
    H5G_info_t group;
    H5L_info2_t link;
    hsize_t *cached = NULL, first = 0, count, found = HSIZE_UNDEF;
    int there;

    if ((unsigned)type > 1 || (unsigned)order > 2)
        return HSIZE_UNDEF;
    if (listed->home != NULL)
        cached = &listed->home->hidden_at[type][order];
    get.args.get_info.loc_params =
        strcmp(listed->name, ".") == 0 ? cow_by_self(listed->type) : cow_by_name(listed->type, listed->name);
    get.args.get_info.ginfo = &group;
    if (H5VLgroup_get(listed->native, cow_native_id(), &get, DXPL, NULL) < 0 ||
        (there = reserved_link(listed, &link)) <= 0)
        return HSIZE_UNDEF;
    if (type == H5_INDEX_CRT_ORDER && !link.corder_valid)
        return HSIZE_UNDEF;
    if (cached != NULL && *cached < group.nlinks && compare_at(listed, type, order, *cached, link.corder) == 0)
        return *cached;
    if (order == H5_ITER_NATIVE) { /* any order at all */
        for (hsize_t n = 0; n < group.nlinks && found == HSIZE_UNDEF; n++)
            if (compare_at(listed, type, order, n, link.corder) == 0)
                found = n;
    } else
        for (count = group.nlinks; count > 0 && found == HSIZE_UNDEF;) {
            hsize_t middle = first + count / 2;
            int side = compare_at(listed, type, order, middle, link.corder);

            if (side == 2)
                return HSIZE_UNDEF;
            if (order == H5_ITER_DEC)
                side = -side;
            if (side == 0)
                found = middle;
            else if (side < 0) {
                count -= middle - first + 1;
                first = middle + 1;
            } else
                count = middle - first;
        }
    if (cached != NULL && found != HSIZE_UNDEF)
        *cached = found;
    return found;
}

hsize_t cow_hide_native_index(const cow_listed *listed, H5_index_t type, H5_iter_order_t order, hsize_t n)
{
    unsigned long failures = cow_journal_driver_failures();
    hsize_t hidden;

    H5E_BEGIN_TRY
    {
        hidden = position(listed, type, order);
    }
    H5E_END_TRY
    cow_error_clear();
    if (cow_journal_driver_failures() != failures)
        return HSIZE_UNDEF - 1; /* there is none: better than the wrong one */
    /* the greatest index of all is that of no link, and has none after it */
    return hidden != HSIZE_UNDEF && n >= hidden && n != HSIZE_UNDEF ? n + 1 : n;
}

int cow_hide_index(cow_object *object, cow_where *where)
{
    cow_listed listed;
    int hides;

    if (where->loc.type != H5VL_OBJECT_BY_IDX || cow_sorted_index(object, where))
        return 0;
    if ((hides = cow_hides(object, where, &listed)) > 0)
        where->loc.loc_data.loc_by_idx.n =
            cow_hide_native_index(&listed, where->loc.loc_data.loc_by_idx.idx_type,
                                  where->loc.loc_data.loc_by_idx.order, where->loc.loc_data.loc_by_idx.n);
    return hides < 0 ? -1 : 0;
}

/* ---- information ---- */

int cow_hide_group_info(cow_object *object, const cow_where *where, H5G_info_t *info)
{
    cow_listed listed;
    H5L_info2_t link;
    int hides;

    if (where->loc.type == H5VL_OBJECT_BY_IDX)
        hides = hides_at(object, where, ".", &where->loc, &listed);
    else
        hides = cow_hides(object, where, &listed);
    if (hides <= 0)
        return hides;
    if (where->loc.type == H5VL_OBJECT_BY_IDX)
        link.corder_valid = info->max_corder > 0; /* reached by index: the root is a link in one of its own groups */
    else if (reserved_link(&listed, &link) < 0)
        return -1;
    info->nlinks--;
    if (link.corder_valid)
        info->max_corder--;
    return 0;
}

static void hide_order(const H5L_info2_t *reserved, H5L_info2_t *info)
{
    if (reserved->corder_valid && info->corder_valid && info->corder > reserved->corder)
        info->corder--;
}

int cow_hide_link_info(cow_object *object, const cow_where *where, H5L_info2_t *info)
{
    cow_where group = *where;
    cow_listed listed;
    H5L_info2_t reserved;
    char *prefix = NULL;
    int hides = 0;

    if (!info->corder_valid || object->home == NULL)
        return 0;
    if (where->loc.type == H5VL_OBJECT_BY_NAME) {
        const char *name = where->loc.loc_data.loc_by_name.name, *last = strrchr(name, '/');

        if (last == NULL)
            group.loc = cow_by_self(where->loc.obj_type);
        else {
            if ((prefix = strndup(name, last == name ? 1 : (size_t)(last - name))) == NULL)
                return cow_error(COW_MEMORY, "no memory for the name '%s'", name);
            group.loc = cow_by_name(where->loc.obj_type, prefix);
        }
    }
    if ((hides = cow_hides(object, &group, &listed)) > 0 && (hides = reserved_link(&listed, &reserved)) > 0)
        hide_order(&reserved, info);
    free(prefix);
    return hides < 0 ? -1 : 0;
}

/* ---- iteration ---- */

typedef struct iteration {
    H5L_iterate2_t op;
    H5G_iterate_t old_op;
    void *op_data;
    H5L_info2_t reserved;
    bool passed;
} iteration;

static herr_t each_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    iteration *it = context;
    H5L_info2_t shown = *info;

    if (strcmp(name, COW_GROUP) == 0) {
        it->passed = true;
        return 0;
    }
    hide_order(&it->reserved, &shown);
    return it->op(group, name, &shown, it->op_data);
}

static herr_t each_link_old(hid_t group, const char *name, void *context)
{
    iteration *it = context;

    if (strcmp(name, COW_GROUP) == 0) {
        it->passed = true;
        return 0;
    }
    return it->old_op(group, name, it->op_data);
}

herr_t cow_hide_iterate(const cow_listed *listed, const H5VL_link_iterate_args_t *args, hid_t dxpl)
{
    iteration it = {.op = args->op, .op_data = args->op_data};
    H5VL_link_specific_args_t native = {.op_type = H5VL_LINK_ITER};
    H5VL_loc_params_t loc =
        strcmp(listed->name, ".") == 0 ? cow_by_self(listed->type) : cow_by_name(listed->type, listed->name);
    hsize_t first = args->idx_p == NULL ? 0 : *args->idx_p, index = first;
    herr_t status;

    if (reserved_link(listed, &it.reserved) < 0)
        return -1;
    if (first > 0)
        index = cow_hide_native_index(listed, args->idx_type, args->order, first);
    it.passed = index > first;
    native.args.iterate = *args;
    native.args.iterate.idx_p = &index;
    native.args.iterate.op = each_link;
    native.args.iterate.op_data = &it;
    status = H5VLlink_specific(listed->native, &loc, cow_native_id(), &native, dxpl, NULL);
    if (args->idx_p != NULL)
        *args->idx_p = index - (it.passed && index > 0);
    return status;
}

herr_t cow_hide_iterate_old(const cow_listed *listed, H5VL_native_group_iterate_old_t *args, hid_t dxpl)
{
    iteration it = {.old_op = args->op, .op_data = args->op_data};
    H5VL_native_group_optional_args_t native;
    H5VL_optional_args_t optional = {.op_type = H5VL_NATIVE_GROUP_ITERATE_OLD, .args = &native};
    herr_t status;

    native.iterate_old = *args;
    native.iterate_old.loc_params = cow_by_name(listed->type, listed->name);
    if (args->idx > 0)
        native.iterate_old.idx = cow_hide_native_index(listed, H5_INDEX_NAME, H5_ITER_INC, args->idx);
    it.passed = native.iterate_old.idx > args->idx;
    native.iterate_old.op = each_link_old;
    native.iterate_old.op_data = &it;
    status = H5VLgroup_optional(listed->native, cow_native_id(), &optional, dxpl, NULL);
    if (args->last_obj != NULL && it.passed && *args->last_obj > 0)
        --*args->last_obj;
    return status;
}
