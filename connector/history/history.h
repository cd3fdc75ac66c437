/* One open file with history: the door of the room that the VOL callbacks call.
 *
 * A cow_file is shared by all handles on one physical file (device, inode) and lives from the first opening through
 * the connector until the last handle of any kind is closed. It holds a native handle of its own, so that it can commit
 * after the application has closed its file id but not its datasets.
 *
 *    cow_file_attach --> CLEAN --cow_changed_*, dataset writes--> OPEN (a transaction)
 *    OPEN --cow_file_commit(FLUSH)--> AMENDABLE (the version exists, marked open) --change--> OPEN
 *    OPEN --a flush that could make no version--> OPEN
 *    OPEN, AMENDABLE --cow_file_commit(VERSION, FINISH)--> CLEAN, a finished version
 *    any --error while committing the head--> FAILED (sticky: nothing more is written, every later commit returns the error)
 *    any --cow_file_abandon--> ABANDONED (sticky: nothing more is written, by the program's wish: commits do nothing)
 *
 * What only concerns the version is no error of the commit: the version does without an object, or the commit without a
 * version (docs/promises.md).
 *
 * What is on disk: docs/format.md.
 */
#ifndef COW_HISTORY_H
#define COW_HISTORY_H

#include "base/options.h"
#include "io/array.h"
#include "layout/layout.h"

typedef struct cow_file cow_file;
typedef struct cow_dataset cow_dataset;

/* ---- files ---- */

/* 1: the open native file has history (made by h5cow, of a format this build knows), 0: it has none, -1: it has, but
 * of a newer format, or damaged: the error says so. */
int cow_file_versioned(void *native_file);
/* The same inside of H5Fopen, where HDF5 cannot yet look at an attribute through the handle that it opens, but crashes where
 * its type is a variable-length one: 1 only says that there is a history. cow_file_attach looks at its format. */
int cow_file_has_history(void *native_file);

/* Join, or make, the shared state of NATIVE_FILE, which is open read-write or read-only and has history, or, with
 * CREATED, has just been created empty and is to have it from now on. NAME: as the application gave it, for messages.
 * One reference more; give it back with cow_file_release. OPTIONS are copied by the one that makes the state. */
cow_file *cow_file_attach(void *native_file, const char *name, bool writable, bool created, const cow_options *options);
/* What is written from now on, HDF5 of version LOW and later is to read. Until it is told: all that there are. */
void cow_file_written_for(cow_file *file, H5F_libver_t low);
/* Have its addresses fewer than 8 bytes? */
bool cow_file_narrow(cow_file *file);
/* One reference less. The last one commits what is not yet committed, closes the native handle and frees the state.
 * The error of that commit is returned; the state is gone all the same. Every wrapper holds one reference. */
int cow_file_release(cow_file *file);
cow_file *cow_file_reference(cow_file *file);

/* The index of shared messages that the program wanted dataspaces in (H5O_SHMESG_SDSPACE_FLAG), or COW_NO_SPACES. HDF5 is not told
 * (vol/create.c), so the history keeps it. The second: the file, which is open for writing, was created with INDEX. */
#define COW_NO_SPACES 255u
int cow_file_spaces(cow_file *file, uint8_t *index);
int cow_file_set_spaces(cow_file *file, uint8_t index);

/* FLUSH: durable, and what follows amends the same version (with the option commit=flush it is finished). VERSION: the
 * version is finished. FINISH: and the journal applies what is pending, as at a close, though more may be written later.
 * Where nothing changed, nothing is done. */
