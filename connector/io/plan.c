/* Plans and the copying that follows them: see plan.h. Nothing here can fail: selections and extents were checked by
 * cow_selection_from, chunk dims when the dataset was opened. */
#include "io/plan.h"

#include <string.h>

uint64_t cow_slab_length(const cow_slab *slab)
{
    return slab->count * slab->block;
}

uint64_t cow_slab_coordinate(const cow_slab *slab, uint64_t position)
{
    if (slab->count <= 1)
        return slab->start + position;
    if (slab->block == 1)
        return slab->start + position * slab->stride;
    return slab->start + position / slab->block * slab->stride + position % slab->block;
}

uint64_t cow_slab_below(const cow_slab *slab, uint64_t coordinate)
{
    uint64_t length = cow_slab_length(slab), n, rest;

    if (coordinate <= slab->start)
        return 0;
    coordinate -= slab->start;
    if (slab->count <= 1)
        return coordinate < length ? coordinate : length;
    n = coordinate / slab->stride;
    if (n >= slab->count)
        return length;
    rest = coordinate % slab->stride;
    return n * slab->block + (rest < slab->block ? rest : slab->block);
}

/* All positions of [from, to) are neighbours in the extent. */
static bool dense(const cow_slab *slab, uint64_t from, uint64_t to)
{
    return slab->count <= 1 || slab->stride == slab->block || from / slab->block == (to - 1) / slab->block;
}

/* Go to the cell that holds position FROM. */
static void cut_at(cow_cut *cut, const cow_slab *slab, uint64_t size, uint64_t from)
{
    cut->from = from;
    cut->cell = cow_slab_coordinate(slab, from) / size;
    cut->to = cut->cell == UINT64_MAX / size ? cut->end : cow_slab_below(slab, (cut->cell + 1) * size);
    if (cut->to > cut->end)
        cut->to = cut->end;
}

static uint64_t tile_elements(const cow_plan *plan, unsigned d)
{
    return plan->grid->chunk[d] * plan->grid->tile[d];
}

/* Begin with the first chunk of the current tile. */
static void enter_tile(cow_plan *plan)
{
    for (unsigned d = 0; d < plan->rank; d++) {
        plan->chunk[d].first = plan->tile[d].from;
        plan->chunk[d].end = plan->tile[d].to;
        cut_at(&plan->chunk[d], &plan->slab[d], plan->grid->chunk[d], plan->tile[d].from);
    }
}

static void start(cow_plan *plan)
{
    plan->started = false;
    plan->empty = false;
    for (unsigned d = 0; d < plan->rank; d++) {
        plan->tile[d].first = plan->first[d];
        plan->tile[d].end = plan->end[d];
        if (plan->first[d] >= plan->end[d])
            plan->empty = true;
    }
    if (plan->empty)
        return;
    for (unsigned d = 0; d < plan->rank; d++)
        cut_at(&plan->tile[d], &plan->slab[d], tile_elements(plan, d), plan->first[d]);
    enter_tile(plan);
}

void cow_plan_open(cow_plan *plan, const cow_grid *grid, const uint64_t extent[], const cow_selection *selection)
{
    plan->grid = grid;
    plan->rank = grid->rank;
    for (unsigned d = 0; d < plan->rank; d++) {
        plan->extent[d] = extent[d];
        plan->slab[d] = selection->slab[d];
        plan->first[d] = 0;
        plan->end[d] = cow_slab_length(&plan->slab[d]);
    }
    start(plan);
}

void cow_plan_restrict(cow_plan *plan, const uint64_t first[], const uint64_t end[])
{
    for (unsigned d = 0; d < plan->rank; d++) {
        plan->first[d] = first[d];
        plan->end[d] = end[d];
    }
    start(plan);
}

static bool next_chunk(cow_plan *plan)
{
    for (unsigned d = 0; d < plan->rank; d++) {
        cow_cut *cut = &plan->chunk[d];
        if (cut->to < cut->end) {
            cut_at(cut, &plan->slab[d], plan->grid->chunk[d], cut->to);
            return true;
        }
        cut_at(cut, &plan->slab[d], plan->grid->chunk[d], cut->first);
    }
    return false;
}

