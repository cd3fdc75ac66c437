/* What programs that know of versions ask for: which there are, one now, and none at all. Their side of it is api/h5cow.h; arguments are looked at by vol/operations.c.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/vector.h"
#include "h5cow.h"
#include "history/next_version.h"
#include "journal/driver.h"
#include "journal/journal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cow_file_make_version(cow_file *file, uint64_t *number)
{
    bool running = cow_versions_running(file) >= 0;
    uint64_t before = cow_versions_known(file);

    *number = 0;
    if (cow_file_may_write(file) < 0 || cow_file_commit(file, COW_VERSION) < 0)
        return -1;
    if (!cow_versions_missed(file) && (running || cow_versions_known(file) > before))
        *number = (uint64_t)cow_versions_newest(file) + 1;
    return 0;
}

bool cow_file_changed(const cow_file *file)
{
    return cow_file_state_of(file) == COW_FILE_OPEN;
}

int cow_file_abandon(cow_file *file)
{

    if (cow_file_state_of(file) == COW_FILE_ABANDONED)
        return 0;
    /* after a failure nothing more is written anyhow; now closing the file need not report it once more */
    if (cow_file_may_write(file) < 0 && (cow_file_state_of(file) != COW_FILE_FAILED || !cow_file_ours(file)))
        return -1;
    cow_error_clear();
    if (file->journal == NULL)
        return cow_error(COW_UNSUPPORTED,
                         "%s: what was written cannot be dropped, since the file is kept in memory, or by a file "
                         "driver other than the default one",
                         file->name);
    if (cow_journal_abandon(file->journal, "the program dropped its changes", cow_file_instead_of(file)) < 0)
        return -1;
    cow_file_enter(file, COW_FILE_ABANDONED);
    return 0;
}

/* ---- which there are ---- */

int cow_versions_count(cow_file *file, uint64_t *count)
{
    *count = 0;
    if (cow_file_failure(file)[0] != '\0') /* the log may have a row that was not committed */
        return cow_error(COW_IO,
                         "%s: the versions cannot be told since an earlier failure (%s); close the file, and "
                         "open it again",
                         file->name, cow_file_failure(file));
    return file->laid_out ? cow_layout_log_rows(file->loc, count) : 0;
}

typedef struct tag {
    uint64_t version; /* which of those that are told */
    char *name;
} tag;

typedef struct telling {
    cow_file *file;
    uint64_t first, count;
    cow_layout_log_row *row;
    bool *incomplete;
    cow_map named; /* checksum of a name -> version */
    cow_loc group; /* with the tags */
    tag *tags;
    size_t tag_count, tag_room;
} telling;

static void done(telling *t)
{
    for (uint64_t i = 0; t->row != NULL && i < t->count; i++)
        cow_layout_log_row_free(&t->row[i]);
    for (size_t i = 0; i < t->tag_count; i++)
        free(t->tags[i].name);
    free(t->tags);
    free(t->row);
    free(t->incomplete);
    cow_map_free(&t->named);
}

static int no_memory(const telling *t)
{
    return cow_error(COW_MEMORY, "%s: no memory to tell %llu versions", t->file->name, (unsigned long long)t->count);
}

static int read_rows(telling *t)
{
    if ((t->row = calloc(t->count, sizeof *t->row)) == NULL ||
        (t->incomplete = calloc(t->count, sizeof *t->incomplete)) == NULL)
        return no_memory(t);
    if (cow_layout_log_read_many(t->file->loc, t->first, t->count, NULL, t->row) < 0)
        return -1;
    for (uint64_t i = 0; i < t->count; i++) {
        const char *name = t->row[i].name;
        if (name == NULL)
            return cow_error(COW_CORRUPT, "%s: a version has no name; try: h5cow verify", t->file->name);
        if (t->row[i].open != COW_LOG_FORGOTTEN && cow_map_put(&t->named, cow_checksum(name, strlen(name)), i) < 0)
            return -1;
    }
    return 0;
}

static int read_lacks(telling *t)
{
    enum { MANY = 64 };
    cow_layout_lack lack[MANY];
    cow_table *table;
    uint64_t sum = 0;
    int status = cow_layout_lacks_open(t->file->loc, &table);

    if (status <= 0)
        return status;
    status = 0;
    for (uint64_t at = 0, n; status == 0 && at < table->rows; at += n) {
        n = table->rows - at < MANY ? table->rows - at : MANY;
        if ((status = cow_layout_lacks_rows(t->file->loc, table, at, n, &sum, lack)) < 0)
            break;
        for (uint64_t i = 0; i < n; i++)
            if (lack[i].version >= t->first && lack[i].version - t->first < t->count)
                t->incomplete[lack[i].version - t->first] = true;
        cow_layout_lacks_rows_free(lack, n);
    }
    table->close(table);
    return status;
}

static int add_tag(telling *t, uint64_t version, const char *name)
{
    if (COW_RESERVE(t->tags, t->tag_room, t->tag_count, 1) < 0)
        return no_memory(t);
    if ((t->tags[t->tag_count].name = strdup(name)) == NULL)
        return no_memory(t);
    t->tags[t->tag_count++].version = version;
    return 0;
}

