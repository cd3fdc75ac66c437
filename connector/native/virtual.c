/* Virtual datasets from their bytes: see virtual.h. */
#include "native/virtual.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "h5/checksum.h"
#include "journal/driver.h"
#include "native/header_file.h"
#include "native/kept_type.h"

#include <H5VLconnector_passthru.h>

#include <stdlib.h>
#include <string.h>

/* Bytes of a type's message, and of a fill value. */
#define TYPE_MOST 128
#define FILL_MOST 1024

struct cow_virtual {
    void *file;
    cow_native_bytes bytes;
    H5F_libver_t low;
    hid_t type_id;
    size_t element;
    uint8_t type[TYPE_MOST];
    size_t type_size;
    uint8_t *block; /* the mappings of the dataset that is described */
    size_t size, room;
    uint64_t mappings;
};

/* ---- boxes ---- */

int cow_box_list_add(cow_box_list *boxes, const uint64_t start[], const uint64_t size[])
{
    const size_t at = boxes->count * boxes->rank;

    if (COW_RESERVE(boxes->start, boxes->start_room, at, boxes->rank) < 0 ||
        COW_RESERVE(boxes->size, boxes->size_room, at, boxes->rank) < 0)
        return cow_error(COW_MEMORY, "no memory for the mappings of a view");
    memcpy(boxes->start + at, start, boxes->rank * sizeof *start);
    memcpy(boxes->size + at, size, boxes->rank * sizeof *size);
    boxes->count++;
    return 0;
}

void cow_box_list_free(cow_box_list *boxes)
{
    free(boxes->start);
    free(boxes->size);
    *boxes = (cow_box_list){.rank = boxes->rank};
}

/* ---- what all have in common ---- */

/* The message of a type that HDF5 keeps as it is in each version of its format. */
static bool encode_other(cow_virtual *v)
{
    uint8_t bytes[2 + TYPE_MOST];
    size_t size = sizeof bytes;
    const H5T_class_t class = H5Tget_class(v->type_id);

    if ((class != H5T_INTEGER && class != H5T_FLOAT && class != H5T_STRING && class != H5T_BITFIELD &&
         class != H5T_OPAQUE) ||
        H5Tis_variable_str(v->type_id) > 0 || H5Tencode(v->type_id, NULL, &size) < 0 || size <= 2 ||
        size > sizeof bytes || H5Tencode(v->type_id, bytes, &size) < 0 || bytes[0] != COW_MESSAGE_TYPE ||
        bytes[2] >> 4 != 1)
        return false;
    v->type_size = size - 2;
    memcpy(v->type, bytes + 2, v->type_size);
    return true;
}

static bool encode_type(cow_virtual *v)
{
    v->type_size = cow_type_message(v->type_id, v->type, sizeof v->type);
    v->element = H5Tget_size(v->type_id);
    return v->type_size == 0 ? encode_other(v) : v->type[0] >> 4 == 1;
}

static bool is_known(cow_virtual *v)
{
    return !v->bytes.shares && encode_type(v);
}

cow_virtual *cow_virtual_open(void *file, const cow_native_bytes *bytes, H5F_libver_t low, hid_t type, bool heap)
{
    cow_virtual *v = heap || bytes == NULL ? NULL : calloc(1, sizeof *v);
    bool known;

    if (v == NULL)
        return NULL;
    v->file = file;
    v->low = low;
    v->type_id = type;
    v->bytes = *bytes;
    H5E_BEGIN_TRY
    {
        known = is_known(v);
    }
    H5E_END_TRY
    if (known)
        return v;
    cow_virtual_close(v);
    return NULL;
}

void cow_virtual_close(cow_virtual *virtual)
{
    if (virtual == NULL)
        return;
    free(virtual->block);
    free(virtual);
}

/* ---- mappings ---- */

/* Of a block of them: version, number of mappings. */
#define BLOCK_HEADER 9

void cow_virtual_begin(cow_virtual *virtual)
{
    virtual->size = BLOCK_HEADER;
    virtual->mappings = 0;
}

static uint8_t *more(cow_virtual *v, size_t size)
{
    uint8_t *at;

    if (COW_RESERVE(v->block, v->room, v->size, size) < 0) {
        cow_error(COW_MEMORY, "no memory for the mappings of a view");
        return NULL;
    }
    at = v->block + v->size;
    v->size += size;
    return at;
}

