/* The error record of a thread, and how it gets onto HDF5's error stack. Contract: error.h.
 *
 * HDF5 functions are called only to take over or put back its stack: a worker thread, which must not call HDF5, can
 * record, take and give errors as long as they are not native ones.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGE_SIZE sizeof(((cow_error_box *)0)->message)
#define CONTEXTS     6 /* further ones are dropped: the cause and what stands next to it are what helps */

typedef struct error_record {
    bool set;
    cow_kind kind;
    hid_t stack; /* > 0: HDF5's stack, holding the cause; the message then is its lowest record and ours */
    char message[MESSAGE_SIZE];
    unsigned contexts;
    char context[CONTEXTS][MESSAGE_SIZE];
} error_record;

/* Errors belong to the thread that failed, as HDF5's own stack does. */
static _Thread_local error_record current;

static void add_context(const char *format, va_list arguments)
{
    if (current.contexts < CONTEXTS)
        vsnprintf(current.context[current.contexts++], MESSAGE_SIZE, format, arguments);
}

static void record(cow_kind kind, const char *format, va_list arguments)
{
    if (current.set) {
        add_context(format, arguments);
        return;
    }
    current.set = true;
    current.kind = kind;
    current.stack = 0;
    current.contexts = 0;
    vsnprintf(current.message, sizeof current.message, format, arguments);
}

int cow_error(cow_kind kind, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    record(kind, format, arguments);
    va_end(arguments);
    return -1;
}

int cow_context(const char *format, ...)
{
    va_list arguments;

    /* With nothing recorded the one below has failed silently; better this line than none. */
    va_start(arguments, format);
    record(COW_IO, format, arguments);
    va_end(arguments);
    return -1;
}

int cow_error_where(const char *place, const char *doing)
{
    size_t length = strlen(place), kept = strlen(current.message);

    if (!current.set || current.stack > 0)
        return cow_context("%s: %s", place, doing);
    if (strstr(current.message, place) == NULL && length + 3 <= MESSAGE_SIZE) {
        if (kept > MESSAGE_SIZE - length - 3)
            kept = MESSAGE_SIZE - length - 3;
        memmove(current.message + length + 2, current.message, kept);
        current.message[length + 2 + kept] = '\0';
        memcpy(current.message, place, length);
        memcpy(current.message + length, ": ", 2);
    }
    return -1;
}

static void replace(char text[MESSAGE_SIZE], const char *before, const char *after)
{
    char *at = strstr(text, before), copy[MESSAGE_SIZE];

    if (at == NULL)
        return;
    snprintf(copy, sizeof copy, "%.*s%s%s", (int)(at - text), text, after, at + strlen(before));
    memcpy(text, copy, sizeof copy);
}

void cow_error_replace(const char *before, const char *after)
{
    if (!current.set)
        return;
    replace(current.message, before, after);
    for (unsigned i = 0; i < current.contexts; i++)
        replace(current.context[i], before, after);
}

void cow_error_in_file(const char *name)
{
    const char *base = strrchr(name, '/');

    base = base == NULL ? name : base + 1;
    if (!current.set || (current.kind != COW_MEMORY && current.kind != COW_IO) || strstr(current.message, base) != NULL)
        return;
    for (unsigned i = 0; i < current.contexts; i++)
        if (strstr(current.context[i], base) != NULL)
            return;
    cow_error_where(name, "in this file");
}

typedef struct lowest_record {
    hid_t minor;
    bool plugin;
    char text[MESSAGE_SIZE / 2];
} lowest_record;

static herr_t note_lowest(unsigned n, const H5E_error2_t *error, void *context)
{
    lowest_record *lowest = context;

    if (n == 0) {
        lowest->minor = error->min_num;
        lowest->plugin = error->maj_num == H5E_PLUGIN;
    }
    /* where plugins were looked for says less than what filter it was for */
    if (n == 0 || (lowest->plugin && error->maj_num == H5E_PLINE)) {
        lowest->plugin = n == 0 && lowest->plugin;
        snprintf(lowest->text, sizeof lowest->text, "%s", error->desc ? error->desc : "");
    }
    return 0;
}

