/* The checks of h5cow verify: what is wrong with a file, and what follows from it. Nothing is written, nothing that is
 * read is trusted.
 *
 * check.c         the order of the checks; tables, versions, heads
 * check_damage.c  damages are noted, and the place where the check is told
 * check_slots.c   every stored chunk against its row in the slot table
 * check_index.c   root records, nodes, and the views that show them to HDF5 without h5cow
 * check_heads.c   heads that HDF5 reads by itself
 * check_since.c   of all that, what is new since a version
 * check_impact.c  which versions and objects a damage hits, and which older version still has the data
 */
#ifndef CLI_CHECK_H
#define CLI_CHECK_H

#include "common.h"
#include "graph.h"
#include "pools.h"
#include "tables.h"

typedef enum {
    CLI_BAD_SLOT,   /* pool, number: the slot */
    CLI_BAD_NODE,   /* number: offset in the index */
    CLI_BAD_VIEW,   /* number: offset of the node; only HDF5 without h5cow is hit */
    CLI_BAD_ROOT,   /* number: offset of the root record */
    CLI_BAD_OBJECT, /* number: its address */
    CLI_BAD_ELSE,   /* what says it all */
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
    size_t first_version, first_snapshot,
        first_lack;  /* rows before are not looked at; of lacks there are none of them */
    cli_pool *pools; /* rank 0: it could not be opened */
    uint64_t pool_count;
    cow_table *log;
    uint64_t parts; /* cow_layout_parts */
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
    bool **used; /* slots that an index names, per pool, room of them; with SINCE there are none */

    struct cli_since *since; /* NULL: all is checked; else what is new */
    bool quiet;              /* damages are counted in UNTOLD, not noted */
    size_t untold;

    cli_damage *damage;
    size_t damages, damage_room;
    uint64_t chunks, bytes; /* re-hashed */
    uint64_t unfound;       /* slots that their hash does not lead to */
    uint64_t views;
    bool lone_leaves; /* there is a leaf without a view, which the root's shows */
    bool marked;      /* there is a view that says whose it is */
    bool in_version;  /* what is met now is in the tree of a version */
} cli_check;

/* check_damage.c */
void cli_damaged(cli_check *check, cli_bad kind, uint64_t pool, uint64_t number, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* What is looked at next. */
void cli_check_step(cli_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Work goes on: tells the same place again, now and then. */
void cli_check_beat(cli_check *check);

/* Everything, in order. CHECK->file is open and has history. */
void cli_check_all(cli_check *check);
void cli_check_free(cli_check *check);

/* After a check of what is new: the trees of all versions are read, and nothing is told, so that it can be said what a damage hits. */
void cli_check_complete(cli_check *check);

void cli_check_slots(cli_check *check, const cli_pool *pool);
/* The same of COUNT SLOTS, ascending, that an index names. */
void cli_check_some_slots(cli_check *check, const cli_pool *pool, const uint64_t slots[], size_t count);
/* Slots that an index names but that hold nothing. */
void cli_check_used_slots(cli_check *check, const cli_pool *pool);
/* Are slots found by their hashes: all, or with SLOTS these, COUNT of them, ascending? */
void cli_check_hashes(cli_check *check, const cli_pool *pool, const uint64_t slots[], size_t count);
/* A root record and everything below it, once. True: it can be used. What an older record BASE of the dataset has as well is left out;
 * COW_NO_NODE: there is none. */
bool cli_check_root(cli_check *check, uint64_t offset, uint64_t base);
/* OBJECT, at ADDRESS and PATH, says that it is the view of the record at OFFSET. It may be a copy of that, made without the connector:
 * then it must show the same. */
void cli_check_marked(cli_check *check, hid_t object, uint64_t address, uint64_t offset, const char *path);
/* check_heads.c. The head at ADDRESS and PATH has an index of its own: does that name what the root record at OFFSET, a good one, says? */
void cli_check_native_head(cli_check *check, uint64_t address, uint64_t offset, const char *path);
/* The address of the object at PATH, UINT64_MAX: there is none. */
uint64_t cli_check_address(cli_check *check, const char *path);

/* check_since.c. Only what is new since REVISION is to be checked. 0; or CLI_FAILED and WHY: there is no such version. Where damage
 * is in the way of finding that out, all is to be checked. */
int cli_since_open(cli_check *check, const char *revision, char *why, size_t size);
void cli_since_close(cli_check *check);
/* The tables but the log, which is read, as far as they are needed. Rows of datasets are read when they are asked for. */
void cli_since_tables(cli_check *check);
/* Whatever is checked. NULL: the table of datasets has no such row. */
const cli_dataset_row *cli_check_dataset(cli_check *check, uint64_t id);
/* Those are read: which objects are new? */
void cli_since_objects(cli_check *check);
bool cli_since_wanted(void *check, uint64_t address); /* for cli_graph */
/* New objects that have a link in a group of the history: heads, or else snapshots. */
void cli_since_unlinked(cli_check *check, bool heads);
/* The older root record that the one at OFFSET, of a dataset that was met at PATH, is to be compared with; COW_NO_NODE: none. */
uint64_t cli_since_base(cli_check *check, uint64_t offset, const char *path);
/* A slot of POOL that is named where the older version named none, or another one. */
void cli_since_slot(cli_check *check, const cli_pool *pool, uint64_t slot);
void cli_since_slots(cli_check *check); /* all of these */
/* VISIT each dataset of which a new root record was met. */
void cli_since_heads(cli_check *check, void (*visit)(cli_check *check, size_t id));
/* Does the tag NAME lead to a version? */
bool cli_since_tag(const cli_check *check, const char *name);
/* The name of the version. */
const char *cli_since_name(const cli_check *check);
/* Rows of datasets that were looked at. */
size_t cli_since_datasets(const cli_check *check);

/* What the damages mean, from one more walk through everything; and one of them as JSON: what it is, objects, chunk,
 * versions that are hit, older version that still has the data. */
struct cli_impact *cli_impact_open(cli_check *check);
void cli_impact_close(struct cli_impact *impact);
json_object *cli_damage_json(cli_check *check, struct cli_impact *impact, size_t damage);

typedef struct cli_seen_node {
    uint64_t pool, before; /* before: the older node that it was compared with, COW_NO_NODE: none */
    uint64_t chunks;       /* more than that one has */
    unsigned level;
    bool viewed;      /* its view was looked at */
    bool uncounted;   /* the older one could not be counted */
    uint64_t *origin; /* NULL: the node cannot be used */
} cli_seen_node;

#endif
