/* Homes and wrappers: what is known about an open file and about each open object. Contract: vol.h.
 *
 * A home lives as long as something that the application holds was reached through it; with the last one the
 * cow_file is released. HDF5's own wrap contexts, which exist during a single call, do not count: otherwise the
 * release, and with it the error of a last commit, would come after the callback that could report it.
 */
#include "vol/vol.h"

#include "base/vector.h"
#include "base/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 64

static struct {
    /* Every home of this process. A wrapped object says nothing but its file's number, so this has to be searched. */
    cow_home *homes;
    /* The file that was last asked for with H5VL_OBJECT_GET_FILE, and how many wrap contexts HDF5 has made since. */
    void *asked_file;
    unsigned asked_age;
    size_t mounts; /* of all homes */
    /* The dataset that is being read, native. */
    void *read_dataset;
    /* The calls that HDF5 has wrap contexts for, one in the other: functions of the application make others meanwhile. */
    struct {
        const cow_home *home;    /* of the object that HDF5 is asked about, for messages */
        const cow_object *given; /* the group that HDF5 has made an id of, until that is closed: cow_vol_group_given */
    } call[CALLS];
    unsigned calls;
    size_t given; /* groups, in all calls that there were */
} now;

void cow_vol_file_asked(void *native)
{
    now.asked_file = native;
    now.asked_age = 0;
}

/* HDF5 wraps files for two purposes. One is an id for the application (H5Iget_file_id): then it has just asked for the
 * file, and made one wrap context. The other is its own handle on a file that is being opened, which lives until the
 * file is closed: such a wrapper must not have a home, or it would keep the file open for ever. */
bool cow_vol_file_was_asked(const void *native)
{
    bool asked = now.asked_file != NULL && now.asked_file == native && now.asked_age <= 1;

    now.asked_file = NULL;
    return asked;
}

void cow_reading(void *native_dataset)
{
    now.read_dataset = native_dataset;
}

void *cow_reading_for(const void *native_file)
{
    return cow_file_of_handle(native_file) ? now.read_dataset : NULL;
}

void cow_wrapping_begins(void)
{
    now.asked_age++;
}

/* ---- leaving a callback ---- */

static const cow_home *at_work(void)
{
    return now.calls > 0 && now.calls <= CALLS ? now.call[now.calls - 1].home : NULL;
}

herr_t cow_leave(herr_t status)
{
    if (cow_error_pending()) {
        const cow_home *home = at_work();

        if (status < 0 && home != NULL && home->file != NULL)
            cow_error_in_file(cow_file_name(home->file));
        if (status < 0)
            cow_error_publish();
        else
            cow_error_clear();
    }
    return status;
}

void *cow_leave_pointer(void *result)
{
    cow_leave(result == NULL ? -1 : 0);
    return result;
}

/* ---- homes ---- */

static void home_free(cow_home *home)
{
    for (size_t i = 0; i < COW_SPARES; i++)
        free(home->spare[i]);
    if (home->asked.driver > 0 && H5Iis_valid(home->asked.driver) > 0)
        H5Pclose(home->asked.driver);
    free(home->version);
    free(home->given_name);
    free(home->plain);
    free(home->mounted);
    cow_sorted_free(home->sorted);
    cow_options_free(home->options);
    free(home);
}

