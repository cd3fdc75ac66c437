/* What the callbacks share: the wrapper around every native object, and where an object is. Nobody else includes this; the
 * room's door is class.h.
 *
 * HDF5 sees a cow_object for each file, group, dataset, named datatype and attribute. Under it is always a live native
 * object of the same kind, so that everything which unwraps to native (H5Fget_obj_ids, references, H5Lget_info1 ...)
 * works as if the connector were not there.
 *
 * A cow_home is what all objects reached through one opened file have in common. It is found by HDF5's number of the
 * physical file, not by the handle that an object was opened through, since external links and mount points lead to
 * objects of other files.
 *
 *   class.c           the class table, options, wrapping, what the library asks about the connector itself
 *   wrappers.c        wrappers, and what those of one opened file share: making, counting, freeing
 *   error_printing.c  one error is printed once
 *   target.c          which object or link a call changes: permission before it, reporting after it
 *   path.c            names: the reserved group in the head, the prefix of a version
 *   detour.c          names that lead through an external link to FILE@REVISION
 *   token.c           tokens and file numbers: those of a version
 *   hide.c            the reserved group in listings, counts and indices of the root group
 *   visit.c           H5Lvisit and H5Ovisit that do not descend into the reserved group
 *   mapped.c          virtual datasets that the application made over datasets with history
 *   sources.c         their sources
 *   bounds.c          library version bounds: the application's, and the file's
 *   adopt.c           a plain file gets a history, on request
 *   journal.c         which files the journal's driver opens
 *   drivers.c         file drivers other than the default one
 *   mpi.c             MPI-IO: what all processes agree on
 *   metadata_cache.c  the size of HDF5's metadata cache, and the one that the application is told
 *   page_buffer.c     HDF5's page buffer: none, and the one that the application is told
 *   dapl.c            access properties of versioned datasets
 *   operations.c      what programs that know of versions ask for
 *   exit.c            programs that end without closing their files
 *   file.c create.c group.c dataset.c chunk.c attribute.c link.c object.c datatype.c   one HDF5 interface each
 */
#ifndef COW_VOL_H
#define COW_VOL_H

#include "base/error.h"
#include "history/history.h"
#include "vol/class.h"

#include <H5VLconnector.h>
#include <H5VLconnector_passthru.h>
#include <H5VLnative.h>
#include <hdf5.h>

#include <stdbool.h>

#define COW_VERSION_PATH_MAX 1100

/* ---- homes ---- */

#define COW_SPARES 4

typedef struct cow_home cow_home;

/* What HDF5 keeps during one call, to wrap the objects that it makes itself. */
typedef struct cow_wrapping {
    cow_home *home; /* its memory only, see wrappers.c; NULL: none */
    bool unnamed, detached;
} cow_wrapping;

/* Sizes of the metadata cache that the application asked for, where larger ones were set: metadata_cache.c. */
typedef struct cow_metadata_cache_sizes {
    bool unlinked; /* it made objects without a link */
    bool raised, set_initial;
    size_t initial, least, most;
} cow_metadata_cache_sizes;

/* As H5Pset_page_buffer_size has it: bytes, and the least part of metadata and of raw data, in percent. */
typedef struct cow_page_buffer {
    size_t size; /* 0: none */
    unsigned metadata, raw;
} cow_page_buffer;

/* What the application asked for of the file, and was not given: it is told that it was. */
typedef struct cow_asked {
    H5F_libver_t low, high; /* the library version bounds */
    bool bounds;
    unsigned
        read_attempts; /* of metadata, that HDF5 would make if this was SWMR for it as well; 0: it is as HDF5 says */
    bool old_format;   /* HDF5 alone would have made the file, or go on with it, in a format that knows no SWMR */
    hsize_t metadata_block, raw_block; /* sizes of the blocks that HDF5 allocates from */
    bool blocks;
    bool image;                  /* of the metadata cache, when the file is closed */
    cow_page_buffer page_buffer; /* that the file would have */
    hid_t driver;                /* a list with the file driver that it chose; or 0 */
} cow_asked;

/* More than 20 fields: one handle on a file, and all that HDF5 asks a connector about files. */
struct cow_home {
    cow_home *next;
    unsigned references;         /* wrappers, mounts; at 0 the cow_file is released */
    unsigned wrappings;          /* HDF5's wrap contexts: keep the memory, nothing else */
    cow_wrapping wrapping[2][2]; /* these contexts: [unnamed][detached] */
    unsigned files;              /* wrappers of type H5I_FILE */
    unsigned long fileno;
    cow_file *file; /* NULL: no history here, everything is passed through */
    bool writable;  /* the application opened it for writing */
    char *plain;    /* for `h5cow run`: the name of a file without history that was not written yet, or NULL */
    bool foreign;   /* a history, but the file was opened around the connector: read natively, never written */
    bool swmr_write, swmr_read; /* asked for by the application; native HDF5 knows nothing of it */
    bool emptied;               /* the application has created it, over one with a history */
    bool failed;                /* a failed last commit was reported once: the next close closes */
    char *version;              /* "/_versioned_data/versions/3", or NULL: the head */
    struct cow_memory *memory;  /* the file is kept there, else NULL */
    char *given_name;           /* what the application called the file ("run.h5@3"), where that is not its name */
    H5O_token_t root;           /* of the file's root group */
    cow_options *options;
    cow_asked asked;
    cow_metadata_cache_sizes cache;
    hsize_t hidden_at[2][3];              /* where the reserved group was last met: [index type][order], see hide.c */
    struct cow_object *datasets, *groups; /* open ones */
    unsigned others;                      /* objects opened by name since the last dataset: cow_unopened_likely */
    unsigned
        opened_soon; /* datasets that HDF5 had to open after they were created, since the last one that it had not: cow_unopened_path */
    bool led;                  /* links of the program's own, or external ones, lead from here to here */
    struct cow_sorted *sorted; /* sorted.c */
    cow_home **mounted;
    size_t mounted_count, mounted_room;
    struct cow_object *spare[COW_SPARES]; /* wrappers for when there is no memory: see cow_object_new_surely */
};

