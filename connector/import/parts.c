/* What making and comparing a tree share: why it fails, which objects are known, and the names of links and attributes.
 * Contract: tree.h. */
#include "import/tree.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors and objects ---- */

int cow_tree_failed(cow_tree *tree, const char *what, const char *path)
{
    char text[512];

    cow_error_lowest(text, sizeof text);
    if (tree->why[0] == '\0')
        snprintf(tree->why, sizeof tree->why, "%s '%.400s' cannot be copied: %s", what, path, text);
    return -1;
}

int cow_tree_no_memory(cow_tree *tree)
{
    if (tree->why[0] == '\0')
        snprintf(tree->why, sizeof tree->why, "there is no memory to copy it");
    return -1;
}

uint64_t cow_tree_address(const H5O_token_t *token)
{
    return cow_get64(token->__data);
}

char *cow_tree_join(const char *path, const char *name)
{
    char *joined;

    return asprintf(&joined, "%s/%s", path[1] == '\0' ? "" : path, name) < 0 ? NULL : joined;
}

int cow_tree_remember(cow_tree *tree, const H5O_token_t *token, char *path, H5O_type_t type, hid_t pending,
                      bool data_later)
{
    if (COW_RESERVE(tree->object, tree->room, tree->objects, 1) < 0) {
        free(path);
        return cow_tree_no_memory(tree);
    }
    tree->object[tree->objects] = (cow_tree_object){path, type, *token, pending, data_later};
    tree->objects++;
    return cow_map_put(&tree->places, cow_tree_address(token), tree->objects - 1) < 0 ? cow_tree_no_memory(tree) : 0;
}

const cow_tree_object *cow_tree_find(const cow_tree *tree, const H5O_token_t *token)
{
    uint64_t place;

    return cow_map_get(&tree->places, cow_tree_address(token), &place) ? &tree->object[place] : NULL;
}

/* ---- references that are null in the copy ---- */

void cow_tree_nulls_where(const cow_tree_nulls *nulls, char *text, size_t size)
{
    size_t more = nulls->places - nulls->named;

    if (nulls->named == 0)
        snprintf(text, size, "%s", "");
    else if (more == 0)
        snprintf(text, size, ": %s", nulls->where);
    else
        snprintf(text, size, ": %s and %zu more place%s", nulls->where, more, more == 1 ? "" : "s");
}

/* ---- names ---- */

static void note(cow_tree_names *names, const char *name, const H5L_info2_t *link)
{
    if (COW_RESERVE(names->entry, names->room, names->count, 1) < 0 ||
        (names->entry[names->count].name = strdup(name)) == NULL) {
        names->failed = true;
        return;
    }
    if (link != NULL)
        names->entry[names->count].link = *link;
    names->count++;
}

static herr_t note_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    cow_tree_names *names = context;

    (void)group;
    note(names, name, info);
    return names->failed ? -1 : 0;
}

static herr_t note_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    cow_tree_names *names = context;

    (void)object;
    (void)info;
    note(names, name, NULL);
    return names->failed ? -1 : 0;
}

void cow_tree_names_free(cow_tree_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->entry[i].name);
    free(names->entry);
    *names = (cow_tree_names){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cow_tree_entry *)a)->name, ((const cow_tree_entry *)b)->name);
}

void cow_tree_names_by_name(cow_tree_names *names)
{
    if (names->count > 1)
        qsort(names->entry, names->count, sizeof *names->entry, by_name);
}

static int by_creation(const void *a, const void *b)
{
    const int64_t x = ((const cow_tree_entry *)a)->link.corder, y = ((const cow_tree_entry *)b)->link.corder;

    return x < y ? -1 : x > y;
}

int cow_tree_links(hid_t group, cow_tree_names *names)
{
    bool recorded = true;

    /* In its own order: for others HDF5 1.14.5 makes a table first, and frees what it has not put there if it cannot read one of the links. */
    if (H5Literate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, note_link, names) < 0)
        return -1;
    for (size_t i = 0; i < names->count; i++)
        recorded = recorded && names->entry[i].link.corder_valid;
    if (!recorded)
        cow_tree_names_by_name(names);
    else if (names->count > 1)
        qsort(names->entry, names->count, sizeof *names->entry, by_creation);
    return 0;
}

/* HDF5 numbers the attributes that it reads where no numbers are recorded, so it is not to be asked for the order. */
static bool tracks_attributes(hid_t object)
{
    H5I_type_t type = H5Iget_type(object);
    hid_t list = type == H5I_GROUP     ? H5Gget_create_plist(object)
                 : type == H5I_DATASET ? H5Dget_create_plist(object)
                                       : H5Tget_create_plist(object);
    unsigned order = 0;

    if (list >= 0) {
        H5Pget_attr_creation_order(list, &order);
        H5Pclose(list);
    }
    return order & H5P_CRT_ORDER_TRACKED;
}

int cow_tree_attributes(hid_t object, cow_tree_names *names)
{
    H5O_info2_t info;

    if (H5Oget_info3(object, &info, H5O_INFO_NUM_ATTRS) < 0)
        return -1;
    names->unordered = !tracks_attributes(object);
    if (info.num_attrs == 0 || H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, note_attribute, names) >= 0)
        return 0;
    cow_tree_names_free(names);
    names->unordered = true;
    return H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, note_attribute, names) < 0 ? -1 : 0;
}
