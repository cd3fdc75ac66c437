/* H5F: opening, asking about and closing files. Creating: create.c.
 *
 * NAME@REVISION opens a version: a literal file of that name wins. The option at=REVISION does the same for every file
 * that has a history.
 */
#include "vol/vol.h"

#include "base/ids.h"
#include "base/witness.h"
#include "journal/driver.h"
#include "journal/label.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* Metadata and small raw data are allocated from blocks of their own, and what is left of these when the file is closed
 * is lost: with HDF5's own sizes a small commit loses more than it writes. */
#define METADATA_BLOCK 512
#define RAW_BLOCK      0
#define BLOCK_DEFAULT  2048

/* ---- for open and create ---- */

int cow_small_blocks(hid_t under)
{
    hsize_t metadata, raw;

    if (H5Pget_meta_block_size(under, &metadata) < 0 || H5Pget_small_data_block_size(under, &raw) < 0 ||
        (metadata == BLOCK_DEFAULT && H5Pset_meta_block_size(under, METADATA_BLOCK) < 0) ||
        (raw == BLOCK_DEFAULT && H5Pset_small_data_block_size(under, RAW_BLOCK) < 0))
        return cow_error_native("cannot prepare to open a file");
    return 0;
}

unsigned cow_swmr_attempts(hid_t fapl)
{
    unsigned asked = 0; /* by its name, since H5Pget_metadata_read_attempts says 1 where nothing was asked for */

    return H5Pget(fapl, "metadata_read_attempts", &asked) >= 0 && asked > 0 ? asked : COW_SWMR_ATTEMPTS;
}

void cow_vol_file_remember(cow_object *file, hid_t fapl)
{
    if (file != NULL && file->home != NULL)
        file->home->asked.blocks = H5Pget_meta_block_size(fapl, &file->home->asked.metadata_block) >= 0 &&
                                   H5Pget_small_data_block_size(fapl, &file->home->asked.raw_block) >= 0;
}

int cow_has_history(const char *name, hid_t fapl, unsigned long *fileno)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FILENO};
    unsigned long number = 0;
    H5F_libver_t low, high;
    void *native = NULL;
    hid_t under;
    int history = 0;

    if (access(name, R_OK) != 0 || (under = cow_native_fapl(fapl)) < 0)
        return 0;
    cow_raised_bounds(fapl, &low, &high);
    H5E_BEGIN_TRY
    {
        if (H5Pset_libver_bounds(under, low, high) >= 0 && cow_vol_file_use_journal(under, fapl, NULL) == 0)
            native = H5VLfile_open(name, H5F_ACC_RDONLY, under, DXPL, NULL);
        if (native != NULL) {
            get.args.get_fileno.fileno = fileno == NULL ? &number : fileno;
            if (H5VLfile_get(native, cow_native_id(), &get, DXPL, NULL) >= 0)
                history = cow_file_has_history(native) != 0; /* damaged, or too new, is a history */
            cow_native_file_close(native);
        }
        H5Pclose(under);
    }
    H5E_END_TRY
    cow_error_clear();
    return history;
}

static int check_heads(cow_file *file, const char *name)
{
    const int exposed = cow_file_exposes_heads(file);

    return exposed <= 0
               ? exposed
               : cow_error(COW_READ_ONLY,
                           "%s: it has a history, which only HDF5's default file driver (sec2) keeps: save it as "
                           "a file and open that, or open it for reading",
                           name);
}

static cow_home *join(void *native, const char *name, const char *given_name, const char *version, bool writable,
                      bool created, const cow_options *options, hid_t fapl)
{
    cow_home *home, *open = version == NULL ? cow_home_head_of(native) : NULL;
    bool alone = !cow_home_is_known(native);
    H5F_libver_t low, high;
    cow_file *file;

    if (cow_exit_prepare(writable) < 0)
        return NULL;
    cow_raised_bounds(fapl, &low, &high);
    if (writable && open == NULL && cow_vol_file_set_bounds(native, low, high) < 0) {
        if (cow_default_driver(fapl))
            return NULL;
        cow_error_clear(); /* an image in memory that may not grow: HDF5 2 flushes first. It is read as natively */
    }
    if ((file = cow_file_attach(native, name, writable, created, options)) == NULL)
        return NULL;
    if (writable && open == NULL && !created && check_heads(file, name) < 0) {
        cow_file_release(file);
        return NULL;
    }
    if (writable && open == NULL)
        cow_file_written_for(file, low);
    if ((home = cow_home_new(native, file, given_name, version, options)) == NULL) {
        cow_error_held *held = cow_error_hold(); /* what a file that was just made commits may clear it */
        cow_file_release(file);
        cow_error_put_back(held);
        return NULL;
    }
    /* Objects that stayed open when the file was closed keep its version unfinished until now. */
    if (writable && !created && cow_home_head_files(home) == 0 && !cow_home_last_head(home) &&
        cow_file_commit(file, COW_FINISH) < 0) {
        cow_home_release(home);
        return NULL;
    }
    if (open == NULL) { /* else HDF5 keeps to those of the first opening */
        home->asked.bounds = H5Pget_libver_bounds(fapl, &home->asked.low, &home->asked.high) >= 0;
        home->asked.image = writable && cow_metadata_cache_wants_image(fapl);
    }
    if (alone && cow_page_buffer_begin(home, native, fapl) < 0) {
        cow_home_release(home);
        return NULL;
    }
    return home;
}

/* A history that cannot be used at all says more than that it has no journal. */
static int check_journal(void *native, const char *name, const cow_options *options)
{
    cow_file *file;

    if (cow_vol_file_who(native) != COW_USERS_NO_JOURNAL)
        return 0;
    if ((file = cow_file_attach(native, name, false, false, options)) == NULL || cow_file_release(file) < 0)
        return -1;
    return cow_vol_file_check_journal(native, name);
}

cow_object *cow_vol_file_join(void *native, const char *name, const char *given_name, const char *version,
                              bool writable, bool created, const cow_options *options, hid_t fapl)
{
    /* what another driver could open for writing is no file on the disk, whose history would not be safe */
    cow_home *home = writable && !created && cow_default_driver(fapl) && check_journal(native, name, options) < 0
                         ? NULL
                         : join(native, name, given_name, version, writable, created, options, fapl);
    cow_object *object = home == NULL ? NULL : cow_object_new(home, native, H5I_FILE);

    if (object == NULL && created)
        cow_vol_file_drop_changes(native, "the file could not be created");
    if (object == NULL)
        cow_object_close_native(native, H5I_FILE);
    return object;
}

