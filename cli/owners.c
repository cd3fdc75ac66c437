/* Reading all states of a file, and what they hold. See owners.h. */
#include "owners.h"

#include "composed.h"

#include "base/error.h"
#include "base/ids.h"

#include <stdlib.h>
#include <string.h>

/* ---- states ---- */

static void say_reason(const cli_states *s, const char *what)
{
    char why[1024];

    s->trouble(s->context, what, cli_reason(why, sizeof why));
}

static void trouble(void *context, uint64_t address, const char *path, const char *why)
{
    const cli_states *s = context;

    (void)address;
    s->trouble(s->context, path, why);
}

static void found(void *context, cli_object *object, const char *path)
{
    cli_states *s = context;
    uint64_t number = 0;
    hid_t dataset;
    int kind;

    if (object->type != H5O_TYPE_DATASET)
        return;
    if ((dataset = H5Oopen_by_token(s->file->id, cow_token(object->address))) < 0 ||
        (kind = cli_source(dataset, &number, NULL)) < 0) {
        say_reason(s, path);
        cow_close(dataset);
        return;
    }
    if (kind == CLI_HEAD)
        number = number < s->rows ? s->row[number].root : UINT64_MAX;
    CLI_RESERVE(s->dataset, s->room, s->datasets, 1);
    s->dataset[s->datasets++] = (cli_states_dataset){cli_strdup(path), kind == CLI_NATIVE ? UINT64_MAX : number};
    object->note = s->datasets;
    H5Dclose(dataset);
}

/* The newest state first, so that what has a name there gets it. */
int cli_states_read(cli_states *s, char *why, size_t size)
{
    if (cli_versions_read(s->file, &s->versions, &s->version_count, why, size) < 0 ||
        cli_datasets_read(s->file, &s->row, &s->rows, why, size) < 0)
        return -1;
    s->graph = (cli_graph){.file = s->file->id, .found = found, .trouble = trouble, .context = s};
    s->head = cli_graph_add(&s->graph, "/");
    s->root = cli_alloc(s->version_count, sizeof *s->root);
    for (size_t i = s->version_count; i-- > 0;) {
        char *path = cli_format(COW_PATH_VERSIONS "/%s", s->versions[i].name);
        s->root[i] = s->versions[i].open == COW_LOG_FORGOTTEN ? SIZE_MAX : cli_graph_add(&s->graph, path);
        free(path);
    }
    return 0;
}

void cli_states_free(cli_states *s)
{
    for (size_t i = 0; i < s->datasets; i++)
        free(s->dataset[i].path);
    free(s->dataset);
    free(s->row);
    free(s->root);
    cli_graph_free(&s->graph);
    cli_versions_free(s->versions, s->version_count);
}

/* ---- what is stored ---- */

int cli_storage_open(cli_storage *s, const cli_states *states, cow_table *index, char *why, size_t size)
{
    uint64_t count;

    *s = (cli_storage){.states = states, .index = index};
    if (cli_pool_count(states->file, &count, why, size) < 0)
        return -1;
    s->pools = cli_alloc(count, sizeof *s->pools);
    for (; s->pool_count < count; s->pool_count++)
        if (cli_pool_open(states->file, s->pool_count, &s->pools[s->pool_count], why, size) < 0)
            states->trouble(states->context, states->file->name, why); /* closed, and without room */
    return 0;
}

void cli_storage_close(cli_storage *s)
{
    for (uint64_t i = 0; i < s->pool_count; i++)
        cli_pool_close(&s->pools[i]);
    free(s->pools);
}

/* ---- owners ---- */

cli_owners cli_owners_new(const cli_storage *s)
{
    cli_owners o = {.storage = s,
                    .object = cli_alloc(s->states->graph.objects, sizeof *o.object),
                    .slot = cli_alloc(s->pool_count, sizeof *o.slot)};

    for (uint64_t i = 0; i < s->pool_count; i++)
        o.slot[i] = cli_alloc(s->pools[i].room, sizeof **o.slot);
    return o;
}

void cli_owners_free(cli_owners *o)
{
    for (uint64_t i = 0; i < o->storage->pool_count; i++)
        free(o->slot[i]);
    free(o->slot);
    free(o->object);
    cow_map_free(&o->nodes);
}

static uint32_t merged(const cli_owners *o, uint32_t before, uint32_t owner)
{
    if (o->first && before != CLI_NOBODY)
        return before;
    return before == CLI_NOBODY || before == owner ? owner : CLI_SEVERAL;
}

static void mark_slot(cli_owners *o, uint64_t pool, uint64_t slot, uint32_t owner)
{
    if (slot < o->storage->pools[pool].room)
        o->slot[pool][slot] = merged(o, o->slot[pool][slot], owner);
}

