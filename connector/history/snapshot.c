/* The head's tree becomes a version's tree by path copying, as Git does: objects that did not change since the newest
 * version are hard links to its snapshots, everything on the path to a change is made anew.
 *
 * Two passes. Deciding (cow_walk_decide) goes down from the root wherever something may have changed and settles for
 * each object met: the same as its newest snapshot, or new. Building (cow_walk_build) makes the new ones. An object
 * with several links in the head is one object in the version, because both passes remember objects by address.
 *
 * A snapshot that cannot be made fails nothing else: the object is left out of the version, with what hangs below it alone,
 * or is in it without the attribute, comment or link in question, and is listed (incomplete.c). Deciding takes what it
 * cannot look at for new, so that building meets it. What fails the walk is only what concerns the version as a whole.
 *
 * Which snapshot belongs to which head object: snapshot_table.c.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "history/folders.h"
#include "history/header.h"
#include "journal/driver.h"
#include "native/dense.h"
#include "native/small_group.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the walk ---- */

enum { SAME = 1, NEW = 2, VISITING = 3 };

/* Of a head object in `built` whose snapshot could not be made. */
#define LEFT_OUT UINT64_MAX
/* In `partial`: the object's attributes are not what was written. */
#define DAMAGED 1

/* More than 20 fields: deciding, building and taking back go over the same objects, and know them by the same maps. */
struct cow_walk {
    cow_file *file;
    cow_map state;    /* head address -> SAME, NEW, VISITING */
    cow_map built;    /* head address -> address of the snapshot made in this walk, or LEFT_OUT */
    cow_map used;     /* head addresses of named datatypes with a snapshot that were met by their use, not by a link */
    cow_map held;     /* of all that were made for their use -> a handle: what was to use it may fail */
    cow_map bare;     /* head addresses of what need not be opened -> 1: empty groups, 0: copies (bare.c) */
    cow_map unlinked; /* snapshots that have no link yet: see unlinked.c */
    cow_map
        partial;    /* head addresses of objects whose snapshot lacks an attribute, a comment or a link -> 0, DAMAGED */
    cow_map summed; /* head addresses of objects of which attributes have a checksum in the table */
    cow_map deleted; /* head addresses; not full */
    bool full;      /* look into every group */
    bool types;     /* a named datatype changed: what is of this type changes with it */
    bool renew;     /* groups with absolute soft links are made anew: the links name the version */
    bool absolute;  /* building: such a group was met */
    cow_map several; /* head addresses of what changed and has several links -> how many: all groups that hold one change with it.
                      * Those of what no version knows were made since, and are known to have changed */
    cow_map links;   /* head addresses of what was looked at -> links to it that were met; not full */
    bool failed;    /* building: not a single object, but no version can be made */
    char prefix[COW_PATH_MAX + 256]; /* of the version being built */
    uint64_t row;
    int64_t changed;
    cow_lacks *lacks;             /* building: what could not be made */
    cow_loc made;                 /* the new root */
    bool linked, set_aside, gone; /* the new tree; the former one, which then is gone */
    unsigned copying;             /* groups below COW_PATH_COPYING that were made */
    struct leftover *rest;        /* amending */
};

static void leftover_free(struct leftover *l);

cow_walk *cow_walk_open(cow_file *file)
{
    cow_walk *walk = calloc(1, sizeof *walk);

    if (walk == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for a commit", file->name);
        return NULL;
    }
    walk->file = file;
    walk->full = cow_changes_distrusted(file) || cow_lacks_lost(file);
    return walk;
}

void cow_walk_close(cow_walk *walk)
{
    cow_map_free(&walk->state);
    cow_map_free(&walk->built);
    cow_map_free(&walk->used);
    cow_map_free(&walk->bare);
    cow_map_free(&walk->unlinked);
    cow_map_free(&walk->partial);
    cow_map_free(&walk->summed);
    cow_map_free(&walk->deleted);
    cow_map_free(&walk->several);
    cow_map_free(&walk->links);
    for (size_t i = 0; i < walk->held.capacity; i++)
        if (walk->held.entry[i].used &&
            cow_native_close((cow_loc){(void *)(uintptr_t)walk->held.entry[i].value, H5I_DATATYPE}) < 0)
            cow_error_clear();
    cow_map_free(&walk->held);
    leftover_free(walk->rest);
    if (walk->made.object != NULL && cow_native_close(walk->made) < 0)
        cow_error_clear();
    free(walk);
}

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

/* The hard links of a group's newest snapshot, by their names. */
/* The links of a group as they were listed. */
typedef struct listed_link {
    char *name;
    H5L_info2_t info;
} listed_link;

typedef struct listed_links {
    listed_link *link;
    size_t count, room;
} listed_links;

typedef struct place {
    cow_walk *walk;
    cow_loc group; /* head group whose links are visited */
    const char *path;
    bool root;
    int answer; /* deciding: -1: the walk fails */
    /* building only */
    uint64_t address;
    cow_loc target;           /* the new group */
    uint64_t before;          /* the group's newest snapshot; UINT64_MAX: there is none */
    cow_loc previous;         /* the same, where it is open; else object NULL */
    cow_small_group former;   /* its links, in the order of their names */
    listed_links listed;      /* those of `group`, where they were all listed already; else link NULL */
} place;

/* A link that was met: an object can be looked at by it without being opened. */
typedef struct by_link {
    cow_loc group;
    const char *name;
} by_link;

static int decide(cow_walk *walk, uint64_t address, const char *path, const by_link *met);

/* The link to the history itself, which no version has. */
static bool is_history(const place *p, const char *name)
{
    return p->root && strcmp(name, COW_GROUP) == 0;
}

#define NOWHERE "//" /* the path of what was not met by its links */

static char *child_path(const char *path, const char *name)
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
    place *p = context;
    const by_link met = {p->group, name};
    char *path;
    int answer;

    if (info->type == H5L_TYPE_SOFT && p->walk->renew && p->answer != NEW) {
        size_t size;
        char *value = cow_native_link_value(p->group, name, &size);
        if (value == NULL)
            cow_error_clear();
        if (value == NULL || value[0] == '/')
            p->answer = NEW;
        free(value);
    }
    if (info->type != H5L_TYPE_HARD || is_history(p, name))
        return 0;
    if (p->walk->full && cow_map_get(&p->walk->several, cow_address(&info->u.token), NULL))
        cow_changes_held_by(p->walk->file, cow_address(&info->u.token), p->path);
    if ((path = child_path(p->path, name)) == NULL)
        return p->answer = -1;
    answer = decide(p->walk, cow_address(&info->u.token), path, &met);
    free(path);
    if (answer < 0)
        return p->answer = -1;
    if (answer == NEW || answer == VISITING)
        p->answer = NEW; /* a cycle: whoever closes it is made anew with the rest */
    return 0;
}

/* Objects are opened by address, never by name: a name may lead across a mount point into another file. */
static int open_head(const cow_walk *walk, uint64_t address, cow_loc *object, bool *borrowed)
{
    return cow_head_open(walk->file, address, object, borrowed);
}

static void close_head(cow_loc object, bool borrowed)
{
    if (!borrowed && cow_native_close(object) < 0)
        cow_error_clear();
}

/* 1: TYPE, which is closed, is a named one that is made anew. */
static int type_is_new(cow_walk *walk, hid_t type)
{
    H5O_info2_t info;
    int answer = type < 0 ? -1 : 0;

    if (answer == 0 && H5Tcommitted(type) > 0) {
        answer = -1;
        if (cow_native_info(cow_native_named_type(type), NULL, H5O_INFO_BASIC, &info) == 0 &&
            (answer = decide(walk, cow_address(&info.token), NOWHERE, NULL)) > 0)
            answer = answer == NEW;
    }
    if (type >= 0)
        H5Tclose(type);
    return answer;
}

static int attribute_type_is_new(void *context, const char *name)
{
    place *p = context;
    return type_is_new(p->walk, cow_native_attribute_type(p->group, name));
}

static int types_are_new(cow_walk *walk, cow_loc object)
{
    place p = {.walk = walk, .group = object};
    int answer = object.type == H5I_DATASET ? type_is_new(walk, cow_native_dataset_type(object.object)) : 0;

    return answer != 0 ? answer : cow_native_attributes(object, false, attribute_type_is_new, &p);
}

/* Groups of fewer links are made anew sooner than copied; and where more than one of so many of its links changed. */
#define COPIED_LEAST 32
#define COPIED_SHARE 8

/* A link with a longer name has no place in the blocks of a group's heap, and what is apart from them is not copied. */
#define COPIED_NAME 4000

/* 1: *INFO; 0: the group has no such link; -1 */
static int is_there(cow_loc group, const char *name, H5L_info2_t *info)
{
    int there = cow_native_exists(group, name);

    return there <= 0 ? there : cow_native_link_info(group, name, info) < 0 ? -1 : 1;
}