static herr_t find_emptied(unsigned n, const H5E_error2_t *error, void *context)
{
    if (error->desc != NULL)
        return 0;
    *(size_t *)context = n;
    return 1;
}

hid_t cow_errors_take(void)
{
    ssize_t count = H5Eget_num(H5E_DEFAULT);
    size_t emptied = 0;

    if (count <= 0)
        return H5I_INVALID_HID;
    if (H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_emptied, &emptied) != 0 &&
        (emptied == 0 || H5Epop(H5E_DEFAULT, (size_t)count - emptied) < 0))
        return H5I_INVALID_HID;
    return H5Eget_current_stack();
}

void cow_errors_give_back(hid_t records)
{
    if (records >= 0)
        H5Eset_current_stack(records);
}

#define STACK_ROOM 32 /* H5E_NSLOTS; further records are not kept */

size_t cow_errors_count(void)
{
    ssize_t count = H5Eget_num(H5E_DEFAULT);

    return count < 0 ? SIZE_MAX : (size_t)count;
}

void cow_errors_drop(size_t before)
{
    ssize_t count = H5Eget_num(H5E_DEFAULT);

    if (count > 0 && (size_t)count > before && count < STACK_ROOM)
        H5Epop(H5E_DEFAULT, (size_t)count - before);
}

int cow_error_native(const char *format, ...)
{
    va_list arguments;
    lowest_record lowest = {0};
    hid_t stack;

    va_start(arguments, format);
    if (current.set) {
        add_context(format, arguments);
        goto done;
    }
    stack = cow_errors_take();
    record(COW_IO, format, arguments);
    if (stack > 0) {
        size_t length = strlen(current.message);
        H5Ewalk2(stack, H5E_WALK_UPWARD, note_lowest, &lowest);
        /* What is published above HDF5's own records is our line alone; the whole message is for everybody else. */
        memcpy(current.context[current.contexts++], current.message, MESSAGE_SIZE);
        snprintf(current.message + length, sizeof current.message - length, ": %s", lowest.text);
        current.stack = stack;
        if (lowest.minor == H5E_NOTFOUND)
            current.kind = COW_NOT_FOUND;
    }
done:
    va_end(arguments);
    return -1;
}

void cow_error_lowest(char *text, size_t size)
{
    static const char says[] = "error message = '";
    lowest_record lowest = {.text = "no reason was given"};
    char *time, *why;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_lowest, &lowest);
    H5Eclear2(H5E_DEFAULT);
    /* H5FD__sec2_write and _read: "file write failed: time = ..., errno = 28, error message = '...', buf = ..." */
    if ((time = strstr(lowest.text, ": time = ")) != NULL && (why = strstr(time, says)) != NULL) {
        why += strlen(says);
        why[strcspn(why, "'")] = '\0';
        memmove(time + 2, why, strlen(why) + 1);
    }
    snprintf(text, size, "%s", lowest.text);
}

typedef struct majors {
    bool filter, metadata;
} majors;

static herr_t note_major(unsigned n, const H5E_error2_t *error, void *context)
{
    /* what else H5F__flush does, which goes on after a dataset that fails */
    static const char *const rest[] = {"metadata", "MDC", "low level", "page buffer", "file space"};
    majors *m = context;

    (void)n;
    /* or they made more of a chunk than HDF5 can store */
    m->filter |= error->maj_num == H5E_PLINE ||
                 (error->desc != NULL && strstr(error->desc, "chunk too large for 32-bit length") != NULL);
    for (size_t i = 0; error->desc != NULL && i < sizeof rest / sizeof *rest; i++)
        m->metadata |= strstr(error->desc, rest[i]) != NULL;
    return 0;
}

bool cow_error_of_filters(void)
{
    majors m = {false, false};

    return current.set && current.stack > 0 && H5Ewalk2(current.stack, H5E_WALK_UPWARD, note_major, &m) >= 0 &&
           m.filter && !m.metadata;
}

bool cow_error_is(cow_kind kind)
{
    return current.set && current.kind == kind;
}

bool cow_error_pending(void)
{
    return current.set;
}

const char *cow_error_message(void)
{
    return current.set ? current.message : "";
}

