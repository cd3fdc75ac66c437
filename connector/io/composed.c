/* Composed chunks, in and out: see composed.h.
 *
 * Promises
 *  1. A chunk is composed only on a base that a version or a reader may name (a sealed slot): what only this transaction
 *     knows is written again as a whole, and its slot is free.
 *  2. The entry that the index gets names slots whose bytes were handed to the store.
 *  3. Where the base cannot be read, or the file cannot have pieces, the chunk is stored whole: that costs room, and no data.
 */
#include "io/composed.h"

#include "base/error.h"
#include "io/chunk_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A piece is two mappings more, some 200 bytes, in each version's view of the chunk, as long as that is composed; so of N versions that each
 * change another piece the views take 100 N^2, and a new base, which ends that, as much as the chunk: small ones soon get one. */
#define OWN_BYTES 64
/* Many pieces share mappings, so the views of large chunks grow less: of 64 KiB, 2,000 versions of one value take 6 % less room with 48 pieces
 * than with the 32 that OWN_BYTES would allow. */
#define SHARED_CHUNK ((size_t)64 << 10)
/* A pool of pieces takes some 10 KiB by itself, as much as a few small chunks: these are composed once their own pool has so much. */
#define SMALL_CHUNK ((size_t)8 << 10)
#define LEAST_POOL  ((uint64_t)64 << 10)
/* But for one that fills from its beginning: how often the slots of its pieces may go down. Each time is a mapping more in its view. */
#define MOST_DESCENTS 4
/* The same for a chunk that was a hole: more are likely to be written as a whole. */
#define MOST_NEW(count) ((count) / 4)
/* Each composed chunk gets a view, which takes about as long as writing a chunk of this size. So smaller ones are composed as long as one
 * commit has few of them. */
#define LARGE_CHUNK ((size_t)128 << 10)
#define MOST_SMALL  1024
/* Chunks that are stored whole without a look, after so many in a row where most pieces differed: doubled up to this. */
#define MOST_SKIPPED 256

/* What another encoder may make of a piece for which ours needs BOUND bytes at most. */
#define LONGEST(bound) (2 * (bound) + 4096)

/* ---- pools of pieces ---- */

static const cow_pieces *keep(cow_array *array, const cow_pieces *pieces)
{
    cow_pieces *more = realloc(array->pieces, (array->pieces_count + 1) * sizeof *more);

    if (more == NULL) {
        array->pieces_source.leave(array->pieces_source.context, pieces->id);
        cow_error(COW_MEMORY, "%s: no memory for a pool of pieces", array->label);
        return NULL;
    }
    array->pieces = more;
    more[array->pieces_count] = *pieces;
    return &more[array->pieces_count++];
}

void cow_array_leave_pieces(cow_array *array)
{
    for (size_t i = 0; i < array->pieces_count; i++)
        array->pieces_source.leave(array->pieces_source.context, array->pieces[i].id);
    free(array->pieces);
    array->pieces = NULL;
    array->pieces_count = 0;
    array->pieces_chosen = false;
}

const cow_pieces *cow_array_pieces(cow_array *array, uint64_t id)
{
    cow_pieces pieces;

    for (size_t i = 0; i < array->pieces_count; i++)
        if (array->pieces[i].id == id)
            return &array->pieces[i];
    return array->pieces_source.open != NULL && id <= UINT32_MAX &&
                   array->pieces_source.open(array->pieces_source.context, (uint32_t)id, &pieces) == 0
               ? keep(array, &pieces)
               : NULL;
}

/* Of pieces, and of the chunks they are cut from: they are decoded by any thread. */
static bool by_any_thread(const cow_codec *codec)
{
    return cow_codec_identity(codec) || cow_codec_parallel(codec);
}

/* Where new pieces go, of a chunk that was FORMER: where those are that it has, if they were cut alike; else where all of this cut are, which takes
 * longer to find. 1; 0: the file cannot have them; -1. */
