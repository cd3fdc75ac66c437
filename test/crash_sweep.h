/* Takes what a scenario did to its file, lets the power go at every point, and looks at what is left. See crash.c. */
#ifndef CRASH_SWEEP_H
#define CRASH_SWEEP_H

#include "crash_disk.h"
#include "journal/journal.h"

#include <hdf5.h>

#include <stdbool.h>

/* How a file is looked at more closely than by its bytes. */
typedef enum crash_look {
    LOOK_READER, /* through the connector, read-only: no recovery */
    LOOK_STOCK,  /* HDF5 without h5cow */
    LOOK_WRITER, /* opened for writing through the connector and closed again: recovery */
    LOOK_VERIFY, /* h5cow verify */
    LOOK_CREATE, /* nothing was ever committed: a file can be created in its place */
} crash_look;

#define LOOK_REFUSED (-2)
#define LOOK_WRONG   (-1)

typedef struct crash_scenario {
    const char *name;
    bool kill_only;    /* programs die, the power stays */
    bool loses_newest; /* what was committed since the last close may be lost with the power */
    /* The scenario's number of the state that PATH is in (writer, verify and create: 0, all is well), LOOK_WRONG and
     * WHY, or LOOK_REFUSED. NULL: the digest of what HDF5 reads must do. */
    int (*judge)(void *context, const char *path, crash_look look, char *why, size_t size);
    void *context;
} crash_scenario;

typedef struct crash_totals {
    unsigned long scenarios, operations, states, before, after, refused, older, recovered, cut_recoveries, wrong;
    unsigned long asked; /* states that HDF5 itself read */
    unsigned long deep;  /* states that were judged */
} crash_totals;

/* Paths of an empty file that carries the locks of the one in memory, and of the one that HDF5 opens itself. */
extern char crash_dummy[64], crash_real[64];
extern unsigned crash_damages; /* random mixtures for each point */
/* Of each scenario so many are cut off at each of their operations; so many inside these; so many after a kill. */
extern unsigned crash_recoveries;
extern unsigned crash_every; /* the power goes only after every so many operations */

void crash_random(uint64_t seed);
/* Counts up TOTAL; says what is wrong on standard error, and in a line on standard output what was done. */
void crash_sweep(const crash_scenario *s, const recording *r, crash_totals *total);

#endif
