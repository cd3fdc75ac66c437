/* H5Ocopy out of files with history, and into them.
 *
 * Native HDF5 copies the tree first, below a group that nobody sees. Its copies of head datasets and snapshots are virtual
 * datasets that still name the source's index, so each one is replaced:
 *   in the same file      by a head with an id of its own whose root record names the source's index nodes: no chunk is
 *                         written, and from then on both go their own ways
 *   in another file       by the dataset that the application once made (a versioned one where that file has history,
 *                         a plain one where it has none), its chunks copied, references in them emptied
 * What comes out of a plain file into one with history is replaced by versioned datasets as well, where H5Dcreate would
 * have made such. Their elements come from the source itself, once HDF5's copies have given their room back.
 */
#include "history/internal.h"

#include "error.h"
#include "ids.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DXPL   H5P_DATASET_XFER_DEFAULT
#define STAGED "copy"

static const char *const COUNTING[] = {"_versioned_data_counting_0", "_versioned_data_counting_1"};

typedef struct copying {
    cow_file *from, *to; /* to: NULL, a file without history */
    const char *version; /* that is copied out of, its path, or NULL: absolute soft links there begin with it */
    bool expand;         /* what references lead to as well: H5O_COPY_EXPAND_REFERENCE_FLAG; then also: */
    bool references;     /* there are references in the copy, */
    bool replaced;       /* and objects that are not where HDF5 made these lead to */
    cow_map done;        /* copied object -> what stands in its place, or itself */
    cow_map unlinked;    /* what stands in a place and has no link yet: see unlinked.c */
    /* out of a plain file: */
    cow_loc source; /* what is copied */
    unsigned long fileno;
    struct {
        char *path; /* below source */
        uint64_t address;
    } *empty; /* datasets that are still to get their elements */
    size_t empty_count, empty_room;
} copying;

typedef struct copied_header {
    cow_loc from, to;
    bool tracked; /* the order of attributes: their numbers are to be the same */
    int64_t next; /* see count_up */
    bool counting;
} copied_header;

static int stop_counting_attributes(copied_header *h, int64_t number)
{
    bool counting = h->counting;

    h->counting = false;
    return counting ? cow_native_attribute_delete(h->to, COUNTING[number % 2]) : 0;
}

static int copy_one_attribute(void *context, const char *name)
{
    copied_header *h = context;
    int64_t number = 0;
    uint8_t zero = 0;

    if (h->tracked && cow_native_attribute_number(h->from, name, &number) < 0)
        return -1;
    for (; h->next < number; h->next++) {
        if (cow_native_attribute_put(h->to, COUNTING[h->next % 2], H5T_NATIVE_UINT8, &zero) < 0 ||
            stop_counting_attributes(h, h->next + 1) < 0)
            return -1;
        h->counting = true;
    }
    if (cow_native_attribute_copy(h->from, name, h->to, NULL, NULL) < 0 || stop_counting_attributes(h, h->next + 1) < 0)
        return -1;
    h->next++;
    return 0;
}

static int copy_header(cow_loc from, cow_loc to, hid_t dcpl)
{
    copied_header h = {.from = from, .to = to};
    unsigned order = 0;
    char *comment;
    int status;

    if (H5Pget_attr_creation_order(dcpl, &order) < 0)
        return cow_error_native("cannot get the creation properties of an object");
    h.tracked = (order & H5P_CRT_ORDER_TRACKED) != 0;
    if (cow_native_attributes(from, true, copy_one_attribute, &h) < 0 || (comment = cow_native_comment(from)) == NULL)
        return -1;
    status = *comment == '\0' ? 0 : cow_native_comment_set(to, comment);
    free(comment);
    return status;
}

/* ---- the same file ---- */

