/* One version of a damaged file becomes the newest state of the new one.
 *
 * First its groups and links, breadth first, so that each object has its place; then attributes and elements, which may
 * refer to any object. An object that is the same snapshot as in the version before is left alone. What cannot be
 * opened is told, and is not in the new version.
 */
#include "salvage.h"

#include "base/digest.h"
#include "base/error.h"
#include "base/ids.h"
#include "native/datatype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 1024 /* in a group, of which the process that waits is told */

/* ---- paths ---- */

/* The path in the source: below the version, or in the head. */
static char *source_path(const salvage *s, const char *path, bool head)
{
    return head ? cli_strdup(path) : cli_format("%s%s", s->now->path, path[1] == '\0' ? "" : path);
}

/* The object at PATH of the version at hand, natively; the newest version is the head once more. */
static hid_t open_native(const salvage *s, const char *path, bool *head)
{
    hid_t object = H5I_INVALID_HID;

    for (int i = 0; object < 0 && i < (s->newest ? 2 : 1); i++) {
        char *full;
        if (i == 0 && s->now->path == NULL)
            continue;
        *head = i > 0;
        full = source_path(s, path, *head);
        object = H5Oopen(s->file.id, full, H5P_DEFAULT);
        free(full);
    }
    return object;
}

static hid_t open_through(hid_t file, const char *path)
{
    hid_t object = file < 0 ? H5I_INVALID_HID : H5Oopen(file, path, H5P_DEFAULT);

    if (object < 0)
        H5Eclear2(H5E_DEFAULT);
    return object;
}

/* ---- what is known of a path ---- */

static salvage_place *place_at(salvage *s, const char *path, bool make)
{
    uint64_t key = cow_checksum(path, strlen(path)), *known = cow_map_at(&s->place_of, key);

    if (known != NULL && strcmp(s->place[*known].path, path) == 0)
        return &s->place[*known];
    if (!make)
        return NULL;
    CLI_RESERVE(s->place, s->place_room, s->places, 1);
    s->place[s->places] = (salvage_place){cli_strdup(path), UINT64_MAX, UINT64_MAX, 0};
    cli_map_put(&s->place_of, key, s->places);
    return &s->place[s->places++];
}

static size_t number_of(const salvage *s, const salvage_version *version)
{
    return (size_t)(version - s->version);
}

/* Was an object at this path in the version before? Only then is what the new file has there known. */
static bool just_met(const salvage *s, const salvage_place *place)
{
    return place->source != UINT64_MAX && place->version + 1 == number_of(s, s->now);
}

static size_t add_object(salvage *s, const char *path, uint64_t address, H5O_type_t type, bool changed, bool kept,
                         uint64_t former_root)
{
    CLI_RESERVE(s->object, s->object_room, s->objects, 1);
    s->object[s->objects] = (salvage_object){cli_strdup(path), address, type, changed, kept, former_root};
    cli_map_put(&s->met, address, s->objects);
    return s->objects++;
}

/* ---- the new file ---- */

/* 1: an object has its place at PATH, with its address; 0: nothing, or a link that leads elsewhere: what it leads to is
 * another object, perhaps of another file. */
