/* See head_index.h. */
#include "history/head_index.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "h5/chunk_tree.h"
#include "history/internal.h"
#include "h5/checksum.h"
#include "h5/chunk_index.h"

#include <stdlib.h>
#include <string.h>

/* ---- where nodes are ---- */

typedef struct place_of_nodes {
    cow_native_bytes bytes;
    cow_source source;
    cow_chunk_tree_space space;
} place_of_nodes;

static int write_node(void *context, uint64_t address, const void *bytes, size_t size)
{
    const place_of_nodes *p = context;

    return cow_bytes_write(&p->bytes, address, bytes, size);
}

static int take_node(void *context, size_t size, uint64_t *address)
{
    const place_of_nodes *p = context;

    *address = cow_bytes_take(&p->bytes, size, true);
    return *address == UINT64_MAX ? -1 : 0;
}

static int give_node(void *context, uint64_t address, size_t size)
{
    (void)context;
    (void)address;
    (void)size;
    return 0; /* its place is not used again yet */
}

static int find_places(cow_file *file, place_of_nodes *p)
{
    if (!cow_native_file_bytes(file->native, &p->bytes))
        return cow_error(COW_UNSUPPORTED, "%s: the bytes of the file cannot be had", file->name);
    p->source = cow_bytes_source(&p->bytes);
    p->space = (cow_chunk_tree_space){&p->source, write_node, take_node, give_node, p};
    return 0;
}

static int form_of(cow_file *file, const cow_dataset_header *head, cow_chunk_form *form)
{
    return cow_chunk_form_of(head, cow_native_file_half(file->native), form)
               ? 0
               : cow_error(COW_CORRUPT, "%s: the header of a head is damaged; try: h5cow verify %s", file->name,
                           file->name);
}

int cow_head_index_create(cow_file *file, cow_dataset_header *head, uint64_t id, uint64_t *root)
{
    place_of_nodes p;
    cow_chunk_form form;

    head->index = 0; /* it has one now */
    return find_places(file, &p) < 0 || form_of(file, head, &form) < 0
               ? -1
               : cow_chunk_tree_create(&form, &p.space, id, root);
}

int cow_head_index_owner(cow_file *file, const cow_source *source, const cow_dataset_header *head, uint64_t *id)
{
    cow_chunk_form form;

    return cow_chunk_form_of(head, cow_native_file_half(file->native), &form)
               ? cow_chunk_tree_owner(&form, source, head->index, id)
               : 0;
}

/* ---- changes ---- */

struct cow_head_change {
    cow_dataset *dataset; /* that has the index which is followed */
    cow_index *former;    /* what the head's index tells of now; NULL: nothing is known of that */
    place_of_nodes place;
    cow_chunk_tree *tree;
    uint64_t *gone; /* [count][rank], in elements */
    size_t count, room;
};

static int damaged(const cow_dataset *dataset)
{
    return cow_error(COW_CORRUPT, "%s: the index of its head is damaged; try: h5cow verify %s", dataset->array.label,
                     dataset->file->name);
}

/* Where the index of the head at ADDRESS is. 0 or -1. */
static int find_root(const cow_head_change *c, uint64_t address, cow_chunk_form *form, uint64_t *root)
{
    const cow_array *array = &c->dataset->array;
    cow_dataset_header head;
    int status = cow_dataset_header_read(&c->place.source, address, &head);

    if (status < 0)
        return -1;
    if (status == 0 || head.layout != COW_DATASET_HEADER_TREE || head.rank != array->grid.rank ||
        memcmp(head.chunk, array->grid.chunk, head.rank * sizeof *head.chunk) != 0)
        return damaged(c->dataset);
    *root = head.index;
    return form_of(c->dataset->file, &head, form);
}

static void end(cow_head_change *c)
{
    cow_chunk_tree_close(c->tree);
    cow_index_close(c->former);
    free(c->gone);
    free(c);
}

/* FORMER: the root record of what it tells of now; COW_NO_NODE: of nothing. */
static int open_former(cow_head_change *c, uint64_t former)
{
    cow_root root = {.rank = c->dataset->array.grid.rank, .pool = c->dataset->row.pool, .top = COW_NO_NODE};

    if (former != COW_NO_NODE && cow_root_read(c->dataset->file->index, former, &root) < 0)
        return -1;
    if (root.pool != c->dataset->row.pool)
        return 0;
    c->former = cow_index_open(c->dataset->file->index, &c->dataset->array.grid, &root);
    return c->former == NULL ? -1 : 0;
}

