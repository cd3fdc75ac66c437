/* Calls on the native connector: files, links, objects, attributes. See native.h. The others: attribute.c,
 * chunks.c, metadata_cache.c, reference.c, and storage.c for tables and slots.
 *
 * Every id that is passed down is an explicit one: H5P_DEFAULT means "look it up" only above the VOL.
 */
#include "native/native.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/map.h"
#include "base/vector.h"
#include "h5/new_header.h"
#include "journal/driver.h"
#include "library/library.h"
#include "native/pipeline.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

/* With so many links that were in a heap, a group has them in its header again, where nothing else was asked for. */
#define USUAL_LINKS_LEAST 6

static hid_t native_id = H5I_INVALID_HID;
static const H5VL_class_t *native_class; /* of that one */
/* Made once: tables and pools are opened with each file, and the log is read and written. */
static hid_t uncached_list = H5I_INVALID_HID, few_list = H5I_INVALID_HID,
             usual_list[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
static hid_t group_told = H5I_INVALID_HID, group_clean = H5I_INVALID_HID,
             group_roomy = H5I_INVALID_HID; /* of the group that was asked about last */
static unsigned lives;
static _Thread_local bool plain_tokens;
static _Thread_local bool listing, on_object;

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

hid_t cow_native_id(void)
{
    if (native_id < 0 && (native_id = H5VLregister_connector_by_value(H5_VOL_NATIVE, H5P_DEFAULT)) < 0)
        cow_error_native("the native VOL connector cannot be had from this HDF5 library");
    return native_id;
}

void cow_native_terminate(void)
{
    hbool_t ending = false;

    if (native_id >= 0)
        H5VLclose(native_id);
    /* a library that ends closes them itself, and may have begun to: closing them in the middle of that crashes */
    if (H5is_library_terminating(&ending) < 0 || !ending)
        cow_close(uncached_list, few_list, usual_list[0], usual_list[1], group_told, group_clean, group_roomy);
    native_id = uncached_list = few_list = usual_list[0] = usual_list[1] = group_told = group_clean = group_roomy =
        H5I_INVALID_HID;
    native_class = NULL;
    lives++;
}

unsigned cow_native_lives(void)
{
    return lives;
}

const H5VL_class_t *cow_native_class(void *object)
{
    static const H5VL_class_t none; /* asked once */

    if (native_class == NULL &&
        (H5VLintrospect_get_conn_cls(object, cow_native_id(), H5VL_GET_CONN_LVL_TERM, &native_class) < 0 ||
         native_class->version != H5VL_VERSION || native_class->value != H5_VOL_NATIVE))
        native_class = &none;
    return native_class == &none ? NULL : native_class;
}

/* What a transfer list says, HDF5 keeps in the context of the program's call when it first asks, and then asks no more: a data
 * transform, the callback and the buffers of conversions, the memory manager, what filters shall do. So of the program's transfers
 * and ours only those of one kind happen in that context; the others get one of their own. */
typedef enum asker { NOBODY, OURS, PROGRAMS } asker;
static _Thread_local asker asked; /* the lists of whom, in this context */

bool cow_native_on_object(bool object)
{
    bool before = on_object;

    on_object = object;
    return before;
}

void cow_native_call_ends(void)
{
    asked = NOBODY;
}

/* In HDF5 2 what was a stack in the library is the caller's. The command enters, and codecs' scratch files enter again. */
#define DEEPEST 8
static _Thread_local struct {
    void *context[DEEPEST];
    asker asked[DEEPEST];
    bool on_object[DEEPEST];
    size_t depth;
} entered;

int cow_native_enter(void)
{
    if (entered.depth == DEEPEST)
        return cow_error(COW_USAGE, "the HDF5 library is entered too deeply");
    /* this alone does not initialise the library */
    if (H5open() < 0 || cow_library_enter(&entered.context[entered.depth]) < 0)
        return cow_error_native("cannot enter the HDF5 library");
    entered.asked[entered.depth] = asked;
    asked = NOBODY;
    entered.on_object[entered.depth++] = cow_native_on_object(false);
    return 0;
}

void cow_native_leave(void)
{
    cow_library_leave(entered.context[--entered.depth]);
    asked = entered.asked[entered.depth];
    cow_native_on_object(entered.on_object[entered.depth]);
}

int cow_native_apart(cow_apart *apart)
{
    *apart = (cow_apart){.asked = asked};
    if (H5VLretrieve_lib_state(&apart->state) < 0)
        return cow_error_native("cannot prepare to read apart from what the program reads");
    if (cow_library_enter(&apart->context) < 0) {
        cow_error_native("cannot prepare to read apart from what the program reads");
        H5VLfree_lib_state(apart->state);
        return -1;
    }
    if (H5VLrestore_lib_state(apart->state) < 0) { /* how objects are wrapped, above all */
        cow_error_native("cannot prepare to read apart from what the program reads");
        cow_native_together(apart);
        return -1;
    }
    asked = NOBODY;
    return 0;
}

void cow_native_together(cow_apart *apart)
{
    cow_library_leave(apart->context);
    H5VLfree_lib_state(apart->state);
    asked = apart->asked;
}

void cow_native_plain_tokens(bool on)
{
    plain_tokens = on;
}

bool cow_native_tokens_are_plain(void)
{
    return plain_tokens;
}

bool cow_native_is_listing(void)
{
    return listing;
}

int cow_native_list_begin(void)
{
    if (!on_object || listing || cow_error_pending())
        return -1;
    listing = true;
    return 0;
}

void cow_native_list_end(void)
{
    listing = false;
}

H5VL_loc_params_t cow_by_self(H5I_type_t type)
{
    H5VL_loc_params_t loc = {.obj_type = type, .type = H5VL_OBJECT_BY_SELF};
    return loc;
}

H5VL_loc_params_t cow_by_name(H5I_type_t type, const char *path)
{
    H5VL_loc_params_t loc = {.obj_type = type, .type = H5VL_OBJECT_BY_NAME};
    loc.loc_data.loc_by_name.name = path;
    loc.loc_data.loc_by_name.lapl_id = H5P_LINK_ACCESS_DEFAULT;
    return loc;
}

/* ---- shortcuts ---- */

static cow_map shortcuts; /* a file -> its cow_shortcut */

int cow_native_shortcut(cow_shortcut *shortcut)
{
    return cow_map_put(&shortcuts, (uintptr_t)shortcut->file, (uintptr_t)shortcut);
}

void cow_native_shortcut_end(const cow_shortcut *shortcut)
{
    cow_map_remove(&shortcuts, (uintptr_t)shortcut->file);
    if (shortcuts.count == 0)
        cow_map_free(&shortcuts);
}

/* PATH from *AT, or what is left of it from a group on the way, which *AT is then. */
static const char *shorter(cow_loc *at, const char *path)
{
    const cow_shortcut *s;
    uint64_t found;

    if (at->type != H5I_FILE || path == NULL || !cow_map_get(&shortcuts, (uintptr_t)at->object, &found))
        return path;
    s = (const cow_shortcut *)(uintptr_t)found;
    if (strncmp(path, s->path, s->length) != 0 || path[s->length] != '/' || path[s->length + 1] == '\0')
        return path;
    *at = s->group;
    return path + s->length + 1;
}

static H5VL_loc_params_t follow(cow_loc *at, const char *path)
{
    path = shorter(at, path);
    return cow_by_name(at->type, path);
}

static H5VL_loc_params_t by_index(H5I_type_t type, hsize_t n)
{
    H5VL_loc_params_t loc = {.obj_type = type, .type = H5VL_OBJECT_BY_IDX};
    loc.loc_data.loc_by_idx.name = ".";
    loc.loc_data.loc_by_idx.idx_type = H5_INDEX_NAME;
    loc.loc_data.loc_by_idx.order = H5_ITER_NATIVE;
    loc.loc_data.loc_by_idx.n = n;
    loc.loc_data.loc_by_idx.lapl_id = H5P_LINK_ACCESS_DEFAULT;
    return loc;
}

/* ---- files ---- */

void *cow_native_file_reopen(void *file)
{
    H5VL_file_specific_args_t args = {.op_type = H5VL_FILE_REOPEN};
    H5VL_optional_args_t post = {.op_type = H5VL_NATIVE_FILE_POST_OPEN};
    void *again = NULL;

    args.args.reopen.file = &again;
    if (H5VLfile_specific(file, cow_native_id(), &args, DXPL, NULL) < 0 || again == NULL) {
        cow_error_native("cannot get a second handle on the open file");
        return NULL;
    }
    /* Without this, variable-length and reference data written through the handle have no file to go to. */
    if (H5VLfile_optional(again, cow_native_id(), &post, DXPL, NULL) < 0) {
        cow_error_native("cannot prepare a second handle on the open file");
        H5VLfile_close(again, cow_native_id(), DXPL, NULL);
        return NULL;
    }
    return again;
}

/* While the file is open for writing elsewhere in this process as well, native HDF5 closes a handle only if it finds an
 * id for it. So one is made for the moment of closing, where there is an object to make it with (inside a callback of
 * the connector); where there is none, the handle is the last one. */
static herr_t give_id(hid_t start, const char *name, const H5O_info2_t *info, void *context)
{
    void **file_and_id = context;

    (void)start;
    (void)name;
    (void)info;
    *(hid_t *)file_and_id[1] = H5VLwrap_register(file_and_id[0], H5I_FILE);
    return 1; /* enough */
}

/* An id can be had only while HDF5 is at work on an object. In H5Fopen and H5Fcreate there is none yet: so one is made,
 * a file in memory. */
static hid_t id_without_object(void *file)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), other = H5I_INVALID_HID, id = H5I_INVALID_HID;
    void *file_and_id[] = {file, &id};

    if (fapl >= 0 && H5Pset_vol(fapl, cow_native_id(), NULL) >= 0 && H5Pset_fapl_core(fapl, 4096, false) >= 0 &&
        (other = H5Fcreate("h5cow", H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) >= 0)
        H5Ovisit3(other, H5_INDEX_NAME, H5_ITER_NATIVE, give_id, file_and_id, H5O_INFO_BASIC);
    cow_close(other, fapl);
    return id;
}

