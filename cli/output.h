/* The file that a verb writes: where it may be, whom it may replace, and what is left when the verb is ended. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/newfile.h"

#include <stdbool.h>

typedef struct cli_output {
    cow_newfile new; /* written through its path, or its descriptor */
    int old;         /* the file that is to be replaced, open and locked; -1: there is none */
} cli_output;

#define CLI_OUTPUT_NONE ((cli_output){.new = {.file = -1}, .old = -1})

/* There must be nothing at OUT. 0, or CLI_FAILED and said why. */
int cli_output_absent(const char *out);
/* As a writer would, ask whether the file at OUT may be replaced, and keep everybody from it until `drop`. Only a regular
 * file that nobody has open is; one with a history only with DISCARD. Nothing at OUT is fine. 0, or CLI_FAILED and said
 * why. */
int cli_output_claim(cli_output *output, const char *out, bool discard);
/* Begin it. A signal that ends this process removes it. 0, or CLI_FAILED and said why. */
int cli_output_make(cli_output *output, const char *out);
/* The same under a name of its own: cow_newfile_make_as. */
int cli_output_make_as(cli_output *output, const char *out, const char *name);
/* Complete by now, it has all of SOURCE's history, so it is found by the same identity. 0, or CLI_FAILED and said why. */
int cli_output_same_history(const cli_output *output, const char *source);
/* Nobody may do more with it than with SOURCE, nor with what it replaces. Onto the disk, and under its name. 0, or
 * CLI_FAILED and said why. */
int cli_output_place(cli_output *output, const char *source);
void cli_output_drop(cli_output *output);

#endif
