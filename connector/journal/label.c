/* Labels of files. Contract: label.h. */
#include "journal/label.h"

#include "base/bytes.h"
#include "base/newfile.h"
#include "base/witness.h"
#include "journal/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FORM 1  /* the first byte */
#define TOLD 1u /* in the second */
#define NAME                                                                                                           \
    34 /* where the name begins; small enough for most file systems to keep it all beside the file's other properties */
#define BYTES (NAME + sizeof((cow_label *)0)->name - 1)

/* ---- bytes ---- */

static size_t encode(const cow_label *label, uint8_t bytes[BYTES])
{
    const size_t length = strlen(label->name);

    bytes[0] = FORM;
    bytes[1] = label->told ? TOLD : 0;
    memcpy(bytes + 2, label->history, sizeof label->history);
    cow_put64(bytes + 18, label->number);
    cow_put64(bytes + 26, (uint64_t)label->time);
    memcpy(bytes + NAME, label->name, length);
    return NAME + length;
}

/* Anybody who may write the file can have written it. */
static bool decode(const uint8_t *bytes, size_t size, cow_label *label)
{
    if (size < NAME || bytes[0] != FORM)
        return false;
    *label = (cow_label){
        .number = cow_get64(bytes + 18), .time = (int64_t)cow_get64(bytes + 26), .told = (bytes[1] & TOLD) != 0};
    memcpy(label->history, bytes + 2, sizeof label->history);
    memcpy(label->name, bytes + NAME, size - NAME);
    for (size_t i = NAME; i < size; i++)
        if (bytes[i] < ' ' || bytes[i] == 0x7f || bytes[i] == '/')
            return false; /* no version can be called that */
    return true;
}

bool cow_label_get(const cow_disk *disk, cow_label *label)
{
    uint8_t bytes[BYTES];
    const int number = errno;
    ssize_t size = disk->calls->get_label == NULL
                       ? -1
                       : disk->calls->get_label(disk->calls->context, disk->fd, bytes, sizeof bytes);

    errno = number;
    return size > 0 && (size_t)size <= sizeof bytes && decode(bytes, (size_t)size, label);
}

bool cow_label_put(const cow_disk *disk, const cow_label *label)
{
    uint8_t bytes[BYTES];
    const size_t size = encode(label, bytes);
    const int number = errno;
    bool done =
        disk->calls->set_label != NULL && disk->calls->set_label(disk->calls->context, disk->fd, bytes, size) == 0;

    errno = number;
    return done;
}

/* ---- what is said ---- */

const char *cow_label_text(const cow_label *label, char text[400])
{
    const time_t seconds = (time_t)(label->time / 1000000);
    char when[40] = "?";
    struct tm local;

    if (localtime_r(&seconds, &local) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &local);
    snprintf(text, 400, "#%llu '%s', made %s", (unsigned long long)label->number, label->name, when);
    return text;
}

static void say(const char *name, const cow_label *label, const char *now)
{
    char text[400];

    if (label->number > 0)
        cow_tell(
            "%s: the file had a history, whose last version known is %s; a program without h5cow emptied it or wrote "
            "it anew, and %s",
            name, cow_label_text(label, text), now);
    else
        cow_tell("%s: the file had a history; a program without h5cow emptied it or wrote it anew, and %s", name, now);
}

void cow_label_say_once(const cow_disk *disk, const char *name, cow_label *label, const char *now)
{
    if (label->told || !cow_tells() || cow_newfile_is(name))
        return;
    label->told = true;
    if (cow_label_put(disk, label))
        say(name, label, now);
}

/* ---- for the journal ---- */

void cow_label_version(cow_journal *journal, const char *name, uint64_t number, int64_t time)
{
    cow_label *label = &journal->label;

    label->number = number;
    label->time = time;
    snprintf(label->name, sizeof label->name, "%s", name);
    journal->labelled = true;
}

/* For `h5cow run`, which may not find the file any more. */
static void witness(const cow_label *label)
{
    char text[2 * sizeof label->history + 1 + 400], *at = text;

    if (getenv(COW_WITNESS_VARIABLE) == NULL)
        return;
    for (size_t i = 0; i < sizeof label->history; i++)
        at += sprintf(at, "%02x", label->history[i]);
    *at++ = ' ';
    cow_label_text(label, at);
    cow_witness(COW_WITNESS_VERSION, text);
}

void cow_label_committed(cow_journal *journal)
{
    const bool first = journal->slot.sequence == 1;
    cow_label former;

    if (!journal->labelled && !first)
        return;
    memcpy(journal->label.history, journal->anchor.id, sizeof journal->label.history);
    if (journal->labelled)
        witness(&journal->label);
    journal->labelled = false;
    if (first && cow_label_get(&journal->disk, &former) &&
        memcmp(former.history, journal->anchor.id, sizeof former.history) != 0 &&
        cow_label_put(&journal->disk, &journal->label))
        say(journal->name, &former, "a new history begins");
    else
        cow_label_put(&journal->disk, &journal->label);
}

void cow_label_compare(const cow_journal *journal)
{
    cow_label label;

    if (journal->slot.sequence > 0 && cow_label_get(&journal->disk, &label) &&
        memcmp(label.history, journal->anchor.id, sizeof label.history) != 0)
        cow_label_say_once(&journal->disk, journal->name, &label, "it has another history now");
}