/* A home for an open native file, with one reference. OPTIONS and NAME are copied. NULL: error. */
cow_home *cow_home_new(void *native_file, cow_file *file, const char *given_name, const char *version,
                       const cow_options *options);
cow_home *cow_home_reference(cow_home *home);
/* One reference less. Returns the error of the last commit (cow_file_release). */
int cow_home_release(cow_home *home);
/* The home of the physical file that holds the open native object; INFO: its H5O_INFO_BASIC. NEAR: the home of
 * the object that it was reached through. One reference more. NULL: error. */
cow_home *cow_home_of(cow_home *near, void *native, H5I_type_t type, const H5O_info2_t *info);
/* It is of the file NAME, which has no history: `h5cow run` hears when it is written. */
void cow_home_plain(cow_home *home, const char *name);
/* Is this the last wrapper of the file's state; the last one that is not of a version? */
bool cow_home_last(const cow_home *home);
bool cow_home_last_head(const cow_home *home);
/* Is the group of the head at TOKEN open through another handle than BUT, which may be NULL? */
bool cow_home_group_open(const cow_home *home, const H5O_token_t *token, const struct cow_object *but);
/* Is a version of the file open in this process? */
bool cow_home_version_open(const cow_file *file);
/* Wrappers of type H5I_FILE that are not of a version. */
unsigned cow_home_head_files(const cow_home *home);
/* A home of this physical file in this process, or NULL. Not referenced. */
cow_home *cow_home_find(unsigned long fileno);
bool cow_home_is_known(void *native_file);
/* The home of a handle on the newest state of this physical file, which has a history; or NULL. Not referenced. */
cow_home *cow_home_head_of(void *native_file);
/* The library version bounds that the application asks for hold for all handles on the file. */
void cow_home_bounds_asked(cow_home *home, H5F_libver_t low, H5F_libver_t high);
/* Single-writer/multiple-readers holds for all handles on the file. */
void cow_home_start_swmr(cow_home *home, unsigned attempts);
/* OPENED was opened from FROM with the access list APL, perhaps through an external link. */
void cow_home_followed(const struct cow_object *from, const struct cow_object *opened, hid_t apl);
void cow_home_metadata_cache_asked(cow_home *home, const cow_metadata_cache_sizes *asked);
/* Head of a file that has history: the reserved group is hidden. */
static inline bool cow_home_hides(const cow_home *home)
{
    return home != NULL && home->version == NULL && (home->file != NULL || home->foreign);
}
/* The library has ended: the numbers of files begin anew, so no home may be found any more. */
void cow_home_forget_all(void);
/* A wrap context for HDF5; and it forgets one. */
cow_wrapping *cow_home_wrap(cow_home *home, bool unnamed, bool detached);
void cow_home_unwrap(cow_home *home);
/* Datasets that are not open yet are opened: mounting changes what names lead to, and what H5Iget_name says of open objects. */
void cow_homes_open_all(void);
/* Links in the file, or what holds objects beside them, are about to go or to get other names: what is in use is opened before, as far as that is
 * possible. Likewise before the object at TOKEN is opened otherwise than by its name, perhaps with other access properties, which HDF5 refuses
 * where it is open. */
void cow_homes_open_heads(const cow_home *home);
void cow_homes_open_head(const cow_home *home, const H5O_token_t *token);
/* The program uses prefixes for files: cow_file_prefix_seen. */
void cow_homes_prefix_seen(void);
int cow_home_mount(cow_home *parent, cow_home *child);
/* Is something mounted in it, or it in something? */
bool cow_home_mounts(const cow_home *home);
/* What is mounted with this number, in the file NEAR rather than in another. */
void cow_home_unmount(cow_home *near, unsigned long fileno);

/* ---- wrappers ---- */

/* Which wrapped files become ids of the application: see wrappers.c. */
void cow_vol_file_asked(void *native);
bool cow_vol_file_was_asked(const void *native);
void cow_wrapping_begins(void);
/* While elements of a dataset (native) are read, the references among them belong to the file that the application
 * opened it in, also those that the history reads through its own handle on the file. NULL: no longer. */
void cow_reading(void *native_dataset);
void *cow_reading_for(const void *native_file); /* or NULL */

#define COW_OBJECT_MAGIC UINT64_C(0x7463656a626f3563)

typedef struct cow_mapped_source_file cow_mapped_source_file;
typedef struct cow_where cow_where; /* where an object is, to HDF5 */
typedef struct cow_target cow_target;

/* More than 20 fields: HDF5 has one kind of handle, for files, groups, datasets and attributes alike. */
typedef struct cow_object {
    uint64_t magic; /* first: a few native pointers come back from HDF5 unwrapped, see cow_object_native */
    void *handle;   /* the native object, or its stand-in: cow_object_opened */
    char *unopened; /* NULL: it is open; else what it is called: unopened.c */
    bool created;   /* `unopened` since it was created */
    H5I_type_t type;
    cow_home *home;       /* NULL: passed through */
    cow_dataset *dataset; /* of a versioned dataset, once asked for */
    bool classified;      /* datasets: `dataset` is known */
    bool old_references;  /* of a versioned dataset: elements are, or hold, references of HDF5 1.8 */
    bool layout_known;    /* native datasets in a file with history: user_virtual is known */
    bool mapped;          /* a virtual dataset of the application's own over sources with history: mapped.c */
    bool user_virtual;    /* one that has such a source in this very file */
    bool settled;         /* no write needs unwritten.c any more */
    hid_t dapl, shape;    /* of a `mapped` one: how it was opened, and its extent then; or 0 */
    bool extent_set;      /* to `shape`, which holds until somebody asks for the extent, as in native HDF5 */
    struct cow_mapped_source_file *sources; /* other files that its sources are in, open */
    bool unlinked;                          /* created without a name, and not given one through this wrapper */
    bool unnamed;                           /* reached by token: HDF5 would search the whole file for its name */
    bool detached;                          /* reached through another file: its name there is not its name here */
    bool has_token;
    H5O_token_t token;                  /* of the object; for an attribute: of the object it belongs to */
    struct cow_object *next, *previous; /* datasets and groups: of those of the home */
    char *owner_path;                   /* attributes: path of the object they belong to, or NULL */
    void *root; /* files of a version: the native root group of the version, opened when first needed */
} cow_object;