/* A link that is no tag, or names no version, is not told: h5cow verify does that. */
static int note_tag(void *context, const char *name, const H5L_info2_t *info)
{
    telling *t = context;
    const char *version;
    uint64_t at;
    size_t size;
    char *value;
    int status = 0;

    if (info->type != H5L_TYPE_SOFT)
        return 0;
    if ((value = cow_native_link_value(t->group, name, &size)) == NULL)
        return -1;
    if ((version = cow_tagged_version(value)) != NULL &&
        cow_map_get(&t->named, cow_checksum(version, strlen(version)), &at) && strcmp(t->row[at].name, version) == 0)
        status = add_tag(t, at, name);
    free(value);
    return status;
}

static int by_version(const void *a, const void *b)
{
    const tag *x = a, *y = b;

    return x->version != y->version ? (x->version > y->version) - (x->version < y->version) : strcmp(x->name, y->name);
}

static int read_tags(telling *t)
{
    static const char path[] = COW_PATH_TAGS;
    int status = cow_native_exists(t->file->loc, path);

    if (status <= 0)
        return status;
    if (cow_layout_hard(t->file->loc, path) < 0 || cow_native_open(t->file->loc, path, &t->group) < 0)
        return -1;
    status = t->group.type != H5I_GROUP
                 ? cow_error(COW_CORRUPT, "%s: '%s' is not a group; try: h5cow verify", t->file->name, path)
                 : cow_native_links(t->group, COW_LINKS_BY_NAME, note_tag, t);
    if (cow_native_close(t->group) < 0)
        status = -1;
    if (t->tag_count > 0)
        qsort(t->tags, t->tag_count, sizeof *t->tags, by_version);
    return status;
}

/* ---- in one block: the structures, the lists of tags, the texts ---- */

static size_t text_size(const char *text)
{
    return text == NULL ? 1 : strlen(text) + 1;
}

static const char *put_text(char **end, const char *text)
{
    size_t size = text_size(text);
    char *at = *end;

    memcpy(at, text == NULL ? "" : text, size);
    *end += size;
    return at;
}

static h5cow_version_t described(const telling *t, uint64_t i, char **end)
{
    const cow_layout_log_row *row = &t->row[i];
    int64_t rest = row->time % 1000000;

    return (h5cow_version_t){
        .number = t->first + i + 1,
        .parent = row->parent < 0 || (uint64_t)row->parent >= t->first + i ? 0 : (uint64_t)row->parent + 1,
        .seconds = row->time / 1000000 - (rest < 0),
        .nanoseconds = (rest < 0 ? rest + 1000000 : rest) * 1000,
        .unfinished = row->open == COW_LOG_OPEN,
        .forgotten = row->open == COW_LOG_FORGOTTEN,
        .incomplete = t->incomplete[i],
        .name = put_text(end, row->name),
        .message = put_text(end, row->message),
        .user = put_text(end, row->user),
        .host = put_text(end, row->host),
        .program = put_text(end, row->program),
        .hdf5 = put_text(end, row->hdf5),
        .h5cow = put_text(end, row->h5cow),
        .added = row->added,
        .chunks = row->chunks,
        .changed = row->changed,
    };
}

static void *pack(const telling *t, size_t each)
{
    size_t lists = ((size_t)t->count * each + 7) / 8 * 8, texts = lists + (t->count + t->tag_count) * sizeof(char *),
           size = texts, next = 0;
    const char **list;
    char *block, *end;

    for (uint64_t i = 0; i < t->count; i++)
        size += text_size(t->row[i].name) + text_size(t->row[i].message) + text_size(t->row[i].user) +
                text_size(t->row[i].host) + text_size(t->row[i].program) + text_size(t->row[i].hdf5) +
                text_size(t->row[i].h5cow);
    for (size_t i = 0; i < t->tag_count; i++)
        size += text_size(t->tags[i].name);
    if ((block = H5allocate_memory(size, true)) == NULL) {
        no_memory(t);
        return NULL;
    }
    list = (const char **)(void *)(block + lists);
    end = block + texts;
    for (uint64_t i = 0; i < t->count; i++) {
        h5cow_version_t version = described(t, i, &end);

        version.size = each < sizeof version ? each : sizeof version;
        version.tags = list;
        for (; next < t->tag_count && t->tags[next].version == i; next++, version.tag_count++)
            *list++ = put_text(&end, t->tags[next].name);
        *list++ = NULL;
        memcpy(block + i * each, &version, version.size);
    }
    return block;
}

int cow_versions_tell(cow_file *file, uint64_t first, uint64_t count, size_t each, void **block)
{
    telling t = {.file = file, .first = first, .count = count};

    *block = NULL;
    if (read_rows(&t) == 0 && read_lacks(&t) == 0 && read_tags(&t) == 0)
        *block = pack(&t, each);
    done(&t);
    return *block == NULL ? -1 : 0;
}
