/* Reading and writing elements: see transfer.h. */
#include "transfer.h"

#include "compare.h"
#include "values.h"

#include <stdio.h>
#include <stdlib.h>

/* Do the blocks of a selection add up to its number of elements? (D14) */
static bool sound(hid_t space, int rank)
{
    hssize_t n = H5Sget_select_hyper_nblocks(space), points = 0;
    hsize_t *corner = calloc((size_t)(n > 0 ? n : 1) * 2 * (size_t)rank, sizeof *corner);
    if (n > 0)
        H5Sget_select_hyper_blocklist(space, 0, (hsize_t)n, corner);
    for (hssize_t b = 0; b < n; b++) {
        hssize_t volume = 1;
        for (int i = 0; i < rank; i++)
            volume *= (hssize_t)(corner[(2 * b + 1) * rank + i] - corner[2 * b * rank + i] + 1);
        points += volume;
    }
    free(corner);
    return points == H5Sget_select_npoints(space);
}

void random_selection(hid_t space, char *text, size_t size)
{
    hsize_t dims[H5S_MAX_RANK], start[H5S_MAX_RANK], stride[H5S_MAX_RANK], count[H5S_MAX_RANK], block[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    size_t length = 0;
    bool empty = rank <= 0;
    for (int i = 0; i < rank; i++)
        empty = empty || dims[i] == 0;
    if (empty || chance(15)) {
        H5Sselect_all(space);
        snprintf(text, size, "all");
        return;
    }
    if (chance(3)) {
        H5Sselect_none(space);
        snprintf(text, size, "none");
        return;
    }
    if (chance(15)) {
        size_t n = 1 + below(12);
        hsize_t point[12 * H5S_MAX_RANK];
        length = (size_t)snprintf(text, size, "points");
        for (size_t p = 0; p < n; p++)
            for (int i = 0; i < rank; i++) {
                point[p * (size_t)rank + (size_t)i] = below(dims[i]);
                if (length < size)
                    length += (size_t)snprintf(text + length, size - length, "%c%llu", i ? ',' : ' ',
                                               (unsigned long long)point[p * (size_t)rank + (size_t)i]);
            }
        H5Sselect_elements(space, H5S_SELECT_SET, n, point);
        return;
    }
    const H5S_seloper_t ways[] = {H5S_SELECT_OR, H5S_SELECT_OR, H5S_SELECT_XOR, H5S_SELECT_NOTB};
    size_t boxes = chance(65) ? 1 : 2 + below(3);
    text[0] = 0;
    for (size_t k = 0; k < boxes; k++) {
        H5S_seloper_t how = k ? ways[below(4)] : H5S_SELECT_SET;
        for (int i = 0; i < rank; i++) {
            start[i] = below(dims[i]);
            hsize_t room = dims[i] - start[i];
            block[i] = 1 + below(chance(50) ? (size_t)room : (room < 4 ? (size_t)room : 4));
            stride[i] = block[i] + below(4);
            hsize_t most = (room - block[i]) / stride[i] + 1;
            count[i] = chance(50) ? 1 : 1 + below((size_t)most);
            if (length < size)
                length += (size_t)snprintf(text + length, size - length, "%s%llu+%llux%llu/%llu",
                                           i   ? ","
                                           : k ? " | "
                                               : "",
                                           (unsigned long long)start[i], (unsigned long long)count[i],
                                           (unsigned long long)block[i], (unsigned long long)stride[i]);
        }
        H5Sselect_hyperslab(space, how, start, stride, count, block);
    }
    if (boxes > 1 && !sound(space, rank)) {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block);
        snprintf(text + (length < size ? length : size - 1), length < size ? size - length : 1, " (the last alone)");
    }
}

