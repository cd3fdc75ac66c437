/* What changed in the running transaction: object addresses, with the path by which the application reached them.
 *
 * A path is only a hint for the walk of the commit (which parts of the tree to look into). It may be wrong: something moved,
 * or has another name. When the walk along the hints has not met every changed object, it is done again through the whole
 * head; and at once where an object without a path changed, or where links went in a way that only such a walk can account for.
 */
#include "history/changes.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/vector.h"
#include "history/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct noted {
    uint64_t address;
    unsigned flags;
    uint64_t edits; /* of COW_CHANGED_EMPTY: when it was told */
    char *path;     /* absolute, or NULL: unknown */
} noted;            /* flags 0: forgotten */

/* The paths of groups that had links to an object with several, when all of them were last looked for. */
typedef struct holders {
    char *paths; /* one after the other, each with its end */
    size_t length, room;
} holders;

/* Of a group: the links that lead to what changed, or changed themselves. */
typedef struct below {
    char **name;
    size_t count, room;
    bool unknown; /* and perhaps others */
} below;

struct cow_changes {
    noted *list;
    size_t count, room;
    cow_map of; /* address -> index in the list */
    below
        *below; /* of all groups above a path in the list: as many as the changes have ancestors, not a look at each */
    size_t groups, group_room;
    cow_map above;   /* checksum of a group's path -> index in `below` */
    cow_map listed;  /* checksums of the paths of all names there -> 1: the link itself changed */
    cow_map removed; /* addresses of objects whose last link was deleted */
    cow_map holders; /* address -> holders: stays until the file is closed */
    uint64_t edits;
    bool distrusted, cleared;
    bool somewhere;      /* something changed that is not in the list */
    bool unlinked, kept; /* stay as well */
};

cow_changes *cow_changes_new(void)
{
    return calloc(1, sizeof(cow_changes));
}

static void clear(cow_changes *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->list[i].path);
    for (size_t i = 0; i < c->groups; i++) {
        for (size_t j = 0; j < c->below[i].count; j++)
            free(c->below[i].name[j]);
        free(c->below[i].name);
    }
    c->count = c->groups = 0;
    cow_map_free(&c->of);
    cow_map_free(&c->above);
    cow_map_free(&c->listed);
    cow_map_free(&c->removed);
    c->distrusted = c->cleared = c->somewhere = false;
}

static void free_holders(const cow_map_entry *entry)
{
    holders *h = (void *)(uintptr_t)entry->value;

    free(h->paths);
    free(h);
}

void cow_changes_free(cow_changes *changes)
{
    if (changes == NULL)
        return;
    clear(changes);
    free(changes->list);
    free(changes->below);
    for (size_t i = 0; i < changes->holders.capacity; i++)
        if (changes->holders.entry[i].used)
            free_holders(&changes->holders.entry[i]);
    cow_map_free(&changes->holders);
    free(changes);
}

void cow_changes_clear(cow_file *file)
{
    clear(file->changes);
}

/* ---- noting ---- */

static noted *find(const cow_file *file, uint64_t address)
{
    uint64_t at;

    return cow_map_get(&file->changes->of, address, &at) ? &file->changes->list[at] : NULL;
}

static noted *add(cow_changes *c, uint64_t address)
{
    if (COW_RESERVE(c->list, c->room, c->count, 1) < 0) {
        cow_error(COW_MEMORY, "no memory for the list of changes");
        return NULL;
    }
    if (cow_map_put(&c->of, address, c->count) < 0)
        return NULL;
    c->list[c->count] = (noted){.address = address};
    return &c->list[c->count++];
}

/* Of the group PATH, of so many bytes, which from now on has something that changed below it. Two paths with one checksum cost a look
 * into a group without changes. */
static below *below_of(cow_changes *c, const char *path, size_t length)
{
    const uint64_t key = cow_checksum(path, length);
    uint64_t at;

    if (cow_map_get(&c->above, key, &at))
        return &c->below[at];
    if (COW_RESERVE(c->below, c->group_room, c->groups, 1) < 0) {
        cow_error(COW_MEMORY, "no memory for the list of changes");
        return NULL;
    }
    if (cow_map_put(&c->above, key, c->groups) < 0)
        return NULL;
    c->below[c->groups] = (below){0};
    return &c->below[c->groups++];
}

static int list_name(below *group, const char *name, size_t length)
{
    char *copy = strndup(name, length);

    if (copy == NULL || COW_RESERVE(group->name, group->room, group->count, 1) < 0) {
        free(copy);
        return cow_error(COW_MEMORY, "no memory for the list of changes");
    }
    group->name[group->count++] = copy;
    return 0;
}

