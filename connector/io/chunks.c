/* An array seen as chunks: the chunk queries and direct chunk access of HDF5, and the changing extent (array.h). */
#include "base/error.h"
#include "base/vector.h"
#include "io/chunk_cache.h"
#include "io/composed.h"
#include "io/heap.h"
#include "io/plan.h"
#include "io/stored.h"
#include "io/transfer.h"
#include "native/native.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Chunks along each dimension that EXTENT has. */
static void grid_extent(const cow_array *array, const uint64_t extent[], uint64_t chunks[])
{
    for (unsigned d = 0; d < array->grid.rank; d++)
        chunks[d] = cow_grid_chunks_along(extent[d], array->grid.chunk[d]);
}

/* Saturates: then it is more than any number of chunks that are stored. */
static uint64_t product(unsigned rank, const uint64_t n[])
{
    uint64_t p = 1;
    for (unsigned d = 0; d < rank; d++)
        p = cow_times(p, n[d]);
    return p;
}

/* ---- shrinking ---- */

static void forget_outside(cow_cached_chunk *entry, void *context)
{
    const uint64_t *chunks = context;
    cow_array *array = entry->array;

    for (unsigned d = 0; d < array->grid.rank; d++)
        if (entry->chunk[d] >= chunks[d]) {
            if (array->heap && entry->dirty)
                cow_pool_drop(array->pool, entry->slot);
            cow_chunk_cache_remove(entry);
            return;
        }
}

static int drop_slot(void *context, const uint64_t chunk[], uint64_t slot)
{
    (void)chunk;
    cow_array_drop(context, slot);
    return 0;
}

/* Chunks of one face of the extent, collected before any of them changes the index. */
typedef struct face {
    cow_array *array;
    unsigned dimension;
    uint64_t *chunks;
    size_t n, room;
    bool failed;
} face;

static int add_to_face(face *f, const uint64_t chunk[])
{
    unsigned rank = f->array->grid.rank;

    if (cow_vector_reserve(&f->chunks, &f->room, f->n, 1, rank * sizeof *f->chunks) < 0) {
        f->failed = true;
        return cow_error(COW_MEMORY, "%s: no memory for a list of %zu chunks", f->array->label, f->n + 1);
    }
    memcpy(f->chunks + f->n++ * rank, chunk, rank * sizeof *chunk);
    return 0;
}

/* A stored chunk has something to lose if what was hashed reaches beyond the new extent; and zeros, where the fill value is
 * none. */
static int look_at_stored(void *context, const uint64_t chunk[], uint64_t slot)
{
    face *f = context;
    uint64_t trimmed[COW_MAX_RANK];
    cow_slot row;

    if (f->array->cut != NULL || cow_is_composed(slot)) /* nobody noted what a composed chunk has outside the extent */
        return add_to_face(f, chunk);
    if (cow_pool_row(f->array->pool, slot, &row) < 0)
        return -1;
    cow_array_chunk_trimmed(f->array, chunk, trimmed);
    return row.trimmed[f->dimension] > trimmed[f->dimension] ? add_to_face(f, chunk) : 0;
}

static void look_at_dirty(cow_cached_chunk *entry, void *context)
{
    face *f = context;
    unsigned d = f->dimension;

    if (entry->dirty && !f->failed && entry->chunk[d] == f->array->extent[d] / f->array->grid.chunk[d])
        add_to_face(f, entry->chunk);
}

/* Is it one of the chunks that an extent which was OLD cuts now along dimension D? */
static bool cuts(const cow_array *array, const uint64_t old[], unsigned d, const uint64_t chunk[])
{
    uint64_t extent = array->extent[d], size = array->grid.chunk[d];

    return extent < old[d] && extent % size != 0 && chunk[d] == extent / size;
}

