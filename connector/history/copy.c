/* H5Ocopy out of files with history, and into them: a walk through what is copied, which makes it again.
 *
 * HDF5's own H5Ocopy is not used. It copies the history with the root group, finds named datatypes to merge with in the
 * history, copies views, which lead nowhere in another file, and leaves tags in the metadata cache after which flushing one
 * of the copied objects breaks the file (HDF5 1.14.5: see cow_native_file_flush).
 *
 * An object with several links is copied once; so is a named datatype with several uses. Everything is made without a link
 * and linked when it is whole, so that a failed copy leaves nothing. A versioned dataset becomes
 *   in the same file      one with an id of its own whose root record names the source's index nodes: no chunk is written,
 *                         and from then on both go their own ways
 *   in another file       what H5Dcreate makes there (a versioned one where that file has history), its chunks copied,
 *                         references in them emptied where HDF5 does so
 * and so does any other dataset that H5Dcreate would make a versioned one.
 */
#include "history/copy.h"
#include "history/head_index.h"

#include "base/error.h"
#include "base/ids.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DXPL H5P_DATASET_XFER_DEFAULT

static const char *const COUNTING[] = {COW_GROUP "_counting_0", COW_GROUP "_counting_1"};

/* An object and its copy. */
typedef struct copied {
    cow_copying *c;
    cow_copied_file *file;
    cow_loc from, to;
    unsigned depth;
    bool tracked;  /* the order of its attributes or links: their numbers are to be the same */
    int64_t next;  /* number of the next one in the copy */
    bool counting; /* the newest one there is only to count */
    bool bare;     /* neither attributes nor a comment */
} copied;

/* ---- values, and their types ---- */

/* What addresses mean in another file is nobody's to say. */
static int change_references(const copied *o, bool kept, hid_t type, size_t n, void *values)
{
    if (kept)
        return cow_native_references_lend(type, n, values);
    if (o->c->flags & H5O_COPY_EXPAND_REFERENCE_FLAG)
        return cow_copy_references(o->c, o->file, o->from, type, n, values);
    return cow_native_references_empty(type, n, values);
}

static int change_elements(void *context, hid_t type, size_t n, void *values)
{
    const copied *o = context;

    return change_references(o, o->file->same, type, n, values);
}

/* Within a file as well, HDF5 empties attributes that are references, but not what holds some (H5A__attr_post_copy_file). */
static int change_attribute(void *context, hid_t type, size_t n, void *values)
{
    const copied *o = context;

    return change_references(o, o->file->same && H5Tget_class(type) != H5T_REFERENCE, type, n, values);
}

/* A use takes the place of the first link. */
static int settle_use(cow_copying *c, cow_loc type)
{
    return c->unlinked.count > 0 ? cow_unlinked_use(&c->unlinked, type) : 0;
}

/* For the copy of something of the named type NAMED, as an id to make it with. */
static hid_t copied_type(void *context, hid_t named)
{
    const copied *o = context;
    cow_loc made;

    if (cow_copy_object(o->c, o->file, cow_native_named_type(named), 0, &made) < 0)
        return H5I_INVALID_HID;
    if (settle_use(o->c, made) < 0) {
        cow_native_close(made);
        return H5I_INVALID_HID;
    }
    return cow_native_type_id(made);
}

/* The creation properties, the type and the dataspace of a dataset's copy; the caller closes them. */
static hid_t dataset_dcpl(copied *o, cow_dataset *source)
{
    hid_t told = source == NULL ? cow_native_dataset_dcpl(o->from.object) : cow_dataset_dcpl(source, o->from.object),
          type, dcpl;

    if (told < 0 || o->file->same)
        return told;
    type = cow_native_dataset_type(o->from.object);
    dcpl = type < 0 ? H5I_INVALID_HID : cow_native_dcpl_placeless(told, type);
    cow_close(type, told);
    return dcpl;
}

