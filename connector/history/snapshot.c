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
#include "history/walk.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/folders.h"
#include "history/header.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In `partial`: the object's attributes are not what was written. */
#define DAMAGED 1

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
    cow_former_free(walk->rest);
    if (walk->made.object != NULL && cow_native_close(walk->made) < 0)
        cow_error_clear();
    free(walk);
}

/* ---- building ---- */

int cow_walk_fail(cow_walk *walk)
{
    walk->failed = true;
    return -1;
}

int cow_walk_lack(cow_walk *walk, uint64_t address, const char *path, const char *what, const char *name)
{
    char reason[1400];

    if (walk->failed || cow_file_disk_failed(walk->file))
        return cow_walk_fail(walk);
    if (what == NULL)
        snprintf(reason, sizeof reason, "%s", cow_error_message());
    else
        snprintf(reason, sizeof reason, "%s%s%s%s: %s", what, name == NULL ? "" : " '", name == NULL ? "" : name,
                 name == NULL ? "" : "'", cow_error_message());
    cow_error_clear();
    return cow_lacks_add(walk->lacks, walk->row, address,
                         path[0] == '\0'                       ? "/"
                         : strcmp(path, COW_PATH_UNKNOWN) == 0 ? ""
                                                               : path,
                         reason) < 0 ||
                   (what != NULL && cow_map_put(&walk->partial, address, 0) < 0)
               ? cow_walk_fail(walk)
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

    if (cow_walk_lack(walk, address, path, NULL, NULL) < 0)
        return -1;
    return cow_map_put(&walk->built, address, COW_LEFT_OUT) < 0 ||
                   cow_snapshots_leave_out(walk->file, address, walk->row, &sums) < 0
               ? cow_walk_fail(walk)
               : 0;
}

static int copy_link(cow_walk_group *p, const char *name, const H5L_info2_t *info)
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

static int build_link(void *context, const char *name, const H5L_info2_t *info)
{
    cow_walk_group *p = context;
    H5L_info2_t again;
    char *path;
    int status;

    if (cow_walk_is_history(p, name) || cow_previous_kept(p, name))
        return 0;
    if (info->type == H5L_TYPE_ERROR) { /* it cannot be told: the reason, this time */
        if (cow_native_link_info(p->group, name, &again) < 0)
            return cow_walk_lack(p->walk, p->address, p->path, "link", name);
        info = &again;
    }
    if (info->type != H5L_TYPE_HARD)
        return copy_link(p, name, info) < 0 ? cow_walk_lack(p->walk, p->address, p->path, "link", name) : 0;
    if ((path = cow_walk_child_path(p->path, name)) == NULL)
        return cow_walk_fail(p->walk);
    status = cow_build(p->walk, p, name, cow_address(&info->u.token), path);
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
    return there < 0 ? cow_walk_fail(c->walk) : cow_walk_lack(c->walk, c->address, c->path, "attribute", name);
}

/* What is copied without having changed must be what was committed: damage is not handed on. 1; 0: the snapshot does without its
 * attributes; -1: the walk fails. */
static int attributes_good(cow_walk *walk, uint64_t address, const char *path)
{
    H5O_token_t token = cow_token(address);

    if (cow_sum_check_head(walk->file, &token, COW_CHANGED_ATTRIBUTES) == 0)
        return 1;
    return cow_walk_lack(walk, address, path, "attributes", NULL) < 0 ||
                   cow_map_put(&walk->partial, address, DAMAGED) < 0
               ? cow_walk_fail(walk)
               : 0;
}

/* The comment of HEAD (without a name: of the object itself), on its snapshot: SNAPSHOT, or what is called NAME in that, which is opened
 * only where there is one. -1: the walk fails. */
static int copy_comment(cow_walk *walk, cow_by_link head, uint64_t address, const char *path, cow_loc snapshot,
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
    return set ? 0 : cow_walk_lack(walk, address, path, "comment", NULL);
}

/* Attributes and comment, as far as they can be copied. -1: the walk fails. */
static int copy_header(cow_walk *walk, cow_loc head, uint64_t address, const char *path, cow_loc snapshot)
{
    heading c = {.walk = walk, .head = head, .snapshot = snapshot, .address = address, .path = path};
    int good = attributes_good(walk, address, path);

    /* in the order of the header, if no other is tracked */
    if (good < 0 || (good && cow_native_attributes(head, true, copy_attribute, &c) < 0 &&
                     cow_walk_lack(walk, address, path, "attributes", NULL) < 0))
        return -1;
    if (c.summed && cow_map_put(&walk->summed, address, 0) < 0)
        return cow_walk_fail(walk);
    return copy_comment(walk, (cow_by_link){head, NULL}, address, path, snapshot, NULL);
}

