/* The HDF5 library underneath, called with object pointers instead of ids.
 *
 * Everything that h5cow keeps in a file is made with these functions, through the H5VL*() calls on the native
 * connector, so that no id of ours is ever counted by H5Fget_obj_count, and no callback of ours is entered again. They
 * need an API context: inside a callback there is one; elsewhere bracket with cow_native_enter and cow_native_leave.
 * Ids of types, spaces and property lists are the caller's. A failure takes HDF5's error stack (cow_error_native).
 */
#ifndef COW_NATIVE_H
#define COW_NATIVE_H

#include "journal/journal.h"
#include "native/bytes.h"
#include "store/pool.h"
#include "store/table.h"

#include <hdf5.h>

#define COW_CONNECTOR_NAME "h5cow"

#include <stdbool.h>

/* An object of the native connector, and what it is (H5I_FILE, H5I_GROUP, H5I_DATASET, H5I_DATATYPE). For a file,
 * relative and absolute paths both start at its root. */
typedef struct cow_loc {
    void *object;
    H5I_type_t type;
} cow_loc;

/* A native token and its object's address. */
uint64_t cow_address(const H5O_token_t *token);
H5O_token_t cow_token(uint64_t address);

/* The native connector's id; registered on first use, held until cow_native_terminate. H5I_INVALID_HID on failure. */
hid_t cow_native_id(void);
void cow_native_terminate(void);
unsigned cow_native_lives(void); /* how often that was: files have other numbers then */
/* The native connector's functions, for what HDF5 asks of every element: in a public call it takes longer over the id and its lock
 * than over that. OBJECT: any of the native connector. NULL: they are not what our headers say. */
const struct H5VL_class_t *cow_native_class(void *object);
/* What runs from here on is for a call on an OBJECT, or not: only then does HDF5 know how objects are wrapped. Returns what was said
 * before, to be said again afterwards. Of this thread. */
bool cow_native_on_object(bool object);
/* A call of the program is over. */
void cow_native_call_ends(void);
/* An API context for code that is not inside a callback (H5atclose, the command line, tests). */
int cow_native_enter(void);
void cow_native_leave(void);
/* While the program's own call goes on: HDF5 keeps the transfer properties of a call with the thread, and those of a read
 * in between would stay (a data transform was not carried out). Until cow_native_together. */
typedef struct cow_apart {
    void *state, *context;
    int asked;
} cow_apart;
int cow_native_apart(cow_apart *apart);
void cow_native_together(cow_apart *apart);

/* While on, an object opened by its token is the one at that address, also where the application opened a version and its
 * tokens mean that version's objects. Of this thread. */
void cow_native_plain_tokens(bool on);
bool cow_native_tokens_are_plain(void);

/* Links and attributes are listed by one walk of HDF5's own where there are so many: to be asked for one after the other costs
 * much more, and of attributes the square of their number. HDF5 makes an id for the object it walks through, and so wraps it:
 * between begin and end with nothing that we know of it, since nobody is to be told when that id goes. -1: no walk now: an error is
 * recorded, which closing the id would forget; or HDF5 has no call on an object under way (it creates or opens a file, say) and
 * cannot wrap: H5A__iterate would leave the object open, and with it the file. */
#define COW_LIST_FROM 4
int cow_native_list_begin(void);
void cow_native_list_end(void);
bool cow_native_is_listing(void);

/* The loc_params for an object itself and for a path from it; PATH must outlive the call. */
H5VL_loc_params_t cow_by_self(H5I_type_t type);
H5VL_loc_params_t cow_by_name(H5I_type_t type, const char *path);

/* A second handle on an open file: not an id, holds the file open, usable for any data. Close with file_close. */
void *cow_native_file_reopen(void *file);
/* The file of an open object. Having asked for it, HDF5 takes it for one with an id, and would never close it; so it gets
 * one: *ID, to be closed (H5Idec_ref), or H5I_INVALID_HID where the application has one. */
