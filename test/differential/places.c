/* The names in the file: see places.h. */
#include "places.h"

#include <stdio.h>
#include <string.h>

/* An object is at this native address. */
static void meet(const H5O_token_t *token)
{
    addresses *a = &w.addresses;
    size_t i = 0;
    while (i < a->count && memcmp(&a->at[i].token, token, sizeof *token) != 0)
        i++;
    if (i == MAX_OBJECTS)
        die("a file had more than %d objects: --file-steps is too large", MAX_OBJECTS);
    if (i == a->count)
        a->at[a->count++] = (struct address){.token = *token};
    else if (!a->at[i].alive)
        a->at[i].again = true;
    a->at[i].alive = a->at[i].seen = true;
}

static herr_t collect_place(hid_t group, const char *name, const H5L_info2_t *info, void *data)
{
    (void)data;
    if (w.places == MAX_PATHS)
        return 1;
    place *p = &w.place[w.places];
    p->what = AT_LINK;
    if (info->type == H5L_TYPE_HARD) {
        H5O_info2_t object;
        meet(&info->u.token);
        if (H5Oget_info_by_name3(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
            return 0;
        p->what = object.type == H5O_TYPE_GROUP ? AT_GROUP : object.type == H5O_TYPE_DATASET ? AT_DATASET : AT_TYPE;
    }
    if ((size_t)snprintf(p->path, PATH_SIZE, "/%s", name) < PATH_SIZE)
        w.places++;
    return 0;
}

void learn_places(void)
{
    addresses *a = &w.addresses;
    H5O_info2_t root;
    w.places = 0;
    for (size_t i = 0; i < a->count; i++)
        a->at[i].seen = false;
    if (H5Oget_info3(w.file.id[0], &root, H5O_INFO_BASIC) >= 0)
        meet(&root.token);
    H5Lvisit2(w.file.id[0], H5_INDEX_NAME, H5_ITER_INC, collect_place, NULL);
    for (size_t i = 0; i < a->count; i++)
        a->at[i].alive = a->at[i].seen;
}

const char *some(kind what)
{
    size_t n = 0, pick;
    for (size_t i = 0; i < w.places; i++)
        n += w.place[i].what == what;
    if (n == 0)
        return NULL;
    pick = below(n);
    for (size_t i = 0; i < w.places; i++)
        if (w.place[i].what == what && pick-- == 0)
            return w.place[i].path;
    return NULL;
}

const char *some_group(void)
{
    const char *path = chance(30) ? NULL : some(AT_GROUP);
    return path ? path : "/";
}

const char *some_object(void)
{
    const char *path = chance(25) ? some_group() : chance(15) ? some(AT_TYPE) : some(AT_DATASET);
    return path ? path : "/";
}

const char *some_link(void)
{
    return w.places ? w.place[below(w.places)].path : NULL;
}

void new_path(char path[PATH_SIZE], const char *stem)
{
    if (*w.again) {
        snprintf(path, PATH_SIZE, "%s", w.again);
        *w.again = 0;
        return;
    }
    const char *group = some_group();
    if (strlen(group) > 60)
        group = "/";
    if (chance(3) && some_link()) {
        snprintf(path, PATH_SIZE, "%s", some_link());
        return;
    }
    unsigned number = chance(70) ? ++w.named : (unsigned)below(40);
    const char *slash = strcmp(group, "/") == 0 ? "" : "/";
    if (chance(6))
        snprintf(path, PATH_SIZE, "%s%sway%zu/%s%u", group, slash, below(20), stem, number);
    else if (chance(5))
        snprintf(path, PATH_SIZE, "%s%s%s %u@\xc3\xa9", group, slash, stem, number);
    else
        snprintf(path, PATH_SIZE, "%s%s%s%u", group, slash, stem, number);
}

hid_t link_plist(void)
{
    hid_t plist = H5Pcreate(H5P_LINK_CREATE);
    if (chance(80))
        H5Pset_create_intermediate_group(plist, 1);
    if (chance(30))
        H5Pset_char_encoding(plist, H5T_CSET_UTF8);
    return plist;
}

void parent(const char *path, char group[PATH_SIZE])
{
    snprintf(group, PATH_SIZE, "%s", path);
    char *slash = strrchr(group, '/');
    if (slash == group || !slash)
        strcpy(group, "/");
    else
        *slash = 0;
}

struct search {
    hid_t file;
    H5O_token_t token;
    bool found;
};

static herr_t search_token(hid_t at, const char *name, const H5O_info2_t *info, void *data)
{
    struct search *search = data;
    int cmp = 1;
    (void)at;
    (void)name;
    H5Otoken_cmp(search->file, &info->token, &search->token, &cmp);
    search->found = search->found || cmp == 0;
    return 0;
}

bool holds(const char *from, const char *to)
{
    H5O_info2_t info;
    struct search search = {.file = w.file.id[0]};
    if (H5Oget_info_by_name3(w.file.id[0], to, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return false;
    search.token = info.token;
    H5Ovisit_by_name3(w.file.id[0], from, H5_INDEX_NAME, H5_ITER_INC, search_token, &search, H5O_INFO_BASIC,
                      H5P_DEFAULT);
    return search.found;
}

void existing_parent(const char *path, char group[PATH_SIZE])
{
    H5O_info2_t info;
    char child[PATH_SIZE];
    snprintf(child, sizeof child, "%s", path);
    do {
        parent(child, group);
        snprintf(child, sizeof child, "%s", group);
    } while (strcmp(group, "/") != 0 &&
             H5Oget_info_by_name3(w.file.id[0], group, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0);
}