typedef enum { COW_FLUSH, COW_VERSION, COW_FINISH } cow_commit_kind;
int cow_file_commit(cow_file *file, cow_commit_kind kind);
/* Is it written, and only in memory: without a journal? */
bool cow_file_in_memory(const cow_file *file);
/* NATIVE, and everything but the state itself; where HDF5 has no other handle on the file, it is closed. -1: not all was written. */
int cow_file_close_natively(cow_file *file, void *native);
/* Is the last commit of the file to be made by closing it? */
bool cow_file_commits_by_closing(cow_file *file);
/* Commit (FINISH) by closing, in the callback that closes the id of NATIVE, the last handle of the application. *CLOSED: it is closed, and
 * with it all but the state itself, also where -1 is returned; false: -1 comes from before that. TOLD: that has been told once, so only
 * close. Where nothing is to be committed, that HDF5 cannot close the file is no error: what it has written then is dropped. */
int cow_file_commit_by_closing(cow_file *file, void *native, bool told, bool *closed);
/* Called after each commit; NULL: nothing. */
extern void (*cow_file_committed)(cow_file *file);
/* -1: in the last commit, a chunk was refused by the filters of its dataset, which is open. All else is committed. */
int cow_file_refused(cow_file *file);
/* Was there ever such a chunk in a dataset that HDF5 keeps itself? */
bool cow_file_refusing(const cow_file *file);
/* Head objects get the extents that their datasets were given since the last commit, for HDF5 code that goes past us. */
int cow_file_show_extents(cow_file *file);
/* The file is closed, or the program ends. After a failure that is final for this opening: what of it is lost, and why, is
 * said on standard error, and to `h5cow run`, once. Else nothing. Releasing the file, and the next three, do that as well. */
void cow_file_tell_lost(cow_file *file);
/* Is there room on the disk for a commit now? The flush of a dataset commits nothing, and fails natively where there is none. */
int cow_file_room(cow_file *file);
/* At exit: what can still be committed. */
void cow_file_commit_left(cow_file *file);
/* The same of every open file, or with LAST cow_file_let_go. */
void cow_file_commit_all(bool last);
/* Commit, and close everything but the state itself: the library is closing. NATIVE is the handle that this is called on;
 * its caller closes it, also if it is one that cow_file_keep_handle has kept. Must be called inside a callback of the
 * connector. */
void cow_file_let_go(cow_file *file, void *native);
bool cow_file_shut(const cow_file *file);
/* The library has ended: the numbers of files begin anew, so none may be found any more. */
void cow_file_forget_all(void);
/* The file OLD stood at this one's name, and gets it back when this one is abandoned before it has a commit. DISCARD: with
 * the first commit it is removed. -1: no memory, it stays where it is. */
int cow_file_replaces(cow_file *file, const char *old, bool discard);
/* Empty the head, keep the history: H5Fcreate with H5F_ACC_TRUNC on a file that has one. */
int cow_file_clear_head(cow_file *file);
bool cow_file_writable(const cow_file *file);
const char *cow_file_name(const cow_file *file);
/* The history's own handle on the native file. */
void *cow_file_native(const cow_file *file);
/* FIND: a native handle that the application has on a dataset of the head, or NULL; borrowed. */
void cow_file_find_opened(void *(*find)(const cow_file *file, const H5O_token_t *token));
/* Is this such a handle? */
bool cow_file_of_handle(const void *native);
/* NATIVE, a handle that the application has closed while the file stays open by others: it is closed with the file. HDF5
 * keeps decoded messages, and with each that names a committed datatype the handle that it was read by; H5Ocopy uses
 * that handle again, and crashes, or copies from another file, where it is closed. False: out of memory. */
bool cow_file_keep_handle(cow_file *file, void *native);
/* Is NATIVE such a handle? HDF5 makes ids for it still, to keep in references. */
bool cow_file_keeps(const void *native);

/* ---- for programs that know of versions: docs/api.md ---- */

/* Of the next version that is finished, instead of what the options say. NULL: as it was; "": none, and the number. -1: what
 * options refuse, a name that is taken, or the running version has its name already. */
int cow_file_describe(cow_file *file, const char *name, const char *message);
/* The changes become a finished version now. *NUMBER of it, from 1; 0: nothing had changed, or no version could be made,
 * which is no error of a commit. */
