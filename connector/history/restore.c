/* The head, or objects of it, become as they were in a version.
 *
 * A walk through the version's tree, beside the head objects that its objects are snapshots of. Where an object of the version is
 * the newest snapshot as well, nothing below it differs either (snapshot.c), and the walk turns back. Else the head object gets
 * attributes, comment, elements and links of the version. Objects are the same in the head and in all versions, by address: one that
 * was deleted still has a link in /_versioned_data/removed, and is linked where it was; that link goes when all is done. What
 * the version does not know loses its links, as by H5Ldelete.
 *
 * The commit after it makes a version like any other, but for its parent.
 */
#include "history/restore.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "history/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cow_restoring_tell(cow_restoring *r, const char *path, int32_t what)
{
    char *copy = strdup(path);

    r->request->differs = 1;
    if (copy == NULL || COW_RESERVE(r->told, r->told_room, r->told_count, 1) < 0) {
        free(copy);
        return cow_error(COW_MEMORY, "%s: no memory for what is restored", r->file->name);
    }
    r->told[r->told_count++] = (struct cow_told){copy, what};
    return 0;
}

/* The program may do anything with the file meanwhile: nothing is under way any more. */
static int tell_all(cow_restoring *r)
{
    for (size_t i = 0; r->request->tell != NULL && i < r->told_count; i++)
        if (r->request->tell(r->request->context, r->told[i].path, r->told[i].what) != 0)
            return cow_error(COW_USAGE, "%s: the program has stopped the restoring", r->file->name);
    return 0;
}

static void restoring_free(cow_restoring *r)
{
    for (size_t i = 0; i < r->told_count; i++)
        free(r->told[i].path);
    free(r->told);
    for (size_t i = 0; i < r->used_count; i++)
        free(r->used[i].path);
    free(r->used);
    cow_map_free(&r->done);
    cow_map_free(&r->linked);
}

int cow_restoring_note(cow_restoring *r, const H5O_token_t *head, unsigned flags)
{
    if (cow_file_begin(r->file) < 0)
        return -1;
    cow_changed_paths(r->file);
    return cow_changes_note(r->file, cow_address(head), COW_CHANGED_RENEW | flags, "");
}

int cow_restoring_head(cow_restoring *r, uint64_t snapshot, H5O_token_t *head)
{
    H5O_token_t token = cow_token(snapshot);

    if (cow_head_of(r->file, r->version, &token, head) < 0)
        return -1;
    return cow_address(head) != snapshot
               ? 0
               : cow_error(
                     COW_CORRUPT,
                     "%s: version '%s' has an object that the table of snapshots does not know; try: h5cow verify",
                     r->file->name, strrchr(r->version, '/') + 1);
}

/* ---- named datatypes that are used ---- */

typedef struct user {
    cow_restoring *r;
    const cow_restored_pair *pair;
} user;

/* TYPE is closed. */
static int note_used(const user *u, hid_t type)
{
    cow_restoring *r = u->r;
    H5O_token_t token;
    int named = cow_native_named_token(type, &token);
    char *path;

    cow_close(type);
    if (named <= 0)
        return named;
    if ((path = strdup(u->pair->path)) == NULL || COW_RESERVE(r->used, r->used_room, r->used_count, 1) < 0) {
        free(path);
        return cow_error(COW_MEMORY, "%s: no memory for what is restored", r->file->name);
    }
    r->used[r->used_count++] = (struct cow_used){cow_address(&token), path};
    return 0;
}

static int note_attribute(void *context, const char *name)
{
    const user *u = context;

    return note_used(u, cow_native_attribute_type(u->pair->snapshot, name));
}

static int note_types(cow_restoring *r, const cow_restored_pair *pair)
{
    user u = {r, pair};

    return pair->snapshot.type == H5I_DATASET && note_used(&u, cow_native_dataset_type(pair->snapshot.object)) < 0
               ? -1
               : cow_native_attributes(pair->snapshot, false, note_attribute, &u);
}

/* ---- an object and what is below it ---- */

