/* What the files of history/ share. Nobody else includes this.
 *
 *   file.c             the shared state of an open file: joining, leaving, laying out a new one
 *   pools.c            pools by signature
 *   dataset.c          versioned datasets: creating, opening, answering for the application's layout
 *   changes.c          what changed in this transaction
 *   commit.c           a transaction is committed: the head, and its version
 *   attempt.c          a version is made, or taken back
 *   snapshot.c         the head's tree becomes a version's tree (path copying)
 *   snapshot_table.c   which snapshot belongs to which head object
 *   version_objects.c  objects of a version by their tokens
 *   deleted.c          which head objects are gone
 *   bare.c             copies that the commit need not open
 *   unlinked.c         objects that were made without a link, until they get one
 *   counts.c           how many links an object has, as the application counts
 *   sums.c             checksums of what HDF5 keeps without any
 *   incomplete.c       what could not be put into a version
 *   versions.c         the log of versions, revisions by name and time
 *   api.c              what programs that know of versions ask for
 *   copy_elements.c    the elements of a dataset into another one
 *   map.c              numbers by numbers (map.h)
 *   copy.c copy_types.c copy_references.c   H5Ocopy (copy.h)
 */
#ifndef COW_HISTORY_INTERNAL_H
#define COW_HISTORY_INTERNAL_H

#include "base/map.h"
#include "history/history.h"
#include "view/view.h"

/* What a version does without, see incomplete.c. Texts are owned. */
typedef struct cow_lacks {
    cow_layout_lack *lack;
    size_t count, room;
} cow_lacks;

typedef struct cow_pool_entry {
    uint32_t id;
    cow_pool *pool;
    cow_codec *codec;
    hid_t dcpl, type;      /* of raw_data */
    cow_raw raw;           /* its shape when it was opened */
    uint64_t slots_before; /* when the transaction began */
} cow_pool_entry;

typedef struct cow_change_entry {
    uint64_t address;
    unsigned flags; /* bit set of 1 << cow_change, and COW_CHANGED_LINKS */
    char *path;     /* absolute, or NULL: unknown */
} cow_change_entry;
#define COW_CHANGED_LINKS (1u << 8)
#define COW_CHANGED_RENEW                                                                                              \
    (1u << 10) /* an earlier version lacks it, or an earlier commit: nothing is known of its change */
#define COW_CHANGED_ARRAY (1u << 9) /* a versioned dataset was opened for writing or written */

/* A version's objects by their tokens, both ways. */
typedef struct cow_version_objects {
    struct cow_version_objects *next;
    char *path;             /* of the version */
    uint64_t row;           /* in the log */
    uint64_t generation;    /* of `snapshots` when the maps were made */
    cow_map snapshot, head; /* of a head address; of a snapshot's */
    bool counted;
    cow_map count; /* address -> links and uses in this version: counts.c */
} cow_version_objects;

typedef enum cow_file_state {
    COW_FILE_CLEAN,
    COW_FILE_OPEN,
    COW_FILE_AMENDABLE,
    COW_FILE_FAILED,
    COW_FILE_ABANDONED
} cow_file_state;

