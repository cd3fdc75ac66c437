/* Names: what the application calls an object, and what it is called in the file.
 *
 * In the head nothing is renamed, but the reserved group of the root does not exist for the application: a name that
 * passes through it becomes one that nobody has, so that HDF5 itself gives the answer it gives for any missing name.
 * Which group is the root is decided by its address, not by its name: "/", ".", a group id and a second hard link to
 * the root are all the root.
 *
 * In a version absolute names get the version's prefix; the file stands for the version's root group.
 */
#include "vol/vol.h"

#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

#define MISSING COW_GROUP " (reserved by h5cow)"

static bool all_slashes(const char *name, size_t length)
{
    return length > 0 && strspn(name, "/") >= length;
}

static int no_memory(const char *name)
{
    return cow_error(COW_MEMORY, "no memory for the name '%s'", name);
}

/* Does the first LENGTH characters of NAME lead to a root group that hides something? 1, 0, -1 */
static int leads_to_hiding_root(const cow_where *where, cow_home *near, const char *name, size_t length)
{
    H5VL_loc_params_t loc = cow_by_self(where->loc.obj_type);
    cow_home *home = NULL;
    H5O_info2_t info;
    char *prefix = NULL;
    int answer = 0;

    if (length > 0) {
        if ((prefix = strndup(name, length)) == NULL)
            return no_memory(name);
        loc = cow_by_name(where->loc.obj_type, prefix);
    }
    if ((answer = cow_info_quietly(where->native, &loc, &info)) > 0) {
        H5I_type_t type = where->loc.obj_type;
        answer = 0;
        if (near->fileno == info.fileno)
            answer = cow_home_hides(near) && memcmp(&info.token, &near->root, sizeof info.token) == 0;
        else {
            cow_loc other = {where->native, type};
            bool opened = cow_native_open(other, prefix, &other) == 0;
            if (!opened || (home = cow_home_of(near, other.object, other.type, &info)) == NULL)
                answer = -1;
            else
                answer = cow_home_hides(home) && memcmp(&info.token, &home->root, sizeof info.token) == 0;
            if (opened)
                cow_native_close(other);
            cow_home_release(home);
        }
    }
    free(prefix);
    return answer;
}

/* NAME as the file knows it, from the location that WHERE already has. */
static int translate(cow_home *home, cow_where *where, const char *name, cow_purpose purpose, const char **out)
{
    char **owned = &where->owned[where->owned[0] != NULL];
    size_t size;

    *out = name;
    if (name == NULL || home == NULL)
        return 0;
    if (home->version != NULL) {
        if (name[0] != '/')
            return 0;
        size = strlen(home->version) + strlen(name) + 1;
        if ((*owned = malloc(size)) == NULL)
            return no_memory(name);
        strcpy(*owned, home->version);
        if (!all_slashes(name, strlen(name)))
            strcat(*owned, name);
        *out = *owned;
        return 0;
    }
    for (const char *p = strstr(name, COW_GROUP); p != NULL; p = strstr(p + 1, COW_GROUP)) {
        const char *end = p + strlen(COW_GROUP);
        int hidden;

        if ((p != name && p[-1] != '/') || (*end != '\0' && *end != '/'))
            continue;
        if ((hidden = leads_to_hiding_root(where, home, name, (size_t)(p - name))) < 0)
            return -1;
        if (hidden == 0)
            continue;
        if (purpose == COW_TO_CREATE)
            return cow_error(COW_USAGE,
                             "'%s': the name '" COW_GROUP
                             "' in the root group is reserved for the file's history; choose another name",
                             name);
        size = strlen(name) + sizeof MISSING;
        if ((*owned = malloc(size)) == NULL)
            return no_memory(name);
        memcpy(*owned, name, (size_t)(p - name));
        strcpy(*owned + (p - name), MISSING);
        strcat(*owned, end);
        *out = *owned;
        return 0;
    }
    return 0;
}

/* The version's root group stands for the file. */
static int base(cow_object *object, const H5VL_loc_params_t *loc, cow_where *where)
{
    *where = (cow_where){.loc = *loc};
    if (object == NULL)
        return 0;
    if ((where->native = cow_object_opened(object)) == NULL && object->unopened != NULL)
        return -1;
    if (object->type != H5I_FILE || object->home == NULL || object->home->version == NULL)
        return 0;
    if (object->root == NULL &&
        (object->root = cow_native_group_open((cow_loc){object->handle, H5I_FILE}, object->home->version)) == NULL)
        return -1;
    where->native = object->root;
    where->loc.obj_type = H5I_GROUP;
    return 0;
}