/* Native HDF5 cannot close a file that is open for writing by another handle as well, unless this one has an id. */
int cow_native_file_close(void *file)
{
    hid_t id;

    H5E_BEGIN_TRY
    {
        if ((id = H5VLwrap_register(file, H5I_FILE)) < 0)
            id = id_without_object(file);
    }
    H5E_END_TRY
    if (id >= 0)
        return H5Idec_ref(id) < 0 ? cow_error_native("cannot close the file") : 0;
    return H5VLfile_close(file, cow_native_id(), DXPL, NULL) < 0 ? cow_error_native("cannot close the file") : 0;
}

/* Is it one that the application has open through the connector? */
static bool object_of(hid_t id, cow_loc *object)
{
    char connector[sizeof COW_CONNECTOR_NAME + 1] = "";
    hid_t own;

    if (H5VLget_connector_name(id, connector, sizeof connector) < 0 || strcmp(connector, COW_CONNECTOR_NAME) != 0 ||
        (own = H5VLget_connector_id(id)) < 0)
        return false;
    *object = (cow_loc){H5VLget_object(H5VLobject(id), own), H5Iget_type(id)};
    H5VLclose(own);
    return true;
}

typedef struct wanted_id {
    const void *native;
    hid_t id;
} wanted_id;

static herr_t is_id_of(hid_t id, void *context)
{
    wanted_id *wanted = context;
    cow_loc object;

    if (!object_of(id, &object) || object.object != wanted->native)
        return 0;
    wanted->id = id;
    return 1;
}

/* HDF5 flushes a file where one of its handles goes with the only reference to an id, and others stay: so there are two. */
int cow_native_file_close_unflushed(void *file)
{
    wanted_id wanted = {file, H5I_INVALID_HID};
    int status;

    if (H5Iiterate(H5I_FILE, is_id_of, &wanted) < 0)
        H5Eclear2(H5E_DEFAULT);
    if (wanted.id < 0 || H5Iinc_ref(wanted.id) < 0)
        return cow_native_file_close(file);
    status = H5VLfile_close(file, cow_native_id(), DXPL, NULL) < 0 ? cow_error_native("cannot close the file") : 0;
    H5Idec_ref(wanted.id);
    return status;
}

typedef struct open_objects {
    unsigned long fileno;
    cow_open_visitor *visit;
    void *context;
    int status;
} open_objects;