static int file_number(void *native_file, unsigned long *number)
{
    H5VL_file_get_args_t args = {.op_type = H5VL_FILE_GET_FILENO};

    args.args.get_fileno.fileno = number;
    if (H5VLfile_get(native_file, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        return cow_error_native("cannot get the number of a file");
    return 0;
}

/* For the history, which cannot open a dataset again that was opened with other prefixes for files. */
static void *find_opened(const cow_file *file, const H5O_token_t *token)
{
    H5O_token_t its;
    void *opened;

    for (const cow_home *h = now.homes; h != NULL; h = h->next)
        for (cow_object *o = h->file == file ? h->datasets : NULL; o != NULL; o = o->next) {
            if (cow_object_token(o, &its) < 0)
                cow_error_clear();
            else if (memcmp(&its, token, sizeof its) == 0 && (opened = cow_object_opened(o)) != NULL)
                return opened;
        }
    return NULL;
}

cow_home *cow_home_new(void *native_file, cow_file *file, const char *given_name, const char *version,
                       const cow_options *options)
{
    cow_home *home = calloc(1, sizeof *home);
    H5O_info2_t info;

    if (home == NULL) {
        cow_error(COW_MEMORY, "no memory to open a file");
        return NULL;
    }
    home->references = 1;
    if ((given_name != NULL && (home->given_name = strdup(given_name)) == NULL) ||
        (version != NULL && (home->version = strdup(version)) == NULL) ||
        (options != NULL && (home->options = cow_options_copy(options)) == NULL)) {
        cow_error(COW_MEMORY, "no memory to open a file");
        goto failed;
    }
    for (size_t i = 0; i < COW_SPARES; i++)
        if ((home->spare[i] = calloc(1, sizeof(cow_object))) == NULL) {
            cow_error(COW_MEMORY, "no memory to open a file");
            goto failed;
        }
    if (file_number(native_file, &home->fileno) < 0)
        goto failed;
    if (cow_native_info((cow_loc){native_file, H5I_FILE}, NULL, H5O_INFO_BASIC, &info) < 0) {
        if (file != NULL)
            goto failed;
        cow_error_clear(); /* HDF5 opens files whose root is damaged, and h5clear mends them */
        memset(&info.token, 0xff, sizeof info.token); /* nobody's */
    }
    for (cow_home *c = file == NULL ? NULL : now.homes; c != NULL; c = c->next)
        if (c->file == file) {
            home->swmr_write = home->swmr_write || c->swmr_write;
            home->asked.old_format = home->asked.old_format || c->asked.old_format;
            home->asked.read_attempts = c->asked.read_attempts;
            home->cache = c->cache;
            home->asked.page_buffer = c->asked.page_buffer;
            if (version == NULL && c->version == NULL) {
                cow_home_take_bounds(home, c);
                home->asked.image = c->asked.image;
            }
        }
    cow_file_find_opened(find_opened);
    home->root = info.token;
    home->file = file; /* the caller's reference becomes the home's, now that nothing can fail */
    home->next = now.homes;
    now.homes = home;
    return home;
failed:
    home_free(home);
    return NULL;
}

void cow_home_plain(cow_home *home, const char *name)
{
    if (home->plain == NULL && getenv(COW_WITNESS_VARIABLE) != NULL)
        home->plain = realpath(name, NULL); /* NULL: it is not told of */
}

cow_home *cow_home_reference(cow_home *home)
{
    if (home != NULL)
        home->references++;
    return home;
}

int cow_home_release(cow_home *home)
{
    int status = 0;

    if (home == NULL || --home->references > 0)
        return 0;
    for (cow_home **p = &now.homes; *p != NULL; p = &(*p)->next)
        if (*p == home) {
            *p = home->next;
            break;
        }
    now.mounts -= home->mounted_count;
    for (size_t i = 0; i < home->mounted_count; i++)
        if (cow_home_release(home->mounted[i]) < 0)
            status = -1;
    home->mounted_count = 0;
    if (home->file != NULL && cow_file_release(home->file) < 0)
        status = -1;
    home->file = NULL;
    cow_memory_close(home->memory);
    home->memory = NULL;
    if (home->wrappings == 0)
        home_free(home);
    return status;
}

void cow_home_forget_all(void)
{
    memset(&now, 0, sizeof now);
}

cow_wrapping *cow_home_wrap(cow_home *home, bool unnamed, bool detached)
{
    static cow_wrapping homeless;
    cow_wrapping *wrapping = home == NULL ? &homeless : &home->wrapping[unnamed][detached];

    if (now.calls < CALLS) {
        now.call[now.calls].home = home;
        now.call[now.calls].given = NULL;
    }
    now.calls++;
    if (home != NULL) {
        *wrapping = (cow_wrapping){home, unnamed, detached};
        home->wrappings++;
    }
    return wrapping;
}

void cow_home_unwrap(cow_home *home)
{
    if (now.calls > 0)
        now.calls--;
    if (home != NULL && --home->wrappings == 0 && home->references == 0)
        home_free(home);
}

void cow_vol_group_given(const cow_object *group)
{
    now.given++;
    if (now.calls > 0 && now.calls <= CALLS)
        now.call[now.calls - 1].given = group;
}

static void group_closes(const cow_object *group)
{
    for (unsigned i = 0; i < now.calls && i < CALLS; i++)
        if (now.call[i].given == group)
            now.call[i].given = NULL;
}

bool cow_vol_follows_link(void)
{
    return now.calls > 0 && now.calls <= CALLS && now.call[now.calls - 1].given != NULL;
}

size_t cow_vol_groups_given(void)
{
    return now.given;
}

/* See cow_native_file_of. */
static void *borrow_file(void *native, H5I_type_t type, hid_t *id)
{
    now.asked_file = NULL; /* the id is none of the application's */
    return cow_native_file_of((cow_loc){native, type}, id);
}

/* HOME is that of a file without history, in which NATIVE is: where HDF5 itself opened it, nobody has told its name. */
static void note_plain(cow_home *home, void *native, H5I_type_t type)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_NAME};
    char name[4096];
    size_t length = 0;

    get.args.get_name =
        (H5VL_file_get_name_args_t){.type = type, .buf_size = sizeof name, .buf = name, .file_name_len = &length};
    if (getenv(COW_WITNESS_VARIABLE) != NULL &&
        H5VLfile_get(native, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) >= 0 && length < sizeof name)
        cow_home_plain(home, name);
}

