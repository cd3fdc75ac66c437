/* What follows from a damage: which versions and which objects show it, and which older version still has the data. See
 * check.h. Only done when there is damage: then every tree is walked once more. */
#include "check.h"

#include "base/error.h"
#include "view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_OBJECTS 8
/* Damages beyond these are only listed: a pool that is lost as a whole has as many as chunks. */
#define EXPLAINED 200

/* A damage as seen from one root record. */
typedef struct hit {
    size_t damage;
    uint64_t root, dataset;
    bool has_chunk;
    uint64_t chunk[COW_MAX_RANK];
    unsigned rank;
} hit;

/* A dataset of a version, or of the head (version_count), or an object there that is damaged itself. */
typedef struct place {
    size_t version;
    uint64_t root, address; /* root: UINT64_MAX where nobody knows */
    char *path;
} place;

struct cli_impact {
    cow_map slots, nodes, views, roots; /* -> damage; slots by cli_slot_key */
    cow_map objects;                    /* addresses of damaged ones */
    hit *hits;
    size_t hit_count, hit_room;
    place *places;
    size_t place_count, place_room;
};

typedef struct walk {
    cli_check *check;
    struct cli_impact *impact;
    const cow_root *root;
    uint64_t offset;
    cow_grid grid;
} walk;

static void note_hit(walk *w, uint64_t damage, const uint64_t chunk[])
{
    struct cli_impact *m = w->impact;

    for (size_t i = m->hit_count; i-- > 0 && m->hits[i].root == w->offset;)
        if (m->hits[i].damage == damage)
            return;
    CLI_RESERVE(m->hits, m->hit_room, m->hit_count, 1);
    hit *h = &m->hits[m->hit_count++];
    *h = (hit){.damage = damage, .root = w->offset, .dataset = w->root == NULL ? UINT64_MAX : w->root->dataset};
    if (chunk != NULL) {
        h->has_chunk = true;
        h->rank = w->grid.rank;
        memcpy(h->chunk, chunk, h->rank * sizeof *chunk);
    }
}

static void note(walk *w, const cow_map *map, uint64_t key, const uint64_t chunk[])
{
    uint64_t *damage = cow_map_at(map, key);

    if (damage != NULL)
        note_hit(w, *damage, chunk);
}

static void walk_composed(walk *w, uint64_t entry, const uint64_t chunk[])
{
    const struct cli_impact *m = w->impact;
    cow_composed composed;

    note(w, &m->nodes, cow_composed_offset(entry), chunk);
    note(w, &m->views, cow_composed_offset(entry), chunk);
    if (cow_composed_read(w->check->log, w->grid.rank, entry, w->root->pool, chunk, &composed) < 0) {
        cow_error_clear();
        return;
    }
    if (composed.base != COW_HOLE)
        note(w, &m->slots, cli_slot_key(w->check->pool_count, w->root->pool, composed.base), chunk);
    for (unsigned i = 0; composed.piece_pool < w->check->pool_count && i < COW_PIECES; i++)
        if (composed.own >> i & 1)
            note(w, &m->slots, cli_slot_key(w->check->pool_count, composed.piece_pool, composed.slot[i]), chunk);
}

static void walk_node(walk *w, uint64_t offset, unsigned level, const uint64_t origin[])
{
    cow_node *node;
    uint64_t chunk[COW_MAX_RANK], span[COW_MAX_RANK];

    cli_check_beat(w->check);
    note(w, &w->impact->nodes, offset, origin);
    note(w, &w->impact->views, offset, NULL);
    node = cli_alloc(1, sizeof *node);
    if (cow_node_read(w->check->log, &w->grid, offset, node) < 0 || node->level != level) {
        cow_error_clear();
        free(node);
        return;
    }
    if (level > 0)
        cow_grid_span(&w->grid, level - 1, span);
    for (unsigned p = 0; p < node->entries; p++) {
        if (level == 0 && node->entry[p] != COW_HOLE) {
            cow_grid_tile_offset(&w->grid, p, chunk);
            for (unsigned d = 0; d < w->grid.rank; d++)
                chunk[d] += origin[d];
            if (cow_is_composed(node->entry[p]))
                walk_composed(w, node->entry[p], chunk);
            else
                note(w, &w->impact->slots, cli_slot_key(w->check->pool_count, w->root->pool, node->entry[p]), chunk);
        } else if (level > 0 && node->entry[p] != COW_NO_NODE) {
            cow_grid_child_offset(&w->grid, level, p, chunk);
            for (unsigned d = 0; d < w->grid.rank; d++)
                chunk[d] = origin[d] + chunk[d] * span[d];
            walk_node(w, node->entry[p], level - 1, chunk);
        }
    }
    free(node);
}

