/* Identity of objects and files, as the application is told it and tells it.
 *
 * In the head nothing is changed, but what was deleted cannot be had by its token, though the history keeps it. In a
 * version, objects have the tokens that they had in the head (history/version_objects.c), and the file has a number of its
 * own: else programs that compare two objects by number and token (h5diff) would take the same object of two versions
 * for one object with one content.
 */
#include "vol/vol.h"

#include <string.h>

#define NUMBER_SHIFT 32 /* HDF5 numbers files in the order in which they are opened */

/* The history itself follows what it found in elements (io/serial.c), where the program asked for nothing. Where there is no
 * object any more, HDF5 would take what the disk still has for one, and keep it: then it can make no other in that place. */
static int follow(const cow_home *home, const H5O_token_t *token)
{
    int there = cow_file_writable(home->file) ? cow_head_there(home->file, token) : 1;

    return there == 0 ? cow_error(COW_NOT_FOUND, "%s: there may be no such object any more", cow_file_name(home->file))
                      : (there < 0 ? -1 : 0);
}

int cow_token_given(const cow_home *home, H5O_token_t *token)
{
    H5O_token_t given = *token;
    int deleted;

    if (home == NULL || home->file == NULL)
        return 0;
    if (cow_native_tokens_are_plain())
        return follow(home, token);
    if (home->version != NULL)
        return cow_snapshot_of(home->file, home->version, &given, token);
    if ((deleted = cow_head_deleted(home->file, token)) > 0)
        return cow_error(COW_NOT_FOUND, "%s: the object was deleted", cow_file_name(home->file));
    return deleted;
}

static bool shows_past(const cow_home *home)
{
    return home != NULL && home->version != NULL && home->file != NULL;
}

int cow_show_token(const cow_home *home, H5O_token_t *token)
{
    H5O_token_t native = *token;

    return shows_past(home) ? cow_head_of(home->file, home->version, &native, token) : 0;
}

int cow_show_file_number(const cow_home *home, unsigned long *fileno)
{
    uint64_t row;

    if (!shows_past(home))
        return 0;
    if (cow_version_row(home->file, home->version, &row) < 0)
        return -1;
    *fileno += (unsigned long)(row + 1) << NUMBER_SHIFT;
    return 0;
}

/* One link is the application's: who asks has found the object, and not in the history. */
static int show_count(const cow_home *home, bool found, H5O_info2_t *info)
{
    if (home->version != NULL)
        return info->rc > 1 ? cow_version_count(home->file, home->version, &info->token, &info->rc) : 0;
    return info->rc > (found ? 1 : 0) ? cow_head_count(home->file, &info->token, info->type, &info->rc) : 0;
}

/* Through an external link or a mount point, it may be an object of another file. */
int cow_show_object_info(const cow_home *home, unsigned fields, bool found, H5O_info2_t *info)
{
    if (!(fields & H5O_INFO_BASIC) || home == NULL || home->file == NULL || info->fileno != home->fileno)
        return 0;
    if (show_count(home, found, info) < 0 || cow_show_token(home, &info->token) < 0)
        return -1;
    return cow_show_file_number(home, &info->fileno);
}

int cow_show_link_info(const cow_home *home, H5L_info2_t *info)
{
    return info->type == H5L_TYPE_HARD ? cow_show_token(home, &info->u.token) : 0;
}

int cow_show_stat(const cow_home *home, H5G_stat_t *stat)
{
    H5O_info2_t info = {.fileno = stat->fileno[0], .rc = stat->nlink};

    info.token = cow_token(stat->objno[0]);
    if (cow_show_object_info(home, H5O_INFO_BASIC, true, &info) < 0)
        return -1;
    stat->objno[0] = (unsigned long)cow_address(&info.token);
    stat->fileno[0] = info.fileno;
    stat->nlink = info.rc;
    return 0;
}
