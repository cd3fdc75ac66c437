/* Tags, names and messages of versions that are there. Each change is one commit, and is recorded in the table `operations`: the
 * log tells how versions were made, this what became of them.
 *
 * A version's name stands in three places besides the log: the link of its tree, tags, and absolute soft links in its tree. Groups
 * with such links, and those above them, are the version's own (snapshot.c), so only they are gone through.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/options.h"
#include "base/vector.h"
#include "journal/label.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a version of the file is called, at PATH. */
static const char *called(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* NAME may become that of a version or a tag. OWN: it has it already. Numbers are those of versions to come, but for its own
 * NUMBER. */
static int may_be_called(cow_file *file, const char *what, const char *name, bool own, uint64_t number)
{
    char digits[32];

    if (cow_version_name_check(what, name) < 0)
        return -1;
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    if (strcmp(name, digits) == 0)
        return cow_version_is_new(file, name);
    if (cow_version_name_not_reserved(file->name, name) < 0)
        return -1;
    return own ? 0 : cow_version_is_new(file, name);
}

/* ---- tags ---- */

int cow_tags_are_there(cow_file *file)
{
    int exists = cow_native_exists(file->loc, COW_PATH_TAGS);
    H5O_info2_t info;

    if (exists <= 0)
        return exists;
    if (cow_layout_hard(file->loc, COW_PATH_TAGS) < 0 ||
        cow_native_info(file->loc, COW_PATH_TAGS, H5O_INFO_BASIC, &info) < 0)
        return -1;
    return info.type == H5O_TYPE_GROUP
               ? 1
               : cow_error(COW_CORRUPT, "%s: '%s' is not a group; try: h5cow verify", file->name, COW_PATH_TAGS);
}

static int put_tag(cow_file *file, const char *tag, const char *version)
{
    char path[COW_PATH_MAX + 256];
    void *group;
    int exists = cow_tags_are_there(file);

    if (exists < 0 || (!exists && ((group = cow_native_group_create(file->loc, COW_PATH_TAGS, H5P_DEFAULT)) == NULL ||
                                   cow_native_group_close(group) < 0)))
        return -1;
    snprintf(path, sizeof path, COW_PATH_TAGS "/%s", tag);
    if ((exists = cow_native_exists(file->loc, path)) < 0 || (exists && cow_native_link_delete(file->loc, path) < 0))
        return -1;
    return cow_native_link_soft(file->loc, path, version);
}

static int tag_exists(cow_file *file, const char *tag)
{
    char path[COW_PATH_MAX + 256];
    int exists = cow_tags_are_there(file);

    snprintf(path, sizeof path, COW_PATH_TAGS "/%s", tag);
    return exists <= 0 ? exists : cow_native_exists(file->loc, path);
}

/* Does TAG, which is there, lead to VERSION? 1, 0, -1 */
static int tag_leads_to(cow_file *file, const char *tag, const char *version)
{
    char path[COW_PATH_MAX + 256], *value;
    H5L_info2_t info;
    size_t size;
    int same;

    snprintf(path, sizeof path, COW_PATH_TAGS "/%s", tag);
    if (cow_native_link_info(file->loc, path, &info) < 0)
        return -1;
    if (info.type != H5L_TYPE_SOFT)
        return 0;
    if ((value = cow_native_link_value(file->loc, path, &size)) == NULL)
        return -1;
    same = strcmp(value, version) == 0;
    free(value);
    return same;
}

int cow_file_tag(cow_file *file, const char *revision, const char *tag, bool move)
{
    char version[1024], what[1024];
    uint64_t row;
    int own, same = 0;

    if (cow_operation_begin(file) < 0 || cow_revision_resolve(file->native, revision, version, sizeof version) < 0 ||
        cow_version_name_check("the tag", tag) < 0 || (own = tag_exists(file, tag)) < 0 ||
        may_be_called(file, "the tag", tag, own && move, 0) < 0 || cow_version_row(file, version, &row) < 0 ||
        (own && (same = tag_leads_to(file, tag, version)) < 0))
        return -1;
    if (same) /* nothing is written where nothing changes */
        return 0;
    snprintf(what, sizeof what, "tag %s: version %s", tag, called(version));
    return cow_operation_end(file, put_tag(file, tag, version), COW_OPERATION_TAG, row, what);
}

int cow_file_untag(cow_file *file, const char *tag)
{
    char path[COW_PATH_MAX + 256], what[2048], *value = NULL;
    H5L_info2_t info;
    size_t size;
    int exists;

    if (cow_operation_begin(file) < 0 || cow_version_name_check("the tag", tag) < 0 ||
        (exists = tag_exists(file, tag)) < 0)
        return -1;
    if (!exists)
        return cow_error(COW_NOT_FOUND, "%s: there is no tag '%s' (h5cow tag lists them)", file->name, tag);
    snprintf(path, sizeof path, COW_PATH_TAGS "/%s", tag);
    if (cow_native_link_info(file->loc, path, &info) < 0 ||
        (info.type == H5L_TYPE_SOFT && (value = cow_native_link_value(file->loc, path, &size)) == NULL))
        return -1;
    snprintf(what, sizeof what, "tag %s removed: version %s", tag,
             value == NULL || cow_tagged_version(value) == NULL ? "?" : called(value));
    free(value);
    return cow_operation_end(file, cow_native_link_delete(file->loc, path), COW_OPERATION_UNTAG, UINT64_MAX, what);
}

/* ---- a new name ---- */

typedef struct renaming {
    cow_file *file;
    const char *from, *to; /* paths of the tree */
    uint64_t row;
    cow_map met; /* groups */
} renaming;

typedef struct member {
    char *name, *value; /* VALUE: it is to become this */
    uint64_t group;     /* a group of the version's own, or 0 */
} member;

typedef struct members {
    renaming *r;
    cow_loc group;
    member *member;
    size_t count, room;
    bool any; /* one has a value */
} members;

/* What VALUE, which begins with the path of the version or is it, becomes: *OTHER, to be freed; NULL: it stays. */
static int renamed(const renaming *r, const char *value, char **other)
{
    size_t length = strlen(r->from);

    *other = NULL;
    if (strncmp(value, r->from, length) != 0 || (value[length] != '/' && value[length] != '\0'))
        return 0;
    return asprintf(other, "%s%s", r->to, value + length) < 0 ? cow_error(COW_MEMORY, "no memory for a link") : 0;
}

static void members_free(members *m)
{
    for (size_t i = 0; i < m->count; i++) {
        free(m->member[i].name);
        free(m->member[i].value);
    }
    free(m->member);
}

static int look_at_value(members *m, member *one)
{
    size_t size;
    char *value = cow_native_link_value(m->group, one->name, &size);
    int status = value == NULL ? -1 : renamed(m->r, value, &one->value);

    m->any |= one->value != NULL;
    free(value);
    return status;
}

static int note_member(void *context, const char *name, const H5L_info2_t *info)
{
    members *m = context;
    const cow_layout_snapshot_row *made;
    member *one;

    if (COW_RESERVE(m->member, m->room, m->count, 1) < 0 || (m->member[m->count].name = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    one = &m->member[m->count++];
    one->value = NULL;
    one->group = 0;
    if (info->type == H5L_TYPE_SOFT)
        return look_at_value(m, one);
    if (info->type == H5L_TYPE_HARD && (made = cow_snapshots_made(m->r->file, cow_address(&info->u.token))) != NULL &&
        made->version == m->r->row)
        one->group = cow_address(&info->u.token);
    return 0;
}

/* To the end of the group's order. H5Lmove within a group that was opened by its token crashes (HDF5 1.14.5). */
static int move_to_end(cow_loc group, const char *name)
{
    static const char *const meanwhile = COW_GROUP "_moving";

    return cow_native_link_copy(group, name, group, meanwhile) < 0 || cow_native_link_delete(group, name) < 0 ||
                   cow_native_link_copy(group, meanwhile, group, name) < 0
               ? -1
               : cow_native_link_delete(group, meanwhile);
}

/* ORDER: links have numbers, by which they are in order; every one is made again from the first that changes on. */
static int rewrite(members *m, bool order)
{
    bool begun = false;
    int status = 0;

    for (size_t i = 0; status == 0 && i < m->count; i++) {
        const member *one = &m->member[i];

        begun |= order && one->value != NULL;
        if (one->value != NULL)
            status = cow_native_link_delete(m->group, one->name) < 0
                         ? -1
                         : cow_native_link_soft(m->group, one->name, one->value);
        else if (begun)
            status = move_to_end(m->group, one->name);
    }
    return status;
}

static int rewrite_group(renaming *r, cow_loc group);

static int rewrite_below(members *m)
{
    for (size_t i = 0; i < m->count; i++) {
        H5O_token_t token = cow_token(m->member[i].group);
        cow_loc object;
        int status = 0;

        if (m->member[i].group == 0 || cow_map_get(&m->r->met, m->member[i].group, NULL))
            continue;
        if (cow_map_put(&m->r->met, m->member[i].group, 0) < 0 ||
            cow_native_open_token(m->r->file->loc, &token, &object) < 0)
            return -1;
        if (object.type == H5I_GROUP)
            status = rewrite_group(m->r, object);
        if (cow_native_close(object) < 0 || status < 0)
            return -1;
    }
    return 0;
}

static int rewrite_group(renaming *r, cow_loc group)
{
    members m = {.r = r, .group = group};
    bool stand_in[H5L_TYPE_MAX + 1] = {false}, order;
    int status = cow_native_group_tracks(group, &order) < 0
                     ? -1
                     : cow_native_links(group, order ? COW_LINKS_BY_CREATION : COW_LINKS_BY_NAME, note_member, &m);

    if (status == 0 && m.any && (status = cow_native_link_classes_stand_in(stand_in)) == 0) {
        status = rewrite(&m, order);
        cow_native_link_classes_withdraw(stand_in);
    }
    if (status == 0)
        status = rewrite_below(&m);
    members_free(&m);
    return status;
}

static int rewrite_tree(renaming *r)
{
    cow_loc root;
    int status;

    if (cow_native_open(r->file->loc, r->to, &root) < 0)
        return -1;
    status = rewrite_group(r, root);
    return cow_native_close(root) < 0 ? -1 : status;
}

/* Tags lead to the version by its name. */
static int rewrite_tags(renaming *r)
{
    int exists = cow_tags_are_there(r->file);
    members m = {.r = r};
    int status;

    if (exists <= 0)
        return exists;
    if (cow_native_open(r->file->loc, COW_PATH_TAGS, &m.group) < 0)
        return -1;
    status = cow_native_links(m.group, COW_LINKS_BY_NAME, note_member, &m);
    for (size_t i = 0; status == 0 && i < m.count; i++)
        if (m.member[i].value != NULL && (cow_native_link_delete(m.group, m.member[i].name) < 0 ||
                                          cow_native_link_soft(m.group, m.member[i].name, m.member[i].value) < 0))
            status = -1;
    members_free(&m);
    return cow_native_close(m.group) < 0 ? -1 : status;
}

/* TEXT instead of that at OFFSET of a row of the log. */
static int rewrite_log(cow_file *file, uint64_t at, size_t offset, const char *text)
{
    cow_layout_log_row row = {0};
    char **place, *copy;
    int status = -1;

    if (cow_layout_log_read(file->loc, at, &row) < 0)
        return -1;
    if ((copy = cow_versions_text(text)) != NULL) {
        place = (char **)((char *)&row + offset);
        H5free_memory(*place);
        *place = copy;
        status = cow_layout_log_write(file->loc, at, &row);
    }
    cow_layout_log_row_free(&row);
    return status;
}

/* The label of the file tells the newest version. */
static void label(cow_file *file, uint64_t at)
{
    cow_layout_log_row row = {0};

    if (cow_versions_newest(file) == (int64_t)at && cow_layout_log_read(file->loc, at, &row) == 0 && row.name != NULL)
        cow_label_version(file->journal, row.name, at + 1, row.time);
    cow_error_clear(); /* nothing fails for it */
    cow_layout_log_row_free(&row);
}

int cow_file_rename_version(cow_file *file, const char *revision, const char *name)
{
    char version[1024], to[COW_PATH_MAX + 256], what[1024];
    renaming r = {.file = file, .from = version, .to = to};
    int status;

    if (cow_operation_begin(file) < 0 || cow_revision_resolve(file->native, revision, version, sizeof version) < 0)
        return -1;
    if (strcmp(called(version), name) == 0) /* nothing is written where nothing changes */
        return 0;
    if (cow_version_row(file, version, &r.row) < 0 || may_be_called(file, "the name", name, false, r.row + 1) < 0 ||
        cow_snapshots_load(file) < 0)
        return -1;
    snprintf(to, sizeof to, COW_PATH_VERSIONS "/%s", name);
    snprintf(what, sizeof what, "version %s renamed: %s", called(version), name);
    status = cow_native_link_move(file->loc, version, file->loc, to) < 0 || rewrite_tree(&r) < 0 ||
                     rewrite_tags(&r) < 0 || rewrite_log(file, r.row, offsetof(cow_layout_log_row, name), name) < 0
                 ? -1
                 : 0;
    cow_map_free(&r.met);
    cow_version_objects_free(file->version_objects); /* by their paths */
    file->version_objects = NULL;
    if (status == 0)
        label(file, r.row);
    return cow_operation_end(file, status, COW_OPERATION_RENAME, r.row, what);
}

int cow_file_set_message(cow_file *file, const char *revision, const char *message)
{
    char version[1024], *what;
    cow_layout_log_row row = {0};
    uint64_t at;
    int status;

    if (cow_operation_begin(file) < 0 || cow_revision_resolve(file->native, revision, version, sizeof version) < 0 ||
        cow_version_row(file, version, &at) < 0 || cow_layout_log_read(file->loc, at, &row) < 0)
        return -1;
    if (strcmp(row.message == NULL ? "" : row.message, message) == 0) { /* nothing is written where nothing changes */
        cow_layout_log_row_free(&row);
        return 0;
    }
    status = asprintf(&what, "version %s described anew; it was: %s", called(version),
                      row.message == NULL ? "" : row.message);
    cow_layout_log_row_free(&row);
    if (status < 0)
        return cow_error(COW_MEMORY, "%s: no memory to record what was done", file->name);
    status = cow_operation_end(file, rewrite_log(file, at, offsetof(cow_layout_log_row, message), message),
                               COW_OPERATION_MESSAGE, at, what);
    free(what);
    return status;
}