/* A file that was opened by HDF5 itself, to follow an external link: it gets its history here. */
static cow_home *home_foreign(cow_home *near, void *native, H5I_type_t type, unsigned long fileno)
{
    cow_home *home = NULL;
    hid_t id;
    void *file;
    int reserved = cow_native_exists((cow_loc){native, type}, COW_ROOT);

    if (reserved < 0)
        return NULL;
    if (reserved > 0) {
        if ((file = borrow_file(native, type, &id)) == NULL)
            return NULL;
        home = cow_vol_file_adopt(file, near == NULL ? NULL : near->options);
        if (home != NULL)
            cow_home_follow_bounds(home, file, near);
        if (id >= 0)
            H5Idec_ref(id); /* the open object keeps the file open */
        return home;
    }
    if ((home = calloc(1, sizeof *home)) == NULL) {
        cow_error(COW_MEMORY, "no memory to open an object of another file");
        return NULL;
    }
    home->references = 1;
    home->writable = near != NULL && near->writable;
    home->fileno = fileno;
    home->next = now.homes;
    now.homes = home;
    note_plain(home, native, type);
    if (near != NULL && near->asked.bounds && (file = borrow_file(native, type, &id)) != NULL) {
        cow_home_follow_bounds(home, file, near);
        if (id >= 0)
            H5Idec_ref(id);
    }
    return home;
}

cow_home *cow_home_of(cow_home *near, void *native, H5I_type_t type, const H5O_info2_t *info)
{
    cow_home *found = NULL;

    if (near != NULL && near->fileno == info->fileno)
        return cow_home_reference(near);
    /* Prefer a head: it is what an external link or a mount point means. */
    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c->fileno == info->fileno && (found == NULL || found->version != NULL))
            found = c;
    return found != NULL ? cow_home_reference(found) : home_foreign(near, native, type, info->fileno);
}

cow_home *cow_home_find(unsigned long fileno)
{
    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c->fileno == fileno)
            return c;
    return NULL;
}

bool cow_home_is_known(void *native_file)
{
    unsigned long number;

    if (file_number(native_file, &number) == 0)
        return cow_home_find(number) != NULL;
    cow_error_clear(); /* what comes next fails as well */
    return false;
}

cow_home *cow_home_head_of(void *native_file)
{
    unsigned long number;
    cow_home *c = now.homes;

    if (file_number(native_file, &number) < 0) {
        cow_error_clear(); /* what comes next fails as well */
        return NULL;
    }
    while (c != NULL && (c->fileno != number || c->file == NULL || c->version != NULL))
        c = c->next;
    return c;
}

void cow_home_bounds_asked(cow_home *home, H5F_libver_t low, H5F_libver_t high)
{
    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c == home || (home->file != NULL && c->file == home->file && c->version == NULL)) {
            c->asked.bounds = true;
            c->asked.low = low;
            c->asked.high = high;
            c->asked.old_format = low < H5F_LIBVER_V110;
        }
}

void cow_home_metadata_cache_asked(cow_home *home, const cow_metadata_cache_sizes *asked)
{
    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c == home || (home->file != NULL && c->file == home->file))
            c->cache = *asked;
}

void cow_home_start_swmr(cow_home *home, unsigned attempts)
{
    for (cow_home *c = home->file == NULL ? NULL : now.homes; c != NULL; c = c->next)
        if (c->file == home->file) {
            c->swmr_write = true;
            c->asked.read_attempts = attempts;
            c->asked.low = c->asked.low < H5F_LIBVER_V110 ? H5F_LIBVER_V110 : c->asked.low; /* as HDF5 raises it */
        }
}

/* HDF5 hands the access flags on through external links, and native HDF5 knows nothing of these two. */
void cow_home_followed(const cow_object *from, const cow_object *opened, hid_t apl)
{
    const cow_home *near = from->home;
    cow_home *home = opened == NULL ? NULL : opened->home;
    unsigned flags;

    if (near == NULL || home == NULL || home->file == NULL || home->fileno == near->fileno || home->files > 0 ||
        !(near->swmr_read || near->swmr_write) || H5Pget_elink_acc_flags(apl, &flags) < 0 || flags != H5F_ACC_DEFAULT)
        return;
    if (!cow_file_writable(home->file))
        home->swmr_read = near->swmr_read;
    else if (near->swmr_write)
        cow_home_start_swmr(home, near->asked.read_attempts);
}

bool cow_home_last(const cow_home *home)
{
    unsigned references = 0;

    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c->file == home->file)
            references += c->references;
    return references == 1;
}

