/* Datasets that are not opened before HDF5 is needed for them. Most of what a program asks of a versioned dataset the history answers, while
 * to open the virtual dataset under it, and to close that again, costs HDF5 more than all the rest: 340,000 instructions. So the wrapper has a
 * stand-in: a handle of the program's own on a dataset of the history, through the same opening of the file, so that HDF5 counts it as it
 * would count the dataset. Nothing but that, and which file it is of, is ever asked of the stand-in: for all else cow_object_opened puts the
 * dataset in its place, also where HDF5 asks what is under an id (get_object) that a link of the program's own has led to.
 *
 * One that the program creates is not opened either: the history writes its header, and has HDF5 move its link (cow_dataset_create).
 *
 * Elements of such a dataset are written as well: they are the history's. But HDF5 does not know that it is open: so before links go or get other
 * names, all that are not open are opened (cow_homes_open_heads). */
#include "vol/vol.h"

#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

#define USUAL_LINKS 16 /* soft links on the way to an object, where nobody asked for another number */

/* What NAME from NEAR is called from the root on; free() it. NULL: not known. */
static char *absolute(const cow_object *near, const char *name)
{
    char *path, *all;

    if (name[0] == '/')
        return strdup(name);
    if (near->type == H5I_FILE)
        path = strdup("");
    else if (near->type == H5I_GROUP)
        path = cow_object_path(near);
    else
        return NULL;
    if (path == NULL || (near->type == H5I_GROUP && path[0] != '/') ||
        (all = malloc(strlen(path) + strlen(name) + 2)) == NULL) {
        free(path);
        return NULL;
    }
    sprintf(all, "%s/%s", path, name);
    free(path);
    return all;
}

/* As H5Iget_name would say it: the history notes by this what changed. */
static bool is_plain(const char *path)
{
    while (*path == '/') {
        size_t part = strcspn(++path, "/");

        if (part == 0 || (part == 1 && *path == '.'))
            return false;
        path += part;
    }
    return *path == '\0';
}

/* H5Oopen takes the access properties of a dataset as well. */
bool cow_is_dapl(hid_t lapl)
{
    return lapl != H5P_LINK_ACCESS_DEFAULT && H5Pisa_class(lapl, H5P_DATASET_ACCESS) > 0;
}

/* A path with more soft links than usual is one that cow_object_again could not follow. */
static bool usual_links(hid_t lapl)
{
    size_t most = 0;

    return lapl == H5P_LINK_ACCESS_DEFAULT || (H5Pget_nlinks(lapl, &most) >= 0 && most <= USUAL_LINKS);
}

/* A program that opens groups, one after the other, shall not pay for the question what they are. */
#define OTHERS 4

bool cow_unopened_likely(cow_home *home)
{
    return home != NULL && (home->others < OTHERS || home->others % (2 * OTHERS) == 0);
}

void cow_unopened_met(cow_home *home, bool dataset)
{
    if (home != NULL)
        home->others = dataset ? 0 : home->others + 1;
}

/* The wrapper of DATASET, which is called PATH and has TOKEN: it takes both where it is not NULL. What stands in for it is opened from WHERE. */
static cow_object *stand_for(const cow_where *where, cow_home *home, cow_dataset *dataset, char *path,
                             const H5O_token_t *token)
{
    H5O_token_t other;
    cow_object *object;
    cow_loc stand_in;

    if (!cow_file_stand_in(home->file, &other) ||
        cow_native_open_token((cow_loc){where->native, where->loc.obj_type}, &other, &stand_in) < 0)
        return NULL;
    if (stand_in.type != H5I_DATASET ||
        (object = cow_object_new(cow_home_reference(home), stand_in.object, H5I_DATASET)) == NULL) {
        cow_object_close_native(stand_in.object, stand_in.type);
        return NULL;
    }
    object->unopened = path;
    object->token = *token;
    object->has_token = true;
    object->dataset = dataset;
    object->classified = true;
    return object;
}

static bool possible(const cow_object *near)
{
    const cow_home *home = near->home;

    return home != NULL && home->file != NULL && home->version == NULL && !home->led && !near->unnamed &&
           !near->detached && !near->unlinked && !cow_home_mounts(home) && !home->swmr_write;
}

/* And none that gives attributes to each dataset that it creates, which HDF5 has to open for that. */
static bool stays_unopened(cow_home *home)
{
    return home->opened_soon < OTHERS || ++home->opened_soon % (2 * OTHERS) == 0;
}

