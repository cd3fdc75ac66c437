/* Types, attributes and elements of datasets from one file to another; references are translated. See copy.h. */
#include "copy.h"

#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)32 << 20)

/* ---- types ---- */

hid_t cli_copy_type(cli_copy *copy, hid_t type)
{
    H5O_info2_t info;

    if (H5Tcommitted(type) <= 0 || H5Oget_info3(type, &info, H5O_INFO_BASIC) < 0) {
        H5Eclear2(H5E_DEFAULT);
        return H5Tcopy(type);
    }
    uint64_t address = cli_address(&info.token), *known = cli_map_get(&copy->places, address);
    if (known != NULL && copy->object[*known].path != NULL)
        return H5Topen2(copy->to, copy->object[*known].path, H5P_DEFAULT);
    if (known != NULL)
        return H5Iinc_ref(copy->object[*known].pending) < 0 ? H5I_INVALID_HID : copy->object[*known].pending;
    /* Its own link comes later: made now without one, and kept open until then. */
    hid_t new = H5Tcopy(type), tcpl = H5Tget_create_plist(type);
    if (new < 0 || tcpl < 0 || H5Tcommit_anon(copy->to, new, tcpl, H5P_DEFAULT) < 0) {
        if (new >= 0)
            H5Tclose(new);
        new = H5I_INVALID_HID;
    } else {
        if (copy->objects == copy->room) {
            copy->room = copy->room == 0 ? 64 : 2 * copy->room;
            copy->object = cli_grow(copy->object, copy->room, sizeof *copy->object);
        }
        cli_map_put(&copy->places, address, copy->objects);
        copy->object[copy->objects++] = (cli_copied){.type = H5O_TYPE_NAMED_DATATYPE, .pending = new};
        H5Iinc_ref(new);
    }
    if (tcpl >= 0)
        H5Pclose(tcpl);
    return new;
}

bool cli_type_has(hid_t type, H5T_class_t class)
{
    H5T_class_t own = H5Tget_class(type);
    bool found = own == class || (class == H5T_VLEN && own == H5T_STRING && H5Tis_variable_str(type) > 0);

    if (found)
        return true;
    if (own == H5T_COMPOUND) {
        for (int i = 0; !found && i < H5Tget_nmembers(type); i++) {
            hid_t member = H5Tget_member_type(type, (unsigned)i);
            found = cli_type_has(member, class);
            H5Tclose(member);
        }
    } else if (own == H5T_ARRAY || own == H5T_VLEN) {
        hid_t base = H5Tget_super(type);
        found = cli_type_has(base, class);
        H5Tclose(base);
    }
    return found;
}

/* ---- references ---- */

/* Where the copy of an open object is; NULL: nowhere. */
static const char *path_of_copy(cli_copy *copy, hid_t object)
{
    H5O_info2_t info;
    uint64_t *known;

    if (object < 0 || H5Oget_info3(object, &info, H5O_INFO_BASIC) < 0 ||
        (known = cli_map_get(&copy->places, cli_address(&info.token))) == NULL)
        return NULL;
    return copy->object[*known].path;
}

static bool all_zero(const void *bytes, size_t size)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < size; i++)
        if (p[i] != 0)
            return false;
    return true;
}

static void translate_old(cli_copy *copy, H5R_type_t kind, size_t size, void *reference)
{
    hid_t object = H5I_INVALID_HID, region = H5I_INVALID_HID;
    unsigned char new[sizeof(hdset_reg_ref_t) > sizeof(hobj_ref_t) ? sizeof(hdset_reg_ref_t) : sizeof(hobj_ref_t)] = {0};
    const char *path;
    bool made = false;

    if (all_zero(reference, size))
        return;
    object = H5Rdereference2(copy->from, H5P_DEFAULT, kind, reference);
    if ((path = path_of_copy(copy, object)) != NULL) {
        if (kind == H5R_DATASET_REGION1)
            region = H5Rget_region(copy->from, kind, reference);
        made = (kind == H5R_OBJECT1 || region >= 0) && H5Rcreate(new, copy->to, path, kind, region) >= 0;
    }
    copy->dangling += !made;
    if (!made)
        memset(new, 0, sizeof new);
    memcpy(reference, new, size);
    if (region >= 0)
        H5Sclose(region);
    if (object >= 0)
        H5Oclose(object);
}

