/* Which head objects are gone. An object that a version knows keeps its address when the application deletes it: its
 * last link moves to /_versioned_data/removed, and a group there keeps its links. So HDF5 still opens such objects by
 * address, where without a history a reference to them would lead nowhere.
 *
 * A walk through the whole head tells what cannot be reached. Not all of that is deleted: objects may be kept by
 * H5Oincr_refcount, named datatypes by their use, groups by links to themselves. As in HDF5, what counts is the number
 * of references, without those that the history itself holds.
 *
 * Mostly no such walk is needed: what had one link, and lost it, is gone, and so is what has its only link in a group that is.
 */
#include "history/internal.h"

#include "base/error.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

struct cow_own {
    bool known;
    uint64_t generation; /* of the snapshots when it was filled in, */
    size_t pools;        /* and how many pools were open */
    cow_map address;
};

cow_own *cow_own_new(void)
{
    return calloc(1, sizeof(cow_own));
}

void cow_own_free(cow_own *own)
{
    if (own != NULL)
        cow_map_free(&own->address);
    free(own);
}

typedef struct burial {
    cow_file *file;
    const cow_map *met; /* what the walk has met */
    cow_map unseen;     /* not met, and not in `removed`: how many references they have is not known yet */
    cow_map left;       /* of each object that was not met: references that are not accounted for */
    cow_loc group;      /* whose links are gone through */
    uint64_t *gone;     /* those with none; of the first DONE the links are accounted for */
    size_t count, done, room;
} burial;

