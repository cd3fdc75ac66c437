/* Records of the index log: nodes and roots to bytes and back.
 *
 * Promise: whatever the bytes of the log are, reading ends with a node that keeps every rule of format.h, or with
 * COW_CORRUPT; nothing is read outside the record and nothing allocated from a size that the record names.
 * Layout: format.h. The tree over these records: index.c.
 */
#include "store/node.h"

#include "base/bytes.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Most records are smaller than this: one read of the log fetches them whole. */
#define FIRST_READ 512

/* ---- the log ---- */

int cow_index_log_end(cow_table *log, uint64_t *end)
{
    if (log->row_size != 1)
        return cow_error(COW_CORRUPT, "the index log has rows of %zu bytes, not of one", log->row_size);
    if (log->rows > 0 && log->rows < COW_INDEX_LOG_HEADER)
        return cow_error(COW_CORRUPT, "the index log is cut off after %" PRIu64 " bytes", log->rows);
    *end = log->rows > 0 ? log->rows : COW_INDEX_LOG_HEADER;
    return 0;
}

int cow_index_log_append(cow_table *log, uint64_t offset, const uint8_t *records, size_t size)
{
    uint64_t before = log->rows, end = 0;

    if (cow_index_log_end(log, &end) < 0)
        return -1;
    if (end != offset)
        return cow_error(COW_IO,
                         "the index log grew from %" PRIu64 " to %" PRIu64 " bytes while a commit wrote to it; "
                         "only one writer at a time is possible",
                         offset, end);
    if (before == 0) {
        uint8_t header[COW_INDEX_LOG_HEADER] = {0};
        memcpy(header, COW_INDEX_LOG_MAGIC, 8);
        cow_put32(header + 8, COW_INDEX_LOG_VERSION);
        if (cow_table_append(log, sizeof header, header, NULL) < 0)
            return -1;
    }
    if (cow_table_append(log, size, records, NULL) < 0) {
        log->resize(log, before);
        return -1;
    }
    return 0;
}

/* ---- writing ---- */

static uint64_t zigzag(uint64_t difference)
{
    return difference << 1 ^ (difference >> 63 ? UINT64_MAX : 0);
}

static uint64_t unzigzag(uint64_t coded)
{
    return coded >> 1 ^ (coded & 1 ? UINT64_MAX : 0);
}

/* Header and checksum around the payload that is already in its place and ends at END. Returns the record's size. */
static size_t seal_record(uint8_t *record, unsigned kind, unsigned level, uint8_t *end)
{
    size_t size = (size_t)(end - record);

    memcpy(record, COW_RECORD_MAGIC, 2);
    record[2] = (uint8_t)kind;
    record[3] = (uint8_t)level;
    cow_put16(record + 4, (uint16_t)(size - COW_RECORD_HEADER));
    cow_put64(end, cow_checksum(record, size));
    return size + COW_RECORD_CHECKSUM;
}

uint8_t *cow_runs_encode(const uint64_t entry[], unsigned entries, uint64_t offset, uint8_t *p)
{
    for (unsigned i = 0; i < entries;) {
        uint64_t slot = entry[i];
        unsigned count = 1, kind = COW_RUN_HOLES;

        if (slot == COW_HOLE) {
            while (i + count < entries && entry[i + count] == COW_HOLE)
                count++;
        } else if (cow_is_composed(slot)) {
            kind = COW_RUN_COMPOSED;
            while (i + count < entries && cow_is_composed(entry[i + count]))
                count++;
        } else {
            unsigned same = 1;
            /* Slots are below COW_COMPOSED, so neither that nor COW_HOLE continues a run. */
            while (i + count < entries && slot + count < COW_COMPOSED && entry[i + count] == slot + count)
                count++;
            while (i + same < entries && entry[i + same] == slot)
                same++;
            kind = same > count ? COW_RUN_SAME : COW_RUN_SLOTS;
            count = same > count ? same : count;
        }
        p += cow_put_varint(p, (uint64_t)count << 2 | kind);
        if (kind == COW_RUN_SLOTS || kind == COW_RUN_SAME)
            p += cow_put_varint(p, slot);
        for (unsigned k = 0; kind == COW_RUN_COMPOSED && k < count; k++)
            p += cow_put_varint(p, offset - cow_composed_offset(entry[i + k]));
        i += count;
    }
    return p;
}

