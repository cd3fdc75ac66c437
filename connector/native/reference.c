/* References of HDF5 1.12, read to be written again. See native.h.
 *
 * Into other files: HDF5 1.14.5 writes a reference only after the file that it leads to was opened, which may be gone, or none of ours
 * to open. Of that file it takes but the name: so that is all that the file has which it is given here.
 *
 * Of regions: HDF5 1.14.5 takes the encoded size that a reference had when it was read. Within another lower library bound than the one
 * it was written with the selection is encoded otherwise; where it needs more, zeros are written (H5R__encode_region). So a size is
 * forgotten, and HDF5 computes it again.
 *
 * No call gives a reference its file or its size. An H5R_ref_t begins with the token, a pointer to the name of another file, a
 * third pointer, the id of the file, the size and the type. Nothing is touched that does not look like that.
 */
#include "native/native.h"

#include "base/error.h"
#include "native/datatype.h"

#include <H5VLconnector.h>

#include <stdlib.h>
#include <string.h>

#define NAME_AT H5O_MAX_TOKEN_SIZE
#define FILE_AT (NAME_AT + 2 * sizeof(void *))
#define SIZE_AT (FILE_AT + sizeof(hid_t))
#define TYPE_AT (SIZE_AT + sizeof(uint32_t))

typedef struct lent {
    char *name; /* the last one, and its id */
    hid_t file;
} lent;

/* ---- a connector whose files are a name ---- */

static void *name_open(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, void **request)
{
    (void)flags, (void)fapl, (void)dxpl, (void)request;
    return strdup(name);
}

static herr_t name_get(void *file, H5VL_file_get_args_t *args, hid_t dxpl, void **request)
{
    H5VL_file_get_name_args_t *get = &args->args.get_name;

    (void)dxpl, (void)request;
    if (args->op_type != H5VL_FILE_GET_NAME)
        return -1;
    *get->file_name_len = strlen(file);
    if (get->buf != NULL && get->buf_size > 0) {
        strncpy(get->buf, file, get->buf_size - 1);
        get->buf[get->buf_size - 1] = '\0';
    }
    return 0;
}

static herr_t name_close(void *file, hid_t dxpl, void **request)
{
    (void)dxpl, (void)request;
    free(file);
    return 0;
}

static herr_t name_can(void *file, H5VL_subclass_t subclass, int operation, uint64_t *flags)
{
    (void)file, (void)subclass, (void)operation;
    *flags = 0;
    return 0;
}

static herr_t name_class_of(void *file, H5VL_get_conn_lvl_t level, const H5VL_class_t **class);

static const H5VL_class_t name_class = {
    .version = H5VL_VERSION,
    .value = 511, /* of those for experiments; nobody is told */
    .name = "h5cow-name",
    .file_cls = {.open = name_open, .get = name_get, .close = name_close},
    .introspect_cls = {.get_conn_cls = name_class_of, .opt_query = name_can},
};

static herr_t name_class_of(void *file, H5VL_get_conn_lvl_t level, const H5VL_class_t **class)
{
    (void)file, (void)level;
    *class = &name_class;
    return 0;
}

/* One reference to the id is the caller's. */
static hid_t file_named(lent *l, const char *name)
{
    hid_t fapl, connector;

    if (l->name != NULL && strcmp(l->name, name) == 0)
        return H5Iinc_ref(l->file) < 0 ? H5I_INVALID_HID : l->file;
    free(l->name);
    l->file = H5I_INVALID_HID;
    if ((l->name = strdup(name)) == NULL)
        return H5I_INVALID_HID;
    fapl = H5Pcreate(H5P_FILE_ACCESS);
    connector = H5VLregister_connector(&name_class, H5P_DEFAULT);
    if (fapl >= 0 && connector >= 0 && H5Pset_vol(fapl, connector, NULL) >= 0)
        l->file = H5Fopen(name, H5F_ACC_RDONLY, fapl);
    if (fapl >= 0)
        H5Pclose(fapl);
    if (connector >= 0)
        H5VLclose(connector);
    return l->file;
}

bool cow_native_reference_is_written(const H5R_ref_t *reference)
{
    H5R_type_t kind = H5Rget_type(reference);

    return kind == H5R_OBJECT2 || kind == H5R_DATASET_REGION2 || kind == H5R_ATTR;
}

