/* H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG: a named datatype of the target that is like the one that is copied takes its place.
 * Looked for as HDF5 does (H5O__copy_search_comm_dt): among what the paths of H5Padd_merge_committed_dtype_path lead to;
 * then, unless the function of H5Pset_mcdt_search_cb says stop, in the whole file, once a copy. An object counts with its
 * own type and those of its attributes. The history is not looked into: what is there is nobody's to use.
 */
#include "history/copy.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

/* As H5T_cmp finds it: the first of those that are alike. */
static bool find(const cow_merging *m, hid_t type, uint64_t *address)
{
    for (size_t i = 0; i < m->count; i++)
        if (H5Tequal(m->known[i].type, type) > 0) {
            if (address != NULL)
                *address = m->known[i].address;
            return true;
        }
    return false;
}

int cow_copy_add_type(cow_copying *c, hid_t type, uint64_t address)
{
    cow_merging *m = &c->merging;
    hid_t copy = cow_native_type_placeless(type);

    if (copy < 0)
        return -1;
    if (find(m, copy, NULL)) {
        H5Tclose(copy);
        return 0;
    }
    if (COW_RESERVE(m->known, m->room, m->count, 1) < 0) {
        H5Tclose(copy);
        return cow_error(COW_MEMORY, "no memory for the named datatypes of a file");
    }
    m->known[m->count].type = copy;
    m->known[m->count++].address = address;
    return 0;
}

/* TYPE, which is closed, counts where it is a named one. */
static int add_used(cow_copying *c, hid_t type)
{
    H5O_token_t token;
    int named = cow_native_named_token(type, &token),
        status = named <= 0 ? named : cow_copy_add_type(c, type, cow_address(&token));

    cow_close(type);
    return status;
}

typedef struct looking {
    cow_copying *c;
    cow_loc object;
    bool root;
} looking;

static int add_of_attribute(void *context, const char *name)
{
    const looking *l = context;

    return add_used(l->c, cow_native_attribute_type(l->object, name));
}

static int add_object(cow_copying *c, cow_loc object)
{
    looking l = {c, object, false};
    H5O_token_t token;
    H5O_info2_t info;
    cow_loc again;
    int status = 0;

    if (object.type == H5I_DATASET)
        status = add_used(c, cow_native_dataset_type(object.object));
    else if (object.type == H5I_DATATYPE) {
        if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
            return -1;
        token = info.token;
        status = cow_native_open_token(object, &token, &again) < 0 ? -1 : add_used(c, cow_native_type_id(again));
    }
    return status < 0 ? -1 : cow_native_attributes(object, false, add_of_attribute, &l);
}

static int look_into(cow_copying *c, cow_loc group, bool root);

static int look_at(void *context, const char *name, const H5L_info2_t *info)
{
    const looking *l = context;
    uint64_t address = info->type == H5L_TYPE_HARD ? cow_address(&info->u.token) : 0;
    bool borrowed = false;
    cow_loc object;
    int status;

    if (info->type != H5L_TYPE_HARD || (l->root && l->c->to != NULL && strcmp(name, COW_GROUP) == 0) ||
        cow_map_get(&l->c->merging.met, address, NULL))
        return 0;
    if (cow_map_put(&l->c->merging.met, address, 0) < 0 ||
        (l->c->to != NULL ? cow_head_open(l->c->to, address, &object, &borrowed)
                          : cow_native_open_token(l->object, &info->u.token, &object)) < 0)
        return -1;
    status = add_object(l->c, object);
    if (status == 0 && object.type == H5I_GROUP)
        status = look_into(l->c, object, false);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

static int look_into(cow_copying *c, cow_loc group, bool root)
{
    looking l = {c, group, root};

    return cow_native_links(group, COW_LINKS_BY_NAME, look_at, &l);
}

static int look_everywhere(cow_copying *c)
{
    cow_loc root = {cow_native_group_open(c->target, "/"), H5I_GROUP};
    int status = root.object == NULL ? -1 : look_into(c, root, true);

    return root.object != NULL && cow_native_group_close(root.object) < 0 ? -1 : status;
}

/* The paths that the program suggested. HDF5 tells them to nobody but in the encoded list: behind their property's name
 * they stand one after the other, and an empty one at the end. */
static int look_where_suggested(cow_copying *c)
{
    static const char property[] = "merge committed dtype list";
    size_t size = 0;
    char *bytes = NULL, *path;
    cow_loc object, root = {.type = H5I_GROUP};
    int status = -1;

    if (H5Pencode2(c->ocpypl, NULL, &size, H5P_DEFAULT) < 0)
        return cow_error_native("cannot get how to copy");
    if ((bytes = calloc(1, size + 2)) == NULL)
        return cow_error(COW_MEMORY, "no memory for %zu bytes", size);
    if (H5Pencode2(c->ocpypl, bytes, &size, H5P_DEFAULT) < 0)
        cow_error_native("cannot get how to copy");
    else if ((root.object = cow_native_group_open(c->target, "/")) != NULL)
        status = 0;
    path = status < 0 ? NULL : memmem(bytes, size, property, sizeof property);
    if (path != NULL)
        for (path += sizeof property; status == 0 && *path != '\0'; path += strlen(path) + 1) {
            if (!cow_native_leads(root, path))
                continue; /* HDF5 passes over them as well */
            if (cow_native_open(root, path, &object) < 0)
                status = -1;
            else {
                status = add_object(c, object);
                if (cow_native_close(object) < 0)
                    status = -1;
            }
        }
    if (root.object != NULL && cow_native_group_close(root.object) < 0)
        status = -1;
    free(bytes);
    return status;
}

static int complete(cow_copying *c)
{
    H5O_mcdt_search_cb_t search = NULL;
    H5O_mcdt_search_ret_t answer = H5O_MCDT_SEARCH_CONT;
    void *data = NULL;

    if (H5Pget_mcdt_search_cb(c->ocpypl, &search, &data) < 0)
        return cow_error_native("cannot get how to copy");
    if (search != NULL)
        answer = search(data);
    switch (answer) {
    case H5O_MCDT_SEARCH_CONT:
        c->merging.complete = true;
        return look_everywhere(c);
    case H5O_MCDT_SEARCH_STOP:
        return 0;
    case H5O_MCDT_SEARCH_ERROR:
        break;
    }
    return cow_error(COW_USAGE, "the function that H5Pset_mcdt_search_cb was given answered %d, an error", (int)answer);
}

int cow_copy_find_type(cow_copying *c, hid_t type, uint64_t *address)
{
    cow_merging *m = &c->merging;
    hid_t wanted;
    int found;

    if (!m->begun && look_where_suggested(c) < 0)
        return -1;
    m->begun = true;
    if ((wanted = cow_native_type_placeless(type)) < 0)
        return -1;
    if ((found = find(m, wanted, address)) == 0 && !m->complete && (found = complete(c)) == 0)
        found = find(m, wanted, address);
    H5Tclose(wanted);
    return found;
}

void cow_copy_forget_types(cow_copying *c)
{
    for (size_t i = 0; i < c->merging.count; i++)
        H5Tclose(c->merging.known[i].type);
    free(c->merging.known);
    cow_map_free(&c->merging.met);
}
