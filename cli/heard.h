/* What the connector tells of the programs that were started here: the file of connector/base/witness.h. */
#ifndef CLI_HEARD_H
#define CLI_HEARD_H

#include "base/witness.h"

#include <json.h>

#include <stdbool.h>
#include <stddef.h>

/* A libhdf5 that has asked for the connector. */
typedef struct cli_asked {
    long pid;
    char *version, *file, *plugin, *why;
    cow_instance instance;
    bool told; /* by a `run` that was started here */
} cli_asked;

/* A file of which something is lost: what, and why. */
typedef struct cli_lost {
    char *name, *what;
    bool told; /* by a `run` that was started here */
} cli_lost;

/* A file that could not be opened since somebody else has it. */
typedef struct cli_refused {
    char *name, *why; /* WHY empty: later it could */
} cli_refused;

typedef struct cli_heard {
    bool opened, version; /* files, through the connector; and it has made one */
    json_object *newest;  /* by the identity of a history, in digits: its newest version, as it is told */
    bool told;            /* a `run` that was started here has said what there was to say */
    size_t plain;         /* files without history that were written */
    char *first;          /* the first of them */
    cli_asked *asked;
    size_t count, room;
    cli_lost *lost;
    size_t lost_count, lost_room;
    cli_refused *refused;
    size_t refused_count, refused_room;
} cli_heard;

/* Makes the file, and puts its name into the environment. free() the name. NULL: said why. */
char *cli_heard_begin(void);
/* Reads the file and removes it; the environment is as it was before. free() what is in HEARD with cli_heard_free. */
void cli_heard_end(char *witness, cli_heard *heard);
void cli_heard_free(cli_heard *heard);
/* To whom this process is a program that was started: what was said here is not said again. */
void cli_heard_pass_up(const cli_heard *heard);

#endif
