/* A pipeline of filters over one chunk: see codec.h. The standard set runs here, stage by stage between two buffers
 * (io/filters.c); anything else is HDF5's own (io/scratch.c), set up on first use.
 *
 * A codec of the standard set is not changed after it was opened: any number of threads may use it at once.
 */
#include "io/codec.h"

#include "base/error.h"
#include "base/ids.h"
#include "io/filters.h"
#include "io/scratch.h"
#include "native/kept_type.h"

#include <H5Zdevelop.h>
#include <blosc.h>
#include <stdlib.h>
#include <string.h>

/* Between two filters there may be more bytes than our own encoders would make of a chunk (another zlib, another
 * level), but not any number: sizes in a damaged file must not decide what is allocated. */
#define SLACK_FACTOR 2
#define SLACK_BYTES  (64u << 10)
/* Blosc takes nothing smaller, and for the others the overhead of a stored chunk outweighs the gain. */
#define SMALLEST_COMPRESSED 128

struct cow_codec {
    unsigned count;
    cow_filter *filter;
    bool standard; /* all filters are ours */
    size_t chunk_bytes;
    size_t bound;
    /* for the others */
    hid_t dcpl;
    cow_kept_type *type;
    cow_scratch *encoder; /* NULL until first used */
    cow_scratch *decoder; /* for chunks with this mask: */
    bool encoding,
        decoding; /* it is in use; where that call never comes back, since the program ends, it is left, and a new one made */
    uint32_t decoder_mask;
};

static int read_filter(hid_t dcpl, unsigned i, cow_filter *filter)
{
    unsigned flags;

    filter->count = COW_FILTER_VALUES;
    filter->id =
        H5Pget_filter2(dcpl, i, &flags, &filter->count, filter->value, sizeof filter->name, filter->name, NULL);
    if (filter->id < 0)
        return cow_error_native("cannot read filter %u of a dataset", i);
    filter->name[sizeof filter->name - 1] = '\0';
    if (filter->name[0] == '\0')
        strcpy(filter->name, "no name");
    filter->optional = (flags & H5Z_FLAG_OPTIONAL) != 0;
    return 0;
}

cow_codec *cow_codec_plain(size_t chunk_bytes)
{
    cow_codec *codec = calloc(1, sizeof *codec);

    if (!codec) {
        cow_error(COW_MEMORY, "no memory for a codec");
        return NULL;
    }
    codec->dcpl = H5I_INVALID_HID;
    codec->standard = true;
    codec->chunk_bytes = codec->bound = chunk_bytes;
    return codec;
}

cow_codec *cow_codec_open(hid_t dcpl, hid_t type, size_t chunk_bytes)
{
    cow_codec *codec = cow_codec_plain(chunk_bytes);
    int filters = H5Pget_nfilters(dcpl);
    bool made = false;

    if (!codec)
        return NULL;
    if (filters < 0) {
        cow_error_native("cannot read the filters of a dataset");
        goto done;
    }
    codec->count = (unsigned)filters;
    if (codec->count > 0 && !(codec->filter = calloc(codec->count, sizeof *codec->filter))) {
        cow_error(COW_MEMORY, "no memory for a codec");
        goto done;
    }
    for (unsigned i = 0; i < codec->count; i++) {
        if (read_filter(dcpl, i, &codec->filter[i]) < 0)
            goto done;
        codec->standard = codec->standard && cow_filter_ours(codec->filter[i].id);
        codec->bound = cow_filter_bound(codec->filter[i].id, codec->bound);
    }
    if (!codec->standard) {
        codec->bound = SLACK_FACTOR * chunk_bytes + SLACK_BYTES; /* nobody says how much a foreign filter may add */
        if ((codec->dcpl = H5Pcopy(dcpl)) < 0) {
            cow_error_native("cannot copy a dataset's properties");
            goto done;
        }
        if ((codec->type = cow_kept_type_new(type)) == NULL)
            goto done;
    }
    made = true;
done:
    if (!made) {
        cow_codec_close(codec);
        return NULL;
    }
    return codec;
}