static uint8_t *encode_children(const cow_node *node, uint8_t *p)
{
    uint64_t before = node->offset;
    unsigned bitmap = 0;

    for (unsigned i = 0; i < node->entries; i++)
        bitmap |= node->entry[i] != COW_NO_NODE ? 1u << i : 0;
    cow_put16(p, (uint16_t)bitmap);
    p += 2;
    for (unsigned i = 0; i < node->entries; i++) {
        if (node->entry[i] == COW_NO_NODE)
            continue;
        p += cow_put_varint(p, zigzag(node->entry[i] - before));
        before = node->entry[i];
    }
    return p;
}

size_t cow_node_encode(const cow_grid *grid, const cow_node *node, uint8_t record[COW_RECORD_MAX])
{
    uint64_t span[COW_MAX_RANK];
    uint8_t *p = record + COW_RECORD_HEADER;

    cow_grid_span(grid, node->level, span);
    p += cow_put_varint(p, node->pool);
    for (unsigned d = 0; d < grid->rank; d++)
        p += cow_put_varint(p, node->origin[d] / span[d]);
    p = node->level == 0 ? cow_runs_encode(node->entry, node->entries, node->offset, p) : encode_children(node, p);
    return seal_record(record, node->level == 0 ? COW_RECORD_LEAF : COW_RECORD_INNER, node->level, p);
}

/* ---- reading ---- */

/* A record that was fetched, and what a message about it should say. */
typedef struct reader {
    uint8_t record[COW_RECORD_MAX];
    const uint8_t *p, *end; /* what is left of the payload */
    uint64_t offset;
    const cow_expected *expected; /* NULL: unknown */
    unsigned rank;                /* of the expected origin */
    unsigned kind, level;
} reader;

/* Always -1. */
static int damaged(const reader *from, const char *what)
{
    char place[160] = "";

    if (from->expected) {
        size_t n = (size_t)snprintf(place, sizeof place, " (pool %" PRIu64 ", level %u, chunks from (",
                                    from->expected->pool, from->expected->level);
        for (unsigned d = 0; d < from->rank && n < sizeof place - 1; d++)
            n += (size_t)snprintf(place + n, sizeof place - n, "%s%" PRIu64, d > 0 ? ", " : "",
                                  from->expected->origin[d]);
        if (n < sizeof place - 1)
            snprintf(place + n, sizeof place - n, "))");
    }
    return cow_error(COW_CORRUPT,
                     "the index record at offset %" PRIu64 "%s is damaged: %s; "
                     "other datasets and versions may be whole: h5cow verify tells which",
                     from->offset, place, what);
}

/* Fetch the record at from->offset and check everything but the payload's meaning. */
static int fetch(cow_table *log, reader *from)
{
    uint64_t end = 0;
    size_t have, length, size;

    if (cow_index_log_end(log, &end) < 0)
        return -1;
    if (from->offset < COW_INDEX_LOG_HEADER || from->offset >= log->rows ||
        log->rows - from->offset < COW_RECORD_HEADER + COW_RECORD_CHECKSUM)
        return damaged(from, "it lies outside the log");
    have = log->rows - from->offset < FIRST_READ ? (size_t)(log->rows - from->offset) : FIRST_READ;
    if (log->read(log, from->offset, have, from->record) < 0)
        return cow_context("reading the index record at offset %" PRIu64, from->offset);
    if (memcmp(from->record, COW_RECORD_MAGIC, 2) != 0)
        return damaged(from, "no record begins there");
    length = cow_get16(from->record + 4);
    if (length > COW_PAYLOAD_MAX)
        return damaged(from, "its length is impossible");
    size = COW_RECORD_HEADER + length + COW_RECORD_CHECKSUM;
    if (size > log->rows - from->offset)
        return damaged(from, "it is cut off by the end of the log");
    if (size > have && log->read(log, from->offset + have, size - have, from->record + have) < 0)
        return cow_context("reading the index record at offset %" PRIu64, from->offset);
    if (cow_get64(from->record + COW_RECORD_HEADER + length) != cow_checksum(from->record, COW_RECORD_HEADER + length))
        return damaged(from, "its checksum differs");
    from->kind = from->record[2];
    from->level = from->record[3];
    if (from->level > COW_MAX_LEVEL)
        return damaged(from, "its level is impossible");
    from->p = from->record + COW_RECORD_HEADER;
    from->end = from->p + length;
    return 0;
}

