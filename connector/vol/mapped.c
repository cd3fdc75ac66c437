/* Reading and writing an application's own virtual dataset that has a source with history: in this file, or in another.
 *
 * Native HDF5 would read the sources as they were committed, through virtual datasets that it keeps open and that a
 * commit replaces (seen: wrong values, and a crash when a source had grown), and would write into chunks that versions
 * share. So each mapping is carried out here, with its source as this process sees it now: like any other dataset of its
 * file, with the history of that file; in a version, sources in the same file are those of the version. What no mapping
 * covers, or has no source, is fill value; written, it is an error: all as in native HDF5.
 *
 * Which file and dataset a mapping means: sources.c.
 */
#include "vol/vol.h"

#include "base/ids.h"
#include "base/vector.h"
#include "io/selection.h"

#include <stdlib.h>
#include <string.h>

/* ---- selections of mappings ---- */

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

/* Select block number N, along the endless dimension, of those that have a source each. */
static int select_block(hid_t space, const slab *s, hsize_t n)
{
    slab part = *s;
    int d = s->unlimited;

    part.start[d] += n * s->stride[d];
    part.count[d] = 1;
    return H5Sselect_hyperslab(space, H5S_SELECT_SET, part.start, part.stride, part.count, part.block) < 0 ? -1 : 0;
}