/* Wrap a native object, which is the wrapper's from now on, also when this fails (it is closed then). NEAR: what it was
 * opened through. NULL: error. */
cow_object *cow_object_wrap(const cow_object *near, void *native, H5I_type_t type, bool by_token);
/* A wrapper with a home that is known. It takes over one reference of HOME, also when this fails, but not NATIVE. */
cow_object *cow_object_new(cow_home *home, void *native, H5I_type_t type);
/* The same, for what HDF5 itself has opened and would leave open. */
cow_object *cow_object_new_surely(cow_home *home, void *native, H5I_type_t type);
/* With the last wrapper of a file's state that state goes, before the native object: closing the history's own handle,
 * HDF5 looks at all ids that are left, also at the one that is being closed. */
void cow_object_release_last(cow_object *object);
/* Free the wrapper after its native object is gone. Returns the error of the last commit. */
int cow_object_free(cow_object *object);
/* The native object of what HDF5 hands to a callback. A file that was opened inside a callback has no wrapper. */
void *cow_object_native(const void *object);
/* unopened.c. A dataset by name, where it need not be opened yet: LOC is where it is from WHERE. NULL: open it; no error. */
cow_object *cow_unopened_new(const cow_object *near, const cow_where *where, const H5VL_loc_params_t *loc);
/* A dataset is created that TARGET gets a link NAME to, from NEAR on: what it is called; free() it. NULL: HDF5 is to have it open. */
char *cow_unopened_path(const cow_object *near, const H5VL_loc_params_t *loc, const char *name,
                        const cow_target *target);
/* The wrapper of DATASET, which was made so, and is called PATH: it takes over one reference. NULL: the error. */
cow_object *cow_unopened_made(const cow_object *near, const cow_where *where, cow_dataset *dataset, const char *path);
/* Is the next object that is opened by name likely to be a dataset? And it was one, or not. */
bool cow_unopened_likely(cow_home *home);
bool cow_is_dapl(hid_t lapl);
void cow_unopened_met(cow_home *home, bool dataset);
/* It is opened. NULL: the error. */
void *cow_unopened_open(cow_object *object);
/* The native object. NULL: the error, of a dataset that was not open yet. */
static inline void *cow_object_opened(const cow_object *object)
{
    return object->unopened == NULL ? object->handle : cow_unopened_open((cow_object *)(uintptr_t)object);
}
cow_object *cow_object_of(void *object); /* NULL: not a wrapper */
/* HDF5 makes ids of groups for functions of the program alone: for those that iterate, and those that say where a link of the program's own leads,
 * with an id that HDF5 then asks the connector about, before it closes that group. */
void cow_vol_group_given(const cow_object *group);
bool cow_vol_follows_link(void);
size_t cow_vol_groups_given(void); /* how many, in this process */
int cow_object_token(cow_object *object, H5O_token_t *token);
/* A file's id with which HDF5 may begin at the root of another: it is mounted there, or something is mounted in it. */
bool cow_object_mounts(const cow_object *object);
/* Absolute path, or "" while it has no link; free() it. NULL: not known (no error). */
char *cow_object_path(const cow_object *object);
/* Close and open again what is native of all open datasets with history in the file, and of the virtual datasets over
 * them: native HDF5 keeps the sources of a virtual dataset open, and with them the state of an earlier commit. */
int cow_home_reopen_datasets(cow_home *home);
/* The same for virtual datasets whose extent follows that of their sources. Asked for it, native HDF5 opens the sources,
 * and keeps them, and what is written to them by others, until the virtual dataset is closed. A commit asks for it. */
int cow_home_reopen_followers(cow_home *home);
void cow_home_committed(cow_file *file);
/* Fills in object->dataset (NULL: not a versioned one). */
int cow_object_classify(cow_object *object);
/* Opening by OPEN failed, from O. Perhaps because the history has a dataset open that the application has closed, and that it wants with another
 * prefix for files (H5Rdereference2 does not tell us which): then once more, without what the history has open. *TYPE: of what is opened. NULL:
 * the error is native HDF5's. */
typedef void *cow_opener(void *context);
void *cow_open_again(const cow_object *o, cow_opener *open, void *context, const H5I_type_t *type);
int cow_object_close_native(void *native, H5I_type_t type);
/* What is native of the dataset once more, from the ROOT of its file on: by PATH, which may be NULL, if that still leads to it, else by its
 * token. NULL: the error. */
void *cow_object_again(cow_loc root, const cow_object *object, const char *path);
/* dapl.c. The dataset was opened or created with DAPL; -1: HDF5 refuses that. And put what is kept into DAPL, the native
 * object's, for H5Dget_access_plist. */
int cow_dapl_keep(cow_object *o, hid_t dapl);
/* What was opened with DAPL; NULL, and closed: HDF5 refuses that. */
cow_object *cow_dapl_opened(cow_object *opened, hid_t dapl);
bool cow_dapl_fits(hid_t dapl, hid_t space); /* else HDF5 refuses to create a chunked dataset */
int cow_dapl_tell(cow_object *o, hid_t dapl);
void cow_object_drop_root(cow_object *object);
/* Close and free: what all close callbacks but the file's do. */
herr_t cow_object_close(cow_object *object, hid_t dxpl, void **req);
/* The same for a dataset; FAILED: with an error that is recorded already, so that it is closed and the call fails. */
herr_t cow_object_close_dataset(cow_object *object, bool failed);

/* The last step of every callback: what was recorded goes onto HDF5's stack, if the callback fails. */
herr_t cow_leave(herr_t status);
void *cow_leave_pointer(void *result);