static void translate_new(cli_copy *copy, H5R_ref_t *reference)
{
    hid_t object = H5I_INVALID_HID, region = H5I_INVALID_HID;
    H5R_type_t kind = H5Rget_type(reference);
    char name[1024] = "";
    H5R_ref_t new;
    const char *path;
    bool made = false;

    if (all_zero(reference, sizeof *reference) || kind == H5R_BADTYPE)
        return;
    memset(&new, 0, sizeof new);
    object = H5Ropen_object(reference, H5P_DEFAULT, H5P_DEFAULT);
    if ((path = path_of_copy(copy, object)) != NULL) {
        if (kind == H5R_OBJECT2)
            made = H5Rcreate_object(copy->to, path, H5P_DEFAULT, &new) >= 0;
        else if (kind == H5R_DATASET_REGION2 && (region = H5Ropen_region(reference, H5P_DEFAULT, H5P_DEFAULT)) >= 0)
            made = H5Rcreate_region(copy->to, path, region, H5P_DEFAULT, &new) >= 0;
        else if (kind == H5R_ATTR && H5Rget_attr_name(reference, name, sizeof name) >= 0)
            made = H5Rcreate_attr(copy->to, path, name, H5P_DEFAULT, &new) >= 0;
    }
    copy->dangling += !made;
    H5Rdestroy(reference);
    if (!made)
        memset(&new, 0, sizeof new);
    *reference = new;
    if (region >= 0)
        H5Sclose(region);
    if (object >= 0)
        H5Oclose(object);
}

void cli_copy_references(cli_copy *copy, hid_t type, size_t count, void *elements)
{
    size_t size = H5Tget_size(type);
    H5T_class_t class = H5Tget_class(type);

    if (!cli_type_has(type, H5T_REFERENCE))
        return;
    if (class == H5T_REFERENCE) {
        bool object = H5Tequal(type, H5T_STD_REF_OBJ) > 0, region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
        for (size_t i = 0; i < count; i++) {
            void *element = (char *)elements + i * size;
            if (object || region)
                translate_old(copy, object ? H5R_OBJECT1 : H5R_DATASET_REGION1, size, element);
            else
                translate_new(copy, element);
        }
        H5Eclear2(H5E_DEFAULT);
    } else if (class == H5T_COMPOUND) {
        for (int m = 0; m < H5Tget_nmembers(type); m++) {
            hid_t member = H5Tget_member_type(type, (unsigned)m);
            size_t offset = H5Tget_member_offset(type, (unsigned)m);
            if (cli_type_has(member, H5T_REFERENCE))
                for (size_t i = 0; i < count; i++)
                    cli_copy_references(copy, member, 1, (char *)elements + i * size + offset);
            H5Tclose(member);
        }
    } else if (class == H5T_ARRAY || class == H5T_VLEN) {
        hid_t base = H5Tget_super(type);
        for (size_t i = 0; i < count; i++) {
            void *element = (char *)elements + i * size;
            if (class == H5T_VLEN)
                cli_copy_references(copy, base, ((hvl_t *)element)->len, ((hvl_t *)element)->p);
            else
                cli_copy_references(copy, base, size / H5Tget_size(base), element);
        }
        H5Tclose(base);
    }
}

/* ---- attributes ---- */

typedef struct attribute_names {
    char **name;
    size_t count;
} attribute_names;

static herr_t note_name(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    attribute_names *n = context;

    (void)object;
    (void)info;
    n->name = cli_grow(n->name, n->count + 1, sizeof *n->name);
    n->name[n->count++] = cli_strdup(name);
    return 0;
}

static int copy_attribute(cli_copy *copy, hid_t from, hid_t to, const char *path, const char *name)
{
    hid_t source = H5Aopen(from, name, H5P_DEFAULT), target = H5I_INVALID_HID;
    hid_t type = H5I_INVALID_HID, memory = H5I_INVALID_HID, new = H5I_INVALID_HID, space = H5I_INVALID_HID,
          acpl = H5I_INVALID_HID;
    void *value = NULL;
    bool read = false;
    int status = -1;

    if (source < 0 || (type = H5Aget_type(source)) < 0 || (space = H5Aget_space(source)) < 0 ||
        (acpl = H5Aget_create_plist(source)) < 0 || (memory = H5Tcopy(type)) < 0 ||
        (new = cli_copy_type(copy, type)) < 0 || (target = H5Acreate2(to, name, new, space, acpl, H5P_DEFAULT)) < 0)
        goto done;
    if (H5Sget_simple_extent_npoints(space) > 0) {
        size_t count = (size_t)H5Sget_simple_extent_npoints(space);
        value = cli_alloc(count, H5Tget_size(memory));
        if (H5Aread(source, memory, value) < 0)
            goto done;
        read = true;
        cli_copy_references(copy, memory, count, value);
        if (H5Awrite(target, memory, value) < 0)
            goto done;
    }
    status = 0;
done:
    if (status < 0) {
        char *what = cli_format("attribute '%s' of", name);
        cli_copy_failed(copy, what, path);
        free(what);
    }
    if (read)
        H5Treclaim(memory, space, H5P_DEFAULT, value);
    free(value);
    if (target >= 0 && H5Aclose(target) < 0 && status == 0)
        status = cli_copy_failed(copy, "an attribute of", path);
    if (acpl >= 0)
        H5Pclose(acpl);
    if (space >= 0)
        H5Sclose(space);
    if (new >= 0)
        H5Tclose(new);
    if (memory >= 0)
        H5Tclose(memory);
    if (type >= 0)
        H5Tclose(type);
    if (source >= 0)
        H5Aclose(source);
    return status;
}