int cow_file_make_version(cow_file *file, uint64_t *number);
/* Has anything been written since the last commit? */
bool cow_file_changed(const cow_file *file);
/* The changes since the last commit are dropped, and nothing more is written; until its last handle is closed the file
 * shows them, and cannot be opened anew. */
int cow_file_abandon(cow_file *file);
/* Has the program dropped its changes, so that they are in memory only? The other: -1 where it has. */
bool cow_file_dropped(const cow_file *file);
int cow_file_wanted(const cow_file *file);
/* The head becomes as it was in a version: h5cow_restore in h5cow.h. The caller commits. -1, once something was changed: the file is
 * abandoned. */
struct h5cow_restore_t;
int cow_file_restore(cow_file *file, struct h5cow_restore_t *request);
/* Tags, names and messages of versions that are there: h5cow_tag, h5cow_untag, h5cow_rename and h5cow_set_message in h5cow.h. Each
 * is a commit of its own, while nothing else is to be committed. */
int cow_file_tag(cow_file *file, const char *revision, const char *tag, bool move);
int cow_file_untag(cow_file *file, const char *tag);
int cow_file_rename_version(cow_file *file, const char *revision, const char *name);
int cow_file_set_message(cow_file *file, const char *revision, const char *message);
/* Versions go, and what nobody needs becomes free: h5cow_forget and h5cow_collect in h5cow.h. Likewise a commit each. */
struct h5cow_forget_t;
int cow_file_forget(cow_file *file, struct h5cow_forget_t *request);
struct h5cow_collect_t;
int cow_file_collect(cow_file *file, struct h5cow_collect_t *answer);
/* The same by the option keep=, once nobody uses the file any more. What goes wrong is told on standard error: all else is
 * committed. */
void cow_file_keep_policy(cow_file *file);
/* How many versions there are. */
int cow_versions_count(cow_file *file, uint64_t *count);
/* COUNT of them, from row FIRST of the log on: an array of h5cow_version_t (h5cow.h), of EACH bytes apiece, with all that it
 * points to in one block of H5allocate_memory. */
int cow_versions_tell(cow_file *file, uint64_t first, uint64_t count, size_t each, void **block);

/* ---- versions ---- */

/* NATIVE_FILE must be able to read text: an ordinary open file, or cow_file_native, not one just being opened. */
/* Path of a version's root group ("/_versioned_data/versions/3") for REVISION: a name, a tag, #N (the N-th), N where that is nobody's
 * name, ~N (N before the newest), {TIME} (the newest not after the last moment of what base/times.h takes). -1 COW_NOT_FOUND with the
 * versions there are. */
int cow_revision_resolve(void *native_file, const char *revision, char path[], size_t size);
/* Identity in a version. An object of a version bears the token that the head's object has, or had: so references in
 * its data name it, and it equals what they lead to. */
/* The snapshot of head object HEAD in the version at PATH. -1 COW_NOT_FOUND: it has none, because the object was deleted
 * before, made later, or never was. */
int cow_snapshot_of(cow_file *file, const char *version_path, const H5O_token_t *head, H5O_token_t *snapshot);
/* And back. An object that is no snapshot of that version keeps its token. */
int cow_head_of(cow_file *file, const char *version_path, const H5O_token_t *snapshot, H5O_token_t *head);
/* The row of the version in the log: a number that no other version of the file has. */
int cow_version_row(cow_file *file, const char *version_path, uint64_t *row);
/* 1: a version knows the head object HEAD, and the application has deleted it: its address is kept, but leads nowhere;
 * or it was deleted before, and its address is the history's now. 0, -1. */
int cow_head_deleted(cow_file *file, const H5O_token_t *head);
/* 1: there certainly is an object at this address of the head, perhaps one that was deleted and is kept; 0: perhaps none, and
 * it must not be opened; -1. Of a file that is written. */
