/* Addresses and tokens, paths of heads, values that hold others. */
#include "history/values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cow_head_path(char path[COW_PATH_MAX], uint64_t id)
{
    snprintf(path, COW_PATH_MAX, COW_PATH_HEADS "/%llu", (unsigned long long)id);
}

int cow_type_is_heap(hid_t type, bool references)
{
    H5T_class_t class = H5Tget_class(type);
    int heap = 0;

    switch (class) {
    case H5T_STRING:
        return H5Tis_variable_str(type) > 0;
    case H5T_VLEN:
        return 1;
    case H5T_REFERENCE:
        return references && H5Tequal(type, H5T_STD_REF) > 0;
    case H5T_ARRAY: {
        hid_t base = H5Tget_super(type);
        heap = cow_type_is_heap(base, references);
        H5Tclose(base);
        return heap;
    }
    case H5T_COMPOUND:
        for (int m = 0; !heap && m < H5Tget_nmembers(type); m++) {
            hid_t member = H5Tget_member_type(type, (unsigned)m);
            heap = cow_type_is_heap(member, references);
            H5Tclose(member);
        }
        return heap;
    case H5T_INTEGER:
    case H5T_FLOAT:
    case H5T_TIME:
    case H5T_BITFIELD:
    case H5T_OPAQUE:
    case H5T_ENUM:
    default: /* and what only HDF5 2 has: complex numbers */
        break;
    }
    return heap;
}

void cow_dataset_fill_free(hid_t type, bool heap, void *value)
{
    if (value != NULL && heap) {
        hid_t scalar = H5Screate(H5S_SCALAR);
        H5Treclaim(type, scalar, H5P_DATASET_XFER_DEFAULT, value);
        H5Sclose(scalar);
    }
    free(value);
}
