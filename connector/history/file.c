/* The shared state of an open file: joining, leaving, and laying out /_versioned_data in a new one. States and who
 * moves between them: history.h. */
#include "history/internal.h"

#include "base/bytes.h"
#include "base/error.h"
#include "journal/driver.h"
#include "journal/journal.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All files that are open with history in this process. The one piece of global state that HDF5 forces on us: its
 * callbacks come with an object, and several objects may belong to one physical file. */
static cow_file *open_files;

uint64_t cow_address(const H5O_token_t *token)
{
    return cow_get64(token->__data); /* the native token: the object's address, little-endian, then zeros */
}

H5O_token_t cow_token(uint64_t address)
{
    H5O_token_t token;

    memset(&token, 0, sizeof token);
    cow_put64(token.__data, address);
    return token;
}

static int check_format(cow_loc file)
{
    uint32_t format = 0;
    int found = cow_layout_number(file, COW_FORMAT_NAME, H5T_STD_U32LE, &format);

    if (found > 0 && format != COW_FORMAT)
        return cow_error(COW_UNSUPPORTED,
                         "the file's history has format %u; this h5cow reads format %u: use a newer h5cow", format,
                         COW_FORMAT);
    return found;
}

int cow_file_versioned(void *native_file)
{
    return check_format((cow_loc){native_file, H5I_FILE});
}

int cow_file_has_history(void *native_file)
{
    return cow_layout_has((cow_loc){native_file, H5I_FILE}, COW_FORMAT_NAME);
}

bool cow_file_ended(const cow_file *file)
{
    return file->state == COW_FILE_FAILED || file->state == COW_FILE_ABANDONED;
}

int cow_file_wanted(const cow_file *file)
{
    if (file->state != COW_FILE_ABANDONED)
        return 0;
    return cow_error(COW_READ_ONLY,
                     "%s: nothing can be written, and nothing is committed, since the program dropped its changes "
                     "(h5cow_abort); close the file and all that is open in it, then open it again",
                     file->name);
}

int cow_file_fail(cow_file *file)
{
    cow_journal *journal;

    if (!cow_file_ended(file)) {
        file->state = COW_FILE_FAILED;
        snprintf(file->error, sizeof file->error, "%s", cow_error_message());
        if ((journal = cow_journal_driver_of_file(file->fileno)) != NULL)
            cow_journal_abort(journal, file->error); /* what HDF5 still writes must not become a commit */
    }
    return -1;
}

int cow_file_may_write(cow_file *file)
{
    const cow_journal *journal;
    const char *failure;

    if (!file->writable)
        return cow_error(COW_READ_ONLY, "%s: the file is open for reading only", file->name);
    if (file->owner != getpid())
        return cow_error(COW_USAGE,
                         "%s: this process was forked when the file was open, and what it writes would be lost; open "
                         "the file anew in this process",
                         file->name);
    if (file->state == COW_FILE_FAILED)
        return cow_error(COW_IO,
                         "%s: nothing more is written since an earlier failure (%s); close the file, mend the cause "
                         "and open it again",
                         file->name, file->error);
    if (cow_file_wanted(file) < 0)
        return -1;
    if (file->shut)
        return cow_error(COW_USAGE, "%s: the HDF5 library is shutting down", file->name);
    if ((journal = cow_journal_driver_of_file(file->fileno)) != NULL &&
        (failure = cow_journal_failure(journal)) != NULL) {
        cow_error(COW_IO, "%s: nothing more is written since an earlier failure (%s)", file->name, failure);
        return cow_file_fail(file);
    }
    return 0;
}

int cow_file_begin(cow_file *file)
{
    if (cow_file_may_write(file) < 0)
        return -1;
    if (file->state == COW_FILE_CLEAN && cow_file_eoa(file, &file->eoa_before) < 0)
        return -1;
    file->state = COW_FILE_OPEN;
    return 0;
}