/* The snapshot of the object at ADDRESS has its header at SNAPSHOT. */
static int note_built_at(cow_walk *walk, uint64_t address, uint64_t snapshot)
{
    cow_layout_snapshot_row row = sums_of(walk, address); /* the attributes' may be needed: note_sums */

    row.head = address;
    row.version = walk->row;
    row.snapshot = snapshot;
    if (cow_map_put(&walk->built, address, row.snapshot) < 0 || cow_snapshots_add(walk->file, &row) < 0)
        return cow_walk_fail(walk);
    return 0;
}

int cow_walk_note_built(cow_walk *walk, uint64_t address, cow_loc snapshot)
{
    H5O_info2_t info;

    return cow_native_info(snapshot, NULL, H5O_INFO_BASIC, &info) < 0
               ? -1
               : note_built_at(walk, address, cow_address(&info.token));
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
    return cow_snapshots_add(walk->file, &row) < 0 ? cow_walk_fail(walk) : 0;
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
        if (leave_out(walk, e->key, COW_PATH_UNKNOWN) < 0)
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
    return leave_out(walk, address, path == NULL ? COW_PATH_UNKNOWN : path);
}

static int leave_out_below(cow_walk *walk)
{
    if (cow_lacks_count(walk->lacks) == 0)
        return 0;
    for (size_t i = 0; i < walk->state.capacity; i++) {
        const cow_map_entry *e = &walk->state.entry[i];
        if (e->used && e->value == COW_NEW &&
            leave_out_unlinked(walk, e->key, cow_changes_path(walk->file, e->key)) < 0)
            return -1;
    }
    return cow_changes_each(walk->file, leave_out_unlinked, walk);
}

/* A named datatype may have no link in the head, or none that this walk has come to yet: its snapshot is made without
 * one. */
static int build_type(cow_walk *walk, hid_t named, uint64_t address, cow_loc *made)
{
    cow_loc head = cow_native_named_type(named);
    H5O_token_t token = cow_token(address);
    hid_t tcpl = cow_native_type_tcpl(head);
    int status = -1;

    if (tcpl < 0)
        return -1;
    if (cow_sum_check_type(walk->file, &token) == 0 &&
        cow_native_type_anonymous(walk->file->loc, named, tcpl, made) == 0) {
        /* noted, it is in use: what fails from here on fails the walk */
        if (cow_walk_note_built(walk, address, *made) == 0 && cow_map_put(&walk->used, address, 0) == 0 &&
            hold_type(walk, address) == 0 && copy_header(walk, head, address, COW_PATH_UNKNOWN, *made) == 0 &&
            note_sums(walk, address, *made, COW_NO_NODE) == 0)
            status = 0;
        else {
            cow_walk_fail(walk);
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
    if (cow_map_get(&walk->built, address, &known) && known == COW_LEFT_OUT) {
        cow_error(COW_UNSUPPORTED, "its named datatype could not be put into the version");
        return H5I_INVALID_HID;
    }
    if (!cow_map_get(&walk->built, address, &known)) {
        if ((decision = cow_decide(walk, address, COW_PATH_UNKNOWN, NULL)) < 0) {
            cow_walk_fail(walk);
            return H5I_INVALID_HID;
        }
        if (decision == COW_NEW || !cow_snapshots_newest(walk->file, address, &known))
            return build_type(walk, named, address, &snapshot) < 0 ? H5I_INVALID_HID : cow_native_type_id(snapshot);
    }
    token = cow_token(known);
    if (cow_native_open_token(walk->file->loc, &token, &snapshot) < 0)
        return H5I_INVALID_HID;
    return cow_native_type_id(snapshot);
}

static int each_listed(cow_walk_group *p)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < p->listed.count; i++)
        status = build_link(p, p->listed.link[i].name, &p->listed.link[i].info);
    return status;
}

/* Its members are made and noted with it, so what fails once it is noted itself fails the walk. */
static int fill_group(cow_walk *walk, cow_walk_group *p, bool by_creation)
{
    if (cow_walk_note_built(walk, p->address, p->target) < 0 ||
        copy_header(walk, p->group, p->address, p->path, p->target) < 0)
        return cow_walk_fail(walk);
    if ((p->listed.link != NULL
             ? each_listed(p)
             : cow_native_links(p->group, by_creation ? COW_LINKS_BY_CREATION : COW_LINKS_ANY, build_link, p)) < 0 &&
        cow_walk_lack(walk, p->address, p->path, "members", NULL) < 0)
        return cow_walk_fail(walk);
    return note_sums(walk, p->address, p->target, COW_NO_NODE) < 0 ? cow_walk_fail(walk) : 0;
}

