/* A small file whose every commit can be told from every other, for the tests of the journal. State v: dataset "x" of
 * 200 integers that are all v, dataset "grow" of 100 v integers, groups "g1" to "gv", "gone" only in odd states. */
#ifndef JOURNAL_STATES_H
#define JOURNAL_STATES_H

#include "journal/journal.h"

#include <hdf5.h>

#define STATE_REFUSED (-2) /* cannot be opened */
#define STATE_TORN    (-1) /* none of the states */

/* What HDF5 refuses to open it would try again with the connector, if it found that. */
void state_without_plugins(void);
/* A file access list: with the journal, or HDF5's own driver (options NULL). */
hid_t state_fapl(const cow_journal_options *options);
/* Bring FILE from state V-1 (0: just created) to V. -1 when an HDF5 call failed. */
int state_write(hid_t file, int v);
/* Which state the open FILE, or the file PATH, is in. */
int state_of(hid_t file);
int state_of_path(const char *path, hid_t fapl);

#endif