int cow_file_eoa(cow_file *file, uint64_t *eoa)
{
    H5VL_native_file_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_EOA, .args = &native};
    haddr_t end = 0;
    hsize_t size = 0;
    bool journal = cow_journal_driver_of_file(file->fileno) != NULL;

    if (journal)
        native.get_eoa.eoa = &end;
    else { /* some drivers do not tell */
        args.op_type = H5VL_NATIVE_FILE_GET_SIZE;
        native.get_size.size = &size;
    }
    if (H5VLfile_optional(file->native, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        return cow_error_native("%s: cannot get the end of the file", file->name);
    *eoa = journal ? end : size;
    return 0;
}

bool cow_file_writable(const cow_file *file)
{
    return file->writable;
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

void cow_file_lose_handle(cow_file *file)
{
    file->handle_lost = true;
}

bool cow_file_keeps(const void *native)
{
    uint64_t value;

    for (const cow_file *file = open_files; file != NULL; file = file->next)
        if (cow_map_get(&file->kept, (uint64_t)(uintptr_t)native, &value))
            return true;
    return false;
}

/* ---- tables ---- */

static int open_table(cow_file *file, cow_table_kind kind, cow_table **table)
{
    if (*table == NULL && (*table = cow_layout_table_open(file->loc, kind, 0, 0)) == NULL)
        return cow_context("%s: the history of the file is incomplete; try: h5cow verify", file->name);
    return 0;
}

static void close_tables(cow_file *file)
{
    cow_table **tables[] = {&file->datasets, &file->pools, &file->snapshots, &file->index};

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (*tables[i] != NULL) {
            (*tables[i])->close(*tables[i]);
            *tables[i] = NULL;
        }
}

int cow_file_open_snapshots(cow_file *file)
{
    return open_table(file, COW_TABLE_SNAPSHOTS, &file->snapshots);
}

int cow_file_open_all(cow_file *file)
{
    if (file->opened_all)
        return 0;
    if (open_table(file, COW_TABLE_POOLS, &file->pools) < 0 || cow_file_open_snapshots(file) < 0 ||
        cow_layout_log_rows(file->loc, &file->log_rows) < 0)
        return -1;
    file->version_row = (int64_t)file->log_rows - 1;
    file->opened_all = true;
    return 0;
}

/* Who only reads rarely needs the others, and opening takes time. */
static int open_tables(cow_file *file)
{
    if (open_table(file, COW_TABLE_DATASETS, &file->datasets) < 0 ||
        open_table(file, COW_TABLE_INDEX, &file->index) < 0 || (file->writable && cow_file_open_all(file) < 0))
        return -1;
    file->laid_out = true;
    return 0;
}

int cow_file_lay_out(cow_file *file)
{
    static const char *const groups[] = {COW_ROOT,       COW_PATH_VERSIONS, COW_PATH_TAGS,  COW_PATH_RAW,
                                         COW_PATH_SLOTS, COW_PATH_VIEWS,    COW_PATH_HEADS, COW_PATH_REMOVED};
    const uint32_t format = COW_FORMAT;
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
    if (cow_native_close(root) < 0 || status < 0)
        return -1;
    if (cow_layout_log_create(file->loc) < 0 ||
        (file->datasets = cow_layout_table_create(file->loc, COW_TABLE_DATASETS, 0, 0)) == NULL ||
        (file->pools = cow_layout_table_create(file->loc, COW_TABLE_POOLS, 0, 0)) == NULL ||
        (file->snapshots = cow_layout_table_create(file->loc, COW_TABLE_SNAPSHOTS, 0, 0)) == NULL ||
        (file->index = cow_layout_table_create(file->loc, COW_TABLE_INDEX, 0, 0)) == NULL)
        return -1;
    file->version_row = -1;
    file->laid_out = file->opened_all = true;
    return 0;
}

/* ---- joining and leaving ---- */

/* Datasets that a wrapper still holds (only at shutdown) keep their bare memory until it lets go. */
static void close_datasets(cow_file *file)
{
    for (size_t i = 0; i < file->open_datasets.capacity; i++)
        if (file->open_datasets.entry[i].used) {
            cow_dataset *dataset = (cow_dataset *)(uintptr_t)file->open_datasets.entry[i].value;
            cow_dataset_shut(dataset);
            if (dataset->references == 0)
                free(dataset);
        }
}

/* Closes everything of the library underneath but the handle on the file itself, which must be the last to go. */
static void shut(cow_file *file)
{
    if (file->shut)
        return;
    close_datasets(file);
    cow_bare_forget_all(file);
    cow_map_free(&file->open_datasets);
    cow_pools_close(file);
    close_tables(file);
    if (file->cache != NULL)
        cow_chunk_cache_close(file->cache);
    file->cache = NULL;
    file->shut = true;
}

/* From here on they are any files: what is closed asks whether it is to be kept (cow_file_keeps, cow_file_of_handle). */
static void close_native(cow_file *file)
{
    cow_map kept = file->kept;
    void *native = file->native;

    file->kept = (cow_map){0};
    file->native = NULL;
    for (size_t i = 0; i < kept.capacity; i++)
        if (kept.entry[i].used && cow_native_file_close((void *)(uintptr_t)kept.entry[i].key) < 0)
            cow_error_clear();
    if (native != NULL && cow_native_file_close(native) < 0)
        cow_error_clear();
    cow_map_free(&kept);
}

static void free_file(cow_file *file)
{
    for (cow_file **f = &open_files; *f != NULL; f = &(*f)->next)
        if (*f == file) {
            *f = file->next;
            break;
        }
    shut(file);
    close_native(file);
    cow_changes_clear(file);
    free(file->change);
    cow_map_free(&file->node_at);
    cow_map_free(&file->links_of_history);
    cow_map_free(&file->superseded);
    cow_map_free(&file->own);
    cow_map_free(&file->snapshot_of);
    cow_map_free(&file->snapshot_at);
    cow_map_free(&file->left_out);
    cow_map_free(&file->stale);
    cow_map_free(&file->told);
    cow_lacks_free(&file->lacks);
    cow_map_free(&file->sum_checked);
    cow_version_objects_free(file);
    free(file->snapshot);
    cow_options_free(file->options);
    free(file->name);
    free(file->replaced); /* without a commit the old file stays */
    free(file->next_name);
    free(file->next_message);
    free(file);
}

cow_file *cow_file_attach(void *native_file, const char *name, bool writable, bool created, const cow_options *options)
{
    cow_loc at = {native_file, H5I_FILE};
    const cow_journal *journal;
    H5O_info2_t info;
    cow_file *file;
    int found;

    if (cow_native_info(at, NULL, H5O_INFO_BASIC, &info) < 0)
        return NULL;
    for (file = open_files; file != NULL; file = file->next)
        if (file->fileno == info.fileno && !file->shut) {
            if (file->state == COW_FILE_ABANDONED) {
                cow_error(COW_USAGE,
                          "%s: the program has dropped its changes to the file (h5cow_abort), and has it still open: "
                          "close it and all that is open in it, then open it again",
                          name);
                return NULL;
            }
            if (writable && file->laid_out && cow_file_open_all(file) < 0)
                return NULL;
            file->writable |= writable;
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
        (file->options = cow_options_copy(options)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory to open the file", name);
        if (file != NULL)
            free(file->name);
        free(file);
        return NULL;
    }
    file->fileno = info.fileno;
    file->root = info.token;
    file->owner = getpid();
    file->writable = writable;
    file->references = 1;
    file->version_row = file->amend_row = -1;
    file->next = open_files;
    open_files = file;
    if ((file->native = cow_native_file_reopen(native_file)) == NULL)
        goto failed;
    file->loc = (cow_loc){file->native, H5I_FILE};
    if ((file->cache = cow_chunk_cache_open(file->options->cache_bytes)) == NULL)
        goto failed;
    if (created) {
        if (cow_changed_object(file, &file->root, "/", COW_CHANGED_NEW) < 0)
            goto failed;
    } else if ((found = check_format(file->loc)) <= 0 || open_tables(file) < 0) {
        if (found == 0)
            cow_error(COW_CORRUPT, "%s: its history has vanished", name);
        goto failed;
    }
    /* what a name may be made of, base/options.c has seen to */
    if (writable && file->options->name != NULL && cow_version_is_new(file, file->options->name) < 0)
        goto failed;
    return file;
failed:
    free_file(file);
    return NULL;
}

int cow_file_join_reader(cow_loc object, unsigned long fileno, const cow_file *like, cow_file **file)
{
    hid_t id;
    void *native;
    int joined;

    for (*file = open_files; *file != NULL; *file = (*file)->next)
        if ((*file)->fileno == fileno && !(*file)->shut)
            return (*file)->writable && (*file)->laid_out && cow_commit_datasets(*file) < 0 ? cow_file_fail(*file) : 0;
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
    if (!file->shut && !cow_file_ended(file))
        status = cow_file_commit(file, COW_FINISH);
    free_file(file);
    return status;
}

int cow_file_commit_left(cow_file *file)
{
    return file->shut || cow_file_ended(file) ? 0 : cow_file_commit(file, COW_FLUSH);
}

void cow_file_commit_all(bool last, void (*failed)(const cow_file *file))
{
    for (cow_file *file = open_files; file != NULL; file = file->next)
        if ((last ? cow_file_let_go(file, NULL) : cow_file_commit_left(file)) < 0)
            failed(file);
}

int cow_file_let_go(cow_file *file, void *native)
{
    int status = 0;

    cow_map_remove(&file->kept, (uint64_t)(uintptr_t)native);
    if (file->shut)
        return 0;
    if (!cow_file_ended(file))
        status = cow_file_commit(file, COW_FINISH);
    shut(file);
    close_native(file);
    return status;
}

void cow_file_forget_all(void)
{
    open_files = NULL; /* what is left HDF5 has lost */
}

bool cow_file_shut(const cow_file *file)
{
    return file->shut;
}

int cow_file_replaces(cow_file *file, const char *old, bool discard)
{
    file->discard = discard;
    return (file->replaced = strdup(old)) == NULL ? cow_error(COW_MEMORY, "%s: no memory", file->name) : 0;
}

void cow_file_replaced(cow_file *file)
{
    if (file->replaced == NULL)
        return;
    if (file->discard) {
        unlink(file->replaced);
        if (cow_journal_sync_name(file->replaced) < 0) /* the commit has happened */
            cow_error_clear();
    }
    free(file->replaced);
    file->replaced = NULL;
}

/* ---- the head ---- */

static int remove_link(void *context, const char *name, const H5L_info2_t *info)
{
    cow_file *file = context;
    int kept = 0;

    if (strcmp(name, COW_GROUP) == 0)
        return 0;
    if (info->type == H5L_TYPE_HARD && (kept = cow_file_keep_removed(file, file->loc, name)) < 0)
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
        return cow_native_links(root, false, remove_link, file);
    if (cow_native_change_references(root, 1) < 0)
        return -1;
    status = cow_native_links(root, false, remove_link, file);
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
    if (cow_native_attributes(root, false, remove_attribute, &root) == 0 &&
        remove_links(file, root) == 0 && restart_creation_order(file, root) == 0 &&
        cow_native_comment_set(root, NULL) == 0 && cow_changed_object(file, &file->root, "/", COW_CHANGED_NEW) == 0)
        status = 0;
    cow_native_link_classes_withdraw(stand_in);
done:
    if (cow_native_close(root) < 0)
        status = -1;
    return status < 0 ? cow_file_fail(file) : 0; /* half a head must not become a version */
}

static void *(*find_opened)(const cow_file *file, const H5O_token_t *token);

void cow_file_find_opened(void *(*find)(const cow_file *file, const H5O_token_t *token))
{
    find_opened = find;
}

int cow_head_open(const cow_file *file, uint64_t address, cow_loc *object, bool *borrowed)
{
    H5O_token_t token = cow_token(address);
    uint64_t found;
    cow_dataset *dataset = cow_map_get(&file->open_datasets, address, &found) ? (cow_dataset *)(uintptr_t)found : NULL;
    cow_error_held *held;

    *borrowed = dataset != NULL && dataset->native != NULL;
    if (*borrowed) {
        *object = (cow_loc){dataset->native, H5I_DATASET};
        return 0;
    }
    if (cow_native_open_token(file->loc, &token, object) == 0)
        return 0;
    held = cow_error_hold();
    *object = (cow_loc){find_opened == NULL ? NULL : find_opened(file, &token), H5I_DATASET};
    *borrowed = object->object != NULL;
    cow_error_put_back(held);
    if (!*borrowed)
        return -1;
    cow_error_clear();
    return 0;
}

static void removed_path(char path[COW_PATH_MAX], uint64_t address)
{
    snprintf(path, COW_PATH_MAX, COW_PATH_REMOVED "/%llx", (unsigned long long)address);
}

int cow_file_removed(cow_file *file, const H5O_token_t *object)
{
    char path[COW_PATH_MAX];

    removed_path(path, cow_address(object));
    return file->laid_out ? cow_native_exists(file->loc, path) : 0;
}

int cow_file_keep(cow_file *file, uint64_t address)
{
    char path[COW_PATH_MAX];
    cow_loc object;
    bool borrowed;
    int kept, status;

    removed_path(path, address);
    if ((kept = cow_native_exists(file->loc, path)) != 0)
        return kept < 0 ? -1 : 0;
    if (cow_head_open(file, address, &object, &borrowed) < 0)
        return -1;
    file->edits++;
    status = cow_native_link_object(object, file->loc, path);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

/* ---- what goes with a group ---- */

typedef struct doomed {
    cow_file *file;
    cow_map met; /* groups */
} doomed;

static int keep_member(void *context, const char *name, const H5L_info2_t *info)
{
    doomed *d = context;
    cow_loc object;
    bool borrowed;
    uint64_t address;
    int status = 0;

    (void)name;
    if (info->type != H5L_TYPE_HARD || cow_map_get(&d->met, address = cow_address(&info->u.token), NULL))
        return 0;
    if (cow_snapshots_known(d->file, address))
        return cow_file_keep(d->file, address);
    if (cow_head_open(d->file, address, &object, &borrowed) < 0)
        return -1;
    if (object.type == H5I_GROUP && (status = cow_map_put(&d->met, address, 0)) == 0)
        status = cow_native_links(object, false, keep_member, d);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

/* A group goes that no version knows. What a version knows may have been moved into it. */
static int keep_below(cow_file *file, const H5O_token_t *group)
{
    doomed d = {.file = file};
    H5L_info2_t link = {.type = H5L_TYPE_HARD, .u.token = *group};
    int status = file->snapshot_count == 0 ? 0 : keep_member(&d, "", &link);

    cow_map_free(&d.met);
    return status;
}

int cow_file_keep_removed(cow_file *file, cow_loc group, const char *name)
{
    H5O_info2_t info;
    H5L_info2_t link;
    char path[COW_PATH_MAX];
    int kept;

    if (cow_file_begin(file) < 0 || cow_native_link_info(group, name, &link) < 0)
        return -1;
    if (link.type != H5L_TYPE_HARD)
        return 0;
    cow_changed_paths(file); /* what is gone shows in a walk through the whole head */
    if (cow_native_info(group, name, H5O_INFO_BASIC, &info) < 0)
        return -1;
    /* A second link keeps the object alive, and what no version knows may go. What else counts for a named type may be an
     * attribute, and nobody notices when the last of these goes: the link is kept while there still is one. */
    if ((info.rc != 1 && info.type != H5O_TYPE_NAMED_DATATYPE) || !file->laid_out)
        return 0;
    if (cow_snapshots_load(file) < 0)
        return -1;
    if (!cow_snapshots_known(file, cow_address(&info.token)))
        return info.type == H5O_TYPE_GROUP ? keep_below(file, &info.token) : 0;
    removed_path(path, cow_address(&info.token));
    if (info.rc != 1 && (kept = cow_native_exists(file->loc, path)) != 0)
        return kept < 0 ? -1 : 0;
    file->edits++;
    return cow_native_link_move(group, name, file->loc, path) < 0 ? -1 : 1;
}

int cow_file_keep_uncounted(cow_file *file, const H5O_token_t *object)
{
    if (!file->laid_out)
        return 0;
    if (cow_file_begin(file) < 0 || cow_snapshots_load(file) < 0)
        return -1;
    return cow_snapshots_known(file, cow_address(object)) ? cow_file_keep(file, cow_address(object)) : 0;
}
