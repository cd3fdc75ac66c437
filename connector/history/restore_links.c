/* The links of a group of the head become those of its snapshot. */
#include "history/restore.h"

#include "base/error.h"
#include "base/vector.h"
#include "history/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *name;
    H5L_type_t type;
    uint64_t snapshot; /* of a hard link of the version: what it leads to there, */
    uint64_t address;  /* and in the head */
    char *value;       /* of any other link, */
    size_t size;       /* in bytes */
    size_t place;      /* in the order of the group */
} entry;

typedef struct links {
    cow_restoring *r;
    cow_loc group;
    const char *version; /* NULL: the group is of the head; */
    bool root;           /* and its root */
    entry *entry;
    size_t count, room;
} links;

static void links_free(links *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->entry[i].name);
        free(l->entry[i].value);
    }
    free(l->entry);
}

/* A soft link of a version names the version, where it is absolute: VALUE becomes what it is in the head. */
static void shorten(entry *e, const char *version)
{
    size_t length = strlen(version);

    if (strncmp(e->value, version, length) != 0 || (e->value[length] != '/' && e->value[length] != '\0'))
        return;
    if (e->value[length] == '\0')
        e->value[0] = '/', e->value[1] = '\0';
    else
        memmove(e->value, e->value + length, strlen(e->value + length) + 1);
    e->size = strlen(e->value) + 1;
}

static int fill_entry(links *l, entry *e, const H5L_info2_t *info)
{
    H5O_token_t head;

    if (info->type != H5L_TYPE_HARD) {
        if ((e->value = cow_native_link_value(l->group, e->name, &e->size)) == NULL)
            return -1;
        if (info->type == H5L_TYPE_SOFT && l->version != NULL)
            shorten(e, l->version);
        return 0;
    }
    e->address = cow_address(&info->u.token);
    if (l->version == NULL)
        return 0;
    e->snapshot = e->address;
    if (cow_restoring_head(l->r, e->snapshot, &head) < 0)
        return -1;
    e->address = cow_address(&head);
    return 0;
}

