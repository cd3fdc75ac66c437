/* Transfers of irregular file selections: points and unions of hyperslabs (transfer.h).
 *
 * The selection is walked in selection order, a slab of bounded size at a time. A slab's elements are packed in that
 * order; its spans (elements that are neighbours in a chunk and in the packed buffer) are sorted by chunk, keeping
 * their order inside a chunk: so each chunk is visited once, and of two points at the same place the later one is
 * written last, as in native HDF5.
 *
 * An extent may have more elements, and a grid more chunks, than 64 bits count. Then HDF5's runs, which are linear offsets,
 * do not tell where they are: a union of hyperslabs is moved to the origin of a dataspace as large as what it bounds, and
 * points are asked for by their coordinates. And chunks have no number: a slab keeps their coordinates.
 */
#include "io/transfer.h"

#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "io/chunk_cache.h"
#include "io/heap.h"

#include <stdlib.h>
#include <string.h>

/* Chunks that are looked up together, to be loaded together. */
#define WINDOW 64

typedef struct span {
    uint64_t chunk;  /* row-major number in the grid of the current extent; many chunks: of the first span in it */
    uint64_t place;  /* row-major number in the chunk */
    uint64_t packed; /* elements from the start of the slab */
    uint64_t length; /* elements */
} span;

typedef struct walk {
    const cow_transfer *transfer;
    cow_runs *runs;
    cow_run run[128];
    size_t n, next;
    hid_t moved; /* the selection that the runs are of, where it is not the caller's */
    uint64_t first[COW_MAX_RANK], box[COW_MAX_RANK]; /* where in the extent runs count their offsets */
    uint64_t shift[COW_MAX_RANK];                    /* points: to be added, modulo 2^64 */
    uint64_t point;                                  /* the next one */
    bool points;                                     /* no runs */
    uint64_t chunks[COW_MAX_RANK];                   /* of the grid */
    bool many;                                       /* it has more chunks than 64 bits count */
    span *spans;                                     /* of one slab */
    uint64_t *places;                                /* many: the chunk of each, rank coordinates */
    size_t count, span_room, place_room;
    bool sorted;
} walk;

/* Coordinates of the chunk that span I began with. */
static uint64_t *place_of(const walk *w, uint64_t i)
{
    return w->places + i * w->transfer->array->grid.rank;
}

static int more_spans(walk *w)
{
    size_t place = w->transfer->array->grid.rank * sizeof *w->places;

    if (COW_RESERVE(w->spans, w->span_room, w->count, 1) < 0 ||
        (w->many && cow_vector_reserve(&w->places, &w->place_room, w->count, 1, place) < 0))
        return cow_error(COW_MEMORY, "%s: no memory for a selection of %zu parts", w->transfer->array->label,
                         w->count + 1);
    return 0;
}

/* PLACE: the chunk's coordinates. */
static int add_span(walk *w, span s, const uint64_t place[])
{
    unsigned rank = w->transfer->array->grid.rank;

    if (w->many)
        s.chunk = w->count;
    if (w->count > 0) {
        span *last = &w->spans[w->count - 1];

        if (w->many && memcmp(place, place_of(w, last->chunk), rank * sizeof *place) == 0)
            s.chunk = last->chunk;
        if (last->chunk == s.chunk && last->place + last->length == s.place &&
            last->packed + last->length == s.packed) {
            last->length += s.length;
            return 0;
        }
        if (s.chunk < last->chunk || (w->many && s.chunk > last->chunk))
            w->sorted = false;
    }
    if (more_spans(w) < 0)
        return -1;
    if (w->many)
        memcpy(place_of(w, w->count), place, rank * sizeof *place);
    w->spans[w->count++] = s;
    return 0;
}

