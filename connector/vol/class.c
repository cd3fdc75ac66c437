/* The connector as HDF5 sees it: its table of callbacks, its options, and how objects are wrapped.
 *
 * HDF5 probes every plugin on its path when an open of the native connector fails, so all of this must be cheap, must
 * take NULL options, and must never change anything.
 */
#include "vol/vol.h"

#include "journal/driver.h"
#include "library/library.h"

#include <stdlib.h>
#include <string.h>

/* ---- options ----
 *
 * A text that cannot be parsed is no failure of from_str: HDF5 would go on without the connector, which nobody notices.
 * It becomes options that refuse every file, with the reason.
 *
 * HDF5's own tools, when a file is refused, put the native connector in the place of ours and try again. So such
 * options cannot be replaced: freeing them fails, which makes that H5Pset_vol fail, and elsewhere does nothing. HDF5
 * goes on using what it could not free, so they are kept until the connector ends, and all copies are one. The same
 * holds for options that name a version (at=), once it could not be opened: another version in its place would be worse
 * than none.
 *
 * HDF5 2 does not end when a connector's options were not freed. There they are, and its tools have their way.
 */
#define FREEING_MAY_FAIL (!cow_library_is_2())

static bool version_missed;

typedef struct kept_options {
    struct kept_options *next;
    cow_options *options;
} kept_options;
static kept_options *kept;

static bool is_kept(const cow_options *options)
{
    for (const kept_options *k = kept; k != NULL; k = k->next)
        if (k->options == options)
            return true;
    return false;
}

/* Without memory they are never freed. */
static void keep(cow_options *options)
{
    kept_options *k = is_kept(options) ? NULL : malloc(sizeof *k);

    if (k != NULL) {
        *k = (kept_options){kept, options};
        kept = k;
    }
}

static void free_kept(void)
{
    while (kept != NULL) {
        kept_options *k = kept;
        kept = k->next;
        k->options->references = 1; /* nobody asks any more */
        cow_options_free(k->options);
        free(k);
    }
}

void cow_class_version_missed(bool missed)
{
    version_missed = missed;
}

static bool is_refused(const cow_options *options)
{
    return options != NULL && options->refused != NULL;
}

static int refuse(const cow_options *options)
{
    return cow_error(COW_USAGE, "%s (the options of h5cow are \"%s\"; no file is opened until they are right)",
                     options->refusal, options->refused);
}

static void *info_copy(const void *info)
{
    COW_QUIET;
    return cow_leave_pointer(is_refused(info) ? (void *)(uintptr_t)info : cow_options_copy(info));
}

static herr_t info_cmp(int *cmp, const void *info1, const void *info2)
{
    COW_QUIET;
    char *text1 = cow_options_text(info1), *text2 = cow_options_text(info2);
    herr_t status = -1;

    if (text1 == NULL || text2 == NULL)
        cow_error(COW_MEMORY, "no memory for the connector's options");
    else {
        *cmp = strcmp(text1, text2);
        status = 0;
    }
    free(text1);
    free(text2);
    return cow_leave(status);
}

static herr_t info_free(void *info)
{
    COW_QUIET;
    cow_options *options = info;

    if (FREEING_MAY_FAIL && is_refused(options)) {
        refuse(options);
        return cow_leave(-1);
    }
    if (FREEING_MAY_FAIL && version_missed && options != NULL && options->at != NULL && !cow_quiet_nested()) {
        cow_error(COW_USAGE,
                  "version %s could not be opened, and another one is not opened in its place; for the newest state "
                  "leave the option at=%s out",
                  options->at, options->at);
        keep(options);
        return cow_leave(-1);
    }
    if (!is_kept(options))
        cow_options_free(options);
    return 0;
}

static herr_t info_to_str(const void *info, char **str)
{
    COW_QUIET;
    char *text = info == NULL ? NULL : cow_options_text(info);

    *str = NULL;
    if (info == NULL)
        return 0;
    /* The library frees it with its own allocator. */
    if (text == NULL || (*str = H5allocate_memory(strlen(text) + 1, false)) == NULL) {
        free(text);
        cow_error(COW_MEMORY, "no memory for the connector's options");
        return cow_leave(-1);
    }
    strcpy(*str, text);
    free(text);
    return 0;
}

static herr_t info_from_str(const char *str, void **info)
{
    COW_QUIET;
    if ((*info = cow_options_parse(str)) == NULL && (*info = cow_options_refuse(str)) != NULL)
        keep(*info);
    return cow_leave(*info == NULL ? -1 : 0);
}

