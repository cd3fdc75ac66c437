/* What `h5cow run` wants to know of the programs that it starts: the connector appends a record to the file that the
 * environment variable H5COW_WITNESS names, which `run` makes, reads and removes. Records end with a zero byte:
 *
 *   oNAME              a file was opened or created, or tried to be
 *   v                  a version was made or amended, in memory
 *   vID VERSION        a version was made or amended in the history of that identity (32 digits): how it is called
 *   pSIZE TIME NAME    a file without history is about to be written for the first time; its size and the nanoseconds of
 *                      its last change by then (-1 -1: it does not exist), and its absolute name
 *   xN NAME WHAT       what was written to the file (N bytes of name) is lost, or may be: what and why, said already by the
 *                      program on standard error
 *   XN NAME WHAT       the same; another `run` has said it
 *   fN NAME WHY        the file (N bytes of name) could not be opened, since somebody else has it; without WHY: now it could
 *   rNAME              another `run` has ended, and has said what there was to say
 *   lPID VERSION INSTANCE N M NAME PLUGIN WHY
 *                      a libhdf5 has asked for the connector: its release, its file (N bytes), the plugin's (M bytes), and
 *                      the letter of cow_instance that tells which instance serves it, or '-' and why none does
 *   LPID ...           the same; another `run` has said what there was to say
 *
 * The file is executable where an x could not be written in full. Nothing fails for this. */
#ifndef COW_WITNESS_H
#define COW_WITNESS_H

#include <stdbool.h>

#define COW_WITNESS_VARIABLE "H5COW_WITNESS"

typedef enum cow_witness_kind {
    COW_WITNESS_OPENED = 'o',
    COW_WITNESS_VERSION = 'v',
    COW_WITNESS_PLAIN = 'p',
    COW_WITNESS_LOST = 'x',
    COW_WITNESS_LOST_TOLD = 'X',
    COW_WITNESS_REFUSED = 'f',
    COW_WITNESS_RUN = 'r',
    COW_WITNESS_LIBRARY = 'l',
    COW_WITNESS_LIBRARY_TOLD = 'L',
} cow_witness_kind;

/* Which instance of the plugin serves a library: plugin.c. */
typedef enum cow_instance {
    COW_INSTANCE_NONE = '-',
    COW_INSTANCE_FILE = 'f',   /* the file itself */
    COW_INSTANCE_MEMORY = 'm', /* a copy of it in memory */
    COW_INSTANCE_FOLDER = 't', /* a copy in a temporary folder, gone again */
} cow_instance;

void cow_witness(cow_witness_kind kind, const char *name);
/* The same of COW_WITNESS_PLAIN; found out here. */
void cow_witness_plain(const char *name);
/* The same of COW_WITNESS_LOST, COW_WITNESS_LOST_TOLD and COW_WITNESS_REFUSED. */
void cow_witness_lost(cow_witness_kind kind, const char *name, const char *what);
/* A program may not look at what H5Fclose returns, or never call it: what of the file NAME is lost, or may be, and why, is
 * said on standard error as well, in one line, and `run` hears of it. */
void cow_tell_lost(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One line on standard error, of what is no loss: a close that has failed after its commit, a history that was lost before. */
void cow_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool cow_tells(void);
/* From now on neither of the two: this process says itself what fails. They never are of a file that has not got its name
 * (newfile.h). */
void cow_tell_nothing(void);
/* Of the process PID. */
void cow_witness_library(cow_witness_kind kind, long pid, const char *version, cow_instance instance, const char *name,
                         const char *plugin, const char *why);

struct stat;
/* The nanoseconds of a file's last change. */
long long cow_witness_changed_at(const struct stat *about);

#endif