/* The names of the few links of a large group that need to be looked at; NULL: all do. */
static const char *const *few_names(const cow_walk *walk, cow_loc group, const char *path, size_t *count)
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
    return links < COPIED_LEAST || *count > links / COPIED_SHARE ? NULL : names;
}

/* What the links of a group say; a group that cannot be listed is new. */
static int decide_links(cow_walk *walk, cow_loc group, const char *path, int answer)
{
    place p = {.walk = walk, .group = group, .path = path, .root = path[0] == '\0', .answer = answer};
    size_t count = 0;
    const char *const *names = few_names(walk, group, path, &count);
    H5L_info2_t info;
    int there;

    for (size_t i = 0; names != NULL && i < count; i++) {
        if ((there = is_there(group, names[i], &info)) == 0)
            continue; /* the group is known to have lost a link */
        if (there < 0) {
            cow_error_clear();
            return NEW;
        }
        if (decide_child(&p, names[i], &info) < 0)
            return -1;
    }
    if (names != NULL)
        return p.answer;
    if (cow_native_links(group, COW_LINKS_ANY, decide_child, &p) < 0 && p.answer >= 0) {
        cow_error_clear();
        return NEW;
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

/* A dataset of this transaction that waits for the version, with a view that can be its snapshot: since that was made, neither an attribute
 * nor a comment was noted of it. */
static bool is_whole(const cow_walk *walk, uint64_t address, cow_stowed_head *head)
{
    return cow_changes_bare(walk->file, address) && cow_stowed_find(walk->file, address, head) && head->whole;
}

/* An object of which the notes alone say whether it is the same: opening it would cost more than all else.
 * FLAGS: of its change. 0: it has to be looked at. */
static int decide_unopened(cow_walk *walk, uint64_t address, unsigned flags, const by_link *met)
{
    cow_file *file = walk->file;
    cow_stowed_head stowed;
    bool known = cow_snapshots_newest(file, address, NULL) && !cow_stowed_find(file, address, NULL);
    H5O_info2_t info;

    if (met != NULL && !known && cow_changes_empty_group(file, address))
        return cow_map_put(&walk->bare, address, 1) < 0 ? -1 : NEW;
    if (met != NULL && !cow_snapshots_known(file, address) && is_whole(walk, address, &stowed))
        return NEW;
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
        return SAME;
    if (note_several(walk, address, info.rc) < 0)
        return -1;
    return info.type == H5O_TYPE_DATASET && info.num_attrs == 0 && flags == 0 && cow_bare_find(file, address) != NULL &&
                   cow_map_put(&walk->bare, address, 0) < 0
               ? -1
               : NEW;
}

/* An open object. */
static int decide_opened(cow_walk *walk, uint64_t address, unsigned flags, const char *path, cow_loc object)
{
    H5O_info2_t info;
    int answer = differs(walk, address, flags, object) == 0 ? SAME : NEW;

    if (answer == NEW && object.type == H5I_DATATYPE && cow_snapshots_newest(walk->file, address, NULL))
        walk->types = true;
    if (answer == SAME && walk->full && walk->types && types_are_new(walk, object) != 0)
        answer = NEW;
    cow_error_clear(); /* what cannot be compared is new */
    if (object.type == H5I_GROUP)
        answer = decide_links(walk, object, path, answer);
    if (answer == NEW && !walk->full && cow_snapshots_known(walk->file, address)) {
        if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0) {
            cow_error_clear();
            info.rc = UINT_MAX; /* it may have several links */
        }
        if (note_several(walk, address, info.rc) < 0)
            answer = -1;
    }
    return answer;
}

/* PATH is "" for the root, else "/a/b"; MET: the link that led here, or NULL. */
static int decide(cow_walk *walk, uint64_t address, const char *path, const by_link *met)
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
        return SAME; /* not noted as met: a change may be below it after all */
    if (met != NULL && !walk->full && count_link(walk, address) < 0)
        return -1;
    if (cow_map_put(&walk->state, address, VISITING) < 0)
        return -1;
    if ((answer = decide_unopened(walk, address, flags, met)) == 0) {
        answer = NEW;
        if (open_head(walk, address, &object, &borrowed) == 0) {
            answer = decide_opened(walk, address, flags, path, object);
            close_head(object, borrowed);
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
    if (open_head(walk, address, &object, &borrowed) < 0) {
        cow_error_clear();
        return 0;
    }
    close_head(object, borrowed);
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
    return decide(walk, cow_address(&walk->file->root), "", NULL);
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
    answer = decide(walk, cow_address(&walk->file->root), "", NULL);
    if (answer > 0 && !walk->full && (walk->types || !all_links_met(walk) || !all_met(walk))) {
        types = walk->types;
        answer = decide_again(walk);
    }
    /* what was met before the type that changed is asked once more */
    if (answer > 0 && !types && (walk->types || used_type_changed(walk))) {
        walk->types = true;
        answer = decide_again(walk);
    }
    if (answer == NEW) {
        if ((absolute = cow_absolute_links(walk->file)) < 0)
            return -1;
        if (absolute) {
            walk->renew = true;
            answer = decide_again(walk);
        }
    }
    return answer < 0 ? -1 : answer == NEW;
}

/* ---- building ---- */

static int build(cow_walk *walk, place *p, const char *name, uint64_t address, const char *path);

/* No version can be made. Always -1. */
static int fail(cow_walk *walk)
{
    walk->failed = true;
    return -1;
}

/* The snapshot of the object at ADDRESS does without something, WHAT and its NAME, for the reason that is recorded, which is
 * forgotten. -1: the walk fails. */
static int lack(cow_walk *walk, uint64_t address, const char *path, const char *what, const char *name)
{
    char reason[1400];

    if (walk->failed || cow_file_disk_failed(walk->file))
        return fail(walk);
    if (what == NULL)
        snprintf(reason, sizeof reason, "%s", cow_error_message());
    else
        snprintf(reason, sizeof reason, "%s%s%s%s: %s", what, name == NULL ? "" : " '", name == NULL ? "" : name,
                 name == NULL ? "" : "'", cow_error_message());
    cow_error_clear();
    return cow_lacks_add(walk->lacks, walk->row, address,
                         path[0] == '\0'              ? "/"
                         : strcmp(path, NOWHERE) == 0 ? ""
                                                      : path,
                         reason) < 0 ||
                   (what != NULL && cow_map_put(&walk->partial, address, 0) < 0)
               ? fail(walk)
               : 0;
}

/* The checksums of the head object at ADDRESS, as far as it is not known to have changed. */
static cow_layout_snapshot_row sums_of(const cow_walk *walk, uint64_t address)
{
    unsigned flags = cow_changes_flags(walk->file, address);
    const cow_layout_snapshot_row *row = cow_snapshots_of_head(walk->file, address);
    cow_layout_snapshot_row sums = {0};

    if ((flags & 1u << COW_CHANGED_NEW) != 0 || row == NULL)
        return sums;
    if ((flags & (1u << COW_CHANGED_DATA | COW_CHANGED_ARRAY)) == 0)
        sums.elements = row->elements;
    if ((flags & 1u << COW_CHANGED_ATTRIBUTES) == 0)
        sums.attributes = row->attributes;
    return sums;
}

/* The version does without the object at ADDRESS, for the reason that is recorded. */
static int leave_out(cow_walk *walk, uint64_t address, const char *path)
{
    const cow_layout_snapshot_row sums = sums_of(walk, address);

    if (lack(walk, address, path, NULL, NULL) < 0)
        return -1;
    return cow_map_put(&walk->built, address, LEFT_OUT) < 0 ||
                   cow_snapshots_leave_out(walk->file, address, walk->row, &sums) < 0
               ? fail(walk)
               : 0;
}

static int copy_link(place *p, const char *name, const H5L_info2_t *info)
{
    cow_walk *walk = p->walk;
    char *path = NULL, *value;
    size_t size;
    int status = -1;

    if ((value = cow_native_link_value(p->group, name, &size)) == NULL)
        return -1;
    if (info->type != H5L_TYPE_SOFT || value[0] != '/')
        status = cow_native_link_copy(p->group, name, p->target, name);
    else if (asprintf(&path, "%s%s", walk->prefix, value) < 0) {
        path = NULL;
        cow_error(COW_MEMORY, "no memory for a soft link");
    } else {
        status = cow_native_link_soft(p->target, name, path);
        walk->absolute |= !p->root;
    }
    free(path);
    free(value);
    return status;
}

/* ---- the links of the previous snapshot ---- */

static int note_former(void *context, const char *name, const H5L_info2_t *info)
{
    cow_small_group *former = context;
    char *copy;

    if (info->type != H5L_TYPE_HARD)
        return 0;
    if (COW_RESERVE(former->link, former->room, former->count, 1) < 0 || (copy = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    former->link[former->count++] = (cow_small_link){.name = copy, .address = cow_address(&info->u.token)};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cow_small_link *)a)->name, ((const cow_small_link *)b)->name);
}

/* The link NAME of the previous snapshot. NULL: it has none. */
static cow_small_link *find_former(const place *p, const char *name)
{
    const cow_small_link key = {.name = (char *)(uintptr_t)name};

    return p->former.count == 0
               ? NULL
               : bsearch(&key, p->former.link, p->former.count, sizeof *p->former.link, by_name);
}

/* Has the previous snapshot the link NAME to the snapshot at ADDRESS? */
static bool had_link(const place *p, const char *name, uint64_t address)
{
    const cow_small_link *found = find_former(p, name);

    return found != NULL && found->address == address;
}

/* Was the new group made with this link? */
static bool is_kept(const place *p, const char *name)
{
    const cow_small_link *found = find_former(p, name);

    return found != NULL && found->kept;
}

/* Does the previous snapshot of the group have, below NAME, another snapshot of head ADDRESS than the one that is said to be the
 * newest? */
static bool is_misled(const cow_walk *walk, const place *p, const char *name, uint64_t address)
{
    const cow_small_link *found = find_former(p, name);
    const cow_layout_snapshot_row *made;
    uint64_t newest;

    return found != NULL && cow_snapshots_newest(walk->file, address, &newest) && found->address != newest &&
           (made = cow_snapshots_made(walk->file, found->address)) != NULL && made->head == address;
}

static int build_link(void *context, const char *name, const H5L_info2_t *info)
{
    place *p = context;
    H5L_info2_t again;
    char *path;
    int status;

    if (is_history(p, name) || is_kept(p, name))
        return 0;
    if (info->type == H5L_TYPE_ERROR) { /* it cannot be told: the reason, this time */
        if (cow_native_link_info(p->group, name, &again) < 0)
            return lack(p->walk, p->address, p->path, "link", name);
        info = &again;
    }
    if (info->type != H5L_TYPE_HARD)
        return copy_link(p, name, info) < 0 ? lack(p->walk, p->address, p->path, "link", name) : 0;
    if ((path = child_path(p->path, name)) == NULL)
        return fail(p->walk);
    status = build(p->walk, p, name, cow_address(&info->u.token), path);
    free(path);
    return status;
}

/* The header of HEAD, of which a snapshot gets all that it can. */
typedef struct heading {
    cow_walk *walk;
    cow_loc head, snapshot;
    uint64_t address;
    const char *path;
    bool summed; /* one of the attributes has a checksum in the table */
} heading;

static hid_t snapshot_type(void *context, hid_t named);

static hid_t attribute_type(void *context, hid_t named)
{
    return snapshot_type(((heading *)context)->walk, named);
}

/* The values stay what they are; are they such as HDF5 does not check? */
static int look_at_values(void *context, hid_t type, size_t n, void *values)
{
    heading *c = context;

    c->summed = c->summed || cow_sum_covers(type, n);
    return cow_native_references_lend(type, n, values);
}

/* What was made of an attribute before it failed goes again. */
static int copy_attribute(void *context, const char *name)
{
    heading *c = context;
    cow_error_held *held;
    int there;

    if (cow_native_attribute_copy(c->head, name, c->snapshot, attribute_type, look_at_values, c) == 0)
        return 0;
    held = cow_error_hold();
    if ((there = cow_native_attribute_exists(c->snapshot, name)) > 0)
        there = cow_native_attribute_delete(c->snapshot, name);
    cow_error_put_back(held);
    return there < 0 ? fail(c->walk) : lack(c->walk, c->address, c->path, "attribute", name);
}

/* What is copied without having changed must be what was committed: damage is not handed on. 1; 0: the snapshot does without its
 * attributes; -1: the walk fails. */
static int attributes_good(cow_walk *walk, uint64_t address, const char *path)
{
    H5O_token_t token = cow_token(address);

    if (cow_sum_check_head(walk->file, &token, COW_CHANGED_ATTRIBUTES) == 0)
        return 1;
    return lack(walk, address, path, "attributes", NULL) < 0 || cow_map_put(&walk->partial, address, DAMAGED) < 0
               ? fail(walk)
               : 0;
}

/* The comment of HEAD (without a name: of the object itself), on its snapshot: SNAPSHOT, or what is called NAME in that, which is opened
 * only where there is one. -1: the walk fails. */
static int copy_comment(cow_walk *walk, by_link head, uint64_t address, const char *path, cow_loc snapshot,
                        const char *name)
{
    char *comment = cow_native_comment(head.group, head.name);
    bool set = comment != NULL && *comment == '\0';

    if (comment != NULL && !set && (name == NULL || cow_native_open(snapshot, name, &snapshot) == 0)) {
        set = cow_native_comment_set(snapshot, comment) == 0;
        if (name != NULL && cow_native_close(snapshot) < 0)
            set = false;
    }
    free(comment);
    return set ? 0 : lack(walk, address, path, "comment", NULL);
}

/* Attributes and comment, as far as they can be copied. -1: the walk fails. */
static int copy_header(cow_walk *walk, cow_loc head, uint64_t address, const char *path, cow_loc snapshot)
{
    heading c = {.walk = walk, .head = head, .snapshot = snapshot, .address = address, .path = path};
    int good = attributes_good(walk, address, path);

    /* in the order of the header, if no other is tracked */
    if (good < 0 || (good && cow_native_attributes(head, true, copy_attribute, &c) < 0 &&
                     lack(walk, address, path, "attributes", NULL) < 0))
        return -1;
    if (c.summed && cow_map_put(&walk->summed, address, 0) < 0)
        return fail(walk);
    return copy_comment(walk, (by_link){head, NULL}, address, path, snapshot, NULL);
}

/* The snapshot of the object at ADDRESS has its header at SNAPSHOT. */
static int note_built_at(cow_walk *walk, uint64_t address, uint64_t snapshot)
{
    cow_layout_snapshot_row row = sums_of(walk, address); /* the attributes' may be needed: note_sums */

    row.head = address;
    row.version = walk->row;
    row.snapshot = snapshot;
    if (cow_map_put(&walk->built, address, row.snapshot) < 0 || cow_snapshots_add(walk->file, &row) < 0)
        return fail(walk);
    walk->changed++;
    return 0;
}

static int note_built(cow_walk *walk, uint64_t address, cow_loc snapshot)
{
    H5O_info2_t info;

    return cow_native_info(snapshot, NULL, H5O_INFO_BASIC, &info) < 0 ? -1 : note_built_at(walk, address, cow_address(&info.token));
}

/* The snapshot has its header and its elements: what HDF5 does not check gets checksums. The head is compared with them as
 * well, so there is none of attributes of which the snapshot lacks some; where it has none, for those of the head are
 * damaged, theirs stays. ROOT: the record of a versioned dataset, else COW_NO_NODE. */
static int note_sums(cow_walk *walk, uint64_t address, cow_loc snapshot, uint64_t root)
{
    const cow_layout_snapshot_row *found = cow_snapshots_of_head(walk->file, address);
    cow_layout_snapshot_row row;
    uint64_t lacks, former;

    if (found == NULL)
        return cow_error(COW_CORRUPT, "%s: a snapshot has no row", walk->file->name);
    row = *found;
    former = row.attributes;
    row.attributes = 0;
    if (cow_sum_snapshot(walk->file, snapshot, root == COW_NO_NODE, cow_map_get(&walk->summed, address, NULL), &row) <
        0)
        return -1;
    if (root != COW_NO_NODE)
        row.elements = cow_sum_root(root);
    if (cow_map_get(&walk->partial, address, &lacks))
        row.attributes = lacks == DAMAGED ? former : 0;
    return cow_snapshots_add(walk->file, &row) < 0 ? fail(walk) : 0;
}

static int hold_type(cow_walk *walk, uint64_t address)
{
    uint64_t snapshot = 0;
    H5O_token_t token;
    cow_loc held;

    cow_map_get(&walk->built, address, &snapshot);
    token = cow_token(snapshot);
    if (cow_native_open_token(walk->file->loc, &token, &held) < 0)
        return -1;
    if (cow_map_put(&walk->held, address, (uintptr_t)held.object) == 0)
        return 0;
    cow_native_close(held);
    return -1;
}

/* Named datatypes whose users could not be put into the version, and that have no link, are not in it either. */
static int leave_out_unused(cow_walk *walk)
{
    for (size_t i = 0; i < walk->held.capacity; i++) {
        const cow_map_entry *e = &walk->held.entry[i];
        H5O_info2_t info;

        if (!e->used)
            continue;
        if (cow_native_info((cow_loc){(void *)(uintptr_t)e->value, H5I_DATATYPE}, NULL, H5O_INFO_BASIC, &info) < 0)
            return -1;
        if (info.rc > 0)
            continue;
        cow_map_remove(&walk->used, e->key);
        cow_error(COW_UNSUPPORTED, "what uses this datatype could not be put into the version");
        if (leave_out(walk, e->key, NOWHERE) < 0)
            return -1;
    }
    return 0;
}

/* What changed, or is to be made anew, and hangs only below what was left out: its former snapshot is not what the version has,
 * nor are its checksums. */
static int leave_out_unlinked(void *context, uint64_t address, const char *path)
{
    cow_walk *walk = context;

    if (cow_map_get(&walk->built, address, NULL) || !cow_snapshots_newest(walk->file, address, NULL) ||
        address == cow_address(&walk->file->root))
        return 0;
    cow_error(COW_UNSUPPORTED, "no group that leads to it is in the version");
    return leave_out(walk, address, path == NULL ? NOWHERE : path);
}

static int leave_out_below(cow_walk *walk)
{
    if (cow_lacks_count(walk->lacks) == 0)
        return 0;
    for (size_t i = 0; i < walk->state.capacity; i++) {
        const cow_map_entry *e = &walk->state.entry[i];
        if (e->used && e->value == NEW && leave_out_unlinked(walk, e->key, cow_changes_path(walk->file, e->key)) < 0)
            return -1;
    }
    return cow_changes_each(walk->file, leave_out_unlinked, walk);
}

/* A named datatype may have no link in the head, or none that this walk has come to yet: its snapshot is made without
 * one. */
static int build_type(cow_walk *walk, hid_t named, uint64_t address, cow_loc *made)
{
    cow_loc head = cow_native_named_type(named);
    hid_t tcpl = cow_native_type_tcpl(head);
    int status = -1;

    if (tcpl < 0)
        return -1;
    if (cow_native_type_anonymous(walk->file->loc, named, tcpl, made) == 0) {
        /* noted, it is in use: what fails from here on fails the walk */
        if (note_built(walk, address, *made) == 0 && cow_map_put(&walk->used, address, 0) == 0 &&
            hold_type(walk, address) == 0 && copy_header(walk, head, address, NOWHERE, *made) == 0 &&
            note_sums(walk, address, *made, COW_NO_NODE) == 0)
            status = 0;
        else {
            fail(walk);
            cow_native_close(*made);
        }
    }
    H5Pclose(tcpl);
    return status;
}

/* The version's own object for a named datatype of the head, as an id to create with. */
static hid_t snapshot_type(void *context, hid_t named)
{
    cow_walk *walk = context;
    cow_loc snapshot;
    H5O_info2_t info;
    H5O_token_t token;
    uint64_t address, known;
    int decision;

    if (cow_native_info(cow_native_named_type(named), NULL, H5O_INFO_BASIC, &info) < 0)
        return H5I_INVALID_HID;
    address = cow_address(&info.token);
    if (cow_map_get(&walk->built, address, &known) && known == LEFT_OUT) {
        cow_error(COW_UNSUPPORTED, "its named datatype could not be put into the version");
        return H5I_INVALID_HID;
    }
    if (!cow_map_get(&walk->built, address, &known)) {
        if ((decision = decide(walk, address, NOWHERE, NULL)) < 0) {
            fail(walk);
            return H5I_INVALID_HID;
        }
        if (decision == NEW || !cow_snapshots_newest(walk->file, address, &known))
            return build_type(walk, named, address, &snapshot) < 0 ? H5I_INVALID_HID : cow_native_type_id(snapshot);
    }
    token = cow_token(known);
    if (cow_native_open_token(walk->file->loc, &token, &snapshot) < 0)
        return H5I_INVALID_HID;
    return cow_native_type_id(snapshot);
}

static int each_listed(place *p)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < p->listed.count; i++)
        status = build_link(p, p->listed.link[i].name, &p->listed.link[i].info);
    return status;
}

