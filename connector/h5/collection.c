/* See collection.h. */
#include "h5/collection.h"

#include "base/bytes.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

uint64_t cow_collection_size(const uint8_t header[COW_COLLECTION_HEADER])
{
    return memcmp(header, "GCOL", 4) == 0 && header[4] == 1 ? cow_get64(header + 8) : 0;
}

bool cow_collection_parse(const uint8_t *bytes, size_t size, uint32_t **at, size_t *room, size_t *count)
{
    *count = 0;
    if (size < COW_COLLECTION_HEADER || size > UINT32_MAX || cow_collection_size(bytes) != size)
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

int cow_collection_object(const cow_source *source, uint64_t address, uint32_t number, uint8_t **bytes, size_t *size)
{
    uint8_t header[COW_COLLECTION_HEADER], object[COW_COLLECTION_OBJECT];
    uint64_t all, at = COW_COLLECTION_HEADER;
    int status;

    *bytes = NULL;
    if ((status = cow_source_bring(source, address, header, sizeof header)) <= 0)
        return status;
    if ((all = cow_collection_size(header)) > source->end - address)
        return 0;
    while (at <= all && all - at >= COW_COLLECTION_OBJECT) {
        uint64_t length, padded;

        if ((status = cow_source_bring(source, address + at, object, sizeof object)) <= 0)
            return status;
        length = cow_get64(object + 8);
        padded = length + (8 - length % 8) % 8;
        if (cow_get16(object) == 0 || padded < length || padded > all - at - COW_COLLECTION_OBJECT)
            return 0;
        at += COW_COLLECTION_OBJECT;
        if (cow_get16(object) == number) {
            if ((*bytes = malloc((size_t)length + 1)) == NULL)
                return 0;
            *size = (size_t)length;
            return cow_source_bring(source, address + at, *bytes, *size);
        }
        at += padded;
    }
    return 0;
}