cow_home *cow_vol_file_adopt(void *native, const cow_options *options)
{
    H5VL_file_get_args_t intent = {.op_type = H5VL_FILE_GET_INTENT}, list = {.op_type = H5VL_FILE_GET_FAPL},
                         get = {.op_type = H5VL_FILE_GET_NAME};
    cow_options *defaults = options == NULL ? cow_options_parse(NULL) : NULL;
    cow_home *home = NULL;
    unsigned flags = 0;
    size_t length = 0;
    char *name = NULL;
    hid_t fapl = H5I_INVALID_HID;
    int history = cow_file_has_history(native);

    intent.args.get_intent.flags = &flags;
    get.args.get_name = (H5VL_file_get_name_args_t){.type = H5I_FILE, .file_name_len = &length};
    if (history < 0 || (options == NULL && defaults == NULL))
        goto done;
    if (H5VLfile_get(native, cow_native_id(), &list, DXPL, NULL) < 0 ||
        H5VLfile_get(native, cow_native_id(), &intent, DXPL, NULL) < 0 ||
        H5VLfile_get(native, cow_native_id(), &get, DXPL, NULL) < 0) {
        cow_error_native("cannot look at a file that was reached through a link");
        goto done;
    }
    fapl = list.args.get_fapl.fapl_id;
    if ((name = calloc(1, length + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the name of a file");
        goto done;
    }
    get.args.get_name.buf = name;
    get.args.get_name.buf_size = length + 1;
    if (H5VLfile_get(native, cow_native_id(), &get, DXPL, NULL) < 0) {
        cow_error_native("cannot look at a file that was reached through a link");
        goto done;
    }
    if (history == 0 || !cow_default_driver(fapl)) {
        if ((home = cow_home_new(native, NULL, NULL, NULL, options == NULL ? defaults : options)) != NULL)
            home->foreign = history > 0;
        goto done;
    }
    home = join(native, name, NULL, NULL, (flags & H5F_ACC_RDWR) && cow_vol_file_take_on(native), false,
                options == NULL ? defaults : options, fapl);
done:
    if (fapl >= 0)
        H5Pclose(fapl);
    free(name);
    cow_options_free(defaults);
    return home;
}

cow_object *cow_vol_file_pass(void *native, bool foreign, const cow_options *options)
{
    cow_home *home = cow_home_new(native, NULL, NULL, NULL, options);
    cow_object *object = NULL;

    if (cow_exit_prepare(false) < 0)
        cow_error_clear(); /* a program that asks for its versions hears less */
    if (home != NULL)
        home->foreign = foreign;
    if (home == NULL || (object = cow_object_new(home, native, H5I_FILE)) == NULL)
        cow_object_close_native(native, H5I_FILE);
    return object;
}

/* ---- open ---- */

/* "run.h5@3": *BASE "run.h5" (free it) and *REVISION "3" (in NAME), when that file exists and no file is called NAME.
 */
static int split_revision(const char *name, char **base, const char **revision)
{
    const char *at = strrchr(name, '@');
    struct stat about;

    *base = NULL;
    *revision = NULL;
    if (at == NULL || at == name || at[1] == '\0' || strchr(at, '/') != NULL || access(name, F_OK) == 0)
        return 0;
    if ((*base = strndup(name, (size_t)(at - name))) == NULL)
        return cow_error(COW_MEMORY, "no memory for the name '%s'", name);
    if (stat(*base, &about) == 0 && S_ISREG(about.st_mode))
        *revision = at + 1;
    else {
        free(*base);
        *base = NULL;
    }
    return 0;
}

static int refuse_write(const char *file, const char *revision)
{
    return cow_error(
        COW_READ_ONLY,
        "%s@%s: a version is never changed and cannot be opened for writing; to go on from it, write it to "
        "a file of its own: h5cow export %s@%s OUT; to change the newest state, open %s",
        file, revision, file, revision, file);
}

/* OURS: with the one driver under which history is kept. Versions are read with any: a program that asked for one, by the
 * file's name or the option `at`, must never get the newest state instead. */
static cow_object *open_known(void *native, const char *name, const char *given_name, const char *revision,
                              unsigned flags, const cow_options *options, hid_t fapl, bool ours)
{
    char path[COW_VERSION_PATH_MAX];
    cow_object *object = NULL;
    cow_file *file;
    int history = cow_file_has_history(native);

    if (history < 0) {
        cow_error_where(name, "cannot use its history");
        goto failed;
    }
    if (history == 0 && revision != NULL && given_name != NULL) {
        cow_error(COW_NOT_FOUND, "%s: the file has no history, so there is no revision '%s' of it", name, revision);
        goto failed;
    }
    if (history == 0 && ours && cow_vol_file_is_new(native))
        return cow_vol_file_join(native, name, NULL, NULL, true, true, options, fapl);
    if (history == 0 && options->adopt && ours && (flags & H5F_ACC_RDWR)) { /* nobody could open it a moment ago */
        cow_error(COW_IO,
                  "%s: it has no history, and could not be given one (option adopt=yes), since somebody else was "
                  "using it: try again",
                  name);
        goto failed;
    }
    if (history == 0) {
        object = cow_vol_file_pass(native, false, options);
        if (object != NULL && (flags & H5F_ACC_RDWR))
            cow_home_plain(object->home, name);
        return object;
    }
    if (!ours && revision == NULL && !(flags & H5F_ACC_RDWR) && !cow_mpi_list(fapl))
        return cow_vol_file_pass(native, true, options); /* read natively, through the views */
    if (revision == NULL)
        return cow_vol_file_join(native, name, given_name, NULL, flags & H5F_ACC_RDWR, false, options, fapl);
    /* resolved on the history's own handle: on this one HDF5 cannot read text yet (POST_OPEN comes later) */
    if ((file = cow_file_attach(native, name, false, false, options)) == NULL)
        goto failed;
    if (cow_revision_resolve(cow_file_native(file), revision, path, sizeof path) == 0)
        object = cow_vol_file_join(native, name, given_name, path, false, false, options, fapl);
    else
        cow_object_close_native(native, H5I_FILE);
    cow_file_release(file);
    return object;
failed:
    cow_object_close_native(native, H5I_FILE);
    return NULL;
}

/* The flags for native HDF5, which must not arrange a file with history for single-writer/multiple-readers: what it would
 * keep in order is not all there is. -1: refused. */
static int without_swmr(const char *name, hid_t fapl, unsigned *flags, bool *history)
{
    const unsigned swmr = H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ;
    unsigned long number = 0;
    const cow_home *open;

    if (!(*flags & swmr) || !(*history = cow_has_history(name, fapl, &number)))
        return 0;
    open = cow_home_find(number);
    if ((*flags & H5F_ACC_SWMR_WRITE) && open != NULL && !open->swmr_write)
        return cow_error(COW_USAGE, "%s: SWMR write access flag not the same for file that is already open", name);
    if ((*flags & H5F_ACC_SWMR_READ) && open != NULL && open->version == NULL && open->file != NULL &&
        !open->swmr_read && !cow_file_writable(open->file))
        return cow_error(COW_USAGE, "%s: SWMR read access flag not the same for file that is already open", name);
    *flags &= ~swmr;
    return 0;
}

/* A program that wants an old format is not to fail on the newer one of a file with history, which gets no image of the metadata
 * cache either; and of an empty file that is opened for writing HDF5 makes one. */
static int suit_history(const char *name, unsigned flags, hid_t fapl, hid_t under)
{
    bool image = (flags & H5F_ACC_RDWR) && cow_metadata_cache_wants_image(fapl);
    H5F_libver_t low, high;
    bool abandoned;

    if (H5Pget_libver_bounds(fapl, &low, &high) < 0 ||
        (((high >= H5F_LIBVER_V110 && !image) || !cow_has_history(name, fapl, NULL)) &&
         (!(flags & H5F_ACC_RDWR) || !cow_journal_holds_nothing(name, &abandoned))))
        return 0;
    cow_raised_bounds(fapl, &low, &high);
    return H5Pset_libver_bounds(under, low, high) < 0 || cow_metadata_cache_set_image(under, false) < 0
               ? cow_error_native("%s: cannot prepare to open the file", name)
               : 0;
}

/* An opening of a file by the application. */
typedef struct opening {
    const char *name;                  /* of the file */
    const char *given_name, *revision; /* where it was called otherwise; or NULL */
    char *base;                        /* what NAME points to, perhaps */
    cow_memory *memory;                /* the same */
    cow_options *options;
    hid_t given; /* the application's list */
    hid_t fapl;  /* the same, perhaps with the default driver in the place of its own */
    hid_t under; /* for the native connector */
    unsigned flags, native_flags;
    bool ours; /* with the one driver under which history is kept */
    bool swmr; /* a file with history, for single-writer/multiple-readers */
} opening;

/* By the list that the application gave; or, where other processes would have to take part, without it. */
static bool is_known(const opening *o)
{
    bool parallel = cow_mpi_list(o->given);
    hid_t list = parallel ? cow_sec2_fapl() : o->given;
    bool history = list >= 0 && cow_has_history(o->name, list, NULL);

    if (parallel && list >= 0)
        H5Pclose(list);
    return history;
}

static int choose_driver(opening *o)
{
    cow_driver_way way;

    o->ours = cow_default_driver(o->given);
    if (cow_mpi_list(o->given) && !(o->flags & H5F_ACC_RDWR) && is_known(o))
        return cow_mpi_read_alone(o->name, o->under);
    if (o->ours || o->revision != NULL)
        return 0;
    way = cow_driver_choose(o->name, o->flags, o->given);
    if (way == COW_DRIVER_MEMORY) {
        if ((o->memory = cow_memory_open(o->name)) == NULL)
            return -1;
        o->given_name = o->name;
        o->name = cow_memory_path(o->memory);
    }
    if (way == COW_DRIVER_DEFAULT || way == COW_DRIVER_MEMORY) {
        if ((o->fapl = H5Pcopy(o->given)) < 0 || H5Pset_fapl_sec2(o->fapl) < 0 || H5Pset_fapl_sec2(o->under) < 0)
            return cow_error_native("%s: cannot prepare to open the file", o->name);
        o->ours = true;
    } else if ((o->flags & H5F_ACC_RDWR) && cow_driver_check(o->name, H5F_ACC_RDWR, o->given) < 0)
        return -1;
    return 0;
}

/* Everything before native HDF5 is called. A list for MPI-IO is copied by all processes together. */
static int prepare(opening *o, const char *name)
{
    o->name = name;
    o->under = cow_native_fapl(o->given);
    if ((o->options = cow_fapl_options(o->given)) == NULL || split_revision(name, &o->base, &o->revision) < 0 ||
        o->under < 0)
        return -1;
    if (o->revision != NULL) {
        o->given_name = name;
        o->name = o->base;
    } else if (o->options->at != NULL && (!(o->flags & H5F_ACC_RDWR) || is_known(o)))
        o->revision = o->options->at;
    if (o->revision != NULL && (o->flags & H5F_ACC_RDWR))
        return refuse_write(o->name, o->revision);
    if (choose_driver(o) < 0)
        return -1;
    if (o->ours && ((o->options->adopt && (o->flags & H5F_ACC_RDWR) && cow_adopt(o->name, o->fapl, o->options) < 0) ||
                    without_swmr(o->name, o->fapl, &o->native_flags, &o->swmr) < 0 || cow_small_blocks(o->under) < 0 ||
                    suit_history(o->name, o->flags, o->fapl, o->under) < 0))
        return -1;
    return o->memory != NULL ? cow_vol_file_use_memory(o->under, o->options)
                             : cow_vol_file_use_journal(o->under, o->fapl, o->options);
}

static void remember(const opening *o, cow_object *object)
{
    cow_vol_file_remember(object, o->given);
    cow_class_version_missed(false);
    object->home->writable = o->flags & H5F_ACC_RDWR;
    object->home->memory = o->memory;
    if (o->fapl != o->given || o->memory != NULL)
        object->home->asked.driver = H5Pcopy(o->given);
    if (o->swmr) {
        object->home->swmr_read = o->flags & H5F_ACC_SWMR_READ;
        if (object->home->asked.read_attempts == 0) /* else what the first opening asked for */
            object->home->asked.read_attempts = cow_swmr_attempts(o->given);
        if (o->flags & H5F_ACC_SWMR_WRITE)
            cow_home_start_swmr(object->home, object->home->asked.read_attempts);
    }
}

/* What an opened image has, in a malloced block. */
static void *image_of(void *native, size_t *size)
{
    H5VL_native_file_optional_args_t image = {.get_file_image = {.buf_size = 0, .buf = NULL, .image_len = size}};
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_FILE_IMAGE, .args = &image};
    void *block;

    if (H5VLfile_optional(native, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL) < 0 ||
        (block = malloc(*size)) == NULL)
        return NULL;
    image.get_file_image.buf = block;
    image.get_file_image.buf_size = *size;
    if (H5VLfile_optional(native, cow_native_id(), &args, H5P_DATASET_XFER_DEFAULT, NULL) >= 0)
        return block;
    free(block);
    return NULL;
}

/* An image with a history is written in a file in memory, whose driver hides from HDF5 what it must not see. NULL: recorded, and the file is closed. */
static void *take_image(opening *o, void *native)
{
    size_t size = 0;
    void *image;

    if (o->ours || !(o->flags & H5F_ACC_RDWR) || H5Pget_driver(o->given) != cow_library_driver(COW_VFD_CORE) ||
        cow_file_has_history(native) <= 0)
        return native;
    if ((image = image_of(native, &size)) == NULL)
        cow_error_native("%s: cannot read the image", o->name);
    else
        o->memory = cow_memory_image(o->name, image, size);
    free(image);
    cow_object_close_native(native, H5I_FILE);
    if (o->memory == NULL)
        return NULL;
    o->given_name = o->name;
    o->name = cow_memory_path(o->memory);
    if (H5Pset_file_image(o->under, NULL, 0) < 0 || H5Pset_fapl_sec2(o->under) < 0 || cow_small_blocks(o->under) < 0 ||
        cow_vol_file_use_memory(o->under, o->options) < 0 ||
        (native = H5VLfile_open(o->name, o->flags, o->under, H5P_DATASET_XFER_DEFAULT, NULL)) == NULL) {
        cow_error_native("%s: cannot open the image in memory", o->given_name);
        return NULL;
    }
    return native;
}

void *cow_vol_file_open(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, void **req)
{
    COW_QUIET_FOR(false);
    opening o = {.given = fapl, .fapl = fapl, .under = H5I_INVALID_HID, .flags = flags, .native_flags = flags};
    hid_t stack = H5I_INVALID_HID;
    cow_object *object = NULL;
    void *native;

    cow_witness(COW_WITNESS_OPENED, name);
    int answer = prepare(&o, name);
    if (cow_mpi_agree(name, fapl, answer == 0 && o.revision != NULL ? 1 : answer) >= 0) {
        if ((native = H5VLfile_open(o.name, o.native_flags, o.under, dxpl, req)) == NULL) {
            stack = cow_errors_take(); /* programs read the reason there; closing the lists would clear it */
            if (!o.ours && (flags & H5F_ACC_RDWR))
                cow_driver_explain(o.name, fapl, o.under, &stack);
        } else if ((native = take_image(&o, native)) != NULL)
            object = open_known(native, o.memory != NULL ? o.given_name : o.name, o.given_name, o.revision, flags,
                                o.options, o.fapl, o.ours);
    }
    if (object == NULL || object->home == NULL || object->home->file == NULL)
        cow_label_tell(o.name);
    if (object != NULL)
        remember(&o, object);
    else if (o.revision != NULL && o.options != NULL && o.revision == o.options->at)
        cow_class_version_missed(true);
    if (o.fapl != o.given && o.fapl >= 0)
        H5Pclose(o.fapl);
    if (o.under >= 0)
        H5Pclose(o.under);
    if (object == NULL)
        cow_error_in_file(o.given_name != NULL && o.memory != NULL ? o.given_name : o.name);
    if (object == NULL)
        cow_memory_close(o.memory);
    cow_options_free(o.options);
    free(o.base);
    cow_errors_give_back(stack);
    return cow_leave_pointer(object);
}

/* ---- get ---- */

static int patch_fapl(const cow_home *home, hid_t fapl)
{
    if (cow_vol_file_show_sec2(fapl) < 0)
        return -1;
    if (home->asked.read_attempts > 0 && H5Pset_metadata_read_attempts(fapl, home->asked.read_attempts) < 0)
        return cow_error_native("cannot give back the access properties of the file");
    if (home->asked.driver > 0 &&
        H5Pset_driver(fapl, H5Pget_driver(home->asked.driver), H5Pget_driver_info(home->asked.driver)) < 0)
        return cow_error_native("cannot give back the file driver");
    if ((home->asked.bounds && H5Pset_libver_bounds(fapl, home->asked.low, home->asked.high) < 0) ||
        (home->asked.image && cow_metadata_cache_set_image(fapl, true) < 0) ||
        (home->asked.blocks && (H5Pset_meta_block_size(fapl, home->asked.metadata_block) < 0 ||
                                H5Pset_small_data_block_size(fapl, home->asked.raw_block) < 0)) ||
        (home->asked.page_buffer.size > 0 &&
         H5Pset_page_buffer_size(fapl, home->asked.page_buffer.size, home->asked.page_buffer.metadata,
                                 home->asked.page_buffer.raw) < 0))
        return cow_error_native("cannot give back the access properties of the file");
    return 0;
}

/* While a file is open that was created, HDF5 tells what the root group was created with; of one that was opened it does not know. */
static int show_root_settings(const cow_object *file, hid_t fcpl)
{
    void *root = cow_native_group_open((cow_loc){file->handle, H5I_FILE}, "/");
    hid_t gcpl = root == NULL ? H5I_INVALID_HID : cow_native_group_gcpl(root);
    int status = gcpl < 0 ? -1 : cow_native_group_settings(gcpl, fcpl);

    if (status < 0)
        cow_error_native("cannot get the creation properties of the root group");
    if (root != NULL)
        cow_native_group_close(root);
    cow_close(gcpl);
    return status;
}

/* HDF5 was not told to share dataspaces: the program is told what it asked for. */
static int show_shared_dataspaces(const cow_home *home, hid_t fcpl)
{
    unsigned indexes;
    uint8_t index;

    if (H5Pget_shared_mesg_nindexes(fcpl, &indexes) < 0)
        return cow_error_native("cannot get the creation properties of the file");
    return indexes == 0 ? 0 : cow_file_spaces(home->file, &index) < 0 ? -1 : cow_native_share_dataspaces(fcpl, index);
}

herr_t cow_vol_file_get(void *object, H5VL_file_get_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = cow_object_of(object);
    cow_home *home = o == NULL ? NULL : o->home;
    herr_t status = H5VLfile_get(cow_object_native(object), cow_native_id(), args, dxpl, req);

    if (status < 0 || home == NULL)
        return cow_leave(status);
    switch (args->op_type) {
    case H5VL_FILE_GET_FAPL:
        status = patch_fapl(home, args->args.get_fapl.fapl_id);
        break;
    case H5VL_FILE_GET_INTENT:
        if (home->version != NULL)
            *args->args.get_intent.flags = H5F_ACC_RDONLY;
        if (*args->args.get_intent.flags & H5F_ACC_RDWR)
            *args->args.get_intent.flags |= home->swmr_write ? H5F_ACC_SWMR_WRITE : 0;
        else
            *args->args.get_intent.flags |= home->swmr_read ? H5F_ACC_SWMR_READ : 0;
        break;
    case H5VL_FILE_GET_NAME:
        if (home->given_name != NULL) {
            H5VL_file_get_name_args_t *name = &args->args.get_name;
            size_t length = strlen(home->given_name);

            *name->file_name_len = length;
            if (name->buf != NULL && name->buf_size > 0) {
                strncpy(name->buf, home->given_name, name->buf_size);
                if (length >= name->buf_size)
                    name->buf[name->buf_size - 1] = '\0';
            }
        }
        break;
    case H5VL_FILE_GET_FILENO:
        status = cow_show_file_number(home, args->args.get_fileno.fileno);
        break;
    case H5VL_FILE_GET_CONT_INFO:
        /* H5Rget_region asks this, and no more: then it reads the dataset's object header itself */
        if (home->file != NULL && home->version == NULL && cow_file_writable(home->file))
            status = cow_file_show_extents(home->file);
        break;
    case H5VL_FILE_GET_FCPL:
        if (home->emptied && home->version == NULL)
            status = show_root_settings(o, args->args.get_fcpl.fcpl_id);
        if (status >= 0 && home->file != NULL)
            status = show_shared_dataspaces(home, args->args.get_fcpl.fcpl_id);
        break;
    case H5VL_FILE_GET_OBJ_COUNT:
    case H5VL_FILE_GET_OBJ_IDS:
        break;
    }
    return cow_leave(status);
}

/* ---- specific ---- */

static int flush(cow_home *home, H5F_scope_t scope)
{
    if (home == NULL)
        return 0;
    if ((home->file != NULL && home->version == NULL && cow_file_writable(home->file) &&
         (cow_file_commit(home->file, COW_FLUSH) < 0 || cow_file_refused(home->file) < 0)) ||
        cow_sources_flush(home) < 0)
        return -1;
    for (size_t i = 0; scope == H5F_SCOPE_GLOBAL && i < home->mounted_count; i++)
        if (flush(home->mounted[i], scope) < 0)
            return -1;
    return 0;
}

static int options_are_good(hid_t fapl)
{
    cow_options *options = cow_fapl_options(fapl);
    int status = options == NULL ? -1 : 0;

    cow_options_free(options);
    return status;
}

/* HDF5 looks at HDF5_VOL_CONNECTOR once, when it starts. A program that sets it later (a Python program, after an import)
 * makes new files without history and never learns why, unless one with history leads it here. */
static void say_if_late(void)
{
    static bool said;
    const char *chosen = getenv("HDF5_VOL_CONNECTOR");
    hid_t standard = H5I_INVALID_HID;
    int differ = 1;

    if (said || chosen == NULL || strncmp(chosen, COW_CONNECTOR_NAME, strlen(COW_CONNECTOR_NAME)) != 0 ||
        H5Pget_vol_id(H5P_FILE_ACCESS_DEFAULT, &standard) < 0)
        return;
    if (H5VLcmp_connector_cls(&differ, standard, cow_native_id()) >= 0 && differ == 0) {
        fprintf(stderr, "h5cow: HDF5_VOL_CONNECTOR was set after HDF5 had started, so it holds for nothing: files that "
                        "this program creates have no history; set it before (in Python, before the first import of "
                        "h5py, netCDF4 or tables)\n");
        said = true;
    }
    H5VLclose(standard);
}

/* HDF5 also asks this of every plugin when an open of the native connector has failed. Its reason is on the stack then,
 * and must stay there unless we can do better: a version, or a file with history, which only we can open for writing.
 */
static herr_t is_accessible(H5VL_file_specific_args_t *args, hid_t dxpl, void **req)
{
    H5VL_file_specific_args_t native = *args;
    bool probe = H5Eget_num(H5E_DEFAULT) > 0;
    hid_t stack = cow_errors_take(), under = H5I_INVALID_HID;
    hid_t fapl =
        args->args.is_accessible.fapl_id == H5P_DEFAULT ? H5P_FILE_ACCESS_DEFAULT : args->args.is_accessible.fapl_id;
    const char *revision = NULL;
    bool abandoned;
    char *base = NULL;
    herr_t status = -1;

    if (!probe) /* a program that only asks uses HDF5 all the same */
        cow_witness(COW_WITNESS_OPENED, args->args.is_accessible.filename);
    if (options_are_good(fapl) < 0 || split_revision(args->args.is_accessible.filename, &base, &revision) < 0)
        goto done;
    if (revision != NULL)
        native.args.is_accessible.filename = base;
    if (probe) {
        *args->args.is_accessible.accessible =
            cow_default_driver(fapl) && cow_has_history(native.args.is_accessible.filename, fapl, NULL);
        status = 0;
    } else if ((under = cow_native_fapl(fapl)) >= 0 && cow_vol_file_use_journal(under, fapl, NULL) == 0) {
        native.args.is_accessible.fapl_id = under;
        status = H5VLfile_specific(NULL, cow_native_id(), &native, dxpl, req);
        if (status < 0 && cow_journal_unfinished(native.args.is_accessible.filename, &abandoned)) {
            H5Eclear2(H5E_DEFAULT); /* it is there, so the answer is no, and not that it is missing */
            *args->args.is_accessible.accessible = false;
            status = 0;
        } else if (status < 0)
            stack = cow_errors_take();
    }
    if (status >= 0 && *args->args.is_accessible.accessible)
        say_if_late();
done:
    if (under >= 0)
        H5Pclose(under);
    free(base);
    cow_errors_give_back(stack);
    return status;
}

static herr_t delete_file(H5VL_file_specific_args_t *args, hid_t dxpl, void **req)
{
    H5VL_file_specific_args_t native = *args;
    hid_t fapl = args->args.del.fapl_id == H5P_DEFAULT ? H5P_FILE_ACCESS_DEFAULT : args->args.del.fapl_id,
          under = H5I_INVALID_HID, stack = H5I_INVALID_HID;
    herr_t status;

    if (options_are_good(fapl) < 0 || (under = cow_native_fapl(fapl)) < 0)
        return -1;
    native.args.del.fapl_id = under;
    if ((status = H5VLfile_specific(NULL, cow_native_id(), &native, dxpl, req)) < 0)
        stack = cow_errors_take();
    H5Pclose(under);
    cow_errors_give_back(stack);
    return status;
}

herr_t cow_vol_file_specific(void *object, H5VL_file_specific_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET_FOR(object != NULL);
    cow_object *o = cow_object_of(object);
    cow_home *home = o == NULL ? NULL : o->home;
    void *native = cow_object_native(object);
    herr_t status = -1;

    if (object != NULL && native == NULL) { /* see close_with_commit; HDF5 looks into what it is to reopen */
        cow_error(COW_USAGE, "the file is closed, though its last changes could not be committed");
        return cow_leave(-1);
    }
    switch (args->op_type) {
    case H5VL_FILE_FLUSH:
        if (flush(home, args->args.flush.scope) == 0)
            status = H5VLfile_specific(native, cow_native_id(), args, dxpl, req);
        break;
    case H5VL_FILE_REOPEN:
        if ((status = H5VLfile_specific(native, cow_native_id(), args, dxpl, req)) >= 0 &&
            *args->args.reopen.file != NULL) {
            void *again = *args->args.reopen.file;

            *args->args.reopen.file = cow_object_new(cow_home_reference(home), again, H5I_FILE);
            if (*args->args.reopen.file == NULL) {
                cow_object_close_native(again, H5I_FILE);
                status = -1;
            }
        }
        break;
    case H5VL_FILE_IS_ACCESSIBLE:
        status = is_accessible(args, dxpl, req);
        break;
    case H5VL_FILE_DELETE:
        status = delete_file(args, dxpl, req);
        break;
    case H5VL_FILE_IS_EQUAL: /* the second object comes unwrapped */
        status = H5VLfile_specific(native, cow_native_id(), args, dxpl, req);
        break;
    }
    return cow_leave(status);
}

/* ---- optional ---- */

/* The bounds that the application sets hold for what it makes, the ones of the file must allow what we write. */
static int set_bounds(cow_home *home, void *native, const H5VL_native_file_set_libver_bounds_t *wanted)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5F_libver_t low, high;
    int status = -1;

    if (fapl < 0 || H5Pset_libver_bounds(fapl, wanted->low, wanted->high) < 0)
        cow_error_native("cannot set these library version bounds");
    else {
        cow_raised_bounds(fapl, &low, &high);
        if ((status = cow_vol_file_set_bounds(native, low, high)) == 0) {
            if (home->file != NULL)
                cow_file_written_for(home->file, low);
            cow_home_bounds_asked(home, wanted->low, wanted->high);
            home->asked.old_format = wanted->low < H5F_LIBVER_V110;
        }
    }
    if (fapl >= 0)
        H5Pclose(fapl);
    return status;
}

