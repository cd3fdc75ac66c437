/* An open file: joining, leaving, and emptying its head. States and who moves between them: history.h. */
#include "history/internal.h"

#include "base/error.h"
#include "base/ids.h"
#include "journal/driver.h"
#include "journal/journal.h"

#include <stdlib.h>
#include <string.h>

/* All files that are open with history in this process. The one piece of global state that HDF5 forces on us: its
 * callbacks come with an object, and several objects may belong to one physical file. */
static cow_file *open_files;
static bool prefix_seen; /* by anybody, in any file */

/* STILL may be NULL. */
static int check_format(cow_loc file, const cow_layout_still *still, uint32_t *format)
{
    int found = still != NULL && cow_layout_still_format(still, format)
                    ? 1
                    : cow_layout_number(file, COW_FORMAT_NAME, H5T_STD_U32LE, format);

    if (found > 0 && (*format < COW_FORMAT_FIRST || *format > COW_FORMAT))
        return cow_error(COW_UNSUPPORTED,
                         "the file's history has format %u; this h5cow reads formats up to %u: use a newer h5cow",
                         *format, COW_FORMAT);
    return found;
}

int cow_file_versioned(void *native_file)
{
    uint32_t format;

    return check_format((cow_loc){native_file, H5I_FILE}, NULL, &format);
}

/* Where that cannot be looked up, and there is no journal, it is a damaged file of the program's own, which it may be about to mend:
 * closed in between, HDF5 would cut off what lies behind the end that the file says it has. */
int cow_file_has_history(void *native_file)
{
    const cow_loc file = {native_file, H5I_FILE};
    cow_journal *journal = cow_native_file_journal(native_file);
    int has = cow_layout_still_has(file, journal) ? 1 : cow_layout_has(file, COW_FORMAT_NAME);

    if (has >= 0)
        return has;
    if (journal != NULL && !cow_journal_plain(journal))
        return -1;
    cow_error_clear();
    return 0;
}

const char *cow_file_name(const cow_file *file)
{
    return file->name;
}

void *cow_file_native(const cow_file *file)
{
    return file->native;
}

bool cow_file_of_handle(const void *native)
{
    for (const cow_file *file = open_files; file != NULL; file = file->next)
        if (file->native == native)
            return true;
    return false;
}

bool cow_file_keep_handle(cow_file *file, void *native)
{
    if (cow_map_put(&file->kept, (uint64_t)(uintptr_t)native, 0) == 0)
        return true;
    cow_error_clear();
    return false;
}

bool cow_file_keeps(const void *native)
{
    uint64_t value;

    for (const cow_file *file = open_files; file != NULL; file = file->next)
        if (cow_map_get(&file->kept, (uint64_t)(uintptr_t)native, &value))
            return true;
    return false;
}

/* ---- joining and leaving ---- */

/* Closes everything of the library underneath but the handle on the file itself, which must be the last to go. */
static void shut(cow_file *file)
{
    if (cow_file_shut(file))
        return;
    cow_datasets_shut(file);
    cow_bare_forget_all(file);
    cow_pools_close(file);
    cow_snapshots_close(file);
    cow_space_close(file);
    cow_views_close(file);
    cow_folders_close(file);
    cow_copied_close(file);
    cow_told_close(file);
    cow_native_head_close(file);
    cow_stand_in_close(file);
    cow_file_close_table(&file->index);
    if (file->cache != NULL)
        cow_chunk_cache_close(file->cache);
    file->cache = NULL;
    cow_layout_still_close(file->still);
    file->still = NULL;
    cow_layout_still_close(file->written);
    file->written = NULL;
    cow_file_set_shut(file);
}

/* From here on they are any files: what is closed asks whether it is to be kept (cow_file_keeps, cow_file_of_handle). */
static int close_native(cow_file *file)
{
    cow_map kept = file->kept;
    void *native = file->native;
    int status = 0;

    file->kept = (cow_map){0};
    file->native = NULL;
    file->journal = NULL;
    for (size_t i = 0; i < kept.capacity; i++)
        if (kept.entry[i].used && cow_native_file_close((void *)(uintptr_t)kept.entry[i].key) < 0)
            cow_error_clear();
    if (native != NULL)
        status = cow_native_file_close(native);
    cow_map_free(&kept);
    return status;
}

