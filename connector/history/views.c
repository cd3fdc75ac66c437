/* See views.h. */
#include "history/views.h"

#include "base/error.h"
#include "history/internal.h"
#include "native/staged.h"

#include <stdio.h>
#include <stdlib.h>

/* Parts that are open: copies go from one to another, and a leaf may need its view long after it was written. */
#define OPEN 4

struct cow_views {
    bool known;
    uint64_t parts;  /* as in the file */
    uint64_t end;    /* no record from here on has a view yet */
    cow_map waiting; /* offset -> address of those that have no link yet */
    void *group[OPEN];
    uint64_t part[OPEN];
    unsigned next; /* is closed for another one */
};

cow_views *cow_views_new(void)
{
    return calloc(1, sizeof(cow_views));
}

void cow_views_free(cow_views *views)
{
    if (views != NULL)
        cow_map_free(&views->waiting);
    free(views);
}

void cow_views_close(cow_file *file)
{
    for (unsigned i = 0; i < OPEN; i++)
        cow_folder_close(&file->views->group[i]);
}

const uint64_t *cow_views_parts(cow_file *file)
{
    cow_views *v = file->views;

    if (v->known)
        return &v->parts;
    if (file->format < COW_FORMAT_PARTS)
        v->parts = COW_NO_PARTS;
    else if (cow_layout_parts(file->written, file->loc, &v->parts) < 0) {
        cow_error_where(file->name, "looking for the views");
        return NULL;
    }
    v->end = file->index->rows;
    v->known = true;
    return &v->parts;
}

int cow_views_path(cow_file *file, char path[COW_PATH_MAX], uint64_t offset)
{
    const uint64_t *parts = cow_views_parts(file);

    if (parts == NULL)
        return -1;
    cow_layout_view_path(path, *parts, offset);
    return 0;
}

/* From the first part on that has no view yet, so that none is in another place than it was. */
static int begin_parts(cow_file *file)
{
    cow_views *v = file->views;
    const uint64_t parts = (v->end + COW_VIEWS_PART - 1) / COW_VIEWS_PART * COW_VIEWS_PART;

    if (cow_file_need_format(file, COW_FORMAT_PARTS) < 0 ||
        cow_file_put_number(file, COW_PARTS, H5T_STD_U64LE, &parts) < 0)
        return -1;
    v->parts = parts;
    return 0;
}

/* The open group of the views at OFFSET, which is in a part. NULL: none is. */
static void *open_already(const cow_views *v, uint64_t offset)
{
    for (unsigned i = 0; i < OPEN; i++)
        if (v->group[i] != NULL && v->part[i] == offset / COW_VIEWS_PART)
            return v->group[i];
    return NULL;
}

static int keep_open(cow_views *v, uint64_t offset, void *group)
{
    if (group == NULL)
        return -1;
    cow_folder_close(&v->group[v->next]);
    v->group[v->next] = group;
    v->part[v->next] = offset / COW_VIEWS_PART;
    v->next = (v->next + 1) % OPEN;
    return 0;
}

/* The group that has the view of the record at OFFSET, where it is there: a part may not be yet. 1; 0; -1. */
static int open_group(cow_file *file, uint64_t offset, cow_loc *group)
{
    cow_views *v = file->views;
    char path[COW_PATH_MAX];
    cow_loc views;
    int exists;

    if (offset < v->parts)
        return cow_folder_open(file, COW_FOLDER_VIEWS, group) < 0 ? -1 : 1;
    *group = (cow_loc){open_already(v, offset), H5I_GROUP};
    if (group->object != NULL)
        return 1;
    cow_layout_part_path(path, offset);
    if (cow_folder_open(file, COW_FOLDER_VIEWS, &views) < 0)
        return -1;
    if ((exists = cow_native_exists(views, cow_folder_name(path))) <= 0)
        return exists;
    if (cow_layout_hard(file->loc, path) < 0 ||
        keep_open(v, offset, group->object = cow_native_group_open(views, cow_folder_name(path))) < 0)
        return -1;
    return 1;
}

int cow_views_place(cow_file *file, uint64_t offset, char path[COW_PATH_MAX])
{
    cow_views *v = file->views;

    if (cow_views_parts(file) == NULL ||
        (v->parts == COW_NO_PARTS && offset >= COW_VIEWS_PART && begin_parts(file) < 0))
        return -1;
    if (offset >= v->end)
        v->end = offset + 1;
    cow_layout_view_path(path, v->parts, offset);
    return 0;
}

