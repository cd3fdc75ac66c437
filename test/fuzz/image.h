/* Fuzz targets whose input is a part of a file, with an object header in it: whether checksums are compared, where the header is, and the
 * bytes. */
#ifndef IMAGE_H
#define IMAGE_H

#include "h5/header.h"

#include <assert.h>
#include <string.h>

#define IMAGE_PREFIX 3

typedef struct image {
    const uint8_t *bytes;
    size_t size;
} image;

static int read_image(void *context, uint64_t address, void *bytes, size_t size)
{
    const image *i = context;

    assert(address <= i->size && size <= i->size - address);
    memcpy(bytes, i->bytes + address, size);
    return 0;
}

/* DATA has IMAGE_PREFIX bytes at least; the lowest bit of the first: checksums are compared. */
static cow_source image_source(image *i, const uint8_t *data, size_t size)
{
    *i = (image){data + IMAGE_PREFIX, size - IMAGE_PREFIX};
    return (cow_source){i, i->size, read_image, (data[0] & 1) == 0};
}

/* The corpus was written by HDF5; here nothing but the BEGINNING of a header. */
static size_t first_image(unsigned n, uint8_t *to, const uint8_t beginning[16])
{
    if (n > 0)
        return 0;
    memcpy(to, beginning, 16);
    memset(to + 16, 0, 64);
    return 16 + 64;
}

#endif