bool cow_home_last_head(const cow_home *home)
{
    unsigned references = 0;

    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c->file == home->file && c->version == NULL)
            references += c->references;
    return home->version == NULL && references == 1;
}

bool cow_home_group_open(const cow_home *home, const H5O_token_t *token, const cow_object *but)
{
    H5O_token_t other;

    for (cow_home *c = now.homes; c != NULL; c = c->next)
        for (cow_object *o = c->file == home->file && c->version == NULL ? c->groups : NULL; o != NULL; o = o->next)
            if (o != but && cow_object_token(o, &other) < 0)
                cow_error_clear();
            else if (o != but && memcmp(&other, token, sizeof other) == 0)
                return true;
    return false;
}

bool cow_home_version_open(const cow_file *file)
{
    for (const cow_home *c = now.homes; c != NULL; c = c->next)
        if (c->file == file && c->version != NULL)
            return true;
    return false;
}

unsigned cow_home_head_files(const cow_home *home)
{
    unsigned files = 0;

    for (cow_home *c = now.homes; c != NULL; c = c->next)
        if (c->file == home->file && c->version == NULL)
            files += c->files;
    return files;
}

bool cow_home_mounts(const cow_home *home)
{
    for (const cow_home *c = now.mounts == 0 ? NULL : now.homes; c != NULL; c = c->next)
        for (size_t i = 0; i < c->mounted_count; i++)
            if (c == home || c->mounted[i] == home)
                return true;
    return false;
}

/* What the program has of the heads of FILE (NULL: of all), or of that at TOKEN alone, is opened by HDF5. False: it cannot be, and whoever needs
 * it gets the error. */
static bool open_wrappers(const cow_file *file, const H5O_token_t *token)
{
    cow_error_held *held = cow_error_hold();
    bool all = true;

    for (const cow_home *h = now.homes; h != NULL; h = h->next)
        for (cow_object *o = file == NULL || h->file == file ? h->datasets : NULL; o != NULL; o = o->next)
            if (o->unopened != NULL && (token == NULL || memcmp(token, &o->token, sizeof *token) == 0) &&
                cow_object_opened(o) == NULL) {
                cow_error_clear();
                all = false;
            }
    cow_error_put_back(held);
    return all;
}

void cow_homes_open_all(void)
{
    open_wrappers(NULL, NULL);
}

void cow_homes_open_heads(const cow_home *home)
{
    cow_file *file = home == NULL ? NULL : home->file;

    if (file != NULL && cow_file_heads_unheld(file))
        cow_file_hold_heads(file, open_wrappers(file, NULL));
}

void cow_homes_open_head(const cow_home *home, const H5O_token_t *token)
{
    if (home != NULL && home->file != NULL && cow_head_unheld(home->file, token))
        open_wrappers(home->file, token);
}

void cow_homes_prefix_seen(void)
{
    for (const cow_home *h = now.homes; h != NULL; h = h->next)
        cow_homes_open_heads(h);
    cow_file_prefix_seen();
}

int cow_home_mount(cow_home *parent, cow_home *child)
{
    if (parent == NULL || child == NULL || parent == child)
        return 0;
    if (COW_RESERVE(parent->mounted, parent->mounted_room, parent->mounted_count, 1) < 0)
        return cow_error(COW_MEMORY, "no memory to mount a file");
    parent->mounted[parent->mounted_count++] = cow_home_reference(child);
    now.mounts++;
    return 0;
}

static bool unmount_from(cow_home *parent, unsigned long fileno)
{
    for (size_t i = 0; i < parent->mounted_count; i++) {
        cow_home *child = parent->mounted[i];

        if (child->fileno == fileno) {
            parent->mounted[i] = parent->mounted[--parent->mounted_count];
            now.mounts--;
            cow_home_release(child);
            return true;
        }
    }
    return false;
}

void cow_home_unmount(cow_home *near, unsigned long fileno)
{
    bool found = near != NULL && unmount_from(near, fileno);

    /* the path, or the root of what is mounted, can lead out of another file than the one that it was mounted in */
    for (cow_home *c = now.homes; c != NULL && !found; c = c->next)
        found = unmount_from(c, fileno);
}

/* ---- wrappers ---- */

/* HDF5 leaves an object open that it cannot wrap, and then the file for ever: so a few wrappers are kept for that. */
static cow_object *take_spare(cow_home *home)
{
    for (size_t i = 0; home != NULL && i < COW_SPARES; i++)
        if (home->spare[i] != NULL) {
            cow_object *object = home->spare[i];

            home->spare[i] = NULL;
            memset(object, 0, sizeof *object);
            return object;
        }
    return NULL;
}

static bool give_spare(cow_home *home, cow_object *object)
{
    for (size_t i = 0; home != NULL && i < COW_SPARES; i++)
        if (home->spare[i] == NULL) {
            home->spare[i] = object;
            return true;
        }
    return false;
}

