/* New files: see newfile.h. */
#include "base/newfile.h"

#include "base/descriptor.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPEN_FILES "/proc/self/fd/"

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');

    return slash == NULL ? name : slash + 1;
}

/* Of the folder that NAME is in: "", "/", "a/b/". */
static int folder_length(const char *name)
{
    return (int)(last_part(name) - name);
}

/* ---- making and naming ---- */

/* NAME NULL: a random one. */
static int make(cow_newfile *new, const char *target, const char *name)
{
    *new = (cow_newfile){.file = -1, .target = strdup(target)};
    if (new->target == NULL ||
        asprintf(&new->name, "%.*s%s", folder_length(target), target, name == NULL ? ".h5cow-XXXXXX.tmp" : name) < 0) {
        new->name = NULL;
        cow_newfile_drop(new);
        return cow_error(COW_MEMORY, "no memory for the name of a file");
    }
    /* O_EXCL is implied in the former, and 0600 */
    new->file = cow_above_standard(
        name == NULL ? mkostemps(new->name, strlen(".tmp"), O_CLOEXEC | O_NOFOLLOW)
                     : open(new->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    if (new->file < 0) {
        cow_error(COW_IO, "cannot create '%s': %s", name == NULL ? target : new->name, strerror(errno));
        free(new->name);
        new->name = NULL;
        cow_newfile_drop(new);
        return -1;
    }
    if (asprintf(&new->path, OPEN_FILES "%d", new->file) < 0) {
        new->path = NULL;
        cow_newfile_drop(new);
        return cow_error(COW_MEMORY, "no memory for the name of a file");
    }
    if (access(new->path, F_OK) < 0) {
        cow_error(COW_IO, "'%s' cannot be made: /proc is needed for that, and is not there", target);
        cow_newfile_drop(new);
        return -1;
    }
    return 0;
}

int cow_newfile_make(cow_newfile *new, const char *target)
{
    return make(new, target, NULL);
}

int cow_newfile_make_as(cow_newfile *new, const char *target, const char *name)
{
    char *left = NULL;
    struct stat about;

    if (asprintf(&left, "%.*s%s", folder_length(target), target, name) < 0)
        return cow_error(COW_MEMORY, "no memory for the name of a file");
    if (lstat(left, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == geteuid())
        unlink(left); /* else the next call says that it is in the way */
    free(left);
    return make(new, target, name);
}

/* Is the file still the one at its name? Else somebody else's would be given the target's. */
static bool still_there(const cow_newfile *new)
{
    struct stat ours, there;

    return fstat(new->file, &ours) == 0 && lstat(new->name, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* Never over a file that exists. */
static int rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(from, to) < 0) /* a file system that does not know the former */
        return -1;
    unlink(from);
    return 0;
}

static void sync_folder(const char *name)
{
    char *folder;
    int file;

    if (asprintf(&folder, "%.*s.", folder_length(name), name) < 0)
        return;
    if ((file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        fsync(file); /* the file has its name, and nothing can be taken back */
        close(file);
    }
    free(folder);
}

bool cow_newfile_is(const char *path)
{
    return strncmp(path, OPEN_FILES, strlen(OPEN_FILES)) == 0;
}

int cow_newfile_place(cow_newfile *new, bool replace)
{
    if (fsync(new->file) < 0)
        return cow_error(COW_IO, "cannot bring '%s' onto the disk: %s", new->target, strerror(errno));
    if (!still_there(new))
        return cow_error(COW_IO, "'%s' was not made: somebody took away the file '%s' that was to become it",
                         new->target, new->name);
    if ((replace ? rename(new->name, new->target) : rename_new(new->name, new->target)) < 0)
        return errno == EEXIST ? cow_error(COW_USAGE, "'%s' exists: nothing was changed", new->target)
                               : cow_error(COW_IO, "cannot name the new file '%s': %s", new->target, strerror(errno));
    sync_folder(new->target);
    free(new->name);
    new->name = NULL;
    return 0;
}

void cow_newfile_drop(cow_newfile *new)
{
    if (new->name != NULL && still_there(new))
        unlink(new->name);
    if (new->file >= 0)
        close(new->file);
    free(new->target);
    free(new->name);
    free(new->path);
    *new = COW_NEWFILE_NONE;
}

int cow_newfile_user_block(int file, const char *source, uint64_t bytes)
{
    char buffer[65536];
    int in = open(source, O_RDONLY | O_CLOEXEC), status = in < 0 ? -1 : 0;

    for (uint64_t at = 0; status == 0 && at < bytes;) {
        ssize_t n = pread(in, buffer, bytes - at < sizeof buffer ? bytes - at : sizeof buffer, (off_t)at);

        errno = n == 0 ? EIO : errno; /* it is shorter by now */
        if (n <= 0 || pwrite(file, buffer, (size_t)n, (off_t)at) != n)
            status = -1;
        else
            at += (uint64_t)n;
    }
    if (status < 0)
        cow_error(COW_IO, "the user block cannot be copied: %s", strerror(errno));
    if (in >= 0)
        close(in); /* takes no lock away: HDF5's is on another description */
    return status;
}

char *cow_name_beside(const char *name, const char *suffix)
{
    int before = folder_length(name);
    size_t length = strlen(name + before), more = strlen(suffix);
    char *folder = strndup(name, (size_t)before), *joined = NULL;
    long limit = folder == NULL ? -1 : pathconf(before == 0 ? "." : folder, _PC_NAME_MAX);
    size_t most = limit < 32 ? NAME_MAX : (size_t)limit;

    if (length + more > most && more < most) {
        length = most - more;
        while (length > 0 && ((unsigned char)name[(size_t)before + length] & 0xc0) == 0x80)
            length--; /* not inside of a character */
    }
    if (folder != NULL && asprintf(&joined, "%s%.*s%s", folder, (int)length, name + before, suffix) < 0)
        joined = NULL;
    free(folder);
    return joined;
}

/* ---- owner, permissions, attributes ---- */

static bool is_access_list(const char *name)
{
    return strcmp(name, "system.posix_acl_access") == 0 || strcmp(name, "system.nfs4_acl") == 0 ||
           strcmp(name, "system.richacl") == 0;
}

/* What the system makes of the bytes of a file, or of the folder that it is in. */
static bool is_of_the_system(const char *name)
{
    return !is_access_list(name) && (strncmp(name, "system.", 7) == 0 || strcmp(name, "security.capability") == 0 ||
                                     strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0);
}

/* true: FILE has the attribute NAME of SOURCE now. */
static bool keep_attribute(int file, const char *source, const char *name)
{
    ssize_t size = getxattr(source, name, NULL, 0), there;
    char *value = size < 0 ? NULL : malloc(2 * (size_t)size + 1);
    bool kept = false;

    if (value != NULL && (size = getxattr(source, name, value, (size_t)size)) >= 0) {
        there = fgetxattr(file, name, value + size, (size_t)size);
        kept = (there == size && memcmp(value, value + size, (size_t)size) == 0) ||
               fsetxattr(file, name, value, (size_t)size, 0) == 0;
    }
    free(value);
    return kept;
}

/* LISTS: whether they may be kept. *NARROW: SOURCE has lists that FILE has not. */
static bool keep_attributes(int file, const char *source, bool lists, bool *narrow)
{
    ssize_t all = listxattr(source, NULL, 0);
    char *names = all > 0 ? malloc((size_t)all) : NULL;
    bool kept = all == 0 || (all < 0 && errno == ENOTSUP);

    *narrow = !kept; /* unless it turns out that there are none */
    if (names != NULL && (all = listxattr(source, names, (size_t)all)) >= 0) {
        kept = true;
        *narrow = false;
        for (const char *name = names; name < names + all; name += strlen(name) + 1) {
            bool list = is_access_list(name);
            if (is_of_the_system(name) || strcmp(name, COW_LABEL) == 0 ||
                ((!list || lists) && keep_attribute(file, source, name)))
                continue;
            kept = false;
            *narrow |= list;
        }
    }
    free(names);
    return kept;
}

int cow_newfile_like(int file, const char *source)
{
    struct stat old, now;
    bool group = true, kept = true, narrow;
    mode_t mode, both;

    if (stat(source, &old) < 0 || fstat(file, &now) < 0)
        return cow_error(COW_IO, "cannot find out who may use '%s': %s", source, strerror(errno));
    mode = old.st_mode & 07777;
    if ((now.st_uid != old.st_uid || now.st_gid != old.st_gid) && fchown(file, old.st_uid, old.st_gid) < 0) {
        kept = now.st_uid == old.st_uid; /* the group is looked at below */
        group = now.st_gid == old.st_gid || fchown(file, (uid_t)-1, old.st_gid) == 0;
        mode &= ~(mode_t)(S_ISUID | (group ? 0 : S_ISGID));
    }
    fremovexattr(file, "system.posix_acl_access"); /* which the folder gave it */
    if (!keep_attributes(file, source, kept && group, &narrow))
        kept = false;
    if (narrow) {
        mode &= ~(mode_t)(S_IRWXG | S_IRWXO | S_ISGID);
    } else if (!group) { /* the members of both groups are now what others were, or the other way round */
        both = (mode >> 3) & mode & S_IRWXO;
        mode = (mode & ~(mode_t)(S_IRWXG | S_IRWXO)) | both << 3 | both;
    }
    if (fstat(file, &now) == 0 && now.st_uid != old.st_uid) /* the former owner is one of the group or of the others */
        mode &= ~(mode_t)(S_IRWXG | S_IRWXO) | (mode & S_IRWXU) >> 3 | (mode & S_IRWXU) >> 6;
    if (fchmod(file, mode) < 0)
        return cow_error(COW_IO, "cannot set the permissions of a new file: %s", strerror(errno));
    return kept && group;
}
