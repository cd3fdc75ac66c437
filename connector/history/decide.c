/* The first pass over the head when a version is made: what is the same as its newest snapshot, and what is new? It goes down from the
 * root wherever something may have changed, and remembers its answers by address. */
#include "history/walk.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- comparing an object with its snapshot ---- */

/* A version's own objects are of its own types: what is of the head's type T is the same as what is of T's snapshot. */
static int is_snapshot_of_type(void *context, hid_t head, hid_t snapshot)
{
    const cow_walk *walk = context;
    H5O_token_t token[2];
    uint64_t newest;

    if (cow_native_named_token(head, &token[0]) < 0 || cow_native_named_token(snapshot, &token[1]) < 0)
        return -1;
    return cow_snapshots_newest(walk->file, cow_address(&token[0]), &newest) && newest == cow_address(&token[1]);
}

bool cow_lies_elsewhere(hid_t dcpl)
{
    return H5Pget_layout(dcpl) == H5D_VIRTUAL || H5Pget_external_count(dcpl) > 0;
}

/* The elements of a dataset that HDF5 keeps itself; only small ones without pointers are compared. */
static int elements_differ(cow_loc head, cow_loc snapshot)
{
    hid_t type = cow_native_dataset_type(head.object), space = H5I_INVALID_HID, space2 = H5I_INVALID_HID,
          dcpl = H5I_INVALID_HID;
    uint64_t n;
    size_t size;
    unsigned char *bytes = NULL;
    int differs = -1;

    if (type < 0 || (space = cow_native_dataset_space(head.object)) < 0 ||
        (space2 = cow_native_dataset_space(snapshot.object)) < 0 || (dcpl = cow_native_dataset_dcpl(head.object)) < 0)
        goto done;
    differs = 1;
    if (!cow_native_space_same_extent(space, space2))
        goto done;
    if (cow_lies_elsewhere(dcpl)) {
        differs = 0; /* its elements are in no version */
        goto done;
    }
    if (cow_type_is_heap(type, true) || H5Tdetect_class(type, H5T_REFERENCE) != 0 || H5Tget_class(type) == H5T_COMPOUND)
        goto done;
    size = H5Tget_size(type);
    if (cow_space_elements(space, &n) < 0) {
        differs = -1;
        goto done;
    }
    if (n > 65536 / size)
        goto done;
    if ((bytes = calloc(2, (size_t)n * size + 1)) == NULL) {
        differs = cow_error(COW_MEMORY, "no memory to compare a dataset");
        goto done;
    }
    if (cow_native_dataset_read(head.object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes) < 0 ||
        cow_native_dataset_read(snapshot.object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes + (size_t)n * size) < 0)
        differs = -1;
    else
        differs = memcmp(bytes, bytes + (size_t)n * size, (size_t)n * size) != 0;
done:
    free(bytes);
    cow_close(dcpl, space2, space, type);
    return differs;
}

/* Does what was noted as changed really differ from the newest snapshot? 1, 0, -1 */
static int differs(cow_walk *walk, uint64_t address, unsigned flags, cow_loc head)
{
    H5O_token_t token;
    uint64_t snapshot_address;
    const cow_dataset *dataset;
    cow_loc snapshot;
    int answer = 0;

    if ((flags & (1u << COW_CHANGED_NEW | COW_CHANGED_LINKS | COW_CHANGED_RENEW)) != 0 ||
        !cow_snapshots_newest(walk->file, address, &snapshot_address))
        return 1;
    if ((flags & COW_CHANGED_ARRAY) != 0 &&
        (((dataset = cow_datasets_find(walk->file, address)) != NULL && dataset->root_changed) ||
         cow_stowed_find(walk->file, address, NULL)))
        return 1;
    if ((flags & (1u << COW_CHANGED_DATA | 1u << COW_CHANGED_ATTRIBUTES)) == 0)
        return 0;
    token = cow_token(snapshot_address);
    if (cow_native_open_token(walk->file->loc, &token, &snapshot) < 0)
        return -1;
    if (snapshot.type != head.type)
        answer = 1;
    else if ((flags & 1u << COW_CHANGED_ATTRIBUTES) != 0)
        answer = cow_header_differs(head, snapshot, true, is_snapshot_of_type, walk);
    if (answer == 0 && (flags & 1u << COW_CHANGED_DATA) != 0)
        answer = elements_differ(head, snapshot);
    if (cow_native_close(snapshot) < 0)
        answer = -1;
    return answer;
}

