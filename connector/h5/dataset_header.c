/* See dataset_header.h. The layouts of messages are those of the HDF5 File Format Specification, IV.A.2; of mappings,
 * VIII.A. */
#include "h5/dataset_header.h"

#include "base/bytes.h"
#include "h5/checksum.h"
#include "h5/collection.h"

#include <stdlib.h>

#define FLETCHER32 3

#define FILL_TIME_IF_SET 2

#define LAYOUT_CHUNKED 2
#define LAYOUT_VIRTUAL 3
#define EXTENSIBLE     4

typedef struct reading {
    cow_dataset_header *to;
    bool space, type, layout;
} reading;

static bool take_space(cow_dataset_header *to, const uint8_t *p, size_t size)
{
    size_t each = 8;

    /* version 2, of a simple one */
    if (size < 4 || p[0] != 2 || p[1] > COW_DATASET_HEADER_RANK || p[2] & ~1 || p[3] > 1)
        return false;
    to->rank = p[1];
    if (p[2] & 1)
        each += 8;
    if (size < 4 + each * to->rank)
        return false;
    for (unsigned d = 0; d < to->rank; d++) {
        to->extent[d] = cow_get64(p + 4 + 8 * d);
        to->maximum[d] = p[2] & 1 ? cow_get64(p + 4 + 8 * (to->rank + d)) : to->extent[d];
    }
    return true;
}

static bool take_chunked(cow_dataset_header *to, const uint8_t *p, size_t size)
{
    size_t at = 5;
    unsigned dimensions, width;

    if (size < 5 || p[2] & ~3)
        return false;
    to->whole_edges = p[2] & 1;
    dimensions = p[3];
    width = p[4];
    if (dimensions < 2 || dimensions > COW_DATASET_HEADER_RANK + 1 || width < 1 || width > 8 ||
        size < 5 + (size_t)dimensions * width + 1 + 5 + 8)
        return false;
    for (unsigned d = 0; d + 1 < dimensions; d++, at += width)
        if ((to->chunk[d] = cow_get_bytes(p + at, width)) == 0)
            return false;
    if ((to->element_size = cow_get_bytes(p + at, width)) == 0)
        return false;
    at += width;
    if (p[at++] != EXTENSIBLE)
        return false;
    to->index = cow_get64(p + at + 5);
    to->layout = COW_DATASET_HEADER_CHUNKED;
    return true;
}

/* Version 3. What is wrong in it is HDF5's to say. */
static bool take_tree(cow_dataset_header *to, const uint8_t *p, size_t size)
{
    const unsigned dimensions = size < 3 ? 0 : p[2];

    if (dimensions < 2 || dimensions > COW_DATASET_HEADER_RANK + 1 || size < 11 + 4 * (size_t)dimensions)
        return true;
    to->index = cow_get64(p + 3);
    for (unsigned d = 0; d + 1 < dimensions; d++)
        if ((to->chunk[d] = cow_get32(p + 11 + 4 * d)) == 0)
            return true;
    if ((to->element_size = cow_get32(p + 11 + 4 * (dimensions - 1))) == 0)
        return true;
    to->chunk_rank = dimensions - 1;
    to->layout = COW_DATASET_HEADER_TREE;
    return true;
}

static bool take_layout(cow_dataset_header *to, const uint8_t *p, size_t size)
{
    if (size < 2)
        return false;
    if (p[0] == 3 && p[1] == LAYOUT_CHUNKED)
        return take_tree(to, p, size);
    if (p[0] != 4)
        return p[0] == 3; /* nothing that h5cow makes */
    if (p[1] == LAYOUT_CHUNKED)
        return take_chunked(to, p, size);
    if (p[1] == LAYOUT_VIRTUAL) {
        if (size < 14)
            return false;
        to->layout = COW_DATASET_HEADER_VIRTUAL;
        to->heap = cow_get64(p + 2);
        to->number = cow_get32(p + 10);
    }
    return true;
}

