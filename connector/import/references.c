/* References: looked at, translated. See references.h and tree.h. */
#include "import/references.h"

#include "base/error.h"
#include "import/tree.h"
#include "native/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool all_zero(const void *bytes, size_t size)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < size; i++)
        if (p[i] != 0)
            return false;
    return true;
}

/* H5R_OBJECT1, H5R_DATASET_REGION1, or H5R_OBJECT2 for any of the new ones. */
static H5R_type_t style(hid_t type)
{
    if (H5Tequal(type, H5T_STD_REF_OBJ) > 0)
        return H5R_OBJECT1;
    return H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? H5R_DATASET_REGION1 : H5R_OBJECT2;
}

static int text_of(H5R_ref_t *element, ssize_t (*get)(const H5R_ref_t *, char *, size_t), char **text)
{
    ssize_t length = get(element, NULL, 0);

    *text = NULL;
    if (length < 0)
        return 0;
    if ((*text = calloc(1, (size_t)length + 1)) == NULL)
        return -1;
    get(element, *text, (size_t)length + 1);
    return 0;
}

/* References that know their file are foreign where it is not FILE. */
static int foreign(hid_t file, H5R_ref_t *element, bool *is)
{
    ssize_t length = H5Fget_name(file, NULL, 0);
    char *own = length < 0 ? NULL : calloc(1, (size_t)length + 1), *other = NULL;
    int status = -1;

    *is = false;
    if (own != NULL && text_of(element, H5Rget_file_name, &other) == 0) {
        H5Fget_name(file, own, (size_t)length + 1);
        *is = other != NULL && strcmp(own, other) != 0;
        status = 0;
    }
    free(other);
    free(own);
    return status;
}

int cow_import_reference_look(hid_t file, hid_t type, void *element, cow_import_reference *r)
{
    hid_t object = H5I_INVALID_HID;
    H5O_info2_t info;
    bool other;
    int status = 0;

    *r = (cow_import_reference){.state = COW_REFERENCE_NULL, .kind = style(type), .region = H5I_INVALID_HID};
    if (all_zero(element, H5Tget_size(type)))
        return 0;
    if (r->kind == H5R_OBJECT2) {
        if ((r->kind = H5Rget_type(element)) == H5R_BADTYPE)
            return 0;
        if (foreign(file, element, &other) < 0)
            return -1;
        if (other) {
            r->state = COW_REFERENCE_FOREIGN;
            return 0;
        }
        object = H5Ropen_object(element, H5P_DEFAULT, H5P_DEFAULT);
    } else
        object = H5Rdereference2(file, H5P_DEFAULT, r->kind, element);
    r->state = COW_REFERENCE_DANGLES;
    if (object < 0 || H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0)
        goto done;
    r->token = info.token;
    r->state = COW_REFERENCE_GOOD;
    if (r->kind == H5R_DATASET_REGION1)
        r->region = H5Rget_region(file, r->kind, element);
    else if (r->kind == H5R_DATASET_REGION2)
        r->region = cow_native_region_open(element);
    else if (r->kind == H5R_ATTR)
        status = text_of(element, H5Rget_attr_name, &r->attribute);
    if ((r->kind == H5R_DATASET_REGION1 || r->kind == H5R_DATASET_REGION2) && r->region < 0)
        r->state = COW_REFERENCE_DANGLES;
done:
    if (object >= 0)
        H5Oclose(object);
    return status;
}

void cow_import_reference_done(cow_import_reference *r)
{
    if (r->region >= 0)
        H5Sclose(r->region);
    free(r->attribute);
}

/* Into NEW, of the file's copy. false: HDF5 cannot make it. */
static bool make(cow_tree *tree, const cow_import_reference *r, const char *path, void *new)
{
    switch (r->kind) {
    case H5R_OBJECT1:
    case H5R_DATASET_REGION1:
        return H5Rcreate(new, tree->to, path, r->kind, r->region) >= 0;
    case H5R_OBJECT2:
        return H5Rcreate_object(tree->to, path, H5P_DEFAULT, new) >= 0;
    case H5R_DATASET_REGION2:
        return H5Rcreate_region(tree->to, path, r->region, H5P_DEFAULT, new) >= 0;
    case H5R_ATTR:
        return r->attribute != NULL && H5Rcreate_attr(tree->to, path, r->attribute, H5P_DEFAULT, new) >= 0;
    case H5R_BADTYPE:
    case H5R_MAXTYPE:
        break;
    }
    return false;
}

static int translate(void *context, hid_t type, void *element)
{
    cow_tree *tree = context;
    unsigned char new[sizeof(H5R_ref_t)] __attribute__((aligned(16))) = {0};
    const cow_tree_object *target = NULL;
    cow_import_reference r;
    int status = cow_import_reference_look(tree->from, type, element, &r);

    if (status < 0 || r.state == COW_REFERENCE_NULL || r.state == COW_REFERENCE_FOREIGN)
        goto done;
    if (r.state == COW_REFERENCE_GOOD)
        target = cow_tree_find(tree, &r.token);
    if (r.state == COW_REFERENCE_DANGLES)
        tree->dangling.count++;
    else if (target == NULL || target->path == NULL || !make(tree, &r, target->path, new)) {
        tree->stray.count++;
        memset(new, 0, sizeof new);
    }
    if (r.kind != H5R_OBJECT1 && r.kind != H5R_DATASET_REGION1)
        H5Rdestroy(element);
    memcpy(element, new, H5Tget_size(type));
done:
    cow_import_reference_done(&r);
    H5Eclear2(H5E_DEFAULT);
    return status < 0 ? cow_tree_no_memory(tree) : 0;
}

int cow_tree_references(cow_tree *tree, hid_t type, size_t count, void *elements)
{
    if (cow_native_references_each(type, count, elements, translate, tree) < 0)
        return -1;
    if (cow_native_references_lend(type, count, elements) == 0) /* those into other files */
        return 0;
    if (tree->why[0] == '\0')
        snprintf(tree->why, sizeof tree->why, "%s", cow_error_message());
    cow_error_clear();
    return -1;
}
