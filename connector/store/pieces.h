/* Pieces: into what a chunk is cut, so that a small change of it need not cost the whole chunk.
 *
 * A piece is what stands together in the chunk's bytes: some rows along dimension `cut`, with all of the dimensions behind it,
 * at one place of the dimensions before it. So the pieces of a chunk are numbered as their bytes lie, and each begins a
 * constant distance behind the one before, but that at the end of dimension `cut` one may be shorter. A slot of the pool of
 * pieces is always a whole piece: behind a shorter one are zeros.
 */
#ifndef COW_PIECES_H
#define COW_PIECES_H

#include "store/index.h"

#define COW_PIECES_OF_LEAST 16 /* into how many pieces at most the smallest chunk is cut */

typedef struct cow_piecing {
    unsigned rank, cut;           /* the dimension */
    uint64_t piece[COW_MAX_RANK]; /* elements of a piece along each dimension */
    unsigned count;               /* of pieces */
    unsigned along;               /* pieces along dimension `cut` */
    size_t bytes;                 /* of a piece */
    size_t run, last; /* bytes of the chunk that the pieces along `cut` have together; of the last of them */
} cow_piecing;

/* How chunks of GRID with elements of ELEMENT bytes are cut: into at most COW_PIECES pieces of at least LEAST / COW_PIECES_OF_LEAST
 * bytes. False: a chunk has fewer than LEAST bytes, or cannot be cut. */
bool cow_piecing_plan(cow_piecing *cut, const cow_grid *grid, size_t element, size_t least);
/* The same from the chunk dimensions of a pool of pieces. False: they are no pieces of such a chunk. */
bool cow_piecing_from(cow_piecing *cut, const cow_grid *grid, size_t element, unsigned rank, const uint64_t piece[]);
/* Where piece I begins in the chunk, in bytes, and how many it has there. */
void cow_piecing_place(const cow_piecing *cut, unsigned i, size_t *offset, size_t *size);
/* The box of piece I in the chunk, in elements. */
void cow_piecing_box(const cow_piecing *cut, const cow_grid *grid, unsigned i, uint64_t start[], uint64_t count[]);

#endif
