/* One H5Dread or H5Dwrite under way. Private to io/.
 *
 *    file selection   memory selection
 *    regular          addressable by position    transfer_regular.c: chunk by chunk, straight from and to that memory
 *    regular          anything else              transfer.c packs boxes of bounded size, then transfer_regular.c
 *    irregular        anything                   transfer_irregular.c: packed slabs of bounded size, cut into spans
 */
#ifndef COW_TRANSFER_H
#define COW_TRANSFER_H

#include "io/array.h"
#include "io/convert.h"
#include "io/plan.h"

/* Elements in memory or packed that are worked on at once. */
#define COW_SLAB_BYTES ((size_t)8 << 20)
/* And when each may be a span of its own. */
#define COW_SLAB_SPANS ((size_t)128 << 10)

/* From so many bytes in memory on it pays to ask what a conversion of compounds consists of. */
#define COW_PARTS_BYTES ((size_t)32 << 10)

/* The application's memory in selection order. */
typedef struct cow_stream {
    uint8_t *memory;
    size_t element;
    uint64_t at;    /* contiguous memory: the next element */
    cow_runs *runs; /* NULL: contiguous */
    cow_run run[128];
    size_t n, next;
} cow_stream;

typedef struct cow_transfer {
    cow_array *array;
    bool write;
    hid_t mem_type, dxpl;
    size_t mem_size;           /* bytes of an element in memory */
    cow_conversion conversion; /* not for heap arrays: HDF5 converts there */
    cow_element_part part[COW_CONVERSION_PARTS];
    size_t parts; /* of a regular selection of many compounds, all that is to be copied; 0: HDF5 converts */
    cow_selection file;
    uint8_t *buf;
    /* the memory selection */
    hid_t mem_space; /* a real id unless contiguous */
    bool contiguous;
    uint64_t mem_offset; /* contiguous: elements from buf */
} cow_transfer;

/* All pieces of PLAN; MEMORY says where they are, in the memory type. */
int cow_transfer_pieces(const cow_transfer *transfer, cow_plan *plan, const cow_plan_memory *memory);
/* An irregular file selection. */
int cow_transfer_spans(const cow_transfer *transfer);

/* transfer_calls.c */
/* N elements PACKED, which become those of the other side; BACKGROUND as the conversion asks for. */
int cow_transfer_convert(const cow_transfer *transfer, size_t n, void *packed, void *background);
/* Elements of a heap array between PACKED and one chunk. */
struct cow_heap_part;
int cow_transfer_heap(const cow_transfer *transfer, const struct cow_heap_part *part, void *packed);

/* stream.c */
int cow_stream_open(cow_stream *stream, const cow_transfer *transfer);
void cow_stream_close(cow_stream *stream);
/* Copy the next N elements of the memory selection to PACKED, or from it. */
int cow_stream_gather(cow_stream *stream, uint64_t n, uint8_t *packed);
int cow_stream_scatter(cow_stream *stream, uint64_t n, const uint8_t *packed);

/* chunks.c. Late allocation: the first write finds room for every chunk, as early allocation does at creation. */
int cow_array_allocate_late(cow_array *array);

#endif
