/* Conversion by HDF5's own means: see convert.h. H5Tconvert for types, and for data transforms, which have no function
 * of their own, a dataset in a file in memory, written with the transform and read back without. */
#include "io/convert.h"

#include "base/error.h"
#include "base/ids.h"
#include "native/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_INCREMENT (64u << 10)
#define MOST_MEMBERS   100 /* of a compound that are asked for one by one */

/* HDF5 calls it an error to ask when there is none. Mostly nothing is printed anyhow (vol/error_printing.c): to find that out costs
 * less than to turn it off. */
bool cow_conversion_transforms(hid_t dxpl)
{
    H5E_auto2_t print = NULL;
    void *data = NULL;
    ssize_t length = 0;

    if (cow_is_default_transfer(dxpl))
        return false;
    if (H5Eget_auto2(H5E_DEFAULT, &print, &data) >= 0 && print == NULL)
        return H5Pget_data_transform(dxpl, NULL, 0) > 0;
    H5E_BEGIN_TRY
    length = H5Pget_data_transform(dxpl, NULL, 0);
    H5E_END_TRY
    return length > 0;
}

int cow_conversion_open(cow_conversion *conversion, hid_t file_type, size_t file_size, hid_t mem_type, bool known,
                        hid_t dxpl, bool write)
{
    H5T_cdata_t *path = NULL;
    htri_t same = known ? 1 : H5Tequal(file_type, mem_type);

    if (same < 0)
        return cow_error_native("the memory datatype is no datatype");
    *conversion = (cow_conversion){.from = write ? mem_type : file_type,
                                   .to = write ? file_type : mem_type,
                                   .dxpl = dxpl == H5P_DEFAULT ? cow_default_transfer() : dxpl,
                                   .mem_type = mem_type,
                                   .write = write,
                                   .same = same};
    conversion->transform = cow_conversion_transforms(dxpl);
    conversion->needed = !same || conversion->transform;
    size_t mem_size = same ? file_size : H5Tget_size(mem_type);
    if (mem_size == 0)
        return cow_error_native("cannot get the size of a datatype");
    conversion->from_size = write ? mem_size : file_size;
    conversion->to_size = write ? file_size : mem_size;
    conversion->size = mem_size > file_size ? mem_size : file_size;
    if (same)
        return 0;
    if (H5Tfind(conversion->from, conversion->to, &path) == NULL)
        return cow_error_native("HDF5 has no conversion between the datatype in memory and the one in the file");
    if (path->need_bkg == H5T_BKG_YES || (path->need_bkg == H5T_BKG_TEMP && H5Pget_preserve(conversion->dxpl) > 0))
        conversion->background = COW_BACKGROUND_CONTENT;
    else if (path->need_bkg == H5T_BKG_TEMP)
        conversion->background = COW_BACKGROUND_SPACE;
    return 0;
}

/* ---- compounds ---- */

/* Is there anything in TYPE that HDF5 converts even to the same type, since it is more than its bytes? */
static bool is_bytes(hid_t type)
{
    return H5Tget_class(type) == H5T_COMPOUND && H5Tdetect_class(type, H5T_REFERENCE) == 0 &&
           H5Tdetect_class(type, H5T_VLEN) == 0;
}

/* Member NUMBER of MEM_TYPE, if the file has it. 1: it has, and PART is what is to be copied; 0: it has not; -1: it has another type. */
static int pick_member(hid_t file_type, hid_t mem_type, unsigned number, cow_element_part *part)
{
    char *name = H5Tget_member_name(mem_type, number);
    hid_t ours = H5I_INVALID_HID, theirs = H5I_INVALID_HID;
    int at = name == NULL ? -1 : H5Tget_member_index(file_type, name), status = name == NULL ? -1 : 0;

    if (at >= 0) {
        ours = H5Tget_member_type(file_type, (unsigned)at);
        theirs = H5Tget_member_type(mem_type, number);
        status = ours >= 0 && theirs >= 0 && H5Tequal(ours, theirs) > 0 && H5Tis_variable_str(ours) <= 0 ? 1 : -1;
        *part = (cow_element_part){.in_chunk = H5Tget_member_offset(file_type, (unsigned)at),
                                   .in_memory = H5Tget_member_offset(mem_type, number),
                                   .size = H5Tget_size(ours)};
    }
    H5free_memory(name);
    cow_close(ours, theirs);
    return status == 1 && part->size == 0 ? -1 : status;
}

