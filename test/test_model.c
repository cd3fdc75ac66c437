/* Every kind of object x every operation: the table of docs/data-model.md.
 *
 * For each kind (model_kinds.c) a file with history and a native one go through the same steps, each between opening and
 * closing: made, changed, copied, moved, deleted, made again. After each the native file is kept. Native HDF5 is the
 * judge (differential/compare.h, and texts of what is read and listed): of the head through the connector and without
 * it, of each version as FILE@N, by at=N, and without the connector. What is compared for a cell says `cells` in judge().
 *
 * test_model [KIND | KIND/OPERATION]; --list prints the table for test/data_model.py. Run with
 * HDF5_VOL_CONNECTOR=h5cow.
 */
#include "differential/compare.h"
#include "files.h"
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define COW      "test_model_cow.h5"
#define NATIVE   "test_model_native.h5"
#define VERSIONS "/_versioned_data/versions"

static const char *const operation_names[] = {"create", "read", "modify",      "delete",       "copy",
                                              "move",   "list", "old version", "without h5cow"};

typedef enum { MADE, CHANGED, COPIED, MOVED, DELETED, AGAIN, STEPS } step;
static const operation step_operations[] = {CREATE, MODIFY, COPY, MOVE, DELETE, CREATE};
static const char *const step_names[] = {"made", "changed", "copied", "moved", "deleted", "made again"};

/* ---- texts ---- */

typedef struct telling {
    listing *out;
    hid_t group;
    const char *prefix; /* of absolute soft links in a version that is read without the connector */
    bool follow;        /* what references lead to */
    bool elements;      /* of all datasets, else of those without sources elsewhere */
} telling;

static void tell_note(listing *out, hid_t object)
{
    int note = -1;
    hid_t attribute = H5Aexists(object, "note") > 0 ? H5Aopen(object, "note", H5P_DEFAULT) : H5I_INVALID_HID;

    if (attribute >= 0) {
        assert_true(H5Aread(attribute, H5T_NATIVE_INT, &note) >= 0);
        H5Aclose(attribute);
    }
    say(out, "object with note %d ", note);
}

static void tell_selected(listing *out, hid_t dataset, hid_t space)
{
    hssize_t n = H5Sget_select_npoints(space);
    hsize_t count = n < 0 ? 0 : (hsize_t)n;
    hid_t memory = H5Screate_simple(1, &count, NULL);
    int *values = calloc(count + 1, sizeof *values);

    assert_true(n > 0 && H5Dread(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values) >= 0);
    for (hsize_t i = 0; i < count; i++)
        say(out, "%d ", values[i]);
    free(values);
    H5Sclose(memory);
}

static void tell_reference(listing *out, hid_t at, hid_t type, unsigned char *value)
{
    bool object = H5Tequal(type, H5T_STD_REF_OBJ) > 0, region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
    H5R_ref_t *reference = (H5R_ref_t *)value;
    hid_t id = H5I_INVALID_HID, space = H5I_INVALID_HID;

    H5E_BEGIN_TRY
    {
        if (object || region)
            id = H5Rdereference2(at, H5P_DEFAULT, object ? H5R_OBJECT1 : H5R_DATASET_REGION1, value);
        else if (H5Rget_type(reference) == H5R_ATTR)
            id = H5Ropen_attr(reference, H5P_DEFAULT, H5P_DEFAULT);
        else
            id = H5Ropen_object(reference, H5P_DEFAULT, H5P_DEFAULT);
        if (region)
            space = H5Rget_region(at, H5R_DATASET_REGION1, value);
        else if (!object && H5Rget_type(reference) == H5R_DATASET_REGION2)
            space = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT);
    }
    H5E_END_TRY
    say(out, "-> ");
    if (id >= 0 && H5Iget_type(id) == H5I_ATTR) {
        int number = -1;

        assert_true(H5Aread(id, H5T_NATIVE_INT, &number) >= 0);
        say(out, "attribute with %d ", number);
        H5Aclose(id);
    } else if (id >= 0) {
        tell_note(out, id);
        if (space >= 0)
            tell_selected(out, id, space);
        H5Oclose(id);
    } else
        say(out, "nothing ");
    if (space >= 0)
        H5Sclose(space);
}

