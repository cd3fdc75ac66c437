/* Objects of the old file and what the new one has of them: see compact_tree.h.
 *
 * Both trees are gone through side by side, along hard links of the same names: that of the head, then those of the versions from the
 * oldest on. Versions share what did not change, so a pair of objects is looked at when it is first met.
 */
#include "compact_tree.h"

#include "base/digest.h"
#include "base/ids.h"
#include "history/history.h"
#include "import/times.h"
#include "import/tree.h"
#include "store/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OLD, NEW, FILES };

typedef struct object_pair {
    uint64_t address[FILES];
} object_pair;

typedef struct object_times {
    uint64_t address; /* in the new file */
    H5O_info2_t time;
} object_times;

typedef struct tree_walk {
    const char *name; /* of the old file */
    cli_file file[FILES];
    cow_table *index[FILES];
    cli_dataset_row *datasets[FILES];
    size_t dataset_count[FILES];
    cow_map met;        /* checksum of a pair */
    cow_map stamped;    /* address in the new file */
    object_pair *group; /* to be gone through */
    size_t groups, group_room;
    object_times *times;
    size_t count, room;
    /* the group at hand */
    hid_t other; /* in the new file */
    bool head;   /* it is the root group: the history is no part of it */
    int status;
} tree_walk;

static int unreadable(const tree_walk *w, int which)
{
    char text[1024];

    return cli_fail("an object of %s'%s' cannot be read: %s: nothing was changed; 'h5cow verify' says what is left",
                    which == OLD ? "" : "the new file of ", w->name, cli_reason(text, sizeof text));
}

/* ---- datasets ---- */

/* 1: ROOT and ROW of a dataset in chunks of h5cow; 0: HDF5 keeps it; -1: cli_reason. */
static int stored(const tree_walk *w, int which, hid_t dataset, cow_root *root, const cli_dataset_row **row)
{
    uint64_t number = 0;
    int kind = cli_source(dataset, &number, NULL);

    if (kind == CLI_HEAD)
        number = number < w->dataset_count[which] ? w->datasets[which][number].root : UINT64_MAX;
    else if (kind != CLI_VIEW)
        return kind < 0 ? -1 : 0;
    if (number == UINT64_MAX) /* nothing was committed of it */
        return 0;
    if (cow_root_read(w->index[which], number, root) < 0)
        return -1;
    *row = root->dataset < w->dataset_count[which] ? &w->datasets[which][root->dataset] : NULL;
    return *row != NULL;
}

static bool same_chunks(const cow_root root[FILES], const cli_dataset_row *const row[FILES])
{
    /* into which chunks h5cow divides what has none for the program is its own affair */
    if (row[OLD]->layout != H5D_CHUNKED && row[NEW]->layout != H5D_CHUNKED)
        return true;
    return row[OLD]->layout == row[NEW]->layout && root[OLD].rank == root[NEW].rank &&
           memcmp(root[OLD].chunk, root[NEW].chunk, root[OLD].rank * sizeof *root[OLD].chunk) == 0;
}

/* As HDF5 keeps them. */
static bool same_native(const hid_t dataset[FILES])
{
    hid_t list[FILES] = {H5Dget_create_plist(dataset[OLD]), H5Dget_create_plist(dataset[NEW])};
    bool chunked[FILES] = {H5Pget_layout(list[OLD]) == H5D_CHUNKED, H5Pget_layout(list[NEW]) == H5D_CHUNKED};
    bool same = list[OLD] >= 0 && list[NEW] >= 0 && chunked[OLD] == chunked[NEW] &&
                (!chunked[OLD] || cow_tree_same_layout(list));

    cow_close(list[OLD], list[NEW]);
    return same;
}

static int compare_datasets(const tree_walk *w, const hid_t dataset[FILES])
{
    const cli_dataset_row *row[FILES] = {NULL, NULL};
    cow_root root[FILES];
    int kept[FILES];

    for (int i = 0; i < FILES; i++)
        if ((kept[i] = stored(w, i, dataset[i], &root[i], &row[i])) < 0)
            return unreadable(w, i);
    if (kept[OLD] != kept[NEW] || (kept[OLD] ? same_chunks(root, row) : same_native(dataset)))
        return 0;
    return cli_fail(
        "a dataset of '%s' would be stored otherwise in the new file: nothing was changed; please report this",
        w->name);
}

/* ---- the walk ---- */