static int there(const salvage *s, const char *path, uint64_t *address)
{
    H5L_info2_t link;
    H5O_info2_t info;
    int found =
        (path[1] == '\0' || (H5Lget_info2(s->copy.to, path, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD)) &&
        H5Oget_info_by_name3(s->copy.to, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0;

    if (found)
        *address = cow_address(&info.token);
    H5Eclear2(H5E_DEFAULT);
    return found;
}

/* Renamed, or made anew since it cannot go on as it was: an object gets another copy, which references have to lead to. */
static void note_copy(salvage *s, uint64_t source, const char *path)
{
    uint64_t copy, *former = cow_map_at(&s->copy_of, source);

    if (s->temporary == NULL || !there(s, path, &copy))
        return;
    s->moved |= former != NULL && *former != copy;
    cli_map_put(&s->copy_of, source, copy);
}

/* For references: both ways of opening know the object under an address of their own. */
static int remember_copy(salvage *s, hid_t through, const H5O_token_t *token, const char *path, H5O_type_t type)
{
    cow_tree *copy = &s->copy;
    H5O_info2_t info = {.token = *token};
    int status = cow_tree_remember(copy, token, cli_strdup(path), type, H5I_INVALID_HID, false);

    if (status == 0 && through >= 0 && H5Oget_info3(through, &info, H5O_INFO_BASIC) >= 0 &&
        cow_map_put(&copy->places, cow_tree_address(&info.token), copy->objects - 1) < 0)
        status = cow_tree_no_memory(copy);
    note_copy(s, cow_tree_address(&info.token), path);
    H5Eclear2(H5E_DEFAULT);
    return status;
}

static int drop(salvage *s, const char *path)
{
    int status = 0;

    if (s->temporary != NULL && H5Lexists(s->copy.to, path, H5P_DEFAULT) > 0)
        status = H5Ldelete(s->copy.to, path, H5P_DEFAULT) < 0 ? -1 : 0;
    H5Eclear2(H5E_DEFAULT);
    return status;
}

/* ---- named types ---- */

static bool address_of(hid_t object, uint64_t *address)
{
    H5O_info2_t info;
    bool known = H5Oget_info3(object, &info, H5O_INFO_BASIC) >= 0;

    if (known)
        *address = cow_tree_address(&info.token);
    else
        H5Eclear2(H5E_DEFAULT);
    return known;
}

/* Before links are dropped: the types of the version before stay, so that datasets that have not changed have theirs. */
static void hold_types(salvage *s)
{
    uint64_t address;

    s->former_types = s->types;
    for (size_t i = 0; i < s->types; i++) {
        salvage_type *known = &s->type[i];
        if (s->temporary != NULL && there(s, known->path, &address) &&
            (known->id = H5Topen2(s->copy.to, known->path, H5P_DEFAULT)) >= 0)
            cli_map_put(&s->type_at, known->source, i);
    }
    H5Eclear2(H5E_DEFAULT);
}

/* Those of this version are the ones before from now on. */
static void let_types_go(salvage *s)
{
    for (size_t i = 0; i < s->former_types; i++) {
        cow_close(s->type[i].id);
        free(s->type[i].path);
    }
    s->types -= s->former_types;
    if (s->former_types > 0)
        memmove(s->type, s->type + s->former_types, s->types * sizeof *s->type);
    s->former_types = 0;
    cow_map_free(&s->type_at);
    s->type_at = (cow_map){0};
}

static void note_type(salvage *s, hid_t from, const char *path)
{
    uint64_t source;

    if (!address_of(from, &source))
        return;
    CLI_RESERVE(s->type, s->type_room, s->types, 1);
    s->type[s->types++] = (salvage_type){cli_strdup(path), source, H5I_INVALID_HID};
}

/* What the new file had for this type in the version before waits for its link, unless it has its place already. */
static void find_type(salvage *s, hid_t type)
{
    uint64_t source, *at, address;
    H5O_info2_t info;
    hid_t id;

    if (H5Tcommitted(type) <= 0 || !address_of(type, &source) || (at = cow_map_at(&s->type_at, source)) == NULL ||
        H5Oget_info3(type, &info, H5O_INFO_BASIC) < 0 || cow_tree_find(&s->copy, &info.token) != NULL)
        return;
    id = s->type[*at].id;
    if (H5Tequal(type, id) > 0 && address_of(id, &address) && cow_map_at(&s->taken, address) == NULL &&
        H5Iinc_ref(id) >= 0)
        cow_tree_remember(&s->copy, &info.token, NULL, H5O_TYPE_NAMED_DATATYPE, id, false);
}

/* A type of the source for the new file: a named one stays shared. */
static hid_t type_for(salvage *s, hid_t type)
{
    hid_t new;

    find_type(s, type);
    if ((new = cow_tree_type(&s->copy, type)) < 0)
        new = H5Tcopy(type);
    H5Eclear2(H5E_DEFAULT);
    return new;
}

static bool same_named(hid_t a, hid_t b)
{
    bool named = H5Tcommitted(a) > 0;
    uint64_t first, second;

    return named == (H5Tcommitted(b) > 0) &&
           (!named || (address_of(a, &first) && address_of(b, &second) && first == second));
}

/* Can the dataset that the new file has go on being this one? */
static bool same_kind(hid_t type, hid_t space, hid_t dcpl, hid_t to)
{
    hid_t own = H5Dget_type(to), own_space = H5Dget_space(to), own_dcpl = H5Dget_create_plist(to);
    hsize_t most[H5S_MAX_RANK], own_most[H5S_MAX_RANK], now[H5S_MAX_RANK], own_now[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, now, most);
    bool same = own >= 0 && own_space >= 0 && own_dcpl >= 0 && H5Tequal(type, own) > 0 && same_named(type, own) &&
                H5Pequal(dcpl, own_dcpl) > 0 && cow_tree_same_layout((const hid_t[2]){dcpl, own_dcpl}) &&
                H5Sget_simple_extent_type(space) == H5Sget_simple_extent_type(own_space) &&
                H5Sget_simple_extent_dims(own_space, own_now, own_most) == rank && rank >= 0;

    for (int d = 0; same && d < rank; d++)
        same = most[d] == own_most[d];
    if (same && rank > 0 && memcmp(now, own_now, (size_t)rank * sizeof *now) != 0)
        same = H5Pget_layout(dcpl) == H5D_CHUNKED && H5Dset_extent(to, now) >= 0;
    cow_close(own, own_space, own_dcpl);
    H5Eclear2(H5E_DEFAULT);
    return same;
}

/* ---- making objects ---- */

/* Can the dataset that the new file has at PATH be written over? Only chunks can be told from those of the version before. What
 * HDF5 keeps itself is small, and is written as a whole: where that might fail, it goes into a new dataset. */
static bool goes_on(salvage *s, hid_t native, hid_t dcpl)
{
    uint64_t ignored;

    return salvage_in_chunks(s, native) || (s->whole && cli_source(native, &ignored, NULL) == CLI_NATIVE &&
                                            H5Pget_layout(dcpl) != H5D_VIRTUAL && H5Pget_external_count(dcpl) == 0);
}

/* 0; 1: it cannot be read, WHY; -1: the new file cannot be written, WHY. */
static int make_dataset(salvage *s, hid_t through, hid_t native, const char *path, hid_t lcpl, bool *kept, char *why,
                        size_t size)
{
    hid_t from = through >= 0 ? through : native;
    hid_t type = H5Dget_type(from), space = H5Dget_space(from), new = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    hid_t dcpl = through >= 0 ? H5Dget_create_plist(from) : salvage_dcpl(s, native);
    uint64_t address;
    int status = 1;

    if (type < 0 || space < 0 || dcpl < 0 || (s->temporary != NULL && (new = type_for(s, type)) < 0)) {
        cli_reason(why, size);
        goto done;
    }
    status = 0;
    if (s->temporary == NULL)
        goto done;
    if (goes_on(s, native, dcpl) && there(s, path, &address) && cow_map_at(&s->taken, address) == NULL &&
        (dataset = H5Dopen2(s->copy.to, path, H5P_DEFAULT)) >= 0 && same_kind(new, space, dcpl, dataset)) {
        *kept = true;
        goto done;
    }
    cow_close(dataset);
    dataset = H5I_INVALID_HID;
    H5Eclear2(H5E_DEFAULT);
    if (drop(s, path) < 0 || (dataset = cow_tree_dataset(s->copy.to, path, new, space, lcpl, dcpl)) < 0) {
        cli_reason(why, size);
        status = -1;
    }
done:
    cow_close(dataset, new, dcpl, space, type);
    return status;
}

static int make_type(salvage *s, hid_t from, const char *path, hid_t lcpl, char *why, size_t size)
{
    hid_t type = s->temporary == NULL ? H5Tcopy(from) : type_for(s, from);
    uint64_t own, address;
    int status = type < 0 ? 1 : 0;

    if (status == 0 && s->temporary != NULL && H5Tcommitted(type) <= 0)
        status = drop(s, path) < 0 || H5Tcommit2(s->copy.to, path, type, lcpl, H5P_DEFAULT, H5P_DEFAULT) < 0 ? -1 : 0;
    else if (status == 0 && s->temporary != NULL && address_of(type, &own) &&
             (!there(s, path, &address) || address != own))
        status = drop(s, path) < 0 || H5Olink(type, s->copy.to, path, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
    if (status != 0)
        cli_reason(why, size);
    cow_close(type);
    return status;
}

/* Was the group at PATH of the new file made with these properties? */
static bool made_with(const salvage *s, const char *path, hid_t gcpl)
{
    hid_t group = H5Gopen2(s->copy.to, path, H5P_DEFAULT), own = H5Pcreate(H5P_GROUP_CREATE);
    bool same = group >= 0 && cow_tree_group_settings(group, own) == 0 && H5Pequal(gcpl, own) > 0;

    cow_close(own, group);
    H5Eclear2(H5E_DEFAULT);
    return same;
}

static int make_group(salvage *s, hid_t from, const char *path, hid_t lcpl, bool *kept, char *why, size_t size)
{
    hid_t gcpl, group;
    H5O_info2_t info;
    uint64_t address;
    int status = 0;

    if (s->temporary == NULL)
        return 0;
    gcpl = H5Pcreate(H5P_GROUP_CREATE);
    if (cow_tree_group_settings(from, gcpl) < 0) { /* not half of them */
        H5Eclear2(H5E_DEFAULT);
        H5Pclose(gcpl);
        gcpl = H5Pcreate(H5P_GROUP_CREATE);
    }
    *kept = there(s, path, &address) && cow_map_at(&s->taken, address) == NULL &&
            H5Oget_info_by_name3(s->copy.to, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
            info.type == H5O_TYPE_GROUP && made_with(s, path, gcpl);
    if (*kept)
        goto done;
    if (drop(s, path) < 0 || (group = H5Gcreate2(s->copy.to, path, lcpl, gcpl, H5P_DEFAULT)) < 0) {
        cli_reason(why, size);
        status = -1;
    } else
        H5Gclose(group);
done:
    H5Pclose(gcpl);
    return status;
}

/* ---- links ---- */

typedef struct link_list {
    struct listed_link {
        char *name;
        H5L_info2_t info;
    } *link;
    size_t count, room;
} link_list;

static herr_t note_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    link_list *l = context;

    (void)group;
    CLI_RESERVE(l->link, l->room, l->count, 1);
    l->link[l->count].name = cli_strdup(name);
    l->link[l->count++].info = *info;
    return 0;
}

static void free_links(link_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->link[i].name);
    free(l->link);
    *l = (link_list){0};
}

static int by_creation(const void *a, const void *b)
{
    const H5L_info2_t *x = &((const struct listed_link *)a)->info, *y = &((const struct listed_link *)b)->info;

    return (x->corder > y->corder) - (x->corder < y->corder);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct listed_link *)a)->name, ((const struct listed_link *)b)->name);
}

