/* What is stored in the pools: for each slot the bytes of its chunk. */
#ifndef CLI_POOLS_H
#define CLI_POOLS_H

#include "common.h"

#include "layout/layout.h"

#include "base/digest.h"
#include "store/index.h"

typedef struct cli_pool {
    uint64_t id;
    hid_t raw, type, dcpl; /* /_versioned_data/raw/<id> */
    unsigned rank;
    uint64_t chunk[COW_MAX_RANK]; /* elements */
    size_t element_size, chunk_bytes;
    bool heap;       /* variable-length or new-style reference parts: not plain bytes */
    cow_table *rows; /* /_versioned_data/slots/<id> */
    uint64_t slots;  /* rows of it */
    uint64_t room;   /* of these, those that raw data has room for */
    uint64_t *size;  /* room: bytes as stored, 0: never written, or free; NULL: each is asked for */
    uint64_t bytes;  /* as stored, of all slots */
} cli_pool;

/* The chunks of a pool, H5I_INVALID_HID: cannot be opened (cli_reason). */
hid_t cli_raw_open(const cli_file *file, uint64_t id);
/* The rows of its slots: /_versioned_data/slots/ID. RAW: from the function before. NULL: cow_error. */
cow_table *cli_slots_open(const cli_file *file, uint64_t id, hid_t raw);
/* 0; or -1 and WHY. */
int cli_pool_open(const cli_file *file, uint64_t id, cli_pool *pool, char *why, size_t size);
/* The same without the sizes of its chunks, at a cost that does not grow with them. */
int cli_pool_open_bare(const cli_file *file, uint64_t id, cli_pool *pool, char *why, size_t size);
/* Bytes of SLOT, for which there is room, as stored; 0: never written. -1: the chunks cannot be listed (cli_reason). */
int cli_pool_slot_size(const cli_pool *pool, uint64_t slot, uint64_t *size);
void cli_pool_close(cli_pool *pool);
/* ROW of a slot table is that of a slot that holds nothing. */
bool cli_slot_is_free(const uint8_t *row);
/* A slot among those of all POOLS (their number), as one number: which gives back pool and slot as remainder and quotient. */
static inline uint64_t cli_slot_key(uint64_t pools, uint64_t pool, uint64_t slot)
{
    return slot * pools + pool;
}
/* Number of pools. -1 and WHY. */
int cli_pool_count(const cli_file *file, uint64_t *count, char *why, size_t size);
/* Can the rows of that table, of which there are COUNT, be read? 0; or -1 and WHY. */
int cli_pools_read(const cli_file *file, uint64_t count, char *why, size_t size);
/* "shuffle, gzip 4"; "none" */
const char *cli_filters(hid_t dcpl, char *text, size_t size);

/* The chunk grid of a root record. */
void cli_grid(const cow_root *root, cow_grid *grid);

#endif