static cow_head_change *begin(cow_dataset *dataset, uint64_t address, uint64_t id, uint64_t former)
{
    cow_head_change *c = calloc(1, sizeof *c);
    cow_chunk_form form;
    uint64_t owner = 0, root = UINT64_MAX;
    int status;

    if (c == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for a commit", dataset->array.label);
        return NULL;
    }
    c->dataset = dataset;
    if (find_places(dataset->file, &c->place) == 0 && find_root(c, address, &form, &root) == 0 &&
        (status = cow_chunk_tree_open(&form, &c->place.space, root, &c->tree, &owner)) >= 0) {
        if (status == 0 || owner != id)
            damaged(dataset);
        else if (open_former(c, former) == 0)
            return c;
    }
    end(c);
    return NULL;
}

cow_head_change *cow_head_index_begin(cow_dataset *dataset)
{
    return begin(dataset, dataset->address, dataset->id, dataset->root);
}

/* ---- wholes ---- */

/* A chunk of a base and pieces is in no native index, so the head has all of it at a place of its own. Before the chunk stands how
 * much room it has. */
#define WHOLE      24
#define WHOLE_SIGN "h5cowwh1"

static void make_sign(uint8_t sign[WHOLE], uint64_t address, uint64_t room)
{
    uint8_t bytes[24];

    memcpy(bytes, WHOLE_SIGN, 8);
    cow_put64(bytes + 8, room);
    cow_put64(bytes + 16, address);
    memcpy(sign, bytes, 16);
    cow_put64(sign + 16, cow_metadata_checksum(bytes, sizeof bytes));
}

/* The room of the whole at ADDRESS; 0: a slot is there, or nothing. */
static uint64_t room_of(const cow_head_change *c, uint64_t address)
{
    uint8_t sign[WHOLE], expected[WHOLE];

    if (address == UINT64_MAX || address < WHOLE ||
        !cow_bytes_look(&c->place.bytes, address - WHOLE, sign, sizeof sign))
        return 0;
    make_sign(expected, address, cow_get64(sign + 8));
    return memcmp(sign, expected, sizeof sign) == 0 ? cow_get64(sign + 8) : 0;
}

/* ROOM: of the whole that is there, or 0. */
static int write_whole(const cow_head_change *c, const void *encoded, uint64_t room, cow_chunk_place *place)
{
    const cow_native_bytes *bytes = &c->place.bytes;
    uint64_t address;
    uint8_t sign[WHOLE];

    if (place->size > room) {
        room = place->size + place->size / 8;
        if ((address = cow_bytes_take(bytes, WHOLE + room, true)) == UINT64_MAX)
            return -1;
        place->address = address + WHOLE;
        make_sign(sign, place->address, room);
        if (cow_bytes_write(bytes, address, sign, sizeof sign) < 0)
            return -1;
    }
    return cow_bytes_write(bytes, place->address, encoded, (size_t)place->size);
}

/* The chunk at AT has the composed ENTRY; HAD: it has a whole, of which no byte of a slot may be mistaken for the sign. */
static int put_whole(cow_head_change *c, const uint64_t at[], const uint64_t chunk[], uint64_t entry, bool had)
{
    cow_array *array = &c->dataset->array;
    cow_chunk_place place;
    uint64_t room;
    void *encoded;
    size_t size;
    int status;

    if ((status = cow_chunk_tree_find(c->tree, at, &place)) <= 0)
        return status < 0 ? -1 : damaged(c->dataset);
    room = had ? room_of(c, place.address) : 0;
    if (cow_array_chunk_encoded(array, chunk, entry, &encoded, &size, &place.mask) < 0)
        return -1;
    place.size = size;
    status = write_whole(c, encoded, room, &place);
    free(encoded);
    if (status == 0 && (status = cow_chunk_tree_put(c->tree, at, &place)) == 0)
        return damaged(c->dataset);
    return status < 0 ? -1 : 0;
}

