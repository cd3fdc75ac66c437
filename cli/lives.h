/* Files with history that a program may lose: those in the folder where it runs, and in the folders of files that are among its
 * words. What became of each is found out by looking before and after. */
#ifndef CLI_LIVES_H
#define CLI_LIVES_H

#include "heard.h"

typedef struct cli_lives cli_lives;

/* The files that there are; WORDS end with NULL. */
cli_lives *cli_lives_begin(char **words);
/* Says on standard error, a line for each, which of them are gone, emptied, or other files by now, and where their history is. */
void cli_lives_end(const cli_lives *lives, const cli_heard *heard);
void cli_lives_free(cli_lives *lives);

#endif