int cli_copy_attributes(cli_copy *copy, hid_t from, hid_t to, const char *path)
{
    attribute_names names = {0};
    H5O_info2_t info;
    int status = 0;

    if (H5Oget_info3(from, &info, H5O_INFO_NUM_ATTRS) < 0)
        return cli_copy_failed(copy, "the attributes of", path);
    /* In the order of their creation where that is recorded: so it is recorded again. */
    if (info.num_attrs > 0 && H5Aiterate2(from, H5_INDEX_CRT_ORDER, H5_ITER_INC, NULL, note_name, &names) < 0) {
        for (size_t i = 0; i < names.count; i++)
            free(names.name[i]);
        names.count = 0;
        if (H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, NULL, note_name, &names) < 0)
            status = cli_copy_failed(copy, "the attributes of", path);
    }
    for (size_t i = 0; i < names.count; i++) {
        if (status == 0)
            status = copy_attribute(copy, from, to, path, names.name[i]);
        free(names.name[i]);
    }
    free(names.name);
    return status;
}

/* ---- elements ---- */

typedef struct stored_chunk {
    hsize_t offset[H5S_MAX_RANK];
    hsize_t size;
    unsigned mask;
} stored_chunk;
typedef struct stored_chunks {
    stored_chunk *chunk;
    size_t count, room;
    unsigned rank;
} stored_chunks;

static herr_t note_chunk(const hsize_t *offset, unsigned mask, haddr_t address, hsize_t size, void *context)
{
    stored_chunks *s = context;

    (void)address;
    if (s->count == s->room) {
        s->room = s->room == 0 ? 64 : 2 * s->room;
        s->chunk = cli_grow(s->chunk, s->room, sizeof *s->chunk);
    }
    s->chunk[s->count] = (stored_chunk){.size = size, .mask = mask};
    memcpy(s->chunk[s->count++].offset, offset, s->rank * sizeof *offset);
    return 0;
}

static int copy_encoded(hid_t from, hid_t to, const stored_chunks *stored)
{
    size_t room = 0;
    void *bytes = NULL;
    int status = 0;

    for (size_t i = 0; status == 0 && i < stored->count; i++) {
        const stored_chunk *c = &stored->chunk[i];
        uint32_t mask = 0;
        if (c->size > room)
            bytes = cli_grow(bytes, 1, room = c->size);
        if (H5Dread_chunk(from, H5P_DEFAULT, c->offset, &mask, bytes) < 0 ||
            H5Dwrite_chunk(to, H5P_DEFAULT, mask, c->offset, c->size, bytes) < 0)
            status = -1;
    }
    free(bytes);
    return status;
}

/* One box of elements. SPACE: the extent, used for both files. */
static int copy_box(cli_copy *copy, hid_t from, hid_t to, hid_t type, hid_t space, unsigned rank, const hsize_t start[],
                    const hsize_t count[])
{
    hid_t memory = rank == 0 ? H5Scopy(space) : H5Screate_simple((int)rank, count, NULL);
    size_t elements = 1;
    void *buffer;
    int status = -1;

    for (unsigned d = 0; d < rank; d++)
        elements *= count[d];
    buffer = cli_alloc(elements, H5Tget_size(type));
    if (memory >= 0 && (rank == 0 || H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0) &&
        H5Dread(from, type, memory, space, H5P_DEFAULT, buffer) >= 0) {
        cli_copy_references(copy, type, elements, buffer);
        if (H5Dwrite(to, type, memory, space, H5P_DEFAULT, buffer) >= 0)
            status = 0;
        hid_t stack = H5Eget_current_stack(); /* what follows would clear it */
        H5Treclaim(type, memory, H5P_DEFAULT, buffer);
        H5Eset_current_stack(stack);
    }
    free(buffer);
    if (memory >= 0) {
        hid_t stack = H5Eget_current_stack();
        H5Sclose(memory);
        H5Eset_current_stack(stack);
    }
    return status;
}

