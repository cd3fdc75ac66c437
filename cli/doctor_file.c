/* h5cow doctor FILE: has it a history, can one be read and written here, and if not, why. Changes nothing; locks are
 * asked about, and the one of HDF5 itself is taken for reading for a moment. */
#include "doctor.h"

#include "base/error.h"
#include "history/history.h"
#include "journal/inspect.h"
#include "journal/label.h"
#include "journal/locks.h"
#include "journal/protect.h"
#include "tables.h"
#include "waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The writer's lock: connector/journal/locks.h. */
#define LOCK_BYTE ((off_t)1 << 62)
/* HDF5 names a driver that makes files of its own kind here: in the superblock's driver information. */
#define DRIVER_WITHIN 65536

typedef struct patient {
    doctor *d;
    json_object *told; /* of this file */
    const char *name;  /* without a revision */
    bool history, journal;
} patient;

static void add(patient *p, const char *key, json_object *value)
{
    json_object_object_add(p->told, key, value);
}

/* ---- where it is ---- */

static const char *file_system(int fd)
{
    static const struct {
        unsigned long type;
        const char *name;
    } known[] = {{0xef53, "ext4"},         {0x58465342, "XFS"},     {0x9123683e, "Btrfs"}, {0x01021994, "tmpfs"},
                 {0x6969, "NFS"},          {0x65735546, "FUSE"},    {0x01021997, "9p"},    {0x0bd00bd0, "Lustre"},
                 {0xff534d42, "CIFS"},     {0xfe534d42, "SMB2"},    {0x517b, "SMB"},       {0x47504653, "GPFS"},
                 {0x2fc12fc1, "ZFS"},      {0x794c7630, "overlay"}, {0x4d44, "FAT"},       {0x2011bab0, "exFAT"},
                 {0x73717368, "squashfs"}, {0x9660, "ISO 9660"},    {0xf2f52010, "F2FS"}};
    struct statfs about;

    if (fstatfs(fd, &about) == 0)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (known[i].type == (unsigned long)about.f_type)
                return known[i].name;
    return "a file system without a known name";
}

/* Whether both kinds of locks answer: NULL, or why not. */
static const char *locks_fail(const cow_disk *disk)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};

    if (disk->calls->lock(disk->calls->context, disk->fd, F_OFD_GETLK, &lock) < 0)
        return strerror(errno);
    if (cow_lock_plain(disk, false) == 0)
        cow_lock_plain_stop(disk);
    else if (errno != EWOULDBLOCK)
        return strerror(errno);
    return NULL;
}

static void look_at_place(patient *p)
{
    const char *system, *why;
    bool doubtful;
    cow_disk disk;

    if (cow_disk_open(&disk, &cow_disk_system, p->name, O_RDONLY | O_NONBLOCK) < 0)
        return;
    system = file_system(disk.fd);
    doubtful = cow_lock_doubtful(&disk);
    why = locks_fail(&disk);
    cow_disk_close(&disk);
    doctor_say(p->d, "place", "%s; locks %s%s%s", system, why == NULL ? "work" : "do not work (",
               why == NULL ? "" : why, why == NULL ? "" : ")");
    if (doubtful)
        doctor_say(p->d, "",
                   "between machines locks may not be passed on: readers and a writer exclude each other here");
    add(p, "file_system", cli_json_text(system));
    add(p, "locks", why == NULL ? cli_json_text("work") : cli_json_text(why));
    add(p, "locks_between_machines", json_object_new_boolean(!doubtful));
    if (why != NULL && !cow_lock_excused())
        doctor_wrong(p->d,
                     "'%s' is on %s, where locks do not work (%s): writing is refused; where only one program uses the "
                     "file, set HDF5_USE_FILE_LOCKING=FALSE; else keep it on another file system",
                     p->name, system, why);
}