static void walk_root(cli_check *check, struct cli_impact *impact, uint64_t offset)
{
    const uint64_t origin[COW_MAX_RANK] = {0};
    walk w = {.check = check, .impact = impact, .offset = offset};
    uint64_t *usable = cow_map_at(&check->roots, offset);
    cow_root root;

    note(&w, &impact->roots, offset, NULL);
    note(&w, &impact->views, offset, NULL);
    if (usable == NULL || *usable != 1 || cow_root_read(check->log, offset, &root) < 0) {
        cow_error_clear();
        return;
    }
    w.root = &root;
    cli_grid(&root, &w.grid);
    if (root.top != COW_NO_NODE)
        walk_node(&w, root.top, root.level, origin);
}

typedef struct naming {
    cli_check *check;
    struct cli_impact *impact;
    size_t version;
} naming;

static int note_place(void *context, const cli_object *object, const char *path)
{
    naming *n = context;
    struct cli_impact *m = n->impact;
    const uint64_t root = object->note == 0 ? UINT64_MAX : n->check->uses[object->note - 1].root;

    if (root == UINT64_MAX && cow_map_at(&m->objects, object->address) == NULL)
        return 0;
    CLI_RESERVE(m->places, m->place_room, m->place_count, 1);
    m->places[m->place_count++] = (place){n->version, root, object->address, cli_strdup(path)};
    return 0;
}

struct cli_impact *cli_impact_open(cli_check *check)
{
    struct cli_impact *m = cli_alloc(1, sizeof *m);
    naming n = {check, m, check->version_count};

    for (size_t i = 0; i < check->damages && i < EXPLAINED; i++) {
        const cli_damage *d = &check->damage[i];
        switch (d->kind) {
        case CLI_BAD_SLOT:
            cli_map_put(&m->slots, cli_slot_key(check->pool_count, d->pool, d->number), i);
            break;
        case CLI_BAD_NODE:
            cli_map_put(&m->nodes, d->number, i);
            break;
        case CLI_BAD_VIEW:
            cli_map_put(&m->views, d->number, i);
            break;
        case CLI_BAD_ROOT:
            cli_map_put(&m->roots, d->number, i);
            break;
        case CLI_BAD_OBJECT:
            cli_map_put(&m->objects, d->number, i);
            break;
        case CLI_BAD_ELSE:
            break;
        }
    }
    for (size_t i = 0; check->log != NULL && i < check->roots.capacity; i++)
        if (check->roots.entry[i].used)
            walk_root(check, m, check->roots.entry[i].key);
    if (check->head != SIZE_MAX)
        cli_graph_each_link(&check->graph, check->head, note_place, &n);
    for (n.version = check->version_count; n.version-- > 0;)
        if (check->version[n.version] != SIZE_MAX)
            cli_graph_each_link(&check->graph, check->version[n.version], note_place, &n);
    return m;
}

void cli_impact_close(struct cli_impact *m)
{
    for (size_t i = 0; i < m->place_count; i++)
        free(m->places[i].path);
    free(m->places);
    free(m->hits);
    cow_map_free(&m->slots);
    cow_map_free(&m->nodes);
    cow_map_free(&m->views);
    cow_map_free(&m->roots);
    cow_map_free(&m->objects);
    free(m);
}

static const hit *hit_of(const struct cli_impact *m, size_t damage, uint64_t root)
{
    for (size_t i = 0; i < m->hit_count; i++)
        if (m->hits[i].damage == damage && m->hits[i].root == root)
            return &m->hits[i];
    return NULL;
}

/* Is nothing wrong with a slot? Where only what is new was checked, it is looked at now. */
static bool is_good_slot(cli_check *check, const struct cli_impact *m, uint64_t pool, uint64_t slot)
{
    const size_t before = check->untold;

    if (cow_map_at(&m->slots, cli_slot_key(check->pool_count, pool, slot)) != NULL)
        return false;
    if (!check->quiet)
        return true;
    if (pool >= check->pool_count || check->pools[pool].rank == 0 || slot >= check->pools[pool].slots)
        return false;
    cli_check_some_slots(check, &check->pools[pool], &slot, 1);
    return check->untold == before;
}