/* Memory. */
static void free_state(cow_file *file)
{
    cow_state_free(file->state);
    cow_changes_free(file->changes);
    cow_snapshots_free(file->snapshots);
    cow_datasets_free(file->datasets);
    cow_pools_free(file->pools);
    cow_next_version_free(file->next_version);
    cow_incomplete_free(file->incomplete);
    cow_absolute_links_free(file->absolute);
    cow_superseded_free(file->superseded);
    cow_bare_free(file->bare);
    cow_stowed_free(file->stowed);
    cow_space_free(file->space);
    cow_folders_free(file->folders);
    cow_views_free(file->views);
    cow_copied_free(file->copied);
    cow_told_free(file->told);
    cow_native_head_free(file->native_head);
    cow_stand_in_free(file->stand_in);
    cow_refused_free(file->refused);
    cow_counts_free(file->counts);
    cow_map_free(&file->open_unlinked);
    cow_own_free(file->own);
    cow_sums_free(file->sums);
    cow_version_objects_free(file->version_objects);
    cow_options_free(file->options);
    free(file->name);
    free(file);
}

static void free_file(cow_file *file)
{
    for (cow_file **f = &open_files; *f != NULL; f = &(*f)->next)
        if (*f == file) {
            *f = file->next;
            break;
        }
    shut(file);
    if (close_native(file) < 0)
        cow_error_clear();
    free_state(file);
}

static int make_parts(cow_file *file, bool writable)
{
    file->state = cow_state_new(writable);
    file->changes = cow_changes_new();
    file->snapshots = cow_snapshots_new();
    file->datasets = cow_datasets_new();
    file->pools = cow_pools_new();
    file->next_version = cow_next_version_new();
    file->incomplete = cow_incomplete_new();
    file->absolute = cow_absolute_links_new();
    file->superseded = cow_superseded_new();
    file->bare = cow_bare_new();
    file->stowed = cow_stowed_new();
    file->refused = cow_refused_new();
    file->counts = cow_counts_new();
    file->own = cow_own_new();
    file->sums = cow_sums_new();
    file->space = cow_space_new();
    file->folders = cow_folders_new();
    file->views = cow_views_new();
    file->copied = cow_copied_new();
    file->told = cow_told_new();
    file->native_head = cow_native_head_new();
    file->stand_in = cow_stand_in_new();
    return file->state == NULL || file->changes == NULL || file->snapshots == NULL || file->datasets == NULL ||
                   file->pools == NULL || file->next_version == NULL || file->incomplete == NULL ||
                   file->absolute == NULL || file->superseded == NULL || file->bare == NULL || file->stowed == NULL ||
                   file->refused == NULL || file->counts == NULL || file->own == NULL || file->sums == NULL ||
                   file->space == NULL || file->folders == NULL || file->views == NULL || file->copied == NULL ||
                   file->told == NULL || file->native_head == NULL || file->stand_in == NULL
               ? -1
               : 0;
}

cow_file *cow_file_attach(void *native_file, const char *name, bool writable, bool created, const cow_options *options)
{
    cow_loc at = {native_file, H5I_FILE};
    cow_journal *journal;
    H5O_info2_t info;
    cow_file *file;
    int found;

    if (cow_native_info(at, NULL, H5O_INFO_BASIC, &info) < 0)
        return NULL;
    for (file = open_files; file != NULL; file = file->next)
        if (file->fileno == info.fileno && !cow_file_shut(file)) {
            if (cow_file_state_of(file) == COW_FILE_ABANDONED) {
                cow_error(COW_USAGE,
                          "%s: the program has dropped its changes to the file (h5cow_abort), and has it still open: "
                          "close it and all that is open in it, then open it again",
                          name);
                return NULL;
            }
            if (writable && file->laid_out && (cow_file_open_all(file) < 0 || cow_views_parts(file) == NULL))
                return NULL;
            if (writable)
                cow_file_allow_writing(file);
            return cow_file_reference(file);
        }
    /* After an error HDF5 may have kept open what nobody has open any more: with it, what was never committed. */
    if ((journal = cow_journal_driver_of_file(info.fileno)) != NULL && cow_journal_failure(journal) != NULL &&
        !created) {
        cow_error(COW_IO,
                  "%s: the HDF5 library has kept the file open since an earlier failure (%s); start the program again",
                  name, cow_journal_failure(journal));
        return NULL;
    }
    if ((file = calloc(1, sizeof *file)) == NULL || (file->name = strdup(name)) == NULL ||
        (file->options = cow_options_copy(options)) == NULL || make_parts(file, writable) < 0) {
        cow_error(COW_MEMORY, "%s: no memory to open the file", name);
        if (file != NULL)
            free_state(file);
        return NULL;
    }
    file->room = (cow_room){.bytes = file->options->memory_bytes, .write_out = cow_pools_write_out, .context = file};
    file->fileno = info.fileno;
    file->journal = journal;
    file->root = info.token;
    file->references = 1;
    file->next = open_files;
    open_files = file;
    if ((file->native = cow_native_file_reopen(native_file)) == NULL)
        goto failed;
    file->loc = (cow_loc){file->native, H5I_FILE};
    if ((file->cache = cow_chunk_cache_open(file->options->cache_bytes)) == NULL)
        goto failed;
    cow_chunk_cache_room(file->cache, journal);
    if (!writable && !created)
        file->still = cow_layout_still_open(file->loc, journal);
    if (writable && !created)
        file->written = cow_layout_still_open_written(file->loc, journal, file->fileno);
    if (created) {
        if (cow_changed_object(file, &file->root, "/", COW_CHANGED_NEW) < 0)
            goto failed;
    } else if ((found = check_format(file->loc, cow_file_tables(file), &file->format)) <= 0 ||
               cow_file_open_tables(file) < 0) {
        if (found == 0)
            cow_error(COW_CORRUPT, "%s: its history has vanished", name);
        goto failed;
    }
    cow_layout_still_settle(file->written);
    /* what a name may be made of, base/options.c has seen to */
    if (writable && cow_version_may_be_made(file) < 0)
        goto failed;
    return file;
failed:
    free_file(file);
    return NULL;
}

