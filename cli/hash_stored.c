/* What a dataset in chunks holds, told without reading it: by what the table of slots says that each chunk is, down the index.
 *
 * Nodes and objects that versions share are looked at once in a file. Only good for comparing two files: other chunks, another
 * level of the index, or another part of an edge chunk may hold the same elements. That the chunks are what the table of slots
 * says is for `verify` to find out. */
#include "hash.h"

#include "base/error.h"
#include "base/ids.h"
#include "pools.h"

#include <stdlib.h>
#include <string.h>

#define BATCH 4096 /* rows of slots that are read together */

typedef struct known_pool {
    uint8_t *rows; /* NULL: not read yet */
    size_t row_size, count;
} known_pool;

struct cli_hash_known {
    uint8_t (*hash)[HASH];
    size_t count, room;
    cow_map node, object; /* offset in the index, address -> in `hash` */
    known_pool *pool;
    size_t pools;
};

cli_hash_known *cli_hash_known_new(void)
{
    return cli_alloc(1, sizeof(cli_hash_known));
}

void cli_hash_known_free(cli_hash_known *known)
{
    for (size_t i = 0; i < known->pools; i++)
        free(known->pool[i].rows);
    free(known->pool);
    free(known->hash);
    cow_map_free(&known->node);
    cow_map_free(&known->object);
    free(known);
}

static bool find(const cli_hash_known *known, cow_map *map, uint64_t key, uint8_t hash[HASH])
{
    uint64_t at;
    bool found = cow_map_get(map, key, &at);

    if (found)
        memcpy(hash, known->hash[at], HASH);
    return found;
}

static void keep(cli_hash_known *known, cow_map *map, uint64_t key, const uint8_t hash[HASH])
{
    CLI_RESERVE(known->hash, known->room, known->count, 1);
    cli_map_put(map, key, known->count);
    memcpy(known->hash[known->count++], hash, HASH);
}

/* ---- objects ---- */

