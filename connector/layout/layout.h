/* What a file brought along under /_versioned_data: its paths, its rows, and the one door through which they are read.
 *
 * A file may come from anywhere, and whoever made it may have had any HDF5 at hand. So nobody opens or reads a table, an
 * attribute or a pool there but by these functions, neither in the connector nor in the command
 * (test/test_door.py searches the sources for others). Their rules:
 *
 *  1. Hard links only: a soft or external link below /_versioned_data, where the format has an object, is damage.
 *  2. Kind, class, members, rank and filters are compared with docs/format.md before a byte is read.
 *  3. Sizes are compared with the size of the file before memory is taken: a table has no more bytes than the file, and
 *     neither have all texts of the log, or the sequences of a chunk, together.
 *  4. Rows that were never stored are damage where the format knows no such row: HDF5 reads them as zeros.
 *
 * What fails is COW_CORRUPT, and says what to do. A new table or attribute: see docs/architecture.md, "The door".
 */
#ifndef COW_LAYOUT_H
#define COW_LAYOUT_H

#include "native/native.h"

/* Longest path of anything h5cow names itself, and with a mark (cow_layout_mark). */
#define COW_PATH_MAX   96
#define COW_MARKED_MAX (COW_PATH_MAX + 2 * 64)

/* Where the history is, and what is in it: docs/format.md. No other file spells one of these paths. */
#define COW_GROUP "_versioned_data"
#define COW_ROOT  "/" COW_GROUP
/* The newest format. A file has the lowest number that tells what is in it, so that older h5cows go on reading it as long as they
 * can: 1; COW_FORMAT_PIECES from its first composed chunk on; COW_FORMAT_LONE_LEAF from the first leaf on that has no view;
 * COW_FORMAT_MARKED from the first view of a root on that is marked, so that it can be a snapshot as well; COW_FORMAT_COPIED from the first
 * group on whose links HDF5 has not counted; COW_FORMAT_PARTS from the first views on that have a group of their own. */
#define COW_FORMAT           6
#define COW_FORMAT_FIRST     1
#define COW_FORMAT_PIECES    2
#define COW_FORMAT_LONE_LEAF 3
#define COW_FORMAT_MARKED    4
#define COW_FORMAT_COPIED    5
#define COW_FORMAT_PARTS     6

#define COW_PATH_VERSIONS COW_ROOT "/versions"
#define COW_PATH_TAGS     COW_ROOT "/tags"
#define COW_PATH_RAW      COW_ROOT "/raw"
#define COW_PATH_SLOTS    COW_ROOT "/slots"
#define COW_PATH_HASHES   COW_ROOT "/hashes"
#define COW_PATH_VIEWS    COW_ROOT "/views"
#define COW_PATH_HEADS    COW_ROOT "/heads"
#define COW_PATH_REMOVED  COW_ROOT "/removed"
/* Snapshots that must have a link besides those of trees: no version's tree has them any more, since no link leads to their objects, or
 * the links to them are in a copied group. Made when it is first needed, as is the next one: of the groups whose links are not counted. */
#define COW_PATH_HELD   COW_ROOT "/held"
#define COW_PATH_COPIED COW_ROOT "/copied"
/* While a version is made: groups of the snapshots that copied groups are to have. */
#define COW_PATH_COPYING COW_ROOT "/copying"
/* The former tree of a version that is being amended, until the new one has its place. */
#define COW_PATH_FORMER COW_ROOT "/former"
/* Tables; cow_layout_table_open knows where they are, these are for messages and rescue. */
#define COW_PATH_LOG           COW_ROOT "/log"
#define COW_PATH_INCOMPLETE    COW_ROOT "/incomplete"
#define COW_PATH_OPERATIONS    COW_ROOT "/operations"
#define COW_PATH_FREE          COW_ROOT "/free"
#define COW_PATH_DATASETS      COW_ROOT "/datasets"
#define COW_PATH_SNAPSHOTS     COW_ROOT "/snapshots"
#define COW_PATH_POOLS         COW_ROOT "/pools"
#define COW_PATH_SNAPSHOT_ROWS COW_ROOT "/snapshot_rows"
#define COW_PATH_INDEX         COW_ROOT "/index"

/* ---- attributes of /_versioned_data ---- */

#define COW_FORMAT_NAME "format"
#define COW_ABSOLUTE    "absolute_links"
#define COW_SPACES      "shared_dataspaces"
#define COW_PARTS       "views_in_parts"