static bool next_tile(cow_plan *plan)
{
    for (unsigned d = plan->rank; d-- > 0;) {
        cow_cut *cut = &plan->tile[d];
        if (cut->to < cut->end) {
            cut_at(cut, &plan->slab[d], tile_elements(plan, d), cut->to);
            return true;
        }
        cut_at(cut, &plan->slab[d], tile_elements(plan, d), cut->first);
    }
    return false;
}

bool cow_plan_next(cow_plan *plan, cow_piece *piece)
{
    if (plan->empty)
        return false;
    if (plan->started && !next_chunk(plan)) {
        if (!next_tile(plan))
            return false;
        enter_tile(plan);
    }
    plan->started = true;
    piece->elements = 1;
    piece->whole = piece->box = true;
    for (unsigned d = 0; d < plan->rank; d++) {
        const cow_cut *cut = &plan->chunk[d];
        uint64_t size = plan->grid->chunk[d], begin = cut->cell * size, inside = plan->extent[d] - begin;

        piece->chunk[d] = cut->cell;
        piece->from[d] = cut->from;
        piece->to[d] = cut->to;
        piece->elements *= cut->to - cut->from;
        if (cut->to - cut->from != (inside < size ? inside : size))
            piece->whole = false;
        if (!dense(&plan->slab[d], cut->from, cut->to))
            piece->box = false;
    }
    return true;
}

void cow_plan_memory_packed(cow_plan_memory *memory, unsigned rank, const uint64_t from[], const uint64_t to[],
                            size_t element, void *base)
{
    uint64_t stride = element;

    memory->base = base;
    for (unsigned d = rank; d-- > 0;) {
        memory->origin[d] = from[d];
        memory->stride[d] = stride;
        stride *= to[d] - from[d];
    }
}

/* ---- copying boxes ---- */

typedef struct side {
    uint8_t *base;
    uint64_t stride[COW_MAX_RANK]; /* bytes */
} side;

/* Copy COUNT runs of BYTES each. */
static void copy_runs(uint8_t *to, uint64_t to_stride, const uint8_t *from, uint64_t from_stride, uint64_t count,
                      size_t bytes)
{
    switch (bytes) { /* the sizes of single elements: memcpy of a known size is one move */
#define CASE(N)                                                                                                        \
    case N:                                                                                                            \
        for (uint64_t i = 0; i < count; i++)                                                                           \
            memcpy(to + i * to_stride, from + i * from_stride, N);                                                     \
        break;
        CASE(1)
        CASE(2)
        CASE(4)
        CASE(8)
        CASE(16)
#undef CASE
    default:
        for (uint64_t i = 0; i < count; i++)
            memcpy(to + i * to_stride, from + i * from_stride, bytes);
    }
}

/* RANK dimensions of n[] runs of BYTES. */
static void copy_box(unsigned rank, const uint64_t n[], size_t bytes, uint8_t *to, const uint64_t to_stride[],
                     const uint8_t *from, const uint64_t from_stride[])
{
    if (rank == 0) {
        memcpy(to, from, bytes);
    } else if (rank == 1) {
        copy_runs(to, to_stride[0], from, from_stride[0], n[0], bytes);
    } else {
        for (uint64_t i = 0; i < n[0]; i++)
            copy_box(rank - 1, n + 1, bytes, to + i * to_stride[0], to_stride + 1, from + i * from_stride[0],
                     from_stride + 1);
    }
}

/* Drop dimensions of one element and merge those that are contiguous on both sides. Returns the rank that is left. */
static unsigned merge(unsigned rank, uint64_t n[], size_t *bytes, uint64_t a[], uint64_t b[])
{
    unsigned kept = 0;

    for (unsigned d = 0; d < rank; d++)
        if (n[d] != 1) {
            n[kept] = n[d];
            a[kept] = a[d];
            b[kept++] = b[d];
        }
    while (kept > 0 && a[kept - 1] == *bytes && b[kept - 1] == *bytes)
        *bytes *= n[--kept];
    for (unsigned d = kept; d-- > 1;) /* outer dimensions that go on where the inner one ends */
        if (a[d - 1] == a[d] * n[d] && b[d - 1] == b[d] * n[d]) {
            n[d - 1] *= n[d];
            a[d - 1] = a[d];
            b[d - 1] = b[d];
            for (unsigned e = d; e + 1 < kept; e++) {
                n[e] = n[e + 1];
                a[e] = a[e + 1];
                b[e] = b[e + 1];
            }
            kept--;
        }
    return kept;
}

