/* Where a transfer calls functions of the program: conversions, and what HDF5 calls for elements in heaps. Contract: transfer.h. */
#include "io/transfer.h"

#include "base/error.h"
#include "io/chunk_cache.h"
#include "io/heap.h"

int cow_transfer_convert(const cow_transfer *transfer, size_t n, void *packed, void *background)
{
    cow_buffers aside;
    int status;

    cow_chunk_cache_aside(transfer->array, false, &aside);
    status = cow_conversion_run(&transfer->conversion, n, packed, background);
    cow_chunk_cache_back(transfer->array->cache, &aside);
    return status < 0 ? cow_error_where(transfer->array->label, "reading or writing") : 0;
}

int cow_transfer_heap(const cow_transfer *transfer, const cow_heap_part *part, void *packed)
{
    cow_array *array = transfer->array;

    return transfer->write ? cow_heap_write(array, part, transfer->mem_type, transfer->dxpl, packed)
                           : cow_heap_read(array, part, transfer->mem_type, transfer->dxpl, packed);
}