struct cow_file {
    cow_file *next;
    unsigned long fileno; /* HDF5's number of the open physical file */
    unsigned references;
    char *name;
    char *replaced; /* the file whose place this one takes, until the first commit; or NULL */
    bool discard;   /* it is to be removed then */
    cow_options *options;
    char *next_name, *next_message; /* of the version to come, "": none; NULL: as the options say */
    pid_t owner;                    /* the process that opened it: forked children must not write */
    bool writable;
    bool shut;     /* by H5atclose: no native handle any more */
    bool laid_out; /* /_versioned_data exists */
    void *native;
    cow_map kept;     /* handles: cow_file_keep_handle */
    bool handle_lost; /* one could not be kept */
    cow_loc loc;      /* native, as a location */
    H5O_token_t root;
    cow_file_state state;
    /* tables, opened when laid out; pools and snapshots may be NULL until cow_file_open_all */
    cow_table *datasets, *pools, *snapshots, *index;
    bool opened_all;
    cow_pool_entry *pool; /* those that are open, in no order */
    size_t pool_count, pool_room;
    uint8_t *signature; /* of the first signature_count pools, COW_HASH_SIZE bytes each */
    size_t signature_count;
    cow_chunk_cache *cache;
    cow_map open_datasets; /* address of a head or snapshot object -> cow_dataset * */
    /* the transaction */
    cow_change_entry *change;
    size_t change_count, change_room;
    cow_map change_of; /* address -> index in change[] */
    uint64_t edits;    /* counts what was noted as changed, or kept */
    bool links_of_history_known;
    bool links_of_history_held;      /* by the history's own handle on a dataset: counted anew when that is closed */
    uint64_t links_of_history_edits; /* `edits` when they were counted */
    cow_map links_of_history;        /* address -> references that the history alone holds: counts.c */
    cow_map bare;          /* copies: address -> what bare.c knows of it */
    uint64_t bare_last;    /* the one noted last */
    bool full_walk;        /* some path may be wrong: walk the whole head */
    bool absolute_read;    /* the next one is what the attribute says */
    uint8_t absolute;      /* 1: groups other than the root may have absolute soft links, which name the version */
    bool shared_nodes;     /* a copy shares index nodes of this transaction: do not remove their views */
    uint64_t eoa_before;
    /* the newest version */
    int64_t version_row; /* in log, -1: none */
    uint64_t log_rows;
    int64_t amend_row;  /* row of the version of the running transaction, -1: not yet made */
    cow_map superseded; /* of these, offsets of those whose views are to be removed */
    cow_map node_at;    /* amendable nodes: hash of (dataset, level, origin) -> offset, for removing their views */
    /* snapshots: head address -> row of `snapshots` with the newest snapshot; loaded when first needed */
    bool snapshots_loaded;
    cow_layout_snapshot_row *snapshot;
    size_t snapshot_count, snapshot_room, snapshot_written;
    size_t snapshot_changed; /* the lowest row that differs from the file's */
    cow_map snapshot_of;
    cow_map snapshot_at;         /* snapshot address -> its row */
    cow_map left_out;            /* head objects that the newest version known of them had to do without: not deleted */
    cow_lacks lacks;             /* of the newest version, and of the next one: incomplete.c */
    bool lacks_read, lacks_lost; /* lost: the table cannot be read, so nothing is known to be the same as before */
    cow_map told;                /* head objects of which standard error was told that a version is without them */
    cow_map stale;               /* head objects that changed after the newest version: their checksums are of before */
    unsigned long failures;      /* of the driver when the running commit began */
    char refusal[1024];          /* a chunk that filters did not take in the running commit; "": none */
    bool refusing;               /* by filters of a dataset that HDF5 keeps itself, in this opening */
    bool unversioned;            /* the last commit could make no version */
    cow_map sum_checked;         /* what was compared with its checksum in this opening: sums.c */
    uint64_t snapshot_generation; /* counts changes of the rows */
    bool own_known;
    uint64_t own_generation; /* when `own` was filled in, and how many pools were open */
    size_t own_pools;
    cow_map own;      /* addresses of what is not the application's: deleted.c */
    cow_version_objects *version_objects; /* versions that were asked about */
    char error[1024]; /* why the state is FAILED */
};

struct cow_dataset {
    cow_file *file;
    uint64_t address; /* of the object */
    uint64_t id;
    unsigned references;
    bool snapshot;     /* read-only: an object of a version, or an alias */
    bool root_changed; /* by the running commit */
    uint64_t root;     /* offset of its root record, COW_NO_NODE: none yet */
    cow_layout_dataset_row row;
    cow_array array;
    char *label;
    bool named;      /* the label has the path */
    hid_t dcpl;      /* the native object's but for its mapping, which makes each copy of the list dear */
    void *native;    /* heads of writable files: a handle of our own, so that the address cannot be used again */
    bool let_go;     /* for a moment: cow_datasets_let_go */
    bool corked;     /* H5Odisable_mdc_flushes, which holds until the application's last handle is closed */
    bool dead;       /* deleted before it was ever committed */
    bool named_type; /* its type is a named datatype */
    cow_access *access;
};