/* Its members are made and noted with it, so what fails once it is noted itself fails the walk. */
static int fill_group(cow_walk *walk, place *p, bool by_creation)
{
    if (note_built(walk, p->address, p->target) < 0 ||
        copy_header(walk, p->group, p->address, p->path, p->target) < 0)
        return fail(walk);
    if ((p->listed.link != NULL ? each_listed(p)
                                : cow_native_links(p->group, by_creation ? COW_LINKS_BY_CREATION : COW_LINKS_ANY, build_link, p)) < 0 &&
        lack(walk, p->address, p->path, "members", NULL) < 0)
        return fail(walk);
    return note_sums(walk, p->address, p->target, COW_NO_NODE) < 0 ? fail(walk) : 0;
}

/* The newest snapshot of a group only spares openings. */
static bool open_previous(place *p)
{
    H5O_token_t token = cow_token(p->before);

    if (p->previous.object == NULL && p->before != UINT64_MAX &&
        cow_native_open_token(p->walk->file->loc, &token, &p->previous) < 0)
        p->previous.object = NULL;
    cow_error_clear();
    return p->previous.object != NULL && p->previous.type == H5I_GROUP;
}

static void list_previous(place *p)
{
    if (open_previous(p) && cow_native_links(p->previous, COW_LINKS_BY_NAME, note_former, &p->former) < 0)
        cow_small_group_free(&p->former);
    cow_error_clear();
}