/* Where the farthest box ends, in any dimension; UINT64_MAX: beyond that. */
static uint64_t farthest(const cow_box_list *boxes)
{
    uint64_t end = 0;

    for (size_t i = 0; i < boxes->count * boxes->rank; i++) {
        if (boxes->start[i] > UINT64_MAX - boxes->size[i])
            return UINT64_MAX;
        if (boxes->start[i] + boxes->size[i] > end)
            end = boxes->start[i] + boxes->size[i];
    }
    return end;
}

static uint8_t *put_number(uint8_t *p, unsigned width, uint64_t number)
{
    for (unsigned i = 0; i < width; i++)
        p[i] = (uint8_t)(number >> (8 * i));
    return p + width;
}

/* A list of corners, in numbers of WIDTH bytes: version 3 of a hyperslab, or version 1, which has four. */
static int put_corners(cow_virtual *v, const cow_box_list *boxes, unsigned version, unsigned width)
{
    const size_t numbers = 2 * boxes->count * boxes->rank;
    uint8_t *p = more(v, (version == 1 ? 20 : 14) + width * (1 + numbers));

    if (p == NULL)
        return -1;
    cow_put32(p, H5S_SEL_HYPERSLABS);
    cow_put32(p + 4, version);
    if (version == 1) {
        cow_put32(p + 8, 0);
        cow_put32(p + 12, (uint32_t)(8 + 4 * numbers));
        p += 16;
    } else {
        p[8] = 0; /* not regular */
        p[9] = (uint8_t)width;
        p += 10;
    }
    cow_put32(p, boxes->rank);
    p = put_number(p + 4, width, boxes->count);
    for (size_t i = 0; i < boxes->count; i++) {
        const uint64_t *start = boxes->start + i * boxes->rank, *size = boxes->size + i * boxes->rank;

        for (unsigned d = 0; d < boxes->rank; d++)
            p = put_number(p, width, start[d]);
        for (unsigned d = 0; d < boxes->rank; d++)
            p = put_number(p, width, start[d] + size[d] - 1);
    }
    return 0;
}

/* One box, by start, stride, count and block of 64 bits: version 2. */
static int put_regular(cow_virtual *v, const cow_box_list *boxes)
{
    uint8_t *p = more(v, 17 + 32 * (size_t)boxes->rank);

    if (p == NULL)
        return -1;
    cow_put32(p, H5S_SEL_HYPERSLABS);
    cow_put32(p + 4, 2);
    p[8] = 1; /* regular */
    cow_put32(p + 9, 4 + 32 * boxes->rank);
    cow_put32(p + 13, boxes->rank);
    p += 17;
    for (unsigned d = 0; d < boxes->rank; d++, p += 32) {
        cow_put64(p, boxes->start[d]);
        cow_put64(p + 8, 1);
        cow_put64(p + 16, 1);
        cow_put64(p + 24, boxes->size[d]);
    }
    return 0;
}

/* HDF5 1.10 reads versions 1 and 2, where they can say it. */
static int put_boxes(cow_virtual *v, const cow_box_list *boxes)
{
    const uint64_t end = farthest(boxes);

    if (end == UINT64_MAX)
        return cow_error(COW_UNSUPPORTED, "a box of a mapping ends beyond 64 bits");
    if (v->low < H5F_LIBVER_V112 && end <= UINT32_MAX)
        return put_corners(v, boxes, 1, 4);
    if (v->low < H5F_LIBVER_V112 && boxes->count == 1)
        return put_regular(v, boxes);
    return put_corners(v, boxes, 3, end > UINT32_MAX ? 8 : end > UINT16_MAX || boxes->count > UINT16_MAX ? 4 : 2);
}

static int put_selection(cow_virtual *v, const cow_box_list *boxes)
{
    uint8_t *p;

    if (boxes != NULL)
        return put_boxes(v, boxes);
    if ((p = more(v, 16)) == NULL)
        return -1;
    memset(p, 0, 16);
    cow_put32(p, H5S_SEL_ALL);
    cow_put32(p + 4, 1);
    return 0;
}

int cow_virtual_map(cow_virtual *virtual, const cow_box_list *shown, const char *source, const cow_box_list *from)
{
    const size_t length = strlen(source) + 1;
    uint8_t *p = more(virtual, 2 + length);

    if (p == NULL)
        return -1;
    memcpy(p, ".", 2); /* this file */
    memcpy(p + 2, source, length);
    virtual->mappings++;
    return put_selection(virtual, from) < 0 ? -1 : put_selection(virtual, shown);
}