size_t cow_conversion_parts(const cow_conversion *conversion, cow_element_part part[COW_CONVERSION_PARTS])
{
    hid_t file_type = conversion->write ? conversion->to : conversion->from, mem_type = conversion->mem_type;
    int members;
    size_t n = 0;

    if (!conversion->needed || conversion->same || conversion->transform || !is_bytes(file_type) ||
        !is_bytes(mem_type) || (members = H5Tget_nmembers(mem_type)) < 0 || members > MOST_MEMBERS)
        return 0;
    for (unsigned i = 0; i < (unsigned)members; i++) {
        cow_element_part next, *last = n == 0 ? NULL : &part[n - 1];
        int has = pick_member(file_type, mem_type, i, &next);

        if (has < 0)
            return 0;
        if (has == 0)
            continue;
        if (last != NULL && last->in_chunk + last->size == next.in_chunk &&
            last->in_memory + last->size == next.in_memory)
            last->size += next.size;
        else if (n == COW_CONVERSION_PARTS)
            return 0;
        else
            part[n++] = next;
    }
    return n;
}

void cow_conversion_without_transform(cow_conversion *conversion)
{
    conversion->transform = false;
    conversion->needed = !conversion->same;
}

/* A dataset of N elements of TYPE in a file that exists in memory only. The ids are the caller's. */
static int scratch_dataset(hid_t type, size_t n, hid_t dcpl, hid_t *file, hid_t *dataset)
{
    char name[64];
    hsize_t dims = n;
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate_simple(1, &dims, NULL);
    int status = -1;

    snprintf(name, sizeof name, "h5cow-convert-%ld-%p", (long)getpid(), (const void *)file);
    if (fapl < 0 || space < 0 || H5Pset_vol(fapl, cow_native_id(), NULL) < 0 ||
        H5Pset_fapl_core(fapl, FILE_INCREMENT, false) < 0 ||
        (*file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, fapl)) < 0 ||
        (*dataset = H5Dcreate2(*file, "d", type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) < 0)
        cow_error_native("cannot make a scratch dataset in memory");
    else
        status = 0;
    cow_close(space, fapl);
    return status;
}

static void close_scratch(hid_t file, hid_t dataset)
{
    cow_close(dataset, file);
}

static int run_transform(const cow_conversion *conversion, size_t n, void *packed)
{
    hid_t file = H5I_INVALID_HID, dataset = H5I_INVALID_HID, dxpl = H5I_INVALID_HID;
    ssize_t length = H5Pget_data_transform(conversion->dxpl, NULL, 0);
    char *expression = NULL;
    int status = -1;

    if (length < 0)
        return cow_error_native("cannot get the data transform");
    if ((expression = malloc((size_t)length + 1)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a data transform");
    if (cow_native_enter() < 0) {
        free(expression);
        return -1;
    }
    if (H5Pget_data_transform(conversion->dxpl, expression, (size_t)length + 1) < 0 ||
        (dxpl = H5Pcreate(H5P_DATASET_XFER)) < 0 || H5Pset_data_transform(dxpl, expression) < 0)
        cow_error_native("cannot copy the data transform");
    else if (scratch_dataset(conversion->mem_type, n, H5P_DEFAULT, &file, &dataset) == 0) {
        if (H5Dwrite(dataset, conversion->mem_type, H5S_ALL, H5S_ALL, dxpl, packed) < 0 ||
            H5Dread(dataset, conversion->mem_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, packed) < 0)
            cow_error_native("cannot apply the data transform '%s'", expression);
        else
            status = 0;
    }
    close_scratch(file, dataset);
    if (dxpl >= 0)
        H5Pclose(dxpl);
    cow_native_leave();
    free(expression);
    return status;
}

int cow_conversion_run(const cow_conversion *conversion, size_t n, void *packed, void *background)
{
    if (n == 0)
        return 0;
    /* A transform works on the application's type: before the conversion to the file's, after that from it. */
    if (conversion->transform && conversion->write && run_transform(conversion, n, packed) < 0)
        return -1;
    if (!conversion->same && H5Tconvert(conversion->from, conversion->to, n, packed, background, conversion->dxpl) < 0)
        return cow_error_native("cannot convert the elements to the %s datatype",
                                conversion->write ? "file's" : "memory");
    if (conversion->transform && !conversion->write && run_transform(conversion, n, packed) < 0)
        return -1;
    return 0;
}

int cow_conversion_fill(hid_t type, const void *fill, hid_t mem_type, hid_t dxpl, size_t n, void *packed)
{
    hid_t file = H5I_INVALID_HID, dataset = H5I_INVALID_HID, dcpl = H5I_INVALID_HID;
    int status = -1;

    if (cow_native_enter() < 0)
        return -1;
    if ((dcpl = H5Pcreate(H5P_DATASET_CREATE)) < 0 || H5Pset_fill_value(dcpl, type, fill) < 0)
        cow_error_native("cannot set a fill value");
    else if (scratch_dataset(type, n, dcpl, &file, &dataset) == 0) {
        if (H5Dread(dataset, mem_type, H5S_ALL, H5S_ALL, dxpl, packed) < 0)
            cow_error_native("cannot read the fill value");
        else
            status = 0;
    }
    close_scratch(file, dataset);
    if (dcpl >= 0)
        H5Pclose(dcpl);
    cow_native_leave();
    return status;
}