static void cut_entry(cow_cached_chunk *entry)
{
    const cow_array *array = entry->array;
    uint64_t trimmed[COW_MAX_RANK];

    cow_chunk_cache_complete(entry);
    cow_array_chunk_trimmed(array, entry->chunk, trimmed);
    cow_fill_padding(&array->grid, trimmed, array->element_size, array->cut != NULL ? array->cut : array->fill,
                     entry->bytes);
}

/* What is dirty is cut before anything is loaded: loading may store it, with what is in its padding. */
static void cut_dirty(cow_cached_chunk *entry, void *context)
{
    const uint64_t *old = context;
    bool edge = false;

    for (unsigned d = 0; d < entry->array->grid.rank; d++)
        edge = edge || cuts(entry->array, old, d, entry->chunk);
    if (entry->dirty && edge)
        cut_entry(entry);
}

/* A chunk that the extent cut and cuts no more is filtered from now on: stored again. */
static int add_if_whole(void *context, const uint64_t chunk[], uint64_t slot)
{
    face *f = context;

    (void)slot;
    return cow_array_chunk_plain(f->array, chunk) ? 0 : add_to_face(f, chunk);
}

/* The chunks that were at the edge of OLD along each dimension that grew. */
static int filter_edges(cow_array *array, const uint64_t old[])
{
    unsigned rank = array->grid.rank;
    int status = 0;

    for (unsigned d = 0; status == 0 && d < rank; d++) {
        uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];
        face f = {.array = array, .dimension = d};

        if (array->extent[d] <= old[d] || old[d] % array->grid.chunk[d] == 0)
            continue;
        grid_extent(array, array->extent, count);
        first[d] = old[d] / array->grid.chunk[d];
        count[d] = 1;
        status = cow_index_visit(array->index, first, count, add_if_whole, &f);
        for (size_t i = 0; status == 0 && i < f.n; i++) {
            cow_cached_chunk *entry = cow_chunk_cache_get(array, f.chunks + i * rank, false);
            if (entry == NULL)
                status = -1;
            else
                cow_chunk_cache_dirty(entry);
        }
        free(f.chunks);
    }
    return status;
}

/* Dimension D was cut inside a chunk: overwrite what its last chunks hold beyond, so that growing shows fill value. */
static int cut_face(cow_array *array, unsigned dimension)
{
    unsigned rank = array->grid.rank;
    uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];
    face f = {.array = array, .dimension = dimension};
    int status = -1;

    grid_extent(array, array->extent, count);
    first[dimension] = count[dimension] - 1;
    count[dimension] = 1;
    if (cow_index_visit(array->index, first, count, look_at_stored, &f) != 0)
        goto done;
    if (array->heap)
        cow_chunk_cache_each(array, look_at_dirty, &f);
    if (f.failed)
        goto done;
    for (size_t i = 0; i < f.n; i++) {
        const uint64_t *chunk = f.chunks + i * rank;
        cow_cached_chunk *entry;

        if (array->heap) {
            if (cow_heap_cut(array, chunk) < 0)
                goto done;
            continue;
        }
        if ((entry = cow_chunk_cache_get(array, chunk, false)) == NULL)
            goto done;
        cut_entry(entry);
        cow_chunk_cache_dirty(entry);
    }
    status = 0;
done:
    free(f.chunks);
    return status;
}

/* ---- early allocation ---- */

/* The slots of chunks of fill value: one for each shape that edges of the extent have. */
typedef struct fill_slots {
    uint32_t edges; /* bit d: the chunk is cut along dimension d */
    uint64_t slot;
} fill_slots;

typedef struct early {
    cow_array *array;
    uint64_t chunks[COW_MAX_RANK];
    void *bytes; /* a chunk of fill value, made when it is needed */
    fill_slots *known;
    size_t n, room;
} early;