void cow_codec_close(cow_codec *codec)
{
    if (!codec)
        return;
    if (!codec->encoding)
        cow_scratch_close(codec->encoder);
    if (!codec->decoding)
        cow_scratch_close(codec->decoder);
    cow_kept_type_free(codec->type);
    cow_close(codec->dcpl);
    free(codec->filter);
    free(codec);
}

bool cow_codec_identity(const cow_codec *codec)
{
    return codec->count == 0;
}

bool cow_codec_parallel(const cow_codec *codec)
{
    return codec->standard;
}

size_t cow_codec_bound(const cow_codec *codec)
{
    return codec->bound;
}

static bool skipped(uint32_t mask, unsigned i)
{
    return (mask >> i & 1) != 0; /* HDF5 has at most 32 filters in a pipeline */
}

/* 0 when the filters that MASK does not skip are there. MUST: optional ones as well (they have been applied to what is
 * to be decoded). */
static int check_available(const cow_codec *codec, uint32_t mask, bool must)
{
    for (unsigned i = 0; i < codec->count; i++) {
        const cow_filter *filter = &codec->filter[i];
        if (!skipped(mask, i) && (must || !filter->optional) && H5Zfilter_avail(filter->id) <= 0)
            return cow_error(
                COW_UNSUPPORTED,
                "filter %d (%s) is not available: install its plugin and set HDF5_PLUGIN_PATH to where it is",
                (int)filter->id, filter->name);
    }
    return 0;
}

int cow_codec_check(cow_codec *codec)
{
    if (codec->standard)
        return 0;
    return check_available(codec, 0, false) < 0 ? -1 : cow_scratch_check(codec->dcpl, cow_kept_type_id(codec->type));
}

bool cow_filtering_of(hid_t dxpl, cow_filtering *filtering)
{
    H5Z_cb_t callback = {NULL, NULL};

    *filtering = (cow_filtering){.callback = NULL};
    if (cow_is_default_transfer(dxpl))
        return false;
    filtering->unchecked = H5Pget_edc_check(dxpl) == H5Z_DISABLE_EDC;
    if (H5Pget(dxpl, "filter_cb", &callback) >= 0) /* HDF5 has no call that tells it */
        *filtering = (cow_filtering){filtering->unchecked, callback.func, callback.op_data, false};
    return filtering->unchecked || filtering->callback != NULL;
}

/* A filter failed: shall the others go on? */
static bool goes_on(cow_filtering *filtering, const cow_filter *filter, const void *bytes, size_t size)
{
    return filtering != NULL && filtering->callback != NULL &&
           filtering->callback(filter->id, (void *)(uintptr_t)bytes, size, filtering->data) != H5Z_CB_FAIL;
}

static int encode_standard(cow_codec *codec, cow_filtering *filtering, const void *chunk, void *out, size_t *size,
                           uint32_t *mask)
{
    void *other = NULL, *to;
    const void *from = chunk;
    size_t bytes = codec->chunk_bytes;
    int result = -1;

    if (codec->count > 1 && !(other = malloc(codec->bound)))
        return cow_error(COW_MEMORY, "no memory to encode a chunk of %zu bytes", codec->chunk_bytes);
    to = codec->count % 2 ? out : other; /* so that the last stage ends in OUT unless one is skipped */
    for (unsigned i = 0; i < codec->count; i++) {
        const cow_filter *filter = &codec->filter[i];
        size_t made = cow_filter_encode(filter, from, bytes, to);
        if (made == 0 && !filter->optional && !goes_on(filtering, filter, from, bytes)) {
            cow_error(COW_UNSUPPORTED, "filter %d (%s) cannot encode this chunk, and is mandatory in this dataset",
                      (int)filter->id, filter->name);
            goto done;
        }
        if (made == 0) {
            *mask |= UINT32_C(1) << i;
            continue;
        }
        from = to;
        bytes = made;
        to = to == out ? other : out;
    }
    if (from != out)
        memcpy(out, from, bytes);
    *size = bytes;
    result = 0;
done:
    free(other);
    return result;
}

