/* Names that lead through an external link to FILE@REVISION. HDF5 follows external links itself, natively, and knows no
 * versions. So where it has found nothing, the links that the name leads through are looked at one after the other; the
 * first that names a version is followed here: the version is opened for reading, as H5Fopen would, and the same
 * callback is called on it with the rest of the name. What was opened keeps the version open, as natively.
 *
 * The file is looked for where HDF5 looks (H5F_prefix_open_file): a file that is really called FILE@REVISION wins, in
 * whatever of these folders it is. Not served: what HDF5 follows within one call, as H5Ocopy with
 * H5O_COPY_EXPAND_EXT_LINK_FLAG, and calls that write. Sources of virtual datasets that name FILE@REVISION: sources.c.
 */
#include "vol/vol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DXPL       H5P_DATASET_XFER_DEFAULT
#define LINKS_MOST 32 /* soft links that lead to soft links */
#define PATH_MOST  4096

/* ---- the file ---- */

/* 1: PATH names a version of a file that is there; 0: nothing is there; -1: a file of this very name is. */
static int names_version(const char *path)
{
    const char *at = strrchr(path, '@');
    char base[PATH_MOST];
    struct stat about;

    if (access(path, F_OK) == 0)
        return -1;
    if (at == NULL || at[1] == '\0' || (size_t)(at - path) >= sizeof base)
        return 0;
    memcpy(base, path, (size_t)(at - path));
    base[at - path] = '\0';
    return stat(base, &about) == 0 && S_ISREG(about.st_mode);
}

typedef struct looking {
    const char *name;      /* without a folder that was tried */
    char found[PATH_MOST]; /* the first that names a version */
    bool literal;
} looking;

static void look_in(looking *l, const char *folder, size_t length)
{
    char path[PATH_MOST];
    const char *slash = length > 0 && folder[length - 1] != '/' ? "/" : "";
    int named;

    if (length >= sizeof path ||
        snprintf(path, sizeof path, "%.*s%s%s", (int)length, folder, slash, l->name) >= (int)sizeof path)
        return;
    named = names_version(path);
    l->literal = l->literal || named < 0;
    if (named > 0 && l->found[0] == '\0')
        strcpy(l->found, path);
}

/* In the folder of the file that holds the link, by the name that it was opened by and by its real name. */
static void look_beside(looking *l, cow_loc holder)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_NAME};
    char name[PATH_MOST] = "", *real, *slash;
    size_t length = 0;

    get.args.get_name = (H5VL_file_get_name_args_t){holder.type, sizeof name, name, &length};
    if (H5VLfile_get(holder.object, cow_native_id(), &get, DXPL, NULL) < 0 || length >= sizeof name)
        return;
    real = realpath(name, NULL);
    if ((slash = strrchr(name, '/')) != NULL)
        look_in(l, name, (size_t)(slash - name));
    look_in(l, "", 0);
    if (real != NULL && (slash = strrchr(real, '/')) != NULL)
        look_in(l, real, (size_t)(slash - real));
    free(real);
}

/* True: FOUND is what the link's file name FILE, followed from HOLDER with the access list LAPL, means. */
static bool find_version(const char *file, cow_loc holder, hid_t lapl, char found[PATH_MOST])
{
    looking l = {.name = file};
    const char *environment = getenv("HDF5_EXT_PREFIX"), *last = strrchr(file, '@');
    char prefix[PATH_MOST] = "";

    if (last == NULL || strchr(last, '/') != NULL)
        return false;
    if (file[0] == '/') {
        look_in(&l, "", 0);
        l.name = strrchr(file, '/') + 1;
    }
    while (environment != NULL && *environment != '\0') {
        size_t length = strcspn(environment, ":");
        if (length > 0)
            look_in(&l, environment, length);
        environment += length + (environment[length] == ':');
    }
    if (H5Pget_elink_prefix(lapl, prefix, sizeof prefix) > 0)
        look_in(&l, prefix, strlen(prefix));
    look_beside(&l, holder);
    strcpy(found, l.found);
    return !l.literal && found[0] != '\0';
}

/* ---- the link ---- */

/* The value of the link NAME; free() it. NULL: it is a hard link, or there is none. */
static void *link_value(const cow_where *where, const char *name, H5L_info2_t *info)
{
    H5VL_loc_params_t loc = cow_by_name(where->loc.obj_type, name);
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_INFO};
    char *value;

    get.args.get_info.linfo = info;
    if (H5VLlink_get(where->native, &loc, cow_native_id(), &get, DXPL, NULL) < 0 || info->type == H5L_TYPE_HARD ||
        (value = calloc(1, info->u.val_size + 1)) == NULL)
        return NULL;
    get.op_type = H5VL_LINK_GET_VAL;
    get.args.get_val.buf = value;
    get.args.get_val.buf_size = info->u.val_size;
    if (H5VLlink_get(where->native, &loc, cow_native_id(), &get, DXPL, NULL) < 0) {
        free(value);
        return NULL;
    }
    return value;
}

typedef struct leads {
    char path[PATH_MOST];  /* from WHERE; soft links are replaced by what they say */
    char file[PATH_MOST];  /* found */
    char there[PATH_MOST]; /* the name in it */
} leads;

