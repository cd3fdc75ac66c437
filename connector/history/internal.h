/* What the files of history/ share. Nobody else includes this.
 *
 * Parts of a file, each a type of its own whose fields no other file of this room touches, with a header of their name:
 *   state.c            who may write, what failed
 *   changes.c          what changed in this transaction
 *   snapshot_table.c   which snapshot belongs to which head object
 *   incomplete.c       what could not be put into a version
 *   next_version.c     which version comes next, and how it is called
 *   datasets.c         which datasets are open, and the table of all
 *   pools.c            pools by signature
 *   bare.c             copies that the commit need not open
 *   stowed.c           datasets that were committed before the version is made, and closed
 *   superseded.c       index nodes that a later flush of the transaction wrote again
 *   copied.c           large groups whose links HDF5 has not counted
 *   space.c            free space from one opening to the next
 *   absolute_links.c   whether versions have links that name the version
 *
 *   file.c             an open file: joining, leaving, emptying the head
 *   tables.c table.c   the tables of the history: laying out, opening
 *   head.c             objects of the head, and keeping them when they are deleted
 *   values.c           addresses, tokens, paths, values that hold others
 *   dataset.c          versioned datasets: creating, opening, answering for the application's layout
 *   commit.c           a transaction is committed: the head, and its version
 *   attempt.c          a version is made, or taken back
 *   decide.c           what of the head is the same as in the newest version
 *   snapshot.c         the head's tree becomes a version's tree (path copying)
 *   previous.c         what a group of it takes from the group's newest snapshot
 *   group_copy.c       the same of large groups, whose bytes are copied
 *   former_tree.c      a tree that goes again: of an amended version, or of one that failed
 *   version_objects.c  objects of a version by their tokens
 *   deleted.c          which head objects are gone
 *   unlinked.c         objects that were made without a link, until they get one; open ones that have none any more
 *   counts.c           how many links an object has, as the application counts
 *   sums.c             checksums of what HDF5 keeps without any
 *   stand_in.c         what stands in for datasets that HDF5 has not opened
 *   versions.c         rows of the log, revisions by name and time
 *   naming.c           tags, names and messages of versions that are there
 *   operations.c       what is done to the history itself: beginning, recording, committing
 *   forget.c           versions that go
 *   reach.c            what head and versions need
 *   collect.c          what nobody needs becomes free
 *   api.c              what programs that know of versions ask for
 *   copy_elements.c    the elements of a dataset into another one
 *   header.c           attributes and comment beside those of another object
 *   copy.c copy_types.c copy_references.c   H5Ocopy (copy.h)
 *   restore.c restore_links.c restore_object.c   the head as it was in a version (restore.h)
 */
#ifndef COW_HISTORY_INTERNAL_H
#define COW_HISTORY_INTERNAL_H

#include "base/map.h"
#include "history/absolute_links.h"
#include "history/bare.h"
#include "history/changes.h"
#include "history/copied.h"
#include "history/datasets.h"
#include "history/folders.h"
#include "history/head.h"
#include "history/history.h"
#include "history/incomplete.h"
#include "history/native_head.h"
#include "history/next_version.h"
#include "history/pools.h"
#include "history/snapshot_table.h"
#include "history/space.h"
#include "history/state.h"
#include "history/stowed.h"
#include "history/superseded.h"
#include "history/tables.h"
#include "history/values.h"
#include "history/views.h"
#include "journal/journal.h"
#include "layout/still.h"
#include "view/view.h"

typedef struct cow_refused cow_refused;                 /* commit.c */
typedef struct cow_counts cow_counts;                   /* counts.c */
typedef struct cow_own cow_own;                         /* deleted.c */
typedef struct cow_sums cow_sums;                       /* sums.c */
typedef struct cow_told cow_told;                       /* told.c */
typedef struct cow_stand_in cow_stand_in;               /* stand_in.c */
typedef struct cow_version_objects cow_version_objects; /* version_objects.c */

