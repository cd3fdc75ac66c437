/* How a chunk is cut into pieces: see pieces.h. Nothing here knows files. */
#include "store/pieces.h"

#include <string.h>

/* What follows from the dimensions of a piece. */
static bool complete(cow_piecing *cut, const cow_grid *grid, size_t element)
{
    uint64_t chunk = grid->chunk[cut->cut], piece = cut->piece[cut->cut];
    size_t row = element;
    uint64_t lead = 1;

    for (unsigned d = cut->cut + 1; d < grid->rank; d++)
        row *= grid->chunk[d];
    for (unsigned d = 0; d < cut->cut; d++) {
        if (grid->chunk[d] > COW_PIECES)
            return false;
        lead *= grid->chunk[d];
        if (lead > COW_PIECES)
            return false;
    }
    if ((chunk - 1) / piece >= COW_PIECES || lead * ((chunk - 1) / piece + 1) > COW_PIECES)
        return false;
    cut->rank = grid->rank;
    cut->along = (unsigned)((chunk - 1) / piece + 1);
    cut->count = (unsigned)lead * cut->along;
    cut->bytes = row * piece;
    cut->run = row * chunk;
    cut->last = row * (chunk - (cut->along - 1) * piece);
    return true;
}

bool cow_piecing_plan(cow_piecing *cut, const cow_grid *grid, size_t element, size_t least)
{
    size_t bytes = element;
    uint64_t most;

    for (unsigned d = 0; d < grid->rank; d++)
        bytes *= grid->chunk[d];
    if (bytes < least)
        return false;
    most = bytes / (least / COW_PIECES_OF_LEAST > 0 ? least / COW_PIECES_OF_LEAST : 1);
    most = most < COW_PIECES ? most : COW_PIECES;
    memset(cut, 0, sizeof *cut);
    memcpy(cut->piece, grid->chunk, grid->rank * sizeof *grid->chunk);
    for (unsigned d = 0; d < grid->rank; d++) {
        uint64_t parts = most < grid->chunk[d] ? most : grid->chunk[d];

        cut->cut = d;
        cut->piece[d] = (grid->chunk[d] - 1) / parts + 1;
        if (cut->piece[d] > 1 || most / grid->chunk[d] < 2)
            break;
        most /= grid->chunk[d];
    }
    return complete(cut, grid, element) && cut->count > 1;
}

bool cow_piecing_from(cow_piecing *cut, const cow_grid *grid, size_t element, unsigned rank, const uint64_t piece[])
{
    unsigned d = 0;

    if (rank != grid->rank)
        return false;
    memset(cut, 0, sizeof *cut);
    memcpy(cut->piece, piece, rank * sizeof *piece);
    /* ones, then any number, then what the chunk has; where ones and the chunk agree, either */
    while (d + 1 < rank && piece[d] == 1)
        d++;
    while (d > 0 && piece[d] == grid->chunk[d])
        d--;
    cut->cut = d;
    for (unsigned k = 0; k < rank; k++)
        if (piece[k] == 0 || piece[k] > grid->chunk[k] || (k < d && piece[k] != 1) ||
            (k > d && piece[k] != grid->chunk[k]))
            return false;
    return complete(cut, grid, element);
}

void cow_piecing_place(const cow_piecing *cut, unsigned i, size_t *offset, size_t *size)
{
    unsigned at = i % cut->along;

    *offset = i / cut->along * cut->run + at * cut->bytes;
    *size = at + 1 == cut->along ? cut->last : cut->bytes;
}

void cow_piecing_box(const cow_piecing *cut, const cow_grid *grid, unsigned i, uint64_t start[], uint64_t count[])
{
    unsigned lead = i / cut->along;

    for (unsigned d = cut->rank; d-- > 0;) {
        start[d] = 0;
        count[d] = cut->piece[d];
        if (d < cut->cut) {
            start[d] = lead % grid->chunk[d];
            lead /= (unsigned)grid->chunk[d];
        }
    }
    start[cut->cut] = i % cut->along * cut->piece[cut->cut];
    if (grid->chunk[cut->cut] - start[cut->cut] < count[cut->cut])
        count[cut->cut] = grid->chunk[cut->cut] - start[cut->cut];
}
