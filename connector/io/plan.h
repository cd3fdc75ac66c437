/* A plan of a transfer: which elements of which chunk stand where in the selection. Pure: no ids, no I/O.
 *
 * A regular selection is a product of position lists: along dimension d, position p (0, 1, ...) is the p-th selected
 * coordinate. A plan covers a box of positions and yields one piece for each chunk that the box touches: again a box of
 * positions. Chunks come tile by tile, inside a tile with dimension 0 running fastest, which is the order in which
 * slots are best given out (cow_grid_tile_offset).
 */
#ifndef COW_PLAN_H
#define COW_PLAN_H

#include "io/selection.h"
#include "store/index.h"

#include <sys/uio.h>

#include <stdbool.h>

/* A walk over a range of positions of one dimension, cut where the coordinate enters another cell. */
typedef struct cow_cut {
    uint64_t first, end; /* positions to walk over */
    uint64_t from, to;   /* the current cell's */
    uint64_t cell;       /* its number */
} cow_cut;

typedef struct cow_plan {
    const cow_grid *grid;
    unsigned rank;
    uint64_t extent[COW_MAX_RANK]; /* elements */
    cow_slab slab[COW_MAX_RANK];
    uint64_t first[COW_MAX_RANK], end[COW_MAX_RANK]; /* the box of positions */
    bool started, empty;
    cow_cut tile[COW_MAX_RANK], chunk[COW_MAX_RANK];
} cow_plan;

typedef struct cow_piece {
    uint64_t chunk[COW_MAX_RANK];                  /* number in the chunk grid */
    uint64_t from[COW_MAX_RANK], to[COW_MAX_RANK]; /* positions */
    uint64_t elements;
    bool whole; /* every element of the chunk that is inside the extent */
    bool box;   /* neighbours along every dimension: the elements are a box of the chunk */
} cow_piece;

/* Plan all of SELECTION, which must be regular and inside EXTENT, the dataset's. GRID must outlive the plan. */
void cow_plan_open(cow_plan *plan, const cow_grid *grid, const uint64_t extent[], const cow_selection *selection);
/* Start again with the box of positions [first, end) instead. */
void cow_plan_restrict(cow_plan *plan, const uint64_t first[], const uint64_t end[]);
/* The next piece; false at the end. */
bool cow_plan_next(cow_plan *plan, cow_piece *piece);

/* Positions along dimension D of the whole selection, and the coordinate of one of them. */
uint64_t cow_slab_length(const cow_slab *slab);
uint64_t cow_slab_coordinate(const cow_slab *slab, uint64_t position);
/* Number of positions whose coordinate is below COORDINATE. */
uint64_t cow_slab_below(const cow_slab *slab, uint64_t coordinate);

/* Elements in memory, addressed by position: the element at positions p is at base + sum of (p[d] - origin[d]) *
 * stride[d] bytes. */
typedef struct cow_plan_memory {
    uint8_t *base;
    uint64_t origin[COW_MAX_RANK];
    uint64_t stride[COW_MAX_RANK];
} cow_plan_memory;

/* The box of positions [from, to), packed in selection order at BASE. */
void cow_plan_memory_packed(cow_plan_memory *memory, unsigned rank, const uint64_t from[], const uint64_t to[],
                            size_t element, void *base);

/* Copy the elements of PIECE between its chunk (decoded, in the chunk's C order) and MEMORY. */
void cow_piece_to_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, void *chunk,
                        const cow_plan_memory *memory);
void cow_piece_from_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, const void *chunk,
                          const cow_plan_memory *memory);
/* A part of elements that stands at other places in the chunk's elements and in those of memory. */
typedef struct cow_element_part {
    size_t in_chunk, in_memory, size; /* offsets in an element; bytes */
} cow_element_part;
/* Copy COUNT parts of the elements of PIECE; what lies between them is left alone. ELEMENT: bytes of one in the chunk. */
void cow_piece_parts_to_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, void *chunk,
                              const cow_plan_memory *memory, const cow_element_part part[], size_t count);
void cow_piece_parts_from_chunk(const cow_plan *plan, const cow_piece *piece, size_t element, const void *chunk,
                                const cow_plan_memory *memory, const cow_element_part part[], size_t count);
/* Set the parts of all elements of PIECE in MEMORY to those of VALUE, an element as the chunk has it. */
void cow_piece_parts_fill(const cow_plan *plan, const cow_piece *piece, const void *value,
                          const cow_plan_memory *memory, const cow_element_part part[], size_t count);
/* Set all elements of PIECE in MEMORY to VALUE. */
void cow_piece_fill(const cow_plan *plan, const cow_piece *piece, size_t element, const void *value,
                    const cow_plan_memory *memory);
/* Copy the elements of PIECE from one place in memory to another. */
void cow_piece_copy(const cow_plan *plan, const cow_piece *piece, size_t element, const cow_plan_memory *to,
                    const cow_plan_memory *from);
/* Where PIECE begins in MEMORY when it is the whole chunk, padding included, in one block; else NULL. */
void *cow_piece_contiguous(const cow_plan *plan, const cow_piece *piece, size_t element, const cow_plan_memory *memory);

/* When it is the whole chunk, the runs of bytes that it is in MEMORY, as they follow one another in the chunk, and how many; 0: it is
 * not, or there are more than ROOM, or they are shorter than LEAST. */
size_t cow_piece_runs(const cow_plan *plan, const cow_piece *piece, size_t element, const cow_plan_memory *memory,
                      size_t least, struct iovec runs[], size_t room);

/* The elements of PIECE are bytes [*from, *to) of its chunk and no others. */
bool cow_piece_range(const cow_plan *plan, const cow_piece *piece, size_t element, size_t *from, size_t *to);

/* Set COUNT elements at TO to VALUE. */
void cow_fill_elements(void *to, const void *value, size_t element, uint64_t count);
/* Set all of a chunk but its first trimmed[] elements in each dimension to VALUE (NULL: zeros). */
void cow_fill_padding(const cow_grid *grid, const uint64_t trimmed[], size_t element, const void *value, void *chunk);
/* Is it that? */
bool cow_padding_is(const cow_grid *grid, const uint64_t trimmed[], size_t element, const void *value,
                    const void *chunk);

#endif
