/* Counts what HDF5 writes to a file, by standing in front of it: pwrite of this program comes before the C library's,
 * in libhdf5 and in the connector alike, so nothing has to be known of what runs there. The ranges below the former end
 * are kept, and compared with a copy of the former file afterwards: a journal has to store what is written over,
 * whether or not the bytes are new.
 *
 * Any write before the first disk_watch and after disk_result only passes through. One file at a time, one thread. */
#include "workload_disk.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct range {
    uint64_t begin, end;
} range;

static struct {
    const char *file, *former;
    struct stat before;
    range *ranges;
    size_t count, room;
} watch;

static void note(int fd, size_t size, off_t offset)
{
    struct stat now;
    uint64_t begin = (uint64_t)offset, end = begin + size;

    if (watch.file == NULL || fstat(fd, &now) != 0 || now.st_ino != watch.before.st_ino ||
        now.st_dev != watch.before.st_dev || begin >= (uint64_t)watch.before.st_size)
        return;
    if (watch.count == watch.room) {
        watch.room = 2 * watch.room + 64;
        if ((watch.ranges = realloc(watch.ranges, watch.room * sizeof *watch.ranges)) == NULL)
            err(1, "no memory for a list of writes");
    }
    if (end > (uint64_t)watch.before.st_size)
        end = (uint64_t)watch.before.st_size;
    watch.ranges[watch.count++] = (range){begin, end};
}

/* Both names, since it depends on how a library was built which of them it calls. */
ssize_t counted_pwrite(int fd, const void *bytes, size_t size, int64_t offset) __asm__("pwrite64");
ssize_t counted_pwrite_short(int fd, const void *bytes, size_t size, long offset) __asm__("pwrite");

ssize_t counted_pwrite(int fd, const void *bytes, size_t size, int64_t offset)
{
    note(fd, size, offset);
    return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

ssize_t counted_pwrite_short(int fd, const void *bytes, size_t size, long offset)
{
    return counted_pwrite(fd, bytes, size, offset);
}

void disk_copy(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ssize_t n;

    if (in < 0 || out < 0)
        err(1, "cannot copy %s to %s", from, to);
    while ((n = copy_file_range(in, NULL, out, NULL, 1 << 30, 0)) > 0)
        ;
    if (n < 0 || close(in) != 0 || close(out) != 0)
        err(1, "cannot copy %s to %s", from, to);
}

void disk_watch(const char *file, const char *former)
{
    disk_copy(file, former);
    if (stat(file, &watch.before) != 0)
        err(1, "%s", file);
    watch.file = file;
    watch.former = former;
    watch.count = 0;
}

static int by_begin(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static const uint8_t *map(const char *name, size_t size)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    void *bytes = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

    if (bytes == MAP_FAILED)
        err(1, "cannot read %s", name);
    close(fd);
    return bytes;
}

disk_count disk_result(void)
{
    disk_count count = {0};
    struct stat now;
    size_t size = (size_t)watch.before.st_size;
    uint64_t done = 0;
    const uint8_t *old, *new;

    if (stat(watch.file, &now) != 0)
        err(1, "%s", watch.file);
    if (now.st_size < watch.before.st_size)
        size = (size_t)now.st_size;
    else
        count.appended = (uint64_t)(now.st_size - watch.before.st_size);
    old = map(watch.former, size);
    new = map(watch.file, size);
    if (watch.count > 0)
        qsort(watch.ranges, watch.count, sizeof *watch.ranges, by_begin);
    for (size_t i = 0; i < watch.count; i++) {
        uint64_t begin = watch.ranges[i].begin > done ? watch.ranges[i].begin : done;
        for (; begin < watch.ranges[i].end; begin++) {
            count.overwritten++;
            count.changed += begin >= size || old[begin] != new[begin];
        }
        done = begin;
    }
    munmap((void *)(uintptr_t)old, size);
    munmap((void *)(uintptr_t)new, size);
    unlink(watch.former);
    watch.file = NULL;
    return count;
}

uint64_t disk_peak_memory(void)
{
    char line[256];
    unsigned long long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");

    /* ru_maxrss would do, had it not also what the parent held when it started this program */
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "VmHWM: %llu", &kib) == 1)
            break;
    if (status == NULL || kib == 0)
        errx(1, "/proc/self/status does not tell the peak of memory");
    fclose(status);
    return kib;
}