/* What H5Soffset_simple added becomes part of the selection itself: functions on selections leave it out. */
static int settle_offset(hid_t space)
{
    const hssize_t none[H5S_MAX_RANK] = {0};
    hsize_t with[H5S_MAX_RANK], without[H5S_MAX_RANK], high[H5S_MAX_RANK];
    hssize_t back[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_ndims(space);

    if (rank <= 0 || H5Sget_select_type(space) != H5S_SEL_HYPERSLABS)
        return 0;
    if (H5Sget_select_bounds(space, with, high) < 0 || H5Soffset_simple(space, none) < 0 ||
        H5Sget_select_bounds(space, without, high) < 0)
        return -1;
    for (int d = 0; d < rank; d++)
        back[d] = (hssize_t)without[d] - (hssize_t)with[d];
    return H5Sselect_adjust(space, back) < 0 ? -1 : 0;
}

/* A selection of a mapping, -1; close it. */
static hid_t settled(hid_t space)
{
    if (space >= 0 && settle_offset(space) < 0) {
        H5Sclose(space);
        return H5I_INVALID_HID;
    }
    return space;
}

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

/* ---- extent ---- */

/* Does its extent follow that of its sources? 1, 0, -1 */
static int follows(hid_t dcpl)
{
    size_t count = 0;
    int found = H5Pget_virtual_count(dcpl, &count) < 0 ? -1 : 0;
    slab s;

    for (size_t i = 0; found == 0 && i < count; i++) {
        hid_t space = settled(H5Pget_virtual_vspace(dcpl, i));

        found = space < 0 ? -1 : endless(space, &s);
        cow_close(space);
    }
    return found < 0 ? cow_error_native("cannot read the mappings of a virtual dataset") : found;
}

int cow_mapped_prepare(cow_object *o, hid_t dcpl)
{
    int following;

    if (o->shape > 0)
        return 0;
    cow_file_committed = cow_home_committed;
    if ((o->dapl <= 0 && (o->dapl = cow_mapped_dapl(o)) < 0) || (following = follows(dcpl)) < 0)
        return -1;
    if (following == 0)
        return 0;
    return (o->shape = cow_native_dataset_space(cow_object_opened(o))) < 0 ? -1 : cow_home_reopen_followers(o->home);
}

/* Where N positions end; TRAIL: with what follows up to the next block. As H5S_hyper_get_clip_extent. */
static hsize_t clip_extent(const slab *s, hsize_t n, bool trail)
{
    int d = s->unlimited;
    hsize_t count, rest;

    if (n == 0)
        return trail ? s->start[d] : 0;
    if (s->block[d] == H5S_UNLIMITED || s->block[d] == s->stride[d])
        return s->start[d] + n;
    count = n / s->block[d];
    rest = n % s->block[d];
    if (rest > 0)
        return s->start[d] + count * s->stride[d] + rest;
    return trail ? s->start[d] + count * s->stride[d] : s->start[d] + (count - 1) * s->stride[d] + s->block[d];
}

/* The same for sources that have a block each: the first missing one, after more than GAP others, ends it. */
static int clip_blocks(cow_object *o, hid_t dcpl, size_t i, const slab *to, hsize_t gap, bool trail, hsize_t *clip)
{
    hsize_t behind = 0; /* the last one that is there */
    int d = to->unlimited;

    for (hsize_t n = 0; n <= gap + behind; n++) {
        cow_mapped_source source;
        int found = cow_mapped_source_open(o, dcpl, i, n, &source);

        if (cow_mapped_source_close(&source) < 0 || found < 0)
            return -1;
        if (found > 0)
            behind = n + 1;
    }
    *clip = behind == 0 ? 0
            : trail     ? to->start[d] + behind * to->stride[d]
                        : to->start[d] + (behind - 1) * to->stride[d] + to->block[d];
    return 0;
}

typedef struct view {
    H5D_vds_view_t which;
    hsize_t gap;
    hsize_t dims[H5S_MAX_RANK], least[H5S_MAX_RANK];
    bool set[H5S_MAX_RANK];
} view;

/* What mapping I says about the extent. */
static int look_at_mapping(cow_object *o, hid_t dcpl, size_t i, view *v)
{
    hid_t from_space = settled(H5Pget_virtual_srcspace(dcpl, i)), to_space = settled(H5Pget_virtual_vspace(dcpl, i));
    hsize_t clip = 0, low[H5S_MAX_RANK], high[H5S_MAX_RANK];
    bool trail = v->which == H5D_VDS_FIRST_MISSING;
    cow_mapped_source source = {.id = H5I_INVALID_HID};
    slab from, to;
    int found, d, rank, status = -1;

    if (from_space < 0 || to_space < 0 || endless(from_space, &from) < 0 || endless(to_space, &to) < 0)
        goto done;
    d = to.unlimited;
    rank = H5Sget_simple_extent_ndims(to_space);
    if (H5Sget_select_type(to_space) == H5S_SEL_HYPERSLABS && d < 0) {
        if (H5Sget_select_npoints(to_space) > 0 && H5Sget_select_bounds(to_space, low, high) < 0)
            goto done;
        for (int k = 0; H5Sget_select_npoints(to_space) > 0 && k < rank; k++)
            if (high[k] >= v->least[k])
                v->least[k] = high[k] + 1;
    }
    for (int k = 0; d >= 0 && k < rank; k++)
        if (k != d && to.count[k] > 0 && to.start[k] + (to.count[k] - 1) * to.stride[k] + to.block[k] > v->least[k])
            v->least[k] = to.start[k] + (to.count[k] - 1) * to.stride[k] + to.block[k];
    status = 0;
    if (d < 0)
        goto done;
    if (from.unlimited < 0)
        status = clip_blocks(o, dcpl, i, &to, v->gap, trail, &clip);
    else if ((found = cow_mapped_source_open(o, dcpl, i, 0, &source)) > 0) {
        status = H5Sget_simple_extent_dims(source.space, high, NULL) < 0 ? -1 : 0;
        clip = clip_extent(&to, positions(&from, high[from.unlimited]), trail);
    } else
        status = found;
    if (!v->set[d] || (trail ? clip < v->dims[d] : clip > v->dims[d]))
        v->dims[d] = clip;
    v->set[d] = true;
done:
    if (cow_mapped_source_close(&source) < 0)
        status = -1;
    cow_close(from_space, to_space);
    return status < 0 && !cow_error_pending() ? cow_error_native("cannot use a mapping of a virtual dataset") : status;
}

/* All handles on it share what they know of the extent. */
int cow_mapped_set_extent(cow_object *o, const hsize_t *size)
{
    hsize_t most[H5S_MAX_RANK];
    H5O_token_t token, other;
    int rank;

    if (o->shape <= 0 || (size == NULL && !o->extent_set))
        return 0;
    if (cow_object_token(o, &token) < 0)
        return -1;
    for (cow_object *d = o->home->datasets; d != NULL; d = d->next) {
        if (d->shape <= 0 || cow_object_token(d, &other) < 0 || memcmp(&token, &other, sizeof token) != 0)
            continue;
        if (size != NULL && ((rank = H5Sget_simple_extent_dims(d->shape, NULL, most)) < 0 ||
                             H5Sset_extent_simple(d->shape, rank, size, most) < 0))
            return cow_error_native("cannot set the extent of a virtual dataset");
        d->extent_set = size != NULL;
    }
    return 0;
}

/* A virtual dataset without end is as long as its sources make it. */
hid_t cow_mapped_space(cow_object *o)
{
    hid_t space = o->shape > 0 ? H5Scopy(o->shape) : cow_native_dataset_space(cow_object_opened(o)),
          dcpl = cow_native_dataset_dcpl(cow_object_opened(o));
    hsize_t dims[H5S_MAX_RANK], most[H5S_MAX_RANK];
    view v = {.which = H5D_VDS_LAST_AVAILABLE};
    size_t count = 0;
    int rank, status = o->extent_set ? 0 : -1;

    if (space < 0 || dcpl < 0 || o->extent_set)
        goto done;
    if ((rank = H5Sget_simple_extent_dims(space, dims, most)) < 0 || H5Pget_virtual_count(dcpl, &count) < 0 ||
        H5Pget_virtual_view(o->dapl, &v.which) < 0 || H5Pget_virtual_printf_gap(o->dapl, &v.gap) < 0) {
        cow_error_native("cannot read the extent of a virtual dataset");
        goto done;
    }
    status = 0;
    for (size_t i = 0; status == 0 && i < count; i++)
        status = look_at_mapping(o, dcpl, i, &v);
    for (int d = 0; d < rank; d++)
        if (v.set[d])
            dims[d] = v.dims[d] < v.least[d] ? v.least[d] : v.dims[d];
    if (status == 0 && rank > 0 && H5Sset_extent_simple(space, rank, dims, most) < 0)
        status = cow_error_native("cannot tell the extent of a virtual dataset");
done:
    cow_close(dcpl);
    if (status < 0 && space >= 0) {
        H5Sclose(space);
        space = H5I_INVALID_HID;
    }
    return space;
}

/* ---- one transfer ---- */

/* What is moved between one source and memory. */
typedef struct piece {
    cow_mapped_source source;
    hid_t from, to; /* in the source, in memory */
} piece;

typedef struct transfer {
    cow_object *object;
    hid_t dcpl;
    hid_t extent; /* of the virtual dataset */
    hid_t wanted, memory;
    piece *piece;
    size_t count, room;
    hsize_t elements;
} transfer;

static int transfer_end(transfer *t)
{
    int status = 0;

    for (size_t i = 0; i < t->count; i++) {
        if (cow_mapped_source_close(&t->piece[i].source) < 0)
            status = -1;
        cow_close(t->piece[i].from, t->piece[i].to);
    }
    free(t->piece);
    cow_close(t->dcpl, t->extent, t->wanted, t->memory);
    return status;
}

/* TARGET in the virtual dataset is SOURCE; equally many elements. Takes OPENED. */
static int add_piece(transfer *t, cow_mapped_source *opened, hid_t target, hid_t source)
{
    piece *p;
    hssize_t n;

    if (COW_RESERVE(t->piece, t->room, t->count, 1) < 0) {
        cow_mapped_source_close(opened);
        return cow_error(COW_MEMORY, "no memory for the mappings of a virtual dataset");
    }
    p = &t->piece[t->count++];
    p->source = *opened;
    if (H5Sget_simple_extent_ndims(t->extent) == 0) { /* one element */
        p->from = H5Scopy(source);
        p->to = H5Scopy(t->memory);
    } else {
        p->from = H5Sselect_project_intersection(target, source, t->wanted);
        p->to = H5Sselect_project_intersection(t->wanted, t->memory, target);
    }
    if (p->from < 0 || p->to < 0 || (n = H5Sget_select_npoints(p->to)) < 0)
        return cow_error_native("cannot use a mapping of a virtual dataset");
    t->elements += (hsize_t)n;
    return 0;
}

/* Do they have an element in common? Spares opening sources that are not asked for. 1, 0, -1 */
static int touches(hid_t wanted, hid_t target)
{
    hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK];

    if (H5Sget_select_npoints(target) == 0)
        return 0;
    if (H5Sget_simple_extent_ndims(target) == 0)
        return 1;
    return H5Sget_select_bounds(target, low, high) < 0 ? -1 : H5Sselect_intersect_block(wanted, low, high);
}

