/* Copying a tree of objects into a new file, and comparing the two, by public HDF5 calls only: what is read is what an
 * application would read, and either file may be under the connector or under native HDF5. For h5cow export and import,
 * and for the option adopt; h5cow recover, which goes through the tree itself, uses the parts.
 *
 * H5Ocopy is not used: between files it clears object references, and a shared object would have to be found again.
 * Here an object with several links stays one object, named types stay shared, and references point to the copies.
 *
 * Functions return 0, or -1 with the reason in cow_tree.why.
 */
#ifndef COW_IMPORT_TREE_H
#define COW_IMPORT_TREE_H

#include "base/map.h"
#include "native/native.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cow_tree_object {
    char *path; /* the same in both files; NULL: a named type that has no link (yet) */
    H5O_type_t type;
    H5O_token_t token; /* in FROM */
    hid_t pending;     /* without a path: the type in the new file, kept open; else H5I_INVALID_HID */
    bool data_later;   /* a dataset whose elements hold references: written when all objects exist */
} cow_tree_object;

/* References that are null in the copy: how many, of how many attributes and datasets, and the first of these in words. */
typedef struct cow_tree_nulls {
    size_t count, places, named;
    char where[600];
} cow_tree_nulls;

typedef struct cow_tree {
    hid_t from, to; /* files, the caller's */
    /* Bytes of elements that were copied or compared since the last call; may be NULL. */
    void (*progress)(void *context, uint64_t bytes);
    void *context;
    cow_map places; /* address in FROM -> place in object */
    cow_tree_object *object;
    size_t objects, room;
    cow_tree_nulls dangling; /* references that pointed to nothing */
    /* References to objects that no link leads to. HDF5 opens these as long as their bytes are there: they were deleted in
     * an earlier session, or a reference count keeps them, and the file does not tell which. */
    cow_tree_nulls stray;
    size_t external;                 /* datasets whose elements are in other files (external storage) ... */
    size_t virtual;                  /* ... and virtual datasets: their definition was copied */
    bool stand_in[H5L_TYPE_MAX + 1]; /* classes of user-defined links that were registered for the copy */
    char why[1200];                  /* what went wrong: object and cause */
} cow_tree;

/* Copy everything below the roots, attributes and comment of the root included. The tree keeps what it learned until
 * cow_tree_free, which is to be called in any case. */
int cow_tree_copy(cow_tree *tree);
/* Is TO, opened again, what FROM is? After cow_tree_copy: links with their order and values, objects that are one,
 * types, extents, creation properties, attributes with their order, comments, times, elements; references by what they
 * point to. */
int cow_tree_compare(cow_tree *tree);
/* Forgets the objects; the files, counts and reason stay, so that another tree can be copied between them. */
void cow_tree_free(cow_tree *tree);
/* Set in LIST, a list for creating groups or (for its root) a file, what GROUP was created with. */
int cow_tree_group_settings(hid_t group, hid_t list);

/* ---- parts ---- */

/* parts.c */

/* -1, and WHAT PATH with the cause of the HDF5 call that just failed in tree->why, unless there is a reason already. */
int cow_tree_failed(cow_tree *tree, const char *what, const char *path);
int cow_tree_no_memory(cow_tree *tree);
uint64_t cow_tree_address(const H5O_token_t *token);
/* PATH/NAME; free() it. NULL: no memory. */
char *cow_tree_join(const char *path, const char *name);
/* Note an object; takes over PATH. */
int cow_tree_remember(cow_tree *tree, const H5O_token_t *token, char *path, H5O_type_t type, hid_t pending,
                      bool data_later);
/* Where the copy of an object of FROM is, or NULL. */
const cow_tree_object *cow_tree_find(const cow_tree *tree, const H5O_token_t *token);

/* The links of an open group or the attributes of an open object, in the order of their creation where that is
 * recorded. */
typedef struct cow_tree_entry {
    char *name;
    H5L_info2_t link; /* groups only */
} cow_tree_entry;
typedef struct cow_tree_names {
    cow_tree_entry *entry;
    size_t count, room;
    bool unordered; /* attributes: the order of their creation is not recorded */
    bool failed;
} cow_tree_names;
int cow_tree_links(hid_t group, cow_tree_names *names);
int cow_tree_attributes(hid_t object, cow_tree_names *names);
void cow_tree_names_by_name(cow_tree_names *names); /* in the order of their bytes */
void cow_tree_names_free(cow_tree_names *names);