void cow_file_keep_no_closed(void)
{
    prefix_seen = true;
}

void cow_file_prefix_seen(void)
{
    cow_file_keep_no_closed();
    for (cow_file *file = open_files; file != NULL; file = file->next)
        if (!cow_file_shut(file))
            cow_datasets_sweep(file);
}

const cow_native_bytes *cow_file_bytes(cow_file *file)
{
    if (!file->bytes_asked) {
        file->bytes_known = cow_native_file_bytes(file->native, &file->bytes);
        file->bytes_asked = true;
    }
    return file->bytes_known ? &file->bytes : NULL;
}

bool cow_file_narrow(cow_file *file)
{
    size_t addresses = 8, lengths;
    hid_t fcpl;

    if (!file->narrow_asked) {
        fcpl = cow_native_file_fcpl(file->native);
        if (fcpl < 0 || H5Pget_sizes(fcpl, &addresses, &lengths) < 0)
            cow_error_clear();
        cow_close(fcpl);
        file->narrow = addresses < 8;
        file->narrow_asked = true;
    }
    return file->narrow;
}

bool cow_file_keeps_closed(void)
{
    return !prefix_seen;
}

int cow_file_join_reader(cow_loc object, unsigned long fileno, const cow_file *like, cow_file **file)
{
    hid_t id;
    void *native;
    int joined;

    for (*file = open_files; *file != NULL; *file = (*file)->next)
        if ((*file)->fileno == fileno && !cow_file_shut(*file))
            return cow_file_writable(*file) && (*file)->laid_out && cow_commit_datasets(*file) < 0
                       ? cow_file_fail(*file)
                       : 0;
    if ((native = cow_native_file_of(object, &id)) == NULL)
        return -1;
    if ((joined = cow_file_versioned(native)) > 0) {
        *file = cow_file_attach(native, like->name, false, false, like->options);
        joined = *file == NULL ? -1 : 1;
    }
    if (id >= 0 && H5Idec_ref(id) < 0 && joined >= 0)
        joined = cow_error_native("cannot give back the file of an object");
    return joined;
}

void cow_file_written_for(cow_file *file, H5F_libver_t low)
{
    file->low = low;
}

cow_file *cow_file_reference(cow_file *file)
{
    file->references++;
    return file;
}

int cow_file_release(cow_file *file)
{
    int status = 0;

    if (--file->references > 0)
        return 0;
    if (!cow_file_shut(file) && !cow_file_ended(file))
        status = cow_file_commit(file, COW_FINISH);
    cow_file_tell_lost(file);
    if (status == 0 && !cow_file_shut(file))
        cow_file_keep_policy(file);
    free_file(file);
    return status;
}

/* A filter may call exit: what it was called by never goes on. */
static int commit_left(cow_file *file)
{
    return cow_chunk_cache_busy(file->cache) ? cow_file_commit_interrupted(file, false)
                                             : cow_file_commit(file, COW_FLUSH);
}

void cow_file_commit_left(cow_file *file)
{
    file->left = true;
    if (!cow_file_shut(file) && !cow_file_ended(file) && commit_left(file) < 0)
        cow_error_clear();
    cow_file_tell_lost(file);
}