static herr_t visit_open(hid_t id, void *context)
{
    open_objects *o = context;
    H5O_info2_t info;
    cow_loc object;

    if (!object_of(id, &object))
        return 0;
    if (object.object == NULL && object.type == H5I_GROUP) /* it is being closed */
        return 0;
    if (object.object == NULL || cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
        o->status = -1;
    else if (info.fileno == o->fileno)
        o->status = o->visit(o->context, object, &info);
    return o->status != 0;
}

int cow_native_open_objects(unsigned long fileno, H5I_type_t type, cow_open_visitor *visit, void *context)
{
    open_objects o = {fileno, visit, context, 0};

    if (H5Iiterate(type, visit_open, &o) < 0 && o.status == 0)
        o.status = cow_error_native("cannot look at the objects that are open");
    return o.status;
}

void *cow_native_file_of(cow_loc object, hid_t *id)
{
    H5VL_object_get_args_t get = {.op_type = H5VL_OBJECT_GET_FILE};
    H5VL_file_get_args_t count = {.op_type = H5VL_FILE_GET_OBJ_COUNT};
    H5VL_loc_params_t self = cow_by_self(object.type);
    void *file = NULL;
    size_t ids = 0;

    *id = H5I_INVALID_HID;
    get.args.get_file.file = &file;
    count.args.get_obj_count.types = H5F_OBJ_FILE | H5F_OBJ_LOCAL;
    count.args.get_obj_count.count = &ids;
    if (H5VLobject_get(object.object, &self, cow_native_id(), &get, DXPL, NULL) < 0 || file == NULL ||
        H5VLfile_get(file, cow_native_id(), &count, DXPL, NULL) < 0) {
        cow_error_native("cannot find the file of an object");
        return NULL;
    }
    if (ids == 0 && (*id = H5VLwrap_register(file, H5I_FILE)) < 0) {
        cow_error_native("cannot use the file of an object");
        return NULL;
    }
    return file;
}

typedef struct flushing {
    unsigned long fileno;
    int status;
    bool refused;
    cow_error_held *refusal;
} flushing;

/* WHAT could not be flushed. A chunk that the filters of its dataset refuse does not stop HDF5 from flushing all else: the
 * first such error is held. */
static int pass_over(flushing *f, const char *what)
{
    cow_error_native("cannot flush %s", what);
    if (!cow_error_of_filters())
        return -1;
    if (!f->refused)
        f->refusal = cow_error_hold();
    else
        cow_error_clear();
    f->refused = true;
    return 0;
}

static herr_t flush_dataset(hid_t id, void *context)
{
    flushing *f = context;
    H5VL_dataset_specific_args_t args = {.op_type = H5VL_DATASET_FLUSH};
    H5O_info2_t info;
    cow_loc dataset;

    if (!object_of(id, &dataset))
        return 0;
    if (dataset.object == NULL || cow_native_info(dataset, NULL, H5O_INFO_BASIC, &info) < 0) {
        f->status = -1;
        return 1;
    }
    if (info.fileno != f->fileno)
        return 0;
    args.args.flush.dset_id = id;
    if (H5VLdataset_specific(dataset.object, cow_native_id(), &args, DXPL, NULL) < 0)
        f->status = pass_over(f, "a dataset");
    return f->status < 0;
}

int cow_native_file_flush(void *file)
{
    H5O_info2_t info;
    flushing f = {0};
    H5VL_file_specific_args_t args = {.op_type = H5VL_FILE_FLUSH};

    if (cow_native_info((cow_loc){file, H5I_FILE}, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    f.fileno = info.fileno;
    if (H5Iiterate(H5I_DATASET, flush_dataset, &f) < 0 && f.status == 0)
        f.status = cow_error_native("cannot flush the datasets of the file");
    args.args.flush.obj_type = H5I_FILE;
    args.args.flush.scope = H5F_SCOPE_GLOBAL;
    /* Writing its metadata, HDF5 may take a block of space and use only some of it. The second time there is nothing to
     * write, and the rest is given back; else it would be lost, since what closing gives back is not committed. */
    for (int i = 0; f.status == 0 && i < 2; i++)
        if (H5VLfile_specific(file, cow_native_id(), &args, DXPL, NULL) < 0)
            f.status = pass_over(&f, "the file");
    if (f.status < 0 && f.refusal != NULL) { /* the other error is the one to tell */
        cow_error_box other;
        cow_error_take(&other);
        cow_error_put_back(f.refusal);
        cow_error_clear();
        cow_error_give(&other);
    } else if (f.refused)
        cow_error_put_back(f.refusal);
    return f.refused ? -1 : f.status;
}

int cow_native_file_size(void *file, uint64_t *bytes)
{
    H5VL_native_file_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_SIZE, .args = &native};
    hsize_t size = 0;

    native.get_size.size = &size;
    if (H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the size of a file");
    *bytes = size;
    return 0;
}

static int free_sections(void *file, H5F_sect_info_t *list, size_t room, size_t *count)
{
    H5VL_native_file_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_FREE_SECTIONS, .args = &native};

    native.get_free_sections.type = H5FD_MEM_DEFAULT;
    native.get_free_sections.sect_info = list;
    native.get_free_sections.nsects = room;
    native.get_free_sections.sect_count = count;
    return H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL) < 0
               ? cow_error_native("cannot get the free space of a file")
               : 0;
}

int cow_native_file_free_space(void *file, H5F_sect_info_t **list, size_t *count)
{
    size_t room;

    *list = NULL;
    if (free_sections(file, NULL, 0, &room) < 0)
        return -1;
    if ((*list = calloc(room + 1, sizeof **list)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a list of free places");
    *count = 0;
    if (room > 0 && free_sections(file, *list, room, count) < 0) {
        free(*list);
        *list = NULL;
        return -1;
    }
    if (*count > room)
        *count = room;
    return 0;
}

hid_t cow_native_file_fcpl(void *file)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FCPL};

    return H5VLfile_get(file, cow_native_id(), &get, DXPL, NULL) < 0
               ? cow_error_native("cannot get the creation properties of the file")
               : get.args.get_fcpl.fcpl_id;
}

int cow_native_file_space(void *file, cow_space_kept *kept)
{
    hid_t fcpl = cow_native_file_fcpl(file);
    H5F_fspace_strategy_t strategy;
    hbool_t persist = false;
    hsize_t threshold;
    int status;

    if (fcpl < 0)
        return -1;
    status = H5Pget_file_space_strategy(fcpl, &strategy, &persist, &threshold);
    H5Pclose(fcpl);
    if (status < 0)
        return cow_error_native("cannot get how a file keeps its free space");
    *kept = persist                                                                        ? COW_SPACE_PERSISTS
            : strategy == H5F_FSPACE_STRATEGY_PAGE                                         ? COW_SPACE_PAGED
            : strategy == H5F_FSPACE_STRATEGY_AGGR || strategy == H5F_FSPACE_STRATEGY_NONE ? COW_SPACE_NEVER
                                                                                           : COW_SPACE_FORGOTTEN;
    return 0;
}

cow_journal *cow_native_file_journal(void *file)
{
    unsigned long number = 0;
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FILENO};

    get.args.get_fileno.fileno = &number;
    return H5VLfile_get(file, cow_native_id(), &get, DXPL, NULL) < 0 ? NULL : cow_journal_driver_of_file(number);
}

int cow_native_share_dataspaces(hid_t fcpl, unsigned index)
{
    unsigned indexes, kinds, least;

    if (H5Pget_shared_mesg_nindexes(fcpl, &indexes) < 0 ||
        (index < indexes && (H5Pget_shared_mesg_index(fcpl, index, &kinds, &least) < 0 ||
                             H5Pset_shared_mesg_index(fcpl, index, kinds | H5O_SHMESG_SDSPACE_FLAG, least) < 0)))
        return cow_error_native("cannot tell the creation properties of the file");
    return 0;
}

void cow_native_file_name(void *file, char name[], size_t size)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_NAME};
    size_t length;

    snprintf(name, size, "the file");
    get.args.get_name = (H5VL_file_get_name_args_t){H5I_FILE, size, name, &length};
    if (H5VLfile_get(file, cow_native_id(), &get, DXPL, NULL) < 0)
        H5Eclear2(H5E_DEFAULT);
}

int cow_native_group_unfiltered(void *file, hid_t gcpl)
{
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FCPL};
    unsigned indexes = 0, types, least;
    int filters = H5Pget_nfilters(gcpl), status = 0;
    bool shared = false;

    if (filters <= 0)
        return filters < 0 ? cow_error_native("cannot get the filters of a group") : 0;
    get.args.get_fcpl.fcpl_id = H5I_INVALID_HID;
    if (H5VLfile_get(file, cow_native_id(), &get, DXPL, NULL) < 0 ||
        H5Pget_shared_mesg_nindexes(get.args.get_fcpl.fcpl_id, &indexes) < 0)
        status = -1;
    for (unsigned i = 0; status == 0 && i < indexes; i++) {
        status = H5Pget_shared_mesg_index(get.args.get_fcpl.fcpl_id, i, &types, &least) < 0 ? -1 : 0;
        shared |= status == 0 && (types & H5O_SHMESG_PLINE_FLAG) != 0;
    }
    cow_close(get.args.get_fcpl.fcpl_id);
    if (status == 0 && shared && H5Premove_filter(gcpl, H5Z_FILTER_ALL) < 0)
        status = -1;
    return status < 0 ? cow_error_native("cannot get which messages of a file are shared") : 0;
}

int cow_native_file_small_headers(void *file, bool small, bool *before)
{
    H5VL_native_file_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_GET_MIN_DSET_OHDR_FLAG, .args = &native};
    hbool_t now = false;

    native.get_min_dset_ohdr_flag.minimize = &now;
    if (before != NULL && H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get how headers are made");
    if (before != NULL)
        *before = now;
    args.op_type = H5VL_NATIVE_FILE_SET_MIN_DSET_OHDR_FLAG;
    native.set_min_dset_ohdr_flag.minimize = small;
    return H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL) < 0
               ? cow_error_native("cannot set how headers are made")
               : 0;
}

int cow_native_low_bound(cow_loc at, H5F_libver_t low, H5F_libver_t *before)
{
    H5VL_native_file_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_FILE_SET_LIBVER_BOUNDS, .args = &native};
    H5VL_file_get_args_t get = {.op_type = H5VL_FILE_GET_FAPL};
    H5F_libver_t now;
    hid_t id, fapl = H5I_INVALID_HID;
    void *file = cow_native_file_of(at, &id);
    int status = -1;

    if (file == NULL)
        return -1;
    if (H5VLfile_get(file, cow_native_id(), &get, DXPL, NULL) >= 0)
        fapl = get.args.get_fapl.fapl_id;
    if (fapl >= 0 && H5Pget_libver_bounds(fapl, &now, &native.set_libver_bounds.high) >= 0) {
        native.set_libver_bounds.low = low;
        status = before != NULL && now >= low ? 0 : H5VLfile_optional(file, cow_native_id(), &args, DXPL, NULL);
        if (before != NULL)
            *before = now;
    }
    cow_close(fapl, id);
    return status < 0 ? cow_error_native("cannot change the versions that a file is written for") : 0;
}

