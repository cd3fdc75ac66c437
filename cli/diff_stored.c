/* Which chunks of two datasets may hold other elements, told by the bytes that are stored. See diff.h. */
#include "diff.h"

#include "base/digest.h"
#include "library/library.h"

#include <stdlib.h>
#include <string.h>

#define MOST ((hsize_t)64 << 20) /* bytes of a chunk: a damaged file may tell any size */

/* Are the stored bytes of a chunk the same in both? What cannot be read so counts as different: reading its elements tells why. */
static bool same_bytes(const hid_t dataset[2], const cow_tree_chunk *chunk, unsigned char *bytes[2])
{
    uint32_t mask[2] = {0};
    bool read = true;

    for (int i = 0; read && i < 2; i++)
        read = cow_library_read_chunk(dataset[i], chunk->offset, &mask[i], bytes[i], chunk->size) >= 0;
    H5Eclear2(H5E_DEFAULT);
    return read && mask[0] == mask[1] && memcmp(bytes[0], bytes[1], chunk->size) == 0;
}

static uint64_t key_of(const cow_tree_chunks *chunks, size_t k)
{
    return cow_checksum(chunks->chunk[k].offset, chunks->rank * sizeof *chunks->chunk[k].offset);
}

static hsize_t largest(const cow_tree_chunks *chunks)
{
    hsize_t size = 0;

    for (size_t k = 0; k < chunks->count; k++)
        if (chunks->chunk[k].size > size && chunks->chunk[k].size <= MOST)
            size = chunks->chunk[k].size;
    return size;
}

int cli_diff_stored(const hid_t dataset[2], const cow_tree_chunks stored[2], bool encoded, cli_stored_visitor *visit,
                    void *context)
{
    const hsize_t room = encoded ? largest(&stored[1]) : 0;
    unsigned char *bytes[2] = {cli_alloc(room + 1, 1), cli_alloc(room + 1, 1)};
    cow_map place = {0}; /* of a chunk in stored[0], plus one; 0: it was met in both */
    uint64_t at;
    int status = 0;

    for (size_t k = 0; k < stored[0].count; k++)
        cli_map_put(&place, key_of(&stored[0], k), k + 1);
    for (size_t k = 0; status == 0 && k < stored[1].count; k++) {
        const cow_tree_chunk *chunk = &stored[1].chunk[k];
        const bool both = cow_map_get(&place, key_of(&stored[1], k), &at);
        const bool same = both && encoded && at > 0 && chunk->size <= room &&
                          stored[0].chunk[at - 1].size == chunk->size && same_bytes(dataset, chunk, bytes);
        status = visit(context, chunk->offset, same);
        if (both)
            cli_map_put(&place, key_of(&stored[1], k), 0);
    }
    for (size_t k = 0; status == 0 && k < stored[0].count; k++)
        if (cow_map_get(&place, key_of(&stored[0], k), &at) && at > 0)
            status = visit(context, stored[0].chunk[k].offset, false);
    cow_map_free(&place);
    free(bytes[0]);
    free(bytes[1]);
    return status;
}