/* Has the source that was opened as many dimensions as mapping I of it, MAPPED? HDF5 does not ask, and goes beyond its memory. A mapping
 * of "all" has those of the source. */
static int check_rank(size_t i, hid_t mapped, hid_t opened)
{
    H5S_sel_type type = H5Sget_select_type(mapped);
    int has = H5Sget_simple_extent_ndims(opened), wanted = H5Sget_simple_extent_ndims(mapped);

    return (type != H5S_SEL_HYPERSLABS && type != H5S_SEL_POINTS) || has == wanted
               ? 0
               : cow_error(
                     COW_UNSUPPORTED,
                     "a source of a virtual dataset has %d dimensions, mapping %zu of it has %d: was it made anew in "
                     "another shape?",
                     has, i, wanted);
}

/* Elements FIRST to before END of the selection of SPACE, in their order. */
static hid_t elements_of(hid_t space, hsize_t first, hsize_t end)
{
    hsize_t all = (hsize_t)H5Sget_select_npoints(space), count = end - first;
    hid_t line = H5Screate_simple(1, &all, NULL), some = H5Scopy(line), found = H5I_INVALID_HID;

    if (line >= 0 && some >= 0 && as_hyperslab(line) >= 0 && as_hyperslab(space) >= 0 &&
        H5Sselect_hyperslab(some, H5S_SELECT_SET, &first, NULL, &count, NULL) >= 0)
        found = H5Sselect_project_intersection(line, space, some);
    cow_close(some, line);
    return found;
}