/* Elements of a dataset or attribute: a part of it, strided, where it has two rows and more. */
static void tell_values(const telling *t, hid_t object)
{
    bool attribute = H5Iget_type(object) == H5I_ATTR;
    hid_t type = attribute ? H5Aget_type(object) : H5Dget_type(object);
    hid_t space = attribute ? H5Aget_space(object) : H5Dget_space(object), memory;
    hsize_t dims[H5S_MAX_RANK] = {0}, start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], n;
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    unsigned char *values;
    herr_t status;

    assert_true(type >= 0 && space >= 0);
    if (!attribute && rank > 0 && dims[0] > 1) {
        for (int i = 0; i < rank; i++) {
            start[i] = dims[i] > 3;
            stride[i] = 3;
            count[i] = (dims[i] - start[i] + 2) / 3;
        }
        assert_true(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL) >= 0);
    }
    n = (hsize_t)H5Sget_select_npoints(space);
    memory = H5Screate_simple(1, &n, NULL);
    values = calloc(n + 1, H5Tget_size(type));
    status = attribute ? H5Aread(object, type, values) : H5Dread(object, type, memory, space, H5P_DEFAULT, values);
    assert_true(status >= 0);
    for (hsize_t i = 0; status >= 0 && i < n; i++) {
        unsigned char *value = values + i * H5Tget_size(type);

        if (H5Tget_class(type) != H5T_REFERENCE)
            say_value(t->out, type, value);
        else if (t->follow)
            tell_reference(t->out, object, type, value);
    }
    say(t->out, "\n");
    assert_true(H5Treclaim(type, memory, H5P_DEFAULT, values) >= 0);
    free(values);
    H5Sclose(memory);
    H5Sclose(space);
    H5Tclose(type);
}

static herr_t tell_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    const telling *t = context;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);

    (void)info;
    assert_true(attribute >= 0);
    say(t->out, "  @%s ", name);
    tell_values(t, attribute);
    assert_true(H5Aclose(attribute) >= 0);
    return 0;
}

static void tell_sources(listing *out, hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset);
    size_t count = 0;

    say(out, "  external files %d\n", H5Pget_external_count(dcpl));
    if (H5Pget_layout(dcpl) == H5D_VIRTUAL)
        assert_true(H5Pget_virtual_count(dcpl, &count) >= 0);
    for (size_t i = 0; i < count; i++) {
        char name[200] = "";
        hid_t space = H5Pget_virtual_vspace(dcpl, i);

        assert_true(H5Pget_virtual_dsetname(dcpl, i, name, sizeof name) >= 0);
        if (strncmp(name, "/_versioned_data/", 17) != 0) /* D8 */
            say(out, "  %lld elements of %s\n", (long long)H5Sget_select_npoints(space), name);
        H5Sclose(space);
    }
    H5Pclose(dcpl);
}

static herr_t tell_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    const telling *t = context;
    char value[1000] = "";
    hid_t object;

    say(t->out, "%.400s: link type %d", name, (int)info->type);
    if (info->type != H5L_TYPE_HARD) {
        const char *from = value;

        assert_true(info->u.val_size <= sizeof value && H5Lget_val(group, name, value, sizeof value, H5P_DEFAULT) >= 0);
        if (info->type == H5L_TYPE_SOFT && strncmp(value, t->prefix, strlen(t->prefix)) == 0)
            from += strlen(t->prefix);
        for (const char *c = from; c < value + info->u.val_size; c++)
            say(t->out, "%c", *c < ' ' ? '|' : *c);
    }
    say(t->out, "\n");
    H5E_BEGIN_TRY
    {
        object = H5Oopen(group, name, H5P_DEFAULT);
    }
    H5E_END_TRY
    if (object < 0) {
        say(t->out, "  leads nowhere\n");
        return 0;
    }
    tell_note(t->out, object);
    if (H5Iget_type(object) == H5I_DATASET) {
        if (t->follow)
            tell_sources(t->out, object);
        if (t->elements)
            tell_values(t, object);
    }
    assert_true(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, tell_attribute, context) >= 0);
    assert_true(H5Oclose(object) >= 0);
    return 0;
}