/* ---- printing of errors: error_printing.c ---- */

/* Every callback begins with COW_QUIET, and HDF5 prints nothing until it returns; what it records as an error is its
 * own.
 */
typedef struct cow_quiet {
    bool ours;            /* printing was on, and this callback turned it off */
    bool element;         /* another callback does all that is to be done */
    bool before;          /* what the callback around this one is for */
    cow_error_held *held; /* the error of that one */
} cow_quiet;
#define COW_QUIET_FOR(object) cow_quiet quiet __attribute__((cleanup(cow_quiet_end), unused)) = cow_quiet_begin(object)
#define COW_QUIET             COW_QUIET_FOR(true)
/* OBJECT: HDF5 has one for this call, so not where a file is made, opened or asked about by its name. */
cow_quiet cow_quiet_begin(bool object);
/* For a callback that moves one element and records no error: between it and the callback around it is no function of the
 * application, so that nothing has to be asked again. */
#define COW_QUIET_ELEMENT cow_quiet quiet __attribute__((cleanup(cow_quiet_end), unused)) = cow_quiet_begin_element()
cow_quiet cow_quiet_begin_element(void);
void cow_quiet_end(cow_quiet *quiet);
/* Is this callback entered from within another one? */
bool cow_quiet_nested(void);

/* A function of the application that a callback passes on, *OP with *OP_DATA, is replaced so that printing is on while
 * it runs. LOUD must live as long as it can be called. */
typedef struct cow_loud {
    union {
        H5A_operator2_t attribute;
        H5A_operator1_t attribute_old;
        H5L_iterate2_t link;
        H5G_iterate_t member_old;
        H5O_iterate2_t object;
        H5D_chunk_iter_op_t chunk;
    };
    void *data;
} cow_loud;
void cow_loud_attribute(const cow_quiet *quiet, H5A_operator2_t *op, void **op_data, cow_loud *loud);
void cow_loud_attribute_old(const cow_quiet *quiet, H5A_operator1_t *op, void **op_data, cow_loud *loud);
void cow_loud_link(const cow_quiet *quiet, H5L_iterate2_t *op, void **op_data, cow_loud *loud);
void cow_loud_member_old(const cow_quiet *quiet, H5G_iterate_t *op, void **op_data, cow_loud *loud);
void cow_loud_object(const cow_quiet *quiet, H5O_iterate2_t *op, void **op_data, cow_loud *loud);
void cow_loud_chunk(const cow_quiet *quiet, H5D_chunk_iter_op_t *op, void **op_data, cow_loud *loud);

/* ---- where a call goes: path.c ---- */

/* The native object and location that stand for what the application named. */
struct cow_where {
    void *native;
    H5VL_loc_params_t loc;
    const char *name; /* for calls that take a name besides the location */
    H5O_token_t token;
    char *owned[2];
};

typedef enum { COW_TO_READ, COW_TO_CREATE } cow_purpose;

/* OBJECT may be NULL (H5L_SAME_LOC). CREATE refuses the reserved name; READ makes it a name that does not exist. Free
 * with cow_where_done, also after an error. */
int cow_locate(cow_object *object, const H5VL_loc_params_t *loc, cow_purpose purpose, cow_where *where);
int cow_locate_name(cow_object *object, const H5VL_loc_params_t *loc, const char *name, cow_purpose purpose,
                    cow_where *where);
void cow_where_done(cow_where *where);
/* How many characters of PATH are the version's prefix, which the application must not see: 0 or its length. */
size_t cow_path_version_prefix(const cow_home *home, const char *path);
/* The value of the soft link at WHERE as the application is to see it; free() it. NULL: not a soft link, or an error.
 */
char *cow_path_soft_link(const cow_object *object, const cow_where *where);
/* linklen of H5Gget_objinfo for a soft link. */
int cow_path_link_length(const cow_object *object, const cow_where *where, size_t *length);
/* Name of an object by token or of one that has lost its name: the first path to it that is not hidden; free() it.
 * *PATH NULL: there is none. */
int cow_find_path(cow_object *object, const H5O_token_t *token, char **path);

/* ---- external links to FILE@REVISION: detour.c ---- */

/* The name leads through such a link: the version, open, and the name in it. */
typedef struct cow_detour {
    cow_object *file;
    H5VL_loc_params_t loc; /* the file itself */
    char *name;            /* NULL: no memory */
} cow_detour;
/* HDF5 has just failed to find NAME from WHERE. True: it is in DETOUR; end it. False: HDF5's error stands, or says why that
 * version cannot be opened. */
bool cow_detour_begin(const cow_where *where, const char *name, hid_t lapl, cow_detour *detour);
/* The same of a location by name, which DETOUR->loc becomes as well. */
bool cow_detour_by_name(const cow_where *where, cow_detour *detour);
/* The same where the object is meant: of a location by index, the link that is counted may be the one that leads there. */
bool cow_detour_to_object(const cow_where *where, cow_detour *detour);
void cow_detour_end(cow_detour *detour);
/* Close a file that has no id. Objects of it that are open stay so. */
int cow_vol_file_close_unnamed(cow_object *file);

/* ---- identity: token.c ---- */

/* A token that the application gave becomes that of the object it means. -1: it means none. */
int cow_token_given(const cow_home *home, H5O_token_t *token);
/* What the application is told of an object, a link, a file: in place. The rest of FIELDS is left alone. */
/* FOUND: the object was reached by a link. */
int cow_show_object_info(const cow_home *home, unsigned fields, bool found, H5O_info2_t *info);
int cow_show_token(const cow_home *home, H5O_token_t *token);
int cow_show_link_info(const cow_home *home, H5L_info2_t *info);
int cow_show_file_number(const cow_home *home, unsigned long *fileno);
int cow_show_stat(const cow_home *home, H5G_stat_t *stat);

/* ---- permission and report: target.c ---- */