static int pieces_for(cow_array *array, const cow_piecing *cut, const cow_composed *former, const cow_pieces **found)
{
    uint32_t id;
    int made;

    if (former->own != 0 && !array->pieces_chosen) {
        *found = cow_array_pieces(array, former->piece_pool);
        if (*found != NULL && memcmp((*found)->cut.piece, cut->piece, cut->rank * sizeof *cut->piece) == 0 &&
            by_any_thread((*found)->codec)) {
            array->pieces_chosen = true;
            array->pieces_id = (*found)->id;
            return 1;
        }
        cow_error_clear();
    }
    if (array->pieces_chosen) {
        *found = cow_array_pieces(array, array->pieces_id);
        return *found == NULL ? -1 : 1;
    }
    if ((made = array->pieces_source.choose(array->pieces_source.context, cut, &id)) <= 0)
        return made;
    array->pieces_chosen = true;
    array->pieces_id = id;
    *found = cow_array_pieces(array, id);
    return *found == NULL ? -1 : 1;
}

/* ---- out ---- */

struct cow_parts {
    cow_composed composed;
    cow_pieces pieces;
    struct {
        uint64_t checksum;
        size_t at, size; /* in raw[] */
        uint32_t mask;
    } part[COW_PIECES];
    uint8_t *raw; /* behind the structure */
};

static int damaged_piece(const cow_array *array, const uint64_t chunk[], const cow_parts *parts, unsigned i,
                         const char *what)
{
    char place[COW_PLACE_SIZE];

    return cow_error(COW_CORRUPT,
                     "%s: piece %u of the chunk at %s %s (%s, slot %" PRIu64
                     "); run h5cow verify on the file; an older "
                     "version may still have the chunk",
                     array->label, i, cow_array_chunk_place(array, chunk, place), what,
                     cow_pool_name(parts->pieces.pool), parts->composed.slot[i]);
}

/* What the error says is of this piece. */
static void unread_piece(const cow_array *array, const uint64_t chunk[], unsigned i)
{
    char place[COW_PLACE_SIZE], what[COW_PLACE_SIZE + 40];

    snprintf(what, sizeof what, "piece %u of the chunk at %s", i, cow_array_chunk_place(array, chunk, place));
    cow_error_where(what, "reading it");
}

