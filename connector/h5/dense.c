/* Large groups from the bytes of the file: see dense.h. */
#include "h5/dense.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/vector.h"
#include "h5/checksum.h"
#include "h5/new_header.h"

#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT64_MAX

/* What the size of a copy is a multiple of, at most. */
#define STEP_MOST ((size_t)4096)
/* Of all that a group has together. */
#define MOST ((size_t)64 << 20)
/* A place in the file that belongs to the group. All its bytes are copied; addresses in it are those of other pieces. */
typedef struct piece {
    uint64_t address, size; /* in the file */
    size_t at;              /* in `bytes` */
    size_t checked;         /* bytes in front of its checksum, or of a direct block where that stands */
    uint64_t offset;        /* of a direct block: in the heap */
    uint64_t to;            /* in the file, of the copy */
    bool direct;
} piece;

/* Bytes that say where another piece is. */
typedef struct pointer {
    size_t at;
    uint64_t address;
} pointer;

/* More than 20 fields: what is read in one pass over header, heap and trees is written in another, which needs all of it. */
struct cow_dense {
    const cow_source *source;
    uint8_t *bytes;
    size_t size, bytes_room;
    piece *piece;
    size_t pieces, piece_room;
    pointer *pointer;
    size_t pointers, pointer_room;
    uint8_t *header; /* the object header, with all its messages in one chunk */
    size_t header_size, header_room;
    size_t sized;     /* where in it the size of its chunk is */
    bool ordered;     /* its messages have numbers */
    size_t link_info; /* of the message in it: where the three addresses begin */
    bool by_creation;
    unsigned least;                /* cow_dense_least */
    unsigned id_offset, id_length; /* bytes of the parts of a heap's id */
    size_t block_header;           /* bytes of a direct block before what is in it */
    bool sums;                     /* direct blocks have a checksum */
    size_t *direct;                /* numbers of the direct blocks, in the order of the heap */
    size_t directs, direct_room;
    struct record {
        uint32_t hash;
        size_t link; /* of the message, in `bytes` */
        size_t piece;
    } *record; /* in the order of hashes */
    size_t records, record_room;
    cow_header from; /* the object header in the file */
    uint64_t address;
};

/* ---- reading ---- */

/* The piece of SIZE bytes at ADDRESS, whose first four are MAGIC. *AT: where it is in d->bytes. */
static int take(cow_dense *d, uint64_t address, uint64_t size, const char *magic, size_t *at)
{
    int found;

    if (size < 8 || size > MOST || d->size > MOST - size)
        return 0;
    if (COW_RESERVE(d->bytes, d->bytes_room, d->size, (size_t)size) < 0 ||
        COW_RESERVE(d->piece, d->piece_room, d->pieces, 1) < 0)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    if ((found = cow_source_bring(d->source, address, d->bytes + d->size, (size_t)size)) <= 0)
        return found;
    *at = d->size;
    if (memcmp(d->bytes + *at, magic, 4) != 0)
        return 0;
    d->piece[d->pieces++] = (piece){.address = address, .size = size, .at = *at, .checked = (size_t)size - 4};
    d->size += (size_t)size;
    return 1;
}

/* The checksum of the newest piece, behind CHECKED bytes. */
static bool whole(cow_dense *d, size_t checked)
{
    piece *p = &d->piece[d->pieces - 1];
    const uint8_t *bytes = d->bytes + p->at;

    p->checked = checked;
    return checked <= p->size - 4 && cow_source_good(d->source, bytes, checked, cow_get32(bytes + checked));
}

static int note_pointer(cow_dense *d, size_t at)
{
    if (COW_RESERVE(d->pointer, d->pointer_room, d->pointers, 1) < 0)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    d->pointer[d->pointers++] = (pointer){at, cow_get64(d->bytes + at)};
    return 1;
}

/* ---- the object header ---- */

static int put_header(cow_dense *d, const void *bytes, size_t size)
{
    if (COW_RESERVE(d->header, d->header_room, d->header_size, size) < 0)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    memcpy(d->header + d->header_size, bytes, size);
    d->header_size += size;
    return 1;
}