static int refuse(const cow_home *home, const char *what)
{
    return cow_error(COW_UNSUPPORTED, "%s: %s is not possible for a file with history",
                     home->file == NULL ? "this file" : cow_file_name(home->file), what);
}

/* Single-writer/multiple-readers: refused where HDF5 would refuse it, and else nothing but more frequent commits. */
static int start_swmr(cow_home *home, void *native)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_OBJ_COUNT};
    size_t count = 0;

    if (home->file == NULL)
        return refuse(home, "single-writer/multiple-readers through another file or file driver");
    if (home->version != NULL || !cow_file_writable(home->file))
        return cow_error(COW_USAGE, "%s: no write intent on file", cow_file_name(home->file));
    if (home->asked.old_format || (home->asked.bounds && home->asked.high < H5F_LIBVER_V110))
        return cow_error(COW_USAGE,
                         "%s: file format version does not support SWMR - the library version bounds need to be 1.10 "
                         "or greater",
                         cow_file_name(home->file));
    if (home->swmr_write)
        return cow_error(COW_USAGE, "%s: file already in SWMR writing mode", cow_file_name(home->file));
    get.args.get_obj_count.types = H5F_OBJ_DATATYPE | H5F_OBJ_ATTR;
    get.args.get_obj_count.count = &count;
    if (H5VLfile_get(native, cow_native_id(), &get, DXPL, NULL) < 0)
        return cow_error_native("%s: cannot count what is open in the file", cow_file_name(home->file));
    if (count > 0)
        return cow_error(COW_USAGE, "%s: named datatypes and/or attributes opened in the file",
                         cow_file_name(home->file));
    if (cow_file_may_write(home->file) < 0 || cow_file_commit(home->file, COW_FLUSH) < 0)
        return -1;
    cow_home_start_swmr(home, COW_SWMR_ATTEMPTS);
    return 0;
}

