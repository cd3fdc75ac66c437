/* The file that a verb writes: see output.h. */
#include "output.h"

#include "base/error.h"
#include "common.h"
#include "history/history.h"
#include "journal/inspect.h"
#include "journal/journal.h"
#include "journal/label.h"
#include "journal/locks.h"
#include "journal/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what stands at its name ---- */

static const char *kind_of(mode_t mode)
{
    return S_ISLNK(mode)    ? "a symbolic link"
           : S_ISDIR(mode)  ? "a folder"
           : S_ISFIFO(mode) ? "a named pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

int cli_output_absent(const char *out)
{
    struct stat there;

    if (lstat(out, &there) == 0)
        return cli_fail("'%s' exists%s%s: choose another name; nothing is ever overwritten", out,
                        S_ISREG(there.st_mode) ? "" : ", and is ",
                        S_ISREG(there.st_mode) ? "" : kind_of(there.st_mode));
    return 0;
}

/* 1, 0; -1 and said why. Of a file that is open in FILE. */
static int has_history(const char *out)
{
    int found = cow_journal_present(out) ? 1 : cli_is_hdf5(out);

    if (found > 0 && !cow_journal_present(out))
        found = cow_disk_mentions(&cow_disk_system, out, COW_GROUP,
                                  UINT64_MAX); /* what h5repack writes, or a damaged one */
    if (found < 0)
        cli_fail("'%s' cannot be replaced: %s", out, strerror(errno));
    return found;
}

/* Locks as a writer takes them; they go when the descriptor is closed. */
static int lock(const cow_disk *disk, bool writable)
{
    char text[1024], writer[256];
    uint64_t pin;

    if (!writable && cow_lock_is_writing(disk)) {
        cow_lock_describe_writer(disk, writer, sizeof writer);
        return cli_fail("'%s' is not replaced: %s is writing it", disk->name, writer);
    }
    if (writable && cow_lock_writer(disk, 0) < 0)
        return cli_fail("it is not replaced: %s", cli_reason(text, sizeof text));
    if (cow_lock_lowest_pin(disk, &pin) == 0 && pin != UINT64_MAX)
        return cli_fail("'%s' is not replaced: another program has it open: try again when it is closed", disk->name);
    if (cow_lock_plain(disk, true) == 0 || cow_lock_excused())
        return 0;
    if (errno == EWOULDBLOCK)
        return cli_fail("'%s' is not replaced: another program has it open: try again when it is closed", disk->name);
    return cli_fail("'%s' is not replaced, since it cannot be locked (%s), and another program might be using it; if "
                    "none does, set HDF5_USE_FILE_LOCKING=FALSE",
                    disk->name, strerror(errno));
}

int cli_output_claim(cli_output *output, const char *out, bool discard)
{
    cow_disk disk = {.calls = &cow_disk_system, .fd = -1, .name = out};
    bool writable = true;
    struct stat there;
    int history;

    if (lstat(out, &there) < 0)
        return errno == ENOENT ? 0 : cli_fail("cannot look at '%s': %s", out, strerror(errno));
    if (!S_ISREG(there.st_mode))
        return cli_fail("'%s' is %s, and only a regular file is replaced: choose another name", out,
                        kind_of(there.st_mode));
    /* by now it may be something else */
    disk.fd = cow_protection_open(out, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (disk.fd < 0 && (errno == EACCES || errno == EPERM || errno == EROFS)) {
        writable = false;
        disk.fd = open(out, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (disk.fd < 0)
        return cli_fail("'%s' cannot be replaced: %s", out, strerror(errno));
    output->old = disk.fd;
    if (fstat(disk.fd, &there) < 0 || !S_ISREG(there.st_mode))
        return cli_fail("'%s' is not a regular file any more: nothing was changed", out);
    if (lock(&disk, writable) != 0)
        return CLI_FAILED;
    if ((history = has_history(out)) < 0)
        return CLI_FAILED;
    if (history > 0 && !discard)
        return cli_fail("'%s' has a history, which would be lost: choose another name, or say --discard-history as "
                        "well as --force",
                        out);
    return 0;
}

/* ---- the new file ---- */

static char *volatile unfinished; /* removed by a signal that ends this process, */
static pid_t owner;               /* not one that it has started */

static void remove_and_end(int number)
{
    if (unfinished != NULL && getpid() == owner)
        unlink(unfinished);
    raise(number); /* as without this handler, which is gone */
}

/* It has its name, or is no more. A signal may come at any moment before. */
static void finished(void)
{
    char *name = unfinished;

    unfinished = NULL;
    free(name);
}

/* NAME NULL: a random one. */
static int make(cli_output *output, const char *out, const char *name)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGPIPE};
    struct sigaction action = {.sa_handler = remove_and_end, .sa_flags = (int)SA_RESETHAND}, now;
    sigset_t all, before;
    char text[1024];
    int status = 0;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before); /* none may come while nobody knows the name */
    if ((name == NULL ? cow_newfile_make(&output->new, out) : cow_newfile_make_as(&output->new, out, name)) < 0)
        status = cli_fail("%s", cli_reason(text, sizeof text));
    owner = getpid();
    if (status == 0)
        unfinished = cli_strdup(output->new.name);
    for (size_t i = 0; status == 0 && i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(ending[i], &action, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

int cli_output_make(cli_output *output, const char *out)
{
    return make(output, out, NULL);
}

int cli_output_make_as(cli_output *output, const char *out, const char *name)
{
    return make(output, out, name);
}

/* Whoever might not read the file that is replaced may not read the new one. */
static int narrow(const cli_output *output)
{
    struct stat old, new, there;

    if (fstat(output->old, &old) < 0 || fstat(output->new.file, &new) < 0 ||
        fchmod(output->new.file,
               new.st_mode &cow_protection_mode(old.st_mode, cow_protection_of(output->new.target)) & 07777) < 0)
        return cli_fail("cannot set the permissions of '%s': %s", output->new.target, strerror(errno));
    if (lstat(output->new.target, &there) < 0 || there.st_dev != old.st_dev || there.st_ino != old.st_ino)
        return cli_fail("'%s' is not the file any more that was to be replaced: nothing was changed",
                        output->new.target);
    return 0;
}

/* SOURCE is protected (WITHHELD, protect.h), so it has no permission to write, and the new file was given none. One without history has
 * what SOURCE would have without protection. KEPT: as cow_newfile_like answered; else only its owner may ever write it. */
static int settle_protection(const cli_output *output, unsigned withheld, bool history, bool kept)
{
    struct stat about;
    char text[1024];

    if (history && !kept && cow_protect_as(output->new.path, COW_PROTECTED_FOR_OWNER) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    if (!history && (fstat(output->new.file, &about) < 0 ||
                     fchmod(output->new.file,
                            cow_protection_mode(about.st_mode & 07777, kept ? withheld : COW_PROTECTED_FOR_OWNER)) < 0))
        return cli_fail("cannot set the permissions of '%s': %s", output->new.target, strerror(errno));
    return 0;
}

int cli_output_same_history(const cli_output *output, const char *source)
{
    cow_journal_identity identity;
    char text[1024];

    if (cow_journal_identify(source, &identity) && cow_journal_identify_as(output->new.path, identity.id) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    return 0;
}

/* What the label of SOURCE says is true of the new file, if that has the same history. What its own says, which it got while it was
 * written, may be of the history that it had then. */
static void keep_label(const cli_output *output, const char *source)
{
    cow_journal_identity identity;
    cow_label label;
    bool same;

    if (!cow_journal_identify(output->new.path, &identity))
        return;
    same = cow_label_of(source, &label) && memcmp(identity.id, label.history, sizeof identity.id) == 0;
    if (same || (cow_label_of(output->new.path, &label) && memcmp(identity.id, label.history, sizeof identity.id) != 0))
        cow_label_copy(same ? source : NULL, output->new.file);
}

int cli_output_place(cli_output *output, const char *source)
{
    cow_disk new = {.calls = &cow_disk_system, .fd = output->new.file, .name = output->new.target};
    const unsigned withheld = cow_protection_of(source);
    const bool history = withheld != 0 && cow_journal_present(output->new.path);
    char text[1024];
    int kept;

    if (history && cow_protection_of(output->new.path) == 0 && cow_protect_as(output->new.path, withheld) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    if ((kept = cow_newfile_like(output->new.file, source)) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    keep_label(output, source);
    if (withheld != 0 && settle_protection(output, withheld, history, kept != 0) != 0)
        return CLI_FAILED;
    if (output->old >= 0 && narrow(output) != 0)
        return CLI_FAILED;
    /* Who opens it under its name before that is on the disk might write, and a power cut would bring back the old file. */
    if (output->old >= 0 && cow_lock_writer(&new, 0) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    if (cow_newfile_place(&output->new, output->old >= 0) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    finished();
    if (kept == 0)
        cli_warn("owner, group or extended attributes of '%s' could not all be kept in '%s': look who may use it",
                 source, output->new.target);
    return 0;
}

void cli_output_drop(cli_output *output)
{
    cow_newfile_drop(&output->new);
    finished();
    if (output->old >= 0)
        close(output->old);
    *output = CLI_OUTPUT_NONE;
}
