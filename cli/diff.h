/* What differs between two states: the parts of `h5cow diff` and `h5cow show`.
 *
 * What differs of an object is collected as one JSON object (docs/command.md), whichever way it is shown: the text is made from
 * it (diff.c). Objects that both states share are not opened, parts of indexes that both share are not read, and of elements
 * only chunks that may differ are.
 */
#ifndef CLI_DIFF_H
#define CLI_DIFF_H

#include "common.h"
#include "state.h"

#include "import/tree.h"

/* How much is told: all; of each object whether it differs, with the first that is found; or the first object that differs. */
typedef enum cli_diff_enough { CLI_DIFF_ALL, CLI_DIFF_EACH, CLI_DIFF_ONE } cli_diff_enough;

typedef struct cli_diff {
    const cli_state *before, *after; /* `before` NULL: there was nothing */
    bool same_file;                  /* addresses and tokens mean the same in both */
    double absolute, relative;       /* differences of numbers up to these count as none */
    cli_diff_enough enough;
    uint64_t listed;              /* elements that are told one by one, of a dataset */
    const hsize_t *start, *count; /* of datasets, only the elements of this box; NULL: all */
    /* Is told of each element that differs, with its position; may be NULL. */
    void (*element)(void *context, const hsize_t position[]);
    /* Is asked for each chunk of both that may differ, with the entries of the two leaves: is it to be compared? May be NULL. */
    bool (*chunk)(void *context, const uint64_t chunk[], const uint64_t entry[2]);
    void *context;
    /* Takes ITEM: of an object that differs, or cannot be compared ("trouble"). */
    void (*tell)(struct cli_diff *diff, json_object *item);
    json_object *list; /* `tell`s own */
    size_t differences, troubles;
    uint64_t compared, all; /* elements, so far, and of all datasets; all 0: not known, or nobody wants to know */
    cow_map met;            /* pairs of objects that were compared */
    cow_map places;         /* pairs of objects that stand at the same path; empty: not looked for yet */
} cli_diff;

/* Everything at PATH and below. 0, or CLI_FAILED: said on standard error. */
int cli_diff_tree(cli_diff *diff, const char *path);

/* Gives back what was learned. cli_diff_tree does so itself. */
void cli_diff_done(cli_diff *diff);

/* ---- for the parts: diff_item.c ---- */

/* {"path": PATH, "change": CHANGE} */
json_object *cli_diff_item(const char *path, const char *change);
/* ITEM gets KEY: {"before": BEFORE, "after": AFTER}; takes these, NULL: null. */
void cli_diff_both(json_object *item, const char *key, json_object *before, json_object *after);
/* Has ITEM all that is to be told of its object? */
bool cli_diff_enough_of(const cli_diff *diff, json_object *item);
/* TEXT, which it frees, as JSON. */
json_object *cli_diff_text(char *text);
/* The path of ITEM as the file has it, which text in JSON need not be: names in it may be no UTF-8. */
const char *cli_diff_path(json_object *item);
/* The list KEY of ITEM, which is there from then on. */
json_object *cli_diff_list(json_object *item, const char *key);
/* Something of the object cannot be compared; then cli_reason is why. */
void cli_diff_trouble(cli_diff *diff, json_object *item, const char *what);

/* diff_elements.c: ITEM gets what differs of two datasets: "type", "shape", "maximum_changed", "elements". ROOT: what is
 * stored of them, NULL: HDF5 keeps it. */
void cli_diff_datasets(cli_diff *diff, json_object *item, const hid_t dataset[2], const cow_root *root[2]);
/* Are two root records of one file of one pool and grid, so that their indexes can be compared? */
bool cli_diff_same_grid(const cow_root *a, const cow_root *b);
/* Of two attributes. 1: they differ, 0, -1. */
int cli_diff_attributes(cli_diff *diff, const hid_t attribute[2]);

/* diff_places.c: does one path lead to A, of the state before, and to B, of the one after? Two that no path leads to count as the
 * same. Tokens as programs see them. */
bool cli_diff_same_place(cli_diff *diff, const H5O_token_t *a, const H5O_token_t *b);

/* diff_stored.c: VISIT each chunk that is stored of one of two datasets whose chunks have one shape. ENCODED: they are encoded alike,
 * and equal bytes are equal elements. SAME: both have the chunk, with the same bytes. What VISIT answers, if not 0, ends it. */
typedef int cli_stored_visitor(void *context, const hsize_t offset[], bool same);
int cli_diff_stored(const hid_t dataset[2], const cow_tree_chunks stored[2], bool encoded, cli_stored_visitor *visit,
                    void *context);

/* diff_index.c: VISIT each chunk for which two root records of one pool and grid name different slots. ENTRY: of the two leaves, also
 * COW_HOLE or composed chunks. What VISIT answers, if not 0, ends it. -1: cli_reason. */
typedef int cli_chunk_visitor(void *context, const uint64_t chunk[], const uint64_t entry[2]);
int cli_diff_index(cow_table *index, const cow_root *before, const cow_root *after, cli_chunk_visitor *visit,
                   void *context);

#endif