/* Neither its type nor its extent is elsewhere. */
static bool plain_attribute(const uint8_t *body, size_t size)
{
    return size >= 8 && (body[0] == 1 || ((body[0] == 2 || body[0] == 3) && (body[1] & 3) == 0));
}

static bool no_attribute_heap(const uint8_t *body, size_t size)
{
    size_t at = 2;

    if (size < 2 || body[0] != 0)
        return false;
    at += body[1] & 1 ? 2 : 0;
    return size >= at + 16 && cow_get64(body + at) == NOWHERE;
}

static bool link_info_known(const uint8_t *body, size_t size)
{
    return size >= 2 && body[0] == 0 && (body[1] & ~3) == 0 &&
           size >= 2 + (body[1] & 1 ? 8u : 0u) + (body[1] & 2 ? 24u : 16u);
}

static int take_message(void *context, const uint8_t *message, size_t prefix, size_t length)
{
    cow_dense *d = context;
    const uint8_t *body = message + prefix;

    if (message[0] == COW_MESSAGE_REFERENCES)
        return 1;
    if (message[3] & COW_MESSAGE_SHARED)
        return 0;
    switch (message[0]) {
    case COW_MESSAGE_LINK_INFO:
        if (d->link_info != 0 || !link_info_known(body, length))
            return 0;
        d->link_info = d->header_size + prefix + 2 + (body[1] & 1 ? 8 : 0);
        d->by_creation = body[1] & 2;
        break;
    case COW_MESSAGE_ATTRIBUTE:
        if (!plain_attribute(body, length))
            return 0;
        break;
    case COW_MESSAGE_ATTRIBUTE_INFO:
        if (!no_attribute_heap(body, length))
            return 0;
        break;
    case COW_MESSAGE_GROUP_INFO:
        if (length < 2 || body[0] != 0 || (body[1] & 1 && length < 6))
            return 0;
        if (body[1] & 1)
            d->least = cow_get16(body + 4);
        break;
    case COW_MESSAGE_COMMENT:
        break;
    default:
        return 0;
    }
    return put_header(d, message, prefix + length);
}

/* Room for the count of references, which HDF5 writes where there are several, and the count itself: none. */
static int end_header(cow_dense *d)
{
    uint8_t references[6 + 5] = {0};

    if (put_header(d, references,
                   (size_t)(cow_new_prefix(references, COW_MESSAGE_REFERENCES, 0, 5, d->ordered) + 5 - references)) < 0)
        return -1;
    if (d->header_size - d->sized - 4 > UINT32_MAX - 2 * STEP_MOST)
        return 0;
    cow_put32(d->header + d->sized, (uint32_t)(d->header_size - d->sized - 4));
    return put_header(d, "sum", 4);
}

/* Copies of a group whose size changes by a few bytes, as its lists of free places do, have one size: so that one has room where another
 * was. A message without meaning makes up for the rest. */
static int pad_header(cow_dense *d)
{
    const size_t all = d->header_size + d->size, prefix = d->ordered ? 6 : 4;
    uint8_t nil[2 * STEP_MOST] = {0};
    size_t step = 64, rest;

    while (step < STEP_MOST && step * 16 < all)
        step *= 2;
    rest = (step - all % step) % step;
    if (rest > 0 && rest < prefix)
        rest += step;
    if (rest == 0)
        return 1;
    cow_new_prefix(nil, COW_MESSAGE_NIL, 0, rest - prefix, d->ordered);
    d->header_size -= 4;
    if (put_header(d, nil, rest) < 0)
        return -1;
    cow_put32(d->header + d->sized, (uint32_t)(d->header_size - d->sized - 4));
    return put_header(d, "sum", 4);
}

static int take_header(cow_dense *d)
{
    cow_header *from = &d->from;
    int status;

    if ((status = cow_header_begin(d->source, d->address, from)) <= 0)
        return status;
    d->ordered = from->ordered;
    from->start[5] |= 3;
    from->start[5] ^= 1; /* the size of its chunk in four bytes */
    if (put_header(d, from->start, from->prefix) < 0)
        return -1;
    d->sized = d->header_size;
    if (put_header(d, "size", 4) < 0)
        return -1;
    if ((status = cow_header_messages(d->source, from, take_message, d)) <= 0)
        return status;
    return d->link_info == 0 ? 0 : end_header(d);
}

