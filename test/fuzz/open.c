/* A whole file as the journal sees it: opened by a reader and by a writer, which recovers it. The input is a list of
 * patches (where, how many bytes, the bytes) of a file with a pending commit, and what is to be sealed again. */
#include "fuzz.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "h5/checksum.h"
#include "h5/superblock.h"
#include "journal/fence.h"
#include "journal/internal.h"
#include "journal/record.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define ROOM 65536 /* the file never grows larger: a write beyond is "disk full" */

static uint8_t healthy[ROOM], file[ROOM];
static size_t healthy_size, file_size;
static char name[64];

static int file_open(void *context, const char *path, int flags, mode_t mode)
{
    (void)context;
    return open(path, flags, mode);
}
static int file_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}
static ssize_t file_pread(void *context, int fd, void *buffer, size_t size, off_t offset)
{
    size_t at = (size_t)offset;

    (void)context, (void)fd;
    if (at >= file_size)
        return 0;
    if (size > file_size - at)
        size = file_size - at;
    memcpy(buffer, file + at, size);
    return (ssize_t)size;
}
static int grow_to(size_t size)
{
    if (size > ROOM) {
        errno = ENOSPC;
        return -1;
    }
    if (size > file_size)
        memset(file + file_size, 0, size - file_size);
    return 0;
}
static ssize_t file_pwrite(void *context, int fd, const void *buffer, size_t size, off_t offset)
{
    (void)context, (void)fd;
    if ((size_t)offset > ROOM || size > ROOM || grow_to((size_t)offset + size) < 0) {
        errno = ENOSPC;
        return -1;
    }
    memcpy(file + offset, buffer, size);
    if ((size_t)offset + size > file_size)
        file_size = (size_t)offset + size;
    return (ssize_t)size;
}
static int file_fdatasync(void *context, int fd)
{
    (void)context, (void)fd;
    return 0;
}
static int file_ftruncate(void *context, int fd, off_t size)
{
    (void)context, (void)fd;
    if (size < 0 || grow_to((size_t)size) < 0)
        return -1;
    file_size = (size_t)size;
    return 0;
}
static int file_fallocate(void *context, int fd, off_t offset, off_t size)
{
    (void)context, (void)fd;
    if (offset > ROOM || size > ROOM || grow_to((size_t)(offset + size)) < 0) {
        errno = ENOSPC;
        return -1;
    }
    if ((size_t)(offset + size) > file_size)
        file_size = (size_t)(offset + size);
    return 0;
}
static int file_fstat(void *context, int fd, struct stat *about)
{
    (void)context;
    if (fstat(fd, about) < 0)
        return -1;
    about->st_size = (off_t)file_size;
    return 0;
}
static int file_stat(void *context, const char *path, struct stat *about)
{
    (void)context;
    return stat(path, about);
}
static int file_lock(void *context, int fd, int command, struct flock *lock)
{
    (void)context;
    return fcntl(fd, command, lock);
}
static int file_flock(void *context, int fd, int operation)
{
    (void)context;
    return flock(fd, operation);
}

static const cow_disk_calls calls = {.open = file_open,
                                     .close = file_close,
                                     .pread = file_pread,
                                     .pwrite = file_pwrite,
                                     .fdatasync = file_fdatasync,
                                     .ftruncate = file_ftruncate,
                                     .fallocate = file_fallocate,
                                     .fstat = file_fstat,
                                     .stat = file_stat,
                                     .lock = file_lock,
                                     .flock = file_flock};

