/* The checks of h5cow verify: what is wrong with a file, and what follows from it. Nothing is written, nothing that is
 * read is trusted.
 *
 * check.c         the order of the checks; tables, versions, heads
 * check_damage.c  damages are noted, and the place where the check is told
 * check_slots.c   every stored chunk against its row in the slot table
 * check_index.c   root records, nodes, and the views that show them to HDF5 without h5cow
 * check_impact.c  which versions and objects a damage hits, and which older version still has the data
 */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "common.h"
#include "graph.h"
#include "pools.h"
#include "tables.h"

typedef enum {
    CLI_BAD_SLOT, /* pool, number: the slot */
    CLI_BAD_NODE, /* number: offset in the index */
    CLI_BAD_VIEW, /* number: offset of the node; only HDF5 without h5cow is hit */
    CLI_BAD_ROOT, /* number: offset of the root record */
    CLI_BAD_ELSE, /* what says it all */
} cli_bad;

typedef struct cli_damage {
    cli_bad kind;
    uint64_t pool, number;
    char *what;
} cli_damage;

/* A versioned dataset object: which root record it shows. */
typedef struct cli_use {
    uint64_t address; /* of the object */
    int kind;         /* CLI_NATIVE, CLI_HEAD or CLI_VIEW */
    uint64_t number;  /* of the dataset, or offset of the root record */
    uint64_t root;    /* offset of the root record, UINT64_MAX: none */
} cli_use;

/* More than 20 fields: tables of the file, each read once, which every check asks. */
typedef struct cli_check {
    cli_file *file;
    uint64_t file_size;
    unsigned threads;
    /* Where the check is: told before each step, so that a crash of the library has a place. */
    void (*at)(void *context, const char *where);
    void *context;
    char where[256];
    unsigned beats;

    cli_version *versions;
    cli_names names; /* of them */
    cli_dataset_row *datasets;
    cli_snapshot_row *snapshots;
    cli_lack *lacks;
    size_t version_count, dataset_count, snapshot_count, lack_count;
    cow_map lacking; /* heads that changed after the newest version, and snapshots that lack something */
    cow_map summed;  /* address of a snapshot, or of a head with its newest snapshot -> row of snapshots */
    cli_pool *pools; /* rank 0: it could not be opened */
    uint64_t pool_count;
    cow_table *log;
    cli_graph graph;
    size_t head;     /* its root in the graph */
    size_t *version; /* roots of the versions, SIZE_MAX: damaged */
    cli_use *uses;   /* graph object.note - 1 */
    size_t use_count, use_room;
    cow_map roots;    /* root records that are named: offset -> 1 good, 2 bad */
    cow_map nodes;    /* nodes that were checked: offset -> place in node */
    cow_map composed; /* composed chunks that were checked: offset -> checksum of pool and place */
    struct cli_seen_node *node;
    size_t node_count, node_room;
    bool **used; /* slots that an index names, per pool, room of them */

    cli_damage *damage;
    size_t damages, damage_room;
    uint64_t chunks, bytes; /* re-hashed */
    uint64_t unfound;       /* slots that their hash does not lead to */
    uint64_t views;
    bool lone_leaves; /* there is a leaf without a view, which the root's shows */
} cli_check;

/* check_damage.c */
void cli_damaged(cli_check *check, cli_bad kind, uint64_t pool, uint64_t number, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Work goes on: tells the same place again, now and then. */
void cli_check_beat(cli_check *check);

/* Everything, in order. CHECK->file is open and has history. */
void cli_check_all(cli_check *check);
void cli_check_free(cli_check *check);

void cli_check_slots(cli_check *check, const cli_pool *pool);
/* Slots that an index names but that hold nothing. */
void cli_check_used_slots(cli_check *check, const cli_pool *pool);
/* Are slots found by their hashes? */
void cli_check_hashes(cli_check *check, const cli_pool *pool);
/* A root record and everything below it, once. True: it can be used. */
bool cli_check_root(cli_check *check, uint64_t offset);
/* What the damages mean, from one more walk through everything; and one of them as JSON: what it is, objects, chunk,
 * versions that are hit, older version that still has the data. */
struct cli_impact *cli_impact_open(cli_check *check);
void cli_impact_close(struct cli_impact *impact);
json_object *cli_damage_json(cli_check *check, struct cli_impact *impact, size_t damage);

typedef struct cli_seen_node {
    uint64_t pool, chunks;
    unsigned level;
    bool viewed;      /* its view was looked at */
    uint64_t *origin; /* NULL: the node cannot be used */
} cli_seen_node;

#endif
