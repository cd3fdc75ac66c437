/* h5cow protect, unprotect: whether programs without h5cow may write, and so empty, a file with history. */
#include "base/error.h"
#include "common.h"
#include "journal/protect.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char cli_protect_help[] =
    "Usage: h5cow protect FILE...\n\n"
    "Takes permission to write away from files with history, so that programs without h5cow cannot empty or overwrite them, as\n"
    "HDF5 does in mode 'w' before it looks at anything. Programs with h5cow go on writing them, when the owner of the file runs\n"
    "them: h5cow adds the owner's permission for the moment in which it opens a file, and takes it away again. The file says\n"
    "itself that it is protected, so copies with history are as well, and a program that is killed in that moment leaves\n"
    "nothing: the next one that opens the file takes the permission away again.\n\n"
    "Only the owner of a file can protect it, and write it then. It does not keep anybody from deleting the file, or from\n"
    "putting another one in its place, and root from nothing. A program that asks beforehand whether it may write a file\n"
    "(PyTables, and pandas with it) is run with 'h5cow run --writable FILE'.\n\n"
    "  -h, --help\n\n"
    "Example: h5cow protect run*.h5\n";

const char cli_unprotect_help[] =
    "Usage: h5cow unprotect FILE...\n\n"
    "Takes back what 'h5cow protect' and the option protect=on have done: files get the permissions to write that they had.\n\n"
    "  -h, --help\n\n"
    "Example: h5cow unprotect run42.h5\n";

static int change(const char *name, bool on)
{
    char text[1024];
    int number = 0;

    if (cow_protect(name, on, &number) == 0)
        return 0;
    if (number == EACCES || number == EPERM)
        return cli_fail("'%s' cannot be %s: this user may not write it (%s)%s", name, on ? "protected" : "unprotected",
                        strerror(number),
                        cow_protection_of(name) != 0 ? "; it is protected, and only its owner may" : "");
    if (number != 0)
        return cli_fail("'%s' cannot be %s: %s", name, on ? "protected" : "unprotected", strerror(number));
    return cli_fail("%s", cli_reason(text, sizeof text));
}

static int each(int argc, char **argv, bool on, const char *help)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    int status = 0;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (c != 'h')
            return cli_no_option(argv[0], argv);
        fputs(help, stdout);
        return cli_flush();
    }
    if (optind == argc)
        return cli_usage(argv[0], "which file?");
    for (int i = optind; i < argc; i++)
        if (change(argv[i], on) != 0)
            status = CLI_FAILED;
    if (status == 0 && on && geteuid() == 0)
        cli_warn(
            "permissions keep root from nothing: programs that root starts without h5cow can empty the file all the same");
    return status;
}

int cli_protect(int argc, char **argv)
{
    return each(argc, argv, true, cli_protect_help);
}

int cli_unprotect(int argc, char **argv)
{
    return each(argc, argv, false, cli_unprotect_help);
}
