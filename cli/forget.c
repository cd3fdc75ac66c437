/* h5cow forget, squash: versions go, and all others stay as they are. See forget.h.
 *
 * Which versions go, and what that frees, is found out natively; the connector lets them go (h5cow_forget), in one commit.
 */
#include "forget.h"

#include "plugin.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cli_forget_help[] =
    "Usage: h5cow forget [OPTION]... FILE REV...\n"
    "       h5cow forget [OPTION]... FILE --keep-RULE=N...\n\n"
    "Versions go, and cannot be had back: those that are named, also as A..B from A to B; or all that no rule keeps. Others\n"
    "stay as they are. The newest version stays always, and so do versions with tags. Listed is what only one version has, and\n"
    "below it what all of them have that nothing else has: 'h5cow gc' makes that free.\n"
    "A version stays when any rule keeps it. Days and the like are those of local time.\n\n"
    "      --keep-last=N     the newest N versions\n"
    "      --keep-hourly=N   the newest version of each of the last N hours in which there are some\n"
    "      --keep-daily=N    the same of days\n"
    "      --keep-weekly=N   of weeks, which begin on Mondays\n"
    "      --keep-monthly=N  of months\n"
    "      --keep-yearly=N   of years\n"
    "      --keep-within=T   versions that are older than the newest one by T at most: 2y5m7d3h, '2 weeks'\n"
    "      --keep-tag=TAG    the version of that tag, and of all other tags; may be given several times\n"
    "      --keep=REV        that version, or A..B; may be given several times\n"
    "  -n, --dry-run         say what would be done, and do nothing\n"
    "      --gc              make free what is not needed any more, as 'h5cow gc' does\n"
    "      --wait=SECONDS    how long to wait for a program that is writing FILE\n"
    "      --json            an object: versions, why they are kept, bytes\n"
    "  -h, --help\n\n"
    "Example: h5cow forget run.h5 --keep-last=20 --keep-daily=14 --dry-run\n";

const char cli_squash_help[] =
    "Usage: h5cow squash [OPTION]... FILE A..B\n\n"
    "The versions from A to the one before B go, and cannot be had back: what they changed is in version B then, which stays\n"
    "as it is. Refused where a tag leads to one of them. 'h5cow gc' makes free what only they had.\n\n"
    "  -n, --dry-run       say what would be done, and do nothing\n"
    "      --wait=SECONDS  how long to wait for a program that is writing FILE\n"
    "      --json          an object: versions that go, bytes\n"
    "  -h, --help\n\n"
    "Example: h5cow squash run.h5 first-try..calibrated\n";

static void add_word(cli_words *words, const char *word)
{
    CLI_RESERVE(words->word, words->room, words->count, 1);
    words->word[words->count++] = word;
}

/* ---- doing it ---- */

/* The versions that go, of FILE, as the connector is told. 0, or CLI_FAILED: FILE is closed. */
static int let_go(cli_forgetting *f, hid_t file)
{
    const char **revision = cli_alloc(f->going, sizeof *revision);
    char(*text)[32] = cli_alloc(f->going, sizeof *text);
    h5cow_forget_t request = {.revisions = revision, .kind = strcmp(f->verb, "squash") == 0, .dry_run = f->dry};
    int status = 0;

    for (size_t i = 0; i < f->states.version_count; i++)
        if (f->go[i]) {
            snprintf(text[request.count], sizeof *text, "#%zu", i + 1);
            revision[request.count] = text[request.count];
            request.count++;
        }
    if (f->going > 0 && h5cow_forget(file, &request) < 0)
        status = cli_plugin_failed(file);
    free(text);
    free(revision);
    return status;
}

static int choose_and_open(void *context, const char *argument, hid_t *through, size_t *versions)
{
    cli_forgetting *f = context;
    cli_file file;
    int status;

    if (cli_file_open(&file, f->verb, argument, true) != 0)
        return CLI_FAILED;
    if (file.revision != NULL)
        status = cli_usage(f->verb, "versions stand behind the file: 'h5cow %s %s %s'", f->verb, file.name,
                           f->verb[0] == 's' ? "A..B" : file.revision);
    else if (!f->policy && f->revisions.count == 0)
        status =
            cli_usage("forget", "which versions? Name them, or say which stay, as --keep-last=20: all of them cannot "
                                "be forgotten");
    else if ((status = cli_file_history(&file)) == 0)
        status = cli_forget_choose(f, &file);
    cli_file_close(&file);
    if (status == 0 && (*through = f->dry ? cli_plugin_open(f->name, NULL) : cli_plugin_change(f->name, f->wait)) < 0)
        status = CLI_FAILED;
    *versions = f->states.version_count;
    return status;
}