static void copy_sides(unsigned rank, const uint64_t n[], size_t element, const side *to, const side *from)
{
    uint64_t count[COW_MAX_RANK], a[COW_MAX_RANK], b[COW_MAX_RANK];

    for (unsigned d = 0; d < rank; d++) {
        count[d] = n[d];
        a[d] = to->stride[d];
        b[d] = from->stride[d];
    }
    rank = merge(rank, count, &element, a, b);
    copy_box(rank, count, element, to->base, a, from->base, b);
}

/* ---- pieces ---- */

static void chunk_strides(const cow_grid *grid, size_t element, uint64_t stride[])
{
    uint64_t s = element;
    for (unsigned d = grid->rank; d-- > 0;) {
        stride[d] = s;
        s *= grid->chunk[d];
    }
}

static uint8_t *memory_address(const cow_plan_memory *memory, unsigned rank, const uint64_t position[])
{
    uint8_t *p = memory->base;
    for (unsigned d = 0; d < rank; d++)
        p += (position[d] - memory->origin[d]) * memory->stride[d];
    return p;
}

/* Copy the box of positions [from, to), split along every dimension (from DIMENSION on) where it is not dense. */
static void transfer(const cow_plan *plan, const cow_piece *piece, size_t element, side *chunk, side *memory,
                     bool to_chunk, unsigned dimension, uint64_t n[])
{
    uint8_t *chunk_base = chunk->base, *memory_base = memory->base;

    for (; dimension < plan->rank; dimension++) {
        const cow_slab *slab = &plan->slab[dimension];
        uint64_t from = piece->from[dimension], to = piece->to[dimension], first;

        if (dense(slab, from, to)) {
            n[dimension] = to - from;
            continue;
        }
        first = cow_slab_coordinate(slab, from);
        if (slab->block == 1) { /* evenly spaced: one strided dimension */
            uint64_t stride = chunk->stride[dimension];
            n[dimension] = to - from;
            chunk->stride[dimension] *= slab->stride;
            transfer(plan, piece, element, chunk, memory, to_chunk, dimension + 1, n);
            chunk->stride[dimension] = stride;
            return;
        }
        for (uint64_t p = from; p < to; p += n[dimension]) {
            uint64_t rest = slab->block - p % slab->block;
            n[dimension] = rest < to - p ? rest : to - p;
            chunk->base = chunk_base + (cow_slab_coordinate(slab, p) - first) * chunk->stride[dimension];
            memory->base = memory_base + (p - from) * memory->stride[dimension];
            transfer(plan, piece, element, chunk, memory, to_chunk, dimension + 1, n);
        }
        chunk->base = chunk_base;
        memory->base = memory_base;
        return;
    }
    if (to_chunk)
        copy_sides(plan->rank, n, element, chunk, memory);
    else
        copy_sides(plan->rank, n, element, memory, chunk);
}

/* PART of the elements, which have ELEMENT bytes in the chunk. */
static void move_part(const cow_plan *plan, const cow_piece *piece, size_t element, uint8_t *chunk,
                      const cow_plan_memory *memory, bool to_chunk, cow_element_part part)
{
    uint64_t n[COW_MAX_RANK];
    side a, b;

    chunk_strides(plan->grid, element, a.stride);
    a.base = chunk;
    for (unsigned d = 0; d < plan->rank; d++) {
        uint64_t coordinate = cow_slab_coordinate(&plan->slab[d], piece->from[d]);
        a.base += (coordinate - piece->chunk[d] * plan->grid->chunk[d]) * a.stride[d];
        b.stride[d] = memory->stride[d];
    }
    a.base += part.in_chunk;
    b.base = memory_address(memory, plan->rank, piece->from) + part.in_memory;
    transfer(plan, piece, part.size, &a, &b, to_chunk, 0, n);
}

static void move_piece(const cow_plan *plan, const cow_piece *piece, size_t element, uint8_t *chunk,
                       const cow_plan_memory *memory, bool to_chunk)
{
    move_part(plan, piece, element, chunk, memory, to_chunk, (cow_element_part){0, 0, element});
}