static void close_previous(place *p)
{
    cow_small_group_free(&p->former);
    if (p->previous.object != NULL && cow_native_close(p->previous) < 0)
        cow_error_clear();
    p->previous.object = NULL;
}

/* ---- small groups, by their bytes ---- */

static int note_listed(void *context, const char *name, const H5L_info2_t *info)
{
    place *p = context;
    listed_links *listed = &p->listed;
    char *copy;

    if (is_history(p, name))
        return 0;
    if (COW_RESERVE(listed->link, listed->room, listed->count, 1) < 0 || (copy = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    listed->link[listed->count++] = (listed_link){copy, *info};
    return 0;
}

static void forget_listed(listed_links *listed)
{
    for (size_t i = 0; i < listed->count; i++)
        free(listed->link[i].name);
    free(listed->link);
    *listed = (listed_links){0};
}

/* What LINK leads to counts MORE, in its bytes. false: HDF5 has to do that. */
static bool count_links(const cow_file *file, const cow_small_link *link, int more)
{
    const cow_still *still = cow_layout_still_bytes(file->written);

    if (cow_journal_driver_met(file->fileno, link->address))
        return false;
    if (cow_header_count_links(cow_still_source(still), link->address, more, cow_still_write, (void *)(uintptr_t)still) > 0)
        return true;
    cow_error_clear();
    return false;
}

/* Has the new group the link as the previous one? Then what it leads to counts it. 1; 0: the link is made by HDF5; -1: the walk fails. */
static int keep_link(place *p, const listed_link *link)
{
    cow_walk *walk = p->walk;
    cow_file *file = walk->file;
    cow_small_link *former = find_former(p, link->name);
    uint64_t address = cow_address(&link->info.u.token), newest;
    char *path;
    int status;

    if (link->info.type != H5L_TYPE_HARD || former == NULL || cow_map_get(&walk->built, address, NULL) ||
        !cow_snapshots_newest(file, address, &newest) || newest != former->address)
        return 0;
    if ((path = child_path(p->path, link->name)) == NULL)
        return fail(walk);
    status = decide(walk, address, path, NULL);
    free(path);
    if (status != SAME)
        return status < 0 ? fail(walk) : 0;
    return former->kept = count_links(file, former, 1);
}

static int keep_none(place *p)
{
    cow_error_held *held = cow_error_hold();

    for (size_t i = 0; i < p->former.count; i++)
        if (p->former.link[i].kept)
            count_links(p->walk->file, &p->former.link[i], -1); /* else the snapshot will not go with its last link: nothing worse */
    cow_error_put_back(held);
    return fail(p->walk);
}

/* The new group, with all links that stay as they are in the previous one, where that is one with usual properties and few links; HDF5 goes on with the
 * rest. 1: *MADE; 0: HDF5 makes it; -1: the walk fails. */
static int keep_links(place *p, cow_loc *made)
{
    cow_file *file = p->walk->file;
    const cow_native_bytes *bytes = file->written == NULL || p->before == UINT64_MAX ? NULL : cow_file_bytes(file);
    H5O_token_t token;
    uint64_t address;
    size_t names = 0, kept = 0;
    int status;

    if (bytes == NULL || bytes->base != 0 || bytes->shares || cow_journal_driver_met(file->fileno, p->before) ||
        cow_small_group_read(cow_still_source(cow_layout_still_bytes(file->written)), p->before, &p->former) <= 0 ||
        p->former.count == 0 || cow_native_links(p->group, COW_LINKS_ANY, note_listed, p) < 0) {
        cow_error_clear();
        cow_small_group_free(&p->former);
        forget_listed(&p->listed);
        return 0;
    }
    qsort(p->former.link, p->former.count, sizeof *p->former.link, by_name);
    for (size_t i = 0; i < p->listed.count; i++)
        names += strlen(p->listed.link[i].name);
    if (p->listed.count > COW_HEADER_LINKS || names > COW_SMALL_NAMES)
        return 0;
    for (size_t i = 0; i < p->listed.count; i++) {
        if ((status = keep_link(p, &p->listed.link[i])) < 0)
            return keep_none(p);
        kept += status > 0;
    }
    if (kept == 0)
        return 0;
    if (cow_small_group_write(bytes, &p->former, p->listed.count - kept, names, &address) < 0)
        return keep_none(p);
    token = cow_token(address);
    if (cow_native_open_token(file->loc, &token, made) < 0)
        return keep_none(p);
    /* as what HDF5 makes without a link: it goes when it is closed before it has one */
    if (cow_native_change_references(*made, -1) < 0 || cow_unlinked_note(&p->walk->unlinked, *made) < 0)
        return fail(p->walk);
    return 1;
}

/* ---- groups that are copied ---- */

/* A group with many links, of which few changed: the newest snapshot's bytes are copied (copied.h), which HDF5 would make anew link by
 * link. What this does not know how to do, build_group does. */
typedef struct group_copy {
    place *p;
    cow_dense *dense;
    uint64_t before; /* address of the newest snapshot */
    cow_loc scratch; /* a group in which snapshots that are made get their first link */
    const char *const *names;
    size_t count;
    struct changed_link *link; /* of each name */
} group_copy;

typedef struct changed_link {
    const char *name;
    uint64_t to; /* the snapshot that the copy has there; UINT64_MAX: none */
    bool had;    /* and whether it is there now, perhaps with another one */
    bool again;  /* it may have been deleted and made again, and the group keeps the order of that */
    int64_t order;
} changed_link;

/* In the head the member has that one link. */
static bool has_one_link(cow_loc group, const char *name)
{
    H5O_info2_t info;

    if (cow_native_info(group, name, H5O_INFO_BASIC, &info) == 0)
        return info.rc == 1;
    cow_error_clear();
    return false;
}

/* 1: it is not, and not known to have changed. */
static int member_alone(void *context, const char *name, uint64_t address)
{
    const group_copy *g = context;
    int listed = cow_changes_at(g->p->walk->file, g->p->path, name);

    (void)address;
    return listed < 0 ? -1 : listed == 0 && !has_one_link(g->p->group, name);
}

static int hold_member(void *context, const char *name, uint64_t address)
{
    const group_copy *g = context;
    const cow_walk *walk = g->p->walk;
    /* by a flush, before this version was amended */
    const cow_layout_snapshot_row *row =
        cow_versions_running(walk->file) < 0 ? NULL : cow_snapshots_made(walk->file, address);
    const bool fresh = row != NULL && row->version == walk->row;

    return cow_copied_hold(walk->file, g->p->previous, name, address, false, fresh);
}

/* All links of the newest snapshot are counted, as HDF5 made it: its members are held from now on. 1; 0: not all can be; -1 */
static int hold_members(group_copy *g)
{
    cow_file *file = g->p->walk->file;
    int copied = cow_copied_is(file, g->before), status;

    if (copied != 0)
        return copied;
    if ((status = cow_dense_links(g->dense, member_alone, g)) != 0)
        return status < 0 ? -1 : 0;
    return cow_file_need_format(file, COW_FORMAT_COPIED) < 0 || cow_dense_links(g->dense, hold_member, g) < 0 ? -1 : 1;
}

/* The link NAME has changed, or leads to what has: what is there in the copy? 1; 0: that is not known here; -1 */
static int copy_member(group_copy *g, size_t at)
{
    place *p = g->p;
    cow_walk *walk = p->walk;
    const char *name = g->names[at];
    changed_link *link = &g->link[at];
    place scratch = *p;
    H5L_info2_t head, former, made;
    char *path;
    int in_head, in_former, status;

    *link = (changed_link){.name = name, .to = UINT64_MAX};
    if (is_history(p, name))
        return 1;
    if ((in_head = is_there(p->group, name, &head)) < 0 || (in_former = is_there(p->previous, name, &former)) < 0)
        return -1;
    if ((in_head && head.type != H5L_TYPE_HARD) || (in_former && former.type != H5L_TYPE_HARD))
        return 0;
    link->had = in_former;
    if (!in_head)
        return 1;
    link->again = in_former && head.corder_valid && cow_changes_at(walk->file, p->path, name) != 1;
    link->order = head.corder_valid ? head.corder : 0;
    if (strlen(name) > COPIED_NAME || !has_one_link(p->group, name) || (path = child_path(p->path, name)) == NULL)
        return 0;
    scratch.target = g->scratch;
    scratch.previous.object = NULL;
    scratch.former = (cow_small_group){0};
    status = build(walk, &scratch, name, cow_address(&head.u.token), path);
    free(path);
    if (status == 0 && (status = is_there(scratch.target, name, &made)) > 0) {
        link->to = cow_address(&made.u.token);
        if (cow_copied_hold(walk->file, scratch.target, name, link->to, true, true) < 0)
            status = -1;
    }
    return status; /* 0: it was left out */
}

/* A link of the copy that HDF5 makes or deletes, and must not count. */
static int change_link(const group_copy *g, const char *name, uint64_t address, bool remove)
{
    const H5O_token_t token = cow_token(address);
    cow_loc member, copy = g->p->target;
    int status;

    if (cow_native_open_token(g->p->walk->file->loc, &token, &member) < 0)
        return -1;
    if (remove)
        status = cow_native_change_references(member, 1) < 0 ? -1 : cow_native_link_delete(copy, name);
    else
        status = cow_native_link_object(member, copy, name) < 0 ? -1 : cow_native_change_references(member, -1);
    return cow_native_close(member) < 0 ? -1 : status;
}

static int by_order(const void *a, const void *b)
{
    const changed_link *x = a, *y = b;

    return (x->order > y->order) - (x->order < y->order);
}

/* What is gone, and what is new, in the order of the head. */
static int change_links(const group_copy *g)
{
    uint64_t former = 0;

    for (size_t i = 0; i < g->count; i++) {
        const changed_link *link = &g->link[i];

        if (!link->had || (link->to != UINT64_MAX && !link->again))
            continue;
        if (!cow_dense_find(g->dense, link->name, &former))
            return cow_error(COW_CORRUPT, "the link '%s' of a copied group is gone", link->name);
        if (change_link(g, link->name, former, true) < 0)
            return -1;
    }
    qsort(g->link, g->count, sizeof *g->link, by_order);
    for (size_t i = 0; i < g->count; i++)
        if (g->link[i].to != UINT64_MAX && (!g->link[i].had || g->link[i].again) &&
            change_link(g, g->link[i].name, g->link[i].to, false) < 0)
            return -1;
    return 0;
}

/* 1; 0, or -1 without walk->failed: it is to be made. */
static int write_copy(group_copy *g, cow_loc *made)
{
    place *p = g->p;
    cow_walk *walk = p->walk;
    H5O_token_t token;
    uint64_t address;
    int status;

    if ((status = hold_members(g)) <= 0)
        return status;
    for (size_t i = 0; i < g->count; i++)
        if ((status = copy_member(g, i)) <= 0)
            return status;
    for (size_t i = 0; i < g->count; i++)
        if (g->link[i].had && g->link[i].to != UINT64_MAX && !g->link[i].again)
            cow_dense_redirect(g->dense, g->link[i].name, g->link[i].to);
    if (cow_dense_write(walk->file->native, g->dense, &address) < 0)
        return -1;
    token = cow_token(address);
    if (cow_native_open_token(walk->file->loc, &token, made) < 0)
        return -1;
    p->target = *made;
    /* from here on a failure is one of the version */
    if (made->type != H5I_GROUP || change_links(g) < 0 || cow_unlinked_note(&walk->unlinked, *made) < 0 ||
        cow_unlinked_use(&walk->unlinked, *made) < 0 || cow_copied_note(walk->file, *made, address) < 0 ||
        note_built(walk, p->address, *made) < 0)
        return fail(walk);
    return 1;
}

/* HDF5 does not put the links into the header of the copy, where this would not find them. */
static bool stays_large(const group_copy *g)
{
    hsize_t links;

    return cow_native_group_size(g->p->group.object, &links) == 0 && links >= g->count + cow_dense_least(g->dense);
}

static int lacks_something(void *context, const cow_layout_lack *lack)
{
    (void)context;
    (void)lack;
    return 1;
}

/* 1: *MADE; 0: it is to be made anew; -1: the walk fails. */
static int copy_group(cow_walk *walk, place *p, cow_loc *made)
{
    cow_file *file = walk->file;
    const unsigned flags = cow_changes_flags(file, p->address);
    const char *known = cow_changes_path(file, p->address);
    const cow_layout_snapshot_row *row;
    group_copy g = {.p = p};
    H5O_info2_t info;
    H5O_token_t token;
    char scratch[COW_PATH_MAX];
    int status = 0;

    if ((flags & ~COW_CHANGED_LINKS) != 0 || !cow_snapshots_newest(file, p->address, &g.before) ||
        (g.names = few_names(walk, p->group, p->path, &g.count)) == NULL ||
        (flags != 0 && (known == NULL || strcmp(known[1] == '\0' ? "" : known, p->path) != 0)) ||
        cow_lacks_each(file, lacks_something, NULL) != 0)
        return 0;
    if ((row = cow_snapshots_made(file, g.before)) == NULL || (row->version == walk->row && !cow_copied_again(file)))
        return 0;
    snprintf(scratch, sizeof scratch, COW_PATH_COPYING "/%u", walk->copying);
    token = cow_token(g.before);
    g.scratch.type = H5I_GROUP;
    if ((g.link = calloc(g.count + 1, sizeof *g.link)) != NULL && cow_native_info(p->group, NULL, H5O_INFO_BASIC, &info) == 0 && info.rc == 1 &&
        cow_dense_read(file->native, g.before, &g.dense) > 0 && stays_large(&g) &&
        cow_native_open_token(file->loc, &token, &p->previous) == 0 && p->previous.type == H5I_GROUP &&
        (g.scratch.object = cow_native_group_create(file->loc, scratch, H5P_DEFAULT)) != NULL) {
        walk->copying++;
        status = write_copy(&g, made);
        if (cow_native_group_close(g.scratch.object) < 0)
            status = status > 0 ? fail(walk) : -1;
    }
    cow_dense_free(g.dense);
    free(g.link);
    close_previous(p);
    if (status > 0 || walk->failed)
        return status;
    if (made->object != NULL && cow_native_close(*made) < 0)
        return fail(walk);
    made->object = NULL;
    cow_error_clear();
    return 0;
}

/* What the groups of copied ones were gathered in; what they have is held, or has a link elsewhere. */
static int end_copying(cow_walk *walk)
{
    int exists = walk->copying == 0 ? 0 : cow_native_exists(walk->file->loc, COW_PATH_COPYING);

    if (exists > 0 && cow_native_link_delete(walk->file->loc, COW_PATH_COPYING) < 0)
        return -1;
    walk->copying = 0;
    return exists < 0 ? -1 : 0;
}

/* An empty one, with the creation properties of the head. 1; -1. */
static int make_group(place *p, cow_loc *made, bool *by_creation)
{
    hid_t gcpl = cow_native_gcpl_of(p->group.object); /* until the next group is made, which may be a member */
    hsize_t links;
    unsigned order;

    if (gcpl < 0 || cow_native_group_unfiltered(p->walk->file->native, gcpl) < 0 ||
        cow_native_group_size(p->group.object, &links) < 0 ||
        (gcpl = cow_native_gcpl_for(gcpl, links - (p->root && links > 0))) < 0 ||
        (made->object = cow_native_group_anonymous(p->walk->file->loc, gcpl)) == NULL ||
        cow_unlinked_note(&p->walk->unlinked, *made) < 0)
        return -1;
    if (H5Pget_link_creation_order(gcpl, &order) < 0)
        return cow_error_native("cannot get the creation properties of a group");
    *by_creation = (order & H5P_CRT_ORDER_TRACKED) != 0;
    if (p->former.count == 0)
        list_previous(p);
    return 1;
}

/* An anonymous group with everything of HEAD; the caller links and closes it. */
static int build_group(cow_walk *walk, cow_loc head, uint64_t address, const char *path, cow_loc *made)
{
    place p = {.walk = walk, .group = head, .path = path, .root = path[0] == '\0', .address = address};
    bool by_creation = false;
    int status;

    made->type = H5I_GROUP;
    made->object = NULL;
    if ((status = copy_group(walk, &p, made)) != 0)
        return status < 0 ? -1 : 0;
    if (!cow_snapshots_newest(walk->file, address, &p.before))
        p.before = UINT64_MAX;
    if ((status = keep_links(&p, made)) == 0)
        status = make_group(&p, made, &by_creation);
    p.target = *made;
    /* noted before its members are built: a member may be this group again */
    if (status > 0)
        status = fill_group(walk, &p, by_creation);
    close_previous(&p);
    forget_listed(&p.listed);
    return status;
}

/* A snapshot is about to be made that will have the attributes of HEAD. In a header without room for them HDF5 would
 * move messages about, and with them the order in which it tells attributes whose order is not tracked. */
static int choose_header(cow_walk *walk, cow_loc head)
{
    H5O_info2_t info;

    if (cow_native_info(head, NULL, H5O_INFO_NUM_ATTRS, &info) < 0)
        return -1;
    return cow_native_file_small_headers(walk->file->native, info.num_attrs == 0, NULL);
}

/* An anonymous virtual dataset over the root view. */
static int show(cow_walk *walk, const cow_shown *shown, cow_loc *made)
{
    char source[COW_PATH_MAX];

    made->type = H5I_DATASET;
    if (cow_views_path(walk->file, source, shown->root) < 0)
        return -1;
    made->object = cow_view_whole(walk->file->loc, NULL, shown->type, shown->rank, shown->extent, shown->maximum,
                                  shown->dcpl, source);
    return made->object == NULL ? -1 : 0;
}

/* The newest root view of a versioned dataset. */
static int build_dataset(cow_walk *walk, cow_loc head, const cow_dataset *dataset, uint64_t address, const char *path,
                         cow_loc *made)
{
    const cow_array *array = &dataset->array;
    cow_shown shown = {dataset->root,  array->grid.rank,      array->extent,
                       array->maximum, cow_array_type(array), dataset->dcpl};
    hid_t named = H5I_INVALID_HID;
    int status = -1;

    if (dataset->named_type &&
        ((named = cow_native_dataset_type(head.object)) < 0 || (shown.type = snapshot_type(walk, named)) < 0))
        goto done;
    if (choose_header(walk, head) == 0 && show(walk, &shown, made) == 0)
        status = copy_header(walk, head, address, path, *made);
done:
    if (named >= 0)
        cow_close(named, shown.type);
    return status;
}

/* A dataset that HDF5 keeps itself, without a link. H5Ocopy would copy a named type with each, and HDF5 1.14.5 copies
 * neither references nor, in chunks, what has parts of variable length. */
static int build_native(cow_walk *walk, cow_loc head, uint64_t address, const char *path, cow_loc *made)
{
    hid_t type = cow_native_dataset_type(head.object), named = H5I_INVALID_HID,
          space = cow_native_dataset_space(head.object), dcpl = cow_native_dataset_dcpl(head.object);
    H5O_token_t token = cow_token(address);
    hsize_t extent[H5S_MAX_RANK];
    int grows, status = -1;

    if (type >= 0 && H5Tcommitted(type) > 0) {
        named = type;
        type = snapshot_type(walk, named);
    }
    if (type < 0 || space < 0 || dcpl < 0 || choose_header(walk, head) < 0 ||
        cow_sum_check_head(walk->file, &token, COW_CHANGED_DATA) < 0)
        goto done;
    if (H5Sget_simple_extent_dims(space, extent, NULL) < 0 || (grows = cow_native_space_at_first(dcpl, space)) < 0) {
        cow_error_native("cannot describe a snapshot");
        goto done;
    }
    *made = (cow_loc){cow_native_dataset_create(walk->file->loc, NULL, type, space, dcpl), H5I_DATASET};
    if (made->object == NULL || (grows && cow_native_dataset_resize(made->object, extent) < 0))
        goto done;
    if (!cow_lies_elsewhere(dcpl) && (cow_copy_elements_within_file(walk->file->name, head.object, made->object) < 0 ||
                                      (H5Pget_nfilters(dcpl) > 0 && cow_native_dataset_settle(made->object) < 0)))
        goto done; /* a filter may refuse what HDF5 still has in a cache for the head */
    status = copy_header(walk, head, address, path, *made);
done:
    cow_close(dcpl, space, type, named);
    return status;
}

/* A named datatype, without a link. Noted before its attributes are made: one of them may be of this type. */
static int build_named(cow_walk *walk, cow_loc head, uint64_t address, const char *path, cow_loc *made)
{
    H5O_token_t token = cow_token(address);
    hid_t tcpl = cow_native_type_tcpl(head), type = H5I_INVALID_HID;
    cow_loc again;
    int status = -1;

    if (tcpl >= 0 && cow_native_open_token(walk->file->loc, &token, &again) == 0 &&
        (type = cow_native_type_id(again)) >= 0 && cow_native_type_anonymous(walk->file->loc, type, tcpl, made) == 0)
        status = note_built(walk, address, *made) < 0 || copy_header(walk, head, address, path, *made) < 0 ||
                         note_sums(walk, address, *made, COW_NO_NODE) < 0
                     ? fail(walk)
                     : 0;
    cow_close(type, tcpl);
    return status;
}

/* Link the snapshot at ADDRESS as NAME; by name from the previous version where it has that very link, which costs no
 * opening. A link that cannot be made is one that the group lacks. */
static int link_snapshot(cow_walk *walk, place *p, const char *name, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    cow_loc object;
    int status;

    if (address == LEFT_OUT)
        return 0;
    if (had_link(p, name, address) && open_previous(p) && cow_native_link_share(p->previous, p->target, name) == 0)
        return 0;
    cow_error_clear();
    if ((status = cow_native_open_token(walk->file->loc, &token, &object)) == 0) {
        status = cow_unlinked_link(&walk->unlinked, object, p->target, name);
        if (cow_native_close(object) < 0)
            status = -1;
    }
    return status < 0 ? lack(walk, p->address, p->path, "link", name) : 0;
}

/* The snapshot of HEAD, without a link. */
static int make(cow_walk *walk, cow_loc head, cow_dataset *dataset, uint64_t address, const char *path, cow_loc *made)
{
    if (head.type == H5I_GROUP)
        return build_group(walk, head, address, path, made);
    if (head.type != H5I_DATASET)
        return build_named(walk, head, address, path, made) < 0 ? -1 : cow_unlinked_note(&walk->unlinked, *made);
    return (dataset != NULL ? build_dataset(walk, head, dataset, address, path, made)
                            : build_native(walk, head, address, path, made)) < 0 ||
                   note_built(walk, address, *made) < 0 ||
                   note_sums(walk, address, *made, dataset == NULL ? COW_NO_NODE : dataset->root) < 0
               ? -1
               : cow_unlinked_note(&walk->unlinked, *made);
}

/* The snapshot of a copy that nobody has to open, without a link. */
static int make_bare(cow_walk *walk, const cow_shown *shown, uint64_t address, cow_loc *made)
{
    return cow_native_file_small_headers(walk->file->native, true, NULL) < 0 || show(walk, shown, made) < 0 ||
                   note_built(walk, address, *made) < 0 || note_sums(walk, address, *made, shown->root) < 0
               ? -1
               : cow_unlinked_note(&walk->unlinked, *made);
}

/* The snapshot of a new group without anything in it, as the member NAME of the version's group. */
static int make_empty(cow_walk *walk, const place *p, const char *name, uint64_t address)
{
    const cow_loc made = {cow_native_group_create(p->target, name, H5P_GROUP_CREATE_DEFAULT), H5I_GROUP};
    int status;

    if (made.object == NULL)
        return -1;
    status = note_built(walk, address, made);
    return cow_native_close(made) < 0 || status < 0 ? fail(walk) : 0;
}

/* Where the link NAME of a folder leads. */
static int look_at_link(const cow_walk *walk, cow_loc folder, const char *name, uint64_t *address)
{
    H5L_info2_t link;

    if (cow_native_link_info(folder, name, &link) < 0)
        return -1;
    if (link.type != H5L_TYPE_HARD)
        return cow_error(COW_CORRUPT, "%s: '%s' is no hard link; try: h5cow verify %s", walk->file->name, name, walk->file->name);
    *address = cow_address(&link.u.token);
    return 0;
}

/* The view of the newest record of OF, which this transaction has made for that, becomes the snapshot of HEAD (NULL: which has no comment), and
 * gets a link in the version. It is not opened for it: that would take longer than all else. */
static int link_view(cow_walk *walk, place *p, const char *name, uint64_t address, const char *path, const by_link *head,
                     const cow_stowed_head *of)
{
    const cow_loc none = {.type = H5I_DATASET};
    uint64_t view = of->view;
    char leads[COW_PATH_MAX];
    cow_loc heads;

    cow_head_path(leads, of->id);
    return cow_folder_open(walk->file, COW_FOLDER_HEADS, &heads) < 0 || attributes_good(walk, address, path) < 0 ||
                   (head != NULL && copy_comment(walk, *head, address, path, heads, cow_folder_name(leads)) < 0) ||
                   (view == 0 && look_at_link(walk, heads, cow_folder_name(leads), &view) < 0) ||
                   note_built_at(walk, address, view) < 0 || note_sums(walk, address, none, of->root) < 0
               ? -1
               : cow_native_link_hard(heads, cow_folder_name(leads), p->target, name);
}

/* Can the view still be the snapshot? It was made when the dataset had no attributes. */
static bool whole_still(const cow_dataset *dataset, cow_loc head)
{
    H5O_info2_t info;

    return dataset->whole_view && cow_native_info(head, NULL, H5O_INFO_NUM_ATTRS, &info) == 0 && info.num_attrs == 0;
}

/* The same of a head that is not open (stowed.h), by its link NAME. 1; 0: it has to be opened; -1. */
static int link_stowed(cow_walk *walk, place *p, const char *name, uint64_t address, const char *path)
{
    cow_file *file = walk->file;
    const by_link head = {p->group, name};
    H5O_info2_t info;
    cow_stowed_head of;
    bool bare = is_whole(walk, address, &of);

    if (!bare) {
        if (!cow_stowed_find(file, address, &of) || !of.whole)
            return 0;
        if (cow_native_info(p->group, name, H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, &info) < 0) {
            cow_error_clear();
            return 0;
        }
        if (info.type != H5O_TYPE_DATASET || info.num_attrs > 0 || info.fileno != file->fileno ||
            cow_address(&info.token) != address)
            return 0;
    }
    cow_stowed_used(file, address);
    return link_view(walk, p, name, address, path, bare ? NULL : &head, &of) < 0 ? -1 : 1;
}

/* The snapshot of the open object HEAD, or of a copy that is not open (SHOWN), with its first link. -1, and not walk->failed:
 * it cannot be made. */
static int make_linked(cow_walk *walk, place *p, const char *name, uint64_t address, const char *path, cow_loc head,
                       const cow_shown *shown)
{
    cow_loc made = {0};
    const bool stowed = cow_stowed_find(walk->file, address, NULL);
    cow_dataset *dataset = NULL;
    cow_stowed_head of;
    int status = -1;

    if (shown == NULL && head.type == H5I_DATASET && cow_dataset_attach(walk->file, head.object, false, &dataset) < 0)
        goto done;
    if (dataset != NULL && whole_still(dataset, head)) {
        of = cow_dataset_head(dataset);
        dataset->whole_view = false; /* if this version cannot be made, the next one has a snapshot of its own */
        status = link_view(walk, p, name, address, path, &(by_link){head, NULL}, &of);
        goto done;
    }
    status = shown != NULL ? make_bare(walk, shown, address, &made) : make(walk, head, dataset, address, path, &made);
    if (status == 0 && (status = cow_unlinked_link(&walk->unlinked, made, p->target, name)) < 0 &&
        head.type != H5I_DATASET)
        fail(walk); /* others that are noted hang on it */
    if (status < 0 && made.object != NULL)
        cow_unlinked_forget(&walk->unlinked, made);
    if (made.object != NULL && cow_native_close(made) < 0) {
        if (status == 0)
            fail(walk);
        status = -1;
    }
done:
    if (dataset != NULL)
        cow_dataset_release(dataset);
    if (stowed)
        cow_stowed_back(walk->file, address);
    return status;
}

/* -1: the walk fails. */
static int build(cow_walk *walk, place *p, const char *name, uint64_t address, const char *path)
{
    uint64_t snapshot, group;
    cow_loc head;
    bool borrowed, misled;
    int decision, status, linked;

    if (cow_map_get(&walk->built, address, &snapshot)) {
        cow_map_remove(&walk->used, address);
        return link_snapshot(walk, p, name, snapshot);
    }
    misled = is_misled(walk, p, name, address);
    if (misled)
        cow_snapshots_distrust(walk->file);
    if ((decision = decide(walk, address, path, NULL)) < 0)
        return fail(walk);
    if (misled && cow_changes_flags(walk->file, address) != 0)
        decision = NEW; /* it was compared with another one */
    if (decision == SAME && cow_snapshots_newest(walk->file, address, &snapshot))
        return link_snapshot(walk, p, name, snapshot);
    if (cow_map_get(&walk->bare, address, &group))
        status = group ? make_empty(walk, p, name, address)
                       : make_linked(walk, p, name, address, path, (cow_loc){.type = H5I_DATASET},
                             cow_bare_find(walk->file, address));
    else if ((linked = link_stowed(walk, p, name, address, path)) != 0)
        status = linked > 0 ? 0 : -1;
    else {
        if (open_head(walk, address, &head, &borrowed) < 0)
            return leave_out(walk, address, path);
        status = make_linked(walk, p, name, address, path, head, NULL);
        close_head(head, borrowed);
    }
    if (status == 0)
        return 0;
    return walk->failed ? cow_context("%s: cannot make the snapshot of %s", walk->file->name, path)
                        : leave_out(walk, address, path);
}

/* ---- amending ---- */

/* What a flush put into this version and its new tree does without: objects that were deleted since. A named datatype
 * may be in use all the same, by a dataset: whether it is shows when the former tree has gone. */
typedef struct leftover {
    cow_file *file;
    cow_map unmet; /* snapshots made for this version and not met in the new tree -> their rows */
    cow_loc group; /* while looking: where the links are */
    cow_map types; /* those that are datatypes, with a handle on each */
} leftover;

/* Goes down into what was made for this version only: older groups lead to older snapshots alone. */
static int meet_link(void *context, const char *name, const H5L_info2_t *info)
{
    leftover *l = context;
    cow_loc group = l->group, object;
    uint64_t address = info->type == H5L_TYPE_HARD ? cow_address(&info->u.token) : 0;
    H5O_info2_t of_object;
    int status = 0;

    if (info->type == H5L_TYPE_ERROR)
        return cow_error(COW_IO, "%s: the link '%s' of a version cannot be read", l->file->name, name);
    if (info->type != H5L_TYPE_HARD || !cow_map_get(&l->unmet, address, NULL))
        return 0;
    cow_map_remove(&l->unmet, address);
    if (cow_native_info(group, name, H5O_INFO_BASIC, &of_object) < 0)
        return -1;
    if (of_object.type != H5O_TYPE_GROUP) /* to open it would take much longer */
        return 0;
    if (cow_native_open(group, name, &object) < 0)
        return -1;
    l->group = object;
    status = cow_native_links(object, COW_LINKS_BY_NAME, meet_link, l);
    l->group = group;
    return cow_native_close(object) < 0 ? -1 : status;
}

/* MADE: the root of the new tree. Where the walk did not go through all of it, what was deleted is known, but not the named datatypes that
 * went with their use. */
static int leftover_find(leftover *l, const cow_walk *walk, cow_loc made)
{
    cow_file *file = walk->file;
    const bool all = walk->full || cow_versions_uses_types(file);
    const cow_layout_snapshot_row *row;
    uint64_t root;

    l->file = file;
    l->group = made;
    if ((!all && walk->deleted.count == 0) || !cow_map_get(&walk->built, cow_address(&file->root), &root))
        return 0;
    for (size_t i = cow_snapshots_count(file);
         i-- > 0 && (row = cow_snapshots_row(file, i)) != NULL && row->version == walk->row;)
        if (row->snapshot != UINT64_MAX && (all || cow_map_get(&walk->deleted, row->head, NULL)) &&
            cow_map_put(&l->unmet, row->snapshot, i) < 0)
            return -1;
    cow_map_remove(&l->unmet, root);
    if (all && cow_native_links(made, COW_LINKS_BY_NAME, meet_link, l) < 0)
        return -1;
    for (size_t i = 0; i < l->unmet.capacity; i++) {
        H5O_token_t token = cow_token(l->unmet.entry[i].key);
        cow_loc object;
        if (!l->unmet.entry[i].used)
            continue;
        if (cow_native_open_token(file->loc, &token, &object) < 0)
            return -1;
        if (object.type == H5I_DATATYPE ? cow_map_put(&l->types, l->unmet.entry[i].key, (uintptr_t)object.object) < 0
                                        : cow_native_close(object) < 0)
            return -1;
    }
    return 0;
}

/* Those named datatypes that nothing uses any more are gone when they are closed, and use no other datatypes then. *MORE: there was one. */
static int strike_out_unused(leftover *l, bool *more)
{
    *more = false;
    for (size_t i = 0; i < l->types.capacity; i++) {
        const cow_map_entry type = l->types.entry[i];
        const cow_loc snapshot = {(void *)(uintptr_t)type.value, H5I_DATATYPE};
        uint64_t row;
        H5O_info2_t info;

        if (!type.used)
            continue;
        if (cow_native_info(snapshot, NULL, H5O_INFO_BASIC, &info) < 0)
            return -1;
        if (info.rc > 0)
            continue;
        if (cow_map_get(&l->unmet, type.key, &row))
            cow_snapshots_strike_out(l->file, row);
        cow_map_remove(&l->types, type.key);
        if (cow_native_close(snapshot) < 0)
            return -1;
        *more = true;
    }
    return 0;
}

/* The former tree has gone. */
static int leftover_strike_out(leftover *l)
{
    bool more = true;

    for (size_t i = 0; i < l->unmet.capacity; i++)
        if (l->unmet.entry[i].used && !cow_map_get(&l->types, l->unmet.entry[i].key, NULL))
            cow_snapshots_strike_out(l->file, l->unmet.entry[i].value);
    while (more)
        if (strike_out_unused(l, &more) < 0)
            return -1;
    if (l->types.count > 0)
        cow_versions_use_types(l->file);
    return 0;
}

static void leftover_free(leftover *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->types.capacity; i++)
        if (l->types.entry[i].used &&
            cow_native_close((cow_loc){(void *)(uintptr_t)l->types.entry[i].value, H5I_DATATYPE}) < 0)
            cow_error_clear();
    cow_map_free(&l->types);
    cow_map_free(&l->unmet);
    free(l);
}

/* A named datatype without a link lives as long as it is used, and nobody is told of the end of that: what a version
 * knows gets a link, for its address must never be another object's. */
static int keep_used(cow_walk *walk)
{
    if (walk->used.count > 0)
        cow_versions_use_types(walk->file);
    for (size_t i = 0; i < walk->used.capacity; i++)
        if (walk->used.entry[i].used && cow_file_keep(walk->file, walk->used.entry[i].key) < 0)
            return -1;
    return 0;
}

/* The former tree of an amended version: it goes only when all is done, for what it shares with the new one, and because
 * it may be needed again. */

/* A tree goes, with links of classes that are not there. */
static int delete_tree(cow_loc file, const char *path)
{
    bool stand_in[H5L_TYPE_MAX + 1] = {false};
    int status = cow_native_link_classes_stand_in(stand_in) < 0 ? -1 : cow_native_link_delete(file, path);

    cow_native_link_classes_withdraw(stand_in);
    return status;
}

static int set_aside(cow_walk *walk)
{
    cow_file *file = walk->file;
    int exists;

    if ((exists = cow_native_exists(file->loc, walk->prefix)) <= 0)
        return exists;
    if ((walk->rest = calloc(1, sizeof *walk->rest)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a commit", file->name);
    if (leftover_find(walk->rest, walk, walk->made) < 0 ||
        (exists = cow_native_exists(file->loc, COW_PATH_FORMER)) < 0 ||
        (exists && delete_tree(file->loc, COW_PATH_FORMER) < 0) ||
        cow_native_link_move(file->loc, walk->prefix, file->loc, COW_PATH_FORMER) < 0)
        return -1;
    walk->set_aside = true;
    return 0;
}

int cow_walk_build(cow_walk *walk, const char *name, uint64_t row, int64_t *changed, cow_lacks *lacks)
{
    cow_file *file = walk->file;
    bool borrowed, held = false;
    cow_loc head;
    int status;

    walk->row = row;
    walk->lacks = lacks;
    snprintf(walk->prefix, sizeof walk->prefix, COW_PATH_VERSIONS "/%s", name);
    if (open_head(walk, cow_address(&file->root), &head, &borrowed) < 0)
        return -1;
    status = build_group(walk, head, cow_address(&file->root), "", &walk->made);
    close_head(head, borrowed);
    if (status < 0 || end_copying(walk) < 0 || leave_out_unused(walk) < 0 || leave_out_below(walk) < 0 ||
        keep_used(walk) < 0 ||
        (cow_versions_running(file) >= 0 && set_aside(walk) < 0)) /* else the name is a new one */
        return -1;
    if (cow_unlinked_link(&walk->unlinked, walk->made, file->loc, walk->prefix) < 0)
        return -1;
    walk->linked = true;
    if (walk->full
            ? cow_deleted_note(file, &walk->state, row, &held) < 0 || cow_walk_note_unreached(walk, row + 1, lacks) < 0
            : cow_deleted_add(file, &walk->deleted, row) < 0)
        return -1;
    /* an object that lives without a link may be a group with such links, and get a link again */
    if (cow_absolute_links_put(file, walk->absolute || (cow_absolute_links_known(file) &&
                                                        (!walk->renew || held || cow_lacks_count(lacks) > 0))) < 0)
        return -1;
    *changed = walk->changed;
    return 0;
}

int cow_walk_undo(cow_walk *walk)
{
    cow_file *file = walk->file;
    int exists = 0;

    if (end_copying(walk) < 0 ||
        (walk->made.object != NULL && (exists = cow_native_exists(file->loc, walk->prefix)) < 0))
        return -1;
    if ((walk->linked || walk->set_aside) && exists && delete_tree(file->loc, walk->prefix) < 0)
        return -1;
    if (walk->set_aside && cow_native_link_move(file->loc, COW_PATH_FORMER, file->loc, walk->prefix) < 0)
        return -1;
    walk->linked = walk->set_aside = false;
    return 0;
}

int cow_walk_settle(cow_walk *walk)
{
    if (walk->set_aside) {
        walk->set_aside = false;
        if (delete_tree(walk->file->loc, COW_PATH_FORMER) < 0) {
            cow_error_clear(); /* the next one that is set aside removes it; until then its snapshots are there */
            return 0;
        }
        walk->gone = true;
    }
    return walk->gone ? leftover_strike_out(walk->rest) : 0;
}
