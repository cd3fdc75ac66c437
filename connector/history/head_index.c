/* See head_index.h. */
#include "history/head_index.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/ids.h"
#include "base/vector.h"
#include "h5/chunk_tree.h"
#include "history/internal.h"
#include "journal/driver.h"
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

static int read_node(void *context, uint64_t address, void *bytes, size_t size)
{
    const place_of_nodes *p = context;

    return cow_journal_look(p->bytes.journal, p->bytes.base + address, bytes, size)
               ? 0
               : cow_error(COW_CORRUPT, "the index of a head cannot be read at %llu", (unsigned long long)address);
}

static int write_node(void *context, uint64_t address, const void *bytes, size_t size)
{
    const place_of_nodes *p = context;

    return cow_journal_write(p->bytes.journal, p->bytes.base + address, bytes, size);
}

static int take_node(void *context, size_t size, uint64_t *address)
{
    const place_of_nodes *p = context;

    *address = cow_journal_driver_allocate(p->bytes.fileno, size, true);
    if (*address == UINT64_MAX)
        return -1;
    *address -= p->bytes.base;
    return 0;
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
    p->source = (cow_source){.context = p, .end = UINT64_MAX / 2, .read = read_node};
    p->space = (cow_chunk_tree_space){&p->source, write_node, take_node, give_node, p};
    return 0;
}

/* K of the superblock. */
static int half_of(cow_file *file, unsigned *half)
{
    hid_t fcpl = cow_native_file_fcpl(file->native);
    int status = fcpl < 0 || H5Pget_istore_k(fcpl, half) < 0 ? -1 : 0;

    cow_close(fcpl);
    return status < 0 ? cow_error_native("%s: cannot get the size of its indexes", file->name) : 0;
}

static int form_of(cow_file *file, unsigned rank, const uint64_t chunk[], size_t element, cow_chunk_form *form)
{
    *form = (cow_chunk_form){.rank = rank, .element = (uint32_t)element, .width = 8};
    memcpy(form->chunk, chunk, rank * sizeof *chunk);
    return half_of(file, &form->half);
}

int cow_head_index_create(cow_file *file, unsigned rank, const uint64_t chunk[], size_t element, uint64_t id,
                          uint64_t *root)
{
    place_of_nodes p;
    cow_chunk_form form;

    return find_places(file, &p) < 0 || form_of(file, rank, chunk, element, &form) < 0
               ? -1
               : cow_chunk_tree_create(&form, &p.space, id, root);
}

int cow_head_index_label(cow_file *file, const cow_source *source, const cow_dataset_header *head, uint64_t *id)
{
    const cow_chunk_tree_space space = {.source = source};
    cow_chunk_tree *tree;
    cow_chunk_form form;
    int status;

    if (head->index == UINT64_MAX)
        return 0;
    if (form_of(file, head->rank, head->chunk, (size_t)head->element_size, &form) < 0)
        return -1;
    status = cow_chunk_tree_open(&form, &space, head->index, &tree, id);
    cow_chunk_tree_close(tree);
    return status;
}

int cow_head_index_find(cow_file *file, uint64_t address, uint64_t *id)
{
    place_of_nodes p;
    cow_dataset_header head;
    int status;

    if (find_places(file, &p) < 0) { /* so none of ours is in it */
        cow_error_clear();
        return 0;
    }
    if ((status = cow_dataset_header_read(&p.source, address, &head)) < 0)
        return -1;
    return status == 0 || head.layout != COW_DATASET_HEADER_TREE ? 0 : cow_head_index_label(file, &p.source, &head, id);
}

/* ---- changes ---- */