/* GONE: a link to it was told. */
static int restore_pair(cow_restoring *r, const cow_restored_pair *pair, bool gone, cow_restore_member *visit)
{
    bool changed = false;

    if (cow_restore_header(r, pair, &changed) < 0 || note_types(r, pair) < 0 ||
        (pair->head.type == H5I_DATASET && cow_restore_elements(r, pair, &changed) < 0) ||
        (pair->head.type == H5I_GROUP && cow_restore_links(r, pair, &changed, visit) < 0))
        return cow_context("%s: cannot restore %s", r->file->name, pair->path[0] == '\0' ? "/" : pair->path);
    return changed && !gone ? cow_restoring_tell(r, pair->path[0] == '\0' ? "/" : pair->path, H5COW_CHANGED) : 0;
}

/* The head object of SNAPSHOT, opened. */
static int open_pair(cow_restoring *r, cow_restored_pair *pair, uint64_t address, bool *borrowed)
{
    if (cow_restoring_head(r, address, &pair->token) < 0 ||
        cow_head_open(r->file, cow_address(&pair->token), &pair->head, borrowed) < 0)
        return -1;
    if (pair->head.type == pair->snapshot.type)
        return 0;
    if (!*borrowed)
        cow_native_close(pair->head);
    return cow_error(COW_CORRUPT, "%s: %s is another kind of object than its snapshot; try: h5cow verify",
                     r->file->name, pair->path);
}

static int close_pair(cow_restored_pair *pair, bool borrowed)
{
    return borrowed ? 0 : cow_native_close(pair->head);
}

static int restore_object(cow_restoring *r, cow_loc snapshot, uint64_t address, const char *path)
{
    cow_restored_pair pair = {.snapshot = snapshot, .path = path};
    uint64_t newest;
    bool borrowed, known;
    int status;

    if (cow_restoring_head(r, address, &pair.token) < 0)
        return -1;
    if (cow_map_get(&r->done, cow_address(&pair.token), NULL))
        return 0;
    known = cow_snapshots_newest(r->file, cow_address(&pair.token), &newest);
    if (cow_map_put(&r->done, cow_address(&pair.token), 0) < 0)
        return -1;
    if (known && newest == address && !r->distrust)
        return 0;
    if (open_pair(r, &pair, address, &borrowed) < 0)
        return -1;
    status = !known && !r->dry && cow_restoring_note(r, &pair.token, 0) < 0
                 ? -1
                 : restore_pair(r, &pair, !known, restore_object);
    return close_pair(&pair, borrowed) < 0 ? -1 : status;
}

/* ---- one path ---- */

/* What is left of PATH when its first name is taken off: "" behind the last one. *NAME: free() it, NULL: no memory. */
static const char *first_name(const char *path, char **name)
{
    path += strspn(path, "/");
    *name = strndup(path, strcspn(path, "/"));
    path += strcspn(path, "/");
    return path + strspn(path, "/");
}

static int restore_below(cow_restoring *r, cow_restored_pair *group, const char *path);

/* ---- does the head lead to a group? ---- */

typedef struct search {
    const cow_file *file;
    uint64_t wanted;
    cow_map met; /* groups */
    cow_loc group;
} search;