/* Something changed at PATH, of so many bytes: each group above it has a link on the way there. */
static int note_way(cow_changes *c, const char *path, size_t length)
{
    size_t end = length, name = length;
    below *group;

    while (name > 0) {
        uint64_t key = cow_checksum(path, end);

        while (path[--name] != '/')
            if (name == 0) { /* no path */
                cow_error(COW_USAGE, "'%s' is no absolute path", path);
                return -1;
            }
        if (cow_map_get(&c->listed, key, NULL)) /* and so all above it */
            return 0;
        if ((group = below_of(c, path, name)) == NULL || cow_map_put(&c->listed, key, 0) < 0)
            return -1;
        if (end == name + 1)
            group->unknown |= length > 1; /* "/" is the root, and no link of it */
        else if (list_name(group, path + name + 1, end - name - 1) < 0)
            return -1;
        end = name;
    }
    return 0;
}

/* Where the group PATH stands in `above`: the root has an empty path there. */
static size_t group_length(const char *path)
{
    return path[1] == '\0' ? 0 : strlen(path);
}

/* What held an object may not do so any more, and others may: the walk finds out. */
static int note_holders(cow_changes *c, uint64_t address)
{
    const holders *h;
    uint64_t value;

    if (!cow_map_get(&c->holders, address, &value))
        return 0;
    h = (void *)(uintptr_t)value;
    for (size_t at = 0; at < h->length; at += strlen(h->paths + at) + 1) {
        const char *path = h->paths + at;
        below *group;

        if (note_way(c, path, strlen(path)) < 0 || (group = below_of(c, path, strlen(path))) == NULL)
            return -1;
        group->unknown = true;
    }
    return 0;
}

int cow_changes_note(cow_file *file, uint64_t address, unsigned flags, const char *path)
{
    noted *e = find(file, address);

    if (e == NULL && ((e = add(file->changes, address)) == NULL || note_holders(file->changes, address) < 0))
        return -1;
    if ((flags & 1u << COW_CHANGED_NEW) != 0)
        e->flags &= ~COW_CHANGED_EMPTY;
    e->flags |= flags;
    if (e->path == NULL && path != NULL && path[0] == '/') {
        if (note_way(file->changes, path, strlen(path)) < 0)
            return -1;
        if ((e->path = strdup(path)) == NULL)
            return cow_error(COW_MEMORY, "no memory for the list of changes");
    }
    if (e->path == NULL && !(path != NULL && path[0] == '\0'))
        file->changes->distrusted = true;
    return 0;
}

void cow_changes_held_by(cow_file *file, uint64_t address, const char *path)
{
    cow_map *all = &file->changes->holders;
    size_t size = path == NULL ? 0 : strlen(path) + 1;
    holders *h = NULL;
    uint64_t value;

    if (cow_map_get(all, address, &value))
        h = (void *)(uintptr_t)value;
    else if (path == NULL)
        return;
    else if ((h = calloc(1, sizeof *h)) == NULL || cow_map_put(all, address, (uintptr_t)h) < 0) {
        free(h);
        cow_error_clear(); /* the next commit looks for all of them again */
        return;
    }
    if (path == NULL)
        h->length = 0;
    else if (COW_RESERVE(h->paths, h->room, h->length, size) == 0) {
        memcpy(h->paths + h->length, path, size);
        h->length += size;
    } else
        cow_error_clear();
}

void cow_changes_forget(cow_file *file, uint64_t address)
{
    noted *e = find(file, address);

    if (e == NULL)
        return;
    free(e->path);
    e->path = NULL;
    e->flags = 0;
}

void cow_changes_removed(cow_file *file, uint64_t address)
{
    if (cow_map_put(&file->changes->removed, address, 0) == 0)
        return;
    cow_error_clear();
    cow_changes_distrust_paths(file);
}

void cow_changed_group_unlinked(cow_file *file)
{
    file->changes->unlinked = true;
}

void cow_changes_keeps_group(cow_file *file)
{
    file->changes->kept = true;
}

bool cow_changes_groups_kept(const cow_file *file)
{
    return file->changes->kept;
}

bool cow_changes_groups_unlinked(const cow_file *file)
{
    return file->changes->unlinked;
}

/* NAME NULL: any of them. */
static int note_link(cow_changes *c, const char *group_path, const char *name)
{
    const size_t length = group_length(group_path);
    below *group = below_of(c, group_path, length);
    char *path;
    int status;

    if (group == NULL)
        return -1;
    if (name == NULL) {
        group->unknown = true;
        return 0;
    }
    if (asprintf(&path, "%.*s/%s", (int)length, group_path, name) < 0)
        return cow_error(COW_MEMORY, "no memory for the list of changes");
    status = note_way(c, path, strlen(path)) < 0 ? -1 : cow_map_put(&c->listed, cow_checksum(path, strlen(path)), 1);
    free(path);
    return status;
}

/* The head has changed already: a version that lacks the change must not be made. */
int cow_changed_object(cow_file *file, const H5O_token_t *object, const char *path, cow_change change)
{
    if (cow_file_begin(file) < 0 || cow_changes_note(file, cow_address(object), 1u << change, path) < 0)
        return cow_file_fail(file);
    cow_versions_depart(file);
    return 0;
}