void cow_piece_to_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, void *chunk,
                        const cow_plan_memory *memory)
{
    move_piece(plan, piece, element, chunk, memory, true);
}

void cow_piece_from_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, const void *chunk,
                          const cow_plan_memory *memory)
{
    move_piece(plan, piece, element, (uint8_t *)(uintptr_t)chunk, memory, false);
}

void cow_piece_parts_to_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, void *chunk,
                              const cow_plan_memory *memory, const cow_element_part part[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        move_part(plan, piece, element, chunk, memory, true, part[i]);
}

void cow_piece_parts_from_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, const void *chunk,
                                const cow_plan_memory *memory, const cow_element_part part[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        move_part(plan, piece, element, (uint8_t *)(uintptr_t)chunk, memory, false, part[i]);
}

void cow_piece_parts_fill(const cow_plan *plan, const cow_piece *piece, const void *value,
                          const cow_plan_memory *memory, const cow_element_part part[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cow_plan_memory shifted = *memory;

        shifted.base += part[i].in_memory;
        cow_piece_fill(plan, piece, part[i].size, (const uint8_t *)value + part[i].in_chunk, &shifted);
    }
}

void cow_piece_copy(const cow_plan *plan, const cow_piece *piece, size_t element, const cow_plan_memory *to,
                    const cow_plan_memory *from)
{
    uint64_t n[COW_MAX_RANK];
    side a, b;

    a.base = memory_address(to, plan->rank, piece->from);
    b.base = memory_address(from, plan->rank, piece->from);
    for (unsigned d = 0; d < plan->rank; d++) {
        n[d] = piece->to[d] - piece->from[d];
        a.stride[d] = to->stride[d];
        b.stride[d] = from->stride[d];
    }
    copy_sides(plan->rank, n, element, &a, &b);
}

void cow_fill_elements(void *to, const void *value, size_t element, uint64_t count)
{
    uint8_t *p = to;
    size_t done = element, total = element * count;

    if (count == 0)
        return;
    memcpy(p, value, element);
    if (element == 1) {
        memset(p, p[0], total);
        return;
    }
    while (done < total) {
        /* doubling, but never more than stays in the cache */
        size_t n = done < 16384 ? done : 16384 / element * element;
        if (n == 0)
            n = element;
        if (n > total - done)
            n = total - done;
        memcpy(p + done, p, n);
        done += n;
    }
}

static void fill_box(unsigned rank, const uint64_t n[], size_t element, size_t bytes, const void *value, uint8_t *to,
                     const uint64_t stride[])
{
    if (rank == 0) {
        cow_fill_elements(to, value, element, bytes / element);
        return;
    }
    for (uint64_t i = 0; i < n[0]; i++)
        fill_box(rank - 1, n + 1, element, bytes, value, to + i * stride[0], stride + 1);
}

void cow_piece_fill(const cow_plan *plan, const cow_piece *piece, size_t element, const void *value,
                    const cow_plan_memory *memory)
{
    uint64_t n[COW_MAX_RANK], stride[COW_MAX_RANK], same[COW_MAX_RANK];
    size_t bytes = element;
    unsigned rank;

    for (unsigned d = 0; d < plan->rank; d++) {
        n[d] = piece->to[d] - piece->from[d];
        stride[d] = same[d] = memory->stride[d];
    }
    rank = merge(plan->rank, n, &bytes, stride, same);
    fill_box(rank, n, element, bytes, value, memory_address(memory, plan->rank, piece->from), stride);
}

void *cow_piece_contiguous(const cow_plan *plan, const cow_piece *piece, size_t element, const cow_plan_memory *memory)
{
    uint64_t expected = element;

    if (!piece->box)
        return NULL;
    for (unsigned d = plan->rank; d-- > 0;) {
        uint64_t n = piece->to[d] - piece->from[d];
        if (n != plan->grid->chunk[d] || (n > 1 && memory->stride[d] != expected))
            return NULL;
        expected *= n;
    }
    return memory_address(memory, plan->rank, piece->from);
}

/* The runs of BYTES in RANK dimensions, in row-major order. */
static struct iovec *list_runs(unsigned rank, const uint64_t n[], const uint64_t stride[], size_t bytes, uint8_t *at,
                               struct iovec *runs)
{
    if (rank == 0) {
        *runs = (struct iovec){at, bytes};
        return runs + 1;
    }
    for (uint64_t i = 0; i < n[0]; i++)
        runs = list_runs(rank - 1, n + 1, stride + 1, bytes, at + i * stride[0], runs);
    return runs;
}

