/* All states of a file, and what each of them holds of the stored chunks: what would be free without it.
 *
 * Owners are propagated from objects down the indexes: who is reached from one owner belongs to it, who is reached from two
 * belongs to several. A node is gone through again only when its owner changes, which happens twice at most: the cost
 * follows what is stored, not versions times objects.
 */
#ifndef CLI_OWNERS_H
#define CLI_OWNERS_H

#include "graph.h"
#include "pools.h"
#include "tables.h"

/* A dataset object of a version or of the head. */
typedef struct cli_states_dataset {
    char *path;    /* in the newest of the states that have it */
    uint64_t root; /* offset of its root record; UINT64_MAX: it has none */
} cli_states_dataset;

/* Head and versions; the objects that they share are read once. */
typedef struct cli_states {
    const cli_file *file; /* given, with what is called when something cannot be read */
    void (*trouble)(void *context, const char *what, const char *why);
    void *context;
    cli_version *versions;
    size_t version_count;
    cli_graph graph; /* an object's note: 1 + its place in `dataset`, or 0 */
    size_t head;     /* roots in the graph; SIZE_MAX: it cannot be read, or was forgotten */
    size_t *root;    /* of each version */
    cli_states_dataset *dataset;
    size_t datasets, room;
    cli_dataset_row *row; /* of each dataset's number */
    size_t rows;
} cli_states;

/* 0; or -1 and WHY: there is nothing to be known. In both cases cli_states_free. */
int cli_states_read(cli_states *states, char *why, size_t size);
void cli_states_free(cli_states *states);

typedef struct cli_storage {
    const cli_states *states;
    cow_table *index;
    cli_pool *pools;
    uint64_t pool_count;
} cli_storage;

/* INDEX stays its owner's. 0, or -1 and WHY. */
int cli_storage_open(cli_storage *storage, const cli_states *states, cow_table *index, char *why, size_t size);
void cli_storage_close(cli_storage *storage);

/* Owners count from 1. */
#define CLI_NOBODY  0
#define CLI_SEVERAL UINT32_MAX

typedef struct cli_owners {
    const cli_storage *storage;
    uint32_t *object; /* of the graph */
    cow_map nodes;    /* offset -> owner */
    uint32_t **slot;  /* of each pool, its room */
    bool first;       /* what several reach is the first one's, not CLI_SEVERAL */
} cli_owners;

cli_owners cli_owners_new(const cli_storage *storage);
void cli_owners_free(cli_owners *owners);
/* All that is reached from the object ROOT of the graph becomes OWNER's; of SIZE_MAX nothing is. */
void cli_owners_tree(cli_owners *owners, size_t root, uint32_t owner);
/* The same of one object alone. OWNER CLI_NOBODY: its dataset's, which is its number + 1. */
void cli_owners_object(cli_owners *owners, const cli_object *object, uint32_t owner);
/* What is each owner's alone, of owners below COUNT: bytes as stored; CHUNKS (may be NULL): how many chunks. */
void cli_owners_sum(const cli_owners *owners, size_t count, uint64_t bytes[], uint64_t chunks[]);

#endif
