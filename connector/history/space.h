/* Free space of the file, from one opening to the next: the table `free`. */
#ifndef COW_HISTORY_SPACE_H
#define COW_HISTORY_SPACE_H

#include "history/history.h"
#include "journal/journal.h"

typedef struct cow_space cow_space;

/* NULL: no memory. */
cow_space *cow_space_new(void);
void cow_space_free(cow_space *space);
/* Where the file has the table, what stands in it is given out again. What cannot be read is not: no error. */
int cow_space_open(cow_file *file);
/* From now on the file has it. */
int cow_space_create(cow_file *file);
void cow_space_close(cow_file *file);
/* All is written, and a commit follows at once: which places are free, into the table. FLUSH writes what changed. */
int cow_space_note(cow_file *file, int (*flush)(cow_file *file));
/* The commit has happened, or failed. */
void cow_space_noted(cow_file *file);
/* COUNT places are put in order, and neighbours become one; of these stay those of at least LEAST bytes. How many. */
size_t cow_places_join(cow_place *place, size_t count, uint64_t least);
/* Is ADDRESS in one of COUNT places that were joined? */
bool cow_places_hold(const cow_place *place, size_t count, uint64_t address);
/* Free places now, in order and apart, of at least LEAST bytes, counted as HDF5 counts addresses; free(*LIST). */
int cow_space_all(cow_file *file, uint64_t least, cow_place **list, size_t *count);
/* As cow_space_all, of those that the table may keep: in some files none. */
int cow_space_list(cow_file *file, uint64_t least, cow_place **list, size_t *count);

#endif
