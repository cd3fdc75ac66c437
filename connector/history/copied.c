/* See copied.h. */
#include "history/copied.h"

#include "base/error.h"
#include "base/vector.h"
#include "history/internal.h"
#include "native/dense_file.h"

#include <stdio.h>
#include <stdlib.h>

/* Groups of an amended version that are copied once more. */
#define MOST_AGAIN 8

/* What was made for the version that comes. */
typedef struct fresh {
    uint64_t address;
    bool committed; /* by a flush */
} fresh;

struct cow_copied {
    void *group[2]; /* held, copied; NULL: not open */
    bool looked[2]; /* whether it is there */
    bool first;     /* `held` was made for the version that comes */
    fresh *fresh;
    size_t count, room;
    unsigned again;
    cow_place *place;
    size_t places, place_room;
};

enum { HELD, COPIED };

static const char *const path_of[] = {COW_PATH_HELD, COW_PATH_COPIED};

cow_copied *cow_copied_new(void)
{
    return calloc(1, sizeof(cow_copied));
}

void cow_copied_free(cow_copied *copied)
{
    if (copied == NULL)
        return;
    free(copied->fresh);
    free(copied->place);
    free(copied);
}

void cow_copied_close(cow_file *file)
{
    cow_copied *c = file->copied;

    for (unsigned i = 0; i < 2; i++) {
        cow_folder_close(&c->group[i]);
        c->looked[i] = false;
    }
}

/* 1: *GROUP is open; 0: there is none, and it is not to be MADE; -1. */
static int open_group(cow_file *file, unsigned which, bool made, cow_loc *group)
{
    cow_copied *c = file->copied;
    int exists;

    *group = (cow_loc){c->group[which], H5I_GROUP};
    if (c->group[which] != NULL)
        return 1;
    if (c->looked[which] && !made)
        return 0;
    if ((exists = cow_native_exists(file->loc, path_of[which])) < 0)
        return -1;
    c->looked[which] = true;
    if (!exists && !made)
        return 0;
    c->group[which] = exists ? cow_native_group_open(file->loc, path_of[which])
                             : cow_native_group_create(file->loc, path_of[which], H5P_DEFAULT);
    if (!exists)
        cow_own_changed(file);
    c->first |= !exists && which == HELD;
    group->object = c->group[which];
    return group->object == NULL ? -1 : 1;
}

static void name_of(char name[24], uint64_t address)
{
    snprintf(name, 24, "%llx", (unsigned long long)address);
}

static int is_in(cow_file *file, unsigned which, uint64_t address, cow_loc *group)
{
    char name[24];
    int there = open_group(file, which, false, group);

    if (there <= 0)
        return there;
    name_of(name, address);
    return cow_native_exists(*group, name);
}

int cow_held_is(cow_file *file, uint64_t snapshot)
{
    cow_loc group;

    return is_in(file, HELD, snapshot, &group);
}

int cow_held_add(cow_file *file, uint64_t snapshot)
{
    const H5O_token_t token = cow_token(snapshot);
    cow_loc held, object;
    char name[24];
    int status;

    name_of(name, snapshot);
    if (open_group(file, HELD, true, &held) < 0 || cow_native_open_token(file->loc, &token, &object) < 0)
        return -1;
    status = cow_native_link_object(object, held, name);
    return cow_native_close(object) < 0 ? -1 : status;
}

int cow_held_info(cow_file *file, uint64_t snapshot, H5O_info2_t *info)
{
    cow_loc held;
    char name[24];

    name_of(name, snapshot);
    return open_group(file, HELD, false, &held) <= 0 ? -1 : cow_native_info(held, name, H5O_INFO_BASIC, info);
}

int cow_held_remove(cow_file *file, uint64_t snapshot)
{
    cow_loc held;
    char name[24];
    int there = is_in(file, HELD, snapshot, &held);

    name_of(name, snapshot);
    return there <= 0 ? there : cow_native_link_delete(held, name);
}

int cow_copied_is(cow_file *file, uint64_t address)
{
    cow_loc group;

    return file->format < COW_FORMAT_COPIED ? 0 : is_in(file, COPIED, address, &group);
}

