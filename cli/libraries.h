/* Which libhdf5 the programs have loaded that were started here, and who serves each: what was seen (watch.h) and what was
 * told (heard.h), put together. */
#ifndef CLI_LIBRARIES_H
#define CLI_LIBRARIES_H

#include "heard.h"
#include "watch.h"

typedef enum cli_service {
    CLI_SERVED,
    CLI_UNUSED,     /* it has not asked for the connector, though it could have */
    CLI_NOT_CHOSEN, /* the environment of the program does not name h5cow */
    CLI_REFUSED,    /* it cannot be served, or cannot find the plugin: no version is made */
} cli_service;

typedef struct cli_library {
    char *program; /* NULL: it ended before anybody looked */
    char *file, *version;
    char *plugin; /* that serves it, or NULL */
    cow_instance instance;
    cli_service service;
    char *why;        /* it is not served; "" where it is */
    size_t processes; /* of the program, to which all of this applies */
} cli_library;

typedef struct cli_libraries {
    cli_library *library;
    size_t count, room;
} cli_libraries;

/* ALL: every file that a program has loaded is searched for HDF5, and what a `run` has told of is among the answers; else
 * only files that are named like it, and the program's own. Give it back with cli_libraries_free. */
cli_libraries cli_libraries_of(const cli_watch *watch, const cli_heard *heard, bool all);
void cli_libraries_free(cli_libraries *libraries);
/* "served by /usr/lib/libh5cow.so", "not served: ...". free() it. */
char *cli_library_service(const cli_library *library);

#endif
