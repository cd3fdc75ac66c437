/* The lengths of variable-length elements as they are in the file, before HDF5 believes them. See layout.h.
 *
 * Of sequences of sequences only the outer lengths can be read this way: the inner ones are in the heap.
 */
#include "layout/layout.h"

#include "base/bytes.h"
#include "base/error.h"
#include "native/datatype.h"

#include <stdlib.h>

struct cow_lengths {
    void *file;
    cow_part *whole;
};

cow_lengths *cow_lengths_open(void *file, hid_t type)
{
    cow_lengths *lengths = calloc(1, sizeof *lengths);

    if (lengths == NULL) {
        cow_error(COW_MEMORY, "no memory for a type");
        return NULL;
    }
    lengths->file = file;
    if ((lengths->whole = cow_parts_open(file, type)) != NULL)
        return lengths;
    cow_lengths_close(lengths);
    return NULL;
}

void cow_lengths_close(cow_lengths *lengths)
{
    if (lengths == NULL)
        return;
    cow_parts_close(lengths->whole);
    free(lengths);
}

size_t cow_lengths_element(const cow_lengths *lengths)
{
    return lengths->whole->stored;
}

/* False: more than MOST. */
static bool add(const cow_part *p, const uint8_t *bytes, uint64_t most, uint64_t *sum)
{
    uint64_t more = 0;
    bool fits = true;

    switch (p->kind) {
    case COW_PART_BYTES:
    case COW_PART_OBJECT:
    case COW_PART_REGION:
        return true;
    case COW_PART_STRING:
        more = cow_get32(bytes);
        break;
    case COW_PART_SEQUENCE:
        more = (uint64_t)cow_get32(bytes) * p->inner->stored; /* which is at most 2^32 */
        break;
    case COW_PART_REFERENCE: /* kind, flags, and what is in the heap, unless all of it stands here: H5T__ref_disk_getsize */
        more = bytes[0] == H5R_OBJECT2 && (bytes[1] & 1) == 0 ? 0 : cow_get32(bytes + 2);
        break;
    case COW_PART_COMPOUND:
        for (size_t i = 0; fits && i < p->inners; i++)
            fits = add(&p->inner[i], bytes + p->inner[i].stored_at, most, sum);
        return fits;
    case COW_PART_ARRAY:
        for (size_t i = 0; fits && i < p->count; i++)
            fits = add(p->inner, bytes + i * p->inner->stored, most, sum);
        return fits;
    }
    if (more > most || *sum > most - more)
        return false;
    *sum += more;
    return true;
}

int cow_lengths_check(const cow_lengths *lengths, const void *bytes, uint64_t elements, uint64_t *sum)
{
    uint64_t most;

    if (cow_native_file_size(lengths->file, &most) < 0)
        return -1;
    for (uint64_t i = 0; i < elements; i++)
        if (!add(lengths->whole, (const uint8_t *)bytes + i * lengths->whole->stored, most, sum))
            return cow_error(COW_CORRUPT,
                             "texts or sequences claim more bytes than the file has; to see what is damaged: h5cow "
                             "verify");
    return 0;
}