static int note_fresh(cow_file *file, uint64_t address)
{
    cow_copied *c = file->copied;

    if (COW_RESERVE(c->fresh, c->room, c->count, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for a list of objects", file->name);
    c->fresh[c->count++] = (fresh){.address = address};
    return 0;
}

int cow_copied_note(cow_file *file, cow_loc made, uint64_t address)
{
    cow_loc group;
    char name[24];

    name_of(name, address);
    return cow_file_need_format(file, COW_FORMAT_COPIED) < 0 || open_group(file, COPIED, true, &group) < 0 ||
                   note_fresh(file, address) < 0
               ? -1
               : cow_native_link_object(made, group, name);
}

int cow_copied_hold(cow_file *file, cow_loc group, const char *name, uint64_t address, bool move, bool is_fresh)
{
    cow_loc held;
    char called[24];
    int there;

    name_of(called, address);
    if (open_group(file, HELD, true, &held) < 0)
        return -1;
    /* to look for each of many members would take as long as to make its link */
    there = !move && !is_fresh && file->copied->first ? 0 : cow_native_exists(held, called);
    if (there < 0)
        return -1;
    if (there)
        return move ? cow_native_link_delete(group, name) : 0;
    if (is_fresh && note_fresh(file, address) < 0)
        return -1;
    return move ? cow_native_link_move(group, name, held, called) : cow_native_link_hard(group, name, held, called);
}

bool cow_copied_again(cow_file *file)
{
    return file->copied->again++ < MOST_AGAIN;
}

/* ---- what goes ---- */

void cow_copied_begin(cow_file *file, bool amend)
{
    cow_copied *c = file->copied;

    c->first = false;
    if (!amend)
        c->count = c->again = 0;
    for (size_t i = 0; i < c->count; i++)
        c->fresh[i].committed = true;
}

/* Its places are free with the next commit, and are given out from the next opening on: HDF5 may have some of it in memory. */
static int give_back(cow_file *file, uint64_t address)
{
    cow_copied *c = file->copied;
    cow_dense *dense;
    cow_place *place = NULL;
    size_t count;
    int status = cow_dense_read(file->native, address, &dense);

    if (status <= 0)
        return status;
    status = cow_dense_places(dense, &place, &count);
    cow_dense_free(dense);
    if (status == 0)
        count = cow_places_join(place, count, 1);
    if (status == 0 && COW_RESERVE(c->place, c->place_room, c->places, count) < 0)
        status = cow_error(COW_MEMORY, "%s: no memory for a list of places", file->name);
    for (size_t i = 0; status == 0 && i < count; i++)
        c->place[c->places++] = place[i];
    free(place);
    return status < 0 ? -1 : cow_space_create(file);
}

/* HDF5 goes on counting one reference to it, and so never looks at it again. Where another link is left, as of a tree that could not be
 * deleted, it stays: whoever follows that would find something else. */
static int drop(cow_file *file, cow_loc copied, uint64_t address, bool committed)
{
    const H5O_token_t token = cow_token(address);
    H5O_info2_t info;
    cow_loc object;
    char name[24];
    int status;

    name_of(name, address);
    if (cow_native_open_token(file->loc, &token, &object) < 0)
        return -1;
    if ((status = cow_native_info(object, NULL, H5O_INFO_BASIC, &info)) == 0 && info.rc == 1)
        status = cow_native_change_references(object, 1);
    if (cow_native_close(object) < 0 || status < 0)
        return -1;
    if (info.rc != 1)
        return 0;
    return cow_native_link_delete(copied, name) < 0 ? -1 : committed ? give_back(file, address) : 0;
}

void cow_copied_drop(cow_file *file, uint64_t address)
{
    cow_loc copied;
    int there = file->format < COW_FORMAT_COPIED ? 0 : is_in(file, COPIED, address, &copied);

    if (there < 0 || (there > 0 && drop(file, copied, address, true) < 0))
        cow_error_clear();
}

static int drop_fresh(cow_file *file, const fresh *one)
{
    cow_loc group;
    int there = cow_held_remove(file, one->address) < 0 ? -1 : is_in(file, COPIED, one->address, &group);

    return there <= 0 ? there : drop(file, group, one->address, one->committed);
}

void cow_copied_settle(cow_file *file)
{
    cow_copied *c = file->copied;
    cow_error_held *held = cow_error_hold();
    size_t kept = 0;

    for (size_t i = 0; i < c->count; i++)
        if (cow_snapshots_made(file, c->fresh[i].address) != NULL)
            c->fresh[kept++] = c->fresh[i];
        else if (drop_fresh(file, &c->fresh[i]) < 0)
            cow_error_clear();
    c->count = kept;
    cow_error_put_back(held);
}

size_t cow_copied_given_back(const cow_file *file, const cow_place **list)
{
    *list = file->copied->place;
    return file->copied->places;
}