/* ---- the heap ---- */

/* What its header says of it. */
typedef struct heap {
    uint64_t start, largest, address;
    unsigned width, bits, offset, rows;
} heap;

/* Bytes of the blocks in a row of an indirect block. */
static uint64_t row_size(const heap *h, unsigned row)
{
    return row == 0 ? h->start : h->start << (row - 1);
}

static int take_direct(cow_dense *d, const heap *h, uint64_t address, uint64_t size, uint64_t offset)
{
    size_t at, sum = 13 + h->offset;
    uint32_t said = 0;
    int status;

    if ((status = take(d, address, size, "FHDB", &at)) <= 0)
        return status;
    if (size <= d->block_header || d->bytes[at + 4] != 0 || cow_get64(d->bytes + at + 5) != h->address ||
        cow_get_bytes(d->bytes + at + 13, h->offset) != offset)
        return 0;
    if (d->sums) {
        said = cow_get32(d->bytes + at + sum);
        cow_put32(d->bytes + at + sum, 0);
        if (!cow_source_good(d->source, d->bytes + at, (size_t)size, said))
            return 0;
    }
    d->piece[d->pieces - 1].checked = sum;
    d->piece[d->pieces - 1].offset = offset;
    d->piece[d->pieces - 1].direct = true;
    if (COW_RESERVE(d->direct, d->direct_room, d->directs, 1) < 0)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    d->direct[d->directs++] = d->pieces - 1;
    return note_pointer(d, at + 5);
}

/* An indirect block of so many ROWS, whose first byte is OFFSET of the heap. */
static int take_indirect(cow_dense *d, const heap *h, uint64_t address, unsigned rows, uint64_t offset, unsigned depth)
{
    const unsigned direct_rows = cow_log2(h->largest) - cow_log2(h->start) + 2;
    const uint64_t size = 13 + h->offset + (uint64_t)rows * h->width * 8 + 4;
    size_t at;
    int status;

    if (rows == 0 || depth > 32)
        return 0;
    if ((status = take(d, address, size, "FHIB", &at)) <= 0)
        return status;
    if (d->bytes[at + 4] != 0 || cow_get64(d->bytes + at + 5) != h->address ||
        cow_get_bytes(d->bytes + at + 13, h->offset) != offset || !whole(d, (size_t)size - 4))
        return 0;
    if (note_pointer(d, at + 5) < 0)
        return -1;
    for (unsigned row = 0; row < rows; row++)
        for (unsigned i = 0; i < h->width; i++) {
            const size_t entry = at + 13 + h->offset + ((size_t)row * h->width + i) * 8;
            const uint64_t child = cow_get64(d->bytes + entry), bytes = row_size(h, row);

            if (child != NOWHERE) {
                if (note_pointer(d, entry) < 0)
                    return -1;
                status = row < direct_rows
                             ? take_direct(d, h, child, bytes, offset)
                             : take_indirect(d, h, child, cow_log2(bytes) - cow_log2(h->start * h->width) + 1, offset,
                                             depth + 1);
                if (status <= 0)
                    return status;
            }
            offset += bytes;
        }
    return 1;
}

/* The table of free places in the heap, by offsets. */
static int take_free(cow_dense *d, size_t pointed)
{
    const uint64_t address = cow_get64(d->bytes + pointed);
    uint64_t sections, size;
    size_t at;
    int status;

    if (address == NOWHERE)
        return 1;
    if (note_pointer(d, pointed) < 0)
        return -1;
    if ((status = take(d, address, 82, "FSHD", &at)) <= 0)
        return status;
    if (d->bytes[at + 4] != 0 || d->bytes[at + 5] != 0 || !whole(d, 78))
        return 0;
    sections = cow_get64(d->bytes + at + 54);
    size = cow_get64(d->bytes + at + 62);
    if (sections == NOWHERE)
        return 1;
    if (size > cow_get64(d->bytes + at + 70))
        return 0;
    if (note_pointer(d, at + 54) < 0)
        return -1;
    if ((status = take(d, sections, cow_get64(d->bytes + at + 70), "FSSE", &at)) <= 0)
        return status;
    if (size < 17 || d->bytes[at + 4] != 0 || cow_get64(d->bytes + at + 5) != address || !whole(d, (size_t)size - 4))
        return 0;
    return note_pointer(d, at + 5);
}

