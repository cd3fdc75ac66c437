/* HDF5's own filter pipeline, driven through one chunk of a scratch dataset that exists in memory only. For pipelines
 * with a filter that io/filters.c does not have. On the thread that is inside the HDF5 library only.
 */
#ifndef COW_SCRATCH_H
#define COW_SCRATCH_H

#include "io/codec.h"
#include "native/kept_type.h"

#include <hdf5.h>

#include <stddef.h>
#include <stdint.h>

typedef struct cow_scratch cow_scratch;

/* Ask the filters of DCPL about a dataset that a program creates in a file that was made with FCPL, as HDF5 asks: each once. 0: *COMPUTED is DCPL with the parameters that they
 * computed; the caller closes it. 1: HDF5 makes no such dataset, *RECORDS are its errors (cow_errors_give_back). -1: the error. */
int cow_scratch_ask(hid_t fcpl, hid_t dcpl, hid_t type, hid_t space, hid_t *computed, hid_t *records);

/* Ask the filters of DCPL whether they can encode elements of TYPE, as HDF5 does when a program has opened a dataset and writes to it. */
int cow_scratch_check(hid_t dcpl, hid_t type);

/* An object header, and the collection (of HDF5's global heap) of which it names the first object, and no other; HEAP NULL: it names none. */
typedef struct cow_scratch_head {
    uint8_t *header, *heap; /* malloced */
    size_t size, heap_size;
    uint64_t heap_address; /* as the header says */
} cow_scratch_head;
/* That of a dataset of that TYPE (a named one: another that is equal), SPACE and DCPL, its filters' parameters computed, which are used
 * as they are, in a file that was made with FCPL and has the bounds of HDF5 1.8, but the type is encoded for bounds that begin with LOW. 1; 0: there is none of one chunk, or what it names in heaps is more; -1. */
int cow_scratch_header(hid_t fcpl, hid_t dcpl, hid_t type, hid_t space, H5F_libver_t low, cow_scratch_head *head);
void cow_scratch_head_free(cow_scratch_head *head); /* what it has, not itself */

/* DCPL: of a chunked dataset, its filters' parameters computed, which are used as they are; only copied. TYPE: its datatype, which the caller
 * keeps open as long. Filters whose bit is set in SKIP are left out.
 *
 * Use one scratch for encoding and others, one for each SKIP, for decoding, and never tell HDF5 a filter mask: 1.14.5
 * forgets to store it when a chunk is overwritten with as many bytes as it had (H5D__chunk_file_alloc needs no insert),
 * and after H5Dwrite_chunk still answers the mask that the chunk had before (H5D__chunk_direct_write fills its cache of
 * one chunk too early). */
cow_scratch *cow_scratch_open(hid_t dcpl, cow_kept_type *type, uint32_t skip);
void cow_scratch_close(cow_scratch *scratch);
/* FILTERING: as of codec.h, or NULL. OUT has room for CAPACITY bytes; more is COW_UNSUPPORTED. */
int cow_scratch_encode(cow_scratch *scratch, cow_filtering *filtering, const void *chunk, void *out, size_t capacity,
                       size_t *size, uint32_t *mask);
/* All filters of the scratch have been applied to BYTES. */
int cow_scratch_decode(cow_scratch *scratch, cow_filtering *filtering, const void *bytes, size_t size, void *chunk);

#endif