/* What a modification is about. `home` is referenced. */
struct cow_target {
    cow_home *home;
    bool known; /* token is valid */
    H5O_token_t token;
    char *path;
    unsigned long failures; /* of its file, before HDF5 changed anything */
    /* Groups are missing on the way to a link that is to be made: the first of them, from NATIVE. NULL: none. */
    char *missing;
    void *native;
    H5I_type_t type;
};

/* The object at WHERE (its loc.obj_type and type decide); and the group that holds the link NAME, or the deepest group on
 * the way that exists. -1: it may not be written. An object that cannot be found is no error here: native HDF5 will say
 * so. WHAT: "write to", "delete" ... for the message. */
int cow_target_object(cow_object *object, const cow_where *where, const char *what, cow_target *target);
int cow_target_parent(cow_object *object, const cow_where *where, const char *name, const char *what,
                      cow_target *target);
/* The same for an object that is to be created at WHERE, perhaps without a name. */
int cow_target_new(cow_object *object, const cow_where *where, cow_target *target);
/* If the disk failed in the meantime, the file is not committed any more: HDF5 stops where it is, and has then, for
 * example, made a link that the object's count does not know of. */
void cow_target_done(cow_target *target);
/* The same for changes without a target: the disk has failed while HDF5 changed the file of HOME. Recorded. */
void cow_home_half_changed(cow_home *home);
int cow_target_changed(const cow_target *target, cow_change change);
int cow_target_member_changed(cow_target *target, const char *name);
/* A new object, just created and wrapped. */
int cow_object_made(cow_object *object);
/* Making an object succeeded (THERE; else not even that), and what follows did not: *MADE, if any, is closed. The error stays. */
void cow_creation_failed(const cow_target *target, bool there, cow_object **made);
/* The end of a callback that creates an object: NATIVE (NULL: that failed) is wrapped and noted as new, with its link
 * where it has a NAME; done with WHERE and TARGET. The wrapper; NULL: it failed, here or before. */
cow_object *cow_creation_end(cow_object *near, cow_where *where, cow_target *target, void *native, H5I_type_t type,
                             const char *name);
/* The same of what is wrapped already: MADE, NULL where that failed. THERE: it was made. */
cow_object *cow_creation_noted(cow_where *where, cow_target *target, cow_object *made, bool there, const char *name);
/* May anything in this home be changed? */
int cow_home_may_write(cow_home *home, const char *what, const char *path);
/* STATUS of a call that has written; -1 also where the disk has failed meanwhile, which HDF5 does not hear of: nothing of it will be
 * committed. */
herr_t cow_home_wrote(const cow_home *home, herr_t status);
/* H5VL_OBJECT_GET_INFO without any trace on the error stack. 1, 0: nothing is there, -1: the disk fails. */
int cow_info_quietly(void *native, const H5VL_loc_params_t *loc, H5O_info2_t *info);
int cow_link_quietly(void *native, const H5VL_loc_params_t *loc, H5L_info2_t *info); /* and H5VL_LINK_GET_INFO */

/* ---- hiding: hide.c, visit.c ---- */

/* A group that a listing is about, as a native location and a name from there. */
typedef struct cow_listed {
    void *native;
    H5I_type_t type;
    const char *name; /* "." for the object itself */
    cow_home *home;   /* borrowed; whose root it is, when it hides */
} cow_listed;

/* 1: the group at WHERE hides the reserved group, 0: it does not. *LISTED is filled in when 1. */
int cow_hides(cow_object *object, const cow_where *where, cow_listed *listed);
/* The index that HDF5 knows for the application's index N. */
hsize_t cow_hide_native_index(const cow_listed *listed, H5_index_t type, H5_iter_order_t order, hsize_t n);
/* True: the location by index, in the order of names, is one in HDF5's own order now; sorted.c. */
bool cow_sorted_index(cow_object *object, cow_where *where);
struct cow_sorted;
void cow_sorted_free(struct cow_sorted *sorted);
/* Correct a location by index in place. */
int cow_hide_index(cow_object *object, cow_where *where);
int cow_hide_group_info(cow_object *object, const cow_where *where, H5G_info_t *info);
int cow_hide_link_info(cow_object *object, const cow_where *where, H5L_info2_t *info);
/* H5Literate, H5Giterate. Result as of the native call. */
herr_t cow_hide_iterate(const cow_listed *listed, const H5VL_link_iterate_args_t *args, hid_t dxpl);
herr_t cow_hide_iterate_old(const cow_listed *listed, H5VL_native_group_iterate_old_t *args, hid_t dxpl);
/* Must a visit that starts at WHERE be ours? 1, 0, -1 */
int cow_visits(cow_object *object, const cow_where *where, cow_listed *listed);
herr_t cow_visit_links(const cow_listed *listed, const H5VL_link_iterate_args_t *args, hid_t dxpl);
herr_t cow_visit_objects(const cow_listed *listed, const H5VL_object_visit_args_t *args, hid_t dxpl);

/* ---- class.c ---- */

/* The options in a file access property list; never NULL without a recorded error. */
cow_options *cow_fapl_options(hid_t fapl);
/* true: the version that the option at names could not be opened; false: a file was opened since. */
void cow_class_version_missed(bool missed);
/* A copy of a file access property list with the native connector; H5Pclose it. */
hid_t cow_native_fapl(hid_t fapl);
/* Was there one by which HDF5 keeps files open that external links lead to? */
bool cow_native_fapl_keeps_files(void);

/* ---- callbacks ---- */

/* journal.c */
/* Put the journal driver on UNDER, the list of the native connector, unless FAPL, the application's, has a driver of its
 * own. */