static int varint(reader *from, uint64_t *value)
{
    size_t n;

    *value = 0;
    n = cow_get_varint(from->p, from->end, value);
    if (n == 0)
        return damaged(from, "a number in it does not end");
    from->p += n;
    return 0;
}

/* A composed chunk of a leaf stands before it. */
static int composed_before(reader *from, uint64_t *entry)
{
    uint64_t distance;

    if (varint(from, &distance) < 0)
        return -1;
    if (distance == 0 || distance > from->offset - COW_INDEX_LOG_HEADER)
        return damaged(from, "a composed chunk does not stand before it");
    *entry = COW_COMPOSED | (from->offset - distance);
    return 0;
}

static int decode_runs(reader *from, uint64_t entry[], unsigned entries)
{
    unsigned filled = 0, used = 0;

    while (filled < entries) {
        uint64_t head, slot = COW_HOLE, count;

        if (varint(from, &head) < 0)
            return -1;
        count = head >> 2;
        if (count == 0 || count > entries - filled)
            return damaged(from, "a run of slots is longer than its tile");
        switch (head & 3) {
        case COW_RUN_HOLES:
            for (unsigned i = 0; i < count; i++)
                entry[filled + i] = COW_HOLE;
            break;
        case COW_RUN_SLOTS:
        case COW_RUN_SAME:
            if (varint(from, &slot) < 0)
                return -1;
            if (slot > COW_COMPOSED - ((head & 3) == COW_RUN_SLOTS ? count : 1))
                return damaged(from, "a slot number is impossible");
            for (unsigned i = 0; i < count; i++)
                entry[filled + i] = slot + ((head & 3) == COW_RUN_SLOTS ? i : 0);
            used += (unsigned)count;
            break;
        case COW_RUN_COMPOSED:
            for (unsigned i = 0; i < count; i++)
                if (composed_before(from, &entry[filled + i]) < 0)
                    return -1;
            used += (unsigned)count;
            break;
        }
        filled += (unsigned)count;
    }
    if (used == 0)
        return damaged(from, "it holds no slot");
    return 0;
}

int cow_runs_decode(const uint8_t *bytes, size_t size, uint64_t offset, uint64_t entry[], unsigned entries)
{
    reader from;

    from.p = bytes;
    from.end = bytes + size;
    from.offset = offset;
    from.expected = NULL;
    return decode_runs(&from, entry, entries);
}

static int decode_children(reader *from, cow_node *node)
{
    uint64_t before = from->offset;
    unsigned bitmap;

    if (from->end - from->p < 2)
        return damaged(from, "its children are missing");
    bitmap = cow_get16(from->p);
    from->p += 2;
    if (bitmap == 0 || bitmap >> node->entries != 0)
        return damaged(from, "it has children outside its box, or none");
    for (unsigned i = 0; i < node->entries; i++) {
        uint64_t difference;

        node->entry[i] = COW_NO_NODE;
        if (!(bitmap & 1u << i))
            continue;
        if (varint(from, &difference) < 0)
            return -1;
        before += unzigzag(difference);
        /* Children stand before their parents: no walk over the log can run in circles. */
        if (before < COW_INDEX_LOG_HEADER || before >= from->offset)
            return damaged(from, "a child does not stand before it");
        node->entry[i] = before;
    }
    return 0;
}