static int take_heap(cow_dense *d, uint64_t address)
{
    heap h = {.address = address};
    const uint8_t *p;
    size_t at;
    unsigned most;
    int status;

    if ((status = take(d, address, 146, "FRHP", &at)) <= 0)
        return status;
    p = d->bytes + at;
    h.width = cow_get16(p + 110);
    h.start = cow_get64(p + 112);
    h.largest = cow_get64(p + 120);
    h.bits = cow_get16(p + 128);
    h.rows = cow_get16(p + 140);
    h.offset = (h.bits + 7) / 8;
    d->sums = p[9] & 2;
    d->block_header = 13 + h.offset + (d->sums ? 4 : 0);
    /* no filters, no object apart from the blocks */
    if (p[4] != 0 || cow_get16(p + 5) != 7 || cow_get16(p + 7) != 0 || p[9] & ~3 || cow_get64(p + 22) != NOWHERE ||
        cow_get64(p + 86) != 0 || !cow_is_power(h.width) || h.width > 64 || !cow_is_power(h.start) ||
        !cow_is_power(h.largest) || h.start > h.largest || h.largest > UINT32_MAX || h.bits > 48 || h.bits < 8 ||
        cow_log2(h.start * h.width) > h.bits || !whole(d, 142))
        return 0;
    most = cow_log2(cow_get32(p + 10));
    d->id_offset = h.offset;
    d->id_length = (cow_log2(h.largest) + 7) / 8;
    if ((most + 7) / 8 < d->id_length)
        d->id_length = (most + 7) / 8;
    if (1 + d->id_offset + d->id_length > 7)
        return 0;
    if (cow_get64(p + 132) == NOWHERE)
        return 0;
    if (note_pointer(d, at + 132) < 0)
        return -1;
    if ((status = take_free(d, at + 38)) <= 0)
        return status;
    address = cow_get64(d->bytes + at + 132);
    if (h.rows == 0)
        return take_direct(d, &h, address, h.start, 0);
    return h.rows > h.bits - cow_log2(h.start * h.width) + 1 ? 0 : take_indirect(d, &h, address, h.rows, 0, 0);
}

/* ---- the B-trees ---- */

typedef struct tree {
    unsigned type, node, record, depth;
    unsigned most[16],
        all[16]; /* bytes that say how many records are in a node of this level, and with those below it */
} tree;

static unsigned bytes_for(uint64_t v)
{
    return cow_log2(v) / 8 + 1;
}

static bool levels(tree *t)
{
    uint64_t most = (t->node - 10) / t->record, total = most;
    const unsigned width = bytes_for(most);

    t->most[0] = width;
    t->all[0] = 0;
    for (unsigned level = 1; level <= t->depth; level++) {
        const unsigned pointed = 8 + width + t->all[level - 1];

        if (t->node <= 10 + pointed)
            return false;
        most = (t->node - 10 - pointed) / (t->record + pointed);
        if (most == 0 || total > UINT64_MAX / 4 / (most + 1))
            return false;
        total = (most + 1) * total + most;
        t->most[level] = width;
        t->all[level] = bytes_for(total);
    }
    return true;
}

/* The link that the heap's ID names. 0: there is none. */
static int find_link(const cow_dense *d, const uint8_t *id, size_t *link, size_t *length, size_t *number)
{
    const uint64_t offset = cow_get_bytes(id + 1, d->id_offset),
                   size = cow_get_bytes(id + 1 + d->id_offset, d->id_length);
    size_t low = 0, high = d->directs;

    if (id[0] != 0)
        return 0;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const piece *p = &d->piece[d->direct[middle]];

        if (offset < p->offset)
            high = middle;
        else if (offset - p->offset >= p->size)
            low = middle + 1;
        else {
            if (offset - p->offset < d->block_header || size > p->size - (offset - p->offset))
                return 0;
            *link = p->at + (size_t)(offset - p->offset);
            *length = (size_t)size;
            *number = d->direct[middle];
            return 1;
        }
    }
    return 0;
}