static int store_fill(early *e, const uint64_t chunk[], uint32_t edges)
{
    cow_array *array = e->array;
    cow_save save = {.chunk = chunk};

    for (size_t i = 0; i < e->n; i++)
        if (e->known[i].edges == edges) {
            cow_pool_use(array->pool, e->known[i].slot);
            return cow_stored_set(array, chunk, e->known[i].slot);
        }
    if (!array->heap && e->bytes == NULL) {
        if ((e->bytes = malloc(array->chunk_bytes)) == NULL)
            return cow_error(COW_MEMORY, "%s: no memory for a chunk", array->label);
        cow_array_set_fill(array, e->bytes, 0, array->chunk_bytes);
    }
    save.bytes = e->bytes;
    if ((array->heap ? cow_heap_fill(array, chunk) : cow_stored_save(array, &save, 1, NULL, NULL)) < 0)
        return -1;
    if (COW_RESERVE(e->known, e->room, e->n, 1) < 0)
        return cow_error(COW_MEMORY, "%s: no memory to allocate chunks", array->label);
    e->known[e->n].edges = edges;
    return cow_index_get(array->index, chunk, &e->known[e->n++].slot);
}

/* Give the chunks of a box that have none a slot of fill value. */
static int fill_box(early *e, const uint64_t first[], const uint64_t end[])
{
    cow_array *array = e->array;
    unsigned rank = array->grid.rank;
    uint64_t chunk[COW_MAX_RANK];

    for (unsigned d = 0; d < rank; d++)
        if ((chunk[d] = first[d]) >= end[d])
            return 0;
    for (;;) {
        uint32_t edges = 0;
        uint64_t slot;
        unsigned d = rank;

        if (cow_index_get(array->index, chunk, &slot) < 0)
            return -1;
        if (slot == COW_HOLE) {
            for (unsigned k = 0; k < rank; k++)
                if (array->extent[k] - chunk[k] * array->grid.chunk[k] < array->grid.chunk[k])
                    edges |= (uint32_t)1 << k;
            if (store_fill(e, chunk, edges) < 0)
                return -1;
        }
        while (d-- > 0) {
            if (++chunk[d] < end[d])
                break;
            chunk[d] = first[d];
            if (d == 0)
                return 0;
        }
    }
}

/* Let every chunk inside the extent have a slot. BEFORE: chunks along each dimension for which that is so already. */
static int allocate_early(cow_array *array, const uint64_t before[])
{
    unsigned rank = array->grid.rank;
    uint64_t first[COW_MAX_RANK] = {0}, end[COW_MAX_RANK];
    early e = {.array = array};
    int status = 0;

    grid_extent(array, array->extent, e.chunks);
    /* What is new: for each dimension what lies beyond BEFORE in it, and inside BEFORE in those that came before. */
    memcpy(end, e.chunks, rank * sizeof *end);
    for (unsigned d = 0; status == 0 && d < rank; d++) {
        first[d] = before[d];
        end[d] = e.chunks[d];
        status = fill_box(&e, first, end);
        first[d] = 0;
        end[d] = before[d] < e.chunks[d] ? before[d] : e.chunks[d];
    }
    free(e.known);
    free(e.bytes);
    return status;
}

int cow_array_resize(cow_array *array, const uint64_t extent[])
{
    unsigned rank = array->grid.rank;
    uint64_t old[COW_MAX_RANK], before[COW_MAX_RANK], chunks[COW_MAX_RANK];
    bool shrinks = false, changes = false;

    memcpy(old, array->extent, rank * sizeof *old);
    grid_extent(array, old, before);
    grid_extent(array, extent, chunks);
    for (unsigned d = 0; d < rank; d++) {
        shrinks = shrinks || extent[d] < old[d];
        changes = changes || extent[d] != old[d];
    }
    /* A new dataset, or one with dirty chunks that have no slot yet: then nothing can be skipped. */
    if (array->early && cow_index_chunks(array->index) != product(rank, before))
        memset(before, 0, rank * sizeof *before);
    if (shrinks) {
        cow_chunk_cache_each(array, forget_outside, chunks);
        cow_chunk_cache_forget_listing(array->cache);
        array->trimmed = true;
        if (cow_index_trim(array->index, chunks, drop_slot, array) != 0)
            return cow_context("%s: making the extent smaller", array->label);
    }
    if (changes) {
        memcpy(array->extent, extent, rank * sizeof *extent);
        array->extent_changed = true;
        cow_chunk_cache_forget_listing(array->cache);
    }
    if (shrinks && !array->heap)
        cow_chunk_cache_each(array, cut_dirty, old);
    if (shrinks && product(rank, chunks) > 0)
        for (unsigned d = 0; d < rank; d++)
            if (extent[d] < old[d] && extent[d] % array->grid.chunk[d] != 0 && cut_face(array, d) < 0)
                return cow_context("%s: making the extent smaller", array->label);
    if (array->plain_edges && !array->heap && !cow_codec_identity(array->codec) && filter_edges(array, old) < 0)
        return cow_context("%s: making the extent larger", array->label);
    if (array->early && allocate_early(array, before) < 0)
        return cow_context("%s: allocating chunks", array->label);
    return 0;
}

