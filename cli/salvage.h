/* Salvage: what the process that reads the damaged file keeps. Parts: recover.h.
 *
 * The source is open twice: natively, where a version is the tree below a path, and, for each version that allows it,
 * through the connector of this program itself, which shows datasets as the application made them and compares what it
 * reads with checksums. Both see the state that was chosen (journal/inspect.h). The new file is an ordinary one of the
 * connector: each version is made by changing its newest state to the version's tree and closing it.
 */
#ifndef CLI_SALVAGE_H
#define CLI_SALVAGE_H

#include "common.h"
#include "recover.h"
#include "tables.h"

#include "import/tree.h"
#include "store/index.h"

/* An object of the source as it was last met, and its place in the new file. */
typedef struct salvage_place {
    char *path;
    uint64_t source; /* address of the snapshot; UINT64_MAX: unknown */
    uint64_t root;   /* of a dataset in chunks: offset of its root record, UINT64_MAX: none */
    size_t version;  /* in which it was met: its number in salvage.version */
} salvage_place;

/* A named type of the version at hand or the one before. */
typedef struct salvage_type {
    char *path;
    uint64_t source; /* its address where it was read */
    hid_t id;        /* of the one before: in the new file, open until its place is known */
} salvage_type;

/* An object of the version at hand. */
typedef struct salvage_object {
    char *path;
    uint64_t address;
    H5O_type_t type;
    bool changed; /* elements and attributes are to be copied */
    bool kept;    /* the dataset in the new file is that of the version before */
    uint64_t former_root;
} salvage_object;

typedef struct salvage_loss {
    char *path;
    json_object *what;
    bool current; /* the version at hand has it */
} salvage_loss;

typedef struct salvage_version {
    char *name, *path;      /* "3", "/_versioned_data/versions/3"; path NULL: its tree is gone */
    const cli_version *row; /* NULL: not in the log */
} salvage_version;

/* More than 20 fields: the source, the version at hand, and what of earlier ones is in the new file; each part of the walk needs
 * all three. */
typedef struct salvage {
    const char *name;      /* of the damaged file */
    const char *temporary; /* the new one; NULL: only look */
    FILE *to;              /* the process that waits */
    bool whole;            /* all or nothing; and that process has the lock of who writes the source */
    json_object *skip;     /* places where the library crashed: "version\npath" */

    cow_journal *journal; /* holds the chosen state */
    cow_overlay *patches;
    uint64_t patched_end;
    cli_file file; /* the state, natively */
    hid_t connector;
    cow_table *index; /* NULL: cannot be opened */
    cli_dataset_row *datasets;
    size_t dataset_count;
    cli_version *rows;
    size_t row_count;
    size_t *new_row;   /* by row: its row in the log of the new file; SIZE_MAX: none */
    size_t next_row;   /* those before are there, or lost */
    uint64_t new_rows; /* of that log */
    salvage_version *version;
    size_t versions, version_room;
    hid_t
        head; /* through the connector: the newest version once more; H5I_INVALID_HID: it is not, or cannot be opened */
    struct salvage_digests *digests; /* per pool, made when first needed */
    size_t digest_room;

    /* the version at hand */
    const salvage_version *now;
    bool newest;
    hid_t through; /* the version through the connector; H5I_INVALID_HID: cannot be opened */
    cow_tree copy; /* from: `through`, or the native file; to: the new file */
    salvage_object *object;
    size_t objects, object_room;
    cow_map met;   /* address in the source -> place in object */
    cow_map taken; /* address in the new file: it is the copy of an object of this version */
    bool got;      /* an attribute of it was read, or a link that is not hard */
    bool moved;    /* an object of an earlier version has another copy now: references to it are made anew */

    cow_map copy_of; /* address of an object of the head -> of its copy in the new file */

    salvage_place *place;
    size_t places, place_room;
    cow_map place_of;   /* checksum of the path -> place */
    salvage_type *type; /* first those of the version before */
    size_t types, type_room, former_types;
    cow_map type_at;    /* source -> type of the version before */
    salvage_loss *loss; /* that the version at hand has */
    size_t losses, loss_room;
    cow_map bad;   /* pool << 40 | slot: could not be read */
    bool searched; /* the groups of the history were found among all objects: what they list may be of an older state */
} salvage;

/* All links of GROUP, in no order. Where some are damaged, those before are visited. In an order of theirs HDF5 1.14.5 makes a list first, and
 * where one cannot be read it frees what the list has not got yet: that crashes. */
herr_t salvage_links(hid_t group, H5L_iterate2_t visit, void *context);

/* ---- salvage_tell.c ---- */

/* Is TEXT one of LIST? */
bool salvage_known(json_object *list, const char *text);
void salvage_tell(salvage *s, const char *key, json_object *value);
/* Before anything that may make the library crash. True: it did so there, leave it. */
bool salvage_at(salvage *s, const char *path);
/* Something of the version at hand is lost: WHAT, of the object PATH, because of WHY. Takes WHAT, NULL: all of it. */
void salvage_lost(salvage *s, const char *path, json_object *what, uint64_t elements, const char *why);
/* The object is the same as in the version before: what was lost of it then is lost in this one. */
void salvage_same(salvage *s, const char *path);
/* The losses of the object are to be found anew. */
void salvage_forget(salvage *s, const char *path);

/* ---- salvage_state.c ---- */

/* What is said of a state that is as it should be. */
extern const char salvage_whole_state[];
/* Find a state that can be opened, from the FIRST-th way on. 0; 1: there is none. */
int salvage_open(salvage *s, unsigned first);
void salvage_close(salvage *s);

/* ---- salvage_tree.c ---- */

/* Change the new file to the version at hand. 0; 1: the version cannot be read; -1: the new file cannot be written. */
int salvage_tree(salvage *s);

/* ---- salvage_data.c ---- */

/* Does the reason WHY say that values are not what was written, other than that they cannot be compared? */
bool salvage_differs(const char *why);
/* The elements of a dataset: THROUGH the connector (H5I_INVALID_HID: cannot be opened), NATIVE, AGAIN (the same in the head, or
 * invalid), and TO (dry: invalid). 0; -1: the new file cannot be written. */
int salvage_elements(salvage *s, const salvage_object *object, hid_t through, hid_t native, hid_t again, hid_t to);
/* The root record that a dataset shows, UINT64_MAX: it is not one in chunks. */
uint64_t salvage_root(salvage *s, hid_t native);
/* Does it show one that can be read? */
bool salvage_in_chunks(salvage *s, hid_t native);
/* Creation properties as the application made the dataset, as far as can be known without the connector. */
hid_t salvage_dcpl(salvage *s, hid_t native);
void salvage_digests_free(salvage *s);

/* ---- salvage_names.c ---- */

/* Functions return 0; or -1: the new file cannot be written, WHY. */
/* Before the first version. MADE: the new file has some already. */
int salvage_log_begin(salvage *s, bool made, char *why, size_t size);
/* After each one is committed: the log of the new file has what that of the source says of it, and of forgotten ones before it.
 * *SAME: the commit made no version, since nothing differs from the one before. */
int salvage_put_row(salvage *s, bool *same, char *why, size_t size);
/* After the last: tags, and what was done to the history. What cannot be read of it is told. */
int salvage_put_names(salvage *s, char *why, size_t size);

#endif