static int add_gone(burial *b, uint64_t address, bool group)
{
    if (COW_RESERVE(b->gone, b->room, b->count, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for the list of deleted objects", b->file->name);
    b->gone[b->count++] = address;
    if (!group) { /* it has no links */
        b->gone[b->count - 1] = b->gone[b->done];
        b->gone[b->done++] = address;
    }
    return 0;
}

/* 1: opened; 0: HDF5 says that there is no object. */
static int open_object(const burial *b, uint64_t address, cow_loc *object, bool *borrowed)
{
    if (cow_head_open(b->file, address, object, borrowed) == 0)
        return 1;
    cow_error_clear();
    return 0;
}

/* What HDF5 says of the object; HIDDEN of its references are the history's own. */
static int note_references(burial *b, uint64_t address, const H5O_info2_t *info, unsigned hidden)
{
    return info->rc <= hidden ? add_gone(b, address, info->type == H5O_TYPE_GROUP)
                              : cow_map_put(&b->left, address, info->rc - hidden);
}

/* By its link in `removed`, if it has one: HDF5 does not open it for that, which takes it many times as long. */
static int look_for(burial *b, uint64_t address)
{
    H5O_info2_t info;

    if (cow_file_removed_info(b->file, address, &info) > 0)
        return note_references(b, address, &info, 1);
    cow_error_clear(); /* it is met in a group that is gone, or opened */
    return cow_map_put(&b->unseen, address, 0);
}

static int look_at(burial *b, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    H5O_info2_t info = {.type = H5O_TYPE_UNKNOWN};
    cow_loc object;
    bool borrowed;
    int hidden = 0, status = 0;

    if (open_object(b, address, &object, &borrowed)) {
        if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0 ||
            (hidden = cow_file_removed(b->file, &token)) < 0)
            status = -1;
        if (!borrowed && cow_native_close(object) < 0)
            status = -1;
    }
    return status < 0 ? -1 : note_references(b, address, &info, (unsigned)hidden);
}

/* What no group that is gone leads to. */
static int look_at_the_rest(burial *b)
{
    for (size_t i = 0; i < b->unseen.capacity; i++)
        if (b->unseen.entry[i].used && look_at(b, b->unseen.entry[i].key) < 0)
            return -1;
    cow_map_free(&b->unseen);
    return 0;
}

static int uncount_link(void *context, const char *name, const H5L_info2_t *link)
{
    burial *b = context;
    uint64_t address, left;
    H5O_info2_t info;

    if (link->type != H5L_TYPE_HARD)
        return 0;
    address = cow_address(&link->u.token);
    if (cow_map_get(&b->unseen, address, NULL)) {
        bool told = cow_native_info(b->group, name, H5O_INFO_BASIC, &info) == 0;

        if (!told)
            cow_error_clear();
        else /* a name may lead across a mount point into another file */
            told = info.fileno == b->file->fileno && cow_address(&info.token) == address;
        cow_map_remove(&b->unseen, address);
        if (told && info.rc == 1) /* this is the last one */
            return add_gone(b, address, info.type == H5O_TYPE_GROUP);
        if ((told ? note_references(b, address, &info, 0) : look_at(b, address)) < 0)
            return -1;
    }
    if (!cow_map_get(&b->left, address, &left))
        return 0;
    if (left > 1)
        return cow_map_put(&b->left, address, left - 1);
    cow_map_remove(&b->left, address);
    return add_gone(b, address, true); /* perhaps */
}

/* The links of a group that is gone hold nothing. */
static int uncount_links(burial *b, uint64_t address)
{
    bool borrowed;
    int status = 0;

    if (!open_object(b, address, &b->group, &borrowed))
        return 0;
    if (b->group.type == H5I_GROUP)
        status = cow_native_links(b->group, COW_LINKS_BY_NAME, uncount_link, b);
    if (!borrowed && cow_native_close(b->group) < 0)
        status = -1;
    return status;
}

static int uncount_all(burial *b)
{
    while (b->left.count + b->unseen.count > 0 && b->done < b->count)
        if (uncount_links(b, b->gone[b->done++]) < 0)
            return -1;
    return 0;
}

/* What counts itself, after H5Fcreate. */
static int bury_the_rest(burial *b)
{
    for (size_t i = 0; i < b->left.capacity; i++)
        if (b->left.entry[i].used && add_gone(b, b->left.entry[i].key, true) < 0)
            return -1;
    return 0;
}

/* An object that is not known to be gone, and that the walk did not meet. */
static int look_for_unmet(void *context, uint64_t head, bool gone)
{
    burial *b = context;

    return gone || cow_map_get(b->met, head, NULL) ? 0 : look_for(b, head);
}

/* Something is left, so groups that went in earlier versions matter as well. */
static int uncount_gone(void *context, uint64_t head, bool gone)
{
    burial *b = context;

    return !gone || b->left.count == 0 ? 0 : uncount_links(b, head);
}

int cow_deleted_note(cow_file *file, const cow_map *met, uint64_t row, bool *held)
{
    burial b = {.file = file, .met = met};
    int status = -1;

    if (cow_snapshots_each(file, look_for_unmet, &b) < 0 || uncount_all(&b) < 0 || look_at_the_rest(&b) < 0 ||
        uncount_all(&b) < 0)
        goto done;
    if (b.left.count > 0 && (cow_snapshots_each(file, uncount_gone, &b) < 0 || uncount_all(&b) < 0))
        goto done;
    if (cow_changes_cleared(file) && bury_the_rest(&b) < 0)
        goto done;
    for (size_t i = 0; i < b.count; i++)
        if (cow_snapshots_add(file, &(cow_layout_snapshot_row){b.gone[i], UINT64_MAX, row, 0, 0}) < 0)
            goto done;
    *held = b.left.count > 0 && !cow_changes_cleared(file);
    status = 0;
done:
    cow_map_free(&b.unseen);
    cow_map_free(&b.left);
    free(b.gone);
    return status;
}

/* ---- without a walk through the whole head ---- */

typedef struct settling {
    cow_file *file;
    cow_map *gone;
    uint64_t *groups; /* of these, whose links are gone through */
    size_t count, room;
    cow_loc group;
} settling;

/* What cow_changes_each_removed and cow_native_links stop at. */
#define NOT_PLAIN 1

/* INFO: of an object that a version knows, and its link is gone. */
static int settle_gone(settling *s, const H5O_info2_t *info)
{
    uint64_t address = cow_address(&info->token);

    if (info->rc != 1)
        return NOT_PLAIN;
    if (cow_map_put(s->gone, address, 0) < 0)
        return -1;
    if (info->type != H5O_TYPE_GROUP)
        return 0;
    if (COW_RESERVE(s->groups, s->room, s->count, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for the list of deleted groups", s->file->name);
    s->groups[s->count++] = address;
    return 0;
}

static int settle_removed(void *context, uint64_t address, const char *path)
{
    settling *s = context;
    H5O_info2_t info;

    (void)path;
    if (!cow_snapshots_newest(s->file, address, NULL)) /* an earlier commit has noted it */
        return 0;
    if (cow_file_removed_info(s->file, address, &info) == 1)
        return settle_gone(s, &info);
    cow_error_clear();
    return NOT_PLAIN;
}

static int settle_member(void *context, const char *name, const H5L_info2_t *link)
{
    settling *s = context;
    H5O_info2_t info;

    if (link->type != H5L_TYPE_HARD)
        return 0;
    if (cow_native_info(s->group, name, H5O_INFO_BASIC, &info) == 0 && info.fileno == s->file->fileno &&
        cow_address(&info.token) == cow_address(&link->u.token) &&
        cow_snapshots_newest(s->file, cow_address(&info.token), NULL))
        return settle_gone(s, &info);
    cow_error_clear();
    return NOT_PLAIN;
}

int cow_deleted_settle(cow_file *file, cow_map *gone)
{
    settling s = {.file = file, .gone = gone};
    int status = cow_changes_each_removed(file, settle_removed, &s);
    bool borrowed;

    while (status == 0 && s.count > 0) {
        if (cow_head_open(file, s.groups[--s.count], &s.group, &borrowed) < 0) {
            cow_error_clear();
            status = NOT_PLAIN;
            break;
        }
        status = cow_native_links(s.group, COW_LINKS_BY_NAME, settle_member, &s);
        if (!borrowed && cow_native_close(s.group) < 0)
            status = -1;
    }
    free(s.groups);
    if (status != 0)
        cow_map_free(gone);
    return status < 0 ? -1 : status == 0;
}

int cow_deleted_add(cow_file *file, const cow_map *gone, uint64_t row)
{
    for (size_t i = 0; i < gone->capacity; i++)
        if (gone->entry[i].used &&
            cow_snapshots_add(file, &(cow_layout_snapshot_row){gone->entry[i].key, UINT64_MAX, row, 0, 0}) < 0)
            return -1;
    return 0;
}

/* ---- H5Fcreate ---- */

typedef struct unlinking {
    const cow_file *file;
    cow_loc group;
    uint64_t root;
} unlinking;

static int unlink_root(void *context, const char *name, const H5L_info2_t *info)
{
    const unlinking *u = context;

    return info->type == H5L_TYPE_HARD && cow_address(&info->u.token) == u->root
               ? cow_native_link_delete(u->group, name)
               : 0;
}

/* The root alone lives on: links to it in groups that hold themselves would count for ever. */
static int unlink_root_from(void *context, uint64_t head, bool gone)
{
    unlinking *u = context;
    bool borrowed;

    (void)gone;
    if (head == u->root)
        return 0;
    if (cow_head_open(u->file, head, &u->group, &borrowed) < 0) {
        cow_error_clear(); /* there is no such object any more */
        return 0;
    }
    if (u->group.type == H5I_GROUP && cow_native_links(u->group, COW_LINKS_BY_NAME, unlink_root, u) < 0)
        cow_error_clear(); /* a group that cannot be read is gone all the same */
    return !borrowed && cow_native_close(u->group) < 0 ? -1 : 0;
}

int cow_deleted_clear(cow_file *file, cow_loc root)
{
    unlinking u = {.file = file};
    H5O_info2_t info;
    int status, kept;

    cow_changes_set_cleared(file);
    if (!file->laid_out)
        return 0;
    if (cow_native_info(root, NULL, H5O_INFO_BASIC, &info) < 0 || (kept = cow_file_removed(file, &info.token)) < 0)
        return -1;
    if (info.rc <= 1 && !kept)
        return 0;
    /* once more meanwhile: see remove_links */
    if (cow_snapshots_load(file) < 0 || cow_native_change_references(root, 1) < 0)
        return -1;
    u.root = cow_address(&info.token);
    status = cow_snapshots_each(file, unlink_root_from, &u);
    if (kept && cow_file_unkeep(file, u.root) < 0) /* as older files have it */
        status = -1;
    cow_changes_edited(file);
    /* what the program counted itself goes with the head */
    if (cow_native_info(root, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    return cow_native_change_references(root, 1 - (int)info.rc) < 0 ? -1 : status;
}

/* ---- addresses that are the history's own ---- */

static int add_own(void *context, const char *name, const H5L_info2_t *info)
{
    (void)name;
    return info->type == H5L_TYPE_HARD ? cow_map_put(context, cow_address(&info->u.token), 0) : 0;
}

void cow_own_changed(cow_file *file)
{
    file->own->known = false;
}

/* The groups and tables of the history and the datasets of each pool. */
static int fill_own(cow_file *file)
{
    static const char *const path[] = {COW_ROOT, COW_PATH_RAW, COW_PATH_SLOTS, COW_PATH_VERSIONS, COW_PATH_HASHES};
    H5O_info2_t info;
    cow_loc group = {.type = H5I_GROUP};
    int status = 0;

    cow_map_free(&file->own->address);
    file->own->known = false;
    for (size_t i = 0; status == 0 && i < sizeof path / sizeof *path; i++) {
        if (strcmp(path[i], COW_PATH_HASHES) == 0 && (status = cow_native_exists(file->loc, path[i])) <= 0)
            break;
        status = 0;
        if ((group.object = cow_native_group_open(file->loc, path[i])) == NULL)
            return -1;
        if ((i == 0 && (cow_native_info(group, NULL, H5O_INFO_BASIC, &info) < 0 ||
                        cow_map_put(&file->own->address, cow_address(&info.token), 0) < 0)) ||
            cow_native_links(group, COW_LINKS_BY_NAME, add_own, &file->own->address) < 0)
            status = -1;
        if (cow_native_group_close(group.object) < 0)
            status = -1;
    }
    file->own->known = status == 0;
    file->own->generation = cow_snapshots_generation(file);
    file->own->pools = cow_pools_count(file);
    return status;
}

/* What was deleted before any version knew it gave its place back, and the history may have taken it. A snapshot that was
 * replaced, since a flush amended its version, gave its place back too. */
static int is_own(cow_file *file, uint64_t address)
{
    if ((!file->own->known || file->own->generation != cow_snapshots_generation(file) ||
         file->own->pools != cow_pools_count(file)) &&
        fill_own(file) < 0)
        return -1;
    return cow_map_get(&file->own->address, address, NULL) || cow_snapshots_made(file, address) != NULL;
}

/* The program made it, or changed it, in this transaction, and it is where it was then. */
static bool found_at_path(const cow_file *file, uint64_t address)
{
    const char *path = cow_changes_path(file, address);
    H5O_info2_t info;
    bool there;

    if (path == NULL)
        return false;
    there = cow_native_leads(file->loc, path) && cow_native_info(file->loc, path, H5O_INFO_BASIC, &info) == 0;
    if (!there)
        cow_error_clear();
    return there && info.fileno == file->fileno && cow_address(&info.token) == address;
}

/* Can it be told without going through what was ever deleted? Until something loses a link, what the last commit found holds. */
static bool is_told(cow_file *file, uint64_t address, bool *deleted)
{
    *deleted = false;
    if (found_at_path(file, address))
        return true;
    if (cow_changes_edits(file) != 0)
        return false;
    if (cow_snapshots_load(file) < 0) {
        cow_error_clear();
        return false;
    }
    *deleted = cow_snapshots_gone(file, address);
    return cow_snapshots_known(file, address) && !cow_snapshots_behind(file) && !cow_snapshots_failed(file);
}

int cow_head_deleted(cow_file *file, const H5O_token_t *head)
{
    uint64_t address = cow_address(head);
    cow_loc object;
    H5O_info2_t info;
    hsize_t removed;
    unsigned hidden;
    bool deleted;
    int status;

    if (!file->laid_out)
        return 0;
    if (is_told(file, address, &deleted))
        return deleted;
    if ((status = is_own(file, address)) != 0)
        return status;
    if (cow_head_links_of_history(file, address, &hidden) < 0)
        return -1;
    if (hidden > 0) {
        if (cow_head_is_open(file, address))
            return 0;
        if (cow_native_open_token(file->loc, head, &object) < 0)
            return -1;
        status = cow_native_info(object, NULL, H5O_INFO_BASIC, &info);
        if (cow_native_close(object) < 0 || status < 0)
            return -1;
        return info.rc <= hidden;
    }
    /* What was below a group that is gone: the table knows. Files from which nothing was deleted need not look. */
    if (!cow_snapshots_loaded(file)) {
        if ((object.object = cow_native_group_open(file->loc, COW_PATH_REMOVED)) == NULL)
            return -1;
        status = cow_native_group_size(object.object, &removed);
        if (cow_native_group_close(object.object) < 0 || status < 0)
            return -1;
        if (removed == 0)
            return 0;
        if (cow_snapshots_load(file) < 0)
            return -1;
    }
    if (!cow_snapshots_gone(file, address) || cow_changes_flags(file, address) != 0)
        return 0;
    return (status = cow_head_below_open(file, address)) < 0 ? -1 : !status;
}

/* ---- addresses that may lead nowhere ---- */

int cow_head_there(cow_file *file, const H5O_token_t *head)
{
    uint64_t address = cow_address(head);
    const cow_dataset *dataset = cow_datasets_find(file, address);

    if (dataset != NULL && dataset->native != NULL)
        return 1;
    if (file->laid_out && cow_snapshots_load(file) < 0)
        return -1;
    return (file->laid_out && cow_snapshots_known(file, address)) || found_at_path(file, address);
}