int cow_locate(cow_object *object, const H5VL_loc_params_t *loc, cow_purpose purpose, cow_where *where)
{
    cow_home *home = object == NULL ? NULL : object->home;

    if (base(object, loc, where) < 0)
        return -1;
    switch (loc->type) {
    case H5VL_OBJECT_BY_SELF:
        return 0;
    case H5VL_OBJECT_BY_NAME:
        return translate(home, where, loc->loc_data.loc_by_name.name, purpose, &where->loc.loc_data.loc_by_name.name);
    case H5VL_OBJECT_BY_IDX:
        return translate(home, where, loc->loc_data.loc_by_idx.name, purpose, &where->loc.loc_data.loc_by_idx.name);
    case H5VL_OBJECT_BY_TOKEN:
        where->token = *loc->loc_data.loc_by_token.token;
        if (cow_token_given(home, &where->token) < 0)
            return -1;
        where->loc.loc_data.loc_by_token.token = &where->token;
        return 0;
    }
    return cow_error(COW_UNSUPPORTED, "a kind of location that this h5cow does not know");
}

int cow_locate_name(cow_object *object, const H5VL_loc_params_t *loc, const char *name, cow_purpose purpose,
                    cow_where *where)
{
    if (cow_locate(object, loc, COW_TO_READ, where) < 0)
        return -1;
    return translate(object == NULL ? NULL : object->home, where, name, purpose, &where->name);
}

void cow_where_done(cow_where *where)
{
    free(where->owned[0]);
    free(where->owned[1]);
    where->owned[0] = where->owned[1] = NULL;
}

size_t cow_path_version_prefix(const cow_home *home, const char *path)
{
    size_t length;

    if (home == NULL || home->version == NULL)
        return 0;
    length = strlen(home->version);
    return strncmp(path, home->version, length) == 0 && (path[length] == '/' || path[length] == '\0') ? length : 0;
}

/* ---- searching for a name ---- */

typedef struct search {
    H5O_token_t wanted;
    bool skip_reserved; /* at the top */
    cow_loc group;      /* being listed */
    char *path;         /* of that group, without a '/' at its end */
    char *found;
    H5O_token_t *seen;
    size_t seen_count, seen_room;
} search;

static int search_group(search *s);

static int search_link(void *context, const char *name, const H5L_info2_t *info)
{
    search *s = context, below;
    H5O_info2_t object;
    char *path = NULL;
    size_t size;
    int status = -1;

    if (info->type != H5L_TYPE_HARD || (s->skip_reserved && strcmp(name, COW_GROUP) == 0))
        return 0;
    size = strlen(s->path) + strlen(name) + 2;
    if ((path = malloc(size)) == NULL)
        return no_memory(name);
    strcpy(path, s->path);
    strcat(path, "/");
    strcat(path, name);
    if (memcmp(&info->u.token, &s->wanted, sizeof s->wanted) == 0) {
        s->found = path;
        return 1;
    }
    if (cow_native_info(s->group, name, H5O_INFO_BASIC, &object) < 0)
        goto done;
    status = 0;
    if (object.type != H5O_TYPE_GROUP)
        goto done;
    for (size_t i = 0; i < s->seen_count; i++)
        if (memcmp(&s->seen[i], &object.token, sizeof object.token) == 0)
            goto done;
    below = *s;
    below.path = path;
    below.skip_reserved = false;
    if (cow_native_open(s->group, name, &below.group) < 0) {
        status = -1;
        goto done;
    }
    status = search_group(&below);
    s->found = below.found;
    s->seen = below.seen;
    s->seen_count = below.seen_count;
    s->seen_room = below.seen_room;
    if (cow_native_close(below.group) < 0)
        status = -1;
done:
    free(path);
    return status;
}

static int search_group(search *s)
{
    H5O_info2_t info;

    if (COW_RESERVE(s->seen, s->seen_room, s->seen_count, 1) < 0)
        return no_memory(s->path);
    if (cow_native_info(s->group, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    s->seen[s->seen_count++] = info.token;
    return cow_native_links(s->group, COW_LINKS_BY_NAME, search_link, s);
}

int cow_find_path(cow_object *object, const H5O_token_t *token, char **path)
{
    const cow_home *home = object->home;
    cow_loc from = {cow_object_opened(object), object->type};
    char top[] = "";
    search s = {.wanted = *token, .path = top, .skip_reserved = home->version == NULL};
    H5O_info2_t info;
    int status;

    *path = NULL;
    if (cow_native_open(from, home->version == NULL ? "/" : home->version, &s.group) < 0)
        return -1;
    status = cow_native_info(s.group, NULL, H5O_INFO_BASIC, &info);
    if (status == 0 && memcmp(&info.token, token, sizeof info.token) == 0)
        status = (s.found = strdup("/")) == NULL ? no_memory("/") : 0;
    else if (status == 0)
        status = search_group(&s);
    if (cow_native_close(s.group) < 0)
        status = -1;
    free(s.seen);
    if (status < 0) {
        free(s.found);
        return -1;
    }
    *path = s.found;
    return 0;
}