/* ---- deciding ---- */

bool cow_walk_is_history(const cow_walk_group *p, const char *name)
{
    return p->root && strcmp(name, COW_GROUP) == 0;
}

char *cow_walk_child_path(const char *path, const char *name)
{
    char *child;

    if (asprintf(&child, "%s/%s", path, name) < 0) {
        cow_error(COW_MEMORY, "no memory for a path");
        return NULL;
    }
    return child;
}

static int decide_child(void *context, const char *name, const H5L_info2_t *info)
{
    cow_walk_group *p = context;
    const cow_by_link met = {p->group, name};
    char *path;
    int answer;

    if (info->type == H5L_TYPE_SOFT && p->walk->renew && p->answer != COW_NEW) {
        size_t size;
        char *value = cow_native_link_value(p->group, name, &size);
        if (value == NULL)
            cow_error_clear();
        if (value == NULL || value[0] == '/')
            p->answer = COW_NEW;
        free(value);
    }
    if (info->type != H5L_TYPE_HARD || cow_walk_is_history(p, name))
        return 0;
    if (p->walk->full && cow_map_get(&p->walk->several, cow_address(&info->u.token), NULL))
        cow_changes_held_by(p->walk->file, cow_address(&info->u.token), p->path);
    if ((path = cow_walk_child_path(p->path, name)) == NULL)
        return p->answer = -1;
    answer = cow_decide(p->walk, cow_address(&info->u.token), path, &met);
    free(path);
    if (answer < 0)
        return p->answer = -1;
    if (answer == COW_NEW || answer == COW_VISITING)
        p->answer = COW_NEW; /* a cycle: whoever closes it is made anew with the rest */
    return 0;
}

/* 1: TYPE, which is closed, is a named one that is made anew. */
static int type_is_new(cow_walk *walk, hid_t type)
{
    H5O_info2_t info;
    int answer = type < 0 ? -1 : 0;

    if (answer == 0 && H5Tcommitted(type) > 0) {
        answer = -1;
        if (cow_native_info(cow_native_named_type(type), NULL, H5O_INFO_BASIC, &info) == 0 &&
            (answer = cow_decide(walk, cow_address(&info.token), COW_PATH_UNKNOWN, NULL)) > 0)
            answer = answer == COW_NEW;
    }
    if (type >= 0)
        H5Tclose(type);
    return answer;
}

static int attribute_type_is_new(void *context, const char *name)
{
    cow_walk_group *p = context;
    return type_is_new(p->walk, cow_native_attribute_type(p->group, name));
}

static int types_are_new(cow_walk *walk, cow_loc object)
{
    cow_walk_group p = {.walk = walk, .group = object};
    int answer = object.type == H5I_DATASET ? type_is_new(walk, cow_native_dataset_type(object.object)) : 0;

    return answer != 0 ? answer : cow_native_attributes(object, false, attribute_type_is_new, &p);
}

/* Where more than one of so many of its links changed, a group is listed. */
#define FEW_SHARE 8

int cow_walk_find_link(cow_loc group, const char *name, H5L_info2_t *info)
{
    int there = cow_native_exists(group, name);

    return there <= 0 ? there : cow_native_link_info(group, name, info) < 0 ? -1 : 1;
}

const char *const *cow_decide_few_names(const cow_walk *walk, cow_loc group, const char *path, size_t *count)
{
    const char *const *names =
        walk->full || walk->renew || walk->types ? NULL : cow_changes_names(walk->file, path, count);
    hsize_t links;

    if (names == NULL)
        return NULL;
    if (cow_native_group_size(group.object, &links) < 0) {
        cow_error_clear();
        return NULL;
    }
    return *count > links / FEW_SHARE ? NULL : names;
}

/* What the links of a group say; a group that cannot be listed is new. */
static int decide_links(cow_walk *walk, cow_loc group, const char *path, int answer)
{
    cow_walk_group p = {.walk = walk, .group = group, .path = path, .root = path[0] == '\0', .answer = answer};
    size_t count = 0;
    const char *const *names = cow_decide_few_names(walk, group, path, &count);
    H5L_info2_t info;
    int there;

    for (size_t i = 0; names != NULL && i < count; i++) {
        if ((there = cow_walk_find_link(group, names[i], &info)) == 0)
            continue; /* the group is known to have lost a link */
        if (there < 0) {
            cow_error_clear();
            return COW_NEW;
        }
        if (decide_child(&p, names[i], &info) < 0)
            return -1;
    }
    if (names != NULL)
        return p.answer;
    if (cow_native_links(group, COW_LINKS_ANY, decide_child, &p) < 0 && p.answer >= 0) {
        cow_error_clear();
        return COW_NEW;
    }
    return p.answer;
}

