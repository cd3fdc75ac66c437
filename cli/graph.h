/* The objects of head and versions, each read once, and the links between them.
 *
 * Versions share what did not change, so a walk through every version would meet the same objects again and again; here
 * a group is listed once, and going through a version afterwards costs no I/O. Without recursion: a damaged or strange
 * file may be very deep, or have cycles.
 */
#ifndef CLI_GRAPH_H
#define CLI_GRAPH_H

#include "common.h"

typedef struct cli_object {
    uint64_t address;
    H5O_type_t type;     /* H5O_TYPE_UNKNOWN: it cannot be read */
    size_t first, links; /* of a group, in cli_graph.link */
    uint64_t note;       /* the caller's */
} cli_object;

typedef struct cli_link {
    char *name;
    H5L_type_t type;
    size_t object; /* hard links; else SIZE_MAX */
} cli_link;

typedef struct cli_graph {
    hid_t file;
    /* An object was met for the first time. */
    void (*found)(void *context, cli_object *object, const char *path);
    /* Something at PATH cannot be read: the object at ADDRESS, which is not told to FOUND then; UINT64_MAX: nobody knows which. */
    void (*trouble)(void *context, uint64_t address, const char *path, const char *why);
    /* NULL: every object; else only those with such an address, and what hangs below them. Links to others are not kept; with GLANCE
     * it is looked, once, whether these can be opened. */
    bool (*wanted)(void *context, uint64_t address);
    bool glance;
    void *context;
    /* private, or to be read */
    cli_object *object;
    cli_link *link;
    size_t objects, object_room, links, link_room;
    cow_map places, glanced;
} cli_graph;

/* Add the tree below the group at PATH ("/": the head, without /_versioned_data). SIZE_MAX: it cannot be opened, or is not wanted. */
size_t cli_graph_add(cli_graph *graph, const char *path);
/* The same of an object at PATH that is called SHOWN, whatever it is. */
size_t cli_graph_add_as(cli_graph *graph, const char *path, const char *shown);
/* The object to which the hard links of PATH lead from ROOT; SIZE_MAX: none does, or ROOT is. */
size_t cli_graph_find(const cli_graph *graph, size_t root, const char *path);
/* Call VISIT for each object that is reached from ROOT, once, with a path from there; non-zero ends it. */
typedef int cli_graph_visitor(void *context, const cli_object *object, const char *path);
int cli_graph_each(const cli_graph *graph, size_t root, cli_graph_visitor *visit, void *context);
/* The same for each link to one, so that it is told by all its names; what hangs below a group, once. */
int cli_graph_each_link(const cli_graph *graph, size_t root, cli_graph_visitor *visit, void *context);
void cli_graph_free(cli_graph *graph);

#endif
