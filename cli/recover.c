/* h5cow recover: what is pending or half done in a file; finishing it; checking the result.
 *
 * Looking changes nothing. Finishing is opening the file for writing and closing it, as any program through h5cow does:
 * the journal applies what was committed and drops what was not. With a second file, see salvage.c.
 */
#include "progress.h"
#include "recover.h"

#include "base/error.h"
#include "history/history.h"
#include "journal/disk.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char cli_recover_help[] =
    "Usage: h5cow recover [--dry-run] [-q] [--json] FILE [OUT]\n\n"
    "Says what a program that died, or a reader that is still at work, left undone in FILE: commits that wait to be\n"
    "applied, a state that is half applied, bytes that were never committed. Then applies what was committed, drops "
    "what\n"
    "was not, gives back the space, and checks the file as 'h5cow verify' does. None of this is needed before FILE "
    "can\n"
    "be used: the next program that writes it through h5cow does the same.\n\n"
    "With OUT: saves what can be read of a damaged FILE into the new file OUT, version by version and chunk by chunk, "
    "and\n"
    "lists exactly what is lost. FILE is not changed.\n\n"
    "  -n, --dry-run   change and make nothing, only say what would be done, or be lost\n"
    "      --json      the answer as one JSON object\n"
    "  -q, --quiet     no progress bar\n"
    "  -h, --help\n\n"
    "Exit code 0: all is well, 1: something is damaged or lost, 2: it could not be done.\n";

/* What is said, line by line, and the same for JSON. */
typedef struct answer {
    bool json, dry;
    json_object *whole, *found, *done;
} answer;

