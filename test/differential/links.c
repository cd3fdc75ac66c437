/* Links, and everything that lists. */
#include "operations.h"
#include "places.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Links of the program's own: to something beside the link. */
#define BESIDE ((H5L_type_t)(H5L_TYPE_UD_MIN + 6))

static hid_t go_beside(const char *name, hid_t group, const void *value, size_t size, hid_t lapl, hid_t dxpl)
{
    static unsigned depth; /* such a link may lead to itself: HDF5 counts only the links that it knows */
    hid_t object = H5I_INVALID_HID;
    (void)name;
    (void)size;
    (void)dxpl;
    if (++depth < 16)
        object = H5Oopen(group, value, lapl);
    depth--;
    return object;
}

static ssize_t tell_beside(const char *name, const void *value, size_t size, void *buffer, size_t room)
{
    (void)name;
    if (buffer)
        memcpy(buffer, value, size < room ? size : room);
    return (ssize_t)size;
}

void know_links(void)
{
    static const H5L_class_t class = {.version = H5L_LINK_CLASS_T_VERS,
                                      .id = BESIDE,
                                      .comment = "beside",
                                      .trav_func = go_beside,
                                      .query_func = tell_beside};

    if (H5Lregister(&class) < 0)
        die("the class of links cannot be registered");
}

/* A group that has a hard link to itself: where that goes, and the group gets another storage of its links by that, HDF5 1.14.5 keeps the link in
 * the one, or crashes. */