struct cow_head_change {
    cow_dataset *dataset; /* that has the index which is followed */
    bool all;             /* all of it: nothing is known of what the head has */
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

static cow_head_change *begin(cow_dataset *dataset, uint64_t address, uint64_t id)
{
    cow_head_change *c = calloc(1, sizeof *c);
    const cow_array *array = &dataset->array;
    cow_dataset_header head;
    cow_chunk_form form;
    uint64_t label;
    int status;

    if (c == NULL) {
        cow_error(COW_MEMORY, "%s: no memory for a commit", array->label);
        return NULL;
    }
    c->dataset = dataset;
    if (find_places(dataset->file, &c->place) < 0 ||
        (status = cow_dataset_header_read(&c->place.source, address, &head)) < 0)
        goto failed;
    if (status == 0 || head.layout != COW_DATASET_HEADER_TREE || head.rank != array->grid.rank) {
        damaged(dataset);
        goto failed;
    }
    if (form_of(dataset->file, array->grid.rank, array->grid.chunk, (size_t)head.element_size, &form) < 0 ||
        (status = cow_chunk_tree_open(&form, &c->place.space, head.index, &c->tree, &label)) < 0)
        goto failed;
    if (status > 0 && label == id)
        return c;
    damaged(dataset);
failed:
    cow_chunk_tree_close(c->tree);
    free(c);
    return NULL;
}

cow_head_change *cow_head_index_begin(cow_dataset *dataset)
{
    return begin(dataset, dataset->address, dataset->id);
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
    const cow_native_bytes *bytes = &c->place.bytes;
    uint8_t sign[WHOLE], expected[WHOLE];

    if (address == UINT64_MAX || address < WHOLE ||
        !cow_journal_look(bytes->journal, bytes->base + address - WHOLE, sign, sizeof sign))
        return 0;
    make_sign(expected, address, cow_get64(sign + 8));
    return memcmp(sign, expected, sizeof sign) == 0 ? cow_get64(sign + 8) : 0;
}

static int write_whole(const cow_head_change *c, const void *encoded, cow_chunk_place *place)
{
    const cow_native_bytes *bytes = &c->place.bytes;
    uint64_t room = room_of(c, place->address), address;
    uint8_t sign[WHOLE];

    if (place->size > room) {
        room = place->size + place->size / 8;
        if ((address = cow_journal_driver_allocate(bytes->fileno, WHOLE + room, true)) == UINT64_MAX)
            return -1;
        place->address = address - bytes->base + WHOLE;
        make_sign(sign, place->address, room);
        if (cow_journal_write(bytes->journal, address, sign, sizeof sign) < 0)
            return -1;
    }
    return cow_journal_write(bytes->journal, bytes->base + place->address, encoded, (size_t)place->size);
}

/* The chunk at AT has the composed ENTRY. */
static int put_whole(cow_head_change *c, const uint64_t at[], uint64_t entry)
{
    cow_array *array = &c->dataset->array;
    uint64_t chunk[COW_MAX_RANK];
    cow_chunk_place place;
    void *encoded;
    size_t size;
    int status;

    for (unsigned d = 0; d < array->grid.rank; d++)
        chunk[d] = at[d] / array->grid.chunk[d];
    if ((status = cow_chunk_tree_find(c->tree, at, &place)) <= 0)
        return status < 0 ? -1 : damaged(c->dataset);
    if (!c->all && !cow_index_composed_now(array->index, entry) && room_of(c, place.address) > 0)
        return 0;
    if (cow_array_chunk_encoded(array, chunk, entry, &encoded, &size, &place.mask) < 0)
        return -1;
    place.size = size;
    status = write_whole(c, encoded, &place);
    free(encoded);
    if (status == 0 && (status = cow_chunk_tree_put(c->tree, at, &place)) == 0)
        return damaged(c->dataset);
    return status < 0 ? -1 : 0;
}

/* The chunk at AT (elements) has that SLOT, or none. */
static int put_chunk(cow_head_change *c, const uint64_t at[], uint64_t slot)
{
    cow_pool *pool = c->dataset->array.pool;
    cow_chunk_place place = {.address = UINT64_MAX};
    int status;

    if (cow_is_composed(slot))
        return put_whole(c, at, slot);
    if (slot != COW_HOLE && cow_native_chunk_store_place(cow_pool_store(pool), cow_pool_slots(pool), slot, &place) < 0)
        return -1;
    status = cow_chunk_tree_put(c->tree, at, &place);
    return status == 0 ? damaged(c->dataset) : status < 0 ? -1 : 0;
}

int cow_head_index_leaf(cow_head_change *c, const cow_node *leaf)
{
    const cow_grid *grid = &c->dataset->array.grid;
    uint64_t at[COW_MAX_RANK];

    for (unsigned i = 0; i < leaf->entries; i++) {
        uint64_t offset[COW_MAX_RANK];
        bool inside = true;

        cow_grid_tile_offset(grid, i, offset);
        for (unsigned d = 0; inside && d < grid->rank; d++) {
            const uint64_t chunk = leaf->origin[d] + offset[d];

            inside = chunk <= (UINT64_MAX - 1) / grid->chunk[d];
            at[d] = inside ? chunk * grid->chunk[d] : 0;
        }
        if (inside && put_chunk(c, at, leaf->entry[i]) < 0)
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
    int status = cow_chunk_tree_visit(c->tree, &visitor);

    for (size_t i = 0; status > 0 && i < c->count; i++)
        if (put_chunk(c, c->gone + i * c->dataset->array.grid.rank, COW_HOLE) < 0)
            return -1;
    return status == 0 ? damaged(c->dataset) : status;
}

int cow_head_index_end(cow_head_change *c, bool all, int status)
{
    if (c == NULL)
        return status;
    if (status == 0 &&
        (cow_chunk_tree_flush(c->tree) < 0 || (all && (take_out_gone(c) < 0 || cow_chunk_tree_flush(c->tree) < 0))))
        status = -1;
    cow_chunk_tree_close(c->tree);
    free(c->gone);
    free(c);
    return status;
}

static int put_next(void *context, const uint64_t chunk[], uint64_t slot)
{
    cow_head_change *c = context;
    const cow_grid *grid = &c->dataset->array.grid;
    uint64_t at[COW_MAX_RANK];

    for (unsigned d = 0; d < grid->rank; d++)
        at[d] = chunk[d] * grid->chunk[d];
    return put_chunk(c, at, slot);
}

int cow_head_index_follow(uint64_t head, uint64_t id, cow_dataset *source)
{
    const cow_array *array = &source->array;
    cow_head_change *c = begin(source, head, id);
    uint64_t first[COW_MAX_RANK] = {0}, count[COW_MAX_RANK];

    if (c == NULL)
        return -1;
    c->all = true;
    for (unsigned d = 0; d < array->grid.rank; d++)
        count[d] = cow_grid_chunks_along(array->extent[d], array->grid.chunk[d]);
    return cow_head_index_end(c, true, cow_index_visit(array->index, first, count, put_next, c) == 0 ? 0 : -1);
}
