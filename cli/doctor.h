/* What the parts of `h5cow doctor` share: what is told, line by line and for JSON, and what is wrong. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "common.h"

typedef struct doctor {
    bool json;
    json_object *whole, *problems;
} doctor;

/* doctor_say.c. A line "KEY  text"; KEY "" goes on with the one before. With --json nothing. */
void doctor_say(const doctor *d, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* A problem: what, where, what to do; without the full stop at its end. */
void doctor_wrong(doctor *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* One file, or FILE@REV: doctor_file.c. DRIVER: the one that the environment gives programs, or NULL: the default one.
 */
void doctor_file(doctor *d, const char *argument, const char *driver);

/* Runs COMMAND, and says what it has loaded: doctor_program.c. Before HDF5 is used here. */
void doctor_program(doctor *d, char **command);

#endif