int cow_codec_encode_as(cow_codec *codec, cow_filtering *filtering, const void *chunk, void *out, size_t *size,
                        uint32_t *mask)
{
    int status;

    *mask = 0;
    if (codec->standard)
        return encode_standard(codec, filtering, chunk, out, size, mask);
    if (check_available(codec, 0, false) < 0)
        return -1;
    if (codec->encoding)
        codec->encoder = NULL;
    if (!codec->encoder && !(codec->encoder = cow_scratch_open(codec->dcpl, codec->type, 0)))
        return -1;
    codec->encoding = true;
    status = cow_scratch_encode(codec->encoder, filtering, chunk, out, codec->bound, size, mask);
    codec->encoding = false;
    return status;
}

uint32_t cow_codec_all(const cow_codec *codec)
{
    return codec->count < 32 ? (UINT32_C(1) << codec->count) - 1 : UINT32_MAX;
}

/* What a filter that was excused leaves: its input. 0: there is no room for that. */
static size_t excuse(cow_filtering *filtering, const cow_filter *filter, const void *from, size_t size, void *to,
                     size_t room)
{
    if (!goes_on(filtering, filter, from, size) || size > room)
        return 0;
    memcpy(to, from, size);
    filtering->excused = true;
    return size;
}

static int decode_standard(cow_codec *codec, cow_filtering *filtering, const void *bytes, size_t size, uint32_t mask,
                           void *chunk)
{
    const size_t room = SLACK_FACTOR * codec->bound + SLACK_BYTES;
    void *between[2] = {NULL, NULL};
    const void *from = bytes;
    unsigned stages = 0, turn = 0;
    int result = -1;

    if (filtering != NULL)
        filtering->excused = false;

    for (unsigned i = 0; i < codec->count; i++)
        stages += !skipped(mask, i);
    for (unsigned i = codec->count; i-- > 0;) {
        const cow_filter *filter = &codec->filter[i];
        const char *why = "";
        size_t capacity = room, made;
        void *to;

        if (skipped(mask, i))
            continue;
        to = --stages == 0 ? chunk : between[turn];
        if (!to && !(to = between[turn] = malloc(room))) {
            cow_error(COW_MEMORY, "no memory to decode a chunk of %zu bytes", codec->chunk_bytes);
            goto done;
        }
        turn ^= 1;
        capacity = to == chunk ? codec->chunk_bytes : room;
        made = cow_filter_decode(filter, filtering != NULL && filtering->unchecked, from, size, to, capacity, &why);
        if ((size = made > 0 ? made : excuse(filtering, filter, from, size, to, capacity)) == 0) {
            cow_error(COW_CORRUPT, "a stored chunk is damaged: filter %d (%s): %s", (int)filter->id, filter->name, why);
            goto done;
        }
        from = to;
    }
    if (size < codec->chunk_bytes && filtering != NULL && filtering->excused) {
        memcpy(chunk, from, from == chunk ? 0 : size);
        memset((uint8_t *)chunk + size, 0, codec->chunk_bytes - size);
        from = chunk;
    } else if (size != codec->chunk_bytes) {
        cow_error(COW_CORRUPT, "a stored chunk is damaged: it decodes to %zu bytes and not %zu", size,
                  codec->chunk_bytes);
        goto done;
    }
    if (from != chunk)
        memcpy(chunk, from, size);
    result = 0;
done:
    free(between[0]);
    free(between[1]);
    return result;
}

int cow_codec_decode(cow_codec *codec, const void *bytes, size_t size, uint32_t mask, void *chunk)
{
    return cow_codec_decode_as(codec, NULL, bytes, size, mask, chunk);
}

int cow_codec_decode_as(cow_codec *codec, cow_filtering *filtering, const void *bytes, size_t size, uint32_t mask,
                        void *chunk)
{
    const uint32_t all = cow_codec_all(codec);
    int status;

    mask &= all;
    if (codec->standard || mask == all)
        return decode_standard(codec, filtering, bytes, size, mask, chunk);
    if (size == 0)
        return cow_error(COW_CORRUPT, "a stored chunk is damaged: it is empty");
    if (check_available(codec, mask, true) < 0)
        return -1;
    if (codec->decoding)
        codec->decoder = NULL;
    if (codec->decoder && codec->decoder_mask != mask) {
        cow_scratch_close(codec->decoder);
        codec->decoder = NULL;
    }
    codec->decoder_mask = mask;
    if (!codec->decoder && !(codec->decoder = cow_scratch_open(codec->dcpl, codec->type, mask)))
        return -1;
    /* HDF5 leaves what is between the members of a compound as it was there, where it converts, as it does references */
    memset(chunk, 0, codec->chunk_bytes);
    codec->decoding = true;
    status = cow_scratch_decode(codec->decoder, filtering, bytes, size, chunk);
    codec->decoding = false;
    return status;
}