/* More than 20 fields: each part has its pointer here, and what all of them need of the file stands beside. */
struct cow_file {
    /* file.c; what does not change is for all to read */
    cow_file *next;
    unsigned long fileno; /* HDF5's number of the open physical file */
    unsigned references;
    char *name;
    bool left; /* the program ends, and did not close the file */
    cow_options *options;
    H5F_libver_t low; /* cow_file_written_for */
    H5O_token_t root;
    void *native;
    cow_loc loc;           /* native, as a location */
    cow_map kept;          /* handles: cow_file_keep_handle */
    cow_map open_unlinked; /* groups that have no link, and that the program has open, by address: unlinked.c */
    /* tables.c; all may read them */
    bool laid_out;   /* /_versioned_data exists */
    bool opened_all; /* not only what reading needs */
    uint32_t format; /* that the file says; 0: it has no history yet */
    bool spaces_known;
    uint8_t spaces; /* cow_file_spaces; COW_NO_SPACES */
    cow_table *index;
    cow_chunk_cache *cache;
    cow_journal *journal;      /* NULL: the file has none */
    cow_layout_still *still;   /* bytes of a file that is only read; NULL: tables are opened */
    cow_layout_still *written; /* the same of a file that is written: at most one of the two */
    cow_native_bytes bytes;    /* cow_file_bytes */
    bool bytes_asked, bytes_known;
    bool narrow_asked, narrow; /* cow_file_narrow */
    /* parts, each with a file of its own that alone looks into it */
    cow_state *state;
    cow_changes *changes;
    cow_snapshots *snapshots;
    cow_datasets *datasets;
    cow_pools *pools;
    cow_room room; /* of pools and runs */
    cow_next_version *next_version;
    cow_incomplete *incomplete;
    cow_absolute_state *absolute;
    cow_superseded *superseded;
    cow_bare *bare;
    cow_stowed *stowed;
    cow_refused *refused;
    cow_counts *counts;
    cow_own *own;
    cow_sums *sums;
    cow_version_objects *version_objects;
    cow_space *space;
    cow_folders *folders;
    cow_views *views;
    cow_copied *copied;
    cow_told *told;
    cow_native_head *native_head;
    cow_stand_in *stand_in;
};

/* More than 20 fields: one open dataset has a side for creating, reading, committing, copying and closing it, and each is a flag. */
struct cow_dataset {
    cow_file *file;
    uint64_t address; /* of the object */
    uint64_t id;
    unsigned references;
    bool snapshot;     /* read-only: an object of a version, or an alias */
    bool root_changed; /* by the running commit */
    bool whole_view;   /* so was the view of its root, which can be the snapshot, and is none yet */
    uint64_t view;     /* where the header of that view is, 0: not known */
    uint64_t root;     /* offset of its root record, COW_NO_NODE: none yet */
    uint64_t led;      /* the one whose view heads/<id> leads to */
    cow_layout_dataset_row row;
    uint32_t pool; /* of array.pool */
    cow_array array;
    char *label;
    bool named; /* the label has the path */
    hid_t dcpl; /* in files that can be written; else cow_dataset_properties */
    hid_t told; /* what the application is told of them: told.c; H5I_INVALID_HID: it has not asked yet */
    bool bare;  /* HDF5 has never had it open, and it was made without attributes: cow_changes_bare */
    bool usual; /* but for what row and pool say, and that times are kept or not, they are the default ones */
    bool times;
    /* A handle of our own: heads of writable files have one, so that their address cannot be used again; others where they are kept. */
    void *native;
    bool let_go;     /* for a moment: cow_datasets_let_go */
    bool committing; /* a list holds it: cow_commit_datasets */
    bool kept;       /* cow_datasets_keep */
    bool corked;     /* H5Odisable_mdc_flushes, which holds until the application's last handle is closed */
    bool dead;       /* deleted before it was ever committed */
    bool unlinked;   /* HDF5 has counted no link, and may not know that any more: cow_dataset_unlinked */
    bool named_type; /* its type is a named datatype */
    bool asked;      /* its filters whether they can encode, since the program has it open */
    cow_access *access;
};