int cow_array_allocate_late(cow_array *array)
{
    int status;

    if (!array->late)
        return 0;
    array->late = false;
    array->early = true;
    status = cow_array_resize(array, array->extent);
    array->early = false;
    return status;
}

/* ---- queries ---- */

static int store_dirty(cow_array *array)
{
    return array->dirty == NULL ? 0 : cow_array_store(array);
}

int cow_array_chunk_count(cow_array *array, uint64_t *count)
{
    if (store_dirty(array) < 0)
        return -1;
    *count = cow_index_chunks(array->index);
    return 0;
}

/* Bytes of a composed chunk as the pool's filters would store it. */
static int composed_size(cow_array *array, const uint64_t chunk[], uint64_t entry, size_t *size, uint32_t *mask)
{
    void *encoded = NULL;
    int status = 0;

    *size = array->chunk_bytes;
    *mask = 0;
    if (!cow_codec_identity(array->codec))
        status = cow_array_chunk_encoded(array, chunk, entry, &encoded, size, mask);
    free(encoded);
    return status;
}

static int describe_chunk(cow_array *array, const uint64_t chunk[], cow_chunk_info *info)
{
    hsize_t size = 0;
    unsigned mask = 0;

    *info = (cow_chunk_info){.address = HADDR_UNDEF};
    for (unsigned d = 0; d < array->grid.rank; d++)
        info->offset[d] = chunk[d] * array->grid.chunk[d];
    if (cow_index_get(array->index, chunk, &info->slot) < 0)
        return cow_error_where(array->label, "looking for a chunk");
    if (info->slot == COW_HOLE)
        return 0;
    if (cow_is_composed(info->slot)) { /* it lies in no one place */
        size_t encoded = array->chunk_bytes;

        if (!array->filters_hidden && composed_size(array, chunk, info->slot, &encoded, &info->filter_mask) < 0)
            return -1;
        info->size = encoded;
        info->address = COW_NOWHERE;
        return 0;
    }
    if (cow_native_chunk_address(cow_pool_store(array->pool), cow_pool_slots(array->pool), info->slot, &info->address,
                                 &size, &mask) < 0)
        return cow_error_where(array->label, "looking for a chunk's place in the file");
    if (array->filters_hidden) {
        if (mask != cow_codec_all(array->codec))
            info->address = COW_NOWHERE;
        size = cow_array_file_chunk_bytes(array);
        mask = 0;
    }
    info->size = size;
    info->filter_mask = cow_array_chunk_plain(array, chunk) ? 0 : mask;
    return 0;
}

/* The listing of all stored chunks. */
typedef struct listing_walk {
    const cow_array *array;
    cow_listing *listing;
    uint64_t room;
} listing_walk;

static int list_chunk(void *context, const uint64_t chunk[], uint64_t slot)
{
    listing_walk *w = context;
    unsigned rank = w->array->grid.rank;

    (void)slot;
    if (w->listing->count == w->room)
        return cow_error(COW_CORRUPT, "%s: the index has more chunks than it says", w->array->label);
    memcpy(w->listing->chunk + w->listing->count++ * rank, chunk, rank * sizeof *chunk);
    return 0;
}

