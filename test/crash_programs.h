/* The programs under which the power is cut. ONLY: a name, NULL: all. They count up TOTAL. */
#ifndef CRASH_PROGRAMS_H
#define CRASH_PROGRAMS_H

#include "crash_sweep.h"

/* HDF5 and the journal. */
void crash_journal(const char *only, crash_totals *total);
/* The whole connector: the scenarios of scenarios.h. */
void crash_connector(const char *only, crash_totals *total);
/* H5Fcreate over a file that is put aside: "names". */
void crash_names(const char *only, crash_totals *total);

#endif