/* Superblock, anchor, two slots, something, an extent that is not applied. */
static void make_healthy(void)
{
    cow_anchor anchor = {.id = "0123456789abcde"};
    cow_journal_extent extent = {.sequence = 2, .after = 1, .end = 16384, .extension = COW_NOWHERE};
    cow_overlay *frames = cow_overlay_new();
    uint8_t superblock[48] = "\211HDF\r\n\032\n\3\10\10", *bytes;
    cow_journal_slot slot = {
        .generation = 2, .sequence = 1, .applied = 1, .end = 16384, .extension = COW_NOWHERE, .protect = 16384};
    size_t size;

    cow_anchor_place(&anchor, 0, 512, 1);
    cow_put64(superblock + 28, 16384);
    cow_put64(superblock + 36, 12288);
    cow_superblock_set(superblock, anchor.address + COW_SECTOR, false);
    memset(healthy, 'a', 16384);
    memcpy(healthy, superblock, 48);
    cow_anchor_encode(&anchor, healthy + anchor.address);
    cow_fence_make(healthy + anchor.address + COW_SECTOR, 1024, NULL);
    memcpy(slot.superblock, superblock, 48);
    cow_journal_slot_encode(&slot, &anchor, healthy + anchor.slot[0]);
    memcpy(healthy + anchor.slot[0] + COW_SECTOR, healthy + anchor.slot[0], COW_SECTOR);
    cow_overlay_write(frames, 0, superblock, 48);
    cow_overlay_write(frames, 13000, "changed", 7);
    if (cow_journal_extent_encode(&extent, &anchor, frames, &bytes, &size) < 0)
        abort();
    cow_overlay_free(frames);
    memcpy(healthy + 16384, bytes, size);
    slot.generation = 3;
    slot.sequence = 2;
    slot.extent = (cow_journal_extent_name){.address = 16384, .length = size};
    cow_journal_extent_hash(bytes, size, slot.extent.hash);
    cow_journal_slot_encode(&slot, &anchor, healthy + anchor.slot[1]);
    memcpy(healthy + anchor.slot[1] + COW_SECTOR, healthy + anchor.slot[1], COW_SECTOR);
    free(bytes);
    healthy_size = 16384 + size;
    snprintf(name, sizeof name, "/tmp/fuzz-open.%d", (int)getpid());
    int fd = open(name, O_RDWR | O_CREAT, 0600); /* carries the locks */
    if (fd < 0 || write(fd, "x", 1) != 1)
        abort();
    close(fd);
}

static void remove_name(void)
{
    unlink(name);
}

static void read_all(cow_journal *journal)
{
    uint8_t *bytes;
    uint64_t end = cow_journal_end(journal);

    assert(end < ROOM * 2);
    if ((bytes = malloc((size_t)end + 1)) == NULL)
        abort();
    cow_journal_read(journal, 0, bytes, (size_t)end);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cow_journal_options options = cow_journal_defaults;
    cow_journal *journal;
    size_t at = 1;
    int number;

    if (healthy_size == 0) {
        make_healthy();
        atexit(remove_name);
    }
    memcpy(file, healthy, healthy_size);
    file_size = healthy_size;
    while (at + 3 <= size) {
        size_t place = cow_get16(data + at), length = data[at + 2] % 64;
        at += 3;
        for (; length > 0 && at < size && place < file_size; length--)
            file[place++] = data[at++];
    }
    if (size > 0 && (data[0] & 1))
        cow_journal_extent_hash(file + 16384, healthy_size - 16384, file + 8192 + 88);
    for (size_t slot = 4096; size > 0 && slot <= 8192; slot += 4096)
        if (data[0] & (slot >> 11)) {
            cow_put64(file + slot + 504, cow_checksum(file + slot, 504));
            memcpy(file + slot + 512, file + slot, 512);
        }
    if (size > 0 && (data[0] & 8))
        cow_put64(file + 2048 + 504, cow_checksum(file + 2048, 504));
    if (size > 0 && (data[0] & 16) && cow_superblock_size(file) > 0)
        cow_put32(file + cow_superblock_size(file) - 4, cow_metadata_checksum(file, cow_superblock_size(file) - 4));
    if (size > 0 && (data[0] & 32))
        file_size -= (size_t)data[size - 1] * 16 < file_size ? (size_t)data[size - 1] * 16 : 0;
    options.calls = &calls;
    for (int writable = 0; writable < 2; writable++) {
        if ((journal = cow_journal_open(name, (cow_journal_mode){.writable = writable}, &options, &number)) != NULL) {
            read_all(journal);
            if (writable && !cow_journal_plain(journal)) {
                cow_journal_write(journal, 13100, "written", 7);
                cow_journal_commit(journal, false);
            }
            cow_journal_close(journal);
        }
        cow_error_clear();
    }
    return 0;
}

size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    static const uint8_t patch[] = {1 | 2 | 4, 0x58, 0x40, 4, 0, 0, 1, 0, 0x48, 0x20, 2, 1, 2};

    (void)room;
    if (n > 0)
        return 0;
    memcpy(to, patch, sizeof patch);
    return sizeof patch;
}
