/* Properties that are drawn again for each opening of a file, for each file, and for each object. Both sides get the same.
 *
 * They have random numbers of their own, one of each property and list: leaving one out (--without) changes no other one,
 * and nothing of the program but what follows from it.
 */
#ifndef DIFFERENTIAL_PROPERTIES_H
#define DIFFERENTIAL_PROPERTIES_H

#include "run.h"

/* The lists they stand in; OPENED: calls on the file that was opened for writing. FILE_ACCESS
 * has WRITING where it is. */
enum {
    FILE_ACCESS = 1,
    FILE_CREATION = 2,
    OPENED = 4,
    GROUP_CREATION = 8,
    DATASET_CREATION = 16,
    TYPE_CREATION = 32,
    WRITING = 64
};

/* Sets what it draws in both of LISTS, which may be one. What that is, as text, is valid until the next call. */
const char *draw_properties(unsigned of, const hid_t lists[2]);
/* Names, divided by commas, that are never drawn. false: there is no such name. */
bool leave_out(const char *names);
/* Is the property NAME drawn at all? */
bool is_drawn(const char *name);
void list_properties(void);

/* The file has been created, or restored: what it is decides what can be set when it is opened. Asked of the native side. */
void know_created_file(hid_t native);
void forget_created_file(void);
/* Of the opening, as it was drawn. */
H5F_close_degree_t close_degree(void);
bool caches_chunks(void); /* D15 */
bool keeps_free_space(void);
bool has_narrow_addresses(void);     /* D52 */
bool started_swmr(void);             /* D51 */
bool has_small_metadata_cache(void); /* D47 */
bool takes_newest_formats(void);     /* D48 */
/* D50: what the opening has to have in common with others of the file in this process. */
hid_t access_beside(int s);
/* H5Fset_libver_bounds with bounds that are drawn. */
bool op_bounds(void);

#endif