/* Made by the handle that PARENT is of: a named type of another one would be taken for one of another file. */
static int share(copying *c, cow_loc copy, cow_loc parent, cow_dataset *source, void **made)
{
    cow_file *file = c->to;
    cow_array *array = &source->array;
    cow_dataset_row row = source->row;
    cow_root root;
    uint64_t id = file->datasets->rows, offset;
    char head[COW_PATH_MAX], view[COW_PATH_MAX], raw[COW_PATH_MAX];
    hid_t dcpl = H5Pcopy(source->dcpl), type = cow_native_dataset_type(copy.object), fill = H5I_INVALID_HID;
    cow_view_context context = {.file = file->loc, .grid = &array->grid, .type = array->type};
    H5O_info2_t info;
    int status = -1;

    *made = NULL;
    cow_head_path(head, id);
    if (dcpl < 0 || type < 0 || H5Pset_layout(dcpl, H5D_CONTIGUOUS) < 0) {
        cow_error_native("%s: cannot describe a copy", array->label);
        goto done;
    }
    if ((*made = cow_view_whole(parent, NULL, type, array->grid.rank, array->extent, array->maximum, dcpl, head)) ==
            NULL ||
        copy_header(copy, (cow_loc){*made, H5I_DATASET}, dcpl) < 0 ||
        cow_native_info((cow_loc){*made, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0 ||
        cow_root_read(file->index, source->root, &root) < 0)
        goto done;
    root.dataset = id;
    if ((fill = cow_view_dcpl(source)) < 0)
        goto done;
    context.fill_dcpl = fill;
    context.source_rows = cow_pool_slots(array->pool) * array->grid.chunk[0];
    cow_pool_path(raw, source->row.pool);
    snprintf(context.source, sizeof context.source, "%s", raw);
    if (cow_root_append(file->index, &root, &offset) < 0 || cow_view_root(&context, offset, &root) < 0)
        goto done;
    cow_view_path(view, offset);
    row.head = cow_address(&info.token);
    row.root = offset;
    if (cow_native_link_hard(file->loc, view, file->loc, head) < 0 ||
        cow_table_append(file->datasets, 1, &row, NULL) < 0)
        goto done;
    /* both datasets now name the same slots and nodes: neither may be written again or lose its view */
    cow_pool_seal(array->pool);
    file->shared_nodes = true;
    status = 0;
done:
    cow_close(fill, type, dcpl);
    return status;
}

/* ---- another file ---- */

static int make_versioned(copying *c, cow_loc parent, hid_t type, hid_t space, hid_t dcpl, cow_dataset **target,
                          void **made)
{
    H5VL_loc_params_t loc = cow_by_self(parent.type);

    *target = cow_dataset_create(c->to, parent.object, &loc, NULL, H5P_LINK_CREATE_DEFAULT, type, space, dcpl,
                                 H5P_DATASET_ACCESS_DEFAULT, made);
    return *target == NULL ? -1 : cow_dataset_begin_write(*target, NULL);
}

static int materialise(copying *c, cow_loc copy, cow_loc parent, cow_dataset *source, void **made)
{
    const cow_array *array = &source->array;
    hid_t type = cow_native_dataset_type(copy.object), space = cow_dataset_space(source),
          dcpl = cow_dataset_dcpl(source, copy.object);
    cow_dataset *target = NULL;
    hsize_t extent[COW_MAX_RANK];
    int grows = 0, status = -1;

    *made = NULL;
    if (type < 0 || space < 0 || dcpl < 0)
        goto done;
    if (c->to != NULL) {
        if (make_versioned(c, parent, type, space, dcpl, &target, made) < 0)
            goto done;
    } else {
        if ((grows = cow_native_space_at_first(dcpl, space)) < 0) {
            cow_error_native("%s: cannot describe a copy", array->label);
            goto done;
        }
        for (unsigned d = 0; d < array->grid.rank; d++)
            extent[d] = array->extent[d];
        if ((*made = cow_native_dataset_create(parent, NULL, type, space, dcpl)) == NULL ||
            (grows && cow_native_dataset_resize(*made, extent) < 0))
            goto done;
    }
    if (cow_pour_dataset(source, target, target == NULL ? *made : NULL) == 0)
        status = copy_header(copy, (cow_loc){*made, H5I_DATASET}, dcpl);
done:
    if (target != NULL)
        cow_dataset_release(target);
    cow_close(dcpl, space, type);
    return status;
}

/* ---- out of a plain file ---- */

static int open_source(const copying *c, const char *path, cow_loc *source)
{
    return cow_native_open(c->source, *path == '\0' ? "." : path + 1, source);
}

/* Does PATH lead to what was copied from? Another file may be mounted over it, or it was reached by an external link. */
static bool is_source(const copying *c, const char *path)
{
    cow_loc source;
    H5O_info2_t info;
    bool found = false;

    if (open_source(c, path, &source) == 0) {
        found = cow_native_info(source, NULL, H5O_INFO_BASIC, &info) == 0 && info.fileno == c->fileno &&
                info.type == H5O_TYPE_DATASET;
        cow_native_close(source);
    }
    if (!found)
        cow_error_clear();
    return found;
}

static int note_empty(copying *c, const char *path, uint64_t address)
{
    if (c->empty_count == c->empty_room) {
        size_t room = c->empty_room * 2 + 16;
        void *larger = realloc(c->empty, room * sizeof *c->empty);
        if (larger == NULL)
            return cow_error(COW_MEMORY, "no memory to copy %zu datasets", room);
        c->empty = larger;
        c->empty_room = room;
    }
    if ((c->empty[c->empty_count].path = strdup(path)) == NULL)
        return cow_error(COW_MEMORY, "no memory to copy the dataset %s", path);
    c->empty[c->empty_count++].address = address;
    return 0;
}

/* *MADE takes the place of COPY, which was copied from PATH; it stays NULL where HDF5's copy is what H5Dcreate makes. */
static int convert(copying *c, cow_loc copy, cow_loc parent, const char *path, void **made)
{
    hid_t type = cow_native_dataset_type(copy.object), space = cow_native_dataset_space(copy.object),
          dcpl = cow_native_dataset_dcpl(copy.object);
    cow_dataset *target = NULL;
    H5O_info2_t info;
    int wanted = type < 0 || space < 0 || dcpl < 0 ? -1 : cow_dataset_wanted(c->to, type, space, dcpl);
    int status = wanted < 0 ? -1 : 0;

    if (wanted > 0 && (make_versioned(c, parent, type, space, dcpl, &target, made) < 0 ||
                       copy_header(copy, (cow_loc){*made, H5I_DATASET}, dcpl) < 0 ||
                       cow_native_info((cow_loc){*made, H5I_DATASET}, NULL, H5O_INFO_BASIC, &info) < 0 ||
                       (is_source(c, path) ? note_empty(c, path, cow_address(&info.token))
                                           : cow_pour_native(copy.object, target)) < 0))
        status = -1;
    if (target != NULL)
        cow_dataset_release(target);
    cow_close(dcpl, space, type);
    return status;
}

static int pour_one(const copying *c, const char *path, uint64_t address)
{
    H5O_token_t token = cow_token(address);
    cow_loc source, made;
    cow_dataset *target = NULL;
    int status = -1;

    if (open_source(c, path, &source) < 0)
        return -1;
    if (cow_native_open_token(c->to->loc, &token, &made) == 0) {
        if (cow_dataset_attach(c->to, made.object, &target) < 0)
            status = -1;
        else if (target == NULL)
            status = cow_error(COW_CORRUPT, "%s: the copy of %s is lost", c->to->name, path);
        else if (cow_dataset_begin_write(target, NULL) == 0)
            status = cow_pour_native(source.object, target);
        if (target != NULL)
            cow_dataset_release(target);
        if (cow_native_close(made) < 0)
            status = -1;
    }
    if (cow_native_close(source) < 0)
        status = -1;
    return status;
}

/* ---- the copied tree ---- */

static int mend(copying *c, cow_loc group, const char *name, const char *path, uint64_t address, cow_loc *made);

typedef struct mended_group {
    copying *c;
    const char *path; /* below what is copied */
    cow_loc from, to; /* the same group, or the one that takes its place */
    int64_t next;     /* creation order number of the next link in `to` */
    bool counting;    /* the newest link there is only to count */
} mended_group;

/* A group counts its links, and HDF5 lets nobody set the counter. A link that only counts stays until the next one is
 * there: the counter of an empty group starts anew. */
static int stop_counting(mended_group *m, int64_t number)
{
    bool counting = m->counting;

    m->counting = false;
    return counting ? cow_native_link_delete(m->to, COUNTING[number % 2]) : 0;
}

static int count_up(mended_group *m, int64_t number)
{
    for (; m->next < number; m->next++) {
        if (cow_native_link_soft(m->to, COUNTING[m->next % 2], ".") < 0 || stop_counting(m, m->next + 1) < 0)
            return -1;
        m->counting = true;
    }
    return 0;
}

/* What a soft link of a version leads to where it is copied, or NULL: as it is. *VALUE is the caller's to free. */
static int target_outside(const mended_group *m, const char *name, char **value, const char **target)
{
    const char *version = m->c->version;
    size_t size, length = version == NULL ? 0 : strlen(version);

    *value = NULL;
    *target = NULL;
    if (version == NULL)
        return 0;
    if ((*value = cow_native_link_value(m->from, name, &size)) == NULL)
        return -1;
    if (strncmp(*value, version, length) == 0 && ((*value)[length] == '/' || (*value)[length] == '\0'))
        *target = (*value)[length] == '\0' ? "/" : *value + length;
    return 0;
}

static int mend_link(void *context, const char *name, const H5L_info2_t *info)
{
    mended_group *m = context;
    bool again = m->to.object != m->from.object;
    cow_loc made = {0};
    const char *target = NULL;
    char *value = NULL, *path = NULL;
    int status = 0;

    if (info->type == H5L_TYPE_ERROR)
        return 0;
    if (info->type == H5L_TYPE_SOFT && target_outside(m, name, &value, &target) < 0)
        return -1;
    if (info->type == H5L_TYPE_HARD) {
        if (asprintf(&path, "%s/%s", m->path, name) < 0)
            return cow_error(COW_MEMORY, "no memory for the path of %s", name);
        status = mend(m->c, m->from, name, path, cow_address(&info->u.token), &made);
        free(path);
        if (status < 0)
            return -1;
    }
    if (again && count_up(m, info->corder) < 0)
        status = -1;
    else if (made.object != NULL)
        status = cow_native_link_delete(m->from, name) < 0 ? -1 : cow_unlinked_link(&m->c->unlinked, made, m->to, name);
    else if (target != NULL)
        status = !again && cow_native_link_delete(m->to, name) < 0 ? -1 : cow_native_link_soft(m->to, name, target);
    else if (again)
        status = cow_native_link_copy(m->from, name, m->to, name);
    if (status == 0 && stop_counting(m, m->next + 1) < 0)
        status = -1;
    m->next++;
    free(value);
    if (made.object != NULL && cow_native_close(made) < 0)
        status = -1;
    return status;
}

/* The links of a copied group. One that tracks the order of its links is made again, with the same numbers, since a link
 * that is put in the place of another one gets a new number; *MADE is that group. */
static int mend_group(copying *c, cow_loc group, const char *path, uint64_t address, cow_loc *made)
{
    hid_t gcpl = cow_native_group_gcpl(group.object);
    mended_group m = {.c = c, .path = path, .from = group, .to = group};
    unsigned order = 0;
    bool tracked;
    int64_t counter;
    H5O_info2_t info;
    int status = -1;

    if (gcpl < 0)
        return -1;
    if (H5Pget_link_creation_order(gcpl, &order) < 0) {
        cow_error_native("cannot get the creation properties of a group");
        goto done;
    }
    tracked = (order & H5P_CRT_ORDER_TRACKED) != 0;
    if (tracked) {
        made->type = H5I_GROUP;
        /* noted before its members are looked at: one of them may be this group again */
        if ((made->object = cow_native_group_anonymous(group, gcpl)) == NULL ||
            cow_unlinked_note(&c->unlinked, *made) < 0 || cow_native_info(*made, NULL, H5O_INFO_BASIC, &info) < 0 ||
            cow_map_put(&c->done, address, cow_address(&info.token)) < 0 || copy_header(group, *made, gcpl) < 0)
            goto done;
        m.to = *made;
    }
    if (cow_native_links(group, tracked, mend_link, &m) == 0 &&
        (!tracked || (cow_native_group_counter(group.object, &counter) == 0 && count_up(&m, counter) == 0 &&
                      stop_counting(&m, m.next + 1) == 0)))
        status = 0;
done:
    H5Pclose(gcpl);
    return status;
}

typedef struct holder {
    copying *c;
    cow_loc object;
} holder;

static int note_reference(void *context, const char *name)
{
    holder *h = context;
    hid_t type = cow_native_attribute_type(h->object, name);

    if (type < 0)
        return -1;
    h->c->references = h->c->references || H5Tdetect_class(type, H5T_REFERENCE) > 0;
    H5Tclose(type);
    return 0;
}

static int note_references(copying *c, cow_loc copy)
{
    holder h = {c, copy};

    if (copy.type == H5I_DATASET) {
        hid_t type = cow_native_dataset_type(copy.object);
        if (type < 0)
            return -1;
        c->references = c->references || H5Tdetect_class(type, H5T_REFERENCE) > 0;
        H5Tclose(type);
    }
    return cow_native_attributes(copy, false, note_reference, &h);
}

static int mend_dataset(copying *c, cow_loc copy, cow_loc group, const char *path, cow_loc *made)
{
    cow_dataset *source = NULL;
    int found;

    made->type = H5I_DATASET;
    if (c->from == NULL)
        return convert(c, copy, group, path, &made->object);
    if ((found = cow_dataset_of_copy(c->from, copy.object, &source)) <= 0)
        return found;
    found = c->to == c->from ? share(c, copy, group, source, &made->object)
                             : materialise(c, copy, group, source, &made->object);
    cow_dataset_release(source);
    return found;
}

/* What is to stand in the place of the copied object at ADDRESS, the link NAME of GROUP: *MADE, which the caller closes,
 * its object NULL where the copy is right as it is. */
static int mend(copying *c, cow_loc group, const char *name, const char *path, uint64_t address, cow_loc *made)
{
    uint64_t replacement;
    cow_loc copy;
    H5O_info2_t info;
    int status = 0;

    if (cow_map_get(&c->done, address, &replacement)) {
        H5O_token_t token = cow_token(replacement);
        return replacement == address ? 0 : cow_native_open_token(group, &token, made);
    }
    if (cow_map_put(&c->done, address, address) < 0 || cow_native_open(group, name, &copy) < 0)
        return -1;
    if (c->expand && note_references(c, copy) < 0)
        status = -1;
    else if (copy.type == H5I_GROUP)
        status = mend_group(c, copy, path, address, made);
    else if (copy.type == H5I_DATASET)
        status = mend_dataset(c, copy, group, path, made);
    if (status == 0 && copy.type == H5I_DATASET && made->object != NULL &&
        (cow_native_info(*made, NULL, H5O_INFO_BASIC, &info) < 0 ||
         cow_map_put(&c->done, address, cow_address(&info.token)) < 0 || cow_unlinked_note(&c->unlinked, *made) < 0))
        status = -1;
    c->replaced = c->replaced || made->object != NULL;
    if (status < 0 && made->object != NULL) {
        cow_native_close(*made);
        made->object = NULL;
    }
    if (cow_native_close(copy) < 0)
        status = -1;
    return status;
}

/* A copy of the head's root group is a copy of the application's objects: the history stays behind. */
static int drop_history(cow_file *file, void *from, const H5VL_loc_params_t *from_loc, const char *from_name,
                        cow_loc stage)
{
    static const char path[] = STAGED "/" COW_GROUP;
    H5O_info2_t info;
    int exists;

    if (file == NULL)
        return 0;
    if (cow_native_info((cow_loc){from, from_loc->obj_type}, from_name, H5O_INFO_BASIC, &info) < 0)
        return -1;
    if (cow_address(&info.token) != cow_address(&file->root) || info.fileno != file->fileno)
        return 0;
    exists = cow_native_exists(stage, path);
    return exists > 0 ? cow_native_link_delete(stage, path) : exists;
}

/* With H5O_COPY_EXPAND_REFERENCE_FLAG, HDF5 links what it copied along into the root, by names that begin so. */
static const char EXPANDED[] = "~obj_pointed_by_";

typedef struct expanded {
    copying *c;
    cow_loc root;
    cow_map before; /* addresses of those that were there */
    cow_map met;    /* groups that were looked into */
    char (*name)[sizeof EXPANDED + 20];
    size_t count, room;
    bool refused;
} expanded;

static bool is_along(const char *name, const H5L_info2_t *info)
{
    return strncmp(name, EXPANDED, sizeof EXPANDED - 1) == 0 && info->type == H5L_TYPE_HARD;
}

static int note_before(void *context, const char *name, const H5L_info2_t *info)
{
    expanded *e = context;

    return is_along(name, info) ? cow_map_put(&e->before, cow_address(&info->u.token), 0) : 0;
}

static int note_after(void *context, const char *name, const H5L_info2_t *info)
{
    expanded *e = context;

    if (!is_along(name, info) || strlen(name) >= sizeof *e->name ||
        cow_map_get(&e->before, cow_address(&info->u.token), NULL))
        return 0;
    if (e->count == e->room) {
        size_t room = e->room == 0 ? 8 : 2 * e->room;
        void *more = reallocarray(e->name, room, sizeof *e->name);
        if (more == NULL)
            return cow_error(COW_MEMORY, "no memory for a copy");
        e->name = more;
        e->room = room;
    }
    snprintf(e->name[e->count++], sizeof *e->name, "%s", name);
    return 0;
}

typedef struct inside {
    expanded *e;
    cow_loc group;
} inside;

static int expand_refused(const char *what)
{
    return cow_error(
        COW_UNSUPPORTED,
        "%s: what references lead to cannot be copied along (H5O_COPY_EXPAND_REFERENCE_FLAG) out of a file "
        "with history; copy without the flag, or out of a plain file, which h5cow export makes",
        what);
}

/* Is one of ours among what was copied along? HDF5 has copied a view, which leads nowhere there. */
static int look_inside(void *context, const char *name, const H5L_info2_t *info)
{
    inside *i = context;
    cow_dataset *source = NULL;
    cow_loc copy;
    int status = 0;

    if (info->type != H5L_TYPE_HARD || cow_map_get(&i->e->met, cow_address(&info->u.token), NULL))
        return 0;
    if (cow_map_put(&i->e->met, cow_address(&info->u.token), 0) < 0 || cow_native_open(i->group, name, &copy) < 0)
        return -1;
    if (copy.type == H5I_GROUP) {
        inside below = {i->e, copy};
        status = cow_native_links(copy, false, look_inside, &below);
    } else if (copy.type == H5I_DATASET && (status = cow_dataset_of_copy(i->e->c->from, copy.object, &source)) > 0) {
        cow_dataset_release(source);
        i->e->refused = true;
        status = 0;
    }
    return cow_native_close(copy) < 0 ? -1 : status;
}

/* What was copied along is HDF5's own as far as it goes, or the copy is refused and none of it stays. */
static int check_expanded(expanded *e, const char *from_name)
{
    inside root = {e, e->root};
    int status = 0;

    if (cow_native_links(e->root, false, note_after, e) < 0)
        return -1;
    e->refused = e->count > 0 && e->c->version != NULL;
    for (size_t i = 0; status == 0 && !e->refused && i < e->count; i++) {
        H5L_info2_t info;
        status = cow_native_link_info(e->root, e->name[i], &info) < 0 ? -1 : look_inside(&root, e->name[i], &info);
    }
    return e->refused ? expand_refused(from_name) : status;
}

static void drop_expanded(expanded *e)
{
    for (size_t i = 0; i < e->count; i++)
        cow_native_link_delete(e->root, e->name[i]);
}

/* *MADE: what the copy is from now on. What it takes the place of goes. */
static int take_from(cow_loc stage, cow_loc *made)
{
    return made->object == NULL ? cow_native_open(stage, STAGED, made) : cow_native_link_delete(stage, STAGED);
}

static int pour_all(const copying *c)
{
    for (size_t i = 0; i < c->empty_count; i++)
        if (pour_one(c, c->empty[i].path, c->empty[i].address) < 0)
            return -1;
    return 0;
}

/* The copy is made and mended below a group that has no link, and gets its name when it is whole. */
static int copy_staged(copying *c, void *from, const H5VL_loc_params_t *from_loc, const char *from_name, cow_loc target,
                       const char *to_name, hid_t ocpypl, hid_t dxpl)
{
    cow_loc stage = {.type = H5I_GROUP}, made = {0};
    expanded along = {.c = c, .root.type = H5I_GROUP};
    H5VL_loc_params_t stage_loc = cow_by_self(H5I_GROUP);
    H5L_info2_t info;
    unsigned flags = 0;
    int status = -1;

    if (H5Pget_copy_object(ocpypl, &flags) < 0)
        return cow_error_native("cannot get how to copy '%s'", from_name);
    if (flags & H5O_COPY_EXPAND_REFERENCE_FLAG) {
        c->expand = true;
        if ((along.root.object = cow_native_group_open(target, "/")) == NULL ||
            cow_native_links(along.root, false, note_before, &along) < 0)
            goto done;
    }
    /* Through the application's own opening of the file: between two openings HDF5 empties references, as if these were
     * two files. */
    if ((stage.object = cow_native_group_anonymous(target, H5P_GROUP_CREATE_DEFAULT)) == NULL)
        goto done;
    if (H5VLobject_copy(from, from_loc, from_name, stage.object, &stage_loc, STAGED, cow_native_id(), ocpypl,
                        H5P_LINK_CREATE_DEFAULT, dxpl, NULL) < 0)
        cow_error_native("cannot copy '%s' to '%s'", from_name, to_name);
    else if ((along.root.object == NULL || check_expanded(&along, from_name) == 0) &&
             drop_history(c->from, from, from_loc, from_name, stage) == 0 &&
             cow_native_link_info(stage, STAGED, &info) == 0 &&
             mend(c, stage, STAGED, "", cow_address(&info.u.token), &made) == 0 && take_from(stage, &made) == 0 &&
             pour_all(c) == 0)
        status = c->references && c->replaced ? expand_refused(from_name)
                                              : cow_unlinked_link(&c->unlinked, made, target, to_name);
done:
    if (status < 0)
        drop_expanded(&along);
    if (made.object != NULL && cow_native_close(made) < 0)
        status = -1;
    if (stage.object != NULL && cow_native_group_close(stage.object) < 0)
        status = -1;
    if (along.root.object != NULL && cow_native_group_close(along.root.object) < 0)
        status = -1;
    cow_map_free(&along.before);
    cow_map_free(&along.met);
    free(along.name);
    return status;
}

/* What is copied out of a plain file. */
static int find_source(copying *c, cow_loc from, const char *name)
{
    H5O_info2_t info;

    if (cow_native_open(from, name, &c->source) < 0 || cow_native_info(c->source, NULL, H5O_INFO_BASIC, &info) < 0)
        return -1;
    c->fileno = info.fileno;
    return 0;
}

int cow_object_copy(cow_file *from_file, const char *version, void *from, const H5VL_loc_params_t *from_loc,
                    const char *from_name, cow_file *to_file, void *to, const H5VL_loc_params_t *to_loc,
                    const char *to_name, hid_t ocpypl, hid_t lcpl, hid_t dxpl)
{
    copying c = {.from = from_file, .to = to_file, .version = version};
    unsigned flags = 0;
    int status = -1;

    if (H5Pget_copy_object(ocpypl, &flags) < 0)
        return cow_error_native("cannot get how to copy '%s'", from_name);
    if (from_file != NULL && from_file->handle_lost)
        return cow_error(COW_MEMORY,
                         "%s: there was no memory when another opening of the file was closed, and HDF5 cannot copy "
                         "objects since; close the file and open it again",
                         from_file->name);
    if (to_file != NULL) {
        if (cow_file_begin(to_file) < 0)
            return -1;
        cow_changed_paths(to_file);
    }
    if (from_file != NULL && from_file->writable && from_file->laid_out && cow_commit_datasets(from_file) < 0)
        return cow_file_fail(from_file);
    if (from_file == NULL && (flags & H5O_COPY_EXPAND_REFERENCE_FLAG)) {
        /* the references that HDF5 writes lead to its own copies */
        if (H5VLobject_copy(from, from_loc, from_name, to, to_loc, to_name, cow_native_id(), ocpypl, lcpl, dxpl, NULL) <
            0)
            return cow_error_native("cannot copy '%s' to '%s'", from_name, to_name);
        return 0;
    }
    if (from_file != NULL || find_source(&c, (cow_loc){from, from_loc->obj_type}, from_name) == 0)
        status = copy_staged(&c, from, from_loc, from_name, (cow_loc){to, to_loc->obj_type}, to_name, ocpypl, dxpl);
    if (c.source.object != NULL && cow_native_close(c.source) < 0)
        status = -1;
    for (size_t i = 0; i < c.empty_count; i++)
        free(c.empty[i].path);
    free(c.empty);
    cow_map_free(&c.done);
    cow_map_free(&c.unlinked);
    return status;
}
