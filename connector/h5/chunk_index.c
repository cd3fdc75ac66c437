/* HDF5's extensible arrays from the bytes of a file: see chunk_index.h. An array has an index block with its first elements and the
 * addresses of the first data blocks; those of later ones are in super blocks. Data blocks with many elements have pages. */
#include "h5/chunk_index.h"

#include "base/bytes.h"
#include "h5/checksum.h"

#include <stdlib.h>

#define NOWHERE UINT64_MAX

#define HEADER     72
#define HIGHEST    44                /* of it: one more than the highest number that was given a place */
#define KEPT       8                 /* blocks */
#define MOST_BLOCK ((size_t)1 << 20) /* bytes of a block, or a page */
#define MUCH       ((size_t)1 << 10) /* of them take longer to compare with a checksum than to read */
#define MOST_BITS  48                /* of an index */

/* A block, or a page, that was read and compared with its checksum. */
typedef struct block {
    uint64_t address; /* NOWHERE: none */
    uint8_t *bytes;
    size_t size, room;
} block;

struct cow_chunk_index {
    const cow_source *source;
    uint64_t address, first;        /* of the header; of the index block */
    uint8_t filtered;               /* as it stands in each block */
    unsigned element, bits, offset; /* bytes of an element; bits of a number, bytes of one */
    unsigned inside, least, pointers, page_bits;
    block kept[KEPT];
    unsigned next; /* the one that goes next */
    bool summed;
    uint64_t touched; /* the block, or page, that was looked into last; NOWHERE: none */
};

int cow_chunk_index_open(const cow_source *source, uint64_t address, bool filtered, bool summed,
                         cow_chunk_index **index)
{
    uint8_t p[HEADER];
    cow_chunk_index *i;
    int status;

    *index = NULL;
    if ((status = cow_source_bring(source, address, p, sizeof p)) <= 0)
        return status;
    if (memcmp(p, "EAHD", 4) != 0 || p[4] != 0 || p[5] != filtered || (filtered ? p[6] < 13 || p[6] > 20 : p[6] != 8) ||
        p[7] == 0 || p[7] > MOST_BITS || p[8] == 0 || !cow_is_power(p[9]) || p[10] < 2 || !cow_is_power(p[10]) ||
        p[11] > 20 || cow_log2(p[9]) >= p[7] || !cow_source_good(source, p, HEADER - 4, cow_get32(p + HEADER - 4)))
        return 0;
    if ((i = calloc(1, sizeof *i)) == NULL)
        return 0;
    *i = (cow_chunk_index){.source = source,
                           .address = address,
                           .first = cow_get64(p + 60),
                           .filtered = filtered,
                           .element = p[6],
                           .bits = p[7],
                           .offset = (p[7] + 7u) / 8,
                           .inside = p[8],
                           .least = p[9],
                           .pointers = p[10],
                           .page_bits = p[11],
                           .summed = summed,
                           .touched = NOWHERE};
    for (unsigned k = 0; k < KEPT; k++)
        i->kept[k].address = NOWHERE;
    *index = i;
    return 1;
}

void cow_chunk_index_close(cow_chunk_index *index)
{
    if (index == NULL)
        return;
    for (unsigned k = 0; k < KEPT; k++)
        free(index->kept[k].bytes);
    free(index);
}

/* SIZE bytes at ADDRESS, the last four of which are the checksum of the others. MAGIC NULL: a page has none. 1 and *BYTES, until the
 * next call but KEPT - 1. */
static int get(cow_chunk_index *i, uint64_t address, size_t size, const char *magic, const uint8_t **bytes)
{
    block *b;
    int status;

    for (unsigned k = 0; k < KEPT; k++)
        if (i->kept[k].address == address && i->kept[k].size == size) {
            *bytes = i->kept[k].bytes;
            return 1;
        }
    if (size > MOST_BLOCK)
        return 0;
    b = &i->kept[i->next];
    i->next = (i->next + 1) % KEPT;
    b->address = NOWHERE;
    if (b->room < size) {
        free(b->bytes);
        b->room = 0;
        if ((b->bytes = malloc(size)) == NULL)
            return 0;
        b->room = size;
    }
    if ((status = cow_source_bring(i->source, address, b->bytes, size)) <= 0)
        return status;
    if (!cow_source_good(i->source, b->bytes, size - 4, cow_get32(b->bytes + size - 4)) ||
        (magic != NULL && (memcmp(b->bytes, magic, 4) != 0 || b->bytes[4] != 0 || b->bytes[5] != i->filtered ||
                           cow_get64(b->bytes + 6) != i->address)))
        return 0;
    b->address = address;
    b->size = size;
    *bytes = b->bytes;
    return 1;
}

