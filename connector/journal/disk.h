/* The system calls of the journal, through a table: tests record them, let them fail, or keep the file in memory.
 *
 * A cow_disk is one open descriptor. Reads and writes are whole: after EINTR or a short transfer they go on.
 * Functions return 0 or -1 and an error that names the file. */
#ifndef COW_JOURNAL_DISK_H
#define COW_JOURNAL_DISK_H

#include "journal/pages.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

/* More than 20 fields: one for each system call. The same meaning, results and errno. CONTEXT is that of cow_disk_calls. */
typedef struct cow_disk_calls {
    void *context;
    int (*open)(void *context, const char *name, int flags, mode_t mode);
    int (*close)(void *context, int fd);
    ssize_t (*pread)(void *context, int fd, void *buffer, size_t size, off_t offset);
    ssize_t (*pwrite)(void *context, int fd, const void *buffer, size_t size, off_t offset);
    int (*fdatasync)(void *context, int fd);
    int (*ftruncate)(void *context, int fd, off_t size);
    int (*fallocate)(void *context, int fd, off_t offset, off_t size);
    int (*fstat)(void *context, int fd, struct stat *about);
    int (*stat)(void *context, const char *name, struct stat *about);
    int (*lock)(void *context, int fd, int command, struct flock *lock); /* fcntl, F_OFD_SETLK or F_OFD_GETLK */
    int (*flock)(void *context, int fd, int operation);
    int (*start_sync)(void *context, int fd, off_t offset, off_t size); /* NULL: not done */
    int (*sync_folder)(void *context, const char *name); /* fsync of the folder that NAME is in; NULL: not done */
    int (*unlink)(void *context, const char *name);      /* NULL, and the next: not done */
    int (*rename)(void *context, const char *from, const char *to);
    int (*hole)(void *context, int fd, off_t offset, off_t size); /* fallocate, FALLOC_FL_PUNCH_HOLE; NULL: not done */
    int (*chmod)(void *context, int fd, mode_t mode);             /* fchmod; NULL: not done */
    int (*times)(void *context, int fd, const struct timespec times[2]); /* futimens; NULL: not done */
    ssize_t (*preadv)(void *context, int fd, const struct iovec *parts, int n, off_t offset); /* NULL: by pread */
    ssize_t (*get_label)(void *context, int fd, void *value, size_t size);   /* fgetxattr, fsetxattr of "user.h5cow"; */
    int (*set_label)(void *context, int fd, const void *value, size_t size); /* NULL: not done. label.h */
    /* fallocate, FALLOC_FL_KEEP_SIZE; also EFBIG where this process may not write so far. NULL: not done */
    int (*ahead)(void *context, int fd, off_t offset, off_t size);
} cow_disk_calls;

/* The system's own. */
extern const cow_disk_calls cow_disk_system;

typedef struct cow_disk {
    const cow_disk_calls *calls;
    int fd;           /* -1: closed */
    int zero;         /* some who ask the driver for FD read 8 bytes: PyTables. Directly behind it */
    const char *name; /* for messages; owned by whoever opened */
    cow_pages *pages; /* cow_disk_remember; NULL: nothing is remembered */
} cow_disk;

/* -1: errno says why, nothing is recorded. O_CLOEXEC is added, and for reading O_NONBLOCK. */
int cow_disk_open(cow_disk *disk, const cow_disk_calls *calls, const char *name, int flags);
void cow_disk_close(cow_disk *disk);
/* From here on nobody changes what cow_disk_recall reads but by this cow_disk; the file has SIZE bytes. It is remembered, and what cow_disk_put writes waits. */
void cow_disk_remember(cow_disk *disk, uint64_t size);
/* This process is the child: the parent writes what waits, and goes on writing. */
void cow_disk_forked(cow_disk *disk);

/* SIZE bytes from ADDRESS; what lies beyond the end of the file is zeros. */
int cow_disk_read(const cow_disk *disk, uint64_t address, void *buffer, size_t size);
/* The same, of what may have been read before: not for what another process may have written. */
int cow_disk_recall(const cow_disk *disk, uint64_t address, void *buffer, size_t size);
/* The same for N places in memory that are filled one after the other, on any thread. Records no error. False: not all of it could be
 * read, or the file ends before. */
bool cow_disk_read_parts(const cow_disk *disk, uint64_t address, const struct iovec parts[], size_t n);
int cow_disk_write(const cow_disk *disk, uint64_t address, const void *buffer, size_t size);
/* The same of what no state of the file needs before the next cow_disk_settle or cow_disk_sync: it may wait until then, with others of the same pages, and is lost with
 * the process. An error may be that of an earlier one. */
int cow_disk_put(const cow_disk *disk, uint64_t address, const void *buffer, size_t size);
/* None of SIZE bytes from ADDRESS waits any more. */
int cow_disk_settle(const cow_disk *disk, uint64_t address, uint64_t size);
/* Of SIZE bytes that the file has with what waits: how many it must have without. */
uint64_t cow_disk_written(const cow_disk *disk, uint64_t size);
int cow_disk_sync(const cow_disk *disk);
/* The disk may begin with whole pages of what cow_disk_sync will wait for; pages that are written again before that it does
 * twice, and later. Tells nothing, not even an error: that is cow_disk_sync's. */
void cow_disk_start_sync(const cow_disk *disk, uint64_t from, uint64_t to);
int cow_disk_truncate(const cow_disk *disk, uint64_t size);
/* Bring onto the disk that there is a file of that name: syncing a file says nothing of its name. Folders that cannot be
 * synced are no error. */
int cow_disk_sync_folder(const cow_disk_calls *calls, const char *name);
/* Room for what will be written; a file system that cannot reserve is no error. */
int cow_disk_reserve(const cow_disk *disk, uint64_t address, uint64_t size);
/* Room beyond the end of the file, which stays where it is. 1; 0: nothing of the kind can be had here; -1: there is none, errno
 * says why, nothing is recorded. */
int cow_disk_ahead(const cow_disk *disk, uint64_t address, uint64_t size);
/* Nothing that is there is needed: the file system may have it. It reads as zeros then, or as it was; being unable is no error. */
void cow_disk_hole(const cow_disk *disk, uint64_t address, uint64_t size);
int cow_disk_about(const cow_disk *disk, struct stat *about);
/* Has the file NAME a label (label.h)? */
bool cow_disk_labelled(const char *name);

/* Is TEXT, of at most 64 characters, in the first MOST bytes of a regular file (a little further at most)? 1 or 0; -1: it cannot be
 * read, errno says why, nothing is recorded. */
int cow_disk_mentions(const cow_disk_calls *calls, const char *name, const char *text, uint64_t most);

#endif