/* file.c */
/* The history of the file that OBJECT, a native one, is in: *FILE NULL, it has none. 1: it was opened for that, by the name
 * and options of LIKE, to read only: cow_file_release; 0: it is open anyhow, and committed as far as its datasets go. */
int cow_file_join_reader(cow_loc object, unsigned long fileno, const cow_file *like, cow_file **file);
/* May datasets that the program has closed stay open for who opens them again? Not after cow_file_keep_no_closed, which cow_file_prefix_seen
 * calls. */
bool cow_file_keeps_closed(void);
void cow_file_keep_no_closed(void);
/* Where and how HDF5 keeps it on the disk, but for `persists`, which is not told. NULL: its bytes cannot be had. */
const cow_native_bytes *cow_file_bytes(cow_file *file);

/* dataset.c */
/* A handle of our own on a head that is about to change. NATIVE: one that the application has, or NULL. */
int cow_dataset_hold(cow_dataset *dataset, void *native);
/* A head that every HDF5 reads, where that may be: as cow_native_head_make. */
int cow_dataset_make_native(cow_file *file, const cow_creation *wanted, bool unopened, const cow_root *root,
                            cow_layout_dataset_row *row, void **native);
/* Has the head attributes? 1, 0, -1. It gets a handle of our own where its bytes do not tell. */
int cow_dataset_has_attributes(cow_dataset *dataset);
/* Nobody has it open, and the commit needs nothing of it: it is closed, and forgotten. */
void cow_dataset_free(cow_dataset *dataset);
/* commit.c: what a commit does with datasets, before there is a version, for COUNT of them that nobody has open. 1: something could not be
 * stored, and none is committed; -1: half of it is done. */
int cow_commit_some(cow_file *file, cow_dataset *list[], size_t count);
/* Close what the dataset holds of the library and of the store; the structure stays. */
void cow_dataset_shut(cow_dataset *dataset);
/* All of them, as by cow_dataset_shut, and the table. */
void cow_datasets_shut(cow_file *file);
/* Forget datasets that nobody has open and that have nothing to commit. */
void cow_datasets_sweep(cow_file *file);
bool cow_dataset_dirty(const cow_dataset *dataset);
/* Has nobody it open, and no commit to do with it? Then it goes when others are kept. */
bool cow_dataset_idle(const cow_dataset *dataset);

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
/* The same where TARGET has elements already, of which none stay. */
int cow_copy_elements_over(const char *file, void *source, void *target);
int cow_copy_elements_between_files(const char *file, void *source, void *target, cow_values_change *change,
                                    void *context);

/* commit.c */
/* What filters refused. NULL: no memory. */
cow_refused *cow_refused_new(void);
void cow_refused_free(cow_refused *refused);
/* heads/<id> leads to the view of the root record at ROOT. FIRST: it most likely leads nowhere yet. */
int cow_head_lead(cow_file *file, uint64_t id, uint64_t root, bool first);
/* Nobody shows the dataset ID any more: heads/<id> goes, and its row names no root. */
int cow_head_end(cow_file *file, uint64_t id);
/* The same of its row alone, which takes no space. */
int cow_head_end_row(cow_file *file, uint64_t id);
/* What was done to the history alone, while nothing of the head has changed. -1: the file is in the error state. */
int cow_file_commit_history(cow_file *file);
/* The program ends in a filter, in the middle of storing chunks: what of that goes on without it is committed, step by step. LAST: nobody asks
 * again, so a dataset whose filter has ended the program before loses what it has not stored. -1: as a commit. */
int cow_file_commit_interrupted(cow_file *file, bool last);
/* Steps 1 and 2 of a commit alone: every open head's content is in pools, index and views. */
int cow_commit_datasets(cow_file *file);
/* What HDF5 holds in memory, into the file. A chunk that a filter does not take is told at the next call of the program. */
int cow_file_flush_native(cow_file *file);
/* What all views of a dataset share; cow_view_end closes it. */
int cow_dataset_views(const cow_dataset *dataset, cow_view_context *context);
/* Make the view of the root record ROOT at OFFSET. LEAF: room for its top node, and that node where its offset says so. DCPL, and what
 * is returned: cow_view_root. */