void plan_transfer(transfer *t, hid_t set, bool whole)
{
    hid_t file_type = H5Dget_type(set), space = H5Dget_space(set);
    char selection[500] = "all";
    hsize_t dims[3];
    t->type = memory_type(file_type, whole || chance(50));
    H5Tclose(file_type);
    t->plist = H5P_DEFAULT;
    t->mem_space = H5S_ALL;
    size_t extent = H5Sget_simple_extent_type(space) == H5S_NULL ? 0 : (size_t)H5Sget_simple_extent_npoints(space);
    t->elements = extent;
    if (!whole)
        random_selection(space, selection, sizeof selection);
    if (H5Sget_select_type(space) == H5S_SEL_POINTS && type_contains(t->type, H5T_VLEN)) { /* D39 */
        snprintf(selection, sizeof selection, "all");
        H5Sselect_all(space);
    }
    size_t n = extent ? (size_t)H5Sget_select_npoints(space) : 0;
    const char *memory = "the same";
    t->file_space = space;
    if (!whole && extent) {
        hsize_t zero = 0, two = 2, start[2], count[2], one[2] = {1, 1};
        size_t how = below(6);
        /* two values read into one place: the first one, with its hold on the file, would never be given back */
        if (how == 0 && H5Sget_select_type(space) == H5S_SEL_POINTS && type_has_new_references(t->type))
            how = 1;
        switch (how) {
        case 0:
            break;
        case 1: /* one after the other */
            if (n == 0)
                break;
            memory = "line";
            dims[0] = n;
            t->mem_space = H5Screate_simple(1, dims, NULL);
            t->elements = n;
            break;
        case 2: /* every second, with room around */
            if (n == 0)
                break;
            memory = "every second";
            dims[0] = 2 * n + 3;
            start[0] = 1;
            count[0] = n;
            t->mem_space = H5Screate_simple(1, dims, NULL);
            H5Sselect_hyperslab(t->mem_space, H5S_SELECT_SET, start, &two, count, one);
            t->elements = 2 * n + 3;
            break;
        case 3: /* a column */
            if (n == 0)
                break;
            memory = "column";
            dims[0] = n;
            dims[1] = 3;
            start[0] = zero;
            start[1] = 1;
            count[0] = n;
            count[1] = 1;
            t->mem_space = H5Screate_simple(2, dims, NULL);
            H5Sselect_hyperslab(t->mem_space, H5S_SELECT_SET, start, NULL, count, one);
            t->elements = 3 * n;
            break;
        case 4: /* points, backwards */
            if (n == 0 || n > 200)
                break;
            memory = "points";
            dims[0] = n + 1;
            hsize_t point[200];
            for (size_t i = 0; i < n; i++)
                point[i] = n - i;
            t->mem_space = H5Screate_simple(1, dims, NULL);
            H5Sselect_elements(t->mem_space, H5S_SELECT_SET, n, point);
            t->elements = n + 1;
            break;
        case 5:
            if (n == 0)
                break;
            memory = "block";
            t->mem_space = H5S_BLOCK;
            t->elements = n;
            break;
        }
    }
    if (t->mem_space == H5S_ALL && (whole || (n == extent && chance(50)))) {
        H5Sclose(space);
        t->file_space = H5S_ALL;
    }
    H5T_class_t cls = H5Tget_class(t->type);
    const char *transform = "";
    H5D_space_status_t allocated = H5D_SPACE_STATUS_ERROR;
    H5Dget_space_status(set, &allocated); /* D19 */
    if ((cls == H5T_INTEGER || cls == H5T_FLOAT) && !whole && allocated == H5D_SPACE_STATUS_ALLOCATED && chance(6)) {
        transform = ", transformed 2*x+1";
        H5Tclose(t->type); /* most others are refused, half-way through */
        t->type = H5Tcopy(H5T_NATIVE_DOUBLE);
        t->plist = H5Pcreate(H5P_DATASET_XFER);
        H5Pset_data_transform(t->plist, "2*x+1");
    } else if (chance(5)) {
        transform = ", small conversion buffer";
        t->plist = H5Pcreate(H5P_DATASET_XFER);
        H5Pset_buffer(t->plist, 1024 + H5Tget_size(t->type) * 4, NULL, NULL);
    }
    snprintf(t->text, sizeof t->text, "file %s, memory %s, class %d size %zu%s", selection, memory, (int)cls,
             H5Tget_size(t->type), transform);
}

void name_all_members(transfer *t, hid_t set)
{
    if (type_contains(t->type, H5T_COMPOUND)) {
        H5Tclose(t->type);
        t->type = H5Dget_type(set);
    }
}

void end_transfer(transfer *t)
{
    H5Tclose(t->type);
    if (t->file_space > 0)
        H5Sclose(t->file_space);
    if (t->mem_space > 0 && t->mem_space != H5S_BLOCK)
        H5Sclose(t->mem_space);
    if (t->plist != H5P_DEFAULT)
        H5Pclose(t->plist);
}

static bool names_all_members(hid_t memory, hid_t file)
{
    H5T_class_t cls = H5Tget_class(file);
    bool all = true;
    if (cls == H5T_ARRAY) {
        hid_t base[2] = {H5Tget_super(memory), H5Tget_super(file)};
        all = names_all_members(base[0], base[1]);
        H5Tclose(base[0]);
        H5Tclose(base[1]);
    }
    for (int i = 0; cls == H5T_COMPOUND && i < H5Tget_nmembers(file) && all; i++) {
        char *name = H5Tget_member_name(file, (unsigned)i);
        int at = H5Tget_member_index(memory, name);
        H5free_memory(name);
        if ((all = at >= 0)) {
            hid_t member[2] = {H5Tget_member_type(memory, (unsigned)at), H5Tget_member_type(file, (unsigned)i)};
            all = names_all_members(member[0], member[1]);
            H5Tclose(member[0]);
            H5Tclose(member[1]);
        }
    }
    return all;
}