static int decode_origin(reader *from, const cow_grid *grid, cow_node *node)
{
    uint64_t span[COW_MAX_RANK];

    cow_grid_span(grid, node->level, span);
    for (unsigned d = 0; d < grid->rank; d++) {
        uint64_t number;

        if (varint(from, &number) < 0)
            return -1;
        /* A box that begins at or beyond the maximum has no chunk; this bounds the product as well. */
        if (number > 0 && number > (grid->maximum[d] - 1) / span[d])
            return damaged(from, "its box lies outside the dataset");
        node->origin[d] = number * span[d];
    }
    return 0;
}

int cow_node_read_expected(cow_table *log, const cow_grid *grid, uint64_t offset, const cow_expected *expected,
                           cow_node *node)
{
    reader from = {.offset = offset, .expected = expected, .rank = grid->rank};

    if (fetch(log, &from) < 0)
        return -1;
    if (from.kind != (from.level == 0 ? COW_RECORD_LEAF : COW_RECORD_INNER))
        return damaged(&from, "it is not a node, or its kind and level do not agree");
    node->offset = offset;
    node->level = from.level;
    if (varint(&from, &node->pool) < 0 || decode_origin(&from, grid, node) < 0)
        return -1;
    if (expected && (expected->pool != node->pool || expected->level != node->level ||
                     memcmp(expected->origin, node->origin, grid->rank * sizeof node->origin[0]) != 0))
        return damaged(&from, "it is a node of another place in the tree, or of a dataset of another pool");
    if (node->level == 0) {
        node->entries = cow_grid_tile_chunks(grid);
        if (decode_runs(&from, node->entry, node->entries) < 0)
            return -1;
    } else {
        uint64_t split[COW_MAX_RANK];
        cow_grid_split(grid, node->level, split);
        node->entries = 1;
        for (unsigned d = 0; d < grid->rank; d++)
            node->entries *= (unsigned)split[d];
        if (decode_children(&from, node) < 0)
            return -1;
    }
    if (from.p != from.end)
        return damaged(&from, "bytes are left over in it");
    return 0;
}

int cow_node_read(cow_table *log, const cow_grid *grid, uint64_t offset, cow_node *node)
{
    return cow_node_read_expected(log, grid, offset, NULL, node);
}

/* ---- composed chunks ---- */

size_t cow_composed_encode(unsigned rank, const cow_composed *composed, uint8_t *record)
{
    uint8_t *p = record + COW_RECORD_HEADER;
    uint64_t before = 0;

    p += cow_put_varint(p, composed->pool);
    for (unsigned d = 0; d < rank; d++)
        p += cow_put_varint(p, composed->chunk[d]);
    p += cow_put_varint(p, composed->base + 1);
    p += cow_put_varint(p, composed->piece_pool);
    p += cow_put_varint(p, composed->own);
    for (unsigned i = 0; i < COW_PIECES; i++)
        if (composed->own >> i & 1) {
            p += cow_put_varint(p, zigzag(composed->slot[i] - before));
            before = composed->slot[i];
        }
    return seal_record(record, COW_RECORD_COMPOSED, 0, p);
}

int cow_composed_append(cow_table *log, unsigned rank, cow_composed *composed)
{
    uint8_t record[COW_RECORD_MAX];

    if (cow_index_log_end(log, &composed->offset) < 0)
        return -1;
    return cow_index_log_append(log, composed->offset, record, cow_composed_encode(rank, composed, record));
}