/* 1: there is an attribute NAME, of whatever kind. */
int cow_layout_has(cow_loc file, const char *name);
/* 1: the attribute NAME is one value of TYPE, as the format says, and is in *VALUE; 0: there is no such attribute, or no
 * group /_versioned_data of ours at all; -1: it is something else. */
int cow_layout_number(cow_loc file, const char *name, hid_t type, void *value);

/* ---- views ---- */

/* The views of records from the offset PARTS on (COW_NO_PARTS: of none) are in parts: a group for so many bytes of the index. HDF5 keeps the names of a
 * group in blocks, which grow with it, and goes through all bytes of one to add a name. */
#define COW_VIEWS_PART ((uint64_t)1 << 12)
#define COW_NO_PARTS   UINT64_MAX

void cow_layout_view_path(char path[COW_PATH_MAX], uint64_t parts, uint64_t offset);
/* The group of the part that has it. */
void cow_layout_part_path(char path[COW_PATH_MAX], uint64_t offset);
/* NAME, in the group COW_PATH_VIEWS, is that of the part which begins at the record *OFFSET. */
bool cow_layout_part_name(const char *name, uint64_t *offset);
/* PATH is COW_PATH_HEADS/<id>: 1; that of the view of a record: 2; else 0. */
int cow_layout_source(const char *path, uint64_t *number);

/* ---- tables ---- */

/* A row of /_versioned_data/datasets, in memory and in the file. */
typedef struct cow_layout_dataset_row {
    uint64_t head, root;
    uint32_t pool;
    uint8_t layout, alloc_time, fill_time, flags;
} cow_layout_dataset_row;
#define COW_FLAG_FILTERS_ADDED 1u
#define COW_FLAG_ALLOCATED     2u /* late allocation has taken place */
#define COW_FLAG_WRITTEN       4u /* cow_dataset_was_written */
#define COW_FLAG_NATIVE        8u /* the head is a chunked dataset of HDF5's: history/head_index.h */

/* A row of /_versioned_data/snapshots. */
typedef struct cow_layout_snapshot_row {
    uint64_t head, snapshot, version;
    uint64_t elements, attributes; /* checksums: history/sums.c; 0: none */
} cow_layout_snapshot_row;

typedef enum cow_table_kind {
    COW_TABLE_DATASETS,
    COW_TABLE_POOLS,
    COW_TABLE_SNAPSHOTS,
    COW_TABLE_INDEX,
    COW_TABLE_SLOTS,         /* of a pool: NUMBER, and its RANK */
    COW_TABLE_INCOMPLETE,    /* made when it is first needed: cow_layout_lacks_open */
    COW_TABLE_OPERATIONS,    /* the same: cow_layout_operations_open */
    COW_TABLE_FREE,          /* the same: cow_layout_free_open */
    COW_TABLE_HASHES,        /* of a pool, NUMBER: the same: cow_layout_hashes_open */
    COW_TABLE_SNAPSHOT_ROWS, /* the same: cow_layout_snapshot_rows_open */
} cow_table_kind;

/* NUMBER and RANK of what has none are 0. Opening costs the same whatever the table's length. NULL: the error. */
cow_table *cow_layout_table_create(cow_loc file, cow_table_kind kind, uint32_t number, unsigned rank);
cow_table *cow_layout_table_open(cow_loc file, cow_table_kind kind, uint32_t number, unsigned rank);
/* A table of this kind that is somewhere else. */
cow_table *cow_layout_table_open_at(cow_loc file, const char *path, cow_table_kind kind, unsigned rank);
/* Rows FIRST to FIRST + COUNT, all of which must have been stored; what never is stored as zeros is not accepted. */
int cow_layout_rows(cow_table *table, cow_table_kind kind, uint64_t first, uint64_t count, void *rows);

/* ---- the log ---- */

/* A row of /_versioned_data/log. Texts are HDF5's (H5allocate_memory), or NULL: cow_layout_log_row_free. */
typedef struct cow_layout_log_row {
    char *name;
    int64_t parent, time;
    char *user, *host, *program, *hdf5, *h5cow, *message;
    int64_t added, chunks, changed;
    uint8_t open; /* 0: finished */
} cow_layout_log_row;
#define COW_LOG_OPEN      1 /* the transaction goes on */
#define COW_LOG_FORGOTTEN 2 /* only this row is left of it */

