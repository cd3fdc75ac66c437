/* Which objects each version added, changed or removed against the one it was made of, as changes.h tells it. See report.h. */
#include "report.h"

#include "base/digest.h"
#include "changes.h"
#include "object.h"

#include <stdlib.h>
#include <string.h>

typedef struct change {
    size_t version;
    const char *what;
} change;

typedef struct row {
    char *path;
    const char *kind;
    change *change;
    size_t changes, room;
} row;

typedef struct walk {
    cli_report *report;
    size_t version, before; /* rows; SIZE_MAX: there is none before */
    row *row;
    size_t rows, row_room;
    cow_map places; /* checksum of a path -> its row */
} walk;

static void note(walk *w, const char *path, const char *kind, const char *what)
{
    uint64_t key = cow_checksum(path, strlen(path)), *known = cow_map_at(&w->places, key);
    size_t at = known == NULL ? w->rows : (size_t)*known;

    if (known == NULL) {
        CLI_RESERVE(w->row, w->row_room, w->rows, 1);
        w->row[w->rows++] = (row){.path = cli_strdup(path)};
        cli_map_put(&w->places, key, at);
    }
    row *r = &w->row[at];
    r->kind = kind;
    CLI_RESERVE(r->change, r->room, r->changes, 1);
    r->change[r->changes++] = (change){w->version, what};
}

/* "dataset"; "link": one that is no hard one. */
static const char *kind_of(const walk *w, size_t version, const char *path)
{
    const cli_states *s = &w->report->states;
    const size_t at = version == SIZE_MAX ? SIZE_MAX : cli_graph_find(&s->graph, s->root[version], path);

    return at == SIZE_MAX ? "link" : cli_object_kind(s->graph.object[at].type);
}

/* Takes ITEM. */
static void hear(cli_diff *diff, json_object *item)
{
    walk *w = diff->context;
    const char *path = cli_diff_path(item), *what = json_object_get_string(json_object_object_get(item, "change"));
    json_object *trouble = json_object_object_get(item, "trouble");
    const bool removed = strcmp(what, "removed") == 0;

    if (trouble != NULL)
        cli_report_note(w->report, path, json_object_get_string(json_object_array_get_idx(trouble, 0)));
    note(w, path, kind_of(w, removed ? w->before : w->version, path),
         removed || what[0] == 'a' ? (removed ? "removed" : "added") : "changed");
    json_object_put(item);
}

static int by_changes(const void *a, const void *b)
{
    const row *x = a, *y = b;

    return x->changes != y->changes ? (x->changes < y->changes) - (x->changes > y->changes) : strcmp(x->path, y->path);
}

const char *cli_report_path(json_object *item)
{
    return cli_diff_path(item);
}

static json_object *told(const row *r)
{
    json_object *item = cli_diff_item(r->path, ""), *list = json_object_new_array();

    json_object_object_del(item, "change");
    json_object_object_add(item, "kind", json_object_new_string(r->kind));
    for (size_t i = 0; i < r->changes; i++) {
        json_object_array_add(list, json_object_new_uint64(r->change[i].version));
        json_object_array_add(list, json_object_new_string(r->change[i].what));
    }
    json_object_object_add(item, "changes", list);
    return item;
}

json_object *cli_report_changes(cli_report *report, size_t most, size_t *more)
{
    const cli_states *s = &report->states;
    cli_changes changes = cli_changes_of(&report->newest, s->versions, s->version_count);
    walk w = {.report = report};
    json_object *list = json_object_new_array();

    for (w.version = 0; w.version < s->version_count; w.version++) {
        cli_diff diff = {.enough = CLI_DIFF_EACH, .tell = hear, .context = &w};

        w.before = cli_version_parent(s->versions, w.version);
        if (s->root[w.version] == SIZE_MAX || (w.before != SIZE_MAX && s->root[w.before] == SIZE_MAX) ||
            (w.before != SIZE_MAX && s->root[w.before] == s->root[w.version]))
            continue;
        if (w.before == SIZE_MAX)
            note(&w, "/", "group", "added");
        if (cli_changes_tell(&changes, w.before, w.version, "/", &diff) < 0)
            cli_report_note(report, s->versions[w.version].name, "it cannot be compared with the version before");
    }
    cli_changes_close(&changes);
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
    cow_map_free(&w.places);
    return list;
}