int cow_composed_read(cow_table *log, unsigned rank, uint64_t entry, uint64_t pool, const uint64_t chunk[],
                      cow_composed *composed)
{
    reader from = {.offset = cow_composed_offset(entry)};
    uint64_t before = 0, difference;

    memset(composed, 0, sizeof *composed);
    composed->offset = from.offset;
    if (fetch(log, &from) < 0)
        return -1;
    if (from.kind != COW_RECORD_COMPOSED || from.level != 0)
        return damaged(&from, "it is not a composed chunk");
    if (varint(&from, &composed->pool) < 0)
        return -1;
    for (unsigned d = 0; d < rank; d++)
        if (varint(&from, &composed->chunk[d]) < 0)
            return -1;
    if (composed->pool != pool || (chunk != NULL && memcmp(composed->chunk, chunk, rank * sizeof *chunk) != 0))
        return damaged(&from, "it is another chunk, or one of another pool");
    if (varint(&from, &composed->base) < 0 || varint(&from, &composed->piece_pool) < 0 ||
        varint(&from, &composed->own) < 0)
        return -1;
    composed->base--;
    if (cow_is_composed(composed->base) || composed->piece_pool > UINT32_MAX || composed->own == 0)
        return damaged(&from, "its base, its pool of pieces or their number is impossible");
    for (unsigned i = 0; i < COW_PIECES; i++) {
        composed->slot[i] = COW_HOLE;
        if (!(composed->own >> i & 1))
            continue;
        if (varint(&from, &difference) < 0)
            return -1;
        before = composed->slot[i] = before + unzigzag(difference);
        if (before >= COW_COMPOSED)
            return damaged(&from, "the slot of a piece is impossible");
    }
    return from.p != from.end ? damaged(&from, "bytes are left over in it") : 0;
}

/* ---- roots ---- */

int cow_root_append(cow_table *log, const cow_root *root, uint64_t *offset)
{
    uint8_t record[COW_RECORD_MAX];
    uint8_t *p = record + COW_RECORD_HEADER;

    if (root->rank == 0 || root->rank > COW_MAX_RANK || root->level > COW_MAX_LEVEL)
        return cow_error(COW_USAGE, "a chunk index of rank %u and level %u cannot be stored", root->rank, root->level);
    if (cow_index_log_end(log, offset) < 0)
        return -1;
    p += cow_put_varint(p, root->dataset);
    p += cow_put_varint(p, root->pool);
    p += cow_put_varint(p, root->rank);
    for (unsigned d = 0; d < root->rank; d++) {
        p += cow_put_varint(p, root->extent[d]);
        p += cow_put_varint(p, root->maximum[d] + 1);
        p += cow_put_varint(p, root->chunk[d]);
    }
    p += cow_put_varint(p, root->top == COW_NO_NODE ? 0 : *offset - root->top);
    p += cow_put_varint(p, root->chunks);
    return cow_index_log_append(log, *offset, record, seal_record(record, COW_RECORD_ROOT, root->level, p));
}

int cow_root_read(cow_table *log, uint64_t offset, cow_root *root)
{
    reader from = {.offset = offset};
    uint64_t rank, distance;

    memset(root, 0, sizeof *root);
    if (fetch(log, &from) < 0)
        return -1;
    if (from.kind != COW_RECORD_ROOT)
        return damaged(&from, "it is not the root of a dataset");
    root->level = from.level;
    if (varint(&from, &root->dataset) < 0 || varint(&from, &root->pool) < 0 || varint(&from, &rank) < 0)
        return -1;
    if (rank == 0 || rank > COW_MAX_RANK)
        return damaged(&from, "its rank is impossible");
    root->rank = (unsigned)rank;
    for (unsigned d = 0; d < root->rank; d++) {
        if (varint(&from, &root->extent[d]) < 0 || varint(&from, &root->maximum[d]) < 0 ||
            varint(&from, &root->chunk[d]) < 0)
            return -1;
        root->maximum[d] -= 1;
        if (root->chunk[d] == 0 || root->extent[d] > root->maximum[d])
            return damaged(&from, "its extent or chunk dimensions are impossible");
    }
    if (varint(&from, &distance) < 0 || varint(&from, &root->chunks) < 0)
        return -1;
    if (distance > offset - COW_INDEX_LOG_HEADER)
        return damaged(&from, "its top node lies outside the log");
    root->top = distance == 0 ? COW_NO_NODE : offset - distance;
    if ((root->top == COW_NO_NODE) != (root->chunks == 0))
        return damaged(&from, "its number of chunks is impossible");
    if (from.p != from.end)
        return damaged(&from, "bytes are left over in it");
    return 0;
}
