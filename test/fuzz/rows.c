/* Rows of a slot table: a pool that is opened over them, asked for every row and every hash. */
#include "fuzz.h"

#include "base/error.h"
#include "store/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned rank = size == 0 ? 1 : 1 + data[0] % COW_MAX_RANK;
    size_t row = cow_slot_row_size(rank), rows = size == 0 ? 0 : (size - 1) / row;
    cow_table *table = cow_table_memory(row);
    cow_pool *pool;
    cow_slot slot = {0};
    uint64_t found;

    if (table == NULL || cow_table_append(table, rows, data + 1, NULL) < 0)
        abort();
    if ((pool = cow_pool_open("fuzz", rank, table, cow_chunk_store_memory())) == NULL)
        goto done;
    for (uint64_t i = 0; i < rows + 2; i++) {
        if (cow_pool_row(pool, i, &slot) < 0)
            continue;
        assert(i < rows);
        if (cow_pool_find(pool, &slot.digest, &found) == 0 && found != COW_NO_SLOT)
            assert(found < rows);
    }
    if (cow_pool_add(pool, &slot, &found) == 0)
        cow_pool_drop(pool, found);
    cow_pool_close(pool);
done:
    cow_error_clear();
    return 0;
}

size_t fuzz_first_input(unsigned n, uint8_t *to, size_t room)
{
    (void)room;
    if (n > 0)
        return 0;
    memset(to, 7, 1 + 5 * cow_slot_row_size(2));
    to[0] = 1;
    return 1 + 5 * cow_slot_row_size(2);
}