static int note_link(void *context, const char *name, const H5L_info2_t *info)
{
    links *l = context;
    H5L_info2_t again;
    entry *e;

    if (l->root && strcmp(name, COW_GROUP) == 0)
        return 0;
    if (info->type == H5L_TYPE_ERROR && cow_native_link_info(l->group, name, &again) < 0) /* which tells the reason */
        return -1;
    if (COW_RESERVE(l->entry, l->room, l->count, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    e = &l->entry[l->count];
    *e = (entry){.type = info->type, .place = l->count};
    if ((e->name = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    l->count++;
    return fill_entry(l, e, info);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_given_name(const void *name, const void *e)
{
    return strcmp(name, ((const entry *)e)->name);
}

/* L is sorted by name. */
static entry *find(const links *l, const char *name)
{
    return l->count == 0 ? NULL : bsearch(name, l->entry, l->count, sizeof *l->entry, by_given_name);
}

static bool same(const entry *a, const entry *b)
{
    return a->type == b->type &&
           (a->type == H5L_TYPE_HARD ? a->address == b->address
                                     : a->size == b->size && memcmp(a->value, b->value, a->size) == 0);
}

static char *path_of(const cow_restored_pair *group, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", group->path, name) < 0) {
        cow_error(COW_MEMORY, "no memory for a path");
        return NULL;
    }
    return path;
}

static int tell(cow_restoring *r, const cow_restored_pair *group, const char *name, int32_t what)
{
    char *path = path_of(group, name);
    int status = path == NULL ? -1 : cow_restoring_tell(r, path, what);

    free(path);
    return status;
}

/* A group of any path may be the root. */
static bool is_root(const cow_restoring *r, const cow_restored_pair *group)
{
    return cow_address(&group->token) == cow_address(&r->file->root);
}

/* ---- one link ---- */

/* HDF5 1.14.5 crashes where a link of a group to itself goes and one is left: one reference more meanwhile (vol/link.c). */
static int is_own(const cow_restored_pair *group, const entry *e)
{
    H5O_info2_t info;

    if (e->type != H5L_TYPE_HARD || e->address != cow_address(&group->token))
        return 0;
    return cow_native_info(group->head, NULL, H5O_INFO_BASIC, &info) < 0 ? -1 : info.rc == 2;
}

static int unlink_one(cow_restoring *r, const cow_restored_pair *group, const entry *e)
{
    int kept = cow_file_keep_removed(r->file, group->head, e->name, NULL), own, status = 0;
    H5O_info2_t info;
    bool known = false;

    if (kept != 0)
        return kept < 0 ? -1 : 0;
    if (e->type == H5L_TYPE_HARD && !(known = cow_native_info(group->head, e->name, H5O_INFO_BASIC, &info) == 0))
        cow_error_clear();
    if ((own = is_own(group, e)) < 0 || (own && cow_native_change_references(group->head, 1) < 0))
        return -1;
    status = cow_native_link_delete(group->head, e->name);
    if (known)
        cow_file_unlinked(r->file, &info);
    if (known && info.type == H5O_TYPE_GROUP)
        cow_file_groups_unlinked(r->file);
    return own && cow_native_change_references(group->head, -1) < 0 ? -1 : status;
}

static int link_one(cow_restoring *r, const cow_restored_pair *group, const entry *e)
{
    cow_loc object;
    bool borrowed;
    int status;

    if (e->type == H5L_TYPE_SOFT)
        return cow_native_link_soft(group->head, e->name, e->value);
    if (e->type != H5L_TYPE_HARD)
        return cow_native_link_copy(group->snapshot, e->name, group->head, e->name);
    if (cow_head_open(r->file, e->address, &object, &borrowed) < 0)
        return cow_context("%s: %s/%s is not there any more; try: h5cow verify", r->file->name, group->path, e->name);
    status = cow_native_link_object(object, group->head, e->name);
    if (!borrowed && cow_native_close(object) < 0)
        status = -1;
    return status < 0 ? -1 : cow_map_put(&r->linked, e->address, 0);
}

/* ---- all of a group ---- */

static int order_differs(const links *now, const links *then)
{
    entry *a, *b;
    int differs = now->count != then->count;

    if (differs || now->count == 0)
        return differs;
    a = malloc(now->count * sizeof *a);
    b = malloc(now->count * sizeof *b);
    if (a == NULL || b == NULL)
        differs = cow_error(COW_MEMORY, "no memory for the links of a group");
    else {
        qsort(memcpy(a, now->entry, now->count * sizeof *a), now->count, sizeof *a, by_place);
        qsort(memcpy(b, then->entry, now->count * sizeof *b), now->count, sizeof *b, by_place);
        for (size_t i = 0; !differs && i < now->count; i++)
            differs = strcmp(a[i].name, b[i].name) != 0;
    }
    free(a);
    free(b);
    return differs;
}

/* Each difference; *DIFFERS: there is one. */
static int tell_all(cow_restoring *r, const cow_restored_pair *group, const links *now, const links *then,
                    bool *differs)
{
    for (size_t i = 0; i < now->count; i++)
        if (find(then, now->entry[i].name) == NULL) {
            *differs = true;
            if (tell(r, group, now->entry[i].name, H5COW_REMOVED) < 0)
                return -1;
        }
    for (size_t i = 0; i < then->count; i++) {
        const entry *e = find(now, then->entry[i].name);

        if (e != NULL && same(e, &then->entry[i]))
            continue;
        *differs = true;
        if (tell(r, group, then->entry[i].name, e == NULL ? H5COW_ADDED : H5COW_REPLACED) < 0)
            return -1;
    }
    return 0;
}

/* ALL: every one is made anew, so that they are in the order of the version. */
static int carry_out(cow_restoring *r, const cow_restored_pair *group, const links *now, links *then, bool all)
{
    bool stand_in[H5L_TYPE_MAX + 1] = {false};
    int status =
        cow_restoring_note(r, &group->token, COW_CHANGED_LINKS) < 0 ? -1 : cow_native_link_classes_stand_in(stand_in);

    for (size_t i = 0; status == 0 && i < now->count; i++) {
        const entry *e = find(then, now->entry[i].name);
        if (all || e == NULL || !same(e, &now->entry[i]))
            status = unlink_one(r, group, &now->entry[i]);
    }
    if (then->count > 0)
        qsort(then->entry, then->count, sizeof *then->entry, by_place);
    for (size_t i = 0; status == 0 && i < then->count; i++) {
        const entry *e = find(now, then->entry[i].name);
        if (all || e == NULL || !same(e, &then->entry[i]))
            status = link_one(r, group, &then->entry[i]);
    }
    cow_native_link_classes_withdraw(stand_in);
    return status;
}

static int visit_members(cow_restoring *r, const cow_restored_pair *group, const links *then, cow_restore_member *visit)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < then->count; i++) {
        H5O_token_t token = cow_token(then->entry[i].snapshot);
        cow_loc object;
        char *path;

        if (then->entry[i].type != H5L_TYPE_HARD)
            continue;
        if ((path = path_of(group, then->entry[i].name)) == NULL ||
            cow_native_open_token(r->file->loc, &token, &object) < 0) {
            free(path);
            return -1;
        }
        status = visit(r, object, then->entry[i].snapshot, path);
        free(path);
        if (cow_native_close(object) < 0)
            status = -1;
    }
    return status;
}

int cow_restore_links(cow_restoring *r, const cow_restored_pair *pair, bool *changed, cow_restore_member *visit)
{
    links now = {.r = r, .group = pair->head, .root = is_root(r, pair)},
          then = {.r = r, .group = pair->snapshot, .version = r->version};
    bool order, differs = false;
    int status = -1, moved = 0;

    if (cow_native_group_tracks(pair->head, &order) < 0 ||
        cow_native_links(pair->head, order ? COW_LINKS_BY_CREATION : COW_LINKS_BY_NAME, note_link, &now) < 0 ||
        cow_native_links(pair->snapshot, order ? COW_LINKS_BY_CREATION : COW_LINKS_BY_NAME, note_link, &then) < 0)
        goto done;
    if (now.count > 0)
        qsort(now.entry, now.count, sizeof *now.entry, by_name);
    if (then.count > 0)
        qsort(then.entry, then.count, sizeof *then.entry, by_name);
    if (tell_all(r, pair, &now, &then, &differs) < 0 || (order && !differs && (moved = order_differs(&now, &then)) < 0))
        goto done;
    *changed = *changed || moved;
    if (!r->dry && (differs || moved) && carry_out(r, pair, &now, &then, order) < 0)
        goto done;
    status = visit_members(r, pair, &then, visit);
done:
    links_free(&now);
    links_free(&then);
    return status;
}

/* ---- one of a group ---- */

/* 1: L has the link NAME and nothing else; 0: the group has none. */
static int note_one(links *l, const char *name)
{
    H5L_info2_t info;
    int there = cow_native_exists(l->group, name);

    if (there <= 0)
        return there;
    return cow_native_link_info(l->group, name, &info) < 0 || note_link(l, name, &info) < 0 ? -1 : 1;
}

int cow_restore_link(cow_restoring *r, const cow_restored_pair *group, const char *name, cow_restore_member *visit)
{
    links now = {.r = r, .group = group->head}, then = {.r = r, .group = group->snapshot, .version = r->version};
    int status = -1, is, was;
    bool differs = false;

    if ((was = note_one(&then, name)) < 0 || (is = group->empty ? 0 : note_one(&now, name)) < 0)
        goto done;
    if (was == 0) {
        cow_error(COW_NOT_FOUND, "%s: version '%s' has no '%s/%s'", r->file->name, strrchr(r->version, '/') + 1,
                  group->path, name);
        goto done;
    }
    if (tell_all(r, group, &now, &then, &differs) < 0 ||
        (differs && !r->dry && carry_out(r, group, &now, &then, false) < 0))
        goto done;
    status = visit_members(r, group, &then, visit);
done:
    links_free(&now);
    links_free(&then);
    return status;
}

int cow_restore_no_links(cow_restoring *r, const cow_restored_pair *group)
{
    links now = {.r = r, .group = group->head, .root = is_root(r, group)};
    int status = cow_native_links(group->head, COW_LINKS_BY_NAME, note_link, &now);

    for (size_t i = 0; status == 0 && i < now.count; i++)
        status = unlink_one(r, group, &now.entry[i]);
    links_free(&now);
    return status;
}

int cow_restore_group(cow_restoring *r, const cow_restored_pair *above, const char *name,
                      const cow_restored_pair *group)
{
    return cow_restoring_note(r, &above->token, COW_CHANGED_LINKS) < 0 ||
                   cow_native_link_object(group->head, above->head, name) < 0
               ? -1
               : cow_map_put(&r->linked, cow_address(&group->token), 0);
}
