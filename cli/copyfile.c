/* h5cow copy: a consistent copy of a file that somebody may be writing meanwhile. A file with a journal is opened as a
 * reader does: the state is pinned, so nothing of it changes while it is copied, and nobody waits. Any other HDF5 file
 * is copied under the shared lock that HDF5 takes for reading. */
#include "common.h"

#include "error.h"
#include "journal/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "Usage: h5cow copy FILE OUT\n\n"
    "Copies FILE with all of its history, also while a program is writing it: OUT is the newest committed state, and\n"
    "complete or not there. Readers and writers of FILE do not notice. A file without history is copied when nobody\n"
    "writes it.\n\n"
    "  -h, --help\n";

int cli_put_new(const char *temporary, const char *out)
{
    const char *slash = strrchr(out, '/');
    char *folder = slash == NULL ? cli_strdup(".") : cli_format("%.*s", slash == out ? 1 : (int)(slash - out), out);
    int file = open(temporary, O_RDONLY | O_CLOEXEC), directory, status = CLI_FAILED;

    if (file < 0 || fsync(file) < 0) {
        cli_fail("cannot bring '%s' onto the disk: %s", out, strerror(errno));
        goto done;
    }
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, out, RENAME_NOREPLACE) < 0) {
        /* file systems that do not know this flag: a link does not replace anything either */
        if (errno == EEXIST || link(temporary, out) < 0) {
            if (errno == EEXIST)
                cli_fail("'%s' exists: nothing was changed", out);
            else
                cli_fail("cannot name the new file '%s': %s", out, strerror(errno));
            goto done;
        }
        unlink(temporary);
    }
    if ((directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) >= 0) {
        fsync(directory);
        close(directory);
    }
    status = 0;
done:
    if (file >= 0)
        close(file);
    free(folder);
    return status;
}

/* The first bytes of a superblock of version 2 or 3 say whether somebody writes the file, or died doing so. */
static bool marked(const char *name)
{
    unsigned char head[12] = {0};
    int file = open(name, O_RDONLY | O_CLOEXEC);
    bool found = false;

    for (off_t at = 0; file >= 0 && !found; at = at == 0 ? 512 : 2 * at) {
        if (pread(file, head, sizeof head, at) < (ssize_t)sizeof head)
            break;
        found = memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
    }
    if (file >= 0)
        close(file);
    return found && head[8] >= 2 && (head[11] & 5) != 0;
}

static int copy_to(const char *name, const char *out)
{
    char *temporary = cli_format("%s.h5cow-%ld.tmp", out, (long)getpid()), text[1024];
    cow_journal *journal = NULL;
    struct stat about;
    int to = -1, number, status = CLI_FAILED;

    if ((journal = cow_journal_open(name, (cow_journal_mode){0}, &cow_journal_defaults, &number)) == NULL) {
        if (number != 0)
            cli_fail("cannot read '%s': %s", name, strerror(number));
        else
            cli_fail("'%s' cannot be copied: %s", name, cli_reason(text, sizeof text));
        goto done;
    }
    if (cow_journal_plain(journal) && cli_is_hdf5(name) <= 0) {
        cli_fail("'%s' is not an HDF5 file", name);
        goto done;
    }
    if (cow_journal_lock_plain(journal, false, true) < 0) {
        cli_fail("'%s' cannot be copied: %s", name, cli_reason(text, sizeof text));
        goto done;
    }
    if (cow_journal_plain(journal) && marked(name)) {
        cli_fail(
            "'%s' is being written by another program, or one died writing it; a file without history can be copied "
            "when it is closed",
            name);
        goto done;
    }
    if (cow_journal_lock_plain(journal, false, true) < 0) {
        cli_fail("'%s' cannot be copied: %s", name, cli_reason(text, sizeof text));
        goto done;
    }
    if (stat(name, &about) < 0 ||
        (to = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, about.st_mode & 0666)) < 0) {
        cli_fail("cannot create '%s': %s", temporary, strerror(errno));
        goto done;
    }
    if (cow_journal_copy(journal, to) < 0) {
        cli_fail("'%s' cannot be copied: %s; '%s' was not made", name, cli_reason(text, sizeof text), out);
        goto done;
    }
    status = cli_put_new(temporary, out);
done:
    if (to >= 0) {
        close(to);
        if (status != 0)
            unlink(temporary);
    }
    if (journal != NULL)
        cow_journal_close(journal);
    free(temporary);
    return status;
}

int cli_copy_verb(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    struct stat there;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (c) {
        case 'h':
            fputs(help, stdout);
            return cli_flush();
        default:
            return cli_usage("copy", "there is no option '%s'", argv[optind - 1]);
        }
    if (optind + 2 != argc)
        return cli_usage("copy", "it wants FILE and OUT");
    if (lstat(argv[optind + 1], &there) == 0)
        return cli_fail("'%s' exists: choose another name; nothing is ever overwritten", argv[optind + 1]);
    return copy_to(argv[optind], argv[optind + 1]);
}