int cow_views_open(cow_file *file, uint64_t offset, cow_loc *group, char path[COW_PATH_MAX])
{
    cow_views *v = file->views;
    char part[COW_PATH_MAX];
    int status;

    if (cow_views_place(file, offset, path) < 0 || cow_views_link(file) < 0)
        return -1;
    if ((status = open_group(file, offset, group)) != 0)
        return status < 0 ? -1 : 0;
    cow_layout_part_path(part, offset);
    group->object = cow_native_group_create(file->loc, part, H5P_DEFAULT);
    return keep_open(v, offset, group->object);
}

int cow_views_exist(cow_file *file, uint64_t offset)
{
    char path[COW_PATH_MAX];
    cow_loc group;
    int status;

    if (cow_map_get(&file->views->waiting, offset, NULL))
        return 1;
    if (cow_views_path(file, path, offset) < 0)
        return -1;
    if (offset >= file->views->end)
        return 0; /* nobody has been told its place */
    status = open_group(file, offset, &group);
    return status <= 0 ? status : cow_native_exists(group, cow_folder_name(path));
}

/* ---- links ---- */

typedef struct waiting {
    uint64_t offset;
    cow_staged view;
} waiting;

int cow_views_wait(cow_file *file, uint64_t offset, uint64_t address)
{
    return cow_map_put(&file->views->waiting, offset, address);
}

static int by_offset(const void *a, const void *b)
{
    const waiting *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Those that wait, in their order, with the names that they get. NULL: no memory. free(). */
static waiting *list_waiting(const cow_views *v)
{
    waiting *list = malloc((v->waiting.count + 1) * sizeof *list);
    char path[COW_PATH_MAX];
    size_t n = 0;

    for (size_t i = 0; list != NULL && i < v->waiting.capacity; i++) {
        const cow_map_entry *e = &v->waiting.entry[i];

        if (!e->used)
            continue;
        cow_layout_view_path(path, v->parts, e->key);
        list[n] = (waiting){.offset = e->key, .view.address = e->value};
        snprintf(list[n++].view.name, sizeof list->view.name, "%s", cow_folder_name(path));
    }
    if (list != NULL)
        qsort(list, n, sizeof *list, by_offset);
    return list;
}

/* Parts that are new have all their links at once, as bytes; they wait as well. */
typedef struct new_parts {
    cow_file *file;
    cow_staged part[COW_STAGED_MOST];
    size_t count;
} new_parts;

static int link_parts(new_parts *p)
{
    const size_t count = p->count;
    cow_loc views;

    p->count = 0;
    return cow_folder_open(p->file, COW_FOLDER_VIEWS, &views) < 0
               ? -1
               : cow_staged_link(p->file->native, cow_file_bytes(p->file), p->part, count, views);
}

/* COUNT views of one group get links there. */
static int link_together(new_parts *p, uint64_t offset, const cow_staged list[], size_t count)
{
    cow_file *file = p->file;
    char path[COW_PATH_MAX];
    cow_loc group;
    const int there = open_group(file, offset, &group);

    if (there < 0)
        return -1;
    if (there > 0)
        return cow_staged_link(file->native, cow_file_bytes(file), list, count, group);
    if (p->count == COW_STAGED_MOST && link_parts(p) < 0)
        return -1;
    cow_layout_part_path(path, offset);
    snprintf(p->part[p->count].name, sizeof p->part->name, "%s", cow_folder_name(path));
    return cow_staged_group(cow_file_bytes(file), list, count, &p->part[p->count++].address);
}

/* Do both have their links in one group? */
static bool in_one(const cow_views *v, uint64_t a, uint64_t b)
{
    return a < v->parts ? b < v->parts : a / COW_VIEWS_PART == b / COW_VIEWS_PART;
}

static int link_all(cow_file *file, const waiting list[], size_t count)
{
    new_parts parts = {.file = file};
    cow_staged together[COW_STAGED_MOST];

    for (size_t i = 0, n; i < count; i += n) {
        for (n = 0; n < COW_STAGED_MOST && i + n < count && in_one(file->views, list[i].offset, list[i + n].offset);
             n++)
            together[n] = list[i + n].view;
        /* one that has more than fit */
        if (i > 0 && in_one(file->views, list[i - 1].offset, list[i].offset) && link_parts(&parts) < 0)
            return -1;
        if (link_together(&parts, list[i].offset, together, n) < 0)
            return -1;
    }
    return link_parts(&parts);
}

int cow_views_link(cow_file *file)
{
    cow_views *v = file->views;
    waiting *list;
    int status;

    if (v->waiting.count == 0)
        return 0;
    if ((list = list_waiting(v)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for the links of views", file->name);
    status = link_all(file, list, v->waiting.count);
    free(list);
    cow_map_free(&v->waiting);
    return status;
}