/* Of the open ones of that kind, or NULL. */
static cow_object **list_of(cow_home *home, H5I_type_t type)
{
    return type == H5I_DATASET ? &home->datasets : type == H5I_GROUP ? &home->groups : NULL;
}

static cow_object *init(cow_object *object, cow_home *home, void *native, H5I_type_t type)
{
    cow_object **list;

    if (object == NULL) {
        cow_home_release(home);
        cow_error(COW_MEMORY, "no memory for an object");
        return NULL;
    }
    object->magic = COW_OBJECT_MAGIC;
    object->handle = native;
    object->type = type;
    object->home = home;
    if (type == H5I_FILE && home != NULL)
        home->files++;
    if (home != NULL && (list = list_of(home, type)) != NULL) {
        object->next = *list;
        if (*list != NULL)
            (*list)->previous = object;
        *list = object;
    }
    return object;
}

cow_object *cow_object_new(cow_home *home, void *native, H5I_type_t type)
{
    return init(calloc(1, sizeof(cow_object)), home, native, type);
}

cow_object *cow_object_new_surely(cow_home *home, void *native, H5I_type_t type)
{
    cow_object *object = calloc(1, sizeof *object);

    return init(object != NULL ? object : take_spare(home), home, native, type);
}

cow_object *cow_object_wrap(const cow_object *near, void *native, H5I_type_t type, bool by_token)
{
    H5O_info2_t info;
    cow_home *home;
    cow_object *object = NULL;

    if (cow_native_info((cow_loc){native, type}, NULL, H5O_INFO_BASIC, &info) < 0 ||
        (home = cow_home_of(near->home, native, type, &info)) == NULL)
        goto failed;
    if ((object = cow_object_new(home, native, type)) == NULL)
        goto failed;
    object->token = info.token;
    object->has_token = true;
    object->unnamed = by_token || near->unnamed;
    object->detached = near->detached || home != near->home;
    if (type == H5I_DATASET && cow_object_classify(object) < 0) {
        cow_object_free(object);
        goto failed;
    }
    return object;
failed:
    cow_object_close_native(native, type);
    return NULL;
}

static cow_home *leave(cow_object *object)
{
    cow_home *home = object->home;
    cow_object **list;

    if (object->dataset != NULL)
        cow_dataset_release(object->dataset);
    object->dataset = NULL;
    object->classified = false;
    if (object->type == H5I_FILE && home != NULL)
        home->files--;
    if (object->created && home != NULL)
        home->opened_soon = 0;
    if (home != NULL && (list = list_of(home, object->type)) != NULL) {
        if (object->next != NULL)
            object->next->previous = object->previous;
        if (object->previous != NULL)
            object->previous->next = object->next;
        else
            *list = object->next;
        object->next = object->previous = NULL;
    }
    object->home = NULL;
    return home;
}

void cow_object_release_last(cow_object *object)
{
    /* of a file in memory the history's handle is the last to go: see close_in_memory in file.c */
    if (object->home != NULL && object->home->file != NULL && cow_home_last(object->home) &&
        (object->type == H5I_FILE || !cow_file_in_memory(object->home->file)))
        cow_home_release(leave(object));
}

int cow_object_free(cow_object *object)
{
    cow_home *home = leave(object);
    bool spare;
    int status;

    if (object->type == H5I_GROUP)
        group_closes(object);
    free(object->owner_path);
    free(object->unopened);
    object->magic = 0;
    spare = give_spare(home, object);
    status = cow_home_release(
        home); /* may close the file, and HDF5 then looks through all ids: this one is among them still */
    if (!spare)
        free(object);
    return status;
}

cow_object *cow_object_of(void *object)
{
    cow_object *o = object;
    return o != NULL && o->magic == COW_OBJECT_MAGIC ? o : NULL;
}

/* The history's own second handle on a file is prepared (POST_OPEN) while HDF5 knows no wrapper for it, so HDF5 keeps,
 * and hands to the blob and unwrap callbacks, the native file itself. Its first word is a pointer or zero. */
void *cow_object_native(const void *object)
{
    const cow_object *o = object;
    return o != NULL && o->magic == COW_OBJECT_MAGIC ? o->handle : (void *)(uintptr_t)object;
}

bool cow_object_mounts(const cow_object *object)
{
    return object->type == H5I_FILE && cow_home_mounts(object->home);
}

int cow_object_token(cow_object *object, H5O_token_t *token)
{
    H5O_info2_t info;

    if (!object->has_token) {
        if (cow_native_info((cow_loc){cow_object_opened(object), object->type}, NULL, H5O_INFO_BASIC, &info) < 0)
            return -1;
        object->token = info.token;
        object->has_token = true;
    }
    *token = object->token;
    return 0;
}

