/* Global heap collections, as h5/collection.c finds them in a file: whatever they say, objects are in them. */
#include "fuzz.h"

#include "base/bytes.h"
#include "h5/collection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MOST 8192

static void put_object(uint8_t *to, unsigned number, uint64_t size)
{
    memset(to, 0, COW_COLLECTION_OBJECT);
    to[0] = (uint8_t)number;
    to[1] = (uint8_t)(number >> 8);
    to[2] = number > 0;
    cow_put64(to + 8, size);
}

/* The rest of a collection is free: 0, no object; 1, nothing free; 2, the largest number. */
size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    size_t size = 256;

    if (n > 2 || room < size)
        return 0;
    memset(to, 'x', size);
    memcpy(to, "GCOL\1\0\0", 8);
    cow_put64(to + 8, size);
    put_object(to + 16, n == 2 ? 65535 : 1, 13);
    put_object(to + 48, 2, 8);
    put_object(to + 72, n == 1 ? 3 : 0, n == 1 ? size - 88 : size - 72);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *bytes;
    uint32_t *at = NULL;
    size_t room = 0, count = 0;

    if (size > MOST || (bytes = malloc(size > 0 ? size : 1)) == NULL)
        return 0;
    /* twice: what the first left in AT is not the second's; and with a size that is right */
    for (int i = 0; i < 2; i++) {
        memcpy(bytes, data, size);
        if (i == 1 && size >= COW_COLLECTION_HEADER)
            cow_put64(bytes + 8, size);
        if (!cow_collection_parse(bytes, size, &at, &room, &count))
            continue;
        assert(count <= 65536 && count <= room);
        for (size_t k = 0; k < count; k++) {
            if (at[k] == 0)
                continue;
            assert(k > 0 && at[k] >= COW_COLLECTION_HEADER && at[k] <= size - COW_COLLECTION_OBJECT);
            assert(cow_get16(bytes + at[k]) == k);
            assert(cow_get64(bytes + at[k] + 8) <= size - COW_COLLECTION_OBJECT - at[k]);
        }
    }
    free(at);
    free(bytes);
    return 0;
}