/* Cut LENGTH elements from coordinates AT on by rows and chunks; AT is moved. */
static int cut_from(walk *w, uint64_t at[], uint64_t length, uint64_t packed)
{
    const cow_grid *grid = &w->transfer->array->grid;
    unsigned last = grid->rank - 1;
    uint64_t place[COW_MAX_RANK];

    while (length > 0) {
        span s = {.packed = packed, .length = grid->chunk[last] - at[last] % grid->chunk[last]};

        if (s.length > w->first[last] + w->box[last] - at[last])
            s.length = w->first[last] + w->box[last] - at[last];
        if (s.length > length)
            s.length = length;
        for (unsigned d = 0; d < grid->rank; d++) {
            place[d] = at[d] / grid->chunk[d];
            s.chunk = s.chunk * w->chunks[d] + place[d];
            s.place = s.place * grid->chunk[d] + at[d] % grid->chunk[d];
        }
        if (add_span(w, s, place) < 0)
            return -1;
        length -= s.length;
        packed += s.length;
        at[last] += s.length;
        for (unsigned d = last; d > 0 && at[d] == w->first[d] + w->box[d]; d--) {
            at[d] = w->first[d];
            at[d - 1]++;
        }
    }
    return 0;
}

static int cut_run(walk *w, uint64_t offset, uint64_t length, uint64_t packed)
{
    uint64_t at[COW_MAX_RANK];

    for (unsigned d = w->transfer->array->grid.rank; d-- > 0;) {
        at[d] = w->first[d] + offset % w->box[d];
        offset /= w->box[d];
    }
    return cut_from(w, at, length, packed);
}