/* ": the dataset '/x' (2), the attribute 'a' of '/y' (1) and 7 more places", or "" of none. */
void cow_tree_nulls_where(const cow_tree_nulls *nulls, char *text, size_t size);

/* tree.c */
/* The value of a soft, external or user-defined link; free() it. */
char *cow_tree_link_value(cow_tree *tree, hid_t group, const char *name, const H5L_info2_t *info);

/* A new dataset of the extent of SPACE, which may be another file's. The id, or negative and HDF5's error. */
hid_t cow_tree_dataset(hid_t to, const char *path, hid_t type, hid_t space, hid_t lcpl, hid_t dcpl);

/* compare.c */
/* Do two lists for creating datasets say the same of layout, shape and options of chunks, external files, and mappings? H5Pequal of HDF5 1.14.5 and 2.0.0
 * takes lists for equal that differ in the last dimension of chunks, or in their options. */
bool cow_tree_same_layout(const hid_t list[2]);
/* The same of filters; parameters that a filter works out anew for each dataset count as the same. */
bool cow_tree_same_filters(const hid_t list[2]);
/* Are these the same, whichever files they are of? */
bool cow_tree_same_type(hid_t a, hid_t b);
/* The same elements selected, whatever the extents are; both negative: the same. */
bool cow_tree_same_selection(hid_t a, hid_t b);

/* values.c */
/* Which references became null since BEFORE: in ATTRIBUTE of the object PATH, or, without one, in its elements. What copies
 * attributes or elements here notes that itself. */
typedef struct cow_tree_null_counts {
    size_t dangling, stray;
} cow_tree_null_counts;
cow_tree_null_counts cow_tree_nulls_now(const cow_tree *tree);
void cow_tree_nulls_since(cow_tree *tree, cow_tree_null_counts before, const char *path, const char *attribute);
/* The type in the new file for a type of the old one: shared if it is named, else one that is in no file yet. Close it. */
hid_t cow_tree_type(cow_tree *tree, hid_t type);
/* Make the references in COUNT elements point to the copies. */
int cow_tree_references(cow_tree *tree, hid_t type, size_t count, void *elements);
int cow_tree_copy_attributes(cow_tree *tree, hid_t from, hid_t to, const char *path);
/* One of them. */
int cow_tree_copy_attribute(cow_tree *tree, hid_t from, hid_t to, const char *path, const char *name);
int cow_tree_copy_elements(cow_tree *tree, hid_t from, hid_t to, const char *path);

/* Stored chunks. */
typedef struct cow_tree_chunk {
    hsize_t offset[H5S_MAX_RANK];
    hsize_t size;
} cow_tree_chunk;
typedef struct cow_tree_chunks {
    cow_tree_chunk *chunk;
    size_t count, room;
    unsigned rank;
} cow_tree_chunks;
/* -1: this dataset's chunks cannot be listed. */
int cow_tree_list_chunks(hid_t dataset, hid_t dcpl, cow_tree_chunks *chunks);
/* H5Dwrite_chunk into a new dataset; FILLS: as cow_tree_fills says of it. Where HDF5 has a chunk of fill values of as many
 * bytes, or makes one before it writes, it would keep the mask of that one (H5D__chunk_file_alloc needs no insert): so
 * another size is written first. */
herr_t cow_tree_write_chunk(hid_t to, bool fills, uint32_t mask, const hsize_t *offset, size_t size, const void *bytes);
/* HDF5 may fill it when it allocates it. */
bool cow_tree_fills(hid_t dataset);
/* Go through an extent in boxes of about 32 MiB that are as long as they can be in the last dimensions; or, with
 * CHUNKS, through the parts of these chunks that are inside. */
int cow_tree_boxes(hid_t space, size_t element, const cow_tree_chunks *chunks, hid_t dcpl, cow_box_visitor *visit,
                   void *context);

#endif