int cow_root_show(cow_file *file, cow_view_context *context, uint64_t offset, const cow_root *root, cow_node *leaf,
                  hid_t dcpl);

/* attempt.c */
/* The head's own data are written: a new version, where the head differs from the newest one. 0 also where none could be made
 * (cow_versions_missed); -1: the commit fails. */
int cow_version_commit(cow_file *file, bool finished);
/* The transaction ends with nothing more to say than the last flush did. */
int cow_version_close(cow_file *file);

/* unlinked.c: objects that were made without a link, by address; and that have none any more */
int cow_unlinked_note(cow_map *unlinked, cow_loc made);
/* Something is about to be made that uses TYPE, perhaps such an object: a use counts as a link does. */
int cow_unlinked_use(cow_map *unlinked, cow_loc type);
/* Link any object, perhaps such a one. */
int cow_unlinked_link(cow_map *unlinked, cow_loc object, cow_loc to, const char *name);
/* It is closed without having got one. What is recorded as an error stays. */
void cow_unlinked_forget(cow_map *unlinked, cow_loc made);
/* Has the open dataset no link, so that it is gone when it is closed? 1, 0, -1. */
int cow_dataset_unlinked(cow_dataset *dataset);
/* The same of the open group that INFO (H5O_INFO_BASIC) tells of. */
bool cow_group_unlinked(const cow_file *file, const H5O_info2_t *info);

/* decide.c, snapshot.c, former_tree.c: walk.h */
/* In files for external storage, or in the sources of a virtual dataset: its elements are in no version. */
bool cow_lies_elsewhere(hid_t dcpl);
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
int cow_walk_build(cow_walk *walk, const char *name, uint64_t row, cow_lacks *lacks);
/* The tree goes again; an amended version has its former tree. -1: that failed. */
int cow_walk_undo(cow_walk *walk);
int cow_walk_settle(cow_walk *walk);

/* sums.c: the sums are 0 where there is nothing that HDF5 does not check itself */
/* What was compared in this opening. NULL: no memory. */
cow_sums *cow_sums_new(void);
void cow_sums_free(cow_sums *sums);
/* Those of a snapshot. ELEMENTS: not of a versioned dataset, whose sum is cow_sum_root; where a filter is missing, it stays as it is
 * in ROW. CHECKED: so must some of its attributes be. */
int cow_sum_snapshot(cow_file *file, cow_loc snapshot, bool elements, bool checked, cow_layout_snapshot_row *row);
/* Does a dataset at ADDRESS, of a version, name the root record that it named when it was made? 0, -1 COW_CORRUPT. */
int cow_sum_check_root(cow_file *file, uint64_t address, uint64_t offset);
/* stand_in.c */
/* NULL: no memory. */
cow_stand_in *cow_stand_in_new(void);
void cow_stand_in_free(cow_stand_in *stand_in);
void cow_stand_in_close(cow_file *file);
/* told.c */
/* NULL: no memory. */
cow_told *cow_told_new(void);
void cow_told_free(cow_told *told);
void cow_told_close(cow_file *file);
/* counts.c */
/* NULL: no memory. */
cow_counts *cow_counts_new(void);
void cow_counts_free(cow_counts *counts);
/* How many of the references that HDF5 counts at the head object at ADDRESS are the history's? */
int cow_head_links_of_history(cow_file *file, uint64_t address, unsigned *count);
/* After that: 1: the head object at ADDRESS hangs below a group that was deleted, and that the application still has open. 0, -1 */
int cow_head_below_open(cow_file *file, uint64_t address);
/* Is the object one of those, as of the last cow_head_links_of_history? */
bool cow_head_is_open(const cow_file *file, uint64_t address);
/* The history is about to close a handle of its own on a dataset: it may be what kept others alive. */
void cow_counts_closed(cow_file *file);

/* version_objects.c: of versions that were asked about, NULL: of none */
void cow_version_objects_free(cow_version_objects *objects);