/* All of an extent, in boxes of about BLOCK_BYTES that are as long as they can be in the last dimensions. */
static int copy_boxes(cli_copy *copy, hid_t from, hid_t to, hid_t type, hid_t space)
{
    hsize_t extent[H5S_MAX_RANK], box[H5S_MAX_RANK], start[H5S_MAX_RANK] = {0}, count[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    size_t left = BLOCK_BYTES / H5Tget_size(type);

    if (rank < 0)
        return -1;
    if (rank == 0)
        return copy_box(copy, from, to, type, space, 0, NULL, NULL);
    for (int d = rank; d-- > 0;) {
        box[d] = extent[d] < left ? extent[d] : left > 0 ? left : 1;
        left /= box[d] > 0 ? box[d] : 1;
    }
    for (int d = 0; d >= 0;) {
        for (int e = 0; e < rank; e++)
            count[e] = extent[e] - start[e] < box[e] ? extent[e] - start[e] : box[e];
        if (copy_box(copy, from, to, type, space, (unsigned)rank, start, count) < 0)
            return -1;
        for (d = rank - 1; d >= 0 && (start[d] += box[d]) >= extent[d]; d--)
            start[d] = 0;
    }
    return 0;
}

static int copy_stored_boxes(cli_copy *copy, hid_t from, hid_t to, hid_t type, hid_t space, const stored_chunks *stored,
                             const hsize_t chunk[])
{
    hsize_t extent[H5S_MAX_RANK], count[H5S_MAX_RANK];

    H5Sget_simple_extent_dims(space, extent, NULL);
    for (size_t i = 0; i < stored->count; i++) {
        const hsize_t *offset = stored->chunk[i].offset;
        bool inside = true;
        for (unsigned d = 0; d < stored->rank; d++) {
            inside = inside && offset[d] < extent[d];
            if (inside)
                count[d] = extent[d] - offset[d] < chunk[d] ? extent[d] - offset[d] : chunk[d];
        }
        if (inside && copy_box(copy, from, to, type, space, stored->rank, offset, count) < 0)
            return -1;
    }
    return 0;
}

int cli_copy_elements(cli_copy *copy, hid_t from, hid_t to, const char *path)
{
    hid_t stored_type = H5Dget_type(from), type = H5I_INVALID_HID, space = H5Dget_space(from),
          dcpl = H5Dget_create_plist(from);
    hsize_t chunk[H5S_MAX_RANK];
    stored_chunks stored = {0};
    H5D_space_status_t allocated;
    int status = -1;

    if (stored_type < 0 || (type = H5Tcopy(stored_type)) < 0 || space < 0 || dcpl < 0 ||
        H5Dget_space_status(from, &allocated) < 0)
        goto done;
    /* Nothing was ever written: nothing is stored in the copy either. The data of external files and of virtual
     * datasets is not in this file. */
    status = 0;
    if (H5Sget_simple_extent_npoints(space) <= 0 || allocated == H5D_SPACE_STATUS_NOT_ALLOCATED ||
        H5Pget_layout(dcpl) == H5D_VIRTUAL || H5Pget_external_count(dcpl) > 0)
        goto done;
    if (H5Pget_layout(dcpl) != H5D_CHUNKED) {
        status = copy_boxes(copy, from, to, type, space);
        goto done;
    }
    stored.rank = (unsigned)H5Pget_chunk(dcpl, H5S_MAX_RANK, chunk);
    if (H5Dchunk_iter(from, H5P_DEFAULT, note_chunk, &stored) < 0)
        status = copy_boxes(copy, from, to, type, space);
    else if (cli_type_has(type, H5T_VLEN) || cli_type_has(type, H5T_REFERENCE) || copy_encoded(from, to, &stored) < 0)
        status = copy_stored_boxes(copy, from, to, type, space, &stored, chunk);
done:
    if (status < 0)
        cli_copy_failed(copy, "the data of", path);
    free(stored.chunk);
    if (dcpl >= 0)
        H5Pclose(dcpl);
    if (space >= 0)
        H5Sclose(space);
    if (type >= 0)
        H5Tclose(type);
    if (stored_type >= 0)
        H5Tclose(stored_type);
    return status;
}
