/* References of HDF5 1.12 into other files, read to be written again. HDF5 1.14.5 writes a reference only after the
 * file that it leads to was opened, which may be gone, or none of ours to open. Of that file it takes but the name: so
 * one of this name is made in memory. See native.h.
 *
 * No call gives a reference its file. An H5R_ref_t begins with the token, a pointer to the name of another file, a
 * third pointer, and the id of the file. Nothing is touched that does not look like that.
 */
#include "native/native.h"

#include "error.h"
#include "ids.h"

#include <stdlib.h>
#include <string.h>

#define NAME_AT H5O_MAX_TOKEN_SIZE
#define FILE_AT (NAME_AT + 2 * sizeof(void *))

typedef struct lent {
    void *image; /* of an empty file */
    size_t size;
    char *name; /* the last one, and its id */
    hid_t file;
} lent;

static hid_t memory_fapl(void)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

    if (fapl >= 0 && (H5Pset_vol(fapl, cow_native_id(), NULL) < 0 || H5Pset_fapl_core(fapl, 4096, false) < 0)) {
        H5Pclose(fapl);
        return H5I_INVALID_HID;
    }
    return fapl;
}

static int make_image(lent *l)
{
    hid_t fapl = memory_fapl(), file = H5I_INVALID_HID;
    ssize_t size;
    int status = -1;

    if (fapl < 0 || (file = H5Fcreate("h5cow", H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) < 0 ||
        H5Fflush(file, H5F_SCOPE_LOCAL) < 0 || (size = H5Fget_file_image(file, NULL, 0)) <= 0)
        goto done;
    l->size = (size_t)size;
    if ((l->image = malloc(l->size)) != NULL && H5Fget_file_image(file, l->image, l->size) == size)
        status = 0;
done:
    cow_close(file, fapl);
    return status;
}

/* With an image, HDF5 does not look whether there is a file of that name. One reference to the id is the caller's. */
static hid_t file_named(lent *l, const char *name)
{
    hid_t fapl;

    if (l->name != NULL && strcmp(l->name, name) == 0)
        return H5Iinc_ref(l->file) < 0 ? H5I_INVALID_HID : l->file;
    if (l->image == NULL && make_image(l) < 0)
        return H5I_INVALID_HID;
    free(l->name);
    if ((l->name = strdup(name)) == NULL)
        return H5I_INVALID_HID;
    l->file = H5I_INVALID_HID;
    if ((fapl = memory_fapl()) >= 0) {
        if (H5Pset_file_image(fapl, l->image, l->size) >= 0)
            l->file = H5Fopen(name, H5F_ACC_RDWR, fapl);
        H5Pclose(fapl);
    }
    return l->file;
}

bool cow_native_reference_is_foreign(const H5R_ref_t *reference)
{
    const char *name;

    if (H5Rget_type(reference) <= H5R_DATASET_REGION1)
        return false;
    memcpy(&name, reference->u.__data + NAME_AT, sizeof name);
    return name != NULL;
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

    if (H5Tequal(type, H5T_STD_REF) <= 0 || !cow_native_reference_is_foreign(reference))
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

int cow_references_each(hid_t type, size_t count, void *elements, cow_reference_visitor *visit, void *context)
{
    H5T_class_t class = H5Tget_class(type);
    size_t size = H5Tget_size(type);
    unsigned char *values = elements;
    hid_t inner;
    int status = 0, members;

    if (H5Tdetect_class(type, H5T_REFERENCE) <= 0)
        return 0;
    if (class == H5T_REFERENCE) {
        for (size_t i = 0; status == 0 && i < count; i++)
            status = visit(context, type, values + i * size);
        return status;
    }
    if (class == H5T_COMPOUND) {
        members = H5Tget_nmembers(type);
        for (int m = 0; status == 0 && m < members; m++) {
            if ((inner = H5Tget_member_type(type, (unsigned)m)) < 0)
                return cow_error_native("cannot look into a compound datatype");
            for (size_t i = 0; status == 0 && i < count; i++)
                status = cow_references_each(inner, 1, values + i * size + H5Tget_member_offset(type, (unsigned)m),
                                             visit, context);
            H5Tclose(inner);
        }
        return status;
    }
    if (class != H5T_ARRAY && class != H5T_VLEN)
        return 0;
    if ((inner = H5Tget_super(type)) < 0)
        return cow_error_native("cannot look into a datatype");
    for (size_t i = 0; status == 0 && i < count; i++) {
        if (class == H5T_VLEN) {
            hvl_t sequence;
            memcpy(&sequence, values + i * size, sizeof sequence);
            status = cow_references_each(inner, sequence.len, sequence.p, visit, context);
        } else
            status = cow_references_each(inner, size / H5Tget_size(inner), values + i * size, visit, context);
    }
    H5Tclose(inner);
    return status;
}

int cow_native_references_lend(hid_t type, size_t n, void *values)
{
    lent l = {.file = H5I_INVALID_HID};
    int status = cow_references_each(type, n, values, lend_one, &l);

    free(l.image);
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
    return cow_references_each(type, n, values, H5Tget_class(type) == H5T_REFERENCE ? empty_one : empty_inner, NULL);
}