int cow_head_there(cow_file *file, const H5O_token_t *head);

/* ---- datasets ---- */

/* What H5Dcreate must do with a dataset: version it, or leave it to native HDF5 (compact, scalar, null, tiny, external,
 * virtual). 1, 0, -1. */
int cow_dataset_wanted(cow_file *file, hid_t type, hid_t space, hid_t dcpl);
/* 1: TYPE has parts of variable length, or, with REFERENCES, new references: HDF5 keeps those elsewhere. */
int cow_type_is_heap(hid_t type, bool references);
/* Does HDF5 see the indexes of native heads in FILE, which is open, so that it would write over what versions have? 1, 0, or -1. */
int cow_file_exposes_heads(cow_file *file);
/* What H5Dcreate is given. */
typedef struct cow_creation {
    void *at; /* native */
    const H5VL_loc_params_t *loc;
    const char *name; /* from there; NULL: anonymous */
    hid_t lcpl, type, space, dcpl, dapl;
    const char *path; /* NULL: HDF5 is to have it open; else what it will be called */
    bool computed;    /* DCPL's filters have their parameters: they are not asked */
} cow_creation;
/* Why HDF5 does not put chunks of a dataset into a pool. Nothing was made. */
typedef struct cow_no_pool {
    bool refused;  /* HDF5 says why when it is to create the dataset itself */
    hid_t records; /* of HDF5's, when the filters were asked and refused: cow_errors_give_back. Else H5I_INVALID_HID */
} cow_no_pool;
/* Create a versioned dataset: makes the native head object (a virtual dataset) and its state. *NATIVE: the native object, which the caller closes;
 * NULL: HDF5 has not opened it (cow_dataset_attach_unopened). *NO_POOL: it failed because HDF5 does not put such chunks into a pool: filters
 * that are not for such elements, for instance. */
cow_dataset *cow_dataset_create(cow_file *file, const cow_creation *wanted, void **native, cow_no_pool *no_pool);
/* Where it is. */
H5O_token_t cow_dataset_token(const cow_dataset *dataset);
/* The state of an open native dataset, head or snapshot: *DATASET NULL when it is not a versioned one. One reference
 * more; give back with cow_dataset_release. NAMED: it was opened by a path, which HDF5 still knows; what was opened by token
 * is not asked for its path, since HDF5 would search the whole file. */
int cow_dataset_attach(cow_file *file, void *native, bool named, cow_dataset **dataset);
/* After an error of DATASET, open as NATIVE: where its path was not known, the file is searched for it, and the recorded
 * error tells it. */
void cow_dataset_tell_path(cow_dataset *dataset, void *native);
void cow_dataset_release(cow_dataset *dataset);
/* The application has asked HDF5 to keep its metadata in the cache. */
void cow_dataset_corked(cow_dataset *dataset);
/* The application uses a prefix for external files of its own. HDF5 opens a dataset that is open already only with the same prefix, wherever
 * it is opened: from here on no dataset of any file stays open for who may open it again. */
void cow_file_prefix_seen(void);
/* The history's own handles on datasets that the application has closed, and that are not committed yet, are closed, so that
 * the application can open them with other prefixes for files; and opened again, afterwards. -1: nothing more is committed. */
void cow_datasets_let_go(cow_file *file);
int cow_datasets_hold_again(cow_file *file);
/* The array to read and write elements of. Never NULL. Writing needs cow_dataset_begin_write first. */
cow_array *cow_dataset_array(cow_dataset *dataset);
/* Refuses read-only files, versions and files in the error state; else notes that the dataset changes. PATH: where the
 * application found it, or NULL when unknown. */
