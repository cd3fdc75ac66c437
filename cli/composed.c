/* Records of composed chunks, and bytes of slots. See composed.h. */
#include "composed.h"

#include "base/error.h"
#include "base/ids.h"
#include "history/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

/* What of a pool is compared. */
typedef struct shape {
    hid_t type;
    unsigned rank;
    const uint64_t *chunk;
    size_t element_size;
    bool heap;
    uint64_t slots;
    hid_t dcpl; /* H5I_INVALID_HID: filters are not compared, as nobody who reads needs */
} shape;

static int wrong(const cow_composed *composed, const char *what)
{
    return cow_error(COW_CORRUPT, "the composed chunk at offset %" PRIu64 " %s", composed->offset, what);
}

static H5Z_filter_t filter_of(hid_t dcpl, int i)
{
    size_t none = 0;

    return H5Pget_filter2(dcpl, (unsigned)i, NULL, &none, NULL, 0, NULL, NULL);
}

/* Their parameters may depend on the size of a chunk. */
static bool same_filters(hid_t one, hid_t other)
{
    int count = H5Pget_nfilters(one);
    bool same = count >= 0 && count == H5Pget_nfilters(other);

    for (int i = 0; same && i < count; i++)
        same = filter_of(one, i) == filter_of(other, i);
    return same;
}

static int compare_shapes(const cow_composed *composed, const cow_grid *grid, const shape *of, const shape *pieces,
                          cow_piecing *cut)
{
    if (of->heap || H5Tequal(pieces->type, of->type) <= 0 ||
        !cow_piecing_from(cut, grid, of->element_size, pieces->rank, pieces->chunk))
        return wrong(composed, "names a pool whose chunks are no pieces of it");
    if (of->dcpl >= 0 && pieces->dcpl >= 0 && !same_filters(of->dcpl, pieces->dcpl))
        return wrong(composed, "names a pool of pieces with other filters");
    if (cut->count < COW_PIECES && composed->own >> cut->count != 0)
        return wrong(composed, "has pieces behind its end");
    if (composed->base != COW_HOLE && composed->base >= of->slots)
        return wrong(composed, "has a base that its pool ends before");
    for (unsigned i = 0; i < cut->count; i++)
        if ((composed->own >> i & 1) && composed->slot[i] >= pieces->slots)
            return wrong(composed, "has a piece that the pool of pieces ends before");
    return 0;
}

static shape shape_of(const cli_pool *pool)
{
    return (shape){pool->type, pool->rank, pool->chunk, pool->element_size, pool->heap, pool->slots, pool->dcpl};
}

int cli_composed_read(cow_table *log, const cow_grid *grid, const cli_pool *pools, uint64_t count, uint64_t pool,
                      uint64_t entry, const uint64_t chunk[], cow_composed *composed, cow_piecing *cut)
{
    shape of = shape_of(&pools[pool]), pieces;

    if (cow_composed_read(log, grid->rank, entry, pool, chunk, composed) < 0)
        return -1;
    if (composed->piece_pool >= count || pools[composed->piece_pool].rank == 0)
        return wrong(composed, "names a pool of pieces that is damaged, or not there");
    pieces = shape_of(&pools[composed->piece_pool]);
    return compare_shapes(composed, grid, &of, &pieces, cut);
}

/* ---- bytes ---- */

typedef struct opened {
    uint64_t id;
    hid_t type, dcpl;
    cow_raw raw;
    bool heap;
    cow_pool *pool; /* rows and chunks */
    cow_codec *codec;
} opened;

struct cli_slots {
    cli_file file; /* without its name */
    opened *list;
    size_t count, room;
    uint8_t *encoded, *piece; /* room for what is read, and for a piece */
    size_t encoded_room, piece_room;
};

cli_slots *cli_slots_new(const cli_file *file)
{
    cli_slots *slots = cli_alloc(1, sizeof *slots);

    slots->file = (cli_file){.id = file->id, .loc = file->loc};
    return slots;
}

static void shut(opened *o)
{
    cow_codec_close(o->codec);
    if (o->pool != NULL)
        cow_pool_close(o->pool);
    cow_close(o->dcpl, o->type);
}

