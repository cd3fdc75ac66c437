/* The tables of a file, and laying out /_versioned_data in a new one. */
#include "history/tables.h"

#include "base/error.h"
#include "history/internal.h"

int cow_file_open_all(cow_file *file)
{
    if (file->opened_all)
        return 0;
    if (cow_snapshots_open(file) < 0 || cow_versions_open(file) < 0)
        return -1;
    file->opened_all = true;
    return 0;
}

/* Who only reads rarely needs the others, and opening takes time. */
int cow_file_open_tables(cow_file *file)
{
    if (cow_file_writable(file))
        cow_folders_shorten(file);
    if (cow_datasets_open(file) < 0 || cow_file_open_table(file, COW_TABLE_INDEX, &file->index) < 0 ||
        (cow_file_writable(file) &&
         (cow_file_open_all(file) < 0 || cow_space_open(file) < 0 || cow_views_parts(file) == NULL)))
        return -1;
    file->laid_out = true;
    return 0;
}

int cow_file_put_number(cow_file *file, const char *name, hid_t type, const void *value)
{
    cow_loc group;
    int status;

    if (cow_native_open(file->loc, COW_ROOT, &group) < 0)
        return -1;
    status = cow_native_attribute_put(group, name, type, value);
    return cow_native_close(group) < 0 ? -1 : status;
}

int cow_file_need_format(cow_file *file, uint32_t format)
{
    if (file->format >= format)
        return 0;
    if (cow_file_put_number(file, COW_FORMAT_NAME, H5T_STD_U32LE, &format) < 0)
        return -1;
    file->format = format;
    return 0;
}

int cow_file_spaces(cow_file *file, uint8_t *index)
{
    int found = 1;

    if (!file->spaces_known) {
        file->spaces = COW_NO_SPACES;
        if (file->laid_out && (found = cow_layout_number(file->loc, COW_SPACES, H5T_STD_U8LE, &file->spaces)) < 0)
            return cow_error_where(file->name, "looking for shared dataspaces");
        file->spaces_known = true;
    }
    *index = file->spaces;
    return 0;
}

int cow_file_set_spaces(cow_file *file, uint8_t index)
{
    uint8_t before = COW_NO_SPACES;

    if (cow_file_spaces(file, &before) < 0)
        return -1;
    if (before != index && file->laid_out && cow_file_put_number(file, COW_SPACES, H5T_STD_U8LE, &index) < 0)
        return -1;
    file->spaces = index;
    return 0;
}

int cow_file_lay_out(cow_file *file)
{
    static const char *const groups[] = {COW_ROOT,       COW_PATH_VERSIONS, COW_PATH_TAGS,  COW_PATH_RAW,
                                         COW_PATH_SLOTS, COW_PATH_VIEWS,    COW_PATH_HEADS, COW_PATH_REMOVED};
    const uint32_t format = COW_FORMAT_FIRST;
    const uint8_t none = 0;
    cow_loc root;
    int status;

    if (file->laid_out)
        return 0;
    if (cow_file_begin(file) < 0)
        return -1;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        void *group = cow_native_group_create(file->loc, groups[i], H5P_DEFAULT);
        if (group == NULL || cow_native_group_close(group) < 0)
            return -1;
    }
    if (cow_native_open(file->loc, COW_ROOT, &root) < 0)
        return -1;
    status = cow_native_attribute_put(root, COW_FORMAT_NAME, H5T_STD_U32LE, &format);
    if (status == 0)
        status = cow_native_attribute_put(root, COW_ABSOLUTE, H5T_STD_U8LE, &none);
    if (status == 0 && file->spaces_known && file->spaces != COW_NO_SPACES)
        status = cow_native_attribute_put(root, COW_SPACES, H5T_STD_U8LE, &file->spaces);
    if (cow_native_close(root) < 0 || status < 0)
        return -1;
    cow_folders_shorten(file);
    if (cow_layout_log_create(file->loc) < 0 || cow_datasets_create(file) < 0 || cow_pools_create(file) < 0 ||
        cow_snapshots_create(file) < 0 ||
        (file->index = cow_layout_table_create(file->loc, COW_TABLE_INDEX, 0, 0)) == NULL)
        return -1;
    file->format = format;
    file->laid_out = file->opened_all = true;
    return 0;
}