int cow_dataset_begin_write(cow_dataset *dataset, const char *path);
/* The program writes elements, or (GROWS) changes the extent: its filters are asked whether they can encode, where HDF5 asks them. */
int cow_dataset_ask_filters(cow_dataset *dataset, bool grows);
/* The same of a head by its address, without opening it: where its type is one of HDF5's own numbers, and in a file that is written its creation
 * properties are the usual ones. PATH is for messages. 1; 0: it is to be opened, perhaps with a recorded error. */
int cow_dataset_attach_unopened(cow_file *file, const H5O_token_t *token, const char *path, cow_dataset **dataset);
/* The same in a file that is written, of a head that nobody has open, that was committed and has not changed since, and that has neither
 * attributes nor a comment. NAME is for messages. 1; 0: it is to be opened. */
int cow_dataset_attach_bare(cow_file *file, uint64_t address, const char *name, cow_dataset **dataset);
/* Does cow_dataset_attach_unopened ever do so in this file? */
bool cow_file_unopened(const cow_file *file);
/* A dataset of the history that can be opened instead. false: there is none, or all are to be opened (cow_file_prefix_seen). */
bool cow_file_stand_in(cow_file *file, H5O_token_t *stand_in);
/* Such a one is open from here on: a handle of our own is as well, in a file that is written. */
void cow_dataset_opened(cow_dataset *dataset);
/* Links, or what holds objects beside them, are about to go, or to be called otherwise: heads that are in use, or wait for the commit, get handles
 * of our own, so that their addresses cannot be used again. Where that fails it is tried again the next time. OPENED: so is all that the program
 * has of them, by HDF5. Only where cow_file_heads_unheld. */
void cow_file_hold_heads(cow_file *file, bool opened);
bool cow_file_heads_unheld(const cow_file *file);                    /* there may be such */
bool cow_head_unheld(const cow_file *file, const H5O_token_t *head); /* it is one */
/* Need HDF5 not open the head for a new extent? The commit writes that into the bytes of its header, or opens it after all. */
bool cow_dataset_extent_waits(const cow_dataset *dataset);
/* Its type, as HDF5 gives that of an open dataset; the caller closes it. */
hid_t cow_dataset_type_unopened(cow_dataset *dataset);
/* As for the dataset that the application made. Ids are the caller's. NATIVE may be NULL: it is opened where that is needed. */
hid_t cow_dataset_space(cow_dataset *dataset);
hid_t cow_dataset_dcpl(cow_dataset *dataset, void *native);
bool cow_dataset_chunked(const cow_dataset *dataset); /* the application asked for chunks (else contiguous) */
bool cow_dataset_early(const cow_dataset *dataset);   /* HDF5 would have allocated it when it was created */
bool cow_dataset_snapshot(const cow_dataset *dataset);
/* It has no fill value, and something was written to it at some time: HDF5 reads it then, also without chunks. */
bool cow_dataset_was_written(const cow_dataset *dataset);
bool cow_dataset_filtered(const cow_dataset *dataset); /* by filters that the application asked for */
/* What was asked of a chunked dataset when it was opened (H5Pset_chunk_cache, H5Pset_append_flush). */
typedef struct cow_access {
    size_t slots, bytes; /* SIZE_MAX: as the file says */
    double preemption;   /* negative: as the file says */
    unsigned rank;       /* of boundary[]; 0: appending flushes nothing */
    hsize_t boundary[H5S_MAX_RANK];
    H5D_append_cb_t flush;
    void *data;
} cow_access;
/* NULL, or malloc'ed; freed with the last reference. */
cow_access **cow_dataset_access(cow_dataset *dataset);
/* The program has it open more than once. */
bool cow_dataset_open_again(const cow_dataset *dataset);
/* What a filter may refuse is stored, now that the application closes a handle on the dataset. With the last one, what was
 * refused is forgotten: -1. */
int cow_dataset_store_last(cow_dataset *dataset);
/* The application has closed a dataset. Where many wait for the commit, as much of that as can be is done now (stowed.h). Tells nothing:
 * an error is the commit's. */
