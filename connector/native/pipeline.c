/* See pipeline.h. */
#include "native/pipeline.h"

#include "base/error.h"
#include "base/ids.h"

#include <stdlib.h>
#include <string.h>

#define PIPELINE "pline" /* HDF5's property of filters. Only HDF5 knows its form: its bytes are handed on */
#define COMPUTED "h5cow computed filters" /* a list that has them; each copy of this property is a user of it */

static unsigned long taken;

/* ---- what HDF5 calls ---- */

static herr_t give(hid_t list, const char *name, size_t size, void *value)
{
    hid_t computed;

    (void)size; /* that of the library's own property */
    if (H5Pget(list, COMPUTED, &computed) < 0 || computed < 0 || H5Pget(computed, name, value) < 0)
        return -1;
    taken++;
    return 0;
}

static herr_t computed_copied(const char *name, size_t size, void *value)
{
    hid_t computed;

    (void)name;
    memcpy(&computed, value, size);
    return computed < 0 || H5Iinc_ref(computed) > 0 ? 0 : -1;
}

/* At its end HDF5 closes what lists are left one after the other, and this one may be gone already. */
static herr_t computed_closed(const char *name, size_t size, void *value)
{
    hbool_t ends = false;
    hid_t computed;

    (void)name;
    memcpy(&computed, value, size);
    if (computed >= 0 && (H5is_library_terminating(&ends) < 0 || !ends))
        H5Idec_ref(computed);
    return 0;
}

static herr_t computed_deleted(hid_t list, const char *name, size_t size, void *value)
{
    (void)list;
    return computed_closed(name, size, value);
}

/* ---- lists ---- */

/* The filters of LIST become those of COMPUTED, which LIST is given. */
static int hide(hid_t list, hid_t computed)
{
    hid_t plain = H5Pcreate(H5P_DATASET_CREATE);
    size_t size = 0;
    void *none = NULL;
    int status = -1;

    if (plain >= 0 && H5Pget_size(plain, PIPELINE, &size) >= 0 && (none = calloc(1, size)) != NULL &&
        H5Pget(plain, PIPELINE, none) >= 0 && H5Premove(list, PIPELINE) >= 0 &&
        H5Pinsert2(list, PIPELINE, size, none, NULL, give, NULL, NULL, NULL, NULL) >= 0 &&
        H5Pinsert2(list, COMPUTED, sizeof computed, &computed, NULL, NULL, computed_deleted, computed_copied, NULL,
                   computed_closed) >= 0)
        status = 0;
    free(none);
    cow_close(plain);
    return status;
}

static hid_t hidden(hid_t dcpl, hid_t computed)
{
    hid_t list = H5Pcopy(dcpl);

    if (list >= 0 && hide(list, computed) == 0)
        return list;
    cow_error_native("cannot describe the filters of a dataset");
    cow_close(list);
    return H5I_INVALID_HID;
}

hid_t cow_pipeline_refusing(hid_t dcpl)
{
    return hidden(dcpl, H5I_INVALID_HID);
}

/* HDF5's own that are not asked, or compute the same again. */
static bool is_stable(H5Z_filter_t id)
{
    return id == H5Z_FILTER_DEFLATE || id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_FLETCHER32;
}

bool cow_pipeline_stable(hid_t dcpl)
{
    int filters = H5Pget_layout(dcpl) == H5D_CHUNKED ? H5Pget_nfilters(dcpl) : 0; /* others are not asked */

    for (int i = 0; i < filters; i++) {
        unsigned flags, none;
        size_t count = 0;

        if (!is_stable(H5Pget_filter2(dcpl, (unsigned)i, &flags, &count, &none, 0, NULL, NULL)))
            return false;
    }
    return true;
}

hid_t cow_pipeline_computed(hid_t dcpl)
{
    hid_t computed, list;

    if ((computed = H5Pcopy(dcpl)) < 0) {
        cow_error_native("cannot copy the filters of a dataset");
        return H5I_INVALID_HID;
    }
    if (cow_pipeline_stable(dcpl))
        return computed;
    if ((list = hidden(dcpl, computed)) < 0)
        H5Pclose(computed);
    return list;
}

bool cow_pipeline_is_computed(hid_t dcpl)
{
    return dcpl != H5P_DATASET_CREATE_DEFAULT && H5Pexist(dcpl, COMPUTED) > 0;
}

unsigned long cow_pipeline_taken(void)
{
    return taken;
}

hid_t cow_pipeline_told(hid_t list)
{
    hid_t computed = H5I_INVALID_HID;

    if (list < 0 || !cow_pipeline_is_computed(list))
        return list;
    if (H5Pget(list, COMPUTED, &computed) < 0 || (computed = H5Pcopy(computed)) < 0)
        cow_error_native("cannot get the filters of a dataset");
    H5Pclose(list);
    return computed;
}

/* ---- comparing ---- */

/* The parameters of filter I: *COUNT of them; free() them. NULL: the error. */
static unsigned *parameters(hid_t dcpl, unsigned i, H5Z_filter_t *id, unsigned *flags, size_t *count)
{
    unsigned none, *value;

    *count = 0;
    if ((*id = H5Pget_filter2(dcpl, i, flags, count, &none, 0, NULL, NULL)) < 0) {
        cow_error_native("cannot read filter %u of a dataset", i);
        return NULL;
    }
    if ((value = calloc(*count + 1, sizeof *value)) == NULL) {
        cow_error(COW_MEMORY, "no memory for the parameters of a filter");
        return NULL;
    }
    if (H5Pget_filter2(dcpl, i, flags, count, value, 0, NULL, NULL) == *id)
        return value;
    cow_error_native("cannot read filter %u of a dataset", i);
    free(value);
    return NULL;
}

int cow_pipeline_same(hid_t a, hid_t b)
{
    int filters = H5Pget_nfilters(a), same = filters == H5Pget_nfilters(b);

    if (filters < 0)
        return cow_error_native("cannot read the filters of a dataset");
    for (int i = 0; same > 0 && i < filters; i++) {
        H5Z_filter_t id[2];
        unsigned flags[2], *value[2];
        size_t count[2];

        value[0] = parameters(a, (unsigned)i, &id[0], &flags[0], &count[0]);
        value[1] = value[0] == NULL ? NULL : parameters(b, (unsigned)i, &id[1], &flags[1], &count[1]);
        if (value[1] == NULL)
            same = -1;
        else
            same = id[0] == id[1] && flags[0] == flags[1] && count[0] == count[1] &&
                   memcmp(value[0], value[1], count[0] * sizeof *value[0]) == 0;
        free(value[0]);
        free(value[1]);
    }
    return same;
}

int cow_pipeline_take(hid_t dcpl, hid_t from, uint32_t skip)
{
    int filters = H5Pget_nfilters(from), status = 0;

    if (filters < 0 || (H5Pget_nfilters(dcpl) > 0 && H5Premove_filter(dcpl, H5Z_FILTER_ALL) < 0))
        return cow_error_native("cannot copy the filters of a dataset");
    for (int i = 0; status == 0 && i < filters; i++) {
        H5Z_filter_t id;
        unsigned flags, *value;
        size_t count;

        if (skip >> i & 1)
            continue;
        if ((value = parameters(from, (unsigned)i, &id, &flags, &count)) == NULL)
            status = -1;
        else if (H5Pset_filter(dcpl, id, flags, count, value) < 0)
            status = cow_error_native("cannot copy the filters of a dataset");
        free(value);
    }
    return status;
}