static bool take_filters(cow_dataset_header *to, const uint8_t *p, size_t size)
{
    if (size < 2 || p[0] != 2)
        return false;
    to->filters = p[1] == 0                                                  ? COW_DATASET_HEADER_PLAIN
                  : p[1] == 1 && size >= 4 && cow_get16(p + 2) == FLETCHER32 ? COW_DATASET_HEADER_FLETCHER32
                                                                             : COW_DATASET_HEADER_FILTERED;
    return true;
}

static bool take_fill(cow_dataset_header *to, const uint8_t *p, size_t size)
{
    if (size < 2 || p[0] != 3 || p[1] & 0xc0)
        return false;
    to->fill = p[1] & 0x10   ? COW_DATASET_HEADER_UNDEFINED
               : p[1] & 0x20 ? COW_DATASET_HEADER_USER
                             : COW_DATASET_HEADER_DEFAULT;
    to->fill_time = p[1] >> 2 & 3;
    return true;
}

static int take_message(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    reading *r = context;
    const uint8_t *body = message + prefix;
    const bool shared = message[3] & COW_MESSAGE_SHARED;

    switch (message[0]) {
    case COW_MESSAGE_SPACE:
        r->space = true;
        return !shared && take_space(r->to, body, length);
    case COW_MESSAGE_TYPE:
        r->type = true;
        if (!shared && length <= COW_DATASET_HEADER_TYPE) {
            memcpy(r->to->type, body, length);
            r->to->type_size = length;
        }
        return 1;
    case COW_MESSAGE_FILL:
        return !shared && take_fill(r->to, body, length);
    case COW_MESSAGE_LAYOUT:
        r->layout = true;
        return !shared && take_layout(r->to, body, length);
    case COW_MESSAGE_FILTERS:
        return !shared && take_filters(r->to, body, length);
    case COW_MESSAGE_ATTRIBUTE:
    case COW_MESSAGE_ATTRIBUTE_INFO:
    case COW_MESSAGE_COMMENT:
        r->to->bare = false;
        return 1;
    default:
        return 1;
    }
}

int cow_dataset_header_read(const cow_source *source, uint64_t address, cow_dataset_header *described)
{
    cow_header header;
    reading r = {.to = described};
    int status;

    described->address = address;
    described->type_size = 0;
    described->rank = 0;
    described->layout = COW_DATASET_HEADER_OTHER;
    described->filters = COW_DATASET_HEADER_PLAIN;
    described->fill = COW_DATASET_HEADER_DEFAULT;
    described->fill_time = FILL_TIME_IF_SET;
    described->bare = true;
    status = cow_header_visit(source, address, &header, take_message, &r);
    described->times = header.start[5] & COW_HEADER_TIMES;
    described->usual = (header.start[5] & ~(COW_HEADER_TIMES | 3)) == 0;
    if (described->layout == COW_DATASET_HEADER_TREE && described->chunk_rank != described->rank)
        described->layout = COW_DATASET_HEADER_OTHER;
    return status > 0 && !(r.space && r.type && r.layout) ? 0 : status;
}

/* ---- a new one ---- */

typedef struct image {
    const uint8_t *bytes;
} image;

static int read_image(void *context, uint64_t address, void *bytes, size_t size)
{
    memcpy(bytes, ((const image *)context)->bytes + address, size);
    return 0;
}

int cow_dataset_header_parse(const uint8_t *header, size_t size, cow_dataset_header *described)
{
    image i = {header};
    const cow_source source = {&i, size, read_image, false};

    return cow_dataset_header_read(&source, 0, described);
}

typedef struct places {
    const uint8_t *space, *layout, *type; /* type: the address of a named one */
    const uint8_t *fill;                  /* a value of variable length */
    unsigned rank;
} places;

