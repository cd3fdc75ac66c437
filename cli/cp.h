/* The parts of `h5cow cp`. */
#ifndef CLI_CP_H
#define CLI_CP_H

#include "common.h"

#include "import/tree.h"

/* Sets in OCPYPL, for H5Ocopy, that named types which the object PATH of FROM, or what is below it, uses are those of TO that have
 * the same paths and are the same. cp_types.c. -1 and a recorded error. */
int cli_cp_types(hid_t from, const char *path, hid_t to, hid_t ocpypl);
/* H5Ocopy from one state into another empties references. Those of the object PATH of FROM, and of what is below it, lead in its
 * copy TO_PATH of TO to the copies of what they led to, else to what has the same path and kind in TO, else nowhere. LOST: those that
 * led to nothing before, and those that led to what TO does not have. cp_references.c. 0; or -1 and WHY. */
int cli_cp_references(hid_t from, const char *path, hid_t to, const char *to_path, cow_tree_nulls lost[2], char *why,
                      size_t size);

#endif
