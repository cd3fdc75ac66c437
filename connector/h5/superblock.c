/* See superblock.h. */
#include "h5/superblock.h"

#include "base/bytes.h"
#include "h5/checksum.h"

#include <string.h>

#define FLAGS_AT     11
#define FLAG_WRITING 0x05 /* open for writing, open for SWMR writing */

static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

bool cow_superblock_signature(const uint8_t *bytes)
{
    return memcmp(bytes, signature, sizeof signature) == 0;
}

unsigned cow_superblock_version(const uint8_t *superblock)
{
    return superblock[8];
}

bool cow_superblock_wide(const uint8_t *superblock)
{
    return (superblock[8] == 2 || superblock[8] == 3) && superblock[9] == 8 && superblock[10] == 8;
}

size_t cow_superblock_size(const uint8_t *bytes)
{
    if (!cow_superblock_signature(bytes) || bytes[8] != 3 || (bytes[9] != 4 && bytes[9] != 8))
        return 0;
    return 16 + 4 * (size_t)bytes[9];
}

static uint64_t get_address(const uint8_t *superblock, unsigned which)
{
    const uint8_t *at = superblock + 12 + which * superblock[9];
    uint32_t small = cow_get32(at);

    if (superblock[9] == 8)
        return cow_get64(at);
    return small == UINT32_MAX ? UINT64_MAX : small;
}

static void put_address(uint8_t *superblock, unsigned which, uint64_t address)
{
    uint8_t *at = superblock + 12 + which * superblock[9];

    if (superblock[9] == 8)
        cow_put64(at, address);
    else
        cow_put32(at, (uint32_t)address);
}

bool cow_superblock_whole(const uint8_t *superblock)
{
    size_t size = cow_superblock_size(superblock);

    return size > 0 && cow_metadata_whole(superblock, size);
}

uint64_t cow_superblock_base(const uint8_t *superblock)
{
    return get_address(superblock, 0);
}

void cow_superblock_move(uint8_t *superblock, uint64_t base)
{
    if (!cow_superblock_whole(superblock) || get_address(superblock, 0) == base)
        return;
    put_address(superblock, 2, get_address(superblock, 2) - get_address(superblock, 0) + base);
    put_address(superblock, 0, base);
    cow_metadata_sum_up(superblock, cow_superblock_size(superblock));
}

uint64_t cow_superblock_extension(const uint8_t *superblock)
{
    return get_address(superblock, 1);
}

uint64_t cow_superblock_end(const uint8_t *superblock)
{
    return get_address(superblock, 2);
}

void cow_superblock_set_end(uint8_t *superblock, uint64_t end)
{
    put_address(superblock, 2, end);
}

uint64_t cow_superblock_root(const uint8_t *superblock)
{
    return get_address(superblock, 3);
}

void cow_superblock_set_root(uint8_t *superblock, uint64_t root)
{
    put_address(superblock, 3, root);
}

void cow_superblock_new(uint8_t superblock[COW_SUPERBLOCK_MAX], uint64_t base)
{
    memset(superblock, 0, COW_SUPERBLOCK_MAX);
    memcpy(superblock, signature, sizeof signature);
    superblock[8] = 3;
    superblock[9] = superblock[10] = 8;
    put_address(superblock, 0, base);
    put_address(superblock, 1, UINT64_MAX);
}

bool cow_superblock_flagged(const uint8_t *superblock)
{
    return superblock[FLAGS_AT] & FLAG_WRITING;
}

void cow_superblock_set(uint8_t *superblock, uint64_t extension, bool flagged)
{
    put_address(superblock, 1, extension);
    superblock[FLAGS_AT] = (uint8_t)((superblock[FLAGS_AT] & ~FLAG_WRITING) | (flagged ? 1 : 0));
    cow_metadata_sum_up(superblock, cow_superblock_size(superblock));
}

bool cow_superblock_same_but_end(const uint8_t *a, const uint8_t *b)
{
    size_t before_end = 12 + 2 * (size_t)a[9], after_end = before_end + a[9];

    return a[9] == b[9] && memcmp(a, b, before_end) == 0 && memcmp(a + after_end, b + after_end, a[9]) == 0;
}
