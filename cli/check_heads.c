/* Heads that HDF5 reads by itself: does each lead to what its newest version has? See check.h. */
#include "check.h"

#include "composed.h"

#include "base/error.h"
#include "h5/chunk_tree.h"
#include "history/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct looking {
    cli_slots *slots;
    cow_index *index;
    cow_table *log;
    const cow_root *root;
    cow_grid grid;
    cow_native_bytes bytes;
    uint64_t end; /* of the file */
    uint64_t chunks;
    uint64_t chunk[COW_MAX_RANK]; /* that was looked at last */
    const char *bad;              /* what is wrong with it; NULL: nothing is */
} looking;

/* A composed chunk has all of it at a place of its own. */
static bool is_whole(looking *l, uint64_t entry, const cow_chunk_place *place)
{
    const size_t size = cli_slots_chunk_bytes(l->slots, l->root->pool);
    uint8_t *stored, *found, *expected;
    cow_composed composed;
    cow_piecing cut;
    bool same = false;

    if (size == 0 || place->address > l->end || place->size > l->end - place->address)
        return false;
    stored = cli_alloc(place->size, 1);
    found = cli_alloc(size, 1);
    expected = cli_alloc(size, 1);
    if (cow_bytes_look(&l->bytes, place->address, stored, (size_t)place->size) &&
        cli_slots_decode(l->slots, l->root->pool, stored, (size_t)place->size, place->mask, found) == 0)
        same = cli_slots_composed(l->slots, l->log, &l->grid, l->root->pool, entry, l->chunk, &composed, &cut) < 0 ||
               cli_slots_put_together(l->slots, &composed, &cut, expected) < 0 || /* told of where chunks are checked */
               memcmp(found, expected, size) == 0;
    free(expected);
    free(found);
    free(stored);
    return same;
}

/* 1: it is as it should be. */
static int look_at_chunk(void *context, const uint64_t at[], const cow_chunk_place *place)
{
    looking *l = context;
    cow_chunk_place right;
    uint64_t entry;

    for (unsigned d = 0; d < l->grid.rank; d++)
        l->chunk[d] = at[d] / l->grid.chunk[d];
    l->chunks++;
    if (cow_index_get(l->index, l->chunk, &entry) < 0)
        l->bad = "which cannot be read";
    else if (entry == COW_HOLE)
        l->bad = "which has nothing there";
    else if (cow_is_composed(entry)
                 ? !is_whole(l, entry, place)
                 : cli_slots_place(l->slots, l->root->pool, entry, &right) < 0 || right.address != place->address ||
                       right.size != place->size || right.mask != place->mask)
        l->bad = "which has it at another place";
    return l->bad == NULL ? 1 : 2;
}

/* 1; 0: the index itself is damaged. */
static int look_at_tree(looking *l, const cow_chunk_form *form, const cow_source *source, uint64_t root)
{
    const cow_chunk_tree_visitor visitor = {.chunk = look_at_chunk, .context = l};
    const cow_chunk_tree_space space = {.source = source};
    cow_chunk_tree *tree;
    int status = cow_chunk_tree_open(form, &space, root, &tree, NULL);

    if (status > 0)
        status = cow_chunk_tree_visit(tree, &visitor);
    cow_chunk_tree_close(tree);
    return status > 0;
}

static void look(cli_check *check, uint64_t address, const char *path, looking *l)
{
    const cow_source source = cow_bytes_source(&l->bytes);
    cow_dataset_header head;
    cow_chunk_form form;
    char place[64 * COW_MAX_RANK] = "";
    size_t used = 0;

    if (cow_dataset_header_read(&source, address, &head) <= 0 ||
        !cow_chunk_form_of(&head, cow_native_file_half(check->file->loc.object), &form) || head.rank != l->grid.rank ||
        memcmp(head.chunk, l->grid.chunk, head.rank * sizeof *head.chunk) != 0 ||
        !look_at_tree(l, &form, &source, head.index)) {
        cli_damaged(check, CLI_BAD_OBJECT, 0, address, "the index of the chunks of '%s' is damaged", path);
        return;
    }
    for (unsigned d = 0; d < l->grid.rank; d++)
        used += (size_t)snprintf(place + used, sizeof place - used, "%s%llu", d > 0 ? ", " : "",
                                 (unsigned long long)(l->chunk[d] * l->grid.chunk[d]));
    if (l->bad != NULL)
        cli_damaged(check, CLI_BAD_OBJECT, 0, address,
                    "the index of the chunks of '%s' does not lead to that of the newest version at (%s), %s", path,
                    place, l->bad);
    else if (l->chunks != l->root->chunks)
        cli_damaged(check, CLI_BAD_OBJECT, 0, address,
                    "the index of the chunks of '%s' has %llu of them, the newest version %llu", path,
                    (unsigned long long)l->chunks, (unsigned long long)l->root->chunks);
}

void cli_check_native_head(cli_check *check, uint64_t address, uint64_t offset, const char *path)
{
    looking l = {.log = check->log, .end = check->file_size};
    cow_root root;

    if (!cow_native_file_looks(check->file->loc.object, &l.bytes) || cow_root_read(check->log, offset, &root) < 0) {
        cow_error_clear();
        return;
    }
    l.root = &root;
    cli_grid(&root, &l.grid);
    l.slots = cli_slots_new(check->file);
    if ((l.index = cow_index_open(check->log, &l.grid, &root)) != NULL)
        look(check, address, path, &l);
    cow_index_close(l.index);
    cli_slots_free(l.slots);
    cow_error_clear();
}
