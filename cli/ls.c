/* h5cow ls: the objects of a state, and which version made each what it is. */
#include "base/ids.h"
#include "changes.h"
#include "object.h"
#include "state.h"
#include "values.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cli_ls_help[] =
    "Usage: h5cow ls [OPTION]... FILE[@REV] [PATH]\n\n"
    "Lists what is in the group PATH, or the root, of the newest state or of version REV: names, types and shapes, where\n"
    "links lead, and the version that last changed each object (of a group: the links and attributes of its own, or of\n"
    "anything below it). PATH may be an object of another kind, which is listed alone. Plain HDF5 files can be listed too.\n\n"
    "  -r, --recursive   everything below as well; an object that is met again by another link is not gone into\n"
    "      --json        a list of objects\n"
    "  -h, --help\n\n"
    "Example: h5cow ls -r run.h5@2\n";

/* Something to be listed: an object, or a link that leads to none that is known. */
typedef struct entry {
    char *path;
    char *link; /* what a soft, external or other link says; NULL: a hard one */
} entry;

/* What is told of one of them. */
typedef struct told {
    char *path, *what;
    const char *kind, *same; /* `same`: the path that it was listed by before, or NULL */
    const char *changed;     /* the name of a version, or NULL */
} told;

typedef struct listing {
    const cli_state *state;
    bool recursive;
    cow_map version; /* address of a snapshot -> row of the log */
    cli_version *rows;
    size_t row_count, row; /* the state's own */
    cow_map met;           /* address -> in `path` */
    char **path;           /* the first one of each object that was gone into */
    size_t paths, path_room;
    entry *waiting; /* the next one is the last */
    size_t count, room;
    told *told;
    size_t tolds, told_room;
} listing;

/* ---- versions ---- */

/* Which version made which snapshot. What cannot be read is not told: ls is no judge of that. */
static void learn_versions(listing *l)
{
    const cli_file *file = &l->state->file;
    cli_snapshot_row *rows = NULL;
    size_t count = 0;
    char why[600];

    if (l->state->name == NULL || cli_versions_read(file, &l->rows, &l->row_count, why, sizeof why) < 0)
        return;
    l->row = cli_version_row(l->rows, l->row_count, l->state->name);
    if (cli_snapshots_read(file, &rows, &count, why, sizeof why) == 0)
        for (size_t i = 0; i < count; i++)
            cli_map_put(&l->version, rows[i].snapshot, rows[i].version);
    free(rows);
}

/* Of each object that is listed, the version that made it what it is. 0, or CLI_FAILED, said. */
static int find_changes(listing *l)
{
    cli_subject *subject = cli_alloc(l->tolds, sizeof *subject);
    cli_changes changes = cli_changes_of(l->state, l->rows, l->row_count);
    size_t count = 0;
    int status;

    for (size_t i = 0; l->row < l->row_count && i < l->tolds; i++)
        if (strcmp(l->told[i].kind, "link") != 0)
            subject[count++].path = l->told[i].path;
    status = cli_changes_last(&changes, &l->version, l->row, subject, count);
    for (size_t i = 0, k = 0; status == 0 && k < count; i++)
        if (strcmp(l->told[i].kind, "link") != 0) {
            const size_t row = subject[k++].row;
            l->told[i].changed = row == SIZE_MAX ? NULL : l->rows[row].name;
        }
    cli_changes_close(&changes);
    free(subject);
    return status == 0 ? 0 : CLI_FAILED;
}

/* ---- what is told ---- */

static void put_cell(cli_table *table, const char *text, const char *behind)
{
    char *escaped = cli_escape(text);

    cli_table_cell(table, "%s%s", escaped, behind);
    free(escaped);
}

static json_object *json_of(const listing *l, const told *t)
{
    json_object *item = json_object_new_object();

    json_object_object_add(item, "path", cli_json_text(t->path));
    json_object_object_add(item, "kind", cli_json_text(t->kind));
    json_object_object_add(item, "what", cli_json_text(t->what));
    if (t->same != NULL)
        json_object_object_add(item, "same_as", cli_json_text(t->same));
    if (l->rows != NULL && strcmp(t->kind, "link") != 0)
        json_object_object_add(item, "changed_in", t->changed == NULL ? NULL : cli_json_text(t->changed));
    return item;
}

static void put_row(const listing *l, cli_table *table, const told *t)
{
    char *text = t->same == NULL ? cli_strdup(t->what) : cli_format("%s, the same as %s", t->what, t->same);

    put_cell(table, t->path, strcmp(t->kind, "group") == 0 && t->path[1] != '\0' ? "/" : "");
    if (l->rows != NULL)
        put_cell(table, t->changed == NULL ? "" : t->changed, "");
    put_cell(table, text, "");
    free(text);
}

static int print(const listing *l, bool json)
{
    const char *const titles[] = {"path", "changed in", "what"}, *const plain[] = {"path", "what"};
    json_object *list = json ? json_object_new_array() : NULL;
    cli_table *table = json ? NULL : l->rows == NULL ? cli_table_open(2, plain) : cli_table_open(3, titles);

    for (size_t i = 0; i < l->tolds; i++)
        if (json)
            json_object_array_add(list, json_of(l, &l->told[i]));
        else
            put_row(l, table, &l->told[i]);
    if (json)
        return cli_json(list);
    cli_table_print(table);
    cli_table_close(table);
    return cli_flush();
}

/* WHAT it is; SAME: the path that it was listed by before, or NULL. */
static void tell(listing *l, const char *path, const char *kind, const char *what, const char *same)
{
    CLI_RESERVE(l->told, l->told_room, l->tolds, 1);
    l->told[l->tolds++] = (told){cli_strdup(path), cli_strdup(what), kind, same, NULL};
}