static bool is_same(const char *a, const char *b)
{
    H5O_info2_t info[2];
    int differ = 1;
    return H5Oget_info_by_name3(w.file.id[0], a, &info[0], H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           H5Oget_info_by_name3(w.file.id[0], b, &info[1], H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           info[0].fileno == info[1].fileno &&
           H5Otoken_cmp(w.file.id[0], &info[0].token, &info[1].token, &differ) >= 0 && differ == 0;
}

bool op_link(void)
{
    SIDES;
    char from[PATH_SIZE], to[PATH_SIZE], group[PATH_SIZE], above[PATH_SIZE];
    const char *link = some_link();
    hid_t lcpl = link_plist();
    bool crowded = w.places > MAX_LINKS, done = true;
    size_t what = below(100);
    if (crowded && what < 75)
        what = 40;
    snprintf(from, sizeof from, "%s", link ? link : "/");
    new_path(to, "l");
    parent(to, group);
    existing_parent(to, above);
    w.modified = true;
    if (what < 12) {
        note("H5Lcreate_hard %s %s", from, to);
        bool circle = holds(from, above); /* at times it closes one */
        if (strcmp(from, "/") == 0 || (circle && chance(85)) || is_same(from, above))
            done = false;
        else {
            w.counted |= circle;
            BOTH("H5Lcreate_hard", H5Lcreate_hard(w.file.id[s], from, w.file.id[s], to, lcpl, H5P_DEFAULT));
        }
        touch(from);
    } else if (what < 24) {
        const char *target = chance(20)                       ? "nowhere/at all"
                             : chance(20)                     ? "/"
                             : chance(30) && strlen(from) > 1 ? from + 1
                                                              : from;
        note("H5Lcreate_soft %s %s", target, to);
        BOTH("H5Lcreate_soft", H5Lcreate_soft(target, w.file.id[s], to, lcpl, H5P_DEFAULT));
    } else if (what < 28) {
        note("H5Lcreate_external %s", to);
        const char *file = chance(50) ? "no such file.h5" : "elsewhere.h5", *target = chance(30) ? "/x" : "/d";
        BOTH("H5Lcreate_external", H5Lcreate_external(file, target, w.file.id[s], to, lcpl, H5P_DEFAULT));
    } else if (what < 32) {
        const char *beside = strrchr(from, '/') + 1;
        note("H5Lcreate_ud %s %s", beside, to);
        BOTH("H5Lcreate_ud", H5Lcreate_ud(w.file.id[s], to, BESIDE, beside, strlen(beside) + 1, lcpl, H5P_DEFAULT));
    } else if (what < 55) {
        if (!link || (!crowded && chance(40)))
            done = false;
        else {
            note("H5Ldelete %s", from);
            w.deleted = true;
            BOTH("H5Ldelete", H5Ldelete(w.file.id[s], from, H5P_DEFAULT));
            parent(from, group);
        }
    } else if (what < 58) {
        hsize_t n = below(3);
        snprintf(group, sizeof group, "%s", some_group());
        note("H5Ldelete_by_idx %s %llu", group, (unsigned long long)n);
        w.deleted = true;
        BOTH("H5Ldelete_by_idx", H5Ldelete_by_idx(w.file.id[s], group, H5_INDEX_NAME, H5_ITER_INC, n, H5P_DEFAULT));
    } else if (what < 76) {
        if (!link || holds(from, above))
            done = false;
        else {
            char old[PATH_SIZE];
            parent(from, old);
            note("H5Lmove %s %s", from, to);
            BOTH("H5Lmove", H5Lmove(w.file.id[s], from, w.file.id[s], to, lcpl, H5P_DEFAULT));
            touch(old);
        }
    } else if (what < 84) {
        if (!link || holds(from, above))
            done = false;
        else {
            note("H5Lcopy %s %s", from, to);
            BOTH("H5Lcopy", H5Lcopy(w.file.id[s], from, w.file.id[s], to, lcpl, H5P_DEFAULT));
        }
    } else {
        char value[2][PATH_SIZE] = {"", ""};
        note("H5Lexists, H5Lget_info, H5Oexists %s", from);
        H5L_info2_t info[2];
        memset(info, 0, sizeof info);
        BOTH("H5Lexists", link ? H5Lexists(w.file.id[s], from, H5P_DEFAULT) : 0);
        BOTH("H5Oexists_by_name", H5Oexists_by_name(w.file.id[s], from, H5P_DEFAULT));
        if (link && BOTH("H5Lget_info", H5Lget_info2(w.file.id[s], from, &info[s], H5P_DEFAULT)) &&
            (info[0].type != info[1].type || (info[0].cset != info[1].cset && !w.copied /* D21 */) ||
             (info[0].type == H5L_TYPE_SOFT && info[0].u.val_size != info[1].u.val_size)))
            differ(NO_STACK, "H5Lget_info %s: type %d cset %d size %zu, under test type %d cset %d size %zu", from,
                   info[0].type, info[0].cset, info[0].u.val_size, info[1].type, info[1].cset, info[1].u.val_size);
        if (link && info[0].type == H5L_TYPE_SOFT &&
            BOTH("H5Lget_val", H5Lget_val(w.file.id[s], from, value[s], PATH_SIZE, H5P_DEFAULT)) &&
            strcmp(value[0], value[1]) != 0)
            differ(NO_STACK, "H5Lget_val %s: %s, under test %s", from, value[0], value[1]);
    }
    H5Pclose(lcpl);
    touch(group);
    return done;
}

/* Everything that lists, as text. */
typedef struct listing {
    char text[40000];
    size_t length;
} listing;

static void list_more(listing *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void list_more(listing *l, const char *format, ...)
{
    va_list args;
    if (l->length >= sizeof l->text - 1)
        return;
    va_start(args, format);
    l->length += (size_t)vsnprintf(l->text + l->length, sizeof l->text - l->length, format, args);
    va_end(args);
}

static herr_t list_link(hid_t at, const char *name, const H5L_info2_t *info, void *data)
{
    (void)at;
    list_more(data, "%s %d\n", name, (int)info->type);
    return 0;
}

static herr_t list_object(hid_t at, const char *name, const H5O_info2_t *info, void *data)
{
    (void)at;
    list_more(data, "%s %d attributes %llu\n", name, (int)info->type, (unsigned long long)info->num_attrs);
    return 0;
}

/* Of the object ID; in its own file. */
static bool leads_to(const char *name, hid_t id)
{
    H5O_info2_t object, found;

    return *name != '\0' && H5Oget_info3(id, &object, H5O_INFO_BASIC) >= 0 &&
           H5Oget_info_by_name3(id, name, &found, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           memcmp(&object.token, &found.token, sizeof found.token) == 0;
}

bool op_list(void)
{
    SIDES;
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s", some_group());
    H5_index_t index = chance(60) ? H5_INDEX_NAME : H5_INDEX_CRT_ORDER;
    H5_iter_order_t order = chance(50) ? H5_ITER_INC : H5_ITER_DEC;
    listing *list[2] = {calloc(1, sizeof(listing)), calloc(1, sizeof(listing))};
    size_t what = below(5);
    const char *const call[] = {"H5Lvisit", "H5Ovisit", "H5Literate", "H5Lget_name_by_idx", "H5Iget_name"};
    note("%s %s index %d order %d", call[what], path, (int)index, (int)order);
    switch (what) {
    case 0:
        BOTH("H5Lvisit", H5Lvisit_by_name2(w.file.id[s], path, index, order, list_link, list[s], H5P_DEFAULT));
        break;
    case 1:
        BOTH("H5Ovisit", H5Ovisit_by_name3(w.file.id[s], path, index, order, list_object, list[s],
                                           H5O_INFO_BASIC | H5O_INFO_NUM_ATTRS, H5P_DEFAULT));
        break;
    case 2: {
        hsize_t at[2], start = below(4);
        at[0] = at[1] = start;
        if (BOTH("H5Literate",
                 H5Literate_by_name2(w.file.id[s], path, index, order, &at[s], list_link, list[s], H5P_DEFAULT)) &&
            at[0] != at[1])
            differ(NO_STACK, "H5Literate ends at %llu, under test %llu", (unsigned long long)at[0],
                   (unsigned long long)at[1]);
        break;
    }
    case 3: {
        H5G_info_t info;
        H5Gget_info_by_name(w.file.id[0], path, &info, H5P_DEFAULT);
        for (hsize_t n = 0; n <= info.nlinks && n < 40; n++) { /* one too many */
            char name[2][PATH_SIZE] = {"", ""};
            pair object = {{H5I_INVALID_HID, H5I_INVALID_HID}};
            if (BOTH("H5Lget_name_by_idx",
                     H5Lget_name_by_idx(w.file.id[s], path, index, order, n, name[s], PATH_SIZE, H5P_DEFAULT)) &&
                strcmp(name[0], name[1]) != 0)
                differ(NO_STACK, "link %llu is %s, under test %s", (unsigned long long)n, name[0], name[1]);
            if (chance(20) &&
                OPEN("H5Oopen_by_idx", object, H5Oopen_by_idx(w.file.id[s], path, index, order, n, H5P_DEFAULT)))
                close_ids(object);
        }
        break;
    }
    case 4:
        for (size_t i = 0; i < w.handles; i++) {
            char name[2][PATH_SIZE] = {"", ""};
            const hid_t *id = w.handle[i].set.id; /* which of several names (D41): both are to be the object's */
            if (BOTH("H5Iget_name", H5Iget_name(id[s], name[s], PATH_SIZE) >= 0) && strcmp(name[0], name[1]) != 0 &&
                (!leads_to(name[0], id[0]) || !leads_to(name[1], id[0])))
                differ(NO_STACK, "H5Iget_name: %s, under test %s", name[0], name[1]);
        }
        BOTH("H5Fget_obj_count of all", H5Fget_obj_count(w.file.id[s], H5F_OBJ_ALL));
        BOTH("H5Fget_obj_count of datasets", H5Fget_obj_count(w.file.id[s], H5F_OBJ_DATASET));
        break;
    }
    if (strcmp(list[0]->text, list[1]->text) != 0) {
        size_t i = 0;
        while (list[0]->text[i] == list[1]->text[i])
            i++;
        while (i && list[0]->text[i - 1] != '\n')
            i--;
        differ(NO_STACK, "%s lists otherwise: native '%.80s', under test '%.80s'", call[what], list[0]->text + i,
               list[1]->text + i);
    }
    free(list[0]);
    free(list[1]);
    return true;
}