/* In the order of their creation where that is recorded. -1: not all of them, WHY. */
static int list_links(hid_t group, link_list *l, char *why, size_t size)
{
    const herr_t status = salvage_links(group, note_link, l);

    if (status < 0)
        cli_reason(why, size);
    if (l->count > 0)
        qsort(l->link, l->count, sizeof *l->link, l->link[0].info.corder_valid ? by_creation : by_name);
    return status < 0 ? -1 : 0;
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

/* After the I-th of many steps at an object: work goes on. */
static void step(salvage *s, size_t i, const char *path)
{
    if (i % STEPS == STEPS - 1)
        salvage_at(s, path);
}

/* Links of the new file's group that the version does not have. */
static int drop_others(salvage *s, const char *path, const link_list *l)
{
    link_list own = {0};
    hid_t group = H5Gopen2(s->copy.to, path, H5P_DEFAULT);
    const char **wanted = cli_alloc(l->count, sizeof *wanted);
    char why[512];
    int status = group < 0 || list_links(group, &own, why, sizeof why) < 0 ? -1 : 0;

    for (size_t i = 0; i < l->count; i++)
        wanted[i] = l->link[i].name;
    if (l->count > 0)
        qsort(wanted, l->count, sizeof *wanted, by_text);
    for (size_t i = 0; status == 0 && i < own.count; i++) {
        const char *name = own.link[i].name;
        step(s, i, path);
        if ((l->count == 0 || bsearch(&name, wanted, l->count, sizeof *wanted, by_text) == NULL) &&
            H5Ldelete(group, name, H5P_DEFAULT) < 0)
            status = -1;
    }
    free(wanted);
    free_links(&own);
    if (group >= 0)
        H5Gclose(group);
    return status;
}

/* A soft, external or user-defined link. */
static int put_valued(salvage *s, hid_t group, const char *name, const H5L_info2_t *info, const char *path, bool head,
                      hid_t lcpl)
{
    char *value = cow_tree_link_value(&s->copy, group, name, info), *own = NULL;
    const char *text = value, *file, *object;
    size_t prefix = head || s->now->path == NULL ? 0 : strlen(s->now->path);
    H5L_info2_t there_is, now; /* the size of a user-defined link is known only now */
    unsigned flags;
    int status = -1;

    if (value == NULL || H5Lget_info2(group, name, &now, H5P_DEFAULT) < 0) {
        char why[512];
        cli_reason(why, sizeof why);
        salvage_lost(s, path, NULL, 0, why);
        status = drop(s, path);
        goto done;
    }
    s->got = true;
    /* absolute ones lead into the version that they stand in */
    if (info->type == H5L_TYPE_SOFT && prefix > 0 && strncmp(text, s->now->path, prefix) == 0 &&
        (text[prefix] == '/' || text[prefix] == '\0'))
        text = text[prefix] == '\0' ? "/" : text + prefix;
    status = 0;
    if (s->temporary == NULL)
        goto done;
    if (H5Lexists(s->copy.to, path, H5P_DEFAULT) > 0 && H5Lget_info2(s->copy.to, path, &there_is, H5P_DEFAULT) >= 0 &&
        there_is.type == info->type) {
        own = cli_alloc(there_is.u.val_size + 1, 1);
        if (H5Lget_val(s->copy.to, path, own, there_is.u.val_size, H5P_DEFAULT) >= 0 &&
            (info->type == H5L_TYPE_SOFT
                 ? strcmp(own, text) == 0
                 : there_is.u.val_size == now.u.val_size && memcmp(own, value, now.u.val_size) == 0))
            goto done;
    }
    H5Eclear2(H5E_DEFAULT);
    status = -1;
    if (drop(s, path) < 0)
        goto done;
    if (info->type == H5L_TYPE_SOFT)
        status = H5Lcreate_soft(text, s->copy.to, path, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
    else if (info->type == H5L_TYPE_EXTERNAL)
        status = H5Lunpack_elink_val(value, now.u.val_size, &flags, &file, &object) < 0 ||
                         H5Lcreate_external(file, object, s->copy.to, path, lcpl, H5P_DEFAULT) < 0
                     ? -1
                     : 0;
    else
        status = H5Lcreate_ud(s->copy.to, path, info->type, value, now.u.val_size, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
done:
    free(own);
    free(value);
    return status;
}

/* The object has a place already: a second link to it. */
static int link_again(salvage *s, const char *known, const char *path, hid_t lcpl)
{
    uint64_t first, second;

    if (s->temporary == NULL)
        return 0;
    if (!there(s, known, &first))
        return drop(s, path); /* lost, and told */
    if (there(s, path, &second) && first == second)
        return 0;
    return drop(s, path) < 0 || H5Lcreate_hard(s->copy.to, known, s->copy.to, path, lcpl, H5P_DEFAULT) < 0 ? -1 : 0;
}

static void note_kept(salvage *s, const char *path)
{
    uint64_t address;

    if (s->temporary != NULL && there(s, path, &address))
        cli_map_put(&s->taken, address, 1);
}

static int put_hard(salvage *s, const H5L_info2_t *link, const char *path, bool head, hid_t lcpl)
{
    uint64_t address = cow_address(&link->u.token), *known = cow_map_at(&s->met, address), there_is, root = UINT64_MAX;
    bool kept = false, in_head = head, changed = true;
    hid_t native = H5I_INVALID_HID, through = H5I_INVALID_HID;
    salvage_place *place;
    H5O_info2_t info;
    char why[1024];
    int status = 0;

    if (known != NULL)
        return link_again(s, s->object[*known].path, path, lcpl);
    if (salvage_at(s, path)) {
        salvage_lost(s, path, NULL, 0, "the HDF5 library crashes on it");
        return drop(s, path);
    }
    if ((native = open_native(s, path, &in_head)) < 0 || H5Oget_info3(native, &info, H5O_INFO_BASIC) < 0) {
        cli_reason(why, sizeof why);
        salvage_forget(s, path);
        salvage_lost(s, path, NULL, 0, why);
        status = drop(s, path);
        goto done;
    }
    if (!head && !in_head) /* in the head instead of the version the connector shows other objects */
        through = open_through(s->through, path);
    place = place_at(s, path, true);
    if (info.type == H5O_TYPE_DATASET)
        root = salvage_root(s, native);
    if (just_met(s, place) && place->source == address &&
        (s->temporary == NULL || (there(s, path, &there_is) && cow_map_at(&s->taken, there_is) == NULL)))
        changed = false;
    kept = !changed;
    if (!changed)
        salvage_same(s, path);
    else {
        salvage_forget(s, path);
        switch (info.type) {
        case H5O_TYPE_GROUP:
            status = make_group(s, native, path, lcpl, &kept, why, sizeof why);
            break;
        case H5O_TYPE_DATASET:
            status = make_dataset(s, through, native, path, lcpl, &kept, why, sizeof why);
            break;
        case H5O_TYPE_NAMED_DATATYPE:
            status = make_type(s, through >= 0 ? through : native, path, lcpl, why, sizeof why);
            break;
        case H5O_TYPE_MAP:
        case H5O_TYPE_UNKNOWN:
        case H5O_TYPE_NTYPES:
            snprintf(why, sizeof why, "it is of a kind that this program does not know");
            status = 1;
            break;
        }
    }
    if (status > 0) {
        salvage_lost(s, path, NULL, 0, why);
        place->source = UINT64_MAX;
        status = drop(s, path);
        goto done;
    }
    if (status < 0) {
        snprintf(s->copy.why, sizeof s->copy.why, "'%.200s' cannot be written: %.800s", path, why);
        goto done;
    }
    if (info.type == H5O_TYPE_NAMED_DATATYPE)
        note_type(s, through >= 0 ? through : native, path);
    note_kept(s, path);
    if ((status = remember_copy(s, through, &info.token, path, info.type)) < 0)
        goto done;
    add_object(s, path, address, info.type, changed, kept, kept && just_met(s, place) ? place->root : UINT64_MAX);
    place->source = address;
    place->root = root;
    place->version = number_of(s, s->now);
done:
    cow_close(through, native);
    return status;
}

/* A link goes behind all others, with the encoding of its name. */
static int put_last(hid_t group, const char *name, hid_t lcpl)
{
    char away[64];
    unsigned number = 0;

    do
        snprintf(away, sizeof away, "h5cow recover %u", number++);
    while (H5Lexists(group, away, H5P_DEFAULT) > 0);
    return H5Lmove(group, name, group, away, lcpl, H5P_DEFAULT) < 0 ||
                   H5Lmove(group, away, group, name, lcpl, H5P_DEFAULT) < 0
               ? -1
               : 0;
}

/* Links of the new file's group that stayed, as the head marks their names; in earlier versions they may have been another's. */
static int put_marks(salvage *s, const char *path, const link_list *l, hid_t lcpl)
{
    hid_t group = H5Gopen2(s->copy.to, path, H5P_DEFAULT);
    H5L_info2_t info;
    int status = group < 0 ? -1 : 0;

    for (size_t i = 0; status == 0 && i < l->count; i++) {
        const struct listed_link *link = &l->link[i];
        step(s, i, path);
        if (H5Lexists(group, link->name, H5P_DEFAULT) <= 0) /* lost, and told */
            continue;
        if (H5Lget_info2(group, link->name, &info, H5P_DEFAULT) < 0)
            status = -1;
        else if (info.cset != link->info.cset) {
            H5Pset_char_encoding(lcpl, link->info.cset);
            status = put_last(group, link->name, lcpl);
        }
    }
    cow_close(group);
    return status;
}

/* Links that stayed stand before those that came, in a group that counts them in the order of their creation. */
static int put_in_order(salvage *s, const char *path, const link_list *l, hid_t lcpl)
{
    link_list own = {0};
    hid_t group = H5Gopen2(s->copy.to, path, H5P_DEFAULT);
    char why[512];
    bool good = true; /* so far */
    int status = group < 0 || list_links(group, &own, why, sizeof why) < 0 ? -1 : 0;

    for (size_t i = 0, k = 0; status == 0 && own.count > 0 && own.link[0].info.corder_valid && i < l->count; i++) {
        const char *name = l->link[i].name;
        step(s, i, path);
        if (good && k < own.count && strcmp(own.link[k].name, name) == 0) {
            k++;
            continue;
        }
        if (H5Lexists(group, name, H5P_DEFAULT) <= 0)
            continue; /* lost, and told */
        good = false;
        H5Pset_char_encoding(lcpl, l->link[i].info.cset);
        status = put_last(group, name, lcpl);
    }
    H5Eclear2(H5E_DEFAULT);
    free_links(&own);
    if (group >= 0)
        H5Gclose(group);
    return status;
}

/* In a version all names are marked as ASCII (docs/data-model.md): the marks that the head has are those of the new one's. */
static void take_marks(const salvage *s, const char *path, link_list *l)
{
    hid_t group = H5Gopen2(s->file.id, path, H5P_DEFAULT);
    H5L_info2_t info;

    for (size_t i = 0; group >= 0 && i < l->count; i++)
        if (H5Lexists(group, l->link[i].name, H5P_DEFAULT) > 0 &&
            H5Lget_info2(group, l->link[i].name, &info, H5P_DEFAULT) >= 0)
            l->link[i].info.cset = info.cset;
    cow_close(group);
    H5Eclear2(H5E_DEFAULT);
}

static int put_group(salvage *s, const char *path, bool kept)
{
    bool head = false;
    hid_t group = open_native(s, path, &head), lcpl = H5Pcreate(H5P_LINK_CREATE);
    link_list links = {0};
    char why[1024];
    int status = 0;

    if (group < 0 || list_links(group, &links, why, sizeof why) < 0) {
        json_object *what = json_object_new_object();
        if (group < 0)
            cli_reason(why, sizeof why);
        json_object_object_add(what, "links", json_object_new_boolean(true));
        salvage_lost(s, path, what, 0, why);
    }
    if (head && path[1] == '\0') /* the history is no part of the head */
        for (size_t i = 0; i < links.count; i++)
            if (strcmp(links.link[i].name, COW_GROUP) == 0) {
                free(links.link[i].name);
                memmove(links.link + i, links.link + i + 1, (links.count - i - 1) * sizeof *links.link);
                links.count--;
                break;
            }
    if (s->whole && !head)
        take_marks(s, path, &links);
    if (s->temporary != NULL && drop_others(s, path, &links) < 0)
        status = -1;
    for (size_t i = 0; status == 0 && i < links.count; i++) {
        char *child = cli_child_path(path, links.link[i].name);
        const H5L_info2_t *info = &links.link[i].info;
        step(s, i, path);
        H5Pset_char_encoding(lcpl, info->cset);
        status = info->type == H5L_TYPE_HARD ? put_hard(s, info, child, head, lcpl)
                                             : put_valued(s, group, links.link[i].name, info, child, head, lcpl);
        free(child);
    }
    if (status == 0 && s->temporary != NULL && s->whole && s->newest && kept)
        status = put_marks(s, path, &links, lcpl);
    if (status == 0 && s->temporary != NULL && kept)
        status = put_in_order(s, path, &links, lcpl);
    if (status < 0 && s->copy.why[0] == '\0')
        cow_tree_failed(&s->copy, "the group", path);
    free_links(&links);
    cow_close(lcpl, group);
    return status;
}

/* ---- attributes ---- */

static herr_t note_name(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    link_list *l = context;

    (void)object;
    (void)info;
    CLI_RESERVE(l->link, l->room, l->count, 1);
    l->link[l->count++].name = cli_strdup(name);
    return 0;
}

/* One attribute of an object that only is looked at: its value can be read. */
static int read_attribute(hid_t from, const char *name)
{
    hid_t attribute = H5Aopen(from, name, H5P_DEFAULT), type = H5I_INVALID_HID, space = H5I_INVALID_HID,
          memory = H5I_INVALID_HID;
    hssize_t count = 0;
    void *value = NULL;
    int status = -1;

    if (attribute >= 0 && (type = H5Aget_type(attribute)) >= 0 && (space = H5Aget_space(attribute)) >= 0 &&
        (memory = H5Tcopy(type)) >= 0) {
        count = H5Sget_simple_extent_npoints(space);
        value = cli_alloc(count > 0 ? (size_t)count : 1, H5Tget_size(memory));
        status = count > 0 && H5Aread(attribute, memory, value) < 0 ? -1 : 0;
    }
    hid_t stack = cow_errors_take(); /* what follows would clear it, and it says whether a checksum differs */
    if (status == 0 && count > 0)
        cow_reclaim(memory, space, H5P_DEFAULT, value);
    free(value);
    cow_close(memory, space, type, attribute);
    cow_errors_give_back(stack);
    return status;
}

static void find_attribute_type(salvage *s, hid_t from, const char *name)
{
    hid_t attribute = s->former_types == 0 ? H5I_INVALID_HID : H5Aopen(from, name, H5P_DEFAULT),
          type = attribute < 0 ? H5I_INVALID_HID : H5Aget_type(attribute);

    if (type >= 0)
        find_type(s, type);
    cow_close(type, attribute);
}

static void lost_attribute(salvage *s, const char *path, const char *name, const char *why)
{
    json_object *what = json_object_new_object();

    json_object_object_add(what, "attribute", name == NULL ? NULL : cli_json_text(name));
    salvage_lost(s, path, what, 0, why);
}

/* FROM is through the connector, which compares checksums, and so is HEAD, the same object once more, or negative. Where no
 * checksum can be compared, since tables are damaged, values are taken as they are NATIVELY. */
static int put_attributes(salvage *s, hid_t from, hid_t native, hid_t head, hid_t to, const char *path)
{
    link_list names = {0}, own = {0};
    char why[1024];
    int status = 0;

    if (H5Aiterate2(from, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, note_name, &names) < 0) {
        H5Eclear2(H5E_DEFAULT);
        free_links(&names);
        if (H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, NULL, note_name, &names) < 0) {
            cli_reason(why, sizeof why);
            lost_attribute(s, path, NULL, why);
        }
    }
    if (to >= 0 && H5Aiterate2(to, H5_INDEX_NAME, H5_ITER_INC, NULL, note_name, &own) >= 0)
        for (size_t i = 0; status == 0 && i < own.count; i++)
            status = H5Adelete(to, own.link[i].name) < 0 ? -1 : 0;
    for (size_t i = 0; status == 0 && i < names.count; i++) {
        const char *name = names.link[i].name;
        hid_t source = from;
        step(s, i, path);

        if (read_attribute(from, name) < 0) {
            cli_reason(why, sizeof why);
            source = head >= 0 && read_attribute(head, name) == 0                 ? head
                     : !salvage_differs(why) && read_attribute(native, name) == 0 ? native
                                                                                  : H5I_INVALID_HID;
            H5Eclear2(H5E_DEFAULT);
        }
        s->got |= source >= 0;
        if (source < 0)
            lost_attribute(s, path, name, why);
        else if (to >= 0) {
            find_attribute_type(s, source, name);
            status = cow_tree_copy_attribute(&s->copy, source, to, path, name);
        }
    }
    if (status < 0 && s->copy.why[0] == '\0')
        cow_tree_failed(&s->copy, "the attributes of", path);
    free_links(&names);
    free_links(&own);
    return status;
}

static void put_comment(hid_t from, hid_t to)
{
    ssize_t length = H5Oget_comment(from, NULL, 0);
    char *comment = cli_alloc(length < 0 ? 1 : (size_t)length + 1, 1);

    if (to >= 0 &&
        (length > 0 ? H5Oget_comment(from, comment, (size_t)length + 1) >= 0 : H5Oget_comment(to, NULL, 0) > 0))
        H5Oset_comment(to, comment);
    free(comment);
}

/* The object of the head, through the connector, where it is what the version at hand has of it: its newest snapshot. */
static hid_t open_head(const salvage *s, const salvage_object *object)
{
    const salvage_version *newest = &s->version[s->versions - 1];
    H5O_info2_t info;
    bool same;
    char *path;

    if (s->head < 0 || newest->path == NULL)
        return H5I_INVALID_HID;
    path = cli_format("%s%s", newest->path, object->path[1] == '\0' ? "" : object->path);
    same = H5Oget_info_by_name3(s->file.id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
           cow_address(&info.token) == object->address;
    H5Eclear2(H5E_DEFAULT);
    free(path);
    return same ? open_through(s->head, object->path) : H5I_INVALID_HID;
}

/* Attributes and elements of an object that has its place. */
static int fill_object(salvage *s, const salvage_object *object)
{
    bool head = false;
    hid_t native = open_native(s, object->path, &head);
    hid_t through = head ? H5I_INVALID_HID : open_through(s->through, object->path);
    hid_t again = head ? H5I_INVALID_HID : open_head(s, object);
    hid_t to = s->temporary == NULL ? H5I_INVALID_HID : H5Oopen(s->copy.to, object->path, H5P_DEFAULT);
    int status = 0;

    if (native < 0 || (s->temporary != NULL && to < 0)) {
        status = s->temporary == NULL ? 0 : cow_tree_failed(&s->copy, "the object", object->path);
        goto done;
    }
    if (salvage_at(s, object->path)) {
        salvage_lost(s, object->path, NULL, 0, "the HDF5 library crashes on it");
        goto done;
    }
    if (object->type == H5O_TYPE_DATASET)
        status = salvage_elements(s, object, through, native, again, to);
    if (status == 0)
        status = put_attributes(s, through >= 0 ? through : native, native, again, to, object->path);
    if (status == 0)
        put_comment(through >= 0 ? through : native, to);
    H5Eclear2(H5E_DEFAULT);
done:
    cow_close(to, again, through, native);
    return status;
}

static bool type_refers(hid_t type)
{
    bool refers = type >= 0 && cow_type_has(type, COW_PART_REFERENCES) != 0;

    cow_close(type);
    return refers;
}

static herr_t attribute_refers(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
    bool refers = attribute >= 0 && type_refers(H5Aget_type(attribute));

    (void)info;
    (void)context;
    cow_close(attribute);
    return refers; /* 1 ends the search */
}

/* Are there references in its copy? */
static bool refers(const salvage *s, const salvage_object *object)
{
    hid_t copy = H5Oopen(s->copy.to, object->path, H5P_DEFAULT);
    bool found = copy >= 0 && ((object->type == H5O_TYPE_DATASET && type_refers(H5Dget_type(copy))) ||
                               H5Aiterate2(copy, H5_INDEX_NAME, H5_ITER_INC, NULL, attribute_refers, NULL) > 0);

    cow_close(copy);
    H5Eclear2(H5E_DEFAULT);
    return found;
}

/* ---- a version ---- */

static void clear_version(salvage *s)
{
    for (size_t i = 0; i < s->objects; i++)
        free(s->object[i].path);
    s->objects = 0;
    cow_map_free(&s->met);
    cow_map_free(&s->taken);
    s->met = s->taken = (cow_map){0};
    s->moved = s->got = false;
    cow_tree_free(&s->copy);
}

int salvage_tree(salvage *s)
{
    bool head = false;
    hid_t root = open_native(s, "/", &head), through;
    H5O_info2_t info;
    char why[1024];
    int status = 0;

    clear_version(s);
    bool told = root < 0 || H5Oget_info3(root, &info, H5O_INFO_BASIC) < 0;
    if (told || info.type != H5O_TYPE_GROUP) {
        json_object *what = json_object_new_object();
        if (s->now->path == NULL)
            snprintf(why, sizeof why, "nothing in the file leads to it");
        else if (told)
            cli_reason(why, sizeof why);
        else
            snprintf(why, sizeof why, "it begins with what is no group");
        json_object_object_add(what, "version", json_object_new_boolean(true));
        salvage_forget(s, "/");
        salvage_lost(s, "/", what, 0, why);
        if (root >= 0)
            H5Oclose(root);
        return 1;
    }
    hold_types(s);
    salvage_forget(s, "/");
    through = open_through(s->through, "/");
    add_object(s, "/", cow_address(&info.token), H5O_TYPE_GROUP, true, true, UINT64_MAX);
    note_kept(s, "/");
    status = remember_copy(s, through, &info.token, "/", H5O_TYPE_GROUP);
    if (through >= 0)
        H5Oclose(through);
    H5Oclose(root);
    for (size_t i = 0; status == 0 && i < s->objects; i++)
        if (s->object[i].type == H5O_TYPE_GROUP) {
            char *path = cli_strdup(s->object[i].path); /* the list may move */
            if (salvage_at(s, path))
                salvage_lost(s, path, NULL, 0, "the HDF5 library crashes on it");
            else
                status = put_group(s, path, s->object[i].kept);
            free(path);
        }
    for (size_t i = 0; status == 0 && i < s->objects; i++) {
        step(s, i, s->object[i].path);
        if (s->object[i].changed || (s->moved && refers(s, &s->object[i])))
            status = fill_object(s, &s->object[i]);
    }
    let_types_go(s);
    cow_tree_free(&s->copy); /* types that it holds would keep the new file open */
    return status;
}
