/* What a dataset in chunks holds, told without reading it: by what the table of slots says that each chunk is, down the index.
 *
 * A composed chunk is read and told as a slot with its content would be. Nodes, composed chunks and objects that versions share are
 * looked at once in a file. Only good for comparing two files: other chunks, another
 * level of the index, or another part of an edge chunk may hold the same elements. That the chunks are what the table of slots
 * says is for `verify` to find out. */
#include "hash.h"

#include "composed.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/ids.h"
#include "store/format.h"

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
    cow_digest *digest;   /* of all of composed chunks */
    size_t digests, digest_room;
    cow_map composed; /* offset in the index -> in `digest` */
    known_pool *pool;
    size_t pools;
    cli_slots *slots; /* NULL: no composed chunk was met */
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
    if (known->slots != NULL)
        cli_slots_free(known->slots);
    free(known->digest);
    cow_map_free(&known->composed);
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
        address = cow_address(&info.token);
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

/* NULL: cow_error. */
static const cow_digest *digest_composed(const cli_hash_walk *w, const cow_grid *grid, uint64_t pool, uint64_t entry)
{
    cli_hash_known *known = w->known;
    uint64_t *met = cow_map_at(&known->composed, cow_composed_offset(entry));
    cow_composed composed;
    cow_piecing cut;
    cow_digest digest;
    size_t size, element;
    uint8_t *bytes;
    int status;

    if (met != NULL)
        return &known->digest[*met];
    if (known->slots == NULL)
        known->slots = cli_slots_new(&w->state->file);
    if (cli_slots_composed(known->slots, w->state->index, grid, pool, entry, NULL, &composed, &cut) < 0)
        return NULL;
    element = size = cli_slots_chunk_bytes(known->slots, pool);
    for (unsigned d = 0; d < grid->rank; d++)
        element /= grid->chunk[d];
    bytes = cli_alloc(size, 1);
    status = cli_slots_put_together(known->slots, &composed, &cut, bytes) < 0
                 ? -1
                 : cow_digest_chunk(bytes, grid->rank, grid->chunk, grid->chunk, element, &digest);
    free(bytes);
    if (status < 0)
        return NULL;
    CLI_RESERVE(known->digest, known->digest_room, known->digests, 1);
    cli_map_put(&known->composed, cow_composed_offset(entry), known->digests);
    known->digest[known->digests] = digest;
    return &known->digest[known->digests++];
}

/* The row that a slot would have with all of such a chunk in it. */
static int put_composed(const cli_hash_walk *w, const cow_grid *grid, uint64_t pool, uint64_t entry, EVP_MD_CTX *sha)
{
    const cow_digest *digest = digest_composed(w, grid, pool, entry);
    uint8_t row[COW_SLOT_TRIMMED_AT + 4 * COW_MAX_RANK];

    if (digest == NULL)
        return -1;
    memcpy(row + COW_SLOT_HASH_AT, digest->hash, COW_HASH_SIZE);
    cow_put64(row + COW_SLOT_CHECKSUM_AT, digest->checksum);
    for (unsigned d = 0; d < grid->rank; d++)
        cow_put32(row + COW_SLOT_TRIMMED_AT + 4 * d, (uint32_t)grid->chunk[d]);
    cli_sha_put(sha, row, COW_SLOT_TRIMMED_AT + 4 * (size_t)grid->rank);
    return 0;
}

static int hash_node(const cli_hash_walk *w, const cow_grid *grid, uint64_t id, const known_pool *pool, uint64_t offset,
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
        else if (node->level == 0 && cow_is_composed(entry))
            status = put_composed(w, grid, id, entry, sha);
        else if (node->level == 0 || entry >= offset) /* children stand before their parents: no circles */
            status = cow_error(COW_CORRUPT, "the index node at offset %llu names what is not there",
                               (unsigned long long)offset);
        else if ((status = hash_node(w, grid, id, pool, entry, below)) == 0)
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
            ((pool = pool_of(w, root.pool)) == NULL || hash_node(w, &grid, root.pool, pool, root.top, hash) < 0))
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