int cow_layout_log_create(cow_loc file);
int cow_layout_log_rows(cow_loc file, uint64_t *rows);
#define COW_LEAST_LOG_ROW 32 /* bytes of the members without which no log is accepted */
int cow_layout_log_read(cow_loc file, uint64_t row, cow_layout_log_row *out);
/* COUNT rows from FIRST on, of them the members that are named, the last name NULL (MEMBERS NULL: all). */
int cow_layout_log_read_many(cow_loc file, uint64_t first, uint64_t count, const char *const members[],
                             cow_layout_log_row *out);
/* Row number ROWS appends. A text that is empty is written as none, and read as NULL. */
int cow_layout_log_write(cow_loc file, uint64_t row, const cow_layout_log_row *in);
/* Rows beyond ROWS, of an attempt that failed, go. */
int cow_layout_log_trim(cow_loc file, uint64_t rows);
void cow_layout_log_row_free(cow_layout_log_row *row);
/* The log, for several rows: a commit writes one. STILL may be NULL; with it HDF5 opens and compares the log when it is needed for that, else here.
 * NULL: the error. */
struct cow_layout_still;
typedef struct cow_layout_log cow_layout_log;
cow_layout_log *cow_layout_log_open(cow_loc file, const struct cow_layout_still *still);
void cow_layout_log_close(cow_layout_log *log); /* NULL does nothing */
int cow_layout_log_take(cow_layout_log *log, uint64_t first, uint64_t count, const char *const members[],
                        cow_layout_log_row *out);
int cow_layout_log_put(cow_layout_log *log, uint64_t row, const cow_layout_log_row *in);
/* HDF5 gets the heaps into its memory in which the texts in MEMBERS of the newest rows are: those of the next row go where they have room. */
#define COW_LOG_MEET_MOST 5 /* rows */
int cow_layout_log_meet(cow_layout_log *log, const char *const members[]);
/* Only the members that are named, of a row that is there: the others stay, and texts of theirs where they are. */
int cow_layout_log_put_some(cow_layout_log *log, uint64_t row, const char *const members[],
                            const cow_layout_log_row *in);

/* ---- what versions do without ---- */

/* A row of /_versioned_data/incomplete: history/incomplete.c. */
typedef struct cow_layout_lack {
    uint64_t version, head; /* row of the version in the log; head object, UINT64_MAX: none */
    char *path, *reason;
} cow_layout_lack;

/* 1 and the open table; 0: there is none; -1. */
int cow_layout_lacks_open(cow_loc file, cow_table **table);
/* COUNT rows from FIRST on. Texts are HDF5's, or NULL: cow_layout_lacks_rows_free. *SUM: bytes of all that were read before and
 * are kept; 0 at first. */
int cow_layout_lacks_rows(cow_loc file, cow_table *table, uint64_t first, uint64_t count, uint64_t *sum,
                          cow_layout_lack *out);
void cow_layout_lacks_rows_free(cow_layout_lack *row, uint64_t count);
/* The table goes, whatever it is. */
int cow_layout_lacks_drop(cow_loc file);

/* ---- what was done to the history itself ---- */

typedef enum cow_operation {
    COW_OPERATION_TAG = 1,
    COW_OPERATION_UNTAG,
    COW_OPERATION_RENAME,
    COW_OPERATION_MESSAGE,
    COW_OPERATION_RESTORE, /* a version was made by it, as by those below */
    COW_OPERATION_UNDO,
    COW_OPERATION_REDO,
    COW_OPERATION_FORGET,
    COW_OPERATION_SQUASH,
    COW_OPERATION_COLLECT,
} cow_operation;

/* A row of /_versioned_data/operations: history/operations.c. */
typedef struct cow_layout_operation {
    int64_t time;     /* as in the log */
    uint64_t version; /* row in the log, of the version that was named, or made; UINT64_MAX: of none */
    char *user, *host, *program, *what;
    uint8_t kind; /* cow_operation; later ones may be added */
} cow_layout_operation;

/* 1, 0: does the file have that table? -1 */
int cow_layout_operations_exist(cow_loc file);
/* As of the table before. */
int cow_layout_operations_open(cow_loc file, cow_table **table);
int cow_layout_operations_rows(cow_loc file, cow_table *table, uint64_t first, uint64_t count, uint64_t *sum,
                               cow_layout_operation *out);