void *cow_native_file_of(cow_loc object, hid_t *id);
int cow_native_file_close(void *file);
/* The same for a handle that is not the last on its file, from the callback that closes its id: HDF5 does not flush the file. */
int cow_native_file_close_unflushed(void *file);
/* The objects of kind TYPE (H5I_DATASET, H5I_GROUP) in the physical file FILENO that the application has open through the
 * connector. Anything but 0 ends the walk, and is returned. */
typedef int cow_open_visitor(void *context, cow_loc object, const H5O_info2_t *info);
int cow_native_open_objects(unsigned long fileno, H5I_type_t type, cow_open_visitor *visit, void *context);
/* Everything, H5F_SCOPE_GLOBAL. HDF5 alone would leave out what is in the caches of datasets that were opened through
 * another handle of the file: of those with an id, all are flushed; ours, without ids, keep nothing in a cache. */
/* -1 and cow_error_of_filters: all is written but a chunk of a dataset, which its filters do not take. */
int cow_native_file_flush(void *file);
/* Bytes of the file, what was allocated and not yet written included. */
int cow_native_file_size(void *file, uint64_t *bytes);
/* Where HDF5 knows of free space in the open file, in no order; free(*LIST). It forgets it when the file is closed. */
int cow_native_file_free_space(void *file, H5F_sect_info_t **list, size_t *count);
/* What HDF5 does with free space: H5Pset_file_space_strategy. */
typedef enum cow_space_kept {
    COW_SPACE_FORGOTTEN, /* it knows of it while the file is open */
    COW_SPACE_PERSISTS,  /* it keeps it in the file */
    COW_SPACE_PAGED,     /* it knows of what is free in pages while the file is open, and takes new ones at the end */
    COW_SPACE_NEVER,     /* it does not use it again */
} cow_space_kept;
int cow_native_file_space(void *file, cow_space_kept *kept);
/* The journal of an open file; NULL: it has none. */
cow_journal *cow_native_file_journal(void *file);
/* The creation properties of a file; the caller closes them. */
hid_t cow_native_file_fcpl(void *file);
/* The creation properties FCPL of a file tell that dataspaces are shared, in the index of that number, if they have so many. */
int cow_native_share_dataspaces(hid_t fcpl, unsigned index);
/* Its name as it was opened, cut to SIZE; "the file" where that cannot be told. */
void cow_native_file_name(void *file, char name[], size_t size);
/* Whether headers of datasets that are created are as small as can be, instead of 256 bytes at least; the setting is the
 * open file's, so the former one (*BEFORE, may be NULL) is to be put back. */
int cow_native_file_small_headers(void *file, bool small, bool *before);
/* The lowest version that objects are made for in the file of AT, an object, until it is set again. BEFORE NULL: exactly
 * LOW; else at least LOW, and *BEFORE is what it was. */
int cow_native_low_bound(cow_loc at, H5F_libver_t low, H5F_libver_t *before);
/* The same for objects with headers of HDF5 1.6, if those would be newer; *BEFORE is then to be set again. */
bool cow_native_old_headers(cow_loc at, H5F_libver_t *before);
/* The metadata cache of an open file: metadata_cache.c. */
int cow_native_metadata_cache_get(void *file, H5AC_cache_config_t *config);
int cow_native_metadata_cache_set(void *file, const H5AC_cache_config_t *config);
/* To at least the size in which objects can be made before they are linked. False: it has that. */
bool cow_native_metadata_cache_raise(H5AC_cache_config_t *config);
/* The same for a file, until it is as BEFORE again. 1, 0: it has that size, -1 */
int cow_native_metadata_cache_widen(void *file, H5AC_cache_config_t *before);
void cow_native_metadata_cache_restore(void *file, const H5AC_cache_config_t *before);
/* Metadata of the object may be written again, if the application had forbidden that. */
void cow_native_uncork(cow_loc object);
/* Version of an object's header. */
int cow_native_header_version(cow_loc object, unsigned *version);

