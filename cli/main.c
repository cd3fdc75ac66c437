/* h5cow: the command. Finds the verb and lets it work; each verb is a file of its own. */
#include "child.h"
#include "common.h"
#include "journal/journal.h"
#include "library/library.h"
#include "manual.h"
#include "pager.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const cli_page pages[] = {
    {"run", cli_run_help, "run a program so that the HDF5 files it makes have history", cli_run, false},
    {"env", cli_env_help, "print what a shell must be told so that its programs make versions", cli_env, false},
    {"log", cli_log_help, "list the versions of a file", cli_log, true},
    {"ls", cli_ls_help, "list the objects of a version or a file, and when each changed", cli_ls, true},
    {"show", cli_show_help, "show one version and what it changed", cli_show, true},
    {"diff", cli_diff_help, "show what differs between two versions, or two files", cli_diff_verb, true},
    {"blame", cli_blame_help, "show which version wrote what is in a dataset", cli_blame, true},
    {"bisect", cli_bisect_help, "find the first version in which something is wrong", cli_bisect, false},
    {"hash", cli_hash_help, "print a hash of what a version or a file holds, however it is stored", cli_hash, false},
    {"stat", cli_stat_help, "show datasets, chunks, bytes and what the history costs", cli_stat, false},
    {"report", cli_report_help, "write a page about a file and its history, for a browser", cli_report_verb, false},
    {"import", cli_import_help, "give a plain HDF5 file a history that begins with its state", cli_import, false},
    {"export", cli_export_help, "write one version as a plain HDF5 file", cli_export, false},
    {"cp", cli_cp_help, "copy an object of a version into a file: get it back", cli_cp, false},
    {"restore", cli_restore_help, "make a file, or objects of it, as they were in a version", cli_restore, false},
    {"undo", cli_undo_help, "make a file as it was before its newest version", cli_undo, false},
    {"redo", cli_redo_help, "take back an undo", cli_redo, false},
    {"tag", cli_tag_help, "give a version another name, or list such names", cli_tag_verb, false},
    {"rename", cli_rename_help, "change the name of a version", cli_rename, false},
    {"describe", cli_describe_help, "change the message of a version", cli_describe, false},
    {"forget", cli_forget_help, "let versions go: those that are named, or all that no rule keeps", cli_forget, false},
    {"squash", cli_squash_help, "make one version of several, of which only the last one stays", cli_squash, false},
    {"gc", cli_gc_help, "make free what no version needs any more", cli_gc, false},
    {"copy", cli_copy_help, "copy a file with its history, also while it is written", cli_copy_verb, false},
    {"verify", cli_verify_help, "check every stored chunk and everything that names it", cli_verify, false},
    {"protect", cli_protect_help, "keep programs without h5cow from writing, and emptying, a file", cli_protect, false},
    {"unprotect", cli_unprotect_help, "let programs without h5cow write a file again", cli_unprotect, false},
    {"apply", cli_apply_help, "let programs without h5cow see the newest state", cli_apply, false},
    {"recover", cli_recover_help, "finish what a crash left half done; save what can be read of a damaged file",
     cli_recover, false},
    {"doctor", cli_doctor_help, "say what is wrong with the installation, or with a file", cli_doctor, false},
};
#define PAGES (sizeof pages / sizeof *pages)

static const char about[] =
    "Usage: h5cow VERB [OPTION]... ARGUMENT...\n\n"
    "Version history for HDF5 files, for programs that know nothing of it.\n\n"
    "FILE@REV names a version where one is taken. REV is its name, a tag, #N (the N-th version; so is N where that is no\n"
    "name), ~N (N before the newest), latest, or {2026-01-31T12:00}, {yesterday}, {2 hours ago} (the newest that is not\n"
    "younger). A file that is really called FILE@REV wins.\n\n"
    "Exit code: 0 all is well, 1 damage or something wrong was found, 2 wrong usage or failure.\n";

static const cli_page *find(const char *name)
{
    for (size_t i = 0; i < PAGES; i++)
        if (strcmp(name, pages[i].name) == 0)
            return &pages[i];
    return NULL;
}