cow_options *cow_fapl_options(hid_t fapl)
{
    void *info = NULL;

    if (H5Pget_vol_info(fapl, &info) < 0) {
        cow_error_native("cannot read the connector's options");
        return NULL;
    }
    if (is_refused(info)) {
        refuse(info);
        return NULL;
    }
    /* Without options in HDF5_VOL_CONNECTOR the library never called from_str. */
    return info != NULL ? info : cow_options_parse(NULL);
}

static bool keeps_files;

hid_t cow_native_fapl(hid_t fapl)
{
    unsigned files = 0;
    hid_t copy = H5Pcopy(fapl == H5P_DEFAULT ? H5P_FILE_ACCESS_DEFAULT : fapl);

    if (copy < 0 || H5Pset_vol(copy, cow_native_id(), NULL) < 0) {
        cow_error_native("cannot prepare to open a file");
        if (copy >= 0)
            H5Pclose(copy);
        return H5I_INVALID_HID;
    }
    if (H5Pget_elink_file_cache_size(copy, &files) < 0 || files > 0)
        keeps_files = true;
    return copy;
}

bool cow_native_fapl_keeps_files(void)
{
    return keeps_files;
}

/* ---- wrapping ---- */

/* HDF5 asks for this when it goes through all ids there are, while it closes or flushes some file, or counts what is open in one: then it is
 * the file that it looks at. So what is not open yet stays so. And it asks where an id leads that a link of the program's own has led to. */
static void *get_object(const void *object)
{
    const cow_object *o = cow_object_of((void *)(uintptr_t)object);

    if (o == NULL || o->unopened == NULL || !cow_vol_follows_link())
        return cow_object_native(object);
    COW_QUIET;
    return cow_leave_pointer(cow_object_opened(o));
}

/* Every call of the application passes here, also the one that closes a file when there is no memory left: so nothing
 * is allocated. Nothing is called that could print: so no COW_QUIET. */
static herr_t get_wrap_ctx(const void *object, void **wrap_ctx)
{
    const cow_object *o = cow_object_of((void *)(uintptr_t)object);

    cow_wrapping_begins();
    *wrap_ctx = cow_home_wrap(o == NULL ? NULL : o->home, o != NULL && o->unnamed, o != NULL && o->detached);
    return 0;
}

static herr_t free_wrap_ctx(void *wrap_ctx)
{
    cow_home_unwrap(((cow_wrapping *)wrap_ctx)->home);
    return 0;
}

static void *wrap_object(void *native, H5I_type_t type, void *wrap_ctx)
{
    COW_QUIET;
    const cow_wrapping *w = wrap_ctx;
    cow_home *home = w == NULL ? NULL : w->home;
    cow_object *object = NULL;
    H5O_info2_t info;

    /* No home for HDF5's own handles, for those of our own walks, nor when the last object is being closed. The file itself
     * stands for HDF5's handle on it, so that nothing is allocated: HDF5 wraps it when the file is open already, and would
     * leave it open. */
    if (home == NULL || home->references == 0 || cow_native_is_listing() ||
        (type == H5I_FILE && !cow_vol_file_was_asked(native))) {
        if (type == H5I_FILE)
            return native;
        object = cow_object_new_surely(NULL, native, type);
    } else if (type == H5I_ATTR)
        object = cow_object_new_surely(cow_home_reference(home), native, type);
    else if (cow_native_info((cow_loc){native, type}, NULL, H5O_INFO_BASIC, &info) == 0) {
        cow_home *own = cow_home_of(home, native, type, &info);
        if (own == NULL) {
            /* A file behind a link, whose history cannot be used: the call that follows the link will say so. If this
             * one failed, HDF5 would leave the object open, and the file marked as being written. */
            cow_error_clear();
            object = cow_object_new_surely(NULL, native, type);
        } else if ((object = cow_object_new_surely(own, native, type)) != NULL) {
            object->token = info.token;
            object->has_token = true;
            object->unnamed = w->unnamed;
            object->detached = w->detached || own != home;
        }
    }
    if (object != NULL && type == H5I_GROUP)
        cow_vol_group_given(object);
    return cow_leave_pointer(object);
}

static void *unwrap_object(void *object)
{
    COW_QUIET;
    cow_object *o = cow_object_of(object);
    void *native = o == NULL ? object : cow_object_opened(o);
    int status = o == NULL ? 0 : cow_sources_close(o);

    if (o != NULL && native == NULL)
        native = o->handle; /* of the same file, and HDF5 closes it */
    if (o != NULL) {
        cow_object_drop_root(o);
        cow_object_free(o);
    }
    return cow_leave(status) < 0 ? NULL : native;
}

/* ---- what the library asks about the connector ---- */