/* A protected file: true where that is all that keeps this user from writing it. */
static bool look_at_protection(patient *p)
{
    struct stat about;
    bool protected = cow_protection_of(p->name) != 0, own;

    add(p, "protected", json_object_new_boolean(protected));
    if (!protected || stat(p->name, &about) < 0)
        return false;
    own = about.st_uid == geteuid();
    doctor_say(p->d, "protection", "%s",
               geteuid() == 0
                   ? "protected: its owner writes it with h5cow alone; but permissions keep root from nothing"
               : own ? "protected: programs of this user write it with h5cow alone; 'h5cow unprotect' takes that back"
                     : "protected: its owner writes it with h5cow alone");
    if ((about.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) != 0)
        doctor_say(p->d, "",
                   "somebody may write it at present: 'h5cow run --writable' runs, or a program was killed as it "
                   "opened the file; the next one with h5cow takes that away");
    return own;
}

static void look_at_permission(patient *p)
{
    const bool protected = look_at_protection(p);
    struct statvfs about;
    bool read_only = statvfs(p->name, &about) == 0 && (about.f_flag & ST_RDONLY) != 0;
    const char *why = read_only ? "the file system is mounted read-only" : NULL;

    if (why == NULL && !protected && access(p->name, W_OK) != 0)
        why = strerror(errno);
    doctor_say(p->d, "writing", "%s", why == NULL ? "this user may write the file" : why);
    add(p, "may_write", json_object_new_boolean(why == NULL));
    if (why == NULL)
        return;
    add(p, "may_not_write", cli_json_text(why));
    doctor_wrong(p->d,
                 "'%s' cannot be written here (%s): it and its versions can be read, and no new version can be made",
                 p->name, why);
}

/* ---- what it is ---- */

/* The file driver that NAME is a part of, by the superblock: "family", "split or multi"; or NULL. */
static const char *made_by(const char *name)
{
    char *bytes = cli_alloc(DRIVER_WITHIN, 1);
    int file = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = file < 0 ? 0 : pread(file, bytes, DRIVER_WITHIN, 0);
    const char *driver = NULL;

    if (n > 0 && memmem(bytes, (size_t)n, "NCSAfami", 8) != NULL)
        driver = "family";
    else if (n > 0 && memmem(bytes, (size_t)n, "NCSAmult", 8) != NULL)
        driver = "split or multi";
    if (file >= 0)
        close(file);
    free(bytes);
    return driver;
}

static void without_history(patient *p, const cli_file *file, const char *driver)
{
    bool foreign = H5Lexists(file->id, COW_ROOT, H5P_DEFAULT) > 0;

    doctor_say(p->d, "history", "none");
    if (foreign)
        doctor_wrong(p->d,
                     "'%s' has a group /_versioned_data that h5cow did not make (versioned-hdf5 uses that name): h5cow "
                     "leaves the file alone",
                     p->name);
    else
        doctor_wrong(p->d,
                     "'%s' has no history, because it was created without h5cow, or with another file driver than the "
                     "default one (sec2): 'h5cow import %s' gives it one%s",
                     p->name, p->name,
                     driver == NULL ? "" : "; a program that opens it with another driver still writes it without");
}

static void with_history(patient *p, cli_file *file)
{
    char why[1200];
    cli_version *rows = NULL;
    size_t count = 0;

    if (cli_versions_read(file, &rows, &count, why, sizeof why) < 0) {
        doctor_say(p->d, "history", "cannot be read");
        doctor_wrong(p->d, "'%s' is damaged: %s; 'h5cow verify %s' says what is left", p->name, why, p->name);
        return;
    }
    json_object *versions = json_object_new_array();
    for (size_t i = 0; i < count; i++)
        if (rows[i].open != COW_LOG_FORGOTTEN)
            json_object_array_add(versions, cli_json_text(rows[i].name));
    add(p, "versions", versions);
    const size_t there = cli_versions_there(rows, count);
    if (count == 0)
        doctor_say(p->d, "history", "no version yet");
    else
        doctor_say(p->d, "history", "%zu version%s, the newest is '%s'%s; all of them: h5cow log %s", there,
                   there == 1 ? "" : "s", rows[count - 1].name,
                   rows[count - 1].open == COW_LOG_OPEN ? ", not finished by a close" : "", p->name);
    cli_versions_free(rows, count);
}