/* file.c */
uint64_t cow_address(const H5O_token_t *token);
H5O_token_t cow_token(uint64_t address);
/* Make or open the tables. Needed before anything below is called. */
int cow_file_lay_out(cow_file *file);
/* Open what was left out because the file was opened for reading: pools, snapshots, and the number of rows of the log. */
int cow_file_open_all(cow_file *file);
int cow_file_open_snapshots(cow_file *file);
int cow_file_fail(cow_file *file); /* enter FAILED, keeping the recorded error; always -1 */
/* The history of the file that OBJECT, a native one, is in: *FILE NULL, it has none. 1: it was opened for that, by the name
 * and options of LIKE, to read only: cow_file_release; 0: it is open anyhow, and committed as far as its datasets go. */
int cow_file_join_reader(cow_loc object, unsigned long fileno, const cow_file *like, cow_file **file);
/* A commit has happened: the file whose place this one takes goes, or is forgotten. */
void cow_file_replaced(cow_file *file);
/* Nothing more is committed: the state is FAILED or ABANDONED. */
bool cow_file_ended(const cow_file *file);
int cow_file_begin(cow_file *file); /* may_write, then OPEN */
int cow_file_eoa(cow_file *file, uint64_t *eoa);

/* pools.c */
cow_pool_entry *cow_pools_get(cow_file *file, uint32_t id);
/* The pool for chunks of TYPE with the creation properties DCPL (chunked); made when there is none. */
int cow_pools_find(cow_file *file, hid_t type, hid_t dcpl, uint32_t *id);
void cow_pools_close(cow_file *file);

/* dataset.c */
/* A handle of our own on a head that is about to change. NATIVE: one that the application has, or NULL. */
int cow_dataset_hold(cow_dataset *dataset, void *native);
/* Free a fill value of TYPE in memory; HEAP: with what it points to. */
void cow_dataset_fill_free(hid_t type, bool heap, void *value);
/* Close what the dataset holds of the library and of the store; the structure stays. */
void cow_dataset_shut(cow_dataset *dataset);
/* Forget datasets that nobody has open and that have nothing to commit. */
void cow_datasets_sweep(cow_file *file);
int cow_dataset_row_write(cow_file *file, uint64_t id, const cow_layout_dataset_row *row);
int cow_dataset_row_read(cow_file *file, uint64_t id, cow_layout_dataset_row *row);
void cow_head_path(char path[COW_PATH_MAX], uint64_t id);
bool cow_dataset_dirty(const cow_dataset *dataset);

/* copy_elements.c: type and extent of both are equal, and the chunks of chunked ones as well. TARGET may be written
 * (cow_dataset_begin_write). Values that are, or hold, references are given to CHANGE before they are written. FILE: its
 * name, for messages. */
/* From a versioned dataset into TARGET, or, where that is NULL, into the native dataset NATIVE of another file. */
int cow_copy_elements_of_dataset(cow_dataset *source, cow_dataset *target, void *native, cow_values_change *change,
                                 void *context);
/* From a native dataset of another file. */
int cow_copy_elements_of_native(void *source, cow_dataset *target, cow_values_change *change, void *context);
/* From one native dataset into another: of the same file, where references stay what they are; or of another file. */
int cow_copy_elements_within_file(const char *file, void *source, void *target);
int cow_copy_elements_between_files(const char *file, void *source, void *target, cow_values_change *change,
                                    void *context);

/* changes.c */
/* The object at ADDRESS is made anew by the next version, whatever it had; PATH as for cow_changed_object. */
int cow_changes_renew(cow_file *file, uint64_t address, const char *path);
void cow_changes_clear(cow_file *file);
unsigned cow_change_flags(const cow_file *file, uint64_t address);
/* Is PATH ("" for the root) an ancestor of something that changed? */
bool cow_changes_below(const cow_file *file, const char *path);

/* file.c: a dataset or other object of the head. One that the application has open is opened only as the application did
 * (HDF5 compares prefixes for external files), so then it is a handle of the application's: *BORROWED, not to be closed. */
int cow_head_open(const cow_file *file, uint64_t address, cow_loc *object, bool *borrowed);

