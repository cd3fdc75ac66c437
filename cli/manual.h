/* Man pages and completions, made from what --help prints (common.h), so that none of them is behind the others. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "common.h"

typedef struct cli_page {
    const char *name, *help, *what; /* of the verb; WHAT in one line */
    cli_verb *verb;
    bool paged; /* its answer may be long, and people read it: pager.h */
} cli_page;

/* h5cow-VERB(1), on standard output. */
void cli_manual_page(const cli_page *page);
/* h5cow(1). ABOUT: as the help of a verb. */
void cli_manual_whole(const char *about, const cli_page *pages, size_t count);
/* Completion of verbs and options for SHELL: bash, zsh or fish (completion.c). The exit code. */
int cli_manual_completion(const char *shell, const cli_page *pages, size_t count);
/* What the last of the words of VERB WORD... may become, a line each, where these are versions or paths in a file: what the
 * completions ask (candidates.c). The exit code. */
int cli_manual_candidates(int argc, char **argv);
/* How long the words are that an option begins with ("-m, --message=TEXT"): to where two blanks are, or LENGTH. */
size_t cli_manual_words(const char *option, size_t length);

#endif