static cow_listing *list_chunks(cow_array *array, const uint64_t chunks[])
{
    const uint64_t origin[COW_MAX_RANK] = {0};
    cow_listing *listing = cow_chunk_cache_listing(array->cache);
    listing_walk w = {.array = array, .listing = listing, .room = cow_index_chunks(array->index)};
    unsigned rank = array->grid.rank;

    if (listing->array == array)
        return listing;
    cow_chunk_cache_forget_listing(array->cache);
    if (w.room >= SIZE_MAX / sizeof *listing->chunk / rank ||
        (listing->chunk = malloc((w.room + 1) * rank * sizeof *listing->chunk)) == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for a list of %" PRIu64 " chunks", array->label, w.room);
        return NULL;
    }
    listing->array = array;
    if (cow_index_visit(array->index, origin, chunks, list_chunk, &w) != 0) {
        cow_chunk_cache_forget_listing(array->cache);
        return NULL;
    }
    qsort_r(listing->chunk, listing->count, rank * sizeof *listing->chunk, cow_row_major, &rank);
    return listing;
}

int cow_array_chunk_by_index(cow_array *array, uint64_t index, cow_chunk_info *info)
{
    unsigned rank = array->grid.rank;
    uint64_t chunks[COW_MAX_RANK], chunk[COW_MAX_RANK], count;

    if (store_dirty(array) < 0)
        return -1;
    count = cow_index_chunks(array->index);
    if (index >= count)
        return cow_error(COW_USAGE, "%s: chunk index %" PRIu64 " is out of range: there are %" PRIu64, array->label,
                         index, count);
    grid_extent(array, array->extent, chunks);
    if (count != product(rank, chunks)) { /* where every chunk is stored, index and number are the same */
        const cow_listing *listing = list_chunks(array, chunks);

        if (listing == NULL)
            return -1;
        if (index >= listing->count)
            return cow_error(COW_CORRUPT, "%s: the index has fewer chunks than it says", array->label);
        return describe_chunk(array, listing->chunk + index * rank, info);
    }
    for (unsigned d = rank; d-- > 0; index /= chunks[d])
        chunk[d] = index % chunks[d];
    return describe_chunk(array, chunk, info);
}

/* The chunk that begins at OFFSET. */
static int chunk_at(const cow_array *array, const uint64_t offset[], uint64_t chunk[])
{
    for (unsigned d = 0; d < array->grid.rank; d++) {
        if (offset[d] >= array->extent[d])
            return cow_error(COW_USAGE, "%s: chunk offset %" PRIu64 " is beyond the extent %" PRIu64 " of dimension %u",
                             array->label, offset[d], array->extent[d], d);
        if (offset[d] % array->grid.chunk[d] != 0)
            return cow_error(COW_USAGE, "%s: chunk offset %" PRIu64 " does not fall on chunk boundaries (%" PRIu64 ")",
                             array->label, offset[d], array->grid.chunk[d]);
        chunk[d] = offset[d] / array->grid.chunk[d];
    }
    return 0;
}

int cow_array_chunk_by_offset(cow_array *array, const uint64_t offset[], cow_chunk_info *info)
{
    uint64_t chunk[COW_MAX_RANK];

    if (chunk_at(array, offset, chunk) < 0 || store_dirty(array) < 0)
        return -1;
    return describe_chunk(array, chunk, info);
}

static int read_composed(cow_array *array, const uint64_t chunk[], uint64_t entry, uint32_t *filter_mask, void *bytes,
                         size_t size)
{
    char place[COW_PLACE_SIZE];
    void *encoded;
    size_t stored;
    int status = -1;

    if (cow_array_chunk_encoded(array, chunk, entry, &encoded, &stored, filter_mask) < 0)
        return -1;
    if (stored > size)
        cow_error(COW_USAGE, "%s: the chunk at %s has %zu bytes, the buffer %zu", array->label,
                  cow_array_chunk_place(array, chunk, place), stored, size);
    else {
        memcpy(bytes, encoded, stored);
        status = 0;
    }
    free(encoded);
    return status;
}