/* A group that is open: HDF5 follows each path from where it begins. */
typedef struct cow_shortcut {
    const void *file; /* paths from this handle */
    const char *path; /* that lead through this group */
    size_t length;
    cow_loc group; /* are followed from it, by the functions below, which take paths */
} cow_shortcut;
/* One a handle; lent until cow_native_shortcut_end. -1: no memory. */
int cow_native_shortcut(cow_shortcut *shortcut);
void cow_native_shortcut_end(const cow_shortcut *shortcut);

/* 1 exists, 0 does not (a missing group on the way is "does not"), -1 error. */
int cow_native_exists(cow_loc at, const char *path);
/* Creates missing groups on the way. gcpl may be H5P_DEFAULT. */
void *cow_native_group_create(cow_loc at, const char *path, hid_t gcpl);
void *cow_native_group_open(cow_loc at, const char *path);
/* A group without a link yet: gone when closed before it is linked. */
void *cow_native_group_anonymous(cow_loc file, hid_t gcpl);
hid_t cow_native_group_gcpl(void *group);
/* TO, a list that creates groups or files, gets the settings of FROM, which HDF5 told of a group, and nothing else that is in it. -1: perhaps
 * without a recorded error. */
int cow_native_group_settings(hid_t from, hid_t to);
/* GCPL loses its filters where FILE shares them between objects: HDF5 1.14.5 cannot open any but the first group that has them. */
int cow_native_group_unfiltered(void *file, hid_t gcpl);
/* The same for many groups, most of which are alike. The answer is not the caller's to close, and is good until the next call. */
hid_t cow_native_gcpl_of(void *group);
/* The answer of cow_native_gcpl_of, or for a group of up to COW_HEADER_LINKS LINKS (h5/new_header.h), whose number is the usual one, the same with this one. Negative: recorded. */
hid_t cow_native_gcpl_for(hid_t gcpl, uint64_t links);
/* What HDF5 told of a group that was made so becomes what its head has. -1: recorded. */
int cow_native_gcpl_tell(hid_t gcpl);
/* *ORDER: it keeps the order in which its links were made. */
int cow_native_group_tracks(cow_loc group, bool *order);
int cow_native_group_size(void *group, hsize_t *links);
/* The creation order number of the next link (max_corder), where the group tracks the order. */
int cow_native_group_counter(void *group, int64_t *counter);
int cow_native_group_close(void *group);
int cow_native_link_hard(cow_loc from, const char *path, cow_loc to, const char *name);
/* The same, the object itself given (its own link may be anywhere, or nowhere). */
int cow_native_link_object(cow_loc object, cow_loc to, const char *name);
int cow_native_change_references(cow_loc object, int delta);
int cow_native_link_soft(cow_loc at, const char *name, const char *target);
/* HDF5 copies and tells user-defined links only with a class for their type, which another program may have had. 1: one
 * was registered, which leads nowhere and gives out the value: H5Lunregister it; 0: not needed. */
int cow_native_link_class_stand_in(H5L_type_t type);
/* The same for every type; and MADE are taken back. */
int cow_native_link_classes_stand_in(bool made[H5L_TYPE_MAX + 1]);
void cow_native_link_classes_withdraw(const bool made[H5L_TYPE_MAX + 1]);
/* A link of any type, its value copied as it is. */
int cow_native_link_copy(cow_loc from, const char *path, cow_loc to, const char *name);
/* The hard link NAME of the group FROM once more in the group TO, both of which are asked for nothing but that. */
int cow_native_link_share(cow_loc from, cow_loc to, const char *name);
int cow_native_link_info(cow_loc at, const char *path, H5L_info2_t *info);
/* Does the path lead to an object, whatever links are on the way? */
bool cow_native_leads(cow_loc at, const char *path);
/* TO must have a path: HDF5 1.14.5 crashes where it was opened by its token. */
int cow_native_link_move(cow_loc from, const char *path, cow_loc to, const char *name);
int cow_native_link_delete(cow_loc at, const char *path);