/* By chunk, inside a chunk in the order of the selection. */
static int compare_spans(const void *a, const void *b, void *context)
{
    const span *x = a, *y = b;
    const walk *w = context;

    for (unsigned d = 0; w->many && d < w->transfer->array->grid.rank; d++)
        if (place_of(w, x->chunk)[d] != place_of(w, y->chunk)[d])
            return place_of(w, x->chunk)[d] < place_of(w, y->chunk)[d] ? -1 : 1;
    if (!w->many && x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    return x->packed < y->packed ? -1 : x->packed > y->packed;
}

/* The same for many spans of few chunks: by eight bits of the number after the other, the lowest first, mostly once. Spans come in
 * the order of the selection. */
static int sort_by_numbers(walk *w)
{
    size_t size = w->count * sizeof *w->spans;
    span *sorted = cow_chunk_cache_scratch(w->transfer->array->cache, COW_BUFFER_SPANS, size);
    uint64_t least = UINT64_MAX, most = 0;

    if (sorted == NULL)
        return -1;
    for (size_t i = 0; i < w->count; i++) {
        least = w->spans[i].chunk < least ? w->spans[i].chunk : least;
        most = w->spans[i].chunk > most ? w->spans[i].chunk : most;
    }
    for (unsigned shift = 0; shift < 64 && (most - least) >> shift > 0; shift += 8) {
        size_t next[257] = {0}; /* for each value of the bits, where the next such span goes */

        for (size_t i = 0; i < w->count; i++)
            next[((w->spans[i].chunk - least) >> shift & 255) + 1]++;
        for (size_t i = 1; i < 256; i++)
            next[i] += next[i - 1];
        for (size_t i = 0; i < w->count; i++)
            sorted[next[(w->spans[i].chunk - least) >> shift & 255]++] = w->spans[i];
        memcpy(w->spans, sorted, size);
    }
    return 0;
}

static int sort_spans(walk *w)
{
    size_t place = w->transfer->array->grid.rank * sizeof *w->places;

    if (w->sorted)
        return 0;
    if (!w->many && w->count >= 256)
        return sort_by_numbers(w);
    qsort_r(w->spans, w->count, sizeof *w->spans, compare_spans, w);
    for (size_t i = 1; w->many && i < w->count; i++)
        if (memcmp(place_of(w, w->spans[i].chunk), place_of(w, w->spans[i - 1].chunk), place) == 0)
            w->spans[i].chunk = w->spans[i - 1].chunk;
    return 0;
}

/* The spans of the next N points. */
static int next_points(walk *w, uint64_t n)
{
    unsigned rank = w->transfer->array->grid.rank;
    hsize_t points[64 * COW_MAX_RANK];
    uint64_t at[COW_MAX_RANK];

    for (uint64_t done = 0; done < n; done++) {
        if (done % 64 == 0 && H5Sget_select_elem_pointlist(w->transfer->file.space, w->point + done,
                                                           n - done < 64 ? n - done : 64, points) < 0)
            return cow_error_native("%s: cannot read the points of a selection", w->transfer->array->label);
        for (unsigned d = 0; d < rank; d++)
            at[d] = points[done % 64 * rank + d] + w->shift[d];
        if (cut_from(w, at, 1, done) < 0)
            return -1;
    }
    w->point += n;
    return 0;
}

/* The spans of the next N elements. */
static int next_slab(walk *w, uint64_t n)
{
    w->count = 0;
    w->sorted = true;
    if (w->points && next_points(w, n) < 0)
        return -1;
    for (uint64_t done = w->points ? n : 0; done < n;) {
        cow_run *run;
        uint64_t length;

        if (w->next == w->n) {
            if (cow_runs_next(w->runs, w->run, sizeof w->run / sizeof *w->run, SIZE_MAX / 2, &w->n) < 0)
                return -1;
            w->next = 0;
            if (w->n == 0)
                return cow_error(COW_USAGE, "%s: the selection ended early", w->transfer->array->label);
        }
        run = &w->run[w->next];
        length = run->length < n - done ? run->length : n - done;
        if (cut_run(w, run->offset, length, done) < 0)
            return -1;
        done += length;
        run->offset += length;
        run->length -= length;
        if (run->length == 0)
            w->next++;
    }
    return sort_spans(w);
}

/* Where the elements of an extent have no numbers: the selection moved to the origin, or points by coordinates. */
static int open_unnumbered(walk *w)
{
    const cow_selection *file = &w->transfer->file;
    hsize_t extent[COW_MAX_RANK], low[COW_MAX_RANK], high[COW_MAX_RANK], own[COW_MAX_RANK];
    hssize_t back[COW_MAX_RANK];
    uint64_t elements = 1;

    for (unsigned d = 0; d < file->rank; d++)
        extent[d] = file->extent[d];
    /* a new extent has no offset (H5Soffset_simple) */
    if ((w->moved = H5Scopy(file->space)) < 0 || H5Sget_select_bounds(w->moved, low, high) < 0 ||
        H5Sset_extent_simple(w->moved, (int)file->rank, extent, NULL) < 0 ||
        H5Sget_select_bounds(w->moved, own, extent) < 0)
        return cow_error_native("%s: cannot look at a selection", w->transfer->array->label);
    w->points = H5Sget_select_type(file->space) == H5S_SEL_POINTS;
    for (unsigned d = 0; d < file->rank; d++) {
        w->shift[d] = low[d] - own[d];
        back[d] = (hssize_t)own[d];
        if (w->points)
            continue;
        w->first[d] = low[d];
        extent[d] = w->box[d] = high[d] - low[d] + 1;
        elements = cow_times(elements, w->box[d]);
    }
    if (w->points)
        return 0;
    if (elements == UINT64_MAX)
        return cow_error(COW_UNSUPPORTED,
                         "%s: a union of hyperslabs that are more than 2^64 elements apart cannot be read or written; "
                         "use one call for each",
                         w->transfer->array->label);
    if (H5Sselect_adjust(w->moved, back) < 0 || H5Sset_extent_simple(w->moved, (int)file->rank, extent, NULL) < 0)
        return cow_error_native("%s: cannot move a selection", w->transfer->array->label);
    return (w->runs = cow_runs_open(w->moved)) == NULL ? -1 : 0;
}

static int open_walk(walk *w)
{
    const cow_selection *file = &w->transfer->file;
    const cow_array *array = w->transfer->array;
    uint64_t chunks = 1;

    for (unsigned d = 0; d < file->rank; d++) {
        w->box[d] = file->extent[d];
        w->chunks[d] = cow_grid_chunks_along(array->extent[d], array->grid.chunk[d]);
        chunks = cow_times(chunks, w->chunks[d]);
    }
    w->many = chunks == UINT64_MAX;
    if (!cow_selection_numbered(file))
        return open_unnumbered(w);
    return (w->runs = cow_runs_open(file->space)) == NULL ? -1 : 0;
}

/* ---- one slab ---- */

typedef enum { TO_CHUNK, FROM_CHUNK } direction;

static void number_to_chunk(const walk *w, uint64_t number, uint64_t chunk[])
{
    if (w->many) {
        memcpy(chunk, place_of(w, number), w->transfer->array->grid.rank * sizeof *chunk);
        return;
    }
    for (unsigned d = w->transfer->array->grid.rank; d-- > 0;) {
        chunk[d] = number % w->chunks[d];
        number /= w->chunks[d];
    }
}

/* Copy COUNT spans of one chunk between it and PACKED (elements of the file's type). BYTES NULL: fill value. */
static void copy_spans(const cow_array *array, const span *spans, size_t count, uint8_t *bytes, uint8_t *packed,
                       direction way)
{
    size_t element = array->element_size;

    for (size_t i = 0; i < count; i++) {
        uint8_t *at = packed + spans[i].packed * element;

        if (bytes == NULL)
            cow_fill_elements(at, array->fill, element, spans[i].length);
        else if (way == TO_CHUNK)
            memcpy(bytes + spans[i].place * element, at, spans[i].length * element);
        else
            memcpy(at, bytes + spans[i].place * element, spans[i].length * element);
    }
}

static int visit_chunk(cow_array *array, const uint64_t chunk[], const span *spans, size_t count, uint8_t *packed,
                       direction way)
{
    cow_cached_chunk *entry = cow_chunk_cache_find(array, chunk);

    if (entry == NULL && way == FROM_CHUNK) { /* reading a hole makes no chunk */
        uint64_t slot;
        if (cow_index_get(array->index, chunk, &slot) < 0)
            return cow_error_where(array->label, "looking for a chunk");
        if (slot == COW_HOLE) {
            if (array->fill != NULL)
                copy_spans(array, spans, count, NULL, packed, way);
            return 0;
        }
    }
    if (entry == NULL && (entry = cow_chunk_cache_get(array, chunk, false)) == NULL)
        return -1;
    copy_spans(array, spans, count, entry->bytes, packed, way);
    if (way == TO_CHUNK)
        cow_chunk_cache_dirty(entry);
    return 0;
}

/* Elements of a heap array: those of one chunk are packed once more, in the same order. */
static int visit_heap_chunk(const walk *w, const uint64_t chunk[], const span *spans, size_t count, uint8_t *packed,
                            direction way)
{
    const cow_transfer *transfer = w->transfer;
    cow_array *array = transfer->array;
    size_t element = transfer->mem_size;
    cow_heap_part part = {.chunk = chunk};
    uint64_t *place, n = 0;
    uint8_t *own;
    int status;

    for (size_t i = 0; i < count; i++)
        part.elements += spans[i].length;
    if ((place = cow_chunk_cache_scratch(array->cache, COW_BUFFER_SPANS, part.elements * sizeof *place)) == NULL ||
        (own = cow_chunk_cache_scratch(array->cache, COW_BUFFER_STAGED, part.elements * element)) == NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        memcpy(own + n * element, packed + spans[i].packed * element, spans[i].length * element);
        for (uint64_t e = 0; e < spans[i].length; e++)
            place[n++] = spans[i].place + e;
    }
    part.place = place;
    status = cow_transfer_heap(transfer, &part, own);
    if (way == TO_CHUNK)
        return status;
    n = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(packed + spans[i].packed * element, own + n * element, spans[i].length * element);
        n += spans[i].length;
    }
    return status;
}

