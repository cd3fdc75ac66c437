/* What each version, and each dataset, holds of the stored chunks. See report.h.
 *
 * Owners are propagated from objects down the indexes: who is reached from one owner belongs to it, who is reached from two
 * belongs to several. A node is gone through again only when its owner changes, which happens twice at most: the cost
 * follows what is stored, not versions times objects.
 */
#include "report.h"

#include "base/error.h"
#include "pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Owners count from 1. */
#define NOBODY  0
#define SEVERAL UINT32_MAX
/* Datasets that are listed: a page is read by people. */
#define MOST 200

typedef struct marks {
    cow_map nodes;   /* offset -> owner */
    uint32_t **slot; /* of each pool, its room */
} marks;

typedef struct survey {
    cli_report *report;
    cow_table *index;
    cli_pool *pools;
    uint64_t pool_count;
} survey;

static uint32_t merged(uint32_t before, uint32_t owner)
{
    return before == NOBODY || before == owner ? owner : SEVERAL;
}

static marks marks_new(const survey *s)
{
    marks m = {.slot = cli_alloc(s->pool_count, sizeof *m.slot)};

    for (uint64_t i = 0; i < s->pool_count; i++)
        m.slot[i] = cli_alloc(s->pools[i].room, sizeof **m.slot);
    return m;
}

static void marks_free(const survey *s, marks *m)
{
    for (uint64_t i = 0; m->slot != NULL && i < s->pool_count; i++)
        free(m->slot[i]);
    free(m->slot);
    cow_map_free(&m->nodes);
}

/* Levels fall from node to node: at most COW_MAX_LEVEL deep. */
static int mark_node(survey *s, marks *m, const cow_grid *grid, uint64_t pool, uint64_t offset, unsigned level,
                     uint32_t owner)
{
    uint64_t *known = cow_map_at(&m->nodes, offset);
    uint32_t before = known == NULL ? NOBODY : (uint32_t)*known, after = merged(before, owner);
    cow_node *node;
    int status = 0;

    if (before == after)
        return 0;
    cli_map_put(&m->nodes, offset, after);
    node = cli_alloc(1, sizeof *node);
    if (cow_node_read(s->index, grid, offset, node) < 0)
        status = -1;
    else if (node->level != level || node->pool != pool)
        status = cow_error(COW_CORRUPT, "the index node at offset %llu belongs to another place",
                           (unsigned long long)offset);
    for (unsigned p = 0; status == 0 && p < node->entries; p++)
        if (level > 0) {
            if (node->entry[p] != COW_NO_NODE)
                status = mark_node(s, m, grid, pool, node->entry[p], level - 1, after);
        } else if (node->entry[p] < s->pools[pool].room) { /* COW_HOLE is not */
            uint32_t *slot = &m->slot[pool][node->entry[p]];
            *slot = merged(*slot, after);
        }
    free(node);
    return status;
}

/* What the root record at OFFSET holds becomes OWNER's. OWNER NOBODY: its dataset's. */
static int mark_root(survey *s, marks *m, uint64_t offset, uint32_t owner)
{
    cow_root root;
    cow_grid grid;

    if (cow_root_read(s->index, offset, &root) < 0)
        return -1;
    if (root.pool >= s->pool_count || root.rank != s->pools[root.pool].rank || root.level > COW_MAX_LEVEL ||
        root.dataset >= s->report->rows)
        return cow_error(COW_CORRUPT, "the root record at offset %llu names a pool or a dataset that does not exist",
                         (unsigned long long)offset);
    cli_grid(&root, &grid);
    if (root.top == COW_NO_NODE)
        return 0;
    return mark_node(s, m, &grid, root.pool, root.top, root.level,
                     owner != NOBODY ? owner : (uint32_t)root.dataset + 1);
}

static void mark_dataset(survey *s, marks *m, const cli_object *object, uint32_t owner)
{
    const cli_report_dataset *d = object->note == 0 ? NULL : &s->report->dataset[object->note - 1];

    if (d != NULL && d->root != UINT64_MAX && mark_root(s, m, d->root, owner) < 0)
        cli_report_trouble(s->report, d->path);
}

/* All that is reached from the object ROOT of the graph becomes OWNER's. OBJECT: the owners of all objects. */
static void mark_tree(survey *s, marks *m, uint32_t *object, size_t root, uint32_t owner)
{
    const cli_graph *g = &s->report->graph;
    size_t *waiting = NULL, count = 0, room = 0;

    if (root == SIZE_MAX)
        return;
    CLI_RESERVE(waiting, room, count, 1);
    waiting[count++] = root;
    while (count > 0) {
        size_t at = waiting[--count];
        uint32_t after = merged(object[at], owner);
        if (object[at] == after)
            continue;
        object[at] = after;
        mark_dataset(s, m, &g->object[at], after);
        for (size_t i = g->object[at].first; i < g->object[at].first + g->object[at].links; i++)
            if (g->link[i].object != SIZE_MAX) {
                CLI_RESERVE(waiting, room, count, 1);
                waiting[count++] = g->link[i].object;
            }
    }
    free(waiting);
}

