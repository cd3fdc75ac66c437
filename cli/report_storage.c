/* What each version, and each dataset, holds of the stored chunks. See report.h, owners.h. */
#include "report.h"

#include "base/error.h"
#include "owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Datasets that are listed: a page is read by people. */
#define MOST 200

static json_object *of_versions(const cli_storage *s, uint64_t *chunks, uint64_t *nobody)
{
    const size_t count = s->states->version_count;
    uint64_t *alone = cli_alloc(count + 2, sizeof *alone);
    json_object *list = json_object_new_array();
    cli_owners o = cli_owners_new(s);

    cli_owners_tree(&o, s->states->head, (uint32_t)count + 1);
    for (size_t v = count; v-- > 0;)
        cli_owners_tree(&o, s->states->root[v], (uint32_t)v + 1);
    for (uint64_t p = 0; p < s->pool_count; p++)
        *chunks += s->pools[p].bytes;
    cli_owners_sum(&o, count + 2, alone, NULL);
    *nobody = alone[CLI_NOBODY];
    for (size_t v = 0; v < count; v++)
        json_object_array_add(list, json_object_new_uint64(alone[v + 1]));
    cli_owners_free(&o);
    free(alone);
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
static holding *name_datasets(const cli_storage *s)
{
    holding *found = cli_alloc(s->states->rows, sizeof *found);
    cow_root root;

    for (size_t i = 0; i < s->states->datasets; i++) {
        const cli_states_dataset *d = &s->states->dataset[i];
        if (d->root == UINT64_MAX || cow_root_read(s->index, d->root, &root) < 0 || root.dataset >= s->states->rows)
            cow_error_clear();
        else if (found[root.dataset].path == NULL)
            found[root.dataset].path = d->path;
    }
    return found;
}

/* Into ANSWER: the largest of them, and what all hold. */
static void of_datasets(const cli_storage *s, json_object *answer)
{
    const cli_states *r = s->states;
    json_object *list = json_object_new_array();
    cli_owners all = cli_owners_new(s), newest = cli_owners_new(s);
    holding *held = name_datasets(s);
    size_t count = r->rows;
    uint64_t shared = 0, sum = 0, now = 0;

    for (size_t i = 0; i < r->graph.objects; i++)
        cli_owners_object(&all, &r->graph.object[i], CLI_NOBODY);
    cli_owners_tree(&newest, r->head, 1);
    for (uint64_t p = 0; p < s->pool_count; p++)
        for (uint64_t i = 0; i < s->pools[p].room; i++) {
            uint32_t owner = all.slot[p][i];
            if (owner == CLI_SEVERAL)
                shared += s->pools[p].size[i];
            else if (owner != CLI_NOBODY && owner <= count) {
                held[owner - 1].all += s->pools[p].size[i];
                held[owner - 1].newest += newest.slot[p][i] != CLI_NOBODY ? s->pools[p].size[i] : 0;
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
    cli_owners_free(&all);
    cli_owners_free(&newest);
    free(held);
    json_object_object_add(answer, "datasets", list);
    json_object_object_add(answer, "all", json_object_new_uint64(sum));
    json_object_object_add(answer, "newest", json_object_new_uint64(now));
    json_object_object_add(answer, "shared", json_object_new_uint64(shared));
}

json_object *cli_report_storage(cli_report *report)
{
    json_object *answer = json_object_new_object();
    uint64_t chunks = 0, nobody = 0;
    cli_storage s;
    char why[1024];

    if (cli_storage_open(&s, &report->states, report->newest.index, why, sizeof why) < 0) {
        cli_report_note(report, report->newest.file.name, why);
        return answer;
    }
    json_object_object_add(answer, "versions", of_versions(&s, &chunks, &nobody));
    of_datasets(&s, answer);
    json_object_object_add(answer, "chunks", json_object_new_uint64(chunks));
    json_object_object_add(answer, "nobody", json_object_new_uint64(nobody));
    cli_storage_close(&s);
    return answer;
}
