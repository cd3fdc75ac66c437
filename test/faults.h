/* Faults that a test lets happen below the connector: system calls of the journal (faults_calls is to be given to
 * cow_journal_use_calls), and what the connector itself asks of the C library (the linker's --wrap=malloc and the rest of
 * the list in meson.build; libhdf5 is another object, so its own memory is not touched). Also a list of the connector's
 * live memory, and the HDF5 calls of the program under test. */
#ifndef COW_TEST_FAULTS_H
#define COW_TEST_FAULTS_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- faults ---- */

typedef enum fault_call {
    CALL_OPEN = 1,
    CALL_READ = 2,
    CALL_WRITE = 4,
    CALL_SYNC = 8,
    CALL_TRUNCATE = 16,
    CALL_ALLOCATE = 32,
    CALL_FSTAT = 64,
    CALL_STAT = 128,
    CALL_LOCK = 256,
    CALL_FLOCK = 512,
    CALL_MEMORY = 1024, /* malloc and what else allocates */
    CALL_THREAD = 2048, /* pthread_create */
} fault_call;

typedef enum fault_way {
    FAULT_FAIL,  /* -1 and errno */
    FAULT_SHORT, /* half of the bytes */
    FAULT_TORN,  /* half of the bytes; the next call fails with errno */
    FAULT_OTHER, /* -1 and errno; "for ever" means every other call */
} fault_way;

typedef struct fault_class {
    const char *name;
    unsigned calls; /* which ones, fault_call */
    fault_way way;
    int number;  /* errno */
    bool unseen; /* nobody must notice */
} fault_class;

extern const struct cow_disk_calls faults_disk;

/* From now on the call number NTH (from 1) of those that CLASS is about fails; with EVER all that follow as well.
 * NTH 0: none fails, they are only counted. Only calls made in an HDF5 call of the program are looked at. */
void faults_arm(const fault_class *class, unsigned nth, bool ever);
void faults_disarm(void);
/* Meanwhile nothing fails, and nothing is counted. */
void faults_hold(bool held);
/* Calls of CLASS since faults_arm; before faults_disarm. */
unsigned faults_count(const fault_class *class);
/* Where in the program the first fault happened: return addresses, relative to where it was loaded. */
unsigned faults_where(uintptr_t at[], unsigned room);
/* Addresses of a backtrace as such ones. Returns how many. */
unsigned faults_relative(void *const at[], unsigned depth, uintptr_t relative[]);
/* Tell of the next COUNT faults on stderr, with what has called. */
void faults_trace(unsigned count);

/* The disk is full after so many pages of 4 KiB, -1: never. Pages that the file NAME has already are its own. */
void faults_quota(const char *name, long pages);
/* The most pages that the file had at any time since. */
long faults_pages(void);

/* Live memory of the connector, in blocks; AT: who asked for the newest of them. */
size_t faults_live(uintptr_t at[], unsigned room);

/* ---- calls of the program ---- */

typedef enum faults_kind {
    FAULTS_WORKS,
    FAULTS_FLUSHES,     /* commits what was done so far */
    FAULTS_CLOSES_FILE, /* likewise */
    FAULTS_CLOSES,      /* is made after an error as well, and where it fails once more */
} faults_kind;

/* May this call, which is about ID, be made? In faults.c. */
bool faults_before(faults_kind kind, hid_t id, const char *name);
int64_t faults_after(int64_t result);

/* How many such calls are under way, one in the other. */
extern unsigned faults_inside;

#endif
