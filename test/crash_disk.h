/* A disk for crash tests: a file in memory, under the journal's table of system calls, that logs every write, change of
 * size and sync, so that any part of them can be done again, or lost. */
#ifndef CRASH_DISK_H
#define CRASH_DISK_H

#include "die.h"
#include "journal/disk.h"

typedef enum op_kind { OP_WRITE, OP_TRUNCATE, OP_EXTEND, OP_SYNC, OP_FAILED_SYNC } op_kind;

typedef struct op {
    op_kind kind;
    size_t offset, size; /* OP_TRUNCATE: size; OP_EXTEND: at least that */
    uint8_t *bytes;
} op;

typedef struct image {
    uint8_t *data;
    size_t size, capacity;
} image;

typedef struct span {
    uint64_t address, length;
} span;

typedef struct span_list {
    span *span;
    size_t count, capacity;
} span_list;

/* Something was reported when so many operations were done. STATE: a scenario's own number, 0: it has none. CLOSED:
 * nobody had the file open. */
typedef struct mark {
    size_t ops;
    int state;
    bool closed;
} mark;

#define MARKS_MAX 4096

/* What a scenario did; in memory that its child processes share. */
typedef struct recording {
    size_t op_count, mark_count, bytes_used;
    mark marks[MARKS_MAX];
    int opened; /* descriptors */
    op *ops;
    uint8_t *bytes;
} recording;

typedef struct memory {
    image file;
    bool real; /* the file is a real one, which is only watched */
    bool log;
    recording *recording; /* where to log; NULL: in ops */
    op *ops;
    size_t op_count, op_capacity;
    span_list *reads; /* where reads are noted, or NULL */
    int fail_sync;    /* > 0: the sync of that number fails */
} memory;

extern memory disk;
/* On `disk`, whatever file is opened. */
extern const cow_disk_calls memory_calls;
/* Under all files that the connector opens from now on. NULL: the system's. */
void calls_for_all(const cow_disk_calls *calls);

void image_resize(image *i, size_t size);
void image_copy(image *to, const image *from);
void image_put(image *i, size_t offset, const uint8_t *bytes, size_t size);
void image_perform(image *i, const op *o);
/* A real file of these bytes. */
void image_save(const image *i, const char *path);
void image_load(image *i, const char *path);

/* One recording for the process: emptied. */
recording *recording_start(void);
void recording_mark(int state);
void forget_ops(op *ops, size_t count);

#endif
