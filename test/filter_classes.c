/* See filter_classes.h. */
#include "filter_classes.h"

#include "io/filters.h"
#include "io/lzf.h"

#include <blosc.h>
#include <string.h>

/* What hdf5-blosc puts in front of its parameters. */
#define BLOSC_FILTER_REVISION 2

/* HDF5's filter callback: replaces *BUF, which the library allocated; 0 is failure. Nothing goes to error.h: the
 * library runs this on its own and reports it in its own words. */
static size_t run(const cow_filter *filter, unsigned flags, size_t size, size_t *buf_size, void **buf)
{
    bool decode = (flags & H5Z_FLAG_REVERSE) != 0;
    const char *why;
    size_t room = size, made;
    void *out;

    if (decode && filter->id == COW_FILTER_LZF)
        room = cow_lzf_decompressed_size(*buf, size);
    else if (decode && (size < BLOSC_MIN_HEADER_LENGTH || blosc_cbuffer_validate(*buf, size, &room) < 0))
        return 0;
    if (room == 0 || !(out = H5allocate_memory(room, false)))
        return 0;
    made = decode ? cow_filter_decode(filter, false, *buf, size, out, room, &why)
                  : cow_filter_encode(filter, *buf, size, out);
    if (made == 0) {
        H5free_memory(out);
        return 0;
    }
    H5free_memory(*buf);
    *buf = out;
    *buf_size = room;
    return made;
}

static size_t run_lzf(unsigned flags, size_t count, const unsigned values[], size_t size, size_t *buf_size, void **buf)
{
    cow_filter filter = {.id = COW_FILTER_LZF, .count = count};

    (void)values;
    return run(&filter, flags, size, buf_size, buf);
}

static size_t run_blosc(unsigned flags, size_t count, const unsigned values[], size_t size, size_t *buf_size,
                        void **buf)
{
    cow_filter filter = {.id = COW_FILTER_BLOSC, .count = count};

    memcpy(filter.value, values, (count < COW_FILTER_VALUES ? count : COW_FILTER_VALUES) * sizeof *values);
    return run(&filter, flags, size, buf_size, buf);
}

/* Size of one chunk as both filters store it, in 32 bits; -1 on failure. */
static int chunk_size(hid_t dcpl, hid_t type, unsigned *bytes)
{
    hsize_t dims[H5S_MAX_RANK];
    int rank = H5Pget_chunk(dcpl, H5S_MAX_RANK, dims);
    size_t size = H5Tget_size(type);

    if (rank < 0 || rank > H5S_MAX_RANK || size == 0)
        return -1;
    for (int d = 0; d < rank; d++)
        size *= dims[d];
    *bytes = (unsigned)size;
    return 0;
}

/* Bytes that Blosc shuffles by: an array's are its elements', and what does not fit its header counts as bytes. */
static unsigned shuffle_size(hid_t type)
{
    size_t size = H5Tget_size(type);
    hid_t base;

    if (H5Tget_class(type) == H5T_ARRAY && (base = H5Tget_super(type)) >= 0) {
        size = H5Tget_size(base);
        H5Tclose(base);
    }
    return size > BLOSC_MAX_TYPESIZE ? 1 : (unsigned)size;
}

static herr_t set_local_lzf(hid_t dcpl, hid_t type, hid_t space)
{
    unsigned flags, value[COW_FILTER_VALUES] = {0};
    size_t count = COW_FILTER_VALUES;

    (void)space;
    if (H5Pget_filter_by_id2(dcpl, COW_FILTER_LZF, &flags, &count, value, 0, NULL, NULL) < 0)
        return -1;
    if (count < COW_LZF_VALUES)
        count = COW_LZF_VALUES;
    if (count > COW_FILTER_VALUES)
        count = COW_FILTER_VALUES;
    if (value[0] == 0)
        value[0] = COW_LZF_REVISION;
    if (value[1] == 0)
        value[1] = COW_LZF_FORMAT;
    if (chunk_size(dcpl, type, &value[2]) < 0)
        return -1;
    return H5Pmodify_filter(dcpl, COW_FILTER_LZF, flags, count, value);
}

static herr_t set_local_blosc(hid_t dcpl, hid_t type, hid_t space)
{
    unsigned flags, value[COW_FILTER_VALUES] = {0};
    size_t count = COW_FILTER_VALUES;

    (void)space;
    if (H5Pget_filter_by_id2(dcpl, COW_FILTER_BLOSC, &flags, &count, value, 0, NULL, NULL) < 0)
        return -1;
    if (count < 4)
        count = 4;
    if (count > COW_FILTER_VALUES)
        count = COW_FILTER_VALUES;
    value[0] = BLOSC_FILTER_REVISION;
    value[1] = BLOSC_VERSION_FORMAT;
    value[2] = shuffle_size(type);
    if (value[2] == 0 || chunk_size(dcpl, type, &value[3]) < 0)
        return -1;
    return H5Pmodify_filter(dcpl, COW_FILTER_BLOSC, flags, count, value);
}

static void register_missing(const H5Z_class2_t *class)
{
    if (H5Zfilter_avail(class->id) <= 0) /* looks for a plugin as well: what the user installed goes first */
        H5Zregister(class);
}

void register_lzf_and_blosc(void)
{
    static const H5Z_class2_t lzf = {.version = H5Z_CLASS_T_VERS,
                                     .id = COW_FILTER_LZF,
                                     .encoder_present = 1,
                                     .decoder_present = 1,
                                     .name = "lzf",
                                     .set_local = set_local_lzf,
                                     .filter = run_lzf};
    static const H5Z_class2_t blosc = {.version = H5Z_CLASS_T_VERS,
                                       .id = COW_FILTER_BLOSC,
                                       .encoder_present = 1,
                                       .decoder_present = 1,
                                       .name = "blosc",
                                       .set_local = set_local_blosc,
                                       .filter = run_blosc};

    register_missing(&lzf);
    register_missing(&blosc);
}