/* The same of an entry of a leaf. */
static bool is_good(cli_check *check, const struct cli_impact *m, const cow_root *root, uint64_t entry)
{
    cow_composed composed;
    bool good;

    if (!cow_is_composed(entry))
        return is_good_slot(check, m, root->pool, entry);
    good = cow_map_at(&m->nodes, cow_composed_offset(entry)) == NULL &&
           cow_composed_read(check->log, root->rank, entry, root->pool, NULL, &composed) == 0 &&
           (composed.base == COW_HOLE || is_good_slot(check, m, root->pool, composed.base));
    for (unsigned i = 0; good && i < COW_PIECES; i++)
        good = !(composed.own >> i & 1) || is_good_slot(check, m, composed.piece_pool, composed.slot[i]);
    return good;
}

/* Does the version that shows ROOT have undamaged data where DAMAGE hit? */
static bool has_data(cli_check *check, const struct cli_impact *m, uint64_t offset, const hit *h, cli_bad kind)
{
    uint64_t slot = COW_HOLE;
    cow_index *index;
    cow_root root;
    cow_grid grid;
    bool good;

    if (hit_of(m, h->damage, offset) != NULL || cow_root_read(check->log, offset, &root) < 0 ||
        root.dataset != h->dataset) {
        cow_error_clear();
        return false;
    }
    if (!h->has_chunk)
        return true;
    for (unsigned d = 0; d < root.rank; d++)
        if (h->chunk[d] >= root.extent[d] / root.chunk[d] + (root.extent[d] % root.chunk[d] != 0))
            return kind != CLI_BAD_SLOT;
    cli_grid(&root, &grid);
    index = cow_index_open(check->log, &grid, &root);
    good = index != NULL && cow_index_get(index, h->chunk, &slot) >= 0 &&
           (slot == COW_HOLE ? kind != CLI_BAD_SLOT : is_good(check, m, &root, slot));
    cow_index_close(index);
    cow_error_clear();
    return good;
}

json_object *cli_damage_json(cli_check *check, struct cli_impact *m, size_t damage)
{
    const cli_damage *d = &check->damage[damage];
    json_object *answer = json_object_new_object(), *objects, *versions;
    size_t oldest = SIZE_MAX, named = 0, last = SIZE_MAX;
    const hit *first = NULL;
    bool head = false;
    char text[256];

    json_object_object_add(answer, "what", cli_json_text(d->what));
    if (d->kind == CLI_BAD_SLOT) {
        json_object_object_add(answer, "pool", json_object_new_uint64(d->pool));
        json_object_object_add(answer, "slot", json_object_new_uint64(d->number));
    }
    if (damage >= EXPLAINED)
        return answer;
    objects = json_object_new_array();
    versions = json_object_new_array();
    for (size_t i = 0; d->kind != CLI_BAD_ELSE && i < m->place_count; i++) {
        const place *p = &m->places[i];
        const hit *h = hit_of(m, damage, p->root);
        bool known = false;
        if (h == NULL && (d->kind != CLI_BAD_OBJECT || p->address != d->number))
            continue;
        if (p->version == check->version_count) {
            head = true;
        } else {
            if (p->version != last)
                json_object_array_add(versions, cli_json_text(check->versions[p->version].name));
            last = p->version;
            oldest = p->version; /* places go from new to old */
        }
        first = first == NULL ? h : first;
        for (size_t o = 0; o < json_object_array_length(objects); o++)
            known = known || strcmp(json_object_get_string(json_object_array_get_idx(objects, o)), p->path) == 0;
        if (!known && named++ < NAMED_OBJECTS)
            json_object_array_add(objects, cli_json_text(p->path));
    }
    json_object_object_add(answer, "objects", objects);
    json_object_object_add(answer, "more_objects",
                           json_object_new_uint64(named > NAMED_OBJECTS ? named - NAMED_OBJECTS : 0));
    if (first != NULL && first->has_chunk) {
        json_object_object_add(answer, "chunk", cli_json_dims(first->rank, first->chunk));
        json_object_object_add(answer, "chunk_text",
                               cli_json_text(cli_shape(text, sizeof text, first->rank, first->chunk)));
    }
    json_object_object_add(answer, "head", json_object_new_boolean(head));
    json_object_object_add(answer, "versions", versions);
    json_object_object_add(answer, "only_without_h5cow", json_object_new_boolean(d->kind == CLI_BAD_VIEW));
    json_object *older = NULL;
    for (size_t i = 0; older == NULL && first != NULL && d->kind != CLI_BAD_VIEW && i < m->place_count; i++) {
        const place *p = &m->places[i];
        if (p->version < oldest && p->version < check->version_count && p->root != UINT64_MAX &&
            has_data(check, m, p->root, first, d->kind))
            older = cli_json_text(check->versions[p->version].name);
    }
    json_object_object_add(answer, "older_version_with_data", older);
    return answer;
}