static herr_t get_image(cow_home *home, void *native, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    const H5VL_native_file_optional_args_t *wanted = args->args;

    if ((home != NULL && home->file != NULL && cow_file_wanted(home->file) < 0) || flush(home, H5F_SCOPE_LOCAL) < 0 ||
        H5VLfile_optional(native, cow_native_id(), args, dxpl, req) < 0)
        return -1;
    if (home != NULL && home->file != NULL && wanted->get_file_image.buf != NULL)
        cow_vol_file_mend_image(wanted->get_file_image.buf, *wanted->get_file_image.image_len);
    return 0;
}

herr_t cow_vol_file_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = cow_object_of(object);
    cow_home *home = o == NULL ? NULL : o->home;
    void *native = cow_object_native(object);
    bool history = home != NULL && (home->file != NULL || home->foreign);

    if (cow_operation_known(args->op_type))
        return cow_leave(cow_operation_serve(o, args));
    switch (args->op_type) {
    case H5VL_NATIVE_FILE_POST_OPEN:
        return cow_leave(H5VLfile_optional(native, cow_native_id(), args, dxpl, req));
    case H5VL_NATIVE_FILE_START_SWMR_WRITE:
        if (history)
            return cow_leave(start_swmr(home, native));
        break;
    case H5VL_NATIVE_FILE_FORMAT_CONVERT:
        if (history) {
            refuse(home, "converting to an older file format");
            return cow_leave(-1);
        }
        break;
    case H5VL_NATIVE_FILE_SET_LIBVER_BOUNDS:
        if (history && home->file != NULL) {
            H5VL_native_file_optional_args_t *wanted = args->args;
            return cow_leave(set_bounds(home, native, &wanted->set_libver_bounds));
        }
        break;
    case H5VL_NATIVE_FILE_SET_MDC_CONFIG:
        if (history && home->file != NULL) {
            H5VL_native_file_optional_args_t *wanted = args->args;
            return cow_leave(cow_metadata_cache_set(home, native, wanted->set_mdc_config.config));
        }
        break;
    case H5VL_NATIVE_FILE_GET_MDC_CONF:
        if (history && H5VLfile_optional(native, cow_native_id(), args, dxpl, req) >= 0) {
            H5VL_native_file_optional_args_t *told = args->args;
            cow_metadata_cache_show(home, told->get_mdc_config.config);
            return cow_leave(0);
        }
        break;
    case H5VL_NATIVE_FILE_RESET_PAGE_BUFFERING_STATS:
        if (history && home->asked.page_buffer.size > 0) {
            cow_page_buffer_reset(home);
            return cow_leave(0);
        }
        break;
    case H5VL_NATIVE_FILE_GET_PAGE_BUFFERING_STATS:
        if (history && home->asked.page_buffer.size > 0) {
            const H5VL_native_file_optional_args_t *told = args->args;
            cow_page_buffer_show(home, &told->get_page_buffering_stats);
            return cow_leave(0);
        }
        break;
    case H5VL_NATIVE_FILE_GET_VFD_HANDLE:
        if (home != NULL && home->asked.driver > 0) {
            refuse(home, "the handle of a file driver in whose place h5cow writes the file");
            return cow_leave(-1);
        }
        break;
    case H5VL_NATIVE_FILE_GET_FILE_IMAGE:
        return cow_leave(get_image(home, native, args, dxpl, req));
    default:
        if (history && args->op_type > H5VL_NATIVE_FILE_POST_OPEN) {
            cow_error(COW_UNSUPPORTED, "operation %d on files is not known to this h5cow, and could write",
                      args->op_type);
            return cow_leave(-1);
        }
    }
    return cow_leave(H5VLfile_optional(native, cow_native_id(), args, dxpl, req));
}

