/* Which objects each version added, changed or removed against the one it was made of. See report.h.
 *
 * Two trees are gone down side by side, where they name different objects only. Without recursion: a strange file may be
 * very deep.
 */
#include "report.h"

#include "base/digest.h"
#include "object.h"

#include <stdlib.h>
#include <string.h>

typedef struct change {
    size_t version;
    const char *what;
} change;

typedef struct row {
    char *path;
    H5O_type_t type;
    change *change;
    size_t changes, room;
} row;

/* Of two trees, what stands at the same path; SIZE_MAX: nothing. */
typedef struct meeting {
    size_t before, after;
    char *path;
} meeting;

typedef struct walk {
    const cli_graph *graph;
    size_t version;
    row *row;
    size_t rows, row_room;
    cow_map places; /* checksum of a path -> its row */
    meeting *waiting;
    size_t first, count, room;
    cow_map met; /* pairs of groups of this version */
} walk;

static void note(walk *w, const char *path, H5O_type_t type, const char *what)
{
    uint64_t key = cow_checksum(path, strlen(path)), *known = cow_map_at(&w->places, key);
    size_t at = known == NULL ? w->rows : (size_t)*known;

    if (known == NULL) {
        CLI_RESERVE(w->row, w->row_room, w->rows, 1);
        w->row[w->rows++] = (row){.path = cli_strdup(path)};
        cli_map_put(&w->places, key, at);
    }
    row *r = &w->row[at];
    r->type = type;
    CLI_RESERVE(r->change, r->room, r->changes, 1);
    r->change[r->changes++] = (change){w->version, what};
}

/* Takes PATH. */
static void push(walk *w, size_t before, size_t after, char *path)
{
    CLI_RESERVE(w->waiting, w->room, w->count, 1);
    w->waiting[w->count++] = (meeting){before, after, path};
}

static const cli_object *object_at(const walk *w, size_t place)
{
    return place == SIZE_MAX ? NULL : &w->graph->object[place];
}

static bool is_group(const cli_object *object)
{
    return object != NULL && object->type == H5O_TYPE_GROUP;
}

/* Links are in the order of their names. True: a member is another object, or is there in one of them only. */
static bool push_members(walk *w, const cli_object *before, const cli_object *after, const char *path)
{
    size_t at[2] = {0, 0}, count[2] = {is_group(before) ? before->links : 0, is_group(after) ? after->links : 0};
    const cli_link *list[2] = {count[0] > 0 ? &w->graph->link[before->first] : NULL,
                               count[1] > 0 ? &w->graph->link[after->first] : NULL};
    bool some = false;

    while (at[0] < count[0] || at[1] < count[1]) {
        int order = at[0] == count[0] ? 1 : at[1] == count[1] ? -1 : strcmp(list[0][at[0]].name, list[1][at[1]].name);
        size_t left = order <= 0 ? list[0][at[0]].object : SIZE_MAX,
               right = order >= 0 ? list[1][at[1]].object : SIZE_MAX;
        if (left != right) {
            push(w, left, right, cli_child_path(path, (order <= 0 ? list[0][at[0]] : list[1][at[1]]).name));
            some = true;
        }
        at[0] += order <= 0;
        at[1] += order >= 0;
    }
    return some;
}

static void meet(walk *w, const meeting *m)
{
    const cli_object *before = object_at(w, m->before), *after = object_at(w, m->after);
    uint64_t pair = (uint64_t)m->before << 32 ^ (uint64_t)m->after;
    bool members = false;

    if (is_group(before) || is_group(after)) {
        if (!cli_map_put(&w->met, pair, 1))
            return;
        members = push_members(w, before, after, m->path);
    }
    if (before == NULL)
        note(w, m->path, after->type, "added");
    else if (after == NULL)
        note(w, m->path, before->type, "removed");
    else if (!(is_group(before) && is_group(after) && members)) /* a group changes with its members */
        note(w, m->path, after->type, "changed");
}

static void compare(walk *w, size_t before, size_t after)
{
    if (before != after)
        push(w, before, after, cli_strdup("/"));
    for (; w->first < w->count; w->first++) {
        meeting m = w->waiting[w->first];
        meet(w, &m);
        free(m.path);
    }
    w->first = w->count = 0;
    cow_map_free(&w->met);
}

static int by_changes(const void *a, const void *b)
{
    const row *x = a, *y = b;

    return x->changes != y->changes ? (x->changes < y->changes) - (x->changes > y->changes) : strcmp(x->path, y->path);
}

static void free_path(json_object *text, void *path)
{
    (void)text;
    free(path);
}

/* PATH as text, with itself, byte by byte, beside: see cli_report_path. */
static json_object *path_json(const char *path)
{
    json_object *text = cli_json_text(path);

    json_object_set_userdata(text, cli_strdup(path), free_path);
    return text;
}

const char *cli_report_path(json_object *item)
{
    return json_object_get_userdata(json_object_object_get(item, "path"));
}

static json_object *told(const row *r)
{
    json_object *item = json_object_new_object(), *list = json_object_new_array();

    json_object_object_add(item, "path", path_json(r->path));
    json_object_object_add(item, "kind", json_object_new_string(cli_object_kind(r->type)));
    for (size_t i = 0; i < r->changes; i++) {
        json_object_array_add(list, json_object_new_uint64(r->change[i].version));
        json_object_array_add(list, json_object_new_string(r->change[i].what));
    }
    json_object_object_add(item, "changes", list);
    return item;
}

json_object *cli_report_changes(cli_report *report, size_t most, size_t *more)
{
    walk w = {.graph = &report->states.graph};
    json_object *list = json_object_new_array();

    for (w.version = 0; w.version < report->states.version_count; w.version++) {
        size_t parent = cli_version_parent(report->states.versions, w.version);
        if (report->states.root[w.version] != SIZE_MAX &&
            (parent == SIZE_MAX || report->states.root[parent] != SIZE_MAX))
            compare(&w, parent == SIZE_MAX ? SIZE_MAX : report->states.root[parent], report->states.root[w.version]);
    }
    if (w.rows > 0)
        qsort(w.row, w.rows, sizeof *w.row, by_changes);
    *more = w.rows > most ? w.rows - most : 0;
    for (size_t i = 0; i < w.rows; i++) {
        if (i < most)
            json_object_array_add(list, told(&w.row[i]));
        free(w.row[i].path);
        free(w.row[i].change);
    }
    free(w.row);
    free(w.waiting);
    cow_map_free(&w.places);
    return list;
}