bool cow_native_reference_is_foreign(const H5R_ref_t *reference)
{
    const char *name;

    if (!cow_native_reference_is_written(reference))
        return false;
    memcpy(&name, reference->u.__data + NAME_AT, sizeof name);
    return name != NULL;
}

static void forget_size(H5R_ref_t *reference)
{
    if (H5Rget_type(reference) == H5R_DATASET_REGION2 &&
        (int8_t)reference->u.__data[TYPE_AT] == (int8_t)H5R_DATASET_REGION2)
        memset(reference->u.__data + SIZE_AT, 0, sizeof(uint32_t));
}

static int lend_one(void *context, hid_t type, void *element)
{
    lent *l = context;
    H5R_ref_t *reference = element;
    const char *name;
    char *told;
    hid_t file;
    ssize_t length = -1;
    bool known = false;

    if (H5Tequal(type, H5T_STD_REF) <= 0)
        return 0;
    forget_size(reference);
    if (!cow_native_reference_is_foreign(reference))
        return 0;
    memcpy(&name, reference->u.__data + NAME_AT, sizeof name);
    memcpy(&file, reference->u.__data + FILE_AT, sizeof file);
    if (file != H5I_INVALID_HID)
        return 0;
    if ((length = H5Rget_file_name(reference, NULL, 0)) > 0 && (told = calloc((size_t)length + 1, 1)) != NULL) {
        known = H5Rget_file_name(reference, told, (size_t)length + 1) == length && strcmp(told, name) == 0;
        free(told);
    }
    if (!known)
        return cow_error(COW_UNSUPPORTED, "a reference into another file that this h5cow cannot copy");
    if ((file = file_named(l, name)) < 0)
        return cow_error_native("cannot copy a reference into the file '%s'", name);
    memcpy(reference->u.__data + FILE_AT, &file, sizeof file);
    return 0;
}

typedef struct each {
    cow_reference_visitor *visit;
    void *context;
} each;

static int visit_reference(void *context, const cow_part *part, size_t count, void *value, void *other)
{
    const each *e = context;

    (void)count;
    (void)other;
    switch (part->kind) {
    case COW_PART_REFERENCE:
        return e->visit(e->context, H5T_STD_REF, value);
    case COW_PART_OBJECT:
        return e->visit(e->context, H5T_STD_REF_OBJ, value);
    case COW_PART_REGION:
        return e->visit(e->context, H5T_STD_REF_DSETREG, value);
    case COW_PART_BYTES:
    case COW_PART_STRING:
    case COW_PART_SEQUENCE:
    case COW_PART_COMPOUND:
    case COW_PART_ARRAY:
        break;
    }
    return 0;
}

int cow_native_references_each(hid_t type, size_t count, void *elements, cow_reference_visitor *visit, void *context)
{
    each e = {visit, context};
    cow_part *part;
    int status;

    if (H5Tdetect_class(type, H5T_REFERENCE) <= 0)
        return 0;
    if ((part = cow_parts_open(NULL, type)) == NULL)
        return -1;
    status = cow_values_each(part, COW_PART_REFERENCES, count, elements, NULL, visit_reference, &e);
    cow_parts_close(part);
    return status;
}

int cow_native_references_lend(hid_t type, size_t n, void *values)
{
    lent l = {.file = H5I_INVALID_HID};
    int status = cow_native_references_each(type, n, values, lend_one, &l);

    free(l.name);
    return status;
}

static int empty_one(void *context, hid_t type, void *reference)
{
    (void)context;
    if (H5Tequal(type, H5T_STD_REF) > 0 && H5Rget_type(reference) != H5R_BADTYPE && H5Rdestroy(reference) < 0)
        return cow_error_native("cannot give up a reference");
    memset(reference, 0, H5Tget_size(type));
    return 0;
}

/* HDF5 leaves what is inside of other elements as it is. An address that means nothing does no harm there; what leads into
 * a heap does. */
static int empty_inner(void *context, hid_t type, void *reference)
{
    return H5Tequal(type, H5T_STD_REF_OBJ) > 0 ? 0 : empty_one(context, type, reference);
}

int cow_native_references_empty(hid_t type, size_t n, void *values)
{
    return cow_native_references_each(type, n, values, H5Tget_class(type) == H5T_REFERENCE ? empty_one : empty_inner,
                                      NULL);
}
