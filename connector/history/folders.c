/* See folders.h. */
#include "history/folders.h"

#include "base/error.h"
#include "history/internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const path_of[] = {
    [COW_FOLDER_VIEWS] = COW_PATH_VIEWS,
    [COW_FOLDER_HEADS] = COW_PATH_HEADS,
    [COW_FOLDER_REMOVED] = COW_PATH_REMOVED,
};

#define FOLDERS (sizeof path_of / sizeof *path_of)

struct cow_folders {
    void *group[FOLDERS];
    cow_shortcut history; /* its group NULL: none */
};

void cow_folder_close(void **group)
{
    if (*group != NULL && cow_native_group_close(*group) < 0)
        cow_error_clear();
    *group = NULL;
}

static void end_shortcut(cow_shortcut *s)
{
    if (s->group.object == NULL)
        return;
    cow_native_shortcut_end(s);
    cow_folder_close(&s->group.object);
}

cow_folders *cow_folders_new(void)
{
    return calloc(1, sizeof(cow_folders));
}

void cow_folders_free(cow_folders *folders)
{
    free(folders);
}

void cow_folders_shorten(cow_file *file)
{
    static const char path[] = COW_ROOT;
    cow_shortcut *s = &file->folders->history;

    if (s->group.object != NULL)
        return;
    *s = (cow_shortcut){file->native, path, sizeof path - 1, {cow_native_group_open(file->loc, path), H5I_GROUP}};
    if (s->group.object == NULL || cow_native_shortcut(s) < 0) {
        cow_error_clear();
        end_shortcut(s);
    }
}

void cow_folders_close(cow_file *file)
{
    end_shortcut(&file->folders->history);
    for (size_t i = 0; i < FOLDERS; i++)
        cow_folder_close(&file->folders->group[i]);
}

int cow_folder_open(const cow_file *file, cow_folder which, cow_loc *group)
{
    void **open = &file->folders->group[which];

    if (*open == NULL)
        *open = cow_native_group_open(file->loc, path_of[which]);
    *group = (cow_loc){*open, H5I_GROUP};
    return *open == NULL ? -1 : 0;
}

const char *cow_folder_name(const char *path)
{
    return strrchr(path, '/') + 1;
}
