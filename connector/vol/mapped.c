/* Reading an application's own virtual dataset whose sources are in the same file with history: in a version, from the
 * sources of that version.
 *
 * Native HDF5 would read the sources as they were committed, through virtual datasets that it keeps open and that a
 * commit replaces (seen: wrong values, and a crash when a source had grown). So each mapping is read here from its
 * source as this process sees it now; what no mapping covers is fill value, as in native HDF5.
 *
 * Not served here, because HDF5 has no function to do so: mappings to other files, names with %b, selections given in
 * the transfer property list. cow_mapped_serves says so, and native HDF5 is asked.
 */
#include "vol/vol.h"

#include "ids.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cow_mapped_serves(hid_t dcpl, const char *file)
{
    size_t count = 0;
    char text[4096];

    if (H5Pget_virtual_count(dcpl, &count) < 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        ssize_t length = H5Pget_virtual_filename(dcpl, i, text, sizeof text);
        if (length < 0 || (size_t)length >= sizeof text || (strcmp(text, ".") != 0 && strcmp(text, file) != 0))
            return false;
        length = H5Pget_virtual_dsetname(dcpl, i, text, sizeof text);
        if (length < 0 || (size_t)length >= sizeof text || strchr(text, '%') != NULL)
            return false;
    }
    return count > 0;
}

/* ---- one mapping ---- */

typedef struct mapping {
    void *native;
    cow_dataset *dataset; /* or NULL: a native source */
    hid_t source, target; /* selections of equally many elements; of the source's extent, of the virtual dataset's */
} mapping;

static void mapping_close(mapping *m)
{
    cow_close(m->source, m->target);
    if (m->dataset != NULL)
        cow_dataset_release(m->dataset);
    if (m->native != NULL)
        cow_native_dataset_close(m->native);
}

typedef struct slab {
    hsize_t start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    int unlimited; /* the dimension, or -1 */
} slab;

/* 1: a regular hyperslab without end; 0: any other selection; -1 */
static int endless(hid_t space, slab *s)
{
    int rank = H5Sget_simple_extent_ndims(space);

    s->unlimited = -1;
    if (rank <= 0 || H5Sget_select_type(space) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space) <= 0)
        return rank < 0 ? -1 : 0;
    if (H5Sget_regular_hyperslab(space, s->start, s->stride, s->count, s->block) < 0)
        return -1;
    for (int d = 0; d < rank; d++)
        if (s->count[d] == H5S_UNLIMITED || s->block[d] == H5S_UNLIMITED)
            s->unlimited = d;
    return s->unlimited >= 0;
}

/* Positions of the endless dimension that are below EXTENT. */
static hsize_t positions(const slab *s, hsize_t extent)
{
    int d = s->unlimited;
    hsize_t whole, rest;

    if (extent <= s->start[d])
        return 0;
    if (s->block[d] == H5S_UNLIMITED)
        return extent - s->start[d];
    whole = (extent - s->start[d]) / s->stride[d];
    rest = (extent - s->start[d]) % s->stride[d];
    return whole * s->block[d] + (rest < s->block[d] ? rest : s->block[d]);
}

/* Select the first N positions. */
static int select_positions(hid_t space, const slab *s, hsize_t n)
{
    slab part = *s;
    int d = s->unlimited;
    herr_t status;

    if (n == 0)
        return H5Sselect_none(space) < 0 ? -1 : 0;
    if (s->block[d] == H5S_UNLIMITED) {
        part.count[d] = 1;
        part.block[d] = n;
        return H5Sselect_hyperslab(space, H5S_SELECT_SET, part.start, part.stride, part.count, part.block) < 0 ? -1 : 0;
    }
    part.count[d] = n / s->block[d];
    status = part.count[d] == 0
                 ? H5Sselect_none(space)
                 : H5Sselect_hyperslab(space, H5S_SELECT_SET, part.start, part.stride, part.count, part.block);
    if (status >= 0 && n % s->block[d] != 0) { /* and a part of the next block */
        part.start[d] += part.count[d] * s->stride[d];
        part.count[d] = 1;
        part.block[d] = n % s->block[d];
        status = H5Sselect_hyperslab(space, H5S_SELECT_OR, part.start, part.stride, part.count, part.block);
    }
    return status < 0 ? -1 : 0;
}