void cow_file_stow(cow_file *file);
/* Before the head object GOING (H5O_INFO_BASIC; NULL: not known) may go: what is stowed and may go with it is opened again. */
int cow_file_unstow(cow_file *file, const H5O_info2_t *going);

/* ---- what changed (called after the native call has succeeded) ---- */

typedef enum {
    COW_CHANGED_NEW,        /* the object was created */
    COW_CHANGED_DATA,       /* elements of a dataset that is not versioned in chunks (tiny, compact ...) */
    COW_CHANGED_ATTRIBUTES, /* attributes, comment, refcount, times: anything in the object's header */
} cow_change;
/* PATH: absolute path by which it was reached, "" when nothing is to be noted (it has no link yet, or its path is noted
 * already), or NULL when unknown: then the next commit looks at everything. */
int cow_changed_object(cow_file *file, const H5O_token_t *object, const char *path, cow_change change);
/* The link NAME of a group was made, removed or replaced. NAME NULL: any of its links. */
int cow_changed_link(cow_file *file, const H5O_token_t *group, const char *group_path, const char *name);
/* Something moved, or got a second hard link: paths known so far may be wrong. */
void cow_changed_paths(cow_file *file);
/* Something changed, and it is not known what. */
void cow_changed_somewhere(cow_file *file);
/* GROUP, which was just made, has the properties that HDF5 gives to a group of which nothing is asked: as long as nothing more is noted
 * of it, nobody needs to open it to know what is in it. */
void cow_changed_empty_group(cow_file *file, const H5O_token_t *group);
/* A group that no version knows may be open without a link: with its last handle it goes, and what is in it. */
void cow_changed_group_unlinked(cow_file *file);
/* An object that was there has got another link. */
void cow_changed_counts(cow_file *file);
/* The native call has succeeded, and what had to follow it has failed, for the reason that is recorded: head and versions
 * would differ, so nothing more is committed. */
void cow_changed_half(cow_file *file);
/* 0, or -1 COW_READ_ONLY / the sticky error: asked before every native modification. */
int cow_file_may_write(cow_file *file);

/* ---- checksums of what HDF5 keeps without any (sums.c) ---- */

/* Elements of a native dataset (COW_CHANGED_DATA) or attributes of an object (COW_CHANGED_ATTRIBUTES), in the head or in
 * a version: unless they changed in this transaction, are they what was committed? Looks once an opening. 0, -1
 * COW_CORRUPT. */
int cow_sum_check(cow_file *file, const H5O_token_t *object, cow_change what);
/* The same of an object that is known to be of the head: with many versions it is found faster. */
int cow_sum_check_head(cow_file *file, const H5O_token_t *object, cow_change what);
/* The same of a named datatype, of which the newest snapshot tells what it is, if its own header has no checksum. */
int cow_sum_check_type(cow_file *file, const H5O_token_t *object);
/* Must an attribute of N values of TYPE be checked? */
bool cow_sum_covers(hid_t type, size_t n);
/* The sums themselves, 0: nothing to be summed up. FILE: the name of the file. */
uint64_t cow_sum_root(uint64_t offset);

/* Does what helps to find rows of `snapshots` lead to those of COUNT rows, ROW, that stand from FIRST on (of which ROW needs no others)?
 * 1; 0: there is no such help, or none that still counts; -1: it is damaged, or cannot be read. With FIRST 0 all of it is read. */
int cow_snapshot_rows_check(cow_loc file, const cow_layout_snapshot_row *row, uint64_t first, uint64_t count);
/* Snapshots of rows before row END of `snapshots`, at a cost that does not grow with these rows where something helps to find them. */
typedef struct cow_snapshot_finder cow_snapshot_finder;
cow_snapshot_finder *cow_snapshot_finder_open(cow_loc file, uint64_t end);
void cow_snapshot_finder_close(cow_snapshot_finder *finder); /* NULL does nothing */
/* 1 and *SNAPSHOT: a snapshot of HEAD there, the newest one that is found; 0: none is found; -1. */
int cow_snapshot_finder_find(cow_snapshot_finder *finder, uint64_t head, uint64_t *snapshot);
int cow_sum_values(const char *file, hid_t type, size_t n, const void *values, uint64_t *sum);
/* 0 and the number of elements: all of a native dataset that was created with DCPL, and what they hold in heaps, is not more
 * than such a file has, so that it may be read at once. FILE: its name, LOC: itself. */