static herr_t get_conn_cls(void *object, H5VL_get_conn_lvl_t lvl, const H5VL_class_t **conn_cls)
{
    COW_QUIET;
    if (lvl == H5VL_GET_CONN_LVL_CURR) {
        *conn_cls = &cow_class;
        return 0;
    }
    /* Native at the end: or H5Oget_info1, H5Rcreate and others of HDF5 1.8 would refuse to work. */
    return H5VLintrospect_get_conn_cls(cow_object_native(object), cow_native_id(), lvl, conn_cls);
}

static herr_t get_cap_flags(const void *info, uint64_t *cap_flags)
{
    (void)info;
    *cap_flags = cow_class.cap_flags;
    return 0;
}

static herr_t opt_query(void *object, H5VL_subclass_t cls, int opt_type, uint64_t *flags)
{
    COW_QUIET;
    /* HDF5 1.14.5 serves this operation, but does not say so. */
    if (cls == H5VL_SUBCLS_DATASET && opt_type == H5VL_NATIVE_DATASET_CHUNK_ITER) {
        *flags = H5VL_OPT_QUERY_SUPPORTED | H5VL_OPT_QUERY_QUERY_METADATA | H5VL_OPT_QUERY_NO_ASYNC;
        return 0;
    }
    if (cls == H5VL_SUBCLS_FILE && cow_operation_known(opt_type)) {
        *flags = H5VL_OPT_QUERY_SUPPORTED | H5VL_OPT_QUERY_MODIFY_METADATA | H5VL_OPT_QUERY_WRITE_DATA |
                 H5VL_OPT_QUERY_NO_ASYNC;
        return 0;
    }
    return H5VLintrospect_opt_query(cow_object_native(object), cow_native_id(), cls, opt_type, flags);
}

/* ---- blobs and tokens: native ---- */

static herr_t blob_put(void *object, const void *buf, size_t size, void *blob_id, void *ctx)
{
    COW_QUIET_ELEMENT;
    void *native = cow_object_native(object);
    const H5VL_class_t *class = cow_native_class(native);

    return class != NULL ? class->blob_cls.put(native, buf, size, blob_id, ctx)
                         : H5VLblob_put(native, cow_native_id(), buf, size, blob_id, ctx);
}

static herr_t blob_get(void *object, const void *blob_id, void *buf, size_t size, void *ctx)
{
    COW_QUIET_ELEMENT;
    void *native = cow_object_native(object);
    const H5VL_class_t *class = cow_native_class(native);

    return class != NULL ? class->blob_cls.get(native, blob_id, buf, size, ctx)
                         : H5VLblob_get(native, cow_native_id(), blob_id, buf, size, ctx);
}

/* HDF5 asks for each element whether it is null. A blob's id is that of an object in a global heap (HDF5 File Format, III.E):
 * it begins with an address, little-endian, of two bytes at least, which is 0 for none. */
static herr_t blob_specific(void *object, void *blob_id, H5VL_blob_specific_args_t *args)
{
    COW_QUIET_ELEMENT;
    const uint8_t *id = blob_id;

    if (args->op_type == H5VL_BLOB_ISNULL && (id[0] != 0 || id[1] != 0)) {
        *args->args.is_null.isnull = false;
        return 0;
    }
    return H5VLblob_specific(cow_object_native(object), cow_native_id(), blob_id, args);
}

static herr_t blob_optional(void *object, void *blob_id, H5VL_optional_args_t *args)
{
    COW_QUIET_ELEMENT;
    return H5VLblob_optional(cow_object_native(object), cow_native_id(), blob_id, args);
}

static herr_t token_cmp(void *object, const H5O_token_t *token1, const H5O_token_t *token2, int *cmp_value)
{
    COW_QUIET;
    return H5VLtoken_cmp(cow_object_native(object), cow_native_id(), token1, token2, cmp_value);
}

static herr_t token_to_str(void *object, H5I_type_t obj_type, const H5O_token_t *token, char **token_str)
{
    COW_QUIET;
    return H5VLtoken_to_str(cow_object_native(object), obj_type, cow_native_id(), token, token_str);
}

static herr_t token_from_str(void *object, H5I_type_t obj_type, const char *token_str, H5O_token_t *token)
{
    COW_QUIET;
    return H5VLtoken_from_str(cow_object_native(object), obj_type, cow_native_id(), token_str, token);
}

static herr_t optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req)
{
    COW_QUIET;
    return H5VLoptional(cow_object_native(object), cow_native_id(), args, dxpl, req);
}

/* The one place that forgets what would be wrong in the next life of the library: it may be closed and used again, with
 * this plugin in memory all the time. Also called after a probe, when the reason of a failed open is on the stack. */
