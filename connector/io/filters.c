/* Shuffle, deflate, fletcher32, LZF and Blosc, stage by stage, with the results of HDF5's own filters (1.14) and of the
 * registered LZF (h5py) and Blosc (hdf5-blosc) filters, but for deflate of large chunks, which is another stream of the same bytes.
 *
 * Promises: encoding depends on the input and the parameters alone (no environment variable, no number of threads);
 * decoding never reads or writes outside its buffers, whatever the input.
 */
#include "io/filters.h"

#include "io/lzf.h"
#include "base/bytes.h"
#include "base/digest.h"

#include <blosc.h>
#include <libdeflate.h>
#include <limits.h>
#include <string.h>
#include <zlib.h>

#define FLETCHER_SIZE 4

/* ---- shuffle ---- */

/* Inlined with constant sizes below, so that the compiler makes vector code for the common ones. */
static inline void shuffle_bytes(const uint8_t *in, uint8_t *out, size_t elements, size_t size)
{
    for (size_t i = 0; i < elements; i++)
        for (size_t b = 0; b < size; b++)
            out[b * elements + i] = in[i * size + b];
}

static inline void unshuffle_bytes(const uint8_t *in, uint8_t *out, size_t elements, size_t size)
{
    for (size_t i = 0; i < elements; i++)
        for (size_t b = 0; b < size; b++)
            out[i * size + b] = in[b * elements + i];
}

/* What does not fill an element stays behind the shuffled bytes, as in HDF5. */
static void shuffle(const uint8_t *in, uint8_t *out, size_t bytes, size_t size)
{
    size_t elements = bytes / size, whole = elements * size;

    switch (size) {
    case 2:
        shuffle_bytes(in, out, elements, 2);
        break;
    case 4:
        shuffle_bytes(in, out, elements, 4);
        break;
    case 8:
        shuffle_bytes(in, out, elements, 8);
        break;
    default:
        shuffle_bytes(in, out, elements, size);
    }
    memcpy(out + whole, in + whole, bytes - whole);
}

static void unshuffle(const uint8_t *in, uint8_t *out, size_t bytes, size_t size)
{
    size_t elements = bytes / size, whole = elements * size;

    switch (size) {
    case 2:
        unshuffle_bytes(in, out, elements, 2);
        break;
    case 4:
        unshuffle_bytes(in, out, elements, 4);
        break;
    case 8:
        unshuffle_bytes(in, out, elements, 8);
        break;
    default:
        unshuffle_bytes(in, out, elements, size);
    }
    memcpy(out + whole, in + whole, bytes - whole);
}

/* ---- fletcher32 ---- */

/* Before 1.6.3 HDF5 on little-endian machines stored both halves with their bytes swapped: read those files as well. */
static uint32_t fletcher32_before_163(uint32_t sum)
{
    return (sum & 0x00ff00ff) << 8 | (sum & 0xff00ff00) >> 8;
}

static size_t fletcher32_decode(const uint8_t *in, bool unchecked, size_t size, void *out, size_t capacity,
                                const char **why)
{
    uint32_t stored, sum;

    if (size <= FLETCHER_SIZE || size - FLETCHER_SIZE > capacity) {
        *why = "it has the wrong size";
        return 0;
    }
    size -= FLETCHER_SIZE;
    stored = cow_get32(in + size);
    sum = unchecked ? stored : cow_fletcher32(in, size);
    if (stored != sum && stored != fletcher32_before_163(sum)) {
        *why = "its checksum does not match";
        return 0;
    }
    memcpy(out, in, size);
    return size;
}

/* ---- deflate ---- */

/* libdeflate decodes, in half of zlib's time or less; a decompressor is made in 1 us. */
static size_t deflate_decode(const void *in, size_t size, void *out, size_t capacity, const char **why)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    enum libdeflate_result result;
    size_t taken, made = 0;

    if (decompressor == NULL) {
        *why = "there is no memory to decompress it";
        return 0;
    }
    /* what is behind the end of the stream HDF5 does not look at either */
    result = libdeflate_zlib_decompress_ex(decompressor, in, size, out, capacity, &taken, &made);
    libdeflate_free_decompressor(decompressor);
    if (result == LIBDEFLATE_SUCCESS)
        return made;
    *why = result == LIBDEFLATE_INSUFFICIENT_SPACE ? "it holds more than a chunk" : "it is no complete deflate stream";
    return 0;
}

/* Chunks from here on are encoded by libdeflate, in half of zlib's time. Smaller ones by zlib, which is as fast there, as its state is
 * smaller: what programs are told of them, as of a test's few values, is what HDF5 would have made. */
#define LIBDEFLATE_LEAST 16384

/* At the level that was asked for, but at least 2, a libdeflate stream is 0.5 % to 7 % smaller than zlib's on the average of doubles,
 * floats, integers and text, with shuffle and without, and 1 % larger at 9. Level 1 finds no matches shorter than zlib's, and so makes
 * twice as much of counted integers. Level 0 only stores. */
