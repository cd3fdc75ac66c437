/* Room grows by half, so that elements that come one by one are moved a bounded number of times each. */
#include "base/vector.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cow_vector_reserve(void *array, size_t *room, size_t count, size_t more, size_t size)
{
    size_t larger = *room + *room / 2 + 256 / size + 1; /* no overflow: ROOM elements are in memory */
    void *block;

    if (more > SIZE_MAX - count)
        return -1;
    if (count + more <= *room)
        return 0;
    if (larger < count + more)
        larger = count + more;
    if (larger > SIZE_MAX / size)
        return -1;
    memcpy(&block, array, sizeof block); /* ARRAY is the address of a pointer of any type */
    if ((block = realloc(block, larger * size)) == NULL)
        return -1;
    memcpy(array, &block, sizeof block);
    *room = larger;
    return 0;
}