static int find_places(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    const uint8_t *body = message + prefix;
    places *p = context;

    if (message[0] == COW_MESSAGE_SPACE && length >= 4 && body[0] == 2 && body[1] == p->rank && body[2] <= 1 &&
        length >= 4 + (body[2] + 1) * 8 * (size_t)p->rank)
        p->space = body;
    if (message[0] == COW_MESSAGE_LAYOUT && length >= 11 && body[0] == 3 && body[1] == LAYOUT_CHUNKED &&
        cow_get64(body + 3) == UINT64_MAX)
        p->layout = body;
    if (message[0] == COW_MESSAGE_TYPE && (message[3] & COW_MESSAGE_SHARED) && length == 10)
        p->type = body + 2;
    /* version 3: flags, size, value; that is a length, an address, a number */
    if (message[0] == COW_MESSAGE_FILL && length >= 6 + 16 && body[0] == 3 && (body[1] & 0x20) &&
        cow_get32(body + 2) == 16)
        p->fill = body + 6;
    return message[0] != COW_MESSAGE_CONTINUATION;
}

static bool find_in(const uint8_t *header, size_t size, places *p)
{
    cow_header parsed;
    size_t at;

    if (!cow_header_parse(header, size, &parsed) || parsed.first != size)
        return false;
    at = parsed.prefix + parsed.width;
    return cow_messages_each(header + at, size - 4 - at, parsed.ordered, find_places, p) == 1;
}

bool cow_dataset_header_move_fill(uint8_t *header, size_t size, uint64_t from, uint64_t to)
{
    places p = {.rank = 0};

    if (!find_in(header, size, &p) || p.fill == NULL || cow_get64(p.fill + 4) != from || cow_get32(p.fill + 12) != 1)
        return false;
    cow_put64(header + (p.fill + 4 - header), to);
    cow_metadata_sum_up(header, size);
    return true;
}

bool cow_dataset_header_fit(uint8_t *header, size_t size, unsigned rank, const uint64_t extent[],
                            const uint64_t maximum[], uint64_t index, uint64_t type, uint32_t now)
{
    places p = {.rank = rank};
    uint8_t *space;

    if (!find_in(header, size, &p) || p.space == NULL || p.layout == NULL || (p.type == NULL) != (type == UINT64_MAX))
        return false;
    space = header + (p.space - header) + 4;
    for (unsigned d = 0; d < rank; d++) {
        cow_put64(space + 8 * (size_t)d, extent[d]);
        if (p.space[2] == 1)
            cow_put64(space + 8 * ((size_t)rank + d), maximum[d]);
        else if (maximum[d] != extent[d])
            return false;
    }
    cow_put64(header + (p.layout - header) + 3, index);
    if (p.type != NULL)
        cow_put64(header + (p.type - header), type);
    for (unsigned i = 0; (header[5] & COW_HEADER_TIMES) && i < 4; i++)
        cow_put32(header + 6 + 4 * (size_t)i, now);
    cow_metadata_sum_up(header, size);
    return true;
}

/* ---- mappings ---- */

/* A text that ends before END; P is behind it afterwards. Only where it is shorter than SIZE it is put into TEXT. */
static bool take_text(const uint8_t **p, const uint8_t *end, size_t size, char text[])
{
    const uint8_t *zero = memchr(*p, '\0', (size_t)(end - *p));
    size_t length;

    if (zero == NULL)
        return false;
    length = (size_t)(zero - *p);
    if (length < size)
        memcpy(text, *p, length + 1);
    *p = zero + 1;
    return true;
}

int cow_dataset_header_source(const cow_source *source, const cow_dataset_header *described, size_t size, char file[],
                              char dataset[], uint64_t *mappings)
{
    uint8_t *bytes;
    size_t length = 0;
    int status = cow_collection_object(source, described->heap, described->number, &bytes, &length);

    file[0] = dataset[0] = '\0';
    *mappings = 0;
    if (status > 0) {
        const uint8_t *p = bytes + 9, *end = bytes + length - 4;

        /* version 0: texts follow each other */
        if (length < 13 || bytes[0] != 0 || !cow_source_good(source, bytes, length - 4, cow_get32(end)))
            status = 0;
        else if ((*mappings = cow_get64(bytes + 1)) > 0 &&
                 (!take_text(&p, end, size, file) || !take_text(&p, end, size, dataset)))
            status = 0;
    }
    free(bytes);
    return status;
}