/* An empty one, with the creation properties of the head. 1; -1. */
static int make_group(cow_walk_group *p, cow_loc *made, bool *by_creation)
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
        cow_previous_list(p);
    return 1;
}

/* An anonymous group with everything of HEAD; the caller links and closes it. */
static int build_group(cow_walk *walk, cow_loc head, uint64_t address, const char *path, cow_loc *made)
{
    cow_walk_group p = {.walk = walk, .group = head, .path = path, .root = path[0] == '\0', .address = address};
    bool by_creation = false;
    int status;

    made->type = H5I_GROUP;
    made->object = NULL;
    if ((status = cow_group_copy(walk, &p, made)) != 0)
        return status < 0 ? -1 : 0;
    if (!cow_snapshots_newest(walk->file, address, &p.before))
        p.before = UINT64_MAX;
    if ((status = cow_previous_keep(&p, made)) == 0)
        status = make_group(&p, made, &by_creation);
    p.target = *made;
    /* noted before its members are built: a member may be this group again */
    if (status > 0)
        status = fill_group(walk, &p, by_creation);
    cow_previous_close(&p);
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

    if (tcpl >= 0 && cow_sum_check_type(walk->file, &token) == 0 &&
        cow_native_open_token(walk->file->loc, &token, &again) == 0 && (type = cow_native_type_id(again)) >= 0 &&
        cow_native_type_anonymous(walk->file->loc, type, tcpl, made) == 0)
        status = cow_walk_note_built(walk, address, *made) < 0 || copy_header(walk, head, address, path, *made) < 0 ||
                         note_sums(walk, address, *made, COW_NO_NODE) < 0
                     ? cow_walk_fail(walk)
                     : 0;
    cow_close(type, tcpl);
    return status;
}

/* Link the snapshot at ADDRESS as NAME; by name from the previous version where it has that very link, which costs no
 * opening. A link that cannot be made is one that the group lacks. */
static int link_snapshot(cow_walk *walk, cow_walk_group *p, const char *name, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    cow_loc object;
    int status;

    if (address == COW_LEFT_OUT)
        return 0;
    if (cow_previous_has(p, name, address) && cow_previous_open(p) &&
        cow_native_link_share(p->previous, p->target, name) == 0)
        return 0;
    cow_error_clear();
    if ((status = cow_native_open_token(walk->file->loc, &token, &object)) == 0) {
        status = cow_unlinked_link(&walk->unlinked, object, p->target, name);
        if (cow_native_close(object) < 0)
            status = -1;
    }
    return status < 0 ? cow_walk_lack(walk, p->address, p->path, "link", name) : 0;
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
                   cow_walk_note_built(walk, address, *made) < 0 ||
                   note_sums(walk, address, *made, dataset == NULL ? COW_NO_NODE : dataset->root) < 0
               ? -1
               : cow_unlinked_note(&walk->unlinked, *made);
}

/* The snapshot of a copy that nobody has to open, without a link. */
static int make_bare(cow_walk *walk, const cow_shown *shown, uint64_t address, cow_loc *made)
{
    return cow_native_file_small_headers(walk->file->native, true, NULL) < 0 || show(walk, shown, made) < 0 ||
                   cow_walk_note_built(walk, address, *made) < 0 || note_sums(walk, address, *made, shown->root) < 0
               ? -1
               : cow_unlinked_note(&walk->unlinked, *made);
}

/* The snapshot of a new group without anything in it, as the member NAME of the version's group. */
static int make_empty(cow_walk *walk, const cow_walk_group *p, const char *name, uint64_t address)
{
    const cow_loc made = {cow_native_group_create(p->target, name, H5P_GROUP_CREATE_DEFAULT), H5I_GROUP};
    int status;

    if (made.object == NULL)
        return -1;
    status = cow_walk_note_built(walk, address, made);
    return cow_native_close(made) < 0 || status < 0 ? cow_walk_fail(walk) : 0;
}

/* Where the link NAME of a folder leads. */
static int look_at_link(const cow_walk *walk, cow_loc folder, const char *name, uint64_t *address)
{
    H5L_info2_t link;

    if (cow_native_link_info(folder, name, &link) < 0)
        return -1;
    if (link.type != H5L_TYPE_HARD)
        return cow_error(COW_CORRUPT, "%s: '%s' is no hard link; try: h5cow verify %s", walk->file->name, name,
                         walk->file->name);
    *address = cow_address(&link.u.token);
    return 0;
}