char *cow_object_path(const cow_object *object)
{
    H5VL_object_get_args_t args = {.op_type = H5VL_OBJECT_GET_NAME};
    H5VL_loc_params_t loc = cow_by_self(object->type);
    char local[256], *path = NULL;
    size_t length = 0;
    herr_t status;

    if (object->type == H5I_ATTR)
        return object->owner_path == NULL ? NULL : strdup(object->owner_path);
    if (object->unlinked)
        return strdup("");
    if (object->unnamed || object->detached)
        return NULL;
    if (object->unopened != NULL)
        return strdup(object->unopened);
    if (object->type == H5I_FILE && now.mounts == 0)
        return strdup("/");
    args.args.get_name.buf = local;
    args.args.get_name.buf_size = sizeof local;
    args.args.get_name.name_len = &length;
    H5E_BEGIN_TRY
    {
        status =
            H5VLobject_get(cow_object_opened(object), &loc, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL);
    }
    H5E_END_TRY
    if (status < 0 || length == 0)
        return NULL;
    if ((path = malloc(length + 1)) == NULL)
        return NULL;
    if (length < sizeof local) {
        memcpy(path, local, length + 1);
        return path;
    }
    args.args.get_name.buf = path;
    args.args.get_name.buf_size = length + 1;
    if (H5VLobject_get(cow_object_opened(object), &loc, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL) < 0) {
        free(path);
        path = NULL;
    }
    return path;
}

static int cannot_attach(const cow_object *object)
{
    char *path = cow_object_path(object), place[1100];

    snprintf(place, sizeof place, "%s: %s", cow_file_name(object->home->file), path == NULL ? "a dataset" : path);
    free(path);
    return cow_error_where(place, "cannot use what the history has of it");
}

int cow_object_classify(cow_object *object)
{
    if (object->classified)
        return 0;
    if (object->type == H5I_DATASET && object->home != NULL && object->home->file != NULL &&
        cow_dataset_attach(object->home->file, cow_object_opened(object), !object->unnamed && !object->unlinked,
                           &object->dataset) < 0)
        return cannot_attach(object);
    if (object->dataset != NULL) {
        const cow_array *array = cow_dataset_array(object->dataset);
        object->old_references = !array->heap && H5Tdetect_class(cow_array_type(array), H5T_REFERENCE) > 0;
    }
    object->classified = true;
    return 0;
}

void *cow_object_again(cow_loc root, const cow_object *object, const char *path)
{
    hid_t dapl = object->dapl > 0 ? object->dapl : H5P_DATASET_ACCESS_DEFAULT;
    H5VL_loc_params_t self = cow_by_self(root.type);
    cow_loc again = {.type = H5I_DATASET};
    H5O_info2_t info;

    /* By name, so that H5Iget_name knows it afterwards; the name may belong to another object by now. */
    if (path != NULL && path[0] != '\0' && cow_native_exists(root, path) == 1 &&
        cow_native_info(root, path, H5O_INFO_BASIC, &info) == 0 && info.fileno == object->home->fileno &&
        memcmp(&info.token, &object->token, sizeof info.token) == 0)
        again.object =
            H5VLdataset_open(root.object, &self, cow_native_id(), path, dapl, H5P_DATASET_XFER_DEFAULT, NULL);
    cow_error_clear();
    if (again.object == NULL && cow_native_open_token(root, &object->token, &again) < 0)
        return NULL;
    if (again.type == H5I_DATASET)
        return again.object;
    cow_object_close_native(again.object, again.type);
    cow_error(COW_CORRUPT, "what was a dataset is none");
    return NULL;
}

static int reopen(cow_loc root, cow_object *object, const char *path)
{
    void *again = cow_object_again(root, object, path);

    if (again == NULL)
        return -1;
    object->handle = again;
    return 0;
}

/* FOLLOWERS: only virtual datasets whose extent follows that of their sources. */
static bool to_reopen(const cow_home *home, const cow_home *of, const cow_object *o, bool followers)
{
    bool same = of->version == NULL && home->version == NULL && home->file != NULL && of->file == home->file;

    if (o->unopened != NULL)
        return false;
    return followers ? (of == home || same) && o->shape > 0 : same && (o->dataset != NULL || o->user_virtual);
}