/* Letters that are to be put in, taken out, replaced or exchanged with their neighbours to make B of A (optimal string
 * alignment: https://en.wikipedia.org/wiki/Damerau-Levenshtein_distance). Both are at most MOST long. */
#define MOST 16
static unsigned distance(const char *a, const char *b)
{
    unsigned d[MOST + 1][MOST + 1];
    size_t n = strlen(a), m = strlen(b);

    for (size_t i = 0; i <= n; i++)
        for (size_t k = 0; k <= m; k++) {
            unsigned least = i == 0 ? (unsigned)k : d[i - 1][k] + 1;
            if (i > 0 && k == 0)
                least = (unsigned)i;
            else if (i > 0) {
                unsigned other =
                    d[i - 1][k - 1] + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[k - 1]));
                least = d[i][k - 1] + 1 < least ? d[i][k - 1] + 1 : least;
                least = other < least ? other : least;
                if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && d[i - 2][k - 2] + 1 < least)
                    least = d[i - 2][k - 2] + 1;
            }
            d[i][k] = least;
        }
    return d[n][m];
}

static int no_verb(const char *name)
{
    const cli_page *nearest = NULL;
    unsigned least = 3; /* what is farther away is another word */

    for (size_t i = 0; strlen(name) <= MOST && i < PAGES; i++) {
        unsigned away = distance(name, pages[i].name);
        if (away < least && away < strlen(pages[i].name)) {
            least = away;
            nearest = &pages[i];
        }
    }
    return nearest == NULL ? cli_fail("there is no verb '%.200s': 'h5cow --help' lists them", name)
                           : cli_fail("there is no verb '%s': is it '%s'?", name, nearest->name);
}

static void help(FILE *to)
{
    const char *second = strstr(about, "\n\n") + 2, *third = strstr(second, "\n\n") + 2;

    fprintf(to, "%.*s%.*sVerbs:\n", (int)(second - about), about, (int)(third - second), second);
    for (size_t i = 0; i < PAGES; i++)
        fprintf(to, "  %-8s %s\n", pages[i].name, pages[i].what);
    fprintf(to, "\n%s'h5cow VERB --help' and 'man h5cow-VERB' say more.\n", third);
}

/* h5cow help [VERB]; for the build: help --man VERB (empty: all of them), help --completion SHELL; for the completions:
 * help --candidates VERB WORD... */
static int explain(int argc, char **argv)
{
    const cli_page *page;
    char why[500];

    if (argc > 3 && strcmp(argv[2], "--candidates") == 0)
        return cow_library_find(getenv("H5COW_LIBHDF5"), why, sizeof why) < 0
                   ? CLI_FAILED
                   : cli_manual_candidates(argc - 3, argv + 3);
    if (argc > 3 && strcmp(argv[2], "--completion") == 0)
        return cli_manual_completion(argv[3], pages, PAGES);
    const char *name = argc > 3 && strcmp(argv[2], "--man") == 0 ? argv[3] : argc > 2 ? argv[2] : "";
    if ((page = find(name)) == NULL && *name != '\0')
        return no_verb(name);
    if (argc > 3 && page == NULL)
        cli_manual_whole(about, pages, PAGES);
    else if (argc > 3)
        cli_manual_page(page);
    else if (page != NULL)
        fputs(page->help, stdout);
    else
        help(stdout);
    return cli_flush();
}

int main(int argc, char **argv)
{
    const cli_page *page;
    char why[500];

    cli_child_settle();
    if (argc < 2) {
        help(stderr);
        return CLI_FAILED;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return explain(1, argv);
    if (strcmp(argv[1], "help") == 0)
        return explain(argc, argv);
    if (strcmp(argv[1], "--version") == 0) {
        puts("h5cow " H5COW_VERSION);
        return cli_flush();
    }
    if ((page = find(argv[1])) == NULL)
        return no_verb(argv[1]);
    if (cow_library_find(getenv("H5COW_LIBHDF5"), why, sizeof why) < 0)
        return cli_fail("no HDF5 library can be used: %s; set H5COW_LIBHDF5 to the file of one", why);
    setenv(COW_LOOKS_VARIABLE, "1", 1);
    if (page->paged)
        cli_pager_start();
    return page->verb(argc - 1, argv + 1);
}