void cli_slots_free(cli_slots *slots)
{
    for (size_t i = 0; i < slots->count; i++)
        shut(&slots->list[i]);
    free(slots->list);
    free(slots->encoded);
    free(slots->piece);
    free(slots);
}

/* The pool takes rows and chunks over. */
static int open_pool(const cli_file *file, hid_t raw, opened *o)
{
    hid_t space = H5Dget_space(raw);
    cow_chunk_store *store = NULL;
    cow_table *rows = NULL;
    char name[COW_PATH_MAX];
    void *chunks;
    int status = -1;

    snprintf(name, sizeof name, "pool %" PRIu64, o->id);
    if ((o->type = H5Dget_type(raw)) < 0 || (o->dcpl = H5Dget_create_plist(raw)) < 0 || space < 0) {
        cow_error_native("%s cannot be opened", name);
        goto done;
    }
    if (cow_layout_raw_shape(o->type, space, o->dcpl, &o->raw) < 0)
        goto done;
    o->heap = cow_type_is_heap(o->type, true) > 0;
    if ((o->codec = cow_codec_open(o->dcpl, o->type, o->raw.chunk_bytes)) == NULL ||
        (rows = cow_layout_table_open(file->loc, COW_TABLE_SLOTS, (uint32_t)o->id, o->raw.rank)) == NULL)
        goto done;
    if ((chunks = cow_layout_raw_open(file->loc, (uint32_t)o->id)) == NULL ||
        (store = cow_native_chunk_store(file->loc.object, chunks, o->dcpl)) == NULL) {
        rows->close(rows);
        goto done;
    }
    status = (o->pool = cow_pool_open(name, o->raw.rank, rows, store)) == NULL ? -1 : 0;
done:
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* NULL: cow_error. Good until the next one is asked for. */
static opened *find(cli_slots *slots, uint64_t id)
{
    opened o = {.id = id, .type = H5I_INVALID_HID, .dcpl = H5I_INVALID_HID};
    hid_t raw;
    int status;

    for (size_t i = 0; i < slots->count; i++)
        if (slots->list[i].id == id)
            return &slots->list[i];
    if ((raw = cli_raw_open(&slots->file, id)) < 0) { /* that looks whether there is such a pool */
        cow_error_native("pool %" PRIu64 " cannot be opened", id);
        return NULL;
    }
    status = open_pool(&slots->file, raw, &o);
    H5Dclose(raw);
    if (status < 0) {
        shut(&o);
        return NULL;
    }
    CLI_RESERVE(slots->list, slots->room, slots->count, 1);
    slots->list[slots->count] = o;
    return &slots->list[slots->count++];
}

size_t cli_slots_chunk_bytes(cli_slots *slots, uint64_t pool)
{
    const opened *o = find(slots, pool);

    return o == NULL ? 0 : o->raw.chunk_bytes;
}

hid_t cli_slots_type(cli_slots *slots, uint64_t pool)
{
    const opened *o = find(slots, pool);

    return o == NULL ? H5I_INVALID_HID : o->type;
}

int cli_slots_read(cli_slots *slots, uint64_t pool, uint64_t slot, void *bytes)
{
    const opened *o = find(slots, pool);
    cow_chunk_store *store;
    uint32_t mask;
    cow_slot row;
    size_t size;

    if (o == NULL)
        return -1;
    store = cow_pool_store(o->pool);
    if (o->heap)
        return cow_error(COW_CORRUPT, "the chunks of %s are no plain bytes", cow_pool_name(o->pool));
    if (cow_pool_row(o->pool, slot, &row) < 0 || store->size(store, slot, &size) < 0)
        return -1;
    cli_reserve(&slots->encoded, &slots->encoded_room, 0, size, 1);
    if (store->read(store, slot, slots->encoded, size, &mask) < 0 ||
        cow_codec_decode(o->codec, slots->encoded, size, mask, bytes) < 0)
        return -1;
    if (cow_checksum(bytes, o->raw.chunk_bytes) != row.digest.checksum)
        return cow_error(COW_CORRUPT, "slot %" PRIu64 " of %s is not what was written: its checksum differs", slot,
                         cow_pool_name(o->pool));
    return 0;
}

int cli_slots_place(cli_slots *slots, uint64_t pool, uint64_t slot, cow_chunk_place *place)
{
    const opened *o = find(slots, pool);

    return o == NULL ? -1 : cow_native_chunk_store_place(cow_pool_store(o->pool), cow_pool_slots(o->pool), slot, place);
}

int cli_slots_decode(cli_slots *slots, uint64_t pool, const void *encoded, size_t size, uint32_t mask, void *bytes)
{
    const opened *o = find(slots, pool);

    return o == NULL ? -1 : cow_codec_decode(o->codec, encoded, size, mask, bytes);
}

int cli_slots_same(cli_slots *slots, uint64_t pool, uint64_t a, uint64_t b)
{
    static const uint8_t nothing[sizeof(((cow_digest *)0)->hash)] = {0};
    const opened *o = find(slots, pool);
    cow_slot row[2];

    if (o == NULL || cow_pool_row(o->pool, a, &row[0]) < 0 || cow_pool_row(o->pool, b, &row[1]) < 0)
        return -1;
    return memcmp(row[0].digest.hash, nothing, sizeof nothing) != 0 &&
           memcmp(row[0].digest.hash, row[1].digest.hash, sizeof nothing) == 0;
}

static shape shape_of_opened(const opened *o)
{
    return (shape){o->type,        o->raw.rank, o->raw.chunk, o->raw.element_size, o->heap, cow_pool_slots(o->pool),
                   H5I_INVALID_HID};
}

int cli_slots_composed(cli_slots *slots, cow_table *log, const cow_grid *grid, uint64_t pool, uint64_t entry,
                       const uint64_t chunk[], cow_composed *composed, cow_piecing *cut)
{
    const opened *o;
    shape of, pieces;

    if (cow_composed_read(log, grid->rank, entry, pool, chunk, composed) < 0 ||
        find(slots, composed->piece_pool) == NULL || (o = find(slots, pool)) == NULL)
        return -1;
    of = shape_of_opened(o);
    pieces = shape_of_opened(find(slots, composed->piece_pool)); /* both are open: nothing moves */
    return compare_shapes(composed, grid, &of, &pieces, cut);
}

/* What a new chunk holds. */
static int fill_chunk(const opened *o, uint8_t *bytes)
{
    size_t size = o->raw.element_size, n = o->raw.chunk_bytes / size;
    H5D_fill_value_t defined;
    H5D_fill_time_t time;

    memset(bytes, 0, o->raw.chunk_bytes);
    if (H5Pfill_value_defined(o->dcpl, &defined) < 0 || H5Pget_fill_time(o->dcpl, &time) < 0)
        return cow_error_native("the fill value of %s cannot be read", cow_pool_name(o->pool));
    if (defined != H5D_FILL_VALUE_USER_DEFINED || time == H5D_FILL_TIME_NEVER)
        return 0;
    if (H5Pget_fill_value(o->dcpl, o->type, bytes) < 0)
        return cow_error_native("the fill value of %s cannot be read", cow_pool_name(o->pool));
    for (size_t i = 1; i < n; i++)
        memcpy(bytes + i * size, bytes, size);
    return 0;
}

int cli_slots_base(cli_slots *slots, const cow_composed *composed, uint8_t *bytes)
{
    const opened *o;

    if (composed->base != COW_HOLE)
        return cli_slots_read(slots, composed->pool, composed->base, bytes);
    if ((o = find(slots, composed->pool)) == NULL)
        return -1;
    return fill_chunk(o, bytes);
}

int cli_slots_put_together(cli_slots *slots, const cow_composed *composed, const cow_piecing *cut, uint8_t *bytes)
{
    if (cli_slots_base(slots, composed, bytes) < 0)
        return -1;
    cli_reserve(&slots->piece, &slots->piece_room, 0, cut->bytes, 1);
    for (unsigned i = 0; i < cut->count; i++) {
        size_t offset, size;

        if (!(composed->own >> i & 1))
            continue;
        if (cli_slots_read(slots, composed->piece_pool, composed->slot[i], slots->piece) < 0)
            return -1;
        cow_piecing_place(cut, i, &offset, &size);
        memcpy(bytes + offset, slots->piece, size);
    }
    return 0;
}