/* Everything that is read below GROUP, along all kinds of links. */
static void tell_reading(listing *out, hid_t group, const char *prefix, bool follow, bool elements)
{
    telling t = {.out = out, .group = group, .prefix = prefix, .follow = follow, .elements = elements};

    clear(out);
    assert_true(H5Lvisit2(group, H5_INDEX_NAME, H5_ITER_INC, tell_link, &t) >= 0);
}

static bool with_charset; /* that of link names is lost in versions and copies: a connector cannot set it */

static herr_t list_link(hid_t group, const char *name, const H5L_info2_t *info, void *context)
{
    H5L_info2_t again;
    H5O_info2_t object;

    assert_true(H5Lexists(group, name, H5P_DEFAULT) == 1 && H5Lget_info2(group, name, &again, H5P_DEFAULT) >= 0);
    assert_true(again.type == info->type && again.cset == info->cset);
    say(context, "%.400s %d", name, (int)info->type);
    if (with_charset)
        say(context, " character set %d", (int)info->cset);
    if (info->type == H5L_TYPE_HARD && H5Oget_info_by_name3(group, name, &object, H5O_INFO_ALL, H5P_DEFAULT) >= 0)
        say(context, " object %d, %llu attributes", (int)object.type, (unsigned long long)object.num_attrs);
    else if (info->type == H5L_TYPE_HARD)
        say(context, " no object");
    say(context, "\n");
    return 0;
}

static herr_t list_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object;
    say(context, "  %s: %llu bytes\n", name, (unsigned long long)info->data_size);
    return 0;
}

static herr_t list_object(hid_t at, const char *name, const H5O_info2_t *info, void *context)
{
    hid_t object = H5Oopen(at, name, H5P_DEFAULT), plist;
    unsigned order = 0;
    char text[600];
    ssize_t length;

    assert_true(object >= 0);
    say(context, "object %.400s type %d\n", name, (int)info->type);
    plist = info->type == H5O_TYPE_GROUP     ? H5Gget_create_plist(object)
            : info->type == H5O_TYPE_DATASET ? H5Dget_create_plist(object)
                                             : H5Tget_create_plist(object);
    assert_true(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_DEC, NULL, list_attribute, context) >= 0);
    assert_true(H5Pget_attr_creation_order(plist, &order) >= 0);
    if (order & H5P_CRT_ORDER_TRACKED)
        assert_true(H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, list_attribute, context) >= 0);
    for (hsize_t i = 0; i < info->num_attrs; i++) {
        length = H5Aget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, text, sizeof text, H5P_DEFAULT);
        assert_true(length >= 0);
        say(context, "  attribute %llu %.400s\n", (unsigned long long)i, text);
    }
    if (info->type == H5O_TYPE_GROUP) {
        H5G_info_t group;

        assert_true(H5Gget_info(object, &group) >= 0);
        assert_true(H5Literate2(object, H5_INDEX_NAME, H5_ITER_DEC, NULL, list_link, context) >= 0);
        assert_true(H5Pget_link_creation_order(plist, &order) >= 0);
        if (order & H5P_CRT_ORDER_TRACKED)
            assert_true(H5Literate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, list_link, context) >= 0);
        for (hsize_t i = 0; i < group.nlinks; i++) {
            length = H5Lget_name_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, text, sizeof text, H5P_DEFAULT);
            assert_true(length >= 0);
            say(context, "  link %llu of %llu %.500s\n", (unsigned long long)i, (unsigned long long)group.nlinks, text);
        }
    }
    H5Pclose(plist);
    assert_true(H5Oclose(object) >= 0);
    return 0;
}

