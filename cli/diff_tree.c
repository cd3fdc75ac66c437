/* Going through two trees side by side. See diff.h.
 *
 * Groups are listed natively: in one file the same address means the same snapshot, and nothing below it differs. Objects
 * that do not have it are compared as programs see them. Without recursion: a strange file may be very deep.
 */
#include "base/digest.h"
#include "base/error.h"
#include "base/ids.h"
#include "diff.h"
#include "object.h"
#include "values.h"
#include "native/datatype.h"

#include <stdlib.h>
#include <string.h>

/* One of the two may not be there. */
typedef struct meeting {
    char *path;
    bool there[2];
    uint64_t address[2];
    H5O_type_t type[2];
} meeting;

typedef struct walk {
    cli_diff *diff;
    meeting *waiting;
    size_t first, count, room;
} walk;

/* ---- what is told ---- */

/* Takes ITEM, which has more than a path and a change, or not. */
static void tell(cli_diff *diff, json_object *item)
{
    json_object *trouble;

    if (json_object_object_length(item) == 2) {
        json_object_put(item);
        return;
    }
    if (!json_object_object_get_ex(item, "trouble", &trouble) || json_object_object_length(item) > 3)
        diff->differences++;
    diff->tell(diff, item);
}

/* ---- objects ---- */

static hid_t open_object(const cli_state *state, const char *path)
{
    return H5Oopen(state->through, path, H5P_DEFAULT);
}

/* An object that only one of the states has. */
static void tell_alone(cli_diff *diff, const meeting *m)
{
    bool after = m->there[1];
    json_object *item = cli_diff_item(m->path, after ? "added" : "removed");
    hid_t object = open_object(after ? diff->after : diff->before, m->path);

    if (object < 0)
        cli_diff_trouble(diff, item, "it cannot be opened");
    else
        json_object_object_add(item, after ? "after" : "before", cli_diff_text(cli_object_name(object)));
    if (object >= 0)
        H5Oclose(object);
    tell(diff, item);
}

/* The value of an attribute as text; NULL: it cannot be read. */
static char *attribute_text(hid_t file, hid_t attribute)
{
    hid_t type = H5Aget_type(attribute), space = H5Aget_space(attribute);
    hid_t memory = type < 0 ? type : H5Tcopy(type);
    hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
    void *value = NULL;
    char *text = NULL;

    if (memory >= 0 && n >= 0) {
        value = cli_alloc((size_t)n, H5Tget_size(memory));
        if (n > 0 && H5Aread(attribute, memory, value) < 0)
            cow_error_native("its value");
        else {
            text = cli_values_text(file, memory, (uint64_t)n, value);
            if (n > 0)
                cow_reclaim(memory, space, H5P_DEFAULT, value);
        }
    }
    free(value);
    cow_close(memory, space, type);
    return text;
}

static void tell_attribute(cli_diff *diff, json_object *item, const char *name, const hid_t attribute[2])
{
    static const char *const when[] = {"before", "after"};
    json_object *told = json_object_new_object();

    json_object_object_add(told, "name", cli_json_text(name));
    json_object_object_add(told, "change",
                           cli_json_text(attribute[0] < 0   ? "added"
                                         : attribute[1] < 0 ? "removed"
                                                            : "changed"));
    for (int i = 0; i < 2; i++)
        if (attribute[i] >= 0) {
            char *text = attribute_text(i == 0 ? diff->before->through : diff->after->through, attribute[i]);
            if (text == NULL)
                cli_diff_trouble(diff, item, "an attribute cannot be read");
            json_object_object_add(told, when[i], text == NULL ? NULL : cli_diff_text(text));
        }
    json_object_array_add(cli_diff_list(item, "attributes"), told);
}

/* Of two lists in the order of their names, the next name: which of them have it. */
static const char *next_name(const cow_tree_names names[2], const size_t at[2], bool has[2])
{
    const char *name[2] = {at[0] < names[0].count ? names[0].entry[at[0]].name : NULL,
                           at[1] < names[1].count ? names[1].entry[at[1]].name : NULL};
    int order = name[0] == NULL ? 1 : name[1] == NULL ? -1 : strcmp(name[0], name[1]);

    has[0] = name[0] != NULL && order <= 0;
    has[1] = name[1] != NULL && order >= 0;
    return has[0] ? name[0] : name[1];
}

