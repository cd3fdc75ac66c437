/* What a chunk of variable-length elements holds, from the bytes of the file and verified, without HDF5, which takes a call for each
 * element. Private to io/. */
#ifndef COW_CONTENT_H
#define COW_CONTENT_H

#include "io/heap.h"

#include <stdbool.h>

/* The elements in serial form (serial.h), as the checksum has them. */
typedef struct cow_content cow_content;
void cow_content_free(cow_content *content);
/* Bytes of memory. */
size_t cow_content_size(const cow_content *content);

/* Can elements of this array be copied out of a content to memory of MEM_TYPE, as HDF5 would read them? They are strings, or sequences
 * of numbers, that are not converted, and HDF5 allocates what they point to. */
bool cow_content_serves(const cow_array *array, hid_t mem_type, hid_t dxpl);
/* The content of SLOT, whose checksum is EXPECTED. NULL, without an error: HDF5 has to be asked, and may find it to be damaged. */
cow_content *cow_content_read(cow_array *array, uint64_t slot, uint64_t expected);
/* What the program gets, and frees by free(). A function, so that tests can tell it from what is ours. NULL: there is none. */
void *cow_program_memory(size_t size);
/* The elements of PART, where cow_content_serves: what they point to is the program's to free, as HDF5 frees it. 1: they are no such
 * elements. */
int cow_content_copy(const cow_array *array, const cow_content *content, const cow_heap_part *part, void *packed);

#endif