/* By all calls that list. */
static void tell_listing(listing *out, hid_t group)
{
    clear(out);
    assert_true(H5Ovisit3(group, H5_INDEX_NAME, H5_ITER_INC, list_object, out, H5O_INFO_ALL) >= 0);
    assert_true(H5Lvisit2(group, H5_INDEX_NAME, H5_ITER_DEC, list_link, out) >= 0);
}

/* ---- files ---- */

static void kept_name(char name[60], unsigned version)
{
    snprintf(name, 60, "test_model_kept_%u.h5", version);
}

static unsigned count_versions(void)
{
    hid_t file = H5Fopen(COW, H5F_ACC_RDONLY, native_fapl), group = H5Gopen2(file, VERSIONS, H5P_DEFAULT);
    H5G_info_t info = {0};

    assert_true(file >= 0 && group >= 0 && H5Gget_info(group, &info) >= 0);
    assert_true(H5Gclose(group) >= 0 && H5Fclose(file) >= 0);
    return (unsigned)info.nlinks;
}

static hid_t at_version(unsigned version)
{
    hid_t connector = H5VLget_connector_id_by_name("h5cow"), fapl = H5Pcreate(H5P_FILE_ACCESS);
    char text[40];
    void *info = NULL;

    snprintf(text, sizeof text, "at=%u", version);
    assert_true(H5VLconnector_str_to_info(text, connector, &info) >= 0 && H5Pset_vol(fapl, connector, info) >= 0);
    assert_true(H5VLfree_connector_info(connector, info) >= 0);
    H5VLclose(connector);
    return fapl;
}

/* ---- judgement ---- */

static hid_t scratch;
static bool counts;     /* kind.counts of the one that is tested */
static const char *row; /* its name */

/* What fails from now on fails for operation O. */
static void cell(operation o, const char *what)
{
    during("%s/%s: %s", row, operation_names[o], what);
}

static void compare(const char *what, reached how, const char *prefix, hid_t native, hid_t found, bool deleted)
{
    comparison c = {.how = how,
                    .scratch = scratch,
                    .deleted = deleted,
                    .uncounted = counts && how == REACHED_AT,
                    .chunk_bytes = true,
                    .unfollowed = true,
                    .stack = H5I_INVALID_HID};

    snprintf(c.prefix, sizeof c.prefix, "%s", prefix);
    if (!compare_trees(&c, native, found))
        fail_msg("%s: %.1500s", what, c.why);
    if (c.stack >= 0)
        H5Eclose_stack(c.stack);
}

static void compare_roots(const char *what, reached how, const hid_t files[2], bool deleted)
{
    hid_t roots[2] = {H5Gopen2(files[0], "/", H5P_DEFAULT), H5Gopen2(files[1], "/", H5P_DEFAULT)};

    assert_true(roots[0] >= 0 && roots[1] >= 0);
    compare(what, how, "", roots[0], roots[1], deleted);
    assert_true(H5Gclose(roots[0]) >= 0 && H5Gclose(roots[1]) >= 0);
}

