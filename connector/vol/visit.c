/* H5Lvisit and H5Ovisit from where the reserved group could be met: a recursion of our own over H5Literate by name,
 * which hides it. Native HDF5 would descend into the whole history, and would count an object that is also known there
 * as already visited.
 *
 * As in native HDF5: links of a group in the order asked for, or by name where the group does not track creation order;
 * each group is entered once, each object reported once (but see report); soft and external links are not followed.
 */
#include "vol/vol.h"

#include "base/ids.h"
#include "library/library.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
    unsigned long fileno;
    H5O_token_t token;
} place;

typedef struct places {
    place *at;
    size_t count, room;
} places;

typedef struct visit {
    hid_t start;
    H5_index_t type;
    H5_iter_order_t order;
    H5L_iterate2_t op;
    void *op_data;
    char *path; /* of the group that is listed, from `start`, with a '/' at its end unless it is "" */
    places entered;
} visit;

/* Where it is in a set that is not full, or is to be. */
static place *find(const places *set, const H5O_info2_t *info)
{
    size_t hash = info->fileno * 31, i;

    for (i = 0; i < sizeof info->token.__data; i++)
        hash = hash * 131 + info->token.__data[i];
    for (i = hash % set->room; set->at[i].fileno != 0; i = (i + 1) % set->room)
        if (set->at[i].fileno == info->fileno + 1 && memcmp(&set->at[i].token, &info->token, sizeof info->token) == 0)
            break;
    return &set->at[i];
}

static bool has(const places *set, const H5O_info2_t *info)
{
    return set->count > 0 && find(set, info)->fileno != 0;
}

/* 1: was not there, and is now; 0: was there; -1 */
static int add(places *set, const H5O_info2_t *info)
{
    place *at;

    if (2 * (set->count + 1) > set->room) { /* grow, and put everything in its new place */
        places larger = {.room = set->room == 0 ? 64 : set->room * 2};
        if ((larger.at = calloc(larger.room, sizeof *larger.at)) == NULL)
            return cow_error(COW_MEMORY, "no memory to visit so many objects");
        for (size_t i = 0; i < set->room; i++)
            if (set->at[i].fileno != 0) {
                H5O_info2_t again = {.fileno = set->at[i].fileno - 1, .token = set->at[i].token};
                add(&larger, &again);
            }
        free(set->at);
        *set = larger;
    }
    if ((at = find(set, info))->fileno != 0)
        return 0;
    *at = (place){info->fileno + 1, info->token};
    set->count++;
    return 1;
}

static int tracks_creation(hid_t start, const char *path)
{
    hid_t group = H5Gopen2(start, path, H5P_DEFAULT), gcpl = group < 0 ? -1 : H5Gget_create_plist(group);
    unsigned flags = 0;
    int status = gcpl >= 0 && H5Pget_link_creation_order(gcpl, &flags) >= 0 ? 0 : -1;

    cow_close(gcpl, group);
    return status < 0 ? -1 : (flags & H5P_CRT_ORDER_TRACKED) != 0;
}

static herr_t each_link(hid_t group, const char *name, const H5L_info2_t *info, void *context);

static herr_t visit_group(visit *v)
{
    const char *path = v->path[0] == '\0' ? "." : v->path;
    H5_index_t type = v->type;
    int tracks;

    if (type == H5_INDEX_CRT_ORDER) {
        if ((tracks = tracks_creation(v->start, path)) < 0)
            return -1;
        if (!tracks)
            type = H5_INDEX_NAME;
    }
    return H5Literate_by_name2(v->start, path, type, v->order, NULL, each_link, v, H5P_DEFAULT);
}

static herr_t each_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    visit *v = context;
    size_t before = strlen(v->path), length = strlen(name);
    char *longer = malloc(before + length + 2), *shorter = v->path;
    H5O_info2_t object;
    herr_t status;
    int added;

    if (longer == NULL)
        return cow_error(COW_MEMORY, "no memory for the path of '%s'", name);
    memcpy(longer, v->path, before);
    memcpy(longer + before, name, length + 1);
    v->path = longer;
    status = v->op(v->start, longer, info, v->op_data);
    if (status != 0 || info->type != H5L_TYPE_HARD)
        goto done;
    if (H5Oget_info_by_name3(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
        (added = add(&v->entered, &object)) < 0) {
        status = -1;
        goto done;
    }
    if (added && object.type == H5O_TYPE_GROUP) {
        strcpy(longer + before + length, "/");
        status = visit_group(v);
    }
done:
    v->path = shorter;
    free(longer);
    return status;
}