size_t cow_piece_runs(const cow_plan *plan, const cow_piece *piece, size_t element, const cow_plan_memory *memory,
                      size_t least, struct iovec runs[], size_t room)
{
    uint64_t n[COW_MAX_RANK], in_chunk[COW_MAX_RANK], in_memory[COW_MAX_RANK], count = 1;
    unsigned rank;

    if (!piece->box)
        return 0;
    for (unsigned d = 0; d < plan->rank; d++) {
        n[d] = piece->to[d] - piece->from[d];
        if (n[d] != plan->grid->chunk[d])
            return 0;
        in_memory[d] = memory->stride[d];
    }
    chunk_strides(plan->grid, element, in_chunk);
    rank = merge(plan->rank, n, &element, in_chunk, in_memory);
    for (unsigned d = 0; d < rank && count <= room; d++)
        count *= n[d];
    if (element < least || count > room)
        return 0;
    list_runs(rank, n, in_memory, element, memory_address(memory, plan->rank, piece->from), runs);
    return count;
}

bool cow_piece_range(const cow_plan *plan, const cow_piece *piece, size_t element, size_t *from, size_t *to)
{
    uint64_t first = 0, last = 0;

    if (!piece->box)
        return false;
    for (unsigned d = 0; d < plan->rank; d++) {
        uint64_t size = plan->grid->chunk[d], begin = piece->chunk[d] * size;

        first = first * size + cow_slab_coordinate(&plan->slab[d], piece->from[d]) - begin;
        last = last * size + cow_slab_coordinate(&plan->slab[d], piece->to[d] - 1) - begin;
    }
    *from = first * element;
    *to = (last + 1) * element;
    return last - first + 1 == piece->elements;
}

/* N elements at AT: shall the walk go on? */
typedef bool padding_visitor(const void *value, size_t element, uint64_t n, uint8_t *at);

static bool set_padding(const void *value, size_t element, uint64_t n, uint8_t *at)
{
    if (value == NULL)
        memset(at, 0, n * element);
    else
        cow_fill_elements(at, value, element, n);
    return true;
}

static bool compare_padding(const void *value, size_t element, uint64_t n, uint8_t *at)
{
    bool same = true;

    for (size_t i = 0; value == NULL && same && i < element; i++)
        same = at[i] == 0;
    if (value != NULL)
        same = memcmp(at, value, element) == 0;
    return same && memcmp(at, at + element, (n - 1) * element) == 0; /* each is as the one before it */
}

static bool walk_padding(const cow_grid *grid, const uint64_t trimmed[], size_t element, const void *value, void *chunk,
                         padding_visitor *visit)
{
    uint64_t stride[COW_MAX_RANK], rows = 1;
    uint8_t *p = chunk;

    chunk_strides(grid, element, stride);
    /* Dimension d: for each index inside trimmed[] of the dimensions before it, what lies beyond trimmed[d]. */
    for (unsigned d = 0; d < grid->rank; rows *= trimmed[d++]) {
        uint64_t beyond = (grid->chunk[d] - trimmed[d]) * (stride[d] / element), offset[COW_MAX_RANK] = {0};

        if (beyond == 0)
            continue;
        for (uint64_t r = 0; r < rows; r++) {
            uint8_t *at = p + trimmed[d] * stride[d];
            for (unsigned e = 0; e < d; e++)
                at += offset[e] * stride[e];
            if (!visit(value, element, beyond, at))
                return false;
            for (unsigned e = d; e-- > 0;) {
                if (++offset[e] < trimmed[e])
                    break;
                offset[e] = 0;
            }
        }
    }
    return true;
}

void cow_fill_padding(const cow_grid *grid, const uint64_t trimmed[], size_t element, const void *value, void *chunk)
{
    walk_padding(grid, trimmed, element, value, chunk, set_padding);
}

bool cow_padding_is(const cow_grid *grid, const uint64_t trimmed[], size_t element, const void *value,
                    const void *chunk)
{
    return walk_padding(grid, trimmed, element, value, (void *)(uintptr_t)chunk, compare_padding);
}