int cow_vol_file_use_journal(hid_t under, hid_t fapl, const cow_options *options);
/* The same for a file in memory, cow_memory_open. */
int cow_vol_file_use_memory(hid_t under, const cow_options *options);
/* What the application is shown instead. */
int cow_vol_file_show_sec2(hid_t fapl);
/* HDF5 itself opened a file with history for writing, through a link. false: it can only be read. */
bool cow_vol_file_take_on(void *native);
/* Who uses a file with history besides the caller, who has it open for writing. */
typedef enum { COW_USERS_NONE, COW_USERS_SOME, COW_USERS_NO_JOURNAL } cow_vol_file_users;
cow_vol_file_users cow_vol_file_who(void *native);
/* A file with history that is to be written must have a journal. */
int cow_vol_file_check_journal(void *native, const char *name);
/* HDF5 made a file of an empty one that was opened for writing. */
bool cow_vol_file_is_new(void *native);
/* Nothing that was written into the file since its last commit is to be kept. */
void cow_vol_file_drop_changes(void *native, const char *why);
/* Of the superblock in an image HDF5 1.14 clears the flags, and does not correct the checksum: nothing could open it. */
void cow_vol_file_mend_image(void *bytes, size_t size);
/* Is a program that reads the file itself safe from old bytes there? */
bool cow_vol_file_in_place(const cow_home *home, haddr_t address, hsize_t size);

/* adopt.c */
/* With the option adopt: NAME, which is to be opened for writing, gets a history if it is an HDF5 file without. A file
 * that cannot be opened is native HDF5's to refuse. -1: it could not be done, nothing was changed. */
int cow_adopt(const char *name, hid_t fapl, const cow_options *options);

/* drivers.c */
bool cow_default_driver(hid_t fapl); /* sec2: the only one under which files get a history */
/* How the file NAME is opened with FAPL, which has another driver. */
typedef enum {
    COW_DRIVER_AS_IT_IS,
    COW_DRIVER_DEFAULT, /* it has a history, which is kept while it is written */
    COW_DRIVER_MEMORY,  /* the same, but nothing is to reach the file: cow_memory_open */
} cow_driver_way;
cow_driver_way cow_driver_choose(const char *name, unsigned flags, hid_t fapl);
/* A file in memory that has the newest state of the file NAME; the one that is there is used again. NULL: recorded. */
typedef struct cow_memory cow_memory;
cow_memory *cow_memory_open(const char *name);
/* One that has the SIZE bytes of IMAGE, which the program calls NAME. */
cow_memory *cow_memory_image(const char *name, const void *image, size_t size);
const char *cow_memory_path(const cow_memory *memory); /* under which HDF5 shall open it */
void cow_memory_close(cow_memory *memory);             /* NULL does nothing */
/* A new list with that driver; H5Pclose it. */
hid_t cow_sec2_fapl(void);
/* Can a driver other than that change files, when it creates one or opens one for writing? Not that which keeps new
 * files in memory. */
bool cow_driver_writes(hid_t fapl, bool creating);
/* The file NAME is to be created (FLAGS with H5F_ACC_TRUNC or H5F_ACC_EXCL) or opened for writing with such a driver.
 * -1: something that has a history would be written: NAME itself (with H5F_ACC_TRUNC only by MPI-IO, else it is put
 * aside), or a file that is a part of it. */
int cow_driver_check(const char *name, unsigned flags, hid_t fapl);

/* Native HDF5 could not open NAME for writing with such a driver, and *STACK says why: where that is the fence of a file
 * with history, an error that can be understood takes its place. */
void cow_driver_explain(const char *name, hid_t fapl, hid_t under, hid_t *stack);

/* mpi.c */
/* Is it a list for MPI-IO? */
bool cow_mpi_list(hid_t fapl);
/* ANSWER is what this process is about to do with NAME, negative: to refuse it. The same, when all processes of the list's
 * communicator come with the same; else -1. All have to call it, and wait for each other. Lists for other drivers have
 * nobody else to ask. */
int cow_mpi_agree(const char *name, hid_t fapl, int answer);
/* UNDER is such a list, by which the file NAME is about to be opened, which has a history: no metadata of it is read by all
 * processes together, as the application may have asked for, for each reads the chunks that it wants. */
int cow_mpi_read_alone(const char *name, hid_t under);

/* bounds.c */
/* The bounds that a file with history needs, where FAPL asks for others. */
void cow_raised_bounds(hid_t fapl, H5F_libver_t *low, H5F_libver_t *high);
/* Is an object of TYPE that is made AT, in the file of HOME, to have a header of HDF5 1.6? Then the next one that is made has, and
 * the second is to follow: headers are those of LOW again. MADE: was one made? If not, its errors stay. */
bool cow_home_old_headers(const cow_home *home, cow_loc at, H5I_type_t type, H5F_libver_t *low);
int cow_home_new_headers(cow_loc at, H5F_libver_t low, bool made);
int cow_vol_file_set_bounds(void *native, H5F_libver_t low, H5F_libver_t high);
void cow_home_take_bounds(cow_home *home, const cow_home *from);
/* HDF5 opened NATIVE_FILE, of HOME, through a link from NEAR: with its bounds, unless the application gave others for it. */
void cow_home_follow_bounds(cow_home *home, void *native_file, const cow_home *near);
/* The upper bound that was asked for. */
H5F_libver_t cow_home_newest(const cow_home *home);
/* 0; -1: HDF5 refuses to make something of TYPE, or a dataset with DCPL, within the bounds that were asked for. */
int cow_home_allows_type(const cow_home *home, hid_t type);
int cow_home_allows_layout(const cow_home *home, hid_t dcpl);

/* metadata_cache.c */
/* The application is about to make an object without a link, or to delete a last link. */
int cow_metadata_cache_for_unlinked(cow_home *home);
/* The application sets the metadata cache of such a file, and is told what it has set. */
int cow_metadata_cache_set(cow_home *home, void *native, const H5AC_cache_config_t *wanted);
void cow_metadata_cache_show(const cow_home *home, H5AC_cache_config_t *config);
/* Is an image of the cache to be made? And set in FAPL whether one is. */
bool cow_metadata_cache_wants_image(hid_t fapl);
int cow_metadata_cache_set_image(hid_t fapl, bool made);

