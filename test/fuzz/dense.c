/* A group with its links in a heap: an image of a file, and where the group's header is in it. */
#include "fuzz.h"
#include "image.h"

#include "base/bytes.h"
#include "base/error.h"
#include "h5/dense.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int look(void *context, const char *name, uint64_t address)
{
    size_t *sum = context;

    *sum += strlen(name) + address;
    return 0;
}

#define FIRST ((uint64_t)1 << 20)

/* Where there are free places, none has room for all. */
static uint64_t allocate(void *context, uint64_t size, bool at_end)
{
    static uint64_t next = FIRST;

    (void)context;
    if (!at_end)
        return UINT64_MAX;
    next += size;
    return next - size;
}

static int write_bytes(void *context, uint64_t address, const void *bytes, size_t size)
{
    size_t *all = context;

    assert(address >= FIRST);
    for (size_t at = 0; at < size; at++)
        *all += ((const uint8_t *)bytes)[at];
    return 0;
}

/* The first byte: are checksums compared, and are there free places? */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    image i;
    cow_source source;
    cow_dense *dense = NULL;
    size_t all = 0;
    cow_dense_target target = {&all, false, allocate, write_bytes};
    cow_place *place;
    size_t sum = 0, count;
    uint64_t address;

    if (size < IMAGE_PREFIX)
        return 0;
    source = image_source(&i, data, size);
    if (cow_dense_parse(&source, cow_get16(data + 1), &dense) > 0) {
        cow_dense_links(dense, look, &sum);
        if (cow_dense_find(dense, "link 7", &address))
            cow_dense_redirect(dense, "link 7", 77);
        if (cow_dense_places(dense, &place, &count) < 0)
            abort();
        for (size_t p = 0; p < count; p++)
            assert(place[p].address <= i.size && place[p].size <= i.size - place[p].address);
        free(place);
        target.has_places = data[0] & 2;
        if (cow_dense_put(dense, &target, &address) < 0)
            abort();
        assert(address >= FIRST && all > 0);
    }
    cow_dense_free(dense);
    cow_error_clear();
    return 0;
}

size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    static const uint8_t header[] = {0, 0, 0, 'O', 'H', 'D', 'R', 2, 0, 22, 2, 18, 0, 0, 0, 0};

    (void)room;
    return first_image(n, to, header);
}
