/* A group with many links, of which few changed: the newest snapshot's bytes are copied (copied.h), which HDF5 would make anew link by
 * link. What this does not know how to do, build_group does. */
#include "history/walk.h"

#include "base/error.h"
#include "history/copied.h"
#include "native/dense_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Groups of fewer links are made anew sooner than copied. */
#define COPIED_LEAST 32

/* A link with a longer name has no place in the blocks of a group's heap, and what is apart from them is not copied. */
#define COPIED_NAME 4000

typedef struct group_copy {
    cow_walk_group *p;
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
    cow_walk_group *p = g->p;
    cow_walk *walk = p->walk;
    const char *name = g->names[at];
    changed_link *link = &g->link[at];
    cow_walk_group scratch = *p;
    H5L_info2_t head, former, made;
    char *path;
    int in_head, in_former, status;

    *link = (changed_link){.name = name, .to = UINT64_MAX};
    if (cow_walk_is_history(p, name))
        return 1;
    if ((in_head = cow_walk_find_link(p->group, name, &head)) < 0 ||
        (in_former = cow_walk_find_link(p->previous, name, &former)) < 0)
        return -1;
    if ((in_head && head.type != H5L_TYPE_HARD) || (in_former && former.type != H5L_TYPE_HARD))
        return 0;
    link->had = in_former;
    if (!in_head)
        return 1;
    link->again = in_former && head.corder_valid && cow_changes_at(walk->file, p->path, name) != 1;
    link->order = head.corder_valid ? head.corder : 0;
    if (strlen(name) > COPIED_NAME || !has_one_link(p->group, name) ||
        (path = cow_walk_child_path(p->path, name)) == NULL)
        return 0;
    scratch.target = g->scratch;
    scratch.previous.object = NULL;
    scratch.former = (cow_small_group){0};
    status = cow_build(walk, &scratch, name, cow_address(&head.u.token), path);
    free(path);
    if (status == 0 && (status = cow_walk_find_link(scratch.target, name, &made)) > 0) {
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
    cow_walk_group *p = g->p;
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
        cow_walk_note_built(walk, p->address, *made) < 0)
        return cow_walk_fail(walk);
    return 1;
}

/* HDF5 does not put the links into the header of the copy, where this would not find them. */
static bool stays_large(const group_copy *g)
{
    hsize_t links;

    return cow_native_group_size(g->p->group.object, &links) == 0 && links >= g->count + cow_dense_least(g->dense);
}

static bool is_large(cow_loc group)
{
    hsize_t links;

    if (cow_native_group_size(group.object, &links) == 0)
        return links >= COPIED_LEAST;
    cow_error_clear();
    return false;
}

static int lacks_something(void *context, const cow_layout_lack *lack)
{
    (void)context;
    (void)lack;
    return 1;
}

int cow_group_copy(cow_walk *walk, cow_walk_group *p, cow_loc *made)
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

    if ((flags & ~COW_CHANGED_LINKS) != 0 || !is_large(p->group) ||
        !cow_snapshots_newest(file, p->address, &g.before) ||
        (g.names = cow_decide_few_names(walk, p->group, p->path, &g.count)) == NULL ||
        (flags != 0 && (known == NULL || strcmp(known[1] == '\0' ? "" : known, p->path) != 0)) ||
        cow_lacks_each(file, lacks_something, NULL) != 0)
        return 0;
    if ((row = cow_snapshots_made(file, g.before)) == NULL || (row->version == walk->row && !cow_copied_again(file)))
        return 0;
    snprintf(scratch, sizeof scratch, COW_PATH_COPYING "/%u", walk->copying);
    token = cow_token(g.before);
    g.scratch.type = H5I_GROUP;
    if ((g.link = calloc(g.count + 1, sizeof *g.link)) != NULL &&
        cow_native_info(p->group, NULL, H5O_INFO_BASIC, &info) == 0 && info.rc == 1 &&
        cow_dense_read(file->native, g.before, &g.dense) > 0 && stays_large(&g) &&
        cow_native_open_token(file->loc, &token, &p->previous) == 0 && p->previous.type == H5I_GROUP &&
        (g.scratch.object = cow_native_group_create(file->loc, scratch, H5P_DEFAULT)) != NULL) {
        walk->copying++;
        status = write_copy(&g, made);
        if (cow_native_group_close(g.scratch.object) < 0)
            status = status > 0 ? cow_walk_fail(walk) : -1;
    }
    cow_dense_free(g.dense);
    free(g.link);
    cow_previous_close(p);
    if (status > 0 || walk->failed)
        return status;
    if (made->object != NULL && cow_native_close(*made) < 0)
        return cow_walk_fail(walk);
    made->object = NULL;
    cow_error_clear();
    return 0;
}

int cow_group_copy_end(cow_walk *walk)
{
    int exists = walk->copying == 0 ? 0 : cow_native_exists(walk->file->loc, COW_PATH_COPYING);

    if (exists > 0 && cow_native_link_delete(walk->file->loc, COW_PATH_COPYING) < 0)
        return -1;
    walk->copying = 0;
    return exists < 0 ? -1 : 0;
}