/* FOUND, opened with FAPL, shows at PATH what the native file KEPT has. */
static void judge(const kind *k, const char *what, reached how, const char *found, hid_t fapl, const char *path,
                  const char *kept, step s)
{
    static listing texts[2];
    const operation whole = how == REACHED_HEAD ? step_operations[s] : how == REACHED_AT ? OLD : STOCK;
    hid_t files[2], groups[2];
    char prefix[100];
    bool version = strcmp(path, "") != 0, follow = !(how == REACHED_VERSION && version),
         elements = !(k->stock_shows_head && !follow);

    cell(whole, what);
    snprintf(prefix, sizeof prefix, "%s/" MODEL_GROUP, path);
    files[0] = H5Fopen(kept, H5F_ACC_RDONLY, native_fapl);
    files[1] = H5Fopen(found, H5F_ACC_RDONLY, fapl);
    groups[0] = H5Gopen2(files[0], MODEL_GROUP, H5P_DEFAULT);
    groups[1] = H5Gopen2(files[1], prefix, H5P_DEFAULT);
    assert_true(groups[0] >= 0 && groups[1] >= 0);
    if (elements)
        compare(what, how, path, groups[0], groups[1], s >= MOVED);
    if (how != REACHED_VERSION)
        compare_roots(what, how, files, s >= MOVED);
    cell(how == REACHED_HEAD ? READ : whole, what);
    tell_reading(&texts[0], groups[0], "", follow, elements);
    tell_reading(&texts[1], groups[1], path, follow, elements);
    assert_true(same_text(what, &texts[0], &texts[1]));
    cell(how == REACHED_HEAD ? LIST : whole, what);
    with_charset = how == REACHED_HEAD && (s == MADE || s == CHANGED);
    tell_listing(&texts[0], groups[0]);
    tell_listing(&texts[1], groups[1]);
    assert_true(same_text(what, &texts[0], &texts[1]));
    for (int i = 0; i < 2; i++)
        assert_true(H5Gclose(groups[i]) >= 0 && H5Fclose(files[i]) >= 0);
}

/* ---- steps ---- */