/* In the file, where strings of variable length are larger than in memory. */
static size_t stored_size(hid_t type)
{
    hid_t space = H5Screate(H5S_SCALAR), dcpl = H5Pcreate(H5P_DATASET_CREATE), own = H5Tcopy(type);
    H5Pset_alloc_time(dcpl, H5D_ALLOC_TIME_EARLY);
    hid_t set = H5Dcreate_anon(w.scratch, own, space, dcpl, H5P_DEFAULT);
    size_t size = (size_t)H5Dget_storage_size(set);
    H5Dclose(set);
    H5Tclose(own);
    H5Pclose(dcpl);
    H5Sclose(space);
    return size;
}

/* D38: would native HDF5 lose members of whole chunks? */
static bool loses_members(hid_t set, hid_t memory)
{
    hid_t dcpl = H5Dget_create_plist(set), file = H5Dget_type(set);
    bool loses = H5Pget_layout(dcpl) == H5D_CHUNKED && !names_all_members(memory, file) &&
                 H5Tget_size(memory) == stored_size(file);
    H5Pclose(dcpl);
    H5Tclose(file);
    return loses;
}

bool write_dataset(pair set, bool whole)
{
    SIDES;
    transfer t;
    plan_transfer(&t, set.id[0], whole);
    if (loses_members(set.id[0], t.type))
        name_all_members(&t, set.id[0]);
    also(": %s", t.text);
    void *values[2];
    random_values(t.type, t.elements, values);
    w.modified = true;
    bool done = BOTH("H5Dwrite", H5Dwrite(set.id[s], t.type, t.mem_space, t.file_space, t.plist, values[s]));
    reclaim_both(t.type, t.elements, values);
    end_transfer(&t);
    return done;
}

static int find_mask(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *found)
{
    (void)offset;
    (void)address;
    (void)size;
    *(unsigned *)found |= mask;
    return 0;
}

bool read_only(hid_t set)
{
    hid_t dcpl = H5Dget_create_plist(set), type = H5Dget_type(set);
    bool once = type_nests_references(type);
    unsigned found = 0, config, flags;
    hsize_t chunk[H5S_MAX_RANK], bytes = H5Tget_size(type);
    int filters = H5Pget_nfilters(dcpl);
    for (int i = H5Pget_layout(dcpl) == H5D_CHUNKED ? H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk) : 0; i-- > 0;)
        bytes *= chunk[i];
    if (filters > 0 && H5Pget_layout(dcpl) == H5D_CHUNKED)
        H5Dchunk_iter(set, H5P_DEFAULT, find_mask, &found);
    /* deflate leaves chunks out as well, but then of small ones only the size may be the same later on */
    for (int i = 0; i < filters && bytes > 200; i++) {
        size_t none = 0;
        if (H5Pget_filter2(dcpl, (unsigned)i, &flags, &none, NULL, 0, NULL, &config) == H5Z_FILTER_DEFLATE)
            found &= ~(1u << i);
    }
    H5Pclose(dcpl);
    H5Tclose(type);
    return once || found != 0;
}

bool without_fill(hid_t set)
{
    hid_t dcpl = H5Dget_create_plist(set);
    H5D_fill_value_t defined = 0;
    H5D_fill_time_t when = 0;
    H5Pfill_value_defined(dcpl, &defined);
    H5Pget_fill_time(dcpl, &when);
    H5D_alloc_time_t alloc = 0;
    H5Pget_alloc_time(dcpl, &alloc);
    H5D_layout_t layout = H5Pget_layout(dcpl);
    bool first = layout == H5D_CONTIGUOUS || (layout == H5D_CHUNKED && alloc == H5D_ALLOC_TIME_LATE);
    hid_t type = H5Dget_type(set);
    bool early = alloc == H5D_ALLOC_TIME_EARLY &&
                 ((defined == H5D_FILL_VALUE_DEFAULT && when == H5D_FILL_TIME_IFSET) || type_contains(type, H5T_VLEN));
    H5Tclose(type);
    bool outside = H5Pget_external_count(dcpl) > 0;
    H5Pclose(dcpl);
    return outside || defined == H5D_FILL_VALUE_UNDEFINED || when == H5D_FILL_TIME_NEVER || first || early;
}