/* 1: opened; 0: there is no such source (its part is fill value), -1 */
static int mapping_open(cow_object *o, hid_t dcpl, size_t i, hid_t extent, mapping *m)
{
    cow_loc here = {o->native, H5I_DATASET};
    char source[4096], name[4400];
    hid_t source_extent = H5I_INVALID_HID;
    hsize_t dims[H5S_MAX_RANK];
    slab from, to;
    hsize_t n, limit;
    int found, status = -1;

    *m = (mapping){.source = H5I_INVALID_HID, .target = H5I_INVALID_HID};
    if (H5Pget_virtual_dsetname(dcpl, i, source, sizeof source) < 0)
        return cow_error_native("cannot read a mapping of a virtual dataset");
    snprintf(name, sizeof name, "%s/%s", o->home->version == NULL ? "" : o->home->version, source);
    if ((found = cow_native_exists(here, name)) <= 0)
        return found;
    if ((m->native = cow_native_dataset_open(here, name)) == NULL ||
        cow_dataset_attach(o->home->file, m->native, &m->dataset) < 0)
        return -1;
    source_extent = m->dataset != NULL ? cow_dataset_space(m->dataset) : cow_native_dataset_space(m->native);
    if (source_extent < 0)
        return -1;
    m->source = H5Pget_virtual_srcspace(dcpl, i);
    m->target = H5Pget_virtual_vspace(dcpl, i);
    if (m->source < 0 || m->target < 0 || H5Sget_simple_extent_dims(source_extent, dims, NULL) < 0)
        goto done;
    if (endless(m->source, &from) < 0 || endless(m->target, &to) < 0)
        goto done;
    if (H5Sextent_copy(m->source, source_extent) < 0 || H5Sextent_copy(m->target, extent) < 0)
        goto done;
    if (from.unlimited >= 0 && to.unlimited >= 0) {
        n = positions(&from, dims[from.unlimited]);
        if (H5Sget_simple_extent_dims(extent, dims, NULL) < 0)
            goto done;
        limit = positions(&to, dims[to.unlimited]);
        if (limit < n)
            n = limit;
        if (select_positions(m->source, &from, n) < 0 || select_positions(m->target, &to, n) < 0)
            goto done;
    }
    status = 1;
done:
    H5Sclose(source_extent);
    return status < 0 ? cow_error_native("cannot use a mapping of a virtual dataset") : status;
}

/* ---- reading ---- */

/* H5Scombine_select knows hyperslabs only: make one of a selection of everything. */
static int as_hyperslab(hid_t space)
{
    hsize_t dims[H5S_MAX_RANK], zero[H5S_MAX_RANK] = {0};
    int rank = H5Sget_simple_extent_ndims(space);

    if (rank <= 0 || H5Sget_select_type(space) != H5S_SEL_ALL)
        return rank < 0 ? -1 : 0;
    if (H5Sget_simple_extent_dims(space, dims, NULL) < 0)
        return -1;
    for (int d = 0; d < rank; d++)
        if (dims[d] == 0)
            return H5Sselect_none(space) < 0 ? -1 : 0;
    return H5Sselect_hyperslab(space, H5S_SELECT_SET, zero, NULL, dims, NULL) < 0 ? -1 : 0;
}

static int read_mapping(mapping *m, hid_t mem_type, hid_t memory, hid_t wanted, hid_t dxpl, void *buf)
{
    hid_t both = H5I_INVALID_HID, from = H5I_INVALID_HID, to = H5I_INVALID_HID;
    int status = -1;

    if (H5Sget_select_npoints(m->target) == 0 || H5Sget_select_npoints(wanted) == 0)
        return 0;
    if (as_hyperslab(m->target) < 0 || as_hyperslab(m->source) < 0 ||
        (both = H5Scombine_select(wanted, H5S_SELECT_AND, m->target)) < 0)
        goto done;
    if (H5Sget_select_npoints(both) == 0) {
        status = 0;
        goto done;
    }
    if ((from = H5Sselect_project_intersection(m->target, m->source, both)) < 0 ||
        (to = H5Sselect_project_intersection(wanted, memory, both)) < 0)
        goto done;
    status = m->dataset != NULL ? cow_array_read(cow_dataset_array(m->dataset), mem_type, to, from, dxpl, buf)
                                : cow_native_dataset_read(m->native, mem_type, to, from, dxpl, buf);
done:
    if (status < 0 && !cow_error_pending())
        cow_error_native("cannot read a mapping of a virtual dataset");
    cow_close(both, from, to);
    return status;
}

static int fill(hid_t dcpl, hid_t mem_type, hid_t memory, void *buf)
{
    H5D_fill_value_t defined;
    size_t size = H5Tget_size(mem_type);
    void *value;
    herr_t status;

    if (H5Pfill_value_defined(dcpl, &defined) < 0)
        return cow_error_native("cannot read the fill value of a virtual dataset");
    if (defined == H5D_FILL_VALUE_UNDEFINED)
        return 0;
    if ((value = calloc(1, size)) == NULL)
        return cow_error(COW_MEMORY, "no memory for a fill value");
    status = H5Pget_fill_value(dcpl, mem_type, value);
    if (status >= 0)
        status = H5Dfill(value, mem_type, buf, mem_type, memory);
    free(value);
    return status < 0 ? cow_error_native("cannot fill what no mapping covers") : 0;
}