/* ---- the walk ---- */

/* Takes over PATH and LINK. */
static void wait_for(listing *l, char *path, char *link)
{
    CLI_RESERVE(l->waiting, l->room, l->count, 1);
    l->waiting[l->count++] = (entry){path, link};
}

/* The links of GROUP, so that the first comes next. */
static int enter(listing *l, hid_t group, const char *path)
{
    cow_tree_names names = {0};
    int status = cli_object_links(group, &names);

    for (size_t i = names.count; status == 0 && i-- > 0;) {
        const cow_tree_entry *link = &names.entry[i];
        wait_for(l, cli_child_path(path, link->name),
                 link->link.type == H5L_TYPE_HARD ? NULL : cli_object_link(group, link, "/"));
    }
    cow_tree_names_free(&names);
    return status;
}

/* The path by which the object at ADDRESS was gone into before, or NULL: never, and it is noted with PATH. */
static const char *met_before(listing *l, uint64_t address, const char *path)
{
    uint64_t place;

    if (cow_map_get(&l->met, address, &place))
        return l->path[place];
    CLI_RESERVE(l->path, l->path_room, l->paths, 1);
    cli_map_put(&l->met, address, l->paths);
    l->path[l->paths++] = cli_strdup(path);
    return NULL;
}

/* What is at PATH. Negative: said why. */
static hid_t open_entry(const listing *l, const char *path, H5O_info2_t *info)
{
    hid_t object = H5Oopen(l->state->through, path, H5P_DEFAULT);
    char why[600];

    if (object >= 0 && H5Oget_info3(object, info, H5O_INFO_BASIC) >= 0)
        return object;
    cli_fail("'%s' of '%s' cannot be opened: %s", path, l->state->file.name, cli_reason(why, sizeof why));
    if (object >= 0)
        H5Oclose(object);
    return H5I_INVALID_HID;
}

static int list_links(listing *l, hid_t group, const char *path)
{
    char why[600];

    return enter(l, group, path) == 0 ? 0
                                      : cli_fail("the links of '%s' of '%s' cannot be listed: %s", path,
                                                 l->state->file.name, cli_reason(why, sizeof why));
}

static void tell_object(listing *l, const char *path, hid_t object, H5O_type_t type, const char *same)
{
    char *what = cli_object_name(object);

    tell(l, path, cli_object_kind(type), what, same);
    free(what);
}

static int list_entry(listing *l, const entry *e)
{
    H5O_info2_t info;
    const char *same;
    hid_t object;
    int status = 0;

    if (e->link != NULL) {
        tell(l, e->path, "link", e->link, NULL);
        return 0;
    }
    if ((object = open_entry(l, e->path, &info)) < 0) {
        tell(l, e->path, "unreadable", "cannot be opened", NULL);
        return CLI_FAILED;
    }
    same = met_before(l, cow_address(&info.token), e->path);
    tell_object(l, e->path, object, info.type, same);
    if (info.type == H5O_TYPE_GROUP && same == NULL && l->recursive)
        status = list_links(l, object, e->path);
    H5Oclose(object);
    return status;
}

/* What was asked for, OBJECT at PATH, and all that waits after it. */
static int list_all(listing *l, hid_t object, const H5O_info2_t *info, const char *path)
{
    int status = 0;

    met_before(l, cow_address(&info->token), path);
    if (info->type == H5O_TYPE_GROUP)
        status = list_links(l, object, path);
    else
        tell_object(l, path, object, info->type, NULL);
    while (l->count > 0) {
        entry e = l->waiting[--l->count];
        int failed = list_entry(l, &e);
        status = failed != 0 ? failed : status;
        free(e.path);
        free(e.link);
    }
    return status;
}

/* ---- the verb ---- */

static int list_state(const cli_state *state, const char *path, bool recursive, bool json)
{
    listing l = {.state = state, .recursive = recursive};
    H5O_info2_t info;
    hid_t object = open_entry(&l, path, &info);
    int status, failed;

    if (object < 0)
        return CLI_FAILED;
    learn_versions(&l);
    status = list_all(&l, object, &info, path);
    H5Oclose(object);
    if (l.rows != NULL && (failed = find_changes(&l)) != 0)
        status = failed;
    if ((failed = print(&l, json)) != 0)
        status = failed;
    for (size_t i = 0; i < l.tolds; i++) {
        free(l.told[i].path);
        free(l.told[i].what);
    }
    free(l.told);
    for (size_t i = 0; i < l.paths; i++)
        free(l.path[i]);
    free(l.path);
    free(l.waiting);
    cow_map_free(&l.met);
    cow_map_free(&l.version);
    cli_versions_free(l.rows, l.row_count);
    return status;
}

int cli_ls(int argc, char **argv)
{
    static const struct option options[] = {{"recursive", no_argument, NULL, 'r'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool recursive = false, json = false;
    const char *path;
    cli_state state;
    int status;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":rh", options, NULL)) != -1;)
        switch (c) {
        case 'r':
            recursive = true;
            break;
        case 'j':
            json = true;
            break;
        case 'h':
            fputs(cli_ls_help, stdout);
            return cli_flush();
        default:
            return c == ':' ? cli_no_value("ls", argv) : cli_no_option("ls", argv);
        }
    if ((status = cli_state_words("ls", argc, argv, &path)) != 0)
        return status;
    cli_hdf5_start();
    if (cli_state_open(&state, "ls", argv[optind], NULL) != 0)
        return CLI_FAILED;
    status = list_state(&state, path, recursive, json);
    cli_state_close(&state);
    return status;
}