void cow_layout_operations_rows_free(cow_layout_operation *row, uint64_t count);

/* ---- free places ---- */

/* A row of /_versioned_data/free: history/space.c. The first one: `address` is the number of the commit that wrote the table. */
typedef struct cow_layout_free_row {
    uint64_t address, size; /* size 0: no place */
} cow_layout_free_row;

/* As of the tables before. */
int cow_layout_free_open(cow_loc file, cow_table **table);

/* ---- slots by their hashes ---- */

/* The runs (store/lookup.h) of a pool: as of the tables before. */
int cow_layout_hashes_open(cow_loc file, uint32_t pool, cow_table **table);
/* Without rows, instead of what is there. NULL: the error. */
cow_table *cow_layout_hashes_make(cow_loc file, uint32_t pool);

/* ---- rows of snapshots by addresses ---- */

/* The runs of the table `snapshots`: as of the tables before. */
int cow_layout_snapshot_rows_open(cow_loc file, cow_table **table);
/* Without rows, instead of what is there. NULL: the error. */
cow_table *cow_layout_snapshot_rows_make(cow_loc file);

/* ---- objects ---- */

/* Is PATH, as a virtual dataset may name it, below /_versioned_data? */
bool cow_layout_below(const char *path);
/* PATH, below /_versioned_data, with the number of a root record, above 0, written into it (docs/format.md, "Views"): HDF5 passes over
 * that, and the virtual dataset whose first mapping has this source tells whose view it is. */
void cow_layout_mark(char marked[COW_MARKED_MAX], const char *path, uint64_t root);
/* Has PATH a mark? Then *ROOT, and PATH (of COW_MARKED_MAX) is without it. */
bool cow_layout_unmark(char path[COW_MARKED_MAX], uint64_t *root);
/* 0: every link on PATH, which is absolute, is there and is a hard one. */
int cow_layout_hard(cow_loc file, const char *path);

/* Values of SPACE with TYPE that stand in the file: not more than it has bytes for. 0 and their number, or -1. */
int cow_layout_values(cow_loc file, hid_t type, hid_t space, size_t *n);
/* Bytes that reading what is compressed, missing or shared may take: 64 MiB and 8 times the file's size. The format keeps
 * nothing that needs more in datasets that HDF5 keeps itself, which are small; only others do. */
int cow_layout_most(cow_loc file, uint64_t *bytes);
/* The same for the elements of a dataset that HDF5 keeps itself, created with DCPL. Chunks may be missing or compressed: all
 * elements, and each chunk, have at most so much. Before they are read: cow_sum_fits, which looks at what is in heaps too. */
int cow_layout_elements(cow_loc file, hid_t dcpl, hid_t type, hid_t space, size_t *n);

/* ---- versions ---- */

/* 0: PATH is that of a version's tree: a group, by a hard link. -1. */
int cow_layout_version(cow_loc file, const char *path);

/* ---- pools ---- */

void cow_layout_raw_path(char path[COW_PATH_MAX], uint32_t pool);

/* What raw/<pool> is. */
typedef struct cow_raw {
    unsigned rank;
    uint64_t chunk[COW_MAX_RANK];
    uint64_t room;       /* slots that its extent has room for; nobody says that they are stored */
    size_t element_size; /* in memory */
    size_t chunk_bytes;  /* in memory */
} cow_raw;

void *cow_layout_raw_open(cow_loc file, uint32_t pool);
/* The shape of a pool from its type, space and creation properties. 0, or -1. */
int cow_layout_raw_shape(hid_t type, hid_t space, hid_t dcpl, cow_raw *raw);

/* ---- sequences ---- */

/* HDF5 takes memory for a variable-length element by the length that stands in it, before it looks for the sequence. So
 * these lengths are read first. */
typedef struct cow_lengths cow_lengths;
/* Where the lengths in an element of TYPE are. FILE: native. NULL: the error. */
cow_lengths *cow_lengths_open(void *file, hid_t type);
void cow_lengths_close(cow_lengths *lengths);
/* Bytes of an element in the file. */
size_t cow_lengths_element(const cow_lengths *lengths);
/* ELEMENTS elements, as they are in the file, and those before that *SUM counts name no more bytes than the file has. */
int cow_lengths_check(const cow_lengths *lengths, const void *bytes, uint64_t elements, uint64_t *sum);

#endif
