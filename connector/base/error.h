/* One error doctrine for every room.
 *
 * A function that can fail returns 0 (or a pointer) on success and -1 (or NULL) on failure. The function that knows
 * what went wrong says so once with cow_error(): what happened, where (file, object, version, chunk), and what the
 * user can do. Callers return -1 and, only where they know something the message lacks, add it with cow_context().
 * Nothing is put on HDF5's error stack until the callback leaves (cow_error_publish), because every public HDF5 call
 * made while cleaning up would clear that stack. Thread-local, so worker threads may fail as well: the thread that
 * started them carries the message over (cow_error_take, cow_error_give).
 */
#ifndef COW_ERROR_H
#define COW_ERROR_H

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>

typedef enum cow_kind {
    COW_USAGE,       /* the caller asked for something that makes no sense: bad option, bad revision */
    COW_NOT_FOUND,   /* no such object, version, file */
    COW_READ_ONLY,   /* a write where nothing may be written */
    COW_CORRUPT,     /* bytes in the file are not what was written */
    COW_IO,          /* the system failed to read or write */
    COW_MEMORY,      /* no memory */
    COW_UNSUPPORTED, /* a good request that h5cow cannot serve: missing filter, newer format */
} cow_kind;

/* Record an error, unless one is already recorded (the first is the cause; a later one becomes context). Always -1. */
int cow_error(cow_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add a line of context above the recorded error. Always -1. */
int cow_context(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The recorded error knows what, and not where: PLACE goes in front of its message ("PLACE: message"), unless it is in
 * it already. Of a native error, whose records are HDF5's, "PLACE: DOING" is context. Always -1. */
int cow_error_where(const char *place, const char *doing);

/* The recorded error belongs to the file NAME: its message, or that of a native error a line of context, says so unless
 * it does already. Only errors of the system and the lack of memory: who made a mistake knows the file. */
void cow_error_in_file(const char *name);
/* In what is recorded, BEFORE becomes AFTER: the name of a thing that was found out later. */
void cow_error_replace(const char *before, const char *after);

/* A call to the HDF5 library underneath has just failed: take over its error stack as the cause, with the message as
 * context above it. Call it before any other HDF5 call. Always -1. */
int cow_error_native(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The records of HDF5's stack, which is empty then: an id, to be given back; H5I_INVALID_HID where there are none. Records that
 * HDF5 could not empty are dropped: when the library closes and has lost a file, H5FL_fac_term leaves two of a class of errors
 * that no longer exists, H5E_clear_stack stops at them for the rest of the program, and to copy what it has half emptied above
 * them crashes. */
hid_t cow_errors_take(void);
/* Instead of what the stack has now, where RECORDS is an id. */
void cow_errors_give_back(hid_t records);
/* How many records HDF5's stack has; and those that came since go, of a question that was answered: bindings take the innermost one for the
 * reason of what fails later. Where the stack is full they stay: of soft links in a circle HDF5 follows no more in the same call of the program, and
 * what fails later would have fewer records than natively. */
size_t cow_errors_count(void);
void cow_errors_drop(size_t before);

/* What the lowest record of HDF5's stack says, in TEXT, and the stack is empty: of a driver's record what failed and why,
 * without the time and the addresses of buffers. */
void cow_error_lowest(char *text, size_t size);

bool cow_error_pending(void);
/* Is the recorded error one of HDF5's, of a filter, and not also of its metadata? */
bool cow_error_of_filters(void);
/* Is an error of this kind recorded? */
bool cow_error_is(cow_kind kind);
/* The lowest recorded message ("" if none): for tests and for the command line. */
const char *cow_error_message(void);
void cow_error_clear(void);

/* Callbacks can be entered while one of ours is at work (HDF5 closes ids): what is recorded then is not theirs to
 * forget. NULL when nothing is recorded (nearly always). Put back: instead of what is recorded now; frees HELD. */
typedef struct cow_error_held cow_error_held;
cow_error_held *cow_error_hold(void);
void cow_error_put_back(cow_error_held *held);

/* Move the recorded error out of this thread, and into another one. The box is owned by the caller; give empties it. */
typedef struct cow_error_box {
    bool set;
    cow_kind kind;
    char message[1024];
} cow_error_box;
void cow_error_take(cow_error_box *box);
int cow_error_give(cow_error_box *box);

/* Put the recorded error on HDF5's default error stack, lowest record first, and forget it. Called last in a VOL
 * callback. Does nothing when no error is recorded (then the stack is as the library underneath left it). */
void cow_error_publish(void);

#endif