/* Opens an object of any kind; loc->type says which. Close with cow_native_close. */
int cow_native_open(cow_loc at, const char *path, cow_loc *object);
int cow_native_open_token(cow_loc file, const H5O_token_t *token, cow_loc *object);
int cow_native_close(cow_loc object);
/* H5O_INFO_BASIC of an object (token, type, rc, fileno). PATH NULL: the object itself. */
int cow_native_info(cow_loc at, const char *path, unsigned fields, H5O_info2_t *info);
/* The comment of an object, or of what is called NAME in it ("" for none); free() it. */
char *cow_native_comment(cow_loc object, const char *name);
int cow_native_comment_set(cow_loc object, const char *comment); /* NULL: none */

/* One link, as H5Literate reports it; NAME and INFO live during the call only. Non-zero ends the walk. Of a link that HDF5
 * cannot tell, the type is H5L_TYPE_ERROR. */
typedef int cow_link_visitor(void *context, const char *name, const H5L_info2_t *info);
/* Links of a group. ANY: as HDF5 finds them; in the order of their names, or of their creation where the group tracks it. */
typedef enum cow_link_order { COW_LINKS_ANY, COW_LINKS_BY_NAME, COW_LINKS_BY_CREATION } cow_link_order;
int cow_native_links(cow_loc group, cow_link_order order, cow_link_visitor *visitor, void *context);
/* The indices that a group's links have by name in HDF5's own order (H5_ITER_NATIVE), one after the other as their names are ordered,
 * without that of the link SKIP (NULL: all of them). *PLACES: free() it. */
int cow_native_links_places(cow_loc group, const char *skip, hsize_t **places, hsize_t *count);
/* Value of a soft, external or user-defined link; free() it. SIZE in bytes, terminator included for a soft link. */
void *cow_native_link_value(cow_loc group, const char *name, size_t *size);

/* Bytes of one element of TYPE in FILE: variable-length parts and references have another size there than in memory. */
int cow_native_element_size(void *file, hid_t type, size_t *bytes);

/* The creation properties of a virtual dataset of which nothing was set but whether it keeps TIMES, without its layout. One list for all: the caller closes
 * it, and does not change it. */
hid_t cow_native_usual_dcpl(bool times);
/* Is DCPL that list? */
bool cow_native_is_usual_dcpl(hid_t dcpl, bool *times);
void *cow_native_dataset_create(cow_loc at, const char *path, hid_t type, hid_t space, hid_t dcpl);
void *cow_native_dataset_open(cow_loc at, const char *path);
int cow_native_dataset_close(void *dataset);
/* dxpl: H5P_DEFAULT, or the application's. */
/* H5VLdataset_read and _write of the native connector with the program's transfer list or a default one: nobody's list is
 * taken for another's, whatever was moved before in the same call of the program. -1: HDF5's error stands on its stack. */
herr_t cow_native_read(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                       hid_t dxpl, void *buf[], void **req);
herr_t cow_native_write(size_t count, void *dataset[], hid_t mem_type[], hid_t mem_space[], hid_t file_space[],
                        hid_t dxpl, const void *buf[], void **req);
int cow_native_dataset_read(void *dataset, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl, void *buf);
int cow_native_dataset_write(void *dataset, hid_t mem_type, hid_t mem_space, hid_t file_space, hid_t dxpl,
                             const void *buf);
/* A transfer list for a few rows, at most COW_FEW_BYTES at a time, which lasts: to convert rows HDF5 takes a MiB, twice, and
 * fills it with zeros, however few there are. Only apart (cow_native_apart), as any list but the default one. */
