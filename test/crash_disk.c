/* Contract: crash_disk.h. */
#include "crash_disk.h"

#include "journal/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#define OPS_MAX   ((size_t)1 << 20)
#define BYTES_MAX ((size_t)4 << 30) /* address space: memory only for what is used */

memory disk;

/* ---- images ---- */

void image_resize(image *i, size_t size)
{
    if (size > i->capacity) {
        i->capacity = size * 2;
        i->data = need(realloc(i->data, i->capacity));
    }
    if (size > i->size)
        memset(i->data + i->size, 0, size - i->size);
    i->size = size;
}

void image_copy(image *to, const image *from)
{
    if (from->size > to->capacity)
        image_resize(to, from->size);
    to->size = from->size;
    if (from->size > 0)
        memcpy(to->data, from->data, from->size);
}

void image_put(image *i, size_t offset, const uint8_t *bytes, size_t size)
{
    if (offset + size > i->size)
        image_resize(i, offset + size);
    memcpy(i->data + offset, bytes, size);
}

void image_perform(image *i, const op *o)
{
    switch (o->kind) {
    case OP_WRITE:
        image_put(i, o->offset, o->bytes, o->size);
        break;
    case OP_TRUNCATE:
        image_resize(i, o->size);
        break;
    case OP_EXTEND:
        if (o->size > i->size)
            image_resize(i, o->size);
        break;
    case OP_SYNC:
    case OP_FAILED_SYNC:
        break;
    }
}

void image_save(const image *i, const char *path)
{
    FILE *out = fopen(path, "w");

    if (out == NULL || (i->size > 0 && fwrite(i->data, 1, i->size, out) != i->size) || fclose(out) != 0)
        die("%s", path);
}

void image_load(image *i, const char *path)
{
    FILE *in = fopen(path, "r");
    struct stat about;

    if (in == NULL || fstat(fileno(in), &about) < 0)
        die("%s", path);
    image_resize(i, (size_t)about.st_size);
    if (i->size > 0 && fread(i->data, 1, i->size, in) != i->size)
        die("%s", path);
    fclose(in);
}

/* ---- the log ---- */

static void *shared(size_t size)
{
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return need(block == MAP_FAILED ? NULL : block);
}

recording *recording_start(void)
{
    static recording *r;

    if (r == NULL) {
        r = shared(sizeof *r);
        r->ops = shared(OPS_MAX * sizeof *r->ops);
        r->bytes = shared(BYTES_MAX);
    }
    r->op_count = r->mark_count = r->bytes_used = 0;
    r->opened = 0;
    return r;
}

void recording_mark(int state)
{
    recording *r = disk.recording;

    if (r->mark_count == MARKS_MAX)
        die("too many marks");
    r->marks[r->mark_count++] = (mark){r->op_count, state, r->opened == 0};
}

static op *next_op(void)
{
    recording *r = disk.recording;

    if (r != NULL) {
        if (r->op_count == OPS_MAX)
            die("too many operations");
        return &r->ops[r->op_count++];
    }
    if (disk.op_count == disk.op_capacity) {
        disk.op_capacity = disk.op_capacity == 0 ? 1024 : disk.op_capacity * 2;
        disk.ops = need(realloc(disk.ops, disk.op_capacity * sizeof *disk.ops));
    }
    return &disk.ops[disk.op_count++];
}

static void note(op_kind kind, size_t offset, size_t size, const void *bytes)
{
    op *o;

    if (!disk.log)
        return;
    o = next_op();
    *o = (op){kind, offset, size, NULL};
    if (kind != OP_WRITE)
        return;
    if (disk.recording != NULL) {
        o->bytes = disk.recording->bytes + disk.recording->bytes_used;
        disk.recording->bytes_used += size;
    } else
        o->bytes = need(malloc(size + 1));
    memcpy(o->bytes, bytes, size);
}

void forget_ops(op *ops, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(ops[i].bytes);
    free(ops);
}

/* ---- system calls ---- */

