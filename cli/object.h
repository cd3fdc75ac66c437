/* What is asked of any object that is open, whichever state it is of: its kind, links, attributes, comment and elements. */
#ifndef CLI_OBJECT_H
#define CLI_OBJECT_H

#include "common.h"

#include "import/tree.h"

/* "group", "dataset", "type"; "unknown". */
const char *cli_object_kind(H5O_type_t type);
/* In the order of their names' bytes; cow_tree_names_free, in any case. -1: HDF5's error, and those that HDF5 told before. */
int cli_object_links(hid_t group, cow_tree_names *names);
int cli_object_attributes(hid_t object, cow_tree_names *names);
/* "": it has none. free() it. NULL: HDF5's error. */
char *cli_object_comment(hid_t object);
/* The value of a link that is no hard one, and one byte 0 more; free() it. NULL: HDF5's error. */
char *cli_object_link_value(hid_t group, const cow_tree_entry *link, size_t *size);
/* "link to /a", "link to x.h5: /a", "link of class 70: value": of a link that is no hard one. ROOT: what absolute soft
 * links of the group begin with, "/" where it is opened as programs see it. free() it. */
char *cli_object_link(hid_t group, const cow_tree_entry *link, const char *root);

/* The sum of what OF says of each dataset at PATH of FILE and below, for a progress bar: 0 where nobody sees one. */
uint64_t cli_object_sum(hid_t file, const char *path, uint64_t (*of)(hid_t dataset));

/* The elements of a box of a dataset, in memory. */
typedef struct cli_box {
    hid_t type, memory; /* `type` is the caller's */
    uint64_t count;
    unsigned char *value;
} cli_box;
/* As values of TYPE. SPACE is the dataset's own; its selection changes. Close it, in any case; -1: HDF5's error, which is to be
 * asked for before. */
int cli_box_read(cli_box *box, hid_t dataset, hid_t space, hid_t type, unsigned rank, const hsize_t start[],
                 const hsize_t count[]);
/* HOLD: the values hold memory of HDF5's. */
void cli_box_close(cli_box *box, bool hold);

#endif