cow_parts *cow_composed_fetch(cow_array *array, const uint64_t chunk[], uint64_t entry, uint64_t *base)
{
    cow_composed composed;
    const cow_pieces *pieces;
    cow_chunk_store *store;
    size_t size[COW_PIECES], total = 0;
    uint64_t checksum[COW_PIECES];
    cow_parts *parts;

    if (cow_index_composed(array->index, chunk, entry, &composed) < 0)
        return NULL;
    *base = composed.base;
    if ((pieces = cow_array_pieces(array, composed.piece_pool)) == NULL)
        return NULL;
    if (pieces->cut.count < COW_PIECES && composed.own >> pieces->cut.count != 0) {
        char place[COW_PLACE_SIZE];
        cow_error(COW_CORRUPT, "%s: the chunk at %s has pieces behind its end; run h5cow verify on the file",
                  array->label, cow_array_chunk_place(array, chunk, place));
        return NULL;
    }
    if (!by_any_thread(pieces->codec)) {
        cow_error(COW_CORRUPT, "%s: %s has filters that no pool of pieces has; run h5cow verify on the file",
                  array->label, cow_pool_name(pieces->pool));
        return NULL;
    }
    store = cow_pool_store(pieces->pool);
    for (unsigned i = 0; i < pieces->cut.count; i++)
        if (composed.own >> i & 1) {
            cow_slot row;

            if (cow_pool_row(pieces->pool, composed.slot[i], &row) < 0 ||
                store->size(store, composed.slot[i], &size[i]) < 0) {
                unread_piece(array, chunk, i);
                return NULL;
            }
            checksum[i] = row.digest.checksum;
            if (size[i] > LONGEST(cow_codec_bound(pieces->codec))) {
                cow_error(COW_CORRUPT,
                          "%s: a piece of %zu bytes has %zu in slot %" PRIu64 " of %s; run h5cow verify on the file",
                          array->label, pieces->cut.bytes, size[i], composed.slot[i], cow_pool_name(pieces->pool));
                return NULL;
            }
            total += size[i];
        }
    if ((parts = malloc(sizeof *parts + total)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for %zu bytes of pieces", array->label, total);
        return NULL;
    }
    parts->composed = composed;
    parts->pieces = *pieces;
    parts->raw = (uint8_t *)(parts + 1);
    total = 0;
    for (unsigned i = 0; i < pieces->cut.count; i++) {
        if (!(composed.own >> i & 1))
            continue;
        parts->part[i].at = total;
        parts->part[i].size = size[i];
        parts->part[i].checksum = checksum[i];
        if (store->read(store, composed.slot[i], parts->raw + total, size[i], &parts->part[i].mask) < 0) {
            unread_piece(array, chunk, i);
            free(parts);
            return NULL;
        }
        total += size[i];
    }
    return parts;
}

int cow_composed_lay(const cow_array *array, const uint64_t chunk[], cow_parts *parts, bool unchecked, void *bytes)
{
    const cow_pieces *pieces = &parts->pieces;
    bool identity = cow_codec_identity(pieces->codec);
    uint8_t *room = identity ? NULL : malloc(pieces->cut.bytes);
    int status = -1;

    if (!identity && room == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a piece of %zu bytes", array->label, pieces->cut.bytes);
    for (unsigned i = 0; i < pieces->cut.count; i++) {
        const uint8_t *piece;
        size_t offset, size;

        if (!(parts->composed.own >> i & 1))
            continue;
        piece = parts->raw + parts->part[i].at;
        if (identity && parts->part[i].size != pieces->cut.bytes) {
            damaged_piece(array, chunk, parts, i, "has not the length of a piece");
            goto done;
        }
        if (!identity) {
            if (cow_codec_decode(pieces->codec, piece, parts->part[i].size, parts->part[i].mask, room) < 0) {
                if (!cow_error_is(COW_MEMORY)) {
                    cow_error_clear();
                    damaged_piece(array, chunk, parts, i, "cannot be decoded");
                }
                goto done;
            }
            piece = room;
        }
        if (!unchecked && cow_checksum(piece, pieces->cut.bytes) != parts->part[i].checksum) {
            damaged_piece(array, chunk, parts, i, "is not what was written: its checksum differs");
            goto done;
        }
        cow_piecing_place(&pieces->cut, i, &offset, &size);
        memcpy((uint8_t *)bytes + offset, piece, size);
    }
    status = 0;
done:
    free(room);
    return status;
}

/* The base in SLOT of the array's pool, decoded and checked. */
static int read_base(cow_array *array, const uint64_t chunk[], uint64_t slot, void *bytes)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    bool identity = cow_codec_identity(array->codec);
    cow_slot row;
    size_t size;
    uint32_t mask;
    void *raw = bytes;

    if (slot == COW_HOLE) {
        cow_array_set_fill(array, bytes, 0, array->chunk_bytes);
        return 0;
    }
    if (cow_pool_row(array->pool, slot, &row) < 0 || store->size(store, slot, &size) < 0)
        return -1;
    if (identity ? size != array->chunk_bytes
                 : (raw = cow_chunk_cache_scratch(array->cache, COW_BUFFER_BASE_STORED, size)) == NULL)
        return identity
                   ? cow_error(COW_CORRUPT, "%s: a chunk of %zu bytes has %zu", array->label, array->chunk_bytes, size)
                   : -1;
    if (store->read(store, slot, raw, size, &mask) < 0 ||
        (!identity && cow_codec_decode(array->codec, raw, size, mask, bytes) < 0))
        return -1;
    return cow_array_chunk_verify(array, chunk, slot, cow_checksum(bytes, array->chunk_bytes), row.digest.checksum);
}

int cow_array_chunk_encoded(cow_array *array, const uint64_t chunk[], uint64_t entry, void **encoded, size_t *size,
                            uint32_t *mask)
{
    bool identity = cow_codec_identity(array->codec);
    void *bytes = malloc(array->chunk_bytes), *out = NULL;
    cow_load load = {.chunk = chunk, .slot = entry, .bytes = bytes};

    *encoded = NULL;
    *size = array->chunk_bytes;
    *mask = 0;
    if (bytes == NULL || (!identity && (out = malloc(cow_codec_bound(array->codec))) == NULL)) {
        cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", array->label, array->chunk_bytes);
        goto failed;
    }
    if (cow_stored_load(array, &load, 1, NULL) < 0 ||
        (!identity && cow_codec_encode_as(array->codec, NULL, bytes, out, size, mask) < 0))
        goto failed;
    *encoded = identity ? bytes : out;
    if (!identity)
        free(bytes);
    return 0;
failed:
    free(bytes);
    free(out);
    return -1;
}

/* ---- in ---- */

void cow_array_drop(cow_array *array, uint64_t entry)
{
    cow_composed composed;
    const cow_pieces *pieces;

    if (!cow_is_composed(entry)) {
        cow_pool_drop(array->pool, entry);
        return;
    }
    /* Of an older one all slots are sealed. What cannot be read keeps its uses, which costs some room. */
    if (!cow_index_composed_now(array->index, entry))
        return;
    if (cow_index_composed(array->index, NULL, entry, &composed) < 0 ||
        (pieces = cow_array_pieces(array, composed.piece_pool)) == NULL) {
        cow_error_clear();
        return;
    }
    for (unsigned i = 0; i < COW_PIECES; i++)
        if (composed.own >> i & 1)
            cow_pool_drop(pieces->pool, composed.slot[i]);
}

/* Which pieces of BYTES differ from BASE; *N of them, no more than one over MOST are counted. */
static uint64_t differing(const cow_piecing *cut, const uint8_t *bytes, const uint8_t *base, unsigned most, unsigned *n)
{
    uint64_t own = 0;

    *n = 0;
    for (unsigned i = 0; i < cut->count && *n <= most; i++) {
        size_t offset, size;

        cow_piecing_place(cut, i, &offset, &size);
        if (memcmp(bytes + offset, base + offset, size) != 0) {
            own |= (uint64_t)1 << i;
            ++*n;
        }
    }
    return own;
}

/* The use of *SLOT is given back, and *SLOT is COW_NO_SLOT, where nobody may read it as a piece: a chunk of another dataset, which
 * the program encoded itself (H5Dwrite_chunk), may be longer in there than any piece. */
static int leave_long(const cow_pieces *pieces, uint64_t *slot)
{
    cow_chunk_store *store = cow_pool_store(pieces->pool);
    size_t size = 0;
    int status = store->size(store, *slot, &size);

    if (status == 0 && size <= LONGEST(cow_codec_bound(pieces->codec)))
        return 0;
    cow_pool_drop(pieces->pool, *slot);
    *slot = COW_NO_SLOT;
    return status;
}

/* Does SLOT hold what has this digest? */
static bool holds(cow_pool *pool, uint64_t slot, const cow_digest *digest)
{
    cow_slot row;
    bool there = cow_pool_row(pool, slot, &row) == 0;

    if (!there)
        cow_error_clear(); /* then the piece is stored anew */
    return there && memcmp(row.digest.hash, digest->hash, COW_HASH_SIZE) == 0;
}

/* One piece, of this digest, into its pool; one use of *SLOT, which before is where the chunk had this piece, or COW_NO_SLOT: most
 * pieces of a chunk have not changed, and need not be looked for. 1; 0: its filters do not take it; -1. */
static int store_piece(cow_array *array, const cow_pieces *pieces, const void *bytes, const cow_digest *digest,
                       uint64_t *slot)
{
    const cow_piecing *cut = &pieces->cut;
    cow_chunk_store *store = cow_pool_store(pieces->pool);
    size_t size = cut->bytes;
    uint32_t mask = 0;
    cow_slot row = {.digest = *digest};

    if (*slot != COW_NO_SLOT && holds(pieces->pool, *slot, digest)) {
        cow_pool_use(pieces->pool, *slot);
        return 1;
    }
    if (cow_pool_find(pieces->pool, digest, slot) < 0 || (*slot != COW_NO_SLOT && leave_long(pieces, slot) < 0))
        return -1;
    if (*slot != COW_NO_SLOT)
        return 1;
    if (!cow_codec_identity(pieces->codec)) {
        void *out = cow_chunk_cache_scratch(array->cache, COW_BUFFER_BASE_STORED, cow_codec_bound(pieces->codec));

        if (out == NULL)
            return -1;
        if (cow_codec_encode_as(pieces->codec, NULL, bytes, out, &size, &mask) < 0) {
            if (cow_error_is(COW_MEMORY))
                return -1;
            cow_error_clear();
            return 0;
        }
        bytes = out;
    }
    for (unsigned d = 0; d < cut->rank; d++)
        row.trimmed[d] = (uint32_t)cut->piece[d];
    if (cow_pool_add(pieces->pool, &row, slot) < 0)
        return -1;
    if (store->write(store, *slot, bytes, size, mask) < 0) {
        cow_pool_drop(pieces->pool, *slot);
        return cow_context("%s: storing a piece of a chunk", array->label);
    }
    return 1;
}

/* The pieces of BYTES that are in OWN, as their slots hold them: what is behind the end of a short one is zeros. Returns how many, or -1. */
static int gather(cow_array *array, const cow_piecing *cut, const uint8_t *bytes, uint64_t own,
                  const void *piece[COW_PIECES])
{
    uint8_t *room = NULL;
    int n = 0;

    for (unsigned i = 0; i < cut->count; i++) {
        size_t offset, size;

        if (!(own >> i & 1))
            continue;
        cow_piecing_place(cut, i, &offset, &size);
        piece[n] = bytes + offset;
        if (size < cut->bytes) { /* the last one along the dimension that is cut */
            if (room == NULL && (room = cow_chunk_cache_scratch(array->cache, COW_BUFFER_SHORT_PIECES,
                                                                cut->count * cut->bytes)) == NULL)
                return -1;
            memcpy(room, bytes + offset, size);
            memset(room + size, 0, cut->bytes - size);
            piece[n] = room;
            room += cut->bytes;
        }
        n++;
    }
    return n;
}

/* The pieces of BYTES that composed->own says, of which FORMER had some. 1; 0; -1: nothing of them is used then. */
static int store_pieces(cow_array *array, const cow_pieces *pieces, const uint8_t *bytes, const cow_composed *former,
                        cow_composed *composed)
{
    const cow_piecing *cut = &pieces->cut;
    const void *piece[COW_PIECES];
    cow_digest digest[COW_PIECES], *to[COW_PIECES];
    int count = gather(array, cut, bytes, composed->own, piece), done = 0, status = 1;

    if (count < 0)
        return -1;
    for (int k = 0; k < count; k++)
        to[k] = &digest[k];
    for (int k = 0, some; k < count; k += some) {
        some = count - k < COW_TOGETHER ? count - k : COW_TOGETHER;
        if (cow_digest_many(piece + k, NULL, (unsigned)some, cut->bytes, cut->rank, cut->piece, to + k) < 0)
            return -1;
    }
    for (unsigned i = 0; i < cut->count && status == 1; i++) {
        if (!(composed->own >> i & 1))
            continue;
        if (former->own >> i & 1 && former->piece_pool == pieces->id)
            composed->slot[i] = former->slot[i];
        status = store_piece(array, pieces, piece[done], &digest[done], &composed->slot[i]);
        done += status == 1;
    }
    for (unsigned i = 0; status != 1 && done > 0; i++)
        if (composed->own >> i & 1) {
            cow_pool_drop(pieces->pool, composed->slot[i]);
            done--;
        }
    return status;
}

static bool same(const cow_composed *a, const cow_composed *b)
{
    return a->base == b->base && a->piece_pool == b->piece_pool && a->own == b->own &&
           memcmp(a->slot, b->slot, sizeof a->slot) == 0;
}

/* Would HDF5 without h5cow show as fill value what we hold to be it? */
static bool holes_show_fill(const cow_array *array)
{
    return array->fill_new && array->fill != NULL;
}

static bool pays(const cow_array *array)
{
    return array->pieces_asked || array->chunk_bytes >= SMALL_CHUNK ||
           cow_pool_slots(array->pool) >= LEAST_POOL / array->chunk_bytes;
}

/* May this chunk, which has the entry OLD, be composed at all? HDF5 (1.14.5) divides by zero or loses chunks when a virtual dataset
 * takes parts of chunks of rank 32, so these stay whole for those who read without h5cow. Of a hole only where a version has the dataset: what is added then is
 * likely to be little. */
static bool may(const cow_array *array, const cow_save *save, uint64_t old, cow_piecing *cut)
{
    if (old == COW_HOLE && (!array->known || !holes_show_fill(array)))
        return false;
    return array->pieces_least > 0 && pays(array) && array->pieces_source.choose != NULL && !array->pieces_none &&
           !array->heap && !array->plain_edges && save->ready == NULL && array->filtering == NULL &&
           array->grid.rank < COW_MAX_RANK && by_any_thread(array->codec) &&
           cow_piecing_plan(cut, &array->grid, array->element_size, array->pieces_least);
}

/* Has the chunk, which was FORMER, been filled since it was a hole, and is it not full yet? Stored whole when it is full, and not before,
 * it is never anything but pieces and then a slot; so neighbours that were filled like this are one mapping of their leaf. */
static bool fills(const cow_array *array, const cow_save *save, const cow_composed *former)
{
    uint64_t trimmed[COW_MAX_RANK], last = 0;
    unsigned descents = 0;

    if (former->base != COW_HOLE || former->own == 0)
        return false;
    for (unsigned i = 0; i < COW_PIECES; i++)
        if (former->own >> i & 1) {
            descents += former->slot[i] < last;
            last = former->slot[i];
        }
    cow_array_chunk_trimmed(array, save->chunk, trimmed);
    return descents <= MOST_DESCENTS && memcmp(trimmed, array->grid.chunk, array->grid.rank * sizeof *trimmed) != 0;
}

/* With more pieces of its own, of COUNT in all, a chunk of BYTES is stored whole: each version reads and lists them again. Of smaller chunks
 * fewer: of 32 KiB, 1,500 versions of three series take 7 % more room so, and 6 % less time. */
static unsigned most_own(unsigned count, size_t bytes)
{
    const unsigned most = count * 3 / 8;
    unsigned few = most > 0;

    if (bytes >= SHARED_CHUNK)
        return count * 3 / 4;
    while (few < most && (size_t)(few + 1) * (few + 1) * OWN_BYTES <= bytes)
        few++;
    return few;
}

static void missed(cow_array *array)
{
    array->pieces_skip = array->pieces_back;
    array->pieces_back = array->pieces_back == 0             ? 1
                         : array->pieces_back < MOST_SKIPPED ? 2 * array->pieces_back
                                                             : MOST_SKIPPED;
}

int cow_composed_save(cow_array *array, cow_save *save, uint64_t old)
{
    cow_composed former = {.base = old}, composed; /* of a slot: it is the base */
    const cow_pieces *pieces;
    cow_piecing cut;
    uint8_t *base;
    unsigned n, most;
    uint64_t own;
    int status;

    if (!may(array, save, old, &cut))
        return 0;
    if (array->pieces_made >= MOST_SMALL && array->chunk_bytes < LARGE_CHUNK)
        return 0;
    if (array->pieces_skip > 0) {
        array->pieces_skip--;
        return 0;
    }
    if (cow_is_composed(old) && cow_index_composed(array->index, save->chunk, old, &former) < 0) {
        cow_error_clear(); /* it is written anew */
        return 0;
    }
    if (former.base != COW_HOLE && !cow_pool_sealed(array->pool, former.base))
        return 0;
    if ((base = cow_chunk_cache_scratch(array->cache, COW_BUFFER_BASE, array->chunk_bytes)) == NULL)
        return -1;
    if (read_base(array, save->chunk, former.base, base) < 0) {
        cow_error_clear();
        return 0;
    }
    most = old == COW_HOLE               ? MOST_NEW(cut.count)
           : fills(array, save, &former) ? cut.count
                                         : most_own(cut.count, array->chunk_bytes);
    own = differing(&cut, save->bytes, base, most, &n);
    if (n > most) {
        if (former.base != COW_HOLE || old == COW_HOLE) /* else it is full now, which says nothing of the next one */
            missed(array);
        return 0;
    }
    array->pieces_back = 0;
    if (n == 0 && former.base == COW_HOLE) /* fill value that was written is stored */
        return 0;
    if (n == 0) { /* only its extent is another one */
        cow_pool_use(array->pool, former.base);
        save->settled = former.base == old;
        save->slot = save->settled ? COW_NO_SLOT : former.base;
        return 1;
    }
    if ((status = pieces_for(array, &cut, &former, &pieces)) <= 0) {
        array->pieces_none = status == 0;
        return status;
    }
    composed = (cow_composed){.base = former.base, .piece_pool = pieces->id, .own = own};
    memset(composed.slot, 0xff, sizeof composed.slot);
    if ((status = store_pieces(array, pieces, save->bytes, &former, &composed)) <= 0) {
        array->pieces_none = status == 0;
        return status;
    }
    if (cow_is_composed(old) && same(&former, &composed)) {
        save->settled = true;
        status = 1;
    } else {
        status = cow_index_compose(array->index, save->chunk, &composed, &save->slot) < 0 ? -1 : 1;
        array->pieces_made++;
    }
    for (unsigned i = 0; (save->settled || status < 0) && i < cut.count; i++)
        if (own >> i & 1)
            cow_pool_drop(pieces->pool, composed.slot[i]);
    return status;
}
