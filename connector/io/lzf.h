/* The LZF compressed format (liblzf's, as h5py's filter 32000 writes it), on any thread.
 *
 * Written here and not taken from liblzf, whose compressor starts from whatever lies on the stack: the same chunk must
 * give the same bytes from run to run.
 */
#ifndef COW_LZF_H
#define COW_LZF_H

#include <stddef.h>

/* Returns the bytes written to OUT; 0 when they would be more than CAPACITY, or when IN is 4 GiB or more. */
size_t cow_lzf_compress(const void *in, size_t size, void *out, size_t capacity);
/* Bytes that IN decompresses to; 0 when it is empty or cut off. */
size_t cow_lzf_decompressed_size(const void *in, size_t size);
/* Returns the bytes written to OUT; 0 when IN is damaged or needs more than CAPACITY. */
size_t cow_lzf_decompress(const void *in, size_t size, void *out, size_t capacity);

#endif