static herr_t terminate(void)
{
    hid_t stack = cow_errors_take();
    bool closing = cow_exit_closing();

    H5E_BEGIN_TRY /* HDF5 2 has closed the native connector already, when the program left files open */
    {
        cow_native_terminate();
        cow_journal_driver_forget(closing);
    }
    H5E_END_TRY
    free_kept();
    version_missed = false;
    if (closing) {
        cow_home_forget_all();
        cow_file_forget_all();
    }
    cow_error_clear();
    cow_errors_give_back(stack);
    return 0;
}

/* clang-format off */
const H5VL_class_t cow_class = {
    .version = H5VL_VERSION,
    .value = COW_CONNECTOR_VALUE,
    .name = COW_CONNECTOR_NAME,
    .conn_version = COW_CONNECTOR_VERSION,
    /* All that native HDF5 can do. */
    .cap_flags = H5VL_CAP_FLAG_NATIVE_FILES | H5VL_CAP_FLAG_ATTR_BASIC | H5VL_CAP_FLAG_ATTR_MORE |
                 H5VL_CAP_FLAG_DATASET_BASIC | H5VL_CAP_FLAG_DATASET_MORE | H5VL_CAP_FLAG_FILE_BASIC |
                 H5VL_CAP_FLAG_FILE_MORE | H5VL_CAP_FLAG_GROUP_BASIC | H5VL_CAP_FLAG_GROUP_MORE |
                 H5VL_CAP_FLAG_LINK_BASIC | H5VL_CAP_FLAG_LINK_MORE | H5VL_CAP_FLAG_OBJECT_BASIC |
                 H5VL_CAP_FLAG_OBJECT_MORE | H5VL_CAP_FLAG_REF_BASIC | H5VL_CAP_FLAG_REF_MORE |
                 H5VL_CAP_FLAG_OBJ_REF | H5VL_CAP_FLAG_REG_REF | H5VL_CAP_FLAG_ATTR_REF |
                 H5VL_CAP_FLAG_STORED_DATATYPES | H5VL_CAP_FLAG_CREATION_ORDER | H5VL_CAP_FLAG_ITERATE |
                 H5VL_CAP_FLAG_STORAGE_SIZE | H5VL_CAP_FLAG_BY_IDX | H5VL_CAP_FLAG_GET_PLIST |
                 H5VL_CAP_FLAG_FLUSH_REFRESH | H5VL_CAP_FLAG_EXTERNAL_LINKS | H5VL_CAP_FLAG_HARD_LINKS |
                 H5VL_CAP_FLAG_SOFT_LINKS | H5VL_CAP_FLAG_UD_LINKS | H5VL_CAP_FLAG_TRACK_TIMES |
                 H5VL_CAP_FLAG_MOUNT | H5VL_CAP_FLAG_FILTERS | H5VL_CAP_FLAG_FILL_VALUES,
    .terminate = terminate,
    .info_cls = {sizeof(cow_options), info_copy, info_cmp, info_free, info_to_str, info_from_str},
    .wrap_cls = {get_object, get_wrap_ctx, wrap_object, unwrap_object, free_wrap_ctx},
    .attr_cls = {cow_vol_attribute_create, cow_vol_attribute_open, cow_vol_attribute_read,
                 cow_vol_attribute_write, cow_vol_attribute_get, cow_vol_attribute_specific,
                 cow_vol_attribute_optional, cow_vol_attribute_close},
    .dataset_cls = {cow_vol_dataset_create, cow_vol_dataset_open, cow_vol_dataset_read,
                    cow_vol_dataset_write, cow_vol_dataset_get, cow_vol_dataset_specific,
                    cow_vol_dataset_optional, cow_vol_dataset_close},
    .datatype_cls = {cow_vol_datatype_commit, cow_vol_datatype_open, cow_vol_datatype_get,
                     cow_vol_datatype_specific, cow_vol_datatype_optional, cow_vol_datatype_close},
    .file_cls = {cow_vol_file_create, cow_vol_file_open, cow_vol_file_get, cow_vol_file_specific,
                 cow_vol_file_optional, cow_vol_file_close},
    .group_cls = {cow_vol_group_create, cow_vol_group_open, cow_vol_group_get,
                  cow_vol_group_specific, cow_vol_group_optional, cow_vol_group_close},
    .link_cls = {cow_vol_link_create, cow_vol_link_copy, cow_vol_link_move, cow_vol_link_get,
                 cow_vol_link_specific, cow_vol_link_optional},
    .object_cls = {cow_vol_object_open, cow_vol_object_copy, cow_vol_object_get,
                   cow_vol_object_specific, cow_vol_object_optional},
    .introspect_cls = {get_conn_cls, get_cap_flags, opt_query},
    /* No requests: nothing here, nor in native HDF5, is asynchronous. */
    .blob_cls = {blob_put, blob_get, blob_specific, blob_optional},
    .token_cls = {token_cmp, token_to_str, token_from_str},
    .optional = optional,
};
/* clang-format on */
