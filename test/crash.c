/* Power cuts, simulated: crash [--damages N] [--long] [--every N] [--scenario NAME]
 *
 * Scenario programs run over a disk that logs every write, change of size and sync (crash_disk.c): on HDF5 and the
 * journal alone (crash_journal.c), and with the whole connector (crash_connector.c). Then (crash_sweep.c), for every
 * point between two operations, the power goes: what was synced is there, and of what was not
 *   all, nothing, all but one, one alone, each beginning, and at least --damages random mixtures, in which writes are
 *   whole, lost, torn at multiples of 512 bytes, or torn with random bytes in the part that did not arrive.
 * Writes that a failed sync was to bring onto the disk may be lost for ever, although later syncs succeed.
 *
 * Each resulting file is opened by a reader, by HDF5 without the journal, and by a writer, which recovers it. All must
 * see exactly one committed state: the last one that was reported, or the one that was being made; HDF5 without the
 * journal may instead be refused, or see an older one where a reader kept a commit from being applied. Recovery is cut
 * off at each of its operations as well, twice; also where it follows a kill, so that nothing new had been synced.
 *
 * What is seen is told by content: for each committed state the bytes that HDF5 reads to read everything in it. So it
 * has to be looked at closely only once what each of these states is: with all its versions what the scenario wrote,
 * through the connector and without it, and h5cow verify finds no damage. The same is done to a sample of the files.
 *
 * What happens to names, when a file is put aside, is gone through in crash_names.c.
 */
#include "crash_programs.h"
#include "files.h"
#include "journal/journal.h"
#include "journal_states.h"
#include "random.h"
#include "results.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line for docs/reliability.md. */
static void tell(int item, const char *what, const char *result, const char *arguments)
{
    FILE *out = results_open();

    if (out == NULL)
        return;
    fprintf(out, "{\"item\": %d, \"what\": \"%s\", \"result\": \"%s\", \"command\": \"build/release/test/crash%s\"}\n",
            item, what, result, arguments);
    fclose(out);
}

/* 1234567: 1,234,567 */
static const char *grouped(unsigned long number, char text[32])
{
    char plain[32];
    int length = snprintf(plain, sizeof plain, "%lu", number), n = 0;

    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[n++] = ',';
        text[n++] = plain[i];
    }
    text[n] = '\0';
    return text;
}

static void report(const crash_totals *t, const char *arguments)
{
    char number[8][32], text[512];

    snprintf(text, sizeof text,
             "%s crash states of %s programs (%s operations): %s the state before, %s the one after, %s anything "
             "else; HDF5 itself read %s of them; %s more were read version by version through h5cow and without it, "
             "recovered and verified",
             grouped(t->states, number[0]), grouped(t->scenarios, number[1]), grouped(t->operations, number[2]),
             grouped(t->before, number[3]), grouped(t->after, number[4]), grouped(t->wrong, number[5]),
             grouped(t->asked, number[6]), grouped(t->deep, number[7]));
    puts(text);
    tell(1, "power cuts at every operation, with every subset rule of what was not synced", text, arguments);
    snprintf(text, sizeof text,
             "%s recoveries; %s of them were cut off at each of their operations, some of these again; %s led to "
             "another state than the one before",
             grouped(t->recovered, number[0]), grouped(t->cut_recoveries, number[1]), grouped(t->wrong, number[2]));
    puts(text);
    tell(2, "recovery after a power cut, itself cut off", text, arguments);
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    char arguments[256] = "";
    crash_totals total = {0};

    setenv(COW_LOOKS_VARIABLE, "1",
           1); /* what is looked at stays as it is; how it is applied, a writer's opening shows */
    for (int i = 1; i < argc; i++)
        snprintf(arguments + strlen(arguments), sizeof arguments - strlen(arguments), " %s", argv[i]);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--long") == 0) {
            crash_damages = 100;
            crash_recoveries = 12;
        } else if (i + 1 < argc && strcmp(argv[i], "--every") == 0)
            crash_every = (unsigned)strtoul(argv[++i], NULL, 10), crash_recoveries = 1;
        else if (i + 1 < argc && strcmp(argv[i], "--damages") == 0)
            crash_damages = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (i + 1 < argc && strcmp(argv[i], "--scenario") == 0)
            only = argv[++i];
        else {
            fprintf(stderr, "usage: crash [--damages N] [--long] [--every N] [--scenario NAME]\n");
            return 2;
        }
    crash_random(test_seed());
    const char *folder = memory_folder();
    snprintf(crash_dummy, sizeof crash_dummy, "%s/crash.%d.locks", folder, (int)getpid());
    snprintf(crash_real, sizeof crash_real, "%s/crash.%d.h5", folder, (int)getpid());
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    state_without_plugins();
    crash_journal(only, &total);
    crash_connector(only, &total);
    crash_names(only, &total);
    report(&total, arguments);
    return total.wrong > 0 || total.states == 0;
}
