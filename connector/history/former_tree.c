/* A version that a flush has made is amended by a new tree. The former one goes only when all is done, for what it shares with the new
 * one, and because it may be needed again. */
#include "history/walk.h"

#include "base/error.h"

#include <stdlib.h>

/* What a flush put into this version and its new tree does without: objects that were deleted since. A named datatype
 * may be in use all the same, by a dataset: whether it is shows when the former tree has gone. */
typedef struct cow_leftover {
    cow_file *file;
    cow_map unmet; /* snapshots made for this version and not met in the new tree -> their rows */
    cow_loc group; /* while looking: where the links are */
    cow_map types; /* those that are datatypes, with a handle on each */
} cow_leftover;

/* Goes down into what was made for this version only: older groups lead to older snapshots alone. */
static int meet_link(void *context, const char *name, const H5L_info2_t *info)
{
    cow_leftover *l = context;
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
static int leftover_find(cow_leftover *l, const cow_walk *walk, cow_loc made)
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
static int strike_out_unused(cow_leftover *l, bool *more)
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
static int leftover_strike_out(cow_leftover *l)
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

void cow_former_free(cow_leftover *l)
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

/* A tree goes, with links of classes that are not there. */
static int delete_tree(cow_loc file, const char *path)
{
    bool stand_in[H5L_TYPE_MAX + 1] = {false};
    int status = cow_native_link_classes_stand_in(stand_in) < 0 ? -1 : cow_native_link_delete(file, path);

    cow_native_link_classes_withdraw(stand_in);
    return status;
}

int cow_former_set_aside(cow_walk *walk)
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

int cow_walk_undo(cow_walk *walk)
{
    cow_file *file = walk->file;
    int exists = 0;

    if (cow_group_copy_end(walk) < 0 ||
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