/* A mapping of "all" of a source that has another number of elements by now than when it was made. As HDF5 does, elements go by their
 * order; those that the source has no more must not be asked for. */
static int match_all(const transfer *t, hid_t target, hid_t source)
{
    hsize_t there = (hsize_t)H5Sget_select_npoints(source), mapped = (hsize_t)H5Sget_select_npoints(target);
    hid_t some = H5I_INVALID_HID, rest = H5I_INVALID_HID, asked = H5I_INVALID_HID;
    int status = -1;

    if (there == mapped || H5Sget_select_type(source) != H5S_SEL_ALL)
        return 0;
    if (there > mapped) {
        if ((some = elements_of(source, 0, mapped)) >= 0 && H5Sselect_copy(source, some) >= 0)
            status = 0;
    } else if (there == 0 || (rest = elements_of(target, there, mapped)) < 0 ||
               (asked = H5Sselect_project_intersection(rest, rest, t->wanted)) < 0 || H5Sget_select_npoints(asked) > 0)
        cow_error(COW_UNSUPPORTED, "a source of a virtual dataset has fewer elements now than are mapped from it");
    else if ((some = elements_of(target, 0, there)) >= 0 && H5Sselect_copy(target, some) >= 0)
        status = 0;
    cow_close(asked, rest, some);
    return status;
}

/* Block N of mapping I. TARGET and SOURCE are copies of its selections. */
static int add_source(transfer *t, size_t i, hsize_t n, hid_t target, hid_t source, const slab *to, const slab *from)
{
    hsize_t dims[H5S_MAX_RANK], extent[H5S_MAX_RANK], zero[H5S_MAX_RANK] = {0}, count, limit;
    int rank = H5Sget_simple_extent_dims(t->extent, extent, NULL), found;
    hid_t whole = H5I_INVALID_HID, part = H5I_INVALID_HID;
    cow_mapped_source opened;
    int status = -1;

    if ((found = cow_mapped_source_open(t->object, t->dcpl, i, n, &opened)) <= 0)
        return found;
    if (check_rank(i, source, opened.space) < 0) {
        cow_mapped_source_close(&opened);
        return -1;
    }
    if (rank < 0 || H5Sextent_copy(source, opened.space) < 0 || H5Sget_simple_extent_dims(source, dims, NULL) < 0)
        goto done;
    if (from->unlimited < 0 && to->unlimited < 0 && match_all(t, target, source) < 0)
        goto done;
    if (from->unlimited >= 0 && to->unlimited >= 0) {
        count = positions(from, dims[from->unlimited]);
        if ((limit = positions(to, extent[to->unlimited])) < count)
            count = limit;
        if (select_positions(source, from, count) < 0 || select_positions(target, to, count) < 0)
            goto done;
    } else if (to->unlimited >= 0) { /* the last block may be cut off */
        if ((whole = H5Scopy(target)) < 0 || as_hyperslab(source) < 0 ||
            H5Sselect_hyperslab(target, H5S_SELECT_AND, zero, NULL, extent, NULL) < 0 ||
            (part = H5Sselect_project_intersection(whole, source, target)) < 0 || H5Sselect_copy(source, part) < 0)
            goto done;
    }
    if (as_hyperslab(target) < 0 || as_hyperslab(source) < 0)
        goto done;
    status = 0;
done:
    cow_close(whole, part);
    if (status == 0)
        return add_piece(t, &opened, target, source);
    cow_mapped_source_close(&opened);
    return cow_error_pending() ? -1 : cow_error_native("cannot use a mapping of a virtual dataset");
}