static bool is_kept(const cow_chunk_index *i, uint64_t address)
{
    for (unsigned k = 0; k < KEPT; k++)
        if (i->kept[k].address == address)
            return true;
    return false;
}

static int take_element(const cow_chunk_index *i, const uint8_t *p, cow_chunk_place *place)
{
    place->address = cow_get64(p);
    if (i->filtered && place->address != NOWHERE) {
        place->size = cow_get_bytes(p + 8, i->element - 12);
        place->mask = cow_get32(p + i->element - 4);
    }
    return 1;
}

/* Where an element is: AT so far into the block at ADDRESS of SIZE bytes, which begins with MAGIC; NULL: it is a page. ADDRESS NOWHERE: there is none yet. */
typedef struct element {
    uint64_t address;
    size_t size, at;
    const char *magic;
} element;

/* The element of a large block alone. 1; 0: the block is read and compared; -1. */
static int peek(cow_chunk_index *i, const element *e, cow_chunk_place *place)
{
    uint8_t bytes[20];
    int status;

    if (!i->summed || e->size < MUCH || i->touched == e->address || is_kept(i, e->address))
        return 0;
    i->touched = e->address;
    status = cow_source_bring(i->source, e->address + e->at, bytes, i->element);
    return status <= 0 ? status : take_element(i, bytes, place);
}

/* The element NUMBER of the data block at ADDRESS, with ELEMENTS of them. What it says of its place among the others is not what it should
 * be in those of the index block, and HDF5 does not look at it. */
static int in_data_block(cow_chunk_index *i, uint64_t address, uint64_t elements, bool paged, uint64_t number,
                         element *e)
{
    const uint64_t in_page = (uint64_t)1 << i->page_bits;
    const size_t prefix = 14 + i->offset, size = prefix + (paged ? 0 : (size_t)elements * i->element) + 4;
    const uint8_t *p;
    int status;

    if (!paged) {
        *e = (element){address, size, prefix + (size_t)number * i->element, "EADB"};
        return 1;
    }
    if ((status = get(i, address, size, "EADB", &p)) <= 0)
        return status;
    *e = (element){address + size + (number >> i->page_bits) * (in_page * i->element + 4),
                   (size_t)in_page * i->element + 4, (size_t)(number & (in_page - 1)) * i->element, NULL};
    return 1;
}

