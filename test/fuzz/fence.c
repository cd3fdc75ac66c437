/* Superblock and fence header: what is made of the bytes where HDF5 may have an extension of its superblock. */
#include "fuzz.h"

#include "base/bytes.h"
#include "h5/checksum.h"
#include "h5/superblock.h"
#include "journal/fence.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t superblock[COW_SUPERBLOCK_MAX] = {0}, head[32] = {0}, fence[2048], *source;
    size_t length;

    if (size == 0)
        return 0;
    memcpy(superblock, data + 1, size - 1 < sizeof superblock ? size - 1 : sizeof superblock);
    if ((length = cow_superblock_size(superblock)) != 0) {
        assert(length <= sizeof superblock);
        cow_superblock_set(superblock, 4096, data[0] & 1);
        assert(cow_superblock_whole(superblock) && cow_superblock_flagged(superblock) == (data[0] & 1));
        assert(cow_superblock_extension(superblock) == 4096);
        cow_superblock_end(superblock);
    }
    /* as the commit does: the head, then so many bytes as it says */
    memcpy(head, data + 1, size - 1 < sizeof head ? size - 1 : sizeof head);
    if ((length = cow_fence_source_size(head, sizeof head)) == 0)
        return 0;
    if ((source = calloc(1, length < 32 ? 32 : length)) == NULL)
        abort();
    memcpy(source, data + 1, size - 1 < length ? size - 1 : length);
    if (data[0] & 2)
        cow_put32(source + length - 4, cow_metadata_checksum(source, length - 4));
    length = cow_fence_make(fence, sizeof fence, source);
    assert(length <= sizeof fence && (length == 0 || cow_fence_is(fence, length)));
    free(source);
    return 0;
}

size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    uint8_t source[40] = {2, 'O', 'H', 'D', 'R', 2, 0, 4 + 8 + 2, 0x17, 8};

    (void)room;
    if (n > 0)
        return 0;
    memcpy(source + 12, "freespac", 8);
    memcpy(to, source, sizeof source);
    return sizeof source;
}