#define COW_FEW_BYTES ((size_t)64 << 10)
hid_t cow_native_few_rows(void);
int cow_native_dataset_resize(void *dataset, const hsize_t extent[]);
/* Of a chunked dataset, what HDF5 has in its cache goes through the filters: it counts the chunks. */
int cow_native_dataset_settle(void *dataset);
int cow_native_dataset_status(void *dataset, H5D_space_status_t *status); /* H5Dget_space_status */
/* Is it certain that no chunk is stored at OFFSET? HDF5 1.14 looks it up, in the index and in the cache, and gives an
 * error. */
bool cow_native_dataset_lacks_chunk(void *dataset, const hsize_t offset[]);
/* Did H5Dget_chunk_storage_size, which has just failed, say so? The error stack is empty afterwards. */
bool cow_native_chunk_was_missing(void);
/* Does HDF5 list the chunks of a dataset with this index and extent at the places of others? SPACE: public calls only. */
bool cow_native_chunks_listed_wrong(H5D_chunk_index_t index, hid_t space);
/* Go through a simple or scalar extent, in C order, in boxes of at most BOX[d] elements, those at the end shorter; rank 0:
 * one visit. Anything but 0 ends the walk, and is returned. Public calls only. */
typedef int cow_box_visitor(void *context, unsigned rank, const hsize_t start[], const hsize_t count[]);
int cow_boxes(hid_t space, const hsize_t box[], cow_box_visitor *visit, void *context);
/* Elements of a dataspace; UINT64_MAX where there are more than 64 bits can count, for HDF5 then tells any number. Public
 * calls only. */
int cow_space_elements(hid_t space, uint64_t *elements);
/* A box of at most ELEMENTS, but one at least, as long as it can be in the last dimensions. */
int cow_box_of(hid_t space, size_t elements, hsize_t box[]);
/* The same for the chunks of a native dataset that are stored, as far as they are inside the extent. VISIT may change
 * other datasets. */
int cow_native_stored_boxes(void *dataset, hid_t space, hid_t dcpl, cow_box_visitor *visit, void *context);
/* Chunks as they are stored: cow_native_chunk_size bytes, for which there is room in BYTES. -1: HDF5's error stands on its
 * stack and is not recorded, for the caller knows better which chunk that was (cow_error_native). */
int cow_native_chunk_size(void *dataset, const hsize_t offset[], hsize_t *size);
int cow_native_chunk_read(void *dataset, const hsize_t offset[], uint32_t *mask, void *bytes, size_t size);
int cow_native_chunk_write(void *dataset, const hsize_t offset[], uint32_t mask, const void *bytes, size_t size);
/* Of creation properties: may HDF5 fill the dataset when it allocates it, with chunks that have gone through filters? */
bool cow_native_fills(hid_t dcpl);
/* The same where HDF5 may have a chunk of fill values, or makes one before it writes (cow_native_fills): where
 * both have as many bytes, it would keep the mask of that one (H5D__chunk_file_alloc needs no insert). */
int cow_native_chunk_write_over_fill(void *dataset, const hsize_t offset[], uint32_t mask, const void *bytes,
                                     size_t size);
/* After H5VL_NATIVE_DATASET_CHUNK_WRITE: HDF5 1.14.5 remembers the chunk with the filter mask that it had before, and
 * would read it, and tell its mask, by that (H5D__chunk_direct_write). What was asked about last is all that it remembers. */
void cow_native_chunk_written(void *dataset, const hsize_t offset[]);
int cow_native_chunk_iterate(void *dataset, H5D_chunk_iter_op_t visit, void *context);
/* HDF5 makes a dataset with chunks larger than a fixed maximum only where its extent is 0 in that dimension
 * (H5D__chunk_construct), and one in external storage only where its extent is the maximum, but in the first dimension
 * (H5D__contig_construct); their extent may be another then. 1: SPACE, of a dataset to be made with DCPL, got such an extent, so the dataset
 * is to be given its own afterwards; 0: nothing to do; -1: HDF5's error. Public calls only. */