/* ---- close ---- */

static int close_degree(void *native, H5F_close_degree_t *degree)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FAPL};
    int status;

    if (H5VLfile_get(native, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) < 0)
        return cow_error_native("cannot look at the access properties of the file");
    if ((status = H5Pget_fclose_degree(get.args.get_fapl.fapl_id, degree)) < 0)
        cow_error_native("cannot look at the close degree of the file");
    H5Pclose(get.args.get_fapl.fapl_id);
    return status < 0 ? -1 : 0;
}

/* Up to MOST ids of what is open by the handle NATIVE. */
static int open_by(void *native, unsigned types, hid_t ids[], size_t most, size_t *count)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_OBJ_IDS};

    get.args.get_obj_ids.types = H5F_OBJ_LOCAL | types;
    get.args.get_obj_ids.max_objs = most;
    get.args.get_obj_ids.oid_list = ids;
    get.args.get_obj_ids.count = count;
    return H5VLfile_get(native, cow_native_id(), &get, H5P_DATASET_XFER_DEFAULT, NULL) < 0
               ? cow_error_native("cannot list what is open in the file")
               : 0;
}

/* False: the handle on the native file must be closed, since it is the last, or what is mounted in it, or it in what,
 * counts on that. */
static bool keeps_handle(const cow_home *home)
{
    return home != NULL && home->file != NULL && !cow_file_shut(home->file) && !cow_home_last(home) &&
           !cow_home_mounts(home);
}

