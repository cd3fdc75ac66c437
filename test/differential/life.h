/* What surrounds a program: the library it starts and closes, the processes it goes on in, the drivers of its files. */
#ifndef DIFFERENTIAL_LIFE_H
#define DIFFERENTIAL_LIFE_H

#include "run.h"

extern const char *const sides[]; /* what they are called, and their folders */

/* What is registered with the library, and the property lists of the run. */
void start_library(void);
void end_library(void);
/* No file is open: now and then the library is closed, or another process goes on. */
void go_on_elsewhere(void);

/* For the file to come: its driver, and its names. Other drivers than sec2 make files without history. */
void choose_driver(void);
/* Property lists to open or create it with, drawn again each time; what they are goes into the record. The caller's to close. */
pair file_access(bool writable);
/* The file, on both sides, with what its datasets keep outside. */
void unlink_files(void);

#endif