/* Visit all chunks of the slab, WINDOW at a time. */
static int visit_chunks(const walk *w, uint8_t *packed, direction way)
{
    cow_array *array = w->transfer->array;
    unsigned rank = array->grid.rank;
    uint64_t *chunks = cow_chunk_cache_scratch(array->cache, COW_BUFFER_CHUNKS, WINDOW * rank * sizeof *chunks);

    if (chunks == NULL)
        return -1;
    for (size_t i = 0; i < w->count;) {
        size_t n = 0;

        for (size_t j = i; j < w->count && n < WINDOW; j++)
            if (j == i || w->spans[j].chunk != w->spans[j - 1].chunk)
                number_to_chunk(w, w->spans[j].chunk, chunks + n++ * rank);
        if (!array->heap && cow_chunk_cache_prefetch(array, chunks, n) < 0)
            return -1;
        for (size_t k = 0; k < n; k++) {
            size_t count = 1;

            while (i + count < w->count && w->spans[i + count].chunk == w->spans[i].chunk)
                count++;
            if ((array->heap ? visit_heap_chunk(w, chunks + k * rank, w->spans + i, count, packed, way)
                             : visit_chunk(array, chunks + k * rank, w->spans + i, count, packed, way)) < 0)
                return -1;
            i += count;
        }
    }
    return 0;
}