/* commit.c */
/* Steps 1 and 2 of a commit alone: every open head's content is in pools, index and views. */
int cow_commit_datasets(cow_file *file);
/* The fill value of a dataset as creation properties for its views; the caller closes it. */
hid_t cow_view_dcpl(const cow_dataset *dataset);

/* attempt.c */
/* The head's own data are written: a new version, where the head differs from the newest one. 0 also where none could be made
 * (file->unversioned); -1: the commit fails. */
int cow_version_commit(cow_file *file, bool finished);
/* The transaction ends with nothing more to say than the last flush did. */
int cow_version_close(cow_file *file);

/* bare.c: what a snapshot of a versioned dataset shows. Lent, as are its ids. */
typedef struct cow_shown {
    uint64_t root; /* offset of the root record */
    unsigned rank;
    const uint64_t *extent, *maximum;
    hid_t type, dcpl; /* dcpl: without a mapping */
} cow_shown;
/* ADDRESS, a copy of SOURCE with the root record at ROOT, has neither attributes nor a comment. */
int cow_bare_note(cow_file *file, uint64_t address, const cow_dataset *source, uint64_t root);
/* NULL: not such a copy. It says nothing of one that was changed since. */
const cow_shown *cow_bare_find(const cow_file *file, uint64_t address);
/* Another object was made at ADDRESS. */
void cow_bare_forget(cow_file *file, uint64_t address);
void cow_bare_forget_all(cow_file *file);

/* unlinked.c: objects that were made without a link, by address */
int cow_unlinked_note(cow_map *unlinked, cow_loc made);
/* Something is about to be made that uses TYPE, perhaps such an object: a use counts as a link does. */
int cow_unlinked_use(cow_map *unlinked, cow_loc type);
/* Link any object, perhaps such a one. */
int cow_unlinked_link(cow_map *unlinked, cow_loc object, cow_loc to, const char *name);
/* It is closed without having got one. What is recorded as an error stays. */
void cow_unlinked_forget(cow_map *unlinked, cow_loc made);

/* snapshot.c */
/* Does the head differ from the newest version? 1, 0, -1. Decides for every object (kept for the build). */
typedef struct cow_walk cow_walk;
cow_walk *cow_walk_open(cow_file *file);
void cow_walk_close(cow_walk *walk);
int cow_walk_decide(cow_walk *walk);
/* After a walk through the whole head: what changed, and is known to versions, but no link leads to it. It is not deleted: a
 * link to itself, a count or a handle holds it, and it may be linked again. To LACKS, as rows of VERSION, which is to come. */
int cow_walk_note_unreached(const cow_walk *walk, uint64_t version, cow_lacks *lacks);
/* Build the version's tree and link it as versions/NAME; ROW is its row in the log. *CHANGED: objects made; LACKS: what
 * could not be made. When this or anything after it fails: cow_walk_undo. When all is done: cow_walk_settle. */
int cow_walk_build(cow_walk *walk, const char *name, uint64_t row, int64_t *changed, cow_lacks *lacks);
/* The tree goes again; an amended version has its former tree. -1: that failed. */
int cow_walk_undo(cow_walk *walk);
int cow_walk_settle(cow_walk *walk);

/* file.c: the head object at ADDRESS, which a version knows, is linked in /_versioned_data/removed. */
int cow_file_keep(cow_file *file, uint64_t address);

/* incomplete.c */
/* One more; the texts are copied. PATH NULL: "". */
int cow_lacks_add(cow_lacks *lacks, uint64_t version, uint64_t head, const char *path, const char *reason);
void cow_lacks_free(cow_lacks *lacks);
/* What the newest version, and changes that are in no version, lack: into file->lacks. Looks once. */
int cow_lacks_load(cow_file *file);
/* Heads that versions had to do without: VISIT for each row of the table. TO_COME: there is no such version yet. */
typedef int cow_lack_visitor(void *context, uint64_t version, uint64_t head, bool to_come);
int cow_lacks_visit(cow_file *file, cow_lack_visitor *visit, void *context);
/* LACKS, of versions from FROM on, instead of what the table has of these. */
int cow_lacks_put(cow_file *file, uint64_t from, const cow_lacks *lacks);
/* Standard error is told of each object once. VERSION: its name. */
void cow_lacks_tell(cow_file *file, const char *version, const cow_lacks *lacks);

