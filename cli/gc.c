/* h5cow gc: what no version needs becomes free. The connector does it (h5cow_collect), in one commit; how much it would be is
 * found out natively. */
#include "compact.h"
#include "forget.h"

#include "plugin.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

const char cli_gc_help[] =
    "Usage: h5cow gc [OPTION]... FILE\n"
    "       h5cow gc --compact [OPTION]... FILE\n\n"
    "What neither a version of FILE nor its newest state needs becomes free, as after 'h5cow forget': new chunks take these\n"
    "places, and where the file system can have holes in files it has their bytes back. The file does not get longer.\n"
    "With --compact FILE is written anew, as small as it can be: the new file is made beside, compared with the old one\n"
    "version by version, and takes its place. That needs room for both. Nobody can write FILE meanwhile; who reads it goes\n"
    "on with the old one.\n\n"
    "      --compact       write the file anew, smallest\n"
    "  -n, --dry-run       say how much would become free, and do nothing\n"
    "      --wait=SECONDS  how long to wait for a program that is writing FILE\n"
    "      --json          an object: chunks, bytes; or bytes_before, bytes_after\n"
    "  -q, --quiet         no progress bar\n"
    "  -h, --help\n\n"
    "Example: h5cow gc run.h5\n";

int cli_gc_collect(hid_t file, bool forgotten, h5cow_collect_t *collected)
{
    if (h5cow_collect(file, collected) == 0)
        return 0;
    return forgotten ? cli_plugin_failed_after(file, "the versions are forgotten, and nothing was freed; try: h5cow gc")
                     : cli_plugin_failed(file);
}

static bool is_nothing(const h5cow_collect_t *collected)
{
    return collected->chunks == 0 && collected->holes == 0;
}

char *cli_gc_text(const h5cow_collect_t *collected)
{
    char bytes[32], holes[32];

    if (is_nothing(collected))
        return cli_strdup("nothing to make free");
    return cli_format("%llu chunk%s became free, %s; bytes given back to the file system: %s",
                      (unsigned long long)collected->chunks, collected->chunks == 1 ? "" : "s",
                      cli_bytes(bytes, (double)collected->bytes), cli_bytes(holes, (double)collected->holes));
}

void cli_gc_json(json_object *answer, const h5cow_collect_t *collected)
{
    json_object_object_add(answer, "chunks", json_object_new_uint64(collected->chunks));
    json_object_object_add(answer, "bytes", json_object_new_uint64(collected->bytes));
    json_object_object_add(answer, "holes", json_object_new_uint64(collected->holes));
}

/* ---- how much it would be ---- */

static void fail_once(void *context, const char *what, const char *why)
{
    bool *failed = context;

    if (!*failed)
        cli_fail("what is needed cannot be told: %s: %s; 'h5cow verify' says more", what, why);
    *failed = true;
}

/* Nothing is needed but what head and versions have, and what was deleted and a version knows. 0, or CLI_FAILED. */
static int foresee(const cli_file *file, h5cow_collect_t *collected)
{
    bool failed = false;
    cli_states states = {.file = file, .trouble = fail_once, .context = &failed};
    cow_table *index = cow_layout_table_open(file->loc, COW_TABLE_INDEX, 0, 0);
    uint64_t bytes, chunks;
    cli_storage storage;
    char why[1024];

    if (index == NULL)
        fail_once(&failed, file->name, cli_reason(why, sizeof why));
    else if (cli_states_read(&states, why, sizeof why) < 0 ||
             cli_storage_open(&storage, &states, index, why, sizeof why) < 0)
        fail_once(&failed, file->name, why);
    else {
        size_t removed = cli_graph_add(&states.graph, COW_PATH_REMOVED);
        bool held = H5Lexists(file->id, COW_PATH_HELD, H5P_DEFAULT) > 0;
        size_t more = held ? cli_graph_add(&states.graph, COW_PATH_HELD) : removed;
        cli_owners owners = cli_owners_new(&storage);
        cli_owners_tree(&owners, states.head, 1);
        cli_owners_tree(&owners, removed, 1);
        cli_owners_tree(&owners, more, 1);
        for (size_t i = 0; i < states.version_count; i++)
            cli_owners_tree(&owners, states.root[i], 1);
        cli_owners_sum(&owners, 1, &bytes, &chunks);
        *collected = (h5cow_collect_t){.chunks = chunks, .bytes = bytes};
        cli_owners_free(&owners);
        cli_storage_close(&storage);
    }
    cli_states_free(&states);
    if (index != NULL)
        index->close(index);
    return failed ? CLI_FAILED : 0;
}