int cow_changed_link(cow_file *file, const H5O_token_t *group, const char *group_path, const char *name)
{
    const char *known = cow_changes_path(file, cow_address(group));
    unsigned flags = COW_CHANGED_LINKS;

    if (known != NULL && (group_path == NULL || strcmp(known, group_path) != 0))
        flags |= COW_CHANGED_ELSEWHERE;
    if (cow_file_begin(file) < 0 || cow_changes_note(file, cow_address(group), flags, group_path) < 0 ||
        (group_path != NULL && group_path[0] == '/' && note_link(file->changes, group_path, name) < 0))
        return cow_file_fail(file);
    cow_versions_depart(file);
    return 0;
}

void cow_changed_empty_group(cow_file *file, const H5O_token_t *group)
{
    noted *e = find(file, cow_address(group));

    if (e != NULL && e->flags == 1u << COW_CHANGED_NEW) {
        e->flags |= COW_CHANGED_EMPTY;
        e->edits = file->changes->edits;
    }
}

void cow_changed_somewhere(cow_file *file)
{
    cow_changed_paths(file);
    file->changes->somewhere = true;
}

void cow_changed_half(cow_file *file)
{
    cow_file_fail(file);
}

void cow_changed_paths(cow_file *file)
{
    cow_changes_edited(file);
    cow_changes_distrust_paths(file);
}

void cow_changed_counts(cow_file *file)
{
    cow_changes_edited(file);
}

void cow_changes_distrust_paths(cow_file *file)
{
    file->changes->distrusted = true;
}

bool cow_changes_distrusted(const cow_file *file)
{
    return file->changes->distrusted;
}

void cow_changes_set_cleared(cow_file *file)
{
    file->changes->cleared = true;
    cow_changed_paths(file);
}

bool cow_changes_cleared(const cow_file *file)
{
    return file->changes->cleared;
}

uint64_t cow_changes_edits(const cow_file *file)
{
    return file->changes->edits;
}

void cow_changes_edited(cow_file *file)
{
    file->changes->edits++;
}

/* ---- asking ---- */

bool cow_changes_bare(const cow_file *file, uint64_t address)
{
    const unsigned header = 1u << COW_CHANGED_NEW | 1u << COW_CHANGED_ATTRIBUTES;

    return (cow_changes_flags(file, address) & header) == 1u << COW_CHANGED_NEW && !cow_changes_somewhere(file);
}

unsigned cow_changes_flags(const cow_file *file, uint64_t address)
{
    const noted *e = find(file, address);

    return e == NULL ? 0 : e->flags;
}

bool cow_changes_somewhere(const cow_file *file)
{
    return file->changes->somewhere;
}

/* Where nothing lost a link, none of them has gone, and made room for one of the groups that HDF5 makes on the way to a link; but with a group that
 * never had one its members go as well. */
bool cow_changes_empty_group(const cow_file *file, uint64_t address)
{
    const noted *e = find(file, address);

    return e != NULL && e->flags == (1u << COW_CHANGED_NEW | COW_CHANGED_EMPTY) && e->edits == file->changes->edits &&
           !file->changes->unlinked && !file->changes->somewhere;
}

const char *cow_changes_path(const cow_file *file, uint64_t address)
{
    const noted *e = find(file, address);

    return e == NULL ? NULL : e->path;
}

bool cow_changes_below(const cow_file *file, const char *path)
{
    return cow_map_get(&file->changes->above, cow_checksum(path, strlen(path)), NULL);
}

const char *const *cow_changes_names(const cow_file *file, const char *path, size_t *count)
{
    const below *group;
    uint64_t at;

    if (!cow_map_get(&file->changes->above, cow_checksum(path, strlen(path)), &at))
        return NULL;
    group = &file->changes->below[at];
    *count = group->count;
    return group->unknown ? NULL : (const char *const *)group->name;
}

int cow_changes_at(const cow_file *file, const char *path, const char *name)
{
    uint64_t link = 0;
    char *full;
    bool listed;

    if (asprintf(&full, "%s/%s", path, name) < 0)
        return cow_error(COW_MEMORY, "no memory for the list of changes");
    listed = cow_map_get(&file->changes->listed, cow_checksum(full, strlen(full)), &link);
    free(full);
    return listed ? 1 + (int)link : 0;
}

int cow_changes_each(const cow_file *file, cow_changes_visitor *visit, void *context)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < file->changes->count; i++)
        if (file->changes->list[i].flags != 0)
            status = visit(context, file->changes->list[i].address, file->changes->list[i].path);
    return status;
}

int cow_changes_each_removed(const cow_file *file, cow_changes_visitor *visit, void *context)
{
    const cow_map *removed = &file->changes->removed;
    int status = 0;

    for (size_t i = 0; status == 0 && i < removed->capacity; i++)
        if (removed->entry[i].used)
            status = visit(context, removed->entry[i].key, NULL);
    return status;
}