static int note_several(cow_walk *walk, uint64_t address, unsigned links)
{
    return walk->full || links <= 1 || !cow_snapshots_known(walk->file, address)
               ? 0
               : cow_map_put(&walk->several, address, links);
}

static int count_link(cow_walk *walk, uint64_t address)
{
    uint64_t links = 0;

    cow_map_get(&walk->links, address, &links);
    return cow_map_put(&walk->links, address, links + 1);
}

/* Was each link to what changed met, so that all groups that hold one are made anew? */
static bool all_links_met(const cow_walk *walk)
{
    for (size_t i = 0; i < walk->several.capacity; i++) {
        const cow_map_entry *e = &walk->several.entry[i];
        uint64_t links = 0;

        if (e->used && (!cow_map_get(&walk->links, e->key, &links) || links < e->value))
            return false;
    }
    return true;
}

/* The whole head is walked through. */
static void look_for_holders(cow_walk *walk)
{
    walk->full = true;
    for (size_t i = 0; i < walk->several.capacity; i++)
        if (walk->several.entry[i].used)
            cow_changes_held_by(walk->file, walk->several.entry[i].key, NULL);
    cow_map_free(&walk->state);
}

bool cow_decide_is_whole(const cow_walk *walk, uint64_t address, cow_stowed_head *head)
{
    return cow_changes_bare(walk->file, address) && cow_stowed_find(walk->file, address, head) && head->whole;
}

/* An object of which the notes alone say whether it is the same: opening it would cost more than all else.
 * FLAGS: of its change. 0: it has to be looked at. */
static int decide_unopened(cow_walk *walk, uint64_t address, unsigned flags, const cow_by_link *met)
{
    cow_file *file = walk->file;
    cow_stowed_head stowed;
    bool known = cow_snapshots_newest(file, address, NULL) && !cow_stowed_find(file, address, NULL);
    H5O_info2_t info;

    if (met != NULL && !known && cow_changes_empty_group(file, address))
        return cow_map_put(&walk->bare, address, 1) < 0 ? -1 : COW_NEW;
    if (met != NULL && !cow_snapshots_known(file, address) && cow_decide_is_whole(walk, address, &stowed))
        return COW_NEW;
    if (met == NULL || (known && (flags != 0 || (walk->full && walk->types))) ||
        (cow_datasets_find(file, address) != NULL && !cow_stowed_find(file, address, NULL))) /* it is open */
        return 0;
    if (cow_native_info(met->group, met->name, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, &info) < 0) {
        cow_error_clear();
        return 0;
    }
    /* a name may lead across a mount point into another file */
    if (info.type == H5O_TYPE_GROUP || info.fileno != file->fileno || cow_address(&info.token) != address)
        return 0;
    if (known)
        return COW_SAME;
    if (note_several(walk, address, info.rc) < 0)
        return -1;
    return info.type == H5O_TYPE_DATASET && info.num_attrs == 0 && flags == 0 && cow_bare_find(file, address) != NULL &&
                   cow_map_put(&walk->bare, address, 0) < 0
               ? -1
               : COW_NEW;
}

/* An open object. */
static int decide_opened(cow_walk *walk, uint64_t address, unsigned flags, const char *path, cow_loc object)
{
    H5O_info2_t info;
    int answer = differs(walk, address, flags, object) == 0 ? COW_SAME : COW_NEW;

    if (answer == COW_NEW && object.type == H5I_DATATYPE && cow_snapshots_newest(walk->file, address, NULL))
        walk->types = true;
    if (answer == COW_SAME && walk->full && walk->types && types_are_new(walk, object) != 0)
        answer = COW_NEW;
    cow_error_clear(); /* what cannot be compared is new */
    if (object.type == H5I_GROUP)
        answer = decide_links(walk, object, path, answer);
    if (answer == COW_NEW && !walk->full && cow_snapshots_known(walk->file, address)) {
        if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0) {
            cow_error_clear();
            info.rc = UINT_MAX; /* it may have several links */
        }
        if (note_several(walk, address, info.rc) < 0)
            answer = -1;
    }
    return answer;
}

