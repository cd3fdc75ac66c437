/* What a global heap collection holds: see collections.h. Apart from the rest, which reads files, so that a fuzz target can have it.
 * The layout is that of the HDF5 File Format Specification, III.E. */
#include "native/collections.h"

#include "base/bytes.h"
#include "base/vector.h"

#include <string.h>

bool cow_collection_parse(const uint8_t *bytes, size_t size, uint32_t **at, size_t *room, size_t *count)
{
    *count = 0;
    if (size < COW_COLLECTION_HEADER || size > UINT32_MAX || memcmp(bytes, "GCOL", 4) != 0 || bytes[4] != 1 ||
        cow_get64(bytes + 8) != size)
        return false;
    for (size_t p = COW_COLLECTION_HEADER; size - p >= COW_COLLECTION_OBJECT;) {
        unsigned number = cow_get16(bytes + p);
        uint64_t length = cow_get64(bytes + p + 8), need = length;

        if (number > 0) {
            if (length > size - p - COW_COLLECTION_OBJECT)
                return false;
            need = COW_COLLECTION_OBJECT + ((length + 7) & ~(uint64_t)7);
            if (number >= *count) {
                if (COW_RESERVE(*at, *room, *count, number + 1 - *count) < 0)
                    return false;
                memset(*at + *count, 0, (number + 1 - *count) * sizeof **at);
                *count = number + 1;
            }
            (*at)[number] = (uint32_t)p;
        }
        if (need == 0)
            return false;
        if (need > size - p)
            break;
        p += (size_t)need;
    }
    return true;
}