/* The soft link that ends at END of the path is replaced. False: the name becomes too long. */
static bool replace(leads *l, size_t start, size_t end, const char *value)
{
    char longer[PATH_MOST];

    if (snprintf(longer, sizeof longer, "%.*s%s%s", value[0] == '/' ? 0 : (int)start, l->path, value, l->path + end) >=
        (int)sizeof longer)
        return false;
    strcpy(l->path, longer);
    return true;
}

/* The external link that ends at END. */
static bool follow(leads *l, const cow_where *where, size_t start, size_t end, const void *value, size_t size,
                   hid_t lapl)
{
    cow_loc holder = {where->native, where->loc.obj_type};
    const char *file, *object;
    char parent[PATH_MOST];
    bool found;

    if (H5Lunpack_elink_val(value, size, NULL, &file, &object) < 0)
        return false;
    snprintf(parent, sizeof parent, "%.*s", (int)start, l->path);
    if (start > 0 && cow_native_open(holder, parent, &holder) < 0) {
        cow_error_clear();
        return false;
    }
    found = find_version(file, holder, lapl, l->file) &&
            snprintf(l->there, sizeof l->there, "/%s%s", object, l->path + end) < (int)sizeof l->there;
    if (start > 0)
        cow_native_close(holder);
    return found;
}

/* Where the names of the path's links end, in END, which has room for PATH_MOST / 2. -> how many there are. */
static size_t name_ends(const char *path, size_t end[])
{
    size_t count = 0;

    for (size_t at = strspn(path, "/"); path[at] != '\0'; at += strspn(path + at, "/"))
        end[count++] = at += strcspn(path + at, "/");
    return count;
}

/* Do the links up to END lead to an object, as HDF5 follows them? */
static bool is_there(const leads *l, const cow_where *where, size_t end)
{
    char prefix[PATH_MOST];
    H5VL_loc_params_t loc = cow_by_name(where->loc.obj_type, prefix);
    H5O_info2_t info;
    int there;

    snprintf(prefix, sizeof prefix, "%.*s", (int)end, l->path);
    if ((there = cow_info_quietly(where->native, &loc, &info)) < 0)
        cow_error_clear();
    return there > 0;
}

/* Where HDF5 comes no further: from *START to *END of the path, the first link that leads to nothing; the last one, where all before it lead
 * somewhere. False: there is none. Mostly a name is missing in a group that is there, so that group is asked for first. Nor are the others asked for
 * one by one: for each HDF5 goes all the way from the beginning, and groups may be thousands deep. */
static bool first_gap(const leads *l, const cow_where *where, size_t *start, size_t *end)
{
    size_t ends[PATH_MOST / 2], count = name_ends(l->path, ends), low = 0, high = count;

    if (count == 0)
        return false;
    for (size_t middle = count - 1; low + 1 < high; middle = low + (high - low) / 2)
        if (is_there(l, where, ends[middle - 1]))
            low = middle;
        else
            high = middle;
    *start = low == 0 ? 0 : ends[low - 1];
    *start += strspn(l->path + *start, "/");
    *end = ends[low];
    return true;
}

static bool leads_to_version(leads *l, const cow_where *where, hid_t lapl)
{
    size_t start, end;

    for (unsigned links = 0; links < LINKS_MOST && first_gap(l, where, &start, &end); links++) {
        char prefix[PATH_MOST];
        H5L_info2_t info;
        void *value;
        bool found = false, replaced = false;

        snprintf(prefix, sizeof prefix, "%.*s", (int)end, l->path);
        if ((value = link_value(where, prefix, &info)) == NULL)
            return false;
        if (info.type == H5L_TYPE_EXTERNAL)
            found = follow(l, where, start, end, value, info.u.val_size, lapl);
        else if (info.type == H5L_TYPE_SOFT)
            replaced = replace(l, start, end, value);
        free(value);
        if (!replaced)
            return found;
    }
    return false;
}

/* ---- the detour ---- */

/* May the program's own callback, if there is one, or its flags keep us out? The access list to open with, or -1. */
static hid_t open_list(hid_t lapl)
{
    H5L_elink_traverse_t asks = NULL;
    unsigned flags = H5F_ACC_DEFAULT;
    void *data = NULL;
    hid_t fapl = H5Pget_elink_fapl(lapl);

    if (fapl == H5P_DEFAULT)
        fapl = H5Pcreate(H5P_FILE_ACCESS);
    /* with a callback HDF5 has asked it, and heard no, or had no file: it decides more than we can repeat */
    if (fapl >= 0 &&
        (H5Pget_elink_cb(lapl, &asks, &data) < 0 || asks != NULL || H5Pget_elink_acc_flags(lapl, &flags) < 0 ||
         (flags != H5F_ACC_DEFAULT && (flags & H5F_ACC_RDWR)))) {
        H5Pclose(fapl);
        return H5I_INVALID_HID;
    }
    return fapl;
}

static unsigned nested; /* detours that are not over; HDF5 lets one thread in at a time */

