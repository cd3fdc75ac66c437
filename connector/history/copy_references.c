/* H5O_COPY_EXPAND_REFERENCE_FLAG: what references lead to is copied as well, and the copied references lead to the copies.
 * What was not copied yet gets a link in the root, named as HDF5 names it. References into other files stay what they are;
 * those that lead nowhere are emptied.
 *
 * HDF5 makes and follows references with ids, so objects get one for a moment.
 */
#include "history/copy.h"

#include "base/error.h"
#include "base/vector.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct expanding {
    cow_copying *c;
    cow_copied_file *file;
    hid_t holder; /* what the references are read from */
} expanding;

/* A handle of its own on OBJECT, as an id. */
static hid_t id_of(cow_loc object)
{
    H5O_info2_t info;
    H5O_token_t token;
    cow_loc again;
    hid_t id;

    if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
        return H5I_INVALID_HID;
    token = info.token;
    if (cow_native_open_token(object, &token, &again) < 0)
        return H5I_INVALID_HID;
    if ((id = H5VLwrap_register(again.object, again.type)) < 0) {
        cow_error_native("cannot follow references");
        cow_native_close(again);
    }
    return id;
}

/* The native object behind such an id, or one that HDF5 has opened. */
static cow_loc object_of(hid_t id)
{
    hid_t own = H5VLget_connector_id(id);
    cow_loc object = {own < 0 ? NULL : H5VLget_object(H5VLobject(id), own), H5Iget_type(id)};

    if (own >= 0)
        H5VLclose(own);
    return object;
}

static int link_along(cow_copying *c, cow_loc made)
{
    cow_loc root = {.type = H5I_GROUP};
    H5O_info2_t info;
    int status;

    if (cow_native_info(made, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (COW_RESERVE(c->along, c->along_room, c->along_count, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for a copy");
    snprintf(c->along[c->along_count], sizeof *c->along, "~obj_pointed_by_%llu",
             (unsigned long long)cow_address(&info.token));
    if ((root.object = cow_native_group_open(c->target, "/")) == NULL)
        return -1;
    if ((status = cow_unlinked_link(&c->unlinked, made, root, c->along[c->along_count])) == 0)
        c->along_count++;
    return cow_native_group_close(root.object) < 0 ? -1 : status;
}

void cow_copy_drop_along(cow_copying *c)
{
    cow_loc root = {.type = H5I_GROUP};

    if (c->along_count == 0)
        return;
    if ((root.object = cow_native_group_open(c->target, "/")) == NULL)
        return;
    for (size_t i = 0; i < c->along_count; i++)
        cow_native_link_delete(root, c->along[i]);
    cow_native_group_close(root.object);
}

/* The copy of what was led to, OBJECT, as an id. */
static hid_t copied_target(expanding *e, cow_loc object)
{
    H5O_info2_t info;
    cow_loc made;
    hid_t id = H5I_INVALID_HID;
    bool known;

    if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
        return H5I_INVALID_HID;
    known = cow_map_get(&e->file->done, cow_address(&info.token), NULL);
    if (cow_copy_object(e->c, e->file, object, 0, &made) < 0)
        return H5I_INVALID_HID;
    if (cow_native_info(made, NULL, H5O_INFO_BASIC, &info) == 0 &&
        (known || !cow_map_get(&e->c->unlinked, cow_address(&info.token), NULL) || link_along(e->c, made) == 0))
        id = id_of(made);
    if (cow_native_close(made) < 0 && id >= 0) {
        H5Idec_ref(id);
        id = H5I_INVALID_HID;
    }
    return id;
}

static int make_old(hid_t target, H5R_type_t kind, hid_t region, void *element)
{
    unsigned char made[sizeof(H5R_ref_t)] = {0};

    if (H5Rcreate(made, target, ".", kind, region) < 0)
        return cow_error_native("cannot make a reference to a copy");
    memcpy(element, made, kind == H5R_OBJECT1 ? sizeof(hobj_ref_t) : sizeof(hdset_reg_ref_t));
    return 0;
}

static int make_new(hid_t target, H5R_type_t kind, hid_t region, H5R_ref_t *element)
{
    H5R_ref_t made;
    char *name = NULL;
    ssize_t length;
    herr_t status = -1;

    memset(&made, 0, sizeof made);
    if (kind == H5R_ATTR) {
        if ((length = H5Rget_attr_name(element, NULL, 0)) >= 0 && (name = calloc(1, (size_t)length + 1)) != NULL &&
            H5Rget_attr_name(element, name, (size_t)length + 1) >= 0)
            status = H5Rcreate_attr(target, ".", name, H5P_DEFAULT, &made);
        free(name);
    } else
        status = region >= 0 ? H5Rcreate_region(target, ".", region, H5P_DEFAULT, &made)
                             : H5Rcreate_object(target, ".", H5P_DEFAULT, &made);
    if (status < 0)
        return cow_error_native("cannot make a reference to a copy");
    H5Rdestroy(element);
    *element = made;
    return 0;
}

/* What ELEMENT leads to, and of which of its elements it speaks; *OBJECT negative: nothing. */
static void follow(const expanding *e, bool old, H5R_type_t kind, void *element, hid_t *object, hid_t *region)
{
    *region = H5I_INVALID_HID;
    H5E_BEGIN_TRY
    {
        *object = old ? H5Rdereference2(e->holder, H5P_DEFAULT, kind, element)
                      : H5Ropen_object(element, H5P_DEFAULT, H5P_DEFAULT);
        if (*object >= 0 && kind == H5R_DATASET_REGION1)
            *region = H5Rget_region(e->holder, kind, element);
        else if (*object >= 0 && kind == H5R_DATASET_REGION2)
            *region = cow_native_region_open(element);
        if (*object >= 0 && *region < 0 && (kind == H5R_DATASET_REGION1 || kind == H5R_DATASET_REGION2)) {
            H5Oclose(*object);
            *object = H5I_INVALID_HID;
        }
    }
    H5E_END_TRY
}

static int expand_one(void *context, hid_t type, void *element)
{
    static const unsigned char nothing[sizeof(H5R_ref_t)];
    expanding *e = context;
    bool old = H5Tequal(type, H5T_STD_REF) <= 0;
    H5R_type_t kind = !old                                  ? H5Rget_type(element)
                      : H5Tequal(type, H5T_STD_REF_OBJ) > 0 ? H5R_OBJECT1
                                                            : H5R_DATASET_REGION1;
    hid_t object, region, target = H5I_INVALID_HID;
    int status = -1;

    if (old ? memcmp(element, nothing, H5Tget_size(type)) == 0 : kind == H5R_BADTYPE)
        return 0;
    if (!old && cow_native_reference_is_foreign(element))
        return cow_native_references_lend(type, 1, element);
    follow(e, old, kind, element, &object, &region);
    if (object < 0)
        return cow_native_references_empty(type, 1, element);
    if ((target = copied_target(e, object_of(object))) >= 0)
        status = old ? make_old(target, kind, region, element) : make_new(target, kind, region, element);
    if (target >= 0)
        H5Idec_ref(target);
    if (region >= 0)
        H5Sclose(region);
    H5Oclose(object);
    return status;
}

int cow_copy_references(cow_copying *c, cow_copied_file *file, cow_loc holder, hid_t type, size_t n, void *values)
{
    expanding e = {c, file, id_of(holder)};
    int status = e.holder < 0 ? -1 : cow_native_references_each(type, n, values, expand_one, &e);

    if (e.holder >= 0)
        H5Idec_ref(e.holder);
    return status;
}