static int write_slab(walk *w, cow_stream *in, uint64_t n, uint8_t *packed, uint8_t *background)
{
    const cow_transfer *transfer = w->transfer;

    if (cow_stream_gather(in, n, packed) < 0)
        return -1;
    if (transfer->conversion.needed) {
        if (transfer->conversion.background == COW_BACKGROUND_CONTENT) {
            memset(background, 0, n * transfer->conversion.to_size); /* what is in a hole without fill value */
            if (visit_chunks(w, background, FROM_CHUNK) < 0)
                return -1;
        }
        if (cow_transfer_convert(transfer, n, packed, background) < 0)
            return -1;
    }
    return visit_chunks(w, packed, TO_CHUNK);
}

static int read_slab(walk *w, cow_stream *in, cow_stream *out, uint64_t n, uint8_t *packed, uint8_t *background)
{
    const cow_transfer *transfer = w->transfer;
    const cow_array *array = transfer->array;

    if (transfer->conversion.needed) {
        if (transfer->conversion.background == COW_BACKGROUND_CONTENT && cow_stream_gather(in, n, background) < 0)
            return -1;
        if (array->fill == NULL)
            memset(packed, 0, n * array->element_size); /* holes: anything that can be converted */
    } else if ((array->fill == NULL || array->heap) && cow_stream_gather(in, n, packed) < 0) {
        return -1; /* what is not read must come back as it was */
    }
    if (visit_chunks(w, packed, FROM_CHUNK) < 0) {
        if (array->heap) /* what was read so far is the application's to free */
            cow_stream_scatter(out, n, packed);
        return -1;
    }
    if (transfer->conversion.needed && cow_transfer_convert(transfer, n, packed, background) < 0)
        return -1;
    return cow_stream_scatter(out, n, packed);
}

int cow_transfer_spans(const cow_transfer *transfer)
{
    cow_array *array = transfer->array;
    walk w = {.transfer = transfer, .moved = H5I_INVALID_HID};
    cow_stream in = {.runs = NULL}, out = {.runs = NULL};
    size_t size = transfer->conversion.needed ? transfer->conversion.size : transfer->mem_size;
    uint64_t most = COW_SLAB_BYTES / size, left = transfer->file.elements;
    uint8_t *packed, *background = NULL;
    int status = -1;

    if (most > COW_SLAB_SPANS)
        most = COW_SLAB_SPANS;
    if (most == 0)
        most = 1;
    if (most > left)
        most = left;
    if ((packed = cow_chunk_cache_scratch(array->cache, COW_BUFFER_PACKED, most * size)) == NULL ||
        (transfer->conversion.background != COW_BACKGROUND_NONE &&
         (background = cow_chunk_cache_scratch(array->cache, COW_BUFFER_BACKGROUND,
                                               most * transfer->conversion.to_size)) == NULL) ||
        open_walk(&w) < 0 || cow_stream_open(&in, transfer) < 0 || cow_stream_open(&out, transfer) < 0)
        goto done;
    while (left > 0) {
        uint64_t n = left < most ? left : most;

        if (next_slab(&w, n) < 0)
            goto done;
        if ((transfer->write ? write_slab(&w, &in, n, packed, background)
                             : read_slab(&w, &in, &out, n, packed, background)) < 0)
            goto done;
        left -= n;
    }
    status = 0;
done:
    cow_stream_close(&out);
    cow_stream_close(&in);
    cow_runs_close(w.runs);
    cow_close(w.moved);
    free(w.places);
    free(w.spans);
    return status;
}