static hid_t dataset_type(copied *o)
{
    hid_t type = cow_native_dataset_type(o->from.object), copy;

    if (type < 0)
        return type;
    if (cow_type_allowed(type, o->c->high) < 0)
        copy = H5I_INVALID_HID;
    else
        copy = H5Tcommitted(type) > 0 ? copied_type(o, type) : cow_native_type_placeless(type);
    H5Tclose(type);
    return copy;
}

static hid_t dataset_space(copied *o, cow_dataset *source)
{
    hid_t space = source == NULL ? cow_native_dataset_space(o->from.object) : cow_dataset_space(source), copy;

    if (space < 0)
        return space;
    copy = cow_native_space_placeless(space);
    H5Sclose(space);
    return copy;
}

/* ---- attributes and comment ---- */

static int stop_counting_attributes(copied *o, int64_t number)
{
    bool counting = o->counting;

    o->counting = false;
    return counting ? cow_native_attribute_delete(o->to, COUNTING[number % 2]) : 0;
}

static int copy_one_attribute(void *context, const char *name)
{
    copied *o = context;
    int64_t number = 0;
    uint8_t zero = 0;

    if (o->tracked && cow_native_attribute_number(o->from, name, &number) < 0)
        return -1;
    for (; o->next < number; o->next++) {
        if (cow_native_attribute_put(o->to, COUNTING[o->next % 2], H5T_NATIVE_UINT8, &zero) < 0 ||
            stop_counting_attributes(o, o->next + 1) < 0)
            return -1;
        o->counting = true;
    }
    if (cow_native_attribute_copy(o->from, name, o->to, copied_type, change_attribute, o) < 0 ||
        stop_counting_attributes(o, o->next + 1) < 0)
        return -1;
    o->next++;
    return 0;
}

static int copy_header(copied *object, hid_t creation)
{
    copied o = {.c = object->c, .file = object->file, .from = object->from, .to = object->to};
    unsigned order = 0;
    char *comment;
    int status;

    if (H5Pget_attr_creation_order(creation, &order) < 0)
        return cow_error_native("cannot get the creation properties of an object");
    o.tracked = (order & H5P_CRT_ORDER_TRACKED) != 0;
    if ((!(o.c->flags & H5O_COPY_WITHOUT_ATTR_FLAG) &&
         cow_native_attributes(o.from, true, copy_one_attribute, &o) < 0) ||
        (comment = cow_native_comment(o.from, NULL)) == NULL)
        return -1;
    object->bare = *comment == '\0' && o.next == 0;
    status = *comment == '\0' ? 0 : cow_native_comment_set(o.to, comment);
    free(comment);
    return status;
}