static void act(const kind *k, hid_t at, step s)
{
    hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);

    assert_true(H5Pset_create_intermediate_group(lcpl, 1) >= 0);
    switch (s) {
    case MADE:
        k->make(k, at, 1);
        break;
    case CHANGED:
        k->change(k, at, 2);
        break;
    case COPIED:
        if (k->copy != NULL)
            k->copy(at);
        else if (model_side == 1 && k->native_cannot_copy) { /* the same by other means */
            assert_true(H5Lmove(at, "x", at, "put aside", H5P_DEFAULT, H5P_DEFAULT) >= 0);
            k->make(k, at, 1);
            k->change(k, at, 2);
            assert_true(H5Lmove(at, "x", at, "copies/c", lcpl, H5P_DEFAULT) >= 0);
            assert_true(H5Lmove(at, "put aside", at, "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        } else
            assert_true(H5Ocopy(at, "x", at, "copies/c", H5P_DEFAULT, lcpl) >= 0);
        break;
    case MOVED:
        if (k->move != NULL)
            k->move(at);
        else
            assert_true(H5Lmove(at, "x", at, "moved/y", lcpl, H5P_DEFAULT) >= 0);
        break;
    case DELETED:
        if (k->remove != NULL)
            k->remove(at);
        else
            assert_true(H5Ldelete(at, "moved/y", H5P_DEFAULT) >= 0);
        break;
    case AGAIN:
        k->make(k, at, 3);
        break;
    case STEPS:
        break;
    }
    H5Pclose(lcpl);
}

static void do_step(const kind *k, step s)
{
    hid_t files[2], groups[2], fcpl = k->fcpl == NULL ? H5Pcopy(H5P_FILE_CREATE_DEFAULT) : k->fcpl();
    hid_t native = H5Pcopy(native_fapl);
    char what[200];

    if (k->new_format)
        assert_true(H5Pset_libver_bounds(native, H5F_LIBVER_V110, H5F_LIBVER_LATEST) >= 0);
    for (int side = 0; side < 2; side++) {
        hid_t fapl = side == 0 ? H5P_DEFAULT : native;

        model_side = side;
        if (s == MADE)
            files[side] = H5Fcreate(side == 0 ? COW : NATIVE, H5F_ACC_TRUNC, fcpl, fapl);
        else
            files[side] = H5Fopen(side == 0 ? COW : NATIVE, H5F_ACC_RDWR, fapl);
        groups[side] = s == MADE ? H5Gcreate2(files[side], MODEL_GROUP, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                                 : H5Gopen2(files[side], MODEL_GROUP, H5P_DEFAULT);
        assert_true(files[side] >= 0 && groups[side] >= 0);
        act(k, groups[side], s);
    }
    snprintf(what, sizeof what, "%s, before it is closed", step_names[s]);
    compare(what, REACHED_HEAD, "", groups[1], groups[0], s >= MOVED);
    for (int side = 0; side < 2; side++)
        assert_true(H5Gclose(groups[side]) >= 0 && H5Fclose(files[side]) >= 0);
    H5Pclose(native);
    H5Pclose(fcpl);
}

/* H5Ocopy between files: from the head and from a version into a file with history and into a plain one, and from a plain
 * file into one with history. SOURCE is what the native file had. */
static void copy_between_files(const char *cow, const char *source)
{
    static const char *const copies[] = {"test_model_copy_native.h5", "test_model_copy_cow.h5",
                                         "test_model_copy_plain.h5", "test_model_copy_from_plain.h5"};
    hid_t to[COUNT(copies)], from[3];

    from[0] = H5Fopen(source, H5F_ACC_RDONLY, native_fapl);
    from[1] = H5Fopen(cow, H5F_ACC_RDONLY, H5P_DEFAULT);
    from[2] = H5Fopen(source, H5F_ACC_RDONLY, H5P_DEFAULT);
    for (size_t i = 0; i < COUNT(copies); i++) {
        to[i] = H5Fcreate(copies[i], H5F_ACC_TRUNC, H5P_DEFAULT, i == 0 || i == 2 ? native_fapl : H5P_DEFAULT);
        if (i == 2) { /* plain, but opened through the connector */
            assert_true(H5Fclose(to[i]) >= 0);
            to[i] = H5Fopen(copies[i], H5F_ACC_RDWR, H5P_DEFAULT);
        }
        assert_true(to[i] >= 0);
#if H5_VERSION_GE(2, 0,                                                                                                \
                  0) /* There native refuses to read a virtual dataset when even the group of a source is missing. */
        assert_true(H5Gclose(H5Gcreate2(to[i], MODEL_GROUP, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) >= 0);
#endif
        assert_true(H5Ocopy(from[i == 0   ? 0
                                 : i == 3 ? 2
                                          : 1],
                            MODEL_GROUP "/x", to[i], "x", H5P_DEFAULT, H5P_DEFAULT) >= 0);
        assert_true(H5Fclose(to[i]) >= 0);
    }
    for (size_t i = 0; i < COUNT(from); i++)
        assert_true(H5Fclose(from[i]) >= 0);
    to[0] = H5Fopen(copies[0], H5F_ACC_RDONLY, native_fapl);
    for (size_t i = 1; i < COUNT(copies); i++) {
        to[i] = H5Fopen(copies[i], H5F_ACC_RDONLY, i == 2 ? native_fapl : H5P_DEFAULT);
        compare_roots(copies[i], REACHED_HEAD, (hid_t[]){to[0], to[i]}, true);
        assert_true(H5Fclose(to[i]) >= 0);
    }
    assert_true(H5Fclose(to[0]) >= 0);
    for (size_t i = 0; i < COUNT(copies); i++)
        remove(copies[i]);
}

/* ---- the table ---- */

static void run_kind(const kind *k)
{
    struct {
        step s;
        unsigned version;
    } done[STEPS];
    unsigned steps = 0, versions = 0;
    char what[200], kept[60], name[100];

    cell(CREATE, "before anything");
    counts = k->counts;
    remove(COW);
    remove(NATIVE);
    model_begin();
    for (step s = MADE; s < STEPS; s++) {
        if (k->none[step_operations[s]] != NULL)
            continue;
        cell(step_operations[s], step_names[s]);
        do_step(k, s);
        done[steps].s = s;
        done[steps].version = count_versions();
        assert_true(done[steps].version == versions + 1 || (k->data_elsewhere && done[steps].version == versions));
        versions = done[steps].version;
        kept_name(kept, versions);
        assert_true(copy_file(NATIVE, kept));
        snprintf(what, sizeof what, "head, %s", step_names[s]);
        judge(k, what, REACHED_HEAD, COW, H5P_DEFAULT, "", kept, s);
        snprintf(what, sizeof what, "head without h5cow, %s", step_names[s]);
        judge(k, what, REACHED_VERSION, COW, native_fapl, "", kept, s);
        cell(COPY, "between files");
        if (s == CHANGED && k->copy == NULL && !k->native_cannot_copy && !k->copy_in_file_only) {
            copy_between_files(COW, kept);
            kept_name(kept, 1);
            copy_between_files(COW "@1", kept);
        }
        steps++;
    }
    for (unsigned i = 0; i < steps; i++) {
        hid_t fapl = at_version(done[i].version);

        kept_name(kept, done[i].version);
        snprintf(name, sizeof name, COW "@%u", done[i].version);
        snprintf(what, sizeof what, "FILE@%u, %s", done[i].version, step_names[done[i].s]);
        judge(k, what, REACHED_AT, name, H5P_DEFAULT, "", kept, done[i].s);
        snprintf(what, sizeof what, "at=%u, %s", done[i].version, step_names[done[i].s]);
        judge(k, what, REACHED_AT, COW, fapl, "", kept, done[i].s);
        snprintf(what, sizeof what, "version %u without h5cow, %s", done[i].version, step_names[done[i].s]);
        snprintf(name, sizeof name, VERSIONS "/%u", done[i].version);
        judge(k, what, REACHED_VERSION, COW, native_fapl, name, kept, done[i].s);
        H5Pclose(fapl);
    }
    cell(CREATE, "what is left open");
    assert_true(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 1); /* scratch */
    for (unsigned i = 0; i < steps; i++) {
        kept_name(kept, done[i].version);
        remove(kept);
    }
    model_end();
}

static void row_name(const kind *k, char name[200])
{
    snprintf(name, 200, "%s::%s", k->family, k->name);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '_')
            *c = ' ';
}

static void test_kind(void **state)
{
    const kind *k = *state;
    char name[200];

    row_name(k, name);
    row = name;
    run_kind(k);
    for (operation o = CREATE; o < OPERATIONS; o++)
        if (k->none[o] == NULL)
            printf("ok     %s/%s\n", name, operation_names[o]);
    fflush(stdout);
}

static int begin(void **state)
{
    hid_t core;
    int status = through_begin(state);

    core = H5Pcopy(native_fapl);
    H5Pset_fapl_core(core, 1 << 16, false);
    scratch = H5Fcreate("test_model_scratch.h5", H5F_ACC_TRUNC, H5P_DEFAULT, core);
    H5Pclose(core);
    return scratch < 0 ? -1 : status;
}

static int end(void **state)
{
    herr_t status = H5Fclose(scratch);

    remove(COW);
    remove(NATIVE);
    return through_end(state) < 0 || status < 0 ? -1 : 0;
}

/* One line a row, fields separated by tabs: its name, its note, and for each operation why there is none. */
static void print_table(void)
{
    kind k;

    printf("kind\tnote");
    for (operation o = CREATE; o < OPERATIONS; o++)
        printf("\t%s", operation_names[o]);
    printf("\n");
    for (size_t i = 0; model_kind(i, &k); i++) {
        char name[200];
        row_name(&k, name);
        printf("%s\t%s", name, k.note == NULL ? "" : k.note);
        for (operation o = CREATE; o < OPERATIONS; o++)
            printf("\t%s", k.none[o] == NULL ? "" : k.none[o]);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static kind kinds[200];
    static char names[COUNT(kinds)][200];
    struct CMUnitTest tests[COUNT(kinds)];
    size_t rows = 0;

    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        print_table();
        return 0;
    }
    for (size_t i = 0; model_kind(i, &kinds[rows]); i++) {
        row_name(&kinds[rows], names[rows]);
        if (argc > 1 && strncmp(argv[1], names[rows], strcspn(argv[1], "/")) != 0)
            continue;
        tests[rows] = (struct CMUnitTest){names[rows], test_kind, NULL, NULL, &kinds[rows]};
        if (++rows == COUNT(kinds))
            return 2;
    }
    return test_table_main(tests, rows, 1, argv, begin, end);
}
