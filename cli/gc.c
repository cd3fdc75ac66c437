/* h5cow gc: space that no version needs. */
#include "common.h"
#include "compact.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

const char cli_gc_help[] =
    "Usage: h5cow gc --compact [OPTION]... FILE\n\n"
    "Writes FILE anew, as small as it can be, and puts the new file in its place when it was compared with the old one,\n"
    "version by version. Needs room for both. Nobody may write FILE meanwhile; who reads it goes on with the old one.\n\n"
    "      --compact   the file is written anew\n"
    "      --dry-run   only say how large it would be\n"
    "      --json      the answer as one JSON object\n"
    "  -q, --quiet     no progress bar\n"
    "  -h, --help\n\n"
    "Example: h5cow gc --compact run.h5\n";

int cli_gc(int argc, char **argv)
{
    static const struct option options[] = {{"compact", no_argument, NULL, 'c'}, {"dry-run", no_argument, NULL, 'n'},
                                            {"json", no_argument, NULL, 'j'},    {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},    {NULL, 0, NULL, 0}};
    cli_compact_options how = {0};
    cli_compact_answer answer;
    bool compact = false, json = false;
    char before[32], after[32];

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "qh", options, NULL)) != -1;)
        switch (c) {
        case 'c':
            compact = true;
            break;
        case 'n':
            how.dry = true;
            break;
        case 'j':
            json = how.quiet = true;
            break;
        case 'q':
            how.quiet = true;
            break;
        case 'h':
            fputs(cli_gc_help, stdout);
            return cli_flush();
        default:
            return cli_no_option("gc", argv);
        }
    if (optind + 1 != argc || !compact)
        return cli_usage("gc", !compact ? "say --compact" : optind == argc ? "which file?" : "one file at a time");
    if (cli_compact(argv[optind], &how, &answer) != 0)
        return CLI_FAILED;
    if (json) {
        json_object *whole = json_object_new_object();
        json_object_object_add(whole, "file", cli_json_text(argv[optind]));
        json_object_object_add(whole, "versions", json_object_new_uint64(answer.versions));
        json_object_object_add(whole, "forgotten", json_object_new_uint64(answer.forgotten));
        json_object_object_add(whole, "bytes_before", json_object_new_uint64(answer.before));
        json_object_object_add(whole, "bytes_after", json_object_new_uint64(answer.after));
        return cli_json(whole);
    }
    char *name = cli_clean(cli_strdup(argv[optind]), true);
    printf("%s: %s, %s %s\n", name, cli_bytes(before, (double)answer.before), how.dry ? "would be" : "is now",
           cli_bytes(after, (double)answer.after));
    free(name);
    return cli_flush();
}