int cow_native_space_at_first(hid_t dcpl, hid_t space);
/* Ids that the caller closes; negative on failure. */
hid_t cow_native_dataset_type(void *dataset);
hid_t cow_native_dataset_space(void *dataset);
hid_t cow_native_dataset_dcpl(void *dataset);

/* Named datatypes. The object behind the id of one (borrowed; the id holds it), and an id for an open object, which from
 * then on belongs to the id: close with H5Tclose. Also when that fails. */
cow_loc cow_native_named_type(hid_t named);
/* 1: TYPE is a named one, *TOKEN; 0: it is not; -1, also where TYPE is no id: the error is told then. */
int cow_native_named_token(hid_t type, H5O_token_t *token);
hid_t cow_native_type_id(cow_loc object);
hid_t cow_native_type_tcpl(cow_loc named); /* the caller closes it */
/* A named datatype without a link yet. TYPE may be a named one itself. */
int cow_native_type_anonymous(cow_loc file, hid_t type, hid_t tcpl, cow_loc *made);

/* Attributes of an object, in the order of their names, or of their creation as far as it is known. */
typedef int cow_attribute_visitor(void *context, const char *name);
int cow_native_attributes(cow_loc object, bool by_creation, cow_attribute_visitor *visitor, void *context);
/* The same in the order of names, with the N values in memory, of the attribute's own type. */
typedef int cow_attribute_values(void *context, const char *name, hid_t type, size_t n, const void *values);
int cow_native_attributes_read(cow_loc object, cow_attribute_values *visitor, void *context);
/* The creation order number of an attribute, -1 where it is not known. */
int cow_native_attribute_number(cow_loc object, const char *name, int64_t *number);
int cow_native_attribute_exists(cow_loc object, const char *name); /* 1, 0, -1 */
int cow_native_attribute_delete(cow_loc object, const char *name);
/* H5VL_ATTR_DELETE, H5VL_ATTR_DELETE_BY_IDX. An attribute of a named type may be of that type. Where it is the last but one
 * that counts the type, HDF5 1.14.5 takes the count out of the type's object header while it is about to take out the
 * attribute: where header messages move then, it takes out the next one, or writes past the last (H5O__release_mesg, in
 * headers of HDF5 1.8 or newer, which all files with history have). So the type has one count more meanwhile. */
herr_t cow_native_attribute_remove(void *at, const H5VL_loc_params_t *loc, H5VL_attr_specific_args_t *args, hid_t dxpl,
                                   void **req);
/* A small attribute of one scalar: made, or overwritten, and read. 1 read, 0 not there, -1 error. */
int cow_native_attribute_put(cow_loc object, const char *name, hid_t type, const void *value);
/* -1 as well where it is anything but one value of exactly TYPE, as in the file and in memory. */
int cow_native_attribute_get(cow_loc object, const char *name, hid_t type, void *value);
/* Copy one attribute, its type, space, creation properties and value, whatever its type (variable-length and
 * references through memory). A named type is asked of TYPE_OF, which answers with the type for the copy, an id that is
 * closed afterwards. */
typedef hid_t cow_type_of(void *context, hid_t named);
/* What becomes of N values of TYPE, in memory, before they are written elsewhere. NULL: references stay what they are. */
typedef int cow_values_change(void *context, hid_t type, size_t n, void *values);
int cow_native_attribute_copy(cow_loc from, const char *name, cow_loc to, cow_type_of *type_of,
                              cow_values_change *change, void *context);
/* The same without where they are in a file; the caller closes it. So it compares with those of other files, and can be used
 * there: HDF5 1.14.5 writes into another file where the source's table of shared messages (H5Pset_shared_mesg_index) has
 * them, and cannot open what it made. Public calls only. */