static void look_inside(patient *p, const char *argument, const char *driver)
{
    char why[1200];
    cli_file file;
    int versioned;

    if (cli_file_try(&file, argument, why, sizeof why) != 0) {
        const char *part_of = made_by(p->name);

        add(p, "opens", json_object_new_boolean(false));
        doctor_say(p->d, "history", "not known: the file cannot be opened");
        if (part_of != NULL)
            doctor_wrong(p->d,
                         "'%s' is a part of a file that was made with the file driver %s: such files have no history, "
                         "and are read and written by that driver only",
                         p->name, part_of);
        else
            doctor_wrong(p->d, "%s", why);
        return;
    }
    add(p, "opens", json_object_new_boolean(true));
    if ((versioned = cow_file_versioned(file.loc.object)) < 0) {
        cli_reason(why, sizeof why);
        doctor_say(p->d, "history", "one that cannot be used");
        doctor_wrong(p->d, "%s: %s", p->name, why);
    } else if (versioned == 0)
        without_history(p, &file, driver);
    else
        with_history(p, &file);
    p->history = versioned != 0;
    add(p, "history", json_object_new_boolean(p->history));
    cow_error_clear();
    cli_file_close(&file);
}

/* Of a history that it had before something destroyed it. */
static void look_at_label(patient *p)
{
    cow_label label;
    char text[400], *name;

    if (!cow_label_lost(p->name, &label))
        return;
    json_object *lost = json_object_new_object();
    json_object_object_add(lost, "versions", json_object_new_uint64(label.number));
    json_object_object_add(lost, "newest", cli_json_text(label.name));
    json_object_object_add(lost, "time", json_object_new_string(cli_time(text, label.time, CLI_UTC, true)));
    add(p, "lost_history", lost);
    name = cli_escape(cow_label_text(&label, text));
    doctor_say(p->d, "before", "a history%s%s", label.number > 0 ? "; its last version known is " : "",
               label.number > 0 ? name : "");
    doctor_wrong(
        p->d,
        "'%s' had a history%s%s, which is gone: a program without h5cow emptied the file or wrote it anew; if there "
        "is no copy of it, nothing brings it back. 'h5cow protect' keeps programs from that",
        p->name, label.number > 0 ? ", whose last version known is " : "", label.number > 0 ? name : "");
    free(name);
}

/* ---- its journal ---- */

static void look_at_journal(patient *p)
{
    const cow_journal_slot_note *slot;
    cow_journal_report r;
    char text[1024];

    if (cow_journal_inspect(p->name, &r) < 0) {
        cli_reason(text, sizeof text);
        doctor_say(p->d, "journal", "cannot be looked at: %s", text);
        return;
    }
    p->journal = r.journal;
    slot = r.newest < 0 ? NULL : &r.slot[r.newest];
    add(p, "bytes", json_object_new_uint64(r.size));
    add(p, "journal", json_object_new_boolean(r.journal));
    add(p, "unfinished", json_object_new_boolean(r.unfinished));
    add(p, "pending", json_object_new_uint64(slot == NULL ? 0 : slot->sequence - slot->applied));
    add(p, "half_applied", json_object_new_boolean(r.flagged));
    add(p, "writer", r.writing ? cli_json_text(r.writer) : NULL);
    add(p, "readers_of_older_states", json_object_new_uint64(r.pins));
    if (r.unfinished) {
        doctor_say(p->d, "journal", "the file was being created, and nothing was ever committed");
        if (!r.writing)
            doctor_wrong(p->d,
                         "'%s' holds nothing: the program that created it died before it committed anything; the next "
                         "one may create it anew",
                         p->name);
    } else if (!r.journal)
        doctor_say(p->d, "journal", "none");
    else if (slot == NULL)
        doctor_say(p->d, "journal", "damaged");
    else if (slot->sequence == slot->applied && !r.flagged)
        doctor_say(p->d, "journal", "nothing is pending");
    else {
        char *waiting = cli_waiting_text(p->name, &r);

        if (waiting != NULL)
            doctor_say(p->d, "journal", "%s", waiting);
        if (r.flagged)
            doctor_say(
                p->d, waiting == NULL ? "journal" : "",
                "half applied: HDF5 without h5cow refuses the file, until 'h5cow apply %s', or the next program that "
                "writes the file",
                p->name);
        add(p, "why_pending", waiting == NULL ? NULL : cli_json_text(waiting));
        free(waiting);
    }
    if (r.hidden || (r.journal && !r.unfinished &&
                     (r.newest < 0 || (!r.whole[r.newest] && !r.slot[r.newest].unsynced) || r.size < slot->end)))
        doctor_wrong(p->d, "'%s' is damaged: its journal cannot be used; 'h5cow recover %s' says more", p->name,
                     p->name);
    if (r.writing)
        doctor_say(p->d, "writer",
                   "%s has the file open for writing; readers through h5cow see the newest commit, a second "
                   "writer is refused",
                   r.writer);
    else
        doctor_say(p->d, "writer", "nobody%s", r.journal ? "" : " that h5cow knows of");
    if (r.pins > 0)
        doctor_say(p->d, "", "%zu state%s %s open in readers", r.pins, r.pins == 1 ? "" : "s",
                   r.pins == 1 ? "is" : "are");
    cow_journal_report_free(&r);
}