static int note_pair(tree_walk *w, uint64_t old, uint64_t new)
{
    const object_pair pair = {{old, new}};
    hid_t object[FILES] = {H5I_INVALID_HID, H5I_INVALID_HID};
    H5O_info2_t info[FILES];
    int status = 0;

    if (!cli_map_put(&w->met, cow_checksum(&pair, sizeof pair), 1))
        return 0;
    for (int i = 0; status == 0 && i < FILES; i++) {
        const H5O_token_t token = cow_token(pair.address[i]);
        if ((object[i] = H5Oopen_by_token(w->file[i].id, token)) < 0 ||
            H5Oget_info3(object[i], &info[i], H5O_INFO_BASIC | H5O_INFO_TIME) < 0)
            status = unreadable(w, i);
    }
    if (status != 0 || info[OLD].type != info[NEW].type)
        goto done; /* of which two are not the same kind the hash tells */
    if (info[OLD].type == H5O_TYPE_GROUP) {
        CLI_RESERVE(w->group, w->group_room, w->groups, 1);
        w->group[w->groups++] = pair;
    } else if (info[OLD].type == H5O_TYPE_DATASET)
        status = compare_datasets(w, object);
    if (cli_map_put(&w->stamped, new, 1) &&
        (info[OLD].atime != info[NEW].atime || info[OLD].mtime != info[NEW].mtime ||
         info[OLD].ctime != info[NEW].ctime || info[OLD].btime != info[NEW].btime)) {
        CLI_RESERVE(w->times, w->room, w->count, 1);
        w->times[w->count++] = (object_times){new, info[OLD]};
    }
done:
    cow_close(object[OLD], object[NEW]);
    return status;
}

static herr_t visit_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    tree_walk *w = context;
    H5L_info2_t other;

    (void)group;
    if (info->type != H5L_TYPE_HARD || (w->head && strcmp(name, COW_GROUP) == 0))
        return 0;
    if (H5Lexists(w->other, name, H5P_DEFAULT) <= 0 || H5Lget_info2(w->other, name, &other, H5P_DEFAULT) < 0 ||
        other.type != H5L_TYPE_HARD)
        H5Eclear2(H5E_DEFAULT); /* the hash tells */
    else
        w->status = note_pair(w, cow_address(&info->u.token), cow_address(&other.u.token));
    return w->status != 0;
}

/* All that is below the group PATH of both. */
static int walk_from(tree_walk *w, const char *path, bool head)
{
    uint64_t address[FILES];
    H5O_info2_t info;

    for (int i = 0; i < FILES; i++) {
        if (H5Oget_info_by_name3(w->file[i].id, path, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
            return unreadable(w, i);
        address[i] = cow_address(&info.token);
    }
    if (note_pair(w, address[OLD], address[NEW]) != 0)
        return CLI_FAILED;
    while (w->groups > 0) {
        const object_pair pair = w->group[--w->groups];
        const hid_t group = H5Oopen_by_token(w->file[OLD].id, cow_token(pair.address[OLD]));

        w->status = 0;
        w->head = head && pair.address[OLD] == address[OLD];
        w->other = H5Oopen_by_token(w->file[NEW].id, cow_token(pair.address[NEW]));
        if (w->other < 0)
            w->status = unreadable(w, NEW);
        else if (group < 0 || H5Literate2(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, visit_link, w) < 0)
            w->status = unreadable(w, OLD);
        cow_close(w->other, group);
        if (w->status != 0)
            return CLI_FAILED;
    }
    return 0;
}

static int open_both(tree_walk *w, const char *path[FILES])
{
    char why[1024];

    for (int i = 0; i < FILES; i++) {
        if (cli_file_open(&w->file[i], "gc", path[i], false) != 0)
            return CLI_FAILED;
        if (cli_datasets_read(&w->file[i], &w->datasets[i], &w->dataset_count[i], why, sizeof why) < 0)
            return cli_fail("'%s' is damaged: %s; 'h5cow verify' says what is left", w->file[i].name, why);
        if ((w->index[i] = cow_layout_table_open(w->file[i].loc, COW_TABLE_INDEX, 0, 0)) == NULL)
            return unreadable(w, i);
    }
    return 0;
}

static void close_both(tree_walk *w)
{
    for (int i = 0; i < FILES; i++) {
        if (w->index[i] != NULL)
            w->index[i]->close(w->index[i]);
        free(w->datasets[i]);
        if (w->file[i].id >= 0)
            cli_file_close(&w->file[i]);
    }
}

int cli_compact_tree(const char *name, const cli_version *rows, size_t count, const cow_newfile *new)
{
    tree_walk w = {.name = name, .file = {{.id = H5I_INVALID_HID}, {.id = H5I_INVALID_HID}}};
    const char *path[FILES] = {name, new->path};
    hsize_t user_block = 0;
    hid_t fcpl;
    int status = open_both(&w, path);

    if (status == 0) {
        fcpl = H5Fget_create_plist(w.file[NEW].id);
        if (fcpl < 0 || H5Pget_userblock(fcpl, &user_block) < 0)
            status = unreadable(&w, NEW);
        cow_close(fcpl);
    }
    if (status == 0)
        status = walk_from(&w, "/", true);
    for (size_t i = 0; status == 0 && i < count; i++)
        if (rows[i].open != COW_LOG_FORGOTTEN) {
            char *version = cli_format(COW_PATH_VERSIONS "/%s", rows[i].name);
            status = walk_from(&w, version, false);
            free(version);
        }
    close_both(&w);
    for (size_t i = 0; status == 0 && i < w.count; i++)
        if (cow_set_times(new->file, (off_t)(user_block + w.times[i].address), &w.times[i].time) < 0)
            status = cli_fail("the times of objects cannot be written into the new file: %s: nothing was changed",
                              strerror(errno));
    cow_map_free(&w.met);
    cow_map_free(&w.stamped);
    free(w.group);
    free(w.times);
    return status;
}