/* Links of a version may lead to versions, and in a circle: as many as HDF5 follows. */
static bool too_many(hid_t lapl)
{
    size_t most;

    return H5Pget_nlinks(lapl, &most) >= 0 && nested >= most;
}

bool cow_detour_begin(const cow_where *where, const char *name, hid_t lapl, cow_detour *detour)
{
    hid_t stack = cow_errors_take(), fapl = H5I_INVALID_HID;
    leads *l = NULL;
    cow_object *file = NULL;
    bool circle = false;

    if (lapl == H5P_DEFAULT)
        lapl = H5P_LINK_ACCESS_DEFAULT;
    *detour = (cow_detour){.loc = cow_by_self(H5I_FILE)};
    if (!cow_error_pending() && where->native != NULL && name != NULL && strlen(name) < PATH_MOST &&
        (l = calloc(1, sizeof *l)) != NULL) {
        strcpy(l->path, name);
        H5E_BEGIN_TRY
        {
            if (leads_to_version(l, where, lapl) && !(circle = too_many(lapl)))
                fapl = open_list(lapl);
        }
        H5E_END_TRY
    }
    if (fapl >= 0) {
        file = cow_vol_file_open(l->file, H5F_ACC_RDONLY, fapl, DXPL, NULL);
        hid_t why =
            file == NULL ? cow_errors_take() : H5I_INVALID_HID; /* worth more than that HDF5 found no such file */
        if (file != NULL || why >= 0) {
            if (stack >= 0)
                H5Eclose_stack(stack);
            stack = why;
        }
        H5Pclose(fapl);
    }
    if (file != NULL && (detour->name = strdup(l->there)) == NULL)
        cow_vol_file_close_unnamed(file);
    else if (file != NULL) { /* what H5Fopen does next: or text could not be read */
        H5VL_optional_args_t post = {.op_type = H5VL_NATIVE_FILE_POST_OPEN};
        H5VLfile_optional(file->handle, cow_native_id(), &post, DXPL, NULL);
        detour->file = file;
        nested++;
    }
    cow_errors_give_back(stack);
    if (circle)
        cow_error(COW_USAGE,
                  "%s: external links to versions lead to one another, or there are too many; how many are "
                  "followed says H5Pset_nlinks",
                  l->file);
    free(l);
    return detour->file != NULL;
}

bool cow_detour_by_name(const cow_where *where, cow_detour *detour)
{
    const H5VL_loc_by_name_t *by_name = &where->loc.loc_data.loc_by_name;
    const H5VL_loc_by_idx_t *by_index = &where->loc.loc_data.loc_by_idx;
    H5VL_loc_params_t there = where->loc;

    if (where->loc.type == H5VL_OBJECT_BY_NAME && cow_detour_begin(where, by_name->name, by_name->lapl_id, detour))
        there.loc_data.loc_by_name.name = detour->name;
    else if (where->loc.type == H5VL_OBJECT_BY_IDX &&
             cow_detour_begin(where, by_index->name, by_index->lapl_id, detour))
        there.loc_data.loc_by_idx.name = detour->name;
    else
        return false;
    there.obj_type = H5I_FILE;
    detour->loc = there;
    return true;
}

/* GROUP/NAME of the link that LOC counts; free() it. NULL: HDF5 has no such link, or no memory. */
static char *counted_name(const cow_where *where)
{
    const H5VL_loc_by_idx_t *by_index = &where->loc.loc_data.loc_by_idx;
    H5VL_link_get_args_t get = {.op_type = H5VL_LINK_GET_NAME};
    char name[PATH_MOST] = "", *path = NULL;
    size_t length = 0;
    herr_t status;

    get.args.get_name.name = name;
    get.args.get_name.name_size = sizeof name;
    get.args.get_name.name_len = &length;
    H5E_BEGIN_TRY
    {
        status = H5VLlink_get(where->native, &where->loc, cow_native_id(), &get, DXPL, NULL);
    }
    H5E_END_TRY
    return status < 0 || length >= sizeof name || asprintf(&path, "%s/%s", by_index->name, name) < 0 ? NULL : path;
}

bool cow_detour_to_object(const cow_where *where, cow_detour *detour)
{
    char *path;
    hid_t stack, lapl;
    bool begun;

    if (cow_detour_by_name(where, detour))
        return true;
    if (where->loc.type != H5VL_OBJECT_BY_IDX || cow_error_pending())
        return false;
    stack = cow_errors_take();
    path = counted_name(where);
    cow_errors_give_back(stack);
    lapl = where->loc.loc_data.loc_by_idx.lapl_id;
    begun = path != NULL && cow_detour_begin(where, path, lapl, detour);
    free(path);
    if (begun) {
        detour->loc = cow_by_name(H5I_FILE, detour->name);
        detour->loc.loc_data.loc_by_name.lapl_id = lapl;
    }
    return begun;
}

void cow_detour_end(cow_detour *detour)
{
    hid_t stack = cow_errors_take();

    nested--;
    if (cow_vol_file_close_unnamed(detour->file) < 0)
        cow_error_clear();
    free(detour->name);
    cow_errors_give_back(stack);
}