/* Its base and its pieces. */
static int mark_composed(cli_owners *o, const cow_grid *grid, uint64_t pool, uint64_t entry, uint32_t owner)
{
    const cli_storage *s = o->storage;
    uint64_t *known = cow_map_at(&o->nodes, cow_composed_offset(entry));
    uint32_t before = known == NULL ? CLI_NOBODY : (uint32_t)*known, after = merged(o, before, owner);
    cow_composed composed;
    cow_piecing cut;

    if (before == after)
        return 0;
    cli_map_put(&o->nodes, cow_composed_offset(entry), after);
    if (cli_composed_read(s->index, grid, s->pools, s->pool_count, pool, entry, NULL, &composed, &cut) < 0)
        return -1;
    if (composed.base != COW_HOLE)
        mark_slot(o, pool, composed.base, after);
    for (unsigned i = 0; i < cut.count; i++)
        if (composed.own >> i & 1)
            mark_slot(o, composed.piece_pool, composed.slot[i], after);
    return 0;
}

/* Levels fall from node to node: at most COW_MAX_LEVEL deep. */
static int mark_node(cli_owners *o, const cow_grid *grid, uint64_t pool, uint64_t offset, unsigned level,
                     uint32_t owner)
{
    uint64_t *known = cow_map_at(&o->nodes, offset);
    uint32_t before = known == NULL ? CLI_NOBODY : (uint32_t)*known, after = merged(o, before, owner);
    cow_node *node;
    int status = 0;

    if (before == after)
        return 0;
    cli_map_put(&o->nodes, offset, after);
    node = cli_alloc(1, sizeof *node);
    if (cow_node_read(o->storage->index, grid, offset, node) < 0)
        status = -1;
    else if (node->level != level || node->pool != pool)
        status = cow_error(COW_CORRUPT, "the index node at offset %llu belongs to another place",
                           (unsigned long long)offset);
    for (unsigned p = 0; status == 0 && p < node->entries; p++)
        if (level > 0) {
            if (node->entry[p] != COW_NO_NODE)
                status = mark_node(o, grid, pool, node->entry[p], level - 1, after);
        } else if (cow_is_composed(node->entry[p])) {
            status = mark_composed(o, grid, pool, node->entry[p], after);
        } else {
            mark_slot(o, pool, node->entry[p], after); /* a hole is no slot that there is room for */
        }
    free(node);
    return status;
}

/* What the root record at OFFSET holds becomes OWNER's. */
static int mark_root(cli_owners *o, uint64_t offset, uint32_t owner)
{
    const cli_storage *s = o->storage;
    cow_root root;
    cow_grid grid;

    if (cow_root_read(s->index, offset, &root) < 0)
        return -1;
    if (root.pool >= s->pool_count || root.rank != s->pools[root.pool].rank || root.level > COW_MAX_LEVEL ||
        root.dataset >= s->states->rows)
        return cow_error(COW_CORRUPT, "the root record at offset %llu names a pool or a dataset that does not exist",
                         (unsigned long long)offset);
    cli_grid(&root, &grid);
    if (root.top == COW_NO_NODE)
        return 0;
    return mark_node(o, &grid, root.pool, root.top, root.level,
                     owner != CLI_NOBODY ? owner : (uint32_t)root.dataset + 1);
}

void cli_owners_object(cli_owners *o, const cli_object *object, uint32_t owner)
{
    const cli_states *s = o->storage->states;
    const cli_states_dataset *d = object->note == 0 ? NULL : &s->dataset[object->note - 1];

    if (d != NULL && d->root != UINT64_MAX && mark_root(o, d->root, owner) < 0)
        say_reason(s, d->path);
}

void cli_owners_tree(cli_owners *o, size_t root, uint32_t owner)
{
    const cli_graph *g = &o->storage->states->graph;
    size_t *waiting = NULL, count = 0, room = 0;

    if (root == SIZE_MAX)
        return;
    CLI_RESERVE(waiting, room, count, 1);
    waiting[count++] = root;
    while (count > 0) {
        size_t at = waiting[--count];
        uint32_t after = merged(o, o->object[at], owner);
        if (o->object[at] == after)
            continue;
        o->object[at] = after;
        cli_owners_object(o, &g->object[at], after);
        for (size_t i = g->object[at].first; i < g->object[at].first + g->object[at].links; i++)
            if (g->link[i].object != SIZE_MAX) {
                CLI_RESERVE(waiting, room, count, 1);
                waiting[count++] = g->link[i].object;
            }
    }
    free(waiting);
}

void cli_owners_sum(const cli_owners *o, size_t count, uint64_t bytes[], uint64_t chunks[])
{
    memset(bytes, 0, count * sizeof *bytes);
    if (chunks != NULL)
        memset(chunks, 0, count * sizeof *chunks);
    for (uint64_t p = 0; p < o->storage->pool_count; p++)
        for (uint64_t i = 0; i < o->storage->pools[p].room; i++) {
            uint32_t owner = o->slot[p][i];
            if (owner >= count)
                continue;
            bytes[owner] += o->storage->pools[p].size[i];
            if (chunks != NULL)
                chunks[owner] += o->storage->pools[p].size[i] > 0;
        }
}