/* page_buffer.c */
/* Before a file with history is created with FCPL and UNDER, a list for the native connector. */
int cow_page_buffer_leave_out(hid_t under, hid_t fcpl);
/* NATIVE, of HOME, is opened, or was created, with the application's list FAPL, and nobody else has it open. */
int cow_page_buffer_begin(cow_home *home, void *native, hid_t fapl);
/* The statistics of a file whose page buffer was left out. */
void cow_page_buffer_reset(const cow_home *home);
void cow_page_buffer_show(const cow_home *home, const H5VL_native_file_get_page_buffering_stats_t *told);

/* file.c, for create.c */
/* Keep the blocks that HDF5 allocates from small, unless the application chose their size; and remember what it asked
 * for. */
int cow_small_blocks(hid_t under);
void cow_vol_file_remember(cow_object *file, hid_t fapl);
/* How often the program wants metadata to be read that cannot be right, with SWMR. */
#define COW_SWMR_ATTEMPTS 100 /* H5F_SWMR_METADATA_READ_ATTEMPTS */
unsigned cow_swmr_attempts(hid_t fapl);
/* 1: the file NAME has a history, 0: not, or it cannot be read. Leaves no trace on the error stack. *FILENO (may be
 * NULL): its number in this process, left alone when it cannot be opened. */
int cow_has_history(const char *name, hid_t fapl, unsigned long *fileno);
/* A wrapper for a file that was just opened or created, with history. Takes NATIVE, also when it fails. */
cow_object *cow_vol_file_join(void *native, const char *name, const char *given_name, const char *version,
                              bool writable, bool created, const cow_options *options, hid_t fapl);
/* A wrapper for a file without, or (FOREIGN) one that is only read, natively. Takes NATIVE, also when it fails. */
cow_object *cow_vol_file_pass(void *native, bool foreign, const cow_options *options);
/* A home for a native file that HDF5 opened itself to follow a link. The file stays the caller's. */
cow_home *cow_vol_file_adopt(void *native, const cow_options *options);
void *cow_vol_file_create(const char *name, unsigned flags, hid_t fcpl, hid_t fapl, hid_t dxpl, void **req);
void *cow_vol_file_open(const char *name, unsigned flags, hid_t fapl, hid_t dxpl, void **req);
herr_t cow_vol_file_get(void *object, H5VL_file_get_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_file_specific(void *object, H5VL_file_specific_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_file_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_file_close(void *object, hid_t dxpl, void **req);

void *cow_vol_group_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t lcpl, hid_t gcpl,
                           hid_t gapl, hid_t dxpl, void **req);
void *cow_vol_group_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t gapl, hid_t dxpl,
                         void **req);
herr_t cow_vol_group_get(void *object, H5VL_group_get_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_group_specific(void *object, H5VL_group_specific_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_group_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_group_close(void *object, hid_t dxpl, void **req);

void *cow_vol_dataset_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t lcpl, hid_t type,
                             hid_t space, hid_t dcpl, hid_t dapl, hid_t dxpl, void **req);
void *cow_vol_dataset_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t dapl, hid_t dxpl,
                           void **req);