/* snapshot_table.c */
int cow_snapshots_load(cow_file *file);
int cow_snapshots_flush(cow_file *file);
/* Rows of versions before FROM are not touched from here on. What is done to others until cow_snapshots_done, SAVED keeps
 * as it was for cow_snapshots_undo. */
typedef struct cow_snapshots_saved {
    cow_layout_snapshot_row *row; /* from `first` on */
    size_t first, count, written;
} cow_snapshots_saved;
int cow_snapshots_begin(cow_file *file, uint64_t from, cow_snapshots_saved *saved);
int cow_snapshots_undo(cow_file *file, cow_snapshots_saved *saved);
void cow_snapshots_done(cow_snapshots_saved *saved);
/* Was HEAD left out of the newest version that knows of it (and not deleted)? */
bool cow_snapshots_left_out(const cow_file *file, uint64_t head);
/* SUMS: checksums of the head, which did not change, 0 where it did. */
int cow_snapshots_leave_out(cow_file *file, uint64_t head, uint64_t version, const cow_layout_snapshot_row *sums);
/* Does any version know this head object? */
bool cow_snapshots_known(const cow_file *file, uint64_t head);
/* The newest snapshot of a head object; false: none, or none that still counts. */
bool cow_snapshots_newest(const cow_file *file, uint64_t head, uint64_t *snapshot);
int cow_snapshots_add(cow_file *file, const cow_layout_snapshot_row *row);
/* The row that tells what an object is: of a snapshot its own, of a head that of its newest snapshot. */
bool cow_snapshots_find(const cow_file *file, uint64_t address, uint64_t *row);
/* A row says nothing any more: no tree holds its snapshot. */
int cow_snapshots_strike_out(cow_file *file, uint64_t row);

/* sums.c: the sums are 0 where there is nothing that HDF5 does not check itself */
/* Those of a snapshot. ELEMENTS: not of a versioned dataset, whose sum is cow_sum_root. */
int cow_sum_snapshot(cow_file *file, cow_loc snapshot, bool elements, cow_layout_snapshot_row *row);
/* Does a dataset at ADDRESS, of a version, name the root record that it named when it was made? 0, -1 COW_CORRUPT. */
int cow_sum_check_root(cow_file *file, uint64_t address, uint64_t offset);
/* counts.c: how many of the references that HDF5 counts at the head object at ADDRESS are the history's. */
int cow_head_links_of_history(cow_file *file, uint64_t address, unsigned *count);
/* version_objects.c */
cow_version_objects *cow_version_objects_of(cow_file *file, const char *version_path);
void cow_version_objects_free(cow_file *file);

/* deleted.c */
/* Note in `snapshots` which head objects are not in the version of ROW any more. MET: the addresses of all that can be
 * reached in the head. */
int cow_deleted_note(cow_file *file, const cow_map *met, uint64_t row);

/* api.c */
/* -1: there is a version of that name. */
int cow_version_is_new(const cow_file *file, const char *name);
/* 1: there is, 0, -1. Of a file that is laid out. */
int cow_version_exists(const cow_file *file, const char *name);
/* The version to come has come. */
void cow_description_used(cow_file *file);
/* What it is to be called (NULL: by its number), and its message (NULL: none). */
const char *cow_description_name(const cow_file *file);
const char *cow_description_message(const cow_file *file);

/* versions.c */
/* The name of the version in the value of a tag; NULL: it is not the path of a version. */
const char *cow_tagged_version(const char *value);
/* HDF5 puts the texts of the log and the mappings of views into a heap block that it has met since the file was opened
 * and that has room for them, or into a new one of 4 KiB. It meets those that the newest of ROWS rows lead to. */
int cow_versions_meet_blocks(cow_loc file, uint64_t rows);
/* Fill in who, where, what and when. */
int cow_versions_describe_row(cow_layout_log_row *row, const char *message);

#endif