/* CHUNK has that SLOT, or none, from now on. */
static int put_chunk(cow_head_change *c, const uint64_t chunk[], uint64_t slot)
{
    const cow_grid *grid = &c->dataset->array.grid;
    cow_pool *pool = c->dataset->array.pool;
    cow_chunk_place place = {.address = UINT64_MAX};
    uint64_t at[COW_MAX_RANK], former = COW_HOLE;
    int status;

    if (c->former != NULL && cow_index_get(c->former, chunk, &former) < 0)
        return -1;
    if (c->former != NULL && former == slot)
        return 0;
    for (unsigned d = 0; d < grid->rank; d++)
        at[d] = chunk[d] * grid->chunk[d];
    if (cow_is_composed(slot))
        return put_whole(c, at, chunk, slot, cow_is_composed(former));
    if (slot != COW_HOLE && cow_native_chunk_store_place(cow_pool_store(pool), cow_pool_slots(pool), slot, &place) < 0)
        return -1;
    status = cow_chunk_tree_put(c->tree, at, &place);
    return status == 0 ? damaged(c->dataset) : status < 0 ? -1 : 0;
}

int cow_head_index_leaf(cow_head_change *c, const cow_node *leaf)
{
    const cow_grid *grid = &c->dataset->array.grid;

    for (unsigned i = 0; i < leaf->entries; i++) {
        uint64_t chunk[COW_MAX_RANK];
        bool inside = true;

        cow_grid_tile_offset(grid, i, chunk);
        for (unsigned d = 0; d < grid->rank; d++) {
            chunk[d] += leaf->origin[d];
            inside = inside && chunk[d] <= (UINT64_MAX - 1) / grid->chunk[d];
        }
        if (inside && put_chunk(c, chunk, leaf->entry[i]) < 0)
            return -1;
    }
    return 0;
}

static int note_gone(void *context, const uint64_t at[], const cow_chunk_place *place)
{
    cow_head_change *c = context;
    const cow_grid *grid = &c->dataset->array.grid;
    uint64_t chunk[COW_MAX_RANK], slot;

    (void)place;
    for (unsigned d = 0; d < grid->rank; d++)
        chunk[d] = at[d] / grid->chunk[d];
    if (cow_index_get(c->dataset->array.index, chunk, &slot) < 0)
        return -1;
    if (slot != COW_HOLE)
        return 1;
    if (cow_vector_reserve(&c->gone, &c->room, c->count, 1, grid->rank * sizeof *at) < 0)
        return cow_error(COW_MEMORY, "%s: no memory for a commit", c->dataset->array.label);
    memcpy(c->gone + c->count++ * grid->rank, at, grid->rank * sizeof *at);
    return 1;
}

/* Those that the index does not have any more. */
static int take_out_gone(cow_head_change *c)
{
    const cow_chunk_tree_visitor visitor = {.chunk = note_gone, .context = c};
    const cow_chunk_place none = {.address = UINT64_MAX};
    int status = cow_chunk_tree_visit(c->tree, &visitor);

    for (size_t i = 0; status > 0 && i < c->count; i++)
        status = cow_chunk_tree_put(c->tree, c->gone + i * c->dataset->array.grid.rank, &none);
    if (status > 0)
        status = cow_chunk_tree_flush(c->tree);
    return status == 0 ? damaged(c->dataset) : status;
}

int cow_head_index_end(cow_head_change *c, bool all, int status)
{
    if (c == NULL)
        return status;
    if (status == 0 && (cow_chunk_tree_flush(c->tree) < 0 || (all && take_out_gone(c) < 0)))
        status = -1;
    end(c);
    return status;
}

static int put_next(void *context, const uint64_t chunk[], uint64_t slot)
{
    return put_chunk(context, chunk, slot);
}

int cow_head_index_follow(uint64_t head, uint64_t id, uint64_t former, cow_dataset *source)
{
    const cow_array *array = &source->array;
    cow_head_change *c = begin(source, head, id, former);
    uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];

    if (c == NULL)
        return -1;
    for (unsigned d = 0; d < array->grid.rank; d++)
        count[d] = cow_grid_chunks_along(array->extent[d], array->grid.chunk[d]);
    return cow_head_index_end(c, true, cow_index_visit(array->index, first, count, put_next, c) == 0 ? 0 : -1);
}