herr_t cow_vol_dataset_read(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                            hid_t dxpl, void *buf[], void **req);
herr_t cow_vol_dataset_write(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                             hid_t dxpl, const void *buf[], void **req);
herr_t cow_vol_dataset_get(void *object, H5VL_dataset_get_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_dataset_specific(void *object, H5VL_dataset_specific_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_dataset_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_dataset_close(void *object, hid_t dxpl, void **req);

/* sources.c */
typedef struct cow_mapped_source {
    cow_object *object; /* in the virtual dataset's own file; or NULL */
    hid_t id;           /* in another one */
    hid_t space;        /* its extent as of now */
} cow_mapped_source;
/* 1: the virtual dataset with DCPL has a source with history, and is read and written by mapped.c; 0; -1. *OWN: there is
 * one in this file. *MISSING: some file was not there, it may come. */
int cow_mapped_serves(const cow_object *object, hid_t dcpl, bool *own, bool *missing);
hid_t cow_mapped_dapl(const cow_object *object); /* the native object's; H5Pclose it */
/* The source of mapping I, of those for block N of a name with a number. 1; 0: there is none; -1. Close it always. */
int cow_mapped_source_open(cow_object *object, hid_t dcpl, size_t i, hsize_t n, cow_mapped_source *source);
int cow_mapped_source_close(cow_mapped_source *source);        /* -1: what was written to it may be lost */
hid_t cow_mapped_source_dcpl(const cow_mapped_source *source); /* H5Pclose it */
int cow_mapped_source_read(cow_mapped_source *source, hid_t mem_type, hid_t memory, hid_t from, hid_t dxpl, void *buf);
int cow_mapped_source_write(cow_mapped_source *source, hid_t mem_type, hid_t memory, hid_t to, hid_t dxpl,
                            const void *buf);
/* Of the virtual dataset OBJECT, which is being closed; of all that are open in HOME. Other files get their versions. */
int cow_sources_close(cow_object *object);
int cow_sources_flush(const cow_home *home);
/* mapped.c */
/* The virtual dataset with DCPL is `mapped`: remember what is asked of native HDF5 only once. */
int cow_mapped_prepare(cow_object *object, hid_t dcpl);
hid_t cow_mapped_space(cow_object *object);
/* The application has set its extent to SIZE, or asks for it: NULL. */
int cow_mapped_set_extent(cow_object *object, const hsize_t *size);
int cow_mapped_read(cow_object *object, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf);
int cow_mapped_write(cow_object *object, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                     const void *buf);
/* exit.c */
/* Before the first file is opened: its changes are to be committed whatever way the program ends, and operations.c. */
int cow_exit_prepare(bool writable);
/* What the operation of our own does, by which a file is committed at exit, and let go when HDF5 closes: called on the
 * handle NATIVE; also to what is mounted in the file. */
typedef struct cow_exit_request {
    bool last;     /* HDF5 closes */
    bool given_up; /* answer: a close of this id has failed */
} cow_exit_request;
/* Is the library closing? Asked once, by the connector's end. */
bool cow_exit_closing(void);
bool cow_exit_is_closing(void); /* the same, which stays */
void cow_exit_commit(const cow_home *home, void *native, cow_exit_request *request);

/* operations.c */
/* From when the first file is opened until HDF5 closes. */
int cow_operations_register(void);
void cow_operations_unregister(void);
/* Number of our own operation on files: an exit_request is its argument; 0: none. */
int cow_operation_let_go(void);
bool cow_operation_known(int number);
/* OBJECT may be NULL: an error. */
int cow_operation_serve(cow_object *object, const H5VL_optional_args_t *args);

/* chunk.c: H5VL_NATIVE_DATASET_* of a versioned dataset. */
int cow_vol_dataset_chunk_operation(cow_object *object, H5VL_optional_args_t *args, hid_t dxpl);
int cow_vol_dataset_allocated(cow_dataset *dataset, hsize_t *bytes, H5D_space_status_t *status);
/* Around an operation that tells addresses, of a dataset of any kind: those that lead to old bytes become HADDR_UNDEF. */
typedef struct cow_placed {
    const cow_home *home;
    H5D_chunk_iter_op_t op; /* the application's */
    void *data;
    hsize_t size;
} cow_placed;
void cow_placed_begin(const cow_object *object, H5VL_optional_args_t *args, cow_placed *placed);
void cow_placed_end(const cow_object *object, H5VL_optional_args_t *args);
/* dataset.c: is a native dataset `mapped`? */
int cow_vol_dataset_learn(cow_object *object);
/* Before anything is written into a dataset, versioned or not. */
int cow_vol_dataset_before_write(cow_object *object);
int cow_vol_dataset_after_native_write(cow_object *object);
/* unwritten.c. Of a dataset that HDF5 has just created by DCPL, and keeps itself: zeros where it leaves what stood in the file. */
int cow_unwritten_created(void *native, hid_t dcpl);
/* Is a write by FILE_SPACE the first one, of a part, and does HDF5 leave the rest as it stands in the file? Then
 * cow_unwritten_clear comes before it. 1; 0; -1. *SETTLED: so it stays. */
int cow_unwritten_waits(void *native, hid_t file_space, bool *settled);
int cow_unwritten_clear(void *native);
/* What a versioned dataset holds goes to the file, or to readers. */
int cow_vol_dataset_flush(cow_object *object);

void *cow_vol_attribute_create(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t type, hid_t space,
                               hid_t acpl, hid_t aapl, hid_t dxpl, void **req);
void *cow_vol_attribute_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t aapl, hid_t dxpl,
                             void **req);
herr_t cow_vol_attribute_read(void *object, hid_t type, void *buf, hid_t dxpl, void **req);
herr_t cow_vol_attribute_write(void *object, hid_t type, const void *buf, hid_t dxpl, void **req);
herr_t cow_vol_attribute_get(void *object, H5VL_attr_get_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_attribute_specific(void *object, const H5VL_loc_params_t *loc, H5VL_attr_specific_args_t *args,
                                  hid_t dxpl, void **req);
herr_t cow_vol_attribute_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_attribute_close(void *object, hid_t dxpl, void **req);

herr_t cow_vol_link_create(H5VL_link_create_args_t *args, void *object, const H5VL_loc_params_t *loc, hid_t lcpl,
                           hid_t lapl, hid_t dxpl, void **req);
herr_t cow_vol_link_copy(void *source, const H5VL_loc_params_t *source_loc, void *target,
                         const H5VL_loc_params_t *target_loc, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req);
herr_t cow_vol_link_move(void *source, const H5VL_loc_params_t *source_loc, void *target,
                         const H5VL_loc_params_t *target_loc, hid_t lcpl, hid_t lapl, hid_t dxpl, void **req);
herr_t cow_vol_link_get(void *object, const H5VL_loc_params_t *loc, H5VL_link_get_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_link_specific(void *object, const H5VL_loc_params_t *loc, H5VL_link_specific_args_t *args, hid_t dxpl,
                             void **req);
herr_t cow_vol_link_optional(void *object, const H5VL_loc_params_t *loc, H5VL_optional_args_t *args, hid_t dxpl,
                             void **req);

void *cow_vol_object_open(void *object, const H5VL_loc_params_t *loc, H5I_type_t *opened_type, hid_t dxpl, void **req);
herr_t cow_vol_object_copy(void *source, const H5VL_loc_params_t *source_loc, const char *source_name, void *target,
                           const H5VL_loc_params_t *target_loc, const char *target_name, hid_t ocpypl, hid_t lcpl,
                           hid_t dxpl, void **req);
herr_t cow_vol_object_get(void *object, const H5VL_loc_params_t *loc, H5VL_object_get_args_t *args, hid_t dxpl,
                          void **req);
herr_t cow_vol_object_specific(void *object, const H5VL_loc_params_t *loc, H5VL_object_specific_args_t *args,
                               hid_t dxpl, void **req);
herr_t cow_vol_object_optional(void *object, const H5VL_loc_params_t *loc, H5VL_optional_args_t *args, hid_t dxpl,
                               void **req);

/* Is a named datatype, which was opened, what was committed? Else it is closed, and *OPENED NULL. Other objects stay as they are. */
void cow_object_check_type(cow_object **opened);
/* TYPE is what a dataset or an attribute in the file of HOME has: if it is a named one, is it what was committed? 0; -1 */
int cow_home_check_type(const cow_home *home, hid_t type);

void *cow_vol_datatype_commit(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t type, hid_t lcpl,
                              hid_t tcpl, hid_t tapl, hid_t dxpl, void **req);
void *cow_vol_datatype_open(void *object, const H5VL_loc_params_t *loc, const char *name, hid_t tapl, hid_t dxpl,
                            void **req);
herr_t cow_vol_datatype_get(void *object, H5VL_datatype_get_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_datatype_specific(void *object, H5VL_datatype_specific_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_datatype_optional(void *object, H5VL_optional_args_t *args, hid_t dxpl, void **req);
herr_t cow_vol_datatype_close(void *object, hid_t dxpl, void **req);

#endif