void cow_error_clear(void)
{
    if (current.set && current.stack > 0)
        H5Eclose_stack(current.stack);
    current.set = false;
    current.stack = 0;
    current.contexts = 0;
}

struct cow_error_held {
    error_record record;
    bool used;
};

/* What is held most often is that there is no memory. So the first ones have their place. */
static _Thread_local cow_error_held places[2];

static cow_error_held *place(void)
{
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!places[i].used)
            return &places[i];
    return malloc(sizeof *places); /* without memory the error may be lost: callbacks are rarely as deep as that */
}

cow_error_held *cow_error_hold(void)
{
    cow_error_held *held = current.set ? place() : NULL;

    if (held != NULL) {
        held->used = true;
        held->record = current;
        current.set = false;
        current.stack = 0;
        current.contexts = 0;
    }
    return held;
}

void cow_error_put_back(cow_error_held *held)
{
    if (held == NULL)
        return;
    cow_error_clear();
    current = held->record;
    held->used = false;
    if (held < places || held >= places + sizeof places / sizeof *places)
        free(held);
}

void cow_error_take(cow_error_box *box)
{
    size_t length;
    unsigned first = current.stack > 0 ? 1 : 0; /* the first context of a native error is part of the message */

    box->set = current.set;
    box->kind = current.kind;
    box->message[0] = '\0';
    if (!current.set)
        return;
    /* One message, the cause first, so that nothing is lost on the way to the other thread. */
    length = (size_t)snprintf(box->message, sizeof box->message, "%s", current.message);
    for (unsigned i = first; i < current.contexts && length < sizeof box->message; i++)
        length += (size_t)snprintf(box->message + length, sizeof box->message - length, "; %s", current.context[i]);
    cow_error_clear();
}

int cow_error_give(cow_error_box *box)
{
    if (box->set)
        cow_error(box->kind, "%s", box->message);
    box->set = false;
    return -1;
}

/* What a program that walks the stack can tell the kinds by. h5py takes the type of its exception from the outermost
 * record, which is HDF5's own (KeyError for opening an object, OSError for a file, reading, writing), and shows the
 * lowest message behind it; "errno = N" in that message makes an OSError the subclass for N (2: FileNotFoundError, on
 * which mode 'a' creates the file), so it must stand in a message only where it is meant. */
static void kind_numbers(cow_kind kind, hid_t *major, hid_t *minor)
{
    switch (kind) {
    case COW_USAGE:
        *major = H5E_ARGS;
        *minor = H5E_BADVALUE;
        return;
    case COW_NOT_FOUND:
        *major = H5E_SYM;
        *minor = H5E_NOTFOUND;
        return;
    case COW_READ_ONLY:
        *major = H5E_FILE;
        *minor = H5E_WRITEERROR;
        return;
    case COW_CORRUPT:
        *major = H5E_IO;
        *minor = H5E_READERROR;
        return;
    case COW_IO:
        *major = H5E_INTERNAL;
        *minor = H5E_SYSERRSTR;
        return;
    case COW_MEMORY:
        *major = H5E_RESOURCE;
        *minor = H5E_NOSPACE;
        return;
    case COW_UNSUPPORTED:
        *major = H5E_VOL;
        *minor = H5E_UNSUPPORTED;
        return;
    }
    *major = H5E_VOL;
    *minor = H5E_CANTINIT;
}

void cow_error_publish(void)
{
    hid_t major, minor;

    if (!current.set)
        return;
    kind_numbers(current.kind, &major, &minor);
    if (current.stack > 0) {
        H5Eset_current_stack(current.stack); /* gives the id back as well */
        current.stack = 0;
    } else {
        /* Records left by calls whose failure was expected would otherwise be the lowest. */
        H5Eclear2(H5E_DEFAULT);
        H5Epush2(H5E_DEFAULT, "h5cow", "h5cow", 0, H5E_ERR_CLS, major, minor, "%s", current.message);
    }
    for (unsigned i = 0; i < current.contexts; i++)
        H5Epush2(H5E_DEFAULT, "h5cow", "h5cow", 0, H5E_ERR_CLS, major, minor, "%s", current.context[i]);
    cow_error_clear();
}
