/* Reading groups breadth first. See graph.h. */
#include "graph.h"

#include "object.h"
#include "tables.h"

#include <stdlib.h>
#include <string.h>

static bool is_wanted(const cli_graph *g, uint64_t address)
{
    return g->wanted == NULL || g->wanted(g->context, address);
}

/* Nothing more than a glance is wanted of what a link leads to, or not even that. */
static void glance_at(cli_graph *g, hid_t group, const char *name, uint64_t address, const char *path)
{
    H5O_info2_t info;
    char why[512];

    if (g->glance && address != UINT64_MAX && cli_map_put(&g->glanced, address, 1) &&
        H5Oget_info_by_name3(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
        g->trouble(g->context, address, path, cli_reason(why, sizeof why));
}

typedef struct queue {
    struct {
        size_t object;
        char *path;
    } *item;
    size_t first, count, room;
} queue;

/* Takes over PATH. */
static void push(queue *q, size_t object, char *path)
{
    CLI_RESERVE(q->item, q->room, q->count, 1);
    q->item[q->count].object = object;
    q->item[q->count++].path = path;
}

static void queue_free(queue *q)
{
    while (q->first < q->count)
        free(q->item[q->first++].path);
    free(q->item);
}

/* The place of an object in the graph; a new one is told to the caller, unless it cannot be read, and waits in Q if it is a group. */
static size_t object_at(cli_graph *g, uint64_t address, H5O_type_t type, const char *path, queue *q)
{
    uint64_t *known = cow_map_at(&g->places, address);

    if (known != NULL)
        return (size_t)*known;
    CLI_RESERVE(g->object, g->object_room, g->objects, 1);
    g->object[g->objects] = (cli_object){.address = address, .type = type};
    cli_map_put(&g->places, address, g->objects);
    if (g->found != NULL && type != H5O_TYPE_UNKNOWN)
        g->found(g->context, &g->object[g->objects], path);
    if (type == H5O_TYPE_GROUP)
        push(q, g->objects, cli_strdup(path));
    return g->objects++;
}

static void list_group(cli_graph *g, size_t object, const char *path, bool head, queue *q)
{
    hid_t group = H5Oopen_by_token(g->file, cow_token(g->object[object].address));
    cow_tree_names found = {0};
    char why[512];

    if (group < 0 || cli_object_links(group, &found) < 0) /* what could be listed is looked at */
        g->trouble(g->context, g->object[object].address, path, cli_reason(why, sizeof why));
    g->object[object].first = g->links;
    for (size_t i = 0; i < found.count; i++) {
        const H5L_info2_t *listed = &found.entry[i].link;
        const uint64_t address = listed->type == H5L_TYPE_HARD ? cow_address(&listed->u.token) : UINT64_MAX;
        cli_link link = {found.entry[i].name, listed->type, SIZE_MAX};
        char *child = cli_child_path(path, link.name);
        const bool history = head && path[1] == '\0' && strcmp(link.name, COW_GROUP) == 0;
        H5O_info2_t info;

        if (history || !is_wanted(g, address)) {
            if (!history)
                glance_at(g, group, link.name, address, child);
            free(child);
            continue;
        }
        if (link.type == H5L_TYPE_HARD) {
            if (cow_map_at(&g->places, address) == NULL &&
                H5Oget_info_by_name3(group, link.name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
                g->trouble(g->context, address, child, cli_reason(why, sizeof why));
                info.type = H5O_TYPE_UNKNOWN;
            }
            link.object = object_at(g, address, info.type, child, q);
        }
        free(child);
        found.entry[i].name = NULL; /* the graph's */
        CLI_RESERVE(g->link, g->link_room, g->links, 1);
        g->link[g->links++] = link;
    }
    g->object[object].links = g->links - g->object[object].first;
    cow_tree_names_free(&found);
    if (group >= 0)
        H5Oclose(group);
}

size_t cli_graph_add_as(cli_graph *graph, const char *path, const char *shown)
{
    bool head = strcmp(path, "/") == 0;
    uint64_t address = UINT64_MAX;
    H5L_info2_t link;
    H5O_info2_t info;
    queue q = {0};
    char why[512];
    size_t root;

    if (!head && H5Lget_info2(graph->file, path, &link, H5P_DEFAULT) >= 0 && link.type == H5L_TYPE_HARD)
        address = cow_address(&link.u.token);
    if (H5Oget_info_by_name3(graph->file, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) {
        if (address == UINT64_MAX || cow_map_at(&graph->places, address) == NULL)
            graph->trouble(graph->context, address, shown[1] == '\0' ? path : shown, cli_reason(why, sizeof why));
        if (address != UINT64_MAX && is_wanted(graph, address))
            object_at(graph, address, H5O_TYPE_UNKNOWN, shown, &q);
        return SIZE_MAX;
    }
    if (!is_wanted(graph, cow_address(&info.token)))
        return SIZE_MAX;
    root = object_at(graph, cow_address(&info.token), info.type, shown, &q);
    while (q.first < q.count) {
        list_group(graph, q.item[q.first].object, q.item[q.first].path, head, &q);
        free(q.item[q.first++].path);
    }
    queue_free(&q);
    return root;
}

size_t cli_graph_add(cli_graph *graph, const char *path)
{
    return cli_graph_add_as(graph, path, "/");
}

/* Of a group, whose links are in the order of their names' bytes: what the first LENGTH bytes of NAME lead to. */
static size_t member(const cli_graph *g, const cli_object *group, const char *name, size_t length)
{
    size_t low = group->first, high = group->first + group->links;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const char *other = g->link[middle].name;
        const size_t bytes = strlen(other);
        int order = memcmp(other, name, bytes < length ? bytes : length);

        order = order != 0 ? order : (bytes > length) - (bytes < length);
        if (order == 0)
            return g->link[middle].object;
        *(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
    }
    return SIZE_MAX;
}

size_t cli_graph_find(const cli_graph *graph, size_t root, const char *path)
{
    for (const char *name = path + 1; root != SIZE_MAX && *name != '\0';) {
        const size_t length = strcspn(name, "/");

        root = member(graph, &graph->object[root], name, length);
        name += length + (name[length] == '/');
    }
    return root;
}

static int each(const cli_graph *graph, size_t root, bool again, cli_graph_visitor *visit, void *context)
{
    bool *met = cli_alloc(graph->objects, sizeof *met);
    queue q = {0};
    int status;

    push(&q, root, cli_strdup("/"));
    met[root] = true;
    status = visit(context, &graph->object[root], "/");
    for (; status == 0 && q.first < q.count; free(q.item[q.first++].path)) {
        const cli_object *group = &graph->object[q.item[q.first].object];
        for (size_t i = group->first; status == 0 && i < group->first + group->links; i++) {
            const cli_link *link = &graph->link[i];
            if (link->object == SIZE_MAX || (met[link->object] && !again))
                continue;
            char *path = cli_child_path(q.item[q.first].path, link->name);
            status = visit(context, &graph->object[link->object], path);
            if (met[link->object])
                free(path);
            else
                push(&q, link->object, path);
            met[link->object] = true;
        }
    }
    queue_free(&q);
    free(met);
    return status;
}

int cli_graph_each(const cli_graph *graph, size_t root, cli_graph_visitor *visit, void *context)
{
    return each(graph, root, false, visit, context);
}

int cli_graph_each_link(const cli_graph *graph, size_t root, cli_graph_visitor *visit, void *context)
{
    return each(graph, root, true, visit, context);
}

void cli_graph_free(cli_graph *graph)
{
    for (size_t i = 0; i < graph->links; i++)
        free(graph->link[i].name);
    free(graph->link);
    free(graph->object);
    cow_map_free(&graph->places);
    cow_map_free(&graph->glanced);
}
