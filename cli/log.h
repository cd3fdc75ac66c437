/* What h5cow log lists, and how it is shown. */
#ifndef CLI_LOG_H
#define CLI_LOG_H

#include "common.h"
#include "tables.h"

typedef struct cli_listed {
    cli_version *rows;
    cli_lack *lacks;
    cli_tag *tags;
    size_t count, lacking, tagged;
    size_t first;   /* rows from here on were read, and what those that are shown were made of */
    bool *left_out; /* of each row: it was not asked for */
    bool some;      /* one was left out */
} cli_listed;

/* Newest first, with what versions lack below. WITH_GRAPH: and what each was made of. */
void cli_log_table(const cli_listed *l, cli_clock clock, bool with_graph);
/* The same with name, time and message alone. */
void cli_log_lines(const cli_listed *l, cli_clock clock, bool with_graph);
/* What was done to the history itself. The answer is the exit code. */
int cli_log_operations(const cli_file *file, bool json, cli_clock clock);

#endif