char *cow_unopened_path(const cow_object *near, const H5VL_loc_params_t *loc, const char *name,
                        const cow_target *target)
{
    char *path = NULL;
    H5O_token_t stand_in;

    if (name != NULL && loc->type == H5VL_OBJECT_BY_SELF && possible(near) && target->home == near->home &&
        target->known && target->missing == NULL && stays_unopened(near->home) &&
        cow_file_stand_in(near->home->file, &stand_in) && (path = absolute(near, name)) != NULL && !is_plain(path)) {
        free(path);
        path = NULL;
    }
    return path;
}

cow_object *cow_unopened_made(const cow_object *near, const cow_where *where, cow_dataset *dataset, const char *path)
{
    const H5O_token_t token = cow_dataset_token(dataset);
    char *own = strdup(path);
    cow_object *made;

    if (own == NULL) {
        cow_error(COW_MEMORY, "no memory for the name '%s'", path);
        return NULL;
    }
    if ((made = stand_for(where, near->home, dataset, own, &token)) == NULL)
        free(own);
    else
        made->created = true;
    return made;
}

/* TOKEN: of the dataset that LOC, by name, leads to, if it may be one. Of what has a hard link right there the link says where it is: HDF5 does not read
 * its header for that, which then can be written as bytes. 1; 0: it is none of this file's, or there is nothing; -1. */
static int look_for(const cow_home *home, const cow_where *where, const H5VL_loc_params_t *loc, H5O_token_t *token)
{
    const char *name = loc->loc_data.loc_by_name.name;
    H5L_info2_t link;
    H5O_info2_t info;
    int found = 1;

    if (strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
        (found = cow_link_quietly(where->native, loc, &link)) > 0 && link.type == H5L_TYPE_HARD) {
        *token = link.u.token;
        return 1;
    }
    if (found <= 0 || (found = cow_info_quietly(where->native, loc, &info)) <= 0)
        return found;
    *token = info.token;
    return info.type == H5O_TYPE_DATASET && info.fileno == home->fileno;
}

cow_object *cow_unopened_new(const cow_object *near, const cow_where *where, const H5VL_loc_params_t *loc)
{
    cow_home *home = near->home;
    const char *name = loc->loc_data.loc_by_name.name;
    H5O_token_t stand_in, token;
    cow_object *object;
    cow_dataset *dataset;
    char *path;
    size_t given = cow_vol_groups_given();

    if (loc->type != H5VL_OBJECT_BY_NAME || !possible(near) || !cow_file_unopened(home->file) ||
        !cow_file_stand_in(home->file, &stand_in))
        return NULL;
    if (!usual_links(loc->loc_data.loc_by_name.lapl_id))
        return NULL;
    if (look_for(home, where, loc, &token) <= 0)
        goto not_so;
    if (cow_vol_groups_given() !=
        given) { /* a function of the program said where: it is not to be called once more at any later time */
        home->led = true;
        goto not_so;
    }
    if ((path = absolute(near, name)) == NULL)
        return NULL;
    if ((cow_file_writable(home->file) && !is_plain(path)) ||
        cow_dataset_attach_unopened(home->file, &token, path, &dataset) <= 0) {
        free(path);
        goto not_so;
    }
    if ((object = stand_for(where, home, dataset, path, &token)) != NULL)
        return object;
    cow_dataset_release(dataset);
    free(path);
not_so:
    cow_error_clear();
    return NULL;
}

void *cow_unopened_open(cow_object *object)
{
    char *path = object->unopened;
    void *real;
    cow_apart apart;
    bool alone = cow_native_apart(&apart) == 0; /* the program is in a call that may have other access properties */

    if (!alone)
        cow_error_clear();
    object->unopened = NULL; /* HDF5 may ask for what is under the id meanwhile */
    real = cow_object_again((cow_loc){object->handle, H5I_DATASET}, object, path);
    if (alone)
        cow_native_together(&apart);
    if (real == NULL) {
        object->unopened = path;
        return NULL;
    }
    free(path);
    object->home->opened_soon += object->created;
    object->created = false;
    cow_object_close_native(object->handle, H5I_DATASET);
    object->handle = real;
    if (object->dataset != NULL)
        cow_dataset_opened(object->dataset);
    return real;
}