int cow_codec_encode_back(cow_codec *codec, cow_filtering *filtering, const void *chunk, void *out, size_t *size,
                          uint32_t *mask, void *back)
{
    int status = -1;

    if (cow_codec_encode_as(codec, filtering, chunk, out, size, mask) < 0)
        return -1;
    H5E_BEGIN_TRY
    {
        status = cow_codec_decode(codec, out, *size, *mask, back);
    }
    H5E_END_TRY
    if (status == 0)
        return 0;
    cow_error_clear();
    memcpy(out, chunk, codec->chunk_bytes);
    memcpy(back, chunk, codec->chunk_bytes);
    *size = codec->chunk_bytes;
    *mask = cow_codec_all(codec);
    return 0;
}

/* What the filter of hdf5-blosc fills in itself where HDF5 has it, which need not be: its revision, Blosc's format, the size of what is
 * shuffled, and of a chunk. */
static int add_blosc(hid_t dcpl, hid_t type, const cow_compress *compress, size_t chunk_bytes)
{
    hid_t base = H5Tget_class(type) == H5T_ARRAY ? H5Tget_super(type) : H5I_INVALID_HID;
    size_t size = H5Tget_size(base >= 0 ? base : type);
    const unsigned value[COW_BLOSC_VALUES] = {2,
                                              BLOSC_VERSION_FORMAT,
                                              size <= BLOSC_MAX_TYPESIZE ? (unsigned)size : 1,
                                              chunk_bytes <= UINT32_MAX ? (unsigned)chunk_bytes : 0,
                                              (unsigned)compress->level,
                                              (unsigned)compress->shuffle,
                                              (unsigned)compress->codec};

    cow_close(base);
    return H5Pset_filter(dcpl, COW_FILTER_BLOSC, H5Z_FLAG_OPTIONAL, COW_BLOSC_VALUES, value);
}

/* LZF likewise. A pool is made without asking filters, but for those of HDF5 alone: so shuffle in front of it, too, gets its parameter. */
static int add_lzf(hid_t dcpl, unsigned shuffled, size_t chunk_bytes)
{
    const unsigned value[COW_LZF_VALUES] = {COW_LZF_REVISION, COW_LZF_FORMAT,
                                            chunk_bytes <= UINT32_MAX ? (unsigned)chunk_bytes : 0};

    if (shuffled > 1 && H5Pset_filter(dcpl, H5Z_FILTER_SHUFFLE, H5Z_FLAG_OPTIONAL, 1, &shuffled) < 0)
        return -1;
    return H5Pset_filter(dcpl, COW_FILTER_LZF, H5Z_FLAG_OPTIONAL, COW_LZF_VALUES, value);
}

int cow_codec_add(hid_t dcpl, hid_t type, const cow_compress *compress, size_t chunk_bytes)
{
    size_t size = H5Tget_size(type);
    int filters = H5Pget_nfilters(dcpl);
    herr_t status = 0;

    if (size == 0 || filters < 0)
        return cow_error_native("cannot read what a dataset is made of");
    if (compress->library == COW_COMPRESS_NONE || filters > 0 || chunk_bytes < SMALLEST_COMPRESSED)
        return 0;
    switch (compress->library) {
    case COW_COMPRESS_NONE:
        break;
    case COW_COMPRESS_BLOSC:
        status = add_blosc(dcpl, type, compress, chunk_bytes);
        break;
    case COW_COMPRESS_LZF:
        status = add_lzf(dcpl, compress->shuffle == 1 ? (unsigned)size : 0, chunk_bytes);
        break;
    case COW_COMPRESS_GZIP:
        status = compress->shuffle == 1 && size > 1 && H5Pset_shuffle(dcpl) < 0
                     ? -1
                     : H5Pset_deflate(dcpl, (unsigned)compress->level);
        break;
    }
    return status < 0 ? cow_error_native("cannot add the compressor that compress= asks for") : 1;
}
