/* The version to come: which row of the log, after which one, by what name and with what message. */
#include "history/next_version.h"

#include "base/digest.h"
#include "base/error.h"
#include "h5cow.h"
#include "history/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cow_next_version {
    uint64_t known;
    int64_t newest, running; /* rows, -1: none */
    int64_t restored;        /* what the next one is made of; -1: the newest */
    bool missed;
    bool uses;            /* the running one has named datatypes that only their use holds */
    cow_layout_log *log;  /* of the running commit; NULL: not met yet */
    char *name, *message; /* "": none; NULL: as the options say */
};

cow_next_version *cow_next_version_new(void)
{
    cow_next_version *next = calloc(1, sizeof *next);

    if (next != NULL)
        next->newest = next->running = next->restored = -1;
    return next;
}

static void forget_description(cow_next_version *next)
{
    free(next->name);
    free(next->message);
    next->name = next->message = NULL;
}

void cow_next_version_free(cow_next_version *next)
{
    if (next == NULL)
        return;
    forget_description(next);
    free(next);
}

/* ---- rows ---- */

int cow_versions_open(cow_file *file)
{
    if (!cow_layout_still_log_rows(file->written, &file->next_version->known) &&
        cow_layout_log_rows(file->loc, &file->next_version->known) < 0)
        return -1;
    file->next_version->newest = (int64_t)file->next_version->known - 1;
    return 0;
}

uint64_t cow_versions_known(const cow_file *file)
{
    return file->next_version->known;
}

int64_t cow_versions_newest(const cow_file *file)
{
    return file->next_version->newest;
}

int64_t cow_versions_running(const cow_file *file)
{
    return file->next_version->running;
}

void cow_versions_made(cow_file *file, uint64_t row, bool finished)
{
    cow_next_version *next = file->next_version;

    next->newest = (int64_t)row;
    next->restored = -1;
    if (row == next->known)
        next->known++;
    next->running = finished ? -1 : (int64_t)row;
}

void cow_versions_end(cow_file *file)
{
    file->next_version->running = -1;
    file->next_version->uses = false;
}

void cow_versions_descend(cow_file *file, uint64_t row)
{
    file->next_version->restored = (int64_t)row;
}

void cow_versions_depart(cow_file *file)
{
    file->next_version->restored = -1;
}

int64_t cow_versions_parent(const cow_file *file)
{
    return file->next_version->restored >= 0 ? file->next_version->restored : file->next_version->newest;
}

void cow_versions_set_missed(cow_file *file, bool missed)
{
    file->next_version->missed = missed;
}

bool cow_versions_missed(const cow_file *file)
{
    return file->next_version->missed;
}

void cow_versions_use_types(cow_file *file)
{
    file->next_version->uses = true;
}

bool cow_versions_uses_types(const cow_file *file)
{
    return file->next_version->uses;
}

int cow_versions_meet(cow_file *file)
{
    cow_next_version *next = file->next_version;

    if (next->log != NULL)
        return 0;
    if ((next->log = cow_layout_log_open(file->loc, file->written)) == NULL)
        return -1;
    if (cow_versions_meet_blocks(next->log) == 0)
        return 0;
    cow_versions_part(file);
    return -1;
}

cow_layout_log *cow_versions_log(const cow_file *file)
{
    return file->next_version->log;
}

void cow_versions_part(cow_file *file)
{
    cow_error_held *held;

    if (file->next_version->log == NULL)
        return;
    held = cow_error_hold();
    cow_layout_log_close(file->next_version->log);
    file->next_version->log = NULL;
    cow_error_put_back(held);
}

/* ---- name and message ---- */

static int version_stands(const cow_file *file, const char *name)
{
    char path[COW_PATH_MAX + 256];

    snprintf(path, sizeof path, COW_PATH_VERSIONS "/%s", name);
    return cow_native_exists(file->loc, path);
}