bool cow_native_old_headers(cow_loc at, H5F_libver_t *before)
{
    return cow_native_low_bound(at, H5F_LIBVER_EARLIEST, before) == 0 && *before >= H5F_LIBVER_V18 &&
           cow_native_low_bound(at, H5F_LIBVER_EARLIEST, NULL) == 0;
}

int cow_native_header_version(cow_loc object, unsigned *version)
{
    H5VL_native_object_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_OBJECT_GET_NATIVE_INFO, .args = &native};
    H5VL_loc_params_t loc = cow_by_self(object.type);
    H5O_native_info_t info;

    native.get_native_info.fields = H5O_NATIVE_INFO_HDR;
    native.get_native_info.ninfo = &info;
    if (H5VLobject_optional(object.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get information about the header of an object");
    *version = info.hdr.version;
    return 0;
}

/* ---- links ---- */

/* -1: there is nothing on the way to it, or it cannot be told. */
static int look_for(cow_loc at, const char *path)
{
    H5VL_link_specific_args_t args = {.op_type = H5VL_LINK_EXISTS};
    H5VL_loc_params_t loc = follow(&at, path);
    hbool_t exists = false;

    args.args.exists.exists = &exists;
    return H5VLlink_specific(at.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0 ? -1 : exists;
}

static int link_exists(cow_loc at, const char *path)
{
    int exists = look_for(at, path);

    return exists < 0 ? cow_error_native("cannot look for '%s'", path) : exists;
}

/* Call WORK for "a", "a/b", "a/b/c" of the path "a/b/c" (a leading '/' is kept), until it answers something else
 * than 1; the answer for the whole path is the last one. */
static int each_prefix(cow_loc at, const char *path, int (*work)(cow_loc at, const char *prefix))
{
    char *prefix = strdup(path);
    int answer = 1;

    if (prefix == NULL)
        return cow_error(COW_MEMORY, "no memory for the path '%s'", path);
    for (char *p = prefix; answer == 1 && *p != '\0';) {
        while (*p == '/')
            p++;
        p += strcspn(p, "/");
        char kept = *p;
        *p = '\0';
        if (strspn(prefix, "/") < strlen(prefix))
            answer = work(at, prefix);
        *p = kept;
    }
    free(prefix);
    return answer;
}

int cow_native_exists(cow_loc at, const char *path)
{
    int exists = look_for(at, path); /* what leads there is nearly always there */

    return exists >= 0 ? exists : each_prefix(at, path, link_exists);
}

/* Character set of the name and creation of missing groups are those of the call that the application made, whatever
 * properties are given here: HDF5 takes them from its API context, and a connector cannot set that. */
static int create_link(H5VL_link_create_args_t *args, cow_loc at, const char *name)
{
    H5VL_loc_params_t loc = follow(&at, name);

    if (H5VLlink_create(args, at.object, &loc, cow_native_id(), H5P_LINK_CREATE_DEFAULT, H5P_LINK_ACCESS_DEFAULT, DXPL,
                        NULL) < 0)
        return cow_error_native("cannot make the link '%s'", name);
    return 0;
}

int cow_native_change_references(cow_loc object, int delta)
{
    H5VL_object_specific_args_t args = {.op_type = H5VL_OBJECT_CHANGE_REF_COUNT};
    H5VL_loc_params_t self = cow_by_self(object.type);

    args.args.change_rc.delta = delta;
    if (H5VLobject_specific(object.object, &self, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot change the reference count of an object");
    return 0;
}

int cow_native_link_object(cow_loc object, cow_loc to, const char *name)
{
    H5VL_link_create_args_t args = {.op_type = H5VL_LINK_CREATE_HARD};

    args.args.hard.curr_obj = object.object;
    args.args.hard.curr_loc_params = cow_by_self(object.type);
    return create_link(&args, to, name);
}

int cow_native_link_hard(cow_loc from, const char *path, cow_loc to, const char *name)
{
    H5VL_link_create_args_t args = {.op_type = H5VL_LINK_CREATE_HARD};

    args.args.hard.curr_loc_params = follow(&from, path);
    args.args.hard.curr_obj = from.object;
    return create_link(&args, to, name);
}

static hid_t stand_in_traverse(const char *name, hid_t group, const void *value, size_t size, hid_t lapl, hid_t dxpl)
{
    (void)name, (void)group, (void)value, (void)size, (void)lapl, (void)dxpl;
    return H5I_INVALID_HID;
}

static ssize_t stand_in_query(const char *name, const void *value, size_t size, void *buffer, size_t room)
{
    (void)name;
    if (buffer != NULL)
        memcpy(buffer, value, size < room ? size : room);
    return (ssize_t)size;
}

int cow_native_link_class_stand_in(H5L_type_t type)
{
    const H5L_class_t class = {.version = H5L_LINK_CLASS_T_VERS,
                               .id = type,
                               .comment = "h5cow: copied only",
                               .trav_func = stand_in_traverse,
                               .query_func = stand_in_query};

    if (type < H5L_TYPE_UD_MIN || type > H5L_TYPE_MAX || H5Lis_registered(type) > 0)
        return 0;
    return H5Lregister(&class) < 0 ? cow_error_native("cannot copy user-defined links of class %d", (int)type) : 1;
}

int cow_native_link_classes_stand_in(bool made[H5L_TYPE_MAX + 1])
{
    memset(made, 0, (H5L_TYPE_MAX + 1) * sizeof *made);
    for (int type = H5L_TYPE_UD_MIN; type <= H5L_TYPE_MAX; type++) {
        int status = cow_native_link_class_stand_in((H5L_type_t)type);

        if (status < 0) {
            cow_native_link_classes_withdraw(made);
            return -1;
        }
        made[type] = status > 0;
    }
    return 0;
}

void cow_native_link_classes_withdraw(const bool made[H5L_TYPE_MAX + 1])
{
    for (int type = H5L_TYPE_UD_MIN; type <= H5L_TYPE_MAX; type++)
        if (made[type])
            H5Lunregister((H5L_type_t)type);
}

int cow_native_link_copy(cow_loc from, const char *path, cow_loc to, const char *name)
{
    H5VL_loc_params_t source = cow_by_name(from.type, path), target = cow_by_name(to.type, name);
    H5L_info2_t info;
    int made, status = 0;

    if (cow_native_link_info(from, path, &info) < 0 || (made = cow_native_link_class_stand_in(info.type)) < 0)
        return -1;
    if (H5VLlink_copy(from.object, &source, to.object, &target, cow_native_id(), H5P_LINK_CREATE_DEFAULT,
                      H5P_LINK_ACCESS_DEFAULT, DXPL, NULL) < 0)
        status = cow_error_native("cannot copy the link '%s' to '%s'", path, name);
    if (made)
        H5Lunregister(info.type);
    return status;
}

int cow_native_link_share(cow_loc from, cow_loc to, const char *name)
{
    H5VL_loc_params_t loc = cow_by_name(from.type, name), target = cow_by_name(to.type, name);

    return H5VLlink_copy(from.object, &loc, to.object, &target, cow_native_id(), H5P_LINK_CREATE_DEFAULT,
                         H5P_LINK_ACCESS_DEFAULT, DXPL, NULL) < 0
               ? cow_error_native("cannot link '%s' again", name)
               : 0;
}

int cow_native_link_soft(cow_loc at, const char *name, const char *target)
{
    H5VL_link_create_args_t args = {.op_type = H5VL_LINK_CREATE_SOFT};

    args.args.soft.target = target;
    return create_link(&args, at, name);
}

bool cow_native_leads(cow_loc at, const char *path)
{
    H5VL_object_specific_args_t args = {.op_type = H5VL_OBJECT_EXISTS};
    H5VL_loc_params_t loc = follow(&at, path);
    hbool_t exists = false;
    herr_t status;

    args.args.exists.exists = &exists;
    H5E_BEGIN_TRY
    {
        status = H5VLobject_specific(at.object, &loc, cow_native_id(), &args, DXPL, NULL);
    }
    H5E_END_TRY
    return status >= 0 && exists;
}

int cow_native_link_move(cow_loc from, const char *path, cow_loc to, const char *name)
{
    H5VL_loc_params_t source = follow(&from, path), target = follow(&to, name);

    if (H5VLlink_move(from.object, &source, to.object, &target, cow_native_id(), H5P_LINK_CREATE_DEFAULT,
                      H5P_LINK_ACCESS_DEFAULT, DXPL, NULL) < 0)
        return cow_error_native("cannot move the link '%s' to '%s'", path, name);
    return 0;
}

int cow_native_link_delete(cow_loc at, const char *path)
{
    H5VL_link_specific_args_t args = {.op_type = H5VL_LINK_DELETE};
    H5VL_loc_params_t loc = follow(&at, path);

    if (H5VLlink_specific(at.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot delete the link '%s'", path);
    return 0;
}

int cow_native_link_info(cow_loc at, const char *path, H5L_info2_t *info)
{
    H5VL_link_get_args_t args = {.op_type = H5VL_LINK_GET_INFO};
    H5VL_loc_params_t loc = follow(&at, path);

    args.args.get_info.linfo = info;
    if (H5VLlink_get(at.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot look at the link '%s'", path);
    return 0;
}

void *cow_native_link_value(cow_loc group, const char *name, size_t *size)
{
    H5VL_link_get_args_t args = {.op_type = H5VL_LINK_GET_VAL};
    H5VL_loc_params_t loc = cow_by_name(group.type, name);
    H5L_info2_t info;
    void *value;

    if (cow_native_link_info(group, name, &info) < 0)
        return NULL;
    *size = info.u.val_size;
    if ((value = calloc(1, *size + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the value of the link '%s'", name);
        return NULL;
    }
    args.args.get_val.buf = value;
    args.args.get_val.buf_size = *size;
    if (H5VLlink_get(group.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("cannot read the value of the link '%s'", name);
        free(value);
        return NULL;
    }
    return value;
}

typedef struct named_link {
    char *name;
    H5L_info2_t info;
} named_link;

/* HDF5 stores whatever bytes H5Lcreate_ud is given as an external link, and then can neither tell nor follow nor list
 * that link again, only delete it. Such a link has no value that a version could keep. */
static int link_info_quietly(cow_loc group, const H5VL_loc_params_t *loc, H5L_info2_t *info)
{
    H5VL_link_get_args_t args = {.op_type = H5VL_LINK_GET_INFO};
    herr_t status;

    args.args.get_info.linfo = info;
    H5E_BEGIN_TRY
    {
        status = H5VLlink_get(group.object, loc, cow_native_id(), &args, DXPL, NULL);
    }
    H5E_END_TRY
    return status < 0 ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named_link *)a)->name, ((const named_link *)b)->name);
}

/* What HDF5 cannot tell comes last. */
static int by_creation(const void *a, const void *b)
{
    const named_link *x = a, *y = b;
    const bool known[2] = {x->info.type != H5L_TYPE_ERROR, y->info.type != H5L_TYPE_ERROR};

    if (known[0] != known[1])
        return known[0] ? -1 : 1;
    if (!known[0] || x->info.corder == y->info.corder)
        return by_name(a, b);
    return x->info.corder < y->info.corder ? -1 : 1;
}

typedef struct link_list {
    named_link *link;
    size_t count, room;
} link_list;

static void forget_links(link_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->link[i].name);
    list->count = 0;
}

static int add_link(link_list *list, char *name, const H5L_info2_t *info)
{
    if (name == NULL || COW_RESERVE(list->link, list->room, list->count, 1) < 0) {
        free(name);
        return cow_error(COW_MEMORY, "no memory for the links of a group");
    }
    list->link[list->count++] = (named_link){name, *info};
    return 0;
}

static herr_t add_met(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    (void)group;
    return add_link(context, strdup(name), info);
}

/* By one walk, which looks for no link: 0. Else nothing is listed: HDF5 does not walk where it can tell one of the links not at
 * all. In no other order than its own: for others HDF5 1.14.5 makes a table first, and frees what it has not put there if it cannot read one of
 * the links. */
static int walk_links(cow_loc group, link_list *list)
{
    H5VL_link_specific_args_t args = {.op_type = H5VL_LINK_ITER};
    H5VL_loc_params_t self = cow_by_self(group.type);
    herr_t status;

    if (cow_native_list_begin() < 0)
        return -1;
    args.args.iterate.idx_type = H5_INDEX_NAME;
    args.args.iterate.order = H5_ITER_NATIVE;
    args.args.iterate.op = add_met;
    args.args.iterate.op_data = list;
    H5E_BEGIN_TRY
    {
        status = H5VLlink_specific(group.object, &self, cow_native_id(), &args, DXPL, NULL);
    }
    H5E_END_TRY
    cow_native_list_end();
    if (status == 0)
        return 0;
    cow_error_clear();
    forget_links(list);
    return -1;
}

/* The name of link N, in the order of the list; free() it. */
static char *link_name(cow_loc group, const H5VL_loc_params_t *loc, hsize_t n)
{
    H5VL_link_get_args_t args = {.op_type = H5VL_LINK_GET_NAME};
    size_t length = 0;
    char local[256], *name;

    args.args.get_name.name = local;
    args.args.get_name.name_size = sizeof local;
    args.args.get_name.name_len = &length;
    if (H5VLlink_get(group.object, loc, cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("cannot read the name of link %llu of a group", (unsigned long long)n);
        return NULL;
    }
    if ((name = malloc(length + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the name of a link");
        return NULL;
    }
    if (length < sizeof local)
        return memcpy(name, local, length + 1);
    args.args.get_name.name = name;
    args.args.get_name.name_size = length + 1;
    if (H5VLlink_get(group.object, loc, cow_native_id(), &args, DXPL, NULL) < 0) {
        free(name);
        cow_error_native("cannot read the name of link %llu of a group", (unsigned long long)n);
        return NULL;
    }
    return name;
}

/* One by one. */
static int ask_for_links(cow_loc group, hsize_t count, link_list *list)
{
    for (hsize_t n = 0; n < count; n++) {
        H5VL_loc_params_t loc = by_index(group.type, n);
        char *name = link_name(group, &loc, n);
        H5L_info2_t info;

        if (name == NULL)
            return -1;
        if (link_info_quietly(group, &loc, &info) < 0)
            info = (H5L_info2_t){.type = H5L_TYPE_ERROR};
        if (add_link(list, name, &info) < 0)
            return -1;
    }
    return 0;
}

/* Names first, visits afterwards: a visitor may change the group. */
int cow_native_links(cow_loc group, cow_link_order order, cow_link_visitor *visitor, void *context)
{
    H5VL_group_get_args_t get = {.op_type = H5VL_GROUP_GET_INFO};
    H5G_info_t info;
    link_list list = {0};
    int status = 0;

    get.args.get_info.loc_params = cow_by_self(group.type);
    get.args.get_info.ginfo = &info;
    if (H5VLgroup_get(group.object, cow_native_id(), &get, DXPL, NULL) < 0)
        return cow_error_native("cannot look at a group");
    if (info.nlinks < COW_LIST_FROM || walk_links(group, &list) < 0)
        status = ask_for_links(group, info.nlinks, &list);
    if (status == 0 && order != COW_LINKS_ANY && list.count > 1)
        qsort(list.link, list.count, sizeof *list.link, order == COW_LINKS_BY_NAME ? by_name : by_creation);
    for (size_t i = 0; status == 0 && i < list.count; i++)
        status = visitor(context, list.link[i].name, &list.link[i].info);
    forget_links(&list);
    free(list.link);
    return status;
}

typedef struct placed_link {
    const char *name;
    hsize_t place;
} placed_link;

static int by_placed_name(const void *a, const void *b)
{
    return strcmp(((const placed_link *)a)->name, ((const placed_link *)b)->name);
}

int cow_native_links_places(cow_loc group, const char *skip, hsize_t **places, hsize_t *count)
{
    link_list list = {0};
    placed_link *link = NULL;
    size_t n = 0;
    int status = -1;

    *places = NULL;
    if (walk_links(group, &list) < 0)
        return cow_error_native("cannot list a group");
    if ((link = malloc((list.count + 1) * sizeof *link)) == NULL ||
        (*places = malloc((list.count + 1) * sizeof **places)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the order of %zu links", list.count);
        goto done;
    }
    for (size_t i = 0; i < list.count; i++)
        if (skip == NULL || strcmp(list.link[i].name, skip) != 0)
            link[n++] = (placed_link){list.link[i].name, i};
    qsort(link, n, sizeof *link, by_placed_name);
    for (size_t i = 0; i < n; i++)
        (*places)[i] = link[i].place;
    *count = n;
    status = 0;
done:
    forget_links(&list);
    free(list.link);
    free(link);
    return status;
}

/* ---- groups ---- */

void *cow_native_group_open(cow_loc at, const char *path)
{
    const char *rest = shorter(&at, path);
    H5VL_loc_params_t loc = cow_by_self(at.type);
    void *group = H5VLgroup_open(at.object, &loc, cow_native_id(), rest, H5P_GROUP_ACCESS_DEFAULT, DXPL, NULL);

    if (group == NULL)
        cow_error_native("cannot open the group '%s'", path);
    return group;
}

int cow_native_group_close(void *group)
{
    return H5VLgroup_close(group, cow_native_id(), DXPL, NULL) < 0 ? cow_error_native("cannot close a group") : 0;
}

static void *group_create_one(cow_loc at, const char *path, hid_t gcpl)
{
    const char *rest = shorter(&at, path);
    H5VL_loc_params_t loc = cow_by_self(at.type);
    void *group =
        H5VLgroup_create(at.object, &loc, cow_native_id(), rest, H5P_LINK_CREATE_DEFAULT,
                         gcpl == H5P_DEFAULT ? H5P_GROUP_CREATE_DEFAULT : gcpl, H5P_GROUP_ACCESS_DEFAULT, DXPL, NULL);

    if (group == NULL)
        cow_error_native("cannot create the group '%s'", path);
    return group;
}

static int make_missing(cow_loc at, const char *prefix)
{
    int exists = link_exists(at, prefix);
    void *group;

    if (exists != 0)
        return exists;
    if ((group = group_create_one(at, prefix, H5P_DEFAULT)) == NULL)
        return -1;
    return cow_native_group_close(group) < 0 ? -1 : 1;
}

void *cow_native_group_create(cow_loc at, const char *path, hid_t gcpl)
{
    const char *last = strrchr(path, '/');

    if (last != NULL && last != path) {
        char *parents = strndup(path, (size_t)(last - path));
        int made = parents == NULL ? cow_error(COW_MEMORY, "no memory for the path '%s'", path)
                                   : each_prefix(at, parents, make_missing);
        free(parents);
        if (made < 0)
            return NULL;
    }
    return group_create_one(at, path, gcpl);
}

void *cow_native_group_anonymous(cow_loc file, hid_t gcpl)
{
    H5VL_loc_params_t loc = cow_by_self(file.type);
    void *group = H5VLgroup_create(file.object, &loc, cow_native_id(), NULL, H5P_LINK_CREATE_DEFAULT, gcpl,
                                   H5P_GROUP_ACCESS_DEFAULT, DXPL, NULL);

    if (group == NULL)
        cow_error_native("cannot create a group");
    return group;
}

static int group_info(void *group, H5G_info_t *info)
{
    H5VL_group_get_args_t args = {.op_type = H5VL_GROUP_GET_INFO};

    args.args.get_info.loc_params = cow_by_self(H5I_GROUP);
    args.args.get_info.ginfo = info;
    if (H5VLgroup_get(group, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get information about a group");
    return 0;
}

int cow_native_group_tracks(cow_loc group, bool *order)
{
    hid_t gcpl = cow_native_group_gcpl(group.object);
    unsigned flags = 0;
    int status = gcpl < 0 ? -1 : 0;

    if (status == 0 && H5Pget_link_creation_order(gcpl, &flags) < 0)
        status = cow_error_native("cannot get the creation properties of a group");
    if (gcpl >= 0)
        H5Pclose(gcpl);
    *order = (flags & H5P_CRT_ORDER_TRACKED) != 0;
    return status;
}

int cow_native_group_size(void *group, hsize_t *links)
{
    H5G_info_t info;

    if (group_info(group, &info) < 0)
        return -1;
    *links = info.nlinks;
    return 0;
}

int cow_native_group_counter(void *group, int64_t *counter)
{
    H5G_info_t info;

    if (group_info(group, &info) < 0)
        return -1;
    *counter = info.max_corder;
    return 0;
}

int cow_native_filters_add(hid_t to, hid_t from)
{
    int n = H5Pget_nfilters(from);

    if (n < 0)
        return cow_error_native("cannot describe filters");
    for (int i = 0; i < n; i++) {
        unsigned flags, config, local[64], *values = local;
        size_t count = 64;
        H5Z_filter_t id = H5Pget_filter2(from, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        int bad;

        if (id >= 0 && count > 64) {
            if ((values = malloc(count * sizeof *values)) == NULL)
                return cow_error(COW_MEMORY, "no memory for the parameters of a filter");
            id = H5Pget_filter2(from, (unsigned)i, &flags, &count, values, 0, NULL, &config);
        }
        bad = id < 0 || H5Pset_filter(to, id, flags, count, values) < 0;
        if (values != local)
            free(values);
        if (bad)
            return cow_error_native("cannot describe a filter");
    }
    return 0;
}

/* What HDF5 gives as a group's creation properties holds, hidden, the addresses of the group's own link storage: a group
 * created with that list would share it. So the settings are carried over one by one. */
int cow_native_group_settings(hid_t from, hid_t to)
{
    unsigned order, attribute_order, max_compact, min_dense, entries, name_length;
    size_t heap;
    hbool_t times;

    if (H5Pget_link_creation_order(from, &order) < 0 || H5Pset_link_creation_order(to, order) < 0 ||
        H5Pget_attr_creation_order(from, &attribute_order) < 0 || H5Pset_attr_creation_order(to, attribute_order) < 0 ||
        H5Pget_link_phase_change(from, &max_compact, &min_dense) < 0 ||
        H5Pset_link_phase_change(to, max_compact, min_dense) < 0 ||
        H5Pget_attr_phase_change(from, &max_compact, &min_dense) < 0 ||
        H5Pset_attr_phase_change(to, max_compact, min_dense) < 0 ||
        H5Pget_est_link_info(from, &entries, &name_length) < 0 || H5Pset_est_link_info(to, entries, name_length) < 0 ||
        H5Pget_local_heap_size_hint(from, &heap) < 0 || H5Pset_local_heap_size_hint(to, heap) < 0 ||
        H5Pget_obj_track_times(from, &times) < 0 || H5Pset_obj_track_times(to, times) < 0)
        return -1;
    return cow_native_filters_add(to, from);
}

int cow_native_gcpl_tell(hid_t gcpl)
{
    unsigned most, least;

    if (H5Pget_link_phase_change(gcpl, &most, &least) < 0 ||
        (most == COW_HEADER_LINKS && least == COW_HEADER_LINKS_LEAST &&
         H5Pset_link_phase_change(gcpl, COW_HEADER_LINKS_USUAL, USUAL_LINKS_LEAST) < 0))
        return cow_error_native("cannot tell the creation properties of a group");
    return 0;
}

static hid_t told_gcpl(void *group)
{
    H5VL_group_get_args_t args = {.op_type = H5VL_GROUP_GET_GCPL};

    if (H5VLgroup_get(group, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the creation properties of a group");
    if (cow_native_gcpl_tell(args.args.get_gcpl.gcpl_id) == 0)
        return args.args.get_gcpl.gcpl_id;
    H5Pclose(args.args.get_gcpl.gcpl_id);
    return H5I_INVALID_HID;
}

static hid_t clean_gcpl(hid_t told)
{
    hid_t clean = H5Pcreate(H5P_GROUP_CREATE);

    if (clean >= 0 && cow_native_group_settings(told, clean) == 0)
        return clean;
    cow_error_native("cannot copy the creation properties of a group");
    if (clean >= 0)
        H5Pclose(clean);
    return H5I_INVALID_HID;
}

hid_t cow_native_group_gcpl(void *group)
{
    hid_t told = told_gcpl(group), clean = told < 0 ? H5I_INVALID_HID : clean_gcpl(told);

    if (told >= 0)
        H5Pclose(told);
    return clean;
}

hid_t cow_native_gcpl_of(void *group)
{
    hid_t told = told_gcpl(group);

    if (told < 0)
        return H5I_INVALID_HID;
    if (group_clean >= 0 && group_told >= 0 && H5Pequal(group_told, told) > 0) {
        H5Pclose(told);
        return group_clean;
    }
    cow_close(group_clean, group_told, group_roomy);
    group_roomy = H5I_INVALID_HID;
    group_told = told;
    group_clean = clean_gcpl(told);
    if (group_clean >= 0 && H5Pget_nfilters(group_clean) != 0) {
        H5Pclose(told);
        group_told = H5I_INVALID_HID; /* it may lose them, for one file: cow_native_group_unfiltered */
    }
    return group_clean;
}

hid_t cow_native_gcpl_for(hid_t gcpl, uint64_t links)
{
    unsigned most, least;

    if (links <= COW_HEADER_LINKS_USUAL || links > COW_HEADER_LINKS)
        return gcpl;
    if (H5Pget_link_phase_change(gcpl, &most, &least) < 0)
        return cow_error_native("cannot get the creation properties of a group");
    if (most != COW_HEADER_LINKS_USUAL || least != USUAL_LINKS_LEAST)
        return gcpl;
    if (group_roomy >= 0)
        return group_roomy;
    if ((group_roomy = H5Pcopy(gcpl)) < 0 ||
        H5Pset_link_phase_change(group_roomy, COW_HEADER_LINKS, COW_HEADER_LINKS_LEAST) < 0)
        return cow_error_native("cannot copy the creation properties of a group");
    return group_roomy;
}

/* ---- objects ---- */

static int open_at(cow_loc at, const H5VL_loc_params_t *loc, cow_loc *object, const char *what)
{
    object->object = H5VLobject_open(at.object, loc, cow_native_id(), &object->type, DXPL, NULL);
    return object->object == NULL ? cow_error_native("cannot open the object %s", what) : 0;
}

int cow_native_open(cow_loc at, const char *path, cow_loc *object)
{
    H5VL_loc_params_t loc = follow(&at, path);
    return open_at(at, &loc, object, path);
}

int cow_native_open_token(cow_loc file, const H5O_token_t *token, cow_loc *object)
{
    H5VL_loc_params_t loc = {.obj_type = file.type, .type = H5VL_OBJECT_BY_TOKEN};
    H5O_token_t copy = *token;

    loc.loc_data.loc_by_token.token = &copy;
    return open_at(file, &loc, object, "at an address");
}

int cow_native_close(cow_loc object)
{
    herr_t status = -1;

    if (object.type == H5I_GROUP)
        status = H5VLgroup_close(object.object, cow_native_id(), DXPL, NULL);
    else if (object.type == H5I_DATASET)
        status = H5VLdataset_close(object.object, cow_native_id(), DXPL, NULL);
    else if (object.type == H5I_DATATYPE)
        status = H5VLdatatype_close(object.object, cow_native_id(), DXPL, NULL);
    return status < 0 ? cow_error_native("cannot close an object") : 0;
}

int cow_native_info(cow_loc at, const char *path, unsigned fields, H5O_info2_t *info)
{
    H5VL_object_get_args_t args = {.op_type = H5VL_OBJECT_GET_INFO};
    H5VL_loc_params_t loc = path == NULL ? cow_by_self(at.type) : follow(&at, path);

    args.args.get_info.fields = fields;
    args.args.get_info.oinfo = info;
    if (H5VLobject_get(at.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot look at the object %s", path == NULL ? "" : path);
    return 0;
}

char *cow_native_comment(cow_loc object, const char *name)
{
    H5VL_native_object_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_OBJECT_GET_COMMENT, .args = &native};
    H5VL_loc_params_t loc = name == NULL ? cow_by_self(object.type) : cow_by_name(object.type, name);
    size_t length = 0;
    char *comment;

    native.get_comment.buf = NULL;
    native.get_comment.buf_size = 0;
    native.get_comment.comment_len = &length;
    if (H5VLobject_optional(object.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("cannot read the comment of an object");
        return NULL;
    }
    if ((comment = calloc(1, length + 1)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the comment of an object");
        return NULL;
    }
    native.get_comment.buf = comment;
    native.get_comment.buf_size = length + 1;
    if (length > 0 && H5VLobject_optional(object.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0) {
        cow_error_native("cannot read the comment of an object");
        free(comment);
        return NULL;
    }
    return comment;
}

int cow_native_comment_set(cow_loc object, const char *comment)
{
    H5VL_native_object_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_OBJECT_SET_COMMENT, .args = &native};
    H5VL_loc_params_t loc = cow_by_self(object.type);

    native.set_comment.comment = comment;
    if (H5VLobject_optional(object.object, &loc, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot set the comment of an object");
    return 0;
}

/* ---- named datatypes ---- */

cow_loc cow_native_named_type(hid_t named)
{
    return (cow_loc){H5VLobject(named), H5I_DATATYPE};
}

int cow_native_named_token(hid_t type, H5O_token_t *token)
{
    H5O_info2_t info;

    if (type < 0 || H5Tcommitted(type) <= 0)
        return type < 0 ? -1 : 0;
    if (cow_native_info(cow_native_named_type(type), NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    *token = info.token;
    return 1;
}

hid_t cow_native_type_id(cow_loc object)
{
    hid_t id = H5VLwrap_register(object.object, H5I_DATATYPE);

    if (id < 0) {
        cow_error_native("cannot use a named datatype");
        cow_native_close(object);
    }
    return id;
}

hid_t cow_native_type_tcpl(cow_loc named)
{
    H5VL_datatype_get_args_t args = {.op_type = H5VL_DATATYPE_GET_TCPL};

    if (H5VLdatatype_get(named.object, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the creation properties of a named datatype");
    return args.args.get_tcpl.tcpl_id;
}

int cow_native_type_anonymous(cow_loc file, hid_t type, hid_t tcpl, cow_loc *made)
{
    H5VL_loc_params_t loc = cow_by_self(file.type);
    hid_t transient = H5Tcopy(type);

    *made = (cow_loc){.type = H5I_DATATYPE};
    if (transient >= 0) {
        made->object = H5VLdatatype_commit(file.object, &loc, cow_native_id(), NULL, transient, H5P_LINK_CREATE_DEFAULT,
                                           tcpl, H5P_DATATYPE_ACCESS_DEFAULT, DXPL, NULL);
        H5Tclose(transient);
    }
    return made->object == NULL ? cow_error_native("cannot create a named datatype") : 0;
}

/* ---- datasets ---- */

/* Without a chunk cache: see cow_native_file_flush. */
static hid_t uncached(void)
{
    hid_t dapl;

    if (uncached_list >= 0)
        return uncached_list;
    if ((dapl = H5Pcreate(H5P_DATASET_ACCESS)) < 0 || H5Pset_chunk_cache(dapl, 0, 0, 0) < 0) {
        cow_error_native("cannot prepare to open a dataset");
        if (dapl >= 0)
            H5Pclose(dapl);
        return H5I_INVALID_HID;
    }
    return uncached_list = dapl;
}

hid_t cow_native_usual_dcpl(bool times)
{
    hid_t *list = &usual_list[times];

    if (*list < 0 && ((*list = H5Pcreate(H5P_DATASET_CREATE)) < 0 || H5Pset_obj_track_times(*list, times) < 0 ||
                      H5Pset_alloc_time(*list, H5D_ALLOC_TIME_INCR) < 0)) {
        cow_error_native("cannot describe a dataset");
        cow_close(*list);
        return *list = H5I_INVALID_HID;
    }
    return H5Iinc_ref(*list) < 0 ? H5I_INVALID_HID : *list;
}

bool cow_native_is_usual_dcpl(hid_t dcpl, bool *times)
{
    *times = dcpl == usual_list[true];
    return dcpl >= 0 && (*times || dcpl == usual_list[false]);
}

/* Creating at REST of AT, whose filters are not asked. */
static void *create_computed(cow_loc at, const char *rest, hid_t type, hid_t space, hid_t dcpl, hid_t dapl)
{
    H5VL_loc_params_t loc = cow_by_self(at.type);
    bool asks = !cow_pipeline_stable(dcpl);
    hid_t list = asks ? cow_pipeline_computed(dcpl) : dcpl;
    unsigned long taken = cow_pipeline_taken();
    void *dataset;

    if (list < 0)
        return NULL;
    dataset = H5VLdataset_create(at.object, &loc, cow_native_id(), rest, H5P_LINK_CREATE_DEFAULT, type, space, list,
                                 dapl, DXPL, NULL);
    if (dataset != NULL && asks && cow_pipeline_taken() == taken) {
        H5VLdataset_close(dataset, cow_native_id(), DXPL, NULL);
        dataset = NULL;
        cow_error(COW_UNSUPPORTED, "this version of HDF5 does not take the filters of a dataset as h5cow gives them");
    }
    if (asks)
        H5Pclose(list);
    return dataset;
}

void *cow_native_dataset_create(cow_loc at, const char *path, hid_t type, hid_t space, hid_t dcpl)
{
    const char *rest = shorter(&at, path);
    hid_t own = dcpl == H5P_DEFAULT ? H5P_DATASET_CREATE_DEFAULT : dcpl;
    /* a virtual one has no chunk cache, and keeps copies of the list */
    hid_t dapl = H5Pget_layout(own) == H5D_VIRTUAL ? H5P_DATASET_ACCESS_DEFAULT : uncached();
    void *dataset;

    if (dapl < 0)
        return NULL;
    dataset = create_computed(at, rest, type, space, own, dapl);
    if (dataset == NULL)
        cow_error_native("cannot create the dataset '%s'", path == NULL ? "(anonymous)" : path);
    return dataset;
}

void *cow_native_dataset_open(cow_loc at, const char *path)
{
    const char *rest = shorter(&at, path);
    H5VL_loc_params_t loc = cow_by_self(at.type);
    hid_t dapl = uncached();
    void *dataset;

    if (dapl < 0)
        return NULL;
    dataset = H5VLdataset_open(at.object, &loc, cow_native_id(), rest, dapl, DXPL, NULL);
    if (dataset == NULL)
        cow_error_native("cannot open the dataset '%s'", path);
    return dataset;
}

int cow_native_dataset_close(void *dataset)
{
    return H5VLdataset_close(dataset, cow_native_id(), DXPL, NULL) < 0 ? cow_error_native("cannot close a dataset") : 0;
}

/* 1: the context is one for this list alone, until cow_native_together. 0, -1 */
static int transfer_begin(hid_t dxpl, cow_apart *apart)
{
    asker who = dxpl == DXPL ? OURS : PROGRAMS;
    bool other = asked != NOBODY && asked != who;

    if (other && cow_native_apart(apart) < 0)
        return -1;
    asked = who;
    return other;
}

herr_t cow_native_read(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                       hid_t dxpl, void *buf[], void **req)
{
    cow_apart apart;
    int alone = transfer_begin(dxpl, &apart);
    herr_t status =
        alone < 0 ? -1
                  : H5VLdataset_read(count, dataset, cow_native_id(), mem_type, mem_space, file_space, dxpl, buf, req);

    if (alone > 0)
        cow_native_together(&apart);
    return status;
}

herr_t cow_native_write(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                        hid_t dxpl, const void *buf[], void **req)
{
    cow_apart apart;
    int alone = transfer_begin(dxpl, &apart);
    herr_t status =
        alone < 0 ? -1
                  : H5VLdataset_write(count, dataset, cow_native_id(), mem_type, mem_space, file_space, dxpl, buf, req);

    if (alone > 0)
        cow_native_together(&apart);
    return status;
}

int cow_native_dataset_read(void *dataset, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf)
{
    if (cow_native_read(1, &dataset, &mem_type, &mem_space, &file_space, dxpl == H5P_DEFAULT ? DXPL : dxpl, &buf,
                        NULL) < 0)
        return cow_error_native("cannot read a dataset");
    return 0;
}

int cow_native_dataset_write(void *dataset, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                             const void *buf)
{
    if (cow_native_write(1, &dataset, &mem_type, &mem_space, &file_space, dxpl == H5P_DEFAULT ? DXPL : dxpl, &buf,
                         NULL) < 0)
        return cow_error_native("cannot write a dataset");
    return 0;
}

hid_t cow_native_few_rows(void)
{
    hid_t dxpl;

    if (few_list >= 0)
        return few_list;
    if ((dxpl = H5Pcreate(H5P_DATASET_XFER)) < 0 || H5Pset_buffer(dxpl, COW_FEW_BYTES, NULL, NULL) < 0) {
        cow_error_native("cannot prepare to read or write a few rows");
        if (dxpl >= 0)
            H5Pclose(dxpl);
        return H5I_INVALID_HID;
    }
    return few_list = dxpl;
}

int cow_native_dataset_settle(void *dataset)
{
    H5VL_native_dataset_optional_args_t native;
    H5VL_optional_args_t args = {.op_type = H5VL_NATIVE_DATASET_GET_NUM_CHUNKS, .args = &native};
    hsize_t count;

    native.get_num_chunks.space_id = H5S_ALL;
    native.get_num_chunks.nchunks = &count;
    return H5VLdataset_optional(dataset, cow_native_id(), &args, DXPL, NULL) < 0
               ? cow_error_native("cannot store the chunks of a dataset")
               : 0;
}

int cow_native_dataset_resize(void *dataset, const hsize_t extent[])
{
    H5VL_dataset_specific_args_t args = {.op_type = H5VL_DATASET_SET_EXTENT};

    args.args.set_extent.size = extent;
    if (H5VLdataset_specific(dataset, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot resize a dataset");
    return 0;
}

int cow_native_dataset_status(void *dataset, H5D_space_status_t *status)
{
    H5VL_dataset_get_args_t args = {.op_type = H5VL_DATASET_GET_SPACE_STATUS};

    args.args.get_space_status.status = status;
    return H5VLdataset_get(dataset, cow_native_id(), &args, DXPL, NULL) < 0
               ? cow_error_native("cannot get how much of a dataset is stored")
               : 0;
}

hid_t cow_native_dataset_type(void *dataset)
{
    H5VL_dataset_get_args_t args = {.op_type = H5VL_DATASET_GET_TYPE};

    if (H5VLdataset_get(dataset, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the type of a dataset");
    return args.args.get_type.type_id;
}

hid_t cow_native_dataset_space(void *dataset)
{
    H5VL_dataset_get_args_t args = {.op_type = H5VL_DATASET_GET_SPACE};

    if (H5VLdataset_get(dataset, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the space of a dataset");
    return args.args.get_space.space_id;
}

hid_t cow_native_dataset_dcpl(void *dataset)
{
    H5VL_dataset_get_args_t args = {.op_type = H5VL_DATASET_GET_DCPL};

    if (H5VLdataset_get(dataset, cow_native_id(), &args, DXPL, NULL) < 0)
        return cow_error_native("cannot get the creation properties of a dataset");
    return cow_pipeline_told(args.args.get_dcpl.dcpl_id);
}