/* Without the filters, which are hidden, into as many bytes as a chunk has then. */
static int read_decoded(cow_array *array, const uint64_t chunk[], uint64_t slot, void *bytes)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    cow_load load = {.chunk = chunk, .slot = slot, .bytes = bytes};
    uint32_t mask;
    size_t stored;
    void *encoded;
    int status;

    if (!array->heap)
        return cow_stored_load(array, &load, 1, NULL);
    if (store->size(store, slot, &stored) < 0)
        return cow_context("%s: reading a chunk", array->label);
    if ((encoded = malloc(stored > 0 ? stored : 1)) == NULL)
        return cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", array->label, stored);
    status = store->read(store, slot, encoded, stored, &mask) < 0 ||
                     cow_codec_decode(array->codec, encoded, stored, mask, bytes) < 0
                 ? cow_context("%s: reading a chunk", array->label)
                 : 0;
    free(encoded);
    return status;
}

int cow_array_chunk_read(cow_array *array, const uint64_t offset[], uint32_t *filter_mask, void *bytes, size_t size)
{
    cow_chunk_store *store = cow_pool_store(array->pool);
    uint64_t chunk[COW_MAX_RANK], slot;
    char place[COW_PLACE_SIZE];
    uint8_t *decoded;
    cow_slot row;
    size_t stored;
    int status = -1;

    if (chunk_at(array, offset, chunk) < 0 || store_dirty(array) < 0 || cow_index_get(array->index, chunk, &slot) < 0)
        return -1;
    if (slot == COW_HOLE)
        return cow_error(COW_NOT_FOUND, "%s: the chunk at %s is not stored", array->label,
                         cow_array_chunk_place(array, chunk, place));
    if (array->filters_hidden) {
        *filter_mask = 0;
        return size < cow_array_file_chunk_bytes(array)
                   ? cow_error(COW_USAGE, "%s: the chunk at %s has %zu bytes, the buffer %zu", array->label,
                               cow_array_chunk_place(array, chunk, place), cow_array_file_chunk_bytes(array), size)
                   : read_decoded(array, chunk, slot, bytes);
    }
    if (cow_is_composed(slot))
        return read_composed(array, chunk, slot, filter_mask, bytes, size);
    if (cow_pool_row(array->pool, slot, &row) < 0 || store->size(store, slot, &stored) < 0)
        return cow_context("%s: reading a chunk", array->label);
    if (stored > size)
        return cow_error(COW_USAGE, "%s: the chunk at %s has %zu bytes, the buffer %zu", array->label,
                         cow_array_chunk_place(array, chunk, place), stored, size);
    if (store->read(store, slot, bytes, stored, filter_mask) < 0)
        return cow_context("%s: reading a chunk", array->label);
    /* Of a heap array the bytes say where HDF5 keeps the elements: no checksum covers that. */
    if (array->heap || (array->filtering != NULL && array->filtering->unchecked)) {
        *filter_mask = cow_array_chunk_plain(array, chunk) ? 0 : *filter_mask;
        return 0;
    }
    if ((decoded = cow_chunk_cache_buffer(array)) == NULL)
        return -1;
    if (cow_codec_identity(array->codec) ? stored != array->chunk_bytes
                                         : cow_codec_decode(array->codec, bytes, stored, *filter_mask, decoded) < 0)
        cow_error(COW_CORRUPT, "%s: the chunk at %s cannot be decoded; run h5cow verify on the file", array->label,
                  cow_array_chunk_place(array, chunk, place));
    else
        status = cow_array_chunk_verify(
            array, chunk, slot, cow_checksum(cow_codec_identity(array->codec) ? bytes : decoded, array->chunk_bytes),
            row.digest.checksum);
    if (cow_array_chunk_plain(array, chunk))
        *filter_mask = 0;
    cow_chunk_cache_buffer_free(array, decoded);
    return status;
}

