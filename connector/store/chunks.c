/* A chunk store in memory, for the tests of this room and of those above it. Contract: pool.h. */
#include "store/pool.h"

#include "base/error.h"
#include "base/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory_chunk {
    uint8_t *bytes; /* NULL: never written */
    size_t size;
    uint32_t filter_mask;
} memory_chunk;

typedef struct memory_store {
    cow_chunk_store store;
    memory_chunk *chunks;
    size_t room; /* those never written are zero */
} memory_store;

static memory_chunk *memory_chunk_at(cow_chunk_store *store, uint64_t slot)
{
    memory_store *memory = (memory_store *)store;

    if (slot < memory->room && memory->chunks[slot].bytes)
        return &memory->chunks[slot];
    cow_error(COW_CORRUPT, "slot %" PRIu64 " was never written", slot);
    return NULL;
}

static int memory_size(cow_chunk_store *store, uint64_t slot, size_t *bytes)
{
    const memory_chunk *chunk = memory_chunk_at(store, slot);

    if (!chunk)
        return -1;
    *bytes = chunk->size;
    return 0;
}

static int memory_read(cow_chunk_store *store, uint64_t slot, void *bytes, size_t size, uint32_t *filter_mask)
{
    const memory_chunk *chunk = memory_chunk_at(store, slot);

    if (!chunk)
        return -1;
    if (size != chunk->size)
        return cow_error(COW_CORRUPT, "slot %" PRIu64 " holds %zu bytes, not %zu", slot, chunk->size, size);
    memcpy(bytes, chunk->bytes, size);
    *filter_mask = chunk->filter_mask;
    return 0;
}

static int memory_write(cow_chunk_store *store, uint64_t slot, const void *bytes, size_t size, uint32_t filter_mask)
{
    memory_store *memory = (memory_store *)store;
    size_t known = memory->room;
    uint8_t *copy = NULL;

    if (COW_RESERVE(memory->chunks, memory->room, slot, 1) < 0)
        return cow_error(COW_MEMORY, "no memory for slot %" PRIu64, slot);
    if (known < memory->room)
        memset(memory->chunks + known, 0, (memory->room - known) * sizeof *memory->chunks);
    copy = malloc(size > 0 ? size : 1);
    if (!copy)
        return cow_error(COW_MEMORY, "no memory for a chunk of %zu bytes", size);
    if (size > 0)
        memcpy(copy, bytes, size);
    free(memory->chunks[slot].bytes);
    memory->chunks[slot] = (memory_chunk){.bytes = copy, .size = size, .filter_mask = filter_mask};
    return 0;
}

static void memory_close(cow_chunk_store *store)
{
    memory_store *memory = (memory_store *)store;

    for (size_t i = 0; i < memory->room; i++)
        free(memory->chunks[i].bytes);
    free(memory->chunks);
    free(memory);
}

cow_chunk_store *cow_chunk_store_memory(void)
{
    memory_store *memory = calloc(1, sizeof *memory);

    if (!memory) {
        cow_error(COW_MEMORY, "no memory for a chunk store");
        return NULL;
    }
    memory->store =
        (cow_chunk_store){.size = memory_size, .read = memory_read, .write = memory_write, .close = memory_close};
    return &memory->store;
}