/* The parts of a link's message of SIZE bytes at AT, places in d->bytes; with ADDRESS 0 it is no hard one. false: it is not as it should
 * be, or is an absolute soft link, which names its version. */
static bool parse_link(const cow_dense *d, size_t at, size_t size, cow_link_parts *parts)
{
    if (!cow_link_parse(d->bytes + at, size, parts) || (parts->target > 0 && d->bytes[at + parts->target] == '/'))
        return false;
    parts->name += at;
    if (parts->address > 0)
        parts->address += at;
    return true;
}

static int note_record(cow_dense *d, const uint8_t *record)
{
    size_t link, length, number;
    cow_link_parts parts;

    if (find_link(d, record + 4, &link, &length, &number) <= 0 || !parse_link(d, link, length, &parts))
        return 0;
    if (parts.address == 0)
        return 1;
    if (COW_RESERVE(d->record, d->record_room, d->records, 1) < 0)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    d->record[d->records].hash = cow_get32(record);
    d->record[d->records].link = link;
    d->record[d->records++].piece = number;
    return 1;
}

static int take_records(cow_dense *d, const tree *t, size_t at, uint64_t count)
{
    int status = 1;

    for (uint64_t i = 0; status > 0 && t->type == 5 && i < count; i++)
        status = note_record(d, d->bytes + at + i * t->record);
    return status;
}

static int take_node(cow_dense *d, const tree *t, uint64_t address, uint64_t count, unsigned level)
{
    const unsigned entry = level == 0 ? 0 : 8 + t->most[level - 1] + t->all[level - 1];
    const uint64_t used = 6 + count * t->record + (level == 0 ? 0 : (count + 1) * entry);
    size_t at, children;
    int status;

    if (used > t->node - 4)
        return 0;
    if ((status = take(d, address, t->node, level == 0 ? "BTLF" : "BTIN", &at)) <= 0)
        return status;
    if (d->bytes[at + 4] != 0 || d->bytes[at + 5] != t->type || !whole(d, (size_t)used))
        return 0;
    if ((status = take_records(d, t, at + 6, count)) <= 0 || level == 0)
        return status;
    children = at + 6 + (size_t)count * t->record;
    for (uint64_t i = 0; status > 0 && i <= count; i++) {
        const size_t child = children + (size_t)i * entry;

        if (note_pointer(d, child) < 0)
            return -1;
        status = take_node(d, t, cow_get64(d->bytes + child), cow_get_bytes(d->bytes + child + 8, t->most[level - 1]),
                           level - 1);
    }
    return status;
}

static int take_tree(cow_dense *d, uint64_t address, unsigned type)
{
    tree t = {.type = type};
    uint64_t root;
    size_t at;
    int status;

    if ((status = take(d, address, 38, "BTHD", &at)) <= 0)
        return status;
    t.node = cow_get32(d->bytes + at + 6);
    t.record = cow_get16(d->bytes + at + 10);
    t.depth = cow_get16(d->bytes + at + 12);
    root = cow_get64(d->bytes + at + 16);
    if (d->bytes[at + 4] != 0 || d->bytes[at + 5] != type || t.node < 64 || t.node > 65536 ||
        t.record != (type == 5 ? 11 : 15) || t.depth > 15 || root == NOWHERE || !levels(&t) || !whole(d, 34))
        return 0;
    return note_pointer(d, at + 16) < 0 ? -1 : take_node(d, &t, root, cow_get16(d->bytes + at + 24), t.depth);
}

/* ---- the group ---- */