static int run(cli_forgetting *f, const char *argument)
{
    hid_t file = H5I_INVALID_HID;
    int status = cli_plugin_settle(choose_and_open, f, argument, &f->name, &file);

    if (status != 0 || let_go(f, file) != 0 ||
        (f->collect && !f->dry && cli_gc_collect(file, f->going > 0, &f->collected) != 0) ||
        cli_plugin_close(file, f->name) != 0)
        return CLI_FAILED;
    status = cli_forget_tell(f);
    if (status == 0 && f->trouble != NULL) {
        cli_warn("'%s' is damaged, so this is not all: %s", f->name, f->trouble);
        status = CLI_DAMAGED;
    }
    return status;
}

/* ---- words ---- */

enum { GC = 1, JSON, WAIT, KEEP, KEEP_TAG, KEEP_FIRST };

static int keep(cli_forgetting *f, const char *rule, const char *value)
{
    char why[1024];

    return cow_keep_add(&f->keep, rule, value) == 0
               ? 0
               : cli_usage("forget", "--keep-%s: %s", rule, cli_reason(why, sizeof why));
}

static int take_option(cli_forgetting *f, int o, const char *help, char **argv, bool *helped)
{
    switch (o) {
    case 'n':
        f->dry = true;
        return 0;
    case GC:
        f->collect = true;
        return 0;
    case JSON:
        f->json = true;
        return 0;
    case WAIT:
        return cli_wait(f->verb, optarg, &f->wait);
    case KEEP:
        add_word(&f->kept_revisions, optarg);
        return 0;
    case KEEP_TAG:
        add_word(&f->kept_tags, optarg);
        return 0;
    case 'h':
        *helped = true;
        fputs(help, stdout);
        return cli_flush();
    case ':':
        return cli_no_value(f->verb, argv);
    case '?':
        return cli_no_option(f->verb, argv);
    default:
        return keep(f, cow_keep_names[o - KEEP_FIRST], optarg);
    }
}

static int check_words(cli_forgetting *f, int words, char **word)
{
    const bool squash = strcmp(f->verb, "squash") == 0;

    f->policy = !cow_keep_is_empty(&f->keep) || f->kept_revisions.count > 0 || f->kept_tags.count > 0;
    if (words == 0)
        return cli_usage(f->verb, "which file?");
    if (squash && words != 2)
        return cli_usage("squash", "it wants a file and two versions, as A..B");
    if (words > 1 && f->policy)
        return cli_usage("forget", "name the versions that go, or say which stay, not both");
    for (int i = 1; i < words; i++)
        add_word(&f->revisions, word[i]);
    return 0;
}

static int forget_verb(cli_forgetting *f, const char *help, const struct option options[], int argc, char **argv)
{
    bool helped = false;
    int status = 0;

    opterr = 0;
    for (int o; status == 0 && !helped && (o = getopt_long(argc, argv, ":nh", options, NULL)) != -1;)
        status = take_option(f, o, help, argv, &helped);
    if (status == 0 && !helped && (status = check_words(f, argc - optind, argv + optind)) == 0) {
        cli_hdf5_start();
        status = run(f, argv[optind]);
        cli_forget_free(f);
    }
    free(f->revisions.word);
    free(f->kept_tags.word);
    free(f->kept_revisions.word);
    return status;
}

int cli_forget(int argc, char **argv)
{
    static const struct option options[] = {{"keep-last", required_argument, NULL, KEEP_FIRST + COW_KEEP_LAST},
                                            {"keep-hourly", required_argument, NULL, KEEP_FIRST + COW_KEEP_HOURLY},
                                            {"keep-daily", required_argument, NULL, KEEP_FIRST + COW_KEEP_DAILY},
                                            {"keep-weekly", required_argument, NULL, KEEP_FIRST + COW_KEEP_WEEKLY},
                                            {"keep-monthly", required_argument, NULL, KEEP_FIRST + COW_KEEP_MONTHLY},
                                            {"keep-yearly", required_argument, NULL, KEEP_FIRST + COW_KEEP_YEARLY},
                                            {"keep-within", required_argument, NULL, KEEP_FIRST + COW_KEEP_WITHIN},
                                            {"keep-tag", required_argument, NULL, KEEP_TAG},
                                            {"keep", required_argument, NULL, KEEP},
                                            {"dry-run", no_argument, NULL, 'n'},
                                            {"gc", no_argument, NULL, GC},
                                            {"wait", required_argument, NULL, WAIT},
                                            {"json", no_argument, NULL, JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};

    return forget_verb(&(cli_forgetting){.verb = "forget"}, cli_forget_help, options, argc, argv);
}

int cli_squash(int argc, char **argv)
{
    static const struct option options[] = {{"dry-run", no_argument, NULL, 'n'},
                                            {"wait", required_argument, NULL, WAIT},
                                            {"json", no_argument, NULL, JSON},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};

    return forget_verb(&(cli_forgetting){.verb = "squash"}, cli_squash_help, options, argc, argv);
}