int cow_array_chunk_write(cow_array *array, const uint64_t offset[], uint32_t filter_mask, const void *bytes,
                          size_t size)
{
    uint64_t chunk[COW_MAX_RANK];
    cow_save save = {.chunk = chunk, .ready = bytes, .ready_size = size, .ready_mask = filter_mask};
    uint8_t *decoded = NULL, *given = NULL;
    cow_cached_chunk *entry;
    int status = -1;

    if (chunk_at(array, offset, chunk) < 0)
        return -1;
    if (array->heap)
        return cow_error(COW_UNSUPPORTED,
                         "%s: chunks of variable-length data or references cannot be written as bytes; "
                         "use H5Dwrite",
                         array->label);
    array->written = true;
    array->nothing_to_read = false;
    if (cow_array_chunk_plain(array, chunk))
        save.ready_mask = filter_mask = cow_codec_all(array->codec);
    if (cow_array_allocate_late(array) < 0)
        return -1;
    if ((decoded = cow_chunk_cache_buffer(array)) == NULL)
        return -1;
    if (cow_codec_identity(array->codec) || array->filters_hidden) {
        if (size != array->chunk_bytes) {
            cow_error(COW_USAGE, "%s: a chunk of this dataset has %zu bytes, not %zu", array->label, array->chunk_bytes,
                      size);
            goto done;
        }
        memcpy(decoded, bytes, size);
        save.ready = array->filters_hidden ? NULL : decoded;
    } else {
        if ((given = malloc(size > 0 ? size : 1)) == NULL) {
            cow_error(COW_MEMORY, "%s: no memory for a chunk of %zu bytes", array->label, size);
            goto done;
        }
        save.ready = memcpy(given, bytes, size); /* which nobody changes */
        if (cow_codec_decode(array->codec, given, size, filter_mask, decoded) < 0) {
            cow_context("%s: the bytes given to H5Dwrite_chunk cannot be decoded with the dataset's filters",
                        array->label);
            goto done;
        }
    }
    save.bytes = decoded; /* what was given is stored as it was given, but where filters are hidden */
    if (cow_stored_save(array, &save, 1, NULL, NULL) < 0)
        goto done;
    if ((entry = cow_chunk_cache_find(array, chunk)) != NULL)
        cow_chunk_cache_remove(entry);
    status = 0;
done:
    free(given);
    cow_chunk_cache_buffer_free(array, decoded);
    return status;
}

typedef struct size_sum {
    cow_array *array;
    cow_chunk_store *store;
    uint64_t bytes;
} size_sum;

static int add_size(void *context, const uint64_t chunk[], uint64_t slot)
{
    size_sum *sum = context;
    uint32_t mask;
    size_t size;

    if (cow_is_composed(slot) ? composed_size(sum->array, chunk, slot, &size, &mask) < 0
                              : sum->store->size(sum->store, slot, &size) < 0)
        return -1;
    sum->bytes += size;
    return 0;
}

int cow_array_storage_size(cow_array *array, uint64_t *bytes)
{
    const uint64_t origin[COW_MAX_RANK] = {0};
    uint64_t chunks[COW_MAX_RANK];
    size_sum sum = {.array = array, .store = cow_pool_store(array->pool)};

    if (store_dirty(array) < 0)
        return -1;
    if (cow_codec_identity(array->codec)) {
        *bytes = cow_index_chunks(array->index) * cow_array_file_chunk_bytes(array);
        return 0;
    }
    grid_extent(array, array->extent, chunks);
    if (cow_index_visit(array->index, origin, chunks, add_size, &sum) != 0)
        return cow_error_where(array->label, "adding up the sizes of chunks");
    *bytes = sum.bytes;
    return 0;
}
