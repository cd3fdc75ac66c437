/* The newest snapshot of a group: what of it the next one has as well is taken from it, as bytes or by links, and is not opened. */
#include "history/walk.h"

#include "base/error.h"
#include "base/vector.h"
#include "journal/driver.h"
#include "native/header_file.h"

#include <stdlib.h>
#include <string.h>

static int note_former(void *context, const char *name, const H5L_info2_t *info)
{
    cow_small_group *former = context;
    char *copy;

    if (info->type != H5L_TYPE_HARD)
        return 0;
    if (COW_RESERVE(former->link, former->room, former->count, 1) < 0 || (copy = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    former->link[former->count++] = (cow_small_link){.name = copy, .address = cow_address(&info->u.token)};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const cow_small_link *)a)->name, ((const cow_small_link *)b)->name);
}

/* The link NAME of the previous snapshot. NULL: it has none. */
static cow_small_link *find_former(const cow_walk_group *p, const char *name)
{
    const cow_small_link key = {.name = (char *)(uintptr_t)name};

    return p->former.count == 0 ? NULL
                                : bsearch(&key, p->former.link, p->former.count, sizeof *p->former.link, by_name);
}

bool cow_previous_has(const cow_walk_group *p, const char *name, uint64_t address)
{
    const cow_small_link *found = find_former(p, name);

    return found != NULL && found->address == address;
}

bool cow_previous_kept(const cow_walk_group *p, const char *name)
{
    const cow_small_link *found = find_former(p, name);

    return found != NULL && found->kept;
}

bool cow_previous_misled(const cow_walk *walk, const cow_walk_group *p, const char *name, uint64_t address)
{
    const cow_small_link *found = find_former(p, name);
    const cow_layout_snapshot_row *made;
    uint64_t newest;

    return found != NULL && cow_snapshots_newest(walk->file, address, &newest) && found->address != newest &&
           (made = cow_snapshots_made(walk->file, found->address)) != NULL && made->head == address;
}

static void forget_listed(cow_listed_links *listed)
{
    for (size_t i = 0; i < listed->count; i++)
        free(listed->link[i].name);
    free(listed->link);
    *listed = (cow_listed_links){0};
}

bool cow_previous_open(cow_walk_group *p)
{
    H5O_token_t token = cow_token(p->before);

    if (p->previous.object == NULL && p->before != UINT64_MAX &&
        cow_native_open_token(p->walk->file->loc, &token, &p->previous) < 0)
        p->previous.object = NULL;
    cow_error_clear();
    return p->previous.object != NULL && p->previous.type == H5I_GROUP;
}

void cow_previous_list(cow_walk_group *p)
{
    if (cow_previous_open(p) && cow_native_links(p->previous, COW_LINKS_BY_NAME, note_former, &p->former) < 0)
        cow_small_group_free(&p->former);
    cow_error_clear();
}

void cow_previous_close(cow_walk_group *p)
{
    cow_small_group_free(&p->former);
    forget_listed(&p->listed);
    if (p->previous.object != NULL && cow_native_close(p->previous) < 0)
        cow_error_clear();
    p->previous.object = NULL;
}

/* ---- small groups, by their bytes ---- */

static int note_listed(void *context, const char *name, const H5L_info2_t *info)
{
    cow_walk_group *p = context;
    cow_listed_links *listed = &p->listed;
    char *copy;

    if (cow_walk_is_history(p, name))
        return 0;
    if (COW_RESERVE(listed->link, listed->room, listed->count, 1) < 0 || (copy = strdup(name)) == NULL)
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    listed->link[listed->count++] = (cow_listed_link){copy, *info};
    return 0;
}

/* What LINK leads to counts MORE, in its bytes. false: HDF5 has to do that. */
static bool count_links(const cow_file *file, const cow_small_link *link, int more)
{
    const cow_still *still = cow_layout_still_bytes(file->written);

    if (cow_journal_driver_met(file->fileno, link->address))
        return false;
    if (cow_header_count_links(cow_still_source(still), link->address, more, cow_still_write,
                               (void *)(uintptr_t)still) > 0)
        return true;
    cow_error_clear();
    return false;
}

/* Has the new group the link as the previous one? Then what it leads to counts it. 1; 0: the link is made by HDF5; -1: the walk fails. */
static int keep_link(cow_walk_group *p, const cow_listed_link *link)
{
    cow_walk *walk = p->walk;
    cow_file *file = walk->file;
    cow_small_link *former = find_former(p, link->name);
    uint64_t address = cow_address(&link->info.u.token), newest;
    char *path;
    int status;

    if (link->info.type != H5L_TYPE_HARD || former == NULL || cow_map_get(&walk->built, address, NULL) ||
        !cow_snapshots_newest(file, address, &newest) || newest != former->address)
        return 0;
    if ((path = cow_walk_child_path(p->path, link->name)) == NULL)
        return cow_walk_fail(walk);
    status = cow_decide(walk, address, path, NULL);
    free(path);
    if (status != COW_SAME)
        return status < 0 ? cow_walk_fail(walk) : 0;
    return former->kept = count_links(file, former, 1);
}

static int keep_none(cow_walk_group *p)
{
    cow_error_held *held = cow_error_hold();

    for (size_t i = 0; i < p->former.count; i++)
        if (p->former.link[i].kept)
            count_links(p->walk->file, &p->former.link[i],
                        -1); /* else the snapshot will not go with its last link: nothing worse */
    cow_error_put_back(held);
    return cow_walk_fail(p->walk);
}

int cow_previous_keep(cow_walk_group *p, cow_loc *made)
{
    cow_file *file = p->walk->file;
    const cow_native_bytes *bytes = file->written == NULL || p->before == UINT64_MAX ? NULL : cow_file_bytes(file);
    H5O_token_t token;
    uint64_t address;
    size_t names = 0, kept = 0;
    int status;

    if (bytes == NULL || bytes->shares || cow_journal_driver_met(file->fileno, p->before) ||
        cow_small_group_read(cow_still_source(cow_layout_still_bytes(file->written)), p->before, &p->former) <= 0 ||
        p->former.count == 0 || cow_native_links(p->group, COW_LINKS_ANY, note_listed, p) < 0) {
        cow_error_clear();
        cow_small_group_free(&p->former);
        forget_listed(&p->listed);
        return 0;
    }
    qsort(p->former.link, p->former.count, sizeof *p->former.link, by_name);
    for (size_t i = 0; i < p->listed.count; i++)
        names += strlen(p->listed.link[i].name);
    if (p->listed.count > COW_HEADER_LINKS || names > COW_SMALL_NAMES)
        return 0;
    for (size_t i = 0; i < p->listed.count; i++) {
        if ((status = keep_link(p, &p->listed.link[i])) < 0)
            return keep_none(p);
        kept += status > 0;
    }
    if (kept == 0)
        return 0;
    if (cow_small_group_write(bytes, &p->former, p->listed.count - kept, names, &address) < 0)
        return keep_none(p);
    token = cow_token(address);
    if (cow_native_open_token(file->loc, &token, made) < 0)
        return keep_none(p);
    /* as what HDF5 makes without a link: it goes when it is closed before it has one */
    if (cow_native_change_references(*made, -1) < 0 || cow_unlinked_note(&p->walk->unlinked, *made) < 0)
        return cow_walk_fail(p->walk);
    return 1;
}
