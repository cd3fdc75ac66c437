/* What `h5cow run` wants to know of the programs that it starts: the connector appends a record to the file that the
 * environment variable H5COW_WITNESS names, which `run` makes, reads and removes. Records end with a zero byte:
 *
 *   oNAME              a file was opened or created, or tried to be
 *   vNAME              a version of it was made or amended
 *   pSIZE TIME NAME    a file without history is about to be written for the first time; its size and the nanoseconds of
 *                      its last change by then (-1 -1: it does not exist), and its absolute name
 *   rNAME              another `run` has ended, and has said what there was to say
 *
 * Nothing fails for this. */
#ifndef COW_WITNESS_H
#define COW_WITNESS_H

#define COW_WITNESS_VARIABLE "H5COW_WITNESS"

typedef enum cow_witness_kind {
    COW_WITNESS_OPENED = 'o',
    COW_WITNESS_VERSION = 'v',
    COW_WITNESS_PLAIN = 'p',
    COW_WITNESS_RUN = 'r',
} cow_witness_kind;

void cow_witness(cow_witness_kind kind, const char *name);
/* The same of COW_WITNESS_PLAIN; found out here. */
void cow_witness_plain(const char *name);

struct stat;
/* The nanoseconds of a file's last change. */
long long cow_changed_at(const struct stat *about);

#endif