/* The extent in which all of block N lies, or that of the virtual dataset. */
static int grow(hid_t space, hid_t extent, const slab *to, hsize_t n)
{
    hsize_t dims[H5S_MAX_RANK], end;
    int rank = H5Sget_simple_extent_dims(extent, dims, NULL), d = to->unlimited;

    if (rank < 0)
        return -1;
    if (d >= 0 && (end = to->start[d] + n * to->stride[d] + to->block[d]) > dims[d])
        dims[d] = end;
    return rank == 0 ? 0 : H5Sset_extent_simple(space, rank, dims, NULL) < 0 ? -1 : 0;
}

/* Blocks of the mapping that may have something of WANTED: from FIRST to before END. An extent may be as long as it likes. */
static int wanted_blocks(hid_t wanted, const slab *to, hsize_t *first, hsize_t *end)
{
    hsize_t low[H5S_MAX_RANK], high[H5S_MAX_RANK], start = to->start[to->unlimited], stride = to->stride[to->unlimited];

    *first = *end = 0;
    if (H5Sget_select_npoints(wanted) == 0)
        return 0;
    if (H5Sget_select_bounds(wanted, low, high) < 0)
        return -1;
    if (high[to->unlimited] < start)
        return 0;
    *first = low[to->unlimited] < start ? 0 : (low[to->unlimited] - start) / stride;
    *end = (high[to->unlimited] - start) / stride + 1;
    return 0;
}

static int add_mapping(transfer *t, size_t i)
{
    hid_t source = settled(H5Pget_virtual_srcspace(t->dcpl, i)), target = settled(H5Pget_virtual_vspace(t->dcpl, i));
    hsize_t first = 0, blocks = 1;
    bool printf_style;
    slab from, to;
    int found = 0, status = -1, d;

    if (source < 0 || target < 0 || endless(source, &from) < 0 || endless(target, &to) < 0)
        goto done;
    d = to.unlimited;
    printf_style = d >= 0 && from.unlimited < 0;
    if (printf_style && (to.block[d] == H5S_UNLIMITED || to.stride[d] == 0))
        goto done;
    if (printf_style && wanted_blocks(t->wanted, &to, &first, &blocks) < 0)
        goto done;
    status = 0;
    for (hsize_t n = first; status == 0 && n < blocks; n++) {
        if (printf_style ? grow(target, t->extent, &to, n) < 0 || select_block(target, &to, n) < 0
                         : H5Sextent_copy(target, t->extent) < 0)
            status = -1;
        else if ((d >= 0 && !printf_style) || (found = touches(t->wanted, target)) > 0)
            status = add_source(t, i, n, target, source, &to, &from);
        else
            status = found;
    }
done:
    cow_close(source, target);
    return status < 0 && !cow_error_pending() ? cow_error_native("cannot use a mapping of a virtual dataset") : status;
}

/* A copy of the selection, or what H5S_PLIST stands for. */
static hid_t wanted_of(hid_t extent, hid_t file_space, hid_t dxpl)
{
    uint64_t dims[H5S_MAX_RANK];
    int rank;

    if (file_space != H5S_PLIST)
        return H5Scopy(file_space == H5S_ALL ? extent : file_space);
    if ((rank = H5Sget_simple_extent_dims(extent, dims, NULL)) < 0)
        return H5I_INVALID_HID;
    return cow_selection_from_plist((unsigned)rank, dims, "a virtual dataset", dxpl);
}