static int read_slabs(cow_object *o, hid_t dcpl, hid_t extent, hid_t mem_type, hid_t memory, hid_t wanted, hid_t dxpl,
                      void *buf)
{
    size_t count = 0;
    int status;

    if (as_hyperslab(memory) < 0 || as_hyperslab(wanted) < 0 || H5Pget_virtual_count(dcpl, &count) < 0)
        return cow_error_native("cannot read a virtual dataset");
    if ((status = fill(dcpl, mem_type, memory, buf)) < 0)
        return -1;
    for (size_t i = 0; status == 0 && i < count; i++) {
        mapping m;
        int opened = mapping_open(o, dcpl, i, extent, &m);

        status = opened > 0 ? read_mapping(&m, mem_type, memory, wanted, dxpl, buf) : opened;
        mapping_close(&m);
    }
    return status;
}

typedef struct packed {
    void *bytes;
    size_t size;
} packed;

static herr_t give_packed(const void **source, size_t *size, void *context)
{
    packed *p = context;

    *source = p->bytes;
    *size = p->size;
    return 0;
}

/* Points, or an irregular memory selection: read everything, and pick. */
static int read_points(cow_object *o, hid_t dcpl, hid_t extent, hid_t mem_type, hid_t memory, hid_t wanted, hid_t dxpl,
                       void *buf)
{
    hssize_t elements = H5Sget_simple_extent_npoints(extent), points = H5Sget_select_npoints(wanted);
    size_t size = H5Tget_size(mem_type);
    hid_t all = H5Scopy(extent), everything = H5Scopy(extent);
    packed p = {0};
    void *whole = NULL;
    int status = -1;

    if (all < 0 || everything < 0 || H5Sselect_all(all) < 0 || H5Sselect_all(everything) < 0) {
        cow_error_native("cannot read a virtual dataset");
        goto done;
    }
    p.size = (size_t)points * size;
    if ((whole = calloc((size_t)elements, size)) == NULL || (p.bytes = malloc(p.size)) == NULL) {
        cow_error(COW_MEMORY, "no memory to read points of a virtual dataset");
        goto done;
    }
    if (read_slabs(o, dcpl, extent, mem_type, everything, all, dxpl, whole) < 0)
        goto done;
    if (H5Dgather(wanted, whole, mem_type, p.size, p.bytes, NULL, NULL) < 0 ||
        H5Dscatter(give_packed, &p, mem_type, memory, buf) < 0)
        cow_error_native("cannot pick points of a virtual dataset");
    else
        status = 0;
done:
    free(whole);
    free(p.bytes);
    cow_close(all, everything);
    return status;
}

int cow_mapped_read(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf)
{
    hid_t dcpl = cow_native_dataset_dcpl(o->native), extent = cow_native_dataset_space(o->native);
    hid_t wanted = H5I_INVALID_HID, memory = H5I_INVALID_HID;
    hsize_t points;
    int status = -1;

    if (dcpl < 0 || extent < 0)
        goto done;
    wanted = H5Scopy(file_space == H5S_ALL ? extent : file_space);
    if (wanted < 0 || (file_space == H5S_ALL && H5Sselect_all(wanted) < 0)) {
        cow_error_native("cannot use the selection of a virtual dataset");
        goto done;
    }
    points = (hsize_t)H5Sget_select_npoints(wanted);
    memory = mem_space == H5S_BLOCK ? H5Screate_simple(1, &points, NULL)
                                    : H5Scopy(mem_space == H5S_ALL ? wanted : mem_space);
    if (memory < 0) {
        cow_error_native("cannot use the selection in memory");
        goto done;
    }
    if ((hsize_t)H5Sget_select_npoints(memory) != points) {
        cow_error(COW_USAGE, "src and dest dataspaces have different number of elements selected");
        goto done;
    }
    if (points == 0)
        status = 0;
    else if (H5Sget_simple_extent_ndims(extent) == 0 || H5Sget_simple_extent_ndims(memory) == 0 ||
             H5Sget_select_type(wanted) == H5S_SEL_POINTS || H5Sget_select_type(memory) == H5S_SEL_POINTS)
        status = read_points(o, dcpl, extent, mem_type, memory, wanted, dxpl, buf);
    else
        status = read_slabs(o, dcpl, extent, mem_type, memory, wanted, dxpl, buf);
done:
    cow_close(dcpl, extent, wanted, memory);
    return status;
}