int cow_sum_fits(const char *file, cow_loc loc, void *dataset, hid_t dcpl, hid_t type, hid_t space, size_t *n);
/* Attributes: one after the other in the order of names, *SUM being 0 before the first. */
int cow_sum_add(const char *file, const char *name, hid_t type, size_t n, const void *values, uint64_t *sum);

/* Before the last link of an object goes: a head object that a version knows must keep its address for ever, so its
 * link is moved to /_versioned_data/removed. 1: moved, the link is gone; 0: not needed, delete it natively. What hangs below
 * a group that no version knows is kept as well, as far as versions know it. LINK: what HDF5 says of it; NULL: it is asked. */
int cow_file_keep_removed(cow_file *file, cow_loc group, const char *name, const H5L_info2_t *link);
/* The same for an object that no link holds but a count of the application or its use (H5Odecr_refcount; attributes and
 * datasets of a named type): it gets such a link. No-op for what has one, or is known to no version. */
int cow_file_keep_uncounted(cow_file *file, const H5O_token_t *object);
/* Before GROUP is closed: of what goes with it, as it has no link, what a version knows is kept, and what is stowed is opened again.
 * 1: it has none; 0, -1. */
int cow_file_group_closes(cow_file *file, cow_loc group);
/* The application has deleted a link to GONE (NULL: something), or closed such a group: which open datasets have no link any more
 * is looked at now, since HDF5 may forget it (unlinked.c, datasets.c). And HEAD, which may have been one of them, has got one. */
void cow_file_unlinked(cow_file *file, const H5O_info2_t *gone);
void cow_file_linked(cow_file *file, const H5O_token_t *head);
/* Open groups: GROUP was made without a link, or has lost the last one; or any may have. */
void cow_file_group_unlinked(cow_file *file, const H5O_token_t *group);
void cow_file_groups_unlinked(cow_file *file);
/* Before GROUP goes: are groups in it, that may lose their last link then? True also where it cannot be told. */
bool cow_file_group_holds_groups(cow_loc group);
/* 1: the object has such a link, which the application does not know of; 0, -1. */
int cow_file_removed(cow_file *file, const H5O_token_t *object);
/* *COUNT, which HDF5 tells of a head object, or of an object of the version at VERSION_PATH, becomes what it would be
 * without the history: counts.c. */
int cow_head_count(cow_file *file, const H5O_token_t *head, H5O_type_t type, unsigned *count);
/* These counts wait for the application to close an object, which nothing else holds: cow_head_closed is to be told of each, NULL: one of
 * which nothing is known. */
bool cow_head_waits(const cow_file *file);
void cow_head_closed(cow_file *file, const H5O_token_t *object);
int cow_version_count(cow_file *file, const char *version_path, const H5O_token_t *snapshot, unsigned *count);

/* ---- copies ---- */

/* H5Ocopy of FROM_NAME from FROM to TO_NAME from TO, native objects, with the properties OCPYPL: see copy.c. A file is NULL
 * where it has no history. VERSION: the path of the version that is copied out of, or NULL. Nothing of a copy that fails
 * stays. */
int cow_copy_named_object(cow_file *from_file, const char *version, void *from, const H5VL_loc_params_t *from_loc,
                          const char *from_name, cow_file *to_file, void *to, const H5VL_loc_params_t *to_loc,
                          const char *to_name, H5F_libver_t high, hid_t ocpypl);

#endif
