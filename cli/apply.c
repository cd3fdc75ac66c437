/* h5cow apply: bring commits that wait into the file's own bytes, so that HDF5 without h5cow sees them. */
#include "base/error.h"
#include "common.h"
#include "waiting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char cli_apply_help[] =
    "Usage: h5cow apply [--json] FILE\n\n"
    "Applies commits of FILE that wait, so that programs without h5cow see the newest state. A commit waits when somebody had\n"
    "an older state open as it was made. Programs with h5cow see the newest state all the time, and the last of them that\n"
    "closes the file applies what waits, where it may write it; so this is for files that were read without h5cow, or by\n"
    "programs that died, or that may not write. Where it cannot be done, it says who is in the way. The time of FILE's last\n"
    "change stays that of the commit.\n\n"
    "      --json    the answer as one JSON object\n"
    "  -h, --help\n\n"
    "Exit code 0: nothing waits any more, 2: something still waits, and it says why.\n\n"
    "Example: h5cow apply run.h5\n";

static int answer(const char *name, bool json, uint64_t applied, uint64_t left, const char *why)
{
    json_object *whole;

    if (json) {
        whole = json_object_new_object();
        json_object_object_add(whole, "file", cli_json_text(name));
        json_object_object_add(whole, "applied", json_object_new_uint64(applied));
        json_object_object_add(whole, "waiting", json_object_new_uint64(left));
        json_object_object_add(whole, "why", why == NULL ? NULL : cli_json_text(why));
        if (cli_json(whole) != 0)
            return CLI_FAILED;
    } else if (applied > 0)
        printf("applied: %llu commit%s\n", (unsigned long long)applied, applied == 1 ? "" : "s");
    else if (left == 0)
        printf("%s: nothing waits to be applied\n", name);
    if (left > 0)
        return cli_fail("'%s': %llu commit%s still wait%s to be applied: %s", name, (unsigned long long)left,
                        left == 1 ? "" : "s", left == 1 ? "s" : "", why);
    return cli_flush();
}

static int apply(const char *name, bool json)
{
    cow_journal_report before, after;
    char text[1024], *why = NULL;
    uint64_t waiting, left;
    int number = 0, status;

    if (cow_journal_inspect(name, &before) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    waiting = cli_waiting_count(&before);
    cow_journal_report_free(&before);
    if (!before.journal || before.newest < 0)
        return cli_fail("'%s' has no journal, so nothing in it can wait to be applied%s%s", name,
                        before.journal ? ": it is damaged: h5cow recover " : "", before.journal ? name : "");
    if (waiting == 0 && !before.flagged)
        return answer(name, json, 0, 0, NULL);
    status = cow_journal_apply_waiting(name, &number);
    cli_reason(text, sizeof text);
    if (cow_journal_inspect(name, &after) < 0)
        return cli_fail("%s", cli_reason(text, sizeof text));
    if ((left = cli_waiting_count(&after)) > 0) {
        why = cli_waiting_why(name, &after);
        if (*why == '\0') {
            free(why);
            why = status == 0   ? cli_strdup("somebody was in the way a moment ago; try it again")
                  : number != 0 ? cli_format("this user cannot write the file (%s)", strerror(number))
                                : cli_strdup(text);
        }
    }
    status = answer(name, json, waiting > left ? waiting - left : 0, left, why);
    cow_journal_report_free(&after);
    free(why);
    return status;
}

int cli_apply(int argc, char **argv)
{
    const char *name;
    bool json;
    int status = cli_one_file("apply", cli_apply_help, argc, argv, &name, &json);

    return status >= 0 ? status : apply(name, json);
}
