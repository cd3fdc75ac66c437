/* h5cow ls: the objects of a state, and which version made each what it is. */
#include "base/ids.h"
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
    json_object *list; /* NULL: as a table */
    cli_table *table;
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

/* The name of the version that made the object at PATH what it is; NULL: not known. */
static const char *changed_in(const listing *l, const char *path)
{
    H5O_type_t type;
    uint64_t address = l->row < l->row_count ? cli_version_object(&l->state->file, &l->rows[l->row], path, &type)
                                             : UINT64_MAX,
             row;

    if (!cow_map_get(&l->version, address, &row) || row >= l->row_count)
        return NULL;
    while (row < l->row && l->rows[row].open == COW_LOG_FORGOTTEN)
        row++; /* the next one has what it changed */
    return l->rows[row].name;
}

/* ---- what is told ---- */

static void put_cell(cli_table *table, const char *text, const char *behind)
{
    char *escaped = cli_escape(text);

    cli_table_cell(table, "%s%s", escaped, behind);
    free(escaped);
}

/* WHAT it is; SAME: the path that it was listed by before, or NULL; CHANGED: the version, or NULL. */
static void tell(listing *l, const char *path, const char *kind, const char *what, const char *same,
                 const char *changed)
{
    json_object *item;
    char *text;

    if (l->list != NULL) {
        item = json_object_new_object();
        json_object_object_add(item, "path", cli_json_text(path));
        json_object_object_add(item, "kind", cli_json_text(kind));
        json_object_object_add(item, "what", cli_json_text(what));
        if (same != NULL)
            json_object_object_add(item, "same_as", cli_json_text(same));
        if (l->rows != NULL && strcmp(kind, "link") != 0)
            json_object_object_add(item, "changed_in", changed == NULL ? NULL : cli_json_text(changed));
        json_object_array_add(l->list, item);
        return;
    }
    put_cell(l->table, path, strcmp(kind, "group") == 0 && path[1] != '\0' ? "/" : "");
    if (l->rows != NULL)
        put_cell(l->table, changed == NULL ? "" : changed, "");
    text = same == NULL ? cli_strdup(what) : cli_format("%s, the same as %s", what, same);
    put_cell(l->table, text, "");
    free(text);
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

    tell(l, path, cli_object_kind(type), what, same, changed_in(l, path));
    free(what);
}

static int list_entry(listing *l, const entry *e)
{
    H5O_info2_t info;
    const char *same;
    hid_t object;
    int status = 0;

    if (e->link != NULL) {
        tell(l, e->path, "link", e->link, NULL, NULL);
        return 0;
    }
    if ((object = open_entry(l, e->path, &info)) < 0) {
        tell(l, e->path, "unreadable", "cannot be opened", NULL, changed_in(l, e->path));
        return CLI_FAILED;
    }
    same = met_before(l, cli_address(&info.token), e->path);
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

    met_before(l, cli_address(&info->token), path);
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

/* What was listed. */
static int print(listing *l)
{
    if (l->list != NULL)
        return cli_json(json_object_get(l->list));
    cli_table_print(l->table);
    return cli_flush();
}

/* ---- the verb ---- */

static int list_state(const cli_state *state, const char *path, bool recursive, bool json)
{
    listing l = {.state = state, .recursive = recursive};
    const char *const titles[] = {"path", "changed in", "what"}, *const plain[] = {"path", "what"};
    H5O_info2_t info;
    hid_t object = open_entry(&l, path, &info);
    int status, printed;

    if (object < 0)
        return CLI_FAILED;
    learn_versions(&l);
    if (json)
        l.list = json_object_new_array();
    else
        l.table = l.rows == NULL ? cli_table_open(2, plain) : cli_table_open(3, titles);
    status = list_all(&l, object, &info, path);
    if ((printed = print(&l)) != 0)
        status = printed;
    H5Oclose(object);
    json_object_put(l.list);
    if (l.table != NULL)
        cli_table_close(l.table);
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