/* operations.c: one more row, for the commit that follows. VERSION: row in the log, UINT64_MAX: none. */
int cow_operation_record(cow_file *file, cow_operation kind, uint64_t version, const char *what);
/* The option keep= has forgotten COUNT versions, by this text of it. What it did at earlier closings is in the same row. */
int cow_operation_record_kept(cow_file *file, uint64_t count, const char *policy);
/* 0: the history may be changed now, by a commit of its own, and its tables are open. */
int cow_operation_begin(cow_file *file);
/* STATUS of what was done: it is recorded and committed, or dropped. */
int cow_operation_end(cow_file *file, int status, cow_operation kind, uint64_t version, const char *what);
/* The same of what is recorded already, or goes without saying. */
int cow_operation_end_recorded(cow_file *file, int status);
/* It is dropped: nothing more is committed. The recorded error stays; always -1. */
int cow_operation_drop(cow_file *file);

/* collect.c: cow_file_collect, after the option keep= has forgotten something: not recorded. */
int cow_file_collect_by_policy(cow_file *file);

/* naming.c: 1: there is a group of tags, 0: none yet; -1 also where it is something else */
int cow_tags_are_there(cow_file *file);

/* reach.c: what head and versions need of pools, index and views. NULL: the error, which may be damage. */
typedef struct cow_reach cow_reach;
cow_reach *cow_reach_find(cow_file *file);
void cow_reach_free(cow_reach *reach);
bool cow_reach_slot(const cow_reach *reach, uint32_t pool, uint64_t slot);
/* A record of the index, root or node. */
bool cow_reach_record(const cow_reach *reach, uint64_t offset);
/* Datasets whose object is gone, and which still have a root. */
size_t cow_reach_ended(const cow_reach *reach, const uint64_t **ids);

/* dataset.c: what a virtual dataset is. 1: a head (*NUMBER: id), 2: it shows the view of a root record, or is that view (*NUMBER: the
 * record), 0: something else; -1. */
int cow_dataset_source(hid_t dcpl, uint64_t *number);
/* The same of the dataset NATIVE, whose creation properties are DCPL: also a head that HDF5 reads. */
int cow_dataset_kind(cow_file *file, void *native, hid_t dcpl, uint64_t *number);
/* The creation properties of the native object but for its mapping; they stay the state's. NATIVE: the object where the caller has it open,
 * or NULL. H5I_INVALID_HID: the error. */
hid_t cow_dataset_properties(cow_dataset *dataset, void *native);
/* Is it the view of a root, which has links of its own besides those of versions? 1, 0, -1 */
int cow_dataset_is_view(void *native);

/* deleted.c */
/* Addresses that are not the application's. NULL: no memory. */
cow_own *cow_own_new(void);
void cow_own_free(cow_own *own);
/* An object of the history's was made or removed. */
void cow_own_changed(cow_file *file);
/* Note in `snapshots` which head objects are not in the version of ROW any more. MET: the addresses of all that can be
 * reached in the head. *HELD: a version knows objects that live on without a link: a count, or a link to itself, holds them. */
int cow_deleted_note(cow_file *file, const cow_map *met, uint64_t row, bool *held);
/* The same without MET. Before the version is made: 1: *GONE has all that is not in it any more, which is what lost its only link since,
 * and what was below; 0: only a walk through the whole head tells; -1. */
int cow_deleted_settle(cow_file *file, cow_map *gone);
int cow_deleted_add(cow_file *file, const cow_map *gone, uint64_t row);
/* H5Fcreate has emptied the head, of which ROOT is what is left. */
int cow_deleted_clear(cow_file *file, cow_loc root);

/* versions.c */
/* The name of the version in the value of a tag; NULL: it is not the path of a version. */
const char *cow_tagged_version(const char *value);
/* HDF5 puts the texts of the log and the mappings of views into a heap block that it has met since the file was opened
 * and that has room for them, or into a new one of 4 KiB. It meets those that the newest rows of LOG lead to. */
int cow_versions_meet_blocks(cow_layout_log *log);
/* TEXT as rows of tables have it: H5allocate_memory. NULL: no memory. */
char *cow_versions_text(const char *text);
/* Fill in who, where, what and when. */
int cow_versions_describe_row(cow_layout_log_row *row, const char *message);

#endif