/* By DEGREE, HDF5 closes what is open by a handle first, or does not close this one, -1. */
static int close_objects(const cow_object *o, H5F_close_degree_t degree)
{
    /* first what may have such a type, as HDF5 does */
    static const unsigned types[] = {H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_ATTR, H5F_OBJ_DATATYPE};
    hid_t id[64];
    size_t count;

    if (degree == H5F_CLOSE_SEMI) {
        if (open_by(o->handle, types[0] | types[1], id, 1, &count) < 0)
            return -1;
        return count > 0 ? cow_error(COW_USAGE, "%s: can't close file, there are objects still open",
                                     cow_file_name(o->home->file))
                         : 0;
    }
    for (size_t t = 0; degree == H5F_CLOSE_STRONG && t < sizeof types / sizeof *types; t++)
        do {
            if (open_by(o->handle, types[t], id, sizeof id / sizeof *id, &count) < 0)
                return -1;
            for (size_t i = 0; i < count; i++)
                if (H5Idec_ref(id[i]) < 0)
                    return cow_error_native("%s: cannot close an object", cow_file_name(o->home->file));
        } while (count > 0);
    return 0;
}

/* Something else of the file is open as well: to the application this opening is closed, as HDF5 would close it. 1; 0: it
 * is HDF5's to close; -1: it stays open. */