/* Before anything below O is copied: it may be O again. */
static int note_made(const copied *o, uint64_t address)
{
    H5O_info2_t info;

    if (cow_unlinked_note(&o->c->unlinked, o->to) < 0 || cow_native_info(o->to, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (o->c->to != NULL)
        cow_bare_forget(o->c->to, cow_address(&info.token));
    return cow_map_put(&o->file->done, address, cow_address(&info.token));
}

/* ---- datasets ---- */

/* The view of the root record ROOT at OFFSET shows what that of the source's record shows, so it is another link to that one; where that one is
 * missing, it is made. */
static int share_view(cow_file *file, const cow_dataset *source, uint64_t offset, const cow_root *root)
{
    cow_node leaf = {.offset = COW_NO_NODE};
    cow_view_context context;
    const uint64_t record[] = {source->root, offset};
    char path[2][COW_PATH_MAX];
    cow_loc views[2];
    int status;

    for (int i = 0; i < 2; i++)
        if (cow_views_open(file, record[i], &views[i], path[i]) < 0)
            return -1;
    if (cow_native_link_hard(views[0], cow_folder_name(path[0]), views[1], cow_folder_name(path[1])) == 0)
        return 0;
    cow_error_clear();
    if (cow_dataset_views(source, &context) < 0)
        return -1;
    status = cow_root_show(file, &context, offset, root, &leaf, H5I_INVALID_HID);
    if (status >= 0 && cow_views_link(file) < 0)
        status = -1;
    cow_view_end(&context);
    return status;
}

/* The same of a versioned dataset; of one that is not open it is its array's. */
static hid_t shared_type(copied *o, const cow_dataset *source)
{
    hid_t type;

    if (o->from.object != NULL)
        return dataset_type(o);
    if (cow_type_allowed(cow_array_type(&source->array), o->c->high) < 0)
        return H5I_INVALID_HID;
    if ((type = H5Tcopy(cow_array_type(&source->array))) < 0)
        cow_error_native("cannot copy the type of a dataset");
    return type;
}

/* The head of a copy of SOURCE, whose root record is to be ROOT; ROW gets its address. */
static int make_head(copied *o, cow_dataset *source, hid_t type, const cow_root *root, cow_layout_dataset_row *row)
{
    cow_file *file = o->c->to;
    const cow_array *array = &source->array;
    H5VL_loc_params_t loc = cow_by_self(o->c->target.type);
    hid_t space = cow_dataset_space(source), dcpl = cow_dataset_dcpl(source, o->from.object);
    const cow_creation wanted = {.at = o->c->target.object,
                                 .loc = &loc,
                                 .lcpl = H5P_LINK_CREATE_DEFAULT,
                                 .type = type,
                                 .space = space,
                                 .dcpl = dcpl,
                                 .dapl = H5P_DATASET_ACCESS_DEFAULT};
    char head[COW_PATH_MAX];
    H5O_info2_t info;
    int status = space < 0 || dcpl < 0 ? -1 : cow_dataset_make_native(file, &wanted, false, root, row, &o->to.object);

    cow_close(dcpl, space);
    if (status != 0)
        return status < 0 ? -1 : cow_head_index_follow(row->head, root->dataset, COW_NO_NODE, source);
    cow_head_path(head, root->dataset);
    if ((o->to.object = cow_view_whole(o->c->target, NULL, type, array->grid.rank, array->extent, array->maximum,
                                       source->dcpl, head)) == NULL ||
        cow_native_info(o->to, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    row->head = cow_address(&info.token);
    return 0;
}

/* *MADE: the row of the copy. */
static int share(copied *o, cow_dataset *source, cow_layout_dataset_row *made)
{
    cow_file *file = o->c->to;
    const cow_array *array = &source->array;
    cow_layout_dataset_row row = source->row;
    cow_root root;
    uint64_t id = cow_datasets_rows(file), offset;
    hid_t type = shared_type(o, source);
    int status = -1;

    row.flags &= (uint8_t)~COW_FLAG_NATIVE;
    /* rows of slots that are sealed below must be in the table: of those that are given out again, too */
    if (type < 0 || cow_pool_flush(array->pool) < 0 || cow_root_read(file->index, source->root, &root) < 0)
        goto done;
    root.dataset = id;
    if (make_head(o, source, type, &root, &row) < 0 || cow_root_append(file->index, &root, &offset) < 0)
        goto done;
    row.root = offset;
    if (share_view(file, source, offset, &root) < 0 || cow_head_lead(file, id, offset, true) < 0 ||
        cow_datasets_add_row(file, &row) < 0)
        goto done;
    /* both datasets now name the same slots and nodes: neither may be written again or lose its view */
    cow_pool_seal(array->pool);
    cow_superseded_keep(file);
    *made = row;
    status = 0;
done:
    cow_close(type);
    return status;
}

/* What H5Dcreate makes in the target, or a versioned one, as the source is (VERSIONED); *MADE: the versioned dataset, or
 * NULL where it is HDF5's own. */
static int make_dataset(copied *o, bool versioned, hid_t type, hid_t space, hid_t dcpl, cow_dataset **made)
{
    cow_copying *c = o->c;
    H5VL_loc_params_t loc = cow_by_self(c->target.type);
    int wanted = c->to != NULL, grows;
    hsize_t extent[H5S_MAX_RANK];
    cow_no_pool no_pool;

    *made = NULL;
    if (wanted && !versioned && (wanted = cow_dataset_wanted(c->to, type, space, dcpl)) < 0)
        return -1;
    if (wanted) {
        *made = cow_dataset_create(c->to,
                                   &(cow_creation){.at = c->target.object,
                                                   .loc = &loc,
                                                   .lcpl = H5P_LINK_CREATE_DEFAULT,
                                                   .type = type,
                                                   .space = space,
                                                   .dcpl = dcpl,
                                                   .dapl = H5P_DATASET_ACCESS_DEFAULT,
                                                   .computed = true},
                                   &o->to.object, &no_pool);
        return *made == NULL ? -1 : cow_dataset_begin_write(*made, "");
    }
    if (H5Sget_simple_extent_dims(space, extent, NULL) < 0 || (grows = cow_native_space_at_first(dcpl, space)) < 0)
        return cow_error_native("cannot describe a copy");
    if ((o->to.object = cow_native_dataset_create(c->target, NULL, type, space, dcpl)) == NULL)
        return -1;
    return grows ? cow_native_dataset_resize(o->to.object, extent) : 0;
}

/* SOURCE: NULL where what is copied is HDF5's own. What lies outside of a file is not copied: the copy names it as well. */
static int copy_elements(copied *o, hid_t dcpl, cow_dataset *source, cow_dataset *target)
{
    const char *name = o->c->to != NULL ? o->c->to->name : "a copy";

    if (source != NULL)
        return cow_copy_elements_of_dataset(source, target, target == NULL ? o->to.object : NULL, change_elements, o);
    if (H5Pget_layout(dcpl) == H5D_VIRTUAL || H5Pget_external_count(dcpl) > 0)
        return 0;
    if (target != NULL)
        return cow_copy_elements_of_native(o->from.object, target, change_elements, o);
    return cow_copy_elements_between_files(name, o->from.object, o->to.object, change_elements, o);
}

/* A versioned dataset whose bytes say all that a copy in its own file needs: HDF5 takes longer to open it than for all else but making the
 * copy. 1: *MADE; 0: it is to be opened; -1. */
static int copy_unopened(cow_copying *c, cow_copied_file *file, const char *name, uint64_t address, cow_loc *made)
{
    copied o = {.c = c, .file = file, .from = {.type = H5I_DATASET}, .to = {.type = H5I_DATASET}};
    cow_layout_dataset_row row;
    cow_dataset *source;
    int status = -1;

    if (c->to == NULL || !file->same || file->file != c->to || cow_map_get(&file->done, address, NULL) ||
        cow_dataset_attach_bare(c->to, address, name, &source) == 0)
        return 0;
    if (cow_superseded_has(c->to, source->root)) {
        cow_dataset_release(source);
        return 0;
    }
    if (share(&o, source, &row) == 0 && note_made(&o, address) == 0 &&
        cow_bare_note(c->to, row.head, source, row.root) == 0)
        status = 1;
    cow_dataset_release(source);
    if (status < 0 && o.to.object != NULL) {
        cow_native_close(o.to);
        o.to.object = NULL;
    }
    *made = o.to;
    return status;
}

static int copy_dataset(copied *o, uint64_t address)
{
    cow_dataset *source = NULL, *target = NULL;
    cow_layout_dataset_row row;
    hid_t type = H5I_INVALID_HID, space = H5I_INVALID_HID, dcpl = H5I_INVALID_HID;
    int status = -1;

    if (o->file->file != NULL && cow_dataset_attach(o->file->file, o->from.object, false, &source) < 0)
        return -1;
    if (source != NULL && o->c->to == o->file->file && !cow_superseded_has(o->c->to, source->root)) {
        if (share(o, source, &row) == 0 && note_made(o, address) == 0 && copy_header(o, source->dcpl) == 0)
            status = o->bare ? cow_bare_note(o->c->to, row.head, source, row.root) : 0;
        goto done;
    }
    if ((dcpl = dataset_dcpl(o, source)) >= 0 && (space = dataset_space(o, source)) >= 0 &&
        (type = dataset_type(o)) >= 0 && make_dataset(o, source != NULL, type, space, dcpl, &target) == 0 &&
        note_made(o, address) == 0 && copy_elements(o, dcpl, source, target) == 0)
        status = copy_header(o, dcpl);
done:
    if (target != NULL)
        cow_dataset_release(target);
    if (source != NULL)
        cow_dataset_release(source);
    cow_close(dcpl, space, type);
    return status;
}

/* Has the source an object header of HDF5 1.6? Then headers are such ones until *LOW is set again. 1, 0, -1. */
static int begin_old_header(const copied *o, H5F_libver_t *low)
{
    unsigned version;

    if (cow_native_header_version(o->from, &version) < 0)
        return -1;
    return version < 2 && cow_native_old_headers(o->c->target, low);
}

/* ---- named datatypes ---- */

/* O->FROM stays the caller's: the id is for a second handle. */
static hid_t type_id(const copied *o, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    cow_loc again;

    return cow_native_open_token(o->from, &token, &again) < 0 ? H5I_INVALID_HID : cow_native_type_id(again);
}

/* With an object header of HDF5 1.6 if its source has one, as natively, where a newer one is in danger: see cow_home_old_headers. */
static int make_type(copied *o, hid_t type, hid_t tcpl)
{
    H5F_libver_t low;
    const int old = begin_old_header(o, &low),
              status = old < 0 ? -1 : cow_native_type_anonymous(o->c->target, type, tcpl, &o->to);

    return old > 0 && cow_native_low_bound(o->c->target, low, NULL) < 0 ? -1 : status;
}

static int copy_type(copied *o, uint64_t address)
{
    bool merge = (o->c->flags & H5O_COPY_MERGE_COMMITTED_DTYPE_FLAG) != 0;
    hid_t type = type_id(o, address), tcpl = H5I_INVALID_HID;
    H5O_token_t token;
    uint64_t found = address;
    int merged = 0, status = -1;

    if (type < 0 || (tcpl = cow_native_type_tcpl(o->from)) < 0)
        goto done;
    if (merge && (merged = o->file->same ? 1 : cow_copy_find_type(o->c, type, &found)) < 0)
        goto done;
    if (merged) {
        token = cow_token(found);
        if (cow_map_put(&o->file->done, address, found) == 0)
            status = cow_native_open_token(o->c->target, &token, &o->to);
        goto done;
    }
    if (cow_type_allowed(type, o->c->high) < 0 || make_type(o, type, tcpl) < 0 || note_made(o, address) < 0)
        goto done;
    if (merge && cow_map_get(&o->file->done, address, &found) && cow_copy_add_type(o->c, type, found) < 0)
        goto done;
    status = copy_header(o, tcpl);
done:
    cow_close(type, tcpl);
    return status;
}

/* ---- groups ---- */

/* A group counts its links, and HDF5 lets nobody set the counter. A link that only counts stays until the next one is
 * there: the counter of an empty group starts anew. */
static int stop_counting(copied *o, int64_t number)
{
    bool counting = o->counting;

    o->counting = false;
    return counting ? cow_native_link_delete(o->to, COUNTING[number % 2]) : 0;
}

static int count_up(copied *o, int64_t number)
{
    for (; o->next < number; o->next++) {
        if (cow_native_link_soft(o->to, COUNTING[o->next % 2], ".") < 0 || stop_counting(o, o->next + 1) < 0)
            return -1;
        o->counting = true;
    }
    return 0;
}

/* A soft link; those of a version begin with its path, where they are absolute. */
static int copy_soft_link(copied *o, const char *name)
{
    const char *version = o->file->version, *target;
    size_t size, length = version == NULL ? 0 : strlen(version);
    char *value;
    int status;

    if (version == NULL)
        return cow_native_link_copy(o->from, name, o->to, name);
    if ((value = cow_native_link_value(o->from, name, &size)) == NULL)
        return -1;
    target = value;
    if (strncmp(value, version, length) == 0 && (value[length] == '/' || value[length] == '\0'))
        target = value[length] == '\0' ? "/" : value + length;
    status = cow_native_link_soft(o->to, name, target);
    free(value);
    return status;
}

/* The file of an OBJECT that a link led to. NULL: error. */
static cow_copied_file *file_of(cow_copying *c, cow_loc object)
{
    cow_copied_file *file;
    H5O_info2_t info;
    int joined;

    if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
        return NULL;
    for (file = c->files; file != NULL; file = file->next)
        if (file->fileno == info.fileno)
            return file;
    if ((file = calloc(1, sizeof *file)) == NULL) {
        cow_error(COW_MEMORY, "no memory for a copy");
        return NULL;
    }
    file->fileno = info.fileno;
    if ((joined = cow_file_join_reader(object, info.fileno, c->files->file != NULL ? c->files->file : c->to,
                                       &file->file)) < 0) {
        free(file);
        return NULL;
    }
    file->joined = joined > 0;
    file->same = file->file != NULL && file->file == c->to;
    file->next = c->files->next; /* the first one stays the first */
    c->files->next = file;
    return file;
}

/* Does the soft or external link NAME lead to an object, and is it to be copied in its place? */
static bool expands(const copied *o, const char *name, H5L_type_t type)
{
    return ((type == H5L_TYPE_SOFT && (o->c->flags & H5O_COPY_EXPAND_SOFT_LINK_FLAG)) ||
            (type == H5L_TYPE_EXTERNAL && (o->c->flags & H5O_COPY_EXPAND_EXT_LINK_FLAG))) &&
           cow_native_leads(o->from, name);
}

/* What the link NAME leads to, opened. A hard link by address: by name it may lead across a mount point. */
static int open_linked(const copied *o, const char *name, const H5L_info2_t *info, cow_loc *object, bool *borrowed)
{
    *borrowed = false;
    if (info->type != H5L_TYPE_HARD)
        return cow_native_open(o->from, name, object);
    if (o->file->file != NULL)
        return cow_head_open(o->file->file, cow_address(&info->u.token), object, borrowed);
    return cow_native_open_token(o->from, &info->u.token, object);
}

static int copy_opened(const copied *o, const char *name, const H5L_info2_t *info, cow_loc *made)
{
    cow_copied_file *file = o->file;
    cow_loc object;
    bool borrowed;
    int status = -1;

    if (open_linked(o, name, info, &object, &borrowed) < 0)
        return -1;
    if (info->type == H5L_TYPE_HARD || (file = file_of(o->c, object)) != NULL)
        status = cow_copy_object(o->c, file, object, o->depth + 1, made);
    return !borrowed && cow_native_close(object) < 0 ? -1 : status;
}

/* The first link of MADE, which is closed; with STATUS < 0 only that. */
static int link_made(cow_copying *c, int status, cow_loc made, cow_loc to, const char *name)
{
    H5O_info2_t info;

    if (status >= 0)
        status = cow_unlinked_link(&c->unlinked, made, to, name);
    if (status >= 0 && c->to != NULL && made.type == H5I_DATASET) {
        /* a function of the program, called meanwhile, may have deleted something: then it was seen without a link */
        status = cow_native_info(made, NULL, H5O_INFO_BASIC, &info);
        if (status == 0)
            cow_file_linked(c->to, &info.token);
    }
    return made.object != NULL && cow_native_close(made) < 0 ? -1 : status;
}

static int copy_linked(copied *o, const char *name, const H5L_info2_t *info)
{
    cow_loc made = {0};
    int status =
        info->type == H5L_TYPE_HARD ? copy_unopened(o->c, o->file, name, cow_address(&info->u.token), &made) : 0;

    if (status == 0)
        status = copy_opened(o, name, info, &made);
    return link_made(o->c, status, made, o->to, name);
}

static int copy_link(void *context, const char *name, const H5L_info2_t *info)
{
    copied *o = context;
    int status;

    if (o->tracked && count_up(o, info->corder) < 0)
        return -1;
    if (info->type == H5L_TYPE_HARD || expands(o, name, info->type))
        status = copy_linked(o, name, info);
    else if (info->type == H5L_TYPE_SOFT)
        status = copy_soft_link(o, name);
    else
        status = cow_native_link_copy(o->from, name, o->to, name);
    if (status == 0 && o->tracked)
        status = stop_counting(o, o->next + 1);
    o->next++;
    return status;
}

/* The history stays behind. */
static int copy_root_link(void *context, const char *name, const H5L_info2_t *info)
{
    return strcmp(name, COW_GROUP) == 0 ? 0 : copy_link(context, name, info);
}

static int copy_links(const copied *object, hid_t gcpl, bool root)
{
    copied o = {.c = object->c, .file = object->file, .from = object->from, .to = object->to, .depth = object->depth};
    unsigned order = 0;
    int64_t counter;

    if ((o.c->flags & H5O_COPY_SHALLOW_HIERARCHY_FLAG) && o.depth > 0)
        return 0;
    if (H5Pget_link_creation_order(gcpl, &order) < 0)
        return cow_error_native("cannot get the creation properties of a group");
    o.tracked = (order & H5P_CRT_ORDER_TRACKED) != 0;
    if (cow_native_links(o.from, o.tracked ? COW_LINKS_BY_CREATION : COW_LINKS_BY_NAME,
                         root ? copy_root_link : copy_link, &o) < 0)
        return -1;
    if (!o.tracked)
        return 0;
    return cow_native_group_counter(o.from.object, &counter) < 0 || count_up(&o, counter) < 0
               ? -1
               : stop_counting(&o, o.next + 1);
}

/* Addresses are short: as make_type. */
static int make_group(copied *o, hid_t gcpl)
{
    H5F_libver_t low;
    const int old = o->c->to != NULL && cow_file_narrow(o->c->to) ? begin_old_header(o, &low) : 0;

    if (old < 0)
        return -1;
    o->to.object = cow_native_group_anonymous(o->c->target, gcpl);
    return (old > 0 && cow_native_low_bound(o->c->target, low, NULL) < 0) || o->to.object == NULL ? -1 : 0;
}

static int copy_group(copied *o, uint64_t address)
{
    cow_file *file = o->file->file;
    bool root = file != NULL && o->file->version == NULL && address == cow_address(&file->root);
    hid_t gcpl = cow_native_group_gcpl(o->from.object);
    int status = -1;

    if (gcpl < 0)
        return -1;
    if (make_group(o, gcpl) == 0 && note_made(o, address) == 0 && copy_links(o, gcpl, root) == 0)
        status = copy_header(o, gcpl);
    H5Pclose(gcpl);
    return status;
}

/* ---- the walk ---- */

/* A copy has at least the version of header that its source has: only newer ones take attributes of more than 64 KiB, and
 * keep the order of attributes. Files with history make newer ones only. What the program makes itself gets what the program asked
 * for. */
static int raise_version(cow_copying *c, cow_loc source)
{
    unsigned version;

    if (c->to != NULL || c->raised)
        return 0;
    if (cow_native_header_version(source, &version) < 0)
        return -1;
    if (version < 2)
        return 0;
    c->raised = true;
    return cow_native_low_bound(c->target, H5F_LIBVER_V18, &c->low);
}

int cow_copy_object(cow_copying *c, cow_copied_file *file, cow_loc object, unsigned depth, cow_loc *made)
{
    copied o = {.c = c, .file = file, .from = object, .to = {.type = object.type}, .depth = depth};
    uint64_t address, known;
    H5O_info2_t info;
    int status = -1;

    made->object = NULL;
    if (cow_native_info(object, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    address = cow_address(&info.token);
    if (cow_map_get(&file->done, address, &known)) {
        H5O_token_t token = cow_token(known);
        return cow_native_open_token(c->target, &token, made);
    }
    if (raise_version(c, object) < 0)
        return -1;
    if (object.type == H5I_GROUP)
        status = copy_group(&o, address);
    else if (object.type == H5I_DATASET)
        status = copy_dataset(&o, address);
    else
        status = copy_type(&o, address);
    if (status < 0 && o.to.object != NULL) {
        cow_native_close(o.to);
        o.to.object = NULL;
    }
    *made = o.to;
    return status;
}

/* ---- H5Ocopy ---- */

static int look_at_source(cow_copying *c, cow_copied_file *first, cow_loc from, const char *name, uint64_t *address)
{
    H5O_info2_t info, parent;

    if (cow_native_info(from, name, H5O_INFO_BASIC, &info) < 0 ||
        cow_native_info(c->target, NULL, H5O_INFO_BASIC, &parent) < 0)
        return -1;
    first->fileno = info.fileno;
    c->fileno = parent.fileno;
    first->same = info.fileno == parent.fileno && first->version == NULL;
    c->files = first;
    *address = cow_address(&info.token);
    return 0;
}

static int copy_source(cow_copying *c, cow_copied_file *first, cow_loc from, const char *name, uint64_t address,
                       cow_loc *made)
{
    cow_loc source;
    bool borrowed = false;
    int status = copy_unopened(c, first, name, address, made);

    if (status != 0)
        return status;
    if ((first->file != NULL ? cow_head_open(first->file, address, &source, &borrowed)
                             : cow_native_open(from, name, &source)) < 0)
        return -1;
    status = cow_copy_object(c, first, source, 0, made);
    return !borrowed && cow_native_close(source) < 0 ? -1 : status;
}

static void forget_files(cow_copying *c)
{
    while (c->files != NULL) {
        cow_copied_file *file = c->files;
        c->files = file->next;
        cow_map_free(&file->done);
        if (file->joined && cow_file_release(file->file) < 0)
            cow_error_clear(); /* nothing was written there */
        free(file);
    }
}

static int copy_named(cow_copying *c, cow_copied_file *first, cow_loc from, const char *from_name, const char *to_name)
{
    cow_loc made = {0};
    uint64_t address;

    if (look_at_source(c, first, from, from_name, &address) < 0)
        return -1;
    return link_made(c, copy_source(c, first, from, from_name, address, &made), made, c->target, to_name);
}

int cow_copy_named_object(cow_file *from_file, const char *version, void *from, const H5VL_loc_params_t *from_loc,
                          const char *from_name, cow_file *to_file, void *to, const H5VL_loc_params_t *to_loc,
                          const char *to_name, H5F_libver_t high, hid_t ocpypl)
{
    cow_copying c = {.to = to_file, .target = {to, to_loc->obj_type}, .ocpypl = ocpypl, .high = high};
    cow_copied_file *first = calloc(1, sizeof *first);
    H5AC_cache_config_t cache;
    hid_t id = H5I_INVALID_HID;
    void *native = NULL;
    int status = -1, wider = 0;

    if (first == NULL)
        return cow_error(COW_MEMORY, "no memory for a copy");
    first->file = from_file;
    first->version = version;
    c.files = first;
    if (H5Pget_copy_object(ocpypl, &c.flags) < 0) {
        cow_error_native("cannot get how to copy '%s'", from_name);
        goto done;
    }
    if (to_file != NULL && cow_file_begin(to_file) < 0)
        goto done;
    /* a file without history loses copies that have no link yet just as well */
    if ((native = to_file != NULL ? to_file->native : cow_native_file_of(c.target, &id)) == NULL ||
        (wider = cow_native_metadata_cache_widen(native, &cache)) < 0)
        goto done;
    if (to_file != NULL)
        cow_changes_edited(to_file);
    if (from_file != NULL && cow_file_writable(from_file) && from_file->laid_out &&
        cow_commit_datasets(from_file) < 0) {
        status = cow_file_fail(from_file);
        goto done;
    }
    if ((status = copy_named(&c, first, (cow_loc){from, from_loc->obj_type}, from_name, to_name)) < 0) {
        cow_copy_drop_along(&c);
        cow_context("'%s' cannot be copied to '%s'", from_name, to_name);
    }
done:
    if (c.raised && c.low < H5F_LIBVER_V18 && cow_native_low_bound(c.target, c.low, NULL) < 0)
        status = -1;
    if (wider > 0)
        cow_native_metadata_cache_restore(native, &cache);
    cow_close(id);
    forget_files(&c);
    cow_copy_forget_types(&c);
    cow_map_free(&c.unlinked);
    free(c.along);
    return status;
}