/* 1: found. */
static int search_link(void *context, const char *name, const H5L_info2_t *info)
{
    search *s = context;
    uint64_t address = info->type == H5L_TYPE_HARD ? cow_address(&info->u.token) : 0;
    cow_loc above = s->group, object;
    bool borrowed;
    int status = 0;

    if (info->type != H5L_TYPE_HARD || cow_map_get(&s->met, address, NULL) ||
        (above.object == NULL && strcmp(name, COW_GROUP) == 0))
        return 0;
    if (address == s->wanted)
        return 1;
    if (cow_map_put(&s->met, address, 0) < 0 || cow_head_open(s->file, address, &object, &borrowed) < 0)
        return -1;
    if (object.type == H5I_GROUP && address != cow_address(&s->file->root)) {
        s->group = object;
        status = cow_native_links(object, COW_LINKS_BY_NAME, search_link, s);
        s->group = above;
    }
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

/* By hard links from the root: what only a circle of links holds has a snapshot, but no place. 1, 0, -1 */
static int has_place(const cow_file *file, uint64_t address)
{
    search s = {.file = file, .wanted = address};
    cow_loc root;
    bool borrowed;
    int status;

    if (!cow_snapshots_newest(file, address, NULL))
        return 0;
    if (cow_head_open(file, cow_address(&file->root), &root, &borrowed) < 0)
        return -1;
    status = cow_native_links(root, COW_LINKS_BY_NAME, search_link, &s);
    cow_map_free(&s.met);
    return !borrowed && cow_native_close(root) < 0 ? -1 : status;
}

/* PAIR, a group on the way, is in the head as well: 1, or it is missing and was deleted: 0. */
static int group_is_there(cow_restoring *r, const cow_restored_pair *above, const char *name,
                          const cow_restored_pair *pair)
{
    const char *version = strrchr(r->version, '/') + 1;
    int there = above->empty ? 0 : cow_native_exists(above->head, name), placed;
    H5L_info2_t is;

    if (there < 0 || (there && cow_native_link_info(above->head, name, &is) < 0))
        return -1;
    if (pair->head.type != H5I_GROUP)
        return cow_error(COW_NOT_FOUND, "%s: in version '%s', '%s' is no group", r->file->name, version, pair->path);
    if (there && is.type == H5L_TYPE_HARD && cow_address(&is.u.token) == cow_address(&pair->token))
        return 1;
    if (!there && (placed = has_place(r->file, cow_address(&pair->token))) <= 0)
        return placed;
    return cow_error(
        COW_NOT_FOUND,
        "%s: '%s' is not the group that it was in version '%s'; restore '%s' as a whole, or h5cow cp what is "
        "wanted of it",
        r->file->name, pair->path, version, pair->path);
}

/* What leads to something that is restored: the group alone, without its members. */
static int bring_back(cow_restoring *r, const cow_restored_pair *above, const char *name, const cow_restored_pair *pair)
{
    bool changed;

    if (cow_restoring_tell(r, pair->path, H5COW_ADDED) < 0 || r->dry)
        return r->dry ? 0 : -1;
    return cow_restoring_note(r, &pair->token, 0) < 0 || cow_restore_header(r, pair, &changed) < 0 ||
                   cow_restore_no_links(r, pair) < 0
               ? -1
               : cow_restore_group(r, above, name, pair);
}

static int go_on(cow_restoring *r, const cow_restored_pair *above, const char *name, cow_restored_pair *pair,
                 const char *rest)
{
    int there = group_is_there(r, above, name, pair);

    pair->empty = there == 0 && r->dry;
    return there < 0 || (there == 0 && bring_back(r, above, name, pair) < 0) ? -1 : restore_below(r, pair, rest);
}

/* The groups of a path, one below the other. */
static int go_down(cow_restoring *r, const cow_restored_pair *above, const char *name, const char *rest)
{
    cow_restored_pair pair = {0};
    H5L_info2_t was;
    char *path;
    bool borrowed;
    int there = cow_native_exists(above->snapshot, name), status = -1;

    if (there < 0 || (there && cow_native_link_info(above->snapshot, name, &was) < 0))
        return -1;
    if (!there || was.type != H5L_TYPE_HARD)
        return cow_error(COW_NOT_FOUND, "%s: version '%s' has no group '%s/%s'%s", r->file->name,
                         strrchr(r->version, '/') + 1, above->path, name,
                         there ? ", but a link: restore what that leads to" : "");
    if (asprintf(&path, "%s/%s", above->path, name) < 0)
        return cow_error(COW_MEMORY, "no memory for a path");
    pair.path = path;
    if (cow_native_open(above->snapshot, name, &pair.snapshot) == 0) {
        if (open_pair(r, &pair, cow_address(&was.u.token), &borrowed) == 0) {
            status = go_on(r, above, name, &pair, rest);
            if (close_pair(&pair, borrowed) < 0)
                status = -1;
        }
        if (cow_native_close(pair.snapshot) < 0)
            status = -1;
    }
    free(path);
    return status;
}

static int restore_below(cow_restoring *r, cow_restored_pair *group, const char *path)
{
    char *name;
    const char *rest = first_name(path, &name);
    int status;

    if (name == NULL)
        return cow_error(COW_MEMORY, "no memory for a path");
    if (cow_address(&group->token) == cow_address(&r->file->root) && strcmp(name, COW_GROUP) == 0)
        status = cow_error(COW_NOT_FOUND, "%s: version '%s' has no '%s/%s'", r->file->name,
                           strrchr(r->version, '/') + 1, group->path, path);
    else
        status = rest[0] == '\0' ? cow_restore_link(r, group, name, restore_object) : go_down(r, group, name, rest);
    free(name);
    return status;
}

/* ---- the whole ---- */

typedef struct lacking {
    const cow_file *file;
    uint64_t row;     /* of the version to be restored */
    bool then, since; /* that version lacks something; so does the newest, or the head has what is in none */
    bool head;        /* the head may be something else than its newest snapshots */
} lacking;

static int note_lack(void *context, uint64_t version, uint64_t head, bool to_come)
{
    lacking *l = context;

    l->then |= version == l->row && !to_come && head != UINT64_MAX;
    l->since |= (to_come && head == UINT64_MAX) ||
                (!to_come && (int64_t)version == cow_versions_newest(l->file) && head != UINT64_MAX);
    l->head |= to_come || l->since;
    return 0;
}

/* What would be lost is refused, unless that is wished. */
static int look_for_lacks(cow_restoring *r, uint64_t row)
{
    lacking l = {.file = r->file, .row = row};
    const char *version = strrchr(r->version, '/') + 1;

    if (cow_lacks_visit(r->file, note_lack, &l) < 0)
        return -1;
    r->distrust = l.head;
    if (l.then && !r->request->force)
        return cow_error(
            COW_NOT_FOUND,
            "%s: version '%s' is incomplete (h5cow log): what it lacks would be gone from the file; --force "
            "restores what it has",
            r->file->name, version);
    if (l.since && !r->request->force)
        return cow_error(
            COW_NOT_FOUND,
            "%s: the newest version is incomplete (h5cow log), so the file has what no version has, and it could "
            "be lost; --force restores all the same",
            r->file->name);
    return 0;
}

static int may_restore(cow_file *file, bool dry)
{
    if (!dry && cow_file_may_write(file) < 0)
        return -1;
    if (cow_file_state_of(file) != COW_FILE_CLEAN)
        return cow_error(COW_USAGE, "%s: there are changes that are not committed; commit or drop them first",
                         file->name);
    if (cow_datasets_in_use(file))
        return cow_error(COW_USAGE, "%s: datasets are open; close them before something is restored", file->name);
    if (file->journal == NULL && !dry)
        return cow_error(COW_UNSUPPORTED, "%s: a file in memory is not restored, since nothing could take it back",
                         file->name);
    return cow_file_open_all(file) < 0 || cow_snapshots_load(file) < 0 ? -1 : 0;
}

static int restore_paths(cow_restoring *r, cow_restored_pair *root)
{
    if (cow_map_put(&r->done, cow_address(&root->token), 0) < 0)
        return -1;
    for (size_t i = 0; i < r->request->path_count; i++) {
        const char *path = r->request->paths[i] + strspn(r->request->paths[i], "/");
        if ((*path == '\0' ? restore_pair(r, root, false, restore_object) : restore_below(r, root, path)) < 0)
            return -1;
    }
    return 0;
}

/* A named datatype of the version that the walk has not come to. Where objects alone are restored, one that the head has a link to stays as
 * it is. */
static int restore_used(cow_restoring *r, const struct cow_used *used)
{
    H5O_token_t token = cow_token(used->snapshot), head;
    cow_loc snapshot;
    int there = 0, status;

    if (cow_restoring_head(r, used->snapshot, &head) < 0)
        return -1;
    if (cow_map_get(&r->done, cow_address(&head), NULL))
        return 0;
    if (r->request->path_count > 0 && (there = has_place(r->file, cow_address(&head))) != 0)
        return there < 0 ? -1 : cow_map_put(&r->done, cow_address(&head), 0);
    if (cow_native_open_token(r->file->loc, &token, &snapshot) < 0)
        return -1;
    status = restore_object(r, snapshot, used->snapshot, used->path);
    return cow_native_close(snapshot) < 0 ? -1 : status;
}

/* These may use others. */
static int restore_types(cow_restoring *r)
{
    for (size_t i = 0; i < r->used_count; i++) {
        const struct cow_used used = r->used[i]; /* the list may move */

        if (restore_used(r, &used) < 0)
            return -1;
    }
    return 0;
}

/* What has its links again needs none in `removed`. */
static int forget_removed(cow_restoring *r)
{
    for (size_t i = 0; i < r->linked.capacity; i++)
        if (r->linked.entry[i].used && cow_file_unkeep(r->file, r->linked.entry[i].key) < 0)
            return -1;
    return 0;
}

static int restore_from(cow_restoring *r)
{
    cow_restored_pair root = {.path = ""};
    H5O_info2_t info;
    bool borrowed;
    int status = -1;

    if (cow_native_open(r->file->loc, r->version, &root.snapshot) < 0)
        return -1;
    if (cow_native_info(root.snapshot, NULL, H5O_INFO_BASIC, &info) == 0) {
        if (r->request->path_count == 0)
            status = restore_object(r, root.snapshot, cow_address(&info.token), "");
        else if (open_pair(r, &root, cow_address(&info.token), &borrowed) == 0) {
            status = restore_paths(r, &root);
            if (close_pair(&root, borrowed) < 0)
                status = -1;
        }
    }
    if (cow_native_close(root.snapshot) < 0)
        status = -1;
    return status < 0 || restore_types(r) < 0 ? -1 : forget_removed(r);
}

/* "version 4: undone, as in version 2". */
static int record(cow_restoring *r)
{
    static const struct {
        cow_operation kind;
        const char *word;
    } kinds[] = {{COW_OPERATION_RESTORE, "restored"}, {COW_OPERATION_UNDO, "undone"}, {COW_OPERATION_REDO, "redone"}};
    const int32_t kind = r->request->kind < 0 || r->request->kind > 2 ? 0 : r->request->kind;
    const uint64_t version = cow_versions_known(r->file);
    char what[1024];

    snprintf(what, sizeof what, "version #%llu: %s, %s as in version %s", (unsigned long long)version + 1,
             kinds[kind].word,
             r->request->path_count == 0   ? "all"
             : r->request->path_count == 1 ? r->request->paths[0]
                                           : "some objects",
             strrchr(r->version, '/') + 1);
    return cow_operation_record(r->file, kinds[kind].kind, version, what);
}

int cow_file_restore(cow_file *file, h5cow_restore_t *request)
{
    char version[1024];
    cow_restoring r = {.file = file, .version = version, .dry = request->dry_run != 0, .request = request};
    H5AC_cache_config_t cache;
    uint64_t row;
    int status = -1, wider;

    request->differs = 0;
    if (may_restore(file, request->dry_run != 0) < 0 ||
        cow_revision_resolve(file->native, request->revision, version, sizeof version) < 0 ||
        cow_layout_version(file->loc, version) < 0 || cow_version_row(file, version, &row) < 0 ||
        look_for_lacks(&r, row) < 0)
        return -1;
    request->number = row + 1;
    if ((wider = cow_native_metadata_cache_widen(file->native, &cache)) >= 0)
        status = restore_from(&r);
    if (wider > 0)
        cow_native_metadata_cache_restore(file->native, &cache);
    if (status == 0 && request->differs && !r.dry && (status = record(&r)) == 0 && request->path_count == 0)
        cow_versions_descend(file, row);
    if (status == 0)
        status = tell_all(&r);
    restoring_free(&r);
    /* what was changed before it failed is never committed */
    return status == 0 ? 0 : cow_file_state_of(file) == COW_FILE_CLEAN ? -1 : cow_operation_drop(file);
}
