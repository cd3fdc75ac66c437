/* h5cow gc --compact: see compact.h.
 *
 *   claim       nobody else writes the file: locked until the end
 *   look        it has a history, which can be carried over whole, and there is room for a second one
 *   make        all of it into a new file beside: the engine of `recover FILE OUT` (recover.h); and the times of the objects
 *   compare     the new file verified; newest state and every version hashed in both, and the shapes of chunks compared
 *   place       owner, permissions, attributes; onto the disk; renamed over the old one
 *
 * What fails before the last step leaves the file as it was. */
#include "compact.h"

#include "common.h"
#include "compact_tree.h"
#include "hash.h"
#include "output.h"
#include "plugin.h"
#include "progress.h"
#include "recover.h"
#include "tables.h"

#include "base/error.h"
#include "history/history.h"
#include "journal/locks.h"
#include "journal/protect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- the old file ---- */

/* The lock goes when OUTPUT is dropped, and with the last process that has started here. */
static int claim(cli_output *output, const char *name, unsigned wait, struct stat *about)
{
    cow_disk disk = {.calls = &cow_disk_system, .name = name};
    struct stat there;
    char text[1024];

    output->old = disk.fd = cow_protection_open(name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (disk.fd < 0 || fstat(disk.fd, about) < 0)
        return cli_fail("'%s' cannot be compacted: %s", name, strerror(errno));
    if (!S_ISREG(about->st_mode))
        return cli_fail("'%s' is not a regular file", name);
    if (about->st_nlink > 1)
        return cli_fail("'%s' has %llu names (hard links); all but this one would go on leading to the file as it is, "
                        "and the two would part: nothing was changed; remove the other names, or 'h5cow recover' it "
                        "into a new file",
                        name, (unsigned long long)about->st_nlink);
    if (cow_lock_writer(&disk, wait * 1000) < 0)
        return cli_fail("%s", cli_wait_reason(text, sizeof text));
    if (cow_lock_doubtful(&disk) && cow_lock_against_writer(&disk) < 0) /* else nobody could read it, we neither */
        return cli_fail("%s", cli_reason(text, sizeof text));
    if (cow_lock_plain(&disk, false) < 0 && errno == EWOULDBLOCK)
        return cli_fail("'%s' is being written by a program without h5cow: nothing was changed; try again when it is "
                        "closed",
                        name);
    if (lstat(name, &there) < 0 || there.st_dev != about->st_dev || there.st_ino != about->st_ino ||
        fstat(disk.fd, about) < 0)
        return cli_fail("'%s' was replaced a moment ago: nothing was changed; try again", name);
    return 0;
}

static int look_at_journal(const char *name)
{
    cow_journal_report look;
    char text[1024];

    if (cow_journal_inspect(name, &look) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    cow_journal_report_free(&look);
    if (look.unfinished)
        return cli_fail("'%s' holds nothing: the program that created it died before its first commit", name);
    if (look.hidden || (look.journal && look.newest < 0))
        return cli_fail("'%s' is damaged: nothing was changed; try: h5cow recover", name);
    if (!look.journal && cow_disk_mentions(&cow_disk_system, name, COW_GROUP, UINT64_MAX) == 0)
        return cli_fail("'%s' has no history, so nothing of it can be given back: h5repack makes plain files smaller",
                        name);
    return 0;
}

/* That versions are incomplete, and why, is told by addresses of the old file. */
static int look_for_lacks(const cli_file *file, const cli_version *rows, size_t count)
{
    cli_lack *lacks = NULL;
    size_t lacking = 0;
    char why[1024];
    int status = 0;

    if (cli_lacks_read(file, &lacks, &lacking, why, sizeof why) < 0)
        status = cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", file->name, why);
    for (size_t i = 0; status == 0 && i < lacking; i++)
        if (lacks[i].version >= count && lacks[i].head != UINT64_MAX)
            continue; /* no link leads to it, so it is in no version and not in the new file */
        else if (lacks[i].version >= count)
            status = cli_fail("'%s': its newest state has what no version has yet: nothing was changed; let a program "
                              "write it through h5cow, then try again",
                              file->name);
        else if (rows[lacks[i].version].open != COW_LOG_FORGOTTEN)
            status = cli_fail("'%s': version %s was made without %s (%s), which the new file could not say: nothing "
                              "was changed; forget that version first",
                              file->name, rows[lacks[i].version].name,
                              lacks[i].path[0] == '\0' ? "something" : lacks[i].path, lacks[i].reason);
    cli_lacks_free(lacks, lacking);
    return status;
}

/* A new file as large as the old one would fit. What is not enough in the end is found when it is written. */
static int look_for_room(const cli_output *output, const struct stat *about)
{
    struct statvfs room;
    uint64_t stored = (uint64_t)about->st_blocks * 512, size = (uint64_t)about->st_size, need, free_bytes;
    char text[2][32];

    need = stored < size ? stored : size;
    if (fstatvfs(output->old, &room) < 0)
        return 0;
    free_bytes = (uint64_t)room.f_bavail * room.f_frsize;
    if (free_bytes >= need)
        return 0;
    return cli_fail(
        "no room for a second file beside the old one: it may need %s, and %s are free: nothing was changed; "
        "'h5cow gc' without --compact needs none",
        cli_bytes(text[0], (double)need), cli_bytes(text[1], (double)free_bytes));
}

/* ---- is the new one equal? ---- */

/* The versions of both files that are compared: ROW NULL: the newest state. */
static int compare_state(cli_state file[2], cli_hash_known *known[2], const char *version)
{
    uint8_t hash[2][HASH];
    int status = 0;

    for (int exact = 0; status == 0 && exact < 2; exact++) {
        for (int i = 0; status == 0 && i < 2; i++) {
            cli_state state;
            if ((status = cli_state_version(&state, &file[i], version)) == 0) {
                status = cli_hash_state(&state, file[i].file.name, exact ? NULL : known[i], hash[i]);
                cli_state_close(&state);
            }
        }
        if (status == 0 && memcmp(hash[0], hash[1], HASH) == 0)
            return 0;
    }
    return status != 0 ? status
                       : cli_fail("%s%s of '%s' would not be the same in the new file: nothing was changed; please "
                                  "report this",
                                  version == NULL ? "the newest state" : "version ", version == NULL ? "" : version,
                                  file[0].file.name);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* With what: of versions that are forgotten, the smallest file does not say it. */
static bool same_program(const cli_version *a, const cli_version *b)
{
    return same_text(a->host, b->host) && same_text(a->program, b->program) && same_text(a->hdf5, b->hdf5) &&
           same_text(a->h5cow, b->h5cow);
}

static bool same_row(const cli_version *a, const cli_version *b)
{
    bool forgotten = a->open == COW_LOG_FORGOTTEN;

    return same_text(a->name, b->name) && a->parent == b->parent && a->time == b->time && same_text(a->user, b->user) &&
           same_text(a->message, b->message) && forgotten == (b->open == COW_LOG_FORGOTTEN) &&
           (forgotten || same_program(a, b));
}

static int compare_logs(const cli_state file[2], const cli_version *const rows[2], const size_t count[2])
{
    cli_lack *lacks = NULL;
    size_t lacking = 0;
    char why[1024];
    bool same =
        count[0] == count[1] && cli_lacks_read(&file[1].file, &lacks, &lacking, why, sizeof why) == 0 && lacking == 0;

    for (size_t i = 0; same && i < count[0]; i++)
        same = same_row(&rows[0][i], &rows[1][i]);
    cli_lacks_free(lacks, lacking);
    return same ? 0
                : cli_fail("the log of '%s' would not be the same in the new file: nothing was changed; please report "
                           "this",
                           file[0].file.name);
}

/* ROWS: of the old file. */
static int compare(const char *name, const cli_version *rows, size_t count, const char *new)
{
    cli_state file[2];
    cli_hash_known *known[2];
    json_object *damages, *counts;
    cli_version *own = NULL;
    size_t owned = 0;
    char why[1024];
    int status = cli_verify_file(new, false, &damages, &counts);

    if (status == 0 && json_object_array_length(damages) > 0) {
        json_object *what = NULL;
        json_object_object_get_ex(json_object_array_get_idx(damages, 0), "what", &what);
        status = cli_fail("the new file would be damaged (%s): nothing was changed; please report this",
                          json_object_get_string(what));
    }
    json_object_put(damages);
    json_object_put(counts);
    if (status != 0 || cli_state_open(&file[0], "gc", name, NULL) != 0)
        return CLI_FAILED;
    if (cli_state_open(&file[1], "gc", new, NULL) != 0) {
        cli_state_close(&file[0]);
        return CLI_FAILED;
    }
    if (cli_versions_read(&file[1].file, &own, &owned, why, sizeof why) < 0)
        status = cli_fail("%s", why);
    else
        status = compare_logs(file, (const cli_version *const[2]){rows, own}, (const size_t[2]){count, owned});
    for (int i = 0; i < 2; i++)
        known[i] = cli_hash_known_new();
    if (status == 0)
        status = compare_state(file, known, NULL);
    for (size_t i = 0; status == 0 && i < count; i++) {
        cli_progress("comparing versions", i, count);
        if (rows[i].open != COW_LOG_FORGOTTEN)
            status = compare_state(file, known, rows[i].name);
    }
    cli_progress_end();
    for (int i = 0; i < 2; i++)
        cli_hash_known_free(known[i]);
    cli_versions_free(own, owned);
    cli_state_close(&file[1]);
    cli_state_close(&file[0]);
    return status;
}

/* ---- all of it ---- */

/* The file is closed again: the processes that do the work shall not inherit it. */
static int look_at_versions(const char *name, cli_version **rows, size_t *count)
{
    char why[1024];
    cli_file file;
    int status;

    *rows = NULL;
    *count = 0;
    if (cli_file_open(&file, "gc", name, false) != 0)
        return CLI_FAILED;
    if ((status = cli_file_history(&file)) == 0 && cli_versions_read(&file, rows, count, why, sizeof why) < 0)
        status = cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", name, why);
    if (status == 0)
        status = look_for_lacks(&file, *rows, *count);
    cli_file_close(&file);
    return status;
}

static int make_and_compare(const char *name, cli_output *output, const struct stat *about, cli_compact_answer *answer)
{
    cli_version *rows;
    size_t count;
    char temporary[64];
    int status = look_at_versions(name, &rows, &count);

    *answer = (cli_compact_answer){.before = (uint64_t)about->st_size, .versions = cli_versions_there(rows, count)};
    answer->forgotten = count - answer->versions;
    if (status == 0 && answer->versions == 0)
        status = cli_fail("'%s' has no version: there is nothing to compact", name);
    /* by this name, which no other file has, the next run finds what a killed one left */
    snprintf(temporary, sizeof temporary, ".h5cow-compact-%llx.tmp", (unsigned long long)about->st_ino);
    if (status == 0 && (status = cli_output_make_as(output, name, temporary)) == 0 &&
        (status = cli_salvage_whole(name, &output->new)) == 0 &&
        (status = cli_compact_tree(name, rows, count, &output->new)) == 0)
        status = compare(name, rows, count, output->new.path);
    cli_versions_free(rows, count);
    return status;
}

int cli_compact(const char *path, const cli_compact_options *options, cli_compact_answer *answer)
{
    cli_output output = CLI_OUTPUT_NONE;
    char *name = realpath(path, NULL); /* of a symbolic link, what it leads to */
    struct stat about, new;
    int status;

    if (options->quiet)
        cli_progress_off();
    cli_hdf5_start();
    if (name == NULL)
        return cli_fail("cannot read '%s': %s", path, strerror(errno));
    if ((status = claim(&output, name, options->wait, &about)) == 0 && (status = look_at_journal(name)) == 0 &&
        (status = look_for_room(&output, &about)) == 0 &&
        (status = make_and_compare(name, &output, &about, answer)) == 0) {
        answer->after = fstat(output.new.file, &new) == 0 ? (uint64_t)new.st_size : 0;
        if (answer->after >= answer->before) /* it is as small as it can be */
            answer->after = answer->before;
        else if (!options->dry && (status = cli_output_same_history(&output, name)) == 0)
            status = cli_output_place(&output, name);
    }
    cli_output_drop(&output);
    free(name);
    return status;
}
