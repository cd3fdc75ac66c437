/* Index nodes and root records. The input is an index log behind its header; the first byte says whether the checksums of
 * records that stand one behind the other are made right. */
#include "fuzz.h"

#include "base/bytes.h"
#include "base/error.h"
#include "store/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct visited {
    cow_index *index;
    unsigned left;
} visited;

static int visit(void *context, const uint64_t chunk[], uint64_t slot)
{
    visited *v = context;
    cow_composed composed;

    assert(slot != COW_HOLE);
    if (cow_is_composed(slot) && cow_index_composed(v->index, chunk, slot, &composed) == 0) {
        assert(composed.own != 0 && (composed.base == COW_HOLE || composed.base < COW_COMPOSED));
        for (unsigned i = 0; i < COW_PIECES; i++)
            assert((composed.own >> i & 1) ? composed.slot[i] < COW_COMPOSED : composed.slot[i] == COW_HOLE);
    }
    return --v->left == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cow_table *log = cow_table_memory(1);
    const uint64_t nothing[COW_MAX_RANK] = {0};
    uint8_t *bytes = malloc(16 + size);
    uint64_t end;

    if (log == NULL || bytes == NULL)
        abort();
    if (size < 1)
        goto done;
    memcpy(bytes, "h5cowidx\1\0\0\0\0\0\0\0", 16);
    memcpy(bytes + 16, data + 1, size - 1);
    end = 16 + size - 1;
    for (uint64_t at = 16; (data[0] & 1) && at + 14 <= end;) {
        size_t length = cow_get16(bytes + at + 4);
        if (length > end - at - 14)
            break;
        cow_put64(bytes + at + 6 + length, cow_checksum(bytes + at, 6 + length));
        at += 14 + length;
    }
    if (cow_table_append(log, end, bytes, NULL) < 0)
        abort();
    for (uint64_t at = 16; at < end; at++) {
        cow_root root;
        cow_grid grid;
        cow_index *index;
        uint64_t slot, count[COW_MAX_RANK];
        visited v = {.left = 2000};

        if (bytes[at] != 'c' || cow_root_read(log, at, &root) < 0)
            continue;
        assert(root.rank >= 1 && root.rank <= COW_MAX_RANK);
        cow_grid_init(&grid, root.rank, root.chunk, root.maximum);
        if ((index = cow_index_open(log, &grid, &root)) == NULL)
            continue;
        for (unsigned d = 0; d < root.rank; d++)
            count[d] = root.extent[d] / root.chunk[d] + 1;
        cow_index_get(index, nothing, &slot);
        v.index = index;
        cow_index_visit(index, nothing, count, visit, &v);
        cow_index_close(index);
    }
done:
    cow_error_clear();
    log->close(log);
    free(bytes);
    return 0;
}

/* The example of docs/format.md; and a composed chunk, named by a leaf below a root, whose checksums are made right. */
size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    static const uint8_t log[] = {
        1,    0x63, 0x4e, 0x01, 0x00, 0x07, 0x00, 0x01, 0x00, 0x00, 0x51, 0x07, 0xb0, 0x01, 0xea, 0x33, 0x1c,
        0xb7, 0x2b, 0x76, 0xbb, 0xe6, 0x63, 0x4e, 0x01, 0x00, 0x08, 0x00, 0x01, 0x01, 0x00, 0x80, 0x01, 0x22,
        0x03, 0x60, 0x19, 0xe6, 0x9f, 0x42, 0x7d, 0x67, 0xfe, 0x6a, 0x63, 0x4e, 0x01, 0x00, 0x08, 0x00, 0x01,
        0x05, 0x00, 0xcc, 0x01, 0x05, 0x03, 0x30, 0x66, 0x79, 0x68, 0x7b, 0x63, 0x1f, 0x8f, 0xe1, 0x63, 0x4e,
        0x02, 0x01, 0x09, 0x00, 0x01, 0x00, 0x00, 0x23, 0x00, 0x81, 0x01, 0x2a, 0x2c, 0xa0, 0x60, 0x7e, 0xaa,
        0x8b, 0xd5, 0x45, 0xff, 0x63, 0x4e, 0x03, 0x01, 0x0c, 0x00, 0x02, 0x01, 0x02, 0x84, 0x07, 0x00, 0x05,
        0x14, 0x15, 0x0a, 0x17, 0x1d, 0x59, 0x0e, 0x6e, 0x8e, 0xd9, 0x3c, 0xdd, 0xe7};

    static const uint8_t composed[] = {1,    'c', 'N', 4,    0, 7,    0,    1,   0, 3, 2,   5,   8, 3, 0, 0,
                                       0,    0,   0,   0,    0, 0,    'c',  'N', 1, 0, 6,   0,   1, 0, 7, 0x15,
                                       0xfc, 1,   0,   0,    0, 0,    0,    0,   0, 0, 'c', 'N', 3, 0, 8, 0,
                                       0,    1,   1,   0x0a, 0, 0x0a, 0x14, 1,   0, 0, 0,   0,   0, 0, 0, 0};

    (void)room;
    if (n == 1) {
        memcpy(to, composed, sizeof composed);
        return sizeof composed;
    }
    if (n > 1)
        return 0;
    memcpy(to, log, sizeof log);
    return sizeof log;
}
