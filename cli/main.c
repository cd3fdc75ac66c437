/* h5cow: the command. Finds the verb and lets it work; each verb is a file of its own. */
#include "common.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    cli_verb *verb;
    const char *what;
} verbs[] = {
    {"run", cli_run, "run a program so that the HDF5 files it makes have history"},
    {"log", cli_log, "list the versions of a file"},
    {"stat", cli_stat, "show datasets, chunks, bytes and what the history costs"},
    {"import", cli_import, "give a plain HDF5 file a history that begins with its state"},
    {"export", cli_export, "write one version as a plain HDF5 file"},
    {"copy", cli_copy_verb, "copy a file with its history, also while it is written"},
    {"verify", cli_verify, "check every stored chunk and everything that names it"},
    {"recover", cli_recover, "finish what a crash left half done; save what can be read of a damaged file"},
    {"doctor", cli_doctor, "say what is wrong with the installation, or with a file"},
};

static void help(FILE *to)
{
    fputs("Version history for HDF5 files, for programs that know nothing of it.\n\n"
          "Usage: h5cow VERB [OPTION]... ARGUMENT...\n\nVerbs:\n",
          to);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        fprintf(to, "  %-8s %s\n", verbs[i].name, verbs[i].what);
    fputs("\nFILE@REV names a version: its name or number, a tag, ~N (N before the newest), {2026-01-31T12:00}.\n"
          "'h5cow VERB --help' says more. Exit code: 0 well, 1 damage or a difference found, 2 usage or failure.\n",
          to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help(stderr);
        return CLI_FAILED;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        help(stdout);
        return cli_flush();
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("h5cow " H5COW_VERSION);
        return cli_flush();
    }
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].verb(argc - 1, argv + 1);
    return cli_fail("there is no verb '%s': 'h5cow --help' lists them", argv[1]);
}
