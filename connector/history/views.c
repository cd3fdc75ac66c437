/* See views.h. */
#include "history/views.h"

#include "base/error.h"
#include "history/internal.h"

#include <stdlib.h>

/* Parts that are open: copies go from one to another, and a leaf may need its view long after it was written. */
#define OPEN 4

struct cow_views {
    bool known;
    uint64_t parts; /* as in the file */
    uint64_t end;   /* no record from here on has a view yet */
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

static void *open_part(const cow_file *file, uint64_t offset)
{
    char path[COW_PATH_MAX];
    cow_loc views;
    int exists;

    cow_layout_part_path(path, offset);
    if (cow_folder_open(file, COW_FOLDER_VIEWS, &views) < 0 ||
        (exists = cow_native_exists(views, cow_folder_name(path))) < 0)
        return NULL;
    if (exists == 0)
        return cow_native_group_create(views, cow_folder_name(path), H5P_DEFAULT);
    return cow_layout_hard(file->loc, path) < 0 ? NULL : cow_native_group_open(views, cow_folder_name(path));
}

int cow_views_open(cow_file *file, uint64_t offset, cow_loc *group, char path[COW_PATH_MAX])
{
    cow_views *v = file->views;
    const uint64_t part = offset / COW_VIEWS_PART;

    if (cow_views_parts(file) == NULL ||
        (v->parts == COW_NO_PARTS && offset >= COW_VIEWS_PART && begin_parts(file) < 0))
        return -1;
    if (offset >= v->end)
        v->end = offset + 1;
    cow_layout_view_path(path, v->parts, offset);
    if (offset < v->parts)
        return cow_folder_open(file, COW_FOLDER_VIEWS, group);
    for (unsigned i = 0; i < OPEN; i++)
        if (v->group[i] != NULL && v->part[i] == part) {
            *group = (cow_loc){v->group[i], H5I_GROUP};
            return 0;
        }
    cow_folder_close(&v->group[v->next]);
    v->group[v->next] = open_part(file, offset);
    v->part[v->next] = part;
    *group = (cow_loc){v->group[v->next], H5I_GROUP};
    v->next = (v->next + 1) % OPEN;
    return group->object == NULL ? -1 : 0;
}