static int reopen_datasets(cow_home *home, bool followers)
{
    cow_loc root = {0};
    size_t count = 0, n = 0;
    cow_object **all = NULL;
    char **paths = NULL;
    int status = -1;

    for (cow_home *h = now.homes; h != NULL; h = h->next)
        for (cow_object *o = h->datasets; o != NULL; o = o->next)
            count += to_reopen(home, h, o, followers);
    if (count == 0)
        return 0;
    if ((all = calloc(count, sizeof *all)) == NULL || (paths = calloc(count, sizeof *paths)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to open %zu datasets again",
                  home->file == NULL ? "a file" : cow_file_name(home->file), count);
        goto done;
    }
    for (cow_home *h = now.homes; h != NULL; h = h->next)
        for (cow_object *o = h->datasets; o != NULL; o = o->next)
            if (to_reopen(home, h, o, followers)) {
                H5O_token_t token;
                if (cow_object_token(o, &token) < 0)
                    goto done;
                paths[n] = cow_object_path(o);
                all[n++] = o;
            }
    /* This also keeps the file open meanwhile. All are closed before one is opened: HDF5 shares what it knows of one.
     */
    if (cow_native_open((cow_loc){all[0]->handle, H5I_DATASET}, "/", &root) < 0)
        goto done;
    status = 0;
    for (size_t i = 0; i < n; i++)
        if (cow_object_close_native(all[i]->handle, H5I_DATASET) < 0)
            status = cow_error_native("%s: cannot close a dataset",
                                      home->file == NULL ? "a file" : cow_file_name(home->file));
    for (size_t i = 0; i < n; i++)
        if (reopen(root, all[i], paths[i]) < 0)
            status = -1;
    if (cow_native_close(root) < 0)
        status = -1;
done:
    for (size_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
    free(all);
    return status;
}

int cow_home_reopen_datasets(cow_home *home)
{
    return reopen_datasets(home, false);
}

int cow_home_reopen_followers(cow_home *home)
{
    return reopen_datasets(home, true);
}

void cow_home_committed(cow_file *file)
{
    for (cow_home *h = now.homes; h != NULL; h = h->next)
        if (h->file == file && h->version == NULL) {
            if (reopen_datasets(h, true) < 0)
                cow_error_clear(); /* it shows when they are used */
            return;
        }
}

int cow_object_close_native(void *native, H5I_type_t type)
{
    hid_t dxpl = H5P_DATASET_XFER_DEFAULT;
    herr_t status = -1;

    if (type == H5I_FILE)
        status = cow_native_file_close(native); /* one without an id */
    else if (type == H5I_GROUP)
        status = H5VLgroup_close(native, cow_native_id(), dxpl, NULL);
    else if (type == H5I_DATASET)
        status = H5VLdataset_close(native, cow_native_id(), dxpl, NULL);
    else if (type == H5I_DATATYPE)
        status = H5VLdatatype_close(native, cow_native_id(), dxpl, NULL);
    else if (type == H5I_ATTR)
        status = H5VLattr_close(native, cow_native_id(), dxpl, NULL);
    return status < 0 ? -1 : 0;
}

void cow_object_drop_root(cow_object *object)
{
    if (object->root != NULL)
        cow_object_close_native(object->root, H5I_GROUP);
    object->root = NULL;
}

/* HDF5 may have a chunk in its cache that filters do not take, and would fail to close the file while it has. Closing the
 * dataset loses the chunk, true, which is recorded; it is opened once more, for HDF5 looks at what is under its ids. */
static bool lose_refused(cow_object *object)
{
    cow_error_held *held;
    H5O_token_t token;
    cow_loc again;

    if (!cow_file_refusing(object->home->file))
        return false;
    if (cow_native_dataset_settle(cow_object_opened(object)) == 0 || !cow_error_of_filters()) {
        cow_error_clear(); /* it has no chunks */
        return false;
    }
    held = cow_error_hold();
    if (cow_object_token(object, &token) == 0) {
        cow_object_close_native(object->handle, H5I_DATASET);
        if (cow_native_open_token((cow_loc){cow_file_native(object->home->file), H5I_FILE}, &token, &again) == 0)
            object->handle = again.object;
    }
    cow_error_put_back(held);
    return true;
}

/* OBJECT is about to be closed, and nothing is counted before it is. */
static void tell_counts(cow_object *object)
{
    const cow_home *home = object->home;
    H5O_token_t token;

    if ((object->type != H5I_GROUP && object->type != H5I_DATASET) || home == NULL || home->file == NULL ||
        home->version != NULL || !cow_head_waits(home->file))
        return;
    if (cow_object_token(object, &token) < 0) {
        cow_error_clear();
        cow_head_closed(home->file, NULL);
    } else
        cow_head_closed(home->file, &token);
}

typedef struct wrapper_id {
    const void *native; /* which HDF5 tells of an id; each wrapper has its own */
    hid_t id;
} wrapper_id;

static herr_t is_id_of(hid_t id, void *context)
{
    wrapper_id *wanted = context;

    if (H5VLobject(id) != wanted->native)
        return 0;
    wanted->id = id;
    return 1;
}

/* OBJECT, a dataset whose close fails, is closed all the same, and its id goes. H5Dclose takes it away whatever its close says. H5Idec_ref
 * and H5Oclose, by which h5py closes, would leave it, though HDF5 has freed what is under it (H5D__close_cb): it crashes when it
 * goes through all ids next, as it does when it closes a file. -1: when the whole library closes, HDF5 closes an id again whose close
 * failed, and must not be told. */
static int forget_id(const cow_object *object)
{
    wrapper_id wanted = {object->handle, H5I_INVALID_HID};

    if (cow_exit_is_closing())
        return -1;
    H5Iiterate(H5I_DATASET, is_id_of, &wanted);
    if (wanted.id >= 0)
        cow_library_remove_id(wanted.id);
    return 0;
}

/* A dataset of HOME is closed, and what is recorded is why something of it is lost. A program may not look at what closing it returns, and is
 * told nothing when the library closes. */
static void tell_lost(const cow_home *home)
{
    if (home != NULL && home->file != NULL && home->version == NULL && cow_file_writable(home->file))
        cow_tell_lost(cow_file_name(home->file), "a dataset was closed, and not all of its data is stored: %s",
                      cow_error_message());
}

herr_t cow_object_close_dataset(cow_object *object, bool failed)
{
    cow_home *home = object->home;
    cow_error_held *held = NULL;
    bool told;

    if (failed) {
        tell_lost(home);
        held = cow_error_hold();
    }
    if (!failed && object->dataset == NULL && home != NULL && home->file != NULL && cow_home_last_head(home) &&
        lose_refused(object)) {
        tell_lost(home);
        held = cow_error_hold();
        failed = true;
    }
    if (home != NULL && home->file != NULL && !home->failed && cow_home_last_head(home) &&
        cow_file_commit(home->file, COW_FINISH) < 0) {
        home->failed = failed = true;
        cow_file_tell_lost(home->file);
        if (held == NULL)
            held = cow_error_hold();
    }
    if (object->dataset != NULL) {
        cow_dataset_release(object->dataset);
        object->dataset = NULL;
        object->classified = false;
        if (home->version == NULL && !home->failed && !cow_quiet_nested())
            cow_file_stow(home->file);
    }
    tell_counts(object);
    cow_object_release_last(object);
    if (cow_object_close_native(object->handle, H5I_DATASET) < 0) {
        if (!failed) {
            cow_error_native("a dataset is not closed as it should be");
            tell_lost(object->home);
            held = cow_error_hold();
        }
        failed = true;
    }
    told = failed && forget_id(object) == 0;
    cow_object_free(object); /* what the release could still report has been reported by the commit above */
    cow_error_put_back(held);
    if (failed && !told)
        cow_error_clear();
    return cow_leave(told ? -1 : 0);
}

/* With the last object of a file that was closed before it, the changes made since then are committed. If that fails
 * nothing is closed and the id stays valid: to HDF5 an id whose close failed is an open one. A second close closes. */
herr_t cow_object_close(cow_object *object, hid_t dxpl, void **req)
{
    cow_home *home = object->home;
    cow_file *file = NULL; /* of a group that goes */
    H5O_token_t token;
    bool below = false;
    int goes = 0;

    (void)dxpl;
    (void)req;
    cow_vol_file_asked(NULL); /* as where a file is closed */
    if (object->type == H5I_DATASET)
        return cow_object_close_dataset(object, false);
    if (object->type == H5I_GROUP)
        group_closes(object);
    if (object->type == H5I_GROUP && home != NULL && home->file != NULL && home->version == NULL && !home->failed &&
        (goes = cow_file_group_closes(home->file, (cow_loc){object->handle, object->type})) < 0) {
        cow_changed_half(home->file);
        cow_error_clear();
    }
    if (home != NULL && home->file != NULL && !home->failed && cow_home_last_head(home) &&
        cow_file_commit(home->file, COW_FINISH) < 0) {
        home->failed = true;
        cow_file_tell_lost(home->file);
        return cow_leave(-1);
    }
    tell_counts(object);
    if (goes > 0 && !cow_home_last(home) && cow_object_token(object, &token) == 0 &&
        !cow_home_group_open(home, &token, object)) {
        file = home->file;
        below = cow_file_group_holds_groups((cow_loc){object->handle, object->type});
    }
    cow_object_release_last(object);
    if (cow_object_close_native(object->handle, object->type) < 0)
        return cow_leave(-1);
    if (file != NULL) {
        object->handle = NULL;         /* its id is among the open ones still */
        cow_file_linked(file, &token); /* its address may be another's */
        cow_file_unlinked(file, &(H5O_info2_t){.type = H5O_TYPE_GROUP});
        if (below)
            cow_file_groups_unlinked(file);
    }
    cow_object_free(object);
    return cow_leave(0);
}