static size_t deflate_encode(const cow_filter *filter, const void *in, size_t size, void *out)
{
    uLongf made = compressBound(size);
    int level;

    if (filter->count != 1 || filter->value[0] > 9)
        return 0;
    level = (int)filter->value[0];
    if (size >= LIBDEFLATE_LEAST && level > 0) {
        struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level > 1 ? level : 2);
        size_t taken = compressor ? libdeflate_zlib_compress(compressor, in, size, out, made) : 0;

        libdeflate_free_compressor(compressor);
        if (taken > 0)
            return taken;
    }
    return compress2(out, &made, in, size, level) == Z_OK ? made : 0;
}

/* ---- Blosc ---- */

static size_t blosc_encode(const cow_filter *filter, const void *in, size_t size, void *out)
{
    unsigned level = filter->count > 4 ? filter->value[4] : 5;
    unsigned shuffling = filter->count > 5 ? filter->value[5] : BLOSC_SHUFFLE;
    unsigned codec = filter->count > 6 ? filter->value[6] : BLOSC_BLOSCLZ;
    const char *name;
    int made;

    /* Blosc would complain on stderr about these. */
    if (filter->count < 4 || size > BLOSC_MAX_BUFFERSIZE || level > 9 || shuffling > BLOSC_BITSHUFFLE ||
        codec > INT_MAX || blosc_compcode_to_compname((int)codec, &name) < 0)
        return 0;
    /* The context call, because blosc_compress has one state for the process and obeys the environment. */
    made = blosc_compress_ctx((int)level, (int)shuffling, filter->value[2] ? filter->value[2] : 1, size, in, out, size,
                              name, 0, 1);
    return made > 0 ? (size_t)made : 0;
}

static size_t blosc_decode(const void *in, size_t size, void *out, size_t capacity, const char **why)
{
    const char *library;
    size_t bytes = 0;
    int made;

    if (size < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(in, size, &bytes) < 0 || bytes == 0) {
        *why = "it is no complete Blosc buffer";
        return 0;
    }
    if (bytes > capacity) {
        *why = "it holds more than a chunk";
        return 0;
    }
    made = blosc_decompress_ctx(in, out, bytes, 1);
    if (made > 0 && (size_t)made == bytes)
        return bytes;
    library = blosc_cbuffer_complib(in);
    *why = library && strcmp(library, BLOSC_SNAPPY_LIBNAME) == 0 ? "this Blosc library may have no Snappy"
                                                                 : "the Blosc buffer does not decompress";
    return 0;
}

/* ---- one stage ---- */

bool cow_filter_ours(H5Z_filter_t id)
{
    return id == H5Z_FILTER_SHUFFLE || id == H5Z_FILTER_DEFLATE || id == H5Z_FILTER_FLETCHER32 ||
           id == COW_FILTER_LZF || id == COW_FILTER_BLOSC;
}

size_t cow_filter_bound(H5Z_filter_t id, size_t size)
{
    if (id == H5Z_FILTER_FLETCHER32)
        return size + FLETCHER_SIZE;
    if (id == H5Z_FILTER_DEFLATE)
        return compressBound(size);
    return size; /* LZF and Blosc fail when they would need more */
}

size_t cow_filter_encode(const cow_filter *filter, const void *in, size_t size, void *out)
{
    switch (filter->id) {
    case H5Z_FILTER_SHUFFLE:
        if (filter->count != 1 || filter->value[0] == 0)
            return 0;
        shuffle(in, out, size, filter->value[0]);
        return size;
    case H5Z_FILTER_DEFLATE:
        return deflate_encode(filter, in, size, out);
    case H5Z_FILTER_FLETCHER32:
        memcpy(out, in, size);
        cow_put32((uint8_t *)out + size, cow_fletcher32(in, size));
        return size + FLETCHER_SIZE;
    case COW_FILTER_LZF:
        return cow_lzf_compress(in, size, out, size);
    case COW_FILTER_BLOSC:
        return blosc_encode(filter, in, size, out);
    }
    return 0;
}

size_t cow_filter_decode(const cow_filter *filter, bool unchecked, const void *in, size_t size, void *out,
                         size_t capacity, const char **why)
{
    size_t made;

    switch (filter->id) {
    case H5Z_FILTER_SHUFFLE:
        if (filter->count != 1 || filter->value[0] == 0 || size > capacity) {
            *why = "it has the wrong size";
            return 0;
        }
        unshuffle(in, out, size, filter->value[0]);
        return size;
    case H5Z_FILTER_DEFLATE:
        return deflate_decode(in, size, out, capacity, why);
    case H5Z_FILTER_FLETCHER32:
        return fletcher32_decode(in, unchecked, size, out, capacity, why);
    case COW_FILTER_LZF:
        made = cow_lzf_decompress(in, size, out, capacity);
        if (made == 0)
            *why = "it is no LZF stream of this size";
        return made;
    case COW_FILTER_BLOSC:
        return blosc_decode(in, size, out, capacity, why);
    }
    *why = "the filter is unknown";
    return 0;
}