static int memory_open(void *context, const char *name, int flags, mode_t mode)
{
    int fd = open(name, flags, mode);

    (void)context;
    if (fd >= 0 && disk.recording != NULL)
        disk.recording->opened++;
    return fd;
}
static int memory_close(void *context, int fd)
{
    (void)context;
    if (disk.recording != NULL)
        disk.recording->opened--;
    return close(fd);
}
static ssize_t memory_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    size_t at = (size_t)offset;

    (void)context;
    if (disk.real)
        return pread(fd, buffer, size, offset);
    if (disk.reads != NULL) {
        span_list *l = disk.reads;
        if (l->count == l->capacity) {
            l->capacity = l->capacity == 0 ? 256 : l->capacity * 2;
            l->span = need(realloc(l->span, l->capacity * sizeof *l->span));
        }
        l->span[l->count++] = (span){at, size};
    }
    if (at >= disk.file.size)
        return 0;
    if (size > disk.file.size - at)
        size = disk.file.size - at;
    memcpy(buffer, disk.file.data + at, size);
    return (ssize_t)size;
}
static ssize_t memory_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    (void)context;
    note(OP_WRITE, (size_t)offset, size, buffer);
    if (disk.real)
        return pwrite(fd, buffer, size, offset);
    image_put(&disk.file, (size_t)offset, buffer, size);
    return (ssize_t)size;
}
static int memory_fdatasync(void *context, int fd)
{
    (void)context;
    (void)fd;
    if (disk.fail_sync > 0 && --disk.fail_sync == 0) {
        note(OP_FAILED_SYNC, 0, 0, NULL);
        errno = EIO;
        return -1;
    }
    note(OP_SYNC, 0, 0, NULL);
    return 0;
}
static int memory_ftruncate(void *context, int fd, off_t size)
{
    (void)context;
    note(OP_TRUNCATE, 0, (size_t)size, NULL);
    if (disk.real)
        return ftruncate(fd, size);
    image_resize(&disk.file, (size_t)size);
    return 0;
}
static int memory_fallocate(void *context, int fd, off_t offset, off_t size)
{
    (void)context;
    note(OP_EXTEND, 0, (size_t)(offset + size), NULL);
    if (disk.real)
        return fallocate(fd, 0, offset, size);
    if ((size_t)(offset + size) > disk.file.size)
        image_resize(&disk.file, (size_t)(offset + size));
    return 0;
}
/* As bytes that are written: whether they arrive nobody knows. */
static int memory_hole(void *context, int fd, off_t offset, off_t size)
{
    uint8_t *zeros = need(calloc(1, (size_t)size));
    ssize_t done = memory_pwrite(context, fd, zeros, (size_t)size, offset);

    free(zeros);
    return done == (ssize_t)size ? 0 : -1;
}
static int memory_fstat(void *context, int fd, struct stat *about)
{
    (void)context;
    if (fstat(fd, about) < 0)
        return -1;
    if (!disk.real)
        about->st_size = (off_t)disk.file.size;
    return 0;
}
static int memory_stat(void *context, const char *name, struct stat *about)
{
    (void)context;
    return stat(name, about);
}
static int memory_lock(void *context, int fd, int command, struct flock *lock)
{
    (void)context;
    return fcntl(fd, command, lock);
}
static int memory_flock(void *context, int fd, int operation)
{
    (void)context;
    return flock(fd, operation);
}

const cow_disk_calls memory_calls = {.open = memory_open,
                                     .close = memory_close,
                                     .pread = memory_pread,
                                     .pwrite = memory_pwrite,
                                     .fdatasync = memory_fdatasync,
                                     .ftruncate = memory_ftruncate,
                                     .fallocate = memory_fallocate,
                                     .fstat = memory_fstat,
                                     .stat = memory_stat,
                                     .lock = memory_lock,
                                     .flock = memory_flock,
                                     .hole = memory_hole};

void calls_for_all(const cow_disk_calls *calls)
{
    cow_journal_use_calls(calls);
}
