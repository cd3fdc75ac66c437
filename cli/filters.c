/* LZF and Blosc for the command's own HDF5, which has neither: datasets that HDF5 keeps itself, and plain files, may have them. */
#include "common.h"
#include "io/filters.h"
#include "io/lzf.h"

#include <blosc.h>
#include <string.h>

/* HDF5 does not say how much the chunk holds: the stream does. No stream can hold more than a chunk may have. */
static size_t decoded_size(H5Z_filter_t id, const void *in, size_t size)
{
    size_t bytes = 0;

    if (id == COW_FILTER_LZF)
        bytes = cow_lzf_decompressed_size(in, size);
    else if (blosc_cbuffer_validate(in, size, &bytes) < 0)
        bytes = 0;
    return bytes > UINT32_MAX ? 0 : bytes;
}

static size_t apply(H5Z_filter_t id, unsigned flags, size_t count, const unsigned values[], size_t size, size_t *room,
                    void **buffer)
{
    cow_filter filter = {.id = id, .count = count};
    bool decode = (flags & H5Z_FLAG_REVERSE) != 0;
    size_t bytes = decode ? decoded_size(id, *buffer, size) : cow_filter_bound(id, size), made = 0;
    const char *why;
    void *out;

    memcpy(filter.value, values, (count < COW_FILTER_VALUES ? count : COW_FILTER_VALUES) * sizeof *values);
    if (bytes == 0 || (out = H5allocate_memory(bytes, false)) == NULL)
        return 0;
    made = decode ? cow_filter_decode(&filter, false, *buffer, size, out, bytes, &why)
                  : cow_filter_encode(&filter, *buffer, size, out);
    if (made == 0) {
        H5free_memory(out);
        return 0;
    }
    H5free_memory(*buffer);
    *buffer = out;
    *room = bytes;
    return made;
}

static size_t lzf(unsigned flags, size_t count, const unsigned values[], size_t size, size_t *room, void **buffer)
{
    return apply(COW_FILTER_LZF, flags, count, values, size, room, buffer);
}

static size_t blosc(unsigned flags, size_t count, const unsigned values[], size_t size, size_t *room, void **buffer)
{
    return apply(COW_FILTER_BLOSC, flags, count, values, size, room, buffer);
}

void cli_filters_register(void)
{
    static const H5Z_class2_t filters[] = {
        {H5Z_CLASS_T_VERS, COW_FILTER_LZF, 1, 1, "lzf", NULL, NULL, lzf},
        {H5Z_CLASS_T_VERS, COW_FILTER_BLOSC, 1, 1, "blosc", NULL, NULL, blosc},
    };

    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (H5Zregister(&filters[i]) < 0)
            H5Eclear2(H5E_DEFAULT); /* what needs it says so */
}