/* The block goes into a heap; ID: its place there. */
static int put_block(cow_virtual *v, uint8_t id[12])
{
    if (more(v, 4) == NULL)
        return -1;
    v->block[0] = 0;
    cow_put64(v->block + 1, v->mappings);
    cow_metadata_sum_up(v->block, v->size);
    return H5VLblob_put(v->file, cow_native_id(), v->block, v->size, id, NULL) < 0
               ? cow_error_native("cannot write the mappings of a view")
               : 0;
}

/* ---- the object header ---- */

typedef struct settings {
    bool times;
    uint8_t fill[6 + FILL_MOST];
    size_t fill_size;
} settings;

/* false: HDF5 has to. */
static bool read_settings(const cow_virtual *v, hid_t dcpl, settings *s)
{
    H5D_alloc_time_t allocated;
    H5D_fill_time_t filled;
    H5D_fill_value_t defined;
    unsigned order, most, least;
    hbool_t times;

    s->fill[0] = 3;
    s->fill_size = 2;
    if (cow_native_is_usual_dcpl(dcpl, &s->times)) {
        s->fill[1] = H5D_ALLOC_TIME_INCR | H5D_FILL_TIME_IFSET << 2;
        return true;
    }
    if (H5Pget_attr_creation_order(dcpl, &order) < 0 || order != 0 ||
        H5Pget_attr_phase_change(dcpl, &most, &least) < 0 || most != 8 || least != 6 ||
        H5Pget_obj_track_times(dcpl, &times) < 0 || H5Pget_alloc_time(dcpl, &allocated) < 0 ||
        H5Pget_fill_time(dcpl, &filled) < 0 || H5Pfill_value_defined(dcpl, &defined) < 0 ||
        allocated < H5D_ALLOC_TIME_EARLY || allocated > H5D_ALLOC_TIME_INCR || filled > H5D_FILL_TIME_IFSET ||
        defined == H5D_FILL_VALUE_ERROR)
        return false;
    s->times = times;
    s->fill[1] = (uint8_t)(allocated | filled << 2 | (defined == H5D_FILL_VALUE_UNDEFINED) << 4 |
                           (defined == H5D_FILL_VALUE_USER_DEFINED) << 5);
    if (defined != H5D_FILL_VALUE_USER_DEFINED)
        return true;
    if (v->element > FILL_MOST || H5Pget_fill_value(dcpl, v->type_id, s->fill + 6) < 0)
        return false;
    cow_put32(s->fill + 2, (uint32_t)v->element);
    s->fill_size += 4 + v->element;
    return true;
}

static size_t encode_space(uint8_t *p, unsigned rank, const hsize_t extent[], const hsize_t maximum[])
{
    p[0] = 2;
    p[1] = (uint8_t)rank;
    p[2] = 1; /* with the maximum */
    p[3] = 1; /* simple */
    for (unsigned d = 0; d < rank; d++) {
        cow_put64(p + 4 + 8 * (size_t)d, extent[d]);
        cow_put64(p + 4 + 8 * ((size_t)rank + d), maximum == NULL ? extent[d] : maximum[d]);
    }
    return 4 + 16 * (size_t)rank;
}

int cow_virtual_put(cow_virtual *virtual, unsigned rank, const hsize_t extent[], const hsize_t maximum[], hid_t dcpl,
                    uint64_t *address)
{
    static const uint8_t room[5]; /* for the number of links, where it has several */
    uint8_t bytes[COW_NEW_START + 4 + 4 + 16 * H5S_MAX_RANK + 4 + TYPE_MOST + 4 + sizeof(settings) + 4 + 14 + 9 + 4],
        *messages = bytes + COW_NEW_START, *p = messages;
    uint8_t space[4 + 16 * H5S_MAX_RANK], layout[14] = {4, H5D_VIRTUAL};
    settings s;

    if (virtual->mappings == 0)
        return 0;
    if (!read_settings(virtual, dcpl, &s)) {
        cow_error_clear();
        H5Eclear2(H5E_DEFAULT);
        return 0;
    }
    if (put_block(virtual, layout + 2) < 0)
        return -1;
    p = cow_new_message(p, COW_MESSAGE_SPACE, 0, space, encode_space(space, rank, extent, maximum));
    p = cow_new_message(p, COW_MESSAGE_TYPE, 1, virtual->type, virtual->type_size);
    p = cow_new_message(p, COW_MESSAGE_FILL, 1, s.fill, s.fill_size);
    p = cow_new_message(p, COW_MESSAGE_LAYOUT, 0, layout, sizeof layout);
    p = cow_new_message(p, COW_MESSAGE_NIL, 0, room, sizeof room);
    return cow_header_write(&virtual->bytes, messages, p, s.times, address) < 0 ? -1 : 1;
}