static int by_hash(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

static int by_address(const void *a, const void *b)
{
    const piece *x = a, *y = b;

    return (x->address > y->address) - (x->address < y->address);
}

/* The pieces in the order of their addresses; free(). NULL: no memory. */
static piece *sorted_pieces(const cow_dense *d)
{
    piece *sorted = malloc(d->pieces * sizeof *sorted);

    if (sorted == NULL) {
        cow_error(COW_MEMORY, "no memory to copy a group");
        return NULL;
    }
    memcpy(sorted, d->piece, d->pieces * sizeof *sorted);
    qsort(sorted, d->pieces, sizeof *sorted, by_address);
    return sorted;
}

/* 1; 0: two of them share bytes, which HDF5 never writes. */
static int apart(const cow_dense *d)
{
    piece *sorted = sorted_pieces(d);
    int status = sorted == NULL ? -1 : 1;

    for (size_t i = 1; status > 0 && i < d->pieces; i++)
        if (sorted[i].address - sorted[i - 1].address < sorted[i - 1].size)
            status = 0;
    free(sorted);
    return status;
}

static int read_group(cow_dense *d)
{
    uint64_t part[3];
    int status;

    if ((status = take_header(d)) <= 0)
        return status;
    for (unsigned i = 0; i < (d->by_creation ? 3 : 2); i++)
        part[i] = cow_get64(d->header + d->link_info + 8 * i);
    if (part[0] == NOWHERE || part[1] == NOWHERE)
        return 0;
    if ((status = take_heap(d, part[0])) <= 0 || (status = take_tree(d, part[1], 5)) <= 0 ||
        (d->by_creation && (status = take_tree(d, part[2], 6)) <= 0))
        return status;
    if (d->records > 0)
        qsort(d->record, d->records, sizeof *d->record, by_hash);
    return apart(d);
}

int cow_dense_parse(const cow_source *source, uint64_t address, cow_dense **dense)
{
    cow_dense *d = calloc(1, sizeof *d);
    int status = -1;

    *dense = NULL;
    if (d == NULL)
        return cow_error(COW_MEMORY, "no memory to copy a group");
    d->source = source;
    d->address = address;
    d->least = 6; /* where the group does not say */
    status = read_group(d);
    d->source = NULL;
    if (status <= 0) {
        cow_dense_free(d);
        return status;
    }
    *dense = d;
    return 1;
}

void cow_dense_free(cow_dense *dense)
{
    if (dense == NULL)
        return;
    free(dense->bytes);
    free(dense->piece);
    free(dense->pointer);
    free(dense->header);
    free(dense->direct);
    free(dense->record);
    cow_header_free(&dense->from);
    free(dense);
}

/* Checked by read_group. */
static cow_link_parts parts_of(const cow_dense *d, const struct record *record)
{
    const piece *p = &d->piece[record->piece];
    cow_link_parts parts = {0};

    parse_link(d, record->link, p->at + (size_t)p->size - record->link, &parts);
    return parts;
}

int cow_dense_links(const cow_dense *dense, cow_dense_visitor *visit, void *context)
{
    char *name = NULL;
    size_t room = 0;
    int status = 0;

    for (size_t i = 0; status == 0 && i < dense->records; i++) {
        const cow_link_parts parts = parts_of(dense, &dense->record[i]);

        if (COW_RESERVE(name, room, 0, parts.length + 1) < 0) {
            status = cow_error(COW_MEMORY, "no memory for the links of a group");
            break;
        }
        memcpy(name, dense->bytes + parts.name, parts.length);
        name[parts.length] = '\0';
        status = visit(context, name, cow_get64(dense->bytes + parts.address));
    }
    free(name);
    return status;
}

static const struct record *find_record(const cow_dense *d, const char *name, cow_link_parts *parts)
{
    const size_t length = strlen(name);
    const uint32_t hash = cow_metadata_checksum((const uint8_t *)name, length);
    size_t low = 0, high = d->records;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (d->record[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < d->records && d->record[low].hash == hash; low++) {
        *parts = parts_of(d, &d->record[low]);
        if (parts->length == length && memcmp(d->bytes + parts->name, name, length) == 0)
            return &d->record[low];
    }
    return NULL;
}

bool cow_dense_find(const cow_dense *dense, const char *name, uint64_t *address)
{
    cow_link_parts parts;

    if (find_record(dense, name, &parts) == NULL)
        return false;
    *address = cow_get64(dense->bytes + parts.address);
    return true;
}

size_t cow_dense_least(const cow_dense *dense)
{
    return dense->least;
}

void cow_dense_redirect(cow_dense *dense, const char *name, uint64_t address)
{
    cow_link_parts parts;

    if (find_record(dense, name, &parts) != NULL)
        cow_put64(dense->bytes + parts.address, address);
}

/* ---- writing ---- */

/* Where the piece at ADDRESS of the group that was read goes. */
static uint64_t moved(const piece *sorted, size_t count, uint64_t address)
{
    const piece key = {.address = address};
    const piece *found = bsearch(&key, sorted, count, sizeof *sorted, by_address);

    return found == NULL ? NOWHERE : found->to;
}

/* A place for all of it; else, in a file that has free ones, a place for each piece: what was changed in a copy has left a piece of HDF5's
 * amid its place, and no other one would ever fit there. */
static int find_room(cow_dense *d, const cow_dense_target *target, uint64_t *address)
{
    *address = target->allocate(target->context, d->header_size + d->size, !target->has_places);
    if (*address != NOWHERE) {
        for (size_t i = 0; i < d->pieces; i++)
            d->piece[i].to = *address + d->header_size + d->piece[i].at;
        return 0;
    }
    if (!target->has_places || (*address = target->allocate(target->context, d->header_size, true)) == NOWHERE)
        return -1;
    for (size_t i = 0; i < d->pieces; i++)
        if ((d->piece[i].to = target->allocate(target->context, d->piece[i].size, true)) == NOWHERE)
            return -1;
    return 0;
}

/* Pieces that stand together go at once. */
static int write_pieces(const cow_dense *d, const cow_dense_target *target)
{
    for (size_t i = 0, end; i < d->pieces; i = end) {
        const piece *first = &d->piece[i];
        size_t size = (size_t)first->size;

        for (end = i + 1; end < d->pieces && d->piece[end].to == first->to + size; end++)
            size += (size_t)d->piece[end].size;
        if (target->write(target->context, first->to, d->bytes + first->at, size) < 0)
            return -1;
    }
    return 0;
}

static void sum_up(cow_dense *d)
{
    for (size_t i = 0; i < d->pieces; i++) {
        const piece *p = &d->piece[i];
        uint8_t *bytes = d->bytes + p->at;

        if (!p->direct)
            cow_put32(bytes + p->checked, cow_metadata_checksum(bytes, p->checked));
        else if (d->sums) { /* it is zero while it is computed */
            cow_put32(bytes + p->checked, 0);
            cow_put32(bytes + p->checked, cow_metadata_checksum(bytes, (size_t)p->size));
        }
    }
}

int cow_dense_put(cow_dense *dense, const cow_dense_target *target, uint64_t *address)
{
    cow_dense *d = dense;
    piece *sorted = NULL;

    if (pad_header(d) < 0 || find_room(d, target, address) < 0 || (sorted = sorted_pieces(d)) == NULL)
        return -1;
    for (unsigned i = 0; i < (d->by_creation ? 3 : 2); i++) {
        uint8_t *at = d->header + d->link_info + 8 * i;
        cow_put64(at, moved(sorted, d->pieces, cow_get64(at)));
    }
    cow_metadata_sum_up(d->header, d->header_size);
    for (size_t i = 0; i < d->pointers; i++) {
        d->pointer[i].address = moved(sorted, d->pieces, d->pointer[i].address);
        cow_put64(d->bytes + d->pointer[i].at, d->pointer[i].address);
    }
    free(sorted);
    for (size_t i = 0; i < d->pieces; i++)
        d->piece[i].address = d->piece[i].to;
    sum_up(d);
    d->address = *address;
    d->from.first = d->header_size;
    d->from.outers = 0;
    return target->write(target->context, *address, d->header, d->header_size) < 0 ? -1 : write_pieces(d, target);
}

int cow_dense_places(const cow_dense *dense, cow_place **list, size_t *count)
{
    const cow_dense *d = dense;
    cow_place *place = calloc(d->pieces + d->from.outers + 1, sizeof *place);

    *list = place;
    *count = 0;
    if (place == NULL)
        return cow_error(COW_MEMORY, "no memory for a list of places");
    place[(*count)++] = (cow_place){d->address, d->from.first};
    for (size_t i = 0; i < d->from.outers; i++)
        place[(*count)++] = d->from.outer[i];
    for (size_t i = 0; i < d->pieces; i++)
        place[(*count)++] = (cow_place){d->piece[i].address, d->piece[i].size};
    return 0;
}