/* The view of the newest record of OF, which this transaction has made for that, becomes the snapshot of HEAD (NULL: which has no comment), and
 * gets a link in the version. It is not opened for it: that would take longer than all else. */
static int link_view(cow_walk *walk, cow_walk_group *p, const char *name, uint64_t address, const char *path,
                     const cow_by_link *head, const cow_stowed_head *of)
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
static int link_stowed(cow_walk *walk, cow_walk_group *p, const char *name, uint64_t address, const char *path)
{
    cow_file *file = walk->file;
    const cow_by_link head = {p->group, name};
    H5O_info2_t info;
    cow_stowed_head of;
    bool bare = cow_decide_is_whole(walk, address, &of);

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
static int make_linked(cow_walk *walk, cow_walk_group *p, const char *name, uint64_t address, const char *path,
                       cow_loc head, const cow_shown *shown)
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
        status = link_view(walk, p, name, address, path, &(cow_by_link){head, NULL}, &of);
        goto done;
    }
    status = shown != NULL ? make_bare(walk, shown, address, &made) : make(walk, head, dataset, address, path, &made);
    if (status == 0 && (status = cow_unlinked_link(&walk->unlinked, made, p->target, name)) < 0 &&
        head.type != H5I_DATASET)
        cow_walk_fail(walk); /* others that are noted hang on it */
    if (status < 0 && made.object != NULL)
        cow_unlinked_forget(&walk->unlinked, made);
    if (made.object != NULL && cow_native_close(made) < 0) {
        if (status == 0)
            cow_walk_fail(walk);
        status = -1;
    }
done:
    if (dataset != NULL)
        cow_dataset_release(dataset);
    if (stowed)
        cow_stowed_back(walk->file, address);
    return status;
}

int cow_build(cow_walk *walk, cow_walk_group *p, const char *name, uint64_t address, const char *path)
{
    uint64_t snapshot, group;
    cow_loc head;
    bool borrowed, misled;
    int decision, status, linked;

    if (cow_map_get(&walk->built, address, &snapshot)) {
        cow_map_remove(&walk->used, address);
        return link_snapshot(walk, p, name, snapshot);
    }
    misled = cow_previous_misled(walk, p, name, address);
    if (misled)
        cow_snapshots_distrust(walk->file);
    if ((decision = cow_decide(walk, address, path, NULL)) < 0)
        return cow_walk_fail(walk);
    if (misled && cow_changes_flags(walk->file, address) != 0)
        decision = COW_NEW; /* it was compared with another one */
    if (decision == COW_SAME && cow_snapshots_newest(walk->file, address, &snapshot))
        return link_snapshot(walk, p, name, snapshot);
    if (cow_map_get(&walk->bare, address, &group))
        status = group ? make_empty(walk, p, name, address)
                       : make_linked(walk, p, name, address, path, (cow_loc){.type = H5I_DATASET},
                                     cow_bare_find(walk->file, address));
    else if ((linked = link_stowed(walk, p, name, address, path)) != 0)
        status = linked > 0 ? 0 : -1;
    else {
        if (cow_head_open(walk->file, address, &head, &borrowed) < 0)
            return leave_out(walk, address, path);
        status = make_linked(walk, p, name, address, path, head, NULL);
        cow_head_close(head, borrowed);
    }
    if (status == 0)
        return 0;
    return walk->failed ? cow_context("%s: cannot make the snapshot of %s", walk->file->name, path)
                        : leave_out(walk, address, path);
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

int cow_walk_build(cow_walk *walk, const char *name, uint64_t row, cow_lacks *lacks)
{
    cow_file *file = walk->file;
    bool borrowed, held = false;
    cow_loc head;
    int status;

    walk->row = row;
    walk->lacks = lacks;
    snprintf(walk->prefix, sizeof walk->prefix, COW_PATH_VERSIONS "/%s", name);
    if (cow_head_open(walk->file, cow_address(&file->root), &head, &borrowed) < 0)
        return -1;
    status = build_group(walk, head, cow_address(&file->root), "", &walk->made);
    cow_head_close(head, borrowed);
    if (status < 0 || cow_group_copy_end(walk) < 0 || leave_out_unused(walk) < 0 || leave_out_below(walk) < 0 ||
        keep_used(walk) < 0 ||
        (cow_versions_running(file) >= 0 && cow_former_set_aside(walk) < 0)) /* else the name is a new one */
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
    return 0;
}