/* 0: nothing is selected; 1; -1 */
static int transfer_begin(transfer *t, cow_object *o, hid_t mem_space, hid_t file_space, hid_t dxpl)
{
    const hssize_t none[H5S_MAX_RANK] = {0};
    hsize_t points;

    *t = (transfer){.object = o, .wanted = H5I_INVALID_HID, .memory = H5I_INVALID_HID};
    t->dcpl = cow_native_dataset_dcpl(cow_object_opened(o));
    t->extent = cow_mapped_space(o);
    if (t->dcpl < 0 || t->extent < 0)
        return -1;
    t->wanted = wanted_of(t->extent, file_space, dxpl);
    if (t->wanted < 0 || (file_space == H5S_ALL && H5Sselect_all(t->wanted) < 0))
        return cow_error_pending() ? -1 : cow_error_native("cannot use the selection of a virtual dataset");
    points = (hsize_t)H5Sget_select_npoints(t->wanted);
    t->memory = mem_space == H5S_BLOCK ? H5Screate_simple(1, &points, NULL)
                                       : H5Scopy(mem_space == H5S_ALL ? t->wanted : mem_space);
    if (t->memory < 0)
        return cow_error_native("cannot use the selection in memory");
    if ((hsize_t)H5Sget_select_npoints(t->memory) != points)
        return cow_error(COW_USAGE, "src and dest dataspaces have different number of elements selected");
    if (points > 0 && H5Sselect_valid(t->wanted) <= 0)
        return cow_error(COW_USAGE, "the selection and its offset are not within the extent of the virtual dataset");
    /* Like HDF5, which leaves the offset out for virtual datasets once it has looked whether it is possible. */
    if (H5Sget_simple_extent_ndims(t->wanted) > 0 && H5Soffset_simple(t->wanted, none) < 0)
        return cow_error_native("cannot use the selection of a virtual dataset");
    return points > 0;
}

/* HDF5's functions on selections take no order but that of hyperslabs. */
static bool needs_packing(const transfer *t)
{
    return H5Sget_simple_extent_ndims(t->extent) == 0 || H5Sget_simple_extent_ndims(t->memory) == 0 ||
           H5Sget_select_type(t->wanted) == H5S_SEL_POINTS || H5Sget_select_type(t->memory) == H5S_SEL_POINTS;
}

static int add_mappings(transfer *t)
{
    size_t count = 0;
    int status = 0;

    if (H5Pget_virtual_count(t->dcpl, &count) < 0 || as_hyperslab(t->memory) < 0 || as_hyperslab(t->wanted) < 0)
        return cow_error_native("cannot use a virtual dataset");
    for (size_t i = 0; status == 0 && i < count; i++)
        status = add_mapping(t, i);
    return status;
}

/* ---- reading ---- */

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

/* What is mapped beyond the extent that the source has by now is its fill value, as HDF5 finds no chunks there. */
static int read_shrunk(piece *p, const hsize_t extent[], hid_t mem_type, hid_t dxpl, void *buf)
{
    const hsize_t zero[H5S_MAX_RANK] = {0};
    hid_t dcpl = cow_mapped_source_dcpl(&p->source), inside = H5Scopy(p->from), to = H5I_INVALID_HID;
    int rank = H5Sget_simple_extent_ndims(inside), status = -1;
    bool empty = false;

    for (int d = 0; d < rank; d++)
        empty = empty || extent[d] == 0;
    if (dcpl < 0 || inside < 0 ||
        (empty ? H5Sselect_none(inside) : H5Sselect_hyperslab(inside, H5S_SELECT_AND, zero, NULL, extent, NULL)) < 0 ||
        (to = H5Sselect_project_intersection(p->from, p->to, inside)) < 0)
        cow_error_native("cannot use a mapping of a virtual dataset");
    else if (fill(dcpl, mem_type, p->to, buf) == 0)
        status = H5Sget_select_npoints(inside) == 0
                     ? 0
                     : cow_mapped_source_read(&p->source, mem_type, to, inside, dxpl, buf);
    cow_close(to, inside, dcpl);
    return status;
}