static void compare_attributes(cli_diff *diff, json_object *item, const hid_t object[2])
{
    cow_tree_names names[2] = {{0}};
    size_t at[2] = {0, 0};
    const char *name;
    bool has[2];

    for (int i = 0; i < 2; i++) {
        if (cli_object_attributes(object[i], &names[i]) < 0) {
            cli_diff_trouble(diff, item, "attributes cannot be listed");
            goto done;
        }
    }
    for (; !cli_diff_enough_of(diff, item) && (name = next_name(names, at, has)) != NULL;
         at[0] += has[0], at[1] += has[1]) {
        hid_t attribute[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
        int differ = 0;
        for (int i = 0; differ >= 0 && i < 2; i++)
            if (has[i] && (attribute[i] = H5Aopen(object[i], name, H5P_DEFAULT)) < 0)
                differ = -1;
        if (differ == 0)
            differ = has[0] && has[1] ? cli_diff_attributes(diff, attribute) : 1;
        if (differ < 0)
            cli_diff_trouble(diff, item, "an attribute cannot be read");
        else if (differ > 0)
            tell_attribute(diff, item, name, attribute);
        cow_close(attribute[1], attribute[0]);
    }
done:
    cow_tree_names_free(&names[0]);
    cow_tree_names_free(&names[1]);
}

static void compare_comments(cli_diff *diff, json_object *item, const hid_t object[2])
{
    char *text[2] = {NULL, NULL};

    for (int i = 0; i < 2; i++)
        if ((text[i] = cli_object_comment(object[i])) == NULL) {
            cli_diff_trouble(diff, item, "its comment cannot be read");
            goto done;
        }
    if (strcmp(text[0], text[1]) != 0)
        cli_diff_both(item, "comment", cli_json_text(text[0]), cli_json_text(text[1]));
done:
    free(text[0]);
    free(text[1]);
}

/* ROOT[i]: KEPT[i] filled, or NULL. */
static int roots(const cli_diff *diff, const meeting *m, cow_root kept[2], const cow_root *root[2])
{
    int found = 0;

    for (int i = 0; found >= 0 && i < 2; i++) {
        const cli_state *state = i == 0 ? diff->before : diff->after;
        hid_t dataset = H5Oopen_by_token(state->file.id, cow_token(m->address[i]));
        found = dataset < 0 ? -1 : cli_state_root(state, dataset, &kept[i]);
        root[i] = found > 0 ? &kept[i] : NULL;
        if (dataset >= 0)
            H5Dclose(dataset);
    }
    return found < 0 ? -1 : 0;
}

/* Two objects of one kind, but for the links of groups. */
static void compare_objects(cli_diff *diff, const meeting *m)
{
    json_object *item = cli_diff_item(m->path, "changed");
    hid_t object[2] = {open_object(diff->before, m->path), H5I_INVALID_HID};
    const cow_root *root[2];
    cow_root kept[2];

    if (object[0] < 0 || (object[1] = open_object(diff->after, m->path)) < 0)
        cli_diff_trouble(diff, item, "it cannot be opened");
    else {
        if (m->type[0] == H5O_TYPE_DATASET) {
            if (roots(diff, m, kept, root) < 0)
                cli_diff_trouble(diff, item, "what is stored of it cannot be found");
            else
                cli_diff_datasets(diff, item, object, root);
        } else if (m->type[0] == H5O_TYPE_NAMED_DATATYPE && !cow_tree_same_type(object[0], object[1]))
            cli_diff_both(item, "type", cli_diff_text(cli_type_name(object[0])),
                          cli_diff_text(cli_type_name(object[1])));
        compare_attributes(diff, item, object);
        compare_comments(diff, item, object);
    }
    for (int i = 0; i < 2; i++)
        if (object[i] >= 0)
            H5Oclose(object[i]);
    H5Eclear2(H5E_DEFAULT);
    tell(diff, item);
}

/* ---- links ---- */

/* Takes over PATH. */
static void wait_for(walk *w, meeting m)
{
    CLI_RESERVE(w->waiting, w->room, w->count, 1);
    w->waiting[w->count++] = m;
}

static json_object *link_json(const cli_state *state, hid_t group, const cow_tree_entry *link)
{
    return link->link.type == H5L_TYPE_HARD ? cli_json_text("object")
                                            : cli_diff_text(cli_object_link(group, link, state->root));
}

static void tell_links(cli_diff *diff, const char *path, const hid_t group[2], const cow_tree_entry *const link[2])
{
    json_object *told[2] = {NULL, NULL}, *item;

    for (int i = 0; i < 2; i++)
        if (link[i] != NULL)
            told[i] = link_json(i == 0 ? diff->before : diff->after, group[i], link[i]);
    if (told[0] != NULL && told[1] != NULL && json_object_equal(told[0], told[1])) {
        json_object_put(told[0]);
        json_object_put(told[1]);
        return;
    }
    item = cli_diff_item(path, link[0] == NULL ? "added" : link[1] == NULL ? "removed" : "replaced");
    if (told[0] != NULL)
        json_object_object_add(item, "before", told[0]);
    if (told[1] != NULL)
        json_object_object_add(item, "after", told[1]);
    tell(diff, item);
}

static bool is_hard(const cow_tree_entry *link)
{
    return link != NULL && link->link.type == H5L_TYPE_HARD;
}

/* What a hard link leads to, for M. */
static bool follow(hid_t group, const cow_tree_entry *link, meeting *m, int i)
{
    H5O_info2_t info;

    if (H5Oget_info_by_name3(group, link->name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        return false;
    m->there[i] = true;
    m->type[i] = info.type;
    m->address[i] = cow_address(&info.token);
    return true;
}

static void compare_link(walk *w, const char *path, const hid_t group[2], const cow_tree_entry *const link[2])
{
    cli_diff *diff = w->diff;
    const bool hard[2] = {is_hard(link[0]), is_hard(link[1])};
    meeting m = {.path = cli_child_path(path, (link[0] != NULL ? link[0] : link[1])->name)};

    if (hard[0] && hard[1] && diff->same_file &&
        cow_address(&link[0]->link.u.token) == cow_address(&link[1]->link.u.token)) {
        free(m.path); /* one snapshot: nothing below it differs */
        return;
    }
    if ((link[0] != NULL && !hard[0]) || (link[1] != NULL && !hard[1]))
        tell_links(diff, m.path, group, link);
    for (int i = 0; i < 2; i++)
        if (hard[i] && (link[1 - i] == NULL || hard[1 - i]) && !follow(group[i], link[i], &m, i)) {
            json_object *item = cli_diff_item(m.path, "changed");
            cli_diff_trouble(diff, item, "it cannot be looked at");
            tell(diff, item);
            m.there[0] = m.there[1] = false;
            break;
        }
    if (m.there[0] || m.there[1])
        wait_for(w, m);
    else
        free(m.path);
}

/* GROUP[i] negative: it is not there. */
static int list(hid_t group, const char *path, cow_tree_names *names)
{
    if (group < 0)
        return 0;
    if (cli_object_links(group, names) < 0)
        return -1;
    for (size_t i = 0; path[1] == '\0' && i < names->count; i++)
        if (strcmp(names->entry[i].name, COW_GROUP) == 0) { /* the history of the head */
            free(names->entry[i].name);
            memmove(&names->entry[i], &names->entry[i + 1], (names->count - i - 1) * sizeof *names->entry);
            names->count--;
        }
    return 0;
}

static void compare_links(walk *w, const meeting *m)
{
    cow_tree_names names[2] = {{0}};
    hid_t group[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
    size_t at[2] = {0, 0};
    bool has[2], good = true;

    for (int i = 0; good && i < 2; i++)
        if (m->there[i] && m->type[i] == H5O_TYPE_GROUP)
            good = (group[i] = H5Oopen_by_token((i == 0 ? w->diff->before : w->diff->after)->file.id,
                                                cow_token(m->address[i]))) >= 0 &&
                   list(group[i], m->path, &names[i]) == 0;
    if (!good) {
        json_object *item = cli_diff_item(m->path, "changed");
        cli_diff_trouble(w->diff, item, "its links cannot be listed");
        tell(w->diff, item);
    }
    for (; good && next_name(names, at, has) != NULL; at[0] += has[0], at[1] += has[1]) {
        const cow_tree_entry *const link[2] = {has[0] ? &names[0].entry[at[0]] : NULL,
                                               has[1] ? &names[1].entry[at[1]] : NULL};
        compare_link(w, m->path, group, link);
    }
    for (int i = 0; i < 2; i++) {
        cow_tree_names_free(&names[i]);
        if (group[i] >= 0)
            H5Oclose(group[i]);
    }
}

/* ---- the walk ---- */

/* Was this pair met already, by other links? */
static bool met(cli_diff *diff, const meeting *m)
{
    const uint64_t pair[2] = {m->there[0] ? m->address[0] : UINT64_MAX, m->there[1] ? m->address[1] : UINT64_MAX};

    return !cli_map_put(&diff->met, cow_checksum(pair, sizeof pair), 1);
}

static void compare(walk *w, const meeting *m)
{
    cli_diff *diff = w->diff;

    if (diff->same_file && m->there[0] && m->there[1] && m->address[0] == m->address[1])
        return;
    if (met(diff, m))
        return;
    if (!m->there[0] || !m->there[1]) {
        if (m->path[1] != '\0')
            tell_alone(diff, m);
        compare_links(w, m);
        return;
    }
    if (m->type[0] != m->type[1]) {
        json_object *item = cli_diff_item(m->path, "replaced");
        hid_t object[2] = {open_object(diff->before, m->path), open_object(diff->after, m->path)};
        if (object[0] < 0 || object[1] < 0)
            cli_diff_trouble(diff, item, "it cannot be opened");
        else {
            json_object_object_add(item, "before", cli_diff_text(cli_object_name(object[0])));
            json_object_object_add(item, "after", cli_diff_text(cli_object_name(object[1])));
        }
        for (int i = 0; i < 2; i++)
            if (object[i] >= 0)
                H5Oclose(object[i]);
        tell(diff, item);
    } else
        compare_objects(diff, m);
    compare_links(w, m);
}

/* What is at PATH in STATE, for M. Links of every kind are followed, but not into other files. */
static int look(const cli_state *state, const char *path, meeting *m, int i)
{
    H5O_info2_t info, own;
    char *full;

    if (state == NULL)
        return 0;
    full = cli_state_path(state, path);
    H5E_BEGIN_TRY
    m->there[i] = H5Oget_info_by_name3(state->file.id, full, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0;
    H5E_END_TRY
    free(full);
    if (!m->there[i])
        return 0;
    if (H5Oget_info3(state->file.id, &own, H5O_INFO_BASIC) < 0 || own.fileno != info.fileno)
        return cli_fail("'%s' leads to another file: compare that one", path);
    m->type[i] = info.type;
    m->address[i] = cow_address(&info.token);
    return 0;
}

static uint64_t elements_of(hid_t dataset)
{
    hid_t space = H5Dget_space(dataset);
    uint64_t elements = 0;

    if (space < 0 || cow_space_elements(space, &elements) < 0)
        elements = 0;
    cow_close(space);
    return elements;
}

int cli_diff_tree(cli_diff *diff, const char *path)
{
    walk w = {.diff = diff};
    meeting m = {.path = cli_strdup(path)};
    int status = look(diff->before, path, &m, 0);

    if (status == 0)
        status = look(diff->after, path, &m, 1);
    if (status == 0 && !m.there[0] && !m.there[1])
        status = cli_fail("there is no '%s' in '%s%s%s'", path, diff->after->file.name,
                          diff->after->name == NULL ? "" : "@", diff->after->name == NULL ? "" : diff->after->name);
    if (status != 0) {
        free(m.path);
        return status;
    }
    if (diff->before != NULL && !diff->same_file) /* else what both share is not read */
        diff->all = cli_object_sum(diff->after->through, path, elements_of);
    for (wait_for(&w, m); w.first < w.count; free(w.waiting[w.first++].path)) {
        const meeting next = w.waiting[w.first];
        if (diff->enough != CLI_DIFF_ONE || diff->differences + diff->troubles == 0)
            compare(&w, &next);
    }
    free(w.waiting);
    cli_diff_done(diff);
    return 0;
}