hid_t cow_native_type_placeless(hid_t type);
hid_t cow_native_space_placeless(hid_t space);
/* TO, a list that creates groups or datasets, gets the filters of FROM behind its own. */
int cow_native_filters_add(hid_t to, hid_t from);
/* Creation properties of a dataset of TYPE: its filters and its fill value may be such messages. */
hid_t cow_native_dcpl_placeless(hid_t dcpl, hid_t type);
/* The list that HDF5 gives of a dataset has the version of its layout message, and is of no use in a file whose upper bound is older:
 * DCPL becomes one for any bounds, as a program makes it. */
int cow_native_dcpl_for_any_bounds(hid_t dcpl);
/* Have the dataspaces one extent, and one maximum of it? H5Sextent_equal says no where a file of HDF5 1.8 or older
 * leaves out the maximum, which means that it is the extent. */
bool cow_native_space_same_extent(hid_t a, hid_t b);
hid_t cow_native_attribute_type(cow_loc object, const char *name); /* the caller closes it */
/* N values of the types A and B, which H5Tequal, in memory: 1, 0, -1. Pointers are followed, padding is not looked at. */
int cow_native_values_equal(hid_t a, hid_t b, size_t n, void *x, void *y);
/* 1 the two attributes of this name have the same type, space, character set of their name, and value; 0 not. Where both are
 * of named types, SAME is asked whether these are one: 1, 0, -1. */
typedef int cow_named_types_same(void *context, hid_t a, hid_t b);
int cow_native_attribute_equal(cow_loc a, cow_loc b, const char *name, cow_named_types_same *same, void *context);

/* N values of TYPE were read, and are to be written: references into other files, and of regions, are made such that HDF5 can.
 * Reclaiming the values (H5Treclaim) gives back what was lent. */
int cow_native_references_lend(hid_t type, size_t n, void *values);
/* Was a reference of HDF5 1.12 ever written? Else it is zeros, or what stood there, and H5R calls are not for it. */
bool cow_native_reference_is_written(const H5R_ref_t *reference);
/* Does a reference of HDF5 1.12 lead into another file than it was read from? */
bool cow_native_reference_is_foreign(const H5R_ref_t *reference);
/* They lead nowhere from now on; as with HDF5, addresses inside of compounds, arrays and sequences stay. */
int cow_native_references_empty(hid_t type, size_t n, void *values);
/* Each reference in COUNT elements in memory, also inside compounds, arrays and sequences; TYPE is that of the reference.
 * Anything but 0 ends the walk, and is returned. */
typedef int cow_reference_visitor(void *context, hid_t type, void *reference);
int cow_native_references_each(hid_t type, size_t count, void *elements, cow_reference_visitor *visit, void *context);

/* What a region reference of HDF5 1.12 selects, on its dataset's extent; the caller closes it. Negative: there is no such
 * dataset, or the one that is there has another number of dimensions than the selection. */
hid_t cow_native_region_open(H5R_ref_t *reference);
/* The coordinates of its points, or of the first and last elements of its blocks, of which there are *BLOCKS, in the order
 * in which HDF5 tells them; free() *LIST. 1; 0: there are more than MOST, or unlimited ones; -1. */
int cow_native_region_list(hid_t space, uint64_t most, hsize_t **list, size_t *blocks);

/* A table kept in a one-dimensional dataset of one opaque or compound type of row_size bytes (bytes: H5T_STD_U8LE).
 * Rows are read and written as raw bytes of that type. table_create makes the dataset (unfiltered, chunks of about
 * CHUNK_BYTES). The table owns its handle on the dataset. NULL on error. */
/* CHECKED: HDF5 shall compare a checksum of each block of rows. */
cow_table *cow_native_table_create(cow_loc at, const char *path, hid_t row_type, size_t chunk_bytes, bool checked);
/* Over a dataset that layout/ has opened and looked at: nobody else calls this. Takes over DATASET, also when it fails.
 * CHECK (may be NULL) is asked before the first row is read, written or added. */