/* ---- drivers ---- */

/* In its place h5cow writes files with history. The environment can only say core with backing store, or without by
 * HDF5_DRIVER_CONFIG, which is not refused either. */
static bool keeps_history(const char *driver)
{
    static const char *const names[] = {"stdio", "direct", "log", "core"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(driver, names[i]) == 0)
            return true;
    return false;
}

static void look_at_driver(patient *p, const char *driver)
{
    if (!p->history)
        return;
    doctor_say(
        p->d, "drivers",
        "sec2, HDF5's default, keeps the history; so do stdio, direct, log and core, in whose place h5cow writes the "
        "file; core without backing store changes it in memory only, and makes no version; all others read the file, "
        "and are refused for writing");
    if (driver != NULL && !keeps_history(driver))
        doctor_wrong(
            p->d,
            "HDF5_DRIVER=%s: programs in this environment can read '%s', and are refused when they open it for "
            "writing; unset HDF5_DRIVER",
            driver, p->name);
    if (!p->journal)
        doctor_wrong(
            p->d,
            "'%s' has a history but no journal, as what h5repack writes: it cannot be written, since its history would "
            "not be safe, and its versions perhaps not be read; for a new history that begins with its newest state: "
            "h5cow import %s OUT",
            p->name, p->name);
}

/* Nothing has that name. It may be one that a driver makes other names of. */
static void look_for_parts(patient *p)
{
    static const char *const parts[] = {"-m.h5", "-s.h5"};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *part = cli_format("%s%s", p->name, parts[i]);
        bool there = access(part, F_OK) == 0;

        if (there)
            doctor_wrong(p->d, "there is no file '%s', but '%s': a file of the file driver %s, which has no history",
                         p->name, part, i == 0 ? "split" : "multi");
        free(part);
        if (there)
            return;
    }
    if (strchr(p->name, '%') != NULL)
        doctor_wrong(
            p->d, "there is no file '%s': it looks like a name for the file driver family, whose files have no history",
            p->name);
    else
        doctor_wrong(p->d, "there is no file '%s'", p->name);
}

void doctor_file(doctor *d, const char *argument, const char *driver)
{
    patient p = {.d = d, .told = json_object_new_object()};
    const char *at = strrchr(argument, '@');
    char *name = at != NULL && at != argument && access(argument, F_OK) != 0
                     ? strndup(argument, (size_t)(at - argument))
                     : cli_strdup(argument);
    struct stat about;

    p.name = name == NULL ? argument : name;
    json_object_object_add(d->whole, "file", p.told);
    add(&p, "name", cli_json_text(p.name));
    doctor_say(d, "file", "%s", p.name);
    if (stat(p.name, &about) != 0) {
        if (errno == ENOENT)
            look_for_parts(&p);
        else
            doctor_wrong(d, "cannot look at '%s': %s", p.name, strerror(errno));
    } else if (!S_ISREG(about.st_mode))
        doctor_wrong(d, "'%s' is not a file", p.name);
    else if (access(p.name, R_OK) != 0)
        doctor_wrong(d, "cannot read '%s': %s", p.name, strerror(errno));
    else if (about.st_size == 0) {
        look_at_label(&p);
        doctor_wrong(d,
                     "'%s' is empty: a program that opens it for writing through h5cow makes a file with history of it",
                     p.name);
    } else {
        look_at_journal(&p);
        look_inside(&p, argument, driver);
        look_at_label(&p);
        look_at_driver(&p, driver);
        look_at_place(&p);
        look_at_permission(&p);
    }
    free(name);
}