/* An id of ours for the group, as HDF5 makes one for its own visits. */
static hid_t open_start(const cow_listed *listed)
{
    void *group = cow_native_group_open((cow_loc){listed->native, listed->type}, listed->name);
    hid_t id;

    if (group == NULL)
        return H5I_INVALID_HID;
    if ((id = H5VLwrap_register(group, H5I_GROUP)) < 0) {
        cow_error_native("cannot visit a group");
        cow_native_group_close(group);
    }
    return id;
}

/* What failed is on HDF5's stack, which closing the id clears. */
static void leave_start(hid_t start, herr_t status)
{
    if (status < 0)
        cow_error_native("cannot visit all of a group");
    H5Idec_ref(start);
}

static herr_t visit_from(hid_t start, H5_index_t type, H5_iter_order_t order, H5L_iterate2_t op, void *op_data)
{
    char top[] = "";
    visit v = {.start = start, .type = type, .order = order, .op = op, .op_data = op_data, .path = top};
    H5O_info2_t info;
    herr_t status = -1;

    if (H5Oget_info3(start, &info, H5O_INFO_BASIC) >= 0 && add(&v.entered, &info) >= 0)
        status = visit_group(&v);
    free(v.entered.at);
    return status;
}

int cow_visits(cow_object *object, const cow_where *where, cow_listed *listed)
{
    cow_home *home = object->home;
    H5O_info2_t root;
    int hides, there;

    if (home == NULL || home->version != NULL)
        return 0;
    if ((hides = cow_hides(object, where, listed)) != 0)
        return hides;
    if (home->mounted_count == 0 && !cow_home_hides(home))
        return 0;
    if ((there = cow_info_quietly(where->native, &where->loc, &root)) <= 0)
        return there;
    if (root.type != H5O_TYPE_GROUP)
        return 0; /* nothing below it, or native HDF5 will say what is wrong */
    if (home->mounted_count > 0)
        return 1;
    /* Somebody linked the root into the tree below it: it could be met from anywhere. */
    if (cow_native_info((cow_loc){cow_object_opened(object), object->type}, "/", H5O_INFO_BASIC, &root) < 0)
        return -1;
    return root.rc > 1;
}

herr_t cow_visit_links(const cow_listed *listed, const H5VL_link_iterate_args_t *args, hid_t dxpl)
{
    hid_t start = open_start(listed);
    herr_t status;

    (void)dxpl;
    if (start < 0)
        return -1;
    status = visit_from(start, args->idx_type, args->order, args->op, args->op_data);
    leave_start(start, status);
    return status;
}

typedef struct object_visit {
    const H5VL_object_visit_args_t *args;
    places reported;
} object_visit;

/* As H5O__visit and H5O__visit_cb. Before HDF5 2.2 an object is remembered where the information that was asked for says
 * that it has more than one link: so the start, with one, is reported again where a circle leads to it. AT: what it is. */
static herr_t report(object_visit *v, hid_t start, const char *path, H5O_info2_t *at, H5O_info2_t *info)
{
    if (H5Oget_info_by_name3(start, path, at, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return -1;
    if (has(&v->reported, at))
        return 0;
    *info = *at;
    if (v->args->fields != H5O_INFO_BASIC && H5Oget_info_by_name3(start, path, info, v->args->fields, H5P_DEFAULT) < 0)
        return -1;
    if ((info->rc > 1 || cow_library_visits_once()) && add(&v->reported, at) < 0)
        return -1;
    return v->args->op(start, path, info, v->args->op_data);
}

static herr_t each_object(hid_t start, const char *path, const H5L_info2_t *link, void *context)
{
    H5O_info2_t at, info;

    return link->type == H5L_TYPE_HARD ? report(context, start, path, &at, &info) : 0;
}

herr_t cow_visit_objects(const cow_listed *listed, const H5VL_object_visit_args_t *args, hid_t dxpl)
{
    hid_t start = open_start(listed);
    object_visit v = {.args = args};
    H5O_info2_t at, info;
    herr_t status = -1;

    (void)dxpl;
    if (start < 0)
        return -1;
    if ((status = report(&v, start, ".", &at, &info)) == 0 &&
        (cow_library_visits_untyped() ? at.type : info.type) == H5O_TYPE_GROUP)
        status = visit_from(start, args->idx_type, args->order, each_object, &v);
    free(v.reported.at);
    leave_start(start, status);
    return status;
}