static int close_one_of_several(cow_object *o)
{
    cow_file *file = o->home == NULL ? NULL : o->home->file;
    H5F_close_degree_t degree;

    if (!keeps_handle(o->home))
        return 0;
    if (close_degree(o->handle, &degree) == 0) {
        if (close_objects(o, degree) < 0)
            return -1;
        if (!keeps_handle(o->home)) /* it has become the last */
            return 0;
        if (cow_file_keep_handle(file, o->handle))
            return 1;
    }
    cow_error_clear(); /* no memory: it can be closed all the same */
    return 0;
}

/* Is that the last that is open of the file, and HDF5's to close? */
static bool is_last(const cow_object *o, bool kept)
{
    const cow_home *home = o->home;

    return home != NULL && home->file != NULL && home->version == NULL && !kept && cow_home_last(home) &&
           !cow_home_mounts(home) && !cow_native_fapl_keeps_files();
}

/* The handle of O is closed. STATUS -1: HDF5 keeps an id whose close reports an error, and what is under it. */
static void release_closed(cow_object *o, int status)
{
    o->handle = NULL;
    cow_object_release_last(o);
    if (status == 0)
        cow_object_free(o);
}

/* -1: HDF5 keeps the id until it is closed again. Where the file is closed all the same, there is nothing under it then. */
static int close_with_commit(cow_object *o)
{
    cow_error_held *held = NULL;
    bool closed;
    int status;

    cow_object_drop_root(o);
    status = cow_file_commit_by_closing(o->home->file, o->handle, o->home->failed, &closed);
    if (status < 0) {
        o->home->failed = true;
        held = cow_error_hold();
        cow_file_tell_lost(o->home->file);
    }
    if (closed)
        release_closed(o, status);
    cow_error_put_back(held);
    return status;
}