typedef int cow_table_check(void *dataset, size_t row_size);
cow_table *cow_native_table_over(void *dataset, const char *path, cow_table_check *check);
/* Its dataset, once that has been checked. NULL: the error. */
void *cow_native_table_dataset(cow_table *table);

/* The chunks of a pool: slot k is the chunk at rows [k*c0, (k+1)*c0) of a chunked dataset (read and written with the
 * native CHUNK_READ and CHUNK_WRITE operations; the dataset is grown in steps, at least by an eighth). The store owns
 * the dataset handle given to it, also when it fails. DCPL: the creation properties of the dataset. */
/* FILE: native; stored chunks are not larger than it. NULL: nobody else made the dataset. */
cow_chunk_store *cow_native_chunk_store(void *file, void *raw_data, hid_t dcpl);
struct cow_dataset_header;
struct cow_still;
/* Of a file that stays as it is: chunks are looked for in its bytes before HDF5 is asked. RAW: what the header of the raw data says. */
void cow_native_chunk_store_look(cow_chunk_store *store, const struct cow_still *still,
                                 const struct cow_dataset_header *raw);
/* After that, in a file that this process writes, of HDF5's number FILENO: its chunks are written as bytes as well, as long as HDF5 has not looked at the raw data, and has a
 * place for the chunk's in its index. */
void cow_native_chunk_store_write(cow_chunk_store *store, cow_journal *journal, unsigned long fileno,
                                  const struct cow_dataset_header *raw);
/* For chunks without filters, whose bytes in memory and in the file are the same: OPEN opens the raw data where HDF5 is needed, with NUMBER. */
cow_chunk_store *cow_native_chunk_store_closed(void *file, const struct cow_dataset_header *raw,
                                               void *(*open)(cow_loc file, uint32_t number), uint32_t number);
/* Chunks may be read by other threads, below HDF5: its file is that of JOURNAL, which lives longer. */
void cow_native_chunk_store_read_apart(cow_chunk_store *store, cow_journal *journal);
/* The dataset behind such a store. */
void *cow_native_chunk_store_dataset(cow_chunk_store *store);
void *cow_native_chunk_store_file(cow_chunk_store *store);
/* For whoever moves elements through its dataset, to be set meanwhile: HDF5 1.14.5 cannot be asked for other elements of a
 * dataset in the middle of that (its list of the chunks that are touched is the dataset's). */
bool *cow_native_chunk_store_moving(cow_chunk_store *store);
/* Grow raw_data so that slots [0, slots) exist (needed before elements are written by HDF5 itself). */
int cow_native_chunk_store_reserve(cow_chunk_store *store, uint64_t slots);
/* Chunks were written through the dataset: places and sizes that are known may have changed. */
void cow_native_chunk_store_changed(cow_chunk_store *store);
/* Byte address in the file and size of a slot's chunk; address HADDR_UNDEF where it was never written. SLOTS: how many the
 * pool has. */
int cow_native_chunk_address(cow_chunk_store *store, uint64_t slots, uint64_t slot, haddr_t *address, hsize_t *size,
                             unsigned *mask);
/* Is the index of this chunked dataset a version 1 B-tree? */
bool cow_native_has_tree(void *dataset);
/* The dataset of FILE with its header at ADDRESS: is its B-tree one that h5cow made (h5/chunk_tree.h)? 1; 0: it has none, or another one;
 * -1. */
int cow_native_tree_owner(void *file, uint64_t address, uint64_t *owner);
/* Are heads to be made that HDF5 alone reads (history/head_index.h)? */
bool cow_native_heads(void);
struct cow_chunk_place; /* h5/chunk_index.h */
/* The same of a slot that was written: mostly without a walk over all chunks. */
int cow_native_chunk_store_place(cow_chunk_store *store, uint64_t slots, uint64_t slot, struct cow_chunk_place *place);

#endif