static void say(answer *a, json_object *list, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(answer *a, json_object *list, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = cli_strdup("?");
    va_end(arguments);
    text = cli_visible(text);
    if (!a->json)
        printf("%s\n", text);
    json_object_array_add(list, cli_json_text(text));
    free(text);
}

static unsigned long long number(uint64_t value)
{
    return (unsigned long long)value;
}

/* ---- what there is ---- */

/* Why the journal cannot be used by a program that opens the file; NULL: it can. */
static const char *damage_of(const cow_journal_report *r)
{
    const cow_journal_slot_note *slot;

    if (!r->journal || r->unfinished)
        return NULL;
    if (r->hidden)
        return "the superblock is damaged and does not lead to the journal";
    if (r->newest < 0)
        return "both slots of the journal are damaged";
    slot = &r->slot[r->newest];
    if (!r->whole[r->newest] &&
        !(slot->unsynced && r->valid[!r->newest] && r->whole[!r->newest] && r->superblock_whole && !r->flagged))
        return "the record of the newest commit is damaged";
    if (r->size < slot->end)
        return "the file was cut off: it is shorter than its content";
    return NULL;
}

static bool torn(const cow_journal_report *r)
{
    return r->flagged || (r->stale && r->extents == 0) || (r->journal && !r->superblock_whole && !r->unfinished);
}

static uint64_t tail_of(const cow_journal_report *r)
{
    return r->journal && r->newest >= 0 && r->size > r->need ? r->size - r->need : 0;
}

static uint64_t pending_of(const cow_journal_report *r)
{
    return r->newest < 0 ? 0 : r->slot[r->newest].sequence - r->slot[r->newest].applied;
}

static void show(answer *a, const char *name, const cow_journal_report *r)
{
    json_object *pending = json_object_new_array(), *pins = json_object_new_array();
    const cow_journal_slot_note *slot = r->newest < 0 ? NULL : &r->slot[r->newest];
    const char *damage = damage_of(r);
    char size[32];

    json_object_object_add(a->whole, "file", cli_json_text(name));
    json_object_object_add(a->whole, "bytes", json_object_new_uint64(r->size));
    json_object_object_add(a->whole, "journal", json_object_new_boolean(r->journal));
    json_object_object_add(a->whole, "unfinished", json_object_new_boolean(r->unfinished));
    json_object_object_add(a->whole, "newest", slot == NULL ? NULL : json_object_new_uint64(slot->sequence));
    json_object_object_add(a->whole, "applied", slot == NULL ? NULL : json_object_new_uint64(slot->applied));
    json_object_object_add(a->whole, "pending", pending);
    json_object_object_add(a->whole, "half_applied", json_object_new_boolean(r->flagged));
    json_object_object_add(a->whole, "uncommitted_bytes", json_object_new_uint64(tail_of(r)));
    json_object_object_add(a->whole, "writer", r->writing ? cli_json_text(r->writer) : NULL);
    json_object_object_add(a->whole, "readers_at", pins);
    json_object_object_add(a->whole, "damage", damage == NULL ? NULL : cli_json_text(damage));
    json_object_object_add(a->whole, "left_pending", json_object_new_uint64(r->extents));
    if (r->unfinished)
        say(a, a->found, "%s: the program that created it died before it committed anything: it holds nothing", name);
    else if (slot != NULL)
        say(a, a->found, "%s: the newest committed state is %llu; the file's own bytes are those of state %llu", name,
            number(slot->sequence), number(slot->applied));
    else if (r->journal)
        say(a, a->found, "%s: a file with a journal", name);
    else
        say(a, a->found, "%s: there is no journal in this file", name);
    for (unsigned i = 0; i < 2 && r->newest >= 0; i++)
        if (!r->valid[i] && !r->blank[i])
            say(a, a->found,
                "one of the two slots of the journal is damaged; the other one has the state above, and the "
                "next commit writes the damaged one anew");
    for (size_t i = 0; i < r->extents; i++) {
        json_object *one = json_object_new_object();
        json_object_object_add(one, "commit", json_object_new_uint64(r->extent[i].sequence));
        json_object_object_add(one, "after", json_object_new_uint64(r->extent[i].after));
        json_object_object_add(one, "bytes", json_object_new_uint64(r->extent[i].bytes));
        json_object_array_add(pending, one);
        cli_bytes(size, (double)r->extent[i].bytes);
        if (r->extent[i].sequence - r->extent[i].after == 1)
            say(a, a->found, "pending: commit %llu waits to be applied, %s", number(r->extent[i].sequence), size);
        else
            say(a, a->found, "pending: commits %llu to %llu wait to be applied, together %s",
                number(r->extent[i].after + 1), number(r->extent[i].sequence), size);
    }
    if (r->flagged)
        say(a, a->found, "half applied: the superblock says \"being written\", so HDF5 without h5cow refuses the file");
    else if (r->journal && !r->superblock_whole && !r->unfinished && slot != NULL)
        say(a, a->found, "the superblock is damaged; the journal has a copy of it");
    else if (r->stale && r->extents == 0)
        say(a, a->found, "the superblock is not that of the newest state; the journal has a copy of it");
    if (tail_of(r) > 0)
        say(a, a->found, "uncommitted: %s at the end of the file", cli_bytes(size, (double)tail_of(r)));
    for (size_t i = 0; i < r->pins; i++) {
        json_object_array_add(pins, json_object_new_uint64(r->pin[i]));
        say(a, a->found, "a reader has state %llu open", number(r->pin[i]));
    }
    if (r->writing)
        say(a, a->found, "a writer is at work: %s", r->writer);
    if (damage != NULL)
        say(a, a->found, "damaged: %s; to save what can be read: h5cow recover %s OUT", damage, name);
}

/* ---- finishing ---- */

static void say_plan(answer *a, const cow_journal_report *r, const char *would)
{
    bool pinned = r->pins > 0 && r->newest >= 0 && r->pin[0] < r->slot[r->newest].sequence;
    char size[32];

    if (r->unfinished)
        say(a, a->done, "%s emptied", would);
    if (r->extents > 0)
        say(a, a->done,
            pinned ? "%s applied when the readers have closed the file: %llu commit%s" : "%s applied: %llu commit%s",
            would, number(pending_of(r)), pending_of(r) == 1 ? "" : "s");
    if (torn(r))
        say(a, a->done, "%s put right: the superblock", would);
    if (tail_of(r) > 0)
        say(a, a->done, "%s given back: %s", would, cli_bytes(size, (double)tail_of(r)));
}

static int finish(answer *a, const char *name, const cow_journal_report *before)
{
    cow_journal_options options = cow_journal_defaults;
    cow_journal_report after;
    cow_journal *journal;
    char text[1024], size[32];
    int error = 0;

    options.apply_interval = 0;
    if (before->unfinished) {
        if (cow_journal_drop_unfinished(name) < 0)
            return cli_fail("%s", cli_reason(text, sizeof text));
        say(a, a->done, "it was emptied");
        return 0;
    }
    if ((journal = cow_journal_open(name, (cow_journal_mode){.writable = true}, &options, &error)) == NULL) {
        if (error == EROFS || error == EACCES || error == EPERM) {
            cow_error_clear();
            say_plan(a, before, "where it can be written, it will be");
            return cli_fail("'%s' cannot be written (%s), so nothing was done; nothing is lost by that: programs with "
                            "h5cow read the newest committed state",
                            name, strerror(error));
        }
        return cli_fail("'%s' cannot be recovered: %s", name, cli_reason(text, sizeof text));
    }
    cow_journal_close(journal);
    if (cow_journal_inspect(name, &after) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    if (before->extents > 0 && after.extents == 0)
        say(a, a->done, "applied: %llu commit%s", number(pending_of(before)), pending_of(before) == 1 ? "" : "s");
    if (after.extents > 0)
        say(a, a->done,
            "not applied yet: somebody is reading an older state; every program with h5cow sees the newest one, "
            "and the last reader of them that closes the file applies it");
    if (torn(before) && !torn(&after))
        say(a, a->done, "put right: the superblock");
    if (after.size < before->size)
        say(a, a->done, "given back: %s", cli_bytes(size, (double)(before->size - after.size)));
    json_object_object_add(a->whole, "left_pending", json_object_new_uint64(after.extents));
    cow_journal_report_free(&after);
    return 0;
}

/* As h5cow verify. CLI_OK or CLI_DAMAGED; files without history need not be checked. */
static int check(answer *a, const char *name, const cow_journal_report *r)
{
    json_object *damages = NULL, *counts = NULL;
    char why[1200], text[1024], *rewritten;
    cli_file file;
    size_t n = 0;
    int status;

    cli_hdf5_start();
    if ((status = cli_file_try(&file, name, why, sizeof why)) != 0) {
        json_object_object_add(a->whole, "check", cli_json_text(why));
        if (a->json)
            return status;
        if (r->journal || r->hidden || cow_disk_mentions(&cow_disk_system, name, COW_GROUP, UINT64_MAX) != 0)
            printf("damaged: %s; to save what can be read: h5cow recover %s OUT\n", why, name);
        else
            printf("damaged: %s; the file has no history, so there is no older state of it: what HDF5 itself cannot "
                   "read, only a copy of the file from elsewhere has\n",
                   why);
        return status;
    }
    status = cow_native_exists(file.loc, COW_ROOT);
    cli_file_close(&file);
    if (status == 0) {
        say(a, a->done, "it has no history, so there is nothing to check");
        return 0;
    }
    if (status < 0)
        cli_reason(text, sizeof text);
    if ((status = cli_verify_file(name, false, &damages, &counts)) == 0) {
        n = json_object_array_length(damages);
        if ((rewritten = cli_verify_rewritten(name, damages)) != NULL)
            say(a, a->found, "%s", rewritten);
        free(rewritten);
        if (!a->json) {
            cli_json_for_terminal(damages);
            printf(n == 0 ? "checked: no damage\n" : "checked: %zu damaged place%s\n", n, n == 1 ? "" : "s");
            for (size_t i = 0; i < n; i++)
                cli_verify_print(name, i + 1, json_object_array_get_idx(damages, i));
        }
        json_object_object_add(a->whole, "damage_found", json_object_get(damages));
        json_object_object_add(a->whole, "checked", json_object_get(counts));
        status = n > 0 ? CLI_DAMAGED : CLI_OK;
    }
    json_object_put(damages);
    json_object_put(counts);
    return status;
}

static int recover(answer *a, const char *name)
{
    cow_journal_report r;
    char text[1024];
    int status = 0;
    bool anything;

    if (cow_journal_inspect(name, &r) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    if (!r.journal && !r.unfinished && r.size == 0) {
        json_object_object_add(a->whole, "file", cli_json_text(name));
        json_object_object_add(a->whole, "left_pending", json_object_new_uint64(0));
        say(a, a->found, "%s: the file is empty: there is nothing to do", name);
        goto done;
    }
    if (!r.journal && !r.unfinished && cli_is_hdf5(name) <= 0) {
        status = cli_fail("'%s' is not an HDF5 file", name);
        goto done;
    }
    show(a, name, &r);
    anything = r.extents > 0 || torn(&r) || r.unfinished || tail_of(&r) > 0;
    if (r.writing) {
        status = cli_fail(
            "'%s' is being written by %s: nothing was changed; the writer itself leaves nothing undone when it "
            "closes the file",
            name, r.writer);
        goto done;
    }
    if (damage_of(&r) != NULL) {
        status = CLI_DAMAGED;
        goto done;
    }
    if (!anything)
        say(a, a->done, "there is nothing to do");
    else if (a->dry)
        say_plan(a, &r, "would be");
    else
        status = finish(a, name, &r);
    if (status == 0 && !a->dry && !r.unfinished)
        status = check(a, name, &r);
done:
    cow_journal_report_free(&r);
    return status;
}

int cli_recover(int argc, char **argv)
{
    static const struct option options[] = {{"dry-run", no_argument, NULL, 'n'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"quiet", no_argument, NULL, 'q'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    answer a = {0};
    int status;

    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, "nqh", options, NULL)) != -1;)
        switch (c) {
        case 'n':
            a.dry = true;
            break;
        case 'q':
            cli_progress_off();
            break;
        case 'j':
            cli_progress_off();
            a.json = true;
            break;
        case 'h':
            fputs(cli_recover_help, stdout);
            return cli_flush();
        default:
            return cli_no_option("recover", argv);
        }
    if (optind + 1 != argc && optind + 2 != argc)
        return cli_usage("recover", optind == argc ? "which file?" : "it wants FILE, and OUT to save what can be read");
    if (optind + 2 == argc) {
        if (cli_output_absent(argv[optind + 1]) != 0)
            return CLI_FAILED;
        return cli_salvage(argv[optind], argv[optind + 1], a.dry, a.json);
    }
    a.whole = json_object_new_object();
    a.found = json_object_new_array();
    a.done = json_object_new_array();
    status = recover(&a, argv[optind]);
    json_object_object_add(a.whole, "found", a.found);
    json_object_object_add(a.whole, "done", a.done);
    if (!a.json || status == CLI_FAILED) {
        json_object_put(a.whole);
        return status == CLI_FAILED || cli_flush() == 0 ? status : CLI_FAILED;
    }
    return cli_json(a.whole) != 0 ? CLI_FAILED : status;
}