static herr_t is_about_open_objects(unsigned n, const H5E_error2_t *error, void *context)
{
    (void)n;
    if (error->desc != NULL && strstr(error->desc, "there are objects still open") != NULL)
        *(bool *)context = true;
    return 0;
}

/* HDF5 has written all, and then could not close the file: NAME, or NULL where it has no changes of ours. Nothing is said
 * where HDF5 will not close what is in use. */
static int closed_badly(const char *name)
{
    bool used = false;

    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, is_about_open_objects, &used);
    if (name == NULL || used)
        return -1;
    cow_error_native("%s: all changes are committed, but HDF5 could not close the file as it should", name);
    cow_tell("%s", cow_error_message());
    return -1;
}

/* A file in memory that the application has committed, or could not. HDF5 flushes a file when one of its two handles is closed, which
 * gives it more memory, and a program's own buffer may not grow. So the application's goes without that, and the history's is the last.
 * What could not be committed is dropped, as has been told. */
static int close_in_memory(cow_object *o)
{
    const bool failed = o->home->failed;
    cow_error_held *held = NULL;
    int status;

    cow_object_drop_root(o);
    if ((status = cow_file_close_natively(o->home->file, o->handle)) < 0) {
        if (failed) {
            cow_error_clear();
            status = 0;
        } else
            held = cow_error_hold();
    }
    release_closed(o, status);
    cow_error_put_back(held);
    return status;
}

/* The same where something else of it is open: HDF5 closes the application's handle with the last object of that. */
static int close_in_memory_but(cow_object *o)
{
    H5F_close_degree_t degree;

    if (close_degree(o->handle, &degree) < 0 || close_objects(o, degree) < 0)
        return -1;
    if (is_last(o, false))
        return close_in_memory(o);
    cow_object_drop_root(o);
    if (cow_native_file_close_unflushed(o->handle) < 0)
        return -1;
    cow_object_free(o);
    return 0;
}

/* With a file id of the application its changes become a version, as HDF5 flushes a file that it has open by others then; it is
 * finished when no object of the file is open any more, or, after the last id, the file is opened again: what is written through such
 * an object belongs to it. When that fails nothing is closed: HDF5 keeps an id whose close reports an error, and goes on using what is under it. A second close
 * closes without a commit. */
herr_t cow_vol_file_close(void *object, hid_t dxpl, void **req)
{
    COW_QUIET;
    cow_object *o = cow_object_of(object);
    cow_home *home = o == NULL ? NULL : o->home;
    bool kept = cow_file_keeps(o == NULL ? object : o->handle);
    char *name = NULL;
    int done, status = 0;

    cow_vol_file_asked(
        NULL); /* the application has got its id, which was there, and ids that closing makes are none of its own */
    if (o != NULL && o->handle == NULL) { /* see close_with_commit */
        cow_object_free(o);
        return cow_leave(0);
    }
    /* An id that HDF5 made for the history's own handle, to keep in references: the handle stays. */
    if (cow_file_of_handle(o == NULL ? object : o->handle)) {
        if (o != NULL) {
            cow_object_drop_root(o); /* HDF5 keeps files open of which a group is */
            cow_object_free(o);
        }
        return cow_leave(0);
    }
    if (o == NULL) /* a handle of HDF5's own: see wrap_object */
        return cow_leave(kept ? 0 : H5VLfile_close(object, cow_native_id(), dxpl, req));
    if (is_last(o, kept) && cow_file_commits_by_closing(home->file))
        return cow_leave(close_with_commit(o));
    if (home != NULL && home->file != NULL && home->version == NULL && !home->failed &&
        cow_file_commit(home->file, cow_home_last_head(home) ? COW_FINISH : COW_FLUSH) < 0) {
        home->failed = true;
        cow_file_tell_lost(home->file);
        return cow_leave(-1);
    }
    if (is_last(o, kept) && cow_file_in_memory(home->file))
        return cow_leave(close_in_memory(o));
    if (!kept && keeps_handle(home) && home->version == NULL && cow_file_in_memory(home->file))
        return cow_leave(close_in_memory_but(o));
    cow_object_drop_root(o);
    if ((done = close_one_of_several(o)) < 0)
        return cow_leave(-1);
    if (home != NULL && home->file != NULL && home->version == NULL && !home->failed && cow_file_writable(home->file))
        name = strdup(cow_file_name(home->file)); /* which goes with its last home */
    cow_object_release_last(o);
    if (done == 0 && !kept && H5VLfile_close(o->handle, cow_native_id(), dxpl, req) < 0)
        status = closed_badly(name); /* nothing is closed */
    /* What the release could still report has been reported by the commit above. */
    if (status == 0)
        cow_object_free(o);
    free(name);
    return cow_leave(status);
}

int cow_vol_file_close_unnamed(cow_object *file)
{
    int done, status = 0;

    cow_object_drop_root(file);
    done = close_one_of_several(file);
    cow_object_release_last(file);
    if (done <= 0 && cow_native_file_close(file->handle) < 0)
        status = -1;
    return cow_object_free(file) < 0 ? -1 : status;
}
