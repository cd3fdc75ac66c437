/* References of copied objects. See cp.h. The way of import/tree.h is taken: an object of the source has a path in the target. */
#include "cp.h"

#include "base/error.h"
#include "base/ids.h"
#include "native/datatype.h"
#include "object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Objects that are known, in the order in which they were met: groups among them are yet to be gone through. */
typedef struct walk {
    cow_tree tree;
    bool copied;   /* what is met was copied; else it stands in the target if it has its path and kind there */
    bool some;     /* a copied object holds references */
    char **source; /* of each object of the tree, its path in FROM */
    size_t room;
} walk;

/* STATUS; of a failure, the reason is kept before the next call of HDF5 forgets it. What was not copied need not be readable. */
static int noted(const walk *w, int status, const char *what)
{
    if (status == 0)
        return 0;
    if (w->copied)
        return cow_error_pending() ? -1 : cow_error_native("%s", what);
    cow_error_clear();
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

static bool holds_references(hid_t type)
{
    return type >= 0 && H5Tdetect_class(type, H5T_REFERENCE) > 0;
}

static int look_for_references(walk *w, hid_t object)
{
    cow_tree_names names = {0};
    hid_t type = H5Iget_type(object) == H5I_DATASET ? H5Dget_type(object) : H5I_INVALID_HID, attribute;
    int status = cli_object_attributes(object, &names);

    w->some = w->some || holds_references(type);
    cow_close(type);
    for (size_t i = 0; status == 0 && !w->some && i < names.count; i++) {
        if ((attribute = H5Aopen(object, names.entry[i].name, H5P_DEFAULT)) < 0 || (type = H5Aget_type(attribute)) < 0)
            status = -1;
        else
            w->some = holds_references(type);
        status = noted(w, status, names.entry[i].name);
        cow_close(type, attribute);
        type = H5I_INVALID_HID;
    }
    cow_tree_names_free(&names);
    return status;
}

/* Notes the object that is SOURCE in FROM and TARGET in TO, if it is new. */
static int meet(walk *w, const char *source, const char *target)
{
    hid_t object = H5Oopen(w->tree.from, source, H5P_DEFAULT);
    H5O_info2_t info, there;
    int status = -1;

    if (object < 0 || H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0)
        goto done;
    status = 0;
    if (cow_tree_find(&w->tree, &info.token) != NULL)
        goto done;
    if (!w->copied && info.type != H5O_TYPE_GROUP &&
        (H5Oget_info_by_name3(w->tree.to, target, &there, H5O_INFO_BASIC, H5P_DEFAULT) < 0 ||
         there.type != info.type)) {
        H5Eclear2(H5E_DEFAULT);
        goto done;
    }
    if (w->copied && !w->some)
        status = look_for_references(w, object);
    size_t at = w->tree.objects;
    CLI_RESERVE(w->source, w->room, at, 1);
    w->source[at] = cli_strdup(source);
    if (status == 0)
        status = cow_tree_remember(&w->tree, &info.token, cli_strdup(target), info.type, H5I_INVALID_HID, false);
    if (w->tree.objects == at)
        free(w->source[at]);
done:
    status = noted(w, status, source);
    cow_close(object);
    return status;
}

static int meet_members(walk *w, size_t place)
{
    hid_t group = H5Gopen2(w->tree.from, w->source[place], H5P_DEFAULT);
    cow_tree_names links = {0};
    int status = group < 0 ? -1 : cli_object_links(group, &links);

    for (size_t i = 0; status == 0 && i < links.count; i++)
        if (links.entry[i].link.type == H5L_TYPE_HARD) {
            char *source = cli_child_path(w->source[place], links.entry[i].name);
            char *target = cli_child_path(w->tree.object[place].path, links.entry[i].name);
            status = meet(w, source, target);
            free(target);
            free(source);
        }
    status = noted(w, status, w->source[place]);
    cow_tree_names_free(&links);
    cow_close(group);
    return status;
}

static int go_through(walk *w, const char *source, const char *target)
{
    size_t place = w->tree.objects;
    int status = meet(w, source, target);

    for (; status == 0 && place < w->tree.objects; place++)
        if (w->tree.object[place].type == H5O_TYPE_GROUP)
            status = meet_members(w, place);
    return status;
}

/* The value of an attribute that the copy has as well. */
static int mend_attribute(walk *w, hid_t from, hid_t to, const char *path, const char *name)
{
    hid_t source = H5Aopen(from, name, H5P_DEFAULT), type = source < 0 ? source : H5Aget_type(source);
    hid_t memory = H5I_INVALID_HID, space = H5I_INVALID_HID, target = H5I_INVALID_HID;
    const cow_tree_null_counts before = cow_tree_nulls_now(&w->tree);
    void *value = NULL;
    int status = type < 0 ? -1 : 0;

    if (!holds_references(type))
        goto done;
    status = -1;
    if ((memory = H5Tcopy(type)) < 0 || (space = H5Aget_space(source)) < 0 ||
        (target = H5Aopen(to, name, H5P_DEFAULT)) < 0)
        goto done;
    hssize_t count = H5Sget_simple_extent_npoints(space);
    if (count <= 0) {
        status = count < 0 ? -1 : 0;
        goto done;
    }
    value = cli_alloc((size_t)count, H5Tget_size(memory));
    if (H5Aread(source, memory, value) >= 0) {
        if (cow_tree_references(&w->tree, memory, (size_t)count, value) == 0 && H5Awrite(target, memory, value) >= 0)
            status = 0;
        noted(w, status, name);
        cow_tree_nulls_since(&w->tree, before, path, name);
        cow_reclaim(memory, space, H5P_DEFAULT, value);
    }
done:
    noted(w, status, name);
    free(value);
    cow_close(target, space, memory, type, source);
    return status;
}

static int mend_object(walk *w, size_t place)
{
    const char *path = w->tree.object[place].path;
    hid_t from = H5Oopen(w->tree.from, w->source[place], H5P_DEFAULT), to = H5Oopen(w->tree.to, path, H5P_DEFAULT);
    hid_t type = H5I_INVALID_HID;
    cow_tree_names names = {0};
    int status = from < 0 || to < 0 ? -1 : cli_object_attributes(from, &names);

    for (size_t i = 0; status == 0 && i < names.count; i++)
        status = mend_attribute(w, from, to, path, names.entry[i].name);
    if (status == 0 && H5Iget_type(from) == H5I_DATASET) {
        if ((type = H5Dget_type(from)) < 0)
            status = -1;
        else if (holds_references(type))
            status = cow_tree_copy_elements(&w->tree, from, to, path);
    }
    noted(w, status, path);
    cow_tree_names_free(&names);
    cow_close(type, to, from);
    return status;
}

int cli_cp_references(hid_t from, const char *path, hid_t to, const char *to_path, cow_tree_nulls lost[2], char *why,
                      size_t size)
{
    walk w = {.tree = {.from = from, .to = to}, .copied = true};
    int status = go_through(&w, path, to_path);
    size_t copied = w.tree.objects;

    if (status == 0 && w.some) {
        w.copied = false;
        status = go_through(&w, "/", "/");
    }
    w.copied = true;
    for (size_t i = 0; status == 0 && w.some && i < copied; i++)
        status = mend_object(&w, i);
    lost[0] = w.tree.dangling;
    lost[1] = w.tree.stray;
    if (status < 0 && w.tree.why[0] != '\0')
        snprintf(why, size, "%s", w.tree.why);
    else if (status < 0)
        cli_reason(why, size);
    for (size_t i = 0; i < w.tree.objects; i++)
        free(w.source[i]);
    free(w.source);
    cow_tree_free(&w.tree);
    return status;
}
