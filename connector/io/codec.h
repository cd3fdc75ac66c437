/* Filters: chunk bytes to what is stored, and back.
 *
 * For the standard set (shuffle 2, deflate 1, fletcher32 3, LZF 32000, Blosc 32001) the encoding is done here, on any
 * thread, so that HDF5 without the connector reads it, and byte for byte as HDF5's own filters do, but for deflate of
 * large chunks. For any other pipeline HDF5's own filters run through a scratch dataset in memory (core driver), on the calling thread only: every
 * registered filter works, and filter callbacks see the type, space and dcpl they expect.
 */
#ifndef COW_CODEC_H
#define COW_CODEC_H

#include "base/options.h"

#include <hdf5.h>

#include <stdbool.h>

typedef struct cow_codec cow_codec;

/* What the transfer properties of one call ask of filters: H5Pset_edc_check, H5Pset_filter_callback. */
typedef struct cow_filtering {
    bool unchecked;             /* checksums are not compared: neither fletcher32's nor our own */
    H5Z_filter_func_t callback; /* decides when a filter fails, on the calling thread; NULL: that is an error */
    void *data;
    bool excused; /* set when the callback went on where a filter could not decode: what was read is anything */
} cow_filtering;
/* true: DXPL asks for something. */
bool cow_filtering_of(hid_t dxpl, cow_filtering *filtering);

/* The codec of a chunked dataset of native HDF5: DCPL as H5Dget_create_plist of the pool's raw_data gives it (set_local
 * has run), TYPE its datatype. CHUNK_BYTES: decoded size. A filter that is missing is no error here, since such a
 * dataset can be opened and its attributes read: encode and decode are COW_UNSUPPORTED, with the filter's number and
 * name. */
cow_codec *cow_codec_open(hid_t dcpl, hid_t type, size_t chunk_bytes);
cow_codec *cow_codec_plain(size_t chunk_bytes); /* of one that has no filters */
void cow_codec_close(cow_codec *codec);
bool cow_codec_identity(const cow_codec *codec); /* no filter at all */
bool cow_codec_parallel(const cow_codec *codec); /* encode and decode may run on worker threads */
uint32_t cow_codec_all(const cow_codec *codec);  /* the filter mask of a chunk that skips every filter */
size_t cow_codec_bound(const cow_codec *codec);  /* largest encoded size */

/* A program writes to a dataset that it has opened: HDF5 asks the filters whether they can encode, once an opening. -1: they cannot. */
int cow_codec_check(cow_codec *codec);

/* Encode CHUNK into OUT (cow_codec_bound bytes), as FILTERING asks (NULL: nothing). *SIZE: bytes written; *MASK: bit i set
 * where filter i was skipped: an optional one that did not compress, or a mandatory one that fails and is excused. */
int cow_codec_encode_as(cow_codec *codec, cow_filtering *filtering, const void *chunk, void *out, size_t *size,
                        uint32_t *mask);
/* The same for a codec that is not parallel: such filters may be lossy, and what they make is decoded again into BACK
 * (chunk_bytes), which is what the stored chunk holds. A chunk that they encode but cannot decode skips all of them:
 * the scale-offset filter of HDF5 1.14.5 is so where the values take all bits of their type. */
int cow_codec_encode_back(cow_codec *codec, cow_filtering *filtering, const void *chunk, void *out, size_t *size,
                          uint32_t *mask, void *back);
/* Decode SIZE bytes with filter mask MASK into CHUNK (chunk_bytes). Damaged input is COW_CORRUPT, never a crash. */
int cow_codec_decode(cow_codec *codec, const void *bytes, size_t size, uint32_t mask, void *chunk);
/* The same, as FILTERING asks. */
int cow_codec_decode_as(cow_codec *codec, cow_filtering *filtering, const void *bytes, size_t size, uint32_t mask,
                        void *chunk);

/* Add the compressor of the compress= option to a dcpl for chunks of CHUNK_BYTES of TYPE: 1 added, 0 left plain (too
 * small for Blosc, or none asked), -1 error. */
int cow_codec_add(hid_t dcpl, hid_t type, const cow_compress *compress, size_t chunk_bytes);

#endif
