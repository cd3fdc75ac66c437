/* Which objects of two states stand at the same path. See diff.h.
 *
 * Both trees are walked side by side by hard links of the same names. Every pair of objects that this meets has a path in common,
 * and every pair that has one is met: a pair of groups is entered once, whatever the number of links. Without recursion: a strange file may
 * be very deep.
 */
#include "diff.h"

#include "base/digest.h"
#include "object.h"
#include "tables.h"

#include <stdlib.h>
#include <string.h>

typedef struct pair {
    H5O_token_t token[2];
} pair;

typedef struct walk {
    cli_diff *diff;
    pair *waiting;
    size_t count, room;
} walk;

static uint64_t key_of(const H5O_token_t *a, const H5O_token_t *b)
{
    const uint64_t both[2] = {cow_address(a), cow_address(b)};

    return cow_checksum(both, sizeof both);
}

/* Two objects at one path. GROUPS: both are groups, which are entered. */
static void meet(walk *w, const H5O_token_t *a, const H5O_token_t *b, bool groups)
{
    if (!cli_map_put(&w->diff->places, key_of(a, b), 1) || !groups)
        return;
    CLI_RESERVE(w->waiting, w->room, w->count, 1);
    w->waiting[w->count++] = (pair){{*a, *b}};
}

static bool is_group(hid_t group, const char *name)
{
    H5O_info2_t info;

    return H5Oget_info_by_name3(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 && info.type == H5O_TYPE_GROUP;
}

/* Links of the same name in two groups. Other links than hard ones lead to objects that a hard link leads to as well. */
static void meet_members(walk *w, const hid_t group[2], const cow_tree_names names[2])
{
    for (size_t i = 0, k = 0; i < names[0].count && k < names[1].count;) {
        const cow_tree_entry *a = &names[0].entry[i], *b = &names[1].entry[k];
        int order = strcmp(a->name, b->name);

        if (order == 0 && a->link.type == H5L_TYPE_HARD && b->link.type == H5L_TYPE_HARD)
            meet(w, &a->link.u.token, &b->link.u.token, is_group(group[0], a->name) && is_group(group[1], b->name));
        i += order <= 0;
        k += order >= 0;
    }
}

/* What cannot be opened or listed here is told where its own attributes and links are compared. */
static void enter(walk *w, const pair *p)
{
    const cli_state *state[2] = {w->diff->before, w->diff->after};
    hid_t group[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
    cow_tree_names names[2] = {{0}};
    bool listed = true;

    for (int i = 0; listed && i < 2; i++)
        listed = (group[i] = H5Oopen_by_token(state[i]->through, p->token[i])) >= 0 &&
                 cli_object_links(group[i], &names[i]) == 0;
    if (listed)
        meet_members(w, group, names);
    for (int i = 0; i < 2; i++) {
        cow_tree_names_free(&names[i]);
        if (group[i] >= 0)
            H5Oclose(group[i]);
    }
    H5Eclear2(H5E_DEFAULT);
}

static void walk_both(cli_diff *diff)
{
    walk w = {.diff = diff};
    H5O_info2_t root[2];

    if (H5Oget_info_by_name3(diff->before->through, "/", &root[0], H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
        H5Oget_info_by_name3(diff->after->through, "/", &root[1], H5O_INFO_BASIC, H5P_DEFAULT) >= 0)
        meet(&w, &root[0].token, &root[1].token, true);
    while (w.count > 0) {
        const pair next = w.waiting[--w.count];
        enter(&w, &next);
    }
    free(w.waiting);
    H5Eclear2(H5E_DEFAULT);
}

/* Does any path lead to the object of TOKEN? */
static bool has_path(hid_t file, H5O_token_t token)
{
    hid_t object = H5Oopen_by_token(file, token);
    bool has = object >= 0 && H5Iget_name(object, NULL, 0) > 0;

    if (object >= 0)
        H5Oclose(object);
    H5Eclear2(H5E_DEFAULT);
    return has;
}

bool cli_diff_same_place(cli_diff *diff, const H5O_token_t *a, const H5O_token_t *b)
{
    uint64_t met;

    if (diff->same_file && cow_address(a) == cow_address(b))
        return true;
    if (diff->places.count == 0)
        walk_both(diff);
    return cow_map_get(&diff->places, key_of(a, b), &met) ||
           (!has_path(diff->before->through, *a) && !has_path(diff->after->through, *b));
}

void cli_diff_done(cli_diff *diff)
{
    cow_map_free(&diff->met);
    cow_map_free(&diff->places);
}