int cow_decide(cow_walk *walk, uint64_t address, const char *path, const cow_by_link *met)
{
    cow_file *file = walk->file;
    unsigned flags = cow_changes_flags(file, address) | (cow_lacks_lost(file) ? 1u << COW_CHANGED_NEW : 0);
    uint64_t known;
    cow_loc object;
    bool borrowed;
    int answer;

    if (cow_map_get(&walk->state, address, &known))
        return met != NULL && !walk->full && count_link(walk, address) < 0 ? -1 : (int)known;
    if (cow_changes_flags(file, address) == 0 && !walk->full && cow_snapshots_newest(file, address, NULL) &&
        !cow_changes_below(file, path))
        return COW_SAME; /* not noted as met: a change may be below it after all */
    if (met != NULL && !walk->full && count_link(walk, address) < 0)
        return -1;
    if (cow_map_put(&walk->state, address, COW_VISITING) < 0)
        return -1;
    if ((answer = decide_unopened(walk, address, flags, met)) == 0) {
        answer = COW_NEW;
        if (cow_head_open(walk->file, address, &object, &borrowed) == 0) {
            answer = decide_opened(walk, address, flags, path, object);
            cow_head_close(object, borrowed);
        } else
            cow_error_clear(); /* building meets the reason */
    }
    return answer < 0 || cow_map_put(&walk->state, address, (uint64_t)answer) < 0 ? -1 : answer;
}

static int is_unmet(void *context, uint64_t address, const char *path)
{
    const cow_walk *walk = context;

    (void)path;
    return !cow_map_get(&walk->state, address, NULL) && !cow_map_get(&walk->deleted, address, NULL);
}

static bool all_met(cow_walk *walk)
{
    return cow_changes_each(walk->file, is_unmet, walk) == 0;
}

static int is_used_type(void *context, uint64_t address, const char *path)
{
    const cow_walk *walk = context;
    cow_loc object;
    bool borrowed;

    if (!is_unmet(context, address, path) || !cow_snapshots_newest(walk->file, address, NULL))
        return 0;
    if (cow_head_open(walk->file, address, &object, &borrowed) < 0) {
        cow_error_clear();
        return 0;
    }
    cow_head_close(object, borrowed);
    return object.type == H5I_DATATYPE;
}

/* A named datatype changed that no link leads to: what is of this type tells whether it is in use. */
static bool used_type_changed(cow_walk *walk)
{
    return walk->full && !walk->types && cow_changes_each(walk->file, is_used_type, walk) != 0;
}

typedef struct unreached {
    const cow_walk *walk;
    uint64_t version;
    cow_lacks *lacks;
} unreached;

static int note_unreached(void *context, uint64_t address, const char *path)
{
    const unreached *u = context;

    (void)path;
    if (cow_map_get(&u->walk->state, address, NULL) || !cow_snapshots_newest(u->walk->file, address, NULL))
        return 0;
    return cow_lacks_add(u->lacks, u->version, address, NULL, "") < 0 ? -1
                                                                      : cow_snapshots_outdate(u->walk->file, address);
}

int cow_walk_note_unreached(const cow_walk *walk, uint64_t version, cow_lacks *lacks)
{
    return cow_changes_each(walk->file, note_unreached, &(unreached){walk, version, lacks});
}

/* Through the whole head. */
static int decide_again(cow_walk *walk)
{
    look_for_holders(walk);
    return cow_decide(walk, cow_address(&walk->file->root), "", NULL);
}

int cow_walk_decide(cow_walk *walk)
{
    int answer, absolute;
    bool types = false; /* the walk through the whole head knew from its beginning that one changed */

    if (cow_snapshots_load(walk->file) < 0)
        return -1;
    if (!walk->full) {
        if ((answer = cow_deleted_settle(walk->file, &walk->deleted)) < 0)
            return -1;
        walk->full = answer == 0;
    }
    answer = cow_decide(walk, cow_address(&walk->file->root), "", NULL);
    if (answer > 0 && !walk->full && (walk->types || !all_links_met(walk) || !all_met(walk))) {
        types = walk->types;
        answer = decide_again(walk);
    }
    /* what was met before the type that changed is asked once more */
    if (answer > 0 && !types && (walk->types || used_type_changed(walk))) {
        walk->types = true;
        answer = decide_again(walk);
    }
    if (answer == COW_NEW) {
        if ((absolute = cow_absolute_links(walk->file)) < 0)
            return -1;
        if (absolute) {
            walk->renew = true;
            answer = decide_again(walk);
        }
    }
    return answer < 0 ? -1 : answer == COW_NEW;
}
