/* Contract: kept_type.h. */
#include "native/kept_type.h"

#include "base/error.h"
#include "base/ids.h"
#include "library/library.h"
#include "native/native.h"

#include <stdlib.h>
#include <string.h>

struct cow_kept_type {
    unsigned users;
    hid_t own;                   /* HDF5's own type that it is, or 0 */
    void *dataset;               /* that has it, the owner's; or NULL */
    hid_t lent;                  /* of the running call, or 0 */
    size_t size;                 /* of `bytes` */
    cow_kept_type *next, **link; /* those with `lent` */
    unsigned char bytes[];       /* as H5Tencode writes it */
};

/* A callback of the program may run another call on another thread (HDF5 2 lets it): each closes what itself has lent. */
static _Thread_local cow_kept_type *all_lent;

/* What the type of a dataset in a file can be, of those: the others are the same as one of them. */
#define STORED 18

/* The variables themselves: each of the names H5T_NATIVE_DOUBLE and so on is a call of H5open as well. */
#define OWN_TYPES                                                                                                      \
    H5T_IEEE_F64LE_g, H5T_IEEE_F32LE_g, H5T_IEEE_F64BE_g, H5T_IEEE_F32BE_g, H5T_STD_I64LE_g, H5T_STD_U64LE_g,          \
        H5T_STD_I32LE_g, H5T_STD_U32LE_g, H5T_STD_I16LE_g, H5T_STD_U16LE_g, H5T_STD_I8LE_g, H5T_STD_U8LE_g,            \
        H5T_STD_I64BE_g, H5T_STD_U64BE_g, H5T_STD_I32BE_g, H5T_STD_U32BE_g, H5T_STD_I16BE_g, H5T_STD_U16BE_g,          \
        H5T_NATIVE_DOUBLE_g, H5T_NATIVE_FLOAT_g, H5T_NATIVE_INT_g, H5T_NATIVE_UINT_g, H5T_NATIVE_LONG_g,               \
        H5T_NATIVE_ULONG_g, H5T_NATIVE_LLONG_g, H5T_NATIVE_ULLONG_g, H5T_NATIVE_SHORT_g, H5T_NATIVE_USHORT_g,          \
        H5T_NATIVE_SCHAR_g, H5T_NATIVE_UCHAR_g

bool cow_type_predefined(hid_t type)
{
    const hid_t own[] = {OWN_TYPES};

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i] == type)
            return true;
    return false;
}

/* What a header says of a type of HDF5's own. */
typedef struct own_message {
    size_t size;
    unsigned char bytes[64]; /* as H5Tencode writes it: two bytes before the message */
} own_message;

/* Of the type at I among OWN_TYPES. NULL: HDF5 does not tell. */
static const own_message *message_of(size_t i)
{
    static own_message known[STORED];
    const hid_t own[] = {OWN_TYPES};
    size_t all = 0;

    if (known[i].size == 0) {
        if (H5Tencode(own[i], NULL, &all) < 0 || all < 3 || all > sizeof known[i].bytes ||
            H5Tencode(own[i], known[i].bytes, &all) < 0)
            return NULL;
        known[i].size = all - 2;
    }
    return &known[i];
}

hid_t cow_type_of_message(const unsigned char *message, size_t size)
{
    const hid_t own[] = {OWN_TYPES};
    const own_message *m;

    for (size_t i = 0; size > 0 && i < STORED && (m = message_of(i)) != NULL; i++)
        /* whatever the version of the message, in the upper half of the first byte */
        if (size == m->size && (message[0] & 15) == (m->bytes[2] & 15) &&
            memcmp(message + 1, m->bytes + 3, size - 1) == 0)
            return own[i];
    return 0;
}

size_t cow_type_message(hid_t type, unsigned char *message, size_t room)
{
    const hid_t own[] = {OWN_TYPES};
    const own_message *m = NULL;

    for (size_t i = 0; m == NULL && i < STORED; i++)
        if (own[i] == type && (m = message_of(i)) == NULL)
            return 0;
    if (m == NULL || m->size > room)
        return 0;
    memcpy(message, m->bytes + 2, m->size);
    return m->size;
}

static hid_t own_type(hid_t type)
{
    const hid_t own[] = {OWN_TYPES};
    H5T_class_t kind = H5Tget_class(type);

    for (size_t i = 0; (kind == H5T_INTEGER || kind == H5T_FLOAT) && i < sizeof own / sizeof *own; i++)
        if (H5Tequal(own[i], type) > 0)
            return own[i];
    return 0;
}

cow_kept_type *cow_kept_type_new(hid_t type)
{
    hid_t own = own_type(type);
    size_t size = 0;
    cow_kept_type *kept = NULL;

    if (own == 0 && H5Tencode(type, NULL, &size) < 0) {
        cow_error_native("cannot keep a datatype");
        return NULL;
    }
    if ((kept = malloc(sizeof *kept + size)) == NULL) {
        cow_error(COW_MEMORY, "no memory for a datatype");
        return NULL;
    }
    *kept = (cow_kept_type){.users = 1, .own = own, .size = size};
    if (own == 0 && H5Tencode(type, kept->bytes, &size) < 0) {
        cow_error_native("cannot keep a datatype");
        free(kept);
        return NULL;
    }
    return kept;
}

cow_kept_type *cow_kept_type_of(void *dataset)
{
    cow_kept_type *kept = malloc(sizeof *kept);

    if (kept == NULL)
        cow_error(COW_MEMORY, "no memory for a datatype");
    else
        *kept = (cow_kept_type){.users = 1, .dataset = dataset};
    return kept;
}

/* Without a name. */
static hid_t type_of(void *dataset)
{
    hid_t type = cow_native_dataset_type(dataset), copy = type < 0 ? type : H5Tcopy(type);

    cow_close(type);
    return copy;
}

cow_kept_type *cow_kept_type_share(cow_kept_type *kept)
{
    kept->users++;
    return kept;
}

static void take_back(cow_kept_type *kept)
{
    if (kept->lent == 0)
        return;
    if (H5Iis_valid(kept->lent) > 0) /* a callback of the program may have closed it */
        H5Tclose(kept->lent);
    kept->lent = 0;
    *kept->link = kept->next;
    if (kept->next != NULL)
        kept->next->link = kept->link;
}

void cow_kept_type_free(cow_kept_type *kept)
{
    if (kept == NULL || --kept->users > 0)
        return;
    take_back(kept);
    free(kept);
}

hid_t cow_kept_type_id(cow_kept_type *kept)
{
    if (kept->own != 0)
        return kept->own;
    if (kept->lent != 0 && H5Iis_valid(kept->lent) > 0)
        return kept->lent;
    take_back(kept);
    hid_t type = kept->dataset != NULL ? type_of(kept->dataset) : cow_library_decode_type(kept->bytes, kept->size);
    if (type < 0)
        return cow_error_native("cannot make a datatype anew");
    kept->lent = type;
    kept->link = &all_lent;
    if ((kept->next = all_lent) != NULL)
        all_lent->link = &kept->next;
    all_lent = kept;
    return type;
}

void cow_kept_types_end_call(void)
{
    hid_t errors;

    if (all_lent == NULL)
        return;
    errors = cow_errors_take(); /* H5Tclose clears it */
    while (all_lent != NULL)
        take_back(all_lent);
    cow_errors_give_back(errors);
}