/* Where the group of tags is damaged there is none: a version can do without. */
static bool tag_stands(const cow_file *file, const char *name)
{
    char path[COW_PATH_MAX + 256];
    H5O_info2_t info;
    int exists;

    if (cow_layout_still_lacks_tag(file->written, name))
        return false;
    exists = cow_native_exists(file->loc, COW_PATH_TAGS);
    snprintf(path, sizeof path, COW_PATH_TAGS "/%s", name);
    if (exists > 0 &&
        (cow_layout_hard(file->loc, COW_PATH_TAGS) < 0 ||
         cow_native_info(file->loc, COW_PATH_TAGS, H5O_INFO_BASIC, &info) < 0 || info.type != H5O_TYPE_GROUP))
        exists = -1;
    if (exists > 0)
        exists = cow_native_exists(file->loc, path);
    if (exists < 0)
        cow_error_clear();
    return exists > 0;
}

int cow_version_exists(const cow_file *file, const char *name)
{
    int exists = version_stands(file, name);

    return exists != 0 ? exists : tag_stands(file, name);
}

/* Checksums of the last names that the option `name` has given to versions in this process. */
static struct {
    uint64_t name[16];
    unsigned next;
} given;

static bool was_given(const char *name)
{
    uint64_t key = cow_checksum(name, strlen(name));

    for (size_t i = 0; i < sizeof given.name / sizeof *given.name; i++)
        if (given.name[i] == key)
            return true;
    return false;
}

int cow_version_may_be_made(const cow_file *file)
{
    const char *name = file->options->name;

    if (name == NULL || was_given(name))
        return 0;
    return cow_version_is_new(file, name);
}

int cow_version_is_new(const cow_file *file, const char *name)
{
    int version = file->laid_out ? version_stands(file, name) : 0;

    if (version < 0)
        return -1;
    if (version == 0 && !(file->laid_out && tag_stands(file, name)))
        return 0;
    return cow_error(COW_USAGE, "%s: there is a %s '%s' already; choose another name", file->name,
                     version > 0 ? "version" : "tag", name);
}

static int replace(char **text, const char *with)
{
    char *copy = strdup(with);

    if (copy == NULL)
        return cow_error(COW_MEMORY, "no memory for the description of a version");
    free(*text);
    *text = copy;
    return 0;
}

/* A version bears the name that it was flushed with. */
static int may_be_called(cow_file *file, const char *name)
{
    if (cow_version_name_check("h5cow_describe: name", name) < 0 || cow_version_name_not_reserved(file->name, name) < 0)
        return -1;
    if (file->next_version->running >= 0)
        return cow_error(COW_USAGE,
                         "%s: what was written so far has been flushed, and is version #%lld, which has its name "
                         "already; call h5cow_describe before the first H5Fflush, or h5cow_commit before it",
                         file->name, (long long)file->next_version->running + 1);
    return cow_version_is_new(file, name);
}

int cow_file_describe(cow_file *file, const char *name, const char *message)
{
    if (cow_file_may_write(file) < 0 || (name != NULL && name[0] != '\0' && may_be_called(file, name) < 0) ||
        (message != NULL && replace(&file->next_version->message, message) < 0))
        return -1;
    return name == NULL ? 0 : replace(&file->next_version->name, name);
}

void cow_description_used(cow_file *file)
{
    const char *name = file->options->name;

    if (file->next_version->name == NULL && name != NULL && !was_given(name))
        given.name[given.next++ % (sizeof given.name / sizeof *given.name)] = cow_checksum(name, strlen(name));
    forget_description(file->next_version);
}

/* What the program said, or else the options; NULL for an empty text. */
static const char *said(const char *next, const char *option)
{
    const char *text = next != NULL ? next : option;

    return text == NULL || text[0] == '\0' ? NULL : text;
}

const char *cow_description_name(const cow_file *file)
{
    return said(file->next_version->name, file->options->name);
}

const char *cow_description_message(const cow_file *file)
{
    return said(file->next_version->message, file->options->message);
}

const char *cow_description_given(const cow_file *file)
{
    return file->next_version->message;
}