static int locate(cow_chunk_index *i, uint64_t number, element *e)
{
    const unsigned levels = 1 + i->bits - cow_log2(i->least), near = 2 * cow_log2(i->pointers),
                   near_blocks = 2 * (i->pointers - 1);
    const size_t first_size =
        14 + (size_t)i->inside * i->element + ((size_t)near_blocks + (levels > near ? levels - near : 0)) * 8 + 4;
    const uint8_t *p;
    uint64_t begins, before, blocks, elements, address;
    unsigned level;
    bool paged;
    int status;

    *e = (element){.address = NOWHERE};
    if (i->first == NOWHERE)
        return 1;
    if (number < i->inside) {
        *e = (element){i->first, first_size, 14 + (size_t)number * i->element, "EAIB"};
        return 1;
    }
    if ((status = get(i, i->first, first_size, "EAIB", &p)) <= 0)
        return status;
    number -= i->inside;
    level = cow_log2(number / i->least + 1);
    if (level >= levels)
        return 0;
    /* of the levels, each with so many blocks of so many elements, those before this one */
    begins = i->least * (((uint64_t)1 << level) - 1);
    blocks = (uint64_t)1 << (level / 2);
    elements = i->least * ((uint64_t)1 << ((level + 1) / 2));
    before = level % 2 == 0 ? 2 * (blocks - 1) : 3 * blocks - 2;
    number -= begins;
    if (level < near) {
        address = cow_get64(p + 14 + (size_t)i->inside * i->element + (size_t)(before + number / elements) * 8);
        paged = false;
    } else {
        const uint64_t pages = elements >> i->page_bits, block_number = number / elements;
        size_t mask, size;

        paged = elements > (uint64_t)1 << i->page_bits;
        mask = paged ? (size_t)((pages + 7) / 8) : 0;
        if (blocks > MOST_BLOCK / (mask + 8))
            return 0;
        size = 14 + i->offset + (size_t)blocks * (mask + 8) + 4;
        address = cow_get64(p + 14 + (size_t)i->inside * i->element + ((size_t)near_blocks + level - near) * 8);
        if (address == NOWHERE)
            return 1;
        if ((status = get(i, address, size, "EASB", &p)) <= 0)
            return status;
        if (cow_get_bytes(p + 14, i->offset) != begins)
            return 0;
        address = cow_get64(p + 14 + i->offset + (size_t)blocks * mask + (size_t)block_number * 8);
        if (paged && address != NOWHERE) {
            const uint64_t page = block_number * pages + ((number % elements) >> i->page_bits);

            if (!(p[14 + i->offset + (size_t)(page / 8)] & 0x80 >> page % 8))
                return 1; /* it was never written */
        }
    }
    if (address == NOWHERE)
        return 1;
    return elements > MOST_BLOCK * 8 ? 0 : in_data_block(i, address, elements, paged, number % elements, e);
}

int cow_chunk_index_find(cow_chunk_index *i, uint64_t number, cow_chunk_place *place)
{
    const uint8_t *p;
    element e;
    int status;

    *place = (cow_chunk_place){.address = NOWHERE};
    if ((status = locate(i, number, &e)) <= 0 || e.address == NOWHERE || (status = peek(i, &e, place)) != 0 ||
        (status = get(i, e.address, e.size, e.magic, &p)) <= 0)
        return status;
    return take_element(i, p + e.at, place);
}

/* ---- writing ---- */

int cow_chunk_index_may_put(cow_chunk_index *i, uint64_t number, uint64_t *address)
{
    const uint8_t *p;
    element e;
    int status;

    *address = NOWHERE;
    if (i->filtered || (status = locate(i, number, &e)) == 0 || (status > 0 && e.address == NOWHERE))
        return 0;
    if (status < 0 || (status = get(i, e.address, e.size, e.magic, &p)) <= 0)
        return status;
    *address = cow_get64(p + e.at);
    return 1;
}

/* SIZE bytes at AT of a block have changed, the last four of which are the checksum of the others. */
static int put(uint8_t *bytes, size_t size, size_t at, uint64_t address, cow_header_writer *write, void *context)
{
    cow_metadata_sum_up(bytes, size);
    return write(context, address + at, bytes + at, 8) < 0 ||
                   write(context, address + size - 4, bytes + size - 4, 4) < 0
               ? -1
               : 1;
}

/* The array has one more number, if NUMBER is the highest. */
static int raise(const cow_chunk_index *i, uint64_t number, cow_header_writer *write, void *context)
{
    uint8_t p[HEADER];
    int status = cow_source_bring(i->source, i->address, p, sizeof p);

    if (status <= 0 || !cow_source_good(i->source, p, HEADER - 4, cow_get32(p + HEADER - 4)))
        return status < 0 ? -1 : 0;
    if (cow_get64(p + HIGHEST) > number)
        return 1;
    cow_put64(p + HIGHEST, number + 1);
    return put(p, HEADER, HIGHEST, i->address, write, context);
}

int cow_chunk_index_put(cow_chunk_index *i, uint64_t number, uint64_t address, cow_header_writer *write, void *context)
{
    const uint8_t *p;
    element e;
    int status;

    if ((status = locate(i, number, &e)) <= 0 || e.address == NOWHERE ||
        (status = get(i, e.address, e.size, e.magic, &p)) <= 0)
        return status < 0 ? -1 : 0;
    if ((status = raise(i, number, write, context)) <= 0)
        return status;
    cow_put64((uint8_t *)(uintptr_t)p + e.at, address); /* one of those that are kept */
    return put((uint8_t *)(uintptr_t)p, e.size, e.at, e.address, write, context);
}
