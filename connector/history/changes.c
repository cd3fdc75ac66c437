/* What changed in the running transaction: object addresses, with the path by which the application reached them.
 *
 * A path is only a hint for the walk of the commit (which parts of the tree to look into). Whenever a hint may be wrong
 * - something moved, an object got a second name, an object was reached by reference - the walk goes through the whole
 * head instead; and when the walk along the hints has not met every changed object, it is done again without them.
 */
#include "history/internal.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static int note(cow_file *file, uint64_t address, unsigned flags, const char *path)
{
    uint64_t at;
    cow_change_entry *e;

    file->edits++;
    if (cow_map_get(&file->change_of, address, &at)) {
        e = &file->change[at];
        e->flags |= flags;
    } else {
        if (file->change_count == file->change_room) {
            size_t room = file->change_room == 0 ? 16 : file->change_room * 2;
            cow_change_entry *larger = realloc(file->change, room * sizeof *larger);
            if (larger == NULL)
                return cow_error(COW_MEMORY, "no memory for the list of changes");
            file->change = larger;
            file->change_room = room;
        }
        if (cow_map_put(&file->change_of, address, file->change_count) < 0)
            return -1;
        e = &file->change[file->change_count++];
        *e = (cow_change_entry){.address = address, .flags = flags};
    }
    if (e->path == NULL && path != NULL && path[0] == '/' && (e->path = strdup(path)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the list of changes");
    if (e->path == NULL && !(path != NULL && path[0] == '\0'))
        file->full_walk = true;
    return 0;
}

int cow_changes_renew(cow_file *file, uint64_t address, const char *path)
{
    return note(file, address, COW_CHANGED_RENEW, path);
}

/* The head has changed already: a version that lacks the change must not be made. */
int cow_changed_object(cow_file *file, const H5O_token_t *object, const char *path, cow_change change)
{
    if (cow_file_begin(file) < 0 || note(file, cow_address(object), 1u << change, path) < 0)
        return cow_file_fail(file);
    return 0;
}

int cow_changed_link(cow_file *file, const H5O_token_t *group, const char *group_path, const char *name)
{
    (void)name; /* a group that is made anew links all its members anew: which one changed makes no difference */
    if (cow_file_begin(file) < 0 || note(file, cow_address(group), COW_CHANGED_LINKS, group_path) < 0)
        return cow_file_fail(file);
    return 0;
}

void cow_changed_half(cow_file *file)
{
    cow_file_fail(file);
}

void cow_changed_paths(cow_file *file)
{
    file->edits++;
    file->full_walk = true;
}

int cow_dataset_begin_write(cow_dataset *dataset, const char *path)
{
    if (dataset->snapshot)
        return cow_error(COW_READ_ONLY,
                         "%s: a version is never changed; open the file itself to change its newest state, or write "
                         "the version to a file of its own with: h5cow export",
                         dataset->array.label);
    if (cow_file_begin(dataset->file) < 0 || cow_dataset_hold(dataset, NULL) < 0)
        return -1;
    return note(dataset->file, dataset->address, COW_CHANGED_ARRAY, path);
}

void cow_changes_clear(cow_file *file)
{
    for (size_t i = 0; i < file->change_count; i++)
        free(file->change[i].path);
    file->change_count = 0;
    cow_map_free(&file->change_of);
    file->full_walk = false;
    cow_bare_forget_all(file);
}

unsigned cow_change_flags(const cow_file *file, uint64_t address)
{
    uint64_t at;
    return cow_map_get(&file->change_of, address, &at) ? file->change[at].flags : 0;
}

bool cow_changes_below(const cow_file *file, const char *path)
{
    size_t length = strlen(path);

    for (size_t i = 0; i < file->change_count; i++) {
        const char *p = file->change[i].path;
        if (p != NULL && strncmp(p, path, length) == 0 && p[length] == '/')
            return true;
    }
    return false;
}