void cow_file_commit_all(bool last)
{
    for (cow_file *file = open_files; file != NULL; file = file->next)
        if (last)
            cow_file_let_go(file, NULL);
        else
            cow_file_commit_left(file);
}

void cow_file_let_go(cow_file *file, void *native)
{
    cow_map_remove(&file->kept, (uint64_t)(uintptr_t)native);
    if (cow_file_shut(file))
        return;
    if (!cow_file_ended(file) &&
        ((file->left && cow_chunk_cache_busy(file->cache) && cow_file_commit_interrupted(file, true) < 0) ||
         cow_file_commit(file, COW_FINISH) < 0))
        cow_error_clear();
    cow_file_tell_lost(file);
    shut(file);
    if (close_native(file) < 0)
        cow_error_clear();
}

bool cow_file_in_memory(const cow_file *file)
{
    return file->journal == NULL && cow_file_writable(file);
}

int cow_file_close_natively(cow_file *file, void *native)
{
    int status = cow_native_file_close_unflushed(native);
    cow_error_held *held = cow_error_hold();

    shut(file);
    if (close_native(file) < 0)
        status = -1;
    cow_error_put_back(held); /* the first one is the one to tell */
    return status;
}

void cow_file_forget_all(void)
{
    for (cow_file *file = open_files; file != NULL; file = file->next) {
        file->journal = NULL;
        if (file->cache != NULL)
            cow_chunk_cache_room(file->cache, NULL);
    }
    open_files = NULL; /* what is left HDF5 has lost */
}

/* ---- the head ---- */

static int remove_link(void *context, const char *name, const H5L_info2_t *info)
{
    cow_file *file = context;
    int kept = 0;

    if (strcmp(name, COW_GROUP) == 0)
        return 0;
    if (info->type == H5L_TYPE_HARD && (kept = cow_file_keep_removed(file, file->loc, name, info)) < 0)
        return -1;
    return kept ? 0 : cow_native_link_delete(file->loc, name);
}

static int remove_attribute(void *context, const char *name)
{
    cow_loc *root = context;

    return cow_native_attribute_delete(*root, name);
}

/* HDF5 counts creations in a group anew once it was empty: so the root group must be without ours for a moment. */
static int restart_creation_order(cow_file *file, cow_loc root)
{
    cow_loc ours;
    int64_t counter;
    int status = -1;

    if (cow_native_group_counter(root.object, &counter) < 0)
        return -1;
    if (counter <= 1)
        return 0;
    if (cow_native_open(file->loc, COW_ROOT, &ours) < 0)
        return -1;
    if (cow_native_change_references(ours, 1) == 0 && cow_native_link_delete(file->loc, COW_ROOT) == 0 &&
        cow_native_link_object(ours, file->loc, COW_ROOT) == 0 && cow_native_change_references(ours, -1) == 0)
        status = 0;
    return cow_native_close(ours) < 0 ? -1 : status;
}

/* Links of the root group to itself are counted in its header, and the last of them takes the count out of it: HDF5 1.14.5 does
 * that while it takes the link out, and may look for a part of the header that has gone by then. So it is counted once more
 * meanwhile. */
static int remove_links(cow_file *file, cow_loc root)
{
    H5O_info2_t info;
    int status;

    if (cow_native_info(root, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (info.rc <= 1)
        return cow_native_links(root, COW_LINKS_BY_NAME, remove_link, file);
    if (cow_native_change_references(root, 1) < 0)
        return -1;
    status = cow_native_links(root, COW_LINKS_BY_NAME, remove_link, file);
    return cow_native_change_references(root, -1) < 0 ? -1 : status;
}

int cow_file_clear_head(cow_file *file)
{
    bool stand_in[H5L_TYPE_MAX + 1];
    cow_loc root;
    int status = -1;

    if (cow_file_begin(file) < 0 || cow_native_open(file->loc, "/", &root) < 0)
        return -1;
    if (cow_native_link_classes_stand_in(stand_in) < 0)
        goto done;
    /* Attributes first: one may be what holds a named type without its link, which then is the link's to keep. */
    if (cow_native_attributes(root, false, remove_attribute, &root) == 0 && remove_links(file, root) == 0 &&
        cow_deleted_clear(file, root) == 0 && restart_creation_order(file, root) == 0 &&
        cow_native_comment_set(root, NULL) == 0 && cow_changed_object(file, &file->root, "/", COW_CHANGED_NEW) == 0)
        status = 0;
    cow_native_link_classes_withdraw(stand_in);
done:
    if (cow_native_close(root) < 0)
        status = -1;
    return status < 0 ? cow_file_fail(file) : 0; /* half a head must not become a version */
}