static int read_piece(piece *p, hid_t mem_type, hid_t dxpl, void *buf)
{
    hsize_t extent[H5S_MAX_RANK], low[H5S_MAX_RANK], high[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(p->source.space, extent, NULL);

    if (rank > 0 && H5Sget_select_type(p->from) == H5S_SEL_HYPERSLABS && H5Sget_select_npoints(p->from) > 0 &&
        H5Sget_select_bounds(p->from, low, high) >= 0)
        for (int d = 0; d < rank; d++)
            if (high[d] >= extent[d])
                return read_shrunk(p, extent, mem_type, dxpl, buf);
    return cow_mapped_source_read(&p->source, mem_type, p->to, p->from, dxpl, buf);
}

static int read_all(transfer *t, hid_t mem_type, hid_t dxpl, void *buf)
{
    int status = add_mappings(t) < 0 ? -1 : fill(t->dcpl, mem_type, t->memory, buf);

    for (size_t i = 0; status == 0 && i < t->count; i++)
        status = read_piece(&t->piece[i], mem_type, dxpl, buf);
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

#define AROUND ((size_t)16 << 20) /* bytes that are read around points */

/* The box of N points: LOW and COUNT. Its elements. */
static hsize_t around(unsigned rank, const hsize_t *at, size_t n, hsize_t low[], hsize_t count[])
{
    hsize_t all = 1, high;

    for (unsigned d = 0; d < rank; d++) {
        low[d] = high = at[d];
        for (size_t i = 1; i < n; i++) {
            low[d] = at[i * rank + d] < low[d] ? at[i * rank + d] : low[d];
            high = at[i * rank + d] > high ? at[i * rank + d] : high;
        }
        count[d] = high - low[d] + 1;
        all = cow_times(all, count[d]);
    }
    return all;
}

/* N points at AT, by coordinates, to VALUES in their order: what is around them is read, and they are picked. Where that is
 * much, one half after the other. */
static int read_points(const transfer *t, hid_t mem_type, hid_t dxpl, hsize_t *at, size_t n, uint8_t *values)
{
    transfer box = {.object = t->object,
                    .dcpl = H5Pcopy(t->dcpl),
                    .extent = H5Scopy(t->extent),
                    .wanted = H5I_INVALID_HID,
                    .memory = H5I_INVALID_HID};
    unsigned rank = (unsigned)H5Sget_simple_extent_ndims(t->extent);
    hsize_t low[H5S_MAX_RANK], count[H5S_MAX_RANK], points = n, all;
    size_t size = H5Tget_size(mem_type);
    hid_t picked = H5I_INVALID_HID;
    void *whole = NULL;
    int status = -1;

    all = around(rank, at, n, low, count);
    if (n > 1 && (all > AROUND / size || cow_type_is_heap(mem_type, true))) { /* nothing is read that nobody gets */
        status = read_points(t, mem_type, dxpl, at, n / 2, values) < 0
                     ? -1
                     : read_points(t, mem_type, dxpl, at + n / 2 * rank, n - n / 2, values + n / 2 * size);
        goto done;
    }
    box.wanted = H5Scopy(t->extent);
    box.memory = H5Screate_simple((int)rank, count, NULL);
    picked = H5Scopy(box.memory);
    for (size_t i = 0; i < n * rank; i++)
        at[i] -= low[i % rank];
    if (box.dcpl < 0 || box.extent < 0 || box.wanted < 0 || box.memory < 0 || picked < 0 ||
        H5Sselect_hyperslab(box.wanted, H5S_SELECT_SET, low, NULL, count, NULL) < 0 ||
        H5Sselect_elements(picked, H5S_SELECT_SET, points, at) < 0)
        cow_error_native("cannot read points of a virtual dataset");
    else if ((whole = calloc(all, size)) == NULL)
        cow_error(COW_MEMORY, "no memory to read points of a virtual dataset");
    else if (read_all(&box, mem_type, dxpl, whole) == 0)
        status = H5Dgather(picked, whole, mem_type, n * size, values, NULL, NULL) < 0
                     ? cow_error_native("cannot pick points of a virtual dataset")
                     : 0;
done:
    free(whole);
    cow_close(picked);
    return transfer_end(&box) < 0 ? -1 : status;
}

static int read_packed(transfer *t, hid_t mem_type, hid_t dxpl, void *buf)
{
    hsize_t points = (hsize_t)H5Sget_select_npoints(t->wanted), *at = NULL;
    hid_t memory = t->memory;
    packed p = {.size = (size_t)points * H5Tget_size(mem_type)};
    int status = -1;

    t->memory = H5Screate_simple(1, &points, NULL);
    if ((p.bytes = calloc(1, p.size)) == NULL || t->memory < 0)
        cow_error(COW_MEMORY, "no memory to read a virtual dataset");
    else if (H5Sget_select_type(t->wanted) != H5S_SEL_POINTS)
        status = read_all(t, mem_type, dxpl, p.bytes);
    else if ((at = reallocarray(NULL, points, (size_t)H5Sget_simple_extent_ndims(t->extent) * sizeof *at)) == NULL)
        cow_error(COW_MEMORY, "no memory for the points of a selection");
    else
        status = H5Sget_select_elem_pointlist(t->wanted, 0, points, at) < 0
                     ? cow_error_native("cannot use the selection of a virtual dataset")
                     : read_points(t, mem_type, dxpl, at, (size_t)points, p.bytes);
    if (status == 0 && H5Dscatter(give_packed, &p, mem_type, memory, buf) < 0)
        status = cow_error_native("cannot use the selection in memory");
    cow_close(memory);
    free(p.bytes);
    free(at);
    return status;
}

/* ---- writing ---- */

static int write_all(transfer *t, hid_t mem_type, hid_t dxpl, void *buf)
{
    int status = add_mappings(t);

    if (status == 0 && t->elements != (hsize_t)H5Sget_select_npoints(t->wanted))
        return cow_error(COW_USAGE, "write requested to unmapped portion of virtual dataset");
    for (size_t i = 0; status == 0 && i < t->count; i++)
        if (H5Sget_select_npoints(t->piece[i].to) > 0)
            status =
                cow_mapped_source_write(&t->piece[i].source, mem_type, t->piece[i].to, t->piece[i].from, dxpl, buf);
    return status;
}

/* One point after the other, from values that lie in their order. */
static int write_points(transfer *t, hid_t mem_type, hid_t dxpl, uint8_t *values)
{
    hssize_t points = H5Sget_select_npoints(t->wanted);
    hsize_t at[H5S_MAX_RANK], one = 1;
    size_t size = H5Tget_size(mem_type);
    int status = 0;

    for (hssize_t n = 0; status == 0 && n < points; n++) {
        transfer single = {.object = t->object, .dcpl = H5Pcopy(t->dcpl), .extent = H5Scopy(t->extent)};

        single.wanted = H5Scopy(t->extent);
        single.memory = H5Screate_simple(1, &one, NULL);
        if (single.dcpl < 0 || single.extent < 0 || single.wanted < 0 || single.memory < 0 ||
            H5Sget_select_elem_pointlist(t->wanted, (hsize_t)n, 1, at) < 0 ||
            H5Sselect_elements(single.wanted, H5S_SELECT_SET, 1, at) < 0)
            status = cow_error_native("cannot write points of a virtual dataset");
        else
            status = write_all(&single, mem_type, dxpl, values + (size_t)n * size);
        if (transfer_end(&single) < 0)
            status = -1;
    }
    return status;
}

static int write_packed(transfer *t, hid_t mem_type, hid_t dxpl, void *buf)
{
    hsize_t points = (hsize_t)H5Sget_select_npoints(t->wanted);
    size_t size = (size_t)points * H5Tget_size(mem_type);
    hid_t line = H5Screate_simple(1, &points, NULL);
    void *values = malloc(size);
    int status = -1;

    if (values == NULL || line < 0)
        cow_error(COW_MEMORY, "no memory to write to a virtual dataset");
    else if (H5Dgather(t->memory, buf, mem_type, size, values, NULL, NULL) < 0)
        cow_error_native("cannot use the selection in memory");
    else {
        H5Sclose(t->memory);
        t->memory = line;
        line = H5I_INVALID_HID;
        status = H5Sget_select_type(t->wanted) == H5S_SEL_POINTS ? write_points(t, mem_type, dxpl, values)
                                                                 : write_all(t, mem_type, dxpl, values);
    }
    cow_close(line);
    free(values);
    return status;
}

/* ---- both ---- */

typedef int mover(transfer *t, hid_t mem_type, hid_t dxpl, void *buf);

static int move(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, mover *whole,
                mover *picked, void *buf)
{
    transfer t;
    int status = transfer_begin(&t, o, mem_space, file_space, dxpl);

    if (status > 0)
        status = (needs_packing(&t) ? picked : whole)(&t, mem_type, dxpl, buf);
    return transfer_end(&t) < 0 ? -1 : status;
}

int cow_mapped_read(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf)
{
    return move(o, mem_type, mem_space, file_space, dxpl, read_all, read_packed, buf);
}

int cow_mapped_write(cow_object *o, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, const void *buf)
{
    return move(o, mem_type, mem_space, file_space, dxpl, write_all, write_packed, (void *)(uintptr_t)buf);
}