/* Of the snapshot, which versions share. */
static uint64_t address_of(const cli_hash_walk *w, const char *path)
{
    char *full = cli_state_path(w->state, path);
    uint64_t address = UINT64_MAX;
    H5O_info2_t info;

    if (H5Oget_info_by_name3(w->state->file.id, full, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0)
        address = cli_address(&info.token);
    else
        H5Eclear2(H5E_DEFAULT);
    free(full);
    return address;
}

bool cli_hash_met(const cli_hash_walk *w, const char *path, uint8_t hash[HASH])
{
    uint64_t address = address_of(w, path);

    return address != UINT64_MAX && find(w->known, &w->known->object, address, hash);
}

void cli_hash_meet(const cli_hash_walk *w, const char *path, const uint8_t hash[HASH])
{
    uint64_t address = address_of(w, path);

    if (address != UINT64_MAX)
        keep(w->known, &w->known->object, address, hash);
}

/* ---- chunks ---- */

/* NULL: cow_error. */
static const known_pool *pool_of(const cli_hash_walk *w, uint64_t id)
{
    cli_hash_known *known = w->known;
    known_pool *pool;
    cow_table *table;
    hid_t raw;
    int status = 0;

    if (id < known->pools && known->pool[id].rows != NULL)
        return &known->pool[id];
    if ((raw = cli_raw_open(&w->state->file, id)) < 0) /* that looks whether there is such a pool */
        return cow_error_native("a pool cannot be opened"), NULL;
    table = cli_slots_open(&w->state->file, id, raw);
    H5Dclose(raw);
    if (table == NULL)
        return NULL;
    if (id >= known->pools) {
        known_pool *more = cli_alloc(id + 1, sizeof *more);
        if (known->pools > 0)
            memcpy(more, known->pool, known->pools * sizeof *more);
        free(known->pool);
        known->pool = more;
        known->pools = id + 1;
    }
    pool = &known->pool[id];
    *pool = (known_pool){cli_alloc(table->rows + 1, table->row_size), table->row_size, table->rows};
    for (uint64_t at = 0, n; status == 0 && at < table->rows; at += n) {
        n = table->rows - at < BATCH ? table->rows - at : BATCH;
        status = table->read(table, at, n, pool->rows + at * table->row_size);
    }
    table->close(table);
    if (status == 0)
        return pool;
    free(pool->rows);
    pool->rows = NULL;
    return NULL;
}

static int hash_node(const cli_hash_walk *w, const cow_grid *grid, const known_pool *pool, uint64_t offset,
                     uint8_t hash[HASH])
{
    cow_node *node;
    EVP_MD_CTX *sha;
    int status = 0;

    if (find(w->known, &w->known->node, offset, hash))
        return 0;
    node = cli_alloc(1, sizeof *node); /* not on the stack: the tree may be deep */
    sha = cli_sha_open();
    status = cow_node_read(w->state->index, grid, offset, node);
    if (status == 0)
        cli_sha_number(sha, node->level);
    for (unsigned i = 0; status == 0 && i < node->entries; i++) {
        uint64_t entry = node->entry[i];
        uint8_t below[HASH];
        cli_sha_number(sha, entry != COW_HOLE);
        if (entry == COW_HOLE)
            continue;
        if (node->level == 0 && entry < pool->count)
            cli_sha_put(sha, pool->rows + entry * pool->row_size, pool->row_size);
        else if (node->level == 0 || entry >= offset) /* children stand before their parents: no circles */
            status = cow_error(COW_CORRUPT, "the index node at offset %llu names what is not there",
                               (unsigned long long)offset);
        else if ((status = hash_node(w, grid, pool, entry, below)) == 0)
            cli_sha_put(sha, below, HASH);
    }
    cli_sha_close(sha, hash);
    if (status == 0)
        keep(w->known, &w->known->node, offset, hash);
    free(node);
    return status;
}

/* What stands in holes. 1; 0: its bytes do not tell; -1. */
static int put_fill(EVP_MD_CTX *sha, hid_t dataset)
{
    hid_t dcpl = H5Dget_create_plist(dataset), type = H5Dget_type(dataset);
    H5D_fill_value_t defined;
    int status = dcpl < 0 || type < 0 || H5Pfill_value_defined(dcpl, &defined) < 0 ? -1 : 1;

    if (status > 0)
        cli_sha_number(sha, (uint64_t)defined);
    if (status > 0 && defined == H5D_FILL_VALUE_USER_DEFINED) {
        size_t size = H5Tget_size(type);
        void *fill = cli_alloc(1, size);
        if (cow_type_has(type, COW_PART_LENGTHS) != 0)
            status = 0;
        else if (H5Pget_fill_value(dcpl, type, fill) < 0)
            status = -1;
        else
            cli_sha_bytes(sha, fill, size);
        free(fill);
    }
    cow_close(type, dcpl);
    return status;
}

int cli_hash_stored(const cli_hash_walk *w, EVP_MD_CTX *sha, const char *path)
{
    char *full = cli_state_path(w->state, path);
    hid_t dataset = H5Oopen(w->state->file.id, full, H5P_DEFAULT);
    const known_pool *pool;
    uint8_t hash[HASH] = {0};
    cow_grid grid;
    cow_root root;
    int status = dataset < 0 ? -1 : cli_state_root(w->state, dataset, &root);

    free(full);
    if (status > 0)
        status = put_fill(sha, dataset);
    if (status > 0) {
        cli_grid(&root, &grid);
        if (root.top != COW_NO_NODE &&
            ((pool = pool_of(w, root.pool)) == NULL || hash_node(w, &grid, pool, root.top, hash) < 0))
            status = -1;
    }
    if (status > 0) {
        for (unsigned d = 0; d < root.rank; d++)
            cli_sha_number(sha, root.chunk[d]);
        cli_sha_put(sha, hash, HASH);
    }
    if (dataset >= 0)
        H5Oclose(dataset);
    return status;
}
