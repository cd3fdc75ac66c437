/* h5cow copy: a consistent copy of a file that somebody may be writing meanwhile. A file with a journal is opened as a
 * reader does: the state is pinned, so nothing of it changes while it is copied, and nobody waits. Any other HDF5 file
 * is copied under the shared lock that HDF5 takes for reading. */
#include "common.h"

#include "base/error.h"
#include "h5/superblock.h"
#include "journal/inspect.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char cli_copy_help[] =
    "Usage: h5cow copy FILE OUT\n\n"
    "Copies FILE with all of its history, also while a program is writing it: OUT is the newest committed state, and\n"
    "complete or not there. Readers and writers of FILE do not notice. A file without history is copied when nobody\n"
    "writes it.\n\n"
    "  -h, --help\n";

/* The first bytes of a superblock of version 2 or 3 say whether somebody writes the file, or died doing so. */
static bool marked(const char *name)
{
    unsigned char head[12] = {0};
    int file = open(name, O_RDONLY | O_CLOEXEC);
    bool found = false;

    for (off_t at = 0; file >= 0 && !found; at = at == 0 ? 512 : 2 * at) {
        if (pread(file, head, sizeof head, at) < (ssize_t)sizeof head)
            break;
        found = cow_superblock_signature(head);
    }
    if (file >= 0)
        close(file);
    return found && cow_superblock_version(head) >= 2 && cow_superblock_flagged(head);
}

static int copy_to(const char *name, const char *out)
{
    cli_output output = CLI_OUTPUT_NONE;
    cow_journal *journal = NULL;
    char text[1024];
    int number, status = CLI_FAILED;

    if (cli_must_be_hdf5(name, text, sizeof text) != 0) {
        cli_fail("%s", text);
        goto done;
    }
    if ((journal = cow_journal_open(name, (cow_journal_mode){0}, &cow_journal_defaults, &number)) == NULL) {
        if (number != 0)
            cli_fail("cannot read '%s': %s", name, strerror(number));
        else
            cli_fail("'%s' cannot be copied: %s", name, cli_reason(text, sizeof text));
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
    if (cli_output_make(&output, out) != 0)
        goto done;
    if (cow_journal_copy(journal, output.new.file) < 0) {
        cli_fail("'%s' cannot be copied: %s; '%s' was not made", name, cli_reason(text, sizeof text), out);
        goto done;
    }
    status = cli_output_place(&output, name);
done:
    cli_output_drop(&output);
    if (journal != NULL)
        cow_journal_close(journal);
    return status;
}

int cli_copy_verb(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (c) {
        case 'h':
            fputs(cli_copy_help, stdout);
            return cli_flush();
        default:
            return cli_no_option("copy", argv);
        }
    if (optind + 2 != argc)
        return cli_usage("copy", "it wants FILE and OUT");
    if (cli_output_absent(argv[optind + 1]) != 0)
        return CLI_FAILED;
    return copy_to(argv[optind], argv[optind + 1]);
}