static json_object *of_versions(survey *s, uint64_t *chunks, uint64_t *nobody)
{
    const size_t count = s->report->version_count;
    uint32_t *object = cli_alloc(s->report->graph.objects, sizeof *object);
    uint64_t *alone = cli_alloc(count + 2, sizeof *alone);
    json_object *list = json_object_new_array();
    marks m = marks_new(s);

    mark_tree(s, &m, object, s->report->head, (uint32_t)count + 1);
    for (size_t v = count; v-- > 0;)
        mark_tree(s, &m, object, s->report->root[v], (uint32_t)v + 1);
    for (uint64_t p = 0; p < s->pool_count; p++)
        for (uint64_t i = 0; i < s->pools[p].room; i++) {
            *chunks += s->pools[p].size[i];
            if (m.slot[p][i] != SEVERAL)
                alone[m.slot[p][i]] += s->pools[p].size[i];
        }
    *nobody = alone[NOBODY];
    for (size_t v = 0; v < count; v++)
        json_object_array_add(list, json_object_new_uint64(alone[v + 1]));
    marks_free(s, &m);
    free(alone);
    free(object);
    return list;
}

typedef struct holding {
    const char *path;
    uint64_t all, newest;
} holding;

static int by_bytes(const void *a, const void *b)
{
    const holding *x = a, *y = b;

    return x->all != y->all                     ? (x->all < y->all) - (x->all > y->all)
           : x->path == NULL || y->path == NULL ? (x->path == NULL) - (y->path == NULL)
                                                : strcmp(x->path, y->path);
}

/* What each dataset holds, by its number: nothing yet; and its name: where it was met first, which is the newest state that has
 * it. */
static holding *name_datasets(survey *s)
{
    holding *found = cli_alloc(s->report->rows, sizeof *found);
    cow_root root;

    for (size_t i = 0; i < s->report->datasets; i++) {
        const cli_report_dataset *d = &s->report->dataset[i];
        if (d->root == UINT64_MAX || cow_root_read(s->index, d->root, &root) < 0 || root.dataset >= s->report->rows)
            cow_error_clear();
        else if (found[root.dataset].path == NULL)
            found[root.dataset].path = d->path;
    }
    return found;
}

/* Into ANSWER: the largest of them, and what all hold. */
static void of_datasets(survey *s, json_object *answer)
{
    const cli_report *r = s->report;
    json_object *list = json_object_new_array();
    uint32_t *object = cli_alloc(r->graph.objects, sizeof *object);
    marks all = marks_new(s), newest = marks_new(s);
    holding *held = name_datasets(s);
    size_t count = r->rows;
    uint64_t shared = 0, sum = 0, now = 0;

    for (size_t i = 0; i < r->graph.objects; i++)
        mark_dataset(s, &all, &r->graph.object[i], NOBODY);
    mark_tree(s, &newest, object, r->head, 1);
    for (uint64_t p = 0; p < s->pool_count; p++)
        for (uint64_t i = 0; i < s->pools[p].room; i++) {
            uint32_t owner = all.slot[p][i];
            if (owner == SEVERAL)
                shared += s->pools[p].size[i];
            else if (owner != NOBODY && owner <= count) {
                held[owner - 1].all += s->pools[p].size[i];
                held[owner - 1].newest += newest.slot[p][i] != NOBODY ? s->pools[p].size[i] : 0;
            }
        }
    if (count > 0)
        qsort(held, count, sizeof *held, by_bytes);
    for (size_t i = 0; i < count && held[i].path != NULL; i++) {
        sum += held[i].all;
        now += held[i].newest;
        if (i >= MOST)
            continue;
        json_object *item = json_object_new_object();
        json_object_object_add(item, "path", cli_json_text(held[i].path));
        json_object_object_add(item, "all", json_object_new_uint64(held[i].all));
        json_object_object_add(item, "newest", json_object_new_uint64(held[i].newest));
        json_object_array_add(list, item);
    }
    marks_free(s, &all);
    marks_free(s, &newest);
    free(held);
    free(object);
    json_object_object_add(answer, "datasets", list);
    json_object_object_add(answer, "all", json_object_new_uint64(sum));
    json_object_object_add(answer, "newest", json_object_new_uint64(now));
    json_object_object_add(answer, "shared", json_object_new_uint64(shared));
}

json_object *cli_report_storage(cli_report *report)
{
    survey s = {.report = report, .index = report->newest.index};
    json_object *answer = json_object_new_object();
    uint64_t chunks = 0, nobody = 0, count;
    char why[1024];

    if (cli_pool_count(&report->newest.file, &count, why, sizeof why) < 0) {
        cli_report_note(report, report->newest.file.name, why);
        return answer;
    }
    s.pools = cli_alloc(count, sizeof *s.pools);
    for (; s.pool_count < count; s.pool_count++)
        if (cli_pool_open(&report->newest.file, s.pool_count, &s.pools[s.pool_count], why, sizeof why) < 0)
            cli_report_note(report, report->newest.file.name, why); /* closed, and without room */
    json_object_object_add(answer, "versions", of_versions(&s, &chunks, &nobody));
    of_datasets(&s, answer);
    json_object_object_add(answer, "chunks", json_object_new_uint64(chunks));
    json_object_object_add(answer, "nobody", json_object_new_uint64(nobody));
    for (uint64_t i = 0; i < s.pool_count; i++)
        cli_pool_close(&s.pools[i]);
    free(s.pools);
    return answer;
}