/* ---- the verb ---- */

static int tell(const char *name, const h5cow_collect_t *collected, bool dry, bool json)
{
    json_object *answer;
    char *text, bytes[32];

    if (json) {
        answer = json_object_new_object();
        json_object_object_add(answer, "file", cli_json_text(name));
        json_object_object_add(answer, "dry_run", json_object_new_boolean(dry));
        cli_gc_json(answer, collected);
        if (dry)
            json_object_object_add(answer, "holes", NULL); /* nobody knows */
        return cli_json(answer);
    }
    if (dry)
        printf("%s: %llu chunk%s would become free, %s\n", name, (unsigned long long)collected->chunks,
               collected->chunks == 1 ? "" : "s", cli_bytes(bytes, (double)collected->bytes));
    else {
        text = cli_gc_text(collected);
        printf("%s: %s\n", name, text);
        free(text);
    }
    return cli_flush();
}

static int collect(const char *argument, bool dry, bool json, unsigned wait)
{
    h5cow_collect_t collected = {0};
    cli_file file;
    hid_t through;
    char *name;
    int status;

    if (cli_file_open(&file, "gc", argument, false) != 0)
        return CLI_FAILED;
    name = cli_strdup(file.name);
    if ((status = cli_file_history(&file)) == 0 && dry)
        status = foresee(&file, &collected);
    cli_file_close(&file);
    if (status == 0 && !dry &&
        ((through = cli_plugin_change(name, wait)) < 0 || cli_gc_collect(through, false, &collected) != 0))
        status = CLI_FAILED;
    else if (status == 0 && !dry) {
        if (is_nothing(&collected))
            h5cow_abort(through); /* of a file by pages HDF5 writes something whenever it closes it */
        status = cli_plugin_close(through, name);
    }
    if (status == 0)
        status = tell(name, &collected, dry, json);
    free(name);
    return status;
}

static int compact(const char *name, bool dry, bool quiet, bool json, unsigned wait)
{
    cli_compact_options how = {.dry = dry, .quiet = quiet || json, .wait = wait};
    cli_compact_answer made;
    json_object *answer;
    char before[32], after[32];

    if (cli_compact(name, &how, &made) != 0)
        return CLI_FAILED;
    if (json) {
        answer = json_object_new_object();
        json_object_object_add(answer, "file", cli_json_text(name));
        json_object_object_add(answer, "dry_run", json_object_new_boolean(dry));
        json_object_object_add(answer, "versions", json_object_new_uint64(made.versions));
        json_object_object_add(answer, "forgotten", json_object_new_uint64(made.forgotten));
        json_object_object_add(answer, "bytes_before", json_object_new_uint64(made.before));
        json_object_object_add(answer, "bytes_after", json_object_new_uint64(made.after));
        return cli_json(answer);
    }
    if (made.after == made.before) {
        printf("%s: is as small as it can be, %s: nothing was changed\n", name, cli_bytes(before, (double)made.before));
        return cli_flush();
    }
    printf("%s: %s %s instead of %s\n", name, dry ? "would have" : "has", cli_bytes(after, (double)made.after),
           cli_bytes(before, (double)made.before));
    return cli_flush();
}

int cli_gc(int argc, char **argv)
{
    static const struct option options[] = {{"compact", no_argument, NULL, 'c'},
                                            {"dry-run", no_argument, NULL, 'n'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"wait", required_argument, NULL, 'w'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool anew = false, dry = false, json = false, quiet = false;
    unsigned wait = 0;

    opterr = 0;
    for (int o; (o = getopt_long(argc, argv, ":nqh", options, NULL)) != -1;)
        switch (o) {
        case 'c':
            anew = true;
            break;
        case 'n':
            dry = true;
            break;
        case 'q':
            quiet = true;
            break;
        case 'j':
            json = true;
            break;
        case 'w':
            if (cli_wait("gc", optarg, &wait) != 0)
                return CLI_FAILED;
            break;
        case 'h':
            fputs(cli_gc_help, stdout);
            return cli_flush();
        default:
            return o == ':' ? cli_no_value("gc", argv) : cli_no_option("gc", argv);
        }
    if (optind + 1 != argc)
        return cli_usage("gc", optind == argc ? "which file?" : "one file at a time");
    if (anew)
        return compact(argv[optind], dry, quiet, json, wait);
    cli_hdf5_start();
    return collect(argv[optind], dry, json, wait);
}
